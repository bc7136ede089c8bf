/*
 * api_intake.c - requests in plain words, their plans, and the cases that they become (run.md §21,
 * decision 0020).
 *
 * Queueing, starting and cancelling need the scope of starting runs.  A start names the hash of the
 * contract that its caller has seen, and what would refuse that contract is asked again: a plan
 * that was looked at yesterday is not what starts today when either has changed.
 */
#include "audit/api.h"
#include "contract/api.h"
#include "crypto/api.h"
#include "governor/api.h"
#include "os/api.h"
#include "server/feed/plan_queue.h"
#include "server/feed/runs.h"
#include "server/route.h"

#define STARTING_WAIT_MS 30000

/* --- what every call needs -------------------------------------------------------------------- */

typedef struct intake_call {
    cx_call *call;
    cx_runs *runs;
    cx_run_store store;
    bool there; /* the runtime root */
} intake_call;

static cx_status open_intake(cx_call *call, intake_call *out, cx_err *err)
{
    *out = (intake_call){.call = call};
    CX_TRY(cx_api_runs_of(call, &out->runs, err));
    cx_facts facts;
    cx_err why;
    CX_TRY(cx_runs_store(out->runs, &out->store, err));
    cx_status status = cx_path_facts(out->store.root, true, &facts, &why);
    out->there = !cx_failed(status) && facts.kind == CX_FILE_FOLDER;
    return CX_SUCCESS;
}

static cx_status no_case(cx_err *err)
{
    return cx_fail(err, CX_E_NOT_FOUND, "no case has this id; GET /api/v1/cases lists them");
}

static cx_status answer_case(intake_call *c, unsigned status, const cx_run_case *one, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_run_view_case(&c->store, one, c->call->arena, &value, err));
    CX_TRY(cx_call_answer_json(c->call, status, &value, err));
    if (status == 201)
        cx_call_header(c->call, "Location", "/api/v1/cases/%.*s", (int)one->case_id.size,
                       one->case_id.data);
    return CX_SUCCESS;
}

static bool is_runner_name(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (i > 0 && (c == '-' || c == '_' || c == '.'))))
            return false;
    }
    return text.size != 0 && text.size <= 64 && !cx_str_is(text, "replay-script");
}

/* False: answered. */
static bool check_members(cx_call *call, const cx_json *body, const char *const *known,
                          const char *expected)
{
    bool good = body->type == CX_JSON_OBJECT;
    for (uint32_t i = 0; good && i < body->count; i++) {
        size_t at = 0;
        while (known[at] != NULL && !cx_str_is(cx_json_text(&body->members[i].name), known[at]))
            at++;
        good = known[at] != NULL;
    }
    if (!good)
        cx_call_refuse_member(call, "", expected);
    return good;
}

static bool read_runner(cx_call *call, const cx_json *body, cx_str *out)
{
    const cx_json *runner = CX_JSON_GET(body, "runner");
    *out = CX_STR("");
    if (runner == NULL)
        return true;
    if (runner->type != CX_JSON_STRING || !is_runner_name(cx_json_text(runner))) {
        cx_call_refuse_member(call, "/runner", "expected the name of a configured runner");
        return false;
    }
    *out = cx_json_text(runner);
    return true;
}

/* --- queueing --------------------------------------------------------------------------------- */

static bool is_blank(cx_str text)
{
    size_t at = 0;
    while (at < text.size && (uint8_t)text.data[at] <= 0x20)
        at++;
    return at == text.size;
}

static bool is_key(cx_str text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((uint8_t)text.data[i] <= 0x20 || (uint8_t)text.data[i] > 0x7e)
            return false;
    return text.size != 0 && text.size <= CX_RUN_CASE_KEY_MAX;
}

