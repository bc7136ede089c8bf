/*
 * test_proxy.c - the proxy with names, sinks and hosts of its own (proxy.h X1 to X4).
 */
#include "egress/proxy.h"

#include <stdarg.h>

#include "os/api.h"
#include "tests/test.h"

typedef struct fixture {
    cx_egress_policy policy;
    cx_egress *proxy;
    cx_arena arena;
    cx_socket host; /* listens */
    uint16_t host_port, proxy_port;
    cx_lock lock;
    size_t opens, ends;
    bool sink_fails;
    char rule[8], error[200];
    cx_egress_record last;
} fixture;

/* --- names ------------------------------------------------------------------------------------ */

static size_t lookups;

static cx_status look_up(const char *name, cx_ip out[CX_IP_LOOKUP_MAX], size_t *out_count,
                         cx_err *err)
{
    static const struct {
        const char *name, *first, *second;
    } rows[] = {
        {"good.example", "127.0.0.1", NULL},           {"private.example", "127.0.0.1", NULL},
        {"mixed.example", "8.8.8.8", "127.0.0.1"},     {"mapped.example", "::ffff:127.0.0.1", NULL},
        {"metadata.example", "169.254.169.254", NULL}, {"nat64.example", "64:ff9b::a00:1", NULL},
    };
    lookups++;
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        CHECK(cx_ip_parse(cx_str_z(rows[i].first), &out[0]));
        if (rows[i].second != NULL)
            CHECK(cx_ip_parse(cx_str_z(rows[i].second), &out[1]));
        *out_count = rows[i].second != NULL ? 2 : 1;
        return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_NOT_FOUND, "%s has no address", name);
}

/* --- records ---------------------------------------------------------------------------------- */

static cx_status on_open(void *arg, const cx_egress_record *record, cx_err *err)
{
    fixture *f = arg;
    cx_lock_enter(&f->lock);
    f->opens++;
    CHECK(record->allowed && record->has_address && record->bytes_out == 0);
    cx_lock_leave(&f->lock);
    return f->sink_fails ? cx_fail(err, CX_E_IO, "no space left") : CX_SUCCESS;
}

static cx_status on_end(void *arg, const cx_egress_record *record, cx_err *err)
{
    fixture *f = arg;
    cx_lock_enter(&f->lock);
    f->ends++;
    f->last = *record;
    (void)snprintf(f->rule, sizeof f->rule, "%s", record->rule);
    (void)snprintf(f->error, sizeof f->error, "%s", record->error == NULL ? "" : record->error);
    cx_lock_wake(&f->lock);
    cx_lock_leave(&f->lock);
    (void)err;
    return CX_SUCCESS;
}

static void wait_ends(fixture *f, size_t count)
{
    cx_lock_enter(&f->lock);
    while (f->ends < count)
        cx_lock_wait_for(&f->lock, 100);
    cx_lock_leave(&f->lock);
}

/* --- the two ends ----------------------------------------------------------------------------- */

static uint16_t listen_on(cx_socket *out)
{
    cx_tcp_address at;
    cx_err err;
    CHECK_STATUS(cx_tcp_address_parse("127.0.0.1:0", &at, &err), &err);
    CHECK_STATUS(cx_tcp_listen(&at, out, &err), &err);
    return at.port;
}

static void set_up(fixture *f)
{
    cx_err err;
    cx_str hosts[3], private_host;
    cx_egress_list list;
    cx_socket listener;
    memset(f, 0, sizeof *f);
    cx_arena_init(&f->arena, cx_alloc_default(), 0);
    cx_lock_init(&f->lock);
    f->host_port = listen_on(&f->host);
    cx_egress_policy_init(&f->policy);
    f->policy.network = CX_EGRESS_ALLOWLIST;
    f->policy.limits.seconds_head = 2;
    hosts[0] = cx_arena_printf(&f->arena, "*.some.example:%u", (unsigned)f->host_port);
    hosts[1] = cx_arena_printf(&f->arena, "good.example:%u", (unsigned)f->host_port);
    CHECK_STATUS(cx_egress_list_make(hosts, 2, "hosts", &f->arena, &list, &err), &err);
    CHECK_STATUS(cx_egress_policy_narrow(&f->policy, &list, &err), &err);
    private_host = hosts[1];
    CHECK_STATUS(
        cx_egress_list_make(&private_host, 1, "private", &f->arena, &f->policy.private_hosts, &err),
        &err);
    const cx_egress_options options = {.io = cx_io_system(),
                                       .policy = &f->policy,
                                       .sink = {on_open, on_end, f},
                                       .lookup = look_up};
    CHECK_STATUS(cx_egress_start(&options, &f->proxy, &err), &err);
    f->proxy_port = listen_on(&listener);
    CHECK_STATUS(cx_stream_pass(cx_egress_channel(f->proxy), listener, &err), &err);
    cx_net_close(listener);
}

static void tear_down(fixture *f, cx_egress_totals *totals)
{
    cx_egress_stop(f->proxy, totals);
    cx_net_close(f->host);
    cx_lock_done(&f->lock);
    cx_arena_done(&f->arena);
}

