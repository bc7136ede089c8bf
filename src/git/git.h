/*
 * git.h - runs the git program in a way that no agent can influence (run.md §1 R3).
 *
 * One absolute path found once, a fixed environment, fixed -c options, no shell, a time limit and a
 * limit on the output.  The repository is named explicitly (--git-dir, --work-tree), so that a
 * changed `.git` file in a work tree has no effect.  References come after --end-of-options, paths
 * after "--": callers of cx_git_run see to that, the functions below it do.
 *
 * Git trusts its directory: configuration in it starts programs.  A work tree that an agent can
 * write is therefore opened as hostile (cx_git_open_checkout), and a call on it names the
 * repository's own directory alone.  The contents of such a work tree and its git directory are
 * read by agent_git.h, git_index.h and snapshot.h, never by git (docs/decisions/0013).
 *
 * An open cx_git is immutable: any number of threads may use it.
 *
 *   I1  argv begins with what R3 fixes, whatever the caller asks for; the environment is built from
 *       nothing.
 *   I2  Which repository is meant is determined once, at opening, and named explicitly afterwards.
 *   I3  A git directory, work tree or index that an agent can write is never given to git: a handle
 *       on such a work tree answers from the repository alone.
 */
#ifndef CX_GIT_GIT_H
#define CX_GIT_GIT_H

#include "os/api.h"
#include "rules/api.h"

#define CX_OID_BYTES_MAX 32
#define CX_OID_TEXT_SIZE (2 * CX_OID_BYTES_MAX + 1)
#define CX_GIT_TIMEOUT_MS UINT64_C(120000)
#define CX_GIT_VERSION_MIN 23800 /* run.md §9: merge-tree --write-tree */
/* Private memory that git may use while it processes data from an agent (mapped packs do not
 * count). */
#define CX_GIT_HOSTILE_MEMORY_BYTES (UINT64_C(1) << 30)

/* An object's name; `size` is 20 (SHA-1) or 32 (SHA-256), 0 = none. The remaining bytes are zero.
 * */
typedef struct cx_oid {
    uint8_t bytes[CX_OID_BYTES_MAX];
    uint8_t size;
} cx_oid;

typedef struct cx_git cx_git;

typedef struct cx_git_call cx_git_call;

typedef struct cx_git_options {
    const char *program; /* absolute; NULL = found in /usr/local/bin, /usr/bin, /bin */
    const char *home;    /* HOME: a folder that stays empty; NULL = a path that cannot exist */
    uint64_t timeout_ms; /* of one call; 0 = CX_GIT_TIMEOUT_MS */
    uint64_t output_limit_bytes;                      /* of one call; 0 = CX_RUN_OUTPUT_BYTES_MAX */
    const atomic_bool *cancel;                        /* NULL = none */
    void (*seen)(void *arg, const cx_git_call *call); /* each call before it starts, from any
                                                         thread; NULL */
    void *seen_arg;
} cx_git_options;

#define CX_GIT_OPTIONS_INIT ((cx_git_options){.program = NULL})

/* --- opening ---------------------------------------------------------------------------------- */

/* The git program in use: a regular executable owned by root (or this user), not writable by
 * others. Static storage; NULL when there is none. */
const char *cx_git_program(void);
/* major * 10000 + minor * 100 + patch of `program` (NULL = cx_git_program). */
CX_RESULT cx_git_version(const char *program, unsigned *out, cx_err *err);
/* CX_E_UNSUPPORTED, with both versions, where the program of `git` (NULL = cx_git_program) is older
 * than CX_GIT_VERSION_MIN. */
CX_RESULT cx_git_check_version(const cx_git *git, cx_err *err);

/* `folder` is in a work tree. CX_E_NOT_FOUND outside of one, CX_E_UNSUPPORTED for a bare repository
 * or an unknown repository format. */
CX_RESULT cx_git_open(const char *folder, const cx_git_options *options, const cx_alloc *alloc,
                      cx_git **out, cx_err *err);
void cx_git_close(cx_git *git); /* NULL is fine */

