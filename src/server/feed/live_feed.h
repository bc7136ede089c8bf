/*
 * hub.h - the feed: what is newly recorded, told to whoever listens (server-sent events).
 *
 * One thread follows the log and puts an event for each trace, finding and run into the buffer of
 * every reader that wants it.  A reader that was given a position first gets what is between it and
 * now, as fast as it reads.  A reader that has caught up and then lets its buffer run full is
 * dropped: nobody waits for it, and it can come back with the id of the last event that it has.
 *
 *     id: 17.2                 position behind the event: go on from here
 *     event: trace             or "conflict"
 *     data: {"agent_id_hash","canonical_form","content_sha256","entry":{"actor","seq"},
 *            "received_at","trace_id","trace_level","verified"}
 *
 *     event: alert             a finding was made or marked; "run": one began or was sealed; to
 *                              readers who asked for hints
 *     data: {"kind"}           of the entry: what it is about is to be asked for
 *
 * A comment line every CX_LIVE_FEED_KEEPALIVE_MS keeps the connection open and finds readers that
 * have gone.
 */
#ifndef CX_SERVER_LIVE_FEED_H
#define CX_SERVER_LIVE_FEED_H

#include "server/service.h"

#define CX_LIVE_FEED_READERS_MAX 256
#define CX_LIVE_FEED_BUFFER_BYTES ((size_t)256 << 10)
#define CX_LIVE_FEED_KEEPALIVE_MS 15000

typedef struct cx_live_feed_reader cx_live_feed_reader;

/* The feed as the body of a call: from response.after on, of the agent it asked for. */
cx_stream_open cx_live_feed_stream;

/* Starts following from the end of the log.  `service` outlives the hub. */
CX_RESULT cx_live_feed_open(cx_service *service, cx_live_feed **out, cx_err *err);
/* NULL is fine; all readers must have left. */
void cx_live_feed_close(cx_live_feed *feed);
/* Something was recorded: look now. */
void cx_live_feed_wake(cx_live_feed *feed);
/* Every reader is told that it is over; nobody new is let in. */
void cx_live_feed_end(cx_live_feed *feed);

typedef struct cx_live_filter {
    cx_str agent; /* whose traces; size 0 = all */
    bool hints;   /* events `alert` and `run`, too */
} cx_live_filter;

/* `wake` is called by the hub's thread, with its lock held, when a reader that found nothing has
 * something to read, or is over.  CX_E_BUSY when there are too many. */
CX_RESULT cx_live_feed_join(cx_live_feed *feed, const cx_live_filter *filter,
                            const cx_position *after, void (*wake)(void *arg), void *arg,
                            cx_live_feed_reader **out, cx_err *err);
void cx_live_feed_leave(cx_live_feed *feed, cx_live_feed_reader *reader);

/* At most `size` bytes.  `rest` is called with the hub's lock held, so that no wake is missed. */
cx_stream_result cx_live_feed_read(cx_live_feed *feed, cx_live_feed_reader *reader, char *data,
                                   size_t size, size_t *out_size, void (*rest)(void *arg),
                                   void *arg);

/* "17.2"; false when it is none. */
bool cx_live_feed_position_parse(cx_str text, cx_position *out);

#endif
