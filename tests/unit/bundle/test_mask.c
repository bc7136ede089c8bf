/*
 * test_mask.c - what is masked, and what is left alone (run.md §1 R7).
 *
 * Tokens are put together from two halves, so that no scanner takes this file for a leak.
 */
#include <string.h>

#include "bundle/mask.h"

#include "tests/test.h"

static const char *const env[] = {"API_KEY=hunter2-hunter2",
                                  "MY_PASSWD=correct horse",
                                  "GITHUB_TOKEN=hunter2-hunter2-and-more",
                                  "AWS_CREDENTIALS=cred/value+1",
                                  "SHORT_KEY=abc",
                                  "PATH=/usr/bin:/bin",
                                  "BROKEN",
                                  NULL};

typedef struct bench {
    cx_arena arena;
    cx_run_mask mask;
    cx_err err;
} bench;

static void begin(bench *b)
{
    cx_arena_init(&b->arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_mask_init(&b->mask, env, &b->arena, &b->err), &b->err);
}

static void end(bench *b)
{
    cx_run_mask_done(&b->mask);
    cx_arena_done(&b->arena);
}

static cx_str masked(bench *b, const char *text)
{
    cx_str out = {0};
    CHECK_STATUS(cx_run_mask_text(&b->mask, cx_str_z(text), &b->arena, &out, &b->err), &b->err);
    return out;
}

CX_TEST(mask_knows_names_of_secrets)
{
    static const char *const secret[] = {"API_KEY", "apikey",   "x_ToKeN",        "SECRET",
                                         "Passwd",  "PASSWORD", "aws_credentials"};
    static const char *const plain[] = {"PATH", "HOME", "PASS", "TOK", "K"};
    for (size_t i = 0; i < CX_COUNT_OF(secret); i++)
        CHECK(cx_run_mask_name(cx_str_z(secret[i])));
    for (size_t i = 0; i < CX_COUNT_OF(plain); i++)
        CHECK(!cx_run_mask_name(cx_str_z(plain[i])));
}

CX_TEST(mask_takes_out_values_of_the_environment)
{
    bench b;
    begin(&b);
    CHECK_STR(masked(&b, "a hunter2-hunter2 b"), "a [masked] b");
    CHECK_STR(masked(&b, "hunter2-hunter2-and-more"), "[masked]"); /* the longer one first */
    CHECK_STR(masked(&b, "xcorrect horsex, cred/value+1"), "x[masked]x, [masked]");
    CHECK_STR(masked(&b, "abc /usr/bin:/bin"), "abc /usr/bin:/bin");
    CHECK_STR(masked(&b, ""), "");
    end(&b);
}

CX_TEST(mask_takes_out_what_looks_like_a_token)
{
    static const char *const tokens[] = {
        "gh"
        "p_abcdefghijklmnopqrstuvwxyz0123456789",
        "github"
        "_pat_11ABCDEFG0abcdefghijkl_mnop",
        "gl"
        "pat-abcdefghij0123456789",
        "s"
        "k-ant-api03-abcdefghijklmnopqrstuvwxyz",
        "AK"
        "IAABCDEFGHIJKLMNOP",
        "AI"
        "zaabcdefghijklmnopqrstuvwxyz012345678",
        "xo"
        "xb-1234567890-abcdef",
        "n"
        "pm_abcdefghijklmnopqrstuvwxyz0123456789",
        "h"
        "f_abcdefghijklmnopqrstuvwxyz01234567",
        "ey"
        "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijklmnopqrstuvwxyz",
    };
    bench b;
    begin(&b);
    for (size_t i = 0; i < CX_COUNT_OF(tokens); i++) {
        char text[200], expected[200];
        (void)snprintf(text, sizeof text, "t=%s; end", tokens[i]);
        (void)snprintf(expected, sizeof expected, "t=[masked]; end");
        CHECK_STR(masked(&b, text), expected);
    }
    CHECK_STR(masked(&b, "Authorization: Bearer abcdefghijklmnop.qrst"),
              "Authorization: Bearer [masked]");
    CHECK_STR(masked(&b, "clone https://me:pass-word@host/x"), "clone https://me:[masked]@host/x");
    CHECK_STR(masked(&b, "x\n-----BEGIN RSA PRIVATE KEY"
                         "-----\nMII\n-----END RSA PRIVATE KEY"
                         "-----\ny"),
              "x\n[masked]\ny");
    CHECK_STR(masked(&b, "-----BEGIN PRIVATE KEY"
                         "-----\nMII"),
              "[masked]");
    end(&b);
}

