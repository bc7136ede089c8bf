/*
 * cmd_trust.c - `cortex key add`, `list`, `revoke`: the trust store (trace.md §4). It is part of
 * the ledger: every change is an entry, and nothing is ever removed. A key id is bound once; a
 * rotation adds a new id that replaces the old one.
 */
#include <stdio.h>
#include <string.h>

#include "cli/trace/trace.h"
#include "cli/trace/trust.h"

/* --- add -------------------------------------------------------------------------------------- */

typedef struct add_state {
    cx_trust keys;
} add_state;

static cx_status agents_json(cx_cli *cli, const cx_cli_args *args, cx_json_list *list, cx_err *err)
{
    const cx_str *agents;
    size_t count;
    CX_TRY(cx_cli_all_values(cli, args, "agent", &agents, &count, err));
    cx_json_put_strs(list, "agents", agents, count);
    return CX_SUCCESS;
}

static void write_option_json(cx_json_list *list, const cx_cli_args *args, const char *member,
                              const char *option)
{
    const char *text = cx_cli_value(args, option);
    if (text != NULL)
        cx_json_put_str(list, member, cx_str_z(text));
}

/* One key from options, read as it would be from a file, so that the same is refused. */
static cx_status key_of_options(cx_cli *cli, const cx_cli_args *args, cx_trust_key *out,
                                cx_err *err)
{
    cx_json value;
    cx_json_list list = cx_json_list_begin(&cli->arena);
    write_option_json(&list, args, "key_id", "id");
    cx_json_put_str(&list, "algorithm", CX_STR("ed25519"));
    write_option_json(&list, args, "public_key", "public-key");
    CX_TRY(agents_json(cli, args, &list, err));
    write_option_json(&list, args, "not_before", "not-before");
    write_option_json(&list, args, "not_after", "not-after");
    write_option_json(&list, args, "replaces", "replaces");
    write_option_json(&list, args, "chain_profile", "chain-profile");
    write_option_json(&list, args, "description", "description");
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    if (!cx_failed(cx_trust_key_parse(&value, CX_STR(""), &cli->arena, out, err)))
        return CX_SUCCESS;
    if (err->code == CX_E_FORMAT)
        err->code = CX_E_USAGE; /* the options are wrong, not a file */
    return (cx_status){err->code};
}

static cx_status prepare_add(cx_cli_ledger *l, void *state, cx_err *err)
{
    add_state *s = state;
    const cx_cli_args *args = l->args;
    static const char *const of_one[] = {"id",        "public-key", "agent",         "not-before",
                                         "not-after", "replaces",   "chain-profile", "description"};
    if (args->operand_count == 1) {
        for (size_t i = 0; i < CX_COUNT_OF(of_one); i++)
            if (cx_cli_has(args, of_one[i]))
                return cx_fail(err, CX_E_USAGE, "expected either FILE or --%s", of_one[i]);
        return cx_cli_read_trust_store(l->cli, args->operands[0], &s->keys, err);
    }
    if (!cx_cli_has(args, "id") || !cx_cli_has(args, "public-key"))
        return cx_fail(err, CX_E_USAGE, "expected FILE, or --id ID with --public-key BASE64");
    cx_trust_key *key = CX_ARENA_NEW(l->arena, cx_trust_key);
    if (key == NULL)
        return cx_fail_nomem(err);
    CX_TRY(key_of_options(l->cli, args, key, err));
    s->keys = (cx_trust){key, 1};
    return CX_SUCCESS;
}

static void report_added_key(cx_cli_ledger *l, cx_json_list *list, cx_str key_id, const char *state)
{
    cx_json_list item = cx_json_list_begin(l->arena);
    if (!l->json) {
        cx_buf_printf(&l->out, "%-9s ", state);
        cx_shown_add(&l->out, key_id);
        cx_buf_add_byte(&l->out, '\n');
    }
    cx_json_put_str(&item, "key_id", key_id);
    cx_json_put_str(&item, "status", cx_str_z(state));
    cx_json_add_object(list, &item);
}

static cx_status add_key(cx_cli_traces *t, const cx_trust_key *given, cx_json_list *list,
                         cx_err *err)
{
    cx_trust_key key = *given;
    bool is_new = false;
    key.added_by = t->l->actor;
    cx_status status = cx_recorder_key_add(t->recorder, &key, &is_new, err);
    if (!cx_failed(status)) {
        report_added_key(t->l, list, key.key_id, is_new ? "added" : "there");
        return CX_SUCCESS;
    }
    if (status.code != CX_E_CONFLICT)
        return status;
    cx_cli_complain("%s", err->message);
    t->l->exit_code = CX_EXIT_BROKEN;
    report_added_key(t->l, list, key.key_id, "conflict");
    return CX_SUCCESS;
}

