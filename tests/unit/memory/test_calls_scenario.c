/*
 * test_calls_scenario.c - the recorded scenarios through our calls: every root, entry, id, record
 * and reading of the clock is that of the original run, under both schemes; what is derived is the
 * same after a rebuild.
 */
#include "ledger/snapshot.h"
#include "memory/apply.h"
#include "tests/unit/memory/calls.h"

static void compare_hex(const char *what, size_t step, const uint8_t *bytes, size_t size,
                        cx_str expected)
{
    char hex[2 * 1024];
    if (expected.data == NULL || size > sizeof hex / 2)
        return;
    cx_hex_encode(cx_bytes_from(bytes, size), hex);
    if (!cx_str_eq(cx_str_from(hex, 2 * size), expected))
        cx_test_fail(__FILE__, __LINE__, "step %zu: %s is %.*s, expected %.*s", step, what,
                     (int)(2 * size), hex, (int)expected.size, expected.data);
}

static void compare_roots(calls *kit, size_t number, const scenario_step *step)
{
    cx_roots roots;
    if (step->overall.data == NULL || calls_entries(kit) == 0)
        return;
    CHECK_STATUS(cx_home_roots(kit->home, cx_memory_actor(kit->memory), &roots, &kit->err),
                 &kit->err);
    compare_hex("the journal root", number, roots.journal.bytes, 32, step->journal);
    compare_hex("the memories root", number, roots.memories.bytes, 32, step->memories);
    compare_hex("the edges root", number, roots.edges.bytes, 32, step->edges);
    compare_hex("the overall root", number, roots.overall.bytes, 32, step->overall);
}

static void compare_entry(calls *kit, size_t number, const scenario_step *step)
{
    cx_entry_view entry;
    uint64_t count = calls_entries(kit);
    if (step->has_next_seq)
        CHECK_INT(count, step->next_seq);
    if (count == 0 || step->leaf.data == NULL)
        return;
    CHECK_STATUS(cx_home_entry(kit->home, cx_memory_actor(kit->memory), count - 1, &kit->arena,
                               &entry, &kit->err),
                 &kit->err);
    compare_hex("the entry", number, entry.bytes.data, entry.bytes.size, step->entry);
    compare_hex("the leaf hash", number, entry.leaf_hash.bytes, 32, step->leaf);
}

static void run_step(calls *kit, cx_apply *apply, size_t number, const scenario_step *step)
{
    cx_applied_step done = {0};
    cx_status status = cx_apply_step(apply, &step->step, &kit->arena, &done, &kit->err);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "step %zu: %s", number, kit->err.message);
        return;
    }
    if (done.refused != step->refused)
        cx_test_fail(__FILE__, __LINE__, "step %zu: %s", number,
                     done.refused ? done.reason.message : "was not refused");
    if (step->refused)
        CHECK_STR(fixture_tag(&done.reason), "Tombstoned");
    if (step->uri.data != NULL)
        CHECK(done.has_uri && cx_str_eq(done.uri, step->uri));
    compare_roots(kit, number, step);
    compare_entry(kit, number, step);
}

/* Steps from..to (not included). */
static void run_steps(calls *kit, const scenario *recorded, scenario_given given, size_t from,
                      size_t to)
{
    cx_apply *apply = NULL;
    cx_memory_options options = {0};
    if (given == SCENARIO_GENERATED)
        options = calls_options(kit);
    REQUIRE(!cx_failed(cx_apply_open(kit->home, recorded->actor, &options, &apply, &kit->err)));
    for (size_t i = from; i < to; i++) {
        const scenario_step *step = &recorded->steps[i];
        for (unsigned n = 0; n < step->idle_reads && given == SCENARIO_GENERATED; n++)
            (void)calls_now(kit);
        if (!step->runs)
            continue;
        run_step(kit, apply, i, step);
        if (given == SCENARIO_GENERATED && step->has_clock)
            CHECK_INT(atomic_load(&kit->clock), step->clock_ns);
    }
    cx_apply_close(apply);
}

typedef cx_status load_scenario(const cx_json *file, const cx_json *other, scenario_given given,
                                cx_arena *arena, scenario *out, cx_err *err);

