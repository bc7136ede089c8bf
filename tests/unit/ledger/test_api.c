/*
 * The installed API of homes and proofs, <cortex/journal.h> and <cortex/proof.h>: each call, its
 * errors, and what happens when it is used wrongly.
 */
#include <cortex/memory.h>
#include <cortex/proof.h>

#include <sodium.h>
#include <string.h>

#include "base/buf.h"
#include "proof/api.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/test.h"

#define CHECK_FAILS(expression, expected_code, expected_tag)                     \
    do {                                                                         \
        memset(&f->err, 0, sizeof f->err);                                       \
        CHECK_INT((expression).code, expected_code);                             \
        CHECK_STR(cx_str_z(f->err.tag == NULL ? "" : f->err.tag), expected_tag); \
    } while (0)

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    cx_ledger *ledger;
    cx_err err;
    uint8_t secret[crypto_sign_SECRETKEYBYTES];
    cx_pubkey key;
} fixture;

static bool begin(fixture *f, const char *scheme)
{
    memset(f, 0, sizeof *f);
    folder_fresh(f->path, "api");
    static const uint8_t seed[32] = {7};
    CHECK_INT(crypto_sign_seed_keypair(f->key.bytes, f->secret, seed), 0);
    cx_ledger_options options = CX_LEDGER_OPTIONS_INIT;
    options.segment_bytes = 65536;
    CHECK_STATUS(cx_ledger_make(f->path, scheme, &options, &f->err), &f->err);
    CHECK_STATUS(cx_ledger_open(f->path, &options, &f->ledger, &f->err), &f->err);
    return f->ledger != NULL;
}

static void end(fixture *f)
{
    CHECK_STATUS(cx_ledger_close(f->ledger, &f->err), &f->err);
    folder_remove(f->path);
}

static uint64_t append(fixture *f, const char *actor, const char *text, bool committed)
{
    cx_ledger_draft draft = CX_LEDGER_DRAFT_INIT;
    uint64_t seq = UINT64_MAX;
    draft.kind = "test.said";
    draft.payload = cx_bytes_from(text, strlen(text));
    draft.committed = committed;
    CHECK_STATUS(cx_ledger_append(f->ledger, actor, &draft, 1, &seq, &f->err), &f->err);
    return seq;
}

static cx_signature sign_bytes(const fixture *f, const cx_owned *bytes)
{
    cx_signature signature;
    CHECK_INT(crypto_sign_detached(signature.bytes, NULL, bytes->data, bytes->size, f->secret), 0);
    return signature;
}

/* --- homes ------------------------------------------------------------------------------------ */

CX_TEST(api_home_is_made_opened_and_closed)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger *other = NULL;
    CHECK_STR(cx_str_z(cx_ledger_scheme(f->ledger)), "cortex-1");
    CHECK_INT(cx_ledger_torn_bytes(f->ledger), 0);
    CHECK_INT(cx_ledger_make(f->path, NULL, NULL, &f->err).code, CX_E_BUSY);
    CHECK_FAILS(cx_ledger_open(f->path, NULL, &other, &f->err), CX_E_BUSY, "Locked");
    CHECK_FAILS(cx_ledger_make("/tmp/never-made", "md5", NULL, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_FAILS(cx_ledger_make(NULL, NULL, NULL, &f->err), CX_E_USAGE, "InvalidArgument");
    CHECK_FAILS(cx_ledger_open("", NULL, &other, &f->err), CX_E_USAGE, "InvalidArgument");
    CHECK_FAILS(cx_ledger_open("/nonexistent/home", NULL, &other, &f->err), CX_E_NOT_FOUND,
                "NoHome");
    CHECK_INT(cx_ledger_open("/nonexistent/home", NULL, &other, NULL).code, CX_E_NOT_FOUND);
    CHECK(other == NULL);
    CHECK_STATUS(cx_ledger_close(NULL, &f->err), &f->err);
    CHECK_STATUS(cx_ledger_close(f->ledger, &f->err), &f->err);
    f->ledger = NULL;
    CHECK_INT(cx_ledger_make(f->path, NULL, NULL, &f->err).code, CX_E_EXISTS);
    end(f);
}

CX_TEST(api_read_only_homes_are_not_changed)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, "matrix-1"));
    append(f, "andrew", "one", false);
    cx_ledger *reader = NULL;
    cx_ledger_options options = CX_LEDGER_OPTIONS_INIT;
    cx_ledger_draft draft = CX_LEDGER_DRAFT_INIT;
    cx_ledger_state state;
    options.read_only = true;
    draft.kind = "raw";
    CHECK_STATUS(cx_ledger_open(f->path, &options, &reader, &f->err), &f->err);
    REQUIRE(reader != NULL);
    CHECK_STR(cx_str_z(cx_ledger_scheme(reader)), "matrix-1");
    CHECK_INT(cx_ledger_append(reader, "andrew", &draft, 1, NULL, &f->err).code, CX_E_DENIED);
    CHECK_STATUS(cx_ledger_roots(reader, "andrew", &state, &f->err), &f->err);
    CHECK_INT(state.journal_size, 1);
    CHECK_STATUS(cx_ledger_close(reader, &f->err), &f->err);
    end(f);
}

static bool count_actor(void *arg, const cx_ledger_actor_info *actor)
{
    cx_buf *names = arg;
    cx_buf_add_str(names, actor->name);
    cx_buf_add_byte(names, ' ');
    return !cx_str_is(actor->name, "bo");
}

