/*
 * test_sensitive.c - what is found and what is not, the policy, own patterns, masks in place.
 *
 * Secrets are written in two parts, so that this file is none for other programs.
 */
#include "sensitive/sensitive.h"

#include <string.h>

#include "tests/test.h"

static const cx_sensitive_rules *rules_of(cx_arena *arena, const char *policy, const char *own)
{
    const cx_sensitive_rules *rules = NULL;
    const cx_str text = cx_str_z(policy), pattern = cx_str_z(own == NULL ? "" : own);
    cx_err err;
    CHECK(
        !cx_failed(cx_sensitive_rules_make(&text, 1, &pattern, own != NULL, arena, &rules, &err)));
    return rules;
}

/* "class:pattern:text|..": everything that is found. */
static cx_str found_in(const cx_sensitive_rules *rules, const char *text)
{
    static char out[4096];
    cx_str all = cx_str_z(text);
    cx_sensitive_hit hit;
    size_t size = 0;
    out[0] = 0;
    for (size_t at = 0; cx_sensitive_next(rules, all, &at, &hit);)
        size += (size_t)snprintf(out + size, sizeof out - size, "%s%s:%s:%.*s",
                                 size == 0 ? "" : "|", cx_sensitive_class_name(hit.class_of),
                                 hit.pattern, (int)hit.size, all.data + hit.offset);
    return cx_str_from(out, size);
}

/* --- true positives --------------------------------------------------------------------------- */

