/*
 * attest.c - Attest (ledger.md §10.1): an outcome, the memories it cites, and the update of the
 * weights.
 *
 * `attest` and `learn_weights` are two entries of one commit.  The cited memories' salience and the
 * weights themselves are derived from these two (derive.c), never put here.
 */
#include "memory/internal.h"

typedef struct citations {
    cx_id *ids;
    cx_factors *factors;
    size_t count;
} citations;

static bool is_cited(const citations *list, const cx_id *id)
{
    for (size_t i = 0; i < list->count; i++)
        if (memcmp(list->ids[i].bytes, id->bytes, sizeof id->bytes) == 0)
            return true;
    return false;
}

/* Malformed, missing and tombstoned ones are skipped; duplicates count once. */
static cx_status cite(cx_memory_call *call, cx_str text, int delta, const cx_weights *weights,
                      citations *list, cx_err *err)
{
    cx_uri uri;
    if (cx_failed(cx_memory_uri_parse(text, &uri, NULL)) || is_cited(list, &uri.id))
        return CX_SUCCESS;
    cx_memory_head current;
    bool found = false;
    CX_TRY(cx_memory_find_head(&call->from, &uri.id, &current, &found, err));
    const cx_head *head = &current.head;
    if (!found || head->tombstoned || head->type != uri.type || uri.version > head->current_version)
        return CX_SUCCESS;
    cx_salience salience;
    CX_TRY(cx_memory_salience_at(&call->from, head, &salience, err));
    cx_salience_on_citation(&salience, delta, weights, cx_memory_call_now(call));
    list->factors[list->count] = cx_salience_factors(&salience, cx_memory_call_now(call));
    list->ids[list->count++] = uri.id;
    return CX_SUCCESS;
}

static cx_status put_learning(cx_memory_call *call, uint64_t source_seq, int delta,
                              const cx_weights *weights, const citations *list, cx_str by,
                              bool *out_learned, cx_err *err)
{
    cx_payload payload = {.kind = CX_ENTRY_LEARN_WEIGHTS};
    cx_payload_learn_weights *learn = &payload.as.learn_weights;
    *learn = (cx_payload_learn_weights){.source_seq = source_seq,
                                        .alpha = CX_SALIENCE_ALPHA,
                                        .decrement = delta < 0,
                                        .previous = *weights,
                                        .now = *weights};
    /* Without praise or blame (delta 0) the weights move towards the profile, as with praise. */
    learn->skipped = !cx_weights_learn(weights, list->factors, list->count, delta < 0, &learn->now);
    *out_learned = !learn->skipped;
    return cx_memory_put_entry(call, &payload, by, NULL, NULL, err);
}

static cx_status attest_body(cx_memory_call *call, const cx_memory_attest *attest, cx_str by,
                             cx_memory_attested *out, cx_err *err)
{
    const int delta = cx_attest_delta(attest->outcome, attest->reason);
    citations list = {.ids = CX_ARENA_ARRAY(call->arena, cx_id, attest->cited_count),
                      .factors = CX_ARENA_ARRAY(call->arena, cx_factors, attest->cited_count)};
    if (list.ids == NULL || list.factors == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_memory_rate_check(call, 'a', CX_RATE_ATTEST, CX_STR(""), attest->intent, err));
    cx_weights_record weights;
    CX_TRY(cx_memory_weights_at(&call->from, &weights, err));
    for (size_t i = 0; i < attest->cited_count; i++)
        CX_TRY(cite(call, attest->cited[i], delta, &weights.weights, &list, err));
    const cx_payload payload = {.kind = CX_ENTRY_ATTEST,
                                .as.attest = {.intent = attest->intent,
                                              .outcome = attest->outcome,
                                              .reason = attest->reason,
                                              .cited = list.ids,
                                              .cited_count = list.count}};
    CX_TRY(cx_memory_put_entry(call, &payload, by, NULL, &out->seq, err));
    out->used = list.count;
    if (call->memory->options.request != NULL)
        call->memory->options.request->used = list.count;
    return put_learning(call, out->seq, delta, &weights.weights, &list, by, &out->learned, err);
}

static cx_status check_attest(const cx_memory_attest *attest, cx_str by, cx_err *err)
{
    if (attest->intent.size == 0)
        return cx_fail_at(err, CX_E_USAGE, "EmptyIntent", CX_NO_OFFSET,
                          "an attestation needs an intent");
    if (attest->outcome > 1)
        return cx_fail_at(err, CX_E_USAGE, "InvalidOutcome", CX_NO_OFFSET,
                          "outcome %u, expected 0 (success) or 1 (failure)", attest->outcome);
    if (attest->cited_count == 0)
        return cx_fail_at(err, CX_E_USAGE, "EmptyCitations", CX_NO_OFFSET,
                          "an attestation must cite at least one memory");
    if (attest->cited_count > CX_CITED_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "TooManyCitations", CX_NO_OFFSET,
                          "found %zu citations, expected at most %d", attest->cited_count,
                          CX_CITED_MAX);
    CX_TRY(cx_memory_check_text(attest->intent, "the intent", 1, CX_COMPACT_NAME_MAX, err));
    CX_TRY(cx_memory_check_text(attest->reason, "the reason", 0, CX_REASON_SIZE_MAX, err));
    return cx_memory_check_text(by, "by", 1, CX_MEMORY_BY_SIZE_MAX, err);
}

cx_status cx_memory_attest_outcome(cx_memory *memory, const cx_memory_attest *attest,
                                   cx_memory_attested *out, cx_err *err)
{
    cx_memory_call call;
    cx_memory_attested attested = {0};
    cx_str by = cx_memory_or(attest->by, cx_memory_actor(memory));
    CX_TRY(check_attest(attest, by, err));
    CX_TRY(cx_memory_begin(memory, &call, err));
    CX_TRY(cx_memory_end(&call, attest_body(&call, attest, by, &attested, err), err));
    if (out != NULL)
        *out = attested;
    return CX_SUCCESS;
}