/* All that the proxy answers until it closes. */
static void receive_all(cx_socket s, char *out, size_t size)
{
    size_t used = 0;
    while (used + 1 < size) {
        size_t got = 0;
        cx_stream_wait wait = {s, CX_POLL_READ, 0};
        CHECK(cx_stream_poll(&wait, 1, 30000));
        cx_socket_result result = cx_tcp_receive(s, out + used, size - 1 - used, &got);
        if (result == CX_SOCKET_ENDED)
            break;
        used += got;
    }
    out[used] = 0;
}

static cx_socket ask(const fixture *f, const char *format, ...) CX_PRINTF(2, 3);
static cx_socket ask(const fixture *f, const char *format, ...)
{
    char text[2000];
    cx_socket s;
    cx_err err;
    cx_ip loopback;
    va_list args;
    size_t sent;
    CHECK(cx_ip_parse(CX_STR("127.0.0.1"), &loopback));
    CHECK_STATUS(cx_stream_connect(&loopback, f->proxy_port, 10000, CX_SOCKET_NONE, &s, &err),
                 &err);
    va_start(args, format);
    int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    CHECK(cx_tcp_send(s, text, (size_t)size, &sent) == CX_SOCKET_DONE && sent == (size_t)size);
    return s;
}

static void check_refused(fixture *f, const char *host, unsigned port, const char *rule)
{
    char answer[2000];
    size_t ends = f->ends;
    cx_socket s = ask(f, "CONNECT %s:%u HTTP/1.1\r\n\r\n", host, port);
    receive_all(s, answer, sizeof answer);
    cx_net_close(s);
    wait_ends(f, ends + 1);
    if (strcmp(f->rule, rule) != 0 || strncmp(answer, "HTTP/1.1 200", 12) == 0)
        cx_test_fail(__FILE__, __LINE__, "%s: rule %s, expected %s: %s", host, f->rule, rule,
                     answer);
}

static bool host_was_reached(const fixture *f)
{
    cx_stream_wait wait = {f->host, CX_POLL_READ, 0};
    return cx_stream_poll(&wait, 1, 0);
}

/* --- tests ------------------------------------------------------------------------------------ */

CX_TEST(one_bad_address_refuses_a_name)
{
    fixture f;
    cx_egress_totals totals;
    cx_str names[] = {CX_STR("mixed.example"),    CX_STR("mapped.example"),
                      CX_STR("metadata.example"), CX_STR("nat64.example"),
                      CX_STR("private.example"),  CX_STR("none.example")};
    cx_err err;
    set_up(&f);
    CHECK_STATUS(
        cx_egress_list_make(names, CX_COUNT_OF(names), "names", &f.arena, &f.policy.lists[0], &err),
        &err);
    check_refused(&f, "mixed.example", 443, "E04");
    check_refused(&f, "mapped.example", 443, "E04");
    check_refused(&f, "metadata.example", 443, "E04");
    check_refused(&f, "nat64.example", 443, "E04");
    check_refused(&f, "private.example", 443, "E04");
    check_refused(&f, "none.example", 443, "E05");
    check_refused(&f, "other.example", 443, "E01");
    check_refused(&f, "127.0.0.1", f.host_port, "E01");
    CHECK(!host_was_reached(&f));
    tear_down(&f, &totals);
    CHECK(totals.connections == 8 && totals.refused == 8 && totals.allowed == 0);
}