CX_TEST(api_appends_entries_and_reads_them)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_draft drafts[2] = {CX_LEDGER_DRAFT_INIT, CX_LEDGER_DRAFT_INIT};
    uint64_t first = 99, ticket = 0;
    cx_ledger_entry entry = {0};
    drafts[0].kind = "raw";
    drafts[0].payload = cx_bytes_from("abc", 3);
    drafts[0].by = "tester";
    drafts[0].created_at_ns = 1700000000000000000;
    drafts[1].kind = "test.secret";
    drafts[1].payload = cx_bytes_from("secret", 6);
    drafts[1].committed = true;
    CHECK_STATUS(cx_ledger_append(f->ledger, "andrew", drafts, 2, &first, &f->err), &f->err);
    CHECK_INT(first, 0);
    CHECK_STATUS(cx_ledger_append_later(f->ledger, "andrew", drafts, 2, &first, &ticket, &f->err),
                 &f->err);
    CHECK_INT(first, 2);
    CHECK_STATUS(cx_ledger_wait(f->ledger, ticket, &f->err), &f->err);
    CHECK_STATUS(cx_ledger_sync(f->ledger, &f->err), &f->err);

    CHECK_STATUS(cx_ledger_read(f->ledger, "andrew", 0, &entry, &f->err), &f->err);
    CHECK_STR(entry.kind, "raw");
    CHECK_STR(cx_bytes_str(entry.payload), "abc");
    CHECK_STR(cx_bytes_str(entry.created_by), "tester");
    CHECK_INT(entry.created_at_ns, 1700000000000000000);
    CHECK(!entry.committed && !entry.erased && !entry.has_subject);
    CHECK(entry.bytes.size > 10);
    cx_ledger_entry_done(&entry);
    CHECK(entry.memory.data == NULL);
    CHECK_STATUS(cx_ledger_read(f->ledger, "andrew", 3, &entry, &f->err), &f->err);
    CHECK(entry.committed && !entry.erased);
    CHECK_INT(entry.payload_size, 6);
    CHECK_INT(entry.seq, 3);
    CHECK_STR(cx_bytes_str(entry.payload), "secret");
    cx_ledger_entry_done(&entry);
    cx_ledger_entry_done(&entry);

    CHECK_FAILS(cx_ledger_read(f->ledger, "andrew", 4, &entry, &f->err), CX_E_NOT_FOUND, "NoEntry");
    CHECK_FAILS(cx_ledger_read(f->ledger, "nobody", 0, &entry, &f->err), CX_E_NOT_FOUND, "NoActor");
    CHECK_INT(cx_ledger_read(f->ledger, NULL, 0, &entry, NULL).code, CX_E_USAGE);
    end(f);
}

