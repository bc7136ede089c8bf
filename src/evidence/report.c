/*
 * report.c - the result of verifying an evidence file: lines for users, and one JSON object
 * (docs/formats/evidence.md).
 */
#include "base/api.h"
#include "evidence/evidence.h"
#include "json/api.h"

static const char *verdict_word(cx_verdict verdict)
{
    return verdict == CX_HOLDS ? "holds" : verdict == CX_BROKEN ? "broken" : "indeterminate";
}

/* A message may have been cut inside a character. */
static cx_str whole_text(const char *message)
{
    cx_str text = cx_str_z(message);
    text.size = cx_utf8_valid_prefix(text);
    return text;
}

/* --- text ------------------------------------------------------------------------------------- */

static void text_counts(const cx_evidence_result *r, cx_buf *out)
{
    const cx_evidence *e = &r->evidence;
    cx_buf_add_z(out, "  about   ");
    cx_check_write_safe(out, e->kind);
    cx_buf_add_byte(out, ' ');
    cx_check_write_safe(out, e->id);
    cx_buf_printf(out, "\n  shows   %zu entr%s of %zu journal%s", e->entry_count,
                  e->entry_count == 1 ? "y" : "ies", e->journal_count,
                  e->journal_count == 1 ? "" : "s");
    if (e->file_count != 0)
        cx_buf_printf(out, ", %zu of %zu files of a run", e->file_count,
                      r->bundle_files_listed + 1);
    if (e->trace_count != 0)
        cx_buf_printf(out, ", %zu signed decision%s", e->trace_count,
                      e->trace_count == 1 ? "" : "s");
    if (e->memory_count != 0)
        cx_buf_printf(out, ", %zu memor%s", e->memory_count, e->memory_count == 1 ? "y" : "ies");
    if (e->home_count != 0)
        cx_buf_printf(out, ", %zu journal%s in a home root", e->home_count,
                      e->home_count == 1 ? "" : "s");
    if (r->bodies_missing != 0)
        cx_buf_printf(out, "; %zu contents are missing", r->bodies_missing);
    cx_buf_add_byte(out, '\n');
}

static void text_journals(const cx_evidence_result *r, cx_buf *out)
{
    const cx_evidence *e = &r->evidence;
    for (size_t i = 0; i < e->journal_count; i++) {
        cx_buf_add_z(out, "  journal ");
        cx_check_write_safe(out, e->journals[i].actor);
        cx_buf_printf(out, ", %llu entries, root ", (unsigned long long)e->journals[i].point.size);
        for (size_t j = 0; j < 32; j++)
            cx_buf_printf(out, "%02x", e->journals[i].point.root.bytes[j]);
        cx_buf_add_z(out, e->journals[i].checkpoint.size == 0 ? ", not signed\n" : "\n");
    }
}

static void text_findings(const cx_evidence_result *r, cx_buf *out)
{
    for (size_t i = 0; i < r->finding_count; i++) {
        const cx_evidence_finding *one = &r->findings[i];
        cx_buf_printf(out, "  %s: %s %zu: ", one->finding.reason, one->part, one->number);
        cx_check_write_safe(out, whole_text(one->finding.message));
        cx_buf_add_byte(out, '\n');
    }
}

/* What a verdict "holds" rests on, in the words of a line's end. */
static void text_not_proven(const cx_evidence_result *r, cx_buf *out)
{
    size_t journals = r->evidence.journal_count;
    if (r->journals_anchored == 0) {
        cx_buf_add_z(out, ", but has no given anchor");
        return;
    }
    cx_buf_printf(out, ", anchored by given keys, which signed %zu of %zu journals",
                  r->journals_signed, journals);
    if (r->journals_anchored > r->journals_signed)
        cx_buf_printf(out, ", and by given roots of %zu more",
                      r->journals_anchored - r->journals_signed);
    if (r->homes_signed != 0)
        cx_buf_printf(out, "; %zu by the home root, which a given key signed", r->homes_signed);
    if (r->evidence.trace_count != 0)
        cx_buf_printf(out, "; given keys signed %zu of %zu decisions", r->traces_signed,
                      r->evidence.trace_count);
}