/* Each shape of a token at its least length, one byte shorter, and with a byte that ends it. */
CX_TEST(mask_each_shape_has_its_least_length)
{
    static const struct {
        const char *first, *second; /* of the prefix */
        size_t least;
        char inside, outside;
    } shapes[] = {
        {"gh", "p_", 30, 'a', '-'},
        {"gh", "o_", 30, 'Z', '_'},
        {"gh", "u_", 30, '0', '.'},
        {"gh", "s_", 30, 'a', '-'},
        {"gh", "r_", 30, 'a', '-'},
        {"github", "_pat_", 22, '_', '-'},
        {"gl", "pat-", 20, '-', '.'},
        {"s", "k-", 20, '-', '.'},
        {"sk", "_live_", 16, 'a', '-'},
        {"sk", "_test_", 16, 'a', '_'},
        {"rk", "_live_", 16, 'a', '_'},
        {"AK", "IA", 16, 'A', 'a'},
        {"AS", "IA", 16, '7', 'a'},
        {"AI", "za", 35, '_', '.'},
        {"ya", "29.", 20, '-', '.'},
        {"xo", "xa-", 10, '-', '.'},
        {"xo", "xb-", 10, 'a', ' '},
        {"xo", "xp-", 10, '1', ' '},
        {"xo", "xr-", 10, 'a', '.'},
        {"xo", "xs-", 10, 'a', '.'},
        {"xa", "pp-", 10, '-', '.'},
        {"n", "pm_", 36, 'a', '_'},
        {"py", "pi-", 30, '_', '.'},
        {"h", "f_", 30, 'a', '_'},
        {"dckr", "_pat_", 20, '-', '.'},
        {"S", "G.", 40, '.', '+'},
        {"ey", "J", 60, '.', '+'},
        {"hv", "s.", 20, '_', '.'},
        {"AGE-", "SECRET-KEY-1", 50, 'Q', '-'},
    };
    bench b;
    begin(&b);
    for (size_t i = 0; i < CX_COUNT_OF(shapes); i++) {
        char text[200], rest[100];
        memset(rest, shapes[i].inside, sizeof rest);
        int least = (int)shapes[i].least;
        (void)snprintf(text, sizeof text, "(%s%s%.*s%cz", shapes[i].first, shapes[i].second, least,
                       rest, shapes[i].outside);
        char expected[32];
        (void)snprintf(expected, sizeof expected, "([masked]%cz", shapes[i].outside);
        CHECK_STR(masked(&b, text), expected);
        (void)snprintf(text, sizeof text, "(%s%s%.*s%cz", shapes[i].first, shapes[i].second,
                       least - 1, rest, shapes[i].outside);
        CHECK_STR(masked(&b, text), text);
        /* Within a word it is none; after an underscore it is. */
        (void)snprintf(text, sizeof text, "x%s%s%.*s", shapes[i].first, shapes[i].second, least,
                       rest);
        CHECK_STR(masked(&b, text), text);
        text[0] = '_';
        CHECK_STR(masked(&b, text), "_[masked]");
    }
    end(&b);
}

CX_TEST(mask_words_that_follow_bearer_and_basic)
{
    bench b;
    begin(&b);
    CHECK_STR(masked(&b, "BASIC dXNlcjpwYXNzd29yZA=="), "BASIC [masked]");
    CHECK_STR(masked(&b, "bearer 0123456789abcdef, x"), "bearer [masked], x"); /* 16 bytes */
    CHECK_STR(masked(&b, "bearer 0123456789abcde"), "bearer 0123456789abcde");
    CHECK_STR(masked(&b, "bearer  0123456789abcdef"), "bearer  0123456789abcdef");
    end(&b);
}

CX_TEST(mask_passwords_of_urls)
{
    bench b;
    begin(&b);
    CHECK_STR(masked(&b, "ftp://u:p@h ssh://v:q@i"), "ftp://u:[masked]@h ssh://v:[masked]@i");
    CHECK_STR(masked(&b, "https://u:a:b@h"), "https://u:[masked]@h");
    CHECK_STR(masked(&b, "https://user@host:443/x"), "https://user@host:443/x");
    CHECK_STR(masked(&b, "u:p@h"), "u:p@h"); /* no URL */
    CHECK_STR(masked(&b, "https://u:p\n@h"), "https://u:p\n@h");
    end(&b);
}

