/*
 * test_home_root.c - the root over all actors: what it is, that no other caller writes its journal,
 * and that a journal which was removed, cut or rewritten is found although the log was made
 * consistent again (ledger.md §15).
 */
#include "base/api.h"
#include "ledger/internal.h"
#include "tests/support/fault.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { ACTORS = 3 };
static const char *const names[ACTORS] = {"ann", "bob", "cleo"};

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    cx_home *home;
    cx_arena arena;
    cx_err err;
} fixture;

static bool fixture_open(fixture *f, bool read_only)
{
    cx_home_options options = kit_options();
    options.read_only = read_only;
    cx_status status = cx_home_open(f->path, &options, &f->home, &f->err);
    CHECK_STATUS(status, &f->err);
    return !cx_failed(status);
}

static void fixture_close(fixture *f)
{
    CHECK_STATUS(cx_home_close(f->home, &f->err), &f->err);
    f->home = NULL;
}

static bool fixture_init(fixture *f, const char *name)
{
    const cx_home_options options = kit_options();
    memset(f, 0, sizeof *f);
    cx_arena_init(&f->arena, cx_alloc_default(), 0);
    folder_fresh(f->path, name);
    folder_remove(f->path);
    cx_status status = cx_home_create(f->path, CX_SCHEME_CORTEX_1, &options, &f->err);
    CHECK_STATUS(status, &f->err);
    return !cx_failed(status) && fixture_open(f, false);
}

static void fixture_done(fixture *f)
{
    if (f->home != NULL)
        fixture_close(f);
    cx_arena_done(&f->arena);
    folder_remove(f->path);
}

static void add(fixture *f, const char *actor, const char *text)
{
    cx_txn *txn;
    const cx_entry_draft draft = {
        .kind = CX_STR("raw"), .created_at_ns = 5, .payload = cx_str_bytes(cx_str_z(text))};
    CHECK_STATUS(cx_txn_begin(f->home, cx_str_z(actor), &txn, &f->err), &f->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &f->err), &f->err);
    CHECK_STATUS(cx_txn_commit(txn, &f->err), &f->err);
}

static cx_home_root_entry record(fixture *f, int64_t now)
{
    cx_home_root_entry entry = {.seq = UINT64_MAX};
    CHECK_STATUS(cx_home_root_record(f->home, now, &entry, &f->err), &f->err);
    return entry;
}

/* The journal of home roots as it is stored elsewhere. */
static cx_anchor_point anchor_of(fixture *f)
{
    cx_roots roots = {.journal_size = 0};
    CHECK_STATUS(cx_home_roots(f->home, CX_STR(CX_HOME_ROOT_ACTOR), &roots, &f->err), &f->err);
    return (cx_anchor_point){.size = roots.journal_size,
                             .journal_root = roots.journal,
                             .actor = CX_STR(CX_HOME_ROOT_ACTOR)};
}

/* Three actors, a home root, more entries of each, and another home root. */
static bool fill(fixture *f, const char *name)
{
    if (!fixture_init(f, name))
        return false;
    for (int i = 0; i < ACTORS; i++)
        add(f, names[i], "one");
    record(f, 100);
    for (int i = ACTORS - 1; i >= 0; i--)
        add(f, names[i], "two");
    record(f, 200);
    return true;
}

/* --- what it is ------------------------------------------------------------------------------- */

