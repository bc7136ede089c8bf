/*
 * snapshot.c - the files of a work tree, walked and hashed.
 *
 * Each file is read once: SHA-256, its git blob name, and whether it is binary, on as many threads
 * as there are cores; the walk uses several threads, too.
 *
 *   I1  Every file is included, even if git ignores or hides it: the walk does not ask git.
 *   I2  A hash is reused from an earlier snapshot only when device, inode, size, mode, links and
 *       both times agree and the earlier snapshot states that its changed_ns proves every later
 *       change: on a file system known for that, for a file older than the clock's tick when it was
 *       read.  No process of an agent can set that time.
 */
#include "git/snapshot.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/api.h"
#include "crypto/api.h"
#include "git/snapshot_parts.h"

#define BLOCK_BYTES ((size_t)128 << 10)
#define THREADS_MAX 8
#define FILES_A_THREAD 64 /* fewer do not pay for another thread */

static unsigned choose_threads(const cx_snapshot_options *options, unsigned most, size_t files)
{
    unsigned threads = options->threads != 0 ? options->threads : cx_thread_cores();
    size_t worth = files / FILES_A_THREAD + 1;
    threads = threads > most ? most : threads;
    return worth < threads ? (unsigned)worth : threads;
}

/* --- walking ---------------------------------------------------------------------------------- */

/* Files found by one thread, which has its own arena for paths. */
typedef struct found_file {
    cx_str path;
    cx_facts facts;
} found_file;

typedef struct file_collector {
    cx_arena *arena;
    const char *skip;
    CX_VEC(found_file) list;
    bool failed;
} file_collector;

static cx_walk_step collect_file(void *arg, const cx_walk_entry *entry)
{
    file_collector *c = arg;
    cx_str path = {entry->path, entry->path_size};
    if (cx_str_is(path, ".git"))
        return CX_WALK_SKIP; /* covered as part of the repository */
    if (c->skip != NULL && cx_str_is(path, c->skip))
        return CX_WALK_SKIP;
    path = cx_arena_copy_str(c->arena, path);
    found_file *slot = path.data == NULL ? NULL : cx_vec_push(&c->list, cx_alloc_default());
    if (slot == NULL) {
        c->failed = true;
        return CX_WALK_STOP;
    }
    *slot = (found_file){path, entry->facts};
    return CX_WALK_ON;
}

static int compare_found_files(const void *a, const void *b)
{
    return cx_str_cmp(((const found_file *)a)->path, ((const found_file *)b)->path);
}

static void sort_found_files(void *arg, unsigned index)
{
    file_collector *c = (file_collector *)arg + index;
    if (c->list.count != 0)
        qsort(c->list.items, c->list.count, sizeof *c->list.items, compare_found_files);
}

/* Merges the threads' sorted lists into one. */
static cx_status merge_found_files(cx_snapshot *s, const file_collector *lists, unsigned count,
                                   cx_err *err)
{
    size_t total = 0, at[CX_WALK_THREADS_MAX] = {0};
    for (unsigned i = 0; i < count; i++)
        total += lists[i].list.count;
    s->files = CX_ARENA_ARRAY(&s->arena, cx_snap_file, total == 0 ? 1 : total);
    if (s->files == NULL)
        return cx_fail_nomem(err);
    for (; s->file_count < total; s->file_count++) {
        const found_file *least = NULL;
        unsigned from = 0;
        for (unsigned i = 0; i < count; i++) {
            if (at[i] == lists[i].list.count)
                continue;
            const found_file *next = &lists[i].list.items[at[i]];
            if (least == NULL || compare_found_files(next, least) < 0) {
                least = next;
                from = i;
            }
        }
        CX_ASSERT(least != NULL);
        at[from]++;
        s->files[s->file_count] = (cx_snap_file){.path = least->path, .facts = least->facts};
    }
    return CX_SUCCESS;
}

