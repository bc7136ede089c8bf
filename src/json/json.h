/*
 * json.h - JSON as evidence: strict reading, and writing the exact bytes that are signed.
 *
 * Reading follows RFC 8259 without leniency: no BOM, no duplicate names (compared after decoding
 * escapes), no invalid UTF-8, no trailing bytes.  Numbers keep their spelling; an integer literal
 * never passes through a double.  Members of an object are kept sorted by code point of their
 * names, which is the order both canonical forms start from.
 *
 * Values are small, immutable and borrowed: text points into the input where it had no escapes,
 * else into the arena.  A value lives as long as both.  Nothing recurses; depth is a limit, not a
 * stack.
 */
#ifndef CX_JSON_JSON_H
#define CX_JSON_JSON_H

#include "base/api.h"

typedef enum cx_json_type {
    CX_JSON_NULL,
    CX_JSON_FALSE,
    CX_JSON_TRUE,
    CX_JSON_INT,    /* literal without '.', 'e', 'E' */
    CX_JSON_DOUBLE, /* literal with one of them */
    CX_JSON_STRING,
    CX_JSON_ARRAY,
    CX_JSON_OBJECT
} cx_json_type;

enum {
    /* String: only U+0020..U+007E without quote and backslash: its canonical form is itself. */
    CX_JSON_PLAIN = 1,
    /* Number: already in Python's canonical spelling. */
    CX_JSON_CANONICAL = 2,
    /* String with a lone surrogate, or anything containing one (names too). */
    CX_JSON_SURROGATE = 4,
    /* Number that overflows a double, or anything containing one: there is no canonical form. */
    CX_JSON_OVERFLOW = 8,
    /* NaN, Infinity, -Infinity, or anything containing one; only with allow_nonfinite. */
    CX_JSON_NONFINITE = 16
};

typedef struct cx_json cx_json;
typedef struct cx_json_member cx_json_member;

struct cx_json {
    uint8_t type; /* cx_json_type */
    uint8_t flags;
    uint32_t count; /* bytes of text, items, or members */
    union {
        const char *text; /* numbers: the literal; strings: decoded, surrogates as in utf8.h */
        const cx_json *items;
        const cx_json_member *members; /* sorted by name, names distinct */
    };
};

struct cx_json_member {
    cx_json name; /* a CX_JSON_STRING */
    cx_json value;
};

/* --- reading ------------------------------------------------------------------------------- */

typedef struct cx_json_limits {
    uint32_t depth;          /* nested brackets, the outermost is 1 */
    uint32_t integer_digits; /* of an integer literal */
    uint64_t bytes;          /* of the whole input, or of what a prefix uses; 0 = none */
    bool allow_nonfinite;    /* read NaN, Infinity, -Infinity as CX_JSON_DOUBLE literals */
} cx_json_limits;

#define CX_JSON_LIMITS_INIT  \
    {                        \
        1024, 4300, 0, false \
    }

/*
 * A parser object retains its scratch memory between documents.  Errors carry a tag, byte offset,
 * line and column, and say "found ..., expected ...":
 *
 *     CX_E_MORE    U_SYNTAX                   the input ends before its value does
 *     CX_E_SYNTAX  U_SYNTAX U_UTF8 U_BOM      not JSON
 *                  U_NUMBER                   NaN, Infinity, -Infinity
 *     CX_E_FORMAT  U_DUPKEY                   a name twice in one object
 *     CX_E_LIMIT   U_DEPTH U_NUMBER U_LIMIT   nesting, digits of an integer, bytes
 *     CX_E_NOMEM   none
 */
typedef struct cx_json_parser {
    const cx_alloc *alloc;
    cx_json_limits limits;
    void *stack; /* values waiting for their bracket to close */
    size_t stack_capacity;
    void *frames; /* open brackets */
    size_t frame_capacity;
    void *keys; /* for sorting members */
    size_t key_capacity;
    void *text; /* a string whose escapes are being decoded */
    size_t text_capacity;
    void *shapes; /* expected shapes of objects; see shape.h */
} cx_json_parser;

void cx_json_parser_init(cx_json_parser *parser, const cx_alloc *alloc,
                         const cx_json_limits *limits);
void cx_json_parser_done(cx_json_parser *parser);

/* `text` is exactly one value, white space around it allowed. */
CX_RESULT cx_json_parse(cx_json_parser *parser, cx_str text, cx_arena *arena, cx_json *out,
                        cx_err *err);

/*
 * Reads one value from the start of `text` (white space before it is skipped); *out_used is the
 * offset after it.  A top-level number that ends at the end of `text` is CX_E_MORE unless
 * `is_last`: more digits could follow.
 */
CX_RESULT cx_json_parse_prefix(cx_json_parser *parser, cx_str text, bool is_last, cx_arena *arena,
                               cx_json *out, size_t *out_used, cx_err *err);

/* For single documents: default limits, scratch memory from the default allocator. */
CX_RESULT cx_json_parse_text(cx_str text, cx_arena *arena, cx_json *out, cx_err *err);

/* 1-based line and byte column of `offset` in `text`; lines end at LF. */
void cx_json_locate(cx_str text, size_t offset, uint64_t *out_line, uint64_t *out_column);

/* --- reading values ------------------------------------------------------------------------ */

static inline cx_str cx_json_text(const cx_json *value)
{
    CX_DEBUG_ASSERT(value->type >= CX_JSON_INT && value->type <= CX_JSON_STRING);
    return (cx_str){value->text, value->count};
}

