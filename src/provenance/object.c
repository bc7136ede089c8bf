/*
 * object.c - describes an object and verifies it.
 */
#include "provenance/object.h"

#include "crypto/api.h"
#include "proof/api.h"
#include "ledger/api.h"
#include "memory/api.h"
#include "provenance/object_parts.h"

cx_status cx_sources_open(cx_home *home, const cx_io *io, const cx_alloc *alloc, cx_sources *out,
                          cx_err *err)
{
    cx_status status = CX_SUCCESS;
    *out = (cx_sources){.home = home,
                        .io = io == NULL ? cx_io_system() : io,
                        .alloc = alloc == NULL ? cx_alloc_default() : alloc};
    if (home == NULL)
        return CX_SUCCESS;
    CX_TRY_GOTO(status, cx_recorder_open(home, NULL, &out->recorder, err));
    out->links = cx_alloc_zeroed(out->alloc, 1, sizeof *out->links);
    if (out->links == NULL)
        CX_TRY_GOTO(status, cx_fail_nomem(err));
    CX_TRY_GOTO(status, cx_run_index_open(home, out->alloc, &out->index, err));
done:
    if (cx_failed(status))
        cx_sources_done(out);
    return status;
}

void cx_sources_done(cx_sources *sources)
{
    cx_run_index_close(sources->index);
    if (sources->links != NULL)
        cx_links_close(*sources->links);
    cx_alloc_free(sources->alloc, sources->links, sizeof *sources->links);
    cx_recorder_close(sources->recorder);
    memset(sources, 0, sizeof *sources);
}

cx_status cx_sources_links(const cx_sources *sources, cx_links **out, cx_err *err)
{
    *out = NULL;
    if (sources->links == NULL)
        return CX_SUCCESS;
    if (*sources->links == NULL)
        CX_TRY(cx_links_open(sources->home, sources->alloc, sources->links, err));
    *out = *sources->links;
    return CX_SUCCESS;
}

/* --- locating objects ------------------------------------------------------------------------- */

typedef struct journal_list {
    const cx_sources *sources;
    cx_arena *arena;
    CX_VEC(cx_str) names;
} journal_list;

