/*
 * policy.c - reads policies/, and compares the permissions that a contract requests with its
 * agent's row.  Invariants P1, P2 and P3: policy.h.
 */
#include "contract/policy.h"

#include <stdarg.h>

#include "crypto/api.h"
#include "rules/api.h"
#include "contract/decode.h"

enum { FILES_MAX = 10, AGENTS_MAX = 4096, PREFIXES_MAX = 1024 };

static const char *const seed_files[] = {
    "policies/agent_registry.json",    "policies/command_allowlist.json",
    "policies/forbidden_actions.json", "policies/mcp_allowlist.json",
    "policies/packs/low.json",         "policies/packs/medium.json",
    "policies/packs/high.json"};

typedef struct policy_loader {
    const cx_run_repo *repo; /* NULL: only built-in files */
    cx_str commit;
    cx_arena *arena;
    cx_run_findings *findings;
    cx_run_policy *policy;
    cx_run_policy_file *files;
    cx_err *err;
} policy_loader;

static void refuse_file(policy_loader *loader, const char *path, const char *format, ...)
    CX_PRINTF(3, 4);

static void refuse_file(policy_loader *loader, const char *path, const char *format, ...)
{
    char message[CX_ERR_MESSAGE_SIZE + 64];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    cx_run_findings_reject(loader->findings, "POLICY", cx_str_z(path), CX_STR(""), "%s", message);
}

/* --- files ------------------------------------------------------------------------------------ */

static void store_file(policy_loader *loader, cx_str path, cx_str bytes)
{
    cx_run_policy_file *file = &loader->files[loader->policy->file_count++];
    file->path = path;
    file->bytes = bytes;
    file->sha256 = cx_digest_of(cx_str_bytes(bytes));
}

static const cx_run_policy_file *find_stored_file(const policy_loader *loader, const char *path)
{
    for (size_t i = 0; i < loader->policy->file_count; i++)
        if (cx_str_is(loader->files[i].path, path))
            return &loader->files[i];
    return NULL;
}

/* Reads one file of the baseline and stores it if it exists. */
static cx_status fetch_baseline_file(policy_loader *loader, cx_str path, bool *out_found)
{
    cx_run_blob kind = CX_BLOB_NONE;
    cx_bytes bytes;
    *out_found = false;
    if (loader->repo == NULL)
        return CX_SUCCESS;
    CX_TRY(loader->repo->read(loader->repo->arg, loader->commit, path, CX_RUN_POLICY_FILE_BYTES_MAX,
                              loader->arena, &kind, &bytes, loader->err));
    if (kind == CX_BLOB_NONE)
        return CX_SUCCESS;
    *out_found = true;
    if (kind == CX_BLOB_FILE)
        store_file(loader, path, cx_bytes_str(bytes));
    else
        cx_run_findings_reject(loader->findings, "POLICY", path, CX_STR(""),
                               kind == CX_BLOB_TOO_BIG ? "the file is longer than 1 MiB"
                                                       : "expected a regular file in the baseline");
    return CX_SUCCESS;
}

static void fetch_built_in_file(policy_loader *loader, const char *path)
{
    cx_bytes bytes;
    if (cx_run_asset(path, &bytes))
        store_file(loader, cx_str_z(path), cx_bytes_str(bytes));
    else
        refuse_file(loader, path, "the program was built without this file");
}

static cx_status fetch_seed_files(policy_loader *loader)
{
    bool found[CX_COUNT_OF(seed_files)], any = false;
    for (size_t i = 0; i < CX_COUNT_OF(seed_files); i++) {
        CX_TRY(fetch_baseline_file(loader, cx_str_z(seed_files[i]), &found[i]));
        any = any || found[i];
    }
    loader->policy->built_in = !any;
    for (size_t i = 0; i < CX_COUNT_OF(seed_files); i++) {
        if (!any)
            fetch_built_in_file(loader, seed_files[i]);
        else if (!found[i])
            refuse_file(
                loader, seed_files[i],
                "the baseline has other policies, but not this file; 'cortex init' writes it, "
                "then commit it");
    }
    return CX_SUCCESS;
}

/* A file that may be absent from a baseline; then the built-in one is used if `built_in`. */
static cx_status fetch_optional_file(policy_loader *loader, const char *path, bool built_in)
{
    bool found;
    CX_TRY(fetch_baseline_file(loader, cx_str_z(path), &found));
    if (!found && built_in)
        fetch_built_in_file(loader, path);
    return CX_SUCCESS;
}

