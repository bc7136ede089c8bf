/*
 * store_upgrade.c - tables of the format before become current ones, in place.
 *
 *     format 1  no rows actor/<name>; a planned erasure is erase/<seq> of its actor; no counters
 *     format 2  store.c, erase.c
 *
 * U1  Until the last transaction, which also writes the identity, the tables are those of format 1
 *     for every program: what is added before has no meaning there.
 * U2  How far the names are is written with them, and with the position of the tables.  A program
 *     of format 1 that has written meanwhile has moved that position: then all is done again.
 * U3  Before the identity changes it is counted whether each actor has its name's row.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"

/* Names in one transaction. */
#define BATCH 8192

typedef struct upgrade {
    cx_store *store;
    uint64_t actors; /* the data directory itself included */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *progress_arg;
} upgrade;

static cx_status ask_number(cx_db *db, const char *sql, uint64_t *out, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status))
        *out = row ? (uint64_t)cx_db_int(statement, 0) : 0;
    cx_db_finish(statement);
    return status;
}

/* --- how far it is (U2) ----------------------------------------------------------------------- */

typedef struct mark_text {
    char text[96];
} mark_text;

static void make_mark(const upgrade *u, uint64_t next, mark_text *out)
{
    (void)snprintf(out->text, sizeof out->text, "%" PRIu64 " %" PRIu64 " %" PRIu64,
                   u->store->flushed.commit, u->store->flushed.frames, next);
}

static cx_status put_mark(upgrade *u, uint64_t next, cx_err *err)
{
    mark_text mark;
    cx_db_statement *put = u->store->writing.put_meta;
    make_mark(u, next, &mark);
    cx_db_bind_text(put, 1, CX_STR("upgrade"));
    cx_db_bind_text(put, 2, cx_str_z(mark.text));
    return cx_db_execute(put, err);
}

/* The next actor; 1 = from the beginning. */
static cx_status read_mark(upgrade *u, uint64_t *out, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    mark_text expected;
    *out = 1;
    CX_TRY(cx_db_prepare(u->store->writing.db, "SELECT value FROM meta WHERE name='upgrade'",
                         &statement, err));
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status) && row) {
        const cx_str found = cx_db_text(statement, 0);
        for (uint64_t next = BATCH + 1; next <= u->actors; next += BATCH) {
            make_mark(u, next, &expected);
            if (cx_str_is(found, expected.text))
                *out = next;
        }
        make_mark(u, u->actors, &expected);
        if (cx_str_is(found, expected.text))
            *out = u->actors;
    }
    cx_db_finish(statement);
    return status;
}

/* --- names ------------------------------------------------------------------------------------ */

static cx_status put_name(void *arg, const cx_actor_row *actor, cx_err *err)
{
    upgrade *u = arg;
    if (actor->name.size == 0 || actor->name.size > CX_ACTOR_SIZE_MAX)
        return cx_store_damaged("an actor's row is damaged", err);
    return cx_store_write_actor_name(u->store, actor->id, actor->name, err);
}

static cx_status put_names(upgrade *u, uint64_t from, uint64_t to, cx_err *err)
{
    CX_TRY(cx_store_scan_actors(u->store, (int64_t)from, (int64_t)to, put_name, u, err));
    return put_mark(u, to, err);
}

static cx_status
in_transaction(upgrade *u, uint64_t from, uint64_t to,
               cx_status (*work)(upgrade *u, uint64_t from, uint64_t to, cx_err *err), cx_err *err)
{
    cx_db *db = u->store->writing.db;
    CX_TRY(cx_db_begin_write(db, err));
    cx_status status = work(u, from, to, err);
    if (!cx_failed(status))
        status = cx_db_commit(db, err);
    if (cx_failed(status))
        cx_db_rollback(db);
    return status;
}

/* --- the last transaction --------------------------------------------------------------------- */

typedef struct moved_plan {
    uint8_t key[CX_ERASE_PREFIX_SIZE + 16];
} moved_plan;

