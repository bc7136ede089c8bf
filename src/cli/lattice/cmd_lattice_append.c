/*
 * cmd_lattice_append.c - `cortex lattice append`: steps of agents become nodes
 * (docs/formats/steps.md).
 *
 * One step by options, or JSON Lines. Lines are taken as they come, so that the end of a pipe need
 * not be waited for.
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/erasure/sensitive_args.h"
#include "json/api.h"
#include "recorder/api.h"

#define CHUNK_BYTES ((size_t)256 << 10)
#define GROUP_LINES 2000
#define LINE_BYTES_MAX ((size_t)8 << 20)

typedef struct append_state {
    bool lines; /* of a file; else one step by options */
    cx_step step;
    cx_json value;
    cx_recorder *recorder;
    uint64_t counts[CX_STEP_SKIPPED + 1];
    uint64_t line; /* lines before this group */
    const cx_sensitive_rules *sensitive;
    cx_file file;
    bool owned, ended;
    cx_buf text;
    size_t at;
} append_state;

/* --- one step by options ---------------------------------------------------------------------- */

static cx_status put_json(cx_cli_ledger *l, cx_json_list *list, const char *option,
                          const char *member, cx_err *err)
{
    cx_json value;
    const char *text = cx_cli_value(l->args, option);
    if (text == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_cli_read_json(l->cli, option, text, &value, err));
    cx_json_put(list, member, value);
    return CX_SUCCESS;
}

/* --set KEY=VALUE: VALUE is JSON, or text when it is no JSON. */
static cx_status put_memory(cx_cli_ledger *l, cx_json_list *list, cx_err *err)
{
    cx_json_list memory = cx_json_list_begin(l->arena), delta = cx_json_list_begin(l->arena);
    const cx_cli_given *given = NULL;
    if (cx_cli_has(l->args, "delta"))
        return cx_cli_has(l->args, "set")
                   ? cx_fail(err, CX_E_USAGE, "--delta and --set cannot be mixed")
                   : put_json(l, list, "delta", "state_delta", err);
    while ((given = cx_cli_next(l->args, "set", given)) != NULL) {
        cx_json value;
        const char *equals = strchr(given->values[0], '=');
        if (equals == NULL || equals == given->values[0])
            return cx_fail(err, CX_E_USAGE, "option --set: found '%s', expected KEY=VALUE",
                           given->values[0]);
        if (cx_failed(cx_json_parse_text(cx_str_z(equals + 1), l->arena, &value, NULL)))
            value = cx_json_make_str(cx_str_z(equals + 1));
        cx_json_list_put(&memory,
                         cx_str_from(given->values[0], (size_t)(equals - given->values[0])), value);
    }
    if (memory.count == 0)
        return CX_SUCCESS;
    cx_json_put_object(&delta, "memory", &memory);
    cx_json_put_object(list, "state_delta", &delta);
    return CX_SUCCESS;
}

static cx_status put_parents(cx_cli_ledger *l, cx_json_list *list, cx_err *err)
{
    const cx_str *parents;
    size_t count = 0;
    CX_TRY(cx_cli_all_values(l->cli, l->args, "parent", &parents, &count, err));
    if (count != 0)
        cx_json_put_strs(list, "parents", parents, count);
    return CX_SUCCESS;
}

static void put_option(cx_cli_ledger *l, cx_json_list *list, const char *option, const char *member)
{
    const char *value = cx_cli_value(l->args, option);
    if (value != NULL)
        cx_json_put_z(list, member, value);
}

