/*
 * gate_parts.h - the state of a gateway, for gate.c, calls.c and lists.c.
 */
#ifndef CX_GATEWAY_GATE_PARTS_H
#define CX_GATEWAY_GATE_PARTS_H

#include "gateway/gate.h"
#include "gateway/message.h"
#include "gateway/tools.h"

typedef enum cx_gateway_flight_kind {
    CX_GATEWAY_FLIGHT_OTHER,
    CX_GATEWAY_FLIGHT_INIT,
    CX_GATEWAY_FLIGHT_LIST,
    CX_GATEWAY_FLIGHT_CALL
} cx_gateway_flight_kind;

/* A request without an answer yet.  Texts are in `block`. */
typedef struct cx_gateway_flight {
    cx_gateway_flight_kind kind;
    bool cancelled;
    cx_str id;
    cx_str tool, call_id; /* of a call: as in its entry */
    cx_digest input_sha256;
    char *block;
    size_t block_size;
} cx_gateway_flight;

typedef struct cx_gateway_flights {
    cx_gateway_flight items[CX_GATEWAY_FLIGHT_MAX];
    size_t count;
} cx_gateway_flights;

/* A call that waits for a person. */
typedef struct cx_gateway_held {
    char *line;
    size_t size;
    cx_str id; /* in `block` after the line */
    size_t block_size;
    uint64_t seq; /* of the decision that asked */
    uint64_t end_ns;
} cx_gateway_held;

struct cx_gateway {
    const cx_gateway_options *options;
    cx_live_options live;
    cx_gateway_origin origin;
    cx_str actor;   /* whose journal has the session */
    cx_arena arena; /* of the gateway's life */
    cx_arena turn;  /* of one message */
    cx_json_parser parser;
    cx_buf out[2]; /* by cx_gateway_side */
    cx_gateway_tools tools;
    cx_gateway_flights asked_server; /* requests of the client */
    cx_gateway_flights asked_client; /* requests of the server */
    cx_gateway_held held[CX_GATEWAY_HELD_MAX];
    size_t held_count, held_bytes;
    uint64_t look_ns; /* when held calls are looked after next */
    cx_live_mode mode;
    char protocol[32];
    size_t problems, list_entries;
};

/* What becomes of a message. */
typedef enum cx_gateway_fate {
    CX_GATEWAY_PASSES,
    CX_GATEWAY_STOPS /* answered, dropped or held */
} cx_gateway_fate;

/* --- gate.c ----------------------------------------------------------------------------------- */

cx_gateway_flight *cx_gateway_flight_find(cx_gateway_flights *flights, cx_str id);
/* Makes room by forgetting the oldest request that was cancelled: it needs no answer. */
bool cx_gateway_has_room(cx_gateway *g, cx_gateway_flights *flights);
#define CX_GATEWAY_BUSY "cortex: 1024 requests are not answered yet"
void cx_gateway_flight_remove(cx_gateway *g, cx_gateway_flights *flights,
                              cx_gateway_flight *flight);
/* `call` may be NULL. */
CX_RESULT cx_gateway_flight_add(cx_gateway *g, cx_gateway_flights *flights,
                                cx_gateway_flight_kind kind, cx_str id, const cx_live_call *call,
                                cx_err *err);
/* Says and records that something did not pass; never fails. */
void cx_gateway_problem(cx_gateway *g, cx_gateway_side from, const char *what, cx_str detail,
                        uint64_t bytes);
void cx_gateway_say(cx_gateway *g, const char *format, ...) CX_PRINTF(2, 3);
bool cx_gateway_is_stateless(const cx_gateway_message *message);
void cx_gateway_send(cx_gateway *g, cx_gateway_side to, cx_str line);

/* --- calls.c ---------------------------------------------------------------------------------- */

/* tools/call: decided and recorded. */
CX_RESULT cx_gateway_call(cx_gateway *g, const cx_gateway_message *message, cx_str raw,
                          cx_gateway_fate *out, cx_err *err);
/* Its answer: recorded. */
CX_RESULT cx_gateway_call_answer(cx_gateway *g, const cx_gateway_flight *flight,
                                 const cx_gateway_message *message, cx_gateway_fate *out,
                                 cx_err *err);
/* Reads the session's policy and mode again; begins the session when there is none. */
CX_RESULT cx_gateway_read_policy(cx_gateway *g, cx_home *home, cx_live_policy *out, cx_err *err);
bool cx_gateway_hides(const cx_gateway *g, const cx_live_policy *policy, cx_str tool);
void cx_gateway_held_remove(cx_gateway *g, size_t index);
cx_str cx_gateway_whole_name(cx_gateway *g, cx_str tool);

/* --- lists.c ---------------------------------------------------------------------------------- */

/* The answer to tools/list: pinned, recorded, and sent without what is hidden. */
CX_RESULT cx_gateway_list_answer(cx_gateway *g, const cx_gateway_message *message, cx_str raw,
                                 cx_gateway_fate *out, cx_err *err);

#endif
