/*
 * step.h - the recorder of steps: what an agent did becomes a node of its history at once
 * (docs/formats/steps.md).
 *
 *     cx_steps_read_..        JSON as senders write it, each step alone
 *     cx_recorder_steps_take  exactly once: numbered, linked, sealed, hashed, on the disk
 *     cx_recorder_steps_seal  a whole lattice of others, sealed
 *
 * A node is the committed payload of an entry of kind `lattice.node` in the journal of its agent.
 * Next to it stand records:
 *
 *     step/head        the agent's newest node   {1 seq, 2 hash, 3 entry, 4 time, 5 latest, 6
 *                      count}
 *     step/node/<32>   one of its nodes          {1 seq, 3 entry, 4 time}
 *     step/key/<32>    a sender's key            {1 seq, 2 hash, 3 entry, 7 content}
 *     step/link/<32>   a parent of other agents  {3 entry, 8 agent}
 *
 * Thread-safe.
 */
#ifndef CX_RECORDER_STEP_H
#define CX_RECORDER_STEP_H

#include "json/api.h"
#include "recorder/recorder.h"

#define CX_STEP_AGENT_BYTES_MAX 200
#define CX_STEP_KEY_BYTES_MAX 256
#define CX_STEP_PARENTS_MAX 64
#define CX_STEP_DEPTH_MAX 512
#define CX_STEP_BYTES_MAX (UINT32_C(4) << 20)
#define CX_STEPS_MAX 10000 /* of one call */
#define CX_STEP_HASH_SIZE 64

#define CX_KIND_NODE cx_kinds_name(CX_KIND_LATTICE_NODE)

/* --- reading ---------------------------------------------------------------------------------- */

/* A parent as it was named: a node (or "@AGENT", "AGENT#SEQ", a short hash), or what a sender's key
 * recorded. */
typedef struct cx_step_parent {
    cx_str node;       /* data NULL = by key */
    cx_str agent, key; /* of `key`; agent data NULL = the step's own */
} cx_step_parent;

/* Texts and values are borrowed from the document and its arena. */
typedef struct cx_step {
    cx_err problem;               /* code CX_OK, or why it cannot be used */
    uint64_t line;                /* 1-based; 0 = unknown */
    cx_str agent;                 /* data NULL when it could not be read */
    const cx_json *event, *delta; /* NULL = {} */
    const cx_step_parent *parents;
    size_t parent_count;
    bool has_head; /* the head that the sender expects: data NULL = none yet */
    cx_str head;
    bool fork;
    cx_str fork_type;         /* data NULL = none */
    cx_str key;               /* data NULL = none */
    const cx_json *timestamp; /* NULL = now */
    cx_str key_id;            /* of the signature; data NULL = none */
    cx_signature signature;
    cx_json signed_members; /* what was signed besides event and state_delta */
    cx_str signed_text;     /* canonical JSON of what is signed */
    cx_digest content;      /* of all but key and signature */
} cx_step;

/* What a signature is made over: this, then cx_step.signed_text. */
#define CX_STEP_SIGNED_PREFIX "cortex.step.v1\n"

/* One step.  What is wrong with it is in `out->problem`; errors are of memory. */
CX_RESULT cx_step_read(const cx_json *value, cx_arena *arena, cx_step *out, cx_err *err);
/* JSON Lines; a line that is no JSON is a step with a problem.  CX_E_LIMIT "TooManySteps". */
CX_RESULT cx_steps_read_lines(cx_str text, cx_arena *arena, cx_step **out, size_t *out_count,
                              cx_err *err);

/* --- taking ----------------------------------------------------------------------------------- */

typedef enum cx_step_status {
    CX_STEP_STORED,
    CX_STEP_DUPLICATE, /* the key was there, with this content */
    CX_STEP_CONFLICT,  /* another head than expected, or the key has another content */
    CX_STEP_REJECTED,  /* it cannot be used */
    CX_STEP_SKIPPED    /* it comes after one of its agent that was not taken */
} cx_step_status;
const char *cx_step_status_name(cx_step_status status);

typedef struct cx_step_taken {
    cx_step_status status;
    cx_str agent;                     /* data NULL when it could not be read */
    char hash[CX_STEP_HASH_SIZE + 1]; /* stored, duplicate: of the node, which is its id */
    int64_t seq;
    uint64_t entry;
    cx_err problem; /* otherwise; tag "HeadMoved", "NotTheHead", "KeyReused", "NoParent", .. */
    bool has_head;  /* of a conflict: what the agent's newest node is */
    char head[CX_STEP_HASH_SIZE + 1];
    int64_t head_seq;
} cx_step_taken;

