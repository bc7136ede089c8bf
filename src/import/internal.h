/*
 * internal.h - what the format files and the core of this module share.
 *
 * A format file reads one family and describes each record to the core; everything the families
 * have in common (§1) is done there: ids, seals, order, parents, times, labels, deltas, bad
 * records, file nodes.
 *
 *     cx_import_record *r = cx_import_begin(sink);
 *     r->agent = CX_STR("main");
 *     r->kind = CX_KIND_REASON;
 *     cx_import_refer(r, 'u', parent_uuid, CX_REF_NAMED);
 *     cx_import_define(r, 'u', uuid, CX_DEFINE_FIRST);
 *     CX_TRY(cx_import_end(sink, NULL, err));
 *
 * Formats are called in the order of the command line and of the file, each record once.  What a
 * record holds must live until cx_import_end, which copies what it keeps.  References are resolved
 * when all files have been read, so that neither the order of lines nor of files matters to them.
 * Memory failures inside the helpers are kept and returned by cx_import_end.
 */
#ifndef CX_IMPORT_INTERNAL_H
#define CX_IMPORT_INTERNAL_H

#include "import/content.h"
#include "import/import.h"
#include "json/api.h"

typedef enum cx_import_kind {
    CX_KIND_RUN,
    CX_KIND_INPUT, /* what a person, or the operator's system prompt, says to the agents */
    CX_KIND_MESSAGE,
    CX_KIND_REASON,
    CX_KIND_ACT,
    CX_KIND_OBSERVE,
    CX_KIND_TOOL_RESULT,
    CX_KIND_ERROR,
    CX_KIND_STATE,
    CX_KIND_CONFIG,
    CX_KIND_BAD
} cx_import_kind;

/* fork_type (§1.11). */
typedef enum cx_import_fork {
    CX_IMPORT_FORK_NONE,
    CX_IMPORT_FORK_NATURAL,
    CX_IMPORT_FORK_OBSERVATION,
    CX_IMPORT_FORK_INJECTION /* content from outside the conversation, put into it */
} cx_import_fork;

/* What a reference means, and what its absence means. */
typedef enum cx_import_ref_kind {
    CX_REF_NAMED,    /* the source names its parent: absent = dangling_parent, later = label */
    CX_REF_SEQUENCE, /* the record before it: later = time_regressed */
    CX_REF_OPTIONAL, /* a link, good to have: absent = nothing */
    CX_REF_RESULT    /* the call this answers: absent = orphan_result */
} cx_import_ref_kind;

typedef enum cx_import_define_rule {
    CX_DEFINE_FIRST, /* an id met again labels the later record duplicate_id */
    CX_DEFINE_QUIET, /* the first stays, no label */
    CX_DEFINE_LAST   /* the last one wins, no label */
} cx_import_define_rule;

#define CX_RECORD_NONE UINT32_MAX

typedef struct cx_import_key {
    char space; /* 'a'..'z' and 'A'..'Z' are the formats'; ids of two spaces never meet */
    cx_str id;
    uint8_t rule;    /* cx_import_ref_kind or cx_import_define_rule */
    uint32_t record; /* of a direct reference, else CX_RECORD_NONE */
} cx_import_key;

typedef struct cx_import_delta_item {
    cx_str name;
    cx_json value;
} cx_import_delta_item;

/* A tool call or the answer to one (§1.12). */
typedef struct cx_import_call_item {
    cx_str call_id;
    cx_str tool;            /* of a call; empty = unknown */
    const cx_json *args;    /* of a call; NULL = unknown */
    const cx_json *result;  /* of an answer; NULL = unknown */
    cx_str key;             /* scope and call_id, which is what references go by */
    bool opens, closes, ok; /* both: a span that is call and answer in one */
} cx_import_call_item;

/*
 * One record on its way to be a node.  Its first reference, when CX_REF_NAMED or CX_REF_SEQUENCE,
 * is what agents are inherited from and handed over by.  cx_import_begin sets everything to none;
 * only agent and kind must be set.  Texts that are empty, and pointers that are NULL, are left out
 * of the event.
 */
