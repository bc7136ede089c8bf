/*
 * Parts of a run: the nodes of the whole with their hashes, wherever a part begins and however the
 * run grew meanwhile; what is read is bounded; places that are damaged, or of other events, are
 * made again.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lattice/lattice.h"
#include "os/folder.h"
#include "provenance/run_lattice.h"
#include "provenance/run_part.h"
#include "provenance/run_places.h"
#include "tests/support/run_kit.h"
#include "tests/test.h"

#define RUN "run_20260101_000000_00000000000000000000000000000001"
#define EVENTS "runs/" RUN "/events.jsonl"
#define PLACES "places/" RUN
enum { TASKS = 40 };

static uint64_t read_bytes; /* of all files */

static int64_t counting_pread(const cx_io *io, cx_file file, void *data, size_t size,
                              uint64_t offset)
{
    const int64_t got = cx_io_system()->pread(io, file, data, size, offset);
    read_bytes += got > 0 ? (uint64_t)got : 0;
    return got;
}

typedef struct fixture {
    run_kit kit;
    cx_io io;
    cx_buf events, lines;
    cx_lattice *lattice;
    cx_lattice_report *report;
    cx_err err;
    uint64_t random, count, bytes;
    unsigned tasks;
} fixture;

static bool begin(fixture *f)
{
    memset(f, 0, sizeof *f);
    f->io = *run_kit_io();
    f->io.pread = counting_pread;
    f->random = cx_test_seed();
    cx_buf_init(&f->events, cx_alloc_default());
    cx_buf_init(&f->lines, cx_alloc_default());
    if (!run_kit_init(&f->kit, "run_part", &f->io, NULL))
        return false;
    return !cx_failed(cx_path_make_folders(run_kit_path(&f->kit, "runs/" RUN).data, &f->err));
}

static void close_part(fixture *f)
{
    cx_lattice_report_close(f->report);
    cx_lattice_close(f->lattice);
    f->report = NULL;
    f->lattice = NULL;
}

static void end(fixture *f)
{
    close_part(f);
    run_kit_done(&f->kit);
    cx_buf_done(&f->events);
    cx_buf_done(&f->lines);
}

static uint64_t upto(fixture *f, uint64_t most)
{
    return cx_test_random(&f->random) % most;
}

/* Tasks come and go, in any order; some go on after the governor thought that they had ended. */
static void add_event(fixture *f, const char *text)
{
    char task[16] = "null";
    const uint64_t which = upto(f, 8);
    if (which >= 2) {
        if (f->tasks == 0 || (f->tasks < TASKS && upto(f, 12) == 0))
            f->tasks++;
        const uint64_t back =
            upto(f, 16) == 0 ? upto(f, f->tasks) : upto(f, f->tasks < 3 ? f->tasks : 3);
        (void)snprintf(task, sizeof task, "\"t%llu\"", (unsigned long long)(f->tasks - 1 - back));
    }
    cx_buf_printf(
        &f->events,
        "{\"ts\":\"2026-01-01T%02llu:%02llu:%02llu.000000Z\",\"level\":\"INFO\",\"event_type\":"
        "\"%s\",\"run_id\":\"" RUN "\",\"task_id\":%s,\"attempt\":null,\"trace_id\":"
        "\"00000000000000000000000000000001\",\"payload\":{\"n\":%llu,\"to\":\"S1\","
        "\"text\":\"%s\"}}\n",
        (unsigned long long)(f->count / 3600 % 24), (unsigned long long)(f->count / 60 % 60),
        (unsigned long long)(f->count % 60), which == 1 ? "STATE_TRANSITION" : "NOTE", task,
        (unsigned long long)f->count, text);
    f->count++;
}

static void write_events(fixture *f)
{
    CHECK_STATUS(cx_io_replace_file(cx_io_system(), run_kit_path(&f->kit, EVENTS).data,
                                    cx_buf_bytes(&f->events), &f->err),
                 &f->err);
}

static void add_events(fixture *f, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        add_event(f, "");
    write_events(f);
}

static cx_status open_part(fixture *f, const cx_run_part_sizes *sizes, uint64_t from)
{
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    cx_run_bundle *bundle = NULL;
    options.threads = 1;
    close_part(f);
    CX_TRY(cx_run_bundle_open(&f->io, NULL, run_kit_path(&f->kit, "runs/" RUN).data, &bundle,
                              &f->err));
    read_bytes = 0;
    cx_status status = cx_run_part_of(&f->kit.store, bundle, CX_STR(RUN), sizes, from, &options,
                                      &f->lines, &f->lattice, &f->report, &f->err);
    cx_run_bundle_close(bundle);
    return status;
}

