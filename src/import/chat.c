/*
 * chat.c - calls in messages, short names of sessions, and an index of earlier records.
 */
#include "import/chat.h"

#include <stdio.h>

#define SHORT_CHARACTERS 8
#define DECODE_DEPTH_MAX 1000 /* decoded text is nested deeper in the node than it was */

cx_str cx_import_scalar(const cx_json *value)
{
    if (value == NULL || (value->type != CX_JSON_STRING && !cx_json_is_number(value)))
        return (cx_str){NULL, 0};
    return cx_json_text(value);
}

const cx_json *cx_import_not_null(const cx_json *value)
{
    return value == NULL || value->type == CX_JSON_NULL ? NULL : value;
}

uint32_t cx_import_chat_calls(cx_import_record *record, cx_str scope, const cx_json *message)
{
    const cx_json *calls = cx_json_get_typed(message, CX_STR("tool_calls"), CX_JSON_ARRAY);
    if (calls == NULL)
        return 0;
    for (uint32_t i = 0; i < calls->count; i++) {
        const cx_json *function = CX_JSON_GET(&calls->items[i], "function");
        cx_str name = function == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(function, "name");
        const cx_json *args = function == NULL ? NULL : CX_JSON_GET(function, "arguments");
        if (calls->count == 1)
            record->tool = name; /* known even where the call has no id */
        cx_import_call(record, scope, cx_import_scalar(CX_JSON_GET(&calls->items[i], "id")), name,
                       cx_import_not_null(args));
    }
    return calls->count;
}

cx_status cx_import_name_calls(cx_import_record *record, cx_err *err)
{
    cx_json_list ids = cx_json_list_begin(record->arena);
    const cx_import_call_item *only = NULL;
    cx_json value;
    for (size_t i = 0; i < record->calls.count; i++) {
        if (!record->calls.items[i].opens)
            continue;
        only = &record->calls.items[i];
        cx_json_list_add(&ids, cx_json_make_str(only->call_id));
    }
    if (ids.count == 1) {
        record->call_id = only->call_id;
        record->tool = only->tool;
    }
    if (ids.count < 2)
        return CX_SUCCESS;
    CX_TRY(cx_json_list_end_array(&ids, &value, err));
    cx_import_field(record, CX_STR("calls"), value);
    return CX_SUCCESS;
}

bool cx_import_decode_for(cx_import_record *record, cx_str text, cx_json *out)
{
    const cx_json_limits limits = {DECODE_DEPTH_MAX, 4300, 0, false};
    cx_json_parser parser;
    cx_json_parser_init(&parser, record->alloc, &limits);
    cx_status status = cx_json_parse(&parser, text, record->arena, out, NULL);
    cx_json_parser_done(&parser);
    record->failed = record->failed || status.code == CX_E_NOMEM;
    return !cx_failed(status) && cx_json_has_canonical(out);
}

void cx_import_tool_belief(cx_import_record *record, cx_str tool, bool ok)
{
    if (tool.size == 0)
        return;
    char *name = cx_arena_push(record->arena, tool.size + 3, 1);
    if (name == NULL) {
        record->failed = true;
        return;
    }
    memcpy(name, tool.data, tool.size);
    memcpy(name + tool.size, "_ok", 3);
    cx_import_belief(record, cx_str_from(name, tool.size + 3), cx_json_make_bool(ok));
}

/* --- index of earlier records ----------------------------------------------------------------- */

cx_status cx_import_index_add(cx_import_sink *sink, cx_import_index *index, cx_str key, cx_str text,
                              uint32_t record, cx_err *err)
{
    uint64_t *value;
    bool is_new;
    if (key.size == 0)
        return CX_SUCCESS;
    if (!index->open) {
        cx_map_init(&index->index, sink->options->alloc, sink->options->seed);
        index->open = true;
    }
    if (cx_map_find(&index->index, key) != NULL)
        return CX_SUCCESS;
    cx_import_note *note = cx_vec_push(&index->notes, sink->options->alloc);
    cx_str stored_key = cx_arena_copy_str(sink->keep, key);
    cx_str stored_text = cx_arena_copy_str(sink->keep, text);
    if (note == NULL || stored_key.data == NULL || stored_text.data == NULL)
        return cx_fail_nomem(err);
    *note = (cx_import_note){stored_text, record};
    CX_TRY(cx_map_put(&index->index, stored_key, &value, &is_new, err));
    *value = index->notes.count - 1;
    return CX_SUCCESS;
}

const cx_import_note *cx_import_index_find(const cx_import_index *index, cx_str key)
{
    const uint64_t *at = index->open && key.size != 0 ? cx_map_find(&index->index, key) : NULL;
    return at == NULL ? NULL : &index->notes.items[*at];
}

void cx_import_index_done(cx_import_index *index, const cx_alloc *alloc)
{
    if (index->open)
        cx_map_done(&index->index);
    cx_vec_done(&index->notes, alloc);
    index->open = false;
}

/* Never cuts inside a character: names must stay UTF-8. */
static size_t short_size(cx_str id)
{
    size_t at = 0;
    for (unsigned characters = 0; at < id.size; at++) {
        bool starts = ((unsigned char)id.data[at] & 0xC0) != 0x80;
        if (starts && characters++ == SHORT_CHARACTERS)
            break;
    }
    return at;
}

/* Puts the name down for the id; false when another id has it. */
static cx_status claim(cx_import_sink *sink, cx_import_index *names, cx_str name, cx_str id,
                       bool *out_claimed, cx_err *err)
{
    CX_TRY(cx_import_index_add(sink, names, name, id, CX_RECORD_NONE, err));
    const cx_import_note *owner = cx_import_index_find(names, name);
    *out_claimed = owner == NULL || cx_str_eq(owner->text, id);
    return CX_SUCCESS;
}

cx_status cx_import_short_name(cx_import_sink *sink, cx_import_index *names, cx_str prefix,
                               cx_str id, cx_str *out, cx_err *err)
{
    const size_t room = prefix.size + id.size;
    char *text = cx_arena_push(sink->keep, room + 16, 1);
    bool claimed = false;
    if (text == NULL)
        return cx_fail_nomem(err);
    if (prefix.size != 0)
        memcpy(text, prefix.data, prefix.size);
    if (id.size != 0)
        memcpy(text + prefix.size, id.data, id.size);
    cx_str name = cx_str_from(text, prefix.size + short_size(id));
    CX_TRY(claim(sink, names, name, id, &claimed, err));
    if (!claimed) {
        name.size = room;
        CX_TRY(claim(sink, names, name, id, &claimed, err));
    }
    /* An id that is no longer than another's first characters. */
    for (unsigned count = 2; !claimed; count++) {
        name.size = room + (size_t)snprintf(text + room, 16, "~%u", count);
        CX_TRY(claim(sink, names, name, id, &claimed, err));
    }
    *out = name;
    return CX_SUCCESS;
}
