/*
 * run_lease.c - leases of runs in a part of a fleet: opened, renewed, checked and ended.
 *
 * Invariants S1 to S3: run_lease.h.
 */
#include "cli/run/run_lease.h"

#include <stdlib.h>

#include "cli/fleet/part_home.h"
#include "cli/ledger/ledger.h"
#include "ledger/api.h"
#include "recorder/api.h"
#include "rules/api.h"

#define RENEW_LOOK_MS 250
#define PAYLOAD_TYPE "cortex.run.lease.v1"
#define NS_PER_SEC UINT64_C(1000000000)

/* What this process knows of a run of its own. */
typedef enum lease_state {
    LEASE_NEW, /* its first entry may be durable, or not */
    LEASE_HELD,
    LEASE_CLOSED, /* sealed */
    LEASE_LOST    /* ended by another */
} lease_state;

typedef struct held_lease {
    char run_id[CX_RUN_ID_BYTES_MAX + 1];
    uint64_t token, ttl_sec, renewed_ns; /* the last by the monotonic clock */
    lease_state state;
} held_lease;

struct cx_cli_run_leases {
    cx_cli_run_ledger *ledger;
    atomic_bool *cancel; /* NULL: no runs of its own */
    cx_run_shared_locks shared;
    cx_run_owner self;
    cx_arena arena; /* of self */
    cx_lock lock;   /* of all below; never held during a transaction */
    CX_VEC(held_lease) held;
    cx_thread thread;
    bool started, stopping;
};

static uint64_t now_of(const cx_cli_run_leases *leases)
{
    const cx_io *io = leases->ledger->cli->io;
    return io->monotonic_ns(io);
}

static void wall_text(const cx_cli_run_leases *leases, char out[28])
{
    const cx_io *io = leases->ledger->cli->io;
    cx_run_time_text((int64_t)io->wall_ns(io), out);
}

/* --- what this process has -------------------------------------------------------------------- */

static held_lease *find_locked(cx_cli_run_leases *leases, cx_str run_id)
{
    for (size_t i = 0; i < leases->held.count; i++)
        if (cx_str_is(run_id, leases->held.items[i].run_id))
            return &leases->held.items[i];
    return NULL;
}

static bool find_held(cx_cli_run_leases *leases, cx_str run_id, held_lease *out)
{
    cx_lock_enter(&leases->lock);
    const held_lease *held = find_locked(leases, run_id);
    if (held != NULL)
        *out = *held;
    cx_lock_leave(&leases->lock);
    return held != NULL;
}

