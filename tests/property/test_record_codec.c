/*
 * test_record_codec.c - random records of every format: encoded, decoded and encoded again they
 * are the same bytes; with bytes changed, put in or taken out they are refused or are another
 * record's only spelling.
 */
#include "base/arena.h"
#include "fuzz/records.h"
#include "tests/test.h"

#define ROUNDS 400   /* records of each format */
#define MUTATIONS 24 /* of each record */

typedef struct maker {
    uint64_t random;
    cx_arena arena; /* of one record */
} maker;

static uint64_t below(maker *m, uint64_t count)
{
    return cx_test_random(&m->random) % count;
}

static bool chance(maker *m, unsigned one_in)
{
    return below(m, one_in) == 0;
}

/* Of every length of encoding. */
static uint64_t any_uint(maker *m)
{
    return cx_test_random(&m->random) >> below(m, 64);
}

static uint64_t some_uint(maker *m)
{
    return chance(m, 3) ? 0 : any_uint(m);
}

static int64_t any_int(maker *m)
{
    int64_t value = (int64_t)(any_uint(m) >> 1);
    return chance(m, 2) ? value : -1 - value;
}

static void fill(maker *m, void *out, size_t size)
{
    uint8_t *bytes = out;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)cx_test_random(&m->random);
}

static cx_id any_id(maker *m)
{
    cx_id id;
    fill(m, id.bytes, sizeof id.bytes);
    return id;
}

static cx_digest any_digest(maker *m)
{
    cx_digest digest;
    fill(m, digest.bytes, sizeof digest.bytes);
    return digest;
}

