/*
 * test_form.c - a hook's word for a call and a transcript's are compared in one form; what a result
 * says about whether its call ran (docs/formats/live.md §10.2).
 */
#include "live_audit/parts.h"

#include "tests/test.h"

static void form_of(cx_arena *arena, cx_live_agent agent, const char *tool, const char *input,
                    cx_live_audit_form *out)
{
    cx_err err;
    cx_json value;
    CHECK_STATUS(cx_json_parse_text(cx_str_z(input), arena, &value, &err), &err);
    CHECK_STATUS(cx_live_audit_form_of(agent, cx_str_z(tool), (cx_str){NULL, 0}, &value,
                                       CX_STR("/w"), arena, out, &err),
                 &err);
}

/* The transcript's call first, then the hook's. */
typedef struct pair_row {
    cx_live_agent agent;
    const char *tool, *input, *hook_tool, *hook_input;
    bool same_input, same_pair;
} pair_row;

CX_TEST(transcript_and_hook)
{
    static const pair_row rows[] = {
        {CX_LIVE_CLAUDE, "Bash", "{\"b\":1,\"command\":\"ls\"}", "Bash",
         "{\"command\":\"ls\",\"b\":1}", true, true},
        {CX_LIVE_CLAUDE, "Bash", "{\"command\":\"ls\"}", "Bash", "{\"command\":\"ls \"}", false,
         false},
        {CX_LIVE_CLAUDE, "Bash", "{\"command\":\"ls\"}", "Bash", "{\"command\":\"ls\",\"x\":1}",
         false, true},
        {CX_LIVE_CLAUDE, "Read", "{\"file_path\":\"a.c\"}", "Read", "{\"file_path\":\"/w/a.c\"}",
         true, false},
        {CX_LIVE_CLAUDE, "Read", "{\"file_path\":\"../a\"}", "Read", "{\"file_path\":\"/a\"}",
         false, false},
        {CX_LIVE_CODEX, "exec_command", "\"{\\\"cmd\\\":\\\"ls\\\",\\\"tty\\\":false}\"", "Bash",
         "{\"command\":\"ls\"}", true, true},
        {CX_LIVE_CODEX, "shell", "{\"command\":[\"bash\",\"-lc\",\"ls -a\"]}", "Bash",
         "{\"command\":\"ls -a\"}", true, true},
        {CX_LIVE_CODEX, "shell", "{\"command\":[\"ls\",\"-a\"]}", "Bash", "{\"command\":\"ls -a\"}",
         true, true},
        {CX_LIVE_CODEX, "apply_patch", "\"*** Begin Patch\\n*** End Patch\"", "apply_patch",
         "{\"command\":\"*** Begin Patch\\n*** End Patch\"}", true, true},
        {CX_LIVE_GEMINI, "run_shell_command", "{\"command\":\"ls\",\"description\":\"d\"}",
         "run_shell_command", "{\"command\":\"ls\"}", false, true},
        {CX_LIVE_GEMINI, "read_file", "{\"absolute_path\":\"/a\"}", "read_file",
         "{\"absolute_path\":\"/b\"}", false, false},
        {CX_LIVE_COPILOT, "bash", "{\"command\":\"ls\"}", "Bash", "{\"command\":\"ls\"}", true,
         true},
        {CX_LIVE_COPILOT, "view", "{\"path\":\"/a\"}", "View", "{\"path\":\"/a\"}", true, true},
        {CX_LIVE_CURSOR, "read_file", "{\"path\":\"a\"}", "Read", "{\"file_path\":\"/w/a\"}", false,
         true},
        {CX_LIVE_CURSOR, "read_file", "{\"path\":\"a\"}", "Write", "{\"file_path\":\"/w/a\"}",
         false, false},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_arena arena;
        cx_live_audit_form told, hook;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        form_of(&arena, rows[i].agent, rows[i].tool, rows[i].input, &told);
        form_of(&arena, rows[i].agent, rows[i].hook_tool, rows[i].hook_input, &hook);
        bool same =
            cx_digest_eq(&told.input, &hook.input) || cx_digest_eq(&told.absolute, &hook.input);
        if (same != rows[i].same_input || cx_digest_eq(&told.pair, &hook.pair) != rows[i].same_pair)
            cx_test_fail(__FILE__, __LINE__, "row %zu (%s): input %d, pair %d", i, rows[i].tool,
                         same, cx_digest_eq(&told.pair, &hook.pair));
        cx_arena_done(&arena);
    }
}

