/*
 * sandbox.c - opens a sandbox, and starts programs in it (run.md §16).
 *
 * Invariants I1 to I5: sandbox.h.
 */
#include "sandbox/sandbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "os/api.h"
#include "sandbox/sandbox_internal.h"

#define BY_BWRAP                                                                     \
    ((unsigned)(CX_SANDBOX_USER | CX_SANDBOX_PID | CX_SANDBOX_IPC | CX_SANDBOX_UTS | \
                CX_SANDBOX_NET | CX_SANDBOX_FILES))
#define TRY_TIMEOUT_MS 60000

/* --- limits ----------------------------------------------------------------------------------- */

static uint64_t choose_limit(uint64_t a, uint64_t b, uint64_t otherwise)
{
    return a != 0 ? a : b != 0 ? b : otherwise;
}

cx_sandbox_limits cx_sandbox_limits_of(const cx_sandbox *box, const cx_sandbox_spec *spec)
{
    static const cx_sandbox_limits none = {0};
    const cx_sandbox_limits *a = spec->limits != NULL ? spec->limits : &none,
                            *b = &box->inner->options.limits;
    uint64_t timeout_s = spec->timeout_ms == 0 ? UINT64_MAX : spec->timeout_ms / 1000 + 1;
    return (cx_sandbox_limits){
        .cpu_seconds = choose_limit(a->cpu_seconds, b->cpu_seconds, timeout_s),
        .processes = choose_limit(a->processes, b->processes, 512),
        .file_bytes = choose_limit(a->file_bytes, b->file_bytes, UINT64_C(1) << 30),
        .open_files = choose_limit(a->open_files, b->open_files, 1024),
        .memory_bytes = choose_limit(a->memory_bytes, b->memory_bytes, UINT64_C(8) << 30),
        .tmp_bytes = choose_limit(a->tmp_bytes, b->tmp_bytes, UINT64_C(1) << 30),
    };
}

/* --- one start -------------------------------------------------------------------------------- */

typedef struct launch {
    cx_arena arena;
    const cx_sandbox *box;
    unsigned layers; /* requested */
    bool unconfined;
    cx_file report, control[2], config;
    cx_sandbox_group group;
    const char *scratch; /* without mounts: the folder that contains home and tmp; NULL = none */
    cx_spawn_inherit keep[6];
} launch;

static void close_file(cx_file *file)
{
    if (*file != CX_FILE_NONE)
        (void)cx_io_system()->close(cx_io_system(), *file);
    *file = CX_FILE_NONE;
}

static void release_launch(launch *l)
{
    close_file(&l->report);
    close_file(&l->config);
    close_file(&l->control[0]);
    close_file(&l->control[1]);
    cx_sandbox_group_end(&l->group);
    if (l->scratch != NULL)
        (void)cx_path_remove_tree(l->scratch, NULL).code;
    cx_arena_done(&l->arena);
}

/* Without mounts the home and the temporary folder are real folders, created for this start. */
static cx_status make_home_and_tmp(launch *l, cx_sandbox_places *out, cx_err *err)
{
    if ((l->layers & CX_SANDBOX_FILES) != 0) {
        *out = (cx_sandbox_places){SANDBOX_HOME, "/tmp"};
        return CX_SUCCESS;
    }
    const cx_io *io = cx_io_system();
    cx_str scratch = cx_arena_printf(&l->arena, "/tmp/cortex-box-%" PRIu64 "-%016" PRIx64,
                                     io->process_id(io), cx_io_seed(io));
    if (scratch.data == NULL)
        return cx_fail_nomem(err);
    int code = io->mkdir(io, scratch.data);
    if (code != 0)
        return cx_fail_os(err, -code, "cannot make %s", scratch.data);
    l->scratch = scratch.data;
    cx_str home = cx_arena_printf(&l->arena, "%s/home", scratch.data);
    cx_str tmp = cx_arena_printf(&l->arena, "%s/tmp", scratch.data);
    if (home.data == NULL || tmp.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_path_make_folders(home.data, err));
    CX_TRY(cx_path_make_folders(tmp.data, err));
    *out = (cx_sandbox_places){home.data, tmp.data};
    return CX_SUCCESS;
}