static cx_status walk_files(cx_snapshot *s, cx_file root, const cx_snapshot_options *options,
                            cx_err *err)
{
    file_collector lists[CX_WALK_THREADS_MAX];
    void *args[CX_WALK_THREADS_MAX];
    unsigned threads =
        choose_threads(options, CX_WALK_THREADS_MAX,
                       options->before == NULL ? SIZE_MAX : options->before->file_count);
    for (unsigned i = 0; i < threads; i++) {
        lists[i] = (file_collector){.arena = &s->path_arenas[i], .skip = options->skip};
        args[i] = &lists[i];
    }
    cx_status status = cx_folder_walk_many(root, NULL, threads, collect_file, args, err);
    for (unsigned i = 0; i < threads; i++)
        if (!cx_failed(status) && lists[i].failed)
            status = cx_fail_nomem(err);
    if (!cx_failed(status)) {
        cx_thread_team(threads, sort_found_files, lists);
        status = merge_found_files(s, lists, threads, err);
    }
    for (unsigned i = 0; i < threads; i++)
        cx_vec_done(&lists[i].list, cx_alloc_default());
    return status;
}

static int compare_files(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_snap_file *)a)->path, ((const cx_snap_file *)b)->path);
}

/* --- hashing ---------------------------------------------------------------------------------- */

typedef struct hashing {
    const cx_git *git;
    cx_snapshot *snapshot;
    cx_file root;
    uint64_t device;
    bool keeps_times;
    const size_t *todo; /* indexes of files */
    size_t todo_count;
    atomic_size_t next;
    cx_lock lock; /* of what is below */
    cx_status status;
    cx_err err;
} hashing;

typedef struct hasher {
    cx_sha256 sha256;
    cx_sha1 sha1;
    bool is_sha1;
    cx_sha256 object; /* in a SHA-256 repository */
} hasher;

static void hasher_begin(hasher *h, size_t oid_size, uint64_t size_bytes)
{
    char head[32] = "blob ";
    char digits[24];
    size_t at = sizeof digits, size = 5;
    do {
        digits[--at] = (char)('0' + size_bytes % 10);
        size_bytes /= 10;
    } while (size_bytes != 0);
    memcpy(head + size, digits + at, sizeof digits - at);
    size += sizeof digits - at + 1; /* with a zero byte */
    cx_sha256_init(&h->sha256);
    h->is_sha1 = oid_size == CX_SHA1_SIZE;
    if (h->is_sha1) {
        cx_sha1_init(&h->sha1);
        cx_sha1_add(&h->sha1, head, size);
    } else {
        cx_sha256_init(&h->object);
        cx_sha256_add(&h->object, head, size);
    }
}

static void hasher_add(hasher *h, const uint8_t *data, size_t size)
{
    cx_sha256_add(&h->sha256, data, size);
    if (h->is_sha1)
        cx_sha1_add(&h->sha1, data, size);
    else
        cx_sha256_add(&h->object, data, size);
}

static void hasher_end(hasher *h, cx_snap_file *file)
{
    file->sha256 = cx_sha256_end(&h->sha256);
    memset(&file->oid, 0, sizeof file->oid);
    if (h->is_sha1) {
        cx_sha1_end(&h->sha1, file->oid.bytes);
        file->oid.size = CX_SHA1_SIZE;
    } else {
        cx_digest object = cx_sha256_end(&h->object);
        memcpy(file->oid.bytes, object.bytes, sizeof object.bytes);
        file->oid.size = sizeof object.bytes;
    }
}