static cx_status list_journal(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    journal_list *list = arg;
    const size_t prefix = sizeof CX_TRACE_JOURNAL_PREFIX - 1;
    (void)value;
    (void)stop;
    const cx_str name = cx_str_from((const char *)key.data + prefix, key.size - prefix);
    cx_str *slot = cx_vec_push(&list->names, list->sources->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = cx_arena_copy_str(list->arena, name);
    return slot->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_prov_trace_journals(const cx_sources *sources, cx_arena *arena, const cx_str **out,
                                 size_t *out_count, cx_err *err)
{
    journal_list list = {.sources = sources, .arena = arena};
    const cx_scan scan = {.common = true,
                          .prefix = cx_str_bytes(CX_STR(CX_TRACE_JOURNAL_PREFIX)),
                          .row = list_journal,
                          .arg = &list};
    cx_status status = cx_home_scan(sources->home, &scan, err);
    cx_str *names = CX_ARENA_ARRAY(arena, cx_str, list.names.count + 1);
    if (!cx_failed(status) && names == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status) && list.names.count != 0)
        memcpy(names, list.names.items, list.names.count * sizeof *names);
    *out = names;
    *out_count = list.names.count;
    cx_vec_done(&list.names, sources->alloc);
    return status;
}

static cx_status locate_trace_in(const cx_sources *sources, cx_str actor, cx_prov_object *object,
                                 cx_arena *arena, bool *out_found, cx_err *err)
{
    for (int level = CX_LEVEL_FULL; level >= CX_LEVEL_GENERIC && !*out_found; level--) {
        cx_trace_record_key key;
        cx_trace_record record;
        cx_bytes value;
        CX_TRY(cx_home_get(sources->home, actor,
                           cx_trace_record_name(&key, (cx_trace_level)level, object->id), arena,
                           &value, out_found, err));
        if (!*out_found)
            continue;
        CX_TRY(cx_trace_record_decode(value, &record, err));
        object->seq = record.seq;
    }
    return CX_SUCCESS;
}

/* Only journals with traces are looked at. */
static cx_status locate_trace(const cx_sources *sources, cx_prov_object *object, cx_arena *arena,
                              bool *out_found, cx_err *err)
{
    const cx_str *names;
    size_t count = 0;
    CX_TRY(cx_prov_trace_journals(sources, arena, &names, &count, err));
    for (size_t i = 0; i < count && !*out_found; i++) {
        CX_TRY(locate_trace_in(sources, names[i], object, arena, out_found, err));
        if (*out_found)
            object->actor = names[i];
    }
    return CX_SUCCESS;
}

static cx_status locate_memory(const cx_sources *sources, cx_str actor, cx_prov_object *object,
                               cx_arena *arena, bool *out_found, cx_err *err)
{
    uint8_t key[18] = {'m', '/'};
    cx_bytes value;
    cx_head head;
    cx_uri uri;
    cx_buf text;
    bool named = !cx_failed(cx_uri_parse(object->id, &uri, NULL));
    if (!named && !cx_ulid_parse(object->id, &uri.id))
        return CX_SUCCESS;
    memcpy(key + 2, uri.id.bytes, sizeof uri.id.bytes);
    CX_TRY(cx_home_get(sources->home, actor, cx_bytes_from(key, sizeof key), arena, &value,
                       out_found, err));
    if (!*out_found || named)
        return CX_SUCCESS;
    CX_TRY(cx_head_decode(value, arena, &head, err));
    const cx_uri newest = {.type = head.type, .id = head.id, .version = head.current_version};
    cx_buf_init(&text, sources->alloc);
    cx_uri_add(&newest, &text);
    object->id = cx_arena_copy_str(arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return object->id.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_prov_locate(const cx_sources *sources, cx_prov_object *object, cx_arena *arena,
                         bool *out_found, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    *out_found = false;
    if (sources->home == NULL)
        return CX_SUCCESS;
    if (object->actor.size != 0) {
        *out_found = true;
        return CX_SUCCESS;
    }
    if (object->kind == CX_PROV_TRACE)
        return locate_trace(sources, object, arena, out_found, err);
    cx_actor_walk_begin(&walk, sources->home);
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL && !*out_found) {
        status = locate_memory(sources, actor->name, object, arena, out_found, err);
        if (!cx_failed(status) && *out_found) {
            object->actor = cx_arena_copy_str(arena, actor->name);
            status = object->actor.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
        }
        if (!cx_failed(status) && !*out_found)
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    return status;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* Whether the entry is in the tree that its journal's root is of. */
static cx_status prove_in_journal(const cx_sources *sources, cx_str actor, uint64_t seq,
                                  cx_arena *arena, bool *out_in, cx_inclusion *out_proof,
                                  cx_digest *out_root, cx_err *err)
{
    cx_buf bytes;
    cx_finding finding;
    cx_journal_point point;
    CX_TRY(cx_proof_journal(sources->home, actor, seq, 0, true, arena, out_proof, out_root, err));
    cx_buf_init(&bytes, sources->alloc);
    cx_inclusion_encode(out_proof, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        status =
            cx_inclusion_leads_to(cx_buf_bytes(&bytes), NULL, arena, NULL, &point, &finding, err);
    cx_buf_done(&bytes);
    *out_in =
        !cx_failed(status) && finding.verdict == CX_HOLDS && cx_digest_eq(&point.root, out_root);
    return status;
}

static bool payload_matches(const cx_entry_view *entry)
{
    cx_digest found;
    if (!entry->entry.committed || entry->payload_erased)
        return true;
    found = cx_scheme_payload_commitment(entry->salt, entry->payload);
    return cx_digest_eq(&found, &entry->entry.commitment);
}

static void set_entry_verdict(const cx_entry_view *entry, bool in, const cx_inclusion *proof,
                              cx_arena *arena, cx_described *out)
{
    out->verdict = !in || !payload_matches(entry) ? CX_BROKEN
                   : entry->payload_erased        ? CX_INDETERMINATE
                                                  : CX_HOLDS;
    if (!in)
        out->by = CX_STR("it is not in the journal's tree");
    else if (!payload_matches(entry))
        out->by = CX_STR("its content does not match its commitment");
    else
        out->by = CX_TEXTF(arena, "it is in the journal of %llu entries%s",
                           (unsigned long long)proof->tree_size,
                           entry->payload_erased ? "; its content was erased" : "");
}

static cx_status add_entry_facts(cx_json_list *facts, cx_str actor, const cx_entry_view *entry)
{
    cx_reply_text(facts, "actor", actor);
    cx_reply_uint(facts, "seq", entry->entry.seq);
    cx_reply_text(facts, "entry_kind", entry->entry.kind);
    cx_reply_time(facts, "created_at", entry->entry.created_at_ns);
    cx_reply_hex(facts, "leaf_hash", entry->leaf_hash.bytes, 32);
    cx_reply_uint(facts, "payload_bytes", entry->payload.size);
    cx_reply_add(facts, "erased", cx_json_make_bool(entry->payload_erased));
    return CX_SUCCESS;
}

static cx_status describe_entry(const cx_sources *sources, const cx_prov_object *object,
                                cx_arena *arena, cx_described *out, cx_err *err)
{
    cx_entry_view entry;
    cx_inclusion proof;
    cx_digest root;
    cx_json payload;
    bool in = false;
    cx_status status = cx_home_entry(sources->home, object->actor, object->seq, arena, &entry, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    CX_TRY(prove_in_journal(sources, object->actor, object->seq, arena, &in, &proof, &root, err));
    cx_json_list facts = cx_json_list_begin(arena);
    CX_TRY(add_entry_facts(&facts, object->actor, &entry));
    cx_reply_uint(&facts, "journal_size", proof.tree_size);
    cx_reply_hex(&facts, "journal_root", root.bytes, 32);
    if (entry.payload.size != 0 && entry.payload.data[0] == '{' &&
        !cx_failed(cx_json_parse_text(cx_bytes_str(entry.payload), arena, &payload, NULL)))
        cx_reply_add(&facts, "payload", payload);
    CX_TRY(cx_json_list_end_object(&facts, &out->facts, err));
    out->here = true;
    out->title = CX_TEXTF(arena, "entry %llu of %.*s: %.*s", (unsigned long long)object->seq,
                          CX_S(object->actor), CX_S(entry.entry.kind));
    set_entry_verdict(&entry, in, &proof, arena, out);
    return CX_SUCCESS;
}

/* --- memories --------------------------------------------------------------------------------- */

/* The entry that wrote this version, and whether it names the hash that the version has now. */
static cx_status find_write(const cx_sources *sources, const cx_prov_object *object,
                            const cx_version_record *version, cx_arena *arena, uint64_t *out_seq,
                            bool *out_found, bool *out_same, cx_err *err)
{
    const uint64_t *seqs;
    size_t count;
    CX_TRY(cx_home_entries_about(sources->home, object->actor, &version->id, arena, &seqs, &count,
                                 err));
    *out_found = *out_same = false;
    for (size_t i = 0; i < count && !*out_found; i++) {
        cx_entry_view entry;
        cx_payload payload;
        CX_TRY(cx_home_entry(sources->home, object->actor, seqs[i], arena, &entry, err));
        cx_entry_kind kind = cx_entry_kind_of(entry.entry.kind);
        if (kind != CX_ENTRY_WRITE && kind != CX_ENTRY_UPDATE)
            continue;
        CX_TRY(cx_payload_decode(kind, entry.payload, arena, &payload, err));
        *out_found = payload.as.write.version == version->version;
        *out_same = cx_digest_eq(&payload.as.write.version_hash, &version->hash);
        *out_seq = seqs[i];
    }
    return CX_SUCCESS;
}

static cx_status verify_memory(const cx_sources *sources, const cx_prov_object *object,
                               const cx_memory_view *view, cx_arena *arena, cx_json_list *facts,
                               cx_described *out, cx_err *err)
{
    const cx_version_record *version = &view->version;
    cx_digest hash = version->hash;
    uint64_t seq = 0;
    bool found, same;
    CX_TRY(find_write(sources, object, version, arena, &seq, &found, &same, err));
    if (!version->erased)
        CX_TRY(cx_version_hash(version, sources->alloc, &hash, err));
    if (found)
        cx_reply_uint(facts, "entry", seq);
    out->verdict = !found || !same || !cx_digest_eq(&hash, &version->hash) ? CX_BROKEN
                   : version->erased                                       ? CX_INDETERMINATE
                                                                           : CX_HOLDS;
    if (out->verdict == CX_BROKEN)
        out->by = CX_STR("its bytes do not match the hash in the journal");
    else
        out->by = CX_TEXTF(arena, "%s entry %llu of %.*s",
                           version->erased ? "its content was erased; its hash is in"
                                           : "its bytes have the hash in",
                           (unsigned long long)seq, CX_S(object->actor));
    return CX_SUCCESS;
}

static cx_status describe_memory(const cx_sources *sources, const cx_prov_object *given,
                                 cx_arena *arena, cx_described *out, cx_err *err)
{
    cx_prov_object object = *given;
    cx_memory *memory = NULL;
    cx_memory_view view;
    cx_uri uri;
    cx_json value;
    bool found;
    CX_TRY(cx_prov_locate(sources, &object, arena, &found, err));
    if (!found || cx_failed(cx_uri_parse(object.id, &uri, NULL)))
        return CX_SUCCESS;
    CX_TRY(cx_memory_open(sources->home, object.actor, NULL, &memory, err));
    cx_status status = cx_memory_resolve(memory, &uri, arena, &view, err);
    cx_memory_close(memory);
    if (status.code == CX_E_NOT_FOUND || status.code == CX_E_CONFLICT)
        return CX_SUCCESS;
    CX_TRY(status);
    cx_json_list facts = cx_json_list_begin(arena);
    CX_TRY(cx_view_memory(&view, &facts, err));
    CX_TRY(verify_memory(sources, &object, &view, arena, &facts, out, err));
    cx_json_list_put(&facts, CX_STR("actor"), cx_json_make_str(object.actor));
    CX_TRY(cx_json_list_end_object(&facts, &value, err));
    out->here = true;
    out->facts = value;
    out->title = view.version.erased ? CX_STR("a memory whose content was erased")
                                     : view.version.forms.brief;
    return CX_SUCCESS;
}

/* --- traces ----------------------------------------------------------------------------------- */

/* [{index, component, event_type, timestamp, data}] */
static cx_status add_components(cx_json_list *facts, const cx_trace *trace, cx_arena *arena,
                                cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json all;
    for (uint32_t i = 0; i < trace->component_count; i++) {
        const cx_trace_component *component = &trace->components[i];
        cx_json_list one = cx_json_list_begin(arena);
        cx_json value;
        cx_reply_uint(&one, "index", i);
        cx_reply_text(&one, "component", component->component_type);
        cx_reply_text(&one, "event_type", component->event_type);
        cx_reply_text(&one, "timestamp", component->timestamp);
        cx_reply_add(&one, "data", *component->data);
        CX_TRY(cx_json_list_end_object(&one, &value, err));
        cx_json_list_add(&list, value);
    }
    CX_TRY(cx_json_list_end_array(&list, &all, err));
    cx_reply_add(facts, "components", all);
    return CX_SUCCESS;
}

static cx_status verify_trace(const cx_sources *sources, const cx_recorded *recorded,
                              cx_arena *arena, cx_json_list *facts, cx_described *out, cx_err *err)
{
    cx_trust trust;
    cx_trace_verdict verdict;
    cx_buf scratch;
    const cx_trace_record *record = &recorded->record;
    CX_TRY(cx_recorder_trust(sources->recorder, arena, &trust, err));
    const cx_trace_check check = {.trust = &trust,
                                  .received_ns = record->received_ns,
                                  .event_level = record->level,
                                  .batch_level = record->level,
                                  .forms = CX_FORMS_ALL,
                                  .any_level = true};
    if (record->is_view) {
        out->by = CX_STR("a redacted view: the signed bytes were not stored");
        return CX_SUCCESS;
    }
    cx_buf_init(&scratch, sources->alloc);
    cx_status status = cx_trace_verify(&recorded->trace, &check, &scratch, arena, &verdict, err);
    cx_buf_done(&scratch);
    CX_TRY(status);
    cx_reply_z(facts, "signed", cx_trace_signed_name(verdict.covers));
    out->verdict = !payload_matches(&recorded->entry) ? CX_BROKEN : verdict.verdict;
    if (!payload_matches(&recorded->entry))
        out->by = CX_STR("its bytes do not match its entry's commitment");
    else if (out->verdict == CX_HOLDS)
        out->by =
            CX_TEXTF(arena, "signed by key %.*s; its bytes match the commitment of entry %llu",
                     CX_S(recorded->trace.key_id), (unsigned long long)recorded->entry.entry.seq);
    else
        out->by =
            CX_TEXTF(arena, "its signature: %s", cx_trace_reason_name(verdict.problem.reason));
    return CX_SUCCESS;
}

static cx_status trace_facts(const cx_sources *sources, const cx_prov_object *object,
                             const cx_recorded *recorded, cx_arena *arena, cx_described *out,
                             cx_err *err)
{
    const cx_trace *trace = &recorded->trace;
    cx_json_list facts = cx_json_list_begin(arena);
    cx_reply_text(&facts, "actor", object->actor);
    cx_reply_uint(&facts, "seq", object->seq);
    cx_reply_text(&facts, "agent_id_hash", trace->agent_id_hash);
    cx_reply_text(&facts, "task_id", trace->task_id);
    cx_reply_text(&facts, "thought_id", trace->thought_id);
    cx_reply_text(&facts, "key_id", trace->key_id);
    cx_reply_text(&facts, "capture", recorded->record.capture);
    cx_reply_z(&facts, "level", cx_trace_level_name(recorded->record.level));
    cx_reply_time(&facts, "received_at", recorded->record.received_ns);
    cx_reply_hex(&facts, "content_sha256", recorded->record.content.bytes, 32);
    CX_TRY(verify_trace(sources, recorded, arena, &facts, out, err));
    CX_TRY(add_components(&facts, trace, arena, err));
    return cx_json_list_end_object(&facts, &out->facts, err);
}

static cx_status describe_trace(const cx_sources *sources, const cx_prov_object *given,
                                cx_arena *arena, cx_described *out, cx_err *err)
{
    cx_prov_object object = *given;
    cx_recorded recorded;
    bool found = false;
    CX_TRY(cx_prov_locate(sources, &object, arena, &found, err));
    /* The record that is found first is of the highest level. */
    cx_status status = CX_SUCCESS;
    for (int level = CX_LEVEL_FULL; found && level >= CX_LEVEL_GENERIC; level--) {
        status = cx_recorder_recorded(sources->home, object.actor, object.seq,
                                      (cx_trace_level)level, arena, &recorded, err);
        if (status.code != CX_E_NOT_FOUND)
            break;
    }
    if (!found || status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    out->here = true;
    out->title = CX_TEXTF(arena, "a decision of agent %.*s", CX_S(object.actor));
    if (!recorded.erased)
        return trace_facts(sources, &object, &recorded, arena, out, err);
    cx_json_list facts = cx_json_list_begin(arena);
    cx_reply_text(&facts, "actor", object.actor);
    cx_reply_uint(&facts, "seq", object.seq);
    out->by = CX_STR("its content was erased; its entry is in the journal");
    return cx_json_list_end_object(&facts, &out->facts, err);
}

/* --- states ----------------------------------------------------------------------------------- */

static cx_status root_at(const cx_sources *sources, cx_str actor, uint64_t size, cx_digest *out,
                         cx_err *err)
{
    cx_trees trees;
    CX_TRY(cx_home_trees_begin(sources->home, actor, &trees, err));
    cx_status status = cx_mmr_root(trees.journal, size, out, err);
    cx_home_trees_end(sources->home);
    return status;
}

static cx_status describe_snapshot(const cx_sources *sources, const cx_prov_object *object,
                                   cx_arena *arena, cx_described *out, cx_err *err)
{
    cx_manifest manifest;
    cx_bytes bytes;
    cx_digest root, digest;
    cx_status status =
        cx_snapshot_get(sources->home, object->actor, object->seq, arena, &manifest, &bytes, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    CX_TRY(root_at(sources, object->actor, manifest.journal_size, &root, err));
    CX_TRY(cx_manifest_digest(&manifest, sources->alloc, &digest, err));
    cx_json_list facts = cx_json_list_begin(arena);
    cx_reply_text(&facts, "actor", object->actor);
    cx_reply_uint(&facts, "snapshot", object->seq);
    cx_reply_time(&facts, "created_at", manifest.created_ns);
    cx_reply_text(&facts, "reason", manifest.trigger);
    cx_reply_uint(&facts, "journal_size", manifest.journal_size);
    cx_reply_hex(&facts, "journal_root", manifest.journal_root.bytes, 32);
    cx_reply_hex(&facts, "overall_root", manifest.overall_root.bytes, 32);
    cx_reply_hex(&facts, "manifest_digest", digest.bytes, 32);
    cx_reply_text(&facts, "signed_by",
                  manifest.signature.null ? (cx_str){NULL, 0} : manifest.signed_by);
    CX_TRY(cx_json_list_end_object(&facts, &out->facts, err));
    cx_digest overall = cx_manifest_overall(&manifest);
    out->here = true;
    out->title = CX_TEXTF(arena, "snapshot %llu of %.*s", (unsigned long long)object->seq,
                          CX_S(object->actor));
    bool holds = cx_digest_eq(&overall, &manifest.overall_root) &&
                 cx_digest_eq(&root, &manifest.journal_root);
    out->verdict = holds ? CX_HOLDS : CX_BROKEN;
    out->by = holds ? CX_STR("its overall root matches its roots, and its journal root matches the "
                             "journal at its size")
                    : CX_STR("its roots do not match the journal at its size");
    return CX_SUCCESS;
}

static cx_status describe_journal(const cx_sources *sources, const cx_prov_object *object,
                                  cx_arena *arena, cx_described *out, cx_err *err)
{
    cx_digest root;
    CX_TRY(root_at(sources, object->actor, object->seq, &root, err));
    cx_json_list facts = cx_json_list_begin(arena);
    cx_reply_text(&facts, "actor", object->actor);
    cx_reply_uint(&facts, "journal_size", object->seq);
    cx_reply_hex(&facts, "journal_root", root.bytes, 32);
    out->here = true;
    out->verdict = CX_HOLDS;
    out->by = CX_STR("computed from the journal's own entries");
    out->title = CX_TEXTF(arena, "the journal of %.*s after %llu entries", CX_S(object->actor),
                          (unsigned long long)object->seq);
    return cx_json_list_end_object(&facts, &out->facts, err);
}

static cx_status describe_actor(const cx_sources *sources, const cx_prov_object *object,
                                cx_arena *arena, cx_described *out, cx_err *err)
{
    cx_actor_info info;
    cx_roots roots;
    cx_status status = cx_home_actor(sources->home, object->id, &info, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    CX_TRY(cx_home_roots(sources->home, object->id, &roots, err));
    cx_json_list facts = cx_json_list_begin(arena);
    cx_reply_text(&facts, "actor", info.name);
    cx_reply_uint(&facts, "entries", info.entry_count);
    cx_reply_uint(&facts, "memories", info.live_memories);
    cx_reply_uint(&facts, "snapshots", info.snapshot_count);
    cx_reply_hex(&facts, "journal_root", roots.journal.bytes, 32);
    cx_reply_hex(&facts, "overall_root", roots.overall.bytes, 32);
    out->here = true;
    out->verdict = CX_HOLDS;
    out->by = CX_STR("computed from the data directory; 'cortex verify --home' verifies all of it");
    out->title = CX_TEXTF(arena, "actor %.*s: %llu entries", CX_S(info.name),
                          (unsigned long long)info.entry_count);
    return cx_json_list_end_object(&facts, &out->facts, err);
}

/* --- the rest --------------------------------------------------------------------------------- */

static cx_status describe_commit(const cx_sources *sources, const cx_prov_object *object,
                                 cx_arena *arena, cx_described *out, cx_err *err)
{
    cx_recorded_commit commit;
    cx_status status = cx_commit_read(sources, object->id, arena, &commit, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    cx_json_list facts = cx_json_list_begin(arena);
    cx_reply_text(&facts, "commit", object->id);
    cx_reply_text(&facts, "author", cx_json_quoted(commit.author, arena));
    cx_reply_text(&facts, "author_time", commit.author_time);
    cx_reply_text(&facts, "subject", cx_json_quoted(commit.subject, arena));
    cx_reply_text(&facts, "run_id", cx_json_quoted(commit.run_id, arena));
    cx_reply_text(&facts, "task_id", cx_json_quoted(commit.task_id, arena));
    cx_reply_text(&facts, "contract_sha256", cx_json_quoted(commit.contract_sha256, arena));
    cx_reply_text(&facts, "note_run_id", cx_json_quoted(commit.note_run_id, arena));
    cx_reply_text(&facts, "note_manifest_sha256",
                  cx_json_quoted(commit.note_manifest_sha256, arena));
    CX_TRY(cx_json_list_end_object(&facts, &out->facts, err));
    out->here = true;
    out->title = cx_json_quoted(commit.subject, arena);
    out->verdict = commit.is_hash ? CX_HOLDS : CX_BROKEN;
    out->by = commit.is_hash ? CX_STR("its bytes match its git hash")
                             : CX_STR("its bytes do not match its git hash");
    return CX_SUCCESS;
}

static cx_status describe_line(const cx_sources *sources, const cx_prov_object *object,
                               cx_arena *arena, cx_described *out, cx_err *err)
{
    cx_blamed blamed;
    cx_status status = cx_commit_blame(sources, object->id, arena, &blamed, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    cx_json_list facts = cx_json_list_begin(arena);
    cx_reply_text(&facts, "commit", blamed.commit);
    cx_reply_text(&facts, "path", cx_json_quoted(blamed.path, arena));
    cx_reply_uint(&facts, "line", blamed.line);
    cx_reply_text(&facts, "text", cx_json_quoted(blamed.text, arena));
    CX_TRY(cx_json_list_end_object(&facts, &out->facts, err));
    out->here = true;
    out->title = cx_json_quoted(blamed.text, arena);
    bool committed = blamed.commit.data[strspn(blamed.commit.data, "0")] != ' ' &&
                     strspn(blamed.commit.data, "0") < blamed.commit.size;
    out->verdict = committed ? CX_HOLDS : CX_INDETERMINATE;
    out->by = committed ? CX_STR("git blame over the repository's commits")
                        : CX_STR("the line is not committed yet");
    return CX_SUCCESS;
}

static cx_status describe_key(const cx_sources *sources, const cx_prov_object *object,
                              cx_arena *arena, cx_described *out, cx_err *err)
{
    cx_trust trust;
    CX_TRY(cx_recorder_trust(sources->recorder, arena, &trust, err));
    const cx_trust_key *key = cx_trust_find(&trust, object->id);
    if (key == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_trust_key_json(key, arena, &out->facts, err));
    out->here = true;
    out->verdict = CX_HOLDS;
    out->title = CX_TEXTF(arena, "key %.*s%s", CX_S(key->key_id),
                          key->revoked_at == CX_TIME_NONE ? "" : ", revoked");
    out->by =
        CX_STR("it is in the trust store of this data directory, which does not prove its owner");
    return CX_SUCCESS;
}

static cx_status describe_node(const cx_sources *sources, const cx_prov_object *object,
                               cx_arena *arena, cx_described *out, cx_err *err)
{
    (void)sources;
    cx_json_list facts = cx_json_list_begin(arena);
    cx_reply_text(&facts, "hash", object->id);
    cx_reply_text(&facts, "branch", object->actor);
    CX_TRY(cx_json_list_end_object(&facts, &out->facts, err));
    out->here = object->actor.size != 0;
    out->verdict = out->here ? CX_HOLDS : CX_INDETERMINATE;
    out->title = CX_TEXTF(arena, "lattice node of %.*s", CX_S(object->actor));
    out->by = out->here ? CX_STR("derived from recorded bytes: the same bytes give the same hash")
                        : CX_STR("no branch of this data directory or its runs has it");
    return CX_SUCCESS;
}

cx_status cx_prov_describe(const cx_sources *sources, const cx_prov_object *object, cx_arena *arena,
                           cx_described *out, cx_err *err)
{
    cx_json_list none = cx_json_list_begin(arena);
    *out = (cx_described){.title = object->id,
                          .verdict = CX_INDETERMINATE,
                          .by = CX_STR("not found here: only its name is known")};
    CX_TRY(cx_json_list_end_object(&none, &out->facts, err));
    switch (object->kind) {
    case CX_PROV_RUN: return cx_run_describe(sources, object->id, arena, out, err);
    case CX_PROV_EVENT: return cx_run_event_describe(sources, object->id, arena, out, err);
    case CX_PROV_COMMIT: return describe_commit(sources, object, arena, out, err);
    case CX_PROV_LINE: return describe_line(sources, object, arena, out, err);
    case CX_PROV_NODE: return describe_node(sources, object, arena, out, err);
    case CX_PROV_MEMORY:
    case CX_PROV_TRACE:
    case CX_PROV_ENTRY:
    case CX_PROV_SNAPSHOT:
    case CX_PROV_JOURNAL:
    case CX_PROV_KEY:
    case CX_PROV_ACTOR: break;
    case CX_PROV_NONE:
    case CX_PROV_EDGE:
    case CX_PROV_KIND_COUNT: return CX_SUCCESS;
    }
    if (sources->home == NULL)
        return CX_SUCCESS;
    switch (object->kind) {
    case CX_PROV_MEMORY: return describe_memory(sources, object, arena, out, err);
    case CX_PROV_TRACE: return describe_trace(sources, object, arena, out, err);
    case CX_PROV_ENTRY: return describe_entry(sources, object, arena, out, err);
    case CX_PROV_SNAPSHOT: return describe_snapshot(sources, object, arena, out, err);
    case CX_PROV_JOURNAL: return describe_journal(sources, object, arena, out, err);
    case CX_PROV_KEY: return describe_key(sources, object, arena, out, err);
    default: return describe_actor(sources, object, arena, out, err);
    }
}
