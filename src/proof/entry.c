/*
 * entry.c - the bytes of journal entries (ledger.md §3).
 *
 *     {1 seq, 2 kind, 3 created_at ns, 4 created_by (o),
 *      either 5 payload (o), or 6 commitment and 7 length (o)}
 */
#include "proof/entry.h"

#include "cbor/api.h"

static bool is_lower_case(char c)
{
    return c >= 'a' && c <= 'z';
}

bool cx_entry_kind_ok(cx_str kind)
{
    if (kind.size == 0 || kind.size > CX_ENTRY_KIND_MAX)
        return false;
    bool starts = true; /* a part begins: only a letter will do */
    for (size_t i = 0; i < kind.size; i++) {
        char c = kind.data[i];
        if (c == '.') {
            if (starts)
                return false;
            starts = true;
        } else if (is_lower_case(c)) {
            starts = false;
        } else if (starts || !((c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }
    return !starts;
}

void cx_entry_encode(const cx_entry *entry, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 1);
    cx_cbor_uint(out, entry->seq);
    cx_cbor_field(&fields, 2);
    cx_cbor_text(out, entry->kind);
    cx_cbor_field(&fields, 3);
    cx_cbor_int(out, entry->created_at_ns);
    if (entry->created_by.size != 0) {
        cx_cbor_field(&fields, 4);
        cx_cbor_bytes(out, entry->created_by);
    }
    if (entry->committed) {
        cx_cbor_field(&fields, 6);
        cx_cbor_digest(out, &entry->commitment);
        if (entry->payload_size != 0) {
            cx_cbor_field(&fields, 7);
            cx_cbor_uint(out, entry->payload_size);
        }
    } else if (entry->payload.size != 0) {
        cx_cbor_field(&fields, 5);
        cx_cbor_bytes(out, entry->payload);
    }
    cx_cbor_fields_end(&fields);
}

static void read_kind(cx_cbor_reader *reader, cx_entry *entry)
{
    size_t at = reader->offset;
    entry->kind = cx_cbor_read_text(reader);
    if (cx_cbor_ok(reader) && !cx_entry_kind_ok(entry->kind))
        cx_cbor_reject(reader, at, "kind is not of the form a_b.c_d, 1 to %d characters",
                       CX_ENTRY_KIND_MAX);
}

static void read_payload(cx_cbor_reader *reader, const cx_cbor_members *members, cx_entry *entry)
{
    entry->payload = cx_cbor_read_bytes(reader);
    if (!cx_cbor_ok(reader))
        return;
    if (entry->payload.size == 0)
        cx_cbor_reject_empty(reader, members);
    else if (entry->payload.size > CX_ENTRY_PAYLOAD_MAX)
        cx_cbor_reject(reader, members->key_offset, "an inline payload of %zu bytes; at most %u",
                       entry->payload.size, CX_ENTRY_PAYLOAD_MAX);
}

static void read_member(cx_cbor_reader *reader, const cx_cbor_members *members, cx_entry *entry)
{
    switch (members->key) {
    case 1: entry->seq = cx_cbor_read_uint(reader); break;
    case 2: read_kind(reader, entry); break;
    case 3: entry->created_at_ns = cx_cbor_read_int(reader); break;
    case 4:
        entry->created_by = cx_cbor_read_bytes(reader);
        if (cx_cbor_ok(reader) && entry->created_by.size == 0)
            cx_cbor_reject_empty(reader, members);
        break;
    case 5: read_payload(reader, members, entry); break;
    case 6:
        entry->commitment = cx_cbor_read_digest(reader);
        entry->committed = true;
        break;
    case 7:
        entry->payload_size = cx_cbor_read_uint(reader);
        if (cx_cbor_ok(reader) && entry->payload_size == 0)
            cx_cbor_reject_empty(reader, members);
        break;
    default: cx_cbor_reject_member(reader, members);
    }
}

cx_status cx_entry_decode(cx_bytes bytes, cx_entry *out, cx_err *err)
{
    if (bytes.size > CX_ENTRY_MAX)
        return cx_fail(err, CX_E_LIMIT, "an entry of %zu bytes; at most %u are allowed", bytes.size,
                       CX_ENTRY_MAX);
    cx_cbor_reader reader;
    cx_entry entry = {0};
    cx_cbor_begin(&reader, bytes, "entry");
    cx_cbor_members members = cx_cbor_read_members(&reader);
    while (cx_cbor_next_member(&reader, &members))
        read_member(&reader, &members, &entry);
    cx_cbor_require(&reader, &members, 1u << 1 | 1u << 2 | 1u << 3);
    bool inline_payload = (members.seen & 1u << 5) != 0, length = (members.seen & 1u << 7) != 0;
    if (cx_cbor_ok(&reader) &&
        ((inline_payload && entry.committed) || (length && !entry.committed)))
        cx_cbor_reject(&reader, members.offset,
                       "a payload is either inline (5) or committed to (6 and 7)");
    CX_TRY(cx_cbor_end(&reader, err));
    *out = entry;
    return CX_SUCCESS;
}

static const char *const kind_names[] = {
    [CX_ENTRY_RAW] = "raw",
    [CX_ENTRY_WRITE] = "write",
    [CX_ENTRY_UPDATE] = "update",
    [CX_ENTRY_TOMBSTONE] = "tombstone",
    [CX_ENTRY_ADD_EDGE] = "add_edge",
    [CX_ENTRY_REMOVE_EDGE] = "remove_edge",
    [CX_ENTRY_UPDATE_HEAD] = "update_head",
    [CX_ENTRY_EMBED] = "embed",
    [CX_ENTRY_COMPACT] = "compact",
    [CX_ENTRY_ATTEST] = "attest",
    [CX_ENTRY_LEARN_WEIGHTS] = "learn_weights",
    [CX_ENTRY_FIND_LATE] = "find_late",
    [CX_ENTRY_SCOPE_VIOLATION] = "scope_violation",
    [CX_ENTRY_GC] = "gc",
    [CX_ENTRY_MIGRATION] = "migration",
    [CX_ENTRY_SEAL] = "seal",
    [CX_ENTRY_DROP_SNAPSHOT] = "drop_snapshot",
    [CX_ENTRY_REDACT] = "redact",
    [CX_ENTRY_REDACT_MEMORY] = "redact_memory",
    [CX_ENTRY_OTHER] = "",
};

cx_str cx_entry_kind_name(cx_entry_kind kind)
{
    return cx_str_z(kind_names[kind]);
}

cx_entry_kind cx_entry_kind_of(cx_str name)
{
    for (int kind = 0; kind < CX_ENTRY_OTHER; kind++)
        if (cx_str_is(name, kind_names[kind]))
            return (cx_entry_kind)kind;
    return CX_ENTRY_OTHER;
}
