/*
 * cortex/lattice.h - the temporal lattice: hash-linked, branching, merging history of agents.
 *
 *     cx_lattice *lattice;
 *     cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
 *     cx_lattice_open("history.jsonl", &options, &lattice, &err);
 *     cx_lattice_report *report;
 *     cx_lattice_verify(lattice, NULL, &report, &err);
 *     ... cx_lattice_report_verdict(report) ...
 *     cx_lattice_report_close(report);
 *     cx_lattice_close(lattice);
 *
 * A lattice is read once and never changes; every function that takes it as const may be called
 * from several threads at the same time.  Pointers and text that a function returns are borrowed
 * from the object given, and stay valid until it is closed.  Rules and bytes:
 * docs/formats/lattice.md; § numbers refer to that page.  C11 and C++ clean.
 */
#ifndef CORTEX_LATTICE_H
#define CORTEX_LATTICE_H

#include <cortex/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cx_lattice cx_lattice;
typedef struct cx_ledger cx_ledger; /* of <cortex/journal.h> */

/* A node's index in the file, from 0; unusable nodes have one too (§4). */
typedef uint32_t cx_node;
#define CX_NODE_NONE UINT32_MAX

/* The most nodes read from one file; more is CX_E_LIMIT "U_LIMIT". */
#define CX_LATTICE_NODES_MAX 0xFFFFFFF0u

/* --- opening (§1, §9) ---------------------------------------------------------------------- */

typedef struct cx_lattice_options {
    const cx_alloc *alloc;       /* NULL = cx_alloc_default(); must be thread-safe */
    unsigned threads;            /* concurrent readers; 0 = one per core, at most 8 */
    bool keep_deltas;            /* store each node's state_delta: needed for states */
    bool keep_seals;             /* store 32 bytes per node: needed for an anchor */
    uint32_t max_depth;          /* nested brackets, 0 = 1024 */
    uint32_t max_integer_digits; /* 0 = 4300 */
    uint64_t max_bytes;          /* of input, 0 = no limit */
    uint64_t max_nodes;          /* 0 = CX_LATTICE_NODES_MAX */
    /* Called from time to time from a reading thread, never concurrently; total 0 = unknown. */
    void (*progress)(void *arg, uint64_t bytes_done, uint64_t bytes_total);
    void *progress_arg;
} cx_lattice_options;

#define CX_LATTICE_OPTIONS_INIT                       \
    {                                                 \
        NULL, 0, false, false, 0, 0, 0, 0, NULL, NULL \
    }

/*
 * Reads a file ("-" = standard input).  Unreadable input is an error with a tag U_IO U_UTF8 U_BOM
 * U_SYNTAX U_DUPKEY U_NUMBER U_DEPTH U_SHAPE U_EMPTY U_LIMIT (§1.3), byte offset and line; readable
 * but damaged input is a finding of cx_lattice_verify.  `options` may be NULL.
 */
CX_API CX_MUST_USE cx_status cx_lattice_open(const char *path, const cx_lattice_options *options,
                                             cx_lattice **out, cx_err *err);
/* The same over memory, which must outlive the lattice. */
CX_API CX_MUST_USE cx_status cx_lattice_open_bytes(cx_bytes bytes,
                                                   const cx_lattice_options *options,
                                                   cx_lattice **out, cx_err *err);
CX_API void cx_lattice_close(cx_lattice *lattice); /* NULL is accepted */

/* --- reading ------------------------------------------------------------------------------- */

typedef enum cx_fork_type {
    CX_FORK_NONE,
    CX_FORK_NATURAL,
    CX_FORK_OBSERVATION,
    CX_FORK_INJECTION,
    CX_FORK_UNKNOWN /* any other string: E_FORK_TYPE */
} cx_fork_type;

