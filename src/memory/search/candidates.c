/*
 * candidates.c - the memories that a Find may be about (candidates.h).
 *
 * A range of an index is read backwards in batches, each of which is one scan: the data directory
 * is not held while memories are ranked, and memory does not grow with the range.  What was written
 * last is usually most salient, so that most of what follows is known not to be among the best.
 */
#include "memory/search/candidates.h"

enum { BATCH_FIRST = 1024, RARE_FIRST = 64, RARE_LAST = 32768 };

typedef struct item {
    cx_id id;
    float similarity;
    uint8_t edge_type;
} item;

/* Whether a row is one; fills in all but the id. */
typedef cx_status use_row(void *arg, cx_bytes key, cx_bytes value, item *out, bool *out_use,
                          cx_err *err);

typedef struct range {
    const cx_candidates *what;
    cx_memory *memory;
    uint64_t looked_at; /* rows of all ranges */
    /* of the batch */
    use_row *use;
    cx_memory_key last; /* where it ended */
    size_t limit;
    bool full;
    CX_VEC(item) items;
} range;

static bool is_last(const range *r, cx_bytes key)
{
    return cx_str_eq(cx_bytes_str(key), cx_bytes_str(cx_memory_key_bytes(&r->last)));
}

/* Every key of an index ends with the id. */
static cx_status collect_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    range *r = arg;
    item found = {.similarity = 0.0f};
    bool use = true;
    if (key.size < sizeof found.id.bytes || key.size > sizeof r->last.data ||
        (r->items.count == 0 && is_last(r, key)))
        return CX_SUCCESS;
    memcpy(found.id.bytes, key.data + key.size - sizeof found.id.bytes, sizeof found.id.bytes);
    if (r->use != NULL)
        CX_TRY(r->use(r, key, value, &found, &use, err));
    if (!use)
        return CX_SUCCESS;
    item *slot = cx_vec_push(&r->items, r->memory->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = found;
    if (r->items.count == r->limit) {
        r->full = *stop = true;
        r->last.size = 0;
        cx_memory_key_add(&r->last, key.data, key.size);
    }
    return CX_SUCCESS;
}

static void show_progress(range *r)
{
    const cx_memory_options *options = &r->memory->options;
    if (options->looked != NULL && r->looked_at % cx_memory_ranked_max(r->memory) == 0)
        options->looked(options->looked_arg, r->looked_at);
    r->looked_at++;
}

/* Live edges; under a scope those that were live at the snapshot. */
static cx_status edge_counts(range *r, const item *found, bool *out, cx_err *err)
{
    const cx_memory_find *find = r->what->find;
    *out = true;
    if (find->from == NULL || find->scope == NULL)
        return CX_SUCCESS;
    const cx_edge_name name = {*find->from, found->edge_type, found->id};
    const cx_memory_key key = cx_memory_key_edge(&name, false);
    cx_bytes bytes;
    cx_edge then;
    CX_TRY(cx_memory_fetch(r->what->from, cx_memory_key_bytes(&key), &bytes, out, err));
    if (!*out)
        return CX_SUCCESS;
    CX_TRY(cx_edge_decode(bytes, r->what->from->arena, &then, err));
    *out = !then.tombstoned;
    return CX_SUCCESS;
}

