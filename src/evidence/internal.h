/*
 * internal.h - shared by the files that verify evidence.
 */
#ifndef CX_EVIDENCE_INTERNAL_H
#define CX_EVIDENCE_INTERNAL_H

#include "evidence/evidence.h"
#include "json/api.h"
#include "proof/proof_internal.h"

/* One check of one file. */
typedef struct cx_evidence_checker {
    const cx_check_options *options;
    cx_arena *arena;
    cx_evidence_result *out;
    const cx_evidence *e;
    cx_entry *entries;  /* decoded; one an entry of the file */
    cx_bytes *payloads; /* the payload of each; empty when it is not shown */
    bool *good;         /* whether it is in its journal */
    /* Of journals: by a given key; by any given anchor; its owner is not only what the file
     * says. */
    bool is_signed[CX_EVIDENCE_JOURNALS_MAX], anchored[CX_EVIDENCE_JOURNALS_MAX],
        named[CX_EVIDENCE_JOURNALS_MAX];
    /* What was given is of the only journal's size and has another root; it is a home root's. */
    bool root_differs, home_given;
    bool whole_session; /* it is about a session, and has each entry of its journal */
    bool no_memory;     /* then nothing that was found counts */
} cx_evidence_checker;

/* Whether it could be read; running out of memory is no finding. */
static inline bool cx_evidence_ok(cx_evidence_checker *c, cx_status status)
{
    c->no_memory = c->no_memory || status.code == CX_E_NOMEM;
    return !cx_failed(status);
}

/* Adds a finding about a part; one that holds is not added. */
void cx_evidence_add_finding(cx_evidence_checker *c, const char *part, size_t number,
                             const cx_finding *finding);
void cx_evidence_find(cx_evidence_checker *c, const char *part, size_t number, cx_verdict verdict,
                      const char *reason, const char *format, ...) CX_PRINTF(6, 7);
void cx_evidence_limit(cx_evidence_checker *c, const char *text);

/* check_home.c: a journal in a home root; entries are checked already. */
CX_RESULT cx_evidence_check_home(cx_evidence_checker *c, size_t number, cx_err *err);
/* The given keys under the name of a note: it is the key that counts, not what it is called. */
CX_RESULT cx_evidence_keys_for(cx_evidence_checker *c, cx_str origin, const cx_vkey **out,
                               cx_err *err);

/* check_run.c: the bundle of a run against the entry that sealed it, and the commit. */
CX_RESULT cx_evidence_check_run(cx_evidence_checker *c, cx_err *err);
void cx_evidence_check_commit(cx_evidence_checker *c);

/* "COMMIT" is named by an event of the run that is in the file. */
bool cx_evidence_run_made(cx_evidence_checker *c, cx_str commit);

const cx_evidence_file *cx_evidence_file_named(const cx_evidence *e, const char *path);

#endif
