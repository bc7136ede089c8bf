/*
 * schema_internal.h - a compiled schema, between its loader, its compiler and its checker.
 *
 * A *resource* is a document or a part of it with an "$id" of its own; it has a base URI, a
 * dialect, and anchors.  A *node* is one schema: a boolean or an object, with what its keywords ask
 * as a list of *tests*.  Nodes refer to each other; references are resolved before anything is
 * checked.
 */
#ifndef CX_SCHEMA_SCHEMA_INTERNAL_H
#define CX_SCHEMA_SCHEMA_INTERNAL_H

#include "base/api.h"
#include "json/api.h"
#include "json/internal.h"
#include "schema/pattern.h"
#include "schema/schema.h"

typedef struct schema_node schema_node;
typedef struct schema_resource schema_resource;
typedef struct schema_test schema_test;
typedef struct schema_quick schema_quick;

/* Of a resource: what its "$schema" says its keywords mean. */
typedef enum schema_dialect { DIALECT_07, DIALECT_2019_09, DIALECT_2020_12 } schema_dialect;

/* Which keywords are in force; draft-07 has no vocabularies, so there all are. */
enum {
    VOCABULARY_CORE = 1,
    VOCABULARY_APPLICATOR = 2,
    VOCABULARY_UNEVALUATED = 4,
    VOCABULARY_VALIDATION = 8,
    VOCABULARY_META_DATA = 16,
    VOCABULARY_FORMAT = 32,
    VOCABULARY_FORMAT_ASSERTION = 64,
    VOCABULARY_CONTENT = 128,
    VOCABULARY_ALL = 255 & ~VOCABULARY_FORMAT_ASSERTION
};

typedef struct schema_dynamic {
    cx_str name;
    schema_node *node;
    struct schema_dynamic *next;
} schema_dynamic;

struct schema_resource {
    cx_str base; /* absolute, or empty */
    schema_dialect dialect;
    unsigned vocabularies;
    schema_dynamic *dynamics; /* its "$dynamicAnchor"s */
};

typedef enum schema_kind {
    TEST_TYPE,
    TEST_ENUM,
    TEST_CONST,
    TEST_MINIMUM,
    TEST_MAXIMUM,
    TEST_EXCLUSIVE_MINIMUM,
    TEST_EXCLUSIVE_MAXIMUM,
    TEST_MULTIPLE_OF,
    TEST_MIN_LENGTH,
    TEST_MAX_LENGTH,
    TEST_PATTERN,
    TEST_FORMAT,
    TEST_MIN_ITEMS,
    TEST_MAX_ITEMS,
    TEST_UNIQUE_ITEMS,
    TEST_ITEMS,    /* prefixItems, items, additionalItems: each item by one of them */
    TEST_CONTAINS, /* with minContains, maxContains */
    TEST_MIN_PROPERTIES,
    TEST_MAX_PROPERTIES,
    TEST_REQUIRED,
    TEST_DEPENDENT_REQUIRED,
    TEST_DEPENDENT_SCHEMA,
    TEST_PROPERTIES, /* properties, patternProperties, additionalProperties */
    TEST_PROPERTY_NAMES,
    TEST_REF,
    TEST_DYNAMIC_REF,
    TEST_ALL_OF,
    TEST_ANY_OF,
    TEST_ONE_OF,
    TEST_NOT,
    TEST_IF,
    TEST_UNEVALUATED_ITEMS, /* these two come last */
    TEST_UNEVALUATED_PROPERTIES
} schema_kind;

enum {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_INTEGER = 4,
    TYPE_NUMBER = 8,
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64
};

typedef struct schema_property {
    cx_str name;
    const schema_node *node;
} schema_property;

typedef struct schema_pattern {
    const cx_pattern *pattern;
    const schema_node *node;
} schema_pattern;

typedef struct schema_properties {
    const schema_property *named; /* sorted by name */
    const schema_pattern *patterns;
    const schema_node *additional; /* NULL: anything */
    uint32_t named_count, pattern_count;
} schema_properties;

typedef struct schema_dependency {
    cx_str name;
    const cx_json *required; /* an array of strings */
    const schema_node *node; /* or a schema */
} schema_dependency;

struct schema_test {
    uint8_t kind; /* schema_kind */
    uint32_t count;
    const char *keyword; /* as the schema has it; static */
    const cx_json *value;
    union {
        unsigned types;
        uint64_t limit;
        cx_decimal number;
        const cx_pattern *pattern;
        struct {
            int format; /* of schema_format.c; -1 is none it knows */
            bool asserted;
        };
        const schema_node *node;         /* also TEST_NOT, TEST_PROPERTY_NAMES, .. */
        const schema_node *const *nodes; /* count of them */
        const schema_properties *properties;
        const cx_str *names;                   /* count of them, sorted: TEST_REQUIRED */
        const schema_dependency *dependencies; /* count of them */
        struct {
            const schema_node *const *prefix; /* count of them */
            const schema_node *rest;          /* NULL: anything */
        };
        struct {
            const schema_node *contains;
            uint64_t contains_min, contains_max;
        };
        struct {
            const schema_node *target;
            cx_str dynamic; /* the name of the anchor; empty: as "$ref" */
        };
        struct {
            const schema_node *condition, *then_node, *else_node; /* the latter may be NULL */
        };
    };
};

