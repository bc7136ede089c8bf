/*
 * memory_view.c - memories and edges as text, and the options that describe them.
 */
#include "cli/ledger/memory_view.h"

#include <string.h>

#include "crypto/api.h"
#include "memory/api.h"

/* --- text ------------------------------------------------------------------------------------- */

void cx_cli_memory_line(const cx_memory_view *view, cx_buf *out)
{
    cx_uri_add(&view->uri, out);
    cx_buf_add_z(out, view->head.tombstoned ? "  [dead] " : "  ");
    cx_shown_add(out, view->head.forms.brief);
    cx_buf_add_byte(out, '\n');
}

static void add_field(cx_buf *out, const char *name, cx_str value)
{
    if (value.size == 0)
        return;
    cx_buf_printf(out, "  %-12s ", name);
    cx_shown_add(out, value);
    cx_buf_add_byte(out, '\n');
}

static void add_time_field(cx_buf *out, const char *name, int64_t seconds, const char *after)
{
    cx_buf_printf(out, "  %-12s ", name);
    cx_form_time(seconds, out);
    cx_buf_printf(out, "%s\n", after);
}

static void add_list_field(cx_buf *out, const char *name, const cx_str *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        add_field(out, i == 0 ? name : "", texts[i]);
}

static void add_head_fields(const cx_head *head, cx_buf *out)
{
    if (head->tombstoned) {
        add_time_field(out, "dead since", head->tombstoned_at, "");
        add_field(out, "because", head->tombstone_reason);
        add_field(out, "by", head->tombstoned_by);
    }
    add_field(out, "visibility", cx_visibility_name(head->visibility));
    if (head->importance != 0)
        cx_buf_printf(out, "  %-12s %u\n", "importance", head->importance);
    add_list_field(out, "tags", head->tags, head->tag_count);
    for (size_t i = 0; i < head->frame_count; i++) {
        cx_buf_printf(out, "  %-12s %s:%s:", i == 0 ? "frames" : "",
                      cx_verb_name(head->frames[i].verb).data,
                      cx_kind_name(head->frames[i].kind).data);
        cx_shown_add(out, head->frames[i].ref);
        cx_buf_add_byte(out, '\n');
    }
    if (head->embedded) {
        cx_buf_printf(out, "  %-12s %llu numbers by ", "embedding", (unsigned long long)head->dim);
        cx_shown_add(out, head->model);
        cx_buf_add_z(out, head->stale ? " (stale)\n" : "\n");
    }
}

cx_status cx_cli_memory_text(const cx_memory_view *view, cx_arena *arena, cx_buf *out, cx_err *err)
{
    const cx_version_record *version = &view->version;
    cx_uri_add(&view->uri, out);
    cx_buf_add_byte(out, '\n');
    if (version->erased) {
        cx_buf_add_z(out, "  the content of this version was erased\n");
    } else {
        add_field(out, "", version->forms.medium);
        if (!version->created_at_null)
            add_time_field(out, "written", version->created_at, "");
        add_field(out, "by", version->created_by);
        add_field(out, "source", version->provenance.source);
        add_list_field(out, "derived from", version->provenance.derived_from,
                       version->provenance.derived_count);
        if (version->expires)
            add_time_field(out, "expires", version->expires_at, view->expired ? " (expired)" : "");
    }
    if (view->uri.version != view->head.current_version)
        cx_buf_printf(out, "  %-12s %llu\n", "current",
                      (unsigned long long)view->head.current_version);
    add_head_fields(&view->head, out);
    if (version->erased || version->data.null)
        return CX_SUCCESS;
    cx_json_list list = cx_json_list_begin(arena);
    cx_json json;
    CX_TRY(cx_view_memory(view, &list, err));
    CX_TRY(cx_json_list_end_object(&list, &json, err));
    cx_buf_printf(out, "  %-12s ", "data");
    CX_TRY(cx_json_write_pretty(out, CX_JSON_GET(&json, "data"), 1, err));
    cx_buf_add_byte(out, '\n');
    return CX_SUCCESS;
}

