/*
 * test_record.c - entries, payloads and records: the vectors come back byte for byte, and no
 * changed bit is taken for the same record.
 */
#include "fuzz/records.h"
#include "tests/unit/ledger/tree_vectors.h"

typedef struct sample {
    cx_bytes bytes;
    record_again *again;
} sample;

static cx_bytes hex_bytes(cx_str hex, cx_arena *arena)
{
    uint8_t *bytes = cx_arena_push(arena, hex.size / 2 + 1, 1);
    if (bytes == NULL || !cx_hex_decode(hex, bytes, hex.size / 2))
        cx_test_fail(__FILE__, __LINE__, "not hex: %.*s", (int)hex.size, hex.data);
    return cx_bytes_from(bytes, hex.size / 2);
}

static void check_again(record_again *again, cx_bytes bytes, const char *what)
{
    cx_arena arena;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    if (!again(bytes, &arena, &out))
        cx_test_fail(__FILE__, __LINE__, "%s is refused", what);
    else
        CHECK(cx_str_eq(cx_buf_str(&out), cx_bytes_str(bytes)));
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

/* Every truncation is refused; every flipped bit is refused or is another record's one spelling. */
static void check_damage(record_again *again, cx_bytes bytes)
{
    cx_arena arena;
    cx_buf out, copy;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&copy, cx_alloc_default());
    for (size_t size = 0; size < bytes.size; size++) {
        cx_buf_clear(&out);
        CHECK(!again(cx_bytes_from(bytes.data, size), &arena, &out));
    }
    cx_buf_add(&copy, bytes.data, bytes.size);
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        copy.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cx_buf_clear(&out);
        if (again(cx_buf_bytes(&copy), &arena, &out))
            CHECK(cx_str_eq(cx_buf_str(&out), cx_buf_str(&copy)));
        copy.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    cx_buf_done(&copy);
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

/* The records of a list of objects; labels that show only the encoder are passed over. */
static void check_list(const tree_file *file, const char *pointer, const char *member,
                       record_again *again)
{
    const cx_json *list = tree_list(file, pointer);
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (uint32_t i = 0; i < list->count; i++) {
        const cx_json *label = cx_json_get(&list->items[i], CX_STR("label"));
        cx_str name = label != NULL ? cx_json_text(label) : CX_STR("");
        const cx_json *hex = cx_json_get(&list->items[i], cx_str_z(member));
        if (cx_str_starts(name, CX_STR("all zero")) || cx_str_starts(name, CX_STR("zero manifest")))
            continue;
        if (hex == NULL) {
            cx_test_fail(__FILE__, __LINE__, "no %s in %s", member, pointer);
            continue;
        }
        cx_bytes bytes = hex_bytes(cx_json_text(hex), &arena);
        check_again(again, bytes, pointer);
        check_damage(again, bytes);
    }
    cx_arena_done(&arena);
}

CX_TEST(records_of_the_vectors_come_back)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        check_list(&file, "/heads", "cbor", again_head);
        check_list(&file, "/versions", "cbor_final", again_version);
        check_list(&file, "/versions", "cbor_with_zero_hash", again_version);
        check_list(&file, "/edges", "cbor", again_edge);
        check_list(&file, "/checkpoint", "cbor", again_checkpoint_record);
        check_list(&file, "/manifest", "cbor", again_manifest);
        check_list(&file, "/salience/scores", "cbor", again_salience);
        check_list(&file, "/salience/weights", "cbor", again_weights);
    }
    tree_file_close(&file);
}

CX_TEST(version_hashes_of_the_vectors)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "codec.json")) {
        const cx_json *list = tree_list(&file, "/versions");
        for (uint32_t i = 0; i < list->count; i++) {
            cx_bytes bytes = hex_bytes(
                cx_json_text(cx_json_get(&list->items[i], CX_STR("cbor_final"))), &file.arena);
            cx_version_record version;
            cx_digest hash = {{0}};
            cx_err err = {0};
            CHECK_STATUS(cx_version_decode(bytes, &file.arena, &version, &err), &err);
            CHECK_STATUS(cx_version_hash(&version, cx_alloc_default(), &hash, &err), &err);
            CHECK_DIGEST(hash, tree_digest(&list->items[i], "version_hash"));
            CHECK_DIGEST(version.hash, hash);
        }
    }
    tree_file_close(&file);
}

static void check_payload(const cx_json *item, const cx_entry *entry)
{
    cx_arena arena;
    cx_buf out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_entry_kind kind = cx_entry_kind_of(entry->kind);
    CHECK(cx_str_eq(cx_entry_kind_name(kind), entry->kind) || kind == CX_ENTRY_OTHER);
    bool shaped = kind != CX_ENTRY_RAW && kind != CX_ENTRY_OTHER && kind != CX_ENTRY_GC &&
                  kind != CX_ENTRY_MIGRATION;
    const cx_json *fields = cx_json_get(item, CX_STR("payload_fields"));
    if (shaped && fields != NULL && fields->type == CX_JSON_OBJECT) {
        CHECK(again_payload(kind, entry->payload, &arena, &out));
        CHECK(cx_str_eq(cx_buf_str(&out), cx_bytes_str(entry->payload)));
    }
    cx_buf_done(&out);
    cx_arena_done(&arena);
}