/* A work tree whose paths are known already: opening it starts no process and reads nothing in it.
 * */
typedef struct cx_git_checkout {
    const char *path;    /* absolute */
    const char *git_dir; /* absolute: HEAD and index are there; the common directory for the main
                            checkout */
    bool hostile;        /* an agent may write in it: no call may need its work tree, index or git
                            directory (asserted) */
} cx_git_checkout;

/* Options are those of `repo`.  Text is copied. */
CX_RESULT cx_git_open_checkout(const cx_git *repo, const cx_git_checkout *where, cx_git **out,
                               cx_err *err);

const char *cx_git_worktree(const cx_git *git);   /* absolute, no '/' at its end */
const char *cx_git_dir(const cx_git *git);        /* of this work tree: HEAD and index are there */
const char *cx_git_common_dir(const cx_git *git); /* of the repository: config, hooks, refs */
/* The main checkout, which the runtime root is named after (R2); in a repository without one, the
 * work tree that was opened. */
const char *cx_git_main_worktree(const cx_git *git);
bool cx_git_is_linked(const cx_git *git);  /* a `git worktree`, not the main checkout */
bool cx_git_is_hostile(const cx_git *git); /* opened as hostile */
size_t cx_git_oid_size(const cx_git *git); /* 20 or 32 */
cx_git_options cx_git_options_of(const cx_git *git);

/* --- running it ------------------------------------------------------------------------------- */

struct cx_git_call {
    const char *const *args; /* after the fixed ones; CX_GIT_ARGS("rev-list", ..) */
    cx_bytes input;
    const char *index_file;      /* GIT_INDEX_FILE; NULL = the work tree's */
    const char *const *env;      /* more "NAME=value", ends with NULL; NULL = none */
    uint64_t output_limit_bytes; /* 0 = as opened */
    uint64_t timeout_ms;         /* 0 = as opened */
    uint64_t
        memory_bytes; /* private memory of git; 0 = CX_GIT_HOSTILE_MEMORY_BYTES on a hostile work tree, else no limit */
    const char *
        work_tree; /* a folder used instead of the work tree, whose files only the caller writes; the repository is the common one. NULL = none */
    const char *
        git_dir; /* another git directory that only the caller writes; it is also the call's work tree and its working directory. NULL = none */
    bool bare;   /* without --work-tree: for calls that use objects only */
    bool common; /* use the repository, not this work tree, which may be removed meanwhile */
    bool plain_paths; /* without GIT_LITERAL_PATHSPECS, which check-ignore does not take: its paths
                         begin with './' or '/' */
};

#define CX_GIT_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Appends git's output (`out` may be NULL). CX_E_FORMAT with the first line of git's error message
 * when the exit code is not 0, unless `out_exit` receives the code. */
CX_RESULT cx_git_call_run(const cx_git *git, const cx_git_call *call, cx_buf *out, int *out_exit,
                          cx_err *err);
/* An unpredictable path at which no index exists, for a call that must not use one. `out` holds
 * CX_PATH_BYTES_MAX + 1 bytes. */
CX_RESULT cx_git_no_index(const cx_git *git, char *out, cx_err *err);
/* cx_git_call_run with arguments only. */
CX_RESULT cx_git_run(const cx_git *git, const char *const *args, cx_buf *out, cx_err *err);

/* --- objects ---------------------------------------------------------------------------------- */

bool cx_oid_eq(const cx_oid *a, const cx_oid *b);
/* Lower-case hex, terminated. */
void cx_oid_text(const cx_oid *oid, char out[CX_OID_TEXT_SIZE]);
/* 40 or 64 hex digits. */
bool cx_oid_parse(cx_str text, cx_oid *out);
/* The object name of a blob with these bytes, computed here: no filters, no attributes. */
cx_oid cx_git_blob_oid(const cx_git *git, cx_bytes contents);

/* The commit a reference names (tags are peeled); CX_E_NOT_FOUND when it names none, more than one,
 * or is no reference at all ("--cached", "", "a..b"). */
