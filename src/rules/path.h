/*
 * path.h - paths of contracts: which are well formed, what they cover, what nobody may touch
 * (run.md §7).
 *
 * An entry is a path of `allowed_paths` or of a lock; a path is what git or a walk found.  Both are
 * relative to the repository, '/' between components.  Nothing here allocates or fails: a question
 * that cannot be answered (text that is too long, or not ASCII while the Unicode library is not
 * there) gets the answer that refuses.  Thread-safe.
 */
#ifndef CX_RULES_PATH_H
#define CX_RULES_PATH_H

#include "rules/run.h"

#define CX_RUN_PATH_BYTES_MAX 4095 /* of a path with everything in it, as Linux has it */

/* Where the runtime root lies inside the repository ("build/cortex"), empty when it lies outside or
 * at its usual place (.runtime-cache is protected anyway). */
typedef struct cx_run_ground {
    cx_str runtime_root;
} cx_run_ground;

/* The first rule that an entry breaks, "P01".."P08" (static storage), or NULL.  `ground` may be
 * NULL. */
const char *cx_run_path_lint(cx_str entry, const cx_run_ground *ground);
/* One clause on a rule, for messages: "has a wildcard; write the folder or the file itself". */
const char *cx_run_path_rule_text(const char *rule);

/* Whether one entry, or one of several, covers `path`.  An entry that fails the lint covers
 * nothing, a path with a `..` component is covered by nothing. */
bool cx_run_path_covers(cx_str entry, cx_str path);
bool cx_run_path_covered(const cx_str *entries, size_t count, cx_str path);

/* Whether nobody may change `path`, at any depth, after folding.  `ground` may be NULL. */
bool cx_run_path_protected(cx_str path, const cx_run_ground *ground);

typedef enum cx_run_overlap {
    CX_RUN_APART,
    CX_RUN_OVERLAP,
    CX_RUN_OVERLAP_INVALID /* one of them fails the lint */
} cx_run_overlap;

cx_run_overlap cx_run_path_overlap(cx_str a, cx_str b, const cx_run_ground *ground);

/* Tracked files of the baseline, in any order; `ls-tree -r -z --name-only` has them. */
typedef struct cx_run_tree {
    const cx_str *files;
    size_t count;
} cx_run_tree;

/* Whether an entry is so wide that it needs an approval.  Without a tree (NULL) the name decides.
 * False for entries that fail the lint. */
bool cx_run_path_wide(cx_str entry, const cx_run_tree *tree);

/* Empty and `.` components dropped, nothing else ("./a//b/" -> "a/b"): what locks are named after.
 * Data is NULL when out of memory. */
cx_str cx_run_path_normal(cx_str entry, cx_arena *arena);

/* --- Unicode ---------------------------------------------------------------------------------- */

/* Whether text is UTF-8 in normal form C.  False too when it is not ASCII and the library is not
 * there. */
bool cx_run_text_is_nfc(cx_str text);
/* Whether text has one of the code points that show nothing (U+200C..200F, 202A..202E, 206A..206F,
 * FEFF). */
bool cx_run_text_has_ignorable(cx_str text);

/*
 * Folds a path component by component (§7): two paths that a file system may take for one another
 * fold to the same bytes.  Writes at most `capacity` bytes, not terminated; false when it is not
 * UTF-8, does not fit, or cannot be folded here: then the caller refuses.  4 * path.size bytes
 * always are enough.
 */
bool cx_run_path_fold(cx_str path, char *out, size_t capacity, size_t *out_size);

#endif
