/*
 * detect.c - recognises the format of a file by its first records.
 *
 *   D1  A record is judged whole: a first line of any length is read to its end.
 *   D2  Each record of a format is evidence for it, and some shapes are evidence against it; one
 *       record against a format outweighs all that are for it.
 *   D3  Text that only mentions a format's names counts where the first record cannot be read and
 *       no other one is evidence.
 *   D4  One record of a format among many of another decides nothing: a line that a person or a
 *       tool put there.
 */
#include "import/internal.h"
#include "import/vscdb.h"

#define STEP_BYTES ((size_t)64 << 10)
#define RECORDS_MAX 16
#define RECORDS_WANTED 4 /* without any evidence, this many records end the search */
#define LINES_MAX 64     /* tried; broken ones count too */
#define DEPTH_MAX 1022

/* What the first records say. */
typedef struct evidence {
    int confidence[CX_IMPORT_FORMATS_MAX];  /* of each format; negative = against */
    unsigned claims[CX_IMPORT_FORMATS_MAX]; /* records that are evidence for it */
    bool is_list_of_lines;                  /* an array of what are lines of a format */
    bool is_lattice;
    bool first_is_complete;
    unsigned records;       /* complete objects and lists of them */
    size_t nearest_members; /* how many known member names the nearest format shares */
    const char *nearest;
    bool wants_more; /* the text ended within a record */
} evidence;

/* --- programs whose files have no importer -------------------------------------------------- */

static bool has(const cx_json *object, const char *name)
{
    return cx_json_get(object, cx_str_z(name)) != NULL;
}

/* Programs keep their sessions in databases too. */
static const cx_import_other sqlite = {"sqlite", "a SQLite database",
                                       "name the file to `cortex import` when it is Cursor's; of "
                                       "other programs, export the sessions as "
                                       "JSON first, for example with `opencode export`"};

/* Text of another encoding, or packed text: by their first bytes. */
static const struct {
    const char *magic;
    size_t size;
    cx_import_other other;
} packed[] = {
    {"\x1f\x8b", 2, {"gzip", "gzip data", "pipe it: gunzip -c FILE | cortex import auto -"}},
    {"\x28\xb5\x2f\xfd", 4, {"zstd", "zstd data", "pipe it: zstd -dc FILE | cortex import auto -"}},
    {"PK\x03\x04", 4, {"zip", "a zip archive", "unpack it and name the files inside"}},
    {"\xff\xfe",
     2,
     {"utf-16", "UTF-16 text", "pipe it: iconv -f utf-16 -t utf-8 FILE | cortex import auto -"}},
    {"\xfe\xff",
     2,
     {"utf-16", "UTF-16 text", "pipe it: iconv -f utf-16 -t utf-8 FILE | cortex import auto -"}},
};

static const cx_import_other plain = {
    "text", "text that is no JSON",
    "agents keep sessions as JSON (~/.claude/projects, ~/.codex/sessions): name such a file; "
    "`cortex import --list` has the formats"};

static const cx_import_other markdown = {
    "markdown", "a chat that Cursor exported as Markdown, without tool calls and times",
    "name Cursor's database: cortex import cursor "
    "~/.config/Cursor/User/globalStorage/state.vscdb"};

static const cx_import_other binary = {"binary", "bytes that are no text",
                                       "`cortex import --list` has the formats"};

static const cx_import_other list_of_lines = {"array", "one JSON array of a session's lines",
                                              "make lines of it: jq -c '.[]' FILE > FILE.jsonl"};

/* "_Exported on DATE from Cursor (VERSION)_", below the title. */
static bool is_cursor_export(cx_bytes head)
{
    static const char on[] = "_Exported on ", from[] = " from Cursor";
    size_t size = head.size < 4096 ? head.size : 4096;
    return head.size != 0 && memmem(head.data, size, on, sizeof on - 1) != NULL &&
           memmem(head.data, size, from, sizeof from - 1) != NULL;
}

