/*
 * claude_code.c - Claude Code sessions (§2.4): a line is a message or an event of the harness;
 * subagents have files of their own, or are sidechains in that of their caller.
 *
 * parentUuid makes the lines a tree, over all files.  Only the caller's file states what joins a
 * subagent to it, in the line of the result and in progress lines; the edges are made when all
 * files have been read, so that their order does not matter.
 */
#include "import/sidechain.h"

#include <stdlib.h>

#define LINE_SPACE 'u' /* by uuid */
#define TOOL_SPACE 't' /* lines that call, by the id of the call */

typedef struct subagent {
    cx_str spawn; /* id of the call that started it; empty = unknown */
    uint32_t results;
    bool has_nodes;
} subagent;

/* A node of a subagent, or a result that its work went into. */
typedef struct place {
    uint32_t subagent;
    uint32_t record;
    int64_t t_ns; /* own, or that of the line before */
} place;

typedef struct claude_state {
    uint32_t file_seen;            /* file + 1 */
    int64_t t_ns;                  /* of the last line in this file that has a time */
    cx_import_index sessions;      /* session -> name of its main agent */
    cx_import_index session_names; /* and back */
    cx_import_index tools;         /* call id -> tool, line */
    cx_import_index agent_ids;     /* agentId -> its number in subagents */
    cx_import_sidechains sidechains;
    CX_VEC(subagent) subagents;
    CX_VEC(place) nodes;
    CX_VEC(place) results;
} claude_state;

/* A line on its way to be a record. */
typedef struct line {
    cx_import_sink *sink;
    claude_state *state;
    const cx_json *value;
    const cx_json *message; /* NULL when it is no object */
    const cx_json *content; /* NULL = none */
    cx_str agent_id;        /* of a subagent, or of a sidechain */
    bool sidechain;         /* the line does not say whose it is */
    cx_str agent;           /* who speaks when it is neither a tool, the user nor the harness */
} line;

static bool is_true(const cx_json *object, cx_str name)
{
    return cx_json_get_typed(object, name, CX_JSON_TRUE) != NULL;
}

static bool is_block(const cx_json *block, const char *type)
{
    return cx_str_is(CX_JSON_GET_STR(block, "type"), type);
}

/* Content is a text or blocks; only blocks can be counted. */
static uint32_t block_count(const line *l)
{
    return l->content != NULL && l->content->type == CX_JSON_ARRAY ? l->content->count : 0;
}

/* --- who ----------------------------------------------------------------------------------- */

/* `main` is the first session; the others are named (§2.4).  A line without one is of the first. */
static cx_status name_session(line *l, cx_str *out, cx_err *err)
{
    claude_state *state = l->state;
    cx_str id = CX_JSON_GET_STR(l->value, "sessionId");
    cx_str name = CX_STR("main");
    const cx_import_note *known = cx_import_index_find(&state->sessions, id);
    if (known == NULL && id.size != 0) {
        if (state->sessions.notes.count != 0)
            CX_TRY(cx_import_short_name(l->sink, &state->session_names, CX_STR("session-"), id,
                                        &name, err));
        CX_TRY(cx_import_index_add(l->sink, &state->sessions, id, name, CX_RECORD_NONE, err));
    }
    *out = known == NULL ? name : known->text;
    return CX_SUCCESS;
}

static cx_status name_agent(line *l, cx_err *err)
{
    CX_TRY(name_session(l, &l->agent, err));
    if (l->agent_id.size == 0)
        return CX_SUCCESS;
    char *name = cx_arena_push(l->sink->arena, 6 + l->agent_id.size, 1);
    if (name == NULL)
        return cx_fail_nomem(err);
    memcpy(name, "agent-", 6);
    memcpy(name + 6, l->agent_id.data, l->agent_id.size);
    l->agent = cx_str_from(name, 6 + l->agent_id.size);
    return CX_SUCCESS;
}

