/*
 * bench_run_parts.h - what one golden run starts (bench_run.c says how it was found out).
 */
#ifndef CX_BENCH_RUN_PARTS_H
#define CX_BENCH_RUN_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#define BARE_ARGS_MAX 16
#define BARE_BOX_MAX 256

typedef enum bare_what {
    BARE_GIT,
    BARE_OPEN_MAIN, /* the rev-parse of cx_git_open */
    BARE_OPEN_WORK,
    BARE_OPEN_TRIAL,
    BARE_AGENT, /* bubblewrap and the edit */
    BARE_TEST,  /* bubblewrap and the test command */
    BARE_END
} bare_what;

typedef enum bare_where { BARE_MAIN, BARE_LINKED } bare_where;

typedef enum bare_input {
    BARE_IN_NOTHING,
    BARE_IN_PATH,
    BARE_IN_ENTRY,  /* of an index */
    BARE_IN_COMMIT, /* its id */
    BARE_IN_TEXT    /* a message */
} bare_input;

typedef struct bare_call {
    bare_what what;
    bare_where where;
    bool tree;  /* with --work-tree */
    bool index; /* with an index file of its own */
    bare_input input;
    const char *args[BARE_ARGS_MAX]; /* @base @tree @fresh: ids; @work @trial: folders */
} bare_call;

#define BARE_PLAIN(where, tree, ...)                   \
    {                                                  \
        BARE_GIT, where, tree, false, BARE_IN_NOTHING, \
        {                                              \
            __VA_ARGS__                                \
        }                                              \
    }
#define MAIN_WITH(input, tree, ...)              \
    {                                            \
        BARE_GIT, BARE_MAIN, tree, false, input, \
        {                                        \
            __VA_ARGS__                          \
        }                                        \
    }
#define LINKED_WITH(input, tree, ...)              \
    {                                              \
        BARE_GIT, BARE_LINKED, tree, false, input, \
        {                                          \
            __VA_ARGS__                            \
        }                                          \
    }
#define MAIN(...) BARE_PLAIN(BARE_MAIN, false, __VA_ARGS__)
#define MAIN_TREE(...) BARE_PLAIN(BARE_MAIN, true, __VA_ARGS__)
#define LINKED(...) BARE_PLAIN(BARE_LINKED, false, __VA_ARGS__)
#define LINKED_TREE(...) BARE_PLAIN(BARE_LINKED, true, __VA_ARGS__)

