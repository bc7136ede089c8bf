/*
 * events_internal.h - the open log, shared by its writer (events.c) and its recovery
 * (events_recover.c).
 */
#ifndef CX_BUNDLE_EVENTS_INTERNAL_H
#define CX_BUNDLE_EVENTS_INTERNAL_H

#include "base/api.h"
#include "bundle/events.h"

#define CX_RUN_EVENTS_NAME "events.jsonl"
#define CX_RUN_CHAIN_NAME "events.hashchain.jsonl"
#define CX_RUN_LOCK_WAIT_MS 10000

struct cx_run_events {
    cx_run_events_options options;
    cx_arena arena;   /* of the texts of options */
    cx_arena scratch; /* of one append */
    cx_file locked;   /* flock: no other process appends while this log is open */
    cx_file file, chain;
    uint64_t count;
    char last_ts[28]; /* of the last event; texts of times sort as the times do */
    cx_digest head;   /* of the last link */
    char head_text[65];
    cx_buf line, link;
    bool failed; /* what is on the disk is not known: nothing more may be written */
    cx_lock lock;
};

/* Takes the lock, opens both files; nothing is read.  `*out` is closed with cx_run_events_close. */
CX_RESULT cx_run_events_open_files(const cx_run_events_options *options, uint32_t wait_ms,
                                   cx_run_events **out, cx_err *err);
/* The link of the event that comes next, as a line with its '\n', into log->link. */
cx_digest cx_run_events_make_link(cx_run_events *log, const cx_digest *event_sha256);
/* Tells the ledger of event number log->count. */
CX_RESULT cx_run_events_append_to_ledger(cx_run_events *log, const cx_digest *event_sha256,
                                         cx_err *err);
void cx_run_events_set_head(cx_run_events *log, const cx_digest *head);

#endif
