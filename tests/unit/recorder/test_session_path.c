/* What the paths of session files say. */
#include "recorder/session_path.h"
#include "tests/test.h"

typedef struct path_case {
    const char *path;
    cx_session_shape shape;
    const char *stem, *group, *message;
} path_case;

CX_TEST(paths_say_what_a_session_is_called_and_made_of)
{
    static const path_case cases[] = {
        {"/h/.claude/projects/x/ab-12.jsonl", CX_SESSION_LINES, "ab-12", "", ""},
        {"s.jsonl", CX_SESSION_LINES, "s", "", ""},
        {"events.jsonl", CX_SESSION_LINES, "", "", ""},
        {"/h/.copilot/session-state/p1/events.jsonl", CX_SESSION_LINES, "p1", "", ""},
        {"/h/.cursor/projects/a/agent-transcripts/c/c.jsonl", CX_SESSION_LINES, "c", "", ""},
        {"/h/.cursor/projects/a/other/c.jsonl", CX_SESSION_NO_FILE, "c", "", ""},
        {"/h/p/.aider.chat.history.md", CX_SESSION_LINES, "p", "", ""},
        {"/h/p/README.md", CX_SESSION_NO_FILE, "README.md", "", ""},
        {"/h/.gemini/tmp/1/chats/session-1.json", CX_SESSION_DOCUMENT, "session-1", "", ""},
        {"/h/.gemini/tmp/1/logs.json", CX_SESSION_NO_FILE, "logs", "", ""},
        {"/h/tasks/17/ui_messages.json", CX_SESSION_DOCUMENT, "17", "", ""},
        {"/h/tasks/17/api_conversation_history.json", CX_SESSION_NO_FILE,
         "api_conversation_history", "", ""},
        {"/h/.openhands/sessions/c1/events/10.json", CX_SESSION_EVENT, "c1",
         "/h/.openhands/sessions/c1", ""},
        {"/h/.openhands/sessions/c1/events/.tmp.json", CX_SESSION_NO_FILE, ".tmp.json", "", ""},
        {"/h/opencode/storage/message/ses_1/msg_1.json", CX_SESSION_MESSAGE, "ses_1",
         "/h/opencode/storage/message/ses_1", ""},
        {"/h/opencode/storage/part/msg_1/prt_1.json", CX_SESSION_PART, "prt_1",
         "/h/opencode/storage", "msg_1"},
        {"/h/storage/part/msg_1/prt_1.json", CX_SESSION_NO_FILE, "prt_1", "", ""},
        {".json", CX_SESSION_NO_FILE, ".json", "", ""},
        {"", CX_SESSION_NO_FILE, "", "", ""},
        {"/", CX_SESSION_NO_FILE, "", "", ""},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_session_path path;
        cx_session_path_read(cx_str_z(cases[i].path), &path);
        CHECK_INT(path.shape, cases[i].shape);
        CHECK_STR(path.stem, cases[i].stem);
        CHECK_STR(path.group, cases[i].group);
        CHECK_STR(path.message, cases[i].message);
    }
}

CX_TEST(a_document_becomes_one_line)
{
    static const char *const cases[][2] = {
        {"{ \"a\" : [ 1.50 , \"x y\\\" \\\\\" ] ,\r\n\t\"b\\n\": null }\n",
         "{\"a\":[1.50,\"x y\\\" \\\\\"],\"b\\n\":null}"},
        {"", ""},
        {"\"open\n text", "\"open text"}, /* no JSON: still one line */
        {"\\\n\"", "\\\""},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_buf out;
        cx_buf_init(&out, cx_alloc_default());
        cx_session_add_line(cx_str_bytes(cx_str_z(cases[i][0])), &out);
        cx_str line = cx_buf_str(&out);
        CHECK_STR(line, cases[i][1]);
        cx_buf_done(&out);
    }
}
