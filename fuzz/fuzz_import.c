/*
 * fuzz_import.c - any bytes as an external trace.
 *
 * CX_FUZZ_FORMAT names the format; without it the first byte chooses.  Whatever is accepted gives a
 * lattice that holds strictly, but for times the source itself has in the wrong order, and the
 * same bytes a second time.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "import/import.h"
#include "lattice/lattice.h"

static cx_status collect(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_buf_add(arg, bytes.data, bytes.size);
    return cx_buf_check(arg, err);
}

static const char *choose_format(const uint8_t **data, size_t *size)
{
#ifdef CX_FUZZ_FORMAT
    (void)data;
    (void)size;
    return CX_FUZZ_FORMAT;
#else
    size_t count = 0;
    while (cx_import_format_at(count) != NULL)
        count++;
    if (*size == 0)
        return NULL;
    const char *name = cx_import_format_at(**data % count)->name;
    ++*data;
    --*size;
    return name;
#endif
}

static void check_lattice(cx_bytes bytes)
{
    cx_lattice_checks checks = {true, true, true, true, NULL};
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    FUZZ_CHECK(!cx_failed(cx_lattice_open_bytes(bytes, NULL, &lattice, &err)));
    FUZZ_CHECK(!cx_failed(cx_lattice_verify(lattice, &checks, &report, &err)));
    size_t count;
    const cx_lattice_finding *errors = cx_lattice_report_errors(report, &count);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(errors[i].code == CX_E_TIME);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_buf out[2];
    cx_status status[2];
    cx_err err;
    const char *format = choose_format(&data, &size);
    if (format == NULL)
        return 0;
    cx_bytes file = {data, size};
    for (int i = 0; i < 2; i++) {
        cx_import_options options = CX_IMPORT_OPTIONS_INIT;
        options.seed = (uint64_t)i + 1;
        cx_buf_init(&out[i], cx_alloc_default());
        status[i] = cx_import_run_bytes(format, &file, 1, &options, collect, &out[i], NULL, &err);
    }
    FUZZ_CHECK(status[0].code == status[1].code);
    if (!cx_failed(status[0])) {
        FUZZ_CHECK(cx_str_eq(cx_buf_str(&out[0]), cx_buf_str(&out[1])));
        check_lattice(cx_buf_bytes(&out[0]));
    }
    cx_buf_done(&out[0]);
    cx_buf_done(&out[1]);
    return 0;
}
