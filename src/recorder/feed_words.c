/*
 * feed_words.c - what signed traces and memories say, as rows of the index (feed_steps.h).
 *
 * A trace has a row for each component that holds text.  At the level generic no field may carry
 * text (trace.md §2), so such traces have none and are found by their ids alone.  A memory has a
 * row for each of its versions, under the version's URI.
 */
#include "recorder/feed_steps.h"

#include "memory/api.h"
#include "trace/api.h"

/* As deep as a trace may be. */
#define DEPTH_MAX CX_TRACE_DEPTH_MAX
#define VERSION_KEY_SIZE (3 + 16 + 3 + 8)

void cx_feed_add_text(cx_buf *out, cx_str text)
{
    if (text.size == 0 || out->size > CX_STEP_TEXT_MAX)
        return;
    if (out->size != 0)
        cx_buf_add_byte(out, '\n');
    cx_buf_add_str(out, text);
}

static cx_status take_text(cx_buf *text, cx_arena *arena, cx_str *out, cx_err *err)
{
    CX_TRY(cx_buf_check(text, err));
    *out = text->size == 0 ? (cx_str){"", 0} : cx_arena_copy_str(arena, cx_buf_str(text));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- traces ----------------------------------------------------------------------------------- */

/* The texts of a component, without the names of its members: those are alike in all traces. */
static void add_texts(cx_buf *out, const cx_json *value, unsigned depth)
{
    if (depth > DEPTH_MAX)
        return;
    if (value->type == CX_JSON_STRING)
        cx_feed_add_text(out, cx_json_text(value));
    for (uint32_t i = 0; value->type == CX_JSON_ARRAY && i < value->count; i++)
        add_texts(out, &value->items[i], depth + 1);
    for (uint32_t i = 0; value->type == CX_JSON_OBJECT && i < value->count; i++)
        add_texts(out, &value->members[i].value, depth + 1);
}

/* Kinds of steps (steps.md §1). */
static cx_str kind_of_component(cx_event_type event)
{
    switch (event) {
    case CX_EVENT_THOUGHT_START:
    case CX_EVENT_LLM_CALL: return CX_STR("message");
    case CX_EVENT_SNAPSHOT_AND_CONTEXT: return CX_STR("observation");
    case CX_EVENT_DMA_RESULTS:
    case CX_EVENT_IDMA_RESULT:
    case CX_EVENT_ASPDMA_RESULT:
    case CX_EVENT_TSASPDMA_RESULT:
    case CX_EVENT_VERB_SECOND_PASS_RESULT:
    case CX_EVENT_CONSCIENCE_RESULT: return CX_STR("decision");
    case CX_EVENT_ACTION_RESULT: return CX_STR("tool_result");
    default: return CX_STR("note");
    }
}

static bool has_failed(const cx_trace_component *component)
{
    return component->event == CX_EVENT_ACTION_RESULT &&
           (cx_json_get_typed(component->data, CX_STR("execution_success"), CX_JSON_FALSE) !=
                NULL ||
            CX_JSON_GET_STR(component->data, "execution_error").size != 0);
}

static cx_status put_component(const cx_feed_entry *at, const cx_trace *trace, uint32_t index,
                               cx_buf *text, cx_err *err)
{
    const cx_trace_component *component = &trace->components[index];
    const cx_tail_item *item = at->item;
    cx_step_row row = {.source = CX_STR(CX_SOURCE_TRACES),
                       .at_ns = component->timestamp_ns,
                       .end_ns = CX_TIME_NONE,
                       .kind = kind_of_component(component->event),
                       .agent = item->actor,
                       .role = component->event_type,
                       .failed = has_failed(component),
                       .actor = item->actor,
                       .seq = item->entry.seq};
    cx_buf_clear(text);
    add_texts(text, component->data, 0);
    if (text->size == 0)
        return cx_buf_check(text, err);
    CX_TRY(take_text(text, at->arena, &row.text, err));
    row.history = cx_arena_printf(at->arena, "agent/%.*s", (int)item->actor.size, item->actor.data);
    row.ref = cx_arena_printf(at->arena, "entry:%llu.%u", (unsigned long long)item->entry.seq,
                              (unsigned)index);
    if (row.history.data == NULL || row.ref.data == NULL)
        return cx_fail_nomem(err);
    return cx_index_put_step(at->index, &row, err);
}

cx_status cx_feed_trace_words(const cx_feed_entry *at, const cx_trace *trace, cx_trace_level level,
                              cx_err *err)
{
    cx_buf text;
    cx_status status = CX_SUCCESS;
    if (level == CX_LEVEL_GENERIC)
        return CX_SUCCESS;
    cx_buf_init(&text, cx_alloc_default());
    for (uint32_t i = 0; i < trace->component_count && !cx_failed(status); i++)
        status = put_component(at, trace, i, &text, err);
    cx_buf_done(&text);
    return status;
}

/* --- memories --------------------------------------------------------------------------------- */

static cx_status memory_history(const cx_feed_entry *at, cx_str *out, cx_err *err)
{
    *out =
        cx_arena_printf(at->arena, "memory/%.*s", (int)at->item->actor.size, at->item->actor.data);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status version_ref(const cx_feed_entry *at, const cx_version_record *version, cx_str *out,
                             cx_err *err)
{
    const cx_uri uri = {.type = version->type, .id = version->id, .version = version->version};
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_uri_add(&uri, &text);
    cx_status status = take_text(&text, at->arena, out, err);
    cx_buf_done(&text);
    return status;
}

/* What is shown of a memory, then all else that its data says. */
static cx_status version_text(const cx_feed_entry *at, const cx_version_record *version,
                              cx_str *out, cx_err *err)
{
    cx_data data;
    cx_buf text, full;
    cx_status status = cx_data_decode(version->type, version->data.bytes, at->arena, &data, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&full, cx_alloc_default());
    if (!cx_failed(status)) /* else only its forms are known */
        cx_forms_full(&data, &full);
    status = cx_buf_check(&full, err);
    if (version->forms_override || full.size == 0) {
        cx_feed_add_text(&text, version->forms.medium);
        cx_feed_add_text(&text, version->forms.brief);
    }
    cx_feed_add_text(&text, cx_buf_str(&full));
    if (!cx_failed(status))
        status = take_text(&text, at->arena, out, err);
    cx_buf_done(&full);
    cx_buf_done(&text);
    return status;
}

static cx_status put_version(const cx_feed_entry *at, const cx_change *change, cx_err *err)
{
    const cx_tail_item *item = at->item;
    cx_version_record version;
    cx_status status = cx_version_decode(change->value, at->arena, &version, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) || version.erased)
        return CX_SUCCESS;
    cx_step_row row = {.source = CX_STR(CX_SOURCE_MEMORY),
                       .at_ns = item->entry.created_at_ns,
                       .end_ns = CX_TIME_NONE,
                       .kind = CX_STR("memory"),
                       .agent = version.created_by,
                       .role = cx_uri_type_name(version.type),
                       .title_rank = 1,
                       .actor = item->actor,
                       .seq = item->entry.seq};
    row.title =
        cx_arena_printf(at->arena, "memories of %.*s", (int)item->actor.size, item->actor.data);
    if (row.title.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(memory_history(at, &row.history, err));
    CX_TRY(version_ref(at, &version, &row.ref, err));
    CX_TRY(version_text(at, &version, &row.text, err));
    return cx_index_put_step(at->index, &row, err);
}

/* All versions of a memory are erased together. */
static cx_status forget_memory(const cx_feed_entry *at, const cx_change *head_change, cx_err *err)
{
    cx_head head;
    cx_str history, ref;
    cx_status status = cx_head_decode(head_change->value, at->arena, &head, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        return CX_SUCCESS;
    const cx_version_record first = {.type = head.type, .id = head.id, .version = 1};
    CX_TRY(memory_history(at, &history, err));
    CX_TRY(version_ref(at, &first, &ref, err));
    return cx_index_forget_refs(at->index, history, cx_str_from(ref.data, ref.size - 1), err);
}

cx_status cx_feed_memory_words(const cx_feed_entry *at, cx_err *err)
{
    const cx_tail_item *item = at->item;
    cx_entry_kind kind = cx_entry_kind_of(item->entry.kind);
    bool erases = kind == CX_ENTRY_REDACT_MEMORY;
    if (!erases && kind != CX_ENTRY_WRITE && kind != CX_ENTRY_UPDATE)
        return CX_SUCCESS;
    for (size_t i = 0; i < item->change_count; i++) {
        const cx_change *change = &item->changes[i];
        if (change->removed || change->erased)
            continue;
        if (erases && change->key.size == 2 + 16 &&
            cx_str_starts(cx_bytes_str(change->key), CX_STR("m/")))
            CX_TRY(forget_memory(at, change, err));
        else if (!erases && change->key.size == VERSION_KEY_SIZE &&
                 cx_str_starts(cx_bytes_str(change->key), CX_STR("mv/")))
            CX_TRY(put_version(at, change, err));
    }
    return CX_SUCCESS;
}
