/*
 * test_remote.c - a home that another process holds: joining it, transactions that end with the
 * client that began them, and nothing done twice.
 *
 * Writer and client are of one process here (tests/cli/test_writer.py has two); what they say to
 * each other is the same.
 */
#include "tests/support/remote_kit.h"

/* --- joining ---------------------------------------------------------------------------------- */

CX_TEST(remote_home_says_whose_it_is)
{
    held owner, *h = &owner;
    uint8_t here[16], there[16];
    REQUIRE(hold(h, "remote-who"));
    cx_home *home = join(h);
    REQUIRE(home != NULL);
    CHECK(!cx_home_is_remote(h->home));
    CHECK_INT(cx_home_owner(h->home), 0);
    CHECK_INT(cx_home_owner(home), getpid());
    CHECK_INT(cx_home_scheme(home), CX_SCHEME_CORTEX_1);
    CHECK_STR(cx_str_z(cx_home_path(home)), h->path);
    CHECK_INT(cx_home_torn_bytes(home), 0);
    cx_home_id(h->home, here);
    cx_home_id(home, there);
    CHECK(memcmp(here, there, 16) == 0);
    leave(home);
    release(h);
}

CX_TEST(remote_without_asking_for_it_a_held_home_is_locked)
{
    held owner, *h = &owner;
    cx_home *home = NULL;
    const cx_home_options alone = options_of(false), either = options_of(true);
    REQUIRE(hold(h, "remote-locked"));
    CHECK_FAILS(cx_home_open(h->path, &alone, &home, &h->err), h->err, CX_E_BUSY, "Locked");
    cx_home_serve_end(h->remote);
    h->remote = NULL;
    CHECK(access(h->socket, F_OK) != 0);
    CHECK_FAILS(cx_home_open(h->path, &either, &home, &h->err), h->err, CX_E_BUSY, "Locked");
    /* It has no writer: it is opened as ever. */
    CHECK_STATUS(cx_home_close(h->home, &h->err), &h->err);
    CHECK_STATUS(cx_home_open(h->path, &either, &h->home, &h->err), &h->err);
    CHECK(h->home != NULL && !cx_home_is_remote(h->home));
    release(h);
}

CX_TEST(remote_a_stale_socket_is_replaced)
{
    held owner, *h = &owner;
    cx_home *home = NULL;
    cx_listener killed;
    const cx_home_options either = options_of(true);
    REQUIRE(hold_unserved(h, "remote-stale"));
    CHECK_STATUS(cx_net_listen(h->socket, &killed, &h->err), &h->err);
    cx_net_listen_end(&killed);
    CHECK(access(h->socket, F_OK) == 0);
    CHECK_FAILS(cx_home_open(h->path, &either, &home, &h->err), h->err, CX_E_BUSY, "Locked");
    REQUIRE(serve(h, TURN_MS, 0));
    leave(join(h));
    release(h);
}

CX_TEST(remote_serving_is_done_once_by_who_holds_the_home)
{
    held owner, *h = &owner;
    cx_remote *second = NULL;
    cx_home *reader = NULL;
    cx_home_options reading = options_of(false);
    reading.read_only = true;
    REQUIRE(hold(h, "remote-once"));
    CHECK_INT(cx_home_serve_begin(h->home, NULL, &second, &h->err).code, CX_E_EXISTS);
    cx_home *home = join(h);
    REQUIRE(home != NULL);
    CHECK_INT(cx_home_serve_begin(home, NULL, &second, &h->err).code, CX_E_DENIED);
    CHECK_STATUS(cx_home_open(h->path, &reading, &reader, &h->err), &h->err);
    CHECK_INT(cx_home_serve_begin(reader, NULL, &second, &h->err).code, CX_E_DENIED);
    CHECK(second == NULL);
    leave(reader);
    leave(home);
    /* A file in the socket's place is not removed. */
    cx_home_serve_end(h->remote);
    h->remote = NULL;
    int file = open(h->socket, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0 && close(file) == 0);
    CHECK_INT(cx_home_serve_begin(h->home, NULL, &h->remote, &h->err).code, CX_E_EXISTS);
    CHECK(access(h->socket, F_OK) == 0);
    CHECK(unlink(h->socket) == 0);
    REQUIRE(serve(h, TURN_MS, 0));
    release(h);
}

CX_TEST(remote_too_many_clients_hear_so)
{
    held owner, *h = &owner;
    cx_home *home = NULL;
    const cx_home_options either = options_of(true);
    REQUIRE(hold_unserved(h, "remote-many"));
    REQUIRE(serve(h, TURN_MS, 1));
    cx_home *first = join(h);
    REQUIRE(first != NULL);
    CHECK_FAILS(cx_home_open(h->path, &either, &home, &h->err), h->err, CX_E_BUSY,
                "TooManyClients");
    CHECK_INT(cx_home_serve_clients(h->remote), 1);
    leave(first);
    for (int i = 0; i < 200 && cx_home_serve_clients(h->remote) != 0; i++) {
        const struct timespec nap = {0, 5000000};
        (void)nanosleep(&nap, NULL);
    }
    leave(join(h));
    release(h);
}

