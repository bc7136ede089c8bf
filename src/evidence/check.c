/*
 * check.c - verifies an evidence file.
 *
 *   V1  The verdict is "holds" only when the page is the function of the data, every entry is in
 *       its journal, everything shown is what an entry commits to, and no signature that can be
 *       checked is wrong.
 *   V2  A given key must have signed every journal's checkpoint, or the verdict is indeterminate: a
 *       file is as good as its weakest journal.
 *   V3  Missing content makes the verdict indeterminate; its entry may still hold.
 *   V4  `limits` lists what remains unproven.
 */
#include <stdarg.h>
#include <stdio.h>

#include "crypto/api.h"
#include "evidence/internal.h"
#include "proof/api.h"

/* --- saying what was found -------------------------------------------------------------------- */

static cx_verdict make_worse(cx_verdict a, cx_verdict b)
{
    if (a == CX_BROKEN || b == CX_BROKEN)
        return CX_BROKEN;
    return a == CX_INDETERMINATE || b == CX_INDETERMINATE ? CX_INDETERMINATE : CX_HOLDS;
}

const char cx_evidence_limit_canonical[] =
    "the bytes shown of a decision are the signed ones; only 'cortex verify' computes whether they "
    "are the canonical form of the received trace";

void cx_evidence_add(cx_evidence_result *out, const char *part, size_t number,
                     const cx_finding *finding)
{
    if (finding->verdict == CX_HOLDS)
        return;
    /* The file's own finding is the first of the worst. */
    if (make_worse(out->finding.verdict, finding->verdict) != out->finding.verdict)
        out->finding = *finding;
    if (out->finding_count < CX_EVIDENCE_FINDINGS_MAX)
        out->findings[out->finding_count++] = (cx_evidence_finding){part, number, *finding};
    else if (finding->verdict == CX_BROKEN &&
             out->findings[CX_EVIDENCE_FINDINGS_MAX - 1].finding.verdict != CX_BROKEN)
        out->findings[CX_EVIDENCE_FINDINGS_MAX - 1] = (cx_evidence_finding){part, number, *finding};
}

void cx_evidence_add_finding(cx_evidence_checker *c, const char *part, size_t number,
                             const cx_finding *finding)
{
    cx_evidence_add(c->out, part, number, finding);
}

void cx_evidence_find(cx_evidence_checker *c, const char *part, size_t number, cx_verdict verdict,
                      const char *reason, const char *format, ...)
{
    cx_finding finding;
    va_list args;
    char message[CX_ERR_MESSAGE_SIZE];
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    cx_finding_set(&finding, verdict, reason, CX_FINDING_WHOLE, "%s", message);
    cx_evidence_add_finding(c, part, number, &finding);
}

void cx_evidence_limit(cx_evidence_checker *c, const char *text)
{
    for (size_t i = 0; i < c->out->limit_count; i++)
        if (strcmp(c->out->limits[i], text) == 0)
            return;
    CX_ASSERT(c->out->limit_count < CX_EVIDENCE_LIMITS_MAX);
    c->out->limits[c->out->limit_count++] = text;
}

const cx_evidence_file *cx_evidence_file_named(const cx_evidence *e, const char *path)
{
    for (size_t i = 0; i < e->file_count; i++)
        if (cx_str_is(e->files[i].path, path))
            return &e->files[i];
    return NULL;
}

/* --- journals --------------------------------------------------------------------------------- */

/* One key signs many journals, each under a name of its own: it is the key that counts here, not
 * what it is called. */
cx_status cx_evidence_keys_for(cx_evidence_checker *c, cx_str origin, const cx_vkey **out,
                               cx_err *err)
{
    const cx_check_options *options = c->options;
    cx_vkey *keys = CX_ARENA_ARRAY(c->arena, cx_vkey, options->key_count + 1);
    if (keys == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < options->key_count; i++) {
        keys[i] = options->keys[i];
        if (keys[i].algorithm != CX_VKEY_COSIGNATURE)
            cx_vkey_make(origin, CX_VKEY_NOTE, &options->keys[i].key, &keys[i]);
    }
    *out = keys;
    return CX_SUCCESS;
}