/* Parses a stored file; false when it is absent, or (with a finding) malformed. */
static bool parse_stored_file(policy_loader *loader, const char *path, cx_json *out)
{
    cx_err err = {0};
    const cx_run_policy_file *file = find_stored_file(loader, path);
    if (file == NULL)
        return false;
    if (!cx_failed(cx_run_json_read(file->bytes, 0, loader->arena, out, &err)))
        return true;
    refuse_file(loader, path, "%s", err.message);
    return false;
}

static void report_decode_fault(policy_loader *loader, const cx_decoder *decoder)
{
    const char *text = decoder->err->message;
    size_t size = strlen(decoder->file);
    if (!decoder->failed)
        return;
    /* The finding names the file, so it is cut from the message. */
    if (strncmp(text, decoder->file, size) == 0 && text[size] == ':' && text[size + 1] == ' ')
        text += size + 2;
    refuse_file(loader, decoder->file, "%s", text);
}

/* --- the registry ----------------------------------------------------------------------------- */

static void read_optional_ref(cx_decoder *decoder, const cx_json *object, const char *where,
                              cx_str *out)
{
    const cx_json *value = cx_decode_need(decoder, object, where);
    if (value != NULL && value->type != CX_JSON_NULL)
        cx_decode_str(decoder, object, where, out);
}

static void read_role(cx_decoder *decoder, const cx_json_member *member, cx_run_policy *policy)
{
    static const char *const names[] = {
        "purpose",          "system_prompt_ref",         "skills_bundle_ref",     "mcp_bundle_ref",
        "handoff_eligible", "required_downstream_roles", "fail_closed_conditions"};
    const cx_json *value = &member->value;
    cx_run_role role, other;
    cx_run_role_row row = {.present = true};
    if (!cx_run_role_parse(cx_json_text(&member->name), &role)) {
        cx_decode_fault(decoder, "role_contracts", "names of roles, such as \"WORKER\"");
        return;
    }
    cx_decode_object(decoder, value, "role_contracts.*", names, CX_COUNT_OF(names));
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        (void)cx_decode_need(decoder, value, names[i]);
    cx_decode_str(decoder, value, "role_contracts.*.purpose", &row.purpose);
    read_optional_ref(decoder, value, "role_contracts.*.system_prompt_ref", &row.system_prompt_ref);
    read_optional_ref(decoder, value, "role_contracts.*.skills_bundle_ref", &row.skills_bundle_ref);
    read_optional_ref(decoder, value, "role_contracts.*.mcp_bundle_ref", &row.mcp_bundle_ref);
    cx_decode_bool(decoder, value, "role_contracts.*.handoff_eligible", &row.handoff_eligible);
    cx_decode_words(decoder, value, "role_contracts.*.required_downstream_roles",
                    &row.required_downstream_roles);
    cx_decode_words(decoder, value, "role_contracts.*.fail_closed_conditions",
                    &row.fail_closed_conditions);
    if (!decoder->failed && row.fail_closed_conditions.count == 0)
        cx_decode_fault(decoder, "role_contracts.*.fail_closed_conditions", "at least one text");
    for (size_t i = 0; i < row.required_downstream_roles.count; i++)
        if (!cx_run_role_parse(row.required_downstream_roles.items[i], &other))
            cx_decode_fault(decoder, "role_contracts.*.required_downstream_roles",
                            "names of roles");
    policy->roles[role] = row;
}

