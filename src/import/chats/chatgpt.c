/*
 * chatgpt.c - ChatGPT exports (§2.25): conversations.json, where each conversation is a tree of
 * messages in `mapping`.
 */
#include "import/turns.h"

#define NODE_SPACE 'n'
#define ANCESTORS_MAX 64

typedef struct chatgpt_state {
    cx_import_turns turns;
} chatgpt_state;

static const cx_json *object_at(const cx_json *value, const char *name)
{
    return cx_json_get_typed(value, cx_str_z(name), CX_JSON_OBJECT);
}

static cx_str author_of(const cx_json *message, const char *name)
{
    const cx_json *author = object_at(message, "author");
    return author == NULL ? (cx_str){NULL, 0} : cx_json_get_str(author, cx_str_z(name));
}

/* A message to anyone but all calls what it is sent to. */
static bool is_call(const cx_json *message)
{
    cx_str to = CX_JSON_GET_STR(message, "recipient");
    return cx_str_is(author_of(message, "role"), "assistant") && to.size != 0 &&
           !cx_str_is(to, "all");
}

static void say_parts(cx_import_content *content, const cx_json *parts)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        const cx_json *part = &parts->items[i];
        if (part->type == CX_JSON_STRING)
            cx_import_say_text(content, cx_json_text(part));
        else if (CX_JSON_GET(part, "asset_pointer") != NULL)
            content->images++;
        else
            cx_import_say_text(content, CX_JSON_GET_STR(part, "text"));
    }
}

/* The text of content of any type, NULL when it is a list of parts or thoughts. */
static const cx_json *text_of(const cx_json *body)
{
    static const char *const names[] = {"text", "result", "content", NULL};
    const cx_json *parts = cx_import_array_at(body, "parts");
    if (parts != NULL)
        return parts->count == 1 && parts->items[0].type == CX_JSON_STRING ? &parts->items[0]
                                                                           : NULL;
    return cx_import_first_of(body, names);
}

static void say_body(cx_import_content *content, const cx_json *body)
{
    const cx_json *parts = cx_import_array_at(body, "parts");
    const cx_json *thoughts = cx_import_array_at(body, "thoughts");
    const cx_json *text = text_of(body);
    for (uint32_t i = 0; thoughts != NULL && i < thoughts->count; i++) {
        cx_import_say_thought(content, CX_JSON_GET_STR(&thoughts->items[i], "summary"));
        cx_import_say_thought(content, CX_JSON_GET_STR(&thoughts->items[i], "content"));
    }
    if (cx_str_is(CX_JSON_GET_STR(body, "content_type"), "reasoning_recap"))
        cx_import_say_thought(content, CX_JSON_GET_STR(body, "content"));
    else if (parts != NULL)
        say_parts(content, parts);
    else if (text != NULL && text->type == CX_JSON_STRING)
        cx_import_say_text(content, cx_json_text(text));
}

static void chatgpt_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *message = object_at(raw, "message");
    const cx_json *body = message == NULL ? NULL : object_at(message, "content");
    if (body == NULL)
        return;
    cx_import_say_role(content, author_of(message, "role"));
    if (is_call(message))
        cx_import_say_call(content, (cx_str){NULL, 0}, CX_JSON_GET_STR(message, "recipient"),
                           text_of(body));
    else if (cx_str_is(author_of(message, "role"), "tool") && text_of(body) != NULL)
        cx_import_say_result(content, (cx_str){NULL, 0}, author_of(message, "name"), false,
                             text_of(body));
    else
        say_body(content, body);
}

/* Ids are unique in a conversation only: some of them have a root of the same name. */
static cx_str node_key(cx_import_sink *sink, const chatgpt_state *state, cx_str id)
{
    size_t size = state->turns.suffix.size;
    char *key = id.size == 0 ? NULL : cx_arena_push(sink->arena, size + 1 + id.size, 1);
    if (key == NULL)
        return (cx_str){NULL, 0};
    if (size != 0)
        memcpy(key, state->turns.suffix.data, size);
    key[size] = ' ';
    memcpy(key + size + 1, id.data, id.size);
    return cx_str_from(key, size + 1 + id.size);
}

static const cx_json *time_in(const cx_json *node)
{
    const cx_json *message = object_at(node, "message");
    return message == NULL ? NULL : cx_import_not_null(CX_JSON_GET(message, "create_time"));
}

/* A node without a time is where the nearest one before it is: members have no order (no_time). */
static void set_time(cx_import_record *r, const cx_json *conversation, const cx_json *node)
{
    const cx_json *mapping = object_at(conversation, "mapping");
    const cx_json *time = time_in(node);
    if (time == NULL)
        r->issues |= 1u << CX_ISSUE_NO_TIME;
    for (unsigned steps = 0; time == NULL && node != NULL && steps < ANCESTORS_MAX; steps++) {
        node = cx_json_get(mapping, CX_JSON_GET_STR(node, "parent"));
        time = node == NULL ? NULL : time_in(node);
    }
    cx_import_set_any_time(r, time != NULL ? time : CX_JSON_GET(conversation, "create_time"));
}

