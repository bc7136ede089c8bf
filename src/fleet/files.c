/*
 * files.c - opening the files of a part, its lease, and the threads that keep it (files.h, P1, P6).
 */
#include "fleet/files.h"

#include <errno.h>
#include <stdio.h>

#include "fleet/files_internal.h"
#include "os/api.h"

#define MS_NS UINT64_C(1000000)
#define CACHE_DEFAULT (UINT64_C(64) << 20)
#define CACHE_MIN (UINT64_C(1) << 20)
#define CACHE_MAX (UINT64_C(1) << 40)
/* A commit of more bytes may take longer than the lease: who asks meanwhile waits for its end. */
#define BULK_BYTES (UINT64_C(16) << 20)

static uint64_t now_ns(const cx_fleet_files *files)
{
    return files->under->monotonic_ns(files->under);
}

/* --- errors ----------------------------------------------------------------------------------- */

static bool has_tag(const cx_err *err, const char *tag)
{
    return err->tag != NULL && strcmp(err->tag, tag) == 0;
}

static int number_of(const cx_err *err)
{
    if (has_tag(err, "DatabaseFull"))
        return -ENOSPC;
    switch (err->code) {
    case CX_E_NOT_FOUND: return -ENOENT;
    case CX_E_NOMEM: return -ENOMEM;
    case CX_E_DENIED: return -EACCES;
    case CX_E_LIMIT: return -EFBIG;
    default: return -EIO;
    }
}

static void keep_words(cx_fleet_files *files, const char *words)
{
    if (!files->lost)
        (void)snprintf(files->why, sizeof files->why, "%s", words);
}

/* With `lock` held. */
int cx_files_errno(cx_fleet_files *files, const cx_err *err)
{
    keep_words(files, err->message);
    return number_of(err);
}

const char *cx_fleet_files_why(cx_fleet_files *files)
{
    cx_lock_enter(&files->lock);
    memcpy(files->shown, files->why, sizeof files->shown);
    cx_lock_leave(&files->lock);
    return files->shown;
}

/* With `lock` held. */
static void lose(cx_fleet_files *files, const char *words)
{
    if (files->lost || !files->owned)
        return;
    keep_words(files, words);
    files->lost = true;
    cx_lock_wake(&files->lock);
}

/* Whether a failure may have lost the lease. */
static bool is_fatal(const cx_err *err)
{
    return err->code == CX_E_CONFLICT || err->code == CX_E_FORMAT || has_tag(err, "OutcomeUnknown");
}

/* --- calls on the owner's files --------------------------------------------------------------- */

static uint64_t lease_end(const cx_fleet_files *files)
{
    return files->heard_ns + files->lease_ms * MS_NS;
}

int cx_files_still(cx_fleet_files *files)
{
    while (files->turning && !files->lost)
        cx_lock_wait(&files->lock);
    while (files->owned && !files->lost && now_ns(files) > lease_end(files)) {
        if (files->bulk)
            cx_lock_wait(&files->lock);
        else
            lose(files, "nothing was heard of the database for longer than the lease");
    }
    return files->lost ? -EIO : 0;
}

int cx_files_enter(cx_fleet_files *files, bool see)
{
    cx_lock_enter(&files->lock);
    int failed = cx_files_still(files);
    while (failed == 0 && see && !files->seen) {
        failed = cx_files_see_once(files);
        if (failed == 0)
            failed = cx_files_still(files);
    }
    if (failed != 0)
        cx_files_leave(files);
    return failed;
}

int cx_files_may_write(const cx_fleet_files *files)
{
    return files->owned ? 0 : -EROFS;
}

int cx_files_is_fresh(const cx_fleet_files *files, const cx_files_handle *handle)
{
    return handle->file->pages && handle->turn != files->turn ? -ESTALE : 0;
}

void cx_files_leave(cx_fleet_files *files)
{
    cx_lock_leave(&files->lock);
}

/* --- commits and renewals --------------------------------------------------------------------- */

/* A request before this one found that the part was lost. */
static cx_status no_longer_owned(const cx_fleet_files *files, cx_err *err)
{
    return cx_fail_at(err, CX_E_CONFLICT, "Fenced", CX_NO_OFFSET,
                      "%s is not owned by this process any more", files->path);
}

