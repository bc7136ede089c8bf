/*
 * state_split.c - S1 of a tech lead: a contract is split into parts (run.md §14).
 *
 * The agent takes one turn that may change nothing; its reply has the contracts of the parts.  Each
 * goes through all that a contract of a run goes through, and none may ask for more than the whole:
 *
 *   I1  what a part may change, the whole may change, and no other part may, unless both declare a
 *       lock on it: such parts never work at the same time (state_join.c).
 *   I2  a part has the baseline, the owner and the forbidden actions of the whole.
 *   I3  one plan is one level: a part is work, never another plan.
 */
#include "governor/state_internal.h"

#define PARTS_MAX CX_RUN_PARTS_MAX

typedef struct plan {
    cx_governor_task *t;
    struct part {
        cx_contract contract;
        cx_str text; /* as it is run */
    } * parts;
    size_t count;
    CX_VEC(cx_str) faults;
    const char *reason; /* of the first fault */
} plan;

/* --- what a part's files are named ------------------------------------------------------------ */

cx_str cx_task_file(cx_governor_task *t, const char *path)
{
    static const struct {
        const char *path, *format;
    } own[] = {
        {"contract.json", "tasks/%.*s.json"},
        {"reports/task_result.json", "results/%.*s/result.json"},
        {"reports/review_report.json", "reviews/%.*s.json"},
        {"reports/test_report.json", "ci/%.*s/report.json"},
    };
    cx_str rest = cx_str_z(path);
    int size = (int)t->id.size;
    if (!t->part)
        return cx_arena_copy_str(&t->arena, rest);
    for (size_t i = 0; i < CX_COUNT_OF(own); i++)
        if (cx_str_is(rest, own[i].path))
            return cx_arena_printf(&t->arena, own[i].format, size, t->id.data);
    if (cx_str_starts(rest, CX_STR("artifacts/")))
        return cx_arena_printf(&t->arena, "artifacts/tasks/%.*s/%s", size, t->id.data,
                               path + strlen("artifacts/"));
    return cx_arena_printf(&t->arena, "results/%.*s/%s", size, t->id.data, path);
}

/* --- faults ----------------------------------------------------------------------------------- */

