/*
 * files_chunks.c - chunks of the owner's files in memory (files_internal.h, M1 to M5).
 */
#include <errno.h>

#include "fleet/files_internal.h"
#include "fleet/internal.h"

/* --- finding ---------------------------------------------------------------------------------- */

bool cx_files_cache_init(cx_files_cache *cache, uint64_t bytes)
{
    size_t limit = (size_t)(bytes / CX_FLEET_CHUNK), slots = 16;
    while (slots < limit && slots < ((size_t)1 << 24))
        slots *= 2;
    *cache = (cx_files_cache){.slot_count = slots, .limit = limit};
    cache->slots = cx_alloc_zeroed(cx_files_alloc(), slots, sizeof(cx_files_chunk *));
    return cache->slots != NULL;
}

void cx_files_cache_done(cx_files_cache *cache)
{
    cx_alloc_free(cx_files_alloc(), cache->slots, cache->slot_count * sizeof(cx_files_chunk *));
    cache->slots = NULL;
}

static cx_files_chunk **slot_of(const cx_fleet_files *files, const cx_files_file *file,
                                uint64_t index)
{
    uint64_t hash = (file->number * UINT64_C(0x9e3779b97f4a7c15)) ^ index;
    hash = (hash ^ (hash >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return &files->cache.slots[(hash ^ (hash >> 32)) & (files->cache.slot_count - 1)];
}

static void unlink_use(cx_files_cache *cache, cx_files_chunk *chunk)
{
    *(chunk->newer != NULL ? &chunk->newer->older : &cache->newest) = chunk->older;
    *(chunk->older != NULL ? &chunk->older->newer : &cache->oldest) = chunk->newer;
}

static void link_newest(cx_files_cache *cache, cx_files_chunk *chunk)
{
    chunk->newer = NULL;
    chunk->older = cache->newest;
    *(cache->newest != NULL ? &cache->newest->newer : &cache->oldest) = chunk;
    cache->newest = chunk;
}

cx_files_chunk *cx_files_chunk_find(cx_fleet_files *files, const cx_files_file *file,
                                    uint64_t index)
{
    cx_files_chunk *found = *slot_of(files, file, index);
    while (found != NULL && (found->file != file || found->index != index))
        found = found->same;
    if (found != NULL && files->cache.newest != found) {
        unlink_use(&files->cache, found);
        link_newest(&files->cache, found);
    }
    return found;
}

/* --- making and dropping ---------------------------------------------------------------------- */

static void list(cx_files_chunk *chunk)
{
    chunk->listed_dirty = cx_files_is_dirty(&chunk->dirt);
    cx_files_chunk **head = &chunk->file->chunks[chunk->listed_dirty];
    chunk->before = NULL;
    chunk->next = *head;
    if (chunk->next != NULL)
        chunk->next->before = chunk;
    *head = chunk;
}

static void unlist(cx_files_chunk *chunk)
{
    cx_files_chunk **head = &chunk->file->chunks[chunk->listed_dirty];
    *(chunk->before != NULL ? &chunk->before->next : head) = chunk->next;
    if (chunk->next != NULL)
        chunk->next->before = chunk->before;
}

void cx_files_chunk_relist(cx_files_chunk *chunk)
{
    if (chunk->listed_dirty == cx_files_is_dirty(&chunk->dirt))
        return;
    unlist(chunk);
    list(chunk);
}

void cx_files_chunk_drop(cx_fleet_files *files, cx_files_chunk *chunk)
{
    CX_ASSERT(!chunk->loading && !chunk->syncing);
    cx_files_chunk **at = slot_of(files, chunk->file, chunk->index);
    while (*at != chunk)
        at = &(*at)->same;
    *at = chunk->same;
    unlink_use(&files->cache, chunk);
    unlist(chunk);
    files->cache.count--;
    cx_alloc_free(cx_files_alloc(), chunk, sizeof *chunk);
}

/* M2 */
static bool must_stay(const cx_files_chunk *chunk)
{
    return chunk->loading || chunk->syncing || cx_files_is_dirty(&chunk->dirt);
}

/* So many are looked at: there may be more than fit that must stay. */
enum { LOOKED_AT = 64 };

static void make_room(cx_fleet_files *files)
{
    cx_files_cache *cache = &files->cache;
    for (unsigned i = 0; i < LOOKED_AT && cache->count >= cache->limit; i++) {
        cx_files_chunk *oldest = cache->oldest;
        if (oldest == NULL)
            break;
        if (!must_stay(oldest)) {
            cx_files_chunk_drop(files, oldest);
            continue;
        }
        unlink_use(cache, oldest); /* so that another is met next */
        link_newest(cache, oldest);
    }
}

cx_files_chunk *cx_files_chunk_make(cx_fleet_files *files, cx_files_file *file, uint64_t index)
{
    cx_files_chunk *chunk = cx_files_chunk_find(files, file, index);
    if (chunk != NULL)
        return chunk;
    make_room(files);
    chunk = cx_alloc_zeroed(cx_files_alloc(), 1, sizeof *chunk);
    if (chunk == NULL)
        return NULL;
    chunk->file = file;
    chunk->index = index;
    /* M3 */
    for (unsigned page = 0; page < CX_FILES_PAGES; page++)
        if (index * CX_FLEET_CHUNK + page * CX_FILES_PAGE >= file->end)
            chunk->valid |= 1u << page;
    cx_files_chunk **slot = slot_of(files, file, index);
    chunk->same = *slot;
    *slot = chunk;
    list(chunk);
    link_newest(&files->cache, chunk);
    files->cache.count++;
    return chunk;
}

void cx_files_chunks_drop(cx_fleet_files *files, cx_files_file *file, uint64_t from)
{
    cx_files_chunk *next;
    for (unsigned dirty = 0; dirty < 2; dirty++)
        for (cx_files_chunk *at = file->chunks[dirty]; at != NULL; at = next) {
            next = at->next;
            if (at->index >= from)
                cx_files_chunk_drop(files, at);
        }
}

void cx_files_chunks_forget(cx_fleet_files *files, const cx_files_file *file)
{
    cx_files_chunk *next;
    for (cx_files_chunk *at = file->chunks[0]; at != NULL; at = next) {
        next = at->next;
        if (!must_stay(at))
            cx_files_chunk_drop(files, at);
    }
}

/* --- what is to be written -------------------------------------------------------------------- */

bool cx_files_is_dirty(const cx_files_dirt *dirt)
{
    return dirt->pages != 0 || dirt->count != 0;
}

/* Two ranges become one; what is between them is known, and is written, too. */
static void join_closest(cx_files_dirt *dirt)
{
    uint32_t best = 0;
    for (uint32_t i = 0; i + 1 < dirt->count; i++)
        if (dirt->ranges[i + 1].from - dirt->ranges[i].to <
            dirt->ranges[best + 1].from - dirt->ranges[best].to)
            best = i;
    dirt->ranges[best].to = dirt->ranges[best + 1].to;
    dirt->count--;
    memmove(&dirt->ranges[best + 1], &dirt->ranges[best + 2],
            (dirt->count - best - 1) * sizeof *dirt->ranges);
}

void cx_files_dirty_range(cx_files_dirt *dirt, uint32_t from, uint32_t to)
{
    uint32_t at = 0, last;
    while (at < dirt->count && dirt->ranges[at].to < from)
        at++;
    for (last = at; last < dirt->count && dirt->ranges[last].from <= to; last++) {
        from = dirt->ranges[last].from < from ? dirt->ranges[last].from : from;
        to = dirt->ranges[last].to > to ? dirt->ranges[last].to : to;
    }
    if (last == at && dirt->count == CX_FILES_RANGES) {
        join_closest(dirt);
        cx_files_dirty_range(dirt, from, to);
        return;
    }
    memmove(&dirt->ranges[at + 1], &dirt->ranges[last],
            (dirt->count - last) * sizeof *dirt->ranges);
    dirt->ranges[at] = (cx_files_range){from, to};
    dirt->count = dirt->count - (last - at) + 1;
}

void cx_files_dirty_add(cx_files_dirt *to, const cx_files_dirt *more)
{
    to->pages |= more->pages;
    for (uint32_t i = 0; i < more->count; i++)
        cx_files_dirty_range(to, more->ranges[i].from, more->ranges[i].to);
}

/* --- loading ---------------------------------------------------------------------------------- */

typedef struct load {
    cx_fleet_files *files;
    cx_files_file *file;
    uint64_t first;
    uint64_t count;
    uint64_t known; /* commits that the answer must have */
    bool owned;
    cx_files_chunk *chunks[CX_FILES_AHEAD];
} load;

void cx_files_wait_loads(cx_fleet_files *files, const cx_files_file *file)
{
    while (file->loads != 0)
        cx_lock_wait(&files->lock);
}

/* Only pages that are not valid are written to: no other thread touches those meanwhile. */
static void copy_extent(cx_files_chunk *chunk, uint32_t start, cx_bytes bytes)
{
    uint32_t end = start + (uint32_t)bytes.size;
    for (uint32_t at = start; at < end;) {
        uint32_t page = at / CX_FILES_PAGE, to = (page + 1) * CX_FILES_PAGE;
        to = to < end ? to : end;
        if ((chunk->valid >> page & 1) == 0)
            memcpy(chunk->bytes + at, bytes.data + (at - start), to - at);
        at = to;
    }
}

/* M5: a server that was the primary before, or one that lags, does not have what was written. */
static cx_status take_row(void *arg, const cx_pg_value *columns, cx_err *err)
{
    load *l = arg;
    if (columns[0].i < 0 || (uint64_t)columns[0].i < l->known)
        return cx_fail_at(err, CX_E_IO, "DatabaseLags", CX_NO_OFFSET,
                          "%s: the server that was asked does not have the newest commits",
                          l->file->name);
    if (columns[1].null) /* no extent */
        return CX_SUCCESS;
    uint64_t chunk = (uint64_t)columns[1].i;
    uint64_t start = (uint64_t)columns[2].i, size = columns[3].text.size;
    if (columns[1].i < 0 || chunk < l->first || chunk - l->first >= l->count || columns[2].i < 0 ||
        start >= CX_FLEET_CHUNK || size > CX_FLEET_CHUNK - start)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "%s: an extent in the database is where it cannot be", l->file->name);
    copy_extent(l->chunks[chunk - l->first], (uint32_t)start,
                cx_bytes_from(columns[3].text.data, (size_t)size));
    return CX_SUCCESS;
}

/* One statement, so that the extents are those of the commits that it tells of.  It is not
 * cx_fleet_read for that reason alone. */
static cx_status read_extents(load *l, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_INT, CX_PG_INT, CX_PG_BYTES};
    const cx_pg_value values[] = {cx_fleet_int(l->files->number), cx_fleet_int(l->file->number),
                                  cx_fleet_int(l->first), cx_fleet_int(l->first + l->count)};
    cx_fleet *reader = l->files->reader;
    uint64_t rows = 0;
    CX_TRY(cx_fleet_need_connection(reader, err));
    CX_TRY(cx_pg_query(reader->pg,
                       "SELECT p.next, e.chunk, e.start, e.bytes FROM " CX_T_PART
                       " p LEFT JOIN " CX_T_EXTENT " e ON e.part = p.part AND e.file = $2 AND "
                       "e.chunk >= $3 AND e.chunk < $4 WHERE p.part = $1",
                       values, CX_COUNT_OF(values), types, CX_COUNT_OF(types), take_row, l, &rows,
                       err));
    return rows != 0 ? CX_SUCCESS
                     : cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                                  "part %u has no row in the database", l->files->number);
}

