/*
 * test_home_model.c - a home under random use: whatever was derived from the log once is derived
 * from it again, and a proof at a retained snapshot stays the same bytes for ever.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/vec.h"
#include "ledger/snapshot.h"
#include "ledger/verify.h"
#include "memory/memory.h"
#include "tests/support/folder.h"
#include "tests/test.h"

#define ACTOR CX_STR("andrew")
#define IDS_MAX 64
#define SNAPSHOTS_MAX 16
#define ASKED 5

/* A proof as it was when its snapshot was made. */
typedef struct kept_proof {
    uint64_t snapshot;
    bool dropped;
    cx_buf bytes;
    cx_buf manifest;
    cx_id ids[ASKED];
    bool erased[ASKED]; /* since then */
} kept_proof;

typedef struct world {
    char path[FOLDER_PATH_SIZE];
    cx_scheme scheme;
    uint64_t random;
    int64_t clock;
    cx_home *home;
    cx_memory *memory;
    cx_id ids[IDS_MAX];
    cx_uri uris[IDS_MAX];
    size_t count;
    kept_proof proofs[SNAPSHOTS_MAX];
    size_t proof_count;
    uint64_t payload_seqs[IDS_MAX];
    size_t payload_count;
    cx_err err;
} world;

static int64_t world_now(void *arg)
{
    world *w = arg;
    return w->clock += 1500000000;
}

static cx_status world_id(void *arg, cx_id *out, cx_err *err)
{
    world *w = arg;
    (void)err;
    for (size_t i = 0; i < sizeof out->bytes; i++)
        out->bytes[i] = (uint8_t)cx_test_random(&w->random);
    out->bytes[0] &= 0x7f;
    return CX_SUCCESS;
}

static cx_home_options home_options(void)
{
    return (cx_home_options){
        .segment_bytes = UINT64_C(65536), .derivers = &cx_memory_deriver, .deriver_count = 1};
}

static void open_world(world *w)
{
    const cx_home_options options = home_options();
    CHECK_STATUS(cx_home_open(w->path, &options, &w->home, &w->err), &w->err);
    const cx_memory_options memory = {
        .now_ns = world_now, .now_arg = w, .new_id = world_id, .new_id_arg = w};
    CHECK_STATUS(cx_memory_open(w->home, ACTOR, &memory, &w->memory, &w->err), &w->err);
}

static void close_world(world *w)
{
    cx_memory_close(w->memory);
    CHECK_STATUS(cx_home_close(w->home, &w->err), &w->err);
    w->memory = NULL;
    w->home = NULL;
}

static void make_fact(world *w, cx_buf *out)
{
    char text[32];
    (void)snprintf(text, sizeof text, "fact %u", (unsigned)(cx_test_random(&w->random) % 100000));
    cx_data data = {.type = 2, .schema = 1};
    data.as.fact.statement = cx_str_z(text);
    data.as.fact.subject = CX_STR("matrix://subject");
    data.as.fact.predicate = CX_STR("is");
    cx_data_encode(&data, out);
}

/* --- steps ----------------------------------------------------------------------------------- */

static void step_write(world *w)
{
    if (w->count == IDS_MAX)
        return;
    cx_buf data;
    cx_buf_init(&data, cx_alloc_default());
    make_fact(w, &data);
    const cx_memory_write write = {.type = 2, .data = cx_buf_bytes(&data)};
    cx_uri *uri = &w->uris[w->count];
    CHECK_STATUS(cx_memory_write_new(w->memory, &write, uri, &w->err), &w->err);
    w->ids[w->count++] = uri->id;
    cx_buf_done(&data);
}

static size_t pick(world *w)
{
    return (size_t)(cx_test_random(&w->random) % w->count);
}

/* Calls that may be refused because the memory is a tombstone by now. */
static void check_or_dead(world *w, cx_status status)
{
    if (cx_failed(status))
        CHECK(w->err.tag != NULL && strcmp(w->err.tag, "Tombstoned") == 0);
}

static void step_update(world *w)
{
    size_t at = pick(w);
    cx_buf data;
    cx_buf_init(&data, cx_alloc_default());
    make_fact(w, &data);
    const cx_memory_update update = {.data = cx_buf_bytes(&data)};
    cx_uri uri;
    cx_status status = cx_memory_update_at(w->memory, &w->uris[at], &update, &uri, &w->err);
    check_or_dead(w, status);
    if (!cx_failed(status))
        w->uris[at] = uri;
    cx_buf_done(&data);
}

