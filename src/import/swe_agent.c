/*
 * swe_agent.c - SWE-agent trajectories (§2.6): messages in `history`, steps in `trajectory`, or
 * only one of the two.
 *
 * With both, a step is attached to the assistant message that has the same action and thought, in
 * order.  A step without such a message becomes two nodes, the call and its result, before the
 * message of the next step that has one, else at the end.
 */
#include "import/chat.h"

#define NO_STEP UINT32_MAX

typedef struct document_walk {
    cx_import_sink *sink;
    const cx_json *history; /* NULL = none */
    const cx_json *steps;   /* NULL = none */
    const cx_json *exit_status;
    uint32_t *step_of;   /* of each message */
    uint32_t next_step;  /* all before it are described */
    uint64_t nodes_left; /* to be described, bad records not counted */
    uint32_t previous;   /* record */
    cx_str agent;        /* of the last assistant message */
    bool started;        /* an assistant spoke, demonstrations aside */
    bool acted;          /* the last assistant message called something */
} document_walk;

/* What has no canonical form fits no node and no field: it gets a bad node of its own. */
static bool is_message(const cx_json *message)
{
    return cx_json_has_canonical(message) && CX_JSON_GET_STR(message, "role").size != 0;
}

static bool is_assistant(const cx_json *message)
{
    return cx_str_is(CX_JSON_GET_STR(message, "role"), "assistant");
}

static bool is_demo(const cx_json *message)
{
    return cx_json_get_typed(message, CX_STR("is_demo"), CX_JSON_TRUE) != NULL;
}

/* An action, an observation or a response make a step. */
static bool is_step(const cx_json *step)
{
    return cx_json_has_canonical(step) &&
           (CX_JSON_GET(step, "action") != NULL || CX_JSON_GET(step, "observation") != NULL ||
            CX_JSON_GET(step, "response") != NULL);
}

static bool is_blank(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] != ' ' && (text.data[i] < '\t' || text.data[i] > '\r'))
            return false;
    }
    return true;
}

/* --- steps and messages -------------------------------------------------------------------- */

/* Action and thought as one key; the length in front keeps them apart. */
static cx_str pair_key(cx_arena *arena, const cx_json *value)
{
    cx_str action = CX_JSON_GET_STR(value, "action");
    cx_str thought = CX_JSON_GET_STR(value, "thought");
    char *key = cx_arena_push(arena, sizeof(size_t) + action.size + thought.size, 1);
    if (key == NULL)
        return (cx_str){NULL, 0};
    memcpy(key, &action.size, sizeof(size_t));
    if (action.size != 0)
        memcpy(key + sizeof(size_t), action.data, action.size);
    if (thought.size != 0)
        memcpy(key + sizeof(size_t) + action.size, thought.data, thought.size);
    return cx_str_from(key, sizeof(size_t) + action.size + thought.size);
}

/*
 * Messages of one key form a list in their order, whose head is in the map.  `at` below only grows,
 * so heads are moved forward for good, and the whole is linear.
 */
static cx_status list_messages(document_walk *w, cx_map *heads, uint32_t *later, cx_err *err)
{
    for (uint32_t i = w->history->count; i-- > 0;) {
        const cx_json *message = &w->history->items[i];
        uint64_t *head;
        bool is_new;
        w->step_of[i] = later[i] = NO_STEP;
        if (!is_message(message) || !is_assistant(message))
            continue;
        cx_str key = pair_key(w->sink->arena, message);
        if (key.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_map_put(heads, key, &head, &is_new, err));
        if (!is_new)
            later[i] = (uint32_t)*head;
        *head = i;
    }
    return CX_SUCCESS;
}

static cx_status match_with_heads(document_walk *w, cx_map *heads, cx_err *err)
{
    uint32_t *later = CX_ARENA_ARRAY(w->sink->arena, uint32_t, (size_t)w->history->count + 1);
    uint32_t at = 0;
    if (later == NULL)
        return cx_fail_nomem(err);
    CX_TRY(list_messages(w, heads, later, err));
    for (uint32_t k = 0; w->steps != NULL && k < w->steps->count; k++) {
        const cx_json *step = &w->steps->items[k];
        if (!is_step(step))
            continue;
        cx_str key = pair_key(w->sink->arena, step);
        if (key.data == NULL)
            return cx_fail_nomem(err);
        uint64_t *head = cx_map_find(heads, key);
        while (head != NULL && *head != NO_STEP && *head < at)
            *head = later[*head];
        if (head == NULL || *head == NO_STEP)
            continue;
        at = (uint32_t)*head;
        w->step_of[at++] = k;
    }
    return CX_SUCCESS;
}

static cx_status match_steps(document_walk *w, cx_err *err)
{
    cx_map heads;
    w->step_of = CX_ARENA_ARRAY(w->sink->arena, uint32_t, (size_t)w->history->count + 1);
    if (w->step_of == NULL)
        return cx_fail_nomem(err);
    cx_map_init(&heads, w->sink->options->alloc, w->sink->options->seed);
    cx_status status = match_with_heads(w, &heads, err);
    cx_map_done(&heads);
    return status;
}