/* Computed from the roots of the actors, with the journal tree. */
static cx_home_root model(fixture *f)
{
    cx_mmr *mmr;
    cx_home_root root = {.actors = 0};
    CHECK_STATUS(cx_mmr_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &mmr, &f->err), &f->err);
    for (int i = 0; i < ACTORS; i++) {
        cx_roots roots = {.journal_size = 0};
        cx_buf leaf;
        CHECK_STATUS(cx_home_roots(f->home, cx_str_z(names[i]), &roots, &f->err), &f->err);
        const cx_home_leaf data = {.actor = cx_str_z(names[i]),
                                   .scheme = CX_SCHEME_CORTEX_1,
                                   .size = roots.journal_size,
                                   .overall = roots.overall};
        cx_buf_init(&leaf, cx_alloc_default());
        cx_home_leaf_encode(&data, &leaf);
        cx_digest hash = cx_home_leaf_hash(cx_buf_bytes(&leaf));
        CHECK_STATUS(cx_mmr_append(mmr, &hash, 1, &f->err), &f->err);
        cx_buf_done(&leaf);
        root.actors++;
        root.entries += roots.journal_size;
    }
    CHECK_STATUS(cx_mmr_root(mmr, root.actors, &root.root, &f->err), &f->err);
    cx_mmr_close(mmr);
    return root;
}

static bool same(const cx_home_root *a, const cx_home_root *b)
{
    return a->actors == b->actors && a->entries == b->entries && cx_digest_eq(&a->root, &b->root);
}

CX_TEST(home_root_is_the_tree_over_the_actors)
{
    fixture f;
    cx_home_root_entry last;
    cx_home_root now, expected;
    bool found = true;
    REQUIRE(fixture_init(&f, "home_root"));
    CHECK(cx_home_root_record(f.home, 1, &last, &f.err).code == CX_E_NOT_FOUND);
    CHECK_STATUS(cx_home_root_last(f.home, &last, &found, &f.err), &f.err);
    CHECK(!found);
    for (int i = 0; i < ACTORS; i++)
        add(&f, names[i], "one");
    expected = model(&f);
    cx_home_root_entry first = record(&f, 100);
    CHECK(first.seq == 0 && first.created_ns == 100 && same(&first.root, &expected));
    /* Nothing has changed: the entry stays the last one. */
    cx_home_root_entry again = record(&f, 101);
    CHECK(again.seq == 0 && again.created_ns == 100);
    add(&f, names[1], "two");
    expected = model(&f);
    CHECK_STATUS(cx_home_root_now(f.home, &now, &f.err), &f.err);
    CHECK(same(&now, &expected));
    CHECK(!cx_digest_eq(&now.root, &first.root.root));
    cx_home_root_entry second = record(&f, 102);
    CHECK(second.seq == 1 && same(&second.root, &expected));
    fixture_close(&f);
    /* A reader computes the same, and so does one who opens it again. */
    for (int read_only = 0; read_only < 2; read_only++) {
        REQUIRE(fixture_open(&f, read_only != 0));
        CHECK_STATUS(cx_home_root_now(f.home, &now, &f.err), &f.err);
        CHECK(same(&now, &expected));
        CHECK_STATUS(cx_home_root_last(f.home, &last, &found, &f.err), &f.err);
        CHECK(found && last.seq == 1 && same(&last.root, &expected));
        cx_home_root_status status;
        cx_home_root_get_status(f.home, &status);
        CHECK(read_only || (status.roots == 2 && status.entries == 4));
        fixture_close(&f);
    }
    (void)CHECK_HOLDS(f.path, true, NULL);
    fixture_done(&f);
}

CX_TEST(home_root_journal_is_written_by_no_other_caller)
{
    fixture f;
    cx_txn *txn;
    cx_manifest manifest;
    REQUIRE(fill(&f, "home_root_reserved"));
    CHECK(cx_txn_begin(f.home, CX_STR("home:root"), &txn, &f.err).code == CX_E_USAGE);
    CHECK(strstr(f.err.message, "reserved") != NULL);
    CHECK(cx_snapshot_make(f.home, CX_STR("home:root"), CX_STR("explicit"), 1, &f.arena, &manifest,
                           &f.err)
              .code == CX_E_USAGE);
    fixture_done(&f);
}

/* --- proofs ----------------------------------------------------------------------------------- */

