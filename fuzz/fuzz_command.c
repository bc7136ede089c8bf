/*
 * fuzz_command.c - any bytes as an action and a command: what is lexed reads back the same, what is
 * refused says why, and no word of an allowed command is something that a shell or another program
 * would act on.  Also as an envelope and an approval.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "approval/approval.h"
#include "command/command.h"

static cx_arena arena;
static cx_err err;

static void quote(cx_buf *out, const cx_run_argv *argv)
{
    for (size_t i = 0; i < argv->count; i++) {
        cx_buf_add_z(out, i == 0 ? "\"" : " \"");
        for (size_t k = 0; k < argv->items[i].size; k++) {
            char c = argv->items[i].data[k];
            FUZZ_CHECK(c == '\t' || ((unsigned char)c >= 0x20 && c != 0x7F));
            if (strchr("\"\\$`", c) != NULL)
                cx_buf_add_byte(out, '\\');
            cx_buf_add_byte(out, (uint8_t)c);
        }
        cx_buf_add_byte(out, '"');
    }
}

static void check_lexer(cx_str text)
{
    cx_run_lexed lexed, again;
    cx_buf quoted;
    FUZZ_CHECK(!cx_failed(cx_run_lex(text, &arena, &lexed, &err)));
    if (lexed.rule != NULL) {
        FUZZ_CHECK(lexed.why != NULL && lexed.offset <= text.size);
        return;
    }
    cx_buf_init(&quoted, cx_alloc_default());
    quote(&quoted, &lexed.argv);
    if (quoted.size <= CX_RUN_COMMAND_BYTES_MAX) {
        FUZZ_CHECK(!cx_failed(cx_run_lex(cx_buf_str(&quoted), &arena, &again, &err)));
        FUZZ_CHECK(again.rule == NULL && again.argv.count == lexed.argv.count);
        for (size_t i = 0; i < again.argv.count; i++)
            FUZZ_CHECK(cx_str_eq(again.argv.items[i], lexed.argv.items[i]));
    }
    cx_buf_done(&quoted);
}

static void check_gate(cx_str action, cx_str text)
{
    static const cx_str words[] = {CX_STR("pytest"), CX_STR("git"), CX_STR("bash"),
                                   CX_STR("scripts/"), CX_STR("scripts/test.sh")};
    static const char *const networks[] = {"deny", "on-request", "allow"};
    cx_run_argv allow[4];
    const size_t starts[] = {0, 1, 2, 4}, counts[] = {1, 1, 2, 1};
    cx_run_command_verdict verdict;
    bool trivial;
    for (size_t i = 0; i < 4; i++)
        FUZZ_CHECK(
            !cx_failed(cx_run_argv_make(words + starts[i], counts[i], &arena, &allow[i], &err)));
    const cx_run_command_rules rules = {true, allow, 4, &action, 1};
    for (size_t i = 0; i < 3; i++) {
        const cx_run_command_options options = {
            .rules = &rules, .network_policy = cx_str_z(networks[i]), .lint = true};
        FUZZ_CHECK(!cx_failed(cx_run_command_check(&options, text, &arena, &verdict, &err)));
        FUZZ_CHECK(verdict.rule != NULL && verdict.allow == (verdict.reason.size == 0));
        if (!verdict.allow)
            continue;
        FUZZ_CHECK(verdict.lexed && verdict.argv.count != 0 && strcmp(verdict.rule, "C16") == 0);
        FUZZ_CHECK(verdict.argv.items[0].data[0] != '/');
        for (size_t k = 1; k < verdict.argv.count; k++)
            FUZZ_CHECK(verdict.argv.items[k].size == 0 || verdict.argv.items[k].data[0] != '/' ||
                       strstr(verdict.argv.words[k], "://") != NULL);
    }
    FUZZ_CHECK(!cx_failed(cx_run_command_trivial(text, &arena, &trivial, &err)));
}

static void check_documents(cx_str text)
{
    cx_run_dsse envelope;
    cx_run_approval approval;
    cx_buf out;
    if (!cx_failed(cx_run_dsse_read(text, &arena, &envelope, &err)))
        FUZZ_CHECK(envelope.signature_count != 0);
    if (cx_failed(cx_run_approval_decode(cx_str_bytes(text), &arena, &approval, &err)))
        return;
    cx_buf_init(&out, cx_alloc_default());
    FUZZ_CHECK(!cx_failed(cx_run_approval_encode(&approval, &arena, &out, &err)));
    FUZZ_CHECK(!cx_failed(cx_run_approval_decode(cx_buf_bytes(&out), &arena, &approval, &err)));
    cx_buf_done(&out);
}

/* ACTION '\n' COMMAND; the whole of it is also taken for a document. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_str text = {(const char *)data, size}, action = {"", 0}, command = text;
    const char *end = size == 0 ? NULL : memchr(text.data, '\n', size);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (end != NULL) {
        action.data = text.data;
        action.size = (size_t)(end - text.data);
        command = cx_str_from(end + 1, size - action.size - 1);
    }
    check_lexer(command);
    check_gate(action, command);
    check_documents(text);
    cx_arena_done(&arena);
    return 0;
}
