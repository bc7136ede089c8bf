/*
 * trace.c - what the commands over recorded traces share.
 *
 * The index is derived and may lag: a command that queries it first brings it up to date with
 * the ledger. Where it cannot be written (the data directory belongs to another user, or another
 * program is writing) the index is used as it is, and the lag is reported.
 */
#include "cli/trace/trace.h"

#include <stdio.h>
#include <string.h>

#include "base/api.h"
#include "cli/fleet/part_home.h"
#include "socket/api.h"

/* --- the index -------------------------------------------------------------------------------- */

cx_status cx_cli_index_where(cx_cli_ledger *l, const char **out, cx_err *err)
{
    const char *given = cx_cli_takes(l->args, "db") ? cx_cli_value(l->args, "db") : NULL;
    if (given != NULL && given[0] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "option --db: expected the name of a file, or postgresql://..");
    if (given == NULL && l->cli->part != NULL)
        return cx_cli_part_index(l->cli, out, err);
    *out = given != NULL ? given : cx_recorder_index_path(l->path, l->arena);
    return *out == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* While another process owns the data directory. */
static cx_status feed_index_elsewhere(cx_cli_ledger *l, const char *where, cx_err *err)
{
    const cx_home_options options = cx_cli_home_options(l->cli, CX_CLI_READ, NULL);
    const cx_recorder_options bounded = {.index_bytes = l->cli->max_index};
    cx_home *home = NULL;
    cx_recorder *recorder = NULL;
    cx_status status;
    CX_TRY_GOTO(status, cx_home_open(l->path, &options, &home, err));
    CX_TRY_GOTO(status, cx_recorder_open(home, &bounded, &recorder, err));
    CX_TRY_GOTO(status, cx_recorder_feed_now(recorder, where, err));
done:
    cx_recorder_close(recorder);
    cx_status closed = cx_home_close(home, NULL);
    (void)closed; /* it was read only: nothing can be lost */
    return status;
}

bool cx_cli_index_is_ours(cx_home *home, cx_index *index)
{
    uint8_t home_id[16];
    cx_feed_position position;
    cx_index_status status;
    cx_home_id(home, home_id);
    /* In this order: what another program feeds meanwhile only moves the second. */
    return cx_failed(cx_index_get_status(index, &status, NULL)) ||
           cx_failed(cx_index_position(index, home_id, &position, NULL)) ||
           status.position.commit == 0 || position.commit != 0;
}

/* Feeding would empty the index of another data directory, which needs an explicit --db. */
static cx_status check_owner(cx_cli_ledger *l, const char *where, cx_err *err)
{
    cx_index *index;
    if (cx_failed(cx_index_open(where, CX_INDEX_READ, &index, NULL)))
        return CX_SUCCESS; /* there is none, or feeding reports the error */
    bool ours = cx_cli_index_is_ours(l->home, index);
    cx_index_close(index);
    return ours ? CX_SUCCESS
                : cx_fail_at(err, CX_E_FORMAT, "OtherHome", CX_NO_OFFSET,
                             "this index belongs to another data directory; 'cortex tables rebuild "
                             "--db' rebuilds it for this one");
}

cx_status cx_cli_feed(cx_cli_ledger *l, cx_recorder *recorder, const char *where, cx_err *err)
{
    CX_TRY(check_owner(l, where, err));
    return cx_home_is_remote(l->home) ? feed_index_elsewhere(l, where, err)
                                      : cx_recorder_feed_now(recorder, where, err);
}

/* What keeps the index from being written and leaves it readable. */
static bool may_be_read(const cx_err *failure)
{
    return failure->code == CX_E_DENIED || failure->code == CX_E_BUSY || failure->code == CX_E_IO;
}

static void report_index_lag(cx_cli_traces *t, const cx_err *failure)
{
    cx_index_status status;
    cx_feed_status feed;
    cx_err err;
    if (cx_failed(cx_index_get_status(t->index, &status, &err)))
        return;
    cx_recorder_feed_get_status(t->recorder, &feed);
    if (status.position.commit < feed.log_commits)
        cx_cli_complain("note: the index lags by %llu commits and could not catch up: %s",
                        (unsigned long long)(feed.log_commits - status.position.commit),
                        failure->message);
}

/* When the index is up to date there is nothing to write and no lock to wait for. */
static bool is_current(cx_cli_traces *t)
{
    uint8_t home_id[16];
    cx_feed_position position;
    if (cx_failed(cx_index_open(t->where, CX_INDEX_READ, &t->index, NULL)))
        return false;
    cx_home_id(t->l->home, home_id);
    if (!cx_failed(cx_index_position(t->index, home_id, &position, NULL)) &&
        position.commit >= cx_home_durable(t->l->home))
        return true;
    cx_index_close(t->index);
    t->index = NULL;
    return false;
}

/* What was dropped is in the ledger, and in no answer. */
static void report_dropped_rows(const cx_cli_traces *t)
{
    int64_t retained_ns;
    cx_buf text;
    cx_err err;
    if (cx_failed(cx_index_retained(t->index, &retained_ns, &err)) || retained_ns == CX_TIME_NONE)
        return;
    cx_buf_init(&text, t->l->cli->alloc);
    cx_form_time(cx_cli_seconds(retained_ns), &text);
    cx_cli_complain("note: rows before %s were dropped from the index for their age or its size, "
                    "so nothing older is searched; the ledger has it, and 'cortex tables rebuild' "
                    "brings back what fits",
                    cx_buf_z(&text) == NULL ? "some time" : cx_buf_z(&text));
    cx_buf_done(&text);
}

static cx_status open_index(cx_cli_traces *t, cx_err *err)
{
    cx_err failure = {0};
    if (is_current(t))
        return CX_SUCCESS;
    cx_status fed = cx_cli_feed(t->l, t->recorder, t->where, &failure);
    if (cx_failed(fed) && !may_be_read(&failure)) {
        *err = failure;
        return fed;
    }
    cx_status opened = cx_index_open(t->where, CX_INDEX_READ, &t->index, err);
    if (cx_failed(fed) && cx_failed(opened)) {
        *err = failure;
        return fed;
    }
    CX_TRY(opened);
    if (cx_failed(fed))
        report_index_lag(t, &failure);
    return CX_SUCCESS;
}

/* --- running ---------------------------------------------------------------------------------- */

typedef struct running {
    const cx_cli_trace_job *job;
    void *state;
} running;

static cx_status prepare_traces(cx_cli_ledger *l, void *arg, cx_err *err)
{
    const running *r = arg;
    return r->job->prepare == NULL ? CX_SUCCESS : r->job->prepare(l, r->state, err);
}

static cx_status traces_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    const running *r = arg;
    cx_cli_traces t = {.l = l};
    cx_recorder_options options = {.alloc = NULL};
    cx_status status;
    if (r->job->options != NULL)
        options = *r->job->options;
    options.index_bytes = l->cli->max_index;
    CX_TRY_GOTO(status, cx_recorder_open(l->home, &options, &t.recorder, err));
    CX_TRY_GOTO(status, cx_cli_index_where(l, &t.where, err));
    if (r->job->wants_index) {
        CX_TRY_GOTO(status, open_index(&t, err));
        report_dropped_rows(&t);
    }
    CX_TRY_GOTO(status, r->job->work(&t, r->state, err));
    /* The result is in the ledger; the index catches up now or at the next query. */
    cx_err failure = {0};
    if (r->job->feeds_index && cx_failed(cx_cli_feed(l, t.recorder, t.where, &failure)))
        cx_cli_complain(
            "%s: note: the index could not be brought up to date (%s); the ledger is complete",
            l->args->command->name, failure.message);
done:
    cx_index_close(t.index);
    cx_recorder_close(t.recorder);
    return status;
}

