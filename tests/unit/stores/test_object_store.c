/*
 * Requests to an object store: signatures as AWS publishes them (sig-v4-header-based-auth.html) and
 * as an independent computation has them, settings that are refused, credentials that are in no
 * message.  What a store answers: tests/cli/test_object_store.py.
 */
#include "stores/object_store.h"

#include "crypto/api.h"
#include "stores/object_sign.h"
#include "tests/test.h"

#define ACCESS "AKIAIOSFODNN7EXAMPLE"
#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SEALED "c9d0036bed6744bcdf692fc980d8717d7e5f5a4f4e8266b4a84982602fb1cd09"

static void check_signature(const cx_object_signing *signing, const char *names,
                            const char *signature)
{
    cx_buf out, expected;
    cx_err err = {0};
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    CHECK_STATUS(cx_object_sign(signing, &out, &err), &err);
    cx_buf_printf(&expected,
                  "AWS4-HMAC-SHA256 Credential=" ACCESS "/%.8s/%s/s3/aws4_request, "
                  "SignedHeaders=%s, Signature=%s",
                  signing->time, signing->region, names, signature);
    CHECK_STR(cx_buf_str(&out), cx_buf_z(&expected));
    cx_buf_done(&out);
    cx_buf_done(&expected);
}

CX_TEST(object_sign_is_as_published)
{
    const cx_object_header get[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                    {"range", "bytes=0-9"},
                                    {"x-amz-content-sha256", NOTHING},
                                    {"x-amz-date", "20130524T000000Z"}};
    const cx_object_header lifecycle[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                          {"x-amz-content-sha256", NOTHING},
                                          {"x-amz-date", "20130524T000000Z"}};
    cx_object_signing signing = {.access_key = ACCESS,
                                 .secret_key = SECRET,
                                 .region = "us-east-1",
                                 .time = "20130524T000000Z",
                                 .method = "GET",
                                 .path = "/test.txt",
                                 .query = "",
                                 .headers = get,
                                 .header_count = CX_COUNT_OF(get),
                                 .payload_sha256 = NOTHING};
    check_signature(&signing, "host;range;x-amz-content-sha256;x-amz-date",
                    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    signing.path = "/";
    signing.query = "lifecycle=";
    signing.headers = lifecycle;
    signing.header_count = CX_COUNT_OF(lifecycle);
    check_signature(&signing, "host;x-amz-content-sha256;x-amz-date",
                    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

CX_TEST(object_sign_covers_the_token_and_the_condition)
{
    const cx_object_header put[] = {{"host", "127.0.0.1:4568"},
                                    {"if-none-match", "*"},
                                    {"x-amz-content-sha256", SEALED},
                                    {"x-amz-date", "20261231T235959Z"},
                                    {"x-amz-security-token", "a+session/token=="}};
    const cx_object_signing signing = {.access_key = ACCESS,
                                       .secret_key = SECRET,
                                       .region = "eu-central-1",
                                       .time = "20261231T235959Z",
                                       .method = "PUT",
                                       .path = "/bundles/team-b/sha256/" SEALED,
                                       .query = "",
                                       .headers = put,
                                       .header_count = CX_COUNT_OF(put),
                                       .payload_sha256 = SEALED};
    check_signature(&signing,
                    "host;if-none-match;x-amz-content-sha256;x-amz-date;x-amz-security-token",
                    "ecd4816af179fc648ebf13f7820ed78fec3a7c6c1a3840f1b312a43cee8c6271");
}

CX_TEST(object_time_is_written_without_a_zone)
{
    char text[17];
    cx_object_time(1798761599, text);
    CHECK_STR(cx_str_z(text), "20261231T235959Z");
    cx_object_time(0, text);
    CHECK_STR(cx_str_z(text), "19700101T000000Z");
}

static cx_object_store good(void)
{
    return (cx_object_store){.endpoint = "https://s3.example",
                             .bucket = "bundles",
                             .region = "us-east-1",
                             .prefix = "team-b/runs",
                             .timeout_s = 30,
                             .tries = 1};
}

static void check_refused(const cx_object_store *store, const char *word)
{
    cx_err err = {0};
    CHECK(cx_object_store_check(store, &err).code == CX_E_USAGE);
    if (strstr(err.message, word) == NULL)
        CHECK_STR(cx_str_z(err.message), word);
}

CX_TEST(object_settings_that_would_not_mean_one_place_are_refused)
{
    static const char *const endpoints[] = {
        "ftp://s3.example",         "s3.example",           "https://",
        "https://s3.example/",      "https://s3.example/x", "https://s3.example?x",
        "https://u:p@s3.example",   "http://s3.example",    "http://10.0.0.1:9000",
        "http://127.0.0.1.example", "http://[::2]:80",      "https://s3.example:0",
        "http://localhost.example"};
    static const char *const fine[] = {"http://127.0.0.1:4568", "http://localhost:1",
                                       "http://[::1]:9000", "https://s3.example:9000"};
    static const char *const prefixes[] = {"/a",     "a/",  "a//b",  ".",
                                           "a/../b", "a b", "a%2fb", "\xc3\xa4"};
    static const char *const buckets[] = {"", "ab", "A-b", "a/b", "..a", "a_b", "-ab"};
    cx_err err = {0};
    cx_object_store store = good();
    CHECK_STATUS(cx_object_store_check(&store, &err), &err);
    for (size_t i = 0; i < CX_COUNT_OF(endpoints); i++) {
        store.endpoint = endpoints[i];
        check_refused(&store, "endpoint");
    }
    for (size_t i = 0; i < CX_COUNT_OF(fine); i++) {
        store.endpoint = fine[i];
        CHECK_STATUS(cx_object_store_check(&store, &err), &err);
    }
    store.endpoint = "http://10.0.0.1:9000";
    store.plain_http = true;
    CHECK_STATUS(cx_object_store_check(&store, &err), &err);
    store = good();
    for (size_t i = 0; i < CX_COUNT_OF(prefixes); i++) {
        store.prefix = prefixes[i];
        check_refused(&store, "prefix");
    }
    store = good();
    for (size_t i = 0; i < CX_COUNT_OF(buckets); i++) {
        store.bucket = buckets[i];
        check_refused(&store, "bucket");
    }
    store = good();
    store.bucket = NULL;
    check_refused(&store, "bucket");
    store = good();
    store.region = "eu central";
    check_refused(&store, "region");
    store = good();
    store.timeout_s = 0;
    check_refused(&store, "timeout");
}

static void check_unready(const cx_object_store *store)
{
    cx_err err = {0};
    CHECK(cx_object_store_ready(store, &err).code == CX_E_NOT_FOUND);
    CHECK_STR(cx_str_z(err.tag), CX_OBJECT_UNREACHABLE);
    CHECK(strstr(err.message, "hunter2") == NULL);
}

CX_TEST(object_credentials_are_needed_whole_and_are_in_no_message)
{
    cx_err err = {0};
    cx_object_store store = good();
    check_unready(&store);
    store.access_key = "AKIA";
    check_unready(&store);
    store.secret_key = "hunter2";
    CHECK_STATUS(cx_object_store_ready(&store, &err), &err);
    store.secret_key = "hunter2\r\nx-amz-acl: public-read";
    check_unready(&store);
    store.secret_key = "secret";
    store.access_key = "hunter2/eu";
    check_unready(&store);
    store.access_key = "AKIA";
    store.session_token = "hunter2\nHost: other";
    check_unready(&store);
}

CX_TEST(object_names_are_the_hash_below_the_prefix)
{
    char name[CX_OBJECT_NAME_SIZE];
    cx_object_store store = good();
    const cx_digest nothing = cx_digest_of(cx_bytes_from(NULL, 0));
    cx_object_name(&store, &nothing, name);
    CHECK_STR(cx_str_z(name), "team-b/runs/sha256/" NOTHING);
    store.prefix = "";
    cx_object_name(&store, &nothing, name);
    CHECK_STR(cx_str_z(name), "sha256/" NOTHING);
}
