/*
 * cmd_exec.c - `cortex exec -- CMD`: one command in a sandbox, with its network through the proxy
 * (docs/exec.md, docs/formats/egress.md).
 *
 *   X1  The command is not started before `exec.start` is on the disk.
 *   X2  The exit code is the command's own once it was started; what went wrong before is 2, 3 or
 *       4, with a line on standard error that begins with "cortex: exec:".
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/exec/exec_places.h"
#include "cli/ledger/ledger.h"
#include "cli/run/exec_policy.h"
#include "cli/run/run_ledger.h"
#include "cli/run/run_place.h"
#include "os/api.h"
#include "sandbox/api.h"

#define TIMEOUT_S_MAX 86400
#define ARGV_BYTES_KEPT ((size_t)64 << 10)

static atomic_bool end_requested;

static void on_signal(int number)
{
    (void)number;
    atomic_store(&end_requested, true);
}

static void catch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

typedef struct exec_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_arena *arena; /* of the main thread */
    cx_cli_place place;
    bool has_place;
    cx_cli_exec_policy policy;
    cx_cli_run_ledger ledger;
    cx_str actor;
    char id[CX_RUN_ID_SIZE + 1]; /* "exec_.." */
    cx_cli_exec_places at;
    cx_sandbox *box;
    cx_egress *egress;
    cx_egress_totals totals;
    cx_sandbox_result result;
    bool started;
} exec_job;

/* --- entries ---------------------------------------------------------------------------------- */

static cx_status append(exec_job *j, cx_dotted_kind kind, cx_json_list *payload, cx_err *err)
{
    cx_buf text;
    cx_json value;
    char kind_text[64];
    cx_str name = cx_kinds_name(kind);
    CX_ASSERT(name.size < sizeof kind_text);
    memcpy(kind_text, name.data, name.size);
    kind_text[name.size] = 0;
    CX_TRY(cx_json_list_end_object(payload, &value, err));
    cx_buf_init(&text, j->cli->alloc);
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = j->ledger.ledger.append(j->ledger.ledger.ctx, kind_text, cx_str_z(j->id),
                                         cx_buf_bytes(&text), NULL, err);
    cx_buf_done(&text);
    return status;
}

static cx_json_list begin_payload(const exec_job *j, cx_arena *arena)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_put_uint(&list, "v", 1);
    cx_json_put_z(&list, "exec", j->id);
    return list;
}

static cx_status record_connection(exec_job *j, cx_dotted_kind kind, const cx_egress_record *record,
                                   cx_err *err)
{
    cx_arena arena; /* any thread may be here */
    cx_arena_init(&arena, j->cli->alloc, 0);
    cx_json_list list = begin_payload(j, &arena);
    cx_status status = cx_egress_record_json(record, kind == CX_KIND_EGRESS_CONNECTION, &list, err);
    if (!cx_failed(status))
        status = append(j, kind, &list, err);
    cx_arena_done(&arena);
    return status;
}

static cx_status on_open(void *arg, const cx_egress_record *record, cx_err *err)
{
    return record_connection(arg, CX_KIND_EGRESS_OPEN, record, err);
}

static cx_status on_end(void *arg, const cx_egress_record *record, cx_err *err)
{
    return record_connection(arg, CX_KIND_EGRESS_CONNECTION, record, err);
}

static void put_hosts(cx_json_list *list, const char *name, const cx_egress_list *hosts)
{
    cx_json_list items = cx_json_list_begin(list->arena);
    for (size_t i = 0; i < hosts->count; i++) {
        const cx_egress_pattern *p = &hosts->items[i];
        bool v6 = p->host.is_address && p->host.address.is_v6;
        cx_str text = p->host.port == 0
                          ? cx_arena_printf(list->arena, "%s%s%s%s", p->wildcard ? "*." : "",
                                            v6 ? "[" : "", p->host.name, v6 ? "]" : "")
                          : cx_arena_printf(list->arena, "%s%s%s%s:%u", p->wildcard ? "*." : "",
                                            v6 ? "[" : "", p->host.name, v6 ? "]" : "",
                                            (unsigned)p->host.port);
        cx_json_list_add(&items, cx_json_make_str(text));
    }
    cx_json_put_array(list, name, &items);
}

