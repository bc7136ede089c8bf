/*
 * api_check.c - the installed calls that check proofs and assemble checkpoints without a data
 * directory (cortex/proof.h).
 */
#include <cortex/proof.h>

#include "base/api.h"
#include "crypto/api.h"
#include "ledger/handle.h"
#include "proof/api.h"

_Static_assert(CX_PROOF_SIZE_UNKNOWN == CX_JOURNAL_SIZE_UNKNOWN, "one word for it");

struct cx_proof_report {
    const cx_alloc *alloc;
    cx_arena arena; /* owns everything that the result borrows */
    cx_check_result result;
    cx_proof_summary summary;
};

/* --- what the reader trusts ------------------------------------------------------------------- */

static cx_status copy_bytes(cx_arena *arena, cx_bytes bytes, cx_bytes *out, cx_err *err)
{
    cx_str copy = cx_arena_copy_str(arena, cx_bytes_str(bytes));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    *out = cx_str_bytes(copy);
    return CX_SUCCESS;
}

static cx_status copy_digest(cx_arena *arena, const cx_digest *digest, const cx_digest **out,
                             cx_err *err)
{
    cx_digest *copy = CX_ARENA_NEW(arena, cx_digest);
    if (copy == NULL)
        return cx_fail_nomem(err);
    if (digest == NULL)
        return CX_SUCCESS;
    *copy = *digest;
    *out = copy;
    return CX_SUCCESS;
}

static cx_status copy_point(cx_arena *arena, const cx_proof_journal_root *point,
                            const cx_journal_point **out, cx_err *err)
{
    cx_journal_point *copy = CX_ARENA_NEW(arena, cx_journal_point);
    if (copy == NULL)
        return cx_fail_nomem(err);
    if (point == NULL)
        return CX_SUCCESS;
    *copy = (cx_journal_point){point->size, point->root};
    *out = copy;
    return CX_SUCCESS;
}

/* A verifier key, or bare hex, which matches any key name. */
static cx_status parse_key(cx_arena *arena, const char *text, cx_vkey *out, cx_err *err)
{
    cx_str name;
    cx_bytes copy = {NULL, 0};
    CX_TRY(cx_api_text(text, "a key", &name, err));
    CX_TRY(copy_bytes(arena, cx_str_bytes(name), &copy, err));
    memset(out, 0, sizeof *out);
    if (cx_hex_decode_any(name, out->key.bytes, sizeof out->key.bytes))
        return CX_SUCCESS;
    return cx_vkey_parse(cx_bytes_str(copy), out, err);
}

static cx_status parse_keys(cx_arena *arena, const cx_proof_trust *trust, cx_check_options *out,
                            cx_err *err)
{
    if (trust->key_count > CX_NOTE_KEYS_MAX || trust->cosigners_required > CX_NOTE_KEYS_MAX)
        return cx_api_refuse(err, "at most %d keys are allowed", CX_NOTE_KEYS_MAX);
    cx_vkey *keys = CX_ARENA_ARRAY(arena, cx_vkey, trust->key_count + 1);
    if (keys == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < trust->key_count; i++)
        CX_TRY(parse_key(arena, trust->keys[i], &keys[i], err));
    out->keys = keys;
    out->key_count = trust->key_count;
    out->cosigners_required = trust->cosigners_required;
    return CX_SUCCESS;
}

static cx_status translate_expectations(const cx_proof_trust *trust, cx_check_options *out,
                                        cx_err *err)
{
    switch (trust->expect) {
    case CX_PROOF_EXPECT_ANY: out->expect = CX_EXPECT_ANY; break;
    case CX_PROOF_EXPECT_MEMBERS: out->expect = CX_EXPECT_MEMBERS; break;
    case CX_PROOF_EXPECT_ABSENT: out->expect = CX_EXPECT_ABSENT; break;
    default: return cx_api_refuse(err, "unknown value of expect");
    }
    switch (trust->require) {
    case CX_PROOF_REQUIRE_ANCHORED: out->require = CX_REQUIRE_ANCHORED; break;
    case CX_PROOF_REQUIRE_SIGNED: out->require = CX_REQUIRE_SIGNED; break;
    case CX_PROOF_REQUIRE_SELF_CONSISTENT: out->require = CX_REQUIRE_SELF_CONSISTENT; break;
    default: return cx_api_refuse(err, "unknown value of require");
    }
    if (trust->name_space == NULL)
        return CX_SUCCESS;
    out->namespace_given = true;
    if (strcmp(trust->name_space, "memories") == 0)
        out->name_space = CX_NAMESPACE_MEMORIES;
    else if (strcmp(trust->name_space, "edges") == 0)
        out->name_space = CX_NAMESPACE_EDGES;
    else
        return cx_api_refuse(err, "found name space '%.40s', expected memories or edges",
                             trust->name_space);
    return CX_SUCCESS;
}

