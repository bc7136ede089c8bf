/*
 * live_audit.h - the audit of a live session: its transcript, its work tree and its journal tell of
 * the same calls, or a finding says which one does not (docs/formats/live.md §10).
 *
 *   V1  The journal is what happened to the hooks; everything else is the agent's word.  A call
 *       counts as decided only by an entry.
 *   V2  What can be read in two ways is never chosen between: it is a finding that makes the
 *       verdict indeterminate.
 *   V3  Nothing of the work tree or its git directory is run, and no link in it is followed.
 *   V4  Findings are counted exactly; of each kind at most CX_LIVE_AUDIT_LISTED are listed.
 */
#ifndef CX_LIVE_AUDIT_LIVE_AUDIT_H
#define CX_LIVE_AUDIT_LIVE_AUDIT_H

#include "json/api.h"
#include "ledger/api.h"
#include "live/api.h"

#define CX_LIVE_AUDIT_LISTED 100                    /* findings of a kind in a report */
#define CX_LIVE_AUDIT_CALLS_MAX ((size_t)1 << 20)   /* calls, or decisions, of a session */
#define CX_LIVE_AUDIT_BYTES_MAX ((size_t)512 << 20) /* of a session's transcripts together */
#define CX_LIVE_AUDIT_FILES_MAX 4096                /* transcripts of a session and its agents */

typedef enum cx_live_audit_severity {
    CX_LIVE_AUDIT_NOTE,
    CX_LIVE_AUDIT_WARNING, /* the verdict is at best indeterminate */
    CX_LIVE_AUDIT_ERROR    /* an enforcement gap: broken */
} cx_live_audit_severity;
const char *cx_live_audit_severity_name(cx_live_audit_severity severity);

/*
 * X(constant, name, severity, title): the one list of findings, also in docs/formats/live.md §10
 * (tools/check_docs.py).
 */