static cx_status add_keys_job(cx_cli_traces *t, void *state, cx_err *err)
{
    const add_state *s = state;
    cx_json_list list = cx_json_list_begin(t->l->arena), json = cx_json_list_begin(t->l->arena);
    for (size_t i = 0; i < s->keys.count; i++)
        CX_TRY(add_key(t, &s->keys.keys[i], &list, err));
    if (!t->l->json)
        return CX_SUCCESS;
    cx_json_put_array(&json, "keys", &list);
    return cx_cli_end_json(&json, &t->l->out, err);
}

static int run_key_add(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_WRITE, .feeds_index = true, .prepare = prepare_add, .work = add_keys_job};
    add_state s = {0};
    return cx_cli_run_traces(cli, args, &job, &s);
}

static const cx_cli_operand add_operands[] = {{"FILE", CX_CLI_FILE, NULL, true, false}};

static const cx_cli_option add_options[] = {
    CX_CLI_OPT("id", 0, CX_CLI_TEXT, "ID", "The key's id, as traces name it."),
    CX_CLI_OPT("public-key", 0, CX_CLI_TEXT, "BASE64",
               "The 32 bytes of the Ed25519 public key, in base64 or base64url."),
    CX_CLI_OPT_MANY("agent", 0, CX_CLI_TEXT, "HASH",
                    "The agent_id_hash it may sign for; may be repeated; default any agent."),
    CX_CLI_OPT("not-before", 0, CX_CLI_TEXT, "TIME", "Not valid for traces signed before TIME."),
    CX_CLI_OPT("not-after", 0, CX_CLI_TEXT, "TIME",
               "Not valid for traces signed at TIME or later."),
    CX_CLI_OPT("replaces", 0, CX_CLI_TEXT, "ID", "The key that this one is the next of."),
    CX_CLI_OPT("chain-profile", 0, CX_CLI_CHOICE, "spec-1.0|agent",
               "How the audit chains of its agents are checked; default found out."),
    CX_CLI_OPT("description", 0, CX_CLI_TEXT, "TEXT", "A description for people."),
    CX_CLI_OPTION_BY,
    CX_CLI_OPTIONS_TRACES,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_key_add = {
    .name = "key add",
    .purpose = "trust a key for signed traces",
    .about = "Adds all keys of FILE, a trust store of format cortex-trust-1, or the one that --id "
             "and --public-key name. The store is part of the ledger, which records who added a "
             "key and when. A key is valid for traces signed from --not-before until --not-after. "
             "Traces stored unverified because their key was unknown are verified again.\n\nA key "
             "id is never bound to another key. To rotate, add the new key under a new id with "
             "--replaces; older traces still verify with the old key.",
    .operands = add_operands,
    .operand_count = CX_COUNT_OF(add_operands),
    .options = add_options,
    .option_count = CX_COUNT_OF(add_options),
    .exits =
        "0 added, or present already\n1 an id is bound to another key: that key was not added\n2 "
        "usage error\n3 could not be done: no data directory, FILE is not a trust store, full disk",
    .example = "cortex key add keys.json\n"
               "cortex key add --id agent-976dbe504763 \\\n"
               "    --public-key LxJNYuOCOAYdSPXfsMTLJq62nw8MP6ZjEzKttkQgSUM",
    .run = run_key_add,
};

/* --- list and show ---------------------------------------------------------------------------- */

static void add_agents(cx_buf *out, const cx_json *agents)
{
    if (agents == NULL || agents->count == 0)
        cx_buf_add_z(out, "any agent");
    for (uint32_t i = 0; agents != NULL && i < agents->count; i++) {
        if (i != 0)
            cx_buf_add_z(out, ", ");
        cx_shown_add(out, cx_json_text(&agents->items[i]));
    }
}

static bool has_text(const cx_json *object, const char *name)
{
    return cx_json_get_str(object, cx_str_z(name)).data != NULL;
}

static void print_key_line(cx_buf *out, const cx_json *key)
{
    cx_cli_add_column(out, key, "key_id", 24);
    cx_buf_add_byte(out, ' ');
    cx_buf_printf(out, "%-12s ",
                  has_text(key, "compromised_since") ? "compromised"
                  : has_text(key, "revoked_at")      ? "revoked"
                                                     : "registered");
    add_agents(out, CX_JSON_GET(key, "agents"));
    if (has_text(key, "not_before") || has_text(key, "not_after")) {
        cx_buf_add_z(out, "; from ");
        cx_cli_add_member(out, key, "not_before");
        cx_buf_add_z(out, " until ");
        cx_cli_add_member(out, key, "not_after");
    }
    cx_buf_add_byte(out, '\n');
}

static void print_keys(cx_buf *out, const cx_json *value)
{
    const cx_json *keys = CX_JSON_GET(value, "keys");
    if (keys == NULL || keys->count == 0)
        cx_buf_add_z(out, "no keys: every trace is of an unknown key ('cortex key add')\n");
    for (uint32_t i = 0; keys != NULL && i < keys->count; i++)
        print_key_line(out, &keys->items[i]);
}

static cx_status list_keys_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_buf answer;
    (void)state;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = cx_recorder_answer_keys(t->recorder, &answer, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return status;
    }
    return cx_cli_print_answer(t->l, &answer, print_keys, err);
}

