/*
 * otlp_index.c - separates new records from known ones, in one transaction, and finds them again.
 *
 *   I1  Whether a span is known is decided inside the transaction, over the rows of earlier
 *       transactions and of this one.
 *   I2  A request without new records writes nothing; a request with any new record is stored
 *       whole.
 *   I3  A record that is reported as known is durable before the answer.
 */
#include "recorder/otlp_index.h"

#include <stdlib.h>

#include "base/api.h"
#include "crypto/api.h"
#include "proof/api.h"
#include "recorder/internal.h"
#include "recorder/sensitive_mark.h"

#define SPAN_PREFIX "otlp/span/"
#define CONFLICT_PREFIX "otlp/conflict/"
#define LOG_PREFIX "otlp/log/"
#define REQUEST_PREFIX "otlp/request/"

static const cx_str kinds[2][2] = {{CX_STR("otlp.traces.protobuf"), CX_STR("otlp.traces.json")},
                                   {CX_STR("otlp.logs.protobuf"), CX_STR("otlp.logs.json")}};

/* --- keys and records ------------------------------------------------------------------------- */

typedef struct key {
    uint8_t bytes[96];
    size_t size;
} key;

static void add_key_part(key *k, const void *data, size_t size)
{
    CX_ASSERT(size <= sizeof k->bytes - k->size);
    memcpy(k->bytes + k->size, data, size);
    k->size += size;
}

static key key_of(const char *prefix, const uint8_t *trace_id, const uint8_t *span_id)
{
    key k = {.size = 0};
    add_key_part(&k, prefix, strlen(prefix));
    if (trace_id != NULL)
        add_key_part(&k, trace_id, CX_OTLP_INDEX_TRACE_SIZE);
    if (span_id != NULL)
        add_key_part(&k, span_id, CX_OTLP_INDEX_SPAN_SIZE);
    return k;
}

static void add_number(key *k, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (56 - 8 * i));
    add_key_part(k, bytes, sizeof bytes);
}

static cx_bytes bytes_of(const key *k)
{
    return cx_bytes_from(k->bytes, k->size);
}

typedef struct place {
    uint64_t seq, index;
    cx_digest content;
    bool has_content;
} place;

static cx_status read_place(cx_bytes bytes, place *out, cx_err *err)
{
    cx_decoder d;
    place found = {.seq = 0};
    cx_decoder_begin(&d, bytes, "OTLP record", NULL);
    while (cx_decoder_next(&d))
        switch (d.members.key) {
        case 1: found.seq = cx_cbor_read_uint(&d.reader); break;
        case 2: found.index = cx_cbor_read_uint(&d.reader); break;
        case 3: found.content = cx_cbor_read_digest(&d.reader), found.has_content = true; break;
        default: cx_cbor_reject_member(&d.reader, &d.members);
        }
    CX_TRY(cx_decoder_end(&d, UINT64_C(1) << 1, err));
    *out = found;
    return CX_SUCCESS;
}

/* --- taking ----------------------------------------------------------------------------------- */

typedef struct storing {
    const cx_otlp_delivery *what;
    cx_txn *txn;
    int64_t now_ns;
    cx_otlp_stored kept;
    cx_buf value;
} storing;

static cx_status find_row(storing *t, const key *k, place *out, bool *out_found, cx_err *err)
{
    cx_bytes value;
    CX_TRY(cx_txn_get(t->txn, bytes_of(k), &value, out_found, err));
    return *out_found ? read_place(value, out, err) : CX_SUCCESS;
}

/* Appends the request's entry, before its first row (I2). */
static cx_status append_entry_once(storing *t, cx_err *err)
{
    if (t->kept.has_entry)
        return CX_SUCCESS;
    const cx_entry_draft draft = {.kind = kinds[t->what->is_logs][t->what->is_json],
                                  .created_at_ns = t->now_ns,
                                  .created_by = cx_str_bytes(t->what->sender),
                                  .payload = t->what->request,
                                  .committed = true};
    CX_TRY(cx_txn_entry(t->txn, &draft, &t->kept.seq, err));
    t->kept.has_entry = true;
    const cx_mark mark = {.found = t->what->found};
    return cx_recorder_mark_put(t->txn, t->kept.seq, &mark, err);
}

static cx_status put_row(storing *t, const key *k, const cx_otlp_item *item, cx_err *err)
{
    cx_cbor_fields fields;
    CX_TRY(append_entry_once(t, err));
    cx_buf_clear(&t->value);
    cx_cbor_fields_begin(&fields, &t->value);
    cx_codec_uint(&fields, 1, t->kept.seq);
    if (item != NULL) {
        cx_codec_uint(&fields, 2, item->index);
        cx_codec_digest(&fields, 3, &item->content);
    }
    cx_cbor_fields_end(&fields);
    CX_TRY(cx_buf_check(&t->value, err));
    return cx_txn_put(t->txn, bytes_of(k), cx_buf_bytes(&t->value), false, err);
}

