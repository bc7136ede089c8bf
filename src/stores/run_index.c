/*
 * run_index.c - reads the journals of runs and stores their links and seals (run.md §17, §18).
 *
 *   I1  The first entry about an event, and the first seal, count.
 *   I2  An entry that cannot be read as ours is ignored; it is no error of the run.
 */
#include "stores/run_index.h"

#include "base/api.h"
#include "crypto/api.h"

typedef struct known_run {
    CX_VEC(cx_digest) links; /* by index - 1; zero = none */
    cx_str seal;             /* the payload, in the index's arena; data NULL = none */
    cx_str actor;
    uint64_t seal_index;
} known_run;

typedef struct journal {
    cx_str name;
    uint64_t read; /* entries */
} journal;

struct cx_run_index {
    cx_home *home;
    const cx_alloc *alloc;
    cx_lock lock;
    cx_arena arena;
    cx_map by_id; /* place in `runs` */
    CX_VEC(known_run) runs;
    CX_VEC(journal) journals;
    bool caught_up;
    uint64_t durable; /* commits, when it last caught up */
};

cx_status cx_run_index_open(cx_home *home, const cx_alloc *alloc, cx_run_index **out, cx_err *err)
{
    CX_ASSERT(home != NULL && out != NULL);
    cx_run_index *index = cx_alloc_zeroed(alloc, 1, sizeof *index);
    if (index == NULL)
        return cx_fail_nomem(err);
    index->home = home;
    index->alloc = alloc;
    cx_lock_init(&index->lock);
    cx_arena_init(&index->arena, alloc, 0);
    cx_map_init(&index->by_id, alloc, cx_io_seed(cx_io_system()));
    *out = index;
    return CX_SUCCESS;
}

void cx_run_index_close(cx_run_index *index)
{
    if (index == NULL)
        return;
    for (size_t i = 0; i < index->runs.count; i++)
        cx_vec_done(&index->runs.items[i].links, index->alloc);
    cx_vec_done(&index->runs, index->alloc);
    cx_vec_done(&index->journals, index->alloc);
    cx_map_done(&index->by_id);
    cx_arena_done(&index->arena);
    cx_lock_done(&index->lock);
    cx_alloc_free(index->alloc, index, sizeof *index);
}

/* --- reading journals ------------------------------------------------------------------------ */

static cx_status find_or_add_run(cx_run_index *index, cx_str run_id, known_run **out, cx_err *err)
{
    uint64_t *place = cx_map_find(&index->by_id, run_id);
    bool is_new;
    if (place == NULL) {
        cx_str name = cx_arena_copy_str(&index->arena, run_id);
        known_run *run = name.data == NULL ? NULL : cx_vec_push(&index->runs, index->alloc);
        if (run == NULL)
            return cx_fail_nomem(err);
        memset(run, 0, sizeof *run);
        CX_TRY(cx_map_put(&index->by_id, name, &place, &is_new, err));
        *place = index->runs.count - 1;
    }
    *out = &index->runs.items[*place];
    return CX_SUCCESS;
}

static cx_status index_event(cx_run_index *index, const cx_json *payload, cx_str run_id,
                             cx_err *err)
{
    uint64_t number_in_run;
    cx_digest link;
    known_run *run;
    const cx_json *number = CX_JSON_GET(payload, "index");
    if (number == NULL || !cx_json_uint64(number, &number_in_run) || number_in_run == 0 ||
        number_in_run > CX_RUN_EVENTS_MAX ||
        !cx_digest_parse(CX_JSON_GET_STR(payload, "hash"), &link))
        return CX_SUCCESS; /* I2 */
    CX_TRY(find_or_add_run(index, run_id, &run, err));
    while (run->links.count < number_in_run) {
        cx_digest *slot = cx_vec_push(&run->links, index->alloc);
        if (slot == NULL)
            return cx_fail_nomem(err);
        memset(slot, 0, sizeof *slot);
    }
    static const cx_digest none;
    if (cx_digest_eq(&run->links.items[number_in_run - 1], &none)) /* I1 */
        run->links.items[number_in_run - 1] = link;
    return CX_SUCCESS;
}

