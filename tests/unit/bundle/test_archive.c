/* A bundle as one file: what comes back, the same bytes each time, and archives of others
 * (run-archive.md). */
#include "bundle/archive.h"

#include <stdio.h>

#include "bundle/bundle_internal.h"
#include "audit/verify.h"
#include "tests/test.h"
#include "tests/support/run_kit.h"

static bool make_archive(run_kit *kit, cx_buf *out)
{
    cx_run_bundle *bundle;
    CHECK_STATUS(run_kit_write(kit, &kit->err), &kit->err);
    CHECK_STATUS(
        cx_run_bundle_open(NULL, NULL, run_kit_path(kit, "runs/" KIT_RUN).data, &bundle, &kit->err),
        &kit->err);
    cx_status status = cx_run_archive_write(bundle, out, &kit->err);
    cx_run_bundle_close(bundle);
    CHECK_STATUS(status, &kit->err);
    return !cx_failed(status);
}

CX_TEST(archive_is_the_bundle_and_the_same_each_time)
{
    run_kit kit;
    cx_buf once, again;
    cx_run_bundle *folder, *archive;
    size_t count[2];
    if (!run_kit_init(&kit, "archive_same", NULL, NULL))
        return;
    cx_buf_init(&once, cx_alloc_default());
    cx_buf_init(&again, cx_alloc_default());
    if (make_archive(&kit, &once)) {
        CHECK_STATUS(cx_run_bundle_open(NULL, NULL, run_kit_path(&kit, "runs/" KIT_RUN).data,
                                        &folder, &kit.err),
                     &kit.err);
        CHECK_STATUS(cx_run_archive_write(folder, &again, &kit.err), &kit.err);
        CHECK(cx_str_eq(cx_buf_str(&once), cx_buf_str(&again)));
        CHECK_STATUS(cx_run_bundle_open_archive(NULL, cx_buf_bytes(&once), &archive, &kit.err),
                     &kit.err);
        CHECK_STR(cx_run_bundle_name(archive), KIT_RUN);
        const cx_run_entry *a = cx_run_bundle_entries(folder, &count[0]);
        const cx_run_entry *b = cx_run_bundle_entries(archive, &count[1]);
        CHECK_INT(count[0], count[1]);
        for (size_t i = 0; i < count[0] && i < count[1]; i++) {
            cx_bytes x, y;
            CHECK(cx_str_eq(a[i].path, b[i].path));
            CHECK_STATUS(cx_run_bundle_read(folder, a[i].path, 1 << 20, &x, &kit.err), &kit.err);
            CHECK_STATUS(cx_run_bundle_read(archive, a[i].path, 1 << 20, &y, &kit.err), &kit.err);
            CHECK(cx_str_eq(cx_bytes_str(x), cx_bytes_str(y)));
        }
        cx_run_bundle_close(archive);
        cx_run_bundle_close(folder);
    }
    cx_buf_done(&once);
    cx_buf_done(&again);
    run_kit_done(&kit);
}

CX_TEST(archive_is_judged_like_its_folder)
{
    run_kit kit;
    cx_buf bytes;
    cx_run_bundle *archive;
    cx_run_verdict verdict;
    if (!run_kit_init(&kit, "archive_judge", NULL, NULL))
        return;
    cx_buf_init(&bytes, cx_alloc_default());
    if (make_archive(&kit, &bytes)) {
        CHECK_STATUS(cx_run_bundle_open_archive(NULL, cx_buf_bytes(&bytes), &archive, &kit.err),
                     &kit.err);
        CHECK_STATUS(cx_run_verify(archive, NULL, &kit.arena, &verdict, &kit.err), &kit.err);
        CHECK_INT(verdict.verdict, CX_INDETERMINATE);
        cx_run_findings_done(&verdict.findings);
        cx_run_bundle_close(archive);
    }
    cx_buf_done(&bytes);
    run_kit_done(&kit);
}