CX_TEST(api_append_is_all_or_nothing)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_draft drafts[2] = {CX_LEDGER_DRAFT_INIT, CX_LEDGER_DRAFT_INIT};
    cx_ledger_actor_info actor;
    drafts[0].kind = "test.good";
    drafts[1].kind = "write"; /* a kind of the format: has a call of its own */
    CHECK_FAILS(cx_ledger_append(f->ledger, "andrew", drafts, 2, NULL, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_FAILS(cx_ledger_actor(f->ledger, "andrew", &actor, &f->err), CX_E_NOT_FOUND, "NoActor");
    drafts[1].kind = NULL;
    CHECK_FAILS(cx_ledger_append(f->ledger, "andrew", drafts, 2, NULL, &f->err), CX_E_USAGE,
                "InvalidArgument");
    drafts[1].kind = "test.good";
    drafts[1].by = "\xff";
    CHECK_FAILS(cx_ledger_append(f->ledger, "andrew", drafts, 2, NULL, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_FAILS(cx_ledger_append(f->ledger, "andrew", drafts, 0, NULL, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_FAILS(cx_ledger_append(f->ledger, "a/b", drafts, 1, NULL, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_INT(cx_ledger_append(f->ledger, NULL, drafts, 1, NULL, NULL).code, CX_E_USAGE);
    CHECK_FAILS(cx_ledger_actor(f->ledger, "andrew", &actor, &f->err), CX_E_NOT_FOUND, "NoActor");
    end(f);
}

CX_TEST(api_actors_are_listed)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_actor_info actor;
    cx_buf names;
    cx_buf_init(&names, cx_alloc_default());
    append(f, "anna", "x", false);
    append(f, "bo", "x", false);
    append(f, "carl", "x", false);
    CHECK_STATUS(cx_ledger_actor(f->ledger, "bo", &actor, &f->err), &f->err);
    CHECK_STR(actor.name, "bo");
    CHECK_INT(actor.entry_count, 1);
    CHECK_STR(cx_str_z(actor.scheme), "cortex-1");
    CHECK_STATUS(cx_ledger_each_actor(f->ledger, count_actor, &names, &f->err), &f->err);
    CHECK_STR(cx_buf_str(&names), "anna bo ");
    cx_buf_done(&names);
    end(f);
}

CX_TEST(api_erases_committed_payloads)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_entry entry = {0};
    uint64_t open = append(f, "andrew", "open", false);
    uint64_t secret = append(f, "andrew", "secret", true);
    CHECK_FAILS(cx_ledger_erase(f->ledger, "andrew", open, "why", NULL, &f->err), CX_E_CONFLICT,
                "NotCommitted");
    CHECK_FAILS(cx_ledger_erase(f->ledger, "andrew", 77, "why", NULL, &f->err), CX_E_NOT_FOUND,
                "NotFound");
    CHECK_FAILS(cx_ledger_erase(f->ledger, "nobody", 0, "why", NULL, &f->err), CX_E_NOT_FOUND,
                "NoActor");
    CHECK_STATUS(cx_ledger_erase(f->ledger, "andrew", secret, "why", NULL, &f->err), &f->err);
    CHECK_FAILS(cx_ledger_erase(f->ledger, "andrew", secret, NULL, NULL, &f->err), CX_E_EXISTS,
                "AlreadyRedacted");
    CHECK_STATUS(cx_ledger_read(f->ledger, "andrew", secret, &entry, &f->err), &f->err);
    CHECK(entry.committed && entry.erased);
    CHECK_INT(entry.payload.size, 0);
    cx_ledger_entry_done(&entry);
    end(f);
}

CX_TEST(api_backup_is_a_home)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    char copy[FOLDER_PATH_SIZE];
    cx_ledger *other = NULL;
    cx_ledger_state state, same;
    folder_fresh(copy, "api-copy");
    append(f, "andrew", "one", false);
    CHECK_STATUS(cx_ledger_backup(f->ledger, copy, &f->err), &f->err);
    CHECK_INT(cx_ledger_backup(f->ledger, copy, &f->err).code, CX_E_EXISTS);
    CHECK_INT(cx_ledger_backup(f->ledger, NULL, NULL).code, CX_E_USAGE);
    CHECK_STATUS(cx_ledger_open(copy, NULL, &other, &f->err), &f->err);
    REQUIRE(other != NULL);
    CHECK_STATUS(cx_ledger_roots(f->ledger, "andrew", &state, &f->err), &f->err);
    CHECK_STATUS(cx_ledger_roots(other, "andrew", &same, &f->err), &f->err);
    CHECK(cx_digest_eq(&state.overall_root, &same.overall_root));
    CHECK_STATUS(cx_ledger_close(other, &f->err), &f->err);
    folder_remove(copy);
    end(f);
}

CX_TEST(api_digests_as_text)
{
    cx_digest digest, back = {{1}};
    char text[CX_DIGEST_TEXT_SIZE];
    for (size_t i = 0; i < sizeof digest.bytes; i++)
        digest.bytes[i] = (uint8_t)(8 * i + 1);
    cx_digest_to_text(&digest, text);
    CHECK_INT(strlen(text), 64);
    CHECK(strncmp(text, "010911", 6) == 0);
    text[63] = 'x';
    CHECK(!cx_digest_from_text(text, &back));
    CHECK_INT(back.bytes[0], 1);
    CHECK(!cx_digest_from_text(NULL, &back));
    CHECK(!cx_digest_from_text("01", &back));
    cx_digest_to_text(&digest, text);
    CHECK(cx_digest_from_text(text, &back));
    CHECK(cx_digest_eq(&digest, &back));
}

/* --- snapshots -------------------------------------------------------------------------------- */

static bool count_snapshot(void *arg, const cx_ledger_manifest *manifest)
{
    unsigned *seen = arg;
    CHECK(manifest->bytes.size > 100);
    *seen = *seen * 10 + (unsigned)manifest->snapshot + 1;
    return true;
}

CX_TEST(api_snapshots_are_made_found_and_dropped)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_manifest first = {0}, found = {0};
    unsigned seen = 0;
    CHECK_FAILS(cx_ledger_snapshot_make(f->ledger, "andrew", NULL, &first, &f->err), CX_E_NOT_FOUND,
                "NoActor");
    append(f, "andrew", "one", false);
    CHECK_FAILS(cx_ledger_snapshot_make(f->ledger, "andrew", "\xc3", &first, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_STATUS(cx_ledger_snapshot_make(f->ledger, "andrew", "first", &first, &f->err), &f->err);
    CHECK_INT(first.snapshot, 0);
    CHECK_INT(first.state.journal_size, 1);
    CHECK_STR(first.reason, "first");
    CHECK_STR(first.actor, "andrew");
    CHECK(!first.sealed);
    append(f, "andrew", "two", false);
    CHECK_STATUS(cx_ledger_snapshot_make(f->ledger, "andrew", NULL, &found, &f->err), &f->err);
    CHECK_STR(found.reason, "explicit");
    cx_ledger_manifest_done(&found);
    CHECK_STATUS(
        cx_ledger_snapshot_find(f->ledger, "andrew", &first.state.overall_root, &found, &f->err),
        &f->err);
    CHECK_INT(found.snapshot, 0);
    CHECK(found.bytes.size == first.bytes.size &&
          memcmp(found.bytes.data, first.bytes.data, first.bytes.size) == 0);
    cx_ledger_manifest_done(&found);
    CHECK_STATUS(cx_ledger_each_snapshot(f->ledger, "andrew", count_snapshot, &seen, &f->err),
                 &f->err);
    CHECK_INT(seen, 12);
    CHECK_STATUS(cx_ledger_snapshot_drop(f->ledger, "andrew", 0, "andrew", &f->err), &f->err);
    CHECK_FAILS(cx_ledger_snapshot_drop(f->ledger, "andrew", 0, NULL, &f->err), CX_E_NOT_FOUND,
                "SnapshotNotFound");
    CHECK_FAILS(cx_ledger_snapshot_get(f->ledger, "andrew", 0, &found, &f->err), CX_E_NOT_FOUND,
                "SnapshotNotFound");
    CHECK_FAILS(
        cx_ledger_snapshot_find(f->ledger, "andrew", &first.state.overall_root, &found, &f->err),
        CX_E_NOT_FOUND, "SnapshotNotFound");
    CHECK_INT(cx_ledger_each_snapshot(f->ledger, "nobody", count_snapshot, &seen, NULL).code,
              CX_E_NOT_FOUND);
    cx_ledger_manifest_done(&first);
    end(f);
}

static void seal_snapshot(fixture *f, uint64_t snapshot)
{
    cx_owned to_sign = CX_OWNED_INIT;
    CHECK_STATUS(cx_ledger_snapshot_to_sign(f->ledger, "andrew", snapshot, &to_sign, &f->err),
                 &f->err);
    cx_ledger_seal seal = {"auditor", f->key, sign_bytes(f, &to_sign), NULL};
    cx_owned_done(&to_sign);
    CHECK_STATUS(cx_ledger_snapshot_seal(f->ledger, "andrew", snapshot, &seal, &f->err), &f->err);
}

CX_TEST(api_seeds_follow_from_the_state)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    char digits[65] = "", seed[CX_LEDGER_SEED_SIZE] = "", again[CX_LEDGER_SEED_SIZE] = "";
    char wanted[CX_SEED_SIZE];
    cx_ledger_manifest manifest = {0};
    cx_digest root, older;
    for (size_t i = 0; i < 64; i++)
        digits[i] = 'a';
    cx_ledger_seed_input input = CX_LEDGER_SEED_INPUT_INIT;
    input.intent_id = "01HF7YAT000000000000000003";
    input.mtx_digest = digits;
    CHECK_FAILS(cx_ledger_seed(f->ledger, "andrew", &input, seed, NULL, &f->err), CX_E_USAGE,
                "InvalidArgument");
    input.model_id = "m-7";
    CHECK_FAILS(cx_ledger_seed(f->ledger, "andrew", &input, seed, NULL, &f->err), CX_E_NOT_FOUND,
                "NoActor");
    append(f, "andrew", "one", false);
    CHECK_STATUS(cx_ledger_seed(f->ledger, "andrew", &input, seed, &older, &f->err), &f->err);
    const cx_seed_input inner = {.intent_id = cx_str_z(input.intent_id),
                                 .actor = CX_STR("andrew"),
                                 .overall_root = &older,
                                 .mtx_digest = cx_str_z(digits),
                                 .model_id = CX_STR("m-7")};
    CHECK_STATUS(cx_seed_make(CX_SCHEME_CORTEX_1, &inner, wanted, &f->err), &f->err);
    CHECK(memcmp(seed, wanted, CX_SEED_SIZE) == 0 && seed[CX_SEED_SIZE] == 0);
    CHECK_STATUS(cx_ledger_snapshot_make(f->ledger, "andrew", "pre-compile", &manifest, &f->err),
                 &f->err);
    CHECK(cx_digest_eq(&manifest.state.overall_root, &older));
    cx_ledger_manifest_done(&manifest);
    append(f, "andrew", "two", false);
    CHECK_STATUS(cx_ledger_seed(f->ledger, "andrew", &input, again, &root, &f->err), &f->err);
    CHECK(strcmp(seed, again) != 0 && !cx_digest_eq(&root, &older));
    input.at = true;
    CHECK_STATUS(cx_ledger_seed(f->ledger, "andrew", &input, again, &root, &f->err), &f->err);
    CHECK(strcmp(seed, again) == 0 && cx_digest_eq(&root, &older));
    input.snapshot = 7;
    CHECK_FAILS(cx_ledger_seed(f->ledger, "andrew", &input, again, NULL, &f->err), CX_E_NOT_FOUND,
                "SnapshotNotFound");
    end(f);
}

CX_TEST(api_seals_take_good_signatures_only)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_manifest manifest = {0};
    cx_owned to_sign;
    cx_ledger_seal bad = {"auditor", f->key, {{0}}, NULL};
    append(f, "andrew", "one", false);
    CHECK_STATUS(cx_ledger_snapshot_make(f->ledger, "andrew", NULL, &manifest, &f->err), &f->err);
    cx_ledger_manifest_done(&manifest);
    CHECK_FAILS(cx_ledger_snapshot_to_sign(f->ledger, "andrew", 9, &to_sign, &f->err),
                CX_E_NOT_FOUND, "SnapshotNotFound");
    CHECK_FAILS(cx_ledger_snapshot_seal(f->ledger, "andrew", 0, &bad, &f->err), CX_E_DENIED,
                "BadSignature");
    bad.signed_by = NULL;
    CHECK_FAILS(cx_ledger_snapshot_seal(f->ledger, "andrew", 0, &bad, &f->err), CX_E_USAGE,
                "InvalidArgument");
    seal_snapshot(f, 0);
    bad.signed_by = "auditor";
    CHECK_FAILS(cx_ledger_snapshot_seal(f->ledger, "andrew", 0, &bad, &f->err), CX_E_EXISTS,
                "AlreadySealed");
    CHECK_STATUS(cx_ledger_snapshot_get(f->ledger, "andrew", 0, &manifest, &f->err), &f->err);
    CHECK(manifest.sealed);
    CHECK_STR(manifest.signed_by, "auditor");
    cx_ledger_manifest_done(&manifest);
    end(f);
}

/* --- whole homes ------------------------------------------------------------------------------ */

CX_TEST(api_verify_reports_on_a_home)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_manifest manifest = {0};
    cx_ledger_report *report = NULL;
    cx_ledger_verify_options options = CX_LEDGER_VERIFY_OPTIONS_INIT;
    cx_ledger_totals totals;
    cx_ledger_actor_info actor;
    cx_ledger_state state;
    append(f, "andrew", "one", false);
    CHECK_STATUS(cx_ledger_snapshot_make(f->ledger, "andrew", NULL, &manifest, &f->err), &f->err);
    CHECK_STATUS(cx_ledger_verify(f->path, NULL, &report, &f->err), &f->err);
    REQUIRE(report != NULL);
    CHECK_INT(cx_ledger_report_verdict(report), CX_HOLDS);
    CHECK_INT(cx_ledger_report_count(report), 0);
    cx_ledger_report_totals(report, &totals);
    CHECK_INT(totals.entries, 1);
    CHECK_INT(totals.manifests, 1);
    CHECK(!totals.anchored);
    REQUIRE(cx_ledger_report_actor_count(report) == 1);
    cx_ledger_report_actor(report, 0, &actor, &state);
    CHECK_STR(actor.name, "andrew");
    CHECK(cx_digest_eq(&state.overall_root, &manifest.state.overall_root));
    cx_ledger_report_close(report);

    cx_ledger_anchor anchor = {0, {{0}}, manifest.bytes};
    options.actor = "andrew";
    options.anchors = &anchor;
    options.anchor_count = 1;
    options.require_anchored = true;
    CHECK_STATUS(cx_ledger_verify(f->path, &options, &report, &f->err), &f->err);
    CHECK_INT(cx_ledger_report_verdict(report), CX_HOLDS);
    cx_ledger_report_totals(report, &totals);
    CHECK(totals.anchored);
    cx_ledger_report_close(report);

    /* The caller says that three entries were there once. */
    anchor = (cx_ledger_anchor){3, manifest.state.journal_root, {NULL, 0}};
    CHECK_STATUS(cx_ledger_verify(f->path, &options, &report, &f->err), &f->err);
    CHECK_INT(cx_ledger_report_verdict(report), CX_BROKEN);
    REQUIRE(cx_ledger_report_count(report) == 1);
    cx_ledger_finding finding;
    cx_ledger_report_finding(report, 0, &finding);
    CHECK_STR(cx_str_z(finding.reason), "Truncated");
    CHECK_STR(cx_str_z(finding.check), "anchor");
    cx_ledger_report_close(report);
    cx_ledger_report_close(NULL);

    anchor.manifest = cx_bytes_from("nonsense", 8);
    CHECK_INT(cx_ledger_verify(f->path, &options, &report, &f->err).code, CX_E_FORMAT);
    options.actor = NULL;
    anchor.manifest = manifest.bytes;
    CHECK_INT(cx_ledger_verify(f->path, &options, &report, NULL).code, CX_E_USAGE);
    CHECK_FAILS(cx_ledger_verify("/nonexistent/home", NULL, &report, &f->err), CX_E_NOT_FOUND,
                "NoHome");
    CHECK_INT(cx_ledger_verify(NULL, NULL, &report, NULL).code, CX_E_USAGE);
    cx_ledger_manifest_done(&manifest);
    end(f);
}

CX_TEST(api_rebuild_makes_the_tables_again)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_rebuilt rebuilt;
    append(f, "andrew", "one", false);
    CHECK_INT(cx_ledger_rebuild(f->path, NULL, CX_LEDGER_REBUILD, &rebuilt, &f->err).code,
              CX_E_BUSY);
    CHECK_STATUS(cx_ledger_close(f->ledger, &f->err), &f->err);
    f->ledger = NULL;
    CHECK_STATUS(cx_ledger_rebuild(f->path, NULL, CX_LEDGER_REBUILD_COMPARE, &rebuilt, &f->err),
                 &f->err);
    CHECK_INT(rebuilt.entries, 1);
    CHECK(!rebuilt.changed);
    CHECK_STATUS(cx_ledger_rebuild(f->path, NULL, CX_LEDGER_REBUILD, NULL, &f->err), &f->err);
    CHECK_STATUS(cx_ledger_rebuild(f->path, NULL, CX_LEDGER_REBUILD_REPLACE, NULL, &f->err),
                 &f->err);
    CHECK_FAILS(cx_ledger_rebuild(f->path, NULL, (cx_ledger_rebuild_mode)9, NULL, &f->err),
                CX_E_USAGE, "InvalidArgument");
    CHECK_INT(cx_ledger_rebuild("/nonexistent/home", NULL, CX_LEDGER_REBUILD, NULL, NULL).code,
              CX_E_NOT_FOUND);
    end(f);
}

/* --- proofs ----------------------------------------------------------------------------------- */

#define ABSENT_URI "matrix://cortex/Fact/00000000000000000000000001#1"

static cx_uri_text write_fact(fixture *f)
{
    cx_memories *memories = NULL;
    cx_memories_draft draft = CX_MEMORIES_DRAFT_INIT;
    cx_uri_text uri = {""};
    draft.type = "Fact";
    draft.content.data =
        cx_str_z("{\"statement\":\"s\",\"subject\":\"x\",\"predicate\":\"is\",\"source\":\"t\"}");
    CHECK_STATUS(cx_memories_open(f->ledger, "andrew", NULL, &memories, &f->err), &f->err);
    CHECK_STATUS(cx_memories_write(memories, &draft, &uri, &f->err), &f->err);
    cx_memories_close(memories);
    return uri;
}

static cx_status prove(fixture *f, const char *uri, bool absent, bool fresh, cx_owned *out)
{
    cx_proof_make_options options = CX_PROOF_MAKE_OPTIONS_INIT;
    options.uris = &uri;
    options.uri_count = 1;
    options.absent = absent;
    options.fresh = fresh;
    memset(&f->err, 0, sizeof f->err);
    return cx_proof_make(f->ledger, "andrew", &options, out, &f->err);
}

static void check_pack(fixture *f, const char *scheme)
{
    REQUIRE(begin(f, scheme));
    cx_uri_text uri = write_fact(f);
    cx_owned proof = CX_OWNED_INIT, text = CX_OWNED_INIT;
    cx_proof_report *report = NULL;
    cx_proof_trust trust = CX_PROOF_TRUST_INIT;
    cx_ledger_state state;
    CHECK_FAILS(prove(f, uri.text, false, false, &proof), CX_E_NOT_FOUND, "SnapshotNotFound");
    CHECK_STATUS(prove(f, uri.text, false, true, &proof), &f->err);
    CHECK_STATUS(cx_ledger_roots(f->ledger, "andrew", &state, &f->err), &f->err);
    trust.overall_root = &state.overall_root;
    trust.require = CX_PROOF_REQUIRE_ANCHORED;
    trust.expect = CX_PROOF_EXPECT_MEMBERS;
    trust.name_space = "memories";
    CHECK_STATUS(cx_proof_check(cx_owned_bytes(&proof), &trust, &report, &f->err), &f->err);
    REQUIRE(report != NULL);
    /* The report keeps what it needs. */
    cx_owned_done(&proof);
    memset(&state, 0, sizeof state);
    const cx_proof_summary *summary = cx_proof_report_summary(report);
    CHECK_INT(summary->verdict, CX_HOLDS);
    CHECK(summary->anchored && !summary->is_signed && summary->has_manifest);
    CHECK_STR(cx_str_z(summary->kind), "pack");
    CHECK_STR(cx_str_z(summary->scheme), scheme);
    CHECK_STR(summary->actor, "andrew");
    REQUIRE(summary->claim_count == 1);
    cx_proof_claim claim;
    cx_proof_report_claim(report, 0, &claim);
    CHECK_STR(claim.uri, uri.text);
    CHECK_INT(claim.kind, CX_PROOF_MEMBER);
    CHECK(claim.record.size != 0);
    CHECK_STATUS(cx_proof_report_json(report, "a.proof", &text, &f->err), &f->err);
    CHECK(strstr(cx_owned_text(&text), "\"holds\"") != NULL);
    cx_owned_done(&text);
    CHECK_STATUS(cx_proof_report_text(report, "a.proof", true, &text, &f->err), &f->err);
    CHECK(strstr(cx_owned_text(&text), "a.proof") != NULL);
    cx_owned_done(&text);
    CHECK_INT(cx_proof_report_json(report, NULL, &text, NULL).code, CX_E_USAGE);
    cx_proof_report_close(report);
    end(f);
}

CX_TEST(api_pack_is_made_and_checked)
{
    fixture f;
    check_pack(&f, "cortex-1");
    check_pack(&f, "matrix-1");
}

static cx_verdict verdict_of(fixture *f, const cx_owned *proof, const cx_proof_trust *trust,
                             const char *expected_reason)
{
    cx_proof_report *report = NULL;
    CHECK_STATUS(cx_proof_check(cx_owned_bytes(proof), trust, &report, &f->err), &f->err);
    if (report == NULL)
        return CX_HOLDS;
    cx_verdict verdict = cx_proof_report_summary(report)->verdict;
    const char *reason = cx_proof_report_summary(report)->reason;
    CHECK_STR(cx_str_z(reason == NULL ? "" : reason), expected_reason);
    cx_proof_report_close(report);
    return verdict;
}

CX_TEST(api_proofs_that_cannot_be_made)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_uri_text uri = write_fact(f);
    cx_owned proof = CX_OWNED_INIT;
    cx_proof_make_options options = CX_PROOF_MAKE_OPTIONS_INIT;
    const char *uris[] = {uri.text, uri.text};
    char other_version[CX_URI_TEXT_SIZE];
    CHECK_FAILS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), CX_E_USAGE,
                "EmptyProof");
    options.uris = uris;
    options.uri_count = 2;
    options.fresh = true;
    CHECK_FAILS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), CX_E_USAGE,
                "InvalidArgument");
    uris[1] = "matrix://cortex/edge/00000000000000000000000001/part_of/00000000000000000000000002";
    CHECK_FAILS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), CX_E_USAGE,
                "InvalidArgument");
    options.uri_count = 1;
    options.at = true;
    CHECK_FAILS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), CX_E_USAGE,
                "InvalidArgument");
    options.fresh = false;
    options.snapshot = 77;
    CHECK_FAILS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), CX_E_NOT_FOUND,
                "SnapshotNotFound");
    options.uri_count = CX_PROOF_URIS_MAX + 1;
    CHECK_INT(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err).code, CX_E_LIMIT);
    options.uri_count = 1;
    CHECK_FAILS(cx_proof_make(f->ledger, "nobody", &options, &proof, &f->err), CX_E_NOT_FOUND,
                "NoActor");
    CHECK_INT(cx_proof_make(f->ledger, NULL, &options, &proof, NULL).code, CX_E_USAGE);
    CHECK_FAILS(prove(f, "matrix://cortex/Fact/x", false, true, &proof), CX_E_FORMAT, "BadURI");
    CHECK_FAILS(prove(f, ABSENT_URI, false, true, &proof), CX_E_CONFLICT, "NotMember");
    CHECK_FAILS(prove(f, uri.text, true, true, &proof), CX_E_CONFLICT, "NotAbsent");
    memcpy(other_version, uri.text, sizeof other_version);
    other_version[strlen(other_version) - 1] = '2';
    CHECK_FAILS(prove(f, other_version, false, true, &proof), CX_E_CONFLICT, "QuestionMismatch");
    write_fact(f);
    CHECK_FAILS(prove(f, uri.text, false, false, &proof), CX_E_CONFLICT, "ManifestRootMismatch");
    CHECK(proof.data == NULL);
    options.snapshot = 0;
    CHECK_STATUS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), &f->err);
    cx_owned_done(&proof);
    end(f);
}