static void replay(const char *name, const char *actor, load_scenario *load, cx_scheme scheme,
                   scenario_given given)
{
    calls kit;
    fixture files;
    cx_json file, other;
    scenario recorded;
    char path[128];
    fixture_init(&files);
    (void)snprintf(path, sizeof path, "vectors/ledger/matrix-1/%s.json", name);
    bool good = fixture_load(&files, path, &file);
    (void)snprintf(path, sizeof path, "vectors/ledger/cortex-1/%s.json", name);
    good = good && (scheme == CX_SCHEME_MATRIX_1 || fixture_load(&files, path, &other));
    if (good && calls_init(&kit, "scenario", actor, scheme)) {
        CHECK_STATUS(load(&file, scheme == CX_SCHEME_MATRIX_1 ? NULL : &other, given, &files.arena,
                          &recorded, &kit.err),
                     &kit.err);
        CHECK(recorded.count > 20);
        run_steps(&kit, &recorded, given, 0, recorded.count);
        calls_done(&kit);
    }
    fixture_done(&files);
}

CX_TEST(scenario_matrix)
{
    replay("scenario", "andrew", scenario_main, CX_SCHEME_MATRIX_1, SCENARIO_GENERATED);
}

CX_TEST(scenario_cortex)
{
    replay("scenario", "andrew", scenario_main, CX_SCHEME_CORTEX_1, SCENARIO_GENERATED);
}

CX_TEST(scenario_with_ids_and_times_in_its_steps)
{
    replay("scenario", "andrew", scenario_main, CX_SCHEME_MATRIX_1, SCENARIO_WRITTEN);
    replay("scenario", "andrew", scenario_main, CX_SCHEME_CORTEX_1, SCENARIO_WRITTEN);
}

CX_TEST(scenario_large_matrix)
{
    replay("scenario_large_first60", "bulk", scenario_large, CX_SCHEME_MATRIX_1,
           SCENARIO_GENERATED);
}

CX_TEST(scenario_large_cortex)
{
    replay("scenario_large_first60", "bulk", scenario_large, CX_SCHEME_CORTEX_1,
           SCENARIO_GENERATED);
    replay("scenario_large_first60", "bulk", scenario_large, CX_SCHEME_CORTEX_1, SCENARIO_WRITTEN);
}

/* --- records ---------------------------------------------------------------------------------- */

/* Keys whose values are the same in the original: canonical ones, and of the derived ones those
 * that our document writes down. */
static const char *const comparable[] = {"m/",
                                         "mv/",
                                         "e/",
                                         "tomb/",
                                         "chk/",
                                         "snap/",
                                         "idx/type/",
                                         "idx/tag/",
                                         "idx/frame/",
                                         "idx/actor_obj/",
                                         "salience/",
                                         "vec/meta/",
                                         "meta/salience_weights",
                                         "meta/embed_vertex_next"};

static bool is_comparable(cx_str key)
{
    for (size_t i = 0; i < CX_COUNT_OF(comparable); i++)
        if (cx_str_starts(key, cx_str_z(comparable[i])))
            return true;
    return false;
}

/* The original computes the cached score with the weights of the beginning, ours with those of the
 * moment; nothing reads it. */
static bool same_salience(cx_bytes a, cx_bytes b)
{
    cx_salience left, right;
    if (cx_failed(cx_salience_decode(a, &left, NULL)) ||
        cx_failed(cx_salience_decode(b, &right, NULL)))
        return false;
    return left.last_used_ns == right.last_used_ns && left.access == right.access &&
           left.citations == right.citations && left.importance == right.importance &&
           left.pinned == right.pinned && left.computed_at_ns == right.computed_at_ns;
}

static void compare_row(calls *kit, cx_bytes key, cx_bytes wanted)
{
    cx_bytes value = {NULL, 0};
    bool found = false;
    CHECK_STATUS(cx_home_get(kit->home, cx_memory_actor(kit->memory), key, &kit->arena, &value,
                             &found, &kit->err),
                 &kit->err);
    bool salience = cx_str_starts(cx_bytes_str(key), CX_STR("salience/"));
    if (found && (salience ? same_salience(value, wanted) : fixture_same(value, wanted)))
        return;
    cx_buf_clear(&kit->buf);
    cx_hex_add(&kit->buf, key);
    cx_buf_add_z(&kit->buf, " is ");
    cx_hex_add(&kit->buf, value);
    cx_buf_add_z(&kit->buf, ", expected ");
    cx_hex_add(&kit->buf, wanted);
    cx_test_fail(__FILE__, __LINE__, "%.*s", (int)kit->buf.size, (const char *)kit->buf.data);
}

/* Each of the dump's keys has its value here, and there are no others. */
static void compare_dump(calls *kit, fixture *files, const cx_json *dump)
{
    size_t expected = 0, rows = 0;
    REQUIRE(dump != NULL && dump->count > 10);
    for (uint32_t i = 0; i < dump->count; i++) {
        cx_bytes key = fixture_hex_of(files, &dump->items[i], "k");
        if (!is_comparable(cx_bytes_str(key)))
            continue;
        expected++;
        compare_row(kit, key, fixture_hex_of(files, &dump->items[i], "v"));
    }
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(comparable); i++)
        calls_dump(kit, comparable[i], &text);
    for (size_t i = 0; i < text.size; i++)
        rows += text.data[i] == '\n' ? 1 : 0;
    CHECK_INT(rows, expected);
    cx_buf_done(&text);
}