/* Names that need the prefix, and names that need a header of their own. */
CX_TEST(archive_keeps_long_names)
{
    static const size_t lengths[] = {1, 40, 46, 47, 48, 100, 120, 154, 160, 200, 230};
    run_kit kit;
    cx_run *run;
    cx_run_bundle *bundle, *archive;
    cx_buf bytes;
    char name[600];
    if (!run_kit_init(&kit, "archive_long", NULL, NULL))
        return;
    cx_buf_init(&bytes, cx_alloc_default());
    CHECK_STATUS(run_kit_begin(&kit, &run, &kit.err), &kit.err);
    for (size_t i = 0; i < CX_COUNT_OF(lengths); i++) {
        memset(name, 'a' + (int)i, lengths[i]);
        name[lengths[i]] = '\0';
        CHECK_STATUS(cx_run_file_write(run, cx_str_z(name), cx_str_bytes(CX_STR("x")), &kit.err),
                     &kit.err);
        (void)snprintf(
            name + lengths[i], sizeof name - lengths[i], "-folder/%.*s", (int)lengths[i],
            "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
        if (lengths[i] < 240)
            CHECK_STATUS(cx_run_file_write(run, cx_str_z(name), (cx_bytes){NULL, 0}, &kit.err),
                         &kit.err);
    }
    CHECK_STATUS(cx_run_bundle_open(NULL, NULL, cx_run_folder(run), &bundle, &kit.err), &kit.err);
    CHECK_STATUS(cx_run_archive_write(bundle, &bytes, &kit.err), &kit.err);
    CHECK_STATUS(cx_run_bundle_open_archive(NULL, cx_buf_bytes(&bytes), &archive, &kit.err),
                 &kit.err);
    size_t a, b;
    const cx_run_entry *of_folder = cx_run_bundle_entries(bundle, &a);
    const cx_run_entry *of_archive = cx_run_bundle_entries(archive, &b);
    CHECK_INT(a, b);
    for (size_t i = 0; i < a && i < b; i++)
        CHECK(cx_str_eq(of_folder[i].path, of_archive[i].path));
    cx_run_bundle_close(archive);
    cx_run_bundle_close(bundle);
    cx_buf_done(&bytes);
    cx_run_end(run);
    run_kit_done(&kit);
}

/* --- archives of others ----------------------------------------------------------------------- */

/* One frame of zstd around a text that is not compressed: magic, content size, raw block. */
static void frame(cx_buf *out, const cx_buf *tar)
{
    uint32_t left = (uint32_t)tar->size, at = 0;
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0};
    cx_buf_add(out, magic, sizeof magic);
    for (unsigned i = 0; i < 4; i++)
        cx_buf_add_byte(out, (uint8_t)(left >> (8 * i)));
    do {
        uint32_t size = left > 0x10000 ? 0x10000 : left;
        uint32_t header = size << 3 | (size == left);
        for (unsigned i = 0; i < 3; i++)
            cx_buf_add_byte(out, (uint8_t)(header >> (8 * i)));
        cx_buf_add(out, tar->data + at, size);
        at += size;
        left -= size;
    } while (left != 0);
}

static bool opens(const cx_buf *tar)
{
    cx_buf bytes;
    cx_run_bundle *bundle;
    cx_err err;
    cx_buf_init(&bytes, cx_alloc_default());
    frame(&bytes, tar);
    cx_status status = cx_run_bundle_open_archive(NULL, cx_buf_bytes(&bytes), &bundle, &err);
    if (!cx_failed(status))
        cx_run_bundle_close(bundle);
    else
        CHECK(status.code == CX_E_FORMAT || status.code == CX_E_LIMIT);
    cx_buf_done(&bytes);
    return !cx_failed(status);
}

/* The plain archive of two small files. */
static void small_tar(run_kit *kit, cx_buf *tar)
{
    cx_run_bundle *bundle;
    cx_run *run;
    cx_buf packed;
    cx_buf_init(&packed, cx_alloc_default());
    CHECK_STATUS(run_kit_begin(kit, &run, &kit->err), &kit->err);
    CHECK_STATUS(cx_run_file_write(run, CX_STR("a/one"), cx_str_bytes(CX_STR("1")), &kit->err),
                 &kit->err);
    CHECK_STATUS(cx_run_file_write(run, CX_STR("b"), cx_str_bytes(CX_STR("22")), &kit->err),
                 &kit->err);
    CHECK_STATUS(cx_run_bundle_open(NULL, NULL, cx_run_folder(run), &bundle, &kit->err), &kit->err);
    CHECK_STATUS(cx_run_archive_write(bundle, &packed, &kit->err), &kit->err);
    CHECK_STATUS(cx_run_archive_unpack(cx_buf_bytes(&packed), tar, &kit->err), &kit->err);
    cx_run_bundle_close(bundle);
    cx_run_end(run);
    cx_buf_done(&packed);
}