static cx_status subagent_of(line *l, cx_str id, uint32_t *out, cx_err *err)
{
    claude_state *state = l->state;
    const cx_import_note *known = cx_import_index_find(&state->agent_ids, id);
    if (known == NULL) {
        subagent *made = cx_vec_push(&state->subagents, l->sink->options->alloc);
        if (made == NULL)
            return cx_fail_nomem(err);
        *made = (subagent){0};
        *out = (uint32_t)state->subagents.count - 1;
        return cx_import_index_add(l->sink, &state->agent_ids, id, CX_STR(""), *out, err);
    }
    *out = known->record;
    return CX_SUCCESS;
}

/* --- lines --------------------------------------------------------------------------------- */

static void read_common(line *l, cx_import_record *r)
{
    const cx_json *value = l->value;
    cx_str logical = CX_JSON_GET_STR(value, "logicalParentUuid");
    r->src_id = CX_JSON_GET_STR(value, "uuid");
    r->src_parent = CX_JSON_GET_STR(value, "parentUuid");
    cx_import_define(r, LINE_SPACE, r->src_id, CX_DEFINE_FIRST);
    cx_import_refer(r, LINE_SPACE, r->src_parent, CX_REF_NAMED);
    cx_import_refer(r, LINE_SPACE, logical, CX_REF_NAMED);
    if (r->src_parent.size == 0)
        r->src_parent = logical;
    cx_import_refer(r, TOOL_SPACE, CX_JSON_GET_STR(value, "parentToolUseID"), CX_REF_OPTIONAL);
    cx_import_refer(r, LINE_SPACE, CX_JSON_GET_STR(value, "sourceToolAssistantUUID"),
                    CX_REF_OPTIONAL);
    cx_import_set_iso(r, CX_JSON_GET(value, "timestamp"));
    cx_import_field_str(r, CX_STR("session"), CX_JSON_GET_STR(value, "sessionId"));
    cx_import_field_str(r, CX_STR("request_id"), CX_JSON_GET_STR(value, "requestId"));
    cx_import_field_str(r, CX_STR("subtype"), CX_JSON_GET_STR(value, "subtype"));
    r->content = l->content;
    r->folder = CX_JSON_GET_STR(value, "cwd");
}

/* An answer to a call, wherever its block is. */
static void read_result(line *l, cx_import_record *r, const cx_json *block)
{
    cx_str id = CX_JSON_GET_STR(block, "tool_use_id");
    const cx_json *is_error = CX_JSON_GET(block, "is_error");
    const cx_import_note *call = cx_import_index_find(&l->state->tools, id);
    bool failed = is_error != NULL && is_error->type == CX_JSON_TRUE;
    if (id.size == 0)
        r->issues |= 1u << CX_ISSUE_ORPHAN_RESULT;
    cx_import_result(r, (cx_str){NULL, 0}, id, !failed,
                     cx_import_not_null(CX_JSON_GET(block, "content")));
    if (r->call_id.data == NULL) {
        r->call_id = id;
        r->tool = call == NULL ? (cx_str){NULL, 0} : call->text;
        r->status = failed ? CX_STR("error") : CX_STR("ok");
    }
    if (call != NULL && is_error != NULL && (failed || is_error->type == CX_JSON_FALSE))
        cx_import_tool_belief(r, call->text, !failed);
}

/*
 * What a person says is input.  A subagent's own lines are all its own, and the first of them, its
 * order, is a message: its caller wrote it.  A summary starts the conversation again.
 */
static void read_user(line *l, cx_import_record *r)
{
    uint32_t results = 0;
    const cx_import_note *known = cx_import_index_find(&l->state->agent_ids, l->agent_id);
    for (uint32_t i = 0; i < block_count(l); i++) {
        if (is_block(&l->content->items[i], "tool_result")) {
            read_result(l, r, &l->content->items[i]);
            results++;
        }
    }
    if (results != 0 && results == block_count(l)) {
        r->agent = CX_STR("tools");
        r->kind = CX_KIND_TOOL_RESULT;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
        return;
    }
    bool is_first = known == NULL || !l->state->subagents.items[known->record].has_nodes;
    bool compact = is_true(l->value, CX_STR("isCompactSummary"));
    bool order = l->agent_id.size != 0 && is_first && !compact;
    r->kind = compact ? CX_KIND_STATE : order ? CX_KIND_MESSAGE : CX_KIND_INPUT;
    r->fork = CX_IMPORT_FORK_NATURAL;
    r->fork_always = compact;
    r->agent = l->agent_id.size != 0 ? l->agent : CX_STR("user");
}

