/*
 * find.c - Find (ledger.md §10): memories by type, tag, frame, edge, words, similarity and member,
 * most salient first.
 *
 * F1  A Find is bounded: by the index it scans (type, tag, edge, word, vector) and by the number of
 *     results.  Its memory does not grow with the index.
 * F2  Under a scope every record read is the pinned snapshot's; the indexes, which are current,
 *     only supply candidates, and never too few.
 * F3  Results are ordered by salience (with `near`: similarity) descending, then by id, so the
 *     order is deterministic.
 *
 * Candidates come from an index (search/candidates.c) and are ranked by their heads; the best of
 * them (search/best.c) are then read one by one in that order: the expensive parts (versions,
 * members) are read only for possible results.  Where these do not suffice and there are more, all
 * are ranked again for those that come after them, and now only what matches in every respect is
 * ranked.
 */
#include "memory/internal.h"
#include "memory/search/best.h"
#include "memory/search/candidates.h"

typedef struct finder {
    const cx_memory_search *search;
    const cx_memory_find *find;
    cx_memory *memory;
    cx_arena scratch;
    cx_memory_source from; /* into the scratch arena */
    cx_weights weights;
    cx_words_query query; /* of find->text */
    cx_best best;
    bool strict;         /* not the first pass: what does not match is not ranked */
    CX_VEC(cx_id) taken; /* in former passes */
} finder;

/* --- what is asked --------------------------------------------------------------------------- */

static cx_status fail_invalid(cx_err *err, const char *why)
{
    return cx_fail_at(err, CX_E_USAGE, "InvalidArgument", CX_NO_OFFSET, "%s", why);
}

static bool op_is_known(cx_str op)
{
    static const char *const ops[] = {"=", "!=", "<", "<=", ">", ">=", "contains"};
    for (size_t i = 0; i < CX_COUNT_OF(ops); i++)
        if (cx_str_is(op, ops[i]))
            return true;
    return false;
}

static cx_status check_find(const cx_memory_find *find, cx_err *err)
{
    if (find->types.size == 0 && find->tag_count == 0 && find->from == NULL && find->near == NULL &&
        find->text.size == 0)
        return fail_invalid(err, "a find needs at least one of type, tag, text, from, near");
    if (find->limit == 0 && find->budget_tokens == 0)
        return fail_invalid(err, "a find needs a limit or a budget of tokens");
    if (find->limit > CX_FIND_LIMIT_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "InvalidArgument", CX_NO_OFFSET,
                          "limit %zu, expected at most %d", find->limit, CX_FIND_LIMIT_MAX);
    for (size_t i = 0; i < find->types.size; i++)
        if (find->types.data[i] < CX_TYPE_MIN || find->types.data[i] > CX_TYPE_MAX)
            return cx_fail_at(err, CX_E_USAGE, "InvalidType", CX_NO_OFFSET,
                              "memory type %u, expected %d to %d", find->types.data[i], CX_TYPE_MIN,
                              CX_TYPE_MAX);
    if (find->frame_verb > CX_VERB_MAX)
        return fail_invalid(err, "unknown verb of a frame");
    if (find->follow > CX_EDGE_TYPE_MAX)
        return cx_fail_at(err, CX_E_USAGE, "InvalidEdgeType", CX_NO_OFFSET,
                          "edge type %u, expected 1 to %d", find->follow, CX_EDGE_TYPE_MAX);
    if (find->field.size != 0 && !op_is_known(find->field_op))
        return fail_invalid(err,
                            "expected one of = != < <= > >= contains between member and value");
    if (find->near != NULL)
        CX_TRY(cx_near_check(find->near, find->near_dim, err));
    CX_TRY(cx_memory_check_text(find->text, "the text", 0, CX_REASON_SIZE_MAX, err));
    CX_TRY(cx_memory_check_text(find->predicate, "the predicate", 0, CX_REASON_SIZE_MAX, err));
    return cx_memory_check_tags(find->tags, find->tag_count, err);
}

/* --- filters --------------------------------------------------------------------------------- */

static bool has_tag(const cx_head *head, cx_str tag)
{
    for (size_t i = 0; i < head->tag_count; i++)
        if (cx_str_eq(head->tags[i], tag))
            return true;
    return false;
}

