/*
 * derive.c - the rows that this module derives from entries and records (ledger.md §5): e/to/,
 * idx/ (with words, requests and rate limits), salience/, meta/salience_weights, meta/embed_*.
 *
 * D1  Rows are a function of the log alone: the same frames give the same rows, live or rebuilt.
 *     Times in keys are the entry's nanoseconds.
 * D2  A frame whose content was erased derives nothing; the redact_memory entry that explains it
 *     removes the rows that were derived before.
 *
 * The row of a tag or frame has the time at which the memory got it, which the Head does not have.
 * idx/at/<id> stores these times: u64be time of the write; a byte with the number of tags, then the
 * tags (8 bytes of hash, u64be time); the same for frames (verb, kind, 16 bytes of hash, u64be
 * time).
 */
#include "base/api.h"
#include "crypto/api.h"
#include "json/api.h"
#include "memory/internal.h"
#include "memory/words.h"

typedef struct placed_tag {
    uint8_t hash[8];
    uint64_t at;
} placed_tag;

typedef struct placed_frame {
    uint8_t verb, kind;
    cx_id object;
    uint64_t at;
} placed_frame;

/* The decoded value of idx/at/. */
typedef struct placed {
    bool there;
    uint64_t at;
    size_t tag_count, frame_count;
    placed_tag tags[CX_TAGS_MAX];
    placed_frame frames[CX_FRAMES_MAX];
} placed;

#define PLACED_TAG_SIZE (8 + 8)
#define PLACED_FRAME_SIZE (1 + 1 + 16 + 8)
#define PLACED_SIZE_MAX \
    (8 + 1 + CX_TAGS_MAX * PLACED_TAG_SIZE + 1 + CX_FRAMES_MAX * PLACED_FRAME_SIZE)

/* --- idx/at/ --------------------------------------------------------------------------------- */

static cx_status fail_damaged_row(cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "a row of the index of memories is damaged; run 'cortex tables rebuild'");
}

static bool read_placed(cx_bytes bytes, placed *out)
{
    cx_reader reader = cx_reader_over(bytes);
    out->there = true;
    out->at = cx_reader_u64(&reader);
    out->tag_count = cx_reader_u8(&reader);
    if (out->tag_count > CX_TAGS_MAX)
        return false;
    for (size_t i = 0; i < out->tag_count; i++) {
        cx_bytes hash = cx_reader_bytes(&reader, sizeof out->tags[i].hash);
        if (hash.size != 0)
            memcpy(out->tags[i].hash, hash.data, sizeof out->tags[i].hash);
        out->tags[i].at = cx_reader_u64(&reader);
    }
    out->frame_count = cx_reader_u8(&reader);
    if (out->frame_count > CX_FRAMES_MAX)
        return false;
    for (size_t i = 0; i < out->frame_count; i++) {
        placed_frame *frame = &out->frames[i];
        frame->verb = cx_reader_u8(&reader);
        frame->kind = cx_reader_u8(&reader);
        cx_bytes object = cx_reader_bytes(&reader, sizeof frame->object.bytes);
        if (object.size != 0)
            memcpy(frame->object.bytes, object.data, sizeof frame->object.bytes);
        frame->at = cx_reader_u64(&reader);
    }
    return cx_reader_ok(&reader) && cx_reader_left(&reader) == 0;
}

static cx_bytes write_placed(const placed *what, uint8_t *out)
{
    cx_writer writer = cx_writer_over(out, PLACED_SIZE_MAX);
    cx_writer_uint(&writer, what->at, 8);
    cx_writer_uint(&writer, what->tag_count, 1);
    for (size_t i = 0; i < what->tag_count; i++) {
        cx_writer_put(&writer, what->tags[i].hash, sizeof what->tags[i].hash);
        cx_writer_uint(&writer, what->tags[i].at, 8);
    }
    cx_writer_uint(&writer, what->frame_count, 1);
    for (size_t i = 0; i < what->frame_count; i++) {
        const placed_frame *frame = &what->frames[i];
        cx_writer_uint(&writer, frame->verb, 1);
        cx_writer_uint(&writer, frame->kind, 1);
        cx_writer_put(&writer, frame->object.bytes, sizeof frame->object.bytes);
        cx_writer_uint(&writer, frame->at, 8);
    }
    CX_ASSERT(cx_writer_ok(&writer));
    return cx_bytes_from(out, writer.offset);
}

