/*
 * cmd_session.c - `cortex session list|show|limit|approve|deny`: sessions of coding agents that
 * hooks record and limit (docs/formats/live.md).
 *
 *   Q1  An approval needs a person: it is asked for on a terminal, never taken from a pipe.
 */
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "cli/live/agent_file.h"
#include "cli/links.h"
#include "cli/live/live.h"
#include "contract/api.h"
#include "os/api.h"
#include "rules/api.h"

/* --- printing --------------------------------------------------------------------------------- */

void cx_cli_add_session_line(cx_buf *out, const cx_live_session *session)
{
    char time[28];
    cx_run_time_text(session->latest_ns, time);
    cx_shown_add(out, session->agent);
    cx_buf_add_z(out, "  ");
    cx_shown_add(out, session->session);
    cx_buf_printf(out, "  %s%s  %.19sZ  %llu call%s, %llu denied, %llu asked  ",
                  cx_live_mode_name(session->mode), session->ended ? ", ended" : "", time,
                  (unsigned long long)session->calls, session->calls == 1 ? "" : "s",
                  (unsigned long long)session->denied, (unsigned long long)session->asked);
    cx_shown_add(out, session->cwd);
}

static void put_time(cx_json_list *object, const char *name, int64_t ns)
{
    char text[28];
    cx_run_time_text(ns, text);
    cx_str kept = cx_arena_copy_str(object->arena, cx_str_z(text));
    if (kept.data == NULL)
        object->failed = true;
    else
        cx_json_put_str(object, name, kept);
}

/* --- list ------------------------------------------------------------------------------------- */

static cx_status list_sessions(cx_cli_ledger *l, void *state, cx_err *err)
{
    const cx_live_session *list;
    size_t count;
    (void)state;
    CX_TRY(cx_live_sessions(l->home, l->arena, &list, &count, err));
    if (!l->json) {
        for (size_t i = 0; i < count; i++) {
            cx_cli_add_session_line(&l->out, &list[i]);
            cx_buf_add_z(&l->out, "\n");
        }
        if (count == 0)
            cx_buf_add_z(&l->out, "no sessions yet: 'cortex hook install claude' begins with it\n");
        return CX_SUCCESS;
    }
    cx_json_list root = cx_json_list_begin(l->arena), array = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < count; i++) {
        cx_json_list object = cx_json_list_begin(l->arena);
        cx_live_session_put(&object, &list[i]);
        cx_json_add_object(&array, &object);
    }
    cx_json_put_array(&root, "sessions", &array);
    return cx_cli_end_json(&root, &l->out, err);
}

static int run_session_list(cx_cli *cli, const cx_cli_args *args)
{
    const cx_cli_job job = {.access = CX_CLI_READ, .work = list_sessions};
    return cx_cli_run_job(cli, args, &job, NULL);
}

/* --- show ------------------------------------------------------------------------------------- */

#define SHOWN_ENTRIES 200

/* What a call is about; the file that it reads or writes links there. */
static void print_effect(cx_buf *out, const cx_json *effect, const cx_json *call,
                         const cx_cli_links *links)
{
    const cx_json *input =
        call == NULL ? NULL : cx_json_get_typed(call, CX_STR("input"), CX_JSON_OBJECT);
    const cx_json *offset = input == NULL ? NULL : cx_json_get(input, CX_STR("offset"));
    cx_str kind = CX_JSON_GET_STR(effect, "kind"), text = CX_JSON_GET_STR(effect, "text");
    uint64_t line = 0;
    if (input == NULL || (!cx_str_is(kind, "read") && !cx_str_is(kind, "write"))) {
        cx_shown_add(out, text);
        return;
    }
    if (offset == NULL || !cx_json_uint64(offset, &line))
        line = 0;
    cx_cli_links_add(out, links, CX_JSON_GET_STR(input, "file_path"), line, text);
}

