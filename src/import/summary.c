/*
 * summary.c - the result of an import, for programs and for users.
 */
#include "import/core.h"

#include "crypto/api.h"

static const char *const issue_names[] = {
    "bad_time",       "dangling_parent", "duplicate_id",       "no_time",
    "open_call",      "orphan_result",   "parent_after_child", "parent_cycle",
    "time_regressed", "truncated",       "unknown_type"};
_Static_assert(CX_COUNT_OF(issue_names) == CX_ISSUE_COUNT, "a name an issue");

/* What each counts, for a reader who does not know docs/formats/imports.md. */
static const char *const issue_words[] = {
    "times that cannot be read; that of the record before counts",
    "records whose parent is in none of the files",
    "records with the id of an earlier one",
    "records without a time; that of the record before counts",
    "tool calls without an answer",
    "answers to no tool call",
    "records whose parent comes later",
    "records that are their own ancestors",
    "records earlier than the one before them",
    "records that the program that wrote them cut",
    "records of a kind that this version does not know; kept as they are"};
_Static_assert(CX_COUNT_OF(issue_words) == CX_ISSUE_COUNT, "words an issue");

const char *cx_import_issue_name(cx_import_issue issue)
{
    CX_ASSERT((unsigned)issue < CX_ISSUE_COUNT);
    return issue_names[issue];
}

/* --- collecting ---------------------------------------------------------------------------- */

static cx_import_file_summary *collect_files(cx_import_core *core, cx_import_summary *out)
{
    size_t count = core->sources.count;
    cx_import_file_summary *files = CX_ARENA_ARRAY(&out->arena, cx_import_file_summary, count);
    for (size_t f = 0; files != NULL && f < count; f++) {
        const source *from = &core->sources.items[f];
        files[f] = (cx_import_file_summary){
            .bytes = from->size,
            .sha256 = from->sha256,
            .records = from->entry_count - from->extra,
            .nodes = (uint64_t)from->entry_count + 1,
            .bad = from->bad,
            .first_bad_line = from->first_bad_line,
            .first_bad = from->first_bad,
            .blank_lines = from->blank_lines,
        };
        memcpy(files[f].issues, from->issues, sizeof files[f].issues);
    }
    return files;
}

/* Unanswered calls; the first of them with their ids. */
static bool collect_calls(cx_import_core *core, cx_import_summary *out,
                          cx_import_file_summary *files)
{
    cx_import_open_call *stored =
        CX_ARENA_ARRAY(&out->arena, cx_import_open_call, CX_IMPORT_OPEN_CALLS_LISTED);
    for (size_t i = 0; stored != NULL && i < core->calls.count; i++) {
        const call *c = &core->calls.items[i];
        if (core->slots.items[c->slot].closed)
            continue;
        files[c->file].issues[CX_ISSUE_OPEN_CALL]++;
        if (out->open_call_count == CX_IMPORT_OPEN_CALLS_LISTED)
            continue;
        cx_str id = cx_arena_copy_str(&out->arena, c->call_id);
        cx_str tool = cx_arena_copy_str(&out->arena, c->tool);
        if (id.data == NULL || tool.data == NULL)
            return false;
        stored[out->open_call_count++] = (cx_import_open_call){c->file, id, tool};
    }
    out->open_calls = stored;
    return stored != NULL;
}

/* In order of first appearance in the output; names that no agent has in the end are left out. */
static bool collect_agents(cx_import_core *core, cx_import_summary *out)
{
    size_t count = core->agents.count;
    cx_import_agent *agents = CX_ARENA_ARRAY(&out->arena, cx_import_agent, count);
    bool *seen = CX_ARENA_ARRAY(&out->arena, bool, count);
    if (agents == NULL || seen == NULL)
        return false;
    memset(seen, 0, count * sizeof *seen);
    /* The importer's file nodes come first. */
    for (size_t i = 0; i <= core->entries.count; i++) {
        uint32_t at = i == 0 ? 0 : core->entries.items[core->order[i - 1]].agent;
        if (seen[at] || core->agents.items[at].nodes == 0)
            continue;
        seen[at] = true;
        cx_str name = cx_arena_copy_str(&out->arena, core->agents.items[at].name);
        if (name.data == NULL)
            return false;
        agents[out->agent_count++] = (cx_import_agent){name, core->agents.items[at].nodes};
    }
    out->agents = agents;
    return true;
}