/* Whether it begins with what no value of JSON begins with. */
static bool is_plain_text(cx_bytes head)
{
    size_t at = 0;
    while (at < head.size && strchr(" \t\r\n", head.data[at]) != NULL && head.data[at] != 0)
        at++;
    return at < head.size && head.data[at] >= 0x21 && head.data[at] < 0x7f &&
           strchr("{[\"-0123456789tfn", head.data[at]) == NULL;
}

static bool is_blank_text(cx_bytes head)
{
    for (size_t i = 0; i < head.size; i++)
        if (head.data[i] == 0 || strchr(" \t\r\n", head.data[i]) == NULL)
            return false;
    return true;
}

static const cx_import_other *other_kind(cx_bytes head, bool is_text)
{
    if (cx_import_is_sqlite(head))
        return &sqlite;
    for (size_t i = 0; i < CX_COUNT_OF(packed); i++)
        if (head.size >= packed[i].size && memcmp(head.data, packed[i].magic, packed[i].size) == 0)
            return &packed[i].other;
    if (!is_text || is_blank_text(head))
        return NULL;
    if (memchr(head.data, 0, head.size) != NULL)
        return &binary;
    return is_cursor_export(head) ? &markdown : is_plain_text(head) ? &plain : NULL;
}

cx_bytes cx_import_after_mark(cx_bytes text)
{
    bool marked = text.size >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0;
    return marked ? cx_bytes_from(text.data + 3, text.size - 3) : text;
}

/* --- the nearest format ---------------------------------------------------------------------- */

static const struct {
    const char *format;
    const char *members[8];
} shapes[] = {
    {"lattice",
     {"node_id", "prev_hash", "agent_id", "parents", "event", "state_delta", "seq", "fork_type"}},
    {"otlp", {"resourceSpans", "resourceLogs", "scopeSpans", "resource"}},
    {"otel-sdk", {"spans", "final_output", "trace_id", "span_id", "context", "start_time"}},
    {"langfuse", {"trace", "observations", "traceId", "parentObservationId", "startTime"}},
    {"claude-code",
     {"type", "uuid", "parentUuid", "sessionId", "message", "timestamp", "isSidechain", "cwd"}},
    {"codex", {"type", "payload", "timestamp", "call_id", "arguments"}},
    {"swe-agent", {"trajectory", "history", "info", "environment"}},
    {"tau-bench", {"task_id", "trial", "reward", "traj", "info"}},
    {"who-when", {"history", "question", "mistake_agent", "mistake_step", "is_correct"}},
    {"gemini-cli",
     {"sessionId", "projectHash", "startTime", "lastUpdated", "toolCalls", "thoughts"}},
    {"opencode", {"info", "parts", "sessionID", "messageID"}},
    {"copilot-cli", {"data", "parentId", "toolCallId"}},
    {"cline", {"ts", "say", "ask"}},
    {"qwen-code", {"uuid", "parentUuid", "systemPayload", "usageMetadata", "toolCallResult"}},
};

static void find_nearest(evidence *found, const cx_json *record)
{
    if (record->type == CX_JSON_ARRAY && record->count != 0)
        record = &record->items[0];
    if (record->type != CX_JSON_OBJECT)
        return;
    for (size_t i = 0; i < CX_COUNT_OF(shapes); i++) {
        size_t shared = 0;
        for (size_t j = 0; j < CX_COUNT_OF(shapes[i].members) && shapes[i].members[j] != NULL; j++)
            shared += has(record, shapes[i].members[j]);
        if (shared > found->nearest_members) {
            found->nearest_members = shared;
            found->nearest = shapes[i].format;
        }
    }
}

/* --- records --------------------------------------------------------------------------------- */

/* A node, even one that lacks some members, or the header before them. */
static bool is_node(const cx_json *record)
{
    return has(record, "node_id") || has(record, "prev_hash") || has(record, "state_delta") ||
           (has(record, "schema_version") && !has(record, "steps")) ||
           (has(record, "agent_id") && has(record, "event"));
}