static cx_status prepare_step(cx_cli_ledger *l, append_state *s, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(l->arena);
    const char *head = cx_cli_value(l->args, "head");
    put_option(l, &list, "agent", "agent");
    CX_TRY(put_json(l, &list, "event", "event", err));
    CX_TRY(put_memory(l, &list, err));
    CX_TRY(put_parents(l, &list, err));
    if (head != NULL && strcmp(head, "none") == 0)
        cx_json_put_null(&list, "head");
    else
        put_option(l, &list, "head", "head");
    if (cx_cli_has(l->args, "fork"))
        cx_json_put_bool(&list, "fork", true);
    put_option(l, &list, "fork-type", "fork_type");
    CX_TRY(put_json(l, &list, "time", "timestamp", err));
    put_option(l, &list, "key", "key");
    CX_TRY(put_json(l, &list, "signature", "signature", err));
    CX_TRY(cx_json_list_end_object(&list, &s->value, err));
    CX_TRY(cx_step_read(&s->value, l->arena, &s->step, err));
    if (s->step.problem.code != CX_OK)
        return cx_fail(err, CX_E_USAGE, "%s", s->step.problem.message);
    return CX_SUCCESS;
}

static cx_status prepare(cx_cli_ledger *l, void *arg, cx_err *err)
{
    static const char *const of_one[] = {"event", "delta",     "set",  "parent", "head",
                                         "fork",  "fork-type", "time", "key",    "signature"};
    append_state *s = arg;
    CX_TRY(cx_cli_sensitive_rules(l->cli, l->args, &s->sensitive, err));
    s->lines = l->args->operand_count != 0;
    if (!s->lines && !cx_cli_has(l->args, "agent"))
        return cx_fail(err, CX_E_USAGE,
                       "expected --agent NAME for one step, or a file of JSON Lines ('-' is "
                       "standard input)");
    if (!s->lines)
        return prepare_step(l, s, err);
    if (cx_cli_has(l->args, "agent"))
        return cx_fail(err, CX_E_USAGE, "--agent is for one step; lines of a file say their own");
    for (size_t i = 0; i < CX_COUNT_OF(of_one); i++)
        if (cx_cli_has(l->args, of_one[i]))
            return cx_fail(err, CX_E_USAGE, "--%s is for one step, not for a file", of_one[i]);
    const cx_io *io = l->cli->io;
    const char *path = l->args->operands[0];
    cx_buf_init(&s->text, l->cli->alloc);
    if (strcmp(path, "-") == 0) {
        s->file = CX_FILE_STDIN;
        return CX_SUCCESS;
    }
    int failed = io->open(io, path, CX_IO_READ, &s->file);
    s->owned = failed == 0;
    return failed != 0 ? cx_fail_os(err, -failed, "cannot open %s", path) : CX_SUCCESS;
}

/* --- saying what became of them --------------------------------------------------------------- */

static void show_text(cx_buf *out, const cx_step_taken *taken)
{
    bool there = taken->status == CX_STEP_STORED || taken->status == CX_STEP_DUPLICATE;
    if (there)
        cx_buf_printf(out, "%s  ", taken->hash);
    cx_shown_add(out, taken->agent.data == NULL ? CX_STR("?") : taken->agent);
    if (there)
        cx_buf_printf(out, "#%lld%s", (long long)taken->seq,
                      taken->status == CX_STEP_DUPLICATE ? "  (was there)" : "");
    else
        cx_buf_printf(out, "  %s: ", cx_step_status_name(taken->status));
    if (!there && taken->problem.line != 0)
        cx_buf_printf(out, "line %llu: ", (unsigned long long)taken->problem.line);
    if (!there)
        cx_shown_add(out, cx_str_z(taken->problem.message));
    cx_buf_add_byte(out, '\n');
}

static cx_status show_steps(cx_cli_ledger *l, append_state *s, const cx_step *steps,
                            cx_step_taken *taken, size_t count, cx_arena *arena, cx_err *err)
{
    for (size_t i = 0; i < count; i++) {
        s->counts[taken[i].status]++;
        if (steps[i].line != 0)
            taken[i].problem.line = s->line + steps[i].line;
        if (!l->json) {
            show_text(&l->out, &taken[i]);
            continue;
        }
        cx_json value;
        CX_TRY(cx_step_taken_json(&taken[i], arena, &value, err));
        CX_TRY(cx_json_write(&l->out, &value, CX_JSON_PY_COMPACT, err));
        cx_buf_add_byte(&l->out, '\n');
    }
    CX_TRY(cx_buf_check(&l->out, err));
    cx_cli_out_write(&l->cli->out, cx_buf_str(&l->out));
    cx_buf_clear(&l->out);
    return CX_SUCCESS;
}

