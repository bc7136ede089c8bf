/*
 * sandbox_args.c - the command line of a sandboxed program, and its environment (run.md §1 R4,
 * §16).
 *
 * The file system is built in this order: the system, read-only; an empty /tmp, home, /dev and
 * /proc; then what the run shows and hides, outer paths before inner ones, so that the more
 * specific statement wins.  At the end the root itself becomes read-only.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/api.h"
#include "sandbox/sandbox_internal.h"

/* --- lists of arguments ----------------------------------------------------------------------- */

void cx_sandbox_arg_list_init(arg_list *w, cx_arena *arena)
{
    *w = (arg_list){.arena = arena};
}

void cx_sandbox_arg_list_done(arg_list *w)
{
    cx_vec_done(&w->list, w->arena->alloc);
}

void cx_sandbox_add_arg(arg_list *w, const char *arg)
{
    const char **slot = arg == NULL ? NULL : cx_vec_push(&w->list, w->arena->alloc);
    if (slot == NULL)
        w->failed = true;
    else
        *slot = arg;
}

void cx_sandbox_add_argf(arg_list *w, const char *format, ...)
{
    char text[64];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *copy = size < 0 ? NULL : CX_ARENA_ARRAY(w->arena, char, (size_t)size + 1);
    if (copy != NULL)
        (void)vsnprintf(copy, (size_t)size + 1, format, again);
    va_end(again);
    cx_sandbox_add_arg(w, copy);
}

cx_status cx_sandbox_arg_list_end(arg_list *w, const char *const **out, cx_err *err)
{
    const char **list = CX_ARENA_ARRAY(w->arena, const char *, w->list.count + 1);
    if (list == NULL || w->failed)
        return cx_fail_nomem(err);
    if (w->list.count != 0)
        memcpy(list, w->list.items, w->list.count * sizeof *list);
    list[w->list.count] = NULL;
    *out = list;
    return CX_SUCCESS;
}

static void add_args2(arg_list *w, const char *option, const char *a)
{
    cx_sandbox_add_arg(w, option);
    cx_sandbox_add_arg(w, a);
}

static void add_args3(arg_list *w, const char *option, const char *a, const char *b)
{
    add_args2(w, option, a);
    cx_sandbox_add_arg(w, b);
}

/* --- the system ------------------------------------------------------------------------------- */

static const char *const system_folders[] = {"/bin",   "/sbin",  "/lib",
                                             "/lib32", "/lib64", "/libx32"};

/* The entries of /etc that programs need and every user may read. */
static const char *const etc_entries[] = {
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "group",
    "host.conf",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki",
    "protocols",
    "python3",
    "rpc",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "xattr.conf",
};
static const char *const etc_online[] = {"gai.conf", "hosts", "resolv.conf"};

/* Whether `path` is `folder` or below it. */
static bool is_path_below(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == 0);
}

static void show_etc(arg_list *w, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cx_str path = cx_arena_printf(w->arena, "/etc/%s", names[i]);
        add_args3(w, "--ro-bind-try", path.data, path.data);
    }
}

static cx_status show_system(arg_list *w, bool network, cx_err *err)
{
    add_args3(w, "--ro-bind", "/usr", "/usr");
    for (size_t i = 0; i < CX_COUNT_OF(system_folders); i++) {
        const char *path = system_folders[i];
        cx_facts facts;
        if (cx_failed(cx_path_facts(path, false, &facts, NULL)))
            continue;
        if (facts.kind != CX_FILE_LINK) {
            add_args3(w, "--ro-bind", path, path);
            continue;
        }
        cx_buf target;
        cx_buf_init(&target, w->arena->alloc);
        cx_file root = CX_FILE_NONE;
        cx_status status = cx_folder_open("/", &root, err);
        if (!cx_failed(status))
            status = cx_folder_read_link(root, path + 1, &target, err);
        cx_folder_close(root);
        if (!cx_failed(status))
            add_args3(w, "--symlink", cx_arena_copy_str(w->arena, cx_buf_str(&target)).data, path);
        cx_buf_done(&target);
        CX_TRY(status);
    }
    show_etc(w, etc_entries, CX_COUNT_OF(etc_entries));
    if (network)
        show_etc(w, etc_online, CX_COUNT_OF(etc_online));
    return CX_SUCCESS;
}

