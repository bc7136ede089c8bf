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
#include "import/chats/aider_lines.h"
#include "import/turns.h"

typedef struct aider_state {
    cx_import_turns turns;
} aider_state;

static const char *const kind_names[] = {"", "start", "user", "printed", "said"};

/* The block being read. */
typedef struct block {
    line_kind kind;
    size_t line; /* its first, from 1 */
    cx_buf text;
} block;

/* Whether a prompt of the text ends as Aider ends its lines. */
static bool has_ends(cx_str text)
{
    for (size_t at = 0; at < text.size;) {
        const line_facts facts = aider_facts(aider_line_at(text, &at));
        if (facts.prompt && facts.own)
            return true;
    }
    return false;
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
        cx_str line = aider_line_at(text, &at);
        if (cx_str_starts(line, CX_STR("Applied edit to ")))
            say_edit(content, aider_after(line, applied));
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
        cx_str line = aider_line_at(text, &at);
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
        cx_str line = aider_line_at(text, &at);
        for (size_t i = 0; i < CX_COUNT_OF(marks); i++) {
            if (!cx_str_starts(line, cx_str_z(marks[i])))
                continue;
            cx_str name = aider_after(line, marks[i]);
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

/* A block of a history, in its place. */
typedef struct history {
    cx_import_sink *sink;
    const cx_import_window *window; /* NULL = all of it */
    bool ended;
    uint32_t conversations; /* of the files before */
    uint64_t lines;
    cx_import_reading at;
    block *b;
    uint64_t index; /* of the block, as a record */
    bool goes_on;   /* its beginning was not read */
    uint32_t conversation;
    bool has_time; /* the time that it has without one of its own */
    int64_t t_ns;
} history;

static void describe_block(cx_import_record *r, const history *h, cx_str text)
{
    const line_kind kind = h->b->kind;
    r->content = CX_JSON_GET(r->raw, "text");
    r->index = h->index;
    r->time_known = h->window != NULL && h->has_time;
    r->t_ns = h->t_ns;
    if (kind == LINE_START || kind == LINE_PRINTED) {
        r->agent = CX_STR("harness");
        r->kind = kind == LINE_START ? CX_KIND_STATE : CX_KIND_OBSERVE;
        r->fork = CX_IMPORT_FORK_OBSERVATION;
    }
    if (kind == LINE_START)
        cx_import_set_iso(r, r->content);
    if (kind == LINE_PRINTED) {
        read_usage(r, text);
        r->model = model_in(text);
    }
}

static bool is_outside(const history *h)
{
    return h->b->kind == LINE_BLANK ||
           (h->window != NULL && (h->index < h->window->from || h->index >= h->window->until));
}

static cx_status import_block(history *h, cx_str text, cx_err *err)
{
    cx_import_sink *sink = h->sink;
    aider_state *state = sink->state;
    cx_json *raw = NULL;
    const cx_str role = h->b->kind == LINE_USER   ? CX_STR("user")
                        : h->b->kind == LINE_SAID ? CX_STR("assistant")
                                                  : (cx_str){NULL, 0};
    CX_TRY(make_raw(sink, h->b, text, &raw, err));
    CX_TRY(cx_import_turns_go_to(sink, &state->turns, h->conversations + h->conversation, err));
    cx_import_record *r = cx_import_turn_begin(sink, &state->turns, raw);
    describe_block(r, h, CX_JSON_GET_STR(raw, "text"));
    cx_import_turn_follow(r, &state->turns);
    return cx_import_turn_end(sink, &state->turns, aider_content, raw, role, CX_STR("aider"), err);
}

static cx_status end_block(history *h, cx_err *err)
{
    cx_str text = cx_buf_str(&h->b->text);
    CX_TRY(cx_buf_check(&h->b->text, err));
    while (text.size != 0 && text.data[text.size - 1] == '\n')
        text.size--;
    if (!is_outside(h) && (!h->goes_on || text.size != 0))
        CX_TRY(import_block(h, text, err));
    cx_buf_clear(&h->b->text);
    return CX_SUCCESS;
}

/* The block that is open where the reader is; its text follows. */
static void begin_block(history *h, bool goes_on)
{
    const cx_import_reading *first = h->window == NULL ? NULL : &h->window->end->reading[h->ended];
    h->b->kind = (line_kind)h->at.kind;
    h->b->line = (size_t)h->lines + goes_on;
    h->index = h->at.records - 1;
    h->goes_on = goes_on;
    h->conversation = (uint32_t)h->at.conversations;
    h->has_time = h->at.has_time || (first != NULL && first->has_first);
    h->t_ns = h->at.has_time ? h->at.t_ns : h->has_time ? first->first_ns : 0;
}

/* After what was erased, a block goes on that began before it. */
static cx_status go_to(history *h, const cx_import_place *place, cx_err *err)
{
    h->at = place->reading[h->ended];
    h->lines = place->lines;
    if (h->b->kind != LINE_BLANK && h->b->kind == (line_kind)h->at.kind &&
        h->index == h->at.records - 1)
        return CX_SUCCESS;
    CX_TRY(end_block(h, err));
    begin_block(h, true);
    return CX_SUCCESS;
}

static cx_status read_lines(history *h, cx_str text, cx_err *err)
{
    for (size_t at = 0; at < text.size;) {
        const cx_str line = aider_line_at(text, &at);
        const line_facts facts = aider_facts(line);
        cx_import_reading next = h->at;
        const bool begins = aider_step(&next, &facts, line, h->ended);
        h->lines++;
        if (begins) {
            CX_TRY(end_block(h, err));
            h->at = next;
            begin_block(h, false);
        }
        h->at = next;
        if (is_outside(h))
            continue;
        cx_buf_add_str(&h->b->text, aider_said(line, (line_kind)next.kind));
        cx_buf_add_byte(&h->b->text, '\n');
    }
    return CX_SUCCESS;
}

static cx_status read_history(cx_import_sink *sink, cx_str text, block *b, cx_err *err)
{
    const aider_state *state = sink->state;
    const cx_import_window *window =
        sink->options->windows == NULL ? NULL : &sink->options->windows[sink->file];
    history h = {.sink = sink,
                 .window = window,
                 .ended = window == NULL ? has_ends(text) : window->end->own_ends,
                 .conversations = state->turns.conversations,
                 .b = b};
    if (window == NULL)
        CX_TRY(read_lines(&h, text, err));
    for (size_t i = 0; window != NULL && i < window->segment_count; i++) {
        const size_t from = window->segments[i].at;
        const size_t end = i + 1 < window->segment_count ? window->segments[i + 1].at : text.size;
        CX_TRY(go_to(&h, &window->segments[i].place, err));
        CX_TRY(read_lines(&h, cx_str_from(text.data + from, end - from), err));
    }
    return end_block(&h, err);
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
        cx_str line = aider_line_at(text, &at);
        number++;
        if (cx_str_starts(line, CX_STR("# "))) {
            CX_TRY(import_prompt(sink, b, time, err));
            time = aider_trimmed(aider_after(line, "# "));
            b->line = number;
        } else if (cx_str_starts(line, CX_STR("+"))) {
            cx_buf_add_str(&b->text, aider_after(line, "+"));
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
        cx_str line = aider_line_at(text, &at);
        if (line.size == 0)
            continue;
        return cx_str_starts(line, CX_STR("# ")) &&
               cx_import_time_iso(aider_trimmed(aider_after(line, "# ")), &time) &&
               at < text.size && text.data[at] == '+';
    }
    return false;
}

static cx_status aider_text(cx_import_sink *sink, cx_str text, cx_err *err)
{
    block b = {.kind = LINE_BLANK};
    cx_buf_init(&b.text, sink->options->alloc);
    cx_status status = sink->options->windows == NULL && is_prompts(text)
                           ? read_prompts(sink, text, &b, err)
                           : read_history(sink, text, &b, err);
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
    static const char started[] = "\n" AIDER_STARTED;
    if (record != NULL || head.size == 0)
        return 0;
    cx_str text = cx_bytes_str(head);
    bool found = cx_str_starts(text, CX_STR(AIDER_STARTED)) ||
                 memmem(text.data, text.size, started, sizeof started - 1) != NULL;
    return found || is_prompts(text) ? 80 : 0;
}

const cx_import_format cx_import_aider = {
    .info = {"aider", "Aider chat histories",
             ".aider.chat.history.md (Markdown), or .aider.input.history", false},
    .places = true,
    .state_size = sizeof(aider_state),
    .text = aider_text,
    .content = aider_content,
    .done = aider_done,
    .detect = aider_detect,
};
