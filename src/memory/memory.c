/*
 * memory.c - opening an actor's memories; keys, clock, reading records, and the begin and end of a
 * call.
 */
#include "memory/memory.h"

#include "base/api.h"
#include "memory/internal.h"

static const cx_memory_options no_options;

cx_status cx_memory_open(cx_home *home, cx_str actor, const cx_memory_options *options,
                         cx_memory **out, cx_err *err)
{
    CX_ASSERT(home != NULL && out != NULL);
    if (!cx_actor_ok(actor))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "an actor's name is 1 to %d bytes of UTF-8 without '/' and controls",
                          CX_ACTOR_NAME_MAX);
    if (options == NULL)
        options = &no_options;
    const cx_alloc *alloc = options->alloc != NULL ? options->alloc : cx_alloc_default();
    cx_memory *memory = cx_alloc_zeroed(alloc, 1, sizeof *memory);
    if (memory == NULL)
        return cx_fail_nomem(err);
    memory->alloc = alloc;
    memory->home = home;
    memory->options = *options;
    memory->actor_size = actor.size;
    memcpy(memory->actor, actor.data, actor.size);
    *out = memory;
    return CX_SUCCESS;
}

void cx_memory_close(cx_memory *memory)
{
    if (memory == NULL)
        return;
    cx_alloc_free(memory->alloc, memory, sizeof *memory);
}

cx_str cx_memory_actor(const cx_memory *memory)
{
    return cx_str_from(memory->actor, memory->actor_size);
}

int64_t cx_memory_now(const cx_memory *memory)
{
    if (memory->options.now_ns != NULL)
        return memory->options.now_ns(memory->options.now_arg);
    const cx_io *io = cx_home_io(memory->home);
    return (int64_t)io->wall_ns(io);
}

int64_t cx_memory_seconds(int64_t ns)
{
    const int64_t second = 1000000000;
    return ns / second - (ns % second < 0);
}

/* --- keys ------------------------------------------------------------------------------------ */

void cx_memory_put_u64(uint8_t *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * (7 - i)));
}

uint64_t cx_memory_get_u64(const uint8_t *data)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value = value << 8 | data[i];
    return value;
}

void cx_memory_key_begin(cx_memory_key *key, const char *prefix)
{
    key->size = 0;
    cx_memory_key_add(key, prefix, strlen(prefix));
}

void cx_memory_key_add(cx_memory_key *key, const void *data, size_t size)
{
    CX_ASSERT(size <= sizeof key->data - key->size);
    if (size != 0) /* nothing may be NULL */
        memcpy(key->data + key->size, data, size);
    key->size += size;
}

void cx_memory_key_u64(cx_memory_key *key, uint64_t value)
{
    uint8_t bytes[8];
    cx_memory_put_u64(bytes, value);
    cx_memory_key_add(key, bytes, sizeof bytes);
}

cx_memory_key cx_memory_key_of(const char *prefix, const cx_id *id)
{
    cx_memory_key key;
    cx_memory_key_begin(&key, prefix);
    cx_memory_key_add(&key, id->bytes, sizeof id->bytes);
    return key;
}

cx_memory_key cx_memory_key_version(const cx_id *id, uint64_t version)
{
    cx_memory_key key = cx_memory_key_of("mv/", id);
    cx_memory_key_add(&key, "/v/", 3);
    cx_memory_key_u64(&key, version);
    return key;
}

cx_memory_key cx_memory_key_edge(const cx_edge_name *name, bool to)
{
    const cx_id *first = to ? &name->dst : &name->src;
    const cx_id *second = to ? &name->src : &name->dst;
    cx_memory_key key = cx_memory_key_of(to ? "e/to/" : "e/from/", first);
    cx_memory_key_add(&key, &name->type, 1);
    cx_memory_key_add(&key, second->bytes, sizeof second->bytes);
    return key;
}