/* The longest first, whatever the order in which they were added; too short ones are none. */
CX_TEST(mask_secrets_that_lie_in_each_other)
{
    bench b;
    begin(&b);
    const size_t before = b.mask.secrets.count;
    CHECK_STATUS(cx_run_mask_add(&b.mask, CX_STR("inner1"), &b.err), &b.err);
    CHECK_STATUS(cx_run_mask_add(&b.mask, CX_STR("<inner1>"), &b.err), &b.err);
    CHECK_STATUS(cx_run_mask_add(&b.mask, CX_STR("inner"), &b.err), &b.err); /* five bytes */
    CHECK_INT(b.mask.secrets.count, before + 2);
    for (size_t i = 1; i < b.mask.secrets.count; i++)
        CHECK(b.mask.secrets.items[i - 1].size >= b.mask.secrets.items[i].size);
    CHECK_STR(masked(&b, "<inner1> inner1 inner"), "[masked] [masked] inner");
    CHECK_STR(masked(&b, "inner1inner1"), "[masked][masked]");
    end(&b);
}

/* What was masked has nothing left to mask, so that masking twice is masking once. */
CX_TEST(mask_is_done_once)
{
    static const char *const texts[] = {"a hunter2-hunter2", "https://me:pass-word@host/x",
                                        "Bearer abcdefghijklmnop.qrst"};
    bench b;
    begin(&b);
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++) {
        cx_str once = masked(&b, texts[i]), twice;
        CHECK_STATUS(cx_run_mask_text(&b.mask, once, &b.arena, &twice, &b.err), &b.err);
        CHECK(!cx_str_is(once, texts[i]) && cx_str_eq(once, twice));
    }
    end(&b);
}

CX_TEST(mask_leaves_ordinary_text_alone)
{
    static const char *const plain[] = {
        "task-force-one-two-three-four-five-six-seven",
        "sk-short",
        "ghp_",
        "eyJ",
        "a commit 93b8680ba499415e135df3981f4ad09433e69a54",
        "bearer of bad news",
        "see https://host/path:8080@x",
        "-----BEGIN CERTIFICATE-----",
        "http://[::1]:80/",
    };
    bench b;
    begin(&b);
    for (size_t i = 0; i < CX_COUNT_OF(plain); i++) {
        cx_str out = masked(&b, plain[i]);
        CHECK(out.data == plain[i]);
    }
    end(&b);
}

CX_TEST(mask_goes_through_json)
{
    bench b;
    begin(&b);
    cx_json value, out;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_run_json_read(CX_STR("{\"a\":[\"hunter2-hunter2\",1,null],\"key\":\"plain\","
                                         "\"n hunter2-hunter2\":{\"b\":\"correct horse\"}}"),
                                  0, &b.arena, &value, &b.err),
                 &b.err);
    CHECK_STATUS(cx_run_mask_json(&b.mask, &value, &b.arena, &out, &b.err), &b.err);
    CHECK_STATUS(cx_json_write(&text, &out, CX_JSON_PY_COMPACT, &b.err), &b.err);
    CHECK_STR(cx_buf_str(&text), "{\"a\":[\"[masked]\",1,null],\"key\":\"plain\","
                                 "\"n [masked]\":{\"b\":\"[masked]\"}}");
    cx_buf_done(&text);
    end(&b);
}

CX_TEST(mask_text_that_is_no_utf8)
{
    bench b;
    begin(&b);
    CHECK_STR(cx_json_quoted(CX_STR("plain \xc3\xa9"), &b.arena), "plain \xc3\xa9");
    CHECK_STR(cx_json_quoted(CX_STR("a\xff"), &b.arena), "a\\377");
    CHECK_STR(cx_json_quoted(CX_STR("\xe2\x82"), &b.arena), "\\342\\202");
    cx_run_findings findings;
    cx_run_findings_init(&findings, &b.arena);
    cx_run_findings_reject(&findings, "D14", CX_STR("src/\xff"), (cx_str){NULL, 0}, "%s",
                           "cut \xe2\x82");
    CHECK_INT(findings.list.count, 1);
    if (findings.list.count == 1) {
        CHECK_STR(findings.list.items[0].where, "src/\\377");
        CHECK_STR(findings.list.items[0].message, "cut \\342\\202");
    }
    cx_run_findings_done(&findings);
    end(&b);
}
