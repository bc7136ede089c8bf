/*
 * schemas.c - the schemas built into the program, and validation with them.
 *
 * The first caller that needs a schema compiles it; of two compiled at the same time one is cached.
 */
#include "rules/schemas.h"

#include <stdatomic.h>
#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"
#include "rules/assets.h"

#define FOLDER "schemas/"
#define ANSWERS "answers/" /* output of commands with --json; no run depends on it */
#define REGISTRY "schema_registry.json"
#define CACHE_SIZE 64 /* more than the folder contains */

/* --- compiled --------------------------------------------------------------------------------- */

static cx_status compile_schema(cx_str text, cx_schema **out, cx_err *err)
{
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    cx_arena arena;
    cx_json document;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_run_json_read(text, 0, &arena, &document, err);
    if (!cx_failed(status))
        status = cx_schema_compile(&options, &document, out, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_run_schema(const char *name, const cx_schema **out, cx_err *err)
{
    static _Atomic(cx_schema *) cache[CACHE_SIZE];
    size_t count, place = 0;
    const cx_run_asset_file *files = cx_run_assets(&count);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(files[i].name, FOLDER, strlen(FOLDER)) != 0)
            continue;
        const char *own = files[i].name + strlen(FOLDER);
        if (strncmp(own, ANSWERS, strlen(ANSWERS)) == 0)
            own += strlen(ANSWERS);
        if (strcmp(own, name) != 0) {
            place++;
            continue;
        }
        CX_ASSERT(place < CACHE_SIZE);
        cx_schema *known = atomic_load(&cache[place]), *compiled;
        if (known == NULL) {
            CX_TRY(compile_schema(cx_str_from((const char *)files[i].data, files[i].size),
                                  &compiled, err));
            if (atomic_compare_exchange_strong(&cache[place], &known, compiled))
                known = compiled;
            else
                cx_schema_close(compiled);
        }
        *out = known;
        return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_NOT_FOUND, "the program carries no schema \"%s\"", name);
}

static cx_status check_instance(const cx_schema *schema, const cx_json *instance, const char *rule,
                                cx_run_findings *findings, cx_err *err)
{
    cx_schema_check_options options = CX_SCHEMA_CHECK_INIT;
    cx_schema_report report;
    CX_TRY(cx_schema_check(schema, instance, &options, findings->arena, &report, err));
    for (size_t i = 0; i < report.error_count; i++) {
        const cx_schema_error *error = &report.errors[i];
        cx_run_findings_reject(findings, rule, error->instance, error->schema, "%.*s",
                               (int)error->message.size, error->message.data);
    }
    if (report.cut)
        cx_run_findings_reject(findings, rule, cx_str_from("", 0), cx_str_from("", 0),
                               "there is more that does not match; the first %u places are listed",
                               (unsigned)options.errors_max);
    return cx_run_findings_check(findings, err);
}

cx_status cx_run_schema_check(const char *name, const cx_json *instance, const char *rule,
                              cx_run_findings *findings, cx_err *err)
{
    CX_ASSERT(rule != NULL && findings != NULL);
    const cx_schema *schema;
    CX_TRY(cx_run_schema(name, &schema, err));
    return check_instance(schema, instance, rule, findings, err);
}

cx_status cx_run_schema_check_bytes(cx_str schema_text, const cx_json *instance, const char *rule,
                                    cx_run_findings *findings, cx_err *err)
{
    cx_schema *schema;
    CX_TRY(compile_schema(schema_text, &schema, err));
    cx_status status = check_instance(schema, instance, rule, findings, err);
    cx_schema_close(schema);
    return status;
}

/* --- the registry ----------------------------------------------------------------------------- */

static cx_status read_own_schema(void *arg, const char *name, cx_arena *arena, cx_str *out,
                                 cx_err *err)
{
    (void)arg;
    cx_bytes bytes;
    cx_str path = cx_arena_printf(arena, FOLDER "%s", name);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_run_asset(path.data, &bytes))
        return cx_fail(err, CX_E_NOT_FOUND, "the program carries no file \"%s\"", path.data);
    *out = cx_bytes_str(bytes);
    return CX_SUCCESS;
}

/* A plain file name, so that a registry cannot point to another folder. */
static bool is_file_name(cx_str name)
{
    return name.size != 0 && name.size < 128 && name.data[0] != '.' &&
           memchr(name.data, '/', name.size) == NULL && memchr(name.data, '\0', name.size) == NULL;
}

static cx_status check_registry_file(cx_run_schema_read read, void *arg, cx_str name,
                                     const cx_json *entry, cx_run_findings *findings, cx_err *err)
{
    cx_arena *arena = findings->arena;
    cx_str file = cx_arena_copy_str(arena, name), where = {"", 0}, text;
    if (file.data == NULL)
        return cx_fail_nomem(err);
    cx_str stated = CX_JSON_GET_STR(entry, "sha256");
    const cx_json *size = CX_JSON_GET(entry, "bytes");
    uint64_t bytes;
    if (!is_file_name(name) || stated.data == NULL || size == NULL ||
        !cx_json_uint64(size, &bytes)) {
        cx_run_findings_reject(findings, "SR01", where, where,
                               REGISTRY " must have sha256 and bytes for \"%s\", and nothing else",
                               file.data);
        return CX_SUCCESS;
    }
    cx_status status = read(arg, file.data, arena, &text, err);
    if (status.code == CX_E_NOT_FOUND) {
        cx_run_findings_reject(findings, "SR02", file, where,
                               "%s is listed in " REGISTRY ", but the file is missing", file.data);
        return CX_SUCCESS;
    }
    CX_TRY(status);
    char hex[65];
    cx_digest digest = cx_digest_of(cx_str_bytes(text));
    for (size_t i = 0; i < sizeof digest.bytes; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", digest.bytes[i]);
    if (text.size != bytes || !cx_str_is(stated, hex))
        cx_run_findings_reject(
            findings, "SR03", file, where,
            "%s differs from its entry in " REGISTRY ": take both from one release", file.data);
    return CX_SUCCESS;
}

cx_status cx_run_schema_registry_check(cx_run_schema_read read, void *arg,
                                       cx_run_findings *findings, cx_err *err)
{
    cx_str text, none = {"", 0};
    cx_json registry;
    if (read == NULL)
        read = read_own_schema;
    cx_status status = read(arg, REGISTRY, findings->arena, &text, err);
    if (!cx_failed(status))
        status = cx_run_json_read(text, 0, findings->arena, &registry, err);
    if (status.code == CX_E_NOMEM)
        return status;
    const cx_json *schemas =
        cx_failed(status) ? NULL : cx_json_get_typed(&registry, CX_STR("schemas"), CX_JSON_OBJECT);
    if (schemas == NULL || !cx_str_is(CX_JSON_GET_STR(&registry, "version"), "v1")) {
        cx_run_findings_reject(findings, "SR01", CX_STR(REGISTRY), none,
                               REGISTRY " is missing or is not {version: \"v1\", schemas}");
        return cx_run_findings_check(findings, err);
    }
    for (uint32_t i = 0; i < schemas->count; i++)
        CX_TRY(check_registry_file(read, arg, cx_json_text(&schemas->members[i].name),
                                   &schemas->members[i].value, findings, err));
    return cx_run_findings_check(findings, err);
}