static void print_decision(cx_buf *out, const cx_json *payload, const cx_cli_links *links)
{
    const cx_json *call = cx_json_get(payload, CX_STR("call"));
    const cx_json *effects = cx_json_get_typed(payload, CX_STR("effects"), CX_JSON_ARRAY);
    cx_str verdict = CX_JSON_GET_STR(payload, "verdict"), would = CX_JSON_GET_STR(payload, "would");
    cx_shown_add(out, verdict);
    if (!cx_str_eq(verdict, would)) {
        cx_buf_add_z(out, " (would ");
        cx_shown_add(out, would);
        cx_buf_add_z(out, ")");
    }
    cx_buf_add_z(out, " ");
    cx_shown_add(out, CX_JSON_GET_STR(payload, "rule"));
    cx_buf_add_z(out, "  ");
    cx_shown_add(out, CX_JSON_GET_STR(call, "tool"));
    for (uint32_t i = 0; effects != NULL && i < effects->count && i < 3; i++) {
        cx_buf_add_z(out, i == 0 ? ": " : "; ");
        print_effect(out, &effects->items[i], call, links);
    }
    cx_str why = CX_JSON_GET_STR(payload, "reason");
    if (why.size != 0) {
        cx_buf_add_z(out, "  -- ");
        cx_shown_add(out, why);
    }
}

/* `array` NULL: as text. */
static cx_status print_entry(cx_cli_ledger *l, cx_str actor, uint64_t seq, cx_json_list *array,
                             const cx_cli_links *links, cx_err *err)
{
    cx_entry_view entry;
    cx_json payload;
    char time[28];
    cx_err ignored;
    CX_TRY(cx_home_entry(l->home, actor, seq, l->arena, &entry, err));
    bool problem = cx_kinds_is(entry.entry.kind, CX_KIND_GATEWAY_PROBLEM);
    if ((!problem && !cx_str_starts(entry.entry.kind, CX_STR("live."))) || entry.payload_erased ||
        cx_failed(cx_run_json_read(cx_bytes_str(entry.payload), 0, l->arena, &payload, &ignored)))
        return CX_SUCCESS;
    cx_run_time_text(entry.entry.created_at_ns, time);
    if (array != NULL) {
        cx_json_list object = cx_json_list_begin(l->arena);
        cx_json_put_uint(&object, "seq", seq);
        cx_json_put_str(&object, "kind", entry.entry.kind);
        put_time(&object, "time", entry.entry.created_at_ns);
        cx_json_put(&object, "payload", payload);
        cx_json_add_object(array, &object);
        return CX_SUCCESS;
    }
    cx_buf_printf(&l->out, "%6llu  %.19sZ  ", (unsigned long long)seq, time);
    if (cx_kinds_is(entry.entry.kind, CX_KIND_LIVE_DECISION)) {
        print_decision(&l->out, &payload, links);
    } else if (problem) {
        cx_buf_add_z(&l->out, "problem from the ");
        cx_shown_add(&l->out, CX_JSON_GET_STR(&payload, "from"));
        cx_buf_add_z(&l->out, ": ");
        cx_shown_add(&l->out, CX_JSON_GET_STR(&payload, "problem"));
        cx_buf_add_z(&l->out, ": ");
        cx_shown_add(&l->out, CX_JSON_GET_STR(&payload, "detail"));
    } else {
        cx_shown_add(&l->out, cx_str_from(entry.entry.kind.data + 5, entry.entry.kind.size - 5));
        cx_buf_add_z(&l->out, " ");
        const cx_json *call = cx_json_get(&payload, CX_STR("call"));
        cx_str event = CX_JSON_GET_STR(&payload, "event");
        cx_shown_add(&l->out, call != NULL         ? CX_JSON_GET_STR(call, "tool")
                              : event.data != NULL ? event
                                                   : CX_STR(""));
        cx_str outcome = CX_JSON_GET_STR(&payload, "outcome");
        if (outcome.size != 0) {
            cx_buf_add_z(&l->out, " ");
            cx_shown_add(&l->out, outcome);
        }
    }
    cx_buf_add_z(&l->out, "\n");
    return CX_SUCCESS;
}

