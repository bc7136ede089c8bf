/*
 * test_remote_bad.c - messages that are none, calls out of place and frames that would not hold:
 * refused, and the writer serves as before.
 */
#include "tests/support/fault.h"
#include "tests/support/remote_kit.h"

/* --- messages that are none ------------------------------------------------------------------- */

/* The writer serves as before. */
static void still_serves(held *h)
{
    cx_home *home = join(h);
    REQUIRE(home != NULL);
    CHECK_STATUS(append(home, "well", "still here", &h->err), &h->err);
    leave(home);
}

/* A notice with this tag, and the end. */
static void expect_notice(raw *r, const char *tag, int line)
{
    cx_remote_answer answer = {.number = 1};
    if (!raw_answer(r, CX_REMOTE_HELLO, &answer) || answer.number != 0 || !answer.failed ||
        answer.err.tag == NULL || strcmp(answer.err.tag, tag) != 0)
        cx_test_fail(__FILE__, line, "no notice %s, but %s", tag,
                     answer.err.tag == NULL ? "none" : answer.err.tag);
    CHECK(!raw_answer(r, CX_REMOTE_HELLO, &answer));
}

CX_TEST(remote_what_is_no_greeting_is_hung_up_on)
{
    held writer, *h = &writer;
    static const char *const greetings[] = {"cxhome\0\2", "GET / HT", "cxhomf\0\1"};
    REQUIRE(hold(h, "remote-greeting"));
    for (size_t i = 0; i < CX_COUNT_OF(greetings); i++) {
        raw r;
        char got[16];
        size_t size = 0;
        REQUIRE(raw_connect(&r, h));
        CHECK(raw_send(&r, greetings[i], 8));
        /* It greets, so that the other side learns the version, and nothing more. */
        CHECK(!cx_failed(cx_net_read(r.socket, got, sizeof got, 5000, &size, NULL)));
        CHECK_INT(size, CX_REMOTE_GREETING_SIZE);
        raw_close(&r);
    }
    still_serves(h);
    release(h);
}

CX_TEST(remote_what_is_no_message_ends_the_connection)
{
    held writer, *h = &writer;
    static const struct {
        const char *bytes;
        size_t size;
        const char *tag;
    } cases[] = {
        {"\0\0\0\0", 4, "BadMessage"},         /* of no bytes */
        {"\xff\xff\xff\xff", 4, "BadMessage"}, /* of too many */
        {"\x04\x80\x00\x01", 4, "BadMessage"}, /* of one too many */
        {"\0\0\0\1\xff", 5, "NonCanonical"},   /* no CBOR */
        {"\0\0\0\5hello", 9, "NonCanonical"},
        {"\0\0\0\1\xa0", 5, "NonCanonical"},
        {"\0\0\0\5\xa2\0\1\1\0", 9, "NonCanonical"},          /* call 0 */
        {"\0\0\0\6\xa2\0\1\1\x18\x63", 10, "NonCanonical"},   /* call 99 */
        {"\0\0\0\5\xa2\0\1\1\2", 9, "NonCanonical"},          /* actor, without one */
        {"\0\0\0\7\xa3\0\1\1\x0a\2\x40", 11, "NonCanonical"}, /* tables, with one */
        {"\0\0\0\6\xa2\0\x18\1\1\x0a", 10, "NonCanonical"},   /* a long 1 */
        {"\0\0\0\6\xa2\0\1\1\x0a\0", 10, "NonCanonical"},     /* one byte more */
    };
    REQUIRE(hold(h, "remote-message"));
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        raw r;
        REQUIRE(raw_hello(&r, h));
        REQUIRE(raw_begin(&r, "al"));
        CHECK(raw_send(&r, cases[i].bytes, cases[i].size));
        expect_notice(&r, cases[i].tag, (int)i);
        raw_close(&r);
    }
    still_serves(h);
    CHECK_INT(entries(h->home, "al"), 0);
    release(h);
}

