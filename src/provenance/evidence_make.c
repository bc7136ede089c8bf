/*
 * evidence_make.c - collects evidence.
 *
 *   G1  All proofs of a journal are of one size: that of its checkpoint.
 *   G2  A file is verified as its recipient will verify it; a broken one is not written.
 */
#include "provenance/evidence_make.h"

#include "base/api.h"
#include "crypto/api.h"
#include "ledger/api.h"
#include "live/api.h"
#include "memory/api.h"
#include "provenance/object_parts.h"
#include "audit/api.h"

#define SESSION_ENTRY_BYTES 1024     /* of an entry and its proof, besides its content */
#define SNAPSHOTS_SEARCHED_MAX 50000 /* entries before a seal among which its events are searched */

typedef struct maker {
    const cx_sources *sources;
    const cx_evidence_options *options;
    cx_arena *arena;
    cx_evidence ev;
    cx_evidence_journal *journals;
    cx_evidence_entry *entries;
    uint64_t *seqs; /* of the entries */
    cx_evidence_file *files;
    cx_evidence_trace *traces;
    cx_evidence_memory *memories;
    cx_bytes *packs;
    cx_evidence_key *keys;
    cx_evidence_home *homes;
    size_t bundle_bytes;
} maker;

static cx_status copy_bytes(maker *m, cx_bytes bytes, cx_bytes *out, cx_err *err)
{
    cx_str copy = cx_arena_copy_str(m->arena, cx_bytes_str(bytes));
    *out = cx_str_bytes(copy);
    return copy.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status copy_buffer(maker *m, cx_buf *buf, cx_bytes *out, cx_err *err)
{
    cx_status status = cx_buf_check(buf, err);
    if (!cx_failed(status))
        status = copy_bytes(m, cx_buf_bytes(buf), out, err);
    cx_buf_done(buf);
    return status;
}

static cx_status too_many(const char *what, size_t most, cx_err *err)
{
    return cx_fail_at(err, CX_E_LIMIT, "EvidenceTooLarge", CX_NO_OFFSET,
                      "there are more than %zu %s", most, what);
}

/* --- journals and entries --------------------------------------------------------------------- */

/* G1 */
static cx_status journal_of(maker *m, cx_str actor, size_t *out, cx_err *err)
{
    cx_actor_info info;
    cx_roots roots;
    for (*out = 0; *out < m->ev.journal_count; ++*out)
        if (cx_str_eq(m->journals[*out].actor, actor))
            return CX_SUCCESS;
    if (m->ev.journal_count == CX_EVIDENCE_JOURNALS_MAX)
        return too_many("journals", CX_EVIDENCE_JOURNALS_MAX, err);
    CX_TRY(cx_home_actor(m->sources->home, actor, &info, err));
    CX_TRY(cx_home_roots(m->sources->home, actor, &roots, err));
    cx_evidence_journal *made = &m->journals[m->ev.journal_count++];
    *made = (cx_evidence_journal){.actor = cx_arena_copy_str(m->arena, actor),
                                  .scheme = info.scheme,
                                  .point = {roots.journal_size, roots.journal}};
    if (made->actor.data == NULL)
        return cx_fail_nomem(err);
    if (m->options->sign == NULL || info.scheme != CX_SCHEME_CORTEX_1)
        return CX_SUCCESS;
    return m->options->sign(m->options->sign_arg, made->actor, &made->point, m->arena,
                            &made->checkpoint, err);
}

static cx_status add_entry(maker *m, cx_str actor, uint64_t seq, size_t *out, cx_err *err)
{
    size_t journal;
    cx_inclusion proof;
    cx_digest root;
    cx_entry_view view;
    cx_buf bytes;
    CX_TRY(journal_of(m, actor, &journal, err));
    for (*out = 0; *out < m->ev.entry_count; ++*out)
        if (m->entries[*out].journal == journal && m->seqs[*out] == seq)
            return CX_SUCCESS;
    if (m->ev.entry_count == CX_EVIDENCE_ENTRIES_MAX)
        return too_many("entries", CX_EVIDENCE_ENTRIES_MAX, err);
    CX_TRY(cx_home_entry(m->sources->home, actor, seq, m->arena, &view, err));
    CX_TRY(cx_proof_journal(m->sources->home, actor, seq, m->journals[journal].point.size, true,
                            m->arena, &proof, &root, err));
    cx_evidence_entry *made = &m->entries[m->ev.entry_count];
    *made = (cx_evidence_entry){.journal = journal};
    cx_buf_init(&bytes, m->sources->alloc);
    cx_inclusion_encode(&proof, &bytes);
    CX_TRY(copy_buffer(m, &bytes, &made->inclusion, err));
    if (view.entry.committed && !view.payload_erased) {
        cx_bytes salt;
        CX_TRY(copy_bytes(m, view.payload, &made->payload, err));
        CX_TRY(copy_bytes(m, cx_bytes_from(view.salt, sizeof view.salt), &salt, err));
        made->salt = salt.data;
    }
    m->seqs[m->ev.entry_count++] = seq;
    return CX_SUCCESS;
}

static cx_status add_key_bytes(maker *m, cx_str id, const cx_pubkey *key, cx_str role, cx_err *err)
{
    for (size_t i = 0; i < m->ev.key_count; i++)
        if (cx_str_eq(m->keys[i].id, id) && cx_str_eq(m->keys[i].role, role))
            return CX_SUCCESS;
    if (m->ev.key_count == CX_EVIDENCE_PARTS_MAX)
        return CX_SUCCESS;
    cx_evidence_key *made = &m->keys[m->ev.key_count++];
    *made = (cx_evidence_key){.id = cx_arena_copy_str(m->arena, id), .key = *key, .role = role};
    return made->id.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- decisions -------------------------------------------------------------------------------- */

/* One of the ways in which a form can be spelled. */
static cx_trace_bytes canonical_variant(cx_trace_form form, unsigned number)
{
    static const cx_trace_level levels[] = {CX_LEVEL_ABSENT, CX_LEVEL_GENERIC, CX_LEVEL_DETAILED,
                                            CX_LEVEL_FULL};
    return (cx_trace_bytes){.form = form,
                            .python_numbers = number & 1,
                            .strip_data_only = (number & 2) != 0,
                            .batch_level = levels[number / 4]};
}
#define VARIANTS 16

/* The variant of the form whose hash is `wanted`; *out_found false when none is. */
static cx_status find_canonical(const cx_trace *trace, cx_trace_form form, const cx_digest *wanted,
                                cx_buf *out, bool *out_found, cx_err *err)
{
    *out_found = false;
    for (unsigned i = 0; i < VARIANTS && !*out_found; i++) {
        const cx_trace_bytes which = canonical_variant(form, i);
        cx_buf_clear(out);
        cx_status status = cx_trace_canonical(trace, &which, out, err);
        if (status.code == CX_E_FORMAT)
            continue; /* the trace has no such form */
        CX_TRY(status);
        CX_TRY(cx_buf_check(out, err));
        cx_digest digest = cx_digest_of(cx_buf_bytes(out));
        *out_found = cx_digest_eq(&digest, wanted);
    }
    return CX_SUCCESS;
}

/* The bytes that verified. */
static cx_status canonical_bytes(maker *m, const cx_trace *trace, const cx_trace_verdict *verdict,
                                 cx_bytes *out, bool *out_found, cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, m->sources->alloc);
    cx_status status =
        find_canonical(trace, verdict->form, &verdict->canonical, &bytes, out_found, err);
    if (!cx_failed(status) && *out_found)
        status = copy_bytes(m, cx_buf_bytes(&bytes), out, err);
    cx_buf_done(&bytes);
    return status;
}

/* The entry of the trust journal that registered the key, the newest one. */
static cx_status add_key_entry(maker *m, cx_str key_id, cx_err *err)
{
    cx_actor_info info;
    size_t ignored;
    if (cx_failed(cx_home_actor(m->sources->home, CX_ACTOR_TRUST, &info, NULL)))
        return CX_SUCCESS;
    for (uint64_t seq = info.entry_count; seq-- > 0;) {
        cx_entry_view view;
        cx_json value;
        cx_arena_mark mark = cx_arena_mark_now(m->arena);
        CX_TRY(cx_home_entry(m->sources->home, CX_ACTOR_TRUST, seq, m->arena, &view, err));
        bool fits =
            cx_str_eq(view.entry.kind, CX_KIND_KEY) && view.payload.size != 0 &&
            !cx_failed(cx_json_parse_text(cx_bytes_str(view.payload), m->arena, &value, NULL)) &&
            cx_str_eq(CX_JSON_GET_STR(&value, "key_id"), key_id);
        cx_arena_reset(m->arena, mark);
        if (fits)
            return add_entry(m, CX_ACTOR_TRUST, seq, &ignored, err);
    }
    return CX_SUCCESS;
}

static cx_status add_signed(maker *m, const cx_recorded *recorded, size_t entry, cx_err *err)
{
    const cx_trace *trace = &recorded->trace;
    const cx_trace_record *record = &recorded->record;
    cx_trust trust;
    cx_trace_verdict verdict;
    cx_buf scratch;
    cx_evidence_trace made = {.entry = entry, .key_id = trace->key_id};
    bool found = false;
    if (record->is_view || trace->signature.data == NULL ||
        m->ev.trace_count == CX_EVIDENCE_PARTS_MAX)
        return CX_SUCCESS;
    CX_TRY(cx_recorder_trust(m->sources->recorder, m->arena, &trust, err));
    const cx_trace_check check = {.trust = &trust,
                                  .received_ns = record->received_ns,
                                  .event_level = record->level,
                                  .batch_level = record->level,
                                  .forms = CX_FORMS_ALL,
                                  .any_level = true};
    cx_buf_init(&scratch, m->sources->alloc);
    cx_status status = cx_trace_verify(trace, &check, &scratch, m->arena, &verdict, err);
    cx_buf_clear(&scratch);
    bool decoded = !cx_failed(status) && cx_base64_decode_either(trace->signature, &scratch) &&
                   scratch.size == sizeof made.signature.bytes;
    if (decoded)
        memcpy(made.signature.bytes, scratch.data, sizeof made.signature.bytes);
    cx_buf_done(&scratch);
    CX_TRY(status);
    if (!decoded || verdict.form == CX_FORM_NONE || verdict.key == NULL)
        return CX_SUCCESS; /* not verified: its entry shows what was received */
    CX_TRY(canonical_bytes(m, trace, &verdict, &made.canonical, &found, err));
    if (!found)
        return CX_SUCCESS;
    m->traces[m->ev.trace_count++] = made;
    CX_TRY(add_key_bytes(m, trace->key_id, &verdict.key->key, CX_STR("trace"), err));
    return add_key_entry(m, trace->key_id, err);
}

static cx_status add_trace(maker *m, cx_prov_object object, bool *out_found, cx_err *err)
{
    cx_recorded *recorded = CX_ARENA_NEW(m->arena, cx_recorded);
    size_t entry;
    cx_status status = CX_SUCCESS;
    if (recorded == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_prov_locate(m->sources, &object, m->arena, out_found, err));
    if (!*out_found)
        return CX_SUCCESS;
    CX_TRY(add_entry(m, object.actor, object.seq, &entry, err));
    for (size_t i = 0; i < m->ev.trace_count; i++)
        if (m->traces[i].entry == entry)
            return CX_SUCCESS;
    for (int level = CX_LEVEL_FULL; level >= CX_LEVEL_GENERIC; level--) {
        status = cx_recorder_recorded(m->sources->home, object.actor, object.seq,
                                      (cx_trace_level)level, m->arena, recorded, err);
        if (status.code != CX_E_NOT_FOUND)
            break;
    }
    CX_TRY(status);
    return recorded->erased ? CX_SUCCESS : add_signed(m, recorded, entry, err);
}

/* --- memories --------------------------------------------------------------------------------- */

/* The entry that sealed a snapshot makes its state part of the journal. */
static cx_status add_seal(maker *m, cx_str actor, const cx_manifest *manifest, cx_err *err)
{
    cx_actor_info info;
    size_t ignored;
    CX_TRY(cx_home_actor(m->sources->home, actor, &info, err));
    for (uint64_t seq = manifest->journal_size;
         seq < info.entry_count && seq - manifest->journal_size < SNAPSHOTS_SEARCHED_MAX; seq++) {
        cx_entry_view view;
        cx_payload payload;
        cx_arena_mark mark = cx_arena_mark_now(m->arena);
        CX_TRY(cx_home_entry(m->sources->home, actor, seq, m->arena, &view, err));
        bool ours =
            cx_entry_kind_of(view.entry.kind) == CX_ENTRY_SEAL &&
            !cx_failed(cx_payload_decode(CX_ENTRY_SEAL, view.payload, m->arena, &payload, NULL)) &&
            payload.as.seal.snapshot_seq == manifest->snapshot_seq;
        cx_arena_reset(m->arena, mark);
        if (ours)
            return add_entry(m, actor, seq, &ignored, err);
    }
    return CX_SUCCESS;
}

/* Of sealed snapshots the newest, else the newest. */
static const cx_manifest *choose_snapshot(const cx_manifest *manifests, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (!manifests[i].signature.null)
            return &manifests[i];
    return &manifests[count - 1];
}

static cx_status add_state(maker *m, cx_str actor, const cx_uri *uri, cx_str text, cx_err *err)
{
    const cx_manifest *manifests;
    size_t count = 0;
    cx_state_proof proof;
    cx_buf bytes;
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_MEMORIES, .ids = &uri->id, .id_count = 1};
    CX_TRY(cx_snapshot_list(m->sources->home, actor, m->arena, &manifests, &count, err));
    if (count == 0 || m->ev.pack_count == CX_EVIDENCE_PARTS_MAX)
        return CX_SUCCESS;
    const cx_manifest *manifest = choose_snapshot(manifests, count);
    CX_TRY(cx_proof_at(m->sources->home, actor, &request, manifest->snapshot_seq, m->arena, &proof,
                       err));
    cx_membership kind = proof.proof.items[0].kind;
    if (kind == CX_ABSENT)
        return CX_SUCCESS; /* written after that snapshot */
    if (!manifest->signature.null)
        CX_TRY(add_seal(m, actor, manifest, err));
    const cx_pack_question question = {text, kind};
    const cx_pack pack = {.scheme = manifest->scheme,
                          .proof = proof.bytes,
                          .manifest = proof.manifest,
                          .questions = &question,
                          .question_count = 1,
                          .leaves = manifest->scheme == CX_SCHEME_MATRIX_1 ? proof.leaves : NULL};
    cx_buf_init(&bytes, m->sources->alloc);
    cx_status status = cx_pack_encode(&pack, &bytes, err);
    if (cx_failed(status)) {
        cx_buf_done(&bytes);
        return status;
    }
    return copy_buffer(m, &bytes, &m->packs[m->ev.pack_count++], err);
}

