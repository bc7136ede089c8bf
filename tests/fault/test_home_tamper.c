/*
 * test_home_tamper.c - a small home with every kind of record, and one byte of it changed, or a
 * file of it cut or removed: verification never says "holds" about anything but what was written,
 * opening it never gives another root, another record or a proof of something else, and a
 * damaged database never damages the log.  CORTEX_TAMPER=all tries every byte; else some hundreds
 * are changed, the same ones on every machine.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "db/db.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { SEGMENT_HEAD = 4096 };

typedef struct subject {
    kit k;
    kit_verdict whole;
    cx_roots roots;
    cx_buf rows;
    cx_buf contents; /* of the file at hand */
    cx_id ids[2];
    size_t id_count;
    cx_buf leaves[2]; /* their records at the newest snapshot */
    cx_buf manifest;
    uint64_t snapshot;
    char copy[FOLDER_PATH_SIZE];
    uint64_t tried, detected, harmless;
    bool half_erased; /* .. is what was said last */
} subject;

static cx_status first_ids(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    subject *s = arg;
    (void)value;
    (void)err;
    memcpy(s->ids[s->id_count++].bytes, key.data + 2, 16);
    *stop = s->id_count == 2;
    return CX_SUCCESS;
}

static void remember_proof(subject *s)
{
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_MEMORIES, .ids = s->ids, .id_count = 2};
    cx_state_proof proof;
    cx_manifest manifest;
    CHECK_STATUS(cx_snapshot_make(s->k.home, KIT_ACTOR, CX_STR("explicit"), 1, &s->k.arena,
                                  &manifest, &s->k.err),
                 &s->k.err);
    s->snapshot = manifest.snapshot_seq;
    CHECK_STATUS(
        cx_proof_at(s->k.home, KIT_ACTOR, &request, s->snapshot, &s->k.arena, &proof, &s->k.err),
        &s->k.err);
    for (size_t i = 0; i < 2; i++) {
        cx_buf_init(&s->leaves[i], cx_alloc_default());
        cx_buf_add(&s->leaves[i], proof.leaves[i].data, proof.leaves[i].size);
    }
    cx_buf_init(&s->manifest, cx_alloc_default());
    cx_buf_add(&s->manifest, proof.manifest.data, proof.manifest.size);
}

static void name_ids(subject *s)
{
    const cx_scan scan = {
        .actor = KIT_ACTOR, .prefix = cx_str_bytes(CX_STR("m/")), .row = first_ids, .arg = s};
    CHECK_STATUS(cx_home_scan(s->k.home, &scan, &s->k.err), &s->k.err);
}

static bool subject_init(subject *s, const char *name)
{
    static uint8_t large[20000];
    uint64_t seq;
    memset(s, 0, sizeof *s);
    cx_buf_init(&s->rows, cx_alloc_default());
    cx_buf_init(&s->contents, cx_alloc_default());
    if (!kit_init(&s->k, name, CX_SCHEME_CORTEX_1))
        return false;
    kit_fill(&s->k);
    name_ids(s);
    /* Large enough that the log goes on in a second segment. */
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(cx_memory_raw(s->k.memory, CX_STR("raw"), cx_bytes_from(large, sizeof large),
                                   i == 0, CX_STR("me"), &seq, &s->k.err),
                     &s->k.err);
    remember_proof(s);
    cx_uri uri;
    CHECK_STATUS(kit_write(s->k.memory, "behind the snapshot", &uri, &s->k.err), &s->k.err);
    CHECK_STATUS(cx_home_roots(s->k.home, KIT_ACTOR, &s->roots, &s->k.err), &s->k.err);
    kit_close(&s->k);
    folder_fresh(s->copy, "tamper_copy");
    return kit_rows(s->k.path, &s->rows) && CHECK_HOLDS(s->k.path, true, &s->whole);
}

static void subject_done(subject *s)
{
    folder_remove(s->copy);
    cx_buf_done(&s->rows);
    cx_buf_done(&s->contents);
    cx_buf_done(&s->leaves[0]);
    cx_buf_done(&s->leaves[1]);
    cx_buf_done(&s->manifest);
    kit_done(&s->k);
}

/* --- changing bytes --------------------------------------------------------------------------- */

static void load(subject *s, const char *path)
{
    cx_buf_clear(&s->contents);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path, SIZE_MAX, &s->contents, &s->k.err),
                 &s->k.err);
}

static void put_byte(const char *path, size_t at, uint8_t byte)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    CX_ASSERT(file >= 0 && pwrite(file, &byte, 1, (off_t)at) == 1);
    (void)close(file);
}

static uint8_t changed(const subject *s, size_t at)
{
    static const uint8_t masks[] = {0x01, 0x80, 0x10, 0xff, 0x04};
    return s->contents.data[at] ^ masks[at % sizeof masks];
}