cx_status cx_import_summarize(cx_import_core *core, cx_import_summary *out, cx_err *err)
{
    cx_import_summary made = {.format = core->format->info.name, .filled = true};
    cx_arena_init(&made.arena, core->options.alloc, 0);
    cx_import_file_summary *files = collect_files(core, &made);
    if (files == NULL || !collect_calls(core, &made, files) || !collect_agents(core, &made)) {
        cx_arena_done(&made.arena);
        return cx_fail_nomem(err);
    }
    made.files = files;
    made.file_count = core->sources.count;
    for (size_t f = 0; f < made.file_count; f++) {
        made.total.bytes += files[f].bytes;
        made.total.records += files[f].records;
        made.total.nodes += files[f].nodes;
        made.total.bad += files[f].bad;
        made.total.blank_lines += files[f].blank_lines;
        for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
            made.total.issues[i] += files[f].issues[i];
    }
    *out = made;
    return CX_SUCCESS;
}

void cx_import_summary_done(cx_import_summary *summary)
{
    if (summary != NULL && summary->filled)
        cx_arena_done(&summary->arena);
    if (summary != NULL)
        *summary = (cx_import_summary){0};
}

/* --- for programs -------------------------------------------------------------------------- */

static void add_number(cx_buf *out, const char *name, uint64_t value)
{
    cx_buf_printf(out, "\"%s\":", name);
    cx_buf_add_u64(out, value);
}

static void add_issues(cx_buf *out, const uint64_t *issues)
{
    bool first = true;
    cx_buf_add_z(out, "\"issues\":{");
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++) {
        if (issues[i] == 0)
            continue;
        if (!first)
            cx_buf_add_byte(out, ',');
        add_number(out, issue_names[i], issues[i]);
        first = false;
    }
    cx_buf_add_byte(out, '}');
}

static void add_agents(cx_buf *out, const cx_import_summary *summary)
{
    cx_buf_add_z(out, "\"agents\":[");
    for (size_t i = 0; i < summary->agent_count; i++) {
        cx_buf_add_z(out, i == 0 ? "{\"name\":" : ",{\"name\":");
        cx_json_write_str(out, summary->agents[i].name, CX_JSON_PY_COMPACT);
        cx_buf_add_byte(out, ',');
        add_number(out, "nodes", summary->agents[i].nodes);
        cx_buf_add_byte(out, '}');
    }
    cx_buf_add_byte(out, ']');
}

static void add_files(cx_buf *out, const cx_import_summary *summary)
{
    cx_buf_add_z(out, "\"files\":[");
    for (size_t f = 0; f < summary->file_count; f++) {
        const cx_import_file_summary *file = &summary->files[f];
        cx_buf_add_z(out, f == 0 ? "{" : ",{");
        add_number(out, "bad", file->bad);
        cx_buf_add_byte(out, ',');
        add_number(out, "blank_lines", file->blank_lines);
        cx_buf_add_byte(out, ',');
        add_number(out, "bytes", file->bytes);
        cx_buf_add_byte(out, ',');
        add_issues(out, file->issues);
        cx_buf_add_byte(out, ',');
        add_number(out, "nodes", file->nodes);
        cx_buf_add_byte(out, ',');
        add_number(out, "records", file->records);
        cx_buf_add_z(out, ",\"sha256\":\"");
        cx_hex_add(out, cx_bytes_from(file->sha256.bytes, sizeof file->sha256.bytes));
        cx_buf_add_z(out, "\"}");
    }
    cx_buf_add_byte(out, ']');
}

static void add_open_calls(cx_buf *out, const cx_import_summary *summary)
{
    cx_buf_add_z(out, "\"open_calls\":[");
    for (size_t i = 0; i < summary->open_call_count; i++) {
        const cx_import_open_call *open = &summary->open_calls[i];
        cx_buf_add_z(out, i == 0 ? "{\"call_id\":" : ",{\"call_id\":");
        cx_json_write_str(out, open->call_id, CX_JSON_PY_COMPACT);
        cx_buf_add_byte(out, ',');
        add_number(out, "file", open->file);
        cx_buf_add_z(out, ",\"tool\":");
        cx_json_write_str(out, open->tool, CX_JSON_PY_COMPACT);
        cx_buf_add_byte(out, '}');
    }
    cx_buf_add_byte(out, ']');
}