static cx_status derive_nothing(cx_derive *at, const cx_entry *entry, const cx_change *changes,
                                size_t count, cx_err *err)
{
    (void)at;
    (void)entry;
    (void)changes;
    (void)count;
    (void)err;
    return CX_SUCCESS;
}

CX_TEST(remote_other_derivers_are_refused)
{
    held owner, *h = &owner;
    cx_home *home = NULL;
    const cx_deriver other = {.name = "memory/0", .derive = derive_nothing};
    cx_home_options options = options_of(true);
    options.derivers = &other;
    REQUIRE(hold(h, "remote-derivers"));
    CHECK_FAILS(cx_home_open(h->path, &options, &home, &h->err), h->err, CX_E_UNSUPPORTED,
                "OtherDerivers");
    options.deriver_count = 0;
    CHECK_FAILS(cx_home_open(h->path, &options, &home, &h->err), h->err, CX_E_UNSUPPORTED,
                "OtherDerivers");
    CHECK(home == NULL);
    release(h);
}

/* --- several at once -------------------------------------------------------------------------- */

enum { WRITERS = 4, ROUNDS = 25 };

typedef struct crowd {
    held *h;
    cx_home *homes[WRITERS];
    atomic_uint wrong;
} crowd;

/* Each round changes the same counter by one, inside a turn. */
static cx_status count_up(cx_home *home, cx_err *err)
{
    const cx_bytes key = cx_str_bytes(CX_STR("test/counter"));
    const cx_entry_draft draft = {.kind = CX_STR("test.counted"), .created_at_ns = 1};
    cx_txn *txn = NULL;
    cx_bytes value = {NULL, 0};
    bool found = false;
    uint8_t next = 1;
    CX_TRY(cx_txn_begin(home, CX_STR("al"), &txn, err));
    cx_status status = cx_txn_get(txn, key, &value, &found, err);
    if (!cx_failed(status) && found)
        next = (uint8_t)(value.data[0] + 1);
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, NULL, err);
    if (!cx_failed(status))
        status = cx_txn_put(txn, key, cx_bytes_from(&next, 1), false, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    return cx_txn_commit(txn, err);
}

static void count_many(void *arg, unsigned index)
{
    crowd *c = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        cx_err err = {0};
        cx_roots roots;
        if (cx_failed(count_up(c->homes[index], &err)) ||
            cx_failed(cx_home_roots(c->homes[index], CX_STR("al"), &roots, &err)))
            atomic_fetch_add(&c->wrong, 1);
    }
}

/* One writer at home, one alone on its connection, two threads on one connection. */
CX_TEST(remote_writers_take_turns)
{
    held owner, *h = &owner;
    cx_arena arena;
    cx_bytes value = {NULL, 0};
    bool found = false;
    REQUIRE(hold(h, "remote-turns"));
    cx_home *alone = join(h), *shared = join(h);
    REQUIRE(alone != NULL && shared != NULL);
    crowd c = {.h = h, .homes = {h->home, alone, shared, shared}};
    atomic_init(&c.wrong, 0);
    cx_thread_team(WRITERS, count_many, &c);
    CHECK_INT(atomic_load(&c.wrong), 0);
    CHECK_INT(entries(h->home, "al"), WRITERS * ROUNDS);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_home_get(alone, CX_STR("al"), cx_str_bytes(CX_STR("test/counter")), &arena,
                             &value, &found, &h->err),
                 &h->err);
    CHECK(found && value.size == 1 && value.data[0] == WRITERS * ROUNDS);
    cx_arena_done(&arena);
    leave(alone);
    leave(shared);
    release(h);
}

/* --- clients that go away --------------------------------------------------------------------- */

CX_TEST(remote_a_client_that_dies_inside_a_txn_blocks_no_one)
{
    held owner, *h = &owner;
    raw r;
    REQUIRE(hold_unserved(h, "remote-dies"));
    REQUIRE(serve(h, 60000, 0)); /* it is not the time limit that ends it */
    REQUIRE(raw_hello(&r, h));
    REQUIRE(raw_begin(&r, "al"));
    raw_close(&r);
    CHECK_STATUS(append(h->home, "al", "here", &h->err), &h->err);
    /* .. also while the writer waits for the rest of what it was sending. */
    REQUIRE(raw_hello(&r, h));
    REQUIRE(raw_begin(&r, "al"));
    CHECK(raw_send(&r, "\0\0\1\0half", 8));
    raw_close(&r);
    CHECK_STATUS(append(h->home, "al", "here", &h->err), &h->err);
    CHECK_INT(entries(h->home, "al"), 2);
    release(h);
}

