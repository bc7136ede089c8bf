/*
 * Places in a text: a part that is read from one says what the whole says of each record, wherever
 * the text is cut and whatever it holds.
 */
#include <stdlib.h>

#include "tests/support/aider_history.h"

enum { PIECES_MAX = 512 };

typedef struct cut_text {
    cx_buf text;
    size_t starts[PIECES_MAX + 1];
    cx_import_place places[PIECES_MAX + 1]; /* before each; the last is the end's */
    cx_import_place end;
    size_t count;
} cut_text;

/* Cuts it after lines, or anywhere. */
static void cut(cut_text *t, uint64_t *random)
{
    cx_import_place place = {0};
    const bool anywhere = aider_pick(random, 2) == 0;
    size_t at = 0;
    t->count = 0;
    while (at < t->text.size && t->count < PIECES_MAX) {
        size_t size = 1 + aider_pick(random, anywhere ? 30 : 200);
        size = at == 0 && size < 3 ? 3 : size; /* a mark is not cut */
        size = size > t->text.size - at ? t->text.size - at : size;
        while (!anywhere && at + size < t->text.size && t->text.data[at + size - 1] != '\n')
            size++;
        t->starts[t->count] = at;
        t->places[t->count++] = place;
        cx_import_place_read(&place, cx_bytes_from(t->text.data + at, size));
        at += size;
    }
    REQUIRE(at == t->text.size);
    t->starts[t->count] = at;
    t->places[t->count] = t->end = place;
    cx_import_place_end(&t->end);
}

static uint64_t records_before(const cut_text *t, size_t piece)
{
    return cx_import_place_reading(&t->places[piece], &t->end)->records;
}

/* From the last place before the record that is at the beginning of a line. */
static void import_part(const cut_text *t, uint64_t from, uint64_t until, imported *in)
{
    size_t first = 0, last = 0;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    for (size_t i = 0; i < t->count; i++)
        if (t->places[i].cut == 0 && records_before(t, i) <= from)
            first = i;
    for (last = first + 1; last < t->count && records_before(t, last) <= until;)
        last++;
    const cx_import_segment segment = {.place = t->places[first]};
    const cx_import_window window = {.from = from,
                                     .until = until,
                                     .after_ns = INT64_MIN,
                                     .until_ns = INT64_MAX,
                                     .segments = &segment,
                                     .segment_count = 1,
                                     .end = &t->end};
    const size_t mark = t->starts[first] == 0 && t->text.data[0] == 0xef ? 3 : 0;
    const size_t size = t->starts[last] - t->starts[first];
    const cx_bytes file =
        cx_bytes_from(t->text.data + t->starts[first] + mark, size < mark ? 0 : size - mark);
    options.windows = &window;
    imported_begin(in);
    CHECK_STATUS(
        cx_import_run_bytes("aider", &file, 1, &options, imported_write, &in->out, NULL, &in->err),
        &in->err);
    in->summary.total.nodes = until - from + 1;
    imported_parse(in);
    imported_verify(in, false);
}

static void check_parts(cut_text *t, uint64_t *random)
{
    imported whole;
    const cx_bytes file = cx_buf_bytes(&t->text);
    import_bytes(&whole, "aider", &file, 1, NULL);
    REQUIRE(whole.count != 0);
    const uint64_t records = whole.count - 1;
    CHECK_INT(cx_import_place_reading(&t->end, &t->end)->records, records);
    for (uint64_t from = 0; from < records; from += 1 + aider_pick(random, 9)) {
        imported part;
        const uint64_t left = records - from, size = 1 + aider_pick(random, 12);
        const uint64_t until = from + (size < left ? size : left);
        import_part(t, from, until, &part);
        REQUIRE(part.count == until - from + 1);
        for (uint64_t i = from; i < until; i++)
            aider_check_record(&whole, &part, i);
        imported_done(&part);
    }
    imported_done(&whole);
}

CX_TEST(place_parts_of_random_histories_have_the_records_of_the_whole)
{
    uint64_t random = 22;
    cut_text *t = calloc(1, sizeof *t);
    REQUIRE(t != NULL);
    unsigned parts = 0;
    for (unsigned round = 0; round < 300; round++) {
        cx_buf_init(&t->text, cx_alloc_default());
        aider_write_random(&t->text, &random);
        cut(t, &random);
        if (cx_import_place_is_usable(&t->end)) {
            check_parts(t, &random);
            parts++;
        }
        cx_buf_done(&t->text);
    }
    CHECK(parts > 250);
    free(t);
}

