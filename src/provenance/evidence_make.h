/*
 * evidence_make.h - collects the contents of an object's evidence file (evidence/evidence.h) from a
 * data directory, its runs and the repository.
 *
 * A run brings its bundle, its entries, the decisions and memories that are linked with it; a
 * commit the run that made it; a decision its entry, the key's entry, and the memories it names; a
 * memory its entries, a proof of state from the newest snapshot that contains it, and the decisions
 * it comes from; a session of a coding agent all entries of its journal, or the first and the
 * newest of them when they are too many.
 */
#ifndef CX_PROVENANCE_EVIDENCE_MAKE_H
#define CX_PROVENANCE_EVIDENCE_MAKE_H

#include "evidence/api.h"
#include "provenance/object.h"

#define CX_EVIDENCE_EVENTS_MAX 1000 /* of a run, whose entries are put in; else only the seal */
#define CX_EVIDENCE_BUNDLE_FILE_MAX (UINT32_C(1) << 20) /* a longer file is left to its hash */
#define CX_EVIDENCE_BUNDLE_MAX (UINT32_C(8) << 20)      /* of all files */

typedef struct cx_evidence_options {
    int64_t now_ns;
    /* A signed note of the actor's journal at this point, in the arena; NULL = none is made. */
    cx_status (*sign)(void *arg, cx_str actor, const cx_journal_point *point, cx_arena *arena,
                      cx_bytes *out_note, cx_err *err);
    void *sign_arg;
    const cx_pubkey *signer; /* named as a claim; NULL = none */
    cx_str signer_name;
} cx_evidence_options;

/*
 * Appends the file.  CX_E_NOT_FOUND "NoEvidence": the object or its evidence is not available here;
 * CX_E_CONFLICT with the finding's reason: the evidence does not hold; CX_E_LIMIT.  The caller must
 * not write to the data directory meanwhile.
 */
CX_RESULT cx_evidence_make(const cx_sources *sources, const cx_prov_object *object,
                           const cx_evidence_options *options, cx_arena *arena, cx_buf *out,
                           cx_evidence_result *out_result, cx_err *err);

/*
 * The check that cortex-verify cannot do: that the bytes shown of each decision are a canonical
 * form of the trace in its entry.  Adds "CanonicalMismatch" (broken), or removes the sentence about
 * it from the result's limits.  For results that were read; borrows memory as cx_evidence_check
 * does.
 */
CX_RESULT cx_evidence_check_traces(cx_evidence_result *result, cx_arena *arena, cx_err *err);

#endif
