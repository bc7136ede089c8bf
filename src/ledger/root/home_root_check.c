/*
 * home_root_check.c - recorded home roots against the log, while it is read from its first byte
 * (ledger.md §11, check 10; §15).
 *
 * The log is totally ordered, so that the home root at the position of each entry home.root can be
 * computed again.  Only leaves that have changed since the entry before are hashed, as long as the
 * tree over all actors is kept: with very many of them it is not, and each entry hashes all leaves.
 */
#include <stdio.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/kinds.h"

/* The tree over the actors is kept for so many times the actors that stay in memory: at 100 bytes
 * each, 26 MB unless the options say another number. */
#define LEAVES_KEPT 16
#define PENDING_MAX 4096

struct cx_home_root_check {
    cx_home *home;
    const cx_check_sink *sink;
    cx_slots *slots; /* NULL = there are too many actors */
    bool has_last;
    cx_home_root_entry last;
};

/* Where the recorded leaves and those of the log part. */
typedef struct comparison {
    cx_home_root_check *check;
    cx_arena *arena;
    bool all; /* not only leaves that have changed */
    uint64_t differing;
    uint64_t position; /* of the first that differs */
    cx_str actor;      /* as recorded, or as the log has it where nothing is recorded */
    char message[CX_ERR_MESSAGE_SIZE];
} comparison;

cx_status cx_home_root_check_open(cx_home *home, const cx_check_sink *sink,
                                  cx_home_root_check **out, cx_err *err)
{
    cx_home_root_check *check = cx_alloc_zeroed(home->alloc, 1, sizeof *check);
    if (check == NULL)
        return cx_fail_nomem(err);
    *check = (cx_home_root_check){.home = home, .sink = sink};
    cx_status status = cx_slots_open(home->alloc, &check->slots, err);
    if (cx_failed(status))
        cx_alloc_free(home->alloc, check, sizeof *check);
    else
        *out = check;
    return status;
}

void cx_home_root_check_close(cx_home_root_check *check)
{
    if (check == NULL)
        return;
    const cx_alloc *alloc = check->home->alloc;
    cx_slots_close(check->slots);
    cx_alloc_free(alloc, check, sizeof *check);
}

void cx_home_root_check_resume(cx_home_root_check *check, const cx_home_root_entry *last)
{
    check->has_last = true;
    check->last = *last;
}

bool cx_home_root_check_last(const cx_home_root_check *check, cx_home_root_entry *out)
{
    if (check->has_last)
        *out = check->last;
    return check->has_last;
}

/* --- the recorded leaves ---------------------------------------------------------------------- */

static cx_status get_recorded(const comparison *compare, uint64_t position, cx_home_leaf *out,
                              bool *out_found, cx_err *err)
{
    cx_home *home = compare->check->home;
    cx_actor *actor;
    uint8_t key[CX_HOME_LEAF_KEY_SIZE];
    cx_bytes value = {NULL, 0};
    CX_TRY(cx_home_need_actor(home, CX_STR(CX_HOME_ROOT_ACTOR), &actor, err));
    CX_TRY(cx_store_get(&home->store, actor->id, cx_home_leaf_key(position, key), compare->arena,
                        &value, out_found, NULL, err));
    if (*out_found && cx_failed(cx_home_leaf_decode(value, out, NULL)))
        *out_found = false;
    return CX_SUCCESS;
}

static void describe_difference(comparison *compare, uint64_t position, const cx_home_leaf *log,
                                const cx_home_leaf *recorded)
{
    char *message = compare->message;
    if (compare->differing++ != 0)
        return;
    compare->position = position;
    compare->actor = recorded != NULL ? recorded->actor : log->actor;
    if (recorded == NULL)
        (void)snprintf(message, sizeof compare->message,
                       "leaf %llu of the home root is not recorded", (unsigned long long)position);
    else if (log == NULL || !cx_str_eq(log->actor, recorded->actor))
        (void)snprintf(message, sizeof compare->message,
                       "the home root covers %llu entries of this actor as actor number %llu, and "
                       "the log has none of it there: its journal was removed or moved",
                       (unsigned long long)recorded->size, (unsigned long long)position);
    else if (log->size != recorded->size)
        (void)snprintf(message, sizeof compare->message,
                       "the home root covers %llu entries of this actor, and the log has %llu "
                       "before it: its journal was cut or extended",
                       (unsigned long long)recorded->size, (unsigned long long)log->size);
    else
        (void)snprintf(message, sizeof compare->message,
                       "the overall root of this actor at %llu entries is another one than the "
                       "home root covers: its journal or its records were rewritten",
                       (unsigned long long)log->size);
}

