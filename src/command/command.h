/*
 * command.h - the command gate (run.md §8, rows C01 .. C16), and which tests are trivial (§12).
 *
 * The caller provides everything that the gate decides by: the rules of the policy, the baseline of
 * the repository, the trusted folders.  A row whose input is NULL or empty cannot be evaluated and
 * therefore rejects.
 *
 *   I1  Rows are tried in the order of the table; the first that matches decides, and its rule is
 *       in the verdict.
 *   I2  An allowed command has passed every row: its rule is "C16" and it has no reason.
 *   I3  What cannot be checked (an error) is never allowed (R1).
 */
#ifndef CX_COMMAND_COMMAND_H
#define CX_COMMAND_COMMAND_H

#include "base/api.h"
#include "rules/api.h"

/* What the policy says; everything borrowed. */
typedef struct cx_run_command_rules {
    bool pack_known; /* C06: the pack's name was one of the exact names, or none was given */
    const cx_run_argv
        *allow; /* C13: argv prefixes; a token that ends in '/' matches any path below it */
    size_t allow_count;
    const cx_str *forbidden; /* C07: actions of the policy, pack and contract, as text */
    size_t forbidden_count;
} cx_run_command_rules;

/* A script in the worktree, compared with the baseline (C14). */
typedef enum cx_run_script {
    CX_RUN_SCRIPT_SAME,        /* a regular file with the bytes of the baseline's blob */
    CX_RUN_SCRIPT_DIFFERS,     /* other bytes, or the baseline has none of that name */
    CX_RUN_SCRIPT_MISSING,     /* no such file in the worktree */
    CX_RUN_SCRIPT_SYMLINK,     /* reached through a symbolic link, here or in the baseline */
    CX_RUN_SCRIPT_NOT_REGULAR, /* a folder, a pipe, .. */
    CX_RUN_SCRIPT_OUTSIDE      /* not below the worktree */
} cx_run_script;

/* Compares a script with the baseline. `path` is as written in the command; `plain` is normalised:
 * relative, without '.', '..', '//'. */
typedef cx_status (*cx_run_compare_script)(void *arg, cx_str path, cx_str plain, cx_run_script *out,
                                           cx_err *err);
/* Whether an approval (§13) has `scope`: "script:scripts/test.sh". cx_run_approvals_approve
 * implements it. */
typedef bool cx_run_scope_approved(void *arg, cx_str scope);

/* Where programs may come from (C16). */
typedef struct cx_run_trust {
    const cx_str *folders; /* absolute; NULL = /usr/local/bin:/usr/bin:/bin */
    size_t folder_count;
    uint32_t owner_uid; /* besides root */
    const cx_str *
        forbidden; /* absolute folders that must not contain the program: worktree, repository, runtime root; empty ones are ignored */
    size_t forbidden_count;
    bool
        unhashed; /* the caller wants no digest: a program on the PATH is not read, and zeros given */
} cx_run_trust;

typedef struct cx_run_command_options {
    const cx_run_command_rules *rules;
    cx_str network_policy; /* "deny", "on-request", "allow"; anything else is C05 */
    bool network_approved; /* a signed approval for on-request exists */
    /* Rows C01 .. C13 and C15 only, for lint K10: needs no worktree and no trusted folders. */
    bool lint;
    const char *worktree; /* absolute: where repo scripts are executed from */
    cx_run_compare_script script;
    void *script_arg;
    cx_run_scope_approved *granted; /* NULL = no approvals */
    void *granted_arg;
    const cx_run_trust *trust;
} cx_run_command_options;

typedef struct cx_run_executable {
    cx_str
        path; /* absolute; the file to execute: the resolved path, or the script in the worktree */
    cx_str name;        /* as recorded: a script's path below the worktree, else `path` */
    cx_digest sha256;   /* of its bytes */
    bool in_repository; /* an allowlisted script of the repository */
} cx_run_executable;

typedef struct cx_run_command_verdict {
    bool allow;
    const char *rule; /* the row that decided, "C16" when allowed; static storage */
    cx_str reason;    /* one sentence; empty when allowed */
    bool lexed;
    cx_run_argv argv;             /* when lexed */
    cx_run_executable executable; /* when allowed and not a lint */
    size_t ignored_actions;       /* number of blank forbidden actions, for a warning */
} cx_run_command_verdict;

/* A long option that is refused for a program, without its "--" (C12). */
typedef struct cx_run_refused_option {
    const char *program;
    const char *sub; /* the sub-command of the option; NULL = any */
    const char *name;
} cx_run_refused_option;

/* The table of them; static storage. */
const cx_run_refused_option *cx_run_refused_options(size_t *out_count);
/* Whether `token` is such an option of `program`, or a prefix of one, with or without "=VALUE". */
bool cx_run_option_refused(cx_str program, cx_str sub, cx_str token);

/* Checks the text of a command. A rejection is a verdict; errors are lack of memory and unreadable
 * files (callers treat them as rejections too, R1). */
CX_RESULT cx_run_command_check(const cx_run_command_options *options, cx_str text, cx_arena *arena,
                               cx_run_command_verdict *out, cx_err *err);
/* The same for an argv that needs no lexing (a runner's): rows C03 .. C16. */
CX_RESULT cx_run_argv_check(const cx_run_command_options *options, const cx_run_argv *argv,
                            cx_arena *arena, cx_run_command_verdict *out, cx_err *err);

/*
 * C16 alone: finds `name` in the trusted folders. *out_why is NULL when found; else it is the
 * reason, and `out` is unchanged.
 */
CX_RESULT cx_run_trusted_find(const cx_run_trust *trust, cx_str name, cx_arena *arena,
                              cx_run_executable *out, const char **out_why, cx_err *err);

/* The same for a script of the repository, `plain` below `worktree`, whose bytes row C14 has
 * compared with the baseline: it must be executable and not reached through a symbolic link. */
CX_RESULT cx_run_trusted_script(const char *worktree, cx_str plain, cx_arena *arena,
                                cx_run_executable *out, const char **out_why, cx_err *err);

/* {passed, rule, argv | cmd, reason?, executable?{path, sha256}}: payload of TOOL_GATE_RESULT. */
CX_RESULT cx_run_command_verdict_json(const cx_run_command_verdict *verdict, cx_str text,
                                      cx_arena *arena, cx_json *out, cx_err *err);

/* Whether strict_acceptance calls a test's command trivial (§12). */
CX_RESULT cx_run_command_trivial(cx_str text, cx_arena *arena, bool *out, cx_err *err);

/* C07 alone: true when `action` matches the command. */
CX_RESULT cx_run_action_matches(cx_str action, const cx_run_argv *argv, cx_arena *arena, bool *out,
                                cx_err *err);

#endif
