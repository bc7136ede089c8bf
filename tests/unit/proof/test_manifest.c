/*
 * test_manifest.c - manifests: the vectors from their fields and back, digest, implied root, and
 * the agreement of schema, scheme and roots.
 */
#include "tests/support/record_kit.h"

static const kit_format manifest_format = {"manifest", again_manifest, CX_ENTRY_RAW};

static cx_manifest sample(cx_scheme scheme)
{
    cx_manifest manifest = {.scheme = scheme,
                            .actor = CX_STR("andrew"),
                            .snapshot_seq = 0,
                            .journal_size = 3,
                            .journal_root = kit_filled(1),
                            .has_edges = true,
                            .has_memories = true,
                            .edges_root = kit_filled(3),
                            .memories_root = kit_filled(2),
                            .created_ns = 1700000000123456789,
                            .trigger = CX_STR("compile"),
                            .signature = {.null = true},
                            .live_memories = 2,
                            .edge_count = 1,
                            .tombstoned = 1};
    manifest.overall_root = cx_manifest_overall(&manifest);
    return manifest;
}

static bool accepted(const cx_manifest *manifest)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_manifest_encode(manifest, &out);
    bool good = kit_accepts(&manifest_format, cx_buf_bytes(&out));
    cx_buf_done(&out);
    return good;
}

static void check_case(const tree_file *file, const char *label, const cx_manifest *manifest)
{
    const cx_json *item = kit_case(tree_list(file, "/manifest"), label);
    cx_arena arena;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_manifest_encode(manifest, &out);
    CHECK_SAME(&out, kit_member(item, "cbor", &arena));
    kit_check_whole(&manifest_format, cx_buf_bytes(&out));
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

CX_TEST(manifests_of_the_vectors_from_their_fields_and_back)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        const cx_json *zero =
            kit_case(tree_list(&file, "/manifest"), "zero manifest (nil StateRoots -> null)");
        cx_manifest manifest = sample(CX_SCHEME_MATRIX_1);
        check_case(&file, "normal", &manifest);
        manifest.trigger = CX_STR("");
        manifest.signed_by = CX_STR("did:x");
        manifest.signature = (cx_maybe_bytes){false, cx_str_bytes(CX_STR("\x09\x09"))};
        manifest.live_memories = manifest.edge_count = manifest.tombstoned = 0;
        check_case(&file, "no trigger, signed, zero counters (still encoded)", &manifest);
        /* Schema 0: shows the encoder of the original only. */
        CHECK(!kit_accepts(&manifest_format, kit_member(zero, "cbor", &file.arena)));
    }
    tree_file_close(&file);
}

CX_TEST(manifest_signed_of_cortex_1)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_CORTEX_1, "entries.json")) {
        cx_bytes bytes =
            kit_member(CX_JSON_GET(&file.root, "seal"), "manifest_signed_cbor", &file.arena);
        cx_manifest manifest = {.signature = {.null = true}};
        cx_buf body;
        cx_digest digest;
        cx_err err = {0};
        cx_buf_init(&body, cx_alloc_default());
        CHECK_STATUS(cx_manifest_decode(bytes, &manifest, &err), &err);
        CHECK_INT(manifest.scheme, CX_SCHEME_CORTEX_1);
        CHECK_INT(manifest.snapshot_seq, 0);
        CHECK_INT(manifest.journal_size, 19);
        CHECK_STR(manifest.trigger, "for-scope");
        CHECK_STR(manifest.signed_by, "cortex.example/andrew");
        CHECK(!manifest.signature.null && manifest.signature.bytes.size == 64);
        CHECK(manifest.live_memories == 5 && manifest.edge_count == 2 && manifest.tombstoned == 1);
        CHECK_DIGEST(cx_manifest_overall(&manifest), manifest.overall_root);
        kit_check_whole(&manifest_format, bytes);
        /* The body is the manifest without its two fields of the signature. */
        cx_manifest_encode_body(&manifest, &body);
        CHECK_STATUS(cx_manifest_digest(&manifest, cx_alloc_default(), &digest, &err), &err);
        CHECK_DIGEST(cx_scheme_manifest(cx_buf_bytes(&body)), digest);
        CHECK_INT(cx_manifest_digest(&manifest, &kit_no_alloc, &digest, &err).code, CX_E_NOMEM);
        manifest.signed_by = CX_STR("");
        manifest.signature = (cx_maybe_bytes){.null = true};
        cx_buf whole;
        cx_buf_init(&whole, cx_alloc_default());
        cx_manifest_encode(&manifest, &whole);
        CHECK_SAME(&whole, cx_buf_bytes(&body));
        cx_buf_done(&whole);
        cx_buf_done(&body);
    }
    tree_file_close(&file);
}

