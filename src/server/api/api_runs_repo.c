/*
 * api_runs_repo.c - everything about the runs of a repository together: lists, contracts, locks,
 * work trees, policies, agents, approvals; and the two changes that are possible, starting a run
 * and submitting a signed approval (run.md §21, decision 0020).
 *
 * An approval is accepted only when its signature verifies, its key is an approver's, and it is
 * valid now; whether it lifts a finding is decided by the run that uses it.
 */
#include "os/api.h"
#include "crypto/api.h"
#include "approval/api.h"
#include "contract/api.h"
#include "governor/api.h"
#include "bundle/api.h"
#include "git/api.h"
#include "server/route.h"
#include "server/feed/part_runs.h"
#include "server/feed/runs.h"

/* Without a runtime root there are no runs yet, which is no error: an empty list. */
static cx_status open_store(cx_call *call, cx_runs **out_runs, cx_run_store *out, bool *out_found,
                            cx_err *err)
{
    CX_TRY(cx_api_runs_of(call, out_runs, err));
    cx_status status = cx_runs_store(*out_runs, out, err);
    *out_found = !cx_failed(status);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

static cx_status answer_nothing(cx_call *call, cx_err *err)
{
    cx_json value;
    cx_json_list object = cx_json_list_begin(call->arena);
    cx_json_put_utf8_strs(&object, "items", NULL, 0);
    cx_json_put(&object, "next", cx_json_make_null());
    cx_json_put_z(&object, "execution_authority", "task_contract");
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- lists ------------------------------------------------------------------------------------ */

static cx_status run_is_sealed(void *ctx, cx_str run_id, bool *out, cx_err *err)
{
    return cx_run_index_sealed(ctx, run_id, out, err);
}

cx_status cx_api_runs(cx_call *call, cx_err *err)
{
    static const char *const statuses[] = {"RUNNING", "SUCCESS", "FAILURE"};
    const cx_param *status = cx_call_param(call, "status"), *limit = cx_call_param(call, "limit");
    cx_run_list_query query = {.cursor = cx_call_text(call, "cursor"),
                               .limit = limit->given ? (size_t)limit->count : 0};
    cx_runs *runs = NULL;
    cx_run_store store;
    cx_json value;
    bool there;
    const bool stored = cx_part_runs_served(call);
    if (!stored) {
        CX_TRY(open_store(call, &runs, &store, &there, err));
        if (!there)
            return answer_nothing(call, err);
    }
    if (status->given)
        query.status = cx_str_z(statuses[status->choice]);
    if (query.cursor.data != NULL && !cx_run_id_valid(query.cursor))
        return cx_fail_at(err, CX_E_FORMAT, "BadCursor", CX_NO_OFFSET,
                          "cursor: expected `next` of the previous page");
    if (stored) {
        CX_TRY(cx_part_run_list(call, &query, &value, err));
        return cx_call_answer_json(call, 200, &value, err);
    }
    const cx_run_seals seals = {.ctx = cx_runs_index(runs), .sealed = run_is_sealed};
    CX_TRY(cx_run_view_list(&store, &seals, &query, call->arena, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

typedef cx_status store_view(const cx_run_store *store, cx_arena *arena, cx_json *out, cx_err *err);

static cx_status answer_view(cx_call *call, store_view *view, cx_err *err)
{
    cx_runs *runs;
    cx_run_store store;
    cx_json value;
    bool there;
    CX_TRY(open_store(call, &runs, &store, &there, err));
    if (!there)
        return answer_nothing(call, err);
    CX_TRY(view(&store, call->arena, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_run_locks(cx_call *call, cx_err *err)
{
    return answer_view(call, cx_run_view_locks, err);
}

cx_status cx_api_run_approvals(cx_call *call, cx_err *err)
{
    return answer_view(call, cx_run_view_approvals, err);
}

static cx_status view_contracts(const cx_run_store *store, cx_arena *arena, cx_json *out,
                                cx_err *err)
{
    return cx_run_view_contracts(store, 0, arena, out, err);
}

cx_status cx_api_run_contracts(cx_call *call, cx_err *err)
{
    return answer_view(call, view_contracts, err);
}

cx_status cx_api_run_contract(cx_call *call, cx_err *err)
{
    cx_runs *runs;
    cx_run_store store;
    cx_json value;
    bool there;
    CX_TRY(open_store(call, &runs, &store, &there, err));
    if (!there)
        return cx_fail(err, CX_E_NOT_FOUND, "no run has a task with this id");
    CX_TRY(cx_run_view_contract(&store, call->captures[0], call->arena, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- the repository --------------------------------------------------------------------------- */

static cx_status open_git(cx_call *call, cx_runs **out_runs, cx_git **out, cx_err *err)
{
    CX_TRY(cx_api_runs_of(call, out_runs, err));
    return cx_git_open(cx_runs_repo(*out_runs), NULL, call->service->alloc, out, err);
}

cx_status cx_api_run_worktrees(cx_call *call, cx_err *err)
{
    cx_runs *runs;
    cx_git *git = NULL;
    cx_run_store store;
    cx_worktree_listed *list;
    size_t count = 0;
    cx_json value;
    bool there;
    CX_TRY(open_store(call, &runs, &store, &there, err));
    if (!there)
        return answer_nothing(call, err);
    CX_TRY(open_git(call, &runs, &git, err));
    cx_status status = cx_run_worktree_list(git, store.root, call->arena, &list, &count, err);
    cx_git_close(git);
    CX_TRY(status);
    cx_json_list object = cx_json_list_begin(call->arena), items = cx_json_list_begin(call->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list one = cx_json_list_begin(call->arena);
        char head[CX_OID_TEXT_SIZE];
        if (!list[i].ours)
            continue;
        cx_oid_text(&list[i].head, head);
        /* From the runtime root: no path of the machine. */
        cx_str path = list[i].path, root = cx_str_z(store.root);
        if (cx_str_starts(path, root) && path.size > root.size)
            path = cx_str_from(path.data + root.size + 1, path.size - root.size - 1);
        cx_json_put_utf8(&one, "path", path);
        cx_json_put_utf8(&one, "run_id", list[i].run_id);
        cx_json_put_utf8(&one, "branch", list[i].branch);
        cx_json_put_utf8(&one, "head", cx_arena_copy_str(call->arena, cx_str_z(head)));
        cx_json_put_bool(&one, "orphan", list[i].prunable);
        cx_json_add_object(&items, &one);
    }
    cx_json_put_array(&object, "items", &items);
    cx_json_put_z(&object, "execution_authority", "task_contract");
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

typedef struct policies {
    cx_run_findings findings;
    cx_run_policy policy;
    cx_str commit;
    cx_git *git;
    cx_run_git_repo repo;
} policies;

/* Those of HEAD: the policies of a run that starts now. */
static cx_status load_policies(cx_call *call, policies *out, cx_err *err)
{
    cx_runs *runs;
    cx_oid head;
    char text[CX_OID_TEXT_SIZE];
    memset(out, 0, sizeof *out);
    cx_run_findings_init(&out->findings, call->arena);
    CX_TRY(open_git(call, &runs, &out->git, err));
    CX_TRY(cx_git_resolve(out->git, CX_STR("HEAD"), &head, err));
    cx_oid_text(&head, text);
    out->commit = cx_arena_copy_str(call->arena, cx_str_z(text));
    if (out->commit.data == NULL)
        return cx_fail_nomem(err);
    const cx_run_repo repo = cx_run_git_repo_init(&out->repo, out->git, call->arena);
    return cx_run_policy_load(&repo, out->commit, call->arena, &out->findings, &out->policy, err);
}

static void close_policies(policies *p)
{
    cx_run_findings_done(&p->findings);
    cx_git_close(p->git);
}

static cx_status add_problems(const policies *p, cx_json_list *object, cx_err *err)
{
    cx_json problems;
    CX_TRY(cx_run_findings_json(&p->findings, object->arena, &problems, err));
    cx_json_put(object, "problems", problems);
    cx_json_put_utf8(object, "commit", p->commit);
    cx_json_put_z(object, "execution_authority", "task_contract");
    return CX_SUCCESS;
}

static cx_status answer_policies(cx_call *call, const policies *p, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(call->arena), items = cx_json_list_begin(call->arena);
    cx_json value;
    for (size_t i = 0; p->findings.refusing == 0 && i < p->policy.file_count; i++) {
        cx_json_list one = cx_json_list_begin(call->arena);
        cx_json_put_utf8(&one, "path", p->policy.files[i].path);
        cx_json_put_digest(&one, "sha256", &p->policy.files[i].sha256);
        cx_json_put_uint(&one, "size_bytes", p->policy.files[i].bytes.size);
        cx_json_add_object(&items, &one);
    }
    cx_json_put_array(&object, "items", &items);
    cx_json_put_bool(&object, "built_in", p->policy.built_in);
    CX_TRY(add_problems(p, &object, err));
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_run_policies(cx_call *call, cx_err *err)
{
    policies p;
    cx_status status = load_policies(call, &p, err);
    if (!cx_failed(status))
        status = answer_policies(call, &p, err);
    close_policies(&p);
    return status;
}

/* The registry as it is written: agents and what their roles are for. */
static cx_status answer_agents(cx_call *call, const policies *p, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(call->arena);
    cx_json value;
    bool good = p->findings.refusing == 0;
    const cx_json *agents = good ? CX_JSON_GET(&p->policy.registry, "agents") : NULL;
    const cx_json *roles = good ? CX_JSON_GET(&p->policy.registry, "role_contracts") : NULL;
    if (agents == NULL)
        cx_json_put_utf8_strs(&object, "items", NULL, 0);
    else
        cx_json_put(&object, "items", *agents);
    cx_json_put(&object, "role_contracts", roles == NULL ? cx_json_make_null() : *roles);
    CX_TRY(add_problems(p, &object, err));
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_run_agents(cx_call *call, cx_err *err)
{
    policies p;
    cx_status status = load_policies(call, &p, err);
    if (!cx_failed(status))
        status = answer_agents(call, &p, err);
    close_policies(&p);
    return status;
}

/* --- approvals -------------------------------------------------------------------------------- */

/* The payload of an envelope, if it has the expected form. */
static bool read_payload(const cx_json *envelope, cx_arena *arena, cx_run_approval *out)
{
    cx_buf payload;
    cx_str text = CX_JSON_GET_STR(envelope, "payload"), copy = {NULL, 0};
    cx_buf_init(&payload, arena->alloc);
    if (text.data != NULL && cx_base64_decode(text, CX_BASE64, &payload) && !payload.failed)
        copy = cx_arena_copy_str(arena, cx_buf_str(&payload));
    cx_buf_done(&payload);
    return copy.data != NULL &&
           !cx_failed(cx_run_approval_decode(cx_str_bytes(copy), arena, out, NULL));
}

static cx_status reject_approval(cx_call *call, cx_str why)
{
    const cx_problem problem = {
        .status = 422, .type = "invalid-request", .detail = why, .pointer = CX_STR("")};
    cx_call_problem(call, &problem);
    return CX_SUCCESS;
}

/* Signature, key, time, shape: what does not depend on the run that will use it. */
static cx_status check_approval(cx_call *call, const cx_run_store *store, const policies *p,
                                const cx_run_approval *stated, cx_str *out_why, cx_err *err)
{
    const cx_io *io = call->service->io;
    cx_run_approvals set;
    const cx_run_approval_context context = {
        .io = io,
        .runtime_root = store->root,
        .policy = &p->policy,
        .run_id = stated->run_id.data == NULL ? CX_STR("") : stated->run_id,
        .contract_sha256 = stated->contract_sha256,
        .now_ns = (int64_t)io->wall_ns(io),
    };
    cx_run_approvals_init(&set, &context, call->arena);
    cx_status status = cx_run_approvals_add(&set, CX_STR("approval"), call->request.body, err);
    *out_why = cx_str_from(NULL, 0);
    if (!cx_failed(status) && set.list.count == 0)
        *out_why = set.refused.list.count == 0 ? CX_STR("the approval is not valid")
                                               : set.refused.list.items[0].message;
    cx_run_approvals_done(&set);
    return status;
}

/* approvals/<sha256 of the envelope>.json: handing in the same one twice is handing it in once. */
static cx_status store_approval(cx_call *call, const cx_run_store *store, cx_json *out, cx_err *err)
{
    char hex[65];
    const cx_digest digest = cx_digest_of(call->request.body);
    cx_file root;
    cx_json_list object = cx_json_list_begin(call->arena);
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    hex[64] = 0;
    cx_str path = cx_arena_printf(call->arena, CX_RUN_APPROVALS_FOLDER "/%s.json", hex);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open(store->root, &root, err));
    cx_status status = cx_folder_make_folders(root, CX_RUN_APPROVALS_FOLDER, 0700, err);
    if (!cx_failed(status))
        status = cx_run_write_file_in(call->service->io, root, path.data, call->request.body, err);
    cx_folder_close(root);
    CX_TRY(status);
    cx_json_put_utf8(&object, "path", path);
    cx_json_put_digest(&object, "sha256", &digest);
    return cx_json_list_end_object(&object, out, err);
}

static cx_status receive_approval(cx_call *call, const cx_run_store *store, policies *p,
                                  cx_err *err)
{
    cx_json envelope, stored;
    cx_run_approval stated = {.run_id = {NULL, 0}};
    cx_str why;
    bool read;
    CX_TRY(cx_call_json(call, &envelope, &read, err));
    if (!read)
        return CX_SUCCESS;
    if (!read_payload(&envelope, call->arena, &stated))
        return reject_approval(call, CX_STR("expected a DSSE envelope around an approval"));
    CX_TRY(load_policies(call, p, err));
    if (p->findings.refusing != 0)
        return reject_approval(call, CX_STR("the repository's policies cannot be read, so no "
                                            "approval can be accepted; see GET /policies"));
    CX_TRY(check_approval(call, store, p, &stated, &why, err));
    if (why.data != NULL)
        return reject_approval(call, why);
    CX_TRY(store_approval(call, store, &stored, err));
    cx_json_list answer = cx_json_list_begin(call->arena);
    cx_json value;
    cx_json_put_utf8(&answer, "approval_id", stated.approval_id);
    for (uint32_t i = 0; i < stored.count; i++)
        cx_json_list_put(&answer, cx_json_text(&stored.members[i].name), stored.members[i].value);
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(call, 201, &value, err);
}

cx_status cx_api_run_approve(cx_call *call, cx_err *err)
{
    policies p = {.git = NULL};
    cx_runs *runs;
    cx_run_store store;
    bool there;
    CX_TRY(open_store(call, &runs, &store, &there, err));
    if (!there)
        return reject_approval(
            call, CX_STR("the repository has no runtime root yet: run `cortex init` in it"));
    cx_run_findings_init(&p.findings, call->arena);
    cx_status status = receive_approval(call, &store, &p, err);
    close_policies(&p);
    return status;
}

/* --- starting --------------------------------------------------------------------------------- */

static cx_status reject_start(cx_call *call, const char *pointer, cx_str why)
{
    const cx_problem problem = {
        .status = 422, .type = "invalid-request", .detail = why, .pointer = cx_str_z(pointer)};
    cx_call_problem(call, &problem);
    return CX_SUCCESS;
}

static bool is_name(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (i > 0 && (c == '-' || c == '_' || c == '.'))))
            return false;
    }
    return text.size != 0 && text.size <= 64;
}

/* The contract as bytes, or false when the call was answered. */
static cx_status read_contract(cx_call *call, const cx_json *value, cx_buf *given, bool *out_good,
                               cx_err *err)
{
    if (value->type != CX_JSON_OBJECT)
        return reject_start(call, "/contract", CX_STR("expected a task contract"));
    CX_TRY(cx_run_json_write(given, value, err));
    if (given->size > CX_RUN_CONTRACT_BYTES_MAX)
        return reject_start(call, "/contract", CX_STR("the contract is longer than 1 MiB"));
    *out_good = true;
    return CX_SUCCESS;
}

static cx_status read_intent(cx_call *call, const cx_json *value, cx_buf *given, bool *out_good,
                             cx_err *err)
{
    cx_str text = value->type == CX_JSON_STRING ? cx_json_text(value) : CX_STR("");
    if (text.size == 0)
        return reject_start(call, "/intent", CX_STR("expected a request as text"));
    if (text.size > CX_RUN_INTENT_BYTES_MAX)
        return reject_start(call, "/intent", CX_STR("the request is longer than 64 KiB"));
    cx_buf_add_str(given, text);
    *out_good = true;
    return cx_buf_check(given, err);
}

static cx_status check_start_members(cx_call *call, const cx_json *body, bool *out_good)
{
    static const char *const known[] = {"contract", "intent", "runner", "no_merge"};
    for (uint32_t i = 0; body->type == CX_JSON_OBJECT && i < body->count; i++) {
        cx_str name = cx_json_text(&body->members[i].name);
        size_t at = 0;
        while (at < CX_COUNT_OF(known) && !cx_str_is(name, known[at]))
            at++;
        if (at == CX_COUNT_OF(known))
            return reject_start(call, "",
                                CX_STR("expected contract or intent, runner and no_merge only"));
    }
    *out_good = true;
    return CX_SUCCESS;
}

static cx_status read_start_options(cx_call *call, const cx_json *body, cx_run_start *out,
                                    bool *out_good)
{
    const cx_json *runner = CX_JSON_GET(body, "runner");
    const cx_json *no_merge = CX_JSON_GET(body, "no_merge");
    if (runner != NULL && (runner->type != CX_JSON_STRING || !is_name(cx_json_text(runner)) ||
                           cx_str_is(cx_json_text(runner), "replay-script")))
        return reject_start(call, "/runner", CX_STR("expected the name of a configured runner"));
    if (no_merge != NULL && no_merge->type != CX_JSON_TRUE && no_merge->type != CX_JSON_FALSE)
        return reject_start(call, "/no_merge", CX_STR("expected true or false"));
    out->runner = runner == NULL ? (cx_str){NULL, 0} : cx_json_text(runner);
    out->no_merge = no_merge != NULL && no_merge->type == CX_JSON_TRUE;
    *out_good = true;
    return CX_SUCCESS;
}

/* {"contract": {..}} or {"intent": ".."}, with "runner"?: word and "no_merge"?: bool; nothing else.
 * `*out_good`: `out` is filled, and the call was not answered. */
static cx_status read_start(cx_call *call, cx_buf *given, cx_run_start *out, bool *out_good,
                            cx_err *err)
{
    cx_json body;
    bool good = false;
    *out_good = false;
    CX_TRY(cx_call_json(call, &body, &good, err));
    if (!good)
        return CX_SUCCESS;
    good = false;
    CX_TRY(check_start_members(call, &body, &good));
    if (!good)
        return CX_SUCCESS;
    const cx_json *contract = CX_JSON_GET(&body, "contract"),
                  *intent = CX_JSON_GET(&body, "intent");
    if ((contract == NULL) == (intent == NULL))
        return reject_start(call, contract == NULL ? "/contract" : "/intent",
                            CX_STR("expected a task contract, or a request (intent)"));
    good = false;
    CX_TRY(read_start_options(call, &body, out, &good));
    if (!good)
        return CX_SUCCESS;
    out->is_intent = intent != NULL;
    if (intent != NULL)
        CX_TRY(read_intent(call, intent, given, out_good, err));
    else
        CX_TRY(read_contract(call, contract, given, out_good, err));
    out->contract = cx_buf_bytes(given);
    return CX_SUCCESS;
}

static cx_status answer_started(cx_call *call, const cx_run_start *what,
                                const cx_run_started *started, cx_err *err)
{
    cx_json value;
    cx_json_list object = cx_json_list_begin(call->arena);
    if (started->run_id.size == 0) {
        cx_str why =
            started->message.size == 0
                ? CX_STR("no run was started; run `cortex run` in the repository to see the cause")
                : started->message;
        return reject_start(call, what->is_intent ? "/intent" : "/contract", why);
    }
    cx_json_put_utf8(&object, "run_id", started->run_id);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    CX_TRY(cx_call_answer_json(call, 202, &value, err));
    cx_call_header(call, "Location", "/api/v1/runs/%.*s",
                   (int)(started->run_id.size > 80 ? 80 : started->run_id.size),
                   started->run_id.data);
    return CX_SUCCESS;
}

cx_status cx_api_run_start(cx_call *call, cx_err *err)
{
    cx_runs *runs;
    cx_run_start what = {.runner = {NULL, 0}};
    cx_run_started started;
    cx_buf given;
    bool good;
    CX_TRY(cx_api_runs_of(call, &runs, err));
    cx_buf_init(&given, call->service->alloc);
    cx_status status = read_start(call, &given, &what, &good, err);
    if (!cx_failed(status) && good)
        status = cx_runs_start(runs, &what, call->arena, &started, err);
    if (!cx_failed(status) && good)
        status = answer_started(call, &what, &started, err);
    cx_buf_done(&given);
    return status;
}
