/*
 * entry_view.c - journal entries as JSON and text.  Payloads of the ledger's own kinds are shown by
 * their members, all others as text or hex.
 */
#include "cli/ledger/entry_view.h"

#include "base/api.h"

/* --- JSON ------------------------------------------------------------------------------------- */

static void write_weights(cx_json_list *list, const char *name, const cx_weights *w)
{
    cx_json_list inner = cx_json_list_begin(list->arena);
    cx_json_put_float(&inner, "access", w->a);
    cx_json_put_float(&inner, "citations", w->c);
    cx_json_put_float(&inner, "declared", w->d);
    cx_json_put_float(&inner, "recency", w->r);
    cx_json_put_float(&inner, "vector", w->v);
    cx_json_put_object(list, name, &inner);
}

static void write_ids(cx_json_list *list, const char *name, const cx_id *ids, size_t count)
{
    cx_json_list inner = cx_json_list_begin(list->arena);
    for (size_t i = 0; i < count; i++) {
        char *text = CX_ARENA_ARRAY(list->arena, char, CX_ULID_SIZE);
        if (text == NULL) {
            list->failed = true;
            return;
        }
        cx_ulid_format(&ids[i], text);
        cx_json_list_add(&inner, cx_json_make_str(cx_str_from(text, CX_ULID_SIZE)));
    }
    cx_json_put_array(list, name, &inner);
}

static void write_edge(const cx_payload_edge *edge, bool removed, cx_json_list *out)
{
    cx_json_put_id(out, "dst", &edge->dst);
    cx_json_put_id(out, "src", &edge->src);
    cx_json_put_str(out, "type", cx_uri_edge_type_name(edge->type));
    cx_json_put_float(out, "weight", edge->weight);
    if (!removed)
        return;
    cx_json_put_str(out, "by", edge->by);
    cx_json_put_str(out, "reason", edge->reason);
}

/* Kinds of memories. */
static void write_memory_kinds(const cx_payload *p, cx_json_list *out)
{
    switch (p->kind) {
    case CX_ENTRY_WRITE:
    case CX_ENTRY_UPDATE:
        cx_json_put_id(out, "id", &p->as.write.id);
        cx_json_put_str(out, "type", cx_uri_type_name(p->as.write.type));
        cx_json_put_uint(out, "version", p->as.write.version);
        cx_json_put_digest(out, "version_hash", &p->as.write.version_hash);
        break;
    case CX_ENTRY_TOMBSTONE: cx_json_put_id(out, "id", &p->as.id); break;
    case CX_ENTRY_ADD_EDGE: write_edge(&p->as.edge, false, out); break;
    case CX_ENTRY_REMOVE_EDGE: write_edge(&p->as.edge, true, out); break;
    case CX_ENTRY_UPDATE_HEAD:
        cx_json_put_digest(out, "head_hash", &p->as.update_head.head_hash);
        cx_json_put_id(out, "id", &p->as.update_head.id);
        cx_json_put_uint(out, "version", p->as.update_head.version);
        break;
    case CX_ENTRY_EMBED:
        cx_json_put_uint(out, "dim", p->as.embed.dim);
        cx_json_put_id(out, "id", &p->as.embed.id);
        cx_json_put_str(out, "model", p->as.embed.model);
        cx_json_put_uint(out, "source_version", p->as.embed.source_version);
        cx_json_put_digest(out, "vector_hash", &p->as.embed.vector_hash);
        cx_json_put_uint(out, "vertex", p->as.embed.vertex);
        break;
    case CX_ENTRY_REDACT_MEMORY:
        cx_json_put_digest(out, "head_hash", &p->as.redact_memory.head_hash);
        cx_json_put_id(out, "id", &p->as.redact_memory.id);
        cx_json_put_str(out, "reason", p->as.redact_memory.reason);
        cx_json_put_uint(out, "versions_erased", p->as.redact_memory.versions_erased);
        break;
    default: break;
    }
}

