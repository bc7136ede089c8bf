/*
 * write.c - Write and Update (ledger.md §10): new memories, and new versions of them.
 *
 * W1  An id is written once, even if its memory is tombstoned.
 * W2  An update is written only if the version that its writer read is still current.
 * W3  Under a scope nothing of the content is looked at before the scope allows the memory.
 */
#include <math.h>

#include "memory/internal.h"

/* The content of a version, from either call. */
typedef struct draft {
    cx_bytes data;
    cx_provenance provenance;
    cx_str created_by;
    float confidence;
    bool expires;
    int64_t expires_at;
    const cx_forms *forms;
    const cx_scope_use *scope;
} draft;

/* The checks that need no read of the ledger; fills in defaults and forms. */
static cx_status check_draft(cx_memory_call *call, uint8_t type, draft *d, cx_forms *out_forms,
                             cx_err *err)
{
    if (d->data.size > CX_MEMORY_DATA_SIZE_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "InvalidArgument", CX_NO_OFFSET,
                          "data of %zu bytes, expected at most %u", d->data.size,
                          CX_MEMORY_DATA_SIZE_MAX);
    cx_data data;
    CX_TRY(cx_data_accept(type, d->data, call->arena, &data, err));
    if (d->scope != NULL)
        d->created_by = cx_memory_or(d->created_by, d->scope->scope.granted_to);
    d->created_by = cx_memory_or(d->created_by, cx_memory_actor(call->memory));
    CX_TRY(cx_memory_check_text(d->created_by, "created_by", 1, CX_MEMORY_BY_SIZE_MAX, err));
    if (d->confidence == 0)
        d->confidence = 1;
    if (!(d->confidence >= 0 && d->confidence <= 1))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "confidence is not between 0 and 1");
    d->provenance.source = cx_memory_or(d->provenance.source, CX_STR("user_input"));
    CX_TRY(cx_memory_check_provenance(&call->from, &d->provenance, err));
    if (d->forms != NULL) {
        CX_TRY(cx_forms_check(d->forms, err));
        *out_forms = *d->forms;
        return CX_SUCCESS;
    }
    return cx_forms_render(&data, call->arena, out_forms, err);
}

static cx_status make_version(cx_memory_call *call, const cx_head *head, const draft *d, bool blind,
                              cx_version_record *out, cx_err *err)
{
    *out = (cx_version_record){
        .id = head->id,
        .version = head->current_version,
        .type = head->type,
        .data = {.bytes = d->data},
        .created_at = cx_memory_seconds(cx_memory_call_now(call)),
        .created_by = d->created_by,
        .expires = d->expires,
        .expires_at = d->expires_at,
        .confidence = d->confidence,
        .provenance = d->provenance,
        .forms = head->forms,
        .forms_override = d->forms != NULL,
        .blinded = blind,
    };
    if (blind)
        CX_TRY(cx_memory_new_blind(call, &out->blind, err));
    return cx_version_hash(out, call->memory->alloc, &out->hash, err);
}

/* The entry, the version and the head; `head` is the new Head. */
static cx_status put_version(cx_memory_call *call, cx_entry_kind kind, cx_head *head,
                             const draft *d, bool blind, cx_uri *out_uri, cx_err *err)
{
    head->last_updated_at = cx_memory_seconds(cx_memory_call_now(call));
    head->last_updated_null = false;
    head->blinded = blind;
    if (blind)
        CX_TRY(cx_memory_new_blind(call, &head->blind, err));
    cx_version_record version;
    CX_TRY(make_version(call, head, d, blind, &version, err));
    const cx_payload payload = {.kind = kind,
                                .as.write = {.id = head->id,
                                             .version = head->current_version,
                                             .type = head->type,
                                             .version_hash = version.hash}};
    CX_TRY(cx_memory_put_entry(call, &payload, d->created_by, &head->id, NULL, err));
    CX_TRY(cx_memory_put_version(call, &version, true, err));
    CX_TRY(cx_memory_put_head(call, head, true, err));
    *out_uri = (cx_uri){.type = head->type, .id = head->id, .version = head->current_version};
    cx_memory_request *request = call->memory->options.request;
    if (request != NULL) {
        request->has_uri = true;
        request->uri = *out_uri;
    }
    return CX_SUCCESS;
}

/* --- Write ----------------------------------------------------------------------------------- */

static cx_status choose_id(cx_memory_call *call, const cx_id *given, cx_id *out, cx_err *err)
{
    cx_memory *memory = call->memory;
    if (given != NULL)
        *out = *given;
    else if (memory->options.new_id != NULL)
        CX_TRY(memory->options.new_id(memory->options.new_id_arg, out, err));
    else
        CX_TRY(cx_id_new(cx_home_io(memory->home), out, err));
    cx_memory_key key = cx_memory_key_of("m/", out);
    cx_bytes bytes;
    bool found = false;
    CX_TRY(cx_memory_fetch(&call->from, cx_memory_key_bytes(&key), &bytes, &found, err));
    if (!found)
        return CX_SUCCESS;
    char text[CX_ULID_SIZE];
    cx_ulid_format(out, text);
    return cx_fail_at(err, CX_E_EXISTS, "AlreadyExists", CX_NO_OFFSET,
                      "memory %.*s exists already; use update to write a new version", CX_ULID_SIZE,
                      text);
}

