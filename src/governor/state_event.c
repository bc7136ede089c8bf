/*
 * state_event.c - what a run writes down while it goes on, and how a gate's refusal is written.
 */
#include <stdlib.h>

#include "crypto/api.h"
#include "governor/state_internal.h"

/* --- payloads --------------------------------------------------------------------------------- */

cx_str cx_digest_text(const cx_digest *digest, cx_arena *arena)
{
    CX_ASSERT(arena != NULL);
    char *text = CX_ARENA_ARRAY(arena, char, 2 * sizeof digest->bytes + 1);
    if (text == NULL)
        return (cx_str){NULL, 0};
    cx_hex_encode((cx_bytes){digest->bytes, sizeof digest->bytes}, text);
    return (cx_str){text, 2 * sizeof digest->bytes};
}

/* --- events ----------------------------------------------------------------------------------- */

void cx_governor_fault(cx_governor *g)
{
    if (++g->events == g->options->fault_event)
        abort();
}

static cx_status defer_event(cx_governor *g, const cx_run_event *event, cx_err *err)
{
    cx_deferred_event *held = CX_ARENA_NEW(g->arena, cx_deferred_event);
    if (held == NULL)
        return cx_fail_nomem(err);
    *held = (cx_deferred_event){*event, NULL};
    CX_TRY(cx_json_copy(&event->payload, g->arena, &held->event.payload, err));
    if (g->deferred == NULL)
        g->deferred = held;
    else
        g->deferred_last->next = held;
    g->deferred_last = held;
    return CX_SUCCESS;
}

static cx_status write_event(cx_governor *g, const cx_run_event *event, cx_err *err)
{
    const cx_run_options *options = g->options;
    cx_str line;
    CX_ASSERT(!g->shared || g->inside); /* I6 */
    CX_DEBUG_ASSERT(cx_run_event_type_has_level(event->type, event->level));
    if (g->deferring)
        return defer_event(g, event, err);
    if (g->log_failed) /* I7 */
        return cx_fail(err, CX_E_IO, "an earlier event could not be written");
    cx_status status = cx_run_event_append(g->run, event, &line, err);
    if (cx_failed(status)) {
        g->log_failed = true;
        return status;
    }
    if (options->progress != NULL)
        options->progress(options->progress_arg, cx_str_z(cx_run_event_type_name(event->type)),
                          line);
    cx_governor_fault(g);
    return CX_SUCCESS;
}

void cx_governor_defer_events(cx_governor *g)
{
    g->deferring = true;
}

cx_status cx_governor_record_events(cx_governor *g, cx_err *err)
{
    g->deferring = false;
    for (; g->deferred != NULL; g->deferred = g->deferred->next)
        CX_TRY(write_event(g, &g->deferred->event, err));
    return CX_SUCCESS;
}

static cx_status end_payload(cx_json_list *payload, cx_json *out, cx_err *err)
{
    memset(out, 0, sizeof *out);
    return payload == NULL ? CX_SUCCESS : cx_json_list_end_object(payload, out, err);
}

cx_status cx_governor_event(cx_governor *g, cx_run_level level, cx_run_event_type type,
                            cx_json_list *payload, cx_err *err)
{
    cx_run_event event = {.level = level, .type = type, .attempt = CX_RUN_NO_ATTEMPT};
    CX_TRY(end_payload(payload, &event.payload, err));
    return write_event(g, &event, err);
}

cx_status cx_task_event_json(cx_governor_task *t, cx_run_level level, cx_run_event_type type,
                             const cx_json *payload, cx_err *err)
{
    cx_run_event event = {.level = level,
                          .type = type,
                          .task_id = t->id,
                          .attempt = (int32_t)t->attempt,
                          .payload = *payload};
    return write_event(t->governor, &event, err);
}

cx_status cx_task_event(cx_governor_task *t, cx_run_level level, cx_run_event_type type,
                        cx_json_list *payload, cx_err *err)
{
    cx_json value;
    CX_TRY(end_payload(payload, &value, err));
    return cx_task_event_json(t, level, type, &value, err);
}

cx_status cx_task_gate_event(cx_governor_task *t, cx_run_event_type type, bool passed,
                             const cx_texts *violations, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_bool(&payload, "passed", passed);
    if (violations != NULL)
        cx_json_put_quoted_strs(&payload, "violations", violations->items, violations->count);
    return cx_task_event(t, passed ? CX_RUN_INFO : CX_RUN_ERROR, type, &payload, err);
}

/* --- going on, or not ------------------------------------------------------------------------- */

void cx_task_go(cx_governor_task *t, const char *why)
{
    CX_ASSERT(why != NULL && !t->refused);
    t->why = why;
}

bool cx_task_cancelled(const cx_governor_task *t)
{
    const atomic_bool *cancel = t->governor->options->cancel;
    return cancel != NULL && atomic_load(cancel);
}

cx_status cx_names_of(cx_str text, cx_arena *arena, cx_texts *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    cx_str *items = NULL, own = cx_arena_copy_str(arena, text);
    size_t count = 0;
    if (own.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_names_read(own, arena, &items, &count, err));
    *out = (cx_texts){items, count};
    return CX_SUCCESS;
}