static void put_network(exec_job *j, cx_json_list *list)
{
    static const char *const words[] = {"deny", "allowlist", "allow"};
    const cx_egress_policy *policy = &j->policy.egress;
    cx_json_list lists = cx_json_list_begin(j->arena);
    cx_json_put_z(list, "network", words[policy->network]);
    for (size_t i = 0; i < policy->list_count; i++) {
        cx_json_list one = cx_json_list_begin(j->arena);
        cx_json items;
        put_hosts(&one, "hosts", &policy->lists[i]);
        if (!cx_failed(cx_json_list_end_object(&one, &items, NULL)))
            cx_json_list_add(&lists, items);
    }
    cx_json_put_array(list, "lists", &lists);
    put_hosts(list, "private_hosts", &policy->private_hosts);
    cx_json_put_strs(list, "credentials", policy->credentials, policy->credential_count);
    cx_json_put_z(list, "policy", j->policy.from);
    cx_json_put_maybe(list, "commit", j->policy.commit);
}

/* At most ARGV_BYTES_KEPT of it; `argv_bytes` and `argv_sha256` are of all words, each with the
 * zero byte that ends it, so that nothing hides after what is kept. */
static void put_argv(exec_job *j, cx_json_list *list)
{
    cx_json_list argv = cx_json_list_begin(j->arena);
    size_t kept = 0;
    uint64_t bytes = 0;
    cx_sha256 hash;
    cx_sha256_init(&hash);
    for (size_t i = 0; i < j->args->operand_count; i++) {
        cx_str word = cx_str_z(j->args->operands[i]);
        bytes += word.size + 1;
        cx_sha256_add(&hash, word.data, word.size + 1);
        if (kept == ARGV_BYTES_KEPT)
            continue;
        if (word.size > ARGV_BYTES_KEPT - kept)
            word.size = ARGV_BYTES_KEPT - kept;
        kept += word.size;
        cx_json_list_add(&argv, cx_json_make_str(cx_json_shown(word, j->arena)));
    }
    const cx_digest digest = cx_sha256_end(&hash);
    cx_json_put_array(list, "argv", &argv);
    cx_json_put_uint(list, "argv_bytes", bytes);
    cx_json_put_digest(list, "argv_sha256", &digest);
}

/* What the command could see and write, and which variables it was given: names, not values. */
static void put_places(exec_job *j, cx_json_list *list)
{
    cx_json_list writes = cx_json_list_begin(j->arena), reads = cx_json_list_begin(j->arena),
                 names = cx_json_list_begin(j->arena);
    const cx_cli_given *given = NULL;
    cx_json_put_str(list, "cwd", cx_json_shown(cx_str_z(j->at.cwd), j->arena));
    for (size_t i = 0; i < j->at.write_count; i++)
        cx_json_list_add(&writes,
                         cx_json_make_str(cx_json_shown(cx_str_z(j->at.writes[i]), j->arena)));
    cx_json_put_array(list, "write", &writes);
    for (size_t i = 0; i < j->at.read_count; i++)
        cx_json_list_add(&reads,
                         cx_json_make_str(cx_json_shown(cx_str_z(j->at.reads[i]), j->arena)));
    cx_json_put_array(list, "read", &reads);
    while ((given = cx_cli_next(j->args, "env", given)) != NULL)
        if (getenv(given->values[0]) != NULL)
            cx_json_list_add(&names,
                             cx_json_make_str(cx_json_shown(cx_str_z(given->values[0]), j->arena)));
    cx_json_put_array(list, "env", &names);
}

