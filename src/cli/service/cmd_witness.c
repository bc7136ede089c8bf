/*
 * cmd_witness.c - `cortex witness`: cosigns checkpoints of other logs (C2SP tlog-witness).
 *
 *   T1  A checkpoint is on the disk before its cosignature is sent: after a crash nothing that was
 *       cosigned is forgotten, so that two that contradict each other are never cosigned.
 *   T2  One process serves a folder, and answers one request after another: reading the newest
 *       checkpoint and replacing it are one step.
 *   T3  A connection has ten seconds in all, and a header and a body have a limit.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "cli/ledger/ledger.h"
#include "cli/signer.h"
#include "os/api.h"
#include "proof/api.h"

#define HEAD_MAX 8192
#define CONNECTION_MS 10000
#define WAKE_MS 500
#define PATH_WORDS "/add-checkpoint"

static volatile sig_atomic_t end_requested;

static void on_end(int signal_number)
{
    (void)signal_number;
    end_requested = 1;
}

typedef struct witness {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *folder;
    cx_file lock;
    cx_cli_signer signer;
    cx_vkey key; /* of cosignatures */
    cx_vkey *logs;
    size_t log_count;
    int socket;
    cx_tcp_address address;
    uint64_t cosigned, refused;
} witness;

/* --- the newest checkpoint of each log -------------------------------------------------------- */

