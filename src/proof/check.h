/*
 * check.h - any proof file: what it is, whether it holds, and what that rests on.
 *
 * The one place that joins the verifiers of this module with what the caller trusts.  Everything is
 * in memory: no data directory, no network, no clock.  `cortex-verify` and `cortex verify` print
 * what it finds (check_report.c).
 */
#ifndef CX_PROOF_CHECK_H
#define CX_PROOF_CHECK_H

#include "proof/action_set.h"
#include "proof/erasure.h"
#include "proof/export.h"
#include "proof/home_root.h"
#include "proof/pack.h"
#include "proof/scope.h"

typedef enum cx_check_kind {
    CX_CHECK_UNKNOWN,
    CX_CHECK_PACK,
    CX_CHECK_MULTIPROOF,
    CX_CHECK_MANIFEST,
    CX_CHECK_INCLUSION,
    CX_CHECK_CONSISTENCY,
    CX_CHECK_CHECKPOINT,
    CX_CHECK_TLOG_PROOF,
    CX_CHECK_RECEIPT,
    CX_CHECK_SCOPE,
    CX_CHECK_HOME,
    CX_CHECK_ERASURE,
    CX_CHECK_NEVER
} cx_check_kind;

/* "pack", "tlog_proof", ..., "unknown"; static storage. */
const char *cx_check_kind_name(cx_check_kind kind);
/* By content alone. */
cx_check_kind cx_check_recognise(cx_bytes bytes);

typedef enum cx_check_require {
    CX_REQUIRE_ANCHORED,       /* indeterminate "NotAnchored" unless something given bears it out */
    CX_REQUIRE_SIGNED,         /* indeterminate "NotSigned" unless a key given signed it */
    CX_REQUIRE_SELF_CONSISTENT /* that it agrees with itself is enough: anybody can make such a file
                                */
} cx_check_require;

typedef enum cx_check_expect {
    CX_EXPECT_ANY,
    CX_EXPECT_MEMBERS, /* every key is a member, erased or not; else "NotMember" */
    CX_EXPECT_ABSENT   /* no key is; else "NotAbsent" */
} cx_check_expect;

/* What the caller trusts and asks.  All of it may be left out: zeroed is valid. */
typedef struct cx_check_options {
    const cx_vkey *keys; /* with an empty name: a bare key, for whatever it fits */
    size_t key_count;
    size_t cosigners_required;
    const cx_digest *overall_root;
    const cx_journal_point *journal; /* of the (newer) journal */
    const cx_journal_point *older;
    cx_bytes checkpoint; /* a signed note in place of `journal`, and of `older` */
    cx_bytes older_checkpoint;
    cx_bytes manifest; /* for a bare MultiProof */
    cx_bytes entry;    /* what a leaf is, or its hash */
    const cx_digest *leaf_hash;
    bool namespace_given;
    cx_namespace name_space;
    cx_check_expect expect;
    cx_str never;   /* the name and the subject that a proof of absence must be about, in */
    cx_str subject; /* normal form; empty = whatever it is about */
    cx_check_require require;
    bool now_given; /* compare a scope's end with: */
    int64_t now_ns; /* since 1970 */
} cx_check_options;

/* What the verdict rests on: bits. */
enum {
    CX_CHECK_BY_OVERALL_ROOT = 1,
    CX_CHECK_BY_MANIFEST_SIGNATURE = 2,
    CX_CHECK_BY_SEAL = 4, /* the manifest's seal is in a trusted journal */
    CX_CHECK_BY_ROOT = 8, /* a journal root given by the caller */
    CX_CHECK_BY_CHECKPOINT = 16,
    CX_CHECK_BY_RECEIPT = 32,
    CX_CHECK_BY_SCOPE_SIGNATURE = 128,
    CX_CHECK_BY_SIGNATURE = 256, /* a key given signed it */
    CX_CHECK_BY_MANIFEST = 64    /* given by the caller for a state proof that comes alone */
};

#define CX_CHECK_LIMITS_MAX 8

/* Borrows from the bytes, the options and the arena. */
typedef struct cx_check_result {
    cx_check_kind kind;
    cx_finding finding;
    bool has_scheme, has_manifest, has_proof, has_index, has_journal, has_older, has_note;
    cx_scheme scheme;
    cx_manifest manifest;
    cx_multiproof proof;               /* its paths have no siblings */
    const cx_pack_question *questions; /* one a key of the proof, or NULL */
    uint64_t index;
    cx_journal_point journal;
    cx_journal_point older;
    cx_note_result note;
    unsigned anchors;
    bool is_signed; /* by a trusted key, directly or through the journal */
    /* What the manifest says besides its roots (actor, number, journal size, times, counters), and
     * who signed it: borne out by a signature, a seal, or the caller.  Else it is what the file
     * says. */
    bool manifest_covered, signer_covered;
    bool has_home; /* of a home proof: the leaf, and the home root that it is in */
    cx_home_leaf home_leaf;
    cx_home_root home_root;
    bool has_erasure; /* of the receipt of an erasure */
    cx_erasure_head erasure;
    bool has_never; /* of a proof of absence: the name, and the set that it is not in */
    cx_str never;
    cx_action_set actions;
    bool has_scope;
    cx_scope scope;                          /* of a scope file */
    const char *limits[CX_CHECK_LIMITS_MAX]; /* what is not proven; static storage */
    size_t limit_count;
} cx_check_result;

/* A file that is broken or unknown is a result; errors are memory and limits. */
CX_RESULT cx_check_run(cx_bytes bytes, const cx_check_options *options, cx_arena *arena,
                       cx_check_result *out, cx_err *err);

/* The result for a file that could not be read or checked: indeterminate, with the error's tag (or
 * "NotRead") as its reason. */
void cx_check_result_of(const cx_err *error, cx_check_result *out);

/* For people: some lines; with `details` also hashes. */
void cx_check_write_text(const cx_check_result *result, cx_str file, bool details, cx_buf *out);
/* One line: a JSON object with members in order. */
void cx_check_write_json(const cx_check_result *result, cx_str file, cx_buf *out);
/* Text from outside, as it may stand on a terminal: cx_shown_add. */
void cx_check_write_safe(cx_buf *out, cx_str text);

#endif
