/*
 * otlp.c - OTLP JSON, a document or a batch a line (§2.1): record = span, or log record.
 *
 *   {"resourceSpans":[{"resource":{"attributes":[KV]},
 *                      "scopeSpans":[{"scope":{...},"spans":[S, ...]}]}]}
 *
 * Log records are likewise in resourceLogs, scopeLogs, logRecords; spans come first.
 *
 * Resource and scope are stored in the file node: raw_top is the document less its records, and a
 * node refers to them by two indexes, `resource` and `scope`.  Exporters repeat the same batch head
 * line after line: of several batches raw_top is {"batches":[...]}, each different head once, and a
 * node's `batch` is an index into it.
 */
#include "import/gen_ai.h"

#include "crypto/api.h"

#define SPAN_SPACE 's'
#define NO_BATCH UINT64_MAX

typedef struct otlp_state {
    cx_map heads; /* canonical batch head -> index, of the current file */
    cx_json_list list;
    bool batched;
} otlp_state;

/* --- finding spans ---------------------------------------------------------------------------- */

static const cx_json *array_of(const cx_json *object, const char *name)
{
    return cx_json_get_typed(object, cx_str_z(name), CX_JSON_ARRAY);
}

typedef struct signal_names {
    const char *resources, *scopes, *old_scopes, *records;
} signal_names;

/* In the order in which their records are numbered. */
static const signal_names signals[] = {
    {"resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans"},
    {"resourceLogs", "scopeLogs", "instrumentationLibraryLogs", "logRecords"},
};
#define SPANS (&signals[0])

/* The name of the list of scopes of one resource; older files have the other one. */
static const char *scopes_name(const cx_json *resource, const signal_names *of)
{
    return array_of(resource, of->scopes) != NULL ? of->scopes : of->old_scopes;
}

static const cx_json *scopes_of(const cx_json *resource, const signal_names *of)
{
    return array_of(resource, scopes_name(resource, of));
}

static bool has_records(const cx_json *document)
{
    return array_of(document, signals[0].resources) != NULL ||
           array_of(document, signals[1].resources) != NULL;
}

static const cx_json *part_of(const cx_json *line, const signal_names *of, uint64_t part,
                              uint64_t *before)
{
    const cx_json *resources = array_of(line, of->resources);
    for (uint32_t i = 0; resources != NULL && i < resources->count; i++) {
        const cx_json *scopes = scopes_of(&resources->items[i], of);
        for (uint32_t k = 0; scopes != NULL && k < scopes->count; k++) {
            const cx_json *records = array_of(&scopes->items[k], of->records);
            if (records == NULL)
                continue;
            if (part - *before < records->count)
                return &records->items[part - *before];
            *before += records->count;
        }
    }
    return NULL;
}

static const cx_json *otlp_part(const cx_json *line, uint32_t part)
{
    uint64_t before = 0;
    const cx_json *found = part_of(line, &signals[0], part, &before);
    return found != NULL ? found : part_of(line, &signals[1], part, &before);
}

/* --- ids -------------------------------------------------------------------------------------- */

static bool is_hex(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
            return false;
    }
    return true;
}

static bool is_zeros(cx_str text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] != '0')
            return false;
    }
    return true;
}

/*
 * One spelling for equal ids: lower-case hex.  A plain protobuf printer writes base64 instead of
 * hex, which length and alphabet distinguish: 16 bytes are 32 digits or 24 characters.
 */
static void add_id(cx_buf *out, cx_str id, size_t byte_count, bool *is_base64)
{
    size_t start = out->size;
    if (id.size != 2 * byte_count && id.size == (byte_count + 2) / 3 * 4 &&
        cx_base64_decode(id, CX_BASE64, out)) {
        if (out->size - start == byte_count) {
            uint8_t bytes[16];
            memcpy(bytes, out->data + start, byte_count);
            out->size = start;
            cx_hex_add(out, cx_bytes_from(bytes, byte_count));
            *is_base64 = true;
            return;
        }
        out->size = start;
    }
    bool hex = is_hex(id);
    for (size_t i = 0; i < id.size; i++) {
        char c = id.data[i];
        cx_buf_add_byte(out, (uint8_t)(hex && c >= 'A' && c <= 'F' ? c | 0x20 : c));
    }
}

