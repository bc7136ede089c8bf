/* Sessions of browsers: begun, found, ended; whose page asks; which coding a file is sent in. */
#include "server/session.h"

#include <stdio.h>

#include "server/origin.h"
#include "server/page/page.h"
#include "tests/support/folder.h"
#include "tests/test.h"

/* A clock that stands where it is put. */
static uint64_t clock_ns;

static uint64_t standing_clock(const cx_io *io)
{
    (void)io;
    return clock_ns;
}

static int no_randomness(const cx_io *io, void *data, size_t size)
{
    (void)io;
    (void)data;
    (void)size;
    return -5;
}

CX_TEST(sessions_are_known_until_they_end)
{
    static cx_sessions sessions;
    cx_io io = *cx_io_system();
    cx_err err;
    char text[CX_SESSION_TEXT_SIZE + 1], other[CX_SESSION_TEXT_SIZE + 1];
    cx_digest token = cx_digest_of(cx_str_bytes(CX_STR("token"))), found;
    io.monotonic_ns = standing_clock;
    clock_ns = 1000;
    cx_sessions_init(&sessions, &io);
    CHECK(!cx_sessions_find(&sessions, CX_STR(""), &found));
    CHECK_STATUS(cx_sessions_begin(&sessions, &token, text, &err), &err);
    CHECK_STATUS(cx_sessions_begin(&sessions, &token, other, &err), &err);
    CHECK(strcmp(text, other) != 0);
    CHECK(cx_sessions_find(&sessions, cx_str_z(text), &found) && cx_digest_eq(&found, &token));
    CHECK_STATUS(cx_sessions_end(&sessions, cx_str_z(other), &err), &err);
    CHECK(!cx_sessions_find(&sessions, cx_str_z(other), &found));
    CHECK_STATUS(cx_sessions_end(&sessions, cx_str_z(other), &err), &err);
    clock_ns += CX_SESSION_SECONDS * UINT64_C(1000000000) - 1;
    CHECK(cx_sessions_find(&sessions, cx_str_z(text), &found));
    clock_ns++;
    CHECK(!cx_sessions_find(&sessions, cx_str_z(text), &found));
    io.random = no_randomness;
    CHECK(cx_failed(cx_sessions_begin(&sessions, &token, text, &err)));
    cx_sessions_done(&sessions);
}

/* Two processes with clocks of their own, and one file. */
CX_TEST(stored_sessions_are_those_of_the_next_process)
{
    static cx_sessions first, second, third;
    cx_io io = *cx_io_system();
    cx_err err;
    char text[CX_SESSION_TEXT_SIZE + 1], other[CX_SESSION_TEXT_SIZE + 1];
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 16];
    cx_digest token = cx_digest_of(cx_str_bytes(CX_STR("token"))), found;
    cx_buf file;
    io.monotonic_ns = standing_clock;
    folder_fresh(folder, "sessions");
    CHECK_INT(io.mkdir(&io, folder), 0);
    (void)snprintf(path, sizeof path, "%s/sessions.json", folder);
    clock_ns = 1000;
    cx_sessions_init(&first, &io);
    CHECK_STATUS(cx_sessions_keep(&first, path, &err), &err);
    CHECK_STATUS(cx_sessions_begin(&first, &token, text, &err), &err);
    CHECK_STATUS(cx_sessions_begin(&first, &token, other, &err), &err);
    CHECK_STATUS(cx_sessions_end(&first, cx_str_z(other), &err), &err);
    cx_buf_init(&file, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(&io, path, 1 << 20, &file, &err), &err);
    CHECK(strstr(cx_buf_z(&file), text) == NULL);
    clock_ns = UINT64_C(1) << 60;
    cx_sessions_init(&second, &io);
    CHECK_STATUS(cx_sessions_keep(&second, path, &err), &err);
    CHECK(cx_sessions_find(&second, cx_str_z(text), &found) && cx_digest_eq(&found, &token));
    CHECK(!cx_sessions_find(&second, cx_str_z(other), &found));
    clock_ns += (CX_SESSION_SECONDS - 60) * UINT64_C(1000000000);
    CHECK(cx_sessions_find(&second, cx_str_z(text), &found));
    clock_ns += 60 * UINT64_C(1000000000);
    CHECK(!cx_sessions_find(&second, cx_str_z(text), &found));
    /* A file that cannot be read: none of before, and the next one is stored again. */
    CHECK_STATUS(cx_io_replace_private_file(&io, path, cx_str_bytes(CX_STR("{}")), &err), &err);
    cx_sessions_init(&third, &io);
    CHECK_STR(cx_str_z(cx_failed(cx_sessions_keep(&third, path, &err)) ? err.tag : ""),
              "BadSessions");
    CHECK_STATUS(cx_sessions_begin(&third, &token, text, &err), &err);
    CHECK_STATUS(cx_sessions_keep(&third, path, &err), &err);
    CHECK(cx_sessions_find(&third, cx_str_z(text), &found));
    /* One that cannot be stored is none. */
    third.path = "/nowhere/sessions.json";
    CHECK(cx_failed(cx_sessions_begin(&third, &token, other, &err)));
    CHECK_INT(third.count, 1);
    CHECK(cx_failed(cx_sessions_end(&third, cx_str_z(text), &err)) && third.count == 0);
    cx_buf_done(&file);
    cx_sessions_done(&first);
    cx_sessions_done(&second);
    cx_sessions_done(&third);
    folder_remove(folder);
}