static void step_head(world *w)
{
    const cx_head_patch patch = {.set_importance = true,
                                 .importance = (uint8_t)(cx_test_random(&w->random) % 11)};
    check_or_dead(w, cx_memory_update_head(w->memory, &w->uris[pick(w)], &patch, &w->err));
}

static void step_edge(world *w)
{
    size_t a = pick(w), b = pick(w);
    if (a == b)
        return;
    const cx_edge_name name = {w->ids[a], (uint8_t)(1 + cx_test_random(&w->random) % 3), w->ids[b]};
    bool written;
    const cx_bytes none = {NULL, 0};
    if (cx_test_random(&w->random) % 3 != 0)
        CHECK_STATUS(cx_memory_add_edge(w->memory, &name, CX_STR("me"), 0.5f, none, false, &written,
                                        &w->err),
                     &w->err);
    else
        CHECK_STATUS(
            cx_memory_remove_edge(w->memory, &name, CX_STR("old"), CX_STR("me"), &written, &w->err),
            &w->err);
}

static void step_raw(world *w)
{
    static const char secret[] = "a very secret payload";
    uint64_t seq;
    CHECK_STATUS(cx_memory_raw(w->memory, CX_STR("trace.received"),
                               cx_bytes_from(secret, sizeof secret), true, CX_STR("me"), &seq,
                               &w->err),
                 &w->err);
    if (w->payload_count < IDS_MAX)
        w->payload_seqs[w->payload_count++] = seq;
}

static void step_redact(world *w)
{
    if (w->payload_count == 0)
        return;
    uint64_t seq = w->payload_seqs[--w->payload_count];
    CHECK_STATUS(cx_memory_redact(w->memory, seq, CX_STR("asked for"), CX_STR("me"), &w->err),
                 &w->err);
}

static void step_redact_memory(world *w)
{
    size_t at = pick(w);
    cx_status status = cx_memory_redact_memory(w->memory, &w->uris[at], CX_STR("asked for"),
                                               CX_STR("me"), &w->err);
    if (cx_failed(status)) {
        CHECK(w->err.tag != NULL && strcmp(w->err.tag, "AlreadyRedacted") == 0);
        return;
    }
    for (size_t i = 0; i < w->proof_count; i++)
        for (size_t j = 0; j < ASKED; j++)
            if (memcmp(w->proofs[i].ids[j].bytes, w->ids[at].bytes, 16) == 0)
                w->proofs[i].erased[j] = true;
}

static void prove(world *w, const kept_proof *kept, cx_arena *arena, cx_state_proof *out)
{
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_MEMORIES, .ids = kept->ids, .id_count = ASKED};
    CHECK_STATUS(cx_proof_at(w->home, ACTOR, &request, kept->snapshot, arena, out, &w->err),
                 &w->err);
}

static void check_holds(world *w, const cx_state_proof *proof)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_multiproof decoded;
    cx_finding finding = {0};
    const cx_multiproof_check check = {
        .name_space = CX_NAMESPACE_MEMORIES, .leaves = proof->leaves, .leaf_count = ASKED};
    CHECK_STATUS(cx_multiproof_verify(proof->bytes, proof->manifest, &check, &arena, &decoded,
                                      &finding, &w->err),
                 &w->err);
    if (finding.verdict != CX_HOLDS)
        cx_test_fail(__FILE__, __LINE__, "a proof does not hold: %s: %s", finding.reason,
                     finding.message);
    cx_arena_done(&arena);
}

/* The same of every memory asked, in the order of keys; what was asked stands where `order` says.
 */
static void check_compact(world *w, const kept_proof *kept, const cx_state_proof *whole,
                          cx_arena *arena)
{
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_MEMORIES, .ids = kept->ids, .id_count = ASKED, .compact = true};
    cx_state_proof made;
    if (whole->proof.scheme != CX_SCHEME_CORTEX_1) {
        CHECK_INT(cx_proof_at(w->home, ACTOR, &request, kept->snapshot, arena, &made, &w->err).code,
                  CX_E_UNSUPPORTED);
        return;
    }
    CHECK_STATUS(cx_proof_at(w->home, ACTOR, &request, kept->snapshot, arena, &made, &w->err),
                 &w->err);
    check_holds(w, &made);
    CHECK(made.bytes.size < whole->bytes.size + 8); /* of an empty state nothing is to be spared */
    for (size_t i = 0; i < ASKED; i++) {
        size_t at = cx_state_proof_asked(&made, i);
        CHECK(cx_digest_eq(&made.proof.items[i].path.key, &whole->proof.items[at].path.key));
        CHECK_INT(made.proof.items[i].kind, whole->proof.items[at].kind);
        CHECK(cx_str_eq(cx_bytes_str(made.leaves[i]), cx_bytes_str(whole->leaves[at])));
    }
}

