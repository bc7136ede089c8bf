/*
 * external.c - assembles received OTLP requests into one OTLP document, which the importer turns
 * into nodes.
 *
 *   F1  A span counts once: the first content under its ids, and every other content once more,
 *       which the importer labels duplicate_id.
 *   F2  Records are sorted by content, and placed under their resource and scope as in the document
 *       that one exporter would have written of all of them; so the order of arrival has no effect.
 */
#include "server/feed/external_internal.h"

#include <stdlib.h>

#include "base/api.h"
#include "crypto/api.h"
#include "import/api.h"
#include "recorder/api.h"

#define BRANCH "otel"
#define SERVICE BRANCH "/service/"

/* A resource or scope without what is in it; scopes are numbered over all. */
typedef struct head {
    cx_str text;  /* canonical JSON of the object */
    size_t above; /* of a scope: its resource; else 0 */
    cx_otlp_signal signal;
} head;

typedef struct item {
    size_t scope;
    cx_otlp_signal signal;
    uint64_t start_ns;
    uint8_t ids[CX_OTLP_TRACE_ID_SIZE + CX_OTLP_SPAN_ID_SIZE];
    uint64_t arrival; /* only between contents under the same ids (F1) */
    cx_str text;      /* canonical JSON */
} item;

typedef struct builder {
    cx_home *home;
    const cx_external_options *wanted;
    bool by_trace, by_service;
    uint8_t trace_id[CX_OTLP_TRACE_ID_SIZE];
    cx_str service;
    cx_arena arena;   /* of the whole */
    cx_arena scratch; /* of one request */
    cx_buf text;
    cx_map heads; /* signal, level, above, text -> place in heads */
    cx_map seen;  /* ids and content -> 1 */
    CX_VEC(head) list;
    CX_VEC(item) items;
    size_t bytes;
} builder;

/* --- the requested branch --------------------------------------------------------------------- */

bool cx_external_is(cx_str branch)
{
    return cx_external_is_session(branch) || cx_str_is(branch, BRANCH) ||
           cx_str_starts(branch, CX_STR(BRANCH "/"));
}

static cx_status read_branch(builder *w, cx_err *err)
{
    cx_str branch = w->wanted->branch;
    if (cx_str_is(branch, BRANCH))
        return CX_SUCCESS;
    if (cx_str_starts(branch, CX_STR(SERVICE)) && branch.size > strlen(SERVICE)) {
        w->by_service = true;
        w->service = cx_str_from(branch.data + strlen(SERVICE), branch.size - strlen(SERVICE));
        return CX_SUCCESS;
    }
    w->by_trace = true;
    size_t at = strlen(BRANCH "/");
    if (branch.size != at + 2 * sizeof w->trace_id ||
        !cx_hex_decode_any(cx_str_from(branch.data + at, branch.size - at), w->trace_id,
                           sizeof w->trace_id))
        return cx_fail(err, CX_E_USAGE,
                       "found branch '%.*s', expected otel, otel/TRACE_ID (32 hexadecimal digits) "
                       "or otel/service/NAME",
                       (int)(branch.size > 80 ? 80 : branch.size), branch.data);
    return CX_SUCCESS;
}

static bool is_wanted_entry(const builder *w, const cx_otlp_record *record)
{
    if (record->fault != CX_OTLP_FINE)
        return false;
    if (w->by_trace)
        return memcmp(record->trace_id, w->trace_id, sizeof w->trace_id) == 0;
    return !w->by_service || cx_str_eq(cx_otlp_service(record->resource), w->service);
}

/* --- gathering -------------------------------------------------------------------------------- */

