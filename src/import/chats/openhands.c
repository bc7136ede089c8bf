/*
 * openhands.c - OpenHands (§2.18): events that are an action or an observation; the newer ones name
 * their `kind`.  A list, a `history` of them or of pairs, an event a line, or a run a line.
 */
#include "import/turns.h"

#define EVENT_SPACE 'e'

typedef struct openhands_state {
    cx_import_turns turns;
} openhands_state;

static const cx_json *object_at(const cx_json *value, const char *name)
{
    return cx_json_get_typed(value, cx_str_z(name), CX_JSON_OBJECT);
}

static cx_str action_of(const cx_json *event)
{
    return CX_JSON_GET_STR(event, "action");
}

static cx_str observation_of(const cx_json *event)
{
    return CX_JSON_GET_STR(event, "observation");
}

static bool is_old(const cx_json *event)
{
    return event->type == CX_JSON_OBJECT &&
           ((action_of(event).size != 0 &&
             (object_at(event, "args") != NULL || cx_import_has(event, "source"))) ||
            (observation_of(event).size != 0 && cx_import_has(event, "content")));
}

static bool is_new(const cx_json *event)
{
    static const char *const kinds[] = {"MessageEvent",
                                        "ActionEvent",
                                        "ObservationEvent",
                                        "SystemPromptEvent",
                                        "AgentErrorEvent",
                                        "PauseEvent",
                                        "Condensation",
                                        "CondensationRequest",
                                        "TokenEvent",
                                        "UserRejectObservation",
                                        "ConversationStateUpdateEvent",
                                        NULL};
    return event->type == CX_JSON_OBJECT &&
           cx_import_is_one_of(CX_JSON_GET_STR(event, "kind"), kinds);
}

static bool is_event(const cx_json *event)
{
    return is_old(event) || is_new(event);
}

/* What the harness does between the steps of the agent. */
static bool is_inner(const cx_json *event)
{
    static const char *const names[] = {
        "change_agent_state", "agent_state_changed",  "recall",        "null", "condensation",
        "loop_recovery",      "condensation_request", "user_rejected", NULL};
    return cx_import_is_one_of(action_of(event), names) ||
           cx_import_is_one_of(observation_of(event), names);
}

static bool is_talk(cx_str action)
{
    static const char *const names[] = {"message", "system", "think", "finish", "reject", NULL};
    return cx_import_is_one_of(action, names);
}

/* --- what an event says ---------------------------------------------------------------------- */

/* The API's id of a call, else the event's: an answer names it as its cause. */
static cx_str call_id_of(const cx_json *event, const char *name)
{
    const cx_json *meta = object_at(event, "tool_call_metadata");
    cx_str id = meta == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(meta, "tool_call_id");
    return id.size != 0 ? id : cx_import_scalar(cx_json_get(event, cx_str_z(name)));
}

static cx_str tool_of(const cx_json *event, cx_str other)
{
    const cx_json *meta = object_at(event, "tool_call_metadata");
    cx_str name = meta == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(meta, "function_name");
    return name.size != 0 ? name : other;
}

static void say_action(cx_import_content *content, const cx_json *event)
{
    static const char *const texts[] = {"content", "final_thought", "thought", NULL};
    const cx_json *args = object_at(event, "args");
    cx_str action = action_of(event), source = CX_JSON_GET_STR(event, "source");
    bool user = cx_str_is(source, "user");
    cx_import_say_role(content, cx_str_is(action, "system") ? CX_STR("system")
                                : user                      ? CX_STR("user")
                                                            : CX_STR("assistant"));
    if (args == NULL) {
        cx_import_say_text(content, CX_JSON_GET_STR(event, "message"));
    } else if (cx_str_is(action, "think")) {
        cx_import_say_thought(content, CX_JSON_GET_STR(args, "thought"));
    } else if (is_talk(action) || is_inner(event)) {
        cx_import_say_text(content, cx_import_first_str(args, texts));
    } else {
        cx_import_say_text(content, CX_JSON_GET_STR(args, "thought"));
        cx_import_say_call(content, call_id_of(event, "id"), tool_of(event, action), args);
    }
}