void cx_cli_edge_line(const cx_edge *edge, cx_buf *out)
{
    char src[CX_ULID_SIZE], dst[CX_ULID_SIZE];
    cx_ulid_format(&edge->src, src);
    cx_ulid_format(&edge->dst, dst);
    cx_str type = cx_uri_edge_type_name(edge->type);
    cx_buf_printf(out, "%.26s %.*s %.26s", src, (int)type.size, type.data, dst);
    if (edge->weight != 0.0f)
        cx_buf_printf(out, " %g", (double)edge->weight);
    if (edge->tombstoned) {
        cx_buf_add_z(out, "  [removed] ");
        cx_shown_add(out, edge->reason);
    }
    cx_buf_add_byte(out, '\n');
}

cx_status cx_cli_hits_answer(cx_cli_ledger *l, const cx_memory_hit *hits, size_t count,
                             bool similarity, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(l->arena), json = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < count; i++) {
        if (!l->json) {
            cx_buf_printf(&l->out, "%.3f  ",
                          (double)(similarity ? hits[i].similarity : hits[i].salience));
            cx_cli_memory_line(&hits[i].view, &l->out);
            continue;
        }
        cx_json_list item = cx_json_list_begin(l->arena);
        cx_json_put_float(&item, "salience", hits[i].salience);
        if (similarity)
            cx_json_put_float(&item, "similarity", hits[i].similarity);
        else
            cx_json_put_null(&item, "similarity");
        CX_TRY(cx_view_memory(&hits[i].view, &item, err));
        cx_json_add_object(&list, &item);
    }
    if (!l->json) {
        if (count == 0)
            cx_buf_add_z(&l->out, "nothing found\n");
        return CX_SUCCESS;
    }
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uint(&json, "count", count);
    cx_json_put_array(&json, "memories", &list);
    return cx_cli_end_json(&json, &l->out, err);
}

/* --- options ---------------------------------------------------------------------------------- */

cx_status cx_cli_read_version(cx_cli *cli, const cx_cli_args *args, cx_cli_version *out,
                              cx_err *err)
{
    const char *source = cx_cli_value(args, "source"), *by = cx_cli_value(args, "by");
    const char *confidence = cx_cli_value(args, "confidence");
    const char *expires = cx_cli_value(args, "expires");
    const char *brief = cx_cli_value(args, "short"), *medium = cx_cli_value(args, "medium");
    memset(out, 0, sizeof *out);
    out->provenance.source = cx_str_z(source == NULL ? "user_input" : source);
    out->by = by == NULL ? (cx_str){NULL, 0} : cx_str_z(by);
    out->blind = cx_cli_has(args, "blind");
    CX_TRY(cx_cli_all_values(cli, args, "derived-from", &out->provenance.derived_from,
                             &out->provenance.derived_count, err));
    CX_TRY(cx_cli_all_values(cli, args, "attestation", &out->provenance.attestations,
                             &out->provenance.attestation_count, err));
    if (confidence != NULL)
        CX_TRY(cx_cli_parse_float("option --confidence", confidence, &out->confidence, err));
    if (confidence != NULL && out->confidence == 0.0f)
        return cx_fail(
            err, CX_E_USAGE,
            "option --confidence: found 0, expected more than 0 (in the format, 0 means absent)");
    out->expires = expires != NULL;
    if (expires != NULL)
        CX_TRY(cx_cli_parse_time("option --expires", expires, &out->expires_at, err));
    if ((brief == NULL) != (medium == NULL))
        return cx_fail(err, CX_E_USAGE, "--short and --medium belong together");
    if (brief != NULL) {
        out->forms_given = (cx_forms){cx_str_z(brief), cx_str_z(medium)};
        out->forms = &out->forms_given;
    }
    return CX_SUCCESS;
}

/* VERB:KIND:REF */
static cx_status read_frame_argument(cx_cli *cli, const char *text, cx_frame *out, cx_err *err)
{
    const char *first = strchr(text, ':');
    const char *second = first == NULL ? NULL : strchr(first + 1, ':');
    if (second == NULL || second[1] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "option --frame: found '%s', expected VERB:KIND:REF such as "
                       "acquire:service:gpu",
                       text);
    cx_str verb = cx_arena_copy_str(&cli->arena, cx_str_from(text, (size_t)(first - text)));
    cx_str kind =
        cx_arena_copy_str(&cli->arena, cx_str_from(first + 1, (size_t)(second - first - 1)));
    if (verb.data == NULL || kind.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_cli_parse_word("option --frame, verb", verb.data, cx_verb_name, CX_VERB_MAX,
                             &out->verb, err));
    CX_TRY(cx_cli_parse_word("option --frame, kind", kind.data, cx_kind_name, CX_KIND_MAX,
                             &out->kind, err));
    out->ref = cx_str_z(second + 1);
    return CX_SUCCESS;
}

