/*
 * thing.h - whatever has a name in a home, its runs or its repository: finding it by what somebody
 * has at hand, and saying what it is (issue: `cortex show`, `cortex why`; docs/formats/story.md).
 *
 *     CX_TRY(cx_prov_objects_find(&sources, CX_STR("6e908976"), &arena, &things, &count, err));
 *     CX_TRY(cx_prov_show(&sources, &things[0], &arena, &json, err));
 *     CX_TRY(cx_why_of(&sources, &things[0], &arena, &json, err));
 *
 * Nothing is written.  Each answer says what it rests on: a verdict with the words of the project,
 * and `by`, one sentence of what was checked.  `indeterminate` is said where something is only
 * stated, or is not here.
 */
#ifndef CX_PROVENANCE_OBJECT_H
#define CX_PROVENANCE_OBJECT_H

#include "recorder/api.h"
#include "stores/api.h"
#include "git/api.h"
#include "bundle/api.h"

#define CX_PROV_PREFIX_MIN 8   /* hex digits of a hash, or characters of an id */
#define CX_PROV_OBJECTS_MAX 64 /* candidates that are listed */

/* Where things are looked for; what is NULL is left out.  Borrowed. */
typedef struct cx_sources {
    cx_home *home;
    cx_recorder *recorder; /* over home, when there is one */
    cx_links *links;       /* likewise */
    cx_run_index *index;   /* likewise */
    const cx_run_store *store;
    const cx_git *git;
    const cx_io *io;
    const cx_alloc *alloc;
} cx_sources;

/* Opens what stands over `home` (may be NULL); the rest is the caller's to set.  To be ended with
 * cx_sources_done, before the home is closed. */
CX_RESULT cx_sources_open(cx_home *home, const cx_io *io, const cx_alloc *alloc, cx_sources *out,
                          cx_err *err);
void cx_sources_done(cx_sources *sources); /* fine for a zeroed one */

typedef struct cx_prov_object {
    cx_prov_kind kind;
    cx_str id;           /* as in links.h */
    cx_str actor;        /* entry, snapshot, journal, trace, memory: whose journal; else empty */
    uint64_t seq;        /* entry, trace: its number; snapshot: its number; journal: its size */
    const char *matched; /* what was given: "id", "leaf_hash", "content_sha256", ..; static */
    bool known;          /* false: named by somebody, not looked for yet */
} cx_prov_object;

/*
 * What `text` may mean, most certain first; none is CX_E_NOT_FOUND "NoThing", whose message says
 * where was looked.  Ids, URIs, ACTOR/SEQ, ACTOR@SNAPSHOT, RUN/EVENT and names of actors and keys
 * are exact; hashes and ids may be cut to CX_PROV_PREFIX_MIN characters, and then all that fit are
 * listed (at most CX_PROV_OBJECTS_MAX).  A hash reads the whole log.
 */
CX_RESULT cx_prov_objects_find(const cx_sources *sources, cx_str text, cx_arena *arena,
                               const cx_prov_object **out, size_t *out_count, cx_err *err);

/* What was found out about a thing. */
typedef struct cx_described {
    bool here; /* it was found; else only its name is known */
    cx_str title;
    cx_json facts; /* an object; depends on the kind */
    cx_verdict verdict;
    cx_str by; /* what the verdict rests on, or what is missing */
} cx_described;
/* Reads and checks it.  What is missing or damaged is an answer; errors are of reading. */
CX_RESULT cx_prov_describe(const cx_sources *sources, const cx_prov_object *object, cx_arena *arena,
                           cx_described *out, cx_err *err);

/* {kind, id, title, verdict, by, matched, where, facts, links[], next[]}
 * (docs/formats/story.md). */
CX_RESULT cx_prov_show(const cx_sources *sources, const cx_prov_object *object, cx_arena *arena,
                       cx_json *out, cx_err *err);
/* {candidates:[{kind, id, matched, title}]}: of several. */
CX_RESULT cx_prov_objects_list(const cx_sources *sources, const cx_prov_object *objects,
                               size_t count, cx_arena *arena, cx_json *out, cx_err *err);

#define CX_WHY_STEPS_MAX 400
#define CX_WHY_DEPTH_MAX 12
/*
 * {question, verdict, steps:[..], cut, not_proven:[..]}: from the thing to what it came from,
 * across modules. The verdict is the worst of the steps' and links'.
 */
CX_RESULT cx_why_of(const cx_sources *sources, const cx_prov_object *object, cx_arena *arena,
                    cx_json *out, cx_err *err);
/* The same from several, asked as one question: the nodes of a lattice that made a value. */
CX_RESULT cx_why_of_many(const cx_sources *sources, const cx_prov_object *objects, size_t count,
                         cx_str question, cx_arena *arena, cx_json *out, cx_err *err);

#endif