static cx_status add_version(maker *m, const cx_prov_object *object, const cx_memory_view *view,
                             cx_err *err)
{
    const uint64_t *seqs;
    size_t count, entry;
    cx_evidence_memory made = {.uri = object->id};
    bool found = false;
    CX_TRY(cx_home_entries_about(m->sources->home, object->actor, &view->uri.id, m->arena, &seqs,
                                 &count, err));
    for (size_t i = 0; i < count && i < 64; i++) {
        cx_entry_view written;
        cx_payload payload;
        CX_TRY(add_entry(m, object->actor, seqs[i], &entry, err));
        CX_TRY(cx_home_entry(m->sources->home, object->actor, seqs[i], m->arena, &written, err));
        cx_entry_kind kind = cx_entry_kind_of(written.entry.kind);
        if (kind != CX_ENTRY_WRITE && kind != CX_ENTRY_UPDATE)
            continue;
        CX_TRY(cx_payload_decode(kind, written.payload, m->arena, &payload, err));
        if (payload.as.write.version == view->uri.version) {
            made.entry = entry;
            found = true;
        }
    }
    if (!found)
        return CX_SUCCESS;
    if (!view->version.erased) {
        cx_buf bytes;
        cx_buf_init(&bytes, m->sources->alloc);
        cx_version_encode(&view->version, &bytes);
        CX_TRY(copy_buffer(m, &bytes, &made.version, err));
    }
    m->memories[m->ev.memory_count++] = made;
    return add_state(m, object->actor, &view->uri, object->id, err);
}