/* Nodes, or a list of them. */
static bool is_lattice(const cx_json *record)
{
    if (record->type == CX_JSON_OBJECT)
        return is_node(record) || cx_json_get_typed(record, CX_STR("nodes"), CX_JSON_ARRAY) != NULL;
    bool found = record->count == 0;
    for (uint32_t i = 0; i < record->count && i < RECORDS_MAX && !found; i++)
        found = is_node(&record->items[i]);
    return found;
}

/* What `jq -s` makes of a session. */
static bool is_list_of_lines(const cx_json *record)
{
    const cx_bytes none = {NULL, 0};
    const cx_import_format *format;
    bool found = false;
    for (size_t i = 0; record->type == CX_JSON_ARRAY && record->count != 0 && !found &&
                       (format = cx_import_format_nth(i)) != NULL;
         i++)
        for (uint32_t k = 0; k < record->count && k < RECORDS_WANTED && !found; k++)
            found = format->line != NULL && format->detect != NULL &&
                    format->detect(none, &record->items[k]) > 0;
    return found;
}

/* D2 */
static void weigh_record(evidence *found, cx_bytes head, const cx_json *record)
{
    const cx_import_format *format;
    found->records++;
    found->is_lattice |= is_lattice(record);
    found->is_list_of_lines |= found->records == 1 && is_list_of_lines(record);
    for (size_t i = 0; (format = cx_import_format_nth(i)) != NULL; i++) {
        bool fits = format->detect != NULL && (format->line != NULL || found->records == 1);
        int says = fits ? format->detect(head, record) : 0;
        int *so_far = &found->confidence[i];
        found->claims[i] += says > 0;
        if (says < 0 || (*so_far >= 0 && says > *so_far))
            *so_far = says;
    }
    find_nearest(found, record);
}

static bool is_conclusive(const evidence *found)
{
    for (size_t i = 0; i < CX_IMPORT_FORMATS_MAX; i++)
        if (found->confidence[i] > 0)
            return true;
    return found->is_lattice || found->records >= RECORDS_WANTED;
}

/* An object or a list of objects: scalars are what a text log looks like. */
static bool is_record(const cx_json *value)
{
    return value->type == CX_JSON_OBJECT ||
           (value->type == CX_JSON_ARRAY &&
            (value->count == 0 || value->items[0].type == CX_JSON_OBJECT));
}

/* Reads records from the start of the text; a line that is not JSON is skipped. */
static void weigh_records(evidence *found, cx_bytes head, bool is_whole)
{
    const cx_json_limits limits = {DEPTH_MAX, 4300, 0, false};
    const char *data = (const char *)head.data;
    cx_json_parser parser;
    cx_arena arena;
    size_t at = 0;
    cx_json_parser_init(&parser, cx_alloc_default(), &limits);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    *found = (evidence){0};
    for (unsigned lines = 0; at < head.size && lines < LINES_MAX && found->records < RECORDS_MAX;
         lines++) {
        cx_json record;
        size_t used = 0;
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        cx_status status = cx_json_parse_prefix(&parser, cx_str_from(data + at, head.size - at),
                                                is_whole, &arena, &record, &used, NULL);
        if (!cx_failed(status)) {
            found->first_is_complete |= lines == 0;
            if (is_record(&record))
                weigh_record(found, head, &record);
        } else {
            const char *end = memchr(data + at, '\n', head.size - at);
            found->wants_more = status.code == CX_E_MORE && !is_whole;
            used = end == NULL ? head.size - at : (size_t)(end - (data + at)) + 1;
        }
        cx_arena_reset(&arena, mark);
        if (found->wants_more)
            break;
        at += used;
    }
    cx_json_parser_done(&parser);
    cx_arena_done(&arena);
}

/* --- the answer ------------------------------------------------------------------------------ */

#define OUTWEIGHS 3 /* times as many records (D4) */

