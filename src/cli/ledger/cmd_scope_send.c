/*
 * cmd_scope_send.c - `cortex scope send`, `scope list` and `scope receive`: scopes on their way
 * from grantor to grantee, in a data directory or through a server.
 */
#include "cli/ledger/read_scope.h"
#include "cli/server_call.h"
#include "crypto/api.h"
#include "recorder/api.h"

static int finish_answer(cx_cli *cli, const cx_cli_args *args, cx_status status, cx_buf *out,
                         const cx_err *err)
{
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, err)
                                 : cx_cli_answer(cli, out, CX_EXIT_HOLDS);
    cx_buf_done(out);
    return code;
}

/* --- send ------------------------------------------------------------------------------------- */

typedef struct send_state {
    cx_bytes bytes;
    cx_scope scope;
    cx_cli_keys keys;
    cx_str agent;
    cx_pubkey key;
} send_state;

static cx_status read_scope_file(cx_cli *cli, const cx_cli_args *args, send_state *s, cx_err *err)
{
    cx_err why;
    CX_TRY(cx_cli_read_file(cli, args->operands[0], &s->bytes, err));
    if (cx_failed(cx_scope_decode(s->bytes, &cli->arena, &s->scope, &why)))
        return cx_fail_at(err, CX_E_USAGE, "NonCanonical", CX_NO_OFFSET,
                          "%s is no scope: %s; 'cortex scope make' writes one", args->operands[0],
                          why.message);
    return CX_SUCCESS;
}

static cx_status prepare_send(cx_cli_ledger *l, void *arg, cx_err *err)
{
    send_state *s = arg;
    CX_TRY(cx_cli_read_keys(l->cli, l->args, &s->keys, err));
    CX_TRY(read_scope_file(l->cli, l->args, s, err));
    l->actor = s->scope.actor;
    return CX_SUCCESS;
}

/* The registered key of the grantor, as a server uses it. */
static cx_status find_registered_key(cx_cli_ledger *l, send_state *s, cx_err *err)
{
    const cx_recorder_options options = {.alloc = l->cli->alloc};
    const int64_t now_ns = (int64_t)l->cli->io->wall_ns(l->cli->io);
    cx_recorder *recorder;
    cx_trust trust;
    CX_TRY(cx_recorder_open(l->home, &options, &recorder, err));
    cx_status status = cx_recorder_trust(recorder, l->arena, &trust, err);
    cx_recorder_close(recorder);
    CX_TRY(status);
    s->agent = s->scope.granted_by;
    if (cx_trust_key_of_agent(&trust, s->agent, now_ns, &s->key))
        s->keys = (cx_cli_keys){&s->agent, &s->key, 1};
    return CX_SUCCESS;
}

static void add_sent_line(cx_buf *out, const cx_digest *id, cx_str granted_to, bool duplicate)
{
    cx_cli_add_digest(out, id);
    cx_buf_add_z(out, duplicate ? "  was sent before to " : "  sent to ");
    cx_shown_add(out, granted_to);
    cx_buf_add_byte(out, '\n');
}