static cx_finding check_proof(fixture *f, cx_bytes bytes, const cx_journal_point *journal,
                              cx_home_leaf *out_leaf)
{
    cx_home_proof proof;
    cx_home_root root;
    cx_journal_point led;
    cx_finding finding = {.verdict = CX_BROKEN};
    cx_arena_mark mark = cx_arena_mark_now(&f->arena);
    if (!cx_failed(cx_home_proof_decode(bytes, &f->arena, &proof, &f->err)))
        CHECK_STATUS(cx_home_proof_verify(&proof, journal, &f->arena, out_leaf, &root, &led,
                                          &finding, &f->err),
                     &f->err);
    cx_arena_reset(&f->arena, mark);
    return finding;
}

CX_TEST(home_root_proves_each_actor)
{
    fixture f;
    REQUIRE(fill(&f, "home_root_proof"));
    const cx_anchor_point anchor = anchor_of(&f);
    const cx_journal_point journal = {anchor.size, anchor.journal_root};
    for (int i = 0; i < ACTORS; i++) {
        cx_home_proof proof;
        cx_home_leaf leaf = {.size = 0};
        cx_roots roots;
        cx_digest root;
        cx_buf bytes;
        CHECK_STATUS(
            cx_home_root_prove(f.home, cx_str_z(names[i]), 0, &f.arena, &proof, &root, &f.err),
            &f.err);
        CHECK_STATUS(cx_home_roots(f.home, cx_str_z(names[i]), &roots, &f.err), &f.err);
        CHECK(cx_digest_eq(&root, &journal.root));
        cx_buf_init(&bytes, cx_alloc_default());
        cx_home_proof_encode(&proof, &bytes);
        CHECK(check_proof(&f, cx_buf_bytes(&bytes), &journal, &leaf).verdict == CX_HOLDS);
        CHECK(cx_str_is(leaf.actor, names[i]) && leaf.size == 2);
        CHECK(cx_digest_eq(&leaf.overall, &roots.overall));
        /* Any byte of it changed: never "holds". */
        for (size_t at = 0; at < bytes.size; at++) {
            bytes.data[at] ^= (uint8_t)(1u << at % 8);
            CHECK(check_proof(&f, cx_buf_bytes(&bytes), &journal, &leaf).verdict != CX_HOLDS);
            bytes.data[at] ^= (uint8_t)(1u << at % 8);
        }
        const cx_journal_point other = {journal.size + 1, journal.root};
        CHECK(check_proof(&f, cx_buf_bytes(&bytes), &other, &leaf).verdict == CX_BROKEN);
        cx_buf_done(&bytes);
    }
    cx_home_proof none;
    cx_digest none_root;
    CHECK(cx_home_root_prove(f.home, CX_STR("dora"), 0, &f.arena, &none, &none_root, &f.err).code ==
          CX_E_NOT_FOUND);
    CHECK(cx_home_root_prove(f.home, CX_STR("ann"), 1, &f.arena, &none, &none_root, &f.err).code ==
          CX_E_CONFLICT);
    /* Newer entries do not disturb the proof under the root recorded last. */
    add(&f, names[0], "three");
    CHECK_STATUS(
        cx_home_root_prove(f.home, cx_str_z(names[0]), 0, &f.arena, &none, &none_root, &f.err),
        &f.err);
    fixture_done(&f);
}

/* --- an attacker who writes a consistent log -------------------------------------------------- */

typedef enum attack {
    ATTACK_NONE,
    ATTACK_REMOVE,      /* all entries of bob */
    ATTACK_CUT,         /* bob's last entry */
    ATTACK_REWRITE,     /* what bob said first */
    ATTACK_FORGET,      /* bob, and the home roots */
    ATTACK_RECORD_AGAIN /* bob, and home roots that agree with the rest */
} attack;

static bool is_left_out(attack how, const cx_tail_item *item)
{
    bool bob = cx_str_is(item->actor, "bob"), root = cx_home_root_reserved(item->actor);
    switch (how) {
    case ATTACK_REMOVE: return bob;
    case ATTACK_CUT: return bob && item->entry.seq == 1;
    case ATTACK_FORGET:
    case ATTACK_RECORD_AGAIN: return bob || root;
    default: return false;
    }
}

