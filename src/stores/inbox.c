/*
 * inbox.c - the list: traces by pages of the index and the other objects, merged by time.
 *
 * Order: time descending, then kind, then objects by id and traces by their number descending.  A
 * cursor is the place of the last item, so items that arrive meanwhile are before it and do not
 * change later pages.
 */
#include <stdlib.h>

#include "crypto/api.h"
#include "stores/inbox_parts.h"

/* --- places ----------------------------------------------------------------------------------- */

typedef struct place {
    int64_t when_ns;
    uint8_t kind;
    int64_t number; /* of a trace */
    cx_str id;      /* of an object */
} place;

static int compare(const place *a, const place *b)
{
    if (a->when_ns != b->when_ns)
        return a->when_ns > b->when_ns ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->kind == CX_INBOX_TRACE)
        return a->number == b->number ? 0 : a->number > b->number ? -1 : 1;
    return cx_str_cmp(a->id, b->id);
}

static place place_of(const cx_inbox_object *object)
{
    return (place){object->when_ns, (uint8_t)object->kind, 0, object->id};
}

static int compare_objects(const void *a, const void *b)
{
    const place left = place_of(a), right = place_of(b);
    return compare(&left, &right);
}

/* time (8), kind (1), number (8), id; then the first 16 bytes of SHA-256 over a label, the data
 * directory's id and all of that. */
#define FIXED 17
#define TAG 16

static void cursor_tag(cx_recorder *recorder, cx_bytes text, uint8_t out[TAG])
{
    uint8_t id[16] = {0};
    cx_sha256 hash;
    if (recorder != NULL)
        cx_home_id(recorder->home, id);
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, "cortex.inbox.v1", 15);
    cx_sha256_add(&hash, id, sizeof id);
    cx_sha256_add(&hash, text.data, text.size);
    const cx_digest digest = cx_sha256_end(&hash);
    memcpy(out, digest.bytes, TAG);
}

static void add_be64(cx_buf *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        cx_buf_add_byte(out, (uint8_t)(value >> (8 * (7 - i))));
}

static uint64_t be64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static cx_status write_cursor(cx_recorder *recorder, const place *last, cx_arena *arena,
                              cx_str *out, cx_err *err)
{
    uint8_t tag[TAG];
    cx_buf bytes, text;
    cx_buf_init(&bytes, arena->alloc);
    cx_buf_init(&text, arena->alloc);
    add_be64(&bytes, (uint64_t)last->when_ns);
    cx_buf_add_byte(&bytes, last->kind);
    add_be64(&bytes, (uint64_t)last->number);
    cx_buf_add_str(&bytes, last->id);
    cursor_tag(recorder, cx_buf_bytes(&bytes), tag);
    cx_buf_add(&bytes, tag, sizeof tag);
    cx_base64_add(&text, cx_buf_bytes(&bytes), CX_BASE64_URL);
    *out = cx_arena_copy_str(arena, cx_buf_str(&text));
    bool failed = bytes.failed || text.failed || out->data == NULL;
    cx_buf_done(&bytes);
    cx_buf_done(&text);
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status read_cursor(cx_recorder *recorder, cx_str text, cx_arena *arena, place *out,
                             cx_err *err)
{
    cx_buf bytes;
    uint8_t tag[TAG];
    cx_buf_init(&bytes, arena->alloc);
    bool good = cx_base64_decode(text, CX_BASE64_URL, &bytes) && bytes.size >= FIXED + TAG;
    if (good) {
        cursor_tag(recorder, cx_bytes_from(bytes.data, bytes.size - TAG), tag);
        good =
            memcmp(tag, bytes.data + bytes.size - TAG, TAG) == 0 && bytes.data[8] < CX_INBOX_KINDS;
    }
    if (good) {
        *out = (place){.when_ns = (int64_t)be64(bytes.data),
                       .kind = bytes.data[8],
                       .number = (int64_t)be64(bytes.data + 9)};
        out->id = cx_arena_copy_str(
            arena, cx_str_from((const char *)bytes.data + FIXED, bytes.size - FIXED - TAG));
        if (out->id.data == NULL) {
            cx_buf_done(&bytes);
            return cx_fail_nomem(err);
        }
    }
    cx_buf_done(&bytes);
    return good ? CX_SUCCESS
                : cx_fail_at(
                      err, CX_E_FORMAT, "BadCursor", CX_NO_OFFSET,
                      "the cursor was not issued by this data directory: leave it out to start at"
                      " the newest");
}

/* --- merging ---------------------------------------------------------------------------------- */

typedef struct listing {
    cx_recorder *recorder;
    const cx_inbox_query *query;
    cx_arena *arena;
    bool has_after;
    place after;
    cx_inbox_object *objects; /* selected, in order, all after `after` */
    size_t object_count, next_object;
    const cx_found_row *rows; /* likewise */
    size_t row_count, next_row;
    bool more_rows;
    place last;
} listing;

static void select_objects(listing *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->object_count; i++) {
        const place at = place_of(&l->objects[i]);
        if (cx_inbox_is_chosen(l->query, &l->objects[i]) &&
            (!l->has_after || compare(&l->after, &at) < 0))
            l->objects[kept++] = l->objects[i];
    }
    l->object_count = kept;
    if (kept != 0)
        qsort(l->objects, kept, sizeof *l->objects, compare_objects);
}

