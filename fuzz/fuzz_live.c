/*
 * fuzz_live.c - any bytes as what an agent gives its hook, and as a shell's line.
 *
 * AGENT '\n' PAYLOAD: what is read has a session, a tool and an object; what is not allowed has a
 * reason; a "no" is one line on standard error and nothing on standard output.  Any input is a
 * line, too: what is taken apart reads back the same from its plain words.  Nothing is started;
 * paths are looked at below a folder that does not exist.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "live/answer.h"
#include "live/api.h"
#include "live/shell.h"

static cx_arena arena;
static cx_err err;

/* --- lines ------------------------------------------------------------------------------------ */

static bool is_plain(const cx_shell_command *command)
{
    for (size_t i = 0; i < command->count; i++)
        if (command->words[i].opaque || command->words[i].glob)
            return false;
    return command->count != 0;
}

/* Words written so that a shell reads them as they are, taken apart again. */
static void check_words(const cx_shell_command *command)
{
    cx_shell_line again;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    for (size_t i = 0; i < command->count; i++)
        cx_shell_add_word(&text, command->words[i].text);
    FUZZ_CHECK(!cx_failed(cx_buf_check(&text, &err)));
    if (text.size <= CX_SHELL_BYTES_MAX) {
        FUZZ_CHECK(!cx_failed(cx_shell_split(cx_buf_str(&text), &arena, &again, &err)));
        if (again.why == NULL) {
            FUZZ_CHECK(again.count == 1 && again.commands[0].count == command->count);
            FUZZ_CHECK(!again.commands[0].assigns && again.commands[0].redirect_count == 0);
            for (size_t i = 0; i < command->count; i++) {
                const cx_shell_word *word = &again.commands[0].words[i];
                FUZZ_CHECK(!word->opaque && !word->glob);
                FUZZ_CHECK(cx_str_eq(word->text, command->words[i].text));
            }
        }
    }
    cx_buf_done(&text);
}

static void check_line(cx_str text)
{
    cx_shell_line line;
    FUZZ_CHECK(!cx_failed(cx_shell_split(text, &arena, &line, &err)));
    FUZZ_CHECK(line.count <= CX_SHELL_COMMANDS_MAX);
    FUZZ_CHECK(line.why == NULL || line.offset <= text.size);
    for (size_t i = 0; i < line.count; i++) {
        const cx_shell_command *command = &line.commands[i];
        FUZZ_CHECK(command->count <= CX_SHELL_WORDS_MAX);
        for (size_t k = 0; k < command->count; k++)
            FUZZ_CHECK(command->words[k].text.data != NULL);
        if (line.why == NULL && is_plain(command))
            check_words(command);
    }
}

/* --- payloads --------------------------------------------------------------------------------- */

static bool is_decided(const cx_live_call *call)
{
    return call->event == CX_LIVE_BEFORE || call->event == CX_LIVE_PERMISSION;
}

static void check_answer(const cx_live_call *call, const cx_live_decision *decision,
                         cx_live_answer_kind kind, bool over_http)
{
    cx_live_outcome outcome = {
        .answer = kind, .session = call->session, .event = call->event, .decision = *decision};
    FUZZ_CHECK(!cx_failed(cx_live_answer(call, over_http, &arena, &outcome, &err)));
    FUZZ_CHECK(outcome.exit_code == 0 || outcome.exit_code == 2);
    for (size_t i = 0; i < outcome.complaint.size; i++)
        FUZZ_CHECK((unsigned char)outcome.complaint.data[i] >= 0x20);
    if (outcome.exit_code == 2)
        FUZZ_CHECK(outcome.out.size == 0 && outcome.complaint.size != 0);
    if (outcome.out.size != 0)
        FUZZ_CHECK(memchr(outcome.out.data, '\n', outcome.out.size) ==
                   outcome.out.data + outcome.out.size - 1);
    if (kind == CX_LIVE_DENY && outcome.exit_code == 0) /* where a person is being asked */
        FUZZ_CHECK((over_http || call->event == CX_LIVE_PERMISSION) && outcome.out.size != 0);
    if (over_http)
        FUZZ_CHECK(outcome.exit_code == 0 && outcome.complaint.size == 0);
}

static void check_decision(const cx_live_call *call)
{
    static const char text[] =
        "{\"version\":\"v1\",\"network\":\"on-request\",\"network_hosts\":[\"a.org\"],"
        "\"read_deny\":[\"~/.ssh\",\".env\"],\"allow\":[[\"make\",\"x\"]],"
        "\"tools\":{\"allow\":[\"good\"],\"deny\":[\"bad\"]},"
        "\"rewrite\":[{\"from\":[\"ls\"],\"to\":[\"ls\",\"-l\"]}]}";
    cx_live_policy policy;
    cx_live_decision decision;
    FUZZ_CHECK(!cx_failed(cx_live_policy_read(cx_str_z(text), "live.json", &arena, &policy, &err)));
    policy.root = CX_STR("/nowhere/repo");
    policy.user_home = CX_STR("/nowhere/user");
    policy.data_directory = CX_STR("/nowhere/home");
    policy.program = CX_STR("/nowhere/cortex");
    cx_status status = cx_live_decide(&policy, call, &arena, &decision, &err);
    if (cx_failed(status))
        return;
    FUZZ_CHECK((decision.verdict == CX_LIVE_ALLOW) == (decision.why.size == 0));
    FUZZ_CHECK(decision.rule != NULL && decision.effect_count <= CX_LIVE_EFFECTS_MAX + 1);
    for (size_t i = 0; i < decision.effect_count; i++)
        FUZZ_CHECK(decision.effects[i].verdict <= decision.verdict);
    for (unsigned i = 0; i < 2; i++) {
        check_answer(call, &decision, CX_LIVE_PASS, i == 1);
        check_answer(call, &decision, CX_LIVE_DENY, i == 1);
        check_answer(call, &decision, CX_LIVE_ASKED, i == 1);
        if (decision.rewrite.data != NULL && cx_live_answer_can_rewrite(call))
            check_answer(call, &decision, CX_LIVE_REWRITTEN, i == 1);
    }
}

static void check_payload(cx_live_agent agent, cx_str text)
{
    cx_live_call call;
    cx_str actor;
    if (cx_failed(cx_live_call_read(agent, text, &arena, &call, &err))) {
        FUZZ_CHECK(err.message[0] != 0);
        return;
    }
    FUZZ_CHECK(call.session.size != 0 && call.event_name.size != 0);
    FUZZ_CHECK(call.input == NULL || call.input->type == CX_JSON_OBJECT);
    FUZZ_CHECK(!cx_failed(cx_live_actor(agent, call.session, &arena, &actor, &err)));
    FUZZ_CHECK(actor.size != 0 && actor.size <= 256);
    if (!is_decided(&call))
        return;
    FUZZ_CHECK(call.tool.size != 0);
    check_decision(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_str text = {(const char *)data, size};
    const char *end = size == 0 ? NULL : memchr(text.data, '\n', size);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (end != NULL) {
        cx_live_agent agent =
            cx_live_agent_parse(cx_str_from(text.data, (size_t)(end - text.data)));
        if (agent != CX_LIVE_AGENT_COUNT)
            check_payload(agent, cx_str_from(end + 1, size - (size_t)(end - text.data) - 1));
    }
    if (size <= CX_SHELL_BYTES_MAX + 1)
        check_line(text);
    cx_arena_done(&arena);
    return 0;
}
