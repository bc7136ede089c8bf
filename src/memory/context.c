/*
 * context.c - Context (ledger.md §10): the memories that an agent must know, then useful facts.
 *
 * Identity, hard constraints and active goals are complete or the call fails: a context that
 * silently lacks a constraint is worse than none.  Facts fill the rest of the budget.
 */
#include "memory/internal.h"

typedef struct composition {
    cx_memory_hits hits;
    cx_arena scratch;
    uint64_t left;    /* tokens */
    uint64_t missing; /* .. that the mandatory sections need beyond the budget */
    bool must;        /* the current section is mandatory */
} composition;

/* Only hard constraints and active goals. */
static cx_status hit_belongs(composition *c, const cx_memory_view *view, bool *out, cx_err *err)
{
    uint8_t type = view->head.type;
    *out = !view->version.erased;
    if (!*out || (type != CX_TYPE_CONSTRAINT && type != CX_TYPE_GOAL))
        return CX_SUCCESS;
    cx_data data;
    cx_arena_mark mark = cx_arena_mark_now(&c->scratch);
    CX_TRY(cx_data_decode(type, view->version.data.bytes, &c->scratch, &data, err));
    *out = type == CX_TYPE_GOAL ? cx_str_is(data.as.goal.status, "active")
                                : cx_str_is(data.as.constraint.strength, "hard");
    cx_arena_reset(&c->scratch, mark);
    return CX_SUCCESS;
}

static cx_status add_hit(void *arg, const cx_memory_hit *hit, bool *out_take, bool *out_stop,
                         cx_err *err)
{
    composition *c = arg;
    bool wanted = false;
    CX_TRY(hit_belongs(c, &hit->view, &wanted, err));
    uint64_t tokens = cx_tokens_of(hit->view.version.forms.medium);
    if (!wanted)
        return CX_SUCCESS;
    if (tokens > c->left) {
        c->missing += c->must ? tokens - c->left : 0;
        c->left = c->must ? 0 : c->left;
        return CX_SUCCESS;
    }
    c->left -= tokens;
    *out_take = true;
    *out_stop = !c->must && c->left == 0;
    return cx_memory_hits_add(&c->hits, hit, err);
}

/* What the mandatory sections lack is counted, so all of these are looked at. */
static bool may_add_hit(void *arg, const cx_head *head)
{
    const composition *c = arg;
    return c->must || cx_tokens_of(head->forms.medium) <= c->left;
}

static cx_status add_section(composition *c, const cx_memory_search *like, uint8_t type, bool must,
                             cx_err *err)
{
    const cx_memory_find find = {.types = {&type, 1}, .scope = like->find->scope};
    cx_memory_search search = *like;
    search.find = &find;
    c->must = must;
    return cx_memory_search_run(&search, err);
}

static cx_status add_sections(composition *c, const cx_memory_search *like, cx_err *err)
{
    CX_TRY(add_section(c, like, CX_TYPE_IDENTITY, true, err));
    CX_TRY(add_section(c, like, CX_TYPE_CONSTRAINT, true, err));
    CX_TRY(add_section(c, like, CX_TYPE_GOAL, true, err));
    if (c->missing != 0)
        return cx_fail_at(err, CX_E_LIMIT, "BudgetUnreachable", CX_NO_OFFSET,
                          "identity, hard constraints and active goals need at least %llu tokens"
                          " more than the budget",
                          (unsigned long long)c->missing);
    return add_section(c, like, CX_TYPE_FACT, false, err);
}

cx_status cx_memory_context(cx_memory *memory, uint64_t budget_tokens, const cx_scope_use *scope,
                            cx_arena *arena, const cx_memory_hit **out, size_t *out_count,
                            cx_err *err)
{
    uint64_t granted = scope != NULL ? scope->scope.budget_tokens : 0;
    if (granted != 0 && granted < budget_tokens)
        budget_tokens = granted;
    if (budget_tokens == 0 || budget_tokens > CX_CONTEXT_BUDGET_MAX)
        return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET,
                          "a budget of %llu tokens, expected 1 to %d",
                          (unsigned long long)budget_tokens, CX_CONTEXT_BUDGET_MAX);
    composition c = {.hits = {.alloc = memory->alloc}, .left = budget_tokens};
    cx_arena_init(&c.scratch, memory->alloc, 0);
    const cx_memory_find find = {.scope = scope};
    const cx_memory_search like = {.memory = memory,
                                   .find = &find,
                                   .now = cx_memory_now(memory),
                                   .arena = arena,
                                   .hit = add_hit,
                                   .may = may_add_hit,
                                   .arg = &c};
    cx_status status = add_sections(&c, &like, err);
    if (!cx_failed(status))
        status = cx_memory_hits_copy(&c.hits, arena, out, out_count, err);
    cx_memory_hits_done(&c.hits);
    cx_arena_done(&c.scratch);
    return status;
}
