/*
 * test_host.c - hosts and patterns (host.h H1 to H3).
 */
#include "egress/host.h"

#include "tests/test.h"

static void check_host(const char *text, const char *name, uint16_t port, bool is_address)
{
    cx_egress_host host;
    const char *why = cx_egress_host_parse(cx_str_z(text), &host);
    if (why != NULL || strcmp(host.name, name) != 0 || host.size != strlen(name) ||
        host.port != port || host.is_address != is_address)
        cx_test_fail(__FILE__, __LINE__, "'%s': %s, '%s' port %u", text, why == NULL ? "" : why,
                     why == NULL ? host.name : "", why == NULL ? (unsigned)host.port : 0);
}

CX_TEST(hosts_have_one_spelling)
{
    check_host("Example.ORG", "example.org", 0, false);
    check_host("example.org.", "example.org", 0, false);
    check_host("example.org:443", "example.org", 443, false);
    check_host("xn--bcher-kva.example", "xn--bcher-kva.example", 0, false);
    check_host("a_b.example:65535", "a_b.example", 65535, false);
    check_host("localhost:1", "localhost", 1, false);
    check_host("10.0.0.1:80", "10.0.0.1", 80, true);
    check_host("10.0.0.1.", "10.0.0.1", 0, true);
    check_host("[2001:DB8:0:0::1]:443", "2001:db8::1", 443, true);
    check_host("[::ffff:7f00:1]", "::ffff:127.0.0.1", 0, true);
}

CX_TEST(what_is_no_host)
{
    static const char *const rows[] = {
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "-a.b",
        "a-.b",
        "a b",
        "a/b",
        "a@b",
        "b\303\274cher.example",
        "a:0",
        "a:",
        "a:65536",
        "a:080",
        "a:8o",
        "a:80:80",
        "::1",
        "[::1",
        "[::1]80",
        "[1.2.3.4]",
        "[fe80::1%eth0]",
        "[]",
        "*.example.org",
        "a%2eb",
        ("012345678901234567890123456789012345678901234567890123456789"
         "01234.example")};
    cx_egress_host host;
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++)
        if (cx_egress_host_parse(cx_str_z(rows[i]), &host) == NULL)
            cx_test_fail(__FILE__, __LINE__, "'%s' is a host", rows[i]);
    CHECK(cx_egress_host_parse(cx_str_from("a\0b", 3), &host) != NULL);
}

CX_TEST(other_forms_of_addresses_are_no_hosts)
{
    static const char *const rows[] = {"2130706433",  "0x7f000001",  "0x7f.1",     "127.1",
                                       "0177.0.0.1",  "127.0.1",     "1.2.3.4.5",  "256.0.0.1",
                                       "127.0.0.0x1", "a.1",         "0X7F.0.0.1", "2130706433.",
                                       "01.2.3.4",    "1.2.3.4.:80x"};
    cx_egress_host host;
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++)
        if (cx_egress_host_parse(cx_str_z(rows[i]), &host) == NULL)
            cx_test_fail(__FILE__, __LINE__, "'%s' is a host", rows[i]);
    for (size_t i = 0; i + 1 < CX_COUNT_OF(rows); i++)
        CHECK(cx_egress_host_is_number_form(cx_str_z(rows[i])));
    CHECK(!cx_egress_host_is_number_form(CX_STR("127.0.0.1")));
    CHECK(!cx_egress_host_is_number_form(CX_STR("127.0.0.1.:80")));
    CHECK(!cx_egress_host_is_number_form(CX_STR("example.org")));
    CHECK(!cx_egress_host_is_number_form(CX_STR("a..b")));
}

static bool covers(const char *pattern, const char *host)
{
    cx_egress_pattern p;
    cx_egress_host h;
    const char *why = cx_egress_pattern_parse(cx_str_z(pattern), &p);
    if (why != NULL || cx_egress_host_parse(cx_str_z(host), &h) != NULL)
        cx_test_fail(__FILE__, __LINE__, "'%s' or '%s': %s", pattern, host, why == NULL ? "" : why);
    return cx_egress_pattern_covers(&p, &h);
}

CX_TEST(patterns_cover_hosts_and_ports)
{
    CHECK(covers("example.org", "example.org:443"));
    CHECK(covers("example.org", "example.org:80"));
    CHECK(covers("Example.org.", "EXAMPLE.org:443"));
    CHECK(!covers("example.org", "example.org:22"));
    CHECK(covers("example.org:22", "example.org:22"));
    CHECK(!covers("example.org:22", "example.org:443"));
    CHECK(!covers("example.org", "a.example.org:443"));
    CHECK(!covers("example.org", "notexample.org:443"));
    CHECK(covers("*.example.org", "a.example.org:443"));
    CHECK(covers("*.example.org", "a.b.example.org:443"));
    CHECK(!covers("*.example.org", "example.org:443"));
    CHECK(!covers("*.example.org", "notexample.org:443"));
    CHECK(!covers("*.example.org", "example.org.evil:443"));
    CHECK(covers("*.example.org:8443", "a.example.org:8443"));
    CHECK(!covers("*.example.org:8443", "a.example.org:443"));
    CHECK(covers("10.0.0.1:80", "10.0.0.1:80"));
    CHECK(!covers("10.0.0.1:80", "10.0.0.2:80"));
    CHECK(covers("[::1]:80", "[0:0:0:0:0:0:0:1]:80"));
    CHECK(!covers("[::ffff:10.0.0.1]:80", "10.0.0.1:80"));
}

CX_TEST(what_is_no_pattern)
{
    static const char *const rows[] = {"",        "*",          "*.",           "*.org",
                                       "*.*.org", "a.*.org",    "*example.org", "*.10.0.0.1",
                                       "*.[::1]", "**.a.b",     "a.b:*",        "https://a.b",
                                       "a.b/c",   "*.0x7f.0x1", "*.a.b:0"};
    cx_egress_pattern pattern;
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++)
        if (cx_egress_pattern_parse(cx_str_z(rows[i]), &pattern) == NULL)
            cx_test_fail(__FILE__, __LINE__, "'%s' is a pattern", rows[i]);
}
