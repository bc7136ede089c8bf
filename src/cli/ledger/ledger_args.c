/*
 * ledger_args.c - arguments of the ledger's commands: files, JSON, numbers, times, names.
 *
 * Every error is CX_E_USAGE and names what was found and what was expected.
 */
#include <math.h>
#include <string.h>

#include "cli/ledger/ledger.h"
#include "crypto/api.h"
#include "memory/api.h"

cx_status cx_cli_read_file(cx_cli *cli, const char *path, cx_bytes *out, cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, cli->alloc);
    cx_status status = cx_io_read_file(cli->io, path, CX_CLI_ARGUMENT_MAX, &bytes, err);
    if (!cx_failed(status)) {
        cx_str kept = cx_arena_copy_str(&cli->arena, cx_buf_str(&bytes));
        *out = cx_str_bytes(kept);
        if (kept.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&bytes);
    return status;
}

cx_status cx_cli_read_text(cx_cli *cli, const char *argument, cx_bytes *out, cx_err *err)
{
    if (argument[0] == '@' && argument[1] != 0)
        return cx_cli_read_file(cli, argument + 1, out, err);
    if (strcmp(argument, "-") == 0)
        return cx_cli_read_file(cli, argument, out, err);
    *out = cx_str_bytes(cx_str_z(argument));
    return CX_SUCCESS;
}