/* The same place, whether a text comes at once or byte by byte. */
CX_TEST(place_does_not_depend_on_how_a_text_is_cut)
{
    uint64_t random = 5;
    for (unsigned round = 0; round < 200; round++) {
        cx_import_place once = {0}, bytewise = {0};
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        aider_write_random(&text, &random);
        if (text.size > 3 && text.data[0] == 0xef) { /* a mark is of the first piece */
            cx_import_place_read(&bytewise, cx_bytes_from(text.data, 3));
            memmove(text.data, text.data + 3, text.size - 3);
            text.size -= 3;
        }
        cx_import_place_read(&once, cx_buf_bytes(&text));
        for (size_t i = 0; i < text.size; i++)
            cx_import_place_read(&bytewise, cx_bytes_from(text.data + i, 1));
        CHECK_INT(once.lines, bytewise.lines);
        CHECK(memcmp(once.reading, bytewise.reading, sizeof once.reading) == 0);
        CHECK(once.cut == bytewise.cut && once.text == bytewise.text &&
              once.own_ends == bytewise.own_ends);
        CHECK(memcmp(once.head, bytewise.head, sizeof once.head) == 0);
        cx_buf_done(&text);
    }
}

/* Lines that are longer than what is kept of them: whole, and in pieces. */
CX_TEST(place_knows_long_lines_that_are_cut)
{
    static const char *const begins[] = {"#### ", "> ", "word",     "```",
                                         " ",     "\t", "#### a\r", "    \r"};
    static const char *const ends[] = {"", "  ", " ", "\r", "  \r", " x", " \r\r"};
    for (size_t i = 0; i < CX_COUNT_OF(begins); i++)
        for (size_t k = 0; k < CX_COUNT_OF(ends); k++) {
            cx_import_place once = {0}, cut = {0};
            cx_buf line;
            cx_buf_init(&line, cx_alloc_default());
            cx_buf_add_z(&line, begins[i]);
            for (int n = 0; n < 100; n++)
                cx_buf_add_byte(&line, i < 4 && n % 3 != 0 ? 'x' : ' ');
            cx_buf_add_z(&line, ends[k]);
            cx_buf_add_byte(&line, '\n');
            cx_import_place_read(&once, cx_buf_bytes(&line));
            cx_import_place_read(&cut, cx_bytes_from(line.data, 70));
            cx_import_place_read(&cut, cx_bytes_from(line.data + 70, line.size - 70));
            CHECK(memcmp(once.reading, cut.reading, sizeof once.reading) == 0);
            CHECK(once.own_ends == cut.own_ends && !cut.lost);
            cx_buf_done(&line);
        }
}

static cx_import_place place_of(const char *text, const char *more)
{
    cx_import_place place = {0};
    cx_import_place_read(&place, cx_str_bytes(cx_str_z(text)));
    cx_import_place_read(&place, cx_str_bytes(cx_str_z(more)));
    cx_import_place_end(&place);
    return place;
}

CX_TEST(place_is_of_histories_whose_lines_are_known)
{
    static const char zeros[] =
        "2026-01-02 03:04:05.000000000000000000000000000000000000000000000000";
    char started[128];
    CHECK(cx_import_has_places("aider"));
    CHECK(!cx_import_has_places("claude-code") && !cx_import_has_places("no such format"));
    cx_import_place place = place_of("# 2026-01-02 03:04:05\n", "+a prompt\n");
    CHECK(!cx_import_place_is_usable(&place));
    place = place_of("\n# 2026-01-02 03:04:05\n", "a heading\n");
    CHECK(cx_import_place_is_usable(&place));
    place = place_of("# 2026-01-02 03:04:05", "");
    CHECK(cx_import_place_is_usable(&place));
    /* A time in a line that was cut, and of which not all was kept. */
    (void)snprintf(started, sizeof started, "# aider chat started at %s", zeros);
    place = place_of(started, "000\n");
    CHECK(!cx_import_place_is_usable(&place));
    place = place_of("# aider chat started at 2026-01-02", " 03:04:05\n");
    CHECK(cx_import_place_is_usable(&place));
    CHECK(place.reading[0].has_time && place.reading[1].has_time);
}