struct schema_node {
    const cx_json *source;
    schema_resource *resource;
    const schema_node *parent; /* NULL: the root of a document, or found by a pointer */
    const char *keyword;       /* of the parent, static; NULL without one */
    cx_str token;              /* after the keyword, data NULL when there is none */
    cx_str location;           /* of a node without a parent: "#", "#/a/b", "uri#" */
    const schema_test *tests;
    uint32_t test_count;
    const schema_node *only_ref; /* what it refers to, when that is all and of its resource */
    unsigned only_types;         /* TYPE_.. when nothing but "type" is asked, else 0 */
    bool never;                  /* the schema `false` */
    bool wants_evaluated;        /* has unevaluatedItems or unevaluatedProperties */
    uint8_t mark;                /* while circles are looked for */
    uint8_t quick_mark;          /* while quick tables are made */
    const schema_quick *quick;   /* NULL: there is none (schema_quick.h) */
    cx_str dynamic_anchor;       /* its "$dynamicAnchor", or empty */
};

typedef struct schema_owned {
    cx_pattern *pattern;
    struct schema_owned *next;
} schema_owned;

struct cx_schema {
    cx_alloc alloc;
    cx_arena arena; /* everything below but the patterns' insides */
    const schema_node *root;
    schema_owned *patterns;
};

/* --- loading ---------------------------------------------------------------------------------- */

/* What only lives while a schema is made. */
typedef struct schema_loader {
    cx_schema *schema;
    cx_arena *arena;
    const cx_schema_options *options;
    cx_map nodes;                /* address of a value -> its schema_node */
    cx_map places;               /* absolute URI, or URI#anchor -> schema_node */
    CX_VEC(schema_node *) order; /* every node, in the order found */
    uint32_t documents;
    cx_err *err;
} schema_loader;

void schema_loader_init(schema_loader *loader, cx_schema *schema, const cx_schema_options *options,
                        cx_err *err);
void schema_loader_done(schema_loader *loader);

/* Finds all schemas of a document, and what they are called. */
CX_RESULT schema_scan(schema_loader *loader, const cx_json *root, cx_str uri, bool is_main,
                      schema_node **out);
/* The node of a value that was scanned. */
schema_node *schema_node_of(const schema_loader *loader, const cx_json *value);
/* The schema that `reference` names, seen from `from`; loads documents. */
CX_RESULT schema_resolve(schema_loader *loader, const schema_node *from, cx_str reference,
                         schema_node **out);
/* CX_E_FORMAT (or the code) with the node's place in front. */
CX_RESULT schema_refuse(const schema_loader *loader, const schema_node *node, cx_code code,
                        const char *format, ...) CX_PRINTF(4, 5);

/* --- compiling -------------------------------------------------------------------------------- */

typedef enum schema_children {
    CHILDREN_NONE,
    CHILDREN_ONE,  /* a schema */
    CHILDREN_LIST, /* an array of schemas */
    CHILDREN_MAP,  /* an object of schemas */
    CHILDREN_ONE_OR_LIST,
    CHILDREN_MAP_OR_STRINGS /* draft-07's dependencies */
} schema_children;

enum { IN_07 = 1, IN_2019 = 2, IN_2020 = 4, IN_NEWER = IN_2019 | IN_2020, IN_ALL = 7 };

typedef struct schema_keyword {
    const char *name;
    uint8_t dialects; /* IN_.. */
    uint8_t vocabulary;
    uint8_t children; /* schema_children */
    int16_t kind;     /* schema_kind of the test it makes by itself; -1: none, or not by itself */
} schema_keyword;

/* NULL when the node's dialect and vocabularies do not have it. */
const schema_keyword *schema_keyword_find(const schema_resource *resource, cx_str name);

/* Fills in the tests of a node; its children have been scanned. */
CX_RESULT schema_compile_node(schema_loader *loader, schema_node *node);

/* --- formats ---------------------------------------------------------------------------------- */

/* -1 when it is not known. */
int schema_format_find(cx_str name);
bool schema_format_is_date_time(int format);
/* Whether the text has that format; CX_E_NOMEM, or what a pattern says. */
CX_RESULT schema_format_holds(int format, cx_str text, bool *out, cx_err *err);

/* --- URIs ------------------------------------------------------------------------------------- */

/* RFC 3986 §5.2: `reference` as seen from `base` (which may be empty), in the arena. */
CX_RESULT schema_uri_resolve(cx_str base, cx_str reference, cx_arena *arena, cx_str *out,
                             cx_err *err);
/* Cuts at '#': the part in front of it, and what is after it (data NULL when there is no '#'). */
cx_str schema_uri_split(cx_str uri, cx_str *out_fragment);
/* %XX decoded; CX_E_FORMAT when it is malformed. */
CX_RESULT schema_uri_decode(cx_str text, cx_arena *arena, cx_str *out, cx_err *err);

/* --- the meta-schemas ------------------------------------------------------------------------- */

/* The text of one by its URI (no fragment); data NULL when there is none. */
cx_str schema_meta_text(cx_str uri);

/* --- values ----------------------------------------------------------------------------------- */

/* Equal as JSON Schema says: numbers by their value. `*steps` grows by the values looked at. */
bool schema_equal(const cx_json *a, const cx_json *b, uint64_t *steps);

/* Equal values have equal hashes. */
uint64_t schema_hash(const cx_json *value, uint64_t seed);

/* The JSON pointer of a node within its document, with '#' and, for other documents, the URI. */
void schema_node_location(const schema_node *node, cx_buf *out);

#endif
