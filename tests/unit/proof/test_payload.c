/*
 * test_payload.c - the payload of every kind: the vectors from their fields and back, what each
 * shape requires, and what is refused.
 */
#include "tests/support/record_kit.h"

static const cx_str one_tag[] = {{"x", 1}};

/* The payloads of journal.json whose fields it gives. */
static size_t vector_payloads(const cx_id *ids, cx_payload *out)
{
    const cx_id a = ids[0], b = ids[1];
    const cx_payload list[] = {
        {CX_ENTRY_WRITE, .as.write = {a, 1, 2, kit_filled(0xab)}},
        {CX_ENTRY_UPDATE, .as.write = {a, 2, 2, kit_filled(0xab)}},
        {CX_ENTRY_TOMBSTONE, .as.id = a},
        {CX_ENTRY_REMOVE_EDGE,
         .as.edge = {3, a, b, 0.5f, true, CX_STR("obsolete"), CX_STR("andrew")}},
        {CX_ENTRY_FIND_LATE,
         .as.find_late =
             {CX_STR("(has_tag \"x\")"), {(const uint8_t *)"\2\3", 2}, 5, 2, one_tag, 1, ids, 2}},
        {CX_ENTRY_EMBED,
         .as.embed = {a, 7, CX_STR("hash-stub@deadbeef"), 768, kit_filled(0xcd), 2}},
        {CX_ENTRY_COMPACT,
         .as.compact = {CX_STR("intent_a"), CX_STR("step_1"), 4000, 1, 2, kit_filled(0xee)}},
        {CX_ENTRY_UPDATE_HEAD, .as.update_head = {a, 2, kit_filled(0x11)}},
        {CX_ENTRY_SCOPE_VIOLATION,
         .as.scope_violation = {CX_STR("did:child"), CX_STR("did:parent"), kit_id(0x30),
                                CX_STR("violation"), CX_STR("read")}},
        {CX_ENTRY_ATTEST, .as.attest = {CX_STR("intent_a"), 1, CX_STR("factual_error"), ids, 2}},
        {CX_ENTRY_LEARN_WEIGHTS,
         .as.learn_weights =
             {16, 0.05f, false, false, {.25f, .15f, .3f, .2f, .1f}, {.26f, .14f, .3f, .2f, .1f}}},
    };
    memcpy(out, list, sizeof list);
    return CX_COUNT_OF(list);
}

static void check_encodes(const cx_payload *payload, cx_bytes expected)
{
    const kit_format format = kit_payload(payload->kind);
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_payload_encode(payload, &out);
    CHECK_SAME(&out, expected);
    if (payload->kind == CX_ENTRY_TOMBSTONE)
        CHECK(kit_accepts(&format, expected)); /* any 16 bytes are an id: no bit is wrong */
    else
        kit_check_whole(&format, expected);
    cx_buf_done(&out);
}

CX_TEST(payloads_of_the_vectors_from_their_fields_and_back)
{
    const cx_id ids[] = {kit_id(0x10), kit_id(0x20)};
    cx_payload payloads[16];
    size_t count = vector_payloads(ids, payloads);
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "journal.json")) {
        const cx_json *list = tree_list(&file, "/cases");
        for (size_t k = 0; k < count; k++) {
            cx_str name = cx_entry_kind_name(payloads[k].kind);
            size_t found = 0;
            for (uint32_t i = 0; i < list->count; i++)
                if (cx_str_eq(cx_json_get_str(&list->items[i], CX_STR("kind")), name)) {
                    check_encodes(&payloads[k],
                                  kit_member(&list->items[i], "payload", &file.arena));
                    found++;
                }
            CHECK_INT(found, 1);
        }
    }
    tree_file_close(&file);
}

