/*
 * service.h - one request from its headers to its answer, without a network (trace.md §11).
 *
 *     cx_service_begin    the headers have arrived: route, token, parameters; may answer already
 *     cx_service_handle   the body has arrived too: the handler answers
 *
 * http_mhd.c brings requests in and sends answers; tests construct requests.  A handler runs for
 * one call with one cx_worker, which belongs to one thread.  An error that a handler returns
 * becomes a problem answer; internal texts are never sent.
 *
 *   I1  A call is begun once, and handled at most once: only when its route is known and begin has
 *       not answered it.
 *   I2  After cx_service_handle the call is answered, whatever the handler returned.
 *   I3  A handler sees only parameters, scopes and levels that begin has checked against its route.
 *   I4  A worker belongs to one thread, and handles one call at a time.
 */
#ifndef CX_SERVER_SERVICE_H
#define CX_SERVER_SERVICE_H

#include <stdatomic.h>

#include "recorder/api.h"
#include "server/metrics.h"
#include "server/query.h"
#include "server/sender_rate.h"
#include "server/session.h"
#include "server/token.h"

typedef struct cx_service cx_service;
typedef struct cx_call cx_call;
typedef struct cx_live_feed cx_live_feed;
typedef struct cx_session_list cx_session_list; /* server/feed/session_list.h */
struct cx_problem;
typedef struct cx_runs cx_runs;                 /* server/feed/runs.h */
typedef struct cx_view_cache cx_view_cache;     /* server/feed/view_cache.h */
typedef struct cx_part_watch cx_part_watch;     /* server/feed/part_watch.h */
typedef struct cx_object_store cx_object_store; /* stores/object_store.h */

/* --- what is served --------------------------------------------------------------------------- */

#define CX_SERVER_BODY_MAX_DEFAULT CX_BATCH_BYTES_MAX
#define CX_OPEN_REQUESTS_DEFAULT 600
#define CX_OPEN_EVENTS_DEFAULT 600
/* Limit of an OTLP request after its Content-Encoding is removed. */
#define CX_OTLP_UNPACKED_MAX ((size_t)16 << 20)

#define CX_SERVER_URL_SIZE 96

typedef struct cx_service_options {
    const cx_alloc *alloc; /* NULL = default */
    const cx_io *io;       /* NULL = system */
    cx_recorder *recorder; /* open; NULL only where no handler that needs it is called */
    const char *home_path;
    const char *token_path;  /* of a file with a token, named to who signed in; NULL = none */
    const char *index_where; /* as cx_index_open; NULL = the file in the data directory */
    size_t body_max;         /* bytes; 0 = CX_SERVER_BODY_MAX_DEFAULT */
    cx_runs *runs;           /* of a repository; outlives the service; NULL = none is served */
    cx_part_watch *watch;    /* of a part of a fleet; outlives the service; NULL = it is none */
    bool tls;                /* requests arrive over TLS */
    bool relayed;            /* as cx_server_options.relayed_port, and the next two */
    bool (*may_answer)(void *arg);
    void *may_answer_arg;
    /* Signed traces and registrations of keys need no token (trace.md §4.6). */
    bool open_signed;
    unsigned open_requests; /* of one address in a minute; 0 = CX_OPEN_REQUESTS_DEFAULT */
    unsigned open_events;   /* of one key in a minute; 0 = CX_OPEN_EVENTS_DEFAULT */
    bool mcp_writes;        /* offer tokens of scope memory:write the MCP tools that write */
    uint16_t port;          /* that is listened on: cookies of several servers of one host differ */
    /* 16 hex digits of the id of a part of a fleet: cookies are named after it in place of the
     * port, and sessions are stored in the data directory.  NULL = none is served. */
    const char *part_id;
    const cx_object_store *objects; /* of bundles of the part's runs; NULL = none is known */
    const char *const *names; /* by which browsers may call it, besides addresses and localhost */
    size_t name_count;
    const char *user_home; /* of hooks' calls (live/live.h); NULL = not known */
    const char *program;   /* absolute path of this program; likewise */
    /* Takes over a connection that changed to the protocol of socket.md, and calls `ended` once,
     * from any thread, when it is over; NULL = there is none.  The caller waits for all to be over
     * before it closes the server. */
    void (*join)(void *arg, int socket, void (*ended)(void *arg), void *ended_arg);
    void *join_arg;
    /* Without a recorder: the one file that is shown, and the one token that opens it. */
    const char *file_path;          /* its name for people; NULL = none */
    const cx_lattice *only_lattice; /* opened with keep_deltas; outlives the service */
    const cx_token *only_token;
    /* Called with one line without its line end, from any thread; NULL = nothing is logged. */
    void (*log)(void *arg, const char *line);
    void *log_arg;
} cx_service_options;

