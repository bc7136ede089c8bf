/*
 * lattice.c - the lattice suite's cases: index.json, verification, printouts, refused inputs.
 *
 * Verification is asked for as `cortex lattice verify` asks, with the same exit codes
 * (lattice.md §4.3).
 */
#include "tests/runner/lattice.h"

#include <stdio.h>
#include <stdlib.h>

/* --- verifying as the command does --------------------------------------------------------- */

typedef struct verification {
    cx_lattice_checks checks;
    cx_lattice_anchor anchor;
    cx_lattice *lattice;
    cx_lattice_report *report; /* with exit 0 and 1 */
    cx_err refusal;            /* with exit 2 and 3 */
    int exit;
} verification;

static void refuse(verification *v)
{
    v->exit = v->refusal.code == CX_E_USAGE ? 2 : 3;
}

static cx_status read_anchor(runner *r, cx_str relative, verification *v, cx_err *err)
{
    cx_str text;
    CX_TRY(runner_read(r, relative, &text, err));
    if (cx_failed(cx_lattice_anchor_parse(text, &r->arena, &v->anchor, &v->refusal)))
        refuse(v);
    v->checks.anchor = &v->anchor;
    return CX_SUCCESS;
}

/* @FILE, or AGENT=HASH: the hash has no '=' in it, an agent may. */
static cx_status read_head(runner *r, cx_str text, cx_lattice_head *heads, verification *v,
                           cx_err *err)
{
    if (v->anchor.whole || (v->checks.anchor != NULL && text.size != 0 && text.data[0] == '@')) {
        v->refusal = (cx_err){.code = CX_E_USAGE};
        refuse(v);
        return CX_SUCCESS;
    }
    if (text.size != 0 && text.data[0] == '@')
        return read_anchor(r, cx_str_from(text.data + 1, text.size - 1), v, err);
    size_t equals = text.size;
    while (equals > 0 && text.data[equals - 1] != '=')
        equals--;
    if (equals < 2)
        return cx_fail(err, CX_E_FORMAT, "the case has a --head that is no AGENT=HASH");
    heads[v->anchor.head_count++] = (cx_lattice_head){
        cx_str_from(text.data, equals - 1), cx_str_from(text.data + equals, text.size - equals)};
    v->anchor.heads = heads;
    v->checks.anchor = &v->anchor;
    return CX_SUCCESS;
}

/* False when it is no option of verify's that takes no value. */
static bool read_check(cx_str option, cx_lattice_checks *checks)
{
    bool strict = cx_str_is(option, "--strict");
    bool ids = strict || cx_str_is(option, "--content-ids");
    bool seals = strict || cx_str_is(option, "--require-seals");
    bool time = strict || cx_str_is(option, "--strict-time");
    checks->content_ids |= ids;
    checks->require_seals |= seals;
    checks->strict_time |= time;
    checks->unambiguous |= strict;
    return ids || seals || time;
}

static cx_status read_options(runner *r, const cx_json *item, verification *v, cx_err *err)
{
    const cx_json *list = CX_JSON_GET(item, "options");
    cx_str *options = NULL;
    if (list == NULL)
        return CX_SUCCESS;
    CX_TRY(runner_member(item, "options", CX_JSON_ARRAY, &list, err));
    CX_TRY(runner_texts(r, list, &options, err));
    cx_lattice_head *heads = CX_ARENA_ARRAY(&r->arena, cx_lattice_head, (size_t)list->count + 1);
    if (heads == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        if (cx_str_starts(options[i], CX_STR("--head=")))
            CX_TRY(
                read_head(r, cx_str_from(options[i].data + 7, options[i].size - 7), heads, v, err));
        else if (!read_check(options[i], &v->checks))
            return cx_fail(err, CX_E_FORMAT, "the case has the unknown option %.*s",
                           (int)(options[i].size > 100 ? 100 : options[i].size), options[i].data);
    }
    return CX_SUCCESS;
}

static void verification_done(verification *v)
{
    cx_lattice_report_close(v->report);
    cx_lattice_close(v->lattice);
}

/* Fails only when there is no case to answer; to be closed either way. */
static cx_status verify(runner *r, const cx_json *item, verification *v, cx_err *err)
{
    cx_str file;
    *v = (verification){0};
    CX_TRY(runner_text(item, "file", &file, err));
    CX_TRY(read_options(r, item, v, err));
    if (v->exit != 0)
        return CX_SUCCESS;
    cx_str path = runner_path(r, file);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.keep_seals = v->anchor.whole;
    if (cx_failed(cx_lattice_open(path.data, &options, &v->lattice, &v->refusal))) {
        if (v->refusal.code == CX_E_NOT_FOUND)
            return cx_fail(err, CX_E_NOT_FOUND, "%s", v->refusal.message);
        refuse(v);
    } else if (cx_failed(cx_lattice_verify(v->lattice, &v->checks, &v->report, &v->refusal))) {
        refuse(v);
    } else {
        v->exit = cx_lattice_report_verdict(v->report) == CX_HOLDS ? 0 : 1;
    }
    return CX_SUCCESS;
}