typedef struct cx_import_record {
    cx_str agent; /* as the source names it; the core applies §1.10 */
    cx_import_kind kind;
    /* NULL in a line format = the line itself.  NULL in a document = no raw, for nodes without a
     * record.  In a document it is borrowed for the whole import: the document stays. */
    const cx_json *raw;
    uint32_t part;  /* line formats with several records a line: handed to format->part;
                       UINT32_MAX = the record is the line */
    uint64_t index; /* in a document, event.at.index; UINT64_MAX = running number in the file */
    bool extra;     /* a second node of the same source record (§2.6): not counted as a record */

    cx_str src_id;
    cx_str src_parent;
    bool has_time;   /* t_ns is exact nanoseconds since 1970 */
    bool time_bad;   /* a time is there but cannot be read: bad_time */
    bool time_known; /* without a time of its own: t_ns is that of what is before the window */
    int64_t t_ns;
    cx_str tool;
    cx_str call_id;
    cx_str folder; /* where the agent works; not part of the node */
    cx_str model;
    cx_str status;
    const cx_json *usage;
    const cx_json *content; /* what memory.last digests; NULL = raw, or the line */
    const cx_json *goals;   /* an array, or NULL */
    uint32_t issues;        /* 1u << CX_ISSUE_..., for what the format itself finds */

    cx_import_fork fork; /* for the agent's first node */
    bool fork_always;    /* for later nodes too */
    bool fork_if_handed; /* fork only where the first reference's agent is another */
    bool inherit_agent;  /* agent of what the first reference names, `agent` when nothing does */
    bool under_file; /* a root: the file node is a parent in addition to the branch's predecessor */

    /* Filled through the helpers below. */
    CX_VEC(cx_import_key) refs;
    CX_VEC(cx_import_key) defines;
    CX_VEC(cx_import_call_item) calls;
    CX_VEC(cx_import_call_item) made;     /* the calls among them, and those without an id */
    CX_VEC(cx_import_delta_item) fields;  /* of the event */
    CX_VEC(cx_import_delta_item) beliefs; /* values, without their wrapping */
    CX_VEC(cx_import_delta_item) memory;  /* in addition to last and call */
    const cx_alloc *alloc;
    cx_arena *arena; /* the sink's */
    bool failed;
} cx_import_record;

typedef struct cx_import_core cx_import_core;

/* What a format function is called with. */
typedef struct cx_import_sink {
    cx_import_core *core;
    const cx_import_options *options;
    void *state;     /* format->state_size zeroed bytes, one for the whole import */
    cx_arena *arena; /* scratch until the record's cx_import_end (lines: until the next line);
                        in a document, as long as the document */
    cx_arena *keep;  /* lives as long as the import, for the format's own state */
    uint32_t file;   /* 0-based place on the command line */
    uint64_t line;   /* 1-based, 0 in a document */
} cx_import_sink;

typedef struct cx_import_format {
    cx_import_format_info info;
    bool no_time;      /* the family has no times: timestamp = position (§1.9) */
    bool windows;      /* lines, and what a record takes from others is near it (§1.16) .. */
    bool asks;         /* .. but for what cx_import_ask asks for */
    bool places;       /* a text that is read by places (place.h) */
    bool takes_only;   /* options->only has a meaning */
    size_t state_size; /* of sink->state */
    /* One document; the whole value is given.  Calls cx_import_top once, and describes records. */
    cx_status (*document)(cx_import_sink *sink, const cx_json *document, cx_err *err);
    /* The records of a document are the items of a list: that of the first of these names that has
     * one, or with no name the document itself (§1.16).  `document` calls `item` for each of them,
     * which describes one record.  NULL = they are not. */
    const char *const *item_lists;
    cx_status (*item)(cx_import_sink *sink, const cx_json *item, uint32_t index, cx_err *err);
    /* One line that parsed faithfully, of whatever type.  With both functions, a file that is one
     * JSON value is a document and any other is lines (§2.1). */
    cx_status (*line)(cx_import_sink *sink, const cx_json *value, cx_err *err);
    /* A whole file that is no JSON, as UTF-8; its records are made in the sink's arena. */
    cx_status (*text)(cx_import_sink *sink, cx_str text, cx_err *err);
    /* After the last record of each file, and after the last file; or NULL. */
    cx_status (*file_end)(cx_import_sink *sink, cx_err *err);
    cx_status (*finish)(cx_import_sink *sink, cx_err *err);
    /* At the very end, also after an error, for what the state owns outside the arenas; or NULL. */
    void (*done)(cx_import_sink *sink);
    /* In pass two: what a record says (content.h), from its raw value alone; or NULL. */
    void (*content)(cx_import_content *content, const cx_json *raw);
    /* The record numbered `part` inside a line; NULL = the line is the record. */
    const cx_json *(*part)(const cx_json *line, uint32_t part);
    /* Confidence 0..100 that `record`, one of the first of a file, is of this format; negative: no
     * file of this format has such a record.  NULL: none could be read, `head` is all there is. */
    int (*detect)(cx_bytes head, const cx_json *record);
} cx_import_format;

#define CX_IMPORT_DECLARE(name, text) extern const cx_import_format cx_import_##name;
CX_IMPORT_FORMATS(CX_IMPORT_DECLARE)
#undef CX_IMPORT_DECLARE

#define CX_IMPORT_FORMATS_MAX 40
/* The formats in the order of the help text; NULL after the last. */
const cx_import_format *cx_import_format_nth(size_t index);

