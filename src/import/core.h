/*
 * core.h - the skeleton of an import: the data of each record that stays in memory between the two
 * passes.
 *
 * Pass one reads every file in order and lets the format describe the records (record.c).  Then
 * references are resolved and the output order is found (order.c).  Pass two writes the nodes in
 * that order and reads each line again for its raw value (emit.c), so that memory contains
 * skeletons, not text (§1.14).
 */
#ifndef CX_IMPORT_CORE_H
#define CX_IMPORT_CORE_H

#include "crypto/api.h"
#include "import/internal.h"

/* The node wraps a record in two levels, and the lattice allows 1024 (lattice.md §1.2). */
#define RECORD_DEPTH_MAX 1022
#define OPEN_FILES_MAX 200
#define IMPORTER "importer"

enum {
    ENTRY_HAS_TIME = 1u << 0,
    ENTRY_FORK_ALWAYS = 1u << 1,
    ENTRY_FORK_IF_HANDED = 1u << 2,
    ENTRY_INHERIT = 1u << 3,
    ENTRY_UNDER_FILE = 1u << 4,
    ENTRY_FROM_LINE = 1u << 5, /* raw is read again from the file */
    ENTRY_RAW_TEXT = 1u << 6,  /* bad: raw_text or raw_b64 in place of raw */
    ENTRY_EXTRA = 1u << 7,
    ENTRY_AGENTLESS = 1u << 8,  /* no ancestor has an agent of its own */
    ENTRY_OUTSIDE = 1u << 9,    /* before the window: it becomes no node (§1.16) */
    ENTRY_TIME_KNOWN = 1u << 10 /* it has none of its own, and t_ns is the assumed one */
};

/* One record.  Entries are in order of (file, position in file), which decides between equal
 * times. */
typedef struct entry {
    const cx_json *raw;  /* in documents */
    uint64_t offset;     /* of the line */
    uint64_t check;      /* of the line's bytes: the second pass must see what the first saw */
    uint64_t place;      /* line or index */
    uint64_t index;      /* number in the file, which is the time of those without any */
    int64_t t_ns;        /* own, or the assumed one of §1.8 */
    const char *derived; /* members of the event, as canonical JSON */
    const char *delta;   /* state_delta less memory.last, as canonical JSON */
    const char *error;   /* bad: static text of a U_ code, or NULL */
    uint32_t derived_size;
    uint32_t delta_size;
    uint32_t size; /* of the line */
    uint32_t file;
    uint32_t part;
    uint32_t agent;
    uint32_t first_ref; /* in refs[], up to the next entry's */
    uint32_t ref_count;
    uint32_t issues;
    uint16_t flags;
    uint8_t kind;
    uint8_t fork;
    uint8_t digest[8]; /* of the content */
} entry;

typedef struct ref {
    uint32_t target; /* a slot, or an entry when direct; after resolving an entry or RECORD_NONE */
    uint8_t kind;
    bool direct;
} ref;

/* An id some record defines or refers to. */
typedef struct id_slot {
    uint32_t definer; /* entry, or CX_RECORD_NONE */
    bool closed;      /* of a call: an answer was seen */
} id_slot;

typedef struct call {
    uint32_t slot;
    uint32_t file;
    cx_str call_id;
    cx_str tool;
} call;

typedef struct late_link {
    uint32_t child;
    uint32_t parent;
    uint8_t kind;
} late_link;

typedef struct agent {
    cx_str name; /* final, §1.10 */
    uint32_t last;
    int64_t seq;    /* of the next node */
    uint64_t nodes; /* written */
} agent;

