/*
 * align.c - see align.h.
 *
 *   A1  Steps are compared by hashes: `all` of the changes and of what the event says it is, with
 *       the side's id taken out; `like` of the kind of the event and the keys it changed.
 *   A2  The worth of an alignment is the sum over its pairs; of several with the greatest worth the
 *       one that pairs as early as possible is chosen.
 *   A3  A window ends after its last pair, and the next one begins there; a window without a pair
 *       is skipped as a whole.
 */
#include "view/align.h"

#include "base/api.h"
#include "crypto/api.h"
#include "view/layout.h"

/* Worth more than any number of equal kinds: identical steps are always paired. */
enum { WORTH_SAME = 12, WORTH_LIKE = 5, WORTH_KIND = 2 };

typedef struct step {
    cx_digest all;
    uint64_t like, kind; /* beginnings of hashes; kind 0 = the event does not say */
} step;

/* --- one step --------------------------------------------------------------------------------- */

static uint64_t digest_prefix(const cx_digest *digest)
{
    uint64_t value;
    memcpy(&value, digest->bytes, sizeof value);
    return value | 1;
}

/* The text without the id; a 0 in its place, which canonical JSON never has. */
static void add_without(cx_sha256 *hash, cx_str text, cx_str id)
{
    while (id.size != 0) {
        const char *found = memmem(text.data, text.size, id.data, id.size);
        if (found == NULL)
            break;
        size_t before = (size_t)(found - text.data);
        cx_sha256_add(hash, text.data, before);
        cx_sha256_add(hash, "", 1);
        text = cx_str_from(found + id.size, text.size - before - id.size);
    }
    cx_sha256_add(hash, text.data, text.size);
}

/* Names of what was changed: "section.key", for each section that holds keys. */
static void add_keys(cx_sha256 *hash, const cx_json *delta, cx_str id)
{
    for (uint32_t i = 0; delta->type == CX_JSON_OBJECT && i < delta->count; i++) {
        const cx_json *section = &delta->members[i].value;
        cx_sha256_add(hash, "\n", 1);
        cx_sha256_add(hash, delta->members[i].name.text, delta->members[i].name.count);
        for (uint32_t k = 0; section->type == CX_JSON_OBJECT && k < section->count; k++) {
            const cx_json *name = &section->members[k].name;
            cx_sha256_add(hash, ".", 1);
            add_without(hash, cx_str_from(name->text, name->count), id);
        }
    }
}

