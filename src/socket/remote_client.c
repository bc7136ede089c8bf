/*
 * remote_client.c - the calls of a data directory that another process writes: each is a request
 * through the writer's socket.
 *
 * R1  One request at a time is under way; a connection on which something went wrong is not used
 *     again, and what is asked from then on fails.
 * R2  A request is never sent twice.  Where it writes and all of it was sent, an answer that does
 *     not come is "AnswerLost"; where a part of it was not sent, the writer process cannot have
 *     acted on it.
 * R3  A transaction collects its frames here, and is sent as one request with its commit; its reads
 *     are answered within the transaction that the writer process has open for it.
 */
#include <stdio.h>

#include "base/api.h"
#include "os/api.h"
#include "ledger/internal.h"
#include "socket/remote.h"
#include "socket/remote_wire.h"

/* Rows of a scan's first page; each page is four times the one before, up to the last. */
#define PAGE_FIRST 16
#define PAGE_LAST 4096

/* A writer process that is alive greets at once. */
#define GREETING_MS 5000

struct cx_remote_client {
    cx_socket socket;
    uint64_t owner;             /* process id; 0 = of another machine */
    char who[CX_HOME_WHO_SIZE]; /* for people */
    uint32_t timeout_ms;
    uint8_t home_id[16];
    cx_lock lock; /* one request at a time (R1) */
    uint64_t last_number;
    bool broken;
    cx_buf out;
};

bool cx_home_is_remote(const cx_home *home)
{
    return home->remote != NULL;
}

uint64_t cx_home_owner(const cx_home *home)
{
    return home->remote == NULL ? 0 : home->remote->owner;
}

void cx_remote_home_id(const cx_home *home, uint8_t out[16])
{
    memcpy(out, home->remote->home_id, sizeof home->remote->home_id);
}

cx_status cx_remote_unsupported(const cx_home *home, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_BUSY, "Remote", CX_NO_OFFSET,
                      "%s needs the files of the data directory, which %s has "
                      "open: open it for reading, or stop that process",
                      what, home->remote->who);
}

/* --- one request ------------------------------------------------------------------------------ */

static cx_status writer_gone(const cx_remote_client *client, const char *why, cx_err *err)
{
    return cx_fail_at(err, CX_E_IO, "HolderGone", CX_NO_OFFSET,
                      "%s stopped answering; nothing was done, try again: %s", client->who, why);
}

static cx_status answer_lost(const cx_remote_client *client, const char *why, cx_err *err)
{
    return cx_fail_at(err, CX_E_IO, "AnswerLost", CX_NO_OFFSET,
                      "%s stopped answering: it is unknown whether this was "
                      "stored; check before trying again (%s)",
                      client->who, why);
}

static bool is_writing(cx_remote_op op)
{
    return op == CX_REMOTE_TXN_COMMIT || op == CX_REMOTE_ERASE || op == CX_REMOTE_HOME_ROOT ||
           op == CX_REMOTE_ARCHIVE || op == CX_REMOTE_RESTORE;
}

/* Exactly so many bytes; a peer that has ended is an error. */
static cx_status receive_within(const cx_remote_client *client, uint32_t timeout_ms, void *data,
                                size_t size, cx_err *err)
{
    size_t got = 0;
    CX_TRY(cx_net_read(client->socket, data, size, timeout_ms, &got, err));
    return got == size ? CX_SUCCESS : cx_fail(err, CX_E_IO, "it has ended the connection");
}

static cx_status receive_bytes(const cx_remote_client *client, void *data, size_t size, cx_err *err)
{
    return receive_within(client, client->timeout_ms, data, size, err);
}

static cx_status receive_answer(const cx_remote_client *client, cx_remote_op op, cx_arena *arena,
                                cx_remote_answer *out, cx_err *err)
{
    uint8_t head[4];
    CX_TRY(receive_bytes(client, head, sizeof head, err));
    size_t size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (size == 0 || size > CX_REMOTE_MESSAGE_MAX)
        return cx_fail(err, CX_E_FORMAT, "an answer of %zu bytes", size);
    uint8_t *bytes = cx_arena_push(arena, size, 1);
    if (bytes == NULL)
        return cx_fail_nomem(err);
    CX_TRY(receive_bytes(client, bytes, size, err));
    return cx_remote_answer_decode(cx_bytes_from(bytes, size), op, arena, out, err);
}