static cx_status check_layers(const cx_sandbox *box, const cx_sandbox_spec *spec, cx_err *err)
{
    CX_ASSERT(spec->egress == NULL || !spec->network);
    if (spec->egress != NULL && (box->layers & CX_SANDBOX_NET) == 0)
        return cx_fail(
            err, CX_E_DENIED,
            "the sandbox has no layer 'net', without which nothing keeps programs to the "
            "proxy: %s",
            box->reason[4] == NULL ? "it is not available" : box->reason[4]);
    unsigned missing = box->missing & ~spec->may_miss;
    for (size_t i = 0; i < CX_SANDBOX_LAYER_COUNT; i++)
        if ((missing & 1u << i) != 0)
            return cx_fail(err, CX_E_DENIED, "the sandbox has no layer '%s': %s",
                           cx_sandbox_layer_name((cx_sandbox_layer)(1u << i)),
                           box->reason[i] == NULL ? "it is not available" : box->reason[i]);
    return CX_SUCCESS;
}

/* Prepares everything except the command line. */
static cx_status prepare_streams(launch *l, const cx_sandbox_spec *spec, cx_spawn_options *how,
                                 cx_err *err)
{
    *how = CX_SPAWN_OPTIONS_INIT;
    how->in = spec->in;
    how->input = spec->input;
    how->input_file = spec->input_file;
    how->out = spec->out;
    how->errout = spec->errout;
    how->timeout_ms = spec->timeout_ms;
    how->cancel = spec->cancel;
    how->die_with_starter = spec->unconfined; /* otherwise I4 */
    cx_sandbox_places places;
    CX_TRY(make_home_and_tmp(l, &places, err));
    return cx_sandbox_env(l->box, spec, &places, &l->arena, &how->envp, err);
}

/* A file in memory that bubblewrap shows in place of git's configuration. */
static cx_status make_config(launch *l, const cx_sandbox_spec *spec, cx_err *err)
{
    const cx_io *io = cx_io_system();
    if (!cx_sandbox_has_config(spec, l->layers))
        return CX_SUCCESS;
    cx_str text = spec->git->config;
    CX_TRY(cx_confine_memory_file(&l->config, err));
    int64_t size =
        io->pwrite(io, l->config, text.data, text.size, 0); /* it is read from its start */
    return size == (int64_t)text.size
               ? CX_SUCCESS
               : cx_fail(err, CX_E_IO, "cannot write git's configuration for the sandbox");
}

static cx_status prepare_confined(launch *l, const cx_sandbox_spec *spec, cx_spawn_options *how,
                                  cx_err *err)
{
    const cx_sandbox_inner *inner = l->box->inner;
    cx_sandbox_places places = {SANDBOX_HOME, "/tmp"};
    if (l->scratch != NULL)
        places = (cx_sandbox_places){cx_arena_printf(&l->arena, "%s/home", l->scratch).data,
                                     cx_arena_printf(&l->arena, "%s/tmp", l->scratch).data};
    CX_TRY(cx_sandbox_args(l->box, spec, l->layers, &places, &l->arena, &how->argv, err));
    CX_TRY(cx_confine_memory_file(&l->report, err));
    CX_TRY(cx_confine_pipe(l->control, err));
    CX_TRY(make_config(l, spec, err));
    if ((l->layers & CX_SANDBOX_CGROUP) != 0) {
        cx_sandbox_limits limits = cx_sandbox_limits_of(l->box, spec);
        CX_TRY(cx_sandbox_group_make(inner->cgroups, &limits, &l->group, err));
    }
    size_t count = 0;
    l->keep[count++] = (cx_spawn_inherit){l->report, LAUNCHER_FD_REPORT};
    l->keep[count++] = (cx_spawn_inherit){l->control[0], LAUNCHER_FD_CONTROL};
    if ((l->layers & CX_SANDBOX_SECCOMP) != 0)
        l->keep[count++] = (cx_spawn_inherit){inner->filter[spec->network || spec->egress != NULL],
                                              LAUNCHER_FD_FILTER};
    if (spec->executable != CX_FILE_NONE)
        l->keep[count++] = (cx_spawn_inherit){spec->executable, LAUNCHER_FD_PROGRAM};
    if (spec->egress != NULL)
        l->keep[count++] = (cx_spawn_inherit){*spec->egress, LAUNCHER_FD_EGRESS};
    if (l->config != CX_FILE_NONE)
        l->keep[count++] = (cx_spawn_inherit){l->config, LAUNCHER_FD_CONFIG};
    how->keep = l->keep;
    how->keep_count = count;
    how->term_file = l->control[1];
    how->join = l->group.join;
    how->join_count = l->group.count;
    if ((l->layers & CX_SANDBOX_FILES) == 0)
        how->cwd = spec->cwd != NULL ? spec->cwd : spec->worktree;
    return CX_SUCCESS;
}