struct cx_service {
    cx_service_options options;
    const cx_alloc *alloc;
    const cx_io *io;
    cx_recorder *recorder;
    const char *index_where;
    char otlp_url[CX_SERVER_URL_SIZE]; /* where OTLP is received; empty = nowhere */
    cx_arena arena;                    /* of texts that live as long as the service */
    size_t body_max;
    cx_token_guard guard;
    cx_sessions sessions;
    char cookie[24]; /* its name: "cortex_<port>", or with the part's id */
    cx_metrics metrics;
    cx_live_feed *feed; /* NULL = no feed */
    cx_runs *runs;      /* NULL = no repository */
    cx_view_cache *cache;
    cx_session_list *live_sessions;           /* of coding agents; NULL without a recorder */
    cx_sender_rate open_addresses, open_keys; /* of senders without a token */
    uint64_t started_ns;
    atomic_size_t otlp_bytes_in_flight; /* bytes of OTLP requests being read */
    atomic_bool stopping;
    atomic_bool ledger_failed; /* a write failed: nothing can be recorded until the next start */
    atomic_bool tokens_failed; /* they could not be read the last time; logged once */
};

CX_RESULT cx_service_open(const cx_service_options *options, cx_service **out, cx_err *err);
void cx_service_close(cx_service *service); /* NULL is fine; no call may be in progress */
void cx_service_log(cx_service *service, const char *format, ...) CX_PRINTF(2, 3);

/* --- a call ----------------------------------------------------------------------------------- */

typedef struct cx_request {
    cx_str method;
    cx_str target;                                        /* as received */
    cx_str authorization, content_type, content_encoding; /* data NULL = none */
    cx_str last_event_id, if_none_match;                  /* likewise */
    cx_str accept_encoding, cookie, host;                 /* likewise */
    cx_str origin, fetch_site, page_header;               /* likewise; X-Cortex-Page */
    cx_str mcp_version, mcp_method, mcp_name;             /* likewise */
    cx_str upgrade;                                       /* likewise */
    char address[48]; /* of the client, for people; empty = not known */
    bool loopback;    /* it is this machine */
    bool otlp;        /* came to the listener for OTLP (docs/formats/otlp.md) */
    bool otlp_open;   /* that listener accepts requests without a token */
    bool has_length;
    uint64_t length; /* of the body, as declared */
    cx_bytes body;   /* for cx_service_handle */
} cx_request;

/* --- streamed bodies -------------------------------------------------------------------------- */

typedef enum cx_stream_result {
    CX_STREAM_BYTES,
    CX_STREAM_WAIT, /* `rest` was called, and the stream's `wake` will be */
    CX_STREAM_END
} cx_stream_result;

typedef struct cx_stream cx_stream;
struct cx_stream {
    /* Reads at most `size` bytes.  `rest` is called with the source's lock held, so that no
     * wake-up is missed. */
    cx_stream_result (*read)(cx_stream *self, char *data, size_t size, size_t *out_size,
                             void (*rest)(void *arg), void *arg);
    void (*leave)(cx_stream *self); /* frees it */
};
/* Makes the stream of an answered call.  `wake` is called by a thread of the source when a stream
 * that rested has something to read, or is over. */
typedef cx_status cx_stream_open(cx_call *call, void (*wake)(void *arg), void *arg, cx_stream **out,
                                 cx_err *err);

