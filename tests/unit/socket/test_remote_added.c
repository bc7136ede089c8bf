/*
 * test_remote_added.c - clients that were let in elsewhere: without a socket in the data directory,
 * over connections that another part of the process hands over (socket.md §7).
 */
#include <stdatomic.h>

#include "tests/support/remote_kit.h"

/* A connection of the writer's side, until it is over. */
typedef struct handed {
    cx_socket socket;
    atomic_int ended;
} handed;

typedef struct elsewhere {
    held *h;
    handed given[4];
    size_t count;
    bool away;
} elsewhere;

static void end(void *arg)
{
    handed *given = arg;
    cx_net_close(given->socket);
    (void)atomic_fetch_add(&given->ended, 1);
}

static cx_status reach(void *arg, int *out, char who[CX_HOME_WHO_SIZE], cx_err *err)
{
    elsewhere *e = arg;
    cx_socket pair[2];
    if (e->away)
        return cx_fail(err, CX_E_NOT_FOUND, "away");
    CX_TRY(cx_net_pair(pair, err));
    handed *given = &e->given[e->count++];
    given->socket = pair[0];
    cx_home_serve_add(e->h->remote, pair[0], end, given);
    (void)snprintf(who, CX_HOME_WHO_SIZE, "the server at nowhere");
    *out = pair[1];
    return CX_SUCCESS;
}

static bool hold_elsewhere(elsewhere *e, held *h, const char *name, cx_remote_options options)
{
    memset(e, 0, sizeof *e);
    e->h = h;
    options.no_socket = true;
    options.txn_timeout_ms = TURN_MS;
    if (!hold_unserved(h, name))
        return false;
    CHECK_STATUS(cx_home_serve_begin(h->home, &options, &h->remote, &h->err), &h->err);
    return h->remote != NULL;
}

static cx_status join_elsewhere(elsewhere *e, cx_home **out)
{
    cx_home_options options = options_of(true);
    options.reach = reach;
    options.reach_arg = e;
    return cx_home_open(e->h->path, &options, out, &e->h->err);
}

static int ended_within(const handed *given, int ms)
{
    const struct timespec nap = {0, 1000000};
    for (; ms > 0 && atomic_load(&given->ended) == 0; ms--)
        (void)nanosleep(&nap, NULL);
    return atomic_load(&given->ended);
}

CX_TEST(remote_clients_of_a_server_write_and_end)
{
    held owner, *h = &owner;
    elsewhere e;
    cx_home *home = NULL;
    REQUIRE(hold_elsewhere(&e, h, "added-write", (cx_remote_options){0}));
    CHECK(access(h->socket, F_OK) != 0);
    CHECK_STATUS(join_elsewhere(&e, &home), &h->err);
    REQUIRE(home != NULL);
    CHECK(cx_home_is_remote(home));
    CHECK_INT(cx_home_owner(home), 0);
    CHECK_STATUS(append(home, "ann", "one", &h->err), &h->err);
    CHECK_INT(entries(h->home, "ann"), 1);
    CHECK_INT(atomic_load(&e.given[0].ended), 0);
    leave(home);
    CHECK_INT(ended_within(&e.given[0], 5000), 1);
    e.away = true;
    CHECK_FAILS(join_elsewhere(&e, &home), h->err, CX_E_BUSY, "Locked");
    release(h);
}

CX_TEST(remote_clients_of_a_server_end_before_it_does)
{
    held owner, *h = &owner;
    elsewhere e;
    cx_home *home = NULL, *late = NULL;
    REQUIRE(hold_elsewhere(&e, h, "added-stop", (cx_remote_options){0}));
    CHECK_STATUS(join_elsewhere(&e, &home), &h->err);
    REQUIRE(home != NULL);
    cx_home_serve_stop(h->remote);
    CHECK_INT(atomic_load(&e.given[0].ended), 1);
    CHECK_FAILS(append(home, "ann", "one", &h->err), h->err, CX_E_BUSY, "HolderEnds");
    CHECK_FAILS(join_elsewhere(&e, &late), h->err, CX_E_BUSY, "HolderEnds");
    CHECK_INT(atomic_load(&e.given[1].ended), 1);
    cx_home_serve_stop(h->remote);
    leave(home);
    release(h);
    CHECK_INT(atomic_load(&e.given[0].ended), 1);
}

CX_TEST(remote_more_clients_of_a_server_than_it_takes_hear_so)
{
    held owner, *h = &owner;
    elsewhere e;
    cx_home *home = NULL, *late = NULL;
    REQUIRE(hold_elsewhere(&e, h, "added-many", (cx_remote_options){.clients_max = 1}));
    CHECK_STATUS(join_elsewhere(&e, &home), &h->err);
    REQUIRE(home != NULL);
    CHECK_FAILS(join_elsewhere(&e, &late), h->err, CX_E_BUSY, "TooManyClients");
    CHECK_INT(atomic_load(&e.given[1].ended), 1);
    leave(home);
    release(h);
}

static bool is_true(void *arg)
{
    return atomic_load((atomic_bool *)arg);
}

/* What it holds may be another's by now: nothing is answered, and nothing is said to be done. */
CX_TEST(remote_who_may_not_answer_does_not)
{
    held owner, *h = &owner;
    elsewhere e;
    cx_home *home = NULL;
    atomic_bool owns;
    atomic_init(&owns, true);
    REQUIRE(hold_elsewhere(&e, h, "added-lost",
                           (cx_remote_options){.may_answer = is_true, .may_answer_arg = &owns}));
    CHECK_STATUS(join_elsewhere(&e, &home), &h->err);
    REQUIRE(home != NULL);
    CHECK_STATUS(append(home, "ann", "one", &h->err), &h->err);
    atomic_store(&owns, false);
    CHECK_FAILS(append(home, "ann", "two", &h->err), h->err, CX_E_IO, "HolderGone");
    CHECK_INT(ended_within(&e.given[0], 5000), 1);
    leave(home);
    release(h);
}

CX_TEST(remote_a_client_that_says_nothing_leaves_its_place)
{
    held owner, *h = &owner;
    elsewhere e;
    cx_home *home = NULL;
    REQUIRE(hold_elsewhere(&e, h, "added-idle", (cx_remote_options){.idle_timeout_ms = SHORT_MS}));
    CHECK_STATUS(join_elsewhere(&e, &home), &h->err);
    REQUIRE(home != NULL);
    CHECK_INT(ended_within(&e.given[0], 5000), 1);
    CHECK_FAILS(append(home, "ann", "one", &h->err), h->err, CX_E_BUSY, "HolderEnds");
    CHECK_INT(entries(h->home, "ann"), 0);
    leave(home);
    release(h);
}
