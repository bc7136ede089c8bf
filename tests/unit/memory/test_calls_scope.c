/*
 * test_calls_scope.c - acting under a scope: the pinned snapshot's records, whatever happened
 * since, and journaled violations (ledger.md §10.3; §14: 16).
 */
#include <sodium.h>
#include <stdlib.h>

#include "crypto/api.h"
#include "ledger/snapshot.h"
#include "memory/sent.h"
#include "tests/unit/memory/calls.h"

typedef struct world {
    calls kit;
    uint8_t secret[64];
    cx_pubkey key;
    cx_manifest manifest;
    cx_bytes manifest_bytes;
    cx_scope_use granted;
} world;

static cx_status find_key(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err)
{
    world *w = arg;
    (void)err;
    *out_found = cx_str_is(agent, "parent");
    *out = w->key;
    return CX_SUCCESS;
}

static cx_status find_snapshot(void *arg, const cx_digest *root, cx_bytes *out, bool *out_found,
                               cx_err *err)
{
    world *w = arg;
    cx_manifest manifest;
    cx_status status = cx_snapshot_by_root(w->kit.home, CX_STR("andrew"), root, &w->kit.arena,
                                           &manifest, out, err);
    *out_found = !cx_failed(status);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

/* Three facts: 1 tagged "open", 2 tagged "secret", 3 untagged; pinned as snapshot 0. */
static bool world_init(world *w, const char *name, cx_scheme scheme)
{
    static const char *const tags[] = {"open", "secret", ""};
    uint8_t seed[32] = {7};
    if (!calls_init(&w->kit, name, "andrew", scheme))
        return false;
    CHECK(crypto_sign_seed_keypair(w->key.bytes, w->secret, seed) == 0);
    for (size_t i = 0; i < 3; i++) {
        const cx_str tag = cx_str_z(tags[i]);
        const cx_memory_write write = {.type = CX_TYPE_FACT,
                                       .data = calls_fact(&w->kit, "before"),
                                       .tags = &tag,
                                       .tag_count = i < 2 ? 1 : 0};
        (void)calls_write(&w->kit, &write);
    }
    CHECK_STATUS(cx_snapshot_make(w->kit.home, CX_STR("andrew"), CX_STR("for-scope"), 1,
                                  &w->kit.arena, &w->manifest, &w->kit.err),
                 &w->kit.err);
    return true;
}

/* Signs and verifies it. */
static bool grant(world *w, cx_scope scope)
{
    calls *kit = &w->kit;
    uint8_t signature[64];
    cx_finding finding;
    scope.schema = CX_SCOPE_SCHEMA;
    scope.actor = CX_STR("andrew");
    scope.snapshot_hash = w->manifest.overall_root;
    scope.granted_by = CX_STR("parent");
    scope.granted_to = CX_STR("child");
    cx_buf_clear(&kit->buf);
    cx_scope_to_sign(&scope, &kit->buf);
    CHECK(crypto_sign_detached(signature, NULL, kit->buf.data, kit->buf.size, w->secret) == 0);
    scope.signature = (cx_maybe_bytes){.bytes = {signature, 64}};
    cx_buf_clear(&kit->buf);
    cx_scope_encode(&scope, &kit->buf);
    cx_bytes bytes = cx_str_bytes(cx_arena_copy_str(&kit->arena, cx_buf_str(&kit->buf)));
    const cx_scope_check check = {.actor = CX_STR("andrew"),
                                  .now_ns = INT64_C(1700000000000000000),
                                  .key = find_key,
                                  .key_arg = w,
                                  .snapshot = find_snapshot,
                                  .snapshot_arg = w};
    CHECK_STATUS(cx_scope_verify(bytes, &check, &kit->arena, &w->granted, &finding, &kit->err),
                 &kit->err);
    if (finding.verdict != CX_HOLDS)
        cx_test_fail(__FILE__, __LINE__, "the scope is %s", finding.reason);
    return finding.verdict == CX_HOLDS;
}

static cx_status resolve(world *w, uint64_t id, uint64_t version, cx_memory_view *out)
{
    const cx_uri uri = {.type = CX_TYPE_FACT, .id = fixture_id(id), .version = version};
    return cx_memory_resolve_scoped(w->kit.memory, &uri, &w->granted, &w->kit.arena, out,
                                    &w->kit.err);
}

static void check_entry(world *w, uint64_t seq, const char *reason, const char *mode)
{
    cx_entry_view entry;
    cx_payload payload;
    REQUIRE(calls_entries(&w->kit) == seq + 1);
    CHECK_STATUS(
        cx_home_entry(w->kit.home, CX_STR("andrew"), seq, &w->kit.arena, &entry, &w->kit.err),
        &w->kit.err);
    CHECK_STR(entry.entry.kind, "scope_violation");
    CHECK_STR(cx_bytes_str(entry.entry.created_by), "child");
    CHECK_STATUS(cx_payload_decode(CX_ENTRY_SCOPE_VIOLATION, entry.payload, &w->kit.arena, &payload,
                                   &w->kit.err),
                 &w->kit.err);
    CHECK_STR(payload.as.scope_violation.reason, reason);
    CHECK_STR(payload.as.scope_violation.mode, mode);
    CHECK_STR(payload.as.scope_violation.granted_by, "parent");
}

/* What happens to the memories after the snapshot. */
static void drift(world *w)
{
    calls *kit = &w->kit;
    cx_uri uri = {.type = CX_TYPE_FACT, .id = fixture_id(1), .version = 1}, next;
    const cx_memory_update update = {.data = calls_fact(kit, "after")};
    const cx_str tag = CX_STR("open");
    const cx_head_patch untag = {.set_tags = true},
                        open = {.set_tags = true, .tags = &tag, .tag_count = 1};
    CHECK_STATUS(cx_memory_update_at(kit->memory, &uri, &update, &next, &kit->err), &kit->err);
    CHECK_STATUS(cx_memory_update_head(kit->memory, &next, &untag, &kit->err), &kit->err);
    uri.id = fixture_id(2);
    CHECK_STATUS(cx_memory_update_head(kit->memory, &uri, &open, &kit->err), &kit->err);
    const cx_memory_write late = {
        .type = CX_TYPE_FACT, .data = calls_fact(kit, "late"), .tags = &tag, .tag_count = 1};
    (void)calls_write(kit, &late);
}

CX_TEST(scoped_reads_are_of_the_pinned_snapshot)
{
    for (int scheme = CX_SCHEME_CORTEX_1; scheme <= CX_SCHEME_MATRIX_1; scheme++) {
        world w;
        const cx_str tag = CX_STR("open");
        const cx_scope scope = {.include = {.tags = {&tag, 1}}};
        if (!world_init(&w, "scope", (cx_scheme)scheme))
            return;
        calls *kit = &w.kit;
        cx_id first = fixture_id(1);
        cx_bytes then = calls_latest(kit, &first).head_bytes;
        drift(&w);
        if (grant(&w, scope)) {
            cx_memory_view view = {0};
            uint64_t entries = calls_entries(kit);
            CHECK_STATUS(resolve(&w, 1, 1, &view), &kit->err);
            CHECK(fixture_same(view.head_bytes, then));
            CHECK_STR(view.version.forms.brief, "p(s)=before");
            /* A version and a memory of later are not there. */
            CHECK(cx_failed(resolve(&w, 1, 2, &view)));
            CHECK_STR(fixture_tag(&kit->err), "NotFound");
            CHECK(cx_failed(resolve(&w, 4, 1, &view)));
            CHECK_STR(fixture_tag(&kit->err), "NotFound");
            CHECK_INT(calls_entries(kit), entries);
            /* Tagged only since, so not allowed. */
            CHECK(cx_failed(resolve(&w, 2, 1, &view)));
            CHECK_STR(fixture_tag(&kit->err), "ScopeViolation");
            CHECK_INT(kit->err.code, CX_E_DENIED);
            check_entry(&w, entries, "violation", "read");
            /* Find and Context filter without a word. */
            const uint8_t type = CX_TYPE_FACT;
            const cx_memory_hit *hits;
            size_t count = 0;
            cx_memory_find find = {.types = {&type, 1}, .limit = 10, .scope = &w.granted};
            for (int by_tag = 0; by_tag < 2; by_tag++) {
                if (by_tag == 1)
                    find = (cx_memory_find){
                        .tags = &tag, .tag_count = 1, .limit = 10, .scope = &w.granted};
                CHECK_STATUS(
                    cx_memory_find_all(kit->memory, &find, &kit->arena, &hits, &count, &kit->err),
                    &kit->err);
                CHECK_INT(count, 1);
                CHECK(count == 1 && fixture_same(hits[0].view.head_bytes, then));
            }
            CHECK_STATUS(cx_memory_context(kit->memory, 100, &w.granted, &kit->arena, &hits, &count,
                                           &kit->err),
                         &kit->err);
            CHECK_INT(count, 1);
            CHECK_INT(calls_entries(kit), entries + 1);
        }
        calls_done(kit);
    }
}

/* §14.16: equal to the proven leaf. */
CX_TEST(scoped_reads_are_the_proven_leaf)
{
    world w;
    if (!world_init(&w, "proven", CX_SCHEME_CORTEX_1))
        return;
    calls *kit = &w.kit;
    const cx_id ids[] = {fixture_id(1), fixture_id(3)};
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_MEMORIES, .ids = ids, .id_count = 2};
    cx_state_proof proof;
    CHECK_STATUS(
        cx_proof_now(kit->home, CX_STR("andrew"), &request, 0, &kit->arena, &proof, &kit->err),
        &kit->err);
    drift(&w);
    const cx_scope scope = {.include = {.ids = ids, .id_count = 2},
                            .multiproof = proof.bytes,
                            .expires = true,
                            .expires_at = 1700000060};
    if (grant(&w, scope)) {
        cx_memory_view view = {0};
        CHECK_STATUS(resolve(&w, 1, 1, &view), &kit->err);
        CHECK(fixture_same(view.head_bytes, cx_granted_leaf(&w.granted, &ids[0])));
        CHECK(view.head_bytes.size != 0);
        CHECK(cx_failed(resolve(&w, 2, 1, &view)));
        CHECK_STR(fixture_tag(&kit->err), "ScopeViolation");
        /* The last second is good, the next is not; then nothing is journaled. */
        kit->tick = 0;
        atomic_store(&kit->clock, INT64_C(1700000060999999999));
        CHECK_STATUS(resolve(&w, 3, 1, &view), &kit->err);
        atomic_store(&kit->clock, INT64_C(1700000061000000000));
        uint64_t entries = calls_entries(kit);
        CHECK(cx_failed(resolve(&w, 3, 1, &view)));
        CHECK_STR(fixture_tag(&kit->err), "ScopeExpired");
        CHECK(cx_failed(resolve(&w, 2, 1, &view)));
        CHECK_STR(fixture_tag(&kit->err), "ScopeExpired");
        CHECK_INT(calls_entries(kit), entries);
    }
    calls_done(kit);
}

