/*
 * form.c - the eight canonical forms a trace may have been signed in (§3).
 *
 * A to G are written piece by piece: the envelope's names are ASCII and are listed in order here.
 * H has the members of G in RFC 8785, so G is read back and written that way.
 */
#include "trace/internal.h"

#include "crypto/api.h"

typedef enum stripping {
    STRIP_NOTHING,
    STRIP_DATA,     /* data only, kept even when empty */
    STRIP_COMPONENT /* the whole component; empty data is removed */
} stripping;

/* A canonical text being written. */
typedef struct forming {
    cx_buf *out;
    const cx_trace *trace;
    bool spaces, python_numbers;
    bool differs;
    cx_status status;
    cx_err *err;
} forming;

/* --- pieces ----------------------------------------------------------------------------------- */

static void add_literal(forming *f, const char *text)
{
    cx_buf_add_z(f->out, text);
}

static void add_value(forming *f, const cx_json *value, bool strip)
{
    const cx_canon_style style = {f->spaces, f->python_numbers, strip};
    if (!cx_failed(f->status))
        f->status = cx_canon_value(value, &style, f->out, &f->differs, f->err);
}

/* A comma unless it is the first, and the name. */
static void add_name(forming *f, const char *name, bool first)
{
    if (!first)
        add_literal(f, f->spaces ? ", " : ",");
    add_literal(f, "\"");
    add_literal(f, name);
    add_literal(f, f->spaces ? "\": " : "\":");
}

/* A member of the envelope as it was received; absent is null. */
static void add_member(forming *f, const char *name, bool first)
{
    const cx_json *value = cx_json_get(f->trace->json, cx_str_z(name));
    add_name(f, name, first);
    if (value == NULL)
        add_literal(f, "null");
    else
        add_value(f, value, false);
}

/* --- components ------------------------------------------------------------------------------- */

static bool is_empty_value(const cx_json *value)
{
    return value->type == CX_JSON_NULL || (value->type >= CX_JSON_STRING && value->count == 0);
}

/* A member of a component; with STRIP_COMPONENT nothing when it is empty after stripping. */
static void add_part(forming *f, const char *name, const cx_json *value, stripping strip,
                     bool *first)
{
    bool is_data = strcmp(name, "data") == 0;
    size_t before = f->out->size;
    if (strip == STRIP_COMPONENT && is_empty_value(value))
        return;
    add_name(f, name, *first);
    size_t start = f->out->size;
    add_value(f, value, strip == STRIP_COMPONENT || (strip == STRIP_DATA && is_data));
    if (strip == STRIP_COMPONENT && value->type >= CX_JSON_ARRAY && !f->out->failed &&
        f->out->size - start == 2) {
        f->out->size = before;
        return;
    }
    *first = false;
}

/* The component's own, else the envelope's (c5 of §3); NULL when there is none. */
static const cx_json *agent_of(const forming *f, const cx_json *component)
{
    const cx_json *own = CX_JSON_GET(component, "agent_id_hash");
    if (own != NULL && own->type != CX_JSON_NULL)
        return own;
    return CX_JSON_GET(f->trace->json, "agent_id_hash");
}

static void add_component(forming *f, const cx_json *component, stripping strip, bool with_agent)
{
    static const char *const names[] = {"component_type", "data", "event_type", "timestamp"};
    const cx_json *agent = with_agent ? agent_of(f, component) : NULL;
    bool first = true;
    add_literal(f, "{");
    if (agent != NULL)
        add_part(f, "agent_id_hash", agent, strip, &first);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        add_part(f, names[i], cx_json_get(component, cx_str_z(names[i])), strip, &first);
    add_literal(f, "}");
}

static void add_components(forming *f, stripping strip, bool with_agent)
{
    add_literal(f, "[");
    for (uint32_t i = 0; i < f->trace->component_count; i++) {
        if (i != 0)
            add_literal(f, f->spaces ? ", " : ",");
        add_component(f, f->trace->components[i].json, strip, with_agent);
    }
    add_literal(f, "]");
}

/* --- forms ------------------------------------------------------------------------------------ */

