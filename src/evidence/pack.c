/*
 * pack.c - the data of an evidence file: deterministic CBOR, one spelling out and no other in.
 *
 *     {0: 1, 1: "cortex.evidence", 2: kind, 3: id, 4: made at ns,
 *      5: [{0: actor, 1: scheme, 2: size, 3: root, 4: checkpoint (o)}...],
 *      6: [{0: journal, 1: inclusion proof, 2: payload (o), 3: salt (o)}...],
 *      7: [{0: path, 1: bytes}...] (o),                files of the run's bundle, by path
 *      8: [{0: entry, 1: canonical, 2: signature, 3: key id}...] (o),
 *      9: [{0: uri, 1: entry, 2: version record (o)}...] (o),
 *     10: [proof pack...] (o), 11: [{0: id, 1: public key, 2: role}...] (o), 12: commit object (o),
 *     13: [{0: journal, 1: home proof, 2: journal root, 3: memories root, 4: edges root,
 *           5: consistency proof (o)}...] (o)}
 */
#include "base/api.h"
#include "cbor/api.h"
#include "evidence/evidence.h"

/* --- writing ---------------------------------------------------------------------------------- */

static void write_optional(cx_cbor_fields *fields, uint8_t key, cx_bytes bytes, cx_buf *out)
{
    if (bytes.size == 0)
        return;
    cx_cbor_field(fields, key);
    cx_cbor_bytes(out, bytes);
}

static void write_journal(const cx_evidence_journal *journal, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_text(out, journal->actor);
    cx_cbor_field(&fields, 1);
    cx_cbor_text(out, cx_scheme_name(journal->scheme));
    cx_cbor_field(&fields, 2);
    cx_cbor_uint(out, journal->point.size);
    cx_cbor_field(&fields, 3);
    cx_cbor_digest(out, &journal->point.root);
    write_optional(&fields, 4, journal->checkpoint, out);
    cx_cbor_fields_end(&fields);
}

static void write_entry(const cx_evidence_entry *entry, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(out, entry->journal);
    cx_cbor_field(&fields, 1);
    cx_cbor_bytes(out, entry->inclusion);
    write_optional(&fields, 2, entry->payload, out);
    if (entry->salt != NULL) {
        cx_cbor_field(&fields, 3);
        cx_cbor_bytes(out, cx_bytes_from(entry->salt, 32));
    }
    cx_cbor_fields_end(&fields);
}

static void write_trace(const cx_evidence_trace *trace, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(out, trace->entry);
    cx_cbor_field(&fields, 1);
    cx_cbor_bytes(out, trace->canonical);
    cx_cbor_field(&fields, 2);
    cx_cbor_bytes(out, cx_bytes_from(trace->signature.bytes, sizeof trace->signature.bytes));
    cx_cbor_field(&fields, 3);
    cx_cbor_text(out, trace->key_id);
    cx_cbor_fields_end(&fields);
}

static void write_memory(const cx_evidence_memory *memory, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_text(out, memory->uri);
    cx_cbor_field(&fields, 1);
    cx_cbor_uint(out, memory->entry);
    write_optional(&fields, 2, memory->version, out);
    cx_cbor_fields_end(&fields);
}

static void write_key(const cx_evidence_key *key, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_text(out, key->id);
    cx_cbor_field(&fields, 1);
    cx_cbor_bytes(out, cx_bytes_from(key->key.bytes, sizeof key->key.bytes));
    cx_cbor_field(&fields, 2);
    cx_cbor_text(out, key->role);
    cx_cbor_fields_end(&fields);
}

static void write_file(const cx_evidence_file *file, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_text(out, file->path);
    cx_cbor_field(&fields, 1);
    cx_cbor_bytes(out, file->bytes);
    cx_cbor_fields_end(&fields);
}

static void write_home(const cx_evidence_home *home, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(out, home->journal);
    cx_cbor_field(&fields, 1);
    cx_cbor_bytes(out, home->proof);
    cx_cbor_field(&fields, 2);
    cx_cbor_digest(out, &home->journal_root);
    cx_cbor_field(&fields, 3);
    cx_cbor_digest(out, &home->memories_root);
    cx_cbor_field(&fields, 4);
    cx_cbor_digest(out, &home->edges_root);
    write_optional(&fields, 5, home->consistency, out);
    cx_cbor_fields_end(&fields);
}