/* Objects read, unusable ones included. */
CX_API uint32_t cx_lattice_count(const cx_lattice *lattice);
/* Agents named by any node, in order of first appearance in the file; 0 .. count - 1. */
CX_API uint32_t cx_lattice_agent_count(const cx_lattice *lattice);
CX_API cx_str cx_lattice_agent_name(const cx_lattice *lattice, uint32_t agent);

/*
 * Finds a node by a name as users write it: "@AGENT" is that agent's head, else a node_id, else a
 * hash (§3.4, §8).  CX_NODE_NONE when not found.
 */
CX_API cx_node cx_lattice_find(const cx_lattice *lattice, cx_str name);
/*
 * The same, and all else that reports and pictures write: the first four or more characters of an
 * id or hash, "AGENT#SEQ", "#K" for the K-th node of the file, "@agent/AGENT".  CX_E_NOT_FOUND
 * "NoNode", CX_E_CONFLICT "Ambiguous".
 */
CX_API CX_MUST_USE cx_status cx_lattice_resolve(const cx_lattice *lattice, cx_str name,
                                                cx_node *out, cx_err *err);

typedef struct cx_lattice_node_info {
    cx_str id;    /* as written; NULL data when the node has no usable one ("#K" in reports) */
    cx_str agent; /* "?" when the node has no usable one */
    int64_t seq;
    double timestamp; /* nearest double */
    cx_fork_type fork_type;
    const cx_node *parents; /* resolved, in merge order (timestamp, node_id); borrowed */
    uint32_t parent_count;
    const cx_node *children; /* borrowed */
    uint32_t child_count;
    cx_node lineage; /* lineage parent (§3.4) or CX_NODE_NONE */
    bool in_graph;   /* false: unusable, or a repeated node_id */
    uint64_t offset; /* of its first byte in the input */
    uint64_t line;   /* 1-based; 0 when the file is not in lines */
} cx_lattice_node_info;

CX_API void cx_lattice_node(const cx_lattice *lattice, cx_node node, cx_lattice_node_info *out);

/* --- verification (§4, §5) ----------------------------------------------------------------- */

typedef struct cx_lattice_head {
    cx_str agent;
    cx_str hash;
} cx_lattice_head;

/* An anchor, stored where the writer of the lattice cannot write (§5.2). */
typedef struct cx_lattice_anchor {
    const cx_lattice_head *heads;
    size_t head_count;
    bool whole; /* no other heads are allowed, and nodes and root are checked too */
    uint64_t nodes;
    cx_digest root;
} cx_lattice_anchor;

typedef struct cx_lattice_checks {
    bool content_ids;                /* E_ID */
    bool require_seals;              /* E_SEAL_MISSING */
    bool strict_time;                /* E_TIME */
    bool unambiguous;                /* E_AMBIGUOUS; strict = all four */
    const cx_lattice_anchor *anchor; /* NULL = none; a whole one needs options.keep_seals */
} cx_lattice_checks;

#define CX_LATTICE_CHECKS_INIT           \
    {                                    \
        false, false, false, false, NULL \
    }

/* In alphabetical order of their names, the order of reports. */
typedef enum cx_lattice_code {
    CX_E_AMBIGUOUS,
    CX_E_CONTAIN,
    CX_E_CYCLE,
    CX_E_DUP_ID,
    CX_E_FORK_TYPE,
    CX_E_HASH,
    CX_E_HEAD,
    CX_E_ID,
    CX_E_LINEAGE,
    CX_E_MISSING_PARENT,
    CX_E_ROOT,
    CX_E_SCHEMA,
    CX_E_SEAL,
    CX_E_SEAL_MISSING,
    CX_E_SEQ_DUP,
    CX_E_SEQ_GAP,
    CX_E_TIME,
    CX_E_VERSION,
    CX_W_TIME,
    CX_LATTICE_CODE_COUNT
} cx_lattice_code;

/* "E_HASH"; static storage. */
CX_API const char *cx_lattice_code_name(cx_lattice_code code);

