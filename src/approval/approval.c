/*
 * approval.c - which approvals a run has, and using one up (run.md §13).
 *
 * Invariants A1, A2 and A3: approval.h.
 */
#include "approval/approval.h"

#include <errno.h>
#include <stdlib.h>

#include "os/api.h"
#include "crypto/api.h"

/* The tolerated difference between the clocks of two machines. */
#define SKEW_NS (INT64_C(300) * 1000000000)

static const char NO_APPROVAL[] = "APPROVAL";

static int64_t context_now(const cx_run_approval_context *context)
{
    return context->now_ns != 0 ? context->now_ns : (int64_t)context->io->wall_ns(context->io);
}

/* --- one envelope ----------------------------------------------------------------------------- */

/* The approver whose key signed, or NULL with a reason. */
static cx_status find_signer(const cx_run_policy *policy, const cx_run_dsse *envelope,
                             const cx_alloc *alloc, const cx_run_approver **out,
                             const char **out_why, cx_err *err)
{
    *out_why = policy != NULL && policy->approvers_fault.size != 0
                   ? "the policy's approvers are not the ones pinned by its configuration"
                   : "no approver of the policy has the key that it names";
    for (size_t i = 0; policy != NULL && i < policy->approver_count; i++) {
        const cx_run_approver *approver = &policy->approvers[i];
        cx_pubkey key;
        bool named = false, good;
        memcpy(key.bytes, approver->key, sizeof key.bytes);
        cx_digest keyid = cx_run_dsse_keyid(&key);
        for (size_t k = 0; k < envelope->signature_count; k++)
            named = named || (envelope->signatures[k].has_keyid &&
                              cx_digest_eq(&envelope->signatures[k].keyid, &keyid));
        if (!named) /* approvals are ours alone, and always name their key */
            continue;
        CX_TRY(cx_run_dsse_verify(envelope, &key, alloc, &good, err));
        if (good) {
            *out = approver;
            *out_why = NULL;
            return CX_SUCCESS;
        }
        *out_why = "the signature is invalid";
    }
    return CX_SUCCESS;
}

