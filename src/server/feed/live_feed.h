/*
 * live_feed.h - the live feed: newly recorded entries as server-sent events.  Thread-safe.
 *
 * One thread follows the log and puts an event for each trace, finding and run into the buffer of
 * every reader whose filter admits it.  A reader that gives a position first gets the events
 * between it and now, as fast as it reads.  A reader that has caught up and then lets its buffer
 * run full is dropped: the feed never waits for a reader, which can reconnect with the id of its
 * last event.
 *
 *     id: 17.2                 position after the event: continue from here
 *     event: trace             or "conflict"
 *     data: {"agent_id_hash","canonical_form","content_sha256","entry":{"actor","seq"},
 *            "received_at","trace_id","trace_level","verified"}
 *
 *     event: alert             an alert was raised or acknowledged; "step": one was recorded;
 *                              "session": an agent's hook or a person's answer; "run": one began or
 *                              was sealed; for readers that requested hints
 *     data: {"kind"}           of the entry, and no content: request the object itself
 *
 * A comment line every CX_LIVE_FEED_KEEPALIVE_MS keeps the connection open and detects readers that
 * have disconnected.
 *
 *   I1  Only the feed's thread reads the log and frees readers; the lock guards the data that it
 *       shares with sending threads: the lists, buffers and flags.
 *   I2  A reader has received every event after its start position up to `delivered`, once and in
 *       order.
 *   I3  A buffer never exceeds CX_LIVE_FEED_BUFFER_BYTES.
 *   I4  A reader joins and leaves once; after cx_live_feed_leave its owner never uses it again.
 */
#ifndef CX_SERVER_LIVE_FEED_H
#define CX_SERVER_LIVE_FEED_H

#include "server/service.h"

#define CX_LIVE_FEED_READERS_MAX 256
#define CX_LIVE_FEED_BUFFER_BYTES ((size_t)256 << 10)
#define CX_LIVE_FEED_KEEPALIVE_MS 15000

typedef struct cx_live_feed_reader cx_live_feed_reader;

/* The feed as the body of a call: from response.after on, with the filter of its query. */
cx_stream_open cx_live_feed_stream;

/* Starts following from the end of the log.  `service` outlives the feed and has a recorder. */
CX_RESULT cx_live_feed_open(cx_service *service, cx_live_feed **out, cx_err *err);
/* NULL is fine; all readers must have left. */
void cx_live_feed_close(cx_live_feed *feed);
/* Something was recorded: read the log now. */
void cx_live_feed_wake(cx_live_feed *feed);
/* Ends all readers; admits no new ones. */
void cx_live_feed_end(cx_live_feed *feed);

typedef struct cx_live_filter {
    cx_str agent; /* whose traces; size 0 = all */
    bool hints;   /* events `alert` and `run`, too */
} cx_live_filter;

/* Adds a reader.  `wake` is called by the feed's thread, with its lock held, when a reader that
 * waits has something to read, or has ended.  CX_E_BUSY: CX_LIVE_FEED_READERS_MAX are connected;
 * CX_E_USAGE: `after` is past the end of the ledger. */
CX_RESULT cx_live_feed_join(cx_live_feed *feed, const cx_live_filter *filter,
                            const cx_position *after, void (*wake)(void *arg), void *arg,
                            cx_live_feed_reader **out, cx_err *err);
void cx_live_feed_leave(cx_live_feed *feed, cx_live_feed_reader *reader);

/* Reads at most `size` bytes.  `rest` is called with the feed's lock held, so that no wake-up is
 * missed. */
cx_stream_result cx_live_feed_read(cx_live_feed *feed, cx_live_feed_reader *reader, char *data,
                                   size_t size, size_t *out_size, void (*rest)(void *arg),
                                   void *arg);

/* "17.2"; false for any other text. */
bool cx_live_feed_position_parse(cx_str text, cx_position *out);

#endif
