/*
 * sandbox.h - where agents and tests run (§16): they see a read-only system, one worktree, an empty
 * /tmp and home, no network, no other process; and they may do little to the kernel.
 *
 * Layers: namespaces and mounts by bubblewrap; then a stage of ours inside, which sets limits,
 * restricts itself by Landlock and seccomp, and becomes the program.  The stage reports what it has
 * really applied; a required layer that is not there is an error, never a silent gap (R1).
 *
 *     CX_TRY(cx_sandbox_open(&(cx_sandbox_options){0}, &box, err));        once a run
 *     if (box->missing != 0) ...                             reject, or degrade with an approval
 *     cx_sandbox_spec spec = CX_SANDBOX_SPEC_INIT;
 *     spec.argv = argv, spec.worktree = path, spec.out = cx_spawn_to_file(log, 0);
 *     CX_TRY(cx_sandbox_run(box, &spec, &result, err));
 *
 * Paths are the same inside and outside.  A cx_sandbox may be used by several threads at once.
 * When this process ends, however, everything in its sandboxes is killed.  `unconfined` programs
 * end with the thread that started them, which must live as long as they should.
 */
#ifndef CX_SANDBOX_SANDBOX_H
#define CX_SANDBOX_SANDBOX_H

#include "os/api.h"
#include "rules/api.h"

typedef enum cx_sandbox_layer {
    CX_SANDBOX_USER = 1 << 0, /* namespaces */
    CX_SANDBOX_PID = 1 << 1,
    CX_SANDBOX_IPC = 1 << 2,
    CX_SANDBOX_UTS = 1 << 3,
    CX_SANDBOX_NET = 1 << 4,
    CX_SANDBOX_FILES = 1 << 5, /* mounts: what is not listed is not there */
    CX_SANDBOX_SECCOMP = 1 << 6,
    CX_SANDBOX_RLIMITS = 1 << 7,
    CX_SANDBOX_LANDLOCK = 1 << 8, /* where the kernel has it */
    CX_SANDBOX_CGROUP = 1 << 9    /* where one is delegated to us */
} cx_sandbox_layer;

#define CX_SANDBOX_LAYER_COUNT 10
#define CX_SANDBOX_REQUIRED ((1u << 8) - 1)

/* "user", "pid", .., "cgroup". */
const char *cx_sandbox_layer_name(cx_sandbox_layer layer);

/* 0 = the default; UINT64_MAX = none. */
typedef struct cx_sandbox_limits {
    uint64_t cpu_seconds;  /* of one process; default: the timeout */
    uint64_t processes;    /* 512 */
    uint64_t file_bytes;   /* of one file; 1 GiB */
    uint64_t open_files;   /* 1024 */
    uint64_t memory_bytes; /* private memory of one process, and of all with a cgroup; 8 GiB.  A
                              program built with sanitizers needs UINT64_MAX (config: null) */
    uint64_t tmp_bytes;    /* of /tmp and of the home; 1 GiB */
} cx_sandbox_limits;

typedef struct cx_sandbox_options {
    const char *program;        /* the cortex program, for the stage; NULL = this process's */
    const char *bwrap;          /* NULL = found in /usr/bin:/usr/local/bin */
    const char *const *trusted; /* PATH inside; NULL = /usr/local/bin /usr/bin /bin */
    size_t trusted_count;
    const char *const *read; /* more of the system that is shown, e.g. "/opt/tool" */
    size_t read_count;
    const char *const *hide; /* never shown: the ledger's home, the runtime root (R2), .. */
    size_t hide_count;
    const char *const *env_names; /* of this process's environment that are passed on (R4) */
    size_t env_name_count;
    cx_sandbox_limits limits;
} cx_sandbox_options;

typedef struct cx_sandbox_spec cx_sandbox_spec;

typedef struct cx_sandbox {
    unsigned layers;                            /* that this machine can give; tried, not guessed */
    unsigned missing;                           /* required ones it cannot */
    int landlock_abi;                           /* 0 = none */
    const char *reason[CX_SANDBOX_LAYER_COUNT]; /* why a layer is not there, else NULL */
    const char *fix[CX_SANDBOX_LAYER_COUNT];    /* what to do about it, else NULL */
    struct cx_sandbox_inner *inner;
} cx_sandbox;

/* Looks, and tries once (about 20 ms).  Layers that cannot be had are no error. */
CX_RESULT cx_sandbox_open(const cx_sandbox_options *options, cx_sandbox **out, cx_err *err);
void cx_sandbox_close(cx_sandbox *box); /* NULL is fine */

