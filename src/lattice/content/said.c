/*
 * said.c - who said something first: every place before a node whose content has a sentence.
 *
 *   {"node":ID,"places":[{"agent","call"?,"first","how","kind"?,"node","path"?,"role"?,
 *    "seq","text","tool"?}],"said":S,"total":N,"verified":B}
 *   first NODE AGENT#SEQ HOW: the sentence and what is around it
 *
 * Texts are compared with every stretch of white space as one space.  `first` places have none
 * before them.  A call that read or wrote a file (imports.md, files.PATH) names it.
 */
#include "lattice/ancestors.h"
#include "lattice/answer.h"
#include "lattice/content/content.h"

#define SENTENCE_MAX ((size_t)8192)
#define PLACES_MAX 200u
#define SNIPPET_BYTES 240u
#define NEAREST_WIDTH 8u /* bytes that a sentence must share with a text to be near */

typedef struct said_place {
    cx_node which;
    bool is_first;
    content_part part;
    cx_str role, tool, call_id, kind, path, snippet;
} said_place;

typedef struct said_near {
    cx_node which;
    content_part part;
    size_t size;
    cx_str text; /* what they share */
} said_near;

typedef struct said_search {
    const cx_lattice *lattice;
    cx_node target;
    cx_str sentence; /* normalised */
    content_reader reader;
    content_windows windows; /* of the sentence */
    cx_buf normal;
    cx_arena arena;
    cx_map files; /* call id -> number in paths + 1 */
    CX_VEC(cx_str) paths;
    CX_VEC(said_place) places;
    uint32_t total;
    uint64_t *before; /* by position: the target and its ancestors */
    uint64_t *heard;  /* by position: said there or before */
    cx_node now;
    bool is_before, is_found; /* of the node that is read */
    said_near near;
    cx_node elsewhere;
} said_search;

static bool has_bit(const uint64_t *bits, uint32_t position)
{
    return position != UINT32_MAX && (bits[position / 64] >> (position % 64) & 1) != 0;
}

static void set_bit(uint64_t *bits, uint32_t position)
{
    bits[position / 64] |= UINT64_C(1) << (position % 64);
}

/* --- files ------------------------------------------------------------------------------------ */

static cx_status note_file(said_search *s, cx_str path, const cx_json *one, cx_err *err)
{
    cx_str call = one == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(one, "call");
    uint64_t *number;
    bool is_new;
    if (call.size == 0)
        return CX_SUCCESS;
    cx_str key = cx_arena_copy_str(&s->arena, call);
    cx_str *slot = cx_vec_push(&s->paths, s->lattice->alloc);
    if (slot == NULL || key.data == NULL)
        return cx_fail_nomem(err);
    *slot = cx_arena_copy_str(&s->arena, path);
    if (slot->data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_map_put(&s->files, key, &number, &is_new, err));
    *number = s->paths.count;
    return CX_SUCCESS;
}

/* files.PATH.read and .written of what a node changed. */
static cx_status note_files(said_search *s, cx_err *err)
{
    const cx_json *at = CX_JSON_GET(&s->reader.source, "state_delta");
    at = at == NULL ? NULL : cx_json_get_typed(at, CX_STR("memory"), CX_JSON_OBJECT);
    at = at == NULL ? NULL : cx_json_get_typed(at, CX_STR("files"), CX_JSON_OBJECT);
    for (uint32_t i = 0; at != NULL && i < at->count; i++) {
        const cx_json *file = &at->members[i].value;
        cx_str path = cx_json_text(&at->members[i].name);
        if (file->type != CX_JSON_OBJECT)
            continue;
        CX_TRY(note_file(s, path, CX_JSON_GET(file, "read"), err));
        CX_TRY(note_file(s, path, CX_JSON_GET(file, "written"), err));
    }
    return CX_SUCCESS;
}

static cx_str path_of_call(const said_search *s, const content_text *text)
{
    const uint64_t *number;
    if (text->call_id.size == 0 ||
        (text->part != CONTENT_RESULT && text->part != CONTENT_ARGUMENTS) ||
        (number = cx_map_find(&s->files, text->call_id)) == NULL)
        return (cx_str){NULL, 0};
    return s->paths.items[*number - 1];
}

/* --- one text --------------------------------------------------------------------------------- */

static bool copy_text(said_search *s, cx_str *text)
{
    if (text->size == 0)
        return true;
    *text = cx_arena_copy_str(&s->arena, *text);
    return text->data != NULL;
}

