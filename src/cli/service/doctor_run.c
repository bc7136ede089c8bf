/*
 * doctor_run.c - checks what governed runs need (run.md §20): git, the sandbox, and in a
 * repository its runtime root, policies, schemas, trusted folders, runner, hooks and ledger.
 *
 * Everything is tested the way a run uses it, and nothing is left on the disk.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/api.h"
#include "cli/service/doctor.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "command/api.h"
#include "contract/api.h"
#include "agent/api.h"
#include "sandbox/api.h"
#include "rules/api.h"

#define HOOK_BYTES_MAX 65536
#define HANDSHAKE_MS 60000

typedef struct exam {
    cx_doctor *doctor;
    const cx_cli_args *args;
    cx_cli_place place;
    bool in_repository;
    bool prepared; /* the runtime root exists: runs are expected */
    cx_run_policy policy;
    bool has_policy;
    cx_sandbox *box; /* NULL = it could not be tried */
} exam;

/* What only runs need is a failure where runs are wanted. */
static cx_doctor_status missing_status(const exam *e)
{
    return e->prepared ? CX_DOCTOR_FAIL : CX_DOCTOR_WARN;
}

/* --- the machine ------------------------------------------------------------------------------ */

static void check_git(exam *e)
{
    unsigned version = 0;
    cx_err err;
    const char *program = cx_git_program();
    if (program == NULL || cx_failed(cx_git_version(NULL, &version, &err)))
        cx_doctor_note(e->doctor, "git", missing_status(e), "install git 2.38 or newer", "%s",
                       program == NULL ? "no git of root in /usr/local/bin, /usr/bin, /bin"
                                       : err.message);
    else
        cx_doctor_note(e->doctor, "git",
                       version >= CX_GIT_VERSION_MIN ? CX_DOCTOR_OK : missing_status(e),
                       "install git 2.38 or newer", "%s is version %u.%u.%u%s", program,
                       version / 10000, version / 100 % 100, version % 100,
                       version >= CX_GIT_VERSION_MIN ? "" : ": runs need merge-tree --write-tree");
}

/* One line for a group of layers; the first missing one gives the reason. */
static void report_layers(exam *e, const cx_sandbox *box, const char *name, unsigned layers,
                          const char *have)
{
    for (size_t i = 0; i < CX_SANDBOX_LAYER_COUNT; i++) {
        if ((layers & 1u << i) == 0 || (box->layers & 1u << i) != 0)
            continue;
        bool required = (CX_SANDBOX_REQUIRED & 1u << i) != 0;
        cx_str fix =
            cx_arena_printf(&e->doctor->cli->arena, "%s", box->fix[i] == NULL ? "" : box->fix[i]);
        cx_doctor_note(e->doctor, name, required ? missing_status(e) : CX_DOCTOR_WARN,
                       fix.size == 0 ? NULL : fix.data, "%s",
                       box->reason[i] == NULL ? "not there" : box->reason[i]);
        return;
    }
    cx_doctor_note(e->doctor, name, CX_DOCTOR_OK, NULL, "%s", have);
}

static void check_sandbox(exam *e)
{
    cx_err err;
    const char *const hide[] = {e->place.root};
    cx_sandbox_options options = {.hide = hide, .hide_count = e->in_repository};
    if (cx_failed(cx_sandbox_supported(&err))) {
        cx_doctor_note(e->doctor, "sandbox", missing_status(e), NULL, "%s", err.message);
        return;
    }
    if (cx_failed(cx_sandbox_open(&options, &e->box, &err))) {
        cx_doctor_note(e->doctor, "sandbox", missing_status(e), NULL, "the test failed to run: %s",
                       err.message);
        return;
    }
    const cx_sandbox *box = e->box;
    char landlock[64];
    (void)snprintf(landlock, sizeof landlock, "the kernel's ABI is %d", box->landlock_abi);
    report_layers(e, box, "userns", CX_SANDBOX_USER | CX_SANDBOX_PID | CX_SANDBOX_NET,
                  "user, pid, ipc, uts and net namespaces can be made");
    report_layers(e, box, "bwrap", CX_SANDBOX_FILES,
                  "a program was run in its own mount namespace");
    report_layers(e, box, "seccomp", CX_SANDBOX_SECCOMP, "system calls are filtered");
    report_layers(e, box, "landlock", CX_SANDBOX_LANDLOCK, landlock);
    report_layers(e, box, "cgroup", CX_SANDBOX_CGROUP,
                  "memory or processes of a group are limited");
}

