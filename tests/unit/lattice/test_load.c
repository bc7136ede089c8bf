/*
 * test_load.c - reading: forms, headers, limits, every refused input with code, line and offset,
 * and the places where blocks and windows end.  (lattice.md §1, §2)
 */
#include "lattice/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/fault.h"
#include "tests/support/lattice_text.h"
#include "tests/test.h"

#define MIB ((size_t)1 << 20)

typedef struct opened {
    cx_lattice *lattice;
    cx_status status;
    cx_err err;
} opened;

static opened open_with(cx_str text, const cx_lattice_options *options)
{
    opened o = {0};
    o.status = cx_lattice_open_bytes(cx_str_bytes(text), options, &o.lattice, &o.err);
    return o;
}

static opened open_str(cx_str text)
{
    return open_with(text, NULL);
}

/* Reads the same bytes from a file, in one thread and in four. */
static opened open_file(cx_str text, unsigned threads)
{
    opened o = {0};
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.threads = threads;
    const char *path = lattice_text_file("load", text);
    o.status = cx_lattice_open(path, &options, &o.lattice, &o.err);
    (void)unlink(path);
    return o;
}

/* Refused alike from memory and from a file, with that code, line and offset. */
static void check_refused_at(int at, cx_str text, const char *tag, uint64_t line, uint64_t offset)
{
    for (int from_file = 0; from_file < 2; from_file++) {
        opened o = from_file ? open_file(text, 1) : open_str(text);
        if (!cx_failed(o.status)) {
            cx_test_fail(__FILE__, at, "accepted, expected %s", tag);
            cx_lattice_close(o.lattice);
            continue;
        }
        if (o.err.tag == NULL || strcmp(o.err.tag, tag) != 0)
            cx_test_fail(__FILE__, at, "found %s (%s), expected %s", o.err.tag ? o.err.tag : "-",
                         o.err.message, tag);
        if (o.err.line != line || (offset != CX_NO_OFFSET && o.err.offset != offset))
            cx_test_fail(__FILE__, at, "%s at %llu:%llu, expected %llu:%llu", tag,
                         (unsigned long long)o.err.line, (unsigned long long)o.err.offset,
                         (unsigned long long)line, (unsigned long long)offset);
        CHECK_INT(o.err.code, o.status.code);
    }
}
#define REFUSED(text, tag, line, offset) check_refused_at(__LINE__, (text), (tag), (line), (offset))

static void check_count_at(int at, cx_str text, uint32_t count)
{
    for (unsigned how = 0; how < 3; how++) {
        opened o = how == 0 ? open_str(text) : open_file(text, how == 1 ? 1 : 4);
        if (cx_failed(o.status)) {
            cx_test_fail(__FILE__, at, "refused: %s", o.err.message);
            continue;
        }
        if (cx_lattice_count(o.lattice) != count)
            cx_test_fail(__FILE__, at, "%u nodes, expected %u", cx_lattice_count(o.lattice), count);
        cx_lattice_close(o.lattice);
    }
}
#define COUNT(text, count) check_count_at(__LINE__, (text), (count))

#define NODE0                                                                        \
    "{\"node_id\":\"n0\",\"agent_id\":\"a\",\"seq\":0,\"timestamp\":0,\"event\":{}," \
    "\"state_delta\":{},\"prev_hash\":\"\",\"hash\":\"x\"}"
#define NODE1                                                                        \
    "{\"node_id\":\"n1\",\"agent_id\":\"a\",\"seq\":1,\"timestamp\":1,\"event\":{}," \
    "\"state_delta\":{},\"prev_hash\":\"x\",\"hash\":\"y\",\"parents\":[\"n0\"]}"