cx_status cx_cli_read_json(cx_cli *cli, const char *what, const char *argument, cx_json *out,
                           cx_err *err)
{
    cx_bytes text;
    cx_err why;
    CX_TRY(cx_cli_read_text(cli, argument, &text, err));
    if (!cx_failed(cx_json_parse_text(cx_bytes_str(text), &cli->arena, out, &why)))
        return CX_SUCCESS;
    if (why.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    return cx_fail(err, CX_E_USAGE, "%s: not JSON at line %llu, byte %llu: %s", what,
                   (unsigned long long)why.line,
                   (unsigned long long)(why.offset == CX_NO_OFFSET ? 0 : why.offset), why.message);
}

cx_status cx_cli_parse_digest(const char *what, const char *text, cx_digest *out, cx_err *err)
{
    if (cx_hex_decode_any(cx_str_z(text), out->bytes, sizeof out->bytes))
        return CX_SUCCESS;
    return cx_fail(err, CX_E_USAGE, "%s: found '%s', expected 64 hex digits", what, text);
}

cx_status cx_cli_parse_number(const char *what, const char *text, uint64_t *out, cx_err *err)
{
    uint64_t value = 0;
    bool good = text[0] != 0;
    for (const char *at = text; good && *at != 0; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        good = digit <= 9 && value <= (UINT64_MAX - digit) / 10;
        value = good ? value * 10 + digit : 0;
    }
    if (!good)
        return cx_fail(err, CX_E_USAGE, "%s: found '%s', expected a number", what, text);
    *out = value;
    return CX_SUCCESS;
}

cx_status cx_cli_parse_time(const char *what, const char *text, int64_t *out_seconds, cx_err *err)
{
    uint64_t seconds;
    if (cx_form_parse_time(cx_str_z(text), out_seconds))
        return CX_SUCCESS;
    if (cx_failed(cx_cli_parse_number(what, text, &seconds, NULL)) || seconds > INT64_MAX)
        return cx_fail(err, CX_E_USAGE,
                       "%s: found '%s', expected a time such as 2026-01-31T12:00:00Z or seconds "
                       "since 1970",
                       what, text);
    *out_seconds = (int64_t)seconds;
    return CX_SUCCESS;
}

cx_status cx_cli_parse_moment(cx_cli *cli, const char *what, const char *text, int64_t *out_ns,
                              cx_err *err)
{
    const int64_t second = INT64_C(1000000000);
    int64_t age_ns, seconds = 0;
    if (cx_age_parse(cx_str_z(text), &age_ns)) {
        *out_ns = (int64_t)cli->io->wall_ns(cli->io) - age_ns;
        return CX_SUCCESS;
    }
    cx_str time = cx_arena_printf(&cli->arena, "%s%s", text,
                                  strlen(text) == strlen("2026-01-31") ? "T00:00:00Z" : "");
    if (time.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_form_parse_time(time, &seconds) || seconds > INT64_MAX / second ||
        seconds < INT64_MIN / second + 1)
        return cx_fail(err, CX_E_USAGE,
                       "%s: found '%s', expected a time such as 2026-01-31T12:00:00Z, a date such "
                       "as 2026-01-31, or an age such as 30d (also m, h, w, y)",
                       what, text);
    *out_ns = seconds * second;
    return CX_SUCCESS;
}

static bool float_of(const cx_json *number, float *out)
{
    double value;
    if (!cx_json_double(number, &value))
        return false;
    *out = (float)value;
    return isfinite(*out);
}

cx_status cx_cli_parse_float(const char *what, const char *text, float *out, cx_err *err)
{
    cx_arena scratch;
    cx_json number;
    cx_arena_init(&scratch, cx_alloc_default(), 0);
    bool good = !cx_failed(cx_json_parse_text(cx_str_z(text), &scratch, &number, NULL)) &&
                float_of(&number, out);
    cx_arena_done(&scratch);
    if (good)
        return CX_SUCCESS;
    return cx_fail(err, CX_E_USAGE, "%s: found '%s', expected a number such as 0.5", what, text);
}

cx_status cx_cli_read_vector(cx_cli *cli, const char *argument, const float **out, size_t *out_dim,
                             cx_err *err)
{
    cx_json list;
    CX_TRY(cx_cli_read_json(cli, "VECTOR", argument, &list, err));
    if (list.type != CX_JSON_ARRAY || list.count == 0)
        return cx_fail(err, CX_E_USAGE, "VECTOR: found %s, expected an array of numbers",
                       list.type == CX_JSON_ARRAY ? "an empty array" : cx_json_type_name(&list));
    float *values = CX_ARENA_ARRAY(&cli->arena, float, list.count);
    if (values == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list.count; i++)
        if (!float_of(&list.items[i], &values[i]))
            return cx_fail(err, CX_E_USAGE, "VECTOR: item %lu is not a finite number",
                           (unsigned long)i);
    *out = values;
    *out_dim = list.count;
    return CX_SUCCESS;
}

cx_status cx_cli_parse_word(const char *what, const char *text, cx_str (*name)(uint8_t code),
                            uint8_t max, uint8_t *out, cx_err *err)
{
    char list[240] = "";
    const char *names[UINT8_MAX];
    size_t used = 0;
    for (uint8_t code = 1; code <= max; code++) {
        cx_str word = name(code);
        names[code - 1] = word.data; /* the names are literals: they end with 0 */
        if (cx_str_is(word, text)) {
            *out = code;
            return CX_SUCCESS;
        }
        if (word.size + 2 < sizeof list - used) {
            if (used != 0)
                list[used++] = ' ';
            memcpy(list + used, word.data, word.size);
            used += word.size;
        }
    }
    list[used] = 0;
    const char *meant = cx_cli_suggest(names, max, text);
    if (meant != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "%s: found '%.40s', expected one of: %s; did you mean '%s'?", what, text,
                       list, meant);
    return cx_fail(err, CX_E_USAGE, "%s: found '%.40s', expected one of: %s", what, text, list);
}

cx_status cx_cli_all_values(cx_cli *cli, const cx_cli_args *args, const char *option,
                            const cx_str **out, size_t *out_count, cx_err *err)
{
    cx_str *list = CX_ARENA_ARRAY(&cli->arena, cx_str, args->given_count + 1);
    size_t count = 0;
    if (list == NULL)
        return cx_fail_nomem(err);
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(args, option, given)) != NULL)
        list[count++] = cx_str_z(given->values[0]);
    *out = list;
    *out_count = count;
    return CX_SUCCESS;
}

/* --- memories ------------------------------------------------------------------------------- */

cx_status cx_cli_parse_name(const char *text, cx_cli_name *out, cx_err *err)
{
    memset(out, 0, sizeof *out);
    if (cx_ulid_parse(cx_str_z(text), &out->uri.id)) {
        out->latest = true;
        return CX_SUCCESS;
    }
    return cx_memory_uri_parse(cx_str_z(text), &out->uri, err);
}

cx_status cx_cli_find_uri(cx_cli_ledger *l, const cx_cli_name *name, cx_uri *out, cx_err *err)
{
    cx_memory_view view;
    if (!name->latest) {
        *out = name->uri;
        return CX_SUCCESS;
    }
    CX_TRY(cx_memory_resolve_latest(l->memory, &name->uri.id, l->arena, &view, err));
    *out = view.uri;
    return CX_SUCCESS;
}
