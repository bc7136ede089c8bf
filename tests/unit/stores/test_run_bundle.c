/*
 * The stored bundle of a run: what is given out has the hash that was recorded (B1), the first
 * entry counts (B2), and what was erased is said to be erased (B3), a key of an object, too (J1).
 */
#include "crypto/api.h"
#include "memory/api.h"
#include "recorder/api.h"
#include "stores/run_bundle.h"
#include "stores/run_object.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

#define RUN CX_STR("run_20260101_000000_aee408847d35e44e99430f0979c3357b")
#define OTHER CX_STR("run_20260101_000001_00000000000000000000000000000000")
#define ACTOR CX_STR("run:0123456789abcdef")

static uint64_t append(kit *k, cx_dotted_kind kind, cx_bytes payload, bool committed,
                       const cx_id *subject)
{
    cx_txn *txn = NULL;
    uint64_t seq = 0;
    const cx_entry_draft draft = {.kind = cx_kinds_name(kind),
                                  .created_at_ns = 1,
                                  .created_by = cx_str_bytes(CX_STR("test")),
                                  .payload = payload,
                                  .committed = committed,
                                  .subject = subject};
    CHECK_STATUS(cx_txn_begin(k->home, ACTOR, &txn, &k->err), &k->err);
    CHECK_STATUS(cx_txn_entry(txn, &draft, &seq, &k->err), &k->err);
    CHECK_STATUS(cx_txn_commit(txn, &k->err), &k->err);
    return seq;
}

static uint64_t append_part(kit *k, cx_str run, cx_str bytes, bool committed)
{
    const cx_digest digest = cx_digest_of(cx_str_bytes(bytes));
    const cx_id subject = cx_run_part_subject(run, &digest);
    return append(k, CX_KIND_RUN_BUNDLE_PART, cx_str_bytes(bytes), committed, &subject);
}

static void append_stored(kit *k, const cx_run_stored *stored)
{
    cx_buf text;
    cx_arena arena;
    const cx_id subject = cx_run_stored_subject(stored->run_id);
    cx_buf_init(&text, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_stored_write(stored, &arena, &text, &k->err), &k->err);
    append(k, stored->in_object ? CX_KIND_RUN_BUNDLE_OBJECT : CX_KIND_RUN_BUNDLE,
           cx_buf_bytes(&text), false, &subject);
    cx_arena_done(&arena);
    cx_buf_done(&text);
}

/* Two parts, "one" and "two!". */
static cx_run_stored two_parts(kit *k, cx_run_part parts[2])
{
    const cx_str texts[] = {CX_STR("one"), CX_STR("two!")};
    for (size_t i = 0; i < 2; i++)
        parts[i] = (cx_run_part){append_part(k, RUN, texts[i], true),
                                 cx_digest_of(cx_str_bytes(texts[i])), texts[i].size};
    return (cx_run_stored){.run_id = RUN,
                           .actor = ACTOR,
                           .sha256 = cx_digest_of(cx_str_bytes(CX_STR("onetwo!"))),
                           .size_bytes = 7,
                           .parts = parts,
                           .part_count = 2};
}