#define CX_RESPONSE_HEADERS_MAX 12
typedef struct cx_response_header {
    const char *name;
    char value[192];
} cx_response_header;

typedef struct cx_response {
    unsigned status; /* 0 = not answered yet */
    const char *content_type;
    const char *cache_control; /* NULL = not to be cached */
    cx_response_header headers[CX_RESPONSE_HEADERS_MAX];
    size_t header_count;
    cx_buf body;
    bool joins;             /* 101: the connection goes to the service's `join` */
    cx_stream_open *stream; /* streams the body, from `after` on; NULL = the body is `body` */
    bool has_after;
    cx_position after;
} cx_response;

typedef enum cx_param_type {
    CX_PARAM_TEXT,
    CX_PARAM_FLAG,   /* 1 or true, 0 or false */
    CX_PARAM_TRI,    /* true, false, any */
    CX_PARAM_TIME,   /* as trace.md §1; a '+' that became a space is read as '+' */
    CX_PARAM_NUMBER, /* finite */
    CX_PARAM_COUNT,  /* min .. max */
    CX_PARAM_LEVEL,
    CX_PARAM_CHOICE, /* one of the words of `choices`, "one|two" */
    CX_PARAM_DIGEST  /* 64 lower-case hex digits */
} cx_param_type;

typedef struct cx_route_param {
    const char *name;
    cx_param_type type;
    const char *help;
    const char *choices;
    uint64_t min, max; /* of COUNT; of TEXT: bytes, max 0 = 1024 */
    const char *also;  /* another name for it */
    bool required;
    bool many; /* may be repeated; handlers walk call->target.params */
} cx_route_param;

typedef struct cx_param {
    bool given;
    cx_str text; /* of the last one */
    union {
        bool flag;
        int8_t tri; /* cx_tri */
        int64_t time_ns;
        double number;
        uint64_t count;
        cx_trace_level level;
        unsigned choice; /* place in `choices` */
        cx_digest digest;
    };
} cx_param;

typedef enum cx_route_thread {
    CX_THREAD_ANY,  /* answers at once, on any thread */
    CX_THREAD_READ, /* reads the index or the ledger */
    CX_THREAD_WRITE /* waits for the disk */
} cx_route_thread;

typedef cx_status cx_handler(cx_call *call, cx_err *err);

typedef struct cx_route {
    const char *method;
    const char *path;    /* "/a/{name}/b"; "{name...}" matches one segment or more */
    bool open;           /* needs no token */
    bool open_signed;    /* needs none where the server takes signed traces without one */
    bool without_ledger; /* also served when only one file is shown, without a data directory */
    bool otlp;           /* of the listener for OTLP; the others are not */
    bool has_short_path; /* "/api/v1/x" is "/api/x" too (run.md §21) */
    unsigned scopes;     /* any of these; 0 = any token */
    bool full_level;     /* shows contents as they are: reading needs the highest level */
    cx_route_thread thread;
    bool has_body;
    bool any_query; /* parameters are not looked at: probes and browsers add their own */
    bool body_optional;
    const cx_route_param *params;
    size_t param_count;
    const char *summary;
    const char *answers; /* "application/json"; NULL = no body worth describing */
    const char *request_type, *response_type; /* of openapi_type.h; NULL = none is described */
    const char *codes; /* what it answers besides 401, 403, 405, 415, 422: "200 404" */
    cx_handler *handler;
    /* For callers that do not understand problems: true when it has answered in its own form.
     * NULL = problems it is. */
    bool (*problem)(cx_call *call, const struct cx_problem *problem);
} cx_route;

#define CX_ROUTE_PARAMS_MAX 24
#define CX_ROUTE_CAPTURES_MAX 3