static placed_tag *find_placed_tag(placed *what, const uint8_t hash[8])
{
    for (size_t i = 0; i < what->tag_count; i++)
        if (memcmp(what->tags[i].hash, hash, 8) == 0)
            return &what->tags[i];
    return NULL;
}

static placed_frame *find_placed_frame(placed *what, const placed_frame *wanted)
{
    for (size_t i = 0; i < what->frame_count; i++)
        if (what->frames[i].verb == wanted->verb && what->frames[i].kind == wanted->kind &&
            memcmp(what->frames[i].object.bytes, wanted->object.bytes, 16) == 0)
            return &what->frames[i];
    return NULL;
}

/* The new times of the Head's tags and frames: those that existed before keep their time. */
static bool place_labels(const cx_head *head, placed *before, uint64_t now, placed *out)
{
    *out = (placed){.there = true, .at = before->there ? before->at : now};
    if (head->tag_count > CX_TAGS_MAX || head->frame_count > CX_FRAMES_MAX)
        return false;
    for (size_t i = 0; i < head->tag_count; i++) {
        placed_tag tag = {.at = now};
        cx_tag_hash(head->tags[i], tag.hash);
        const placed_tag *old = find_placed_tag(before, tag.hash);
        if (old != NULL)
            tag.at = old->at;
        if (find_placed_tag(out, tag.hash) == NULL)
            out->tags[out->tag_count++] = tag;
    }
    for (size_t i = 0; i < head->frame_count; i++) {
        placed_frame frame = {.verb = head->frames[i].verb,
                              .kind = head->frames[i].kind,
                              .object = cx_obj_hash(head->frames[i].ref),
                              .at = now};
        const placed_frame *old = find_placed_frame(before, &frame);
        if (old != NULL)
            frame.at = old->at;
        if (find_placed_frame(out, &frame) == NULL)
            out->frames[out->frame_count++] = frame;
    }
    return true;
}

/* --- idx/ ------------------------------------------------------------------------------------ */

#define INDEX_KEY_SIZE_MAX 64
#define INDEX_ROWS_MAX (1 + CX_TAGS_MAX + 2 * CX_FRAMES_MAX)

typedef struct index_key {
    size_t size;
    uint8_t data[INDEX_KEY_SIZE_MAX];
} index_key;

typedef struct index_rows {
    size_t count;
    index_key keys[INDEX_ROWS_MAX];
} index_rows;

static void add_row(index_rows *rows, const char *prefix, const uint8_t *head, size_t head_size,
                    const uint64_t *at, const cx_id *id)
{
    CX_ASSERT(rows->count < INDEX_ROWS_MAX);
    index_key *key = &rows->keys[rows->count++];
    cx_writer writer = cx_writer_over(key->data, sizeof key->data);
    cx_writer_put(&writer, prefix, strlen(prefix));
    cx_writer_put(&writer, head, head_size);
    if (at != NULL)
        cx_writer_uint(&writer, *at, 8);
    cx_writer_put(&writer, id->bytes, sizeof id->bytes);
    CX_ASSERT(cx_writer_ok(&writer));
    key->size = writer.offset;
}

/* Lists the index rows of a memory; none for a memory that did not exist. */
static void list_rows(const placed *what, uint8_t type, const cx_id *id, index_rows *out)
{
    out->count = 0;
    if (!what->there)
        return;
    add_row(out, "idx/type/", &type, 1, &what->at, id);
    for (size_t i = 0; i < what->tag_count; i++)
        add_row(out, "idx/tag/", what->tags[i].hash, sizeof what->tags[i].hash, &what->tags[i].at,
                id);
    for (size_t i = 0; i < what->frame_count; i++) {
        const placed_frame *frame = &what->frames[i];
        uint8_t head[1 + 1 + 16] = {frame->verb, frame->kind};
        memcpy(head + 2, frame->object.bytes, 16);
        add_row(out, "idx/frame/", head, sizeof head, NULL, id);
        if (type != CX_TYPE_EVENT)
            continue;
        memcpy(head + 1, frame->object.bytes, 16);
        add_row(out, "idx/actor_obj/", head, 1 + 16, &frame->at, id);
    }
}