/* --- what the run shows and hides ------------------------------------------------------------- */

typedef enum view { VIEW_HIDE, VIEW_READ, VIEW_WRITE } view;

typedef struct place {
    const char *path;
    const char *source; /* the path that is mounted there: the same, or a copy */
    view as;
    size_t order; /* of insertion: the later one wins where paths are equal */
} place;

typedef struct places {
    cx_arena *arena;
    CX_VEC(place) list;
    bool failed;
} places;

static void add_place_copy(places *all, const char *path, const char *source, view as)
{
    place *slot = path == NULL ? NULL : cx_vec_push(&all->list, all->arena->alloc);
    if (slot == NULL)
        all->failed |= path != NULL;
    else
        *slot = (place){path, source, as, all->list.count};
}

static void add_place(places *all, const char *path, view as)
{
    add_place_copy(all, path, path, as);
}

/* `folder`, writable as `outer` is; unless something else is said of it or of a folder above it. */
static void hold_folder(places *all, const place *outer, cx_str folder)
{
    const char *path = cx_arena_copy_str(all->arena, folder).data;
    all->failed |= path == NULL;
    for (size_t i = 0; i < all->list.count && path != NULL; i++) {
        const place *at = &all->list.items[i];
        if (strlen(at->path) > strlen(outer->path) && is_path_below(path, at->path) &&
            (at->as != VIEW_WRITE || strcmp(at->path, path) == 0))
            return;
    }
    if (path != NULL)
        add_place_copy(
            all, path,
            cx_arena_printf(all->arena, "%s%s", outer->source, path + strlen(outer->path)).data,
            VIEW_WRITE);
}

/* A parent folder sorts before what is below it. */
static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

/* A folder between a writable one and what is hidden or read-only in it could be renamed, and
 * another put in its place, which programs outside would take for the protected one.  A mount point
 * cannot be renamed, so each such folder becomes one; it stays writable. */
static void hold_folders_between(places *all)
{
    size_t count = all->list.count;
    for (size_t i = 0; i < count && !all->failed; i++) {
        const place outer = all->list.items[i];
        for (size_t k = 0; k < count && outer.as == VIEW_WRITE && !all->failed; k++) {
            const char *inner = all->list.items[k].path;
            size_t start = strlen(outer.path);
            cx_facts facts;
            if (start == 1 || strcmp(inner, outer.path) == 0 || !is_path_below(inner, outer.path) ||
                cx_failed(cx_path_facts(inner, true, &facts, NULL)))
                continue;
            for (size_t end = start + 1; inner[end] != 0 && !all->failed; end++)
                if (inner[end] == '/')
                    hold_folder(all, &outer, cx_str_from(inner, end));
        }
    }
}

static cx_status find_places(const cx_sandbox *box, const cx_sandbox_spec *spec, places *all,
                             cx_err *err)
{
    const cx_sandbox_options *options = &box->inner->options;
    for (size_t i = 0; i < options->read_count; i++)
        add_place(all, options->read[i], VIEW_READ);
    for (size_t i = 0; i < options->trusted_count; i++)
        if (!is_path_below(options->trusted[i], "/usr") &&
            !is_path_below(options->trusted[i], "/bin"))
            add_place(all, options->trusted[i], VIEW_READ);
    for (size_t i = 0; i < options->hide_count; i++)
        add_place(all, options->hide[i], VIEW_HIDE);
    for (size_t i = 0; i < spec->bind_count; i++)
        add_place(all, spec->binds[i].path, spec->binds[i].writable ? VIEW_WRITE : VIEW_READ);
    if (spec->git != NULL) {
        add_place(all, spec->git->common_dir, VIEW_READ);
        if (!spec->read_only && spec->git->git_dir_copy != NULL) {
            add_place_copy(all, spec->git->git_dir, spec->git->git_dir_copy, VIEW_WRITE);
            add_place(all, spec->git->object_dir, VIEW_WRITE);
            if (spec->git->ref_dir_copy != NULL)
                add_place_copy(all, spec->git->ref_dir, spec->git->ref_dir_copy, VIEW_WRITE);
        }
    }
    add_place(all, spec->worktree, spec->read_only ? VIEW_READ : VIEW_WRITE);
    hold_folders_between(all);
    if (all->failed)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < all->list.count; i++)
        if (all->list.items[i].path[0] != '/')
            return cx_fail(err, CX_E_USAGE,
                           "'%s' is not absolute: a sandbox shows paths as they are",
                           all->list.items[i].path);
    if (all->list.count != 0)
        qsort(all->list.items, all->list.count, sizeof *all->list.items, compare_places);
    return CX_SUCCESS;
}

