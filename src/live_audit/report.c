/*
 * report.c - the report of an audit as JSON (schemas/answers/hook_audit.v1.json) and as results of
 * SARIF 2.1.0.
 */
#include <string.h>

#include "live_audit/live_audit.h"
#include "rules/api.h"

static void put_time(cx_json_list *object, const char *name, int64_t ns)
{
    char text[28];
    if (ns == 0) {
        cx_json_put_null(object, name);
        return;
    }
    cx_run_time_text(ns, text);
    cx_str kept = cx_arena_copy_str(object->arena, cx_str_z(text));
    if (kept.data == NULL)
        object->failed = true;
    else
        cx_json_put_str(object, name, kept);
}

static void put_finding(cx_json_list *object, const cx_live_audit_finding *finding, cx_str actor)
{
    cx_json_list told = cx_json_list_begin(object->arena), entry = told;
    cx_live_audit_severity severity = cx_live_audit_severity_of(finding->kind);
    cx_json_put_z(object, "id", cx_live_audit_name(finding->kind));
    cx_json_put_z(object, "severity", cx_live_audit_severity_name(severity));
    cx_json_put_z(object, "title", cx_live_audit_title(finding->kind));
    cx_json_put_str(object, "message", finding->message);
    if (finding->file.size != 0) {
        cx_json_put_str(&told, "file", finding->file);
        cx_json_put_uint(&told, "line", finding->line);
        cx_json_put_maybe(&told, "call", finding->call_id);
        cx_json_put_maybe(&told, "tool", finding->tool);
        cx_json_put_object(object, "transcript", &told);
    } else {
        cx_json_put_null(object, "transcript");
    }
    if (finding->has_entry) {
        cx_json_put_str(&entry, "actor", actor);
        cx_json_put_uint(&entry, "seq", finding->seq);
        cx_json_put_object(object, "journal", &entry);
    } else {
        cx_json_put_null(object, "journal");
    }
    cx_json_put_maybe(object, "where", finding->where);
}

static void put_files(cx_json_list *object, const cx_live_audit_report *report)
{
    cx_json_list array = cx_json_list_begin(object->arena);
    for (size_t i = 0; i < report->file_count; i++) {
        const cx_live_audit_file *file = &report->files[i];
        cx_json_list item = cx_json_list_begin(object->arena);
        cx_json_put_str(&item, "path", file->path);
        cx_json_put_bool(&item, "archived", file->archived);
        cx_json_put_uint(&item, "generation", file->generation);
        cx_json_put_uint(&item, "bytes", file->bytes);
        cx_json_put_uint(&item, "calls", file->calls);
        cx_json_put_uint(&item, "bad_lines", file->bad_lines);
        cx_json_put_uint(&item, "erased_pieces", file->erased_pieces);
        cx_json_add_object(&array, &item);
    }
    cx_json_put_array(object, "transcripts", &array);
}

static void put_counts(cx_json_list *object, const cx_live_audit_report *report)
{
    cx_json_list counts = cx_json_list_begin(object->arena);
    cx_json_list findings = cx_json_list_begin(object->arena);
    cx_json_put_uint(&counts, "calls", report->calls);
    cx_json_put_uint(&counts, "matched", report->matched);
    cx_json_put_uint(&counts, "entries", report->entries);
    cx_json_put_uint(&counts, "decisions", report->decisions);
    cx_json_put_uint(&counts, "results", report->results);
    cx_json_put_uint(&counts, "changed_files", report->changed_files);
    cx_json_put_uint(&counts, "commits", report->commits);
    for (cx_live_audit_kind kind = 0; kind < CX_LIVE_AUDIT_KIND_COUNT; kind++)
        if (report->counts[kind] != 0)
            cx_json_put_uint(&findings, cx_live_audit_name(kind), report->counts[kind]);
    cx_json_put_object(&counts, "findings", &findings);
    cx_json_put_object(object, "counts", &counts);
}

cx_status cx_live_audit_json(const cx_live_audit_report *report, cx_arena *arena, cx_json *out,
                             cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena), array = cx_json_list_begin(arena);
    cx_json_put_str(&object, "agent", report->agent);
    cx_json_put_str(&object, "session", report->session);
    cx_json_put_maybe(&object, "actor", report->actor);
    cx_json_put_z(&object, "verdict", cx_verdict_name(report->verdict));
    cx_json_put_maybe(&object, "work_tree", report->work_tree);
    put_time(&object, "started", report->started_ns);
    put_time(&object, "latest", report->ended_ns);
    cx_json_put_bool(&object, "ended", report->ended);
    put_files(&object, report);
    put_counts(&object, report);
    for (size_t i = 0; i < report->finding_count; i++) {
        cx_json_list item = cx_json_list_begin(arena);
        put_finding(&item, &report->findings[i], report->actor);
        cx_json_add_object(&array, &item);
    }
    cx_json_put_array(&object, "findings", &array);
    return cx_json_list_end_object(&object, out, err);
}

/* --- SARIF ------------------------------------------------------------------------------------ */

void cx_live_audit_sarif_begin(cx_buf *out)
{
    cx_buf_add_z(out, "{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\","
                      "\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"cortex\","
                      "\"version\":\"" CX_VERSION "\",\"rules\":[");
    for (cx_live_audit_kind kind = 0; kind < CX_LIVE_AUDIT_KIND_COUNT; kind++) {
        cx_live_audit_severity severity = cx_live_audit_severity_of(kind);
        cx_buf_printf(out,
                      "%s{\"id\":\"%s\",\"shortDescription\":{\"text\":\"%s\"},"
                      "\"fullDescription\":{\"text\":\"%s\"},\"help\":{\"text\":\"A finding of "
                      "'cortex hook audit'; docs/formats/live.md says what each means.\"},"
                      "\"defaultConfiguration\":{\"level\":\"%s\"}}",
                      kind == 0 ? "" : ",", cx_live_audit_name(kind), cx_live_audit_title(kind),
                      cx_live_audit_title(kind), cx_live_audit_severity_name(severity));
    }
    cx_buf_add_z(out, "]}},\"columnKind\":\"utf16CodeUnits\",\"results\":[");
}