static void read_call(cx_import_record *r, const cx_json *block)
{
    const cx_json *input = cx_import_not_null(CX_JSON_GET(block, "input"));
    cx_str id = CX_JSON_GET_STR(block, "id"), tool = CX_JSON_GET_STR(block, "name");
    cx_import_call(r, (cx_str){NULL, 0}, id, tool, input);
    cx_import_define(r, TOOL_SPACE, id, CX_DEFINE_QUIET);
    if (r->tool.data == NULL)
        r->tool = tool;
    if (cx_str_is(tool, "TodoWrite") && input != NULL)
        r->goals = cx_json_get_typed(input, CX_STR("todos"), CX_JSON_ARRAY);
}

static cx_status read_assistant(line *l, cx_import_record *r, cx_err *err)
{
    uint32_t calls = 0;
    for (uint32_t i = 0; i < block_count(l); i++) {
        if (is_block(&l->content->items[i], "tool_use")) {
            read_call(r, &l->content->items[i]);
            calls++;
        }
    }
    if (calls > 1)
        r->tool = (cx_str){NULL, 0};
    r->kind = calls != 0 ? CX_KIND_ACT : CX_KIND_REASON;
    r->fork = CX_IMPORT_FORK_NATURAL;
    if (l->message != NULL) {
        r->model = CX_JSON_GET_STR(l->message, "model");
        r->status = CX_JSON_GET_STR(l->message, "stop_reason");
        r->usage = cx_json_get_typed(l->message, CX_STR("usage"), CX_JSON_OBJECT);
        cx_import_field_str(r, CX_STR("message_id"), CX_JSON_GET_STR(l->message, "id"));
    }
    r->agent = l->agent;
    return cx_import_name_calls(r, err);
}

/* Lines that the program itself writes: what it keeps, and what happened. */
static const char *const state_types[] = {"file-history-snapshot", "summary",        "ai-title",
                                          "last-prompt",           "worktree-state", NULL};
static const char *const event_types[] = {"progress",   "system", "queue-operation",
                                          "attachment", "mode",   "permission-mode",
                                          "pr-link",    NULL};

/* Lines about the session, without a message: what they say is one member. */
static const struct {
    const char *type, *content;
    cx_import_kind kind;
} notes[] = {
    {"attachment", "attachment", CX_KIND_OBSERVE},         {"mode", "mode", CX_KIND_CONFIG},
    {"permission-mode", "permissionMode", CX_KIND_CONFIG}, {"ai-title", "aiTitle", CX_KIND_STATE},
    {"last-prompt", "lastPrompt", CX_KIND_STATE},          {"pr-link", "prUrl", CX_KIND_OBSERVE},
    {"worktree-state", "worktreeSession", CX_KIND_STATE},
};

/* Title, prompt, mode and the like are the session's; what is attached has a type of its own. */
static void read_note(line *l, cx_import_record *r, cx_str type)
{
    for (size_t i = 0; i < CX_COUNT_OF(notes); i++) {
        if (!cx_str_is(type, notes[i].type))
            continue;
        const cx_json *content =
            cx_import_not_null(cx_json_get(l->value, cx_str_z(notes[i].content)));
        r->kind = notes[i].kind;
        if (content == NULL)
            return;
        r->content = content;
        cx_import_field_str(r, CX_STR("note"),
                            content->type == CX_JSON_STRING && r->kind == CX_KIND_CONFIG
                                ? cx_json_text(content)
                                : CX_JSON_GET_STR(content, "type"));
    }
}

static void read_harness(line *l, cx_import_record *r, cx_str type)
{
    bool is_state = cx_import_is_one_of(type, state_types);
    r->agent = CX_STR("harness");
    r->kind = is_state ? CX_KIND_STATE : CX_KIND_OBSERVE;
    r->fork = CX_IMPORT_FORK_OBSERVATION;
    if (!is_state && !cx_import_is_one_of(type, event_types))
        r->issues |= 1u << CX_ISSUE_UNKNOWN_TYPE;
    read_note(l, r, type);
    if (cx_str_is(CX_JSON_GET_STR(l->value, "subtype"), "compact_boundary")) {
        r->kind = CX_KIND_STATE;
        r->fork = CX_IMPORT_FORK_NATURAL;
        r->fork_always = true;
    }
}