CX_TEST(scoped_find_follows_edges_of_then)
{
    world w;
    if (!world_init(&w, "edges", CX_SCHEME_CORTEX_1))
        return;
    calls *kit = &w.kit;
    const uint8_t type = CX_TYPE_FACT;
    const cx_edge_name first = {fixture_id(1), 3, fixture_id(2)};
    const cx_edge_name second = {fixture_id(1), 3, fixture_id(3)};
    bool written;
    CHECK_STATUS(cx_memory_add_edge(kit->memory, &first, CX_STR(""), 0, (cx_bytes){NULL, 0}, false,
                                    &written, &kit->err),
                 &kit->err);
    /* One that was removed before the snapshot and added again after it. */
    const cx_edge_name back = {fixture_id(1), 4, fixture_id(3)};
    CHECK_STATUS(cx_memory_add_edge(kit->memory, &back, CX_STR(""), 0, (cx_bytes){NULL, 0}, false,
                                    &written, &kit->err),
                 &kit->err);
    CHECK_STATUS(
        cx_memory_remove_edge(kit->memory, &back, CX_STR(""), CX_STR(""), &written, &kit->err),
        &kit->err);
    CHECK_STATUS(cx_snapshot_make(kit->home, CX_STR("andrew"), CX_STR(""), 1, &kit->arena,
                                  &w.manifest, &kit->err),
                 &kit->err);
    CHECK_STATUS(cx_memory_add_edge(kit->memory, &back, CX_STR(""), 0, (cx_bytes){NULL, 0}, false,
                                    &written, &kit->err),
                 &kit->err);
    CHECK_STATUS(cx_memory_add_edge(kit->memory, &second, CX_STR(""), 0, (cx_bytes){NULL, 0}, false,
                                    &written, &kit->err),
                 &kit->err);
    CHECK_STATUS(
        cx_memory_remove_edge(kit->memory, &first, CX_STR(""), CX_STR(""), &written, &kit->err),
        &kit->err);
    const cx_scope scope = {.include = {.types = {&type, 1}}};
    if (grant(&w, scope)) {
        const cx_memory_hit *hits;
        size_t count = 0;
        cx_memory_find find = {.from = &first.src, .limit = 10, .scope = &w.granted};
        CHECK_STATUS(cx_memory_find_all(kit->memory, &find, &kit->arena, &hits, &count, &kit->err),
                     &kit->err);
        CHECK_INT(count, 1);
        CHECK(count == 1 && calls_same(&hits[0].view.head.id, &first.dst));
        find.scope = NULL;
        CHECK_STATUS(cx_memory_find_all(kit->memory, &find, &kit->arena, &hits, &count, &kit->err),
                     &kit->err);
        CHECK_INT(count, 1);
        CHECK(count == 1 && calls_same(&hits[0].view.head.id, &second.dst));
    }
    calls_done(kit);
}

