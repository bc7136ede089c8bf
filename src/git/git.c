/*
 * git.c - runs the git program (run.md §1 R3) and finds the repository.
 *
 * Invariants I1, I2 and I3: git.h.
 */
#include "git/git.h"

#include <stdio.h>

#include "os/api.h"
#include "git/git_parts.h"

#define NO_HOME "/nonexistent" /* Debian's name for a home that must not exist */
#define ERRORS_BYTES_MAX 4096

/* R3, and options that keep the repository's configuration from starting other programs. */
static const char *const fixed_options[] = {"core.hooksPath=/dev/null",
                                            "core.fsmonitor=false",
                                            "core.untrackedCache=false",
                                            "diff.external=",
                                            "core.pager=cat",
                                            "core.attributesFile=/dev/null",
                                            "protocol.allow=never",
                                            "gc.auto=0",
                                            "commit.gpgSign=false",
                                            "tag.gpgSign=false",
                                            "maintenance.auto=false",
                                            "submodule.recurse=false",
                                            "core.quotePath=false",
                                            "core.splitIndex=false",
                                            "index.sparse=false",
                                            "core.logAllRefUpdates=false",
                                            "core.fsyncMethod=batch"};

static const char literal_paths[] = "GIT_LITERAL_PATHSPECS=1";

/* GIT_ALLOW_PROTOCOL overrides every protocol.*.allow of a configuration; a missing object is an
 * error and is never fetched. */
static const char *const fixed_env[] = {
    "PATH=/usr/bin:/bin",       "LC_ALL=C",
    "GIT_CONFIG_NOSYSTEM=1",    "GIT_CONFIG_GLOBAL=/dev/null",
    "GIT_TERMINAL_PROMPT=0",    "GIT_OPTIONAL_LOCKS=0",
    "GIT_NO_REPLACE_OBJECTS=1", "GIT_ALLOW_PROTOCOL=none",
    "GIT_NO_LAZY_FETCH=1",      "GIT_ATTR_NOSYSTEM=1",
    "GIT_EDITOR=/bin/false",    "GIT_SEQUENCE_EDITOR=/bin/false",
    "GIT_ASKPASS=/bin/false",   "SSH_ASKPASS=/bin/false",
    "GIT_SSH=/bin/false",       literal_paths};

enum {
    ARGS_MAX = 80,
    ENV_MAX = 32,
};

struct cx_git {
    const cx_alloc *alloc;
    cx_arena arena;
    cx_git_options options; /* text copied */
    const char *home;       /* "HOME=.." */
    const char *worktree;
    const char *git_dir;
    const char *common_dir;
    const char *main_worktree;
    const char *git_dir_option; /* "--git-dir=.." */
    const char *common_option;  /* the same for the common directory */
    const char *work_tree_option;
    const char *common_env; /* "GIT_COMMON_DIR=.." of a linked work tree, else NULL */
    size_t oid_size;
    bool linked;
    bool hostile; /* I3 */
};

/* --- the program ------------------------------------------------------------------------------ */

static bool is_trusted_program(const char *path)
{
    cx_facts facts;
    return !cx_failed(cx_path_facts(path, true, &facts, NULL)) && facts.kind == CX_FILE_REGULAR &&
           (facts.mode & 0111) != 0 && (facts.mode & 022) == 0 &&
           (facts.owner_id == 0 || facts.owner_id == cx_user_id());
}

const char *cx_git_program(void)
{
    static const char *const places[] = {"/usr/local/bin/git", "/usr/bin/git", "/bin/git"};
    for (size_t i = 0; i < CX_COUNT_OF(places); i++)
        if (is_trusted_program(places[i]))
            return places[i];
    return NULL;
}

/* --- running ---------------------------------------------------------------------------------- */

/* The first line of git's error output, without "fatal: ". */
static cx_str first_error_line(const cx_buf *errors)
{
    cx_str text = cx_buf_str(errors);
    const char *end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
    if (end != NULL)
        text.size = (size_t)(end - text.data);
    static const char *const heads[] = {"fatal: ", "error: "};
    for (size_t i = 0; i < CX_COUNT_OF(heads); i++) {
        cx_str head = cx_str_z(heads[i]);
        if (cx_str_starts(text, head))
            return (cx_str){text.data + head.size, text.size - head.size};
    }
    return text.size == 0 ? CX_STR("it printed no error message") : text;
}