static cx_status stored_path(witness *w, cx_str origin, cx_arena *arena, const char **out,
                             cx_err *err)
{
    char hex[33] = "";
    cx_digest hash = cx_digest_of(cx_str_bytes(origin));
    cx_hex_encode(cx_bytes_from(hash.bytes, 16), hex);
    cx_str path = cx_arena_printf(arena, "%s/checkpoint-%s", w->folder, hex);
    *out = path.data;
    return path.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* A file that cannot be read is an error: it may be what forbids a cosignature. */
static cx_status read_stored(witness *w, const char *path, cx_buf *bytes, cx_checkpoint *out,
                             bool *out_found, cx_err *err)
{
    cx_status status = cx_io_read_file(w->cli->io, path, CX_NOTE_SIZE_MAX, bytes, err);
    *out_found = !cx_failed(status);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    return cx_checkpoint_parse(cx_buf_bytes(bytes), out, NULL, err);
}

/* --- one request ------------------------------------------------------------------------------ */

static void write_head(cx_buf *out, unsigned status, const char *type, size_t size)
{
    static const struct {
        unsigned status;
        const char *reason;
    } reasons[] = {{200, "OK"},
                   {400, "Bad Request"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {409, "Conflict"},
                   {411, "Length Required"},
                   {413, "Content Too Large"},
                   {422, "Unprocessable Entity"},
                   {500, "Internal Server Error"}};
    const char *reason = "";
    for (size_t i = 0; i < CX_COUNT_OF(reasons); i++)
        if (reasons[i].status == status)
            reason = reasons[i].reason;
    cx_buf_printf(out,
                  "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                  "Connection: close\r\n%s\r\n",
                  status, reason, type, size, status == 405 ? "Allow: POST\r\n" : "");
}

static void write_answer(cx_buf *out, unsigned status, const char *type, const cx_buf *body)
{
    write_head(out, status, type, body->size);
    cx_buf_add(out, body->data, body->size);
}

/* T1 */
static cx_status cosign(witness *w, const char *path, cx_bytes note, const cx_checkpoint *now,
                        cx_buf *body, cx_err *err)
{
    cx_buf text;
    cx_signature signature;
    uint64_t time_s = w->cli->io->wall_ns(w->cli->io) / UINT64_C(1000000000);
    CX_TRY(cx_io_replace_file(w->cli->io, path, note, err));
    cx_buf_init(&text, w->cli->alloc);
    cx_cosignature_text(now, time_s, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_cli_signer_sign(&w->signer, cx_buf_bytes(&text), &signature, err);
    cx_buf_done(&text);
    CX_TRY(status);
    cx_cosignature_line(&w->key, time_s, &signature, body);
    return cx_buf_check(body, err);
}

static cx_status judge_body(witness *w, cx_bytes request, cx_arena *arena, cx_buf *stored_bytes,
                            cx_witness_answer *out, cx_buf *body, cx_err *err)
{
    cx_checkpoint stored;
    cx_str origin;
    cx_err unused = {0};
    cx_witness_request read;
    const char *path = NULL;
    bool found = false;
    if (!cx_failed(cx_witness_origin(request, &origin, &unused))) {
        CX_TRY(stored_path(w, origin, arena, &path, err));
        CX_TRY(read_stored(w, path, stored_bytes, &stored, &found, err));
    }
    CX_TRY(
        cx_witness_judge(request, w->logs, w->log_count, found ? &stored : NULL, arena, out, err));
    if (out->status != 200)
        return CX_SUCCESS;
    CX_TRY(cx_witness_request_read(request, &read, err));
    return cosign(w, path, read.note, &out->checkpoint, body, err);
}

static void answer_body(witness *w, cx_bytes request, cx_buf *out)
{
    cx_arena arena;
    cx_buf body, stored;
    cx_witness_answer answer = {.status = 500};
    cx_err err = {0};
    cx_arena_init(&arena, w->cli->alloc, 0);
    cx_buf_init(&body, w->cli->alloc);
    cx_buf_init(&stored, w->cli->alloc);
    if (cx_failed(judge_body(w, request, &arena, &stored, &answer, &body, &err))) {
        cx_cli_complain("witness: %s", err.message);
        answer = (cx_witness_answer){.status = 500, .why = "the checkpoint could not be stored"};
        cx_buf_clear(&body);
    }
    w->cosigned += answer.status == 200;
    w->refused += answer.status != 200;
    if (answer.tell_size)
        cx_buf_printf(&body, "%llu\n", (unsigned long long)answer.size);
    else if (answer.status != 200)
        cx_buf_printf(&body, "%s\n", answer.why);
    write_answer(out, answer.status,
                 answer.tell_size ? "text/x.tlog.size" : "text/plain; charset=utf-8", &body);
    if (answer.status != 404 && answer.checkpoint.origin.size != 0)
        cx_cli_remark("%u %.*s %llu%s%s", answer.status, (int)answer.checkpoint.origin.size,
                      answer.checkpoint.origin.data, (unsigned long long)answer.checkpoint.size,
                      answer.why[0] == 0 ? "" : ": ", answer.why);
    cx_buf_done(&stored);
    cx_buf_done(&body);
    cx_arena_done(&arena);
}

/* --- HTTP (T3) -------------------------------------------------------------------------------- */

typedef struct connection {
    witness *w;
    cx_socket socket;
    uint64_t deadline_ns;
    cx_buf head, body, out;
} connection;

static cx_status read_bytes(connection *c, void *data, size_t size, cx_err *err)
{
    const cx_io *io = c->w->cli->io;
    uint64_t now = io->monotonic_ns(io);
    size_t got = 0;
    if (now >= c->deadline_ns)
        return cx_fail(err, CX_E_TIMEOUT, "the request took too long");
    uint32_t left_ms = (uint32_t)((c->deadline_ns - now) / 1000000) + 1;
    CX_TRY(cx_net_read(c->socket, data, size, left_ms, &got, err));
    return got == size ? CX_SUCCESS : cx_fail(err, CX_E_IO, "the connection was closed");
}

/* Up to the empty line; what follows stays in the socket. */
static cx_status read_head(connection *c, cx_err *err)
{
    while (c->head.size < 4 || memcmp(c->head.data + c->head.size - 4, "\r\n\r\n", 4) != 0) {
        uint8_t byte;
        if (c->head.size == HEAD_MAX)
            return cx_fail(err, CX_E_LIMIT, "the header is too long");
        CX_TRY(read_bytes(c, &byte, 1, err));
        cx_buf_add_byte(&c->head, byte);
        CX_TRY(cx_buf_check(&c->head, err));
    }
    return CX_SUCCESS;
}

static bool same_name(cx_str a, const char *lower)
{
    size_t size = strlen(lower);
    bool same = a.size == size;
    for (size_t i = 0; i < size && same; i++)
        same = (a.data[i] >= 'A' && a.data[i] <= 'Z' ? a.data[i] + ('a' - 'A') : a.data[i]) ==
               lower[i];
    return same;
}

/* What the header says of the body; a status other than 200 ends the request. */
static unsigned read_fields(cx_str head, size_t *out_size, bool *out_expects)
{
    bool has_length = false;
    *out_size = 0;
    *out_expects = false;
    for (;;) {
        const char *end = memchr(head.data, '\n', head.size);
        if (end == NULL)
            break;
        cx_str line = cx_str_from(head.data, (size_t)(end - head.data));
        head = cx_str_from(end + 1, head.size - line.size - 1);
        const char *colon = line.size == 0 ? NULL : memchr(line.data, ':', line.size);
        if (colon == NULL)
            continue;
        cx_str name = cx_str_from(line.data, (size_t)(colon - line.data));
        cx_str value = cx_str_from(colon + 1, line.size - name.size - 1);
        while (value.size != 0 && (value.data[0] == ' ' || value.data[0] == '\t'))
            value = cx_str_from(value.data + 1, value.size - 1);
        while (value.size != 0 &&
               (value.data[value.size - 1] == '\r' || value.data[value.size - 1] == ' '))
            value.size--;
        if (same_name(name, "transfer-encoding"))
            return 411;
        if (same_name(name, "expect"))
            *out_expects = true;
        if (!same_name(name, "content-length"))
            continue;
        if (has_length || value.size == 0 || value.size > 9)
            return value.size > 9 ? 413 : 400;
        for (size_t i = 0; i < value.size; i++) {
            if (value.data[i] < '0' || value.data[i] > '9')
                return 400;
            *out_size = *out_size * 10 + (size_t)(value.data[i] - '0');
        }
        has_length = true;
    }
    return !has_length ? 411 : *out_size > CX_WITNESS_BODY_MAX ? 413 : 200;
}

static unsigned read_request_line(cx_str head)
{
    static const char post[] = "POST " PATH_WORDS " HTTP/1.", any[] = " " PATH_WORDS " HTTP/1.";
    const char *end = memchr(head.data, '\n', head.size);
    cx_str line = cx_str_from(head.data, end == NULL ? 0 : (size_t)(end - head.data));
    if (cx_str_starts(line, cx_str_z(post)))
        return 200;
    return line.size != 0 && memmem(line.data, line.size, any, sizeof any - 1) != NULL ? 405 : 404;
}

static cx_status serve_connection(connection *c, cx_err *err)
{
    static const char proceed[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t size = 0;
    bool expects = false;
    CX_TRY(read_head(c, err));
    cx_str head = cx_buf_str(&c->head);
    unsigned status = read_request_line(head);
    if (status == 200)
        status = read_fields(head, &size, &expects);
    if (status == 200) {
        if (expects)
            CX_TRY(cx_net_write(c->socket, proceed, sizeof proceed - 1, CONNECTION_MS, err));
        uint8_t *room = cx_buf_reserve(&c->body, size + 1);
        if (room == NULL)
            return cx_fail_nomem(err);
        if (size != 0)
            CX_TRY(read_bytes(c, room, size, err));
        answer_body(c->w, cx_bytes_from(room, size), &c->out);
    } else {
        cx_buf nothing;
        cx_buf_init(&nothing, c->w->cli->alloc);
        write_answer(&c->out, status, "text/plain; charset=utf-8", &nothing);
    }
    CX_TRY(cx_buf_check(&c->out, err));
    return cx_net_write(c->socket, c->out.data, c->out.size, CONNECTION_MS, err);
}

static cx_status accept_one(witness *w, cx_err *err)
{
    const cx_listener listener = {w->socket, CX_SOCKET_NONE};
    const cx_io *io = w->cli->io;
    connection c = {.w = w};
    cx_err unused = {0};
    bool stopped = false;
    if (cx_net_wait(w->socket, NULL, WAKE_MS) != CX_NET_READY)
        return CX_SUCCESS;
    CX_TRY(cx_net_accept(&listener, &c.socket, &stopped, err));
    c.deadline_ns = io->monotonic_ns(io) + CONNECTION_MS * UINT64_C(1000000);
    cx_buf_init(&c.head, w->cli->alloc);
    cx_buf_init(&c.body, w->cli->alloc);
    cx_buf_init(&c.out, w->cli->alloc);
    cx_status ignored = serve_connection(&c, &unused); /* the sender's own trouble */
    (void)ignored;
    cx_net_close(c.socket);
    cx_buf_done(&c.out);
    cx_buf_done(&c.body);
    cx_buf_done(&c.head);
    return CX_SUCCESS;
}

/* --- the command ------------------------------------------------------------------------------ */

/* A bare key has no origin that it is of. */
static cx_status read_logs(witness *w, cx_err *err)
{
    const cx_cli_given *given = NULL;
    w->logs = CX_ARENA_ARRAY(&w->cli->arena, cx_vkey, w->args->given_count + 1);
    if (w->logs == NULL)
        return cx_fail_nomem(err);
    while ((given = cx_cli_next(w->args, "log", given)) != NULL) {
        cx_vkey *log = &w->logs[w->log_count++];
        CX_TRY(cx_cli_read_key(w->cli, "option --log", given->values[0], log, err));
        if (log->name.size == 0 || log->algorithm != CX_VKEY_NOTE)
            return cx_fail(err, CX_E_USAGE,
                           "option --log: expected a verifier key NAME+ID+BASE64 of a log, whose "
                           "name is the origin of its checkpoints ('cortex key show')");
    }
    return w->log_count != 0 ? CX_SUCCESS
                             : cx_fail(err, CX_E_USAGE, "expected --log KEY, the key of a log");
}

static cx_status open_witness(witness *w, cx_err *err)
{
    const char *listen = cx_cli_value(w->args, "listen");
    w->folder = cx_cli_value(w->args, "dir");
    if (w->folder == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "expected --dir DIR, the folder of what was cosigned: keep it, without it "
                       "the witness could contradict itself");
    CX_TRY(read_logs(w, err));
    CX_TRY(cx_tcp_address_parse(listen == NULL ? "127.0.0.1:8421" : listen, &w->address, err));
    CX_TRY(cx_cli_signer_open_key(w->cli, w->args, &w->signer, err));
    if (w->signer.name.size == 0)
        return cx_fail(err, CX_E_USAGE,
                       "the witness needs a key with a name; see 'cortex key new'");
    cx_vkey_make(w->signer.name, CX_VKEY_COSIGNATURE, &w->signer.key, &w->key);
    CX_TRY(cx_path_make_folders(w->folder, err));
    cx_str lock = cx_arena_printf(&w->cli->arena, "%s/lock", w->folder);
    if (lock.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_flock_acquire(lock.data, 0, &w->lock, err));
    return cx_tcp_listen(&w->address, &w->socket, err);
}

static cx_status announce(witness *w, cx_err *err)
{
    const char *form = w->address.is_v6 ? "http://[%s]:%u" : "http://%s:%u";
    cx_buf line;
    cx_str url = cx_arena_printf(&w->cli->arena, form, w->address.host, (unsigned)w->address.port);
    if (url.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&line, w->cli->alloc);
    if (cx_cli_has(w->args, "json")) {
        cx_buf key;
        cx_buf_init(&key, w->cli->alloc);
        cx_vkey_add(&w->key, &key);
        cx_buf_add_z(&line, "{\"key\":");
        cx_cli_add_json_text(&line, cx_buf_str(&key));
        cx_buf_printf(&line, ",\"url\":\"%s\"}\n", url.data);
        line.failed = line.failed || key.failed;
        cx_buf_done(&key);
    } else {
        cx_buf_printf(&line,
                      "witness listens on %s; its key, for 'checkpoint --witness URL=KEY':\n",
                      url.data);
        cx_vkey_add(&w->key, &line);
        cx_buf_add_byte(&line, '\n');
    }
    cx_status status = cx_buf_check(&line, err);
    if (!cx_failed(status))
        cx_cli_out_write(&w->cli->out, cx_buf_str(&line));
    cx_buf_done(&line);
    return status;
}

static int run_witness(cx_cli *cli, const cx_cli_args *args)
{
    witness w = {.cli = cli, .args = args, .lock = CX_FILE_NONE, .socket = -1};
    struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
    cx_err err = {0};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    cx_status status = open_witness(&w, &err);
    if (!cx_failed(status))
        status = announce(&w, &err);
    while (!end_requested && !cx_failed(status))
        status = accept_one(&w, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err) : CX_EXIT_HOLDS;
    if (w.socket >= 0)
        cx_tcp_close(w.socket);
    cx_flock_release(w.lock);
    cx_cli_signer_done(&w.signer);
    return code;
}

static const cx_cli_option options[] = {
    CX_CLI_OPT("dir", 0, CX_CLI_FILE, "DIR",
               "The folder with the newest checkpoint that was cosigned for each log; created."),
    CX_CLI_OPT_MANY("log", 0, CX_CLI_TEXT, "KEY",
                    "The verifier key of a log that is cosigned; may be repeated."),
    CX_CLI_OPTIONS_SIGNER_KEY,
    CX_CLI_OPT("listen", 0, CX_CLI_TEXT, "ADDR:PORT",
               "Where to listen; default 127.0.0.1:8421. Port 0 selects a free port."),
    CX_CLI_OPT_FLAG("json", 0, "Print URL and key as one line of JSON."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_witness = {
    .name = "witness",
    .purpose = "cosign checkpoints of other logs",
    .about =
        "Answers POST /add-checkpoint (C2SP tlog-witness): a checkpoint that a known log "
        "signed, and that extends the newest one cosigned for it, is stored and cosigned; any "
        "other is refused. A reader who trusts this witness then knows that the log showed it no "
        "other history. It speaks HTTP; put a proxy with TLS in front of it.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 stopped by a signal\n2 usage error\n3 the folder, the key or the address could not "
             "be used",
    .example = "cortex witness --key witness.key --log 'example.com/log+..' --dir ~/witness",
    .run = run_witness,
};
