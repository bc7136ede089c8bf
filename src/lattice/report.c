/*
 * report.c - what verification found, as one canonical JSON line and as the text of §4.1.
 */
#include "lattice/report.h"

#include <stdlib.h>

#include "base/api.h"

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

static const char *seals_name(cx_lattice_seals seals)
{
    static const char *const names[] = {"none", "some", "all", "bad"};
    return names[seals];
}

static const char *anchored_name(cx_lattice_anchored anchored)
{
    static const char *const names[] = {"none", "some_heads", "heads", "root", "bad"};
    return names[anchored];
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void json_text(cx_buf *out, cx_str text)
{
    cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
}

static void json_findings(cx_buf *out, const cx_lattice_finding *findings, size_t count)
{
    cx_buf_add_byte(out, '[');
    for (size_t i = 0; i < count; i++) {
        cx_buf_add_z(out, i == 0 ? "{\"agent\":" : ",{\"agent\":");
        json_text(out, findings[i].agent);
        cx_buf_printf(out, ",\"code\":\"%s\",\"detail\":", cx_lattice_code_name(findings[i].code));
        json_text(out, findings[i].detail);
        cx_buf_add_z(out, ",\"node\":");
        json_text(out, findings[i].id);
        cx_buf_add_byte(out, '}');
    }
    cx_buf_add_byte(out, ']');
}

static const char *yes_no(bool value)
{
    return value ? "true" : "false";
}

static void json_evidence(cx_buf *out, const cx_lattice_evidence *e)
{
    cx_buf_printf(out,
                  "{\"anchor\":\"%s\",\"containment\":%s,\"hash\":%s,\"ids\":\"%s\",\"lineage\":%s,"
                  "\"monotonic\":%s,\"seals\":\"%s\",\"structure\":%s,\"time\":\"%s\"}",
                  anchored_name(e->anchor), yes_no(e->containment), yes_no(e->hash),
                  e->content_ids ? "content" : "labels", yes_no(e->lineage), yes_no(e->monotonic),
                  seals_name(e->seals), yes_no(e->structure),
                  e->time_ordered ? "ordered" : "regressed");
}

static int compare_branch_names(const void *a, const void *b)
{
    const cx_lattice_branch *const *left = a, *const *right = b;
    return cx_str_cmp((*left)->agent, (*right)->agent);
}

static void json_report(cx_buf *out, const cx_lattice *lattice, const cx_lattice_report *report,
                        const cx_lattice_branch *const *by_name)
{
    cx_buf_add_z(out, "{\"branches\":{");
    for (size_t i = 0; i < report->branch_count; i++) {
        if (i != 0)
            cx_buf_add_byte(out, ',');
        json_text(out, by_name[i]->agent);
        cx_buf_add_z(out, by_name[i]->valid ? ":\"VALID\"" : ":\"INVALID\"");
    }
    cx_buf_add_z(out, "},\"errors\":");
    json_findings(out, report->errors.items, report->errors.count);
    cx_buf_add_z(out, ",\"evidence\":");
    json_evidence(out, &report->evidence);
    cx_buf_printf(out, ",\"nodes\":%zu,\"ok\":%s,\"tainted\":[", lattice->nodes.count,
                  yes_no(report->errors.count == 0));
    bool first = true;
    for (size_t i = 0; i < report->branch_count; i++) {
        if (!by_name[i]->tainted)
            continue;
        if (!first)
            cx_buf_add_byte(out, ',');
        first = false;
        json_text(out, by_name[i]->agent);
    }
    cx_buf_add_z(out, "],\"warnings\":");
    json_findings(out, report->warnings.items, report->warnings.count);
    cx_buf_add_z(out, "}\n");
}

cx_status cx_lattice_report_json(cx_buf *out, const cx_lattice *lattice,
                                 const cx_lattice_report *report, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, lattice->alloc, 0);
    const cx_lattice_branch **by_name =
        CX_ARENA_ARRAY(&arena, const cx_lattice_branch *, report->branch_count + 1);
    if (by_name == NULL) {
        cx_arena_done(&arena);
        return cx_fail_nomem(err);
    }
    for (size_t i = 0; i < report->branch_count; i++)
        by_name[i] = &report->branches[i];
    qsort(by_name, report->branch_count, sizeof *by_name, compare_branch_names);
    json_report(out, lattice, report, by_name);
    cx_arena_done(&arena);
    return cx_buf_check(out, err);
}