/* What a damaged proof still says under the root it was made for, it said before. */
static void check_flips(fixture *f, cx_owned *proof)
{
    cx_ledger_state state;
    cx_proof_trust trust = CX_PROOF_TRUST_INIT;
    size_t held = 0;
    trust.require = CX_PROOF_REQUIRE_ANCHORED;
    trust.overall_root = &state.overall_root;
    CHECK_STATUS(cx_ledger_roots(f->ledger, "andrew", &state, &f->err), &f->err);
    CHECK_INT(verdict_of(f, proof, &trust, ""), CX_HOLDS);
    for (size_t i = 0; i < proof->size; i++) {
        cx_proof_report *report = NULL;
        cx_proof_claim claim;
        proof->data[i] ^= 0x10;
        CHECK_STATUS(cx_proof_check(cx_owned_bytes(proof), &trust, &report, &f->err), &f->err);
        proof->data[i] ^= 0x10;
        REQUIRE(report != NULL);
        const cx_proof_summary *summary = cx_proof_report_summary(report);
        if (summary->verdict == CX_HOLDS) {
            REQUIRE(summary->claim_count == 1 && summary->limit_count != 0);
            cx_proof_report_claim(report, 0, &claim);
            CHECK_STR(claim.uri, ABSENT_URI);
            CHECK_INT(claim.kind, CX_PROOF_ABSENT);
            CHECK(cx_digest_eq(&summary->overall_root, &state.overall_root));
            CHECK(strlen(cx_proof_report_limit(report, 0)) > 10);
            held++;
        }
        cx_proof_report_close(report);
    }
    /* Only a manifest's words about itself, which no root bears. */
    CHECK(held < 60);
}

