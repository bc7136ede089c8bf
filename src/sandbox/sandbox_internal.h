/*
 * sandbox_internal.h - shared by the files of the sandbox.
 *
 * The command line of a start is that of bubblewrap, followed by the launcher's, followed by the
 * program's.  Descriptors passed through to the launcher have these numbers there:
 */
#ifndef CX_SANDBOX_SANDBOX_INTERNAL_H
#define CX_SANDBOX_SANDBOX_INTERNAL_H

#include "sandbox/sandbox.h"

#define LAUNCHER_FD_REPORT 10  /* the launcher's report; the program does not inherit it */
#define LAUNCHER_FD_FILTER 11  /* of seccomp */
#define LAUNCHER_FD_PROGRAM 12 /* the opened program */
#define LAUNCHER_FD_CONTROL 13 /* a byte: end now; end of file: this process has ended */

#define LAUNCHER_FD_EGRESS 14 /* where the listening socket goes; closed before the program */
#define LAUNCHER_FD_CONFIG 15 /* a configuration of git; read and closed by bubblewrap */

#define SANDBOX_HOME "/home/agent"
#define SANDBOX_LAUNCHER_PATH "/run/cortex" /* the cortex program, inside */

/* The launcher's report, as bytes in a memory file; all zero: the launcher was never reached. */
typedef struct cx_sandbox_report {
    uint32_t magic; /* LAUNCHER_MAGIC */
    uint32_t layers;
    int32_t exec_errno; /* the program could not be executed */
    int32_t landlock_abi;
    char error[480]; /* why a layer could not be applied; terminated */
} cx_sandbox_report;

#define LAUNCHER_MAGIC UINT32_C(0x43585342)

typedef struct cx_sandbox_inner {
    cx_arena arena;
    cx_sandbox_options options; /* all text copied */
    const char *bwrap;          /* NULL = none */
    const char *program;        /* ours */
    const char *path_env;       /* PATH inside */
    cx_file filter[2]; /* without and with sockets of the network; CX_FILE_NONE = no seccomp */
    struct cx_sandbox_cgroups *cgroups; /* NULL = none */
} cx_sandbox_inner;

/* A list of arguments that ends with NULL; lack of memory is reported by cx_sandbox_arg_list_end.
 * */
typedef struct arg_list {
    cx_arena *arena;
    CX_VEC(const char *) list;
    bool failed;
} arg_list;

void cx_sandbox_arg_list_init(arg_list *w, cx_arena *arena);
void cx_sandbox_arg_list_done(arg_list *w);
void cx_sandbox_add_arg(arg_list *w, const char *arg); /* borrowed */
void cx_sandbox_add_argf(arg_list *w, const char *format, ...) CX_PRINTF(2, 3);
CX_RESULT cx_sandbox_arg_list_end(arg_list *w, const char *const **out, cx_err *err);

/* The limits of a start: the spec overrides the options, they override defaults; UINT64_MAX = none.
 * */
cx_sandbox_limits cx_sandbox_limits_of(const cx_sandbox *box, const cx_sandbox_spec *spec);

/* Where the program's home and temporary folder are. */
typedef struct cx_sandbox_places {
    const char *home;
    const char *tmp;
} cx_sandbox_places;

/* Whether a configuration of its own is shown in place of git's. */
bool cx_sandbox_has_config(const cx_sandbox_spec *spec, unsigned layers);

/* sandbox_args.c: the whole command line, and the environment ("NAME=value", sorted). */
CX_RESULT cx_sandbox_args(const cx_sandbox *box, const cx_sandbox_spec *spec, unsigned layers,
                          const cx_sandbox_places *places, cx_arena *arena, const char *const **out,
                          cx_err *err);
CX_RESULT cx_sandbox_env(const cx_sandbox *box, const cx_sandbox_spec *spec,
                         const cx_sandbox_places *places, cx_arena *arena, const char *const **out,
                         cx_err *err);

/* sandbox_filter.c: the deny list of §16 as a memory file; CX_E_UNSUPPORTED without libseccomp. */
CX_RESULT cx_sandbox_filter_make(bool network, cx_file *out, cx_err *err);

/* sandbox_cgroup.c */
typedef struct cx_sandbox_cgroups cx_sandbox_cgroups;
typedef struct cx_sandbox_group { /* of one start */
    char *paths[2];
    cx_file join[2];
    size_t count;
} cx_sandbox_group;

/* Finds where control groups with limits of memory and processes can be created; else *why says why
 * not. */
CX_RESULT cx_sandbox_cgroups_open(cx_arena *arena, cx_sandbox_cgroups **out, const char **why,
                                  cx_err *err);
CX_RESULT cx_sandbox_group_make(const cx_sandbox_cgroups *groups, const cx_sandbox_limits *limits,
                                cx_sandbox_group *out, cx_err *err);
void cx_sandbox_group_end(cx_sandbox_group *group);

#endif