/* The object less the lists of what is in it, in canonical form. */
static cx_status text_without(builder *w, const cx_json *object, const char *list,
                              const char *old_list, cx_str *out, cx_err *err)
{
    cx_json_list members = cx_json_list_begin(&w->scratch);
    cx_json made;
    for (uint32_t i = 0; i < object->count; i++) {
        cx_str name = cx_json_text(&object->members[i].name);
        if (!cx_str_is(name, list) && !cx_str_is(name, old_list))
            cx_json_list_put(&members, name, object->members[i].value);
    }
    CX_TRY(cx_json_list_end_object(&members, &made, err));
    cx_buf_clear(&w->text);
    CX_TRY(cx_json_write(&w->text, &made, CX_JSON_PY_COMPACT, err));
    *out = cx_arena_copy_str(&w->scratch, cx_buf_str(&w->text));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status number_head(builder *w, const head *wanted, bool is_scope, size_t *out,
                             cx_err *err)
{
    uint64_t *number;
    bool is_new;
    cx_str name =
        cx_arena_printf(&w->scratch, "%d %d %zu ", (int)wanted->signal, is_scope, wanted->above);
    cx_buf_clear(&w->text);
    cx_buf_add_str(&w->text, name);
    cx_buf_add_str(&w->text, wanted->text);
    if (name.data == NULL || w->text.failed)
        return cx_fail_nomem(err);
    if ((number = cx_map_find(&w->heads, cx_buf_str(&w->text))) == NULL) {
        cx_str stored = cx_arena_copy_str(&w->arena, cx_buf_str(&w->text));
        head *added = cx_vec_push(&w->list, w->arena.alloc);
        if (stored.data == NULL || added == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_map_put(&w->heads, stored, &number, &is_new, err));
        *added = *wanted;
        added->text = cx_str_from(stored.data + name.size, stored.size - name.size);
        *number = w->list.count - 1;
    }
    *out = *number;
    return CX_SUCCESS;
}

static cx_status find_scope(builder *w, const cx_otlp_record *record, cx_otlp_signal signal,
                            size_t *out, cx_err *err)
{
    head resource = {.signal = signal}, scope = {.signal = signal};
    CX_TRY(text_without(w, record->resource, cx_otlp_scopes_name[signal],
                        cx_otlp_old_scopes_name[signal], &resource.text, err));
    CX_TRY(number_head(w, &resource, false, &scope.above, err));
    CX_TRY(text_without(w, record->scope, cx_otlp_records_name[signal], "", &scope.text, err));
    return number_head(w, &scope, true, out, err);
}

/* Logs without a time of their own have that of being observed. */
static uint64_t start_time_of(const cx_json *record, cx_otlp_signal signal)
{
    static const char *const names[2][2] = {{"startTimeUnixNano", "endTimeUnixNano"},
                                            {"timeUnixNano", "observedTimeUnixNano"}};
    for (size_t i = 0; i < 2; i++) {
        const cx_json *value = cx_json_get(record, cx_str_z(names[signal][i]));
        uint64_t ns = 0;
        if (value == NULL)
            continue;
        cx_json number = *value;
        if (number.type == CX_JSON_STRING)
            number.type = CX_JSON_INT; /* decimal text, as the reader expects */
        if (cx_json_uint64(&number, &ns) && ns != 0)
            return ns;
    }
    return 0;
}

/* F1 */
static cx_status is_repeated(builder *w, const item *it, const cx_digest *content, bool *out,
                             cx_err *err)
{
    uint8_t key[sizeof it->ids + sizeof content->bytes];
    uint64_t *value;
    bool is_new = false;
    memcpy(key, it->ids, sizeof it->ids);
    memcpy(key + sizeof it->ids, content->bytes, sizeof content->bytes);
    cx_str name = cx_str_from((const char *)key, sizeof key);
    *out = cx_map_find(&w->seen, name) != NULL;
    if (*out)
        return CX_SUCCESS;
    if ((name = cx_arena_copy_str(&w->arena, name)).data == NULL)
        return cx_fail_nomem(err);
    return cx_map_put(&w->seen, name, &value, &is_new, err);
}

static cx_status add_record(builder *w, const cx_otlp_record *record, cx_otlp_signal signal,
                            cx_err *err)
{
    item it = {.signal = signal,
               .start_ns = start_time_of(record->value, signal),
               .arrival = w->items.count};
    bool repeated = false;
    memcpy(it.ids, record->trace_id, sizeof record->trace_id);
    memcpy(it.ids + sizeof record->trace_id, record->span_id, sizeof record->span_id);
    if (signal == CX_OTLP_TRACES)
        CX_TRY(is_repeated(w, &it, &record->content, &repeated, err));
    if (repeated)
        return CX_SUCCESS;
    CX_TRY(find_scope(w, record, signal, &it.scope, err));
    cx_buf_clear(&w->text);
    CX_TRY(cx_json_write(&w->text, record->value, CX_JSON_PY_COMPACT, err));
    it.text = cx_arena_copy_str(&w->arena, cx_buf_str(&w->text));
    item *space = it.text.data == NULL ? NULL : cx_vec_push(&w->items, w->arena.alloc);
    if (space == NULL)
        return cx_fail_nomem(err);
    *space = it;
    return CX_SUCCESS;
}

static cx_status add_entry(builder *w, uint64_t seq, cx_err *err)
{
    cx_entry_view entry;
    cx_otlp_request request;
    bool is_logs, is_json;
    CX_TRY(cx_home_entry(w->home, CX_STR(CX_OTLP_ACTOR), seq, &w->scratch, &entry, err));
    if (!cx_recorder_otlp_kind(entry.entry.kind, &is_logs, &is_json) || entry.payload_erased)
        return CX_SUCCESS;
    w->bytes += entry.payload.size;
    if (w->wanted->max_bytes != 0 && w->bytes > w->wanted->max_bytes)
        return cx_fail_at(
            err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
            "the branch has more than %zu bytes of requests: request a single trace, otel/TRACE_ID",
            w->wanted->max_bytes);
    cx_otlp_signal signal = is_logs ? CX_OTLP_LOGS : CX_OTLP_TRACES;
    CX_TRY(cx_otlp_scan(signal, is_json, entry.payload, &w->scratch, &request, err));
    for (size_t i = 0; i < request.count; i++)
        if (is_wanted_entry(w, &request.records[i]))
            CX_TRY(add_record(w, &request.records[i], signal, err));
    return CX_SUCCESS;
}

static cx_status gather_entries(builder *w, cx_err *err)
{
    const uint64_t *seqs;
    size_t count;
    CX_TRY(cx_recorder_otlp_entries(w->home, w->by_trace ? w->trace_id : NULL, &w->arena, &seqs,
                                    &count, err));
    for (size_t i = 0; i < count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&w->scratch);
        CX_TRY(add_entry(w, seqs[i], err));
        cx_arena_reset(&w->scratch, mark);
    }
    return CX_SUCCESS;
}

