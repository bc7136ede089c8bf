/*
 * run_object.c - archives of runs as sealed objects.  Invariants J1 and J2: run_object.h.
 */
#include "stores/run_object.h"

#include "crypto/api.h"
#include "rules/api.h"
#include "stores/run_entry.h"

#define KEY_TYPE "cortex.run.bundle_key.v1"

/* --- keys ------------------------------------------------------------------------------------- */

cx_id cx_run_key_subject(cx_str run_id)
{
    return cx_run_entry_subject(KEY_TYPE, run_id, NULL);
}

cx_status cx_run_key_write(cx_str run_id, const cx_digest *archive, const cx_digest *key,
                           cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_json value;
    cx_json_list object = cx_json_list_begin(arena);
    cx_json_put_z(&object, "type", KEY_TYPE);
    cx_json_put_str(&object, "run_id", run_id);
    cx_run_entry_put_digest(&object, "sha256", archive);
    cx_run_entry_put_digest(&object, "key", key);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

/* Of an entry that was not erased; false when it is no key for that archive. */
static bool read_key(const cx_entry_view *view, cx_str run_id, const cx_digest *archive,
                     cx_arena *arena, cx_digest *out)
{
    cx_json json;
    cx_digest of;
    return cx_kinds_is(view->entry.kind, CX_KIND_RUN_BUNDLE_PART) && view->entry.committed &&
           !cx_failed(cx_run_json_read(cx_bytes_str(view->payload), 0, arena, &json, NULL)) &&
           json.type == CX_JSON_OBJECT && cx_str_is(CX_JSON_GET_STR(&json, "type"), KEY_TYPE) &&
           cx_str_eq(CX_JSON_GET_STR(&json, "run_id"), run_id) &&
           cx_digest_parse(CX_JSON_GET_STR(&json, "sha256"), &of) && cx_digest_eq(&of, archive) &&
           cx_digest_parse(CX_JSON_GET_STR(&json, "key"), out);
}

cx_status cx_run_key_entries(cx_home *home, cx_str actor, cx_str run_id, cx_arena *arena,
                             const uint64_t **out, size_t *out_count, cx_err *err)
{
    const cx_id subject = cx_run_key_subject(run_id);
    *out_count = 0;
    cx_status status = cx_home_entries_about(home, actor, &subject, arena, out, out_count, err);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status; /* there is no journal yet */
}

cx_status cx_run_key_find(cx_home *home, cx_str actor, cx_str run_id, const cx_digest *archive,
                          cx_digest *out_key, uint64_t *out_seq, bool *out_found, cx_err *err)
{
    const uint64_t *seqs;
    size_t count = 0;
    cx_arena arena;
    *out_found = false;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_run_key_entries(home, actor, run_id, &arena, &seqs, &count, err);
    for (size_t i = 0; i < count && !*out_found && !cx_failed(status); i++) {
        cx_entry_view view;
        status = cx_home_entry(home, actor, seqs[i], &arena, &view, err);
        *out_found = !cx_failed(status) && !view.payload_erased &&
                     read_key(&view, run_id, archive, &arena, out_key);
        *out_seq = seqs[i];
    }
    cx_arena_done(&arena);
    return status;
}

/* --- sealing ---------------------------------------------------------------------------------- */

/* J2 */
static cx_digest derive_key(cx_str run_id, const cx_digest *archive, const cx_digest *key)
{
    static const char domain[] = CX_RUN_OBJECT_TYPE;
    const cx_bytes pieces[] = {cx_bytes_from(domain, sizeof domain), cx_str_bytes(run_id),
                               cx_bytes_from(archive->bytes, sizeof archive->bytes)};
    return cx_hmac_sha256(cx_bytes_from(key->bytes, sizeof key->bytes), pieces,
                          CX_COUNT_OF(pieces));
}

cx_status cx_run_object_seal(cx_str run_id, const cx_digest *archive, const cx_digest *key,
                             cx_buf *bytes, cx_run_object *out, cx_err *err)
{
    const cx_digest derived = derive_key(run_id, archive, key);
    const size_t size = bytes->size;
    if (cx_buf_reserve(bytes, CX_BOX_EXTRA) == NULL)
        return cx_fail_nomem(err);
    cx_buf_advance(bytes, CX_BOX_EXTRA);
    cx_box_seal(&derived, bytes->data, size);
    out->sha256 = cx_digest_of(cx_buf_bytes(bytes));
    out->size_bytes = bytes->size;
    return CX_SUCCESS;
}

/* --- fetching --------------------------------------------------------------------------------- */

static cx_status find_key(cx_home *home, const cx_run_stored *stored, cx_digest *out, cx_err *err)
{
    cx_arena arena;
    cx_entry_view view;
    const uint64_t seq = stored->object.key_seq;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_home_entry(home, stored->actor, seq, &arena, &view, err);
    if (status.code == CX_E_NOT_FOUND)
        status = cx_fail_at(err, CX_E_NOT_FOUND, CX_RUN_BUNDLE_MISSING, CX_NO_OFFSET,
                            "entry %llu of %.*s, the key of the bundle of %.*s, is not there",
                            (unsigned long long)seq, (int)stored->actor.size, stored->actor.data,
                            (int)stored->run_id.size, stored->run_id.data);
    else if (!cx_failed(status) && view.payload_erased)
        status = cx_fail_at(err, CX_E_NOT_FOUND, CX_RUN_BUNDLE_ERASED, CX_NO_OFFSET,
                            "the stored bundle of %.*s was erased: its key (entry %llu of %.*s)",
                            (int)stored->run_id.size, stored->run_id.data, (unsigned long long)seq,
                            (int)stored->actor.size, stored->actor.data);
    else if (!cx_failed(status) && !read_key(&view, stored->run_id, &stored->sha256, &arena, out))
        status = cx_fail_at(err, CX_E_FORMAT, CX_RUN_BUNDLE_CHANGED, CX_NO_OFFSET,
                            "entry %llu of %.*s is not the key of the bundle of %.*s",
                            (unsigned long long)seq, (int)stored->actor.size, stored->actor.data,
                            (int)stored->run_id.size, stored->run_id.data);
    cx_arena_done(&arena);
    return status;
}

static int width(cx_str text, size_t most)
{
    return (int)(text.size > most ? most : text.size);
}

cx_status cx_run_object_fetch(cx_home *home, const cx_run_stored *stored,
                              const cx_object_store *store, cx_buf *out, cx_err *err)
{
    const cx_run_object *object = &stored->object;
    const size_t size = (size_t)object->size_bytes;
    cx_digest key;
    CX_TRY(find_key(home, stored, &key, err));
    if (store == NULL)
        return cx_fail_at(err, CX_E_NOT_FOUND, CX_RUN_BUNDLE_UNREACHABLE, CX_NO_OFFSET,
                          "the bundle of %.*s is in an object store (%.*s, bucket %.*s), and none "
                          "is set here: set [bundles] in the configuration",
                          (int)stored->run_id.size, stored->run_id.data,
                          width(object->endpoint, 120), object->endpoint.data,
                          width(object->bucket, 63), object->bucket.data);
    uint8_t *room = cx_buf_reserve(out, size);
    if (room == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_object_get(store, cx_home_io(home), &object->sha256, size, room, err));
    const cx_digest derived = derive_key(stored->run_id, &stored->sha256, &key);
    if (!cx_box_open(&derived, room, size))
        return cx_fail_at(err, CX_E_FORMAT, CX_RUN_BUNDLE_CHANGED, CX_NO_OFFSET,
                          "the object of the bundle of %.*s cannot be opened with its key",
                          (int)stored->run_id.size, stored->run_id.data);
    cx_buf_advance(out, size - CX_BOX_EXTRA);
    return CX_SUCCESS;
}

/* --- the entry -------------------------------------------------------------------------------- */

void cx_run_object_put(cx_json_list *entry, const cx_run_object *object)
{
    cx_json_list json = cx_json_list_begin(entry->arena);
    cx_json_put_uint(&json, "key_entry", object->key_seq);
    cx_run_entry_put_digest(&json, "sha256", &object->sha256);
    cx_json_put_uint(&json, "size_bytes", object->size_bytes);
    cx_json_put_str(&json, "endpoint", object->endpoint);
    cx_json_put_str(&json, "bucket", object->bucket);
    cx_json_put_str(&json, "name", object->name);
    cx_json_put_object(entry, "object", &json);
}

bool cx_run_object_read(const cx_json *json, uint64_t archive_bytes, cx_run_object *out)
{
    if (json->type != CX_JSON_OBJECT)
        return false;
    const cx_json *key = CX_JSON_GET(json, "key_entry"), *size = CX_JSON_GET(json, "size_bytes");
    out->endpoint = CX_JSON_GET_STR(json, "endpoint");
    out->bucket = CX_JSON_GET_STR(json, "bucket");
    out->name = CX_JSON_GET_STR(json, "name");
    return key != NULL && cx_json_uint64(key, &out->key_seq) && size != NULL &&
           cx_json_uint64(size, &out->size_bytes) &&
           out->size_bytes == archive_bytes + CX_BOX_EXTRA && out->endpoint.data != NULL &&
           out->bucket.data != NULL && out->name.data != NULL &&
           cx_digest_parse(CX_JSON_GET_STR(json, "sha256"), &out->sha256);
}