static bool same_times(const cx_facts *a, const cx_facts *b)
{
    return a->kind == b->kind && a->mode == b->mode && a->size_bytes == b->size_bytes &&
           a->link_count == b->link_count && a->device == b->device && a->inode == b->inode &&
           a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

static cx_status hash_open_file(const hashing *job, cx_file opened, cx_snap_file *file,
                                uint8_t *block, cx_err *err)
{
    hasher h;
    cx_facts after;
    uint64_t total = 0;
    int64_t clock = cx_folder_clock_ns();
    hasher_begin(&h, cx_git_oid_size(job->git), file->facts.size_bytes);
    for (size_t count = BLOCK_BYTES; count == BLOCK_BYTES;) {
        CX_TRY(cx_io_read_some(cx_io_system(), opened, file->path.data, block, BLOCK_BYTES, &count,
                               err));
        if (total < CX_BINARY_BYTES && count != 0) {
            size_t head_size =
                CX_BINARY_BYTES - (size_t)total < count ? CX_BINARY_BYTES - (size_t)total : count;
            file->binary = file->binary || memchr(block, 0, head_size) != NULL;
        }
        hasher_add(&h, block, count);
        total += count;
    }
    hasher_end(&h, file);
    CX_TRY(cx_file_facts(opened, &after, err));
    if (total != file->facts.size_bytes || !same_times(&after, &file->facts))
        return cx_fail(err, CX_E_CONFLICT, "%s changed while it was read", file->path.data);
    file->stamped = job->keeps_times && after.device == job->device && after.changed_ns < clock;
    return CX_SUCCESS;
}

static cx_status hash_link(const hashing *job, cx_snap_file *file, cx_err *err)
{
    hasher h;
    cx_buf target;
    cx_buf_init(&target, cx_alloc_default());
    cx_status status = cx_folder_read_link(job->root, file->path.data, &target, err);
    if (!cx_failed(status)) {
        hasher_begin(&h, cx_git_oid_size(job->git), target.size);
        hasher_add(&h, target.data, target.size);
        hasher_end(&h, file);
    }
    cx_buf_done(&target);
    return status;
}

static cx_status hash_file(const hashing *job, cx_snap_file *file, uint8_t *block, cx_err *err)
{
    cx_file opened;
    if (file->facts.kind == CX_FILE_LINK)
        return hash_link(job, file, err);
    CX_TRY(cx_folder_open_in(job->root, file->path.data, CX_IO_READ, &opened, err));
    cx_status status = hash_open_file(job, opened, file, block, err);
    cx_folder_close(opened);
    return status;
}

static void hash_worker(void *arg, unsigned index)
{
    hashing *job = arg;
    cx_err err;
    (void)index;
    uint8_t *block = cx_alloc_default()->resize(NULL, NULL, 0, BLOCK_BYTES);
    cx_status status = block == NULL ? cx_fail_nomem(&err) : CX_SUCCESS;
    while (!cx_failed(status)) {
        size_t at = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (at >= job->todo_count)
            break;
        status = hash_file(job, &job->snapshot->files[job->todo[at]], block, &err);
    }
    cx_alloc_free(cx_alloc_default(), block, block == NULL ? 0 : BLOCK_BYTES);
    if (!cx_failed(status))
        return;
    atomic_store_explicit(&job->next, job->todo_count, memory_order_relaxed);
    cx_lock_enter(&job->lock);
    if (!cx_failed(job->status)) {
        job->status = status;
        job->err = err;
    }
    cx_lock_leave(&job->lock);
}

/* Reuses hashes as I2 allows; the remaining files are to be hashed. */
static size_t choose_files_to_hash(cx_snapshot *s, const cx_snapshot *before, size_t *todo)
{
    size_t count = 0, old = 0;
    for (size_t i = 0; i < s->file_count; i++) {
        cx_snap_file *file = &s->files[i];
        if (file->facts.kind != CX_FILE_REGULAR && file->facts.kind != CX_FILE_LINK)
            continue;
        int order = -1;
        while (before != NULL && old < before->file_count &&
               (order = cx_str_cmp(before->files[old].path, file->path)) < 0)
            old++;
        if (before != NULL && old < before->file_count && order == 0) {
            const cx_snap_file *known = &before->files[old];
            if (known->stamped && same_times(&known->facts, &file->facts)) {
                file->sha256 = known->sha256;
                file->oid = known->oid;
                file->binary = known->binary;
                file->stamped = true;
                continue;
            }
        }
        todo[count++] = i;
    }
    return count;
}

static cx_status hash_files(const cx_git *git, cx_snapshot *s, cx_file root,
                            const cx_snapshot_options *options, cx_err *err)
{
    cx_facts facts;
    size_t *todo = CX_ARENA_ARRAY(&s->arena, size_t, s->file_count == 0 ? 1 : s->file_count);
    if (todo == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_file_facts(root, &facts, err));
    hashing job = {.git = git, .snapshot = s, .root = root, .device = facts.device, .todo = todo};
    job.keeps_times = cx_folder_keeps_times(root);
    job.todo_count = choose_files_to_hash(s, options->before, todo);
    unsigned threads = choose_threads(options, THREADS_MAX, job.todo_count);
    atomic_init(&job.next, 0);
    cx_lock_init(&job.lock);
    cx_thread_team(threads, hash_worker, &job);
    cx_lock_done(&job.lock);
    if (cx_failed(job.status) && err != NULL)
        *err = job.err;
    return job.status;
}

/* --- the whole snapshot ----------------------------------------------------------------------- */

static cx_status snapshot_files(const cx_git *git, const cx_snapshot_options *options,
                                cx_snapshot *s, cx_err *err)
{
    cx_file root;
    CX_TRY(cx_folder_open(cx_git_worktree(git), &root, err));
    cx_status status = walk_files(s, root, options, err);
    if (!cx_failed(status))
        status = hash_files(git, s, root, options, err);
    cx_folder_close(root);
    return status;
}

/* Reads the repository concurrently with the walk of the files. */
typedef struct repository_task {
    const cx_git *git;
    const cx_snapshot_options *options;
    cx_snapshot *snapshot;
    cx_status status;
    cx_err err;
} repository_task;

static void run_repository_task(void *arg)
{
    repository_task *a = arg;
    a->status = cx_snapshot_repository(a->git, a->options, a->snapshot, &a->err);
}

static cx_status snapshot_all(const cx_git *git, const cx_snapshot_options *options, cx_snapshot *s,
                              cx_err *err)
{
    repository_task a = {.git = git, .options = options, .snapshot = s};
    cx_thread thread;
    cx_status status = CX_SUCCESS;
    bool threaded = !options->repository_only && cx_thread_start(&thread, run_repository_task, &a);
    if (!options->repository_only)
        status = snapshot_files(git, options, s, err);
    if (threaded)
        cx_thread_join(&thread);
    else
        run_repository_task(&a);
    if (cx_failed(status) || !cx_failed(a.status))
        return status;
    if (err != NULL)
        *err = a.err;
    return a.status;
}

cx_status cx_snapshot_read(const cx_git *git, const cx_snapshot_options *options, cx_snapshot **out,
                           cx_err *err)
{
    CX_ASSERT(options == NULL || options->skip == NULL || options->skip[0] != '/');
    static const cx_snapshot_options plain = {.before = NULL};
    const cx_alloc *alloc = cx_alloc_default();
    options = options == NULL ? &plain : options;
    cx_snapshot *s = alloc->resize(alloc->ctx, NULL, 0, sizeof *s);
    if (s == NULL)
        return cx_fail_nomem(err);
    memset(s, 0, sizeof *s);
    cx_arena_init(&s->arena, alloc, 0);
    for (size_t i = 0; i < CX_COUNT_OF(s->path_arenas); i++)
        cx_arena_init(&s->path_arenas[i], alloc, 0);
    cx_arena_init(&s->repo_arena, alloc, 0);
    cx_arena_init(&s->index_arena, alloc, 0);
    cx_status status = snapshot_all(git, options, s, err);
    if (cx_failed(status)) {
        cx_snapshot_close(s);
        return status;
    }
    *out = s;
    return CX_SUCCESS;
}

void cx_snapshot_close(cx_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    cx_arena_done(&snapshot->arena);
    for (size_t i = 0; i < CX_COUNT_OF(snapshot->path_arenas); i++)
        cx_arena_done(&snapshot->path_arenas[i]);
    cx_arena_done(&snapshot->repo_arena);
    cx_arena_done(&snapshot->index_arena);
    cx_alloc_free(cx_alloc_default(), snapshot, sizeof *snapshot);
}

const cx_snap_file *cx_snapshot_find(const cx_snapshot *snapshot, cx_str path)
{
    const cx_snap_file key = {.path = path};
    return snapshot->file_count == 0
               ? NULL
               : bsearch(&key, snapshot->files, snapshot->file_count, sizeof key, compare_files);
}

bool cx_snap_file_same(const cx_snap_file *a, const cx_snap_file *b)
{
    if (a->facts.kind != b->facts.kind || a->facts.mode != b->facts.mode)
        return false;
    if (a->facts.kind == CX_FILE_FOLDER || a->facts.kind == CX_FILE_SPECIAL)
        return true;
    return a->facts.size_bytes == b->facts.size_bytes && cx_digest_eq(&a->sha256, &b->sha256);
}