/* "cortex/" and 16 hex digits of the name's hash, as version 0.1 wrote it: another name with the
 * same digits can be found, and an actor can be called what the digits are. */
static bool might_name_actor(cx_str origin, cx_str actor)
{
    char hex[16];
    cx_digest hash = cx_digest_of(cx_str_bytes(actor));
    cx_hex_encode(cx_bytes_from(hash.bytes, 8), hex);
    return origin.size == 7 + sizeof hex && cx_str_starts(origin, CX_STR("cortex/")) &&
           memcmp(origin.data + 7, hex, sizeof hex) == 0;
}

/* *out_signed: by enough of the given keys. */
static cx_status check_note(cx_evidence_checker *c, size_t number, bool *out_signed, cx_err *err)
{
    const cx_evidence_journal *journal = &c->e->journals[number];
    cx_note_result note;
    cx_finding finding;
    cx_err found;
    cx_note_check check = {.key_count = c->options->key_count,
                           .cosigners_required = c->options->cosigners_required};
    *out_signed = false;
    cx_finding_init(&finding);
    memset(&note, 0, sizeof note);
    cx_status status = cx_checkpoint_parse(journal->checkpoint, &note.checkpoint, NULL, &found);
    CX_TRY(cx_finding_from(status, &found, "BadNote", &finding, err));
    cx_evidence_add_finding(c, "journal", number, &finding);
    if (finding.verdict != CX_HOLDS)
        return CX_SUCCESS;
    if (note.checkpoint.size != journal->point.size ||
        !cx_digest_eq(&note.checkpoint.root, &journal->point.root)) {
        cx_evidence_find(c, "journal", number, CX_BROKEN, "CheckpointMismatch",
                         "the checkpoint is of another journal, or of another moment");
        return CX_SUCCESS;
    }
    if (!cx_origin_names_actor(note.checkpoint.origin, journal->actor) &&
        might_name_actor(note.checkpoint.origin, journal->actor)) {
        cx_evidence_find(c, "journal", number, CX_INDETERMINATE, "WeakOrigin",
                         "the checkpoint names its journal by 16 digits of a hash, as version 0.1 "
                         "did, which several names can share; create the file again");
        return CX_SUCCESS;
    }
    if (!cx_origin_names_actor(note.checkpoint.origin, journal->actor)) {
        cx_evidence_find(c, "journal", number, CX_BROKEN, "CheckpointMismatch",
                         "the checkpoint names another journal");
        return CX_SUCCESS;
    }
    if (check.key_count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_evidence_keys_for(c, note.checkpoint.origin, &check.keys, err));
    CX_TRY(cx_note_verify(journal->checkpoint, &check, c->arena->alloc, &note, &finding, err));
    *out_signed = finding.verdict == CX_HOLDS;
    /* A note that no given key signed is not a wrong note: V2 reports it. */
    if (finding.verdict != CX_HOLDS && strcmp(finding.reason, "NotSigned") != 0)
        cx_evidence_add_finding(c, "journal", number, &finding);
    return CX_SUCCESS;
}

/* The caller's own knowledge of a journal: a checkpoint file, or a root. */
static cx_status anchor_of(cx_evidence_checker *c, size_t number, bool *out_anchored, cx_err *err)
{
    const cx_evidence_journal *journal = &c->e->journals[number];
    const cx_journal_point *given = c->options->journal;
    cx_checkpoint stored;
    cx_err found;
    bool size_fits = false, root_fits = false;
    *out_anchored = false;
    if (c->options->checkpoint.size != 0) {
        cx_status status = cx_checkpoint_parse(c->options->checkpoint, &stored, NULL, &found);
        if (cx_failed(status))
            return cx_fail(err, CX_E_USAGE, "option --checkpoint: %s", found.message);
        size_fits = stored.size == journal->point.size;
        root_fits = cx_digest_eq(&stored.root, &journal->point.root);
    } else if (given != NULL) {
        size_fits = given->size == CX_JOURNAL_SIZE_UNKNOWN || given->size == journal->point.size;
        root_fits = cx_digest_eq(&given->root, &journal->point.root);
    } else {
        return CX_SUCCESS;
    }
    *out_anchored = size_fits && root_fits;
    c->root_differs = c->e->journal_count == 1 && size_fits && !root_fits;
    return CX_SUCCESS;
}