static cx_status send_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    send_state *s = arg;
    cx_scope_use granted;
    cx_finding finding;
    uint64_t seq = 0;
    bool duplicate = false;
    if (s->keys.count == 0)
        CX_TRY(find_registered_key(l, s, err));
    CX_TRY(cx_cli_check_scope(l, s->bytes, &s->keys, (cx_str){NULL, 0}, &granted, &finding, err));
    if (finding.verdict != CX_HOLDS && s->keys.count == 0)
        return cx_fail_at(err, CX_E_DENIED, "UnknownAgent", CX_NO_OFFSET,
                          "no current key of %.*s is registered: 'cortex key add' registers one, "
                          "or give it with --key AGENT=KEY",
                          (int)s->scope.granted_by.size, s->scope.granted_by.data);
    if (finding.verdict != CX_HOLDS)
        return cx_fail_at(err, CX_E_DENIED, finding.reason, CX_NO_OFFSET,
                          "the scope does not hold: %s", finding.message);
    CX_TRY(cx_memory_send_scope(l->memory, s->bytes, l->actor, &seq, &duplicate, err));
    const cx_digest id = cx_digest_of(s->bytes);
    if (!l->json) {
        add_sent_line(&l->out, &id, s->scope.granted_to, duplicate);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_bool(&json, "duplicate", duplicate);
    cx_json_put_uint(&json, "entry", seq);
    cx_json_put_str(&json, "granted_to", s->scope.granted_to);
    cx_json_put_digest(&json, "id", &id);
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status send_to_server(cx_cli *cli, const cx_cli_args *args, cx_buf *out, cx_err *err)
{
    send_state s = {.bytes = {NULL, 0}};
    cx_buf body;
    cx_json answer;
    CX_TRY(read_scope_file(cli, args, &s, err));
    cx_buf_init(&body, cli->alloc);
    cx_buf_add_z(&body, "{\"scope\":\"");
    cx_base64_add(&body, s.bytes, CX_BASE64);
    cx_buf_add_z(&body, "\"}");
    cx_status status = cx_buf_check(&body, err);
    if (!cx_failed(status))
        status = cx_cli_server_call(cli, args, "/api/v1/scopes", cx_buf_bytes(&body), &answer, err);
    cx_buf_done(&body);
    CX_TRY(status);
    if (cx_cli_has(args, "json")) {
        CX_TRY(cx_json_write(out, &answer, CX_JSON_PY_COMPACT, err));
        cx_buf_add_byte(out, '\n');
        return cx_buf_check(out, err);
    }
    const cx_json *duplicate = CX_JSON_GET(&answer, "duplicate");
    const cx_digest id = cx_digest_of(s.bytes);
    add_sent_line(out, &id, s.scope.granted_to,
                  duplicate != NULL && duplicate->type == CX_JSON_TRUE);
    return cx_buf_check(out, err);
}

static int run_scope_send(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_send, send_job};
    send_state state = {.keys = {NULL, NULL, 0}};
    cx_err err = {0};
    cx_buf out;
    if (!cx_cli_server_given(args))
        return cx_cli_run_job(cli, args, &job, &state);
    cx_buf_init(&out, cli->alloc);
    cx_status status = send_to_server(cli, args, &out, &err);
    return finish_answer(cli, args, status, &out, &err);
}