/* Sets a header's sum right again. */
static void resum(uint8_t *header)
{
    unsigned sum = 0;
    memset(header + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++)
        sum += header[i];
    (void)snprintf((char *)header + 148, 8, "%06o", sum);
    header[155] = ' ';
}

CX_TEST(archive_of_another_program_is_refused)
{
    run_kit kit;
    cx_buf tar, changed;
    if (!run_kit_init(&kit, "archive_hostile", NULL, NULL))
        return;
    cx_buf_init(&tar, cx_alloc_default());
    cx_buf_init(&changed, cx_alloc_default());
    small_tar(&kit, &tar);
    REQUIRE(tar.size > 3 * 512);
    CHECK(opens(&tar));
    static const struct {
        const char *what;
        size_t at;
        const char *text; /* with its terminator when it is shorter than the field */
        size_t size;
    } changes[] = {
        {"a path that climbs", 0, KIT_RUN "/../../x", sizeof KIT_RUN "/../../x"},
        {"an absolute path", 0, "/etc/passwd", 12},
        {"another folder", 0, "run_other/x", 12},
        {"no folder", 0, "x", 2},
        {"an empty component", 0, KIT_RUN "//x", sizeof KIT_RUN "//x"},
        {"a symbolic link", 156, "2", 1},
        {"a hard link", 156, "1", 1},
        {"a device", 156, "3", 1},
        {"a folder", 156, "5", 1},
        {"a link's target", 157, "/etc", 4},
        {"a mode", 100, "0000755", 8},
        {"an owner", 108, "0000001", 8},
        {"a time", 136, "00000000001", 12},
        {"a name of an owner", 265, "root", 4},
        {"a size beyond the end", 124, "00077777777", 12},
        {"a size that is no number", 124, "zzz", 3},
    };
    for (size_t i = 0; i < CX_COUNT_OF(changes); i++) {
        cx_buf_clear(&changed);
        cx_buf_add(&changed, tar.data, tar.size);
        memcpy(changed.data + changes[i].at, changes[i].text, changes[i].size);
        resum(changed.data);
        if (opens(&changed))
            cx_test_fail(__FILE__, __LINE__, "%s is taken", changes[i].what);
    }
    /* Each byte that is cut off. */
    for (size_t size = 0; size < tar.size; size += size < 600 ? 1 : 101) {
        cx_buf cut = tar;
        cut.size = size;
        CHECK(!opens(&cut));
    }
    /* A file twice, files out of order, something after the end. */
    cx_buf_clear(&changed);
    cx_buf_add(&changed, tar.data, 1024);
    cx_buf_add(&changed, tar.data, tar.size);
    CHECK(!opens(&changed));
    cx_buf_clear(&changed);
    cx_buf_add(&changed, tar.data, tar.size);
    cx_buf_add(&changed, tar.data, 512);
    CHECK(!opens(&changed));
    cx_buf_done(&tar);
    cx_buf_done(&changed);
    run_kit_done(&kit);
}

CX_TEST(archive_that_would_fill_the_memory_is_refused)
{
    /* A frame that says it holds 2^40 bytes, and one that does not say. */
    static const uint8_t large[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0};
    static const uint8_t silent[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 1, 0, 0};
    static const uint8_t none[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    cx_run_bundle *bundle;
    cx_err err;
    CHECK_INT(
        cx_run_bundle_open_archive(NULL, cx_bytes_from(large, sizeof large), &bundle, &err).code,
        CX_E_LIMIT);
    CHECK_INT(
        cx_run_bundle_open_archive(NULL, cx_bytes_from(silent, sizeof silent), &bundle, &err).code,
        CX_E_FORMAT);
    CHECK_INT(
        cx_run_bundle_open_archive(NULL, cx_bytes_from(none, sizeof none), &bundle, &err).code,
        CX_E_FORMAT);
    CHECK_INT(cx_run_bundle_open_archive(NULL, cx_bytes_from(none, 0), &bundle, &err).code,
              CX_E_FORMAT);
}
