/*
 * aider.c - Aider (§2.17): .aider.chat.history.md, and the prompts of .aider.input.history.
 *
 * The history is Markdown: `# aider chat started at`, prompts after `####`, what the program prints
 * after `>`, and between them what the model says.  Lines of one kind that follow each other are a
 * record {"line","kind","text"}; inside of a fenced block all lines are the model's.
 *
 * Aider ends its own lines with two blanks, so a heading or a quotation without them is the
 * model's, and a prompt with them is one after a block that was never closed, too.  In a file
 * without such lines, which something has stripped, the marks alone decide.
 */
#include "import/turns.h"

#define STARTED "# aider chat started at "

typedef struct aider_state {
    cx_import_turns turns;
} aider_state;

typedef enum line_kind { LINE_BLANK, LINE_START, LINE_USER, LINE_PRINTED, LINE_SAID } line_kind;

static const char *const kind_names[] = {"", "start", "user", "printed", "said"};

/* The block being read. */
typedef struct block {
    line_kind kind;
    size_t line; /* its first, from 1 */
    cx_buf text;
} block;

static cx_str line_at(cx_str text, size_t *at)
{
    const char *from = text.data + *at;
    const char *end = memchr(from, '\n', text.size - *at);
    size_t size = end == NULL ? text.size - *at : (size_t)(end - from);
    *at += size + (end != NULL);
    if (size != 0 && from[size - 1] == '\r')
        size--;
    return cx_str_from(from, size);
}

static cx_str after(cx_str line, const char *mark)
{
    size_t size = strlen(mark);
    return cx_str_from(line.data + size, line.size - size);
}

static cx_str trimmed(cx_str line)
{
    while (line.size != 0 && (line.data[line.size - 1] == ' ' || line.data[line.size - 1] == '\t'))
        line.size--;
    return line;
}

static bool is_prompt(cx_str line)
{
    return cx_str_starts(line, CX_STR("#### ")) || cx_str_is(line, "####");
}

static bool ends_blank(cx_str line)
{
    return line.size > 1 && line.data[line.size - 1] == ' ' && line.data[line.size - 2] == ' ';
}

/* Whether a prompt of the text ends as Aider ends its lines. */
static bool has_ends(cx_str text)
{
    for (size_t at = 0; at < text.size;) {
        cx_str line = line_at(text, &at);
        if (is_prompt(line) && ends_blank(line))
            return true;
    }
    return false;
}

static line_kind kind_of(cx_str line, bool fenced, bool ended, cx_str *out_text)
{
    const bool own = ended && ends_blank(line);
    *out_text = line;
    if (fenced && !(own && is_prompt(line)) && !(ended && cx_str_starts(line, CX_STR(STARTED))))
        return LINE_SAID;
    if (cx_str_starts(line, CX_STR(STARTED))) {
        *out_text = trimmed(after(line, STARTED));
        return LINE_START;
    }
    if (is_prompt(line) && own == ended) {
        *out_text = trimmed(after(line, line.size > 4 ? "#### " : "####"));
        return LINE_USER;
    }
    if ((cx_str_starts(line, CX_STR("> ")) || cx_str_is(line, ">")) && own == ended) {
        *out_text = trimmed(after(line, line.size > 1 ? "> " : ">"));
        return LINE_PRINTED;
    }
    return trimmed(line).size == 0 ? LINE_BLANK : LINE_SAID;
}

/* --- what a record says ---------------------------------------------------------------------- */

static void say_edit(cx_import_content *content, cx_str path)
{
    cx_json_list list = cx_json_list_begin(content->arena);
    cx_json *args = CX_ARENA_NEW(content->arena, cx_json);
    cx_json_put_str(&list, "path", path);
    if (args == NULL || cx_failed(cx_json_list_end_object(&list, args, NULL))) {
        content->failed = true;
        return;
    }
    cx_import_say_call(content, (cx_str){NULL, 0}, CX_STR("edit_file"), args);
    cx_import_say_result(content, (cx_str){NULL, 0}, CX_STR("edit_file"), false, NULL);
}

/* `Tokens: ... Cost: $0.01 message, $0.20 session.` */
static void say_cost(cx_import_content *content, cx_str line)
{
    static const char mark[] = "Cost: $";
    const char *at = memmem(line.data, line.size, mark, sizeof mark - 1);
    if (at == NULL)
        return;
    at += sizeof mark - 1;
    size_t size = 0, left = (size_t)(line.data + line.size - at);
    while (size < left && ((at[size] >= '0' && at[size] <= '9') || at[size] == '.'))
        size++;
    const cx_json usd = cx_json_make_str(cx_str_from(at, size));
    cx_import_say_cost(content, &usd);
}

static void say_printed(cx_import_content *content, cx_str text)
{
    static const char applied[] = "Applied edit to ";
    for (size_t at = 0; at < text.size;) {
        cx_str line = line_at(text, &at);
        if (cx_str_starts(line, CX_STR("Applied edit to ")))
            say_edit(content, after(line, applied));
        else if (cx_str_starts(line, CX_STR("Tokens: ")))
            say_cost(content, line);
    }
    cx_import_say_text(content, text);
}