static bool has_row(const index_rows *rows, const index_key *key)
{
    for (size_t i = 0; i < rows->count; i++)
        if (rows->keys[i].size == key->size &&
            memcmp(rows->keys[i].data, key->data, key->size) == 0)
            return true;
    return false;
}

static cx_status replace_rows(cx_derive *at, const index_rows *before, const index_rows *after,
                              cx_err *err)
{
    const cx_bytes empty = {NULL, 0};
    for (size_t i = 0; i < before->count; i++) {
        const index_key *key = &before->keys[i];
        if (!has_row(after, key))
            CX_TRY(cx_derive_remove(at, cx_bytes_from(key->data, key->size), err));
    }
    for (size_t i = 0; i < after->count; i++) {
        const index_key *key = &after->keys[i];
        if (!has_row(before, key))
            CX_TRY(cx_derive_put(at, cx_bytes_from(key->data, key->size), empty, err));
    }
    return CX_SUCCESS;
}

static cx_status index_head(cx_derive *at, const cx_entry *entry, const cx_head *head,
                            bool redacted, cx_err *err)
{
    placed before = {.there = false}, after = {.there = false};
    cx_memory_key key = cx_memory_key_of("idx/at/", &head->id);
    cx_bytes value;
    bool found = false;
    CX_TRY(cx_derive_get(at, cx_memory_key_bytes(&key), &value, &found, err));
    if (found && !read_placed(value, &before))
        return fail_damaged_row(err);
    if (!redacted && !place_labels(head, &before, (uint64_t)entry->created_at_ns, &after))
        return CX_SUCCESS;
    index_rows old_rows, new_rows;
    list_rows(&before, head->type, &head->id, &old_rows);
    list_rows(&after, head->type, &head->id, &new_rows);
    CX_TRY(replace_rows(at, &old_rows, &new_rows, err));
    if (redacted)
        return found ? cx_derive_remove(at, cx_memory_key_bytes(&key), err) : CX_SUCCESS;
    uint8_t bytes[PLACED_SIZE_MAX];
    cx_bytes now = write_placed(&after, bytes);
    if (found && cx_str_eq(cx_bytes_str(now), cx_bytes_str(value)))
        return CX_SUCCESS;
    return cx_derive_put(at, cx_memory_key_bytes(&key), now, err);
}

/* --- salience -------------------------------------------------------------------------------- */

static cx_status get_weights(cx_derive *at, cx_weights_record *out, cx_err *err)
{
    cx_bytes value;
    bool found = false;
    CX_TRY(cx_derive_get(at, cx_str_bytes(CX_STR(CX_MEMORY_WEIGHTS_KEY)), &value, &found, err));
    if (found)
        return cx_weights_decode(value, out, err);
    *out = (cx_weights_record){.weights = cx_weights_start()};
    return CX_SUCCESS;
}

static cx_status get_salience(cx_derive *at, const cx_id *id, cx_salience *out, bool *out_found,
                              cx_err *err)
{
    cx_memory_key key = cx_memory_key_of("salience/", id);
    cx_bytes value;
    CX_TRY(cx_derive_get(at, cx_memory_key_bytes(&key), &value, out_found, err));
    return *out_found ? cx_salience_decode(value, out, err) : CX_SUCCESS;
}

/* The bytes of a small record, in the frame's arena. */
static cx_status put_small(cx_derive *at, cx_bytes key, const cx_salience *salience,
                           const cx_weights_record *weights, cx_err *err)
{
    cx_buf buf;
    cx_buf_init(&buf, cx_derive_arena(at)->alloc);
    if (salience != NULL)
        cx_salience_encode(salience, &buf);
    else
        cx_weights_encode(weights, &buf);
    cx_status status = cx_buf_check(&buf, err);
    if (!cx_failed(status))
        status = cx_derive_put(at, key, cx_buf_bytes(&buf), err);
    cx_buf_done(&buf);
    return status;
}

static cx_status put_salience(cx_derive *at, const cx_id *id, const cx_salience *salience,
                              cx_err *err)
{
    cx_memory_key key = cx_memory_key_of("salience/", id);
    return put_small(at, cx_memory_key_bytes(&key), salience, NULL, err);
}

