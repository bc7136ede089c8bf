/*
 * cleanup_seal.c - the seal of a bundle whose process died between its manifest and its seal.
 *
 *   L1  A bundle is sealed late only when it agrees with the ledger in everything else: each event
 *       is there with its hash, none is missing, and verification finds nothing but that the seal
 *       is missing.
 */
#include "os/api.h"
#include "crypto/api.h"
#include "governor/cleanup.h"
#include "bundle/api.h"

#define DOCUMENT_BYTES_MAX ((size_t)16 << 20)

typedef struct late {
    cx_run_bundle *bundle;
    const cx_run_witness *witness;
    cx_arena *arena;
    cx_run_verdict verdict;
    cx_json manifest;
    cx_err *err;
} late;

/* L1 */
static bool may_be_sealed(const late *l)
{
    if (!l->witness->has_events || l->witness->event_count != l->verdict.event_count)
        return false;
    for (size_t i = 0; i < l->verdict.findings.list.count; i++) {
        const cx_run_finding *finding = &l->verdict.findings.list.items[i];
        if (!finding->informs && strcmp(finding->rule, "seal_missing") != 0)
            return false;
    }
    return true;
}

static cx_str repo_text(const late *l, const char *member)
{
    const cx_json *repo = CX_JSON_GET(&l->manifest, "repo");
    return repo == NULL ? CX_STR("") : cx_json_get_str(repo, cx_str_z(member));
}

static cx_status append_late_seal(late *l, const cx_run_ledger *ledger, const char *folder,
                                  cx_run_sealed *out)
{
    cx_bytes manifest, contract;
    CX_TRY(cx_run_bundle_read(l->bundle, CX_STR("manifest.json"), DOCUMENT_BYTES_MAX, &manifest,
                              l->err));
    CX_TRY(cx_run_bundle_read(l->bundle, CX_STR("contract.json"), DOCUMENT_BYTES_MAX, &contract,
                              l->err));
    CX_TRY(cx_run_json_read(cx_bytes_str(manifest), 0, l->arena, &l->manifest, l->err));
    bool success = cx_str_is(CX_JSON_GET_STR(&l->manifest, "status"), "SUCCESS");
    cx_run_seal_about about = {.run_id = l->verdict.run_id,
                               .folder = folder,
                               .manifest_sha256 = cx_digest_of(manifest),
                               .contract_sha256 = cx_digest_of(contract),
                               .event_count = l->verdict.event_count,
                               .chain_head = l->verdict.chain_head};
    cx_run_seal_facts facts = {.task_id = CX_JSON_GET_STR(&l->manifest, "task_id"),
                               .status = success ? CX_RUN_SUCCESS : CX_RUN_FAILURE,
                               .baseline_commit = repo_text(l, "baseline_ref"),
                               .final_commit = repo_text(l, "final_ref")};
    out->manifest_sha256 = about.manifest_sha256;
    return cx_run_seal_append(ledger, &about, &facts, out, l->err);
}

static cx_status close_late_bundle(const char *path, cx_err *err)
{
    cx_file folder;
    CX_TRY(cx_folder_open(path, &folder, err));
    cx_status status = cx_run_seal_close(folder, path, err);
    cx_folder_close(folder);
    return status;
}

cx_status cx_run_seal_late(const cx_run_store *store, cx_str run_id, const cx_run_witness *witness,
                           const cx_run_ledger *ledger, cx_arena *arena, bool *out_agrees,
                           cx_run_sealed *out, cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    late l = {.witness = witness, .arena = arena, .err = err};
    cx_str path = cx_run_store_path(store, arena, "runs", run_id);
    *out_agrees = false;
    *out = (cx_run_sealed){0};
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_bundle_open(store->io, store->alloc, path.data, &l.bundle, err));
    cx_status status = cx_run_verify(l.bundle, witness, arena, &l.verdict, err);
    if (!cx_failed(status)) {
        *out_agrees = may_be_sealed(&l);
        if (*out_agrees)
            status = append_late_seal(&l, ledger, path.data, out);
        cx_run_findings_done(&l.verdict.findings);
    }
    cx_run_bundle_close(l.bundle);
    return cx_failed(status) || !*out_agrees ? status : close_late_bundle(path.data, err);
}