/* The initial salience of a pinned memory is a record of the frame: nothing else in it says that it
 * is pinned. */
static cx_status put_pinned(cx_memory_call *call, const cx_head *head, cx_err *err)
{
    cx_weights_record weights;
    CX_TRY(cx_memory_weights_at(&call->from, &weights, err));
    const cx_salience salience =
        cx_salience_on_write(head->importance, true, &weights.weights, cx_memory_call_now(call));
    cx_buf_clear(&call->buf);
    cx_salience_encode(&salience, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    cx_memory_key key = cx_memory_key_of("salience/", &head->id);
    return cx_memory_put_record(call, &key, cx_buf_bytes(&call->buf), false, err);
}

static cx_status write_body(cx_memory_call *call, const cx_memory_write *write, cx_uri *out_uri,
                            cx_err *err)
{
    cx_head head = {
        .type = write->type,
        .current_version = 1,
        .actor_scope = cx_memory_or(write->actor_scope, cx_memory_actor(call->memory)),
        .visibility = write->visibility != 0 ? write->visibility : CX_VISIBILITY_PRIVATE,
        .importance = write->importance,
        .tags = write->tags,
        .tag_count = write->tag_count,
        .frames = write->frames,
        .frame_count = write->frame_count,
    };
    draft d = {write->data,    write->provenance, write->created_by, write->confidence,
               write->expires, write->expires_at, write->forms,      write->scope};
    CX_TRY(cx_memory_check_text(head.actor_scope, "actor_scope", 1, CX_ACTOR_NAME_MAX, err));
    CX_TRY(cx_memory_check_tags(head.tags, head.tag_count, err));
    CX_TRY(cx_memory_check_frames(head.frames, head.frame_count, err));
    CX_TRY(cx_memory_check_levels(head.importance, head.visibility, err));
    if (write->scope != NULL) /* W3 */
        CX_TRY(cx_memory_scope_writes(call, write->scope, &head, err));
    CX_TRY(check_draft(call, head.type, &d, &head.forms, err));
    CX_TRY(choose_id(call, write->id, &head.id, err));
    CX_TRY(put_version(call, CX_ENTRY_WRITE, &head, &d, write->blind, out_uri, err));
    return write->pinned ? put_pinned(call, &head, err) : CX_SUCCESS;
}

cx_status cx_memory_write_new(cx_memory *memory, const cx_memory_write *write, cx_uri *out_uri,
                              cx_err *err)
{
    CX_ASSERT(memory != NULL);
    cx_memory_call call;
    cx_uri uri = {0};
    CX_TRY(cx_memory_begin(memory, &call, err));
    CX_TRY(cx_memory_end(&call, write_body(&call, write, &uri, err), err));
    *out_uri = uri;
    return CX_SUCCESS;
}

/* --- Update ---------------------------------------------------------------------------------- */

static cx_status update_body(cx_memory_call *call, const cx_uri *uri,
                             const cx_memory_update *update, cx_uri *out_uri, cx_err *err)
{
    cx_memory_head current;
    uint8_t type = update->scope == NULL ? uri->type : 0;
    CX_TRY(cx_memory_need_head(&call->from, &uri->id, type, &current, err));
    cx_head *head = &current.head;
    if (update->scope != NULL) { /* W3 */
        CX_TRY(cx_memory_scope_writes(call, update->scope, head, err));
        CX_TRY(cx_memory_need_head(&call->from, &uri->id, uri->type, &current, err));
    }
    if (uri->version != head->current_version)
        return cx_fail_at(err, CX_E_CONFLICT, "VersionConflict", CX_NO_OFFSET,
                          "the update is of version %llu, and version %llu is current",
                          (unsigned long long)uri->version,
                          (unsigned long long)head->current_version);
    if (head->tombstoned)
        return cx_fail_at(err, CX_E_CONFLICT, "Tombstoned", CX_NO_OFFSET,
                          "the memory is tombstoned and cannot be changed");
    if (head->current_version == UINT64_MAX)
        return cx_fail(err, CX_E_LIMIT, "the memory has reached the maximum number of versions");
    draft d = {update->data,    update->provenance, update->created_by, update->confidence,
               update->expires, update->expires_at, update->forms,      update->scope};
    CX_TRY(check_draft(call, head->type, &d, &head->forms, err));
    head->current_version++;
    bool blind = update->blind || head->blinded;
    return put_version(call, CX_ENTRY_UPDATE, head, &d, blind, out_uri, err);
}

cx_status cx_memory_update_at(cx_memory *memory, const cx_uri *uri, const cx_memory_update *update,
                              cx_uri *out_uri, cx_err *err)
{
    cx_memory_call call;
    cx_uri made = {0};
    if (uri->is_edge)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the URI names an edge, expected a memory");
    CX_TRY(cx_memory_begin(memory, &call, err));
    CX_TRY(cx_memory_end(&call, update_body(&call, uri, update, &made, err), err));
    *out_uri = made;
    return CX_SUCCESS;
}