/* --- reports ------------------------------------------------------------------------------- */

static int compare_findings(const void *a, const void *b)
{
    static const char *const keys[] = {"code", "node", "agent"};
    int order = 0;
    for (size_t i = 0; i < CX_COUNT_OF(keys) && order == 0; i++)
        order = cx_str_cmp(cx_json_get_str(a, cx_str_z(keys[i])),
                           cx_json_get_str(b, cx_str_z(keys[i])));
    return order;
}

static cx_status normal_findings(runner *r, const cx_json *list, cx_json *out, cx_err *err)
{
    static const char *const kept[] = {"agent", "code", "node"};
    cx_json *items = CX_ARENA_ARRAY(&r->arena, cx_json, (size_t)list->count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++)
        CX_TRY(runner_pick(r, &list->items[i], kept, CX_COUNT_OF(kept), &items[i], err));
    qsort(items, list->count, sizeof *items, compare_findings);
    cx_json_list sorted = cx_json_list_begin(&r->arena);
    for (uint32_t i = 0; i < list->count; i++)
        cx_json_list_add(&sorted, items[i]);
    return cx_json_list_end_array(&sorted, out, err);
}

cx_status runner_report(runner *r, const cx_json *report, cx_json *out, cx_err *err)
{
    if (report->type != CX_JSON_OBJECT)
        return cx_fail(err, CX_E_FORMAT, "found no object where a report is expected");
    cx_json_list list = cx_json_list_begin(&r->arena);
    for (uint32_t i = 0; i < report->count; i++) {
        cx_str name = cx_json_text(&report->members[i].name);
        cx_json value = report->members[i].value;
        if ((cx_str_is(name, "errors") || cx_str_is(name, "warnings")) &&
            value.type == CX_JSON_ARRAY)
            CX_TRY(normal_findings(r, &report->members[i].value, &value, err));
        cx_json_list_put(&list, name, value);
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_str refusal_code(const verification *v)
{
    return cx_str_z(v->refusal.tag != NULL ? v->refusal.tag : cx_code_name(v->refusal.code));
}

/* What --json prints when there is no verdict (§1.3). */
static cx_status refusal_json(runner *r, const verification *v, cx_json *out, cx_err *err)
{
    cx_json inner;
    uint64_t byte = v->refusal.offset == CX_NO_OFFSET ? 0 : v->refusal.offset;
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("byte"), cx_json_make_uint(&r->arena, byte));
    cx_json_list_put(&list, CX_STR("code"), cx_json_make_str(refusal_code(v)));
    cx_json_list_put(&list, CX_STR("line"), cx_json_make_uint(&r->arena, v->refusal.line));
    CX_TRY(cx_json_list_end_object(&list, &inner, err));
    list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("error"), inner);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status result_json(runner *r, const verification *v, cx_json *out, cx_err *err)
{
    if (v->exit > 1)
        return refusal_json(r, v, out, err);
    cx_buf text;
    cx_json report;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_lattice_report_json(&text, v->lattice, v->report, err);
    if (!cx_failed(status))
        status = runner_parse(r, &text, &report, err);
    if (!cx_failed(status))
        status = runner_report(r, &report, out, err);
    cx_buf_done(&text);
    return status;
}

/* {"exit":N, NAME:value} */
static cx_status with_exit(runner *r, cx_json exit_code, const char *name, cx_json value,
                           cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("exit"), exit_code);
    cx_json_list_put(&list, cx_str_z(name), value);
    return cx_json_list_end_object(&list, out, err);
}

/* --- the kinds of cases -------------------------------------------------------------------- */

static cx_status trace_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    verification v;
    cx_json result;
    cx_status status = verify(r, item, &v, err);
    if (!cx_failed(status))
        status = result_json(r, &v, &result, err);
    if (!cx_failed(status))
        status = with_exit(r, cx_json_make_int(&r->arena, v.exit), "result", result, out, err);
    verification_done(&v);
    return status;
}

static cx_status trace_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *exit_code, *expect;
    cx_json result;
    CX_TRY(runner_member(item, "exit", CX_JSON_INT, &exit_code, err));
    CX_TRY(runner_member(item, "expect", CX_JSON_OBJECT, &expect, err));
    CX_TRY(runner_report(r, expect, &result, err));
    return with_exit(r, *exit_code, "result", result, out, err);
}

