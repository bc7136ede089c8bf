/*
 * run_ended.c - the ends of runs that another machine ended and that their own did not seal: what
 * the journal has of them is recorded as an entry run.end (stores/run_end.h).
 */
#include "base/api.h"
#include "cli/run/run_lease.h"
#include "stores/api.h"

/* --- runs that were ended and not sealed ------------------------------------------------------ */

typedef struct ended_runs {
    cx_arena *arena;
    CX_VEC(cx_str) ids;
} ended_runs;

static cx_status see_ended(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    ended_runs *found = arg;
    const size_t prefix = sizeof CX_RUN_LEASE_ENDED_KEY - 1;
    (void)value;
    (void)stop;
    cx_str *slot = cx_vec_push(&found->ids, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = cx_arena_copy_str(found->arena,
                              cx_str_from((const char *)key.data + prefix, key.size - prefix));
    return slot->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* What is known of a run, and whether its end is to be recorded. */
static cx_status is_unsealed(cx_home *home, cx_str actor, cx_run_index *index, cx_str run_id,
                             cx_arena *arena, cx_run_known *known, bool *out, cx_err *err)
{
    cx_run_ending there;
    bool noted = false, sealed = false;
    *out = false;
    CX_TRY(cx_run_index_sealed(index, run_id, &sealed, err));
    if (sealed)
        return CX_SUCCESS;
    CX_TRY(cx_run_end_find(home, actor, run_id, arena, &there, &noted, err));
    *out = !noted;
    return noted ? CX_SUCCESS : cx_run_index_find(index, run_id, arena, known, err);
}

static cx_status keep_unsealed(cx_home *home, cx_str actor, ended_runs *found, size_t *out_count,
                               cx_err *err)
{
    cx_run_index *index;
    cx_status status = cx_run_index_open(home, cx_alloc_default(), &index, err);
    *out_count = 0;
    if (cx_failed(status))
        return status;
    for (size_t i = 0; i < found->ids.count && !cx_failed(status); i++) {
        cx_run_known known;
        bool open = false;
        status =
            is_unsealed(home, actor, index, found->ids.items[i], found->arena, &known, &open, err);
        if (!cx_failed(status) && open)
            found->ids.items[(*out_count)++] = found->ids.items[i];
    }
    cx_run_index_close(index);
    return status;
}

cx_status cx_cli_run_leases_unsealed(cx_home *home, cx_str actor, cx_arena *arena, cx_str **out,
                                     size_t *out_count, cx_err *err)
{
    ended_runs found = {.arena = arena};
    const cx_scan scan = {.actor = actor,
                          .prefix = cx_str_bytes(CX_STR(CX_RUN_LEASE_ENDED_KEY)),
                          .row = see_ended,
                          .arg = &found};
    *out_count = 0;
    cx_status status = cx_home_scan(home, &scan, err);
    if (status.code == CX_E_NOT_FOUND) /* there is no journal yet */
        status = CX_SUCCESS;
    else if (!cx_failed(status))
        status = keep_unsealed(home, actor, &found, out_count, err);
    *out = CX_ARENA_ARRAY(arena, cx_str, *out_count + 1);
    if (!cx_failed(status) && *out == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status) && *out_count != 0)
        memcpy(*out, found.ids.items, *out_count * sizeof **out);
    cx_vec_done(&found.ids, cx_alloc_default());
    return status;
}

typedef struct noting_end {
    cx_cli_run_ledger *ledger;
    cx_run_ending ending;
    bool open;
} noting_end;

static cx_status look_at_end(void *arg, cx_home *home, cx_err *err)
{
    noting_end *n = arg;
    cx_run_index *index;
    cx_run_known known;
    CX_TRY(cx_run_index_open(home, cx_alloc_default(), &index, err));
    cx_status status = is_unsealed(home, n->ledger->actor, index, n->ending.run_id,
                                   &n->ledger->cli->arena, &known, &n->open, err);
    cx_run_index_close(index);
    if (cx_failed(status) || !n->open)
        return status;
    n->ending.event_count = known.witness.event_count;
    if (known.witness.event_count != 0)
        n->ending.chain_head = known.witness.events[known.witness.event_count - 1];
    return CX_SUCCESS;
}

static cx_status note_end_in_txn(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    noting_end *n = arg;
    cx_json ended;
    cx_buf text;
    const cx_io *io = n->ledger->cli->io;
    const cx_id subject = cx_run_end_subject(n->ending.run_id);
    CX_TRY(cx_cli_run_leases_ended(txn, n->ending.run_id, &ended, write, err));
    const cx_json *by = *write ? CX_JSON_GET(&ended, "by") : NULL;
    const cx_json *token = *write ? CX_JSON_GET(&ended, "token") : NULL;
    *write = by != NULL && token != NULL && cx_json_uint64(token, &n->ending.token);
    if (!*write)
        return CX_SUCCESS;
    n->ending.reason = CX_JSON_GET_STR(&ended, "reason");
    n->ending.host = CX_JSON_GET_STR(&ended, "host");
    n->ending.ended_at = CX_JSON_GET_STR(&ended, "at");
    n->ending.by_host = CX_JSON_GET_STR(by, "host");
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_run_end_write(&n->ending, cx_txn_arena(txn), &text, err);
    const cx_entry_draft draft = {.kind = cx_kinds_name(CX_KIND_RUN_END),
                                  .created_at_ns = (int64_t)io->wall_ns(io),
                                  .created_by = cx_str_bytes(CX_STR("cortex")),
                                  .payload = cx_buf_bytes(&text),
                                  .subject = &subject};
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, NULL, err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_cli_run_leases_note_end(cx_cli_run_ledger *ledger, cx_str run_id, bool *out_done,
                                     cx_err *err)
{
    CX_ASSERT(ledger->leases != NULL);
    noting_end n = {.ledger = ledger, .ending.run_id = run_id};
    const cx_cli_run_look look = {look_at_end, &n};
    const cx_cli_run_work work = {note_end_in_txn, &n};
    *out_done = false;
    CX_TRY(cx_cli_run_ledger_look(ledger, &look, err));
    if (!n.open)
        return CX_SUCCESS;
    CX_TRY(cx_cli_run_ledger_transact(ledger, &work, err));
    *out_done = true;
    return CX_SUCCESS;
}
