/*
 * test_home_wipe.c - what was erased is in no file of the home: not on pages that its rows have
 * left long ago, not in the write-ahead log, also not after the same pages were written again; and
 * erasing writes as much in a large home as in a small one.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "db/db.h"
#include "ledger/internal.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

enum { MEMORIES = 900, ERASED = 24, FEW = 450, WORD_SIZE = 64, TEXT_SIZE = 3000 };

/* One word, so that it is in the index of words as it is in the content. */
static void name_word(unsigned number, char out[WORD_SIZE])
{
    (void)snprintf(out, WORD_SIZE, "zq7markedword%05uk", number);
}

/* A text around the word, of any size: rows move when theirs changes. */
static const char *text_of(unsigned number, unsigned size)
{
    static char text[TEXT_SIZE];
    char word[WORD_SIZE];
    name_word(number, word);
    size = size < TEXT_SIZE - WORD_SIZE ? size : TEXT_SIZE - WORD_SIZE;
    int at = snprintf(text, sizeof text, "%s ", word);
    for (unsigned i = 0; at < (int)size; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%u ", i % 3 == 2 ? word : "also",
                       i % 7);
    return text;
}

static bool is_anywhere(const kit *k, unsigned number)
{
    char word[WORD_SIZE];
    name_word(number, word);
    return kit_contains(k->path, word, strlen(word));
}

/*
 * Rows that come in any order and change their size, so that pages are split and joined; after so
 * many writes the tables are flushed.
 */
static void fill(kit *k, cx_uri *uris, unsigned count, unsigned flush_after, uint64_t *seed)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK_STATUS(kit_write(k->memory, text_of(i, 40 + (unsigned)cx_test_random(seed) % 300),
                               &uris[i], &k->err),
                     &k->err);
        if (i % flush_after == 0)
            CHECK_STATUS(cx_home_flush(k->home, &k->err), &k->err);
    }
    for (unsigned i = 0; i < count / 2; i++) {
        unsigned at = (unsigned)(cx_test_random(seed) % count);
        if (i % flush_after == 0)
            CHECK_STATUS(cx_home_flush(k->home, &k->err), &k->err);
        CHECK_STATUS(kit_update(k->memory, &uris[at],
                                text_of(at, 20 + (unsigned)cx_test_random(seed) % 2500), &uris[at],
                                &k->err),
                     &k->err);
    }
}

static void erase(kit *k, const cx_uri *uri)
{
    CHECK_STATUS(
        cx_memory_redact_memory(k->memory, uri, CX_STR("asked for"), CX_STR("me"), &k->err),
        &k->err);
}

CX_TEST(home_erased_content_is_in_no_file)
{
    static cx_uri uris[MEMORIES];
    uint64_t seed = cx_test_seed();
    kit k;
    REQUIRE(kit_init(&k, "wipe", CX_SCHEME_CORTEX_1));
    fill(&k, uris, MEMORIES, 4, &seed);
    CHECK(is_anywhere(&k, 0));
    for (unsigned i = 0; i < ERASED; i++) {
        unsigned gone = i * (MEMORIES / ERASED);
        erase(&k, &uris[gone]);
        CHECK(!is_anywhere(&k, gone));
        /* Neighbours in every index are written again, and with them the pages. */
        for (unsigned j = 1; j < 8; j++)
            CHECK_STATUS(kit_update(k.memory, &uris[gone + j],
                                    text_of(gone + j, 30 + (unsigned)cx_test_random(&seed) % 400),
                                    &uris[gone + j], &k.err),
                         &k.err);
        CHECK_STATUS(cx_home_flush(k.home, &k.err), &k.err);
        for (unsigned j = 0; j <= i; j++)
            if (is_anywhere(&k, j * (MEMORIES / ERASED)))
                cx_test_fail(__FILE__, __LINE__, "memory %u is in a file again (seed %llu)",
                             j * (MEMORIES / ERASED), (unsigned long long)cx_test_seed());
    }
    CHECK(is_anywhere(&k, 1));
    kit_close(&k);
    for (unsigned i = 0; i < ERASED; i++)
        CHECK(!is_anywhere(&k, i * (MEMORIES / ERASED)));
    (void)CHECK_HOLDS(k.path, true, NULL);
    REQUIRE(kit_open(&k));
    kit_done(&k);
}

/* --- how much is written ---------------------------------------------------------------------- */

/* Bytes that this process has written so far; 0 when the system does not say. */
static uint64_t bytes_written(void)
{
    char line[128];
    unsigned long long found = 0;
    FILE *file = fopen("/proc/self/io", "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "wchar: %llu", &found) == 1)
            break;
    (void)fclose(file);
    return found;
}

static uint64_t cost_of_erasing(unsigned count)
{
    static cx_uri uris[8 * FEW];
    uint64_t seed = cx_test_seed();
    kit k;
    if (!kit_init(&k, "wipe_cost", CX_SCHEME_CORTEX_1))
        return 0;
    fill(&k, uris, count, 64, &seed);
    erase(&k, &uris[1]); /* what was written before is moved into the file */
    uint64_t before = bytes_written();
    for (unsigned i = 0; i < 8; i++)
        erase(&k, &uris[count / 10 * i + 5]);
    uint64_t cost = bytes_written() - before;
    kit_done(&k);
    return cost;
}

CX_TEST(home_erasing_does_not_cost_more_in_a_large_home)
{
    uint64_t small = cost_of_erasing(FEW), large = cost_of_erasing(8 * FEW);
    if (small == 0) {
        cx_test_skip("/proc/self/io cannot be read");
        return;
    }
    if (large > small + small / 2)
        cx_test_fail(__FILE__, __LINE__, "%llu bytes, and %llu in a home eight times as large",
                     (unsigned long long)small, (unsigned long long)large);
}

/* --- files that were not written so ----------------------------------------------------------- */

static bool is_clean(const kit *k)
{
    cx_db *db;
    cx_db_statement *statement;
    cx_err err;
    char path[FOLDER_PATH_SIZE + 16];
    bool row = false;
    (void)snprintf(path, sizeof path, "%s/cortex.db", k->path);
    CHECK_STATUS(cx_db_open(path, CX_DB_READ, &db, &err), &err);
    CHECK_STATUS(cx_db_prepare(db, "SELECT 1 FROM meta WHERE name='clean'", &statement, &err),
                 &err);
    CHECK_STATUS(cx_db_step(statement, &row, &err), &err);
    cx_db_finish(statement);
    cx_db_close(db);
    return row;
}

CX_TEST(home_tables_of_another_writer_are_rewritten_once)
{
    static cx_uri uris[200];
    uint64_t seed = cx_test_seed();
    char path[FOLDER_PATH_SIZE + 16];
    cx_db *db;
    kit k;
    REQUIRE(kit_init(&k, "wipe_former", CX_SCHEME_CORTEX_1));
    fill(&k, uris, CX_COUNT_OF(uris), 4, &seed);
    CHECK(is_clean(&k));
    kit_close(&k);
    (void)snprintf(path, sizeof path, "%s/cortex.db", k.path);
    REQUIRE(!cx_failed(cx_db_open(path, CX_DB_WRITE, &db, &k.err)));
    CHECK_STATUS(cx_db_run(db, "DELETE FROM meta WHERE name='clean'", &k.err), &k.err);
    cx_db_close(db);
    REQUIRE(kit_open(&k));
    CHECK(!is_clean(&k));
    erase(&k, &uris[7]);
    CHECK(is_clean(&k));
    CHECK(!is_anywhere(&k, 7));
    kit_done(&k);
}
