/*
 * extract.c - reads the links of an entry.  Invariants I1 and I2: extract.h.
 */
#include "recorder/links/extract.h"

#include "base/api.h"
#include "bundle/api.h"
#include "proof/api.h"
#include "rules/api.h"

typedef struct extraction {
    cx_link link; /* what all links of the entry have in common */
    cx_arena *arena;
    cx_link_sink *sink;
    void *ctx;
    CX_VEC(cx_link) told; /* of a trace */
} extraction;

/* --- traces ----------------------------------------------------------------------------------- */

/* "run_YYYYMMDD_HHMMSS_" and 32 hex digits: what this program calls runs.  Others are found by
 * their URI alone. */
static bool is_made_id(cx_str id)
{
    uint8_t random[16];
    for (size_t i = 4; i < 19; i++)
        if (i == 12 ? id.data[i] != '_' : id.data[i] < '0' || id.data[i] > '9')
            return false;
    return id.data[19] == '_' && cx_hex_decode(cx_str_from(id.data + 20, 32), random, 16);
}

/* A link to `to` unless the same one was told already. */
static cx_status tell_mention(extraction *e, cx_prov_kind kind, cx_str to, cx_err *err)
{
    for (size_t i = 0; i < e->told.count; i++)
        if (e->told.items[i].to_kind == kind && cx_str_eq(e->told.items[i].to, to))
            return CX_SUCCESS;
    if (e->told.count == CX_LINKS_PER_ENTRY_MAX)
        return CX_SUCCESS;
    cx_link *slot = cx_vec_push(&e->told, e->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = e->link;
    slot->to_kind = kind;
    slot->to = to;
    return e->sink(e->ctx, slot, err);
}

static cx_status tell_mentions(extraction *e, cx_str text, cx_err *err)
{
    static const char run_word[] = "run_";
    const char *end = text.data + text.size, *at = text.data;
    cx_prov_kind kind;
    cx_str rest = text, to;
    while (cx_prov_next_uri(&rest, &kind, &to))
        CX_TRY(tell_mention(e, kind, to, err));
    while (text.size != 0 && (at = memmem(at, (size_t)(end - at), run_word, 4)) != NULL) {
        cx_str id = cx_str_from(at, CX_RUN_ID_SIZE - 1);
        at += 4;
        if ((size_t)(end - id.data) >= id.size && is_made_id(id))
            CX_TRY(tell_mention(e, CX_PROV_RUN, id, err));
    }
    return CX_SUCCESS;
}

static const cx_change *change_under(const cx_tail_item *item, cx_str prefix)
{
    for (size_t i = 0; i < item->change_count; i++)
        if (cx_str_starts(cx_bytes_str(item->changes[i].key), prefix) &&
            !item->changes[i].removed && !item->changes[i].erased)
            return &item->changes[i];
    return NULL;
}

/* The record's key, trace/<level>/<trace_id>, contains the id. */
static const cx_change *trace_of(const cx_tail_item *item, cx_str *out_id)
{
    const cx_change *change = item->has_entry && cx_str_is(item->entry.kind, "trace.received")
                                  ? change_under(item, CX_STR("trace/"))
                                  : NULL;
    if (change == NULL || change->key.size <= 8)
        return NULL;
    *out_id = cx_str_from((const char *)change->key.data + 8, change->key.size - 8);
    return change;
}

bool cx_links_trace(const cx_tail_item *item, cx_str *out_trace_id,
                    uint8_t out_batch[CX_TRACE_BATCH_ID_SIZE])
{
    static const uint8_t none[CX_TRACE_BATCH_ID_SIZE];
    cx_trace_record record;
    const cx_change *change = trace_of(item, out_trace_id);
    if (change == NULL || cx_failed(cx_trace_record_decode(change->value, &record, NULL)))
        return false;
    memcpy(out_batch, record.batch, sizeof record.batch);
    return memcmp(record.batch, none, sizeof none) != 0;
}

static cx_status link_trace(extraction *e, const cx_tail_item *item, cx_err *err)
{
    cx_trace_record record;
    const cx_change *change = trace_of(item, &e->link.from);
    if (change == NULL || item->erased ||
        cx_failed(cx_trace_record_decode(change->value, &record, NULL)))
        return CX_SUCCESS;
    e->link.from_kind = CX_PROV_TRACE;
    e->link.relation = "mentions";
    cx_status status = tell_mentions(e, cx_bytes_str(item->payload), err);
    cx_vec_done(&e->told, e->arena->alloc);
    return status;
}

bool cx_links_batch(const cx_tail_item *item, cx_arena *arena, cx_str *out_run_id,
                    uint8_t out_batch[CX_TRACE_BATCH_ID_SIZE])
{
    cx_json batch;
    if (!item->has_entry || !cx_str_is(item->entry.kind, "trace.batch") || item->erased ||
        cx_failed(cx_json_parse_text(cx_bytes_str(item->payload), arena, &batch, NULL)) ||
        batch.type != CX_JSON_OBJECT ||
        !cx_hex_decode(CX_JSON_GET_STR(&batch, "batch_id"), out_batch, CX_TRACE_BATCH_ID_SIZE))
        return false;
    const cx_json *metadata = CX_JSON_GET(&batch, "correlation_metadata");
    *out_run_id = metadata == NULL || metadata->type != CX_JSON_OBJECT
                      ? (cx_str){NULL, 0}
                      : CX_JSON_GET_STR(metadata, "run_id");
    return true;
}

/* --- memories and runs ------------------------------------------------------------------------ */

static cx_status link_memory(extraction *e, const cx_tail_item *item, cx_err *err)
{
    const cx_change *change = change_under(item, CX_STR("mv/"));
    cx_version_record version;
    cx_buf uri;
    if (change == NULL || cx_failed(cx_version_decode(change->value, e->arena, &version, NULL)) ||
        version.erased)
        return CX_SUCCESS;
    const cx_uri name = {.type = version.type, .id = version.id, .version = version.version};
    cx_buf_init(&uri, e->arena->alloc);
    cx_uri_add(&name, &uri);
    e->link.from_kind = CX_PROV_MEMORY;
    e->link.from = cx_buf_str(&uri);
    e->link.relation = "derived_from";
    cx_status status = cx_buf_check(&uri, err);
    for (size_t i = 0; !cx_failed(status) && i < version.provenance.derived_count; i++)
        if (cx_prov_of_uri(version.provenance.derived_from[i], &e->link.to_kind, &e->link.to))
            status = e->sink(e->ctx, &e->link, err);
    cx_buf_done(&uri);
    return status;
}

static cx_status link_seal(extraction *e, const cx_tail_item *item, cx_err *err)
{
    cx_json seal;
    if (item->erased ||
        cx_failed(cx_run_json_read(cx_bytes_str(item->payload), 0, e->arena, &seal, NULL)) ||
        seal.type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    e->link.from_kind = CX_PROV_RUN;
    e->link.to_kind = CX_PROV_COMMIT;
    e->link.from = CX_JSON_GET_STR(&seal, "run_id");
    e->link.to = CX_JSON_GET_STR(&seal, "final_commit");
    e->link.relation = "ended_at";
    return cx_run_id_valid(e->link.from) && e->link.to.size >= 40 ? e->sink(e->ctx, &e->link, err)
                                                                  : CX_SUCCESS;
}

cx_status cx_links_of_entry(const cx_tail_item *item, cx_arena *arena, cx_link_sink *sink,
                            void *ctx, cx_err *err)
{
    extraction e = {.arena = arena, .sink = sink, .ctx = ctx};
    if (!item->has_entry)
        return CX_SUCCESS;
    e.link = (cx_link){.ground = CX_LINK_INSIDE, .actor = item->actor, .seq = item->entry.seq};
    cx_str kind = item->entry.kind;
    if (cx_str_is(kind, "trace.received"))
        return link_trace(&e, item, err);
    if (cx_str_is(kind, "write") || cx_str_is(kind, "update"))
        return link_memory(&e, item, err);
    return cx_str_is(kind, "run.seal") ? link_seal(&e, item, err) : CX_SUCCESS;
}