cx_memory_key cx_memory_key_rate(char letter, cx_str first, cx_str second)
{
    const cx_digest name = cx_rate_name(first, second);
    cx_memory_key key;
    cx_memory_key_begin(&key, CX_MEMORY_RATE_KEY);
    cx_memory_key_add(&key, &letter, 1);
    cx_memory_key_add(&key, name.bytes, sizeof name.bytes);
    return key;
}

static void add_counted(cx_memory_key *key, cx_str text)
{
    uint8_t size = (uint8_t)text.size;
    CX_ASSERT(text.size <= CX_COMPACT_NAME_MAX);
    cx_memory_key_add(key, &size, 1);
    cx_memory_key_add(key, text.data, text.size);
}

cx_memory_key cx_memory_key_checkpoint(cx_str intent, cx_str step)
{
    cx_memory_key key;
    cx_memory_key_begin(&key, "chk/");
    add_counted(&key, intent);
    cx_memory_key_add(&key, "/", 1);
    add_counted(&key, step);
    return key;
}

/* --- reading --------------------------------------------------------------------------------- */

static bool is_no_actor(cx_status status, const cx_err *err)
{
    return status.code == CX_E_NOT_FOUND && err->tag != NULL && strcmp(err->tag, "NoActor") == 0;
}

/* For a reader an actor that does not exist yet is not an error. */
static cx_status ignore_no_actor(cx_status status, const cx_err *found, cx_err *err)
{
    if (!cx_failed(status) || is_no_actor(status, found))
        return CX_SUCCESS;
    if (err != NULL)
        *err = *found;
    return status;
}

cx_status cx_memory_fetch(const cx_memory_source *from, cx_bytes key, cx_bytes *out,
                          bool *out_found, cx_err *err)
{
    cx_memory *memory = from->memory;
    *out_found = false;
    if (from->txn != NULL)
        return cx_txn_get(from->txn, key, out, out_found, err);
    cx_err found;
    cx_status status;
    if (from->pinned != NULL) {
        bool erased = false;
        cx_digest hash;
        status = cx_home_get_at(memory->home, cx_memory_actor(memory),
                                from->pinned->manifest.snapshot_seq, key, from->arena, out,
                                out_found, &erased, &hash, &found);
        if (!cx_failed(status) && erased)
            *out_found = false;
    } else {
        status = cx_home_get(memory->home, cx_memory_actor(memory), key, from->arena, out,
                             out_found, &found);
    }
    return ignore_no_actor(status, &found, err);
}

static cx_status scan_records(cx_memory *memory, const cx_scan *what, cx_err *err)
{
    cx_scan scan = *what;
    scan.actor = cx_memory_actor(memory);
    cx_err found;
    return ignore_no_actor(cx_home_scan(memory->home, &scan, &found), &found, err);
}

cx_status cx_memory_scan(cx_memory *memory, cx_bytes prefix, cx_bytes from, cx_memory_row *row,
                         void *arg, cx_err *err)
{
    const cx_scan scan = {.prefix = prefix, .from = from, .row = row, .arg = arg};
    return scan_records(memory, &scan, err);
}

cx_status cx_memory_scan_back(cx_memory *memory, cx_bytes prefix, cx_bytes from, cx_memory_row *row,
                              void *arg, cx_err *err)
{
    const cx_scan scan = {
        .prefix = prefix, .from = from, .backwards = true, .row = row, .arg = arg};
    return scan_records(memory, &scan, err);
}

cx_status cx_memory_find_head(const cx_memory_source *from, const cx_id *id, cx_memory_head *out,
                              bool *out_found, cx_err *err)
{
    cx_memory_key key = cx_memory_key_of("m/", id);
    CX_TRY(cx_memory_fetch(from, cx_memory_key_bytes(&key), &out->bytes, out_found, err));
    return *out_found ? cx_head_decode(out->bytes, from->arena, &out->head, err) : CX_SUCCESS;
}