/*
 * Takes steps in order and returns when all that is stored is on the disk.  After a step that is
 * not taken those of its agent are skipped; when its agent is not known, all are.  `sender` is kept
 * as created_by of the entries; empty = none.  Errors: the ledger's.
 */
CX_RESULT cx_recorder_steps_take(cx_recorder *recorder, const cx_step *steps, size_t count,
                                 cx_str sender, cx_step_taken *out, cx_err *err);
/* Counts of `taken` by status. */
void cx_steps_count(const cx_step_taken *taken, size_t count, uint64_t out[CX_STEP_SKIPPED + 1]);
/* One step's result as JSON: agent, entry, hash, node_id, seq, status, or what was wrong. */
CX_RESULT cx_step_taken_json(const cx_step_taken *taken, cx_arena *arena, cx_json *out,
                             cx_err *err);

/* --- lattices of others ----------------------------------------------------------------------- */

/*
 * All nodes of a lattice (opened with keep_deltas) that holds, with seals and new hashes; what they
 * were is in event.__source.  CX_E_CONFLICT "AgentExists": an agent has other steps here.
 * CX_E_FORMAT "NotVerified": it does not hold; the message names the first finding.  `dry`: nothing
 * is written.
 */
CX_RESULT cx_recorder_steps_seal(cx_recorder *recorder, const cx_lattice *lattice, cx_str sender,
                                 bool dry, cx_steps_sealed *out, cx_err *err);

/* --- reading back ----------------------------------------------------------------------------- */

/* The journal that an agent's steps are in: its name, '/' and '%' and controls as %XX. */
CX_RESULT cx_step_actor(cx_str agent, cx_arena *arena, cx_str *out, cx_err *err);
/* CX_E_FORMAT "BadStep": the journal is one that no agent writes, or its name is too long. */
CX_RESULT cx_step_check_actor(cx_str actor, cx_err *err);
/* Whether an actor's journal has steps. */
CX_RESULT cx_recorder_has_steps(cx_home *home, cx_str actor, bool *out, cx_err *err);
/* Appends the nodes of other agents that an actor's steps came from, as JSON Lines. */
CX_RESULT cx_recorder_steps_follow(cx_home *home, cx_str actor, cx_buf *out, cx_err *err);

/* --- one step (part.c) ------------------------------------------------------------------------ */

/* The node with that hash (64 hex digits) in any journal, as its line without the LF, in the arena;
 * an erased one is not found.  One record of each actor is looked up, and no history is read. */
CX_RESULT cx_recorder_step_line(cx_home *home, cx_str hash, cx_arena *arena, cx_str *out_line,
                                bool *out_found, cx_err *err);

/* --- parts (part.c) --------------------------------------------------------------------------- */

#define CX_STEPS_PART 4096u        /* entries of one part */
#define CX_STEPS_PART_CONTEXT 512u /* steps of other agents that a part is shown with */

typedef struct cx_steps_extent {
    bool parts;       /* the branch is one journal of steps, which can be opened in parts */
    uint64_t entries; /* of that journal */
    bool found;       /* the node that was asked for is one of its steps .. */
    uint64_t entry;   /* .. in this entry */
} cx_steps_extent;

/*
 * How long a branch is, without reading it.  `branch` is "agent/NAME"; of any other name, and of an
 * agent without steps or with signed traces under the same name, `parts` is false.  `node`: a
 * node's hash, or data NULL.
 */
CX_RESULT cx_recorder_steps_extent(cx_home *home, cx_str branch, cx_str node, cx_steps_extent *out,
                                   cx_err *err);
/*
 * The steps in entries `from` .. `from` + CX_STEPS_PART - 1 of a branch, and the steps of other
 * agents that they name as parents; both loaded from `lines`, which must outlive the lattice, and
 * verified: a parent that is not among them is a finding unless the records of the agent's journal
 * have it (lattice.md §4).  CX_E_NOT_FOUND "NoBranch", "NoPart"; CX_E_UNSUPPORTED "NoParts": signed
 * traces are among the entries, and a node of theirs is a function of all before it.
 */
CX_RESULT cx_recorder_steps_part(cx_home *home, cx_str branch, uint64_t from,
                                 const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                                 cx_lattice_report **out_report, cx_err *err);

#endif
