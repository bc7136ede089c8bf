/*
 * test_hello.c - server names of ClientHellos, made here byte by byte.
 */
#include "egress/hello.h"

#include "tests/test.h"

typedef struct hello {
    uint8_t bytes[4096];
    size_t size;
} hello;

static void add(hello *h, const void *data, size_t size)
{
    memcpy(h->bytes + h->size, data, size);
    h->size += size;
}

static void add_uint(hello *h, size_t value, size_t width)
{
    for (size_t i = width; i-- > 0;)
        h->bytes[h->size++] = (uint8_t)(value >> (8 * i));
}

static void add_extension(hello *h, unsigned type, const hello *body)
{
    add_uint(h, type, 2);
    add_uint(h, body->size, 2);
    add(h, body->bytes, body->size);
}

static hello name_list(const char *name, uint8_t type)
{
    hello list = {.size = 0};
    add_uint(&list, strlen(name) + 3, 2);
    add_uint(&list, type, 1);
    add_uint(&list, strlen(name), 2);
    add(&list, name, strlen(name));
    return list;
}

/* A handshake message; `extensions` NULL: there are none at all. */
static hello message(const hello *extensions)
{
    hello body = {.size = 0}, out = {.size = 0};
    add_uint(&body, 0x0303, 2);
    body.size += 32;
    add_uint(&body, 32, 1);
    body.size += 32;
    add_uint(&body, 2, 2);
    add_uint(&body, 0x1301, 2);
    add_uint(&body, 0x0100, 2); /* one compression method */
    if (extensions != NULL) {
        add_uint(&body, extensions->size, 2);
        add(&body, extensions->bytes, extensions->size);
    }
    add_uint(&out, 1, 1);
    add_uint(&out, body.size, 3);
    add(&out, body.bytes, body.size);
    return out;
}

/* Records of at most `step` bytes. */
static hello records(const hello *of, size_t step)
{
    hello out = {.size = 0};
    for (size_t at = 0; at < of->size; at += step) {
        size_t size = of->size - at < step ? of->size - at : step;
        add_uint(&out, 0x160301, 3);
        add_uint(&out, size, 2);
        add(&out, of->bytes + at, size);
    }
    return out;
}

static hello hello_with(const char *name, unsigned more)
{
    hello list = name_list(name, 0), all = {.size = 0}, nothing = {.size = 0};
    add_extension(&all, 0, &list);
    if (more != 0)
        add_extension(&all, more, more == 0xffff ? &list : &nothing);
    hello made = message(&all);
    return records(&made, 1000);
}

static cx_egress_hello_state read_hello(const hello *h, cx_egress_hello *out)
{
    return cx_egress_hello_read(cx_bytes_from(h->bytes, h->size), out);
}

CX_TEST(the_name_is_read)
{
    cx_egress_hello out;
    hello h = hello_with("Example.ORG", 0);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_READ);
    CHECK(out.has_name && !out.has_ech && strcmp(out.name.name, "example.org") == 0);
    h = hello_with("example.org", 0xfe0d);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_READ && out.has_ech && out.has_name);
    hello none = message(NULL);
    h = records(&none, 1000);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_READ && !out.has_name);
}

CX_TEST(fragments_are_joined)
{
    hello list = name_list("example.org", 0), all = {.size = 0};
    cx_egress_hello out;
    add_extension(&all, 0, &list);
    hello made = message(&all);
    for (size_t step = 1; step < made.size + 2; step++) {
        hello h = records(&made, step);
        CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_READ && out.has_name);
    }
    hello h = records(&made, 7);
    for (h.size--; h.size > 0; h.size--)
        CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_MORE);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_MORE);
}

CX_TEST(what_is_no_hello)
{
    cx_egress_hello out;
    hello h = {.size = 0};
    add(&h, "GET / HTTP/1.1\r\n", 16);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
    h = (hello){.size = 0};
    add(&h, "SSH-2.0-x\r\n", 11);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
    h = hello_with("example.org", 0);
    h.bytes[5] = 2; /* a ServerHello */
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
    h = hello_with("example.org", 0);
    h.bytes[6] = 1; /* of 64 KiB and more */
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
    h = hello_with("a..b", 0);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
    h = hello_with("10.0.0.1", 0);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
    h = hello_with("a.b:443", 0);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
    h = hello_with("", 0);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
}

CX_TEST(two_names_are_refused)
{
    hello list = name_list("a.b", 0), all = {.size = 0}, two = {.size = 0};
    cx_egress_hello out;
    add_extension(&all, 0, &list);
    add_extension(&all, 0, &list);
    hello made = message(&all);
    hello h = records(&made, 1000);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
    add_uint(&two, 2 * 6, 2);
    add(&two, list.bytes + 2, 6);
    add(&two, list.bytes + 2, 6);
    all.size = 0;
    add_extension(&all, 0, &two);
    made = message(&all);
    h = records(&made, 1000);
    CHECK(read_hello(&h, &out) == CX_EGRESS_HELLO_BAD);
}

/* Every bit of a hello turned over: never a crash, and never two names for the same bytes. */
CX_TEST(each_bit_turned_over)
{
    hello h = hello_with("example.org", 0);
    for (size_t bit = 0; bit < h.size * 8; bit++) {
        cx_egress_hello a, b;
        h.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cx_egress_hello_state state = read_hello(&h, &a);
        CHECK(state == read_hello(&h, &b) && a.has_name == b.has_name);
        CHECK(state == CX_EGRESS_HELLO_READ || !a.has_name || a.why != NULL ||
              state == CX_EGRESS_HELLO_MORE);
        h.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}