CX_TEST(remote_a_client_that_keeps_silent_inside_a_turn_loses_it)
{
    held owner, *h = &owner;
    cx_txn *txn = NULL;
    const cx_entry_draft draft = {.kind = CX_STR("test.said")};
    REQUIRE(hold_unserved(h, "remote-silent"));
    REQUIRE(serve(h, SHORT_MS, 0));
    cx_home *home = join(h);
    REQUIRE(home != NULL);
    CHECK_STATUS(cx_txn_begin(home, CX_STR("al"), &txn, &h->err), &h->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &h->err), &h->err);
    CHECK_STATUS(append(h->home, "al", "here", &h->err), &h->err); /* waits for that long */
    CHECK_FAILS(cx_txn_commit(txn, &h->err), h->err, CX_E_TIMEOUT, "TurnTimedOut");
    CHECK_INT(entries(h->home, "al"), 1);
    /* The connection is over, and says so. */
    CHECK_FAILS(append(home, "al", "again", &h->err), h->err, CX_E_IO, "HolderGone");
    leave(home);
    /* Outside a transaction silence has no timeout. */
    home = join(h);
    const struct timespec nap = {0, 2 * SHORT_MS * 1000000L};
    (void)nanosleep(&nap, NULL);
    CHECK_STATUS(append(home, "al", "later", &h->err), &h->err);
    leave(home);
    /* Half of a message is no word. */
    raw r;
    REQUIRE(raw_hello(&r, h));
    REQUIRE(raw_begin(&r, "al"));
    CHECK(raw_send(&r, "\0\0\1\0half", 8));
    CHECK_STATUS(append(h->home, "al", "here", &h->err), &h->err);
    raw_close(&r);
    CHECK_INT(entries(h->home, "al"), 3);
    release(h);
}

typedef struct ending {
    held *h;
    atomic_bool done;
} ending;

static void end_serving(void *arg)
{
    ending *e = arg;
    cx_home_serve_end(e->h->remote);
    atomic_store(&e->done, true);
}

CX_TEST(remote_ending_lets_turns_under_way_end)
{
    held owner, *h = &owner;
    cx_txn *txn = NULL;
    cx_thread thread;
    const cx_entry_draft draft = {.kind = CX_STR("test.said")};
    REQUIRE(hold(h, "remote-ending"));
    cx_home *home = join(h), *idle = join(h);
    REQUIRE(home != NULL && idle != NULL);
    ending e = {.h = h};
    atomic_init(&e.done, false);
    CHECK_STATUS(cx_txn_begin(home, CX_STR("al"), &txn, &h->err), &h->err);
    REQUIRE(cx_thread_start(&thread, end_serving, &e));
    /* An idle connection ends at once .. */
    cx_roots roots;
    for (int i = 0; i < 500 && access(h->socket, F_OK) == 0; i++) {
        const struct timespec nap = {0, 1000000};
        (void)nanosleep(&nap, NULL);
    }
    const struct timespec nap = {0, 50000000};
    (void)nanosleep(&nap, NULL);
    CHECK_FAILS(cx_home_roots(idle, CX_STR("al"), &roots, &h->err), h->err, CX_E_BUSY,
                "HolderEnds");
    CHECK(!atomic_load(&e.done));
    /* .. one with a turn when that has ended. */
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &h->err), &h->err);
    CHECK_STATUS(cx_txn_commit(txn, &h->err), &h->err);
    cx_thread_join(&thread);
    CHECK(atomic_load(&e.done));
    h->remote = NULL;
    CHECK_FAILS(append(home, "al", "more", &h->err), h->err, CX_E_BUSY, "HolderEnds");
    CHECK_INT(entries(h->home, "al"), 1);
    CHECK(access(h->socket, F_OK) != 0);
    leave(home);
    leave(idle);
    release(h);
}

/* --- writers that go away --------------------------------------------------------------------- */

/* A writer that answers by hand, and hangs up where it is told to. */
typedef struct impostor {
    cx_listener listener;
    unsigned version;
    cx_remote_op until; /* answers up to this call, which it reads */
    bool reads;         /* .. or not even that */
    cx_thread thread;
} impostor;

static void answer_by_hand(raw *r, cx_remote_op op, uint64_t number)
{
    const cx_actor_info actor = {.name = CX_STR("al")};
    const cx_remote_answer answer = {
        .number = number, .actors = &actor, .actor_count = 1, .is_new = true};
    cx_buf_clear(&r->out);
    cx_remote_answer_encode(&answer, op, &r->out);
    CHECK(raw_message(r, r->out.data, r->out.size));
}

