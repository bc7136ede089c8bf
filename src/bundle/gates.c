/*
 * gates.c - the table of gates, by constant, by event and by reason (run.md §13).
 */
#include "bundle/gates.h"

static const cx_gate_row gate_rows[CX_GATE_COUNT] = {
    [CX_GATE_NONE] = {"", CX_RUN_EVENT_UNKNOWN, "", "", "", "", ""},
#define GATE_ROW(name, text, event, member, good, where, question, reasons) \
    [CX_GATE_##name] = {text, CX_RUN_EVENT_##event, member, good, where, question, reasons},
    CX_RUN_GATES(GATE_ROW)
#undef GATE_ROW
};

/* Reasons that each gate may have: R1, and a part that refused for the task that it is a part
 * of. */
#define COMMON_REASONS "could_not_evaluate part_refused"

const cx_gate_row *cx_gate_row_of(cx_gate_id gate)
{
    CX_ASSERT((size_t)gate < CX_GATE_COUNT);
    return &gate_rows[gate];
}

const char *cx_gate_name(cx_gate_id gate)
{
    return cx_gate_row_of(gate)->name;
}

cx_gate_id cx_gate_of_event(cx_run_event_type type)
{
    for (size_t i = 1; type != CX_RUN_EVENT_UNKNOWN && i < CX_GATE_COUNT; i++)
        if (gate_rows[i].event == type)
            return (cx_gate_id)i;
    return CX_GATE_NONE;
}

/* Whether a word of the list is `word`, or its beginning and then a star. */
static bool list_has_word(const char *list, const char *word)
{
    for (size_t size; *list != '\0'; list += size + (list[size] == ' ')) {
        size = strcspn(list, " ");
        if (size > 1 && list[size - 1] == '*' && strncmp(list, word, size - 1) == 0)
            return true;
        if (strlen(word) == size && memcmp(list, word, size) == 0)
            return true;
    }
    return false;
}

bool cx_gate_has_reason(cx_gate_id gate, const char *reason)
{
    return reason[0] != '\0' && (list_has_word(cx_gate_row_of(gate)->reasons, reason) ||
                                 list_has_word(COMMON_REASONS, reason));
}