static cx_status compare_leaf(void *arg, uint64_t position, const cx_home_leaf *leaf, bool changed,
                              cx_err *err)
{
    comparison *compare = arg;
    cx_home_leaf recorded;
    bool found = false;
    if (!changed && !compare->all)
        return CX_SUCCESS;
    CX_TRY(get_recorded(compare, position, &recorded, &found, err));
    if (!found || !cx_str_eq(recorded.actor, leaf->actor) || recorded.scheme != leaf->scheme ||
        recorded.size != leaf->size || !cx_digest_eq(&recorded.overall, &leaf->overall))
        describe_difference(compare, position, leaf, found ? &recorded : NULL);
    return CX_SUCCESS;
}

/* --- one entry -------------------------------------------------------------------------------- */

static cx_status report_finding(const cx_home_root_check *check, const char *reason, cx_str actor,
                                const char *where, const char *message, cx_err *err)
{
    return check->sink->found(check->sink->arg, "home", reason, actor, where, message, err);
}

/* The first leaf beyond those of the log, when the entry covers more. */
static cx_status compare_missing(comparison *compare, const cx_home_root *recorded,
                                 const cx_home_root *now, cx_err *err)
{
    cx_home_leaf leaf;
    bool found = false;
    if (recorded->actors <= now->actors || compare->differing != 0)
        return CX_SUCCESS;
    CX_TRY(get_recorded(compare, now->actors, &leaf, &found, err));
    if (found)
        describe_difference(compare, now->actors, NULL, &leaf);
    return CX_SUCCESS;
}

static cx_status report_difference(comparison *compare, const cx_home_root *recorded,
                                   const cx_home_root *now, const char *where, cx_err *err)
{
    const cx_home_leaf_visit visit = {compare_leaf, compare};
    cx_home_root again;
    compare->all = true;
    compare->differing = 0;
    CX_TRY(
        cx_home_leaves_refresh(compare->check->home, compare->check->slots, &visit, &again, err));
    CX_TRY(compare_missing(compare, recorded, now, err));
    if (compare->differing == 0)
        (void)snprintf(compare->message, sizeof compare->message,
                       "the home root of %llu actors with %llu entries is another one than the log "
                       "gives, %llu actors with %llu entries",
                       (unsigned long long)recorded->actors, (unsigned long long)recorded->entries,
                       (unsigned long long)now->actors, (unsigned long long)now->entries);
    return report_finding(compare->check, "HomeRootDiffers",
                          compare->differing != 0 ? compare->actor : (cx_str){NULL, 0}, where,
                          compare->message, err);
}

static cx_status check_root(cx_home_root_check *check, const cx_entry *entry,
                            const cx_home_root *recorded, const char *where, cx_arena *arena,
                            cx_err *err)
{
    comparison compare = {.check = check, .arena = arena};
    const cx_home_leaf_visit visit = {compare_leaf, &compare};
    cx_home_root now;
    if (check->home->actors.count > LEAVES_KEPT * (uint64_t)cx_home_actor_limit(check->home)) {
        cx_slots_close(check->slots);
        check->slots = NULL;
    }
    /* What is pending would be looked through for each actor. */
    if (cx_store_memtable_rows(&check->home->store) > PENDING_MAX)
        CX_TRY(cx_home_flush_now(check->home, err));
    check->has_last = true;
    check->last = (cx_home_root_entry){*recorded, entry->seq, entry->created_at_ns};
    CX_TRY(cx_home_leaves_refresh(check->home, check->slots, &visit, &now, err));
    if (now.actors != recorded->actors || now.entries != recorded->entries ||
        !cx_digest_eq(&now.root, &recorded->root))
        return report_difference(&compare, recorded, &now, where, err);
    if (compare.differing != 0)
        return report_finding(
            check, "HomeLeafDiffers", compare.actor, where,
            "a leaf that is recorded with the home root is not the one that leads "
            "to it",
            err);
    return CX_SUCCESS;
}

cx_status cx_home_root_check_frame(cx_home_root_check *check, const cx_ledger_frame *frame,
                                   cx_arena *arena, cx_err *err)
{
    cx_entry entry;
    cx_home_root recorded;
    cx_err reason = {0};
    char where[64];
    if (!cx_home_root_reserved(frame->actor) || frame->entry.size == 0 ||
        cx_failed(cx_entry_decode(frame->entry, &entry, NULL)))
        return CX_SUCCESS;
    (void)snprintf(where, sizeof where, "seq %llu", (unsigned long long)entry.seq);
    if (!cx_kinds_is(entry.kind, CX_KIND_HOME_ROOT) || entry.committed)
        return report_finding(check, "HomeRootMalformed", frame->actor, where,
                              "the journal of home roots has an entry that is none", err);
    if (cx_failed(cx_home_root_decode(entry.payload, &recorded, &reason)))
        return report_finding(check, "HomeRootMalformed", frame->actor, where, reason.message, err);
    cx_actor *actor;
    CX_TRY(cx_home_need_actor(check->home, frame->actor, &actor, err));
    if (actor->info.scheme != CX_SCHEME_CORTEX_1)
        return report_finding(check, "HomeRootMalformed", frame->actor, where,
                              "the journal of home roots is in another scheme than cortex-1", err);
    return check_root(check, &entry, &recorded, where, arena, err);
}
