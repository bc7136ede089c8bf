/*
 * path.h - paths of contracts: which are well formed, what they cover, which are protected (run.md
 * §7).
 *
 * An entry is a path of `allowed_paths` or of a lock; a path is one that git or a walk found.  Both
 * are relative to the repository, with '/' between components.  Nothing here allocates or fails: a
 * question that cannot be answered (text too long, or not ASCII while the Unicode library is
 * missing) gets the answer that rejects.  Thread-safe.
 *
 *   U1  ASCII text is examined byte by byte; the Unicode library is used for other text only.
 *   U2  A path that cannot be folded is protected, overlaps everything and covers nothing.
 */
#ifndef CX_RULES_PATH_H
#define CX_RULES_PATH_H

#include "rules/run.h"

#define CX_RUN_PATH_BYTES_MAX 4095 /* of a whole path: PATH_MAX of Linux without the terminator */

/* The runtime root's path inside the repository ("build/cortex"); empty when it is outside or at
 * its default path (.runtime-cache is protected anyway). */
typedef struct cx_run_path_context {
    cx_str runtime_root;
} cx_run_path_context;

/* The first rule that an entry breaks, "P01".."P08" (static storage), or NULL.  `ground` may be
 * NULL. */
const char *cx_run_path_lint(cx_str entry, const cx_run_path_context *ground);
/* One clause that explains a rule, for messages: "has a wildcard; write the folder or the file
 * itself". */
const char *cx_run_path_rule_text(const char *rule);

/* Whether one entry, or one of several, covers `path`.  An entry that fails the lint covers
 * nothing, a path with a `..` component is covered by nothing. */
bool cx_run_path_covers(cx_str entry, cx_str path);
bool cx_run_path_covered(const cx_str *entries, size_t count, cx_str path);

/* Whether no contract may allow a change of `path`, at any depth, after folding. `ground` may be
 * NULL. */
bool cx_run_path_protected(cx_str path, const cx_run_path_context *ground);

typedef enum cx_run_overlap {
    CX_RUN_APART,
    CX_RUN_OVERLAP,
    CX_RUN_OVERLAP_INVALID /* one of them fails the lint */
} cx_run_overlap;

cx_run_overlap cx_run_path_overlap(cx_str a, cx_str b, const cx_run_path_context *ground);

/* Tracked files of the baseline, in any order; `ls-tree -r -z --name-only` has them. */
typedef struct cx_run_tree {
    const cx_str *files;
    size_t count;
} cx_run_tree;

/* Whether an entry covers so much that it needs an approval. Without a tree (NULL) the name
 * decides. False for entries that fail the lint. */
bool cx_run_path_wide(cx_str entry, const cx_run_tree *tree);

/* Drops empty and `.` components, nothing else ("./a//b/" -> "a/b"); locks are named by this form.
 * Data is NULL when out of memory. */
cx_str cx_run_path_normal(cx_str entry, cx_arena *arena);

/* --- Unicode ---------------------------------------------------------------------------------- */

/* Whether text is UTF-8 in normal form C.  Also false for other text than ASCII while the library
 * is missing. */
bool cx_run_text_is_nfc(cx_str text);
/* Whether text has an invisible code point (U+200C..200F, 202A..202E, 206A..206F, FEFF). */
bool cx_run_text_has_ignorable(cx_str text);

/*
 * Folds a path component by component (§7): two paths that some file system treats as the same fold
 * to the same bytes. Writes at most `capacity` bytes, not terminated; false when the path is not
 * UTF-8, does not fit, or cannot be folded: then the caller rejects. 4 * path.size bytes are always
 * enough.
 */
bool cx_run_path_fold(cx_str path, char *out, size_t capacity, size_t *out_size);

#endif
