/*
 * report_manifest.c - what is said about a run as a whole: manifest, meta, re-execution (run.md §2,
 * §17, §18), and which bindings its contract has (§6, decision 0025).
 *
 *   I1  evidence_hashes covers exactly `files`; what §2 requires of them is checked, not assumed.
 *   I2  No path of the machine gets in: repo.root is ".".
 */
#include "bundle/report_parts.h"

/* --- role_binding_summary -------------------------------------------------------------------- */

/* Text of object.name, or data NULL. */
static cx_str text_at(const cx_json *object, const char *name)
{
    return object == NULL ? cx_str_from(NULL, 0) : cx_json_get_str(object, cx_str_z(name));
}

static void put_or_null(cx_json_list *object, const char *name, cx_str text)
{
    if (text.size == 0)
        cx_json_put(object, name, cx_json_make_null());
    else
        cx_json_put_utf8(object, name, text);
}

/* "registry-backed" when it selects inside one of our registries, "resolved" for another file. */
static const char *ref_status(cx_str ref)
{
    if (ref.size == 0)
        return "unresolved";
    return cx_str_starts(ref, CX_STR("policies/")) ? "registry-backed" : "resolved";
}

static void put_tools(cx_json_list *object, const char *name, const cx_json *contract,
                      const cx_json *role)
{
    const cx_json *tools = cx_json_get(role, CX_STR("resolved_mcp_tool_set"));
    cx_json_list array = cx_json_list_begin(object->arena);
    if (tools == NULL)
        tools = cx_json_get(contract, CX_STR("mcp_tool_set"));
    if (tools != NULL && tools->type == CX_JSON_ARRAY)
        for (uint32_t i = 0; i < tools->count; i++)
            if (tools->items[i].type == CX_JSON_STRING)
                cx_json_list_add(&array, tools->items[i]);
    cx_json_put_array(object, name, &array);
}

static void put_skills(cx_json_list *object, const cx_json *role)
{
    cx_json_list skills = cx_json_list_begin(object->arena);
    cx_str ref = text_at(role, "skills_bundle_ref");
    cx_json_put_z(&skills, "status", ref_status(ref));
    put_or_null(&skills, "ref", ref);
    cx_json_put(&skills, "bundle_id", cx_json_make_null());
    cx_json_put_utf8_strs(&skills, "resolved_skill_set", NULL, 0);
    cx_json_put_z(&skills, "validation", "fail-closed");
    cx_json_put_object(object, "skills_bundle_ref", &skills);
}

static void put_mcp(cx_json_list *object, const cx_json *contract, const cx_json *role)
{
    cx_json_list mcp = cx_json_list_begin(object->arena);
    cx_str ref = text_at(role, "mcp_bundle_ref");
    cx_json_put_z(&mcp, "status", ref_status(ref));
    put_or_null(&mcp, "ref", ref);
    put_tools(&mcp, "resolved_mcp_tool_set", contract, role);
    cx_json_put_z(&mcp, "validation", "fail-closed");
    cx_json_put_object(object, "mcp_bundle_ref", &mcp);
}

/* Runner, provider and model, each with where it was read. */
static void put_runtime(cx_json_list *object, const cx_json *contract, const cx_json *role)
{
    static const char *const names[] = {"runner", "provider", "model"};
    cx_json_list runtime = cx_json_list_begin(object->arena);
    cx_json_list source = cx_json_list_begin(object->arena);
    cx_json_list summary = cx_json_list_begin(object->arena);
    const cx_json *binding = cx_json_get(role, CX_STR("runtime_binding"));
    const cx_json *options = cx_json_get(contract, CX_STR("runtime_options"));
    size_t known = 0;
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        cx_str value = text_at(binding, names[i]);
        const char *from = "role_contract.runtime_binding";
        if (value.size == 0) {
            value = text_at(options, names[i]);
            from = value.size == 0 ? "unresolved" : "runtime_options";
        }
        known += value.size != 0;
        cx_json_put_z(&source, names[i], from);
        put_or_null(&summary, names[i], value);
    }
    cx_json_put_z(&runtime, "status",
                  known == CX_COUNT_OF(names) ? "contract-derived"
                  : known == 0                ? "unresolved"
                                              : "partially-resolved");
    cx_json_put_z(&runtime, "authority_scope", "contract-derived-read-model");
    cx_json_put_object(&runtime, "source", &source);
    cx_json_put_object(&runtime, "summary", &summary);
    cx_json_put_object(object, "runtime_binding", &runtime);
}

static cx_json_list role_binding(const cx_json *contract, cx_arena *arena)
{
    cx_json_list object = cx_json_list_begin(arena);
    const cx_json *role = cx_json_get(contract, CX_STR("role_contract"));
    cx_json empty = {.type = CX_JSON_OBJECT};
    if (role == NULL)
        role = &empty;
    cx_json_put_z(&object, "authority", "contract-derived-read-model");
    cx_json_put_z(&object, "source", "contract.json");
    cx_json_put_z(&object, "execution_authority", "task_contract");
    put_skills(&object, role);
    put_mcp(&object, contract, role);
    put_runtime(&object, contract, role);
    return object;
}

