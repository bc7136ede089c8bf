/*
 * fleet_statement.h - one statement about all parts of a fleet, and the file that vouches for it
 * (docs/formats/fleet.md).
 *
 *   cmd_fleet_checkpoint.c   reads all parts, records the statement, signs
 *   fleet_follow.c           .. whether each part still leads from what it says
 *   fleet_statement.c        both as JSON
 *
 *   C1  What is checked is the entry inside of the proof, never the copy next to it.
 *   C2  A part that cannot be read is no part that holds, and no part that is broken.
 */
#ifndef CX_CLI_FLEET_FLEET_STATEMENT_H
#define CX_CLI_FLEET_FLEET_STATEMENT_H

#include "cli/cli.h"
#include "fleet/api.h"
#include "ledger/api.h"
#include "proof/api.h"

/* The journal, in the part that records the statement. */
#define CX_FLEET_JOURNAL "fleet:parts"

typedef struct cx_cli_fleet_part {
    cx_str name;
    cx_fleet_point point;
    bool has_home; /* a data directory; the rest is its own */
    cx_home_root root;
    uint64_t roots; /* entries of its journal home:root; 0 = it has none */
    cx_digest roots_root;
} cx_cli_fleet_part;

typedef struct cx_cli_fleet_statement {
    uint8_t fleet[16];
    cx_cli_fleet_part *parts; /* by number */
    size_t count;
} cx_cli_fleet_statement;

/* Canonical JSON: the payload of an entry fleet.checkpoint. */
CX_RESULT cx_cli_fleet_statement_write(const cx_cli_fleet_statement *statement, cx_arena *arena,
                                       cx_buf *out, cx_err *err);
/* CX_E_FORMAT "BadStatement"; texts borrow from the payload and the arena. */
CX_RESULT cx_cli_fleet_statement_read(cx_str payload, cx_arena *arena, cx_cli_fleet_statement *out,
                                      cx_err *err);

/* The statement with what vouches for it. */
typedef struct cx_cli_fleet_file {
    cx_str part; /* that recorded it */
    cx_str statement;
    cx_bytes proof;      /* that its entry is in the journal (ledger.md §6) */
    cx_bytes checkpoint; /* of the journal: a signed note, or its three lines */
    uint64_t seq;
    bool is_signed;
} cx_cli_fleet_file;

CX_RESULT cx_cli_fleet_file_write(const cx_cli_fleet_file *file, cx_arena *arena, cx_buf *out,
                                  cx_err *err);
/* CX_E_FORMAT "BadFleetCheckpoint". */
CX_RESULT cx_cli_fleet_file_read(cx_str text, cx_arena *arena, cx_cli_fleet_file *out, cx_err *err);

/* `cortex fleet checkpoint --check FILE`. */
int cx_cli_fleet_follow(cx_cli *cli, const cx_cli_args *args);

/* Opens the data directory of a part for reading; *out_home is NULL when the part has none.  End
 * it with cx_cli_fleet_home_close in any case. */
CX_RESULT cx_cli_fleet_home_open(cx_cli *cli, const char *url, cx_str part, cx_home **out_home,
                                 cx_err *err);
void cx_cli_fleet_home_close(cx_cli *cli, cx_home *home);
/* Size and root of its journal home:root; 0 when it has none. */
CX_RESULT cx_cli_fleet_roots_of(cx_home *home, uint64_t *out_size, cx_digest *out_root,
                                cx_err *err);

#endif