/* `text` comes from cx_arena_printf: no data when out of memory. */
static cx_status add_fault(plan *p, const char *reason, cx_str text, cx_err *err)
{
    cx_str *slot = text.data == NULL ? NULL : cx_vec_push(&p->faults, p->t->governor->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = text;
    if (p->reason == NULL)
        p->reason = reason;
    return CX_SUCCESS;
}

/* "part: what" */
static cx_status add_part_fault(plan *p, const char *reason, cx_str id, cx_str what, cx_err *err)
{
    return add_fault(p, reason,
                     cx_arena_printf(&p->t->arena, "%.*s: %.*s", (int)id.size, id.data,
                                     (int)what.size, what.data),
                     err);
}

static cx_status add_part_faults(plan *p, const char *reason, cx_str id, const cx_texts *texts,
                                 cx_err *err)
{
    for (size_t i = 0; i < texts->count; i++)
        CX_TRY(add_part_fault(p, reason, id, texts->items[i], err));
    return CX_SUCCESS;
}

/* --- I1, I2 ----------------------------------------------------------------------------------- */

/* What an entry of a part covers, an entry of the whole covers. */
static bool is_covered_path(plan *p, cx_str entry)
{
    return cx_run_contract_covers(&p->t->contract.allowed_paths, entry);
}

static cx_status check_part_paths(plan *p, const cx_contract *part, cx_err *err)
{
    for (size_t i = 0; i < part->allowed_paths.count; i++)
        if (!is_covered_path(p, part->allowed_paths.items[i]))
            CX_TRY(add_fault(p, "wider_than_parent",
                             cx_arena_printf(&p->t->arena, "%.*s: allowed_paths %.*s",
                                             (int)part->task_id.size, part->task_id.data,
                                             (int)part->allowed_paths.items[i].size,
                                             part->allowed_paths.items[i].data),
                             err));
    return CX_SUCCESS;
}

static cx_status check_part_tools(plan *p, const cx_contract *part, cx_str_list tools, cx_err *err)
{
    for (size_t i = 0; i < tools.count; i++)
        if (!cx_str_list_has(p->t->contract.mcp_tool_set, tools.items[i]))
            CX_TRY(add_fault(p, "wider_than_parent",
                             cx_arena_printf(&p->t->arena, "%.*s: mcp_tools %.*s",
                                             (int)part->task_id.size, part->task_id.data,
                                             (int)tools.items[i].size, tools.items[i].data),
                             err));
    return CX_SUCCESS;
}

/* A part names hosts of the whole when that names any. */
static cx_status check_part_hosts(plan *p, const cx_contract *part, cx_err *err)
{
    const cx_str_list *whole = &p->t->contract.network_hosts;
    bool covered = whole->count == 0 || part->network_hosts.count != 0;
    for (size_t i = 0; whole->count != 0 && i < part->network_hosts.count && covered; i++)
        covered = cx_str_list_has(*whole, part->network_hosts.items[i]);
    return covered ? CX_SUCCESS
                   : add_part_fault(p, "wider_than_parent", part->task_id, CX_STR("network_hosts"),
                                    err);
}

static cx_status check_part_rights(plan *p, const cx_contract *part, cx_err *err)
{
    const cx_contract *whole = &p->t->contract;
    cx_str id = part->task_id;
    if (part->filesystem > CX_FS_WORKSPACE_WRITE)
        CX_TRY(add_part_fault(p, "wider_than_parent", id, CX_STR("filesystem"), err));
    if (part->shell > whole->shell)
        CX_TRY(add_part_fault(p, "wider_than_parent", id, CX_STR("shell"), err));
    if (part->network > whole->network)
        CX_TRY(add_part_fault(p, "wider_than_parent", id, CX_STR("network"), err));
    if (part->network != CX_NETWORK_DENY)
        CX_TRY(check_part_hosts(p, part, err));
    CX_TRY(check_part_tools(p, part, part->permissions.mcp_tools, err));
    return check_part_tools(p, part, part->mcp_tool_set, err);
}

static cx_status check_part_place(plan *p, const cx_contract *part, cx_err *err)
{
    const cx_contract *whole = &p->t->contract;
    cx_str id = part->task_id, lead = whole->assigned.agent_id;
    if (part->assigned.role == CX_ROLE_PM || part->assigned.role == CX_ROLE_TECH_LEAD)
        CX_TRY(add_part_fault(p, "nested_plan", id, CX_STR("assigned_agent.role"), err));
    if (part->audit_only)
        CX_TRY(add_part_fault(p, "not_of_this_plan", id, CX_STR("audit_only"), err));
    if (part->owner.role != CX_ROLE_TECH_LEAD || !cx_str_eq(part->owner.agent_id, lead))
        CX_TRY(add_part_fault(p, "not_of_this_plan", id, CX_STR("owner_agent"), err));
    if (!cx_str_eq(part->parent_task_id, p->t->id))
        CX_TRY(add_part_fault(p, "not_of_this_plan", id, CX_STR("parent_task_id"), err));
    if (!cx_str_eq(part->baseline_commit, p->t->governor->baseline))
        CX_TRY(add_part_fault(p, "not_of_this_plan", id, CX_STR("rollback.baseline_ref"), err));
    return CX_SUCCESS;
}

/* --- a part's contract ------------------------------------------------------------------------ */

/* Those of the part, then those of the whole that it left out. */
static cx_status forbidden_actions(plan *p, const cx_json *given, cx_json *out, cx_err *err)
{
    const cx_str_list *whole = &p->t->contract.forbidden_actions;
    const cx_json *own = cx_json_get_typed(given, CX_STR("forbidden_actions"), CX_JSON_ARRAY);
    cx_json_list array = cx_json_list_begin(&p->t->arena);
    for (uint32_t i = 0; own != NULL && i < own->count; i++)
        cx_json_list_add(&array, own->items[i]);
    for (size_t i = 0; i < whole->count; i++) {
        bool there = false;
        for (uint32_t k = 0; own != NULL && k < own->count && !there; k++)
            there = own->items[k].type == CX_JSON_STRING &&
                    cx_str_eq(cx_json_text(&own->items[k]), whole->items[i]);
        if (!there)
            cx_json_list_add(&array, cx_json_make_str(whole->items[i]));
    }
    return cx_json_list_end_array(&array, out, err);
}

/* As the tech lead wrote it, and what follows from whose part it is. */
static cx_status complete_part_contract(plan *p, const cx_json *given, cx_str *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&p->t->arena);
    cx_json value, actions;
    cx_buf text;
    CX_TRY(forbidden_actions(p, given, &actions, err));
    for (uint32_t i = 0; i < given->count; i++)
        if (!cx_str_is(cx_json_text(&given->members[i].name), "forbidden_actions"))
            cx_json_list_put(&object, cx_json_text(&given->members[i].name),
                             given->members[i].value);
    cx_json_list_put(&object, CX_STR("forbidden_actions"), actions);
    if (CX_JSON_GET(given, "parent_task_id") == NULL)
        cx_json_put_quoted(&object, "parent_task_id", p->t->id);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    cx_buf_init(&text, p->t->governor->alloc);
    cx_status status = cx_run_json_write(&text, &value, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(&p->t->arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

/* The contract as it will be run, read back from its resolved text. */
static cx_status read_resolved(plan *p, struct part *part, cx_err *err)
{
    cx_run_findings findings;
    cx_contract found;
    cx_run_findings_init(&findings, &p->t->arena);
    cx_status status = cx_run_contract_read(part->text, &p->t->arena, &findings, &found, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = cx_fail(err, CX_E_FORMAT, "the resolved contract of a part is not valid");
    cx_run_findings_done(&findings);
    CX_TRY(status);
    found.baseline_commit = part->contract.baseline_commit;
    found.output_schema_file = part->contract.output_schema_file;
    for (size_t i = 0; i < found.artifact_count; i++)
        if (part->contract.output_schema != NULL &&
            cx_str_eq(found.artifacts[i].name, part->contract.output_schema->name))
            found.output_schema = &found.artifacts[i];
    part->contract = found;
    return CX_SUCCESS;
}

static cx_status check_part(plan *p, const cx_json *given, cx_err *err)
{
    struct part *part = &p->parts[p->count];
    cx_texts texts = {NULL, 0};
    cx_str text;
    cx_str id = cx_arena_printf(&p->t->arena, "contracts/%zu", p->count);
    if (id.data == NULL)
        return cx_fail_nomem(err);
    if (given->type != CX_JSON_OBJECT)
        return add_part_fault(p, "contract_invalid", id, CX_STR("no object"), err);
    CX_TRY(complete_part_contract(p, given, &text, err));
    CX_TRY(cx_task_validate(p->t, text, &part->contract, &part->text, &texts, err));
    CX_TRY(add_part_faults(p, "contract_invalid", id, &texts, err));
    if (texts.count != 0)
        return CX_SUCCESS;
    CX_TRY(cx_task_check_policy(p->t, &part->contract, &texts, err));
    CX_TRY(add_part_faults(p, "policy", part->contract.task_id, &texts, err));
    CX_TRY(check_part_place(p, &part->contract, err));
    CX_TRY(check_part_paths(p, &part->contract, err));
    CX_TRY(check_part_rights(p, &part->contract, err));
    CX_TRY(read_resolved(p, part, err));
    p->count++;
    return CX_SUCCESS;
}

/* --- between parts ---------------------------------------------------------------------------- */

/* Work trees, references and contracts are named after tasks: "a" has "a.test" and "a.fix1". */
static bool names_of_other(cx_str id, cx_str other)
{
    static const char *const ends[] = {".test", ".review", ".agent"};
    if (cx_str_eq(id, other))
        return true;
    if (!cx_str_starts(id, other))
        return false;
    cx_str rest = {id.data + other.size, id.size - other.size};
    if (cx_str_starts(rest, CX_STR(".fix")))
        return true;
    for (size_t i = 0; i < CX_COUNT_OF(ends); i++)
        if (cx_str_is(rest, ends[i]))
            return true;
    return false;
}

static cx_status check_part_names(plan *p, cx_str a, cx_str b, cx_err *err)
{
    if (!names_of_other(a, b) && !names_of_other(b, a))
        return CX_SUCCESS;
    return add_part_fault(p, "task_id_taken", a, b, err);
}

/* Of two entries that overlap, the one inside the other. */
static cx_str narrower_entry(cx_str one, cx_str other)
{
    const cx_str_list wide = {&one, 1};
    return cx_run_contract_covers(&wide, other) ? other : one;
}

/* I1: the refusal names the lock that would allow it. */
static cx_status check_part_overlap(plan *p, const cx_contract *a, const cx_contract *b,
                                    cx_err *err)
{
    for (size_t i = 0; i < a->allowed_paths.count; i++)
        for (size_t k = 0; k < b->allowed_paths.count; k++) {
            cx_str one = a->allowed_paths.items[i], other = b->allowed_paths.items[k];
            if (cx_run_path_overlap(one, other, &p->t->governor->ground) == CX_RUN_APART)
                continue;
            cx_str shared = narrower_entry(one, other);
            if (cx_run_contract_covers(&a->locks, shared) &&
                cx_run_contract_covers(&b->locks, shared))
                continue;
            CX_TRY(add_fault(
                p, "overlap",
                cx_arena_printf(&p->t->arena,
                                "%.*s %.*s: %.*s %.*s; declare \"locks\": [\"%.*s\"] in both, or "
                                "give it to one",
                                (int)a->task_id.size, a->task_id.data, (int)b->task_id.size,
                                b->task_id.data, (int)one.size, one.data, (int)other.size,
                                other.data, (int)shared.size, shared.data),
                err));
        }
    return CX_SUCCESS;
}

static cx_status check_parts_together(plan *p, cx_err *err)
{
    for (size_t i = 0; i < p->count; i++) {
        const cx_contract *one = &p->parts[i].contract;
        CX_TRY(check_part_names(p, one->task_id, p->t->id, err));
        for (size_t k = 0; k < i; k++) {
            CX_TRY(check_part_names(p, one->task_id, p->parts[k].contract.task_id, err));
            CX_TRY(check_part_overlap(p, &p->parts[k].contract, one, err));
        }
    }
    return CX_SUCCESS;
}

/* --- the tasks -------------------------------------------------------------------------------- */

/* What S0 writes of a contract, of each part. */
static cx_status write_part_events(cx_governor_task *t, cx_err *err)
{
    cx_json_list valid = cx_json_list_begin(&t->arena), pack = cx_json_list_begin(&t->arena);
    cx_str path = cx_task_file(t, "contract.json");
    cx_texts none = {NULL, 0};
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_file_write(t->governor->run, path, cx_str_bytes(t->contract_text), err));
    cx_json_put_z(&valid, "schema", "task_contract.v1.json");
    cx_json_put_z(&valid, "lints", "K02-K15");
    CX_TRY(cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_CONTRACT_VALIDATED, &valid, err));
    cx_json_put_z(&pack, "policy_pack", cx_run_pack_name(t->contract.pack));
    CX_TRY(cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_POLICY_PACK_SELECTED, &pack, err));
    t->verdicts.policy = (cx_run_gate){true, true, NULL, 0};
    return cx_task_gate_event(t, CX_RUN_EVENT_POLICY_GATE_RESULT, true, &none, err);
}

/* The array has room for them already (state_start.c), so that tasks stay where they are. */
static cx_status make_parts(plan *p, cx_err *err)
{
    cx_governor *g = p->t->governor;
    for (size_t i = 0; i < p->count; i++) {
        cx_governor_task *part = &g->tasks[i + 1];
        memset(part, 0, sizeof *part);
        cx_governor_task_init(part, g, p->parts[i].contract.task_id);
        g->task_count = i + 2;
        part->part = true;
        part->contract = p->parts[i].contract;
        part->contract_text = p->parts[i].text;
        part->state = CX_S2_WORK;
        part->refusal.blocked = true;
        part->started_at = cx_governor_now(g, &part->arena);
        if (part->started_at.data == NULL)
            return cx_fail_nomem(err);
        cx_task_choose_runner(part);
        CX_TRY(write_part_events(part, err));
    }
    return CX_SUCCESS;
}

/* --- the state -------------------------------------------------------------------------------- */

static cx_status read_plan(plan *p, cx_err *err)
{
    const cx_json *given =
        cx_json_get_typed(&p->t->agent.reply, CX_STR("contracts"), CX_JSON_ARRAY);
    size_t count = given == NULL ? 0 : given->count;
    if (count == 0 || count > PARTS_MAX)
        return add_fault(
            p, count == 0 ? "no_contracts" : "too_many_contracts",
            cx_arena_printf(&p->t->arena, "%zu contracts; expected 1 to %d", count, PARTS_MAX),
            err);
    p->parts = CX_ARENA_ARRAY(&p->t->arena, struct part, count);
    if (p->parts == NULL)
        return cx_fail_nomem(err);
    memset(p->parts, 0, count * sizeof *p->parts);
    for (size_t i = 0; i < count; i++)
        CX_TRY(check_part(p, &given->items[i], err));
    return check_parts_together(p, err);
}

static cx_status use_plan(cx_governor_task *t, cx_err *err)
{
    plan p = {.t = t};
    t->gate = CX_GATE_PLAN;
    cx_status status = read_plan(&p, err);
    if (!cx_failed(status) && p.faults.count != 0) {
        cx_texts violations = {p.faults.items, p.faults.count};
        t->refusal.hint = p.faults.items[0];
        status = cx_task_refuse(t, CX_GATE_PLAN, p.reason, true, &violations, err);
    } else if (!cx_failed(status)) {
        status = make_parts(&p, err);
    }
    cx_vec_done(&p.faults, t->governor->alloc);
    return status;
}

cx_status cx_task_plan(cx_governor_task *t, cx_err *err)
{
    t->plans = true;
    CX_TRY(cx_task_enter(t, err));
    if (t->refused)
        return CX_SUCCESS;
    t->gate = CX_GATE_PLAN;
    if (t->governor->unconfined)
        return cx_task_refuse(t, CX_GATE_PLAN, "no_sandbox", true, NULL, err);
    CX_TRY(cx_task_turn(t, err));
    if (!t->refused)
        CX_TRY(use_plan(t, err));
    if (!t->refused)
        cx_task_go(t, CX_WHY_SPLIT);
    return CX_SUCCESS;
}
