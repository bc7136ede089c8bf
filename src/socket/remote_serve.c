/*
 * remote_serve.c - the writer process executes the calls of other processes
 * (docs/formats/socket.md).
 *
 * One thread accepts, and each connection has one of its own: what it is asked it does by the same
 * calls as any thread of this process, so that a client waits for a transaction as a thread does.
 *
 * S1  A transaction that a client began ends with its connection, at the latest: committed by its
 * request,
 *     or aborted when it hangs up or keeps silent for too long.
 * S2  Nothing of a transaction reaches the log before its commit has arrived as a whole and was
 * checked.
 * S3  A request that cannot be read ends the connection; nothing after it is looked at.
 * S4  Inside its transaction a client cannot ask for what would wait for that transaction.
 */
#include "base/api.h"
#include "os/api.h"
#include "ledger/internal.h"
#include "socket/remote.h"
#include "socket/remote_wire.h"

/* A page of rows ends after the row that makes it longer than this. */
#define PAGE_BYTES (UINT32_C(1) << 20)
#define PAGE_ACTORS 4096
#define PAGE_SEQS 65536
/* Of segments that are archived or brought back; the client asks again. */
#define ARCHIVE_STEP_MS 5000
/* What a connection's buffers keep between requests. */
#define RETAINED_BYTES (UINT32_C(1) << 20)
/* When no connection can be accepted for want of descriptors, so long until the next try. */
#define PAUSE_MS 100

typedef struct connection {
    struct connection *next;
    cx_remote *remote;
    cx_socket socket;
    void (*closes)(void *arg); /* closes the socket; NULL = we do */
    void *closes_arg;
    cx_thread thread;
    bool ended;
    bool greeted; /* has said hello */
    cx_txn *txn;
    cx_arena arena; /* of one request */
    cx_buf in, out;
} connection;

struct cx_remote {
    cx_home *home;
    const cx_alloc *alloc;
    cx_remote_options options;
    cx_buf path;
    cx_listener listener;
    cx_thread acceptor;
    cx_lock lock;
    connection *connections; /* those that have ended are taken away by the acceptor */
    unsigned live;
    bool stopping;
};

/* --- pages ------------------------------------------------------------------------------------ */

typedef struct page {
    cx_arena *arena;
    const cx_remote_request *request;
    CX_VEC(cx_remote_row) rows;
    size_t bytes;
    bool more;
} page;

static cx_status add_scanned_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    page *list = arg;
    const cx_remote_request *request = list->request;
    if (request->after && list->rows.count == 0 &&
        cx_str_eq(cx_bytes_str(key), cx_bytes_str(request->from)))
        return CX_SUCCESS;
    if (list->rows.count != 0 &&
        (list->rows.count >= request->limit || list->bytes + value.size > PAGE_BYTES)) {
        list->more = *stop = true;
        return CX_SUCCESS;
    }
    cx_str key_copy = cx_arena_copy_str(list->arena, cx_bytes_str(key));
    cx_str value_copy = cx_arena_copy_str(list->arena, cx_bytes_str(value));
    cx_remote_row *slot = cx_vec_push(&list->rows, list->arena->alloc);
    if (key_copy.data == NULL || value_copy.data == NULL || slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_remote_row){cx_str_bytes(key_copy), cx_str_bytes(value_copy)};
    list->bytes += key.size + value.size;
    return CX_SUCCESS;
}

static cx_status do_scan(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                         cx_err *err)
{
    page list = {.arena = &c->arena, .request = request};
    const cx_scan scan = {.actor = cx_bytes_str(request->actor),
                          .prefix = request->prefix,
                          .from = request->from,
                          .backwards = request->backwards,
                          .common = request->common,
                          .row = add_scanned_row,
                          .arg = &list};
    cx_status status = cx_home_scan(c->remote->home, &scan, err);
    cx_remote_row *rows = NULL;
    if (!cx_failed(status)) {
        rows = CX_ARENA_ARRAY(&c->arena, cx_remote_row, list.rows.count + 1);
        if (rows == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status) && list.rows.count != 0)
        memcpy(rows, list.rows.items, list.rows.count * sizeof *rows);
    out->rows = rows;
    out->row_count = list.rows.count;
    out->more = list.more;
    cx_vec_done(&list.rows, c->arena.alloc);
    return status;
}

