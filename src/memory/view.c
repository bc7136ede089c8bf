/*
 * view.c - memories and edges as JSON.
 */
#include "memory/view.h"

#include <math.h>

#include "base/api.h"
#include "crypto/api.h"
#include "memory/forms.h"

/* --- members ---------------------------------------------------------------------------------- */

void cx_view_put_str(cx_json_list *list, const char *name, cx_str text)
{
    if (text.data == NULL)
        text = CX_STR("");
    cx_json_list_put(list, cx_str_z(name), cx_json_make_str(text));
}

void cx_view_put_uint(cx_json_list *list, const char *name, uint64_t value)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_uint(list->arena, value));
}

void cx_view_put_bool(cx_json_list *list, const char *name, bool value)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_bool(value));
}

void cx_view_put_null(cx_json_list *list, const char *name)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_null());
}

void cx_view_put_float(cx_json_list *list, const char *name, float value)
{
    if (isfinite(value))
        cx_json_list_put(list, cx_str_z(name), cx_json_make_double(list->arena, (double)value));
    else
        cx_view_put_null(list, name);
}

static void put_maybe(cx_json_list *list, const char *name, cx_str text)
{
    if (text.size == 0)
        cx_view_put_null(list, name);
    else
        cx_view_put_str(list, name, text);
}

static void put_hex(cx_json_list *list, const char *name, cx_bytes bytes)
{
    char *text = CX_ARENA_ARRAY(list->arena, char, 2 * bytes.size + 1);
    if (text == NULL) {
        list->failed = true;
        return;
    }
    cx_hex_encode(bytes, text);
    cx_view_put_str(list, name, cx_str_from(text, 2 * bytes.size));
}

static void put_digest(cx_json_list *list, const char *name, const cx_digest *digest)
{
    put_hex(list, name, cx_bytes_from(digest->bytes, sizeof digest->bytes));
}

void cx_view_put_id(cx_json_list *list, const char *name, const cx_id *id)
{
    char *text = CX_ARENA_ARRAY(list->arena, char, CX_ULID_SIZE);
    if (text == NULL) {
        list->failed = true;
        return;
    }
    cx_ulid_format(id, text);
    cx_view_put_str(list, name, cx_str_from(text, CX_ULID_SIZE));
}

/* Puts what a buffer holds and lets the buffer go. */
static void put_buffer(cx_json_list *list, const char *name, cx_buf *text)
{
    cx_str kept = cx_arena_copy_str(list->arena, cx_buf_str(text));
    if (text->failed || kept.data == NULL)
        list->failed = true;
    else
        cx_view_put_str(list, name, kept);
    cx_buf_done(text);
}

void cx_view_put_uri(cx_json_list *list, const char *name, const cx_uri *uri)
{
    cx_buf text;
    cx_buf_init(&text, list->arena->alloc);
    cx_uri_add(uri, &text);
    put_buffer(list, name, &text);
}

static void put_time(cx_json_list *list, const char *name, bool present, int64_t seconds)
{
    cx_buf text;
    if (!present) {
        cx_view_put_null(list, name);
        return;
    }
    cx_buf_init(&text, list->arena->alloc);
    cx_form_time(seconds, &text);
    put_buffer(list, name, &text);
}

void cx_view_put_texts(cx_json_list *list, const char *name, const cx_str *texts, size_t count)
{
    cx_json_list inner = cx_json_list_begin(list->arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&inner, cx_json_make_str(texts[i]));
    if (cx_failed(cx_view_put_array(list, name, &inner, NULL)))
        list->failed = true;
}

cx_status cx_view_put_object(cx_json_list *list, const char *name, cx_json_list *inner, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(inner, &value, err));
    cx_json_list_put(list, cx_str_z(name), value);
    return CX_SUCCESS;
}

cx_status cx_view_put_array(cx_json_list *list, const char *name, cx_json_list *inner, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_array(inner, &value, err));
    cx_json_list_put(list, cx_str_z(name), value);
    return CX_SUCCESS;
}

