/*
 * find.c - the places that have to do with a hash (find.h).
 */
#include "ledger/find/find.h"

#include "base/api.h"
#include "ledger/find/hash_rows.h"
#include "ledger/internal.h"

typedef struct search {
    cx_home *home;
    size_t max;
    CX_VEC(cx_hash_row) rows;
} search;

static cx_status collect_row(void *arg, const cx_hash_row *row, bool *stop, cx_err *err)
{
    search *s = arg;
    cx_hash_row *slot = cx_vec_push(&s->rows, s->home->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *row;
    *stop = s->rows.count >= s->max;
    return CX_SUCCESS;
}

/* The heads of all hashes that begin with the digits. */
static bool read_digits(cx_str digits, uint64_t *out_low, uint64_t *out_high)
{
    uint64_t low = 0;
    const size_t count = digits.size < 16 ? digits.size : 16;
    if (digits.size < CX_FIND_DIGITS_MIN)
        return false;
    for (size_t i = 0; i < digits.size; i++) {
        const char c = digits.data[i];
        const bool letter = c >= 'a' && c <= 'f';
        if (!letter && (c < '0' || c > '9'))
            return false;
        if (i < count)
            low = low << 4 | (uint64_t)(letter ? c - 'a' + 10 : c - '0');
    }
    const unsigned unknown = 4 * (unsigned)(16 - count);
    *out_low = low << unknown;
    *out_high = *out_low | ((UINT64_C(1) << unknown) - 1);
    return true;
}

/* A row that names an actor or an entry that is not there is damage: nothing else writes rows. */
static cx_status name_place(cx_home *home, const cx_hash_row *row, cx_arena *arena,
                            cx_hash_place *out, cx_err *err)
{
    cx_actor *actor = NULL;
    CX_TRY(cx_home_actor_numbered(home, row->actor, &actor, err));
    *out = (cx_hash_place){.actor = cx_arena_copy_str(arena, actor->info.name),
                           .snapshot = row->number % 2 != 0,
                           .number = row->number / 2};
    return out->actor.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status find_places(search *s, uint64_t low, uint64_t high, cx_arena *arena,
                             const cx_hash_place **out, cx_err *err)
{
    CX_TRY(cx_home_flush_wait_locked(s->home, err));
    CX_TRY(cx_store_find_hashes(&s->home->store, low, high, collect_row, s, err));
    cx_hash_place *places = CX_ARENA_ARRAY(arena, cx_hash_place, s->rows.count + 1);
    if (places == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < s->rows.count; i++)
        CX_TRY(name_place(s->home, &s->rows.items[i], arena, &places[i], err));
    *out = places;
    return CX_SUCCESS;
}

cx_status cx_home_find_hash(cx_home *home, cx_str digits, size_t max, cx_arena *arena,
                            const cx_hash_place **out, size_t *out_count, cx_err *err)
{
    search s = {.home = home, .max = max};
    uint64_t low = 0, high = 0;
    if (!read_digits(digits, &low, &high))
        return cx_fail(err, CX_E_USAGE, "expected at least %d hex digits of a hash, in lower case",
                       CX_FIND_DIGITS_MIN);
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "looking up a hash", err);
    cx_lock_enter(&home->lock);
    cx_status status = find_places(&s, low, high, arena, out, err);
    cx_lock_leave(&home->lock);
    *out_count = cx_failed(status) ? 0 : s.rows.count;
    cx_vec_done(&s.rows, home->alloc);
    return status;
}