#define CX_LIVE_AUDIT_FINDINGS(X)                                                                  \
    X(UNDECIDED_CALL, "undecided_call", ERROR, "A call ran without a decision")                    \
    X(UNDECIDED_SUBAGENT_CALL, "undecided_subagent_call", ERROR,                                   \
      "A sub-agent's call ran without a decision")                                                 \
    X(UNDECIDED_RESULT, "undecided_result", ERROR,                                                 \
      "A hook reported the result of an undecided "                                                \
      "call")                                                                                      \
    X(UNDECIDED_SPAN, "undecided_span", ERROR, "A span says that an undecided call ran")           \
    X(TYPED_INPUT, "typed_input", ERROR, "Text was typed into a running program, undecided")       \
    X(DENIED_CALL_RAN, "denied_call_ran", ERROR, "A call ran although it was denied")              \
    X(INPUT_DIFFERS, "input_differs", ERROR, "The call's input is not the one decided")            \
    X(EXECUTED_DIFFERS, "executed_differs", ERROR, "Another input ran than the one decided")       \
    X(HOOKS_GAP, "hooks_gap", ERROR, "Hooks were silent while calls went on")                      \
    X(NO_JOURNAL, "no_journal", ERROR, "A transcript with calls, and no journal")                  \
    X(TRANSCRIPT_REWRITTEN, "transcript_rewritten", ERROR,                                         \
      "The transcript does not continue what was archived before")                                 \
    X(UNCLEAR_CALL, "unclear_call", WARNING, "An undecided call that may have run")                \
    X(DENIED_CALL_UNCLEAR, "denied_call_unclear", WARNING, "A denied call that may have run")      \
    X(CODE_MODE_CALL, "code_mode_call", WARNING, "A script whose own calls are not told")          \
    X(REWRITE_UNCLEAR, "rewrite_unclear", WARNING, "A rewritten call that may have run as it was") \
    X(DECISION_WITHOUT_CALL, "decision_without_call", WARNING,                                     \
      "A decided call that no transcript tells")                                                   \
    X(DECIDED_AFTERWARDS, "decided_afterwards", WARNING,                                           \
      "A decision that is younger than the call's result")                                         \
    X(CALL_ID_REPEATED, "call_id_repeated", WARNING, "Several calls with one id")                  \
    X(AMBIGUOUS_MATCH, "ambiguous_match", WARNING, "Equal calls that were decided differently")    \
    X(OTHER_SESSION, "other_session", WARNING, "A call that names another session")                \
    X(BEFORE_HOOKS, "before_hooks", WARNING, "A transcript that says it is older than the hooks")  \
    X(NO_TRANSCRIPT, "no_transcript", WARNING, "No transcript to compare with")                    \
    X(TRANSCRIPT_DAMAGED, "transcript_damaged", WARNING, "Lines that cannot be read")              \
    X(TRANSCRIPT_ERASED, "transcript_erased", WARNING, "Parts of the transcript were erased")      \
    X(JOURNAL_ERASED, "journal_erased", WARNING, "Entries of the journal were erased")             \
    X(RESUMED_WITHOUT_START, "resumed_without_start", WARNING,                                     \
      "Calls after the session's end, without a start")                                            \
    X(NOT_ENFORCED, "not_enforced", WARNING, "No policy could be read, and nothing was blocked")   \
    X(CHANGED_FILE, "changed_file", WARNING, "A file changed that no call explains")               \
    X(COMMIT_WITHOUT_CALL, "commit_without_call", WARNING, "A commit that no call explains")       \
    X(WORK_TREE_UNREAD, "work_tree_unread", WARNING, "The work tree cannot be compared")           \
    X(EGRESS_WITHOUT_CALL, "egress_without_call", WARNING, "A connection that no call explains")   \
    X(EGRESS_DENIED, "egress_denied", NOTE, "A connection was refused")                            \
    X(REFUSED_BEFORE_HOOKS, "refused_before_hooks", NOTE, "The agent refused a call by itself")    \
    X(HARMLESS_CALL, "harmless_call", NOTE, "An undecided call that reaches nothing")              \
    X(PROVIDER_CALL, "provider_call", NOTE, "A tool that the model's provider runs")               \
    X(DECIDED_NOT_YET_TOLD, "decided_not_yet_told", NOTE,                                          \
      "Decided later than the transcript ends")                                                    \
    X(FIRST_CALL_START, "first_call_start", NOTE, "The session's start was not seen")              \
    X(CONFIG_CHANGED, "config_changed", NOTE, "The agent's configuration changed")                 \
    X(FAIL_OPEN, "fail_open", NOTE, "Hooks that let calls pass when they fail")                    \
    X(POLICY_UNREAD, "policy_unread", NOTE,                                                        \
      "The policy could not be read, so everything was "                                           \
      "forbidden")                                                                                 \
    X(OBSERVED, "observed", NOTE, "A call that would not have been allowed")                       \
    X(ASKED_AND_RAN, "asked_and_ran", NOTE, "Asked in the agent's prompt, and ran")                \
    X(APPROVED, "approved", NOTE, "A person answered")

typedef enum cx_live_audit_kind {
#define CX_LIVE_AUDIT_CONSTANT(id, name, severity, title) CX_LIVE_AUDIT_##id,
    CX_LIVE_AUDIT_FINDINGS(CX_LIVE_AUDIT_CONSTANT)
#undef CX_LIVE_AUDIT_CONSTANT
        CX_LIVE_AUDIT_KIND_COUNT
} cx_live_audit_kind;
const char *cx_live_audit_name(cx_live_audit_kind kind);
const char *cx_live_audit_title(cx_live_audit_kind kind);
cx_live_audit_severity cx_live_audit_severity_of(cx_live_audit_kind kind);

