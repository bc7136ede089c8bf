/*
 * patch.h - putting canonical JSON text onto persistent maps: merge patches (lattice.md §6).
 *
 * The text was written by us (cx_json_write), so it has no white space, one spelling and no
 * mistakes; it is walked as it lies, and what is kept of it is borrowed.
 */
#ifndef CX_LATTICE_PATCH_H
#define CX_LATTICE_PATCH_H

#include "json/api.h"
#include "lattice/tree.h"

/* An object being patched whose inner one is worked on. */
typedef struct patch_level {
    const tree *root;
    tree_name name; /* of the inner one */
} patch_level;

typedef struct patcher {
    cx_forest *forest;
    const cx_alloc *alloc;
    cx_json_parser parser; /* for names with escapes */
    CX_VEC(patch_level) levels;
    tree_work work;
} patcher;

void cx_patcher_init(patcher *patch, cx_forest *forest, const cx_alloc *alloc);
void cx_patcher_done(patcher *patch);

/* RFC 7396 with the exception for conflict markers. `object` must outlive the forest. */
CX_RESULT cx_patch_map(patcher *patch, const tree **root, cx_str object, cx_err *err);
/* Any value as it is; nulls inside objects are kept. */
CX_RESULT cx_patch_import(patcher *patch, cx_str text, cx_value *out, cx_err *err);

/* An object with `__conflict`. */
bool cx_value_is_conflict(cx_value v);
/* A conflict marker as merges make them: its `values` array goes to *out_values. */
bool cx_value_is_marker(cx_value v, cx_str *out_values);

/* --- walking canonical text ---------------------------------------------------------------- */

/* After the value that starts at `at`. */
const char *cx_canon_skip(const char *at, const char *end);

/* Goes through the members of an object or the items of an array. */
typedef struct canon_walk {
    const char *at, *end;
} canon_walk;

/* The text is an object or an array. */
static inline canon_walk cx_canon_walk(cx_str container)
{
    return (canon_walk){container.data + 1, container.data + container.size - 1};
}
/* False after the last. The name comes as spelled, without its quotes. */
bool cx_canon_member(canon_walk *walk, cx_str *out_name, cx_str *out_value);
bool cx_canon_item(canon_walk *walk, cx_str *out_value);

#endif
