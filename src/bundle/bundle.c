/*
 * bundle.c - writing the bundle of one run, from its folder to its seal (run.md §17).
 *
 * The order of the end, which crashes must not be able to change: RUN_FINISHED and its link, the
 * log closed, all files read back and hashed, manifest.json, the seal in the ledger, modes, and at
 * last the entry under active/ goes.
 */
#include "bundle/bundle_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/api.h"
#include "os/api.h"
#include "crypto/api.h"
#include "bundle/seal.h"

#define READ_BYTES ((size_t)256 << 10)
#define OPENING_MODE 0700

struct cx_run {
    const cx_run_store *store;
    cx_arena arena;
    cx_run_events_options options; /* texts in the arena */
    cx_str active;                 /* absolute path of active/runs/<run_id> */
    cx_file folder;
    cx_run_events *events; /* NULL once finished */
    uint64_t event_count;  /* then */
    char chain_head[65];
    cx_digest contract_sha256;
    bool finished;
};

/* --- paths ------------------------------------------------------------------------------------ */

/* Terminated, in `out`. */
static cx_status check_path(cx_str path, char out[CX_RUN_BUNDLE_PATH_MAX + 1], cx_err *err)
{
    if (!cx_run_bundle_path_fits(path))
        return cx_fail(err, CX_E_FORMAT, "'%.*s' is no path of a file in a bundle",
                       (int)(path.size > 200 ? 200 : path.size), path.data);
    memcpy(out, path.data, path.size);
    out[path.size] = '\0';
    return CX_SUCCESS;
}

static cx_status check_writable_path(const cx_run *run, cx_str path,
                                     char out[CX_RUN_BUNDLE_PATH_MAX + 1], cx_err *err)
{
    static const char *const own[] = {"manifest.json", "events.jsonl", "events.hashchain.jsonl"};
    CX_TRY(check_path(path, out, err));
    for (size_t i = 0; i < CX_COUNT_OF(own); i++)
        if (cx_str_is(path, own[i]))
            return cx_fail(err, CX_E_DENIED, "%s is written by the bundle itself", own[i]);
    if (run->finished)
        return cx_fail(err, CX_E_CONFLICT, "%s: the run has finished, its files are fixed", out);
    return CX_SUCCESS;
}

/* --- beginning -------------------------------------------------------------------------------- */