CX_TEST(remote_random_messages_do_no_harm)
{
    held writer, *h = &writer;
    uint64_t seed = cx_test_seed();
    REQUIRE(hold(h, "remote-random"));
    for (int round = 0; round < 60; round++) {
        raw r;
        uint8_t bytes[200];
        size_t size = 1 + cx_test_random(&seed) % sizeof bytes;
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)cx_test_random(&seed);
        REQUIRE(raw_hello(&r, h));
        if (round % 2 == 0)
            (void)raw_send(&r, bytes, size);
        else
            (void)raw_message(&r, bytes, size);
        raw_close(&r);
    }
    still_serves(h);
    release(h);
}

CX_TEST(remote_calls_have_their_place)
{
    held writer, *h = &writer;
    raw r;
    cx_remote_answer answer;
    const cx_remote_request hello = {.op = CX_REMOTE_HELLO};
    const cx_bytes al = cx_str_bytes(CX_STR("al"));
    const cx_remote_frame frame = {.has_entry = false};
    REQUIRE(hold(h, "remote-place"));
    REQUIRE(raw_connect(&r, h));
    REQUIRE(raw_greet(&r));
    /* Nothing before hello. */
    REQUIRE(raw_ask(&r, (cx_remote_request){.op = CX_REMOTE_TABLES}, &answer));
    CHECK_STR(cx_str_z(answer.err.tag), "BadMessage");
    raw_close(&r);
    REQUIRE(raw_hello(&r, h));
    REQUIRE(raw_ask(&r, hello, &answer));
    CHECK_STR(cx_str_z(answer.err.tag), "BadMessage");
    /* What belongs into a turn. */
    const cx_remote_request inside[] = {
        {.op = CX_REMOTE_TXN_GET, .key = al},
        {.op = CX_REMOTE_TXN_ROOTS},
        {.op = CX_REMOTE_TXN_COMMIT, .frames = &frame, .frame_count = 1}};
    for (size_t i = 0; i < CX_COUNT_OF(inside); i++) {
        REQUIRE(raw_ask(&r, inside[i], &answer));
        CHECK(answer.failed && answer.number == r.number);
        CHECK_STR(cx_str_z(answer.err.tag), "NoTurn");
    }
    REQUIRE(raw_ask(&r, (cx_remote_request){.op = CX_REMOTE_TXN_ABORT}, &answer));
    CHECK(!answer.failed);
    /* What would wait for itself. */
    REQUIRE(raw_begin(&r, "al"));
    const cx_remote_request outside[] = {{.op = CX_REMOTE_TXN_BEGIN, .actor = al},
                                         {.op = CX_REMOTE_ROOTS, .actor = al},
                                         {.op = CX_REMOTE_ERASE, .actor = al}};
    for (size_t i = 0; i < CX_COUNT_OF(outside); i++) {
        REQUIRE(raw_ask(&r, outside[i], &answer));
        CHECK_STR(cx_str_z(answer.err.tag), "InTurn");
    }
    /* The turn is still there. */
    REQUIRE(raw_ask(&r, (cx_remote_request){.op = CX_REMOTE_TXN_ROOTS}, &answer));
    CHECK(!answer.failed && answer.roots.journal_size == 0);
    raw_close(&r);
    still_serves(h);
    release(h);
}

