/*
 * api_view.c - the page's questions about a history: windows of its drawing, one node, one level of
 * a state, the writes of a key (docs/formats/view.md).
 *
 * Everything is answered from the view cache, so a request costs its answer and not the history.
 */
#include <math.h>

#include "view/api.h"
#include "server/feed/external.h"
#include "server/feed/inbox_objects.h"
#include "provenance/api.h"
#include "server/feed/runs.h"
#include "server/route.h"
#include "server/feed/view_cache.h"

/* A history of at most so many nodes is readable as a whole; a longer one is folded unless
 * requested otherwise. */
#define FOLD_FROM_NODES 600

typedef struct view_call {
    cx_call *call;
    cx_cached_view *view_item;
    const cx_lattice_view *answer_view;
    const cx_states *states;
    cx_node node;
} view_call;

typedef cx_status view_answer(view_call *v, cx_err *err);

static cx_status open_view(view_call *v, bool node, cx_err *err)
{
    const cx_param *fold = cx_call_param(v->call, "fold");
    bool folded = fold->given
                      ? fold->flag
                      : cx_lattice_count(cx_view_cache_lattice(v->view_item)) > FOLD_FROM_NODES;
    CX_TRY(cx_view_cache_view(v->view_item, folded, &v->answer_view, err));
    if (!node)
        return CX_SUCCESS;
    CX_TRY(cx_lattice_view_find(cx_view_cache_lattice(v->view_item), cx_call_text(v->call, "node"),
                                &v->node, err));
    return cx_view_cache_states(v->view_item, &v->states, err);
}

static cx_status answer_view(cx_call *call, bool node, view_answer *answer, cx_err *err)
{
    view_call v = {.call = call};
    cx_call_answer(call, 200, "application/json");
    CX_TRY(cx_view_cache_acquire(call->service->cache, call, &v.view_item, err));
    cx_status status = open_view(&v, node, err);
    if (!cx_failed(status))
        status = answer(&v, err);
    cx_view_cache_release(call->service->cache, v.view_item);
    return status;
}

/* For questions whose answer may lie before a part, or after it. */
static cx_status need_whole(const view_call *v, cx_err *err)
{
    if (!cx_view_cache_is_part(v->view_item))
        return CX_SUCCESS;
    return cx_fail(err, CX_E_USAGE,
                   "a part of a history cannot answer this: ask the branch without part/ENTRY/");
}

static uint32_t count_of(const cx_call *call, const char *name)
{
    const cx_param *param = cx_call_param(call, name);
    return param->given ? (uint32_t)param->count : 0;
}

static cx_lattice_view_range range_of(const view_call *v, const char *count)
{
    return (cx_lattice_view_range){.from = count_of(v->call, "from"),
                                   .to = count_of(v->call, "to"),
                                   .count = count_of(v->call, count)};
}

static cx_status answer_summary(view_call *v, cx_err *err)
{
    return cx_lattice_view_summary(&v->call->response.body, v->answer_view, err);
}

cx_status cx_api_view_summary(cx_call *call, cx_err *err)
{
    return answer_view(call, false, answer_summary, err);
}

static cx_status answer_overview(view_call *v, cx_err *err)
{
    const cx_lattice_view_range range = range_of(v, "bins");
    return cx_lattice_view_overview(&v->call->response.body, v->answer_view, &range, err);
}

cx_status cx_api_view_overview(cx_call *call, cx_err *err)
{
    return answer_view(call, false, answer_overview, err);
}

static cx_status answer_window(view_call *v, cx_err *err)
{
    cx_lattice_view_range range = range_of(v, "max");
    range.labels = cx_call_flag(v->call, "labels");
    range.spans = cx_call_flag(v->call, "spans");
    return cx_lattice_view_window(&v->call->response.body, v->answer_view, &range, err);
}

cx_status cx_api_view_window(cx_call *call, cx_err *err)
{
    return answer_view(call, false, answer_window, err);
}

static cx_status answer_node(view_call *v, cx_err *err)
{
    return cx_lattice_view_node(&v->call->response.body, v->answer_view, v->states, v->node, err);
}

cx_status cx_api_view_node(cx_call *call, cx_err *err)
{
    return answer_view(call, true, answer_node, err);
}

/* Steps before the one that was asked for, so that it has a context. */
#define STEPS_BEFORE 20