static cx_status check_journals(cx_evidence_checker *c, cx_err *err)
{
    for (size_t i = 0; i < c->e->journal_count; i++) {
        bool is_signed = false, anchored = false;
        if (c->e->journals[i].checkpoint.size != 0)
            CX_TRY(check_note(c, i, &is_signed, err));
        CX_TRY(anchor_of(c, i, &anchored, err));
        c->is_signed[i] = is_signed;
        c->anchored[i] = is_signed || anchored;
        c->named[i] = c->e->journals[i].checkpoint.size != 0;
    }
    return CX_SUCCESS;
}

/* Home roots, and then what all of it comes to. */
static cx_status check_homes(cx_evidence_checker *c, cx_err *err)
{
    for (size_t i = 0; i < c->e->home_count; i++)
        CX_TRY(cx_evidence_check_home(c, i, err));
    if (c->root_differs && !c->home_given)
        cx_evidence_find(c, "journal", 0, CX_BROKEN, "RootMismatch",
                         "the journal's root is not the one given");
    for (size_t i = 0; i < c->e->journal_count; i++) {
        c->out->journals_signed += c->is_signed[i];
        c->out->journals_anchored += c->anchored[i];
    }
    return CX_SUCCESS;
}

/* --- entries ---------------------------------------------------------------------------------- */

static void check_payload(cx_evidence_checker *c, size_t number)
{
    const cx_evidence_entry *given = &c->e->entries[number];
    const cx_entry *entry = &c->entries[number];
    if (!entry->committed) {
        c->payloads[number] = entry->payload;
        if (given->salt != NULL)
            cx_evidence_find(c, "entry", number, CX_BROKEN, "PayloadMismatch",
                             "the entry commits to no content, and some is shown");
        return;
    }
    if (given->salt == NULL) {
        c->out->bodies_missing++;
        cx_evidence_find(c, "entry", number, CX_INDETERMINATE, "BodyMissing",
                         "its content was erased, or is not in the file");
        return;
    }
    cx_digest found = cx_scheme_payload_commitment(given->salt, given->payload);
    if (cx_digest_eq(&found, &entry->commitment) && given->payload.size == entry->payload_size)
        c->payloads[number] = given->payload;
    else
        cx_evidence_find(c, "entry", number, CX_BROKEN, "PayloadMismatch",
                         "the content shown does not match the commitment of the entry");
}

static cx_status check_entry(cx_evidence_checker *c, size_t number, cx_err *err)
{
    const cx_evidence_entry *given = &c->e->entries[number];
    const cx_evidence_journal *journal = &c->e->journals[given->journal];
    cx_inclusion proof;
    cx_finding finding;
    CX_TRY(cx_inclusion_verify(given->inclusion, NULL, &journal->point, c->arena, &finding, err));
    cx_evidence_add_finding(c, "entry", number, &finding);
    if (finding.verdict != CX_HOLDS)
        return CX_SUCCESS;
    CX_TRY(cx_inclusion_decode(given->inclusion, c->arena, &proof, err));
    if (proof.scheme != journal->scheme) {
        cx_evidence_find(c, "entry", number, CX_BROKEN, "SchemeMismatch",
                         "the proof is of another scheme than its journal");
        return CX_SUCCESS;
    }
    CX_TRY(cx_entry_decode(proof.entry, &c->entries[number], err));
    c->good[number] = true;
    check_payload(c, number);
    return CX_SUCCESS;
}

/* --- decisions and memories ------------------------------------------------------------------- */

static bool entry_contains(cx_bytes bytes, cx_str text)
{
    return text.size != 0 && bytes.size >= text.size &&
           memmem(bytes.data, bytes.size, text.data, text.size) != NULL;
}

