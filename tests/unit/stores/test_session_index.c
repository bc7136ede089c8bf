/*
 * test_session_index.c - pieces of files: in a row, once, and only by who knows what is there.
 */
#include "stores/session_index.h"

#include "tests/support/recorder_fixture.h"

static cx_recorded_session fresh(const char *path)
{
    cx_recorded_session session = {.path = cx_str_z(path), .format = CX_SESSION_CODEX};
    cx_recorded_session_name(&session);
    return session;
}

/* Appends text in pieces of three bytes; what is there then is in *session. */
static bool append(fixture *s, cx_recorded_session *session, const char *text)
{
    cx_bytes pieces[16];
    cx_recorded_session after = *session;
    cx_recorded_session_step step = {.before = session, .after = &after, .pieces = pieces};
    cx_buf record;
    uint64_t seq = 0;
    bool stale = false;
    for (size_t at = 0, size = strlen(text); at < size; at += 3)
        pieces[step.piece_count++] = cx_bytes_from(text + at, size - at < 3 ? size - at : 3);
    after.offset += strlen(text);
    cx_buf_init(&record, cx_alloc_default());
    CHECK_STATUS(cx_recorder_session_append(s->home, &step, &record, &seq, &stale, &s->err),
                 &s->err);
    if (!stale) {
        *session = after;
        session->record = cx_str_bytes(cx_arena_copy_str(&s->arena, cx_buf_str(&record)));
    }
    cx_buf_done(&record);
    return !stale;
}

static cx_str bytes_of(fixture *s, const cx_recorded_session *session)
{
    cx_buf out;
    uint64_t erased;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_recorder_session_bytes(s->home, session, &out, &erased, &s->err), &s->err);
    cx_str text = cx_arena_copy_str(&s->arena, cx_buf_str(&out));
    cx_buf_done(&out);
    return text;
}

/* I1 */
CX_TEST(session_index_continues_a_file)
{
    fixture s;
    const cx_recorded_session *list;
    size_t count = 99;
    fixture_init(&s, "session-book", NULL);
    CHECK_STATUS(cx_recorder_sessions(s.home, &s.arena, &list, &count, &s.err), &s.err);
    CHECK_INT(count, 0);
    cx_recorded_session a = fresh("/a.jsonl"), b = fresh("/b.jsonl");
    CHECK(append(&s, &a, "one line\n"));
    CHECK(append(&s, &b, "other\n"));
    fixture_reopen(&s);
    CHECK(append(&s, &a, "two\n"));
    CHECK_STR(bytes_of(&s, &a), "one line\ntwo\n");
    CHECK_STR(bytes_of(&s, &b), "other\n");
    CHECK_STATUS(cx_recorder_sessions(s.home, &s.arena, &list, &count, &s.err), &s.err);
    REQUIRE(count == 2);
    const cx_recorded_session *found =
        memcmp(list[0].id, a.id, sizeof a.id) == 0 ? &list[0] : &list[1];
    CHECK_INT(found->offset, 13);
    CHECK_INT(found->format, CX_SESSION_CODEX);
    CHECK_STR(found->path, "/a.jsonl");
    fixture_done(&s);
}

CX_TEST(session_index_lets_one_of_two_writers_append)
{
    fixture s;
    fixture_init(&s, "session-two", NULL);
    cx_recorded_session mine = fresh("/a.jsonl"), other = mine;
    CHECK(append(&s, &mine, "one\n"));
    CHECK(!append(&s, &other, "one\n")); /* it thought that nothing was there */
    other = mine;
    CHECK(append(&s, &other, "two\n"));
    CHECK(!append(&s, &mine, "two\n"));
    CHECK_STR(bytes_of(&s, &other), "one\ntwo\n");
    fixture_done(&s);
}

CX_TEST(session_index_generations_are_other_sessions)
{
    cx_recorded_session first = fresh("/a.jsonl"), second = first;
    second.generation = 1;
    cx_recorded_session_name(&second);
    CHECK(memcmp(first.id, second.id, sizeof first.id) != 0);
}
