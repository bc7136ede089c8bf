/*
 * run_bundle.c - the archive of a run's bundle, stored for other machines.  Invariants B1 to B3:
 * run_bundle.h.
 */
#include "stores/run_bundle.h"

#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"
#include "rules/api.h"
#include "stores/run_entry.h"
#include "stores/run_object.h"

#define TYPE "cortex.run.bundle.v1"

/* --- names ------------------------------------------------------------------------------------ */

cx_id cx_run_stored_subject(cx_str run_id)
{
    return cx_run_entry_subject(TYPE, run_id, NULL);
}

/* --- the entry -------------------------------------------------------------------------------- */

cx_str cx_run_stored_kind(const cx_run_stored *stored)
{
    return cx_kinds_name(stored->in_object ? CX_KIND_RUN_BUNDLE_OBJECT : CX_KIND_RUN_BUNDLE);
}

static void put_parts(cx_json_list *object, const cx_run_stored *stored)
{
    cx_json_list parts = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < stored->part_count; i++) {
        cx_json_list part = cx_json_list_begin(object->arena);
        cx_json_put_uint(&part, "entry", stored->parts[i].seq);
        cx_run_entry_put_digest(&part, "sha256", &stored->parts[i].sha256);
        cx_json_put_uint(&part, "size_bytes", stored->parts[i].size_bytes);
        cx_json_add_object(&parts, &part);
    }
    cx_json_put_array(object, "parts", &parts);
}

cx_status cx_run_stored_write(const cx_run_stored *stored, cx_arena *arena, cx_buf *out,
                              cx_err *err)
{
    cx_json value;
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_put_z(&object, "type", stored->in_object ? CX_RUN_OBJECT_TYPE : TYPE);
    cx_json_put_str(&object, "run_id", stored->run_id);
    cx_run_entry_put_digest(&object, "manifest_sha256", &stored->manifest_sha256);
    cx_run_entry_put_digest(&object, "sha256", &stored->sha256);
    cx_json_put_uint(&object, "size_bytes", stored->size_bytes);
    if (stored->in_object)
        cx_run_object_put(&object, &stored->object);
    else
        put_parts(&object, stored);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

static bool read_size(const cx_json *object, uint64_t most, uint64_t *out)
{
    const cx_json *size = CX_JSON_GET(object, "size_bytes");
    return size != NULL && cx_json_uint64(size, out) && *out != 0 && *out <= most;
}

static bool read_part(const cx_json *json, cx_run_part *out)
{
    const cx_json *entry = json->type == CX_JSON_OBJECT ? CX_JSON_GET(json, "entry") : NULL;
    return entry != NULL && cx_json_uint64(entry, &out->seq) &&
           cx_digest_parse(CX_JSON_GET_STR(json, "sha256"), &out->sha256) &&
           read_size(json, CX_RUN_PART_BYTES, &out->size_bytes);
}

/* All parts, whose sizes add up to that of the whole. */
static bool read_parts(const cx_json *list, cx_arena *arena, cx_run_stored *out)
{
    uint64_t sum = 0;
    if (list->type != CX_JSON_ARRAY || list->count == 0 || list->count > CX_RUN_PARTS_MAX)
        return false;
    cx_run_part *parts = CX_ARENA_ARRAY(arena, cx_run_part, list->count);
    for (uint32_t i = 0; parts != NULL && i < list->count; i++) {
        if (!read_part(&list->items[i], &parts[i]))
            return false;
        sum += parts[i].size_bytes;
    }
    out->parts = parts;
    out->part_count = list->count;
    return parts != NULL && sum == out->size_bytes;
}

static bool read_stored(const cx_json *json, cx_str run_id, cx_arena *arena, cx_run_stored *out)
{
    const cx_json *parts = CX_JSON_GET(json, "parts"), *object = CX_JSON_GET(json, "object");
    out->run_id = CX_JSON_GET_STR(json, "run_id");
    if (!cx_str_is(CX_JSON_GET_STR(json, "type"), out->in_object ? CX_RUN_OBJECT_TYPE : TYPE) ||
        !cx_str_eq(out->run_id, run_id) ||
        !cx_digest_parse(CX_JSON_GET_STR(json, "sha256"), &out->sha256) ||
        !cx_digest_parse(CX_JSON_GET_STR(json, "manifest_sha256"), &out->manifest_sha256) ||
        !read_size(json, CX_RUN_STORED_BYTES_MAX, &out->size_bytes))
        return false;
    return out->in_object
               ? object != NULL && cx_run_object_read(object, out->size_bytes, &out->object)
               : parts != NULL && read_parts(parts, arena, out);
}

static cx_status fail_changed(cx_str run_id, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, CX_RUN_BUNDLE_CHANGED, CX_NO_OFFSET,
                      "the stored bundle of %.*s is not what was recorded: %s", (int)run_id.size,
                      run_id.data, what);
}

/* Whether the entry is one of ours; its error when it is of one of the kinds and not of its
 * form. */
static cx_status read_entry(cx_home *home, cx_str run_id, uint64_t seq, cx_arena *arena,
                            cx_run_stored *out, bool *out_found, cx_err *err)
{
    cx_entry_view view;
    cx_json json;
    CX_TRY(cx_home_entry(home, out->actor, seq, arena, &view, err));
    out->in_object = cx_kinds_is(view.entry.kind, CX_KIND_RUN_BUNDLE_OBJECT);
    if (view.entry.committed ||
        (!out->in_object && !cx_kinds_is(view.entry.kind, CX_KIND_RUN_BUNDLE)))
        return CX_SUCCESS;
    cx_status status = cx_run_json_read(cx_bytes_str(view.payload), 0, arena, &json, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) || json.type != CX_JSON_OBJECT || !read_stored(&json, run_id, arena, out))
        return fail_changed(run_id, "the entry that says where it is has another form", err);
    out->seq = seq;
    *out_found = true;
    return CX_SUCCESS;
}