/* --- the repository --------------------------------------------------------------------------- */

static bool is_there(const char *path)
{
    cx_facts facts;
    return !cx_failed(cx_path_facts(path, true, &facts, NULL));
}

static void find_repository(exam *e)
{
    cx_err err;
    if (cx_failed(cx_cli_place_open(e->doctor->cli, e->args, &e->place, &err))) {
        /* A relative CORTEXPILOT_RUNTIME_ROOT is a mistake wherever we are. */
        if (err.code == CX_E_USAGE)
            cx_doctor_note(e->doctor, "runtime-root", CX_DOCTOR_FAIL, NULL, "%s", err.message);
        return;
    }
    e->in_repository = true;
    e->prepared = is_there(e->place.root);
}

static cx_status try_root(exam *e, cx_err *err)
{
    const cx_io *io = e->doctor->cli->io;
    cx_str path = cx_arena_printf(&e->doctor->cli->arena, "%s/.doctor-%016" PRIx64, e->place.root,
                                  cx_io_seed(io));
    cx_file file;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    int code = io->open(io, path.data, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file);
    if (code != 0)
        return cx_fail_os(err, -code, "cannot write in %s", e->place.root);
    cx_status status = cx_io_write_all(io, file, path.data, "cortex\n", 7, err);
    code = io->sync(io, file, false);
    if (!cx_failed(status) && code != 0)
        status = cx_fail_os(err, -code, "cannot sync %s", path.data);
    (void)io->close(io, file);
    (void)io->unlink(io, path.data);
    return cx_failed(status) ? status : cx_io_sync_folder(io, e->place.root, err);
}

static void check_root(exam *e)
{
    static const char *const fix = "cortex init, and commit .gitignore";
    cx_str inside = e->place.ground.runtime_root;
    cx_str probe = cx_arena_printf(&e->doctor->cli->arena, "%.*s/runs", (int)inside.size,
                                   inside.data == NULL ? "" : inside.data);
    bool ignored = inside.size == 0;
    cx_err err;
    if (!is_there(e->place.root)) {
        cx_doctor_note(e->doctor, "runtime-root", CX_DOCTOR_WARN, "cortex init",
                       "%s does not exist yet", e->place.root);
        return;
    }
    if (!ignored && (probe.data == NULL ||
                     cx_failed(cx_git_is_ignored(e->place.git, probe.data, &ignored, &err))))
        ignored = false;
    if (!ignored)
        cx_doctor_note(e->doctor, "runtime-root", CX_DOCTOR_FAIL, fix,
                       "%s is not ignored by git: runs refuse to start", e->place.root);
    else if (cx_failed(try_root(e, &err)))
        cx_doctor_note(e->doctor, "fsync", CX_DOCTOR_FAIL, "free space, or another file system",
                       "%s", err.message);
    else {
        cx_doctor_note(e->doctor, "runtime-root", CX_DOCTOR_OK, NULL, "%s is %s", e->place.root,
                       inside.size == 0 ? "outside of the work tree" : "ignored by git");
        cx_doctor_note(e->doctor, "fsync", CX_DOCTOR_OK, NULL, "files and folders can be synced");
    }
}