/* Git reports this only by its message, which is the same in all supported versions. */
static bool ran_out_of_memory(const cx_buf *errors)
{
    static const char *const phrases[] = {"Out of memory, ", "out of memory",
                                          "mmap failed: Cannot allocate"};
    cx_str text = cx_buf_str(errors);
    for (size_t i = 0; i < CX_COUNT_OF(phrases); i++)
        if (text.size != 0 && memmem(text.data, text.size, phrases[i], strlen(phrases[i])) != NULL)
            return true;
    return false;
}

static cx_status run_git_process(const cx_git_options *with, const char *const *argv,
                                 const char *const *envp, const char *cwd, const cx_git_call *call,
                                 cx_buf *out, int *out_exit, cx_err *err)
{
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_result result;
    cx_buf errors;
    uint64_t limit = call->output_limit_bytes != 0   ? call->output_limit_bytes
                     : with->output_limit_bytes != 0 ? with->output_limit_bytes
                                                     : CX_RUN_OUTPUT_BYTES_MAX;
    cx_buf_init(&errors, cx_alloc_default());
    how.argv = argv;
    how.envp = envp;
    how.cwd = cwd;
    how.in = call->input.size == 0 ? CX_SPAWN_IN_NULL : CX_SPAWN_IN_BYTES;
    how.input = call->input;
    if (out != NULL)
        how.out = cx_spawn_to_buf(out, limit);
    how.errout = cx_spawn_to_buf(&errors, ERRORS_BYTES_MAX);
    how.errout.limit_fails = false;
    how.timeout_ms = call->timeout_ms != 0   ? call->timeout_ms
                     : with->timeout_ms != 0 ? with->timeout_ms
                                             : CX_GIT_TIMEOUT_MS;
    how.cancel = with->cancel;
    const cx_spawn_limits limits = {.memory_bytes = call->memory_bytes};
    how.limits = call->memory_bytes != 0 ? &limits : NULL;
    size_t at = 0;
    while (call->args[at] != NULL && strcmp(call->args[at], "-c") == 0 &&
           call->args[at + 1] != NULL)
        at += 2;
    const char *subcommand = call->args[at] == NULL ? "" : call->args[at];
    cx_status status = cx_spawn_run(&how, &result, err);
    if (cx_failed(status))
        goto done;
    if (result.timed_out || result.cancelled)
        status = cx_fail(err, CX_E_TIMEOUT, "git %s %s", subcommand,
                         result.cancelled ? "was cancelled" : "took longer than allowed");
    else if (call->memory_bytes != 0 && result.exit_code != 0 && ran_out_of_memory(&errors))
        status = cx_fail(err, CX_E_LIMIT,
                         "git %s needs more than %llu MiB of memory for the agent's data",
                         subcommand, (unsigned long long)(call->memory_bytes >> 20));
    else if (result.signal != 0)
        status =
            cx_fail(err, CX_E_IO, "git %s was terminated by signal %d", subcommand, result.signal);
    else if (out_exit != NULL)
        *out_exit = result.exit_code;
    else if (result.exit_code != 0) {
        cx_str why = first_error_line(&errors);
        status = cx_fail(err, CX_E_FORMAT, "git %s failed (exit %d): %.*s", subcommand,
                         result.exit_code, (int)(why.size > 200 ? 200 : why.size), why.data);
    }
done:
    cx_buf_done(&errors);
    return status;
}

/* The repository of a call as options and environment; NULL = not given. */
typedef struct call_place {
    const char *home;
    const char *git_dir;    /* "--git-dir=.." */
    const char *work_tree;  /* "--work-tree=.." */
    const char *common_env; /* "GIT_COMMON_DIR=.." */
} call_place;