/* --- writing ---------------------------------------------------------------------------------- */

static cx_status patch(world *w, uint64_t id, uint64_t version)
{
    const cx_uri uri = {.type = CX_TYPE_FACT, .id = fixture_id(id), .version = version};
    const cx_head_patch how = {.set_importance = true, .importance = 3, .scope = &w->granted};
    return cx_memory_update_head(w->kit.memory, &uri, &how, &w->kit.err);
}

CX_TEST(scoped_writes)
{
    world w;
    const cx_str tag = CX_STR("open");
    cx_scope scope = {.include = {.tags = {&tag, 1}}};
    if (!world_init(&w, "writes", CX_SCHEME_CORTEX_1))
        return;
    calls *kit = &w.kit;
    cx_digest memories = w.manifest.memories_root;
    if (grant(&w, scope)) {
        uint64_t entries = calls_entries(kit);
        CHECK(cx_failed(patch(&w, 1, 1)));
        CHECK_STR(fixture_tag(&kit->err), "NotWritable");
        check_entry(&w, entries, "not_writable", "write");
        /* Nothing is told of what it may not see: not even which versions there are. */
        CHECK(cx_failed(patch(&w, 2, 9)));
        CHECK_STR(fixture_tag(&kit->err), "ScopeViolation");
        check_entry(&w, entries + 1, "violation", "write");
        cx_roots roots;
        CHECK_STATUS(cx_home_roots(kit->home, CX_STR("andrew"), &roots, &kit->err), &kit->err);
        CHECK(cx_digest_eq(&roots.memories, &memories));
    }
    scope.writable = true;
    if (grant(&w, scope)) {
        cx_entry_view entry;
        CHECK_STATUS(patch(&w, 1, 1), &kit->err);
        CHECK_STATUS(cx_home_entry(kit->home, CX_STR("andrew"), calls_entries(kit) - 1, &kit->arena,
                                   &entry, &kit->err),
                     &kit->err);
        CHECK_STR(cx_bytes_str(entry.entry.created_by), "child");
        CHECK(cx_failed(patch(&w, 1, 2)));
        CHECK_STR(fixture_tag(&kit->err), "NotFound");
        CHECK(cx_failed(patch(&w, 3, 1)));
        CHECK_STR(fixture_tag(&kit->err), "ScopeViolation");
    }
    calls_done(kit);
}