static void prepare_unconfined(const cx_sandbox_spec *spec, cx_spawn_options *how)
{
    how->argv = spec->argv;
    how->path = spec->path;
    how->executable = spec->executable;
    how->cwd = spec->cwd != NULL ? spec->cwd : spec->worktree;
}

/* On failure everything is released (I3). */
static cx_status prepare_launch(launch *l, const cx_sandbox *box, const cx_sandbox_spec *spec,
                                unsigned layers, cx_spawn_options *how, cx_err *err)
{
    CX_ASSERT(spec->argv != NULL && spec->argv[0] != NULL);
    *l = (launch){
        .box = box,
        .layers = spec->unconfined ? 0 : layers,
        .unconfined = spec->unconfined,
        .report = CX_FILE_NONE,
        .config = CX_FILE_NONE,
        .control = {CX_FILE_NONE, CX_FILE_NONE},
        .group = {.join = {CX_FILE_NONE, CX_FILE_NONE}},
    };
    cx_arena_init(&l->arena, box->inner->arena.alloc, 0);
    cx_status status = prepare_streams(l, spec, how, err);
    if (!cx_failed(status) && spec->unconfined)
        prepare_unconfined(spec, how);
    else if (!cx_failed(status))
        status = prepare_confined(l, spec, how, err);
    if (cx_failed(status))
        release_launch(l);
    return status;
}

/* I2: turns the launcher's report and the process's end into a result. */
static cx_status conclude_launch(const launch *l, const cx_sandbox_spec *spec,
                                 const cx_spawn_result *process, cx_sandbox_result *out,
                                 cx_err *err)
{
    *out = (cx_sandbox_result){.exit_code = cx_spawn_exit(process), .process = *process};
    if (l->unconfined)
        return CX_SUCCESS;
    if (process->lost)
        return cx_fail(err, CX_E_IO, "the processes in the sandbox could not be ended");
    cx_sandbox_report report = {0};
    const cx_io *io = cx_io_system();
    int64_t size = io->pread(io, l->report, &report, sizeof report, 0);
    bool reported = size == (int64_t)sizeof report && report.magic == LAUNCHER_MAGIC;
    if (!reported && (process->timed_out || process->cancelled))
        return CX_SUCCESS;
    if (!reported)
        return cx_fail(err, CX_E_IO,
                       "the sandbox could not be set up (exit %d); its standard error says why",
                       out->exit_code);
    if (report.error[0] != 0) {
        report.error[sizeof report.error - 1] = 0;
        return cx_fail(err, CX_E_IO, "the sandbox could not be set up: %s", report.error);
    }
    out->layers = report.layers;
    if ((l->layers & CX_SANDBOX_FILES) != 0)
        out->layers |= BY_BWRAP & ~(spec->network ? (unsigned)CX_SANDBOX_NET : 0u);
    if (l->group.count != 0)
        out->layers |= CX_SANDBOX_CGROUP;
    unsigned lacking = l->layers & ~out->layers & ~(spec->network ? (unsigned)CX_SANDBOX_NET : 0u);
    if (lacking != 0)
        return cx_fail(err, CX_E_IO, "the sandbox did not apply all layers (0x%x are missing)",
                       lacking);
    return CX_SUCCESS;
}