static cx_status fail_not_found(const cx_id *id, cx_err *err)
{
    char text[CX_ULID_SIZE];
    cx_ulid_format(id, text);
    return cx_fail_at(err, CX_E_NOT_FOUND, "NotFound", CX_NO_OFFSET, "there is no memory %.*s",
                      CX_ULID_SIZE, text);
}

cx_status cx_memory_need_head(const cx_memory_source *from, const cx_id *id, uint8_t type,
                              cx_memory_head *out, cx_err *err)
{
    bool found = false;
    CX_TRY(cx_memory_find_head(from, id, out, &found, err));
    if (!found)
        return fail_not_found(id, err);
    if (type != 0 && out->head.type != type)
        return cx_fail_at(err, CX_E_CONFLICT, "TypeMismatch", CX_NO_OFFSET,
                          "found a memory of type %.*s, expected %.*s as the URI says",
                          (int)cx_uri_type_name(out->head.type).size,
                          cx_uri_type_name(out->head.type).data, (int)cx_uri_type_name(type).size,
                          cx_uri_type_name(type).data);
    return CX_SUCCESS;
}

static cx_status fail_no_version(const cx_id *id, uint64_t version, cx_err *err)
{
    char text[CX_ULID_SIZE];
    cx_ulid_format(id, text);
    return cx_fail_at(err, CX_E_NOT_FOUND, "NotFound", CX_NO_OFFSET,
                      "memory %.*s has no version %llu", CX_ULID_SIZE, text,
                      (unsigned long long)version);
}

cx_status cx_memory_need_uri(const cx_memory_source *from, const cx_uri *uri, cx_memory_head *out,
                             cx_err *err)
{
    if (uri->is_edge)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the URI names an edge, expected a memory");
    CX_TRY(cx_memory_need_head(from, &uri->id, uri->type, out, err));
    if (uri->version == 0 || uri->version > out->head.current_version)
        return fail_no_version(&uri->id, uri->version, err);
    return CX_SUCCESS;
}

cx_status cx_memory_need_version(const cx_memory_source *from, const cx_id *id, uint64_t version,
                                 cx_version_record *out, cx_err *err)
{
    /* Versions never change, so a snapshot's versions are read from the current records. */
    cx_memory_source current = *from;
    current.pinned = NULL;
    cx_memory_key key = cx_memory_key_version(id, version);
    cx_bytes bytes;
    bool found = false;
    CX_TRY(cx_memory_fetch(&current, cx_memory_key_bytes(&key), &bytes, &found, err));
    if (!found)
        return fail_no_version(id, version, err);
    return cx_version_decode(bytes, from->arena, out, err);
}

cx_status cx_memory_find_salience(const cx_memory_source *from, const cx_id *id, cx_salience *out,
                                  bool *out_found, cx_err *err)
{
    cx_memory_source current = *from;
    current.pinned = NULL;
    cx_memory_key key = cx_memory_key_of("salience/", id);
    cx_bytes bytes;
    CX_TRY(cx_memory_fetch(&current, cx_memory_key_bytes(&key), &bytes, out_found, err));
    return *out_found ? cx_salience_decode(bytes, out, err) : CX_SUCCESS;
}

cx_status cx_memory_salience_at(const cx_memory_source *from, const cx_head *head, cx_salience *out,
                                cx_err *err)
{
    bool found = false;
    CX_TRY(cx_memory_find_salience(from, &head->id, out, &found, err));
    if (found)
        return CX_SUCCESS;
    cx_version_record version;
    CX_TRY(cx_memory_need_version(from, &head->id, head->current_version, &version, err));
    *out = cx_salience_absent(version.created_at, head->importance);
    return CX_SUCCESS;
}