static bool has_frame(const cx_head *head, uint8_t verb, cx_str ref)
{
    for (size_t i = 0; i < head->frame_count; i++)
        if ((verb == 0 || head->frames[i].verb == verb) &&
            (ref.size == 0 || cx_str_eq(head->frames[i].ref, ref)))
            return true;
    return false;
}

static bool head_fits(const cx_memory_find *find, const cx_head *head)
{
    if (head->tombstoned && !find->with_tombstoned)
        return false;
    if (find->types.size != 0 && memchr(find->types.data, head->type, find->types.size) == NULL)
        return false;
    for (size_t i = 0; i < find->tag_count; i++)
        if (!has_tag(head, find->tags[i]))
            return false;
    if ((find->frame_verb != 0 || find->frame_ref.size != 0) &&
        !has_frame(head, find->frame_verb, find->frame_ref))
        return false;
    return find->scope == NULL || cx_scope_use_allows(find->scope, head);
}

static bool read_number(cx_str text, cx_arena *arena, double *out)
{
    cx_json value;
    return !cx_failed(cx_json_parse_text(text, arena, &value, NULL)) && cx_json_double(&value, out);
}

static bool order_fits(cx_str op, int order)
{
    if (cx_str_is(op, "="))
        return order == 0;
    if (cx_str_is(op, "!="))
        return order != 0;
    if (cx_str_is(op, "<"))
        return order < 0;
    if (cx_str_is(op, "<="))
        return order <= 0;
    if (cx_str_is(op, ">"))
        return order > 0;
    return order >= 0;
}

static bool text_fits(finder *f, cx_str text)
{
    const cx_memory_find *find = f->find;
    double left, right;
    if (cx_str_is(find->field_op, "contains"))
        return find->field_value.size == 0 ||
               (text.size != 0 && memmem(text.data, text.size, find->field_value.data,
                                         find->field_value.size) != NULL);
    if (read_number(text, &f->scratch, &left) &&
        read_number(find->field_value, &f->scratch, &right))
        return order_fits(find->field_op, (left > right) - (left < right));
    return order_fits(find->field_op, cx_str_cmp(text, find->field_value));
}

/* An absent member matches nothing. */
static cx_status member_fits(finder *f, const cx_memory_view *view, bool *out, cx_err *err)
{
    *out = true;
    if (f->find->field.size == 0)
        return CX_SUCCESS;
    *out = false;
    if (view->version.erased)
        return CX_SUCCESS;
    cx_data data;
    cx_buf text;
    CX_TRY(cx_data_decode(view->head.type, view->version.data.bytes, &f->scratch, &data, err));
    cx_buf_init(&text, f->memory->alloc);
    bool there = cx_data_member_text(&data, f->find->field, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status) && there)
        *out = text_fits(f, cx_buf_str(&text));
    cx_buf_done(&text);
    return status;
}