static const bare_call bare_calls[] = {
    {.what = BARE_OPEN_MAIN},
    MAIN("rev-list", "--max-parents=0", "HEAD", "--"),
    MAIN("version"),
    {.what = BARE_OPEN_MAIN},
    MAIN_TREE("check-ignore", "-q", "--", "./.runtime-cache/cortexpilot"),
    MAIN("rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}"),
    MAIN("ls-tree", "-r", "-z", "--full-tree", "@base"),
    MAIN("show-ref", "--verify", "--hash", "--", "refs/heads/cortex/bare/golden_success"),
    MAIN("worktree", "prune"),
    MAIN("cat-file", "-e", "@base^{commit}"),
    MAIN("worktree", "add", "--quiet", "--no-track", "-b", "cortex/bare/golden_success", "@work",
         "@base"),
    {.what = BARE_OPEN_WORK},
    LINKED("for-each-ref", "--format=%(objectname) %(symref) %(refname)"),
    LINKED_TREE("ls-files", "-z", "-s", "-v", "-f", "--full-name"),
    {.what = BARE_AGENT},
    LINKED("rev-parse", "--verify", "--quiet", "--end-of-options", "@base^{commit}"),
    LINKED("ls-tree", "-r", "-z", "--full-tree", "@base"),
    LINKED("for-each-ref", "--format=%(objectname) %(symref) %(refname)"),
    LINKED_TREE("ls-files", "-z", "-s", "-v", "-f", "--full-name"),
    LINKED_WITH(BARE_IN_PATH, true, "check-ignore", "--no-index", "--stdin", "-z"),
    LINKED_WITH(BARE_IN_PATH, true, "hash-object", "-w", "--no-filters", "--stdin-paths"),
    {BARE_GIT, BARE_LINKED, true, true, BARE_IN_NOTHING, {"read-tree", "@base"}},
    {BARE_GIT, BARE_LINKED, true, true, BARE_IN_ENTRY, {"update-index", "-z", "--index-info"}},
    {BARE_GIT, BARE_LINKED, true, true, BARE_IN_NOTHING, {"write-tree"}},
    LINKED("diff-tree", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv",
           "--no-color", "-M", "@base", "@tree"),
    LINKED("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "@base", "@tree"),
    LINKED_WITH(BARE_IN_TEXT, false, "commit-tree", "-F", "-", "-p", "@base", "@tree"),
    LINKED("show-ref", "--verify", "--hash", "--", "refs/heads/cortex/bare/golden_success"),
    LINKED("update-ref", "--no-deref", "refs/heads/cortex/bare/golden_success", "@fresh", "@base"),
    LINKED("for-each-ref", "--format=%(objectname) %(symref) %(refname)"),
    LINKED_TREE("ls-files", "-z", "-s", "-v", "-f", "--full-name"),
    LINKED("for-each-ref", "--format=%(objectname) %(symref) %(refname)"),
    LINKED_TREE("ls-files", "-z", "-s", "-v", "-f", "--full-name"),
    LINKED("rev-parse", "--verify", "--quiet", "--end-of-options", "@base^{commit}"),
    LINKED("ls-tree", "-r", "-z", "--full-tree", "@base"),
    LINKED("for-each-ref", "--format=%(objectname) %(symref) %(refname)"),
    LINKED_TREE("ls-files", "-z", "-s", "-v", "-f", "--full-name"),
    LINKED("merge-base", "--is-ancestor", "@base", "@fresh"),
    LINKED("rev-list", "--max-count=1001", "--end-of-options", "@base..@fresh", "--"),
    LINKED_WITH(BARE_IN_COMMIT, false, "diff-tree", "--stdin", "-r", "-m", "--root", "-z", "--raw",
                "--no-abbrev", "--no-renames"),
    LINKED("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "@base", "@fresh"),
    LINKED_WITH(BARE_IN_PATH, true, "check-ignore", "--no-index", "--stdin", "-z"),
    MAIN("worktree", "prune"),
    MAIN("cat-file", "-e", "@fresh^{commit}"),
    MAIN("worktree", "add", "--quiet", "--detach", "@trial", "@fresh"),
    {.what = BARE_OPEN_TRIAL},
    MAIN("ls-tree", "-r", "-z", "--full-tree", "@base"),
    MAIN("ls-tree", "-z", "--full-tree", "@base", "--", "scripts/test.sh"),
    MAIN("cat-file", "blob", "a2051eb83d457a125adf6135809b153bdfadb7be"),
    MAIN("ls-tree", "-z", "--full-tree", "@base", "--", "scripts/test.sh"),
    MAIN("cat-file", "blob", "a2051eb83d457a125adf6135809b153bdfadb7be"),
    {.what = BARE_TEST},
    MAIN("worktree", "remove", "--force", "--force", "@trial"),
    MAIN("worktree", "prune"),
    LINKED("rev-parse", "--verify", "--quiet", "--end-of-options", "@base^{commit}"),
    LINKED("for-each-ref", "--format=%(objectname) %(symref) %(refname)"),
    LINKED_TREE("ls-files", "-z", "-s", "-v", "-f", "--full-name"),
    LINKED("ls-tree", "-r", "-z", "--full-tree", "@base"),
    LINKED("merge-base", "--is-ancestor", "@base", "@fresh"),
    LINKED("rev-list", "--max-count=1001", "--end-of-options", "@base..@fresh", "--"),
    LINKED_WITH(BARE_IN_COMMIT, false, "diff-tree", "--stdin", "-r", "-m", "--root", "-z", "--raw",
                "--no-abbrev", "--no-renames"),
    LINKED("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "@base", "@fresh"),
    LINKED_WITH(BARE_IN_PATH, true, "check-ignore", "--no-index", "--stdin", "-z"),
    MAIN("show-ref", "--verify", "--hash", "--", "refs/heads/main"),
    MAIN("merge-base", "--is-ancestor", "@base", "@base"),
    MAIN("rev-parse", "--verify", "--quiet", "--end-of-options", "@fresh^{tree}"),
    MAIN("worktree", "list", "--porcelain", "-z"),
    {.what = BARE_OPEN_MAIN},
    MAIN_TREE("status", "--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=none"),
    MAIN_TREE("read-tree", "-n", "-m", "-u", "@base", "@fresh"),
    MAIN("update-ref", "--no-deref", "refs/heads/main", "@fresh", "@base"),
    {.what = BARE_OPEN_MAIN},
    MAIN_TREE("read-tree", "-m", "-u", "@base", "@fresh"),
    MAIN("worktree", "remove", "--force", "--force", "@work"),
    MAIN("worktree", "prune"),
    MAIN("show-ref", "--verify", "--hash", "--", "refs/heads/cortex/bare/golden_success"),
    MAIN("update-ref", "--no-deref", "-d", "refs/heads/cortex/bare/golden_success", "@fresh"),
    MAIN("version"),
    MAIN_WITH(BARE_IN_TEXT, false, "notes", "--ref=refs/notes/cortex", "add", "-f", "-F", "-",
              "@fresh"),
    {.what = BARE_END}};

/* bubblewrap before, what it shows of /etc read-only, and after; the folders of the repository and
 * the command follow. */
/* clang-format off */
static const char *const bare_box_first[] = {
    "/usr/bin/bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
    "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--unshare-net", "--cap-drop",
    "ALL", "--hostname", "sandbox", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
    "--symlink", "usr/sbin", "/sbin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib32",
    "/lib32", "--symlink", "usr/lib64", "/lib64", NULL};
static const char *const bare_box_shown[] = {
    "/etc/alternatives", "/etc/bash.bashrc", "/etc/ca-certificates",
    "/etc/ca-certificates.conf", "/etc/debian_version", "/etc/fonts", "/etc/group",
    "/etc/host.conf", "/etc/inputrc", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic", "/etc/mime.types",
    "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/perl", "/etc/pki",
    "/etc/protocols", "/etc/python3", "/etc/rpc", "/etc/services", "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf", "/etc/terminfo", "/etc/timezone", "/etc/xattr.conf", NULL};
static const char *const bare_box_last[] = {
    "--proc", "/proc", "--ro-bind-try", "/proc/sys", "/proc/sys", "--ro-bind-try",
    "/proc/sysrq-trigger", "/proc/sysrq-trigger", "--ro-bind-try", "/proc/fs", "/proc/fs",
    "--dev", "/dev", "--size", "1073741824", "--tmpfs", "/tmp", "--size", "1073741824",
    "--tmpfs", "/home", "--dir", "/home/agent", NULL};
/* clang-format on */

#endif