cx_status cx_memory_weights_at(const cx_memory_source *from, cx_weights_record *out, cx_err *err)
{
    cx_memory_source current = *from;
    current.pinned = NULL;
    cx_bytes bytes;
    bool found = false;
    CX_TRY(cx_memory_fetch(&current, cx_str_bytes(CX_STR(CX_MEMORY_WEIGHTS_KEY)), &bytes, &found,
                           err));
    if (found)
        return cx_weights_decode(bytes, out, err);
    *out = (cx_weights_record){.weights = cx_weights_start()};
    return CX_SUCCESS;
}

bool cx_memory_is_expired(const cx_version_record *version, int64_t now_ns)
{
    return version->expires && cx_memory_seconds(now_ns) > version->expires_at;
}

cx_status cx_memory_make_view(const cx_memory_source *from, const cx_memory_head *head,
                              uint64_t version, cx_memory_view *out, cx_err *err)
{
    cx_memory_view view = {
        .uri = {.type = head->head.type, .id = head->head.id, .version = version},
        .head = head->head,
        .head_bytes = head->bytes,
    };
    CX_TRY(cx_memory_need_version(from, &head->head.id, version, &view.version, err));
    *out = view;
    return CX_SUCCESS;
}

/* --- one call -------------------------------------------------------------------------------- */

cx_status cx_memory_begin(cx_memory *memory, cx_memory_call *out, cx_err *err)
{
    cx_txn *txn = NULL;
    cx_str actor = cx_memory_actor(memory);
    if (memory->options.has_scheme)
        CX_TRY(cx_txn_begin_as(memory->home, actor, memory->options.scheme, &txn, err));
    else
        CX_TRY(cx_txn_begin(memory->home, actor, &txn, err));
    cx_arena *arena = cx_txn_arena(txn);
    *out = (cx_memory_call){.from = {.memory = memory, .arena = arena, .txn = txn},
                            .memory = memory,
                            .txn = txn,
                            .arena = arena};
    cx_buf_init(&out->buf, memory->alloc);
    cx_status status = cx_memory_request_begin(out, err);
    if (cx_failed(status)) {
        cx_buf_done(&out->buf);
        cx_txn_abort(txn);
    }
    return status;
}

cx_status cx_memory_end(cx_memory_call *call, cx_status status, cx_err *err)
{
    if (!cx_failed(status))
        status = cx_memory_request_end(call, err);
    cx_buf_done(&call->buf);
    if ((!call->wrote && !call->requested) || (cx_failed(status) && !call->keep)) {
        cx_txn_abort(call->txn);
        return status;
    }
    CX_TRY(cx_txn_commit(call->txn, err));
    return status;
}

int64_t cx_memory_call_now(cx_memory_call *call)
{
    if (!call->has_now) {
        call->now = cx_memory_now(call->memory);
        call->has_now = true;
    }
    return call->now;
}

/* The bucket as it is before this call; derive.c takes from it when the entry is committed. */
cx_status cx_memory_rate_check(cx_memory_call *call, char letter, cx_rate rate, cx_str first,
                               cx_str second, cx_err *err)
{
    cx_bucket bucket = {.used = false};
    cx_memory_key key = cx_memory_key_rate(letter, first, second);
    cx_bytes value;
    bool found = false;
    CX_TRY(cx_memory_fetch(&call->from, cx_memory_key_bytes(&key), &value, &found, err));
    if (found && !cx_bucket_decode(value, rate, &bucket))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the row of a rate limit is damaged; run 'cortex tables rebuild'");
    if (cx_bucket_take(&bucket, rate, cx_memory_call_now(call)))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_DENIED, "RateLimited", CX_NO_OFFSET, "too many in a short time");
}