static const cx_evidence_key *claimed_key(const cx_evidence *e, cx_str id)
{
    for (size_t i = 0; i < e->key_count; i++)
        if (cx_str_is(e->keys[i].role, "trace") && cx_str_eq(e->keys[i].id, id))
            return &e->keys[i];
    return NULL;
}

static bool is_key_given(const cx_evidence_checker *c, const cx_pubkey *key)
{
    for (size_t i = 0; i < c->options->key_count; i++)
        if (memcmp(c->options->keys[i].key.bytes, key->bytes, sizeof key->bytes) == 0)
            return true;
    return false;
}

/* The received trace contains the signature and the key's name as they are shown. */
static cx_status carries_entry(cx_evidence_checker *c, const cx_evidence_trace *trace, bool *out,
                               cx_err *err)
{
    cx_buf url, plain;
    cx_bytes payload = c->payloads[trace->entry];
    cx_bytes signature = cx_bytes_from(trace->signature.bytes, sizeof trace->signature.bytes);
    cx_buf_init(&url, c->arena->alloc);
    cx_buf_init(&plain, c->arena->alloc);
    cx_base64_add(&url, signature, CX_BASE64_URL);
    cx_base64_add(&plain, signature, CX_BASE64);
    cx_status status = cx_buf_check(&url, err);
    if (!cx_failed(status))
        status = cx_buf_check(&plain, err);
    /* Standard base64 may have '/' escaped in JSON: then the first 40 characters differ, and it
     * is rejected like a missing one. */
    *out = (entry_contains(payload, cx_buf_str(&url)) ||
            entry_contains(payload, cx_buf_str(&plain))) &&
           entry_contains(payload, trace->key_id);
    cx_buf_done(&url);
    cx_buf_done(&plain);
    return status;
}

static cx_status check_trace(cx_evidence_checker *c, size_t number, cx_err *err)
{
    const cx_evidence_trace *trace = &c->e->traces[number];
    const cx_evidence_key *key = claimed_key(c->e, trace->key_id);
    bool same = false;
    if (!c->good[trace->entry])
        return CX_SUCCESS; /* reported already */
    if (!cx_str_is(c->entries[trace->entry].kind, "trace.received")) {
        cx_evidence_find(c, "trace", number, CX_BROKEN, "EntryMismatch",
                         "its entry is not a received trace");
        return CX_SUCCESS;
    }
    CX_TRY(carries_entry(c, trace, &same, err));
    if (!same)
        cx_evidence_find(c, "trace", number, CX_BROKEN, "TraceMismatch",
                         "the trace in the ledger does not have this signature");
    if (key == NULL) {
        cx_evidence_find(c, "trace", number, CX_INDETERMINATE, "NoKey",
                         "the key that signed it is not in the file");
        return CX_SUCCESS;
    }
    if (!cx_ed25519_verify(&key->key, trace->canonical, &trace->signature))
        cx_evidence_find(c, "trace", number, CX_BROKEN, "SignatureInvalid",
                         "the named key did not sign the bytes shown");
    else if (is_key_given(c, &key->key))
        c->out->traces_signed++;
    else
        cx_evidence_limit(c, "the owner of the key that signed a decision is what the file states: "
                             "give the key with --key to compare it");
    cx_evidence_limit(c, "a signed decision is the agent's own statement");
    cx_evidence_limit(c, cx_evidence_limit_canonical);
    return CX_SUCCESS;
}

