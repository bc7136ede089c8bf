/*
 * report.c - what a verification of a whole data directory found.
 */
#include "ledger/check/verifier.h"

#include "base/api.h"

/* --- findings -------------------------------------------------------------------------------- */

cx_status cx_report_add(void *arg, const char *check, const char *reason, cx_str actor,
                        const char *where, const char *message, cx_err *err)
{
    cx_home_report *report = arg;
    report->totals.findings++;
    if (report->findings.count >= report->finding_max)
        return CX_SUCCESS;
    cx_home_finding *slot = cx_vec_push(&report->findings, report->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_home_finding){
        .check = check,
        .reason = reason,
        .actor = cx_arena_copy_str(&report->arena, actor),
        .where = cx_arena_copy_str(&report->arena, cx_str_z(where)),
        .message = cx_arena_copy_str(&report->arena, cx_str_z(message)),
    };
    if (slot->actor.data == NULL || slot->where.data == NULL || slot->message.data == NULL)
        return cx_fail_nomem(err);
    return CX_SUCCESS;
}

cx_status cx_verify_report(cx_verifier *check, const char *name, const char *reason, cx_str actor,
                           const char *where, const char *message, cx_err *err)
{
    return cx_report_add(check->report, name, reason, actor, where, message, err);
}

void cx_verify_progress(const cx_verifier *check, const char *what, uint64_t done, uint64_t total,
                        uint64_t entries)
{
    const cx_home_options *options = &check->home->options;
    if (options->counted != NULL)
        options->counted(options->progress_arg, entries);
    if (options->progress != NULL)
        options->progress(options->progress_arg, what, done, total);
}

/* --- reading it ------------------------------------------------------------------------------- */

void cx_home_report_close(cx_home_report *report)
{
    if (report == NULL)
        return;
    cx_vec_done(&report->findings, report->alloc);
    cx_vec_done(&report->actors, report->alloc);
    cx_vec_done(&report->roots, report->alloc);
    cx_arena_done(&report->arena);
    cx_alloc_free(report->alloc, report, sizeof *report);
}

cx_verdict cx_home_report_verdict(const cx_home_report *report)
{
    return report->verdict;
}

size_t cx_home_report_count(const cx_home_report *report)
{
    return report->findings.count;
}

const cx_home_finding *cx_home_report_finding(const cx_home_report *report, size_t index)
{
    CX_ASSERT(index < report->findings.count);
    return &report->findings.items[index];
}

const cx_home_totals *cx_home_report_totals(const cx_home_report *report)
{
    return &report->totals;
}

size_t cx_home_report_actor_count(const cx_home_report *report)
{
    return report->actors.count;
}

void cx_home_report_actor(const cx_home_report *report, size_t index, cx_actor_info *out,
                          cx_roots *out_roots)
{
    CX_ASSERT(index < report->actors.count && index < report->roots.count);
    *out = report->actors.items[index];
    *out_roots = report->roots.items[index];
}