cx_status cx_view_add_object(cx_json_list *list, cx_json_list *inner, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(inner, &value, err));
    cx_json_list_add(list, value);
    return CX_SUCCESS;
}

/* --- memories --------------------------------------------------------------------------------- */

/* The data with readable names; bytes that are none of the type's as {"cbor":hex}. */
static cx_status put_data(const cx_version_record *version, cx_json_list *out, cx_err *err)
{
    /* Members of the JSON may borrow from the data, so that it has to live as long as they do. */
    cx_data *data = CX_ARENA_NEW(out->arena, cx_data);
    cx_json json;
    if (data == NULL)
        return cx_fail_nomem(err);
    if (version->erased || version->data.null) {
        cx_view_put_null(out, "data");
        return CX_SUCCESS;
    }
    if (!cx_failed(cx_data_decode(version->type, version->data.bytes, out->arena, data, NULL))) {
        CX_TRY(cx_data_to_json(data, out->arena, &json, err));
        cx_json_list_put(out, CX_STR("data"), json);
        return CX_SUCCESS;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    put_hex(&inner, "cbor", version->data.bytes);
    return cx_view_put_object(out, "data", &inner, err);
}

static cx_status put_frames(const cx_head *head, cx_json_list *out, cx_err *err)
{
    cx_json_list frames = cx_json_list_begin(out->arena);
    for (size_t i = 0; i < head->frame_count; i++) {
        cx_json_list frame = cx_json_list_begin(out->arena);
        cx_view_put_str(&frame, "kind", cx_kind_name(head->frames[i].kind));
        cx_view_put_str(&frame, "ref", head->frames[i].ref);
        cx_view_put_str(&frame, "verb", cx_verb_name(head->frames[i].verb));
        CX_TRY(cx_view_add_object(&frames, &frame, err));
    }
    return cx_view_put_array(out, "frames", &frames, err);
}

static cx_status put_provenance(const cx_provenance *from, cx_json_list *out, cx_err *err)
{
    cx_json_list inner = cx_json_list_begin(out->arena);
    cx_view_put_texts(&inner, "attestations", from->attestations, from->attestation_count);
    cx_view_put_texts(&inner, "derived_from", from->derived_from, from->derived_count);
    if (from->signed_by.size == 0)
        cx_view_put_null(&inner, "signed_by");
    else
        put_hex(&inner, "signed_by", from->signed_by);
    cx_view_put_str(&inner, "source", from->source);
    return cx_view_put_object(out, "provenance", &inner, err);
}

static cx_status put_embedding(const cx_head *head, cx_json_list *out, cx_err *err)
{
    if (!head->embedded) {
        cx_view_put_null(out, "embedding");
        return CX_SUCCESS;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    cx_view_put_uint(&inner, "dim", head->dim);
    cx_view_put_str(&inner, "model", head->model);
    cx_view_put_bool(&inner, "stale", head->stale);
    cx_view_put_uint(&inner, "vertex", head->vertex);
    return cx_view_put_object(out, "embedding", &inner, err);
}

static cx_status put_tombstone(const cx_head *head, cx_json_list *out, cx_err *err)
{
    if (!head->tombstoned) {
        cx_view_put_null(out, "tombstone");
        return CX_SUCCESS;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    put_time(&inner, "at", true, head->tombstoned_at);
    cx_view_put_str(&inner, "by", head->tombstoned_by);
    cx_view_put_str(&inner, "reason", head->tombstone_reason);
    return cx_view_put_object(out, "tombstone", &inner, err);
}

static cx_status put_head(const cx_memory_view *view, cx_json_list *out, cx_err *err)
{
    const cx_head *head = &view->head;
    cx_digest hash = cx_digest_of(view->head_bytes);
    cx_view_put_str(out, "actor_scope", head->actor_scope);
    cx_view_put_uint(out, "current_version", head->current_version);
    put_digest(out, "head_hash", &hash);
    cx_view_put_uint(out, "importance", head->importance);
    cx_view_put_texts(out, "tags", head->tags, head->tag_count);
    put_time(out, "updated_at", !head->last_updated_null, head->last_updated_at);
    cx_view_put_str(out, "visibility", cx_visibility_name(head->visibility));
    CX_TRY(put_frames(head, out, err));
    CX_TRY(put_embedding(head, out, err));
    return put_tombstone(head, out, err);
}

cx_status cx_view_memory(const cx_memory_view *view, cx_json_list *out, cx_err *err)
{
    const cx_version_record *version = &view->version;
    cx_json_list forms = cx_json_list_begin(out->arena);
    cx_view_put_uri(out, "uri", &view->uri);
    cx_view_put_id(out, "id", &view->uri.id);
    cx_view_put_str(out, "type", cx_uri_type_name(view->uri.type));
    cx_view_put_uint(out, "version", view->uri.version);
    put_digest(out, "version_hash", &version->hash);
    cx_view_put_bool(out, "erased", version->erased);
    cx_view_put_bool(out, "expired", view->expired);
    put_time(out, "created_at", !version->created_at_null && !version->erased, version->created_at);
    put_maybe(out, "created_by", version->created_by);
    put_time(out, "expires_at", version->expires, version->expires_at);
    cx_view_put_float(out, "confidence", version->confidence);
    cx_view_put_str(&forms, "medium", version->forms.medium);
    cx_view_put_str(&forms, "short", version->forms.brief);
    CX_TRY(cx_view_put_object(out, "forms", &forms, err));
    CX_TRY(put_provenance(&version->provenance, out, err));
    CX_TRY(put_head(view, out, err));
    return put_data(version, out, err);
}

cx_status cx_view_hit(const cx_memory_hit *hit, bool near, cx_json_list *out, cx_err *err)
{
    cx_view_put_float(out, "salience", hit->salience);
    if (near)
        cx_view_put_float(out, "similarity", hit->similarity);
    else
        cx_view_put_null(out, "similarity");
    return cx_view_memory(&hit->view, out, err);
}

/* --- edges ------------------------------------------------------------------------------------ */

/* As text where it is text, else {"hex":..}. */
static cx_status put_edge_data(const cx_edge *edge, cx_json_list *out, cx_err *err)
{
    if (edge->data.size == 0) {
        cx_view_put_null(out, "data");
        return CX_SUCCESS;
    }
    if (cx_utf8_valid(cx_bytes_str(edge->data))) {
        cx_view_put_str(out, "data", cx_bytes_str(edge->data));
        return CX_SUCCESS;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    put_hex(&inner, "hex", edge->data);
    return cx_view_put_object(out, "data", &inner, err);
}

cx_status cx_view_edge(const cx_edge *edge, cx_json_list *out, cx_err *err)
{
    const cx_uri uri = {.is_edge = true, .type = edge->type, .id = edge->src, .dst = edge->dst};
    cx_view_put_uri(out, "uri", &uri);
    cx_view_put_id(out, "src", &edge->src);
    cx_view_put_str(out, "type", cx_uri_edge_type_name(edge->type));
    cx_view_put_id(out, "dst", &edge->dst);
    put_time(out, "created_at", !edge->created_at_null, edge->created_at);
    put_maybe(out, "created_by", edge->created_by);
    cx_view_put_float(out, "weight", edge->weight);
    CX_TRY(put_edge_data(edge, out, err));
    if (!edge->tombstoned) {
        cx_view_put_null(out, "removed");
        return CX_SUCCESS;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    put_time(&inner, "at", edge->has_tombstoned_at, edge->tombstoned_at);
    cx_view_put_str(&inner, "by", edge->by);
    cx_view_put_str(&inner, "reason", edge->reason);
    return cx_view_put_object(out, "removed", &inner, err);
}