static int run_key_list(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {.access = CX_CLI_READ, .work = list_keys_job};
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_option list_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                             CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_key_list = {
    .name = "key list",
    .purpose = "list the keys that are trusted for signed traces",
    .about = "Lists the trust store: each key's id, state, agents and time of validity. With "
             "--json the output is a file of format cortex-trust-1, which 'cortex key add' and "
             "'cortex trace verify --trust' accept.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex key list --json > keys.json",
    .run = run_key_list,
};

static void print_key(cx_buf *out, const cx_json *key)
{
    static const char *const members[] = {"public_key",        "not_before",    "not_after",
                                          "replaces",          "revoked_at",    "revoked_reason",
                                          "compromised_since", "chain_profile", "description",
                                          "added_by",          "added_at"};
    cx_cli_add_member(out, key, "key_id");
    cx_buf_add_byte(out, '\n');
    cx_buf_printf(out, "  %-17s ", "agents");
    add_agents(out, CX_JSON_GET(key, "agents"));
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; i < CX_COUNT_OF(members); i++) {
        if (!has_text(key, members[i]))
            continue;
        cx_buf_printf(out, "  %-17s ", members[i]);
        cx_cli_add_member(out, key, members[i]);
        cx_buf_add_byte(out, '\n');
    }
}

static cx_status show_key_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_trust trust;
    cx_json value;
    cx_str id = cx_str_z(t->l->args->operands[0]);
    (void)state;
    CX_TRY(cx_recorder_trust(t->recorder, t->l->arena, &trust, err));
    const cx_trust_key *key = cx_trust_find(&trust, id);
    if (key == NULL)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoKey", CX_NO_OFFSET,
                          "%.*s is neither a file nor a key of the trust store", (int)id.size,
                          id.data);
    CX_TRY(cx_trust_key_json(key, t->l->arena, &value, err));
    if (!t->l->json) {
        print_key(&t->l->out, &value);
        return CX_SUCCESS;
    }
    CX_TRY(cx_json_write(&t->l->out, &value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(&t->l->out, '\n');
    return CX_SUCCESS;
}

int cx_cli_show_trusted_key(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {.access = CX_CLI_READ, .work = show_key_job};
    return cx_cli_run_traces(cli, args, &job, NULL);
}

/* --- revoke ----------------------------------------------------------------------------------- */

typedef struct revoke_state {
    cx_str reason;
    int64_t since_ns;
} revoke_state;

static cx_status prepare_revoke(cx_cli_ledger *l, void *state, cx_err *err)
{
    revoke_state *s = state;
    const char *reason = cx_cli_value(l->args, "reason");
    if (reason == NULL || reason[0] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "expected --reason TEXT: the reason is recorded permanently");
    s->reason = cx_str_z(reason);
    return cx_cli_time_option(l->args, "compromised-since", CX_TIME_NONE, &s->since_ns, err);
}

static cx_status revoke_key_job(cx_cli_traces *t, void *state, cx_err *err)
{
    const revoke_state *s = state;
    cx_str id = cx_str_z(t->l->args->operands[0]);
    CX_TRY(cx_recorder_key_revoke(t->recorder, id, s->reason, t->l->actor, s->since_ns, err));
    if (!t->l->json) {
        cx_buf_add_z(&t->l->out, "revoked ");
        cx_shown_add(&t->l->out, id);
        cx_buf_add_byte(&t->l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(t->l->arena);
    cx_json_put_str(&json, "key_id", id);
    cx_json_put_str(&json, "status", CX_STR("revoked"));
    return cx_cli_end_json(&json, &t->l->out, err);
}

static int run_key_revoke(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {.access = CX_CLI_WRITE,
                                         .feeds_index = true,
                                         .prepare = prepare_revoke,
                                         .work = revoke_key_job};
    revoke_state s;
    return cx_cli_run_traces(cli, args, &job, &s);
}

static const cx_cli_operand revoke_operands[] = {{"ID", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option revoke_options[] = {
    CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT", "Why; needed, and recorded for good."),
    CX_CLI_OPT("compromised-since", 0, CX_CLI_TEXT, "TIME",
               "The key may have been stolen at that time: traces signed at or after it are "
               "verified again, and broken."),
    CX_CLI_OPTION_BY, CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_key_revoke = {
    .name = "key revoke",
    .purpose = "revoke a key for signed traces",
    .about = "From now on no trace signed with that key is accepted, however old it claims to be. "
             "Traces received before keep their verdict, unless they are at or after "
             "--compromised-since. Revoking again keeps the first time; --compromised-since can "
             "only move back.",
    .operands = revoke_operands,
    .operand_count = CX_COUNT_OF(revoke_operands),
    .options = revoke_options,
    .option_count = CX_COUNT_OF(revoke_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example =
        "cortex key revoke agent-976dbe504763 --reason stolen --compromised-since 1768003200",
    .run = run_key_revoke,
};