static void read_agent(cx_decoder *decoder, const cx_json *value, cx_run_agent *out)
{
    static const char *const names[] = {"agent_id",    "role",     "codex_home",
                                        "description", "defaults", "capabilities"};
    static const char *const default_names[] = {"sandbox", "approval_policy", "network"};
    static const char *const capability_names[] = {"mcp_tools", "notes"};
    cx_str role = CX_STR(""), filesystem = CX_STR(""), shell = CX_STR(""), network = CX_STR("");
    memset(out, 0, sizeof *out);
    cx_decode_object(decoder, value, "agents[]", names, CX_COUNT_OF(names));
    (void)cx_decode_need(decoder, value, "agents[].agent_id");
    (void)cx_decode_need(decoder, value, "agents[].role");
    cx_decode_str(decoder, value, "agents[].agent_id", &out->agent_id);
    cx_decode_str(decoder, value, "agents[].role", &role);
    cx_decode_str(decoder, value, "agents[].codex_home", &out->codex_home);
    const cx_json *defaults = cx_decode_need(decoder, value, "agents[].defaults");
    if (defaults == NULL)
        return;
    cx_decode_object(decoder, defaults, "agents[].defaults", default_names,
                     CX_COUNT_OF(default_names));
    cx_decode_str(decoder, defaults, "agents[].defaults.sandbox", &filesystem);
    cx_decode_str(decoder, defaults, "agents[].defaults.approval_policy", &shell);
    cx_decode_str(decoder, defaults, "agents[].defaults.network", &network);
    out->filesystem = cx_run_filesystem_parse(filesystem);
    out->shell = cx_run_shell_parse(shell);
    out->network = cx_run_network_parse(network);
    if (!cx_run_role_parse(role, &out->role))
        cx_decode_fault(decoder, "agents[].role", "one of the fifteen roles");
    if (out->filesystem == CX_FS_UNKNOWN)
        cx_decode_fault(decoder, "agents[].defaults.sandbox",
                        "read-only, workspace-write or danger-full-access");
    if (out->shell == CX_SHELL_UNKNOWN)
        cx_decode_fault(decoder, "agents[].defaults.approval_policy",
                        "untrusted, on-request or never");
    if (out->network == CX_NETWORK_UNKNOWN)
        cx_decode_fault(decoder, "agents[].defaults.network", "deny, on-request or allow");
    const cx_json *capabilities =
        decoder->failed ? NULL : cx_json_get(value, CX_STR("capabilities"));
    if (capabilities != NULL) {
        cx_decode_object(decoder, capabilities, "agents[].capabilities", capability_names,
                         CX_COUNT_OF(capability_names));
        cx_decode_words(decoder, capabilities, "agents[].capabilities.mcp_tools", &out->mcp_tools);
    }
}

static void read_agents(cx_decoder *decoder, const cx_json *root, cx_run_policy *policy)
{
    const cx_json *value = cx_decode_need(decoder, root, "agents");
    if (value != NULL &&
        (value->type != CX_JSON_ARRAY || value->count == 0 || value->count > AGENTS_MAX))
        cx_decode_fault(decoder, "agents", "an array of 1 to 4096 agents");
    if (value == NULL || decoder->failed)
        return;
    cx_run_agent *agents = CX_ARENA_ARRAY(decoder->arena, cx_run_agent, value->count);
    if (agents == NULL) {
        decoder->failed = true;
        (void)cx_fail_nomem(decoder->err);
        return;
    }
    for (uint32_t i = 0; i < value->count && !decoder->failed; i++) {
        read_agent(decoder, &value->items[i], &agents[i]);
        /* Two rows for one agent would be ambiguous. */
        for (uint32_t k = 0; k < i && !decoder->failed; k++)
            if (agents[k].role == agents[i].role &&
                cx_str_eq(agents[k].agent_id, agents[i].agent_id))
                cx_decode_fault(decoder, "agents", "each role and agent_id once");
    }
    policy->agents = agents;
    policy->agent_count = decoder->failed ? 0 : value->count;
}

static void read_registry(policy_loader *loader)
{
    static const char *const names[] = {"version", "role_contracts", "agents"};
    cx_err err = {0};
    cx_decoder decoder = {loader->arena, seed_files[0], &err, false};
    cx_json *root = &loader->policy->registry;
    if (!parse_stored_file(loader, seed_files[0], root))
        return;
    cx_decode_object(&decoder, root, "", names, CX_COUNT_OF(names));
    cx_decode_version(&decoder, root);
    const cx_json *roles = decoder.failed ? NULL : cx_json_get(root, CX_STR("role_contracts"));
    if (roles != NULL && roles->type != CX_JSON_OBJECT)
        cx_decode_fault(&decoder, "role_contracts", "an object");
    for (uint32_t i = 0; roles != NULL && !decoder.failed && i < roles->count; i++)
        read_role(&decoder, &roles->members[i], loader->policy);
    read_agents(&decoder, root, loader->policy);
    report_decode_fault(loader, &decoder);
}

/* --- command lists ---------------------------------------------------------------------------- */

/* Appends texts to a list with sufficient capacity. */
static void append_texts(cx_decoder *decoder, cx_str_list *list, cx_str_list more)
{
    if (decoder->failed || more.count == 0)
        return;
    cx_str *items = CX_ARENA_ARRAY(decoder->arena, cx_str, list->count + more.count);
    if (items == NULL) {
        decoder->failed = true;
        (void)cx_fail_nomem(decoder->err);
        return;
    }
    if (list->count != 0)
        memcpy(items, list->items, list->count * sizeof *items);
    memcpy(items + list->count, more.items, more.count * sizeof *items);
    *list = (cx_str_list){items, list->count + more.count};
}

