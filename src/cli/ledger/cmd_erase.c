/*
 * cmd_erase.c - `cortex erase`: destroys content; every proof still holds.
 */
#include <string.h>

#include "cli/ledger/ledger.h"

typedef struct state {
    bool entry;
    uint64_t seq;
    cx_cli_name name;
    cx_str reason;
    cx_str by;
} state;

static cx_status prepare_erase(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    const char *what = l->args->operands[0], *reason = cx_cli_value(l->args, "reason");
    const char *by = cx_cli_value(l->args, "by");
    if (reason == NULL || reason[0] == 0)
        return cx_fail(
            err, CX_E_USAGE,
            "expected --reason TEXT: erasure cannot be undone, and the reason is recorded");
    s->reason = cx_str_z(reason);
    s->by = by == NULL ? l->actor : cx_str_z(by);
    /* A ULID may consist of digits alone, but then it has 26 of them. */
    s->entry = strlen(what) < CX_ULID_SIZE && strspn(what, "0123456789") == strlen(what);
    return s->entry ? cx_cli_parse_number("SEQ", what, &s->seq, err)
                    : cx_cli_parse_name(what, &s->name, err);
}

static cx_status erase_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    const state *s = arg;
    cx_uri uri;
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    if (s->entry) {
        CX_TRY(cx_memory_redact(l->memory, s->seq, s->reason, s->by, err));
        cx_buf_printf(&l->out, "erased the payload of entry %llu\n", (unsigned long long)s->seq);
        cx_json_put_uint(&json, "erased_entry", s->seq);
        cx_json_put_null(&json, "erased_memory");
    } else {
        CX_TRY(cx_cli_find_uri(l, &s->name, &uri, err));
        CX_TRY(cx_memory_redact_memory(l->memory, &uri, s->reason, s->by, err));
        cx_buf_add_z(&l->out, "erased all versions of ");
        cx_uri_add(&uri, &l->out);
        cx_buf_add_byte(&l->out, '\n');
        cx_json_put_null(&json, "erased_entry");
        cx_json_put_uri(&json, "erased_memory", &uri);
    }
    if (!l->json)
        return CX_SUCCESS;
    cx_buf_clear(&l->out);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_erase(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_erase, erase_job};
    state s;
    return cx_cli_run_job(cli, args, &job, &s);
}

static const cx_cli_operand operands[] = {{"SEQ|URI", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT", "Why; needed, and recorded for good."),
    CX_CLI_OPT("by", 0, CX_CLI_TEXT, "NAME", "The author; default the actor."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_erase = {
    .name = "erase",
    .purpose = "destroy content; proofs and roots still hold",
    .about = "SEQ: overwrites the committed payload of that entry. URI or ULID: overwrites every "
             "version of that memory and marks it as dead. The content can no longer be read from "
             "any file of the data directory. The fact that it existed, who erased it and why stay "
             "recorded. Backups and copies elsewhere are not changed.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex erase 01HF7YAT000000000000000003 --reason 'asked for by the person'",
    .run = run_erase,
};
