/*
 * export.c - parts into a new data directory (docs/decisions/0034).
 *
 * Each group becomes a commit with the same frames.  With the part's identity and the same size of
 * the first segment the log has the bytes that the imported one had.  The directory is made under
 * another name, `DIR.exporting`, synced when all is written, and then renamed.
 */
#include <stdio.h>

#include "crypto/api.h"
#include "fleet/internal.h"
#include "ledger/api.h"
#include "os/api.h"

typedef struct exporting {
    cx_fleet *fleet;
    const cx_str *actors;
    size_t actor_count;
    bool *seen;   /* by actor */
    bool has_own; /* the directory's own frame is written */
    cx_log *log;
    cx_io io; /* whose sync does nothing */
    cx_fleet_moved *moved;
    cx_arena arena; /* of a group */
} exporting;

static int no_sync(const cx_io *io, cx_file file, bool data_only)
{
    (void)io, (void)file, (void)data_only;
    return 0;
}

static void no_start(const cx_io *io, cx_file file, uint64_t offset, uint64_t size)
{
    (void)io, (void)file, (void)offset, (void)size;
}

/* --- frames ----------------------------------------------------------------------------------- */

static cx_status is_wanted(exporting *x, const cx_log_item *item, bool *out, cx_err *err)
{
    cx_ledger_frame frame;
    CX_TRY(cx_frame_decode(&item->frame, cx_frame_erased(item), &x->arena, &frame, err));
    *out = frame.actor.size == 0 ? !x->has_own : x->actor_count == 0;
    x->has_own = x->has_own || frame.actor.size == 0;
    for (size_t i = 0; i < x->actor_count && frame.actor.size != 0; i++) {
        if (!cx_str_eq(frame.actor, x->actors[i]))
            continue;
        x->moved->actors += !x->seen[i];
        x->seen[i] = *out = true;
    }
    if (!x->has_own)
        return cx_fail_at(err, CX_E_FORMAT, "NoFirstFrame", CX_NO_OFFSET,
                          "the part does not begin with the frame of a data directory");
    return CX_SUCCESS;
}

/* What an erased frame is written with, before it is erased. */
static cx_status add_zeros(exporting *x, const cx_log_item *item, cx_log_frame *out, cx_err *err)
{
    uint8_t *zeros = cx_arena_push(&x->arena, item->erasable_size, 1);
    if (zeros == NULL)
        return cx_fail_nomem(err);
    memset(zeros, 0, item->erasable_size);
    out->erasable = cx_bytes_from(zeros, item->erasable_size);
    return CX_SUCCESS;
}

typedef struct chosen {
    cx_log_frame *frames;
    bool *erased;
    cx_log_place *places;
    size_t count;
} chosen;

static cx_status choose_frames(exporting *x, const cx_fleet_group *group, chosen *out, cx_err *err)
{
    *out = (chosen){.frames = CX_ARENA_ARRAY(&x->arena, cx_log_frame, group->count),
                    .erased = CX_ARENA_ARRAY(&x->arena, bool, group->count),
                    .places = CX_ARENA_ARRAY(&x->arena, cx_log_place, group->count)};
    if (out->frames == NULL || out->erased == NULL || out->places == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < group->count; i++) {
        bool wanted;
        CX_TRY(is_wanted(x, &group->items[i], &wanted, err));
        if (!wanted)
            continue;
        cx_log_frame *frame = &out->frames[out->count];
        *frame = group->items[i].frame;
        out->erased[out->count] = cx_frame_erased(&group->items[i]);
        if (out->erased[out->count])
            CX_TRY(add_zeros(x, &group->items[i], frame, err));
        x->moved->bytes += frame->guarded.size + frame->erasable.size;
        out->count++;
    }
    return CX_SUCCESS;
}