static void read_prefix(cx_decoder *decoder, const cx_json *item, cx_str_list *list, size_t *count)
{
    if (*count == PREFIXES_MAX) {
        cx_decode_fault(decoder, "allow", "at most 1024 prefixes");
        return;
    }
    cx_decode_word_items(decoder, item, "allow[]", &list[*count]);
    if (!decoder->failed && list[*count].count == 0)
        cx_decode_fault(decoder, "allow[]", "at least a program's name");
    *count += 1;
}

/*
 * "allow" is an array of prefixes; an item may also be {"exec", "argv_prefixes": [prefix..]}, a
 * grouping that older files use.  An empty list allows nothing.
 */
static void read_prefixes(cx_decoder *decoder, const cx_json *root, cx_run_pack_rules *out)
{
    static const char *const names[] = {"exec", "argv_prefixes"};
    const cx_json *value = cx_decode_need(decoder, root, "allow");
    cx_str_list *list = CX_ARENA_ARRAY(decoder->arena, cx_str_list, PREFIXES_MAX);
    size_t count = 0;
    if (list == NULL) {
        decoder->failed = true;
        (void)cx_fail_nomem(decoder->err);
        return;
    }
    if (value != NULL && value->type != CX_JSON_ARRAY)
        cx_decode_fault(decoder, "allow", "an array");
    for (uint32_t i = 0; value != NULL && !decoder->failed && i < value->count; i++) {
        const cx_json *item = &value->items[i];
        if (item->type != CX_JSON_OBJECT) {
            read_prefix(decoder, item, list, &count);
            continue;
        }
        cx_decode_object(decoder, item, "allow[]", names, CX_COUNT_OF(names));
        const cx_json *prefixes = cx_decode_need(decoder, item, "allow[].argv_prefixes");
        if (prefixes != NULL && prefixes->type != CX_JSON_ARRAY)
            cx_decode_fault(decoder, "allow[].argv_prefixes", "an array");
        for (uint32_t k = 0; prefixes != NULL && !decoder->failed && k < prefixes->count; k++)
            read_prefix(decoder, &prefixes->items[k], list, &count);
    }
    out->allow = list;
    out->allow_count = decoder->failed ? 0 : count;
}

/* A pack, or the list for commands without one. */
static void read_pack(policy_loader *loader, const char *path, cx_run_pack_rules *out)
{
    static const char *const names[] = {"version", "allow", "deny_substrings", "forbidden_actions"};
    cx_err err = {0};
    cx_json root;
    cx_str_list forbidden = {NULL, 0}, denied = {NULL, 0};
    cx_decoder decoder = {loader->arena, path, &err, false};
    if (!parse_stored_file(loader, path, &root))
        return;
    cx_decode_object(&decoder, &root, "", names, CX_COUNT_OF(names));
    cx_decode_version(&decoder, &root);
    read_prefixes(&decoder, &root, out);
    cx_decode_words(&decoder, &root, "forbidden_actions", &forbidden);
    cx_decode_words(&decoder, &root, "deny_substrings", &denied);
    append_texts(&decoder, &out->forbidden_actions, forbidden);
    append_texts(&decoder, &out->forbidden_actions, denied);
    report_decode_fault(loader, &decoder);
}

static void read_command_lists(policy_loader *loader)
{
    static const char *const forbidden_names[] = {"version", "forbidden_actions"};
    static const char *const tool_names[] = {"version", "allow", "deny"};
    cx_run_policy *policy = loader->policy;
    cx_err err = {0};
    cx_json root;
    cx_decoder decoder = {loader->arena, seed_files[2], &err, false};
    read_pack(loader, seed_files[1], &policy->packs[CX_PACK_NONE]);
    read_pack(loader, seed_files[4], &policy->packs[CX_PACK_LOW]);
    read_pack(loader, seed_files[5], &policy->packs[CX_PACK_MEDIUM]);
    read_pack(loader, seed_files[6], &policy->packs[CX_PACK_HIGH]);
    if (parse_stored_file(loader, seed_files[2], &root)) {
        cx_decode_object(&decoder, &root, "", forbidden_names, CX_COUNT_OF(forbidden_names));
        cx_decode_version(&decoder, &root);
        (void)cx_decode_need(&decoder, &root, "forbidden_actions");
        cx_decode_words(&decoder, &root, "forbidden_actions", &policy->forbidden_actions);
        report_decode_fault(loader, &decoder);
    }
    decoder = (cx_decoder){loader->arena, seed_files[3], &err, false};
    if (parse_stored_file(loader, seed_files[3], &root)) {
        cx_decode_object(&decoder, &root, "", tool_names, CX_COUNT_OF(tool_names));
        cx_decode_version(&decoder, &root);
        (void)cx_decode_need(&decoder, &root, "allow");
        cx_decode_words(&decoder, &root, "allow", &policy->mcp_allow);
        cx_decode_words(&decoder, &root, "deny", &policy->mcp_deny);
        report_decode_fault(loader, &decoder);
    }
}

