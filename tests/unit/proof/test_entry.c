/*
 * test_entry.c - the bytes of entries: the vectors from their fields and back, and what is refused.
 */
#include "tests/support/record_kit.h"

static const kit_format entry_format = {"entry", again_entry, CX_ENTRY_RAW};

CX_TEST(entry_kinds_of_the_grammar)
{
    static const char *const good[] = {"raw", "trace.received", "a_1.b2", "x", "a.b.c", "a__b_"};
    static const char *const bad[] = {"",    ".a",  "a.",  "a..b", "A",   "1a",      "_a",
                                      "a.1", "a-b", "a b", "a._b", "a\n", "\xc3\xa4"};
    char long_kind[CX_ENTRY_KIND_MAX + 1];
    for (size_t i = 0; i < CX_COUNT_OF(good); i++)
        CHECK(cx_entry_kind_ok(cx_str_z(good[i])));
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(!cx_entry_kind_ok(cx_str_z(bad[i])));
    CHECK(!cx_entry_kind_ok(cx_str_from("a\0b", 3)));
    memset(long_kind, 'a', sizeof long_kind);
    CHECK(cx_entry_kind_ok(cx_str_from(long_kind, CX_ENTRY_KIND_MAX)));
    CHECK(!cx_entry_kind_ok(cx_str_from(long_kind, CX_ENTRY_KIND_MAX + 1)));
}

CX_TEST(entry_kinds_have_names)
{
    for (int kind = 0; kind < CX_ENTRY_OTHER; kind++) {
        cx_str name = cx_entry_kind_name((cx_entry_kind)kind);
        CHECK(cx_entry_kind_ok(name));
        CHECK_INT(cx_entry_kind_of(name), kind);
    }
    CHECK_STR(cx_entry_kind_name(CX_ENTRY_SCOPE_VIOLATION), "scope_violation");
    CHECK_STR(cx_entry_kind_name(CX_ENTRY_OTHER), "");
    CHECK_INT(cx_entry_kind_of(CX_STR("")), CX_ENTRY_OTHER);
    CHECK_INT(cx_entry_kind_of(CX_STR("run.seal")), CX_ENTRY_OTHER);
    CHECK_INT(cx_entry_kind_of(CX_STR("rawx")), CX_ENTRY_OTHER);
}

/* --- the vectors ----------------------------------------------------------------------------- */

static void check_fields(const cx_json *item, const cx_entry *entry, cx_arena *arena)
{
    cx_bytes payload = kit_member(item, "payload", arena);
    cx_bytes by = kit_member(item, "created_by", arena);
    CHECK_INT(entry->seq, tree_number(item, "seq"));
    CHECK_INT(entry->created_at_ns, tree_number(item, "created_at"));
    CHECK(cx_str_eq(entry->kind, cx_json_get_str(item, CX_STR("kind"))));
    CHECK(cx_str_eq(cx_bytes_str(entry->created_by), cx_bytes_str(by)));
    CHECK(cx_str_eq(cx_bytes_str(entry->payload), cx_bytes_str(payload)));
    CHECK(!entry->committed && entry->payload_size == 0);
}

CX_TEST(entries_of_every_kind_from_their_fields_and_back)
{
    tree_file file;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (tree_file_open(&file, CX_SCHEME_MATRIX_1, "journal.json")) {
        const cx_json *list = tree_list(&file, "/cases");
        CHECK(list->count >= 26);
        for (uint32_t i = 0; i < list->count; i++) {
            const cx_json *item = &list->items[i];
            cx_bytes bytes = kit_member(item, "cbor", &file.arena);
            const cx_entry fields = {.seq = tree_number(item, "seq"),
                                     .kind = cx_json_get_str(item, CX_STR("kind")),
                                     .created_at_ns = (int64_t)tree_number(item, "created_at"),
                                     .created_by = kit_member(item, "created_by", &file.arena),
                                     .payload = kit_member(item, "payload", &file.arena)};
            cx_entry entry = {0};
            cx_err err = {0};
            cx_buf_clear(&out);
            cx_entry_encode(&fields, &out);
            CHECK_SAME(&out, bytes);
            CHECK_STATUS(cx_entry_decode(bytes, &entry, &err), &err);
            check_fields(item, &entry, &file.arena);
            CHECK_DIGEST(cx_scheme_entry(bytes), tree_digest(item, "leaf_hash"));
            kit_check_whole(&entry_format, bytes);
        }
    }
    tree_file_close(&file);
    cx_buf_done(&out);
}

CX_TEST(entry_with_a_committed_payload)
{
    tree_file file;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (tree_file_open(&file, CX_SCHEME_CORTEX_1, "entries.json")) {
        const cx_json *item = CX_JSON_GET(&file.root, "committed_entry");
        cx_bytes bytes = kit_member(item, "cbor", &file.arena);
        cx_bytes payload = kit_member(&file.root, "payload", &file.arena);
        cx_digest salt = tree_digest(&file.root, "salt");
        const cx_entry fields = {.seq = 19,
                                 .kind = CX_STR("trace.event"),
                                 .created_at_ns = 1700000026000000000,
                                 .created_by = cx_str_bytes(CX_STR("andrew")),
                                 .committed = true,
                                 .commitment = cx_scheme_payload_commitment(salt.bytes, payload),
                                 .payload_size = payload.size};
        cx_entry entry = {0};
        cx_err err = {0};
        CHECK_DIGEST(fields.commitment, tree_digest(&file.root, "commitment"));
        cx_entry_encode(&fields, &out);
        CHECK_STATUS(cx_entry_decode(bytes, &entry, &err), &err);
        CHECK_INT(entry.created_at_ns, fields.created_at_ns);
        CHECK_SAME(&out, bytes);
        CHECK(entry.committed && entry.payload_size == payload.size && entry.payload.size == 0);
        CHECK_DIGEST(entry.commitment, fields.commitment);
        CHECK_DIGEST(cx_scheme_entry(bytes), tree_digest(item, "leaf_hash"));
        kit_check_whole(&entry_format, bytes);
        kit_check_map(&entry_format, bytes, KIT_TOP, KEY(1) | KEY(2) | KEY(3) | KEY(6),
                      KEY(4) | KEY(7), 0);
    }
    tree_file_close(&file);
    cx_buf_done(&out);
}