/* Whether a shown folder contains `path`, so that it would be visible. */
static bool is_parent_shown(const places *all, const char *path)
{
    bool seen = is_path_below(path, "/usr");
    for (size_t i = 0; i < all->list.count && !seen; i++)
        seen = all->list.items[i].as != VIEW_HIDE && is_path_below(path, all->list.items[i].path) &&
               strcmp(path, all->list.items[i].path) != 0;
    return seen;
}

bool cx_sandbox_has_config(const cx_sandbox_spec *spec, unsigned layers)
{
    return spec->git != NULL && spec->git->config.data != NULL && (layers & CX_SANDBOX_FILES) != 0;
}

static void hide_file(arg_list *w, const char *folder, const char *name)
{
    cx_facts facts;
    const char *path = cx_arena_printf(w->arena, "%s/%s", folder, name).data;
    w->failed |= path == NULL;
    if (path != NULL && !cx_failed(cx_path_facts(path, false, &facts, NULL)) &&
        facts.kind == CX_FILE_REGULAR)
        add_args3(w, "--ro-bind", "/dev/null", path);
}

/* flock(2) needs no right to write: who can open the lock of the work trees keeps other runs of the
 * repository from beginning and merging.  config.worktree may have what the configuration has. */
static void hide_git_files(arg_list *w, const places *all, const cx_sandbox_git *git)
{
    for (size_t i = 0; i < all->list.count; i++) {
        cx_facts facts;
        const char *own = cx_arena_printf(w->arena, "%s/.git", all->list.items[i].path).data;
        w->failed |= own == NULL;
        if (own != NULL && all->list.items[i].as != VIEW_HIDE &&
            !cx_failed(cx_path_facts(own, false, &facts, NULL)) && facts.kind == CX_FILE_FOLDER)
            hide_file(w, own, "cortex-worktrees.lock");
    }
    if (git == NULL)
        return;
    hide_file(w, git->common_dir, "cortex-worktrees.lock");
    hide_file(w, git->common_dir, "config.worktree");
}

static void show_config(arg_list *w, const cx_sandbox_git *git)
{
    cx_sandbox_add_arg(w, "--ro-bind-data");
    cx_sandbox_add_argf(w, "%d", LAUNCHER_FD_CONFIG);
    cx_sandbox_add_argf(w, "%s/config", git->common_dir);
}

static void show_places(arg_list *w, const places *all)
{
    for (size_t i = 0; i < all->list.count; i++) {
        const place *at = &all->list.items[i];
        cx_facts facts;
        if (at->as == VIEW_WRITE)
            add_args3(w, "--bind", at->source, at->path);
        else if (at->as == VIEW_READ)
            add_args3(w, "--ro-bind", at->source, at->path);
        else if (is_parent_shown(all, at->path) &&
                 !cx_failed(cx_path_facts(at->path, true, &facts, NULL)))
            add_args2(w, "--tmpfs", at->path);
    }
}

/* --- the command line ------------------------------------------------------------------------- */

static const char *start_folder(const cx_sandbox_spec *spec)
{
    return spec->cwd != NULL ? spec->cwd : spec->worktree != NULL ? spec->worktree : "/";
}