/* With writer_lock held. */
static cx_status renew(cx_fleet_files *files, cx_err *err)
{
    if (!files->part.owned)
        return no_longer_owned(files, err);
    uint64_t sent = now_ns(files);
    cx_status status = cx_fleet_renew(files->writer, &files->part, err);
    cx_lock_enter(&files->lock);
    if (!cx_failed(status) && sent > files->heard_ns)
        files->heard_ns = sent;
    files->quota = files->part.quota;
    cx_lock_leave(&files->lock);
    return status;
}

int cx_files_commit(cx_fleet_files *files, const cx_fleet_change *change, uint64_t bytes)
{
    cx_err err = {0};
    cx_lock_enter(&files->lock);
    files->bulk = bytes > BULK_BYTES;
    cx_lock_leave(&files->lock);
    uint64_t sent = now_ns(files);
    cx_status status = files->part.owned
                           ? cx_fleet_commit(files->writer, &files->part, change, &err)
                           : no_longer_owned(files, &err);
    bool written = !cx_failed(status);
    /* What was committed was so under the lease; that it is still on is to be heard now. */
    if (written && now_ns(files) - sent > files->lease_ms * MS_NS / 2)
        status = renew(files, &err);
    cx_lock_enter(&files->lock);
    files->bulk = false;
    files->known = files->part.next;
    files->quota = files->part.quota;
    if (written && sent > files->heard_ns)
        files->heard_ns = sent;
    int failed = written ? 0 : cx_files_errno(files, &err);
    if (cx_failed(status) && (is_fatal(&err) || !files->part.owned))
        lose(files, err.message);
    cx_lock_wake(&files->lock);
    cx_files_leave(files);
    if (written)
        cx_files_trail_store(files);
    return failed;
}

/* With `lock` held, which is left meanwhile. */
static void renew_now(cx_fleet_files *files)
{
    cx_err err = {0};
    cx_lock_leave(&files->lock);
    cx_lock_enter(&files->writer_lock);
    cx_status status = renew(files, &err);
    bool owned = files->part.owned;
    cx_lock_leave(&files->writer_lock);
    cx_lock_enter(&files->lock);
    if (cx_failed(status) && (is_fatal(&err) || !owned))
        lose(files, err.message);
    else if (cx_failed(status))
        keep_words(files, err.message);
}

static void keep_lease(void *arg)
{
    cx_fleet_files *files = arg;
    const uint64_t step = files->lease_ms * MS_NS / 3;
    cx_lock_enter(&files->lock);
    uint64_t tried = files->heard_ns;
    while (!files->stopping && !files->lost) {
        uint64_t now = now_ns(files), since = tried > files->heard_ns ? tried : files->heard_ns;
        if (now >= since + step) {
            tried = now;
            renew_now(files);
            if (files->heard_ns < tried) /* it failed: again soon */
                tried = now_ns(files) - step + step / 4;
            continue;
        }
        cx_lock_wait_for(&files->lock, (uint32_t)((since + step - now) / MS_NS + 1));
    }
    cx_files_leave(files);
}

/* By this thread alone, which holds no lock then: who is told may ask for files. */
static void watch_lease(void *arg)
{
    cx_fleet_files *files = arg;
    char why[CX_ERR_MESSAGE_SIZE];
    cx_lock_enter(&files->lock);
    while (!files->stopping && !files->lost) {
        uint64_t now = now_ns(files), end = lease_end(files);
        if (now > end && files->bulk)
            cx_lock_wait(&files->lock);
        else if (now > end)
            (void)cx_files_still(files);
        else
            cx_lock_wait_for(&files->lock, (uint32_t)((end - now) / MS_NS + 1));
    }
    bool lost = files->lost;
    memcpy(why, files->why, sizeof why);
    cx_files_leave(files);
    if (lost && files->options.lost != NULL)
        files->options.lost(files->options.lost_arg, why);
}

/* --- taking the lease and giving it back ------------------------------------------------------ */

static void close_reader(cx_fleet_files *files)
{
    cx_lock_enter(&files->reader_lock);
    cx_fleet_close(files->reader);
    files->reader = NULL;
    cx_lock_leave(&files->reader_lock);
}

cx_status cx_files_open_reader(cx_fleet_files *files, bool owned, cx_err *err)
{
    if (files->reader != NULL)
        return CX_SUCCESS;
    const cx_fleet_options options = {.node = files->node,
                                      .owner = cx_fleet_owner(files->writer),
                                      .lease_ms = files->lease_ms,
                                      .read_only = true,
                                      .snapshot = !owned};
    return cx_fleet_open(files->url, &options, &files->reader, err);
}

