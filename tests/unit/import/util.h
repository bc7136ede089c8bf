/*
 * util.h - importing text in tests: every import is made twice and compared, verified strictly, and
 * its lines are parsed.
 */
#ifndef CX_TESTS_UNIT_IMPORT_UTIL_H
#define CX_TESTS_UNIT_IMPORT_UTIL_H

#include <cortex/lattice.h>

#include "import/import.h"
#include "json/json.h"
#include "tests/test.h"

typedef struct imported {
    cx_buf out;
    cx_arena arena;
    cx_import_summary summary;
    cx_status status;
    cx_err err;
    cx_json *nodes; /* in output order */
    size_t count;
    size_t time_errors; /* E_TIME; any other finding fails the test */
} imported;

static inline cx_status imported_write(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_buf_add((cx_buf *)arg, bytes.data, bytes.size);
    return cx_buf_check((const cx_buf *)arg, err);
}

static inline void imported_verify(imported *in, bool plain_ids)
{
    cx_lattice *lattice = NULL;
    cx_lattice_report *report = NULL;
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    cx_lattice_checks checks = CX_LATTICE_CHECKS_INIT;
    options.threads = 1;
    checks.content_ids = !plain_ids;
    checks.require_seals = checks.strict_time = checks.unambiguous = true;
    CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&in->out), &options, &lattice, &in->err),
                 &in->err);
    if (lattice == NULL)
        return;
    CHECK_STATUS(cx_lattice_verify(lattice, &checks, &report, &in->err), &in->err);
    size_t count = 0;
    const cx_lattice_finding *errors =
        report == NULL ? NULL : cx_lattice_report_errors(report, &count);
    for (size_t i = 0; i < count; i++) {
        if (errors[i].code == CX_E_TIME)
            in->time_errors++;
        else
            cx_test_fail(__FILE__, __LINE__, "%s at node %.*s of %.*s",
                         cx_lattice_code_name(errors[i].code), (int)errors[i].id.size,
                         errors[i].id.data, (int)errors[i].agent.size, errors[i].agent.data);
    }
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
}

static inline void imported_parse(imported *in)
{
    size_t lines = 0, at = 0;
    for (size_t i = 0; i < in->out.size; i++)
        lines += in->out.data[i] == '\n';
    in->nodes = CX_ARENA_ARRAY(&in->arena, cx_json, lines + 1);
    while (at < in->out.size) {
        const uint8_t *end = memchr(in->out.data + at, '\n', in->out.size - at);
        REQUIRE(end != NULL);
        cx_str line =
            cx_str_from((const char *)in->out.data + at, (size_t)(end - (in->out.data + at)));
        cx_buf again;
        cx_buf_init(&again, cx_alloc_default());
        CHECK_STATUS(cx_json_parse_text(line, &in->arena, &in->nodes[in->count], &in->err),
                     &in->err);
        CHECK_STATUS(cx_json_write(&again, &in->nodes[in->count], CX_JSON_PY_COMPACT, &in->err),
                     &in->err);
        CHECK(cx_str_eq(cx_buf_str(&again), line)); /* canonical to the byte */
        cx_buf_done(&again);
        in->count++;
        at += line.size + 1;
    }
    CHECK_INT(in->count, in->summary.total.nodes);
}

/* What every import must stand: complete, the same twice, and strictly valid but for times. */
static inline void imported_check(imported *in, const cx_buf *second, bool plain_ids)
{
    CHECK_STATUS(in->status, &in->err);
    if (cx_failed(in->status))
        return;
    CHECK(cx_str_eq(cx_buf_str(&in->out), cx_buf_str(second)));
    imported_parse(in);
    imported_verify(in, plain_ids);
}

static inline void imported_begin(imported *in)
{
    *in = (imported){.status = {CX_OK}};
    cx_buf_init(&in->out, cx_alloc_default());
    cx_arena_init(&in->arena, cx_alloc_default(), 0);
}

