/*
 * uri.c - new ids, names of actors and compactions (ledger.md §4.3).
 */
#include "memory/uri.h"

#include "base/api.h"

cx_status cx_memory_uri_parse(cx_str text, cx_uri *out, cx_err *err)
{
    cx_uri uri;
    CX_TRY(cx_uri_parse(text, &uri, err));
    if (uri.is_edge)
        return cx_fail_at(
            err, CX_E_FORMAT, "BadURI", CX_NO_OFFSET,
            "URI: it names an edge; expected matrix://cortex/<Type>/<ULID>#<version>");
    *out = uri;
    return CX_SUCCESS;
}

/* --- new ids --------------------------------------------------------------------------------- */

#define TIME_SIZE 6
#define TIME_MAX ((UINT64_C(1) << (8 * TIME_SIZE)) - 1)

static uint64_t id_time(const cx_id *id)
{
    uint64_t ms = 0;
    for (size_t i = 0; i < TIME_SIZE; i++)
        ms = ms << 8 | id->bytes[i];
    return ms;
}

/* The next one in byte order; false when there is none. */
static bool id_increment(cx_id *id)
{
    for (size_t i = sizeof id->bytes; i-- > 0;)
        if (++id->bytes[i] != 0)
            return true;
    return false;
}

cx_status cx_id_next(cx_id *last, const cx_io *io, cx_id *out, cx_err *err)
{
    uint64_t ms = io->wall_ns(io) / 1000000;
    cx_id id = *last;
    if (ms > TIME_MAX)
        ms = TIME_MAX;
    if (ms > id_time(last)) {
        for (size_t i = 0; i < TIME_SIZE; i++)
            id.bytes[i] = (uint8_t)(ms >> (8 * (TIME_SIZE - 1 - i)));
        int failed = io->random(io, id.bytes + TIME_SIZE, sizeof id.bytes - TIME_SIZE);
        if (failed != 0)
            return cx_fail_os(err, -failed, "cannot read random bytes for a new id");
    } else if (!id_increment(&id)) {
        return cx_fail_at(err, CX_E_LIMIT, "InvalidArgument", CX_NO_OFFSET,
                          "no ids are left after the last one");
    }
    *last = *out = id;
    return CX_SUCCESS;
}

/* One lock for the process: a new id is cheap compared with the sync that follows. */
static pthread_mutex_t id_mutex = PTHREAD_MUTEX_INITIALIZER;
static cx_id id_last;

cx_status cx_id_new(const cx_io *io, cx_id *out, cx_err *err)
{
    CX_ASSERT(pthread_mutex_lock(&id_mutex) == 0);
    cx_status status = cx_id_next(&id_last, io, out, err);
    CX_ASSERT(pthread_mutex_unlock(&id_mutex) == 0);
    return status;
}

/* --- names ----------------------------------------------------------------------------------- */

/* UTF-8 of 1..max bytes without controls (Unicode category Cc) and without `refused`. */
static bool is_name(cx_str text, size_t max, char refused)
{
    if (text.size == 0 || text.size > max || !cx_utf8_valid(text))
        return false;
    for (size_t i = 0, size; i < text.size; i += size) {
        uint32_t code = cx_utf8_decode((const uint8_t *)text.data + i, &size);
        if (code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == (uint8_t)refused)
            return false;
    }
    return true;
}

bool cx_actor_ok(cx_str actor)
{
    return is_name(actor, CX_ACTOR_NAME_MAX, '/');
}

bool cx_compact_name_ok(cx_str name)
{
    return is_name(name, CX_COMPACT_NAME_MAX, 0);
}

void cx_compact_uri_add(cx_str intent, cx_str step, cx_buf *out)
{
    cx_buf_add_z(out, "matrix://journal/logs/");
    cx_buf_add_str(out, intent);
    cx_buf_add_byte(out, '/');
    cx_buf_add_str(out, step);
}