CX_TEST(load_forms_are_told_apart)
{
    COUNT(CX_STR(NODE0 "\n" NODE1 "\n"), 2);
    COUNT(CX_STR(NODE0 "\n" NODE1), 2); /* last LF optional */
    COUNT(CX_STR(NODE0), 1);
    COUNT(CX_STR("\n \t\r\n" NODE0 "\r\n\r\n" NODE1 "\r\n"), 2);
    COUNT(CX_STR("[" NODE0 "," NODE1 "]"), 2);
    COUNT(CX_STR(" \n\t[\n" NODE0 "\n,\n" NODE1 "\n]\n\n"), 2);
    COUNT(CX_STR("{\"nodes\":[" NODE0 "," NODE1 "]}"), 2);
    COUNT(CX_STR("{\"nodes\":[" NODE0 "," NODE1 "]}\n\n"), 2);
    COUNT(CX_STR("{\n\"schema_version\":\"1.1\",\n\"nodes\":[" NODE0 ",\n" NODE1 "]\n}\n"), 2);
    COUNT(CX_STR("{\"nodes\":[" NODE0 "],\n\"schema_version\":\"1.1\"}"), 1);
    COUNT(CX_STR("{\"other\":{\"nodes\":5},\"nodes\":[\n" NODE0 "]}"), 1);
    COUNT(CX_STR("{\"node_id\":\"n\",\n\"agent_id\":\"a\"}"), 1); /* one node over two lines */
}

CX_TEST(load_headers_are_what_has_none_of_the_five)
{
    COUNT(CX_STR("{\"schema_version\":\"1.1\"}\n" NODE0), 1);
    COUNT(CX_STR("{\"anything\":1}\n" NODE0), 1);
    COUNT(CX_STR("{}\n" NODE0), 1);
    COUNT(CX_STR("[{\"schema_version\":\"1.1\"}," NODE0 "]"), 1);
    COUNT(CX_STR("{\"nodes\":[]}\n" NODE0), 1); /* a header with an unknown field */
    static const char *const marks[] = {"node_id", "agent_id", "seq", "event", "hash"};
    for (size_t i = 0; i < CX_COUNT_OF(marks); i++) {
        char text[1000];
        (void)snprintf(text, sizeof text, "{\"%s\":null}\n%s", marks[i], NODE0);
        COUNT(cx_str_z(text), 2); /* a damaged node is never swallowed */
        (void)snprintf(text, sizeof text, "[{\"%s\":null},%s]", marks[i], NODE0);
        COUNT(cx_str_z(text), 2);
    }
    COUNT(CX_STR(NODE0 "\n{\"schema_version\":\"1.1\"}\n"), 2); /* only the first is a header */
    COUNT(CX_STR("{\"nodes\":[{\"schema_version\":\"1.1\"}," NODE0 "]}"), 2);
}

CX_TEST(load_header_version_is_the_default_of_every_form)
{
    static const struct {
        const char *before, *after;
    } forms[] = {{"{\"schema_version\":\"9\"}\n", "\n"},
                 {"[{\"schema_version\":\"9\"},", "]"},
                 {"{\"schema_version\":\"9\",\"nodes\":[", "]}"},
                 {"{\"nodes\":[", "],\"schema_version\":\"9\"}"},
                 {"{\n\"nodes\":[", "],\n\"schema_version\":\"9\"}"},
                 {"{\"node_id\":\"w\",\"nodes\":[", "]}\n"}};
    cx_buf text, verdict;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&verdict, cx_alloc_default());
    for (size_t i = 0; i < CX_COUNT_OF(forms); i++) {
        cx_buf_clear(&text);
        cx_buf_add_z(&text, forms[i].before);
        lattice_text_node(&text, &(node_spec){.id = "n"}, NULL); /* hashed with 2.0.0 */
        cx_buf_add_z(&text, forms[i].after);
        const char *expected =
            i + 1 < CX_COUNT_OF(forms) ? "E_HASH:n@a E_VERSION:n@a" : "E_SCHEMA:w@?"; /* one node */
        CHECK_STR(cx_str_z(lattice_text_verdict(&verdict, cx_buf_str(&text), NULL)), expected);
    }
    cx_buf_done(&text);
    cx_buf_done(&verdict);
}

