/*
 * feed_steps.h - steps of sessions, spans and native steps as rows of the index (index/steps.h).
 *
 * What cannot be read is left out: it stays in the ledger, and never stops the feed (feed.c, F4).
 */
#ifndef CX_RECORDER_FEED_STEPS_H
#define CX_RECORDER_FEED_STEPS_H

#include "recorder/internal.h"

/* The steps of one entry; nothing for entries of other kinds.  `arena` is the frame's. */
CX_RESULT cx_feed_steps(cx_index *index, const cx_tail_item *item, cx_arena *arena, cx_err *err);

#endif