/* Of several memories; the claims come in the order of their keys, whatever the order asked. */
CX_TEST(api_compact_pack)
{
    enum { COUNT = 5 };
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_uri_text written[COUNT];
    const char *uris[COUNT];
    cx_owned proof = CX_OWNED_INIT, again = CX_OWNED_INIT;
    cx_proof_report *report = NULL;
    cx_proof_trust trust = CX_PROOF_TRUST_INIT;
    cx_proof_make_options options = CX_PROOF_MAKE_OPTIONS_INIT;
    CHECK(!options.compact);
    for (size_t i = 0; i < COUNT; i++) {
        written[i] = write_fact(f);
        uris[i] = written[i].text;
    }
    options.uris = uris;
    options.uri_count = COUNT;
    options.fresh = options.compact = true;
    CHECK_STATUS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), &f->err);
    for (size_t i = 0; i < COUNT; i++)
        uris[i] = written[COUNT - 1 - i].text;
    options.fresh = false;
    CHECK_STATUS(cx_proof_make(f->ledger, "andrew", &options, &again, &f->err), &f->err);
    CHECK(proof.size == again.size && memcmp(proof.data, again.data, proof.size) == 0);
    trust.expect = CX_PROOF_EXPECT_MEMBERS;
    trust.require = CX_PROOF_REQUIRE_SELF_CONSISTENT;
    CHECK_STATUS(cx_proof_check(cx_owned_bytes(&proof), &trust, &report, &f->err), &f->err);
    REQUIRE(report != NULL);
    CHECK_INT(cx_proof_report_summary(report)->verdict, CX_HOLDS);
    REQUIRE(cx_proof_report_summary(report)->claim_count == COUNT);
    cx_digest last = {{0}};
    size_t named = 0;
    for (size_t i = 0; i < COUNT; i++) {
        cx_proof_claim claim;
        cx_proof_report_claim(report, i, &claim);
        CHECK_INT(claim.kind, CX_PROOF_MEMBER);
        CHECK(claim.record.size != 0);
        CHECK(memcmp(last.bytes, claim.key.bytes, sizeof last.bytes) < 0);
        last = claim.key;
        for (size_t k = 0; k < COUNT; k++)
            named += cx_str_is(claim.uri, written[k].text);
    }
    CHECK_INT(named, COUNT);
    cx_proof_report_close(report);
    cx_owned_done(&proof);
    cx_owned_done(&again);
    end(f);
    REQUIRE(begin(f, "matrix-1"));
    options.fresh = true;
    written[0] = write_fact(f);
    uris[0] = written[0].text;
    options.uri_count = 1;
    CHECK_FAILS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), CX_E_UNSUPPORTED,
                "SchemeUnsupported");
    end(f);
}

