/*
 * test_record.c - Head, Version and Edge: the vectors from their fields and back, what each shape
 * requires, ranges and limits.
 */
#include "tests/support/record_kit.h"

static const kit_format head_format = {"Head", again_head, CX_ENTRY_RAW};
static const kit_format version_format = {"Version", again_version, CX_ENTRY_RAW};
static const kit_format edge_format = {"Edge", again_edge, CX_ENTRY_RAW};

/* --- Head ------------------------------------------------------------------------------------ */

static cx_head minimal_head(void)
{
    return (cx_head){.id = kit_id(0x10),
                     .type = 3,
                     .current_version = 1,
                     .actor_scope = CX_STR("andrew"),
                     .visibility = CX_VISIBILITY_PRIVATE,
                     .importance = 5,
                     .last_updated_at = 1700000000,
                     .forms = {CX_STR("s"), CX_STR("m")}};
}

static const cx_str three_tags[] = {{"b", 1}, {"a", 1}, {"\xc3\xa9", 2}};
static const cx_frame one_frame[] = {{2, 1, {"gpu_inference", 13}}};

static cx_head tagged_head(void)
{
    cx_head head = minimal_head();
    head.tags = three_tags;
    head.tag_count = 3;
    head.frames = one_frame;
    head.frame_count = 1;
    head.embedded = true;
    head.vertex = 1;
    head.model = CX_STR("hash-stub@00000000");
    head.dim = 768;
    return head;
}

static cx_head tombstoned_head(void)
{
    cx_head head = tagged_head();
    head.tombstoned = true;
    head.tombstone_reason = CX_STR("gone");
    head.tombstoned_at = 1700003600;
    head.tombstoned_by = CX_STR("andrew");
    head.vertex = UINT64_C(1) << 40;
    head.model = CX_STR("m");
    head.dim = 65535;
    head.stale = true;
    return head;
}

static bool head_accepted(const cx_head *head)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_head_encode(head, &out);
    bool accepted = kit_accepts(&head_format, cx_buf_bytes(&out));
    cx_buf_done(&out);
    return accepted;
}

static void check_head_case(const tree_file *file, const char *label, const cx_head *head)
{
    const cx_json *item = kit_case(tree_list(file, "/heads"), label);
    cx_arena arena;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_head_encode(head, &out);
    CHECK_SAME(&out, kit_member(item, "cbor", &arena));
    CHECK_DIGEST(cx_digest_of(cx_buf_bytes(&out)), tree_digest(item, "head_sha256"));
    CHECK_DIGEST(cx_scheme_memory_key(CX_SCHEME_MATRIX_1, head->id.bytes),
                 tree_digest(item, "smt_key_hash"));
    CHECK_DIGEST(cx_scheme_value(CX_SCHEME_MATRIX_1, cx_buf_bytes(&out)),
                 tree_digest(item, "smt_value_hash"));
    if (head->type != 0)
        kit_check_whole(&head_format, cx_buf_bytes(&out));
    else
        CHECK(!kit_accepts(&head_format, cx_buf_bytes(&out)));
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

CX_TEST(heads_of_the_vectors_from_their_fields_and_back)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        cx_head minimal = minimal_head(), tagged = tagged_head(), dead = tombstoned_head();
        cx_head timeless = minimal_head();
        timeless.last_updated_null = true;
        const cx_head zero = {.last_updated_null = true};
        CHECK_INT(tree_list(&file, "/heads")->count, 6);
        check_head_case(&file, "minimal", &minimal);
        check_head_case(&file, "non-UTC zone, ns truncated", &minimal);
        check_head_case(&file, "tags (order kept), frames, embedding ref", &tagged);
        check_head_case(&file, "tombstoned + stale embedding", &dead);
        check_head_case(&file, "zero time -> CBOR null", &timeless);
        check_head_case(&file, "all zero head", &zero); /* shows the encoder only */
    }
    tree_file_close(&file);
}