/* An exit code other than 0, a type that says so, or success false. */
static bool has_failed(const cx_json *event)
{
    const cx_json *extras = object_at(event, "extras");
    const cx_json *metadata = extras == NULL ? NULL : object_at(extras, "metadata");
    const cx_json *code = metadata == NULL ? NULL : CX_JSON_GET(metadata, "exit_code");
    const cx_json *success = CX_JSON_GET(event, "success");
    int64_t number = 0;
    if (code == NULL && extras != NULL)
        code = CX_JSON_GET(extras, "exit_code");
    return cx_str_is(observation_of(event), "error") ||
           (success != NULL && success->type == CX_JSON_FALSE) ||
           (code != NULL && cx_json_int64(code, &number) && number != 0);
}

static void say_observation(cx_import_content *content, const cx_json *event)
{
    cx_import_say_role(content, is_inner(event) ? CX_STR("system") : CX_STR("tool"));
    if (is_inner(event) || cx_str_is(observation_of(event), "think"))
        return;
    bool failed = has_failed(event);
    cx_import_say_result(content, call_id_of(event, "cause"), tool_of(event, (cx_str){NULL, 0}),
                         failed, CX_JSON_GET(event, "content"));
    if (cx_str_is(observation_of(event), "error"))
        cx_import_say_error(content, CX_JSON_GET_STR(event, "content"));
}

static void say_new(cx_import_content *content, const cx_json *event)
{
    static const char *const results[] = {"content", "output", "text", NULL};
    cx_str kind = CX_JSON_GET_STR(event, "kind");
    cx_str id = CX_JSON_GET_STR(event, "tool_call_id"), tool = CX_JSON_GET_STR(event, "tool_name");
    if (cx_str_is(kind, "MessageEvent")) {
        cx_import_say_message(content, object_at(event, "llm_message"));
    } else if (cx_str_is(kind, "ActionEvent")) {
        const cx_json *call = object_at(event, "tool_call");
        const cx_json *args = call == NULL ? NULL : CX_JSON_GET(call, "arguments");
        cx_import_say_role(content, CX_STR("assistant"));
        cx_import_say_blocks(content, CX_JSON_GET(event, "thought"));
        cx_import_say_thought(content, CX_JSON_GET_STR(event, "reasoning_content"));
        cx_import_say_call(content, id, tool, args != NULL ? args : CX_JSON_GET(event, "action"));
    } else if (cx_str_is(kind, "ObservationEvent")) {
        const cx_json *seen = object_at(event, "observation");
        const cx_json *flag = seen == NULL ? NULL : CX_JSON_GET(seen, "is_error");
        const cx_json *text = seen == NULL ? NULL : cx_import_first_of(seen, results);
        cx_import_say_role(content, CX_STR("tool"));
        cx_import_say_result(content, id, tool, flag != NULL && flag->type == CX_JSON_TRUE,
                             text != NULL ? text : CX_JSON_GET(event, "observation"));
    } else if (cx_str_is(kind, "AgentErrorEvent") || cx_str_is(kind, "UserRejectObservation")) {
        cx_str error =
            cx_import_first_str(event, (const char *const[]){"error", "rejection_reason", NULL});
        const cx_json value = cx_json_make_str(error);
        cx_import_say_role(content, CX_STR("tool"));
        cx_import_say_error(content, error);
        cx_import_say_result(content, id, tool, true, &value);
    } else {
        const cx_json *prompt = object_at(event, "system_prompt");
        cx_import_say_role(content, CX_STR("system"));
        cx_import_say_text(content, prompt == NULL ? CX_JSON_GET_STR(event, "summary")
                                                   : CX_JSON_GET_STR(prompt, "text"));
    }
}

static void openhands_content(cx_import_content *content, const cx_json *raw)
{
    if (raw->type != CX_JSON_OBJECT)
        return;
    if (is_new(raw))
        say_new(content, raw);
    else if (action_of(raw).size != 0)
        say_action(content, raw);
    else if (observation_of(raw).size != 0)
        say_observation(content, raw);
}

