/*
 * object.h - any object with a name in a data directory, its runs or its repository: finds it by
 * any of its names, and describes and verifies it (`cortex show`, `cortex why`;
 * docs/formats/provenance.md).
 *
 *     CX_TRY(cx_prov_objects_find(&sources, CX_STR("6e908976"), &arena, &objects, &count, err));
 *     CX_TRY(cx_prov_show(&sources, &objects[0], &arena, &json, err));
 *     CX_TRY(cx_why_of(&sources, &objects[0], &arena, &json, err));
 *
 * Nothing is written.  Each answer states its ground: a verdict, and `by`, one sentence of what was
 * checked.  The verdict is `indeterminate` where something is only stated, or not available here.
 */
#ifndef CX_PROVENANCE_OBJECT_H
#define CX_PROVENANCE_OBJECT_H

#include "recorder/api.h"
#include "stores/api.h"
#include "git/api.h"
#include "bundle/api.h"

#define CX_PROV_PREFIX_MIN 8   /* hex digits of a hash, or characters of an id */
#define CX_PROV_OBJECTS_MAX 64 /* candidates that are listed */

/* Where objects are searched; members that are NULL are left out.  Borrowed. */
typedef struct cx_sources {
    cx_home *home;
    cx_recorder *recorder; /* over `home`, when there is one */
    cx_links **links;      /* likewise; *links is NULL until cx_sources_links was called */
    cx_run_index *index;   /* likewise */
    const cx_run_store *store;
    const cx_git *git;
    const cx_io *io;
    const cx_alloc *alloc;
} cx_sources;

/* Opens what is derived from `home` (may be NULL); the caller sets the rest.  End it with
 * cx_sources_done, before the data directory is closed. */
CX_RESULT cx_sources_open(cx_home *home, const cx_io *io, const cx_alloc *alloc, cx_sources *out,
                          cx_err *err);
void cx_sources_done(cx_sources *sources); /* fine for a zeroed one */
/* The links of the data directory, brought up to date by the first call; *out is NULL when there is
 * no data directory. */
CX_RESULT cx_sources_links(const cx_sources *sources, cx_links **out, cx_err *err);

typedef struct cx_prov_object {
    cx_prov_kind kind;
    cx_str id;           /* as in links.h */
    cx_str actor;        /* entry, snapshot, journal, trace, memory: whose journal; else empty */
    uint64_t seq;        /* entry, trace: its number; snapshot: its number; journal: its size */
    const char *matched; /* which name matched: "id", "leaf_hash", "content_sha256", ..; static */
    bool known;          /* false: only named by another object, not looked up yet */
} cx_prov_object;

/*
 * The objects that `text` may name, most certain first; none is CX_E_NOT_FOUND "NoThing", whose
 * message lists the places searched.  Ids, URIs, ACTOR/SEQ, ACTOR@SNAPSHOT, RUN/EVENT and names of
 * actors and keys are exact; hashes and ids may be shortened to CX_PROV_PREFIX_MIN characters, and
 * then all that match are listed (at most CX_PROV_OBJECTS_MAX).  A shortened id that is not hex
 * reads the whole log.
 */
CX_RESULT cx_prov_objects_find(const cx_sources *sources, cx_str text, cx_arena *arena,
                               const cx_prov_object **out, size_t *out_count, cx_err *err);

/* The description of an object. */
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
 * (docs/formats/provenance.md). */
CX_RESULT cx_prov_show(const cx_sources *sources, const cx_prov_object *object, cx_arena *arena,
                       cx_json *out, cx_err *err);
/* {candidates:[{kind, id, matched, title}]}: of several. */
CX_RESULT cx_prov_objects_list(const cx_sources *sources, const cx_prov_object *objects,
                               size_t count, cx_arena *arena, cx_json *out, cx_err *err);

#define CX_WHY_STEPS_MAX 400
#define CX_WHY_DEPTH_MAX 12
/*
 * {question, verdict, steps:[..], cut, not_proven:[..]}: from the object to its origins, across
 * modules. The verdict is the worst of the steps' and links'.
 */
CX_RESULT cx_why_of(const cx_sources *sources, const cx_prov_object *object, cx_arena *arena,
                    cx_json *out, cx_err *err);
/* The same for several objects as one question: the nodes of a lattice that wrote a value. */
CX_RESULT cx_why_of_many(const cx_sources *sources, const cx_prov_object *objects, size_t count,
                         cx_str question, cx_arena *arena, cx_json *out, cx_err *err);

#endif
