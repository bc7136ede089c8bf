/*
 * action_set.h - what a run or an archived session did, as a set of names with one root, and proofs
 * that a name is not in it (actions.md).
 *
 * A name is a kind and a value: "tool:read", "file:/etc/passwd", "read:src/a.c",
 * "host:example.com". The root is that of a sparse Merkle tree over the hashes of the names, in
 * cortex-1, so that of one name only one of presence and absence can be proven.  It is recorded as
 * an entry `action.set`; the entry before it, `action.list`, has the list, whose payload can be
 * erased.
 */
#ifndef CX_PROOF_ACTION_SET_H
#define CX_PROOF_ACTION_SET_H

#include "proof/proof.h"

#define CX_ACTION_SET_KIND "action.set"
#define CX_NEVER_PROOF_MAGIC "cortex.never-proof"

#define CX_ACTION_NAME_MAX ((size_t)4096) /* bytes, with the kind */
#define CX_ACTION_PARTS_MAX 64            /* components of a path */
#define CX_ACTION_SUBJECT_MAX 256
#define CX_ACTION_ITEMS_MAX ((size_t)100000) /* of a list */
#define CX_ACTION_PLACES_MAX 8               /* of an item */
#define CX_ACTION_PLACE_MAX ((size_t)128)    /* bytes */

/* --- names ------------------------------------------------------------------------------------ */

/*
 * Appends the normal form of a name, as people and agents write it: kinds tool, file, read, write,
 * host.  CX_E_USAGE when it is none; the message says what is expected.
 */
CX_RESULT cx_action_name_normal(cx_str name, cx_buf *out, cx_err *err);
/*
 * Appends the subject that "run:ID", "@run/ID", "run/ID", "session:NAME", "@session/NAME" or
 * "session/NAME" means: "run/ID" or "session/NAME".  CX_E_USAGE when it is none.
 */
CX_RESULT cx_action_subject_normal(cx_str text, cx_buf *out, cx_err *err);
/* Whether the name of a path begins at the root of the file system. */
bool cx_action_name_is_absolute(cx_str name);

/* --- the set ---------------------------------------------------------------------------------- */

/* An item of the list: a name in normal form (of the kinds tool, read, write and host). */
typedef struct cx_action_item {
    cx_str name;
    uint64_t count;       /* how often */
    const cx_str *places; /* where first: the number of an event, the line of a file */
    size_t place_count;   /* at most CX_ACTION_PLACES_MAX */
} cx_action_item;

/* The payload of `action.list`; items in the order of their names' bytes. */
void cx_action_list_encode(const cx_action_item *items, size_t count, cx_buf *out);
/* CX_E_FORMAT "NonCanonical"; names borrow from the bytes. */
CX_RESULT cx_action_list_decode(cx_bytes bytes, cx_arena *arena, const cx_action_item **out,
                                size_t *out_count, cx_err *err);

/*
 * The tree over the names that the items stand for: the name of a tool or host itself; of a path
 * each of its ends, as `file:` and as its own kind.  Close it with cx_smt_close.
 */
CX_RESULT cx_action_tree_open(const cx_action_item *items, size_t count, const cx_alloc *alloc,
                              cx_smt **out, cx_err *err);
/* Whether an item stands for the name. */
bool cx_action_item_covers(const cx_action_item *item, cx_str name);
/* The key of a name in normal form; its value is the same digest. */
cx_digest cx_action_key(cx_str name);

/* The payload of `action.set`. */
typedef struct cx_action_set {
    cx_str subject;    /* "run/ID", "session/ID" */
    cx_str actor;      /* whose journal the entry is in */
    uint64_t upto;     /* what the journal had recorded of the subject before this entry counts */
    uint64_t names;    /* in the tree */
    cx_digest root;    /* of the tree */
    uint64_t calls;    /* tool calls */
    uint64_t opaque;   /* of these, such as may touch files and hosts that they do not name */
    uint64_t relative; /* paths that are relative to an unknown folder */
    uint64_t unread;   /* records that could not be read, and may be calls */
} cx_action_set;

void cx_action_set_encode(const cx_action_set *set, cx_buf *out);
/* CX_E_FORMAT "NonCanonical"; text borrows from the bytes. */
CX_RESULT cx_action_set_decode(cx_bytes payload, cx_action_set *out, cx_err *err);

/* --- proofs ----------------------------------------------------------------------------------- */

/* The name is not in the set that this entry records. */
typedef struct cx_never_proof {
    cx_str name; /* in normal form */
    const cx_digest *siblings;
    size_t sibling_count;
    bool has_other;
    cx_digest other;     /* the key whose leaf is where the name's would be */
    cx_bytes inclusion;  /* of the entry action.set, with that entry */
    cx_bytes checkpoint; /* a signed note of that journal; empty = left out */
} cx_never_proof;

void cx_never_proof_encode(const cx_never_proof *proof, cx_buf *out);
/* The container only; CX_E_FORMAT "NonCanonical". */
CX_RESULT cx_never_proof_decode(cx_bytes bytes, cx_arena *arena, cx_never_proof *out, cx_err *err);

/*
 * The name's place is empty in the tree of the set, and the set's entry leads to *out_journal.
 * Reasons: NonCanonical (also a name that is not in normal form), NotActionSet (the entry is of
 * another kind, or its subject does not belong to its actor), ProofMalformed, ActionRootMismatch,
 * and those of cx_inclusion_leads_to.  With `journal`, SizeMismatch and RootMismatch too.
 */
CX_RESULT cx_never_proof_verify(const cx_never_proof *proof, const cx_journal_point *journal,
                                cx_arena *arena, cx_action_set *out_set,
                                cx_journal_point *out_journal, cx_finding *out, cx_err *err);

#endif