CX_TEST(sessions_evict_the_least_recently_used)
{
    static cx_sessions sessions;
    static char texts[CX_SESSIONS_MAX + 1][CX_SESSION_TEXT_SIZE + 1];
    cx_io io = *cx_io_system();
    cx_err err;
    cx_digest token = cx_digest_of(cx_str_bytes(CX_STR("token"))), found;
    io.monotonic_ns = standing_clock;
    cx_sessions_init(&sessions, &io);
    for (size_t i = 0; i < CX_SESSIONS_MAX; i++) {
        clock_ns = 1000 + i;
        CHECK_STATUS(cx_sessions_begin(&sessions, &token, texts[i], &err), &err);
    }
    clock_ns++;
    CHECK(cx_sessions_find(&sessions, cx_str_z(texts[0]), &found));
    CHECK_STATUS(cx_sessions_begin(&sessions, &token, texts[CX_SESSIONS_MAX], &err), &err);
    /* The least recently used one is gone, not the one that is oldest. */
    CHECK(cx_sessions_find(&sessions, cx_str_z(texts[0]), &found));
    CHECK(!cx_sessions_find(&sessions, cx_str_z(texts[1]), &found));
    CHECK(cx_sessions_find(&sessions, cx_str_z(texts[CX_SESSIONS_MAX]), &found));
    cx_sessions_done(&sessions);
}