static cx_status add_memory(maker *m, cx_prov_object object, bool *out_found, cx_err *err)
{
    cx_memory *memory = NULL;
    cx_memory_view *view = CX_ARENA_NEW(m->arena, cx_memory_view);
    cx_uri uri;
    if (view == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_prov_locate(m->sources, &object, m->arena, out_found, err));
    *out_found = *out_found && !cx_failed(cx_uri_parse(object.id, &uri, NULL));
    if (!*out_found || m->ev.memory_count == CX_EVIDENCE_PARTS_MAX)
        return CX_SUCCESS;
    for (size_t i = 0; i < m->ev.memory_count; i++)
        if (cx_str_eq(m->memories[i].uri, object.id))
            return CX_SUCCESS;
    CX_TRY(cx_memory_open(m->sources->home, object.actor, NULL, &memory, err));
    cx_status status = cx_memory_resolve(memory, &uri, m->arena, view, err);
    cx_memory_close(memory);
    if (status.code == CX_E_NOT_FOUND || status.code == CX_E_CONFLICT) {
        *out_found = false;
        return CX_SUCCESS;
    }
    CX_TRY(status);
    object.id = cx_arena_copy_str(m->arena, object.id);
    return object.id.data == NULL ? cx_fail_nomem(err) : add_version(m, &object, view, err);
}

