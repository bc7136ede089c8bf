/*
 * cmd_locks.c - `cortex locks list|release`: which run may change which paths (run.md §11).
 */
#include "cli/ledger/ledger.h"
#include "cli/run/run_fail.h"
#include "cli/run/run_lease.h"
#include "cli/run/run_ledger.h"
#include "cli/run/run_place.h"
#include "crypto/api.h"
#include "approval/api.h"
#include "bundle/api.h"
#include "git/api.h"

typedef struct locking {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_cli_place place;
    cx_run_store store;
    cx_buf out;
    bool json;
} locking;

static int run_locks_job(cx_cli *cli, const cx_cli_args *args,
                         cx_status (*job)(locking *, cx_err *))
{
    locking l = {.cli = cli, .args = args, .json = cx_cli_has(args, "json")};
    cx_err err = {0};
    cx_buf_init(&l.out, cli->alloc);
    cx_status status = cx_cli_place_open(cli, args, &l.place, &err);
    if (!cx_failed(status))
        status = cx_run_store_open(&l.store, l.place.root, false, cli->io, cli->alloc, &err);
    if (!cx_failed(status))
        status = job(&l, &err);
    int code;
    if (status.code == CX_E_DENIED) { /* a gate refused, it is no failure */
        code = CX_RUN_EXIT_REJECTED;
        cx_cli_complain("%s: %s", args->command->name, err.message);
        if (l.json)
            cx_cli_write_error_json(cli, &err);
    } else {
        code = cx_failed(status) ? cx_cli_run_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &l.out, CX_EXIT_HOLDS);
    }
    cx_cli_place_close(&l.place);
    cx_buf_done(&l.out);
    return code;
}

static cx_status write_lock_json(locking *l, cx_json_list *object, const cx_run_lock *lock,
                                 cx_run_lock_reason reason)
{
    (void)l;
    cx_json_put_str(object, "path", lock->path);
    cx_json_put_maybe(object, "run_id", lock->run_id);
    cx_json_put_maybe(object, "task_id", lock->task_id);
    cx_json_put_maybe(object, "host", lock->owner.host);
    cx_json_put_uint(object, "pid", lock->owner.pid);
    cx_json_put_maybe(object, "acquired_at", lock->acquired_at);
    cx_json_put_maybe(object, "renewed_at", lock->renewed_at);
    cx_json_put_uint(object, "ttl_sec", lock->ttl_sec);
    cx_json_put_bool(object, "stale", cx_run_lock_stale(reason));
    cx_json_put_str(object, "reason", cx_str_z(cx_run_lock_reason_name(reason)));
    return CX_SUCCESS;
}

/* --- list ------------------------------------------------------------------------------------- */

