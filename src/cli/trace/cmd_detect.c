/*
 * cmd_detect.c - `cortex detect`, `capacity` and `alert`: analyses of the traces of many agents
 * (trace.md §12).
 */
#include <string.h>

#include "cli/trace/trace.h"

/* --- telling an alert ------------------------------------------------------------------------- */

static void add_evidence(cx_buf *out, const cx_json *traces)
{
    if (traces == NULL || traces->count == 0)
        return;
    cx_buf_printf(out, "  %-12s ", "evidence");
    for (uint32_t i = 0; i < traces->count; i++) {
        if (i != 0)
            cx_buf_add_z(out, ", ");
        cx_shown_add(out, cx_json_text(&traces->items[i]));
    }
    cx_buf_add_byte(out, '\n');
}

static void add_number_line(cx_buf *out, const char *label, const cx_json *alert, const char *name)
{
    const cx_json *value = cx_json_get(alert, cx_str_z(name));
    if (value == NULL || !cx_json_is_number(value))
        return;
    cx_buf_printf(out, "  %-12s ", label);
    cx_cli_add_score(out, value, 0);
    cx_buf_add_byte(out, '\n');
}

static bool is_true(const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_TRUE;
}

static void add_delivery(cx_buf *out, const cx_json *delivery)
{
    cx_str event = CX_JSON_GET_STR(delivery, "event");
    size_t prefix = sizeof "alert." - 1;
    cx_buf_printf(out, "  %-12s ", "sent");
    cx_shown_add(out, cx_str_starts(event, CX_STR("alert."))
                          ? cx_str_from(event.data + prefix, event.size - prefix)
                          : event);
    cx_buf_add_z(out, " to ");
    cx_cli_add_member(out, delivery, "destination");
    cx_buf_add_z(out, ": ");
    cx_cli_add_member(out, delivery, "state");
    if (CX_JSON_GET_STR(delivery, "tried_at").data != NULL) {
        cx_buf_add_z(out, ", attempt ");
        cx_cli_add_member(out, delivery, "attempts");
        cx_buf_add_z(out, " at ");
        cx_cli_add_member(out, delivery, "tried_at");
    }
    if (CX_JSON_GET_STR(delivery, "error").data != NULL) {
        cx_buf_add_z(out, ": ");
        cx_cli_add_member(out, delivery, "error");
    }
    cx_buf_add_byte(out, '\n');
}

static void print_alert(cx_buf *out, const cx_json *alert)
{
    cx_cli_add_member(out, alert, "severity");
    cx_buf_add_z(out, ": ");
    cx_cli_add_member(out, alert, "detection_mechanism");
    if (is_true(alert, "resolved"))
        cx_buf_add_z(out, " (resolved)");
    else if (is_true(alert, "acknowledged"))
        cx_buf_add_z(out, " (acknowledged)");
    cx_buf_add_byte(out, '\n');
    cx_cli_add_line(out, "alert", alert, "alert_id");
    cx_cli_add_line(out, "agent", alert, "agent_id_hash");
    cx_cli_add_line(out, "domain", alert, "domain");
    cx_cli_add_line(out, "metric", alert, "metric");
    add_number_line(out, "value", alert, "value");
    add_number_line(out, "baseline", alert, "baseline");
    add_number_line(out, "deviation", alert, "deviation");
    add_evidence(out, CX_JSON_GET(alert, "evidence_traces"));
    cx_cli_add_line(out, "do", alert, "recommended_action");
    cx_cli_add_line(out, "notes", alert, "notes");
    const cx_json *deliveries = CX_JSON_GET(alert, "deliveries");
    for (uint32_t i = 0; deliveries != NULL && i < deliveries->count; i++)
        add_delivery(out, &deliveries->items[i]);
}

static void print_alerts(cx_buf *out, const cx_json *value)
{
    const cx_json *alerts = CX_JSON_GET(value, "alerts");
    if (alerts == NULL || alerts->count == 0)
        cx_buf_add_z(out, "no alerts\n");
    for (uint32_t i = 0; alerts != NULL && i < alerts->count; i++)
        print_alert(out, &alerts->items[i]);
}

static void print_detection(cx_buf *out, const cx_json *value)
{
    const cx_json *alerts = CX_JSON_GET(value, "alerts");
    print_alerts(out, value);
    if (alerts == NULL || alerts->count == 0)
        return;
    cx_buf_printf(out, "%lu found, of which ", (unsigned long)alerts->count);
    cx_cli_add_member(out, value, "new");
    cx_buf_add_z(out, " newly recorded\n");
}

/* --- detect ----------------------------------------------------------------------------------- */

