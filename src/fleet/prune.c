/*
 * prune.c - bounds of a part: what its log may have, and commits that are not needed any more (F8).
 *
 * A commit is needed while a file that is not derived has bytes of it: its digest is what these
 * are compared with.  All others before the base go.  What stays is stated by a commit, so that the
 * chain covers it: a row before the base that is changed, added or removed later is found.
 *
 * A transaction for each PRUNE_STEP commits: the part's row is locked and compared with what this
 * process knows (F1), the whole chain is recomputed, rows are removed, what stays is read and
 * hashed, and the commit is written.  Each is a whole pruning: what ends between two leaves a base
 * that is stated.
 */
#include "fleet/internal.h"

/* Commits of one transaction: so many rows are dead, and the part's row is locked, at once. */
#ifdef CX_FLEET_RULES_OUT
#define PRUNE_STEP 20
#else
#define PRUNE_STEP 250000
#endif

/* --- quotas ----------------------------------------------------------------------------------- */

cx_status cx_fleet_set_quota(cx_fleet *fleet, unsigned part, uint64_t bytes, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(part), cx_fleet_int(bytes)};
    uint64_t changed = 0;
    CX_TRY(cx_fleet_complete(fleet,
                             "UPDATE " CX_T_PART " SET quota_bytes = nullif($2, 0) WHERE part = $1",
                             values, CX_COUNT_OF(values), &changed, err));
    return changed == 1 ? CX_SUCCESS
                        : cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                                     "part %u has no row in the database", part);
}

/* --- what is not needed ----------------------------------------------------------------------- */

typedef struct pruning {
    cx_fleet *fleet;
    cx_fleet_part *part;
    cx_fleet_now now;   /* as the transaction found it */
    uint64_t base, end; /* of this transaction; of all */
    bool wrote, writes; /* an earlier one removed rows; this one is a commit */
    cx_digest base_head, digest, head;
    cx_fleet_pruned *out;
} pruning;

/* Of a commit `c` before the base: a file that is not derived has bytes of it. */
#define HAS_BYTES                                                                                \
    "EXISTS (SELECT FROM " CX_T_EXTENT " e JOIN " CX_T_FILE                                      \
    " f ON f.part = e.part AND f.file = e.file WHERE e.part = c.part AND e.num = c.num AND NOT " \
    "f.derived)"

static cx_status read_number(void *arg, const cx_pg_value *columns, cx_err *err)
{
    (void)err;
    *(uint64_t *)arg = (uint64_t)columns[0].i;
    return CX_SUCCESS;
}

static cx_status count_rows(const pruning *p, const char *sql, uint64_t *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    const cx_pg_value values[] = {cx_fleet_int(p->part->number), cx_fleet_int(p->base)};
    return cx_pg_query(p->fleet->pg, sql, values, CX_COUNT_OF(values), types, 1, read_number, out,
                       NULL, err);
}

static cx_status broken(const pruning *p, uint64_t count, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "ChainBroken", CX_NO_OFFSET,
                      "part %u: %s of %llu commits are gone; nothing was pruned", p->part->number,
                      what, (unsigned long long)count);
}

/* What is broken must not go with what is pruned: a commit with a nonce has bytes, and bytes have a
 * commit. */
static cx_status check_pairs(const pruning *p, cx_err *err)
{
    uint64_t bytes = 0, rows = 0;
    CX_TRY(
        count_rows(p,
                   "SELECT count(*) FROM " CX_T_COMMIT
                   " c WHERE c.part = $1 AND c.num < $2 AND c.nonce IS NOT NULL AND NOT " HAS_BYTES,
                   &bytes, err));
    if (bytes != 0)
        return broken(p, bytes, "the bytes", err);
    CX_TRY(count_rows(p,
                      "SELECT count(DISTINCT e.num) FROM " CX_T_EXTENT " e JOIN " CX_T_FILE
                      " f ON f.part = e.part AND f.file = e.file LEFT JOIN " CX_T_COMMIT
                      " c ON c.part = e.part AND c.num = e.num WHERE e.part = $1 AND e.num < $2 "
                      "AND NOT f.derived AND c.num IS NULL",
                      &rows, err));
    return rows == 0 ? CX_SUCCESS : broken(p, rows, "the rows", err);
}

static cx_status remove_rows(const pruning *p, cx_err *err)
{
    const cx_pg_value values[] = {cx_fleet_int(p->part->number), cx_fleet_int(p->base)};
    return cx_pg_query(p->fleet->pg,
                       "DELETE FROM " CX_T_COMMIT
                       " c WHERE c.part = $1 AND c.num < $2 AND NOT " HAS_BYTES,
                       values, CX_COUNT_OF(values), NULL, 0, NULL, NULL, &p->out->removed, err);
}

/* --- the commit that states it ---------------------------------------------------------------- */

/* F1: locked, and as this process knows it. */
static cx_status lock_part(pruning *p, bool *out_same, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT};
    const cx_pg_value values[] = {
        cx_fleet_int(p->part->number),  cx_fleet_int(p->part->epoch),
        cx_fleet_int(p->part->next),    cx_fleet_digest(&p->part->head),
        cx_fleet_text(p->fleet->owner), {.type = CX_PG_BOOL, .b = p->fleet->strict}};
    uint64_t number, rows = 0;
    CX_TRY(cx_pg_query(p->fleet->pg,
                       "SELECT part FROM " CX_T_PART
                       " WHERE part = $1 AND epoch = $2 AND next = $3 AND head = $4 AND owner = $5 "
                       "AND (NOT $6 OR " CX_FLEET_STRICT ") FOR UPDATE",
                       values, CX_COUNT_OF(values), types, 1, read_number, &number, &rows, err));
    *out_same = rows == 1;
    return rows == 1 ? cx_fleet_look(p->fleet, p->part->number, &p->now, err) : CX_SUCCESS;
}

