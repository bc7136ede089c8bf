/*
 * test_http_post.c - which addresses are accepted.  Requests themselves are in
 * tests/http/test_alerts.py, against a receiver.
 */
#include "os/http/http_post.h"

#include "tests/test.h"

CX_TEST(addresses_that_can_be_sent_to)
{
    static const char *const good[] = {
        "http://127.0.0.1:9093", "https://host.example", "https://host.example/a/b?c=d&e=%20",
        "http://[::1]:8080/x",   "http://[::1]",         "http://host:1",
        "http://host:65535/"};
    for (size_t i = 0; i < CX_COUNT_OF(good); i++) {
        cx_err err = {0};
        CHECK_STATUS(cx_http_post_check_url(good[i], &err), &err);
    }
}

CX_TEST(addresses_that_cannot)
{
    static const struct {
        const char *url, *word;
    } bad[] = {{"", "http://"},
               {"host.example", "http://"},
               {"HTTP://host", "http://"},
               {"file:///etc/passwd", "http://"},
               {"http://", "names no host"},
               {"http://?x", "names no host"},
               {"http://:80/", "names no host"},
               {"http://host:", "port"},
               {"http://host:0", "port"},
               {"http://host:65536", "port"},
               {"http://host:123456", "port"},
               {"http://host:8x", "port"},
               {"http://[::1", "']'"},
               {"http://[::1]x", "port"},
               {"http://user@host/", "password"},
               {"http://user:pw@host/", "password"},
               {"http://host/#part", "fragment"},
               {"http://host/a b", "escaped"},
               {"http://host/\n", "escaped"},
               {"http://host/\x7f", "escaped"},
               {"http://host/{x}", "escaped"}};
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        cx_err err = {0};
        CHECK(cx_http_post_check_url(bad[i].url, &err).code == CX_E_USAGE);
        CHECK(strstr(err.message, bad[i].word) != NULL);
        CHECK(strstr(err.message, "pw") == NULL);
    }
}

CX_TEST(an_address_has_a_longest_length)
{
    char url[CX_HTTP_POST_URL_MAX + 2];
    cx_err err = {0};
    memset(url, 'x', sizeof url);
    memcpy(url, "http://host/", 12);
    url[CX_HTTP_POST_URL_MAX] = 0;
    CHECK_STATUS(cx_http_post_check_url(url, &err), &err);
    url[CX_HTTP_POST_URL_MAX] = 'x';
    url[CX_HTTP_POST_URL_MAX + 1] = 0;
    CHECK(cx_http_post_check_url(url, &err).code == CX_E_USAGE);
}
