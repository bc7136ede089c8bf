/*
 * test_home_alloc.c - the n-th allocation of a home fails, once and from then on, over opening,
 * writing, snapshot, proof, verification and closing: the right code, no leak, and the home opens
 * and holds afterwards with everything that was acknowledged.
 */
#include "base/alloc.h"
#include "tests/support/fault.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

typedef struct work {
    const char *path;
    const cx_alloc *alloc;
    kit_source source;
    uint64_t acknowledged;
} work;

static cx_status prove(cx_home *home, const cx_id *id, uint64_t snapshot, cx_arena *arena,
                       cx_err *err)
{
    cx_proof_request request = {.name_space = CX_NAMESPACE_MEMORIES, .ids = id, .id_count = 1};
    cx_state_proof proof;
    cx_inclusion inclusion;
    cx_digest root;
    CX_TRY(cx_proof_now(home, KIT_ACTOR, &request, snapshot, arena, &proof, err));
    CX_TRY(cx_proof_at(home, KIT_ACTOR, &request, snapshot, arena, &proof, err));
    request.compact = true;
    CX_TRY(cx_proof_now(home, KIT_ACTOR, &request, snapshot, arena, &proof, err));
    return cx_proof_journal(home, KIT_ACTOR, 0, 0, true, arena, &inclusion, &root, err);
}

static cx_status use(work *w, cx_home *home, cx_memory *memory, cx_arena *arena, cx_err *err)
{
    cx_uri uri;
    cx_manifest manifest;
    uint64_t seq;
    CX_TRY(kit_write(memory, "one more", &uri, err));
    w->acknowledged++;
    CX_TRY(kit_update(memory, &uri, "and another", &uri, err));
    w->acknowledged++;
    CX_TRY(cx_memory_raw(memory, CX_STR("raw"), cx_str_bytes(CX_STR("payload")), true, CX_STR("me"),
                         &seq, err));
    w->acknowledged++;
    CX_TRY(cx_snapshot_make(home, KIT_ACTOR, CX_STR("explicit"), 7, arena, &manifest, err));
    CX_TRY(prove(home, &uri.id, manifest.snapshot_seq, arena, err));
    CX_TRY(cx_memory_redact(memory, seq, CX_STR("asked"), CX_STR("me"), err));
    w->acknowledged++;
    return cx_home_flush(home, err);
}

static cx_status work_in_home(work *w, cx_err *err)
{
    cx_home_options options = kit_options();
    cx_memory_options own = kit_memory_options(&w->source);
    cx_home *home = NULL;
    cx_memory *memory = NULL;
    cx_arena arena;
    options.alloc = own.alloc = w->alloc;
    cx_arena_init(&arena, w->alloc, 0);
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, cx_home_open(w->path, &options, &home, err));
    CX_TRY_GOTO(status, cx_memory_open(home, KIT_ACTOR, &own, &memory, err));
    status = use(w, home, memory, &arena, err);
done:
    cx_memory_close(memory);
    cx_arena_done(&arena);
    cx_err ignored;
    cx_status closed = cx_home_close(home, &ignored);
    return cx_failed(status) ? status : closed;
}

static cx_status look_at_home(work *w, cx_err *err)
{
    cx_home_verify_options options = {.home = kit_options()};
    cx_home_report *report = NULL;
    options.home.alloc = w->alloc;
    CX_TRY(cx_home_verify(w->path, &options, &report, err));
    /* Too little memory is never a verdict. */
    CHECK_INT(cx_home_report_verdict(report), CX_HOLDS);
    cx_home_report_close(report);
    options.home.read_only = true;
    cx_home *home;
    cx_roots roots;
    CX_TRY(cx_home_open(w->path, &options.home, &home, err));
    cx_status status = cx_home_roots(home, KIT_ACTOR, &roots, err);
    cx_status closed = cx_home_close(home, NULL);
    return cx_failed(status) ? status : closed;
}

static uint64_t try_with(work *w, cx_status (*job)(work *, cx_err *), uint64_t fail_at,
                         bool onwards)
{
    fault_alloc memory;
    cx_err err = {0};
    fault_alloc_init(&memory, fail_at, onwards);
    w->alloc = &memory.alloc;
    cx_status status = job(w, &err);
    /* A home that could not follow its log says Poisoned to those who come after. */
    if (cx_failed(status) && status.code != CX_E_NOMEM &&
        !(status.code == CX_E_IO && err.tag != NULL && strcmp(err.tag, "Poisoned") == 0))
        cx_test_fail(__FILE__, __LINE__, "allocation %llu: code %d, %s",
                     (unsigned long long)fail_at, (int)status.code, err.message);
    if (cx_failed(status))
        CHECK(err.message[0] != 0);
    CHECK_INT(atomic_load(&memory.live_bytes), 0);
    CHECK(!atomic_load(&memory.wrong_size));
    return atomic_load(&memory.fired);
}

CX_TEST(home_without_memory)
{
    kit k;
    REQUIRE(kit_init(&k, "alloc", CX_SCHEME_CORTEX_1));
    kit_fill(&k);
    kit_close(&k);
    work w = {.path = k.path};
    kit_source_init(&w.source, 99);
    kit_verdict before, after;
    REQUIRE(CHECK_HOLDS(k.path, true, &before));
    bool finished = false;
    uint64_t at = 1;
    for (; !finished && at < 20000; at += at < 300 ? 1 : 7) {
        finished = try_with(&w, work_in_home, at, false) == 0;
        if (at % 3 == 0)
            (void)try_with(&w, work_in_home, at, true);
        if (at % 20 == 0 && !CHECK_HOLDS(k.path, false, NULL))
            break;
    }
    CHECK(finished && at > 100);
    CHECK(CHECK_HOLDS(k.path, false, &after));
    /* What failed may be there; what was acknowledged is. */
    CHECK(after.entries >= before.entries + w.acknowledged);
    kit_done(&k);
}

CX_TEST(home_looked_at_without_memory)
{
    kit k;
    REQUIRE(kit_init(&k, "alloc_look", CX_SCHEME_CORTEX_1));
    kit_fill(&k);
    kit_close(&k);
    work w = {.path = k.path};
    kit_source_init(&w.source, 99);
    bool finished = false;
    uint64_t at = 1;
    for (; !finished && at < 40000; at += at < 200 ? 1 : 11) {
        finished = try_with(&w, look_at_home, at, false) == 0;
        if (at % 5 == 0)
            (void)try_with(&w, look_at_home, at, true);
    }
    CHECK(finished && at > 100);
    (void)CHECK_HOLDS(k.path, true, NULL);
    kit_done(&k);
}