cx_status cx_memory_version_words(const cx_version_record *version, cx_words *words, cx_err *err)
{
    cx_data data;
    cx_err why;
    cx_buf text;
    if (version->erased)
        return CX_SUCCESS;
    CX_TRY(cx_words_add(words, version->forms.brief, err));
    CX_TRY(cx_words_add(words, version->forms.medium, err));
    cx_status status =
        cx_data_decode(version->type, version->data.bytes, words->arena, &data, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (!cx_failed(status)) { /* data that cannot be read has no words */
        cx_buf_init(&text, words->arena->alloc);
        cx_forms_full(&data, &text);
        status = cx_buf_check(&text, err);
        if (!cx_failed(status))
            status = cx_words_add(words, cx_buf_str(&text), err);
        cx_buf_done(&text);
        CX_TRY(status);
    }
    cx_words_unite(words);
    return CX_SUCCESS;
}

static cx_status words_fit(finder *f, const cx_memory_view *view, bool *out, cx_err *err)
{
    cx_words words = {.arena = &f->scratch};
    if (f->find->text.size == 0 || !*out)
        return CX_SUCCESS;
    CX_TRY(cx_memory_version_words(&view->version, &words, err));
    *out = cx_words_match(&f->query, &words);
    return CX_SUCCESS;
}

/* --- ranking and showing --------------------------------------------------------------------- */

static cx_status salience_now(finder *f, const cx_head *head, float *out, cx_err *err)
{
    cx_salience salience;
    *out = 0.0f;
    if (head->tombstoned)
        return CX_SUCCESS;
    CX_TRY(cx_memory_salience_at(&f->from, head, &salience, err));
    *out = cx_salience_score(&salience, &f->weights, f->search->now);
    return CX_SUCCESS;
}

/* The similarity of its vector, if it has one of that size for a version that may be read. */
static cx_status similarity_to_vector(finder *f, const cx_head *head, float *out, bool *out_fits,
                                      cx_err *err)
{
    cx_memory_source current = f->from;
    current.pinned = NULL;
    cx_memory_key key = cx_memory_key_of("vec/meta/", &head->id);
    cx_bytes bytes;
    bool found = false;
    *out_fits = false;
    CX_TRY(cx_memory_fetch(&current, cx_memory_key_bytes(&key), &bytes, &found, err));
    if (!found)
        return CX_SUCCESS;
    cx_vector vector;
    CX_TRY(cx_vector_decode(bytes, &f->scratch, &vector, err));
    if (vector.dim != f->find->near_dim || vector.source_version > head->current_version)
        return CX_SUCCESS;
    *out = cx_near_score(f->find->near, vector.values, f->find->near_dim, CX_NEAR_COSINE);
    *out_fits = true;
    return CX_SUCCESS;
}

static bool may_match(const finder *f, const cx_head *head)
{
    return head_fits(f->find, head) && f->search->may(f->search->arg, head);
}

/* Whether its salience alone shows that it is not among the best: a dead memory's is even lower. */
static cx_status salience_is_low(finder *f, const cx_id *id, bool *out, cx_err *err)
{
    cx_salience salience;
    bool found = false;
    *out = false;
    if (!f->best.cut)
        return CX_SUCCESS; /* nothing is */
    CX_TRY(cx_memory_find_salience(&f->from, id, &salience, &found, err));
    *out = found &&
           cx_best_is_low(&f->best, id, cx_salience_score(&salience, &f->weights, f->search->now));
    return CX_SUCCESS;
}

static cx_status rank_by_salience(finder *f, const cx_id *id, float *out, bool *out_keep,
                                  cx_err *err)
{
    cx_memory_head head;
    bool low = false, found = false;
    CX_TRY(salience_is_low(f, id, &low, err));
    if (low)
        return CX_SUCCESS;
    CX_TRY(cx_memory_find_head(&f->from, id, &head, &found, err));
    *out_keep = found && may_match(f, &head.head);
    return *out_keep ? salience_now(f, &head.head, out, err) : CX_SUCCESS;
}

static cx_status rank_by_similarity(finder *f, const cx_id *id, float similarity, float *out,
                                    bool *out_keep, cx_err *err)
{
    cx_memory_head head;
    *out = similarity; /* where the vectors were read, the rest is looked at in order */
    *out_keep = true;
    if (f->find->from == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_memory_find_head(&f->from, id, &head, out_keep, err));
    *out_keep = *out_keep && may_match(f, &head.head);
    return *out_keep ? similarity_to_vector(f, &head.head, out, out_keep, err) : CX_SUCCESS;
}

/* Reads the memory again, into an arena: it may have changed since it was ranked. */
static cx_status make_hit(finder *f, const cx_id *id, cx_arena *arena, cx_memory_hit *out,
                          bool *out_fits, cx_err *err)
{
    cx_memory_source from = f->from;
    cx_memory_head head;
    bool found = false;
    *out_fits = false;
    from.arena = arena;
    CX_TRY(cx_memory_find_head(&from, id, &head, &found, err));
    if (!found || !head_fits(f->find, &head.head))
        return CX_SUCCESS;
    cx_memory_hit hit = {.similarity = 0.0f};
    CX_TRY(cx_memory_make_view(&from, &head, head.head.current_version, &hit.view, err));
    hit.view.expired = cx_memory_is_expired(&hit.view.version, f->search->now);
    if (hit.view.expired && !f->find->with_expired)
        return CX_SUCCESS;
    CX_TRY(member_fits(f, &hit.view, out_fits, err));
    CX_TRY(words_fit(f, &hit.view, out_fits, err));
    if (*out_fits && f->find->near != NULL)
        CX_TRY(similarity_to_vector(f, &head.head, &hit.similarity, out_fits, err));
    if (*out_fits)
        CX_TRY(salience_now(f, &head.head, &hit.salience, err));
    *out = hit;
    return CX_SUCCESS;
}

static cx_status rank_candidate(void *arg, const cx_id *id, float similarity, cx_err *err)
{
    finder *f = arg;
    cx_memory_hit hit;
    float rank = 0.0f;
    bool keep = false;
    if (f->find->near != NULL)
        CX_TRY(rank_by_similarity(f, id, similarity, &rank, &keep, err));
    else
        CX_TRY(rank_by_salience(f, id, &rank, &keep, err));
    if (!keep || !cx_best_wants(&f->best, id, rank))
        return CX_SUCCESS;
    if (f->strict)
        CX_TRY(make_hit(f, id, &f->scratch, &hit, &keep, err));
    return keep ? cx_best_add(&f->best, id, rank, err) : CX_SUCCESS;
}

static bool was_taken(const finder *f, const cx_id *id)
{
    for (size_t i = 0; i < f->taken.count; i++)
        if (memcmp(f->taken.items[i].bytes, id->bytes, sizeof id->bytes) == 0)
            return true;
    return false;
}

/* Where another pass follows, a memory whose rank falls meanwhile would come again. */
static cx_status note_taken(finder *f, const cx_id *id, cx_err *err)
{
    if (!f->best.cut)
        return CX_SUCCESS;
    cx_id *slot = cx_vec_push(&f->taken, f->memory->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *id;
    return CX_SUCCESS;
}

static cx_status show_ranked(finder *f, const cx_id *id, bool *out_stop, cx_err *err)
{
    const cx_memory_search *search = f->search;
    cx_arena_mark scratch = cx_arena_mark_now(&f->scratch);
    cx_arena_mark mark = cx_arena_mark_now(search->arena);
    cx_memory_hit hit;
    bool fits = false, take = false;
    CX_TRY(make_hit(f, id, search->arena, &hit, &fits, err));
    if (fits)
        CX_TRY(search->hit(search->arg, &hit, &take, out_stop, err));
    if (!take)
        cx_arena_reset(search->arena, mark);
    cx_arena_reset(&f->scratch, scratch);
    return take ? note_taken(f, id, err) : CX_SUCCESS;
}

static cx_status run_pass(finder *f, bool *out_stop, cx_err *err)
{
    const cx_candidates candidates = {
        .find = f->find, .words = &f->query, .from = &f->from, .each = rank_candidate, .arg = f};
    CX_TRY(cx_memory_candidates(&candidates, err));
    cx_best_end(&f->best);
    const size_t before = f->taken.count;
    for (size_t i = 0; i < f->best.items.count && !*out_stop; i++)
        if (before == 0 || !was_taken(f, &f->best.items.items[i].id))
            CX_TRY(show_ranked(f, &f->best.items.items[i].id, out_stop, err));
    return CX_SUCCESS;
}

static cx_status run_find(finder *f, cx_err *err)
{
    cx_weights_record weights;
    bool stop = false;
    CX_TRY(cx_memory_weights_at(&f->from, &weights, err));
    f->weights = weights.weights;
    if (f->find->text.size != 0)
        CX_TRY(cx_words_query_parse(f->find->text, &f->scratch, &f->query, err));
    cx_best_begin(&f->best, NULL);
    CX_TRY(run_pass(f, &stop, err));
    while (!stop && f->best.cut) {
        const cx_ranked last = f->best.last;
        f->strict = true;
        cx_best_begin(&f->best, &last);
        CX_TRY(run_pass(f, &stop, err));
    }
    return CX_SUCCESS;
}

cx_status cx_memory_search_run(const cx_memory_search *search, cx_err *err)
{
    finder f = {.search = search, .find = search->find, .memory = search->memory};
    f.best = (cx_best){.alloc = f.memory->alloc, .keep = cx_memory_ranked_max(f.memory)};
    cx_arena_init(&f.scratch, f.memory->alloc, 0);
    f.from =
        (cx_memory_source){.memory = f.memory, .arena = &f.scratch, .pinned = search->find->scope};
    cx_status status = CX_SUCCESS;
    if (search->find->scope != NULL)
        status = cx_memory_scope_alive(search->find->scope, search->now, err);
    if (!cx_failed(status))
        status = run_find(&f, err);
    cx_vec_done(&f.taken, f.memory->alloc);
    cx_best_done(&f.best);
    cx_arena_done(&f.scratch);
    return status;
}

/* --- hits ------------------------------------------------------------------------------------ */

cx_status cx_memory_hits_add(cx_memory_hits *hits, const cx_memory_hit *hit, cx_err *err)
{
    cx_memory_hit *slot = cx_vec_push(&hits->items, hits->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *hit;
    return CX_SUCCESS;
}

cx_status cx_memory_hits_copy(const cx_memory_hits *hits, cx_arena *arena,
                              const cx_memory_hit **out, size_t *out_count, cx_err *err)
{
    cx_memory_hit *copy = CX_ARENA_ARRAY(arena, cx_memory_hit, hits->items.count + 1);
    if (copy == NULL)
        return cx_fail_nomem(err);
    if (hits->items.count != 0)
        memcpy(copy, hits->items.items, hits->items.count * sizeof *copy);
    *out = copy;
    *out_count = hits->items.count;
    return CX_SUCCESS;
}

void cx_memory_hits_done(cx_memory_hits *hits)
{
    cx_vec_done(&hits->items, hits->alloc);
}

/* --- Find ------------------------------------------------------------------------------------ */

typedef struct selection {
    cx_memory_hits hits;
    size_t limit;
    bool has_budget;
    uint64_t budget;
} selection;

static cx_status select_hit(void *arg, const cx_memory_hit *hit, bool *out_take, bool *out_stop,
                            cx_err *err)
{
    selection *s = arg;
    uint64_t tokens = cx_tokens_of(hit->view.version.forms.medium);
    if (s->has_budget && tokens > s->budget)
        return CX_SUCCESS;
    s->budget -= s->has_budget ? tokens : 0;
    CX_TRY(cx_memory_hits_add(&s->hits, hit, err));
    *out_take = true;
    *out_stop = s->hits.items.count == s->limit || (s->has_budget && s->budget == 0);
    return CX_SUCCESS;
}

/* The budget only shrinks. */
static bool may_select_hit(void *arg, const cx_head *head)
{
    const selection *s = arg;
    return !s->has_budget || cx_tokens_of(head->forms.medium) <= s->budget;
}

/* The smaller of two budgets; 0 means none. */
static uint64_t least_budget(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

static cx_status journal_late(cx_memory *memory, const cx_memory_find *find, int64_t now,
                              const cx_memory_hits *hits, cx_arena *arena, cx_err *err)
{
    size_t count = hits->items.count;
    cx_id *ids = CX_ARENA_ARRAY(arena, cx_id, count + 1);
    if (ids == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        ids[i] = hits->items.items[i].view.head.id;
    const cx_payload payload = {.kind = CX_ENTRY_FIND_LATE,
                                .as.find_late = {.predicate = find->predicate,
                                                 .types = find->types,
                                                 .limit = (int64_t)find->limit,
                                                 .result_count = (int64_t)count,
                                                 .tags = find->tags,
                                                 .tag_count = find->tag_count,
                                                 .ids = ids,
                                                 .id_count = count}};
    cx_memory_call call;
    CX_TRY(cx_memory_begin(memory, &call, err));
    call.now = now;
    call.has_now = true;
    cx_status status = cx_memory_put_entry(&call, &payload, (cx_str){NULL, 0}, NULL, NULL, err);
    return cx_memory_end(&call, status, err);
}

cx_status cx_memory_find_all(cx_memory *memory, const cx_memory_find *find, cx_arena *arena,
                             const cx_memory_hit **out, size_t *out_count, cx_err *err)
{
    CX_ASSERT(memory != NULL && find != NULL);
    CX_TRY(check_find(find, err));
    uint64_t granted = find->scope != NULL ? find->scope->scope.budget_tokens : 0;
    selection s = {.hits = {.alloc = memory->alloc},
                   .limit = find->limit != 0 ? find->limit : CX_FIND_LIMIT_MAX,
                   .budget = least_budget(find->budget_tokens, granted)};
    s.has_budget = s.budget != 0;
    const cx_memory_search search = {.memory = memory,
                                     .find = find,
                                     .now = cx_memory_now(memory),
                                     .arena = arena,
                                     .hit = select_hit,
                                     .may = may_select_hit,
                                     .arg = &s};
    cx_status status = cx_memory_search_run(&search, err);
    if (!cx_failed(status) && find->late_binding)
        status = journal_late(memory, find, search.now, &s.hits, arena, err);
    if (!cx_failed(status))
        status = cx_memory_hits_copy(&s.hits, arena, out, out_count, err);
    cx_memory_hits_done(&s.hits);
    return status;
}
