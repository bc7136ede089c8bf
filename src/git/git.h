/*
 * git.h - the git program, and nothing an agent could have said to it (run.md §1 R3).
 *
 * One absolute path found once, a fixed environment, fixed -c options, no shell, a time limit and a
 * limit on what it may print.  The repository is named outright (--git-dir, --work-tree), so that a
 * changed `.git` file in a work tree leads nowhere.  References come behind --end-of-options, paths
 * behind "--": the callers of cx_git_run see to that, the functions below it do.
 *
 * Git believes its directory: configuration in it starts programs.  A work tree that an agent can
 * write is therefore opened as hostile (cx_git_open_checkout), and a call on it names the
 * repository's own directory alone; what lies in such a work tree and in its git directory is read
 * by agent_git.h, git_index.h and snapshot.h, never by git (docs/decisions/0013).
 *
 * An opened cx_git is immutable: any number of threads may use it.
 */
#ifndef CX_GIT_GIT_H
#define CX_GIT_GIT_H

#include "os/api.h"
#include "rules/api.h"

#define CX_OID_BYTES_MAX 32
#define CX_OID_TEXT_SIZE (2 * CX_OID_BYTES_MAX + 1)
#define CX_GIT_TIMEOUT_MS UINT64_C(120000)
/* What git may use of its own while it works on what an agent made (mapped packs do not count). */
#define CX_GIT_HOSTILE_MEMORY_BYTES (UINT64_C(1) << 30)

/* An object's name; `size` is 20 (SHA-1) or 32 (SHA-256), 0 = none.  Bytes behind are zero. */
typedef struct cx_oid {
    uint8_t bytes[CX_OID_BYTES_MAX];
    uint8_t size;
} cx_oid;

typedef struct cx_git cx_git;

typedef struct cx_git_call cx_git_call;

typedef struct cx_git_options {
    const char *program; /* absolute; NULL = found in /usr/local/bin, /usr/bin, /bin */
    const char *home;    /* HOME: a folder that is empty and stays so; NULL = one that cannot
                            exist */
    uint64_t timeout_ms; /* of one call; 0 = CX_GIT_TIMEOUT_MS */
    uint64_t output_limit_bytes;                      /* of one call; 0 = CX_RUN_OUTPUT_BYTES_MAX */
    const atomic_bool *cancel;                        /* NULL = none */
    void (*seen)(void *arg, const cx_git_call *call); /* each call before it starts, from any
                                                         thread; NULL */
    void *seen_arg;
} cx_git_options;

#define CX_GIT_OPTIONS_INIT ((cx_git_options){.program = NULL})

/* --- opening ---------------------------------------------------------------------------------- */

/* The git that is used: a regular executable of root (or of this user), not writable by others.
 * Static storage; NULL when there is none. */
const char *cx_git_program(void);
/* major * 10000 + minor * 100 + patch of `program` (NULL = that one); run.md needs 23800. */
CX_RESULT cx_git_version(const char *program, unsigned *out, cx_err *err);

/* `folder` lies in a work tree.  CX_E_NOT_FOUND outside of one, CX_E_UNSUPPORTED for a bare
 * repository or a format that we do not read. */
CX_RESULT cx_git_open(const char *folder, const cx_git_options *options, const cx_alloc *alloc,
                      cx_git **out, cx_err *err);
void cx_git_close(cx_git *git); /* NULL is fine */

/* A work tree whose places are known already: starts no process and believes nothing in it. */
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
/* The main checkout: what the runtime root is named after (R2); of a repository that has none the
 * work tree that was opened. */
const char *cx_git_main_worktree(const cx_git *git);
bool cx_git_is_linked(const cx_git *git);  /* a `git worktree`, not the main checkout */
bool cx_git_is_hostile(const cx_git *git); /* opened so */
size_t cx_git_oid_size(const cx_git *git); /* 20 or 32 */
cx_git_options cx_git_options_of(const cx_git *git);

/* --- running it ------------------------------------------------------------------------------- */