/* --- lines ------------------------------------------------------------------------------------ */

static cx_status fill_text(cx_cli_ledger *l, append_state *s, cx_err *err)
{
    const cx_io *io = l->cli->io;
    if (s->at != 0)
        memmove(s->text.data, s->text.data + s->at, s->text.size - s->at);
    s->text.size -= s->at;
    s->at = 0;
    uint8_t *room = cx_buf_reserve(&s->text, CHUNK_BYTES);
    if (room == NULL)
        return cx_fail_nomem(err);
    int64_t got = io->read(io, s->file, room, CHUNK_BYTES);
    if (got < 0)
        return cx_fail_os(err, (int)-got, "cannot read %s", l->args->operands[0]);
    cx_buf_advance(&s->text, (size_t)got);
    s->ended = got == 0;
    return CX_SUCCESS;
}

/* Whole lines that are there, at most GROUP_LINES; the last line of all needs no end. */
static cx_str next_group(append_state *s, uint64_t *out_lines)
{
    const char *start = (const char *)s->text.data + s->at;
    size_t left = s->text.size - s->at, size = 0;
    *out_lines = 0;
    while (*out_lines < GROUP_LINES && size < left) {
        const char *end = memchr(start + size, '\n', left - size);
        if (end == NULL && !s->ended)
            break;
        size = end == NULL ? left : (size_t)(end - start) + 1;
        ++*out_lines;
    }
    s->at += size;
    return cx_str_from(start, size);
}

static cx_status take_group(cx_cli_ledger *l, append_state *s, cx_str text, cx_arena *arena,
                            cx_err *err)
{
    cx_step *steps;
    size_t count = 0;
    CX_TRY(cx_steps_read_lines(text, arena, &steps, &count, err));
    cx_step_taken *taken = CX_ARENA_ARRAY(arena, cx_step_taken, count + 1);
    if (taken == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_recorder_steps_take(s->recorder, steps, count, CX_STR("local"), taken, err));
    return show_steps(l, s, steps, taken, count, arena, err);
}

static bool has_failed(const append_state *s)
{
    return s->counts[CX_STEP_CONFLICT] + s->counts[CX_STEP_REJECTED] + s->counts[CX_STEP_SKIPPED] !=
           0;
}

/* Stops after the group in which a step was not taken: what follows may rest on it. */
static cx_status take_lines(cx_cli_ledger *l, append_state *s, cx_err *err)
{
    while (!has_failed(s)) {
        uint64_t lines = 0;
        cx_str text = next_group(s, &lines);
        if (lines == 0 && s->ended)
            return CX_SUCCESS;
        if (lines == 0) {
            if (s->text.size - s->at > LINE_BYTES_MAX)
                return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                                  "line %llu is longer than %zu bytes",
                                  (unsigned long long)s->line + 1, LINE_BYTES_MAX);
            CX_TRY(fill_text(l, s, err));
            continue;
        }
        cx_arena arena;
        cx_arena_init(&arena, l->cli->alloc, 0);
        cx_status status = take_group(l, s, text, &arena, err);
        cx_arena_done(&arena);
        CX_TRY(status);
        s->line += lines;
    }
    if (s->at < s->text.size || !s->ended)
        cx_cli_complain(
            "lattice append: stopped reading after line %llu; send what follows again when "
            "this is final (steps with a key are taken once)",
            (unsigned long long)s->line);
    return CX_SUCCESS;
}