/* Fills argv and environment; `index` is storage for GIT_INDEX_FILE. */
static cx_status build_command_line(const cx_git_options *with, const call_place *place,
                                    const cx_git_call *call, const char **argv, const char **envp,
                                    char *index, size_t index_size, cx_err *err)
{
    size_t count = 0, env_count = 0;
    argv[count++] = with->program;
    for (size_t i = 0; i < CX_COUNT_OF(fixed_options); i++) {
        argv[count++] = "-c";
        argv[count++] = fixed_options[i];
    }
    if (place->git_dir != NULL)
        argv[count++] = place->git_dir;
    if (place->work_tree != NULL)
        argv[count++] = place->work_tree;
    for (size_t i = 0; call->args[i] != NULL; i++) {
        if (count + 1 == ARGS_MAX)
            return cx_fail(err, CX_E_LIMIT, "git is called with too many arguments");
        argv[count++] = call->args[i];
    }
    argv[count] = NULL;
    for (size_t i = 0; i < CX_COUNT_OF(fixed_env); i++)
        if (!(call->plain_paths && fixed_env[i] == literal_paths))
            envp[env_count++] = fixed_env[i];
    envp[env_count++] = place->home;
    if (place->common_env != NULL)
        envp[env_count++] = place->common_env;
    if (call->index_file != NULL) {
        int size = snprintf(index, index_size, "GIT_INDEX_FILE=%s", call->index_file);
        if (size < 0 || (size_t)size >= index_size)
            return cx_fail(err, CX_E_LIMIT, "the path of a temporary index is too long");
        envp[env_count++] = index;
    }
    for (size_t i = 0; call->env != NULL && call->env[i] != NULL; i++) {
        if (env_count + 1 == ENV_MAX)
            return cx_fail(err, CX_E_LIMIT, "git is called with too many variables");
        envp[env_count++] = call->env[i];
    }
    envp[env_count] = NULL;
    return CX_SUCCESS;
}

/* Determines the repository and the working directory of a call; `other` is storage for an option
 * of the call's own. */
static cx_status resolve_call_place(const cx_git *git, const cx_git_call *call, char *other,
                                    size_t other_size, call_place *place, const char **cwd,
                                    cx_err *err)
{
    bool common = call->common || call->work_tree != NULL || git->hostile;
    bool elsewhere = call->git_dir != NULL || call->work_tree != NULL;
    int size = call->git_dir != NULL ? snprintf(other, other_size, "--git-dir=%s", call->git_dir)
               : call->work_tree != NULL
                   ? snprintf(other, other_size, "--work-tree=%s", call->work_tree)
                   : 0;
    if (size < 0 || (size_t)size >= other_size)
        return cx_fail(err, CX_E_LIMIT, "the path of a temporary folder is too long");
    *place = (call_place){.home = git->home};
    if (call->git_dir != NULL) {
        place->git_dir = other;
    } else {
        place->git_dir = common ? git->common_option : git->git_dir_option;
        place->common_env = common ? NULL : git->common_env;
        if (elsewhere || !call->bare)
            place->work_tree = elsewhere ? other : git->work_tree_option;
    }
    *cwd = call->git_dir != NULL     ? call->git_dir
           : call->work_tree != NULL ? call->work_tree
           : call->bare              ? git->common_dir
                                     : git->worktree;
    return CX_SUCCESS;
}

cx_status cx_git_call_run(const cx_git *git, const cx_git_call *call, cx_buf *out, int *out_exit,
                          cx_err *err)
{
    const char *argv[ARGS_MAX], *envp[ENV_MAX], *cwd = NULL;
    char index[CX_PATH_BYTES_MAX + 32], other[CX_PATH_BYTES_MAX + 32];
    call_place place;
    CX_ASSERT(call->bare || call->work_tree != NULL || call->git_dir != NULL ||
              !git->hostile); /* I3 */
    if (git->options.seen != NULL)
        git->options.seen(git->options.seen_arg, call);
    CX_TRY(resolve_call_place(git, call, other, sizeof other, &place, &cwd, err));
    CX_TRY(build_command_line(&git->options, &place, call, argv, envp, index, sizeof index, err));
    cx_git_call limited = *call;
    if (git->hostile && limited.memory_bytes == 0)
        limited.memory_bytes = CX_GIT_HOSTILE_MEMORY_BYTES;
    return run_git_process(&git->options, argv, envp, cwd, &limited, out, out_exit, err);
}

