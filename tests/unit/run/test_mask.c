/*
 * test_mask.c - what is masked, and what is left alone (run.md §1 R7).
 *
 * Tokens are put together from two halves, so that no scanner takes this file for a leak.
 */
#include "run/mask.h"

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
    CHECK_STR(cx_run_text(CX_STR("plain \xc3\xa9"), &b.arena), "plain \xc3\xa9");
    CHECK_STR(cx_run_text(CX_STR("a\xff"), &b.arena), "a\\377");
    CHECK_STR(cx_run_text(CX_STR("\xe2\x82"), &b.arena), "\\342\\202");
    cx_run_findings findings;
    cx_run_findings_init(&findings, &b.arena);
    cx_run_refuse(&findings, "D14", CX_STR("src/\xff"), (cx_str){NULL, 0}, "%s", "cut \xe2\x82");
    CHECK_INT(findings.list.count, 1);
    if (findings.list.count == 1) {
        CHECK_STR(findings.list.items[0].where, "src/\\377");
        CHECK_STR(findings.list.items[0].message, "cut \\342\\202");
    }
    cx_run_findings_done(&findings);
    end(&b);
}