/* The message, with its length before it. */
static cx_status encode_request(cx_remote_client *client, const cx_remote_request *request,
                                cx_err *err)
{
    cx_buf *out = &client->out;
    cx_buf_clear(out);
    cx_buf_add(out, "\0\0\0\0", 4);
    cx_remote_request_encode(request, out);
    CX_TRY(cx_buf_check(out, err));
    size_t size = out->size - 4;
    if (size > CX_REMOTE_MESSAGE_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "TurnTooLarge", CX_NO_OFFSET,
                          "a transaction of %zu bytes; at most %u are allowed through %s: split "
                          "it, or stop that process",
                          size, (unsigned)CX_REMOTE_MESSAGE_MAX, client->who);
    for (unsigned i = 0; i < 4; i++)
        out->data[i] = (uint8_t)(size >> (8 * (3 - i)));
    return CX_SUCCESS;
}

/* What the writer process said when it hung up, if it did. */
static cx_status final_notice(const cx_remote_client *client, cx_remote_op op, cx_arena *arena,
                              const char *why, cx_err *err)
{
    cx_remote_answer answer;
    if (!cx_failed(receive_answer(client, op, arena, &answer, NULL)) && answer.number == 0) {
        if (err != NULL)
            *err = answer.err;
        return (cx_status){answer.err.code};
    }
    return writer_gone(client, why, err);
}

/* With the lock held. */
static cx_status exchange_message(cx_remote_client *client, const cx_remote_request *request,
                                  cx_arena *arena, cx_remote_answer *out, cx_err *err)
{
    cx_err why = {0};
    if (client->broken)
        return writer_gone(client, "the connection broke before", err);
    CX_TRY(encode_request(client, request, err));
    client->broken = true; /* until all has gone well (R1) */
    cx_status status =
        cx_net_write(client->socket, client->out.data, client->out.size, client->timeout_ms, &why);
    if (cx_failed(status))
        return final_notice(client, request->op, arena, why.message, err);
    status = receive_answer(client, request->op, arena, out, &why);
    if (!cx_failed(status) && out->number == 0) {
        if (err != NULL)
            *err = out->err;
        return (cx_status){out->err.code};
    }
    if (!cx_failed(status) && out->number != request->number)
        status = cx_fail(&why, CX_E_FORMAT, "it answered another request");
    if (cx_failed(status))
        return is_writing(request->op) ? answer_lost(client, why.message, err)
                                       : writer_gone(client, why.message, err);
    client->broken = false;
    return CX_SUCCESS;
}

/* The answer lives in the arena. */
static cx_status request_in_arena(cx_home *home, cx_remote_request *request, cx_arena *arena,
                                  cx_remote_answer *out, cx_err *err)
{
    cx_remote_client *client = home->remote;
    cx_lock_enter(&client->lock);
    request->number = ++client->last_number;
    cx_status status = exchange_message(client, request, arena, out, err);
    cx_lock_leave(&client->lock);
    if (cx_failed(status) || !out->failed)
        return status;
    if (err != NULL)
        *err = out->err;
    return (cx_status){out->err.code};
}

/* For answers of which nothing is kept but numbers. */
static cx_status request_small(cx_home *home, cx_remote_request *request, cx_remote_answer *out,
                               cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, home->alloc, 0);
    cx_status status = request_in_arena(home, request, &arena, out, err);
    cx_arena_done(&arena);
    return status;
}

static cx_status check_key(cx_bytes key, cx_err *err)
{
    if (key.size > CX_KEY_SIZE_MAX)
        return cx_fail(err, CX_E_LIMIT, "record key of %zu bytes", key.size);
    return CX_SUCCESS;
}

/* --- joining ---------------------------------------------------------------------------------- */

static cx_status check_peer(cx_remote_client *client, const char *path, cx_err *err)
{
    cx_net_peer peer;
    CX_TRY(cx_net_peer_of(client->socket, &peer, err));
    client->owner = peer.process;
    (void)snprintf(client->who, sizeof client->who, "writer process %llu",
                   (unsigned long long)peer.process);
    if (cx_net_peer_ok(&peer, cx_net_user()))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_DENIED, "OtherUser", CX_NO_OFFSET,
                      "%s is served by user %llu, expected the user of this process (%llu)", path,
                      (unsigned long long)peer.user, (unsigned long long)cx_net_user());
}