static inline bool cx_json_is_number(const cx_json *value)
{
    return value->type == CX_JSON_INT || value->type == CX_JSON_DOUBLE;
}

/* The member's value, or NULL when absent or when `object` is not an object. */
const cx_json *cx_json_get(const cx_json *object, cx_str name);
#define CX_JSON_GET(object, literal) cx_json_get((object), CX_STR(literal))

/* The member's value when it has that type, else NULL. */
const cx_json *cx_json_get_typed(const cx_json *object, cx_str name, cx_json_type type);
/* The member's text when it is a string, else an empty cx_str with NULL data. */
cx_str cx_json_get_str(const cx_json *object, cx_str name);
#define CX_JSON_GET_STR(object, literal) cx_json_get_str((object), CX_STR(literal))

/*
 * The texts of an array, at most `max` and none of them empty, copied into the arena: value->count
 * of them.  *out_wrong is the value that is something else, and NULL when there is none.
 */
CX_RESULT cx_json_texts(const cx_json *value, uint32_t max, cx_arena *arena, const cx_str **out,
                        const cx_json **out_wrong, cx_err *err);

/* Value of an integer literal; false when it is another value or does not fit. */
bool cx_json_int64(const cx_json *value, int64_t *out);
bool cx_json_uint64(const cx_json *value, uint64_t *out);
/* Value of any number literal, correctly rounded; false for other values and on overflow. */
bool cx_json_double(const cx_json *value, double *out);

static inline bool cx_json_has_canonical(const cx_json *value)
{
    return (value->flags & (CX_JSON_OVERFLOW | CX_JSON_NONFINITE)) == 0;
}

/* "null", "boolean", "integer", "number", "string", "array", "object"; static storage. */
const char *cx_json_type_name(const cx_json *value);

/* RFC 6901: finds the value a pointer names; NULL when there is none or the pointer is malformed.
 */
const cx_json *cx_json_pointer(const cx_json *root, cx_str pointer);
/* Appends one reference token, '/' first, '~' and '/' escaped. */
void cx_json_pointer_add(cx_buf *pointer, cx_str token);

/* --- making values ------------------------------------------------------------------------- */

/* Numbers need memory for their literal: when out of memory the value has NULL text, and the list
 * to which it is added fails. */
cx_json cx_json_make_str(cx_str text); /* borrowed; computes the flags */
cx_json cx_json_make_bool(bool value);
cx_json cx_json_make_null(void);
cx_json cx_json_make_int(cx_arena *arena, int64_t value);
cx_json cx_json_make_uint(cx_arena *arena, uint64_t value);
cx_json cx_json_make_double(cx_arena *arena, double value); /* finite */

/*
 * Builds one object or array.  Adding never returns an error; cx_json_list_end does, when memory
 * ran out or (CX_E_EXISTS) a name was added twice.  Scratch memory comes from the arena.
 *
 *     cx_json_list object = cx_json_list_begin(arena);
 *     cx_json_list_put(&object, CX_STR("tool"), cx_json_make_str(tool));
 *     CX_TRY(cx_json_list_end_object(&object, &value, err));
 */
typedef struct cx_json_list {
    cx_arena *arena;
    cx_json_member *members; /* name unused in arrays */
    uint32_t count;
    uint32_t capacity;
    bool failed;
} cx_json_list;

cx_json_list cx_json_list_begin(cx_arena *arena);
void cx_json_list_put(cx_json_list *list, cx_str name, cx_json value); /* object; name borrowed */
void cx_json_list_add(cx_json_list *list, cx_json value);              /* array */
CX_RESULT cx_json_list_end_object(cx_json_list *list, cx_json *out, cx_err *err);
CX_RESULT cx_json_list_end_array(cx_json_list *list, cx_json *out, cx_err *err);

/* A deep copy that borrows from the arena only. */
CX_RESULT cx_json_copy(const cx_json *value, cx_arena *arena, cx_json *out, cx_err *err);

/* --- writing ------------------------------------------------------------------------------- */

typedef enum cx_json_style {
    CX_JSON_PY_COMPACT, /* Python json.dumps(sort_keys=True, separators=(",", ":")) */
    CX_JSON_PY_DEFAULT, /* Python json.dumps(sort_keys=True) */
    CX_JSON_JCS         /* RFC 8785 */
} cx_json_style;

/*
 * Appends the canonical text.  CX_E_FORMAT when the value has none: a number that overflows or is
 * not finite, and for JCS a lone surrogate.  On any error `out` is unchanged.  Scratch memory for
 * deep values comes from the buffer's allocator.
 */
CX_RESULT cx_json_write(cx_buf *out, const cx_json *value, cx_json_style style, cx_err *err);

/*
 * Equal canonical JSON (so 1 and 1.0 differ, 1.0 and 1.00 do not).  Numbers that have no canonical
 * form are equal when spelled alike.
 */
bool cx_json_equal(const cx_json *a, const cx_json *b);

/*
 * Parts for writers that produce the structure themselves; text as in utf8.h.  The number must have
 * a canonical form in that style, and for JCS the text must have no lone surrogate.
 */
void cx_json_write_str(cx_buf *out, cx_str text, cx_json_style style);
void cx_json_write_number(cx_buf *out, const cx_json *number, cx_json_style style);

/*
 * Indented text for display: two spaces per level, members in order, numbers as spelled.  UTF-8 is
 * written as is, except for characters that act on a terminal (shown.h), which are escaped.  Lines
 * after the first are indented by `indent` levels more.
 */
CX_RESULT cx_json_write_pretty(cx_buf *out, const cx_json *value, unsigned indent, cx_err *err);

#endif