static cx_status detect_job(cx_cli_traces *t, void *state, cx_err *err)
{
    uint64_t found = 0;
    cx_buf answer;
    (void)state;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = cx_recorder_detect(
        t->recorder, t->index, !cx_cli_has(t->l->args, "no-record"), &answer, &found, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return status;
    }
    t->l->exit_code = found == 0 ? CX_EXIT_HOLDS : CX_EXIT_BROKEN;
    return cx_cli_print_answer(t->l, &answer, print_detection, err);
}

static int run_detect(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job reading = {
        .access = CX_CLI_READ, .wants_index = true, .work = detect_job};
    static const cx_cli_trace_job recording = {
        .access = CX_CLI_WRITE, .wants_index = true, .feeds_index = true, .work = detect_job};
    return cx_cli_run_traces(cli, args, cx_cli_has(args, "no-record") ? &reading : &recording,
                             NULL);
}

static const cx_cli_option detect_options[] = {
    CX_CLI_OPT_FLAG("no-record", 0, "Show the findings without recording them."),
    CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_detect = {
    .name = "detect",
    .purpose = "find drift, divergence and gaps in recorded traces",
    .about = "Runs the five detectors over verified traces. They find: an agent whose scores "
             "differ from the others in its domain; inconsistent decisions with scattered scores; "
             "a broken audit chain; a shifted daily mean; a conscience that overrides more often "
             "than others. Each alert names its inputs and some traces as evidence. It is recorded "
             "once a day, however often this runs; 'cortex alert list' shows what is open.",
    .options = detect_options,
    .option_count = CX_COUNT_OF(detect_options),
    .exits = "0 nothing found\n"
             "1 alerts were found\n" CX_CLI_EXITS_INDEX,
    .example = "cortex detect --json",
    .run = run_detect,
};

/* --- capacity --------------------------------------------------------------------------------- */

static void add_factor(cx_buf *out, const char *label, const cx_json *value, const char *name,
                       const char *what)
{
    const cx_json *number = cx_json_get(value, cx_str_z(name));
    cx_buf_printf(out, "  %-8s ", label);
    cx_cli_add_score(out, number, 7);
    cx_buf_printf(out, "%s\n", what);
}

static void print_capacity(cx_buf *out, const cx_json *value)
{
    const cx_json *n_eff = CX_JSON_GET(value, "n_eff");
    const cx_json *factors = CX_JSON_GET(value, "factors");
    if (factors == NULL)
        factors = value;
    cx_buf_add_z(out, "capacity of ");
    cx_cli_add_member(out, value, "agent");
    cx_buf_add_z(out, ": ");
    cx_cli_add_score(out, CX_JSON_GET(value, "score"), 0);
    if (CX_JSON_GET_STR(value, "category").data != NULL) {
        cx_buf_add_z(out, ", ");
        cx_cli_add_member(out, value, "category");
    }
    cx_buf_add_z(out, " (");
    cx_cli_add_member(out, value, "confidence");
    cx_buf_add_z(out, " confidence, ");
    cx_cli_add_member(out, value, "n");
    cx_buf_add_z(out, " traces)\n");
    add_factor(out, "C", factors, "c", "one agent, few overrides");
    add_factor(out, "I_int", factors, "i_int", "verified, complete, chain not broken");
    add_factor(out, "R", factors, "r", "no drift against the 30 days before");
    add_factor(out, "I_inc", factors, "i_inc", "calibrated, and unsure where it fails");
    add_factor(out, "S", factors, "s", "coherence over time");
    add_factor(out, "fragile", value, "fragility", "fragility, the less the better");
    add_factor(out, "N_eff", n_eff, "participation", "independent dimensions of its scores");
}

/* An agent without any trace is more likely a wrong name. */
static cx_status check_agent(cx_cli_traces *t, const char *agent, cx_err *err)
{
    const cx_str *agents;
    size_t count;
    CX_TRY(cx_index_agents(t->index, t->l->arena, &agents, &count, err));
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(agents[i], agent))
            return CX_SUCCESS;
    return cx_fail_at(
        err, CX_E_NOT_FOUND, "NoAgent", CX_NO_OFFSET,
        "no trace of agent '%.80s' is recorded; expected the agent_id_hash of one, as "
        "'cortex trace query' shows it",
        agent);
}

static cx_status capacity_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_buf answer;
    (void)state;
    CX_TRY(check_agent(t, t->l->args->operands[0], err));
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = cx_recorder_answer_capacity(t->recorder, t->index,
                                                   cx_str_z(t->l->args->operands[0]), &answer, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return status;
    }
    return cx_cli_print_answer(t->l, &answer, print_capacity, err);
}