CX_TEST(head_decodes_into_its_fields)
{
    const cx_head dead = tombstoned_head();
    cx_head back;
    cx_arena arena;
    cx_buf out;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_head_encode(&dead, &out);
    CHECK_STATUS(cx_head_decode(cx_buf_bytes(&out), &arena, &back, &err), &err);
    CHECK(memcmp(&back.id, &dead.id, sizeof dead.id) == 0);
    CHECK(back.type == 3 && back.current_version == 1 && back.visibility == 1);
    CHECK(back.importance == 5 && back.tag_count == 3 && back.frame_count == 1);
    CHECK_STR(back.tags[0], "b");
    CHECK_STR(back.tags[2], "\xc3\xa9");
    CHECK(back.frames[0].verb == 2 && back.frames[0].kind == 1);
    CHECK_STR(back.frames[0].ref, "gpu_inference");
    CHECK(back.tombstoned && back.tombstoned_at == 1700003600);
    CHECK_STR(back.tombstone_reason, "gone");
    CHECK_STR(back.tombstoned_by, "andrew");
    CHECK(!back.last_updated_null && back.last_updated_at == 1700000000);
    CHECK(back.embedded && back.stale && back.vertex == UINT64_C(1) << 40 && back.dim == 65535);
    CHECK_STR(back.model, "m");
    CHECK_STR(back.forms.brief, "s");
    CHECK_STR(back.forms.medium, "m");
    CHECK(!back.blinded);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

CX_TEST(heads_to_refuse_of_the_vectors)
{
    cx_buf text;
    cx_arena arena;
    cx_json root;
    cx_err err = {0};
    cx_buf_init(&text, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path("vectors/ledger/cbor_strict.json"),
                                 1 << 20, &text, &err),
                 &err);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&text), &arena, &root, &err), &err);
    const cx_json *reject = CX_JSON_GET(&root, "head_reject");
    CHECK(reject != NULL && reject->count == 5);
    for (uint32_t i = 0; reject != NULL && i < reject->count; i++)
        CHECK(!kit_accepts(&head_format, kit_member(&reject->items[i], "cbor", &arena)));
    CHECK(kit_accepts(&head_format, kit_member(&root, "head_accept", &arena)));
    cx_arena_done(&arena);
    cx_buf_done(&text);
}

CX_TEST(head_fields_left_out_doubled_moved_emptied)
{
    const uint64_t required =
        KEY(1) | KEY(2) | KEY(3) | KEY(4) | KEY(5) | KEY(6) | KEY(9) | KEY(11);
    cx_head head = tombstoned_head();
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    head.blinded = true;
    cx_head_encode(&head, &out);
    cx_bytes bytes = cx_buf_bytes(&out);
    kit_check_map(&head_format, bytes, KIT_TOP, required,
                  KEY(7) | KEY(8) | KEY(10) | KEY(12) | KEY(13), 0);
    kit_check_map(&head_format, bytes, KIT_PATH(8), KEY(1) | KEY(2) | KEY(3), 0, 0);
    kit_check_map(&head_format, bytes, KIT_PATH(10), KEY(1) | KEY(2) | KEY(3), KEY(4), 0);
    kit_check_map(&head_format, bytes, KIT_PATH(11), KEY(1) | KEY(2), 0, 0);
    kit_check_map(&head_format, bytes, KIT_PATH(12, 0), KEY(1) | KEY(2) | KEY(3), 0, 0);
    cx_buf_done(&out);
}

CX_TEST(head_ranges)
{
    for (unsigned code = 0; code <= 255; code++) {
        const uint8_t c = (uint8_t)code;
        const cx_frame frames[] = {{c, 1, CX_STR("r")}, {1, c, CX_STR("r")}};
        cx_head type = minimal_head(), visible = type, important = type, verb = type, kind = type;
        type.type = c;
        visible.visibility = c;
        important.importance = c;
        verb.frames = &frames[0];
        kind.frames = &frames[1];
        verb.frame_count = kind.frame_count = 1;
        CHECK(head_accepted(&type) == (code >= 1 && code <= 9));
        CHECK(head_accepted(&visible) == (code >= 1 && code <= 3));
        CHECK(head_accepted(&important) == (code <= 10));
        CHECK(head_accepted(&verb) == (code >= 1 && code <= 10));
        CHECK(head_accepted(&kind) == (code >= 1 && code <= 8));
    }
}