static cx_status record_start(exec_job *j, cx_err *err)
{
    cx_json_list list = begin_payload(j, j->arena);
    cx_json sandbox;
    put_argv(j, &list);
    put_places(j, &list);
    put_network(j, &list);
    if (j->policy.has_contract) {
        cx_json_put_str(&list, "contract", j->policy.contract.task_id);
        cx_json_put_digest(&list, "contract_sha256", &j->policy.contract.sha256);
    } else {
        cx_json_put_null(&list, "contract");
    }
    CX_TRY(cx_sandbox_describe(
        j->box, j->policy.egress.network == CX_EGRESS_DENY ? CX_SANDBOX_OFF : CX_SANDBOX_PROXY,
        j->arena, &sandbox, err));
    cx_json_put(&list, "sandbox", sandbox);
    return append(j, CX_KIND_EXEC_START, &list, err);
}

static cx_status record_end(exec_job *j, const cx_err *failure, cx_err *err)
{
    cx_json_list list = begin_payload(j, j->arena);
    const cx_egress_totals *t = &j->totals;
    cx_json_put_bool(&list, "started", j->started);
    if (j->started) {
        cx_json_put_int(&list, "exit_code", j->result.exit_code);
        cx_json_put_int(&list, "signal", j->result.process.signal);
        cx_json_put_bool(&list, "timed_out", j->result.process.timed_out);
        cx_json_put_uint(&list, "duration_ns", j->result.process.duration_ns);
    }
    cx_json_put_maybe(&list, "error",
                      failure == NULL ? cx_str_from("", 0) : cx_str_z(failure->message));
    cx_json_put_uint(&list, "connections", t->connections);
    cx_json_put_uint(&list, "allowed", t->allowed);
    cx_json_put_uint(&list, "refused", t->refused);
    cx_json_put_uint(&list, "failed", t->failed);
    cx_json_put_uint(&list, "unrecorded", t->unrecorded);
    cx_json_put_uint(&list, "bytes_out", t->bytes_out);
    cx_json_put_uint(&list, "bytes_in", t->bytes_in);
    cx_cli_exec_places_put_made(&j->at, &list);
    return append(j, CX_KIND_EXEC_END, &list, err);
}

/* --- the command ------------------------------------------------------------------------------ */

/* A name without a slash is searched in the trusted folders, as inside. */
static cx_status find_program(exec_job *j, const char **out, cx_err *err)
{
    static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/bin"};
    const char *name = j->args->operands[0];
    cx_facts facts;
    cx_err ignored;
    *out = name;
    if (strchr(name, '/') != NULL)
        return CX_SUCCESS;
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++) {
        cx_str path = cx_arena_printf(j->arena, "%s/%s", folders[i], name);
        if (path.data == NULL)
            return cx_fail_nomem(err);
        *out = path.data;
        if (!cx_failed(cx_path_facts(path.data, true, &facts, &ignored)) &&
            facts.kind == CX_FILE_REGULAR && (facts.mode & 0111) != 0)
            return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_USAGE,
                   "there is no program '%s' in /usr/local/bin, /usr/bin, /bin, which are what a "
                   "sandbox shows; name it with its path, and its folder with --read",
                   name);
}

/* Its folder: a file cannot be hidden.  What is shown below that folder stays shown. */
static cx_status hide_store(exec_job *j, const char *store, const char **out, cx_err *err)
{
    const char *slash = strrchr(store, '/');
    cx_str folder =
        cx_arena_printf(j->arena, "%.*s", slash == store ? 1 : (int)(slash - store), store);
    if (folder.data == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < j->at.bind_count; i++)
        if (strcmp(j->at.binds[i].path, folder.data) == 0 ||
            strcmp(j->at.binds[i].path, store) == 0)
            return cx_fail(err, CX_E_DENIED,
                           "the store of credentials %s is in a folder that the command would see; "
                           "keep it in a folder of its own",
                           store);
    *out = folder.data;
    return CX_SUCCESS;
}

