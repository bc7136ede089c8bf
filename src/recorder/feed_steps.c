/*
 * feed_steps.c - steps of sessions, spans and native steps as rows of the index (feed_steps.h).
 *
 * The importers make nodes of what came, and a node says what its row needs (imports.md §1.15), so
 * that search and lists show what the history shows.  A session is read piece by piece, as it
 * grew: what the importer knows from earlier pieces, such as the name of a tool whose answer comes
 * in a later one, may be missing in a row.
 */
#include "recorder/feed_steps.h"

#include "cbor/api.h"
#include "crypto/api.h"
#include "import/api.h"
#include "lattice/api.h"
#include "recorder/otlp_index.h"
#include "recorder/session_path.h"

#define SESSION_ACTOR "sessions"
#define SESSION_FILE "session/file/"
#define SESSION_PIECE "session/piece/"
#define SESSION_ID 16
/* A line that is longer waits for its end no more: its record is not searchable. */
#define PENDING_MAX ((size_t)64 << 20)

enum { TITLE_NONE, TITLE_FALLBACK, TITLE_SUMMARY, TITLE_ASKED, TITLE_GIVEN };

typedef struct step_feed {
    cx_index *index;
    const cx_tail_item *item;
    cx_arena *arena;
    cx_str history, source; /* history empty: each node's own (spans) */
    cx_session_path path;   /* of the session's file, where it is known */
    bool renewed;           /* a document of a group that was there before */
    uint64_t lines_before;  /* of earlier pieces */
    bool is_text;           /* it is read from a place: records have their numbers in the whole */
    uint64_t goes_on;       /* .. and the one of an earlier piece has one more row */
    uint64_t lines;         /* of this one */
    cx_buf text;            /* scratch */
    cx_buf nodes;           /* lines of the lattice */
    uint64_t number;        /* of the node in the entry */
} step_feed;

/* --- what a node says ------------------------------------------------------------------------- */

/* All texts and names of a value: what a person would search for in arguments and results. */
static void add_value(cx_buf *out, const cx_json *value, unsigned depth)
{
    if (value == NULL || depth > 32)
        return;
    if (value->type == CX_JSON_STRING || cx_json_is_number(value))
        cx_feed_add_text(out, cx_json_text(value));
    for (uint32_t i = 0; value->type == CX_JSON_ARRAY && i < value->count; i++)
        add_value(out, &value->items[i], depth + 1);
    for (uint32_t i = 0; value->type == CX_JSON_OBJECT && i < value->count; i++) {
        cx_feed_add_text(out, cx_json_text(&value->members[i].name));
        add_value(out, &value->members[i].value, depth + 1);
    }
}