typedef struct cx_lattice_finding {
    cx_lattice_code code;
    cx_node node;  /* CX_NODE_NONE when it is not about one node */
    cx_str id;     /* of the node, "#K" when it has none, "*" when it is not about one node */
    cx_str agent;  /* "?" when the node has none, "*" when it is not about one agent */
    cx_str detail; /* expected and found, for users; the wording may change */
} cx_lattice_finding;

typedef enum cx_lattice_seals {
    CX_SEALS_NONE,
    CX_SEALS_SOME,
    CX_SEALS_ALL,
    CX_SEALS_BAD
} cx_lattice_seals;

typedef enum cx_lattice_anchored {
    CX_ANCHOR_NONE,
    CX_ANCHOR_SOME_HEADS,
    CX_ANCHOR_HEADS,
    CX_ANCHOR_ROOT,
    CX_ANCHOR_BAD
} cx_lattice_anchored;

/* Which properties held; read it together with the verdict (§4.1). */
typedef struct cx_lattice_evidence {
    bool hash, monotonic, lineage, containment, structure;
    cx_lattice_seals seals;
    bool content_ids;  /* every node_id is its hash */
    bool time_ordered; /* no node before a parent */
    cx_lattice_anchored anchor;
} cx_lattice_evidence;

typedef struct cx_lattice_branch {
    cx_str agent;
    bool valid;
    bool tainted;
    const cx_lattice_finding *errors; /* this branch's, sorted; borrowed from the report */
    size_t error_count;
    const cx_lattice_finding *warnings;
    size_t warning_count;
} cx_lattice_branch;

typedef struct cx_lattice_report cx_lattice_report;

/* Damage is a verdict, not an error.  `checks` may be NULL.  The report borrows from the lattice,
 * which must outlive it. */
CX_API CX_MUST_USE cx_status cx_lattice_verify(const cx_lattice *lattice,
                                               const cx_lattice_checks *checks,
                                               cx_lattice_report **out, cx_err *err);
CX_API void cx_lattice_report_close(cx_lattice_report *report); /* NULL is accepted */

/* CX_HOLDS or CX_BROKEN. */
CX_API cx_verdict cx_lattice_report_verdict(const cx_lattice_report *report);
CX_API const cx_lattice_evidence *cx_lattice_report_evidence(const cx_lattice_report *report);
/* Sorted by (code, node id, agent); borrowed. */
CX_API const cx_lattice_finding *cx_lattice_report_errors(const cx_lattice_report *report,
                                                          size_t *out_count);
CX_API const cx_lattice_finding *cx_lattice_report_warnings(const cx_lattice_report *report,
                                                            size_t *out_count);
/* In order of each agent's earliest node in topological order, those without one last by name. */
CX_API const cx_lattice_branch *cx_lattice_report_branches(const cx_lattice_report *report,
                                                           size_t *out_count);

/* --- states (§6, §7) ----------------------------------------------------------------------- */

typedef enum cx_merge_strategy {
    CX_MERGE_LWW,
    CX_MERGE_CONFIDENCE,
    CX_MERGE_POLICY,
    CX_MERGE_MANUAL
} cx_merge_strategy;

typedef struct cx_agent_priority {
    cx_str agent;
    double priority;
} cx_agent_priority;

typedef struct cx_state_options {
    cx_merge_strategy strategy;          /* a node's own event.merge_strategy takes precedence */
    bool base_none;                      /* two-way merges: the one base is the empty state */
    const cx_agent_priority *priorities; /* for CX_MERGE_POLICY; others have 0 */
    size_t priority_count;
} cx_state_options;

#define CX_STATE_OPTIONS_INIT        \
    {                                \
        CX_MERGE_LWW, false, NULL, 0 \
    }

/*
 * The states of all nodes of a lattice opened with keep_deltas, sharing structure: built once, read
 * often.  CX_E_FORMAT when a cycle in the graph keeps the state of a wanted node from being built.
 * `options` may be NULL; the lattice must outlive the states.
 */
