/*
 * fuzz_vscdb.c - any bytes as the database of Cursor's editor: it is refused as no such file, or as
 * one with too much in it, or it becomes JSON lines that the importer reads without an error.
 *
 * A database is a file with a name: each input is written to one, which is gone afterwards.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "import/import.h"
#include "import/vscdb.h"

#define MOST ((size_t)16 << 20)

static cx_err err;

static cx_status drop(void *arg, cx_bytes bytes, cx_err *failure)
{
    (void)arg;
    (void)bytes;
    (void)failure;
    return CX_SUCCESS;
}

static void check_lines(cx_bytes lines)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_import_summary summary = {0};
    FUZZ_CHECK(lines.size != 0 && lines.data[lines.size - 1] == '\n');
    FUZZ_CHECK(
        !cx_failed(cx_import_run_bytes("cursor", &lines, 1, &options, drop, NULL, &summary, &err)));
    cx_import_summary_done(&summary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/cortex-fuzz-vscdb-XXXXXX";
    cx_buf out;
    int file = mkstemp(path);
    FUZZ_CHECK(file >= 0);
    FUZZ_CHECK(write(file, data, size) == (ssize_t)size);
    (void)close(file);
    cx_buf_init(&out, cx_alloc_default());
    cx_status status = cx_import_read_vscdb(path, MOST, &out, &err);
    if (cx_failed(status))
        FUZZ_CHECK(status.code == CX_E_FORMAT || status.code == CX_E_LIMIT ||
                   status.code == CX_E_NOMEM);
    else
        check_lines(cx_buf_bytes(&out));
    cx_buf_done(&out);
    FUZZ_CHECK(unlink(path) == 0);
    return 0;
}
