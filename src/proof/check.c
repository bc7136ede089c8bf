/*
 * check.c - recognising a proof file and checking it against what the caller trusts.
 *
 *   C1  "holds" is said only when every rule of the format held and something given from outside
 *       bears it out (`anchors`), or when the caller asked for self-consistency alone.
 *   C2  What only the caller could know and did not give makes the verdict indeterminate, when
 *       without it nothing is left to be said (no leaf, no root, no key for a signature).
 *   C3  A key that was given must have signed something: manifest, seal or checkpoint; otherwise
 *       the verdict is indeterminate "NotSigned", never "holds".
 *   C4  What remains unproven is put into words in `limits`.
 */
#include "proof/check.h"

#include "base/api.h"
#include "cbor/api.h"
#include "proof/proof_internal.h"

typedef struct checker {
    cx_bytes bytes;
    const cx_check_options *options;
    cx_arena *arena;
    cx_check_result *out;
    bool named_signer; /* a key whose name is the manifest's signed_by has signed it */
} checker;

const char *cx_check_kind_name(cx_check_kind kind)
{
    static const char *const names[] = {
        "unknown",    "pack",    "multiproof", "manifest", "inclusion", "consistency", "checkpoint",
        "tlog_proof", "receipt", "scope",      "home",     "erasure",   "never"};
    return names[kind];
}

static bool check_holds(const checker *c)
{
    return c->out->finding.verdict == CX_HOLDS;
}

static void add_limit(checker *c, const char *text)
{
    for (size_t i = 0; i < c->out->limit_count; i++)
        if (c->out->limits[i] == text)
            return;
    CX_ASSERT(c->out->limit_count < CX_CHECK_LIMITS_MAX);
    c->out->limits[c->out->limit_count++] = text;
}

static void set_indeterminate(checker *c, const char *reason, const char *message)
{
    cx_finding_set(&c->out->finding, CX_INDETERMINATE, reason, CX_FINDING_WHOLE, "%s", message);
}

/* --- recognising ----------------------------------------------------------------------------- */

/* The types of the first fields tell the containers apart; an inclusion proof is of a leaf inside
 * its tree, a consistency proof's sizes ascend. */
static cx_check_kind recognise_map(cx_bytes bytes)
{
    cx_cbor_reader reader;
    cx_cbor_type types[6];
    uint64_t first = 0, second = 0;
    cx_str name = {NULL, 0};
    for (size_t i = 0; i < CX_COUNT_OF(types); i++)
        types[i] = CX_CBOR_NONE;
    cx_cbor_begin(&reader, bytes, "file");
    cx_cbor_members members = cx_cbor_read_members(&reader);
    while (cx_cbor_next_member(&reader, &members) && members.key < CX_COUNT_OF(types)) {
        cx_cbor_type type = types[members.key] = cx_cbor_peek(&reader);
        if (members.key == 1 && type == CX_CBOR_TEXT)
            name = cx_cbor_read_text(&reader);
        else if (members.key == 2 && type == CX_CBOR_UINT)
            first = cx_cbor_read_uint(&reader);
        else if (members.key == 3 && type == CX_CBOR_UINT)
            second = cx_cbor_read_uint(&reader);
        else
            (void)cx_cbor_read_any(&reader);
    }
    if (types[0] != CX_CBOR_UINT || types[1] != CX_CBOR_TEXT)
        return CX_CHECK_UNKNOWN;
    if (cx_str_is(name, CX_PACK_MAGIC))
        return CX_CHECK_PACK;
    if (cx_str_is(name, CX_HOME_PROOF_MAGIC))
        return CX_CHECK_HOME;
    if (cx_str_is(name, CX_NEVER_PROOF_MAGIC))
        return CX_CHECK_NEVER;
    if (types[2] == CX_CBOR_BYTES && types[3] == CX_CBOR_MAP)
        return CX_CHECK_SCOPE;
    if (types[2] == CX_CBOR_BYTES && types[3] == CX_CBOR_ARRAY)
        return CX_CHECK_MULTIPROOF;
    if (types[2] != CX_CBOR_UINT || types[3] != CX_CBOR_UINT)
        return CX_CHECK_UNKNOWN;
    if (types[4] == CX_CBOR_BYTES)
        return CX_CHECK_MANIFEST;
    if (types[4] != CX_CBOR_ARRAY)
        return CX_CHECK_UNKNOWN;
    return types[5] != CX_CBOR_NONE || first > second ? CX_CHECK_INCLUSION : CX_CHECK_CONSISTENCY;
}

cx_check_kind cx_check_recognise(cx_bytes bytes)
{
    static const char signature_line[] = "\n\n\xe2\x80\x94 ";
    if (bytes.size == 0)
        return CX_CHECK_UNKNOWN;
    if (bytes.data[0] == 0xd2) /* tag 18 */
        return CX_CHECK_RECEIPT;
    if (bytes.data[0] >> 5 == CX_CBOR_MAP)
        return recognise_map(bytes);
    if (cx_str_starts(cx_bytes_str(bytes), CX_STR("c2sp.org/tlog-proof@")))
        return CX_CHECK_TLOG_PROOF;
    if (cx_str_starts(cx_bytes_str(bytes), CX_STR(CX_ERASURE_MAGIC "\n")))
        return CX_CHECK_ERASURE;
    cx_str head = {(const char *)bytes.data, bytes.size < 65536 ? bytes.size : 65536};
    return memmem(head.data, head.size, signature_line, sizeof signature_line - 1) != NULL
               ? CX_CHECK_CHECKPOINT
               : CX_CHECK_UNKNOWN;
}