static cx_status show_session(cx_cli_ledger *l, void *state, cx_err *err)
{
    cx_live_session session;
    cx_actor_info info;
    const cx_live_asked *asked;
    size_t asked_count;
    const char *name = l->args->operand_count != 0 ? l->args->operands[0] : "";
    (void)state;
    CX_TRY(cx_live_session_find(l->home, cx_str_z(name), l->arena, &session, err));
    CX_TRY(cx_home_actor(l->home, session.actor, &info, err));
    CX_TRY(cx_live_session_asked(l->home, session.actor, l->arena, &asked, &asked_count, err));
    uint64_t first = info.entry_count > SHOWN_ENTRIES && !cx_cli_has(l->args, "all")
                         ? info.entry_count - SHOWN_ENTRIES
                         : 0;
    if (l->json) {
        cx_json_list root = cx_json_list_begin(l->arena), array = cx_json_list_begin(l->arena),
                     waiting = cx_json_list_begin(l->arena);
        cx_live_session_put(&root, &session);
        for (uint64_t seq = first; seq < info.entry_count; seq++)
            CX_TRY(print_entry(l, session.actor, seq, &array, NULL, err));
        for (size_t i = 0; i < asked_count; i++) {
            cx_json_list object = cx_json_list_begin(l->arena);
            cx_json_put_digest(&object, "input_sha256", &asked[i].input_sha256);
            cx_json_put_str(&object, "tool", asked[i].tool);
            cx_json_put_str(&object, "text", asked[i].text);
            cx_json_put_str(&object, "why", asked[i].why);
            cx_json_put_uint(&object, "seq", asked[i].seq);
            cx_json_add_object(&waiting, &object);
        }
        cx_json_put_array(&root, "entries", &array);
        cx_json_put_uint(&root, "first_entry", first);
        cx_json_put_array(&root, "waiting", &waiting);
        return cx_cli_end_json(&root, &l->out, err);
    }
    cx_cli_links links;
    cx_str folder = cx_arena_copy_str(l->arena, session.cwd);
    cx_cli_links_begin(&links, l->args, folder.size == 0 ? NULL : folder.data);
    cx_cli_add_session_line(&l->out, &session);
    cx_buf_add_z(&l->out, "\n");
    if (first != 0)
        cx_buf_printf(&l->out, "(%llu older entries: --all)\n", (unsigned long long)first);
    for (uint64_t seq = first; seq < info.entry_count; seq++)
        CX_TRY(print_entry(l, session.actor, seq, NULL, &links, err));
    for (size_t i = 0; i < asked_count; i++) {
        char code[65] = "";
        cx_hex_encode(cx_bytes_from(asked[i].input_sha256.bytes, 32), code);
        cx_buf_printf(&l->out, "waits for a person: %.12s  ", code);
        cx_shown_add(&l->out, asked[i].tool);
        cx_buf_add_z(&l->out, ": ");
        cx_shown_add(&l->out, asked[i].text);
        cx_buf_add_z(&l->out, "\n");
    }
    return CX_SUCCESS;
}

static int run_session_show(cx_cli *cli, const cx_cli_args *args)
{
    const cx_cli_job job = {.access = CX_CLI_READ, .work = show_session};
    return cx_cli_run_job(cli, args, &job, NULL);
}

/* --- limit ------------------------------------------------------------------------------------ */

typedef struct limiting {
    cx_live_limit limit;
} limiting;

static cx_status list_of(cx_cli_ledger *l, const char *option, cx_str_list *out, cx_err *err)
{
    const cx_str *items;
    size_t count;
    CX_TRY(cx_cli_all_values(l->cli, l->args, option, &items, &count, err));
    *out = (cx_str_list){items, count};
    return CX_SUCCESS;
}

