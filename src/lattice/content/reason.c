/*
 * reason.c - the reason that an agent gave for a change, and the text that the value came from.
 *
 * The reason is what the event says: `because` (or `reasoning`, `rationale`), `thinking` and
 * `text`.  A session writes one answer of a model as several records with one `message_id`, so that
 * a call without words has those of the records before it.  The text that a value came from is the
 * newest node before the change whose content has the value: all changes are looked for in one walk
 * back, which ends after NODES_MAX nodes.
 */
#include "lattice/answer.h"
#include "lattice/content/content.h"

#define NODES_MAX 2000u     /* read to find where values came from */
#define REASON_BYTES 300u   /* of each text */
#define NEEDLE_MIN 3u       /* bytes of a string or number that are no coincidence */
#define NEEDLE_LEAF_MIN 8u  /* of a string inside of a value */
#define NEEDLE_MAX 200u     /* bytes that are looked for */
#define SAME_MESSAGE_MAX 4u /* records before that belong to the same answer */

typedef struct needle {
    cx_str text; /* normalised; size 0 = found, or not looked for */
    bool is_cut;
} needle;

typedef struct reasons {
    const cx_lattice *lattice;
    change_reason *changes;
    size_t count; /* of which at most CHANGE_SOURCES_MAX have a needle */
    cx_arena *arena;
    content_reader reader;
    needle needles[CHANGE_SOURCES_MAX];
    unsigned open;   /* needles that are not found */
    uint32_t *masks; /* by position: the changes that it is before */
    uint32_t mask;   /* of the node that is read */
    cx_node now;
    cx_buf normal;
} reasons;

/* --- what the event says ---------------------------------------------------------------------- */

static cx_status copy_snippet(reasons *r, cx_str text, size_t at, size_t size, cx_str *out,
                              cx_err *err)
{
    cx_buf snippet;
    cx_buf_init(&snippet, r->lattice->alloc);
    cx_content_snippet(&snippet, text, at, size, REASON_BYTES);
    cx_status status = cx_buf_check(&snippet, err);
    if (!cx_failed(status) && snippet.size != 0) {
        *out = cx_arena_copy_str(r->arena, cx_buf_str(&snippet));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&snippet);
    return status;
}