static cx_status index_seal(cx_run_index *index, cx_str actor, uint64_t seq, cx_bytes payload,
                            cx_str run_id, cx_err *err)
{
    known_run *run;
    CX_TRY(find_or_add_run(index, run_id, &run, err));
    if (run->seal.data != NULL) /* I1 */
        return CX_SUCCESS;
    run->seal = cx_arena_copy_str(&index->arena, cx_bytes_str(payload));
    run->actor = actor;
    run->seal_index = seq;
    return run->seal.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status index_entry(cx_run_index *index, cx_str actor, uint64_t seq, cx_arena *arena,
                             cx_err *err)
{
    cx_entry_view entry;
    cx_json payload;
    CX_TRY(cx_home_entry(index->home, actor, seq, arena, &entry, err));
    bool event = cx_kinds_is(entry.entry.kind, CX_KIND_RUN_EVENT);
    if ((!event && !cx_kinds_is(entry.entry.kind, CX_KIND_RUN_SEAL)) || entry.payload_erased)
        return CX_SUCCESS;
    cx_status status = cx_run_json_read(cx_bytes_str(entry.payload), 0, arena, &payload, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    cx_str run_id = cx_failed(status) ? CX_STR("") : CX_JSON_GET_STR(&payload, "run_id");
    if (!cx_run_id_valid(run_id) ||
        !cx_str_is(CX_JSON_GET_STR(&payload, "type"),
                   event ? "cortex.run.event.v1" : "cortex.run.seal.v1"))
        return CX_SUCCESS; /* I2 */
    return event ? index_event(index, &payload, run_id, err)
                 : index_seal(index, actor, seq, entry.payload, run_id, err);
}

static cx_status journal_of(cx_run_index *index, cx_str name, journal **out, cx_err *err)
{
    for (size_t i = 0; i < index->journals.count; i++)
        if (cx_str_eq(index->journals.items[i].name, name)) {
            *out = &index->journals.items[i];
            return CX_SUCCESS;
        }
    cx_str kept = cx_arena_copy_str(&index->arena, name);
    journal *made = kept.data == NULL ? NULL : cx_vec_push(&index->journals, index->alloc);
    if (made == NULL)
        return cx_fail_nomem(err);
    *made = (journal){.name = kept};
    *out = made;
    return CX_SUCCESS;
}

static cx_status read_journal(cx_run_index *index, const cx_actor_info *actor, cx_arena *scratch,
                              cx_err *err)
{
    journal *indexed_journal = NULL;
    CX_TRY(journal_of(index, actor->name, &indexed_journal, err));
    cx_arena_mark mark = cx_arena_mark_now(scratch);
    while (indexed_journal->read < actor->entry_count) {
        CX_TRY(index_entry(index, indexed_journal->name, indexed_journal->read, scratch, err));
        indexed_journal->read++;
        cx_arena_reset(scratch, mark);
    }
    return CX_SUCCESS;
}

static cx_status read_journals(cx_run_index *index, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    cx_arena scratch;
    cx_arena_init(&scratch, index->alloc, 0);
    cx_actor_walk_begin_named(&walk, index->home, CX_STR(CX_RUN_ACTOR_PREFIX));
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL) {
        status = read_journal(index, actor, &scratch, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    cx_arena_done(&scratch);
    return status;
}

/* Catches up with the ledger, when something was committed since; needs the lock. */
static cx_status catch_up(cx_run_index *index, cx_err *err)
{
    const uint64_t durable = cx_home_durable(index->home);
    if (index->caught_up && durable != 0 && index->durable == durable) /* 0: it is not known */
        return CX_SUCCESS;
    CX_TRY(read_journals(index, err));
    index->caught_up = true;
    index->durable = durable;
    return CX_SUCCESS;
}

/* --- answering ------------------------------------------------------------------------------- */

static cx_status copy_run(const known_run *run, cx_arena *arena, cx_run_known *out, cx_err *err)
{
    cx_digest *links = CX_ARENA_ARRAY(arena, cx_digest, run->links.count + 1);
    if (links == NULL)
        return cx_fail_nomem(err);
    if (run->links.count != 0)
        memcpy(links, run->links.items, run->links.count * sizeof *links);
    out->witness.has_events = run->links.count != 0;
    out->witness.events = links;
    out->witness.event_count = run->links.count;
    if (run->seal.data == NULL)
        return CX_SUCCESS;
    cx_str seal = cx_arena_copy_str(arena, run->seal);
    out->actor = cx_arena_copy_str(arena, run->actor);
    if (seal.data == NULL || out->actor.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_json_read(seal, 0, arena, &out->seal, err));
    out->seal_index = run->seal_index;
    out->sealed = true;
    return CX_SUCCESS;
}

cx_status cx_run_index_find(cx_run_index *index, cx_str run_id, cx_arena *arena, cx_run_known *out,
                            cx_err *err)
{
    memset(out, 0, sizeof *out);
    cx_lock_enter(&index->lock);
    cx_status status = catch_up(index, err);
    const uint64_t *place = cx_failed(status) ? NULL : cx_map_find(&index->by_id, run_id);
    if (place != NULL)
        status = copy_run(&index->runs.items[*place], arena, out, err);
    cx_lock_leave(&index->lock);
    if (out->sealed)
        out->witness.seal = &out->seal;
    return status;
}

static bool has_seal(const cx_run_index *index, cx_str run_id)
{
    const uint64_t *place = cx_map_find(&index->by_id, run_id);
    return place != NULL && index->runs.items[*place].seal.data != NULL;
}

/* A run that has a seal keeps it (I1), so a list of runs looks for new entries once, not for each
 * of them. */
cx_status cx_run_index_sealed(cx_run_index *index, cx_str run_id, bool *out, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_lock_enter(&index->lock);
    if (!has_seal(index, run_id))
        status = catch_up(index, err);
    *out = !cx_failed(status) && has_seal(index, run_id);
    cx_lock_leave(&index->lock);
    return status;
}
