/*
 * state_egress.c - the network of an agent whose contract names hosts: the proxy of egress.md, with
 * its entries in the journal of the run.
 *
 *   E1  The hosts are those of the contract that the baseline's policies/egress.json covers, too.
 *   E2  Without a ledger no connection is allowed: it could not be recorded.
 */
#include "egress/api.h"
#include "governor/state_internal.h"

struct cx_task_egress {
    cx_governor_task *task;
    cx_str run_id;
    cx_egress_policy policy;
    cx_egress_credentials credentials;
    cx_egress *proxy;
    cx_socket channel;
};

/* --- entries ---------------------------------------------------------------------------------- */

static cx_status record(struct cx_task_egress *e, const char *kind, bool with_end,
                        const cx_egress_record *connection, cx_err *err)
{
    const cx_run_ledger *ledger = e->task->governor->options->ledger;
    cx_arena arena; /* any thread may be here */
    cx_json value;
    cx_buf text;
    if (ledger == NULL)
        return cx_fail(err, CX_E_DENIED, "this run has no ledger to record connections in");
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_json_list list = cx_json_list_begin(&arena);
    cx_json_put_uint(&list, "v", 1);
    cx_json_put_str(&list, "run", e->run_id);
    cx_json_put_str(&list, "task", e->task->id);
    cx_status status = cx_egress_record_json(connection, with_end, &list, err);
    if (!cx_failed(status))
        status = cx_json_list_end_object(&list, &value, err);
    if (!cx_failed(status))
        status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = ledger->append(ledger->ctx, kind, e->run_id, cx_buf_bytes(&text), NULL, err);
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return status;
}

static cx_status on_open(void *arg, const cx_egress_record *connection, cx_err *err)
{
    return record(arg, "egress.open", false, connection, err);
}

static cx_status on_end(void *arg, const cx_egress_record *connection, cx_err *err)
{
    return record(arg, "egress.connection", true, connection, err);
}

/* --- the policy ------------------------------------------------------------------------------- */

static cx_status read_policy(cx_governor_task *t, cx_egress_policy *out, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_run_blob kind = CX_BLOB_NONE;
    cx_bytes bytes = {NULL, 0};
    cx_egress_policy_init(out);
    out->network = CX_EGRESS_ALLOWLIST;
    CX_TRY(g->repo.read(g->repo.arg, g->baseline, CX_STR(CX_EGRESS_POLICY_FILE),
                        CX_EGRESS_POLICY_BYTES_MAX, &t->arena, &kind, &bytes, err));
    if (kind == CX_BLOB_NONE)
        return CX_SUCCESS;
    if (kind != CX_BLOB_FILE)
        return cx_fail(err, CX_E_FORMAT, "%s is no regular file of at most 1 MiB",
                       CX_EGRESS_POLICY_FILE);
    return cx_egress_policy_read(cx_bytes_str(bytes), CX_EGRESS_POLICY_FILE, &t->arena, out, err);
}

static cx_status make_policy(cx_governor_task *t, struct cx_task_egress *e, cx_err *err)
{
    cx_egress_list list;
    const char *store = t->governor->options->credentials;
    CX_TRY(read_policy(t, &e->policy, err));
    CX_TRY(cx_egress_list_make(t->contract.network_hosts.items, t->contract.network_hosts.count,
                               "network_hosts", &t->arena, &list, err));
    CX_TRY(cx_egress_policy_narrow(&e->policy, &list, err)); /* E1 */
    if (e->policy.credential_count == 0)
        return CX_SUCCESS;
    if (store == NULL)
        return cx_fail(err, CX_E_NOT_FOUND,
                       "%s names credentials, and there is no folder of a user's configuration",
                       CX_EGRESS_POLICY_FILE);
    return cx_egress_credentials_load(store, e->policy.credentials, e->policy.credential_count,
                                      &t->arena, &e->credentials, err);
}

/* --- opening and closing ---------------------------------------------------------------------- */

cx_status cx_task_open_egress(cx_governor_task *t, cx_err *err)
{
    if (!t->agent.network_on || t->contract.network_hosts.count == 0 || t->governor->unconfined)
        return CX_SUCCESS;
    struct cx_task_egress *e = CX_ARENA_ARRAY(&t->arena, struct cx_task_egress, 1);
    if (e == NULL)
        return cx_fail_nomem(err);
    memset(e, 0, sizeof *e);
    e->task = t;
    e->run_id = cx_arena_copy_str(&t->arena, cx_run_id(t->governor->run));
    if (e->run_id.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(make_policy(t, e, err));
    const cx_egress_options options = {.io = t->governor->io,
                                       .policy = &e->policy,
                                       .credentials = &e->credentials,
                                       .sink = {on_open, on_end, e}};
    CX_TRY(cx_egress_start(&options, &e->proxy, err));
    e->channel = cx_egress_channel(e->proxy);
    t->agent.egress = e;
    t->agent.spec.network = false;
    t->agent.spec.egress = &e->channel;
    return CX_SUCCESS;
}

void cx_task_close_egress(cx_governor_task *t)
{
    struct cx_task_egress *e = t->agent.egress;
    t->agent.egress = NULL;
    t->agent.spec.egress = NULL;
    if (e != NULL)
        cx_egress_stop(e->proxy, NULL);
}