/* With `lock` held: whether an owner's file is open, or is being opened or loaded. */
static bool is_in_use(const cx_fleet_files *files)
{
    bool open = files->owned || files->turning || files->lock_handle != NULL || files->loads != 0;
    for (size_t i = 0; i < files->names.count && !open; i++)
        open = files->names.items[i]->handles != 0;
    return open;
}

void cx_fleet_files_renew_state(cx_fleet_files *files)
{
    cx_lock_enter(&files->reader_lock);
    cx_lock_enter(&files->lock);
    bool in_use = is_in_use(files);
    if (!in_use)
        cx_files_forget_names(files);
    cx_files_leave(files);
    if (!in_use) {
        cx_fleet_close(files->reader);
        files->reader = NULL;
    }
    cx_lock_leave(&files->reader_lock);
}

/* M4.  With `lock` held. */
static void begin_turn(cx_fleet_files *files)
{
    files->turning = true;
    while (files->loads != 0)
        cx_lock_wait(&files->lock);
}

static void end_turn(cx_fleet_files *files, bool owned)
{
    files->turn += files->owned != owned ? 1 : 0;
    files->owned = owned;
    files->turning = false;
    if (!owned)
        files->lock_handle = NULL;
    cx_lock_wake(&files->lock);
}

/* With writer_lock held, turning. */
static cx_status take(cx_fleet_files *files, bool *out_taken, uint64_t *out_sent, cx_err *err)
{
    *out_sent = now_ns(files);
    CX_TRY(cx_fleet_take(files->writer, &files->part, out_taken, err));
    if (!*out_taken)
        return CX_SUCCESS;
    close_reader(files); /* P5 */
    cx_lock_enter(&files->lock);
    cx_files_forget_names(files);
    cx_lock_leave(&files->lock);
    cx_status status = cx_files_see(files, files->writer, err);
    if (cx_failed(status) && cx_failed(cx_fleet_give_back(files->writer, &files->part, NULL)))
        *out_taken = false; /* it ends by itself */
    return status;
}

static bool start_threads(cx_fleet_files *files)
{
    files->stopping = false;
    return cx_thread_start(&files->renewer, keep_lease, files) &&
           cx_thread_start(&files->watcher, watch_lease, files);
}

/* What lease there is ends by itself, at the latest. */
static void stop_threads(cx_fleet_files *files)
{
    cx_lock_enter(&files->lock);
    files->stopping = true;
    cx_lock_wake(&files->lock);
    cx_lock_leave(&files->lock);
    cx_thread_join(&files->renewer);
    cx_thread_join(&files->watcher);
}

/* Who asks for the lease: 0 and it is to be taken; or a negated errno. */
static int begin_take(cx_fleet_files *files, cx_files_handle *handle)
{
    cx_lock_enter(&files->lock);
    int failed = files->lost                  ? -EIO
                 : files->options.read_only   ? -EROFS
                 : files->lock_handle != NULL ? -EAGAIN
                                              : 0;
    if (failed == 0) {
        files->lock_handle = handle;
        begin_turn(files);
    }
    cx_files_leave(files);
    return failed;
}

int cx_files_take(cx_fleet_files *files, cx_files_handle *handle)
{
    cx_err err = {0};
    bool taken = false;
    uint64_t sent;
    if (handle->locked)
        return 0;
    int failed = begin_take(files, handle);
    if (failed != 0)
        return failed;
    cx_lock_enter(&files->writer_lock);
    cx_status status = take(files, &taken, &sent, &err);
    uint64_t next = files->part.next, quota = files->part.quota;
    cx_lock_leave(&files->writer_lock);
    cx_lock_enter(&files->lock);
    if (cx_failed(status)) {
        failed = cx_files_errno(files, &err);
        failed = failed == -EAGAIN ? -EIO : failed;
    } else if (!taken) {
        failed = -EAGAIN;
    }
    if (failed == 0) {
        files->known = next;
        files->quota = quota;
        files->heard_ns = sent;
        handle->locked = true;
        cx_files_trail_fill(files, handle->file);
    }
    end_turn(files, failed == 0);
    cx_files_leave(files);
    if (failed == 0 && !start_threads(files)) {
        cx_files_give_back(files);
        failed = -ENOMEM;
    }
    return failed;
}

