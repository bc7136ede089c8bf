/*
 * test_home_meanwhile.c - a home that is written to while it is verified: between the reading of
 * the log and the opening of the tables.  Then the tables know more than was read, and that is no
 * cut.
 */
#include <string.h>

#include "tests/support/home_kit.h"
#include "tests/test.h"

typedef struct meanwhile {
    cx_io io;
    kit *writer;
    unsigned asked; /* how often it was asked for a writer: last before the tables */
    unsigned write_at;
} meanwhile;

static int locked_later(const cx_io *io, cx_file file, bool *out_locked)
{
    meanwhile *self = io->ctx;
    if (++self->asked == self->write_at) {
        cx_uri uri;
        CHECK_STATUS(kit_write(self->writer->memory, "written meanwhile", &uri, &self->writer->err),
                     &self->writer->err);
        kit_close(self->writer); /* what is written reaches the tables, too */
    }
    return cx_io_system()->locked(cx_io_system(), file, out_locked);
}

/* Whether the tables were compared; a failed check unless the home holds. */
static bool verified(meanwhile *later, unsigned write_at)
{
    cx_home_verify_options options = {.home = kit_options()};
    cx_home_report *report = NULL;
    cx_err err;
    later->io = *cx_io_system();
    later->io.locked = locked_later;
    later->io.ctx = later;
    later->asked = 0;
    later->write_at = write_at;
    options.home.io = &later->io;
    cx_status status = cx_home_verify(later->writer->path, &options, &report, &err);
    CHECK_STATUS(status, &err);
    if (cx_failed(status))
        return false;
    CHECK_INT(cx_home_report_verdict(report), CX_HOLDS);
    CHECK_INT(cx_home_report_count(report), 0);
    bool compared = cx_home_report_totals(report)->tables_checked;
    cx_home_report_close(report);
    return compared;
}

CX_TEST(home_meanwhile_a_verification_that_is_overtaken_finds_no_cut)
{
    kit k;
    if (!kit_init(&k, "meanwhile", CX_SCHEME_CORTEX_1))
        return;
    kit_fill(&k);
    CHECK_STATUS(cx_home_flush(k.home, &k.err), &k.err);
    meanwhile later = {.writer = &k};
    CHECK(verified(&later, 0));
    CHECK(later.asked > 0);
    CHECK(!verified(&later, later.asked));
    CHECK_HOLDS(k.path, true, NULL);
    kit_done(&k);
}
