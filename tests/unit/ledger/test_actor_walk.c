/*
 * test_actor_walk.c - actors one after the other: all of them, and those whose names begin so.
 */
#include "base/api.h"
#include "ledger/api.h"
#include "tests/support/folder.h"
#include "tests/test.h"

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    cx_home *home;
    cx_arena arena;
    cx_err err;
} fixture;

static void append(fixture *s, const char *actor, unsigned entries)
{
    cx_txn *txn = NULL;
    CHECK_STATUS(cx_txn_begin(s->home, cx_str_z(actor), &txn, &s->err), &s->err);
    for (unsigned i = 0; i < entries; i++) {
        const cx_entry_draft draft = {.kind = CX_STR("raw"),
                                      .created_at_ns = 1700000000000000000 + i,
                                      .payload = cx_str_bytes(CX_STR("x"))};
        CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &s->err), &s->err);
    }
    CHECK_STATUS(cx_txn_commit(txn, &s->err), &s->err);
}

static void open_home(fixture *s, bool read_only)
{
    const cx_home_options options = {.segment_bytes = UINT64_C(1) << 20, .read_only = read_only};
    CHECK_STATUS(cx_home_open(s->path, &options, &s->home, &s->err), &s->err);
}

static void close_home(fixture *s)
{
    CHECK_STATUS(cx_home_close(s->home, &s->err), &s->err);
}

static void begin(fixture *s, const char *name)
{
    const cx_home_options options = {.segment_bytes = UINT64_C(1) << 20};
    memset(s, 0, sizeof *s);
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
    folder_fresh(s->path, name);
    CHECK_STATUS(cx_home_create(s->path, CX_SCHEME_CORTEX_1, &options, &s->err), &s->err);
    open_home(s, false);
}

static void end(fixture *s)
{
    close_home(s);
    cx_arena_done(&s->arena);
    folder_remove(s->path);
}

/* "name:entries name:entries", in the order of the walk. */
static cx_str walked(fixture *s, const char *prefix)
{
    const cx_actor_info *info = NULL;
    cx_actor_walk walk;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_actor_walk_begin_named(&walk, s->home, cx_str_z(prefix));
    while (!cx_failed(cx_actor_walk_next(&walk, &info, &s->err)) && info != NULL)
        cx_buf_printf(&text, "%s%.*s:%u", text.size == 0 ? "" : " ", (int)info->name.size,
                      info->name.data, (unsigned)info->entry_count);
    cx_actor_walk_end(&walk);
    cx_str kept = cx_arena_copy_str(&s->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return kept;
}

CX_TEST(a_walk_by_name_meets_those_and_no_others_in_the_order_of_their_first_entries)
{
    fixture s;
    begin(&s, "walk-named");
    append(&s, "run:zz", 2);
    append(&s, "alice", 1);
    append(&s, "run:aa", 3);
    append(&s, "run;", 1);
    append(&s, "run", 1);
    append(&s, "running", 1);
    append(&s, "run:", 4);
    for (unsigned turn = 0; turn < 3; turn++) {
        CHECK(cx_str_is(walked(&s, "run:"), "run:zz:2 run:aa:3 run::4"));
        CHECK(cx_str_is(walked(&s, "run:a"), "run:aa:3"));
        CHECK(cx_str_is(walked(&s, "nothing:"), ""));
        CHECK(cx_str_is(walked(&s, ""), "run:zz:2 alice:1 run:aa:3 run;:1 run:1 running:1 run::4"));
        close_home(&s); /* what was in memory, then in the tables, then read by a reader */
        open_home(&s, turn != 0);
    }
    end(&s);
}

CX_TEST(a_walk_by_name_goes_on_over_pages)
{
    enum { MANY = 700 };
    fixture s;
    char name[32];
    unsigned count = 0;
    begin(&s, "walk-pages");
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "%s:%u", i % 2 == 0 ? "even" : "odd", i);
        append(&s, name, 1);
    }
    const cx_actor_info *info = NULL;
    cx_actor_walk walk;
    cx_actor_walk_begin_named(&walk, s.home, CX_STR("even:"));
    while (!cx_failed(cx_actor_walk_next(&walk, &info, &s.err)) && info != NULL) {
        (void)snprintf(name, sizeof name, "even:%u", 2 * count);
        CHECK(cx_str_is(info->name, name));
        count++;
        if (count == 300)
            append(&s, "even:late", 1); /* other calls may come between */
    }
    cx_actor_walk_end(&walk);
    CHECK_INT(count, MANY / 2);
    end(&s);
}
