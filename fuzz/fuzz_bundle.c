/*
 * fuzz_bundle.c - any bytes as the files of a bundle: "NAME\nSIZE\nbytes" one after the other,
 * read as an archive of one folder.  Verifying never fails but for memory and limits, finds the
 * same twice, and never says that something holds which no seal covers.  Also as a patch, as a list
 * of names, as events, and as a lock.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "bundle/archive.h"
#include "bundle/bundle_internal.h"
#include "approval/lock_internal.h"
#include "audit/verify_internal.h"

#define RUN "run_20260101_000000_aee408847d35e44e99430f0979c3357b"
#define FILES_MAX 64

static cx_arena arena;
static cx_err err;

static void put_octal(uint8_t *field, size_t width, uint64_t value)
{
    field[width - 1] = '\0';
    for (size_t i = width - 1; i-- > 0; value >>= 3)
        field[i] = (uint8_t)('0' + (value & 7));
}

/* A header as archive.c writes it, of a file RUN/<path>. */
static void add_header(cx_buf *tar, cx_str path, size_t size)
{
    uint8_t header[512] = {0};
    unsigned sum = 0;
    size_t name = sizeof RUN - 1;
    memcpy(header + 345, RUN, name);
    memcpy(header, path.data, path.size);
    put_octal(header + 100, 8, 0444);
    put_octal(header + 108, 8, 0);
    put_octal(header + 116, 8, 0);
    put_octal(header + 124, 12, size);
    put_octal(header + 136, 12, 0);
    memset(header + 148, ' ', 8);
    header[156] = '0';
    memcpy(header + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof header; i++)
        sum += header[i];
    put_octal(header + 148, 7, sum);
    cx_buf_add(tar, header, sizeof header);
}

/* The files of the input as an archive that is not compressed. */
static void make_tar(cx_str input, cx_buf *tar)
{
    static const uint8_t zeros[1024];
    cx_str line;
    for (size_t i = 0; i < FILES_MAX && cx_run_next_line(&input, &line); i++) {
        cx_str number;
        size_t size = 0;
        if (line.size == 0 || line.size > 100 || !cx_run_next_line(&input, &number))
            break;
        for (size_t k = 0;
             k < number.size && number.data[k] >= '0' && number.data[k] <= '9' && size < input.size;
             k++)
            size = size * 10 + (size_t)(number.data[k] - '0');
        if (size > input.size)
            size = input.size;
        add_header(tar, line, size);
        cx_buf_add(tar, input.data, size);
        if (size % 512 != 0)
            cx_buf_add(tar, zeros, 512 - size % 512);
        input = cx_str_from(input.data + size, input.size - size);
    }
    cx_buf_add(tar, zeros, sizeof zeros);
}

static cx_verdict judge(cx_run_bundle *bundle, const cx_json *seal, size_t *out_findings)
{
    cx_run_verdict verdict;
    cx_run_witness witness = {.seal = seal};
    cx_status status = cx_run_verify(bundle, &witness, &arena, &verdict, &err);
    FUZZ_CHECK(!cx_failed(status) || status.code == CX_E_LIMIT);
    if (cx_failed(status))
        return CX_BROKEN;
    FUZZ_CHECK(seal != NULL || verdict.verdict != CX_HOLDS);
    FUZZ_CHECK((verdict.findings.refusing != 0) == (verdict.verdict == CX_BROKEN));
    *out_findings = verdict.findings.refusing;
    cx_run_findings_done(&verdict.findings);
    return verdict.verdict;
}

/* The bundle without zstd around it. */
static cx_run_bundle *open_tar(cx_buf *tar)
{
    cx_run_bundle *bundle = cx_run_bundle_make(NULL, cx_alloc_default());
    FUZZ_CHECK(bundle != NULL);
    cx_buf_add(&bundle->unpacked, tar->data, tar->size);
    if (cx_failed(cx_run_archive_list(bundle, &err))) {
        cx_run_bundle_close(bundle);
        return NULL;
    }
    return bundle;
}

static void check_bundle(cx_str input, bool raw)
{
    cx_buf tar;
    cx_buf_init(&tar, cx_alloc_default());
    if (raw)
        cx_buf_add_str(&tar, input);
    else
        make_tar(input, &tar);
    cx_run_bundle *bundle = open_tar(&tar);
    if (bundle != NULL) {
        size_t findings[2] = {0, 0};
        cx_json none;
        cx_json_list list = cx_json_list_begin(&arena);
        cx_verdict first = judge(bundle, NULL, &findings[0]);
        FUZZ_CHECK(judge(bundle, NULL, &findings[1]) == first && findings[0] == findings[1]);
        /* An empty seal agrees with nothing. */
        FUZZ_CHECK(!cx_failed(cx_json_list_end_object(&list, &none, &err)));
        FUZZ_CHECK(judge(bundle, &none, &findings[0]) == CX_BROKEN);
        cx_run_bundle_close(bundle);
    }
    cx_buf_done(&tar);
}

static void check_texts(cx_str input)
{
    cx_str *paths, line, rest = input;
    size_t count;
    bool readable;
    cx_json value;
    cx_run_lock lock;
    cx_run_event_read event;
    FUZZ_CHECK(!cx_failed(cx_run_patch_paths(input, &arena, &paths, &count, &readable, &err)));
    for (size_t i = 1; i < count; i++)
        FUZZ_CHECK(cx_str_cmp(paths[i - 1], paths[i]) < 0);
    FUZZ_CHECK(!cx_failed(cx_run_name_list(input, &arena, &paths, &count, &readable, &err)));
    for (uint64_t i = 1; i < 100 && cx_run_next_line(&rest, &line); i++)
        if (!cx_failed(cx_run_event_parse(line, i, &arena, &event, &err)))
            FUZZ_CHECK(event.type.data != NULL && event.payload.type == CX_JSON_OBJECT);
    if (!cx_failed(cx_run_json_read(input, 0, &arena, &value, &err)) &&
        cx_run_lock_parse(&value, &lock))
        FUZZ_CHECK(cx_run_id_valid(lock.run_id) && lock.path.data != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_str input = cx_str_from((const char *)data, size);
    if (arena.alloc == NULL)
        cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_arena_mark mark = cx_arena_mark_now(&arena);
    check_bundle(input, false);
    check_bundle(input, true);
    check_texts(input);
    cx_arena_reset(&arena, mark);
    return 0;
}