/* The format that says so most surely, unless far more records say another one. */
static const cx_import_format *best_format(const evidence *found, int *out_confidence)
{
    const cx_import_format *format, *best = NULL;
    size_t best_at = 0;
    *out_confidence = 0;
    for (size_t i = 0; (format = cx_import_format_nth(i)) != NULL; i++)
        if (found->confidence[i] > *out_confidence) {
            *out_confidence = found->confidence[i];
            best = format;
            best_at = i;
        }
    for (size_t i = 0; best != NULL && (format = cx_import_format_nth(i)) != NULL; i++)
        if (found->confidence[i] > 0 && found->claims[i] >= OUTWEIGHS * found->claims[best_at]) {
            best = format;
            best_at = i;
        }
    return best;
}

void cx_import_guess(cx_bytes head, cx_import_guessed *out)
{
    static const char id[] = "\"node_id\"", prev[] = "\"prev_hash\"";
    const cx_import_format *format;
    evidence found;
    int best = 0;
    head = cx_import_after_mark(head);
    weigh_records(&found, head, true);
    *out = (cx_import_guessed){
        .is_json = found.records != 0, .is_lattice = found.is_lattice, .nearest = found.nearest};
    if ((format = best_format(&found, &best)) != NULL)
        out->format = format->info.name;
    bool by_text = !found.first_is_complete && best == 0 && !found.is_lattice && head.size != 0;
    for (size_t i = 0; by_text && (format = cx_import_format_nth(i)) != NULL; i++) { /* D3 */
        int says =
            format->detect == NULL || found.confidence[i] < 0 ? 0 : format->detect(head, NULL);
        if (says > best) {
            best = says;
            out->format = format->info.name;
        }
    }
    if (by_text)
        out->is_lattice = memmem(head.data, head.size, id, sizeof id - 1) != NULL ||
                          memmem(head.data, head.size, prev, sizeof prev - 1) != NULL;
    if (out->format == NULL)
        out->other = found.is_list_of_lines && !out->is_lattice
                         ? &list_of_lines
                         : other_kind(head, !out->is_json && !out->is_lattice);
    out->is_blank = is_blank_text(head);
}

const char *cx_import_detect(cx_bytes head)
{
    cx_import_guessed guessed;
    cx_import_guess(head, &guessed);
    return guessed.format;
}

cx_status cx_import_fail_unknown(const cx_import_guessed *guessed, cx_err *err)
{
    if (guessed->other != NULL)
        return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                          "found %s, expected a session; %s", guessed->other->description,
                          guessed->other->advice);
    if (guessed->is_blank)
        return cx_fail_at(
            err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
            "found an empty file, expected a format of `cortex import --list`; an agent "
            "that runs writes its file with the first answer");
    if (guessed->nearest != NULL)
        return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                          "found records of no known format (the nearest is %s), expected one of "
                          "`cortex import --list`, or lines {\"role\",\"content\"}",
                          guessed->nearest);
    return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", CX_NO_OFFSET,
                      "found no trace of a known format, expected one of `cortex import --list`, "
                      "or lines {\"role\",\"content\"}");
}

/* D1 */
cx_status cx_import_read_head(const cx_io *io, cx_file file, const char *path, size_t max_bytes,
                              cx_buf *out, cx_err *err)
{
    size_t limit = max_bytes == 0 || max_bytes > UINT32_MAX ? UINT32_MAX : max_bytes;
    size_t step = STEP_BYTES;
    for (;;) {
        evidence found;
        size_t got = 0, room = limit - out->size < step ? limit - out->size : step;
        uint8_t *space = cx_buf_reserve(out, room);
        if (space == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_io_read_at(io, file, path, space, room, out->size, &got, err));
        cx_buf_advance(out, got);
        if (got < room || out->size == limit)
            return CX_SUCCESS;
        weigh_records(&found, cx_import_after_mark(cx_buf_bytes(out)), false);
        if (!found.wants_more || is_conclusive(&found))
            return CX_SUCCESS;
        step = 3 * out->size; /* each turn quadruples the text: no byte is read many times */
    }
}
