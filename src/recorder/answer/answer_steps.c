/*
 * answer_steps.c - steps that have some words, and the list of histories, as JSON.
 */
#include "recorder/answer/reply.h"

/* --- cursors: places in the list, as text ----------------------------------------------------- */

static cx_status bad_cursor(cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadCursor", CX_NO_OFFSET,
                      "the cursor is not `next_cursor` of an answer: leave it out to start at the "
                      "newest");
}

static bool read_number(cx_str *text, char end, int64_t *out)
{
    size_t at = 0;
    int64_t value = 0;
    bool negative = text->size != 0 && text->data[0] == '-';
    for (at = negative; at < text->size && text->data[at] >= '0' && text->data[at] <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text->data[at] - '0', &value))
            return false;
    if (at == (size_t)negative || (at < text->size ? text->data[at] != end : end != 0))
        return false;
    *out = negative ? -value : value;
    at += at < text->size;
    *text = cx_str_from(text->data + at, text->size - at);
    return true;
}

cx_status cx_recorder_step_cursor(cx_str cursor, cx_step_query *query, cx_err *err)
{
    if (!read_number(&cursor, 0, &query->cursor_id))
        return bad_cursor(err);
    query->has_cursor = true;
    return CX_SUCCESS;
}

cx_status cx_recorder_history_cursor(cx_str cursor, cx_history_query *query, cx_err *err)
{
    if (!read_number(&cursor, '.', &query->cursor_ns) ||
        !read_number(&cursor, 0, &query->cursor_id))
        return bad_cursor(err);
    query->has_cursor = true;
    return CX_SUCCESS;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void add_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_reply_text(list, name, text.size == 0 ? (cx_str){NULL, 0} : text);
}

static void add_hit(cx_json_list *hits, const cx_found_step *step)
{
    cx_json_list item = cx_json_list_begin(hits->arena);
    add_text(&item, "agent", step->agent);
    cx_reply_time(&item, "at", step->at_ns);
    cx_reply_add(&item, "cut_after", cx_json_make_bool(step->cut_after));
    cx_reply_add(&item, "cut_before", cx_json_make_bool(step->cut_before));
    cx_reply_add(&item, "failed", cx_json_make_bool(step->failed));
    cx_reply_text(&item, "history", step->history);
    cx_reply_text(&item, "kind", step->kind);
    cx_reply_text(&item, "ref", step->ref);
    add_text(&item, "role", step->role);
    cx_reply_add(&item, "snippet", cx_json_make_str(step->snippet));
    cx_reply_text(&item, "source", step->source);
    add_text(&item, "title", step->title);
    add_text(&item, "tool", step->tool);
    cx_json_add_object(hits, &item);
}

static cx_status end_page(cx_json_list *list, const char *name, cx_str cursor, cx_index *index,
                          cx_json *out, cx_err *err)
{
    cx_json_list page = cx_json_list_begin(list->arena);
    cx_json_put_array(&page, name, list);
    cx_reply_text(&page, "next_cursor", cursor);
    CX_TRY(cx_reply_not_searched(&page, index, err));
    return cx_json_list_end_object(&page, out, err);
}

static cx_status make_hits(cx_reply *reply, cx_index *index, const cx_step_query *query,
                           cx_json *out, cx_err *err)
{
    const cx_found_step *steps;
    size_t count = 0;
    bool more = false;
    cx_str cursor = {NULL, 0};
    CX_TRY(cx_index_search(index, query, &reply->arena, &steps, &count, &more, err));
    cx_json_list hits = cx_json_list_begin(&reply->arena);
    for (size_t i = 0; i < count; i++)
        add_hit(&hits, &steps[i]);
    if (more)
        cursor = cx_arena_printf(&reply->arena, "%lld", (long long)steps[count - 1].id);
    return end_page(&hits, "hits", cursor, index, out, err);
}

cx_status cx_recorder_answer_search(cx_recorder *recorder, cx_index *index,
                                    const cx_step_query *query, cx_buf *out, cx_err *err)
{
    cx_reply reply;
    cx_json value;
    (void)recorder;
    cx_reply_begin(&reply, out->alloc, err);
    cx_status status = make_hits(&reply, index, query, &value, err);
    return cx_reply_end(&reply, status, &value, out);
}

void cx_reply_history(cx_json_list *item, const cx_found_history *history)
{
    add_text(item, "agent", history->agent);
    cx_reply_uint(item, "calls", (uint64_t)history->calls);
    cx_reply_add(item, "cost_usd", cx_json_make_double(item->arena, history->cost_usd));
    cx_reply_uint(item, "errors", (uint64_t)history->errors);
    cx_reply_time(item, "first", history->first_ns);
    cx_reply_time(item, "last", history->last_ns);
    add_text(item, "model", history->model);
    cx_reply_text(item, "name", history->name);
    add_text(item, "path", history->path);
    cx_reply_text(item, "source", history->source);
    cx_reply_uint(item, "steps", (uint64_t)history->steps);
    add_text(item, "title", history->title);
    cx_reply_uint(item, "tokens_input", (uint64_t)history->tokens_input);
    cx_reply_uint(item, "tokens_output", (uint64_t)history->tokens_output);
}

static cx_status make_histories(cx_reply *reply, cx_index *index, const cx_history_query *query,
                                cx_json *out, cx_err *err)
{
    const cx_found_history *found;
    size_t count = 0;
    bool more = false;
    cx_str cursor = {NULL, 0};
    CX_TRY(cx_index_histories(index, query, &reply->arena, &found, &count, &more, err));
    cx_json_list list = cx_json_list_begin(&reply->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list item = cx_json_list_begin(&reply->arena);
        cx_reply_history(&item, &found[i]);
        cx_json_add_object(&list, &item);
    }
    if (more) {
        int64_t ns = found[count - 1].last_ns == CX_TIME_NONE ? 0 : found[count - 1].last_ns;
        cursor = cx_arena_printf(&reply->arena, "%lld.%lld", (long long)ns,
                                 (long long)found[count - 1].id);
    }
    return end_page(&list, "histories", cursor, index, out, err);
}

cx_status cx_recorder_answer_histories(cx_recorder *recorder, cx_index *index,
                                       const cx_history_query *query, cx_buf *out, cx_err *err)
{
    cx_reply reply;
    cx_json value;
    (void)recorder;
    cx_reply_begin(&reply, out->alloc, err);
    cx_status status = make_histories(&reply, index, query, &value, err);
    return cx_reply_end(&reply, status, &value, out);
}
