/*
 * calls.h - a home in a temporary folder, with an actor's memories, a clock and ids that can be
 * foretold.
 */
#ifndef CX_TESTS_MEMORY_CALLS_H
#define CX_TESTS_MEMORY_CALLS_H

#include <stdatomic.h>

#include "memory/internal.h"
#include "tests/support/folder.h"
#include "tests/support/scenario.h"
#include "tests/unit/memory/fixture.h"

typedef struct calls {
    cx_arena arena;
    cx_buf buf;
    cx_err err;
    char path[FOLDER_PATH_SIZE];
    cx_home *home;
    cx_memory *memory;
    _Atomic int64_t clock; /* each reading moves it by `tick` first */
    int64_t tick;
    atomic_uint reads;
    atomic_ullong ids;
} calls;

static inline int64_t calls_now(void *arg)
{
    calls *kit = arg;
    atomic_fetch_add(&kit->reads, 1);
    return atomic_fetch_add(&kit->clock, kit->tick) + kit->tick;
}

static inline cx_status calls_new_id(void *arg, cx_id *out, cx_err *err)
{
    calls *kit = arg;
    (void)err;
    *out = fixture_id(atomic_fetch_add(&kit->ids, 1) + 1);
    return CX_SUCCESS;
}

static inline cx_home_options calls_home_options(void)
{
    return (cx_home_options){
        .segment_bytes = 1 << 20, .derivers = &cx_memory_deriver, .deriver_count = 1};
}

static inline cx_memory_options calls_options(calls *kit)
{
    return (cx_memory_options){
        .now_ns = calls_now, .now_arg = kit, .new_id = calls_new_id, .new_id_arg = kit};
}

/* Opens what is at kit->path. */
static inline bool calls_open(calls *kit, const char *actor)
{
    cx_home_options options = calls_home_options();
    cx_memory_options own = calls_options(kit);
    cx_status status = cx_home_open(kit->path, &options, &kit->home, &kit->err);
    if (!cx_failed(status))
        status = cx_memory_open(kit->home, cx_str_z(actor), &own, &kit->memory, &kit->err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "opening the home: %s", kit->err.message);
    return !cx_failed(status);
}

static inline void calls_shut(calls *kit)
{
    cx_memory_close(kit->memory);
    kit->memory = NULL;
    if (kit->home != NULL)
        CHECK_STATUS(cx_home_close(kit->home, &kit->err), &kit->err);
    kit->home = NULL;
}

static inline bool calls_init(calls *kit, const char *name, const char *actor, cx_scheme scheme)
{
    cx_home_options options = calls_home_options();
    memset(kit, 0, sizeof *kit);
    cx_arena_init(&kit->arena, cx_alloc_default(), 0);
    cx_buf_init(&kit->buf, cx_alloc_default());
    atomic_store(&kit->clock, SCENARIO_START_NS);
    kit->tick = SCENARIO_TICK_NS;
    folder_fresh(kit->path, name);
    cx_status status = cx_home_create(kit->path, scheme, &options, &kit->err);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "making a home: %s", kit->err.message);
        return false;
    }
    return calls_open(kit, actor);
}

static inline void calls_done(calls *kit)
{
    calls_shut(kit);
    folder_remove(kit->path);
    cx_buf_done(&kit->buf);
    cx_arena_done(&kit->arena);
}

/* --- short forms ------------------------------------------------------------------------------ */

static inline uint64_t calls_entries(calls *kit)
{
    cx_actor_info info;
    return cx_failed(cx_home_actor(kit->home, cx_memory_actor(kit->memory), &info, NULL))
               ? 0
               : info.entry_count;
}

/* Canonical data from JSON with the names of §4.1. */
static inline cx_bytes calls_data(calls *kit, uint8_t type, const char *json)
{
    cx_json value;
    cx_data data;
    cx_buf_clear(&kit->buf);
    cx_status status = cx_json_parse_text(cx_str_z(json), &kit->arena, &value, &kit->err);
    if (!cx_failed(status))
        status = cx_data_from_json(type, &value, &kit->arena, &data, &kit->err);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "%s: %s", json, kit->err.message);
        return (cx_bytes){NULL, 0};
    }
    cx_data_encode(&data, &kit->buf);
    return cx_str_bytes(cx_arena_copy_str(&kit->arena, cx_buf_str(&kit->buf)));
}