static cx_status write_owner(const cx_run *run, cx_str task_id, cx_err *err)
{
    cx_arena arena;
    cx_run_owner self;
    cx_json value;
    cx_buf text;
    char since[28];
    const cx_io *io = run->store->io;
    cx_arena_init(&arena, run->store->alloc, 0);
    cx_buf_init(&text, run->store->alloc);
    cx_run_time_text((int64_t)io->wall_ns(io), since);
    cx_status status = cx_run_owner_self(&arena, &self, err);
    if (!cx_failed(status)) {
        cx_json_list list = cx_json_list_begin(&arena);
        cx_json_list_put(&list, CX_STR("run_id"), cx_json_make_str(run->options.run_id));
        cx_json_list_put(&list, CX_STR("task_id"), cx_json_make_str(task_id));
        cx_json_list_put(&list, CX_STR("pid"), cx_json_make_uint(&arena, self.pid));
        cx_json_list_put(&list, CX_STR("start_time"), cx_json_make_uint(&arena, self.start_time));
        cx_json_list_put(&list, CX_STR("boot_id"), cx_json_make_str(self.boot_id));
        cx_json_list_put(&list, CX_STR("host"), cx_json_make_str(self.host));
        cx_json_list_put(&list, CX_STR("since"), cx_json_make_str(cx_str_z(since)));
        status = cx_json_list_end_object(&list, &value, err);
    }
    if (!cx_failed(status))
        status = cx_run_json_write(&text, &value, err);
    cx_str path = cx_arena_printf(&arena, "%s/owner.json", run->active.data);
    if (!cx_failed(status))
        status = path.data == NULL ? cx_fail_nomem(err)
                                   : cx_run_write_file(io, path.data, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return status;
}

static cx_status make_folder(const cx_io *io, const char *path, const char *what, cx_err *err)
{
    int failed = io->mkdir(io, path);
    if (failed == 0)
        return CX_SUCCESS;
    cx_status status = cx_fail_os(err, -failed, "%s %s", what, path);
    return status.code == CX_E_EXISTS ? status : cx_fail_os(err, -failed, "cannot make %s", path);
}

static cx_status make_trace_id(const cx_io *io, char out[33], cx_err *err)
{
    uint8_t random[16];
    int failed = io->random(io, random, sizeof random);
    if (failed != 0)
        return cx_fail_os(err, -failed, "no random bytes for a trace id");
    random[0] |= 1; /* all zeros would be no id (W3C Trace Context) */
    cx_hex_encode(cx_bytes_from(random, sizeof random), out);
    out[32] = '\0';
    return CX_SUCCESS;
}

/* Everything but folders and files; texts are copied. */
static cx_status prepare_folder(const cx_run_begin_options *options, cx_run **out, cx_err *err)
{
    const cx_run_store *store = options->store;
    char id[CX_RUN_ID_SIZE], trace[33];
    cx_str run_id = options->run_id, trace_id = options->trace_id;
    if (run_id.size == 0) {
        CX_TRY(cx_run_id_make(store->io, id, err));
        run_id = cx_str_z(id);
    }
    if (!cx_run_id_valid(run_id))
        return cx_fail(err, CX_E_USAGE, "'%.*s' is no run id (run.md R6)",
                       (int)(run_id.size > 200 ? 200 : run_id.size), run_id.data);
    if (trace_id.size == 0) {
        CX_TRY(make_trace_id(store->io, trace, err));
        trace_id = cx_str_z(trace);
    }
    cx_run *run = cx_alloc_new(store->alloc, sizeof *run);
    if (run == NULL)
        return cx_fail_nomem(err);
    memset(run, 0, sizeof *run);
    run->store = store;
    run->folder = CX_FILE_NONE;
    cx_arena_init(&run->arena, store->alloc, 0);
    cx_str folder = cx_run_store_path(store, &run->arena, "runs", run_id);
    run->active = cx_run_store_path(store, &run->arena, "active/runs", run_id);
    cx_str lock = run->active.data == NULL
                      ? run->active
                      : cx_arena_printf(&run->arena, "%s/events.lock", run->active.data);
    run->options = (cx_run_events_options){
        .io = store->io,
        .alloc = store->alloc,
        .folder = folder.data,
        .lock_path = lock.data,
        .run_id = cx_arena_copy_str(&run->arena, run_id),
        .trace_id = cx_arena_copy_str(&run->arena, trace_id),
        .ledger = options->ledger,
        .mask = options->mask,
        .mask_arg = options->mask_arg,
    };
    if (folder.data == NULL || lock.data == NULL || run->options.run_id.data == NULL ||
        run->options.trace_id.data == NULL) {
        cx_run_end(run);
        return cx_fail_nomem(err);
    }
    *out = run;
    return CX_SUCCESS;
}

cx_status cx_run_begin(const cx_run_begin_options *options, cx_run **out, cx_err *err)
{
    CX_ASSERT(options != NULL && out != NULL);
    cx_run *run;
    cx_status status;
    const cx_io *io = options->store->io;
    CX_TRY(prepare_folder(options, &run, err));
    /* The owner first: any process may end a run that has no owner. */
    CX_TRY_GOTO(status, make_folder(io, run->active.data, "a run of that id is going on:", err));
    CX_TRY_GOTO(status, write_owner(run, options->task_id, err));
    status = make_folder(io, run->options.folder, "there is a bundle of that id:", err);
    if (cx_failed(status)) {
        (void)!cx_failed(cx_path_remove_tree(run->active.data, NULL));
        goto done;
    }
    CX_TRY_GOTO(status, cx_folder_open(run->options.folder, &run->folder, err));
    status = cx_run_events_create(&run->options, &run->events, err);
done:
    if (cx_failed(status))
        cx_run_end(run);
    else
        *out = run;
    return status;
}

static bool is_temporary(const char *name)
{
    return name[0] == '.' && cx_str_ends(cx_str_z(name), CX_STR(".tmp"));
}

static cx_walk_step remove_temporary(void *arg, const cx_walk_entry *entry)
{
    (void)arg;
    if (entry->facts.kind == CX_FILE_REGULAR && is_temporary(entry->name))
        (void)!cx_failed(cx_folder_remove(entry->parent, entry->name, NULL));
    return CX_WALK_ON;
}

cx_status cx_run_resume(const cx_run_begin_options *options, cx_run **out,
                        cx_run_recovery *out_recovery, cx_err *err)
{
    CX_ASSERT(options != NULL && out != NULL);
    cx_run *run;
    cx_run_owner owner;
    cx_facts facts;
    CX_TRY(prepare_folder(options, &run, err));
    cx_status status;
    CX_TRY_GOTO(status, cx_folder_open(run->options.folder, &run->folder, err));
    if (!cx_failed(cx_folder_facts(run->folder, "manifest.json", &facts, NULL))) {
        status =
            cx_fail(err, CX_E_EXISTS, "%s has a manifest: the run has ended", run->options.folder);
        goto done;
    }
    status = cx_run_active_owner(options->store, run->options.run_id, &run->arena, &owner, err);
    if (!cx_failed(status) && cx_run_owner_state_of(&owner) != CX_RUN_OWNER_DEAD) {
        status =
            cx_fail(err, CX_E_BUSY, "run %s belongs to process %llu on %s, which has not ended",
                    run->options.run_id.data, (unsigned long long)owner.pid, owner.host.data);
        goto done;
    }
    if (status.code != CX_E_NOT_FOUND && status.code != CX_E_FORMAT && status.code != CX_E_SYNTAX &&
        status.code != CX_E_MORE)
        CX_TRY_GOTO(status, status);
    CX_TRY_GOTO(status, cx_path_make_folders(run->active.data, err));
    /* Who comes second finds the lock taken, whatever owner.json says. */
    CX_TRY_GOTO(status, cx_run_events_recover(&run->options, &run->events, out_recovery, err));
    CX_TRY_GOTO(status, write_owner(run, options->task_id, err));
    CX_TRY_GOTO(status, cx_folder_walk(run->folder, NULL, remove_temporary, NULL, err));
    run->options.trace_id = cx_arena_copy_str(&run->arena, cx_run_events_trace_id(run->events));
    if (run->options.trace_id.data == NULL)
        status = cx_fail_nomem(err);
done:
    if (cx_failed(status))
        cx_run_end(run);
    else
        *out = run;
    return status;
}

void cx_run_end(cx_run *run)
{
    if (run == NULL)
        return;
    const cx_alloc *alloc = run->store->alloc;
    cx_run_events_close(run->events);
    cx_folder_close(run->folder);
    cx_arena_done(&run->arena);
    cx_alloc_free(alloc, run, sizeof *run);
}

cx_str cx_run_id(const cx_run *run)
{
    return run->options.run_id;
}

cx_str cx_run_trace_id(const cx_run *run)
{
    return run->options.trace_id;
}

const char *cx_run_folder(const cx_run *run)
{
    return run->options.folder;
}

/* --- while it goes on ------------------------------------------------------------------------- */

cx_status cx_run_event_append(cx_run *run, const cx_run_event *event, cx_str *out_line, cx_err *err)
{
    if (run->events == NULL)
        return cx_fail(err, CX_E_CONFLICT, "run %s has finished; no event follows RUN_FINISHED",
                       run->options.run_id.data);
    return cx_run_events_append(run->events, event, out_line, err);
}

uint64_t cx_run_event_count(const cx_run *run)
{
    return run->events == NULL ? run->event_count : cx_run_events_count(run->events);
}

cx_status cx_run_file_write(cx_run *run, cx_str path, cx_bytes contents, cx_err *err)
{
    char name[CX_RUN_BUNDLE_PATH_MAX + 1];
    CX_TRY(check_writable_path(run, path, name, err));
    return cx_run_write_file_in(run->store->io, run->folder, name, contents, err);
}

cx_status cx_run_file_write_json(cx_run *run, cx_str path, const cx_json *value, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, run->store->alloc);
    cx_status status = cx_run_json_write(&text, value, err);
    if (!cx_failed(status))
        status = cx_run_file_write(run, path, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_run_file_open(cx_run *run, cx_str path, bool append, cx_file *out, cx_err *err)
{
    CX_ASSERT(run != NULL && out != NULL);
    char name[CX_RUN_BUNDLE_PATH_MAX + 1];
    CX_TRY(check_writable_path(run, path, name, err));
    char *slash = strrchr(name, '/');
    if (slash != NULL) {
        *slash = '\0';
        CX_TRY(cx_folder_make_folders(run->folder, name, OPENING_MODE, err));
        *slash = '/';
    }
    unsigned how = append ? CX_IO_APPEND : CX_IO_TRUNCATE;
    return cx_folder_open_in(run->folder, name, CX_IO_WRITE | CX_IO_CREATE | how, out, err);
}

cx_status cx_run_file_read(cx_run *run, cx_str path, size_t limit_bytes, cx_buf *out, cx_err *err)
{
    char name[CX_RUN_BUNDLE_PATH_MAX + 1];
    CX_TRY(check_path(path, name, err));
    return cx_folder_read_file(run->folder, name, limit_bytes, out, err);
}

bool cx_run_file_exists(cx_run *run, cx_str path)
{
    char name[CX_RUN_BUNDLE_PATH_MAX + 1];
    cx_facts facts;
    return !cx_failed(check_path(path, name, NULL)) &&
           !cx_failed(cx_folder_facts(run->folder, name, &facts, NULL)) &&
           facts.kind == CX_FILE_REGULAR;
}

/* Through the io, in pieces: files may be as large as an agent's output. */
static cx_status hash_file(const cx_io *io, cx_file folder, const char *path, cx_buf *scratch,
                           cx_run_ref *out, cx_err *err)
{
    cx_file file;
    cx_sha256 hash;
    uint64_t total = 0;
    size_t got = READ_BYTES;
    cx_buf_clear(scratch);
    uint8_t *room = cx_buf_reserve(scratch, READ_BYTES);
    if (room == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open_in(folder, path, CX_IO_READ, &file, err));
    cx_sha256_init(&hash);
    cx_status status = CX_SUCCESS;
    while (!cx_failed(status) && got == READ_BYTES) {
        status = cx_io_read_some(io, file, path, room, READ_BYTES, &got, err);
        if (!cx_failed(status)) {
            cx_sha256_add(&hash, room, got);
            total += got;
        }
    }
    (void)io->close(io, file);
    out->sha256 = cx_sha256_end(&hash);
    out->size_bytes = total;
    return status;
}

cx_status cx_run_file_ref(cx_run *run, cx_str path, cx_arena *arena, cx_run_ref *out, cx_err *err)
{
    CX_ASSERT(run != NULL && arena != NULL && out != NULL);
    char name[CX_RUN_BUNDLE_PATH_MAX + 1];
    cx_run_ref ref = {.path = cx_arena_copy_str(arena, path)};
    cx_buf scratch;
    CX_TRY(check_path(path, name, err));
    if (ref.path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&scratch, run->store->alloc);
    cx_status status = hash_file(run->store->io, run->folder, name, &scratch, &ref, err);
    cx_buf_done(&scratch);
    if (!cx_failed(status))
        *out = ref;
    return status;
}

/* --- the end ---------------------------------------------------------------------------------- */

typedef struct inventory {
    cx_arena *arena;
    const cx_alloc *alloc;
    CX_VEC(cx_run_ref) files;
    cx_status status;
    cx_err *err;
} inventory;

static cx_walk_step add_file_ref(void *arg, const cx_walk_entry *entry)
{
    inventory *all = arg;
    cx_str path = cx_str_from(entry->path, entry->path_size);
    if (entry->facts.kind == CX_FILE_FOLDER)
        return CX_WALK_ON;
    if (entry->facts.kind != CX_FILE_REGULAR || !cx_run_bundle_path_fits(path))
        all->status =
            cx_fail(all->err, CX_E_FORMAT,
                    "'%.200s' in the bundle is no regular file or has no proper name", entry->path);
    else if (cx_str_is(path, "manifest.json"))
        all->status = cx_fail(all->err, CX_E_EXISTS, "the bundle has a manifest.json already");
    else {
        cx_run_ref *slot = cx_vec_push(&all->files, all->alloc);
        if (slot != NULL)
            *slot = (cx_run_ref){.path = cx_arena_copy_str(all->arena, path)};
        if (slot == NULL || slot->path.data == NULL)
            all->status = cx_fail_nomem(all->err);
    }
    return cx_failed(all->status) ? CX_WALK_STOP : CX_WALK_ON;
}

static int by_path(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_run_ref *)a)->path, ((const cx_run_ref *)b)->path);
}

