/*
 * approval.h - signed approvals by which one run may do more than its role's row allows (run.md
 * §13).
 *
 *     cx_run_approvals_init(&set, &context, arena);
 *     cx_run_approvals_add_folder(&set, "approvals") / cx_run_approvals_add(&set, file bytes)
 *     cx_run_approvals_use(&set, CX_STR("wide_path:src/"), &used, err)   uses it up, once
 *     cx_run_approvals_done(&set);
 *
 * An approval belongs to one contract (its digest) and one run: the first use records its nonce,
 * exclusively, before anything is allowed; other scopes of the same approval are part of that use.
 * Approvers are those of policies/approvers.json as pinned by the baseline's config.  A line in
 * events.jsonl is never an approval: only these files are read.
 *
 *   A1  The signature is verified before anything in the payload is believed.
 *   A2  A nonce is recorded with O_EXCL in approvals/used, synced, and recorded in the journal,
 *       before the approval allows anything.  A crash in between leaves it used.
 *   A3  An approver is never the agent, and has the name of the key's owner in approvers.json.
 */
#ifndef CX_APPROVAL_APPROVAL_H
#define CX_APPROVAL_APPROVAL_H

#include "base/api.h"
#include "approval/dsse.h"
#include "bundle/api.h"
#include "contract/api.h"

#define CX_RUN_APPROVAL_SCOPES_MAX 64
#define CX_RUN_APPROVAL_FILES_MAX 1024
#define CX_RUN_APPROVALS_FOLDER "approvals"    /* below the runtime root */
#define CX_RUN_APPROVALS_USED "approvals/used" /* one file a nonce, named by its SHA-256 */
/* In a bundle, followed by <approval_id>.json: the envelopes that the run used, unchanged. */
#define CX_RUN_APPROVALS_EVIDENCE "artifacts/approval_"

typedef struct cx_run_approval {
    cx_str approval_id;
    cx_str run_id; /* the run it is for; data NULL = any run of the contract */
    cx_digest contract_sha256;
    cx_str_list scopes;
    cx_str reason;
    cx_str approver;
    cx_str issued_at, expires_at;
    int64_t issued_ns, expires_ns; /* since 1970 */
    cx_str nonce;
    cx_digest sha256; /* of the envelope's file */
    cx_bytes file;    /* the envelope's bytes, evidence for the bundle's artifacts/ */
    cx_str signer;    /* name of the approver whose key signed it */
    bool used;        /* by this set */
} cx_run_approval;

/* Shape only: {version, approval_id, run_id, contract_sha256, scopes, reason, approver, issued_at,
 * expires_at, nonce}, nothing else.  CX_E_FORMAT. */
CX_RESULT cx_run_approval_decode(cx_bytes payload, cx_arena *arena, cx_run_approval *out,
                                 cx_err *err);
/* The payload's bytes (canonical JSON) of what `approval` says. */
CX_RESULT cx_run_approval_encode(const cx_run_approval *approval, cx_arena *arena, cx_buf *out,
                                 cx_err *err);
/*
 * Checks an envelope's bytes: shape, key, signature and time, for any contract and run. *out_why is
 * NULL when it is valid, else one clause that says why not (static storage): `out` then has what
 * could be read, with an empty approval_id when nothing could.
 */
CX_RESULT cx_run_approval_open(const cx_run_policy *policy, cx_bytes file, int64_t now_ns,
                               cx_arena *arena, cx_run_approval *out, const char **out_why,
                               cx_err *err);
/* Whether the nonce was used before. */
CX_RESULT cx_run_approval_was_used(const cx_io *io, const char *runtime_root,
                                   const cx_run_approval *approval, bool *out, cx_err *err);
/* A scope as it may be written: a known name, with a value where the name needs one. */
bool cx_run_scope_valid(cx_str scope);

/* Records a nonce in the journal before it is used; an error prevents the use, and so does
 * *out_first = false: the journal has an earlier use. */
