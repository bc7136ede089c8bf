/*
 * events_read.c - events as they are in a file (run.md §17).
 */
#include "bundle/events.h"

static cx_status need_text(const cx_json *object, const char *name, uint64_t index, cx_str *out,
                           cx_err *err)
{
    *out = cx_json_get_str(object, cx_str_z(name));
    if (out->data == NULL)
        return cx_fail(err, CX_E_FORMAT, "event %llu has no text '%s'", (unsigned long long)index,
                       name);
    return CX_SUCCESS;
}

cx_status cx_run_event_parse(cx_str line, uint64_t index, cx_arena *arena, cx_run_event_read *out,
                             cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    cx_run_event_read event = {.line = line, .index = index};
    CX_TRY(cx_run_json_read(line, CX_RUN_EVENT_BYTES_MAX, arena, &event.whole, err));
    if (event.whole.type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "event %llu is %s, expected an object",
                       (unsigned long long)index, cx_json_type_name(&event.whole));
    CX_TRY(need_text(&event.whole, "ts", index, &event.ts, err));
    CX_TRY(need_text(&event.whole, "level", index, &event.level, err));
    CX_TRY(need_text(&event.whole, "event_type", index, &event.type, err));
    event.kind = cx_run_event_type_find(event.type);
    CX_TRY(need_text(&event.whole, "run_id", index, &event.run_id, err));
    CX_TRY(need_text(&event.whole, "trace_id", index, &event.trace_id, err));
    const cx_json *task = CX_JSON_GET(&event.whole, "task_id");
    const cx_json *attempt = CX_JSON_GET(&event.whole, "attempt");
    const cx_json *payload = CX_JSON_GET(&event.whole, "payload");
    if (task == NULL || (task->type != CX_JSON_STRING && task->type != CX_JSON_NULL))
        return cx_fail(err, CX_E_FORMAT, "event %llu has no 'task_id' (text or null)",
                       (unsigned long long)index);
    if (task->type == CX_JSON_STRING)
        event.task_id = cx_json_text(task);
    if (attempt == NULL || (attempt->type != CX_JSON_NULL && !cx_json_is_number(attempt)))
        return cx_fail(err, CX_E_FORMAT, "event %llu has no 'attempt' (an integer or null)",
                       (unsigned long long)index);
    event.has_attempt = cx_json_int64(attempt, &event.attempt);
    if (payload == NULL || payload->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "event %llu has no object 'payload'",
                       (unsigned long long)index);
    event.payload = *payload;
    *out = event;
    return CX_SUCCESS;
}

bool cx_run_next_line(cx_str *text, cx_str *out_line)
{
    const char *end = text->size == 0 ? NULL : memchr(text->data, '\n', text->size);
    if (end == NULL)
        return false;
    *out_line = cx_str_from(text->data, (size_t)(end - text->data));
    *text = cx_str_from(end + 1, text->size - out_line->size - 1);
    return true;
}