static cx_status write_commit(pruning *p, cx_err *err)
{
    const cx_pg_value row[] = {cx_fleet_int(p->part->number), cx_fleet_int(p->part->next),
                               cx_fleet_int(p->part->epoch),  cx_fleet_digest(&p->part->head),
                               cx_fleet_digest(&p->head),     cx_fleet_digest(&p->digest)};
    const cx_pg_value part[] = {cx_fleet_int(p->part->number),  cx_fleet_int(p->part->next),
                                cx_fleet_digest(&p->head),      cx_fleet_int(p->base),
                                cx_fleet_digest(&p->base_head), cx_fleet_int(p->fleet->lease_ms)};
    CX_TRY(cx_pg_query(p->fleet->pg,
                       "INSERT INTO " CX_T_COMMIT
                       " (part, num, epoch, prev, head, digest) VALUES ($1, $2, $3, $4, $5, $6)",
                       row, CX_COUNT_OF(row), NULL, 0, NULL, NULL, NULL, err));
    return cx_pg_query(p->fleet->pg,
                       "UPDATE " CX_T_PART " SET next = $2 + 1, head = $3, base = $4, base_head = "
                       "$5, base_num = $2, lease_until = clock_timestamp() + $6 * interval '1 "
                       "millisecond' WHERE part = $1",
                       part, CX_COUNT_OF(part), NULL, 0, NULL, NULL, NULL, err);
}

static cx_status nothing_to_prune(const pruning *p)
{
    *p->out = (cx_fleet_pruned){.base = p->now.base};
    return CX_SUCCESS;
}

static cx_status prune_rows(pruning *p, cx_err *err)
{
    const cx_fleet_part *part = p->part;
    cx_fleet_chain ignored = {0};
    cx_fleet_kept kept;
    bool found;
    CX_TRY(cx_fleet_check_chain(p->fleet, part->number, &p->now, &ignored, err));
    CX_TRY(
        cx_fleet_head_after(p->fleet, part->number, &p->now, p->base, &p->base_head, &found, err));
    CX_ASSERT(found); /* its links were checked */
    CX_TRY(check_pairs(p, err));
    CX_TRY(remove_rows(p, err));
    p->writes = p->wrote || p->out->removed != 0;
    if (!p->writes)
        return nothing_to_prune(p);
    CX_TRY(cx_fleet_read_kept(p->fleet, part->number, p->base, &kept, err));
    p->out->base = p->base;
    p->out->kept = kept.count;
    p->digest = cx_fleet_kept_end(&kept, p->base, &p->base_head);
    p->head = cx_fleet_next_head(&part->head, part->number, part->epoch, part->next, &p->digest);
    return write_commit(p, err);
}

static cx_status prune_locked(pruning *p, cx_err *err)
{
    uint64_t from = p->base > p->now.base ? p->base : p->now.base;
    if (p->end <= from) {
        p->base = p->end;
        return nothing_to_prune(p);
    }
    p->base = p->end - from < PRUNE_STEP ? p->end : from + PRUNE_STEP;
    return prune_rows(p, err);
}

static cx_status refused(pruning *p, cx_err *err)
{
    bool again;
    cx_pg_rollback(p->fleet->pg);
    CX_TRY(cx_fleet_why_refused(p->fleet, p->part, &again, err));
    return cx_fail_at(err, CX_E_BUSY, "DatabaseAway", CX_NO_OFFSET,
                      "part %u was not pruned; try again", p->part->number);
}

static cx_status resolve_prune(pruning *p, cx_err *err)
{
    bool there = false;
    CX_TRY(cx_fleet_resolve(p->fleet, p->part, &p->head, &there, err));
    if (there) {
        p->part->next++;
        p->part->head = p->head;
        return CX_SUCCESS;
    }
    return cx_fail_at(err, CX_E_BUSY, "DatabaseAway", CX_NO_OFFSET,
                      "part %u: the database was away, and nothing was pruned; try again",
                      p->part->number);
}

static cx_status prune_step(pruning *p, cx_err *err)
{
    cx_fleet *fleet = p->fleet;
    bool same = false;
    p->writes = false;
    CX_TRY(cx_fleet_need_connection(fleet, err));
    CX_TRY(cx_pg_begin(fleet->pg, err));
    CX_TRY(lock_part(p, &same, err));
    if (!same)
        return refused(p, err);
    CX_TRY(prune_locked(p, err));
    if (!p->writes)
        return CX_SUCCESS;
    cx_status status = cx_pg_commit(fleet->pg, err);
    switch (cx_fleet_outcome_of(fleet, status)) {
    case CX_OUTCOME_DONE:
        p->part->next++;
        p->part->head = p->head;
        return CX_SUCCESS;
    case CX_OUTCOME_UNKNOWN: return resolve_prune(p, err);
    default: return status;
    }
}

cx_status cx_fleet_prune(cx_fleet *fleet, cx_fleet_part *part, uint64_t keep, cx_fleet_pruned *out,
                         cx_err *err)
{
    cx_fleet_pruned step;
    uint64_t removed = 0;
    pruning p = {.fleet = fleet, .part = part, .out = &step};
    CX_ASSERT(part->owned && !fleet->read_only && keep != 0);
    *out = (cx_fleet_pruned){0};
    p.end = part->next <= keep ? 0 : part->next - keep;
    do {
        step = (cx_fleet_pruned){0};
        cx_status status = prune_step(&p, err);
        cx_pg_rollback(fleet->pg); /* what was not committed */
        CX_TRY(status);
        removed += step.removed;
        p.wrote = removed != 0;
    } while (p.base < p.end);
    *out = step;
    out->removed = removed;
    return CX_SUCCESS;
}
