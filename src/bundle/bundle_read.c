/*
 * bundle_read.c - a bundle as it is found, in a folder or an archive; nothing is written.
 */
#include <stdlib.h>

#include "base/api.h"
#include "os/api.h"
#include "crypto/api.h"
#include "bundle/bundle_internal.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define ARCHIVE_BYTES_MAX ((size_t)512 << 20)

cx_run_bundle *cx_run_bundle_make(const cx_io *io, const cx_alloc *alloc)
{
    if (alloc == NULL)
        alloc = cx_alloc_default();
    cx_run_bundle *bundle = cx_alloc_new(alloc, sizeof *bundle);
    if (bundle == NULL)
        return NULL;
    memset(bundle, 0, sizeof *bundle);
    bundle->io = io != NULL ? io : cx_io_system();
    bundle->alloc = alloc;
    bundle->folder = CX_FILE_NONE;
    cx_arena_init(&bundle->arena, alloc, 0);
    cx_buf_init(&bundle->unpacked, alloc);
    cx_buf_init(&bundle->scratch, alloc);
    return bundle;
}

void cx_run_bundle_close(cx_run_bundle *bundle)
{
    if (bundle == NULL)
        return;
    const cx_alloc *alloc = bundle->alloc;
    cx_folder_close(bundle->folder);
    cx_vec_done(&bundle->entries, alloc);
    cx_buf_done(&bundle->unpacked);
    cx_buf_done(&bundle->scratch);
    cx_arena_done(&bundle->arena);
    cx_alloc_free(alloc, bundle, sizeof *bundle);
}

/* --- listing ---------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_run_entry *)a)->path, ((const cx_run_entry *)b)->path);
}

cx_status cx_run_bundle_sort(cx_run_bundle *bundle, cx_err *err)
{
    CX_ASSERT(bundle != NULL);
    size_t count = bundle->entries.count;
    if (count != 0)
        qsort(bundle->entries.items, count, sizeof *bundle->entries.items, by_path);
    bundle->contents = CX_ARENA_ARRAY(&bundle->arena, cx_run_contents, count + 1);
    if (bundle->contents == NULL)
        return cx_fail_nomem(err);
    memset(bundle->contents, 0, (count + 1) * sizeof *bundle->contents);
    return CX_SUCCESS;
}

typedef struct walking {
    cx_run_bundle *bundle;
    bool failed;
} walking;

static cx_walk_step add_entry(void *arg, const cx_walk_entry *found)
{
    walking *w = arg;
    if (found->facts.kind == CX_FILE_FOLDER)
        return CX_WALK_ON;
    cx_run_entry *slot = cx_vec_push(&w->bundle->entries, w->bundle->alloc);
    if (slot != NULL)
        *slot = (cx_run_entry){
            .path =
                cx_arena_copy_str(&w->bundle->arena, cx_str_from(found->path, found->path_size)),
            .regular = found->facts.kind == CX_FILE_REGULAR,
            .size_bytes = found->facts.size_bytes,
        };
    w->failed = slot == NULL || slot->path.data == NULL;
    return w->failed ? CX_WALK_STOP : CX_WALK_ON;
}

static cx_status list_folder(cx_run_bundle *bundle, const char *path, cx_err *err)
{
    /* A run that goes on replaces its manifest by a rename. */
    static const cx_walk_limits limits = {CX_RUN_BUNDLE_FILES_MAX, CX_RUN_BUNDLE_DEPTH_MAX, true};
    walking w = {.bundle = bundle};
    cx_buf_clear(&bundle->scratch);
    CX_TRY(cx_path_real(path, &bundle->scratch, err));
    cx_str real = cx_buf_str(&bundle->scratch);
    size_t start = real.size;
    while (start != 0 && real.data[start - 1] != '/')
        start--;
    bundle->name =
        cx_arena_copy_str(&bundle->arena, cx_str_from(real.data + start, real.size - start));
    if (bundle->name.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_walk(bundle->folder, &limits, add_entry, &w, err));
    return w.failed ? cx_fail_nomem(err) : cx_run_bundle_sort(bundle, err);
}

static cx_status read_archive(cx_run_bundle *bundle, cx_bytes archive, cx_err *err)
{
    CX_TRY(cx_run_archive_unpack(archive, &bundle->unpacked, err));
    return cx_run_archive_list(bundle, err);
}

cx_status cx_run_bundle_open_archive(const cx_alloc *alloc, cx_bytes archive, cx_run_bundle **out,
                                     cx_err *err)
{
    CX_ASSERT(out != NULL);
    cx_run_bundle *bundle = cx_run_bundle_make(NULL, alloc);
    if (bundle == NULL)
        return cx_fail_nomem(err);
    cx_status status = read_archive(bundle, archive, err);
    if (cx_failed(status))
        cx_run_bundle_close(bundle);
    else
        *out = bundle;
    return status;
}

