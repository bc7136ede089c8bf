/*
 * sensitive.h - secrets and personal data in what is recorded (docs/sensitive.md).
 *
 *     cx_sensitive_rules_make   the policy, and the user's own patterns, compiled
 *     cx_sensitive_next         the next one in a text
 *     cx_sensitive_scan_..      all of a text, a JSON document, JSON Lines; masked where the policy
 *                               says so
 *
 *   S1  A mask has as many bytes as what it replaces, and none of them: offsets and lengths in what
 *       contains the text stay true, and JSON and protobuf stay valid.
 *   S2  A finding never contains what was found: it has the class, the pattern and the place.
 *   S3  The cost is linear in the bytes: a pattern that fails has looked at a bounded number of
 *       them, or at bytes that no pattern looks at again.
 *
 * Pure functions; rules are read-only once made, and shared by threads.
 */
#ifndef CX_SENSITIVE_SENSITIVE_H
#define CX_SENSITIVE_SENSITIVE_H

#include "base/api.h"

#define CX_SENSITIVE_PATTERNS_MAX 64 /* of the user */
#define CX_SENSITIVE_LISTED_MAX 100  /* findings of one list that have a place; more are counted */
#define CX_SENSITIVE_DEPTH_MAX 512   /* deeper values are scanned, with the pointer of this depth */
#define CX_SENSITIVE_POINTER_MAX 1024

/* X(constant, name, group) */
#define CX_SENSITIVE_CLASSES(X)                           \
    X(CX_SENSITIVE_TOKEN, "token", "secrets")             \
    X(CX_SENSITIVE_PRIVATE_KEY, "private-key", "secrets") \
    X(CX_SENSITIVE_PASSWORD, "password", "secrets")       \
    X(CX_SENSITIVE_CUSTOM, "custom", "secrets")           \
    X(CX_SENSITIVE_EMAIL, "email", "personal")            \
    X(CX_SENSITIVE_PHONE, "phone", "personal")            \
    X(CX_SENSITIVE_CARD, "card", "personal")              \
    X(CX_SENSITIVE_IBAN, "iban", "personal")

typedef enum cx_sensitive_class {
#define CX_SENSITIVE_CONSTANT(id, name, group) id,
    CX_SENSITIVE_CLASSES(CX_SENSITIVE_CONSTANT)
#undef CX_SENSITIVE_CONSTANT
        CX_SENSITIVE_CLASS_COUNT /* also: no class */
} cx_sensitive_class;

const char *cx_sensitive_class_name(cx_sensitive_class class_of);
cx_sensitive_class cx_sensitive_class_of(cx_str name);

/* What is done with a class; the order is that of strength. */
typedef enum cx_sensitive_action {
    CX_SENSITIVE_OFF,
    CX_SENSITIVE_MARK,
    CX_SENSITIVE_MASK
} cx_sensitive_action;

/* --- rules ------------------------------------------------------------------------------------ */

typedef struct cx_sensitive_rules cx_sensitive_rules;

/*
 * `policy`: texts "ACTION", "CLASS=ACTION", or several with commas between; CLASS is a class, or
 * "secrets", "personal"; later ones win; none = everything off.  `patterns`: "PREFIX:CHARSET:MIN"
 * or "PREFIX:CHARSET:MIN-MAX".  Memory from the arena.  CX_E_USAGE says what was expected.
 */
CX_RESULT cx_sensitive_rules_make(const cx_str *policy, size_t policy_count, const cx_str *patterns,
                                  size_t pattern_count, cx_arena *arena,
                                  const cx_sensitive_rules **out, cx_err *err);
/* Whether anything is looked for; NULL = nothing is. */
bool cx_sensitive_is_on(const cx_sensitive_rules *rules);
/* Whether anything is masked. */
bool cx_sensitive_masks(const cx_sensitive_rules *rules);

cx_sensitive_action cx_sensitive_action_of(const cx_sensitive_rules *rules,
                                           cx_sensitive_class class_of);

/* --- one text --------------------------------------------------------------------------------- */

typedef struct cx_sensitive_hit {
    cx_sensitive_class class_of;
    const char *pattern; /* "github", "visa"; static, or the rules' */
    size_t offset, size;
} cx_sensitive_hit;

/* The next one at or after `*at`, which is then its end; false: there is none. */
bool cx_sensitive_next(const cx_sensitive_rules *rules, cx_str text, size_t *at,
                       cx_sensitive_hit *out);

/* --- whole records ---------------------------------------------------------------------------- */

typedef struct cx_sensitive_finding {
    cx_sensitive_class class_of;
    const char *pattern;
    cx_str pointer; /* RFC 6901, names in it masked; empty = the text itself */
    uint64_t line;  /* of JSON Lines, from 1; 0 = not lines */
    bool masked;
    bool is_name; /* it is in the name of the member that the pointer ends with */
} cx_sensitive_finding;

typedef struct cx_sensitive_list {
    cx_arena *arena;
    cx_sensitive_finding *items; /* the first CX_SENSITIVE_LISTED_MAX */
    size_t listed;
    uint64_t count, masked; /* all of them */
    bool failed;            /* out of memory: the list is not to be used */
} cx_sensitive_list;

void cx_sensitive_list_init(cx_sensitive_list *list, cx_arena *arena);

/* What is to be scanned: `bytes`, and the same bytes to be masked; NULL = they are only marked. */
typedef struct cx_sensitive_target {
    const uint8_t *bytes;
    size_t size;
    uint8_t *mask;
    const char *mask_below[2]; /* pointers that masking is confined to; NULL = everywhere */
} cx_sensitive_target;

/* A text that is at `pointer`. */
void cx_sensitive_scan_text(const cx_sensitive_rules *rules, const cx_sensitive_target *target,
                            cx_str pointer, cx_sensitive_list *list);
/* A JSON document as it is written; what is no JSON is scanned as text. */
void cx_sensitive_scan_json(const cx_sensitive_rules *rules, const cx_sensitive_target *target,
                            cx_sensitive_list *list);
/* Lines, each a JSON document or text. */
void cx_sensitive_scan_lines(const cx_sensitive_rules *rules, const cx_sensitive_target *target,
                             cx_sensitive_list *list);
/* A whole number that is no text: whether it is a card's; counted, and when *out_mask the caller
 * masks it. */
bool cx_sensitive_scan_number(const cx_sensitive_rules *rules, uint64_t number, cx_str pointer,
                              cx_sensitive_list *list, bool *out_mask, bool may_mask);

#endif
