/*
 * fuzz_path.c - two texts, split at the first line end, as paths of contracts (run.md §7).
 */
#include <string.h>

#include "base/utf8.h"
#include "fuzz/fuzz.h"
#include "rules/path.h"

/* What passes the lint is what everything else counts on. */
static void check_entry(cx_str entry, cx_arena *arena)
{
    char once[4 * CX_RUN_PATH_BYTES_MAX], twice[4 * CX_RUN_PATH_BYTES_MAX];
    size_t once_size, twice_size;
    const char *rule = cx_run_path_lint(entry, NULL);
    bool folds = cx_run_path_fold(entry, once, sizeof once, &once_size);
    FUZZ_CHECK(folds || cx_run_path_protected(entry, NULL));
    if (folds && once_size <= CX_RUN_PATH_BYTES_MAX) {
        FUZZ_CHECK(
            cx_run_path_fold(cx_str_from(once, once_size), twice, sizeof twice, &twice_size));
        FUZZ_CHECK(cx_str_eq(cx_str_from(once, once_size), cx_str_from(twice, twice_size)));
    }
    if (rule != NULL) {
        FUZZ_CHECK(strlen(rule) == 3 && rule[0] == 'P');
        FUZZ_CHECK(!cx_run_path_covers(entry, entry) && !cx_run_path_wide(entry, NULL));
        return;
    }
    FUZZ_CHECK(entry.size != 0 && cx_utf8_valid(entry) && cx_run_text_is_nfc(entry));
    FUZZ_CHECK(entry.data[0] != '/' && memchr(entry.data, 0, entry.size) == NULL);
    FUZZ_CHECK(!cx_run_path_protected(entry, NULL) && folds);
    cx_str plain = cx_run_path_normal(entry, arena);
    FUZZ_CHECK(plain.data != NULL && plain.size != 0);
    /* "./-a" and ". /." are well formed; without their dots they would start or end oddly. */
    const char *plain_rule = cx_run_path_lint(plain, NULL);
    FUZZ_CHECK(plain_rule == NULL || strcmp(plain_rule, "P01") == 0 ||
               strcmp(plain_rule, "P02") == 0 || strcmp(plain_rule, "P05") == 0);
    FUZZ_CHECK(cx_run_path_covers(plain, plain) == (plain_rule == NULL));
    FUZZ_CHECK(cx_run_path_covers(entry, plain) == (entry.data[entry.size - 1] != '/'));
    FUZZ_CHECK(cx_str_eq(plain, cx_run_path_normal(plain, arena)));
    FUZZ_CHECK(cx_run_path_overlap(entry, entry, NULL) == CX_RUN_OVERLAP);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *split = size == 0 ? NULL : memchr(data, '\n', size);
    size_t first = split == NULL ? size : (size_t)(split - data);
    cx_str a = {(const char *)data, first};
    cx_str b = {split == NULL ? "" : (const char *)split + 1, split == NULL ? 0 : size - first - 1};
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    check_entry(a, &arena);
    check_entry(b, &arena);
    cx_run_overlap overlap = cx_run_path_overlap(a, b, NULL);
    FUZZ_CHECK(overlap == cx_run_path_overlap(b, a, NULL));
    /* What one covers of the other, both may not be locked by two runs. */
    if (overlap != CX_RUN_OVERLAP_INVALID && cx_run_path_covers(a, b))
        FUZZ_CHECK(overlap == CX_RUN_OVERLAP);
    cx_arena_done(&arena);
    return 0;
}