static cx_status import_node(cx_import_sink *sink, cx_str id, const cx_json *node,
                             const cx_json *conversation, cx_err *err)
{
    chatgpt_state *state = sink->state;
    const cx_json *message = object_at(node, "message");
    cx_str role = {NULL, 0};
    if (node->type != CX_JSON_OBJECT)
        return cx_import_bad(sink, node, UINT64_MAX, err);
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, node);
    r->src_id = id;
    r->src_parent = CX_JSON_GET_STR(node, "parent");
    cx_import_define(r, NODE_SPACE, node_key(sink, state, id), CX_DEFINE_QUIET);
    cx_import_refer(r, NODE_SPACE, node_key(sink, state, r->src_parent), CX_REF_NAMED);
    set_time(r, conversation, node);
    if (message != NULL) {
        const cx_json *metadata = object_at(message, "metadata");
        role = author_of(message, "role");
        r->model = metadata == NULL ? role : CX_JSON_GET_STR(metadata, "model_slug");
        if (metadata == NULL)
            r->model = (cx_str){NULL, 0};
        r->content = cx_import_not_null(CX_JSON_GET(message, "content"));
    }
    if (role.size == 0) {
        r->agent = CX_STR("harness");
        r->kind = CX_KIND_STATE;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
    }
    return cx_import_turn_end(sink, &state->turns, chatgpt_content, node, role, CX_STR("chatgpt"),
                              err);
}

/* The conversation without its messages, then each of them in the order of the file. */
static cx_status import_conversation(cx_import_sink *sink, const cx_json *value, bool has_top,
                                     cx_err *err)
{
    static const char *const records[] = {"mapping", NULL};
    chatgpt_state *state = sink->state;
    const cx_json *mapping = object_at(value, "mapping");
    if (mapping == NULL)
        return cx_import_bad(sink, value, UINT64_MAX, err);
    cx_json *rest = CX_ARENA_NEW(sink->arena, cx_json);
    if (rest == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_import_without(value, records, sink->arena, rest, err));
    CX_TRY(cx_import_turns_open(sink, &state->turns, err));
    if (has_top) {
        CX_TRY(cx_import_top(sink, rest, err));
    } else {
        cx_import_record *r = cx_import_turn_begin(sink, &state->turns, rest);
        r->agent = CX_STR("conversation");
        r->kind = CX_KIND_RUN;
        cx_import_set_any_time(r, CX_JSON_GET(rest, "create_time"));
        cx_import_field_str(r, CX_STR("name"), CX_JSON_GET_STR(rest, "title"));
        CX_TRY(cx_import_turn_end(sink, &state->turns, chatgpt_content, rest, CX_STR(""),
                                  CX_STR(""), err));
    }
    for (uint32_t i = 0; i < mapping->count; i++)
        CX_TRY(import_node(sink, cx_json_text(&mapping->members[i].name),
                           &mapping->members[i].value, value, err));
    return CX_SUCCESS;
}

static cx_status chatgpt_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    if (document->type == CX_JSON_OBJECT && object_at(document, "mapping") != NULL)
        return import_conversation(sink, document, true, err);
    if (document->type != CX_JSON_ARRAY)
        return cx_import_shape(err, "a list of conversations with a mapping, or one of them");
    for (uint32_t i = 0; i < document->count; i++)
        CX_TRY(import_conversation(sink, &document->items[i], false, err));
    return CX_SUCCESS;
}

static void chatgpt_done(cx_import_sink *sink)
{
    chatgpt_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static int chatgpt_detect(cx_bytes head, const cx_json *record)
{
    static const char mapping[] = "\"mapping\"", node[] = "\"current_node\"";
    if (record == NULL)
        return head.size != 0 &&
                       memmem(head.data, head.size, mapping, sizeof mapping - 1) != NULL &&
                       memmem(head.data, head.size, node, sizeof node - 1) != NULL
                   ? 60
                   : 0;
    const cx_json *first = record->type == CX_JSON_ARRAY ? cx_import_first_object(record) : record;
    const cx_json *tree = first == NULL ? NULL : object_at(first, "mapping");
    if (tree == NULL)
        return 0;
    bool told = tree->count != 0 && CX_JSON_GET(&tree->members[0].value, "message") != NULL;
    return cx_import_has(first, "current_node") || told ? 90 : 0;
}

const cx_import_format cx_import_chatgpt = {
    .info = {"chatgpt", "ChatGPT exports", "conversations.json, or one conversation of it", false},
    .state_size = sizeof(chatgpt_state),
    .document = chatgpt_document,
    .content = chatgpt_content,
    .done = chatgpt_done,
    .detect = chatgpt_detect,
};