static cx_status copy_texts(cx_arena *arena, const cx_texts *from, cx_texts *out, cx_err *err)
{
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, from->count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < from->count; i++) {
        items[i] = cx_arena_copy_str(arena, from->items[i]);
        if (items[i].data == NULL)
            return cx_fail_nomem(err);
    }
    *out = (cx_texts){items, from->count};
    return CX_SUCCESS;
}

/* Where `folder` occurs in text at or after *at, as a whole path or the start of one. */
static bool find_folder(cx_str text, cx_str folder, size_t *at)
{
    for (size_t i = *at; folder.size > 1 && i + folder.size <= text.size; i++) {
        char next = i + folder.size < text.size ? text.data[i + folder.size] : '/';
        bool whole = next == '/' || next == '\'' || next == ' ' || next == ':' || next == ',';
        *at = i;
        if (whole && memcmp(text.data + i, folder.data, folder.size) == 0)
            return true;
    }
    return false;
}

cx_str cx_governor_message(const cx_governor *g, const cx_err *why, cx_arena *arena)
{
    CX_ASSERT(g != NULL && arena != NULL);
    const char *const folders[] = {g->store.root, g->options->home, g->repo_root};
    static const char *const names[] = {"RUNTIME_ROOT", "LEDGER_HOME", "REPOSITORY"};
    cx_str text = cx_arena_copy_str(arena, cx_str_z(why->message));
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++) {
        size_t at = 0;
        cx_str folder = cx_str_z(folders[i] == NULL ? "" : folders[i]);
        while (text.data != NULL && find_folder(text, folder, &at))
            text = cx_arena_printf(arena, "%.*s%s%s", (int)at, text.data, names[i],
                                   text.data + at + folder.size);
    }
    return text;
}

cx_status cx_task_gate_failed(cx_governor_task *t, cx_gate_id gate, const char *reason,
                              bool violates, const cx_texts *violations, cx_err *err)
{
    static const cx_texts none = {NULL, 0};
    cx_json_list payload = cx_json_list_begin(&t->arena);
    const cx_texts *listed = violations == NULL ? &none : violations;
    CX_DEBUG_ASSERT(cx_gate_has_reason(gate, reason));
    CX_TRY(copy_texts(&t->arena, listed, &t->refusal.violations, err));
    if (violates) {
        cx_json_list violation = cx_json_list_begin(&t->arena);
        cx_json_put_z(&violation, "gate", cx_gate_name(gate));
        cx_json_put_z(&violation, "reason", reason);
        cx_json_put_quoted_strs(&violation, "violations", listed->items, listed->count);
        CX_TRY(cx_task_event(t, CX_RUN_ERROR, CX_RUN_EVENT_POLICY_VIOLATION, &violation, err));
    }
    cx_json_put_z(&payload, "gate", cx_gate_name(gate));
    cx_json_put_z(&payload, "reason", reason);
    if (!violates && listed->count != 0)
        cx_json_put_quoted_strs(&payload, "violations", listed->items, listed->count);
    return cx_task_event(t, CX_RUN_ERROR, CX_RUN_EVENT_GATE_FAILED, &payload, err);
}

cx_status cx_task_refuse(cx_governor_task *t, cx_gate_id gate, const char *reason, bool violates,
                         const cx_texts *violations, cx_err *err)
{
    CX_ASSERT(gate != CX_GATE_NONE && reason != NULL);
    t->refused = true;
    t->refusal.gate = gate;
    t->refusal.reason = cx_arena_copy_str(&t->arena, cx_str_z(reason));
    if (t->refusal.reason.data == NULL)
        return cx_fail_nomem(err);
    return cx_task_gate_failed(t, gate, reason, violates, violations, err);
}

cx_status cx_task_refuse_error(cx_governor_task *t, const cx_err *why, cx_err *err)
{
    cx_gate_id gate = t->gate == CX_GATE_NONE ? CX_GATE_RUN : t->gate;
    cx_str text = cx_governor_message(t->governor, why, &t->arena);
    cx_texts violations = {&text, 1};
    if (text.data == NULL)
        return cx_fail_nomem(err);
    t->refusal.hint = text;
    if (cx_task_cancelled(t)) {
        t->refusal.aborted = true;
        return cx_task_refuse(t, CX_GATE_INTERRUPTED, "signal", false, NULL, err);
    }
    return cx_task_refuse(t, gate, "could_not_evaluate", false, &violations, err);
}

cx_status cx_findings_texts(const cx_run_findings *findings, cx_arena *arena, cx_texts *out,
                            cx_err *err)
{
    CX_ASSERT(findings != NULL && arena != NULL && out != NULL);
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, findings->refusing + 1);
    size_t count = 0;
    CX_TRY(cx_run_findings_check(findings, err));
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < findings->list.count && count < findings->refusing; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        if (finding->informs)
            continue;
        items[count] =
            cx_arena_printf(arena, "%s%s%.*s", finding->rule, finding->where.size == 0 ? "" : " ",
                            (int)finding->where.size, finding->where.data);
        if (items[count++].data == NULL)
            return cx_fail_nomem(err);
    }
    *out = (cx_texts){items, count};
    return CX_SUCCESS;
}