CX_TEST(load_refuses_what_is_no_lattice)
{
    REFUSED(CX_STR(""), "U_EMPTY", 0, 0);
    REFUSED(CX_STR("\n\n  \n"), "U_EMPTY", 0, 0);
    REFUSED(CX_STR("[]"), "U_EMPTY", 0, 0);
    REFUSED(CX_STR("{\"nodes\":[]}"), "U_EMPTY", 0, 0);
    REFUSED(CX_STR("{\"schema_version\":\"1.1\"}\n"), "U_EMPTY", 0, 0);
    REFUSED(CX_STR("{}"), "U_EMPTY", 0, 0);
    REFUSED(CX_STR("{\n}"), "U_EMPTY", 0, 0);
    REFUSED(CX_STR("[{}]"), "U_EMPTY", 0, 0);
    REFUSED(CX_STR("\xEF\xBB\xBF" NODE0), "U_BOM", 1, 0);
    REFUSED(CX_STR("\xEF\xBB\xBF[]"), "U_BOM", 1, 0);
    REFUSED(CX_STR("5\n"), "U_SHAPE", 1, 0);
    REFUSED(CX_STR(NODE0 "\n\"x\"\n"), "U_SHAPE", 2, sizeof NODE0);
    REFUSED(CX_STR("[1]"), "U_SHAPE", 1, 1);
    REFUSED(CX_STR("[" NODE0 ",\n[]]"), "U_SHAPE", 2, sizeof NODE0 + 2);
    REFUSED(CX_STR("{\"nodes\":[null]}"), "U_SHAPE", 1, 10);
    REFUSED(CX_STR("{\"nodes\":5}"), "U_SHAPE", 1, 9);
    REFUSED(CX_STR("{\n\"nodes\":{}}"), "U_SHAPE", 2, 10);
    REFUSED(CX_STR("{\"schema_version\":2}\n" NODE0), "U_SHAPE", 1, 0);
    REFUSED(CX_STR("[{\"schema_version\":null}," NODE0 "]"), "U_SHAPE", 1, 1);
    REFUSED(CX_STR("{\"nodes\":[" NODE0 "],\"schema_version\":2}"), "U_SHAPE", 1, CX_NO_OFFSET);
}

CX_TEST(load_refuses_what_is_no_json)
{
    REFUSED(CX_STR(NODE0 " " NODE1 "\n"), "U_SYNTAX", 1, sizeof NODE0);
    REFUSED(CX_STR(NODE0 "\n{\"a\":1"), "U_SYNTAX", 2, CX_NO_OFFSET);
    REFUSED(CX_STR(NODE0 "\n{\"a\":1\n}\n"), "U_SYNTAX", 2, CX_NO_OFFSET);
    REFUSED(CX_STR("\n{\"a\":01}\n"), "U_SYNTAX", 2, 7);
    REFUSED(CX_STR("[" NODE0 ",]"), "U_SYNTAX", 1, sizeof NODE0 + 1);
    REFUSED(CX_STR("[" NODE0 "\n" NODE1 "]"), "U_SYNTAX", 2, sizeof NODE0 + 1);
    REFUSED(CX_STR("[" NODE0), "U_SYNTAX", 1, sizeof NODE0);
    REFUSED(CX_STR("[" NODE0 "]\n]"), "U_SYNTAX", 2, sizeof NODE0 + 2);
    REFUSED(CX_STR("[" NODE0 "] " NODE1), "U_SYNTAX", 1, CX_NO_OFFSET);
    REFUSED(CX_STR("{\n\"nodes\":[" NODE0 "],}"), "U_SYNTAX", 2, CX_NO_OFFSET);
    REFUSED(CX_STR("{\n\"nodes\":[" NODE0 "]}x"), "U_SYNTAX", 2, CX_NO_OFFSET);
    REFUSED(CX_STR("{\n\"node_id\":\"n\"}\n" NODE0), "U_SYNTAX", 3, 17);
    REFUSED(CX_STR("{\n\"nodes\" [" NODE0 "]}"), "U_SYNTAX", 2, CX_NO_OFFSET);
    REFUSED(CX_STR("{\n5:[" NODE0 "]}"), "U_SYNTAX", 2, 2);
    REFUSED(cx_str_from(NODE0 "\n\0\n", sizeof NODE0 + 2), "U_SYNTAX", 2, sizeof NODE0);
    REFUSED(CX_STR("{\"a\":\"\x01\"}"), "U_SYNTAX", 1, 6);
    REFUSED(CX_STR(NODE0 "\n{\"a\":\"\xC0\xAF\"}\n"), "U_UTF8", 2, sizeof NODE0 + 6);
    REFUSED(CX_STR("{\"a\":\"\xED\xA0\x80\"}"), "U_UTF8", 1, 6);
    REFUSED(CX_STR("{\"a\":NaN}"), "U_NUMBER", 1, 5);
    REFUSED(CX_STR("[{\"a\":-Infinity}]"), "U_NUMBER", 1, CX_NO_OFFSET);
    REFUSED(CX_STR("{\"a\":1,\"\\u0061\":2}"), "U_DUPKEY", 1, CX_NO_OFFSET);
    REFUSED(CX_STR("{\n\"nodes\":[" NODE0 "],\n\"n\\u006fdes\":[" NODE1 "]}"), "U_DUPKEY", 3,
            CX_NO_OFFSET);
}