static cx_status check_memory(cx_evidence_checker *c, size_t number, cx_err *err)
{
    const cx_evidence_memory *memory = &c->e->memories[number];
    const cx_entry *entry = &c->entries[memory->entry];
    cx_version_record version;
    cx_payload payload;
    cx_uri uri;
    cx_digest hash;
    cx_entry_kind kind = cx_entry_kind_of(entry->kind);
    if (!c->good[memory->entry])
        return CX_SUCCESS;
    bool fits = (kind == CX_ENTRY_WRITE || kind == CX_ENTRY_UPDATE) &&
                cx_evidence_ok(c, cx_uri_parse(memory->uri, &uri, NULL)) && !uri.is_edge &&
                cx_evidence_ok(c, cx_payload_decode(kind, c->payloads[memory->entry], c->arena,
                                                    &payload, NULL)) &&
                memcmp(payload.as.write.id.bytes, uri.id.bytes, sizeof uri.id.bytes) == 0 &&
                payload.as.write.version == uri.version && payload.as.write.type == uri.type;
    if (!fits) {
        cx_evidence_find(c, "memory", number, CX_BROKEN, "EntryMismatch",
                         "its entry did not write this version of this memory");
        return CX_SUCCESS;
    }
    if (memory->version.size == 0) {
        c->out->bodies_missing++;
        cx_evidence_find(c, "memory", number, CX_INDETERMINATE, "BodyMissing",
                         "its content was erased, or is not in the file");
        return CX_SUCCESS;
    }
    fits = cx_evidence_ok(c, cx_version_decode(memory->version, c->arena, &version, NULL)) &&
           !version.erased;
    if (fits)
        CX_TRY(cx_version_hash(&version, c->arena->alloc, &hash, err));
    if (!fits || !cx_digest_eq(&hash, &payload.as.write.version_hash) ||
        !cx_digest_eq(&hash, &version.hash))
        cx_evidence_find(c, "memory", number, CX_BROKEN, "VersionMismatch",
                         "the memory shown does not have the hash that was recorded");
    cx_evidence_limit(c, "the content and the origin of a memory are what its writer stated");
    return CX_SUCCESS;
}

/* The entry seals this manifest, with this signature, in the journal of its actor. */
static cx_status seals_manifest(cx_evidence_checker *c, size_t number, const cx_manifest *manifest,
                                bool *out, cx_err *err)
{
    cx_payload payload;
    cx_digest digest;
    const cx_payload_seal *seal = &payload.as.seal;
    const cx_evidence_journal *journal = &c->e->journals[c->e->entries[number].journal];
    *out = c->good[number] && cx_entry_kind_of(c->entries[number].kind) == CX_ENTRY_SEAL &&
           !manifest->signature.null && cx_str_eq(journal->actor, manifest->actor) &&
           cx_evidence_ok(
               c, cx_payload_decode(CX_ENTRY_SEAL, c->payloads[number], c->arena, &payload, NULL));
    if (!*out)
        return CX_SUCCESS;
    CX_TRY(cx_manifest_digest(manifest, c->arena->alloc, &digest, err));
    *out = cx_digest_eq(&digest, &seal->manifest_digest) &&
           cx_str_eq(seal->signed_by, manifest->signed_by) &&
           cx_str_eq(cx_bytes_str(seal->signature), cx_bytes_str(manifest->signature.bytes));
    return CX_SUCCESS;
}

/* Given roots are of journals, not of packs, which need an overall root. */
static cx_status check_pack(cx_evidence_checker *c, size_t number, cx_err *err)
{
    cx_check_options options = {.overall_root = c->options->overall_root,
                                .require = CX_REQUIRE_SELF_CONSISTENT};
    cx_check_result result;
    cx_err found;
    cx_finding finding;
    cx_finding_init(&finding);
    cx_status status = cx_check_run(c->e->packs[number], &options, c->arena, &result, &found);
    CX_TRY(cx_finding_from(status, &found, "BadProof", &finding, err));
    if (finding.verdict == CX_HOLDS && result.kind != CX_CHECK_PACK)
        cx_finding_set(&finding, CX_BROKEN, "BadProof", CX_FINDING_WHOLE, "it is not a proof pack");
    else if (finding.verdict == CX_HOLDS)
        finding = result.finding;
    cx_evidence_add_finding(c, "proof", number, &finding);
    if (finding.verdict != CX_HOLDS)
        return CX_SUCCESS;
    bool sealed = false;
    for (size_t i = 0; i < c->e->entry_count && !sealed; i++)
        CX_TRY(seals_manifest(c, i, &result.manifest, &sealed, err));
    if (!sealed && !result.manifest.signature.null)
        cx_evidence_find(c, "proof", number, CX_BROKEN, "SealMismatch",
                         "its snapshot is signed, but no entry in the file seals it");
    else if (!sealed && c->options->overall_root == NULL)
        cx_evidence_limit(
            c, "a proof of state has no anchor: no entry in the file seals its snapshot");
    return CX_SUCCESS;
}