cx_status cx_run_report_role_binding(const cx_json *contract, cx_arena *arena, cx_json *out,
                                     cx_err *err)
{
    cx_json_list object = role_binding(contract, arena);
    return cx_json_list_end_object(&object, out, err);
}

/* --- meta ------------------------------------------------------------------------------------ */

cx_status cx_run_report_meta(const cx_run_meta_facts *facts, cx_arena *arena, cx_json *out,
                             cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), versions = cx_json_list_begin(arena);
    cx_json_list params = cx_json_list_begin(arena);
    cx_json_put_utf8(&object, "run_id", facts->run_id);
    cx_run_part_put_or(&versions, "cortex", facts->cortex_version, "unknown");
    cx_run_part_put_or(&versions, "git", facts->git_version, "unknown");
    cx_json_put_object(&object, "versions", &versions);
    cx_json_put(&object, "model", facts->model != NULL ? *facts->model : cx_json_make_null());
    cx_run_part_put_or(&params, "runner", facts->runner, "none");
    cx_json_put_object(&object, "params", &params);
    cx_json_put_digest(&object, "env_hash", &facts->env_hash);
    return cx_json_list_end_object(&object, out, err);
}

/* --- manifest -------------------------------------------------------------------------------- */

static const cx_run_ref *find_file(const cx_run_manifest_facts *facts, const char *path)
{
    for (size_t i = 0; i < facts->file_count; i++)
        if (cx_str_is(facts->files[i].path, path))
            return &facts->files[i];
    return NULL;
}

/* I1: what every bundle has, whatever happened (§2 evidence_hashes). */
static cx_status check_files(const cx_run_manifest_facts *facts, cx_err *err)
{
    static const char *const required[] = {
        "contract.json",
        "events.jsonl",
        "patch.diff",
        "diff_name_only.txt",
        "reports/review_report.json",
        "reports/test_report.json",
    };
    for (size_t i = 0; i < CX_COUNT_OF(required); i++)
        if (find_file(facts, required[i]) == NULL)
            return cx_fail(err, CX_E_USAGE,
                           "the bundle of %.*s has no %s; every bundle needs one before its "
                           "manifest is written",
                           (int)(facts->run_id.size > 80 ? 80 : facts->run_id.size),
                           facts->run_id.data, required[i]);
    if (facts->task_count == 0)
        return cx_fail(err, CX_E_USAGE, "a manifest needs at least one task");
    return CX_SUCCESS;
}

static void put_manifest_task(cx_json_list *array, const cx_run_manifest_task *task)
{
    const struct {
        const char *name;
        const cx_run_ref *ref;
    } refs[] = {{"contract", &task->contract},
                {"result", &task->result},
                {"review_report", &task->review_report},
                {"test_report", &task->test_report}};
    cx_json_list object = cx_json_list_begin(array->arena);
    cx_json_put_utf8(&object, "task_id", task->task_id);
    cx_json_put_utf8(&object, "role", cx_run_part_is_role(task->role) ? task->role : CX_STR("PM"));
    cx_json_put_utf8(&object, "assigned_agent_id", task->agent_id);
    cx_json_put_utf8(&object, "thread_id", task->thread_id);
    cx_json_put_z(&object, "status", cx_run_task_status_name(task->status));
    for (size_t i = 0; i < CX_COUNT_OF(refs); i++)
        if (refs[i].ref->path.size != 0) {
            cx_run_ref named = *refs[i].ref;
            named.name = i == 0   ? CX_STR("contract")
                         : i == 1 ? CX_STR("task_result")
                                  : cx_str_z(refs[i].name);
            cx_run_part_put_ref(&object, refs[i].name, &named);
        }
    cx_json_add_object(array, &object);
}

static void put_repo(cx_json_list *object, const cx_run_manifest_facts *facts)
{
    cx_json_list repo = cx_json_list_begin(object->arena);
    cx_json_put_z(&repo, "root", "."); /* I2 */
    cx_run_part_put_or(&repo, "baseline_ref", facts->baseline_commit, "none");
    cx_run_part_put_or(&repo, "final_ref",
                       facts->final_commit.size != 0 ? facts->final_commit : facts->baseline_commit,
                       "none");
    cx_run_part_put_given(&repo, "branch", facts->branch);
    cx_run_part_put_given(&repo, "remote_url", facts->remote_url);
    cx_json_put_object(object, "repo", &repo);
}

static void put_runner(cx_json_list *object, const cx_run_manifest_facts *facts)
{
    cx_json_list runner = cx_json_list_begin(object->arena);
    cx_run_part_put_or(&runner, "name", facts->runner_name, "none");
    cx_json_put_bool(&runner, "mcp_only", facts->runner_mcp_only);
    cx_json_put_utf8(&runner, "profile", facts->runner_profile);
    cx_json_put_object(object, "runner", &runner);
}