/* Release with imported_done, also when the import failed. */
static inline void import_bytes(imported *in, const char *format, const cx_bytes *files,
                                size_t file_count, const cx_import_options *options)
{
    cx_buf second;
    cx_import_options other = CX_IMPORT_OPTIONS_INIT;
    imported_begin(in);
    in->status = cx_import_run_bytes(format, files, file_count, options, imported_write, &in->out,
                                     &in->summary, &in->err);
    if (cx_failed(in->status))
        return;
    if (options != NULL)
        other = *options;
    other.seed = 0x5eed; /* another order inside hash maps must not show */
    other.labels = NULL;
    cx_buf_init(&second, cx_alloc_default());
    CHECK_STATUS(cx_import_run_bytes(format, files, file_count, &other, imported_write, &second,
                                     NULL, &in->err),
                 &in->err);
    imported_check(in, &second, other.plain_ids);
    cx_buf_done(&second);
}

static inline void import_text(imported *in, const char *format, const char *text)
{
    cx_bytes file = cx_str_bytes(cx_str_z(text));
    import_bytes(in, format, &file, 1, NULL);
}

/* Files of $CORTEX_TESTDATA; false, and the test skipped, when one is absent. */
static inline bool import_data(imported *in, const char *format, const char *const *names,
                               size_t count)
{
    char paths[8][1024];
    const char *pointers[8];
    cx_buf second;
    for (size_t i = 0; i < count && i < 8; i++) {
        const char *path = cx_test_data(names[i]);
        if (path == NULL) {
            cx_test_skip("no test data");
            return false;
        }
        (void)snprintf(paths[i], sizeof paths[i], "%s", path);
        pointers[i] = paths[i];
    }
    imported_begin(in);
    in->status = cx_import_run(cx_io_system(), format, pointers, count, NULL, imported_write,
                               &in->out, &in->summary, &in->err);
    cx_buf_init(&second, cx_alloc_default());
    CHECK_STATUS(cx_import_run(cx_io_system(), "auto", pointers, count, NULL, imported_write,
                               &second, NULL, &in->err),
                 &in->err);
    imported_check(in, &second, false);
    cx_buf_done(&second);
    return true;
}

static inline void imported_done(imported *in)
{
    cx_import_summary_done(&in->summary);
    cx_buf_done(&in->out);
    cx_arena_done(&in->arena);
}

/* --- looking at nodes ---------------------------------------------------------------------- */

static inline const cx_json *node_get(const imported *in, size_t node, const char *pointer)
{
    return node < in->count ? cx_json_pointer(&in->nodes[node], cx_str_z(pointer)) : NULL;
}

/* The text at a pointer into a node: of a string, or of a number's literal. */
static inline cx_str node_text(const imported *in, size_t node, const char *pointer)
{
    const cx_json *value = node_get(in, node, pointer);
    if (value == NULL)
        return CX_STR("(absent)");
    if (value->type == CX_JSON_STRING || cx_json_is_number(value))
        return cx_json_text(value);
    return cx_str_z(value->type == CX_JSON_TRUE    ? "true"
                    : value->type == CX_JSON_FALSE ? "false"
                    : value->type == CX_JSON_NULL  ? "null"
                                                   : "(container)");
}

static inline bool node_has_issue(const imported *in, size_t node, const char *issue)
{
    const cx_json *issues = node_get(in, node, "/event/issues");
    for (uint32_t i = 0; issues != NULL && i < issues->count; i++) {
        if (cx_str_is(cx_json_text(&issues->items[i]), issue))
            return true;
    }
    return false;
}

static inline bool node_has_parent(const imported *in, size_t node, size_t parent)
{
    const cx_json *parents = node_get(in, node, "/parents");
    for (uint32_t i = 0; parents != NULL && i < parents->count; i++) {
        if (cx_str_eq(cx_json_text(&parents->items[i]), node_text(in, parent, "/node_id")))
            return true;
    }
    return false;
}

static inline size_t node_parent_count(const imported *in, size_t node)
{
    const cx_json *parents = node_get(in, node, "/parents");
    return parents == NULL ? 0 : parents->count;
}

/* The node whose event has that text at a name; in->count when there is none. */
static inline size_t node_with(const imported *in, const char *name, const char *text)
{
    char pointer[128];
    (void)snprintf(pointer, sizeof pointer, "/event/%s", name);
    size_t i = 0;
    while (i < in->count && !cx_str_is(node_text(in, i, pointer), text))
        i++;
    return i;
}

static inline uint64_t issue_count(const imported *in, cx_import_issue issue)
{
    return in->summary.total.issues[issue];
}

#endif