CX_TEST(head_limits)
{
    static char letters[CX_REF_SIZE_MAX + 1];
    cx_str tags[CX_TAGS_MAX + 1];
    cx_frame frames[CX_FRAMES_MAX + 1];
    cx_head head = minimal_head();
    memset(letters, 'x', sizeof letters);
    for (size_t i = 0; i <= CX_TAGS_MAX; i++)
        tags[i] = cx_str_from(letters, CX_TAG_SIZE_MAX);
    for (size_t i = 0; i <= CX_FRAMES_MAX; i++)
        frames[i] = (cx_frame){10, 8, cx_str_from(letters, CX_REF_SIZE_MAX)};
    head.tags = tags;
    head.tag_count = CX_TAGS_MAX;
    head.frames = frames;
    head.frame_count = CX_FRAMES_MAX;
    CHECK(head_accepted(&head));
    head.tag_count++;
    CHECK(!head_accepted(&head));
    head.tag_count--;
    head.frame_count++;
    CHECK(!head_accepted(&head));
    head.frame_count--;
    tags[3] = cx_str_from(letters, CX_TAG_SIZE_MAX + 1);
    CHECK(!head_accepted(&head));
    tags[3] = CX_STR("x");
    frames[5].ref = cx_str_from(letters, CX_REF_SIZE_MAX + 1);
    CHECK(!head_accepted(&head));
    frames[5].ref = CX_STR("");
    CHECK(!head_accepted(&head));
    frames[5].ref = CX_STR("x");
    CHECK(head_accepted(&head));
}

/* What RedactMemory leaves of a Head: no forms, tags, embedding, frames, blind (§10). */
CX_TEST(head_erased_is_a_head)
{
    cx_head head = minimal_head();
    head.forms = (cx_forms){CX_STR(""), CX_STR("")};
    head.tombstoned = true;
    CHECK(head_accepted(&head));
}

/* --- Version --------------------------------------------------------------------------------- */

static const uint8_t preference[] = {
    0xa6, 0x00, 0x01, 0x01, 0x64, 0x74, 0x6f, 0x6e, 0x65, 0x02, 0xf6, 0x03, 0x66, 0x70, 0x72, 0x65,
    0x66, 0x65, 0x72, 0x04, 0xfa, 0x3f, 0x66, 0x66, 0x66, 0x05, 0x65, 0x74, 0x65, 0x72, 0x73, 0x65};

static cx_version_record minimal_version(void)
{
    return (cx_version_record){.id = kit_id(0x10),
                               .version = 1,
                               .type = 3,
                               .data = {false, {preference, sizeof preference}},
                               .created_at = 1700000000,
                               .created_by = CX_STR("andrew"),
                               .confidence = 1.0f,
                               .provenance = {.source = CX_STR("user_input")},
                               .forms = {CX_STR("s"), CX_STR("m")}};
}

static const cx_str one_source[] = {{"matrix://cortex/Fact/x#1", 24}};
static const cx_str one_attestation[] = {{"a", 1}};

static cx_version_record full_version(void)
{
    cx_version_record version = minimal_version();
    version.expires = true;
    version.expires_at = 1700086400;
    version.confidence = 0.3f;
    version.provenance = (cx_provenance){.source = CX_STR("derived"),
                                         .derived_from = one_source,
                                         .derived_count = 1,
                                         .attestations = one_attestation,
                                         .attestation_count = 1,
                                         .signed_by = cx_str_bytes(CX_STR("\x01")),
                                         .has_signed_at = true,
                                         .signed_at = 1700000000,
                                         .signature = cx_str_bytes(CX_STR("\x02\x03"))};
    version.forms_override = true;
    return version;
}

static void check_version_case(const tree_file *file, const char *label, cx_version_record version)
{
    const cx_json *item = kit_case(tree_list(file, "/versions"), label);
    cx_arena arena;
    cx_buf out;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    version.hash = kit_filled(0);
    cx_version_encode(&version, &out);
    CHECK_SAME(&out, kit_member(item, "cbor_with_zero_hash", &arena));
    /* The field of the hash counts as zeros, whatever it holds. */
    version.hash = kit_filled(0x77);
    CHECK_STATUS(cx_version_hash(&version, cx_alloc_default(), &version.hash, &err), &err);
    CHECK_DIGEST(version.hash, tree_digest(item, "version_hash"));
    cx_buf_clear(&out);
    cx_version_encode(&version, &out);
    CHECK_SAME(&out, kit_member(item, "cbor_final", &arena));
    kit_check_whole(&version_format, cx_buf_bytes(&out));
    CHECK_INT(cx_version_hash(&version, &kit_no_alloc, &version.hash, &err).code, CX_E_NOMEM);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

CX_TEST(versions_of_the_vectors_from_their_fields_and_back)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        CHECK_INT(tree_list(&file, "/versions")->count, 2);
        check_version_case(&file, "minimal", minimal_version());
        check_version_case(&file, "full", full_version());
    }
    tree_file_close(&file);
}

