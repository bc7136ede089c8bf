/*
 * sensitive_mark.c - marks as records of the entry's actor, and the list of them.
 */
#include "recorder/sensitive_mark.h"

#include "base/api.h"
#include "proof/api.h"

#define MARK_PREFIX "sensitive/"
#define DEPTH_MAX 520

/* --- writing ---------------------------------------------------------------------------------- */

static cx_status write_findings(const cx_mark *mark, cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_json_list items = cx_json_list_begin(arena);
    cx_json value;
    for (size_t i = 0; i < mark->found->listed; i++) {
        const cx_sensitive_finding *f = &mark->found->items[i];
        cx_json_list item = cx_json_list_begin(arena);
        cx_json_put_z(&item, "action", f->masked ? "masked" : "marked");
        cx_json_put_z(&item, "class", cx_sensitive_class_name(f->class_of));
        if (mark->levels != NULL && mark->levels[i] != NULL)
            cx_json_put_z(&item, "level", mark->levels[i]);
        if (f->line != 0)
            cx_json_put_uint(&item, "line", f->line);
        if (f->is_name)
            cx_json_put_bool(&item, "name", true);
        cx_json_put_z(&item, "pattern", f->pattern);
        cx_json_put_str(&item, "pointer", f->pointer);
        cx_json_add_object(&items, &item);
    }
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

static size_t write_key(uint64_t seq, uint8_t out[32])
{
    size_t size = sizeof MARK_PREFIX - 1;
    memcpy(out, MARK_PREFIX, size);
    for (unsigned i = 0; i < 8; i++)
        out[size++] = (uint8_t)(seq >> (56 - 8 * i));
    return size;
}

static cx_status write_mark(const cx_mark *mark, cx_buf *text, cx_buf *out, cx_err *err)
{
    cx_cbor_fields fields;
    CX_TRY(write_findings(mark, mark->found->arena, text, err));
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 1, mark->found->count);
    cx_codec_uint(&fields, 2, mark->found->masked);
    cx_codec_uint(&fields, 3, mark->is_signed);
    cx_codec_text(&fields, 4, cx_buf_str(text));
    cx_cbor_fields_end(&fields);
    return cx_buf_check(out, err);
}

cx_status cx_recorder_mark_put(cx_txn *txn, uint64_t seq, const cx_mark *mark, cx_err *err)
{
    uint8_t key[32];
    cx_buf text, value;
    if (mark->found == NULL || mark->found->count == 0)
        return CX_SUCCESS;
    if (mark->found->failed)
        return cx_fail_nomem(err);
    cx_buf_init(&text, mark->found->arena->alloc);
    cx_buf_init(&value, mark->found->arena->alloc);
    size_t size = write_key(seq, key);
    cx_status status = write_mark(mark, &text, &value, err);
    if (!cx_failed(status))
        status = cx_txn_put(txn, cx_bytes_from(key, size), cx_buf_bytes(&value), false, err);
    cx_buf_done(&value);
    cx_buf_done(&text);
    return status;
}

cx_status cx_recorder_mask_json(const cx_sensitive_rules *rules, cx_str text,
                                const char *const below[2], bool may_mask, cx_sensitive_list *list,
                                cx_json *out_masked, bool *out_changed, cx_err *err)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    cx_json_parser parser;
    cx_sensitive_target target = {.bytes = (const uint8_t *)text.data, .size = text.size};
    cx_str copy = {NULL, 0};
    *out_changed = false;
    target.mask_below[0] = below[0];
    target.mask_below[1] = below[1];
    if (may_mask && cx_sensitive_masks(rules)) {
        uint8_t *bytes = CX_ARENA_ARRAY(list->arena, uint8_t, text.size + 1);
        if (bytes == NULL)
            return cx_fail_nomem(err);
        memcpy(bytes, text.data, text.size);
        target.mask = bytes;
        copy = cx_str_from((const char *)bytes, text.size);
    }
    cx_sensitive_scan_json(rules, &target, list);
    if (list->failed)
        return cx_fail_nomem(err);
    if (list->masked == 0)
        return CX_SUCCESS;
    limits.depth = DEPTH_MAX;
    cx_json_parser_init(&parser, list->arena->alloc, &limits);
    cx_status status = cx_json_parse(&parser, copy, list->arena, out_masked, err);
    cx_json_parser_done(&parser);
    *out_changed = true;
    return status;
}

/* --- listing ---------------------------------------------------------------------------------- */

typedef struct listing {
    const cx_marks_wanted *wanted;
    cx_arena *arena;
    cx_json_parser parser;
    cx_str actor;
    cx_json_list records;
    uint32_t count;
    bool more;
} listing;

typedef struct mark_row {
    uint64_t seq, count, masked, is_signed;
    cx_str findings;
} mark_row;

