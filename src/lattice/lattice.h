/*
 * lattice.h - what other modules use beyond <cortex/lattice.h>.
 *
 * Every answer comes in the two shapes of the format document: one line of canonical JSON, and
 * text for users.  They are written here, not in the programs, so that the command line and the
 * server say the same.  JSON forms end in LF.
 */
#ifndef CX_LATTICE_LATTICE_H
#define CX_LATTICE_LATTICE_H

#include <cortex/lattice.h>

#include "base/api.h"
#include "json/api.h"

/* As cx_lattice_open, with files through `io`. */
CX_RESULT cx_lattice_open_io(const cx_io *io, const char *path, const cx_lattice_options *options,
                             cx_lattice **out, cx_err *err);

/* Parses a node's source again, all fields with it. Text borrows from the arena. */
CX_RESULT cx_lattice_source(const cx_lattice *lattice, cx_node node, cx_arena *arena, cx_json *out,
                            cx_err *err);

/* The lattice was opened over the bytes of `lines`: from here on they are its own, and `lines` is
 * empty. */
void cx_lattice_keep_bytes(cx_lattice *lattice, cx_buf *lines);

/* --- parts of a history ---------------------------------------------------------------------- */

/* The parents that no node of the lattice is, as their children name them. */
size_t cx_lattice_missing_count(const cx_lattice *lattice);
cx_str cx_lattice_missing(const cx_lattice *lattice, size_t i, cx_node *out_child);
/*
 * As cx_lattice_verify, of a lattice that is a part of a history.  known[i]: the i-th missing
 * parent is a node of the history that is not in this part, which the caller has made sure of; its
 * absence is no finding, and where a node has no parent of the step before it here, its prev_hash
 * must be one of its parents.  NULL = none is known.
 */
CX_RESULT cx_lattice_verify_part(const cx_lattice *lattice, const cx_lattice_checks *checks,
                                 const bool *known, cx_lattice_report **out, cx_err *err);

/* --- hashing, for writers (§3, §5.1) -------------------------------------------------------- */

typedef struct cx_lattice_fields {
    cx_str prev_hash;
    const cx_json *event;
    int64_t seq;
    cx_str agent_id;
    cx_str schema_version;
    const cx_str *parents; /* in any order */
    size_t parent_count;
} cx_lattice_fields;

/* Appends the pre-image of a node's hash (§3.1); CX_E_FORMAT when event has no canonical form. */
CX_RESULT cx_lattice_preimage(cx_buf *out, const cx_lattice_fields *fields, cx_err *err);
/* Appends the pre-image of a seal (§5.1); fork_type.data NULL = null; timestamp a number. */
CX_RESULT cx_lattice_seal_preimage(cx_buf *out, cx_str fork_type, const cx_json *state_delta,
                                   const cx_json *timestamp, cx_err *err);

/* --- verify, anchor -------------------------------------------------------------------------- */

CX_RESULT cx_lattice_report_json(cx_buf *out, const cx_lattice *lattice,
                                 const cx_lattice_report *report, cx_err *err);

/* The text form of §4.1; colour by ANSI codes when asked; compare part when both agents are given
 * (CX_E_NOT_FOUND when one is unknown). */
typedef struct cx_lattice_text_options {
    bool colour;
    bool details;          /* expected and found after each finding */
    const cx_str *compare; /* two agents, or NULL */
} cx_lattice_text_options;

CX_RESULT cx_lattice_report_text(cx_buf *out, const cx_lattice *lattice,
                                 const cx_lattice_report *report,
                                 const cx_lattice_text_options *options, cx_err *err);

/* The anchor of §5.2 as JSON.  Needs keep_seals. */
CX_RESULT cx_lattice_anchor_json(cx_buf *out, const cx_lattice *lattice, cx_err *err);
/* Reads one; heads live in the arena. */
CX_RESULT cx_lattice_anchor_parse(cx_str text, cx_arena *arena, cx_lattice_anchor *out,
                                  cx_err *err);

/* Whether an event, which may be NULL, says that something failed: an error of the debugger, of the
 * search and of lists. */
bool cx_lattice_failed_event(const cx_json *event);

/* §4.2: appends the printout; *out_failed = failing cases. */
CX_RESULT cx_lattice_selftest(cx_buf *out, unsigned *out_failed, cx_err *err);

/* --- states, why, heatmap, compare, bisect (§6-§8) ------------------------------------------- */

/* Only for these nodes and their ancestors; states of others cannot be asked for. */
CX_RESULT cx_states_open_for(const cx_lattice *lattice, const cx_state_options *options,
                             const cx_node *targets, size_t target_count, cx_states **out,
                             cx_err *err);

/* The role of an agent, where its nodes do not say it. */
typedef struct cx_agent_role {
    cx_str agent, role;
} cx_agent_role;
/*
 * In options->priorities those of "role:ROLE" are replaced by those of the agents that have the
 * role: by `roles`, else by `agent_role` in the event of their newest node.  An agent's own
 * priority stays.  The new list lives in the arena.
 */
CX_RESULT cx_lattice_resolve_roles(const cx_lattice *lattice, const cx_agent_role *roles,
                                   size_t role_count, cx_arena *arena, cx_state_options *options,
                                   cx_err *err);

/* Appends the canonical JSON of the state after (or, inherited, before the own delta of) a node. */
CX_RESULT cx_states_write(const cx_states *states, cx_node node, bool inherited, cx_buf *out,
                          cx_err *err);