/* --- one document (F2) ------------------------------------------------------------------------ */

static int compare_text(cx_str a, cx_str b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size == 0 ? 0 : memcmp(a.data, b.data, size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* What qsort cannot hand on: heads are replaced by their places in their own order first. */
static int by_place(const void *left, const void *right)
{
    const item *a = left, *b = right;
    if (a->signal != b->signal)
        return a->signal < b->signal ? -1 : 1;
    if (a->scope != b->scope)
        return a->scope < b->scope ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    int order = memcmp(a->ids, b->ids, sizeof a->ids);
    if (order != 0)
        return order;
    if (a->signal == CX_OTLP_LOGS && (order = compare_text(a->text, b->text)) != 0)
        return order;
    return (a->arrival > b->arrival) - (a->arrival < b->arrival);
}

typedef struct ranked {
    const head *of, *resource;
    size_t number;
} ranked;

static int by_heads(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    int order = compare_text(a->resource->text, b->resource->text);
    return order != 0 ? order : compare_text(a->of->text, b->of->text);
}

/* Scopes in the order of their resource and their own text; items get the place of theirs. */
static cx_status rank_scopes(builder *w, const ranked **out, cx_err *err)
{
    ranked *ranks = CX_ARENA_ARRAY(&w->arena, ranked, w->list.count + 1);
    size_t *places = CX_ARENA_ARRAY(&w->arena, size_t, w->list.count + 1);
    if (ranks == NULL || places == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < w->list.count; i++)
        ranks[i] = (ranked){&w->list.items[i], &w->list.items[w->list.items[i].above], i};
    qsort(ranks, w->list.count, sizeof *ranks, by_heads);
    for (size_t i = 0; i < w->list.count; i++)
        places[ranks[i].number] = i;
    for (size_t i = 0; i < w->items.count; i++)
        w->items.items[i].scope = places[w->items.items[i].scope];
    *out = ranks;
    return CX_SUCCESS;
}

/* `{..` of an object, with a list begun as its last member. */
static void open_object(cx_buf *out, cx_str object, const char *list)
{
    cx_buf_add(out, object.data, object.size - 1);
    cx_buf_printf(out, "%s\"%s\":[", object.size > 2 ? "," : "", list);
}

static void write_signal(builder *w, const ranked *ranks, cx_otlp_signal signal, cx_buf *out)
{
    const item *before = NULL;
    cx_buf_printf(out, "\"%s\":[", cx_otlp_resources_name[signal]);
    for (size_t i = 0; i < w->items.count; i++) {
        const item *it = &w->items.items[i];
        if (it->signal != signal)
            continue;
        bool same_scope = before != NULL && before->scope == it->scope;
        bool same_resource =
            before != NULL && ranks[before->scope].resource == ranks[it->scope].resource;
        if (before != NULL)
            cx_buf_add_z(out, same_scope ? "," : same_resource ? "]}," : "]}]},");
        if (!same_resource)
            open_object(out, ranks[it->scope].resource->text, cx_otlp_scopes_name[signal]);
        if (!same_scope)
            open_object(out, ranks[it->scope].of->text, cx_otlp_records_name[signal]);
        cx_buf_add_str(out, it->text);
        before = it;
    }
    cx_buf_add_z(out, before == NULL ? "]" : "]}]}]");
}

static cx_status write_document(builder *w, cx_buf *out, cx_err *err)
{
    const ranked *ranks = NULL;
    CX_TRY(rank_scopes(w, &ranks, err));
    qsort(w->items.items, w->items.count, sizeof *w->items.items, by_place);
    cx_buf_add_byte(out, '{');
    write_signal(w, ranks, CX_OTLP_LOGS, out);
    cx_buf_add_byte(out, ',');
    write_signal(w, ranks, CX_OTLP_TRACES, out);
    cx_buf_add_z(out, "}\n");
    return cx_buf_check(out, err);
}

/* --- the whole -------------------------------------------------------------------------------- */

static cx_status add_lines(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_buf *out = arg;
    cx_buf_add(out, bytes.data, bytes.size);
    return cx_buf_check(out, err);
}

static cx_status build_lattice(builder *w, cx_buf *out, cx_err *err)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_str branch = w->wanted->branch;
    cx_buf document;
    CX_TRY(read_branch(w, err));
    CX_TRY(gather_entries(w, err));
    if (w->items.count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoBranch", CX_NO_OFFSET,
                          "the data directory has no branch %.*s: nothing of it was received, or "
                          "all of it was erased",
                          (int)(branch.size > 80 ? 80 : branch.size), branch.data);
    options.alloc = w->arena.alloc;
    cx_buf_init(&document, w->arena.alloc);
    cx_status status = write_document(w, &document, err);
    const cx_bytes file = cx_buf_bytes(&document);
    if (!cx_failed(status))
        status = cx_import_run_bytes("otlp", &file, 1, &options, add_lines, out, NULL, err);
    cx_buf_done(&document);
    return status;
}

cx_status cx_external_lines(cx_home *home, const cx_external_options *wanted, cx_buf *out,
                            cx_err *err)
{
    builder w = {.home = home, .wanted = wanted};
    if (cx_external_is_session(wanted->branch))
        return cx_external_session_lines(home, wanted, out, err);
    const cx_alloc *alloc = out->alloc;
    uint64_t seed = cx_io_seed(cx_home_io(home));
    size_t before = out->size;
    cx_arena_init(&w.arena, alloc, 0);
    cx_arena_init(&w.scratch, alloc, 0);
    cx_buf_init(&w.text, alloc);
    cx_map_init(&w.heads, alloc, seed);
    cx_map_init(&w.seen, alloc, seed);
    cx_status status = build_lattice(&w, out, err);
    cx_vec_done(&w.list, alloc);
    cx_vec_done(&w.items, alloc);
    cx_map_done(&w.heads);
    cx_map_done(&w.seen);
    cx_buf_done(&w.text);
    cx_arena_done(&w.scratch);
    cx_arena_done(&w.arena);
    if (cx_failed(status))
        out->size = before;
    return status;
}

cx_status cx_external_lattice(cx_home *home, const cx_external_options *wanted,
                              const cx_lattice_options *options, cx_buf *lines, cx_lattice **out,
                              cx_err *err)
{
    CX_TRY(cx_external_lines(home, wanted, lines, err));
    return cx_lattice_open_bytes(cx_buf_bytes(lines), options, out, err);
}
