/*
 * test_calls_threads.c - many callers at once (ledger.md §14: 1, 2).
 */
#include "base/thread.h"
#include "tests/unit/memory/calls.h"

#define CALLERS 40

typedef struct crowd {
    calls kit;
    cx_uri uri;
    cx_bytes data;
    bool retry;
    atomic_uint done, conflicts, others;
} crowd;

static bool crowd_init(crowd *c, const char *name, cx_scheme scheme)
{
    memset(c, 0, sizeof *c);
    if (!calls_init(&c->kit, name, "andrew", scheme))
        return false;
    c->uri = calls_write_fact(&c->kit, "one");
    c->data = calls_fact(&c->kit, "next");
    return true;
}

static void note(crowd *c, cx_status status, const cx_err *err)
{
    if (!cx_failed(status))
        atomic_fetch_add(&c->done, 1);
    else if (cx_str_is(fixture_tag(err), "VersionConflict"))
        atomic_fetch_add(&c->conflicts, 1);
    else
        atomic_fetch_add(&c->others, 1);
}

static void update(void *arg, unsigned index)
{
    crowd *c = arg;
    const cx_memory_update how = {.data = c->data};
    cx_uri uri = c->uri, next;
    cx_err err = {0};
    (void)index;
    for (;;) {
        cx_status status = cx_memory_update_at(c->kit.memory, &uri, &how, &next, &err);
        note(c, status, &err);
        if (!c->retry || status.code != CX_E_CONFLICT)
            return;
        cx_arena arena;
        cx_memory_view view;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        status = cx_memory_resolve_latest(c->kit.memory, &uri.id, &arena, &view, &err);
        if (!cx_failed(status))
            uri.version = view.head.current_version;
        cx_arena_done(&arena);
    }
}

/* §14.1 */
/* M1 */
CX_TEST(updates_of_one_version_at_once)
{
    crowd c;
    if (!crowd_init(&c, "once", CX_SCHEME_CORTEX_1))
        return;
    cx_thread_team(CALLERS, update, &c);
    CHECK_INT(atomic_load(&c.done), 1);
    CHECK_INT(atomic_load(&c.conflicts), CALLERS - 1);
    CHECK_INT(atomic_load(&c.others), 0);
    CHECK_INT(calls_latest(&c.kit, &c.uri.id).head.current_version, 2);
    CHECK_INT(calls_entries(&c.kit), 2);
    calls_done(&c.kit);
}

CX_TEST(updates_with_retry_are_all_there)
{
    crowd c;
    if (!crowd_init(&c, "retry", CX_SCHEME_CORTEX_1))
        return;
    c.retry = true;
    cx_thread_team(CALLERS, update, &c);
    CHECK_INT(atomic_load(&c.done), CALLERS);
    CHECK_INT(atomic_load(&c.others), 0);
    CHECK_INT(calls_latest(&c.kit, &c.uri.id).head.current_version, CALLERS + 1);
    CHECK_INT(calls_entries(&c.kit), CALLERS + 1);
    for (uint64_t n = 1; n <= CALLERS + 1; n++) {
        cx_uri uri = c.uri;
        cx_memory_view view = {0};
        uri.version = n;
        CHECK_STATUS(cx_memory_resolve(c.kit.memory, &uri, &c.kit.arena, &view, &c.kit.err),
                     &c.kit.err);
        CHECK_INT(view.version.version, n);
    }
    calls_done(&c.kit);
}

/* --- everything at once ----------------------------------------------------------------------- */

typedef struct mixture {
    calls kit;
    cx_uri uri;
    cx_id other;
    atomic_uint heads, edges, attests, embeds, others;
    atomic_bool dead;
} mixture;

#define ROUNDS 10

static void count(mixture *m, atomic_uint *what, cx_status status, const cx_err *err)
{
    if (!cx_failed(status))
        atomic_fetch_add(what, 1);
    else if (!cx_str_is(fixture_tag(err), "Tombstoned"))
        atomic_fetch_add(&m->others, 1);
}

