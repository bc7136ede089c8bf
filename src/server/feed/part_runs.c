/*
 * part_runs.c - governed runs of a part of a fleet, without a repository.
 */
#include "server/feed/part_runs.h"

#include "rules/api.h"

bool cx_part_runs_served(const cx_call *call)
{
    const cx_service *service = call->service;
    return service->runs == NULL && service->recorder != NULL && service->options.part_id != NULL;
}

static cx_home *home_of(const cx_call *call)
{
    return cx_recorder_home(call->service->recorder);
}

/* --- one run ---------------------------------------------------------------------------------- */

cx_status cx_part_run_known(cx_call *call, cx_str run_id, cx_run_known *out, cx_err *err)
{
    cx_run_index *index;
    CX_TRY(cx_run_index_open(home_of(call), call->service->alloc, &index, err));
    cx_status status = cx_run_index_find(index, run_id, call->arena, out, err);
    cx_run_index_close(index);
    return status;
}

static cx_status no_run(cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoRun", CX_NO_OFFSET, "no such run");
}

cx_status cx_part_run_archive(cx_call *call, cx_str run_id, cx_buf *out, cx_err *err)
{
    cx_run_known known;
    cx_run_stored stored;
    bool found = false;
    if (!cx_run_id_valid(run_id))
        return no_run(err);
    CX_TRY(cx_part_run_known(call, run_id, &known, err));
    cx_str actor = known.sealed ? known.actor : known.journal;
    if (actor.size == 0)
        return no_run(err);
    CX_TRY(cx_run_stored_find(home_of(call), actor, run_id, call->arena, &stored, &found, err));
    if (!found && !known.sealed) {
        cx_run_ending ending;
        CX_TRY(cx_run_end_find(home_of(call), actor, run_id, call->arena, &ending, &found, err));
        if (found)
            return cx_run_end_fail(&ending, err);
    }
    if (!found)
        return cx_fail_at(err, CX_E_NOT_FOUND, CX_RUN_BUNDLE_MISSING, CX_NO_OFFSET,
                          known.sealed ? "the bundle of this run is on the machine of the run "
                                         "only: 'cortex run store' there stores it"
                                       : "this run has no bundle here: it goes on, or ended "
                                         "without a seal");
    if (stored.size_bytes > CX_PART_RUN_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT,
                       "the bundle has %llu bytes, more than a server shows; 'cortex run export' "
                       "writes it to a file",
                       (unsigned long long)stored.size_bytes);
    return cx_run_stored_read(home_of(call), &stored, call->service->options.objects, out, err);
}

cx_status cx_part_run_open(cx_call *call, cx_str run_id, cx_run_bundle **out, cx_err *err)
{
    cx_buf archive;
    cx_buf_init(&archive, call->service->alloc);
    cx_status status = cx_part_run_archive(call, run_id, &archive, err);
    if (!cx_failed(status))
        status = cx_run_bundle_open_archive(call->service->alloc, cx_buf_bytes(&archive), out, err);
    cx_buf_done(&archive);
    return status;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void put_time(cx_json_list *object, const char *name, int64_t ns)
{
    char text[28];
    if (ns == INT64_MIN) {
        cx_json_put(object, name, cx_json_make_null());
        return;
    }
    cx_run_time_text(ns, text);
    cx_json_put_str(object, name, cx_arena_copy_str(object->arena, cx_str_z(text)));
}

static void add_run(cx_json_list *items, const cx_run_listed *run, cx_str status)
{
    cx_json_list object = cx_json_list_begin(items->arena);
    cx_json_put_utf8(&object, "run_id", run->run_id);
    if (run->task_id.size == 0)
        cx_json_put(&object, "task_id", cx_json_make_null());
    else
        cx_json_put_utf8(&object, "task_id", run->task_id);
    cx_json_put_utf8(&object, "status", status);
    put_time(&object, "created_at", run->created_ns);
    put_time(&object, "finished_at", run->sealed_ns);
    cx_json_put(&object, "failed_gate", cx_json_make_null());
    cx_json_put_bool(&object, "sealed", run->sealed_ns != INT64_MIN);
    cx_json_add_object(items, &object);
}

/* Of a run without a seal. */
static cx_status find_status(cx_call *call, const cx_run_listed *run, cx_str *out, cx_err *err)
{
    cx_run_ending ending;
    bool ended = false;
    if (run->actor.size != 0)
        CX_TRY(cx_run_end_find(home_of(call), run->actor, run->run_id, call->arena, &ending, &ended,
                               err));
    *out = ended ? CX_STR("FAILURE") : CX_STR("RUNNING");
    return CX_SUCCESS;
}

cx_status cx_part_run_list(cx_call *call, const cx_run_list_query *query, cx_json *out, cx_err *err)
{
    cx_run_listed *runs;
    size_t count, shown = 0, i = 0;
    const size_t limit = query->limit == 0 ? CX_RUN_PAGE_DEFAULT : query->limit;
    const size_t looks = query->status.data == NULL ? limit + 1 : CX_RUN_PAGE_MAX;
    cx_json_list object = cx_json_list_begin(call->arena), items = cx_json_list_begin(call->arena);
    CX_TRY(
        cx_run_list_recorded(home_of(call), query->cursor, looks, call->arena, &runs, &count, err));
    for (; i < count && shown < limit; i++) {
        cx_str status = runs[i].status;
        if (status.size == 0)
            CX_TRY(find_status(call, &runs[i], &status, err));
        if (query->status.data != NULL && !cx_str_eq(query->status, status))
            continue;
        add_run(&items, &runs[i], status);
        shown++;
    }
    cx_json_put_array(&object, "items", &items);
    if (i != 0 && (i < count || count == looks))
        cx_json_put_utf8(&object, "next", runs[i - 1].run_id);
    else
        cx_json_put(&object, "next", cx_json_make_null());
    return cx_json_list_end_object(&object, out, err);
}