/* `levels` brackets nested inside one node, counting the node's own. */
static void deep_node(cx_buf *out, unsigned levels)
{
    cx_buf_add_z(out, "{\"node_id\":\"d\",\"x\":");
    for (unsigned i = 1; i < levels; i++)
        cx_buf_add_byte(out, '[');
    for (unsigned i = 1; i < levels; i++)
        cx_buf_add_byte(out, ']');
    cx_buf_add_byte(out, '}');
}

CX_TEST(load_depth_counts_from_the_outermost_bracket_of_each_form)
{
    static const struct {
        const char *before, *after;
        unsigned outer;
    } forms[] = {{"", "\n", 0},
                 {NODE0 "\n", "\n", 0},
                 {"[", "]", 1},
                 {"{\"nodes\":[", "]}", 2},
                 {"{\n\"nodes\":[", "]}", 2},
                 {"{\n\"node_id\":\"outer\",\"x\":", "}", 1}};
    for (size_t i = 0; i < CX_COUNT_OF(forms); i++) {
        for (unsigned more = 0; more < 2; more++) {
            cx_buf text;
            cx_buf_init(&text, cx_alloc_default());
            cx_buf_add_z(&text, forms[i].before);
            deep_node(&text, 1024 - forms[i].outer + more);
            cx_buf_add_z(&text, forms[i].after);
            opened o = open_str(cx_buf_str(&text));
            if (more == 0)
                CHECK_STATUS(o.status, &o.err);
            else
                CHECK(cx_failed(o.status) && strcmp(o.err.tag, "U_DEPTH") == 0);
            cx_lattice_close(o.lattice);
            cx_buf_done(&text);
        }
    }
}

CX_TEST(load_lower_limits_are_kept_when_asked_for)
{
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.max_nodes = 1;
    opened o = open_with(CX_STR(NODE0), &options);
    CHECK_STATUS(o.status, &o.err);
    cx_lattice_close(o.lattice);
    o = open_with(CX_STR(NODE0 "\n" NODE1), &options);
    CHECK_INT(o.status.code, CX_E_LIMIT);
    CHECK_STR(cx_str_z(o.err.tag), "U_LIMIT");
    CHECK_INT(o.err.offset, sizeof NODE0);
    options = (cx_lattice_options)CX_LATTICE_OPTIONS_INIT;
    options.max_bytes = sizeof NODE0 - 1;
    o = open_with(CX_STR(NODE0), &options);
    CHECK_STATUS(o.status, &o.err);
    cx_lattice_close(o.lattice);
    o = open_with(CX_STR(NODE0 "\n"), &options);
    CHECK_STR(cx_str_z(o.err.tag), "U_LIMIT");
    const char *path = lattice_text_file("limit", CX_STR(NODE0 "\n"));
    CHECK(cx_lattice_open(path, &options, &o.lattice, &o.err).code == CX_E_LIMIT);
    CHECK_STR(cx_str_z(o.err.tag), "U_LIMIT");
    (void)unlink(path);
    options = (cx_lattice_options)CX_LATTICE_OPTIONS_INIT;
    options.max_depth = 1;
    o = open_with(CX_STR("{\"node_id\":\"x\"}"), &options);
    CHECK_STATUS(o.status, &o.err);
    cx_lattice_close(o.lattice);
    o = open_with(CX_STR("[{\"node_id\":\"x\"}]"), &options);
    CHECK_STR(cx_str_z(o.err.tag), "U_DEPTH");
    options.max_depth = 0;
    options.max_integer_digits = 5;
    o = open_with(CX_STR("{\"node_id\":123456}"), &options);
    CHECK_STR(cx_str_z(o.err.tag), "U_NUMBER");
}