CX_TEST(manifest_fields_left_out_doubled_moved_emptied)
{
    static const cx_scheme schemes[] = {CX_SCHEME_MATRIX_1, CX_SCHEME_CORTEX_1};
    const uint64_t always = KEYS_UP_TO(7) | KEY(11);
    for (size_t i = 0; i < CX_COUNT_OF(schemes); i++) {
        cx_manifest manifest = sample(schemes[i]);
        cx_buf out;
        cx_buf_init(&out, cx_alloc_default());
        manifest.signed_by = CX_STR("me");
        manifest.signature = (cx_maybe_bytes){false, cx_str_bytes(CX_STR("signature"))};
        cx_manifest_encode(&manifest, &out);
        kit_check_map(&manifest_format, cx_buf_bytes(&out), KIT_TOP,
                      schemes[i] == CX_SCHEME_CORTEX_1 ? always | KEY(12) : always,
                      KEY(8) | KEY(9) | KEY(10), 0);
        kit_check_map(&manifest_format, cx_buf_bytes(&out), KIT_PATH(11), KEY(1) | KEY(2), KEY(3),
                      0);
        cx_buf_done(&out);
    }
}

/* matrix-1 may name one root, or none, or have no map; cortex-1 has always both. */
CX_TEST(manifest_roots_by_scheme)
{
    for (unsigned which = 0; which < 5; which++) {
        cx_manifest matrix = sample(CX_SCHEME_MATRIX_1), cortex = sample(CX_SCHEME_CORTEX_1);
        matrix.has_edges = cortex.has_edges = (which & 1) != 0;
        matrix.has_memories = cortex.has_memories = (which & 2) != 0;
        matrix.state_roots_null = cortex.state_roots_null = which == 4;
        CHECK(accepted(&matrix));
        CHECK(accepted(&cortex) == (which == 3));
    }
}

CX_TEST(manifest_roots_are_in_one_order)
{
    /* The map of the roots follows a0..04; its two names are swapped here. */
    const cx_manifest manifest = sample(CX_SCHEME_CORTEX_1);
    cx_buf out, swapped;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&swapped, cx_alloc_default());
    cx_manifest_encode(&manifest, &out);
    const size_t edges_size = 6 + 34, memories_size = 9 + 34;
    size_t at = 0;
    while (at + 8 < out.size && memcmp(out.data + at,
                                       "\x05\xa2\x65"
                                       "edges",
                                       8) != 0)
        at++;
    REQUIRE(at + 2 + edges_size + memories_size < out.size);
    at += 2;
    cx_buf_add(&swapped, out.data, at);
    cx_buf_add(&swapped, out.data + at + edges_size, memories_size);
    cx_buf_add(&swapped, out.data + at, edges_size);
    cx_buf_add(&swapped, out.data + at + edges_size + memories_size,
               out.size - at - edges_size - memories_size);
    CHECK_INT(swapped.size, out.size);
    CHECK(kit_accepts(&manifest_format, cx_buf_bytes(&out)));
    CHECK(!kit_accepts(&manifest_format, cx_buf_bytes(&swapped)));
    /* A name that is neither. */
    memcpy(out.data + at + 1, "edgez", 5);
    CHECK(!kit_accepts(&manifest_format, cx_buf_bytes(&out)));
    cx_buf_done(&swapped);
    cx_buf_done(&out);
}

/* Schema 2 and the name go together. */
CX_TEST(manifest_schema_and_name_agree)
{
    const cx_manifest cortex = sample(CX_SCHEME_CORTEX_1), matrix = sample(CX_SCHEME_MATRIX_1);
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_manifest_encode(&cortex, &out);
    CHECK_INT(out.data[2], 2);
    for (uint8_t schema = 0; schema < 5; schema++) {
        out.data[2] = schema;
        CHECK(kit_accepts(&manifest_format, cx_buf_bytes(&out)) == (schema == 2));
    }
    out.data[2] = 2;
    out.data[out.size - 1] = '2'; /* "cortex-2" */
    CHECK(!kit_accepts(&manifest_format, cx_buf_bytes(&out)));
    cx_buf_clear(&out);
    cx_manifest_encode(&matrix, &out);
    CHECK_INT(out.data[2], 1);
    for (uint8_t schema = 0; schema < 5; schema++) {
        out.data[2] = schema;
        CHECK(kit_accepts(&manifest_format, cx_buf_bytes(&out)) == (schema == 1));
    }
    cx_buf_done(&out);
}

CX_TEST(manifest_overall_root_of_the_vectors)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        const cx_json *list = tree_list(&file, "/overall_root");
        size_t checked = 0;
        for (uint32_t i = 0; i < list->count; i++) {
            const cx_json *roots = CX_JSON_GET(&list->items[i], "state_roots");
            cx_manifest manifest = {.scheme = CX_SCHEME_MATRIX_1,
                                    .journal_root = tree_digest(&list->items[i], "journal_root")};
            bool known = true;
            for (uint32_t k = 0; roots != NULL && k < roots->count; k++) {
                cx_str name = CX_JSON_GET_STR(&roots->items[k], "ns");
                cx_digest root = tree_digest(&roots->items[k], "root");
                if (cx_str_is(name, "edges")) {
                    manifest.has_edges = true;
                    manifest.edges_root = root;
                } else if (cx_str_is(name, "memories")) {
                    manifest.has_memories = true;
                    manifest.memories_root = root;
                } else {
                    known = false; /* a namespace that a manifest of ours cannot hold */
                }
            }
            if (!known)
                continue;
            CHECK_DIGEST(cx_manifest_overall(&manifest), tree_digest(&list->items[i], "overall"));
            checked++;
        }
        CHECK_INT(checked, 4);
    }
    tree_file_close(&file);
}