CX_TEST(entry_fields_left_out_doubled_moved_emptied)
{
    const cx_entry fields = {.seq = 7,
                             .kind = CX_STR("raw"),
                             .created_at_ns = -1,
                             .created_by = cx_str_bytes(CX_STR("me")),
                             .payload = cx_str_bytes(CX_STR("x"))};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_entry_encode(&fields, &out);
    kit_check_map(&entry_format, cx_buf_bytes(&out), KIT_TOP, KEY(1) | KEY(2) | KEY(3),
                  KEY(4) | KEY(5), 0);
    cx_buf_done(&out);
}

/* --- what is refused ------------------------------------------------------------------------- */

#define ZERO_32 "0000000000000000000000000000000000000000000000000000000000000000"

CX_TEST(entry_payload_is_inline_or_committed_or_absent)
{
    static const struct {
        const char *hex;
        bool accepted;
    } cases[] = {
        {"a3010002637261770300", true},
        {"a40100026372617703000541ff", true},
        {"a401000263726177030006"
         "5820" ZERO_32,
         true}, /* committed, and empty */
        {"a501000263726177030006"
         "5820" ZERO_32 "0701",
         true},
        {"a501000263726177030005"
         "4100"
         "065820" ZERO_32,
         false}, /* both */
        {"a60100026372617703000541000658"
         "20" ZERO_32 "0701",
         false},
        {"a5010002637261770300054100"
         "0701",
         false},
        {"a40100026372617703000705", false}, /* a length of nothing */
        {"a4010002637261770300"
         "0540",
         false},
        {"a4010002637261770300"
         "0440",
         false},
        {"a501000263726177030006"
         "5820" ZERO_32 "0700",
         false},
        {"a301000263526177"
         "0300",
         false}, /* Raw */
        {"a3010002600300", false},
        {"a201000263726177", false},
        {"a3012002637261770300", false}, /* seq -1 */
        {"a3010002437261770300", false}, /* kind as bytes */
        {"a30100026372617703f93c00", false},
        {"a301000263726177031b8000000000000000", false},
        {"a4010002637261770300"
         "046161",
         false}, /* created_by as text */
        {"a301000263726177033b7fffffffffffffff", true},
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_bytes bytes = kit_hex(cx_str_z(cases[i].hex), &arena);
        cx_entry entry;
        cx_err err = {0};
        cx_status status = cx_entry_decode(bytes, &entry, &err);
        if (cx_failed(status) == cases[i].accepted)
            cx_test_fail(__FILE__, __LINE__, "%s: %s", cases[i].hex,
                         cx_failed(status) ? err.message : "accepted");
        if (cx_failed(status)) {
            CHECK_INT(status.code, CX_E_FORMAT);
            CHECK(err.tag != NULL && strcmp(err.tag, "NonCanonical") == 0);
            CHECK(err.offset < bytes.size);
        } else {
            CHECK(kit_accepts(&entry_format, bytes));
        }
    }
    cx_arena_done(&arena);
}

static cx_status decode_of_size(size_t payload_size, cx_err *err)
{
    static uint8_t zeros[CX_ENTRY_PAYLOAD_MAX + 1];
    const cx_entry fields = {.kind = CX_STR("raw"), .payload = cx_bytes_from(zeros, payload_size)};
    cx_entry entry;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_entry_encode(&fields, &out);
    cx_status status = cx_entry_decode(cx_buf_bytes(&out), &entry, err);
    if (!cx_failed(status))
        CHECK_INT(entry.payload.size, payload_size);
    cx_buf_done(&out);
    return status;
}

CX_TEST(entry_sizes_have_limits)
{
    cx_err err = {0};
    CHECK_STATUS(decode_of_size(CX_ENTRY_PAYLOAD_MAX, &err), &err);
    CHECK_INT(decode_of_size((size_t)CX_ENTRY_PAYLOAD_MAX + 1, &err).code, CX_E_FORMAT);
    CHECK_INT(err.offset, 10); /* the field */
    /* Refused by its size before anything is read. */
    const uint8_t byte = 0;
    cx_entry entry;
    CHECK_INT(cx_entry_decode(cx_bytes_from(&byte, (size_t)CX_ENTRY_MAX + 1), &entry, &err).code,
              CX_E_LIMIT);
}

/* A decoder that fails leaves the caller's struct alone. */
CX_TEST(entry_decode_writes_on_success_only)
{
    cx_entry entry = {.seq = 99};
    const uint8_t cut[] = {0xa3, 1, 5, 2};
    CHECK(cx_failed(cx_entry_decode(cx_bytes_from(cut, sizeof cut), &entry, NULL)));
    CHECK_INT(entry.seq, 99);
}
