/*
 * run_end.c - the end of a run that its own machine did not seal.
 */
#include "stores/run_end.h"

#include "base/api.h"
#include "crypto/api.h"
#include "rules/api.h"
#include "stores/run_entry.h"

#define TYPE "cortex.run.end.v1"

cx_id cx_run_end_subject(cx_str run_id)
{
    return cx_run_entry_subject(TYPE, run_id, NULL);
}

cx_status cx_run_end_write(const cx_run_ending *ending, cx_arena *arena, cx_buf *out, cx_err *err)
{
    static const char *const missing[] = {"manifest.json", "contract.json", "events.jsonl",
                                          "reports", "artifacts"};
    char hex[2 * sizeof ending->chain_head.bytes];
    cx_json value;
    cx_json_list object = cx_json_list_begin(arena), by = cx_json_list_begin(arena);
    cx_json_list files = cx_json_list_begin(arena);
    cx_hex_encode(cx_bytes_from(ending->chain_head.bytes, sizeof ending->chain_head.bytes), hex);
    cx_json_put_str(&by, "host", ending->by_host);
    for (size_t i = 0; i < CX_COUNT_OF(missing); i++)
        cx_json_list_add(&files, cx_json_make_str(cx_str_z(missing[i])));
    cx_json_put_z(&object, "type", TYPE);
    cx_json_put_str(&object, "run_id", ending->run_id);
    cx_json_put_uint(&object, "token", ending->token);
    cx_json_put_str(&object, "reason", ending->reason);
    cx_json_put_str(&object, "host", ending->host);
    cx_json_put_object(&object, "by", &by);
    cx_json_put_str(&object, "ended_at", ending->ended_at);
    cx_json_put_uint(&object, "events_count", ending->event_count);
    cx_json_put_str(&object, "chain_head",
                    ending->event_count == 0
                        ? CX_STR("")
                        : cx_arena_copy_str(arena, cx_str_from(hex, sizeof hex)));
    cx_json_put_array(&object, "missing", &files);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

static bool read_ending(const cx_json *json, cx_run_ending *out)
{
    const cx_json *events = CX_JSON_GET(json, "events_count"), *by = CX_JSON_GET(json, "by");
    const cx_json *token = CX_JSON_GET(json, "token");
    *out = (cx_run_ending){.run_id = CX_JSON_GET_STR(json, "run_id"),
                           .reason = CX_JSON_GET_STR(json, "reason"),
                           .host = CX_JSON_GET_STR(json, "host"),
                           .ended_at = CX_JSON_GET_STR(json, "ended_at")};
    if (by != NULL && by->type == CX_JSON_OBJECT)
        out->by_host = CX_JSON_GET_STR(by, "host");
    return cx_str_is(CX_JSON_GET_STR(json, "type"), TYPE) && out->run_id.data != NULL &&
           out->reason.data != NULL && out->host.data != NULL && out->by_host.data != NULL &&
           out->ended_at.data != NULL && token != NULL && cx_json_uint64(token, &out->token) &&
           events != NULL && cx_json_uint64(events, &out->event_count) &&
           (out->event_count == 0 ||
            cx_digest_parse(CX_JSON_GET_STR(json, "chain_head"), &out->chain_head));
}

cx_status cx_run_end_find(cx_home *home, cx_str actor, cx_str run_id, cx_arena *arena,
                          cx_run_ending *out, bool *out_found, cx_err *err)
{
    const cx_id subject = cx_run_end_subject(run_id);
    const uint64_t *seqs;
    size_t count = 0;
    *out_found = false;
    cx_status status = cx_home_entries_about(home, actor, &subject, arena, &seqs, &count, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    for (size_t i = 0; i < count && !*out_found; i++) {
        cx_entry_view view;
        cx_json json;
        CX_TRY(cx_home_entry(home, actor, seqs[i], arena, &view, err));
        if (!cx_kinds_is(view.entry.kind, CX_KIND_RUN_END) || view.entry.committed)
            continue;
        status = cx_run_json_read(cx_bytes_str(view.payload), 0, arena, &json, NULL);
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(err);
        *out_found = !cx_failed(status) && json.type == CX_JSON_OBJECT && read_ending(&json, out) &&
                     cx_str_eq(out->run_id, run_id);
    }
    return CX_SUCCESS;
}

static int width(cx_str text, size_t most)
{
    return (int)(text.size > most ? most : text.size);
}

cx_status cx_run_end_fail(const cx_run_ending *e, cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, CX_RUN_END_TAG, CX_NO_OFFSET,
                      "run %.*s was ended by %.*s at %.*s (%.*s) and never sealed: the journal has "
                      "the hashes of %llu events; its bundle is on %.*s, if anywhere",
                      (int)e->run_id.size, e->run_id.data, width(e->by_host, 40), e->by_host.data,
                      width(e->ended_at, 27), e->ended_at.data, width(e->reason, 30),
                      e->reason.data, (unsigned long long)e->event_count, width(e->host, 40),
                      e->host.data);
}