typedef struct source {
    const char *path; /* NULL = memory */
    cx_file file;
    bool streamed; /* read by offset from `path`; else `bytes` is the whole */
    cx_buf whole;  /* owns the bytes of a file loaded whole */
    cx_buf ahead;  /* in pass two: bytes of a streamed file, from ahead_offset on */
    uint64_t ahead_offset;
    cx_bytes bytes;
    bool lines; /* records are lines */
    uint64_t size;
    cx_digest sha256;
    uint64_t blank_lines;
    uint64_t bad;
    uint64_t first_bad_line; /* 0 = none, or records are no lines */
    const char *first_bad;   /* static text of its code, or NULL */
    uint64_t extra;
    uint64_t issues[CX_ISSUE_COUNT];
    uint32_t first_entry;
    uint32_t entry_count;
    cx_str top;     /* raw_top, canonical JSON; NULL data = none */
    int64_t t_ns;   /* of the file node */
    cx_digest hash; /* of the file node */
} source;

struct cx_import_core {
    const cx_alloc *alloc;
    const cx_io *io; /* NULL = memory only */
    const cx_import_format *format;
    cx_import_options options;
    uint64_t seed;
    cx_import_sink sink;
    cx_import_record record;
    cx_json_parser parser;
    cx_arena keep;      /* the import's */
    cx_arena scratch;   /* a line's, a node's */
    cx_arena documents; /* parsed documents */
    cx_buf text;        /* scratch */
    CX_VEC(source) sources;
    CX_VEC(entry) entries;
    CX_VEC(ref) refs;
    CX_VEC(id_slot) slots;
    CX_VEC(call) calls;
    CX_VEC(late_link) links;
    CX_VEC(agent) agents; /* [0] = importer */
    cx_map slot_index;    /* space and id -> slot */
    cx_map agent_source;  /* name in the source -> agent */
    cx_map agent_used;    /* final name -> agent */
    uint32_t *order;      /* entries in output order */
    uint32_t *output;     /* entry -> place in the output, file nodes included */
    cx_digest *hashes;    /* of entries */
    /* The content of the record that is being stored, and its digest. */
    const cx_json *content;
    char content_digest[16];
    /* The line the format is looking at. */
    const cx_json *line_value;
    uint64_t item;     /* its number, in a window of items */
    uint32_t question; /* the next one about the line */
    uint64_t line_offset;
    cx_str line_text;
    /* The last line of several records that the second pass read, parsed in its own arena. */
    cx_arena line;
    cx_json part_line;
    uint64_t part_offset;
    uint32_t part_file;
    bool has_part_line;
    uint64_t done_bytes;
    uint64_t total_bytes;
    uint64_t reported_bytes;
};

/* The window of a file; NULL = all of it. */
static inline const cx_import_window *window_of(const cx_import_core *core, uint32_t file)
{
    return core->options.windows == NULL ? NULL : &core->options.windows[file];
}

/* Its records are numbered as those of a document. */
static inline bool has_items(const cx_import_window *window)
{
    return window != NULL && window->items;
}

/* core.c */
void cx_import_progress(cx_import_core *core, uint64_t more_bytes);
/* A record of the present file is bad; `tag` is static text, NULL where it is JSON. */
void cx_import_count_bad(cx_import_core *core, const char *tag);
/* The line of an entry, until the next one is read; CX_E_CONFLICT when the file changed. */
CX_RESULT cx_import_reread(cx_import_core *core, const entry *e, cx_str *out, cx_err *err);

/*
 * For a family with both forms (§2.1): lines when there are two or more and one of the first two is
 * an object by itself, which no line of an indented document is.
 */
bool cx_import_looks_like_lines(cx_json_parser *parser, cx_arena *arena, cx_bytes bytes);

/* record.c */
CX_RESULT cx_import_agent_of(cx_import_core *core, cx_str source_name, uint32_t *out, cx_err *err);
/* A line that is no faithful JSON; `tag` is its U_ code. */
CX_RESULT cx_import_bad_line(cx_import_core *core, const char *tag, cx_err *err);

/* order.c: resolves references, decides agents, forks and times, fills order[]. */
CX_RESULT cx_import_resolve(cx_import_core *core, cx_err *err);

/* emit.c */
CX_RESULT cx_import_emit(cx_import_core *core, cx_import_write write, void *arg, cx_err *err);

/* summary.c */
CX_RESULT cx_import_summarize(cx_import_core *core, cx_import_summary *out, cx_err *err);

#endif