/* "<trace>/<span>"; empty when there is no span id, or no memory, which the record then keeps. */
static cx_str span_key(cx_import_record *r, cx_str trace, cx_str span, bool *is_base64)
{
    cx_buf buf;
    cx_str key = {NULL, 0};
    if (span.size == 0)
        return key;
    cx_buf_init(&buf, r->arena->alloc);
    add_id(&buf, trace, 16, is_base64);
    cx_buf_add_byte(&buf, '/');
    add_id(&buf, span, 8, is_base64);
    if (!buf.failed)
        key = cx_arena_copy_str(r->arena, cx_buf_str(&buf));
    r->failed |= key.data == NULL;
    cx_buf_done(&buf);
    return key;
}

/* --- a span ----------------------------------------------------------------------------------- */

typedef struct place {
    cx_str service;
    uint64_t batch; /* NO_BATCH = the whole document is one */
    uint32_t resource;
    uint32_t scope;
    uint32_t part;
} place;

static void refer_links(cx_import_record *r, const cx_json *span)
{
    const cx_json *links = array_of(span, "links");
    bool is_base64 = false;
    for (uint32_t i = 0; links != NULL && i < links->count; i++)
        cx_import_refer(r, SPAN_SPACE,
                        span_key(r, CX_JSON_GET_STR(&links->items[i], "traceId"),
                                 CX_JSON_GET_STR(&links->items[i], "spanId"), &is_base64),
                        CX_REF_OPTIONAL);
}

static void set_ids(cx_import_record *r, const cx_json *span, cx_str trace)
{
    cx_str parent = CX_JSON_GET_STR(span, "parentSpanId");
    bool is_base64 = false;
    r->src_id = CX_JSON_GET_STR(span, "spanId");
    cx_import_define(r, SPAN_SPACE, span_key(r, trace, r->src_id, &is_base64), CX_DEFINE_FIRST);
    if (parent.size != 0 && !is_zeros(parent)) {
        r->src_parent = parent;
        cx_import_refer(r, SPAN_SPACE, span_key(r, trace, parent, &is_base64), CX_REF_NAMED);
    } else {
        r->under_file = true;
    }
    refer_links(r, span);
    if (is_base64)
        cx_import_field_str(r, CX_STR("id_encoding"), CX_STR("base64"));
}

/* A record that is not an object is stored as a bad record. */
static cx_status import_unknown(cx_import_sink *sink, cx_import_record *r, cx_err *err)
{
    r->kind = CX_KIND_BAD;
    r->issues = 1u << CX_ISSUE_UNKNOWN_TYPE;
    return cx_import_end(sink, NULL, err);
}

static cx_import_record *begin_at(cx_import_sink *sink, const cx_json *value, const place *at)
{
    cx_import_record *r = cx_import_begin(sink);
    r->raw = value;
    if (sink->line != 0)
        r->part = at->part;
    return r;
}

static void add_place(cx_import_sink *sink, cx_import_record *r, const place *at)
{
    cx_import_field(r, CX_STR("resource"), cx_json_make_uint(sink->arena, at->resource));
    cx_import_field(r, CX_STR("scope"), cx_json_make_uint(sink->arena, at->scope));
    if (at->batch != NO_BATCH)
        cx_import_field(r, CX_STR("batch"), cx_json_make_uint(sink->arena, at->batch));
}

static cx_status import_span(cx_import_sink *sink, const cx_json *span, const place *at,
                             cx_err *err)
{
    cx_import_record *r = begin_at(sink, span, at);
    if (span->type != CX_JSON_OBJECT)
        return import_unknown(sink, r, err);
    cx_str trace = CX_JSON_GET_STR(span, "traceId");
    set_ids(r, span, trace);
    cx_import_set_ticks(r, CX_JSON_GET(span, "startTimeUnixNano"), 1);
    cx_import_field_str(r, CX_STR("trace_id"), trace);
    cx_import_field_str(r, CX_STR("name"), CX_JSON_GET_STR(span, "name"));
    add_place(sink, r, at);
    const cx_json *status = CX_JSON_GET(span, "status");
    const cx_import_span view = {
        .attributes = CX_JSON_GET(span, "attributes"),
        .arena = sink->arena,
        .name = CX_JSON_GET_STR(span, "name"),
        .fallback_agent = at->service,
        .scope = trace,
        .outcome = cx_import_span_outcome(status == NULL ? NULL : CX_JSON_GET(status, "code")),
    };
    CX_TRY(cx_import_gen_ai(r, &view, err));
    return cx_import_end(sink, NULL, err);
}

