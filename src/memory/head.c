/*
 * head.c - UpdateHead and Tombstone (ledger.md §10): changes of a memory that do not make a
 * version.
 */
#include "memory/internal.h"

static cx_status fail_tombstoned(cx_err *err)
{
    return cx_fail_at(err, CX_E_CONFLICT, "Tombstoned", CX_NO_OFFSET,
                      "the memory is tombstoned and cannot be changed");
}

/* --- UpdateHead ------------------------------------------------------------------------------ */

static cx_status check_patch(const cx_head_patch *patch, cx_err *err)
{
    if (!patch->set_tags && !patch->set_frames && !patch->set_importance && !patch->set_visibility)
        return cx_fail_at(err, CX_E_USAGE, "NoOp", CX_NO_OFFSET,
                          "the patch is empty; it can set tags, frames, importance,"
                          " visibility");
    CX_TRY(cx_memory_check_text(patch->by, "by", 0, CX_MEMORY_BY_SIZE_MAX, err));
    if (patch->set_tags)
        CX_TRY(cx_memory_check_tags(patch->tags, patch->tag_count, err));
    if (patch->set_frames)
        CX_TRY(cx_memory_check_frames(patch->frames, patch->frame_count, err));
    return cx_memory_check_levels(
        patch->set_importance ? patch->importance : 0,
        patch->set_visibility ? patch->visibility : (uint8_t)CX_VISIBILITY_PRIVATE, err);
}

static void apply_patch(const cx_head_patch *patch, cx_head *head)
{
    if (patch->set_tags) {
        head->tags = patch->tags;
        head->tag_count = patch->tag_count;
    }
    if (patch->set_frames) {
        head->frames = patch->frames;
        head->frame_count = patch->frame_count;
    }
    if (patch->set_importance)
        head->importance = patch->importance;
    if (patch->set_visibility)
        head->visibility = patch->visibility;
}

static cx_str patch_by(const cx_memory_call *call, const cx_head_patch *patch)
{
    cx_str otherwise = cx_memory_actor(call->memory);
    if (patch->scope != NULL)
        otherwise = cx_memory_or(patch->scope->scope.granted_to, otherwise);
    return cx_memory_or(patch->by, otherwise);
}

static cx_status update_head_body(cx_memory_call *call, const cx_uri *uri,
                                  const cx_head_patch *patch, cx_err *err)
{
    cx_memory_head current;
    CX_TRY(cx_memory_need_head(&call->from, &uri->id, 0, &current, err));
    cx_head *head = &current.head;
    if (patch->scope != NULL)
        CX_TRY(cx_memory_scope_writes(call, patch->scope, head, err));
    CX_TRY(cx_memory_need_uri(&call->from, uri, &current, err));
    if (head->tombstoned)
        return fail_tombstoned(err);
    const cx_digest now = cx_digest_of(current.bytes);
    if (patch->if_head != NULL && !cx_digest_eq(patch->if_head, &now))
        return cx_fail_at(err, CX_E_CONFLICT, "HeadConflict", CX_NO_OFFSET,
                          "the head has changed since the caller read it");
    apply_patch(patch, head);
    head->last_updated_at = cx_memory_seconds(cx_memory_call_now(call));
    head->last_updated_null = false;
    cx_payload payload = {.kind = CX_ENTRY_UPDATE_HEAD,
                          .as.update_head = {.id = head->id, .version = head->current_version}};
    CX_TRY(cx_memory_hash_head(call, head, &payload.as.update_head.head_hash, err));
    CX_TRY(cx_memory_put_entry(call, &payload, patch_by(call, patch), &head->id, NULL, err));
    return cx_memory_put_head(call, head, true, err);
}

cx_status cx_memory_update_head(cx_memory *memory, const cx_uri *uri, const cx_head_patch *patch,
                                cx_err *err)
{
    cx_memory_call call;
    CX_TRY(check_patch(patch, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    return cx_memory_end(&call, update_head_body(&call, uri, patch, err), err);
}

/* --- Tombstone ------------------------------------------------------------------------------- */

cx_status cx_memory_bury(cx_memory_call *call, cx_head *head, cx_str reason, cx_str by,
                         bool erasable, cx_err *err)
{
    if (!head->tombstoned) {
        head->tombstoned = true;
        head->tombstone_reason = reason;
        head->tombstoned_by = by;
        head->tombstoned_at = cx_memory_seconds(cx_memory_call_now(call));
    }
    cx_memory_key key = cx_memory_key_of("tomb/", &head->id);
    return cx_memory_put_record(call, &key, cx_str_bytes(head->tombstone_reason), erasable, err);
}

static cx_status tombstone_body(cx_memory_call *call, const cx_uri *uri, cx_str reason, cx_str by,
                                cx_err *err)
{
    cx_memory_head current;
    CX_TRY(cx_memory_need_uri(&call->from, uri, &current, err));
    cx_head *head = &current.head;
    if (head->tombstoned)
        return CX_SUCCESS;
    const cx_payload payload = {.kind = CX_ENTRY_TOMBSTONE, .as.id = head->id};
    CX_TRY(cx_memory_put_entry(call, &payload, by, &head->id, NULL, err));
    CX_TRY(cx_memory_bury(call, head, reason, by, true, err));
    head->last_updated_at = head->tombstoned_at;
    head->last_updated_null = false;
    return cx_memory_put_head(call, head, true, err);
}

cx_status cx_memory_tombstone(cx_memory *memory, const cx_uri *uri, cx_str reason, cx_str by,
                              cx_err *err)
{
    cx_memory_call call;
    by = cx_memory_or(by, cx_memory_actor(memory));
    CX_TRY(cx_memory_check_text(reason, "the reason", 0, CX_REASON_SIZE_MAX, err));
    CX_TRY(cx_memory_check_text(by, "by", 1, CX_MEMORY_BY_SIZE_MAX, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    return cx_memory_end(&call, tombstone_body(&call, uri, reason, by, err), err);
}