/* --- keys ------------------------------------------------------------------------------------ */

/* The keys as those of a note: a bare one gets the origin's name. */
static cx_status note_keys(checker *c, cx_str origin, const cx_vkey **out, cx_err *err)
{
    const cx_check_options *options = c->options;
    cx_vkey *keys = CX_ARENA_ARRAY(c->arena, cx_vkey, options->key_count + 1);
    if (keys == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < options->key_count; i++) {
        keys[i] = options->keys[i];
        if (keys[i].name.size == 0)
            cx_vkey_make(origin, CX_VKEY_NOTE, &options->keys[i].key, &keys[i]);
    }
    *out = keys;
    return CX_SUCCESS;
}

/* A note against the keys given; without keys only what it says. */
static cx_status check_note(checker *c, cx_bytes note, cx_note_result *out, cx_finding *finding,
                            cx_err *err)
{
    cx_err found;
    cx_note_check check = {.key_count = c->options->key_count,
                           .cosigners_required = c->options->cosigners_required};
    cx_finding_init(finding);
    memset(out, 0, sizeof *out);
    cx_status status = cx_checkpoint_parse(note, &out->checkpoint, NULL, &found);
    CX_TRY(cx_finding_from(status, &found, "BadNote", finding, err));
    if (finding->verdict != CX_HOLDS || check.key_count == 0)
        return CX_SUCCESS;
    CX_TRY(note_keys(c, out->checkpoint.origin, &check.keys, err));
    return cx_note_verify(note, &check, c->arena->alloc, out, finding, err);
}

/* --- the journal as trusted ------------------------------------------------------------------ */

static cx_journal_point point_of(const cx_note_result *note)
{
    return (cx_journal_point){note->checkpoint.size, note->checkpoint.root};
}

