/*
 * words.c - finds rows by words: words of the rationale, or prefixes of one of the trace's names.
 *
 * PostgreSQL has statistics of words and plans by them.  SQLite does not, so the form of its
 * statement depends on how many ids match a word, counted up to index->some_ids:
 *
 *   DRIVES   few: the rows are fetched by these ids, then sorted by time
 *   SET      some: rows are walked by time, and looked up in a table made of the ids
 *   EACH     many: rows are walked by time, each is tested for the word; a page fills quickly
 */
#include "index/index_internal.h"

/* Sorts after every text with the same prefix: U+10FFFF. */
#define LAST "\xf4\x8f\xbf\xbf"

#define SPELLINGS 3 /* as given, in upper case, in lower case */

typedef struct beginning {
    cx_str exact;                          /* for the full-text index; size 0 = not used */
    cx_str from[SPELLINGS], to[SPELLINGS]; /* name ranges: from <= name < to; `count` of them */
    unsigned count;
    int64_t ids; /* matching ids, up to some_ids + 1 */
} beginning;

static const char *const names[] = {"trace_id",      "task_id",         "thought_id",
                                    "agent_id_hash", "selected_action", "trace_type"};

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (uint8_t)c >= 0x80;
}

/* --- one word --------------------------------------------------------------------------------- */

