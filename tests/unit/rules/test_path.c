/*
 * Paths of contracts (run.md §7): the lint's rules, what an entry covers, what no task may touch.
 */
#include "rules/path.h"
#include "tests/test.h"

static bool lints(const char *entry, const char *rule)
{
    const char *got = cx_run_path_lint(cx_str_z(entry), NULL);
    bool same = (got == NULL) == (rule == NULL) && (got == NULL || strcmp(got, rule) == 0);
    if (!same)
        printf("  '%s': got %s\n", entry, got == NULL ? "valid" : got);
    return same;
}

CX_TEST(path_lint_finds_each_rule)
{
    static const struct {
        const char *entry, *rule;
    } cases[] = {
        {"", "P01"},
        {"   ", "P01"},
        {"\t\n", "P01"},
        {"\xC2\xA0\xE3\x80\x80", "P01"}, /* no-break and ideographic space */
        {" a", "P02"},
        {"a ", "P02"},
        {"a\xC2\xA0", "P02"},
        {"a\x7F"
         "b",
         "P02"},
        {"a\xC2\x85"
         "b",
         "P02"}, /* a C1 control */
        {"a\x1F", "P02"},
        {"e\xCC\x81", "P03"},
        {"a\xFF"
         "b",
         "P03"},
        {"a/\xED\xA0\x80", "P03"}, /* a lone surrogate */
        {"\xE2\x84\xAB", "P03"},   /* ANGSTROM SIGN composes to another letter */
        {"src/*", "P04"},
        {"a?b", "P04"},
        {"a[1]", "P04"},
        {"a]", "P04"},
        {"{a}", "P04"},
        {"-*", "P04"}, /* before P05 */
        {"a\\b", "P05"},
        {"!a", "P05"},
        {":/a", "P05"},
        {"~", "P05"},
        {"-a", "P05"},
        {"/a", "P05"},
        {"c:a", "P05"},
        {"/..", "P05"}, /* before P06 */
        {"..", "P06"},
        {"a/../b", "P06"},
        {"a/..", "P06"},
        {".", "P07"},
        {"././/", "P07"},
        {".git", "P08"},
        {"a/b/.git", "P08"},
        {".GIT/config", "P08"},
        {"GIT~1/x", "P08"},
        {".git:stream", "P08"},
        {".git.", "P08"},
        {"a/.git . ./x", "P08"},
        {".g\xE2\x80\x8Cit/x", "P08"},
        {"a/.gitignore", "P08"},
        {"a/.gitattributes", "P08"},
        {".gitmodules", "P08"},
        {"a/.env", "P08"},
        {".env.local", "P08"},
        {".ENV.Production", "P08"},
        {".runtime-cache/a", "P08"},
        {"./.Runtime-Cache", "P08"},
        {".env.example", NULL},
        {"a/.env.example", NULL},
        {".github/workflows", NULL},
        {".environment", NULL},
        {".gitkeep", NULL},
        {"gitignore", NULL},
        {"envoy/x", NULL},
        {"a/.runtime-cache", NULL}, /* only first */
        {"a b/c", NULL},
        {"a~1", NULL},
        {"a:b", "P05"}, /* one letter and a colon is a drive */
        {"ab:c", NULL},
        {"\xC3\xA9/\xE4\xB8\xAD", NULL},
        {".../a", NULL},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++)
        CHECK(lints(cases[i].entry, cases[i].rule));
}

CX_TEST(path_lint_refuses_a_zero_byte_and_too_long_a_path)
{
    char longest[CX_RUN_PATH_BYTES_MAX + 2];
    memset(longest, 'a', sizeof longest);
    CHECK(strcmp(cx_run_path_lint(cx_str_from("a\0b", 3), NULL), "P02") == 0);
    CHECK(cx_run_path_lint(cx_str_from(longest, CX_RUN_PATH_BYTES_MAX), NULL) == NULL);
    CHECK(strcmp(cx_run_path_lint(cx_str_from(longest, CX_RUN_PATH_BYTES_MAX + 1), NULL), "P03") ==
          0);
}

/* path.h U2: bytes that are not UTF-8 cannot be folded. */
CX_TEST(path_that_cannot_be_folded_is_protected_and_covers_nothing)
{
    char folded[16];
    size_t size;
    CHECK(!cx_run_path_fold(CX_STR("a\xFF/x"), folded, sizeof folded, &size));
    CHECK(cx_run_path_protected(CX_STR("a\xFF/x"), NULL));
    CHECK(!cx_run_path_covers(CX_STR("a\xFF"), CX_STR("a\xFF/x")));
    CHECK(cx_run_path_overlap(CX_STR("a\xFF"), CX_STR("b"), NULL) != CX_RUN_APART);
}

