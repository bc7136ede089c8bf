/*
 * fuzz_batch.c - any bytes as the body of POST /events.
 *
 * Taking a batch apart by brackets and reading the pieces must come to what reading it whole would:
 * a body that is no JSON is never taken, and one that is JSON is never called unreadable.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "recorder/internal.h"

static bool is_tag(const cx_err *err, const char *tag)
{
    return err->tag != NULL && strcmp(err->tag, tag) == 0;
}

typedef enum json_kind { IS_JSON, IS_NO_JSON, IS_OTHER } json_kind;

/* As a whole, with limits that nothing here reaches. */
static json_kind judge_whole(cx_str body, cx_arena *arena)
{
    const cx_json_limits limits = {
        .depth = 100000, .integer_digits = 1000000, .allow_nonfinite = true};
    cx_json_parser parser;
    cx_json value;
    cx_err err = {0};
    cx_json_parser_init(&parser, cx_alloc_default(), &limits);
    cx_status status = cx_json_parse(&parser, body, arena, &value, &err);
    cx_json_parser_done(&parser);
    if (!cx_failed(status))
        return cx_json_has_canonical(&value) ? IS_JSON : IS_OTHER;
    return is_tag(&err, "U_SYNTAX") || is_tag(&err, "U_UTF8") || is_tag(&err, "U_BOM") ? IS_NO_JSON
                                                                                       : IS_OTHER;
}

/* Whether all of it would be refused because it cannot be read. */
static bool is_unreadable(const cx_batch *batch, const cx_batch_problem *problem, cx_arena *arena)
{
    cx_batch_problem of_event;
    if (problem->http != 0)
        return problem->http == 400;
    for (size_t i = 0; i < batch->event_count; i++) {
        const cx_event *event = &batch->events[i];
        cx_trace trace;
        cx_trace_problem found = {.reason = CX_REASON_NONE};
        if (cx_batch_unreadable(event->problem.reason, &of_event))
            return true;
        if (event->trace.size == 0)
            continue;
        FUZZ_CHECK(!cx_failed(cx_trace_read(event->trace, arena, &trace, &found, NULL)));
        if (cx_batch_unreadable(found.reason, &of_event))
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_batch batch;
    cx_batch_problem problem;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_bytes body = cx_bytes_from(data, size);
    json_kind kind = judge_whole(cx_bytes_str(body), &arena);
    FUZZ_CHECK(!cx_failed(cx_batch_read(body, &arena, &batch, &problem, &err)));
    bool unreadable = is_unreadable(&batch, &problem, &arena);
    if (kind == IS_JSON)
        FUZZ_CHECK(!unreadable);
    if (kind == IS_NO_JSON)
        FUZZ_CHECK(unreadable || problem.http == 422);
    cx_arena_done(&arena);
    return 0;
}
