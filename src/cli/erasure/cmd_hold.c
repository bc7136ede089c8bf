/*
 * cmd_hold.c - `cortex hold add`, `list`, `release`: what must not be erased while a hold lasts.
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "trace/api.h"

static int64_t wall_ns(const cx_cli_ledger *l)
{
    return (int64_t)l->cli->io->wall_ns(l->cli->io);
}

static cx_str author(const cx_cli_ledger *l)
{
    const char *by = cx_cli_value(l->args, "by");
    return by == NULL ? l->actor : cx_str_z(by);
}

static cx_status need_reason(const cx_cli_ledger *l, cx_err *err)
{
    const char *reason = cx_cli_value(l->args, "reason");
    if (reason == NULL || reason[0] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "expected --reason TEXT: the reason is recorded, and shown to those who "
                       "try to erase");
    return CX_SUCCESS;
}

/* --- add -------------------------------------------------------------------------------------- */

static cx_status prepare_hold(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_hold *hold = arg;
    const char *agent = cx_cli_value(l->args, "agent"), *run = cx_cli_value(l->args, "run");
    const char *subject = cx_cli_value(l->args, "subject");
    const char *from = cx_cli_value(l->args, "from"), *to = cx_cli_value(l->args, "to");
    CX_TRY(need_reason(l, err));
    *hold = (cx_hold){.from_ns = INT64_MIN,
                      .to_ns = INT64_MAX,
                      .reason = cx_str_z(cx_cli_value(l->args, "reason")),
                      .by = author(l)};
    if (agent != NULL)
        hold->agent = cx_str_z(agent);
    if (subject != NULL)
        hold->subject = cx_str_z(subject);
    if (run != NULL)
        hold->run = cx_str_z(run);
    if (from != NULL)
        CX_TRY(cx_cli_parse_moment(l->cli, "option --from", from, &hold->from_ns, err));
    if (to != NULL)
        CX_TRY(cx_cli_parse_moment(l->cli, "option --to", to, &hold->to_ns, err));
    if (agent == NULL && subject == NULL && run == NULL && from == NULL && to == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "expected what to hold: --agent, --subject, --run, --from or --to; all that "
                       "are given must be true of an entry");
    return CX_SUCCESS;
}

/* A hold may be about what is yet to come, but a mistyped name should be seen at once. */
static void warn_of_unknown_agent(cx_cli_ledger *l, const cx_hold *hold)
{
    cx_actor_info info;
    if (hold->agent.data != NULL &&
        cx_home_actor(l->home, hold->agent, &info, NULL).code == CX_E_NOT_FOUND)
        cx_cli_complain("note: nothing is recorded of an agent '%.*s' yet", (int)hold->agent.size,
                        hold->agent.data);
}

static cx_status add_hold_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    const cx_hold *hold = arg;
    uint64_t seq = 0;
    CX_TRY(cx_hold_add(l->home, hold, wall_ns(l), &seq, err));
    warn_of_unknown_agent(l, hold);
    if (!l->json) {
        cx_buf_printf(&l->out,
                      "hold %llu: what it covers cannot be erased until "
                      "'cortex hold release %llu'\n",
                      (unsigned long long)seq, (unsigned long long)seq);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_uint(&json, "hold", seq);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_hold_add(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, false, prepare_hold, add_hold_job};
    cx_hold hold;
    return cx_cli_run_job(cli, args, &job, &hold);
}

#define OPTION_BY CX_CLI_OPT("by", 0, CX_CLI_TEXT, "NAME", "Who decides; default the actor.")
#define OPTION_REASON CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT", "Why; needed, and recorded.")