cx_status cx_git_no_index(const cx_git *git, char *out, cx_err *err)
{
    uint64_t random[2] = {0, 0};
    if (cx_io_system()->random(cx_io_system(), random, sizeof random) < 0)
        return cx_fail(err, CX_E_IO, "cannot read random bytes");
    int size =
        snprintf(out, CX_PATH_BYTES_MAX + 1, "%s/cortex-no-index-%016llx%016llx", git->common_dir,
                 (unsigned long long)random[0], (unsigned long long)random[1]);
    return size < 0 || size > CX_PATH_BYTES_MAX
               ? cx_fail(err, CX_E_LIMIT, "the path of the repository is too long")
               : CX_SUCCESS;
}

cx_status cx_git_run(const cx_git *git, const char *const *args, cx_buf *out, cx_err *err)
{
    return cx_git_call_run(git, &(cx_git_call){.args = args}, out, NULL, err);
}

/* Parses "git version 2.39.5", perhaps with more text after it; the third number may be missing. */
static bool read_version(const char *z, unsigned parts[3])
{
    static const char before[] = "git version ";
    size_t count = 0;
    if (strncmp(z, before, sizeof before - 1) != 0)
        return false;
    for (z += sizeof before - 1; count < 3 && *z >= '0' && *z <= '9'; count++) {
        for (parts[count] = 0; *z >= '0' && *z <= '9' && parts[count] < 10000; z++)
            parts[count] = parts[count] * 10 + (unsigned)(*z - '0');
        if (*z == '.')
            z++;
    }
    return count >= 2;
}

cx_status cx_git_version(const char *program, unsigned *out, cx_err *err)
{
    const char *argv[ARGS_MAX], *envp[ENV_MAX];
    cx_git_options with = CX_GIT_OPTIONS_INIT;
    cx_git_call call = {.args = CX_GIT_ARGS("version")};
    unsigned parts[3] = {0, 0, 0};
    cx_buf text;
    with.program = program != NULL ? program : cx_git_program();
    if (with.program == NULL)
        return cx_fail(err, CX_E_NOT_FOUND,
                       "git was not found in /usr/local/bin, /usr/bin or /bin; install it");
    cx_buf_init(&text, cx_alloc_default());
    const call_place nowhere = {.home = "HOME=" NO_HOME};
    cx_status status = build_command_line(&with, &nowhere, &call, argv, envp, NULL, 0, err);
    if (!cx_failed(status))
        status = run_git_process(&with, argv, envp, "/", &call, &text, NULL, err);
    const char *z = cx_failed(status) ? NULL : cx_buf_z(&text);
    if (z != NULL && !read_version(z, parts))
        status = cx_fail(err, CX_E_FORMAT, "%s does not say which version it is", with.program);
    cx_buf_done(&text);
    CX_TRY(status);
    *out = parts[0] * 10000 + parts[1] * 100 + (parts[2] > 99 ? 99 : parts[2]);
    return CX_SUCCESS;
}

cx_status cx_git_check_version(const cx_git *git, cx_err *err)
{
    unsigned version;
    CX_TRY(cx_git_version(git == NULL ? NULL : git->options.program, &version, err));
    if (version < CX_GIT_VERSION_MIN)
        return cx_fail(err, CX_E_UNSUPPORTED, "git %u.%u is too old: %u.%u or newer is needed",
                       version / 10000, version / 100 % 100, CX_GIT_VERSION_MIN / 10000,
                       CX_GIT_VERSION_MIN / 100 % 100);
    return CX_SUCCESS;
}

/* --- opening ---------------------------------------------------------------------------------- */

static const char *copy_with_prefix(cx_git *git, const char *prefix, cx_str text)
{
    return cx_arena_printf(&git->arena, "%s%.*s", prefix, (int)text.size, text.data).data;
}