static cx_status copy_member(reasons *r, const char *name, cx_str *out, cx_err *err)
{
    const cx_json *value = cx_json_get(r->reader.event, cx_str_z(name));
    if (out->size != 0 || value == NULL || value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (value->type == CX_JSON_STRING)
        return copy_snippet(r, cx_json_text(value), 0, 0, out, err);
    cx_buf_clear(&r->normal);
    CX_TRY(cx_json_write_pretty(&r->normal, value, 0, err));
    CX_TRY(cx_buf_check(&r->normal, err));
    return copy_snippet(r, cx_buf_str(&r->normal), 0, 0, out, err);
}

static cx_status read_words(reasons *r, change_reason *change, cx_err *err)
{
    CX_TRY(copy_member(r, "thinking", &change->thinking, err));
    return copy_member(r, "text", &change->text, err);
}

/* A call's words are in the records before it that belong to the same answer of the model. */
static cx_status read_same_message(reasons *r, change_reason *change, cx_err *err)
{
    cx_str id = CX_JSON_GET_STR(r->reader.event, "message_id");
    cx_node which = change->which;
    if (id.size == 0 || change->text.size != 0)
        return CX_SUCCESS;
    id = cx_arena_copy_str(r->arena, id);
    if (id.data == NULL)
        return cx_fail_nomem(err);
    for (unsigned i = 0; i < SAME_MESSAGE_MAX; i++) {
        which = node_at(r->lattice, which)->lineage;
        if (which == CX_NODE_NONE)
            break;
        CX_TRY(cx_content_read(&r->reader, which, err));
        if (!cx_str_eq(CX_JSON_GET_STR(r->reader.event, "message_id"), id))
            break;
        CX_TRY(read_words(r, change, err));
    }
    return CX_SUCCESS;
}

static cx_status read_reason(reasons *r, change_reason *change, cx_err *err)
{
    CX_TRY(cx_content_read(&r->reader, change->which, err));
    CX_TRY(copy_member(r, "because", &change->because, err));
    CX_TRY(copy_member(r, "reasoning", &change->because, err));
    CX_TRY(copy_member(r, "rationale", &change->because, err));
    CX_TRY(read_words(r, change, err));
    return read_same_message(r, change, err);
}

/* --- what is looked for ----------------------------------------------------------------------- */

/* The longest string of a value that the value before it did not have. */
typedef struct longest_leaf {
    cx_str text, old;
    cx_buf spelled;
} longest_leaf;

static cx_status keep_longest(void *arg, const content_text *text, cx_err *err)
{
    longest_leaf *longest = arg;
    if (text->text.size <= longest->text.size)
        return CX_SUCCESS;
    cx_buf_clear(&longest->spelled);
    cx_answer_str(&longest->spelled, text->text);
    CX_TRY(cx_buf_check(&longest->spelled, err));
    if (longest->old.size == 0 || memmem(longest->old.data, longest->old.size,
                                         longest->spelled.data, longest->spelled.size) == NULL)
        longest->text = text->text;
    return CX_SUCCESS;
}

static cx_status make_needle(reasons *r, size_t at, cx_err *err)
{
    static const content_text any = {.part = CONTENT_CHANGE};
    needle *n = &r->needles[at];
    longest_leaf longest = {.old = r->changes[at].old};
    cx_json value;
    if (r->changes[at].value.size == 0)
        return CX_SUCCESS;
    if (cx_failed(cx_json_parse_text(r->changes[at].value, r->arena, &value, NULL)))
        return CX_SUCCESS;
    cx_buf_init(&longest.spelled, r->lattice->alloc);
    cx_status status = cx_content_value(&r->reader, &value, &any, keep_longest, &longest, err);
    cx_buf_done(&longest.spelled);
    CX_TRY(status);
    cx_buf_clear(&r->normal);
    cx_content_normal(&r->normal, longest.text);
    CX_TRY(cx_buf_check(&r->normal, err));
    cx_str text = shortened(cx_buf_str(&r->normal), NEEDLE_MAX);
    bool is_leaf = value.type == CX_JSON_OBJECT || value.type == CX_JSON_ARRAY;
    if (text.size < (is_leaf ? NEEDLE_LEAF_MIN : NEEDLE_MIN))
        return CX_SUCCESS;
    n->is_cut = text.size < r->normal.size;
    n->text = cx_arena_copy_str(r->arena, text);
    r->open += n->text.data != NULL;
    return n->text.data != NULL ? CX_SUCCESS : cx_fail_nomem(err);
}

/* --- where it is ------------------------------------------------------------------------------ */

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* 500 is not in 15001. */
static const char *find_word(cx_str text, const needle *n)
{
    const char *at = text.data, *end = text.data + text.size;
    while ((at = memmem(at, (size_t)(end - at), n->text.data, n->text.size)) != NULL) {
        const char *after = at + n->text.size;
        bool begins = at == text.data || !is_word_byte(*n->text.data) || !is_word_byte(at[-1]);
        bool ends = n->is_cut || after == end || !is_word_byte(after[-1]) || !is_word_byte(*after);
        if (begins && ends)
            return at;
        at++;
    }
    return NULL;
}

static cx_status search_text(void *arg, const content_text *text, cx_err *err)
{
    reasons *r = arg;
    cx_buf_clear(&r->normal);
    cx_content_normal(&r->normal, text->text);
    CX_TRY(cx_buf_check(&r->normal, err));
    cx_str normal = cx_buf_str(&r->normal);
    for (size_t i = 0; i < r->count && i < CHANGE_SOURCES_MAX; i++) {
        needle *n = &r->needles[i];
        const char *hit;
        if ((r->mask >> i & 1) == 0 || n->text.size == 0 || n->text.size > normal.size ||
            (hit = find_word(normal, n)) == NULL)
            continue;
        r->changes[i].source = r->now;
        CX_TRY(copy_snippet(r, normal, (size_t)(hit - normal.data), n->text.size,
                            &r->changes[i].source_text, err));
        n->text.size = 0;
        r->open--;
    }
    return CX_SUCCESS;
}

static void mark_parents(reasons *r, uint32_t at)
{
    const cx_lattice *lattice = r->lattice;
    cx_node which = lattice->order[at];
    const node *n = node_at(lattice, which);
    uint32_t mask = r->masks[at];
    for (size_t i = 0; i < r->count && i < CHANGE_SOURCES_MAX; i++)
        if (r->changes[i].which == which && r->needles[i].text.size != 0)
            mask |= UINT32_C(1) << i;
    for (uint32_t i = 0; mask != 0 && i < n->parent_count; i++) {
        uint32_t parent = lattice->position[node_parents(lattice, n)[i]];
        if (parent != UINT32_MAX)
            r->masks[parent] |= mask;
    }
}

/* The change's own node has the value, of course; what is read is before it. */
static cx_status walk_back(reasons *r, uint32_t newest, cx_err *err)
{
    unsigned nodes = 0;
    for (uint32_t at = newest + 1; at-- > 0 && r->open != 0 && nodes < NODES_MAX;) {
        mark_parents(r, at);
        r->mask = r->masks[at];
        if (r->mask == 0)
            continue;
        nodes++;
        r->now = r->lattice->order[at];
        CX_TRY(cx_content_read(&r->reader, r->now, err));
        CX_TRY(cx_content_visit(&r->reader, search_text, r, err));
    }
    return CX_SUCCESS;
}

static cx_status find_sources(reasons *r, cx_err *err)
{
    uint32_t newest = 0;
    for (size_t i = 0; i < r->count && i < CHANGE_SOURCES_MAX; i++) {
        uint32_t position = r->lattice->position[r->changes[i].which];
        CX_TRY(make_needle(r, i, err));
        newest = position > newest ? position : newest;
    }
    if (r->open == 0)
        return CX_SUCCESS;
    r->masks = cx_alloc_zeroed(r->lattice->alloc, (size_t)newest + 1, sizeof *r->masks);
    if (r->masks == NULL)
        return cx_fail_nomem(err);
    cx_status status = walk_back(r, newest, err);
    cx_alloc_free(r->lattice->alloc, r->masks, ((size_t)newest + 1) * sizeof *r->masks);
    return status;
}

cx_status cx_change_reasons(const cx_lattice *lattice, change_reason *changes, size_t count,
                            cx_arena *arena, cx_err *err)
{
    reasons r = {.lattice = lattice, .changes = changes, .count = count, .arena = arena};
    cx_status status = CX_SUCCESS;
    cx_content_init(&r.reader, lattice);
    cx_buf_init(&r.normal, lattice->alloc);
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        status = read_reason(&r, &changes[i], err);
    if (!cx_failed(status))
        status = find_sources(&r, err);
    cx_buf_done(&r.normal);
    cx_content_done(&r.reader);
    return status;
}