static void patch_heads(mixture *m, cx_err *err)
{
    for (uint8_t i = 0; i < ROUNDS; i++) {
        const cx_head_patch patch = {.set_importance = true, .importance = i % 10};
        count(m, &m->heads, cx_memory_update_head(m->kit.memory, &m->uri, &patch, err), err);
    }
}

static void add_edges(mixture *m, cx_err *err)
{
    for (uint8_t i = 1; i <= ROUNDS; i++) {
        const cx_edge_name name = {m->uri.id, i, m->other};
        bool written;
        count(m, &m->edges,
              cx_memory_add_edge(m->kit.memory, &name, CX_STR(""), 1.0f, (cx_bytes){NULL, 0}, false,
                                 &written, err),
              err);
    }
}

static void attest_often(mixture *m, cx_err *err)
{
    const cx_str cited = CX_STR("matrix://cortex/Fact/01HF7YAT000000000000000002#1");
    for (int i = 0; i < ROUNDS; i++) {
        const cx_memory_attest attest = {.intent = CX_STR("i"), .cited = &cited, .cited_count = 1};
        count(m, &m->attests, cx_memory_attest_outcome(m->kit.memory, &attest, NULL, err), err);
    }
}

static void embed_often(mixture *m, cx_err *err)
{
    static const float values[] = {1, 2};
    for (int i = 0; i < ROUNDS; i++)
        count(m, &m->embeds,
              cx_memory_embed(m->kit.memory, &m->uri.id, 1, CX_STR("m"), values, 2, err), err);
}

static void mix(void *arg, unsigned index)
{
    mixture *m = arg;
    cx_err err = {0};
    switch (index % 5) {
    case 0: patch_heads(m, &err); return;
    case 1: add_edges(m, &err); return;
    case 2: attest_often(m, &err); return;
    case 3: embed_often(m, &err); return;
    default:
        if (cx_failed(cx_memory_tombstone(m->kit.memory, &m->uri, CX_STR("r"), CX_STR(""), &err)))
            atomic_fetch_add(&m->others, 1);
    }
}

/* §14.2 */
CX_TEST(calls_of_all_kinds_lose_nothing)
{
    mixture m;
    memset(&m, 0, sizeof m);
    if (!calls_init(&m.kit, "mix", "andrew", CX_SCHEME_MATRIX_1))
        return;
    m.uri = calls_write_fact(&m.kit, "one");
    m.other = calls_write_fact(&m.kit, "two").id;
    cx_thread_team(10, mix, &m); /* two of each */
    CHECK_INT(atomic_load(&m.others), 0);
    cx_memory_view view = calls_latest(&m.kit, &m.uri.id);
    CHECK(view.head.tombstoned);
    CHECK_STR(view.head.tombstone_reason, "r");
    CHECK_INT(view.head.embedded, atomic_load(&m.embeds) != 0);
    CHECK_INT(atomic_load(&m.edges), 2 * ROUNDS);
    const cx_edge_view *edges;
    size_t edge_count = 0;
    CHECK_STATUS(cx_memory_edges(m.kit.memory, &m.uri.id, false, 0, false, 100, &m.kit.arena,
                                 &edges, &edge_count, &m.kit.err),
                 &m.kit.err);
    CHECK_INT(edge_count, ROUNDS);
    CHECK_INT(atomic_load(&m.attests), 2 * ROUNDS);
    cx_salience salience = {0};
    float cold;
    CHECK_STATUS(cx_memory_salience_of(m.kit.memory, &m.other, &salience, &cold, &m.kit.err),
                 &m.kit.err);
    CHECK_INT(salience.citations, 2 * ROUNDS);
    cx_weights_record weights = {0};
    CHECK_STATUS(cx_memory_weights_now(m.kit.memory, &weights, &m.kit.err), &m.kit.err);
    CHECK_INT(weights.updates, 2 * ROUNDS);
    CHECK_INT(calls_entries(&m.kit),
              2 + atomic_load(&m.heads) + ROUNDS + 2 * 2 * ROUNDS + atomic_load(&m.embeds) + 1);
    /* What the trees say is what the records say: a home that derives all of it again agrees. */
    cx_digest root = calls_root(&m.kit);
    calls_shut(&m.kit);
    char database[FOLDER_PATH_SIZE + 16];
    (void)snprintf(database, sizeof database, "%s/cortex.db", m.kit.path);
    CHECK_INT(cx_io_system()->unlink(cx_io_system(), database), 0);
    if (calls_open(&m.kit, "andrew")) {
        cx_digest again = calls_root(&m.kit);
        CHECK(cx_digest_eq(&root, &again));
    }
    calls_done(&m.kit);
}