/* --- text ------------------------------------------------------------------------------------- */

/* A name as the printout has it: quotes and backslashes escaped, the rest as cx_shown_add. */
static void text_quoted(cx_buf *out, cx_str text, char quote)
{
    size_t done = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] != '\\' && text.data[i] != quote)
            continue;
        cx_shown_add(out, cx_str_from(text.data + done, i - done));
        cx_buf_add_byte(out, '\\');
        done = i;
    }
    if (text.size != done)
        cx_shown_add(out, cx_str_from(text.data + done, text.size - done));
}

static void text_colour(cx_buf *out, const cx_lattice_text_options *options, const char *colour)
{
    if (options->colour)
        cx_buf_add_z(out, colour);
}

static void text_findings(cx_buf *out, const cx_lattice_finding *findings, size_t count,
                          const cx_lattice_text_options *options, const char *colour)
{
    for (size_t i = 0; i < count; i++) {
        cx_buf_add_z(out, "  ");
        text_colour(out, options, colour);
        cx_buf_add_z(out, cx_lattice_code_name(findings[i].code));
        text_colour(out, options, PLAIN);
        cx_buf_add_byte(out, ' ');
        text_quoted(out, findings[i].id, 0x7f);
        if (options->details && findings[i].detail.size != 0) {
            cx_buf_add_z(out, ": ");
            text_quoted(out, findings[i].detail, 0x7f);
        }
        cx_buf_add_byte(out, '\n');
    }
}

static void text_branch(cx_buf *out, const cx_lattice_branch *branch,
                        const cx_lattice_text_options *options)
{
    cx_buf_add_z(out, "Branch '");
    text_quoted(out, branch->agent, '\'');
    cx_buf_add_z(out, "': ");
    text_colour(out, options, !branch->valid ? RED : branch->tainted ? YELLOW : GREEN);
    cx_buf_add_z(out, branch->valid ? "VALID" : "INVALID");
    if (branch->tainted)
        cx_buf_add_z(out, " (tainted)");
    text_colour(out, options, PLAIN);
    cx_buf_add_byte(out, '\n');
    text_findings(out, branch->errors, branch->error_count, options, RED);
    text_findings(out, branch->warnings, branch->warning_count, options, YELLOW);
}

static void text_outcome(cx_buf *out, bool good, const cx_lattice_text_options *options)
{
    text_colour(out, options, good ? GREEN : RED);
    cx_buf_add_z(out, good ? "[SUCCESS]" : "[FAILURE]");
    text_colour(out, options, PLAIN);
    cx_buf_add_byte(out, ' ');
}

static void text_paths(cx_buf *out, const cx_lattice *lattice, cx_str name, const cx_node *path,
                       size_t count)
{
    cx_buf_add_z(out, "Agent ");
    text_quoted(out, name, 0x7f);
    cx_buf_add_z(out, " sub-path extensions: [");
    for (size_t i = 0; i < count; i++) {
        char scratch[16];
        cx_buf_add_z(out, i == 0 ? "'" : ", '");
        text_quoted(out, cx_lattice_label(lattice, path[i], scratch), '\'');
        cx_buf_add_byte(out, '\'');
    }
    cx_buf_add_z(out, "]\n");
}