/* Keeps what is known now; a run that is not known is added. */
static cx_status keep_held(cx_cli_run_leases *leases, const held_lease *held, cx_err *err)
{
    cx_lock_enter(&leases->lock);
    held_lease *slot = find_locked(leases, cx_str_z(held->run_id));
    if (slot == NULL)
        slot = cx_vec_push(&leases->held, cx_alloc_default());
    if (slot != NULL)
        *slot = *held;
    cx_lock_leave(&leases->lock);
    return slot == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static void set_state(cx_cli_run_leases *leases, cx_str run_id, lease_state state)
{
    cx_lock_enter(&leases->lock);
    held_lease *slot = find_locked(leases, run_id);
    if (slot != NULL)
        slot->state = state;
    cx_lock_leave(&leases->lock);
}

/* --- the record ------------------------------------------------------------------------------- */

static cx_status read_table(cx_txn *txn, cx_arena *arena, cx_run_leases *out, cx_err *err)
{
    cx_bytes value = {NULL, 0};
    bool found;
    CX_TRY(cx_txn_get(txn, cx_str_bytes(CX_STR(CX_RUN_LEASES_KEY)), &value, &found, err));
    return cx_run_leases_read(found ? value : (cx_bytes){NULL, 0}, arena, out, err);
}

static cx_status put_table(cx_txn *txn, const cx_run_leases *table, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_run_leases_write(table, &text, err);
    if (!cx_failed(status))
        status = cx_txn_put(txn, cx_str_bytes(CX_STR(CX_RUN_LEASES_KEY)), cx_buf_bytes(&text),
                            false, err);
    cx_buf_done(&text);
    return status;
}

static void put_text(cx_json_list *list, const char *name, cx_str text)
{
    cx_json_list_put(list, cx_str_z(name), cx_json_make_str(text));
}

static cx_json_list begin_payload(const char *change, const cx_run_lease *lease, cx_arena *arena)
{
    cx_json_list payload = cx_json_list_begin(arena);
    put_text(&payload, "type", CX_STR(PAYLOAD_TYPE));
    cx_json_put_z(&payload, "change", change);
    put_text(&payload, "run_id", lease->run_id);
    cx_json_put_uint(&payload, "token", lease->token);
    return payload;
}

/* S2.  The text of the payload stays in `out`. */
static cx_status add_entry(const cx_cli_run_leases *leases, cx_txn *txn, cx_json_list *payload,
                           cx_buf *out, cx_err *err)
{
    const cx_io *io = leases->ledger->cli->io;
    cx_json value;
    CX_TRY(cx_json_list_end_object(payload, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    CX_TRY(cx_buf_check(out, err));
    const cx_entry_draft draft = {.kind = cx_kinds_name(CX_KIND_RUN_LEASE),
                                  .created_at_ns = (int64_t)io->wall_ns(io),
                                  .created_by = cx_str_bytes(CX_STR("cortex")),
                                  .payload = cx_buf_bytes(out)};
    return cx_txn_entry(txn, &draft, NULL, err);
}

/* The entry of a change, and the table after it. */
static cx_status write_change(const cx_cli_run_leases *leases, cx_txn *txn, cx_json_list *payload,
                              const cx_run_leases *table, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = add_entry(leases, txn, payload, &text, err);
    if (!cx_failed(status))
        status = put_table(txn, table, err);
    cx_buf_done(&text);
    return status;
}

static cx_bytes ended_key(cx_str run_id,
                          char out[sizeof CX_RUN_LEASE_ENDED_KEY + CX_RUN_ID_BYTES_MAX])
{
    size_t prefix = sizeof CX_RUN_LEASE_ENDED_KEY - 1;
    CX_ASSERT(run_id.size <= CX_RUN_ID_BYTES_MAX);
    memcpy(out, CX_RUN_LEASE_ENDED_KEY, prefix);
    memcpy(out + prefix, run_id.data, run_id.size);
    return cx_bytes_from((const uint8_t *)out, prefix + run_id.size);
}

static void put_paths(cx_json_list *payload, const cx_run_lease *lease, cx_arena *arena)
{
    cx_json_list paths = cx_json_list_begin(arena);
    for (size_t i = 0; i < lease->lock_count; i++)
        cx_json_list_add(&paths, cx_json_make_str(lease->locks[i].path));
    cx_json_put_array(payload, "paths", &paths);
}

/* Of a lease that is about to be removed from the table: an entry, and a record by which the run
 * learns of it. */
static cx_status write_ended(const cx_cli_run_leases *leases, cx_txn *txn,
                             const cx_run_lease *lease, const char *why, cx_str by_run, cx_err *err)
{
    char key[sizeof CX_RUN_LEASE_ENDED_KEY + CX_RUN_ID_BYTES_MAX], now[28];
    cx_arena *arena = cx_txn_arena(txn);
    cx_json_list payload = begin_payload("end", lease, arena);
    cx_json_list by = cx_json_list_begin(arena);
    wall_text(leases, now);
    cx_json_put_z(&payload, "reason", why);
    cx_json_put_z(&payload, "at", now);
    put_text(&payload, "host", lease->owner.host);
    cx_json_put_uint(&payload, "pid", lease->owner.pid);
    put_text(&payload, "renewed_at", lease->renewed_at);
    cx_json_put_uint(&payload, "ttl_sec", lease->ttl_sec);
    put_paths(&payload, lease, arena);
    if (lease->merge_ref.size != 0) {
        cx_json_list merge = cx_json_list_begin(arena);
        put_text(&merge, "ref", lease->merge_ref);
        put_text(&merge, "commit", lease->merge_commit);
        cx_json_put_object(&payload, "merge", &merge);
    }
    put_text(&by, "host", leases->self.host);
    cx_json_put_uint(&by, "pid", leases->self.pid);
    if (by_run.size != 0)
        put_text(&by, "run_id", by_run);
    cx_json_put_object(&payload, "by", &by);
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = add_entry(leases, txn, &payload, &text, err);
    if (!cx_failed(status))
        status = cx_txn_put(txn, ended_key(lease->run_id, key), cx_buf_bytes(&text), false, err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_cli_run_leases_ended(cx_txn *txn, cx_str run_id, cx_json *out, bool *out_found,
                                  cx_err *err)
{
    char key[sizeof CX_RUN_LEASE_ENDED_KEY + CX_RUN_ID_BYTES_MAX];
    cx_bytes value = {NULL, 0};
    CX_TRY(cx_txn_get(txn, ended_key(run_id, key), &value, out_found, err));
    return *out_found ? cx_run_json_read(cx_bytes_str(value), 0, cx_txn_arena(txn), out, err)
                      : CX_SUCCESS;
}

/* --- fencing ---------------------------------------------------------------------------------- */

/* The run's lease is gone: every thread of the process that works for it is to end. */
static cx_status fail_lost(cx_cli_run_leases *leases, cx_txn *txn, cx_str run_id, cx_err *err)
{
    cx_json ended;
    bool found;
    set_state(leases, run_id, LEASE_LOST);
    if (leases->cancel != NULL)
        *leases->cancel = true;
    CX_TRY(cx_cli_run_leases_ended(txn, run_id, &ended, &found, err));
    const cx_json *by = found ? CX_JSON_GET(&ended, "by") : NULL;
    if (by == NULL)
        return cx_fail_at(err, CX_E_CONFLICT, CX_RUN_ENDED_TAG, CX_NO_OFFSET,
                          "run %.*s has no lease any more: it records and merges nothing more",
                          (int)run_id.size, run_id.data);
    cx_str host = CX_JSON_GET_STR(by, "host"), at = CX_JSON_GET_STR(&ended, "at");
    cx_str why = CX_JSON_GET_STR(&ended, "reason");
    return cx_fail_at(err, CX_E_CONFLICT, CX_RUN_ENDED_TAG, CX_NO_OFFSET,
                      "run %.*s was ended by %.*s at %.*s (%.*s): it records and merges nothing "
                      "more",
                      (int)run_id.size, run_id.data, (int)(host.size > 40 ? 40 : host.size),
                      host.data == NULL ? "" : host.data, (int)at.size,
                      at.data == NULL ? "" : at.data, (int)why.size,
                      why.data == NULL ? "" : why.data);
}

static cx_status open_lease(cx_cli_run_leases *leases, cx_txn *txn, cx_run_leases *table,
                            held_lease *held, cx_err *err)
{
    char now[28];
    wall_text(leases, now);
    held->token = cx_txn_next_seq(txn);
    held->ttl_sec = CX_RUN_LOCK_TTL_SEC;
    held->renewed_ns = now_of(leases);
    cx_run_lease lease = {.run_id = cx_str_z(held->run_id),
                          .token = held->token,
                          .owner = leases->self,
                          .opened_at = cx_str_z(now),
                          .renewed_at = cx_str_z(now),
                          .ttl_sec = held->ttl_sec};
    CX_TRY(cx_run_leases_add(table, &lease, err));
    CX_TRY(keep_held(leases, held, err));
    cx_json_list payload = begin_payload("open", &lease, cx_txn_arena(txn));
    put_text(&payload, "host", lease.owner.host);
    cx_json_put_uint(&payload, "pid", lease.owner.pid);
    return write_change(leases, txn, &payload, table, err);
}

static cx_status remove_lease(cx_cli_run_leases *leases, cx_txn *txn, cx_run_leases *table,
                              cx_run_lease *lease, cx_err *err)
{
    cx_json_list payload = begin_payload("close", lease, cx_txn_arena(txn));
    cx_run_leases_remove(table, lease);
    return write_change(leases, txn, &payload, table, err);
}

/* Whether the ledger has as many events of the run as the seal says: each was recorded while the
 * run had its lease (S1), its end too, so nothing that counts came after the run was ended. */
static cx_status has_all_events(cx_txn *txn, cx_str run_id, const cx_json *seal, bool *out,
                                cx_err *err)
{
    cx_run_row_key key;
    cx_run_row row;
    uint64_t events;
    cx_bytes value = {NULL, 0};
    const cx_json *count = CX_JSON_GET(seal, "events_count");
    *out = false;
    CX_TRY(cx_txn_get_common(txn, cx_run_row_name(&key, run_id), &value, out, err));
    *out = *out && cx_run_row_decode(value, &row) && count != NULL &&
           cx_json_uint64(count, &events) && events == row.events && events == row.last;
    return CX_SUCCESS;
}

/* A run of which this process is not the owner, as `run cleanup` seals them: what it recovers is a
 * failure, and a bundle that only lacks its seal agrees with the ledger in all else. */
static cx_status admit_late_seal(cx_cli_run_leases *leases, cx_txn *txn, cx_str run_id,
                                 cx_bytes payload, cx_err *err)
{
    cx_run_leases table;
    cx_json ended, seal;
    bool found, whole = true;
    cx_arena *arena = cx_txn_arena(txn);
    CX_TRY(cx_cli_run_leases_ended(txn, run_id, &ended, &found, err));
    if (found) {
        CX_TRY(cx_run_json_read(cx_bytes_str(payload), 0, arena, &seal, err));
        if (!cx_str_is(CX_JSON_GET_STR(&seal, "status"), "FAILURE"))
            CX_TRY(has_all_events(txn, run_id, &seal, &whole, err));
        return whole ? CX_SUCCESS
                     : cx_fail_at(err, CX_E_CONFLICT, CX_RUN_ENDED_TAG, CX_NO_OFFSET,
                                  "run %.*s was ended by another machine before its end was "
                                  "recorded, so it is not sealed as a success",
                                  (int)run_id.size, run_id.data);
    }
    CX_TRY(read_table(txn, arena, &table, err));
    for (size_t i = 0; i < table.count; i++)
        if (cx_str_eq(table.list[i].run_id, run_id))
            return remove_lease(leases, txn, &table, &table.list[i], err);
    return CX_SUCCESS;
}

static cx_status admit_own(cx_cli_run_leases *leases, cx_txn *txn, held_lease *held, bool seal,
                           cx_err *err)
{
    cx_run_leases table;
    cx_str run_id = cx_str_z(held->run_id);
    if (held->state == LEASE_CLOSED)
        return CX_SUCCESS;
    CX_TRY(read_table(txn, cx_txn_arena(txn), &table, err));
    cx_run_lease *lease = cx_run_leases_find(&table, run_id, held->token);
    if (lease == NULL) {
        /* The answer to the first entry may have been lost, and the run ended by another since. */
        cx_json ended;
        bool found = false;
        CX_TRY(cx_cli_run_leases_ended(txn, run_id, &ended, &found, err));
        return held->state == LEASE_NEW && !found ? open_lease(leases, txn, &table, held, err)
                                                  : fail_lost(leases, txn, run_id, err);
    }
    return seal ? remove_lease(leases, txn, &table, lease, err) : CX_SUCCESS;
}

cx_status cx_cli_run_leases_admit(cx_cli_run_leases *leases, cx_txn *txn, const char *kind,
                                  cx_str run_id, cx_bytes payload, cx_err *err)
{
    held_lease held = {.state = LEASE_NEW};
    bool seal = strcmp(kind, "run.seal") == 0;
    if (leases == NULL || run_id.size == 0 || run_id.size > CX_RUN_ID_BYTES_MAX)
        return CX_SUCCESS;
    if (leases->cancel == NULL)
        return seal ? admit_late_seal(leases, txn, run_id, payload, err) : CX_SUCCESS;
    if (!find_held(leases, run_id, &held)) {
        if (strcmp(kind, "run.event") != 0) /* of no run, but of a chain */
            return CX_SUCCESS;
        memcpy(held.run_id, run_id.data, run_id.size);
    }
    return admit_own(leases, txn, &held, seal, err);
}

void cx_cli_run_leases_admitted(cx_cli_run_leases *leases, const char *kind, cx_str run_id)
{
    held_lease held;
    if (leases == NULL || !find_held(leases, run_id, &held))
        return;
    if (strcmp(kind, "run.seal") == 0)
        set_state(leases, run_id, LEASE_CLOSED);
    else if (held.state == LEASE_NEW)
        set_state(leases, run_id, LEASE_HELD);
}

/* --- changes of a run that goes on ------------------------------------------------------------ */

typedef struct change {
    cx_cli_run_leases *leases;
    cx_str run_id;
    cx_arena *arena; /* of what is answered */
    /* acquire */
    const cx_run_lock_request *request;
    cx_run_lock_result *result;
    /* release */
    cx_str task_id;
    /* merge */
    cx_str ref, commit;
} change;

/* The run's own lease in the table, or the error that says who ended it. */
static cx_status find_own(change *c, cx_txn *txn, cx_run_leases *table, cx_run_lease **out,
                          cx_err *err)
{
    held_lease held;
    if (!find_held(c->leases, c->run_id, &held) || held.state == LEASE_CLOSED)
        return cx_fail(err, CX_E_USAGE, "run %.*s does not go on here", (int)c->run_id.size,
                       c->run_id.data);
    CX_TRY(read_table(txn, c->arena, table, err));
    *out = cx_run_leases_find(table, c->run_id, held.token);
    return *out == NULL ? fail_lost(c->leases, txn, c->run_id, err) : CX_SUCCESS;
}

static cx_status stamp(change *c, cx_run_lease *lease, cx_err *err)
{
    char now[28];
    wall_text(c->leases, now);
    lease->renewed_at = cx_arena_copy_str(c->arena, cx_str_z(now));
    return lease->renewed_at.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static void note_renewed(cx_cli_run_leases *leases, cx_str run_id, const uint64_t *ttl_sec)
{
    uint64_t now = now_of(leases);
    cx_lock_enter(&leases->lock);
    held_lease *slot = find_locked(leases, run_id);
    if (slot != NULL) {
        slot->renewed_ns = now;
        slot->ttl_sec = ttl_sec == NULL ? slot->ttl_sec : *ttl_sec;
    }
    cx_lock_leave(&leases->lock);
}

/* By which an approval of another machine is checked. */
static cx_status note_contract(change *c, cx_run_lease *lease, cx_err *err)
{
    char hex[2 * sizeof c->request->contract_sha256->bytes];
    const cx_digest *digest = c->request->contract_sha256;
    if (digest == NULL)
        return CX_SUCCESS;
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    lease->contract_sha256 = cx_arena_copy_str(c->arena, cx_str_from(hex, sizeof hex));
    return lease->contract_sha256.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status acquire_in_txn(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    change *c = arg;
    cx_run_leases table;
    cx_run_lease *lease;
    size_t *stale, stale_count;
    const cx_io *io = c->leases->ledger->cli->io;
    int64_t now = (int64_t)io->wall_ns(io);
    CX_TRY(find_own(c, txn, &table, &lease, err));
    lease->ttl_sec = c->request->ttl_sec;
    CX_TRY(note_contract(c, lease, err));
    CX_TRY(cx_run_leases_acquire(&table, lease, c->request, now, c->result, &stale, &stale_count,
                                 err));
    if (!c->result->ok)
        return CX_SUCCESS;
    *write = true;
    cx_json_list payload = begin_payload("acquire", lease, c->arena);
    put_text(&payload, "task_id", c->request->task_id);
    cx_json_list paths = cx_json_list_begin(c->arena);
    for (size_t i = 0; i < c->result->taken_count; i++)
        cx_json_list_add(&paths, cx_json_make_str(c->result->taken[i]));
    cx_json_put_array(&payload, "paths", &paths);
    for (size_t i = stale_count; i-- > 0;) {
        cx_run_lease *other = &table.list[stale[i]];
        const char *why = cx_run_lock_reason_name(cx_run_lease_classify(other, now));
        CX_TRY(write_ended(c->leases, txn, other, why, c->run_id, err));
        cx_run_leases_remove(&table, other);
    }
    return write_change(c->leases, txn, &payload, &table, err);
}

static cx_status transact(change *c, cx_status (*work)(void *, cx_txn *, bool *, cx_err *),
                          cx_err *err)
{
    const cx_cli_run_work job = {work, c};
    return cx_cli_run_ledger_transact(c->leases->ledger, &job, err);
}

static cx_status acquire_shared(void *ctx, const cx_run_lock_request *request, cx_arena *arena,
                                cx_run_lock_result *out, cx_err *err)
{
    cx_run_lock_result result = {0};
    change c = {.leases = ctx,
                .run_id = request->run_id,
                .arena = arena,
                .request = request,
                .result = &result};
    CX_TRY(transact(&c, acquire_in_txn, err));
    note_renewed(ctx, request->run_id, &request->ttl_sec);
    *out = result;
    return CX_SUCCESS;
}

static cx_status release_in_txn(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    change *c = arg;
    cx_run_leases table;
    cx_run_lease *lease;
    CX_TRY(find_own(c, txn, &table, &lease, err));
    *write = cx_run_lease_release(lease, c->task_id);
    if (!*write)
        return CX_SUCCESS;
    CX_TRY(stamp(c, lease, err));
    cx_json_list payload = begin_payload("release", lease, c->arena);
    put_text(&payload, "task_id", c->task_id);
    return write_change(c->leases, txn, &payload, &table, err);
}

static cx_status renew_in_txn(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    change *c = arg;
    cx_run_leases table;
    cx_run_lease *lease;
    CX_TRY(find_own(c, txn, &table, &lease, err));
    CX_TRY(stamp(c, lease, err));
    *write = true;
    cx_json_list payload = begin_payload("renew", lease, c->arena);
    return write_change(c->leases, txn, &payload, &table, err);
}

static cx_status merge_in_txn(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    change *c = arg;
    cx_run_leases table;
    cx_run_lease *lease;
    CX_TRY(find_own(c, txn, &table, &lease, err));
    CX_TRY(stamp(c, lease, err));
    lease->merge_ref = c->ref;
    lease->merge_commit = c->commit;
    *write = true;
    cx_json_list payload = begin_payload("merge", lease, c->arena);
    put_text(&payload, "ref", c->ref);
    put_text(&payload, "commit", c->commit);
    return write_change(c->leases, txn, &payload, &table, err);
}

/* Removes what is left of a run that was not sealed. */
static cx_status close_in_txn(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    change *c = arg;
    cx_run_leases table;
    cx_run_lease *lease;
    CX_TRY(find_own(c, txn, &table, &lease, err));
    *write = true;
    return remove_lease(c->leases, txn, &table, lease, err);
}

static cx_status do_change(cx_cli_run_leases *leases, change *c,
                           cx_status (*work)(void *, cx_txn *, bool *, cx_err *), cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    c->leases = leases;
    c->arena = &arena;
    cx_status status = transact(c, work, err);
    cx_arena_done(&arena);
    if (!cx_failed(status))
        note_renewed(leases, c->run_id, NULL);
    return status;
}

static cx_status release_shared(void *ctx, cx_str run_id, cx_str task_id, cx_err *err)
{
    change c = {.run_id = run_id, .task_id = task_id};
    return do_change(ctx, &c, release_in_txn, err);
}

static cx_status merge_shared(void *ctx, cx_str run_id, cx_str ref, cx_str commit, cx_err *err)
{
    change c = {.run_id = run_id, .ref = ref, .commit = commit};
    return do_change(ctx, &c, merge_in_txn, err);
}

/* --- renewing --------------------------------------------------------------------------------- */

/* A run whose lease is due; none without a lease that ends. */
static bool find_due(cx_cli_run_leases *leases, held_lease *out)
{
    uint64_t now = now_of(leases);
    bool found = false;
    for (size_t i = 0; i < leases->held.count && !found; i++) {
        const held_lease *held = &leases->held.items[i];
        found = held->state == LEASE_HELD && held->ttl_sec != 0 &&
                now - held->renewed_ns >= held->ttl_sec * NS_PER_SEC / 3;
        if (found)
            *out = *held;
    }
    return found;
}

/* A node that cannot be reached is tried again: whether the run may still record anything is found
 * out when it does (S1). */
static void renew_until_stopped(void *arg)
{
    cx_cli_run_leases *leases = arg;
    cx_lock_enter(&leases->lock);
    while (!leases->stopping) {
        held_lease due;
        cx_lock_wait_for(&leases->lock, RENEW_LOOK_MS);
        if (leases->stopping || !find_due(leases, &due))
            continue;
        cx_lock_leave(&leases->lock);
        change c = {.run_id = cx_str_z(due.run_id)};
        cx_err err = {0};
        (void)do_change(leases, &c, renew_in_txn, &err).code;
        cx_lock_enter(&leases->lock);
    }
    cx_lock_leave(&leases->lock);
}

/* --- opening and closing ---------------------------------------------------------------------- */

cx_status cx_cli_run_leases_open(cx_cli_run_ledger *ledger, atomic_bool *cancel, cx_err *err)
{
    CX_ASSERT(ledger->leases == NULL);
    cx_cli_run_leases *leases = CX_ARENA_NEW(&ledger->cli->arena, cx_cli_run_leases);
    if (leases == NULL)
        return cx_fail_nomem(err);
    memset(leases, 0, sizeof *leases);
    leases->ledger = ledger;
    leases->cancel = cancel;
    leases->shared = (cx_run_shared_locks){leases, acquire_shared, release_shared, merge_shared};
    cx_arena_init(&leases->arena, cx_alloc_default(), 0);
    cx_lock_init(&leases->lock);
    cx_status status = cx_run_owner_self(&leases->arena, &leases->self, err);
    if (!cx_failed(status) && cancel != NULL) {
        leases->started = cx_thread_start(&leases->thread, renew_until_stopped, leases);
        if (!leases->started)
            status = cx_fail(err, CX_E_LIMIT, "no thread could be started to renew leases");
    }
    ledger->leases = leases; /* the ledger closes it, whole or not */
    return status;
}

const cx_run_shared_locks *cx_cli_run_leases_locks(const cx_cli_run_leases *leases)
{
    return leases == NULL ? NULL : &leases->shared;
}

void cx_cli_run_leases_close(cx_cli_run_leases *leases)
{
    if (leases == NULL)
        return;
    if (leases->started) {
        cx_lock_enter(&leases->lock);
        leases->stopping = true;
        cx_lock_wake(&leases->lock);
        cx_lock_leave(&leases->lock);
        cx_thread_join(&leases->thread);
    }
    for (size_t i = 0; i < leases->held.count; i++) {
        change c = {.run_id = cx_str_z(leases->held.items[i].run_id)};
        const held_lease *held = &leases->held.items[i];
        const lease_state before = held->state;
        cx_err err = {0};
        if ((before == LEASE_HELD || before == LEASE_NEW) &&
            cx_failed(do_change(leases, &c, close_in_txn, &err)) && before == LEASE_HELD &&
            held->state != LEASE_LOST)
            cx_cli_complain("run: note: the locks of %s stay until their lease ends (%s)",
                            held->run_id, err.message);
    }
    cx_vec_done(&leases->held, cx_alloc_default());
    cx_lock_done(&leases->lock);
    cx_arena_done(&leases->arena);
}

/* --- of other processes ----------------------------------------------------------------------- */

cx_status cx_cli_run_leases_list(cx_home *home, cx_str actor, cx_arena *arena, cx_run_leases *out,
                                 cx_err *err)
{
    cx_bytes value = {NULL, 0};
    bool found = false;
    cx_status status = cx_home_get(home, actor, cx_str_bytes(CX_STR(CX_RUN_LEASES_KEY)), arena,
                                   &value, &found, err);
    if (cx_failed(status) && status.code != CX_E_NOT_FOUND)
        return status;
    bool there = !cx_failed(status) && found;
    return cx_run_leases_read(there ? value : (cx_bytes){NULL, 0}, arena, out, err);
}

bool cx_cli_run_in_part(const cx_cli *cli, const cx_cli_args *args)
{
    const char *given = cx_cli_value(args, "home");
    if (given == NULL)
        given = getenv("CORTEX_HOME");
    if (given == NULL || given[0] == 0)
        given = cli->configured_home;
    return given != NULL && cx_cli_is_database(given);
}

cx_status cx_cli_run_leases_peek(cx_cli *cli, const cx_cli_args *args, const cx_git *git,
                                 cx_run_leases *out, cx_err *err)
{
    cx_home *home;
    cx_oid root;
    cx_str actor;
    const char *path;
    char text[CX_OID_TEXT_SIZE];
    CX_TRY(cx_run_leases_read((cx_bytes){NULL, 0}, &cli->arena, out, err));
    if (!cx_cli_run_in_part(cli, args))
        return CX_SUCCESS;
    CX_TRY(cx_git_root_commit(git, &root, err));
    cx_oid_text(&root, text);
    CX_TRY(cx_cli_run_actor(text, &cli->arena, &actor, err));
    CX_TRY(cx_cli_home_path(cli, args, &path, err));
    cx_home_options options = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    CX_TRY(cx_home_open(path, &options, &home, err));
    cx_status status = cx_cli_run_leases_list(home, actor, &cli->arena, out, err);
    if (cx_failed(status))
        (void)cx_home_close(home, NULL).code;
    else
        status = cx_home_close(home, err);
    return status;
}

typedef struct ending {
    cx_cli_run_leases *leases;
    cx_str run_id;
    bool force;
    const char *why; /* NULL: it was not ended */
} ending;

/* What was seen before the transaction may have changed: the run is judged again. */
static cx_status end_in_txn(void *arg, cx_txn *txn, bool *write, cx_err *err)
{
    ending *e = arg;
    cx_run_leases table;
    const cx_io *io = e->leases->ledger->cli->io;
    cx_run_lease *lease = NULL;
    CX_TRY(read_table(txn, cx_txn_arena(txn), &table, err));
    for (size_t i = 0; i < table.count; i++)
        if (cx_str_eq(table.list[i].run_id, e->run_id))
            lease = &table.list[i];
    if (lease == NULL)
        return CX_SUCCESS;
    cx_run_lock_reason state = cx_run_lease_classify(lease, (int64_t)io->wall_ns(io));
    if (!e->force && !cx_run_lock_stale(state))
        return CX_SUCCESS;
    e->why = cx_run_lock_stale(state) ? cx_run_lock_reason_name(state) : "approved";
    CX_TRY(write_ended(e->leases, txn, lease, e->why, CX_STR(""), err));
    cx_run_leases_remove(&table, lease);
    *write = true;
    return put_table(txn, &table, err);
}

cx_status cx_cli_run_leases_end(cx_cli_run_ledger *ledger, cx_str run_id, bool force,
                                const char **out_why, cx_err *err)
{
    CX_ASSERT(ledger->leases != NULL);
    ending e = {.leases = ledger->leases, .run_id = run_id, .force = force};
    const cx_cli_run_work job = {end_in_txn, &e};
    CX_TRY(cx_cli_run_ledger_transact(ledger, &job, err));
    *out_why = e.why;
    return CX_SUCCESS;
}