void cx_files_give_back(cx_fleet_files *files)
{
    stop_threads(files);
    cx_lock_enter(&files->lock);
    begin_turn(files);
    bool lost = files->lost;
    files->lock_handle->locked = false;
    cx_lock_leave(&files->lock);
    cx_lock_enter(&files->writer_lock);
    if (!lost && files->part.owned) {
        cx_files_trail_store(files);
        cx_status ignored = cx_fleet_give_back(files->writer, &files->part, NULL);
        (void)ignored; /* it ends by itself */
    }
    close_reader(files);
    cx_lock_enter(&files->lock);
    cx_files_forget_names(files);
    end_turn(files, false);
    cx_files_leave(files);
    cx_lock_leave(&files->writer_lock);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The host's name, as far as it can be a node's. */
static void name_node(cx_fleet_files *files, const char *wanted)
{
    cx_buf host;
    size_t size = 0;
    cx_buf_init(&host, cx_files_alloc());
    bool known = wanted == NULL && !cx_failed(cx_machine_host(&host, NULL));
    const char *from = wanted != NULL ? wanted : known ? cx_buf_z(&host) : "";
    from = from == NULL ? "" : from;
    for (; *from != 0 && size < CX_FLEET_NODE_MAX; from++)
        if (*from > ' ' && *from < 0x7f && *from != '/')
            files->node[size++] = *from;
    if (size == 0)
        (void)snprintf(files->node, sizeof files->node, "node");
    cx_buf_done(&host);
}

static cx_status check_options(const cx_fleet_files_options *options, cx_err *err)
{
    if (options->url == NULL || strlen(options->url) > CX_FLEET_URL_MAX)
        return cx_fail(err, CX_E_LIMIT, "a database's URL has up to %d bytes", CX_FLEET_URL_MAX);
    if (options->part.size > CX_FLEET_PART_NAME_MAX)
        return cx_fail(err, CX_E_LIMIT, "a part's name has up to %d bytes", CX_FLEET_PART_NAME_MAX);
    if (options->cache_bytes > CACHE_MAX)
        return cx_fail(err, CX_E_LIMIT, "cache_bytes is at most %llu",
                       (unsigned long long)CACHE_MAX);
    return CX_SUCCESS;
}

static cx_status connect(cx_fleet_files *files, cx_str part, cx_err *err)
{
    const cx_fleet_options options = {.node = files->node,
                                      .owner = files->options.owner,
                                      .lease_ms = files->options.lease_ms,
                                      .read_only = files->options.read_only};
    CX_TRY(cx_fleet_open(files->url, &options, &files->writer, err));
    CX_TRY(cx_fleet_find(files->writer, part, &files->part, err));
    files->number = files->part.number;
    files->lease_ms = cx_fleet_lease_ms(files->writer);
    return CX_SUCCESS;
}

void cx_fleet_files_id(const cx_fleet_files *files, uint8_t out[16])
{
    memcpy(out, files->part.id, sizeof files->part.id);
}

cx_status cx_fleet_files_open(const cx_fleet_files_options *options, cx_fleet_files **out,
                              cx_err *err)
{
    CX_TRY(check_options(options, err));
    cx_fleet_files *files = cx_alloc_zeroed(cx_files_alloc(), 1, sizeof *files);
    if (files == NULL)
        return cx_fail_nomem(err);
    cx_str part = options->part.size == 0 ? CX_STR(CX_FLEET_MAIN) : options->part;
    files->options = *options;
    files->options.part = (cx_str){NULL, 0};
    files->under = options->under != NULL ? options->under : cx_io_system();
    (void)snprintf(files->url, sizeof files->url, "%s", options->url);
    (void)snprintf(files->path, sizeof files->path, CX_FILES_PREFIX "%.*s", (int)part.size,
                   part.data);
    name_node(files, options->node);
    cx_lock_init(&files->writer_lock);
    cx_lock_init(&files->reader_lock);
    cx_lock_init(&files->lock);
    cx_files_io_init(files);
    uint64_t cache = options->cache_bytes == 0 ? CACHE_DEFAULT : options->cache_bytes;
    cx_status status = cx_files_cache_init(&files->cache, cache < CACHE_MIN ? CACHE_MIN : cache)
                           ? connect(files, part, err)
                           : cx_fail_nomem(err);
    files->options.owner = NULL;
    if (cx_failed(status)) {
        cx_fleet_files_close(files);
        return status;
    }
    *out = files;
    return CX_SUCCESS;
}

void cx_fleet_files_close(cx_fleet_files *files)
{
    if (files == NULL)
        return;
    if (files->lock_handle != NULL) /* not closed: after an error, perhaps */
        cx_files_give_back(files);
    cx_files_io_done(files);
    if (files->cache.slots != NULL)
        cx_files_forget_names(files);
    cx_vec_done(&files->names, cx_files_alloc());
    cx_files_cache_done(&files->cache);
    cx_fleet_close(files->reader);
    cx_fleet_close(files->writer);
    cx_lock_done(&files->lock);
    cx_lock_done(&files->reader_lock);
    cx_lock_done(&files->writer_lock);
    cx_alloc_free(cx_files_alloc(), files, sizeof *files);
}

const cx_io *cx_fleet_files_io(const cx_fleet_files *files)
{
    return &files->io;
}

const char *cx_fleet_files_path(const cx_fleet_files *files)
{
    return files->path;
}

/* --- who owns it ------------------------------------------------------------------------------ */

bool cx_fleet_files_own(cx_fleet_files *files)
{
    int failed = cx_files_enter(files, false);
    if (failed != 0)
        return false;
    bool owned = files->owned;
    cx_files_leave(files);
    return owned;
}

cx_status cx_fleet_files_room(cx_fleet_files *files, uint64_t more, cx_err *err)
{
    uint64_t used = 0;
    cx_lock_enter(&files->lock);
    uint64_t quota = files->owned ? files->quota : 0;
    for (size_t i = 0; i < files->names.count && quota != 0; i++) {
        const cx_files_file *file = files->names.items[i];
        if (!file->pages && !file->private)
            used += file->end > file->data_end ? file->end : file->data_end;
    }
    cx_lock_leave(&files->lock);
    if (quota == 0 || (used <= quota && more <= quota - used))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_LIMIT, "QuotaExceeded", CX_NO_OFFSET,
                      "the part %s has a quota of %llu bytes, and its log has %llu: nothing new is "
                      "recorded; reading, erasing and holds go on. Archive the log, or let an "
                      "operator raise it ('cortex fleet quota')",
                      files->path + sizeof CX_FILES_PREFIX - 1, (unsigned long long)quota,
                      (unsigned long long)used);
}

