/* test_slots.c - the tree with replaceable leaves is that of RFC 6962, after every change. */
#include "tree/slots.h"

#include "crypto/api.h"
#include "tests/support/fault.h"
#include "tests/test.h"

static cx_digest leaf(uint64_t number, uint64_t version)
{
    const uint64_t words[2] = {number, version};
    return cx_digest_of(cx_bytes_from(words, sizeof words));
}

/* The root that the journal tree gives for the same leaves. */
static cx_digest root_of(const cx_digest *leaves, size_t count)
{
    cx_mmr *mmr;
    cx_digest root = {{0}};
    CHECK(!cx_failed(cx_mmr_open(CX_SCHEME_CORTEX_1, cx_alloc_default(), &mmr, NULL)));
    CHECK(!cx_failed(cx_mmr_append(mmr, leaves, count, NULL)));
    CHECK(!cx_failed(cx_mmr_root(mmr, count, &root, NULL)));
    cx_mmr_close(mmr);
    return root;
}

CX_TEST(slots_root_equals_the_journal_tree)
{
    enum { MAX = 70 };
    cx_digest leaves[MAX], expected, root;
    cx_slots *slots;
    CHECK(!cx_failed(cx_slots_open(cx_alloc_default(), &slots, NULL)));
    root = cx_slots_root(slots);
    expected = root_of(leaves, 0);
    CHECK(cx_digest_eq(&root, &expected));
    for (size_t n = 0; n < MAX; n++) {
        leaves[n] = leaf(n, 0);
        CHECK(!cx_failed(cx_slots_put(slots, n, &leaves[n], NULL)));
        CHECK(cx_slots_count(slots) == n + 1);
        root = cx_slots_root(slots);
        expected = root_of(leaves, n + 1);
        CHECK(cx_digest_eq(&root, &expected));
        /* Replacing any leaf gives the tree of the new leaves. */
        size_t changed = (n * 7 + 3) % (n + 1);
        leaves[changed] = leaf(changed, n + 1);
        CHECK(!cx_failed(cx_slots_put(slots, changed, &leaves[changed], NULL)));
        root = cx_slots_root(slots);
        expected = root_of(leaves, n + 1);
        CHECK(cx_digest_eq(&root, &expected));
    }
    cx_slots_close(slots);
}

CX_TEST(slots_paths_hold)
{
    cx_slots *slots;
    CHECK(!cx_failed(cx_slots_open(cx_alloc_default(), &slots, NULL)));
    for (size_t n = 1; n <= 40; n++) {
        cx_digest added = leaf(n - 1, 9);
        CHECK(!cx_failed(cx_slots_put(slots, n - 1, &added, NULL)));
        cx_digest root = cx_slots_root(slots);
        for (size_t i = 0; i < n; i++) {
            cx_mmr_path path;
            cx_digest here = leaf(i, 9), other = leaf(i, 8);
            cx_slots_inclusion(slots, i, &path);
            CHECK(cx_mmr_inclusion_holds(CX_SCHEME_CORTEX_1, i, n, &here, path.hashes, path.count,
                                         &root));
            CHECK(!cx_mmr_inclusion_holds(CX_SCHEME_CORTEX_1, i, n, &other, path.hashes, path.count,
                                          &root));
        }
    }
    cx_slots_close(slots);
}

/* A put that fails for want of memory leaves the tree as it was. */
CX_TEST(slots_survive_failing_memory)
{
    cx_slots_close(NULL);
    for (uint64_t fail_at = 1;; fail_at++) {
        fault_alloc memory;
        cx_slots *slots = NULL;
        bool failed = false;
        fault_alloc_init(&memory, fail_at, false);
        if (!cx_failed(cx_slots_open(&memory.alloc, &slots, NULL))) {
            for (uint64_t n = 0; n < 20; n++) {
                cx_digest added = leaf(n, 0), before = cx_slots_root(slots), after;
                if (!cx_failed(cx_slots_put(slots, n, &added, NULL)))
                    continue;
                failed = true;
                after = cx_slots_root(slots);
                CHECK(cx_slots_count(slots) == n && cx_digest_eq(&before, &after));
                CHECK(!cx_failed(cx_slots_put(slots, n, &added, NULL)));
            }
        }
        bool fired = atomic_load(&memory.fired) != 0;
        CHECK(slots == NULL || fired == failed);
        cx_slots_close(slots);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        if (!fired)
            break;
    }
}