cx_status cx_import_summary_json(cx_buf *out, const cx_import_summary *summary, cx_err *err)
{
    cx_buf_add_byte(out, '{');
    add_agents(out, summary);
    cx_buf_add_byte(out, ',');
    add_number(out, "bad", summary->total.bad);
    cx_buf_add_byte(out, ',');
    add_number(out, "blank_lines", summary->total.blank_lines);
    cx_buf_add_byte(out, ',');
    add_number(out, "bytes", summary->total.bytes);
    cx_buf_add_byte(out, ',');
    add_files(out, summary);
    cx_buf_printf(out, ",\"format\":\"%s\",", summary->format);
    add_issues(out, summary->total.issues);
    cx_buf_add_byte(out, ',');
    add_number(out, "nodes", summary->total.nodes);
    cx_buf_add_byte(out, ',');
    add_open_calls(out, summary);
    cx_buf_add_byte(out, ',');
    add_number(out, "records", summary->total.records);
    cx_buf_add_z(out, "}\n");
    return cx_buf_check(out, err);
}

/* --- for people ---------------------------------------------------------------------------- */

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void add_issue_lines(cx_buf *out, const cx_import_summary *summary)
{
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++) {
        uint64_t count = summary->total.issues[i];
        if (count == 0)
            continue;
        cx_buf_printf(out, "  %s: %llu", issue_names[i], (unsigned long long)count);
        for (size_t k = 0; i == CX_ISSUE_OPEN_CALL && k < summary->open_call_count && k < 5; k++) {
            cx_buf_add_z(out, k == 0 ? " (" : ", ");
            cx_json_write_str(out, summary->open_calls[k].call_id, CX_JSON_PY_COMPACT);
        }
        if (i == CX_ISSUE_OPEN_CALL && summary->open_call_count != 0)
            cx_buf_add_z(out, count > 5 ? ", ...)" : ")");
        cx_buf_printf(out, "  %s\n", issue_words[i]);
    }
}

/* What a code of docs/formats/imports.md says, for those that files of agents have. */
static const char *words_of(const char *code)
{
    if (strcmp(code, "U_SYNTAX") == 0)
        return ", no complete JSON";
    if (strcmp(code, "U_UTF8") == 0)
        return ", not UTF-8";
    return "";
}

/* How many, and where the first one is. */
static void add_bad(cx_buf *out, const cx_import_summary *summary)
{
    const cx_import_file_summary *file = summary->files;
    size_t at = 0;
    if (summary->total.bad == 0)
        return;
    while (at < summary->file_count && file[at].bad == 0)
        at++;
    cx_buf_printf(out, "  bad records: %llu", (unsigned long long)summary->total.bad);
    if (at < summary->file_count && file[at].first_bad_line != 0) {
        cx_buf_printf(out, ", %s line %llu", summary->total.bad == 1 ? "in" : "the first in",
                      (unsigned long long)file[at].first_bad_line);
        if (summary->file_count > 1)
            cx_buf_printf(out, " of file %zu", at + 1);
        if (file[at].first_bad != NULL)
            cx_buf_printf(out, ": %s%s", file[at].first_bad, words_of(file[at].first_bad));
    }
    cx_buf_add_byte(out, '\n');
}

cx_status cx_import_summary_text(cx_buf *out, const cx_import_summary *summary, cx_err *err)
{
    const cx_import_file_summary *all = &summary->total;
    cx_buf_printf(out, "%s: %llu record%s, %llu node%s from %zu file%s, %zu agent%s\n",
                  summary->format, (unsigned long long)all->records, plural(all->records),
                  (unsigned long long)all->nodes, plural(all->nodes), summary->file_count,
                  plural(summary->file_count), summary->agent_count, plural(summary->agent_count));
    uint64_t extra = all->nodes - all->records - summary->file_count;
    if (extra != 0)
        cx_buf_printf(out, "  steps split into call and result: %llu\n", (unsigned long long)extra);
    add_bad(out, summary);
    if (all->blank_lines != 0)
        cx_buf_printf(out, "  blank lines: %llu\n", (unsigned long long)all->blank_lines);
    add_issue_lines(out, summary);
    return cx_buf_check(out, err);
}
