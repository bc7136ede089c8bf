/*
 * find.c - Find (ledger.md §10): memories by type, tag, frame, edge, words, similarity and member,
 * most salient first.
 *
 * F1  A Find is bounded: by the index it scans (type, tag, edge, word, vector) and by the number of
 *     results.
 * F2  Under a scope every record read is the pinned snapshot's; the indexes, which are current,
 *     only supply candidates, and never too few.
 * F3  Results are ordered by salience (with `near`: similarity) descending, then by id, so the
 *     order is deterministic.
 *
 * Candidates come from an index, are ranked by their heads, and are then read one by one in that
 * order: the expensive parts (versions, members) are read only for possible results.
 */
#include <stdlib.h>

#include "memory/internal.h"

typedef struct candidate {
    cx_id id;
    float rank;
} candidate;

typedef struct finder {
    const cx_memory_search *search;
    const cx_memory_find *find;
    cx_memory *memory;
    cx_arena scratch;
    cx_memory_source from; /* into the scratch arena */
    cx_weights weights;
    cx_words_query query; /* of find->text */
    CX_VEC(candidate) list;
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

/* --- candidates ------------------------------------------------------------------------------ */

static cx_status add_candidate(finder *f, const uint8_t *id, float rank, cx_err *err)
{
    candidate *slot = cx_vec_push(&f->list, f->memory->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    memcpy(slot->id.bytes, id, sizeof slot->id.bytes);
    slot->rank = rank;
    return CX_SUCCESS;
}

/* Every key of an index ends with the id. */
static cx_status collect_index_key(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    (void)value;
    (void)stop;
    return key.size < 16 ? CX_SUCCESS : add_candidate(arg, key.data + key.size - 16, 0.0f, err);
}

static cx_status scan_keys(finder *f, const char *prefix, const void *more, size_t more_size,
                           cx_err *err)
{
    cx_memory_key key;
    cx_memory_key_begin(&key, prefix);
    cx_memory_key_add(&key, more, more_size);
    return cx_memory_scan(f->memory, cx_memory_key_bytes(&key), (cx_bytes){NULL, 0},
                          collect_index_key, f, err);
}

static cx_status collect_vector(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    finder *f = arg;
    cx_vector vector;
    (void)stop;
    cx_arena_mark mark = cx_arena_mark_now(&f->scratch);
    CX_TRY(cx_vector_decode(value, &f->scratch, &vector, err));
    bool fits = vector.dim == f->find->near_dim && key.size == 9 + 16;
    float score =
        fits ? cx_near_score(f->find->near, vector.values, f->find->near_dim, CX_NEAR_COSINE)
             : 0.0f;
    cx_arena_reset(&f->scratch, mark);
    return fits ? add_candidate(f, key.data + 9, score, err) : CX_SUCCESS;
}

/* Live edges; under a scope those that were live at the snapshot, from a memory that it allows. */
static cx_status follow_edges(finder *f, cx_err *err)
{
    const cx_memory_find *find = f->find;
    const cx_edge_view *edges;
    size_t count = 0;
    if (find->scope != NULL) {
        cx_memory_head head;
        bool found = false;
        CX_TRY(cx_memory_find_head(&f->from, find->from, &head, &found, err));
        if (!found || !cx_scope_use_allows(find->scope, &head.head))
            return CX_SUCCESS;
    }
    CX_TRY(cx_memory_edges(f->memory, find->from, false, find->follow, find->scope != NULL,
                           SIZE_MAX, &f->scratch, &edges, &count, err));
    for (size_t i = 0; i < count; i++) {
        const cx_edge *edge = &edges[i].edge;
        if (find->scope != NULL) {
            const cx_edge_name name = {edge->src, edge->type, edge->dst};
            cx_memory_key key = cx_memory_key_edge(&name, false);
            cx_bytes bytes;
            bool found = false;
            cx_edge then;
            CX_TRY(cx_memory_fetch(&f->from, cx_memory_key_bytes(&key), &bytes, &found, err));
            if (!found)
                continue;
            CX_TRY(cx_edge_decode(bytes, &f->scratch, &then, err));
            if (then.tombstoned)
                continue;
        }
        CX_TRY(add_candidate(f, edge->dst.bytes, 0.0f, err));
    }
    return CX_SUCCESS;
}

/* Memories with one of the words; the others are looked for when a memory is read. */
static cx_status scan_word(finder *f, cx_err *err)
{
    const size_t best = cx_words_query_best(&f->query);
    cx_str word = f->query.words[best];
    uint8_t key[CX_WORD_SIZE_MAX + 1];
    memcpy(key, word.data, word.size);
    key[word.size] = 0;
    return scan_keys(f, CX_MEMORY_WORD_KEY, key, word.size + (f->query.prefix[best] ? 0 : 1), err);
}

static cx_status name_candidates(finder *f, cx_err *err)
{
    const cx_memory_find *find = f->find;
    if (find->from != NULL)
        return follow_edges(f, err);
    if (find->near != NULL)
        return cx_memory_scan(f->memory, cx_str_bytes(CX_STR("vec/meta/")), (cx_bytes){NULL, 0},
                              collect_vector, f, err);
    if (find->text.size != 0 && find->scope == NULL)
        return scan_word(f, err);
    if (find->tag_count != 0 && find->scope == NULL) {
        uint8_t hash[8];
        cx_tag_hash(find->tags[0], hash);
        return scan_keys(f, "idx/tag/", hash, sizeof hash, err);
    }
    /* A tag of the snapshot may have been removed since; a type never changes. */
    if (find->types.size == 0)
        return scan_keys(f, "idx/type/", NULL, 0, err);
    for (size_t i = 0; i < find->types.size; i++)
        CX_TRY(scan_keys(f, "idx/type/", &find->types.data[i], 1, err));
    return CX_SUCCESS;
}

static int by_id(const void *a, const void *b)
{
    const candidate *left = a, *right = b;
    return memcmp(left->id.bytes, right->id.bytes, sizeof left->id.bytes);
}

static int by_rank(const void *a, const void *b)
{
    const candidate *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank > right->rank ? -1 : 1;
    return by_id(a, b);
}

static void drop_duplicates(finder *f)
{
    size_t kept = 0;
    if (f->list.count > 1)
        qsort(f->list.items, f->list.count, sizeof *f->list.items, by_id);
    for (size_t i = 0; i < f->list.count; i++)
        if (kept == 0 || by_id(&f->list.items[kept - 1], &f->list.items[i]) != 0)
            f->list.items[kept++] = f->list.items[i];
    f->list.count = kept;
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

static cx_status rank_one(finder *f, candidate *c, bool *out_keep, cx_err *err)
{
    cx_memory_head head;
    bool found = false;
    *out_keep = false;
    CX_TRY(cx_memory_find_head(&f->from, &c->id, &head, &found, err));
    if (!found || !head_fits(f->find, &head.head))
        return CX_SUCCESS;
    if (f->find->near != NULL)
        return similarity_to_vector(f, &head.head, &c->rank, out_keep, err);
    *out_keep = true;
    return salience_now(f, &head.head, &c->rank, err);
}

static cx_status rank_all(finder *f, cx_err *err)
{
    size_t kept = 0;
    if (f->find->near != NULL && f->find->from == NULL)
        return CX_SUCCESS; /* the scan already computed the similarity */
    for (size_t i = 0; i < f->list.count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&f->scratch);
        bool keep = false;
        CX_TRY(rank_one(f, &f->list.items[i], &keep, err));
        cx_arena_reset(&f->scratch, mark);
        if (keep)
            f->list.items[kept++] = f->list.items[i];
    }
    f->list.count = kept;
    return CX_SUCCESS;
}

/* Reads the memory again, into the caller's arena: it may have changed since it was ranked. */
static cx_status make_hit(finder *f, const candidate *c, cx_memory_hit *out, bool *out_fits,
                          cx_err *err)
{
    cx_memory_source from = f->from;
    cx_memory_head head;
    bool found = false;
    *out_fits = false;
    from.arena = f->search->arena;
    CX_TRY(cx_memory_find_head(&from, &c->id, &head, &found, err));
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

static cx_status make_hits(finder *f, cx_err *err)
{
    const cx_memory_search *search = f->search;
    bool stop = false;
    for (size_t i = 0; i < f->list.count && !stop; i++) {
        cx_arena_mark scratch = cx_arena_mark_now(&f->scratch);
        cx_arena_mark mark = cx_arena_mark_now(search->arena);
        cx_memory_hit hit;
        bool fits = false, take = false;
        CX_TRY(make_hit(f, &f->list.items[i], &hit, &fits, err));
        if (fits)
            CX_TRY(search->hit(search->arg, &hit, &take, &stop, err));
        if (!take)
            cx_arena_reset(search->arena, mark);
        cx_arena_reset(&f->scratch, scratch);
    }
    return CX_SUCCESS;
}

static cx_status run_find(finder *f, cx_err *err)
{
    cx_weights_record weights;
    CX_TRY(cx_memory_weights_at(&f->from, &weights, err));
    f->weights = weights.weights;
    if (f->find->text.size != 0)
        CX_TRY(cx_words_query_parse(f->find->text, &f->scratch, &f->query, err));
    CX_TRY(name_candidates(f, err));
    drop_duplicates(f);
    CX_TRY(rank_all(f, err));
    if (f->list.count > 1)
        qsort(f->list.items, f->list.count, sizeof *f->list.items, by_rank);
    return make_hits(f, err);
}

cx_status cx_memory_search_run(const cx_memory_search *search, cx_err *err)
{
    finder f = {.search = search, .find = search->find, .memory = search->memory};
    cx_arena_init(&f.scratch, f.memory->alloc, 0);
    f.from =
        (cx_memory_source){.memory = f.memory, .arena = &f.scratch, .pinned = search->find->scope};
    cx_status status = CX_SUCCESS;
    if (search->find->scope != NULL)
        status = cx_memory_scope_alive(search->find->scope, search->now, err);
    if (!cx_failed(status))
        status = run_find(&f, err);
    cx_vec_done(&f.list, f.memory->alloc);
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
                                     .arg = &s};
    cx_status status = cx_memory_search_run(&search, err);
    if (!cx_failed(status) && find->late_binding)
        status = journal_late(memory, find, search.now, &s.hits, arena, err);
    if (!cx_failed(status))
        status = cx_memory_hits_copy(&s.hits, arena, out, out_count, err);
    cx_memory_hits_done(&s.hits);
    return status;
}