/* --- the verdict ------------------------------------------------------------------------------ */

/* V2 */
static void conclude_report(cx_evidence_checker *c)
{
    const cx_evidence_result *out = c->out;
    size_t journals = c->e->journal_count;
    bool keys = c->options->key_count != 0;
    bool must_sign = c->options->require == CX_REQUIRE_SIGNED || (keys && out->traces_signed == 0);
    if (journals == 0)
        cx_evidence_find(c, "journal", 0, CX_INDETERMINATE, "NoRoot", "it contains no journal");
    if (out->journals_signed < journals && (must_sign || (keys && out->journals_signed != 0)))
        cx_evidence_find(
            c, "journal", 0, CX_INDETERMINATE, "NotSigned",
            keys ? "it is consistent, but the given keys have signed %zu of %zu journals"
                 : "it is consistent, but no key was given (%zu of %zu journals)",
            out->journals_signed, journals);
    else if (out->journals_anchored < journals && c->options->require == CX_REQUIRE_ANCHORED)
        cx_evidence_find(c, "journal", 0, CX_INDETERMINATE, "NotAnchored",
                         "it is consistent, which anyone can arrange, but %zu of %zu journals have "
                         "no given anchor; give --key with the key of their checkpoints",
                         journals - out->journals_anchored, journals);
    if (out->journals_anchored < journals)
        cx_evidence_limit(c, "a journal that no given key has signed is not attested: anyone can "
                             "create a consistent one");
    for (size_t i = 0; i < journals; i++)
        if (!c->named[i])
            cx_evidence_limit(
                c,
                "where a journal has no signed checkpoint, its owner is only what the file states");
    if (!c->whole_session)
        cx_evidence_limit(c, "that nothing was left out is not proven: the creator of the file "
                             "chose its content");
    cx_evidence_limit(c, "that what was recorded is true is not proven");
}

/* Whether an entry is the trace of that id; one whose content is missing may be. */
static bool shows_trace(cx_evidence_checker *c, cx_str id)
{
    for (size_t i = 0; i < c->e->entry_count; i++) {
        cx_json trace;
        bool missing = c->entries[i].committed && c->e->entries[i].salt == NULL;
        if (!c->good[i] || !cx_str_is(c->entries[i].kind, "trace.received"))
            continue;
        if (missing || (cx_evidence_ok(c, cx_json_parse_text(cx_bytes_str(c->payloads[i]), c->arena,
                                                             &trace, NULL)) &&
                        cx_str_eq(CX_JSON_GET_STR(&trace, "trace_id"), id)))
            return true;
    }
    return false;
}

/* Entries of a session's journal; *out_whole: each of them, up to the journal's point. */
static bool shows_session(cx_evidence_checker *c, bool *out_whole)
{
    const cx_evidence *e = c->e;
    bool seen[CX_EVIDENCE_ENTRIES_MAX] = {false};
    size_t distinct = 0, shown = 0, journal = 0;
    while (journal < e->journal_count && !cx_str_eq(e->journals[journal].actor, e->id))
        journal++;
    for (size_t i = 0; i < e->entry_count && journal < e->journal_count; i++) {
        if (!c->good[i] || e->entries[i].journal != journal)
            continue;
        shown += cx_str_starts(c->entries[i].kind, CX_STR("live."));
        uint64_t seq = c->entries[i].seq;
        if (seq < CX_EVIDENCE_ENTRIES_MAX && !seen[seq]) {
            seen[seq] = true;
            distinct++;
        }
    }
    *out_whole = shown != 0 && distinct == e->journals[journal].point.size;
    return shown != 0;
}

