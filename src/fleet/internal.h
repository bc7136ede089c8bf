/*
 * internal.h - shared by the files of this module; private to it.
 *
 *   chain.c      the hash chain over the commits of a part
 *   fleet.c      opening, connecting again, what an SQLSTATE means
 *   schema.c     migrations
 *   part.c       taking, renewing and giving back a part; F7 when it is taken
 *   commit.c     one change of files in one transaction
 *   resolve.c    outcomes that are not known
 *   read.c       files and their bytes
 *   check.c      the chain, recomputed
 *   prune.c      quotas, and commits that are not needed any more
 *   follows.c    whether a part still leads from what was stated of it
 *   copy.c       a part into another database
 *   small.c      files that need no lease
 *   nodes.c      processes that serve
 *   balance.c    parts spread over them
 *   list.c       parts and server as an operator sees them
 *   files.c ..   the files of a part as a cx_io (files.h)
 */
#ifndef CX_FLEET_INTERNAL_H
#define CX_FLEET_INTERNAL_H

#include "crypto/api.h"
#include "db/api.h"
#include "fleet/fleet.h"

/*
 * The test driver is compiled with CX_FLEET_RULES_OUT and can leave out one rule, so that the judge
 * is seen to find it.  In the program every rule is the constant true.
 */
typedef enum cx_fleet_rule {
    CX_RULE_GUARD = 1,    /* F1: epoch, owner, next and head in the commit */
    CX_RULE_LEASE = 2,    /* F3: a lease that is on is not taken */
    CX_RULE_WARN = 8,     /* F6: a warning at COMMIT is an unknown outcome */
    CX_RULE_RESOLVE = 16, /* F6: an unknown outcome is resolved, and not taken for done */
    CX_RULE_CHAIN = 32    /* F7: what is read is compared with what is known */
} cx_fleet_rule;
#ifdef CX_FLEET_RULES_OUT
extern unsigned cx_fleet_rules_out;
#define CX_FLEET_RULE(rule) ((cx_fleet_rules_out & (rule)) == 0)
#else
#define CX_FLEET_RULE(rule) true
#endif

struct cx_fleet {
    cx_pg *pg;
    const cx_io *io;
    uint32_t lease_ms, resolve_ms;
    bool read_only, strict, snapshot;
    bool session_set; /* the connection has this module's settings */
    uint8_t id[16];
    char owner[CX_FLEET_OWNER_SIZE];
    cx_buf sql;     /* of the statement being sent */
    cx_arena arena; /* of the call */
};

/* --- chain.c ---------------------------------------------------------------------------------- */

#define CX_FLEET_NONCE_SIZE 16

/* The head of a part without commits. */
cx_digest cx_fleet_first_head(const uint8_t id[16], unsigned part);
cx_digest cx_fleet_next_head(const cx_digest *prev, unsigned part, uint64_t epoch, uint64_t num,
                             const cx_digest *digest);
/* Of what a commit wrote: its extents by file, chunk and start. */
void cx_fleet_digest_begin(cx_sha256 *hash, const uint8_t nonce[CX_FLEET_NONCE_SIZE]);
void cx_fleet_digest_add(cx_sha256 *hash, uint64_t file, uint64_t chunk, uint32_t start,
                         cx_bytes bytes);

/* Of the commits that were kept before a base (F8): added in their order, then the digest of the
 * commit that states them. */
typedef struct cx_fleet_kept {
    uint64_t count;
    cx_sha256 hash;
} cx_fleet_kept;
void cx_fleet_kept_begin(cx_fleet_kept *kept);
void cx_fleet_kept_add(cx_fleet_kept *kept, uint64_t num, uint64_t epoch, const cx_digest *prev,
                       const cx_digest *head, const cx_digest *digest);
cx_digest cx_fleet_kept_end(cx_fleet_kept *kept, uint64_t base, const cx_digest *base_head);

/* --- fleet.c ---------------------------------------------------------------------------------- */