/* --- a log record ----------------------------------------------------------------------------- */

#define SEVERITY_ERROR 17 /* and what is above it */

static cx_import_kind log_kind(const cx_json *log, cx_str name)
{
    static const struct {
        const char *name;
        cx_import_kind kind;
    } kinds[] = {
        {"gen_ai.choice", CX_KIND_REASON},
        {"gen_ai.assistant.message", CX_KIND_REASON},
        {"gen_ai.client.inference.operation.details", CX_KIND_REASON},
        {"gen_ai.user.message", CX_KIND_INPUT},
        {"gen_ai.system.message", CX_KIND_INPUT},
        {"gen_ai.tool.message", CX_KIND_TOOL_RESULT},
    };
    const cx_json *severity = CX_JSON_GET(log, "severityNumber");
    int64_t number = 0;
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++)
        if (cx_str_is(name, kinds[i].name))
            return kinds[i].kind;
    if (severity != NULL && cx_json_int64(severity, &number) && number >= SEVERITY_ERROR)
        return CX_KIND_ERROR;
    return CX_KIND_OBSERVE;
}

/* Zero means an unknown time in OTLP. */
static void set_log_time(cx_import_record *r, const cx_json *log)
{
    static const char *const names[] = {"timeUnixNano", "observedTimeUnixNano"};
    for (size_t i = 0; i < CX_COUNT_OF(names) && (!r->has_time || r->t_ns == 0); i++)
        cx_import_set_ticks(r, cx_json_get(log, cx_str_z(names[i])), 1);
    r->has_time = r->has_time && r->t_ns != 0;
}

/* It belongs to its span, and to that span's agent. */
static void refer_span(cx_import_record *r, const cx_json *log)
{
    cx_str trace = CX_JSON_GET_STR(log, "traceId"), span = CX_JSON_GET_STR(log, "spanId");
    bool is_base64 = false;
    cx_import_field_str(r, CX_STR("trace_id"), trace);
    if (span.size == 0 || is_zeros(span)) {
        r->under_file = true;
        return;
    }
    r->src_parent = span;
    cx_import_refer(r, SPAN_SPACE, span_key(r, trace, span, &is_base64), CX_REF_NAMED);
    if (is_base64)
        cx_import_field_str(r, CX_STR("id_encoding"), CX_STR("base64"));
}

static cx_status import_log(cx_import_sink *sink, const cx_json *log, const place *at, cx_err *err)
{
    cx_import_record *r = begin_at(sink, log, at);
    if (log->type != CX_JSON_OBJECT)
        return import_unknown(sink, r, err);
    const cx_import_span view = {.attributes = CX_JSON_GET(log, "attributes"),
                                 .arena = sink->arena};
    cx_str name = CX_JSON_GET_STR(log, "eventName");
    if (name.size == 0)
        name = cx_import_attribute_str(&view, CX_STR("event.name"));
    refer_span(r, log);
    set_log_time(r, log);
    r->kind = log_kind(log, name);
    r->content = CX_JSON_GET(log, "body");
    r->agent = cx_import_attribute_str(&view, CX_STR("gen_ai.agent.name"));
    if (r->agent.size == 0) {
        r->agent = at->service;
        r->inherit_agent = true;
    }
    cx_import_field_str(r, CX_STR("name"), name);
    cx_import_field_str(r, CX_STR("signal"), CX_STR("log"));
    cx_import_field_str(r, CX_STR("severity"), CX_JSON_GET_STR(log, "severityText"));
    add_place(sink, r, at);
    return cx_import_end(sink, NULL, err);
}

/* --- a batch ---------------------------------------------------------------------------------- */

static cx_str service_of(const cx_json *resource)
{
    const cx_json *of = CX_JSON_GET(resource, "resource");
    const cx_import_span view = {.attributes = of == NULL ? NULL : CX_JSON_GET(of, "attributes")};
    return cx_import_attribute_str(&view, CX_STR("service.name"));
}