/* --- records --------------------------------------------------------------------------------- */

static cx_str role_of(const cx_json *event)
{
    cx_str kind = CX_JSON_GET_STR(event, "kind"), source = CX_JSON_GET_STR(event, "source");
    bool user = cx_str_is(source, "user");
    if (is_new(event)) {
        const cx_json *message = object_at(event, "llm_message");
        if (cx_str_is(kind, "MessageEvent"))
            return message != NULL && CX_JSON_GET_STR(message, "role").size != 0
                       ? CX_JSON_GET_STR(message, "role")
                       : CX_STR("user");
        if (cx_str_is(kind, "ActionEvent"))
            return CX_STR("assistant");
        if (cx_str_is(kind, "SystemPromptEvent"))
            return CX_STR("system");
        return cx_str_is(kind, "ObservationEvent") || cx_str_is(kind, "AgentErrorEvent") ||
                       cx_str_is(kind, "UserRejectObservation")
                   ? CX_STR("tool")
                   : CX_STR("");
    }
    if (is_inner(event) || cx_str_is(observation_of(event), "think"))
        return CX_STR("");
    if (action_of(event).size == 0)
        return CX_STR("tool");
    if (cx_str_is(action_of(event), "system"))
        return CX_STR("system");
    return user && is_talk(action_of(event)) ? CX_STR("user") : CX_STR("assistant");
}

static void read_model(cx_import_record *r, const cx_json *event)
{
    const cx_json *meta = object_at(event, "tool_call_metadata");
    const cx_json *response = meta == NULL ? NULL : object_at(meta, "model_response");
    if (response == NULL || action_of(event).size == 0)
        return;
    r->model = CX_JSON_GET_STR(response, "model");
    r->usage = object_at(response, "usage");
}

static cx_status import_event(cx_import_sink *sink, const cx_json *event, const cx_json *raw,
                              uint32_t part, cx_err *err)
{
    openhands_state *state = sink->state;
    if (!is_event(event))
        return cx_import_bad(sink, raw, UINT64_MAX, err);
    cx_str role = role_of(event);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, raw);
    r->part = part;
    r->src_id = cx_import_scalar(CX_JSON_GET(event, "id"));
    r->src_parent = cx_import_scalar(CX_JSON_GET(event, "cause"));
    cx_import_set_any_time(r, CX_JSON_GET(event, "timestamp"));
    read_model(r, event);
    cx_import_field_str(
        r, CX_STR("event_type"),
        cx_import_first_str(event, (const char *const[]){"action", "observation", "kind", NULL}));
    cx_import_turn_follow(r, &state->turns);
    if (role.size == 0) {
        r->agent = CX_STR("harness");
        r->kind = CX_KIND_OBSERVE;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
    }
    return cx_import_turn_end(sink, &state->turns, openhands_content, event, role,
                              CX_STR("openhands"), err);
}

static const cx_json *history_of(const cx_json *value)
{
    static const char *const names[] = {"history", "trajectory", "events"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *list = cx_import_array_at(value, names[i]);
        const cx_json *first = list == NULL || list->count == 0 ? NULL : &list->items[0];
        if (first != NULL && first->type == CX_JSON_ARRAY && first->count != 0)
            first = &first->items[0];
        if (first != NULL && is_event(first))
            return list;
    }
    return NULL;
}

/* In a list of pairs item I has the numbers 2 I and 2 I + 1. */
static bool is_paired(const cx_json *list)
{
    return list->count != 0 && list->items[0].type == CX_JSON_ARRAY;
}

static const cx_json *event_at(const cx_json *list, uint32_t number)
{
    if (!is_paired(list))
        return &list->items[number];
    const cx_json *item = &list->items[number / 2];
    return item->type == CX_JSON_ARRAY && number % 2 < item->count ? &item->items[number % 2]
                                                                   : item;
}

static const cx_json *openhands_part(const cx_json *line, uint32_t part)
{
    return event_at(history_of(line), part);
}

