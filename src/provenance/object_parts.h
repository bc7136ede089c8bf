/*
 * object_parts.h - shared by the files about objects.
 */
#ifndef CX_PROVENANCE_OBJECT_PARTS_H
#define CX_PROVENANCE_OBJECT_PARTS_H

#include "recorder/api.h"
#include "provenance/object.h"

/* An object that a link or a URI names: actor and number are looked up when it is described. */
static inline cx_prov_object cx_prov_named(cx_prov_kind kind, cx_str id)
{
    return (cx_prov_object){.kind = kind, .id = id, .matched = "link"};
}

/* The journals that have received traces; names in the arena. */
CX_RESULT cx_prov_trace_journals(const cx_sources *sources, cx_arena *arena, const cx_str **out,
                                 size_t *out_count, cx_err *err);
/* Finds where a trace or a memory is; sets actor, seq (of a trace) and, for a memory named without
 * one, the version.  False when no actor has it. */
CX_RESULT cx_prov_locate(const cx_sources *sources, cx_prov_object *object, cx_arena *arena,
                         bool *out_found, cx_err *err);

/* --- commits (thing_commit.c) ----------------------------------------------------------------- */

typedef struct cx_recorded_commit {
    cx_str raw; /* the object as git hashes it, without its header */
    cx_str author, author_time, subject;
    cx_str run_id, task_id, contract_sha256;  /* trailers; data NULL = none */
    cx_str note_run_id, note_manifest_sha256; /* of the note refs/notes/cortex */
    bool is_hash;                             /* its bytes have its name */
} cx_recorded_commit;
/* CX_E_NOT_FOUND when there is no such commit. */
CX_RESULT cx_commit_read(const cx_sources *sources, cx_str id, cx_arena *arena,
                         cx_recorded_commit *out, cx_err *err);
/* All commits whose name begins so; ids in full. */
CX_RESULT cx_commits_like(const cx_sources *sources, cx_str prefix, cx_arena *arena, cx_str **out,
                          size_t *out_count, cx_err *err);

typedef struct cx_blamed {
    cx_str commit; /* hex; all zero: not committed yet */
    cx_str path;   /* what the file was called there */
    uint64_t line; /* its number there */
    cx_str text;
    cx_str summary, author;
} cx_blamed;
/* FILE:LINE of the working tree.  CX_E_NOT_FOUND, CX_E_USAGE. */
CX_RESULT cx_commit_blame(const cx_sources *sources, cx_str file_line, cx_arena *arena,
                          cx_blamed *out, cx_err *err);

/* --- runs (thing_run.c) ----------------------------------------------------------------------- */

/* A run with its verdict; `bundle` NULL when it is not here. */
typedef struct cx_run_inspection {
    cx_run_bundle *bundle;
    cx_run_known known;
    cx_run_verdict verdict;
} cx_run_inspection;
CX_RESULT cx_run_inspect(const cx_sources *sources, cx_str run_id, cx_arena *arena,
                         cx_run_inspection *out, cx_err *err);
void cx_run_inspect_done(cx_run_inspection *seen);

typedef struct cx_run_commit_event {
    bool found;
    cx_str event_type; /* MERGE_APPLIED, CANDIDATE_COMMITTED */
    uint64_t index;
} cx_run_commit_event;
/* The last event of the run that reports having made this commit. */
CX_RESULT cx_run_find_commit(const cx_run_inspection *seen, cx_str commit, cx_arena *arena,
                             cx_run_commit_event *out, cx_err *err);
CX_RESULT cx_run_describe(const cx_sources *sources, cx_str run_id, cx_arena *arena,
                          cx_described *out, cx_err *err);
CX_RESULT cx_run_event_describe(const cx_sources *sources, cx_str id, cx_arena *arena,
                                cx_described *out, cx_err *err);
/* "RUN/INDEX" */
bool cx_run_event_split(cx_str id, cx_str *out_run, uint64_t *out_index);

/* --- references (object_refs.c) --------------------------------------------------------------- */

typedef enum cx_ref_role {
    CX_REF_CAUSE,  /* `why` follows it */
    CX_REF_EFFECT, /* `why` names it */
    CX_REF_OTHER
} cx_ref_role;

/* One reference of an object, in its direction, with its ground. */
typedef struct cx_ref {
    const char *relation; /* static storage */
    cx_ref_role role;
    cx_prov_object other;
    cx_verdict verdict; /* of the link alone */
    cx_str by;
} cx_ref;
/* At most CX_PROV_REFS_MAX; *out_cut: there were more. */
#define CX_PROV_REFS_MAX 256
CX_RESULT cx_prov_refs(const cx_sources *sources, const cx_prov_object *object,
                       const cx_described *described, cx_arena *arena, const cx_ref **out,
                       size_t *out_count, bool *out_cut, cx_err *err);
/* The lattice nodes of a trace: hash of component i, data NULL when it has no node. */
CX_RESULT cx_trace_nodes(const cx_sources *sources, cx_str actor, cx_str trace_id, cx_arena *arena,
                         cx_str **out, size_t *out_count, cx_err *err);
/* What to type next about it; data NULL = nothing.  Names are made safe for a shell. */
cx_str cx_prov_command(const cx_prov_object *object, cx_arena *arena);

/* --- helpers ---------------------------------------------------------------------------------- */

/* Text from printf in the arena; data NULL when out of memory. */
#define CX_TEXTF(arena, ...) cx_arena_printf((arena), __VA_ARGS__)
#define CX_S(text) (int)(text).size, (text).data

static inline cx_verdict cx_verdict_worse(cx_verdict a, cx_verdict b)
{
    if (a == CX_BROKEN || b == CX_BROKEN)
        return CX_BROKEN;
    return a == CX_INDETERMINATE || b == CX_INDETERMINATE ? CX_INDETERMINATE : CX_HOLDS;
}
static inline cx_str cx_verdict_word(cx_verdict verdict)
{
    return verdict == CX_HOLDS    ? CX_STR("holds")
           : verdict == CX_BROKEN ? CX_STR("broken")
                                  : CX_STR("indeterminate");
}

#endif