CX_TEST(load_integers_may_have_4300_digits)
{
    for (unsigned more = 0; more < 2; more++) {
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        cx_buf_add_z(&text, "{\"node_id\":");
        for (unsigned i = 0; i < 4300 + more; i++)
            cx_buf_add_byte(&text, '7');
        cx_buf_add_z(&text, "}");
        opened o = open_str(cx_buf_str(&text));
        CHECK(cx_failed(o.status) == (more != 0));
        CHECK(more == 0 || strcmp(o.err.tag, "U_NUMBER") == 0);
        cx_lattice_close(o.lattice);
        cx_buf_done(&text);
    }
}

/* --- sizes ------------------------------------------------------------------------------------ */

static void add_spaces(cx_buf *out, size_t count, char c)
{
    uint8_t *room = cx_buf_reserve(out, count);
    memset(room, c, count);
    cx_buf_advance(out, count);
}

/* A node whose unknown field makes it `size` bytes long. */
static void long_node(cx_buf *out, const char *id, size_t size)
{
    size_t start = out->size;
    cx_buf_printf(out, "{\"node_id\":\"%s\",\"pad\":\"", id);
    add_spaces(out, size - (out->size - start) - 2, 'p');
    cx_buf_add_z(out, "\"}");
}

CX_TEST(load_first_line_longer_than_the_first_look)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    long_node(&text, "first", MIB + 5000);
    COUNT(cx_buf_str(&text), 1);
    cx_buf_add_z(&text, "\n" NODE0 "\n");
    COUNT(cx_buf_str(&text), 2);
    cx_buf_clear(&text); /* a header as long */
    cx_buf_add_z(&text, "{\"schema_version\":\"1.1\",\"nodes\":5,\"pad\":\"");
    add_spaces(&text, MIB, 'p');
    cx_buf_add_z(&text, "\"}\n" NODE0 "\n" NODE1);
    COUNT(cx_buf_str(&text), 2);
    cx_buf_clear(&text); /* all nodes on the first line */
    cx_buf_add_z(&text, "{\"nodes\":[");
    long_node(&text, "first", MIB + 5000);
    cx_buf_add_z(&text, "," NODE0 "],\"schema_version\":\"1.1\"}");
    COUNT(cx_buf_str(&text), 2);
    cx_buf_clear(&text); /* a node may call anything `nodes` or have an odd version */
    cx_buf_add_z(&text, "{\"nodes\":[1],\"schema_version\":5,\"pad\":\"");
    add_spaces(&text, MIB, 'p');
    cx_buf_add_z(&text, "\",\"node_id\":\"x\"}\n" NODE0);
    COUNT(cx_buf_str(&text), 2);
    cx_buf_done(&text);
}

CX_TEST(load_node_over_lines_may_have_odd_fields)
{
    COUNT(CX_STR("{\"nodes\":7,\n\"node_id\":\"x\"}"), 1);
    COUNT(CX_STR("{\"nodes\":[7],\n\"node_id\":\"x\"}"), 1);
    COUNT(CX_STR("{\"schema_version\":7,\n\"node_id\":\"x\"}"), 1);
    COUNT(CX_STR("{\"nodes\":[" NODE0 "," NODE1 "],\n\"node_id\":\"x\"}"), 1);
}

CX_TEST(load_forms_at_the_edge_of_the_first_look)
{
    for (int off = -2; off <= 2; off++) {
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        cx_buf_add_z(&text, "{\"nodes\":[");
        long_node(&text, "first", MIB - 11 - 2 + (size_t)off - 1);
        cx_buf_add_z(&text, "]}");
        COUNT(cx_buf_str(&text), 1); /* around 1 MiB, without and with a line end */
        cx_buf_add_z(&text, "\n");
        COUNT(cx_buf_str(&text), 1);
        cx_buf_clear(&text);
        long_node(&text, "first", MIB + (size_t)off);
        cx_buf_add_z(&text, "\n" NODE0);
        COUNT(cx_buf_str(&text), 2);
        cx_buf_done(&text);
    }
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "{\"nodes\":[" NODE0 "]}");
    add_spaces(&text, 2 * MIB, '\n');
    COUNT(cx_buf_str(&text), 1); /* nothing but blank after it */
    cx_buf_add_z(&text, NODE1);
    COUNT(cx_buf_str(&text), 1); /* so the first was a header */
    cx_buf_done(&text);
}

