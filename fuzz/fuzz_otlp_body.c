/*
 * fuzz_otlp_body.c - any bytes as the body of an export: the way from Content-Encoding to records,
 * as the receiver goes it.  The first byte chooses: 1 logs, 2 JSON, 4 gzip.
 */
#include <string.h>

#include "base/arena.h"
#include "os/gzip.h"
#include "fuzz/fuzz.h"
#include "import/otlp_scan.h"

#define UNPACKED_MAX ((size_t)1 << 20)

/* What is accepted once is accepted again, and means the same. */
static void scan(cx_otlp_signal signal, bool is_json, cx_bytes body)
{
    cx_arena arena;
    cx_otlp_request request, again;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (cx_failed(cx_otlp_scan(signal, is_json, body, &arena, &request, &err))) {
        FUZZ_CHECK(err.code == CX_E_NOMEM || err.tag != NULL);
    } else {
        FUZZ_CHECK(request.count <= CX_OTLP_RECORDS_MAX);
        FUZZ_CHECK(!cx_failed(cx_otlp_scan(signal, is_json, body, &arena, &again, &err)));
        FUZZ_CHECK(again.count == request.count);
        for (size_t i = 0; i < request.count; i++) {
            const cx_otlp_record *a = &request.records[i], *b = &again.records[i];
            FUZZ_CHECK(a->fault == b->fault);
            FUZZ_CHECK(a->fault == CX_OTLP_NO_OBJECT || cx_digest_eq(&a->content, &b->content));
            (void)cx_otlp_service(a->resource);
        }
    }
    cx_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_buf unpacked;
    cx_err err;
    if (size == 0)
        return 0;
    cx_otlp_signal signal = (data[0] & 1) != 0 ? CX_OTLP_LOGS : CX_OTLP_TRACES;
    bool is_json = (data[0] & 2) != 0;
    cx_bytes body = cx_bytes_from(data + 1, size - 1);
    if ((data[0] & 4) == 0) {
        scan(signal, is_json, body);
        return 0;
    }
    cx_buf_init(&unpacked, cx_alloc_default());
    if (!cx_failed(cx_gzip_unpack(body, UNPACKED_MAX, &unpacked, &err))) {
        FUZZ_CHECK(unpacked.size <= UNPACKED_MAX);
        scan(signal, is_json, cx_buf_bytes(&unpacked));
    } else {
        FUZZ_CHECK(unpacked.size == 0);
    }
    cx_buf_done(&unpacked);
    return 0;
}