static const char hex_digits[] = "0123456789ABCDEF";

/* A path as a reference (RFC 3986): file: for an absolute one. */
static cx_str uri_of(cx_str path, cx_arena *arena)
{
    static const char plain[] = "-._~/!$&'()*+,;=@";
    char *text = cx_arena_push(arena, 7 + 3 * path.size + 1, 1);
    size_t size = 0;
    if (text == NULL)
        return (cx_str){NULL, 0};
    if (path.size != 0 && path.data[0] == '/') {
        memcpy(text, "file://", 7);
        size = 7;
    }
    for (size_t i = 0; i < path.size; i++) {
        unsigned char c = (unsigned char)path.data[i];
        bool kept = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    (c != 0 && strchr(plain, c) != NULL);
        if (kept) {
            text[size++] = (char)c;
            continue;
        }
        text[size++] = '%';
        text[size++] = hex_digits[c >> 4];
        text[size++] = hex_digits[c & 15];
    }
    return cx_str_from(text, size);
}

static void put_text(cx_json_list *object, const char *name, cx_str text)
{
    cx_json_list message = cx_json_list_begin(object->arena);
    cx_json_put_str(&message, "text", text);
    cx_json_put_object(object, name, &message);
}

/* Where it is in a file: the transcript, or a file of the work tree. */
static void put_location(cx_json_list *result, const cx_live_audit_finding *finding, cx_str actor)
{
    cx_arena *arena = result->arena;
    cx_json_list locations = cx_json_list_begin(arena), location = locations, place = locations;
    cx_json_list artifact = locations, region = locations, logical = locations, item = locations;
    cx_json value;
    bool is_file = finding->kind == CX_LIVE_AUDIT_CHANGED_FILE;
    cx_str path = finding->file.size != 0 ? finding->file
                  : is_file               ? finding->where
                                          : (cx_str){NULL, 0};
    if (path.size != 0) {
        cx_str uri = uri_of(path, arena);
        if (uri.data == NULL)
            result->failed = true;
        cx_json_put_str(&artifact, "uri", uri);
        cx_json_put_object(&place, "artifactLocation", &artifact);
        if (finding->line != 0 && finding->file.size != 0) {
            cx_json_put_uint(&region, "startLine", finding->line);
            cx_json_put_object(&place, "region", &region);
        }
        cx_json_put_object(&location, "physicalLocation", &place);
    }
    if (finding->has_entry) {
        cx_str name = cx_arena_printf(arena, "%.*s/%llu", (int)actor.size, actor.data,
                                      (unsigned long long)finding->seq);
        if (name.data == NULL)
            result->failed = true;
        cx_json_put_str(&item, "fullyQualifiedName", name);
        cx_json_put_z(&item, "kind", "member");
        cx_json_add_object(&logical, &item);
        cx_json_put_array(&location, "logicalLocations", &logical);
    }
    if (path.size == 0 && !finding->has_entry)
        return;
    if (cx_failed(cx_json_list_end_object(&location, &value, NULL)))
        result->failed = true;
    else
        cx_json_list_add(&locations, value);
    cx_json_put_array(result, "locations", &locations);
}

static cx_status write_result(cx_buf *out, const cx_live_audit_report *report,
                              const cx_live_audit_finding *finding, cx_arena *arena, cx_err *err)
{
    cx_json_list result = cx_json_list_begin(arena), more = cx_json_list_begin(arena);
    cx_json value;
    cx_live_audit_severity severity = cx_live_audit_severity_of(finding->kind);
    cx_json_put_z(&result, "ruleId", cx_live_audit_name(finding->kind));
    cx_json_put_uint(&result, "ruleIndex", (uint64_t)finding->kind);
    cx_json_put_z(&result, "level", cx_live_audit_severity_name(severity));
    put_text(&result, "message", finding->message);
    put_location(&result, finding, report->actor);
    cx_json_put_str(&more, "agent", report->agent);
    cx_json_put_str(&more, "session", report->session);
    if (finding->call_id.size != 0)
        cx_json_put_str(&more, "call", finding->call_id);
    if (finding->where.size != 0)
        cx_json_put_str(&more, "where", finding->where);
    cx_json_put_object(&result, "properties", &more);
    CX_TRY(cx_json_list_end_object(&result, &value, err));
    return cx_json_write(out, &value, CX_JSON_PY_COMPACT, err);
}

cx_status cx_live_audit_sarif_add(cx_buf *out, const cx_live_audit_report *report, bool *is_first,
                                  cx_err *err)
{
    cx_arena arena;
    cx_status status = CX_SUCCESS;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < report->finding_count && !cx_failed(status); i++) {
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        if (!*is_first)
            cx_buf_add_byte(out, ',');
        *is_first = false;
        status = write_result(out, report, &report->findings[i], &arena, err);
        cx_arena_reset(&arena, mark);
    }
    cx_arena_done(&arena);
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

void cx_live_audit_sarif_end(cx_buf *out, cx_verdict verdict)
{
    int code = verdict == CX_HOLDS ? 0 : verdict == CX_BROKEN ? 1 : 3;
    cx_buf_printf(out,
                  "],\"invocations\":[{\"executionSuccessful\":true,\"exitCode\":%d}],"
                  "\"properties\":{\"verdict\":\"%s\"}}]}\n",
                  code, cx_verdict_name(verdict));
}