static cx_status greet_writer(cx_remote_client *client, cx_err *err)
{
    uint8_t ours[CX_REMOTE_GREETING_SIZE], theirs[CX_REMOTE_GREETING_SIZE];
    unsigned version = 0;
    cx_err why = {0};
    cx_remote_greeting(ours);
    /* A writer that has too many clients sends a notice and closes, perhaps before it reads
     * ours. */
    uint32_t limit_ms = client->timeout_ms < GREETING_MS ? client->timeout_ms : GREETING_MS;
    (void)cx_net_write(client->socket, ours, sizeof ours, limit_ms, NULL).code;
    if (cx_failed(receive_within(client, limit_ms, theirs, sizeof theirs, &why)))
        return cx_fail_at(err, CX_E_BUSY, "HolderEnds", CX_NO_OFFSET, "%s does not answer: %s",
                          client->who, why.message);
    bool known = cx_remote_greeting_read(theirs, &version);
    if (known && version == CX_REMOTE_VERSION)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_UNSUPPORTED, "OtherVersion", CX_NO_OFFSET,
                      "%s speaks version %u of the socket protocol, "
                      "expected %d: stop it, or use its version of this program",
                      client->who, version, CX_REMOTE_VERSION);
}

static cx_status request_hello(cx_home *home, cx_err *err)
{
    cx_remote_answer answer;
    cx_buf names;
    cx_buf_init(&names, home->alloc);
    for (size_t i = 0; i < home->options.deriver_count; i++) {
        cx_buf_add_z(&names, i == 0 ? "" : " ");
        cx_buf_add_z(&names, home->options.derivers[i].name);
    }
    cx_remote_request request = {.op = CX_REMOTE_HELLO, .derivers = cx_buf_bytes(&names)};
    cx_status status = cx_buf_check(&names, err);
    if (!cx_failed(status))
        status = request_small(home, &request, &answer, err);
    cx_buf_done(&names);
    CX_TRY(status);
    home->scheme = answer.scheme;
    memcpy(home->remote->home_id, answer.home_id, sizeof answer.home_id);
    return CX_SUCCESS;
}

static cx_status connect_to(cx_home *home, const char *path, cx_err *err)
{
    cx_remote_client *client = home->remote;
    CX_TRY(cx_net_connect(path, &client->socket, err));
    CX_TRY(check_peer(client, path, err));
    CX_TRY(greet_writer(client, err));
    return request_hello(home, err);
}

static cx_status connect_to_socket(cx_home *home, cx_err *err)
{
    cx_buf path;
    cx_buf_init(&path, home->alloc);
    cx_buf_add_z(&path, home->path);
    cx_buf_add_z(&path, "/socket");
    const char *name = cx_buf_z(&path);
    cx_status status = name == NULL ? cx_fail_nomem(err) : connect_to(home, name, err);
    cx_buf_done(&path);
    return status;
}

/* Who is there was checked by what reached it. */
static cx_status connect_to_reached(cx_home *home, cx_err *err)
{
    cx_remote_client *client = home->remote;
    CX_TRY(home->options.reach(home->options.reach_arg, &client->socket, client->who, err));
    CX_TRY(greet_writer(client, err));
    return request_hello(home, err);
}

cx_status cx_remote_join(cx_home *home, cx_err *err)
{
    cx_remote_client *client = cx_alloc_zeroed(home->alloc, 1, sizeof *client);
    if (client == NULL)
        return cx_fail_nomem(err);
    client->socket = CX_SOCKET_NONE;
    client->timeout_ms = home->options.answer_timeout_ms;
    if (client->timeout_ms == 0)
        client->timeout_ms = CX_REMOTE_ANSWER_MS;
    cx_lock_init(&client->lock);
    cx_buf_init(&client->out, home->alloc);
    home->remote = client;
    cx_status status =
        home->options.reach != NULL ? connect_to_reached(home, err) : connect_to_socket(home, err);
    if (cx_failed(status))
        cx_remote_leave(home);
    return status;
}

