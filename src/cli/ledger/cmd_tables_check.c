/*
 * cmd_tables_check.c - `cortex tables check` and `tables repair`: damaged rows of the tables,
 * named, and made again from those that lead to them.
 */
#include "cli/ledger/ledger.h"
#include "ledger/api.h"

enum { SHOWN_MAX = 1000 };

typedef struct tables_check {
    cx_cli_ledger *l;
    cx_tables_check done;
    cx_json_list list;
    cx_buf lines;
    size_t shown;
} tables_check;

static void add_line(tables_check *t, const cx_table_damage *damage)
{
    cx_buf *out = &t->lines;
    cx_buf_printf(out, "  %s ", damage->repaired ? "repaired" : "damaged");
    if (damage->actor.size != 0) {
        cx_shown_add(out, damage->actor);
        cx_buf_add_z(out, ", ");
    }
    cx_buf_add_z(out, damage->what);
    if (damage->where[0] != 0)
        cx_buf_printf(out, ", %s", damage->where);
    cx_buf_add_z(out, ": ");
    cx_shown_add(out, cx_str_z(damage->why));
    if (!damage->repaired && damage->left[0] != 0) {
        cx_buf_add_z(out, "; not repaired: ");
        cx_shown_add(out, cx_str_z(damage->left));
    }
    cx_buf_add_byte(out, '\n');
}

static cx_status copy_text(cx_cli_ledger *l, const char *text, cx_str *out, cx_err *err)
{
    *out = cx_arena_copy_str(l->arena, cx_str_z(text));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status add_damage(void *arg, const cx_table_damage *damage, cx_err *err)
{
    tables_check *t = arg;
    cx_json_list item = cx_json_list_begin(t->l->arena);
    cx_str where, why, actor, left;
    if (t->shown++ >= SHOWN_MAX)
        return CX_SUCCESS;
    if (!t->l->json) {
        add_line(t, damage);
        return CX_SUCCESS;
    }
    actor = cx_arena_copy_str(t->l->arena, damage->actor);
    if (actor.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(copy_text(t->l, damage->where, &where, err));
    CX_TRY(copy_text(t->l, damage->why, &why, err));
    CX_TRY(copy_text(t->l, damage->repaired ? "" : damage->left, &left, err));
    cx_json_put_maybe(&item, "actor", actor);
    cx_json_put_bool(&item, "repaired", damage->repaired);
    cx_json_put_maybe(&item, "not_repaired", left);
    cx_json_put_z(&item, "table", damage->what);
    cx_json_put_maybe(&item, "where", where);
    cx_json_put_str(&item, "why", why);
    cx_json_add_object(&t->list, &item);
    return CX_SUCCESS;
}

static bool has_damage_left(const tables_check *t)
{
    return t->done.damaged != t->done.repaired;
}

static const char *verdict_of(const tables_check *t)
{
    return !t->done.usable ? "indeterminate" : has_damage_left(t) ? "broken" : "holds";
}

static void write_answer(tables_check *t)
{
    const cx_tables_check *d = &t->done;
    cx_buf *out = &t->l->out;
    if (!d->usable) {
        cx_buf_add_z(out, "indeterminate: there are no tables that are up to date, so nothing was "
                          "looked at; a command that writes makes them, or 'cortex tables "
                          "rebuild'\n");
        return;
    }
    cx_buf_printf(out, "%s: %llu damaged, %llu repaired\n", verdict_of(t),
                  (unsigned long long)d->damaged, (unsigned long long)d->repaired);
    cx_buf_printf(out,
                  "  looked at pages %llu, nodes of journals %llu, entries %llu, records %llu "
                  "of %llu actors\n",
                  (unsigned long long)d->pages, (unsigned long long)d->nodes,
                  (unsigned long long)d->entries, (unsigned long long)d->records,
                  (unsigned long long)d->actors);
    cx_buf_add(out, t->lines.data, t->lines.size);
    out->failed = out->failed || t->lines.failed;
    if (t->shown > SHOWN_MAX)
        cx_buf_printf(out, "  and %zu more\n", t->shown - SHOWN_MAX);
    if (has_damage_left(t))
        cx_buf_add_z(out,
                     "  the log is the truth: 'cortex tables repair' repairs what other rows lead "
                     "to, 'cortex tables rebuild --replace' makes everything again\n");
    cx_buf_add_z(out,
                 "  note: rows that were changed together with all hashes above them are found "
                 "by 'cortex verify --home' alone\n");
}

static cx_status write_answer_json(tables_check *t, cx_err *err)
{
    const cx_tables_check *d = &t->done;
    cx_json_list json = cx_json_list_begin(t->l->arena);
    cx_json_put_uint(&json, "actors", d->actors);
    cx_json_put_array(&json, "damage", &t->list);
    cx_json_put_uint(&json, "damaged", d->damaged);
    cx_json_put_uint(&json, "entries", d->entries);
    cx_json_put_uint(&json, "repaired", d->repaired);
    cx_json_put_uint(&json, "nodes", d->nodes);
    cx_json_put_uint(&json, "pages", d->pages);
    cx_json_put_uint(&json, "records", d->records);
    cx_json_put_z(&json, "verdict", verdict_of(t));
    return cx_cli_end_json(&json, &t->l->out, err);
}

static cx_status check_and_answer(cx_cli_ledger *l, bool repair, cx_err *err)
{
    tables_check t = {.l = l, .list = cx_json_list_begin(l->arena)};
    cx_buf_init(&t.lines, l->cli->alloc);
    const cx_tables_repairing how = {.repair = repair, .found = add_damage, .arg = &t};
    cx_status status = cx_home_check_tables(l->home, &how, &t.done, err);
    if (!cx_failed(status) && l->json)
        status = write_answer_json(&t, err);
    else if (!cx_failed(status))
        write_answer(&t);
    l->exit_code = !t.done.usable        ? CX_EXIT_UNCHECKED
                   : has_damage_left(&t) ? CX_EXIT_BROKEN
                                         : CX_EXIT_HOLDS;
    cx_buf_done(&t.lines);
    return status;
}

static cx_status check_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    (void)state;
    return check_and_answer(l, false, err);
}

static cx_status repair_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    (void)state;
    return check_and_answer(l, true, err);
}

static int run_tables_check(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, check_job};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static int run_tables_repair(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, false, NULL, repair_job};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_option options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                        CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_tables_check = {
    .name = "tables check",
    .purpose = "find damaged rows of the tables",
    .about = "Reads all rows of cortex.db and no log. Every page of a tree must fold to the row "
             "above it, every node of a journal must follow from the entries, and rows must have "
             "their checksums. Names each page, node or table that is damaged. Rows that were "
             "changed together with all hashes above them are found by 'cortex verify --home'.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 nothing is damaged\n1 something is damaged\n2 usage error\n3 could not be checked: "
             "no tables that are up to date",
    .example = "cortex tables check",
    .run = run_tables_check,
};

const cx_cli_command cx_cli_tables_repair = {
    .name = "tables repair",
    .purpose = "repair damaged rows of the tables without rebuilding them",
    .about = "Checks as 'cortex tables check' does, and makes damaged pages again from their "
             "leaves, leaves from the records, and nodes of journals from the entries, where the "
             "result is what the rows above say. What cannot be made so is named: 'cortex tables "
             "rebuild --replace' makes all tables again from the log.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 nothing is damaged any more\n1 something is still damaged\n2 usage error\n3 could "
             "not be done: owned by another process",
    .example = "cortex tables repair",
    .run = run_tables_repair,
};