cx_status cx_memory_put_entry(cx_memory_call *call, const cx_payload *payload, cx_str by,
                              const cx_id *subject, uint64_t *out_seq, cx_err *err)
{
    cx_buf_clear(&call->buf);
    cx_payload_encode(payload, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    const cx_entry_draft draft = {
        .kind = cx_entry_kind_name(payload->kind),
        .created_at_ns = cx_memory_call_now(call),
        .created_by = cx_str_bytes(by),
        .payload = cx_buf_bytes(&call->buf),
        .subject = subject,
    };
    uint64_t seq;
    CX_TRY(cx_txn_entry(call->txn, &draft, &seq, err));
    if (!call->wrote)
        call->seq = seq;
    call->wrote = true;
    if (out_seq != NULL)
        *out_seq = seq;
    return CX_SUCCESS;
}

cx_status cx_memory_put_record(cx_memory_call *call, const cx_memory_key *key, cx_bytes value,
                               bool erasable, cx_err *err)
{
    return cx_txn_put(call->txn, cx_memory_key_bytes(key), value, erasable, err);
}

cx_status cx_memory_put_head(cx_memory_call *call, const cx_head *head, bool erasable, cx_err *err)
{
    cx_buf_clear(&call->buf);
    cx_head_encode(head, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    cx_memory_key key = cx_memory_key_of("m/", &head->id);
    return cx_memory_put_record(call, &key, cx_buf_bytes(&call->buf), erasable, err);
}

cx_status cx_memory_put_version(cx_memory_call *call, const cx_version_record *version,
                                bool erasable, cx_err *err)
{
    cx_buf_clear(&call->buf);
    cx_version_encode(version, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    cx_memory_key key = cx_memory_key_version(&version->id, version->version);
    return cx_memory_put_record(call, &key, cx_buf_bytes(&call->buf), erasable, err);
}

cx_status cx_memory_hash_head(cx_memory_call *call, const cx_head *head, cx_digest *out,
                              cx_err *err)
{
    cx_buf_clear(&call->buf);
    cx_head_encode(head, &call->buf);
    CX_TRY(cx_buf_check(&call->buf, err));
    *out = cx_digest_of(cx_buf_bytes(&call->buf));
    return CX_SUCCESS;
}

cx_status cx_memory_new_blind(cx_memory_call *call, cx_id *out, cx_err *err)
{
    const cx_io *io = cx_home_io(call->memory->home);
    int failed = io->random(io, out->bytes, sizeof out->bytes);
    return failed == 0 ? CX_SUCCESS
                       : cx_fail_os(err, -failed, "cannot read random bytes for a blind");
}

/* --- checking -------------------------------------------------------------------------------- */

cx_status cx_memory_check_text(cx_str text, const char *what, size_t min, size_t max, cx_err *err)
{
    if (text.size < min || text.size > max)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "%s has %zu bytes, expected %zu to %zu", what, text.size, min, max);
    if (!cx_utf8_valid(text))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET, "%s is not UTF-8",
                          what);
    return CX_SUCCESS;
}

cx_status cx_memory_check_tags(const cx_str *tags, size_t count, cx_err *err)
{
    if (count > CX_TAGS_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "TooManyTags", CX_NO_OFFSET,
                          "found %zu tags, expected at most %d", count, CX_TAGS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (tags[i].size > CX_TAG_SIZE_MAX)
            return cx_fail_at(err, CX_E_LIMIT, "TagTooLong", CX_NO_OFFSET,
                              "tag %zu has %zu bytes, expected at most %d", i + 1, tags[i].size,
                              CX_TAG_SIZE_MAX);
        CX_TRY(cx_memory_check_text(tags[i], "a tag", 1, CX_TAG_SIZE_MAX, err));
    }
    return CX_SUCCESS;
}

cx_status cx_memory_check_frames(const cx_frame *frames, size_t count, cx_err *err)
{
    if (count > CX_FRAMES_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "TooManyFrames", CX_NO_OFFSET,
                          "found %zu frames, expected at most %d", count, CX_FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (frames[i].verb < 1 || frames[i].verb > CX_VERB_MAX || frames[i].kind < 1 ||
            frames[i].kind > CX_KIND_MAX)
            return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                              "frame %zu has verb %u and kind %u, expected 1 to %d and 1 to %d",
                              i + 1, frames[i].verb, frames[i].kind, CX_VERB_MAX, CX_KIND_MAX);
        CX_TRY(cx_memory_check_text(frames[i].ref, "a frame's reference", 1, CX_REF_SIZE_MAX, err));
    }
    return CX_SUCCESS;
}