static cx_status add_bwrap(arg_list *w, const cx_sandbox *box, const cx_sandbox_spec *spec,
                           const places *all, uint64_t tmp_bytes, cx_err *err)
{
    /* Not --die-with-parent: if one of bubblewrap's two processes is killed during the setup, the
     * other waits for it or continues alone. The launcher ends when this process ends (sandbox.h
     * I4), and bubblewrap with it. */
    static const char *const always[] = {"--unshare-user", "--unshare-pid",        "--unshare-ipc",
                                         "--unshare-uts",  "--unshare-cgroup-try", "--as-pid-1",
                                         "--new-session"};
    cx_sandbox_add_arg(w, box->inner->bwrap);
    for (size_t i = 0; i < CX_COUNT_OF(always); i++)
        cx_sandbox_add_arg(w, always[i]);
    if (!spec->network)
        cx_sandbox_add_arg(w, "--unshare-net");
    add_args2(w, "--cap-drop", "ALL");
    add_args2(w, "--hostname", "sandbox");
    CX_TRY(show_system(w, spec->network, err));
    add_args2(w, "--proc", "/proc");
    /* The host's root owns these and needs no capability to write them. */
    static const char *const kernel[] = {"/proc/sys", "/proc/sysrq-trigger", "/proc/fs"};
    for (size_t i = 0; i < CX_COUNT_OF(kernel); i++)
        add_args3(w, "--ro-bind-try", kernel[i], kernel[i]);
    add_args2(w, "--dev", "/dev");
    static const char *const empty[] = {"/tmp", "/home"};
    for (size_t i = 0; i < CX_COUNT_OF(empty); i++) {
        if (tmp_bytes != UINT64_MAX) {
            cx_sandbox_add_arg(w, "--size");
            cx_sandbox_add_argf(w, "%" PRIu64, tmp_bytes);
        }
        add_args2(w, "--tmpfs", empty[i]);
    }
    add_args2(w, "--dir", SANDBOX_HOME);
    add_args3(w, "--ro-bind", box->inner->program, SANDBOX_LAUNCHER_PATH);
    show_places(w, all);
    hide_git_files(w, all, spec->git);
    if (cx_sandbox_has_config(spec, CX_SANDBOX_FILES))
        show_config(w, spec->git);
    add_args2(w, "--remount-ro", "/");
    add_args2(w, "--chdir", start_folder(spec));
    cx_sandbox_add_arg(w, "--");
    cx_sandbox_add_arg(w, SANDBOX_LAUNCHER_PATH);
    return CX_SUCCESS;
}

/* What Landlock permits: with mounts everything may be read; without them only the system and what
 * is shown. */
static void add_landlock(arg_list *w, const char *own_program, const places *all, bool mounts,
                         const cx_sandbox_places *at)
{
    static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                          "/dev/random", "/dev/urandom", "/dev/tty"};
    cx_sandbox_add_arg(w, "--landlock");
    /* Listed individually too: an opened program is reached through the mounts outside. */
    add_args2(w, "--read", "/usr");
    for (size_t i = 0; i < CX_COUNT_OF(system_folders); i++)
        add_args2(w, "--read", system_folders[i]);
    if (mounts) {
        add_args2(w, "--read", "/");
        add_args2(w, "--write", "/dev");
        add_args2(w, "--write", "/home");
    } else {
        add_args2(w, "--read", "/proc");
        add_args2(w, "--read", own_program); /* it runs the operations of replay scripts */
        for (size_t i = 0; i < CX_COUNT_OF(etc_entries); i++)
            add_args2(w, "--read", cx_arena_printf(w->arena, "/etc/%s", etc_entries[i]).data);
        for (size_t i = 0; i < CX_COUNT_OF(devices); i++)
            add_args2(w, "--write", devices[i]);
        add_args2(w, "--write", at->home);
    }
    add_args2(w, "--write", at->tmp);
    for (size_t i = 0; i < all->list.count; i++)
        if (all->list.items[i].as != VIEW_HIDE)
            add_args2(w, all->list.items[i].as == VIEW_WRITE ? "--write" : "--read",
                      all->list.items[i].path);
}

