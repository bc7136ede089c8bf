/*
 * test_manifests.c - a manifest in the log that names other roots than the state has is found, also
 * while the trees of the state wait to be built.
 */
#include <string.h>

#include "ledger/internal.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

typedef enum lie { LIE_NONE, LIE_MEMORIES, LIE_EDGES, LIE_JOURNAL, LIE_OVERALL, LIE_COUNT } lie;

/* A snapshot as cx_snapshot_make makes it, but for one root, or the number of memories. */
static void make_snapshot(kit *k, lie which)
{
    cx_txn *txn;
    cx_roots roots;
    cx_buf bytes;
    CHECK_STATUS(cx_txn_begin(k->home, KIT_ACTOR, &txn, &k->err), &k->err);
    CHECK_STATUS(cx_txn_roots(txn, &roots, &k->err), &k->err);
    const cx_actor_info *actor = cx_txn_actor(txn);
    cx_manifest manifest = {.scheme = actor->scheme,
                            .actor = actor->name,
                            .snapshot_seq = actor->snapshot_count,
                            .journal_size = roots.journal_size,
                            .journal_root = roots.journal,
                            .has_edges = true,
                            .has_memories = true,
                            .edges_root = roots.edges,
                            .memories_root = roots.memories,
                            .trigger = CX_STR("explicit"),
                            .signature = {.null = true},
                            .live_memories = actor->live_memories,
                            .edge_count = actor->edge_count,
                            .tombstoned = actor->tombstoned};
    manifest.memories_root.bytes[31] ^= which == LIE_MEMORIES;
    manifest.edges_root.bytes[0] ^= which == LIE_EDGES;
    manifest.journal_root.bytes[5] ^= which == LIE_JOURNAL;
    manifest.live_memories += which == LIE_COUNT;
    /* As in a log that was rewritten with care: what can be made consistent is. */
    manifest.overall_root = cx_scheme_overall(actor->scheme, &manifest.journal_root,
                                              &manifest.edges_root, &manifest.memories_root);
    manifest.overall_root.bytes[9] ^= which == LIE_OVERALL;
    uint8_t key[13] = "snap/";
    for (unsigned i = 0; i < 8; i++)
        key[5 + i] = (uint8_t)(manifest.snapshot_seq >> (8 * (7 - i)));
    cx_buf_init(&bytes, cx_alloc_default());
    cx_manifest_encode(&manifest, &bytes);
    CHECK_STATUS(cx_txn_bare(txn, &k->err), &k->err);
    CHECK_STATUS(
        cx_txn_put(txn, cx_bytes_from(key, sizeof key), cx_buf_bytes(&bytes), false, &k->err),
        &k->err);
    CHECK_STATUS(cx_txn_commit(txn, &k->err), &k->err);
    cx_buf_done(&bytes);
}

/* The reason and the place of the first finding; its message begins so. */
static void check_finding(const kit *k, size_t findings, const char *reason, const char *where,
                          const char *message)
{
    const cx_home_verify_options options = {.home = kit_options()};
    cx_home_report *report = NULL;
    cx_err err = {0};
    CHECK_STATUS(cx_home_verify(k->path, &options, &report, &err), &err);
    if (report == NULL)
        return;
    CHECK_INT(cx_home_report_verdict(report), CX_BROKEN);
    CHECK_INT(cx_home_report_count(report), findings);
    if (cx_home_report_count(report) != 0) {
        const cx_home_finding *f = cx_home_report_finding(report, 0);
        CHECK_STR(cx_str_z(f->reason), reason);
        CHECK(cx_str_is(f->where, where));
        CHECK(cx_str_eq(f->actor, KIT_ACTOR));
        CHECK(cx_str_starts(f->message, cx_str_z(message)));
    }
    cx_home_report_close(report);
}

static void check_lie(lie which, const char *reason, const char *message)
{
    kit k;
    cx_uri uri;
    char where[32];
    REQUIRE(kit_init(&k, "manifests", CX_SCHEME_CORTEX_1));
    kit_fill(&k);
    cx_actor_info info;
    CHECK_STATUS(cx_home_actor(k.home, KIT_ACTOR, &info, &k.err), &k.err);
    (void)snprintf(where, sizeof where, "snapshot %llu", (unsigned long long)info.snapshot_count);
    make_snapshot(&k, which);
    CHECK_STATUS(kit_write(k.memory, "after the snapshot", &uri, &k.err), &k.err);
    make_snapshot(&k, LIE_NONE);
    kit_close(&k);
    const cx_home_options options = kit_options();
    cx_rebuild_result result;
    if (which == LIE_NONE) {
        (void)CHECK_HOLDS(k.path, true, NULL);
        CHECK_STATUS(cx_home_rebuild(k.path, &options, CX_REBUILD, &result, &k.err), &k.err);
        CHECK(!result.changed);
        kit_done(&k);
        return;
    }
    /* An overall root that is not the hash of its roots is found in the record, too. */
    const size_t findings = which == LIE_OVERALL ? 2 : 1;
    check_finding(&k, findings, reason, where, message);
    for (int i = 0; i < 2; i++) { /* the first leaves nothing that the second would continue */
        CHECK_INT(cx_home_rebuild(k.path, &options, CX_REBUILD, &result, &k.err).code,
                  CX_E_CONFLICT);
        CHECK_STR(cx_str_z(k.err.tag), "RootMismatch");
        CHECK(strstr(k.err.message, reason) != NULL && strstr(k.err.message, where) != NULL);
    }
    CHECK_STATUS(cx_home_rebuild(k.path, &options, CX_REBUILD_REPLACE, &result, &k.err), &k.err);
    CHECK(!result.changed);
    check_finding(&k, findings, reason, where, message);
    kit_done(&k);
}

CX_TEST(manifests_are_held_against_the_state_at_their_place)
{
    check_lie(LIE_NONE, NULL, NULL);
    check_lie(LIE_MEMORIES, "ManifestRootMismatch", "memories root");
    check_lie(LIE_EDGES, "ManifestRootMismatch", "edges root");
    check_lie(LIE_JOURNAL, "ManifestRootMismatch", "journal root");
    check_lie(LIE_OVERALL, "ManifestRootMismatch", "overall root");
    check_lie(LIE_COUNT, "CounterMismatch", "the manifest's counters");
}
