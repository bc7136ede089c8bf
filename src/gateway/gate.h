/*
 * gate.h - what stands between an agent and an MCP server: messages in, messages out, and what is
 * kept back, answered or recorded on the way (docs/formats/gateway.md).  No input or output of its
 * own but the ledger's.
 *
 *     CX_TRY(cx_gateway_open(&options, &gateway, err));
 *     CX_TRY(cx_gateway_line(gateway, CX_GATEWAY_CLIENT, line, err));     a line of the agent
 *     ... send gateway->to_server and gateway->to_client ...
 *     CX_TRY(cx_gateway_tick(gateway, err));                              what waits for a person
 *     cx_gateway_close(gateway);
 *
 *   G1  What passes, passes as the bytes that came.  Only a list of tools from which some are
 *       hidden, and a batch from which some are kept back, are put together of their parts.
 *   G2  A tool call reaches the server only when its decision is in the ledger, and its result the
 *       client only when that is recorded.  What cannot be recorded is refused, in every mode.
 *   G3  What a strict reader cannot read passes in neither direction, and neither does an answer
 *       to no question, so that both ends see what was judged.
 *   G4  Memory is bounded: messages, requests in flight, calls that wait, lists of tools.
 *   G5  Decisions are by the body alone, and by the tools that the server has listed to this
 *       client.
 */
#ifndef CX_GATEWAY_GATE_H
#define CX_GATEWAY_GATE_H

#include "gateway/frame.h"
#include "gateway/pins.h"
#include "live/api.h"

#define CX_GATEWAY_FLIGHT_MAX 1024 /* requests without an answer, of each side */
#define CX_GATEWAY_HELD_MAX 64     /* calls that wait for a person */
#define CX_GATEWAY_HELD_BYTES_MAX ((size_t)32 << 20)
#define CX_GATEWAY_BATCH_MAX 64
#define CX_GATEWAY_PROBLEMS_MAX 100 /* entries of one process */
#define CX_GATEWAY_LISTS_MAX 256    /* entries about tools of one process */
#define CX_GATEWAY_WAIT_S_MAX 3600

typedef enum cx_gateway_side { CX_GATEWAY_CLIENT, CX_GATEWAY_SERVER } cx_gateway_side;

typedef struct cx_gateway_options {
    const cx_alloc *alloc;
    const cx_io *io;
    cx_live_options live; /* agent, mode, data directory, ..; via is set here */
    cx_str name;          /* of the server: cx_gateway_check_name */
    cx_str target;        /* command line or address: with other bytes tools are pinned again */
    cx_str session;       /* the id of the session */
    bool own_session;     /* begun and ended here, not an agent's */
    cx_str cwd;           /* absolute */
    cx_str_list hide;     /* TOOL, SERVER/TOOL */
    cx_str_list refuse;   /* methods */
    bool no_batches;      /* of a transport that sends each message by itself */
    void *arg;
    /* The data directory for one step; held no longer. */
    cx_status (*open_home)(void *arg, cx_home **out, cx_err *err);
    void (*close_home)(void *arg, cx_home *home);
    /* One line for the person, without a line feed; shown safely by the callee. */
    void (*say)(void *arg, cx_str line);
} cx_gateway_options;

typedef struct cx_gateway cx_gateway;

/* Begins the session.  Options are borrowed. */
CX_RESULT cx_gateway_open(const cx_gateway_options *options, cx_gateway **out, cx_err *err);
/* Ends an own session; NULL is fine.  A failure is said. */
void cx_gateway_close(cx_gateway *gateway);

/* Lines that wait to be sent; the caller takes them off the front.  */
cx_buf *cx_gateway_out(cx_gateway *gateway, cx_gateway_side to);

/* One message of a side, without its line feed.  Errors are of memory alone. */
CX_RESULT cx_gateway_line(cx_gateway *gateway, cx_gateway_side from, cx_str line, cx_err *err);
/* A message that was longer than CX_GATEWAY_MESSAGE_MAX. */
CX_RESULT cx_gateway_too_long(cx_gateway *gateway, cx_gateway_side from,
                              const cx_gateway_skim *skim, uint64_t bytes, cx_err *err);
/* The server will send no more: what it owes is answered with an error. */
CX_RESULT cx_gateway_server_gone(cx_gateway *gateway, cx_str why, cx_err *err);
/* Answers one request that could not be sent, or was not answered, with an error. */
CX_RESULT cx_gateway_fail_request(cx_gateway *gateway, cx_str id, cx_str why, cx_err *err);
/* Whether an answer to this request of the client is still to come. */
bool cx_gateway_awaits(cx_gateway *gateway, cx_str id);
/* The client will send no more: calls that wait for a person are refused. */
CX_RESULT cx_gateway_client_gone(cx_gateway *gateway, cx_err *err);

/* Looks after calls that wait for a person. */
CX_RESULT cx_gateway_tick(cx_gateway *gateway, cx_err *err);
/* Milliseconds until the next tick is wanted; UINT32_MAX: none. */
uint32_t cx_gateway_due_ms(const cx_gateway *gateway);

/* The revision that client and server agreed on; empty before. */
cx_str cx_gateway_protocol(const cx_gateway *gateway);

#endif