CX_RESULT cx_git_resolve(const cx_git *git, cx_str ref, cx_oid *out, cx_err *err);
CX_RESULT cx_git_is_ancestor(const cx_git *git, const cx_oid *ancestor, const cx_oid *commit,
                             bool *out, cx_err *err);
/* The newest commit that both descend from. CX_E_NOT_FOUND when there is none, or more than one
 * (the two were merged into each other crosswise). */
CX_RESULT cx_git_merge_base(const cx_git *git, const cx_oid *a, const cx_oid *b, cx_oid *out,
                            cx_err *err);
/* Whether history was cut off when the repository was cloned (`git clone --depth`). */
CX_RESULT cx_git_is_shallow(const cx_git *git, bool *out, cx_err *err);
/* The tree of a commit. */
CX_RESULT cx_git_tree_of(const cx_git *git, const cx_oid *commit, cx_oid *out, cx_err *err);
/* The root commit of HEAD's history (the first by name when there are several), which identifies a
 * repository. */
CX_RESULT cx_git_root_commit(const cx_git *git, cx_oid *out, cx_err *err);
/* The branch of HEAD ("refs/heads/main"), empty when detached. */
CX_RESULT cx_git_head_ref(const cx_git *git, cx_arena *arena, cx_str *out, cx_err *err);
/* The value of a reference by its full name; CX_E_NOT_FOUND. */
CX_RESULT cx_git_ref(const cx_git *git, cx_str name, cx_oid *out, cx_err *err);
/* Compare and swap: sets the reference if its value is `old` (size 0: if it does not exist), else
 * CX_E_CONFLICT. `fresh` of size 0 deletes it. */
CX_RESULT cx_git_ref_set(const cx_git *git, cx_str name, const cx_oid *fresh, const cx_oid *old,
                         cx_err *err);
/* The repository's own configuration without what an agent must not read: addresses, which may have
 * tokens in them, headers, helpers.  A text of a configuration file, in the arena; data NULL: there
 * is no such file. */
CX_RESULT cx_git_public_config(const cx_git *git, cx_arena *arena, cx_str *out, cx_err *err);
/* Whether a path of the repository is ignored by git. */
CX_RESULT cx_git_is_ignored(const cx_git *git, const char *path, bool *out, cx_err *err);

typedef struct cx_git_entry {
    cx_str path;
    uint32_t mode; /* 0100644, 0100755, 0120000, 0160000, .. */
    cx_oid oid;
} cx_git_entry;

typedef struct cx_git_tree {
    const cx_git_entry *entries; /* every file, sorted by path as bytes */
    size_t count;
} cx_git_tree;

CX_RESULT cx_git_tree_read(const cx_git *git, const cx_oid *commit_or_tree, cx_arena *arena,
                           cx_git_tree *out, cx_err *err);
/* NULL when absent. */
const cx_git_entry *cx_git_tree_find(const cx_git_tree *tree, cx_str path);
/* Appends the contents of a blob. */
CX_RESULT cx_git_blob(const cx_git *git, const cx_oid *oid, size_t limit_bytes, cx_buf *out,
                      cx_err *err);
/* Appends the contents of a path in a commit.  *out_mode 0: no such path; 0040000: a folder. */
CX_RESULT cx_git_show(const cx_git *git, const cx_oid *commit, cx_str path, size_t limit_bytes,
                      cx_buf *out, uint32_t *out_mode, cx_err *err);

/*
 * Appends the output of `git blame --porcelain` for one line (decimal, from 1) of a file as it is
 * in the work tree; `path` is relative to the top folder. Line ends may differ from those of HEAD.
 * `*out_now` is the temporary commit that represents uncommitted changes, size 0 when there are
 * none. No program named by the repository's configuration or attributes is started. CX_E_NOT_FOUND
 * "NoLine".
 */
CX_RESULT cx_git_blame(const cx_git *git, const char *path, const char *line, cx_buf *out,
                       cx_oid *out_now, cx_err *err);

#endif
