/*
 * inbox.h - everything recorded as one list, newest first, with facet counts: traces and alerts
 * and histories from the index, and objects that the caller adds (runs, agents of traces).
 *
 * Each item has values of facets.  When a value of a facet is chosen, items without a value of that
 * facet are excluded.  Times are those that the items themselves state; a chosen time is in whole
 * hours.
 */
#ifndef CX_STORES_INBOX_H
#define CX_STORES_INBOX_H

#include "recorder/api.h"

#define CX_INBOX_LIMIT_MAX 500
#define CX_INBOX_WORDS_BYTES_MAX 256
#define CX_INBOX_ALERTS_MAX 5000    /* only the newest are considered */
#define CX_INBOX_HISTORIES_MAX 5000 /* likewise */
#define CX_INBOX_VALUES_MAX 50      /* of a facet, in an answer */

/* The order of items with the same time. */
typedef enum cx_inbox_kind {
    CX_INBOX_ALERT,
    CX_INBOX_RUN,
    CX_INBOX_HISTORY,
    CX_INBOX_TRACE,
    CX_INBOX_KINDS
} cx_inbox_kind;

typedef enum cx_facet {
    CX_FACET_KIND,    /* alert run history trace */
    CX_FACET_VERDICT, /* verified unverified; merged running failed; open acknowledged resolved */
    CX_FACET_GATE,    /* passed not_passed overridden unknown; of runs the gate that rejected */
    CX_FACET_K_EFF,   /* below_2 2_to_5 5_and_more unknown */
    CX_FACET_LEVEL,   /* generic detailed full_traces */
    CX_FACET_AGENT,
    CX_FACET_SOURCE, /* of histories: claude-code codex otel steps .. */
    CX_FACET_TIME, /* 1h 24h 7d: from that long ago, rounded down to a full hour, to now; YYYY-MM-DD: a day of UTC */
    CX_FACETS
} cx_facet;
const char *cx_facet_name(cx_facet facet);

/* An object that is not in the index; texts and value live as long as the call. */
typedef struct cx_inbox_object {
    cx_inbox_kind kind;
    cx_str id;
    int64_t when_ns;          /* CX_TIME_NONE: unknown; listed last */
    cx_str values[CX_FACETS]; /* of KIND to SOURCE; data NULL = it has none */
    cx_str words[4];          /* texts to search besides the id; size 0 = none */
    bool has_words;           /* it was found by the words */
    cx_json value;
} cx_inbox_object;

typedef struct cx_inbox_query {
    cx_str chosen[CX_FACETS]; /* data NULL = all */
    cx_str words;             /* all of these words; data NULL = none */
    bool traces;              /* traces and alerts are included */
    bool histories;           /* those of the index are included */
    cx_trace_level level;     /* highest level to show */
    uint32_t limit;           /* 1 .. CX_INBOX_LIMIT_MAX */
    cx_str cursor;            /* data NULL = from the newest on */
    int64_t now_ns;
} cx_inbox_query;

/* Whether a text is a value of CX_FACET_TIME. */
bool cx_inbox_time_is(cx_str text);

/*
 * {"index":"COMMIT.FRAMES"|null,"items":[{"agent","id","kind","value":{..},"when"}],"next_cursor"}
 *
 * `index` is the position of the feed (GET /api/v1/feed) up to which the traces are included.
 * `recorder` and `index` are NULL when there are only objects.  CX_E_FORMAT "BadCursor"; CX_E_LIMIT
 * "TooManyWords".
 */
CX_RESULT cx_recorder_inbox(cx_recorder *recorder, cx_index *index, const cx_inbox_query *query,
                            const cx_inbox_object *objects, size_t count, cx_buf *out, cx_err *err);
/*
 * {"complete":B,"facets":{NAME:{"more":N,"values":[{"count","value"}, ..]}, ..},"index","total"}
 *
 * A value's count is the number of items in the list if it were chosen, given the choices of the
 * other facets; highest first, days newest first.  `complete` is false when more than
 * CX_FACET_ROWS_MAX traces match the words, and only the newest of them were counted.
 */
CX_RESULT cx_recorder_inbox_facets(cx_recorder *recorder, cx_index *index,
                                   const cx_inbox_query *query, const cx_inbox_object *objects,
                                   size_t count, cx_buf *out, cx_err *err);

#endif