cx_status cx_run_bundle_open(const cx_io *io, const cx_alloc *alloc, const char *path,
                             cx_run_bundle **out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    cx_facts facts;
    CX_TRY(cx_path_facts(path, true, &facts, err));
    if (facts.kind != CX_FILE_FOLDER && facts.kind != CX_FILE_REGULAR)
        return cx_fail(err, CX_E_FORMAT, "%s is neither a bundle's folder nor an archive", path);
    cx_run_bundle *bundle = cx_run_bundle_make(io, alloc);
    if (bundle == NULL)
        return cx_fail_nomem(err);
    cx_status status;
    if (facts.kind == CX_FILE_FOLDER) {
        CX_TRY_GOTO(status, cx_folder_open(path, &bundle->folder, err));
        CX_TRY_GOTO(status, list_folder(bundle, path, err));
    } else {
        CX_TRY_GOTO(status,
                    cx_io_read_file(bundle->io, path, ARCHIVE_BYTES_MAX, &bundle->scratch, err));
        CX_TRY_GOTO(status, read_archive(bundle, cx_buf_bytes(&bundle->scratch), err));
    }
    *out = bundle;
done:
    if (cx_failed(status))
        cx_run_bundle_close(bundle);
    return status;
}

cx_str cx_run_bundle_name(const cx_run_bundle *bundle)
{
    return bundle->name;
}

const cx_run_entry *cx_run_bundle_entries(const cx_run_bundle *bundle, size_t *out_count)
{
    *out_count = bundle->entries.count;
    return bundle->entries.items;
}