static void put_evidence(cx_json_list *object, const cx_run_manifest_facts *facts)
{
    cx_json_list artifacts = cx_json_list_begin(object->arena);
    cx_json_list hashes = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < facts->file_count; i++) {
        cx_run_ref named = facts->files[i];
        char *hex = cx_arena_push(object->arena, 64, 1);
        cx_json ref;
        named.name = named.path;
        if (hex == NULL || cx_failed(cx_run_ref_json(&named, object->arena, &ref, NULL))) {
            object->failed = true;
            return;
        }
        cx_json_list_add(&artifacts, ref);
        cx_json_list_put(&hashes, named.path, *cx_json_get(&ref, CX_STR("sha256")));
    }
    cx_json_put_array(object, "artifacts", &artifacts);
    cx_json_put_object(object, "evidence_hashes", &hashes);
}

static void put_integrity(cx_json_list *object, const cx_run_manifest_facts *facts)
{
    cx_json_list integrity = cx_json_list_begin(object->arena);
    cx_json_put_digest(&integrity, "contract_sha256", &find_file(facts, "contract.json")->sha256);
    cx_json_put_z(&integrity, "events_hashchain_path", "events.hashchain.jsonl");
    cx_json_put_object(object, "integrity", &integrity);
}

static void put_versions(cx_json_list *object, const cx_run_manifest_facts *facts)
{
    cx_json_list versions = cx_json_list_begin(object->arena);
    cx_json_put_z(&versions, "contracts_schema", "v1");
    cx_run_part_put_or(&versions, "orchestrator", facts->cortex_version, "unknown");
    cx_json_put_object(object, "versions", &versions);
}

static bool is_pack(cx_str pack)
{
    return cx_str_is(pack, "low") || cx_str_is(pack, "medium") || cx_str_is(pack, "high");
}

cx_status cx_run_report_manifest(const cx_run_manifest_facts *facts, cx_arena *arena, cx_json *out,
                                 cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), tasks = cx_json_list_begin(arena);
    cx_json_list trace = cx_json_list_begin(arena), binding;
    CX_TRY(check_files(facts, err));
    cx_json_put_utf8(&object, "run_id", facts->run_id);
    cx_json_put_utf8(&object, "task_id", facts->task_id);
    cx_json_put_utf8(&object, "created_at", facts->created_at);
    cx_run_part_put_given(&object, "finished_at", facts->finished_at);
    cx_json_put_z(&object, "status", cx_run_status_name(facts->status));
    if (facts->status == CX_RUN_FAILURE)
        cx_run_part_put_or(&object, "failure_reason", facts->failure_reason, "unknown");
    cx_run_part_put_or(&object, "user_request", facts->user_request, "(none)");
    cx_json_put_utf8(&object, "trace_id", facts->trace_id);
    cx_json_put_bool(&object, "diagnostic", facts->diagnostic);
    put_runner(&object, facts);
    if (is_pack(facts->policy_pack))
        cx_json_put_utf8(&object, "policy_pack", facts->policy_pack);
    put_repo(&object, facts);
    put_versions(&object, facts);
    if (facts->model != NULL)
        cx_json_put(&object, "model", *facts->model);
    if (facts->contract != NULL) {
        binding = role_binding(facts->contract, arena);
        cx_json_put_object(&object, "role_binding_summary", &binding);
    }
    for (size_t i = 0; i < facts->task_count; i++)
        put_manifest_task(&tasks, &facts->tasks[i]);
    cx_json_put_array(&object, "tasks", &tasks);
    put_evidence(&object, facts);
    put_integrity(&object, facts);
    cx_json_put_utf8(&trace, "trace_id", facts->trace_id);
    cx_json_put_object(&object, "trace", &trace);
    cx_run_part_put_given(&object, "notes", facts->notes);
    return cx_json_list_end_object(&object, out, err);
}

/* --- re-execution ---------------------------------------------------------------------------- */

static void put_differences(cx_json_list *object, const char *name, const cx_run_difference *list,
                            size_t count)
{
    cx_json_list array = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list one = cx_json_list_begin(object->arena);
        cx_json_put_utf8(&one, "key", list[i].key);
        cx_json_put(&one, "expected", list[i].expected);
        cx_json_put(&one, "actual", list[i].actual);
        cx_json_add_object(&array, &one);
    }
    cx_json_put_array(object, name, &array);
}

cx_status cx_run_report_reexec(const cx_run_reexec_facts *facts, cx_arena *arena, cx_json *out,
                               cx_err *err)
{
    CX_ASSERT(facts != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena);
    bool holds = facts->hard_count == 0 && facts->error_count == 0;
    cx_json_put_utf8(&object, "run_id", facts->run_id);
    cx_json_put_z(&object, "status", holds ? "pass" : "fail");
    cx_json_put_utf8(&object, "reexec_ts", facts->at);
    cx_json_put_bool(&object, "hard_equal_pass", holds);
    cx_json_put_bool(&object, "soft_equal_pass", facts->soft_count == 0 && facts->error_count == 0);
    put_differences(&object, "hard_diffs", facts->hard, facts->hard_count);
    put_differences(&object, "soft_diffs", facts->soft, facts->soft_count);
    cx_json_put_utf8_strs(&object, "errors", facts->errors, facts->error_count);
    return cx_json_list_end_object(&object, out, err);
}