static cx_status hash_all_files(cx_run *run, cx_arena *arena, const cx_run_ref **out,
                                size_t *out_count, cx_err *err)
{
    static const cx_walk_limits limits = {CX_RUN_BUNDLE_FILES_MAX, CX_RUN_BUNDLE_DEPTH_MAX, false};
    inventory all = {.arena = arena, .alloc = run->store->alloc, .err = err};
    cx_buf scratch;
    cx_buf_init(&scratch, run->store->alloc);
    cx_status status = cx_folder_walk(run->folder, &limits, add_file_ref, &all, err);
    if (!cx_failed(status))
        status = all.status;
    if (all.files.count != 0)
        qsort(all.files.items, all.files.count, sizeof *all.files.items, by_path);
    for (size_t i = 0; i < all.files.count && !cx_failed(status); i++) {
        cx_run_ref *ref = &all.files.items[i];
        status = hash_file(run->store->io, run->folder, ref->path.data, &scratch, ref, err);
        if (cx_str_is(ref->path, "contract.json"))
            run->contract_sha256 = ref->sha256;
    }
    cx_run_ref *refs = CX_ARENA_ARRAY(arena, cx_run_ref, all.files.count + 1);
    if (refs == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status)) {
        if (all.files.count != 0)
            memcpy(refs, all.files.items, all.files.count * sizeof *refs);
        *out = refs;
        *out_count = all.files.count;
    }
    cx_vec_done(&all.files, all.alloc);
    cx_buf_done(&scratch);
    return status;
}