const cx_run_entry *cx_run_bundle_find(const cx_run_bundle *bundle, cx_str path)
{
    CX_ASSERT(bundle != NULL);
    size_t low = 0, high = bundle->entries.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = cx_str_cmp(bundle->entries.items[middle].path, path);
        if (order == 0)
            return &bundle->entries.items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* --- contents --------------------------------------------------------------------------------- */

static cx_status find_regular(const cx_run_bundle *bundle, cx_str path, const cx_run_entry **out,
                              cx_run_contents **out_contents, cx_err *err)
{
    const cx_run_entry *entry = cx_run_bundle_find(bundle, path);
    if (entry == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "the bundle has no file %.*s", (int)path.size,
                       path.data);
    if (!entry->regular)
        return cx_fail(err, CX_E_FORMAT, "%.*s is no regular file", (int)path.size, path.data);
    *out = entry;
    *out_contents = &bundle->contents[entry - bundle->entries.items];
    return CX_SUCCESS;
}

/* Whether a file may grow while it is looked at: the log of a run that is going on.  What was
 * listed of it is then a prefix, and as good as if one had looked a moment earlier. */
static bool is_growing(const cx_run_bundle *bundle, const cx_run_entry *entry)
{
    return (cx_str_is(entry->path, "events.jsonl") ||
            cx_str_is(entry->path, "events.hashchain.jsonl")) &&
           cx_run_bundle_find(bundle, CX_STR("manifest.json")) == NULL;
}

/* Reads `size` bytes and one more, so that a file that grew is noticed. */
static cx_status load_file(cx_run_bundle *bundle, const cx_run_entry *entry,
                           cx_run_contents *contents, cx_err *err)
{
    cx_file file;
    size_t got = 0, size = (size_t)entry->size_bytes;
    uint8_t *room = cx_arena_push(&bundle->arena, size + 1, 1);
    if (room == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open_in(bundle->folder, entry->path.data, CX_IO_READ, &file, err));
    cx_status status =
        cx_io_read_some(bundle->io, file, entry->path.data, room, size + 1, &got, err);
    (void)bundle->io->close(bundle->io, file);
    if (!cx_failed(status) && got > size && is_growing(bundle, entry))
        got = size;
    if (!cx_failed(status) && got != size)
        status =
            cx_fail(err, CX_E_CONFLICT, "%s changed its size while it was read", entry->path.data);
    if (!cx_failed(status)) {
        contents->bytes = cx_bytes_from(room, size);
        contents->loaded = true;
    }
    return status;
}

cx_status cx_run_bundle_read(cx_run_bundle *bundle, cx_str path, size_t limit_bytes, cx_bytes *out,
                             cx_err *err)
{
    CX_ASSERT(bundle != NULL && out != NULL);
    const cx_run_entry *entry = NULL;
    cx_run_contents *contents = NULL;
    CX_TRY(find_regular(bundle, path, &entry, &contents, err));
    if (entry->size_bytes > limit_bytes)
        return cx_fail(err, CX_E_LIMIT, "%s has %llu bytes, expected at most %zu", entry->path.data,
                       (unsigned long long)entry->size_bytes, limit_bytes);
    if (!contents->loaded)
        CX_TRY(load_file(bundle, entry, contents, err));
    *out = contents->bytes;
    return CX_SUCCESS;
}

/* Of a file that is not loaded; it has them. */
static cx_status load_bytes(const cx_run_bundle *bundle, const cx_run_entry *entry, uint64_t offset,
                            void *data, size_t size, cx_err *err)
{
    cx_file file;
    size_t got = 0;
    CX_TRY(cx_folder_open_in(bundle->folder, entry->path.data, CX_IO_READ, &file, err));
    cx_status status =
        cx_io_read_at(bundle->io, file, entry->path.data, data, size, offset, &got, err);
    (void)bundle->io->close(bundle->io, file);
    if (!cx_failed(status) && got != size)
        status =
            cx_fail(err, CX_E_CONFLICT, "%s changed its size while it was read", entry->path.data);
    return status;
}

cx_status cx_run_bundle_read_at(cx_run_bundle *bundle, cx_str path, uint64_t offset, void *data,
                                size_t size, size_t *out_got, cx_err *err)
{
    CX_ASSERT(bundle != NULL && data != NULL && out_got != NULL);
    const cx_run_entry *entry = NULL;
    cx_run_contents *contents = NULL;
    CX_TRY(find_regular(bundle, path, &entry, &contents, err));
    const uint64_t left = offset < entry->size_bytes ? entry->size_bytes - offset : 0;
    *out_got = left < size ? (size_t)left : size;
    if (*out_got == 0)
        return CX_SUCCESS;
    if (!contents->loaded)
        return load_bytes(bundle, entry, offset, data, *out_got, err);
    memcpy(data, contents->bytes.data + (size_t)offset, *out_got);
    return CX_SUCCESS;
}

cx_status cx_run_bundle_read_end(cx_run_bundle *bundle, cx_str path, size_t most, cx_arena *arena,
                                 cx_bytes *out, uint64_t *out_size, cx_err *err)
{
    CX_ASSERT(bundle != NULL && arena != NULL && out != NULL && out_size != NULL);
    const cx_run_entry *entry = NULL;
    cx_run_contents *contents = NULL;
    size_t got;
    CX_TRY(find_regular(bundle, path, &entry, &contents, err));
    size_t size = entry->size_bytes < most ? (size_t)entry->size_bytes : most;
    uint8_t *room = cx_arena_push(arena, size + 1, 1);
    if (room == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_bundle_read_at(bundle, path, entry->size_bytes - size, room, size, &got, err));
    *out = cx_bytes_from(room, size);
    *out_size = entry->size_bytes;
    return CX_SUCCESS;
}

cx_status cx_run_bundle_json(cx_run_bundle *bundle, cx_str path, cx_json *out, cx_err *err)
{
    cx_bytes bytes;
    CX_TRY(cx_run_bundle_read(bundle, path, CX_RUN_JSON_BYTES_MAX, &bytes, err));
    return cx_run_json_read(cx_bytes_str(bytes), 0, &bundle->arena, out, err);
}

static cx_status hash_streaming(cx_run_bundle *bundle, const cx_run_entry *entry, cx_digest *out,
                                cx_err *err)
{
    cx_file file;
    cx_sha256 hash;
    size_t got = PIECE_BYTES;
    cx_buf_clear(&bundle->scratch);
    uint8_t *room = cx_buf_reserve(&bundle->scratch, PIECE_BYTES);
    if (room == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open_in(bundle->folder, entry->path.data, CX_IO_READ, &file, err));
    cx_sha256_init(&hash);
    cx_status status = CX_SUCCESS;
    while (!cx_failed(status) && got == PIECE_BYTES) {
        status = cx_io_read_some(bundle->io, file, entry->path.data, room, PIECE_BYTES, &got, err);
        if (!cx_failed(status))
            cx_sha256_add(&hash, room, got);
    }
    (void)bundle->io->close(bundle->io, file);
    if (!cx_failed(status))
        *out = cx_sha256_end(&hash);
    return status;
}

cx_status cx_run_bundle_digest(cx_run_bundle *bundle, cx_str path, cx_digest *out, cx_err *err)
{
    CX_ASSERT(bundle != NULL && out != NULL);
    const cx_run_entry *entry = NULL;
    cx_run_contents *contents = NULL;
    CX_TRY(find_regular(bundle, path, &entry, &contents, err));
    if (!contents->hashed) {
        if (contents->loaded)
            contents->digest = cx_digest_of(contents->bytes);
        else
            CX_TRY(hash_streaming(bundle, entry, &contents->digest, err));
        contents->hashed = true;
    }
    *out = contents->digest;
    return CX_SUCCESS;
}