int cx_cli_run_traces(cx_cli *cli, const cx_cli_args *args, const cx_cli_trace_job *job,
                      void *state)
{
    const cx_cli_job steps = {job->access, false, prepare_traces, traces_job};
    running r = {job, state};
    return cx_cli_run_job(cli, args, &steps, &r);
}

/* --- arguments ------------------------------------------------------------------------------ */

cx_status cx_cli_parse_trace_time(const char *what, const char *text, int64_t *out_ns, cx_err *err)
{
    bool naive;
    int64_t seconds;
    if (cx_trace_time_parse(cx_str_z(text), out_ns, &naive))
        return CX_SUCCESS;
    CX_TRY(cx_cli_parse_time(what, text, &seconds, err));
    if (seconds < 0 || seconds > INT64_MAX / 1000000000)
        return cx_fail(err, CX_E_USAGE, "%s: found '%s', expected a time from 1970 to 2262", what,
                       text);
    *out_ns = seconds * 1000000000;
    return CX_SUCCESS;
}

cx_status cx_cli_time_option(const cx_cli_args *args, const char *name, int64_t fallback,
                             int64_t *out_ns, cx_err *err)
{
    char what[48];
    const char *text = cx_cli_value(args, name);
    *out_ns = fallback;
    if (text == NULL)
        return CX_SUCCESS;
    (void)snprintf(what, sizeof what, "option --%s", name);
    return cx_cli_parse_trace_time(what, text, out_ns, err);
}