/* {"intent", "key"?, "runner"?, "no_merge"?}; false: answered. */
static bool read_intent_request(cx_call *call, const cx_json *body, cx_run_case *out)
{
    static const char *const known[] = {"intent", "key", "runner", "no_merge", NULL};
    if (!check_members(call, body, known, "expected intent, key, runner and no_merge only"))
        return false;
    const cx_json *intent = CX_JSON_GET(body, "intent"), *key = CX_JSON_GET(body, "key"),
                  *no_merge = CX_JSON_GET(body, "no_merge");
    if (intent == NULL || intent->type != CX_JSON_STRING || is_blank(cx_json_text(intent))) {
        cx_call_refuse_member(call, "/intent", "expected a request as text, and not blank");
        return false;
    }
    if (cx_json_text(intent).size > CX_RUN_INTENT_BYTES_MAX) {
        cx_call_refuse_member(call, "/intent", "the request is longer than 64 KiB");
        return false;
    }
    if (key != NULL && (key->type != CX_JSON_STRING || !is_key(cx_json_text(key)))) {
        cx_call_refuse_member(call, "/key",
                              "expected 1 to 128 printable ASCII characters without spaces");
        return false;
    }
    if (no_merge != NULL && no_merge->type != CX_JSON_TRUE && no_merge->type != CX_JSON_FALSE) {
        cx_call_refuse_member(call, "/no_merge", "expected true or false");
        return false;
    }
    out->intent = cx_json_text(intent);
    out->key = key == NULL ? CX_STR("") : cx_json_text(key);
    out->no_merge = no_merge != NULL && no_merge->type == CX_JSON_TRUE;
    out->requested_by = cx_str_z(call->token.name[0] != 0 ? call->token.name : call->token.id);
    return read_runner(call, body, &out->runner);
}