CX_TEST(payload_edge_weights_of_the_vectors)
{
    static const float weights[] = {0.0f,     0.5f,     0.1f,     1.0f,           65504.0f,
                                    65505.0f, 0x1p-24f, 0x1p-14f, 3.40282347e+38f};
    size_t next = 0;
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "journal.json")) {
        const cx_json *list = tree_list(&file, "/cases");
        for (uint32_t i = 0; i < list->count; i++) {
            if (!cx_str_is(cx_json_get_str(&list->items[i], CX_STR("kind")), "add_edge"))
                continue;
            float weight = next < CX_COUNT_OF(weights)    ? weights[next]
                           : next == CX_COUNT_OF(weights) ? __builtin_inff()
                                                          : __builtin_nanf("");
            const cx_payload payload = {
                CX_ENTRY_ADD_EDGE, .as.edge = {3, kit_id(0x10), kit_id(0x20), .weight = weight}};
            check_encodes(&payload, kit_member(&list->items[i], "payload", &file.arena));
            next++;
        }
        CHECK_INT(next, CX_COUNT_OF(weights) + 2);
    }
    tree_file_close(&file);
}

/* seal, redact and redact_memory: the payload inside the entry of the vectors. */
static void check_in_entry(const cx_json *item, const char *member, const cx_payload *payload,
                           cx_arena *arena)
{
    cx_entry entry = {0};
    cx_err err = {0};
    cx_bytes bytes = kit_member(item, member, arena);
    CHECK_STATUS(cx_entry_decode(bytes, &entry, &err), &err);
    CHECK_DIGEST(cx_scheme_entry(bytes), tree_digest(item, "leaf_hash"));
    CHECK_INT(cx_entry_kind_of(entry.kind), payload->kind);
    check_encodes(payload, entry.payload);
}

CX_TEST(payloads_of_redact_and_redact_memory)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_CORTEX_1, "entries.json")) {
        const cx_json *item = CX_JSON_GET(&file.root, "redact_memory_entry");
        const cx_payload redact = {
            CX_ENTRY_REDACT,
            .as.redact = {19, tree_digest(&file.root, "commitment"), CX_STR("user request")}};
        cx_payload memory = {CX_ENTRY_REDACT_MEMORY, .as.redact_memory = {
                                                         .versions_erased = 1,
                                                         .reason = CX_STR("user request"),
                                                     }};
        check_in_entry(CX_JSON_GET(&file.root, "redact_entry"), "cbor", &redact, &file.arena);
        CHECK(cx_hex_decode(CX_STR("018bcfe5680000000000000000000003"),
                            memory.as.redact_memory.id.bytes, 16));
        /* A placeholder of the vectors. */
        CHECK(cx_digest_parse(
            CX_STR("13dce04306fdc7797f8d31e65ef4672704dd1a983d3bc2308023f17a62b6cc98"),
            &memory.as.redact_memory.head_hash));
        check_in_entry(item, "cbor", &memory, &file.arena);
    }
    tree_file_close(&file);
}

CX_TEST(payload_of_seal)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_CORTEX_1, "entries.json")) {
        const cx_json *item = CX_JSON_GET(&file.root, "seal");
        cx_manifest manifest;
        cx_digest digest;
        cx_err err = {0};
        cx_bytes bytes = kit_member(item, "manifest_signed_cbor", &file.arena);
        CHECK_STATUS(cx_manifest_decode(bytes, &manifest, &err), &err);
        CHECK_STATUS(cx_manifest_digest(&manifest, cx_alloc_default(), &digest, &err), &err);
        const cx_payload seal = {CX_ENTRY_SEAL,
                                 .as.seal = {manifest.snapshot_seq, digest, manifest.overall_root,
                                             manifest.signed_by, manifest.signature.bytes}};
        check_in_entry(item, "entry_cbor", &seal, &file.arena);
    }
    tree_file_close(&file);
}

/* --- shapes ---------------------------------------------------------------------------------- */

static void check_shape(const cx_payload *payload, uint64_t required, uint64_t omittable)
{
    const kit_format format = kit_payload(payload->kind);
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_payload_encode(payload, &out);
    kit_check_map(&format, cx_buf_bytes(&out), KIT_TOP, required, omittable, 0);
    cx_buf_done(&out);
}

