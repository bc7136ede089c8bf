/*
 * view.c - memories and edges as JSON.
 */
#include "memory/view.h"

#include <math.h>

#include "base/api.h"
#include "crypto/api.h"
#include "memory/forms.h"

/* --- members ---------------------------------------------------------------------------------- */

void cx_json_put_id(cx_json_list *list, const char *name, const cx_id *id)
{
    char *text = CX_ARENA_ARRAY(list->arena, char, CX_ULID_SIZE);
    if (text == NULL) {
        list->failed = true;
        return;
    }
    cx_ulid_format(id, text);
    cx_json_put_str(list, name, cx_str_from(text, CX_ULID_SIZE));
}

/* Puts what a buffer holds and lets the buffer go. */
static void put_buffer(cx_json_list *list, const char *name, cx_buf *text)
{
    cx_str kept = cx_arena_copy_str(list->arena, cx_buf_str(text));
    if (text->failed || kept.data == NULL)
        list->failed = true;
    else
        cx_json_put_str(list, name, kept);
    cx_buf_done(text);
}

void cx_json_put_uri(cx_json_list *list, const char *name, const cx_uri *uri)
{
    cx_buf text;
    cx_buf_init(&text, list->arena->alloc);
    cx_uri_add(uri, &text);
    put_buffer(list, name, &text);
}

void cx_json_put_time(cx_json_list *list, const char *name, bool present, int64_t seconds)
{
    cx_buf text;
    if (!present) {
        cx_json_put_null(list, name);
        return;
    }
    cx_buf_init(&text, list->arena->alloc);
    cx_form_time(seconds, &text);
    put_buffer(list, name, &text);
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
        cx_json_put_null(out, "data");
        return CX_SUCCESS;
    }
    if (!cx_failed(cx_data_decode(version->type, version->data.bytes, out->arena, data, NULL))) {
        CX_TRY(cx_data_to_json(data, out->arena, &json, err));
        cx_json_list_put(out, CX_STR("data"), json);
        return CX_SUCCESS;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    cx_json_put_hex(&inner, "cbor", version->data.bytes);
    cx_json_put_object(out, "data", &inner);
    return CX_SUCCESS;
}

static void put_frames(const cx_head *head, cx_json_list *out)
{
    cx_json_list frames = cx_json_list_begin(out->arena);
    for (size_t i = 0; i < head->frame_count; i++) {
        cx_json_list frame = cx_json_list_begin(out->arena);
        cx_json_put_str(&frame, "kind", cx_kind_name(head->frames[i].kind));
        cx_json_put_str(&frame, "ref", head->frames[i].ref);
        cx_json_put_str(&frame, "verb", cx_verb_name(head->frames[i].verb));
        cx_json_add_object(&frames, &frame);
    }
    cx_json_put_array(out, "frames", &frames);
}

static void put_provenance(const cx_provenance *from, cx_json_list *out)
{
    cx_json_list inner = cx_json_list_begin(out->arena);
    cx_json_put_strs(&inner, "attestations", from->attestations, from->attestation_count);
    cx_json_put_strs(&inner, "derived_from", from->derived_from, from->derived_count);
    if (from->signed_by.size == 0)
        cx_json_put_null(&inner, "signed_by");
    else
        cx_json_put_hex(&inner, "signed_by", from->signed_by);
    cx_json_put_str(&inner, "source", from->source);
    cx_json_put_object(out, "provenance", &inner);
}