cx_status cx_run_finish(cx_run *run, cx_run_status ended, int exit_code, cx_arena *arena,
                        const cx_run_ref **out, size_t *out_count, cx_err *err)
{
    cx_run_event event = {.level = ended == CX_RUN_SUCCESS ? CX_RUN_INFO : CX_RUN_ERROR,
                          .type = CX_RUN_EVENT_RUN_FINISHED,
                          .attempt = CX_RUN_NO_ATTEMPT};
    cx_json_list payload = cx_json_list_begin(arena);
    CX_ASSERT(ended != CX_RUN_RUNNING);
    cx_json_list_put(&payload, CX_STR("status"),
                     cx_json_make_str(cx_str_z(cx_run_status_name(ended))));
    cx_json_list_put(&payload, CX_STR("exit_code"), cx_json_make_int(arena, exit_code));
    CX_TRY(cx_json_list_end_object(&payload, &event.payload, err));
    CX_TRY(cx_run_event_append(run, &event, NULL, err));
    run->finished = true;
    run->event_count = cx_run_events_count(run->events);
    (void)snprintf(run->chain_head, sizeof run->chain_head, "%s",
                   cx_run_events_head(run->events).data);
    cx_run_events_close(run->events);
    run->events = NULL;
    return hash_all_files(run, arena, out, out_count, err);
}

