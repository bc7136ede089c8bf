/*
 * remote_kit.h - what the tests of homes with another writer share: a writer with its clients in
 * one process, and a client that speaks by hand.
 */
#ifndef CX_TESTS_REMOTE_KIT_H
#define CX_TESTS_REMOTE_KIT_H

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "os/net.h"
#include "base/thread.h"
#include "socket/remote.h"
#include "socket/remote_wire.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

/* A slow machine may take longer than TURN_MS to make a message of 72 MB inside a turn. */
enum { TURN_MS = 2000, SHORT_MS = 150, SLOW_TURN_MS = 60000 };

#define CHECK_FAILS(expression, err_, expected_code, expected_tag)               \
    do {                                                                         \
        memset(&(err_), 0, sizeof(err_));                                        \
        CHECK_INT((expression).code, expected_code);                             \
        CHECK_STR(cx_str_z((err_).tag == NULL ? "" : (err_).tag), expected_tag); \
    } while (0)

/* Two homes with the same contents need the same random bytes, too. */
static inline int no_random(const cx_io *io, void *data, size_t size)
{
    (void)io;
    memset(data, 0x5a, size);
    return 0;
}

static inline const cx_io *foretold_io(void)
{
    static cx_io io;
    if (io.random == NULL) {
        io = *cx_io_system();
        io.random = no_random;
    }
    return &io;
}

/* --- a home that is held, and a client of it -------------------------------------------------- */

typedef struct held {
    char path[FOLDER_PATH_SIZE];
    char socket[FOLDER_PATH_SIZE + 16];
    cx_home *home;
    cx_remote *remote;
    cx_arena arena;
    cx_err err;
} held;

static inline cx_home_options options_of(bool client)
{
    cx_home_options options = kit_options();
    options.io = foretold_io();
    options.or_remote = client;
    options.answer_timeout_ms = 20000;
    return options;
}

static inline bool serve(held *h, uint32_t turn_ms, unsigned clients)
{
    const cx_remote_options options = {.txn_timeout_ms = turn_ms, .clients_max = clients};
    CHECK_STATUS(cx_home_serve_begin(h->home, &options, &h->remote, &h->err), &h->err);
    return h->remote != NULL;
}

static inline bool hold_unserved(held *h, const char *name)
{
    const cx_home_options options = options_of(false);
    memset(h, 0, sizeof *h);
    cx_arena_init(&h->arena, cx_alloc_default(), 0);
    folder_fresh(h->path, name);
    (void)snprintf(h->socket, sizeof h->socket, "%s/socket", h->path);
    CHECK_STATUS(cx_home_create(h->path, CX_SCHEME_CORTEX_1, &options, &h->err), &h->err);
    CHECK_STATUS(cx_home_open(h->path, &options, &h->home, &h->err), &h->err);
    return h->home != NULL;
}

static inline bool hold(held *h, const char *name)
{
    return hold_unserved(h, name) && serve(h, TURN_MS, 0);
}

static inline void release(held *h)
{
    cx_home_serve_end(h->remote);
    CHECK_STATUS(cx_home_close(h->home, &h->err), &h->err);
    cx_arena_done(&h->arena);
    folder_remove(h->path);
}

static inline cx_home *join(held *h)
{
    const cx_home_options options = options_of(true);
    cx_home *home = NULL;
    CHECK_STATUS(cx_home_open(h->path, &options, &home, &h->err), &h->err);
    CHECK(home != NULL && cx_home_is_remote(home));
    return home;
}

static inline void leave(cx_home *home)
{
    cx_err err = {0};
    CHECK_STATUS(cx_home_close(home, &err), &err);
}