/* A's text is hashed; the digits of its hash are what was signed. */
static void form_a(forming *f)
{
    size_t before = f->out->size;
    add_literal(f, "{");
    add_member(f, "agent_id_hash", true);
    add_member(f, "completed_at", false);
    add_name(f, "components", false);
    add_components(f, STRIP_NOTHING, false);
    add_member(f, "started_at", false);
    add_member(f, "task_id", false);
    add_member(f, "thought_id", false);
    add_member(f, "trace_id", false);
    add_literal(f, "}");
    if (f->out->failed)
        return;
    cx_digest digest = cx_digest_of(cx_bytes_from(f->out->data + before, f->out->size - before));
    f->out->size = before;
    cx_hex_add(f->out, cx_bytes_from(digest.bytes, sizeof digest.bytes));
}

static void form_e(forming *f, const cx_trace_bytes *which)
{
    cx_trace_level level =
        f->trace->level != CX_LEVEL_ABSENT ? f->trace->level : which->batch_level;
    add_literal(f, "{");
    add_name(f, "components", true);
    add_components(f, which->strip_data_only ? STRIP_DATA : STRIP_COMPONENT, false);
    add_name(f, "trace_level", false);
    if (level == CX_LEVEL_ABSENT) {
        add_literal(f, "null");
    } else {
        add_literal(f, "\"");
        add_literal(f, cx_trace_level_name(level));
        add_literal(f, "\"");
    }
    add_literal(f, "}");
}

static void form_f_or_g(forming *f, bool is_g)
{
    const cx_json *profile = is_g ? CX_JSON_GET(f->trace->json, "deployment_profile") : NULL;
    add_literal(f, "{");
    add_member(f, "agent_id_hash", true);
    add_member(f, "completed_at", false);
    add_name(f, "components", false);
    add_components(f, STRIP_COMPONENT, is_g);
    if (profile != NULL && profile->type != CX_JSON_NULL)
        add_member(f, "deployment_profile", false);
    add_member(f, "started_at", false);
    add_member(f, "task_id", false);
    add_member(f, "thought_id", false);
    add_member(f, "trace_id", false);
    add_member(f, "trace_level", false);
    add_member(f, "trace_schema_version", false);
    add_literal(f, "}");
}

/* G read back and written as RFC 8785. */
static void form_h(forming *f)
{
    size_t before = f->out->size;
    cx_arena arena;
    cx_json value;
    cx_buf text;
    form_f_or_g(f, true);
    if (f->out->failed || cx_failed(f->status))
        return;
    cx_arena_init(&arena, f->out->alloc, 0);
    cx_buf_init(&text, f->out->alloc);
    cx_buf_add(&text, f->out->data + before, f->out->size - before);
    f->out->size = before;
    f->status = cx_buf_check(&text, f->err);
    if (!cx_failed(f->status))
        f->status = cx_json_parse_text(cx_buf_str(&text), &arena, &value, f->err);
    if (!cx_failed(f->status))
        f->status = cx_json_write(f->out, &value, CX_JSON_JCS, f->err);
    cx_buf_done(&text);
    cx_arena_done(&arena);
}

static void form(forming *f, const cx_trace_bytes *which)
{
    switch (which->form) {
    case CX_FORM_A: form_a(f); break;
    case CX_FORM_B: f->spaces = true; /* fall through */
    case CX_FORM_C: add_components(f, STRIP_NOTHING, false); break;
    case CX_FORM_D: add_components(f, STRIP_DATA, false); break;
    case CX_FORM_E: form_e(f, which); break;
    case CX_FORM_F: form_f_or_g(f, false); break;
    case CX_FORM_G: form_f_or_g(f, true); break;
    case CX_FORM_H: form_h(f); break;
    case CX_FORM_NONE: CX_ASSERT(which->form != CX_FORM_NONE); break;
    }
}

cx_status cx_trace_canonical_noting(const cx_trace *trace, const cx_trace_bytes *which, cx_buf *out,
                                    bool *out_differs, cx_err *err)
{
    size_t before = out->size;
    forming f = {.out = out,
                 .trace = trace,
                 .python_numbers = which->python_numbers && which->form != CX_FORM_H,
                 .status = CX_SUCCESS,
                 .err = err};
    form(&f, which);
    if (!cx_failed(f.status))
        f.status = cx_buf_check(out, err);
    if (cx_failed(f.status)) {
        out->size = before;
        return f.status;
    }
    *out_differs = f.differs;
    return CX_SUCCESS;
}

cx_status cx_trace_canonical(const cx_trace *trace, const cx_trace_bytes *which, cx_buf *out,
                             cx_err *err)
{
    bool differs;
    return cx_trace_canonical_noting(trace, which, out, &differs, err);
}