static cx_status import_signal(cx_import_sink *sink, const cx_json *document,
                               const signal_names *of, place *at, cx_err *err)
{
    const cx_json *resources = array_of(document, of->resources);
    for (uint32_t i = 0; resources != NULL && i < resources->count; i++) {
        const cx_json *scopes = scopes_of(&resources->items[i], of);
        at->resource = i;
        at->service = service_of(&resources->items[i]);
        for (uint32_t k = 0; scopes != NULL && k < scopes->count; k++) {
            const cx_json *records = array_of(&scopes->items[k], of->records);
            at->scope = k;
            for (uint32_t n = 0; records != NULL && n < records->count; n++, at->part++)
                CX_TRY(of == SPANS ? import_span(sink, &records->items[n], at, err)
                                   : import_log(sink, &records->items[n], at, err));
        }
    }
    return CX_SUCCESS;
}

static cx_status import_records(cx_import_sink *sink, const cx_json *document, uint64_t batch,
                                cx_err *err)
{
    place at = {.batch = batch};
    for (size_t i = 0; i < CX_COUNT_OF(signals); i++)
        CX_TRY(import_signal(sink, document, &signals[i], &at, err));
    return CX_SUCCESS;
}

/* --- the document without its records --------------------------------------------------------- */

/* A copy of an object with one member replaced by another value. */
static cx_status with_member(const cx_json *object, const char *name, cx_json value,
                             cx_arena *arena, cx_json *out, cx_err *err)
{
    const char *const names[] = {name, NULL};
    cx_json_list list = cx_json_list_begin(arena);
    cx_json rest;
    CX_TRY(cx_import_without(object, names, arena, &rest, err));
    for (uint32_t i = 0; i < rest.count; i++)
        cx_json_list_put(&list, cx_json_text(&rest.members[i].name), rest.members[i].value);
    cx_json_list_put(&list, cx_str_z(name), value);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status scopes_without(const cx_json *scopes, const char *records, cx_arena *arena,
                                cx_json *out, cx_err *err)
{
    const char *const names[] = {records, NULL};
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; i < scopes->count; i++) {
        cx_json item = scopes->items[i];
        if (array_of(&item, records) != NULL)
            CX_TRY(cx_import_without(&scopes->items[i], names, arena, &item, err));
        cx_json_list_add(&list, item);
    }
    return cx_json_list_end_array(&list, out, err);
}

static cx_status without_signal(const cx_json *document, const signal_names *of, cx_arena *arena,
                                cx_json *out, cx_err *err)
{
    const cx_json *resources = array_of(document, of->resources);
    cx_json_list list = cx_json_list_begin(arena);
    cx_json made;
    if (resources == NULL) {
        *out = *document;
        return CX_SUCCESS;
    }
    for (uint32_t i = 0; i < resources->count; i++) {
        const cx_json *resource = &resources->items[i];
        const cx_json *scopes = scopes_of(resource, of);
        made = *resource;
        if (scopes != NULL) {
            cx_json without_parts;
            CX_TRY(scopes_without(scopes, of->records, arena, &without_parts, err));
            CX_TRY(
                with_member(resource, scopes_name(resource, of), without_parts, arena, &made, err));
        }
        cx_json_list_add(&list, made);
    }
    CX_TRY(cx_json_list_end_array(&list, &made, err));
    return with_member(document, of->resources, made, arena, out, err);
}

static cx_status without_records(const cx_json *document, cx_arena *arena, cx_json *out,
                                 cx_err *err)
{
    cx_json half;
    CX_TRY(without_signal(document, &signals[0], arena, &half, err));
    return without_signal(&half, &signals[1], arena, out, err);
}

/* --- batches ---------------------------------------------------------------------------------- */

/* The number of a batch's head among the different ones of this file. */
static cx_status number_head(cx_import_sink *sink, const cx_json *batch, uint64_t *out, cx_err *err)
{
    otlp_state *state = sink->state;
    cx_json head, stored;
    cx_buf text;
    uint64_t *number = NULL;
    bool is_new = false;
    cx_status status;
    if (!state->batched) {
        cx_map_init(&state->heads, sink->keep->alloc, 0);
        state->list = cx_json_list_begin(sink->keep);
        state->batched = true;
    }
    cx_buf_init(&text, sink->keep->alloc);
    CX_TRY_GOTO(status, without_records(batch, sink->arena, &head, err));
    CX_TRY_GOTO(status, cx_json_write(&text, &head, CX_JSON_PY_COMPACT, err));
    CX_TRY_GOTO(status, cx_buf_check(&text, err));
    if ((number = cx_map_find(&state->heads, cx_buf_str(&text))) == NULL) {
        cx_str key = cx_arena_copy_str(sink->keep, cx_buf_str(&text));
        CX_TRY_GOTO(status, key.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS);
        CX_TRY_GOTO(status, cx_map_put(&state->heads, key, &number, &is_new, err));
        *number = state->list.count;
        CX_TRY_GOTO(status, cx_json_copy(&head, sink->keep, &stored, err));
        cx_json_list_add(&state->list, stored);
    }
    *out = *number;
done:
    cx_buf_done(&text);
    return status;
}