/* Our own program as it is called inside: for argv[0] of CX_AGENT_OPS (agent_ops.h). */
const char *cx_sandbox_program(const cx_sandbox *box, const cx_sandbox_spec *spec);

/* For events and reports: {"mode":"full"|"degraded","network":"off"|"on","layers":[..],
 * "missing":[{"layer","reason"}..]}; "missing" only when degraded. */
CX_RESULT cx_sandbox_describe(const cx_sandbox *box, bool network, cx_arena *arena, cx_json *out,
                              cx_err *err);

typedef struct cx_sandbox_bind {
    const char *path; /* absolute, without links */
    bool writable;
} cx_sandbox_bind;

/* What lets git work, and commit, in a worktree whose common folder is read-only (§11). */
typedef struct cx_sandbox_git {
    const char *common_dir;   /* shown read-only */
    const char *git_dir;      /* <common>/worktrees/<name> */
    const char *git_dir_copy; /* shown, writable, in place of git_dir; NULL = git may look, and
                                 change nothing (unless `unconfined`) */
    const char *object_dir; /* new objects go here: writable, an alternate of nobody until taken */
    const char *ref_dir;    /* <common>/refs/heads/cortex/<run>; NULL = refs cannot move */
    const char *ref_dir_copy; /* shown, writable, in place of it */
} cx_sandbox_git;

struct cx_sandbox_spec {
    const char *const *argv; /* ends with NULL */
    const char *path;        /* the program, as visible inside; NULL = argv[0], absolute or, with a
                                slash, relative to cwd */
    cx_file executable;      /* opened: what was checked is what is run (C16); else CX_FILE_NONE */
    const char *worktree;    /* NULL = none */
    bool read_only;          /* the worktree */
    const char *cwd;         /* NULL = the worktree, or / */
    const cx_sandbox_bind *binds;
    size_t bind_count;
    const cx_sandbox_git *git; /* NULL = none */
    bool network;
    const char *run_id, *task_id;    /* CORTEX_RUN_ID, CORTEX_TASK_ID; NULL = not set */
    const char *const *env;          /* more "NAME=value"; ends with NULL; NULL = none */
    const cx_sandbox_limits *limits; /* NULL = those of the options */
    unsigned may_miss;               /* required layers that an approval lets be missing */
    bool unconfined;                 /* danger-full-access by approval (§4): no layer at all */
    cx_spawn_in in;
    cx_bytes input;
    cx_spawn_output out, errout;
    uint64_t timeout_ms;
    const atomic_bool *cancel;
};

#define CX_SANDBOX_SPEC_INIT ((cx_sandbox_spec){.executable = CX_FILE_NONE})

typedef struct cx_sandbox_result {
    int exit_code;   /* as a shell says it: 124 timeout, 126/127 could not be executed, 128+n signal
                      */
    unsigned layers; /* that were in force */
    cx_spawn_result process;
} cx_sandbox_result;

/* CX_E_DENIED when a required layer is missing and may not be; CX_E_IO when the sandbox could not
 * be set up.  What the program did, also that it could not be executed, is a result. */
CX_RESULT cx_sandbox_run(const cx_sandbox *box, const cx_sandbox_spec *spec,
                         cx_sandbox_result *result, cx_err *err);

/* One to talk with (in = CX_SPAWN_IN_PIPE, out = CX_SPAWN_OUT_LINES). */
typedef struct cx_sandbox_child cx_sandbox_child;

CX_RESULT cx_sandbox_start(const cx_sandbox *box, const cx_sandbox_spec *spec,
                           cx_sandbox_child **out, cx_err *err);
/* For cx_spawn_write and cx_spawn_read_line; never cx_spawn_close. */
cx_spawn_child *cx_sandbox_process(cx_sandbox_child *child);
/* As cx_spawn_close.  NULL is fine; `result` may be NULL. */
CX_RESULT cx_sandbox_end(cx_sandbox_child *child, uint64_t wait_ms, cx_sandbox_result *result,
                         cx_err *err);

/* The names of the variables a program of `spec` gets, sorted: evidence, without values (R7). */
CX_RESULT cx_sandbox_env_names(const cx_sandbox *box, const cx_sandbox_spec *spec, cx_arena *arena,
                               cx_json *out, cx_err *err);

/*
 * The first word of a command line that is a stage of ours, not for people; cx_sandbox_stage then
 * is the whole of main.  What it says goes to standard error and through a descriptor.
 */
#define CX_SANDBOX_STAGE "sandbox-stage"
int cx_sandbox_stage(int argc, char **argv);

#endif