/* A pinned write has its salience record in the frame (write.c). */
static cx_status salience_of_write(cx_derive *at, const cx_entry *entry, const cx_head *head,
                                   cx_err *err)
{
    cx_weights_record weights;
    cx_salience there;
    bool found = false;
    CX_TRY(get_weights(at, &weights, err));
    CX_TRY(get_salience(at, &head->id, &there, &found, err));
    const cx_salience salience = cx_salience_on_write(head->importance, found && there.pinned,
                                                      &weights.weights, entry->created_at_ns);
    return put_salience(at, &head->id, &salience, err);
}

static cx_status salience_of_change(cx_derive *at, const cx_entry *entry, const cx_head *head,
                                    cx_err *err)
{
    cx_weights_record weights;
    cx_salience salience;
    bool found = false;
    CX_TRY(get_weights(at, &weights, err));
    CX_TRY(get_salience(at, &head->id, &salience, &found, err));
    if (!found)
        return CX_SUCCESS;
    cx_salience_on_update(&salience, head->importance, &weights.weights, entry->created_at_ns);
    return put_salience(at, &head->id, &salience, err);
}

static cx_status salience_of_tombstone(cx_derive *at, const cx_entry *entry, const cx_id *id,
                                       cx_err *err)
{
    cx_salience salience;
    bool found = false;
    CX_TRY(get_salience(at, id, &salience, &found, err));
    if (!found)
        return CX_SUCCESS;
    cx_salience_on_tombstone(&salience, entry->created_at_ns);
    return put_salience(at, id, &salience, err);
}

static cx_status salience_of_attest(cx_derive *at, const cx_entry *entry,
                                    const cx_payload_attest *attest, cx_err *err)
{
    const int delta = cx_attest_delta(attest->outcome, attest->reason);
    cx_weights_record weights;
    CX_TRY(get_weights(at, &weights, err));
    for (size_t i = 0; i < attest->cited_count; i++) {
        cx_salience salience;
        bool found = false;
        CX_TRY(get_salience(at, &attest->cited[i], &salience, &found, err));
        if (!found)
            continue;
        cx_salience_on_citation(&salience, delta, &weights.weights, entry->created_at_ns);
        CX_TRY(put_salience(at, &attest->cited[i], &salience, err));
    }
    return CX_SUCCESS;
}

/* The weights are read from the entry, never recomputed (§10.1). */
static cx_status derive_weights(cx_derive *at, const cx_entry *entry,
                                const cx_payload_learn_weights *learn, cx_err *err)
{
    cx_weights_record weights;
    if (learn->skipped)
        return CX_SUCCESS;
    CX_TRY(get_weights(at, &weights, err));
    weights.weights = learn->now;
    weights.updated_at_ns = entry->created_at_ns;
    weights.updates++;
    return put_small(at, cx_str_bytes(CX_STR(CX_MEMORY_WEIGHTS_KEY)), NULL, &weights, err);
}

/* --- embeddings ------------------------------------------------------------------------------ */

static cx_status put_number(cx_derive *at, cx_bytes key, uint64_t value, cx_err *err)
{
    uint8_t bytes[8];
    cx_memory_put_u64(bytes, value);
    return cx_derive_put(at, key, cx_bytes_from(bytes, sizeof bytes), err);
}

static cx_status count_vertex(cx_derive *at, const cx_payload_embed *embed, cx_err *err)
{
    const cx_bytes next = cx_str_bytes(CX_STR(CX_MEMORY_VERTEX_KEY));
    cx_bytes value;
    bool found = false;
    CX_TRY(cx_derive_get(at, next, &value, &found, err));
    if (embed->vertex != UINT64_MAX &&
        (!found || value.size != 8 || cx_memory_get_u64(value.data) <= embed->vertex))
        CX_TRY(put_number(at, next, embed->vertex + 1, err));
    if (embed->model.size > CX_MODEL_SIZE_MAX)
        return CX_SUCCESS;
    cx_memory_key key;
    cx_memory_key_begin(&key, CX_MEMORY_DIM_KEY);
    cx_memory_key_add(&key, embed->model.data, embed->model.size);
    CX_TRY(cx_derive_get(at, cx_memory_key_bytes(&key), &value, &found, err));
    return found ? CX_SUCCESS : put_number(at, cx_memory_key_bytes(&key), embed->dim, err);
}