static cx_status give_batch(range *r, cx_err *err)
{
    cx_arena *arena = r->what->from->arena;
    for (size_t i = 0; i < r->items.count; i++) {
        const item *found = &r->items.items[i];
        const cx_arena_mark mark = cx_arena_mark_now(arena);
        bool counts = false;
        show_progress(r);
        CX_TRY(edge_counts(r, found, &counts, err));
        if (counts)
            CX_TRY(r->what->each(r->what->arg, &found->id, found->similarity, err));
        cx_arena_reset(arena, mark);
    }
    return CX_SUCCESS;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static cx_status read_range(range *r, const cx_memory_key *prefix, use_row *use, cx_err *err)
{
    r->use = use;
    r->last.size = 0;
    r->limit = least(BATCH_FIRST, cx_memory_ranked_max(r->memory));
    do {
        r->items.count = 0;
        r->full = false;
        CX_TRY(cx_memory_scan_back(r->memory, cx_memory_key_bytes(prefix),
                                   cx_memory_key_bytes(&r->last), collect_row, r, err));
        CX_TRY(give_batch(r, err));
        r->limit = least(r->limit * 4, cx_memory_ranked_max(r->memory));
    } while (r->full);
    return CX_SUCCESS;
}

static cx_status read_index(range *r, const char *prefix, const void *more, size_t more_size,
                            cx_err *err)
{
    cx_memory_key key;
    cx_memory_key_begin(&key, prefix);
    cx_memory_key_add(&key, more, more_size);
    return read_range(r, &key, NULL, err);
}

/* --- which range ------------------------------------------------------------------------------ */

static cx_status use_vector(void *arg, cx_bytes key, cx_bytes value, item *out, bool *out_use,
                            cx_err *err)
{
    range *r = arg;
    cx_arena *arena = r->what->from->arena;
    const cx_memory_find *find = r->what->find;
    const cx_arena_mark mark = cx_arena_mark_now(arena);
    cx_vector vector;
    CX_TRY(cx_vector_decode(value, arena, &vector, err));
    *out_use = vector.dim == find->near_dim && key.size == strlen("vec/meta/") + 16;
    if (*out_use)
        out->similarity = cx_near_score(find->near, vector.values, find->near_dim, CX_NEAR_COSINE);
    cx_arena_reset(arena, mark);
    return CX_SUCCESS;
}

/* e/from/<src16><type><dst16> */
static cx_status use_edge(void *arg, cx_bytes key, cx_bytes value, item *out, bool *out_use,
                          cx_err *err)
{
    range *r = arg;
    cx_arena *arena = r->what->from->arena;
    const cx_arena_mark mark = cx_arena_mark_now(arena);
    cx_edge edge;
    CX_TRY(cx_edge_decode(value, arena, &edge, err));
    *out_use = !edge.tombstoned || r->what->find->scope != NULL;
    out->edge_type = key.data[key.size - sizeof out->id.bytes - 1];
    cx_arena_reset(arena, mark);
    return CX_SUCCESS;
}

/* Under a scope from a memory that it allows. */
static cx_status read_edges(range *r, cx_err *err)
{
    const cx_memory_find *find = r->what->find;
    cx_memory_key prefix = cx_memory_key_of("e/from/", find->from);
    if (find->scope != NULL) {
        cx_memory_head head;
        bool found = false;
        CX_TRY(cx_memory_find_head(r->what->from, find->from, &head, &found, err));
        if (!found || !cx_scope_use_allows(find->scope, &head.head))
            return CX_SUCCESS;
    }
    if (find->follow != 0)
        cx_memory_key_add(&prefix, &find->follow, 1);
    return read_range(r, &prefix, use_edge, err);
}

static cx_memory_key word_key(const cx_words_query *words, size_t which)
{
    const uint8_t end = 0;
    cx_memory_key key;
    cx_memory_key_begin(&key, CX_MEMORY_WORD_KEY);
    cx_memory_key_add(&key, words->words[which].data, words->words[which].size);
    if (!words->prefix[which])
        cx_memory_key_add(&key, &end, 1);
    return key;
}

typedef struct counting {
    size_t count, limit;
} counting;

static cx_status count_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    counting *c = arg;
    (void)key;
    (void)value;
    (void)err;
    *stop = ++c->count == c->limit;
    return CX_SUCCESS;
}

/* The word that fewest memories have, of those that fewer than `limit` have. */
static cx_status find_rarest(const range *r, size_t limit, size_t *out, bool *out_found,
                             cx_err *err)
{
    const cx_words_query *words = r->what->words;
    counting c = {.limit = limit};
    *out_found = false;
    for (size_t i = 0; i < words->count; i++) {
        const cx_memory_key key = word_key(words, i);
        c.count = 0;
        CX_TRY(cx_memory_scan(r->memory, cx_memory_key_bytes(&key), (cx_bytes){NULL, 0}, count_row,
                              &c, err));
        if (c.count == c.limit)
            continue;
        *out = i;
        *out_found = true;
        c.limit = c.count; /* of the next ones only whether they are rarer */
        if (c.limit == 0)
            return CX_SUCCESS;
    }
    return CX_SUCCESS;
}

/* Memories with the rarest of the words; the others are looked for when a memory is read. */
static cx_status read_word(range *r, cx_err *err)
{
    const cx_words_query *words = r->what->words;
    size_t best = 0;
    bool found = words->count == 1;
    for (size_t limit = RARE_FIRST; !found && limit <= RARE_LAST; limit *= 8)
        CX_TRY(find_rarest(r, limit, &best, &found, err));
    const cx_memory_key key = word_key(words, found ? best : cx_words_query_best(words));
    return read_range(r, &key, NULL, err);
}

static cx_status read_ranges(range *r, cx_err *err)
{
    const cx_memory_find *find = r->what->find;
    if (find->from != NULL)
        return read_edges(r, err);
    if (find->near != NULL) {
        cx_memory_key key;
        cx_memory_key_begin(&key, "vec/meta/");
        return read_range(r, &key, use_vector, err);
    }
    if (find->text.size != 0 && find->scope == NULL)
        return read_word(r, err);
    if (find->tag_count != 0 && find->scope == NULL) {
        uint8_t hash[8];
        cx_tag_hash(find->tags[0], hash);
        return read_index(r, "idx/tag/", hash, sizeof hash, err);
    }
    /* A tag of the snapshot may have been removed since; a type never changes. */
    if (find->types.size == 0)
        return read_index(r, "idx/type/", NULL, 0, err);
    for (size_t i = 0; i < find->types.size; i++)
        CX_TRY(read_index(r, "idx/type/", &find->types.data[i], 1, err));
    return CX_SUCCESS;
}

cx_status cx_memory_candidates(const cx_candidates *what, cx_err *err)
{
    range r = {.what = what, .memory = what->from->memory};
    cx_status status = read_ranges(&r, err);
    cx_vec_done(&r.items, r.memory->alloc);
    return status;
}
