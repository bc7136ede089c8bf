/*
 * session.c - creates, finds and ends browser sessions.
 *
 *   N1  A session is looked up by digest, so the duration reveals nothing about its text.
 */
#include "server/session.h"

#include <string.h>

#include "base/api.h"
#include "crypto/api.h"
#include "json/api.h"
#include "trace/api.h"

#define SECOND_NS UINT64_C(1000000000)
#define FORMAT "cortex-sessions-1"
#define FILE_MAX ((size_t)256 << 10)

void cx_sessions_init(cx_sessions *sessions, const cx_io *io)
{
    memset(sessions, 0, sizeof *sessions);
    sessions->io = io;
    cx_lock_init(&sessions->file_lock);
    cx_lock_init(&sessions->lock);
}

void cx_sessions_done(cx_sessions *sessions)
{
    cx_lock_done(&sessions->lock);
    cx_lock_done(&sessions->file_lock);
}

/* --- under the lock --------------------------------------------------------------------------- */

static void drop_session(cx_sessions *sessions, size_t at)
{
    sessions->items[at] = sessions->items[--sessions->count];
}

static void drop_expired(cx_sessions *sessions, uint64_t now_ns)
{
    for (size_t i = sessions->count; i-- > 0;)
        if (sessions->items[i].ends_ns <= now_ns)
            drop_session(sessions, i);
}

static void drop_least_used(cx_sessions *sessions)
{
    size_t least = 0;
    for (size_t i = 1; i < sessions->count; i++)
        if (sessions->items[i].used_ns < sessions->items[least].used_ns)
            least = i;
    drop_session(sessions, least);
}

/* N1; CX_SESSIONS_MAX when there is no such session. */
static size_t find_session(const cx_sessions *sessions, cx_str text)
{
    cx_digest id = cx_digest_of(cx_str_bytes(text));
    for (size_t i = 0; i < sessions->count; i++)
        if (cx_digest_eq(&sessions->items[i].id, &id))
            return i;
    return CX_SESSIONS_MAX;
}

/* --- the file --------------------------------------------------------------------------------- */

/* The clock of a process says nothing to another one: what is left is counted by the wall's. */
static bool read_session(const cx_sessions *sessions, const cx_json *object, uint64_t now_ns,
                         cx_session *out)
{
    cx_str id = CX_JSON_GET_STR(object, "id"), token = CX_JSON_GET_STR(object, "token");
    cx_str ends = CX_JSON_GET_STR(object, "ends_at");
    int64_t ends_ns, wall_ns = (int64_t)sessions->io->wall_ns(sessions->io);
    bool naive;
    if (id.data == NULL || token.data == NULL || ends.data == NULL ||
        !cx_digest_parse(id, &out->id) || !cx_digest_parse(token, &out->token) ||
        !cx_trace_time_parse(ends, &ends_ns, &naive))
        return false;
    int64_t left_ns = ends_ns > wall_ns ? ends_ns - wall_ns : 0;
    const int64_t most_ns = (int64_t)(CX_SESSION_SECONDS * SECOND_NS);
    out->used_ns = now_ns;
    out->ends_ns = now_ns + (uint64_t)(left_ns < most_ns ? left_ns : most_ns);
    return true;
}

static cx_status parse_sessions(cx_sessions *sessions, cx_str text, cx_arena *arena, cx_err *err)
{
    cx_json root;
    uint64_t now_ns = sessions->io->monotonic_ns(sessions->io);
    CX_TRY(cx_json_parse_text(text, arena, &root, err));
    const cx_json *list = cx_json_get_typed(&root, CX_STR("sessions"), CX_JSON_ARRAY);
    bool reads = list != NULL && cx_str_is(CX_JSON_GET_STR(&root, "format"), FORMAT) &&
                 list->count <= CX_SESSIONS_MAX;
    size_t count = 0;
    for (; reads && count < list->count; count++)
        reads = read_session(sessions, &list->items[count], now_ns, &sessions->items[count]);
    if (!reads)
        return cx_fail_at(err, CX_E_FORMAT, "BadSessions", CX_NO_OFFSET,
                          "sessions.json is not of format " FORMAT);
    sessions->count = count;
    drop_expired(sessions, now_ns);
    return CX_SUCCESS;
}