static bool begin_list(cx_cbor_fields *fields, uint8_t key, size_t count, bool always, cx_buf *out)
{
    if (count == 0 && !always)
        return false;
    cx_cbor_field(fields, key);
    cx_cbor_array(out, count);
    return true;
}

static void write_lists(const cx_evidence *e, cx_cbor_fields *fields, cx_buf *out)
{
    if (begin_list(fields, 5, e->journal_count, true, out))
        for (size_t i = 0; i < e->journal_count; i++)
            write_journal(&e->journals[i], out);
    if (begin_list(fields, 6, e->entry_count, true, out))
        for (size_t i = 0; i < e->entry_count; i++)
            write_entry(&e->entries[i], out);
    if (begin_list(fields, 7, e->file_count, false, out))
        for (size_t i = 0; i < e->file_count; i++)
            write_file(&e->files[i], out);
    if (begin_list(fields, 8, e->trace_count, false, out))
        for (size_t i = 0; i < e->trace_count; i++)
            write_trace(&e->traces[i], out);
    if (begin_list(fields, 9, e->memory_count, false, out))
        for (size_t i = 0; i < e->memory_count; i++)
            write_memory(&e->memories[i], out);
    if (begin_list(fields, 10, e->pack_count, false, out))
        for (size_t i = 0; i < e->pack_count; i++)
            cx_cbor_bytes(out, e->packs[i]);
    if (begin_list(fields, 11, e->key_count, false, out))
        for (size_t i = 0; i < e->key_count; i++)
            write_key(&e->keys[i], out);
}

static cx_status check_counts(const cx_evidence *e, cx_err *err)
{
    if (e->journal_count > CX_EVIDENCE_JOURNALS_MAX || e->entry_count > CX_EVIDENCE_ENTRIES_MAX ||
        e->file_count > CX_EVIDENCE_FILES_MAX || e->trace_count > CX_EVIDENCE_PARTS_MAX ||
        e->memory_count > CX_EVIDENCE_PARTS_MAX || e->pack_count > CX_EVIDENCE_PARTS_MAX ||
        e->key_count > CX_EVIDENCE_PARTS_MAX || e->home_count > CX_EVIDENCE_JOURNALS_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "EvidenceTooLarge", CX_NO_OFFSET,
                          "there are more parts than an evidence file may have (%d journals, %d "
                          "entries, %d files, %d of anything else)",
                          CX_EVIDENCE_JOURNALS_MAX, CX_EVIDENCE_ENTRIES_MAX, CX_EVIDENCE_FILES_MAX,
                          CX_EVIDENCE_PARTS_MAX);
    return CX_SUCCESS;
}

