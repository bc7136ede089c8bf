/*
 * config.c - policies/cortex.json.
 *
 * Strict on purpose: a misspelt member would silently leave a limit at its default.
 */
#include "contract/decode.h"
#include "rules/api.h"

#define LITERAL(text)            \
    {                            \
        (text), sizeof(text) - 1 \
    }

static const cx_str default_argv[] = {LITERAL("codex"), LITERAL("mcp-server")};
static const cx_str default_provides[] = {LITERAL("codex"), LITERAL("01-filesystem")};
static const cx_str default_trusted[] = {LITERAL("/usr/local/bin"), LITERAL("/usr/bin"),
                                         LITERAL("/bin")};
static const cx_run_runner_config default_runners[] = {{
    .name = LITERAL("mcp"),
    .kind = CX_RUNNER_MCP,
    .argv = {default_argv, CX_COUNT_OF(default_argv)},
    .provides = {default_provides, CX_COUNT_OF(default_provides)},
    .connect_sec = 20,
    .close_sec = 5,
}};

enum { RUNNERS_MAX = 64, LIST_MAX = 1024 };

bool cx_str_list_has(cx_str_list words, cx_str text)
{
    CX_ASSERT(words.count == 0 || words.items != NULL);
    for (size_t i = 0; i < words.count; i++)
        if (cx_str_eq(words.items[i], text))
            return true;
    return false;
}

void cx_run_config_default(cx_run_config *out)
{
    CX_ASSERT(out != NULL);
    *out = (cx_run_config){
        .mcp_only = true,
        .default_runner = LITERAL("mcp"),
        .runners = default_runners,
        .runner_count = CX_COUNT_OF(default_runners),
        .trusted_dirs = {default_trusted, CX_COUNT_OF(default_trusted)},
        .approvers_path = LITERAL("policies/approvers.json"),
        .main_branch = LITERAL("main"),
        .limits = {.changed_paths = 10000,
                   .changed_bytes = UINT64_C(64) << 20,
                   .output_bytes = CX_RUN_OUTPUT_BYTES_MAX,
                   .file_bytes = UINT64_C(1) << 30,
                   .memory_bytes = UINT64_C(4) << 30,
                   .processes = 256,
                   .open_files = 1024,
                   .command_sec = 3600,
                   .approval_wait_sec = 0,
                   .lock_ttl_sec = 900},
    };
}

/* A path from the root without `..`, `.` or empty components. */
static bool is_absolute(cx_str path)
{
    if (path.size < 2 || path.size > CX_RUN_PATH_BYTES_MAX || path.data[0] != '/')
        return false;
    for (size_t at = 0; at < path.size;) {
        size_t end = at + 1;
        while (end < path.size && path.data[end] != '/')
            end++;
        cx_str part = cx_str_from(path.data + at + 1, end - at - 1);
        if (part.size == 0 || cx_str_eq(part, CX_STR(".")) || cx_str_eq(part, CX_STR("..")))
            return false;
        at = end;
    }
    return true;
}

static void check_absolute(cx_decoder *decoder, cx_str_list words, const char *where)
{
    for (size_t i = 0; i < words.count; i++)
        if (!is_absolute(words.items[i]))
            cx_decode_fault(decoder, where,
                            "absolute paths without '.', '..' and a '/' at the end");
}

/* `[A-Za-z_][A-Za-z0-9_]*`: names of environment variables. */
static void check_names(cx_decoder *decoder, cx_str_list words, const char *where)
{
    for (size_t i = 0; i < words.count; i++)
        for (size_t k = 0; k < words.items[i].size; k++) {
            char byte = words.items[i].data[k];
            bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
                          byte == '_' || (k != 0 && byte >= '0' && byte <= '9');
            if (!letter) {
                cx_decode_fault(decoder, where, "names of environment variables");
                return;
            }
        }
}

/* Lower-case hex of 32 bytes. */
static void check_sha256(cx_decoder *decoder, cx_str text, const char *where)
{
    bool good = text.size == 64;
    for (size_t i = 0; good && i < text.size; i++)
        good = (text.data[i] >= '0' && text.data[i] <= '9') ||
               (text.data[i] >= 'a' && text.data[i] <= 'f');
    if (text.size != 0 && !good)
        cx_decode_fault(decoder, where, "64 lower-case hexadecimal digits");
}

static void check_argv(cx_decoder *decoder, cx_str_list argv, const char *where)
{
    if (argv.count == 0)
        cx_decode_fault(decoder, where, "a program and its arguments");
}

/* --- runners and integrations ----------------------------------------------------------------- */