/* --- runs ------------------------------------------------------------------------------------- */

static cx_status add_files(maker *m, cx_run_bundle *bundle, cx_err *err)
{
    size_t count;
    const cx_run_entry *list = cx_run_bundle_entries(bundle, &count);
    for (size_t i = 0; i < count && m->ev.file_count < CX_EVIDENCE_FILES_MAX; i++) {
        cx_bytes bytes;
        bool fits = list[i].regular && list[i].size_bytes <= CX_EVIDENCE_BUNDLE_FILE_MAX &&
                    m->bundle_bytes + list[i].size_bytes <= CX_EVIDENCE_BUNDLE_MAX &&
                    cx_utf8_valid(list[i].path) && list[i].path.size <= CX_EVIDENCE_NAME_MAX;
        if (!fits)
            continue;
        CX_TRY(cx_run_bundle_read(bundle, list[i].path, CX_EVIDENCE_BUNDLE_FILE_MAX, &bytes, err));
        cx_evidence_file *made = &m->files[m->ev.file_count++];
        made->path = cx_arena_copy_str(m->arena, list[i].path);
        CX_TRY(copy_bytes(m, bytes, &made->bytes, err));
        m->bundle_bytes += bytes.size;
        if (made->path.data == NULL)
            return cx_fail_nomem(err);
    }
    return CX_SUCCESS;
}