/* Rows of earlier versions have the hash of the span's JSON as it was spelt. */
static cx_status is_same_content(storing *t, const place *known, const cx_otlp_item *item,
                                 bool *out, cx_err *err)
{
    *out = cx_digest_eq(&known->content, &item->content);
    if (*out || item->value == NULL)
        return CX_SUCCESS;
    cx_buf_clear(&t->value);
    CX_TRY(cx_json_write(&t->value, item->value, CX_JSON_PY_COMPACT, err));
    const cx_digest spelt = cx_digest_of(cx_buf_bytes(&t->value));
    *out = cx_digest_eq(&known->content, &spelt);
    return CX_SUCCESS;
}

static cx_status store_span(storing *t, const cx_otlp_item *item, cx_err *err)
{
    key k = key_of(SPAN_PREFIX, item->trace_id, item->span_id);
    place known;
    bool found = false;
    CX_TRY(find_row(t, &k, &known, &found, err));
    if (!found) {
        t->kept.stored++;
        return put_row(t, &k, item, err);
    }
    bool same = false;
    CX_TRY(is_same_content(t, &known, item, &same, err));
    if (!same) {
        k = key_of(CONFLICT_PREFIX, item->trace_id, item->span_id);
        add_key_part(&k, item->content.bytes, sizeof item->content.bytes);
        CX_TRY(find_row(t, &k, &known, &found, err));
        same = found;
    }
    if (same) {
        t->kept.duplicates++;
        return CX_SUCCESS;
    }
    t->kept.conflicts++;
    return put_row(t, &k, item, err);
}

/* A log record has no identity of its own: it is new when its request is. */
static cx_status store_log(storing *t, const cx_otlp_item *item, cx_err *err)
{
    t->kept.stored++;
    CX_TRY(append_entry_once(t, err));
    if (item->trace_id == NULL)
        return CX_SUCCESS;
    key k = key_of(LOG_PREFIX, item->trace_id, NULL);
    place known;
    bool found = false;
    add_number(&k, t->kept.seq);
    CX_TRY(find_row(t, &k, &known, &found, err));
    return found ? CX_SUCCESS : put_row(t, &k, NULL, err);
}

static key request_key(const cx_otlp_delivery *what)
{
    cx_sha256 sha;
    cx_str kind = kinds[what->is_logs][what->is_json];
    key k = key_of(REQUEST_PREFIX, NULL, NULL);
    cx_sha256_init(&sha);
    cx_sha256_add(&sha, kind.data, kind.size);
    cx_sha256_add(&sha, "", 1);
    cx_sha256_add(&sha, what->request.data, what->request.size);
    cx_digest digest = cx_sha256_end(&sha);
    add_key_part(&k, digest.bytes, sizeof digest.bytes);
    return k;
}

/* I1 */
static cx_status store_records(storing *t, const key *request, cx_err *err)
{
    const cx_otlp_delivery *what = t->what;
    place known;
    bool found = false;
    CX_TRY(find_row(t, request, &known, &found, err));
    if (found) {
        t->kept.duplicates = (uint32_t)what->item_count;
        return CX_SUCCESS;
    }
    for (size_t i = 0; i < what->item_count; i++)
        CX_TRY(what->items[i].span_id == NULL ? store_log(t, &what->items[i], err)
                                              : store_span(t, &what->items[i], err));
    return t->kept.has_entry ? put_row(t, request, NULL, err) : CX_SUCCESS;
}

cx_status cx_recorder_otlp_store(cx_recorder *recorder, const cx_otlp_delivery *delivery,
                                 cx_otlp_stored *out, cx_err *err)
{
    storing t = {.what = delivery, .now_ns = cx_recorder_now(recorder)};
    uint64_t commit = 0;
    *out = (cx_otlp_stored){.stored = 0};
    if (delivery->item_count == 0)
        return CX_SUCCESS;
    const key request = request_key(delivery);
    CX_TRY(cx_txn_begin(recorder->home, CX_STR(CX_OTLP_ACTOR), &t.txn, err));
    cx_buf_init(&t.value, recorder->alloc);
    cx_status status = store_records(&t, &request, err);
    cx_buf_done(&t.value);
    if (cx_failed(status) || !t.kept.has_entry)
        cx_txn_abort(t.txn);
    else
        status = cx_txn_commit_later(t.txn, &commit, err);
    if (!cx_failed(status)) /* I3 */
        status = t.kept.has_entry ? cx_home_wait(recorder->home, commit, err)
                                  : cx_home_sync(recorder->home, err);
    CX_TRY(status);
    cx_recorder_notify(recorder);
    *out = t.kept;
    return CX_SUCCESS;
}

/* --- finding again ---------------------------------------------------------------------------- */

bool cx_recorder_otlp_kind(cx_str kind, bool *out_logs, bool *out_json)
{
    for (int logs = 0; logs < 2; logs++)
        for (int json = 0; json < 2; json++)
            if (cx_str_eq(kind, kinds[logs][json])) {
                *out_logs = logs != 0;
                *out_json = json != 0;
                return true;
            }
    return false;
}

typedef struct seqs {
    cx_arena *arena;
    uint64_t *items;
    size_t count, space;
} seqs;