/* The printout; nothing when the command would have complained instead. */
static cx_status print_text(runner *r, const cx_json *item, verification *v, cx_buf *out,
                            cx_err *err)
{
    const cx_json *pair = CX_JSON_GET(item, "compare");
    cx_lattice_text_options options = {0};
    if (pair != NULL && pair->type != CX_JSON_NULL) {
        cx_str *agents;
        CX_TRY(runner_member(item, "compare", CX_JSON_ARRAY, &pair, err));
        if (pair->count != 2)
            return cx_fail(err, CX_E_FORMAT, "the case has a 'compare' that is no pair");
        CX_TRY(runner_texts(r, pair, &agents, err));
        options.compare = agents;
    }
    if (v->exit > 1)
        return CX_SUCCESS;
    if (cx_failed(cx_lattice_report_text(out, v->lattice, v->report, &options, &v->refusal))) {
        v->exit = v->refusal.code == CX_E_NOT_FOUND ? 2 : 3;
        cx_buf_clear(out);
    }
    return CX_SUCCESS;
}

static cx_status text_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    verification v;
    cx_buf text;
    cx_json printed;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = verify(r, item, &v, err);
    if (!cx_failed(status))
        status = print_text(r, item, &v, &text, err);
    if (!cx_failed(status))
        status = runner_string(r, cx_buf_str(&text), &printed, err);
    if (!cx_failed(status))
        status = with_exit(r, cx_json_make_int(&r->arena, v.exit), "stdout", printed, out, err);
    cx_buf_done(&text);
    verification_done(&v);
    return status;
}

static cx_status text_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *exit_code;
    cx_str file, text;
    CX_TRY(runner_member(item, "exit", CX_JSON_INT, &exit_code, err));
    CX_TRY(runner_text(item, "stdout", &file, err));
    CX_TRY(runner_read(r, file, &text, err));
    return with_exit(r, *exit_code, "stdout", cx_json_make_str(text), out, err);
}

static cx_status unreadable_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    verification v;
    cx_status status = verify(r, item, &v, err);
    if (!cx_failed(status)) {
        cx_json code = v.exit > 1 ? cx_json_make_str(refusal_code(&v)) : cx_json_make_null();
        status = with_exit(r, cx_json_make_int(&r->arena, v.exit), "code", code, out, err);
    }
    verification_done(&v);
    return status;
}

static cx_status unreadable_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *exit_code, *code;
    CX_TRY(runner_member(item, "exit", CX_JSON_INT, &exit_code, err));
    CX_TRY(runner_member(item, "code", CX_JSON_STRING, &code, err));
    return with_exit(r, *exit_code, "code", *code, out, err);
}

/* --- index.json ---------------------------------------------------------------------------- */

static const runner_kind kinds[] = {
    {"/trace_cases", trace_got, trace_expect},
    {"/text_cases", text_got, text_expect},
    {"/unreadable_cases", unreadable_got, unreadable_expect},
    {"/graph_cases", runner_graph_got, runner_graph_expect},
};

static void run_tables(runner *r, const cx_json *index)
{
    const cx_json *tables = cx_json_get_typed(index, CX_STR("tables"), CX_JSON_OBJECT);
    for (uint32_t i = 0; tables != NULL && i < tables->count; i++) {
        cx_str name = cx_json_text(&tables->members[i].name);
        const cx_json *file = &tables->members[i].value;
        if (file->type != CX_JSON_STRING)
            runner_fail(r, name, "a table of index.json names no file");
        else if (!runner_lattice_table(r, name, cx_json_text(file)))
            runner_skip(r, name, "unknown table");
    }
}

/* A list of cases without an answering function must not look answered. */
static void report_unknown(runner *r, const cx_json *index)
{
    for (uint32_t i = 0; i < index->count; i++) {
        cx_str name = cx_json_text(&index->members[i].name);
        bool known = !cx_str_ends(name, CX_STR("_cases"));
        for (size_t k = 0; k < CX_COUNT_OF(kinds); k++)
            known |= cx_str_is(name, kinds[k].list + 1);
        if (!known)
            runner_skip(r, name, "unknown list of cases");
    }
}

void runner_lattice(runner *r)
{
    cx_json index;
    cx_err err;
    cx_status status = runner_read_json(r, CX_STR("index.json"), &index, &err);
    if (!cx_failed(status) && index.type != CX_JSON_OBJECT)
        status = cx_fail(&err, CX_E_FORMAT, "found no object");
    if (cx_failed(status)) {
        runner_fail(r, CX_STR("index.json"), err.message);
        return;
    }
    r->index = &index;
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++)
        runner_run_list(r, &kinds[i], "index.json", &index);
    run_tables(r, &index);
    report_unknown(r, &index);
    r->index = NULL;
}
