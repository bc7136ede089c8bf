/*
 * view_steps.c - what was said and done, step by step, for reading (docs/formats/view.md).
 *
 *   {"from","next","previous","steps":[{node.., "at", content..}],"total"}
 *
 * A step's content is what its event says (steps.md §1, imports.md §1.15), in the recorded
 * spelling; of other events, such as those of signed traces and runs, it is `data`: what they
 * changed.
 */
#include "json/api.h"
#include "lattice/answer.h"
#include "view/view_internal.h"

#define TEXT_BYTES_MAX 32768 /* of one text; the event has all of it */

typedef struct steps_page {
    const cx_lattice_view *view;
    const cx_lattice *lattice;
    cx_buf *out;
    cx_buf text; /* scratch */
    cx_arena arena;
    uint32_t told;
} steps_page;

/* "name":{"cut","size","text"} of a text as it is, or of other JSON in canonical form. */
static cx_status put_member(steps_page *p, const char *name, const cx_json *value, cx_err *err)
{
    if (value == NULL || value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    cx_buf_printf(p->out, ",\"%s\":", name);
    if (value->type == CX_JSON_STRING) {
        cx_lattice_view_put_text(p->out, cx_json_text(value), TEXT_BYTES_MAX);
        return CX_SUCCESS;
    }
    cx_buf_clear(&p->text);
    CX_TRY(cx_json_has_canonical(value) ? cx_json_write(&p->text, value, CX_JSON_PY_COMPACT, err)
                                        : cx_json_write_pretty(&p->text, value, 0, err));
    CX_TRY(cx_buf_check(&p->text, err));
    cx_lattice_view_put_text(p->out, cx_buf_str(&p->text), TEXT_BYTES_MAX);
    return CX_SUCCESS;
}

static void put_word(steps_page *p, const char *name, cx_str text)
{
    if (text.size == 0)
        return;
    cx_buf_printf(p->out, ",\"%s\":", name);
    cx_answer_str(p->out, text);
}

static void put_number(steps_page *p, const char *name, const cx_json *value)
{
    double number = 0;
    if (value == NULL || !cx_json_is_number(value) || !cx_json_double(value, &number))
        return;
    cx_buf_printf(p->out, ",\"%s\":", name);
    cx_lattice_view_put_double(p->out, number);
}

static const char *const texts[] = {"text", "thinking", "error", "because", "arguments", "result"};
static const char *const words[] = {"kind", "role",   "tool",   "call_id",    "model",
                                    "name", "source", "status", "event_type", "component"};

static bool has_any(const cx_json *event, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const cx_json *value = cx_json_get(event, cx_str_z(names[i]));
        if (value != NULL && value->type != CX_JSON_NULL)
            return true;
    }
    return false;
}

/* Each of several calls in a record: {"arguments","call_id","failed","result","tool"}. */
static cx_status put_calls(steps_page *p, const cx_json *calls, cx_err *err)
{
    if (calls == NULL || calls->type != CX_JSON_ARRAY)
        return CX_SUCCESS;
    cx_buf_add_z(p->out, ",\"calls\":[");
    for (uint32_t i = 0; i < calls->count; i++) {
        const cx_json *call = &calls->items[i], *failed = CX_JSON_GET(call, "failed");
        cx_buf_printf(p->out, "%s{\"failed\":%s", i == 0 ? "" : ",",
                      failed != NULL && failed->type == CX_JSON_TRUE ? "true" : "false");
        put_word(p, "call_id", CX_JSON_GET_STR(call, "call_id"));
        put_word(p, "tool", CX_JSON_GET_STR(call, "tool"));
        CX_TRY(put_member(p, "arguments", CX_JSON_GET(call, "arguments"), err));
        CX_TRY(put_member(p, "result", CX_JSON_GET(call, "result"), err));
        cx_buf_add_byte(p->out, '}');
    }
    cx_buf_add_byte(p->out, ']');
    return CX_SUCCESS;
}

static cx_status put_inputs(steps_page *p, const cx_json *inputs, cx_err *err)
{
    if (inputs == NULL || inputs->type != CX_JSON_ARRAY)
        return CX_SUCCESS;
    cx_buf_add_z(p->out, ",\"input\":[");
    for (uint32_t i = 0; i < inputs->count; i++) {
        cx_buf_add_z(p->out, i == 0 ? "{\"role\":" : ",{\"role\":");
        cx_answer_str(p->out, CX_JSON_GET_STR(&inputs->items[i], "role"));
        CX_TRY(put_member(p, "text", CX_JSON_GET(&inputs->items[i], "text"), err));
        cx_buf_add_byte(p->out, '}');
    }
    cx_buf_add_byte(p->out, ']');
    return CX_SUCCESS;
}