static cx_status searchable_text(step_feed *f, const cx_json *event, cx_str *out, cx_err *err)
{
    static const char *const names[] = {"text",      "thinking", "error",      "tool", "because",
                                        "arguments", "result",   "tool_calls", "name", NULL};
    const cx_json *inputs = cx_json_get_typed(event, CX_STR("input"), CX_JSON_ARRAY);
    cx_buf_clear(&f->text);
    for (uint32_t i = 0; inputs != NULL && i < inputs->count; i++)
        cx_feed_add_text(&f->text, CX_JSON_GET_STR(&inputs->items[i], "text"));
    for (size_t i = 0; names[i] != NULL; i++)
        add_value(&f->text, cx_json_get(event, cx_str_z(names[i])), 0);
    CX_TRY(cx_buf_check(&f->text, err));
    *out = f->text.size == 0 ? (cx_str){"", 0} : cx_arena_copy_str(f->arena, cx_buf_str(&f->text));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Kinds of imported nodes as kinds of steps (steps.md §1). */
static cx_str step_kind(cx_str kind)
{
    static const char *const kinds[][2] = {
        {"input", "message"},       {"reason", "message"}, {"act", "tool_call"},
        {"observe", "observation"}, {"run", "note"},       {"state", "memory"},
        {"config", "note"},         {"bad", "error"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(kinds); i++)
        if (cx_str_is(kind, kinds[i][0]))
            return cx_str_z(kinds[i][1]);
    return kind.size != 0 ? kind : CX_STR("note");
}

/* The first line with anything in it. */
static cx_str first_line(cx_str text)
{
    size_t at = 0, end;
    while (at < text.size && (unsigned char)text.data[at] <= ' ')
        at++;
    for (end = at; end < text.size && text.data[end] != '\n' && text.data[end] != '\r';)
        end++;
    return cx_str_from(text.data + at, end - at);
}

/* Cursor puts what a person wrote between tags, after what it adds itself. */
static cx_str asked_text(cx_str text)
{
    static const char tag[] = "<user_query>";
    const char *found = text.size == 0 || text.data[0] != '<'
                            ? NULL
                            : memmem(text.data, text.size, tag, sizeof tag - 1);
    if (found == NULL)
        return text;
    found += sizeof tag - 1;
    return cx_str_from(found, (size_t)(text.data + text.size - found));
}

/* Programs put messages of their own where a person's are: tags, the repository's instructions. */
static bool is_from_program(cx_str text)
{
    cx_str line = first_line(text);
    return line.size == 0 || line.data[0] == '<' || cx_str_starts(line, CX_STR("# AGENTS.md")) ||
           cx_str_starts(line, CX_STR("Caveat: ")) ||
           cx_str_starts(line, CX_STR("[Request interrupted"));
}

static bool set_title(cx_step_row *row, cx_str text, uint8_t rank)
{
    cx_str line = first_line(text);
    if (line.size == 0 || rank <= row->title_rank)
        return false;
    row->title = line;
    row->title_rank = rank;
    return true;
}

static void title_node(cx_step_row *row, const cx_json *event, cx_str raw_kind)
{
    const cx_json *raw = CX_JSON_GET(event, "raw");
    const cx_json *inputs = cx_json_get_typed(event, CX_STR("input"), CX_JSON_ARRAY);
    cx_str text = CX_JSON_GET_STR(event, "text"), type = {NULL, 0};
    bool meta = false;
    if (raw != NULL) {
        type = CX_JSON_GET_STR(raw, "type");
        meta = cx_json_get_typed(raw, CX_STR("isMeta"), CX_JSON_TRUE) != NULL;
    }
    if (cx_str_is(type, "ai-title") || cx_str_is(type, "custom-title"))
        set_title(row, text, TITLE_GIVEN);
    else if (cx_str_is(type, "summary"))
        set_title(row, text, TITLE_SUMMARY);
    else if (cx_str_is(row->role, "user") && cx_str_is(row->kind, "message") && !meta &&
             !is_from_program(asked_text(text)))
        set_title(row, asked_text(text), TITLE_ASKED);
    for (uint32_t i = 0; inputs != NULL && i < inputs->count; i++) {
        cx_str given = CX_JSON_GET_STR(&inputs->items[i], "text");
        if (cx_str_is(CX_JSON_GET_STR(&inputs->items[i], "role"), "user") &&
            !is_from_program(given))
            set_title(row, given, TITLE_ASKED);
    }
    if (cx_str_is(raw_kind, "run") && CX_JSON_GET_STR(event, "src_parent").size == 0)
        set_title(row, CX_JSON_GET_STR(event, "name"), TITLE_SUMMARY);
    set_title(row, text, TITLE_FALLBACK);
    set_title(row, CX_JSON_GET_STR(event, "tool"), TITLE_FALLBACK);
    set_title(row, CX_JSON_GET_STR(event, "name"), TITLE_FALLBACK);
}

static int64_t count_of(const cx_json *object, const char *name)
{
    int64_t value = 0;
    const cx_json *found = object == NULL ? NULL : cx_json_get(object, cx_str_z(name));
    return found != NULL && cx_json_int64(found, &value) && value > 0 &&
                   value < INT64_C(1000000000000)
               ? value
               : 0;
}

static int64_t time_of_node(const cx_json *node, const cx_json *event)
{
    int64_t ns;
    double seconds;
    const cx_json *exact = CX_JSON_GET(event, "t_ns"), *time = CX_JSON_GET(node, "timestamp");
    if (exact != NULL && cx_json_int64(exact, &ns) && ns > 0)
        return ns;
    if (cx_json_has_canonical(node) && time != NULL && cx_json_double(time, &seconds) &&
        seconds > 86400 && seconds < 9e9)
        return (int64_t)(seconds * 1e6 + 0.5) * 1000; /* a double is often a little below */
    return CX_TIME_NONE;
}

/* Usage of a span around calls of models is theirs again. */
static void read_usage(cx_step_row *row, const cx_json *event, cx_str raw_kind)
{
    const cx_json *tokens = CX_JSON_GET(event, "tokens"), *cost = CX_JSON_GET(event, "cost_usd");
    if (tokens == NULL)
        tokens = CX_JSON_GET(event, "usage");
    if (cx_str_is(raw_kind, "run"))
        return;
    row->tokens_input = count_of(tokens, "input");
    row->tokens_output = count_of(tokens, "output");
    if (cost == NULL || !cx_json_double(cost, &row->cost_usd) || !(row->cost_usd >= 0) ||
        row->cost_usd > 1e9)
        row->cost_usd = 0;
}

static cx_status fill_row(step_feed *f, const cx_json *node, const cx_json *event, cx_step_row *row,
                          cx_err *err)
{
    cx_str kind = CX_JSON_GET_STR(event, "kind");
    int64_t duration = count_of(event, "duration_ns");
    *row = (cx_step_row){.kind = step_kind(kind),
                         .agent = CX_JSON_GET_STR(node, "agent_id"),
                         .role = CX_JSON_GET_STR(event, "role"),
                         .tool = CX_JSON_GET_STR(event, "tool"),
                         .model = CX_JSON_GET_STR(event, "model"),
                         .message_id = CX_JSON_GET_STR(event, "message_id"),
                         .actor = f->item->actor,
                         .seq = f->item->entry.seq,
                         .at_ns = time_of_node(node, event),
                         .end_ns = CX_TIME_NONE};
    if (row->at_ns == CX_TIME_NONE)
        row->at_ns = f->item->entry.created_at_ns;
    if (duration != 0)
        row->end_ns = row->at_ns + duration;
    row->failed = cx_lattice_failed_event(event);
    read_usage(row, event, kind);
    title_node(row, event, kind);
    return searchable_text(f, event, &row->text, err);
}

/* --- where a node is -------------------------------------------------------------------------- */

static cx_str lower_hex(cx_arena *arena, cx_str id)
{
    cx_str copy = cx_arena_copy_str(arena, id);
    char *text = (char *)(uintptr_t)copy.data;
    for (size_t i = 0; i < copy.size; i++)
        if (text[i] >= 'A' && text[i] <= 'F')
            text[i] = (char)(text[i] | 0x20);
    return copy;
}

/* A span is found by its id; a log record with its span, of which it is one more row. */
static cx_status place_span(step_feed *f, const cx_json *node, const cx_json *event,
                            cx_step_row *row, cx_err *err)
{
    cx_str trace = lower_hex(f->arena, CX_JSON_GET_STR(event, "trace_id"));
    bool log = cx_str_is(CX_JSON_GET_STR(event, "signal"), "log");
    cx_str span =
        lower_hex(f->arena, cx_json_get_str(event, cx_str_z(log ? "src_parent" : "src_id")));
    cx_str service = CX_JSON_GET_STR(node, "agent_id");
    row->source = CX_STR("otel");
    if (trace.size == 32)
        row->history = cx_arena_printf(f->arena, "otel/%.*s", 32, trace.data);
    else
        row->history =
            cx_arena_printf(f->arena, "otel/service/%.*s", (int)service.size, service.data);
    if (!log && span.size != 0)
        row->ref = cx_arena_printf(f->arena, "src:%.*s", (int)span.size, span.data);
    else
        row->ref =
            cx_arena_printf(f->arena, "src:%.*s~%llu.%llu", (int)span.size, span.data,
                            (unsigned long long)f->item->entry.seq, (unsigned long long)f->number);
    return row->history.data == NULL || row->ref.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* One of the documents of a session is found by its id, a part with its message. */
static cx_status place_member(step_feed *f, const cx_json *event, cx_step_row *row, cx_err *err)
{
    cx_str id = CX_JSON_GET_STR(event, "src_id");
    if (f->path.shape == CX_SESSION_PART)
        row->ref = cx_arena_printf(f->arena, "src:%.*s~%.*s", (int)f->path.message.size,
                                   f->path.message.data, (int)f->path.file.size, f->path.file.data);
    else if (id.size != 0)
        row->ref = cx_arena_printf(f->arena, "src:%.*s", (int)id.size, id.data);
    else
        row->ref =
            cx_arena_printf(f->arena, "src:~%.*s", (int)f->path.file.size, f->path.file.data);
    if (row->ref.data == NULL)
        return cx_fail_nomem(err);
    return f->renewed ? cx_index_drop_step(f->index, row->history, row->ref, err) : CX_SUCCESS;
}

/* A line of a session by its id, else by its number in the whole file. */
static cx_status place_line(step_feed *f, const cx_json *event, cx_step_row *row, cx_err *err)
{
    const cx_json *at = CX_JSON_GET(event, "at");
    cx_str id = CX_JSON_GET_STR(event, "src_id");
    int64_t line = at == NULL ? 0 : count_of(at, "line");
    if (at != NULL && CX_JSON_GET(at, "line") == NULL)
        line = count_of(at, "index");
    row->history = f->history;
    row->source = f->source;
    if (f->path.shape >= CX_SESSION_EVENT)
        return place_member(f, event, row, err);
    if (f->is_text && (uint64_t)line == f->goes_on)
        row->ref = cx_arena_printf(f->arena, "at:0:%llu~%llu", (unsigned long long)line,
                                   (unsigned long long)f->item->entry.seq);
    else if (id.size != 0 && cx_str_is(f->source, "claude-code"))
        row->ref = cx_arena_printf(f->arena, "src:%.*s", (int)id.size, id.data);
    else
        row->ref = cx_arena_printf(f->arena, "at:0:%llu",
                                   (unsigned long long)(f->lines_before + (uint64_t)line));
    return row->ref.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static bool is_file_node(const cx_json *node, const cx_json *event)
{
    return cx_str_is(CX_JSON_GET_STR(node, "agent_id"), "importer") &&
           cx_str_is(CX_JSON_GET_STR(event, "kind"), "run") &&
           CX_JSON_GET(event, "records") != NULL;
}

static cx_status put_node(step_feed *f, const cx_json *node, cx_err *err)
{
    const cx_json *event = cx_json_get_typed(node, CX_STR("event"), CX_JSON_OBJECT);
    cx_step_row row;
    f->number++;
    if (event == NULL || is_file_node(node, event))
        return CX_SUCCESS;
    CX_TRY(fill_row(f, node, event, &row, err));
    if (f->history.size == 0)
        CX_TRY(place_span(f, node, event, &row, err));
    else
        CX_TRY(place_line(f, event, &row, err));
    return cx_index_put_step(f->index, &row, err);
}

/* --- importing what came ---------------------------------------------------------------------- */

static cx_status collect_nodes(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_buf *nodes = arg;
    cx_buf_add(nodes, bytes.data, bytes.size);
    return cx_buf_check(nodes, err);
}

static cx_status put_nodes(step_feed *f, cx_err *err)
{
    cx_str rest = cx_buf_str(&f->nodes);
    while (rest.size != 0) {
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t size = end == NULL ? rest.size : (size_t)(end - rest.data);
        cx_arena_mark mark = cx_arena_mark_now(f->arena);
        cx_json node;
        CX_TRY(cx_json_parse_text(cx_str_from(rest.data, size), f->arena, &node, err));
        CX_TRY(put_node(f, &node, err));
        cx_arena_reset(f->arena, mark);
        size += end != NULL;
        rest = cx_str_from(rest.data + size, rest.size - size);
    }
    return CX_SUCCESS;
}

/* Only memory and the index stop the feed; what is not of the format has no rows. */
static cx_status import_window(step_feed *f, const char *format, cx_bytes bytes,
                               const cx_import_window *window, cx_err *err)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_import_summary summary = {0};
    options.windows = window;
    cx_buf_clear(&f->nodes);
    cx_status status =
        cx_import_run_bytes(format, &bytes, 1, &options, collect_nodes, &f->nodes, &summary, err);
    cx_import_summary_done(&summary);
    if (status.code == CX_E_NOMEM)
        return status;
    if (cx_failed(status))
        return CX_SUCCESS;
    return put_nodes(f, err);
}

static cx_status import_bytes(step_feed *f, const char *format, cx_bytes bytes, cx_err *err)
{
    return import_window(f, format, bytes, NULL, err);
}

/* --- sessions --------------------------------------------------------------------------------- */

static const cx_change *change_under(const cx_tail_item *item, const char *prefix)
{
    size_t size = strlen(prefix);
    for (size_t i = 0; i < item->change_count; i++) {
        const cx_change *change = &item->changes[i];
        if (!change->removed && change->key.size >= size + SESSION_ID &&
            memcmp(change->key.data, prefix, size) == 0)
            return change;
    }
    return NULL;
}

typedef struct file_record {
    cx_str path; /* data NULL = not known */
    uint64_t generation, offset;
} file_record;

/* What is needed here of the record of a file. */
static file_record read_file_record(cx_bytes record)
{
    cx_decoder d;
    file_record file = {.path = {NULL, 0}};
    cx_decoder_begin(&d, record, "session record", NULL);
    while (cx_decoder_next(&d)) {
        switch (d.members.key) {
        case 2: file.generation = cx_cbor_read_uint(&d.reader); break;
        case 3: file.offset = cx_cbor_read_uint(&d.reader); break;
        case 7:
        case 9: (void)cx_cbor_read_digest(&d.reader); break;
        case 10: file.path = cx_bytes_str(cx_decode_bytes_o(&d)); break;
        default: (void)cx_cbor_read_any(&d.reader); break;
        }
    }
    return cx_failed(cx_decoder_end(&d, 0, NULL)) ? (file_record){.path = {NULL, 0}} : file;
}

static cx_status name_session(step_feed *f, const uint8_t *id, cx_err *err)
{
    char hex[2 * SESSION_ID];
    cx_hex_encode(cx_bytes_from(id, SESSION_ID), hex);
    f->history = cx_arena_printf(f->arena, "session/%.*s", (int)sizeof hex, hex);
    return f->history.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* All of what waits for its line's end, and the bytes. */
static cx_status add_pending(step_feed *f, cx_str pending, cx_bytes bytes, cx_buf *out, cx_err *err)
{
    (void)f;
    if (pending.size != 0 && !cx_base64_decode(pending, CX_BASE64, out))
        out->size = 0;
    cx_buf_add(out, bytes.data, bytes.size);
    return cx_buf_check(out, err);
}

static cx_status keep_pending(step_feed *f, cx_bytes rest, cx_history_progress *progress,
                              cx_err *err)
{
    cx_buf text;
    progress->pending = (cx_str){NULL, 0};
    if (rest.size == 0 || rest.size > PENDING_MAX)
        return CX_SUCCESS;
    cx_buf_init(&text, f->text.alloc);
    cx_base64_add(&text, rest, CX_BASE64);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        progress->pending = cx_arena_copy_str(f->arena, cx_buf_str(&text));
        if (progress->pending.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

/* The place before a piece of a text that is read by places; false: it has none. */
static bool read_place(const step_feed *f, cx_bytes record, cx_import_place *out)
{
    cx_decoder d;
    cx_bytes place = {NULL, 0};
    cx_err ignored;
    cx_decoder_begin(&d, record, "piece of a session", NULL);
    while (cx_decoder_next(&d)) {
        if (d.members.key == 4)
            place = cx_decode_bytes_o(&d);
        else
            (void)cx_cbor_read_any(&d.reader);
    }
    return !cx_failed(cx_decoder_end(&d, 0, NULL)) && place.size != 0 &&
           cx_import_has_places(f->source.data) &&
           !cx_failed(cx_import_place_decode(place, out, &ignored));
}

/* Records of the piece by their numbers in the whole, with one that goes on from the piece before.
 * Whether the program's lines end in blanks is what is known by now. */
static cx_status feed_text(step_feed *f, cx_bytes bytes, const cx_import_place *place, cx_err *err)
{
    const cx_import_segment segment = {.place = *place};
    cx_import_place end = *place;
    cx_import_place_read(&end, bytes);
    cx_import_place_end(&end);
    if (!cx_import_place_is_usable(&end))
        return import_bytes(f, f->source.data, bytes, err);
    const cx_import_reading *before = cx_import_place_reading(place, &end);
    const cx_import_window window = {.from = before->records - (before->kind != 0),
                                     .until = UINT64_MAX,
                                     .after_ns = INT64_MIN,
                                     .until_ns = INT64_MAX,
                                     .segments = &segment,
                                     .segment_count = 1,
                                     .end = &end};
    f->is_text = true;
    f->lines_before = 0;
    f->goes_on = before->kind != 0 ? window.from : UINT64_MAX;
    return import_window(f, f->source.data, place->lines == 0 ? cx_import_after_mark(bytes) : bytes,
                         &window, err);
}

static cx_status feed_lines(step_feed *f, cx_bytes bytes, const cx_import_place *place,
                            cx_history_progress *progress, cx_err *err)
{
    size_t end = bytes.size;
    while (end > 0 && bytes.data[end - 1] != '\n')
        end--;
    f->lines_before = progress->lines;
    for (size_t i = 0; i < end; i++)
        f->lines += bytes.data[i] == '\n';
    const cx_bytes ended = cx_bytes_from(bytes.data, end);
    if (place != NULL && place->cut == 0 && end == bytes.size)
        CX_TRY(feed_text(f, ended, place, err));
    else if (end != 0)
        CX_TRY(import_bytes(f, f->source.data, ended, err));
    progress->lines += f->lines;
    return keep_pending(f, cx_bytes_from(bytes.data + end, bytes.size - end), progress, err);
}

static cx_status name_group(step_feed *f, cx_str group, cx_err *err)
{
    uint8_t id[SESSION_ID];
    cx_session_id(group, CX_SESSION_OF_GROUP, id);
    return name_session(f, id, err);
}

/* A part names its session; messages of it lie in a folder of that name. */
static cx_status name_group_of_part(step_feed *f, bool *out_known, cx_err *err)
{
    cx_json part;
    cx_status status = cx_json_parse_text(cx_bytes_str(f->item->payload), f->arena, &part, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    cx_str session = cx_failed(status) || part.type != CX_JSON_OBJECT
                         ? (cx_str){NULL, 0}
                         : CX_JSON_GET_STR(&part, "sessionID");
    *out_known = session.size != 0;
    if (!*out_known)
        return CX_SUCCESS;
    cx_str group = cx_arena_printf(f->arena, "%.*s/message/%.*s", (int)f->path.group.size,
                                   f->path.group.data, (int)session.size, session.data);
    return group.data == NULL ? cx_fail_nomem(err) : name_group(f, group, err);
}

/* The history of a document is that of its newest version; of a group, that of them all. */
static cx_status name_document(step_feed *f, const file_record *record, bool *out_known,
                               cx_err *err)
{
    uint8_t id[SESSION_ID];
    cx_str now = f->history;
    *out_known = true;
    f->renewed = record->generation != 0;
    if (f->path.shape == CX_SESSION_PART)
        return name_group_of_part(f, out_known, err);
    if (f->path.group.size != 0)
        return name_group(f, f->path.group, err);
    if (record->generation == 0)
        return CX_SUCCESS;
    cx_session_id(record->path, record->generation - 1, id);
    CX_TRY(name_session(f, id, err));
    CX_TRY(cx_index_renew_history(f->index, f->history, now, err));
    f->history = now;
    return CX_SUCCESS;
}

/* One that came in several pieces is not searched. */
static cx_status feed_document(step_feed *f, const file_record *record, cx_err *err)
{
    cx_history_progress progress = {.path = record->path};
    bool known = false;
    if (record->offset != f->item->payload.size)
        return CX_SUCCESS;
    CX_TRY(name_document(f, record, &known, err));
    if (!known)
        return CX_SUCCESS;
    CX_TRY(import_bytes(f, f->source.data, f->item->payload, err));
    return cx_index_set_history_progress(f->index, f->history, f->source, &progress, err);
}

static cx_status feed_session(step_feed *f, cx_err *err)
{
    const cx_change *piece = change_under(f->item, SESSION_PIECE);
    const cx_change *file = change_under(f->item, SESSION_FILE);
    const file_record record =
        file == NULL ? (file_record){.path = {NULL, 0}} : read_file_record(file->value);
    cx_history_progress progress;
    cx_import_place place;
    cx_buf bytes;
    if (piece == NULL)
        return CX_SUCCESS;
    if (record.path.data != NULL)
        cx_session_path_read(record.path, &f->path);
    CX_TRY(name_session(f, piece->key.data + strlen(SESSION_PIECE), err));
    if (cx_session_path_is_document(&f->path))
        return feed_document(f, &record, err);
    CX_TRY(cx_index_history_progress(f->index, f->history, f->arena, &progress, err));
    progress.path = record.path;
    cx_buf_init(&bytes, f->text.alloc);
    cx_status status = add_pending(f, progress.pending, f->item->payload, &bytes, err);
    if (!cx_failed(status))
        status = feed_lines(f, cx_buf_bytes(&bytes),
                            read_place(f, piece->value, &place) ? &place : NULL, &progress, err);
    cx_buf_done(&bytes);
    CX_TRY(status);
    return cx_index_set_history_progress(f->index, f->history, f->source, &progress, err);
}

/* --- spans and native steps ------------------------------------------------------------------- */

static cx_status feed_spans(step_feed *f, cx_err *err)
{
    bool logs = false, json = false;
    cx_buf text;
    if (!cx_recorder_otlp_kind(f->item->entry.kind, &logs, &json))
        return CX_SUCCESS;
    if (json)
        return import_bytes(f, "otlp", f->item->payload, err);
    cx_buf_init(&text, f->text.alloc);
    cx_status status =
        cx_otlp_json(logs ? CX_OTLP_LOGS : CX_OTLP_TRACES, f->item->payload, &text, NULL, err);
    if (!cx_failed(status))
        status = import_bytes(f, "otlp", cx_buf_bytes(&text), err);
    else if (status.code != CX_E_NOMEM)
        status = CX_SUCCESS;
    cx_buf_done(&text);
    return status;
}

static cx_status feed_step(step_feed *f, cx_err *err)
{
    cx_json node;
    cx_step_row row;
    cx_status status = cx_json_parse_text(cx_bytes_str(f->item->payload), f->arena, &node, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const cx_json *event =
        cx_failed(status) ? NULL : cx_json_get_typed(&node, CX_STR("event"), CX_JSON_OBJECT);
    if (event == NULL)
        return CX_SUCCESS;
    CX_TRY(fill_row(f, &node, event, &row, err));
    row.history =
        cx_arena_printf(f->arena, "agent/%.*s", (int)f->item->actor.size, f->item->actor.data);
    row.source = CX_STR("steps");
    row.ref = CX_JSON_GET_STR(&node, "hash");
    if (row.history.data == NULL)
        return cx_fail_nomem(err);
    return row.ref.size == 0 ? CX_SUCCESS : cx_index_put_step(f->index, &row, err);
}

/* session.claude_code is of the format claude-code; empty when there is no such importer. */
static cx_str format_of_kind(cx_str kind)
{
    static const char prefix[] = "session.";
    const cx_import_format_info *info;
    size_t skip = sizeof prefix - 1;
    for (size_t i = 0;
         cx_str_starts(kind, CX_STR(prefix)) && (info = cx_import_format_at(i)) != NULL; i++) {
        cx_str name = cx_str_z(info->name);
        bool same = name.size == kind.size - skip;
        for (size_t k = 0; same && k < name.size; k++)
            same = kind.data[skip + k] == (name.data[k] == '-' ? '_' : name.data[k]);
        if (same)
            return name;
    }
    return (cx_str){"", 0};
}

cx_status cx_feed_steps(const cx_feed_entry *at, cx_err *err)
{
    const cx_tail_item *item = at->item;
    cx_str kind = item->entry.kind;
    step_feed f = {.index = at->index, .item = item, .arena = at->arena};
    cx_status status = CX_SUCCESS;
    if (item->erased)
        return CX_SUCCESS;
    cx_buf_init(&f.text, cx_alloc_default());
    cx_buf_init(&f.nodes, cx_alloc_default());
    if (cx_str_is(item->actor, SESSION_ACTOR)) {
        f.source = format_of_kind(kind);
        if (f.source.size != 0)
            status = feed_session(&f, err);
    } else if (cx_str_is(item->actor, CX_OTLP_ACTOR))
        status = feed_spans(&f, err);
    else if (cx_str_is(kind, "lattice.node"))
        status = feed_step(&f, err);
    cx_buf_done(&f.text);
    cx_buf_done(&f.nodes);
    return status;
}