static cx_status write_tagged(world *w, const char *tag, cx_uri *out)
{
    const cx_str text = cx_str_z(tag);
    const cx_memory_write write = {.type = CX_TYPE_FACT,
                                   .data = calls_fact(&w->kit, "new"),
                                   .tags = &text,
                                   .tag_count = tag[0] == 0 ? 0 : 1,
                                   .scope = &w->granted};
    return cx_memory_write_new(w->kit.memory, &write, out, &w->kit.err);
}

static cx_status update_as(world *w, uint64_t id, uint64_t version, uint8_t type)
{
    const cx_uri uri = {.type = type, .id = fixture_id(id), .version = version};
    const cx_memory_update update = {.data = calls_fact(&w->kit, "newer"), .scope = &w->granted};
    cx_uri next;
    return cx_memory_update_at(w->kit.memory, &uri, &update, &next, &w->kit.err);
}

CX_TEST(scoped_writes_of_content)
{
    for (int scheme = CX_SCHEME_CORTEX_1; scheme <= CX_SCHEME_MATRIX_1; scheme++) {
        world w;
        const cx_str tag = CX_STR("open");
        const cx_scope readable = {.include = {.tags = {&tag, 1}}};
        cx_scope writable = readable;
        cx_uri uri = {0};
        writable.writable = true;
        writable.expires = true;
        writable.expires_at = 1700000060;
        if (!world_init(&w, "content", (cx_scheme)scheme))
            return;
        calls *kit = &w.kit;
        uint64_t entries = calls_entries(kit);
        if (grant(&w, readable)) {
            CHECK(cx_failed(write_tagged(&w, "open", &uri)));
            CHECK_STR(fixture_tag(&kit->err), "NotWritable");
            check_entry(&w, entries++, "not_writable", "write");
            CHECK(cx_failed(update_as(&w, 1, 1, CX_TYPE_FACT)));
            check_entry(&w, entries++, "not_writable", "write");
        }
        if (grant(&w, writable)) {
            CHECK(cx_failed(write_tagged(&w, "secret", &uri)));
            check_entry(&w, entries++, "violation", "write");
            CHECK(cx_failed(write_tagged(&w, "", &uri)));
            check_entry(&w, entries++, "violation", "write");
            /* Neither version nor type of what it may not see is told. */
            CHECK(cx_failed(update_as(&w, 2, 9, CX_TYPE_EVENT)));
            CHECK_STR(fixture_tag(&kit->err), "ScopeViolation");
            check_entry(&w, entries++, "violation", "write");
            CHECK(cx_failed(update_as(&w, 1, 1, CX_TYPE_EVENT)));
            CHECK_STR(fixture_tag(&kit->err), "TypeMismatch");
            CHECK_STATUS(write_tagged(&w, "open", &uri), &kit->err);
            CHECK_STR(calls_latest(kit, &uri.id).version.created_by, "child");
            CHECK_STATUS(update_as(&w, 1, 1, CX_TYPE_FACT), &kit->err);
            CHECK_INT(calls_entries(kit), entries + 2);
            kit->tick = 0;
            atomic_store(&kit->clock, INT64_C(1700000061000000000));
            CHECK(cx_failed(write_tagged(&w, "open", &uri)));
            CHECK_STR(fixture_tag(&kit->err), "ScopeExpired");
            CHECK_INT(calls_entries(kit), entries + 2);
        }
        calls_done(kit);
    }
}