void cx_remote_leave(cx_home *home)
{
    cx_remote_client *client = home->remote;
    if (client == NULL)
        return;
    cx_net_close(client->socket);
    cx_buf_done(&client->out);
    cx_lock_done(&client->lock);
    cx_alloc_free(home->alloc, client, sizeof *client);
    home->remote = NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

cx_status cx_remote_actor(cx_home *home, cx_str actor, cx_actor_info *out, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_ACTOR, .actor = cx_str_bytes(actor)};
    cx_remote_answer answer;
    cx_arena arena;
    cx_arena_init(&arena, home->alloc, 0);
    cx_status status = request_in_arena(home, &request, &arena, &answer, err);
    if (!cx_failed(status)) {
        *out = answer.actors[0];
        out->name = actor;
    }
    cx_arena_done(&arena);
    return status;
}

cx_status cx_remote_actor_page(cx_home *home, uint64_t from, cx_arena *arena,
                               const cx_actor_info **out, size_t *out_count, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_ACTORS, .seq = from};
    cx_remote_answer answer;
    CX_TRY(request_in_arena(home, &request, arena, &answer, err));
    *out = answer.actors;
    *out_count = answer.actor_count;
    return CX_SUCCESS;
}

cx_status cx_remote_get(cx_home *home, cx_str actor, cx_bytes key, cx_arena *arena,
                        cx_bytes *out_value, bool *out_found, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_GET, .actor = cx_str_bytes(actor), .key = key};
    cx_remote_answer answer;
    CX_TRY(check_key(key, err));
    CX_TRY(request_in_arena(home, &request, arena, &answer, err));
    *out_found = answer.has_value;
    if (answer.has_value)
        *out_value = answer.value;
    return CX_SUCCESS;
}

cx_status cx_remote_get_at(cx_home *home, cx_str actor, uint64_t snapshot_seq, cx_bytes key,
                           cx_arena *arena, cx_bytes *out_value, bool *out_found, bool *out_erased,
                           cx_digest *out_value_hash, cx_err *err)
{
    cx_remote_request request = {
        .op = CX_REMOTE_GET_AT, .actor = cx_str_bytes(actor), .key = key, .seq = snapshot_seq};
    cx_remote_answer answer;
    CX_TRY(check_key(key, err));
    CX_TRY(request_in_arena(home, &request, arena, &answer, err));
    *out_found = answer.has_value || answer.erased;
    *out_erased = answer.erased;
    if (answer.erased)
        *out_value_hash = answer.value_hash;
    if (answer.has_value)
        *out_value = answer.value;
    return CX_SUCCESS;
}

/* --- scanning: page by page ------------------------------------------------------------------- */

typedef struct scan_state {
    cx_home *home;
    const cx_scan *scan;
    uint8_t last[CX_KEY_SIZE_MAX]; /* the key of the last row seen */
    size_t last_size;
    bool any;
    bool stop;
    uint64_t limit;
} scan_state;

static cx_status deliver_page(scan_state *state, const cx_remote_answer *page, cx_err *err)
{
    for (size_t i = 0; i < page->row_count && !state->stop; i++) {
        const cx_remote_row *row = &page->rows[i];
        memcpy(state->last, row->key.data, row->key.size);
        state->last_size = row->key.size;
        state->any = true;
        CX_TRY(state->scan->row(state->scan->arg, row->key, row->value, &state->stop, err));
    }
    return CX_SUCCESS;
}

static cx_status next_page(scan_state *state, cx_arena *arena, bool *out_more, cx_err *err)
{
    const cx_scan *scan = state->scan;
    cx_remote_request request = {
        .op = CX_REMOTE_SCAN,
        .actor = cx_str_bytes(scan->actor),
        .prefix = scan->prefix,
        .from = state->any ? cx_bytes_from(state->last, state->last_size) : scan->from,
        .backwards = scan->backwards,
        .common = scan->common,
        .after = state->any,
        .limit = state->limit,
    };
    cx_remote_answer page;
    CX_TRY(request_in_arena(state->home, &request, arena, &page, err));
    CX_TRY(deliver_page(state, &page, err));
    *out_more = page.more && page.row_count != 0 && !state->stop;
    state->limit = state->limit * 4 > PAGE_LAST ? PAGE_LAST : state->limit * 4;
    return CX_SUCCESS;
}