static bool copy_snippet(said_search *s, cx_str text, size_t at, size_t size, size_t most,
                         cx_str *out)
{
    cx_buf snippet;
    cx_buf_init(&snippet, s->lattice->alloc);
    cx_content_snippet(&snippet, text, at, size, most);
    *out = snippet.failed ? (cx_str){NULL, 0} : cx_buf_str(&snippet);
    bool ok = !snippet.failed && copy_text(s, out);
    cx_buf_done(&snippet);
    return ok;
}

static cx_status add_place(said_search *s, const content_text *text, size_t at, cx_err *err)
{
    cx_str normal = cx_buf_str(&s->normal);
    if (s->places.count == PLACES_MAX)
        return CX_SUCCESS;
    said_place *place = cx_vec_push(&s->places, s->lattice->alloc);
    if (place == NULL)
        return cx_fail_nomem(err);
    *place = (said_place){.which = s->now,
                          .is_first = true,
                          .part = text->part,
                          .role = text->role,
                          .tool = text->tool,
                          .call_id = text->call_id,
                          .kind = CX_JSON_GET_STR(s->reader.event, "kind"),
                          .path = path_of_call(s, text)};
    const node *n = node_at(s->lattice, s->now);
    for (uint32_t i = 0; i < n->parent_count; i++)
        if (has_bit(s->heard, s->lattice->position[node_parents(s->lattice, n)[i]]))
            place->is_first = false;
    bool ok = copy_text(s, &place->role) && copy_text(s, &place->tool) &&
              copy_text(s, &place->call_id) && copy_text(s, &place->kind) &&
              copy_snippet(s, normal, at, s->sentence.size,
                           s->sentence.size > SNIPPET_BYTES ? SNIPPET_BYTES
                                                            : s->sentence.size + SNIPPET_BYTES / 2,
                           &place->snippet);
    return ok ? CX_SUCCESS : cx_fail_nomem(err);
}

/* Of texts that share as much the first one is the nearest. */
static cx_status note_near(said_search *s, const content_text *text, cx_err *err)
{
    size_t at, size = cx_windows_find(&s->windows, cx_buf_str(&s->normal), &at);
    if (size <= s->near.size)
        return CX_SUCCESS;
    s->near = (said_near){.which = s->now, .part = text->part, .size = size};
    return copy_snippet(s, cx_buf_str(&s->normal), at, size, size < 120 ? size + 40 : 160,
                        &s->near.text)
               ? CX_SUCCESS
               : cx_fail_nomem(err);
}

static cx_status search_text(void *arg, const content_text *text, cx_err *err)
{
    said_search *s = arg;
    if (s->is_found)
        return CX_SUCCESS;
    cx_buf_clear(&s->normal);
    cx_content_normal(&s->normal, text->text);
    CX_TRY(cx_buf_check(&s->normal, err));
    const char *hit =
        s->normal.size < s->sentence.size
            ? NULL
            : memmem(s->normal.data, s->normal.size, s->sentence.data, s->sentence.size);
    if (hit == NULL)
        return s->is_before && s->total == 0 ? note_near(s, text, err) : CX_SUCCESS;
    s->is_found = true;
    if (!s->is_before)
        return CX_SUCCESS;
    s->total++;
    return add_place(s, text, (size_t)(hit - (const char *)s->normal.data), err);
}

/* --- all nodes -------------------------------------------------------------------------------- */

static cx_status search_node(said_search *s, cx_node which, bool is_before, cx_err *err)
{
    s->now = which;
    s->is_before = is_before;
    s->is_found = false;
    CX_TRY(cx_content_read(&s->reader, which, err));
    if (is_before)
        CX_TRY(note_files(s, err));
    return cx_content_visit(&s->reader, search_text, s, err);
}

static cx_status search_before(said_search *s, cx_err *err)
{
    const cx_lattice *lattice = s->lattice;
    for (uint32_t at = 0; at <= lattice->position[s->target]; at++) {
        cx_node which = lattice->order[at];
        const node *n = node_at(lattice, which);
        if (!has_bit(s->before, at))
            continue;
        CX_TRY(search_node(s, which, true, err));
        bool heard = s->is_found;
        for (uint32_t i = 0; i < n->parent_count && !heard; i++)
            heard = has_bit(s->heard, lattice->position[node_parents(lattice, n)[i]]);
        if (heard)
            set_bit(s->heard, at);
    }
    return CX_SUCCESS;
}

/* Where it is when it is in nothing before: people ask about the wrong node. */
static cx_status search_elsewhere(said_search *s, cx_err *err)
{
    for (uint32_t at = 0; at < s->lattice->order_count && s->elsewhere == CX_NODE_NONE; at++) {
        if (has_bit(s->before, at))
            continue;
        CX_TRY(search_node(s, s->lattice->order[at], false, err));
        if (s->is_found)
            s->elsewhere = s->now;
    }
    return CX_SUCCESS;
}