/* A page may have been half filled by a try that failed. */
static void clear_invalid(load *l)
{
    for (uint64_t i = 0; i < l->count; i++)
        for (unsigned page = 0; page < CX_FILES_PAGES; page++)
            if ((l->chunks[i]->valid >> page & 1) == 0)
                memset(l->chunks[i]->bytes + page * CX_FILES_PAGE, 0, CX_FILES_PAGE);
}

/* With reader_lock held.  Once more on a new connection while the part is owned: what is read then
 * is what this process wrote.  A snapshot ends with its connection. */
static cx_status query(load *l, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    for (unsigned tries = 0; tries < 2; tries++) {
        status = cx_files_open_reader(l->files, l->owned, err);
        if (!cx_failed(status)) {
            clear_invalid(l);
            status = read_extents(l, err);
        }
        if (!cx_failed(status) || !l->owned || status.code == CX_E_FORMAT)
            break;
        cx_fleet_close(l->files->reader);
        l->files->reader = NULL;
    }
    return status;
}

/* As many as are not in memory, in order. */
static bool choose(load *l, uint64_t index, uint64_t wanted)
{
    cx_files_file *file = l->file;
    l->first = index;
    if (index == file->next_chunk)
        file->ahead = file->ahead * 2 < CX_FILES_AHEAD ? file->ahead * 2 : CX_FILES_AHEAD;
    else
        file->ahead = 1;
    if (file->ahead == 0)
        file->ahead = 1;
    wanted = wanted > file->ahead ? wanted : file->ahead;
    for (uint64_t i = 0; i < wanted && i < CX_FILES_AHEAD; i++) {
        if (i != 0 && ((index + i) * CX_FLEET_CHUNK >= file->end ||
                       cx_files_chunk_find(l->files, file, index + i) != NULL))
            break;
        cx_files_chunk *chunk = cx_files_chunk_make(l->files, file, index + i);
        if (chunk == NULL)
            break;
        chunk->loading = true;
        l->chunks[l->count++] = chunk;
    }
    file->next_chunk = index + l->count;
    return l->count != 0;
}

int cx_files_load(cx_fleet_files *files, cx_files_file *file, uint64_t index, uint64_t wanted)
{
    cx_err err = {0};
    cx_files_chunk *there = cx_files_chunk_find(files, file, index);
    if (there != NULL && there->loading) {
        cx_lock_wait(&files->lock);
        return 0;
    }
    load l = {.files = files,
              .file = file,
              .known = files->owned ? files->known : 0,
              .owned = files->owned};
    if (!choose(&l, index, wanted))
        return -ENOMEM;
    file->loads++;
    files->loads++;
    cx_lock_leave(&files->lock);
    cx_lock_enter(&files->reader_lock);
    cx_status status = query(&l, &err);
    cx_lock_leave(&files->reader_lock);
    cx_lock_enter(&files->lock);
    for (uint64_t i = 0; i < l.count; i++) {
        l.chunks[i]->loading = false;
        if (!cx_failed(status))
            l.chunks[i]->valid = CX_FILES_ALL_PAGES;
        else if (!must_stay(l.chunks[i]))
            cx_files_chunk_drop(files, l.chunks[i]);
    }
    file->loads--;
    files->loads--;
    cx_lock_wake(&files->lock);
    return cx_failed(status) ? cx_files_errno(files, &err) : 0;
}