static cx_status write_chosen(exporting *x, chosen *c, cx_err *err)
{
    uint64_t commit;
    size_t erased = 0;
    CX_TRY(cx_log_submit(x->log, c->frames, c->count, c->places, &commit, err));
    CX_TRY(cx_log_wait(x->log, commit, err));
    for (size_t i = 0; i < c->count; i++)
        if (c->erased[i])
            c->places[erased++] = c->places[i];
    return erased == 0 ? CX_SUCCESS : cx_log_erase_many(x->log, c->places, erased, err);
}

static cx_status export_group(void *arg, const cx_fleet_group *group, cx_err *err)
{
    exporting *x = arg;
    chosen c;
    cx_arena_mark mark = cx_arena_mark_now(&x->arena);
    CX_TRY(choose_frames(x, group, &c, err));
    if (c.count != 0) {
        CX_TRY(write_chosen(x, &c, err));
        x->moved->groups++;
        x->moved->frames += c.count;
    }
    cx_arena_reset(&x->arena, mark);
    return CX_SUCCESS;
}

/* --- the directory ---------------------------------------------------------------------------- */

static bool sync_name(void *arg, const char *name)
{
    cx_buf *names = arg;
    cx_buf_add(names, name, strlen(name) + 1);
    return true;
}

static cx_status sync_file(const cx_io *io, const char *path, cx_err *err)
{
    cx_file file;
    int failed = io->open(io, path, CX_IO_READ | CX_IO_WRITE, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path);
    failed = io->sync(io, file, false);
    (void)io->close(io, file);
    return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "cannot sync %s", path);
}

static cx_status sync_files(const cx_io *io, const char *folder, cx_err *err)
{
    cx_buf names;
    char path[2 * CX_FLEET_URL_MAX];
    cx_buf_init(&names, cx_alloc_default());
    int failed = io->list(io, folder, sync_name, &names);
    cx_status status = failed == 0 ? cx_buf_check(&names, err)
                                   : cx_fail_os(err, -failed, "cannot read %s", folder);
    for (size_t at = 0; !cx_failed(status) && at < names.size;
         at += strlen((const char *)names.data + at) + 1) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, (const char *)names.data + at);
        status = sync_file(io, path, err);
    }
    cx_buf_done(&names);
    return cx_failed(status) ? status : cx_io_sync_folder(io, folder, err);
}

static cx_status make_folder(const cx_io *io, const char *path, cx_err *err)
{
    int failed = io->mkdir(io, path);
    return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "making the folder %s", path);
}

/* The identity of a log: the part's own, or for chosen actors one that follows from them. */
static void log_identity(const exporting *x, const uint8_t part_id[16], uint8_t out[16])
{
    static const char domain[] = "cortex.fleet.export.v1";
    memcpy(out, part_id, 16);
    if (x->actor_count == 0)
        return;
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, part_id, 16);
    for (size_t i = 0; i < x->actor_count; i++) {
        cx_digest actor = cx_digest_of(cx_str_bytes(x->actors[i]));
        cx_sha256_add(&hash, actor.bytes, sizeof actor.bytes);
    }
    cx_digest digest = cx_sha256_end(&hash);
    memcpy(out, digest.bytes, 16);
}

static cx_status export_parts(exporting *x, unsigned part, cx_err *err)
{
    bool done[CX_FLEET_PARTS] = {false};
    if (x->actor_count == 0) {
        x->moved->parts = 1;
        return cx_fleet_scan(x->fleet, part, export_group, x, err);
    }
    for (size_t i = 0; i < x->actor_count; i++) {
        unsigned number = cx_fleet_part_of(x->actors[i]);
        if (done[number])
            continue;
        done[number] = true;
        x->moved->parts++;
        CX_TRY(cx_fleet_scan(x->fleet, number, export_group, x, err));
    }
    for (size_t i = 0; i < x->actor_count; i++)
        if (!x->seen[i])
            return cx_fail_at(err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
                              "the fleet has no actor %.*s", (int)x->actors[i].size,
                              x->actors[i].data);
    return CX_SUCCESS;
}