static cx_status find_rows(listing *l, cx_index *index, cx_err *err)
{
    cx_trace_query query;
    if (index == NULL || !cx_inbox_trace_query(l->query, &query))
        return CX_SUCCESS;
    if (l->has_after) {
        query.has_cursor = true;
        query.cursor_ns = l->after.when_ns;
        query.cursor_id = l->after.kind == CX_INBOX_TRACE ? l->after.number : INT64_MAX;
    }
    /* Objects without a time come last, so no trace follows them. */
    if (l->has_after && l->after.when_ns == CX_TIME_NONE)
        return CX_SUCCESS;
    return cx_index_find(index, &query, l->arena, &l->rows, &l->row_count, &l->more_rows, err);
}

static cx_status add_item(cx_json_list *items, const place *at, cx_str agent, cx_str id,
                          cx_json value, cx_err *err)
{
    cx_json item;
    cx_json_list list = cx_json_list_begin(items->arena);
    cx_reply_text(&list, "agent", agent);
    cx_reply_text(&list, "id", id);
    cx_reply_z(&list, "kind", cx_inbox_kinds[at->kind]);
    cx_reply_add(&list, "value", value);
    cx_reply_time(&list, "when", at->when_ns);
    CX_TRY(cx_json_list_end_object(&list, &item, err));
    cx_json_list_add(items, item);
    return CX_SUCCESS;
}

static cx_status add_row(listing *l, cx_json_list *items, const place *at, cx_err *err)
{
    const cx_found_row *row = &l->rows[l->next_row++];
    cx_json value;
    CX_TRY(cx_reply_trace_row(row, l->query->level, l->arena, &value, err));
    return add_item(items, at, cx_reply_cell(row, "agent_id_hash")->text,
                    cx_reply_cell(row, "trace_id")->text, value, err);
}

static cx_status add_object(listing *l, cx_json_list *items, const place *at, cx_err *err)
{
    const cx_inbox_object *object = &l->objects[l->next_object++];
    return add_item(items, at, object->values[CX_FACET_AGENT], object->id, object->value, err);
}

static cx_status merge_items(listing *l, cx_json_list *items, cx_err *err)
{
    for (uint32_t n = 0; n < l->query->limit; n++) {
        bool has_object = l->next_object < l->object_count, has_row = l->next_row < l->row_count;
        place object = {0}, row = {0};
        if (has_object)
            object = place_of(&l->objects[l->next_object]);
        if (has_row)
            row = (place){l->rows[l->next_row].timestamp_ns, CX_INBOX_TRACE,
                          l->rows[l->next_row].id, CX_STR("")};
        if (!has_object && !has_row)
            return CX_SUCCESS;
        bool takes_object = has_object && (!has_row || compare(&object, &row) < 0);
        l->last = takes_object ? object : row;
        CX_TRY(takes_object ? add_object(l, items, &object, err) : add_row(l, items, &row, err));
    }
    return CX_SUCCESS;
}

static cx_status inbox_json(listing *l, cx_index *index, const cx_inbox_object *objects,
                            size_t count, cx_json *out, cx_err *err)
{
    cx_json value;
    cx_str cursor = {NULL, 0};
    cx_json_list list = cx_json_list_begin(l->arena), items = cx_json_list_begin(l->arena);
    if (l->query->cursor.data != NULL) {
        CX_TRY(read_cursor(l->recorder, l->query->cursor, l->arena, &l->after, err));
        l->has_after = true;
    }
    CX_TRY(cx_inbox_put_position(l->recorder, index, &list, err));
    CX_TRY(cx_inbox_gather(index, l->query, objects, count, l->arena, &l->objects, &l->object_count,
                           err));
    select_objects(l);
    CX_TRY(find_rows(l, index, err));
    CX_TRY(merge_items(l, &items, err));
    if (l->next_object < l->object_count || l->next_row < l->row_count || l->more_rows)
        CX_TRY(write_cursor(l->recorder, &l->last, l->arena, &cursor, err));
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    cx_reply_add(&list, "items", value);
    cx_reply_text(&list, "next_cursor", cursor);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_inbox(cx_recorder *recorder, cx_index *index, const cx_inbox_query *query,
                            const cx_inbox_object *objects, size_t count, cx_buf *out, cx_err *err)
{
    cx_reply reply;
    cx_json value;
    if (query->limit < 1 || query->limit > CX_INBOX_LIMIT_MAX)
        return cx_fail(err, CX_E_USAGE, "limit: found %u, expected 1 to %d", query->limit,
                       CX_INBOX_LIMIT_MAX);
    cx_reply_begin(&reply, recorder == NULL ? cx_alloc_default() : recorder->alloc, err);
    listing l = {.recorder = recorder, .query = query, .arena = &reply.arena};
    return cx_reply_end(&reply, inbox_json(&l, index, objects, count, &value, err), &value, out);
}
