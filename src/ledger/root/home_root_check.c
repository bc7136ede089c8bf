/*
 * home_root_check.c - recorded home roots against the log, while it is read from its first byte
 * (ledger.md §11, check 10; §15).
 *
 * The log is totally ordered, so that the home root at the position of each entry home.root can be
 * computed again.
 *
 *   K1  While no entry differed, the recorded leaves are those of the log at the last entry.  Then
 *       the next one is right when the leaves of the actors that have changed since are recorded,
 *       and those that were recorded since, and all recorded leaves together lead to its root.
 *   K2  Once one differed, the leaves of all actors are looked at for each entry.
 */
#include <stdio.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/kinds.h"
#include "ledger/root/home_tree.h"

#define PENDING_MAX 4096

struct cx_home_root_check {
    cx_home *home;
    const cx_check_sink *sink;
    bool all;                 /* K2 */
    CX_VEC(uint64_t) changed; /* by actor, one bit each */
    uint64_t entries;         /* of actors that have leaves */
    bool has_last;
    cx_home_root_entry last;
};

/* Where the recorded leaves and those of the log part. */
typedef struct comparison {
    cx_home_root_check *check;
    cx_arena *arena;
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
    *out = check;
    return CX_SUCCESS;
}

void cx_home_root_check_close(cx_home_root_check *check)
{
    if (check == NULL)
        return;
    const cx_alloc *alloc = check->home->alloc;
    cx_vec_done(&check->changed, alloc);
    cx_alloc_free(alloc, check, sizeof *check);
}

/* --- what has changed ------------------------------------------------------------------------- */

static cx_status note_changed(cx_home_root_check *check, uint64_t actor, cx_err *err)
{
    const size_t word = (size_t)(actor / 64);
    if (!cx_vec_reserve(&check->changed, word + 1, check->home->alloc))
        return cx_fail_nomem(err);
    while (check->changed.count <= word)
        check->changed.items[check->changed.count++] = 0;
    check->changed.items[word] |= UINT64_C(1) << actor % 64;
    return CX_SUCCESS;
}

static cx_status add_changed(void *arg, int64_t actor, cx_err *err)
{
    cx_home_root_check *check = arg;
    if (actor < 0 || (uint64_t)actor >= check->home->actors.count)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the kept state names an actor that does not exist; name another file");
    return note_changed(check, (uint64_t)actor, err);
}

