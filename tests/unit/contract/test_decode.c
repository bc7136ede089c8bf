/*
 * Members of configuration files (src/contract/decode.h).
 */
#include "contract/decode.h"
#include "rules/run.h"
#include "tests/test.h"

typedef struct fixture {
    cx_arena arena;
    cx_err err;
    cx_json root;
    cx_decoder decoder;
} fixture;

static bool begin(fixture *f, const char *text)
{
    cx_arena_init(&f->arena, cx_alloc_default(), 0);
    f->decoder = (cx_decoder){&f->arena, "policies/x.json", &f->err, false};
    bool ok = !cx_failed(cx_run_json_read(cx_str_z(text), 0, &f->arena, &f->root, &f->err));
    CHECK(ok);
    return ok;
}

CX_TEST(decode_absent_members_keep_their_defaults)
{
    fixture f;
    cx_str text = CX_STR("default");
    bool flag = true;
    uint32_t number = 7;
    cx_str_list words = {NULL, 0};
    if (!begin(&f, "{}"))
        return;
    cx_decode_str(&f.decoder, &f.root, "a.text", &text);
    cx_decode_bool(&f.decoder, &f.root, "a.flag", &flag);
    cx_decode_u32(&f.decoder, &f.root, "a.number", 1, 9, &number);
    cx_decode_words(&f.decoder, &f.root, "a.words", &words);
    CHECK(!cx_failed(cx_decode_end(&f.decoder)));
    CHECK(cx_str_is(text, "default") && flag && number == 7 && words.count == 0);
    cx_arena_done(&f.arena);
}

/* The first fault is the one that is reported, and nothing is decoded after it. */
CX_TEST(decode_stops_at_the_first_fault)
{
    fixture f;
    cx_str text = CX_STR("default");
    uint32_t number = 7;
    if (!begin(&f, "{\"number\":10,\"text\":\"new\",\"flag\":1}"))
        return;
    cx_decode_u32(&f.decoder, &f.root, "limits.number", 1, 9, &number);
    cx_decode_str(&f.decoder, &f.root, "text", &text);
    cx_decode_fault(&f.decoder, "other", "something else");
    CHECK(cx_decode_end(&f.decoder).code == CX_E_FORMAT);
    CHECK_STR(cx_str_z(f.err.message),
              "policies/x.json: limits.number: expected a whole number from 1 to 9");
    CHECK(number == 7 && cx_str_is(text, "default"));
    CHECK(cx_decode_need(&f.decoder, &f.root, "text") == NULL);
    cx_arena_done(&f.arena);
}

CX_TEST(decode_faults_name_file_and_member)
{
    static const char *const names[] = {"words", "version"};
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[]", "policies/x.json: expected an object"},
        {"{\"wrods\":[]}", "policies/x.json: there is no member 'wrods' in the file"},
        {"{\"version\":\"v2\"}", "policies/x.json: version: expected \"v1\""},
        {"{\"version\":\"v1\",\"words\":[\"a\",\"\"]}", "policies/x.json: words: expected texts"},
        {"{\"version\":\"v1\",\"words\":{}}", "policies/x.json: words: expected an array"},
        {"{\"version\":\"v1\"}", "policies/x.json: words: expected this member"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        fixture f;
        cx_str_list words = {NULL, 0};
        if (!begin(&f, rows[i].text))
            return;
        cx_decode_object(&f.decoder, &f.root, "", names, CX_COUNT_OF(names));
        cx_decode_version(&f.decoder, &f.root);
        cx_decode_words(&f.decoder, &f.root, "words", &words);
        (void)cx_decode_need(&f.decoder, &f.root, "words");
        if (cx_decode_end(&f.decoder).code != CX_E_FORMAT ||
            strncmp(f.err.message, rows[i].message, strlen(rows[i].message)) != 0)
            cx_test_fail(__FILE__, __LINE__, "%s: '%s'", rows[i].text, f.err.message);
        cx_arena_done(&f.arena);
    }
}
