/*
 * test_detect_round.c - the detectors on a schedule: what is new, and only that.
 */
#include "recorder/internal.h"
#include "recorder/deliveries.h"
#include "tests/support/recorder_fixture.h"

#define LINKS 40

typedef struct chained {
    fixture s;
    maker m;
    cx_str traces[LINKS]; /* in the order of their audit entries */
    cx_detect_schedule schedule;
} chained;

static void chained_init(chained *c, const char *name)
{
    maker_options options = MAKER_OPTIONS_INIT; /* generic ones state no action to check */
    options.level = "detailed";
    *c = (chained){.schedule = {0}};
    fixture_init(&c->s, name, NULL);
    maker_init(&c->m, "alpha");
    fixture_trust(&c->s, &c->m);
    for (size_t i = 0; i < LINKS; i++)
        c->traces[i] = fixture_make(&c->s, &c->m, &options);
}

static void send(chained *c, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        CHECK_INT(fixture_send(&c->s, c->traces[i], "detailed"), CX_INTAKE_STORED);
}

static cx_detect_round round_of(chained *c)
{
    fixture *s = &c->s;
    cx_index *index = NULL;
    cx_detect_round round = {0};
    const char *path = cx_recorder_index_path(s->path, &s->arena);
    CHECK_STATUS(cx_recorder_feed_now(s->recorder, path, &s->err), &s->err);
    CHECK_STATUS(cx_index_open(path, CX_INDEX_READ, &index, &s->err), &s->err);
    CHECK_STATUS(cx_recorder_detect_round(s->recorder, index, &c->schedule, &round, &s->err),
                 &s->err);
    cx_index_close(index);
    return round;
}

CX_TEST(entries_that_come_out_of_order_between_two_rounds_are_no_gap)
{
    chained c;
    chained_init(&c, "round_order");
    CHECK_INT(round_of(&c).found, 0); /* the first one looks at everything: nothing yet */
    send(&c, 0, 5);
    send(&c, 6, 10);
    CHECK_INT(round_of(&c).chains, 0);
    send(&c, 5, 6);
    CHECK_INT(round_of(&c).found, 0);
    cx_detect_round last = round_of(&c);
    CHECK(last.chains == 1 && last.found == 0);
    CHECK_INT(round_of(&c).chains, 0);
    fixture_done(&c.s);
}

CX_TEST(a_gap_is_found_once_and_its_neighbours_do_not_repeat_it)
{
    chained c;
    cx_detect_round round;
    chained_init(&c, "round_gap");
    send(&c, 0, 10);
    CHECK_INT(round_of(&c).found, 0);
    send(&c, 11, 20);
    CHECK_INT(round_of(&c).found, 0);
    round = round_of(&c);
    CHECK(round.chains == 1 && round.found == 1 && round.raised == 1);
    /* The next day, so that a repetition would be another alert. */
    c.s.now_ns += INT64_C(86400000000000);
    send(&c, 20, 25);
    CHECK_INT(round_of(&c).found, 0);
    round = round_of(&c);
    CHECK(round.chains == 1 && round.found == 0);
    /* A restart continues where it was. */
    fixture_reopen(&c.s);
    c.schedule = (cx_detect_schedule){0};
    send(&c, 26, 30);
    CHECK_INT(round_of(&c).found, 0);
    round = round_of(&c);
    CHECK(round.chains == 1 && round.raised == 1);
    /* What fills a gap is checked on both sides. */
    send(&c, 10, 11);
    send(&c, 25, 26);
    CHECK_INT(round_of(&c).found, 0);
    round = round_of(&c);
    CHECK(round.chains == 2 && round.found == 0);
    fixture_done(&c.s);
}

CX_TEST(the_first_round_looks_at_all_chains)
{
    chained c;
    chained_init(&c, "round_first");
    send(&c, 0, 10);
    send(&c, 12, 20);
    cx_detect_round round = round_of(&c);
    CHECK(round.found == 1 && round.raised == 1);
    CHECK_INT(round_of(&c).raised, 0);
    fixture_done(&c.s);
}

CX_TEST(a_key_that_changes_has_its_chains_checked_whole)
{
    chained c;
    maker late;
    bool is_new;
    const cx_recorder_options keep = {.keep_unknown = true};
    maker_options options = MAKER_OPTIONS_INIT; /* generic ones state no action to check */
    options.level = "detailed";
    c = (chained){.schedule = {0}};
    fixture_init(&c.s, "round_key", &keep);
    maker_init(&late, "late");
    for (size_t i = 0; i < 12; i++) {
        cx_str trace = fixture_make(&c.s, &late, &options);
        if (i != 5)
            CHECK_INT(fixture_send(&c.s, trace, "detailed"), CX_INTAKE_UNVERIFIED);
    }
    CHECK_INT(round_of(&c).found, 0);
    CHECK_INT(round_of(&c).found, 0);
    const cx_trust_key key = maker_key(&late);
    CHECK_STATUS(cx_recorder_key_add(c.s.recorder, &key, &is_new, &c.s.err), &c.s.err);
    CHECK_INT(round_of(&c).found, 0);
    cx_detect_round round = round_of(&c);
    CHECK(round.chains == 1 && round.raised == 1);
    fixture_done(&c.s);
}