static cx_status work(cx_cli_ledger *l, void *arg, cx_err *err)
{
    append_state *s = arg;
    const cx_recorder_options options = {.alloc = l->cli->alloc, .sensitive = s->sensitive};
    cx_step_taken taken;
    CX_TRY(cx_recorder_open(l->home, &options, &s->recorder, err));
    cx_status status;
    if (s->lines) {
        status = take_lines(l, s, err);
    } else {
        status = cx_recorder_steps_take(s->recorder, &s->step, 1, CX_STR("local"), &taken, err);
        if (!cx_failed(status))
            status = show_steps(l, s, &s->step, &taken, 1, l->arena, err);
    }
    cx_recorder_close(s->recorder);
    l->exit_code = has_failed(s) ? CX_EXIT_BROKEN : CX_EXIT_HOLDS;
    return status;
}

/* --- the command ------------------------------------------------------------------------------ */

static int run(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {.access = CX_CLI_WRITE, .prepare = prepare, .work = work};
    append_state s = {.file = CX_FILE_NONE};
    int code = cx_cli_run_job(cli, args, &job, &s);
    if (s.owned && s.file >= 0)
        (void)cli->io->close(cli->io, s.file);
    cx_buf_done(&s.text);
    return code;
}

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, true, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "NAME", "Who took the step."),
    CX_CLI_OPT("event", 0, CX_CLI_TEXT, "JSON",
               "What happened, an object; @FILE and - are understood."),
    CX_CLI_OPT("delta", 0, CX_CLI_TEXT, "JSON",
               "What changed: an object of memory, beliefs, goals, context_stack."),
    CX_CLI_OPT_MANY("set", 0, CX_CLI_TEXT, "KEY=VALUE",
                    "A key of memory that changed; VALUE is JSON, or text. May be repeated."),
    CX_CLI_OPT_MANY("parent", 0, CX_CLI_TEXT, "NODE",
                    "What the step follows: a hash, 6 digits of it or more, AGENT#SEQ, or @AGENT "
                    "for that agent's newest node. Default: the agent's newest node. May be "
                    "repeated."),
    CX_CLI_OPT("head", 0, CX_CLI_TEXT, "HASH|none",
               "The newest node that you know of; if it is another one, nothing is stored."),
    CX_CLI_OPT_FLAG("fork", 0, "The step may follow a node that is not the newest."),
    CX_CLI_OPT("fork-type", 0, CX_CLI_CHOICE, "natural|observation|injection",
               "What kind of fork it is; of a fork, default natural."),
    CX_CLI_OPT("time", 0, CX_CLI_TEXT, "SECONDS", "When, since 1970; default now."),
    CX_CLI_OPT("key", 0, CX_CLI_TEXT, "KEY", "Your own key: the same step is stored once."),
    CX_CLI_OPT("signature", 0, CX_CLI_TEXT, "JSON", "{\"key_id\",\"signature\"} over the step."),
    CX_CLI_OPTIONS_SENSITIVE,
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_lattice_append = {
    .name = "lattice append",
    .purpose = "record steps of agents",
    .about =
        "Makes of each step a node of its agent's history: numbered, linked to what it follows, "
        "sealed, hashed, stored. Prints the node's id, which is its hash, and its number. "
        "@agent/NAME then names the history for all lattice commands.\n\n"
        "One step by options, or a file of JSON Lines: objects with the members agent, event, "
        "state_delta, parents, head, fork, fork_type, timestamp, key and signature, of which only "
        "agent is needed. When another process holds the data directory, it is asked "
        "to store them.\n\n"
        "Two writers of one agent never follow the same node unless one asks for a fork: the later "
        "one is told what the newest node is.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 all were stored, or were there, and are on the disk\n"
             "1 a step was not stored: a conflict, or it cannot be used\n"
             "2 usage error\n"
             "3 it could not be done: no home, held by another process, unreadable, full disk",
    .example = "cortex lattice append --agent refunds --event '{\"kind\":\"decision\"}' --set "
               "limit=500\n"
               "agent | cortex lattice append -",
    .run = run,
};
