/*
 * index_search.c - finds steps by their words, and histories (steps.h).
 */
#include "base/api.h"
#include "index/index_internal.h"
#include "index/steps.h"

/* --- words as the engine's expression --------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next word of `text`, which is shortened by it; false when there is none. */
static bool next_word(cx_str *text, cx_str *out)
{
    size_t at = 0, end;
    while (at < text->size && is_space(text->data[at]))
        at++;
    for (end = at; end < text->size && !is_space(text->data[end]);)
        end++;
    *out = cx_str_from(text->data + at, end - at);
    *text = cx_str_from(text->data + end, text->size - end);
    return out->size != 0;
}

/* Whether a tokenizer would find anything in it: a letter, a digit, or what is not ASCII. */
static bool has_letter(cx_str word)
{
    for (size_t i = 0; i < word.size; i++) {
        unsigned char c = (unsigned char)word.data[i];
        if (c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
            return true;
    }
    return false;
}

/* `"word"* ` in FTS5, `'word':*` in tsquery, quotes doubled; only the last one is a beginning. */
static void add_word(cx_buf *out, bool quotes, cx_str word, bool last)
{
    char quote = quotes ? '"' : '\'';
    cx_buf_add_byte(out, (uint8_t)quote);
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] == quote || (!quotes && word.data[i] == '\\'))
            cx_buf_add_byte(out, (uint8_t)word.data[i]);
        cx_buf_add_byte(out, (uint8_t)word.data[i]);
    }
    cx_buf_add_byte(out, (uint8_t)quote);
    if (last)
        cx_buf_add_z(out, quotes ? "*" : ":*");
}

static cx_status match_of(const cx_index *index, cx_str words, cx_buf *out, cx_err *err)
{
    cx_str rest = words, word, list[CX_INDEX_WORDS_MAX];
    size_t count = 0;
    while (next_word(&rest, &word)) {
        if (!has_letter(word))
            continue;
        if (count == CX_INDEX_WORDS_MAX)
            return cx_fail_at(err, CX_E_LIMIT, "TooManyWords", CX_NO_OFFSET,
                              "at most %d words can be searched for together", CX_INDEX_WORDS_MAX);
        list[count++] = word;
    }
    if (count == 0)
        return cx_fail_at(err, CX_E_FORMAT, "NoWords", CX_NO_OFFSET,
                          "found no word to search for, expected letters or digits");
    for (size_t i = 0; i < count; i++) {
        if (i != 0)
            cx_buf_add_z(out, index->engine->quotes_words ? " " : " & ");
        add_word(out, index->engine->quotes_words, list[i], i + 1 == count);
    }
    return cx_buf_check(out, err);
}

/* --- the text around a hit -------------------------------------------------------------------- */

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* Where the word first begins, without regard to case; the text's size when it does not. */
static size_t find_word(cx_str text, cx_str word)
{
    for (size_t i = 0; word.size != 0 && i + word.size <= text.size; i++) {
        size_t k = 0;
        while (k < word.size && lower(text.data[i + k]) == lower(word.data[k]))
            k++;
        if (k == word.size)
            return i;
    }
    return text.size;
}