/* --- words (ledger.md §10.5) ------------------------------------------------------------------ */

static cx_status put_word_row(cx_derive *at, cx_str word, const cx_id *id, bool there, cx_err *err)
{
    const cx_bytes empty = {NULL, 0};
    const uint8_t end = 0;
    cx_memory_key key;
    cx_memory_key_begin(&key, CX_MEMORY_WORD_KEY);
    cx_memory_key_add(&key, word.data, word.size);
    cx_memory_key_add(&key, &end, 1);
    cx_memory_key_add(&key, id->bytes, sizeof id->bytes);
    return there ? cx_derive_put(at, cx_memory_key_bytes(&key), empty, err)
                 : cx_derive_remove(at, cx_memory_key_bytes(&key), err);
}

/* The memory's words as the tables have them: each after a byte with its size. */
static cx_status get_words(cx_derive *at, const cx_id *id, cx_words *out, cx_err *err)
{
    cx_memory_key key = cx_memory_key_of(CX_MEMORY_WORDS_KEY, id);
    cx_bytes value;
    bool found = false;
    CX_TRY(cx_derive_get(at, cx_memory_key_bytes(&key), &value, &found, err));
    cx_reader reader = cx_reader_over(value);
    if (!found)
        return CX_SUCCESS;
    out->items = CX_ARENA_ARRAY(out->arena, cx_str, value.size / 2 + 1);
    if (out->items == NULL)
        return cx_fail_nomem(err);
    for (size_t used = 0; used < value.size;) {
        cx_bytes word = cx_reader_bytes(&reader, cx_reader_u8(&reader));
        used += 1 + word.size;
        if (word.size == 0 || word.size > CX_WORD_SIZE_MAX)
            return fail_damaged_row(err);
        out->items[out->count++] = cx_bytes_str(word);
    }
    return CX_SUCCESS;
}

static cx_status put_words(cx_derive *at, const cx_id *id, const cx_words *words, cx_err *err)
{
    cx_memory_key key = cx_memory_key_of(CX_MEMORY_WORDS_KEY, id);
    cx_buf value;
    if (words->count == 0)
        return cx_derive_remove(at, cx_memory_key_bytes(&key), err);
    cx_buf_init(&value, cx_derive_arena(at)->alloc);
    for (size_t i = 0; i < words->count; i++) {
        cx_buf_add_byte(&value, (uint8_t)words->items[i].size);
        cx_buf_add_str(&value, words->items[i]);
    }
    cx_status status = cx_buf_check(&value, err);
    if (!cx_failed(status))
        status = cx_derive_put(at, cx_memory_key_bytes(&key), cx_buf_bytes(&value), err);
    cx_buf_done(&value);
    return status;
}

static cx_status replace_words(cx_derive *at, const cx_id *id, const cx_words *now, cx_err *err)
{
    cx_words before = {.arena = cx_derive_arena(at)};
    CX_TRY(get_words(at, id, &before, err));
    if (before.count == 0 && now->count == 0)
        return CX_SUCCESS;
    for (size_t i = 0; i < before.count; i++)
        if (!cx_words_has(now, before.items[i], false))
            CX_TRY(put_word_row(at, before.items[i], id, false, err));
    for (size_t i = 0; i < now->count; i++)
        if (!cx_words_has(&before, now->items[i], false))
            CX_TRY(put_word_row(at, now->items[i], id, true, err));
    return put_words(at, id, now, err);
}

static cx_status index_version(cx_derive *at, const cx_change *change, cx_err *err)
{
    cx_words words = {.arena = cx_derive_arena(at)};
    cx_version_record version;
    CX_TRY(cx_version_decode(change->value, words.arena, &version, err));
    if (version.erased)
        return CX_SUCCESS;
    CX_TRY(cx_memory_version_words(&version, &words, err));
    if (words.count > CX_WORDS_MAX)
        words.count = CX_WORDS_MAX;
    return replace_words(at, &version.id, &words, err);
}

/* --- rate limits ------------------------------------------------------------------------------ */

