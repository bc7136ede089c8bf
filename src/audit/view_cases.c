/*
 * view_cases.c - workflow cases as they are shown: their states, plans, refusals and runs.
 *
 * The state of a started case is its newest run's, read from that run's manifest each time; the
 * case's file only says that a run was started (decision 0025).
 */
#include "audit/cases.h"

#include <stdlib.h>

#include "audit/view.h"
#include "json/api.h"

#define INTENT_SHOWN 400

/* --- states ----------------------------------------------------------------------------------- */

static cx_str last_run(const cx_run_case *one)
{
    return one->runs.type == CX_JSON_ARRAY && one->runs.count != 0
               ? cx_json_text(&one->runs.items[one->runs.count - 1])
               : CX_STR("");
}

cx_status cx_run_case_state_text(const cx_run_store *store, const cx_run_case *one, cx_arena *arena,
                                 cx_str *out, cx_err *err)
{
    static const char *const names[] = {"QUEUED",  "PLANNING", "PLANNED",
                                        "REFUSED", "RUNNING",  "CANCELLED"};
    cx_json run;
    *out = cx_str_z(names[one->state]);
    if (one->state != CX_CASE_STARTED)
        return CX_SUCCESS;
    CX_TRY(cx_run_view_item(store, NULL, last_run(one), arena, &run, err));
    cx_str status = CX_JSON_GET_STR(&run, "status");
    if (cx_str_is(status, "SUCCESS"))
        *out = CX_STR("DONE");
    else if (cx_str_is(status, "FAILURE"))
        *out = CX_STR("FAILED");
    return CX_SUCCESS;
}

/* --- refusals --------------------------------------------------------------------------------- */

static void add_refusal(cx_json_list *list, const char *source, cx_str gate, cx_str text)
{
    cx_json_list one = cx_json_list_begin(list->arena);
    cx_json_put_z(&one, "source", source);
    cx_json_put_utf8(&one, "gate", gate);
    cx_json_put_utf8(&one, "text", text);
    cx_json_add_object(list, &one);
}