cx_status cx_run_seal(cx_run *run, const cx_json *manifest, const cx_run_seal_facts *facts,
                      cx_run_sealed *out, cx_err *err)
{
    CX_ASSERT(run != NULL && facts != NULL && out != NULL);
    cx_run_sealed sealed = {0};
    cx_run_ref stored;
    cx_buf text;
    if (!run->finished)
        return cx_fail(err, CX_E_CONFLICT, "run %s cannot be sealed before it has finished",
                       run->options.run_id.data);
    cx_buf_init(&text, run->store->alloc);
    cx_status status;
    CX_TRY_GOTO(status, cx_run_json_write(&text, manifest, err));
    sealed.manifest_sha256 = cx_digest_of(cx_buf_bytes(&text));
    CX_TRY_GOTO(status, cx_run_write_file_in(run->store->io, run->folder, "manifest.json",
                                             cx_buf_bytes(&text), err));
    /* What is sealed is what the disk gives back. */
    CX_TRY_GOTO(status,
                hash_file(run->store->io, run->folder, "manifest.json", &text, &stored, err));
    if (!cx_digest_eq(&stored.sha256, &sealed.manifest_sha256)) {
        status = cx_fail(err, CX_E_IO, "%s/manifest.json reads back otherwise than it was written",
                         run->options.folder);
        goto done;
    }
    cx_run_seal_about about = {.run_id = run->options.run_id,
                               .folder = run->options.folder,
                               .manifest_sha256 = sealed.manifest_sha256,
                               .contract_sha256 = run->contract_sha256,
                               .event_count = run->event_count,
                               .chain_head = cx_str_z(run->chain_head)};
    CX_TRY_GOTO(status, cx_run_seal_append(run->options.ledger, &about, facts, &sealed, err));
    CX_TRY_GOTO(status, cx_run_seal_close(run->folder, run->options.folder, err));
    CX_TRY_GOTO(status, cx_path_remove_tree(run->active.data, err));
    *out = sealed;
done:
    cx_buf_done(&text);
    return status;
}