static cx_status open_box(exec_job *j, cx_err *err)
{
    const char **hide = CX_ARENA_ARRAY(j->arena, const char *, 3);
    const char **names = CX_ARENA_ARRAY(j->arena, const char *, j->args->given_count + 1);
    const char *real = NULL, *store = cx_cli_credentials_path(j->cli);
    const cx_cli_given *given = NULL;
    cx_sandbox_options options = {0};
    cx_err ignored;
    if (hide == NULL || names == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_cli_exec_real_path(j->cli, j->ledger.path, &real, err));
    hide[options.hide_count++] = real;
    if (store != NULL && !cx_failed(cx_cli_exec_real_path(j->cli, store, &real, &ignored)))
        CX_TRY(hide_store(j, real, &hide[options.hide_count++], err));
    while ((given = cx_cli_next(j->args, "env", given)) != NULL)
        names[options.env_name_count++] = given->values[0];
    options.hide = hide;
    options.env_names = names;
    CX_TRY(cx_sandbox_open(&options, &j->box, err));
    for (unsigned i = 0; i < CX_SANDBOX_LAYER_COUNT; i++)
        if ((j->box->missing & 1u << i) != 0)
            return cx_fail(err, CX_E_DENIED, "the sandbox has no layer '%s': %s%s%s",
                           cx_sandbox_layer_name((cx_sandbox_layer)(1u << i)),
                           j->box->reason[i] == NULL ? "it is not available" : j->box->reason[i],
                           j->box->fix[i] == NULL ? "" : "; ",
                           j->box->fix[i] == NULL ? "" : j->box->fix[i]);
    return CX_SUCCESS;
}

static cx_status start_egress(exec_job *j, cx_err *err)
{
    if (j->policy.egress.network == CX_EGRESS_DENY)
        return CX_SUCCESS;
    const cx_egress_options options = {.io = j->cli->io,
                                       .policy = &j->policy.egress,
                                       .credentials = &j->policy.credentials,
                                       .sink = {on_open, on_end, j}};
    return cx_egress_start(&options, &j->egress, err);
}

static cx_status run_command(exec_job *j, cx_err *err)
{
    const char *program;
    cx_socket channel = CX_SOCKET_NONE;
    CX_TRY(find_program(j, &program, err));
    const char **argv = CX_ARENA_ARRAY(j->arena, const char *, j->args->operand_count + 1);
    if (argv == NULL)
        return cx_fail_nomem(err);
    memcpy(argv, j->args->operands, j->args->operand_count * sizeof *argv);
    argv[j->args->operand_count] = NULL;
    CX_TRY(record_start(j, err)); /* X1 */
    CX_TRY(start_egress(j, err));
    cx_sandbox_spec spec = CX_SANDBOX_SPEC_INIT;
    spec.argv = argv;
    spec.path = program;
    spec.cwd = j->at.cwd;
    spec.binds = j->at.binds;
    spec.bind_count = j->at.bind_count;
    spec.run_id = j->id;
    spec.in = CX_SPAWN_IN_FILE;
    spec.input_file = STDIN_FILENO;
    spec.out = (cx_spawn_output){CX_SPAWN_OUT_FILE, NULL, STDOUT_FILENO, UINT64_MAX, false};
    spec.errout = (cx_spawn_output){CX_SPAWN_OUT_FILE, NULL, STDERR_FILENO, UINT64_MAX, false};
    spec.timeout_ms = cx_cli_number(j->args, "timeout", 0) * 1000;
    spec.cancel = &end_requested;
    if (j->egress != NULL) {
        channel = cx_egress_channel(j->egress);
        spec.egress = &channel;
    }
    CX_TRY(cx_sandbox_run(j->box, &spec, &j->result, err));
    j->started = true;
    return CX_SUCCESS;
}