static void read_runner(cx_decoder *decoder, const cx_json_member *member,
                        cx_run_runner_config *out)
{
    static const char *const names[] = {"kind",     "argv",   "env",         "model",    "network",
                                        "provides", "config", "connect_sec", "close_sec"};
    const cx_json *value = &member->value;
    cx_str kind = CX_STR("");
    *out = (cx_run_runner_config){
        .name = cx_json_text(&member->name), .connect_sec = 20, .close_sec = 5};
    cx_decode_object(decoder, value, "runners.*", names, CX_COUNT_OF(names));
    (void)cx_decode_need(decoder, value, "runners.*.kind");
    (void)cx_decode_need(decoder, value, "runners.*.argv");
    cx_decode_str(decoder, value, "runners.*.kind", &kind);
    if (cx_str_eq(kind, CX_STR("exec")))
        out->kind = CX_RUNNER_EXEC;
    else if (!cx_str_eq(kind, CX_STR("mcp")))
        cx_decode_fault(decoder, "runners.*.kind", "\"mcp\" or \"exec\"");
    cx_decode_words(decoder, value, "runners.*.argv", &out->argv);
    check_argv(decoder, out->argv, "runners.*.argv");
    cx_decode_words(decoder, value, "runners.*.env", &out->env);
    check_names(decoder, out->env, "runners.*.env");
    cx_decode_str(decoder, value, "runners.*.model", &out->model);
    cx_decode_bool(decoder, value, "runners.*.network", &out->needs_network);
    cx_decode_words(decoder, value, "runners.*.provides", &out->provides);
    cx_decode_u32(decoder, value, "runners.*.connect_sec", 1, 3600, &out->connect_sec);
    cx_decode_u32(decoder, value, "runners.*.close_sec", 1, 60, &out->close_sec);
    out->sent = decoder->failed ? NULL : cx_json_get(value, CX_STR("config"));
    if (out->sent != NULL && out->sent->type != CX_JSON_OBJECT)
        cx_decode_fault(decoder, "runners.*.config", "an object");
}

/* An object whose members are named entries; NULL after a fault or when it is absent. */
static const cx_json *named_members(cx_decoder *decoder, const cx_json *root, const char *where)
{
    const cx_json *value = decoder->failed ? NULL : cx_json_get(root, cx_str_z(where));
    if (value != NULL && (value->type != CX_JSON_OBJECT || value->count > RUNNERS_MAX)) {
        cx_decode_fault(decoder, where, "an object with at most 64 members");
        return NULL;
    }
    for (uint32_t i = 0; value != NULL && i < value->count; i++)
        if (value->members[i].name.count == 0) {
            cx_decode_fault(decoder, where, "names that are not empty");
            return NULL;
        }
    return value;
}

static void read_runners(cx_decoder *decoder, const cx_json *root, cx_run_config *out)
{
    const cx_json *value = named_members(decoder, root, "runners");
    if (value == NULL)
        return;
    cx_run_runner_config *runners =
        CX_ARENA_ARRAY(decoder->arena, cx_run_runner_config, value->count + 1);
    if (runners == NULL) {
        decoder->failed = true;
        (void)cx_fail_nomem(decoder->err);
        return;
    }
    for (uint32_t i = 0; i < value->count; i++)
        read_runner(decoder, &value->members[i], &runners[i]);
    out->runners = runners;
    out->runner_count = value->count;
}

static void read_integrations(cx_decoder *decoder, const cx_json *root, cx_run_config *out)
{
    static const char *const names[] = {"argv", "sha256", "version"};
    const cx_json *value = named_members(decoder, root, "integrations");
    if (value == NULL)
        return;
    cx_run_integration *list = CX_ARENA_ARRAY(decoder->arena, cx_run_integration, value->count + 1);
    if (list == NULL) {
        decoder->failed = true;
        (void)cx_fail_nomem(decoder->err);
        return;
    }
    for (uint32_t i = 0; i < value->count; i++) {
        const cx_json *item = &value->members[i].value;
        list[i] = (cx_run_integration){.tool = cx_json_text(&value->members[i].name)};
        cx_decode_object(decoder, item, "integrations.*", names, CX_COUNT_OF(names));
        (void)cx_decode_need(decoder, item, "integrations.*.argv");
        cx_decode_words(decoder, item, "integrations.*.argv", &list[i].argv);
        check_argv(decoder, list[i].argv, "integrations.*.argv");
        cx_decode_str(decoder, item, "integrations.*.sha256", &list[i].sha256);
        check_sha256(decoder, list[i].sha256, "integrations.*.sha256");
        cx_decode_str(decoder, item, "integrations.*.version", &list[i].version);
        if (list[i].sha256.size == 0 && list[i].version.size == 0)
            cx_decode_fault(decoder, "integrations.*", "sha256 or version, so that it is pinned");
    }
    out->integrations = list;
    out->integration_count = value->count;
}