typedef struct cx_states cx_states;

CX_API CX_MUST_USE cx_status cx_states_open(const cx_lattice *lattice,
                                            const cx_state_options *options, cx_states **out,
                                            cx_err *err);
CX_API void cx_states_close(cx_states *states); /* NULL is accepted */

/* --- questions (§8) ------------------------------------------------------------------------ */

/*
 * Each answers with one line of canonical JSON, the same as `cortex lattice .. --json` prints, and
 * gives it away (cx_owned_done).  All but heatmap, heads and show need a lattice opened with
 * keep_deltas (else CX_E_USAGE).  Nodes must be in the graph; CX_E_FORMAT when a cycle is in the
 * way of one.
 */
typedef struct cx_question {
    cx_state_options states;         /* how merges are made */
    const cx_lattice_report *report; /* for `verified`; NULL = it is verified for the answer */
} cx_question;

#define CX_QUESTION_INIT            \
    {                               \
        CX_STATE_OPTIONS_INIT, NULL \
    }

/* What the agent knew after the node, or (inherited) before its own changes.  `question` may be
 * NULL, as in all that follow. */
CX_API CX_MUST_USE cx_status cx_lattice_ask_state(const cx_lattice *lattice, cx_node node,
                                                  bool inherited, const cx_question *question,
                                                  cx_owned *out, cx_err *err);
/* One value of that state, by JSON pointer ("/memory/limit").  CX_E_NOT_FOUND when it is not there.
 */
CX_API CX_MUST_USE cx_status cx_lattice_ask_value(const cx_lattice *lattice, cx_node node,
                                                  const char *pointer, const cx_question *question,
                                                  cx_owned *out, cx_err *err);
/* Every change of a key: "limit", "memory.order.limit", "/memory/order/limit".  CX_E_NOT_FOUND
 * "NoKey" names the nearest keys. */
CX_API CX_MUST_USE cx_status cx_lattice_ask_why(const cx_lattice *lattice, cx_node node,
                                                const char *key, const cx_question *question,
                                                cx_owned *out, cx_err *err);
/* Where two nodes diverge, and how the states after them differ. */
CX_API CX_MUST_USE cx_status cx_lattice_ask_compare(const cx_lattice *lattice, cx_node a, cx_node b,
                                                    const cx_question *question, cx_owned *out,
                                                    cx_err *err);
/* The first node of the line up to `node` at which a statement ("/memory/limit>500") is true. */
CX_API CX_MUST_USE cx_status cx_lattice_ask_bisect(const cx_lattice *lattice, cx_node node,
                                                   const char *predicate,
                                                   const cx_question *question, cx_owned *out,
                                                   cx_err *err);
/* The state that a node with these parents (one or more) would inherit (§7). */
CX_API CX_MUST_USE cx_status cx_lattice_ask_merge(const cx_lattice *lattice, const cx_node *nodes,
                                                  size_t node_count, const cx_question *question,
                                                  cx_owned *out, cx_err *err);
/* The nodes with more than one child. */
CX_API CX_MUST_USE cx_status cx_lattice_ask_heatmap(const cx_lattice *lattice,
                                                    const cx_question *question, cx_owned *out,
                                                    cx_err *err);
/* Each agent's newest node. */
CX_API CX_MUST_USE cx_status cx_lattice_ask_heads(const cx_lattice *lattice,
                                                  const cx_question *question, cx_owned *out,
                                                  cx_err *err);
/* The node as it is written, with parents and children. */
CX_API CX_MUST_USE cx_status cx_lattice_ask_show(const cx_lattice *lattice, cx_node node,
                                                 const cx_question *question, cx_owned *out,
                                                 cx_err *err);

/* --- recording (docs/formats/steps.md) ----------------------------------------------------- */

/*
 * What an agent did.  Cortex makes of it a node of the agent's history: number, previous hash, seal
 * and hash, stored in the agent's journal.  Texts are terminated UTF-8.
 */