static void aider_content(cx_import_content *content, const cx_json *raw)
{
    cx_str kind = CX_JSON_GET_STR(raw, "kind"), text = CX_JSON_GET_STR(raw, "text");
    if (cx_str_is(kind, "printed")) {
        cx_import_say_role(content, CX_STR("system"));
        say_printed(content, text);
        return;
    }
    cx_import_say_role(content, cx_str_is(kind, "user")   ? CX_STR("user")
                                : cx_str_is(kind, "said") ? CX_STR("assistant")
                                                          : CX_STR("system"));
    if (!cx_str_is(kind, "start"))
        cx_import_say_text(content, text);
}

/* `2.1k`, `300`: a count of tokens, in front of a word. */
static bool count_before(cx_str line, const char *word, int64_t *out)
{
    const char *at = memmem(line.data, line.size, word, strlen(word));
    const char *from = at;
    int64_t value = 0, scale = 1;
    bool point = false;
    while (from != NULL && from > line.data && from[-1] != ' ')
        from--;
    if (at == NULL || from == at)
        return false;
    for (; from < at; from++) {
        if (*from >= '0' && *from <= '9' && value < INT32_MAX) {
            value = value * 10 + (*from - '0');
            scale *= point ? 10 : 1;
        } else if (*from == '.' && !point) {
            point = true;
        } else if (*from == 'k' && from + 1 == at) {
            value *= 1000;
        } else if (*from == 'M' && from + 1 == at) {
            value *= 1000000;
        } else if (*from != ',') {
            return false;
        }
        if (scale > 1000000)
            return false;
    }
    *out = value / scale;
    return true;
}

static void read_usage(cx_import_record *r, cx_str text)
{
    for (size_t at = 0; at < text.size;) {
        cx_str line = line_at(text, &at);
        int64_t sent = 0, received = 0;
        if (!cx_str_starts(line, CX_STR("Tokens: ")) || !count_before(line, " sent", &sent) ||
            !count_before(line, " received", &received))
            continue;
        cx_json_list list = cx_json_list_begin(r->arena);
        cx_json *usage = CX_ARENA_NEW(r->arena, cx_json);
        cx_json_put_int(&list, "input_tokens", sent);
        cx_json_put_int(&list, "output_tokens", received);
        if (usage == NULL || cx_failed(cx_json_list_end_object(&list, usage, NULL)))
            r->failed = true;
        else
            r->usage = usage;
    }
}

static cx_str model_in(cx_str text)
{
    static const char *const marks[] = {"Main model: ", "Model: "};
    for (size_t at = 0; at < text.size;) {
        cx_str line = line_at(text, &at);
        for (size_t i = 0; i < CX_COUNT_OF(marks); i++) {
            if (!cx_str_starts(line, cx_str_z(marks[i])))
                continue;
            cx_str name = after(line, marks[i]);
            const char *end = name.size == 0 ? NULL : memchr(name.data, ' ', name.size);
            return end == NULL ? name : cx_str_from(name.data, (size_t)(end - name.data));
        }
    }
    return (cx_str){NULL, 0};
}

/* --- blocks ---------------------------------------------------------------------------------- */

static cx_status make_raw(cx_import_sink *sink, const block *b, cx_str text, cx_json **out,
                          cx_err *err)
{
    cx_json_list list = cx_json_list_begin(sink->arena);
    cx_str copy = cx_arena_copy_str(sink->arena, text);
    *out = CX_ARENA_NEW(sink->arena, cx_json);
    if (copy.data == NULL || *out == NULL)
        return cx_fail_nomem(err);
    cx_json_put_uint(&list, "line", b->line);
    cx_json_put_z(&list, "kind", kind_names[b->kind]);
    cx_json_put_str(&list, "text", copy);
    return cx_json_list_end_object(&list, *out, err);
}

static cx_status end_block(cx_import_sink *sink, block *b, cx_err *err)
{
    aider_state *state = sink->state;
    cx_json *raw = NULL;
    cx_str role = {NULL, 0}, text = cx_buf_str(&b->text);
    CX_TRY(cx_buf_check(&b->text, err));
    if (b->kind == LINE_BLANK) {
        cx_buf_clear(&b->text);
        return CX_SUCCESS;
    }
    while (text.size != 0 && text.data[text.size - 1] == '\n')
        text.size--;
    CX_TRY(make_raw(sink, b, text, &raw, err));
    text = CX_JSON_GET_STR(raw, "text");
    if (b->kind == LINE_START && state->turns.file_seen == sink->file + 1)
        CX_TRY(cx_import_turns_open(sink, &state->turns, err));
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, raw);
    r->content = CX_JSON_GET(raw, "text");
    cx_import_turn_follow(r, &state->turns);
    if (b->kind == LINE_USER || b->kind == LINE_SAID) {
        role = b->kind == LINE_USER ? CX_STR("user") : CX_STR("assistant");
    } else {
        r->agent = CX_STR("harness");
        r->kind = b->kind == LINE_START ? CX_KIND_STATE : CX_KIND_OBSERVE;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
    }
    if (b->kind == LINE_START)
        cx_import_set_iso(r, r->content);
    if (b->kind == LINE_PRINTED) {
        read_usage(r, text);
        r->model = model_in(text);
    }
    cx_status status =
        cx_import_turn_end(sink, &state->turns, aider_content, raw, role, CX_STR("aider"), err);
    b->kind = LINE_BLANK;
    cx_buf_clear(&b->text);
    return status;
}

