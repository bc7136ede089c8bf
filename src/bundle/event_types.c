/*
 * event_types.c - the table of event types, by constant and by text (run.md §17).
 */
#include "bundle/event_types.h"

static const struct event_type {
    const char *text, *levels;
} event_types[CX_RUN_EVENT_TYPE_COUNT] = {[CX_RUN_EVENT_UNKNOWN] = {"", ""},
#define EVENT_ROW(name, text, levels, payload) [CX_RUN_EVENT_##name] = {text, levels},
                                          CX_RUN_EVENT_TYPES(EVENT_ROW)
#undef EVENT_ROW
};

const char *cx_run_event_type_name(cx_run_event_type type)
{
    CX_ASSERT((size_t)type < CX_RUN_EVENT_TYPE_COUNT);
    return event_types[type].text;
}

cx_run_event_type cx_run_event_type_find(cx_str text)
{
    for (size_t i = 1; i < CX_RUN_EVENT_TYPE_COUNT; i++)
        if (cx_str_is(text, event_types[i].text))
            return (cx_run_event_type)i;
    return CX_RUN_EVENT_UNKNOWN;
}

bool cx_run_event_type_has_level(cx_run_event_type type, cx_run_level level)
{
    static const char letters[] = {[CX_RUN_INFO] = 'I', [CX_RUN_WARN] = 'W', [CX_RUN_ERROR] = 'E'};
    CX_ASSERT((size_t)type < CX_RUN_EVENT_TYPE_COUNT);
    CX_ASSERT((size_t)level < sizeof letters);
    return strchr(event_types[type].levels, letters[level]) != NULL;
}
