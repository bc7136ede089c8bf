/*
 * who_when.c - Who&When failure chats (§2.8): one conversation of several agents a document, with
 * the step and the agent at fault as labels.
 *
 * The labels stay outside the lattice: data from which a method of attribution could read its
 * answer is passed to the labels callback and to nothing else.
 */
#include "import/chat.h"

#define EXIT_MARK "exitcode: "

static bool is_label(cx_str name)
{
    return cx_str_starts(name, CX_STR("mistake_")) || cx_str_starts(name, CX_STR("is_correct")) ||
           cx_str_is(name, "ground_truth") || cx_str_is(name, "labels");
}

static const char *const lists[] = {"history", "trajectory"};
static const char *const bodies[] = {"content", "message", "text"};

/* The array of messages, under either name; NULL = none. */
static const cx_json *chat_of(const cx_json *document, const char **out_name)
{
    const cx_json *found = NULL;
    for (size_t i = 0; i < CX_COUNT_OF(lists) && found == NULL; i++) {
        found = cx_json_get_typed(document, cx_str_z(lists[i]), CX_JSON_ARRAY);
        *out_name = lists[i];
    }
    return found;
}

static const cx_json *body_of(const cx_json *message)
{
    const cx_json *found = NULL;
    for (size_t i = 0; i < CX_COUNT_OF(bodies) && found == NULL; i++)
        found = cx_import_not_null(cx_json_get(message, cx_str_z(bodies[i])));
    return found;
}

/* The document in two halves, neither with the messages. */
static cx_status split_label(cx_import_sink *sink, const cx_json *document, const char *used,
                             cx_json *out_top, cx_json *out_labels, cx_err *err)
{
    cx_json_list top = cx_json_list_begin(sink->arena), labels = top;
    for (uint32_t i = 0; i < document->count; i++) {
        cx_str name = cx_json_text(&document->members[i].name);
        if (!cx_str_is(name, used))
            cx_json_list_put(is_label(name) ? &labels : &top, name, document->members[i].value);
    }
    CX_TRY(cx_json_list_end_object(&top, out_top, err));
    return cx_json_list_end_object(&labels, out_labels, err);
}

/* `Orchestrator (-> WebSurfer)` speaks as Orchestrator: a trailing group in brackets is cut. */
static cx_str without_group(cx_str role)
{
    size_t depth = 0;
    if (role.size == 0 || role.data[role.size - 1] != ')')
        return role;
    for (size_t i = role.size; i-- > 1;) {
        depth += role.data[i] == ')';
        depth -= role.data[i] == '(';
        if (depth == 0)
            return role.data[i - 1] == ' ' ? cx_str_from(role.data, i - 1) : role;
    }
    return role;
}

/* Finds `exitcode: N`; true with whether N is 0. */
static bool exit_code_of(cx_str content, bool *out_ok)
{
    if (content.size == 0) /* then there may be no data at all */
        return false;
    const char *end = content.data + content.size;
    const char *at = memmem(content.data, content.size, EXIT_MARK, sizeof EXIT_MARK - 1);
    if (at == NULL)
        return false;
    at += sizeof EXIT_MARK - 1;
    bool negative = at < end && *at == '-', zero = true;
    const char *digits = at += negative;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        zero = zero && *at == '0';
    *out_ok = zero;
    return at != digits;
}

static cx_status import_message(cx_import_sink *sink, const cx_json *message, uint32_t *previous,
                                uint64_t index, cx_err *err)
{
    cx_str name = CX_JSON_GET_STR(message, "agent_name");
    const cx_json *body = body_of(message);
    if (name.size == 0)
        name = CX_JSON_GET_STR(message, "name");
    if (name.size == 0)
        name = CX_JSON_GET_STR(message, "agent");
    cx_str role = CX_JSON_GET_STR(message, "role");
    bool ok;
    if (name.size == 0 && role.size == 0)
        return cx_import_bad(sink, message, index, err);

    cx_import_record *r = cx_import_begin(sink);
    r->raw = message;
    r->index = index;
    r->agent = name.size != 0 ? name : without_group(role);
    r->kind = cx_str_is(r->agent, "human") ? CX_KIND_INPUT : CX_KIND_MESSAGE;
    r->fork = CX_IMPORT_FORK_NATURAL;
    r->content = body;
    if (*previous != CX_RECORD_NONE)
        cx_import_refer_record(r, *previous, CX_REF_SEQUENCE);
    if (body != NULL && body->type == CX_JSON_STRING && exit_code_of(cx_json_text(body), &ok))
        cx_import_belief(r, CX_STR("exec_ok"), cx_json_make_bool(ok));
    cx_import_field_str(r, CX_STR("role"), role);
    return cx_import_end(sink, previous, err);
}

static cx_status who_when_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    const char *used = NULL;
    const cx_json *history = chat_of(document, &used);
    uint32_t previous = CX_RECORD_NONE;
    cx_json top, labels;
    if (history == NULL)
        return cx_import_shape(err, "an object with an array history or trajectory");
    CX_TRY(split_label(sink, document, used, &top, &labels, err));
    CX_TRY(cx_import_top(sink, &top, err));
    CX_TRY(cx_import_labels(sink, &labels, err));
    for (uint32_t i = 0; i < history->count; i++)
        CX_TRY(import_message(sink, &history->items[i], &previous, i, err));
    return CX_SUCCESS;
}

static void who_when_content(cx_import_content *content, const cx_json *raw)
{
    cx_import_say_blocks(content, body_of(raw));
}

static int who_when_detect(cx_bytes head, const cx_json *first)
{
    static const char *const names[] = {"\"is_correct\"", "\"is_corrected\"", "\"question_ID\"",
                                        "\"mistake_step\"", "\"mistake_agent\""};
    if (first != NULL) {
        const char *used = NULL;
        const cx_json *chat = chat_of(first, &used);
        bool labelled = CX_JSON_GET(first, "mistake_step") != NULL ||
                        CX_JSON_GET(first, "mistake_agent") != NULL;
        bool asked = CX_JSON_GET(first, "question") != NULL;
        bool named =
            chat != NULL && chat->count != 0 && CX_JSON_GET(&chat->items[0], "agent_name") != NULL;
        if (chat == NULL)
            return 0;
        return labelled || named || (asked && strcmp(used, "history") == 0) ? 90 : 0;
    }
    for (size_t i = 0; i < CX_COUNT_OF(names) && head.size != 0; i++) {
        if (memmem(head.data, head.size, names[i], strlen(names[i])) != NULL)
            return 75;
    }
    return 0;
}

const cx_import_format cx_import_who_when = {
    .info = {"who-when", "Who&When failure chats",
             "{\"history\"|\"trajectory\":[{\"name\",\"content\"}],\"question\",...}, labels kept "
             "apart",
             false},
    .no_time = true,
    .document = who_when_document,
    .content = who_when_content,
    .detect = who_when_detect,
};