/* "well-known" in the engine's syntax for `well` followed by `known`. */
static cx_status make_exact_word(const cx_index_driver *engine, cx_str word, cx_arena *arena,
                                 cx_str *out, cx_err *err)
{
    cx_buf text;
    bool any = false;
    cx_buf_init(&text, arena->alloc);
    for (size_t i = 0; i < word.size; i++) {
        if (!is_word_byte(word.data[i]))
            continue;
        if (i == 0 || !is_word_byte(word.data[i - 1]))
            cx_buf_add_z(&text, engine->phrase_parts[any ? 1 : 0]);
        any = true;
        cx_buf_add_byte(&text, (uint8_t)word.data[i]);
    }
    if (any)
        cx_buf_add_z(&text, engine->phrase_parts[2]);
    *out = cx_arena_copy_str(arena, cx_buf_str(&text));
    bool failed = text.failed || out->data == NULL;
    cx_buf_done(&text);
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_str swap_letter_case(cx_str word, char first, char last, cx_arena *arena)
{
    char *text = CX_ARENA_ARRAY(arena, char, word.size + 1);
    for (size_t i = 0; text != NULL && i < word.size; i++)
        text[i] = word.data[i] >= first && word.data[i] <= last ? (char)(word.data[i] ^ 0x20)
                                                                : word.data[i];
    return (cx_str){text, word.size};
}

static cx_str end_of_prefix(cx_str word, cx_arena *arena)
{
    size_t size = word.size + sizeof LAST - 1;
    char *text = CX_ARENA_ARRAY(arena, char, size);
    if (text != NULL) {
        memcpy(text, word.data, word.size);
        memcpy(text + word.size, LAST, sizeof LAST - 1);
    }
    return (cx_str){text, size};
}

static cx_status make_prefix(const cx_index_driver *engine, cx_str word, bool names_only,
                             cx_arena *arena, beginning *out, cx_err *err)
{
    const cx_str spelt[SPELLINGS] = {word, swap_letter_case(word, 'a', 'z', arena),
                                     swap_letter_case(word, 'A', 'Z', arena)};
    *out = (beginning){.exact = CX_STR("")};
    if (!names_only)
        CX_TRY(make_exact_word(engine, word, arena, &out->exact, err));
    for (unsigned i = 0; i < SPELLINGS; i++) {
        if (spelt[i].data == NULL)
            return cx_fail_nomem(err);
        if (i != 0 && cx_str_eq(spelt[i], word))
            continue;
        out->from[out->count] = spelt[i];
        out->to[out->count] = end_of_prefix(spelt[i], arena);
        if (out->to[out->count++].data == NULL)
            return cx_fail_nomem(err);
    }
    return CX_SUCCESS;
}

/* --- as SQL ----------------------------------------------------------------------------------- */

typedef struct numbers {
    unsigned exact, from[SPELLINGS], to[SPELLINGS];
} numbers;

static numbers add_values(cx_sql_statement *s, const beginning *b)
{
    numbers n = {0};
    if (b->exact.size != 0)
        n.exact = cx_sql_statement_value(s, cx_sql_text(b->exact));
    for (unsigned i = 0; i < b->count; i++) {
        n.from[i] = cx_sql_statement_value(s, cx_sql_text(b->from[i]));
        n.to[i] = cx_sql_statement_value(s, cx_sql_text(b->to[i]));
    }
    return n;
}

/* Each part uses a different index. */
static void add_set(cx_sql_statement *s, const beginning *b)
{
    numbers n = add_values(s, b);
    const char *before = "";
    if (n.exact != 0)
        cx_buf_printf(&s->sql,
                      "SELECT rowid FROM cirislens.covenant_traces_text"
                      " WHERE covenant_traces_text MATCH $%u UNION ALL ",
                      n.exact);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        for (unsigned k = 0; k < b->count; k++) {
            cx_buf_printf(&s->sql,
                          "%sSELECT id FROM cirislens.covenant_traces WHERE %s >= $%u AND %s < $%u",
                          before, names[i], n.from[k], names[i], n.to[k]);
            before = " UNION ALL ";
        }
}

static void add_each(cx_sql_statement *s, const cx_index_driver *engine, const beginning *b)
{
    numbers n = add_values(s, b);
    const char *before = "";
    cx_buf_add_z(&s->sql, " AND (");
    if (n.exact != 0) {
        cx_buf_printf(&s->sql, engine->phrase_condition, n.exact);
        before = " OR ";
    }
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        for (unsigned k = 0; k < b->count; k++) {
            cx_buf_printf(&s->sql, "%s(t.%s >= $%u AND t.%s < $%u)", before, names[i], n.from[k],
                          names[i], n.to[k]);
            before = " OR ";
        }
    cx_buf_add_z(&s->sql, ")");
}

static cx_status count_ids(cx_index *index, cx_arena *arena, beginning *b, cx_err *err)
{
    cx_sql_statement s = {.arena = arena};
    cx_buf_init(&s.sql, cx_alloc_default());
    cx_buf_add_z(&s.sql, "SELECT count(*) FROM (SELECT 1 FROM (");
    add_set(&s, b);
    cx_buf_printf(&s.sql, ") LIMIT %d)", index->some_ids + 1);
    const char *sql = cx_buf_z(&s.sql);
    cx_status status = sql == NULL
                           ? cx_fail_nomem(err)
                           : cx_index_number(index, sql, s.values, s.count, 0, &b->ids, err);
    cx_buf_done(&s.sql);
    return status;
}

static void add_sets(const cx_index *index, cx_sql_statement *s, const beginning *words,
                     size_t count)
{
    size_t rarest = 0;
    for (size_t i = 1; i < count; i++)
        if (words[i].ids < words[rarest].ids)
            rarest = i;
    s->sorts = words[rarest].ids <= index->few_ids;
    for (size_t i = 0; i < count; i++) {
        if (words[i].ids > index->some_ids) {
            add_each(s, index->engine, &words[i]);
            continue;
        }
        cx_buf_add_z(&s->sql, s->sorts && i == rarest ? " AND t.id IN (" : " AND +t.id IN (");
        add_set(s, &words[i]);
        cx_buf_add_z(&s->sql, ")");
    }
}

cx_status cx_index_add_beginnings(cx_index *index, cx_sql_statement *s, const cx_trace_query *query,
                                  cx_err *err)
{
    beginning words[CX_INDEX_WORDS_MAX];
    size_t count = 0;
    cx_str text = query->words;
    for (size_t i = 0, end; i < text.size; i = end) {
        for (; i < text.size && is_space(text.data[i]); i++)
            ;
        for (end = i; end < text.size && !is_space(text.data[end]); end++)
            ;
        if (end == i)
            break;
        if (count == CX_INDEX_WORDS_MAX)
            return cx_fail_at(err, CX_E_LIMIT, "TooManyWords", CX_NO_OFFSET,
                              "at most %d words can be searched for together", CX_INDEX_WORDS_MAX);
        CX_TRY(make_prefix(index->engine, cx_str_from(text.data + i, end - i), query->names_only,
                           s->arena, &words[count], err));
        if (index->engine->has_sets)
            CX_TRY(count_ids(index, s->arena, &words[count], err));
        count++;
    }
    if (index->engine->has_sets && count != 0)
        add_sets(index, s, words, count);
    for (size_t i = 0; !index->engine->has_sets && i < count; i++)
        add_each(s, index->engine, &words[i]);
    return CX_SUCCESS;
}
