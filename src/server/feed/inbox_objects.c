/*
 * inbox_objects.c - histories of signed traces, sessions that hooks recorded, and governed runs as
 * objects of the inbox; archived sessions, spans and native steps come from the index.
 *
 * The time of a history is that of its newest entry, the time of a run that of its start.
 */
#include "server/feed/inbox_objects.h"

#include "base/api.h"
#include "ledger/api.h"
#include "recorder/api.h"
#include "server/feed/runs.h"
#include "server/feed/session_list.h"

typedef struct listing {
    cx_call *call;
    CX_VEC(cx_inbox_object) objects;
} listing;

static bool is_name_of_traces(cx_str actor)
{
    if (cx_str_starts(actor, CX_STR("key:")))
        return true;
    for (size_t i = 0; i < actor.size; i++)
        if (!(actor.data[i] >= '0' && actor.data[i] <= '9') &&
            !(actor.data[i] >= 'a' && actor.data[i] <= 'f'))
            return false;
    return actor.size >= 8;
}

cx_status cx_view_is_history(cx_home *home, cx_str actor, bool *out, cx_err *err)
{
    *out = is_name_of_traces(actor);
    return *out ? CX_SUCCESS : cx_recorder_has_steps(home, actor, out, err);
}

static cx_inbox_object *add_object(listing *g, cx_inbox_kind kind, cx_str id)
{
    cx_inbox_object *object = cx_vec_push(&g->objects, g->call->service->alloc);
    if (object != NULL) {
        *object = (cx_inbox_object){.kind = kind, .id = id, .when_ns = CX_TIME_NONE};
        object->values[CX_FACET_KIND] = kind == CX_INBOX_RUN ? CX_STR("run") : CX_STR("history");
    }
    return object;
}

/* --- histories -------------------------------------------------------------------------------- */

static cx_status add_history(listing *g, cx_str name, cx_str agent, uint64_t entries,
                             int64_t when_ns, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(g->call->arena);
    cx_inbox_object *object = add_object(g, CX_INBOX_HISTORY, name);
    if (object == NULL || name.data == NULL)
        return cx_fail_nomem(err);
    object->when_ns = when_ns;
    object->values[CX_FACET_AGENT] = agent;
    cx_json_list_put(&list, CX_STR("entries"), cx_json_make_uint(g->call->arena, entries));
    cx_json_list_put(&list, CX_STR("name"), cx_json_make_str(name));
    return cx_json_list_end_object(&list, &object->value, err);
}