static const cx_cli_option add_options[] = {
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "NAME", "The journal of this agent."),
    CX_CLI_OPT("subject", 0, CX_CLI_TEXT, "TEXT",
               "What names this person or thing: an address, an id, a DID; as a whole word, case "
               "counts."),
    CX_CLI_OPT("run", 0, CX_CLI_TEXT, "ID", "What names this run."),
    CX_CLI_OPT("from", 0, CX_CLI_TEXT, "TIME", "What was recorded at this time or later."),
    CX_CLI_OPT("to", 0, CX_CLI_TEXT, "TIME", "What was recorded before this time."),
    OPTION_REASON,
    OPTION_BY,
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_hold_add = {
    .name = "hold add",
    .purpose = "keep records from being erased",
    .about = "Records a legal hold. What it covers is erased neither by 'cortex erase' nor by "
             "retention, until the hold is released: they name the hold and exit with 4. Of "
             "several conditions all must be true. TIME is a time, a date, or an age such as 30d.",
    .options = add_options,
    .option_count = CX_COUNT_OF(add_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex hold add --agent claims-bot --from 2026-01-01 --reason 'case 12/26'",
    .run = run_hold_add,
};

/* --- list ------------------------------------------------------------------------------------- */

static void put_time(cx_json_list *json, const char *name, bool given, int64_t ns)
{
    char text[CX_TRACE_TIME_SIZE];
    if (!given) {
        cx_json_put_null(json, name);
        return;
    }
    cx_trace_time_write(ns, text);
    cx_str copy = cx_arena_copy_str(json->arena, cx_str_z(text));
    cx_json_put_maybe(json, name, copy);
}

static void put_hold(cx_json_list *list, cx_arena *arena, const cx_hold *hold)
{
    cx_json_list json = cx_json_list_begin(arena);
    cx_json_put_maybe(&json, "agent", hold->agent);
    cx_json_put_maybe(&json, "by", hold->by);
    put_time(&json, "created_at", true, hold->created_ns);
    put_time(&json, "from", hold->from_ns != INT64_MIN, hold->from_ns);
    cx_json_put_uint(&json, "hold", hold->seq);
    cx_json_put_maybe(&json, "reason", hold->reason);
    put_time(&json, "released_at", hold->released, hold->released_ns);
    cx_json_put_maybe(&json, "released_by", hold->released_by);
    cx_json_put_maybe(&json, "release_reason", hold->release_reason);
    cx_json_put_maybe(&json, "run", hold->run);
    cx_json_put_maybe(&json, "subject", hold->subject);
    put_time(&json, "to", hold->to_ns != INT64_MAX, hold->to_ns);
    cx_json_put_bool(&json, "unreadable", hold->unreadable);
    cx_json_add_object(list, &json);
}

static void print_condition(cx_buf *out, const char *name, cx_str value)
{
    if (value.data == NULL)
        return;
    cx_buf_printf(out, "  %s ", name);
    cx_shown_add(out, value);
}

static void print_time(cx_buf *out, const char *name, bool given, int64_t ns)
{
    char text[CX_TRACE_TIME_SIZE];
    if (!given)
        return;
    cx_trace_time_write(ns, text);
    print_condition(out, name, cx_str_z(text));
}

static void print_hold(cx_buf *out, const cx_hold *hold)
{
    cx_buf_printf(out, "hold %llu", (unsigned long long)hold->seq);
    print_condition(out, "agent", hold->agent);
    print_condition(out, "subject", hold->subject);
    print_condition(out, "run", hold->run);
    print_time(out, "from", hold->from_ns != INT64_MIN, hold->from_ns);
    print_time(out, "to", hold->to_ns != INT64_MAX, hold->to_ns);
    if (hold->unreadable)
        cx_buf_add_z(out, hold->released ? "  (its terms were erased)"
                                         : "  (its terms cannot be read: it holds everything)");
    cx_buf_add_z(out, "\n ");
    print_time(out, "since", true, hold->created_ns);
    print_condition(out, "by", hold->by);
    print_condition(out, "reason", hold->reason);
    if (hold->released) {
        cx_buf_add_z(out, "\n ");
        print_time(out, "released", true, hold->released_ns);
        print_condition(out, "by", hold->released_by);
        print_condition(out, "reason", hold->release_reason);
    }
    cx_buf_add_byte(out, '\n');
}

static cx_status list_holds_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_holds holds;
    (void)arg;
    CX_TRY(cx_holds_load(l->home, cx_cli_has(l->args, "all"), l->arena, &holds, err));
    if (!l->json) {
        for (size_t i = 0; i < holds.count; i++)
            print_hold(&l->out, &holds.items[i]);
        if (holds.count == 0)
            cx_buf_add_z(&l->out, "no hold is active\n");
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena), list = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < holds.count; i++)
        put_hold(&list, l->arena, &holds.items[i]);
    cx_json_put_array(&json, "holds", &list);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_hold_list(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, list_holds_job};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_option list_options[] = {CX_CLI_OPT_FLAG("all", 0, "Also released ones."),
                                             CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                             CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_hold_list = {
    .name = "hold list",
    .purpose = "list legal holds",
    .about = "Lists the holds that are active: what each covers, since when, by whom and why.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex hold list",
    .run = run_hold_list,
};

/* --- release ---------------------------------------------------------------------------------- */

static cx_status prepare_release(cx_cli_ledger *l, void *arg, cx_err *err)
{
    CX_TRY(need_reason(l, err));
    return cx_cli_parse_number("HOLD", l->args->operands[0], arg, err);
}

static cx_status release_hold_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    uint64_t seq = *(uint64_t *)arg;
    CX_TRY(cx_hold_release(l->home, seq, cx_str_z(cx_cli_value(l->args, "reason")), author(l),
                           wall_ns(l), err));
    if (!l->json) {
        cx_buf_printf(&l->out, "released hold %llu; nothing is erased by that\n",
                      (unsigned long long)seq);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_uint(&json, "released", seq);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_hold_release(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, false, prepare_release, release_hold_job};
    uint64_t seq = 0;
    return cx_cli_run_job(cli, args, &job, &seq);
}

static const cx_cli_operand release_operands[] = {{"HOLD", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option release_options[] = {OPTION_REASON, OPTION_BY, CX_CLI_OPTIONS_LEDGER,
                                                CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_hold_release = {
    .name = "hold release",
    .purpose = "end a legal hold",
    .about = "Records that the hold ended, by whom and why. What it kept can be erased from now "
             "on; releasing erases nothing.",
    .operands = release_operands,
    .operand_count = CX_COUNT_OF(release_operands),
    .options = release_options,
    .option_count = CX_COUNT_OF(release_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex hold release 0 --reason 'case 12/26 is closed'",
    .run = run_hold_release,
};