static void copy_frame(fixture *to, const cx_tail_item *item, attack how)
{
    cx_txn *txn;
    cx_entry_draft draft = {.kind = item->entry.kind,
                            .created_at_ns = item->entry.created_at_ns,
                            .created_by = item->entry.created_by,
                            .payload = item->payload};
    if (how == ATTACK_REWRITE && cx_str_is(item->actor, "bob") && item->entry.seq == 0)
        draft.payload = cx_str_bytes(CX_STR("never"));
    CHECK_STATUS(cx_txn_begin_reserved(to->home, item->actor, CX_SCHEME_CORTEX_1, &txn, &to->err),
                 &to->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &to->err), &to->err);
    for (size_t i = 0; i < item->change_count; i++)
        if (!cx_str_starts(cx_bytes_str(item->changes[i].key), CX_STR("meta/")))
            CHECK_STATUS(
                cx_txn_put(txn, item->changes[i].key, item->changes[i].value, false, &to->err),
                &to->err);
    CHECK_STATUS(cx_txn_commit(txn, &to->err), &to->err);
}

/* A new home with the frames of another one, without those that are left out. */
static bool forge(fixture *from, fixture *to, attack how)
{
    cx_tail *tail;
    if (!fixture_init(to, "home_root_forged"))
        return false;
    CHECK_STATUS(cx_tail_begin(from->home, (cx_position){0, 0}, &tail, &from->err), &from->err);
    for (;;) {
        cx_tail_item item;
        bool end = false;
        CHECK_STATUS(cx_tail_next(tail, &item, &end, &from->err), &from->err);
        if (end)
            break;
        if (item.actor.size != 0 && item.has_entry && !is_left_out(how, &item))
            copy_frame(to, &item, how);
    }
    cx_tail_end(tail);
    if (how == ATTACK_RECORD_AGAIN) {
        record(to, 100);
        add(to, names[0], "more");
        record(to, 200);
    }
    fixture_close(to);
    return true;
}

/* Verification finds `reason` and names `actor`, also of a copy without tables. */
static void check_found(const char *path, const cx_anchor_point *anchor, const char *reason,
                        const char *actor)
{
    const cx_home_verify_options options = {
        .home = kit_options(), .anchors = anchor, .anchor_count = anchor == NULL ? 0 : 1};
    cx_home_report *report;
    cx_err err = {0};
    bool found = false;
    CHECK_STATUS(cx_home_verify(path, &options, &report, &err), &err);
    CHECK(cx_home_report_verdict(report) == CX_BROKEN);
    for (size_t i = 0; i < cx_home_report_count(report); i++) {
        const cx_home_finding *finding = cx_home_report_finding(report, i);
        found = found || (strcmp(finding->reason, reason) == 0 && cx_str_is(finding->actor, actor));
    }
    CHECK(found);
    cx_home_report_close(report);
}

CX_TEST(home_root_finds_what_was_taken_from_a_consistent_log)
{
    static const struct {
        attack how;
        const char *reason, *actor; /* without an anchor; NULL = it holds */
        const char *anchored;       /* with one: of the journal home:root */
    } rows[] = {
        {ATTACK_NONE, NULL, NULL, NULL},
        {ATTACK_REMOVE, "HomeRootDiffers", "bob", NULL},
        {ATTACK_CUT, "HomeRootDiffers", "bob", NULL},
        {ATTACK_REWRITE, "HomeRootDiffers", "bob", NULL},
        {ATTACK_FORGET, NULL, NULL, "Truncated"},
        {ATTACK_RECORD_AGAIN, NULL, NULL, "Forked"},
    };
    fixture f, forged;
    REQUIRE(fill(&f, "home_root_attacked"));
    const cx_anchor_point anchor = anchor_of(&f);
    CHECK_INT(anchor.size, 2);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        REQUIRE(forge(&f, &forged, rows[i].how));
        if (rows[i].reason == NULL)
            (void)CHECK_HOLDS(forged.path, true, NULL);
        else
            check_found(forged.path, NULL, rows[i].reason, rows[i].actor);
        if (rows[i].anchored != NULL)
            check_found(forged.path, &anchor, rows[i].anchored, CX_HOME_ROOT_ACTOR);
        else if (rows[i].reason == NULL)
            CHECK(kit_verify(forged.path, (cx_str){NULL, 0}, &anchor).verdict == CX_HOLDS);
        fixture_done(&forged);
    }
    fixture_done(&f);
}