CX_TEST(a_name_is_looked_up_once_and_its_address_is_used)
{
    fixture f;
    char got[2000], answer[2000];
    cx_socket host = CX_SOCKET_NONE;
    char network[CX_TCP_NETWORK_SIZE];
    bool loopback;
    size_t size = 0;
    set_up(&f);
    lookups = 0;
    cx_socket s = ask(&f,
                      "GET http://good.example:%u/x HTTP/1.1\r\nHost: good.example:%u\r\n\r\n"
                      "GET http://evil/ HTTP/1.1\r\nHost: evil\r\n\r\n",
                      (unsigned)f.host_port, (unsigned)f.host_port);
    cx_stream_wait wait = {f.host, CX_POLL_READ, 0};
    CHECK(cx_stream_poll(&wait, 1, 30000));
    CHECK(cx_tcp_accept(f.host, &host, &loopback, network) == CX_SOCKET_DONE);
    wait.socket = host;
    CHECK(cx_stream_poll(&wait, 1, 30000));
    CHECK(cx_tcp_receive(host, got, sizeof got - 1, &size) == CX_SOCKET_DONE);
    got[size] = 0;
    CHECK(strncmp(got, "GET /x HTTP/1.1\r\n", 17) == 0 && strstr(got, "evil") == NULL);
    static const char reply[] = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nhello";
    CHECK(cx_tcp_send(host, reply, sizeof reply - 1, &size) == CX_SOCKET_DONE);
    cx_net_close(host);
    receive_all(s, answer, sizeof answer);
    CHECK(strcmp(answer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello") == 0);
    cx_net_close(s);
    wait_ends(&f, 1);
    CHECK(f.opens == 1 && lookups == 1 && f.last.allowed && f.last.error == NULL);
    CHECK(f.last.bytes_in == sizeof reply - 1);
    tear_down(&f, NULL);
}

CX_TEST(without_a_record_nothing_is_reached)
{
    fixture f;
    char answer[2000];
    cx_egress_totals totals;
    set_up(&f);
    f.sink_fails = true;
    for (size_t i = 0; i < 2; i++) { /* the second is not even tried */
        cx_socket s = ask(&f, "CONNECT good.example:%u HTTP/1.1\r\n\r\n", (unsigned)f.host_port);
        receive_all(s, answer, sizeof answer);
        cx_net_close(s);
        CHECK(strncmp(answer, "HTTP/1.1 503", 12) == 0);
        wait_ends(&f, i + 1);
        CHECK(strcmp(f.rule, "E12") == 0);
    }
    CHECK(f.opens == 1 && !host_was_reached(&f));
    tear_down(&f, &totals);
    CHECK(totals.record_failed && strcmp(totals.record_error, "no space left") == 0);
}

CX_TEST(a_tunnel_without_tls_is_refused)
{
    static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 49};
    fixture f;
    char answer[2000];
    size_t size;
    set_up(&f);
    cx_socket s =
        ask(&f, "CONNECT good.example:%u HTTP/1.1\r\n\r\nSSH-2.0-x\r\n", (unsigned)f.host_port);
    receive_all(s, answer, sizeof answer);
    cx_net_close(s);
    size = strlen("HTTP/1.1 200 Connection established\r\n\r\n");
    CHECK(memcmp(answer + size, alert, sizeof alert) == 0);
    wait_ends(&f, 1);
    CHECK(strcmp(f.rule, "E08") == 0 && !f.last.allowed && f.last.bytes_out == 0);
    tear_down(&f, NULL);
}

CX_TEST(stopping_ends_what_waits)
{
    fixture f;
    cx_egress_totals totals;
    set_up(&f);
    cx_socket a = ask(&f, "CONNECT good.example:%u HTTP/1.1\r\n\r\n", (unsigned)f.host_port);
    cx_socket b = ask(&f, "GET http://good");
    char answer[100];
    size_t got = 0;
    cx_stream_wait wait = {a, CX_POLL_READ, 0};
    CHECK(cx_stream_poll(&wait, 1, 30000));
    CHECK(cx_tcp_receive(a, answer, sizeof answer, &got) == CX_SOCKET_DONE);
    tear_down(&f, &totals);
    CHECK(totals.connections >= 1 && totals.allowed == 1);
    cx_net_close(a);
    cx_net_close(b);
}

/* --- policies --------------------------------------------------------------------------------- */

static bool policy_is(const char *text, cx_egress_policy *out)
{
    cx_arena arena;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_egress_policy_read(cx_str_z(text), "p.json", &arena, out, &err);
    CHECK(!cx_failed(status) || status.code == CX_E_FORMAT || status.code == CX_E_SYNTAX);
    cx_arena_done(&arena);
    return !cx_failed(status);
}

CX_TEST(policies_are_read_completely)
{
    cx_egress_policy p;
    CHECK(policy_is("{\"version\":\"v1\"}", &p));
    CHECK(p.network == CX_EGRESS_ALLOWLIST && p.list_count == 0);
    CHECK(policy_is("{\"version\":\"v1\",\"network\":\"allow\",\"hosts\":[\"a.b\",\"*.c.d:1\"],"
                    "\"private_hosts\":[\"a.b:1\"],\"credentials\":[\"x\"],"
                    "\"limits\":{\"connections\":3}}",
                    &p));
    CHECK(p.network == CX_EGRESS_ALLOW && p.list_count == 1 && p.limits.connections == 3);
    static const char *const wrong[] = {
        "[]",
        "{}",
        "{\"version\":\"v2\"}",
        "{\"version\":\"v1\",\"host\":[]}",
        "{\"version\":\"v1\",\"hosts\":\"a.b\"}",
        "{\"version\":\"v1\",\"hosts\":[\"*\"]}",
        "{\"version\":\"v1\",\"hosts\":[\"\"]}",
        "{\"version\":\"v1\",\"network\":\"on-request\"}",
        "{\"version\":\"v1\",\"private_hosts\":[\"a.b\"]}",
        "{\"version\":\"v1\",\"private_hosts\":[\"*.a.b:1\"]}",
        "{\"version\":\"v1\",\"limits\":{\"connections\":0}}",
        "{\"version\":\"v1\",\"limits\":{\"connections\":257}}",
        "{\"version\":\"v1\",\"limits\":{\"other\":1}}",
        "{\"version\":\"v1\",\"credentials\":[1]}",
    };
    for (size_t i = 0; i < CX_COUNT_OF(wrong); i++)
        if (policy_is(wrong[i], &p))
            cx_test_fail(__FILE__, __LINE__, "accepted: %s", wrong[i]);
}