typedef cx_status (*cx_run_nonce_record)(void *arg, const cx_run_approval *approval,
                                         bool *out_first, cx_err *err);
/* Writes the journal entry `run.approval` with the digest of the nonce. Without a ledger only the
 * folder of used nonces decides, and *out_first is true. */
CX_RESULT cx_run_approval_record(const cx_run_ledger *ledger, cx_str run_id,
                                 const cx_run_approval *approval, bool *out_first, cx_err *err);

typedef struct cx_run_approval_context {
    const cx_io *io;
    const char *runtime_root;    /* absolute; nonces are stored below it */
    const cx_run_policy *policy; /* its approvers, pinned by the config (policy.h); NULL = none */
    cx_str run_id;               /* the run that wants to use them */
    cx_digest
        contract_sha256; /* digest of the contract file as given to the run, which the approver saw */
    cx_digest
        resolved_sha256; /* digest of the contract as run (bundle's contract.json); an approval may name either. Zero = none yet */
    cx_str agent_id;     /* of the assigned agent, which must not approve (A3) */
    int64_t now_ns;      /* since 1970; 0 = the wall clock of `io` */
    cx_run_nonce_record record; /* NULL = no journal */
    void *record_arg;
} cx_run_approval_context;

typedef struct cx_run_approvals {
    const cx_run_approval_context *context;
    cx_arena *arena;
    CX_VEC(cx_run_approval) list; /* the valid ones, sorted by approval_id */
    cx_run_findings refused;      /* rule "APPROVAL", where = file: why a file cannot be used */
} cx_run_approvals;

void cx_run_approvals_init(cx_run_approvals *set, const cx_run_approval_context *context,
                           cx_arena *arena);
void cx_run_approvals_done(cx_run_approvals *set);

/* Checks one envelope: shape, key, signature, contract, run, time, approver.  An invalid one is a
 * finding in set->refused, not an error. `name` is the file's name in findings. */
CX_RESULT cx_run_approvals_add(cx_run_approvals *set, cx_str name, cx_bytes file, cx_err *err);
CX_RESULT cx_run_approvals_add_file(cx_run_approvals *set, const char *path, cx_err *err);
/* All files *.json directly in <runtime root>/approvals, by name; a missing folder is empty.
 * Approvals for other contracts are skipped without a finding. */
CX_RESULT cx_run_approvals_add_folder(cx_run_approvals *set, cx_err *err);

/*
 * Finds an approval without using it. `scope` is written as in an approval: "network",
 * "wide_path:src/", "permission:filesystem=workspace-write". Borrowed until the set changes; NULL =
 * not approved.
 */
const cx_run_approval *cx_run_approvals_find(const cx_run_approvals *set, cx_str scope);
/*
 * Uses an approval: the first use records the nonce (A2). *out_used is the approval; NULL when
 * there is none, or its nonce was used before by another run.
 */
CX_RESULT cx_run_approvals_use(cx_run_approvals *set, cx_str scope,
                               const cx_run_approval **out_used, cx_err *err);
/* The same as a callback for gates.h and command.h; `set` is a cx_run_approvals. A use that could
 * not be recorded is not approved, and set->refused says why. */
bool cx_run_approvals_approve(void *set, cx_str scope);

/* {approval_id, scopes, sha256} (attestation), and with `full` also run_id, contract_sha256,
 * reason, approver, issued_at, expires_at (events, listings).  Never the nonce. */
CX_RESULT cx_run_approval_json(const cx_run_approval *approval, bool full, cx_arena *arena,
                               cx_json *out, cx_err *err);

/* payload of HUMAN_APPROVAL_REQUIRED: {reason:[scope names], scopes, contract_sha256, timeout_sec,
 * actions:[..], verify_steps:[..]}. */
CX_RESULT cx_run_approval_wanted_json(cx_str_list scopes, const cx_digest *contract_sha256,
                                      uint64_t timeout_sec, cx_arena *arena, cx_json *out,
                                      cx_err *err);

#endif