static const cx_cli_operand send_operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option send_options[] = {CX_CLI_OPTION_SCOPE_KEY, CX_CLI_OPTIONS_SERVER,
                                             CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                             CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_scope_send = {
    .name = "scope send",
    .purpose = "send a scope to its grantee",
    .about = "Keeps a signed scope for its grantee: as an entry of the journal whose memories it "
             "opens, in the data directory or, with --url, in that of a server. The grantee "
             "receives it with 'scope receive', 'GET /api/v1/scopes' or the MCP tool scopes. The "
             "scope must hold; its grantor's key is the registered one, or that of --key. Sent "
             "again, nothing is written.",
    .operands = send_operands,
    .operand_count = CX_COUNT_OF(send_operands),
    .options = send_options,
    .option_count = CX_COUNT_OF(send_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex scope send helper.scope",
    .run = run_scope_send,
};

/* --- list ------------------------------------------------------------------------------------- */

/* One scope as GET /api/v1/scopes describes it. */
static void add_listed(const cx_json *scope, cx_buf *out)
{
    const cx_json *writable = CX_JSON_GET(scope, "writable");
    cx_str expires = CX_JSON_GET_STR(scope, "expires_at");
    cx_shown_add(out, CX_JSON_GET_STR(scope, "id"));
    cx_buf_add_z(out, "  ");
    cx_shown_add(out, CX_JSON_GET_STR(scope, "granted_by"));
    cx_buf_add_z(out, " lets ");
    cx_shown_add(out, CX_JSON_GET_STR(scope, "granted_to"));
    cx_buf_add_z(out, writable != NULL && writable->type == CX_JSON_TRUE
                          ? " read and write memories of "
                          : " read memories of ");
    cx_shown_add(out, CX_JSON_GET_STR(scope, "actor"));
    if (expires.size != 0) {
        cx_buf_add_z(out, " until ");
        cx_shown_add(out, expires);
    }
    cx_buf_add_byte(out, '\n');
}

static cx_status write_listing(const cx_cli_args *args, const cx_json *answer, cx_buf *out,
                               cx_err *err)
{
    const cx_json *scopes = cx_json_get_typed(answer, CX_STR("scopes"), CX_JSON_ARRAY);
    const cx_json *truncated = CX_JSON_GET(answer, "truncated");
    if (cx_cli_has(args, "json")) {
        CX_TRY(cx_json_write(out, answer, CX_JSON_PY_COMPACT, err));
        cx_buf_add_byte(out, '\n');
        return cx_buf_check(out, err);
    }
    for (uint32_t i = 0; scopes != NULL && i < scopes->count; i++)
        add_listed(&scopes->items[i], out);
    if (scopes == NULL || scopes->count == 0)
        cx_buf_add_z(out, "no scope was sent\n");
    if (truncated != NULL && truncated->type == CX_JSON_TRUE)
        cx_buf_printf(out, "only the first %d are listed\n", CX_SENT_SCOPES_MAX);
    return cx_buf_check(out, err);
}

static cx_status list_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    const char *to = cx_cli_value(l->args, "to");
    cx_json_list json = cx_json_list_begin(l->arena), list = cx_json_list_begin(l->arena);
    const cx_sent_scope *sent;
    cx_json value;
    size_t count;
    (void)arg;
    CX_TRY(cx_sent_scopes_of(l->home, to == NULL ? (cx_str){NULL, 0} : cx_str_z(to),
                             CX_SENT_SCOPES_MAX, l->arena, &sent, &count, err));
    for (size_t i = 0; i < count; i++) {
        cx_json_list item = cx_json_list_begin(l->arena);
        cx_view_sent_scope(&sent[i], &item);
        cx_json_add_object(&list, &item);
    }
    cx_json_put_array(&json, "scopes", &list);
    cx_json_put_bool(&json, "truncated", count == CX_SENT_SCOPES_MAX);
    CX_TRY(cx_json_list_end_object(&json, &value, err));
    return write_listing(l->args, &value, &l->out, err);
}

static int run_scope_list(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, list_job};
    cx_err err = {0};
    cx_json answer;
    cx_buf out;
    if (!cx_cli_server_given(args))
        return cx_cli_run_job(cli, args, &job, NULL);
    if (cx_cli_has(args, "to"))
        return cx_cli_misuse(args, "--to is of no use with --url: a server lists those that were "
                                   "sent to the agent of the token");
    cx_buf_init(&out, cli->alloc);
    cx_status status =
        cx_cli_server_call(cli, args, "/api/v1/scopes", (cx_bytes){NULL, 0}, &answer, &err);
    if (!cx_failed(status))
        status = write_listing(args, &answer, &out, &err);
    return finish_answer(cli, args, status, &out, &err);
}

