/*
 * Parts of sessions whose lines were not counted when they were archived: the same as of those
 * whose were.
 */
#include "stores/session_part.h"

#include "tests/support/recorder_fixture.h"

enum { LINES = 9000, PIECE = 10000, PIECES_MAX = 256 };

static cx_status add_lines(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_buf *out = arg;
    cx_buf_add(out, bytes.data, bytes.size);
    return cx_buf_check(out, err);
}

static void write_lines(cx_buf *out)
{
    for (int i = 0; i < LINES; i++) {
        cx_buf_printf(out, "{\"timestamp\":\"2026-11-01T%02d:%02d:%02d.000Z\",", i / 3600,
                      i / 60 % 60, i % 60);
        if (i == 0)
            cx_buf_add_z(out,
                         "\"type\":\"session_meta\",\"payload\":{\"id\":\"c1\",\"cwd\":\"/w\"}}\n");
        else
            cx_buf_printf(
                out,
                "\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":"
                "\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"word %d\"}]}}\n",
                i);
    }
}

/* Archives the text in pieces. */
static void archive(fixture *s, const char *path, cx_str text, bool counted)
{
    cx_bytes pieces[PIECES_MAX];
    cx_recorded_session before = {.path = cx_str_z(path), .format = CX_SESSION_CODEX};
    cx_recorded_session_name(&before);
    cx_recorded_session after = before;
    cx_recorded_session_step step = {.before = &before, .after = &after, .pieces = pieces};
    cx_buf record;
    uint64_t seq;
    bool stale = true;
    for (size_t at = 0; at < text.size; at += PIECE)
        pieces[step.piece_count++] =
            cx_bytes_from(text.data + at, text.size - at < PIECE ? text.size - at : (size_t)PIECE);
    after.offset = text.size;
    if (counted)
        CHECK_STATUS(cx_recorder_session_count(&step, &s->arena, &after, &s->err), &s->err);
    cx_buf_init(&record, cx_alloc_default());
    CHECK_STATUS(cx_recorder_session_append(s->home, &step, &record, &seq, &stale, &s->err),
                 &s->err);
    CHECK(!stale);
    cx_buf_done(&record);
}

/* A part's nodes. */
static cx_str part_of(fixture *s, const char *name, uint64_t from)
{
    cx_session_files files;
    cx_session_times times;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_session_files_find(s->home, cx_str_z(name), &s->arena, &files, &s->err),
                 &s->err);
    CHECK(cx_session_files_have_parts(&files));
    CHECK_STATUS(cx_session_files_count(s->home, &files, &s->arena, &s->err), &s->err);
    CHECK_INT(files.items[0]->lines, LINES);
    CHECK_STATUS(cx_session_files_import_part(s->home, &files, from, cx_alloc_default(), add_lines,
                                              &out, &times, &s->err),
                 &s->err);
    cx_str text = cx_arena_copy_str(&s->arena, cx_buf_str(&out));
    cx_buf_done(&out);
    return text;
}

CX_TEST(lines_that_were_not_counted_are_counted_when_a_session_is_opened)
{
    fixture s;
    cx_buf text;
    fixture_init(&s, "session-part", NULL);
    cx_buf_init(&text, cx_alloc_default());
    write_lines(&text);
    REQUIRE(text.size / PIECE < PIECES_MAX);
    archive(&s, "/plain.jsonl", cx_buf_str(&text), false);
    archive(&s, "/counted.jsonl", cx_buf_str(&text), true);
    for (uint64_t from = 0; from < LINES; from += 1111) {
        const cx_str plain = part_of(&s, "plain", from);
        CHECK(plain.size > 1000);
        CHECK(cx_str_eq(plain, part_of(&s, "counted", from)));
    }
    cx_buf_done(&text);
    fixture_done(&s);
}

CX_TEST(a_record_is_found_by_its_line_where_lines_were_not_counted)
{
    fixture s;
    cx_buf text;
    cx_session_files files;
    uint64_t line = 0;
    bool found = false;
    fixture_init(&s, "session-line", NULL);
    cx_buf_init(&text, cx_alloc_default());
    write_lines(&text);
    archive(&s, "/plain.jsonl", cx_buf_str(&text), false);
    CHECK_STATUS(cx_session_files_find(s.home, CX_STR("plain"), &s.arena, &files, &s.err), &s.err);
    CHECK(!files.items[0]->counted);
    CHECK_STATUS(cx_session_files_count(s.home, &files, &s.arena, &s.err), &s.err);
    CHECK_STATUS(cx_session_files_line(s.home, &files, CX_STR("at:0:9000"), &line, &found, &s.err),
                 &s.err);
    CHECK(found && line == 8999);
    CHECK_STATUS(cx_session_files_line(s.home, &files, CX_STR("at:0:9001"), &line, &found, &s.err),
                 &s.err);
    CHECK(!found);
    cx_buf_done(&text);
    fixture_done(&s);
}