/* A1 */
static cx_status read_step(alignment *a, unsigned side, size_t number, step *out, cx_err *err)
{
    const align_side *of = &a->sides[side];
    cx_node n = of->path[number];
    cx_str delta = of->lattice->deltas.items[n], kind, label;
    cx_arena_mark mark = cx_arena_mark_now(&a->arena);
    cx_err ignored;
    cx_sha256 hash;
    cx_json changes;
    CX_TRY(cx_lattice_words_of(of->lattice, n, &a->arena, &kind, &label, err));
    cx_sha256_init(&hash);
    add_without(&hash, delta, of->id);
    cx_sha256_add(&hash, "\n", 1);
    add_without(&hash, label, of->id);
    out->all = cx_sha256_end(&hash);
    out->kind = 0;
    if (kind.size != 0) {
        cx_digest digest = cx_digest_of(cx_str_bytes(kind));
        out->kind = digest_prefix(&digest);
    }
    cx_sha256_init(&hash);
    cx_str name = kind.size != 0 ? kind : label;
    add_without(&hash, name, of->id);
    cx_status status = cx_json_parse_text(delta, &a->arena, &changes, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (!cx_failed(status))
        add_keys(&hash, &changes, of->id);
    cx_digest like = cx_sha256_end(&hash);
    out->like = digest_prefix(&like);
    cx_arena_reset(&a->arena, mark);
    return CX_SUCCESS;
}

static bool is_same(const step *a, const step *b)
{
    return cx_digest_eq(&a->all, &b->all);
}

static unsigned pair_worth(const step *a, const step *b)
{
    if (a->like == b->like)
        return is_same(a, b) ? WORTH_SAME : WORTH_LIKE;
    return a->kind != 0 && a->kind == b->kind ? WORTH_KIND : 0;
}

static align_how compare_steps(const step *a, const step *b)
{
    return is_same(a, b) ? ALIGN_SAME : pair_worth(a, b) != 0 ? ALIGN_ALIKE : ALIGN_ONLY;
}

bool cx_align_equal(cx_str id_a, cx_str id_b, cx_str a, cx_str b)
{
    cx_str ids[2] = {id_a, id_b}, texts[2] = {a, b};
    cx_sha256 hash[2];
    cx_digest digest[2];
    if (cx_str_eq(a, b))
        return true;
    if (ids[0].size == 0 || ids[1].size == 0)
        return false;
    for (unsigned side = 0; side < 2; side++) {
        cx_sha256_init(&hash[side]);
        add_without(&hash[side], texts[side], ids[side]);
        digest[side] = cx_sha256_end(&hash[side]);
    }
    return cx_digest_eq(&digest[0], &digest[1]);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static cx_status find_prefix(alignment *a, cx_err *err)
{
    size_t shorter = a->sides[0].count < a->sides[1].count ? a->sides[0].count : a->sides[1].count;
    for (; a->prefix < shorter; a->prefix++) {
        step steps[2];
        cx_str deltas[2];
        for (unsigned side = 0; side < 2; side++) {
            const align_side *of = &a->sides[side];
            deltas[side] = of->lattice->deltas.items[of->path[a->prefix]];
        }
        /* Cached results that need no further reads. */
        if (!cx_align_equal(a->sides[0].id, a->sides[1].id, deltas[0], deltas[1]))
            break;
        for (unsigned side = 0; side < 2; side++)
            CX_TRY(read_step(a, side, a->prefix, &steps[side], err));
        if (!is_same(&steps[0], &steps[1]))
            break;
    }
    a->placed[0] = a->placed[1] = a->prefix;
    return CX_SUCCESS;
}

/* --- a window --------------------------------------------------------------------------------- */

typedef struct window {
    size_t first[2], count[2];
    step *steps[2];
    uint8_t *ways;    /* by count[0] + 1 and count[1] + 1: the best next move from each cell */
    uint32_t *worths; /* two rows */
    size_t ways_size; /* bytes of ways */
} window;

enum { WAY_PAIR, WAY_A, WAY_B };

static size_t window_cell(const window *w, size_t i, size_t j)
{
    return i * (w->count[1] + 1) + j;
}

/* A2: from the end to the beginning, so that of equal alignments the earliest pairing wins. */
static void weigh_alignments(window *w)
{
    size_t wide = w->count[1] + 1;
    uint32_t *below = w->worths, *here = w->worths + wide;
    memset(below, 0, wide * sizeof *below);
    for (size_t i = w->count[0]; i-- > 0;) {
        here[w->count[1]] = 0;
        for (size_t j = w->count[1]; j-- > 0;) {
            unsigned worth = pair_worth(&w->steps[0][i], &w->steps[1][j]);
            uint32_t best = below[j];
            uint8_t way = WAY_A;
            if (here[j + 1] > best) {
                best = here[j + 1];
                way = WAY_B;
            }
            if (worth != 0 && below[j + 1] + worth >= best) {
                best = below[j + 1] + worth;
                way = WAY_PAIR;
            }
            here[j] = best;
            w->ways[window_cell(w, i, j)] = way;
        }
        uint32_t *swap = below;
        below = here;
        here = swap;
    }
}

static cx_status add_row(alignment *a, size_t i, size_t j, align_how how, cx_err *err)
{
    align_row *row = cx_vec_push(&a->rows, a->alloc);
    if (row == NULL)
        return cx_fail_nomem(err);
    *row = (align_row){{i, j}, how};
    if (i != ALIGN_NONE)
        a->placed[0] = i + 1;
    if (j != ALIGN_NONE)
        a->placed[1] = j + 1;
    return CX_SUCCESS;
}

static cx_status trace_best_alignment(alignment *a, const window *w, cx_err *err)
{
    size_t i = 0, j = 0;
    while (i < w->count[0] || j < w->count[1]) {
        uint8_t way = i == w->count[0]   ? WAY_B
                      : j == w->count[1] ? WAY_A
                                         : w->ways[window_cell(w, i, j)];
        size_t left = way == WAY_B ? ALIGN_NONE : w->first[0] + i;
        size_t right = way == WAY_A ? ALIGN_NONE : w->first[1] + j;
        align_how how =
            way == WAY_PAIR ? compare_steps(&w->steps[0][i], &w->steps[1][j]) : ALIGN_ONLY;
        CX_TRY(add_row(a, left, right, how, err));
        i += way != WAY_B;
        j += way != WAY_A;
    }
    return CX_SUCCESS;
}

/* A3: steps after the last pair may have their counterparts in the next window. */
static void cut_after_last_pair(alignment *a, size_t since)
{
    size_t last = a->rows.count;
    while (last > since && a->rows.items[last - 1].how == ALIGN_ONLY)
        last--;
    if (last == since)
        return;
    a->rows.count = last;
    a->placed[0] = a->rows.items[last - 1].step[0] + 1;
    a->placed[1] = a->rows.items[last - 1].step[1] + 1;
}

static cx_status align_window(alignment *a, window *w, cx_err *err)
{
    bool is_last = true;
    size_t since = a->rows.count;
    for (unsigned side = 0; side < 2; side++) {
        size_t left = a->sides[side].count - a->placed[side];
        w->first[side] = a->placed[side];
        w->count[side] = left < ALIGN_WINDOW ? left : ALIGN_WINDOW;
        is_last = is_last && w->count[side] == left;
        for (size_t i = 0; i < w->count[side]; i++)
            CX_TRY(read_step(a, side, w->first[side] + i, &w->steps[side][i], err));
    }
    weigh_alignments(w);
    CX_TRY(trace_best_alignment(a, w, err));
    if (!is_last)
        cut_after_last_pair(a, since);
    return CX_SUCCESS;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static cx_status align_rest(alignment *a, cx_err *err)
{
    window w = {.ways_size = 0};
    cx_status status = CX_SUCCESS;
    size_t most[2];
    for (unsigned side = 0; side < 2; side++)
        most[side] = min_size(a->sides[side].count - a->prefix, ALIGN_WINDOW);
    w.ways_size = (most[0] + 1) * (most[1] + 1);
    w.ways = cx_alloc_zeroed(a->alloc, w.ways_size, 1);
    w.worths = cx_alloc_zeroed(a->alloc, 2 * (most[1] + 1), sizeof *w.worths);
    for (unsigned side = 0; side < 2; side++)
        w.steps[side] = cx_alloc_zeroed(a->alloc, most[side] + 1, sizeof *w.steps[side]);
    if (w.ways == NULL || w.worths == NULL || w.steps[0] == NULL || w.steps[1] == NULL)
        status = cx_fail_nomem(err);
    for (unsigned i = 0; i < ALIGN_WINDOWS && !cx_failed(status) && !align_is_whole(a); i++)
        status = align_window(a, &w, err);
    for (unsigned side = 0; side < 2; side++)
        cx_alloc_free(a->alloc, w.steps[side], (most[side] + 1) * sizeof *w.steps[side]);
    cx_alloc_free(a->alloc, w.worths, 2 * (most[1] + 1) * sizeof *w.worths);
    cx_alloc_free(a->alloc, w.ways, w.ways_size);
    return status;
}

/* --- all of it -------------------------------------------------------------------------------- */

cx_status cx_align_init(alignment *a, const align_side sides[2], const cx_alloc *alloc, cx_err *err)
{
    *a = (alignment){.sides = {sides[0], sides[1]}, .alloc = alloc};
    cx_arena_init(&a->arena, alloc, 0);
    for (unsigned side = 0; side < 2; side++)
        if (sides[side].count != 0 && sides[side].lattice->deltas.count == 0)
            return cx_fail(err, CX_E_USAGE, "a lattice without its deltas cannot be aligned");
    CX_TRY(find_prefix(a, err));
    return align_is_whole(a) ? CX_SUCCESS : align_rest(a, err);
}

void cx_align_done(alignment *a)
{
    cx_vec_done(&a->rows, a->alloc);
    cx_arena_done(&a->arena);
}

static size_t steps_left(const alignment *a, unsigned side)
{
    return a->sides[side].count - a->placed[side];
}

size_t cx_align_count(const alignment *a)
{
    size_t left[2] = {steps_left(a, 0), steps_left(a, 1)};
    return a->prefix + a->rows.count + (left[0] > left[1] ? left[0] : left[1]);
}

cx_status cx_align_row(alignment *a, size_t number, align_row *out, cx_err *err)
{
    CX_ASSERT(number < cx_align_count(a));
    if (number < a->prefix) {
        *out = (align_row){{number, number}, ALIGN_SAME};
        return CX_SUCCESS;
    }
    number -= a->prefix;
    if (number < a->rows.count) {
        *out = a->rows.items[number];
        return CX_SUCCESS;
    }
    number -= a->rows.count;
    step steps[2];
    out->how = ALIGN_ONLY;
    for (unsigned side = 0; side < 2; side++)
        out->step[side] = number < steps_left(a, side) ? a->placed[side] + number : ALIGN_NONE;
    if (out->step[0] == ALIGN_NONE || out->step[1] == ALIGN_NONE)
        return CX_SUCCESS;
    for (unsigned side = 0; side < 2; side++)
        CX_TRY(read_step(a, side, out->step[side], &steps[side], err));
    out->how = compare_steps(&steps[0], &steps[1]);
    return CX_SUCCESS;
}