static cx_status read_mark(cx_bytes key, cx_bytes value, mark_row *out, cx_err *err)
{
    cx_decoder d;
    *out = (mark_row){.seq = 0};
    for (size_t i = sizeof MARK_PREFIX - 1; i < key.size; i++)
        out->seq = out->seq << 8 | key.data[i];
    cx_decoder_begin(&d, value, "mark of sensitive data", NULL);
    while (cx_decoder_next(&d))
        switch (d.members.key) {
        case 1: out->count = cx_cbor_read_uint(&d.reader); break;
        case 2: out->masked = cx_cbor_read_uint(&d.reader); break;
        case 3: out->is_signed = cx_cbor_read_uint(&d.reader); break;
        case 4: out->findings = cx_cbor_read_text(&d.reader); break;
        default: cx_cbor_reject_member(&d.reader, &d.members);
        }
    return cx_decoder_end(&d, 0x1E, err);
}

/* Those of the class that is wanted; the text is the row's, so it is copied. */
static cx_status read_findings(listing *l, cx_str text, cx_json *out, uint32_t *out_fitting,
                               cx_err *err)
{
    cx_json all;
    cx_json_list fitting = cx_json_list_begin(l->arena);
    cx_str copy = cx_arena_copy_str(l->arena, text);
    *out_fitting = 0;
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse(&l->parser, copy, l->arena, &all, err));
    for (uint32_t i = 0; all.type == CX_JSON_ARRAY && i < all.count; i++) {
        const cx_json *name = CX_JSON_GET(&all.items[i], "class");
        if (l->wanted->class_of != CX_SENSITIVE_CLASS_COUNT &&
            !(name != NULL && name->type == CX_JSON_STRING &&
              cx_str_is(cx_json_text(name), cx_sensitive_class_name(l->wanted->class_of))))
            continue;
        cx_json_list_add(&fitting, all.items[i]);
        ++*out_fitting;
    }
    return cx_json_list_end_array(&fitting, out, err);
}

static cx_status add_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    listing *l = arg;
    mark_row row;
    cx_json findings;
    uint32_t fitting = 0;
    CX_TRY(read_mark(key, value, &row, err));
    CX_TRY(read_findings(l, row.findings, &findings, &fitting, err));
    if (fitting == 0)
        return CX_SUCCESS;
    if (l->count == l->wanted->limit) {
        *stop = l->more = true;
        return CX_SUCCESS;
    }
    /* The name is borrowed from a walk, and the answer outlives that. */
    const cx_str actor = cx_arena_copy_str(l->arena, l->actor);
    if (actor.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list record = cx_json_list_begin(l->arena);
    cx_json_put_str(&record, "actor", actor);
    cx_json_put_uint(&record, "count", row.count);
    cx_json_list_put(&record, CX_STR("findings"), findings);
    cx_json_put_uint(&record, "masked", row.masked);
    cx_json_put_uint(&record, "seq", row.seq);
    cx_json_put_bool(&record, "signed", row.is_signed != 0);
    cx_json_add_object(&l->records, &record);
    l->count++;
    return CX_SUCCESS;
}

static cx_status list_actor(listing *l, cx_home *home, cx_str actor, cx_err *err)
{
    l->actor = actor;
    const cx_scan scan = {
        .actor = actor, .prefix = cx_str_bytes(CX_STR(MARK_PREFIX)), .row = add_row, .arg = l};
    return cx_home_scan(home, &scan, err);
}

static cx_status list_all(listing *l, cx_home *home, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    cx_actor_walk_begin(&walk, home);
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL && !l->more) {
        status = list_actor(l, home, actor->name, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    return status;
}

static cx_status list_actors(listing *l, cx_home *home, cx_err *err)
{
    cx_actor_info info;
    if (l->wanted->actor.data == NULL)
        return list_all(l, home, err);
    cx_status status = cx_home_actor(home, l->wanted->actor, &info, err);
    if (!cx_failed(status))
        return list_actor(l, home, l->wanted->actor, err);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
                          "no journal '%.*s' in this data directory",
                          (int)(l->wanted->actor.size > 80 ? 80 : l->wanted->actor.size),
                          l->wanted->actor.data);
    return status;
}

cx_status cx_recorder_answer_marks(cx_home *home, const cx_marks_wanted *wanted, cx_arena *arena,
                                   cx_json *out, cx_err *err)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    listing l = {.wanted = wanted, .arena = arena, .records = cx_json_list_begin(arena)};
    cx_json_list answer = cx_json_list_begin(arena);
    CX_ASSERT(wanted->limit >= 1 && wanted->limit <= CX_MARKS_MAX);
    cx_json_parser_init(&l.parser, arena->alloc, &limits);
    cx_status status = list_actors(&l, home, err);
    cx_json_parser_done(&l.parser);
    CX_TRY(status);
    cx_json_put_bool(&answer, "more", l.more);
    cx_json_put_array(&answer, "records", &l.records);
    return cx_json_list_end_object(&answer, out, err);
}
