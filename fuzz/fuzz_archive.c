/*
 * fuzz_archive.c - any bytes as an archive of a run, compressed or not: it is refused with a
 * reason, or it is a bundle whose files can be read and that is written again as the same archive.
 */
#include "fuzz/fuzz.h"
#include "bundle/archive.h"
#include "bundle/bundle_internal.h"

static cx_err err;

/* What was taken is written again byte for byte. */
static void check_again(cx_run_bundle *bundle, cx_str tar)
{
    cx_buf packed, unpacked;
    size_t count;
    const cx_run_entry *entries = cx_run_bundle_entries(bundle, &count);
    FUZZ_CHECK(cx_run_id_valid(cx_run_bundle_name(bundle)));
    for (size_t i = 0; i < count; i++) {
        cx_bytes bytes;
        FUZZ_CHECK(entries[i].regular && cx_run_bundle_path_fits(entries[i].path));
        FUZZ_CHECK(cx_run_bundle_find(bundle, entries[i].path) == &entries[i]);
        FUZZ_CHECK(!cx_failed(cx_run_bundle_read(bundle, entries[i].path, SIZE_MAX, &bytes, &err)));
        FUZZ_CHECK(bytes.size == entries[i].size_bytes);
    }
    cx_buf_init(&packed, cx_alloc_default());
    cx_buf_init(&unpacked, cx_alloc_default());
    FUZZ_CHECK(!cx_failed(cx_run_archive_write(bundle, &packed, &err)));
    FUZZ_CHECK(!cx_failed(cx_run_archive_unpack(cx_buf_bytes(&packed), &unpacked, &err)));
    FUZZ_CHECK(cx_str_eq(cx_buf_str(&unpacked), tar));
    cx_buf_done(&packed);
    cx_buf_done(&unpacked);
}

static void check_tar(cx_str tar)
{
    cx_run_bundle *bundle = cx_run_bundle_make(NULL, cx_alloc_default());
    FUZZ_CHECK(bundle != NULL);
    cx_buf_add_str(&bundle->unpacked, tar);
    if (!cx_failed(cx_run_archive_list(bundle, &err)))
        check_again(bundle, cx_buf_str(&bundle->unpacked));
    cx_run_bundle_close(bundle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_run_bundle *bundle;
    check_tar(cx_str_from((const char *)data, size));
    cx_status status = cx_run_bundle_open_archive(NULL, cx_bytes_from(data, size), &bundle, &err);
    if (cx_failed(status)) {
        FUZZ_CHECK(status.code == CX_E_FORMAT || status.code == CX_E_LIMIT ||
                   status.code == CX_E_NOMEM || status.code == CX_E_UNSUPPORTED);
    } else {
        check_again(bundle, cx_buf_str(&bundle->unpacked));
        cx_run_bundle_close(bundle);
    }
    return 0;
}