/* Tables, in SQL. */
#define CX_T_PART "cortex_fleet.cx_part"
#define CX_T_PULSE "cortex_fleet.cx_pulse"
#define CX_T_COMMIT "cortex_fleet.cx_commit"
#define CX_T_FILE "cortex_fleet.cx_file"
#define CX_T_EXTENT "cortex_fleet.cx_extent"
#define CX_T_SMALL "cortex_fleet.cx_small"
#define CX_T_NODE "cortex_fleet.cx_node"
#define CX_T_EVENT "cortex_fleet.cx_event"
#define CX_T_BALANCE "cortex_fleet.cx_balance"
#define CX_T_FLEET "cortex_fleet.cx_fleet"
#define CX_T_MIGRATION "cortex_fleet.cx_migration"
/* SQL: COMMIT waits for a standby. */
#define CX_FLEET_STRICT                                        \
    "(current_setting('synchronous_standby_names') <> '' AND " \
    "current_setting('synchronous_commit') IN ('on', 'remote_apply'))"

/* SQL, of a part `p`: bytes of its files that are not derived, each up to its last byte.  As many
 * look-ups as it has files. */
#define CX_FLEET_STORED                                                                        \
    "(SELECT coalesce(sum((SELECT x.chunk * 65536 + x.start + octet_length(x.bytes) "          \
    "FROM " CX_T_EXTENT " x WHERE x.part = s.part AND x.file = s.file ORDER BY x.chunk DESC, " \
    "x.start DESC LIMIT 1)), 0)::bigint FROM " CX_T_FILE                                       \
    " s WHERE s.part = p.part AND NOT s.derived)"

/* Parameters of statements. */
static inline cx_pg_value cx_fleet_int(uint64_t value)
{
    return (cx_pg_value){.type = CX_PG_INT, .i = (int64_t)value};
}
static inline cx_pg_value cx_fleet_bytes(const void *data, size_t size)
{
    return (cx_pg_value){.type = CX_PG_BYTES, .text = {(const char *)data, size}};
}
static inline cx_pg_value cx_fleet_str(cx_str text)
{
    return (cx_pg_value){.type = CX_PG_TEXT, .text = text};
}
static inline cx_pg_value cx_fleet_text(const char *text)
{
    return (cx_pg_value){.type = CX_PG_TEXT, .text = {text, strlen(text)}};
}
static inline cx_pg_value cx_fleet_digest(const cx_digest *digest)
{
    return cx_fleet_bytes(digest->bytes, sizeof digest->bytes);
}
CX_RESULT cx_fleet_read_digest(const cx_pg_value *value, cx_digest *out, cx_err *err);

/* What became of a statement that returned `status`. */
typedef enum cx_fleet_outcome {
    CX_OUTCOME_DONE,
    CX_OUTCOME_UNKNOWN,   /* no answer, or a warning with it */
    CX_OUTCOME_AGAIN,     /* nothing happened; the same may be sent again */
    CX_OUTCOME_ELSEWHERE, /* nothing happened; this server does not write: connect again */
    CX_OUTCOME_REPEATED,  /* nothing happened: a unique key is there */
    CX_OUTCOME_FULL,      /* nothing happened: no room */
    CX_OUTCOME_REFUSED    /* nothing happened, and would not another time */
} cx_fleet_outcome;
cx_fleet_outcome cx_fleet_outcome_of(const cx_fleet *fleet, cx_status status);
/* Connects again; the session is set up. */
CX_RESULT cx_fleet_reconnect(cx_fleet *fleet, cx_err *err);
/* The same when the connection is known to be broken. */
CX_RESULT cx_fleet_need_connection(cx_fleet *fleet, cx_err *err);
void cx_fleet_pause(cx_fleet *fleet, unsigned tries);
/* For how long what is not known, or not to be reached, is tried. */
uint64_t cx_fleet_deadline(const cx_fleet *fleet);
/* A statement without rows that may be run again, until it is known to have been committed. */
CX_RESULT cx_fleet_complete(cx_fleet *fleet, const char *sql, const cx_pg_value *values,
                            size_t count, uint64_t *out_changed, cx_err *err);