static cx_status write_log(exporting *x, unsigned part, const char *log_path,
                           uint64_t segment_bytes, cx_err *err)
{
    cx_fleet_now now;
    uint8_t home_id[16];
    cx_log_opened opened;
    unsigned first = x->actor_count == 0 ? part : cx_fleet_part_of(x->actors[0]);
    CX_TRY(cx_fleet_look(x->fleet, first, &now, err));
    if (now.next == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "EmptyPart", CX_NO_OFFSET,
                          "part %u of the fleet is empty", first);
    log_identity(x, now.home_id, home_id);
    const cx_log_options options = {
        .io = &x->io, .segment_bytes = segment_bytes, .home_id = home_id};
    const cx_log_options later = {.io = &x->io}; /* as every writer of a data directory opens it */
    CX_TRY(cx_log_create(log_path, &options, err));
    CX_TRY(cx_log_open(log_path, &later, &x->log, &opened, err));
    cx_status status = export_parts(x, part, err);
    cx_log_close(x->log);
    return status;
}

static cx_status write_directory(exporting *x, unsigned part, const char *home_path,
                                 uint64_t segment_bytes, cx_err *err)
{
    const cx_io *io = x->fleet->io;
    char path[CX_FLEET_URL_MAX + 8];
    if (strlen(home_path) > CX_FLEET_URL_MAX)
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", home_path);
    (void)snprintf(path, sizeof path, "%s/keys", home_path);
    CX_TRY(make_folder(io, home_path, err));
    CX_TRY(make_folder(io, path, err));
    (void)snprintf(path, sizeof path, "%s/log", home_path);
    CX_TRY(write_log(x, part, path, segment_bytes, err));
    CX_TRY(sync_files(io, path, err));
    CX_TRY(cx_home_format_write(io, home_path, cx_alloc_default(), err));
    return cx_io_sync_folder(io, home_path, err);
}

/* Under the temporary name, then under its own. */
static cx_status write_and_rename(exporting *x, unsigned part, const char *home_path,
                                  uint64_t segment_bytes, cx_err *err)
{
    const cx_io *io = x->fleet->io;
    char path[CX_FLEET_URL_MAX];
    cx_facts facts;
    if (snprintf(path, sizeof path, "%s.exporting", home_path) >= (int)sizeof path)
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", home_path);
    if (!cx_failed(cx_path_facts(home_path, false, &facts, NULL)))
        return cx_fail(err, CX_E_EXISTS, "%s exists; expected a folder that does not exist",
                       home_path);
    CX_TRY(cx_fleet_need_connection(x->fleet, err));
    if (!cx_failed(cx_path_facts(path, false, &facts, NULL)))
        CX_TRY(cx_path_remove_tree(path, err));
    cx_status status = write_directory(x, part, path, segment_bytes, err);
    int failed = cx_failed(status) ? 0 : io->rename(io, path, home_path);
    if (failed != 0)
        status = cx_fail_os(err, -failed, "renaming %s", path);
    if (cx_failed(status)) {
        cx_status ignored = cx_path_remove_tree(path, NULL);
        (void)ignored;
    }
    return status;
}

cx_status cx_fleet_export(cx_fleet *fleet, unsigned part, const cx_str *actors, size_t actor_count,
                          const char *home_path, uint64_t segment_bytes, cx_fleet_moved *out,
                          cx_err *err)
{
    exporting x = {.fleet = fleet,
                   .actors = actors,
                   .actor_count = actor_count,
                   .io = *fleet->io,
                   .moved = out};
    CX_ASSERT(part < CX_FLEET_PARTS);
    *out = (cx_fleet_moved){0};
    x.io.sync = no_sync;
    x.io.start_sync = no_start;
    cx_arena_init(&x.arena, cx_alloc_default(), 0);
    x.seen = CX_ARENA_ARRAY(&x.arena, bool, actor_count + 1);
    cx_status status = CX_SUCCESS;
    if (x.seen == NULL)
        status = cx_fail_nomem(err);
    else
        memset(x.seen, 0, actor_count + 1);
    if (!cx_failed(status))
        status = write_and_rename(&x, part, home_path, segment_bytes, err);
    cx_arena_done(&x.arena);
    return status;
}