cx_trace_level cx_cli_level_option(const cx_cli_args *args, const char *name,
                                   cx_trace_level fallback)
{
    const char *text = cx_cli_value(args, name);
    cx_trace_level level = fallback;
    if (text != NULL)
        (void)cx_trace_level_parse(cx_str_z(text), &level); /* one of the choices */
    return level;
}

cx_chain_profile cx_cli_profile_option(const cx_cli_args *args, const char *name)
{
    const char *text = cx_cli_value(args, name);
    cx_chain_profile profile = CX_CHAIN_AUTO;
    if (text != NULL)
        (void)cx_chain_profile_parse(cx_str_z(text), &profile); /* one of the choices */
    return profile;
}

cx_status cx_cli_read_trust_store(cx_cli *cli, const char *path, cx_trust *out, cx_err *err)
{
    cx_bytes text;
    CX_TRY(cx_cli_read_file(cli, path, &text, err));
    return cx_trust_parse(cx_bytes_str(text), &cli->arena, out, err);
}

/* --- answers -------------------------------------------------------------------------------- */

static cx_status print_answer(cx_cli_ledger *l, const cx_buf *answer,
                              void (*tell)(cx_buf *out, const cx_json *value), cx_err *err)
{
    cx_json value;
    CX_TRY(cx_buf_check(answer, err));
    if (l->json) {
        cx_buf_add_str(&l->out, cx_buf_str(answer));
        return CX_SUCCESS;
    }
    CX_TRY(cx_json_parse_text(cx_buf_str(answer), l->arena, &value, err));
    tell(&l->out, &value);
    return CX_SUCCESS;
}

cx_status cx_cli_print_answer(cx_cli_ledger *l, cx_buf *answer,
                              void (*tell)(cx_buf *out, const cx_json *value), cx_err *err)
{
    cx_status status = print_answer(l, answer, tell, err);
    cx_buf_done(answer);
    return status;
}

static void add_value(cx_buf *out, const cx_json *value)
{
    if (value == NULL || value->type == CX_JSON_NULL)
        cx_buf_add_byte(out, '-');
    else if (value->type == CX_JSON_TRUE || value->type == CX_JSON_FALSE)
        cx_buf_add_z(out, value->type == CX_JSON_TRUE ? "true" : "false");
    else if (value->type == CX_JSON_STRING || cx_json_is_number(value))
        cx_shown_add(out, cx_json_text(value));
    else
        cx_buf_printf(out, "(%s)", cx_json_type_name(value));
}

static void pad_column(cx_buf *out, size_t from, unsigned width)
{
    size_t shown = 0;
    for (size_t i = from; i < out->size; i++)
        shown += (out->data[i] & 0xc0) != 0x80; /* characters, not bytes */
    for (; shown < width; shown++)
        cx_buf_add_byte(out, ' ');
}

void cx_cli_add_member(cx_buf *out, const cx_json *object, const char *name)
{
    add_value(out, cx_json_get(object, cx_str_z(name)));
}

void cx_cli_add_column(cx_buf *out, const cx_json *object, const char *name, unsigned width)
{
    size_t from = out->size;
    cx_cli_add_member(out, object, name);
    pad_column(out, from, width);
}

void cx_cli_add_score(cx_buf *out, const cx_json *value, unsigned width)
{
    double number;
    size_t from = out->size;
    if (value != NULL && cx_json_double(value, &number))
        cx_buf_printf(out, "%.3f", number);
    else
        cx_buf_add_byte(out, '-');
    pad_column(out, from, width);
}

void cx_cli_add_line(cx_buf *out, const char *label, const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    if (value == NULL || value->type == CX_JSON_NULL)
        return;
    cx_buf_printf(out, "  %-12s ", label);
    add_value(out, value);
    cx_buf_add_byte(out, '\n');
}

int cx_cli_verdict_exit(cx_verdict verdict)
{
    switch (verdict) {
    case CX_HOLDS: return CX_EXIT_HOLDS;
    case CX_BROKEN: return CX_EXIT_BROKEN;
    case CX_INDETERMINATE: break;
    }
    return CX_EXIT_UNCHECKED;
}