static const cx_cli_option list_options[] = {CX_CLI_OPTION_REPO, CX_CLI_OPTION_HOME,
                                             CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

/* `token`: of a lock that other machines see; NULL = a file here. */
static cx_status list_lock(locking *l, cx_json_list *items, const cx_run_lock *lock,
                           cx_run_lock_reason reason, const uint64_t *token)
{
    cx_json_list object = cx_json_list_begin(&l->cli->arena);
    CX_TRY(write_lock_json(l, &object, lock, reason));
    if (token != NULL)
        cx_json_put_uint(&object, "token", *token);
    cx_json_add_object(items, &object);
    if (l->json)
        return CX_SUCCESS;
    cx_shown_add(&l->out, lock->path);
    cx_buf_add_z(&l->out, "  ");
    cx_shown_add(&l->out, lock->run_id.size == 0 ? CX_STR("(unreadable)") : lock->run_id);
    if (token != NULL) {
        cx_buf_add_z(&l->out, "  fleet, host ");
        cx_shown_add(&l->out, lock->owner.host);
    }
    cx_buf_printf(&l->out, "  pid %llu  %s%s\n", (unsigned long long)lock->owner.pid,
                  cx_run_lock_stale(reason) ? "stale: " : "",
                  reason == CX_RUN_LOCK_VALID ? "held" : cx_run_lock_reason_name(reason));
    return CX_SUCCESS;
}

/* Locks in the part, of runs of all machines. */
static cx_status list_shared_locks(locking *l, cx_json_list *items, size_t *count, cx_err *err)
{
    cx_run_leases table;
    const cx_io *io = l->cli->io;
    CX_TRY(cx_cli_run_leases_peek(l->cli, l->args, l->place.git, &table, err));
    for (size_t r = 0; r < table.count; r++) {
        const cx_run_lease *lease = &table.list[r];
        cx_run_lock_reason reason = cx_run_lease_classify(lease, (int64_t)io->wall_ns(io));
        for (size_t i = 0; i < lease->lock_count; i++, (*count)++) {
            cx_run_lock lock;
            CX_TRY(cx_run_lease_lock_view(lease, i, &l->cli->arena, &lock, err));
            CX_TRY(list_lock(l, items, &lock, reason, &lease->token));
        }
    }
    return CX_SUCCESS;
}

static cx_status list_locks(locking *l, cx_err *err)
{
    cx_run_lock *locks;
    cx_run_lock_reason *reasons;
    size_t count;
    cx_json_list items = cx_json_list_begin(&l->cli->arena);
    CX_TRY(cx_run_lock_list(&l->store, &l->cli->arena, &locks, &reasons, &count, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(list_lock(l, &items, &locks[i], reasons[i], NULL));
    CX_TRY(list_shared_locks(l, &items, &count, err));
    if (!l->json) {
        if (count == 0)
            cx_buf_add_z(&l->out, "No locks.\n");
        return cx_buf_check(&l->out, err);
    }
    cx_json_list object = cx_json_list_begin(&l->cli->arena);
    cx_json_put_array(&object, "items", &items);
    return cx_cli_end_json(&object, &l->out, err);
}

static int run_locks_list(cx_cli *cli, const cx_cli_args *args)
{
    return run_locks_job(cli, args, list_locks);
}

const cx_cli_command cx_cli_locks_list = {
    .name = "locks list",
    .purpose = "list locked paths and the runs that own the locks",
    .about = "Shows each lock with its owner. A lock is stale when its run has ended, its process "
             "is dead, or its lease on another host has expired; a lock of a live process is never "
             "stale, at most overdue. When CORTEX_HOME or --home is a part of a fleet, the locks "
             "that runs of all machines have there are listed, too, with host and token; these are "
             "stale when their lease has expired.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = "0 listed\n2 usage error\n3 could not be read",
    .example = "cortex locks list --json",
    .run = run_locks_list,
};

/* --- release ---------------------------------------------------------------------------------- */

static const cx_cli_operand release_operands[] = {{"PATH", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option release_options[] = {
    CX_CLI_OPT_FLAG("stale", 0, "Release every stale lock."),
    CX_CLI_OPT_MANY("approval", 0, CX_CLI_FILE, "FILE",
                    "A signed approval with the scope unlock:PATH, for the contract of the run "
                    "that owns the lock."),
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON,
};

/* The digest of the contract of the run that owns the lock. */
static cx_status contract_of(locking *l, cx_str run_id, cx_digest *out, cx_err *err)
{
    cx_run_bundle *bundle;
    cx_str path = cx_run_store_path(&l->store, &l->cli->arena, "runs", run_id);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_bundle_open(l->cli->io, l->cli->alloc, path.data, &bundle, err));
    cx_status status = cx_run_bundle_digest(bundle, CX_STR("contract.json"), out, err);
    cx_run_bundle_close(bundle);
    return status;
}

/* An approval on its way to the journal of the run whose lock is released. */
typedef struct noting {
    cx_cli_run_ledger ledger;
    cx_str run_id;
} noting;

static cx_status record_nonce(void *arg, const cx_run_approval *approval, bool *out_first,
                              cx_err *err)
{
    noting *n = arg;
    const cx_run_ledger *ledger = n->ledger.home == NULL ? NULL : &n->ledger.ledger;
    return cx_run_approval_record(ledger, n->run_id, approval, out_first, err);
}

/* The journal of the repository's runs.  Without a data directory no run has recorded anything. */
static cx_status open_ledger(locking *l, noting *n, cx_err *err)
{
    cx_git_options how = CX_GIT_OPTIONS_INIT;
    cx_git *git;
    cx_oid root;
    cx_str actor;
    char text[CX_OID_TEXT_SIZE];
    CX_TRY(cx_git_open(".", &how, l->cli->alloc, &git, err));
    cx_status status = cx_git_root_commit(git, &root, err);
    cx_git_close(git);
    CX_TRY(status);
    cx_oid_text(&root, text);
    CX_TRY(cx_cli_run_actor(text, &l->cli->arena, &actor, err));
    status = cx_cli_run_ledger_open(&n->ledger, l->cli, l->args, actor, err);
    if (!cx_failed(status) && l->cli->part != NULL)
        return cx_cli_run_leases_open(&n->ledger, NULL, err);
    if (status.code == CX_E_NOT_FOUND && !cx_cli_has(l->args, "home")) {
        cx_cli_run_ledger_close(&n->ledger);
        memset(&n->ledger, 0, sizeof n->ledger);
        return CX_SUCCESS;
    }
    return status;
}

static cx_status use_approval(locking *l, const cx_run_lock *lock, const cx_digest *contract,
                              noting *n, cx_err *err);

/* §13: a signed approval for exactly this path, used up by this.  `contract` is that of the run. */
static cx_status consume_approval(locking *l, const cx_run_lock *lock, const cx_digest *contract,
                                  cx_err *err)
{
    noting n = {.run_id = lock->run_id};
    cx_status status = open_ledger(l, &n, err);
    if (!cx_failed(status))
        status = use_approval(l, lock, contract, &n, err);
    /* The run that had the lock has no lease any more: it records and merges nothing more. */
    const char *why;
    if (!cx_failed(status) && n.ledger.leases != NULL)
        status = cx_cli_run_leases_end(&n.ledger, lock->run_id, true, &why, err);
    cx_cli_run_ledger_close(&n.ledger);
    return status;
}

static cx_status use_approval(locking *l, const cx_run_lock *lock, const cx_digest *contract,
                              noting *n, cx_err *err)
{
    cx_run_findings findings;
    cx_run_policy policy;
    cx_str commit;
    const cx_cli_given *given = NULL;
    const cx_run_approval *used = NULL;
    cx_run_approvals set;
    cx_run_approval_context context = {.io = l->cli->io,
                                       .runtime_root = l->store.root,
                                       .policy = &policy,
                                       .run_id = lock->run_id,
                                       .record = record_nonce,
                                       .record_arg = n};
    cx_str scope =
        cx_arena_printf(&l->cli->arena, "unlock:%.*s", (int)lock->path.size, lock->path.data);
    if (scope.data == NULL)
        return cx_fail_nomem(err);
    context.contract_sha256 = *contract;
    context.resolved_sha256 = context.contract_sha256;
    cx_run_findings_init(&findings, &l->cli->arena);
    cx_status status =
        l->place.repo.resolve(l->place.repo.arg, CX_STR("HEAD"), &l->cli->arena, &commit, err);
    if (!cx_failed(status))
        status =
            cx_run_policy_load(&l->place.repo, commit, &l->cli->arena, &findings, &policy, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = cx_fail(err, CX_E_DENIED, "the policies of the repository cannot be read");
    cx_run_findings_done(&findings);
    CX_TRY(status);
    cx_run_approvals_init(&set, &context, &l->cli->arena);
    status = cx_run_approvals_add_folder(&set, err);
    while (!cx_failed(status) && (given = cx_cli_next(l->args, "approval", given)) != NULL)
        status = cx_run_approvals_add_file(&set, given->values[0], err);
    if (!cx_failed(status))
        status = cx_run_approvals_use(&set, scope, &used, err);
    if (!cx_failed(status) && used == NULL)
        status = cx_fail(err, CX_E_DENIED,
                         "%.*s is locked by run %.*s; to release it, sign an approval with the "
                         "scope '%s' ('cortex approve')",
                         (int)lock->path.size, lock->path.data, (int)lock->run_id.size,
                         lock->run_id.data, scope.data);
    cx_run_approvals_done(&set);
    return status;
}

static cx_status answer_released_locks(locking *l, const cx_run_lock *locks,
                                       const cx_run_lock_reason *reasons, size_t count, cx_err *err)
{
    cx_json_list items = cx_json_list_begin(&l->cli->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list object = cx_json_list_begin(&l->cli->arena);
        CX_TRY(write_lock_json(l, &object, &locks[i], reasons[i]));
        cx_json_add_object(&items, &object);
        if (!l->json) {
            cx_buf_add_z(&l->out, "Released ");
            cx_shown_add(&l->out, locks[i].path);
            cx_buf_add_byte(&l->out, '\n');
        }
    }
    if (!l->json) {
        if (count == 0)
            cx_buf_add_z(&l->out, "No stale locks.\n");
        return cx_buf_check(&l->out, err);
    }
    cx_json_list object = cx_json_list_begin(&l->cli->arena);
    cx_json_put_array(&object, "released", &items);
    return cx_cli_end_json(&object, &l->out, err);
}

/* Ends the lease of a run, when that may be done now. */
static cx_status end_stale(locking *l, cx_str run_id, bool *out_ended, cx_err *err)
{
    noting n = {.run_id = run_id};
    const char *why = NULL;
    cx_status status = open_ledger(l, &n, err);
    if (!cx_failed(status))
        status = cx_cli_run_leases_end(&n.ledger, run_id, false, &why, err);
    cx_cli_run_ledger_close(&n.ledger);
    *out_ended = why != NULL;
    return status;
}

/* A lock that only the part knows is of a run of another machine: released with its lease, by the
 * same rules as one of here. */
static cx_status release_shared(locking *l, const cx_run_lease *lease, size_t index, cx_err *err)
{
    cx_run_lock lock;
    cx_digest contract;
    const cx_io *io = l->cli->io;
    cx_run_lock_reason why = cx_run_lease_classify(lease, (int64_t)io->wall_ns(io));
    bool ended = false;
    CX_TRY(cx_run_lease_lock_view(lease, index, &l->cli->arena, &lock, err));
    if (cx_run_lock_stale(why))
        CX_TRY(end_stale(l, lease->run_id, &ended, err));
    if (!ended) {
        if (!cx_digest_parse(lease->contract_sha256, &contract))
            return cx_fail(err, CX_E_DENIED,
                           "%.*s is locked by run %.*s of %.*s, whose version of this program says "
                           "nothing of its contract: release it there, or wait until its lease "
                           "expires",
                           (int)lock.path.size, lock.path.data, (int)lease->run_id.size,
                           lease->run_id.data,
                           (int)(lease->owner.host.size > 60 ? 60 : lease->owner.host.size),
                           lease->owner.host.data);
        CX_TRY(consume_approval(l, &lock, &contract, err));
    }
    return answer_released_locks(l, &lock, &why, 1, err);
}

/* *out_found is false when no run of the part has a lock on exactly this path. */
static cx_status find_shared_lock(locking *l, cx_str path, bool *out_found, cx_err *err)
{
    cx_run_leases table;
    *out_found = false;
    CX_TRY(cx_cli_run_leases_peek(l->cli, l->args, l->place.git, &table, err));
    for (size_t r = 0; r < table.count; r++)
        for (size_t i = 0; i < table.list[r].lock_count; i++) {
            if (!cx_str_eq(table.list[r].locks[i].path, path))
                continue;
            *out_found = true;
            return release_shared(l, &table.list[r], i, err);
        }
    return CX_SUCCESS;
}

static cx_status release_one(locking *l, cx_str path, cx_err *err)
{
    cx_run_lock *locks, released;
    cx_run_lock_reason *reasons;
    size_t count;
    cx_str normal;
    cx_digest key;
    cx_status found = cx_run_lock_name(path, &l->cli->arena, &normal, &key, err);
    if (found.code == CX_E_FORMAT)
        return cx_fail(err, CX_E_USAGE, "'%.*s' is not a path that can be locked", (int)path.size,
                       path.data);
    CX_TRY(found);
    CX_TRY(cx_run_lock_list(&l->store, &l->cli->arena, &locks, &reasons, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (!cx_digest_eq(&locks[i].key, &key))
            continue;
        if (!cx_run_lock_stale(reasons[i])) {
            if (locks[i].run_id.size == 0)
                return cx_fail(
                    err, CX_E_FORMAT,
                    "the lock on %.*s cannot be read; remove the file by hand if no run owns it",
                    (int)normal.size, normal.data);
            cx_digest contract;
            CX_TRY(contract_of(l, locks[i].run_id, &contract, err));
            CX_TRY(consume_approval(l, &locks[i], &contract, err));
        }
        CX_TRY(cx_run_lock_force(&l->store, path, &l->cli->arena, &released, err));
        return answer_released_locks(l, &released, &reasons[i], 1, err);
    }
    bool shared;
    CX_TRY(find_shared_lock(l, normal, &shared, err));
    return shared ? CX_SUCCESS
                  : cx_fail(err, CX_E_NOT_FOUND,
                            "no run has a lock on %.*s; 'cortex locks list' lists the locks",
                            (int)normal.size, normal.data);
}

static cx_status release_locks(locking *l, cx_err *err)
{
    cx_run_lock *locks;
    cx_run_lock_reason *reasons;
    size_t count;
    bool stale = cx_cli_has(l->args, "stale");
    if (stale == (l->args->operand_count != 0))
        return cx_fail(err, CX_E_USAGE, "expected either PATH or --stale");
    if (!stale)
        return release_one(l, cx_str_z(l->args->operands[0]), err);
    CX_TRY(cx_run_lock_reclaim(&l->store, &l->cli->arena, &locks, &reasons, &count, err));
    return answer_released_locks(l, locks, reasons, count, err);
}

static int run_locks_release(cx_cli *cli, const cx_cli_args *args)
{
    return run_locks_job(cli, args, release_locks);
}

const cx_cli_command cx_cli_locks_release = {
    .name = "locks release",
    .purpose = "release stale locks, or one by force",
    .about = "With --stale removes every stale lock. With PATH removes the lock on exactly that "
             "path: at once when it is stale, else only with a signed approval whose scope is "
             "unlock:PATH.",
    .operands = release_operands,
    .operand_count = CX_COUNT_OF(release_operands),
    .options = release_options,
    .option_count = CX_COUNT_OF(release_options),
    .exits = "0 released\n2 usage error\n3 could not be done, or there is no such lock\n4 "
             "rejected: a run owns the lock, and there is no approval",
    .example = "cortex locks release --stale\ncortex locks release src/app --approval unlock.json",
    .run = run_locks_release,
};