/* Records of use: outcomes, compactions, searches, scopes. */
static void write_use_kinds(const cx_payload *p, cx_json_list *out)
{
    switch (p->kind) {
    case CX_ENTRY_COMPACT:
        cx_json_put_uint(out, "budget", p->as.compact.budget);
        cx_json_put_uint(out, "compacted", p->as.compact.compacted);
        cx_json_put_str(out, "intent", p->as.compact.intent);
        cx_json_put_uint(out, "kept", p->as.compact.kept);
        cx_json_put_digest(out, "record_hash", &p->as.compact.record_hash);
        cx_json_put_str(out, "step", p->as.compact.step);
        break;
    case CX_ENTRY_ATTEST:
        write_ids(out, "cited", p->as.attest.cited, p->as.attest.cited_count);
        cx_json_put_str(out, "intent", p->as.attest.intent);
        cx_json_put_str(out, "outcome",
                        p->as.attest.outcome == 0 ? CX_STR("success") : CX_STR("failure"));
        cx_json_put_str(out, "reason", p->as.attest.reason);
        break;
    case CX_ENTRY_LEARN_WEIGHTS:
        cx_json_put_float(out, "alpha", p->as.learn_weights.alpha);
        cx_json_put_bool(out, "decrement", p->as.learn_weights.decrement);
        write_weights(out, "now", &p->as.learn_weights.now);
        write_weights(out, "previous", &p->as.learn_weights.previous);
        cx_json_put_bool(out, "skipped", p->as.learn_weights.skipped);
        cx_json_put_uint(out, "source_seq", p->as.learn_weights.source_seq);
        break;
    case CX_ENTRY_FIND_LATE:
        write_ids(out, "ids", p->as.find_late.ids, p->as.find_late.id_count);
        cx_json_put_int(out, "limit", p->as.find_late.limit);
        cx_json_put_str(out, "predicate", p->as.find_late.predicate);
        cx_json_put_int(out, "result_count", p->as.find_late.result_count);
        cx_json_put_strs(out, "tags", p->as.find_late.tags, p->as.find_late.tag_count);
        break;
    case CX_ENTRY_SCOPE_VIOLATION:
        cx_json_put_str(out, "granted_by", p->as.scope_violation.granted_by);
        cx_json_put_str(out, "granted_to", p->as.scope_violation.granted_to);
        cx_json_put_id(out, "id", &p->as.scope_violation.id);
        cx_json_put_str(out, "mode", p->as.scope_violation.mode);
        cx_json_put_str(out, "reason", p->as.scope_violation.reason);
        break;
    default: break;
    }
}

/* Kinds of the ledger itself. */
static void write_ledger_kinds(const cx_payload *p, cx_json_list *out)
{
    switch (p->kind) {
    case CX_ENTRY_SEAL:
        cx_json_put_digest(out, "manifest_digest", &p->as.seal.manifest_digest);
        cx_json_put_digest(out, "overall_root", &p->as.seal.overall_root);
        cx_json_put_hex(out, "signature", p->as.seal.signature);
        cx_json_put_str(out, "signed_by", p->as.seal.signed_by);
        cx_json_put_uint(out, "snapshot", p->as.seal.snapshot_seq);
        break;
    case CX_ENTRY_DROP_SNAPSHOT:
        cx_json_put_digest(out, "manifest_digest", &p->as.drop_snapshot.manifest_digest);
        cx_json_put_uint(out, "snapshot", p->as.drop_snapshot.snapshot_seq);
        break;
    case CX_ENTRY_REDACT:
        cx_json_put_digest(out, "commitment", &p->as.redact.commitment);
        cx_json_put_str(out, "reason", p->as.redact.reason);
        cx_json_put_uint(out, "target_seq", p->as.redact.target_seq);
        break;
    default: break;
    }
}

static bool is_opaque(cx_entry_kind kind)
{
    return kind == CX_ENTRY_RAW || kind == CX_ENTRY_OTHER || kind == CX_ENTRY_GC ||
           kind == CX_ENTRY_MIGRATION;
}

static cx_status write_payload(const cx_entry_view *view, cx_json_list *out, cx_err *err)
{
    cx_payload payload;
    cx_entry_kind kind = cx_entry_kind_of(view->entry.kind);
    if (view->payload.size == 0) {
        cx_json_put_null(out, "payload");
        return CX_SUCCESS;
    }
    if (is_opaque(kind)) {
        cx_json_put_bytes(out, "payload", view->payload);
        return CX_SUCCESS;
    }
    CX_TRY(cx_payload_decode(kind, view->payload, out->arena, &payload, err));
    cx_json_list inner = cx_json_list_begin(out->arena);
    write_memory_kinds(&payload, &inner);
    write_use_kinds(&payload, &inner);
    write_ledger_kinds(&payload, &inner);
    cx_json_put_object(out, "payload", &inner);
    return CX_SUCCESS;
}