CX_TEST(api_absence_and_damage)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    write_fact(f);
    cx_owned proof = CX_OWNED_INIT;
    cx_proof_trust trust = CX_PROOF_TRUST_INIT;
    CHECK_STATUS(prove(f, ABSENT_URI, true, true, &proof), &f->err);
    REQUIRE(proof.data != NULL);
    CHECK_INT(verdict_of(f, &proof, NULL, "NotAnchored"), CX_INDETERMINATE);
    trust.require = CX_PROOF_REQUIRE_SELF_CONSISTENT;
    trust.expect = CX_PROOF_EXPECT_ABSENT;
    CHECK_INT(verdict_of(f, &proof, &trust, ""), CX_HOLDS);
    trust.expect = CX_PROOF_EXPECT_MEMBERS;
    CHECK_INT(verdict_of(f, &proof, &trust, "NotMember"), CX_BROKEN);
    trust.expect = CX_PROOF_EXPECT_ANY;
    trust.require = CX_PROOF_REQUIRE_ANCHORED;
    CHECK_INT(verdict_of(f, &proof, &trust, "NotAnchored"), CX_INDETERMINATE);
    check_flips(f, &proof);
    cx_owned_done(&proof);
    cx_proof_make_options options = CX_PROOF_MAKE_OPTIONS_INIT;
    const char *uri = ABSENT_URI;
    options.uris = &uri;
    options.uri_count = 1;
    options.absent = options.compact = true;
    CHECK_STATUS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), &f->err);
    check_flips(f, &proof);
    cx_owned_done(&proof);
    end(f);
}