cx_status cx_run_approval_open(const cx_run_policy *policy, cx_bytes file, int64_t now_ns,
                               cx_arena *arena, cx_run_approval *out, const char **out_why,
                               cx_err *err)
{
    CX_ASSERT(out_why != NULL);
    cx_run_dsse envelope;
    const cx_run_approver *signer = NULL;
    const char *unsigned_because;
    cx_err why;
    memset(out, 0, sizeof *out);
    cx_status status = cx_run_dsse_read(cx_bytes_str(file), arena, &envelope, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    *out_why = "it is not an envelope of an approval";
    if (cx_failed(status) || !cx_str_is(envelope.payload_type, CX_RUN_DSSE_APPROVAL))
        return CX_SUCCESS;
    CX_TRY(find_signer(policy, &envelope, arena->alloc, &signer, &unsigned_because, err));
    status = cx_run_approval_decode(envelope.payload, arena, out, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    *out_why = "its payload is not an approval (docs/formats/run.md)";
    if (cx_failed(status))
        return CX_SUCCESS;
    cx_str copy = cx_arena_copy_str(arena, cx_bytes_str(file));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    out->file = cx_str_bytes(copy);
    out->sha256 = cx_digest_of(file);
    *out_why = unsigned_because;
    if (signer == NULL)
        return CX_SUCCESS;
    out->signer = signer->name;
    *out_why = NULL;
    if (!cx_str_eq(out->approver, signer->name))
        *out_why = "its approver is not the one whose key signed";
    else if (out->issued_ns > now_ns + SKEW_NS)
        *out_why = "it was issued in the future";
    else if (out->expires_ns <= now_ns)
        *out_why = "it has expired";
    return CX_SUCCESS;
}

/* ROOT/approvals/used/<sha256 of the nonce> */
static cx_str nonce_path(const char *runtime_root, const cx_run_approval *approval, cx_arena *arena)
{
    char hex[64];
    cx_digest digest = cx_digest_of(cx_str_bytes(approval->nonce));
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    return cx_arena_printf(arena, "%s/%s/%.*s", runtime_root, CX_RUN_APPROVALS_USED, 64, hex);
}

cx_status cx_run_approval_was_used(const cx_io *io, const char *runtime_root,
                                   const cx_run_approval *approval, bool *out, cx_err *err)
{
    cx_arena arena;
    cx_facts facts;
    (void)io;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_str path = nonce_path(runtime_root, approval, &arena);
    cx_status status =
        path.data == NULL ? cx_fail_nomem(err) : cx_path_facts(path.data, false, &facts, err);
    cx_arena_done(&arena);
    if (status.code == CX_E_NOT_FOUND) {
        *out = false;
        return CX_SUCCESS;
    }
    CX_TRY(status);
    *out = true;
    return CX_SUCCESS;
}

/* --- the set ---------------------------------------------------------------------------------- */

void cx_run_approvals_init(cx_run_approvals *set, const cx_run_approval_context *context,
                           cx_arena *arena)
{
    CX_ASSERT(context != NULL && arena != NULL);
    memset(set, 0, sizeof *set);
    set->context = context;
    set->arena = arena;
    cx_run_findings_init(&set->refused, arena);
}

void cx_run_approvals_done(cx_run_approvals *set)
{
    cx_vec_done(&set->list, set->arena->alloc);
    cx_run_findings_done(&set->refused);
}

static bool is_zero_digest(const cx_digest *digest)
{
    static const cx_digest zero = {{0}};
    return cx_digest_eq(digest, &zero);
}

static bool is_for_contract(const cx_run_approval_context *context, const cx_run_approval *a)
{
    return (!is_zero_digest(&context->contract_sha256) &&
            cx_digest_eq(&a->contract_sha256, &context->contract_sha256)) ||
           (!is_zero_digest(&context->resolved_sha256) &&
            cx_digest_eq(&a->contract_sha256, &context->resolved_sha256));
}

/* Why a valid approval cannot be used by this run, or NULL. */
static const char *unusable_reason(const cx_run_approvals *set, const cx_run_approval *a)
{
    const cx_run_approval_context *context = set->context;
    if (!is_for_contract(context, a))
        return "it is for another contract";
    if (a->run_id.data != NULL && !cx_str_eq(a->run_id, context->run_id))
        return "it is for another run";
    if (context->agent_id.size != 0 && cx_str_eq(a->approver, context->agent_id))
        return "its approver is the agent";
    for (size_t i = 0; i < set->list.count; i++) {
        if (cx_str_eq(set->list.items[i].nonce, a->nonce))
            return "another approval has the same nonce";
    }
    return NULL;
}

static bool is_already_added(const cx_run_approvals *set, cx_bytes file)
{
    cx_digest digest = cx_digest_of(file);
    for (size_t i = 0; i < set->list.count; i++) {
        if (cx_digest_eq(&set->list.items[i].sha256, &digest))
            return true;
    }
    return false;
}

static cx_status add_envelope(cx_run_approvals *set, cx_str name, cx_bytes file,
                              bool of_any_contract, cx_err *err)
{
    cx_run_approval approval;
    const char *why;
    bool used;
    if (is_already_added(set, file)) /* a folder is read repeatedly */
        return CX_SUCCESS;
    CX_TRY(cx_run_approval_open(set->context->policy, file, context_now(set->context), set->arena,
                                &approval, &why, err));
    if (of_any_contract && approval.approval_id.size != 0 &&
        !is_for_contract(set->context, &approval))
        return CX_SUCCESS;
    if (why == NULL)
        why = unusable_reason(set, &approval);
    if (why == NULL) {
        CX_TRY(cx_run_approval_was_used(set->context->io, set->context->runtime_root, &approval,
                                        &used, err));
        if (used)
            why = "it was used before";
    }
    if (why != NULL) {
        cx_run_findings_reject(&set->refused, NO_APPROVAL, name, approval.approval_id,
                               "the approval cannot be used: %s", why);
        return CX_SUCCESS;
    }
    cx_run_approval *slot = cx_vec_push(&set->list, set->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = approval;
    return CX_SUCCESS;
}

cx_status cx_run_approvals_add(cx_run_approvals *set, cx_str name, cx_bytes file, cx_err *err)
{
    return add_envelope(set, name, file, false, err);
}

cx_status cx_run_approvals_add_file(cx_run_approvals *set, const char *path, cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, set->arena->alloc);
    cx_status status = cx_io_read_file(set->context->io, path, CX_RUN_DSSE_BYTES_MAX, &bytes, err);
    if (!cx_failed(status))
        status = add_envelope(set, cx_str_z(path), cx_buf_bytes(&bytes), false, err);
    cx_buf_done(&bytes);
    return status;
}

typedef struct name_list {
    cx_arena *arena;
    CX_VEC(cx_str) list;
    bool failed, too_many;
} name_list;

static bool collect_name(void *arg, const char *name)
{
    name_list *n = arg;
    cx_str text = cx_str_z(name);
    if (name[0] == '.' || !cx_str_ends(text, CX_STR(".json")))
        return true;
    if (n->list.count == CX_RUN_APPROVAL_FILES_MAX) {
        n->too_many = true;
        return false;
    }
    cx_str *slot = cx_vec_push(&n->list, n->arena->alloc);
    if (slot == NULL || (*slot = cx_arena_copy_str(n->arena, text)).data == NULL) {
        n->failed = true;
        return false;
    }
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

static cx_status add_file_in(cx_run_approvals *set, cx_file folder, cx_str name, cx_err *err)
{
    cx_buf bytes;
    cx_err why;
    cx_buf_init(&bytes, set->arena->alloc);
    cx_status status = cx_folder_read_file(folder, name.data, CX_RUN_DSSE_BYTES_MAX, &bytes, &why);
    if (status.code == CX_E_NOMEM || bytes.failed) {
        status = cx_fail_nomem(err);
    } else if (cx_failed(status)) {
        cx_run_findings_reject(&set->refused, NO_APPROVAL, name, CX_STR(""),
                               "it cannot be read: %s", why.message);
        status = CX_SUCCESS;
    } else {
        status = add_envelope(set, name, cx_buf_bytes(&bytes), true, err);
    }
    cx_buf_done(&bytes);
    return status;
}

cx_status cx_run_approvals_add_folder(cx_run_approvals *set, cx_err *err)
{
    name_list n = {.arena = set->arena};
    cx_file folder;
    cx_str path =
        cx_arena_printf(set->arena, "%s/%s", set->context->runtime_root, CX_RUN_APPROVALS_FOLDER);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_folder_open(path.data, &folder, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    status = cx_folder_list(folder, ".", collect_name, &n, err);
    if (!cx_failed(status) && n.failed)
        status = cx_fail_nomem(err);
    if (!cx_failed(status) && n.too_many)
        status = cx_fail(err, CX_E_LIMIT, "%s has more than %d approvals; move old ones away",
                         path.data, CX_RUN_APPROVAL_FILES_MAX);
    if (n.list.count != 0)
        qsort(n.list.items, n.list.count, sizeof *n.list.items, compare_names);
    for (size_t i = 0; i < n.list.count && !cx_failed(status); i++)
        status = add_file_in(set, folder, n.list.items[i], err);
    cx_vec_done(&n.list, set->arena->alloc);
    cx_folder_close(folder);
    return status;
}

/* --- using ------------------------------------------------------------------------------------ */

const cx_run_approval *cx_run_approvals_find(const cx_run_approvals *set, cx_str scope)
{
    for (size_t i = 0; i < set->list.count; i++) {
        const cx_run_approval *approval = &set->list.items[i];
        /* One that was used stays valid for its run (A2); an unused one may have expired since. */
        if (cx_str_list_has(approval->scopes, scope) &&
            (approval->used || approval->expires_ns > context_now(set->context)))
            return approval;
    }
    return NULL;
}

cx_status cx_run_approval_record(const cx_run_ledger *ledger, cx_str run_id,
                                 const cx_run_approval *approval, bool *out_first, cx_err *err)
{
    CX_ASSERT(approval->nonce.size != 0);
    cx_digest nonce = cx_digest_of(cx_str_bytes(approval->nonce));
    cx_buf entry;
    *out_first = true;
    if (ledger == NULL)
        return CX_SUCCESS;
    cx_buf_init(&entry, cx_alloc_default());
    cx_buf_add_z(&entry, "{\"approval_id\":");
    cx_json_write_str(&entry, approval->approval_id, CX_JSON_PY_COMPACT);
    cx_buf_add_z(&entry, ",\"approval_sha256\":\"");
    cx_hex_add(&entry, cx_bytes_from(approval->sha256.bytes, sizeof approval->sha256.bytes));
    cx_buf_add_z(&entry, "\",\"nonce_sha256\":\"");
    cx_hex_add(&entry, cx_bytes_from(nonce.bytes, sizeof nonce.bytes));
    cx_buf_add_z(&entry, "\",\"run_id\":");
    cx_json_write_str(&entry, run_id, CX_JSON_PY_COMPACT);
    cx_buf_add_z(&entry, ",\"type\":\"cortex.run.approval.v1\"}");
    cx_status status = cx_buf_check(&entry, err);
    if (!cx_failed(status))
        status = ledger->append_once(ledger->ctx, "run.approval", &nonce, cx_buf_bytes(&entry),
                                     out_first, err);
    cx_buf_done(&entry);
    return status;
}

/* A2. False when it was used before, according to the folder or the journal. */
static cx_status record_nonce(cx_run_approvals *set, const cx_run_approval *approval,
                              bool *out_recorded, cx_err *err)
{
    const cx_run_approval_context *context = set->context;
    const cx_io *io = context->io;
    CX_ASSERT(!approval->used && context->runtime_root != NULL && io != NULL);
    cx_file file;
    cx_str folder =
        cx_arena_printf(set->arena, "%s/%s", context->runtime_root, CX_RUN_APPROVALS_USED);
    cx_str path = nonce_path(context->runtime_root, approval, set->arena);
    cx_str text = cx_arena_printf(set->arena, "%.*s %.*s\n", (int)approval->approval_id.size,
                                  approval->approval_id.data, (int)context->run_id.size,
                                  context->run_id.data);
    if (folder.data == NULL || path.data == NULL || text.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_path_make_folders(folder.data, err));
    int failed = io->open(io, path.data,
                          CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE | CX_IO_NO_LINKS, &file);
    *out_recorded = failed == 0;
    if (failed == -EEXIST)
        return CX_SUCCESS;
    if (failed != 0)
        return cx_fail_os(err, -failed, "the nonce of approval %.*s cannot be recorded at %s",
                          (int)approval->approval_id.size, approval->approval_id.data, path.data);
    cx_status status = cx_io_write_all(io, file, path.data, text.data, text.size, err);
    if (!cx_failed(status) && (failed = io->sync(io, file, false)) != 0)
        status = cx_fail_os(err, -failed, "%s", path.data);
    (void)io->close(io, file);
    CX_TRY(status);
    CX_TRY(cx_io_sync_folder(io, folder.data, err));
    return context->record == NULL
               ? CX_SUCCESS
               : context->record(context->record_arg, approval, out_recorded, err);
}

static void remove_approval(cx_run_approvals *set, size_t index)
{
    set->list.count--;
    memmove(&set->list.items[index], &set->list.items[index + 1],
            (set->list.count - index) * sizeof *set->list.items);
}

cx_status cx_run_approvals_use(cx_run_approvals *set, cx_str scope,
                               const cx_run_approval **out_used, cx_err *err)
{
    const cx_run_approval *found;
    *out_used = NULL;
    while ((found = cx_run_approvals_find(set, scope)) != NULL) {
        size_t index = (size_t)(found - set->list.items);
        cx_run_approval *approval = &set->list.items[index];
        bool recorded = true;
        if (!approval->used)
            CX_TRY(record_nonce(set, approval, &recorded, err));
        if (recorded) {
            approval->used = true;
            CX_ASSERT(cx_str_list_has(approval->scopes, scope));
            *out_used = approval;
            return CX_SUCCESS;
        }
        cx_run_findings_reject(&set->refused, NO_APPROVAL, approval->approval_id,
                               approval->approval_id,
                               "the approval cannot be used: it was used before");
        remove_approval(set, index);
    }
    return CX_SUCCESS;
}

bool cx_run_approvals_approve(void *set_arg, cx_str scope)
{
    cx_run_approvals *set = set_arg;
    const cx_run_approval *used = NULL;
    cx_err err;
    cx_status status = cx_run_approvals_use(set, scope, &used, &err);
    if (cx_failed(status)) {
        cx_run_findings_reject(&set->refused, NO_APPROVAL, scope, CX_STR(""),
                               "it could not be recorded, so it allows nothing: %s", err.message);
        return false;
    }
    return used != NULL;
}
