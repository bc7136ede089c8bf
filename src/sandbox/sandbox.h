/*
 * sandbox.h - where agents and tests run (run.md §16): they see a read-only system, one work tree,
 * an empty /tmp and home, no network and no other process, and may make few system calls.
 *
 * Layers: bubblewrap creates namespaces and mounts; then the launcher (sandbox_launcher.c), a mode
 * of this program, sets limits, restricts itself by Landlock and seccomp, and executes the program.
 * The launcher reports which layers it applied; a missing required layer is an error, never ignored
 * (R1).
 *
 *     CX_TRY(cx_sandbox_open(&(cx_sandbox_options){0}, &box, err));        once a run
 *     if (box->missing != 0) ...                             reject, or degrade with an approval
 *     cx_sandbox_spec spec = CX_SANDBOX_SPEC_INIT;
 *     spec.argv = argv, spec.worktree = path, spec.out = cx_spawn_to_file(log, 0);
 *     CX_TRY(cx_sandbox_run(box, &spec, &result, err));
 *
 * Paths are the same inside and outside.  Several threads may use one cx_sandbox at once.  When
 * this process ends, everything in its sandboxes is killed.  `unconfined` programs end with the
 * thread that started them, so that thread must live as long as they should.
 *
 *   I1  A layer counts as available when a program was started with it and the launcher confirmed
 *       it.
 *   I2  A start requests every layer the box has; a layer that the launcher did not confirm is an
 *       error.
 *   I3  What belongs to one start (descriptors, control group, folders) ends with it.
 *   I4  Nothing of a start outlives this process: the launcher, which every start goes through,
 *       holds one end of a pipe (`control`) whose other end only this process has, and ends when it
 *       closes, at any moment of the start.  Nothing before the launcher may be killed to achieve
 *       this.
 *   I5  When a start is over, everything in it is dead, however it ended: the launcher is asked to
 *       end it all and is waited for, so later readers find files that no process changes.
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
    unsigned layers;                            /* available on this machine, as tried at opening */
    unsigned missing;                           /* required but unavailable layers */
    int landlock_abi;                           /* 0 = none */
    const char *reason[CX_SANDBOX_LAYER_COUNT]; /* why a layer is unavailable, else NULL */
    const char *fix[CX_SANDBOX_LAYER_COUNT];    /* what to do about it, else NULL */
    struct cx_sandbox_inner *inner;
} cx_sandbox;

/* CX_E_UNSUPPORTED on a system that has no sandboxes at all: every system but Linux.  For commands
 * that would get stuck later. */
CX_RESULT cx_sandbox_supported(cx_err *err);

/* Detects layers and tries them once (about 20 ms). Unavailable layers are no error. */
CX_RESULT cx_sandbox_open(const cx_sandbox_options *options, cx_sandbox **out, cx_err *err);
void cx_sandbox_close(cx_sandbox *box); /* NULL is fine */

/* The path of the cortex program inside the sandbox: argv[0] of CX_AGENT_OPS (agent_ops.h). */
const char *cx_sandbox_program(const cx_sandbox *box, const cx_sandbox_spec *spec);

typedef enum cx_sandbox_network {
    CX_SANDBOX_OFF,
    CX_SANDBOX_ON,
    CX_SANDBOX_PROXY /* with `egress` */
} cx_sandbox_network;

/* For events and reports: {"mode":"full"|"degraded","network":"off"|"on"|"proxy","layers":[..],
 * "missing":[{"layer","reason"}..]}; "missing" only when degraded. */
CX_RESULT cx_sandbox_describe(const cx_sandbox *box, cx_sandbox_network network, cx_arena *arena,
                              cx_json *out, cx_err *err);

typedef struct cx_sandbox_bind {
    const char *path; /* absolute, without links */
    bool writable;
} cx_sandbox_bind;

/* What git needs to work and commit in a work tree whose common directory is read-only (§11). */
typedef struct cx_sandbox_git {
    const char *common_dir; /* shown read-only, without what other processes lock there */
    cx_str config;          /* in place of its file of that name; data NULL = that file is shown */
    const char *git_dir;    /* <common>/worktrees/<name> */
    const char *
        git_dir_copy; /* mounted writable over git_dir; NULL = git may read but not write (unless `unconfined`) */
    const char *
        object_dir; /* new objects go here: writable; no repository uses it until they are imported */
    const char *ref_dir;      /* <common>/refs/heads/cortex/<run>; NULL = refs cannot move */
    const char *ref_dir_copy; /* mounted writable over ref_dir */
} cx_sandbox_git;

struct cx_sandbox_spec {
    const char *const *argv; /* ends with NULL */
    const char *path;        /* the program, as visible inside; NULL = argv[0], absolute or, with a
                                slash, relative to cwd */
    cx_file executable; /* opened: the checked file is the one executed (C16); else CX_FILE_NONE */
    const char *worktree; /* NULL = none */
    bool read_only;       /* the worktree */
    const char *cwd;      /* NULL = the worktree, or / */
    const cx_sandbox_bind *binds;
    size_t bind_count;
    const cx_sandbox_git *git; /* NULL = none */
    bool network;
    /* Without `network`: a proxy that serves the sandbox.  The launcher listens on 127.0.0.1 of the
     * sandbox's own network, passes that socket over this channel (os/stream.h), and programs find
     * the proxy in their environment.  NULL = none. */
    const cx_socket *egress;
    const char *run_id, *task_id;    /* CORTEX_RUN_ID, CORTEX_TASK_ID; NULL = not set */
    const char *const *env;          /* more "NAME=value"; ends with NULL; NULL = none */
    const cx_sandbox_limits *limits; /* NULL = those of the options */
    unsigned may_miss;               /* required layers that an approval allows to be missing */
    bool unconfined;                 /* danger-full-access by approval (§4): no layer at all */
    cx_spawn_in in;
    cx_bytes input;
    cx_file input_file; /* of CX_SPAWN_IN_FILE */
    cx_spawn_output out, errout;
    uint64_t timeout_ms;
    const atomic_bool *cancel;
};

#define CX_SANDBOX_EGRESS_PORT 3128 /* inside */

#define CX_SANDBOX_SPEC_INIT ((cx_sandbox_spec){.executable = CX_FILE_NONE})

typedef struct cx_sandbox_result {
    int exit_code;   /* as a shell reports it: 124 timeout, 126/127 not executable, 128+n signal */
    unsigned layers; /* that were applied */
    cx_spawn_result process;
} cx_sandbox_result;

/* CX_E_DENIED when a required layer is missing without permission (may_miss), or the network layer
 * with `egress`; CX_E_IO when the
 * sandbox could not be set up. What the program did, including a failed execution, is a result. */
CX_RESULT cx_sandbox_run(const cx_sandbox *box, const cx_sandbox_spec *spec,
                         cx_sandbox_result *result, cx_err *err);

/* A program for a two-way conversation (in = CX_SPAWN_IN_PIPE, out = CX_SPAWN_OUT_LINES). */
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
 * The first argument that selects the launcher, an internal mode of the program; main then only
 * calls cx_sandbox_launcher_main. It reports on standard error and through a descriptor.
 */
#define CX_SANDBOX_LAUNCHER "sandbox-stage"
int cx_sandbox_launcher_main(int argc, char **argv);

#endif
