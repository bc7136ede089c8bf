/*
 * run_rows.h - rows that say where the ledger's entries about a governed run are (run.md §17).
 *
 *     run/<id>/           how many events the ledger knows, and where the seal is
 *     run/<id>/<u32be n>  where the entry about event n is
 *
 * They are rows of the data directory itself, derived from the entries run.event and run.seal of
 * journals run:<..>.  A row only says where to look: its reader holds it against the entry.
 */
#ifndef CX_RECORDER_RUN_ROWS_H
#define CX_RECORDER_RUN_ROWS_H

#include "bundle/api.h"
#include "ledger/api.h"

#define CX_RUN_ACTOR_PREFIX "run:"

extern const cx_deriver cx_run_deriver;

/* An entry about a run. */
typedef struct cx_run_entry_about {
    bool seal;          /* else of an event */
    cx_str run_id;      /* borrows from the payload, or is in the arena */
    uint32_t index;     /* of the event, from 1 */
    cx_digest link;     /* its hash */
    cx_digest named[3]; /* other hashes that the entry names */
    size_t named_count;
} cx_run_entry_about;
/* *out_ours is false for entries that are not of this form, or whose content can be erased: what
 * rows are derived from stays. */
CX_RESULT cx_run_entry_about_read(const cx_entry *entry, cx_arena *arena, cx_run_entry_about *out,
                                  bool *out_ours, cx_err *err);

#define CX_RUN_ROW_KEY_SIZE (4 + CX_RUN_ID_BYTES_MAX + 1 + 4)
typedef struct cx_run_row_key {
    uint8_t bytes[CX_RUN_ROW_KEY_SIZE];
} cx_run_row_key;
/* The key of the first row, which the keys of the others begin with; the id must be valid. */
cx_bytes cx_run_row_name(cx_run_row_key *key, cx_str run_id);
cx_bytes cx_run_event_row_name(cx_run_row_key *key, cx_str run_id, uint32_t index);
/* The event of a key that begins with the first row's; 0: it is none. */
uint32_t cx_run_event_row_index(cx_bytes key, cx_bytes first_key);

/* An entry's place; the text is borrowed. */
typedef struct cx_run_place {
    cx_str journal;
    uint64_t seq;
} cx_run_place;

typedef struct cx_run_row {
    uint32_t events; /* that have a row */
    uint32_t last;   /* the highest of their numbers */
    cx_str journal;  /* of the first entry about the run */
    bool sealed;
    cx_run_place seal;
} cx_run_row;
/* False when the bytes are no such row. */
bool cx_run_row_decode(cx_bytes value, cx_run_row *out);
/* `journal` is that of the first row: most events have the same. */
bool cx_run_event_row_decode(cx_bytes value, cx_str journal, cx_run_place *out);

#endif