/* --- sending ---------------------------------------------------------------------------------- */

/* A scope of andrew's memories for `to`, signed; in the kit's arena. */
static cx_bytes sign_for(world *w, const char *to, bool with_signature)
{
    calls *kit = &w->kit;
    const cx_str tag = CX_STR("open");
    uint8_t signature[64];
    cx_scope scope = {.schema = CX_SCOPE_SCHEMA,
                      .actor = CX_STR("andrew"),
                      .snapshot_hash = w->manifest.overall_root,
                      .include = {.tags = {&tag, 1}},
                      .granted_by = CX_STR("parent"),
                      .granted_to = cx_str_z(to),
                      .signature = {.null = true}};
    cx_buf_clear(&kit->buf);
    cx_scope_to_sign(&scope, &kit->buf);
    CHECK(crypto_sign_detached(signature, NULL, kit->buf.data, kit->buf.size, w->secret) == 0);
    if (with_signature)
        scope.signature = (cx_maybe_bytes){.bytes = {signature, 64}};
    cx_buf_clear(&kit->buf);
    cx_scope_encode(&scope, &kit->buf);
    return cx_str_bytes(cx_arena_copy_str(&kit->arena, cx_buf_str(&kit->buf)));
}

static void check_sent_to(world *w, const char *to, size_t wanted)
{
    calls *kit = &w->kit;
    const cx_sent_scope *sent;
    size_t count = 0;
    CHECK_STATUS(
        cx_memory_sent_scopes(kit->memory, cx_str_z(to), 10, &kit->arena, &sent, &count, &kit->err),
        &kit->err);
    CHECK_INT(count, wanted);
    for (size_t i = 0; i < count; i++)
        CHECK(to[0] == 0 || cx_str_is(sent[i].scope.granted_to, to));
    CHECK_STATUS(
        cx_sent_scopes_of(kit->home, cx_str_z(to), 10, &kit->arena, &sent, &count, &kit->err),
        &kit->err);
    CHECK_INT(count, wanted);
}