static cx_status take_from_bucket(cx_derive *at, const cx_entry *entry, char letter, cx_rate rate,
                                  cx_str first, cx_str second, cx_err *err)
{
    cx_memory_key key = cx_memory_key_rate(letter, first, second);
    cx_bucket bucket = {.used = false};
    uint8_t bytes[CX_BUCKET_SIZE];
    cx_bytes value;
    bool found = false;
    CX_TRY(cx_derive_get(at, cx_memory_key_bytes(&key), &value, &found, err));
    if (found && !cx_bucket_decode(value, rate, &bucket))
        return fail_damaged_row(err);
    (void)cx_bucket_take(&bucket, rate, entry->created_at_ns);
    cx_bucket_encode(&bucket, bytes);
    return cx_derive_put(at, cx_memory_key_bytes(&key), cx_bytes_from(bytes, sizeof bytes), err);
}

/* --- the whole ------------------------------------------------------------------------------- */

#define HEAD_KEY_SIZE (2 + 16)
#define VERSION_KEY_SIZE (3 + 16 + 3 + 8)
#define EDGE_KEY_SIZE (7 + 16 + 1 + 16)

static bool key_is(const cx_change *change, const char *prefix, size_t size)
{
    return change->key.size == size && cx_str_starts(cx_bytes_str(change->key), cx_str_z(prefix));
}

static cx_status mirror_edge(cx_derive *at, const cx_change *change, cx_err *err)
{
    cx_edge_name name;
    const uint8_t *ends = change->key.data + 7;
    memcpy(name.src.bytes, ends, 16);
    name.type = ends[16];
    memcpy(name.dst.bytes, ends + 17, 16);
    cx_memory_key key = cx_memory_key_edge(&name, true);
    if (change->removed)
        return cx_derive_remove(at, cx_memory_key_bytes(&key), err);
    return change->erased ? CX_SUCCESS
                          : cx_derive_put(at, cx_memory_key_bytes(&key), change->value, err);
}

/* Updates salience for a Head in a frame of that kind. */
static cx_status derive_head(cx_derive *at, const cx_entry *entry, cx_entry_kind kind,
                             const cx_head *head, cx_err *err)
{
    bool redacted = kind == CX_ENTRY_REDACT_MEMORY;
    const cx_words none = {.arena = cx_derive_arena(at)};
    if (redacted)
        CX_TRY(replace_words(at, &head->id, &none, err));
    CX_TRY(index_head(at, entry, head, redacted, err));
    switch (kind) {
    case CX_ENTRY_WRITE: return salience_of_write(at, entry, head, err);
    case CX_ENTRY_UPDATE:
    case CX_ENTRY_UPDATE_HEAD: return salience_of_change(at, entry, head, err);
    case CX_ENTRY_TOMBSTONE: return salience_of_tombstone(at, entry, &head->id, err);
    case CX_ENTRY_REDACT_MEMORY: {
        cx_memory_key key = cx_memory_key_of("salience/", &head->id);
        return cx_derive_remove(at, cx_memory_key_bytes(&key), err);
    }
    default: return CX_SUCCESS;
    }
}

static cx_status derive_change(cx_derive *at, const cx_entry *entry, cx_entry_kind kind,
                               const cx_change *change, cx_err *err)
{
    if (key_is(change, "e/from/", EDGE_KEY_SIZE))
        return mirror_edge(at, change, err);
    if (key_is(change, "mv/", VERSION_KEY_SIZE) && !change->removed && !change->erased)
        return index_version(at, change, err);
    if (!key_is(change, "m/", HEAD_KEY_SIZE) || change->removed || change->erased)
        return CX_SUCCESS;
    cx_head head;
    CX_TRY(cx_head_decode(change->value, cx_derive_arena(at), &head, err));
    return derive_head(at, entry, kind, &head, err);
}

static cx_status derive_entry(cx_derive *at, const cx_entry *entry, cx_entry_kind kind, cx_err *err)
{
    cx_payload payload;
    if (kind != CX_ENTRY_ATTEST && kind != CX_ENTRY_LEARN_WEIGHTS && kind != CX_ENTRY_EMBED &&
        kind != CX_ENTRY_SCOPE_VIOLATION)
        return CX_SUCCESS;
    CX_TRY(cx_payload_decode(kind, entry->payload, cx_derive_arena(at), &payload, err));
    if (kind == CX_ENTRY_SCOPE_VIOLATION)
        return take_from_bucket(at, entry, 'v', CX_RATE_VIOLATION,
                                payload.as.scope_violation.granted_to,
                                payload.as.scope_violation.granted_by, err);
    if (kind == CX_ENTRY_ATTEST) {
        CX_TRY(take_from_bucket(at, entry, 'a', CX_RATE_ATTEST, CX_STR(""),
                                payload.as.attest.intent, err));
        return salience_of_attest(at, entry, &payload.as.attest, err);
    }
    if (kind == CX_ENTRY_LEARN_WEIGHTS)
        return derive_weights(at, entry, &payload.as.learn_weights, err);
    return count_vertex(at, &payload.as.embed, err);
}