/* Each kind of refusal in a line, and how to see all. */
static void report_refusals(const exec_job *j)
{
    const cx_egress_totals *t = &j->totals;
    uint64_t told = 0;
    cx_cli_complain("exec: %llu of %llu connections refused:", (unsigned long long)t->refused,
                    (unsigned long long)t->connections);
    for (size_t i = 0; i < t->refusal_count; i++) {
        told += t->refusals[i].count;
        if (t->refusals[i].count == 1)
            cx_cli_remark("%s", t->refusals[i].what);
        else
            cx_cli_remark("%s, %llu times", t->refusals[i].what,
                          (unsigned long long)t->refusals[i].count);
    }
    if (told < t->refused)
        cx_cli_remark("and %llu others", (unsigned long long)(t->refused - told));
    cx_cli_remark(
        "'cortex log --actor %.*s --kind egress.connection --json' has each; --allow HOST "
        "allows one",
        (int)j->actor.size, j->actor.data);
}

static void report(const exec_job *j)
{
    const cx_egress_totals *t = &j->totals;
    if (t->refused != 0)
        report_refusals(j);
    if (t->record_failed)
        cx_cli_complain("exec: a connection could not be recorded, and no other was made after it: "
                        "%s",
                        t->record_error);
    if (j->started && j->egress == NULL && j->result.exit_code != 0 &&
        !cx_cli_has(j->args, "network"))
        cx_cli_remark("exec: the command had no network; if it needed it, --allow HOST lets one "
                      "host through");
}

/* --- all of it -------------------------------------------------------------------------------- */