cx_status cx_sessions_keep(cx_sessions *sessions, const char *path, cx_err *err)
{
    cx_arena arena;
    cx_buf text;
    sessions->path = path;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_io_read_file(sessions->io, path, FILE_MAX, &text, err);
    if (!cx_failed(status))
        status = parse_sessions(sessions, cx_buf_str(&text), &arena, err);
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

static void put_session(cx_json_list *list, const cx_session *session, int64_t ends_ns)
{
    cx_json_list json = cx_json_list_begin(list->arena);
    char ends[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(ends_ns, ends);
    cx_json_put_str(&json, "ends_at", cx_arena_copy_str(list->arena, cx_str_z(ends)));
    cx_json_put_digest(&json, "id", &session->id);
    cx_json_put_digest(&json, "token", &session->token);
    cx_json_add_object(list, &json);
}

static cx_status write_text(cx_sessions *sessions, cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_json_list root = cx_json_list_begin(arena), list = cx_json_list_begin(arena);
    cx_json value;
    cx_lock_enter(&sessions->lock);
    uint64_t now_ns = sessions->io->monotonic_ns(sessions->io);
    int64_t wall_ns = (int64_t)sessions->io->wall_ns(sessions->io);
    drop_expired(sessions, now_ns);
    for (size_t i = 0; i < sessions->count; i++)
        put_session(&list, &sessions->items[i],
                    wall_ns + (int64_t)(sessions->items[i].ends_ns - now_ns));
    cx_lock_leave(&sessions->lock);
    cx_json_put_z(&root, "format", FORMAT);
    cx_json_put_array(&root, "sessions", &list);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

/* What is found in memory is never waited for while this is written. */
static cx_status store_sessions(cx_sessions *sessions, cx_err *err)
{
    cx_arena arena;
    cx_buf text;
    if (sessions->path == NULL)
        return CX_SUCCESS;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_lock_enter(&sessions->file_lock);
    cx_status status = write_text(sessions, &arena, &text, err);
    if (!cx_failed(status))
        status = cx_io_replace_private_file(sessions->io, sessions->path, cx_buf_bytes(&text), err);
    cx_lock_leave(&sessions->file_lock);
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return status;
}

/* --- from outside ----------------------------------------------------------------------------- */

static void forget_session(cx_sessions *sessions, cx_str text)
{
    cx_lock_enter(&sessions->lock);
    size_t at = find_session(sessions, text);
    if (at != CX_SESSIONS_MAX)
        drop_session(sessions, at);
    cx_lock_leave(&sessions->lock);
}

cx_status cx_sessions_begin(cx_sessions *sessions, const cx_digest *token,
                            char out_text[CX_SESSION_TEXT_SIZE + 1], cx_err *err)
{
    uint8_t random[32];
    cx_buf text;
    int failed = sessions->io->random(sessions->io, random, sizeof random);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes");
    cx_buf_init(&text, cx_alloc_default());
    cx_base64_add(&text, cx_bytes_from(random, sizeof random), CX_BASE64_URL);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        CX_ASSERT(text.size == CX_SESSION_TEXT_SIZE);
        memcpy(out_text, text.data, CX_SESSION_TEXT_SIZE);
        out_text[CX_SESSION_TEXT_SIZE] = 0;
        uint64_t now_ns = sessions->io->monotonic_ns(sessions->io);
        cx_lock_enter(&sessions->lock);
        drop_expired(sessions, now_ns);
        if (sessions->count == CX_SESSIONS_MAX)
            drop_least_used(sessions);
        sessions->items[sessions->count++] =
            (cx_session){.id = cx_digest_of(cx_buf_bytes(&text)),
                         .token = *token,
                         .ends_ns = now_ns + CX_SESSION_SECONDS * SECOND_NS,
                         .used_ns = now_ns};
        cx_lock_leave(&sessions->lock);
    }
    if (!cx_failed(status))
        status = store_sessions(sessions, err);
    if (cx_failed(status) && text.size != 0)
        forget_session(sessions, cx_buf_str(&text));
    cx_buf_done(&text);
    return status;
}

bool cx_sessions_find(cx_sessions *sessions, cx_str text, cx_digest *out_token)
{
    uint64_t now_ns = sessions->io->monotonic_ns(sessions->io);
    cx_lock_enter(&sessions->lock);
    size_t at = find_session(sessions, text);
    bool found = at != CX_SESSIONS_MAX && now_ns < sessions->items[at].ends_ns;
    if (found) {
        sessions->items[at].used_ns = now_ns;
        *out_token = sessions->items[at].token;
    }
    cx_lock_leave(&sessions->lock);
    return found;
}

cx_status cx_sessions_end(cx_sessions *sessions, cx_str text, cx_err *err)
{
    forget_session(sessions, text);
    return store_sessions(sessions, err);
}

cx_str cx_session_cookie(cx_str header, const char *name)
{
    size_t name_size = strlen(name), at = 0;
    while (at < header.size) {
        while (at < header.size && (header.data[at] == ' ' || header.data[at] == ';'))
            at++;
        size_t end = at;
        while (end < header.size && header.data[end] != ';')
            end++;
        if (end - at > name_size && header.data[at + name_size] == '=' &&
            memcmp(header.data + at, name, name_size) == 0)
            return cx_str_from(header.data + at + name_size + 1, end - at - name_size - 1);
        at = end;
    }
    return (cx_str){NULL, 0};
}
