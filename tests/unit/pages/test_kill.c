/*
 * test_kill.c - a process that is killed while it writes: the anchor that was committed and the
 * rows belong together (T1 of the design: one transaction).
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/unit/pages/pages_kit.h"

enum { ROUNDS = 100000, BATCH = 40, KEYS = 3000 };

/* The changes of a round are a function of its number. */
static void round_pairs(uint64_t round, cx_smt_pair *pairs)
{
    uint64_t random = round * 2654435761u + 1;
    for (size_t i = 0; i < BATCH; i++) {
        pairs[i].key = kit_key(cx_test_random(&random) % KEYS);
        pairs[i].value = kit_key(cx_test_random(&random));
    }
}

static cx_status read_state(kit *k, uint64_t *out_round, cx_err *err)
{
    cx_db_statement *s;
    bool row = false;
    CX_TRY(cx_db_prepare(k->db, "SELECT round, anchor FROM state", &s, err));
    cx_status status = cx_db_step(s, &row, err);
    *out_round = 0;
    if (!cx_failed(status) && row) {
        *out_round = (uint64_t)cx_db_int(s, 0);
        CHECK(cx_pages_anchor_decode(cx_db_bytes(s, 1), &k->anchor));
    }
    cx_db_finish(s);
    return status;
}

static cx_status write_state(kit *k, uint64_t round, cx_err *err)
{
    cx_db_statement *s;
    uint8_t bytes[CX_PAGES_ANCHOR_SIZE];
    cx_pages_anchor_encode(&k->anchor, bytes);
    CX_TRY(cx_db_prepare(k->db, "INSERT OR REPLACE INTO state VALUES(1,?,?)", &s, err));
    cx_db_bind_int(s, 1, (int64_t)round);
    cx_db_bind_bytes(s, 2, cx_bytes_from(bytes, sizeof bytes));
    cx_status status = cx_db_execute(s, err);
    cx_db_finish(s);
    return status;
}

static void open_state(kit *k, const char *path, uint64_t *out_round)
{
    kit_open_at(k, CX_SCHEME_CORTEX_1, path, CX_DB_WRITE, (size_t)1 << 20);
    CHECK_STATUS(
        cx_db_run(k->db, "CREATE TABLE IF NOT EXISTS state(id INTEGER PRIMARY KEY, round, anchor)",
                  &k->err),
        &k->err);
    CHECK_STATUS(read_state(k, out_round, &k->err), &k->err);
}

/* One round, with a snapshot before some. */
static cx_status put_round(kit *k, uint64_t round, cx_err *err)
{
    cx_smt_pair pairs[BATCH];
    round_pairs(round, pairs);
    k->moment =
        (cx_pages_moment){.next_snapshot = round / 5 + 1, .has_newest = true, .newest = round / 5};
    CX_TRY(cx_db_begin_write(k->db, err));
    CX_TRY(cx_pages_put(k->pages, &k->anchor, pairs, BATCH, &k->moment, err));
    CX_TRY(write_state(k, round + 1, err));
    return cx_db_commit(k->db, err);
}

/* Tells by the pipe that a round begins, and goes on until it is killed. */
static _Noreturn void write_until_killed(const char *path, int out)
{
    kit k;
    uint64_t round;
    open_state(&k, path, &round);
    for (; round < ROUNDS; round++)
        if (write(out, "", 1) != 1 || cx_failed(put_round(&k, round, &k.err)))
            break;
    _exit(1);
}

/* Lets a child write some rounds, and kills it in one of them. */
static void write_and_kill(kit *random, const char *path)
{
    int ends[2];
    uint8_t byte;
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        write_until_killed(path, ends[1]);
    }
    (void)close(ends[1]);
    REQUIRE(child > 0);
    for (uint64_t rounds = 1 + kit_below(random, 30); rounds > 0; rounds--)
        CHECK(read(ends[0], &byte, 1) == 1);
    (void)usleep((useconds_t)kit_below(random, 3000));
    int state = 0;
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &state, 0) == child);
    CHECK(WIFSIGNALED(state));
    (void)close(ends[0]);
}

CX_TEST(pages_of_a_writer_that_is_killed)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 8];
    kit k = {.random = cx_test_seed()};
    unsigned kills = getenv("CORTEX_DEEP") != NULL ? 200 : 8;
    cx_smt *model = NULL;
    uint64_t known = 0, random = k.random;
    folder_fresh(folder, "pages-kill");
    REQUIRE(mkdir(folder, 0700) == 0);
    (void)snprintf(path, sizeof path, "%s/t.db", folder);
    CHECK_STATUS(cx_smt_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &model, &k.err), &k.err);
    for (unsigned i = 0; i < kills; i++) {
        uint64_t round;
        k.random = random;
        write_and_kill(&k, path);
        random = k.random;
        open_state(&k, path, &round);
        cx_smt_close(k.model);
        k.model = model;
        CHECK(round >= known);
        for (; known < round; known++) {
            cx_smt_pair pairs[BATCH];
            round_pairs(known, pairs);
            CHECK_STATUS(cx_smt_put_many(model, pairs, BATCH, &k.err), &k.err);
        }
        cx_digest root = kit_model_root(&k), keys[100];
        CHECK(cx_digest_eq(&root, &k.anchor.root));
        for (size_t n = 0; n < CX_COUNT_OF(keys); n++)
            keys[n] = kit_key(kit_below(&k, KEYS));
        const cx_pages_view view = cx_pages_view_now(&k.anchor);
        kit_check_proofs(&k, &view, keys, CX_COUNT_OF(keys));
        k.model = NULL;
        kit_close(&k);
    }
    cx_smt_close(model);
    folder_remove(folder);
}