CX_TEST(tokens_of_known_providers)
{
    static const char *const tokens[][2] = {
        {"aws", "AKIA"
                "IOSFODNN7EXAMPLE"},
        {"aws", "ASIA"
                "Y34FZKBOKMUTVV7A"},
        {"github", "ghp_"
                   "16C7e42F292c6912E7710c838347Ae178B4a"},
        {"github", "gho_"
                   "16C7e42F292c6912E7710c838347Ae178B4a"},
        {"github", "ghs_"
                   "16C7e42F292c6912E7710c838347Ae178B4a"},
        {"github", "github_pat_"
                   "11ABCDEFG0abcdefghijkl_MNOPQRSTUVWXYZ0123456789abcdefghi"},
        {"gitlab", "glpat-"
                   "Zx9_yT-4kq2Lm8RsWvU3"},
        {"slack", "xoxb-"
                  "17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy"},
        {"slack", "xapp-"
                  "1-A0123-4567-89abcdef0123"},
        {"slack", "hooks.slack.com/services/"
                  "T00000000/B0000A111/XXXXabcdEFGH12345678"},
        {"stripe", "sk_live_"
                   "4eC39HqLyjWDarjtT1zdp7dc"},
        {"stripe", "rk_test_"
                   "4eC39HqLyjWDarjtT1zdp7dc"},
        {"stripe", "whsec_"
                   "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
        {"openai", "sk-proj-"
                   "Ab3dEf6hIj9kLmN0pQr_sTuVwX-yZ"},
        {"openai", "sk-"
                   "Ab3dEf6hIj9kLmN0pQrsTuVwXyZ1234567890abcdefghijkl"},
        {"anthropic", "sk-ant-"
                      "api03-Ab3dEf6hIj9kLmN0pQr_sTuVwX-yZ"},
        {"google", "AIza"
                   "SyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe"},
        {"google", "ya29."
                   "a0AfH6SMBx1234567890abcdef"},
        {"npm", "npm_"
                "aB3dE6fG9hI2jK5lM8nO1pQ4rS7tU0vW3xY6"},
        {"pypi", "pypi-AgE"
                 "IcHlwaS5vcmcCJDU3YWM1ZTEwLTk0YjYtNGY0Zi1hYjEyLTM0NTY3ODkw"},
        {"jwt", "eyJ"
                "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"},
        {"huggingface", "hf_"
                        "AbCdEfGhIjKlMnOpQrStUvWxYz012345678"},
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mark", NULL);
    static const char *const around[][2] = {
        {"", ""}, {"key=", " and more"}, {"\"", "\""}, {"\\n", "\\n"}, {"(", ")"}, {"\n", "."}};
    for (size_t i = 0; i < CX_COUNT_OF(tokens); i++)
        for (size_t j = 0; j < CX_COUNT_OF(around); j++) {
            char text[400], expected[400];
            (void)snprintf(text, sizeof text, "%s%s%s", around[j][0], tokens[i][1], around[j][1]);
            (void)snprintf(expected, sizeof expected, "token:%s:%s", tokens[i][0], tokens[i][1]);
            CHECK_STR(found_in(rules, text), expected);
        }
    cx_arena_done(&arena);
}

CX_TEST(headers_passwords_and_keys)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mark", NULL);
    CHECK_STR(found_in(rules, "Authorization: Bearer "
                              "a8F3kd9Q2mZx7LpT5vNc"),
              "token:bearer:a8F3kd9Q2mZx7LpT5vNc");
    CHECK_STR(found_in(rules, "authorization: Basic "
                              "dXNlcjpwYXNzd29yZA=="),
              "token:basic:dXNlcjpwYXNzd29yZA==");
    CHECK_STR(found_in(rules, "postgres://app:"
                              "s3cr3t@db.internal:5432/x"),
              "password:url:s3cr3t");
    CHECK_STR(found_in(rules, "redis://:"
                              "hunter2@cache"),
              "password:url:hunter2");
    CHECK_STR(found_in(rules, "aws_secret_access_key = "
                              "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
              "token:aws:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    CHECK_STR(found_in(rules, "\"SecretAccessKey\": \""
                              "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\""),
              "token:aws:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    static const char pem[] = "-----BEGIN RSA "
                              "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0b"
                              "u3aumtr5l9nYkw1yRr0\nabc=\n-----END RSA "
                              "PRIVATE KEY-----";
    char text[400], expected[400];
    (void)snprintf(text, sizeof text, "my key:\n%s\nkeep it", pem);
    (void)snprintf(expected, sizeof expected, "private-key:pem:%s", pem);
    CHECK_STR(found_in(rules, text), expected);
    text[strlen(text) - 40] = 0; /* the part that is there */
    CHECK(strstr(found_in(rules, text).data, "private-key:pem:-----BEGIN") != NULL);
    cx_arena_done(&arena);
}

CX_TEST(personal_data)
{
    static const char *const rows[][2] = {
        {"write to jane.doe+x@mail.example.co.uk.", "email:email:jane.doe+x@mail.example.co.uk"},
        {"<o'neil@example.org>", "email:email:neil@example.org"},
        {"line\\nbob@example.org", "email:email:bob@example.org"},
        {"call +49 30 1234567 today", "phone:phone:+49 30 1234567"},
        {"+14155552671", "phone:phone:+14155552671"},
        {"tel:+44-20-7946-0958", "phone:phone:+44-20-7946-0958"},
        {"+1 (415) 555-2671", "phone:phone:+1 (415) 555-2671"},
        {"or (415) 555-2671!", "phone:phone:(415) 555-2671"},
        {"415-555-2671", "phone:phone:415-555-2671"},
        {"card 4111111111111111", "card:visa:4111111111111111"},
        {"4111 1111 1111 1111", "card:visa:4111 1111 1111 1111"},
        {"5555-5555-5555-4444, ok", "card:mastercard:5555-5555-5555-4444"},
        {"3782 822463 10005", "card:amex:3782 822463 10005"},
        {"6011000990139424", "card:discover:6011000990139424"},
        {"30569309025904", "card:diners:30569309025904"},
        {"3530111333300000", "card:jcb:3530111333300000"},
        {"IBAN DE89370400440532013000", "iban:iban:DE89370400440532013000"},
        {"GB29 NWBK 6016 1331 9268 19", "iban:iban:GB29 NWBK 6016 1331 9268 19"},
        {"FR1420041010050500013M02606.", "iban:iban:FR1420041010050500013M02606"},
        {"a@example.org,b@example.org", "email:email:a@example.org|email:email:b@example.org"},
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mark", NULL);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++)
        CHECK_STR(found_in(rules, rows[i][0]), rows[i][1]);
    cx_arena_done(&arena);
}

/* --- false positives -------------------------------------------------------------------------- */

CX_TEST(what_only_looks_alike_is_not_found)
{
    static const char *const texts[] = {
        "550e8400-e29b-41d4-a716-446655440000",
        "41111111-1111-4111-8111-111111111111",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 4111111111111111ab",
        "4111111111111112",        /* check digit */
        "1544712660000000000",     /* nanoseconds */
        "1732774586123",           /* milliseconds */
        "12345678901234567890123", /* too long */
        "0.4111111111111111",      /* a fraction */
        "4111111111111111.5",      /* another */
        "x4111111111111111",
        "v1.22.333-rc.4 1.2.3.4 2026.11.28-1",
        "2026-11-28T06:22:33+01:00",
        "DE89370400440532013001", /* check digits */
        "ZZ89370400440532013000", /* no country */
        "react@18.2.0 lodash@4.17.21.tgz icon@2x.png",
        "git@github.com:org/repo.git",
        "Co-Authored-By: Bot <noreply@example.com>",
        "@app.route('/x') def f(): pass",
        "user@localhost",
        "actions/checkout@v4",
        "+1234567",
        "\n+12345678901", /* a line of a patch */
        "a+4915112345678",
        "x = 3 +12345678901234567890",
        "1 + 2 + 3",
        "415-555-26713",
        "1415-555-2671",
        "sk-learn and sk-something-with-many-words-and-nothing-else",
        "task-ant-colony",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_short",
        "theghp_"
        "16C7e42F292c6912E7710c838347Ae178B4a",
        "AKIALOWERCASEdoesnotcount",
        "AKIA"
        "IOSFODNN7EXAMPLE1",    /* one too many */
        "eyJhbGciOiJIUzI1NiJ9", /* one part of three */
        "Bearer token-of-your-choice",
        "Basic authentication is off",
        "https://example.com:8080/path@2",
        "https://user@example/x",
        "https://user:${PASSWORD}@host/x",
        "http://host/a:b@c",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE",
        "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ2g2dGVzdGNlcnQwCgYI",
        "write -----BEGIN "
        "PRIVATE KEY----- first",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "npm_config_cache=/root/.npm hf_hub_download hf_transformers_cache",
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mark", NULL);
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        CHECK_STR(found_in(rules, texts[i]), "");
    cx_arena_done(&arena);
}

/* --- rules ------------------------------------------------------------------------------------ */

CX_TEST(later_rules_win_and_groups_have_classes)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mark,secrets=mask,email=off", NULL);
    CHECK_INT(cx_sensitive_action_of(rules, CX_SENSITIVE_TOKEN), CX_SENSITIVE_MASK);
    CHECK_INT(cx_sensitive_action_of(rules, CX_SENSITIVE_CUSTOM), CX_SENSITIVE_MASK);
    CHECK_INT(cx_sensitive_action_of(rules, CX_SENSITIVE_EMAIL), CX_SENSITIVE_OFF);
    CHECK_INT(cx_sensitive_action_of(rules, CX_SENSITIVE_CARD), CX_SENSITIVE_MARK);
    CHECK(cx_sensitive_is_on(rules) && cx_sensitive_masks(rules));
    CHECK_STR(found_in(rules, "a@example.org 4111111111111111"), "card:visa:4111111111111111");
    rules = rules_of(&arena, "off", NULL);
    CHECK(!cx_sensitive_is_on(rules) && !cx_sensitive_masks(rules) && !cx_sensitive_is_on(NULL));
    CHECK_STR(found_in(rules, "a@example.org 4111111111111111"), "");
    for (int i = 0; i < CX_SENSITIVE_CLASS_COUNT; i++)
        CHECK_INT(cx_sensitive_class_of(cx_str_z(cx_sensitive_class_name((cx_sensitive_class)i))),
                  i);
    CHECK_INT(cx_sensitive_class_of(CX_STR("e-mail")), CX_SENSITIVE_CLASS_COUNT);
    cx_arena_done(&arena);
}

CX_TEST(rules_that_cannot_be_used)
{
    static const char *const policies[] = {"",       "masks", "mark,",          "mail=mask",
                                           "email=", "=mask", "email=mask=off", ",mask"};
    static const char *const patterns[] = {
        "acme_",           "acme_:alnum",     "acme_:letters:3", "a:alnum:3", "acme_:alnum:0",
        "acme_:alnum:257", "acme_:alnum:9-3", "acme_:alnum:",    ":alnum:3",  "a\"b:alnum:3",
        "ac me:alnum:3",   "acme_:alnum:3-",  "acme_:alnum:x"};
    const cx_sensitive_rules *rules = NULL;
    cx_arena arena;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(policies); i++) {
        const cx_str text = cx_str_z(policies[i]);
        CHECK_INT(cx_sensitive_rules_make(&text, 1, NULL, 0, &arena, &rules, &err).code,
                  CX_E_USAGE);
        CHECK(strncmp(err.message, "sensitive: found '", 18) == 0);
    }
    for (size_t i = 0; i < CX_COUNT_OF(patterns); i++) {
        const cx_str text = cx_str_z(patterns[i]);
        CHECK_INT(cx_sensitive_rules_make(NULL, 0, &text, 1, &arena, &rules, &err).code,
                  CX_E_USAGE);
        CHECK(strncmp(err.message, "sensitive-pattern: found '", 26) == 0);
    }
    cx_arena_done(&arena);
}

CX_TEST(own_patterns)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mark", "acme_:alnum:8-10");
    CHECK_STR(found_in(rules, "x acme_aaaaaaaa y"), "custom:custom:acme_aaaaaaaa");
    CHECK_STR(found_in(rules, "acme_aaaaaaaaaa"), "custom:custom:acme_aaaaaaaaaa");
    CHECK_STR(found_in(rules, "acme_aaaaaaa acme_aaaaaaaaaaa xacme_aaaaaaaa"), "");
    rules = rules_of(&arena, "mark,custom=off", "EMP-:digits:6");
    CHECK_STR(found_in(rules, "EMP-123456"), "");
    rules = rules_of(&arena, "custom=mark", "id::EMP-:digits:6-6");
    CHECK_STR(found_in(rules, "id::EMP-123456"), "custom:custom:id::EMP-123456");
    CHECK_STR(found_in(rules, "id::EMP-1234567"), "");
    cx_arena_done(&arena);
}

/* --- documents -------------------------------------------------------------------------------- */

/* "class pointer[!]|..", and the document after it was masked. */
static cx_str masked(cx_arena *arena, const cx_sensitive_rules *rules, const char *json,
                     const char *below, char *copy, bool lines)
{
    static char out[4096];
    cx_sensitive_list list;
    size_t size = 0;
    (void)snprintf(copy, 1000, "%s", json);
    const cx_sensitive_target target = {.bytes = (const uint8_t *)json,
                                        .size = strlen(json),
                                        .mask = (uint8_t *)copy,
                                        .mask_below = {below, NULL}};
    cx_sensitive_list_init(&list, arena);
    (lines ? cx_sensitive_scan_lines : cx_sensitive_scan_json)(rules, &target, &list);
    CHECK(!list.failed && list.listed == list.count && strlen(copy) == strlen(json));
    out[0] = 0;
    for (size_t i = 0; i < list.listed; i++) {
        const cx_sensitive_finding *f = &list.items[i];
        size +=
            (size_t)snprintf(out + size, sizeof out - size, "%s%s %.*s%s%s", size == 0 ? "" : "|",
                             cx_sensitive_class_name(f->class_of), (int)f->pointer.size,
                             f->pointer.data, f->masked ? "!" : "", f->is_name ? " name" : "");
        if (lines)
            size += (size_t)snprintf(out + size, sizeof out - size, " line %u", (unsigned)f->line);
    }
    return cx_str_from(out, size);
}

CX_TEST(json_is_masked_in_place)
{
    cx_arena arena;
    char copy[1000];
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mask,phone=mark", NULL);
    CHECK_STR(
        masked(&arena, rules, "{\"a\":[1,{\"b/c\":\"to a@example.org\"}]}", NULL, copy, false),
        "email /a/1/b~1c!");
    CHECK_STR(cx_str_z(copy), "{\"a\":[1,{\"b/c\":\"to [masked*****]\"}]}");
    CHECK_STR(masked(&arena, rules, "{\"t\":\"a\\u0040example.org\\n+49 30 1234567\"}", NULL, copy,
                     false),
              "email /t!|phone /t");
    CHECK_STR(cx_str_z(copy), "{\"t\":\"[masked**********]\\n+49 30 1234567\"}");
    CHECK_STR(
        masked(&arena, rules, "{\"n\":[4111111111111111,4111111111111111.5]}", NULL, copy, false),
        "card /n/0!");
    CHECK_STR(cx_str_z(copy), "{\"n\":[9999999999999999,4111111111111111.5]}");
    /* Two names stay two names, and no pointer has one. */
    CHECK_STR(masked(&arena, rules, "{\"a@example.org\":1,\"b@example.org\":\"c@example.org\"}",
                     NULL, copy, false),
              "email /*************! name|email /*************! name|email /*************!");
    CHECK_STR(cx_str_z(copy), "{\"[masked****1]\":1,\"[masked****2]\":\"[masked*****]\"}");
    cx_arena_done(&arena);
}

CX_TEST(masks_stay_below_a_pointer)
{
    cx_arena arena;
    char copy[1000];
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mask", NULL);
    CHECK_STR(masked(&arena, rules,
                     "{\"agent\":\"a@b.io\",\"event\":{\"t\":\"a@b.io\"},\"events\":\"a@b.io\"}",
                     "/event", copy, false),
              "email /agent|email /event/t!|email /events");
    CHECK_STR(cx_str_z(copy),
              "{\"agent\":\"a@b.io\",\"event\":{\"t\":\"******\"},\"events\":\"a@b.io\"}");
    cx_arena_done(&arena);
}

CX_TEST(lines_of_json_and_of_text)
{
    cx_arena arena;
    char copy[1000];
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mask", NULL);
    CHECK_STR(masked(&arena, rules,
                     "{\"a\":\"x@example.org\"}\nplain y@example.org\n\n-----BEGIN "
                     "PRIVATE KEY-----\n"
                     "MIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0b\n-----END "
                     "PRIVATE KEY-----\n[\"z@example."
                     "org\"]\n{\"cut\":\"w@example.org",
                     NULL, copy, true),
              "email /a! line 1|email ! line 2|private-key ! line 4|email /0! line 7|email /cut! "
              "line 8");
    size_t feeds = 0;
    for (const char *c = copy; *c != 0; c++)
        feeds += *c == '\n';
    CHECK_INT(feeds, 7);
    CHECK(strstr(copy, "example") == NULL && strstr(copy, "MIIE") == NULL);
    cx_arena_done(&arena);
}

CX_TEST(a_list_has_an_end_and_counts_on)
{
    cx_arena arena;
    cx_sensitive_list list;
    char text[4000];
    size_t size = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_sensitive_rules *rules = rules_of(&arena, "mark", NULL);
    for (int i = 0; i < 150; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "a%d@example.org ", i);
    const cx_sensitive_target target = {.bytes = (const uint8_t *)text, .size = size};
    cx_sensitive_list_init(&list, &arena);
    cx_sensitive_scan_text(rules, &target, CX_STR("/x"), &list);
    CHECK_INT(list.count, 150);
    CHECK_INT(list.listed, CX_SENSITIVE_LISTED_MAX);
    cx_arena_done(&arena);
}

/* Names that are long, and findings below them: the cost stays that of the bytes, and no
 * pointer has a part of a name. */
CX_TEST(long_names_are_left_out_of_pointers)
{
    enum { NAME = 1 << 20, COUNT = 20000 };
    cx_arena arena;
    cx_buf text;
    cx_sensitive_list list;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    const cx_sensitive_rules *rules = rules_of(&arena, "mark", NULL);
    cx_buf_add_z(&text, "{\"");
    for (int i = 0; i < NAME; i++)
        cx_buf_add_byte(&text, 'n');
    cx_buf_add_z(&text, "\":[0");
    for (int i = 0; i < COUNT; i++)
        cx_buf_add_z(&text, ",\"a@example.org\"");
    cx_buf_add_z(&text, "]}");
    const cx_sensitive_target target = {.bytes = text.data, .size = text.size};
    cx_sensitive_list_init(&list, &arena);
    cx_sensitive_scan_json(rules, &target, &list);
    CHECK(!list.failed);
    CHECK_INT(list.count, COUNT);
    CHECK_STR(list.items[0].pointer, "/*/1");
    cx_buf_done(&text);
    cx_arena_done(&arena);
}

/* S3: prefixes of everything, again and again. */
CX_TEST(many_beginnings_cost_no_more_than_their_bytes)
{
    static const char *const beginnings[] = {("-----BEGIN "
                                              "PRIVATE KEY----- "),
                                             "eyJaaaaaaaaaaaa.",
                                             "eyJaaaaaaaaaaaa.eyJ",
                                             "://a:b",
                                             "1 ",
                                             "4111 1111 ",
                                             "+1 ",
                                             "a@a.",
                                             "@",
                                             "ghp_",
                                             "DE89 ",
                                             "\\\\",
                                             "Bearer aaaaaaaaaaaaaaa ",
                                             "Basic aaaa",
                                             "aws_secret_access_key = ",
                                             "//",
                                             "415-555-",
                                             "(415) "};
    cx_arena arena;
    cx_buf text;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    const cx_sensitive_rules *rules = rules_of(&arena, "mark", "//:base64:200");
    for (size_t i = 0; i < CX_COUNT_OF(beginnings); i++) {
        cx_sensitive_hit hit;
        size_t found = 0;
        cx_buf_clear(&text);
        while (text.size < (size_t)1 << 20)
            cx_buf_add_z(&text, beginnings[i]);
        for (size_t at = 0; cx_sensitive_next(rules, cx_buf_str(&text), &at, &hit);)
            found++;
        CHECK(found <= text.size / 4);
    }
    cx_buf_done(&text);
    cx_arena_done(&arena);
}