static void read_roles(cx_decoder *decoder, const cx_json *root, cx_run_config *out)
{
    const cx_json *value = named_members(decoder, root, "roles");
    for (uint32_t i = 0; value != NULL && i < value->count; i++) {
        const cx_json_member *member = &value->members[i];
        cx_run_role role;
        if (!cx_run_role_parse(cx_json_text(&member->name), &role)) {
            cx_decode_fault(decoder, "roles", "names of roles, such as \"PM\"");
            return;
        }
        if (member->value.type != CX_JSON_STRING || member->value.count == 0) {
            cx_decode_fault(decoder, "roles.*", "the name of a runner");
            return;
        }
        out->role_runners[role] = cx_json_text(&member->value);
        if (cx_run_config_runner(out, out->role_runners[role]) == NULL)
            cx_decode_fault(decoder, "roles.*", "the name of one of \"runners\"");
    }
}

/* --- the rest --------------------------------------------------------------------------------- */

static void read_limits(cx_decoder *decoder, const cx_json *root, cx_run_config_limits *limits)
{
    static const char *const names[] = {
        "changed_paths", "changed_bytes", "output_bytes", "file_bytes",        "memory_bytes",
        "processes",     "open_files",    "command_sec",  "approval_wait_sec", "lock_ttl_sec"};
    const cx_json *value = decoder->failed ? NULL : cx_json_get(root, CX_STR("limits"));
    const uint64_t tera = UINT64_C(1) << 40;
    if (value == NULL)
        return;
    cx_decode_object(decoder, value, "limits", names, CX_COUNT_OF(names));
    cx_decode_u64(decoder, value, "limits.changed_paths", 1, 1000000, &limits->changed_paths);
    cx_decode_u64(decoder, value, "limits.changed_bytes", 1, tera, &limits->changed_bytes);
    cx_decode_u64(decoder, value, "limits.output_bytes", 1024, tera, &limits->output_bytes);
    cx_decode_u64(decoder, value, "limits.file_bytes", 1024, tera, &limits->file_bytes);
    /* null: no limit, for programs built with sanitizers, which map terabytes. */
    const cx_json *memory =
        value->type == CX_JSON_OBJECT ? CX_JSON_GET(value, "memory_bytes") : NULL;
    if (memory != NULL && memory->type == CX_JSON_NULL)
        limits->memory_bytes = UINT64_MAX;
    else
        cx_decode_u64(decoder, value, "limits.memory_bytes", UINT64_C(16) << 20, tera,
                      &limits->memory_bytes);
    cx_decode_u32(decoder, value, "limits.processes", 8, 65536, &limits->processes);
    cx_decode_u32(decoder, value, "limits.open_files", 16, 65536, &limits->open_files);
    cx_decode_u32(decoder, value, "limits.command_sec", 1, 3600, &limits->command_sec);
    cx_decode_u32(decoder, value, "limits.approval_wait_sec", 0, 86400, &limits->approval_wait_sec);
    cx_decode_u32(decoder, value, "limits.lock_ttl_sec", 0, 86400, &limits->lock_ttl_sec);
}

static void read_runner_switches(cx_decoder *decoder, const cx_json *root, cx_run_config *out)
{
    static const char *const names[] = {"mcp_only", "default"};
    const cx_json *value = decoder->failed ? NULL : cx_json_get(root, CX_STR("runner"));
    if (value == NULL)
        return;
    cx_decode_object(decoder, value, "runner", names, CX_COUNT_OF(names));
    cx_decode_bool(decoder, value, "runner.mcp_only", &out->mcp_only);
    cx_decode_str(decoder, value, "runner.default", &out->default_runner);
    if (!decoder->failed && cx_run_config_runner(out, out->default_runner) == NULL)
        cx_decode_fault(decoder, "runner.default", "the name of one of \"runners\"");
}

static void read_trust(cx_decoder *decoder, const cx_json *root, cx_run_config *out)
{
    static const char *const approver_names[] = {"path", "sha256"};
    cx_decode_words(decoder, root, "trusted_dirs", &out->trusted_dirs);
    check_absolute(decoder, out->trusted_dirs, "trusted_dirs");
    if (!decoder->failed && cx_json_get(root, CX_STR("trusted_uid")) != NULL) {
        cx_decode_u32(decoder, root, "trusted_uid", 0, INT32_MAX, &out->trusted_uid);
        out->has_trusted_uid = true;
    }
    const cx_json *approvers = decoder->failed ? NULL : cx_json_get(root, CX_STR("approvers"));
    if (approvers == NULL)
        return;
    cx_decode_object(decoder, approvers, "approvers", approver_names, CX_COUNT_OF(approver_names));
    cx_decode_str(decoder, approvers, "approvers.path", &out->approvers_path);
    if (!decoder->failed && cx_run_path_lint(out->approvers_path, NULL) != NULL)
        cx_decode_fault(decoder, "approvers.path", "a path of the repository");
    cx_decode_str(decoder, approvers, "approvers.sha256", &out->approvers_sha256);
    check_sha256(decoder, out->approvers_sha256, "approvers.sha256");
}