/* Known beforehand, because the exit status belongs to the last node. */
static void count_nodes(document_walk *w)
{
    for (uint32_t i = 0; w->steps != NULL && i < w->steps->count; i++)
        w->nodes_left += is_step(&w->steps->items[i]) ? 2 : 0;
    for (uint32_t i = 0; w->history != NULL && i < w->history->count; i++) {
        w->nodes_left += is_message(&w->history->items[i]);
        w->nodes_left -= w->step_of[i] == NO_STEP ? 0 : 2;
    }
}

/* --- describing ---------------------------------------------------------------------------- */

static cx_import_record *begin_node(document_walk *w, const cx_json *raw, uint64_t index,
                                    cx_import_kind kind)
{
    cx_import_record *r = cx_import_begin(w->sink);
    r->raw = raw;
    r->index = index;
    r->kind = kind;
    if (w->previous != CX_RECORD_NONE)
        cx_import_refer_record(r, w->previous, CX_REF_SEQUENCE);
    return r;
}

static cx_status end_node(document_walk *w, cx_import_record *r, cx_err *err)
{
    if (--w->nodes_left == 0 && w->exit_status != NULL)
        cx_import_belief(r, CX_STR("exit_status"), *w->exit_status);
    return cx_import_end(w->sink, &w->previous, err);
}

/* memory.env, from an object or from text that holds one. */
static void read_environment(cx_import_record *r, const cx_json *step)
{
    const cx_json *state = CX_JSON_GET(step, "state");
    cx_json decoded;
    if (state == NULL)
        return;
    if (state->type == CX_JSON_STRING && cx_import_decode_for(r, cx_json_text(state), &decoded))
        state = &decoded;
    if (state->type == CX_JSON_OBJECT && cx_json_has_canonical(state))
        cx_import_memory(r, CX_STR("env"), *state);
}

static void read_assistant(document_walk *w, cx_import_record *r, const cx_json *message,
                           uint32_t step)
{
    uint32_t calls = cx_import_chat_calls(r, (cx_str){NULL, 0}, message);
    bool acts = calls != 0 || !is_blank(CX_JSON_GET_STR(message, "action"));
    r->kind = acts ? CX_KIND_ACT : CX_KIND_REASON;
    r->fork = CX_IMPORT_FORK_NATURAL;
    r->agent = CX_JSON_GET_STR(message, "agent");
    if (step != NO_STEP) {
        cx_import_field(r, CX_STR("raw_step"), w->steps->items[step]);
        read_environment(r, &w->steps->items[step]);
    }
    w->agent = r->agent;
    w->acted = acts;
    w->started = w->started || !is_demo(message);
}

static void read_answer(document_walk *w, cx_import_record *r, const cx_json *message)
{
    const cx_json *ids = cx_json_get_typed(message, CX_STR("tool_call_ids"), CX_JSON_ARRAY);
    r->agent = CX_STR("environment");
    r->fork = CX_IMPORT_FORK_OBSERVATION;
    r->kind = w->acted ? CX_KIND_TOOL_RESULT : CX_KIND_OBSERVE;
    for (uint32_t i = 0; ids != NULL && i < ids->count; i++) {
        r->kind = CX_KIND_TOOL_RESULT;
        cx_import_result(r, (cx_str){NULL, 0}, cx_import_scalar(&ids->items[i]), true, r->content);
    }
    if (r->calls.count == 1)
        r->call_id = r->calls.items[0].call_id;
    w->acted = false;
}

static cx_status import_message(document_walk *w, uint32_t index, cx_err *err)
{
    const cx_json *message = &w->history->items[index];
    cx_str role = CX_JSON_GET_STR(message, "role");
    if (!is_message(message))
        return cx_import_bad(w->sink, message, index, err);
    cx_import_record *r = begin_node(w, message, index, CX_KIND_MESSAGE);
    r->content = cx_import_not_null(CX_JSON_GET(message, "content"));
    if (cx_str_is(role, "assistant")) {
        read_assistant(w, r, message, w->step_of[index]);
    } else if (cx_str_is(role, "tool") || (cx_str_is(role, "user") && w->started)) {
        read_answer(w, r, message);
    } else {
        r->agent = CX_STR("task");
        r->kind = CX_KIND_INPUT;
        r->fork = CX_IMPORT_FORK_NATURAL;
        if (!cx_str_is(role, "user") && !cx_str_is(role, "system"))
            r->issues |= 1u << CX_ISSUE_UNKNOWN_TYPE;
    }
    if (is_demo(message)) {
        r->fork = CX_IMPORT_FORK_INJECTION;
        r->fork_always = true;
    }
    CX_TRY(cx_import_name_calls(r, err));
    return end_node(w, r, err);
}