/* Lines `from` .. `from` + `count` - 1 of a text. */
static cx_str lines_of(cx_str text, uint64_t from, uint64_t count)
{
    cx_str line, rest = text;
    while (from > 0 && cx_run_next_line(&rest, &line))
        from--;
    const char *start = rest.data;
    while (count > 0 && cx_run_next_line(&rest, &line))
        count--;
    return cx_str_from(start, (size_t)(rest.data - start));
}

/* A part is the whole's lines, byte for byte, and holds. */
static void check_part(fixture *f, const cx_run_part_sizes *sizes, uint64_t from, cx_str whole)
{
    const cx_str expected = lines_of(whole, from, sizes->part);
    cx_status status = open_part(f, sizes, from);
    CHECK_STATUS(status, &f->err);
    if (cx_failed(status))
        return;
    if (!cx_str_eq(cx_buf_str(&f->lines), expected))
        cx_test_fail(__FILE__, __LINE__, "from %llu of %llu: other nodes than those of the whole",
                     (unsigned long long)from, (unsigned long long)f->count);
    CHECK_INT(cx_lattice_report_verdict(f->report), CX_HOLDS);
}

static void read_whole(fixture *f, cx_buf *out)
{
    cx_buf_clear(out);
    CHECK_STATUS(cx_run_lattice_lines(cx_buf_str(&f->events), (cx_str){NULL, 0}, out, &f->err),
                 &f->err);
}

CX_TEST(a_part_has_the_nodes_of_the_whole_while_the_run_grows)
{
    static const cx_run_part_sizes sizes = {.stride = 8, .part = 20};
    fixture f;
    cx_buf whole;
    cx_buf_init(&whole, cx_alloc_default());
    REQUIRE(begin(&f));
    while (f.count < 700) {
        add_events(&f, 1 + upto(&f, 40));
        read_whole(&f, &whole);
        check_part(&f, &sizes, f.count - 1, cx_buf_str(&whole)); /* goes on from older places */
        for (int i = 0; i < 4; i++)
            check_part(&f, &sizes, upto(&f, f.count), cx_buf_str(&whole));
    }
    for (uint64_t from = 0; from < f.count; from++)
        check_part(&f, &sizes, from, cx_buf_str(&whole));
    CHECK_INT(open_part(&f, &sizes, f.count).code, CX_E_NOT_FOUND);
    cx_buf_done(&whole);
    end(&f);
}

static const cx_run_part_sizes as_asked = {CX_RUN_PLACES_STRIDE, CX_STEPS_PART};

CX_TEST(what_a_part_reads_does_not_depend_on_the_run)
{
    fixture f;
    uint64_t least = UINT64_MAX, most = 0;
    const uint64_t count = 60000 / cx_test_step(4);
    REQUIRE(begin(&f));
    add_events(&f, count);
    CHECK_STATUS(open_part(&f, &as_asked, 0), &f.err);
    CHECK(read_bytes >= 2 * f.events.size); /* places are made */
    for (uint64_t from = 2048; from + 4096 <= count; from += 2048) {
        CHECK_STATUS(open_part(&f, &as_asked, from + 100), &f.err);
        least = read_bytes < least ? read_bytes : least;
        most = read_bytes > most ? read_bytes : most;
        CHECK_INT(cx_lattice_count(f.lattice), 4096);
    }
    /* The part, the events since the place before it, a piece, and the places. */
    const uint64_t places = run_kit_read(&f.kit, PLACES).size;
    CHECK(places < count / CX_RUN_PLACES_STRIDE * (TASKS + 2) * 90);
    CHECK(most < f.events.size / count * 6144 + (1 << 19) + places);
    CHECK(least > f.events.size / count * 4096);
    end(&f);
}

static void flip(fixture *f, const char *name, size_t at)
{
    char byte = 0;
    int file = open(run_kit_path(&f->kit, name).data, O_RDWR);
    CHECK(file >= 0 && pread(file, &byte, 1, (off_t)at) == 1);
    byte ^= 1;
    CHECK(pwrite(file, &byte, 1, (off_t)at) == 1);
    (void)close(file);
}

CX_TEST(damaged_places_are_made_again)
{
    static const cx_run_part_sizes sizes = {.stride = 8, .part = 20};
    fixture f;
    cx_buf whole;
    cx_buf_init(&whole, cx_alloc_default());
    REQUIRE(begin(&f));
    add_events(&f, 100);
    read_whole(&f, &whole);
    check_part(&f, &sizes, 50, cx_buf_str(&whole));
    const cx_str good = run_kit_read(&f.kit, PLACES);
    REQUIRE(good.size > 1000);
    for (size_t at = 0; at < good.size; at += 61) {
        flip(&f, PLACES, at);
        check_part(&f, &sizes, 50, cx_buf_str(&whole));
        CHECK(cx_str_eq(run_kit_read(&f.kit, PLACES), good));
    }
    CHECK(truncate(run_kit_path(&f.kit, PLACES).data, 30) == 0);
    check_part(&f, &sizes, 50, cx_buf_str(&whole));
    CHECK(cx_str_eq(run_kit_read(&f.kit, PLACES), good));
    CHECK(unlink(run_kit_path(&f.kit, PLACES).data) == 0);
    CHECK(mkdir(run_kit_path(&f.kit, PLACES).data, 0700) == 0); /* cannot be written */
    check_part(&f, &sizes, 50, cx_buf_str(&whole));
    cx_buf_done(&whole);
    end(&f);
}