CX_TEST(api_trust_that_makes_no_sense)
{
    fixture fixture_, *f = &fixture_;
    memset(f, 0, sizeof *f);
    cx_proof_report *report = NULL;
    cx_bytes nothing = {NULL, 0};
    cx_proof_trust trust = CX_PROOF_TRUST_INIT;
    const char *key = "no key";
    trust.name_space = "dreams";
    CHECK_FAILS(cx_proof_check(nothing, &trust, &report, &f->err), CX_E_USAGE, "InvalidArgument");
    trust.name_space = NULL;
    trust.expect = (cx_proof_expect)9;
    CHECK_FAILS(cx_proof_check(nothing, &trust, &report, &f->err), CX_E_USAGE, "InvalidArgument");
    trust.expect = CX_PROOF_EXPECT_ANY;
    trust.require = (cx_proof_require)9;
    CHECK_FAILS(cx_proof_check(nothing, &trust, &report, &f->err), CX_E_USAGE, "InvalidArgument");
    trust.require = CX_PROOF_REQUIRE_SELF_CONSISTENT;
    trust.keys = &key;
    trust.key_count = 1;
    CHECK_FAILS(cx_proof_check(nothing, &trust, &report, &f->err), CX_E_FORMAT, "BadKey");
    key = NULL;
    CHECK_INT(cx_proof_check(nothing, &trust, &report, NULL).code, CX_E_USAGE);
    trust.key_count = 65;
    CHECK_INT(cx_proof_check(nothing, &trust, &report, NULL).code, CX_E_USAGE);
    CHECK(report == NULL);
    CHECK_STATUS(cx_proof_check(nothing, NULL, &report, &f->err), &f->err);
    REQUIRE(report != NULL);
    CHECK(cx_proof_report_summary(report)->verdict != CX_HOLDS);
    CHECK_STR(cx_str_z(cx_proof_report_summary(report)->kind), "unknown");
    cx_proof_report_close(report);
    cx_proof_report_close(NULL);
}

CX_TEST(api_journal_proofs)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_state at3, at5;
    cx_owned proof = CX_OWNED_INIT;
    for (int i = 0; i < 3; i++)
        append(f, "andrew", "x", false);
    CHECK_STATUS(cx_ledger_roots(f->ledger, "andrew", &at3, &f->err), &f->err);
    append(f, "andrew", "y", false);
    append(f, "andrew", "z", false);
    CHECK_STATUS(cx_ledger_roots(f->ledger, "andrew", &at5, &f->err), &f->err);
    cx_proof_journal_root older = {3, at3.journal_root}, newer = {5, at5.journal_root};
    cx_proof_trust trust = CX_PROOF_TRUST_INIT;
    trust.journal = &newer;
    trust.require = CX_PROOF_REQUIRE_ANCHORED;
    CHECK_STATUS(cx_proof_make_entry(f->ledger, "andrew", 1, 0, &proof, &f->err), &f->err);
    CHECK_INT(verdict_of(f, &proof, &trust, ""), CX_HOLDS);
    trust.journal = &older;
    CHECK_INT(verdict_of(f, &proof, &trust, "SizeMismatch"), CX_BROKEN);
    cx_owned_done(&proof);
    CHECK_STATUS(cx_proof_make_entry(f->ledger, "andrew", 1, 3, &proof, &f->err), &f->err);
    CHECK_INT(verdict_of(f, &proof, &trust, ""), CX_HOLDS);
    cx_owned_done(&proof);
    CHECK_STATUS(cx_proof_make_consistency(f->ledger, "andrew", 3, 0, &proof, &f->err), &f->err);
    trust.journal = &newer;
    trust.older = &older;
    CHECK_INT(verdict_of(f, &proof, &trust, ""), CX_HOLDS);
    older.root.bytes[0] ^= 1;
    CHECK_INT(verdict_of(f, &proof, &trust, "RootMismatch"), CX_BROKEN);
    cx_owned_done(&proof);
    CHECK_FAILS(cx_proof_make_entry(f->ledger, "andrew", 5, 0, &proof, &f->err), CX_E_NOT_FOUND,
                "OutOfRange");
    CHECK_FAILS(cx_proof_make_consistency(f->ledger, "andrew", 3, 9, &proof, &f->err),
                CX_E_NOT_FOUND, "OutOfRange");
    CHECK_INT(cx_proof_make_entry(f->ledger, "nobody", 0, 0, &proof, NULL).code, CX_E_NOT_FOUND);
    CHECK_INT(cx_proof_make_entry(f->ledger, NULL, 0, 0, &proof, NULL).code, CX_E_USAGE);
    CHECK_INT(cx_proof_make_consistency(f->ledger, NULL, 0, 0, &proof, NULL).code, CX_E_USAGE);
    end(f);
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static cx_owned make_note(fixture *f, const char *origin, const cx_proof_journal_root *journal)
{
    cx_owned text = CX_OWNED_INIT, note = CX_OWNED_INIT;
    CHECK_STATUS(cx_proof_checkpoint_text(origin, journal, &text, &f->err), &f->err);
    cx_signature signature = sign_bytes(f, &text);
    cx_owned_done(&text);
    CHECK_STATUS(cx_proof_checkpoint_note(origin, journal, &f->key, &signature, &note, &f->err),
                 &f->err);
    return note;
}