static void check_policies(exam *e)
{
    cx_run_findings findings;
    cx_arena *arena = &e->doctor->cli->arena;
    cx_err err = {0};
    cx_str head;
    cx_run_findings_init(&findings, arena);
    cx_status status = e->place.repo.resolve(e->place.repo.arg, CX_STR("HEAD"), arena, &head, &err);
    if (!cx_failed(status) && head.size == 0) {
        cx_doctor_note(e->doctor, "policies", CX_DOCTOR_WARN, "commit something",
                       "there is no commit yet, so no baseline");
    } else {
        if (!cx_failed(status))
            status = cx_run_policy_load(&e->place.repo, head, arena, &findings, &e->policy, &err);
        e->has_policy = !cx_failed(status) && findings.refusing == 0;
        if (cx_failed(status))
            cx_doctor_note(e->doctor, "policies", CX_DOCTOR_FAIL, NULL, "%s", err.message);
        else if (!e->has_policy)
            cx_doctor_note(
                e->doctor, "policies", CX_DOCTOR_FAIL,
                "fix the file and commit it; 'cortex init' writes missing ones", "%.*s: %.*s",
                (int)findings.list.items[0].where.size, findings.list.items[0].where.data,
                (int)findings.list.items[0].message.size, findings.list.items[0].message.data);
        else
            cx_doctor_note(e->doctor, "policies", CX_DOCTOR_OK, NULL,
                           e->policy.built_in ? "the built-in ones: HEAD has no policies/"
                                              : "those of HEAD can be read");
    }
    cx_run_findings_done(&findings);
}

typedef struct folder_reader {
    const char *folder;
} folder_reader;

