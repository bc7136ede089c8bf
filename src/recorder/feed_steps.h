/*
 * feed_steps.h - steps of sessions, spans and native steps, signed traces and memories as rows of
 * the index (index/steps.h).
 *
 * What cannot be read is left out: it stays in the ledger, and never stops the feed (feed.c, F4).
 */
#ifndef CX_RECORDER_FEED_STEPS_H
#define CX_RECORDER_FEED_STEPS_H

#include "recorder/internal.h"

/* An entry that is fed; `arena` is the frame's. */
typedef struct cx_feed_entry {
    cx_index *index;
    const cx_tail_item *item;
    cx_arena *arena;
} cx_feed_entry;

/* The steps of one entry; nothing for entries of other kinds. */
CX_RESULT cx_feed_steps(const cx_feed_entry *at, cx_err *err);
/* The components of a stored trace that hold text; `level` is its effective one. */
CX_RESULT cx_feed_trace_words(const cx_feed_entry *at, const cx_trace *trace, cx_trace_level level,
                              cx_err *err);
/* A memory's new version, or the end of all its rows when it was erased. */
CX_RESULT cx_feed_memory_words(const cx_feed_entry *at, cx_err *err);

/* Appends a text on a line of its own, up to CX_STEP_TEXT_MAX and a text. */
void cx_feed_add_text(cx_buf *out, cx_str text);

#endif