cx_status cx_remote_scan(cx_home *home, const cx_scan *scan, cx_err *err)
{
    if (scan->prefix.size > CX_KEY_SIZE_MAX || scan->from.size > CX_KEY_SIZE_MAX)
        return cx_fail(err, CX_E_USAGE, "a scan needs a prefix");
    scan_state *state = cx_alloc_zeroed(home->alloc, 1, sizeof *state);
    if (state == NULL)
        return cx_fail_nomem(err);
    *state = (scan_state){.home = home, .scan = scan, .limit = PAGE_FIRST};
    cx_arena arena;
    cx_arena_init(&arena, home->alloc, 0);
    const cx_arena_mark empty = cx_arena_mark_now(&arena);
    cx_status status = CX_SUCCESS;
    bool more = true;
    while (more && !cx_failed(status)) {
        status = next_page(state, &arena, &more, err);
        cx_arena_reset(&arena, empty);
    }
    cx_arena_done(&arena);
    cx_alloc_free(home->alloc, state, sizeof *state);
    return status;
}

/* --- entries ---------------------------------------------------------------------------------- */

cx_status cx_remote_entry(cx_home *home, cx_str actor, uint64_t seq, cx_arena *arena,
                          cx_entry_view *out, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_ENTRY, .actor = cx_str_bytes(actor), .seq = seq};
    cx_remote_answer answer;
    CX_TRY(request_in_arena(home, &request, arena, &answer, err));
    cx_entry_view view = {.bytes = answer.entry,
                          .leaf_hash = cx_scheme_entry(answer.entry),
                          .payload_erased = answer.erased,
                          .has_subject = answer.has_subject,
                          .subject = answer.subject};
    CX_TRY(cx_entry_decode(answer.entry, &view.entry, err));
    view.payload = view.entry.committed ? answer.payload : view.entry.payload;
    memcpy(view.salt, answer.salt, sizeof view.salt);
    *out = view;
    return CX_SUCCESS;
}

typedef struct seq_list {
    CX_VEC(uint64_t) items;
} seq_list;

static cx_status gather_seqs(cx_home *home, cx_str actor, const cx_id *subject, cx_arena *scratch,
                             seq_list *list, cx_err *err)
{
    cx_remote_request request = {
        .op = CX_REMOTE_ABOUT, .actor = cx_str_bytes(actor), .subject = *subject};
    const cx_arena_mark empty = cx_arena_mark_now(scratch);
    bool more = true;
    while (more) {
        cx_remote_answer answer;
        CX_TRY(request_in_arena(home, &request, scratch, &answer, err));
        for (size_t i = 0; i < answer.seq_count; i++) {
            uint64_t *slot = cx_vec_push(&list->items, home->alloc);
            if (slot == NULL)
                return cx_fail_nomem(err);
            *slot = answer.seqs[i];
            request.seq = answer.seqs[i] + 1;
        }
        more = answer.more && answer.seq_count != 0;
        cx_arena_reset(scratch, empty);
    }
    return CX_SUCCESS;
}

cx_status cx_remote_entries_about(cx_home *home, cx_str actor, const cx_id *subject,
                                  cx_arena *arena, const uint64_t **out_seqs, size_t *out_count,
                                  cx_err *err)
{
    seq_list list = {{NULL, 0, 0}};
    cx_arena scratch;
    cx_arena_init(&scratch, home->alloc, 0);
    cx_status status = gather_seqs(home, actor, subject, &scratch, &list, err);
    uint64_t *seqs = NULL;
    if (!cx_failed(status)) {
        seqs = CX_ARENA_ARRAY(arena, uint64_t, list.items.count + 1);
        if (seqs == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        if (list.items.count != 0)
            memcpy(seqs, list.items.items, list.items.count * sizeof *seqs);
        *out_seqs = seqs;
        *out_count = list.items.count;
    }
    cx_vec_done(&list.items, home->alloc);
    cx_arena_done(&scratch);
    return status;
}

/* --- the whole home --------------------------------------------------------------------------- */

/* A call that needs the writer's transaction lock takes that of this process first: otherwise a
 * thread that has a transaction open could wait for itself there. */
static cx_status request_in_txn(cx_home *home, cx_remote_request *request, cx_remote_answer *out,
                                cx_err *err)
{
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_lock_txn(home, err);
    cx_lock_leave(&home->lock);
    CX_TRY(status);
    status = request_small(home, request, out, err);
    cx_lock_enter(&home->lock);
    cx_home_unlock_txn(home);
    cx_lock_leave(&home->lock);
    return status;
}

cx_status cx_remote_roots(cx_home *home, cx_str actor, cx_roots *out, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_ROOTS, .actor = cx_str_bytes(actor)};
    cx_remote_answer answer;
    CX_TRY(request_in_txn(home, &request, &answer, err));
    *out = answer.roots;
    return CX_SUCCESS;
}