cx_status cx_cli_read_head(cx_cli *cli, const cx_cli_args *args, cx_cli_head *out, cx_err *err)
{
    const char *visibility = cx_cli_value(args, "visibility");
    uint64_t importance = cx_cli_number(args, "importance", 0);
    cx_frame *frames = CX_ARENA_ARRAY(&cli->arena, cx_frame, args->given_count + 1);
    memset(out, 0, sizeof *out);
    if (frames == NULL)
        return cx_fail_nomem(err);
    if (importance > CX_IMPORTANCE_MAX)
        return cx_fail(err, CX_E_USAGE, "option --importance: found %llu, expected 0 to %d",
                       (unsigned long long)importance, CX_IMPORTANCE_MAX);
    out->importance = (uint8_t)importance;
    out->visibility = visibility == NULL ? 0 : cx_visibility_code(cx_str_z(visibility));
    CX_TRY(cx_cli_all_values(cli, args, "tag", &out->tags, &out->tag_count, err));
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(args, "frame", given)) != NULL)
        CX_TRY(read_frame_argument(cli, given->values[0], &frames[out->frame_count++], err));
    out->frames = frames;
    return CX_SUCCESS;
}

static cx_status read_cbor_argument(cx_cli *cli, const char *argument, cx_bytes *out, cx_err *err)
{
    size_t size = strlen(argument);
    CX_TRY(cx_cli_read_text(cli, argument, out, err));
    if (out->data != (const uint8_t *)argument)
        return CX_SUCCESS;
    uint8_t *bytes = CX_ARENA_ARRAY(&cli->arena, uint8_t, size / 2 + 1);
    if (bytes == NULL)
        return cx_fail_nomem(err);
    if (!cx_hex_decode_any(cx_str_z(argument), bytes, size / 2) || size % 2 != 0)
        return cx_fail(err, CX_E_USAGE, "option --data-cbor: expected hex digits, @FILE or -");
    *out = cx_bytes_from(bytes, size / 2);
    return CX_SUCCESS;
}

/* An error about an argument is a usage error here, whatever code the module gave it. */
static cx_status as_usage(cx_status status, const char *what, const cx_err *why, cx_err *err)
{
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (why->code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    return cx_fail_at(err, CX_E_USAGE, why->tag, why->offset, "%s: %s", what, why->message);
}

cx_status cx_cli_read_data(cx_cli *cli, const cx_cli_args *args, const char *operand,
                           cx_cli_data *out, cx_err *err)
{
    const char *cbor = cx_cli_value(args, "data-cbor");
    if (operand == NULL && cbor == NULL)
        return cx_fail(err, CX_E_USAGE, "expected DATA: JSON, @FILE or - (standard input)");
    if (operand != NULL && cbor != NULL)
        return cx_fail(err, CX_E_USAGE, "expected either DATA or --data-cbor");
    out->is_cbor = cbor != NULL;
    return cbor != NULL ? read_cbor_argument(cli, cbor, &out->cbor, err)
                        : cx_cli_read_json(cli, "DATA", operand, &out->json, err);
}

static cx_status encode_data(cx_cli *cli, const cx_data *data, cx_bytes *out, cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, cli->alloc);
    cx_data_encode(data, &bytes);
    cx_str kept = cx_arena_copy_str(&cli->arena, cx_buf_str(&bytes));
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status) && kept.data == NULL)
        status = cx_fail_nomem(err);
    *out = cx_str_bytes(kept);
    cx_buf_done(&bytes);
    return status;
}

cx_status cx_cli_make_data(cx_cli *cli, const cx_cli_data *given, uint8_t type, cx_bytes *out,
                           cx_err *err)
{
    cx_err why;
    cx_data data;
    if (given->is_cbor) {
        *out = given->cbor;
        return as_usage(cx_data_accept(type, *out, &cli->arena, &data, &why), "--data-cbor", &why,
                        err);
    }
    CX_TRY(as_usage(cx_data_from_json(type, &given->json, &cli->arena, &data, &why), "DATA", &why,
                    err));
    CX_TRY(as_usage(cx_data_check(&data, &why), "DATA", &why, err));
    return encode_data(cli, &data, out, err);
}