static const cx_cli_option list_options[] = {
    CX_CLI_OPT("to", 0, CX_CLI_TEXT, "AGENT", "Only those that were granted to this agent."),
    CX_CLI_OPTIONS_SERVER, CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_scope_list = {
    .name = "scope list",
    .purpose = "list the scopes that were sent",
    .about = "Lists the scopes that were sent, of all actors: with --url those that were sent to "
             "the agent that the token names. The id is the one that the entries of a grantee's "
             "writes name as 'grant'.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex scope list --to helper",
    .run = run_scope_list,
};

/* --- receive ---------------------------------------------------------------------------------- */

/* The bytes where they are wanted, and with --json what they are. */
static cx_status deliver_scope(cx_cli *cli, const cx_cli_args *args, const cx_sent_scope *sent,
                               cx_buf *out, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(&cli->arena);
    CX_TRY(cx_cli_deliver(cli, args, sent->bytes, err));
    if (!cx_cli_has(args, "json"))
        return CX_SUCCESS;
    cx_view_sent_scope(sent, &json);
    return cx_cli_end_json(&json, out, err);
}

static cx_status receive_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_digest id;
    cx_sent_scope sent;
    bool found = false;
    (void)arg;
    CX_TRY(cx_cli_parse_digest("ID", l->args->operands[0], &id, err));
    CX_TRY(cx_sent_scope_find(l->home, &id, l->arena, &sent, &found, err));
    if (!found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NotFound", CX_NO_OFFSET,
                          "no scope with that id was sent; 'cortex scope list' lists them");
    return deliver_scope(l->cli, l->args, &sent, &l->out, err);
}

/* What a server answers is the scope of that id, or nothing. */
static cx_status receive_from_server(cx_cli *cli, const cx_cli_args *args, cx_buf *out, cx_err *err)
{
    cx_sent_scope sent = {.seq = 0};
    cx_digest id;
    cx_json answer;
    cx_buf bytes;
    CX_TRY(cx_cli_parse_digest("ID", args->operands[0], &id, err));
    cx_str path = cx_arena_printf(&cli->arena, "/api/v1/scopes/%s", args->operands[0]);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_cli_server_call(cli, args, path.data, (cx_bytes){NULL, 0}, &answer, err));
    cx_buf_init(&bytes, cli->alloc);
    bool decoded = cx_base64_decode(CX_JSON_GET_STR(&answer, "scope"), CX_BASE64, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    const cx_json *entry = CX_JSON_GET(&answer, "entry");
    sent.bytes = cx_buf_bytes(&bytes);
    sent.id = cx_digest_of(sent.bytes);
    if (!cx_failed(status) &&
        (!decoded || !cx_digest_eq(&sent.id, &id) || entry == NULL ||
         !cx_json_uint64(entry, &sent.seq) ||
         cx_failed(cx_scope_decode(sent.bytes, &cli->arena, &sent.scope, NULL))))
        status = cx_fail_at(err, CX_E_FORMAT, "WrongScope", CX_NO_OFFSET,
                            "the server answered something else than the scope of that id");
    if (!cx_failed(status))
        status = deliver_scope(cli, args, &sent, out, err);
    cx_buf_done(&bytes);
    return status;
}

static int run_scope_receive(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, receive_job};
    cx_err err = {0};
    cx_buf out;
    if (cx_cli_has(args, "json") && !cx_cli_has(args, "output"))
        return cx_cli_misuse(args, "--json needs --output FILE for the scope itself");
    if (!cx_cli_server_given(args))
        return cx_cli_run_job(cli, args, &job, NULL);
    cx_buf_init(&out, cli->alloc);
    cx_status status = receive_from_server(cli, args, &out, &err);
    return finish_answer(cli, args, status, &out, &err);
}

static const cx_cli_operand receive_operands[] = {{"ID", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option receive_options[] = {
    CX_CLI_OPTIONS_SERVER, CX_CLI_OPTION_OUTPUT("the scope"), CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_scope_receive = {
    .name = "scope receive",
    .purpose = "receive a scope that was sent",
    .about = "Writes the bytes of a scope that was sent, by its id ('scope list'). With --url the "
             "server gives it only to the agent that it was granted to. Check it then with "
             "'cortex-verify --key KEY FILE', where KEY is the grantor's.",
    .operands = receive_operands,
    .operand_count = CX_COUNT_OF(receive_operands),
    .options = receive_options,
    .option_count = CX_COUNT_OF(receive_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex scope receive ID --url http://127.0.0.1:8420 --token-file helper.token "
               "-o helper.scope",
    .run = run_scope_receive,
};