/* After the last byte that is not zero: nothing was written there. */
static size_t used_size(const subject *s)
{
    size_t size = s->contents.size;
    while (size > 0 && s->contents.data[size - 1] == 0)
        size--;
    return size;
}

static bool try_all(void)
{
    const char *given = getenv("CORTEX_TAMPER");
    return given != NULL && strcmp(given, "all") == 0;
}

/* Calls `attempt` with one byte of a file changed, for `tries` bytes spread evenly over it, or
 * all. */
static void each_change(subject *s, const char *path, size_t size, size_t tries,
                        bool (*attempt)(subject *s, const char *path, size_t at))
{
    size_t stride = 1;
    /* A stride that has no factor in common with any size goes through all bytes, spread evenly. */
    if (!try_all())
        stride = 7919;
    size_t at = (size_t)(cx_test_seed() * 31 % size), bad = 0;
    size_t end = try_all() || tries > size ? size : tries;
    for (size_t i = 0; i < end && bad < 5; i++, at = (at + stride) % size) {
        s->tried++;
        if (!attempt(s, path, at)) {
            cx_test_fail(__FILE__, __LINE__, "byte %zu of %s, %02x for %02x", at, path,
                         changed(s, at), s->contents.data[at]);
            bad++;
        }
    }
}

static bool same_rows(subject *s, const char *path)
{
    cx_buf rows;
    cx_buf_init(&rows, cx_alloc_default());
    bool same = kit_rows(path, &rows) && cx_str_eq(cx_buf_str(&rows), cx_buf_str(&s->rows));
    cx_buf_done(&rows);
    return same;
}

/* --- verification ----------------------------------------------------------------------------- */

/* What holds must be what was written, and all of it must have been looked at. */
static bool judged_rightly(subject *s)
{
    kit_verdict found = kit_verify(s->k.path, (cx_str){NULL, 0}, NULL);
    if (cx_failed(found.status) || found.verdict == CX_BROKEN) {
        s->detected++;
        return true;
    }
    s->harmless++;
    s->half_erased = found.half_erased != 0;
    if (found.verdict == CX_HOLDS && found.tables_checked &&
        cx_digest_eq(&found.overall, &s->whole.overall) && found.entries == s->whole.entries &&
        same_rows(s, s->k.path))
        return true;
    cx_test_fail(__FILE__, __LINE__, "verdict %d: %s", (int)found.verdict, found.first);
    return false;
}

static bool judge_change(subject *s, const char *path, size_t at)
{
    put_byte(path, at, changed(s, at));
    bool good = judged_rightly(s);
    put_byte(path, at, s->contents.data[at]);
    return good;
}

/* Of the log nothing in use may be changed without being noticed; where something was destroyed,
 * and only there, it is said that bytes are left, and all holds. */
static bool judge_log_change(subject *s, const char *path, size_t at)
{
    uint64_t before = s->harmless;
    bool good = judge_change(s, path, at);
    bool noticed = s->harmless == before || s->half_erased;
    if (!noticed)
        cx_test_fail(__FILE__, __LINE__, "not noticed");
    return good && noticed;
}

static void report(const subject *s, const char *what)
{
    (void)printf("%s: %llu changed, %llu detected, %llu without effect\n", what,
                 (unsigned long long)s->tried, (unsigned long long)s->detected,
                 (unsigned long long)s->harmless);
}

static void segment_path(const subject *s, unsigned number, char out[FOLDER_PATH_SIZE + 32])
{
    (void)snprintf(out, FOLDER_PATH_SIZE + 32, "%s/log/%06u.seg", s->k.path, number);
}

CX_TEST(home_every_byte_of_the_log)
{
    subject s;
    char path[FOLDER_PATH_SIZE + 32];
    REQUIRE(subject_init(&s, "tamper_log"));
    for (unsigned i = 0; i < 2; i++) {
        segment_path(&s, i, path);
        load(&s, path);
        CHECK(used_size(&s) > SEGMENT_HEAD + 1000);
        each_change(&s, path, used_size(&s), 500 / cx_test_step(4), judge_log_change);
    }
    report(&s, "log");
    CHECK(s.detected > 20);
    (void)CHECK_HOLDS(s.k.path, true, NULL);
    subject_done(&s);
}

/* The zeros after the end are not read; in the last segment they may be a torn write. */
CX_TEST(home_bytes_after_the_end_of_the_log)
{
    subject s;
    char path[FOLDER_PATH_SIZE + 32];
    REQUIRE(subject_init(&s, "tamper_behind"));
    for (unsigned i = 0; i < 2; i++) {
        segment_path(&s, i, path);
        load(&s, path);
        for (size_t at = used_size(&s) + 40; at < s.contents.size; at += 9973)
            CHECK(judge_change(&s, path, at));
    }
    CHECK_INT(s.detected, 0);
    subject_done(&s);
}