/* --- the answer ------------------------------------------------------------------------------- */

static void place_how(cx_buf *out, const said_place *place)
{
    if (place->part == CONTENT_RESULT && place->path.size != 0) {
        cx_buf_add_z(out, "read from the file ");
        cx_answer_name(out, place->path);
    } else if (place->part == CONTENT_ARGUMENTS && place->path.size != 0) {
        cx_buf_add_z(out, "arguments of a call on the file ");
        cx_answer_name(out, place->path);
    } else if (place->part == CONTENT_RESULT || place->part == CONTENT_ARGUMENTS) {
        cx_buf_add_z(out, place->part == CONTENT_RESULT ? "result of " : "arguments of ");
        cx_answer_name(out, place->tool.size != 0 ? place->tool : CX_STR("a call"));
    } else if (place->part == CONTENT_GIVEN) {
        cx_buf_add_z(out, "given to the model as ");
        cx_answer_name(out, place->role.size != 0 ? place->role : CX_STR("input"));
    } else if (place->part == CONTENT_MESSAGE && place->role.size != 0) {
        cx_buf_add_z(out, "message of role ");
        cx_answer_name(out, place->role);
    } else {
        cx_buf_add_z(out, cx_content_part_name(place->part));
    }
    if (place->path.size != 0 && place->tool.size != 0) {
        cx_buf_add_z(out, " by ");
        cx_answer_name(out, place->tool);
    }
}

static void place_text(cx_buf *out, const cx_lattice *lattice, const said_place *place)
{
    cx_buf_add_z(out, place->is_first ? "first " : "then  ");
    cx_answer_node_name(out, lattice, place->which);
    cx_buf_add_byte(out, ' ');
    cx_answer_name(out, cx_lattice_agent_label(lattice, place->which));
    cx_buf_printf(out, "#%lld ", (long long)node_at(lattice, place->which)->seq);
    place_how(out, place);
    cx_buf_add_z(out, ": ");
    cx_answer_name(out, place->snippet);
    cx_buf_add_byte(out, '\n');
}

static void put_some(cx_buf *out, const char *name, cx_str text)
{
    if (text.size == 0)
        return;
    cx_buf_printf(out, ",\"%s\":", name);
    cx_answer_str(out, text);
}

static void place_json(cx_buf *out, const cx_lattice *lattice, const said_place *place)
{
    cx_buf_add_z(out, "{\"agent\":");
    cx_answer_str(out, cx_lattice_agent_label(lattice, place->which));
    put_some(out, "call", place->call_id);
    cx_buf_printf(out, ",\"first\":%s,\"how\":\"%s\"", place->is_first ? "true" : "false",
                  cx_content_part_name(place->part));
    put_some(out, "kind", place->kind);
    cx_buf_add_z(out, ",\"node\":");
    cx_answer_node_str(out, lattice, place->which);
    put_some(out, "path", place->path);
    put_some(out, "role", place->role);
    cx_buf_printf(out, ",\"seq\":%lld", (long long)node_at(lattice, place->which)->seq);
    cx_buf_add_z(out, ",\"text\":");
    cx_answer_str(out, place->snippet);
    put_some(out, "tool", place->tool);
    cx_buf_add_byte(out, '}');
}

static void put_node_name(cx_buf *out, const cx_lattice *lattice, cx_node which)
{
    cx_answer_name(out, cx_lattice_agent_label(lattice, which));
    cx_buf_printf(out, "#%lld", (long long)node_at(lattice, which)->seq);
}

static cx_status fail_not_said(said_search *s, cx_err *err)
{
    cx_buf text;
    CX_TRY(search_elsewhere(s, err));
    cx_buf_init(&text, s->lattice->alloc);
    cx_buf_add_z(&text, "neither ");
    put_node_name(&text, s->lattice, s->target);
    cx_buf_add_z(&text, " nor a step before it says this");
    if (s->elsewhere != CX_NODE_NONE) {
        cx_buf_add_z(&text, "; a step that is not before it does: ");
        put_node_name(&text, s->lattice, s->elsewhere);
    }
    if (s->near.size != 0) {
        cx_buf_add_z(&text, "; nearest is ");
        put_node_name(&text, s->lattice, s->near.which);
        cx_buf_printf(&text, " (%s): \"", cx_content_part_name(s->near.part));
        cx_answer_name(&text, s->near.text);
        cx_buf_add_byte(&text, '"');
    } else if (s->elsewhere == CX_NODE_NONE) {
        cx_buf_add_z(&text, ", and nothing there is like it");
    }
    cx_status status = cx_failed(cx_buf_check(&text, err))
                           ? (cx_status){CX_E_NOMEM}
                           : cx_fail_at(err, CX_E_NOT_FOUND, "NotSaid", CX_NO_OFFSET, "%.*s",
                                        (int)text.size, (const char *)text.data);
    cx_buf_done(&text);
    return status;
}