CX_TEST(other_events_than_the_places_are_of_are_noticed)
{
    static const cx_run_part_sizes sizes = {.stride = 8, .part = 20};
    fixture f;
    cx_buf whole;
    cx_buf_init(&whole, cx_alloc_default());
    REQUIRE(begin(&f));
    add_events(&f, 100);
    CHECK_STATUS(open_part(&f, &sizes, 0), &f.err);
    /* The same length, another number in event 45. */
    char *number = strstr((char *)cx_buf_z(&f.events), "\"n\":45");
    REQUIRE(number != NULL);
    number[5] = '6';
    write_events(&f);
    read_whole(&f, &whole);
    check_part(&f, &sizes, 40, cx_buf_str(&whole)); /* it is in a block that is woven whole */
    check_part(&f, &sizes, 60, cx_buf_str(&whole)); /* the places are new */
    f.count = 0;
    cx_buf_clear(&f.events); /* shorter than the places say */
    add_events(&f, 30);
    read_whole(&f, &whole);
    check_part(&f, &sizes, 10, cx_buf_str(&whole));
    cx_buf_done(&whole);
    end(&f);
}

CX_TEST(events_that_cannot_be_read_are_named)
{
    static const cx_run_part_sizes sizes = {.stride = 8, .part = 20};
    fixture f;
    REQUIRE(begin(&f));
    CHECK_INT(open_part(&f, &sizes, 0).code, CX_E_NOT_FOUND); /* no events.jsonl */
    write_events(&f);
    CHECK_INT(open_part(&f, &sizes, 0).code, CX_E_NOT_FOUND);
    add_events(&f, 50);
    cx_buf_add_z(&f.events, "{\"ts\":");
    write_events(&f); /* torn: it is not there yet */
    CHECK_STATUS(open_part(&f, &sizes, 40), &f.err);
    CHECK_INT(cx_lattice_count(f.lattice), 10);
    cx_buf_add_z(&f.events, "\n");
    write_events(&f);
    CHECK(cx_failed(open_part(&f, &sizes, 40)));
    CHECK_INT(f.err.line, 51);
    f.events.size -= strlen("{\"ts\":\n");
    for (size_t i = 0; i <= CX_RUN_EVENT_BYTES_MAX; i++)
        cx_buf_add_byte(&f.events, ' ');
    write_events(&f);
    CHECK_INT(open_part(&f, &sizes, 0).code, CX_E_LIMIT);
    CHECK(strstr(f.err.message, "event 51") != NULL);
    end(&f);
}

CX_TEST(the_extent_counts_events)
{
    fixture f;
    cx_steps_extent extent;
    REQUIRE(begin(&f));
    add_events(&f, 5000);
    CHECK_STATUS(cx_run_extent(&f.kit.store, CX_STR(RUN), &extent, &f.err), &f.err);
    CHECK(extent.parts && extent.entries == 5000 && !extent.found);
    CHECK_STATUS(open_part(&f, &as_asked, 4096), &f.err);
    add_events(&f, 10);
    read_bytes = 0;
    CHECK_STATUS(cx_run_extent(&f.kit.store, CX_STR(RUN), &extent, &f.err), &f.err);
    CHECK_INT(extent.entries, 5010);
    CHECK(read_bytes < 20000); /* those after the places, and these */
    CHECK_STATUS(cx_run_extent(&f.kit.store, CX_STR(RUN "/governor"), &extent, &f.err), &f.err);
    CHECK(!extent.parts);
    CHECK_INT(cx_run_extent(&f.kit.store, CX_STR("none"), &extent, &f.err).code, CX_E_NOT_FOUND);
    end(&f);
}

CX_TEST(a_run_that_ended_is_prepared)
{
    fixture f;
    REQUIRE(begin(&f));
    add_events(&f, 4096);
    CHECK_STATUS(cx_run_part_prepare(&f.kit.store, CX_STR(RUN), &f.err), &f.err);
    CHECK(access(run_kit_path(&f.kit, PLACES).data, F_OK) != 0); /* one part is all of it */
    add_events(&f, 5000);
    CHECK_STATUS(cx_run_part_prepare(&f.kit.store, CX_STR(RUN), &f.err), &f.err);
    CHECK(access(run_kit_path(&f.kit, PLACES).data, F_OK) == 0);
    CHECK_STATUS(open_part(&f, &as_asked, 9095), &f.err);
    CHECK(read_bytes < f.events.size / 3);
    end(&f);
}