/* Each entry is compared with the state at its own position. */
CX_TEST(home_root_is_checked_at_every_entry)
{
    fixture f;
    char name[16];
    REQUIRE(fixture_init(&f, "home_root_many"));
    for (int i = 0; i < 40; i++) {
        (void)snprintf(name, sizeof name, "a%d", i * 7 % 23);
        add(&f, name, "x");
        if (i % 3 == 0)
            CHECK_INT(record(&f, i).seq, i / 3);
    }
    fixture_close(&f);
    (void)CHECK_HOLDS(f.path, true, NULL);
    kit_remove_tables(f.path);
    const cx_home_verify_options options = {.home = kit_options()};
    cx_home_report *report;
    CHECK_STATUS(cx_home_verify(f.path, &options, &report, &f.err), &f.err);
    const cx_home_totals *totals = cx_home_report_totals(report);
    CHECK(totals->has_home_root);
    CHECK_INT(totals->home_root.seq, 13);
    CHECK_INT(totals->home_root.root.actors, 23);
    CHECK_INT(totals->recorded, 40);
    cx_home_report_close(report);
    fixture_done(&f);
}

/* An entry of another kind, or one that is no home root, in that journal. */
CX_TEST(home_root_journal_with_something_else_is_broken)
{
    fixture f;
    cx_txn *txn;
    static const char *const kinds[] = {"raw", "home.root"};
    for (int i = 0; i < 2; i++) {
        REQUIRE(fill(&f, "home_root_else"));
        const cx_entry_draft draft = {
            .kind = cx_str_z(kinds[i]), .created_at_ns = 5, .payload = cx_str_bytes(CX_STR("x"))};
        CHECK_STATUS(cx_txn_begin_reserved(f.home, CX_STR(CX_HOME_ROOT_ACTOR), CX_SCHEME_CORTEX_1,
                                           &txn, &f.err),
                     &f.err);
        CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &f.err), &f.err);
        CHECK_STATUS(cx_txn_commit(txn, &f.err), &f.err);
        fixture_close(&f);
        check_found(f.path, NULL, "HomeRootMalformed", CX_HOME_ROOT_ACTOR);
        fixture_done(&f);
    }
}

/* The leaf of an actor as it is now, in the arena. */
static cx_home_leaf leaf_of(fixture *f, int i)
{
    cx_roots roots = {.journal_size = 0};
    CHECK_STATUS(cx_home_roots(f->home, cx_str_z(names[i]), &roots, &f->err), &f->err);
    return (cx_home_leaf){.actor = cx_str_z(names[i]),
                          .scheme = CX_SCHEME_CORTEX_1,
                          .size = roots.journal_size,
                          .overall = roots.overall};
}