void cx_evidence_write_text(const cx_evidence_result *r, cx_str file, bool details, cx_buf *out)
{
    cx_check_write_safe(out, file);
    cx_buf_printf(out, ": %s", verdict_word(r->finding.verdict));
    if (r->finding.verdict == CX_HOLDS)
        text_not_proven(r, out);
    cx_buf_add_byte(out, '\n');
    if (r->read)
        text_counts(r, out);
    if (r->read && details)
        text_journals(r, out);
    text_findings(r, out);
    if (!r->read)
        return;
    for (size_t i = 0; i < r->limit_count && r->finding.verdict != CX_BROKEN; i++)
        cx_buf_printf(out, "  not proven: %s\n", r->limits[i]);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void name(cx_buf *out, const char *before, const char *text)
{
    cx_buf_printf(out, "%s\"%s\":", before, text);
}

static void add_string(cx_buf *out, cx_str text)
{
    cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
}

static void add_text_or_null(cx_buf *out, cx_str text)
{
    if (text.data == NULL || text.size == 0)
        cx_buf_add_z(out, "null");
    else
        add_string(out, text);
}

static void json_findings(const cx_evidence_result *r, cx_buf *out)
{
    cx_buf_add_byte(out, '[');
    for (size_t i = 0; i < r->finding_count; i++) {
        const cx_evidence_finding *one = &r->findings[i];
        name(out, i == 0 ? "{" : ",{", "message");
        add_string(out, whole_text(one->finding.message));
        cx_buf_printf(out, ",\"number\":%zu,\"part\":\"%s\",\"reason\":\"%s\",\"verdict\":\"%s\"}",
                      one->number, one->part, one->finding.reason,
                      verdict_word(one->finding.verdict));
    }
    cx_buf_add_byte(out, ']');
}

static void json_journals(const cx_evidence_result *r, cx_buf *out)
{
    cx_buf_add_byte(out, '[');
    for (size_t i = 0; r->read && i < r->evidence.journal_count; i++) {
        const cx_evidence_journal *journal = &r->evidence.journals[i];
        name(out, i == 0 ? "{" : ",{", "actor");
        add_string(out, journal->actor);
        name(out, ",", "root");
        cx_buf_add_byte(out, '"');
        for (size_t j = 0; j < 32; j++)
            cx_buf_printf(out, "%02x", journal->point.root.bytes[j]);
        cx_buf_printf(out, "\",\"size\":%llu}", (unsigned long long)journal->point.size);
    }
    cx_buf_add_byte(out, ']');
}

void cx_evidence_write_json(const cx_evidence_result *r, cx_str file, cx_buf *out)
{
    const cx_evidence *e = &r->evidence;
    name(out, "{", "about");
    if (r->read) {
        name(out, "{", "id");
        add_string(out, e->id);
        name(out, ",", "kind");
        add_string(out, e->kind);
        cx_buf_add_byte(out, '}');
    } else {
        cx_buf_add_z(out, "null");
    }
    cx_buf_printf(out,
                  ",\"bodies_missing\":%zu,\"bundle_files\":%zu,\"bundle_files_listed\":%zu,"
                  "\"entries\":%zu,\"file\":",
                  r->bodies_missing, e->file_count, r->bundle_files_listed, r->entries_shown);
    add_string(out, file);
    name(out, ",", "findings");
    json_findings(r, out);
    cx_buf_printf(out, ",\"homes\":%zu,\"homes_signed\":%zu", e->home_count, r->homes_signed);
    name(out, ",", "journals");
    json_journals(r, out);
    cx_buf_printf(out,
                  ",\"journals_anchored\":%zu,\"journals_signed\":%zu,\"kind\":\"evidence\","
                  "\"limits\":[",
                  r->journals_anchored, r->journals_signed);
    for (size_t i = 0; i < r->limit_count; i++) {
        cx_buf_add_z(out, i == 0 ? "" : ",");
        add_string(out, cx_str_z(r->limits[i]));
    }
    cx_buf_add_z(out, "],\"message\":");
    add_string(out, whole_text(r->finding.message));
    name(out, ",", "offset");
    if (r->finding.verdict == CX_HOLDS || r->finding.offset == CX_NO_OFFSET)
        cx_buf_add_z(out, "null");
    else
        cx_buf_printf(out, "%llu", (unsigned long long)r->finding.offset);
    name(out, ",", "reason");
    add_text_or_null(out, r->finding.reason == NULL ? CX_STR("") : cx_str_z(r->finding.reason));
    cx_buf_printf(out, ",\"traces\":%zu,\"traces_signed\":%zu,\"verdict\":\"%s\"}\n",
                  e->trace_count, r->traces_signed, verdict_word(r->finding.verdict));
}
