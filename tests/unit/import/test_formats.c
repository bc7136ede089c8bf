/*
 * The files of tests/vectors/imports, one of each form of each format: NAME.EXT, or NAME+FORM.EXT.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/import/util.h"

#define FOLDER CX_TEST_ROOT "/vectors/imports/"

static const struct {
    const char *file, *format;
    unsigned records, calls; /* records that call something */
} files[] = {
    {"gemini-cli.json", "gemini-cli", 4, 1},
    {"gemini-cli.jsonl", "gemini-cli", 7, 2},
    {"qwen-code.jsonl", "qwen-code", 4, 1},
    {"messages+openai.json", "messages", 5, 1},
    {"messages+anthropic.json", "messages", 4, 1},
    {"messages+responses.json", "messages", 5, 1},
    {"messages+lines.jsonl", "messages", 4, 1},
    {"messages+conversations.jsonl", "messages", 5, 1},
    {"messages+calls.jsonl", "messages", 2, 1},
    {"messages+speakers.jsonl", "messages", 2, 0},
    {"messages+sharegpt.json", "messages", 2, 0},
    {"opencode.json", "opencode", 2, 1},
    {"opencode.jsonl", "opencode", 4, 1},
    {"cline+shown.json", "cline", 9, 2},
    {"cline+api.json", "cline", 3, 1},
    {"copilot-cli.jsonl", "copilot-cli", 7, 1},
    {"cursor+transcript.jsonl", "cursor", 3, 1},
    {"cursor+stream.jsonl", "cursor", 6, 1},
    {"droid.jsonl", "droid", 5, 1},
    {"aider+history.md", "aider", 7, 0},
    {"aider+input.txt", "aider", 2, 0},
    {"openhands.json", "openhands", 6, 1},
    {"openhands+events.jsonl", "openhands", 4, 1},
    {"openhands+runs.jsonl", "openhands", 5, 1},
    {"mini-swe-agent.json", "mini-swe-agent", 7, 2},
    {"atif.json", "atif", 3, 1},
    {"autogen.json", "autogen", 5, 1},
    {"autogen+ag2.json", "autogen", 4, 1},
    {"who-when+trajectory.json", "who-when", 2, 0},
    {"langsmith.json", "langsmith", 3, 1},
    {"phoenix.json", "phoenix", 2, 1},
    {"phoenix.jsonl", "phoenix", 3, 1},
    {"jaeger.json", "jaeger", 3, 1},
    {"chatgpt.json", "chatgpt", 6, 1},
};

static bool read_vector(const char *name, cx_buf *out)
{
    char path[512];
    cx_err err = {0};
    (void)snprintf(path, sizeof path, FOLDER "%s", name);
    cx_buf_init(out, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path, 1u << 20, out, &err), &err);
    return out->size != 0;
}

/* Each is found as itself alone: no other format is even nearly as sure. */
CX_TEST(formats_are_told_apart)
{
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        cx_buf text;
        REQUIRE(read_vector(files[i].file, &text));
        const char *found = cx_import_detect(cx_buf_bytes(&text));
        if (found == NULL || strcmp(found, files[i].format) != 0)
            cx_test_fail(__FILE__, __LINE__, "%s is found as %s", files[i].file,
                         found == NULL ? "nothing" : found);
        cx_import_guessed guessed;
        cx_import_guess(cx_buf_bytes(&text), &guessed);
        if (guessed.is_lattice)
            cx_test_fail(__FILE__, __LINE__, "%s is taken for a lattice", files[i].file);
        cx_buf_done(&text);
    }
}

/* Nothing is lost or unknown, and what was said is readable. */
CX_TEST(formats_are_imported_whole)
{
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        imported in;
        cx_buf text;
        unsigned calls = 0, said = 0;
        REQUIRE(read_vector(files[i].file, &text));
        cx_bytes bytes = cx_buf_bytes(&text);
        import_bytes(&in, "auto", &bytes, 1, NULL);
        if (in.summary.total.records != files[i].records || in.summary.total.bad != 0 ||
            issue_count(&in, CX_ISSUE_UNKNOWN_TYPE) != 0)
            cx_test_fail(__FILE__, __LINE__, "%s: %llu records, %llu bad, %llu unknown",
                         files[i].file, (unsigned long long)in.summary.total.records,
                         (unsigned long long)in.summary.total.bad,
                         (unsigned long long)issue_count(&in, CX_ISSUE_UNKNOWN_TYPE));
        for (size_t n = 1; n < in.count; n++) {
            calls += cx_str_is(node_text(&in, n, "/event/kind"), "act");
            said += node_get(&in, n, "/state_delta/memory/messages") != NULL;
        }
        if (calls != files[i].calls || said == 0)
            cx_test_fail(__FILE__, __LINE__, "%s: %u calls, %u messages", files[i].file, calls,
                         said);
        imported_done(&in);
        cx_buf_done(&text);
    }
}

/* Cut anywhere it is an import with bad records, or a clear error. */
CX_TEST(formats_stand_cut_files)
{
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        cx_buf text;
        REQUIRE(read_vector(files[i].file, &text));
        for (size_t size = 0; size < text.size; size += 1 + text.size / 40) {
            imported in;
            cx_bytes bytes = cx_bytes_from(text.data, size);
            import_bytes(&in, files[i].format, &bytes, 1, NULL);
            if (cx_failed(in.status))
                CHECK(in.status.code != CX_E_NOMEM && in.err.message[0] != 0 &&
                      in.err.tag[0] == 'U');
            imported_done(&in);
        }
        cx_buf_done(&text);
    }
}

/* Any format stands any other's files. */
CX_TEST(formats_stand_each_others_files)
{
    const cx_import_format_info *info;
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        cx_buf text;
        REQUIRE(read_vector(files[i].file, &text));
        for (size_t f = 0; (info = cx_import_format_at(f)) != NULL; f++) {
            imported in;
            cx_bytes bytes = cx_buf_bytes(&text);
            import_bytes(&in, info->name, &bytes, 1, NULL);
            if (cx_failed(in.status))
                CHECK(in.status.code != CX_E_NOMEM && in.err.message[0] != 0 &&
                      in.err.tag[0] == 'U');
            imported_done(&in);
        }
        cx_buf_done(&text);
    }
}