cx_status cx_home_root_check_resume(cx_home_root_check *check, const cx_home_root_entry *last,
                                    cx_err *err)
{
    cx_home *home = check->home;
    cx_actor *self, *roots;
    CX_TRY(cx_home_actor_numbered(home, CX_ACTOR_HOME, &self, err));
    check->entries = home->store.counters.entries - self->info.entry_count;
    CX_TRY(cx_home_find_actor(home, CX_STR(CX_HOME_ROOT_ACTOR), &roots, err));
    check->entries -= roots == NULL ? 0 : roots->info.entry_count;
    check->has_last = last != NULL;
    if (last != NULL)
        check->last = *last;
    return cx_store_scan_changed(&home->store, home->actors.home_roots, add_changed, check, err);
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
    compare->actor =
        recorded != NULL ? recorded->actor : cx_arena_copy_str(compare->arena, log->actor);
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

static cx_status compare_leaf(void *arg, uint64_t position, const cx_home_leaf *leaf, cx_err *err)
{
    comparison *compare = arg;
    cx_home_leaf recorded;
    bool found = false;
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

/* K2 */
static cx_status check_all(comparison *compare, const cx_home_root *recorded, const char *where,
                           cx_err *err)
{
    cx_home_root_check *check = compare->check;
    const cx_home_leaf_visit visit = {compare_leaf, compare};
    cx_home_root now;
    check->all = true;
    compare->differing = 0;
    CX_TRY(cx_home_leaves_walk(check->home, &visit, &now, err));
    if (now.actors != recorded->actors || now.entries != recorded->entries ||
        !cx_digest_eq(&now.root, &recorded->root))
        return report_difference(compare, recorded, &now, where, err);
    if (compare->differing != 0)
        return report_finding(
            check, "HomeLeafDiffers", compare->actor, where,
            "a leaf that is recorded with the home root is not the one that leads "
            "to it",
            err);
    return CX_SUCCESS;
}

static cx_status compare_actor(comparison *compare, cx_actor *actor, int64_t roots, cx_err *err)
{
    cx_roots now;
    CX_TRY(cx_actor_roots(compare->check->home, actor, &now, err));
    const cx_home_leaf leaf = {.actor = actor->info.name,
                               .scheme = actor->info.scheme,
                               .size = actor->info.entry_count,
                               .overall = now.overall};
    return compare_leaf(compare, cx_home_leaf_position(actor->id, roots), &leaf, err);
}

static cx_status compare_changed(comparison *compare, uint64_t number, int64_t roots, cx_err *err)
{
    cx_home *home = compare->check->home;
    cx_actor *actor;
    cx_arena_mark mark = cx_arena_mark_now(compare->arena);
    if (number == CX_ACTOR_HOME || (int64_t)number == roots || number >= home->actors.count)
        return CX_SUCCESS;
    CX_TRY(cx_home_actor_numbered(home, (int64_t)number, &actor, err));
    cx_actor_hold(actor); /* the actor of the recorded leaves may take its place */
    cx_status status = compare_actor(compare, actor, roots, err);
    cx_actor_release(actor);
    if (!cx_failed(status) && compare->differing == 0)
        cx_arena_reset(compare->arena, mark);
    return status;
}

/* K1; *out_right is false where it cannot be told either. */
static cx_status check_changed(comparison *compare, const cx_home_root *recorded, int64_t roots,
                               bool *out_right, cx_err *err)
{
    cx_home_root_check *check = compare->check;
    cx_home_tree *tree = NULL;
    *out_right = false;
    /* The home itself and home:root have no leaf. */
    if (recorded->actors + 2 != check->home->actors.count || recorded->entries != check->entries)
        return CX_SUCCESS;
    for (size_t word = 0; word < check->changed.count && compare->differing == 0; word++)
        for (uint64_t bits = check->changed.items[word]; bits != 0; bits &= bits - 1)
            CX_TRY(
                compare_changed(compare, 64 * word + (unsigned)__builtin_ctzll(bits), roots, err));
    if (compare->differing != 0)
        return CX_SUCCESS;
    cx_status status = cx_home_tree_open(check->home, roots, recorded, &tree, err);
    cx_home_tree_close(tree);
    *out_right = !cx_failed(status);
    return status.code == CX_E_FORMAT ? CX_SUCCESS : status;
}

static cx_status check_root(cx_home_root_check *check, const cx_entry *entry,
                            const cx_home_root *recorded, int64_t roots, const char *where,
                            cx_arena *arena, cx_err *err)
{
    comparison compare = {.check = check, .arena = arena};
    bool right = false;
    /* What is pending would be looked through for each actor. */
    if (cx_store_memtable_rows(&check->home->store) > PENDING_MAX)
        CX_TRY(cx_home_flush_now(check->home, err));
    check->has_last = true;
    check->last = (cx_home_root_entry){*recorded, entry->seq, entry->created_at_ns};
    if (!check->all)
        CX_TRY(check_changed(&compare, recorded, roots, &right, err));
    if (!right)
        CX_TRY(check_all(&compare, recorded, where, err));
    check->changed.count = 0;
    return CX_SUCCESS;
}

static cx_status check_entry(cx_home_root_check *check, const cx_ledger_frame *frame,
                             const cx_actor *roots, cx_arena *arena, cx_err *err)
{
    cx_entry entry;
    cx_home_root recorded;
    cx_err reason = {0};
    char where[64];
    const int64_t number = roots->id;
    if (frame->entry.size == 0 || cx_failed(cx_entry_decode(frame->entry, &entry, NULL)))
        return CX_SUCCESS;
    (void)snprintf(where, sizeof where, "seq %llu", (unsigned long long)entry.seq);
    const bool cortex_1 = roots->info.scheme == CX_SCHEME_CORTEX_1;
    const bool decoded = !cx_failed(cx_home_root_decode(entry.payload, &recorded, &reason));
    if (cx_kinds_is(entry.kind, CX_KIND_HOME_ROOT) && !entry.committed && decoded && cortex_1)
        return check_root(check, &entry, &recorded, number, where, arena, err);
    /* Its frame may have recorded leaves. */
    check->all = true;
    if (!cx_kinds_is(entry.kind, CX_KIND_HOME_ROOT) || entry.committed)
        return report_finding(check, "HomeRootMalformed", frame->actor, where,
                              "the journal of home roots has an entry that is none", err);
    return report_finding(check, "HomeRootMalformed", frame->actor, where,
                          !decoded ? reason.message
                                   : "the journal of home roots is in another scheme than cortex-1",
                          err);
}

/* Rows of the tree are derived: with others in their place, K1 would say nothing. */
static cx_status report_derived(cx_home_root_check *check, const cx_ledger_frame *frame,
                                cx_err *err)
{
    if (check->all)
        return CX_SUCCESS;
    check->all = true;
    return report_finding(check, "HomeRootMalformed", frame->actor, "record " CX_HOME_TREE_PREFIX,
                          "the log has a row of the tree over all actors, which is derived", err);
}

/* K1: actors whose leaves a frame of home:root has. */
static cx_status note_leaves(cx_home_root_check *check, const cx_ledger_frame *frame, int64_t roots,
                             cx_err *err)
{
    for (size_t i = 0; i < frame->change_count; i++) {
        const cx_bytes key = frame->changes[i].key;
        uint64_t position;
        if (cx_str_starts(cx_bytes_str(key), CX_STR(CX_HOME_TREE_PREFIX)))
            CX_TRY(report_derived(check, frame, err));
        if (!cx_home_leaf_is(key, &position))
            continue;
        const uint64_t actor = position + 1 + (position + 1 >= (uint64_t)roots ? 1 : 0);
        if (position < check->home->actors.count && actor < check->home->actors.count)
            CX_TRY(note_changed(check, actor, err));
        else
            check->all = true;
    }
    return CX_SUCCESS;
}

cx_status cx_home_root_check_frame(cx_home_root_check *check, const cx_ledger_frame *frame,
                                   cx_arena *arena, cx_err *err)
{
    cx_actor *actor;
    if (frame->actor.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_home_need_actor(check->home, frame->actor, &actor, err));
    if (!cx_home_root_reserved(frame->actor)) {
        check->entries += frame->entry.size != 0 ? 1 : 0;
        return note_changed(check, (uint64_t)actor->id, err);
    }
    CX_TRY(note_leaves(check, frame, actor->id, err));
    return check_entry(check, frame, actor, arena, err);
}