/* Copies everything: the report outlives the caller's options. */
static cx_status copy_trust(cx_arena *arena, const cx_proof_trust *trust, cx_check_options *out,
                            cx_err *err)
{
    CX_TRY(translate_expectations(trust, out, err));
    CX_TRY(parse_keys(arena, trust, out, err));
    out->now_given = trust->now_given;
    out->now_ns = trust->now_ns;
    CX_TRY(copy_digest(arena, trust->overall_root, &out->overall_root, err));
    CX_TRY(copy_digest(arena, trust->leaf_hash, &out->leaf_hash, err));
    CX_TRY(copy_point(arena, trust->journal, &out->journal, err));
    CX_TRY(copy_point(arena, trust->older, &out->older, err));
    CX_TRY(copy_bytes(arena, trust->checkpoint, &out->checkpoint, err));
    CX_TRY(copy_bytes(arena, trust->older_checkpoint, &out->older_checkpoint, err));
    CX_TRY(copy_bytes(arena, trust->manifest, &out->manifest, err));
    return copy_bytes(arena, trust->entry, &out->entry, err);
}

/* --- checking --------------------------------------------------------------------------------- */

static void fill_summary(cx_proof_report *report)
{
    const cx_check_result *from = &report->result;
    cx_proof_summary *to = &report->summary;
    *to = (cx_proof_summary){
        .verdict = from->finding.verdict,
        .reason = from->finding.reason,
        .message = cx_str_z(from->finding.message),
        .kind = cx_check_kind_name(from->kind),
        .scheme = from->has_scheme ? cx_scheme_name(from->scheme).data : NULL,
        .anchored = from->anchors != 0,
        .is_signed = from->is_signed,
        .claim_count = from->has_proof ? from->proof.count : 0,
        .limit_count = from->limit_count,
        .has_manifest = from->has_manifest,
        .has_journal = from->has_journal,
        .has_older = from->has_older,
        .has_index = from->has_index,
        .index = from->has_index ? from->index : 0,
    };
    if (from->has_manifest) {
        to->actor = from->manifest.actor;
        to->snapshot = from->manifest.snapshot_seq;
        to->overall_root = from->manifest.overall_root;
        to->created_at_ns = from->manifest.created_ns;
    }
    if (from->has_journal)
        to->journal = (cx_proof_journal_root){from->journal.size, from->journal.root};
    if (from->has_older)
        to->older = (cx_proof_journal_root){from->older.size, from->older.root};
}

static cx_status check_proof(cx_proof_report *report, cx_bytes bytes, const cx_proof_trust *trust,
                             cx_err *err)
{
    cx_check_options options = {0};
    cx_bytes copy = {NULL, 0};
    CX_TRY(copy_trust(&report->arena, trust, &options, err));
    CX_TRY(copy_bytes(&report->arena, bytes, &copy, err));
    return cx_check_run(copy, &options, &report->arena, &report->result, err);
}

cx_status cx_proof_check(cx_bytes bytes, const cx_proof_trust *trust, cx_proof_report **out,
                         cx_err *err)
{
    static const cx_proof_trust no_trust = CX_PROOF_TRUST_INIT;
    const cx_alloc *alloc = cx_alloc_default();
    cx_proof_report *report = cx_alloc_zeroed(alloc, 1, sizeof *report);
    if (report == NULL)
        return cx_fail_nomem(err);
    report->alloc = alloc;
    cx_arena_init(&report->arena, alloc, 0);
    cx_status status = check_proof(report, bytes, trust != NULL ? trust : &no_trust, err);
    if (cx_failed(status)) {
        cx_proof_report_close(report);
        return status;
    }
    fill_summary(report);
    *out = report;
    return CX_SUCCESS;
}

void cx_proof_report_close(cx_proof_report *report)
{
    if (report == NULL)
        return;
    cx_arena_done(&report->arena);
    cx_alloc_free(report->alloc, report, sizeof *report);
}

