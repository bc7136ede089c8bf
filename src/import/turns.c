/*
 * turns.c - conversations that are told in their order (turns.h).
 */
#include "import/turns.h"

#define CALL_TOLD 'c' /* a space of cx_import_ask */

/* --- small tools --------------------------------------------------------------------------- */

bool cx_import_has(const cx_json *object, const char *name)
{
    return cx_json_get(object, cx_str_z(name)) != NULL;
}

bool cx_import_has_str(const cx_json *object, const char *name)
{
    return cx_json_get_typed(object, cx_str_z(name), CX_JSON_STRING) != NULL;
}

const cx_json *cx_import_array_at(const cx_json *object, const char *name)
{
    return cx_json_get_typed(object, cx_str_z(name), CX_JSON_ARRAY);
}

const cx_json *cx_import_first_object(const cx_json *array)
{
    bool found = array != NULL && array->type == CX_JSON_ARRAY && array->count != 0 &&
                 array->items[0].type == CX_JSON_OBJECT;
    return found ? &array->items[0] : NULL;
}

const cx_json *cx_import_first_of(const cx_json *object, const char *const *names)
{
    for (; *names != NULL; names++) {
        const cx_json *value = cx_import_not_null(cx_json_get(object, cx_str_z(*names)));
        if (value != NULL)
            return value;
    }
    return NULL;
}

cx_str cx_import_first_str(const cx_json *object, const char *const *names)
{
    for (; *names != NULL; names++) {
        cx_str text = cx_json_get_str(object, cx_str_z(*names));
        if (text.size != 0)
            return text;
    }
    return (cx_str){NULL, 0};
}

/* Seconds with a fraction, digit by digit: a double would not be exact (§1.9). */
static bool decimal_seconds(cx_str text, int64_t *out_ns)
{
    int64_t value = 0;
    int decimals = -1;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (c < '0' || c > '9')
            return false;
        if (decimals == 9)
            continue;
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_add_overflow(value, (int64_t)(c - '0'), &value))
            return false;
        decimals += decimals >= 0;
    }
    for (decimals = decimals < 0 ? 0 : decimals; decimals < 9; decimals++) {
        if (__builtin_mul_overflow(value, (int64_t)10, &value))
            return false;
    }
    *out_ns = value;
    return text.size != 0;
}

void cx_import_set_any_time(cx_import_record *record, const cx_json *value)
{
    int64_t ticks = 0;
    if (value == NULL || value->type == CX_JSON_NULL)
        return;
    if (value->type == CX_JSON_INT && cx_json_int64(value, &ticks)) {
        int64_t unit = ticks < 100000000000         ? 1000000000
                       : ticks < 100000000000000    ? 1000000
                       : ticks < 100000000000000000 ? 1000
                                                    : 1;
        cx_import_set_ticks(record, value, unit);
    } else if (cx_json_is_number(value)) {
        record->has_time = decimal_seconds(cx_json_text(value), &record->t_ns);
        record->time_bad = !record->has_time;
    } else {
        cx_import_set_iso(record, value);
    }
}

/* --- roles --------------------------------------------------------------------------------- */

bool cx_import_is_model_role(cx_str role)
{
    static const char *const names[] = {"assistant", "model", "ai",  "agent",
                                        "gemini",    "gpt",   "bot", NULL};
    return cx_import_is_one_of(role, names);
}

bool cx_import_is_tool_role(cx_str role)
{
    static const char *const names[] = {"tool",        "function",    "tool_result", "toolResult",
                                        "environment", "observation", "ipython",     NULL};
    return cx_import_is_one_of(role, names);
}

bool cx_import_is_user_role(cx_str role)
{
    static const char *const names[] = {"user", "human", NULL};
    return cx_import_is_one_of(role, names);
}

bool cx_import_is_system_role(cx_str role)
{
    static const char *const names[] = {"system", "developer", NULL};
    return cx_import_is_one_of(role, names);
}

/* --- conversations ------------------------------------------------------------------------- */

