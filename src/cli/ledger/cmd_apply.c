/*
 * cmd_apply.c - `cortex apply FILE.jsonl`: one call a line, and the roots after each.
 *
 * Steps carry their own ids and times, so that another implementation that is given the same file
 * must come to the same roots.  A call that is refused is an answer; a line that is none ends the
 * run, with everything before it done.
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "memory/api.h"

typedef struct state {
    cx_bytes text;
    uint64_t line;
    uint64_t refused;
} state;

static cx_status read_calls(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    return cx_cli_read_file(l->cli, l->args->operands[0], &s->text, err);
}

/* The next line that is not blank; false after the last. */
static bool next_line(state *s, cx_str *out)
{
    while (s->text.size != 0) {
        const uint8_t *end = memchr(s->text.data, '\n', s->text.size);
        size_t size = end == NULL ? s->text.size : (size_t)(end - s->text.data);
        *out = cx_str_from((const char *)s->text.data, size);
        size_t used = size + (end != NULL);
        s->text = cx_bytes_from(s->text.data + used, s->text.size - used);
        s->line++;
        for (size_t i = 0; i < size; i++)
            if (strchr(" \t\r", out->data[i]) == NULL)
                return true;
    }
    return false;
}

static void write_roots_json(cx_json_list *json, const cx_roots *roots)
{
    cx_json_put_digest(json, "edges_root", &roots->edges);
    cx_json_put_digest(json, "journal_root", &roots->journal);
    cx_json_put_uint(json, "journal_size", roots->journal_size);
    cx_json_put_digest(json, "memories_root", &roots->memories);
    cx_json_put_digest(json, "overall_root", &roots->overall);
}

/* Those of an actor that has written nothing are the roots of empty trees. */
static cx_status read_roots(cx_cli_ledger *l, cx_roots *out, cx_err *err)
{
    cx_err why = {0};
    cx_status status = cx_home_roots(l->home, l->actor, out, &why);
    if (!cx_failed(status))
        return status;
    if (status.code != CX_E_NOT_FOUND) {
        *err = why;
        return status;
    }
    const cx_scheme scheme = cx_home_scheme(l->home);
    *out = (cx_roots){.journal = cx_scheme_journal_root(scheme, 0, NULL),
                      .edges = cx_scheme_smt_empty(scheme, 0),
                      .memories = cx_scheme_smt_empty(scheme, 0)};
    out->overall = cx_scheme_overall(scheme, &out->journal, &out->edges, &out->memories);
    return CX_SUCCESS;
}

/* Steps are shown as they are done: one line of JSON, or of text, each. */
static cx_status print_step(cx_cli_ledger *l, const state *s, const cx_json *step,
                            const cx_applied_step *done, cx_err *err)
{
    cx_roots roots;
    CX_TRY(read_roots(l, &roots, err));
    cx_buf_clear(&l->out);
    if (!l->json) {
        cx_buf_printf(&l->out, "%llu  ", (unsigned long long)s->line);
        cx_cli_add_digest(&l->out, &roots.overall);
        cx_buf_add_z(&l->out, "  ");
        cx_shown_add(&l->out, CX_JSON_GET_STR(step, "op"));
        if (done->refused) {
            cx_buf_printf(&l->out,
                          "  refused: %s: ", done->reason.tag == NULL ? "" : done->reason.tag);
            cx_shown_add(&l->out, cx_str_z(done->reason.message));
        } else if (done->has_uri) {
            cx_buf_add_z(&l->out, "  ");
            cx_shown_add(&l->out, done->uri);
        }
        cx_buf_add_byte(&l->out, '\n');
    } else {
        cx_json_list json = cx_json_list_begin(l->arena);
        cx_json_put_uint(&json, "line", s->line);
        cx_json_put_str(&json, "op", CX_JSON_GET_STR(step, "op"));
        cx_json_put_maybe(&json, "refused",
                          cx_str_z(!done->refused             ? ""
                                   : done->reason.tag == NULL ? "Refused"
                                                              : done->reason.tag));
        if (done->wrote)
            cx_json_put_uint(&json, "seq", done->seq);
        else
            cx_json_put_null(&json, "seq");
        if (done->has_number)
            cx_json_put_uint(&json, "snapshot", done->number);
        else
            cx_json_put_null(&json, "snapshot");
        cx_json_put_maybe(&json, "uri", done->has_uri ? done->uri : (cx_str){NULL, 0});
        write_roots_json(&json, &roots);
        CX_TRY(cx_cli_end_json(&json, &l->out, err));
    }
    CX_TRY(cx_buf_check(&l->out, err));
    cx_cli_out_write(&l->cli->out, cx_buf_str(&l->out));
    cx_buf_clear(&l->out);
    return CX_SUCCESS;
}

/* Errors of a line name the line. */
static cx_status at_line(const state *s, cx_status status, const cx_err *why, cx_err *err)
{
    if (!cx_failed(status) || why->code == CX_E_NOMEM) {
        *err = *why;
        return status;
    }
    bool parsing = why->code == CX_E_SYNTAX || why->code == CX_E_MORE || why->code == CX_E_FORMAT;
    return cx_fail_at(err, parsing ? CX_E_USAGE : why->code, why->tag, why->offset, "line %llu: %s",
                      (unsigned long long)s->line, why->message);
}

static cx_status apply_line(cx_cli_ledger *l, state *s, cx_apply *apply, cx_str line, cx_err *err)
{
    cx_json step;
    cx_err why = {0};
    cx_applied_step done;
    cx_status status = cx_json_parse_text(line, l->arena, &step, &why);
    if (!cx_failed(status))
        status = cx_apply_step(apply, &step, l->arena, &done, &why);
    if (cx_failed(status))
        return at_line(s, status, &why, err);
    s->refused += done.refused;
    return print_step(l, s, &step, &done, err);
}

static cx_status apply_calls_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    cx_apply *apply;
    cx_str line;
    CX_TRY(cx_apply_open(l->home, l->actor, NULL, &apply, err));
    cx_status status = CX_SUCCESS;
    while (!cx_failed(status) && !l->cli->out.failed && next_line(s, &line)) {
        cx_arena_mark mark = cx_arena_mark_now(l->arena);
        status = apply_line(l, s, apply, line, err);
        cx_arena_reset(l->arena, mark);
    }
    cx_apply_close(apply);
    l->exit_code = s->refused == 0 ? CX_EXIT_HOLDS : CX_EXIT_BROKEN;
    return status;
}

static int run_apply(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, false, read_calls, apply_calls_job};
    state s = {.line = 0};
    return cx_cli_run_job(cli, args, &job, &s);
}

static const cx_cli_operand operands[] = {{"FILE.jsonl", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPTION_HOME, CX_CLI_OPTION_ACTOR,
    CX_CLI_OPT_FLAG("json", 0, "One JSON object a line, one line a step."), CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_apply = {
    .name = "apply",
    .purpose = "run calls from a file and show the roots after each",
    .about = "Reads one JSON object a line (\"-\" is standard input): op, the call's members next "
             "to it or in args, and now_ns for the clock. Ops are write, update, update_head, "
             "tombstone, add_edge, remove_edge, embed, compact, attest, raw, redact, "
             "redact_memory, snapshot, drop_snapshot. With the ids and times in the steps, every "
             "implementation computes the same roots.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 all done\n1 all done, but some calls were rejected\n2 usage error, or a line is "
             "not a valid step: the steps before it are done\n3 could not be done: no data "
             "directory, owned by another process, unreadable, full disk",
    .example = "cortex apply steps.jsonl --json",
    .run = run_apply,
};