static void put_embedding(const cx_head *head, cx_json_list *out)
{
    if (!head->embedded) {
        cx_json_put_null(out, "embedding");
        return;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    cx_json_put_uint(&inner, "dim", head->dim);
    cx_json_put_str(&inner, "model", head->model);
    cx_json_put_bool(&inner, "stale", head->stale);
    cx_json_put_uint(&inner, "vertex", head->vertex);
    cx_json_put_object(out, "embedding", &inner);
}

static void put_tombstone(const cx_head *head, cx_json_list *out)
{
    if (!head->tombstoned) {
        cx_json_put_null(out, "tombstone");
        return;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    cx_json_put_time(&inner, "at", true, head->tombstoned_at);
    cx_json_put_str(&inner, "by", head->tombstoned_by);
    cx_json_put_str(&inner, "reason", head->tombstone_reason);
    cx_json_put_object(out, "tombstone", &inner);
}

static void put_head(const cx_memory_view *view, cx_json_list *out)
{
    const cx_head *head = &view->head;
    cx_digest hash = cx_digest_of(view->head_bytes);
    cx_json_put_str(out, "actor_scope", head->actor_scope);
    cx_json_put_uint(out, "current_version", head->current_version);
    cx_json_put_digest(out, "head_hash", &hash);
    cx_json_put_uint(out, "importance", head->importance);
    cx_json_put_strs(out, "tags", head->tags, head->tag_count);
    cx_json_put_time(out, "updated_at", !head->last_updated_null, head->last_updated_at);
    cx_json_put_str(out, "visibility", cx_visibility_name(head->visibility));
    put_frames(head, out);
    put_embedding(head, out);
    put_tombstone(head, out);
}

cx_status cx_view_memory(const cx_memory_view *view, cx_json_list *out, cx_err *err)
{
    const cx_version_record *version = &view->version;
    cx_json_list forms = cx_json_list_begin(out->arena);
    cx_json_put_uri(out, "uri", &view->uri);
    cx_json_put_id(out, "id", &view->uri.id);
    cx_json_put_str(out, "type", cx_uri_type_name(view->uri.type));
    cx_json_put_uint(out, "version", view->uri.version);
    cx_json_put_digest(out, "version_hash", &version->hash);
    cx_json_put_bool(out, "erased", version->erased);
    cx_json_put_bool(out, "expired", view->expired);
    cx_json_put_time(out, "created_at", !version->created_at_null && !version->erased,
                     version->created_at);
    cx_json_put_maybe(out, "created_by", version->created_by);
    cx_json_put_time(out, "expires_at", version->expires, version->expires_at);
    cx_json_put_float(out, "confidence", version->confidence);
    cx_json_put_str(&forms, "medium", version->forms.medium);
    cx_json_put_str(&forms, "short", version->forms.brief);
    cx_json_put_object(out, "forms", &forms);
    put_provenance(&version->provenance, out);
    put_head(view, out);
    return put_data(version, out, err);
}

cx_status cx_view_hit(const cx_memory_hit *hit, bool near, cx_json_list *out, cx_err *err)
{
    cx_json_put_float(out, "salience", hit->salience);
    if (near)
        cx_json_put_float(out, "similarity", hit->similarity);
    else
        cx_json_put_null(out, "similarity");
    return cx_view_memory(&hit->view, out, err);
}

/* --- edges ------------------------------------------------------------------------------------ */

/* As text where it is text, else {"hex":..}. */
static void put_edge_data(const cx_edge *edge, cx_json_list *out)
{
    if (edge->data.size == 0) {
        cx_json_put_null(out, "data");
        return;
    }
    if (cx_utf8_valid(cx_bytes_str(edge->data))) {
        cx_json_put_str(out, "data", cx_bytes_str(edge->data));
        return;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    cx_json_put_hex(&inner, "hex", edge->data);
    cx_json_put_object(out, "data", &inner);
}

void cx_view_edge(const cx_edge *edge, cx_json_list *out)
{
    const cx_uri uri = {.is_edge = true, .type = edge->type, .id = edge->src, .dst = edge->dst};
    cx_json_put_uri(out, "uri", &uri);
    cx_json_put_id(out, "src", &edge->src);
    cx_json_put_str(out, "type", cx_uri_edge_type_name(edge->type));
    cx_json_put_id(out, "dst", &edge->dst);
    cx_json_put_time(out, "created_at", !edge->created_at_null, edge->created_at);
    cx_json_put_maybe(out, "created_by", edge->created_by);
    cx_json_put_float(out, "weight", edge->weight);
    put_edge_data(edge, out);
    if (!edge->tombstoned) {
        cx_json_put_null(out, "removed");
        return;
    }
    cx_json_list inner = cx_json_list_begin(out->arena);
    cx_json_put_time(&inner, "at", edge->has_tombstoned_at, edge->tombstoned_at);
    cx_json_put_str(&inner, "by", edge->by);
    cx_json_put_str(&inner, "reason", edge->reason);
    cx_json_put_object(out, "removed", &inner);
}

void cx_view_sent_scope(const cx_sent_scope *sent, cx_json_list *out)
{
    const cx_scope *scope = &sent->scope;
    cx_json_put_str(out, "actor", scope->actor);
    cx_json_put_uint(out, "budget", scope->budget_tokens);
    cx_json_put_uint(out, "entry", sent->seq);
    cx_json_put_time(out, "expires_at", scope->expires, scope->expires_at);
    cx_json_put_str(out, "granted_by", scope->granted_by);
    cx_json_put_str(out, "granted_to", scope->granted_to);
    cx_json_put_digest(out, "id", &sent->id);
    cx_json_put_digest(out, "overall_root", &scope->snapshot_hash);
    cx_json_put_bool(out, "writable", scope->writable);
}