static uint64_t finite(uint64_t value)
{
    return value == UINT64_MAX ? 0 : value;
}

/* The cortex program, built with a sanitizer, maps terabytes of shadow memory that it never
 * touches. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_PROGRAM_IS_SANITIZED true
#elif defined(__has_feature)
#define OWN_PROGRAM_IS_SANITIZED                                            \
    (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
     __has_feature(memory_sanitizer))
#else
#define OWN_PROGRAM_IS_SANITIZED false
#endif

static void add_launcher(arg_list *w, const cx_sandbox *box, const cx_sandbox_spec *spec,
                         unsigned layers, const places *all, const cx_sandbox_places *at)
{
    cx_sandbox_limits limits = cx_sandbox_limits_of(box, spec);
    bool mounts = (layers & CX_SANDBOX_FILES) != 0;
    const char *program = spec->path != NULL ? spec->path : spec->argv[0];
    if (OWN_PROGRAM_IS_SANITIZED && strcmp(program, cx_sandbox_program(box, spec)) == 0)
        limits.memory_bytes = UINT64_MAX;
    cx_sandbox_add_arg(w, CX_SANDBOX_LAUNCHER);
    if (mounts)
        cx_sandbox_add_arg(w, "--alone");
    if ((layers & CX_SANDBOX_SECCOMP) != 0)
        cx_sandbox_add_arg(w, "--filter");
    if (spec->network || spec->egress != NULL)
        cx_sandbox_add_arg(w, "--online");
    if (spec->egress != NULL)
        cx_sandbox_add_arg(w, "--egress");
    if (spec->executable != CX_FILE_NONE)
        cx_sandbox_add_arg(w, "--opened");
    if ((layers & CX_SANDBOX_LANDLOCK) != 0)
        add_landlock(w, box->inner->program, all, mounts, at);
    cx_sandbox_add_arg(w, "--limits");
    cx_sandbox_add_argf(w, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                        finite(limits.cpu_seconds), finite(limits.processes),
                        finite(limits.file_bytes), finite(limits.open_files),
                        finite(limits.memory_bytes));
    add_args2(w, "--program", program);
    cx_sandbox_add_arg(w, "--");
    for (size_t i = 0; spec->argv[i] != NULL; i++)
        cx_sandbox_add_arg(w, spec->argv[i]);
}

cx_status cx_sandbox_args(const cx_sandbox *box, const cx_sandbox_spec *spec, unsigned layers,
                          const cx_sandbox_places *at, cx_arena *arena, const char *const **out,
                          cx_err *err)
{
    CX_ASSERT((layers & ~box->layers) == 0); /* I2 */
    arg_list w;
    places all = {.arena = arena};
    cx_sandbox_arg_list_init(&w, arena);
    cx_status status;
    CX_TRY_GOTO(status, find_places(box, spec, &all, err));
    if ((layers & CX_SANDBOX_FILES) != 0)
        CX_TRY_GOTO(status,
                    add_bwrap(&w, box, spec, &all, cx_sandbox_limits_of(box, spec).tmp_bytes, err));
    else
        cx_sandbox_add_arg(&w, box->inner->program);
    add_launcher(&w, box, spec, layers, &all, at);
    status = cx_sandbox_arg_list_end(&w, out, err);
done:
    cx_vec_done(&all.list, arena->alloc);
    cx_sandbox_arg_list_done(&w);
    return status;
}

/* --- the environment (R4) --------------------------------------------------------------------- */

static size_t variable_name_size(const char *variable)
{
    const char *end = strchr(variable, '=');
    return end == NULL ? strlen(variable) : (size_t)(end - variable);
}