static cx_status import_batch(cx_import_sink *sink, const cx_json *batch, cx_err *err)
{
    uint64_t number = 0;
    if (!has_records(batch))
        return cx_import_bad(sink, batch, UINT64_MAX, err);
    CX_TRY(number_head(sink, batch, &number, err));
    return import_records(sink, batch, number, err);
}

static cx_status otlp_document(cx_import_sink *sink, const cx_json *document, cx_err *err)
{
    if (document->type == CX_JSON_ARRAY) {
        for (uint32_t i = 0; i < document->count; i++)
            CX_TRY(import_batch(sink, &document->items[i], err));
        return CX_SUCCESS;
    }
    cx_json top;
    if (!has_records(document))
        return cx_import_shape(err, "an object with an array resourceSpans or resourceLogs");
    CX_TRY(without_records(document, sink->arena, &top, err));
    CX_TRY(cx_import_top(sink, &top, err));
    return import_records(sink, document, NO_BATCH, err);
}

static cx_status otlp_file_end(cx_import_sink *sink, cx_err *err)
{
    otlp_state *state = sink->state;
    cx_json batches, top;
    if (!state->batched)
        return CX_SUCCESS;
    state->batched = false;
    cx_map_done(&state->heads);
    cx_json_list list = cx_json_list_begin(sink->keep);
    CX_TRY(cx_json_list_end_array(&state->list, &batches, err));
    cx_json_list_put(&list, CX_STR("batches"), batches);
    CX_TRY(cx_json_list_end_object(&list, &top, err));
    return cx_import_top(sink, &top, err);
}

static void otlp_done(cx_import_sink *sink)
{
    otlp_state *state = sink->state;
    if (state->batched)
        cx_map_done(&state->heads);
}

static void otlp_content(cx_import_content *content, const cx_json *raw)
{
    const cx_json *attributes = CX_JSON_GET(raw, "attributes");
    const cx_json *status = CX_JSON_GET(raw, "status");
    cx_import_record times[2] = {0};
    if (cx_str_is(CX_JSON_GET_STR(content->derived, "signal"), "log")) {
        cx_import_say_log(content, attributes, CX_JSON_GET(raw, "body"),
                          CX_JSON_GET_STR(content->derived, "name"));
        return;
    }
    cx_import_say_span(content, attributes, CX_JSON_GET(raw, "events"),
                       status == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(status, "message"));
    cx_import_set_ticks(&times[0], CX_JSON_GET(raw, "startTimeUnixNano"), 1);
    cx_import_set_ticks(&times[1], CX_JSON_GET(raw, "endTimeUnixNano"), 1);
    if (times[0].has_time && times[1].has_time)
        cx_import_say_duration(content, times[0].t_ns, times[1].t_ns);
}

static int otlp_detect(cx_bytes head, const cx_json *first)
{
    static const char spans[] = "\"resourceSpans\"", logs[] = "\"resourceLogs\"";
    if (first != NULL)
        return has_records(first) ? 95 : 0;
    return head.size != 0 && (memmem(head.data, head.size, spans, sizeof spans - 1) != NULL ||
                              memmem(head.data, head.size, logs, sizeof logs - 1) != NULL)
               ? 80
               : 0;
}

const cx_import_format cx_import_otlp = {
    .info = {"otlp", "OpenTelemetry OTLP/JSON spans and logs",
             "{\"resourceSpans\":[...]}, one document or one a line, GenAI attributes understood",
             false},
    .state_size = sizeof(otlp_state),
    .document = otlp_document,
    .line = import_batch,
    .file_end = otlp_file_end,
    .done = otlp_done,
    .part = otlp_part,
    .content = otlp_content,
    .detect = otlp_detect,
};