CX_TEST(path_protects_a_runtime_root_of_any_name)
{
    const cx_run_path_context ground = {CX_STR("build/Runs")};
    CHECK(cx_run_path_protected(CX_STR("build/runs/x"), &ground));
    CHECK(cx_run_path_protected(CX_STR("BUILD/runs"), &ground));
    CHECK(!cx_run_path_protected(CX_STR("build/runs2"), &ground));
    CHECK(!cx_run_path_protected(CX_STR("build"), &ground));
    CHECK(strcmp(cx_run_path_lint(CX_STR("build/runs/x"), &ground), "P08") == 0);
    CHECK(cx_run_path_lint(CX_STR("build/runs/x"), NULL) == NULL);
}

CX_TEST(path_each_rule_has_words)
{
    static const char *const rules[] = {"P01", "P02", "P03", "P04", "P05", "P06", "P07", "P08"};
    for (size_t i = 0; i < CX_COUNT_OF(rules); i++)
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(cx_run_path_rule_text(rules[i]), cx_run_path_rule_text(rules[k])) != 0);
}

static bool covers(const char *entry, const char *path)
{
    return cx_run_path_covers(cx_str_z(entry), cx_str_z(path));
}

CX_TEST(path_covers_whole_components_only)
{
    CHECK(covers("src", "src"));
    CHECK(covers("src", "src/a/b.c"));
    CHECK(!covers("src", "src2"));
    CHECK(!covers("src", "SRC"));
    CHECK(!covers("src/a", "src"));
    CHECK(covers("src/", "src/a"));
    CHECK(!covers("src/", "src"));
    CHECK(covers("./src//a/", "src/a/x"));
    CHECK(covers("src", "./src/./a"));
    CHECK(!covers("github/", ".github/x"));
    CHECK(!covers("src", "src/../x"));
    CHECK(!covers("src", "src/.."));
    CHECK(!covers("src", ""));
    CHECK(!covers("src/*", "src/*"));
    CHECK(!covers(".env", ".env"));
    CHECK(!covers("", "a"));
    CHECK(!covers("a.", "a"));
    CHECK(!cx_run_path_covered(NULL, 0, CX_STR("a")));
}

/* An entry without oddities covers exactly the paths that start with it and a '/'. */
CX_TEST(path_covers_like_prefixes_do)
{
    static const char *const parts[] = {"a", "b", "ab", "a.b", "A"};
    uint64_t state = cx_test_seed();
    for (int round = 0; round < 2000; round++) {
        char entry[64] = "", path[64] = "", stem[66];
        for (uint64_t i = 0, n = 1 + cx_test_random(&state) % 3; i < n; i++)
            snprintf(entry + strlen(entry), sizeof entry - strlen(entry), "%s%s", i ? "/" : "",
                     parts[cx_test_random(&state) % CX_COUNT_OF(parts)]);
        for (uint64_t i = 0, n = 1 + cx_test_random(&state) % 4; i < n; i++)
            snprintf(path + strlen(path), sizeof path - strlen(path), "%s%s", i ? "/" : "",
                     parts[cx_test_random(&state) % CX_COUNT_OF(parts)]);
        snprintf(stem, sizeof stem, "%s/", entry);
        bool below = strncmp(path, stem, strlen(stem)) == 0;
        CHECK(covers(entry, path) == (below || strcmp(entry, path) == 0));
        CHECK(covers(stem, path) == below);
    }
}

static cx_run_overlap overlap(const char *a, const char *b)
{
    cx_run_overlap got = cx_run_path_overlap(cx_str_z(a), cx_str_z(b), NULL);
    CHECK(got == cx_run_path_overlap(cx_str_z(b), cx_str_z(a), NULL));
    return got;
}

CX_TEST(path_overlap_folds_and_goes_both_ways)
{
    CHECK(overlap("src", "src/a.c") == CX_RUN_OVERLAP);
    CHECK(overlap("src/a", "src/ab") == CX_RUN_APART);
    CHECK(overlap("SRC/A", "src/a/b") == CX_RUN_OVERLAP);
    CHECK(overlap("\xC3\x89tat", "\xC3\xA9tat/x") == CX_RUN_OVERLAP);
    CHECK(overlap("stra\xC3\x9F"
                  "e",
                  "STRASSE") == CX_RUN_OVERLAP);
    CHECK(overlap("a.", "a") == CX_RUN_OVERLAP);
    CHECK(overlap("a", "a*") == CX_RUN_OVERLAP_INVALID);
    CHECK(overlap("", "a") == CX_RUN_OVERLAP_INVALID);
}