static cx_status run_with_layers(const cx_sandbox *box, const cx_sandbox_spec *spec,
                                 unsigned layers, cx_sandbox_result *result, cx_err *err)
{
    launch l;
    cx_spawn_options how;
    cx_spawn_result process;
    CX_TRY(prepare_launch(&l, box, spec, layers, &how, err));
    cx_status status = cx_spawn_run(&how, &process, err);
    if (!cx_failed(status)) {
        status = conclude_launch(&l, spec, &process, result, err);
    } else if (spec->unconfined && (status.code == CX_E_NOT_FOUND || status.code == CX_E_DENIED)) {
        *result = (cx_sandbox_result){.exit_code = status.code == CX_E_NOT_FOUND ? 127 : 126};
        status = CX_SUCCESS;
    }
    release_launch(&l);
    return status;
}

cx_status cx_sandbox_run(const cx_sandbox *box, const cx_sandbox_spec *spec,
                         cx_sandbox_result *result, cx_err *err)
{
    if (!spec->unconfined)
        CX_TRY(check_layers(box, spec, err));
    return run_with_layers(box, spec, box->layers, result, err);
}

/* --- two-way conversations -------------------------------------------------------------------- */

struct cx_sandbox_child {
    launch launch;
    cx_sandbox_spec spec; /* for conclude_launch */
    cx_spawn_child *process;
};

cx_status cx_sandbox_start(const cx_sandbox *box, const cx_sandbox_spec *spec,
                           cx_sandbox_child **out, cx_err *err)
{
    CX_ASSERT(spec->argv != NULL && spec->argv[0] != NULL);
    if (!spec->unconfined)
        CX_TRY(check_layers(box, spec, err));
    cx_sandbox_child *child = cx_alloc_new(cx_alloc_default(), sizeof *child);
    if (child == NULL)
        return cx_fail_nomem(err);
    cx_spawn_options how;
    child->spec = *spec;
    cx_status status = prepare_launch(&child->launch, box, spec, box->layers, &how, err);
    if (!cx_failed(status)) {
        status = cx_spawn_open(&how, &child->process, err);
        if (cx_failed(status))
            release_launch(&child->launch);
    }
    if (cx_failed(status))
        cx_alloc_free(cx_alloc_default(), child, sizeof *child);
    else
        *out = child;
    return status;
}

cx_spawn_child *cx_sandbox_process(cx_sandbox_child *child)
{
    return child->process;
}