CX_TEST(version_fields_left_out_doubled_moved_emptied)
{
    cx_version_record version = full_version();
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    version.blinded = true;
    cx_version_encode(&version, &out);
    cx_bytes bytes = cx_buf_bytes(&out);
    kit_check_map(&version_format, bytes, KIT_TOP,
                  (KEYS_UP_TO(10) & ~KEYS_UP_TO(0) & ~KEY(7)) | KEY(12), KEY(11) | KEY(13), KEY(7));
    kit_check_map(&version_format, bytes, KIT_PATH(9), KEY(1), KEY(2) | KEY(3) | KEY(4) | KEY(6),
                  KEY(5));
    kit_check_map(&version_format, bytes, KIT_PATH(10), KEY(1) | KEY(2), 0, 0);
    cx_buf_done(&out);
}

static bool version_accepted(const cx_version_record *version)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_version_encode(version, &out);
    bool accepted = kit_accepts(&version_format, cx_buf_bytes(&out));
    cx_buf_done(&out);
    return accepted;
}

CX_TEST(version_ranges_and_limits)
{
    cx_str sources[CX_DERIVED_FROM_MAX + 1];
    cx_version_record version = minimal_version();
    for (unsigned type = 0; type <= 255; type++) {
        version.type = (uint8_t)type;
        CHECK(version_accepted(&version) == (type >= CX_TYPE_MIN && type <= CX_TYPE_MAX));
    }
    version.type = 1;
    for (size_t i = 0; i < CX_COUNT_OF(sources); i++)
        sources[i] = CX_STR("u");
    version.provenance.derived_from = sources;
    version.provenance.derived_count = CX_DERIVED_FROM_MAX;
    CHECK(version_accepted(&version));
    version.provenance.derived_count++;
    CHECK(!version_accepted(&version));
    version.provenance.derived_count = 0;
    /* A time that is the epoch is a time; no time is null, and only where a time must be. */
    version.expires = true;
    version.expires_at = 0;
    version.created_at_null = true;
    CHECK(version_accepted(&version));
}

/* null and empty are two values, and both stay what they are (§2). */
CX_TEST(version_data_null_is_not_empty)
{
    cx_version_record version = minimal_version(), back;
    cx_arena arena;
    cx_buf null, empty;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&null, cx_alloc_default());
    cx_buf_init(&empty, cx_alloc_default());
    version.data = (cx_maybe_bytes){false, {NULL, 0}};
    cx_version_encode(&version, &empty);
    version.data.null = true;
    cx_version_encode(&version, &null);
    CHECK(!cx_str_eq(cx_buf_str(&null), cx_buf_str(&empty)));
    CHECK_INT(null.size, empty.size);
    CHECK_STATUS(cx_version_decode(cx_buf_bytes(&null), &arena, &back, &err), &err);
    CHECK(back.data.null);
    CHECK_STATUS(cx_version_decode(cx_buf_bytes(&empty), &arena, &back, &err), &err);
    CHECK(!back.data.null && back.data.bytes.size == 0);
    cx_buf_done(&null);
    cx_buf_done(&empty);
    cx_arena_done(&arena);
}

