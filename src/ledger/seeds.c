/*
 * seeds.c - the D11 seed of a compilation over an actor's state (ledger.md §9.2).
 */
#include "ledger/seeds.h"

#include "base/api.h"
#include "ledger/handle.h"
#include "ledger/snapshot.h"

static cx_status find_root(cx_home *home, cx_str actor, const cx_seed_question *question,
                           cx_arena *arena, cx_seed_answer *out, cx_err *err)
{
    cx_manifest manifest;
    cx_roots roots;
    cx_err why;
    if (question->at) {
        CX_TRY(cx_snapshot_get(home, actor, question->snapshot, arena, &manifest, NULL, err));
        out->overall_root = manifest.overall_root;
        out->has_snapshot = true;
        out->snapshot = question->snapshot;
        return CX_SUCCESS;
    }
    CX_TRY(cx_home_roots(home, actor, &roots, err));
    out->overall_root = roots.overall;
    cx_status status =
        cx_snapshot_by_root(home, actor, &roots.overall, arena, &manifest, NULL, &why);
    out->has_snapshot = !cx_failed(status);
    if (out->has_snapshot)
        out->snapshot = manifest.snapshot_seq;
    if (!cx_failed(status) || status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (err != NULL)
        *err = why;
    return status;
}

cx_status cx_seed_over(cx_home *home, cx_str actor, const cx_seed_question *question,
                       cx_arena *arena, cx_seed_answer *out, cx_err *err)
{
    cx_actor_info info;
    *out = (cx_seed_answer){.has_snapshot = false};
    CX_TRY(cx_home_actor(home, actor, &info, err));
    CX_TRY(find_root(home, actor, question, arena, out, err));
    out->scheme = info.scheme;
    const cx_seed_input input = {.intent_id = question->intent_id,
                                 .actor = actor,
                                 .overall_root = &out->overall_root,
                                 .mtx_digest = question->mtx_digest,
                                 .model_id = question->model_id};
    return cx_seed_make(info.scheme, &input, out->seed, err);
}

/* --- the installed call (cortex/journal.h) ---------------------------------------------------- */

static cx_status seed_in(cx_ledger *ledger, const char *actor, const cx_ledger_seed_input *input,
                         cx_arena *arena, cx_seed_answer *out, cx_err *err)
{
    cx_seed_question question = {.at = input->at, .snapshot = input->snapshot};
    cx_str name;
    CX_TRY(cx_api_text(actor, "the actor", &name, err));
    CX_TRY(cx_api_text(input->intent_id, "the intent's id", &question.intent_id, err));
    CX_TRY(cx_api_text(input->mtx_digest, "mtx_digest", &question.mtx_digest, err));
    CX_TRY(cx_api_text(input->model_id, "the model's id", &question.model_id, err));
    return cx_seed_over(ledger->home, name, &question, arena, out, err);
}

cx_status cx_ledger_seed(cx_ledger *ledger, const char *actor, const cx_ledger_seed_input *input,
                         char out_seed[CX_LEDGER_SEED_SIZE], cx_digest *out_root, cx_err *err)
{
    cx_arena arena;
    cx_seed_answer answer;
    cx_arena_init(&arena, ledger->alloc, 0);
    cx_status status = seed_in(ledger, actor, input, &arena, &answer, err);
    cx_arena_done(&arena);
    if (cx_failed(status))
        return status;
    memcpy(out_seed, answer.seed, CX_SEED_SIZE);
    out_seed[CX_SEED_SIZE] = 0;
    if (out_root != NULL)
        *out_root = answer.overall_root;
    return CX_SUCCESS;
}