/* A frame that could not be applied would stay in the log for good. */
CX_TEST(remote_frames_that_would_not_hold_are_refused)
{
    held writer, *h = &writer;
    cx_home *home = NULL;
    const cx_bytes junk = cx_str_bytes(CX_STR("junk"));
    static const struct {
        const char *kind, *key;
        size_t key_size;
        bool committed;
    } cases[] = {
        {"redact", "test/a", 6, false},
        {"redact", "test/a", 6, true},
        {"attest", "test/a", 6, false},
        {"seal", "test/a", 6, false},
        {"learn_weights", "test/a", 6, true},
        {"write", "test/a", 6, false},
        {"test.said", "m/0123456789abcdef", 18, false},
        {"test.said", "snap/01234567", 13, false},
        {NULL, "snap/01234567", 13, false},
        {"test.said", "salience/0123456789abcdef", 25, false},
        {"test.said", "meta/scheme", 11, false},
        {NULL, "meta/actor", 10, false},
        {"test.said", "idx/at/0123456789abcdef", 23, false},
        {"test.said", "hist/x", 6, false},
        {"test.said", "erase/01234567", 14, false},
        {"test.said", "e/to/x", 6, false},
    };
    REQUIRE(hold(h, "remote-frames"));
    home = join(h);
    REQUIRE(home != NULL);
    CHECK_STATUS(append(home, "al", "first", &h->err), &h->err);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_txn *txn = NULL;
        CHECK_STATUS(
            cx_txn_begin(home, i % 2 == 0 ? CX_STR("al") : CX_STR("newcomer"), &txn, &h->err),
            &h->err);
        if (cases[i].kind == NULL) {
            CHECK_STATUS(cx_txn_bare(txn, &h->err), &h->err);
        } else {
            const cx_entry_draft draft = {
                .kind = cx_str_z(cases[i].kind), .payload = junk, .committed = cases[i].committed};
            CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &h->err), &h->err);
        }
        CHECK_STATUS(
            cx_txn_put(txn, cx_bytes_from(cases[i].key, cases[i].key_size), junk, false, &h->err),
            &h->err);
        cx_status status = cx_txn_commit(txn, &h->err);
        if (status.code != CX_E_FORMAT)
            cx_test_fail(__FILE__, __LINE__, "case %zu: %s %s", i, cx_code_name(status.code),
                         cx_failed(status) ? h->err.message : "");
    }
    CHECK_STATUS(append(home, "al", "second", &h->err), &h->err);
    CHECK_INT(entries(home, "al"), 2);
    CHECK_INT(entries(home, "newcomer"), 0);
    leave(home);
    cx_home_serve_end(h->remote);
    h->remote = NULL;
    CHECK_STATUS(cx_home_close(h->home, &h->err), &h->err);
    h->home = NULL;
    CHECK_HOLDS(h->path, true, NULL);
    release(h);
}

static cx_status derive_strictly(cx_derive *at, const cx_entry *entry, const cx_change *changes,
                                 size_t count, cx_err *err)
{
    (void)at;
    (void)changes;
    (void)count;
    if (entry != NULL && cx_str_is(entry->kind, "test.bad"))
        return cx_fail(err, CX_E_FORMAT, "it cannot be derived from");
    return CX_SUCCESS;
}

static cx_status check_strictly(const cx_entry *entry, const cx_change *changes, size_t count,
                                cx_arena *arena, cx_err *err)
{
    CHECK(arena != NULL);
    return derive_strictly(NULL, entry, changes, count, err);
}

static cx_status append_kind(cx_home *home, cx_str kind, cx_err *err)
{
    const cx_entry_draft draft = {.kind = kind};
    cx_txn *txn = NULL;
    CX_TRY(cx_txn_begin(home, CX_STR("al"), &txn, err));
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, err), err);
    return cx_txn_commit(txn, err);
}

/* A room above says what it can derive from. */
CX_TEST(remote_frames_that_no_room_can_derive_from_are_refused)
{
    held writer, *h = &writer;
    cx_home *home = NULL;
    const cx_deriver strict = {
        .name = "strict/1", .derive = derive_strictly, .check = check_strictly};
    cx_home_options here = options_of(false), there = options_of(true);
    here.derivers = there.derivers = &strict;
    REQUIRE(hold_unserved(h, "remote-derive"));
    CHECK_STATUS(cx_home_close(h->home, &h->err), &h->err);
    CHECK_STATUS(cx_home_open(h->path, &here, &h->home, &h->err), &h->err);
    REQUIRE(serve(h, TURN_MS, 0));
    CHECK_STATUS(cx_home_open(h->path, &there, &home, &h->err), &h->err);
    REQUIRE(home != NULL);
    CHECK_STATUS(append_kind(home, CX_STR("test.good"), &h->err), &h->err);
    CHECK_INT(append_kind(home, CX_STR("test.bad"), &h->err).code, CX_E_FORMAT);
    CHECK_STATUS(append_kind(h->home, CX_STR("test.good"), &h->err), &h->err);
    CHECK_INT(entries(home, "al"), 2);
    leave(home);
    release(h);
}