/* Entries of single events come before the seal, interleaved with those of other runs. */
static cx_status add_event_entries(maker *m, const cx_run_known *known, cx_str run_id, cx_err *err)
{
    size_t left = known->witness.event_count, ignored;
    if (left > CX_EVIDENCE_EVENTS_MAX)
        return CX_SUCCESS;
    for (uint64_t seq = known->seal_index;
         left != 0 && seq-- > 0 && known->seal_index - seq < SNAPSHOTS_SEARCHED_MAX;) {
        cx_entry_view view;
        cx_arena_mark mark = cx_arena_mark_now(m->arena);
        CX_TRY(cx_home_entry(m->sources->home, known->actor, seq, m->arena, &view, err));
        bool ours = cx_str_is(view.entry.kind, "run.event") &&
                    memmem(view.payload.data, view.payload.size, run_id.data, run_id.size) != NULL;
        cx_arena_reset(m->arena, mark);
        if (!ours)
            continue;
        left--;
        CX_TRY(add_entry(m, known->actor, seq, &ignored, err));
    }
    return CX_SUCCESS;
}

static cx_status add_run(maker *m, cx_str run_id, bool *out_found, cx_err *err)
{
    cx_run_inspection seen;
    size_t ignored;
    CX_TRY(cx_run_inspect(m->sources, run_id, m->arena, &seen, err));
    cx_status status = CX_SUCCESS;
    *out_found = seen.bundle != NULL && seen.known.sealed;
    if (*out_found && seen.verdict.verdict == CX_BROKEN)
        CX_TRY_GOTO(
            status,
            cx_fail_at(err, CX_E_CONFLICT, "RunBroken", CX_NO_OFFSET,
                       "the bundle of %.*s does not match its seal: see 'cortex run verify'",
                       CX_S(run_id)));
    if (*out_found) {
        CX_TRY_GOTO(status, add_entry(m, seen.known.actor, seen.known.seal_index, &ignored, err));
        CX_TRY_GOTO(status, add_event_entries(m, &seen.known, run_id, err));
        CX_TRY_GOTO(status, add_files(m, seen.bundle, err));
    }
done:
    cx_run_inspect_done(&seen);
    return status;
}

/* --- sessions of coding agents ---------------------------------------------------------------- */

/* How many of the newest entries fit; with the first one, which says what policy held. */
static cx_status count_entries(maker *m, cx_str actor, uint64_t size, uint64_t *out, cx_err *err)
{
    size_t bytes = 0;
    for (*out = 0; *out < size && *out + 1 < CX_EVIDENCE_ENTRIES_MAX; ++*out) {
        cx_entry_view view;
        cx_arena_mark mark = cx_arena_mark_now(m->arena);
        CX_TRY(cx_home_entry(m->sources->home, actor, size - 1 - *out, m->arena, &view, err));
        bytes += view.payload.size + SESSION_ENTRY_BYTES;
        cx_arena_reset(m->arena, mark);
        if (bytes > CX_EVIDENCE_BUNDLE_MAX)
            break;
    }
    return CX_SUCCESS;
}

static cx_status add_session(maker *m, cx_str actor, bool *out_found, cx_err *err)
{
    cx_actor_info info;
    uint64_t count;
    size_t ignored;
    CX_TRY(cx_home_actor(m->sources->home, actor, &info, err));
    CX_TRY(count_entries(m, actor, info.entry_count, &count, err));
    *out_found = info.entry_count != 0;
    if (count < info.entry_count)
        CX_TRY(add_entry(m, actor, 0, &ignored, err));
    for (uint64_t seq = info.entry_count - count; seq < info.entry_count; seq++)
        CX_TRY(add_entry(m, actor, seq, &ignored, err));
    return CX_SUCCESS;
}

static bool is_session(const cx_prov_object *object)
{
    return object->kind == CX_PROV_ACTOR && cx_live_actor_is_session(object->id);
}

/* --- what belongs to it ----------------------------------------------------------------------- */

/* Adds the decisions and memories that an object refers to, up to `depth` steps away. */
static cx_status add_referenced(maker *m, const cx_prov_object *object, unsigned depth, cx_err *err)
{
    cx_described described;
    const cx_ref *refs;
    size_t count;
    bool cut, found;
    CX_TRY(cx_prov_describe(m->sources, object, m->arena, &described, err));
    CX_TRY(cx_prov_refs(m->sources, object, &described, m->arena, &refs, &count, &cut, err));
    for (size_t i = 0; i < count && i < 64; i++) {
        if (refs[i].role == CX_REF_OTHER)
            continue;
        if (refs[i].other.kind == CX_PROV_TRACE)
            CX_TRY(add_trace(m, refs[i].other, &found, err));
        else if (refs[i].other.kind == CX_PROV_MEMORY)
            CX_TRY(add_memory(m, refs[i].other, &found, err));
        else
            continue;
        if (depth > 1 && found)
            CX_TRY(add_referenced(m, &refs[i].other, depth - 1, err));
    }
    return CX_SUCCESS;
}