static cx_status read_limit(cx_cli_ledger *l, void *state, cx_err *err)
{
    limiting *s = state;
    const char *contract = cx_cli_value(l->args, "contract"), *mode = cx_cli_value(l->args, "mode");
    const char *network = cx_cli_value(l->args, "network");
    bool own = cx_cli_has(l->args, "path") || cx_cli_has(l->args, "network") || mode != NULL ||
               cx_cli_has(l->args, "no-network") || cx_cli_has(l->args, "deny-tool") ||
               cx_cli_has(l->args, "forbid") || cx_cli_has(l->args, "deny-unlisted");
    if ((contract == NULL) == !own)
        return cx_fail(
            err, CX_E_USAGE,
            "expected --contract FILE, or some of --path, --no-network, --network, --mode, "
            "--deny-tool, --forbid, --deny-unlisted");
    if (contract != NULL) {
        cx_bytes bytes;
        CX_TRY(cx_cli_read_file(l->cli, contract, &bytes, err));
        return cx_live_limit_of_contract(cx_bytes_str(bytes), l->arena, &s->limit, err);
    }
    s->limit.has_paths = cx_cli_has(l->args, "path");
    if (s->limit.has_paths)
        CX_TRY(list_of(l, "path", &s->limit.paths, err));
    if (cx_cli_has(l->args, "deny-tool"))
        CX_TRY(list_of(l, "deny-tool", &s->limit.tools_deny, err));
    if (cx_cli_has(l->args, "forbid"))
        CX_TRY(list_of(l, "forbid", &s->limit.forbidden, err));
    if (cx_cli_has(l->args, "no-network"))
        s->limit.network = CX_STR("deny");
    else if (network != NULL)
        s->limit.network = cx_str_z(network);
    s->limit.has_mode = mode != NULL;
    if (mode != NULL && !cx_live_mode_parse(cx_str_z(mode), &s->limit.mode))
        return cx_fail(err, CX_E_USAGE, "option --mode: expected observe, ask or enforce");
    s->limit.deny_unlisted = cx_cli_has(l->args, "deny-unlisted");
    return CX_SUCCESS;
}

static cx_str user_name(void)
{
    const char *name = getenv("LOGNAME");
    if (name == NULL || name[0] == 0)
        name = getenv("USER");
    return name == NULL || name[0] == 0 ? CX_STR("local") : cx_str_z(name);
}

static cx_status limit_session(cx_cli_ledger *l, void *state, cx_err *err)
{
    limiting *s = state;
    cx_live_session session;
    cx_live_policy policy;
    uint64_t seq;
    const char *name = l->args->operand_count != 0 ? l->args->operands[0] : "";
    CX_TRY(cx_live_session_find(l->home, cx_str_z(name), l->arena, &session, err));
    CX_TRY(cx_live_session_limit(l->home, session.actor, &s->limit, user_name(), &policy, l->arena,
                                 &seq, err));
    if (l->json) {
        cx_json_list root = cx_json_list_begin(l->arena);
        cx_json_put_str(&root, "actor", session.actor);
        cx_json_put_uint(&root, "seq", seq);
        cx_json_put_z(&root, "mode", cx_live_mode_name(policy.mode));
        cx_json_put_str(&root, "network", policy.network);
        return cx_cli_end_json(&root, &l->out, err);
    }
    cx_buf_add_z(&l->out, "limited from the next call on: ");
    cx_shown_add(&l->out, session.session);
    cx_buf_printf(&l->out, " (%zu limit%s of paths, network %.*s)\n", policy.write_count,
                  policy.write_count == 1 ? "" : "s", (int)policy.network.size,
                  policy.network.data);
    return CX_SUCCESS;
}

static int run_session_limit(cx_cli *cli, const cx_cli_args *args)
{
    limiting state = {.limit = {.has_mode = false}};
    const cx_cli_job job = {.access = CX_CLI_WRITE, .prepare = read_limit, .work = limit_session};
    return cx_cli_run_job(cli, args, &job, &state);
}

/* --- approve, deny ---------------------------------------------------------------------------- */

typedef struct answering {
    bool allow;
    cx_live_asked asked; /* what was chosen */
    cx_str actor;
} answering;