static float any_float(maker *m)
{
    uint32_t bits = (uint32_t)cx_test_random(&m->random);
    float value;
    switch (below(m, 4)) {
    case 0: return (float)below(m, 100) / 100.0f;
    case 1: bits &= 0xffffe000u; break; /* often a half */
    case 2: bits = (bits & 0x807fe000u) | 0x38000000u; break;
    default: break;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* At most `max` bytes of letters and longer characters; often empty. */
static cx_str any_text(maker *m, size_t max)
{
    static const char *const characters[] = {
        "a", "Z", "\xc3\xa9", "\xe2\x80\x94", "\xf0\x9f\x98\x80", "\x01"};
    size_t wanted = chance(m, 4) ? 0 : below(m, chance(m, 8) ? 300 : 30), size = 0;
    char *text = cx_arena_push(&m->arena, max + 1, 1);
    while (text != NULL && size < wanted) {
        const char *c = characters[below(m, CX_COUNT_OF(characters))];
        if (size + strlen(c) > max)
            break;
        memcpy(text + size, c, strlen(c));
        size += strlen(c);
    }
    return cx_str_from(text, size);
}

static cx_str free_text(maker *m)
{
    return any_text(m, 320);
}

static cx_bytes any_bytes(maker *m)
{
    size_t size = chance(m, 3) ? 0 : below(m, 70);
    uint8_t *bytes = cx_arena_push(&m->arena, size + 1, 1);
    fill(m, bytes, size);
    return cx_bytes_from(bytes, size);
}

static const cx_str *any_texts(maker *m, size_t max, size_t size_max, size_t *out_count)
{
    size_t count = chance(m, 2) ? 0 : below(m, max + 1);
    cx_str *texts = CX_ARENA_ARRAY(&m->arena, cx_str, count + 1);
    for (size_t i = 0; i < count; i++)
        texts[i] = any_text(m, size_max);
    *out_count = count;
    return texts;
}

static const cx_id *any_ids(maker *m, size_t max, size_t *out_count)
{
    size_t count = chance(m, 2) ? 0 : below(m, max + 1);
    cx_id *ids = CX_ARENA_ARRAY(&m->arena, cx_id, count + 1);
    for (size_t i = 0; i < count; i++)
        ids[i] = any_id(m);
    *out_count = count;
    return ids;
}

/* --- one random record of each format -------------------------------------------------------- */

static void make_entry(maker *m, cx_buf *out)
{
    cx_entry entry = {.seq = some_uint(m),
                      .kind = cx_entry_kind_name((cx_entry_kind)below(m, CX_ENTRY_OTHER)),
                      .created_at_ns = any_int(m),
                      .created_by = any_bytes(m)};
    if (chance(m, 3)) {
        entry.kind = CX_STR("run.event");
        entry.committed = true;
        entry.commitment = any_digest(m);
        entry.payload_size = some_uint(m);
    } else {
        entry.payload = any_bytes(m);
    }
    cx_entry_encode(&entry, out);
}

static void make_head(maker *m, cx_buf *out)
{
    cx_head head = {.id = any_id(m),
                    .type = (uint8_t)(1 + below(m, 9)),
                    .current_version = some_uint(m),
                    .actor_scope = free_text(m),
                    .visibility = (uint8_t)(1 + below(m, 3)),
                    .importance = (uint8_t)below(m, 11),
                    .tombstoned = chance(m, 3),
                    .tombstone_reason = free_text(m),
                    .tombstoned_at = any_int(m),
                    .tombstoned_by = free_text(m),
                    .last_updated_at = any_int(m),
                    .last_updated_null = chance(m, 4),
                    .embedded = chance(m, 2),
                    .vertex = some_uint(m),
                    .model = free_text(m),
                    .dim = some_uint(m),
                    .stale = chance(m, 2),
                    .forms = {free_text(m), free_text(m)},
                    .blinded = chance(m, 2),
                    .blind = any_id(m)};
    cx_frame *frames = CX_ARENA_ARRAY(&m->arena, cx_frame, CX_FRAMES_MAX);
    head.tags = any_texts(m, CX_TAGS_MAX, CX_TAG_SIZE_MAX, &head.tag_count);
    head.frames = frames;
    head.frame_count = chance(m, 2) ? 0 : below(m, CX_FRAMES_MAX + 1);
    for (size_t i = 0; i < head.frame_count; i++) {
        cx_str ref = any_text(m, CX_REF_SIZE_MAX);
        frames[i] = (cx_frame){(uint8_t)(1 + below(m, 10)), (uint8_t)(1 + below(m, 8)),
                               ref.size != 0 ? ref : CX_STR("r")};
    }
    cx_head_encode(&head, out);
}

static void make_version(maker *m, cx_buf *out)
{
    cx_version_record version = {.id = any_id(m),
                                 .version = some_uint(m),
                                 .type = (uint8_t)(1 + below(m, 9)),
                                 .data = {chance(m, 4), any_bytes(m)},
                                 .created_at = any_int(m),
                                 .created_at_null = chance(m, 4),
                                 .created_by = free_text(m),
                                 .expires = chance(m, 2),
                                 .expires_at = any_int(m),
                                 .confidence = any_float(m),
                                 .provenance = {.source = free_text(m),
                                                .signed_by = any_bytes(m),
                                                .has_signed_at = chance(m, 2),
                                                .signed_at = any_int(m),
                                                .signature = any_bytes(m)},
                                 .forms = {free_text(m), free_text(m)},
                                 .forms_override = chance(m, 2),
                                 .hash = any_digest(m),
                                 .blinded = chance(m, 2),
                                 .blind = any_id(m),
                                 .erased = chance(m, 6)};
    cx_provenance *p = &version.provenance;
    p->derived_from = any_texts(m, CX_DERIVED_FROM_MAX, 80, &p->derived_count);
    p->attestations = any_texts(m, 5, 80, &p->attestation_count);
    cx_version_encode(&version, out);
}

static void make_edge(maker *m, cx_buf *out)
{
    const cx_edge edge = {.type = (uint8_t)(1 + below(m, 14)),
                          .src = any_id(m),
                          .dst = any_id(m),
                          .created_at = any_int(m),
                          .created_at_null = chance(m, 4),
                          .created_by = free_text(m),
                          .weight = any_float(m),
                          .tombstoned = chance(m, 2),
                          .tombstoned_at = any_int(m),
                          .has_tombstoned_at = chance(m, 2),
                          .reason = free_text(m),
                          .by = free_text(m),
                          .data = any_bytes(m),
                          .blinded = chance(m, 2),
                          .blind = any_id(m)};
    cx_edge_encode(&edge, out);
}

static void make_vector(maker *m, cx_buf *out)
{
    cx_vector vector = {.vertex = some_uint(m),
                        .model = free_text(m),
                        .dim = below(m, 40),
                        .source_version = some_uint(m),
                        .embedded_at = any_int(m),
                        .embedded_at_null = chance(m, 4),
                        .hash = any_digest(m)};
    float *values = CX_ARENA_ARRAY(&m->arena, float, vector.dim + 1);
    for (uint64_t i = 0; i < vector.dim; i++)
        values[i] = any_float(m);
    vector.values = values;
    cx_vector_encode(&vector, out);
}

static void make_checkpoint_record(maker *m, cx_buf *out)
{
    cx_checkpoint_record record = {.intent = free_text(m),
                                   .step = free_text(m),
                                   .created_ns = any_int(m),
                                   .budget = some_uint(m),
                                   .kept_null = chance(m, 3),
                                   .compacted_count = below(m, 5),
                                   .compacted_null = chance(m, 3)};
    cx_compacted *items = CX_ARENA_ARRAY(&m->arena, cx_compacted, 5);
    for (size_t i = 0; i < record.compacted_count; i++)
        items[i] = (cx_compacted){free_text(m), free_text(m), any_float(m)};
    record.compacted = items;
    record.kept = any_texts(m, 6, 80, &record.kept_count);
    cx_checkpoint_record_encode(&record, out);
}

static void make_salience(maker *m, cx_buf *out)
{
    const cx_salience salience = {any_int(m),   some_uint(m), some_uint(m), (uint8_t)below(m, 11),
                                  chance(m, 2), any_float(m), any_int(m)};
    cx_salience_encode(&salience, out);
}

static cx_weights any_weights(maker *m)
{
    return (cx_weights){any_float(m), any_float(m), any_float(m), any_float(m), any_float(m)};
}

static void make_weights(maker *m, cx_buf *out)
{
    const cx_weights_record record = {any_weights(m), chance(m, 3) ? 0 : any_int(m), some_uint(m)};
    cx_weights_encode(&record, out);
}

static void make_manifest(maker *m, cx_buf *out)
{
    bool cortex = chance(m, 2);
    const cx_manifest manifest = {.scheme = cortex ? CX_SCHEME_CORTEX_1 : CX_SCHEME_MATRIX_1,
                                  .actor = free_text(m),
                                  .snapshot_seq = some_uint(m),
                                  .journal_size = some_uint(m),
                                  .journal_root = any_digest(m),
                                  .state_roots_null = !cortex && chance(m, 4),
                                  .has_edges = cortex || chance(m, 2),
                                  .has_memories = cortex || chance(m, 2),
                                  .edges_root = any_digest(m),
                                  .memories_root = any_digest(m),
                                  .overall_root = any_digest(m),
                                  .created_ns = any_int(m),
                                  .trigger = free_text(m),
                                  .signed_by = free_text(m),
                                  .signature = {chance(m, 2), any_bytes(m)},
                                  .live_memories = some_uint(m),
                                  .edge_count = some_uint(m),
                                  .tombstoned = some_uint(m)};
    cx_manifest_encode(&manifest, out);
}

/* In the order of record_formats. */
typedef void make_record(maker *m, cx_buf *out);
static make_record *const makers[] = {make_head,     make_version,           make_edge,
                                      make_vector,   make_checkpoint_record, make_entry,
                                      make_salience, make_weights,           make_manifest};
_Static_assert(CX_COUNT_OF(makers) == RECORD_FORMAT_COUNT, "a maker for each format");

/* --- payloads -------------------------------------------------------------------------------- */

static cx_payload_edge any_edge_payload(maker *m, bool removed)
{
    return (cx_payload_edge){.type = (uint8_t)(1 + below(m, 14)),
                             .src = any_id(m),
                             .dst = any_id(m),
                             .weight = any_float(m),
                             .tombstoned = removed,
                             .reason = free_text(m),
                             .by = free_text(m)};
}

static cx_payload_find_late any_find_late(maker *m)
{
    cx_payload_find_late p = {.predicate = free_text(m),
                              .types = any_bytes(m),
                              .limit = chance(m, 2) ? 0 : any_int(m),
                              .result_count = any_int(m)};
    p.tags = any_texts(m, 10, 70, &p.tag_count);
    p.ids = any_ids(m, 10, &p.id_count);
    return p;
}

static cx_payload_attest any_attest(maker *m)
{
    cx_payload_attest p = {
        .intent = free_text(m), .outcome = (uint8_t)below(m, 2), .reason = free_text(m)};
    p.cited = any_ids(m, 256, &p.cited_count);
    return p;
}

static void make_payload(maker *m, cx_entry_kind kind, cx_buf *out)
{
    cx_payload p = {.kind = kind};
    switch (kind) {
    case CX_ENTRY_WRITE:
    case CX_ENTRY_UPDATE:
        p.as.write =
            (cx_payload_write){any_id(m), some_uint(m), (uint8_t)(1 + below(m, 9)), any_digest(m)};
        break;
    case CX_ENTRY_TOMBSTONE: p.as.id = any_id(m); break;
    case CX_ENTRY_ADD_EDGE: p.as.edge = any_edge_payload(m, false); break;
    case CX_ENTRY_REMOVE_EDGE: p.as.edge = any_edge_payload(m, true); break;
    case CX_ENTRY_UPDATE_HEAD:
        p.as.update_head = (cx_payload_update_head){any_id(m), some_uint(m), any_digest(m)};
        break;
    case CX_ENTRY_EMBED:
        p.as.embed = (cx_payload_embed){any_id(m),    some_uint(m),  free_text(m),
                                        some_uint(m), any_digest(m), some_uint(m)};
        break;
    case CX_ENTRY_COMPACT:
        p.as.compact = (cx_payload_compact){free_text(m), free_text(m), some_uint(m),
                                            some_uint(m), some_uint(m), any_digest(m)};
        break;
    case CX_ENTRY_ATTEST: p.as.attest = any_attest(m); break;
    case CX_ENTRY_LEARN_WEIGHTS:
        p.as.learn_weights = (cx_payload_learn_weights){
            some_uint(m), any_float(m), chance(m, 2), chance(m, 2), any_weights(m), any_weights(m)};
        break;
    case CX_ENTRY_FIND_LATE: p.as.find_late = any_find_late(m); break;
    case CX_ENTRY_SCOPE_VIOLATION:
        p.as.scope_violation = (cx_payload_scope_violation){free_text(m), free_text(m), any_id(m),
                                                            free_text(m), free_text(m)};
        break;
    case CX_ENTRY_SEAL:
        p.as.seal = (cx_payload_seal){some_uint(m), any_digest(m), any_digest(m), free_text(m),
                                      any_bytes(m)};
        break;
    case CX_ENTRY_DROP_SNAPSHOT:
        p.as.drop_snapshot = (cx_payload_drop_snapshot){some_uint(m), any_digest(m)};
        break;
    case CX_ENTRY_REDACT:
        p.as.redact = (cx_payload_redact){some_uint(m), any_digest(m), free_text(m)};
        break;
    case CX_ENTRY_REDACT_MEMORY:
        p.as.redact_memory =
            (cx_payload_redact_memory){any_id(m), some_uint(m), any_digest(m), free_text(m)};
        break;
    default: p.as.raw = any_bytes(m);
    }
    cx_payload_encode(&p, out);
}

/* --- the laws -------------------------------------------------------------------------------- */

typedef struct subject {
    record_again *again; /* NULL: the payload of `kind` */
    cx_entry_kind kind;
} subject;

static bool again(const subject *s, cx_bytes bytes, cx_arena *arena, cx_buf *out)
{
    cx_buf_clear(out);
    return s->again != NULL ? s->again(bytes, arena, out)
                            : again_payload(s->kind, bytes, arena, out);
}

/* A byte changed, put in, or taken out; or a run of them copied over another. */
static void mutate(maker *m, cx_buf *bytes)
{
    size_t at = below(m, bytes->size);
    switch (below(m, 4)) {
    case 0: bytes->data[at] = (uint8_t)cx_test_random(&m->random); break;
    case 1:
        cx_buf_add_byte(bytes, 0);
        memmove(bytes->data + at + 1, bytes->data + at, bytes->size - 1 - at);
        bytes->data[at] = chance(m, 2) ? 0xf6 : (uint8_t)cx_test_random(&m->random);
        break;
    case 2:
        memmove(bytes->data + at, bytes->data + at + 1, bytes->size - at - 1);
        bytes->size--;
        break;
    default: {
        size_t size = 1 + below(m, 8), from = below(m, bytes->size);
        if (from + size <= bytes->size && at + size <= bytes->size)
            memmove(bytes->data + at, bytes->data + from, size);
    }
    }
}

/* Returns how many changed ones were accepted. */
static size_t check_laws(maker *m, const subject *s, const cx_buf *made)
{
    cx_arena arena;
    cx_buf out, changed;
    size_t accepted = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&changed, cx_alloc_default());
    if (!again(s, cx_buf_bytes(made), &arena, &out))
        cx_test_fail(__FILE__, __LINE__, "kind %d: its own encoding is refused", (int)s->kind);
    CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(made)));
    for (int i = 0; i < MUTATIONS && made->size != 0; i++) {
        cx_buf_clear(&changed);
        cx_buf_add(&changed, made->data, made->size);
        mutate(m, &changed);
        if (again(s, cx_buf_bytes(&changed), &arena, &out)) {
            CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(&changed)));
            accepted++;
        }
    }
    cx_buf_done(&changed);
    cx_buf_done(&out);
    cx_arena_done(&arena);
    return accepted;
}

