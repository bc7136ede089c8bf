/*
 * session.c - creates, finds and ends browser sessions.
 *
 *   N1  A session is looked up by digest, so the duration reveals nothing about its text.
 */
#include "server/session.h"

#include <string.h>

#include "base/api.h"
#include "crypto/api.h"

#define SECOND_NS UINT64_C(1000000000)

void cx_sessions_init(cx_sessions *sessions, const cx_io *io)
{
    memset(sessions, 0, sizeof *sessions);
    sessions->io = io;
    cx_lock_init(&sessions->lock);
}

void cx_sessions_done(cx_sessions *sessions)
{
    cx_lock_done(&sessions->lock);
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

/* --- from outside ----------------------------------------------------------------------------- */

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

void cx_sessions_end(cx_sessions *sessions, cx_str text)
{
    cx_lock_enter(&sessions->lock);
    size_t at = find_session(sessions, text);
    if (at != CX_SESSIONS_MAX)
        drop_session(sessions, at);
    cx_lock_leave(&sessions->lock);
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