typedef struct cx_step_draft {
    const char *agent;       /* needed; 1 to 200 bytes without controls */
    const char *event;       /* a JSON object; NULL = {} */
    const char *state_delta; /* a JSON object with the sections of §6; NULL = {} */
    /* Hashes of nodes (6 digits or more), "AGENT#SEQ", "@AGENT" for that agent's newest node.
     * Without one of the agent's own, its newest node is a parent as well. */
    const char *const *parents;
    size_t parent_count;
    /* The agent's newest node as the caller knows it, 64 digits; "" = it has no steps; NULL = any.
     */
    const char *head;
    bool fork;             /* may go on from a node that is not the newest */
    const char *fork_type; /* "natural", "observation", "injection"; NULL = none, of a fork natural
                            */
    const char *key;       /* the sender's; the same step is taken once; NULL = none */
    double timestamp;      /* seconds since 1970; 0 = now */
    const char *key_id;    /* of the key that signed cx_step_to_sign's bytes; NULL = unsigned */
    cx_signature signature;
} cx_step_draft;

#define CX_STEP_DRAFT_INIT                                           \
    {                                                                \
        NULL, NULL, NULL, NULL, 0, NULL, false, NULL, NULL, 0, NULL, \
        {                                                            \
            {                                                        \
                0                                                    \
            }                                                        \
        }                                                            \
    }

typedef struct cx_step_node {
    char hash[65]; /* of the node, which is its node_id; terminated */
    int64_t seq;
    uint64_t entry; /* in the agent's journal */
    bool duplicate; /* the key was there with the same step: this is its node */
} cx_step_node;

/*
 * Returns when the node is on the disk.  CX_E_CONFLICT "HeadMoved", "NotTheHead" (cx_step_head says
 * what the newest node is now), "KeyReused"; CX_E_FORMAT "BadStep"; CX_E_NOT_FOUND "NoParent";
 * CX_E_DENIED "BadSignature".
 */
CX_API CX_RESULT cx_step_append(cx_ledger *ledger, const cx_step_draft *draft, cx_step_node *out,
                                cx_err *err);
/*
 * Many at once, as JSON Lines of the format's steps.  *out_results: a line of JSON for each, in
 * order; *out_failed: how many were not taken (after one, those of the same agent are not).
 */
CX_API CX_RESULT cx_steps_append(cx_ledger *ledger, cx_bytes lines, cx_owned *out_results,
                                 size_t *out_failed, cx_err *err);
/* The agent's newest node.  CX_E_NOT_FOUND "NoSteps". */
CX_API CX_RESULT cx_step_head(cx_ledger *ledger, const char *agent, cx_step_node *out, cx_err *err);
/* The bytes to sign with Ed25519, outside of this library; key_id and signature are not read. */
CX_API CX_RESULT cx_step_to_sign(const cx_step_draft *draft, cx_owned *out, cx_err *err);

typedef struct cx_steps_sealed {
    uint64_t stored, duplicates, agents;
} cx_steps_sealed;
/*
 * Stores a whole lattice (opened with keep_deltas), sealed: CX_E_FORMAT "NotVerified" when it does
 * not hold, CX_E_CONFLICT "AgentExists".  The same lattice again is no more than duplicates.
 */
CX_API CX_RESULT cx_steps_seal(cx_ledger *ledger, const cx_lattice *lattice, cx_steps_sealed *out,
                               cx_err *err);

/*
 * What is recorded, as a lattice: "agent/NAME" is that agent's steps and traces and what they came
 * from, NULL all agents'.  It does not change when more is recorded.  CX_E_NOT_FOUND "NoBranch".
 */
CX_API CX_RESULT cx_lattice_open_ledger(cx_ledger *ledger, const char *branch,
                                        const cx_lattice_options *options, cx_lattice **out,
                                        cx_err *err);

#ifdef __cplusplus
}
#endif
#endif