CX_TEST(path_wide_by_tree_by_slash_and_by_name)
{
    const cx_str files[] = {CX_STR("Makefile"), CX_STR("README.md"), CX_STR("v1.0/a.c"),
                            CX_STR("lib/x.c")};
    const cx_run_tree tree = {files, CX_COUNT_OF(files)};
    CHECK(!cx_run_path_wide(CX_STR("Makefile"), &tree));
    CHECK(cx_run_path_wide(CX_STR("Makefile"), NULL));
    CHECK(cx_run_path_wide(CX_STR("Makefile/"), &tree));
    CHECK(cx_run_path_wide(CX_STR("v1.0"), &tree));
    CHECK(!cx_run_path_wide(CX_STR("v1.0"), NULL));
    CHECK(cx_run_path_wide(CX_STR("lib"), &tree));
    CHECK(cx_run_path_wide(CX_STR("new"), &tree));
    CHECK(!cx_run_path_wide(CX_STR("new.c"), &tree));
    CHECK(!cx_run_path_wide(CX_STR("lib/x"), &tree));
    CHECK(!cx_run_path_wide(CX_STR("*"), &tree)); /* invalid is not wide */
    CHECK(!cx_run_path_wide(CX_STR(".github"), NULL));
    CHECK(cx_run_path_wide(CX_STR(".github/"), NULL));
}

CX_TEST(path_wide_over_half_of_twenty_files)
{
    char names[20][16];
    cx_str files[20];
    for (size_t i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "src/%s/%zu.c", i < 11 ? "big" : "small", i);
        files[i] = cx_str_z(names[i]);
    }
    cx_run_tree tree = {files, 20};
    CHECK(cx_run_path_wide(CX_STR("src/big/"), &tree));
    CHECK(!cx_run_path_wide(CX_STR("src/small/"), &tree));
    tree.count = 19; /* too few to be wide */
    CHECK(!cx_run_path_wide(CX_STR("src/big/"), &tree));
    tree.count = 20;
    snprintf(names[10], sizeof names[10], "src/small/10.c"); /* exactly half */
    files[10] = cx_str_z(names[10]);
    CHECK(!cx_run_path_wide(CX_STR("src/big/"), &tree));
}

static bool folds(const char *path, const char *expected)
{
    char out[256];
    size_t size = 0;
    bool good = cx_run_path_fold(cx_str_z(path), out, sizeof out, &size);
    return good == (expected != NULL) &&
           (!good || cx_str_eq(cx_str_from(out, size), cx_str_z(expected)));
}

CX_TEST(path_fold_is_what_file_systems_confuse)
{
    char small[3];
    size_t size;
    CHECK(folds("A//./B", "a/b"));
    CHECK(folds("A. /b..", "a/b"));
    CHECK(folds("\xC3\x89", "\xC3\xA9"));
    CHECK(folds("E\xCC\x81", "\xC3\xA9")); /* decomposed and upper case */
    CHECK(folds("a\xE2\x80\x8D"
                "b",
                "ab"));
    CHECK(folds("git~1", ".git"));
    CHECK(folds("x/.GIT:$DATA", "x/.git"));
    CHECK(folds("a\xFF", NULL));
    CHECK(!cx_run_path_fold(CX_STR("abcd"), small, sizeof small, &size));
    CHECK(cx_run_text_has_ignorable(CX_STR("a\xEF\xBB\xBF")));
    CHECK(!cx_run_text_has_ignorable(CX_STR("a\xE2\x80\x8B"))); /* not in the list */
    CHECK(cx_run_text_is_nfc(CX_STR("\xC3\xA9")));
    CHECK(!cx_run_text_is_nfc(CX_STR("e\xCC\x81")));
    /* Marks in another order than the canonical one. */
    CHECK(!cx_run_text_is_nfc(CX_STR("a\xCC\x81\xCC\xA3")));
}

CX_TEST(path_fold_twice_is_fold_once)
{
    static const char *const pieces[] = {
        "a",        "A",  ".", " ",        "/",       "\xC3\x9F", "\xC3\x89", "git", "\xE2\x80\x8C",
        "\xCC\x81", "~1", ":", "\xC4\xB0", "\xCE\xA3"};
    uint64_t state = cx_test_seed();
    for (int round = 0; round < 2000; round++) {
        char text[64] = "", once[256], twice[1024];
        size_t once_size, twice_size;
        for (int i = 0; i < 8; i++)
            strncat(text, pieces[cx_test_random(&state) % CX_COUNT_OF(pieces)],
                    sizeof text - strlen(text) - 1);
        REQUIRE(cx_run_path_fold(cx_str_z(text), once, sizeof once, &once_size));
        REQUIRE(cx_run_path_fold(cx_str_from(once, once_size), twice, sizeof twice, &twice_size));
        CHECK(cx_str_eq(cx_str_from(once, once_size), cx_str_from(twice, twice_size)));
    }
}

CX_TEST(path_normal_drops_what_says_nothing)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK(cx_str_is(cx_run_path_normal(CX_STR("./a//b/"), &arena), "a/b"));
    CHECK(cx_str_is(cx_run_path_normal(CX_STR("A b"), &arena), "A b"));
    CHECK(cx_str_is(cx_run_path_normal(CX_STR("."), &arena), ""));
    cx_arena_done(&arena);
}
