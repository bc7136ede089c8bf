/*
 * run.c - findings, and JSON as this module reads and writes it.
 */
#include "rules/run.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/api.h"

void cx_run_findings_init(cx_run_findings *findings, cx_arena *arena)
{
    CX_ASSERT(arena != NULL);
    memset(findings, 0, sizeof *findings);
    findings->arena = arena;
}

void cx_run_findings_done(cx_run_findings *findings)
{
    if (findings->arena != NULL)
        cx_vec_done(&findings->list, findings->arena->alloc);
}

/* A copy that is valid in JSON. */
static cx_str copy_json_text(cx_str text, cx_arena *arena)
{
    cx_str valid = cx_json_quoted(text, arena);
    return valid.data == text.data && valid.data != NULL ? cx_arena_copy_str(arena, text) : valid;
}

static void add_finding(cx_run_findings *findings, const cx_run_finding *finding,
                        const char *format, va_list args)
{
    char message[512];
    cx_run_finding *slot = cx_vec_push(&findings->list, findings->arena->alloc);
    if (!finding->informs)
        findings->refusing++;
    if (slot == NULL) {
        findings->failed = true;
        return;
    }
    (void)vsnprintf(message, sizeof message, format, args);
    *slot = *finding;
    slot->where =
        copy_json_text(finding->where.data == NULL ? CX_STR("") : finding->where, findings->arena);
    slot->detail = copy_json_text(finding->detail.data == NULL ? CX_STR("") : finding->detail,
                                  findings->arena);
    slot->message = copy_json_text(cx_str_z(message), findings->arena);
    if (slot->where.data == NULL || slot->detail.data == NULL || slot->message.data == NULL) {
        findings->failed = true;
        findings->list.count--;
    }
}

void cx_run_findings_reject(cx_run_findings *findings, const char *rule, cx_str where,
                            cx_str detail, const char *format, ...)
{
    CX_ASSERT(rule != NULL && findings->arena != NULL);
    va_list args;
    va_start(args, format);
    add_finding(findings, &(cx_run_finding){rule, where, detail, {NULL, 0}, false}, format, args);
    va_end(args);
}

void cx_run_findings_inform(cx_run_findings *findings, const char *rule, cx_str where,
                            cx_str detail, const char *format, ...)
{
    CX_ASSERT(rule != NULL && findings->arena != NULL);
    va_list args;
    va_start(args, format);
    add_finding(findings, &(cx_run_finding){rule, where, detail, {NULL, 0}, true}, format, args);
    va_end(args);
}

bool cx_run_findings_have(const cx_run_findings *findings, const char *rule)
{
    for (size_t i = 0; i < findings->list.count; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        if (!finding->informs && strcmp(finding->rule, rule) == 0)
            return true;
    }
    return false;
}

cx_status cx_run_findings_check(const cx_run_findings *findings, cx_err *err)
{
    CX_ASSERT(findings->failed || findings->refusing <= findings->list.count); /* I2 */
    return findings->failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_run_findings_json(const cx_run_findings *findings, cx_arena *arena, cx_json *out,
                               cx_err *err)
{
    cx_json_list array = cx_json_list_begin(arena);
    CX_TRY(cx_run_findings_check(findings, err));
    for (size_t i = 0; i < findings->list.count; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        if (finding->informs)
            continue;
        cx_json_list object = cx_json_list_begin(arena);
        cx_json value;
        cx_json_list_put(&object, CX_STR("rule"), cx_json_make_str(cx_str_z(finding->rule)));
        cx_json_list_put(&object, CX_STR("path"), cx_json_make_str(finding->where));
        cx_json_list_put(&object, CX_STR("message"), cx_json_make_str(finding->message));
        if (finding->detail.size != 0)
            cx_json_list_put(&object, CX_STR("view"), cx_json_make_str(finding->detail));
        CX_TRY(cx_json_list_end_object(&object, &value, err));
        cx_json_list_add(&array, value);
    }
    return cx_json_list_end_array(&array, out, err);
}

cx_status cx_run_json_read(cx_str text, size_t limit_bytes, cx_arena *arena, cx_json *out,
                           cx_err *err)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_json_parser parser;
    limits.depth = CX_RUN_JSON_DEPTH_MAX;
    limits.bytes = limit_bytes == 0 ? CX_RUN_JSON_BYTES_MAX : limit_bytes;
    cx_json_parser_init(&parser, arena->alloc, &limits);
    cx_status status = cx_json_parse(&parser, text, arena, out, err);
    cx_json_parser_done(&parser);
    return status;
}

cx_status cx_run_json_write(cx_buf *out, const cx_json *value, cx_err *err)
{
    CX_TRY(cx_json_write_pretty(out, value, 0, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

void cx_run_time_text(int64_t ns, char out[28])
{
    int64_t seconds = ns / 1000000000, rest = ns % 1000000000;
    if (rest < 0) {
        rest += 1000000000;
        seconds--;
    }
    cx_civil_time time = cx_civil_of_seconds(seconds);
    (void)snprintf(out, 28, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ", (unsigned)time.date.year % 10000,
                   time.date.month % 100, time.date.day % 100, time.hour % 100, time.minute % 100,
                   time.second % 100, (unsigned)(rest / 1000) % 1000000);
}