static cx_status put_content(steps_page *p, const cx_json *source, const cx_json *event,
                             cx_err *err)
{
    const cx_json *tokens = CX_JSON_GET(event, "tokens");
    for (size_t i = 0; i < CX_COUNT_OF(words); i++)
        put_word(p, words[i], cx_json_get_str(event, cx_str_z(words[i])));
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++)
        CX_TRY(put_member(p, texts[i], cx_json_get(event, cx_str_z(texts[i])), err));
    CX_TRY(put_calls(p, CX_JSON_GET(event, "tool_calls"), err));
    CX_TRY(put_inputs(p, CX_JSON_GET(event, "input"), err));
    put_number(p, "cost_usd", CX_JSON_GET(event, "cost_usd"));
    put_number(p, "duration_ns", CX_JSON_GET(event, "duration_ns"));
    put_number(p, "images", CX_JSON_GET(event, "images"));
    if (tokens != NULL) {
        put_number(p, "tokens_input", CX_JSON_GET(tokens, "input"));
        put_number(p, "tokens_output", CX_JSON_GET(tokens, "output"));
    }
    if (has_any(event, texts, CX_COUNT_OF(texts)) || CX_JSON_GET(event, "tool_calls") != NULL)
        return CX_SUCCESS;
    return put_member(p, "data", CX_JSON_GET(source, "state_delta"), err);
}

/* Imported records that say nothing are what programs note between the steps. */
static bool is_silent(const cx_json *event)
{
    return CX_JSON_GET(event, "at") != NULL && CX_JSON_GET(event, "source") != NULL &&
           !has_any(event, texts, CX_COUNT_OF(texts)) && CX_JSON_GET(event, "tool_calls") == NULL &&
           CX_JSON_GET(event, "input") == NULL;
}

static cx_status put_step(steps_page *p, uint32_t at, bool all, cx_err *err)
{
    cx_json source;
    cx_node n = p->lattice->order[at];
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    CX_TRY(cx_lattice_source(p->lattice, n, &p->arena, &source, err));
    const cx_json *event = cx_json_get_typed(&source, CX_STR("event"), CX_JSON_OBJECT);
    if (event != NULL && (all || !is_silent(event))) {
        cx_buf_printf(p->out, "%s{\"at\":%lu,", p->told++ == 0 ? "" : ",", (unsigned long)at);
        cx_lattice_view_put_node(p->out, p->view, n);
        if (node_at(p->lattice, n)->flags & NODE_FAILED)
            cx_buf_add_z(p->out, ",\"failed\":true");
        CX_TRY(put_content(p, &source, event, err));
        CX_TRY(cx_lattice_view_put_images(p->out, p->view, event, err));
        cx_buf_add_byte(p->out, '}');
    }
    cx_arena_reset(&p->arena, mark);
    return CX_SUCCESS;
}

static uint32_t ordered_count(const cx_lattice *lattice)
{
    uint32_t count = 0;
    for (cx_node n = 0; n < lattice->nodes.count; n++)
        count += lattice->position[n] != UINT32_MAX;
    return count;
}

/* From `from` on until there are enough, or those before it that are enough. */
static cx_status put_page(steps_page *p, const cx_lattice_view_steps_asked *asked, uint32_t total,
                          uint32_t *out_next, cx_err *err)
{
    uint32_t most = asked->count == 0 ? CX_LATTICE_VIEW_READ_MAX : asked->count;
    uint32_t at = asked->from;
    size_t start = p->out->size;
    for (; at < total && p->told < most && p->out->size - start < CX_LATTICE_VIEW_READ_BYTES; at++)
        CX_TRY(put_step(p, at, asked->all, err));
    *out_next = at;
    return CX_SUCCESS;
}

cx_status cx_lattice_view_steps(cx_buf *out, const cx_lattice_view *view,
                                const cx_lattice_view_steps_asked *asked, cx_err *err)
{
    const cx_lattice *lattice = view->lattice;
    uint32_t total = ordered_count(lattice), next = 0;
    cx_lattice_view_steps_asked from = *asked;
    if (asked->node != CX_NODE_NONE) {
        CX_TRY(cx_lattice_view_need_place(lattice, asked->node, err));
        uint32_t place = lattice->position[asked->node];
        from.from = place > asked->before ? place - asked->before : 0;
    }
    steps_page p = {.view = view, .lattice = lattice, .out = out};
    cx_buf_init(&p.text, lattice->alloc);
    cx_arena_init(&p.arena, lattice->alloc, 0);
    cx_buf_printf(out, "{\"from\":%lu,\"steps\":[", (unsigned long)from.from);
    cx_status status = put_page(&p, &from, total, &next, err);
    cx_buf_done(&p.text);
    cx_arena_done(&p.arena);
    CX_TRY(status);
    cx_buf_add_z(out, "],\"next\":");
    if (next < total)
        cx_buf_printf(out, "%lu", (unsigned long)next);
    else
        cx_buf_add_z(out, "null");
    cx_buf_printf(out, ",\"total\":%lu}\n", (unsigned long)total);
    return cx_buf_check(out, err);
}