static cx_status read_history(cx_import_sink *sink, cx_str text, block *b, cx_err *err)
{
    const bool ended = has_ends(text);
    bool fenced = false;
    size_t number = 0;
    for (size_t at = 0; at < text.size;) {
        cx_str said, line = line_at(text, &at);
        line_kind kind = kind_of(line, fenced, ended, &said);
        number++;
        if (kind == LINE_SAID && cx_str_starts(line, CX_STR("```")))
            fenced = !fenced;
        else if (kind == LINE_USER || kind == LINE_START)
            fenced = false;
        if (kind == LINE_BLANK && b->kind == LINE_SAID)
            kind = LINE_SAID; /* a paragraph ends, not the answer */
        if (kind != b->kind) {
            CX_TRY(end_block(sink, b, err));
            b->kind = kind;
            b->line = number;
        }
        cx_buf_add_str(&b->text, said);
        cx_buf_add_byte(&b->text, '\n');
    }
    return end_block(sink, b, err);
}

/* `# TIME`, then the lines of a prompt after `+`. */
static cx_status import_prompt(cx_import_sink *sink, block *b, cx_str time, cx_err *err)
{
    aider_state *state = sink->state;
    cx_json *raw = NULL, when = cx_json_make_str(time);
    cx_str text = cx_buf_str(&b->text);
    CX_TRY(cx_buf_check(&b->text, err));
    if (text.size == 0)
        return CX_SUCCESS;
    text.size--; /* the last line's end */
    b->kind = LINE_USER;
    CX_TRY(make_raw(sink, b, text, &raw, err));
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, raw);
    r->content = CX_JSON_GET(raw, "text");
    cx_import_set_iso(r, &when);
    cx_import_turn_follow(r, &state->turns);
    cx_buf_clear(&b->text);
    return cx_import_turn_end(sink, &state->turns, aider_content, raw, CX_STR("user"),
                              CX_STR("aider"), err);
}

static cx_status read_prompts(cx_import_sink *sink, cx_str text, block *b, cx_err *err)
{
    cx_str time = {NULL, 0};
    size_t number = 0;
    for (size_t at = 0; at < text.size;) {
        cx_str line = line_at(text, &at);
        number++;
        if (cx_str_starts(line, CX_STR("# "))) {
            CX_TRY(import_prompt(sink, b, time, err));
            time = trimmed(after(line, "# "));
            b->line = number;
        } else if (cx_str_starts(line, CX_STR("+"))) {
            cx_buf_add_str(&b->text, after(line, "+"));
            cx_buf_add_byte(&b->text, '\n');
        }
    }
    return import_prompt(sink, b, time, err);
}

static bool is_prompts(cx_str text)
{
    size_t at = 0;
    int64_t time;
    while (at < text.size) {
        cx_str line = line_at(text, &at);
        if (line.size == 0)
            continue;
        return cx_str_starts(line, CX_STR("# ")) &&
               cx_import_time_iso(trimmed(after(line, "# ")), &time) && at < text.size &&
               text.data[at] == '+';
    }
    return false;
}

static cx_status aider_text(cx_import_sink *sink, cx_str text, cx_err *err)
{
    block b = {.kind = LINE_BLANK};
    cx_buf_init(&b.text, sink->options->alloc);
    cx_status status =
        is_prompts(text) ? read_prompts(sink, text, &b, err) : read_history(sink, text, &b, err);
    cx_buf_done(&b.text);
    return status;
}

static void aider_done(cx_import_sink *sink)
{
    aider_state *state = sink->state;
    cx_import_turns_done(&state->turns, sink->options->alloc);
}

static int aider_detect(cx_bytes head, const cx_json *record)
{
    static const char started[] = "\n" STARTED;
    if (record != NULL || head.size == 0)
        return 0;
    cx_str text = cx_bytes_str(head);
    bool found = cx_str_starts(text, CX_STR(STARTED)) ||
                 memmem(text.data, text.size, started, sizeof started - 1) != NULL;
    return found || is_prompts(text) ? 80 : 0;
}

const cx_import_format cx_import_aider = {
    .info = {"aider", "Aider chat histories",
             ".aider.chat.history.md (Markdown), or .aider.input.history", false},
    .state_size = sizeof(aider_state),
    .text = aider_text,
    .content = aider_content,
    .done = aider_done,
    .detect = aider_detect,
};