cx_status cx_memory_check_levels(uint8_t importance, uint8_t visibility, cx_err *err)
{
    if (importance > CX_IMPORTANCE_MAX)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "importance is %u, expected 0 to %d", importance, CX_IMPORTANCE_MAX);
    if (visibility < CX_VISIBILITY_PRIVATE || visibility > CX_VISIBILITY_ACTOR_PUBLIC)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "visibility is %u, expected 1 to 3", visibility);
    return CX_SUCCESS;
}

static cx_status fail_dangling(cx_str text, cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "DanglingReference", CX_NO_OFFSET,
                      "derived_from names %.*s, which does not exist", (int)text.size, text.data);
}

/* The memory that a cortex URI names must exist; it may be tombstoned. */
static cx_status check_reference(const cx_memory_source *from, cx_str text, cx_err *err)
{
    if (!cx_str_starts(text, CX_STR("matrix://cortex/")))
        return CX_SUCCESS;
    cx_uri uri;
    CX_TRY(cx_uri_parse(text, &uri, err));
    const cx_edge_name edge = {.src = uri.id, .type = uri.type, .dst = uri.dst};
    cx_memory_key key = uri.is_edge ? cx_memory_key_edge(&edge, false)
                                    : cx_memory_key_version(&uri.id, uri.version);
    cx_bytes bytes;
    bool found = false;
    CX_TRY(cx_memory_fetch(from, cx_memory_key_bytes(&key), &bytes, &found, err));
    if (!found)
        return fail_dangling(text, err);
    if (uri.is_edge)
        return CX_SUCCESS;
    cx_version_record version;
    CX_TRY(cx_version_decode(bytes, from->arena, &version, err));
    return version.type == uri.type ? CX_SUCCESS : fail_dangling(text, err);
}

cx_status cx_memory_check_provenance(const cx_memory_source *from, const cx_provenance *provenance,
                                     cx_err *err)
{
    if (!cx_source_ok(provenance->source))
        return cx_fail_at(err, CX_E_USAGE, "InvalidSource", CX_NO_OFFSET,
                          "provenance source is '%.*s', expected user_input, derived, observed or"
                          " imported",
                          (int)(provenance->source.size > 64 ? 64 : provenance->source.size),
                          provenance->source.data);
    if (provenance->derived_count > CX_DERIVED_FROM_MAX ||
        provenance->attestation_count > CX_DERIVED_FROM_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "InvalidArgument", CX_NO_OFFSET,
                          "provenance lists more than %d references", CX_DERIVED_FROM_MAX);
    for (size_t i = 0; i < provenance->attestation_count; i++)
        CX_TRY(cx_memory_check_text(provenance->attestations[i], "an attestation", 0,
                                    CX_REASON_SIZE_MAX, err));
    if (provenance->signed_by.size > CX_MEMORY_BY_SIZE_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "InvalidArgument", CX_NO_OFFSET,
                          "signed_by has %zu bytes; at most %d are allowed",
                          provenance->signed_by.size, CX_MEMORY_BY_SIZE_MAX);
    if (provenance->signature.size > CX_REASON_SIZE_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "InvalidArgument", CX_NO_OFFSET,
                          "a signature of %zu bytes", provenance->signature.size);
    for (size_t i = 0; i < provenance->derived_count; i++) {
        CX_TRY(cx_memory_check_text(provenance->derived_from[i], "a reference in derived_from", 1,
                                    CX_REASON_SIZE_MAX, err));
        CX_TRY(check_reference(from, provenance->derived_from[i], err));
    }
    return CX_SUCCESS;
}