cx_status cx_evidence_encode(const cx_evidence *e, cx_buf *out, cx_err *err)
{
    cx_cbor_fields fields;
    size_t start = out->size;
    CX_TRY(check_counts(e, err));
    cx_cbor_fields_begin(&fields, out);
    cx_cbor_field(&fields, 0);
    cx_cbor_uint(out, 1);
    cx_cbor_field(&fields, 1);
    cx_cbor_text(out, CX_STR(CX_EVIDENCE_MAGIC));
    cx_cbor_field(&fields, 2);
    cx_cbor_text(out, e->kind);
    cx_cbor_field(&fields, 3);
    cx_cbor_text(out, e->id);
    cx_cbor_field(&fields, 4);
    cx_cbor_int(out, e->made_at_ns);
    write_lists(e, &fields, out);
    write_optional(&fields, 12, e->commit, out);
    if (begin_list(&fields, 13, e->home_count, false, out))
        for (size_t i = 0; i < e->home_count; i++)
            write_home(&e->homes[i], out);
    cx_cbor_fields_end(&fields);
    cx_status status = cx_buf_check(out, err);
    if (!cx_failed(status) && out->size - start > CX_EVIDENCE_DATA_MAX)
        status = cx_fail_at(err, CX_E_LIMIT, "EvidenceTooLarge", CX_NO_OFFSET,
                            "the evidence has %zu bytes, expected at most %u; 'cortex run export' "
                            "writes a whole bundle",
                            out->size - start, CX_EVIDENCE_DATA_MAX);
    if (cx_failed(status))
        out->size = start;
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct reader {
    cx_cbor_reader cbor;
    cx_arena *arena;
    bool no_memory;
    cx_evidence out;
} reader;

static cx_str read_name(reader *r)
{
    size_t at = r->cbor.offset;
    cx_str text = cx_cbor_read_text(&r->cbor);
    if (cx_cbor_ok(&r->cbor) && (text.size == 0 || text.size > CX_EVIDENCE_NAME_MAX))
        cx_cbor_reject(&r->cbor, at, "expected 1 to %d bytes of text", CX_EVIDENCE_NAME_MAX);
    return text;
}

static cx_bytes read_list(reader *r, const cx_cbor_members *members)
{
    cx_bytes bytes = cx_cbor_read_bytes(&r->cbor);
    if (bytes.size == 0 && cx_cbor_ok(&r->cbor))
        cx_cbor_reject_empty(&r->cbor, members);
    return bytes;
}

static void read_journal(reader *r, cx_evidence_journal *out)
{
    cx_cbor_members members = cx_cbor_read_members(&r->cbor);
    while (cx_cbor_next_member(&r->cbor, &members)) {
        switch (members.key) {
        case 0: out->actor = read_name(r); break;
        case 1:
            if (!cx_scheme_parse(cx_cbor_read_text(&r->cbor), &out->scheme) && cx_cbor_ok(&r->cbor))
                cx_cbor_reject(&r->cbor, members.key_offset, "found an unknown scheme");
            break;
        case 2: out->point.size = cx_cbor_read_uint_max(&r->cbor, UINT64_MAX - 1); break;
        case 3: out->point.root = cx_cbor_read_digest(&r->cbor); break;
        case 4: out->checkpoint = read_list(r, &members); break;
        default: cx_cbor_reject_member(&r->cbor, &members);
        }
    }
    cx_cbor_require(&r->cbor, &members, 0xf);
}

static const uint8_t *read_salt(reader *r)
{
    size_t at = r->cbor.offset;
    cx_bytes salt = cx_cbor_read_bytes(&r->cbor);
    if (cx_cbor_ok(&r->cbor) && salt.size != 32)
        cx_cbor_reject(&r->cbor, at, "expected 32 bytes of salt");
    return cx_cbor_ok(&r->cbor) ? salt.data : NULL;
}

/* A committed payload may have zero bytes: the salt tells that it is shown. */
static void read_entry(reader *r, cx_evidence_entry *out)
{
    cx_cbor_members members = cx_cbor_read_members(&r->cbor);
    while (cx_cbor_next_member(&r->cbor, &members)) {
        switch (members.key) {
        case 0:
            out->journal = (size_t)cx_cbor_read_uint_max(&r->cbor, CX_EVIDENCE_JOURNALS_MAX);
            if (cx_cbor_ok(&r->cbor) && out->journal >= r->out.journal_count)
                cx_cbor_reject(&r->cbor, members.key_offset, "no such journal in the file");
            break;
        case 1: out->inclusion = read_list(r, &members); break;
        case 2: out->payload = read_list(r, &members); break;
        case 3: out->salt = read_salt(r); break;
        default: cx_cbor_reject_member(&r->cbor, &members);
        }
    }
    cx_cbor_require(&r->cbor, &members, 0x3);
    if (cx_cbor_ok(&r->cbor) && out->payload.size != 0 && out->salt == NULL)
        cx_cbor_reject(&r->cbor, members.offset, "a payload needs its salt");
}

static void read_file(reader *r, cx_evidence_file *out)
{
    cx_cbor_members members = cx_cbor_read_members(&r->cbor);
    while (cx_cbor_next_member(&r->cbor, &members)) {
        switch (members.key) {
        case 0: out->path = read_name(r); break;
        case 1: out->bytes = cx_cbor_read_bytes(&r->cbor); break;
        default: cx_cbor_reject_member(&r->cbor, &members);
        }
    }
    cx_cbor_require(&r->cbor, &members, 0x3);
}

static size_t read_entry_number(reader *r, const cx_cbor_members *members)
{
    uint64_t number = cx_cbor_read_uint(&r->cbor);
    if (cx_cbor_ok(&r->cbor) && number >= r->out.entry_count)
        cx_cbor_reject(&r->cbor, members->key_offset, "no such entry in the file");
    return (size_t)number;
}

static void read_trace(reader *r, cx_evidence_trace *out)
{
    cx_cbor_members members = cx_cbor_read_members(&r->cbor);
    while (cx_cbor_next_member(&r->cbor, &members)) {
        switch (members.key) {
        case 0: out->entry = read_entry_number(r, &members); break;
        case 1: out->canonical = read_list(r, &members); break;
        case 2: (void)cx_cbor_read_exactly(&r->cbor, out->signature.bytes, 64); break;
        case 3: out->key_id = read_name(r); break;
        default: cx_cbor_reject_member(&r->cbor, &members);
        }
    }
    cx_cbor_require(&r->cbor, &members, 0xf);
}

static void read_memory(reader *r, cx_evidence_memory *out)
{
    cx_cbor_members members = cx_cbor_read_members(&r->cbor);
    while (cx_cbor_next_member(&r->cbor, &members)) {
        switch (members.key) {
        case 0: out->uri = read_name(r); break;
        case 1: out->entry = read_entry_number(r, &members); break;
        case 2: out->version = read_list(r, &members); break;
        default: cx_cbor_reject_member(&r->cbor, &members);
        }
    }
    cx_cbor_require(&r->cbor, &members, 0x3);
}

static void read_key(reader *r, cx_evidence_key *out)
{
    cx_cbor_members members = cx_cbor_read_members(&r->cbor);
    while (cx_cbor_next_member(&r->cbor, &members)) {
        switch (members.key) {
        case 0: out->id = read_name(r); break;
        case 1: (void)cx_cbor_read_exactly(&r->cbor, out->key.bytes, 32); break;
        case 2: out->role = read_name(r); break;
        default: cx_cbor_reject_member(&r->cbor, &members);
        }
    }
    cx_cbor_require(&r->cbor, &members, 0x7);
}

static void read_home(reader *r, cx_evidence_home *out)
{
    cx_cbor_members members = cx_cbor_read_members(&r->cbor);
    while (cx_cbor_next_member(&r->cbor, &members)) {
        switch (members.key) {
        case 0:
            out->journal = (size_t)cx_cbor_read_uint_max(&r->cbor, CX_EVIDENCE_JOURNALS_MAX);
            if (cx_cbor_ok(&r->cbor) && out->journal >= r->out.journal_count)
                cx_cbor_reject(&r->cbor, members.key_offset, "no such journal in the file");
            break;
        case 1: out->proof = read_list(r, &members); break;
        case 2: out->journal_root = cx_cbor_read_digest(&r->cbor); break;
        case 3: out->memories_root = cx_cbor_read_digest(&r->cbor); break;
        case 4: out->edges_root = cx_cbor_read_digest(&r->cbor); break;
        case 5: out->consistency = read_list(r, &members); break;
        default: cx_cbor_reject_member(&r->cbor, &members);
        }
    }
    cx_cbor_require(&r->cbor, &members, 0x1f);
}

static void check_home_order(reader *r, size_t offset)
{
    for (size_t i = 1; i < r->out.home_count && cx_cbor_ok(&r->cbor); i++)
        if (r->out.homes[i - 1].journal >= r->out.homes[i].journal)
            cx_cbor_reject(&r->cbor, offset, "expected home roots in order, each journal once");
}

/* Files are sorted by path, each once. */
static void check_order(reader *r, size_t offset)
{
    for (size_t i = 1; i < r->out.file_count && cx_cbor_ok(&r->cbor); i++)
        if (cx_str_cmp(r->out.files[i - 1].path, r->out.files[i].path) >= 0)
            cx_cbor_reject(&r->cbor, offset, "expected files sorted by path, each once");
}

#define READ_LIST(type, items, count, max, read_one)                                  \
    do {                                                                              \
        size_t at_ = r->cbor.offset;                                                  \
        size_t n_ = cx_cbor_read_array(&r->cbor, (max));                              \
        type *list_ = CX_ARENA_ARRAY(r->arena, type, n_ + 1);                         \
        r->no_memory = r->no_memory || list_ == NULL;                                 \
        for (size_t i_ = 0; i_ < n_ && cx_cbor_ok(&r->cbor) && !r->no_memory; i_++) { \
            memset(&list_[i_], 0, sizeof list_[i_]);                                  \
            read_one(r, &list_[i_]);                                                  \
        }                                                                             \
        r->out.items = list_;                                                         \
        r->out.count = n_;                                                            \
        if (n_ == 0 && optional && cx_cbor_ok(&r->cbor))                              \
            cx_cbor_reject(&r->cbor, at_, "an empty list is left out");               \
    } while (0)

static void read_pack(reader *r, cx_bytes *out)
{
    *out = cx_cbor_read_bytes(&r->cbor);
}

static void read_member(reader *r, const cx_cbor_members *members)
{
    cx_cbor_reader *cbor = &r->cbor;
    bool optional = members->key > 6;
    size_t at = cbor->offset;
    switch (members->key) {
    case 0:
        if (cx_cbor_read_uint(cbor) != 1 && cx_cbor_ok(cbor))
            cx_cbor_reject(cbor, members->key_offset, "expected schema 1");
        break;
    case 1:
        if (!cx_str_is(cx_cbor_read_text(cbor), CX_EVIDENCE_MAGIC) && cx_cbor_ok(cbor))
            cx_cbor_reject(cbor, members->key_offset, "expected \"" CX_EVIDENCE_MAGIC "\"");
        break;
    case 2: r->out.kind = read_name(r); break;
    case 3: r->out.id = read_name(r); break;
    case 4: r->out.made_at_ns = cx_cbor_read_int(cbor); break;
    case 5:
        READ_LIST(cx_evidence_journal, journals, journal_count, CX_EVIDENCE_JOURNALS_MAX,
                  read_journal);
        break;
    case 6:
        READ_LIST(cx_evidence_entry, entries, entry_count, CX_EVIDENCE_ENTRIES_MAX, read_entry);
        break;
    case 7:
        READ_LIST(cx_evidence_file, files, file_count, CX_EVIDENCE_FILES_MAX, read_file);
        check_order(r, at);
        break;
    case 8:
        READ_LIST(cx_evidence_trace, traces, trace_count, CX_EVIDENCE_PARTS_MAX, read_trace);
        break;
    case 9:
        READ_LIST(cx_evidence_memory, memories, memory_count, CX_EVIDENCE_PARTS_MAX, read_memory);
        break;
    case 10: READ_LIST(cx_bytes, packs, pack_count, CX_EVIDENCE_PARTS_MAX, read_pack); break;
    case 11: READ_LIST(cx_evidence_key, keys, key_count, CX_EVIDENCE_PARTS_MAX, read_key); break;
    case 12: r->out.commit = read_list(r, members); break;
    case 13:
        READ_LIST(cx_evidence_home, homes, home_count, CX_EVIDENCE_JOURNALS_MAX, read_home);
        check_home_order(r, at);
        break;
    default: cx_cbor_reject_member(cbor, members);
    }
}

cx_status cx_evidence_decode(cx_bytes bytes, cx_arena *arena, cx_evidence *out, cx_err *err)
{
    reader r = {.arena = arena};
    if (bytes.size > CX_EVIDENCE_DATA_MAX)
        return cx_fail_at(err, CX_E_FORMAT, "NonCanonical", CX_NO_OFFSET,
                          "found %zu bytes of data, expected at most %u", bytes.size,
                          CX_EVIDENCE_DATA_MAX);
    cx_cbor_begin(&r.cbor, bytes, "evidence");
    cx_cbor_members members = cx_cbor_read_members(&r.cbor);
    while (!r.no_memory && cx_cbor_next_member(&r.cbor, &members))
        read_member(&r, &members);
    if (r.no_memory)
        return cx_fail_nomem(err);
    cx_cbor_require(&r.cbor, &members, 0x7f);
    CX_TRY(cx_cbor_end(&r.cbor, err));
    *out = r.out;
    return CX_SUCCESS;
}