CX_TEST(home_every_byte_of_the_lock_file)
{
    subject s;
    char path[FOLDER_PATH_SIZE + 32];
    REQUIRE(subject_init(&s, "tamper_lock"));
    (void)snprintf(path, sizeof path, "%s/log/lock", s.k.path);
    load(&s, path);
    for (size_t at = 0; at < s.contents.size; at++)
        CHECK(judge_change(&s, path, at));
    subject_done(&s);
}

CX_TEST(home_every_byte_of_the_database)
{
    subject s;
    char path[FOLDER_PATH_SIZE + 32];
    REQUIRE(subject_init(&s, "tamper_db"));
    (void)snprintf(path, sizeof path, "%s/cortex.db", s.k.path);
    load(&s, path);
    each_change(&s, path, s.contents.size, 800 / cx_test_step(4), judge_change);
    report(&s, "database");
    CHECK(s.detected > 20);
    (void)CHECK_HOLDS(s.k.path, true, NULL);
    subject_done(&s);
}

/* --- cut and removed files -------------------------------------------------------------------- */

/* Shorter than it was: never holds, since a segment has its whole size from the beginning. */
CX_TEST(home_segments_cut)
{
    subject s;
    char path[FOLDER_PATH_SIZE + 32];
    REQUIRE(subject_init(&s, "tamper_cut"));
    for (unsigned i = 0; i < 2; i++) {
        segment_path(&s, i, path);
        load(&s, path);
        size_t step = try_all() ? 1 : 911;
        for (size_t size = 0; size < s.contents.size; size += step) {
            CX_ASSERT(truncate(path, (off_t)size) == 0);
            kit_verdict found = kit_verify(s.k.path, (cx_str){NULL, 0}, NULL);
            if (!cx_failed(found.status) && found.verdict != CX_BROKEN)
                cx_test_fail(__FILE__, __LINE__, "%s cut to %zu: %s", path, size, found.first);
        }
        FILE *file = fopen(path, "wb");
        REQUIRE(file != NULL);
        CHECK(fwrite(s.contents.data, 1, s.contents.size, file) == s.contents.size);
        CHECK(fclose(file) == 0);
        (void)CHECK_HOLDS(s.k.path, true, NULL);
    }
    subject_done(&s);
}

CX_TEST(home_files_removed)
{
    subject s;
    char path[FOLDER_PATH_SIZE + 32], away[FOLDER_PATH_SIZE + 32];
    REQUIRE(subject_init(&s, "tamper_removed"));
    (void)snprintf(away, sizeof away, "%s.away", s.k.path);
    for (unsigned i = 0; i < 2; i++) {
        segment_path(&s, i, path);
        CHECK(rename(path, away) == 0);
        kit_verdict found = kit_verify(s.k.path, (cx_str){NULL, 0}, NULL);
        CHECK(cx_failed(found.status) || found.verdict == CX_BROKEN);
        CHECK(rename(away, path) == 0);
    }
    /* Without its database a home holds all the same, and says that there was none. */
    kit_remove_tables(s.k.path);
    kit_verdict found;
    CHECK(CHECK_HOLDS(s.k.path, false, &found));
    CHECK(!found.tables_checked && cx_digest_eq(&found.overall, &s.whole.overall));
    CHECK(strstr(found.first, "no tables") != NULL);
    REQUIRE(kit_open(&s.k));
    kit_close(&s.k);
    CHECK(same_rows(&s, s.k.path));
    subject_done(&s);
}

/* A database whose maker was killed before its first transaction is none, and not a damaged one. */
CX_TEST(home_empty_database)
{
    subject s;
    char path[FOLDER_PATH_SIZE + 32];
    cx_db *db;
    kit_verdict found;
    REQUIRE(subject_init(&s, "tamper_empty"));
    kit_remove_tables(s.k.path);
    (void)snprintf(path, sizeof path, "%s/cortex.db", s.k.path);
    CHECK_STATUS(cx_db_open(path, CX_DB_WRITE, &db, &s.k.err), &s.k.err);
    cx_db_close(db);
    CHECK(CHECK_HOLDS(s.k.path, false, &found));
    CHECK(!found.tables_checked && strstr(found.first, "no tables") != NULL);
    const cx_home_options options = kit_options();
    cx_rebuild_result result;
    CHECK_STATUS(cx_home_rebuild(s.k.path, &options, CX_REBUILD_VERIFY_ONLY, &result, &s.k.err),
                 &s.k.err);
    REQUIRE(kit_open(&s.k));
    kit_close(&s.k);
    CHECK(same_rows(&s, s.k.path));
    subject_done(&s);
}

