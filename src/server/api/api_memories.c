/*
 * api_memories.c - an actor's memories: searched by text, type and tag, in the order of their ids,
 * and one of them with its edges.  Memories and edges have the form of `cortex memory` --json.
 */
#include "memory/api.h"
#include "server/route.h"

#define LIMIT_DEFAULT 50
#define EDGES_MAX 1000
#define PAGE 200 /* memories read at once */
#define LOOKED_AT_MAX \
    100000 /* memories that one request examines; the answer says where to continue */

typedef struct search {
    cx_call *call;
    cx_memory *memory;
    cx_str text; /* data NULL = any */
    uint8_t type;
    bool all;
    size_t limit;
    bool has_after;
    cx_id after; /* continue after it */
    cx_json_list found;
    size_t count, examined;
    bool over;
} search;

/* --- what fits -------------------------------------------------------------------------------- */

static char lower_ascii(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool contains_text(cx_str in, cx_str text)
{
    for (size_t i = 0; text.size <= in.size && i <= in.size - text.size; i++) {
        size_t n = 0;
        while (n < text.size && lower_ascii(in.data[i + n]) == lower_ascii(text.data[n]))
            n++;
        if (n == text.size)
            return true;
    }
    return false;
}

static bool head_has_tag(const cx_head *head, cx_str tag)
{
    for (size_t i = 0; i < head->tag_count; i++)
        if (cx_str_eq(head->tags[i], tag))
            return true;
    return false;
}

static bool matches_search(const search *s, const cx_memory_view *view)
{
    const cx_target *target = &s->call->target;
    if (view->expired && !s->all)
        return false;
    for (size_t i = 0; i < target->param_count; i++)
        if (cx_str_is(target->params[i].name, "tag") &&
            !head_has_tag(&view->head, target->params[i].value))
            return false;
    return s->text.data == NULL || contains_text(view->version.forms.brief, s->text) ||
           contains_text(view->version.forms.medium, s->text);
}

/* --- the list --------------------------------------------------------------------------------- */

static cx_status search_view(search *s, const cx_memory_view *view, cx_err *err)
{
    s->after = view->uri.id;
    s->has_after = true;
    s->examined++;
    if (!matches_search(s, view))
        return CX_SUCCESS;
    cx_json_list item = cx_json_list_begin(s->call->arena);
    CX_TRY(cx_view_memory(view, &item, err));
    s->count++;
    cx_json_add_object(&s->found, &item);
    return CX_SUCCESS;
}

static cx_status read_page(search *s, cx_err *err)
{
    const cx_memory_view *views;
    size_t count;
    CX_TRY(cx_memory_list(s->memory, s->type, s->all, s->has_after ? &s->after : NULL, PAGE,
                          s->call->arena, &views, &count, err));
    s->over = count < PAGE;
    for (size_t i = 0; i < count; i++) {
        if (s->count == s->limit) {
            s->over = false;
            return CX_SUCCESS;
        }
        CX_TRY(search_view(s, &views[i], err));
    }
    return CX_SUCCESS;
}

static cx_status answer_list(search *s, cx_err *err)
{
    cx_json_list answer = cx_json_list_begin(s->call->arena);
    cx_json value;
    s->found = cx_json_list_begin(s->call->arena);
    while (!s->over && s->count < s->limit && s->examined < LOOKED_AT_MAX)
        CX_TRY(read_page(s, err));
    cx_json_put_str(&answer, "actor", cx_call_text(s->call, "actor"));
    cx_json_put_uint(&answer, "count", s->count);
    cx_json_put_array(&answer, "memories", &s->found);
    if (s->over)
        cx_json_put_null(&answer, "next");
    else
        cx_json_put_id(&answer, "next", &s->after);
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(s->call, 200, &value, err);
}

static cx_status open_memory(cx_call *call, cx_memory **out, cx_err *err)
{
    cx_home *home = cx_recorder_home(call->service->recorder);
    cx_str actor = cx_call_text(call, "actor");
    cx_actor_info info;
    CX_TRY(cx_home_actor(home, actor, &info, err));
    return cx_memory_open(home, actor, NULL, out, err);
}

/* Full-text: by the index of words, most salient first, in one page. */
static cx_status answer_words(search *s, cx_str words, cx_err *err)
{
    cx_call *call = s->call;
    cx_json_list answer = cx_json_list_begin(call->arena);
    cx_memory_find find = {.text = words,
                           .limit = s->limit,
                           .types = cx_bytes_from(&s->type, s->type == 0 ? 0 : 1),
                           .with_tombstoned = s->all,
                           .with_expired = s->all};
    cx_str *tags = CX_ARENA_ARRAY(call->arena, cx_str, call->target.param_count + 1);
    const cx_memory_hit *hits;
    cx_json value;
    if (tags == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < call->target.param_count; i++)
        if (cx_str_is(call->target.params[i].name, "tag"))
            tags[find.tag_count++] = call->target.params[i].value;
    find.tags = tags;
    CX_TRY(cx_memory_find_all(s->memory, &find, call->arena, &hits, &s->count, err));
    s->found = cx_json_list_begin(call->arena);
    for (size_t i = 0; i < s->count; i++) {
        cx_json_list item = cx_json_list_begin(call->arena);
        CX_TRY(cx_view_memory(&hits[i].view, &item, err));
        cx_json_add_object(&s->found, &item);
    }
    cx_json_put_str(&answer, "actor", cx_call_text(call, "actor"));
    cx_json_put_uint(&answer, "count", s->count);
    cx_json_put_array(&answer, "memories", &s->found);
    cx_json_put_null(&answer, "next");
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_memory_list(cx_call *call, cx_err *err)
{
    cx_str words = cx_call_text(call, "words");
    const cx_param *limit = cx_call_param(call, "limit");
    cx_str type = cx_call_text(call, "type"), after = cx_call_text(call, "after");
    search s = {.call = call,
                .text = cx_call_text(call, "text"),
                .type = type.data == NULL ? 0 : cx_uri_type_code(type),
                .all = cx_call_flag(call, "all"),
                .limit = limit->given ? (size_t)limit->count : LIMIT_DEFAULT,
                .has_after = after.data != NULL};
    if (s.has_after && !cx_ulid_parse(after, &s.after))
        return cx_fail(err, CX_E_USAGE, "after: expected a ULID, the `next` of an earlier answer");
    if (words.size != 0 && (s.has_after || s.text.data != NULL))
        return cx_fail(err, CX_E_USAGE, "words: cannot be combined with text or after");
    CX_TRY(open_memory(call, &s.memory, err));
    cx_status status = words.size != 0 ? answer_words(&s, words, err) : answer_list(&s, err);
    cx_memory_close(s.memory);
    return status;
}

/* --- one memory ------------------------------------------------------------------------------- */

static cx_status add_edges(cx_call *call, cx_memory *memory, const cx_id *id, bool to,
                           cx_json_list *answer, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(call->arena);
    const cx_edge_view *edges;
    size_t count;
    CX_TRY(cx_memory_edges(memory, id, to, 0, true, EDGES_MAX, call->arena, &edges, &count, err));
    for (size_t i = 0; i < count; i++) {
        cx_json_list edge = cx_json_list_begin(call->arena);
        cx_view_edge(&edges[i].edge, &edge);
        cx_json_add_object(&list, &edge);
    }
    cx_json_put_array(answer, to ? "edges_to" : "edges_from", &list);
    return CX_SUCCESS;
}

static cx_status answer_memory(cx_call *call, cx_memory *memory, cx_err *err)
{
    cx_str name = call->captures[0];
    cx_json_list answer = cx_json_list_begin(call->arena);
    cx_memory_view view;
    cx_json value;
    cx_uri uri;
    if (cx_ulid_parse(name, &uri.id)) {
        CX_TRY(cx_memory_resolve_latest(memory, &uri.id, call->arena, &view, err));
    } else {
        CX_TRY(cx_memory_uri_parse(name, &uri, err));
        CX_TRY(cx_memory_resolve(memory, &uri, call->arena, &view, err));
    }
    CX_TRY(cx_view_memory(&view, &answer, err));
    CX_TRY(add_edges(call, memory, &view.uri.id, false, &answer, err));
    CX_TRY(add_edges(call, memory, &view.uri.id, true, &answer, err));
    CX_TRY(cx_json_list_end_object(&answer, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_memory_show(cx_call *call, cx_err *err)
{
    cx_memory *memory;
    CX_TRY(open_memory(call, &memory, err));
    cx_status status = answer_memory(call, memory, err);
    cx_memory_close(memory);
    return status;
}