const cx_proof_summary *cx_proof_report_summary(const cx_proof_report *report)
{
    return &report->summary;
}

static cx_proof_claim_kind claim_kind(cx_membership kind)
{
    return kind == CX_MEMBER          ? CX_PROOF_MEMBER
           : kind == CX_MEMBER_ERASED ? CX_PROOF_MEMBER_ERASED
                                      : CX_PROOF_ABSENT;
}

void cx_proof_report_claim(const cx_proof_report *report, size_t index, cx_proof_claim *out)
{
    CX_ASSERT(index < report->summary.claim_count);
    const cx_proof_item *item = &report->result.proof.items[index];
    *out = (cx_proof_claim){
        .kind = claim_kind(item->kind), .key = item->path.key, .record = item->leaf};
    if (report->result.questions != NULL)
        out->uri = report->result.questions[index].uri;
}

const char *cx_proof_report_limit(const cx_proof_report *report, size_t index)
{
    CX_ASSERT(index < report->result.limit_count);
    return report->result.limits[index];
}

cx_status cx_proof_report_json(const cx_proof_report *report, const char *name, cx_owned *out,
                               cx_err *err)
{
    cx_str file;
    cx_buf text;
    CX_TRY(cx_api_text(name, "the name", &file, err));
    cx_buf_init(&text, report->alloc);
    cx_check_write_json(&report->result, file, &text);
    return cx_owned_from_buf(&text, out, err);
}

cx_status cx_proof_report_text(const cx_proof_report *report, const char *name, bool details,
                               cx_owned *out, cx_err *err)
{
    cx_str file;
    cx_buf text;
    CX_TRY(cx_api_text(name, "the name", &file, err));
    cx_buf_init(&text, report->alloc);
    cx_check_write_text(&report->result, file, details, &text);
    return cx_owned_from_buf(&text, out, err);
}

/* --- checkpoints ------------------------------------------------------------------------------ */

static cx_status parse_origin(const char *text, const char *what, cx_str *out, cx_err *err)
{
    CX_TRY(cx_api_text(text, what, out, err));
    if (!cx_checkpoint_origin_ok(*out))
        return cx_api_refuse(err, "%s is text without spaces, controls and '+', found '%.80s'",
                             what, text);
    return CX_SUCCESS;
}

cx_status cx_proof_checkpoint_text(const char *origin, const cx_proof_journal_root *journal,
                                   cx_owned *out, cx_err *err)
{
    cx_checkpoint checkpoint = {.size = journal->size, .root = journal->root};
    cx_buf text;
    CX_TRY(parse_origin(origin, "the origin", &checkpoint.origin, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_checkpoint_text(&checkpoint, &text);
    return cx_owned_from_buf(&text, out, err);
}

cx_status cx_proof_checkpoint_note(const char *origin, const cx_proof_journal_root *journal,
                                   const cx_pubkey *key, const cx_signature *signature,
                                   cx_owned *out, cx_err *err)
{
    cx_checkpoint checkpoint = {.size = journal->size, .root = journal->root};
    cx_vkey signer;
    cx_buf text;
    CX_TRY(parse_origin(origin, "the origin", &checkpoint.origin, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_checkpoint_text(&checkpoint, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status) && !cx_ed25519_verify(key, cx_buf_bytes(&text), signature))
        status = cx_fail_at(err, CX_E_DENIED, "BadSignature", CX_NO_OFFSET,
                            "the signature is not that key's over this checkpoint");
    if (!cx_failed(status)) {
        cx_buf_clear(&text);
        cx_vkey_make(checkpoint.origin, CX_VKEY_NOTE, key, &signer);
        cx_checkpoint_note(&checkpoint, &signer, signature, &text);
        status = cx_owned_from_buf(&text, out, err);
    }
    cx_buf_done(&text);
    return status;
}

cx_status cx_proof_key_text(const char *name, const cx_pubkey *key, cx_owned *out, cx_err *err)
{
    cx_str origin;
    cx_vkey vkey;
    cx_buf text;
    CX_TRY(parse_origin(name, "a key's name", &origin, err));
    cx_vkey_make(origin, CX_VKEY_NOTE, key, &vkey);
    cx_buf_init(&text, cx_alloc_default());
    cx_vkey_add(&vkey, &text);
    return cx_owned_from_buf(&text, out, err);
}