/* Readers see whole memories while others write. */
typedef struct mixed_reading {
    crowd c;
    atomic_bool over;
    atomic_uint torn, reads;
} mixed_reading;

static void write_or_read(void *arg, unsigned index)
{
    mixed_reading *m = arg;
    calls *kit = &m->c.kit;
    cx_err err;
    cx_uri uri = m->c.uri;
    if (index == 0) {
        for (int i = 0; i < 200; i++) {
            const cx_memory_update how = {.data = m->c.data};
            if (cx_failed(cx_memory_update_at(kit->memory, &uri, &how, &uri, &err)))
                atomic_fetch_add(&m->c.others, 1);
        }
        atomic_store(&m->over, true);
        return;
    }
    while (!atomic_load(&m->over)) {
        cx_arena arena;
        cx_memory_view view;
        const cx_memory_hit *hits;
        size_t found = 0;
        const uint8_t type = CX_TYPE_FACT;
        const cx_memory_find find = {.types = {&type, 1}, .limit = 3};
        cx_arena_init(&arena, cx_alloc_default(), 0);
        if (cx_failed(cx_memory_resolve_latest(kit->memory, &uri.id, &arena, &view, &err)) ||
            view.version.version != view.head.current_version ||
            !cx_str_eq(view.version.forms.brief, view.head.forms.brief))
            atomic_fetch_add(&m->torn, 1);
        if (cx_failed(cx_memory_find_all(kit->memory, &find, &arena, &hits, &found, &err)) ||
            found != 1 || hits[0].view.version.version != hits[0].view.head.current_version)
            atomic_fetch_add(&m->torn, 1);
        atomic_fetch_add(&m->reads, 1);
        cx_arena_done(&arena);
    }
}

CX_TEST(readers_concurrent_with_a_writer)
{
    mixed_reading m;
    memset(&m, 0, sizeof m);
    if (!crowd_init(&m.c, "readers", CX_SCHEME_CORTEX_1))
        return;
    cx_thread_team(3, write_or_read, &m);
    CHECK_INT(atomic_load(&m.torn), 0);
    CHECK_INT(atomic_load(&m.c.others), 0);
    CHECK_INT(calls_latest(&m.c.kit, &m.c.uri.id).head.current_version, 201);
    calls_done(&m.c.kit);
}

/* One of many redactions of an entry is journaled, also while its erasure is still under way. */
typedef struct redactors {
    calls kit;
    uint64_t seq;
    atomic_uint done, already;
} redactors;

static void redact_it(void *arg, unsigned index)
{
    redactors *r = arg;
    cx_err err = {0};
    (void)index;
    cx_status status = cx_memory_redact(r->kit.memory, r->seq, CX_STR(""), CX_STR(""), &err);
    if (!cx_failed(status))
        atomic_fetch_add(&r->done, 1);
    else if (cx_str_is(fixture_tag(&err), "AlreadyRedacted"))
        atomic_fetch_add(&r->already, 1);
}

CX_TEST(redactions_of_one_entry_at_once)
{
    redactors r;
    memset(&r, 0, sizeof r);
    if (!calls_init(&r.kit, "redactors", "andrew", CX_SCHEME_CORTEX_1))
        return;
    CHECK_STATUS(cx_memory_raw(r.kit.memory, CX_STR("raw"), cx_str_bytes(CX_STR("x")), true,
                               CX_STR(""), &r.seq, &r.kit.err),
                 &r.kit.err);
    cx_thread_team(8, redact_it, &r);
    CHECK_INT(atomic_load(&r.done), 1);
    CHECK_INT(atomic_load(&r.already), 7);
    CHECK_INT(calls_entries(&r.kit), 2);
    calls_done(&r.kit);
}