static cx_status read_schema(void *arg, const char *name, cx_arena *arena, cx_str *out, cx_err *err)
{
    const folder_reader *reader = arg;
    cx_str path = cx_arena_printf(arena, "%s/schemas/%s", reader->folder, name);
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_status status = path.data == NULL ? cx_fail_nomem(err)
                                         : cx_io_read_file(cx_io_system(), path.data,
                                                           CX_RUN_JSON_BYTES_MAX, &text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

static void check_schemas(exam *e)
{
    cx_run_findings findings;
    cx_err err = {0};
    folder_reader reader = {e->in_repository ? e->place.worktree : ""};
    cx_str own =
        cx_arena_printf(&e->doctor->cli->arena, "%s/schemas/schema_registry.json", reader.folder);
    bool has_own = e->in_repository && own.data != NULL && is_there(own.data);
    cx_run_findings_init(&findings, &e->doctor->cli->arena);
    cx_status status =
        cx_run_schema_registry_check(has_own ? read_schema : NULL, &reader, &findings, &err);
    if (cx_failed(status))
        cx_doctor_note(e->doctor, "schemas", CX_DOCTOR_FAIL, NULL, "%s", err.message);
    else if (findings.refusing != 0)
        cx_doctor_note(
            e->doctor, "schemas", CX_DOCTOR_FAIL, "undo the change: git checkout -- schemas",
            "%.*s: %.*s", (int)findings.list.items[0].where.size, findings.list.items[0].where.data,
            (int)findings.list.items[0].message.size, findings.list.items[0].message.data);
    else
        cx_doctor_note(e->doctor, "schemas", CX_DOCTOR_OK, NULL, "%s match the registry",
                       has_own ? "those of the repository" : "those of the program");
    cx_run_findings_done(&findings);
}

static void check_trusted(exam *e)
{
    static const cx_str usual[] = {{"/usr/local/bin", 14}, {"/usr/bin", 8}, {"/bin", 4}};
    const cx_str *list = usual;
    size_t count = CX_COUNT_OF(usual);
    uint32_t uid = 0;
    if (e->has_policy && e->policy.config.trusted_dirs.count != 0) {
        list = e->policy.config.trusted_dirs.items;
        count = e->policy.config.trusted_dirs.count;
    }
    if (e->has_policy && e->policy.config.has_trusted_uid)
        uid = e->policy.config.trusted_uid;
    for (size_t i = 0; i < count; i++) {
        cx_facts facts;
        cx_str path = cx_arena_copy_str(&e->doctor->cli->arena, list[i]);
        if (path.data == NULL || cx_failed(cx_path_facts(path.data, true, &facts, NULL)))
            continue; /* nothing to copy */
        if (facts.kind == CX_FILE_FOLDER && (facts.mode & 022) == 0 &&
            (facts.owner_id == 0 || facts.owner_id == uid))
            continue;
        cx_doctor_note(e->doctor, "trusted-dirs", CX_DOCTOR_FAIL,
                       "make it owned and writable by root only, or take it out of trusted_dirs",
                       "%s can be changed by users other than root", path.data);
        return;
    }
    cx_doctor_note(e->doctor, "trusted-dirs", CX_DOCTOR_OK, NULL,
                   "programs come from %zu folders that only root can change", count);
}

/* --- the runner ------------------------------------------------------------------------------- */

static cx_status no_tool(void *arg, const cx_json *payload, cx_err *err)
{
    (void)arg;
    (void)payload;
    (void)err;
    return CX_SUCCESS;
}

static cx_status never_granted(void *arg, const cx_runner_request *request, bool *out_granted,
                               cx_err *err)
{
    (void)arg;
    (void)request;
    (void)err;
    *out_granted = false;
    return CX_SUCCESS;
}

static cx_status discard_line(void *arg, cx_bytes line, cx_err *err)
{
    (void)arg;
    (void)line;
    (void)err;
    return CX_SUCCESS;
}

/* initialize and tools/list, with the repository read-only and as much network as it is configured
 * to need. */
static cx_status shake_hands(exam *e, const cx_run_runner_config *runner, cx_str program,
                             cx_err *err)
{
    cx_cli *cli = e->doctor->cli;
    const cx_runner_settings settings = {
        .name = CX_STR(CX_RUNNER_NAME_MCP),
        .profile = runner->name,
        .argv = runner->argv.items,
        .argv_count = runner->argv.count,
        .network = runner->needs_network,
        .connect_ms = runner->connect_sec * 1000,
        .close_ms = runner->close_sec * 1000,
    };
    const cx_runner_host host = {NULL, no_tool, never_granted, discard_line, NULL};
    cx_sandbox_spec spec = CX_SANDBOX_SPEC_INIT;
    spec.worktree = e->place.worktree;
    spec.read_only = true;
    spec.network = runner->needs_network;
    const cx_runner_turn turn = {
        .prompt = "",
        .worktree = e->place.worktree,
        .scratch = "/tmp",
        .sandbox_mode = CX_STR("read-only"),
        .approval_policy = CX_STR("never"),
        .timeout_ms = HANDSHAKE_MS,
        .program = program.data,
        .box = e->box,
        .sandbox = &spec,
        .arena = &cli->arena,
    };
    cx_runner *opened = NULL;
    CX_TRY(cx_runner_open(&settings, cli->alloc, cli->io, &opened, err));
    cx_status status = opened->start(opened, &host, &turn, err);
    opened->stop(opened);
    return status;
}

static void check_handshake(exam *e, const cx_run_runner_config *runner, cx_str program)
{
    cx_err err;
    if (runner->kind != CX_RUNNER_MCP || e->box == NULL || e->box->missing != 0)
        return;
    if (cx_failed(shake_hands(e, runner, program, &err)))
        cx_doctor_note(e->doctor, "handshake", missing_status(e),
                       "start the runner by hand and read its output", "%s", err.message);
    else
        cx_doctor_note(e->doctor, "handshake", CX_DOCTOR_OK, NULL,
                       "%.*s answers in the sandbox and has the tool it is called by",
                       (int)runner->name.size, runner->name.data);
}

static void check_runner(exam *e)
{
    const cx_run_runner_config *runner =
        e->has_policy ? cx_run_config_runner(&e->policy.config, e->policy.config.default_runner)
                      : NULL;
    if (!e->has_policy)
        return;
    if (runner == NULL || runner->argv.count == 0) {
        cx_doctor_note(
            e->doctor, "runner", CX_DOCTOR_WARN, "add it to runners in policies/cortex.json",
            "no runner '%.*s' is configured: only replay scripts can be run",
            (int)e->policy.config.default_runner.size, e->policy.config.default_runner.data);
        return;
    }
    const cx_run_trust trust = {.folders = e->policy.config.trusted_dirs.items,
                                .folder_count = e->policy.config.trusted_dirs.count,
                                .owner_uid = e->policy.config.trusted_uid};
    cx_run_executable found = {0};
    const char *why = NULL;
    cx_err err;
    cx_str name = runner->argv.items[0];
    if (cx_failed(cx_run_trusted_find(&trust, name, &e->doctor->cli->arena, &found, &why, &err)))
        why = err.message;
    cx_str kept = cx_arena_copy_str(&e->doctor->cli->arena, cx_str_z(why == NULL ? "" : why));
    if (why != NULL)
        cx_doctor_note(e->doctor, "runner", CX_DOCTOR_WARN,
                       "install it in a trusted folder, or configure another runner", "%.*s: %s",
                       (int)name.size, name.data, kept.data == NULL ? "" : kept.data);
    else
        cx_doctor_note(e->doctor, "runner", CX_DOCTOR_OK, NULL, "%.*s is %.*s",
                       (int)runner->name.size, runner->name.data, (int)found.path.size,
                       found.path.data);
    cx_str program =
        why == NULL ? cx_arena_copy_str(&e->doctor->cli->arena, found.path) : (cx_str){NULL, 0};
    if (program.data != NULL)
        check_handshake(e, runner, program);
}

/* --- agents that are built in ----------------------------------------------------------------- */

/* The file of the program in PATH; data NULL when there is none. */
static cx_str find_in_path(cx_arena *arena, const char *name)
{
    const char *at = getenv("PATH");
    while (at != NULL && *at != 0) {
        size_t size = strcspn(at, ":");
        cx_facts facts;
        cx_str path = cx_arena_printf(arena, "%.*s/%s", (int)(size > 4096 ? 4096 : size), at, name);
        if (size != 0 && *at == '/' && path.data != NULL &&
            !cx_failed(cx_path_facts(path.data, true, &facts, NULL)) &&
            facts.kind == CX_FILE_REGULAR && (facts.mode & 0111) != 0)
            return path;
        at += size + (at[size] == ':');
    }
    return (cx_str){NULL, 0};
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != 0;
}

/* Whether its login reaches the sandbox, which has neither the user's HOME nor other variables. */
static bool is_logged_in(const cx_agent_preset *preset)
{
    for (size_t i = 0; preset->login[i] != NULL; i++)
        if (is_set(preset->login[i]))
            return true;
    return preset->codex_home && is_set(CX_CODEX_BASE_HOME_ENV);
}

static void check_login(exam *e, const cx_agent_preset *preset, const char *line)
{
    cx_arena *arena = &e->doctor->cli->arena;
    const char *home = getenv("HOME");
    cx_str file = cx_arena_printf(arena, "%s/%s", home == NULL ? "" : home, preset->login_file);
    cx_str fix = cx_arena_printf(
        arena, preset->codex_home ? "set %s, or %s to a folder with its login" : "set %s%.0s",
        preset->login[0], CX_CODEX_BASE_HOME_ENV);
    bool has_file = file.data != NULL && is_there(file.data);
    if (is_logged_in(preset))
        cx_doctor_note(e->doctor, line, CX_DOCTOR_OK, NULL,
                       "%s is pinned, its login reaches the sandbox; trust: %s", preset->title,
                       preset->trust);
    else
        cx_doctor_note(e->doctor, line, CX_DOCTOR_WARN, fix.data,
                       "%s is pinned, but has no login%s", preset->title,
                       has_file ? ": the one in its folder below HOME is not visible in a sandbox"
                                : "");
}

static void check_agent(exam *e, const cx_agent_preset *preset)
{
    cx_arena *arena = &e->doctor->cli->arena;
    const cx_run_config *config = &e->policy.config;
    cx_str name = cx_str_z(preset->name), path = find_in_path(arena, preset->name);
    cx_str line = cx_arena_printf(arena, "agent-%s", preset->name);
    bool configured = cx_run_config_runner(config, name) != NULL;
    const cx_run_trust trust = {.folders = config->trusted_dirs.items,
                                .folder_count = config->trusted_dirs.count,
                                .owner_uid = config->has_trusted_uid ? config->trusted_uid : 0};
    cx_run_executable found = {0};
    const char *why = NULL;
    cx_err err;
    if (line.data == NULL || (path.data == NULL && !configured))
        return;
    if (cx_failed(cx_run_trusted_find(&trust, name, arena, &found, &why, &err)))
        why = err.message;
    if (why != NULL) {
        cx_str kept = cx_arena_copy_str(arena, cx_str_z(why));
        cx_str fix = cx_arena_printf(
            arena,
            "in policies/cortex.json add its folder to trusted_dirs, the folder of its package to "
            "read_only, and trusted_uid when it is not root's; then 'cortex runner add %s'",
            preset->name);
        cx_doctor_note(e->doctor, line.data, CX_DOCTOR_WARN, fix.data, "%s is %s; %s",
                       preset->title, path.data == NULL ? "not in PATH" : path.data,
                       kept.data == NULL ? "" : kept.data);
    } else if (!configured) {
        cx_str fix = cx_arena_printf(arena, "cortex runner add %s", preset->name);
        cx_doctor_note(e->doctor, line.data, CX_DOCTOR_OK, NULL,
                       "%s is installed; '%s' makes it an agent of this repository", preset->title,
                       fix.data == NULL ? "" : fix.data);
    } else {
        check_login(e, preset, line.data);
    }
}

static void check_agents(exam *e)
{
    for (size_t i = 0; e->has_policy && i < cx_agent_preset_count; i++)
        check_agent(e, &cx_agent_presets[i]);
}

static void check_hooks(exam *e)
{
    static const char *const names[] = {"pre-commit", "pre-push"};
    size_t ours = 0;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        cx_str path = cx_arena_printf(&e->doctor->cli->arena, "%s/hooks/%s",
                                      cx_git_common_dir(e->place.git), names[i]);
        cx_buf text;
        cx_buf_init(&text, e->doctor->cli->alloc);
        if (path.data != NULL && !cx_failed(cx_io_read_file(e->doctor->cli->io, path.data,
                                                            HOOK_BYTES_MAX, &text, NULL))) {
            cx_str mark = cx_arena_printf(&e->doctor->cli->arena, "hook %s", names[i]);
            const char *all = cx_buf_z(&text);
            ours += all != NULL && mark.data != NULL && strstr(all, mark.data) != NULL;
        }
        cx_buf_done(&text);
    }
    cx_doctor_note(e->doctor, "hooks", ours == CX_COUNT_OF(names) ? CX_DOCTOR_OK : CX_DOCTOR_WARN,
                   "cortex hooks install", "%zu of %zu are installed%s", ours, CX_COUNT_OF(names),
                   ours == CX_COUNT_OF(names) ? "" : "; the gates of a run do not depend on them");
}

static void check_ledger(exam *e)
{
    const char *path = NULL;
    cx_home *home = NULL;
    cx_err err;
    cx_cli *cli = e->doctor->cli;
    const cx_home_options reading = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    if (cx_failed(cx_cli_home_path(cli, e->args, &path, &err)) ||
        cx_failed(cx_home_open(path, &reading, &home, &err))) {
        cx_doctor_note(e->doctor, "ledger", CX_DOCTOR_WARN, "cortex init",
                       "runs need a data directory, which seals them: %s", err.message);
        return;
    }
    cx_doctor_note(e->doctor, "ledger", CX_DOCTOR_OK, NULL, "%s accepts events and seals", path);
    (void)cx_home_close(home, NULL).code; /* nothing was written */
}

void cx_doctor_check_runs(cx_doctor *doctor, const cx_cli_args *args)
{
    exam e = {.doctor = doctor, .args = args};
    find_repository(&e);
    check_git(&e);
    check_sandbox(&e);
    if (e.in_repository) {
        check_root(&e);
        check_policies(&e);
    }
    check_schemas(&e);
    check_trusted(&e);
    if (e.in_repository) {
        check_runner(&e);
        check_agents(&e);
        check_hooks(&e);
    }
    check_ledger(&e);
    cx_sandbox_close(e.box);
    cx_cli_place_close(&e.place);
}