cx_status cx_run_stored_next(cx_home *home, cx_str actor, cx_str run_id, size_t *at,
                             cx_arena *arena, cx_run_stored *out, bool *out_found, cx_err *err)
{
    const cx_id subject = cx_run_stored_subject(run_id);
    const uint64_t *seqs;
    size_t count = 0;
    *out_found = false;
    *out = (cx_run_stored){.actor = actor};
    cx_status status = cx_home_entries_about(home, actor, &subject, arena, &seqs, &count, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    while (*at < count && !*out_found)
        CX_TRY(read_entry(home, run_id, seqs[(*at)++], arena, out, out_found, err));
    return CX_SUCCESS;
}

cx_status cx_run_stored_find(cx_home *home, cx_str actor, cx_str run_id, cx_arena *arena,
                             cx_run_stored *out, bool *out_found, cx_err *err)
{
    size_t at = 0;
    return cx_run_stored_next(home, actor, run_id, &at, arena, out, out_found, err);
}

/* --- the bytes -------------------------------------------------------------------------------- */

static bool is_part(const cx_entry_view *view, const cx_run_part *part)
{
    if (!cx_kinds_is(view->entry.kind, CX_KIND_RUN_BUNDLE_PART) || !view->entry.committed ||
        view->payload.size != part->size_bytes)
        return false;
    const cx_digest digest = cx_digest_of(view->payload);
    return cx_digest_eq(&digest, &part->sha256);
}

cx_status cx_run_part_find(cx_home *home, cx_str actor, cx_str run_id, const cx_run_part *part,
                           uint64_t *out_seq, bool *out_found, cx_err *err)
{
    const cx_id subject = cx_run_part_subject(run_id, &part->sha256);
    const uint64_t *seqs;
    size_t count = 0;
    cx_arena arena;
    *out_found = false;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_home_entries_about(home, actor, &subject, &arena, &seqs, &count, err);
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS; /* there is no journal yet */
    for (size_t i = 0; i < count && !*out_found && !cx_failed(status); i++) {
        cx_entry_view view;
        status = cx_home_entry(home, actor, seqs[i], &arena, &view, err);
        *out_found = !cx_failed(status) && !view.payload_erased && is_part(&view, part);
        *out_seq = seqs[i];
    }
    cx_arena_done(&arena);
    return status;
}

static cx_status read_bytes(cx_home *home, const cx_run_stored *stored, const cx_run_part *part,
                            cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_entry_view view;
    cx_status status = cx_home_entry(home, stored->actor, part->seq, arena, &view, err);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail_at(err, CX_E_NOT_FOUND, CX_RUN_BUNDLE_MISSING, CX_NO_OFFSET,
                          "entry %llu of %.*s, a part of the bundle of %.*s, is not there",
                          (unsigned long long)part->seq, (int)stored->actor.size,
                          stored->actor.data, (int)stored->run_id.size, stored->run_id.data);
    CX_TRY(status);
    if (view.payload_erased)
        return cx_fail_at(err, CX_E_NOT_FOUND, CX_RUN_BUNDLE_ERASED, CX_NO_OFFSET,
                          "the stored bundle of %.*s was erased (entry %llu of %.*s)",
                          (int)stored->run_id.size, stored->run_id.data,
                          (unsigned long long)part->seq, (int)stored->actor.size,
                          stored->actor.data);
    if (!is_part(&view, part))
        return fail_changed(stored->run_id, "a part has another hash", err);
    cx_buf_add(out, view.payload.data, view.payload.size);
    return cx_buf_check(out, err);
}

/* B1 */
static cx_status check_archive(const cx_run_stored *stored, cx_bytes archive, cx_err *err)
{
    char what[96];
    if (archive.size != stored->size_bytes) {
        (void)snprintf(what, sizeof what, "found %zu bytes, expected %llu", archive.size,
                       (unsigned long long)stored->size_bytes);
        return fail_changed(stored->run_id, what, err);
    }
    const cx_digest digest = cx_digest_of(archive);
    return cx_digest_eq(&digest, &stored->sha256)
               ? CX_SUCCESS
               : fail_changed(stored->run_id, "it has another hash", err);
}

static cx_status read_all_parts(cx_home *home, const cx_run_stored *stored, cx_buf *out,
                                cx_err *err)
{
    cx_arena arena;
    cx_status status = CX_SUCCESS;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < stored->part_count && !cx_failed(status); i++) {
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        status = read_bytes(home, stored, &stored->parts[i], &arena, out, err);
        cx_arena_reset(&arena, mark);
    }
    cx_arena_done(&arena);
    return status;
}

cx_status cx_run_stored_read(cx_home *home, const cx_run_stored *stored,
                             const cx_object_store *store, cx_buf *out, cx_err *err)
{
    const size_t before = out->size;
    cx_status status = stored->in_object ? cx_run_object_fetch(home, stored, store, out, err)
                                         : read_all_parts(home, stored, out, err);
    if (!cx_failed(status))
        status = check_archive(stored, cx_bytes_from(out->data + before, out->size - before), err);
    if (cx_failed(status))
        out->size = before;
    return status;
}
