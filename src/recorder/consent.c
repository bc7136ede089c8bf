/*
 * consent.c - consent that was revoked, and what a sender is told about consent (trace.md §11,
 * decision 0026).
 *
 * trace.consent in the journal `consents`, canonical JSON: agent, by, reason, revoked_at (ns).  The
 * record consent/<agent> next to it is the same bytes; the last one counts.
 */
#include "recorder/internal.h"

#include "crypto/api.h"

#define CONSENT_PREFIX "consent/"

static cx_bytes consent_key(cx_str agent, char out[sizeof CONSENT_PREFIX + CX_ACTOR_SIZE_MAX])
{
    size_t size = sizeof CONSENT_PREFIX - 1;
    CX_ASSERT(agent.size <= CX_ACTOR_SIZE_MAX);
    memcpy(out, CONSENT_PREFIX, size);
    if (agent.size != 0)
        memcpy(out + size, agent.data, agent.size);
    return cx_str_bytes(cx_str_from(out, size + agent.size));
}

/* --- revoking --------------------------------------------------------------------------------- */

static cx_status add_revocation(cx_txn *txn, const cx_consent_revocation *revocation,
                                int64_t now_ns, cx_buf *payload, cx_err *err)
{
    char key[sizeof CONSENT_PREFIX + CX_ACTOR_SIZE_MAX];
    cx_json value;
    uint64_t seq;
    cx_json_list json = cx_json_list_begin(cx_txn_arena(txn));
    cx_json_put_str(&json, "agent", revocation->agent);
    cx_json_put_str(&json, "by", revocation->by);
    cx_json_put_str(&json, "reason", revocation->reason);
    cx_json_put_int(&json, "revoked_at", revocation->revoked_ns);
    CX_TRY(cx_json_list_end_object(&json, &value, err));
    CX_TRY(cx_json_write(payload, &value, CX_JSON_PY_COMPACT, err));
    CX_TRY(cx_buf_check(payload, err));
    const cx_entry_draft draft = {.kind = cx_kinds_name(CX_KIND_TRACE_CONSENT),
                                  .created_at_ns = now_ns,
                                  .created_by = cx_str_bytes(revocation->by),
                                  .payload = cx_buf_bytes(payload)};
    CX_TRY(cx_txn_entry(txn, &draft, &seq, err));
    return cx_txn_put(txn, consent_key(revocation->agent, key), cx_buf_bytes(payload), false, err);
}

cx_status cx_recorder_consent_revoke(cx_recorder *recorder, const cx_consent_revocation *revocation,
                                     cx_err *err)
{
    cx_txn *txn;
    cx_buf payload;
    if (revocation->agent.size == 0 || revocation->agent.size > CX_ACTOR_SIZE_MAX ||
        !cx_utf8_valid(revocation->agent) || cx_kinds_journal_is_own(revocation->agent))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "found '%.*s', expected the agent_id_hash of an agent",
                          revocation->agent.size > 80 ? 80 : (int)revocation->agent.size,
                          revocation->agent.data);
    if (revocation->reason.size == 0 || revocation->reason.size > CX_HOLD_REASON_MAX ||
        !cx_utf8_valid(revocation->reason))
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "the reason has %zu bytes, expected 1 to %d of UTF-8",
                          revocation->reason.size, CX_HOLD_REASON_MAX);
    CX_TRY(cx_txn_begin(recorder->home, CX_STR(CX_CONSENTS_ACTOR), &txn, err));
    cx_buf_init(&payload, recorder->alloc);
    cx_status status = add_revocation(txn, revocation, cx_recorder_now(recorder), &payload, err);
    cx_buf_done(&payload);
    if (!cx_failed(status))
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}

/* --- asking ----------------------------------------------------------------------------------- */

cx_status cx_recorder_consent_revoked(cx_recorder *recorder, cx_str agent, cx_arena *arena,
                                      int64_t *out_ns, cx_err *err)
{
    char key[sizeof CONSENT_PREFIX + CX_ACTOR_SIZE_MAX];
    cx_bytes bytes;
    cx_json json;
    cx_err own = {0};
    bool found = false;
    *out_ns = CX_TIME_NONE;
    if (agent.size == 0 || agent.size > CX_ACTOR_SIZE_MAX)
        return CX_SUCCESS;
    cx_status status = cx_home_get(recorder->home, CX_STR(CX_CONSENTS_ACTOR),
                                   consent_key(agent, key), arena, &bytes, &found, &own);
    if (status.code == CX_E_NOT_FOUND) /* no such journal: nothing was ever revoked */
        return CX_SUCCESS;
    if (cx_failed(status)) {
        if (err != NULL)
            *err = own;
        return status;
    }
    if (!found)
        return CX_SUCCESS;
    CX_TRY(cx_json_parse_text(cx_bytes_str(bytes), arena, &json, err));
    const cx_json *at = CX_JSON_GET(&json, "revoked_at");
    if (at != NULL)
        (void)cx_json_int64(at, out_ns);
    return CX_SUCCESS;
}