struct cx_call {
    cx_service *service;
    cx_request request;
    cx_target target;
    cx_target_fault fault;
    const cx_route *route;
    cx_str captures[CX_ROUTE_CAPTURES_MAX]; /* values of the path's {names}, in order */
    size_t capture_count;
    cx_param values[CX_ROUTE_PARAMS_MAX]; /* in the order of the route's params */
    cx_token token;                       /* zeroed when the route is open */
    bool by_signature; /* no token was shown: only what is signed counts (open_signed) */
    bool by_session;   /* the token was not shown; its session was */
    cx_response response;
    char *target_storage; /* of the decoded target; the caller's */
    uint64_t began_ns;
    struct cx_worker *worker; /* while the handler runs */
    cx_arena *arena;          /* likewise: the worker's, empty */
};

/*
 * Initialises a call from the request's headers; `target_storage` has request->target.size bytes;
 * both live as long as the call.  After cx_service_begin either response.status is set, or the
 * route is known and the body is to be read.
 */
void cx_call_init(cx_call *call, cx_service *service, const cx_request *request,
                  char *target_storage);
void cx_call_done(cx_call *call);
void cx_service_begin(cx_call *call);
/* The same for a caller whose token was checked already. */
void cx_service_begin_for(cx_call *call, const cx_token *token);
/* The body is longer than it may be. */
void cx_service_too_large(cx_call *call);
/* Bytes of a body that are ignored where a route has none: many clients send {} with each POST. */
#define CX_BODY_IGNORED_MAX 1024
/* The service is busy: 429 when this client exceeds its share, else 503. */
void cx_service_reject_busy(cx_call *call, unsigned status, const char *why);

/* The state of one worker thread.  I4 */
typedef struct cx_worker {
    cx_service *service;
    cx_arena arena;
    cx_index *index; /* NULL = not open */
} cx_worker;
void cx_worker_init(cx_worker *worker, cx_service *service);
void cx_worker_done(cx_worker *worker);
/* Answers the call.  I1, I2 */
void cx_service_handle(cx_call *call, cx_worker *worker);
/* Counts the answer; once for each call, after it was sent or abandoned. */
void cx_service_count(const cx_call *call);

/* --- for handlers ----------------------------------------------------------------------------- */

/* A parameter of the route's table: requesting another one is a bug (asserted). */
const cx_param *cx_call_param(const cx_call *call, const char *name);
/* Its text, data NULL when the request does not have it. */
cx_str cx_call_text(const cx_call *call, const char *name);
/* A flag that is present and not 0. */
bool cx_call_flag(const cx_call *call, const char *name);
/* The worker's index, opened on demand; after a failure the next call opens it again. */
CX_RESULT cx_call_index(cx_call *call, cx_index **out, cx_err *err);
/* The body as JSON in the arena; `*out_read` false: the body is not JSON, and the call is
 * answered. */
CX_RESULT cx_call_json(cx_call *call, cx_json *out, bool *out_read, cx_err *err);
/* Answers with what is in response.body. */
void cx_call_answer(cx_call *call, unsigned status, const char *content_type);
/* A value as one line of canonical JSON. */
CX_RESULT cx_call_answer_json(cx_call *call, unsigned status, const cx_json *value, cx_err *err);
void cx_call_header(cx_call *call, const char *name, const char *format, ...) CX_PRINTF(3, 4);
/* Who the token belongs to, for what is recorded: "token:<name or id>"; in the arena. */
cx_str cx_call_principal(cx_call *call);

typedef struct cx_problem {
    unsigned status;
    const char *type; /* after urn:cortex:problem: */
    cx_str detail;    /* one sentence */
    cx_str pointer;   /* into the body; data NULL = none */
    cx_str parameter; /* of the query; data NULL = none */
    cx_str reason;    /* of `errors`; data NULL = the detail */
    size_t max_bytes; /* 0 = none */
} cx_problem;
/* Answers with a problem in place of what is in the response so far. */
void cx_call_problem(cx_call *call, const cx_problem *problem);
/* 422 "invalid-request" about one member of the body, named by a JSON pointer ("" = the body). */
void cx_call_refuse_member(cx_call *call, const char *pointer, const char *why);
/* The same for an error; what is not the client's doing is logged and not shown. */
void cx_call_fail(cx_call *call, const cx_err *err);

#endif