/* Parses the lines of rev-parse, in the order of its options. */
static cx_status parse_repository_paths(cx_git *git, cx_str text, cx_err *err)
{
    cx_str lines[4];
    size_t count = 0;
    while (text.size != 0 && count < CX_COUNT_OF(lines)) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        lines[count++] = (cx_str){text.data, size};
        text.data += size + (end != NULL);
        text.size -= size + (end != NULL);
    }
    if (count != CX_COUNT_OF(lines) || text.size != 0)
        return cx_fail(err, CX_E_UNSUPPORTED,
                       "the path of the repository has a line break in it: move it");
    for (size_t i = 0; i < 3; i++)
        if (lines[i].size == 0 || lines[i].data[0] != '/' ||
            lines[i].size > CX_PATH_BYTES_MAX - 256)
            return cx_fail(err, CX_E_UNSUPPORTED, "git printed no usable path of the repository");
    git->oid_size = cx_str_is(lines[3], "sha1") ? 20 : cx_str_is(lines[3], "sha256") ? 32 : 0;
    if (git->oid_size == 0)
        return cx_fail(err, CX_E_UNSUPPORTED, "the repository's object format '%.*s' is unknown",
                       (int)lines[3].size, lines[3].data);
    git->worktree = copy_with_prefix(git, "", lines[0]);
    git->git_dir = copy_with_prefix(git, "", lines[1]);
    git->common_dir = copy_with_prefix(git, "", lines[2]);
    cx_str main = lines[2];
    if (cx_str_ends(main, CX_STR("/.git")) && main.size > 5)
        main.size -= 5;
    else
        main = lines[0];
    git->main_worktree = copy_with_prefix(git, "", main);
    git->git_dir_option = copy_with_prefix(git, "--git-dir=", lines[1]);
    git->common_option = copy_with_prefix(git, "--git-dir=", lines[2]);
    git->work_tree_option = copy_with_prefix(git, "--work-tree=", lines[0]);
    git->linked = !cx_str_eq(lines[1], lines[2]);
    git->common_env = git->linked ? copy_with_prefix(git, "GIT_COMMON_DIR=", lines[2]) : NULL;
    return (git->linked && git->common_env == NULL) || git->worktree == NULL ||
                   git->git_dir == NULL || git->common_dir == NULL || git->main_worktree == NULL ||
                   git->git_dir_option == NULL || git->common_option == NULL ||
                   git->work_tree_option == NULL
               ? cx_fail_nomem(err)
               : CX_SUCCESS;
}

static cx_status find_repository(cx_git *git, const char *folder, cx_err *err)
{
    const char *argv[ARGS_MAX], *envp[ENV_MAX];
    cx_git_call call = {.args = CX_GIT_ARGS("rev-parse", "--path-format=absolute",
                                            "--show-toplevel", "--absolute-git-dir",
                                            "--git-common-dir", "--show-object-format")};
    cx_buf text;
    int code = 0;
    cx_buf_init(&text, git->alloc);
    cx_status status;
    const call_place unknown = {.home = git->home};
    CX_TRY_GOTO(status,
                build_command_line(&git->options, &unknown, &call, argv, envp, NULL, 0, err));
    CX_TRY_GOTO(status,
                run_git_process(&git->options, argv, envp, folder, &call, &text, &code, err));
    if (code != 0)
        status = cx_fail(err, CX_E_NOT_FOUND,
                         "%s is not in the work tree of a git repository that this user may use",
                         folder);
    else
        status = parse_repository_paths(git, cx_buf_str(&text), err);
done:
    cx_buf_done(&text);
    return status;
}

static cx_git *allocate_git(const cx_git_options *options, const cx_alloc *alloc)
{
    cx_git *git = alloc->resize(alloc->ctx, NULL, 0, sizeof *git);
    if (git == NULL)
        return NULL;
    memset(git, 0, sizeof *git);
    git->alloc = alloc;
    cx_arena_init(&git->arena, alloc, 0);
    git->options = options == NULL ? CX_GIT_OPTIONS_INIT : *options;
    return git;
}

/* Copies the paths of the program and of its home. */
static cx_status copy_program_paths(cx_git *git, const char *program, const char *home, cx_err *err)
{
    git->options.program = copy_with_prefix(git, "", cx_str_z(program));
    git->options.home = copy_with_prefix(git, "", cx_str_z(home));
    git->home = copy_with_prefix(git, "HOME=", cx_str_z(home));
    return git->options.program == NULL || git->options.home == NULL || git->home == NULL
               ? cx_fail_nomem(err)
               : CX_SUCCESS;
}