static cx_status answer_steps(view_call *v, cx_err *err)
{
    cx_lattice_view_steps_asked asked = {.from = count_of(v->call, "from"),
                                         .count = count_of(v->call, "max"),
                                         .node = CX_NODE_NONE,
                                         .before = STEPS_BEFORE,
                                         .all = cx_call_flag(v->call, "all")};
    cx_str name = cx_call_text(v->call, "node");
    if (name.data != NULL)
        CX_TRY(cx_lattice_view_find(cx_view_cache_lattice(v->view_item), name, &asked.node, err));
    return cx_lattice_view_steps(&v->call->response.body, v->answer_view, &asked, err);
}

cx_status cx_api_view_steps(cx_call *call, cx_err *err)
{
    return answer_view(call, false, answer_steps, err);
}

/* What is none of the four kinds is saved and never shown: an SVG could hold a script. */
static cx_status answer_image(view_call *v, cx_err *err)
{
    static const char *const types[] = {"application/octet-stream", "image/png", "image/jpeg",
                                        "image/gif", "image/webp"};
    static const char *const ends[] = {"bin", "png", "jpg", "gif", "webp"};
    cx_call *call = v->call;
    cx_view_picture picture = CX_VIEW_NO_PICTURE;
    uint32_t index = count_of(call, "index");
    CX_TRY(
        cx_lattice_view_image(&call->response.body, v->answer_view, v->node, index, &picture, err));
    cx_call_header(call, "Content-Security-Policy", "default-src 'none'; sandbox");
    cx_call_header(call, "Cross-Origin-Resource-Policy", "same-origin");
    cx_call_header(call, "Content-Disposition", "%s; filename=\"image-%lu-%lu.%s\"",
                   picture == CX_VIEW_NO_PICTURE ? "attachment" : "inline", (unsigned long)v->node,
                   (unsigned long)index, ends[picture]);
    cx_call_answer(call, 200, types[picture]);
    return CX_SUCCESS;
}

cx_status cx_api_view_image(cx_call *call, cx_err *err)
{
    return answer_view(call, true, answer_image, err);
}

static cx_status answer_values(view_call *v, cx_err *err)
{
    cx_str pointer = cx_call_text(v->call, "pointer");
    const cx_lattice_view_level level = {.pointer = pointer.data == NULL ? CX_STR("") : pointer,
                                         .after = cx_call_text(v->call, "after"),
                                         .count = count_of(v->call, "max")};
    CX_TRY(need_whole(v, err));
    return cx_lattice_view_values(&v->call->response.body, v->answer_view, v->states, v->node,
                                  &level, err);
}

cx_status cx_api_view_values(cx_call *call, cx_err *err)
{
    return answer_view(call, true, answer_values, err);
}

static cx_status answer_writes(view_call *v, cx_err *err)
{
    CX_TRY(need_whole(v, err));
    return cx_lattice_view_writes(&v->call->response.body, v->answer_view, v->states, v->node,
                                  cx_call_text(v->call, "section"), cx_call_text(v->call, "key"),
                                  err);
}

cx_status cx_api_view_writes(cx_call *call, cx_err *err)
{
    return answer_view(call, true, answer_writes, err);
}

static cx_status answer_said(view_call *v, cx_err *err)
{
    cx_node node;
    CX_TRY(need_whole(v, err));
    CX_TRY(cx_lattice_view_find(cx_view_cache_lattice(v->view_item), cx_call_text(v->call, "node"),
                                &node, err));
    return cx_lattice_view_said(&v->call->response.body, v->answer_view, node,
                                cx_call_text(v->call, "text"), err);
}

cx_status cx_api_view_said(cx_call *call, cx_err *err)
{
    return answer_view(call, false, answer_said, err);
}

static cx_status answer_reach(view_call *v, cx_err *err)
{
    cx_node node;
    CX_TRY(need_whole(v, err));
    CX_TRY(cx_lattice_view_find(cx_view_cache_lattice(v->view_item), cx_call_text(v->call, "node"),
                                &node, err));
    return cx_lattice_view_reach(&v->call->response.body, v->answer_view, node, err);
}

cx_status cx_api_view_reach(cx_call *call, cx_err *err)
{
    return answer_view(call, false, answer_reach, err);
}

#define GREP_WORDS_MAX 64u