static inline cx_bytes calls_fact(calls *kit, const char *statement)
{
    char json[4096];
    (void)snprintf(json, sizeof json,
                   "{\"statement\":\"%s\",\"subject\":\"s\",\"predicate\":\"p\"}", statement);
    return calls_data(kit, CX_TYPE_FACT, json);
}

static inline cx_uri calls_write(calls *kit, const cx_memory_write *write)
{
    cx_uri uri = {0};
    CHECK_STATUS(cx_memory_write_new(kit->memory, write, &uri, &kit->err), &kit->err);
    return uri;
}

static inline cx_uri calls_write_fact(calls *kit, const char *statement)
{
    const cx_memory_write write = {.type = CX_TYPE_FACT, .data = calls_fact(kit, statement)};
    return calls_write(kit, &write);
}

static inline cx_str calls_uri(calls *kit, const cx_uri *uri)
{
    cx_buf_clear(&kit->buf);
    cx_uri_add(uri, &kit->buf);
    return cx_arena_copy_str(&kit->arena, cx_buf_str(&kit->buf));
}

static inline cx_memory_view calls_latest(calls *kit, const cx_id *id)
{
    cx_memory_view view = {0};
    CHECK_STATUS(cx_memory_resolve_latest(kit->memory, id, &kit->arena, &view, &kit->err),
                 &kit->err);
    return view;
}

static inline cx_digest calls_root(calls *kit)
{
    cx_roots roots = {0};
    CHECK_STATUS(cx_home_roots(kit->home, cx_memory_actor(kit->memory), &roots, &kit->err),
                 &kit->err);
    return roots.overall;
}

static inline bool calls_same(const cx_id *a, const cx_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* A record's bytes, empty when there is none (or it is empty). */
static inline cx_bytes calls_record(calls *kit, const cx_memory_key *key)
{
    cx_bytes value = {NULL, 0};
    bool found = false;
    CHECK_STATUS(cx_home_get(kit->home, cx_memory_actor(kit->memory), cx_memory_key_bytes(key),
                             &kit->arena, &value, &found, &kit->err),
                 &kit->err);
    return found ? value : (cx_bytes){NULL, 0};
}

/* All records under a prefix as text: hex of key and value, a line each. */
static inline cx_status calls_dump_row(void *arg, cx_bytes key, cx_bytes value, bool *stop,
                                       cx_err *err)
{
    cx_buf *out = arg;
    (void)stop;
    (void)err;
    cx_hex_add(out, key);
    cx_buf_add_z(out, " ");
    cx_hex_add(out, value);
    cx_buf_add_z(out, "\n");
    return CX_SUCCESS;
}

static inline void calls_dump(calls *kit, const char *prefix, cx_buf *out)
{
    const cx_scan scan = {.actor = cx_memory_actor(kit->memory),
                          .prefix = cx_str_bytes(cx_str_z(prefix)),
                          .row = calls_dump_row,
                          .arg = out};
    CHECK_STATUS(cx_home_scan(kit->home, &scan, &kit->err), &kit->err);
}

/* The call fails with that tag and changes nothing: no entry, no clock reading. */
#define CHECK_REFUSED(kit, expression, expected_tag)       \
    do {                                                   \
        uint64_t entries_ = calls_entries(kit);            \
        unsigned reads_ = atomic_load(&(kit)->reads);      \
        cx_err before_ = (kit)->err;                       \
        (void)before_;                                     \
        memset(&(kit)->err, 0, sizeof(kit)->err);          \
        CHECK(cx_failed(expression));                      \
        CHECK_STR(fixture_tag(&(kit)->err), expected_tag); \
        CHECK((kit)->err.message[0] != 0);                 \
        CHECK_INT(calls_entries(kit), entries_);           \
        CHECK_INT(atomic_load(&(kit)->reads), reads_);     \
    } while (0)

#endif