cx_status cx_remote_erase(cx_home *home, cx_str actor, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_ERASE, .actor = cx_str_bytes(actor)};
    cx_remote_answer answer;
    return request_in_txn(home, &request, &answer, err);
}

cx_status cx_remote_record_home_root(cx_home *home, int64_t now_ns, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_HOME_ROOT,
                                 .seq = now_ns < 0 ? 0 : (uint64_t)now_ns};
    cx_remote_answer answer;
    return request_in_txn(home, &request, &answer, err);
}

/* The writer process does some segments at a time, so that no answer takes long. */
cx_status cx_remote_archive(cx_home *home, const cx_log_archive_options *options, bool restore,
                            cx_log_archived *out, cx_err *err)
{
    cx_str folder = options->folder == NULL ? CX_STR("") : cx_str_z(options->folder);
    if (folder.size > CX_KEY_SIZE_MAX)
        return cx_fail(err, CX_E_LIMIT, "path too long: %s", options->folder);
    if (options->folder != NULL && folder.size == 0)
        folder = CX_STR(".");
    *out = (cx_log_archived){0};
    for (bool more = true; more;) {
        cx_remote_request request = {.op = restore ? CX_REMOTE_RESTORE : CX_REMOTE_ARCHIVE,
                                     .key = cx_str_bytes(folder),
                                     .seq = options->keep,
                                     .age_ns = options->age_ns < 0 ? 0 : (uint64_t)options->age_ns};
        cx_remote_answer answer;
        cx_arena arena;
        out->stopped = options->go_on != NULL &&
                       !options->go_on(options->arg, out->segments, out->segments + 1);
        if (out->stopped)
            break;
        cx_arena_init(&arena, home->alloc, 0);
        cx_status status = request_in_arena(home, &request, &arena, &answer, err);
        if (!cx_failed(status) && answer.seq_count != 3)
            status = cx_fail(err, CX_E_FORMAT, "the writer process answered %zu numbers, not 3",
                             answer.seq_count);
        if (!cx_failed(status)) {
            out->segments += (uint32_t)answer.seqs[0];
            out->bytes_unpacked += answer.seqs[1];
            out->bytes_packed += answer.seqs[2];
            more = answer.more;
        }
        cx_arena_done(&arena);
        CX_TRY(status);
    }
    return CX_SUCCESS;
}

cx_status cx_remote_tables_status(cx_home *home, cx_tables_status *out, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_TABLES};
    cx_remote_answer answer;
    CX_TRY(request_small(home, &request, &answer, err));
    *out = answer.tables;
    return CX_SUCCESS;
}

cx_status cx_remote_flush(cx_home *home, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_FLUSH};
    cx_remote_answer answer;
    return request_small(home, &request, &answer, err);
}

cx_status cx_remote_sync(cx_home *home, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_SYNC};
    cx_remote_answer answer;
    return request_small(home, &request, &answer, err);
}

/* --- transactions ----------------------------------------------------------------------------- */

cx_status cx_remote_txn_begin(cx_txn *txn, cx_str actor, const cx_scheme *scheme, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_TXN_BEGIN,
                                 .actor = cx_str_bytes(actor),
                                 .has_scheme = true,
                                 .scheme = *scheme};
    cx_remote_answer answer;
    CX_TRY(request_in_arena(txn->home, &request, &txn->arena, &answer, err));
    txn->info = answer.actors[0];
    txn->info.name = cx_str_from(txn->name, actor.size);
    txn->is_new = answer.is_new;
    txn->next_seq = txn->info.entry_count;
    return CX_SUCCESS;
}

