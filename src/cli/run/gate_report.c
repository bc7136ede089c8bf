/*
 * gate_report.c - the answers of gates: text, JSON, SARIF 2.1.0, JUnit XML.
 *
 * What a gate found comes from files and command lines: nothing of it acts on a terminal, ends a
 * tag, or leaves a URI.
 */
#include "cli/run/gate_report.h"

#include <string.h>

#include "base/api.h"

/* --- text ------------------------------------------------------------------------------------- */

static void write_text(cx_buf *out, const cx_cli_gate_report *report)
{
    cx_buf_printf(out, "%s: %s\n", report->gate, report->allow ? "allowed" : "rejected");
    if (report->text.size != 0) {
        cx_shown_add(out, report->text);
        cx_buf_add_byte(out, '\n');
    }
    for (size_t i = 0; i < report->findings->list.count; i++) {
        const cx_run_finding *finding = &report->findings->list.items[i];
        cx_buf_printf(out, "  %s%s ", finding->informs ? "note " : "", finding->rule);
        if (finding->where.size != 0) {
            cx_cli_links_add(out, report->where_is_path ? report->links : NULL, finding->where, 0,
                             finding->where);
            cx_buf_add_z(out, ": ");
        }
        cx_shown_add(out, finding->message);
        if (finding->detail.size != 0) {
            cx_buf_add_z(out, " (");
            cx_shown_add(out, finding->detail);
            cx_buf_add_byte(out, ')');
        }
        cx_buf_add_byte(out, '\n');
    }
}

/* --- SARIF ------------------------------------------------------------------------------------ */

static void add_json(cx_buf *out, cx_str text)
{
    cx_buf shown;
    if (cx_utf8_valid(text)) {
        cx_json_write_str(out, text, CX_JSON_JCS);
        return;
    }
    cx_buf_init(&shown, out->alloc);
    cx_shown_add(&shown, text);
    cx_json_write_str(out, cx_buf_str(&shown), CX_JSON_JCS);
    out->failed = out->failed || shown.failed;
    cx_buf_done(&shown);
}

/* A path of the repository as a relative reference (RFC 3986). */
static void add_uri(cx_buf *out, cx_str path)
{
    static const char plain[] = "-._~/!$&'()*+,;=@";
    cx_buf_add_byte(out, '"');
    for (size_t i = 0; i < path.size; i++) {
        unsigned char c = (unsigned char)path.data[i];
        bool kept = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    (c != 0 && strchr(plain, c) != NULL);
        if (kept)
            cx_buf_add_byte(out, c);
        else
            cx_buf_printf(out, "%%%02X", (unsigned)c);
    }
    cx_buf_add_byte(out, '"');
}

/* The place among the distinct rules; a new one is counted. */
static size_t rule_index(const cx_run_findings *findings, size_t finding)
{
    size_t index = 0;
    for (size_t i = 0; i < finding; i++) {
        bool first = true;
        if (strcmp(findings->list.items[i].rule, findings->list.items[finding].rule) == 0)
            return rule_index(findings, i);
        for (size_t k = 0; k < i && first; k++)
            first = strcmp(findings->list.items[k].rule, findings->list.items[i].rule) != 0;
        index += first;
    }
    return index;
}

static bool is_first_of_rule(const cx_run_findings *findings, size_t finding)
{
    for (size_t i = 0; i < finding; i++) {
        if (strcmp(findings->list.items[i].rule, findings->list.items[finding].rule) == 0)
            return false;
    }
    return true;
}

static void add_locations(cx_buf *out, const cx_cli_gate_report *report,
                          const cx_run_finding *finding)
{
    /* Code scanning takes no result without a place: that of the contract for one about no path. */
    bool named = report->where_is_path && finding->where.size != 0;
    cx_str path = named                     ? finding->where
                  : report->subject == NULL ? (cx_str){NULL, 0}
                                            : cx_str_z(report->subject);
    bool pointer = !report->where_is_path && finding->where.size != 0;
    if (path.size == 0 && !pointer)
        return;
    cx_buf_add_z(out, ",\"locations\":[{");
    if (path.size != 0) {
        cx_buf_add_z(out, "\"physicalLocation\":{\"artifactLocation\":{\"uri\":");
        add_uri(out, path);
        cx_buf_add_z(out, "}}");
    }
    if (pointer) {
        cx_buf_add_z(out, path.size != 0 ? "," : "");
        cx_buf_add_z(out, "\"logicalLocations\":[{\"fullyQualifiedName\":");
        add_json(out, finding->where);
        cx_buf_add_z(out, "}]");
    }
    cx_buf_add_z(out, "}]");
}