static cx_status answer_grep(view_call *v, cx_err *err)
{
    cx_str text = cx_call_text(v->call, "q"), words[GREP_WORDS_MAX];
    size_t count = 0;
    for (size_t at = 0; at < text.size;) {
        size_t from = at;
        while (at < text.size && (unsigned char)text.data[at] > ' ')
            at++;
        if (at != from && count == GREP_WORDS_MAX)
            return cx_fail(err, CX_E_USAGE, "q: at most %u words", GREP_WORDS_MAX);
        if (at != from)
            words[count++] = cx_str_from(text.data + from, at - from);
        at += at < text.size;
    }
    return cx_lattice_view_grep(&v->call->response.body, v->answer_view, words, count, err);
}

cx_status cx_api_view_grep(cx_call *call, cx_err *err)
{
    return answer_view(call, false, answer_grep, err);
}

/* --- how long a history is -------------------------------------------------------------------- */

static cx_status read_run_extent(cx_call *call, cx_str name, cx_steps_extent *out, cx_err *err)
{
    cx_runs *runs;
    cx_run_store store;
    if ((call->token.scopes & CX_SCOPE_RUN_READ) == 0)
        return cx_fail(err, CX_E_DENIED, "this needs a token with the scope run:read");
    CX_TRY(cx_api_runs_of(call, &runs, err));
    CX_TRY(cx_runs_store(runs, &store, err));
    return cx_run_extent(&store, name, out, err);
}

static cx_status read_extent(cx_call *call, cx_steps_extent *out, cx_err *err)
{
    cx_home *home = cx_recorder_home(call->service->recorder);
    cx_str branch = call->captures[0], node = cx_call_text(call, "node");
    if (cx_str_starts(branch, CX_STR("run/")))
        return read_run_extent(call, cx_str_from(branch.data + 4, branch.size - 4), out, err);
    return cx_str_starts(branch, CX_STR("session/"))
               ? cx_external_extent(home, branch, node, out, err)
               : cx_recorder_steps_extent(home, branch, node, out, err);
}