CX_TEST(load_blank_start_hides_nothing)
{
    static const size_t blanks[] = {MIB - 1, MIB, MIB + 1, 3 * MIB};
    static const char *const contents[] = {"{\"schema_version\":\"9\"}\n" NODE0 "\n",
                                           "[{\"schema_version\":\"9\"},\n" NODE0 "\n]",
                                           "{\n\"schema_version\":\"9\",\"nodes\":[" NODE0 "]}"};
    for (size_t i = 0; i < CX_COUNT_OF(blanks); i++) {
        for (size_t k = 0; k < CX_COUNT_OF(contents); k++) {
            cx_buf text;
            cx_buf_init(&text, cx_alloc_default());
            add_spaces(&text, blanks[i], '\n');
            cx_buf_add_z(&text, contents[k]);
            COUNT(cx_buf_str(&text), 1);
            opened o = open_file(cx_buf_str(&text), 4);
            CHECK_STATUS(o.status, &o.err);
            cx_lattice_close(o.lattice);
            cx_buf_done(&text);
        }
    }
}

CX_TEST(load_node_across_a_block_boundary)
{
    for (int off = -3; off <= 3; off++) {
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        for (unsigned i = 0; i < 3; i++) { /* line ends close to 1, 2 and 3 MiB */
            char id[8];
            (void)snprintf(id, sizeof id, "n%u", i);
            long_node(&text, id, MIB + (size_t)off);
            cx_buf_add_z(&text, "\n{\"node_id\":\"between");
            cx_buf_printf(&text, "%u\"}\n", i);
        }
        COUNT(cx_buf_str(&text), 6);
        cx_buf array;
        cx_buf_init(&array, cx_alloc_default());
        lattice_text_array(&array, cx_buf_str(&text));
        COUNT(cx_buf_str(&array), 6);
        opened o = open_file(cx_buf_str(&text), 4);
        REQUIRE(!cx_failed(o.status));
        cx_lattice_node_info info;
        cx_lattice_node(o.lattice, 5, &info);
        CHECK_INT(info.line, 6);
        CHECK(memcmp(text.data + info.offset, "{\"node_id\":\"between2", 19) == 0);
        cx_lattice_close(o.lattice);
        cx_buf_done(&array);
        cx_buf_done(&text);
    }
}

CX_TEST(load_first_error_does_not_depend_on_threads)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    uint64_t line = 0;
    while (text.size < 5 * MIB) {
        cx_buf_printf(&text, "{\"node_id\":\"n%llu\",\"pad\":\"%0100d\"}\n",
                      (unsigned long long)line++, 0);
    }
    size_t first = 0;
    for (size_t part = 5; part-- > 2;) { /* broken in several blocks: the first counts */
        size_t at = part * MIB;
        while (text.data[at] != '\n')
            at++;
        text.data[at + 1] = '!';
        first = at + 1;
    }
    uint64_t expected = 1;
    for (size_t i = 0; i < first; i++)
        expected += text.data[i] == '\n';
    for (unsigned threads = 1; threads <= 8; threads++) {
        opened o = open_file(cx_buf_str(&text), threads);
        CHECK(cx_failed(o.status));
        CHECK_INT(o.err.offset, first);
        CHECK_INT(o.err.line, expected);
        CHECK_STR(cx_str_z(o.err.tag), "U_SYNTAX");
    }
    cx_buf_done(&text);
}