static void step_snapshot(world *w)
{
    if (w->proof_count == SNAPSHOTS_MAX)
        return;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    kept_proof *kept = &w->proofs[w->proof_count];
    *kept = (kept_proof){0};
    cx_manifest manifest;
    CHECK_STATUS(cx_snapshot_make(w->home, ACTOR, CX_STR("explicit"), world_now(w), &arena,
                                  &manifest, &w->err),
                 &w->err);
    kept->snapshot = manifest.snapshot_seq;
    /* Four memories, one of which may be asked for only once, and one that never was. */
    for (size_t j = 0; j < ASKED - 1; j++)
        kept->ids[j] = w->ids[(w->count / ASKED) * j];
    memset(kept->ids[ASKED - 1].bytes, 0x55, 16);
    cx_state_proof now, then;
    prove(w, kept, &arena, &then);
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_MEMORIES, .ids = kept->ids, .id_count = ASKED};
    CHECK_STATUS(cx_proof_now(w->home, ACTOR, &request, kept->snapshot, &arena, &now, &w->err),
                 &w->err);
    CHECK(cx_str_eq(cx_bytes_str(now.bytes), cx_bytes_str(then.bytes)));
    check_holds(w, &then);
    check_compact(w, kept, &then, &arena);
    cx_buf_init(&kept->bytes, cx_alloc_default());
    cx_buf_init(&kept->manifest, cx_alloc_default());
    cx_buf_add(&kept->bytes, then.bytes.data, then.bytes.size);
    cx_buf_add(&kept->manifest, then.manifest.data, then.manifest.size);
    w->proof_count++;
    cx_arena_done(&arena);
}

static void step_drop(world *w)
{
    if (w->proof_count < 3)
        return;
    kept_proof *kept = &w->proofs[cx_test_random(&w->random) % w->proof_count];
    if (kept->dropped)
        return;
    CHECK_STATUS(
        cx_snapshot_drop(w->home, ACTOR, kept->snapshot, CX_STR("me"), world_now(w), &w->err),
        &w->err);
    kept->dropped = true;
}

static void step(world *w)
{
    uint64_t dice = cx_test_random(&w->random) % 100;
    if (w->count < 6 || dice < 20)
        step_write(w);
    else if (dice < 45)
        step_update(w);
    else if (dice < 55)
        step_head(w);
    else if (dice < 72)
        step_edge(w);
    else if (dice < 80)
        step_raw(w);
    else if (dice < 83)
        step_redact(w);
    else if (dice < 85)
        step_redact_memory(w);
    else if (dice < 90)
        step_drop(w);
    else if (dice < 94)
        step_snapshot(w);
    else if (dice < 97)
        check_or_dead(w, cx_memory_tombstone(w->memory, &w->uris[pick(w)], CX_STR("done"),
                                             CX_STR("me"), &w->err));
    else {
        close_world(w);
        open_world(w);
    }
}

/* --- checks ---------------------------------------------------------------------------------- */

static bool any_erased(const kept_proof *kept)
{
    for (size_t j = 0; j < ASKED; j++)
        if (kept->erased[j])
            return true;
    return false;
}

static void check_proofs(world *w)
{
    for (size_t i = 0; i < w->proof_count; i++) {
        const kept_proof *kept = &w->proofs[i];
        cx_arena arena;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        if (!kept->dropped) {
            cx_state_proof proof;
            prove(w, kept, &arena, &proof);
            check_holds(w, &proof);
            if (!any_erased(kept))
                CHECK(cx_str_eq(cx_bytes_str(proof.bytes), cx_buf_str(&kept->bytes)));
        }
        cx_arena_done(&arena);
    }
}

static void check_same_roots(const cx_roots *a, const cx_roots *b)
{
    CHECK_INT(a->journal_size, b->journal_size);
    CHECK(cx_digest_eq(&a->overall, &b->overall));
}

static void check_verified(world *w, const cx_roots *roots)
{
    const cx_home_verify_options options = {.home = home_options()};
    cx_home_report *report;
    CHECK_STATUS(cx_home_verify(w->path, &options, &report, &w->err), &w->err);
    for (size_t i = 0; i < cx_home_report_count(report); i++) {
        const cx_home_finding *f = cx_home_report_finding(report, i);
        cx_test_fail(__FILE__, __LINE__, "seed %llu: %s %s at %.*s: %.*s",
                     (unsigned long long)cx_test_seed(), f->check, f->reason, (int)f->where.size,
                     f->where.data, (int)f->message.size, f->message.data);
    }
    CHECK(cx_home_report_totals(report)->tables_checked);
    cx_actor_info info;
    cx_roots found;
    CHECK_INT(cx_home_report_actor_count(report), 1);
    cx_home_report_actor(report, 0, &info, &found);
    check_same_roots(&found, roots);
    cx_home_report_close(report);
}

