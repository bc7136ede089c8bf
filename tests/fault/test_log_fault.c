/*
 * test_log_fault.c - a log whose n-th call to the system fails, or is cut short, or whose n-th
 * allocation fails, for every n until nothing fires.  Whatever happens is an error and no crash,
 * nothing leaks, and afterwards every acknowledged commit is there.
 */
#include "log/log.h"

#include <errno.h>

#include "tests/support/disk.h"
#include "tests/support/fault.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

typedef struct job {
    disk d;
    log_model m;
    fault_io files;
    fault_alloc memory;
    bool created, copied;
    cx_status status; /* of what went wrong first */
    cx_err err;
} job;

static bool done(job *j, cx_status status)
{
    if (!cx_failed(j->status))
        j->status = status;
    return !cx_failed(status);
}

static bool write_some(job *j, cx_log *log, int commits)
{
    const size_t sizes[2][2] = {{7000, 0}, {30, 600}};
    for (int i = 0; i < commits; i++) {
        uint64_t commit;
        cx_status status = log_model_submit(&j->m, log, sizes, 2, &commit, &j->err);
        if (!cx_failed(status) && i % 2 != 0)
            cx_log_start(log);
        if (!cx_failed(status))
            status = cx_log_wait(log, commit, &j->err);
        if (cx_log_durable(log) > j->m.acked)
            log_model_ack(&j->m, cx_log_durable(log) - 1);
        if (!done(j, status))
            return false;
    }
    return true;
}

static void look(job *j, cx_log *log)
{
    cx_buf buf;
    cx_log_scan *scan;
    cx_log_frame frame;
    bool end = false;
    cx_buf_init(&buf, &j->memory.alloc);
    for (size_t i = 0; i < j->m.acked_frames; i += 5)
        (void)done(j, cx_log_read(log, j->m.frames.items[i].place, &buf, &frame, &end, &j->err));
    cx_buf_done(&buf);
    if (!done(j, cx_log_scan_begin(log, 2, &scan, &j->err)))
        return;
    while (!end) {
        cx_log_commit commit;
        if (!done(j, cx_log_scan_next(scan, &commit, &end, &j->err)))
            break;
    }
    cx_log_scan_end(scan);
}

static void erase(job *j, cx_log *log, size_t which)
{
    if (j->m.acked_frames <= which)
        return;
    j->m.frames.items[which].erasure = MODEL_TRIED;
    if (done(j, cx_log_erase(log, j->m.frames.items[which].place, &j->err)))
        j->m.frames.items[which].erasure = MODEL_ERASED;
}

/* What was being written when the log was closed may be there or not. */
static void reconcile_model(job *j, const cx_log_opened *opened)
{
    CHECK(opened->commit_count == j->m.acked || opened->commit_count == j->m.acked + 1);
    log_model_lose(&j->m, opened->commit_count);
    if (opened->commit_count > j->m.acked)
        log_model_ack(&j->m, opened->commit_count - 1);
}

/* Everything one can do with a log, over three segments. */
static void run(job *j)
{
    cx_log_options options = {.io = &j->files.io,
                              .alloc = &j->memory.alloc,
                              .segment_bytes = CX_LOG_SEGMENT_MIN,
                              .trail_bytes = 4000};
    cx_log *log;
    if (!done(j, cx_log_create("log", &options, &j->err)))
        return;
    j->created = true;
    for (int life = 0; life < 2; life++) {
        cx_log_opened opened;
        if (!done(j, cx_log_open("log", &options, &log, &opened, &j->err)))
            return;
        reconcile_model(j, &opened);
        (void)write_some(j, log, 9);
        erase(j, log, 1);
        look(j, log);
        if (life == 1)
            j->copied = done(j, cx_log_backup(log, "copy", &j->err));
        cx_log_close(log);
    }
    options.read_only = true;
    if (!done(j, cx_log_open("log", &options, &log, NULL, &j->err)))
        return;
    look(j, log);
    cx_log_close(log);
}

static void check_folder(job *j, const char *folder)
{
    const cx_log_options options = {.io = &j->d.io, .segment_bytes = CX_LOG_SEGMENT_MIN};
    cx_log *log;
    cx_log_opened opened;
    cx_err err;
    cx_status status = cx_log_open(folder, &options, &log, &opened, &err);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "%s does not open: %s", folder, err.message);
        return;
    }
    reconcile_model(j, &opened);
    CHECK(log_model_check(&j->m, log, opened.commit_count, true));
    CHECK(write_some(j, log, 1));
    cx_log_close(log);
}

/* True when something fired. */
static bool fail_once(unsigned kind, uint64_t call, bool onwards, bool torn, bool starve)
{
    static job j;
    j = (job){.status = CX_SUCCESS};
    disk_init(&j.d, 5);
    log_model_init(&j.m);
    fault_io_init(&j.files, &j.d.io, kind, starve ? FAULT_NEVER : call, onwards);
    j.files.torn = torn;
    fault_alloc_init(&j.memory, starve ? call : FAULT_NEVER, onwards);
    run(&j);
    bool fired = atomic_load(&j.files.fired) + atomic_load(&j.memory.fired) != 0;
    if (!fired)
        CHECK_STATUS(j.status, &j.err);
    if (cx_failed(j.status) && j.status.code != (starve ? CX_E_NOMEM : CX_E_IO))
        cx_test_fail(__FILE__, __LINE__, "kind %u call %llu: code %d (%s)", kind,
                     (unsigned long long)call, j.status.code, j.err.message);
    CHECK_INT(atomic_load(&j.files.open_files), 0);
    CHECK_INT(atomic_load(&j.memory.live_bytes), 0);
    CHECK(!atomic_load(&j.memory.wrong_size));
    if (j.copied)
        CHECK(disk_file(&j.d, "copy/000000.seg") != NULL);
    if (j.created)
        check_folder(&j, "log");
    log_model_done(&j.m);
    disk_done(&j.d);
    return fired;
}

CX_TEST(log_fault_every_call_to_the_system)
{
    static const unsigned kinds[] = {FAULT_OPEN,   FAULT_PREAD,  FAULT_WRITE,  FAULT_SYNC,
                                     FAULT_RENAME, FAULT_SIZE,   FAULT_RANDOM, FAULT_ALLOCATE,
                                     FAULT_LOCK,   FAULT_FOLDER, FAULT_ANY};
    for (size_t k = 0; k < CX_COUNT_OF(kinds); k++)
        for (int onwards = 0; onwards < 2; onwards++) {
            uint64_t call = 1;
            while (fail_once(kinds[k], call, onwards != 0, call % 2 == 0, false))
                call += (kinds[k] == FAULT_ANY ? 3 : 1) * cx_test_step(3);
            CHECK(call > 1);
        }
}

CX_TEST(log_fault_every_allocation)
{
    for (int onwards = 0; onwards < 2; onwards++)
        for (uint64_t call = 1; fail_once(0, call, onwards != 0, false, true); call++)
            continue;
}

CX_TEST(log_fault_short_and_interrupted_calls_change_nothing)
{
    static job j;
    j = (job){.status = CX_SUCCESS};
    disk_init(&j.d, 5);
    log_model_init(&j.m);
    fault_io_init(&j.files, &j.d.io, 0, FAULT_NEVER, false);
    fault_alloc_init(&j.memory, FAULT_NEVER, false);
    j.files.at_most = 777;
    j.files.eintr = 3;
    j.files.close_fails = false;
    run(&j);
    CHECK_STATUS(j.status, &j.err);
    check_folder(&j, "log");
    log_model_done(&j.m);
    disk_done(&j.d);
}