CX_TEST(api_sealed_pack_is_trusted_through_a_checkpoint)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_uri_text uri = write_fact(f);
    const char *uris[] = {uri.text};
    cx_proof_journal_root now;
    cx_ledger_manifest manifest = {0};
    cx_owned key = CX_OWNED_INIT, proof = CX_OWNED_INIT;
    cx_proof_make_options options = CX_PROOF_MAKE_OPTIONS_INIT;
    CHECK_STATUS(cx_ledger_snapshot_make(f->ledger, "andrew", NULL, &manifest, &f->err), &f->err);
    cx_ledger_manifest_done(&manifest);
    CHECK_STATUS(cx_proof_checkpoint_now(f->ledger, "andrew", &now, &f->err), &f->err);
    CHECK_INT(now.size, 1);
    cx_owned note = make_note(f, "example.org/log", &now);
    options.uris = uris;
    options.uri_count = 1;
    options.at = true;
    options.checkpoint = cx_owned_bytes(&note);
    CHECK_FAILS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), CX_E_CONFLICT,
                "NotSealed");
    cx_owned_done(&note);
    seal_snapshot(f, 0);
    CHECK_STATUS(cx_proof_checkpoint_now(f->ledger, "andrew", &now, &f->err), &f->err);
    cx_proof_journal_root forged = now;
    forged.root.bytes[5] ^= 1;
    note = make_note(f, "example.org/log", &forged);
    options.checkpoint = cx_owned_bytes(&note);
    CHECK_FAILS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), CX_E_CONFLICT,
                "Forked");
    cx_owned_done(&note);
    forged = now;
    forged.size += 5;
    note = make_note(f, "example.org/log", &forged);
    options.checkpoint = cx_owned_bytes(&note);
    CHECK_FAILS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), CX_E_CONFLICT,
                "Forked");
    cx_owned_done(&note);
    note = make_note(f, "example.org/log", &now);
    options.checkpoint = cx_owned_bytes(&note);
    CHECK_STATUS(cx_proof_make(f->ledger, "andrew", &options, &proof, &f->err), &f->err);

    CHECK_STATUS(cx_proof_key_text("example.org/log", &f->key, &key, &f->err), &f->err);
    const char *keys[] = {cx_owned_text(&key)};
    cx_proof_trust trust = CX_PROOF_TRUST_INIT;
    trust.keys = keys;
    trust.key_count = 1;
    trust.require = CX_PROOF_REQUIRE_SIGNED;
    CHECK_INT(verdict_of(f, &proof, &trust, ""), CX_HOLDS);
    CHECK_INT(verdict_of(f, &note, &trust, ""), CX_HOLDS);
    uint8_t *digit = memchr(note.data, '\n', note.size); /* the size follows the origin */
    REQUIRE(digit != NULL);
    digit[1]++;
    CHECK_INT(verdict_of(f, &note, &trust, "SignatureInvalid"), CX_BROKEN);
    cx_owned_done(&note);
    cx_owned_done(&key);
    cx_owned_done(&proof);
    end(f);
}

CX_TEST(api_checkpoints_refuse_what_is_wrong)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, "matrix-1"));
    cx_proof_journal_root now = {1, {{0}}};
    cx_signature signature = {{0}};
    cx_owned out = CX_OWNED_INIT;
    append(f, "andrew", "x", false);
    CHECK_FAILS(cx_proof_checkpoint_now(f->ledger, "andrew", &now, &f->err), CX_E_UNSUPPORTED,
                "SchemeUnsupported");
    CHECK_INT(cx_proof_checkpoint_now(f->ledger, "nobody", &now, NULL).code, CX_E_NOT_FOUND);
    CHECK_INT(cx_proof_checkpoint_now(f->ledger, NULL, &now, NULL).code, CX_E_USAGE);
    CHECK_FAILS(cx_proof_checkpoint_text("two words", &now, &out, &f->err), CX_E_USAGE,
                "InvalidArgument");
    CHECK_INT(cx_proof_checkpoint_text(NULL, &now, &out, NULL).code, CX_E_USAGE);
    CHECK_FAILS(cx_proof_checkpoint_note("log", &now, &f->key, &signature, &out, &f->err),
                CX_E_DENIED, "BadSignature");
    CHECK_INT(cx_proof_checkpoint_note("a+b", &now, &f->key, &signature, &out, NULL).code,
              CX_E_USAGE);
    CHECK_FAILS(cx_proof_key_text("", &f->key, &out, &f->err), CX_E_USAGE, "InvalidArgument");
    CHECK(out.data == NULL);
    cx_owned_done(&out);
    end(f);
}

/* --- memory ----------------------------------------------------------------------------------- */

static cx_status use_all(const char *path, const cx_alloc *alloc)
{
    cx_ledger_options options = CX_LEDGER_OPTIONS_INIT;
    cx_ledger *ledger;
    cx_ledger_entry entry = {0};
    cx_ledger_manifest manifest = {0};
    cx_owned proof;
    options.alloc = alloc;
    CX_TRY(cx_ledger_open(path, &options, &ledger, NULL));
    cx_status status = cx_ledger_read(ledger, "andrew", 0, &entry, NULL);
    if (!cx_failed(status))
        cx_ledger_entry_done(&entry);
    if (!cx_failed(status) &&
        !cx_failed(status = cx_ledger_snapshot_get(ledger, "andrew", 0, &manifest, NULL)))
        cx_ledger_manifest_done(&manifest);
    if (!cx_failed(status) &&
        !cx_failed(status = cx_proof_make_entry(ledger, "andrew", 0, 0, &proof, NULL)))
        cx_owned_done(&proof);
    cx_status closed = cx_ledger_close(ledger, NULL);
    return cx_failed(status) ? status : closed;
}

CX_TEST(api_without_memory_leaks_nothing)
{
    fixture fixture_, *f = &fixture_;
    REQUIRE(begin(f, NULL));
    cx_ledger_manifest manifest = {0};
    append(f, "andrew", "x", true);
    CHECK_STATUS(cx_ledger_snapshot_make(f->ledger, "andrew", NULL, &manifest, &f->err), &f->err);
    cx_ledger_manifest_done(&manifest);
    CHECK_STATUS(cx_ledger_close(f->ledger, &f->err), &f->err);
    f->ledger = NULL;
    bool done = false;
    unsigned failed = 0;
    for (uint64_t at = 1; !done && at < 2000; at++) {
        fault_alloc memory;
        fault_alloc_init(&memory, at, true);
        cx_status status = use_all(f->path, &memory.alloc);
        done = atomic_load(&memory.fired) == 0;
        failed += cx_failed(status);
        if (done)
            CHECK_INT(status.code, CX_OK);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK(!atomic_load(&memory.wrong_size));
    }
    CHECK(done && failed > 5);
    end(f);
}