struct cx_git_call {
    const char *const *args; /* behind the fixed ones; CX_GIT_ARGS("rev-list", ..) */
    cx_bytes input;
    const char *index_file;      /* GIT_INDEX_FILE; NULL = the work tree's */
    const char *const *env;      /* more "NAME=value", ends with NULL; NULL = none */
    uint64_t output_limit_bytes; /* 0 = as opened */
    uint64_t timeout_ms;         /* 0 = as opened */
    uint64_t memory_bytes; /* of its own that git may use; 0 = CX_GIT_HOSTILE_MEMORY_BYTES on a
                              hostile work tree, else no limit */
    const char *work_tree; /* another folder in place of the work tree, whose files are the
                              caller's own; the repository is the common one.  NULL = none */
    const char *git_dir;   /* another git directory, a neutral one of the caller's own, which is the
                              call's work tree and the place it starts in, too.  NULL = none */
    bool bare;             /* without --work-tree: for work on objects alone */
    bool common;           /* the repository, not this work tree of it, which may be about to go */
    bool plain_paths; /* without GIT_LITERAL_PATHSPECS, which check-ignore does not take: its paths
                         begin with './' or '/' */
};

#define CX_GIT_ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Appends what it printed (`out` may be NULL).  CX_E_FORMAT with git's first line of complaint when
 * it exits other than 0, unless `out_exit` takes the code. */
CX_RESULT cx_git_call_run(const cx_git *git, const cx_git_call *call, cx_buf *out, int *out_exit,
                          cx_err *err);
/* A path where no index is and where none can be planted ahead, for a call that is to use none.
 * `out` has room for CX_PATH_BYTES_MAX + 1 bytes. */
CX_RESULT cx_git_no_index(const cx_git *git, char *out, cx_err *err);
/* The plain case. */
CX_RESULT cx_git_run(const cx_git *git, const char *const *args, cx_buf *out, cx_err *err);

/* --- objects ---------------------------------------------------------------------------------- */

bool cx_oid_eq(const cx_oid *a, const cx_oid *b);
/* Lower-case hex, terminated. */
void cx_oid_text(const cx_oid *oid, char out[CX_OID_TEXT_SIZE]);
/* 40 or 64 hex digits. */
bool cx_oid_parse(cx_str text, cx_oid *out);
/* The name that git gives to a file of these bytes, computed here: no filters, no attributes. */
cx_oid cx_git_blob_oid(const cx_git *git, cx_bytes contents);

/* The commit a reference names (tags are peeled); CX_E_NOT_FOUND when it names none, more than one,
 * or is no reference at all ("--cached", "", "a..b"). */
CX_RESULT cx_git_resolve(const cx_git *git, cx_str ref, cx_oid *out, cx_err *err);
CX_RESULT cx_git_is_ancestor(const cx_git *git, const cx_oid *ancestor, const cx_oid *commit,
                             bool *out, cx_err *err);
/* The tree of a commit. */
CX_RESULT cx_git_tree_of(const cx_git *git, const cx_oid *commit, cx_oid *out, cx_err *err);
/* The root commit of HEAD's history (the oldest by name when there are several): what names a
 * repository. */
CX_RESULT cx_git_root_commit(const cx_git *git, cx_oid *out, cx_err *err);
/* What HEAD names: a branch ("refs/heads/main"), empty when detached. */
CX_RESULT cx_git_head_ref(const cx_git *git, cx_arena *arena, cx_str *out, cx_err *err);
/* The value of a reference by its full name; CX_E_NOT_FOUND. */
CX_RESULT cx_git_ref(const cx_git *git, cx_str name, cx_oid *out, cx_err *err);
/* Sets it when its value is `old` (size 0: when it does not exist yet), in one step; CX_E_CONFLICT
 * when it is another.  `fresh` of size 0 deletes. */
CX_RESULT cx_git_ref_set(const cx_git *git, cx_str name, const cx_oid *fresh, const cx_oid *old,
                         cx_err *err);
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
/* Appends the contents of a path in a commit.  *out_mode 0: there is none; 0040000: a folder. */
CX_RESULT cx_git_show(const cx_git *git, const cx_oid *commit, cx_str path, size_t limit_bytes,
                      cx_buf *out, uint32_t *out_mode, cx_err *err);

/*
 * Appends what `git blame --porcelain` says of a line (decimal, from 1) of a file of the work tree
 * as it is now; `path` is from the top.  Line ends may differ from those of HEAD.  `*out_now` is
 * the commit that stands for what is not committed, size 0 when there is none of it.  No program of
 * the repository's configuration or attributes is started.  CX_E_NOT_FOUND "NoLine".
 */
CX_RESULT cx_git_blame(const cx_git *git, const char *path, const char *line, cx_buf *out,
                       cx_oid *out_now, cx_err *err);

#endif
