/*
 * seal.c - the seal of a bundle, and its files made read-only.
 */
#include "bundle/seal.h"

#include "base/api.h"
#include "os/api.h"
#include "crypto/api.h"

/* --- the seal --------------------------------------------------------------------------------- */

static void put_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_str(text));
}

static void put_digest(cx_json_list *list, const char *name, const cx_digest *digest)
{
    char hex[2 * sizeof digest->bytes];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    put_text(list, name, cx_arena_copy_str(list->arena, cx_str_from(hex, sizeof hex)));
}

/* §17: JSON, keys sorted, compact. */
cx_status cx_run_seal_append(const cx_run_ledger *ledger, const cx_run_seal_about *about,
                             const cx_run_seal_facts *facts, cx_run_sealed *out, cx_err *err)
{
    CX_ASSERT(facts != NULL);
    cx_arena arena;
    cx_buf text;
    cx_json value;
    if (ledger == NULL)
        return CX_SUCCESS;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_json_list list = cx_json_list_begin(&arena);
    put_text(&list, "type", CX_STR("cortex.run.seal.v1"));
    put_text(&list, "run_id", about->run_id);
    put_text(&list, "task_id", facts->task_id);
    put_text(&list, "status", cx_str_z(cx_run_status_name(facts->status)));
    put_digest(&list, "manifest_sha256", &about->manifest_sha256);
    cx_json_list_put(&list, CX_STR("events_count"), cx_json_make_uint(&arena, about->event_count));
    put_text(&list, "chain_head", about->chain_head);
    put_digest(&list, "contract_sha256", &about->contract_sha256);
    put_text(&list, "baseline_commit", facts->baseline_commit);
    put_text(&list, "final_commit", facts->final_commit);
    cx_status status = cx_json_list_end_object(&list, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = ledger->append(ledger->ctx, "run.seal", about->run_id, cx_buf_bytes(&text),
                                &out->index, err);
    out->in_ledger = !cx_failed(status);
    if (!cx_failed(status) && ledger->sealed != NULL)
        ledger->sealed(ledger->ctx, about->run_id, about->folder);
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return status;
}

/* --- modes ------------------------------------------------------------------------------------ */

/* Folders after what they hold, so that they are closed last. */
typedef struct modes {
    cx_arena *arena;
    CX_VEC(cx_str) folders;
    cx_status status;
    cx_err *err;
} modes;

static cx_walk_step close_file(void *arg, const cx_walk_entry *entry)
{
    modes *m = arg;
    if (entry->facts.kind == CX_FILE_FOLDER) {
        cx_str *slot = cx_vec_push(&m->folders, m->arena->alloc);
        if (slot != NULL)
            *slot = cx_arena_copy_str(m->arena, cx_str_from(entry->path, entry->path_size));
        if (slot == NULL || slot->data == NULL)
            m->status = cx_fail_nomem(m->err);
    } else {
        m->status = cx_folder_set_mode(entry->parent, entry->name, 0444, m->err);
    }
    return cx_failed(m->status) ? CX_WALK_STOP : CX_WALK_ON;
}

cx_status cx_run_seal_close(cx_file folder, const char *path, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    modes m = {.arena = &arena, .err = err};
    cx_status status = cx_folder_walk(folder, NULL, close_file, &m, err);
    if (!cx_failed(status))
        status = m.status;
    for (size_t i = m.folders.count; i-- > 0 && !cx_failed(status);)
        status = cx_folder_set_mode(folder, m.folders.items[i].data, 0555, err);
    if (!cx_failed(status))
        status = cx_path_set_mode(path, 0555, err);
    cx_vec_done(&m.folders, arena.alloc);
    cx_arena_done(&arena);
    return status;
}