static cx_status choose_asked(const cx_live_asked *list, size_t count, const char *code,
                              cx_live_asked *out, cx_err *err)
{
    size_t matches = 0;
    for (size_t i = 0; i < count; i++) {
        char hex[65] = "";
        cx_hex_encode(cx_bytes_from(list[i].input_sha256.bytes, 32), hex);
        if (code != NULL && strncmp(hex, code, strlen(code)) != 0)
            continue;
        *out = list[i];
        matches++;
    }
    if (count == 0)
        return cx_fail(err, CX_E_NOT_FOUND, "nothing waits for a person in this session");
    if (matches == 0)
        return cx_fail(err, CX_E_NOT_FOUND,
                       "nothing with the code %s waits: 'cortex session show' lists what does",
                       code);
    if (matches > 1)
        return cx_fail(err, CX_E_USAGE,
                       "%zu calls wait: name one by its code, as 'cortex session show' lists them",
                       matches);
    return CX_SUCCESS;
}

/* Q1: the terminal itself is asked, so that neither a pipe nor "yes" answers. */
static cx_status ask_about_call(const answering *a, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, a->allow ? "Allow " : "Refuse ");
    cx_shown_add(&text, a->asked.tool);
    cx_buf_add_z(&text, "\n  ");
    cx_shown_add(&text, a->asked.text);
    cx_buf_add_z(&text, "\n  ");
    cx_shown_add(&text, a->asked.why);
    cx_buf_add_z(&text, "\nWrite \"yes\": ");
    cx_status status = cx_cli_ask_person(
        &text,
        "an approval is given by a person on a terminal, or in the page; there is no terminal here",
        err);
    cx_buf_done(&text);
    return status;
}

static cx_status answer_asked(cx_cli_ledger *l, void *state, cx_err *err)
{
    answering *a = state;
    cx_live_session session;
    const cx_live_asked *list;
    size_t count;
    uint64_t seq;
    const char *reason = cx_cli_value(l->args, "reason");
    const char *name = l->args->operand_count != 0 ? l->args->operands[0] : "";
    CX_TRY(cx_live_session_find(l->home, cx_str_z(name), l->arena, &session, err));
    CX_TRY(cx_live_session_asked(l->home, session.actor, l->arena, &list, &count, err));
    CX_TRY(choose_asked(list, count, l->args->operand_count > 1 ? l->args->operands[1] : NULL,
                        &a->asked, err));
    if (a->allow)
        CX_TRY(ask_about_call(a, err));
    const cx_live_approval approval = {.tool = a->asked.tool,
                                       .input_sha256 = a->asked.input_sha256,
                                       .allow = a->allow,
                                       .whole_session = cx_cli_has(l->args, "whole-session"),
                                       .by = user_name(),
                                       .reason = cx_str_z(reason == NULL ? "" : reason)};
    CX_TRY(cx_live_session_approve(l->home, session.actor, &approval, &seq, err));
    if (l->json) {
        cx_json_list root = cx_json_list_begin(l->arena);
        cx_json_put_str(&root, "actor", session.actor);
        cx_json_put_uint(&root, "seq", seq);
        cx_json_put_bool(&root, "allow", a->allow);
        return cx_cli_end_json(&root, &l->out, err);
    }
    cx_buf_add_z(&l->out, a->allow ? "approved" : "refused");
    cx_buf_add_z(&l->out, approval.whole_session ? " for the whole session: " : ", once: ");
    cx_shown_add(&l->out, a->asked.text);
    cx_buf_add_z(&l->out, "\n");
    return CX_SUCCESS;
}

static int run_answer(cx_cli *cli, const cx_cli_args *args, bool allow)
{
    answering state = {.allow = allow};
    const cx_cli_job job = {.access = CX_CLI_WRITE, .work = answer_asked};
    return cx_cli_run_job(cli, args, &job, &state);
}

static int run_session_approve(cx_cli *cli, const cx_cli_args *args)
{
    return run_answer(cli, args, true);
}

static int run_session_deny(cx_cli *cli, const cx_cli_args *args)
{
    return run_answer(cli, args, false);
}

/* --- commands --------------------------------------------------------------------------------- */