/* A payload that request.c would not have written derives nothing. */
static cx_status derive_request(cx_derive *at, const cx_entry *entry, cx_err *err)
{
    cx_memory_key key;
    cx_json value;
    cx_digest request;
    if (cx_failed(
            cx_json_parse_text(cx_bytes_str(entry->payload), cx_derive_arena(at), &value, NULL)) ||
        value.type != CX_JSON_OBJECT ||
        !cx_digest_parse(CX_JSON_GET_STR(&value, "request"), &request))
        return CX_SUCCESS;
    cx_memory_key_begin(&key, CX_MEMORY_REQUEST_KEY);
    cx_memory_key_add(&key, request.bytes, sizeof request.bytes);
    return cx_derive_put(at, cx_memory_key_bytes(&key), entry->payload, err);
}

/* sent.c E2.  The first entry of an id counts. */
static cx_status derive_sent_scope(cx_derive *at, const cx_entry *entry, cx_err *err)
{
    cx_arena *arena = cx_derive_arena(at);
    cx_memory_key key;
    cx_scope scope;
    cx_bytes there;
    bool found = false;
    if (entry->payload.size == 0 || cx_failed(cx_scope_decode(entry->payload, arena, &scope, NULL)))
        return CX_SUCCESS;
    const cx_digest id = cx_digest_of(entry->payload);
    cx_memory_key_begin(&key, CX_MEMORY_SENT_KEY);
    cx_memory_key_add(&key, id.bytes, sizeof id.bytes);
    CX_TRY(cx_derive_get(at, cx_memory_key_bytes(&key), &there, &found, err));
    uint8_t *row = found ? NULL : CX_ARENA_ARRAY(arena, uint8_t, 8 + entry->payload.size);
    if (row == NULL)
        return found ? CX_SUCCESS : cx_fail_nomem(err);
    cx_memory_put_u64(row, entry->seq);
    memcpy(row + 8, entry->payload.data, entry->payload.size);
    return cx_derive_put(at, cx_memory_key_bytes(&key), cx_bytes_from(row, 8 + entry->payload.size),
                         err);
}

/* What a written memory can be found by. */
static cx_status derive_names(cx_derive *at, const cx_entry *entry, cx_entry_kind kind, cx_err *err)
{
    cx_payload payload;
    char id[CX_ULID_SIZE];
    if ((kind != CX_ENTRY_WRITE && kind != CX_ENTRY_UPDATE) || entry->committed ||
        cx_failed(cx_payload_decode(kind, entry->payload, cx_derive_arena(at), &payload, NULL)))
        return CX_SUCCESS;
    cx_ulid_format(&payload.as.write.id, id);
    CX_TRY(cx_derive_hash(at, &payload.as.write.version_hash, err));
    return cx_derive_name(at, cx_str_from(id, sizeof id), err);
}

static cx_status derive_frame(cx_derive *at, const cx_entry *entry, const cx_change *changes,
                              size_t count, cx_err *err)
{
    if (entry == NULL)
        return CX_SUCCESS;
    const cx_entry_kind kind = cx_entry_kind_of(entry->kind);
    CX_TRY(derive_entry(at, entry, kind, err));
    CX_TRY(derive_names(at, entry, kind, err));
    if (cx_kinds_is(entry->kind, CX_KIND_MEMORY_REQUEST))
        CX_TRY(derive_request(at, entry, err));
    if (cx_kinds_is(entry->kind, CX_KIND_SCOPE_SENT))
        CX_TRY(derive_sent_scope(at, entry, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(derive_change(at, entry, kind, &changes[i], err));
    return CX_SUCCESS;
}

const cx_deriver cx_memory_deriver = {.name = "memory/4", .derive = derive_frame};
