/*
 * extract.h - the links that an entry of a log has: a function of the entry's content.
 *
 *   I1  An entry that does not decode has no links; it is not an error of the data directory.
 *   I2  Erased content has no links.
 */
#ifndef CX_RECORDER_LINKS_EXTRACT_H
#define CX_RECORDER_LINKS_EXTRACT_H

#include "recorder/internal.h"
#include "recorder/links.h"

/* Texts of a link are borrowed until it returns. */
typedef cx_status cx_link_sink(void *ctx, const cx_link *link, cx_err *err);

/* Links of a trace's own bytes, of a memory and of a run's seal; of other entries none. Each once.
 */
CX_RESULT cx_links_of_entry(const cx_tail_item *item, cx_arena *arena, cx_link_sink *sink,
                            void *ctx, cx_err *err);

/* A trace with the batch in which it came; false for other entries.  The id is borrowed. */
bool cx_links_trace(const cx_tail_item *item, cx_str *out_trace_id,
                    uint8_t out_batch[CX_TRACE_BATCH_ID_SIZE]);
/* A batch that states a run; memory from the arena.  False for others. */
bool cx_links_batch(const cx_tail_item *item, cx_arena *arena, cx_str *out_run_id,
                    uint8_t out_batch[CX_TRACE_BATCH_ID_SIZE]);

#endif