/* Appends the canonical value of one pointer (RFC 6901) into a state; CX_E_NOT_FOUND when absent.
 */
CX_RESULT cx_states_write_at(const cx_states *states, cx_node node, cx_str pointer, cx_buf *out,
                             cx_err *err);

/* The JSON answers of §8; `verified` is what verification said.  Text forms likewise. */
typedef struct cx_answer_options {
    bool verified;
    bool json; /* else text for users */
    bool colour;
    bool allow_absent; /* why: no changes are an answer, too */
    bool reasons;      /* why: with what the event of a change says, and its source */
} cx_answer_options;

CX_RESULT cx_lattice_answer_state(cx_buf *out, const cx_states *states, cx_node node,
                                  bool inherited, const cx_answer_options *options, cx_err *err);
/*
 * section: "memory", "beliefs", or empty for both.  key: a top-level key, "memory.order.limit", or
 * a JSON pointer into the state.  CX_E_NOT_FOUND "NoKey" when it was never there; the message names
 * the nearest keys.
 */
CX_RESULT cx_lattice_answer_why(cx_buf *out, const cx_states *states, cx_node node, cx_str key,
                                cx_str section, const cx_answer_options *options, cx_err *err);
/*
 * Where a text was said: every node among `node` and its ancestors whose content has it, oldest
 * first, white space aside.  CX_E_NOT_FOUND "NotSaid", with what is nearest.
 */
CX_RESULT cx_lattice_answer_said(cx_buf *out, const cx_lattice *lattice, cx_node node, cx_str text,
                                 const cx_answer_options *options, cx_err *err);
/* What a node reached: its descendants, and those of them that carry its text or its call. */
CX_RESULT cx_lattice_answer_reach(cx_buf *out, const cx_lattice *lattice, cx_node node,
                                  const cx_answer_options *options, cx_err *err);
/*
 * Nodes whose content has all words, in any case of ASCII letters, in topological order; at most
 * `most` of them.  *out_count = all of them.
 */
CX_RESULT cx_lattice_answer_grep(cx_buf *out, const cx_lattice *lattice, const cx_str *words,
                                 size_t word_count, uint32_t most, const cx_answer_options *options,
                                 uint32_t *out_count, cx_err *err);
CX_RESULT cx_lattice_answer_heatmap(cx_buf *out, const cx_lattice *lattice,
                                    const cx_answer_options *options, cx_err *err);
CX_RESULT cx_lattice_answer_compare(cx_buf *out, const cx_states *states, cx_str agent_a,
                                    cx_str agent_b, const cx_answer_options *options, cx_err *err);
/* Of two nodes. */
CX_RESULT cx_lattice_answer_compare_nodes(cx_buf *out, const cx_states *states,
                                          const cx_node nodes[2], const cx_answer_options *options,
                                          cx_err *err);
CX_RESULT cx_lattice_answer_heads(cx_buf *out, const cx_lattice *lattice,
                                  const cx_answer_options *options, cx_err *err);
CX_RESULT cx_lattice_answer_show(cx_buf *out, const cx_lattice *lattice, cx_node node,
                                 const cx_answer_options *options, cx_err *err);

/*
 * A predicate over a state: POINTER, then nothing (is there), `=VALUE`, `!=VALUE`, `<N`, `<=N`,
 * `>N`, `>=N` (numbers), `~TEXT` (string holds it); VALUE is JSON, or text when it is no JSON.
 */
typedef struct cx_predicate {
    cx_str pointer;
    enum {
        CX_PREDICATE_THERE,
        CX_PREDICATE_EQ,
        CX_PREDICATE_NE,
        CX_PREDICATE_LT,
        CX_PREDICATE_LE,
        CX_PREDICATE_GT,
        CX_PREDICATE_GE,
        CX_PREDICATE_HAS
    } op;
    cx_json value;
} cx_predicate;

CX_RESULT cx_predicate_parse(cx_str text, cx_arena *arena, cx_predicate *out, cx_err *err);
/*
 * First node on the lineage path from genesis to `node` whose state makes the predicate true, and
 * every later node where it turns: answers come as JSON or text.
 */
CX_RESULT cx_lattice_answer_bisect(cx_buf *out, const cx_states *states, cx_node node,
                                   const cx_predicate *predicate, const cx_answer_options *options,
                                   cx_err *err);

/* --- pictures -------------------------------------------------------------------------------- */

typedef enum cx_render_form {
    CX_RENDER_TERMINAL,
    CX_RENDER_SVG,
    CX_RENDER_DOT,
    CX_RENDER_JSON
} cx_render_form;

typedef struct cx_render_options {
    cx_render_form form;
    bool colour;                     /* terminal */
    unsigned columns;                /* terminal width; 0 = 100 */
    uint32_t max_nodes;              /* window; 0 = all for SVG/DOT/JSON, 200 for the terminal */
    uint32_t first;                  /* first row of the window, in topological order */
    const cx_lattice_report *report; /* NULL, or marks nodes with findings */
    bool ascii;                      /* terminal: nothing beyond U+007E */
    bool fold;                       /* quiet stretches of one agent become one row */
    bool no_labels;                  /* does not read events again */
} cx_render_options;

CX_RESULT cx_lattice_render(cx_buf *out, const cx_lattice *lattice,
                            const cx_render_options *options, cx_err *err);

#endif