/* --- approvers -------------------------------------------------------------------------------- */

static void read_approver(cx_decoder *decoder, const cx_json *value, cx_run_approver *out)
{
    static const char *const names[] = {"name", "public_key"};
    cx_str key = CX_STR("");
    memset(out, 0, sizeof *out);
    cx_decode_object(decoder, value, "approvers[]", names, CX_COUNT_OF(names));
    (void)cx_decode_need(decoder, value, "approvers[].name");
    (void)cx_decode_need(decoder, value, "approvers[].public_key");
    cx_decode_str(decoder, value, "approvers[].name", &out->name);
    cx_decode_str(decoder, value, "approvers[].public_key", &key);
    if (decoder->failed)
        return;
    if (!cx_hex_decode_any(key, out->key, sizeof out->key)) {
        cx_decode_fault(decoder, "approvers[].public_key",
                        "64 hexadecimal digits, as 'cortex key show' prints them");
        return;
    }
    char *hex = cx_arena_push(decoder->arena, 65, 1);
    if (hex == NULL) {
        decoder->failed = true;
        (void)cx_fail_nomem(decoder->err);
        return;
    }
    cx_digest id = cx_digest_of((cx_bytes){out->key, sizeof out->key});
    cx_hex_encode((cx_bytes){id.bytes, sizeof id.bytes}, hex);
    hex[64] = 0;
    out->keyid = cx_str_from(hex, 64);
}

static void read_approvers(policy_loader *loader)
{
    static const char *const names[] = {"version", "approvers"};
    cx_run_policy *policy = loader->policy;
    const char *path = policy->config.approvers_path.data;
    cx_str pinned = policy->config.approvers_sha256;
    cx_err err = {0};
    cx_json root;
    cx_digest digest;
    cx_decoder decoder = {loader->arena, path, &err, false};
    const cx_run_policy_file *file = find_stored_file(loader, path);
    if (file == NULL) {
        policy->approvers_fault = CX_STR("the baseline has no file of approvers");
        return;
    }
    if (!parse_stored_file(loader, path, &root))
        return;
    cx_decode_object(&decoder, &root, "", names, CX_COUNT_OF(names));
    cx_decode_version(&decoder, &root);
    const cx_json *value = cx_decode_need(&decoder, &root, "approvers");
    if (value != NULL && (value->type != CX_JSON_ARRAY || value->count > AGENTS_MAX))
        cx_decode_fault(&decoder, "approvers", "an array");
    if (value != NULL && !decoder.failed) {
        cx_run_approver *list = CX_ARENA_ARRAY(loader->arena, cx_run_approver, value->count + 1);
        for (uint32_t i = 0; list != NULL && i < value->count && !decoder.failed; i++)
            read_approver(&decoder, &value->items[i], &list[i]);
        policy->approvers = list;
        policy->approver_count = list == NULL || decoder.failed ? 0 : value->count;
    }
    report_decode_fault(loader, &decoder);
    if (!cx_digest_parse(pinned, &digest))
        policy->approvers_fault =
            CX_STR("policies/cortex.json has no approvers.sha256, so no approval is possible");
    else if (!cx_digest_eq(&digest, &file->sha256))
        policy->approvers_fault = CX_STR("the file of approvers is not the one whose digest is "
                                         "approvers.sha256 in policies/cortex.json");
    if (policy->approvers_fault.size != 0) /* P3 */
        policy->approver_count = 0;
}

/* --- loading ---------------------------------------------------------------------------------- */