/* An entry home.root over these leaves, of which only some are recorded with it. */
static void make_up(fixture *f, const cx_home_leaf leaves[ACTORS], const bool recorded[ACTORS],
                    uint64_t entries, bool other_root)
{
    cx_txn *txn;
    cx_mmr *mmr;
    cx_buf bytes[ACTORS], payload;
    cx_home_root root = {.actors = ACTORS, .entries = entries};
    CHECK_STATUS(cx_mmr_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &mmr, &f->err), &f->err);
    for (int i = 0; i < ACTORS; i++) {
        cx_buf_init(&bytes[i], cx_alloc_default());
        cx_home_leaf_encode(&leaves[i], &bytes[i]);
        const cx_digest hash = cx_home_leaf_hash(cx_buf_bytes(&bytes[i]));
        CHECK_STATUS(cx_mmr_append(mmr, &hash, 1, &f->err), &f->err);
    }
    CHECK_STATUS(cx_mmr_root(mmr, ACTORS, &root.root, &f->err), &f->err);
    root.root.bytes[0] ^= other_root ? 1 : 0;
    cx_mmr_close(mmr);
    cx_buf_init(&payload, cx_alloc_default());
    cx_home_root_encode(&root, &payload);
    const cx_entry_draft draft = {
        .kind = CX_STR("home.root"), .created_at_ns = 5, .payload = cx_buf_bytes(&payload)};
    CHECK_STATUS(cx_txn_begin_reserved(f->home, CX_STR(CX_HOME_ROOT_ACTOR), CX_SCHEME_CORTEX_1,
                                       &txn, &f->err),
                 &f->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &f->err), &f->err);
    for (uint64_t i = 0; i < ACTORS; i++) {
        uint8_t key[CX_HOME_LEAF_KEY_SIZE];
        if (recorded[i])
            CHECK_STATUS(
                cx_txn_put(txn, cx_home_leaf_key(i, key), cx_buf_bytes(&bytes[i]), false, &f->err),
                &f->err);
        cx_buf_done(&bytes[i]);
    }
    CHECK_STATUS(cx_txn_commit(txn, &f->err), &f->err);
    cx_buf_done(&payload);
}

/* Home roots that their writer made up, each consistent in itself; the last row is a right one. */
CX_TEST(home_root_that_was_made_up_is_found)
{
    static const struct {
        bool changes;          /* bob has one more entry */
        bool stale, false_one; /* bob's leaf is the one before, or covers another number */
        bool recorded;         /* bob's leaf, with the entry */
        bool more_entries, other_root;
        const char *reason, *actor; /* NULL = it holds */
    } rows[] = {{true, true, false, false, false, false, "HomeRootDiffers", "bob"},
                {true, true, false, true, false, false, "HomeRootDiffers", "bob"},
                {false, false, true, true, false, false, "HomeRootDiffers", "bob"},
                {true, false, true, true, false, false, "HomeRootDiffers", "bob"},
                {true, false, false, true, true, false, "HomeRootDiffers", ""},
                {true, false, false, true, false, true, "HomeRootDiffers", ""},
                {true, false, false, false, false, false, "HomeLeafDiffers", "bob"},
                {true, false, false, true, false, false, NULL, NULL}};
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        fixture f;
        cx_home_leaf leaves[ACTORS];
        bool recorded[ACTORS] = {false, rows[i].recorded, false};
        REQUIRE(fill(&f, "home_root_made_up"));
        const cx_home_leaf before = leaf_of(&f, 1);
        if (rows[i].changes)
            add(&f, "bob", "three");
        for (int k = 0; k < ACTORS; k++)
            leaves[k] = leaf_of(&f, k);
        if (rows[i].stale)
            leaves[1] = before;
        if (rows[i].false_one)
            leaves[1].overall.bytes[0] ^= 1;
        make_up(&f, leaves, recorded,
                UINT64_C(2) * ACTORS + (rows[i].changes ? 1 : 0) + (rows[i].more_entries ? 1 : 0),
                rows[i].other_root);
        fixture_close(&f);
        if (rows[i].reason == NULL)
            (void)CHECK_HOLDS(f.path, true, NULL);
        else
            check_found(f.path, NULL, rows[i].reason, rows[i].actor);
        fixture_done(&f);
    }
}