/* The first value of a name wins, so the variables of R4 cannot be overridden. */
static void set_variable(arg_list *w, const char *variable)
{
    size_t size = variable == NULL ? 0 : variable_name_size(variable);
    for (size_t i = 0; variable != NULL && i < w->list.count; i++)
        if (variable_name_size(w->list.items[i]) == size &&
            memcmp(w->list.items[i], variable, size) == 0)
            return;
    cx_sandbox_add_arg(w, variable);
}

static void set_variablef(arg_list *w, const char *name, const char *value)
{
    if (value != NULL)
        set_variable(w, cx_arena_printf(w->arena, "%s=%s", name, value).data);
}

/* Where programs look for a proxy; there is no one name for it.  What is inside of the sandbox is
 * reached without it. */
static void set_proxy(arg_list *w)
{
    static const char *const names[] = {"http_proxy",       "https_proxy",           "all_proxy",
                                        "HTTP_PROXY",       "HTTPS_PROXY",           "ALL_PROXY",
                                        "npm_config_proxy", "npm_config_https_proxy"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        set_variable(
            w, cx_arena_printf(w->arena, "%s=http://127.0.0.1:%d", names[i], CX_SANDBOX_EGRESS_PORT)
                   .data);
    set_variable(w, "no_proxy=localhost,127.0.0.1,::1");
    set_variable(w, "NO_PROXY=localhost,127.0.0.1,::1");
    set_variable(w, "NODE_USE_ENV_PROXY=1");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

cx_status cx_sandbox_env(const cx_sandbox *box, const cx_sandbox_spec *spec,
                         const cx_sandbox_places *at, cx_arena *arena, const char *const **out,
                         cx_err *err)
{
    const cx_sandbox_options *options = &box->inner->options;
    arg_list w;
    cx_sandbox_arg_list_init(&w, arena);
    set_variablef(&w, "PATH", box->inner->path_env);
    set_variable(&w, "LANG=C.UTF-8");
    set_variable(&w, "LC_ALL=C.UTF-8");
    set_variablef(&w, "HOME", at->home);
    set_variablef(&w, "TMPDIR", at->tmp);
    set_variable(&w, "PYTHONDONTWRITEBYTECODE=1");
    set_variablef(&w, "CORTEX_RUN_ID", spec->run_id);
    set_variablef(&w, "CORTEX_TASK_ID", spec->task_id);
    if (spec->git != NULL && spec->git->object_dir != NULL && !spec->read_only) {
        set_variablef(&w, "GIT_OBJECT_DIRECTORY", spec->git->object_dir);
        set_variable(&w, cx_arena_printf(arena, "GIT_ALTERNATE_OBJECT_DIRECTORIES=%s/objects",
                                         spec->git->common_dir)
                             .data);
        /* Reflogs and gc would write to the repository, which is read-only. */
        set_variable(&w, "GIT_CONFIG_COUNT=4");
        set_variable(&w, "GIT_CONFIG_KEY_0=core.logAllRefUpdates");
        set_variable(&w, "GIT_CONFIG_VALUE_0=false");
        set_variable(&w, "GIT_CONFIG_KEY_1=gc.auto");
        set_variable(&w, "GIT_CONFIG_VALUE_1=0");
        /* The index is one file, which the governor can read. */
        set_variable(&w, "GIT_CONFIG_KEY_2=core.splitIndex");
        set_variable(&w, "GIT_CONFIG_VALUE_2=false");
        set_variable(&w, "GIT_CONFIG_KEY_3=core.fsmonitor");
        set_variable(&w, "GIT_CONFIG_VALUE_3=false");
    }
    if (spec->egress != NULL)
        set_proxy(&w);
    for (size_t i = 0; spec->env != NULL && spec->env[i] != NULL; i++)
        set_variable(&w, spec->env[i]);
    for (size_t i = 0; i < options->env_name_count; i++)
        set_variablef(&w, options->env_names[i], getenv(options->env_names[i]));
    if (w.list.count != 0)
        qsort(w.list.items, w.list.count, sizeof *w.list.items, compare_texts);
    cx_status status = cx_sandbox_arg_list_end(&w, out, err);
    cx_sandbox_arg_list_done(&w);
    return status;
}