CX_TEST(records_random_come_back_and_changed_ones_do_not_pass_for_them)
{
    maker m = {.random = cx_test_seed()};
    cx_buf made;
    cx_buf_init(&made, cx_alloc_default());
    for (size_t f = 0; f < RECORD_FORMAT_COUNT; f++) {
        const subject s = {record_formats[f], CX_ENTRY_RAW};
        size_t accepted = 0;
        for (int i = 0; i < ROUNDS; i++) {
            cx_arena_init(&m.arena, cx_alloc_default(), 0);
            cx_buf_clear(&made);
            makers[f](&m, &made);
            accepted += check_laws(&m, &s, &made);
            cx_arena_done(&m.arena);
        }
        /* Both sides of the law were seen. */
        CHECK(accepted > 0 && accepted < (size_t)ROUNDS * MUTATIONS);
    }
    cx_buf_done(&made);
}

CX_TEST(payloads_random_come_back_and_changed_ones_do_not_pass_for_them)
{
    maker m = {.random = cx_test_seed()};
    cx_buf made;
    cx_buf_init(&made, cx_alloc_default());
    for (int kind = 0; kind <= CX_ENTRY_OTHER; kind++) {
        const subject s = {NULL, (cx_entry_kind)kind};
        size_t accepted = 0;
        for (int i = 0; i < ROUNDS; i++) {
            cx_arena_init(&m.arena, cx_alloc_default(), 0);
            cx_buf_clear(&made);
            make_payload(&m, s.kind, &made);
            accepted += check_laws(&m, &s, &made);
            cx_arena_done(&m.arena);
        }
        CHECK(accepted > 0);
    }
    cx_buf_done(&made);
}