/* Rows of the tree in the log itself lead to a home root that is none. */
CX_TEST(home_root_whose_tree_is_in_the_log_is_broken)
{
    fixture f;
    cx_txn *txn;
    cx_buf payload;
    uint8_t key[14] = "tree/", row[ACTORS * 32];
    cx_mmr *mmr;
    cx_home_root fake = {.actors = ACTORS, .entries = 2 * ACTORS};
    REQUIRE(fill(&f, "home_root_rows"));
    memset(row, 7, sizeof row);
    CHECK_STATUS(cx_mmr_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &mmr, &f.err), &f.err);
    CHECK_STATUS(cx_mmr_append(mmr, (const cx_digest *)(const void *)row, ACTORS, &f.err), &f.err);
    CHECK_STATUS(cx_mmr_root(mmr, ACTORS, &fake.root, &f.err), &f.err);
    cx_mmr_close(mmr);
    cx_buf_init(&payload, cx_alloc_default());
    cx_home_root_encode(&fake, &payload);
    const cx_entry_draft draft = {
        .kind = CX_STR("home.root"), .created_at_ns = 5, .payload = cx_buf_bytes(&payload)};
    CHECK_STATUS(
        cx_txn_begin_reserved(f.home, CX_STR(CX_HOME_ROOT_ACTOR), CX_SCHEME_CORTEX_1, &txn, &f.err),
        &f.err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, NULL, &f.err), &f.err);
    CHECK_STATUS(cx_txn_put(txn, cx_bytes_from(key, sizeof key), cx_bytes_from(row, sizeof row),
                            false, &f.err),
                 &f.err);
    CHECK_STATUS(cx_txn_commit(txn, &f.err), &f.err);
    cx_buf_done(&payload);
    fixture_close(&f);
    check_found(f.path, NULL, "HomeRootMalformed", CX_HOME_ROOT_ACTOR);
    check_found(f.path, NULL, "HomeRootDiffers", "");
    fixture_done(&f);
}

/* --- memory that runs out --------------------------------------------------------------------- */

/* Opens, records, proves and closes; whether all of it succeeded. */
static bool record_with(const fixture *f, const cx_alloc *alloc)
{
    cx_home_options options = kit_options();
    cx_home_root_entry entry;
    cx_home_proof proof;
    cx_digest root;
    cx_home *home;
    cx_arena arena;
    options.alloc = alloc;
    if (cx_failed(cx_home_open(f->path, &options, &home, NULL)))
        return false;
    cx_arena_init(&arena, alloc, 0);
    bool good = !cx_failed(cx_home_root_record(home, 300, &entry, NULL)) &&
                !cx_failed(cx_home_root_prove(home, CX_STR("bob"), 0, &arena, &proof, &root, NULL));
    cx_arena_done(&arena);
    return !cx_failed(cx_home_close(home, NULL)) && good;
}

static bool verify_with(const fixture *f, const cx_alloc *alloc)
{
    cx_home_verify_options options = {.home = kit_options()};
    cx_home_report *report = NULL;
    options.home.alloc = alloc;
    bool good = !cx_failed(cx_home_verify(f->path, &options, &report, NULL));
    CHECK(!good || cx_home_report_verdict(report) == CX_HOLDS);
    cx_home_report_close(report);
    return good;
}

CX_TEST(home_root_survives_failing_memory)
{
    fixture f;
    REQUIRE(fill(&f, "home_root_memory"));
    fixture_close(&f);
    for (int verifies = 0; verifies < 2; verifies++)
        for (uint64_t fail_at = 1;; fail_at++) {
            fault_alloc memory;
            if (!verifies) { /* something to record */
                REQUIRE(fixture_open(&f, false));
                add(&f, names[fail_at % ACTORS], "again");
                fixture_close(&f);
            }
            fault_alloc_init(&memory, fail_at, false);
            bool good = verifies ? verify_with(&f, &memory.alloc) : record_with(&f, &memory.alloc);
            bool fired = atomic_load(&memory.fired) != 0;
            CHECK(good || fired);
            CHECK_INT(atomic_load(&memory.live_bytes), 0);
            if (!fired)
                break;
        }
    (void)CHECK_HOLDS(f.path, true, NULL);
    fixture_done(&f);
}