cx_status cx_sandbox_end(cx_sandbox_child *child, uint64_t wait_ms, cx_sandbox_result *result,
                         cx_err *err)
{
    if (child == NULL)
        return CX_SUCCESS;
    cx_spawn_result process;
    cx_sandbox_result unused;
    cx_status status = cx_spawn_close(child->process, wait_ms, &process, err);
    if (!cx_failed(status))
        status = conclude_launch(&child->launch, &child->spec, &process,
                                 result != NULL ? result : &unused, err);
    release_launch(&child->launch);
    cx_alloc_free(cx_alloc_default(), child, sizeof *child);
    return status;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void mark_layers_missing(cx_sandbox *box, unsigned layers, const char *reason,
                                const char *fix)
{
    for (size_t i = 0; i < CX_SANDBOX_LAYER_COUNT; i++) {
        if ((layers & 1u << i) == 0)
            continue;
        box->reason[i] = reason == NULL ? "out of memory" : reason;
        box->fix[i] = fix;
    }
    box->layers &= ~layers;
}

/* The last line of the output, which has the reason. */
static const char *last_output_line(cx_sandbox_inner *inner, const cx_buf *output,
                                    const cx_err *err)
{
    cx_str text = cx_buf_str(output);
    while (text.size != 0 && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
        text.size--;
    size_t from = text.size;
    while (from != 0 && text.data[from - 1] != '\n')
        from--;
    cx_str line = {text.data + from, text.size - from};
    if (line.size > 300)
        line.size = 300;
    return line.size == 0 ? cx_arena_copy_str(&inner->arena, cx_str_z(err->message)).data
                          : cx_arena_copy_str(&inner->arena, line).data;
}

/* Starts /usr/bin/true with all remaining layers; true on success. */
static bool probe_layers(cx_sandbox *box, cx_buf *output, cx_err *err)
{
    static const char *const argv[] = {"/usr/bin/true", NULL};
    cx_sandbox_spec spec = CX_SANDBOX_SPEC_INIT;
    cx_sandbox_result result;
    spec.argv = argv;
    spec.errout = (cx_spawn_output){CX_SPAWN_OUT_BUF, output, CX_FILE_NONE, 65536, false};
    spec.timeout_ms = TRY_TIMEOUT_MS;
    cx_buf_clear(output);
    if (cx_failed(run_with_layers(box, &spec, box->layers, &result, err)))
        return false;
    if (result.exit_code == 0)
        return true;
    (void)cx_fail(err, CX_E_IO, "/usr/bin/true ended with %d in the sandbox", result.exit_code)
        .code;
    return false;
}

/* Before 0.7 bubblewrap has no --size, which bounds the memory that /tmp takes. */
static bool bwrap_is_too_old(const char *reason)
{
    return reason != NULL && strstr(reason, "Unknown option") != NULL;
}

/* I1: removes layers that do not work until a start succeeds. */
static void reduce_to_working_layers(cx_sandbox *box)
{
    cx_err err = {0};
    cx_buf output;
    cx_buf_init(&output, box->inner->arena.alloc);
    while (box->layers != 0 && !probe_layers(box, &output, &err)) {
        const char *reason = last_output_line(box->inner, &output, &err);
        if (strstr(err.message, "landlock:") != NULL)
            mark_layers_missing(box, CX_SANDBOX_LANDLOCK, reason, NULL);
        else if (strstr(err.message, "seccomp:") != NULL)
            mark_layers_missing(box, CX_SANDBOX_SECCOMP, reason,
                                "a kernel with CONFIG_SECCOMP_FILTER");
        else if ((box->layers & CX_SANDBOX_FILES) != 0 && bwrap_is_too_old(reason))
            mark_layers_missing(box, BY_BWRAP, reason,
                                "install bubblewrap 0.7 or later (this one: bwrap --version)");
        else if ((box->layers & CX_SANDBOX_CGROUP) != 0)
            mark_layers_missing(box, CX_SANDBOX_CGROUP, reason, NULL);
        else if ((box->layers & CX_SANDBOX_FILES) != 0)
            mark_layers_missing(
                box, BY_BWRAP, reason,
                "allow unprivileged user namespaces (sysctl user.max_user_namespaces, "
                "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), "
                "or run outside of a container that forbids them");
        else
            mark_layers_missing(box, box->layers, reason, NULL);
    }
    cx_buf_done(&output);
}

static void find_bwrap(cx_sandbox *box)
{
    static const char *const usual[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap"};
    cx_sandbox_inner *inner = box->inner;
    const char *const *list = inner->options.bwrap != NULL ? &inner->options.bwrap : usual;
    size_t count = inner->options.bwrap != NULL ? 1 : CX_COUNT_OF(usual);
    for (size_t i = 0; i < count && inner->bwrap == NULL; i++) {
        cx_facts facts;
        if (!cx_failed(cx_path_facts(list[i], true, &facts, NULL)) &&
            facts.kind == CX_FILE_REGULAR && (facts.mode & 0111) != 0)
            inner->bwrap = list[i];
    }
    if (inner->bwrap != NULL)
        box->layers |= BY_BWRAP;
    else
        mark_layers_missing(box, BY_BWRAP,
                            cx_arena_printf(&inner->arena, "there is no %s", list[0]).data,
                            "install bubblewrap");
}

static void find_filters(cx_sandbox *box)
{
    cx_err err = {0};
    cx_sandbox_inner *inner = box->inner;
    if (!cx_confine_has_seccomp()) {
        mark_layers_missing(box, CX_SANDBOX_SECCOMP, "this kernel filters no system calls",
                            "a kernel with CONFIG_SECCOMP_FILTER");
        return;
    }
    for (int network = 0; network < 2; network++) {
        if (cx_failed(cx_sandbox_filter_make(network != 0, &inner->filter[network], &err))) {
            mark_layers_missing(box, CX_SANDBOX_SECCOMP,
                                cx_arena_copy_str(&inner->arena, cx_str_z(err.message)).data,
                                "install libseccomp2");
            return;
        }
    }
    box->layers |= CX_SANDBOX_SECCOMP;
}

static cx_status find_layers(cx_sandbox *box, cx_err *err)
{
    cx_sandbox_inner *inner = box->inner;
    box->layers = CX_SANDBOX_RLIMITS;
    find_bwrap(box);
    find_filters(box);
    box->landlock_abi = cx_confine_landlock_abi();
    if (box->landlock_abi > 0)
        box->layers |= CX_SANDBOX_LANDLOCK;
    else
        mark_layers_missing(box, CX_SANDBOX_LANDLOCK,
                            "this kernel has no Landlock, or it is not switched on",
                            "Linux 5.13 or later with landlock in the lsm= list");
    const char *why = NULL;
    CX_TRY(cx_sandbox_cgroups_open(&inner->arena, &inner->cgroups, &why, err));
    if (inner->cgroups != NULL)
        box->layers |= CX_SANDBOX_CGROUP;
    else
        mark_layers_missing(box, CX_SANDBOX_CGROUP, why,
                            "run in a delegated group: systemd-run --user --scope -p Delegate=yes");
    return CX_SUCCESS;
}

static cx_status copy_list(cx_arena *arena, const char *const **list, size_t count, cx_err *err)
{
    const char **copy = CX_ARENA_ARRAY(arena, const char *, count + 1);
    if (copy == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        if ((copy[i] = cx_arena_copy_str(arena, cx_str_z((*list)[i])).data) == NULL)
            return cx_fail_nomem(err);
    copy[count] = NULL;
    *list = copy;
    return CX_SUCCESS;
}

static cx_status copy_options(cx_sandbox_inner *inner, const cx_sandbox_options *from, cx_err *err)
{
    static const char *const trusted[] = {"/usr/local/bin", "/usr/bin", "/bin"};
    cx_sandbox_options *to = &inner->options;
    cx_arena *arena = &inner->arena;
    *to = *from;
    if (to->trusted == NULL) {
        to->trusted = trusted;
        to->trusted_count = CX_COUNT_OF(trusted);
    }
    CX_TRY(copy_list(arena, &to->trusted, to->trusted_count, err));
    CX_TRY(copy_list(arena, &to->read, to->read == NULL ? 0 : to->read_count, err));
    CX_TRY(copy_list(arena, &to->hide, to->hide == NULL ? 0 : to->hide_count, err));
    CX_TRY(copy_list(arena, &to->env_names, to->env_names == NULL ? 0 : to->env_name_count, err));
    if (to->bwrap != NULL &&
        (to->bwrap = cx_arena_copy_str(arena, cx_str_z(to->bwrap)).data) == NULL)
        return cx_fail_nomem(err);
    cx_buf path;
    cx_buf_init(&path, arena->alloc);
    for (size_t i = 0; i < to->trusted_count; i++) {
        cx_buf_add_z(&path, i == 0 ? "" : ":");
        cx_buf_add_z(&path, to->trusted[i]);
    }
    inner->path_env = cx_arena_copy_str(arena, cx_buf_str(&path)).data;
    cx_buf_clear(&path);
    cx_status status =
        cx_path_real(to->program == NULL ? cx_machine_program() : to->program, &path, err);
    if (!cx_failed(status)) {
        inner->program = cx_arena_copy_str(arena, cx_buf_str(&path)).data;
        if (inner->program == NULL || inner->path_env == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&path);
    return status;
}

cx_status cx_sandbox_supported(cx_err *err)
{
    (void)err;
    return CX_SUCCESS;
}

cx_status cx_sandbox_open(const cx_sandbox_options *options, cx_sandbox **out, cx_err *err)
{
    const cx_alloc *alloc = cx_alloc_default();
    cx_sandbox *box = cx_alloc_zeroed(alloc, 1, sizeof *box);
    cx_sandbox_inner *inner = cx_alloc_zeroed(alloc, 1, sizeof *inner);
    if (box == NULL || inner == NULL) {
        cx_alloc_free(alloc, box, sizeof *box);
        cx_alloc_free(alloc, inner, sizeof *inner);
        return cx_fail_nomem(err);
    }
    box->inner = inner;
    inner->filter[0] = inner->filter[1] = CX_FILE_NONE;
    cx_arena_init(&inner->arena, alloc, 0);
    cx_status status = copy_options(inner, options, err);
    if (!cx_failed(status))
        status = find_layers(box, err);
    if (cx_failed(status)) {
        cx_sandbox_close(box);
        return status;
    }
    reduce_to_working_layers(box);
    box->missing = CX_SANDBOX_REQUIRED & ~box->layers;
    *out = box;
    return CX_SUCCESS;
}

void cx_sandbox_close(cx_sandbox *box)
{
    if (box == NULL)
        return;
    close_file(&box->inner->filter[0]);
    close_file(&box->inner->filter[1]);
    cx_arena_done(&box->inner->arena);
    cx_alloc_free(cx_alloc_default(), box->inner, sizeof *box->inner);
    cx_alloc_free(cx_alloc_default(), box, sizeof *box);
}

const char *cx_sandbox_program(const cx_sandbox *box, const cx_sandbox_spec *spec)
{
    bool mounts = (box->layers & CX_SANDBOX_FILES) != 0 && !spec->unconfined;
    return mounts ? SANDBOX_LAUNCHER_PATH : box->inner->program;
}

/* --- describing ------------------------------------------------------------------------------- */

cx_status cx_sandbox_describe(const cx_sandbox *box, cx_sandbox_network network, cx_arena *arena,
                              cx_json *out, cx_err *err)
{
    static const char *const words[] = {"off", "on", "proxy"};
    CX_ASSERT((box->missing & ~CX_SANDBOX_REQUIRED) == 0);
    cx_json_list object = cx_json_list_begin(arena), layers = cx_json_list_begin(arena),
                 missing = cx_json_list_begin(arena);
    unsigned in_force =
        network == CX_SANDBOX_ON ? box->layers & ~(unsigned)CX_SANDBOX_NET : box->layers;
    for (size_t i = 0; i < CX_SANDBOX_LAYER_COUNT; i++) {
        cx_str name = cx_str_z(cx_sandbox_layer_name((cx_sandbox_layer)(1u << i)));
        if ((in_force & 1u << i) != 0)
            cx_json_list_add(&layers, cx_json_make_str(name));
        if ((box->missing & 1u << i) == 0)
            continue;
        cx_json_list one = cx_json_list_begin(arena);
        cx_json item;
        cx_json_list_put(&one, CX_STR("layer"), cx_json_make_str(name));
        cx_json_list_put(&one, CX_STR("reason"),
                         cx_json_make_str(cx_str_z(box->reason[i] ? box->reason[i] : "")));
        CX_TRY(cx_json_list_end_object(&one, &item, err));
        cx_json_list_add(&missing, item);
    }
    cx_json list;
    cx_json_list_put(&object, CX_STR("mode"),
                     cx_json_make_str(cx_str_z(box->missing == 0 ? "full" : "degraded")));
    cx_json_list_put(&object, CX_STR("network"), cx_json_make_str(cx_str_z(words[network])));
    CX_TRY(cx_json_list_end_array(&layers, &list, err));
    cx_json_list_put(&object, CX_STR("layers"), list);
    if (box->missing != 0) {
        CX_TRY(cx_json_list_end_array(&missing, &list, err));
        cx_json_list_put(&object, CX_STR("missing"), list);
    }
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_sandbox_env_names(const cx_sandbox *box, const cx_sandbox_spec *spec, cx_arena *arena,
                               cx_json *out, cx_err *err)
{
    const cx_sandbox_places places = {SANDBOX_HOME, "/tmp"};
    const char *const *env = NULL;
    CX_TRY(cx_sandbox_env(box, spec, &places, arena, &env, err));
    cx_json_list names = cx_json_list_begin(arena);
    for (size_t i = 0; env[i] != NULL; i++) {
        const char *end = strchr(env[i], '=');
        size_t size = end == NULL ? strlen(env[i]) : (size_t)(end - env[i]);
        cx_json_list_add(&names, cx_json_make_str(cx_str_from(env[i], size)));
    }
    return cx_json_list_end_array(&names, out, err);
}