static cx_status add_commit(maker *m, const cx_prov_object *object, bool *out_found,
                            cx_prov_object *out_run, cx_err *err)
{
    cx_described described;
    cx_recorded_commit commit;
    const cx_ref *refs;
    size_t count;
    bool cut;
    CX_TRY(cx_prov_describe(m->sources, object, m->arena, &described, err));
    CX_TRY(cx_prov_refs(m->sources, object, &described, m->arena, &refs, &count, &cut, err));
    *out_found = count != 0 && refs[0].other.kind == CX_PROV_RUN && refs[0].verdict == CX_HOLDS;
    if (!*out_found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoEvidence", CX_NO_OFFSET,
                          count == 0 ? "no governed run is recorded for this commit%.*s" : "%.*s",
                          count == 0 ? 0 : (int)refs[0].by.size, count == 0 ? "" : refs[0].by.data);
    CX_TRY(cx_commit_read(m->sources, object->id, m->arena, &commit, err));
    m->ev.commit = cx_str_bytes(commit.raw);
    *out_run = refs[0].other;
    return add_run(m, refs[0].other.id, out_found, err);
}

static cx_status gather_evidence(maker *m, const cx_prov_object *object, bool *out_found,
                                 cx_err *err)
{
    cx_prov_object run = *object;
    if (is_session(object)) {
        CX_TRY(add_session(m, object->id, out_found, err));
        return *out_found ? CX_SUCCESS
                          : cx_fail_at(err, CX_E_NOT_FOUND, "NoEvidence", CX_NO_OFFSET,
                                       "nothing is recorded of this session");
    }
    switch (object->kind) {
    case CX_PROV_COMMIT: CX_TRY(add_commit(m, object, out_found, &run, err)); break;
    case CX_PROV_RUN: CX_TRY(add_run(m, object->id, out_found, err)); break;
    case CX_PROV_TRACE: CX_TRY(add_trace(m, *object, out_found, err)); break;
    case CX_PROV_MEMORY: CX_TRY(add_memory(m, *object, out_found, err)); break;
    default:
        return cx_fail(
            err, CX_E_USAGE,
            "evidence is about a run, a trace, a commit, a memory or a session, not about "
            "a%s %s",
            object->kind == CX_PROV_EDGE || object->kind == CX_PROV_ENTRY ||
                    object->kind == CX_PROV_EVENT || object->kind == CX_PROV_ACTOR
                ? "n"
                : "",
            cx_prov_kind_name(object->kind));
    }
    if (!*out_found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoEvidence", CX_NO_OFFSET,
                          object->kind == CX_PROV_RUN ? "the run's bundle is missing, or not sealed"
                                                      : "it is not in this data directory");
    return add_referenced(
        m, &run, object->kind == CX_PROV_RUN || object->kind == CX_PROV_COMMIT ? 3 : 1, err);
}

/* --- home roots ------------------------------------------------------------------------------- */

static cx_status encode_home(maker *m, const cx_home_proof *proof, const cx_consistency *growth,
                             cx_evidence_home *out, cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, m->sources->alloc);
    cx_home_proof_encode(proof, &bytes);
    CX_TRY(copy_buffer(m, &bytes, &out->proof, err));
    if (growth == NULL)
        return CX_SUCCESS;
    cx_buf_init(&bytes, m->sources->alloc);
    cx_consistency_encode(growth, &bytes);
    return copy_buffer(m, &bytes, &out->consistency, err);
}

/*
 * The journal in the home root of the note, when that shows it: the actor must be in it, and its
 * memories must not have changed since, as their roots of then are not stored.
 */
static cx_status add_home(maker *m, size_t number, const cx_checkpoint *note, cx_bytes bytes,
                          cx_err *err)
{
    const cx_evidence_journal *journal = &m->journals[number];
    cx_home *home = m->sources->home;
    cx_home_proof proof;
    cx_home_leaf leaf;
    cx_roots roots;
    cx_digest root, newer;
    cx_consistency growth;
    cx_err unused = {0};
    cx_evidence_home made = {.journal = number};
    cx_status status =
        cx_home_root_prove(home, journal->actor, note->size, m->arena, &proof, &root, &unused);
    if (status.code == CX_E_NOT_FOUND || status.code == CX_E_CONFLICT ||
        (!cx_failed(status) && !cx_digest_eq(&root, &note->root)))
        return CX_SUCCESS;
    if (cx_failed(status)) {
        *err = unused;
        return status;
    }
    CX_TRY(cx_home_leaf_decode(proof.leaf, &leaf, err));
    CX_TRY(cx_home_roots(home, journal->actor, &roots, err));
    if (leaf.size > journal->point.size)
        return CX_SUCCESS;
    CX_TRY(cx_proof_consistency(home, journal->actor, leaf.size, journal->point.size, m->arena,
                                &growth, &made.journal_root, &newer, err));
    made.memories_root = roots.memories;
    made.edges_root = roots.edges;
    cx_digest overall = cx_scheme_overall(journal->scheme, &made.journal_root, &made.edges_root,
                                          &made.memories_root);
    if (!cx_digest_eq(&overall, &leaf.overall))
        return CX_SUCCESS;
    proof.checkpoint = bytes;
    CX_TRY(encode_home(m, &proof, leaf.size == journal->point.size ? NULL : &growth, &made, err));
    m->homes[m->ev.home_count++] = made;
    return CX_SUCCESS;
}