/* sent.c E1, E2 */
CX_TEST(scopes_are_sent_once_and_found)
{
    for (int scheme = CX_SCHEME_CORTEX_1; scheme <= CX_SCHEME_MATRIX_1; scheme++) {
        world w;
        cx_sent_scope got;
        uint64_t seq = 0, again = 0, raw = 0;
        bool duplicate = true, found = false;
        if (!world_init(&w, "sent", (cx_scheme)scheme))
            return;
        calls *kit = &w.kit;
        const cx_bytes child = sign_for(&w, "child", true), other = sign_for(&w, "other", true);
        const cx_digest id = cx_digest_of(child);
        CHECK_STATUS(
            cx_memory_send_scope(kit->memory, child, CX_STR("me"), &seq, &duplicate, &kit->err),
            &kit->err);
        CHECK(!duplicate);
        CHECK_INT(calls_entries(kit), seq + 1);
        CHECK_STATUS(
            cx_memory_send_scope(kit->memory, child, CX_STR("you"), &again, &duplicate, &kit->err),
            &kit->err);
        CHECK(duplicate && again == seq && calls_entries(kit) == seq + 1);
        CHECK_STATUS(
            cx_memory_send_scope(kit->memory, other, CX_STR("me"), &again, &duplicate, &kit->err),
            &kit->err);
        /* Payloads of that kind that are no scope, or that one again, change nothing. */
        CHECK_STATUS(cx_memory_raw(kit->memory, CX_STR("scope.sent"), other, false, CX_STR("x"),
                                   &raw, &kit->err),
                     &kit->err);
        CHECK_STATUS(cx_memory_raw(kit->memory, CX_STR("scope.sent"), cx_str_bytes(CX_STR("junk")),
                                   false, CX_STR("x"), &raw, &kit->err),
                     &kit->err);
        check_sent_to(&w, "child", 1);
        check_sent_to(&w, "", 2);
        check_sent_to(&w, "nobody", 0);
        CHECK_STATUS(cx_sent_scope_find(kit->home, &id, &kit->arena, &got, &found, &kit->err),
                     &kit->err);
        CHECK(found && fixture_same(got.bytes, child) && got.seq == seq);
        CHECK_STATUS(cx_memory_sent_scope(kit->memory, &w.manifest.overall_root, &kit->arena, &got,
                                          &found, &kit->err),
                     &kit->err);
        CHECK(!found);
        calls_done(kit);
    }
}

CX_TEST(scopes_that_cannot_be_sent)
{
    world w;
    uint64_t seq;
    bool duplicate;
    cx_memory *eve = NULL;
    if (!world_init(&w, "unsent", CX_SCHEME_CORTEX_1))
        return;
    calls *kit = &w.kit;
    const uint64_t entries = calls_entries(kit);
    const cx_bytes good = sign_for(&w, "child", true);
    uint8_t *large = calloc(1, CX_SENT_SCOPE_SIZE_MAX + 1);
    const struct {
        cx_bytes bytes;
        const char *tag;
    } rows[] = {{sign_for(&w, "child", false), "NotSigned"},
                {cx_bytes_from(good.data, good.size - 1), "NonCanonical"},
                {{NULL, 0}, "NonCanonical"},
                {{large, CX_SENT_SCOPE_SIZE_MAX + 1}, "TooLarge"}};
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        CHECK(cx_failed(cx_memory_send_scope(kit->memory, rows[i].bytes, CX_STR("me"), &seq,
                                             &duplicate, &kit->err)));
        CHECK_STR(fixture_tag(&kit->err), rows[i].tag);
    }
    CHECK_STATUS(cx_memory_open(kit->home, CX_STR("eve"), NULL, &eve, &kit->err), &kit->err);
    CHECK(cx_failed(cx_memory_send_scope(eve, good, CX_STR("me"), &seq, &duplicate, &kit->err)));
    CHECK_STR(fixture_tag(&kit->err), "ActorMismatch");
    cx_memory_close(eve);
    free(large);
    CHECK_INT(calls_entries(kit), entries);
    calls_done(kit);
}

/* Twenty at once, then ten a second; the answer is the same, only the journal is spared. */
CX_TEST(scope_violations_are_journaled_within_a_limit)
{
    world w;
    const cx_str tag = CX_STR("open");
    const cx_scope scope = {.include = {.tags = {&tag, 1}}};
    if (!world_init(&w, "limit", CX_SCHEME_CORTEX_1))
        return;
    calls *kit = &w.kit;
    kit->tick = 0;
    if (grant(&w, scope)) {
        uint64_t entries = calls_entries(kit);
        cx_memory_view view;
        for (int i = 0; i < 30; i++) {
            CHECK(cx_failed(resolve(&w, 2, 1, &view)));
            CHECK_STR(fixture_tag(&kit->err), "ScopeViolation");
        }
        CHECK_INT(calls_entries(kit), entries + 20);
        atomic_fetch_add(&kit->clock, 200000000);
        for (int i = 0; i < 5; i++)
            CHECK(cx_failed(resolve(&w, 2, 1, &view)));
        CHECK_INT(calls_entries(kit), entries + 22);
    }
    calls_done(kit);
}