static cx_status text_compare(cx_buf *out, const cx_lattice *lattice, const cx_str *agents,
                              bool holds, const cx_lattice_text_options *options, cx_err *err)
{
    cx_node heads[2];
    for (int i = 0; i < 2; i++) {
        uint32_t index = cx_lattice_find_agent(lattice, agents[i]);
        heads[i] = index == NO_AGENT ? CX_NODE_NONE : cx_lattice_head_of(lattice, index);
        if (heads[i] == CX_NODE_NONE)
            return cx_fail(err, CX_E_NOT_FOUND, "no agent '%.*s' in this lattice",
                           (int)(agents[i].size > 100 ? 100 : agents[i].size), agents[i].data);
    }
    cx_arena arena;
    lineage_paths paths;
    cx_arena_init(&arena, lattice->alloc, 0);
    cx_buf_add_z(out, "--- COMPARING AGENTS: ");
    text_quoted(out, agents[0], 0x7f);
    cx_buf_add_z(out, " vs ");
    text_quoted(out, agents[1], 0x7f);
    cx_buf_add_z(out, " ---\nLowest Common Ancestor (LCA): ");
    cx_status status = cx_lattice_lineage(lattice, heads[0], heads[1], &arena, &paths, err);
    if (!cx_failed(status)) {
        char scratch[16];
        text_quoted(out,
                    paths.lca == CX_NODE_NONE ? CX_STR("None")
                                              : cx_lattice_label(lattice, paths.lca, scratch),
                    0x7f);
        cx_buf_add_byte(out, '\n');
        for (int i = 0; i < 2; i++)
            text_paths(out, lattice, agents[i], paths.path[i], paths.count[i]);
    } else if (status.code == CX_E_FORMAT) {
        /* The lattice does not hold, and that is told; only this part has no answer. */
        cx_buf_add_z(out, "unknown: the parents form a cycle\n");
        status = CX_SUCCESS;
    }
    if (!cx_failed(status)) {
        text_outcome(out, holds, options);
        cx_buf_add_z(out, holds ? "Multi-Agent CFD Verification Complete. 100% congruent.\n"
                                : "Multi-Agent CFD Verification Complete. Not congruent.\n");
    }
    cx_arena_done(&arena);
    return status;
}

static const char *held_name(bool value)
{
    return value ? "held" : "FAILED";
}

static void text_evidence(cx_buf *out, const cx_lattice_evidence *e)
{
    cx_buf_printf(out,
                  "Evidence: hash=%s monotonic=%s lineage=%s containment=%s structure=%s seals=%s "
                  "ids=%s time=%s anchor=%s\n",
                  held_name(e->hash), held_name(e->monotonic), held_name(e->lineage),
                  held_name(e->containment), held_name(e->structure), seals_name(e->seals),
                  e->content_ids ? "content" : "labels", e->time_ordered ? "ordered" : "regressed",
                  anchored_name(e->anchor));
}

cx_status cx_lattice_report_text(cx_buf *out, const cx_lattice *lattice,
                                 const cx_lattice_report *report,
                                 const cx_lattice_text_options *options, cx_err *err)
{
    bool holds = report->errors.count == 0;
    bool root_bad = false;
    for (size_t i = 0; i < report->errors.count; i++)
        root_bad |= report->errors.items[i].code == CX_E_ROOT;
    cx_buf_add_z(out, "=== CORTEX FORENSIC DEBUGGER (CFD) v2.0.0 ===\n");
    cx_buf_printf(out, "Loaded %zu trace nodes from DATG.\n", lattice->nodes.count);
    for (size_t i = 0; i < report->branch_count; i++)
        text_branch(out, &report->branches[i], options);
    if (root_bad)
        cx_buf_add_z(out, "Anchor: INVALID\n");
    text_outcome(out, holds, options);
    if (holds)
        cx_buf_add_z(out, "All branches verified successfully.\n");
    else
        cx_buf_printf(out, "%zu of %zu branches failed verification%s\n", report->invalid_count,
                      report->branch_count,
                      root_bad ? "; the external anchor does not match." : ".");
    if (options->compare != NULL)
        CX_TRY(text_compare(out, lattice, options->compare, holds, options, err));
    text_evidence(out, &report->evidence);
    return cx_buf_check(out, err);
}