/* With every field there: which must be, and which may be left out but never be empty (§3). */
CX_TEST(payload_fields_left_out_doubled_moved_emptied)
{
    const cx_id ids[] = {kit_id(0x10), kit_id(0x20)};
    const cx_digest d = kit_filled(7);
    const cx_str t = CX_STR("text");
    const struct {
        cx_payload payload;
        uint64_t required, omittable;
    } shapes[] = {
        {{CX_ENTRY_WRITE, .as.write = {ids[0], 1, 9, d}}, KEYS_UP_TO(4), 0},
        {{CX_ENTRY_UPDATE, .as.write = {ids[0], 1, 9, d}}, KEYS_UP_TO(4), 0},
        {{CX_ENTRY_ADD_EDGE, .as.edge = {14, ids[0], ids[1], .weight = 1}}, KEYS_UP_TO(3), KEY(4)},
        {{CX_ENTRY_REMOVE_EDGE, .as.edge = {1, ids[0], ids[1], 1, true, t, t}},
         KEYS_UP_TO(3) | KEY(5),
         KEY(4) | KEY(6) | KEY(7)},
        {{CX_ENTRY_UPDATE_HEAD, .as.update_head = {ids[0], 1, d}}, KEYS_UP_TO(3), 0},
        {{CX_ENTRY_EMBED, .as.embed = {ids[0], 1, t, 2, d, 3}}, KEYS_UP_TO(6), 0},
        {{CX_ENTRY_COMPACT, .as.compact = {t, t, 1, 2, 3, d}}, KEYS_UP_TO(6), 0},
        {{CX_ENTRY_ATTEST, .as.attest = {t, 0, t, ids, 2}}, KEYS_UP_TO(2), KEY(3) | KEY(4)},
        {{CX_ENTRY_LEARN_WEIGHTS, .as.learn_weights = {.decrement = true, .skipped = true}},
         KEYS_UP_TO(14) & ~(KEY(3) | KEY(4)),
         KEY(3) | KEY(4)},
        {{CX_ENTRY_FIND_LATE, .as.find_late = {t, cx_str_bytes(t), 1, 2, one_tag, 1, ids, 2}},
         KEY(0) | KEY(4),
         KEY(1) | KEY(2) | KEY(3) | KEY(5) | KEY(6)},
        {{CX_ENTRY_SCOPE_VIOLATION, .as.scope_violation = {t, t, ids[0], t, t}},
         KEY(0) | KEY(3) | KEY(4),
         KEY(1) | KEY(2) | KEY(5)},
        {{CX_ENTRY_SEAL, .as.seal = {1, d, d, t, cx_str_bytes(t)}}, KEYS_UP_TO(3), KEY(4) | KEY(5)},
        {{CX_ENTRY_DROP_SNAPSHOT, .as.drop_snapshot = {1, d}}, KEYS_UP_TO(2), 0},
        {{CX_ENTRY_REDACT, .as.redact = {1, d, t}}, KEYS_UP_TO(2), KEY(3)},
        {{CX_ENTRY_REDACT_MEMORY, .as.redact_memory = {ids[0], 1, d, t}}, KEYS_UP_TO(3), KEY(4)},
    };
    for (size_t i = 0; i < CX_COUNT_OF(shapes); i++)
        check_shape(&shapes[i].payload, shapes[i].required, shapes[i].omittable);
}

static bool accepts(const cx_payload *payload)
{
    const kit_format format = kit_payload(payload->kind);
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_payload_encode(payload, &out);
    bool accepted = kit_accepts(&format, cx_buf_bytes(&out));
    cx_buf_done(&out);
    return accepted;
}