/* What reading it comes to: "" or the tag of the error; nothing is given out with one. */
static void check_read(kit *k, cx_str run, const char *tag)
{
    cx_arena arena;
    cx_run_stored stored;
    cx_buf out;
    bool found = false;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_add_z(&out, "before");
    cx_status status = cx_run_stored_find(k->home, ACTOR, run, &arena, &stored, &found, &err);
    if (!cx_failed(status) && found)
        status = cx_run_stored_read(k->home, &stored, NULL, &out, &err);
    CHECK(cx_failed(status) || found);
    CHECK_STR(cx_str_z(cx_failed(status) ? err.tag : ""), tag);
    CHECK_STR(cx_buf_str(&out), tag[0] == 0 ? "beforeonetwo!" : "before");
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

CX_TEST(run_bundle_the_first_entry_counts_and_its_bytes_are_checked)
{
    kit k;
    cx_run_part parts[2];
    if (!kit_init(&k, "run-bundle", CX_SCHEME_CORTEX_1))
        return;
    cx_run_stored stored = two_parts(&k, parts);
    append_stored(&k, &stored);
    stored.sha256.bytes[0] ^= 1;
    append_stored(&k, &stored);
    check_read(&k, RUN, "");
    /* A part of the run is found by its hash, one of another run is not. */
    uint64_t seq;
    bool found;
    CHECK_STATUS(cx_run_part_find(k.home, ACTOR, RUN, &parts[1], &seq, &found, &k.err), &k.err);
    CHECK(found && seq == parts[1].seq);
    CHECK_STATUS(cx_run_part_find(k.home, ACTOR, OTHER, &parts[1], &seq, &found, &k.err), &k.err);
    CHECK(!found);
    kit_done(&k);
}

/* Each way in which what is stored is not what was recorded. */
CX_TEST(run_bundle_what_was_changed_is_not_given_out)
{
    kit k;
    cx_run_part parts[2];
    for (int way = 0; way < 6; way++) {
        if (!kit_init(&k, "run-bundle", CX_SCHEME_CORTEX_1))
            return;
        cx_run_stored stored = two_parts(&k, parts);
        const char *tag = CX_RUN_BUNDLE_CHANGED;
        if (way == 0)
            stored.sha256.bytes[31] ^= 1;
        else if (way == 1)
            parts[1].sha256.bytes[0] ^= 1;
        else if (way == 2) /* another part of the same size in its place */
            parts[1].seq = append_part(&k, RUN, CX_STR("tow!"), true);
        else if (way == 3) /* its bytes, but not erasable */
            parts[1].seq = append_part(&k, RUN, CX_STR("two!"), false);
        else if (way == 4) { /* the sizes do not add up */
            stored.size_bytes = 8;
        } else {
            parts[1].seq = 1000;
            tag = CX_RUN_BUNDLE_MISSING;
        }
        append_stored(&k, &stored);
        check_read(&k, RUN, tag);
        kit_done(&k);
    }
}

CX_TEST(run_bundle_an_erased_part_is_said_to_be_erased)
{
    kit k;
    cx_run_part parts[2];
    cx_memory *memory;
    if (!kit_init(&k, "run-bundle", CX_SCHEME_CORTEX_1))
        return;
    cx_run_stored stored = two_parts(&k, parts);
    append_stored(&k, &stored);
    CHECK_STATUS(cx_memory_open(k.home, ACTOR, NULL, &memory, &k.err), &k.err);
    CHECK_STATUS(cx_memory_redact(memory, parts[0].seq, CX_STR("why"), CX_STR("by"), &k.err),
                 &k.err);
    cx_memory_close(memory);
    check_read(&k, RUN, CX_RUN_BUNDLE_ERASED);
    uint64_t seq;
    bool found;
    CHECK_STATUS(cx_run_part_find(k.home, ACTOR, RUN, &parts[0], &seq, &found, &k.err), &k.err);
    CHECK(!found);
    kit_done(&k);
}

CX_TEST(run_bundle_an_entry_of_another_form_is_refused)
{
    static const char *const texts[] = {
        "{}",
        "[1]",
        "not json",
        "{\"type\":\"cortex.run.bundle.v1\",\"run_id\":\"run_20260101_000000_"
        "aee408847d35e44e99430f0"
        "979c3357b\",\"manifest_sha256\":\"00\",\"sha256\":\"00\",\"size_bytes\":1,\"parts\":[]}",
    };
    kit k;
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++) {
        if (!kit_init(&k, "run-bundle", CX_SCHEME_CORTEX_1))
            return;
        const cx_id subject = cx_run_stored_subject(RUN);
        append(&k, CX_KIND_RUN_BUNDLE, cx_str_bytes(cx_str_z(texts[i])), false, &subject);
        check_read(&k, RUN, CX_RUN_BUNDLE_CHANGED);
        kit_done(&k);
    }
}

/* --- in an object store ----------------------------------------------------------------------- */

static uint64_t append_key(kit *k, const cx_digest *archive, const cx_digest *key)
{
    cx_buf text;
    cx_arena arena;
    const cx_id subject = cx_run_key_subject(RUN);
    cx_buf_init(&text, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_run_key_write(RUN, archive, key, &arena, &text, &k->err), &k->err);
    const uint64_t seq = append(k, CX_KIND_RUN_BUNDLE_PART, cx_buf_bytes(&text), true, &subject);
    cx_arena_done(&arena);
    cx_buf_done(&text);
    return seq;
}