static cx_status put_answer(said_search *s, cx_buf *out, const cx_answer_options *options,
                            cx_err *err)
{
    const cx_lattice *lattice = s->lattice;
    if (options->json) {
        cx_buf_add_z(out, "{\"node\":");
        cx_answer_node_str(out, lattice, s->target);
        cx_buf_add_z(out, ",\"places\":[");
    }
    for (size_t i = 0; i < s->places.count; i++) {
        if (!options->json) {
            place_text(out, lattice, &s->places.items[i]);
            continue;
        }
        if (i != 0)
            cx_buf_add_byte(out, ',');
        place_json(out, lattice, &s->places.items[i]);
    }
    if (options->json) {
        cx_buf_add_z(out, "],\"said\":");
        cx_answer_str(out, s->sentence);
        cx_buf_printf(out, ",\"total\":%lu,", (unsigned long)s->total);
        cx_answer_end(out, options);
    } else if (s->total > s->places.count) {
        cx_buf_printf(out, "%lu later places are not listed.\n",
                      (unsigned long)(s->total - s->places.count));
    }
    return cx_buf_check(out, err);
}

static cx_status search_all(said_search *s, cx_buf *out, const cx_answer_options *options,
                            cx_err *err)
{
    CX_TRY(cx_windows_add(&s->windows, s->sentence, err));
    CX_TRY(cx_windows_make(&s->windows, err));
    set_bit(s->before, s->lattice->position[s->target]);
    cx_lattice_mark_ancestors(s->lattice, s->before);
    CX_TRY(search_before(s, err));
    return s->total == 0 ? fail_not_said(s, err) : put_answer(s, out, options, err);
}

static cx_status normal_sentence(cx_str text, cx_buf *out, cx_err *err)
{
    if (text.size > SENTENCE_MAX)
        return cx_fail(err, CX_E_USAGE, "the text has %lu bytes: at most %lu are looked for",
                       (unsigned long)text.size, (unsigned long)SENTENCE_MAX);
    cx_content_normal(out, text);
    CX_TRY(cx_buf_check(out, err));
    return out->size != 0 ? CX_SUCCESS : cx_fail(err, CX_E_USAGE, "the text to look for is empty");
}

static cx_status search_sentence(said_search *s, cx_str text, cx_buf *sentence, cx_buf *out,
                                 const cx_answer_options *options, cx_err *err)
{
    const cx_lattice *lattice = s->lattice;
    size_t words = ((size_t)lattice->order_count + 63) / 64;
    if (s->target >= lattice->nodes.count || lattice->position[s->target] == UINT32_MAX)
        return cx_fail(err, CX_E_NOT_FOUND, "the node is on or after a cycle, or in no history");
    CX_TRY(normal_sentence(text, sentence, err));
    s->sentence = cx_buf_str(sentence);
    s->before = cx_alloc_zeroed(lattice->alloc, 2 * words, sizeof *s->before);
    if (s->before == NULL)
        return cx_fail_nomem(err);
    s->heard = s->before + words;
    cx_status status = search_all(s, out, options, err);
    cx_alloc_free(lattice->alloc, s->before, 2 * words * sizeof *s->before);
    return status;
}

cx_status cx_lattice_answer_said(cx_buf *out, const cx_lattice *lattice, cx_node which, cx_str text,
                                 const cx_answer_options *options, cx_err *err)
{
    cx_buf sentence;
    said_search s = {.lattice = lattice, .target = which, .elsewhere = CX_NODE_NONE};
    cx_buf_init(&sentence, lattice->alloc);
    cx_buf_init(&s.normal, lattice->alloc);
    cx_arena_init(&s.arena, lattice->alloc, 0);
    cx_map_init(&s.files, lattice->alloc, lattice->seed);
    cx_content_init(&s.reader, lattice);
    cx_windows_init(&s.windows, lattice->alloc, NEAREST_WIDTH);
    cx_status status = search_sentence(&s, text, &sentence, out, options, err);
    cx_windows_done(&s.windows);
    cx_content_done(&s.reader);
    cx_map_done(&s.files);
    cx_arena_done(&s.arena);
    cx_vec_done(&s.paths, lattice->alloc);
    cx_vec_done(&s.places, lattice->alloc);
    cx_buf_done(&s.normal);
    cx_buf_done(&sentence);
    return status;
}