/* --- too little memory ------------------------------------------------------------------------ */

/* All that a client does, once; the first failure ends it. */
static cx_status try_client(const char *path, const cx_alloc *alloc, cx_err *err)
{
    cx_home_options options = options_of(true);
    cx_home *home = NULL;
    cx_arena arena;
    cx_roots roots;
    const cx_actor_info *actors;
    cx_entry_view view;
    size_t count;
    options.alloc = alloc;
    CX_TRY(cx_home_open(path, &options, &home, err));
    cx_arena_init(&arena, alloc, 0);
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, append(home, "al", "one", err));
    CX_TRY_GOTO(status, cx_home_roots(home, CX_STR("al"), &roots, err));
    CX_TRY_GOTO(status, cx_home_actors(home, &arena, &actors, &count, err));
    CX_TRY_GOTO(status, cx_home_entry(home, CX_STR("al"), 0, &arena, &view, err));
done:
    cx_arena_done(&arena);
    cx_status closed = cx_home_close(home, NULL);
    return cx_failed(status) ? status : closed;
}

CX_TEST(remote_a_client_without_memory_fails_and_leaks_nothing)
{
    held writer, *h = &writer;
    fault_alloc memory;
    cx_status status = {CX_E_NOMEM};
    uint64_t n = 0;
    REQUIRE(hold(h, "remote-client-memory"));
    while (cx_failed(status) && n < 1000) {
        fault_alloc_init(&memory, ++n, false);
        status = try_client(h->path, &memory.alloc, &h->err);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK(!atomic_load(&memory.wrong_size));
        /* An answer for which there is no memory is as good as lost. */
        if (cx_failed(status) && status.code != CX_E_NOMEM && status.code != CX_E_IO)
            cx_test_fail(__FILE__, __LINE__, "%llu: %s", (unsigned long long)n, h->err.message);
        if (!cx_failed(status))
            CHECK_INT(atomic_load(&memory.fired), 0);
    }
    CHECK(n > 10 && !cx_failed(status));
    still_serves(h);
    release(h);
}

CX_TEST(remote_a_writer_without_memory_says_so_or_hangs_up)
{
    uint64_t n = 0;
    bool fired = true;
    while (fired && n < 400) {
        held writer, *h = &writer;
        fault_alloc memory;
        cx_home_options options = options_of(false);
        fault_alloc_init(&memory, FAULT_NEVER, false);
        REQUIRE(hold_unserved(h, "remote-holder-memory"));
        CHECK_STATUS(cx_home_close(h->home, &h->err), &h->err);
        options.alloc = &memory.alloc;
        CHECK_STATUS(cx_home_open(h->path, &options, &h->home, &h->err), &h->err);
        CHECK_STATUS(cx_home_flush(h->home, &h->err), &h->err);
        n += n < 24 ? 1 : 4;
        memory.fail_at = atomic_load(&memory.calls) + n;
        cx_status status = cx_home_serve_begin(h->home, NULL, &h->remote, &h->err);
        if (!cx_failed(status))
            status = try_client(h->path, cx_alloc_default(), &h->err);
        cx_home_serve_end(h->remote);
        /* The tables may be older than the log then: they are brought up to date at the next
         * opening.  Closing flushes them, which needs memory, too. */
        cx_err why = {0};
        cx_status closed = cx_home_close(h->home, &why);
        fired = atomic_load(&memory.fired) != 0;
        if (!fired) {
            CHECK_STATUS(status, &h->err);
            CHECK_STATUS(closed, &why);
        }
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK_HOLDS(h->path, false, NULL);
        cx_arena_done(&h->arena);
        folder_remove(h->path);
    }
    CHECK(n > 30 && !fired);
}