/* The stub that RedactMemory leaves: id, version, type and hash; nothing between it and a whole. */
CX_TEST(version_stub)
{
    cx_version_record version = full_version(), back;
    cx_arena arena;
    cx_buf out;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    version.erased = true;
    version.blinded = true;
    version.hash = kit_filled(5);
    cx_version_encode(&version, &out);
    CHECK_INT(out.data[0], 0xa4);
    CHECK_STATUS(cx_version_decode(cx_buf_bytes(&out), &arena, &back, &err), &err);
    CHECK(back.erased && !back.blinded && back.version == 1 && back.type == 3);
    CHECK_DIGEST(back.hash, version.hash);
    kit_check_whole(&version_format, cx_buf_bytes(&out));
    kit_check_map(&version_format, cx_buf_bytes(&out), KIT_TOP, KEY(1) | KEY(2) | KEY(3) | KEY(12),
                  0, 0);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

/* --- Edge ------------------------------------------------------------------------------------ */

static cx_edge minimal_edge(void)
{
    return (cx_edge){.type = 3, .src = kit_id(0x10), .dst = kit_id(0x20), .created_at = 1700000000};
}

static cx_edge weighted_edge(void)
{
    cx_edge edge = minimal_edge();
    edge.created_by = CX_STR("andrew");
    edge.weight = 0.5f;
    edge.data = cx_str_bytes(CX_STR("\xa0"));
    return edge;
}

static cx_edge removed_edge(void)
{
    cx_edge edge = weighted_edge();
    edge.tombstoned = true;
    edge.has_tombstoned_at = true;
    edge.tombstoned_at = 1700000060;
    edge.reason = CX_STR("obsolete");
    edge.by = CX_STR("andrew");
    return edge;
}

static void check_edge_item(const cx_json *item, const cx_edge *edge)
{
    cx_arena arena;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_edge_encode(edge, &out);
    CHECK_SAME(&out, kit_member(item, "cbor", &arena));
    CHECK_DIGEST(
        cx_scheme_edge_key(CX_SCHEME_MATRIX_1, edge->src.bytes, edge->type, edge->dst.bytes),
        tree_digest(item, "smt_key_hash"));
    CHECK_DIGEST(cx_scheme_value(CX_SCHEME_MATRIX_1, cx_buf_bytes(&out)),
                 tree_digest(item, "smt_value_hash"));
    kit_check_whole(&edge_format, cx_buf_bytes(&out));
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

CX_TEST(edges_of_the_vectors_from_their_fields_and_back)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        const cx_json *list = tree_list(&file, "/edges");
        const cx_edge minimal = minimal_edge(), weighted = weighted_edge();
        const cx_edge removed = removed_edge();
        check_edge_item(kit_case(list, "minimal"), &minimal);
        check_edge_item(kit_case(list, "weight+data"), &weighted);
        check_edge_item(kit_case(list, "tombstoned"), &removed);
        uint8_t type = 0;
        for (uint32_t i = 3; i < list->count; i++) {
            const cx_edge edge = {
                .type = ++type, .src = kit_id(0x30), .dst = kit_id(0x40), .created_at = 1700000000};
            check_edge_item(&list->items[i], &edge);
        }
        CHECK(type >= 9);
    }
    tree_file_close(&file);
}

CX_TEST(edge_fields_left_out_doubled_moved_emptied)
{
    cx_edge edge = removed_edge();
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    edge.blinded = true;
    cx_edge_encode(&edge, &out);
    kit_check_map(&edge_format, cx_buf_bytes(&out), KIT_TOP, KEY(1) | KEY(2) | KEY(3) | KEY(4),
                  KEY(5) | KEY(6) | KEY(7) | KEY(9) | KEY(10) | KEY(11) | KEY(12), KEY(8));
    cx_buf_done(&out);
}

CX_TEST(edge_ranges)
{
    cx_edge edge = minimal_edge();
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (unsigned type = 0; type <= 255; type++) {
        edge.type = (uint8_t)type;
        cx_buf_clear(&out);
        cx_edge_encode(&edge, &out);
        CHECK(kit_accepts(&edge_format, cx_buf_bytes(&out)) ==
              (type >= CX_EDGE_TYPE_MIN && type <= CX_EDGE_TYPE_MAX));
    }
    edge.type = 1;
    edge.created_at_null = true;
    edge.weight = __builtin_nanf(""); /* any float is carried; the calls refuse some */
    cx_buf_clear(&out);
    cx_edge_encode(&edge, &out);
    CHECK(kit_accepts(&edge_format, cx_buf_bytes(&out)));
    cx_buf_done(&out);
}

/* --- what a failure leaves ------------------------------------------------------------------- */

CX_TEST(records_without_memory)
{
    const cx_head head = tagged_head();
    const cx_version_record version = full_version();
    cx_head head_back = {.dim = 99};
    cx_version_record version_back = {.version = 99};
    cx_arena arena;
    cx_buf out, none;
    cx_err err = {0};
    cx_arena_init(&arena, &kit_no_alloc, 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&none, &kit_no_alloc);
    cx_head_encode(&head, &out);
    CHECK_INT(cx_head_decode(cx_buf_bytes(&out), &arena, &head_back, &err).code, CX_E_NOMEM);
    CHECK_INT(head_back.dim, 99);
    cx_buf_clear(&out);
    cx_version_encode(&version, &out);
    CHECK_INT(cx_version_decode(cx_buf_bytes(&out), &arena, &version_back, &err).code, CX_E_NOMEM);
    CHECK_INT(version_back.version, 99);
    cx_head_encode(&head, &none);
    CHECK_INT(cx_buf_check(&none, &err).code, CX_E_NOMEM);
    cx_buf_done(&none);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}