static cx_status load_config(policy_loader *loader)
{
    static const char path[] = "policies/cortex.json";
    cx_err err = {0};
    cx_run_policy *policy = loader->policy;
    cx_run_config_default(&policy->config);
    CX_TRY(fetch_optional_file(loader, path, true));
    const cx_run_policy_file *file = find_stored_file(loader, path);
    if (file == NULL)
        return CX_SUCCESS;
    if (!cx_failed(cx_run_config_read(file->bytes, loader->arena, &policy->config, &err)))
        return CX_SUCCESS;
    const char *text = err.message;
    if (strncmp(text, path, sizeof path - 1) == 0 && text[sizeof path - 1] == ':')
        text += sizeof path + 1;
    refuse_file(loader, path, "%s", text);
    return CX_SUCCESS;
}

static cx_status load_approvers(policy_loader *loader)
{
    /* Terminated, for messages. */
    cx_str path = cx_arena_copy_str(loader->arena, loader->policy->config.approvers_path);
    if (path.data == NULL)
        return cx_fail_nomem(loader->err);
    loader->policy->config.approvers_path = path;
    if (find_stored_file(loader, path.data) == NULL)
        CX_TRY(fetch_optional_file(loader, path.data,
                                   cx_str_eq(path, CX_STR("policies/approvers.json"))));
    read_approvers(loader);
    return CX_SUCCESS;
}

cx_status cx_run_policy_load(const cx_run_repo *repo, cx_str commit, cx_arena *arena,
                             cx_run_findings *findings, cx_run_policy *out, cx_err *err)
{
    CX_ASSERT(repo == NULL || commit.size != 0);
    static const char skills[] = "policies/skills_bundle_registry.json";
    memset(out, 0, sizeof *out);
    policy_loader loader = {repo, commit, arena, findings, out, NULL, err};
    loader.files = CX_ARENA_ARRAY(arena, cx_run_policy_file, FILES_MAX);
    if (loader.files == NULL)
        return cx_fail_nomem(err);
    out->files = loader.files;
    CX_TRY(fetch_seed_files(&loader));
    CX_TRY(load_config(&loader));
    CX_TRY(fetch_optional_file(&loader, skills, out->built_in));
    read_registry(&loader);
    read_command_lists(&loader);
    CX_TRY(load_approvers(&loader));
    CX_ASSERT(out->approvers_fault.size == 0 || out->approver_count == 0); /* P3 */
    CX_ASSERT(out->file_count <= FILES_MAX);
    if (find_stored_file(&loader, skills) != NULL)
        (void)parse_stored_file(&loader, skills, &out->skills);
    return cx_run_findings_check(findings, err);
}

/* --- comparing permissions -------------------------------------------------------------------- */

const cx_run_agent *cx_run_policy_agent(const cx_run_policy *policy, cx_str role, cx_str agent_id)
{
    CX_ASSERT(policy->agent_count == 0 || policy->agents != NULL);
    cx_run_role parsed;
    if (!cx_run_role_parse(role, &parsed))
        return NULL;
    for (size_t i = 0; i < policy->agent_count; i++)
        if (policy->agents[i].role == parsed && cx_str_eq(policy->agents[i].agent_id, agent_id))
            return &policy->agents[i];
    return NULL;
}

const char *cx_run_policy_compare(const cx_run_policy *policy, cx_str role, cx_str agent_id,
                                  const cx_run_permissions *asked, unsigned *out_exceeds)
{
    const cx_run_agent *row = cx_run_policy_agent(policy, role, agent_id);
    cx_run_filesystem filesystem = cx_run_filesystem_parse(asked->filesystem);
    unsigned exceeds = 0;
    *out_exceeds = 0;
    if (row == NULL)
        return "agent_not_registered";
    /* An unknown value exceeds every row; full access exceeds every row in a contract. */
    if (filesystem > row->filesystem || filesystem == CX_FS_DANGER)
        exceeds |= CX_EXCEEDS_FILESYSTEM;
    if (cx_run_shell_parse(asked->shell) > row->shell)
        exceeds |= CX_EXCEEDS_SHELL;
    if (cx_run_network_parse(asked->network) > row->network)
        exceeds |= CX_EXCEEDS_NETWORK;
    for (size_t i = 0; i < asked->mcp_tools.count; i++)
        if (!cx_str_list_has(row->mcp_tools, asked->mcp_tools.items[i]))
            exceeds |= CX_EXCEEDS_MCP_TOOLS;
    CX_ASSERT(row->filesystem < CX_FS_UNKNOWN && row->shell < CX_SHELL_UNKNOWN &&
              row->network < CX_NETWORK_UNKNOWN); /* read_agent has checked the row */
    *out_exceeds = exceeds;
    return exceeds == 0 ? NULL : "permission_exceeds_role";
}