static cx_status find_actor(exec_job *j, cx_err *err)
{
    cx_oid root;
    char text[CX_OID_TEXT_SIZE];
    cx_err ignored;
    j->actor = CX_STR("exec:local");
    if (!j->has_place || cx_failed(cx_git_root_commit(j->place.git, &root, &ignored)))
        return CX_SUCCESS; /* outside of a repository, or before its first commit */
    cx_oid_text(&root, text);
    j->actor = cx_arena_printf(j->arena, "exec:%.16s", text);
    return j->actor.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status prepare(exec_job *j, cx_err *err)
{
    char run_id[CX_RUN_ID_SIZE];
    if (cx_cli_number(j->args, "timeout", 0) > TIMEOUT_S_MAX)
        return cx_fail(err, CX_E_USAGE, "option --timeout: expected at most %d seconds",
                       TIMEOUT_S_MAX);
    CX_TRY(cx_sandbox_supported(err));
    CX_TRY(cx_cli_exec_real_path(j->cli, ".", &j->at.cwd, err));
    cx_status status = cx_cli_place_open_at(j->cli, NULL, &j->place, err);
    if (cx_failed(status) && status.code != CX_E_NOT_FOUND)
        return status;
    j->has_place = !cx_failed(status);
    CX_TRY(
        cx_cli_exec_policy_load(j->cli, j->args, j->has_place ? &j->place : NULL, &j->policy, err));
    CX_TRY(find_actor(j, err));
    CX_TRY(cx_run_id_make(j->cli->io, run_id, err));
    (void)snprintf(j->id, sizeof j->id, "exec_%s", run_id + strlen("run_"));
    CX_TRY(cx_cli_run_ledger_open(&j->ledger, j->cli, j->args, j->actor, err));
    j->ledger.committed = true;
    j->at.cli = j->cli;
    j->at.repo = j->has_place ? &j->place : NULL;
    j->at.data = j->ledger.path;
    CX_TRY(cx_cli_exec_places_find(&j->at, j->args,
                                   j->policy.has_contract ? &j->policy.contract : NULL, err));
    return open_box(j, err);
}

static int exit_code_of(cx_code code)
{
    return code == CX_E_DENIED  ? CX_EXIT_REJECTED
           : code == CX_E_USAGE ? CX_EXIT_USAGE
                                : CX_EXIT_UNCHECKED;
}

static int run_exec(cx_cli *cli, const cx_cli_args *args)
{
    exec_job j = {.cli = cli, .args = args, .arena = &cli->arena};
    cx_err err = {0}, late = {0};
    catch_signals();
    cx_status status = prepare(&j, &err);
    bool prepared = !cx_failed(status);
    if (prepared)
        status = run_command(&j, &err);
    cx_egress_stop(j.egress, &j.totals);
    if (prepared) {
        cx_status recorded = record_end(&j, cx_failed(status) ? &err : NULL, &late);
        if (cx_failed(recorded))
            cx_cli_complain("exec: the end could not be recorded: %s", late.message);
        report(&j);
    }
    if (cx_failed(status)) {
        cx_cli_complain("exec: %s", err.message);
        if (err.tag != NULL && strcmp(err.tag, "NoHome") == 0)
            cx_cli_remark("each connection and each command is recorded: 'cortex init --home' "
                          "makes a data directory");
    }
    cx_sandbox_close(j.box);
    cx_cli_run_ledger_close(&j.ledger);
    cx_cli_place_close(&j.place);
    return cx_failed(status) ? exit_code_of(status.code) : j.result.exit_code;
}

static const cx_cli_operand operands[] = {{"COMMAND", CX_CLI_TEXT, NULL, false, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("network", 0, CX_CLI_CHOICE, "deny|allowlist|allow",
               "deny: none. allowlist: hosts that the policy or --allow names. allow: what the "
               "policy lists, or every public host when it has no list. Default: the policy's "
               "word; allowlist with --allow; else deny."),
    CX_CLI_OPT_MANY("allow", 0, CX_CLI_TEXT, "HOST[:PORT]",
                    "Allow this host too, or *.HOST: those below it. Without PORT: 80 and 443."),
    CX_CLI_OPT_MANY("allow-private", 0, CX_CLI_TEXT, "HOST:PORT",
                    "Allow this host although its address is private or of this machine."),
    CX_CLI_OPT_MANY("credential", 0, CX_CLI_TEXT, "NAME",
                    "Add this credential of your store to requests to its host; the command never "
                    "sees it (docs/exec.md)."),
    CX_CLI_OPT_MANY("write", 0, CX_CLI_FILE, "PATH",
                    "What may be written; default: the working folder."),
    CX_CLI_OPT_FLAG("read-only", 0, "Nothing may be written but /tmp and the home inside."),
    CX_CLI_OPT_MANY("read", 0, CX_CLI_FILE, "PATH", "Show this folder, too, read-only."),
    CX_CLI_OPT_MANY("env", 0, CX_CLI_TEXT, "NAME",
                    "Pass this variable on; others are not (PATH, HOME, LANG are the sandbox's)."),
    CX_CLI_OPT("policy", 0, CX_CLI_FILE, "FILE",
               "Use this policy; default policies/egress.json of the repository's HEAD."),
    CX_CLI_OPT("contract", 0, CX_CLI_FILE, "FILE",
               "Narrow by this task contract: its network, network_hosts and allowed_paths."),
    CX_CLI_OPT("timeout", 0, CX_CLI_COUNT, "SECONDS", "End it after so long; default: never."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_exec = {
    .name = "exec",
    .purpose = "run a command in a sandbox, with its network through a recording proxy",
    .about =
        "Runs COMMAND in the sandbox of governed runs: it sees a read-only system, the repository "
        "read-only, and may write the working folder; it sees no other process, and no network but "
        "a proxy that lets through what the policy names. Each connection is an entry of the "
        "journal exec:REPOSITORY with host, port, server name, address, verdict, rule and bytes. "
        "Put -- before COMMAND.\n\nThe command is found in /usr/local/bin, /usr/bin and /bin. Its "
        "standard input, output and error are those of this program; it has no terminal. .git, "
        "policies and the settings of agents and editors in a writable folder are read-only.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "N the command's own: 128 + n after signal n, 124 after --timeout, 126 and 127 when "
             "it cannot be executed\n2 usage error\n3 not started: no data directory, or the "
             "sandbox failed\n4 not started: the contract is not valid, or this machine lacks a "
             "layer of the sandbox; the line on standard error begins with \"cortex: exec:\"",
    .example = "cortex exec --network deny -- make test\n"
               "cortex exec --allow '*.npmjs.org' -- npm ci\n"
               "cortex exec --allow api.example.org --credential example -- curl "
               "http://api.example.org/v1/me",
    .run = run_exec,
};