/* Gemini's form of a message, {"message":{"role","parts":[...]}}, which Qwen Code writes too. */
bool cx_import_has_parts(const cx_json *record);
/* Whether the name is in a list that ends with NULL. */
bool cx_import_is_one_of(cx_str name, const char *const *names);

/* --- describing a record ------------------------------------------------------------------- */

/* A cleared record owned by the sink; a begun one that was not ended is forgotten. */
cx_import_record *cx_import_begin(cx_import_sink *sink);
/* Takes it.  *out_record (or NULL) numbers it, over all files. */
CX_RESULT cx_import_end(cx_import_sink *sink, uint32_t *out_record, cx_err *err);

/*
 * A record that is not of the format: kind bad, agent importer, raw stored, unknown_type (§1.6).
 * raw NULL in a line format = the line; index as in cx_import_record.
 */
CX_RESULT cx_import_bad(cx_import_sink *sink, const cx_json *raw, uint64_t index, cx_err *err);

/* A causal parent by id, or directly by number; an empty id is ignored. */
void cx_import_refer(cx_import_record *record, char space, cx_str id, cx_import_ref_kind kind);
void cx_import_refer_record(cx_import_record *record, uint32_t parent, cx_import_ref_kind kind);
/* This record is what references to (space, id) mean; an empty id is ignored. */
void cx_import_define(cx_import_record *record, char space, cx_str id, cx_import_define_rule rule);

/* A derived field of the event; null values are left out, of a repeated name the first value
 * counts. */
void cx_import_field(cx_import_record *record, cx_str name, cx_json value);
void cx_import_field_str(cx_import_record *record, cx_str name, cx_str text); /* not when empty */
/* beliefs.<name> = {"value":value,"confidence":1.0} */
void cx_import_belief(cx_import_record *record, cx_str name, cx_json value);
/* memory.<name> = value (replacing or patching, RFC 7396) */
void cx_import_memory(cx_import_record *record, cx_str name, cx_json value);

/*
 * A tool call made by this record, the answer to one, or both in one record.  They set memory.call,
 * define and refer to the call (so answers get their call as a parent, or orphan_result), and feed
 * the count of open calls.  `scope` keeps equal call ids of different runs apart (empty = none).
 */
void cx_import_call(cx_import_record *record, cx_str scope, cx_str call_id, cx_str tool,
                    const cx_json *args);
void cx_import_result(cx_import_record *record, cx_str scope, cx_str call_id, bool ok,
                      const cx_json *result);
void cx_import_call_done(cx_import_record *record, cx_str scope, cx_str call_id, cx_str tool,
                         const cx_json *args, bool ok, const cx_json *result);

/*
 * Whether an id was told in a record before (cx_import_options.was_told); `known`: in one that was
 * read.  In the order of the records, and after the id was told cx_import_tell.  An empty id was
 * never told.
 */
bool cx_import_ask(cx_import_sink *sink, char space, cx_str id, bool known);
void cx_import_tell(cx_import_sink *sink, char space, cx_str id);

/* --- about the file ------------------------------------------------------------------------ */

/* raw_top of the current file's node; copied.  At most once a file. */
CX_RESULT cx_import_top(cx_import_sink *sink, const cx_json *top, cx_err *err);
/* Labels that stay outside the lattice: one line for the labels callback, nothing without it. */
CX_RESULT cx_import_labels(cx_import_sink *sink, const cx_json *labels, cx_err *err);
/* A document that is not of this format: CX_E_FORMAT, U_SHAPE. */
cx_status cx_import_shape(cx_err *err, const char *expected);
/* In finish: one more parent; the kinds mean what they mean above. */
CX_RESULT cx_import_link(cx_import_sink *sink, uint32_t child, uint32_t parent,
                         cx_import_ref_kind kind, cx_err *err);

/* --- small tools --------------------------------------------------------------------------- */

/*
 * A copy of an object without some members (`names` ends with NULL), shallow: the values are
 * shared.  The document without its record arrays is made with it.
 */
CX_RESULT cx_import_without(const cx_json *object, const char *const *names, cx_arena *arena,
                            cx_json *out, cx_err *err);

/* First 16 hex digits of SHA-256 of the text of a string, else of the canonical JSON (§1.12), which
 * is written to `scratch`. */
CX_RESULT cx_import_digest(const cx_json *value, cx_buf *scratch, char out[16], cx_err *err);

/* Sets has_time or time_bad from an ISO string; absent and null set nothing. */
void cx_import_set_iso(cx_import_record *record, const cx_json *value);
/* The same from an integer (number or decimal text) in units of `unit_ns` nanoseconds. */
void cx_import_set_ticks(cx_import_record *record, const cx_json *value, int64_t unit_ns);

#endif
