/*
 * run_ledger.c - entries of a run, each durable before the run continues. An entry is never
 * written twice: when an answer of the owner is lost, the journal shows whether the entry with
 * the expected number has our bytes.
 */
#include "cli/run/run_ledger.h"

#include "base/api.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_lease.h"
#include "cli/run/run_store.h"
#include "stores/api.h"

/* An owner that ends releases the data directory quickly. */
#define WAIT_MS 30000
#define POLL_MS 20

cx_status cx_cli_run_actor(const char *root_commit, cx_arena *arena, cx_str *out, cx_err *err)
{
    *out = cx_arena_printf(arena, "run:%.16s", root_commit);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- opening ---------------------------------------------------------------------------------- */

static cx_status open_home(cx_cli_run_ledger *l, cx_err *err)
{
    const cx_io *io = l->cli->io;
    cx_home_options options = cx_cli_home_options(l->cli, CX_CLI_WRITE, NULL);
    uint64_t end = io->monotonic_ns(io) + WAIT_MS * UINT64_C(1000000);
    cx_status status;
    while ((status = cx_home_open(l->path, &options, &l->home, err)).code == CX_E_BUSY &&
           io->monotonic_ns(io) < end)
        cx_thread_sleep_ms(POLL_MS);
    if (cx_failed(status))
        return status;
    if (cx_home_is_remote(l->home))
        return CX_SUCCESS;
    const cx_remote_options serving = {.no_socket = l->cli->part != NULL};
    return cx_home_serve_begin(l->home, &serving, &l->remote, err);
}

static void close_home(cx_cli_run_ledger *l, const char *complaint)
{
    cx_err err;
    cx_home_serve_end(l->remote);
    l->remote = NULL;
    if (l->home != NULL && cx_failed(cx_home_close(l->home, &err)) && complaint != NULL)
        cx_cli_complain("%s (%s); the log is complete", complaint, err.message);
    l->home = NULL;
}

/* --- appending -------------------------------------------------------------------------------- */

/* An entry to append; `subject` may be NULL. */
typedef struct new_entry {
    const char *kind;
    cx_str run_id; /* empty: of no run that has a lease */
    const cx_id *subject;
    cx_bytes payload;
} new_entry;

static cx_status write_entry(cx_cli_run_ledger *l, const new_entry *entry, uint64_t *out_seq,
                             bool *out_asked, cx_err *err)
{
    const cx_io *io = l->cli->io;
    cx_txn *txn;
    cx_entry_draft draft = {
        .kind = cx_str_z(entry->kind),
        .created_at_ns = (int64_t)io->wall_ns(io),
        .created_by = cx_str_bytes(CX_STR("cortex")),
        .payload = entry->payload,
        .subject = entry->subject,
        .committed = l->committed,
    };
    *out_asked = false;
    CX_TRY(cx_txn_begin(l->home, l->actor, &txn, err));
    cx_status status =
        cx_cli_run_leases_admit(l->leases, txn, entry->kind, entry->run_id, entry->payload, err);
    if (!cx_failed(status))
        status = cx_txn_entry(txn, &draft, out_seq, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    *out_asked = true;
    return cx_txn_commit(txn, err);
}

/* Whether the entry with that number exists and is ours. */
static cx_status is_there(cx_cli_run_ledger *l, uint64_t seq, const new_entry *entry, bool *out,
                          cx_err *err)
{
    cx_arena arena;
    cx_entry_view view;
    cx_arena_init(&arena, l->cli->alloc, 0);
    cx_status status = cx_home_entry(l->home, l->actor, seq, &arena, &view, err);
    *out = !cx_failed(status) && cx_str_is(view.entry.kind, entry->kind) &&
           cx_str_eq(cx_bytes_str(view.payload), cx_bytes_str(entry->payload));
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS;
    cx_arena_done(&arena);
    return status;
}

static bool tag_is(const cx_err *err, const char *tag)
{
    return err->tag != NULL && strcmp(err->tag, tag) == 0;
}

static bool owner_ended(const cx_err *err)
{
    return tag_is(err, "HolderGone") || tag_is(err, "HolderEnds") || tag_is(err, "TurnTimedOut") ||
           tag_is(err, "AnswerLost");
}

/* One try; `*unknown`: an earlier one may have written the entry, as number `*seq`. */
static cx_status try_append(cx_cli_run_ledger *l, const new_entry *entry, uint64_t *seq,
                            bool *unknown, cx_err *err)
{
    bool there = false, asked = false;
    if (l->home == NULL) /* an earlier try could not get it back */
        CX_TRY(open_home(l, err));
    if (*unknown)
        CX_TRY(is_there(l, *seq, entry, &there, err));
    *unknown = false;
    if (there)
        return CX_SUCCESS;
    cx_status status = write_entry(l, entry, seq, &asked, err);
    *unknown = cx_failed(status) && asked && tag_is(err, "AnswerLost");
    return status;
}

/* Many short-lived owners may follow one another, so time counts and not the number of tries. */
static cx_status append_alone(cx_cli_run_ledger *l, const new_entry *entry, uint64_t *out_index,
                              cx_err *err)
{
    const cx_io *io = l->cli->io;
    uint64_t seq = 0, end = io->monotonic_ns(io) + WAIT_MS * UINT64_C(1000000);
    bool unknown = false;
    cx_status status;
    while (cx_failed(status = try_append(l, entry, &seq, &unknown, err)) && owner_ended(err) &&
           io->monotonic_ns(io) < end)
        close_home(l, NULL);
    CX_TRY(status);
    cx_cli_run_leases_admitted(l->leases, entry->kind, entry->run_id);
    if (out_index != NULL)
        *out_index = seq;
    return CX_SUCCESS;
}

static cx_status try_transact(cx_cli_run_ledger *l, const cx_cli_run_work *work, cx_err *err)
{
    cx_txn *txn;
    bool write = false;
    if (l->home == NULL)
        CX_TRY(open_home(l, err));
    CX_TRY(cx_txn_begin(l->home, l->actor, &txn, err));
    cx_status status = work->work(work->arg, txn, &write, err);
    if (!cx_failed(status) && write)
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}

cx_status cx_cli_run_ledger_transact(cx_cli_run_ledger *l, const cx_cli_run_work *work, cx_err *err)
{
    const cx_io *io = l->cli->io;
    uint64_t end = io->monotonic_ns(io) + WAIT_MS * UINT64_C(1000000);
    cx_status status;
    cx_lock_enter(&l->lock);
    while (cx_failed(status = try_transact(l, work, err)) && owner_ended(err) &&
           io->monotonic_ns(io) < end)
        close_home(l, NULL);
    cx_lock_leave(&l->lock);
    return status;
}

cx_status cx_cli_run_ledger_look(cx_cli_run_ledger *l, const cx_cli_run_look *look, cx_err *err)
{
    cx_lock_enter(&l->lock);
    cx_status status = l->home == NULL ? open_home(l, err) : CX_SUCCESS;
    if (!cx_failed(status))
        status = look->look(look->arg, l->home, err);
    cx_lock_leave(&l->lock);
    return status;
}

static cx_status append_event(void *ctx, const char *kind, cx_str run_id, cx_bytes payload,
                              uint64_t *out_index, cx_err *err)
{
    cx_cli_run_ledger *l = ctx;
    new_entry entry = {kind, run_id, NULL, payload};
    cx_lock_enter(&l->lock);
    cx_status status = append_alone(l, &entry, out_index, err);
    cx_lock_leave(&l->lock);
    return status;
}

/* Whether the entry `seq` is the first about its subject. */
static cx_status is_first(cx_cli_run_ledger *l, const cx_id *subject, uint64_t seq, bool *out,
                          cx_err *err)
{
    cx_arena arena;
    const uint64_t *seqs;
    size_t count = 0;
    cx_arena_init(&arena, l->cli->alloc, 0);
    cx_status status =
        cx_home_entries_about(l->home, l->actor, subject, &arena, &seqs, &count, err);
    if (!cx_failed(status) && count == 0)
        status = cx_fail(err, CX_E_IO, "the entry just written is not in the ledger");
    *out = !cx_failed(status) && seqs[0] == seq;
    cx_arena_done(&arena);
    return status;
}

static cx_status append_once(void *ctx, const char *kind, const cx_digest *about, cx_bytes payload,
                             bool *out_first, cx_err *err)
{
    cx_cli_run_ledger *l = ctx;
    cx_id subject;
    uint64_t seq;
    new_entry entry = {kind, CX_STR(""), &subject, payload};
    memcpy(subject.bytes, about->bytes, sizeof subject.bytes);
    *out_first = false;
    cx_lock_enter(&l->lock);
    cx_status status = append_alone(l, &entry, &seq, err);
    if (!cx_failed(status))
        status = is_first(l, &subject, seq, out_first, err);
    cx_lock_leave(&l->lock);
    return status;
}

cx_status cx_cli_run_record_actions(cx_cli *cli, cx_home *home, cx_str actor, cx_str run_id,
                                    const char *folder, uint64_t *out_seq, cx_err *err)
{
    cx_run_bundle *bundle = NULL;
    cx_actor_info info;
    cx_actions actions;
    char subject[128];
    int size = snprintf(subject, sizeof subject, "run/%.*s", (int)run_id.size, run_id.data);
    CX_ASSERT(size > 0 && (size_t)size < sizeof subject);
    cx_actions_init(&actions, cli->alloc, cx_io_seed(cli->io));
    cx_status status = cx_home_actor(home, actor, &info, err);
    uint64_t upto = cx_failed(status) ? 0 : info.entry_count;
    if (!cx_failed(status))
        status = cx_run_bundle_open(cli->io, cli->alloc, folder, &bundle, err);
    if (!cx_failed(status))
        status = cx_actions_of_run(&actions, bundle, err);
    if (!cx_failed(status))
        status = cx_actions_record(&actions, home, actor, cx_str_from(subject, (size_t)size), upto,
                                   out_seq, err);
    cx_run_bundle_close(bundle);
    cx_actions_done(&actions);
    return status;
}

/* A set that cannot be recorded now can be recorded later: the bundle is sealed already. */
static void record_actions(cx_cli_run_ledger *l, cx_str run_id, const char *folder)
{
    cx_err err = {0};
    uint64_t seq;
    cx_lock_enter(&l->lock);
    cx_status status = l->home == NULL ? open_home(l, &err) : CX_SUCCESS;
    if (!cx_failed(status))
        status = cx_cli_run_record_actions(l->cli, l->home, l->actor, run_id, folder, &seq, &err);
    cx_lock_leave(&l->lock);
    if (cx_failed(status))
        cx_cli_complain("run: note: what the run did could not be recorded as a set (%s); 'cortex "
                        "prove --never NAME --in run:%.*s --fresh' records it",
                        err.message, (int)run_id.size, run_id.data);
}

/* Other machines reach it from now on; what fails can be done later. */
static void store_bundle(cx_cli_run_ledger *l, cx_str run_id, const char *folder)
{
    cx_err err = {0};
    cx_cli_run_storing done;
    if (cx_failed(cx_cli_run_store_bundle(l, run_id, folder, &done, &err)))
        cx_cli_complain("run: note: the bundle is on this machine only (%s); 'cortex run store "
                        "%.*s' stores it for the others",
                        err.message, (int)run_id.size, run_id.data);
}

static void after_seal(void *ctx, cx_str run_id, const char *folder)
{
    cx_cli_run_ledger *l = ctx;
    record_actions(l, run_id, folder);
    if (l->cli->part != NULL)
        store_bundle(l, run_id, folder);
}

cx_status cx_cli_run_ledger_open(cx_cli_run_ledger *l, cx_cli *cli, const cx_cli_args *args,
                                 cx_str actor, cx_err *err)
{
    memset(l, 0, sizeof *l);
    l->cli = cli;
    l->actor = actor;
    l->ledger = (cx_run_ledger){l, append_event, append_once, after_seal};
    cx_lock_init(&l->lock);
    l->has_lock = true;
    CX_TRY(cx_cli_home_path(cli, args, &l->path, err));
    return open_home(l, err);
}

void cx_cli_run_ledger_close(cx_cli_run_ledger *l)
{
    cx_cli_run_leases_close(l->leases);
    l->leases = NULL;
    close_home(l, "run: note: the tables could not be brought up to date");
    if (l->has_lock)
        cx_lock_done(&l->lock);
    l->has_lock = false;
}