/* {"entries","entry","part","parts"}, at the cost of a few records. */
cx_status cx_api_view_extent(cx_call *call, cx_err *err)
{
    cx_steps_extent extent = {.parts = false};
    cx_json_list root = cx_json_list_begin(call->arena);
    cx_json value;
    if (call->service->options.only_lattice == NULL)
        CX_TRY(read_extent(call, &extent, err));
    cx_json_put_uint(&root, "entries", extent.entries);
    if (extent.found)
        cx_json_put_uint(&root, "entry", extent.entry);
    else
        cx_json_put_null(&root, "entry");
    cx_json_put_uint(&root, "part", CX_STEPS_PART);
    cx_json_put_bool(&root, "parts", extent.parts);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- the list --------------------------------------------------------------------------------- */

static cx_status add_history(cx_call *call, cx_json_list *list, const char *before, cx_str name,
                             uint64_t entries, cx_err *err)
{
    cx_json_list one = cx_json_list_begin(call->arena);
    cx_json value;
    cx_str whole = cx_arena_printf(call->arena, "%s%.*s", before, (int)name.size, name.data);
    if (whole.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list_put(&one, CX_STR("entries"), cx_json_make_uint(call->arena, entries));
    cx_json_list_put(&one, CX_STR("name"), cx_json_make_str(whole));
    CX_TRY(cx_json_list_end_object(&one, &value, err));
    cx_json_list_add(list, value);
    return CX_SUCCESS;
}

static cx_status add_actor(cx_call *call, cx_json_list *list, const cx_actor_info *actor,
                           size_t *told, cx_err *err)
{
    bool external = cx_external_is(actor->name);
    bool is_history = external;
    if (!external)
        CX_TRY(cx_view_is_history(cx_recorder_home(call->service->recorder), actor->name,
                                  &is_history, err));
    *told += is_history;
    return is_history ? add_history(call, list, external ? "" : "agent/", actor->name,
                                    actor->entry_count, err)
                      : CX_SUCCESS;
}

static cx_status add_actors(cx_call *call, cx_json_list *list, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    size_t told = 0;
    cx_actor_walk_begin(&walk, cx_recorder_home(call->service->recorder));
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL && told < CX_VIEW_HISTORIES_MAX) {
        status = add_actor(call, list, actor, &told, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    return status;
}

/* {"histories":[{"entries","name"}]}: names for /api/v1/view/{branch}. */
cx_status cx_api_view_list(cx_call *call, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(call->arena), root = cx_json_list_begin(call->arena);
    cx_json value;
    if (call->service->options.only_lattice != NULL) {
        CX_TRY(add_history(call, &list, "", CX_STR("file"),
                           cx_lattice_count(call->service->options.only_lattice), err));
    } else {
        CX_TRY(add_actors(call, &list, err));
    }
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_json_list_put(&root, CX_STR("histories"), value);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- compare ---------------------------------------------------------------------------------- */

/* The id that a run writes into its own events. */
static cx_str run_id_of(cx_str name)
{
    if (!cx_str_starts(name, CX_STR("run/")))
        return (cx_str){"", 0};
    const char *slash = memchr(name.data + 4, '/', name.size - 4);
    return cx_str_from(name.data + 4,
                       slash == NULL ? name.size - 4 : (size_t)(slash - name.data) - 4);
}

static cx_status find_side(const view_call *v, const char *param, cx_str name,
                           cx_lattice_view_side *out, cx_err *err)
{
    const cx_param *node = cx_call_param(v->call, param);
    *out = (cx_lattice_view_side){v->answer_view, v->states, CX_NODE_NONE, run_id_of(name)};
    return node->given ? cx_lattice_view_find(cx_view_cache_lattice(v->view_item),
                                              cx_call_text(v->call, param), &out->node, err)
                       : CX_SUCCESS;
}

/* Of two histories `b` is about the other one. */
static cx_status compare_with(const view_call *v, cx_cached_view *with, cx_err *err)
{
    cx_str names[2] = {v->call->captures[0], cx_call_text(v->call, "with")};
    view_call other = {.call = v->call, .view_item = with};
    cx_lattice_view_side sides[2];
    const cx_lattice_view_range rows = {.from = count_of(v->call, "from"),
                                        .count = count_of(v->call, "max")};
    CX_TRY(open_view(&other, false, err));
    CX_TRY(cx_view_cache_states(with, &other.states, err));
    CX_TRY(find_side(v, "a", names[0], &sides[0], err));
    CX_TRY(find_side(&other, "b", names[1].data == NULL ? names[0] : names[1], &sides[1], err));
    /* Between two runs their ids are not a difference; between two moments of one run the id
     * says nothing. */
    if (cx_str_eq(sides[0].id, sides[1].id))
        sides[0].id = sides[1].id = (cx_str){"", 0};
    return cx_lattice_view_compare(&v->call->response.body, sides, &rows, err);
}

static cx_status answer_compare(view_call *v, cx_err *err)
{
    const cx_param *with = cx_call_param(v->call, "with");
    cx_view_cache *cache = v->call->service->cache;
    cx_cached_view *other = NULL;
    CX_TRY(need_whole(v, err));
    CX_TRY(cx_view_cache_states(v->view_item, &v->states, err));
    if (!with->given) {
        if (!cx_call_param(v->call, "a")->given || !cx_call_param(v->call, "b")->given)
            return cx_fail(
                err, CX_E_USAGE,
                "name two events of one history with a= and b=, or another history with with=");
        return compare_with(v, v->view_item, err);
    }
    CX_TRY(cx_view_cache_acquire_named(cache, v->call, cx_call_text(v->call, "with"), &other, err));
    cx_status status =
        cx_view_cache_is_part(other)
            ? cx_fail(err, CX_E_USAGE, "with: expected a whole history, found a part")
            : compare_with(v, other, err);
    cx_view_cache_release(cache, other);
    return status;
}

cx_status cx_api_view_compare(cx_call *call, cx_err *err)
{
    return answer_view(call, false, answer_compare, err);
}

static cx_status answer_heat(view_call *v, cx_err *err)
{
    const cx_param *layer = cx_call_param(v->call, "layer"), *axis = cx_call_param(v->call, "axis");
    const cx_param *from = cx_call_param(v->call, "from"), *to = cx_call_param(v->call, "to");
    const cx_lattice_view_heat_asked asked = {
        .layer = layer->given ? (cx_heat_layer)layer->choice : CX_HEAT_DIVERGENCE,
        .by_order = axis->given && axis->choice == 1,
        .from = from->given ? from->number : (double)NAN,
        .to = to->given ? to->number : (double)NAN,
        .bins = count_of(v->call, "bins"),
    };
    CX_TRY(need_whole(v, err));
    return cx_lattice_view_heat(&v->call->response.body, v->answer_view, &asked, err);
}

cx_status cx_api_view_heat(cx_call *call, cx_err *err)
{
    return answer_view(call, false, answer_heat, err);
}