bool cx_fleet_files_tables_age(cx_fleet_files *files, uint64_t *out_ms)
{
    cx_lock_enter(&files->lock);
    uint64_t since = files->tables_ns;
    cx_lock_leave(&files->lock);
    if (since != 0)
        *out_ms = (files->under->monotonic_ns(files->under) - since) / UINT64_C(1000000);
    return since != 0;
}

cx_status cx_fleet_files_publish(cx_fleet_files *files, const char *address, cx_err *err)
{
    bool owned = cx_fleet_files_own(files);
    cx_lock_enter(&files->writer_lock);
    cx_status status = owned && files->part.owned
                           ? cx_fleet_publish(files->writer, &files->part, address, err)
                           : no_longer_owned(files, err);
    cx_lock_leave(&files->writer_lock);
    return status;
}

typedef struct asking {
    unsigned part;
    cx_arena *arena;
    cx_str answer;
} asking;

static cx_status note_owner(void *arg, const cx_fleet_row *row, cx_err *err)
{
    asking *a = arg;
    if (row->number != a->part || row->owner.size == 0 || row->lease_left_ms <= 0)
        return CX_SUCCESS;
    const char *slash = memchr(row->owner.data, '/', row->owner.size);
    int size = (int)(slash != NULL ? (size_t)(slash - row->owner.data) : row->owner.size);
    /* Its address is for nodes: clients are not answered there. */
    a->answer = cx_arena_printf(a->arena, "%.*s", size, row->owner.data);
    return a->answer.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_fleet_files_owner(cx_fleet_files *files, cx_arena *arena, cx_str *out, cx_err *err)
{
    asking a = {.part = files->number, .arena = arena};
    cx_lock_enter(&files->writer_lock);
    cx_status status = cx_fleet_list(files->writer, note_owner, &a, err);
    cx_lock_leave(&files->writer_lock);
    if (!cx_failed(status))
        *out = a.answer;
    return status;
}