/* CX_TIME_NONE when it was erased, or is just being written. */
static cx_status newest_of(cx_home *home, const cx_actor_info *actor, cx_arena *arena,
                           int64_t *out_ns, cx_err *err)
{
    cx_entry_view view;
    *out_ns = CX_TIME_NONE;
    if (actor->entry_count == 0)
        return CX_SUCCESS;
    cx_status status = cx_home_entry(home, actor->name, actor->entry_count - 1, arena, &view, err);
    if (!cx_failed(status))
        *out_ns = view.entry.created_at_ns;
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

static cx_status add_actor(listing *g, cx_home *home, const cx_actor_info *actor, cx_err *err)
{
    int64_t when_ns;
    CX_TRY(newest_of(home, actor, g->call->arena, &when_ns, err));
    cx_str name =
        cx_arena_printf(g->call->arena, "agent/%.*s", (int)actor->name.size, actor->name.data);
    return add_history(g, name, actor->name, actor->entry_count, when_ns, err);
}

/* The traces that an agent signed; what has steps is in the index. */
static cx_status add_traces(listing *g, cx_home *home, const cx_actor_info *actor, size_t *told,
                            cx_err *err)
{
    bool has_steps = false;
    cx_actor_info kept = *actor;
    if (!is_name_of_traces(actor->name))
        return CX_SUCCESS;
    CX_TRY(cx_recorder_has_steps(home, actor->name, &has_steps, err));
    if (has_steps)
        return CX_SUCCESS;
    kept.name = cx_arena_copy_str(g->call->arena, actor->name);
    if (kept.name.data == NULL)
        return cx_fail_nomem(err);
    ++*told;
    return add_actor(g, home, &kept, err);
}

static cx_status add_histories(listing *g, cx_err *err)
{
    const cx_service *service = g->call->service;
    if (service->options.only_lattice != NULL)
        return add_history(g, CX_STR("file"), (cx_str){NULL, 0},
                           cx_lattice_count(service->options.only_lattice), CX_TIME_NONE, err);
    cx_home *home = cx_recorder_home(service->recorder);
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    size_t told = 0;
    cx_actor_walk_begin(&walk, home);
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL && told < CX_VIEW_HISTORIES_MAX) {
        status = add_traces(g, home, actor, &told, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    return status;
}

/* --- sessions of coding agents ---------------------------------------------------------------- */

#define SESSIONS_LISTED 200 /* the newest */

static cx_status add_session(listing *g, const cx_live_session *session, cx_err *err)
{
    const cx_live_asked *asked;
    size_t waiting = 0;
    cx_arena *arena = g->call->arena;
    cx_json_list list = cx_json_list_begin(arena);
    cx_inbox_object *object = add_object(g, CX_INBOX_HISTORY, session->actor);
    if (object == NULL)
        return cx_fail_nomem(err);
    object->when_ns = session->latest_ns;
    object->values[CX_FACET_SOURCE] = CX_STR("live");
    object->words[0] = session->cwd;
    object->words[1] = session->session;
    object->words[2] = session->agent;
    if (session->asked != 0)
        CX_TRY(cx_live_session_asked(cx_recorder_home(g->call->service->recorder), session->actor,
                                     arena, &asked, &waiting, err));
    cx_live_session_put(&list, session);
    cx_json_put_uint(&list, "waiting", waiting);
    return cx_json_list_end_object(&list, &object->value, err);
}

static cx_status add_sessions(listing *g, cx_err *err)
{
    cx_session_page page;
    if (g->call->service->live_sessions == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_session_list_page(g->call->service->live_sessions, (cx_str){NULL, 0}, 0, false,
                                SESSIONS_LISTED, g->call->arena, &page, err));
    for (size_t i = 0; i < page.count; i++)
        CX_TRY(add_session(g, &page.items[i], err));
    return CX_SUCCESS;
}

/* --- runs ------------------------------------------------------------------------------------- */

static cx_status is_sealed(void *ctx, cx_str run_id, bool *out, cx_err *err)
{
    return cx_run_index_sealed(ctx, run_id, out, err);
}

static cx_str text_or_none(const cx_json *object, const char *name)
{
    cx_str text = cx_json_get_str(object, cx_str_z(name));
    return text.size == 0 ? (cx_str){NULL, 0} : text;
}

static cx_status add_run(listing *g, const cx_json *run, cx_err *err)
{
    bool naive;
    cx_str status = text_or_none(run, "status"), gate = text_or_none(run, "failed_gate");
    cx_inbox_object *object = add_object(g, CX_INBOX_RUN, cx_json_get_str(run, CX_STR("run_id")));
    if (object == NULL)
        return cx_fail_nomem(err);
    bool merged = cx_str_is(status, "SUCCESS");
    object->value = *run;
    object->words[0] = cx_json_get_str(run, CX_STR("task_id"));
    object->words[1] = gate;
    object->values[CX_FACET_VERDICT] = merged                         ? CX_STR("merged")
                                       : cx_str_is(status, "RUNNING") ? CX_STR("running")
                                                                      : CX_STR("failed");
    object->values[CX_FACET_GATE] = gate.data != NULL ? gate
                                    : merged          ? CX_STR("passed")
                                                      : CX_STR("unknown");
    if (!cx_trace_time_parse(cx_json_get_str(run, CX_STR("created_at")), &object->when_ns, &naive))
        object->when_ns = CX_TIME_NONE;
    return CX_SUCCESS;
}

static cx_status add_page(listing *g, const cx_json *page, cx_err *err)
{
    const cx_json *items = CX_JSON_GET(page, "items");
    for (uint32_t i = 0; items != NULL && i < items->count; i++)
        CX_TRY(add_run(g, &items->items[i], err));
    return CX_SUCCESS;
}

static cx_status add_runs(listing *g, cx_err *err)
{
    cx_runs *runs = g->call->service->runs;
    cx_run_store store;
    cx_json page;
    cx_run_list_query query = {.limit = CX_RUN_PAGE_MAX};
    cx_status status = cx_runs_store(runs, &store, err);
    if (status.code == CX_E_NOT_FOUND) /* nothing ever ran here */
        return CX_SUCCESS;
    CX_TRY(status);
    const cx_run_seals seals = {.ctx = cx_runs_index(runs), .sealed = is_sealed};
    for (size_t told = 0; told < CX_INBOX_RUNS_MAX; told += CX_RUN_PAGE_MAX) {
        CX_TRY(cx_run_view_list(&store, &seals, &query, g->call->arena, &page, err));
        CX_TRY(add_page(g, &page, err));
        query.cursor = text_or_none(&page, "next");
        if (query.cursor.data == NULL)
            break;
    }
    return CX_SUCCESS;
}

cx_status cx_inbox_objects(cx_call *call, const cx_inbox_object **out, size_t *out_count,
                           cx_err *err)
{
    listing g = {.call = call};
    cx_status status = CX_SUCCESS;
    if ((call->token.scopes & CX_SCOPE_READ) != 0 && call->token.level == CX_LEVEL_FULL)
        status = add_histories(&g, err);
    if (!cx_failed(status) && (call->token.scopes & CX_SCOPE_READ) != 0 &&
        call->token.level == CX_LEVEL_FULL)
        status = add_sessions(&g, err);
    if (!cx_failed(status) && call->service->runs != NULL &&
        (call->token.scopes & CX_SCOPE_RUN_READ) != 0)
        status = add_runs(&g, err);
    cx_inbox_object *copy = NULL;
    if (!cx_failed(status)) {
        copy = CX_ARENA_ARRAY(call->arena, cx_inbox_object, g.objects.count + 1);
        if (copy == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        if (g.objects.count != 0)
            memcpy(copy, g.objects.items, g.objects.count * sizeof *copy);
        *out = copy;
        *out_count = g.objects.count;
    }
    cx_vec_done(&g.objects, call->service->alloc);
    return status;
}