static bool check_session(cx_evidence_checker *c)
{
    bool shown = shows_session(c, &c->whole_session);
    cx_evidence_limit(c, "a call that an agent made without its hook has no entry");
    if (!c->whole_session)
        cx_evidence_limit(c, "not every entry of the session's journal is in the file");
    return shown;
}

/* What the file is about must be in it. */
static void check_subject(cx_evidence_checker *c)
{
    const cx_evidence *e = c->e;
    bool shown = false;
    if (cx_str_is(e->kind, "run"))
        shown = e->file_count != 0;
    else if (cx_str_is(e->kind, "commit"))
        shown = e->commit.size != 0;
    else if (cx_str_is(e->kind, "trace"))
        shown = shows_trace(c, e->id);
    else if (cx_str_is(e->kind, "session"))
        shown = check_session(c);
    else if (cx_str_is(e->kind, "memory"))
        for (size_t i = 0; i < e->memory_count; i++)
            shown = shown || cx_str_eq(e->memories[i].uri, e->id);
    if (!shown)
        cx_evidence_find(c, "page", 0, CX_BROKEN, "SubjectMissing",
                         "its subject is not in the file");
}

static cx_status check_parts(cx_evidence_checker *c, cx_err *err)
{
    CX_TRY(check_journals(c, err));
    for (size_t i = 0; i < c->e->entry_count; i++)
        CX_TRY(check_entry(c, i, err));
    CX_TRY(check_homes(c, err));
    c->out->entries_shown = c->e->entry_count;
    check_subject(c);
    CX_TRY(cx_evidence_check_run(c, err));
    cx_evidence_check_commit(c);
    for (size_t i = 0; i < c->e->trace_count; i++)
        CX_TRY(check_trace(c, i, err));
    for (size_t i = 0; i < c->e->memory_count; i++)
        CX_TRY(check_memory(c, i, err));
    for (size_t i = 0; i < c->e->pack_count; i++)
        CX_TRY(check_pack(c, i, err));
    conclude_report(c);
    return CX_SUCCESS;
}

static cx_status check_read(cx_evidence_checker *c, cx_err *err)
{
    size_t count = c->e->entry_count + 1;
    c->entries = CX_ARENA_ARRAY(c->arena, cx_entry, count);
    c->payloads = CX_ARENA_ARRAY(c->arena, cx_bytes, count);
    c->good = CX_ARENA_ARRAY(c->arena, bool, count);
    if (c->entries == NULL || c->payloads == NULL || c->good == NULL)
        return cx_fail_nomem(err);
    memset(c->entries, 0, count * sizeof *c->entries);
    memset(c->payloads, 0, count * sizeof *c->payloads);
    memset(c->good, 0, count * sizeof *c->good);
    return check_parts(c, err);
}

cx_status cx_evidence_check(cx_bytes bytes, const cx_check_options *options, cx_arena *arena,
                            cx_evidence_result *out, cx_err *err)
{
    cx_evidence_checker c = {.options = options, .arena = arena, .out = out, .e = &out->evidence};
    cx_finding finding;
    memset(out, 0, sizeof *out);
    cx_finding_init(&out->finding);
    if (options->key_count > CX_NOTE_KEYS_MAX)
        return cx_fail(err, CX_E_LIMIT, "found %zu keys, expected at most %d", options->key_count,
                       CX_NOTE_KEYS_MAX);
    CX_TRY(cx_evidence_read(bytes, arena, &out->evidence, &finding, err));
    cx_evidence_add_finding(&c, "page", 0, &finding);
    if (finding.verdict != CX_HOLDS)
        return CX_SUCCESS;
    out->read = true;
    CX_TRY(check_read(&c, err));
    return c.no_memory ? cx_fail_nomem(err) : CX_SUCCESS;
}

void cx_evidence_result_of(const cx_err *error, cx_evidence_result *out)
{
    memset(out, 0, sizeof *out);
    cx_finding_set(&out->finding, CX_INDETERMINATE, error->tag != NULL ? error->tag : "NotRead",
                   CX_FINDING_WHOLE, "%s", error->message);
    out->finding.offset = error->offset;
}