/* A point from a checkpoint or a root; *out_given says whether there is one. */
static cx_status find_point(checker *c, cx_bytes note, const cx_journal_point *given,
                            cx_journal_point *out, bool *out_given, cx_err *err)
{
    cx_note_result result;
    *out_given = note.size != 0 || given != NULL;
    if (note.size == 0) {
        if (given != NULL) {
            *out = *given;
            c->out->anchors |= CX_CHECK_BY_ROOT;
            if (given->size == CX_JOURNAL_SIZE_UNKNOWN)
                add_limit(c, "the sizes are as the proof tells them: a root given without its size "
                             "does not hold it (cortex-1)");
        }
        return CX_SUCCESS;
    }
    CX_TRY(check_note(c, note, &result, &c->out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    *out = point_of(&result);
    if (c->options->key_count == 0) {
        c->out->anchors |= CX_CHECK_BY_ROOT;
        add_limit(c, "the checkpoint's signature was not checked: no key was given");
    } else {
        c->out->anchors |= CX_CHECK_BY_CHECKPOINT;
        c->out->is_signed = true;
    }
    c->out->has_note = true;
    c->out->note = result;
    return CX_SUCCESS;
}

static cx_status find_journal(checker *c, cx_journal_point *out, bool *out_given, cx_err *err)
{
    return find_point(c, c->options->checkpoint, c->options->journal, out, out_given, err);
}

static cx_status find_older(checker *c, cx_journal_point *out, bool *out_given, cx_err *err)
{
    return find_point(c, c->options->older_checkpoint, c->options->older, out, out_given, err);
}

/* The leaf asked about, from the entry or its hash; NULL when neither is given. */
static const cx_digest *find_leaf(checker *c, cx_digest *storage)
{
    const cx_check_options *options = c->options;
    if (options->entry.size == 0)
        return options->leaf_hash;
    *storage = cx_scheme_entry(options->entry);
    if (options->leaf_hash != NULL && !cx_digest_eq(options->leaf_hash, storage))
        cx_finding_set(&c->out->finding, CX_BROKEN, "LeafMismatch", CX_FINDING_WHOLE,
                       "the entry given does not have the leaf hash given");
    return storage;
}

/* --- manifests ------------------------------------------------------------------------------- */

/*
 * Named keys are for manifests that name them; bare keys for all.  A signature that none of the
 * keys for it made is broken: a key that is given counts.
 */
static cx_status check_manifest_signature(checker *c, cx_err *err)
{
    const cx_manifest *manifest = &c->out->manifest;
    bool applies = false, good = false;
    if (manifest->signature.null)
        return CX_SUCCESS;
    for (size_t i = 0; i < c->options->key_count && !good; i++) {
        const cx_vkey *key = &c->options->keys[i];
        if (key->name.size != 0 && !cx_str_eq(key->name, manifest->signed_by))
            continue;
        if (key->algorithm == CX_VKEY_COSIGNATURE)
            continue;
        applies = true;
        CX_TRY(cx_manifest_signed_by(manifest, &key->key, c->arena->alloc, &good, err));
        c->named_signer = c->named_signer || (good && key->name.size != 0);
    }
    if (good) {
        c->out->anchors |= CX_CHECK_BY_MANIFEST_SIGNATURE;
        c->out->is_signed = true;
    } else if (applies) {
        cx_finding_set(&c->out->finding, CX_BROKEN, "SignatureInvalid", CX_FINDING_WHOLE,
                       "the manifest's signature was made by none of the keys given");
    }
    return CX_SUCCESS;
}

/* What the caller trusts about the journal must not contradict the manifest. */
static cx_status check_manifest_journal(checker *c, cx_err *err)
{
    cx_journal_point journal;
    bool given;
    unsigned anchors = c->out->anchors;
    bool was_signed = c->out->is_signed;
    const cx_manifest *manifest = &c->out->manifest;
    CX_TRY(find_journal(c, &journal, &given, err));
    /* The journal's root alone says nothing about the state. */
    c->out->anchors = anchors;
    c->out->is_signed = was_signed;
    if (!given || !check_holds(c))
        return CX_SUCCESS;
    if (journal.size != CX_JOURNAL_SIZE_UNKNOWN && journal.size != manifest->journal_size)
        add_limit(c,
                  "the journal given has another size than the manifest's: they were not compared");
    else if (!cx_digest_eq(&journal.root, &manifest->journal_root))
        cx_finding_set(&c->out->finding, CX_BROKEN, "JournalRootMismatch", CX_FINDING_WHOLE,
                       "the manifest's journal root is not the one given");
    return CX_SUCCESS;
}

/* Anchors of c->out->manifest that need nothing but the options. */
static cx_status anchor_manifest(checker *c, cx_err *err)
{
    const cx_manifest *manifest = &c->out->manifest;
    c->out->has_manifest = true;
    c->out->has_scheme = true;
    c->out->scheme = manifest->scheme;
    if (c->options->overall_root != NULL) {
        if (!cx_digest_eq(c->options->overall_root, &manifest->overall_root)) {
            cx_finding_set(&c->out->finding, CX_BROKEN, "AnchorMismatch", CX_FINDING_WHOLE,
                           "the manifest's overall root is not the one given");
            return CX_SUCCESS;
        }
        c->out->anchors |= CX_CHECK_BY_OVERALL_ROOT;
    }
    return check_manifest_signature(c, err);
}

static cx_status check_manifest(checker *c, cx_err *err)
{
    CX_TRY(cx_manifest_verify(c->bytes, NULL, c->arena->alloc, &c->out->manifest, &c->out->finding,
                              err));
    if (check_holds(c))
        CX_TRY(anchor_manifest(c, err));
    if (check_holds(c))
        CX_TRY(check_manifest_journal(c, err));
    if (check_holds(c))
        add_limit(c,
                  "a manifest states roots; what was in the state is shown by a proof against it");
    return CX_SUCCESS;
}

/* --- state proofs ---------------------------------------------------------------------------- */

static void check_expectation(checker *c)
{
    const cx_multiproof *proof = &c->out->proof;
    for (size_t i = 0; i < proof->count && check_holds(c); i++) {
        bool absent = proof->items[i].kind == CX_ABSENT;
        if (c->options->expect == CX_EXPECT_MEMBERS && absent)
            cx_finding_set(&c->out->finding, CX_BROKEN, "NotMember", i,
                           "key %zu is absent, expected a member", i);
        if (c->options->expect == CX_EXPECT_ABSENT && !absent)
            cx_finding_set(&c->out->finding, CX_BROKEN, "NotAbsent", i,
                           "key %zu is a member, expected it to be absent", i);
    }
}

static void limits_of_proof(checker *c)
{
    const cx_multiproof *proof = &c->out->proof;
    bool erased = false, hidden = false, absent = false;
    for (size_t i = 0; i < proof->count; i++) {
        const cx_proof_item *item = &proof->items[i];
        erased = erased || item->kind == CX_MEMBER_ERASED;
        hidden = hidden || (item->kind == CX_MEMBER && item->leaf.size == 0);
        absent = absent || item->kind == CX_ABSENT;
    }
    if (erased)
        add_limit(
            c,
            "of a record that is withheld or erased only the hash is shown: neither what it said "
            "is proven, nor that it was erased");
    if (hidden)
        add_limit(c, "records are not shown: their hashes are proven, not what they say");
    if (absent)
        add_limit(c, "absent means absent in this snapshot, not before or after it");
}

static cx_status check_multiproof(checker *c, cx_err *err)
{
    const cx_check_options *options = c->options;
    cx_multiproof_check check = {.name_space = options->namespace_given ? options->name_space
                                                                        : CX_NAMESPACE_ANY};
    if (options->manifest.size != 0)
        CX_TRY(cx_manifest_verify(options->manifest, NULL, c->arena->alloc, &c->out->manifest,
                                  &c->out->finding, err));
    if (!check_holds(c)) {
        c->out->finding.offset = CX_NO_OFFSET; /* it counts from the manifest */
        return CX_SUCCESS;
    }
    CX_TRY(cx_multiproof_verify(c->bytes, options->manifest, &check, c->arena, &c->out->proof,
                                &c->out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    c->out->has_proof = true;
    c->out->has_scheme = true;
    c->out->scheme = c->out->proof.scheme;
    limits_of_proof(c);
    check_expectation(c);
    if (check_holds(c) && options->manifest.size == 0)
        set_indeterminate(
            c, "NoManifest",
            "the proof leads to its own root; give --manifest to say whose root that is");
    if (check_holds(c)) {
        c->out->anchors |= CX_CHECK_BY_MANIFEST;
        CX_TRY(anchor_manifest(c, err));
    }
    if (check_holds(c))
        CX_TRY(check_manifest_journal(c, err));
    return CX_SUCCESS;
}

/* --- proof packs ----------------------------------------------------------------------------- */

/* The file's own checkpoint.  One that no key given has signed is worth nothing, but no lie. */
static cx_status read_own_note(checker *c, cx_bytes checkpoint, bool *out_signed, cx_err *err)
{
    cx_finding finding;
    *out_signed = false;
    if (checkpoint.size == 0)
        return CX_SUCCESS;
    CX_TRY(check_note(c, checkpoint, &c->out->note, &finding, err));
    c->out->has_note = finding.reason == NULL || strcmp(finding.reason, "BadNote") != 0;
    if (finding.verdict == CX_HOLDS) {
        *out_signed = c->options->key_count != 0;
        return CX_SUCCESS;
    }
    if (strcmp(finding.reason, "NotSigned") != 0) {
        c->out->finding = finding;
        c->out->finding.offset = CX_NO_OFFSET; /* it counts from the note */
    }
    return CX_SUCCESS;
}

/* A checkpoint of the manifest's own size must have its root. */
static void compare_note(checker *c)
{
    const cx_checkpoint *note = &c->out->note.checkpoint;
    const cx_manifest *manifest = &c->out->manifest;
    if (c->out->has_note && note->size == manifest->journal_size &&
        !cx_digest_eq(&note->root, &manifest->journal_root))
        cx_finding_set(&c->out->finding, CX_BROKEN, "JournalRootMismatch", CX_FINDING_WHOLE,
                       "checkpoint and manifest give one journal two roots");
}

/* The seal of the manifest in a journal that is trusted, signed, or at least self-consistent. */
static cx_status check_seal(checker *c, const cx_pack *pack, bool note_signed, cx_err *err)
{
    cx_journal_point journal;
    cx_check_result *out = c->out;
    unsigned anchors = out->anchors;
    bool given, was_signed = out->is_signed, pack_note = out->has_note;
    cx_note_result note = out->note;
    CX_TRY(find_journal(c, &journal, &given, err));
    bool trusted_signed = given && out->is_signed && c->options->checkpoint.size != 0;
    out->anchors = anchors;
    out->is_signed = was_signed;
    if (!check_holds(c))
        return CX_SUCCESS;
    if (!given && pack_note)
        journal = point_of(&note);
    else if (!given)
        CX_TRY(cx_inclusion_leads_to(pack->inclusion, NULL, c->arena, NULL, &journal, &out->finding,
                                     err));
    if (check_holds(c))
        CX_TRY(cx_pack_verify_seal(pack, &out->manifest, &journal, c->arena, &out->finding, err));
    if (!check_holds(c)) {
        out->finding.offset = CX_NO_OFFSET; /* it counts from the inclusion proof */
        return CX_SUCCESS;
    }
    out->has_journal = true;
    out->journal = journal;
    if (given || note_signed)
        out->anchors |= CX_CHECK_BY_SEAL;
    out->is_signed = out->is_signed || note_signed || trusted_signed;
    if (!given && !note_signed)
        add_limit(c,
                  "the journal that holds the seal was not anchored: no key or root was given for "
                  "it");
    return CX_SUCCESS;
}

static cx_status check_pack_parts(checker *c, const cx_pack *pack, cx_err *err)
{
    const cx_check_options *options = c->options;
    bool note_signed = false;
    CX_TRY(
        cx_pack_verify(pack, c->arena, &c->out->proof, &c->out->manifest, &c->out->finding, err));
    if (!check_holds(c)) {
        c->out->finding.offset = CX_NO_OFFSET; /* it counts from a part of the pack */
        return CX_SUCCESS;
    }
    c->out->has_proof = true;
    c->out->questions = pack->questions;
    if (options->namespace_given &&
        !cx_str_eq(c->out->proof.name_space, cx_namespace_name(options->name_space)))
        cx_finding_set(&c->out->finding, CX_BROKEN, "NamespaceMismatch", CX_FINDING_WHOLE,
                       "the proof is about %.*s, expected %s", (int)c->out->proof.name_space.size,
                       c->out->proof.name_space.data, cx_namespace_name(options->name_space).data);
    if (check_holds(c))
        check_expectation(c);
    if (check_holds(c))
        CX_TRY(anchor_manifest(c, err));
    if (check_holds(c))
        CX_TRY(read_own_note(c, pack->checkpoint, &note_signed, err));
    if (check_holds(c))
        compare_note(c);
    if (!check_holds(c))
        return CX_SUCCESS;
    limits_of_proof(c);
    return pack->inclusion.size == 0 ? check_manifest_journal(c, err)
                                     : check_seal(c, pack, note_signed, err);
}

static cx_status check_pack(checker *c, cx_err *err)
{
    cx_pack pack;
    cx_err found;
    if (c->options->manifest.size != 0)
        return cx_fail(err, CX_E_USAGE, "a proof pack carries its manifest: none may be given");
    cx_status status = cx_pack_decode(c->bytes, c->arena, &pack, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", &c->out->finding, err));
    return check_holds(c) ? check_pack_parts(c, &pack, err) : CX_SUCCESS;
}

/* --- proofs about the journal ---------------------------------------------------------------- */

static cx_status check_inclusion(checker *c, cx_err *err)
{
    cx_journal_point expected, led;
    cx_inclusion proof;
    cx_digest storage;
    bool given;
    const cx_digest *leaf = find_leaf(c, &storage);
    if (!check_holds(c))
        return CX_SUCCESS;
    CX_TRY(cx_inclusion_leads_to(c->bytes, leaf, c->arena, &proof, &led, &c->out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    c->out->has_scheme = c->out->has_index = c->out->has_journal = true;
    c->out->scheme = proof.scheme;
    c->out->index = proof.index;
    c->out->journal = led;
    CX_TRY(find_journal(c, &expected, &given, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    if (!given)
        set_indeterminate(
            c, "NoRoot",
            "it leads to the journal root shown; give --root or --checkpoint to compare");
    else
        CX_TRY(cx_inclusion_verify(c->bytes, leaf, &expected, c->arena, &c->out->finding, err));
    return CX_SUCCESS;
}

static cx_status check_consistency(checker *c, cx_err *err)
{
    cx_journal_point older, newer;
    cx_consistency proof;
    bool older_given = false, newer_given = false;
    cx_err found;
    cx_status status = cx_consistency_decode(c->bytes, c->arena, &proof, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", &c->out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    c->out->has_scheme = true;
    c->out->scheme = proof.scheme;
    CX_TRY(find_older(c, &older, &older_given, err));
    if (check_holds(c))
        CX_TRY(find_journal(c, &newer, &newer_given, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    if (!older_given || !newer_given) {
        set_indeterminate(
            c, "NoRoot",
            "give the older journal with --from-root or --from-checkpoint and the newer "
            "with --root or --checkpoint");
        return CX_SUCCESS;
    }
    c->out->is_signed = c->options->key_count != 0 && c->options->checkpoint.size != 0 &&
                        c->options->older_checkpoint.size != 0;
    CX_TRY(cx_consistency_verify(c->bytes, &older, &newer, c->arena, &c->out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    c->out->has_journal = c->out->has_older = true;
    c->out->older = (cx_journal_point){proof.size1, older.root};
    c->out->journal = (cx_journal_point){proof.size2, newer.root};
    return CX_SUCCESS;
}

static cx_status check_checkpoint(checker *c, cx_err *err)
{
    CX_TRY(check_note(c, c->bytes, &c->out->note, &c->out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    c->out->has_note = c->out->has_journal = c->out->has_scheme = true;
    c->out->scheme = CX_SCHEME_CORTEX_1;
    c->out->journal = point_of(&c->out->note);
    if (c->options->key_count == 0) {
        set_indeterminate(c, "NoKey", "its signatures were not checked; give --key");
        return CX_SUCCESS;
    }
    c->out->anchors |= CX_CHECK_BY_CHECKPOINT;
    c->out->is_signed = true;
    add_limit(c, "one checkpoint does not prove that other readers were shown the same journal");
    return CX_SUCCESS;
}

static cx_status check_tlog_proof(checker *c, cx_err *err)
{
    cx_tlog_proof proof;
    cx_digest storage;
    cx_err found;
    cx_note_check check = {.key_count = c->options->key_count,
                           .cosigners_required = c->options->cosigners_required};
    const cx_digest *leaf = find_leaf(c, &storage);
    cx_status status = cx_tlog_proof_decode(c->bytes, c->arena, &proof, &found);
    if (check_holds(c))
        CX_TRY(cx_finding_from(status, &found, "BadProof", &c->out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    CX_TRY(check_note(c, proof.note, &c->out->note, &c->out->finding, err));
    if (!check_holds(c)) {
        if (c->out->finding.offset != CX_NO_OFFSET)
            c->out->finding.offset += (uint64_t)(proof.note.data - c->bytes.data);
        return CX_SUCCESS;
    }
    c->out->has_note = c->out->has_index = c->out->has_journal = c->out->has_scheme = true;
    c->out->scheme = CX_SCHEME_CORTEX_1;
    c->out->index = proof.index;
    c->out->journal = point_of(&c->out->note);
    if (leaf == NULL) {
        set_indeterminate(c, "NoLeaf", "it does not carry its entry; give --entry or --leaf");
    } else if (check.key_count == 0) {
        set_indeterminate(c, "NoKey", "the checkpoint's signatures were not checked; give --key");
    } else {
        CX_TRY(note_keys(c, c->out->note.checkpoint.origin, &check.keys, err));
        CX_TRY(cx_tlog_proof_verify(c->bytes, leaf, &check, c->arena, NULL, &c->out->finding, err));
        c->out->anchors |= CX_CHECK_BY_CHECKPOINT;
        c->out->is_signed = true;
    }
    return CX_SUCCESS;
}

/* The key that the receipt names; a bare one fits any.  NULL when there is none. */
static const cx_vkey *receipt_key(checker *c, const cx_receipt *receipt, cx_vkey *storage)
{
    for (size_t i = 0; i < c->options->key_count; i++) {
        *storage = c->options->keys[i];
        if (storage->name.size == 0)
            memcpy(storage->key_id, receipt->key_id, sizeof storage->key_id);
        if (storage->algorithm != CX_VKEY_COSIGNATURE &&
            memcmp(storage->key_id, receipt->key_id, sizeof storage->key_id) == 0)
            return storage;
    }
    return NULL;
}

static cx_status check_receipt(checker *c, cx_err *err)
{
    cx_receipt receipt;
    cx_digest leaf;
    cx_vkey key;
    cx_journal_point older, newer;
    bool older_given = false, newer_given = false;
    cx_err found;
    cx_receipt_check check = {.leaf_hash = find_leaf(c, &leaf)};
    cx_status status = cx_receipt_decode(c->bytes, c->arena, &receipt, &found);
    if (check_holds(c))
        CX_TRY(cx_finding_from(status, &found, "BadReceipt", &c->out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    c->out->has_scheme = true;
    c->out->scheme = CX_SCHEME_CORTEX_1;
    c->out->has_index = !receipt.is_consistency;
    c->out->index = receipt.first;
    check.key = receipt_key(c, &receipt, &key);
    if (check.key == NULL) {
        set_indeterminate(c, "NoKey", "the key that it names was not given; give --key");
        return CX_SUCCESS;
    }
    CX_TRY(find_older(c, &older, &older_given, err));
    if (check_holds(c))
        CX_TRY(find_journal(c, &newer, &newer_given, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    check.older = older_given ? &older : NULL;
    check.newer = newer_given ? &newer : NULL;
    if (!newer_given)
        add_limit(c, "index and size are as the receipt tells them: the signed root does not hold "
                     "them");
    CX_TRY(cx_receipt_verify(c->bytes, &check, c->arena, &c->out->finding, err));
    if (check_holds(c)) {
        c->out->anchors |= CX_CHECK_BY_RECEIPT;
        c->out->is_signed = true;
    }
    return CX_SUCCESS;
}

/* --- scopes ---------------------------------------------------------------------------------- */

static void set_broken(checker *c, const char *reason, const char *message)
{
    cx_finding_set(&c->out->finding, CX_BROKEN, reason, CX_FINDING_WHOLE, "%s", message);
}

/* What can be said without keys (ledger.md §10.3). */
static void check_scope_terms(checker *c)
{
    const cx_scope *scope = &c->out->scope;
    if (scope->schema != CX_SCOPE_SCHEMA)
        set_broken(c, "SchemaVersion", "the scope is of another schema than 1");
    else if (scope->actor.size == 0)
        set_broken(c, "ActorMismatch", "the scope is of no actor's memories");
    else if (cx_selector_is_empty(&scope->include))
        set_broken(c, "EmptyInclude", "the scope includes nothing");
    else if (scope->expires && c->options->now_given &&
             c->options->now_ns / 1000000000 > scope->expires_at)
        set_broken(c, "ScopeExpired", "the scope has ended");
    else if ((scope->include.id_count != 0) != (scope->multiproof.size != 0))
        set_broken(c, "ProofMismatch", "the scope has ids without a proof, or a proof without ids");
}

/* Named keys are for grantors of that name, bare ones for all; as with manifests, a key that was
 * given for it and did not sign makes it broken. */
static cx_status check_scope_signature(checker *c, cx_err *err)
{
    const cx_scope *scope = &c->out->scope;
    bool applies = false, good = false;
    for (size_t i = 0; i < c->options->key_count && !good; i++) {
        const cx_vkey *key = &c->options->keys[i];
        if (key->algorithm == CX_VKEY_COSIGNATURE ||
            (key->name.size != 0 && !cx_str_eq(key->name, scope->granted_by)))
            continue;
        applies = true;
        CX_TRY(cx_scope_signed_by(scope, &key->key, c->arena->alloc, &good, err));
    }
    if (good) {
        c->out->anchors |= CX_CHECK_BY_SCOPE_SIGNATURE;
        c->out->is_signed = true;
    } else if (applies) {
        set_broken(c, "SignatureInvalid", "none of the keys given signed the scope");
    }
    return CX_SUCCESS;
}

/* The ids are bound to the snapshot through its manifest, when that is given. */
static cx_status check_scope_proof(checker *c, cx_err *err)
{
    const cx_check_options *options = c->options;
    const cx_scope *scope = &c->out->scope;
    const cx_multiproof_check question = {.name_space = CX_NAMESPACE_MEMORIES,
                                          .require_members = true};
    cx_finding *finding = &c->out->finding;
    size_t index;
    if (options->manifest.size != 0) {
        CX_TRY(cx_manifest_verify(options->manifest, NULL, c->arena->alloc, &c->out->manifest,
                                  finding, err));
        if (check_holds(c) && !cx_digest_eq(&c->out->manifest.overall_root, &scope->snapshot_hash))
            set_broken(c, "ManifestRootMismatch", "the manifest given is of another snapshot");
    } else if (scope->multiproof.size != 0) {
        add_limit(c, "that the ids are in the snapshot: no --manifest of it was given");
    }
    if (!check_holds(c) || scope->multiproof.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_multiproof_verify(scope->multiproof, options->manifest, &question, c->arena,
                                &c->out->proof, finding, err));
    finding->offset = CX_NO_OFFSET; /* it counts from the proof */
    if (!check_holds(c))
        return CX_SUCCESS;
    const char *fault = cx_scope_ids_fault(scope, &c->out->proof, &index);
    if (fault != NULL)
        set_broken(c, "ProofMismatch", fault);
    c->out->has_proof = check_holds(c);
    return CX_SUCCESS;
}

static cx_status check_scope(checker *c, cx_err *err)
{
    cx_err found;
    cx_status status = cx_scope_decode(c->bytes, c->arena, &c->out->scope, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", &c->out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    c->out->has_scope = true;
    check_scope_terms(c);
    if (check_holds(c))
        CX_TRY(check_scope_signature(c, err));
    if (check_holds(c) && c->options->overall_root != NULL) {
        if (cx_digest_eq(c->options->overall_root, &c->out->scope.snapshot_hash))
            c->out->anchors |= CX_CHECK_BY_OVERALL_ROOT;
        else
            set_broken(c, "AnchorMismatch",
                       "the scope's snapshot has another root than the one given");
    }
    if (check_holds(c))
        CX_TRY(check_scope_proof(c, err));
    if (check_holds(c) && c->out->scope.expires && !c->options->now_given)
        set_indeterminate(c, "NoTime",
                          "the scope has an end, and no time was given to compare it with");
    if (check_holds(c))
        add_limit(c, "that the scope was not revoked, and who presents it: only the data directory "
                     "can tell");
    return CX_SUCCESS;
}

/* --- home proofs ------------------------------------------------------------------------------ */

/* The journal as the caller trusts it, else as the proof's own checkpoint gives it. */
static cx_status find_own_journal(checker *c, cx_bytes checkpoint, cx_journal_point *out,
                                  bool *out_given, cx_err *err)
{
    bool is_signed = false;
    CX_TRY(find_journal(c, out, out_given, err));
    if (!check_holds(c) || *out_given)
        return CX_SUCCESS;
    CX_TRY(read_own_note(c, checkpoint, &is_signed, err));
    *out_given = c->out->has_note;
    *out = point_of(&c->out->note);
    c->out->is_signed = is_signed;
    c->out->anchors |= is_signed ? CX_CHECK_BY_CHECKPOINT : 0;
    return CX_SUCCESS;
}

static cx_status check_home(checker *c, cx_err *err)
{
    cx_home_proof proof;
    cx_journal_point journal;
    cx_err found;
    cx_check_result *out = c->out;
    bool given = false;
    cx_status status = cx_home_proof_decode(c->bytes, c->arena, &proof, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", &out->finding, err));
    if (check_holds(c))
        CX_TRY(find_own_journal(c, proof.checkpoint, &journal, &given, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    CX_TRY(cx_home_proof_verify(&proof, given ? &journal : NULL, c->arena, &out->home_leaf,
                                &out->home_root, &out->journal, &out->finding, err));
    out->finding.offset = CX_NO_OFFSET; /* it counts from a part of the proof */
    if (!check_holds(c))
        return CX_SUCCESS;
    out->has_home = out->has_scheme = out->has_journal = true;
    out->scheme = out->home_leaf.scheme;
    if (c->options->overall_root != NULL &&
        !cx_digest_eq(c->options->overall_root, &out->home_leaf.overall))
        set_broken(c, "AnchorMismatch",
                   "the actor's overall root in the home root is not the one given");
    else
        add_limit(c, "what the actor recorded after this home root");
    return CX_SUCCESS;
}

/* --- receipts of erasures --------------------------------------------------------------------- */

static cx_status check_erasure(checker *c, cx_err *err)
{
    cx_erasure_receipt receipt;
    cx_err found;
    cx_check_result *out = c->out;
    cx_note_check check = {.key_count = c->options->key_count};
    size_t good = 0, unknown = 0;
    cx_status status = cx_erasure_read(c->bytes, &receipt, &found);
    const char *reason = cx_failed(status) && found.tag != NULL ? found.tag : "BadErasure";
    CX_TRY(cx_finding_from(status, &found, reason, &out->finding, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    out->has_erasure = true;
    out->erasure = receipt.head;
    if (receipt.signatures.size != 0) {
        CX_TRY(note_keys(c, cx_note_first_signer(receipt.signatures), &check.keys, err));
        CX_TRY(cx_note_check_signatures(receipt.text, receipt.signatures, &check, c->arena->alloc,
                                        &good, &unknown, &out->finding, err));
    }
    if (good != 0) {
        out->is_signed = true;
        out->anchors |= CX_CHECK_BY_SIGNATURE;
    }
    if (check_holds(c))
        add_limit(c, "that no copy is left elsewhere, such as in a backup: the signer says what "
                     "was destroyed in the data directory");
    return CX_SUCCESS;
}

/* --- proofs of absence ------------------------------------------------------------------------ */

/* What the set cannot say, and what the reader asked. */
static void judge_never(checker *c)
{
    const cx_check_options *options = c->options;
    cx_check_result *out = c->out;
    bool is_tool = cx_str_starts(out->never, CX_STR("tool:"));
    if (out->has_note && !cx_origin_names_actor(out->note.checkpoint.origin, out->actions.actor))
        set_broken(c, "ActorMismatch",
                   "the checkpoint's name does not end with the actor of the action set: it may be "
                   "of another journal");
    else if ((options->never.size != 0 && !cx_str_eq(options->never, out->never)) ||
             (options->subject.size != 0 && !cx_str_eq(options->subject, out->actions.subject)))
        set_broken(c, "QuestionMismatch", "the proof is about another name, run or session");
    else if (options->expect == CX_EXPECT_MEMBERS)
        set_broken(c, "NotMember", "the name is absent, expected a member");
    else if (out->actions.unread != 0)
        set_indeterminate(c, "CallsUnread",
                          "records of this run or session could not be read: they may be calls");
    if (!check_holds(c))
        return;
    add_limit(c, "what was not recorded: the set is that of the recorder, up to the entry named");
    if (!is_tool && out->actions.opaque != 0)
        add_limit(c, "what calls did that do not name their files and hosts, such as those of a "
                     "shell");
    if (out->actions.relative != 0 && cx_action_name_is_absolute(out->never))
        add_limit(c, "paths relative to an unknown folder: ask for the end of the path, too");
}

static cx_status check_never(checker *c, cx_err *err)
{
    cx_never_proof proof;
    cx_journal_point journal;
    cx_err found;
    cx_check_result *out = c->out;
    bool given = false;
    cx_status status = cx_never_proof_decode(c->bytes, c->arena, &proof, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", &out->finding, err));
    if (check_holds(c))
        CX_TRY(find_own_journal(c, proof.checkpoint, &journal, &given, err));
    if (!check_holds(c))
        return CX_SUCCESS;
    CX_TRY(cx_never_proof_verify(&proof, given ? &journal : NULL, c->arena, &out->actions,
                                 &out->journal, &out->finding, err));
    out->finding.offset = CX_NO_OFFSET; /* it counts from a part of the proof */
    if (!check_holds(c))
        return CX_SUCCESS;
    out->has_never = out->has_journal = true;
    out->never = proof.name;
    judge_never(c);
    return CX_SUCCESS;
}

/* --- the verdict ----------------------------------------------------------------------------- */

static bool is_about_state(cx_check_kind kind)
{
    return kind == CX_CHECK_PACK || kind == CX_CHECK_MULTIPROOF || kind == CX_CHECK_MANIFEST ||
           kind == CX_CHECK_SCOPE;
}

/* A signature covers all of a manifest but the name of who signed; a seal that name too. */
static void cover_manifest(checker *c)
{
    cx_check_result *out = c->out;
    const unsigned by = CX_CHECK_BY_MANIFEST_SIGNATURE | CX_CHECK_BY_SEAL | CX_CHECK_BY_MANIFEST;
    out->manifest_covered = out->has_manifest && (out->anchors & by) != 0;
    out->signer_covered =
        out->manifest_covered &&
        (c->named_signer || (out->anchors & (CX_CHECK_BY_SEAL | CX_CHECK_BY_MANIFEST)) != 0);
}

static void conclude_check(checker *c)
{
    const cx_check_options *options = c->options;
    cx_check_result *out = c->out;
    if (!check_holds(c))
        return;
    cover_manifest(c);
    bool key_unused = options->key_count != 0 && !out->is_signed &&
                      (is_about_state(out->kind) || out->kind == CX_CHECK_HOME ||
                       out->kind == CX_CHECK_ERASURE || out->kind == CX_CHECK_NEVER);
    if (key_unused || (options->require == CX_REQUIRE_SIGNED && !out->is_signed))
        set_indeterminate(c, "NotSigned",
                          options->key_count == 0
                              ? "it agrees with itself; give --key with the key of its signer"
                              : "it agrees with itself, but none of the keys given has signed it");
    else if (options->require == CX_REQUIRE_ANCHORED && out->anchors == 0)
        set_indeterminate(
            c, "NotAnchored",
            "it agrees with itself, as anybody can make it do; give --key with the key of "
            "its signer, or --overall-root");
    else if (out->anchors == 0)
        add_limit(c, "where it comes from: anybody can make a file that agrees with itself");
    else if (is_about_state(out->kind) && !out->is_signed)
        add_limit(c, "its author is not proven: no signature was checked");
}

static cx_status check_kind(checker *c, cx_err *err)
{
    switch (c->out->kind) {
    case CX_CHECK_PACK: return check_pack(c, err);
    case CX_CHECK_MULTIPROOF: return check_multiproof(c, err);
    case CX_CHECK_MANIFEST: return check_manifest(c, err);
    case CX_CHECK_INCLUSION: return check_inclusion(c, err);
    case CX_CHECK_CONSISTENCY: return check_consistency(c, err);
    case CX_CHECK_CHECKPOINT: return check_checkpoint(c, err);
    case CX_CHECK_TLOG_PROOF: return check_tlog_proof(c, err);
    case CX_CHECK_RECEIPT: return check_receipt(c, err);
    case CX_CHECK_SCOPE: return check_scope(c, err);
    case CX_CHECK_HOME: return check_home(c, err);
    case CX_CHECK_ERASURE: return check_erasure(c, err);
    case CX_CHECK_NEVER: return check_never(c, err);
    case CX_CHECK_UNKNOWN: break;
    }
    set_indeterminate(
        c, "NotRecognised",
        "neither proof pack, proof, manifest, checkpoint, tlog-proof, receipt, scope, home "
        "proof nor proof of absence; "
        "check lattice files and data directories with 'cortex verify'");
    return CX_SUCCESS;
}

void cx_check_result_of(const cx_err *error, cx_check_result *out)
{
    memset(out, 0, sizeof *out);
    cx_finding_set(&out->finding, CX_INDETERMINATE, error->tag != NULL ? error->tag : "NotRead",
                   CX_FINDING_WHOLE, "%s", error->message);
    out->finding.offset = error->offset;
}

cx_status cx_check_run(cx_bytes bytes, const cx_check_options *options, cx_arena *arena,
                       cx_check_result *out, cx_err *err)
{
    checker c = {.bytes = bytes, .options = options, .arena = arena, .out = out};
    memset(out, 0, sizeof *out);
    cx_finding_init(&out->finding);
    if (bytes.size > CX_PROOF_BYTES_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "ProofTooLong", CX_NO_OFFSET,
                          "found %zu bytes, expected at most %u", bytes.size, CX_PROOF_BYTES_MAX);
    if (options->key_count > CX_NOTE_KEYS_MAX)
        return cx_fail(err, CX_E_LIMIT, "found %zu keys, expected at most %d", options->key_count,
                       CX_NOTE_KEYS_MAX);
    out->kind = cx_check_recognise(bytes);
    CX_TRY(check_kind(&c, err));
    conclude_check(&c);
    return CX_SUCCESS;
}