/* Of the checkpoints signed last, the one of the journal of home roots that covers its newest
 * entry. */
typedef struct note_search {
    maker *m;
    cx_home_root_entry last;
    cx_bytes note;
    cx_status status;
    cx_err *err;
} note_search;

/* Files that are no signed checkpoint, or one of another journal, are passed over. */
static cx_status try_note(note_search *search, const char *name, bool *out_fits, cx_err *err)
{
    maker *m = search->m;
    cx_home *home = m->sources->home;
    cx_checkpoint checkpoint;
    cx_inclusion inclusion;
    cx_digest root;
    cx_buf bytes;
    cx_err unused = {0};
    cx_str path = cx_arena_printf(m->arena, "%s/keys/%s", cx_home_path(home), name);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&bytes, m->sources->alloc);
    cx_status status =
        cx_io_read_file(cx_home_io(home), path.data, CX_NOTE_SIZE_MAX, &bytes, &unused);
    if (!cx_failed(status))
        status = cx_checkpoint_parse(cx_buf_bytes(&bytes), &checkpoint, NULL, &unused);
    if (!cx_failed(status) && checkpoint.size > search->last.seq)
        status = cx_proof_journal(home, CX_STR(CX_HOME_ROOT_ACTOR), search->last.seq,
                                  checkpoint.size, false, m->arena, &inclusion, &root, &unused);
    *out_fits = !cx_failed(status) && checkpoint.size > search->last.seq &&
                cx_digest_eq(&root, &checkpoint.root);
    if (*out_fits)
        return copy_buffer(m, &bytes, &search->note, err);
    cx_buf_done(&bytes);
    return status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
}

static bool on_key_file(void *arg, const char *name)
{
    note_search *search = arg;
    bool fits = false;
    if (strncmp(name, "checkpoint-", 11) == 0)
        search->status = try_note(search, name, &fits, search->err);
    return !fits && !cx_failed(search->status);
}

static cx_status add_homes(maker *m, cx_err *err)
{
    note_search search = {.m = m, .status = CX_SUCCESS, .err = err};
    const cx_io *io = cx_home_io(m->sources->home);
    cx_checkpoint note;
    bool found = false;
    CX_TRY(cx_home_root_last(m->sources->home, &search.last, &found, err));
    cx_str folder = cx_arena_printf(m->arena, "%s/keys", cx_home_path(m->sources->home));
    if (folder.data == NULL)
        return cx_fail_nomem(err);
    if (!found || io->list(io, folder.data, on_key_file, &search) != 0)
        return CX_SUCCESS;
    CX_TRY(search.status);
    if (search.note.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_checkpoint_parse(search.note, &note, NULL, err));
    for (size_t i = 0; i < m->ev.journal_count; i++)
        CX_TRY(add_home(m, i, &note, search.note, err));
    return CX_SUCCESS;
}

/* --- the file --------------------------------------------------------------------------------- */

static cx_status begin_pack(maker *m, cx_err *err)
{
    m->journals = CX_ARENA_ARRAY(m->arena, cx_evidence_journal, CX_EVIDENCE_JOURNALS_MAX);
    m->entries = CX_ARENA_ARRAY(m->arena, cx_evidence_entry, CX_EVIDENCE_ENTRIES_MAX);
    m->seqs = CX_ARENA_ARRAY(m->arena, uint64_t, CX_EVIDENCE_ENTRIES_MAX);
    m->files = CX_ARENA_ARRAY(m->arena, cx_evidence_file, CX_EVIDENCE_FILES_MAX);
    m->traces = CX_ARENA_ARRAY(m->arena, cx_evidence_trace, CX_EVIDENCE_PARTS_MAX);
    m->memories = CX_ARENA_ARRAY(m->arena, cx_evidence_memory, CX_EVIDENCE_PARTS_MAX);
    m->packs = CX_ARENA_ARRAY(m->arena, cx_bytes, CX_EVIDENCE_PARTS_MAX);
    m->keys = CX_ARENA_ARRAY(m->arena, cx_evidence_key, CX_EVIDENCE_PARTS_MAX);
    m->homes = CX_ARENA_ARRAY(m->arena, cx_evidence_home, CX_EVIDENCE_JOURNALS_MAX);
    if (m->homes == NULL)
        return cx_fail_nomem(err);
    m->ev.homes = m->homes;
    if (m->journals == NULL || m->entries == NULL || m->seqs == NULL || m->files == NULL ||
        m->traces == NULL || m->memories == NULL || m->packs == NULL || m->keys == NULL)
        return cx_fail_nomem(err);
    m->ev.journals = m->journals;
    m->ev.entries = m->entries;
    m->ev.files = m->files;
    m->ev.traces = m->traces;
    m->ev.memories = m->memories;
    m->ev.packs = m->packs;
    m->ev.keys = m->keys;
    return CX_SUCCESS;
}