CX_TEST(results)
{
    static const struct {
        cx_live_agent agent;
        bool ok;
        const char *result, *raw;
        cx_live_audit_outcome outcome;
    } rows[] = {
        {CX_LIVE_CLAUDE, true, "\"PreToolUse: hook error\"", "{}", CX_LIVE_AUDIT_RAN},
        {CX_LIVE_CLAUDE, false, "\"x\"", "{\"toolUseResult\":\"Error: PreToolUse:Bash hook\"}",
         CX_LIVE_AUDIT_REFUSED},
        {CX_LIVE_CLAUDE, false, "[{\"type\":\"text\",\"text\":\"<tool_use_error>x\"}]", "{}",
         CX_LIVE_AUDIT_NEVER},
        {CX_LIVE_CLAUDE, false, "\"Exit code 1\\nPreToolUse: hook error\"", "{}",
         CX_LIVE_AUDIT_RAN},
        {CX_LIVE_CLAUDE, false, "\"ENOENT: PreToolUse: hook error\"", "{}", CX_LIVE_AUDIT_UNCLEAR},
        {CX_LIVE_CLAUDE, false, "\"The user doesn't want to proceed\"", "{}",
         CX_LIVE_AUDIT_REFUSED},
        {CX_LIVE_CODEX, true, "\"Command blocked by PreToolUse hook: x\"", "{}",
         CX_LIVE_AUDIT_REFUSED},
        {CX_LIVE_CODEX, true, "{\"content\":\"unsupported call: x\"}", "{}", CX_LIVE_AUDIT_NEVER},
        {CX_LIVE_CODEX, false, "\"Exit code: 1\\nCommand blocked by\"", "{}", CX_LIVE_AUDIT_RAN},
        {CX_LIVE_GEMINI, false, "\"blocked: cortex: no\"", "{}", CX_LIVE_AUDIT_REFUSED},
        {CX_LIVE_GEMINI, false, "\"no such file\"", "{}", CX_LIVE_AUDIT_UNCLEAR},
        {CX_LIVE_COPILOT, false, "\"x\"", "{\"data\":{\"error\":{\"code\":\"denied\"}}}",
         CX_LIVE_AUDIT_REFUSED},
        {CX_LIVE_CURSOR, false, "{\"rejected\":{}}", "{}", CX_LIVE_AUDIT_REFUSED},
        {CX_LIVE_CURSOR, true, "{\"success\":{}}", "{}", CX_LIVE_AUDIT_RAN},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        cx_arena arena;
        cx_json result, raw;
        cx_err err;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        CHECK_STATUS(cx_json_parse_text(cx_str_z(rows[i].result), &arena, &result, &err), &err);
        CHECK_STATUS(cx_json_parse_text(cx_str_z(rows[i].raw), &arena, &raw, &err), &err);
        cx_live_audit_outcome outcome =
            cx_live_audit_outcome_of(rows[i].agent, &result, rows[i].ok, &raw);
        if (outcome != rows[i].outcome)
            cx_test_fail(__FILE__, __LINE__, "row %zu is %d, expected %d", i, (int)outcome,
                         (int)rows[i].outcome);
        cx_arena_done(&arena);
    }
}

/* When calls ran: spans are merged, single files are not (§10.3). */
CX_TEST(explained)
{
    enum { S = 1000000000 };
    cx_live_audit_journal journal;
    cx_err err;
    static const cx_str written[] = {{"/w/a", 4}};
    static const struct {
        int64_t at_s;
        const char *path;
        bool explained;
    } rows[] = {
        {100, "/w/b", true},  {97, "/w/b", false},   {113, "/w/b", false}, {112, "/w/b", true},
        {200, "/w/a", true},  {200, "/w/ab", false}, {200, "/w", false},   {230, "/w/a", false},
        {300, "/w/b", false}, {999, "/w/b", true},
    };
    cx_live_audit_journal_init(&journal, cx_alloc_default(), 1);
    cx_live_audit_decision made[] = {
        {.at_ns = 100 * (int64_t)S, .until_ns = 105 * (int64_t)S, .commands = 1},
        {.at_ns = 104 * (int64_t)S, .until_ns = 110 * (int64_t)S, .commands = 1},
        {.at_ns = 200 * (int64_t)S,
         .until_ns = 210 * (int64_t)S,
         .writes = written,
         .write_count = 1},
        {.at_ns = 300 * (int64_t)S, .until_ns = INT64_MAX, .commands = 1, .verdict = CX_LIVE_DENY},
        {.at_ns = 400 * (int64_t)S, .until_ns = INT64_MAX, .commands = 1},
    };
    for (size_t i = 0; i < CX_COUNT_OF(made); i++) {
        cx_live_audit_decision *slot = cx_vec_push(&journal.decisions, journal.alloc);
        CHECK(slot != NULL);
        *slot = made[i];
    }
    CHECK_STATUS(cx_live_audit_index_times(&journal, &err), &err);
    CHECK_INT(journal.spans.count, 2);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        bool got =
            cx_live_audit_is_explained(&journal, rows[i].at_s * (int64_t)S, cx_str_z(rows[i].path));
        if (got != rows[i].explained)
            cx_test_fail(__FILE__, __LINE__, "row %zu (%s): %d", i, rows[i].path, got);
    }
    cx_live_audit_journal_done(&journal);
}