/* What code scanning services show of a rule: what it found first, and where it is explained. */
static void add_rule(cx_buf *out, const cx_cli_gate_report *report, const cx_run_finding *finding)
{
    cx_buf_add_z(out, "{\"id\":");
    add_json(out, cx_str_z(finding->rule));
    cx_buf_add_z(out, ",\"shortDescription\":{\"text\":");
    add_json(out, finding->message);
    cx_buf_add_z(out, "},\"fullDescription\":{\"text\":");
    add_json(out, finding->message);
    cx_buf_printf(
        out,
        "},\"help\":{\"text\":\"A rule of the %s gate; docs/formats/run.md says what each "
        "rule checks.\"}}",
        report->gate);
}

static void write_sarif(cx_buf *out, const cx_cli_gate_report *report)
{
    const cx_run_findings *findings = report->findings;
    const char *comma = "";
    cx_buf_add_z(out, "{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\","
                      "\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"cortex\","
                      "\"version\":\"" CX_VERSION "\",\"rules\":[");
    for (size_t i = 0; i < findings->list.count; i++) {
        if (!is_first_of_rule(findings, i))
            continue;
        cx_buf_add_z(out, comma);
        add_rule(out, report, &findings->list.items[i]);
        comma = ",";
    }
    cx_buf_printf(out,
                  "]}},\"invocations\":[{\"executionSuccessful\":true,\"exitCode\":%d}],"
                  "\"properties\":{\"gate\":\"%s\",\"allow\":%s},\"results\":[",
                  report->allow ? CX_EXIT_HOLDS : CX_RUN_EXIT_REJECTED, report->gate,
                  report->allow ? "true" : "false");
    for (size_t i = 0; i < findings->list.count; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        cx_buf_printf(out, "%s{\"ruleId\":", i == 0 ? "" : ",");
        add_json(out, cx_str_z(finding->rule));
        cx_buf_printf(out, ",\"ruleIndex\":%zu,\"level\":\"%s\",\"message\":{\"text\":",
                      rule_index(findings, i), finding->informs ? "note" : "error");
        add_json(out, finding->message);
        cx_buf_add_byte(out, '}');
        add_locations(out, report, finding);
        cx_buf_add_byte(out, '}');
    }
    cx_buf_add_z(out, "]}]}\n");
}

/* --- JUnit ------------------------------------------------------------------------------------ */

/* XML 1.0 has no controls but tab, line feed and return, however they are written. */
static void add_xml(cx_buf *out, cx_str text)
{
    for (size_t at = 0; at < text.size;) {
        char shown[CX_SHOWN_SIZE_MAX];
        size_t size;
        const uint8_t *data = (const uint8_t *)text.data + at;
        size_t read = cx_shown_step(data, text.size - at, shown, &size);
        if (size != 0)
            cx_buf_add(out, shown, size);
        else if (*data == '&')
            cx_buf_add_z(out, "&amp;");
        else if (*data == '<')
            cx_buf_add_z(out, "&lt;");
        else if (*data == '>')
            cx_buf_add_z(out, "&gt;");
        else if (*data == '"')
            cx_buf_add_z(out, "&quot;");
        else if (read == 3 && data[0] == 0xEF && data[1] == 0xBF && data[2] >= 0xBE)
            cx_buf_add_byte(out, '?'); /* U+FFFE, U+FFFF: XML cannot represent them */
        else
            cx_buf_add(out, data, read);
        at += read;
    }
}

