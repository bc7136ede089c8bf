/*
 * session.h - sessions in the ledger: limits, approvals, and what happened (docs/formats/live.md
 * §2, §5).
 *
 * A session's journal is its actor `session:AGENT:ID`.  Records next to the entries:
 *
 *     live/policy            the policy as it holds now, limits included
 *     live/last              {newest entry of each kind, counts}
 *     live/asked/<32>        an input that waits for an approval: the decision's entry
 *     live/approved/<32>     its approval: the entry, and how often it counts
 */
#ifndef CX_LIVE_SESSION_H
#define CX_LIVE_SESSION_H

#include "live/live.h"
#include "live/policy.h"

#define CX_LIVE_ACTOR_PREFIX "session:"

/* "session:claude-code:ID".  CX_E_FORMAT when the id is empty or too long. */
CX_RESULT cx_live_actor(cx_live_agent agent, cx_str session, cx_arena *arena, cx_str *out,
                        cx_err *err);
/* Whether an actor's journal is a session's; the parts, when asked for (may be NULL), are
 * unescaped into the arena. */
bool cx_live_actor_is_session(cx_str actor);
CX_RESULT cx_live_actor_split(cx_str actor, cx_arena *arena, cx_str *out_agent, cx_str *out_session,
                              cx_err *err);

typedef struct cx_live_session {
    cx_str actor, agent, session, cwd, transcript;
    cx_live_mode mode;
    bool ended;
    uint64_t calls, denied, asked; /* decisions; of them */
    int64_t started_ns, latest_ns;
    cx_str policy_from, contract_task;
} cx_live_session;

/* Sessions in the order of their latest entry, newest first; memory from the arena. */
CX_RESULT cx_live_sessions(cx_home *home, cx_arena *arena, const cx_live_session **out,
                           size_t *out_count, cx_err *err);
/* One by its actor, its id, or the first digits of its id.  CX_E_NOT_FOUND, CX_E_CONFLICT
 * "Ambiguous". */
CX_RESULT cx_live_session_find(cx_home *home, cx_str name, cx_arena *arena, cx_live_session *out,
                               cx_err *err);

/* One by its actor alone, whatever the number of actors; `*out_found` false: there is none. */
CX_RESULT cx_live_session_read(cx_home *home, cx_str actor, cx_arena *arena, cx_live_session *out,
                               bool *out_found, cx_err *err);
/* The record that is kept next to a session's entries, as a log has it; `actor` is not set. */
#define CX_LIVE_SESSION_KEY CX_STR("live/session")
CX_RESULT cx_live_session_decode(cx_bytes bytes, cx_arena *arena, cx_live_session *out,
                                 cx_err *err);
/* Its policy as it holds now, limits included; false when nothing was recorded of it yet. */
CX_RESULT cx_live_session_policy(cx_home *home, cx_str actor, cx_arena *arena, cx_live_policy *out,
                                 bool *out_found, cx_err *err);
/* Ends `payload` and appends it as an entry. */
CX_RESULT cx_live_add_entry(cx_txn *txn, cx_dotted_kind kind, int64_t now_ns, const char *by,
                            cx_json_list *payload, uint64_t *out_seq, cx_err *err);

/* Narrows a session; recorded, and in force from the next call on. */
CX_RESULT cx_live_session_limit(cx_home *home, cx_str actor, const cx_live_limit *limit, cx_str by,
                                cx_live_policy *out, cx_arena *arena, uint64_t *out_seq,
                                cx_err *err);

typedef struct cx_live_approval {
    cx_str tool;
    cx_digest input_sha256;
    bool allow;
    bool whole_session; /* else it counts once */
    cx_str by, reason;
} cx_live_approval;
CX_RESULT cx_live_session_approve(cx_home *home, cx_str actor, const cx_live_approval *approval,
                                  uint64_t *out_seq, cx_err *err);

/* What waits for an approval, oldest first. */
typedef struct cx_live_asked {
    cx_str tool, text, why;
    cx_digest input_sha256;
    uint64_t seq;
    int64_t at_ns;
} cx_live_asked;
CX_RESULT cx_live_session_asked(cx_home *home, cx_str actor, cx_arena *arena,
                                const cx_live_asked **out, size_t *out_count, cx_err *err);

#endif