cx_status cx_import_turns_open(cx_import_sink *sink, cx_import_turns *turns, cx_err *err)
{
    turns->file_seen = sink->file + 1;
    turns->previous = CX_RECORD_NONE;
    turns->conversations++;
    if (turns->conversations == 1)
        return CX_SUCCESS;
    turns->suffix = cx_arena_printf(sink->keep, "#%u", (unsigned)turns->conversations);
    return turns->suffix.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_import_turns_go_to(cx_import_sink *sink, cx_import_turns *turns, uint32_t number,
                                cx_err *err)
{
    if (turns->file_seen == sink->file + 1 && turns->conversations == number)
        return CX_SUCCESS;
    turns->conversations = number - 1;
    return cx_import_turns_open(sink, turns, err);
}

void cx_import_turns_done(cx_import_turns *turns, const cx_alloc *alloc)
{
    cx_import_index_done(&turns->tools, alloc);
}

cx_import_record *cx_import_turn_begin(cx_import_sink *sink, cx_import_turns *turns,
                                       const cx_json *raw)
{
    cx_import_record *r = cx_import_begin(sink);
    if (turns->file_seen != sink->file + 1)
        r->failed = cx_failed(cx_import_turns_open(sink, turns, NULL));
    turns->mark = cx_arena_mark_now(sink->arena);
    r->raw = raw;
    turns->record = r;
    return r;
}

void cx_import_turn_follow(cx_import_record *record, const cx_import_turns *turns)
{
    if (turns->previous != CX_RECORD_NONE)
        cx_import_refer_record(record, turns->previous, CX_REF_SEQUENCE);
}

/* Both in one; a text may hold any byte. */
static cx_str join(cx_arena *arena, cx_str first, cx_str second)
{
    char *text = cx_arena_push(arena, first.size + second.size + 1, 1);
    if (text == NULL)
        return (cx_str){NULL, 0};
    if (first.size != 0)
        memcpy(text, first.data, first.size);
    if (second.size != 0)
        memcpy(text + first.size, second.data, second.size);
    return cx_str_from(text, first.size + second.size);
}

/* Equal call ids of two conversations are two calls; a suffix has digits only. */
static cx_str tool_key(cx_import_sink *sink, const cx_import_turns *turns, cx_str call_id)
{
    if (call_id.size == 0)
        return (cx_str){NULL, 0};
    return join(sink->arena, join(sink->arena, turns->suffix, CX_STR(" ")), call_id);
}

bool cx_import_turn_knows(cx_import_sink *sink, const cx_import_turns *turns, cx_str call_id)
{
    return cx_import_index_find(&turns->tools, tool_key(sink, turns, call_id)) != NULL;
}

/* What was said, and what it comes to. */
typedef struct told {
    cx_import_content content;
    unsigned opened, answered;
} told;

static void describe_said(cx_import_sink *sink, const cx_import_turns *turns, cx_import_record *r,
                          const cx_import_said *said, told *all)
{
    const cx_str key = tool_key(sink, turns, said->call_id);
    const cx_import_note *known = cx_import_index_find(&turns->tools, key);
    bool opens = said->has_arguments;
    if (opens && turns->repeats)
        opens = !cx_import_ask(sink, CALL_TOLD, key, known != NULL);
    const cx_json *args = said->arguments.type == CX_JSON_NULL ? NULL : &said->arguments;
    const cx_json *result = said->result.type == CX_JSON_NULL ? NULL : &said->result;
    cx_str tool = said->tool;
    if (tool.size == 0 && known != NULL)
        tool = known->text;
    all->opened += said->has_arguments;
    all->answered += said->has_result;
    if (opens && said->has_result)
        cx_import_call_done(r, turns->suffix, said->call_id, tool, args, !said->failed, result);
    else if (opens)
        cx_import_call(r, turns->suffix, said->call_id, tool, args);
    else if (said->has_result)
        cx_import_result(r, turns->suffix, said->call_id, !said->failed, result);
    if (said->next != NULL || said != all->content.said)
        return; /* several: content.h lists them */
    r->tool = tool;
    r->call_id = said->call_id;
    if (said->has_result && r->status.size == 0)
        r->status = said->failed ? CX_STR("error") : CX_STR("ok");
}

static void set_speaker(cx_import_record *r, const told *all, cx_str role, cx_str name)
{
    bool answers = all->answered != 0 && all->opened == 0;
    if (cx_import_is_model_role(role)) {
        r->agent = name;
        r->kind = all->opened != 0 ? CX_KIND_ACT : CX_KIND_REASON;
        r->fork = CX_IMPORT_FORK_NATURAL;
    } else if (cx_import_is_tool_role(role) || (answers && all->content.texts.count == 0)) {
        r->agent = CX_STR("tools");
        r->kind = CX_KIND_TOOL_RESULT;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
    } else {
        bool known = cx_import_is_user_role(role) || cx_import_is_system_role(role);
        r->agent = cx_import_is_user_role(role) ? CX_STR("user") : role;
        if (cx_import_is_system_role(role))
            r->agent = CX_STR("system");
        r->kind = known ? CX_KIND_INPUT : CX_KIND_MESSAGE;
        r->fork = CX_IMPORT_FORK_NATURAL;
        r->issues |= known ? 0 : 1u << CX_ISSUE_UNKNOWN_TYPE;
    }
}

static cx_status remember_tools(cx_import_sink *sink, cx_import_turns *turns,
                                const cx_import_said *said, cx_err *err)
{
    for (; said != NULL; said = said->next) {
        const cx_str key = tool_key(sink, turns, said->call_id);
        if (!said->has_arguments)
            continue;
        CX_TRY(cx_import_index_add(sink, &turns->tools, key, said->tool, CX_RECORD_NONE, err));
        cx_import_tell(sink, CALL_TOLD, key);
    }
    return CX_SUCCESS;
}

cx_status cx_import_turn_end(cx_import_sink *sink, cx_import_turns *turns, cx_import_say say,
                             const cx_json *value, cx_str role, cx_str name, cx_err *err)
{
    static const cx_json nothing = {.type = CX_JSON_OBJECT};
    cx_import_record *r = turns->record;
    told all = {0};
    cx_import_content_begin(&all.content, sink->arena, sink->options->alloc, &nothing);
    say(&all.content, value);
    r->failed = r->failed || all.content.failed || all.content.texts.failed;
    for (const cx_import_said *at = all.content.said; at != NULL; at = at->next)
        describe_said(sink, turns, r, at, &all);
    CX_TRY(remember_tools(sink, turns, all.content.said, err));
    if (all.content.said != NULL && all.content.said->next != NULL)
        CX_TRY(cx_import_name_calls(r, err));
    if (r->agent.size == 0)
        set_speaker(r, &all, role, name);
    if (turns->suffix.size != 0) {
        r->agent = join(sink->arena, r->agent, turns->suffix);
        r->failed = r->failed || r->agent.data == NULL;
    }
    cx_status status = cx_import_end(sink, &turns->previous, err);
    cx_arena_reset(sink->arena, turns->mark);
    return status;
}