CX_TEST(load_a_string_of_many_megabytes)
{
    const char *big = getenv("CX_TEST_BIG");
    size_t size =
        big != NULL && *big == '1' ? (size_t)1 << 30 : ((size_t)64 << 20) / cx_test_step(4);
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    long_node(&text, "big", size);
    cx_buf_add_z(&text, "\n" NODE0 "\n");
    opened o = open_str(cx_buf_str(&text));
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(cx_lattice_count(o.lattice), 2);
    cx_lattice_close(o.lattice);
    o = open_file(cx_buf_str(&text), 2);
    CHECK_STATUS(o.status, &o.err);
    CHECK_INT(cx_lattice_count(o.lattice), 2);
    cx_lattice_close(o.lattice);
    cx_buf_done(&text);
}

CX_TEST(load_outer_object_with_many_names_is_not_quadratic)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "{\n");
    for (int i = 0; i < 200000; i++)
        cx_buf_printf(&text, "\"k%06d\":0,", i);
    cx_buf_add_z(&text, "\"nodes\":[" NODE0 "]}");
    clock_t started = clock(); /* processor time: a busy machine is not a slow program */
    opened o = open_str(cx_buf_str(&text));
    CHECK_STATUS(o.status, &o.err);
    CHECK(clock() - started < 10 * CLOCKS_PER_SEC);
    cx_lattice_close(o.lattice);
    cx_buf_done(&text);
}

/* --- sources and lookups --------------------------------------------------------------------- */

static const char three[] = "{\"node_id\":\"n0\",\"agent_id\":\"a\",\"seq\":0,\"timestamp\":0,"
                            "\"event\":{\"k\":\"\\u00e9\"},\"state_delta\":{},\"prev_hash\":\"\","
                            "\"hash\":\"h0\",\"note\":[1,2]}\n"
                            "{\"node_id\":\"n\\u0031\",\"agent_id\":\"a\",\"seq\":1,"
                            "\"timestamp\":1,\"event\":{},\"state_delta\":{},\"prev_hash\":\"h0\","
                            "\"hash\":\"n0\",\"parents\":[\"h0\"]}\n"
                            "{\"node_id\":\"@a\",\"agent_id\":\"b\",\"seq\":0,\"timestamp\":2,"
                            "\"event\":{},\"state_delta\":{},\"prev_hash\":\"\",\"hash\":\"h0\"}\n";

static void check_lookups(const cx_lattice *lattice)
{
    CHECK_INT(cx_lattice_find(lattice, CX_STR("n0")), 0); /* an id comes before a hash */
    CHECK_INT(cx_lattice_find(lattice, CX_STR("n1")), 1);
    CHECK_INT(cx_lattice_find(lattice, CX_STR("@a")), 1); /* and a head before an id */
    CHECK_INT(cx_lattice_find(lattice, CX_STR("@b")), 2);
    CHECK_INT(cx_lattice_find(lattice, CX_STR("h0")), 2); /* of two hashes the smallest id: "@a" */
    CHECK(cx_lattice_find(lattice, CX_STR("@c")) == CX_NODE_NONE);
    CHECK(cx_lattice_find(lattice, CX_STR("@")) == CX_NODE_NONE);
    CHECK(cx_lattice_find(lattice, CX_STR("")) == CX_NODE_NONE);
    CHECK_INT(cx_lattice_agent_count(lattice), 2);
    CHECK_STR(cx_lattice_agent_name(lattice, 1), "b");
    cx_lattice_node_info info;
    cx_lattice_node(lattice, 1, &info);
    CHECK_STR(info.id, "n1");
    CHECK_INT(info.parent_count, 1);
    CHECK_INT(info.parents[0], 2); /* named by hash */
    cx_lattice_node(lattice, 2, &info);
    CHECK_INT(info.child_count, 1);
    CHECK_INT(info.children[0], 1);
    CHECK(info.lineage == CX_NODE_NONE && info.in_graph);
}

static void check_sources(const cx_lattice *lattice)
{
    cx_arena arena;
    cx_err err;
    cx_json value;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (cx_node n = 0; n < 3; n++) {
        CHECK_STATUS(cx_lattice_source(lattice, n, &arena, &value, &err), &err);
        CHECK_INT(CX_JSON_GET(&value, "seq")->text[0], n == 1 ? '1' : '0');
    }
    CHECK_STATUS(cx_lattice_source(lattice, 0, &arena, &value, &err), &err);
    CHECK_STR(CX_JSON_GET_STR(CX_JSON_GET(&value, "event"), "k"), "\xC3\xA9");
    CHECK_INT(CX_JSON_GET(&value, "note")->count, 2); /* unknown fields too */
    cx_arena_done(&arena);
}