static void impersonate(void *arg)
{
    impostor *self = arg;
    raw r = {.socket = CX_SOCKET_NONE};
    bool stopped = false;
    uint8_t greeting[CX_REMOTE_GREETING_SIZE];
    cx_arena_init(&r.arena, cx_alloc_default(), 0);
    cx_buf_init(&r.out, cx_alloc_default());
    CHECK(!cx_failed(cx_net_accept(&self->listener, &r.socket, &stopped, NULL)) && !stopped);
    cx_remote_greeting(greeting);
    greeting[7] = (uint8_t)self->version;
    CHECK(raw_send(&r, greeting, sizeof greeting));
    size_t got = 0;
    CHECK(!cx_failed(cx_net_read(r.socket, greeting, sizeof greeting, 5000, &got, NULL)));
    for (;;) {
        uint8_t head[4];
        cx_remote_request request = {.op = CX_REMOTE_HELLO};
        cx_err err = {0};
        if (cx_failed(cx_net_read(r.socket, head, 4, 5000, &got, NULL)) || got != 4)
            break;
        size_t size = (size_t)head[2] << 8 | head[3];
        uint8_t *bytes = cx_arena_push(&r.arena, size, 1);
        CHECK(!cx_failed(cx_net_read(r.socket, bytes, size, 5000, &got, NULL)));
        CHECK_STATUS(cx_remote_request_decode(cx_bytes_from(bytes, size), &r.arena, &request, &err),
                     &err);
        if (request.op == self->until)
            break;
        answer_by_hand(&r, request.op, request.number);
    }
    raw_close(&r);
}

static bool impostor_begin(impostor *i, held *h, unsigned version, cx_remote_op until)
{
    *i = (impostor){.version = version, .until = until};
    CHECK_STATUS(cx_net_listen(h->socket, &i->listener, &h->err), &h->err);
    return cx_thread_start(&i->thread, impersonate, i);
}

static void impostor_end(impostor *i)
{
    cx_thread_join(&i->thread);
    cx_net_listen_end(&i->listener);
}

CX_TEST(remote_a_lost_answer_is_said_and_nothing_is_repeated)
{
    held owner, *h = &owner;
    impostor i;
    REQUIRE(hold_unserved(h, "remote-lost"));
    /* It has read the commit, and is gone. */
    REQUIRE(impostor_begin(&i, h, CX_REMOTE_VERSION, CX_REMOTE_TXN_COMMIT));
    cx_home *home = join(h);
    REQUIRE(home != NULL);
    CHECK_FAILS(append(home, "al", "once", &h->err), h->err, CX_E_IO, "AnswerLost");
    CHECK(strstr(h->err.message, "unknown whether") != NULL);
    CHECK_FAILS(append(home, "al", "twice", &h->err), h->err, CX_E_IO, "HolderGone");
    leave(home);
    impostor_end(&i);
    /* The same of an erasure. */
    REQUIRE(impostor_begin(&i, h, CX_REMOTE_VERSION, CX_REMOTE_ERASE));
    home = join(h);
    CHECK_FAILS(cx_home_erase(home, CX_STR("al"), &h->err), h->err, CX_E_IO, "AnswerLost");
    leave(home);
    impostor_end(&i);
    /* What only reads, or has not begun to write, was not done. */
    REQUIRE(impostor_begin(&i, h, CX_REMOTE_VERSION, CX_REMOTE_TXN_BEGIN));
    home = join(h);
    CHECK_FAILS(append(home, "al", "once", &h->err), h->err, CX_E_IO, "HolderGone");
    CHECK(strstr(h->err.message, "nothing was done") != NULL);
    leave(home);
    impostor_end(&i);
    release(h);
}

CX_TEST(remote_another_version_is_named)
{
    held owner, *h = &owner;
    impostor i;
    cx_home *home = NULL;
    const cx_home_options options = options_of(true);
    REQUIRE(hold_unserved(h, "remote-version"));
    REQUIRE(impostor_begin(&i, h, 9, CX_REMOTE_HELLO));
    CHECK_FAILS(cx_home_open(h->path, &options, &home, &h->err), h->err, CX_E_UNSUPPORTED,
                "OtherVersion");
    CHECK(strstr(h->err.message, "version 9") != NULL);
    CHECK(home == NULL);
    impostor_end(&i);
    /* Gone before it said hello: as if it had not been there. */
    REQUIRE(impostor_begin(&i, h, CX_REMOTE_VERSION, CX_REMOTE_HELLO));
    CHECK_INT(cx_home_open(h->path, &options, &home, &h->err).code, CX_E_IO);
    impostor_end(&i);
    release(h);
}