cx_status cx_git_open(const char *folder, const cx_git_options *options, const cx_alloc *alloc,
                      cx_git **out, cx_err *err)
{
    cx_git *git = allocate_git(options, alloc == NULL ? cx_alloc_default() : alloc);
    if (git == NULL)
        return cx_fail_nomem(err);
    const char *program = git->options.program != NULL ? git->options.program : cx_git_program();
    const char *home = git->options.home != NULL ? git->options.home : NO_HOME;
    cx_status status;
    if (program == NULL)
        status = cx_fail(err, CX_E_NOT_FOUND,
                         "git was not found in /usr/local/bin, /usr/bin or /bin; install it");
    else if (program[0] != '/' || home[0] != '/')
        status = cx_fail(err, CX_E_USAGE, "git and its home must be absolute paths");
    else
        status = copy_program_paths(git, program, home, err);
    if (!cx_failed(status))
        status = find_repository(git, folder, err);
    if (cx_failed(status)) {
        cx_git_close(git);
        return status;
    }
    *out = git;
    return CX_SUCCESS;
}

cx_status cx_git_open_checkout(const cx_git *repo, const cx_git_checkout *where, cx_git **out,
                               cx_err *err)
{
    cx_git *git = allocate_git(&repo->options, repo->alloc);
    if (git == NULL)
        return cx_fail_nomem(err);
    CX_ASSERT(where->path[0] == '/' && where->git_dir[0] == '/');
    cx_str path = cx_str_z(where->path), git_dir = cx_str_z(where->git_dir);
    cx_str common = cx_str_z(repo->common_dir);
    cx_status status = copy_program_paths(git, repo->options.program, repo->options.home, err);
    git->worktree = copy_with_prefix(git, "", path);
    git->git_dir = copy_with_prefix(git, "", git_dir);
    git->common_dir = copy_with_prefix(git, "", common);
    git->main_worktree = copy_with_prefix(git, "", cx_str_z(repo->main_worktree));
    git->git_dir_option = copy_with_prefix(git, "--git-dir=", git_dir);
    git->common_option = copy_with_prefix(git, "--git-dir=", common);
    git->work_tree_option = copy_with_prefix(git, "--work-tree=", path);
    git->common_env = copy_with_prefix(git, "GIT_COMMON_DIR=", common);
    git->oid_size = repo->oid_size;
    git->hostile = where->hostile;
    git->linked = !cx_str_eq(git_dir, common);
    if (!cx_failed(status) &&
        (git->worktree == NULL || git->git_dir == NULL || git->common_dir == NULL ||
         git->main_worktree == NULL || git->git_dir_option == NULL || git->common_option == NULL ||
         git->work_tree_option == NULL || git->common_env == NULL))
        status = cx_fail_nomem(err);
    if (!cx_failed(status) && path.size > CX_PATH_BYTES_MAX - 256)
        status = cx_fail(err, CX_E_LIMIT, "the path of the work tree is too long");
    if (cx_failed(status)) {
        cx_git_close(git);
        return status;
    }
    if (!git->linked)
        git->common_env = NULL;
    *out = git;
    return CX_SUCCESS;
}

void cx_git_close(cx_git *git)
{
    if (git == NULL)
        return;
    cx_arena_done(&git->arena);
    git->alloc->resize(git->alloc->ctx, git, sizeof *git, 0);
}

const char *cx_git_worktree(const cx_git *git)
{
    return git->worktree;
}
const char *cx_git_dir(const cx_git *git)
{
    return git->git_dir;
}
const char *cx_git_common_dir(const cx_git *git)
{
    return git->common_dir;
}
const char *cx_git_main_worktree(const cx_git *git)
{
    return git->main_worktree;
}
bool cx_git_is_linked(const cx_git *git)
{
    return git->linked;
}
bool cx_git_is_hostile(const cx_git *git)
{
    return git->hostile;
}
size_t cx_git_oid_size(const cx_git *git)
{
    return git->oid_size;
}
cx_git_options cx_git_options_of(const cx_git *git)
{
    return git->options;
}