static inline cx_status append(cx_home *home, const char *actor, const char *text, cx_err *err)
{
    const cx_entry_draft draft = {.kind = CX_STR("test.said"),
                                  .created_at_ns = 1,
                                  .payload = cx_bytes_from(text, strlen(text))};
    cx_txn *txn = NULL;
    CX_TRY(cx_txn_begin(home, cx_str_z(actor), &txn, err));
    cx_status status = cx_txn_entry(txn, &draft, NULL, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    return cx_txn_commit(txn, err);
}

static inline uint64_t entries(cx_home *home, const char *actor)
{
    cx_actor_info info = {0};
    cx_err err = {0};
    cx_status status = cx_home_actor(home, cx_str_z(actor), &info, &err);
    return cx_failed(status) ? 0 : info.entry_count;
}

/* --- a client that speaks by hand ------------------------------------------------------------- */

typedef struct raw {
    cx_socket socket;
    cx_arena arena;
    cx_buf out;
    uint64_t number;
} raw;

static inline bool raw_connect(raw *r, const held *h)
{
    cx_err err = {0};
    *r = (raw){.socket = CX_SOCKET_NONE};
    cx_arena_init(&r->arena, cx_alloc_default(), 0);
    cx_buf_init(&r->out, cx_alloc_default());
    CHECK_STATUS(cx_net_connect(h->socket, &r->socket, &err), &err);
    return r->socket >= 0;
}

static inline void raw_close(raw *r)
{
    cx_net_close(r->socket);
    cx_arena_done(&r->arena);
    cx_buf_done(&r->out);
}

static inline bool raw_send(raw *r, const void *data, size_t size)
{
    return !cx_failed(cx_net_write(r->socket, data, size, 5000, NULL));
}

static inline bool raw_greet(raw *r)
{
    uint8_t greeting[CX_REMOTE_GREETING_SIZE];
    size_t got = 0;
    cx_remote_greeting(greeting);
    return raw_send(r, greeting, sizeof greeting) &&
           !cx_failed(cx_net_read(r->socket, greeting, sizeof greeting, 5000, &got, NULL)) &&
           got == sizeof greeting;
}

static inline bool raw_message(raw *r, const void *data, size_t size)
{
    uint8_t head[4];
    for (unsigned i = 0; i < 4; i++)
        head[i] = (uint8_t)(size >> (8 * (3 - i)));
    return raw_send(r, head, sizeof head) && raw_send(r, data, size);
}

static inline bool raw_request(raw *r, cx_remote_request *request)
{
    request->number = ++r->number;
    cx_buf_clear(&r->out);
    cx_remote_request_encode(request, &r->out);
    return raw_message(r, r->out.data, r->out.size);
}

/* False at the end of the connection. */
static inline bool raw_answer(raw *r, cx_remote_op op, cx_remote_answer *out)
{
    uint8_t head[4];
    size_t got = 0;
    cx_err err = {0};
    if (cx_failed(cx_net_read(r->socket, head, 4, 5000, &got, NULL)) || got != 4)
        return false;
    size_t size = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    uint8_t *bytes = cx_arena_push(&r->arena, size, 1);
    if (cx_failed(cx_net_read(r->socket, bytes, size, 5000, &got, NULL)) || got != size)
        return false;
    CHECK_STATUS(cx_remote_answer_decode(cx_bytes_from(bytes, size), op, &r->arena, out, &err),
                 &err);
    return true;
}

static inline bool raw_ask(raw *r, cx_remote_request request, cx_remote_answer *out)
{
    *out = (cx_remote_answer){.number = UINT64_MAX};
    return raw_request(r, &request) && raw_answer(r, request.op, out);
}

static inline bool raw_hello(raw *r, const held *h)
{
    cx_remote_answer answer;
    const cx_remote_request hello = {.op = CX_REMOTE_HELLO,
                                     .derivers = cx_str_bytes(cx_str_z(cx_memory_deriver.name))};
    bool good = raw_connect(r, h) && raw_greet(r) && raw_ask(r, hello, &answer) && !answer.failed;
    CHECK(good);
    return good;
}

static inline bool raw_begin(raw *r, const char *actor)
{
    cx_remote_answer answer;
    const cx_remote_request begin = {.op = CX_REMOTE_TXN_BEGIN,
                                     .actor = cx_str_bytes(cx_str_z(actor))};
    bool good = raw_ask(r, begin, &answer) && !answer.failed;
    CHECK(good);
    return good;
}

#endif