static cx_status add_seq(seqs *s, uint64_t seq, cx_err *err)
{
    if (s->count != 0 && s->items[s->count - 1] == seq)
        return CX_SUCCESS;
    if (s->count == s->space) {
        size_t space = s->space == 0 ? 64 : 2 * s->space;
        uint64_t *grown = CX_ARENA_ARRAY(s->arena, uint64_t, space);
        if (grown == NULL)
            return cx_fail_nomem(err);
        if (s->count != 0)
            memcpy(grown, s->items, s->count * sizeof *grown);
        s->items = grown;
        s->space = space;
    }
    s->items[s->count++] = seq;
    return CX_SUCCESS;
}

static cx_status seq_row(void *arg, cx_bytes row, cx_bytes value, bool *stop, cx_err *err)
{
    place at;
    (void)row;
    (void)stop;
    CX_TRY(read_place(value, &at, err));
    return add_seq(arg, at.seq, err);
}

static int by_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void sort_and_deduplicate(seqs *s)
{
    size_t kept = 0;
    if (s->count == 0)
        return;
    qsort(s->items, s->count, sizeof *s->items, by_number);
    for (size_t i = 1; i < s->count; i++)
        if (s->items[i] != s->items[kept])
            s->items[++kept] = s->items[i];
    s->count = kept + 1;
}

cx_status cx_recorder_otlp_entries(cx_home *home, const uint8_t *trace_id, cx_arena *arena,
                                   const uint64_t **out, size_t *out_count, cx_err *err)
{
    static const char *const prefixes[] = {SPAN_PREFIX, CONFLICT_PREFIX, LOG_PREFIX};
    seqs found = {.arena = arena};
    cx_actor_info actor;
    *out = NULL;
    *out_count = 0;
    cx_status status = cx_home_actor(home, CX_STR(CX_OTLP_ACTOR), &actor, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    for (uint64_t seq = 0; trace_id == NULL && seq < actor.entry_count; seq++)
        CX_TRY(add_seq(&found, seq, err));
    for (size_t i = 0; trace_id != NULL && i < CX_COUNT_OF(prefixes); i++) {
        const key k = key_of(prefixes[i], trace_id, NULL);
        const cx_scan scan = {
            .actor = CX_STR(CX_OTLP_ACTOR), .prefix = bytes_of(&k), .row = seq_row, .arg = &found};
        CX_TRY(cx_home_scan(home, &scan, err));
    }
    sort_and_deduplicate(&found);
    *out = found.items;
    *out_count = found.count;
    return CX_SUCCESS;
}

/* --- traces ----------------------------------------------------------------------------------- */

typedef struct trace_list {
    cx_otlp_trace_row *rows;
    size_t count, limit;
    const uint8_t *after;
} trace_list;

static cx_status trace_row(void *arg, cx_bytes row, cx_bytes value, bool *stop, cx_err *err)
{
    trace_list *list = arg;
    const uint8_t *id = row.data + strlen(SPAN_PREFIX);
    place at;
    CX_TRY(read_place(value, &at, err));
    if (row.size < strlen(SPAN_PREFIX) + CX_OTLP_INDEX_TRACE_SIZE ||
        (list->after != NULL && memcmp(id, list->after, CX_OTLP_INDEX_TRACE_SIZE) == 0))
        return CX_SUCCESS;
    cx_otlp_trace_row *last = list->count == 0 ? NULL : &list->rows[list->count - 1];
    if (last == NULL || memcmp(last->trace_id, id, CX_OTLP_INDEX_TRACE_SIZE) != 0) {
        if (list->count == list->limit) {
            *stop = true;
            return CX_SUCCESS;
        }
        last = &list->rows[list->count++];
        *last = (cx_otlp_trace_row){.first_seq = at.seq};
        memcpy(last->trace_id, id, CX_OTLP_INDEX_TRACE_SIZE);
    }
    last->spans++;
    last->first_seq = at.seq < last->first_seq ? at.seq : last->first_seq;
    return CX_SUCCESS;
}

cx_status cx_recorder_otlp_traces(cx_home *home, const uint8_t *after, size_t limit,
                                  cx_arena *arena, const cx_otlp_trace_row **out, size_t *out_count,
                                  cx_err *err)
{
    const key prefix = key_of(SPAN_PREFIX, NULL, NULL), from = key_of(SPAN_PREFIX, after, NULL);
    trace_list list = {.limit = limit, .after = after};
    cx_actor_info actor;
    *out = NULL;
    *out_count = 0;
    cx_status status = cx_home_actor(home, CX_STR(CX_OTLP_ACTOR), &actor, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    if ((list.rows = CX_ARENA_ARRAY(arena, cx_otlp_trace_row, limit)) == NULL)
        return cx_fail_nomem(err);
    const cx_scan scan = {.actor = CX_STR(CX_OTLP_ACTOR),
                          .prefix = bytes_of(&prefix),
                          .from = after == NULL ? cx_bytes_from(NULL, 0) : bytes_of(&from),
                          .row = trace_row,
                          .arg = &list};
    CX_TRY(cx_home_scan(home, &scan, err));
    *out = list.rows;
    *out_count = list.count;
    return CX_SUCCESS;
}
