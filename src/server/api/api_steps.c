/*
 * api_steps.c - POST /api/v1/steps: steps of agents become nodes (docs/formats/steps.md).
 *
 *   P1  200 is answered when everything that is said to be stored is on the disk, also when some
 *       steps were not taken: each has its own result.
 *   P2  When nothing was taken the answer is a problem, that of the first step.
 */
#include "lattice/api.h"
#include "recorder/api.h"
#include "server/feed/live_feed.h"
#include "server/route.h"

#define STEPS_MAX 1000
/* The body is an object around an array around the steps. */
#define DEPTH_MAX (CX_STEP_DEPTH_MAX + 2)

typedef struct steps_call {
    cx_call *call;
    cx_json body;
    cx_str key; /* of the batch: its steps without a key of their own get one each */
    cx_step *steps;
    cx_step_taken *taken;
    size_t count;
} steps_call;

static cx_status refuse_steps(cx_call *call, unsigned http, const char *type, cx_str pointer,
                              const char *reason)
{
    const cx_problem problem = {.status = http,
                                .type = type,
                                .detail = cx_arena_copy_str(call->arena, cx_str_z(reason)),
                                .pointer = pointer};
    cx_call_problem(call, &problem);
    return CX_SUCCESS;
}

/* --- the body --------------------------------------------------------------------------------- */

static const char *problem_type(const cx_err *err)
{
    if (err->tag != NULL && strcmp(err->tag, "U_DUPKEY") == 0)
        return "duplicate-key";
    return err->tag != NULL && strcmp(err->tag, "U_UTF8") == 0 ? "invalid-utf8" : "malformed-json";
}

static cx_status read_json(steps_call *s, bool *out_good, cx_err *err)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_json_parser parser;
    cx_err problem;
    limits.depth = DEPTH_MAX;
    cx_json_parser_init(&parser, s->call->service->alloc, &limits);
    cx_status status = cx_json_parse(&parser, cx_bytes_str(s->call->request.body), s->call->arena,
                                     &s->body, &problem);
    cx_json_parser_done(&parser);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    *out_good = !cx_failed(status);
    return *out_good ? CX_SUCCESS
                     : refuse_steps(s->call, 400, problem_type(&problem), (cx_str){NULL, 0},
                                    problem.message);
}

static bool is_key(const cx_json *value)
{
    return value->type == CX_JSON_STRING && value->count != 0 &&
           value->count <= CX_STEP_KEY_BYTES_MAX - 8;
}

/* {"steps":[..],"key"?}; false when the call was answered. */
static cx_status check_body(steps_call *s, const cx_json **out, bool *out_good)
{
    const cx_json *body = &s->body, *list = CX_JSON_GET(body, "steps");
    const cx_json *key = CX_JSON_GET(body, "key");
    const char *wrong = NULL, *where = "";
    *out_good = false;
    if (body->type != CX_JSON_OBJECT)
        wrong = "expected an object with the member steps";
    else if (list == NULL || list->type != CX_JSON_ARRAY || list->count == 0)
        wrong = "expected an array of at least one step", where = "/steps";
    else if (list->count > STEPS_MAX)
        wrong = "expected at most 1000 steps: send them in several parts", where = "/steps";
    else if (key != NULL && !is_key(key))
        wrong = "expected text of 1 to 248 bytes", where = "/key";
    else if (body->count != (key == NULL ? 1u : 2u))
        wrong = "expected no members but steps and key";
    if (wrong != NULL)
        return refuse_steps(s->call, 422, "invalid-request", cx_str_z(where), wrong);
    if (key != NULL)
        s->key = cx_json_text(key);
    *out = list;
    *out_good = true;
    return CX_SUCCESS;
}

static cx_status read_steps(steps_call *s, const cx_json *list, cx_err *err)
{
    cx_arena *arena = s->call->arena;
    s->count = list->count;
    s->steps = CX_ARENA_ARRAY(arena, cx_step, s->count + 1);
    s->taken = CX_ARENA_ARRAY(arena, cx_step_taken, s->count + 1);
    if (s->steps == NULL || s->taken == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < s->count; i++) {
        cx_step *step = &s->steps[i];
        CX_TRY(cx_step_read(&list->items[i], arena, step, err));
        if (s->key.data == NULL || step->key.data != NULL)
            continue;
        step->key = cx_arena_printf(arena, "%.*s#%zu", (int)s->key.size, s->key.data, i);
        if (step->key.data == NULL)
            return cx_fail_nomem(err);
    }
    return CX_SUCCESS;
}

/* --- the answer ------------------------------------------------------------------------------- */

static cx_status answer_problem(steps_call *s)
{
    const cx_step_taken *first = &s->taken[0];
    const cx_err *why = &first->problem;
    bool reused = why->tag != NULL && strcmp(why->tag, "KeyReused") == 0;
    cx_str pointer = CX_STR("/steps/0");
    if (first->status == CX_STEP_CONFLICT)
        return refuse_steps(s->call, 409, reused ? "key-conflict" : "conflict", pointer,
                            why->message);
    if (why->code == CX_E_DENIED)
        return refuse_steps(s->call, 403, "forbidden", pointer, why->message);
    return refuse_steps(s->call, 422, "invalid-request", pointer, why->message);
}

static cx_status answer_steps(steps_call *s, const uint64_t counts[CX_STEP_SKIPPED + 1],
                              cx_err *err)
{
    cx_arena *arena = s->call->arena;
    cx_json_list list = cx_json_list_begin(arena), results = cx_json_list_begin(arena);
    uint64_t accepted = counts[CX_STEP_STORED] + counts[CX_STEP_DUPLICATE];
    cx_json value;
    for (size_t i = 0; i < s->count; i++) {
        CX_TRY(cx_step_taken_json(&s->taken[i], arena, &value, err));
        cx_json_list_add(&results, value);
    }
    cx_json_put_uint(&list, "accepted", accepted);
    cx_json_put_uint(&list, "duplicates", counts[CX_STEP_DUPLICATE]);
    cx_json_put_uint(&list, "received", s->count);
    cx_json_put_array(&list, "results", &results);
    cx_json_put_z(&list, "status", accepted == s->count ? "ok" : "partial");
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    return cx_call_answer_json(s->call, 200, &value, err);
}

cx_status cx_api_steps(cx_call *call, cx_err *err)
{
    cx_service *service = call->service;
    steps_call s = {.call = call};
    const cx_json *list = NULL;
    uint64_t counts[CX_STEP_SKIPPED + 1];
    bool good = false;
    CX_TRY(read_json(&s, &good, err));
    if (good)
        CX_TRY(check_body(&s, &list, &good));
    if (!good)
        return CX_SUCCESS;
    CX_TRY(read_steps(&s, list, err));
    cx_str sender = call->token.id[0] == 0 ? CX_STR("open") : cx_call_principal(call);
    if (sender.data == NULL)
        return cx_fail_nomem(err);
    cx_status status =
        cx_recorder_steps_take(service->recorder, s.steps, s.count, sender, s.taken, err);
    if (cx_failed(status)) {
        if (status.code == CX_E_IO)
            atomic_store(&service->ledger_failed, true);
        return status;
    }
    cx_steps_count(s.taken, s.count, counts);
    if (counts[CX_STEP_STORED] != 0)
        cx_live_feed_wake(service->feed);
    return counts[CX_STEP_STORED] + counts[CX_STEP_DUPLICATE] == 0 ? answer_problem(&s)
                                                                   : answer_steps(&s, counts, err);
}