CX_TEST(load_nodes_are_found_and_read_again_from_everywhere)
{
    cx_lattice *lattice = NULL;
    cx_err err;
    fault_io pipe_like;
    fault_io_init(&pipe_like, cx_io_system(), 0, FAULT_NEVER, false);
    pipe_like.no_size = true;
    const char *path = lattice_text_file("three", CX_STR(three));
    for (int i = 0; i < 4; i++) {
        cx_buf array;
        cx_buf_init(&array, cx_alloc_default());
        lattice_text_array(&array, CX_STR(three));
        CHECK_STATUS(i == 0
                         ? cx_lattice_open_bytes(cx_str_bytes(CX_STR(three)), NULL, &lattice, &err)
                     : i == 1 ? cx_lattice_open(path, NULL, &lattice, &err)
                     : i == 2 ? cx_lattice_open_io(&pipe_like.io, path, NULL, &lattice, &err)
                              : cx_lattice_open_bytes(cx_buf_bytes(&array), NULL, &lattice, &err),
                     &err);
        check_lookups(lattice);
        check_sources(lattice);
        cx_lattice_close(lattice);
        cx_buf_done(&array);
    }
    CHECK_INT(pipe_like.open_files, 0);
    (void)unlink(path);
}

CX_TEST(load_source_of_a_file_that_changed_is_a_conflict)
{
    cx_lattice *lattice = NULL;
    cx_err err;
    cx_arena arena;
    cx_json value;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const char *path = lattice_text_file("changes", CX_STR(NODE0 "\n" NODE1 "\n"));
    CHECK_STATUS(cx_lattice_open(path, NULL, &lattice, &err), &err);
    path = lattice_text_file("changes", CX_STR(NODE1 "\n" NODE0 "\n"));
    CHECK(cx_lattice_source(lattice, 0, &arena, &value, &err).code == CX_E_CONFLICT);
    (void)unlink(path);
    CHECK(cx_lattice_source(lattice, 0, &arena, &value, &err).code == CX_E_NOT_FOUND);
    CHECK_STR(cx_str_z(err.tag), "U_IO");
    cx_lattice_close(lattice);
    cx_arena_done(&arena);
}

CX_TEST(load_reads_a_named_pipe_once)
{
    char path[600];
    (void)snprintf(path, sizeof path, "%s", lattice_text_file("fifo", CX_STR("x")));
    (void)unlink(path);
    REQUIRE(mkfifo(path, 0600) == 0);
    pid_t pid = fork();
    if (pid == 0) { /* a writer like `cat FILE > FIFO`: gone for good if the reader closes */
        int file = open(path, O_WRONLY);
        size_t size = sizeof three - 1;
        ssize_t done = file < 0 ? -1 : write(file, three, size);
        _exit(done == (ssize_t)size ? 0 : 1);
    }
    cx_lattice *lattice = NULL;
    cx_err err;
    CHECK_STATUS(cx_lattice_open(path, NULL, &lattice, &err), &err);
    if (lattice != NULL) {
        check_lookups(lattice);
        check_sources(lattice);
    }
    cx_lattice_close(lattice);
    (void)unlink(path);
}

CX_TEST(load_what_cannot_be_read_is_u_io)
{
    cx_lattice *lattice = NULL;
    cx_err err;
    CHECK(cx_lattice_open("/nonexistent/file", NULL, &lattice, &err).code == CX_E_NOT_FOUND);
    CHECK_STR(cx_str_z(err.tag), "U_IO");
    CHECK_INT(err.os_errno, ENOENT);
    CHECK(cx_lattice_open("/tmp", NULL, &lattice, &err).code == CX_E_IO);
    CHECK_STR(cx_str_z(err.tag), "U_IO");
    CHECK(cx_lattice_open("/nonexistent/file", NULL, &lattice, NULL).code == CX_E_NOT_FOUND);
    cx_lattice_close(NULL);
}