static int run_capacity(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_READ, .wants_index = true, .work = capacity_job};
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_operand capacity_operands[] = {{"AGENT", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option capacity_options[] = {CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_capacity = {
    .name = "capacity",
    .purpose = "compute the capacity of an agent over the last 30 days",
    .about = "Computes the capacity score of AGENT from its verified traces of the last 30 days, a "
             "product of five factors between 0 and 1, and how many independent dimensions its "
             "scores have (N_eff). With --json all inputs of every factor are reported. Under ten "
             "traces there is no score.",
    .operands = capacity_operands,
    .operand_count = CX_COUNT_OF(capacity_operands),
    .options = capacity_options,
    .option_count = CX_COUNT_OF(capacity_options),
    .exits = "0 answered\n" CX_CLI_EXITS_INDEX,
    .example = "cortex capacity 976dbe5047633d39 --json",
    .run = run_capacity,
};

/* --- alert list ------------------------------------------------------------------------------- */

static cx_status alert_list_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_buf answer;
    uint64_t limit = cx_cli_number(t->l->args, "limit", 100);
    (void)state;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = cx_recorder_answer_alerts(
        t->recorder, t->index, !cx_cli_has(t->l->args, "all"), (uint32_t)limit, &answer, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return status;
    }
    return cx_cli_print_answer(t->l, &answer, print_alerts, err);
}

static int run_alert_list(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_READ, .wants_index = true, .work = alert_list_job};
    uint64_t limit = cx_cli_number(args, "limit", 100);
    if (limit < 1 || limit > 1000)
        return cx_cli_misuse(args, "option --limit: expected 1 to 1000");
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_option list_options[] = {
    CX_CLI_OPT_FLAG("all", 0, "Resolved alerts, too."),
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most N, 1 to 1000; default 100."),
    CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_alert_list = {
    .name = "alert list",
    .purpose = "list open alerts",
    .about =
        "Lists what the detectors found ('cortex detect', and 'cortex serve' on its schedule) and "
        "what came in conflict with stored traces, newest first, and for each where it was sent "
        "and how that went.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = "0 answered\n" CX_CLI_EXITS_INDEX,
    .example = "cortex alert list --all",
    .run = run_alert_list,
};

/* --- alert ack, alert resolve ----------------------------------------------------------------- */

static cx_status mark_alert(cx_cli_traces *t, bool resolved, cx_err *err)
{
    const char *notes = cx_cli_value(t->l->args, "notes");
    cx_str id = cx_str_z(t->l->args->operands[0]);
    const char *word = resolved ? "resolved" : "acknowledged";
    CX_TRY(cx_recorder_alert_mark(t->recorder, id, resolved, t->l->actor,
                                  cx_str_z(notes == NULL ? "" : notes), err));
    if (!t->l->json) {
        cx_buf_printf(&t->l->out, "%s ", word);
        cx_shown_add(&t->l->out, id);
        cx_buf_add_byte(&t->l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(t->l->arena);
    cx_json_put_str(&json, "alert_id", id);
    cx_json_put_str(&json, "status", cx_str_z(word));
    return cx_cli_end_json(&json, &t->l->out, err);
}

static cx_status alert_ack_job(cx_cli_traces *t, void *state, cx_err *err)
{
    (void)state;
    return mark_alert(t, false, err);
}

static cx_status alert_resolve_job(cx_cli_traces *t, void *state, cx_err *err)
{
    (void)state;
    return mark_alert(t, true, err);
}

static int run_alert_ack(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_WRITE, .feeds_index = true, .work = alert_ack_job};
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static int run_alert_resolve(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_WRITE, .feeds_index = true, .work = alert_resolve_job};
    const char *notes = cx_cli_value(args, "notes");
    if (notes == NULL || notes[0] == 0)
        return cx_cli_misuse(args, "expected --notes TEXT: the resolution is recorded permanently");
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_operand mark_operands[] = {{"ID", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option mark_options[] = {
    CX_CLI_OPT("notes", 0, CX_CLI_TEXT, "TEXT", "What was found or done; recorded permanently."),
    CX_CLI_OPTION_BY, CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_alert_ack = {
    .name = "alert ack",
    .purpose = "acknowledge an alert",
    .about = "Records who acknowledged the alert, and when. The alert stays open.",
    .operands = mark_operands,
    .operand_count = CX_COUNT_OF(mark_operands),
    .options = mark_options,
    .option_count = CX_COUNT_OF(mark_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex alert ack 5f0c1d6c2e7a4b889d0e1f2a3b4c5d6e --notes 'looking into it'",
    .run = run_alert_ack,
};

const cx_cli_command cx_cli_alert_resolve = {
    .name = "alert resolve",
    .purpose = "resolve an alert",
    .about = "Records who resolved the alert, when, and how. 'cortex alert list' then omits it.",
    .operands = mark_operands,
    .operand_count = CX_COUNT_OF(mark_operands),
    .options = mark_options,
    .option_count = CX_COUNT_OF(mark_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex alert resolve 5f0c1d6c2e7a4b889d0e1f2a3b4c5d6e --notes 'key rotated'",
    .run = run_alert_resolve,
};