/* G2 */
static cx_status check_made(maker *m, cx_bytes file, cx_evidence_result *out, cx_err *err)
{
    static const cx_check_options nothing = {.require = CX_REQUIRE_SELF_CONSISTENT};
    CX_TRY(cx_evidence_check(file, &nothing, m->arena, out, err));
    if (out->finding.verdict != CX_BROKEN)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_CONFLICT, out->finding.reason, CX_NO_OFFSET,
                      "cannot make evidence: %s", out->finding.message);
}

cx_status cx_evidence_make(const cx_sources *sources, const cx_prov_object *object,
                           const cx_evidence_options *options, cx_arena *arena, cx_buf *out,
                           cx_evidence_result *out_result, cx_err *err)
{
    maker m = {.sources = sources, .options = options, .arena = arena};
    cx_prov_object located = *object;
    size_t start = out->size;
    bool found = false;
    if (sources->home == NULL)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoHome", CX_NO_OFFSET,
                          "evidence needs a data directory: give --home");
    CX_TRY(begin_pack(&m, err));
    if (object->kind == CX_PROV_MEMORY || object->kind == CX_PROV_TRACE)
        CX_TRY(cx_prov_locate(sources, &located, arena, &found, err));
    m.ev.kind = is_session(object) ? CX_STR("session") : cx_str_z(cx_prov_kind_name(object->kind));
    m.ev.id = located.id;
    m.ev.made_at_ns = options->now_ns;
    CX_TRY(gather_evidence(&m, &located, &found, err));
    CX_TRY(add_homes(&m, err));
    if (options->signer != NULL)
        CX_TRY(add_key_bytes(&m, options->signer_name, options->signer, CX_STR("checkpoint"), err));
    CX_TRY(cx_evidence_write(&m.ev, out, err));
    const cx_bytes file = cx_bytes_from(out->data + start, out->size - start);
    cx_status status = check_made(&m, file, out_result, err);
    if (cx_failed(status))
        out->size = start;
    return status;
}

/* --- checking more of it ---------------------------------------------------------------------- */

static cx_status check_canonical(const cx_evidence *e, size_t number, cx_arena *arena,
                                 bool *out_same, cx_err *err)
{
    const cx_evidence_trace *shown = &e->traces[number];
    cx_digest wanted = cx_digest_of(shown->canonical);
    cx_trace trace;
    cx_trace_problem problem;
    cx_buf bytes;
    *out_same = false;
    CX_TRY(cx_trace_read_stored(e->entries[shown->entry].payload, arena, &trace, &problem, err));
    if (problem.reason != CX_REASON_NONE)
        return CX_SUCCESS;
    cx_buf_init(&bytes, arena->alloc);
    cx_status status = CX_SUCCESS;
    for (int form = CX_FORM_A; form < CX_FORM_NONE && !*out_same && !cx_failed(status); form++)
        status = find_canonical(&trace, (cx_trace_form)form, &wanted, &bytes, out_same, err);
    cx_buf_done(&bytes);
    return status;
}

cx_status cx_evidence_check_traces(cx_evidence_result *result, cx_arena *arena, cx_err *err)
{
    static const cx_finding mismatch = {
        .verdict = CX_BROKEN,
        .reason = "CanonicalMismatch",
        .key_index = SIZE_MAX,
        .offset = CX_NO_OFFSET,
        .message = "the bytes shown are not a canonical form of the trace in its entry"};
    size_t stored = 0;
    bool same = true;
    for (size_t i = 0; i < result->evidence.trace_count; i++) {
        CX_TRY(check_canonical(&result->evidence, i, arena, &same, err));
        if (!same)
            cx_evidence_add(result, "trace", i, &mismatch);
    }
    for (size_t i = 0; i < result->limit_count; i++)
        if (result->limits[i] != cx_evidence_limit_canonical)
            result->limits[stored++] = result->limits[i];
    result->limit_count = stored;
    return CX_SUCCESS;
}