/* An archive "onetwo!", sealed. */
static cx_run_stored as_object(kit *k, uint8_t key_byte)
{
    cx_run_stored stored = {.run_id = RUN,
                            .actor = ACTOR,
                            .sha256 = cx_digest_of(cx_str_bytes(CX_STR("onetwo!"))),
                            .size_bytes = 7,
                            .in_object = true,
                            .object = {.endpoint = CX_STR("https://s3.example"),
                                       .bucket = CX_STR("bundles"),
                                       .name = CX_STR("sha256/00")}};
    cx_buf bytes;
    cx_digest key;
    memset(key.bytes, key_byte, sizeof key.bytes);
    stored.object.key_seq = append_key(k, &stored.sha256, &key);
    cx_buf_init(&bytes, cx_alloc_default());
    cx_buf_add_z(&bytes, "onetwo!");
    CHECK_STATUS(cx_run_object_seal(RUN, &stored.sha256, &key, &bytes, &stored.object, &k->err),
                 &k->err);
    CHECK(bytes.size == 7 + CX_BOX_EXTRA && stored.object.size_bytes == bytes.size);
    CHECK(memcmp(bytes.data, "onetwo!", 7) != 0);
    cx_buf_done(&bytes);
    return stored;
}

CX_TEST(run_object_is_the_same_with_its_key_and_another_with_each_other)
{
    kit k;
    if (!kit_init(&k, "run-bundle", CX_SCHEME_CORTEX_1))
        return;
    const cx_run_stored first = as_object(&k, 1), again = as_object(&k, 1);
    const cx_run_stored other = as_object(&k, 2);
    CHECK(cx_digest_eq(&first.object.sha256, &again.object.sha256));
    CHECK(!cx_digest_eq(&first.object.sha256, &other.object.sha256));
    kit_done(&k);
}

/* Without a store, a reader says that there is one; with an erased or a strange key, that. */
CX_TEST(run_object_is_unreachable_or_erased_or_changed)
{
    for (int way = 0; way < 5; way++) {
        kit k;
        cx_memory *memory;
        const char *tag = way == 0   ? CX_RUN_BUNDLE_UNREACHABLE
                          : way == 1 ? CX_RUN_BUNDLE_ERASED
                          : way == 2 ? CX_RUN_BUNDLE_MISSING
                                     : CX_RUN_BUNDLE_CHANGED;
        if (!kit_init(&k, "run-bundle", CX_SCHEME_CORTEX_1))
            return;
        cx_run_stored stored = as_object(&k, 1);
        if (way == 2)
            stored.object.key_seq = 1000;
        if (way == 3) { /* a key for another archive */
            const cx_digest other = cx_digest_of(cx_bytes_from(NULL, 0));
            stored.object.key_seq = append_key(&k, &other, &other);
        }
        if (way == 4) /* no seal adds so much */
            stored.object.size_bytes++;
        append_stored(&k, &stored);
        if (way == 1) {
            CHECK_STATUS(cx_memory_open(k.home, ACTOR, NULL, &memory, &k.err), &k.err);
            CHECK_STATUS(cx_memory_redact(memory, stored.object.key_seq, CX_STR("why"),
                                          CX_STR("by"), &k.err),
                         &k.err);
            cx_memory_close(memory);
        }
        check_read(&k, RUN, tag);
        kit_done(&k);
    }
}

/* B2, of both kinds. */
CX_TEST(run_object_or_parts_whichever_was_recorded_first)
{
    for (int first = 0; first < 2; first++) {
        kit k;
        cx_run_part parts[2];
        if (!kit_init(&k, "run-bundle", CX_SCHEME_CORTEX_1))
            return;
        const cx_run_stored stored[] = {two_parts(&k, parts), as_object(&k, 1)};
        append_stored(&k, &stored[first]);
        append_stored(&k, &stored[1 - first]);
        check_read(&k, RUN, first == 0 ? "" : CX_RUN_BUNDLE_UNREACHABLE);
        cx_arena arena;
        cx_run_stored found;
        bool more = true;
        size_t at = 0, count = 0, objects = 0;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        while (more) {
            CHECK_STATUS(cx_run_stored_next(k.home, ACTOR, RUN, &at, &arena, &found, &more, &k.err),
                         &k.err);
            count += more;
            objects += more && found.in_object;
        }
        CHECK(count == 2 && objects == 1);
        cx_arena_done(&arena);
        kit_done(&k);
    }
}