/* A plan erase/<seq> of an actor becomes erase/<actor><seq> of the data directory. */
static cx_status move_plan(upgrade *u, int64_t actor, cx_bytes key, cx_bytes value, cx_err *err)
{
    moved_plan moved;
    if (key.size != CX_ERASE_PREFIX_SIZE + 8)
        return cx_store_damaged("a row of a planned erasure is damaged", err);
    memcpy(moved.key, CX_ERASE_PREFIX, CX_ERASE_PREFIX_SIZE);
    for (unsigned i = 0; i < 8; i++)
        moved.key[CX_ERASE_PREFIX_SIZE + i] = (uint8_t)((uint64_t)actor >> (8 * (7 - i)));
    memcpy(moved.key + CX_ERASE_PREFIX_SIZE + 8, key.data + CX_ERASE_PREFIX_SIZE, 8);
    return cx_store_write_record(u->store, CX_ACTOR_HOME,
                                 cx_bytes_from(moved.key, sizeof moved.key), value, err);
}

typedef struct plan_moving {
    upgrade *u;
    int64_t actor;
} plan_moving;

static cx_status move_one(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    plan_moving *moving = arg;
    (void)stop;
    return move_plan(moving->u, moving->actor, key, value, err);
}

/* Planned erasures are few, but an actor with one cannot be found without asking each. */
static cx_status move_plans(upgrade *u, cx_err *err)
{
    for (uint64_t id = 1; id < u->actors; id++) {
        plan_moving moving = {u, (int64_t)id};
        CX_TRY(cx_store_scan(u->store, (int64_t)id, cx_str_bytes(CX_STR(CX_ERASE_PREFIX)),
                             (cx_bytes){NULL, 0}, false, move_one, &moving, err));
    }
    return cx_db_run(u->store->writing.db,
                     "DELETE FROM record WHERE actor > 0 AND actor IN (SELECT id FROM actor)"
                     " AND key >= CAST('erase/' AS BLOB) AND key < CAST('erase0' AS BLOB)",
                     err);
}

/* U3 */
static cx_status check_names(upgrade *u, cx_err *err)
{
    uint64_t names = 0;
    CX_TRY(ask_number(u->store->writing.db,
                      "SELECT count(*) FROM record WHERE actor=0 AND key >= CAST('actor/' AS BLOB)"
                      " AND key < CAST('actor0' AS BLOB)",
                      &names, err));
    return names + 1 == u->actors ? CX_SUCCESS
                                  : cx_store_damaged("the names of actors are not as many as they"
                                                     " are",
                                                     err);
}

static cx_status finish(upgrade *u, uint64_t from, uint64_t to, cx_err *err)
{
    cx_store *store = u->store;
    cx_db *db = store->writing.db;
    cx_db_statement *put = store->writing.put_meta;
    cx_store_counters counters = {.actors = u->actors};
    (void)from;
    (void)to;
    CX_TRY(move_plans(u, err));
    CX_TRY(check_names(u, err));
    CX_TRY(ask_number(db, "SELECT count(*) FROM entry", &counters.entries, err));
    CX_TRY(ask_number(db,
                      "SELECT (SELECT count(*) FROM record) - (SELECT count(*) FROM record"
                      " WHERE actor=0 AND key >= CAST('erase/' AS BLOB)"
                      " AND key < CAST('erase0' AS BLOB))",
                      &counters.records, err));
    CX_TRY(cx_db_run(db, "DELETE FROM meta WHERE name='upgrade'", err));
    cx_db_bind_text(put, 1, CX_STR("identity"));
    cx_db_bind_text(put, 2, store->identity);
    CX_TRY(cx_db_execute(put, err));
    CX_TRY(cx_store_put_position(store, store->identity, store->flushed, &counters, err));
    store->flushing_counters = counters;
    return CX_SUCCESS;
}

cx_status cx_store_upgrade(cx_store *store,
                           void (*progress)(void *arg, const char *what, uint64_t done,
                                            uint64_t total),
                           void *arg, cx_err *err)
{
    CX_ASSERT(store->format == CX_TABLES_BEFORE && !store->shared && store->writing.db != NULL);
    upgrade u = {.store = store, .progress = progress, .progress_arg = arg};
    uint64_t next = 1;
    CX_TRY(cx_store_count_actors(store, &u.actors, err));
    CX_TRY(read_mark(&u, &next, err));
    while (next < u.actors) {
        const uint64_t to = u.actors - next < BATCH ? u.actors : next + BATCH;
        CX_TRY(in_transaction(&u, next, to, put_names, err));
        next = to;
        if (progress != NULL)
            progress(arg, "tables", next, u.actors);
    }
    CX_TRY(in_transaction(&u, 0, 0, finish, err));
    store->counters = store->flushing_counters;
    store->format = CX_TABLES_NOW;
    return CX_SUCCESS;
}
