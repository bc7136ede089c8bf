/*
 * step_follow.c - what the steps of an agent came from: other agents' steps, as far as they had
 * got.
 *
 *   F1  A parent of another agent has a record step/link/.. in the journal of the child.  Of each
 *       agent named there all steps up to that parent are taken: its own ancestors come before it
 *       in its journal.
 *   F2  That is done until nothing new is named, so that no parent of a node is missing.
 */
#include "base/api.h"
#include "recorder/step_record.h"

typedef struct reached {
    cx_str actor;
    uint64_t entries; /* so many of its journal */
} reached;

typedef struct follower {
    cx_home *home;
    cx_arena arena;
    CX_VEC(reached) list;
} follower;

static cx_status reach_actor(follower *f, cx_str actor, uint64_t entries, cx_err *err)
{
    for (size_t i = 0; i < f->list.count; i++) {
        reached *one = &f->list.items[i];
        if (!cx_str_eq(one->actor, actor))
            continue;
        one->entries = entries > one->entries ? entries : one->entries;
        return CX_SUCCESS;
    }
    reached *added = cx_vec_push(&f->list, f->arena.alloc);
    cx_str name = cx_arena_copy_str(&f->arena, actor);
    if (added == NULL || name.data == NULL)
        return cx_fail_nomem(err);
    *added = (reached){.actor = name, .entries = entries};
    return CX_SUCCESS;
}

static cx_status link_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    cx_step_record link;
    (void)key;
    (void)stop;
    CX_TRY(cx_step_record_decode(value, &link, err));
    return reach_actor(arg, link.agent, link.entry + 1, err);
}

/* F1, of all steps of one journal. */
static cx_status follow_actor(follower *f, cx_str actor, cx_err *err)
{
    const cx_scan scan = {.actor = actor,
                          .prefix = cx_str_bytes(CX_STR(CX_STEP_LINK_PREFIX)),
                          .row = link_row,
                          .arg = f};
    cx_status status = cx_home_scan(f->home, &scan, err);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

static cx_status add_steps(follower *f, const reached *one, cx_buf *out, cx_err *err)
{
    cx_arena_mark mark = cx_arena_mark_now(&f->arena);
    for (uint64_t seq = 0; seq < one->entries; seq++) {
        cx_entry_view view;
        CX_TRY(cx_home_entry(f->home, one->actor, seq, &f->arena, &view, err));
        if (cx_str_eq(view.entry.kind, CX_KIND_NODE) && !view.payload_erased) {
            cx_buf_add(out, view.payload.data, view.payload.size);
            cx_buf_add_byte(out, '\n');
        }
        cx_arena_reset(&f->arena, mark);
    }
    return cx_buf_check(out, err);
}

static cx_status follow_all(follower *f, cx_str actor, cx_buf *out, cx_err *err)
{
    CX_TRY(reach_actor(f, actor, UINT64_MAX, err));
    for (size_t i = 0; i < f->list.count; i++) /* F2: the list grows meanwhile */
        CX_TRY(follow_actor(f, f->list.items[i].actor, err));
    for (size_t i = 1; i < f->list.count; i++)
        CX_TRY(add_steps(f, &f->list.items[i], out, err));
    return CX_SUCCESS;
}

cx_status cx_recorder_steps_follow(cx_home *home, cx_str actor, cx_buf *out, cx_err *err)
{
    follower f = {.home = home};
    cx_arena_init(&f.arena, out->alloc, 0);
    cx_status status = follow_all(&f, actor, out, err);
    cx_vec_done(&f.list, out->alloc);
    cx_arena_done(&f.arena);
    return status;
}