cx_status cx_cli_entry_json(const cx_entry_view *view, cx_json_list *out, cx_err *err)
{
    const cx_entry *entry = &view->entry;
    cx_json_put_bool(out, "committed", entry->committed);
    cx_json_put_time(out, "created_at", true, cx_cli_seconds(entry->created_at_ns));
    cx_json_put_int(out, "created_at_ns", entry->created_at_ns);
    if (entry->created_by.size == 0)
        cx_json_put_null(out, "created_by");
    else
        cx_json_put_bytes(out, "created_by", entry->created_by);
    cx_json_put_bool(out, "erased", view->payload_erased);
    cx_json_put_str(out, "kind", entry->kind);
    cx_json_put_digest(out, "leaf_hash", &view->leaf_hash);
    cx_json_put_uint(out, "payload_size",
                     entry->committed ? entry->payload_size : entry->payload.size);
    cx_json_put_uint(out, "seq", entry->seq);
    if (view->has_subject)
        cx_json_put_id(out, "subject", &view->subject);
    else
        cx_json_put_null(out, "subject");
    return write_payload(view, out, err);
}

/* --- text ------------------------------------------------------------------------------------- */

static void add_id(cx_buf *out, const cx_id *id)
{
    char text[CX_ULID_SIZE];
    cx_ulid_format(id, text);
    cx_buf_add(out, text, sizeof text);
}

static void add_edge(const cx_payload_edge *edge, cx_buf *out)
{
    add_id(out, &edge->src);
    cx_buf_printf(out, " %s ", cx_uri_edge_type_name(edge->type).data);
    add_id(out, &edge->dst);
}

static void add_number(cx_buf *out, const char *what, uint64_t number)
{
    cx_buf_printf(out, "%s %llu", what, (unsigned long long)number);
}

/* What the entry is about, in a few words. */
static void add_gist(const cx_payload *p, cx_buf *out)
{
    switch (p->kind) {
    case CX_ENTRY_WRITE:
    case CX_ENTRY_UPDATE: {
        cx_uri uri = {
            .type = p->as.write.type, .id = p->as.write.id, .version = p->as.write.version};
        cx_uri_add(&uri, out);
        break;
    }
    case CX_ENTRY_TOMBSTONE: add_id(out, &p->as.id); break;
    case CX_ENTRY_ADD_EDGE:
    case CX_ENTRY_REMOVE_EDGE: add_edge(&p->as.edge, out); break;
    case CX_ENTRY_UPDATE_HEAD: add_id(out, &p->as.update_head.id); break;
    case CX_ENTRY_EMBED: add_id(out, &p->as.embed.id); break;
    case CX_ENTRY_REDACT_MEMORY: add_id(out, &p->as.redact_memory.id); break;
    case CX_ENTRY_SCOPE_VIOLATION: add_id(out, &p->as.scope_violation.id); break;
    case CX_ENTRY_COMPACT:
        cx_shown_add(out, p->as.compact.intent);
        cx_buf_add_byte(out, '/');
        cx_shown_add(out, p->as.compact.step);
        break;
    case CX_ENTRY_ATTEST:
        cx_shown_add(out, p->as.attest.intent);
        cx_buf_add_z(out, p->as.attest.outcome == 0 ? " success" : " failure");
        break;
    case CX_ENTRY_LEARN_WEIGHTS: add_number(out, "from", p->as.learn_weights.source_seq); break;
    case CX_ENTRY_FIND_LATE: cx_shown_add(out, p->as.find_late.predicate); break;
    case CX_ENTRY_SEAL: add_number(out, "snapshot", p->as.seal.snapshot_seq); break;
    case CX_ENTRY_DROP_SNAPSHOT:
        add_number(out, "snapshot", p->as.drop_snapshot.snapshot_seq);
        break;
    case CX_ENTRY_REDACT: add_number(out, "entry", p->as.redact.target_seq); break;
    default: break;
    }
}

cx_status cx_cli_entry_line(const cx_entry_view *view, cx_arena *arena, cx_buf *out, cx_err *err)
{
    const cx_entry *entry = &view->entry;
    cx_entry_kind kind = cx_entry_kind_of(entry->kind);
    cx_payload payload;
    cx_str by = cx_bytes_str(entry->created_by);
    cx_buf_printf(out, "%llu  ", (unsigned long long)entry->seq);
    cx_form_time(cx_cli_seconds(entry->created_at_ns), out);
    cx_buf_add_z(out, "  ");
    cx_shown_add(out, entry->kind);
    cx_buf_add_z(out, "  ");
    cx_shown_add(out, by.size != 0 && cx_utf8_valid(by) ? by : CX_STR("-"));
    cx_buf_add_z(out, "  ");
    if (view->payload_erased)
        cx_buf_add_z(out, "(erased)");
    else if (is_opaque(kind))
        cx_buf_printf(out, "%zu bytes", view->payload.size);
    if (!is_opaque(kind) && view->payload.size != 0) {
        CX_TRY(cx_payload_decode(kind, view->payload, arena, &payload, err));
        add_gist(&payload, out);
    }
    cx_buf_add_byte(out, '\n');
    return CX_SUCCESS;
}