cx_status cx_remote_txn_get(cx_txn *txn, cx_bytes key, bool common, cx_bytes *out_value,
                            bool *out_found, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_TXN_GET, .key = key, .common = common};
    cx_remote_answer answer;
    CX_TRY(check_key(key, err));
    CX_TRY(request_in_arena(txn->home, &request, &txn->arena, &answer, err));
    *out_found = answer.has_value;
    if (answer.has_value)
        *out_value = answer.value;
    return CX_SUCCESS;
}

cx_status cx_remote_txn_roots(cx_txn *txn, cx_roots *out, cx_err *err)
{
    cx_remote_request request = {.op = CX_REMOTE_TXN_ROOTS};
    cx_remote_answer answer;
    CX_TRY(request_in_arena(txn->home, &request, &txn->arena, &answer, err));
    *out = answer.roots;
    return CX_SUCCESS;
}

/* Limits that the writer would enforce by rejecting the message are checked here, with the errors
 * of a local transaction. */
static cx_status check_size(const cx_txn *txn, cx_err *err)
{
    if (txn->frames.count > CX_REMOTE_FRAMES_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "TurnTooLarge", CX_NO_OFFSET,
                          "a transaction of %zu entries; at most %d are allowed through %s: "
                          "split it, or stop that process",
                          txn->frames.count, CX_REMOTE_FRAMES_MAX, txn->home->remote->who);
    for (size_t i = 0; i < txn->frames.count; i++) {
        const cx_txn_frame *frame = &txn->frames.items[i];
        if (frame->changes.count > CX_REMOTE_CHANGES_MAX)
            return cx_fail(err, CX_E_LIMIT, "%zu changes with one entry; at most %d are allowed",
                           frame->changes.count, CX_REMOTE_CHANGES_MAX);
        for (size_t j = 0; j < frame->changes.count; j++)
            CX_TRY(cx_change_check(&frame->changes.items[j], err));
    }
    return CX_SUCCESS;
}

/* Without the first frames of a new actor, which the writer's own transaction adds. */
static cx_remote_frame frame_of(const cx_txn *txn, size_t index)
{
    const cx_txn_frame *frame = &txn->frames.items[index];
    size_t own = txn->is_new && index == 0 ? CX_TXN_BIRTH_CHANGES : 0;
    CX_ASSERT(frame->changes.count >= own);
    return (cx_remote_frame){.has_entry = frame->has_draft,
                             .draft = frame->draft,
                             .changes =
                                 own == 0 ? frame->changes.items : frame->changes.items + own,
                             .change_count = frame->changes.count - own};
}

static cx_status send_commit(cx_txn *txn, uint64_t *out_commit, cx_err *err)
{
    size_t count = txn->frames.count;
    CX_TRY(check_size(txn, err));
    cx_remote_frame *frames = CX_ARENA_ARRAY(&txn->arena, cx_remote_frame, count);
    if (frames == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        frames[i] = frame_of(txn, i);
    cx_remote_request request = {
        .op = CX_REMOTE_TXN_COMMIT, .frames = frames, .frame_count = count};
    cx_remote_answer answer;
    CX_TRY(request_in_arena(txn->home, &request, &txn->arena, &answer, err));
    *out_commit = answer.commit;
    return CX_SUCCESS;
}

cx_status cx_remote_txn_commit(cx_txn *txn, uint64_t *out_commit, cx_err *err)
{
    cx_status status = send_commit(txn, out_commit, err);
    /* A transaction that was not sent stands open at the writer process; one that was has ended
     * there. */
    if (cx_failed(status))
        cx_remote_txn_abort(txn);
    return status;
}

void cx_remote_txn_abort(cx_txn *txn)
{
    cx_remote_request request = {.op = CX_REMOTE_TXN_ABORT};
    cx_remote_answer answer;
    /* A connection that broke has ended the transaction as well. */
    (void)request_small(txn->home, &request, &answer, NULL).code;
}