static void write_junit(cx_buf *out, const cx_cli_gate_report *report)
{
    const cx_run_findings *findings = report->findings;
    size_t failures = findings->refusing;
    bool unexplained = !report->allow && failures == 0;
    size_t tests = failures == 0 ? 1 : failures;
    cx_buf_add_z(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    cx_buf_printf(out, "<testsuites tests=\"%zu\" failures=\"%zu\">\n", tests,
                  failures + unexplained);
    cx_buf_printf(out, "  <testsuite name=\"cortex gate %s\" tests=\"%zu\" failures=\"%zu\">\n",
                  report->gate, tests, failures + unexplained);
    if (failures == 0) {
        cx_buf_printf(out, "    <testcase classname=\"cortex.gate\" name=\"%s\"%s", report->gate,
                      unexplained ? "><failure message=\"rejected\"/></testcase>\n" : "/>\n");
    }
    for (size_t i = 0; i < findings->list.count; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        if (finding->informs)
            continue;
        cx_buf_printf(out, "    <testcase classname=\"cortex.gate.%s\" name=\"", report->gate);
        add_xml(out, cx_str_z(finding->rule));
        if (finding->where.size != 0) {
            cx_buf_add_byte(out, ' ');
            add_xml(out, finding->where);
        }
        cx_buf_add_z(out, "\">\n      <failure type=\"");
        add_xml(out, cx_str_z(finding->rule));
        cx_buf_add_z(out, "\" message=\"");
        add_xml(out, finding->message);
        cx_buf_add_z(out, "\"/>\n    </testcase>\n");
    }
    cx_buf_add_z(out, "  </testsuite>\n</testsuites>\n");
}

/* --- answering -------------------------------------------------------------------------------- */

/* The requested form; NULL when it is unknown. */
static const char *form_of(const cx_cli_args *args)
{
    static const char *const forms[] = {"text", "json", "sarif", "junit"};
    const char *form = cx_cli_value(args, "format");
    if (form == NULL)
        return cx_cli_has(args, "json") ? "json" : "text";
    for (size_t i = 0; i < CX_COUNT_OF(forms); i++) {
        if (strcmp(form, forms[i]) == 0)
            return forms[i];
    }
    return NULL;
}

bool cx_cli_gate_json(const cx_cli_args *args)
{
    const char *form = form_of(args);
    return form != NULL && strcmp(form, "json") == 0;
}

static cx_status write_form(cx_buf *out, const char *form, const cx_cli_gate_report *report,
                            cx_err *err)
{
    CX_TRY(cx_run_findings_check(report->findings, err));
    if (strcmp(form, "json") == 0) {
        CX_TRY(cx_json_write(out, &report->json, CX_JSON_PY_COMPACT, err));
        cx_buf_add_byte(out, '\n');
    } else if (strcmp(form, "sarif") == 0) {
        write_sarif(out, report);
    } else if (strcmp(form, "junit") == 0) {
        write_junit(out, report);
    } else {
        write_text(out, report);
    }
    return cx_buf_check(out, err);
}

static cx_status write_file(cx_cli *cli, const char *path, const cx_buf *out, cx_err *err)
{
    cx_cli_file file;
    memset(&file, 0, sizeof file);
    CX_TRY(cx_cli_file_begin(&file, cli->io, path, err));
    cx_status status = cx_cli_file_write(&file, cx_buf_bytes(out), err);
    if (cx_failed(status)) {
        cx_cli_file_abort(&file);
        return status;
    }
    return cx_cli_file_commit(&file, err);
}

int cx_cli_gate_answer(cx_cli *cli, const cx_cli_args *args, const cx_cli_gate_report *report)
{
    const char *form = form_of(args), *path = cx_cli_value(args, "output");
    cx_buf out;
    cx_err err;
    if (form == NULL)
        return cx_cli_misuse(args, "option --format: expected text, json, sarif or junit");
    cx_buf_init(&out, cli->alloc);
    cx_status status = write_form(&out, form, report, &err);
    if (!cx_failed(status) && path != NULL)
        status = write_file(cli, path, &out, &err);
    int code = report->allow ? CX_EXIT_HOLDS : CX_RUN_EXIT_REJECTED;
    if (cx_failed(status))
        code = cx_cli_fail(cli, path != NULL ? path : args->command->name, &err,
                           cx_cli_gate_json(args));
    else if (path == NULL)
        code = cx_cli_answer(cli, &out, code);
    cx_buf_done(&out);
    return code;
}