static const cx_cli_operand one_session[] = {{"SESSION", CX_CLI_TEXT, NULL, true, false}};
static const cx_cli_operand one_call[] = {{"SESSION", CX_CLI_TEXT, NULL, true, false},
                                          {"CODE", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option list_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                             CX_CLI_OPTIONS_COMMON};
static const cx_cli_option show_options[] = {
    CX_CLI_OPT_FLAG("all", 0, "Every entry; default the newest 200."), CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_LINKS, CX_CLI_OPTIONS_COMMON};
static const cx_cli_option limit_options[] = {
    CX_CLI_OPT_MANY("path", 0, CX_CLI_TEXT, "PATH",
                    "Write only below these, as in contracts: src/, docs/guide.md."),
    CX_CLI_OPT_FLAG("no-network", 0, "No network from now on."),
    CX_CLI_OPT("network", 0, CX_CLI_CHOICE, "deny|on-request|allow", "At most this much of it."),
    CX_CLI_OPT_MANY("deny-tool", 0, CX_CLI_TEXT, "NAME", "No calls of this tool or MCP server."),
    CX_CLI_OPT_MANY("forbid", 0, CX_CLI_TEXT, "ACTION",
                    "No command with these words, as in forbidden_actions."),
    CX_CLI_OPT("mode", 0, CX_CLI_CHOICE, "observe|ask|enforce", "A stricter mode."),
    CX_CLI_OPT_FLAG("deny-unlisted", 0, "Refuse what nothing allows, without asking."),
    CX_CLI_OPT("contract", 0, CX_CLI_FILE, "FILE", "The limits of this task contract."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};
static const cx_cli_option answer_options[] = {
    CX_CLI_OPT_FLAG("whole-session", 0, "For each call with this input; default once."),
    CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT", "Why; it is part of the record."),
    CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_session_list = {
    .name = "session list",
    .purpose = "list sessions of coding agents that hooks record",
    .about = "The newest first: agent, id, mode, latest entry, calls, folder.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex session list --json",
    .run = run_session_list,
};

const cx_cli_command cx_cli_session_show = {
    .name = "session show",
    .operands = one_session,
    .operand_count = CX_COUNT_OF(one_session),
    .purpose = "show what a session's hooks decided, and what waits",
    .about = "SESSION is an id, its first digits, or the actor; default the newest. Each decision "
             "with its rule; then the calls that wait for a person, with their codes.",
    .options = show_options,
    .option_count = CX_COUNT_OF(show_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex session show",
    .run = run_session_show,
};

const cx_cli_command cx_cli_session_limit = {
    .name = "session limit",
    .operands = one_session,
    .operand_count = CX_COUNT_OF(one_session),
    .purpose = "narrow what a running session may do",
    .about = "In force from the next call on, and recorded. Limits only narrow: what a session "
             "was not allowed before is not allowed after. SESSION: default the newest.",
    .options = limit_options,
    .option_count = CX_COUNT_OF(limit_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex session limit --path src/ --no-network",
    .run = run_session_limit,
};

const cx_cli_command cx_cli_session_approve = {
    .name = "session approve",
    .operands = one_call,
    .operand_count = CX_COUNT_OF(one_call),
    .purpose = "allow a call that a hook asked about",
    .about = "Shows the call on the terminal and asks; the agent's next try with the same input "
             "is then allowed, once. CODE is the beginning of the input's digest, as the hook's "
             "answer and 'cortex session show' name it; default the only call that waits.",
    .options = answer_options,
    .option_count = CX_COUNT_OF(answer_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex session approve\ncortex session approve 3f2a 9c0e1d",
    .run = run_session_approve,
};

const cx_cli_command cx_cli_session_deny = {
    .name = "session deny",
    .operands = one_call,
    .operand_count = CX_COUNT_OF(one_call),
    .purpose = "refuse a call that a hook asked about",
    .about = "The agent's next try with the same input is refused, with the reason.",
    .options = answer_options,
    .option_count = CX_COUNT_OF(answer_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex session deny --reason 'not on a Friday'",
    .run = run_session_deny,
};
