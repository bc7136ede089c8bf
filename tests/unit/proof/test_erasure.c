/*
 * test_erasure.c - the receipt of an erasure: written, read again, and every byte of it counts.
 */
#include "base/api.h"
#include "crypto/api.h"
#include "proof/api.h"
#include "tests/test.h"

#define HASH "0000000000000000000000000000000000000000000000000000000000000001"
#define LIST                                                  \
    "entry 2 note.text 2026-01-01T00:00:00Z " HASH " 3 a b\n" \
    "memory 01M8GE1TE6VZBDNRQ41BB7AZSM 1 " HASH " 4 a b\n"

static void write_receipt(cx_buf *out)
{
    cx_erasure_head head = {.home = CX_STR("00"),
                            .request = 7,
                            .from_commit = 5,
                            .selected = CX_STR("agent a b"),
                            .by = CX_STR("ann"),
                            .reason = CX_STR("two\nlines"),
                            .requested = CX_STR("2026-01-01T00:00:00Z"),
                            .completed = CX_STR("2026-01-01T00:00:01Z"),
                            .entries = 1,
                            .memories = 1,
                            .list = cx_digest_of(cx_str_bytes(CX_STR(LIST)))};
    cx_erasure_head_write(&head, out);
    cx_buf_add_z(out, LIST);
}

CX_TEST(a_receipt_is_read_as_it_was_written)
{
    cx_buf text;
    cx_err err;
    cx_erasure_receipt receipt;
    cx_buf_init(&text, cx_alloc_default());
    write_receipt(&text);
    CHECK_STATUS(cx_erasure_read(cx_buf_bytes(&text), &receipt, &err), &err);
    CHECK(receipt.head.request == 7 && receipt.head.from_commit == 5);
    CHECK(cx_str_is(receipt.head.reason, "two\\nlines") ||
          cx_str_is(receipt.head.reason, "two\\u000alines"));
    CHECK(cx_str_is(receipt.list, LIST) && receipt.signatures.size == 0);
    CHECK(receipt.text.size == text.size);
    cx_buf_add_z(&text, "\nsignature\n");
    CHECK_STATUS(cx_erasure_read(cx_buf_bytes(&text), &receipt, &err), &err);
    CHECK(cx_str_is(receipt.signatures, "signature\n"));
    cx_buf_done(&text);
}

CX_TEST(what_is_cut_or_changed_is_no_receipt)
{
    cx_buf text;
    cx_err err;
    cx_erasure_receipt receipt;
    cx_buf_init(&text, cx_alloc_default());
    write_receipt(&text);
    for (size_t size = 0; size < text.size; size++)
        CHECK(cx_failed(cx_erasure_read(cx_bytes_from(text.data, size), &receipt, &err)));
    size_t list_at = text.size - strlen(LIST);
    for (size_t at = list_at; at < text.size; at++) {
        text.data[at] ^= 1;
        CHECK(cx_failed(cx_erasure_read(cx_buf_bytes(&text), &receipt, &err)));
        text.data[at] ^= 1;
    }
    CHECK_STATUS(cx_erasure_read(cx_buf_bytes(&text), &receipt, &err), &err);
    cx_buf_done(&text);
}