static bool is_inside(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

static void set_snippet(cx_found_step *step, cx_str text, cx_str words)
{
    size_t from = text.size, end;
    cx_str rest = words, word;
    while (next_word(&rest, &word)) {
        size_t at = find_word(text, word);
        from = at < from ? at : from;
    }
    if (from == text.size)
        from = 0;
    from = from > CX_STEP_SNIPPET_MAX / 4 ? from - CX_STEP_SNIPPET_MAX / 4 : 0;
    while (from > 0 && is_inside(text.data[from]))
        from--;
    end = text.size - from > CX_STEP_SNIPPET_MAX ? from + CX_STEP_SNIPPET_MAX : text.size;
    while (end < text.size && is_inside(text.data[end]))
        end--;
    step->cut_before = from != 0;
    step->cut_after = end != text.size;
    step->snippet = cx_str_from(text.data + from, end - from);
}

/* --- steps ------------------------------------------------------------------------------------ */

typedef struct step_list {
    cx_arena *arena;
    cx_str words;
    CX_VEC(cx_found_step) steps;
} step_list;

static cx_status copy_cell(cx_arena *arena, const cx_cell *cell, cx_str *out, cx_err *err)
{
    *out = cell->null ? (cx_str){"", 0} : cx_arena_copy_str(arena, cell->text);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static const cx_cell_type step_types[] = {CX_CELL_INT,  CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TEXT,
                                          CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TEXT,
                                          CX_CELL_TEXT, CX_CELL_TIME, CX_CELL_BOOL, CX_CELL_TEXT};

static cx_status collect_step(void *arg, const cx_cell *cells, cx_err *err)
{
    step_list *list = arg;
    cx_found_step step = {.id = cells[0].i}, *room;
    cx_str *texts[] = {&step.history, &step.title, &step.source, &step.ref,
                       &step.kind,    &step.agent, &step.role,   &step.tool};
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        CX_TRY(copy_cell(list->arena, &cells[1 + i], texts[i], err));
    step.at_ns = cells[9].null ? CX_TIME_NONE : cells[9].i;
    step.failed = !cells[10].null && cells[10].b;
    if (!cells[11].null)
        set_snippet(&step, cells[11].text, list->words);
    if (step.snippet.size != 0) {
        step.snippet = cx_arena_copy_str(list->arena, step.snippet);
        if (step.snippet.data == NULL)
            return cx_fail_nomem(err);
    }
    if ((room = cx_vec_push(&list->steps, cx_alloc_default())) == NULL)
        return cx_fail_nomem(err);
    *room = step;
    return CX_SUCCESS;
}

#define STEP_COLUMNS                                                                  \
    "SELECT s.id, h.name, h.title, h.source, s.ref, s.kind, s.agent, s.role, s.tool," \
    " s.happened_at, s.failed, s.text FROM cirislens.cortex_steps s"                  \
    " JOIN cirislens.cortex_histories h ON h.id = s.history_id WHERE "

static void add_equal(cx_sql_statement *s, const char *column, cx_str text)
{
    if (text.data != NULL)
        cx_buf_printf(&s->sql, " AND %s = $%u", column,
                      cx_sql_statement_value(s, cx_sql_text(text)));
}

/*
 * Without other conditions the engine's own index gives the newest hits in order, and only as many
 * as are wanted.
 */
static void write_search(const cx_index *index, const cx_step_query *query, cx_str match,
                         cx_sql_statement *s)
{
    bool plain = query->history.data == NULL && query->kind.data == NULL &&
                 query->agent.data == NULL && query->tool.data == NULL;
    unsigned words = cx_sql_statement_value(s, cx_sql_text(match));
    cx_buf_add_z(&s->sql, STEP_COLUMNS);
    if (index->engine->has_sets) {
        cx_buf_printf(&s->sql,
                      "s.id IN (SELECT rowid FROM cirislens.cortex_steps_text"
                      " WHERE cortex_steps_text MATCH $%u",
                      words);
        if (query->has_cursor)
            cx_buf_printf(&s->sql, " AND rowid < $%u",
                          cx_sql_statement_value(s, cx_sql_int(query->cursor_id)));
        if (plain)
            cx_buf_printf(&s->sql, " ORDER BY rowid DESC LIMIT %u", query->limit + 1);
        cx_buf_add_z(&s->sql, ")");
    } else {
        cx_buf_printf(&s->sql,
                      "to_tsvector('simple', left(s.text, 100000)) @@ to_tsquery('simple', $%u)",
                      words);
        if (query->has_cursor)
            cx_buf_printf(&s->sql, " AND s.id < $%u",
                          cx_sql_statement_value(s, cx_sql_int(query->cursor_id)));
    }
    add_equal(s, "h.name", query->history);
    add_equal(s, "s.kind", query->kind);
    add_equal(s, "s.agent", query->agent);
    add_equal(s, "s.tool", query->tool);
    cx_buf_printf(&s->sql, " ORDER BY s.id DESC LIMIT %u", query->limit + 1);
}

static cx_status search_steps(cx_index *index, const cx_step_query *query, step_list *list,
                              cx_sql_statement *s, cx_err *err)
{
    cx_buf match;
    cx_buf_init(&match, cx_alloc_default());
    cx_status status = match_of(index, query->words, &match, err);
    if (!cx_failed(status)) {
        write_search(index, query, cx_buf_str(&match), s);
        const char *sql = cx_buf_z(&s->sql);
        cx_question question = {
            sql, s->values, s->count, step_types, CX_COUNT_OF(step_types), collect_step, list};
        status = sql == NULL ? cx_fail_nomem(err) : cx_index_ask(index, &question, err);
    }
    cx_buf_done(&match);
    return status;
}

cx_status cx_index_search(cx_index *index, const cx_step_query *query, cx_arena *arena,
                          const cx_found_step **out, size_t *out_count, bool *out_more, cx_err *err)
{
    step_list list = {.arena = arena, .words = query->words};
    cx_sql_statement s = {.arena = arena};
    cx_buf_init(&s.sql, cx_alloc_default());
    cx_status status = search_steps(index, query, &list, &s, err);
    cx_buf_done(&s.sql);
    *out_more = list.steps.count > query->limit;
    if (*out_more)
        list.steps.count = query->limit;
    *out_count = list.steps.count;
    if (!cx_failed(status))
        status = CX_INDEX_GIVE(list.steps, arena, out, err);
    cx_vec_done(&list.steps, cx_alloc_default());
    return status;
}

/* --- histories -------------------------------------------------------------------------------- */

typedef struct history_list {
    cx_arena *arena;
    CX_VEC(cx_found_history) histories;
} history_list;

static const cx_cell_type history_types[] = {CX_CELL_INT,  CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TEXT,
                                             CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TIME,
                                             CX_CELL_TIME, CX_CELL_INT,  CX_CELL_INT,  CX_CELL_INT,
                                             CX_CELL_INT,  CX_CELL_INT,  CX_CELL_FLOAT};

static cx_status collect_history(void *arg, const cx_cell *cells, cx_err *err)
{
    history_list *list = arg;
    cx_found_history history = {.id = cells[0].i}, *room;
    cx_str *texts[] = {&history.name,  &history.source, &history.title,
                       &history.agent, &history.model,  &history.path};
    int64_t *numbers[] = {&history.steps, &history.calls, &history.errors, &history.tokens_input,
                          &history.tokens_output};
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        CX_TRY(copy_cell(list->arena, &cells[1 + i], texts[i], err));
    history.first_ns = cells[7].null ? CX_TIME_NONE : cells[7].i;
    history.last_ns = cells[8].null ? CX_TIME_NONE : cells[8].i;
    for (size_t i = 0; i < CX_COUNT_OF(numbers); i++)
        *numbers[i] = cells[9 + i].i;
    history.cost_usd = cells[14].null ? 0 : cells[14].f;
    if ((room = cx_vec_push(&list->histories, cx_alloc_default())) == NULL)
        return cx_fail_nomem(err);
    *room = history;
    return CX_SUCCESS;
}

/* `%word%`, with the wildcards of LIKE escaped by a backslash. */
static cx_str like_text(cx_arena *arena, cx_str word)
{
    char *text = CX_ARENA_ARRAY(arena, char, 2 * word.size + 2);
    size_t size = 0;
    if (text == NULL)
        return (cx_str){NULL, 0};
    text[size++] = '%';
    for (size_t i = 0; i < word.size; i++) {
        if (word.data[i] == '%' || word.data[i] == '_' || word.data[i] == '\\')
            text[size++] = '\\';
        text[size++] = lower(word.data[i]);
    }
    text[size++] = '%';
    return cx_str_from(text, size);
}

/* All words in a step, or each in a name of the history. */
static cx_status add_words(cx_index *index, const cx_history_query *query, cx_sql_statement *s,
                           cx_err *err)
{
    static const char *const columns[] = {"title", "agent", "path", "name", "source"};
    cx_str rest = query->words, word;
    cx_buf match;
    if (query->words.data == NULL)
        return CX_SUCCESS;
    cx_buf_init(&match, cx_alloc_default());
    cx_status status = match_of(index, query->words, &match, err);
    cx_str expression = cx_arena_copy_str(s->arena, cx_buf_str(&match));
    cx_buf_done(&match);
    CX_TRY(status);
    if (expression.data == NULL)
        return cx_fail_nomem(err);
    unsigned words = cx_sql_statement_value(s, cx_sql_text(expression));
    if (index->engine->has_sets)
        cx_buf_printf(&s->sql,
                      " AND (h.id IN (SELECT history_id FROM cirislens.cortex_steps WHERE id IN"
                      " (SELECT rowid FROM cirislens.cortex_steps_text WHERE cortex_steps_text"
                      " MATCH $%u)) OR (TRUE",
                      words);
    else
        cx_buf_printf(&s->sql,
                      " AND (h.id IN (SELECT history_id FROM cirislens.cortex_steps WHERE"
                      " to_tsvector('simple', left(text, 100000)) @@ to_tsquery('simple', $%u))"
                      " OR (TRUE",
                      words);
    while (next_word(&rest, &word)) {
        cx_str like = like_text(s->arena, word);
        if (like.data == NULL)
            return cx_fail_nomem(err);
        unsigned value = cx_sql_statement_value(s, cx_sql_text(like));
        cx_buf_add_z(&s->sql, " AND (");
        for (size_t i = 0; i < CX_COUNT_OF(columns); i++)
            cx_buf_printf(&s->sql, "%slower(coalesce(h.%s, '')) LIKE $%u ESCAPE '\\'",
                          i == 0 ? "" : " OR ", columns[i], value);
        cx_buf_add_z(&s->sql, ")");
    }
    cx_buf_add_z(&s->sql, "))");
    return CX_SUCCESS;
}

/* Histories without times come last: they are as old as can be. */
#define LAST "coalesce(h.last_at, '1970-01-01T00:00:00.000000000Z')"

static cx_status write_histories(cx_index *index, const cx_history_query *query,
                                 cx_sql_statement *s, cx_err *err)
{
    cx_buf_add_z(&s->sql,
                 "SELECT h.id, h.name, h.source, h.title, h.agent, h.model, h.path, h.first_at,"
                 " h.last_at, h.steps, h.calls, h.errors, h.tokens_input, h.tokens_output,"
                 " h.cost_usd FROM cirislens.cortex_histories h WHERE h.steps > 0"
                 " AND h.source NOT IN ('" CX_SOURCE_TRACES "', '" CX_SOURCE_MEMORY "')");
    add_equal(s, "h.name", query->name);
    add_equal(s, "h.source", query->source);
    add_equal(s, "h.agent", query->agent);
    if (query->from_ns != CX_TIME_NONE)
        cx_buf_printf(&s->sql, " AND h.last_at >= $%u",
                      cx_sql_statement_value(s, cx_sql_time(query->from_ns)));
    if (query->to_ns != CX_TIME_NONE)
        cx_buf_printf(&s->sql, " AND h.last_at < $%u",
                      cx_sql_statement_value(s, cx_sql_time(query->to_ns)));
    if (query->has_cursor) {
        int64_t ns = query->cursor_ns == CX_TIME_NONE ? 0 : query->cursor_ns;
        unsigned time = cx_sql_statement_value(s, cx_sql_time(ns));
        unsigned id = cx_sql_statement_value(s, cx_sql_int(query->cursor_id));
        cx_buf_printf(&s->sql, " AND (" LAST " < $%u OR (" LAST " = $%u AND h.id < $%u))", time,
                      time, id);
    }
    CX_TRY(add_words(index, query, s, err));
    cx_buf_printf(&s->sql, " ORDER BY " LAST " DESC, h.id DESC LIMIT %u", query->limit + 1);
    return CX_SUCCESS;
}

cx_status cx_index_histories(cx_index *index, const cx_history_query *query, cx_arena *arena,
                             const cx_found_history **out, size_t *out_count, bool *out_more,
                             cx_err *err)
{
    history_list list = {.arena = arena};
    cx_sql_statement s = {.arena = arena};
    cx_buf_init(&s.sql, cx_alloc_default());
    cx_status status = write_histories(index, query, &s, err);
    const char *sql = cx_buf_z(&s.sql);
    if (!cx_failed(status)) {
        cx_question question = {
            sql,  s.values, s.count, history_types, CX_COUNT_OF(history_types), collect_history,
            &list};
        status = sql == NULL ? cx_fail_nomem(err) : cx_index_ask(index, &question, err);
    }
    cx_buf_done(&s.sql);
    *out_more = list.histories.count > query->limit;
    if (*out_more)
        list.histories.count = query->limit;
    *out_count = list.histories.count;
    if (!cx_failed(status))
        status = CX_INDEX_GIVE(list.histories, arena, out, err);
    cx_vec_done(&list.histories, cx_alloc_default());
    return status;
}