/* In a document what is no event is a bad record; a line has it already. */
static cx_status import_list(cx_import_sink *sink, const cx_json *list, bool lines, cx_err *err)
{
    bool paired = is_paired(list);
    for (uint32_t i = 0; i < list->count && i < UINT32_MAX / 2; i++) {
        const cx_json *item = &list->items[i];
        uint32_t count = paired && item->type == CX_JSON_ARRAY ? item->count : 1;
        for (uint32_t j = 0; j < count; j++) {
            const cx_json *event = paired && item->type == CX_JSON_ARRAY ? &item->items[j] : item;
            uint32_t number = paired ? 2 * i + j : i;
            if (!lines)
                CX_TRY(import_event(sink, event, event, UINT32_MAX, err));
            else if (is_event(event) && (j < 2 || !paired))
                CX_TRY(import_event(sink, event, event, number, err));
        }
    }
    return CX_SUCCESS;
}

static void say_nothing(cx_import_content *content, const cx_json *raw)
{
    (void)content;
    (void)raw;
}

/* A run a line: what is not its events is a node of its own. */
static cx_status openhands_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    openhands_state *state = sink->state;
    const cx_json *list = value->type == CX_JSON_OBJECT ? history_of(value) : NULL;
    if (list == NULL)
        return import_event(sink, value, NULL, UINT32_MAX, err);
    CX_TRY(cx_import_turns_open(sink, &state->turns, err));
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, NULL);
    r->agent = CX_STR("run");
    r->kind = CX_KIND_RUN;
    r->src_id = CX_JSON_GET_STR(value, "instance_id");
    CX_TRY(
        cx_import_turn_end(sink, &state->turns, say_nothing, value, CX_STR(""), CX_STR(""), err));
    return import_list(sink, list, true, err);
}

static cx_status openhands_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"history", "trajectory", "events", NULL};
    const cx_json *list = document->type == CX_JSON_ARRAY ? document : NULL;
    cx_json top;
    if (document->type == CX_JSON_OBJECT) {
        list = history_of(document);
        if (list == NULL && is_event(document))
            return import_event(sink, document, document, UINT32_MAX, err);
        if (list != NULL) {
            CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
            CX_TRY(cx_import_top(sink, &top, err));
        }
    }
    if (list == NULL)
        return cx_import_shape(err, "a list of events, or an object with an array history of them");
    return import_list(sink, list, false, err);
}

static void openhands_done(cx_import_sink *sink)
{
    openhands_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static int event_confidence(const cx_json *event)
{
    if (is_new(event))
        return cx_import_has(event, "source") || cx_import_has(event, "id") ? 88 : 40;
    return is_old(event) && cx_import_has(event, "source") &&
                   (cx_import_has(event, "args") || cx_import_has(event, "extras") ||
                    cx_import_has(event, "cause"))
               ? 87
               : 0;
}

static int openhands_detect(cx_bytes head, const cx_json *record)
{
    static const char state[] = "\"agent_state_changed\"", cause[] = "\"cause\"";
    if (record == NULL)
        return head.size != 0 && memmem(head.data, head.size, state, sizeof state - 1) != NULL &&
                       memmem(head.data, head.size, cause, sizeof cause - 1) != NULL
                   ? 55
                   : 0;
    if (record->type == CX_JSON_ARRAY) {
        const cx_json *first = cx_import_first_object(record);
        return first == NULL ? 0 : event_confidence(first);
    }
    const cx_json *list = record->type == CX_JSON_OBJECT ? history_of(record) : NULL;
    if (list != NULL)
        return event_confidence(event_at(list, 0)) != 0 ? 89 : 0;
    return record->type == CX_JSON_OBJECT ? event_confidence(record) : 0;
}

const cx_import_format cx_import_openhands = {
    .info = {"openhands", "OpenHands trajectories",
             "a list of events {\"source\",\"action\"|\"observation\"}, or runs with a history",
             false},
    .state_size = sizeof(openhands_state),
    .document = openhands_document,
    .line = openhands_line,
    .content = openhands_content,
    .part = openhands_part,
    .done = openhands_done,
    .detect = openhands_detect,
    .windows = true,
};