/* --- schema.c --------------------------------------------------------------------------------- */

uint64_t cx_fleet_migrations_known(void);

/* --- part.c ----------------------------------------------------------------------------------- */

typedef struct cx_fleet_now {
    bool found;
    uint64_t epoch, next;
    cx_digest head;
    uint8_t id[16];
    char owner[CX_FLEET_OWNER_SIZE];
    bool strict;         /* the server waits for a standby */
    uint64_t quota;      /* 0 = none */
    uint64_t base;       /* F8; 0 = the chain is there from its begin */
    cx_digest base_head; /* of the commit before it, or the first head */
    uint64_t base_num;   /* where it is stated */
} cx_fleet_now;
CX_RESULT cx_fleet_look(cx_fleet *fleet, unsigned part, cx_fleet_now *out, cx_err *err);
CX_RESULT cx_fleet_not_strict(cx_err *err);
/* Best effort: an event that cannot be written is not worth a failure. */
void cx_fleet_note(cx_fleet *fleet, const cx_fleet_part *part, const char *kind,
                   const char *detail);
/* F7: notes it, drops the part, and is the error. */
CX_RESULT cx_fleet_stop(cx_fleet *fleet, cx_fleet_part *part, const char *why, cx_err *err);
/* The commit or renewal changed no row: says why, and drops the part when it is lost.  *out_again:
 * it is as it was known, and may be tried again. */
CX_RESULT cx_fleet_why_refused(cx_fleet *fleet, cx_fleet_part *part, bool *out_again, cx_err *err);

/* --- nodes.c ---------------------------------------------------------------------------------- */

/* The name of the node: the owner's, without the process. */
cx_str cx_fleet_node_name(const cx_fleet *fleet);

/* --- resolve.c -------------------------------------------------------------------------------- */

/* Finds out whether the commit after `part` with the head `head` is there (F6).  On success
 * *out_there says so; the part is confirmed with a new epoch, or dropped because it was lost. */
CX_RESULT cx_fleet_resolve(cx_fleet *fleet, cx_fleet_part *part, const cx_digest *head,
                           bool *out_there, cx_err *err);

/* --- check.c ---------------------------------------------------------------------------------- */

/* All that `reads` reads is one state of the database, whatever is written meanwhile. */
typedef cx_status cx_fleet_reading(cx_fleet *fleet, void *arg, cx_err *err);
CX_RESULT cx_fleet_in_one_state(cx_fleet *fleet, cx_fleet_reading *reads, void *arg, cx_err *err);

/* Recomputes the links [from, to) with the chain `*head` before them, which becomes the one after
 * them.  CX_E_FORMAT "ChainBroken". */
CX_RESULT cx_fleet_check_links(cx_fleet *fleet, unsigned part, uint64_t from, uint64_t to,
                               cx_digest *head, cx_err *err);
CX_RESULT cx_fleet_commit_head(cx_fleet *fleet, unsigned part, uint64_t num, cx_digest *out,
                               bool *out_found, cx_err *err);
/* The head after `count` commits; *out_found false: the commit is not there. */
CX_RESULT cx_fleet_head_after(cx_fleet *fleet, unsigned part, const cx_fleet_now *now,
                              uint64_t count, cx_digest *out, bool *out_found, cx_err *err);
/* All rows before the base as they are, without those they came with; each fits itself.
 * CX_E_FORMAT "ChainBroken". */
CX_RESULT cx_fleet_read_kept(cx_fleet *fleet, unsigned part, uint64_t base, cx_fleet_kept *out,
                             cx_err *err);
/* The chain from the base on, up to the head, and what the base states (F7, F8). */
CX_RESULT cx_fleet_check_chain(cx_fleet *fleet, unsigned part, const cx_fleet_now *now,
                               cx_fleet_chain *out, cx_err *err);

#endif