static void remove_tables(const world *w)
{
    static const char *const names[] = {"/cortex.db", "/cortex.db-wal", "/cortex.db-shm"};
    char path[FOLDER_PATH_SIZE + 32];
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        (void)snprintf(path, sizeof path, "%s%s", w->path, names[i]);
        (void)cx_io_system()->unlink(cx_io_system(), path);
    }
}

static void check_everything(world *w)
{
    cx_roots before, after;
    CHECK_STATUS(cx_home_roots(w->home, ACTOR, &before, &w->err), &w->err);
    check_proofs(w);
    close_world(w);
    check_verified(w, &before);
    const cx_home_options options = home_options();
    cx_rebuild_result rebuilt;
    CHECK_STATUS(cx_home_rebuild(w->path, &options, CX_REBUILD, &rebuilt, &w->err), &w->err);
    CHECK(!rebuilt.changed);
    open_world(w);
    CHECK_STATUS(cx_home_roots(w->home, ACTOR, &after, &w->err), &w->err);
    check_same_roots(&before, &after);
    close_world(w);
    remove_tables(w);
    open_world(w);
    CHECK_STATUS(cx_home_roots(w->home, ACTOR, &after, &w->err), &w->err);
    check_same_roots(&before, &after);
    check_proofs(w);
}

static world *new_world(cx_scheme scheme, uint64_t seed)
{
    world *w = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *w);
    CX_ASSERT(w != NULL);
    w->scheme = scheme;
    w->random = seed;
    w->clock = INT64_C(1700000000000000000);
    folder_fresh(w->path, "home_model");
    const cx_home_options options = home_options();
    CHECK_STATUS(cx_home_create(w->path, scheme, &options, &w->err), &w->err);
    open_world(w);
    return w;
}

static void run_world(cx_scheme scheme, uint64_t seed, size_t steps)
{
    world *w = new_world(scheme, seed);
    for (size_t i = 0; i < steps; i++)
        step(w);
    check_everything(w);
    for (size_t i = 0; i < steps / 4; i++)
        step(w);
    check_everything(w);
    close_world(w);
    folder_remove(w->path);
    for (size_t i = 0; i < w->proof_count; i++) {
        cx_buf_done(&w->proofs[i].bytes);
        cx_buf_done(&w->proofs[i].manifest);
    }
    cx_alloc_free(cx_alloc_default(), w, sizeof *w);
}

CX_TEST(home_random_use_cortex_1)
{
    for (uint64_t i = 0; i < 4; i++)
        run_world(CX_SCHEME_CORTEX_1, cx_test_seed() * 1000 + i, 250);
}

/* What the drop of one snapshot lets go must not take what is kept for the next one, which was made
 * before the drop reached the tables. */
CX_TEST(home_snapshot_made_after_a_drop)
{
    world *w = new_world(CX_SCHEME_CORTEX_1, cx_test_seed());
    cx_arena arena;
    cx_manifest first, second;
    cx_state_proof proof;
    kept_proof kept = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    while (w->count < IDS_MAX)
        step_write(w);
    CHECK_STATUS(
        cx_snapshot_make(w->home, ACTOR, CX_STR("explicit"), world_now(w), &arena, &first, &w->err),
        &w->err);
    CHECK_STATUS(
        cx_snapshot_drop(w->home, ACTOR, first.snapshot_seq, CX_STR("me"), world_now(w), &w->err),
        &w->err);
    CHECK_STATUS(cx_snapshot_make(w->home, ACTOR, CX_STR("explicit"), world_now(w), &arena, &second,
                                  &w->err),
                 &w->err);
    kept.snapshot = second.snapshot_seq;
    memcpy(kept.ids, w->ids, sizeof kept.ids);
    for (size_t i = 0; i < 2 * IDS_MAX; i++)
        step_update(w);
    prove(w, &kept, &arena, &proof);
    check_holds(w, &proof);
    cx_arena_done(&arena);
    close_world(w);
    folder_remove(w->path);
    cx_alloc_free(cx_alloc_default(), w, sizeof *w);
}

CX_TEST(home_random_use_matrix_1)
{
    for (uint64_t i = 0; i < 2; i++)
        run_world(CX_SCHEME_MATRIX_1, cx_test_seed() * 1000 + 500 + i, 150);
}