CX_TEST(scenario_leaves_the_records_of_the_original)
{
    calls kit;
    fixture files;
    cx_json file;
    scenario recorded;
    fixture_init(&files);
    if (fixture_load(&files, "vectors/ledger/matrix-1/scenario.json", &file) &&
        calls_init(&kit, "records", "andrew", CX_SCHEME_MATRIX_1)) {
        CHECK_STATUS(
            scenario_main(&file, NULL, SCENARIO_GENERATED, &files.arena, &recorded, &kit.err),
            &kit.err);
        /* The dump was taken before the last step. */
        run_steps(&kit, &recorded, SCENARIO_GENERATED, 0, recorded.count - 1);
        compare_dump(&kit, &files,
                     CX_JSON_GET(&file, "keyspace_dump_before_rebuild_excluding_smt"));
        calls_done(&kit);
    }
    fixture_done(&files);
}

CX_TEST(scenario_embed_under_both_schemes)
{
    for (int scheme = CX_SCHEME_CORTEX_1; scheme <= CX_SCHEME_MATRIX_1; scheme++) {
        calls kit;
        fixture files;
        cx_json file;
        scenario recorded;
        fixture_init(&files);
        if (fixture_load(&files, "vectors/ledger/matrix-1/scenario_embed.json", &file) &&
            calls_init(&kit, "embed", "emb", (cx_scheme)scheme)) {
            CHECK_STATUS(scenario_embed(&file, &files.arena, &recorded, &kit.err), &kit.err);
            for (size_t i = 0; i < recorded.count && scheme == CX_SCHEME_CORTEX_1; i++)
                recorded.steps[i].overall = (cx_str){NULL, 0}; /* told for matrix-1 only */
            run_steps(&kit, &recorded, SCENARIO_GENERATED, 0, recorded.count);
            if (scheme == CX_SCHEME_MATRIX_1) {
                cx_manifest manifest;
                CHECK_STATUS(cx_snapshot_make(kit.home, recorded.actor, CX_STR("x"),
                                              calls_now(&kit), &kit.arena, &manifest, &kit.err),
                             &kit.err);
                compare_dump(&kit, &files, CX_JSON_GET(&file, "keyspace_excluding_smt"));
            }
            calls_done(&kit);
        }
        fixture_done(&files);
    }
}

/* --- rebuilt ---------------------------------------------------------------------------------- */

static void dump_all(calls *kit, cx_buf *out)
{
    static const char *const prefixes[] = {"m/",    "mv/",  "e/",        "tomb/", "chk/", "snap/",
                                           "hist/", "idx/", "salience/", "vec/",  "meta/"};
    for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++)
        calls_dump(kit, prefixes[i], out);
}

CX_TEST(scenario_rows_are_the_same_after_a_rebuild)
{
    calls kit;
    fixture files;
    cx_json file;
    scenario recorded;
    cx_buf before, after;
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_init(&after, cx_alloc_default());
    fixture_init(&files);
    if (fixture_load(&files, "vectors/ledger/matrix-1/scenario.json", &file) &&
        calls_init(&kit, "anew", "andrew", CX_SCHEME_CORTEX_1)) {
        char database[FOLDER_PATH_SIZE + 16];
        CHECK_STATUS(
            scenario_main(&file, NULL, SCENARIO_GENERATED, &files.arena, &recorded, &kit.err),
            &kit.err);
        for (size_t i = 0; i < recorded.count; i++) /* its roots are those of the other scheme */
            recorded.steps[i].overall = (cx_str){NULL, 0};
        run_steps(&kit, &recorded, SCENARIO_GENERATED, 0, recorded.count);
        dump_all(&kit, &before);
        cx_digest root = calls_root(&kit);
        calls_shut(&kit);
        (void)snprintf(database, sizeof database, "%s/cortex.db", kit.path);
        CHECK_INT(cx_io_system()->unlink(cx_io_system(), database), 0);
        if (calls_open(&kit, "andrew")) {
            dump_all(&kit, &after);
            cx_digest again = calls_root(&kit);
            CHECK(cx_digest_eq(&root, &again));
            CHECK(before.size > 5000);
            CHECK(cx_str_eq(cx_buf_str(&before), cx_buf_str(&after)));
        }
        calls_done(&kit);
    }
    fixture_done(&files);
    cx_buf_done(&before);
    cx_buf_done(&after);
}