CX_TEST(payload_ranges)
{
    for (unsigned code = 0; code < 20; code++) {
        const cx_payload write = {CX_ENTRY_WRITE, .as.write = {.type = (uint8_t)code}};
        const cx_payload edge = {CX_ENTRY_ADD_EDGE, .as.edge = {.type = (uint8_t)code}};
        const cx_payload attest = {CX_ENTRY_ATTEST, .as.attest = {.outcome = (uint8_t)code}};
        CHECK(accepts(&write) == (code >= 1 && code <= 9));
        CHECK(accepts(&edge) == (code >= 1 && code <= 14));
        CHECK(accepts(&attest) == (code <= 1));
    }
    static const cx_id many[257];
    cx_payload attest = {CX_ENTRY_ATTEST, .as.attest = {.cited = many, .cited_count = 256}};
    CHECK(accepts(&attest));
    attest.as.attest.cited_count = 257;
    CHECK(!accepts(&attest));
    /* A limit below zero is a value like others; zero is left out. */
    const cx_payload late = {CX_ENTRY_FIND_LATE, .as.find_late = {.limit = -1, .result_count = -1}};
    CHECK(accepts(&late));
    /* -0 is empty as 0 is. */
    cx_payload edge = {CX_ENTRY_ADD_EDGE, .as.edge = {.type = 1, .weight = -0.0f}};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_payload_encode(&edge, &out);
    CHECK_INT(out.data[0], 0xa4);
    cx_buf_done(&out);
}

CX_TEST(payload_of_a_tombstone_is_16_bare_bytes)
{
    const kit_format format = kit_payload(CX_ENTRY_TOMBSTONE);
    static const uint8_t bytes[18];
    for (size_t size = 0; size <= sizeof bytes; size++)
        CHECK(kit_accepts(&format, cx_bytes_from(bytes, size)) == (size == 16));
}

CX_TEST(payload_of_other_kinds_is_as_it_is)
{
    static const cx_entry_kind kinds[] = {CX_ENTRY_RAW, CX_ENTRY_OTHER, CX_ENTRY_GC,
                                          CX_ENTRY_MIGRATION};
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++) {
        const kit_format format = kit_payload(kinds[i]);
        CHECK(kit_accepts(&format, cx_str_bytes(CX_STR("\xff not CBOR"))));
        CHECK(kit_accepts(&format, (cx_bytes){NULL, 0}));
    }
}

/* The schema is 1; another one is refused, as is a payload of another kind. */
CX_TEST(payload_schema_is_1)
{
    const cx_payload payload = {CX_ENTRY_DROP_SNAPSHOT, .as.drop_snapshot = {1, {{0}}}};
    const kit_format format = kit_payload(payload.kind),
                     other = kit_payload(CX_ENTRY_REDACT_MEMORY);
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_payload_encode(&payload, &out);
    CHECK(kit_accepts(&format, cx_buf_bytes(&out)));
    CHECK(!kit_accepts(&other, cx_buf_bytes(&out)));
    CHECK_INT(out.data[2], 1);
    out.data[2] = 0;
    CHECK(!kit_accepts(&format, cx_buf_bytes(&out)));
    out.data[2] = 2;
    CHECK(!kit_accepts(&format, cx_buf_bytes(&out)));
    cx_buf_done(&out);
}

CX_TEST(payload_lists_without_memory)
{
    const cx_id ids[] = {kit_id(1)};
    const cx_payload attest = {CX_ENTRY_ATTEST, .as.attest = {CX_STR("i"), 0, {0}, ids, 1}};
    cx_payload back = {.kind = CX_ENTRY_SEAL};
    cx_arena arena;
    cx_buf out;
    cx_err err = {0};
    cx_buf_init(&out, cx_alloc_default());
    cx_arena_init(&arena, &kit_no_alloc, 0);
    cx_payload_encode(&attest, &out);
    CHECK_INT(cx_payload_decode(attest.kind, cx_buf_bytes(&out), &arena, &back, &err).code,
              CX_E_NOMEM);
    CHECK_INT(back.kind, CX_ENTRY_SEAL); /* written on success only */
    cx_arena_done(&arena);
    cx_buf_done(&out);
}