/* Both sides, as far as there are two.  Memory is the report's arena. */
typedef struct cx_live_audit_finding {
    cx_live_audit_kind kind;
    cx_str message;
    cx_str file;   /* of the transcript; empty = the finding is not about one */
    uint64_t line; /* of it, 1-based; 0 = the file as a whole */
    cx_str call_id, tool;
    bool has_entry;
    uint64_t seq; /* of the session's journal */
    cx_str where; /* a path of the work tree, a commit, a host */
} cx_live_audit_finding;

typedef struct cx_live_audit_file {
    cx_str path;
    bool archived; /* read from the data directory, else from the disk */
    uint64_t generation, bytes, calls, bad_lines, erased_pieces;
} cx_live_audit_file;

typedef struct cx_live_audit_report {
    cx_str actor, agent, session; /* actor is empty when there is no journal */
    cx_str work_tree;             /* compared; empty = none */
    cx_verdict verdict;
    int64_t started_ns, ended_ns; /* of the journal; 0 without one */
    bool ended;
    const cx_live_audit_file *files;
    size_t file_count;
    uint64_t entries, decisions, results; /* of the journal */
    uint64_t calls, matched;              /* of the transcripts; those with a decision */
    uint64_t changed_files, commits;      /* of the work tree while the session ran */
    uint64_t counts[CX_LIVE_AUDIT_KIND_COUNT];
    const cx_live_audit_finding *findings; /* errors first, then in the order found */
    size_t finding_count;
} cx_live_audit_report;

typedef struct cx_live_audit_options {
    const cx_alloc *alloc; /* NULL = cx_alloc_default() */
    const char *repo;      /* the work tree; NULL = as the journal has it */
    bool no_work_tree;     /* git and files are not compared */
    bool only_with_hooks;  /* cx_live_audit_all: nothing, when no hook has ever recorded anything */
    size_t max_bytes;      /* of a session's transcripts; 0 = CX_LIVE_AUDIT_BYTES_MAX */
    int64_t since_ns;      /* cx_live_audit_all: sessions with something newer; 0 = all */
} cx_live_audit_options;

/*
 * Audits one session.  `name`: an id, its first digits, an actor, the name of an archived file;
 * empty = the newest session, or that of the transcript.  `transcript`: a file to read in place of
 * the archived ones; NULL = archived ones, else the file that the journal names.  Text of the
 * report lives in `arena`.  CX_E_NOT_FOUND when neither journal nor transcript exists; CX_E_LIMIT,
 * CX_E_FORMAT for a transcript named by the caller that cannot be read.
 */
CX_RESULT cx_live_audit_session(cx_home *home, const cx_live_audit_options *options, cx_str name,
                                const char *transcript, cx_arena *arena, cx_live_audit_report *out,
                                cx_err *err);

/* A report each, in the order of actors, then of archived files without a journal; what a report
 * borrows ends with the call. */
typedef cx_status (*cx_live_audit_on_report)(void *arg, const cx_live_audit_report *report,
                                             cx_err *err);
/* Every session with something newer than `since_ns`, one after the other. */
CX_RESULT cx_live_audit_all(cx_home *home, const cx_live_audit_options *options,
                            cx_live_audit_on_report on_report, void *arg, cx_err *err);

/* The worse of two: broken, indeterminate, holds. */
cx_verdict cx_live_audit_worse(cx_verdict a, cx_verdict b);

/* --- reports ---------------------------------------------------------------------------------- */

/* The object of a session in schemas/answers/hook_audit.v1.json. */
CX_RESULT cx_live_audit_json(const cx_live_audit_report *report, cx_arena *arena, cx_json *out,
                             cx_err *err);

/* SARIF 2.1.0, written piece by piece: begin, the results of each report, end. */
void cx_live_audit_sarif_begin(cx_buf *out);
CX_RESULT cx_live_audit_sarif_add(cx_buf *out, const cx_live_audit_report *report, bool *is_first,
                                  cx_err *err);
void cx_live_audit_sarif_end(cx_buf *out, cx_verdict verdict);

#endif