/* --- what later lines and the end need ----------------------------------------------------- */

static cx_status remember_calls(line *l, uint32_t record, cx_err *err)
{
    for (uint32_t i = 0; i < block_count(l); i++) {
        const cx_json *block = &l->content->items[i];
        cx_str id = CX_JSON_GET_STR(block, "id");
        if (!is_block(block, "tool_use"))
            continue;
        CX_TRY(cx_import_index_add(l->sink, &l->state->tools, id, CX_JSON_GET_STR(block, "name"),
                                   record, err));
        CX_TRY(cx_import_sidechain_order(l->sink, &l->state->sidechains, id,
                                         CX_JSON_GET(block, "input"), err));
    }
    return CX_SUCCESS;
}

/* The first line that names a subagent's call is believed. */
static cx_status remember_spawn(line *l, cx_str agent_id, cx_str call_id, uint32_t *out,
                                cx_err *err)
{
    CX_TRY(subagent_of(l, agent_id, out, err));
    subagent *known = &l->state->subagents.items[*out];
    if (known->spawn.size != 0 || call_id.size == 0)
        return CX_SUCCESS;
    known->spawn = cx_arena_copy_str(l->sink->keep, call_id);
    return known->spawn.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status remember_progress(line *l, cx_err *err)
{
    const cx_json *data = CX_JSON_GET(l->value, "data");
    uint32_t number = 0;
    if (data == NULL || !is_block(data, "agent_progress"))
        return CX_SUCCESS;
    cx_str id = CX_JSON_GET_STR(data, "agentId");
    if (id.size == 0)
        return CX_SUCCESS;
    return remember_spawn(l, id, CX_JSON_GET_STR(l->value, "parentToolUseID"), &number, err);
}

/*
 * The line of a result whose toolUseResult names the subagent.  One that was launched in the
 * background has answered nothing yet: its end is not part of this line.
 */
static cx_status remember_result(line *l, uint32_t record, cx_err *err)
{
    const cx_json *result = CX_JSON_GET(l->value, "toolUseResult");
    cx_str id = result == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(result, "agentId");
    cx_str call_id = {NULL, 0};
    uint32_t number = 0;
    for (uint32_t i = 0; i < block_count(l) && call_id.size == 0; i++)
        call_id = CX_JSON_GET_STR(&l->content->items[i], "tool_use_id");
    if (id.size == 0)
        id = cx_import_sidechain_by_call(&l->state->sidechains, call_id);
    if (id.size == 0)
        return CX_SUCCESS;
    CX_TRY(remember_spawn(l, id, call_id, &number, err));
    if (result != NULL && is_true(result, CX_STR("isAsync")))
        return CX_SUCCESS;
    if (result != NULL && cx_str_is(CX_JSON_GET_STR(result, "status"), "async_launched"))
        return CX_SUCCESS;
    place *made = cx_vec_push(&l->state->results, l->sink->options->alloc);
    if (made == NULL)
        return cx_fail_nomem(err);
    *made = (place){number, record, l->state->t_ns};
    l->state->subagents.items[number].results++;
    return CX_SUCCESS;
}

/* The text of a message that is one text. */
static cx_str only_text(const line *l)
{
    if (l->content != NULL && l->content->type == CX_JSON_STRING)
        return cx_json_text(l->content);
    return block_count(l) == 1 ? CX_JSON_GET_STR(&l->content->items[0], "text") : (cx_str){NULL, 0};
}

static cx_status remember_node(line *l, uint32_t record, cx_err *err)
{
    uint32_t number = 0;
    CX_TRY(subagent_of(l, l->agent_id, &number, err));
    if (l->sidechain && !l->state->subagents.items[number].has_nodes) {
        cx_str call_id;
        CX_TRY(cx_import_sidechain_start(l->sink, &l->state->sidechains, l->agent_id, only_text(l),
                                         &call_id, err));
        CX_TRY(remember_spawn(l, l->agent_id, call_id, &number, err));
    }
    place *made = cx_vec_push(&l->state->nodes, l->sink->options->alloc);
    if (made == NULL)
        return cx_fail_nomem(err);
    *made = (place){number, record, l->state->t_ns};
    l->state->subagents.items[number].has_nodes = true;
    return CX_SUCCESS;
}

static cx_status claude_line(cx_import_sink *sink, const cx_json *value, cx_err *err)
{
    claude_state *state = sink->state;
    cx_str type = CX_JSON_GET_STR(value, "type");
    uint32_t record = 0;
    if (type.size == 0)
        return cx_import_bad(sink, NULL, UINT64_MAX, err);
    if (state->file_seen != sink->file + 1)
        state->t_ns = INT64_MIN;
    state->file_seen = sink->file + 1;

    line l = {.sink = sink, .state = state, .value = value};
    l.message = cx_json_get_typed(value, CX_STR("message"), CX_JSON_OBJECT);
    l.content = cx_import_not_null(l.message != NULL ? CX_JSON_GET(l.message, "content")
                                                     : CX_JSON_GET(value, "content"));
    CX_TRY(cx_import_sidechain_of(sink, &state->sidechains, value, &l.agent_id, err));
    l.sidechain = l.agent_id.size != 0;
    if (!l.sidechain)
        l.agent_id = CX_JSON_GET_STR(value, "agentId");
    CX_TRY(name_agent(&l, err));
    cx_import_record *r = cx_import_begin(sink);
    read_common(&l, r);
    if (r->has_time)
        state->t_ns = r->t_ns;
    bool is_user = cx_str_is(type, "user"), speaks = is_user || cx_str_is(type, "assistant");
    if (is_user)
        read_user(&l, r);
    else if (speaks)
        CX_TRY(read_assistant(&l, r, err));
    else
        read_harness(&l, r, type);
    bool is_result = r->kind == CX_KIND_TOOL_RESULT;
    CX_TRY(cx_import_end(sink, &record, err));

    if (speaks && !is_user)
        CX_TRY(remember_calls(&l, record, err));
    if (is_result)
        CX_TRY(remember_result(&l, record, err));
    if (!speaks)
        return remember_progress(&l, err);
    return l.agent_id.size != 0 && !is_result ? remember_node(&l, record, err) : CX_SUCCESS;
}

/* --- subagents and their callers ----------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->subagent != y->subagent)
        return x->subagent < y->subagent ? -1 : 1;
    if (x->t_ns != y->t_ns)
        return x->t_ns < y->t_ns ? -1 : 1;
    return (x->record > y->record) - (x->record < y->record);
}

/* How many of the sorted nodes are of agents before `number`, or of it and not later than t. */
static size_t count_until(const claude_state *state, uint32_t number, int64_t t_ns)
{
    const place wanted = {number, UINT32_MAX, t_ns};
    size_t low = 0, high = state->nodes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_places(&state->nodes.items[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A subagent's first node hangs on the call that started it. */
static cx_status link_spawns(cx_import_sink *sink, cx_err *err)
{
    claude_state *state = sink->state;
    for (size_t i = 0; i < state->nodes.count; i++) {
        const place *node = &state->nodes.items[i];
        if (i != 0 && node[-1].subagent == node->subagent)
            continue;
        cx_str spawn = state->subagents.items[node->subagent].spawn;
        const cx_import_note *call = cx_import_index_find(&state->tools, spawn);
        if (call != NULL)
            CX_TRY(cx_import_link(sink, node->record, call->record, CX_REF_OPTIONAL, err));
    }
    return CX_SUCCESS;
}

/*
 * The line of the result has the subagent's last node as a parent.  A subagent that was resumed has
 * several results: each has the last node before it.
 */
static cx_status link_results(cx_import_sink *sink, cx_err *err)
{
    claude_state *state = sink->state;
    for (size_t i = 0; i < state->results.count; i++) {
        const place *result = &state->results.items[i];
        bool several = state->subagents.items[result->subagent].results > 1;
        size_t until = count_until(state, result->subagent, several ? result->t_ns : INT64_MAX);
        if (until != 0 && state->nodes.items[until - 1].subagent == result->subagent)
            CX_TRY(cx_import_link(sink, result->record, state->nodes.items[until - 1].record,
                                  CX_REF_OPTIONAL, err));
    }
    return CX_SUCCESS;
}

static cx_status claude_finish(cx_import_sink *sink, cx_err *err)
{
    claude_state *state = sink->state;
    if (state->nodes.count == 0)
        return CX_SUCCESS;
    qsort(state->nodes.items, state->nodes.count, sizeof *state->nodes.items, compare_places);
    CX_TRY(link_spawns(sink, err));
    return link_results(sink, err);
}

static void claude_done(cx_import_sink *sink)
{
    claude_state *state = sink->state;
    const cx_alloc *alloc = sink->options->alloc;
    cx_import_index_done(&state->sessions, alloc);
    cx_import_index_done(&state->session_names, alloc);
    cx_import_index_done(&state->tools, alloc);
    cx_import_index_done(&state->agent_ids, alloc);
    cx_import_sidechains_done(&state->sidechains, alloc);
    cx_vec_done(&state->subagents, alloc);
    cx_vec_done(&state->nodes, alloc);
    cx_vec_done(&state->results, alloc);
}

/* Qwen Code's records have the same ids, but Gemini's messages. */
static int claude_detect(cx_bytes head, const cx_json *record)
{
    static const char *const members[] = {"uuid",      "sessionId", "parentUuid",
                                          "messageId", "leafUuid",  "isSidechain"};
    static const char session[] = "\"sessionId\"", parent[] = "\"parentUuid\"";
    if (record != NULL) {
        cx_str type = CX_JSON_GET_STR(record, "type");
        bool turn = cx_str_is(type, "user") || cx_str_is(type, "assistant");
        size_t found = 0;
        if (record->type != CX_JSON_OBJECT || type.size == 0)
            return 0;
        if (cx_import_has_parts(record) || CX_JSON_GET(record, "systemPayload") != NULL)
            return -1;
        for (size_t i = 0; i < CX_COUNT_OF(members); i++)
            found += cx_json_get(record, cx_str_z(members[i])) != NULL;
        if (turn || cx_import_is_one_of(type, state_types) ||
            cx_import_is_one_of(type, event_types))
            return found != 0 ? 85 : 0;
        return found >= 2 ? 60 : 0;
    }
    bool found = head.size != 0 &&
                 memmem(head.data, head.size, session, sizeof session - 1) != NULL &&
                 memmem(head.data, head.size, parent, sizeof parent - 1) != NULL;
    return found ? 65 : 0;
}

/* Lines without a message say it in one member (read_note), or in `content` or `summary`. */
static void claude_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *message = cx_json_get_typed(raw, CX_STR("message"), CX_JSON_OBJECT);
    cx_str type = CX_JSON_GET_STR(raw, "type");
    int64_t ms = 0;
    if (message != NULL) {
        cx_import_say_message(content, message);
        if (is_true(raw, CX_STR("isApiErrorMessage")))
            cx_import_say_error(content,
                                cx_import_plain_text(content, CX_JSON_GET(message, "content")));
    } else if (cx_str_is(type, "summary")) {
        cx_import_say_text(content, CX_JSON_GET_STR(raw, "summary"));
    } else {
        cx_import_say_text(content, CX_JSON_GET_STR(raw, "content"));
    }
    for (size_t i = 0; i < CX_COUNT_OF(notes); i++) {
        if (cx_str_is(type, notes[i].type) && notes[i].kind == CX_KIND_STATE)
            cx_import_say_text(content, cx_json_get_str(raw, cx_str_z(notes[i].content)));
    }
    const cx_json *took = CX_JSON_GET(raw, "durationMs");
    if (took != NULL && cx_json_int64(took, &ms) && ms >= 0 && ms < INT64_MAX / 1000000)
        cx_import_say_duration(content, 0, ms * 1000000);
    cx_import_say_cost(content, CX_JSON_GET(raw, "costUSD"));
}

const cx_import_format cx_import_claude_code = {
    .info = {"claude-code", "Claude Code sessions",
             "JSON lines with uuid and parentUuid; add subagents/*.jsonl", true},
    .state_size = sizeof(claude_state),
    .windows = true,
    .line = claude_line,
    .content = claude_content,
    .finish = claude_finish,
    .done = claude_done,
    .detect = claude_detect,
};