CX_TEST(entries_of_every_kind_come_back)
{
    tree_file file;
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "journal.json")) {
        const cx_json *list = tree_list(&file, "/cases");
        for (uint32_t i = 0; i < list->count; i++) {
            const cx_json *item = &list->items[i];
            cx_bytes bytes =
                hex_bytes(cx_json_text(cx_json_get(item, CX_STR("cbor"))), &file.arena);
            cx_entry entry;
            cx_err err = {0};
            cx_status status = cx_entry_decode(bytes, &entry, &err);
            CHECK_STATUS(status, &err);
            if (cx_failed(status))
                continue;
            check_again(again_entry, bytes, "entry");
            check_damage(again_entry, bytes);
            CHECK_INT(entry.seq, tree_number(item, "seq"));
            CHECK(cx_str_eq(entry.kind, cx_json_text(cx_json_get(item, CX_STR("kind")))));
            CHECK_DIGEST(cx_scheme_entry(bytes), tree_digest(item, "leaf_hash"));
            check_payload(item, &entry);
        }
    }
    tree_file_close(&file);
}

CX_TEST(entry_kinds)
{
    CHECK(cx_entry_kind_ok(CX_STR("raw")) && cx_entry_kind_ok(CX_STR("trace.received")));
    CHECK(cx_entry_kind_ok(CX_STR("a_1.b2")) && cx_entry_kind_ok(CX_STR("x")));
    CHECK(!cx_entry_kind_ok(CX_STR("")) && !cx_entry_kind_ok(CX_STR(".a")));
    CHECK(!cx_entry_kind_ok(CX_STR("a.")) && !cx_entry_kind_ok(CX_STR("a..b")));
    CHECK(!cx_entry_kind_ok(CX_STR("A")) && !cx_entry_kind_ok(CX_STR("1a")));
    CHECK(!cx_entry_kind_ok(CX_STR("a.1")) && !cx_entry_kind_ok(CX_STR("a-b")));
    char long_kind[CX_ENTRY_KIND_MAX + 1];
    memset(long_kind, 'a', sizeof long_kind);
    CHECK(cx_entry_kind_ok(cx_str_from(long_kind, CX_ENTRY_KIND_MAX)));
    CHECK(!cx_entry_kind_ok(cx_str_from(long_kind, CX_ENTRY_KIND_MAX + 1)));
}

/* A payload is inline, or committed to, or absent; never two of these. */
CX_TEST(entry_payloads_exclude_one_another)
{
    static const char *const refused[] = {
        "a501000263726177030005410006"
        "5820"
        "0000000000000000000000000000000000000000000000000000000000000000",
        "a40100026372617703000705",
        "a4010002637261770300054"
        "0",
        "a401000263726177030004"
        "40",
        "a30100026352617703"
        "00",
        "a201000263726177",
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++) {
        cx_entry entry;
        cx_err err = {0};
        cx_status status = cx_entry_decode(hex_bytes(cx_str_z(refused[i]), &arena), &entry, &err);
        CHECK_INT(status.code, CX_E_FORMAT);
        CHECK(err.tag != NULL && strcmp(err.tag, "NonCanonical") == 0);
    }
    cx_arena_done(&arena);
}

/* null and empty are two values, and both stay what they are. */
CX_TEST(version_data_null_is_not_empty)
{
    cx_version_record version = {.version = 1,
                                 .type = 2,
                                 .confidence = 1.0f,
                                 .created_by = CX_STR("me"),
                                 .provenance = {.source = CX_STR("observed")},
                                 .forms = {CX_STR("s"), CX_STR("m")}};
    cx_arena arena;
    cx_buf null, empty;
    cx_err err = {0};
    cx_version_record back;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&null, cx_alloc_default());
    cx_buf_init(&empty, cx_alloc_default());
    cx_version_encode(&version, &empty);
    version.data.null = true;
    cx_version_encode(&version, &null);
    CHECK(!cx_str_eq(cx_buf_str(&null), cx_buf_str(&empty)));
    CHECK_STATUS(cx_version_decode(cx_buf_bytes(&null), &arena, &back, &err), &err);
    CHECK(back.data.null);
    CHECK_STATUS(cx_version_decode(cx_buf_bytes(&empty), &arena, &back, &err), &err);
    CHECK(!back.data.null && back.data.bytes.size == 0);
    version.erased = true;
    cx_buf_clear(&null);
    cx_version_encode(&version, &null);
    CHECK_STATUS(cx_version_decode(cx_buf_bytes(&null), &arena, &back, &err), &err);
    CHECK(back.erased);
    cx_buf_done(&null);
    cx_buf_done(&empty);
    cx_arena_done(&arena);
}