/* --- opening a changed home ------------------------------------------------------------------- */

static bool same_bytes(cx_bytes a, const cx_buf *b)
{
    return cx_str_eq(cx_bytes_str(a), cx_buf_str(b));
}

/* Roots, records and proofs are those that they were, or are refused. */
static bool answers_rightly(subject *s, cx_home *home)
{
    cx_arena arena;
    cx_roots roots;
    cx_state_proof proof;
    bool good = true;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (!cx_failed(cx_home_roots(home, KIT_ACTOR, &roots, NULL)))
        good = roots.journal_size == s->roots.journal_size &&
               cx_digest_eq(&roots.overall, &s->roots.overall);
    CHECK(good);
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_MEMORIES, .ids = s->ids, .id_count = 2};
    if (!cx_failed(cx_proof_at(home, KIT_ACTOR, &request, s->snapshot, &arena, &proof, NULL))) {
        good = good && same_bytes(proof.manifest, &s->manifest) &&
               same_bytes(proof.leaves[0], &s->leaves[0]) &&
               same_bytes(proof.leaves[1], &s->leaves[1]);
        CHECK(good);
    }
    for (size_t i = 0; i < 2; i++) {
        uint8_t key[18] = "m/";
        cx_bytes value;
        bool found = false;
        memcpy(key + 2, s->ids[i].bytes, 16);
        if (!cx_failed(cx_home_get(home, KIT_ACTOR, cx_bytes_from(key, sizeof key), &arena, &value,
                                   &found, NULL)) &&
            found)
            good = good && same_bytes(value, &s->leaves[i]);
        CHECK(good);
    }
    cx_arena_done(&arena);
    return good;
}

static bool read_change(subject *s, const char *path, size_t at)
{
    cx_home_options options = kit_options();
    cx_home *home;
    options.read_only = true;
    put_byte(path, at, changed(s, at));
    bool good = true;
    if (cx_failed(cx_home_open(s->k.path, &options, &home, NULL))) {
        s->detected++;
    } else {
        good = answers_rightly(s, home);
        CHECK_STATUS(cx_home_close(home, &s->k.err), &s->k.err);
    }
    put_byte(path, at, s->contents.data[at]);
    return good;
}

/* The same for a writer, which then writes: the log is whole afterwards whatever the database was.
 */
static bool write_change(subject *s, const char *path, size_t at)
{
    const cx_home_options options = kit_options();
    cx_home *home;
    cx_memory *memory;
    cx_uri uri;
    char target[FOLDER_PATH_SIZE * 2];
    kit_copy(s->k.path, s->copy);
    (void)snprintf(target, sizeof target, "%s%s", s->copy, path + strlen(s->k.path));
    put_byte(target, at, changed(s, at));
    if (cx_failed(cx_home_open(s->copy, &options, &home, NULL))) {
        s->detected++;
        return true;
    }
    bool good = answers_rightly(s, home), written = false;
    CHECK_STATUS(cx_memory_open(home, KIT_ACTOR, NULL, &memory, &s->k.err), &s->k.err);
    written = !cx_failed(kit_write(memory, "one more", &uri, NULL));
    cx_memory_close(memory);
    cx_status ignored = cx_home_close(home, NULL); /* may be refused: the tables are damaged */
    (void)ignored;
    kit_remove_tables(s->copy);
    kit_verdict after;
    good = good && CHECK_HOLDS(s->copy, false, &after);
    CHECK(!good || after.entries == s->whole.entries + (written ? 1 : 0));
    return good;
}

CX_TEST(home_reader_of_a_changed_home)
{
    subject s;
    char path[FOLDER_PATH_SIZE + 32];
    REQUIRE(subject_init(&s, "tamper_read"));
    (void)snprintf(path, sizeof path, "%s/cortex.db", s.k.path);
    load(&s, path);
    each_change(&s, path, s.contents.size, 1000, read_change);
    segment_path(&s, 0, path);
    load(&s, path);
    each_change(&s, path, used_size(&s), 500, read_change);
    report(&s, "read");
    (void)CHECK_HOLDS(s.k.path, true, NULL);
    subject_done(&s);
}

/* A segment that is closed is not read when a writer opens: only the database is changed here. */
CX_TEST(home_writer_of_a_changed_home)
{
    subject s;
    char path[FOLDER_PATH_SIZE + 32];
    REQUIRE(subject_init(&s, "tamper_write"));
    (void)snprintf(path, sizeof path, "%s/cortex.db", s.k.path);
    load(&s, path);
    each_change(&s, path, s.contents.size, 48, write_change);
    report(&s, "written to");
    subject_done(&s);
}