static cx_status do_actors(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                           cx_err *err)
{
    CX_TRY(cx_home_actors_from(c->remote->home, request->seq, PAGE_ACTORS, &c->arena, &out->actors,
                               &out->actor_count, err));
    out->more = out->actor_count == PAGE_ACTORS;
    return CX_SUCCESS;
}

static cx_status do_about(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                          cx_err *err)
{
    const uint64_t *seqs;
    size_t count, first = 0;
    CX_TRY(cx_home_entries_about(c->remote->home, cx_bytes_str(request->actor), &request->subject,
                                 &c->arena, &seqs, &count, err));
    while (first < count && seqs[first] < request->seq)
        first++;
    out->seqs = seqs + first;
    out->seq_count = count - first < PAGE_SEQS ? count - first : PAGE_SEQS;
    out->more = first + out->seq_count < count;
    return CX_SUCCESS;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* "memory/1 trace/1": rows that others derived would not be what a client looks for. */
static cx_status check_derivers(const connection *c, cx_bytes asked, cx_err *err)
{
    const cx_home *home = c->remote->home;
    cx_buf ours;
    cx_buf_init(&ours, c->remote->alloc);
    for (size_t i = 0; i < home->options.deriver_count; i++) {
        cx_buf_add_z(&ours, i == 0 ? "" : " ");
        cx_buf_add_z(&ours, home->options.derivers[i].name);
    }
    cx_status status = cx_buf_check(&ours, err);
    if (!cx_failed(status) && !cx_str_eq(cx_buf_str(&ours), cx_bytes_str(asked)))
        status =
            cx_fail_at(err, CX_E_UNSUPPORTED, "OtherDerivers", CX_NO_OFFSET,
                       "the writer process of this data directory derives other tables (%.*s): "
                       "stop it, or use its version of this program",
                       (int)(ours.size < 120 ? ours.size : 120), (const char *)ours.data);
    cx_buf_done(&ours);
    return status;
}

static cx_status do_hello(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                          cx_err *err)
{
    CX_TRY(check_derivers(c, request->derivers, err));
    c->greeted = true;
    out->scheme = cx_home_scheme(c->remote->home);
    cx_home_id(c->remote->home, out->home_id);
    return CX_SUCCESS;
}

static cx_status do_actor(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                          cx_err *err)
{
    cx_actor_info *actor = CX_ARENA_NEW(&c->arena, cx_actor_info);
    if (actor == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_home_actor(c->remote->home, cx_bytes_str(request->actor), actor, err));
    out->actors = actor;
    out->actor_count = 1;
    return CX_SUCCESS;
}

static cx_status do_get_at(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                           cx_err *err)
{
    bool found = false;
    CX_TRY(cx_home_get_at(c->remote->home, cx_bytes_str(request->actor), request->seq, request->key,
                          &c->arena, &out->value, &found, &out->erased, &out->value_hash, err));
    out->has_value = found && !out->erased;
    return CX_SUCCESS;
}

static cx_status do_entry(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                          cx_err *err)
{
    cx_entry_view view;
    CX_TRY(cx_home_entry(c->remote->home, cx_bytes_str(request->actor), request->seq, &c->arena,
                         &view, err));
    out->entry = view.bytes;
    out->committed = view.entry.committed && !view.payload_erased;
    out->payload = view.payload;
    memcpy(out->salt, view.salt, sizeof out->salt);
    out->erased = view.payload_erased;
    out->has_subject = view.has_subject;
    out->subject = view.subject;
    return CX_SUCCESS;
}

/* --- transactions ----------------------------------------------------------------------------- */

static bool is_stopping(cx_remote *remote)
{
    cx_lock_enter(&remote->lock);
    bool stopping = remote->stopping;
    cx_lock_leave(&remote->lock);
    return stopping;
}

static cx_status writer_is_stopping(cx_err *err)
{
    return cx_fail_at(err, CX_E_BUSY, "HolderEnds", CX_NO_OFFSET,
                      "the writer process is stopping; nothing was done, try again");
}

static cx_status do_begin(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                          cx_err *err)
{
    cx_home *home = c->remote->home;
    cx_scheme scheme = request->has_scheme ? request->scheme : cx_home_scheme(home);
    CX_TRY(cx_txn_begin_as(home, cx_bytes_str(request->actor), scheme, &c->txn, err));
    /* It may have been a long wait. */
    if (is_stopping(c->remote)) {
        cx_txn_abort(c->txn);
        c->txn = NULL;
        return writer_is_stopping(err);
    }
    out->actors = cx_txn_actor(c->txn);
    out->actor_count = 1;
    out->is_new = c->txn->is_new;
    return CX_SUCCESS;
}

static cx_status put_frame(cx_txn *txn, const cx_remote_frame *frame, cx_err *err)
{
    if (frame->has_entry)
        CX_TRY(cx_txn_entry(txn, &frame->draft, NULL, err));
    else
        CX_TRY(cx_txn_bare(txn, err));
    for (size_t i = 0; i < frame->change_count; i++) {
        const cx_change *change = &frame->changes[i];
        if (change->removed)
            CX_TRY(cx_txn_remove(txn, change->key, err));
        else
            CX_TRY(cx_txn_put(txn, change->key, change->value, change->erasable, err));
    }
    return CX_SUCCESS;
}

/* S2: the transaction ends here, one way or the other. */
static cx_status do_commit(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                           cx_err *err)
{
    cx_txn *txn = c->txn;
    cx_status status = CX_SUCCESS;
    c->txn = NULL;
    for (size_t i = 0; i < request->frame_count && !cx_failed(status); i++)
        status = put_frame(txn, &request->frames[i], err);
    if (!cx_failed(status))
        status = cx_remote_check_txn(txn, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    CX_TRY(cx_txn_commit_later(txn, &out->commit, err));
    return cx_home_wait(c->remote->home, out->commit, err);
}

/* --- one request ------------------------------------------------------------------------------ */

static cx_status check_place(const connection *c, cx_remote_op op, cx_err *err)
{
    bool waits = op == CX_REMOTE_TXN_BEGIN || op == CX_REMOTE_ROOTS || op == CX_REMOTE_ERASE ||
                 op == CX_REMOTE_HOME_ROOT;
    bool needs = op == CX_REMOTE_TXN_GET || op == CX_REMOTE_TXN_ROOTS || op == CX_REMOTE_TXN_COMMIT;
    if (c->greeted == (op == CX_REMOTE_HELLO))
        return cx_fail_at(err, CX_E_USAGE, "BadMessage", CX_NO_OFFSET,
                          "hello comes first, and once");
    if (waits && c->txn != NULL)
        return cx_fail_at(err, CX_E_USAGE, "InTurn", CX_NO_OFFSET,
                          "call %d is not allowed inside a transaction: commit or abort it first",
                          (int)op);
    if (needs && c->txn == NULL)
        return cx_fail_at(err, CX_E_USAGE, "NoTurn", CX_NO_OFFSET,
                          "call %d needs a transaction, which this connection has not begun",
                          (int)op);
    return CX_SUCCESS;
}

static cx_status do_home_root(connection *c, const cx_remote_request *request, cx_err *err)
{
    cx_home_root_entry entry;
    if (request->seq > INT64_MAX)
        return cx_fail_at(err, CX_E_USAGE, "BadMessage", CX_NO_OFFSET,
                          "found the time %llu, expected nanoseconds since 1970, below 2^63",
                          (unsigned long long)request->seq);
    return cx_home_root_record(c->remote->home, (int64_t)request->seq, &entry, err);
}

/* At least one segment is done, and none is begun after a while. */
typedef struct archive_step {
    const cx_io *io;
    uint64_t end_ns;
} archive_step;

static bool has_time(void *arg, uint32_t done, uint32_t count)
{
    const archive_step *step = arg;
    (void)done;
    (void)count;
    return step->io->monotonic_ns(step->io) < step->end_ns;
}

static cx_status folder_of_request(connection *c, const cx_remote_request *request,
                                   const char **out, cx_err *err)
{
    cx_str key = cx_bytes_str(request->key);
    if (key.size == 0 || cx_str_is(key, ".")) {
        *out = key.size == 0 ? NULL : "";
        return CX_SUCCESS;
    }
    if (key.data[0] != '/' || memchr(key.data, 0, key.size) != NULL ||
        memchr(key.data, '\n', key.size) != NULL)
        return cx_fail_at(err, CX_E_USAGE, "BadMessage", CX_NO_OFFSET,
                          "found no absolute path of a folder for archives");
    *out = cx_arena_copy_str(&c->arena, key).data;
    return *out == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status do_archive(connection *c, const cx_remote_request *request, cx_remote_answer *out,
                            cx_err *err)
{
    cx_home *home = c->remote->home;
    const cx_io *io = cx_home_io(home);
    archive_step step = {io, io->monotonic_ns(io) + ARCHIVE_STEP_MS * UINT64_C(1000000)};
    cx_log_archive_options options = {
        .keep = request->seq > UINT32_MAX ? UINT32_MAX : (uint32_t)request->seq,
        .age_ns = request->age_ns > INT64_MAX ? INT64_MAX : (int64_t)request->age_ns,
        .go_on = has_time,
        .arg = &step};
    cx_log_archived done;
    uint64_t *counts = CX_ARENA_ARRAY(&c->arena, uint64_t, 3);
    if (counts == NULL)
        return cx_fail_nomem(err);
    CX_TRY(folder_of_request(c, request, &options.folder, err));
    CX_TRY(request->op == CX_REMOTE_RESTORE ? cx_home_log_restore(home, &options, &done, err)
                                            : cx_home_log_archive(home, &options, &done, err));
    counts[0] = done.segments;
    counts[1] = done.bytes_unpacked;
    counts[2] = done.bytes_packed;
    out->seqs = counts;
    out->seq_count = 3;
    out->more = done.stopped;
    return CX_SUCCESS;
}

static cx_status perform_request(connection *c, const cx_remote_request *request,
                                 cx_remote_answer *out, cx_err *err)
{
    cx_home *home = c->remote->home;
    cx_str actor = cx_bytes_str(request->actor);
    switch (request->op) {
    case CX_REMOTE_HELLO: return do_hello(c, request, out, err);
    case CX_REMOTE_ACTOR: return do_actor(c, request, out, err);
    case CX_REMOTE_ACTORS: return do_actors(c, request, out, err);
    case CX_REMOTE_GET:
        return cx_home_get(home, actor, request->key, &c->arena, &out->value, &out->has_value, err);
    case CX_REMOTE_GET_AT: return do_get_at(c, request, out, err);
    case CX_REMOTE_SCAN: return do_scan(c, request, out, err);
    case CX_REMOTE_ENTRY: return do_entry(c, request, out, err);
    case CX_REMOTE_ABOUT: return do_about(c, request, out, err);
    case CX_REMOTE_ROOTS: return cx_home_roots(home, actor, &out->roots, err);
    case CX_REMOTE_TABLES: return cx_home_tables_status(home, &out->tables, err);
    case CX_REMOTE_FLUSH: return cx_home_flush(home, err);
    case CX_REMOTE_SYNC: return cx_home_sync(home, err);
    case CX_REMOTE_ERASE: return cx_home_erase(home, actor, err);
    case CX_REMOTE_TXN_BEGIN: return do_begin(c, request, out, err);
    case CX_REMOTE_TXN_GET:
        return (request->common ? cx_txn_get_common : cx_txn_get)(c->txn, request->key, &out->value,
                                                                  &out->has_value, err);
    case CX_REMOTE_TXN_ROOTS: return cx_txn_roots(c->txn, &out->roots, err);
    case CX_REMOTE_TXN_COMMIT: return do_commit(c, request, out, err);
    case CX_REMOTE_TXN_ABORT:
        cx_txn_abort(c->txn);
        c->txn = NULL;
        return CX_SUCCESS;
    case CX_REMOTE_HOME_ROOT: return do_home_root(c, request, err);
    case CX_REMOTE_ARCHIVE:
    case CX_REMOTE_RESTORE: return do_archive(c, request, out, err);
    case CX_REMOTE_OP_END: break;
    }
    return cx_fail_at(err, CX_E_USAGE, "BadMessage", CX_NO_OFFSET, "no call %d", request->op);
}

/* --- messages --------------------------------------------------------------------------------- */

static bool send_answer(connection *c, const cx_remote_answer *answer, cx_remote_op op)
{
    cx_buf_clear(&c->out);
    cx_buf_add(&c->out, "\0\0\0\0", 4);
    cx_remote_answer_encode(answer, op, &c->out);
    if (c->out.failed || c->out.size - 4 > CX_REMOTE_MESSAGE_MAX)
        return false;
    for (unsigned i = 0; i < 4; i++)
        c->out.data[i] = (uint8_t)((c->out.size - 4) >> (8 * (3 - i)));
    const cx_remote_options *options = &c->remote->options;
    if (options->may_answer != NULL && !options->may_answer(options->may_answer_arg))
        return false;
    return !cx_failed(
        cx_net_write(c->socket, c->out.data, c->out.size, c->remote->options.txn_timeout_ms, NULL));
}

/* The last word on a connection: about what came before it was read, or about none (S3). */
static void send_notice(connection *c, const cx_err *why)
{
    const cx_remote_answer notice = {.number = 0, .failed = true, .err = *why};
    (void)send_answer(c, &notice, CX_REMOTE_HELLO);
}

/* An answer that is too long for a message, or for the memory there is, becomes an error; but what
 * was written stays written, and then there is no answer rather than a wrong one. */
static bool answer_request(connection *c, cx_remote_answer *answer, cx_remote_op op)
{
    if (send_answer(c, answer, op))
        return true;
    bool too_long = !c->out.failed && c->out.size > 4 && c->out.size - 4 > CX_REMOTE_MESSAGE_MAX;
    bool wrote = op == CX_REMOTE_TXN_COMMIT || op == CX_REMOTE_ERASE || op == CX_REMOTE_HOME_ROOT ||
                 op == CX_REMOTE_ARCHIVE || op == CX_REMOTE_RESTORE;
    if (wrote || (!too_long && !c->out.failed))
        return false;
    *answer = (cx_remote_answer){.number = answer->number, .failed = true};
    if (too_long)
        (void)cx_fail_at(&answer->err, CX_E_LIMIT, "AnswerTooLarge", CX_NO_OFFSET,
                         "the answer has %zu bytes, too many for one message; open the data "
                         "directory for reading instead",
                         c->out.size);
    else
        (void)cx_fail_nomem(&answer->err);
    return send_answer(c, answer, op);
}

/* Memory is taken as bytes come, not as a length promises. */
static cx_status read_body(connection *c, size_t size, cx_err *err)
{
    const size_t step = (size_t)64 << 10;
    cx_buf_clear(&c->in);
    while (c->in.size < size) {
        size_t left = size - c->in.size, got = 0, want = left < step ? left : step;
        uint8_t *room = cx_buf_reserve(&c->in, want);
        if (room == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_net_read(c->socket, room, want, c->remote->options.txn_timeout_ms, &got, err));
        cx_buf_advance(&c->in, got);
        if (got < want)
            return cx_fail_at(err, CX_E_FORMAT, "BadMessage", CX_NO_OFFSET,
                              "%zu bytes of a request of %zu", c->in.size, size);
    }
    return CX_SUCCESS;
}

static cx_status read_request(connection *c, cx_remote_request *out, bool *out_end, cx_err *err)
{
    uint8_t head[4];
    size_t got = 0;
    CX_TRY(cx_net_read(c->socket, head, sizeof head, c->remote->options.txn_timeout_ms, &got, err));
    *out_end = got == 0;
    if (*out_end)
        return CX_SUCCESS;
    size_t size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (got < sizeof head || size == 0 || size > CX_REMOTE_MESSAGE_MAX)
        return cx_fail_at(err, CX_E_FORMAT, "BadMessage", CX_NO_OFFSET, "a request of %zu bytes",
                          size);
    CX_TRY(read_body(c, size, err));
    return cx_remote_request_decode(cx_buf_bytes(&c->in), &c->arena, out, err);
}

static uint32_t idle_limit(const connection *c)
{
    uint32_t limit_ms = c->remote->options.idle_timeout_ms;
    return c->closes == NULL || limit_ms == 0 ? CX_NET_FOREVER : limit_ms;
}

/* Waits for the next request; false (with a notice sent) when there is none to wait for (S1). */
static bool await_request(connection *c)
{
    cx_err why;
    bool in_txn = c->txn != NULL;
    bool timed = in_txn || !c->greeted;
    uint32_t limit_ms = timed ? c->remote->options.txn_timeout_ms : idle_limit(c);
    switch (cx_net_wait(c->socket, in_txn ? NULL : &c->remote->listener, limit_ms)) {
    case CX_NET_READY: return true;
    case CX_NET_STOPPED: (void)writer_is_stopping(&why); break;
    case CX_NET_LATE:
        if (!timed) {
            (void)cx_fail_at(&why, CX_E_BUSY, "HolderEnds", CX_NO_OFFSET,
                             "no request for %u ms: the connection has ended; connect again",
                             limit_ms);
            break;
        }
        (void)cx_fail_at(&why, CX_E_TIMEOUT, "TurnTimedOut", CX_NO_OFFSET,
                         "no request for %u ms: the transaction was aborted, and nothing was "
                         "stored",
                         limit_ms);
        break;
    }
    /* Aborted first, so that others need not wait for the notice to be sent. */
    cx_txn_abort(c->txn);
    c->txn = NULL;
    send_notice(c, &why);
    return false;
}

static void release_request(connection *c, cx_arena_mark empty)
{
    cx_arena_reset(&c->arena, empty);
    if (c->arena.total_bytes > RETAINED_BYTES) {
        cx_arena_done(&c->arena);
        cx_arena_init(&c->arena, c->remote->alloc, 0);
    }
    if (c->in.capacity > RETAINED_BYTES)
        cx_buf_done(&c->in);
    if (c->out.capacity > RETAINED_BYTES)
        cx_buf_done(&c->out);
}

/* False when the connection is over. */
static bool serve_request(connection *c)
{
    cx_remote_request request;
    cx_remote_answer answer = {.number = 0};
    cx_err why = {0};
    bool end = false;
    if (!await_request(c))
        return false;
    cx_status status = read_request(c, &request, &end, &why);
    if (cx_failed(status))
        send_notice(c, &why);
    if (cx_failed(status) || end)
        return false;
    answer.number = request.number;
    status = check_place(c, request.op, &answer.err);
    if (!cx_failed(status))
        status = perform_request(c, &request, &answer, &answer.err);
    answer.failed = cx_failed(status);
    return answer_request(c, &answer, request.op);
}

static bool greet_client(connection *c)
{
    uint8_t ours[CX_REMOTE_GREETING_SIZE], theirs[CX_REMOTE_GREETING_SIZE];
    uint32_t limit_ms = c->remote->options.txn_timeout_ms;
    unsigned version = 0;
    size_t got = 0;
    cx_remote_greeting(ours);
    if (cx_failed(cx_net_write(c->socket, ours, sizeof ours, limit_ms, NULL)) ||
        cx_net_wait(c->socket, &c->remote->listener, limit_ms) != CX_NET_READY ||
        cx_failed(cx_net_read(c->socket, theirs, sizeof theirs, limit_ms, &got, NULL)))
        return false;
    return got == sizeof theirs && cx_remote_greeting_read(theirs, &version) &&
           version == CX_REMOTE_VERSION;
}

static void close_socket(const connection *c)
{
    if (c->closes != NULL)
        c->closes(c->closes_arg);
    else
        cx_net_close(c->socket);
}

static void serve_connection(void *arg)
{
    connection *c = arg;
    cx_remote *remote = c->remote;
    if (greet_client(c)) {
        const cx_arena_mark start = cx_arena_mark_now(&c->arena);
        while (serve_request(c))
            release_request(c, start);
    }
    cx_txn_abort(c->txn);
    close_socket(c);
    cx_arena_done(&c->arena);
    cx_buf_done(&c->in);
    cx_buf_done(&c->out);
    cx_lock_enter(&remote->lock);
    c->ended = true;
    remote->live--;
    cx_lock_leave(&remote->lock);
}

/* --- connections ------------------------------------------------------------------------------ */

/* Those that have ended, or all of them, whose end is waited for. */
static void join_connections(cx_remote *remote, bool all)
{
    cx_lock_enter(&remote->lock);
    connection **at = &remote->connections;
    while (*at != NULL) {
        connection *c = *at;
        if (!all && !c->ended) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        cx_lock_leave(&remote->lock);
        cx_thread_join(&c->thread);
        cx_alloc_free(remote->alloc, c, sizeof *c);
        cx_lock_enter(&remote->lock);
        at = &remote->connections;
    }
    cx_lock_leave(&remote->lock);
}

/* Sends the reason to a client that cannot be served, and closes. */
static void reject_client(cx_remote *remote, const connection *client, const cx_err *why)
{
    uint8_t ours[CX_REMOTE_GREETING_SIZE];
    connection c = *client;
    c.remote = remote;
    cx_buf_init(&c.out, remote->alloc);
    cx_remote_greeting(ours);
    if (!cx_failed(cx_net_write(c.socket, ours, sizeof ours, 0, NULL)))
        send_notice(&c, why);
    cx_buf_done(&c.out);
    close_socket(&c);
}

static cx_status check_user(cx_socket socket, cx_err *err)
{
    cx_net_peer peer;
    CX_TRY(cx_net_peer_of(socket, &peer, err));
    if (cx_net_peer_ok(&peer, cx_net_user()))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_DENIED, "OtherUser", CX_NO_OFFSET,
                      "the writer process belongs to user %llu, this program to user %llu: run "
                      "it as the same user",
                      (unsigned long long)cx_net_user(), (unsigned long long)peer.user);
}

/* With the lock held. */
static cx_status check_room(const cx_remote *remote, cx_err *err)
{
    if (remote->stopping)
        return writer_is_stopping(err);
    if (remote->live < remote->options.clients_max)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_BUSY, "TooManyClients", CX_NO_OFFSET,
                      "the writer process serves %u clients already, its limit: try again later",
                      remote->live);
}

static cx_status start_connection(cx_remote *remote, connection *c, cx_err *err)
{
    cx_lock_enter(&remote->lock);
    cx_status status = check_room(remote, err);
    if (!cx_failed(status) && !cx_thread_start(&c->thread, serve_connection, c))
        status = cx_fail(err, CX_E_BUSY,
                         "the writer process cannot start a thread: try again "
                         "later");
    if (!cx_failed(status)) {
        c->next = remote->connections;
        remote->connections = c;
        remote->live++;
    }
    cx_lock_leave(&remote->lock);
    return status;
}

static cx_status add_connection(cx_remote *remote, const connection *client, cx_err *err)
{
    connection *c = cx_alloc_zeroed(remote->alloc, 1, sizeof *c);
    if (c == NULL)
        return cx_fail_nomem(err);
    *c = *client;
    c->remote = remote;
    cx_arena_init(&c->arena, remote->alloc, 0);
    cx_buf_init(&c->in, remote->alloc);
    cx_buf_init(&c->out, remote->alloc);
    cx_status status = start_connection(remote, c, err);
    if (cx_failed(status))
        cx_alloc_free(remote->alloc, c, sizeof *c);
    return status;
}

void cx_home_serve_add(cx_remote *remote, int socket, void (*ended)(void *arg), void *arg)
{
    const connection client = {.socket = socket, .closes = ended, .closes_arg = arg};
    cx_err why = {0};
    join_connections(remote, false);
    if (cx_failed(add_connection(remote, &client, &why)))
        reject_client(remote, &client, &why);
}

static void accept_all(void *arg)
{
    cx_remote *remote = arg;
    for (;;) {
        connection client = {.socket = CX_SOCKET_NONE};
        bool stopped = false;
        cx_err why = {0};
        cx_status status = cx_net_accept(&remote->listener, &client.socket, &stopped, NULL);
        if (stopped)
            return;
        join_connections(remote, false);
        if (cx_failed(status)) {
            (void)cx_net_wait(CX_SOCKET_NONE, &remote->listener, PAUSE_MS);
            continue;
        }
        status = check_user(client.socket, &why);
        if (!cx_failed(status))
            status = add_connection(remote, &client, &why);
        if (cx_failed(status))
            reject_client(remote, &client, &why);
    }
}

/* --- beginning and ending --------------------------------------------------------------------- */

static cx_status claim_serving(cx_home *home, cx_err *err)
{
    if (home->read_only || home->remote != NULL)
        return cx_fail(err, CX_E_DENIED,
                       "only the writer process of a data directory can serve it");
    cx_lock_enter(&home->lock);
    bool taken = home->serving;
    home->serving = true;
    cx_lock_leave(&home->lock);
    return taken ? cx_fail(err, CX_E_EXISTS, "this data directory is being served already")
                 : CX_SUCCESS;
}

static void release_serving(cx_home *home)
{
    cx_lock_enter(&home->lock);
    home->serving = false;
    cx_lock_leave(&home->lock);
}

static void remote_free(cx_remote *remote)
{
    cx_net_listen_end(&remote->listener);
    cx_buf_done(&remote->path);
    cx_lock_done(&remote->lock);
    cx_alloc_free(remote->alloc, remote, sizeof *remote);
}

static cx_status start_serving(cx_remote *remote, cx_err *err)
{
    if (remote->options.no_socket)
        return cx_net_listen_nowhere(&remote->listener, err);
    cx_buf_add_z(&remote->path, remote->home->path);
    cx_buf_add_z(&remote->path, "/socket");
    const char *path = cx_buf_z(&remote->path);
    if (path == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_net_listen(path, &remote->listener, err));
    if (cx_thread_start(&remote->acceptor, accept_all, remote))
        return CX_SUCCESS;
    (void)remote->home->io->unlink(remote->home->io, path);
    return cx_fail(err, CX_E_NOMEM, "a thread for the socket could not be started");
}

cx_status cx_home_serve_begin(cx_home *home, const cx_remote_options *options, cx_remote **out,
                              cx_err *err)
{
    CX_TRY(claim_serving(home, err));
    cx_remote *remote = cx_alloc_zeroed(home->alloc, 1, sizeof *remote);
    if (remote == NULL) {
        release_serving(home);
        return cx_fail_nomem(err);
    }
    remote->home = home;
    remote->alloc = home->alloc;
    if (options != NULL)
        remote->options = *options;
    if (remote->options.clients_max == 0)
        remote->options.clients_max = CX_REMOTE_CLIENTS_MAX;
    if (remote->options.txn_timeout_ms == 0)
        remote->options.txn_timeout_ms = CX_REMOTE_TXN_MS;
    remote->listener = (cx_listener){CX_SOCKET_NONE, CX_SOCKET_NONE};
    cx_buf_init(&remote->path, home->alloc);
    cx_lock_init(&remote->lock);
    cx_status status = start_serving(remote, err);
    if (cx_failed(status)) {
        remote_free(remote);
        release_serving(home);
    } else {
        *out = remote;
    }
    return status;
}

unsigned cx_home_serve_clients(cx_remote *remote)
{
    cx_lock_enter(&remote->lock);
    unsigned live = remote->live;
    cx_lock_leave(&remote->lock);
    return live;
}

void cx_home_serve_stop(cx_remote *remote)
{
    if (remote == NULL)
        return;
    cx_lock_enter(&remote->lock);
    bool again = remote->stopping;
    remote->stopping = true;
    cx_lock_leave(&remote->lock);
    if (again)
        return;
    const char *path = cx_buf_z(&remote->path);
    if (!remote->options.no_socket)
        (void)remote->home->io->unlink(remote->home->io, path);
    cx_net_stop(&remote->listener);
    cx_thread_join(&remote->acceptor);
    join_connections(remote, true);
}

void cx_home_serve_end(cx_remote *remote)
{
    if (remote == NULL)
        return;
    cx_home *home = remote->home;
    cx_home_serve_stop(remote);
    remote_free(remote);
    release_serving(home);
}