/* Rejects what git would read as an option or another kind of name; git itself checks the rest. */
static bool is_branch_name(cx_str name)
{
    for (size_t i = 0; i < name.size; i++)
        if ((unsigned char)name.data[i] <= ' ' || strchr("~^:?*[\\\x7f", name.data[i]) != NULL)
            return false;
    return name.size != 0 && name.size <= 255 && name.data[0] != '-' && name.data[0] != '/' &&
           !cx_str_starts(name, CX_STR("refs/")) && !cx_str_eq(name, CX_STR("HEAD"));
}

/* Paths of the repository, as those of a contract. */
static void check_paths(cx_decoder *decoder, cx_str_list words, const char *where)
{
    for (size_t i = 0; i < words.count; i++)
        if (cx_run_path_lint(words.items[i], NULL) != NULL)
            cx_decode_fault(decoder, where, "paths of the repository, such as \"node_modules\"");
}

static void read_config_members(cx_decoder *decoder, const cx_json *root, cx_run_config *out)
{
    static const char *const names[] = {"version",      "runner",           "runners",     "roles",
                                        "integrations", "trusted_dirs",     "trusted_uid", "env",
                                        "read_only",    "approvers",        "main_branch", "mcp",
                                        "limits",       "test_dependencies"};
    static const char *const mcp_names[] = {"concurrency"};
    cx_decode_object(decoder, root, "", names, CX_COUNT_OF(names));
    cx_decode_version(decoder, root);
    read_runners(decoder, root, out);
    read_runner_switches(decoder, root, out);
    if (!decoder->failed && cx_run_config_runner(out, out->default_runner) == NULL)
        cx_decode_fault(decoder, "runner.default", "the name of one of \"runners\"");
    read_roles(decoder, root, out);
    read_integrations(decoder, root, out);
    read_trust(decoder, root, out);
    cx_decode_words(decoder, root, "env", &out->env);
    check_names(decoder, out->env, "env");
    cx_decode_words(decoder, root, "read_only", &out->read_only);
    check_absolute(decoder, out->read_only, "read_only");
    cx_decode_words(decoder, root, "test_dependencies", &out->test_dependencies);
    check_paths(decoder, out->test_dependencies, "test_dependencies");
    cx_decode_str(decoder, root, "main_branch", &out->main_branch);
    if (!decoder->failed && !is_branch_name(out->main_branch))
        cx_decode_fault(decoder, "main_branch", "the name of a branch, such as \"main\"");
    const cx_json *mcp = decoder->failed ? NULL : cx_json_get(root, CX_STR("mcp"));
    if (mcp != NULL) {
        cx_decode_object(decoder, mcp, "mcp", mcp_names, CX_COUNT_OF(mcp_names));
        cx_decode_str(decoder, mcp, "mcp.concurrency", &out->mcp_concurrency);
    }
    read_limits(decoder, root, &out->limits);
}

cx_status cx_run_config_read(cx_str text, cx_arena *arena, cx_run_config *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    cx_err own;
    cx_json root;
    cx_run_config config;
    cx_decoder decoder = {arena, "policies/cortex.json", err == NULL ? &own : err, false};
    cx_run_config_default(&config);
    CX_TRY(cx_run_json_read(text, 0, arena, &root, decoder.err));
    cx_json *stored = CX_ARENA_NEW(arena, cx_json); /* runners borrow from it */
    if (stored == NULL)
        return cx_fail_nomem(err);
    *stored = root;
    read_config_members(&decoder, stored, &config);
    CX_TRY(cx_decode_end(&decoder));
    CX_ASSERT(cx_run_config_runner(&config, config.default_runner) != NULL); /* I2 */
    *out = config;
    return CX_SUCCESS;
}

/* --- looking up ------------------------------------------------------------------------------- */

const cx_run_runner_config *cx_run_config_runner(const cx_run_config *config, cx_str name)
{
    CX_ASSERT(config->runner_count == 0 || config->runners != NULL);
    if (cx_str_eq(name, CX_STR("app_server")))
        name = CX_STR("app-server");
    for (size_t i = 0; i < config->runner_count; i++) {
        cx_str own = config->runners[i].name;
        if (cx_str_eq(own, CX_STR("app_server")))
            own = CX_STR("app-server");
        if (cx_str_eq(own, name))
            return &config->runners[i];
    }
    return NULL;
}

const cx_run_integration *cx_run_config_integration(const cx_run_config *config, cx_str tool)
{
    CX_ASSERT(config->integration_count == 0 || config->integrations != NULL);
    for (size_t i = 0; i < config->integration_count; i++)
        if (cx_str_eq(config->integrations[i].tool, tool))
            return &config->integrations[i];
    return NULL;
}