/* Two nodes of one record (§2.6). */
static cx_status import_step(document_walk *w, uint32_t index, cx_err *err)
{
    const cx_json *step = &w->steps->items[index];
    if (!is_step(step))
        return cx_import_bad(w->sink, step, index, err);
    cx_import_record *r = begin_node(w, step, index, CX_KIND_ACT);
    r->agent = w->agent;
    r->fork = CX_IMPORT_FORK_NATURAL;
    r->content = cx_import_not_null(CX_JSON_GET(step, "action"));
    CX_TRY(end_node(w, r, err));

    r = begin_node(w, step, index, CX_KIND_TOOL_RESULT);
    r->extra = true;
    r->agent = CX_STR("environment");
    r->fork = CX_IMPORT_FORK_OBSERVATION;
    r->content = cx_import_not_null(CX_JSON_GET(step, "observation"));
    read_environment(r, step);
    return end_node(w, r, err);
}

static cx_status import_steps_before(document_walk *w, uint32_t end_step, cx_err *err)
{
    for (; w->next_step < end_step; w->next_step++)
        CX_TRY(import_step(w, w->next_step, err));
    return CX_SUCCESS;
}

static cx_status import_document(document_walk *w, cx_err *err)
{
    for (uint32_t i = 0; w->history != NULL && i < w->history->count; i++) {
        if (w->step_of[i] != NO_STEP) {
            CX_TRY(import_steps_before(w, w->step_of[i], err));
            w->next_step++;
        }
        CX_TRY(import_message(w, i, err));
    }
    return w->steps == NULL ? CX_SUCCESS : import_steps_before(w, w->steps->count, err);
}

static cx_status swe_agent_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    static const char *const records[] = {"history", "trajectory", NULL};
    const cx_json *info = CX_JSON_GET(document, "info");
    document_walk w = {.sink = sink, .previous = CX_RECORD_NONE};
    cx_json top;
    w.history = cx_json_get_typed(document, CX_STR("history"), CX_JSON_ARRAY);
    w.steps = cx_json_get_typed(document, CX_STR("trajectory"), CX_JSON_ARRAY);
    if (w.history == NULL && w.steps == NULL)
        return cx_import_shape(err, "an object with an array history or trajectory");
    if (info != NULL)
        w.exit_status = cx_import_not_null(CX_JSON_GET(info, "exit_status"));
    /* One that overflows fails the document at cx_import_top below. */
    CX_TRY(cx_import_without(document, records, sink->arena, &top, err));
    CX_TRY(cx_import_top(sink, &top, err));
    if (w.history != NULL)
        CX_TRY(match_steps(&w, err));
    count_nodes(&w);
    return import_document(&w, err);
}

/* A message, or one half of a step: what was done, or what came back. */
static void swe_agent_content(cx_import_content *content, const cx_json *raw)
{
    cx_str kind = CX_JSON_GET_STR(content->derived, "kind");
    const cx_json *action = CX_JSON_GET(raw, "action");
    bool message = CX_JSON_GET_STR(raw, "role").size != 0;
    if (cx_str_is(kind, "tool_result")) {
        const cx_json *result = CX_JSON_GET(raw, message ? "content" : "observation");
        cx_import_say_role(content, CX_STR("tool"));
        cx_import_say_result(content, CX_JSON_GET_STR(content->derived, "call_id"),
                             (cx_str){NULL, 0}, false, result);
        return;
    }
    if (message)
        cx_import_say_message(content, raw);
    else
        cx_import_say_thought(content, CX_JSON_GET_STR(raw, "thought"));
    if (cx_str_is(kind, "act") && content->said == NULL)
        cx_import_say_call(content, (cx_str){NULL, 0}, (cx_str){NULL, 0}, action);
}

static int swe_agent_detect(cx_bytes head, const cx_json *first)
{
    static const char trajectory[] = "\"trajectory\"", action[] = "\"action\"";
    if (first != NULL) {
        const cx_json *history = cx_json_get_typed(first, CX_STR("history"), CX_JSON_ARRAY);
        if (CX_JSON_GET(first, "mistake_step") != NULL ||
            CX_JSON_GET(first, "mistake_agent") != NULL)
            return -1; /* Who&When has chats of that name too */
        if (cx_json_get_typed(first, CX_STR("trajectory"), CX_JSON_ARRAY) != NULL)
            return 85;
        return history != NULL && history->count != 0 &&
                       CX_JSON_GET(&history->items[0], "agent") != NULL
                   ? 80
                   : 0;
    }
    bool found = head.size != 0 &&
                 memmem(head.data, head.size, trajectory, sizeof trajectory - 1) != NULL &&
                 memmem(head.data, head.size, action, sizeof action - 1) != NULL;
    return found ? 70 : 0;
}

const cx_import_format cx_import_swe_agent = {
    .info = {"swe-agent", "SWE-agent trajectories",
             "{\"trajectory\":[...],\"history\":[...],\"info\":{...}}, *.traj", false},
    .no_time = true,
    .document = swe_agent_document,
    .content = swe_agent_content,
    .detect = swe_agent_detect,
};