cx_status cx_api_intent_add(cx_call *call, cx_err *err)
{
    intake_call c;
    cx_json body;
    cx_run_case asked = {.state = CX_CASE_QUEUED}, one;
    bool read, is_new;
    CX_TRY(open_intake(call, &c, err));
    if (!c.there) {
        cx_call_refuse_member(call, "",
                              "the repository has no runtime root yet: run `cortex init` in it");
        return CX_SUCCESS;
    }
    CX_TRY(cx_call_json(call, &body, &read, err));
    if (!read || !read_intent_request(call, &body, &asked))
        return CX_SUCCESS;
    CX_TRY(cx_run_case_add(&c.store, &asked, call->arena, &one, &is_new, err));
    cx_runs_wake_queue(c.runs);
    return answer_case(&c, is_new ? 201 : 200, &one, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

static cx_status answer_nothing(cx_call *call, bool has_next, cx_err *err)
{
    cx_json value;
    cx_json_list object = cx_json_list_begin(call->arena);
    cx_json_put_utf8_strs(&object, "items", NULL, 0);
    if (has_next)
        cx_json_put_null(&object, "next");
    cx_json_put_z(&object, "execution_authority", "task_contract");
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_intents(cx_call *call, cx_err *err)
{
    intake_call c;
    cx_json value;
    CX_TRY(open_intake(call, &c, err));
    if (!c.there)
        return answer_nothing(call, false, err);
    CX_TRY(cx_run_view_intents(&c.store, call->arena, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_cases(cx_call *call, cx_err *err)
{
    static const char *const states[] = {"QUEUED",  "PLANNING", "PLANNED", "REFUSED",
                                         "RUNNING", "DONE",     "FAILED",  "CANCELLED"};
    const cx_param *state = cx_call_param(call, "state"), *limit = cx_call_param(call, "limit");
    cx_run_case_query query = {.cursor = cx_call_text(call, "cursor"),
                               .limit = limit->given ? (size_t)limit->count : 0};
    intake_call c;
    cx_json value;
    CX_TRY(open_intake(call, &c, err));
    if (query.cursor.data != NULL && !cx_run_case_id_valid(query.cursor))
        return cx_fail_at(err, CX_E_FORMAT, "BadCursor", CX_NO_OFFSET,
                          "cursor: expected `next` of the previous page");
    if (!c.there)
        return answer_nothing(call, true, err);
    if (state->given)
        query.state = cx_str_z(states[state->choice]);
    CX_TRY(cx_run_view_cases(&c.store, &query, call->arena, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_case(cx_call *call, cx_err *err)
{
    intake_call c;
    cx_run_case one;
    CX_TRY(open_intake(call, &c, err));
    if (!c.there)
        return no_case(err);
    CX_TRY(cx_run_case_read(&c.store, call->captures[0], call->arena, &one, err));
    return answer_case(&c, 200, &one, err);
}

/* --- preview ---------------------------------------------------------------------------------- */

cx_status cx_api_contract_preview(cx_call *call, cx_err *err)
{
    static const char *const known[] = {"contract", "runner", NULL};
    cx_runs *runs;
    cx_json body, value;
    cx_str runner;
    cx_buf given;
    bool read, allow;
    CX_TRY(cx_api_runs_of(call, &runs, err));
    CX_TRY(cx_call_json(call, &body, &read, err));
    if (!read || !check_members(call, &body, known, "expected contract and runner only") ||
        !read_runner(call, &body, &runner))
        return CX_SUCCESS;
    const cx_json *contract = CX_JSON_GET(&body, "contract");
    if (contract == NULL || contract->type != CX_JSON_OBJECT) {
        cx_call_refuse_member(call, "/contract", "expected a task contract");
        return CX_SUCCESS;
    }
    cx_buf_init(&given, call->service->alloc);
    cx_status status = cx_run_json_write(&given, contract, err);
    if (!cx_failed(status))
        status = cx_buf_check(&given, err);
    if (!cx_failed(status) && given.size > CX_RUN_CONTRACT_BYTES_MAX)
        cx_call_refuse_member(call, "/contract", "the contract is longer than 1 MiB");
    else if (!cx_failed(status))
        status = cx_plan_preview(cx_runs_options_of(runs), cx_buf_bytes(&given), runner,
                                 call->arena, &value, &allow, err);
    if (!cx_failed(status) && call->response.status == 0)
        status = cx_call_answer_json(call, 200, &value, err);
    cx_buf_done(&given);
    return status;
}

/* --- starting --------------------------------------------------------------------------------- */

/* The first refusal, for people. */
static cx_str first_refusal(const cx_json *shown)
{
    const cx_json *list = cx_json_get_typed(shown, CX_STR("refusals"), CX_JSON_ARRAY);
    return list == NULL || list->count == 0 ? CX_STR("its case says why")
                                            : CX_JSON_GET_STR(&list->items[0], "text");
}

static cx_status refuse_start(intake_call *c, const cx_run_case *one, cx_err *err)
{
    cx_json shown;
    CX_TRY(cx_run_view_case(&c->store, one, c->call->arena, &shown, err));
    cx_str why = first_refusal(&shown);
    return cx_fail(err, CX_E_CONFLICT, "the plan would be refused: %.*s",
                   why.size > 300 ? 300 : (int)why.size, why.data);
}

/* A plan without a run; a run that failed may be followed by another. */
static cx_status check_state(intake_call *c, const cx_run_case *one, cx_err *err)
{
    cx_str state;
    CX_TRY(cx_run_case_state_text(&c->store, one, c->call->arena, &state, err));
    if (cx_str_is(state, "REFUSED"))
        return refuse_start(c, one, err);
    if (!cx_str_is(state, "PLANNED") && !cx_str_is(state, "FAILED"))
        return cx_fail(err, CX_E_CONFLICT,
                       "the case is %.*s: only one that is PLANNED, or FAILED, can be started",
                       (int)state.size, state.data);
    if (one->runs.type == CX_JSON_ARRAY && one->runs.count >= CX_RUN_CASE_RUNS_MAX)
        return cx_fail(err, CX_E_CONFLICT, "the case has %d runs already: queue a new request",
                       CX_RUN_CASE_RUNS_MAX);
    return CX_SUCCESS;
}

/* What refuses it now is written down; the case is read again under the mutex. */
static cx_status change_case(intake_call *c, cx_str case_id, const cx_json *preview, cx_str run_id,
                             cx_run_case *one, cx_err *err)
{
    cx_file mutex;
    CX_TRY(cx_run_cases_lock(&c->store, c->call->arena, &mutex, err));
    cx_status status = cx_run_case_read(&c->store, case_id, c->call->arena, one, err);
    if (!cx_failed(status) && preview != NULL) {
        one->preview = *preview;
        one->state = CX_CASE_REFUSED;
    }
    if (!cx_failed(status) && run_id.size != 0) {
        status = cx_run_case_add_run(one, run_id, c->call->arena, err);
        one->state = CX_CASE_STARTED;
    }
    if (!cx_failed(status))
        status = cx_run_case_write(&c->store, one, c->call->arena, err);
    cx_flock_release(mutex);
    return status;
}

static cx_status answer_started(cx_call *call, cx_str case_id, cx_str run_id, cx_err *err)
{
    cx_json value;
    cx_json_list object = cx_json_list_begin(call->arena);
    cx_json_put_utf8(&object, "case_id", case_id);
    cx_json_put_utf8(&object, "run_id", run_id);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    CX_TRY(cx_call_answer_json(call, 202, &value, err));
    cx_call_header(call, "Location", "/api/v1/runs/%.*s", (int)run_id.size, run_id.data);
    return CX_SUCCESS;
}

/* Nothing else starts a case meanwhile. */
static cx_status start_case(intake_call *c, cx_str seen, cx_err *err)
{
    cx_call *call = c->call;
    cx_run_case one;
    cx_bytes contract;
    cx_json preview;
    cx_run_started started;
    bool allow;
    CX_TRY(cx_run_case_read(&c->store, call->captures[0], call->arena, &one, err));
    CX_TRY(check_state(c, &one, err));
    if (!cx_str_eq(seen, one.contract_sha256))
        return cx_fail(err, CX_E_CONFLICT,
                       "the case's contract has another hash, %.*s: look at it, and start that",
                       (int)one.contract_sha256.size, one.contract_sha256.data);
    CX_TRY(cx_run_case_contract(&c->store, &one, call->arena, &contract, err));
    CX_TRY(cx_plan_preview(cx_runs_options_of(c->runs), contract, one.runner, call->arena, &preview,
                           &allow, err));
    if (!allow) {
        CX_TRY(change_case(c, one.case_id, &preview, CX_STR(""), &one, err));
        return refuse_start(c, &one, err);
    }
    cx_run_start what = {.contract = contract,
                         .runner = one.runner.size == 0 ? (cx_str){NULL, 0} : one.runner,
                         .no_merge = one.no_merge};
    CX_TRY(cx_runs_start(c->runs, &what, call->arena, &started, err));
    if (started.run_id.size == 0)
        return cx_fail(err, CX_E_CONFLICT, "no run was started: %.*s",
                       (int)(started.message.size > 300 ? 300 : started.message.size),
                       started.message.data);
    CX_TRY(change_case(c, one.case_id, NULL, started.run_id, &one, err));
    return answer_started(call, one.case_id, started.run_id, err);
}

cx_status cx_api_case_start(cx_call *call, cx_err *err)
{
    static const char *const known[] = {"contract_sha256", NULL};
    intake_call c;
    cx_json body;
    cx_file starting;
    bool read;
    CX_TRY(open_intake(call, &c, err));
    CX_TRY(cx_call_json(call, &body, &read, err));
    if (!read || !check_members(call, &body, known, "expected contract_sha256 only"))
        return CX_SUCCESS;
    cx_str seen = CX_JSON_GET_STR(&body, "contract_sha256");
    if (seen.size != 64) {
        cx_call_refuse_member(call, "/contract_sha256",
                              "expected the hash of the contract that is to run, as the case has "
                              "it: 64 hex digits");
        return CX_SUCCESS;
    }
    if (!c.there)
        return no_case(err);
    CX_TRY(cx_run_cases_starter(&c.store, STARTING_WAIT_MS, call->arena, &starting, err));
    cx_status status = start_case(&c, seen, err);
    cx_flock_release(starting);
    return status;
}

/* --- cancelling ------------------------------------------------------------------------------- */

cx_status cx_api_case_cancel(cx_call *call, cx_err *err)
{
    intake_call c;
    cx_run_case one;
    cx_file mutex;
    CX_TRY(open_intake(call, &c, err));
    if (!c.there)
        return no_case(err);
    CX_TRY(cx_run_cases_lock(&c.store, call->arena, &mutex, err));
    cx_status status = cx_run_case_read(&c.store, call->captures[0], call->arena, &one, err);
    if (!cx_failed(status) && one.state == CX_CASE_STARTED)
        status = cx_fail(err, CX_E_CONFLICT,
                         "a run was started for the case: what it did stays recorded, and it ends "
                         "by itself");
    if (!cx_failed(status) && one.state != CX_CASE_CANCELLED) { /* twice is once */
        one.state = CX_CASE_CANCELLED;
        one.note = CX_STR("");
        status = cx_run_case_write(&c.store, &one, call->arena, err);
    }
    cx_flock_release(mutex);
    CX_TRY(status);
    return answer_case(&c, 200, &one, err);
}