CX_TEST(cookies_are_found_by_their_whole_name)
{
    static const struct {
        const char *header, *value; /* NULL = not there */
    } cases[] = {
        {"cortex_1=abc", "abc"},
        {"a=b; cortex_1=abc; c=d", "abc"},
        {"xcortex_1=abc", NULL},
        {"cortex_12=abc", NULL},
        {"cortex_1=", ""},
        {"cortex_1", NULL},
        {"", NULL},
        {"; ;cortex_1=a=b", "a=b"},
        {"cortex_1=one; cortex_1=two", "one"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_str found = cx_session_cookie(cx_str_z(cases[i].header), "cortex_1");
        CHECK((found.data == NULL) == (cases[i].value == NULL));
        if (cases[i].value != NULL)
            CHECK_STR(found, cases[i].value);
    }
    CHECK(cx_session_cookie((cx_str){NULL, 0}, "cortex_1").data == NULL);
}

CX_TEST(codings_are_chosen_by_what_is_accepted)
{
    static const struct {
        const char *accept;
        cx_page_coding coding;
    } cases[] = {
        {"", CX_PAGE_PLAIN},
        {"gzip", CX_PAGE_GZIP},
        {"gzip, deflate, br, zstd", CX_PAGE_BROTLI},
        {"br;q=0.5, gzip", CX_PAGE_BROTLI},
        {"br;q=0, gzip", CX_PAGE_GZIP},
        {"br;q=0.000,gzip;q=0", CX_PAGE_PLAIN},
        {"identity", CX_PAGE_PLAIN},
        {" gzip ; q=1 ", CX_PAGE_GZIP},
        {"xgzip, gzipx, br2", CX_PAGE_PLAIN},
        {",,,", CX_PAGE_PLAIN},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++)
        CHECK_INT(cx_page_choose(cx_str_z(cases[i].accept)), cases[i].coding);
    CHECK_INT(cx_page_choose((cx_str){NULL, 0}), CX_PAGE_PLAIN);
}

CX_TEST(etags_are_compared_whole)
{
    const cx_page_file file = {.name = "x", .etag = "abcd"};
    CHECK(cx_page_is_known(&file, CX_STR("\"abcd\"")));
    CHECK(cx_page_is_known(&file, CX_STR("\"x\", W/\"abcd\"")));
    CHECK(cx_page_is_known(&file, CX_STR("*")));
    CHECK(!cx_page_is_known(&file, CX_STR("\"abc\", \"abcde\", abcd, \"\"")));
    CHECK(!cx_page_is_known(&file, (cx_str){NULL, 0}));
}

static cx_str text(const char *z)
{
    return z == NULL ? (cx_str){NULL, 0} : cx_str_z(z);
}

CX_TEST(only_our_own_page_counts)
{
    static const struct {
        const char *method, *host, *origin, *site, *header;
        bool own;
    } cases[] = {
        {"GET", "127.0.0.1:1", NULL, NULL, NULL, true},
        {"GET", "127.0.0.1:1", NULL, "same-origin", NULL, true},
        {"GET", "127.0.0.1:1", NULL, "none", NULL, true},
        {"GET", "127.0.0.1:1", NULL, "same-site", NULL, false},
        {"GET", "127.0.0.1:1", NULL, "cross-site", NULL, false},
        {"GET", "127.0.0.1:1", "http://127.0.0.1:1", NULL, NULL, true},
        {"GET", "127.0.0.1:1", "http://127.0.0.1:2", NULL, NULL, false},
        {"GET", "127.0.0.1:1", "null", NULL, NULL, false},
        {"POST", "127.0.0.1:1", "http://127.0.0.1:1", "same-origin", "1", true},
        {"POST", "127.0.0.1:1", "https://127.0.0.1:1", NULL, "1", true},
        {"POST", "127.0.0.1:1", NULL, "same-origin", "1", true},
        {"POST", "127.0.0.1:1", NULL, NULL, "1", false},
        {"POST", "127.0.0.1:1", NULL, "none", "1", false},
        {"POST", "127.0.0.1:1", "http://127.0.0.1:1", "same-origin", NULL, false},
        {"DELETE", "127.0.0.1:1", "http://evil.example", NULL, "1", false},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        const cx_request request = {.method = text(cases[i].method),
                                    .host = text(cases[i].host),
                                    .origin = text(cases[i].origin),
                                    .fetch_site = text(cases[i].site),
                                    .page_header = text(cases[i].header)};
        CHECK(cx_origin_is_own_page(&request) == cases[i].own);
    }
}

CX_TEST(hosts_are_addresses_or_names_that_were_given)
{
    static const char *const names[] = {"debugger.example"};
    static const char *const yes[] = {"127.0.0.1",          "127.0.0.1:80", "localhost:1",
                                      "10.0.0.7",           "[::1]:8420",   "debugger.example",
                                      "debugger.example:99"};
    static const char *const no[] = {"",      "evil.example",   "127.0.0.1.evil.example",
                                     "1.2.3", "localhost.evil", "debugger.example.evil",
                                     ":80"};
    cx_service service = {.options = {.names = names, .name_count = 1}};
    for (size_t i = 0; i < CX_COUNT_OF(yes); i++)
        CHECK(cx_origin_host(&service, &(cx_request){.host = text(yes[i])}));
    for (size_t i = 0; i < CX_COUNT_OF(no); i++)
        CHECK(!cx_origin_host(&service, &(cx_request){.host = text(no[i])}));
    CHECK(!cx_origin_host(&service, &(cx_request){.host = {NULL, 0}}));
    service.options.tls = true;
    CHECK(cx_origin_host(&service, &(cx_request){.host = text("any.example")}));
}