/* Of the planner's run: what refused the planner, or the contract that it wrote. */
static void add_run_refusals(cx_json_list *list, const cx_run_case *one)
{
    uint32_t count = one->violations.type == CX_JSON_ARRAY ? one->violations.count : 0;
    if (one->gate.size == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        add_refusal(list, "planner", one->gate, cx_json_text(&one->violations.items[i]));
    if (count == 0)
        add_refusal(list, "planner", one->gate, one->reason);
}

/* Of the preview: errors of the contract, then each gate that precedes the work. */
static void add_preview_refusals(cx_json_list *list, const cx_json *preview)
{
    const cx_json *errors = cx_json_get_typed(preview, CX_STR("errors"), CX_JSON_ARRAY);
    const cx_json *gates = cx_json_get_typed(preview, CX_STR("gates"), CX_JSON_OBJECT);
    for (uint32_t i = 0; errors != NULL && i < errors->count; i++) {
        cx_str rule = CX_JSON_GET_STR(&errors->items[i], "rule"),
               where = CX_JSON_GET_STR(&errors->items[i], "path"),
               message = CX_JSON_GET_STR(&errors->items[i], "message");
        cx_str text = cx_arena_printf(list->arena, "%.*s %.*s: %.*s", (int)rule.size, rule.data,
                                      (int)where.size, where.data, (int)message.size, message.data);
        if (text.data == NULL)
            list->failed = true;
        else
            add_refusal(list, "preview", CX_STR("contract"), text);
    }
    /* A contract with errors was held against no gate. */
    for (uint32_t i = 0; gates != NULL && i < gates->count; i++) {
        const cx_json *texts =
            cx_json_get_typed(&gates->members[i].value, CX_STR("violations"), CX_JSON_ARRAY);
        for (uint32_t k = 0; texts != NULL && k < texts->count; k++)
            add_refusal(list, "preview", cx_json_text(&gates->members[i].name),
                        cx_json_text(&texts->items[k]));
    }
}

/* --- one case --------------------------------------------------------------------------------- */

static cx_str cut_text(cx_str text, size_t most)
{
    if (text.size <= most)
        return text;
    while (most > 0 && ((unsigned char)text.data[most] & 0xc0) == 0x80)
        most--;
    return cx_str_from(text.data, most);
}

/* The members that a list and a case share. */
static cx_status put_item(const cx_run_store *store, const cx_run_case *one, size_t intent_most,
                          cx_json_list *object, cx_err *err)
{
    cx_str state, intent = cut_text(one->intent, intent_most);
    CX_TRY(cx_run_case_state_text(store, one, object->arena, &state, err));
    cx_json_put_utf8(object, "case_id", one->case_id);
    cx_json_put_utf8(object, "state", state);
    cx_json_put_maybe(object, "note", one->note);
    cx_json_put_utf8(object, "intent", intent);
    cx_json_put_bool(object, "intent_cut", intent.size != one->intent.size);
    cx_json_put_maybe(object, "requested_by", one->requested_by);
    cx_json_put_utf8(object, "created_at", one->created_at);
    cx_json_put_utf8(object, "updated_at", one->updated_at);
    cx_json_put_maybe(object, "plan_run_id", one->plan_run_id);
    cx_json_put_maybe(object, "contract_sha256", one->contract_sha256);
    cx_json_put_maybe(object, "run_id", last_run(one));
    return CX_SUCCESS;
}

/* A contract that changed on the disk is not shown as the planned one. */
static cx_status put_contract(const cx_run_store *store, const cx_run_case *one,
                              cx_json_list *object, cx_err *err)
{
    cx_bytes bytes;
    cx_json contract = cx_json_make_null();
    cx_err why;
    if (one->contract_sha256.size != 0) {
        cx_status status = cx_run_case_contract(store, one, object->arena, &bytes, &why);
        if (!cx_failed(status))
            status = cx_run_json_read(cx_bytes_str(bytes), 0, object->arena, &contract, &why);
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(err);
        if (cx_failed(status))
            contract = cx_json_make_null();
    }
    cx_json_put(object, "contract", contract);
    return CX_SUCCESS;
}

static cx_status put_runs(const cx_run_store *store, const cx_run_case *one, cx_json_list *object,
                          cx_err *err)
{
    cx_json_list runs = cx_json_list_begin(object->arena);
    for (uint32_t i = one->runs.type == CX_JSON_ARRAY ? one->runs.count : 0; i-- > 0;) {
        cx_json run;
        CX_TRY(cx_run_view_item(store, NULL, cx_json_text(&one->runs.items[i]), object->arena, &run,
                                err));
        cx_json_list_add(&runs, run);
    }
    cx_json_put_array(object, "runs", &runs);
    return CX_SUCCESS;
}

/* Null while there is no run, or none that can be read. */
static cx_status put_read_model(const cx_run_store *store, const cx_run_case *one,
                                cx_json_list *object, cx_err *err)
{
    cx_json model = cx_json_make_null();
    cx_run_bundle *bundle = NULL;
    cx_str run_id = last_run(one);
    if (run_id.size != 0 && !cx_failed(cx_run_view_open(store, run_id, &bundle, NULL))) {
        cx_err why;
        cx_status status = cx_run_view_workflow_case(bundle, object->arena, &model, &why);
        if (!cx_failed(status))
            status = cx_json_copy(&model, object->arena, &model, &why);
        cx_run_bundle_close(bundle);
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(err);
        if (cx_failed(status))
            model = cx_json_make_null();
    }
    cx_json_put(object, "workflow_case_read_model", model);
    return CX_SUCCESS;
}

cx_status cx_run_view_case(const cx_run_store *store, const cx_run_case *one, cx_arena *arena,
                           cx_json *out, cx_err *err)
{
    CX_ASSERT(store != NULL && one != NULL && arena != NULL && out != NULL);
    cx_json_list object = cx_json_list_begin(arena), refusals = cx_json_list_begin(arena);
    bool previewed = one->preview.type == CX_JSON_OBJECT;
    CX_TRY(put_item(store, one, one->intent.size, &object, err));
    cx_json_put_maybe(&object, "key", one->key);
    cx_json_put_maybe(&object, "runner", one->runner);
    cx_json_put_bool(&object, "no_merge", one->no_merge);
    CX_TRY(put_contract(store, one, &object, err));
    cx_json_put(&object, "preview", previewed ? one->preview : cx_json_make_null());
    add_run_refusals(&refusals, one);
    if (previewed)
        add_preview_refusals(&refusals, &one->preview);
    cx_json_put_array(&object, "refusals", &refusals);
    CX_TRY(put_runs(store, one, &object, err));
    CX_TRY(put_read_model(store, one, &object, err));
    cx_json_put_z(&object, "execution_authority", "task_contract");
    return cx_json_list_end_object(&object, out, err);
}

/* --- many ------------------------------------------------------------------------------------- */

static cx_status end_list(cx_json_list *items, cx_str next, bool has_next, cx_json *out,
                          cx_err *err)
{
    cx_json_list object = cx_json_list_begin(items->arena);
    cx_json_put_array(&object, "items", items);
    if (has_next)
        cx_json_put_maybe(&object, "next", next);
    cx_json_put_z(&object, "execution_authority", "task_contract");
    return cx_json_list_end_object(&object, out, err);
}

static cx_status add_item(const cx_run_store *store, const cx_run_case *one, cx_json_list *items,
                          cx_err *err)
{
    cx_json_list object = cx_json_list_begin(items->arena);
    CX_TRY(put_item(store, one, INTENT_SHOWN, &object, err));
    cx_json_add_object(items, &object);
    return CX_SUCCESS;
}

cx_status cx_run_view_cases(const cx_run_store *store, const cx_run_case_query *query,
                            cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT(store != NULL && query != NULL && arena != NULL && out != NULL);
    cx_json_list items = cx_json_list_begin(arena);
    cx_str *ids, last = {NULL, 0};
    size_t count, shown = 0, i = 0;
    size_t limit = query->limit == 0                ? CX_RUN_PAGE_DEFAULT
                   : query->limit > CX_RUN_PAGE_MAX ? CX_RUN_PAGE_MAX
                                                    : query->limit;
    CX_TRY(cx_run_case_list(store, arena, &ids, &count, err));
    while (i < count && query->cursor.data != NULL && cx_str_cmp(ids[i], query->cursor) >= 0)
        i++;
    for (; i < count && shown < limit; i++) {
        cx_run_case one;
        cx_str state;
        cx_status status = cx_run_case_read(store, ids[i], arena, &one, err);
        if (status.code == CX_E_NOMEM)
            return status;
        last = ids[i];
        if (cx_failed(status)) /* damaged: it is no case, and stops no other */
            continue;
        CX_TRY(cx_run_case_state_text(store, &one, arena, &state, err));
        if (query->state.data != NULL && !cx_str_eq(query->state, state))
            continue;
        CX_TRY(add_item(store, &one, &items, err));
        shown++;
    }
    return end_list(&items, i < count ? last : CX_STR(""), true, out, err);
}

static int by_time(const void *a, const void *b)
{
    return cx_str_cmp((*(const cx_run_case *const *)a)->created_at,
                      (*(const cx_run_case *const *)b)->created_at);
}

cx_status cx_run_view_intents(const cx_run_store *store, cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    cx_json_list items = cx_json_list_begin(arena);
    cx_str *ids;
    size_t count, waiting = 0;
    CX_TRY(cx_run_case_list(store, arena, &ids, &count, err));
    cx_run_case **list = CX_ARENA_ARRAY(arena, cx_run_case *, count + 1);
    if (list == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        cx_run_case *one = CX_ARENA_NEW(arena, cx_run_case);
        if (one == NULL)
            return cx_fail_nomem(err);
        cx_status status = cx_run_case_read(store, ids[i], arena, one, err);
        if (status.code == CX_E_NOMEM)
            return status;
        if (!cx_failed(status) && one->state <= CX_CASE_PLANNING)
            list[waiting++] = one;
    }
    qsort(list, waiting, sizeof *list, by_time);
    for (size_t i = 0; i < waiting; i++)
        CX_TRY(add_item(store, list[i], &items, err));
    return end_list(&items, CX_STR(""), false, out, err);
}
