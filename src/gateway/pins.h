/*
 * pins.h - what a server's tools said of themselves when they were first seen (docs/formats/live.md
 * §8).
 *
 * Pins are records of the journal `gateway:NAME`, one for each tool and target (the command line or
 * the address), so that the same name with another program begins again from nothing.
 *
 *   N1  The first description and schema of a tool are pinned, unless they have characters that a
 *       person does not see.
 *   N2  Another description or schema, or anything else that differs in a tool, is a finding until
 *       a person accepts it; each is recorded once.
 *   N3  What is accepted is what the person was shown.
 */
#ifndef CX_GATEWAY_PINS_H
#define CX_GATEWAY_PINS_H

#include "gateway/message.h"
#include "gateway/tools.h"
#include "ledger/api.h"

/* "gateway:NAME". */
CX_RESULT cx_gateway_actor(cx_str name, cx_arena *arena, cx_str *out, cx_err *err);

typedef enum cx_gateway_pin_state {
    CX_GATEWAY_PIN_NEW,
    CX_GATEWAY_PIN_SAME,
    CX_GATEWAY_PIN_CHANGED,
    CX_GATEWAY_PIN_TRICK,   /* has characters that are not seen, and was never accepted */
    CX_GATEWAY_PIN_REPEATED /* the same list has this name twice */
} cx_gateway_pin_state;
const char *cx_gateway_pin_name(cx_gateway_pin_state state);

typedef struct cx_gateway_listed {
    const cx_json *tool; /* its object */
    cx_str name;
    cx_gateway_tool_digests digests;
    unsigned tricks;
    bool repeated; /* in this list */
    /* Found out by cx_gateway_pins_check. */
    cx_gateway_pin_state state;
    bool is_news; /* an entry was written for it now */
    cx_gateway_tool_digests pinned;
} cx_gateway_listed;

typedef struct cx_gateway_origin {
    cx_str name;      /* of the server */
    cx_digest target; /* of the command line or the address */
    cx_str session;
} cx_gateway_origin;

/* Compares a list with the pins; pins what is new, and records what is new or has changed as one
 * gateway.tools entry, before it returns. */
CX_RESULT cx_gateway_pins_check(cx_home *home, const cx_gateway_origin *origin,
                                cx_gateway_listed *tools, size_t count, bool hides, cx_err *err);
/* Whether the pin of a tool is what was last seen of it. */
CX_RESULT cx_gateway_pins_is_accepted(cx_home *home, const cx_gateway_origin *origin, cx_str tool,
                                      const cx_gateway_tool_digests *now, cx_arena *arena,
                                      bool *out, cx_err *err);

typedef struct cx_gateway_pin {
    cx_str tool;
    cx_digest target;
    bool accepted;
    unsigned tricks;
    cx_gateway_tool_digests pinned, seen;
} cx_gateway_pin;

/* All pins of a server, by tool.  CX_E_NOT_FOUND: nothing was seen of such a server. */
CX_RESULT cx_gateway_pins_list(cx_home *home, cx_str name, cx_arena *arena,
                               const cx_gateway_pin **out, size_t *out_count, cx_err *err);
/* Whether it waits for a person. */
bool cx_gateway_pin_is_open(const cx_gateway_pin *pin);
/* Pins what `pins`, as they were shown, say was last seen of these tools (none: of all); a
 * gateway.pin entry names them.  CX_E_CONFLICT: something else was seen since (N3). */
CX_RESULT cx_gateway_pins_accept(cx_home *home, cx_str name, const cx_gateway_pin *pins,
                                 size_t pin_count, const cx_str *tools, size_t count, cx_str by,
                                 cx_arena *arena, size_t *out_count, uint64_t *out_seq,
                                 cx_err *err);

#endif
