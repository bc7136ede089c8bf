/*
 * command.c - the command gate: rows C03 .. C16 of run.md §8, in order; the first that matches
 * decides.  Invariants: command.h.
 *
 * Row C14 is in the table twice.  A script outside the repository, or reached through a symbolic
 * link, is rejected whether or not a prefix allows its interpreter; whether it equals the
 * baseline's is checked only for what a prefix allows.
 */
#include "command/command.h"

#include "rules/api.h"

typedef struct gate_check {
    const cx_run_command_options *options;
    const cx_run_argv *argv;
    cx_arena *arena;
    cx_err *err;
    cx_status status; /* the error of a check that failed */
    cx_str base;      /* of argv[0] */
    cx_str script;    /* the script that an interpreter runs, as given; no data = none */
    cx_run_token_path script_path;
    cx_str reason;
    cx_run_executable executable;
    size_t ignored_actions;
} gate_check;

/* A row: false when it does not match; else it sets `reason`. */
typedef bool (*row_check)(gate_check *j);

static bool reject_command(gate_check *j, const char *text)
{
    j->reason = cx_str_z(text);
    return true;
}

/* "TEXT 'WORD'" */
static bool reject_token(gate_check *j, const char *text, cx_str token)
{
    int size = token.size > 200 ? 200 : (int)token.size;
    j->reason = cx_arena_printf(j->arena, "%s '%.*s'", text, size, token.data);
    if (j->reason.data == NULL)
        j->status = cx_fail_nomem(j->err);
    return true;
}

/* A check failed: the command is not allowed (I3). */
static bool fail_check(gate_check *j, cx_status status)
{
    j->status = status;
    return true;
}

static bool is_one_of(cx_str token, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cx_str_is(token, list[i]))
            return true;
    }
    return false;
}
#define IS_ONE_OF(token, list) is_one_of((token), (list), CX_COUNT_OF(list))

static bool has_scheme(cx_str token)
{
    for (size_t i = 0; i + 3 <= token.size; i++) {
        if (memcmp(token.data + i, "://", 3) == 0)
            return true;
    }
    return false;
}

static bool has_slash(cx_str token)
{
    return token.size != 0 && memchr(token.data, '/', token.size) != NULL;
}

/* --- C03 .. C09 ------------------------------------------------------------------------------- */

static bool lacks_program(gate_check *j)
{
    if (j->argv->count == 0)
        return reject_command(j, "there is no command");
    return cx_run_token_trim(j->argv->items[0]).size == 0 &&
           reject_command(j, "the name of the program is empty");
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool sets_variable(gate_check *j)
{
    cx_str token = j->argv->items[0];
    size_t i = 0;
    while (i < token.size &&
           (is_letter(token.data[i]) || (i > 0 && token.data[i] >= '0' && token.data[i] <= '9')))
        i++;
    return i > 0 && i < token.size && token.data[i] == '=' &&
           reject_command(j, "it sets an environment variable; the environment is the governor's");
}

static bool network_policy_invalid(gate_check *j)
{
    static const char *const policies[] = {"deny", "on-request", "allow"};
    return !IS_ONE_OF(j->options->network_policy, policies) &&
           reject_token(j, "expected a network policy of deny, on-request or allow, found",
                        j->options->network_policy);
}

static bool pack_unknown(gate_check *j)
{
    return (j->options->rules == NULL || !j->options->rules->pack_known) &&
           reject_command(j, "the policy pack is not known: expected low, medium or high");
}

static bool is_forbidden(gate_check *j)
{
    const cx_run_command_rules *rules = j->options->rules;
    for (size_t i = 0; i < rules->forbidden_count; i++) {
        bool matches;
        cx_str action = rules->forbidden[i];
        if (cx_run_token_trim(action).size == 0) {
            j->ignored_actions++;
            continue;
        }
        cx_status status = cx_run_action_matches(action, j->argv, j->arena, &matches, j->err);
        if (cx_failed(status))
            return fail_check(j, status);
        if (matches)
            return reject_token(
                j, "it matches a forbidden action, or one that cannot be parsed:", action);
    }
    return false;
}

static bool reaches_network(gate_check *j)
{
    static const char *const tools[] = {"curl",   "wget", "ssh",      "scp",    "sftp",  "ftp",
                                        "telnet", "nc",   "ncat",     "netcat", "socat", "ping",
                                        "rsync",  "dig",  "nslookup", "host"};
    if (cx_str_is(j->options->network_policy, "allow") ||
        (cx_str_is(j->options->network_policy, "on-request") && j->options->network_approved))
        return false;
    if (IS_ONE_OF(j->argv->items[0], tools))
        return reject_token(
            j, "the network is not granted, and this program needs it:", j->argv->items[0]);
    for (size_t i = 1; i < j->argv->count; i++) {
        if (has_scheme(j->argv->items[i]))
            return reject_token(j, "the network is not granted, found an address in",
                                j->argv->items[i]);
    }
    return false;
}

static bool is_wrapper(gate_check *j)
{
    static const char *const wrappers[] = {
        "env",     "nice",    "nohup",  "timeout", "xargs",  "sudo",     "doas",    "su",
        "runuser", "busybox", "toybox", "setsid",  "stdbuf", "unshare",  "nsenter", "chroot",
        "strace",  "ltrace",  "gdb",    "script",  "watch",  "parallel", "find",    "awk",
        "gawk",    "sed",     "perl",   "ruby",    "lua",    "php",      "expect",  "ssh",
        "make",    "cmake",   "ninja",  "docker",  "podman"};
    return IS_ONE_OF(j->base, wrappers) &&
           reject_token(j, "it starts other programs, which are not checked:", j->base);
}

/* --- C10 .. C13 ------------------------------------------------------------------------------- */

/* Whether a token of a prefix matches a token of the command (C13). */
static bool prefix_token_matches(gate_check *j, cx_str prefix_token, cx_str token)
{
    cx_run_token_path path, wanted_path;
    if (!has_slash(prefix_token))
        return cx_str_eq(prefix_token, token);
    bool below = prefix_token.data[prefix_token.size - 1] == '/';
    if (cx_failed(j->status))
        return false;
    j->status = cx_run_token_as_path(token, j->arena, &path, j->err);
    if (!cx_failed(j->status))
        j->status = cx_run_token_as_path(prefix_token, j->arena, &wanted_path, j->err);
    if (cx_failed(j->status) || path.absolute || path.escapes || wanted_path.plain.size == 0)
        return false;
    if (!below)
        return cx_str_eq(path.plain, wanted_path.plain);
    return path.plain.size > wanted_path.plain.size + 1 &&
           cx_str_starts(path.plain, wanted_path.plain) &&
           path.plain.data[wanted_path.plain.size] == '/';
}

/* An allowlisted script of the repository: its path is the first token of a prefix. */
static bool is_repo_script(gate_check *j, cx_str token)
{
    const cx_run_command_rules *rules = j->options->rules;
    for (size_t i = 0; i < rules->allow_count; i++) {
        if (rules->allow[i].count != 0 && has_slash(rules->allow[i].items[0]) &&
            prefix_token_matches(j, rules->allow[i].items[0], token))
            return true;
    }
    return false;
}

static bool is_external_path(gate_check *j)
{
    cx_str token = j->argv->items[0];
    cx_run_token_path path;
    if (!has_slash(token))
        return false;
    cx_status status = cx_run_token_as_path(token, j->arena, &path, j->err);
    if (cx_failed(status))
        return fail_check(j, status);
    if (path.absolute || path.dots || !is_repo_script(j, token))
        return reject_token(j,
                            "a program is named, not given as a path, unless it is a script of the "
                            "allowlist:",
                            token);
    j->script = token;
    j->script_path = path;
    return false;
}

static bool is_interpreter(cx_str name)
{
    static const char *const names[] = {"sh",   "bash", "dash",   "ash",  "zsh", "ksh",
                                        "fish", "node", "nodejs", "deno", "bun"};
    return IS_ONE_OF(name, names) || cx_str_starts(name, CX_STR("python"));
}

static bool runs_text(cx_str token)
{
    static const char *const options[] = {"-c", "-e",     "-p",     "-s",     "-i",
                                          "-",  "--eval", "--exec", "--print"};
    return IS_ONE_OF(token, options) || cx_str_starts(token, CX_STR("-c")) ||
           cx_str_starts(token, CX_STR("-e")) || cx_str_starts(token, CX_STR("--eval=")) ||
           cx_str_starts(token, CX_STR("--exec=")) || cx_str_starts(token, CX_STR("--print="));
}

/* `python -m MODULE`, the only option allowed before an interpreter's script. */
static bool is_python_module(const gate_check *j)
{
    const cx_run_argv *argv = j->argv;
    return cx_str_starts(argv->items[0], CX_STR("python")) && argv->count > 2 &&
           cx_str_is(argv->items[1], "-m") && argv->items[2].size != 0 &&
           argv->items[2].data[0] != '-';
}

static bool interprets_text(gate_check *j)
{
    const cx_run_argv *argv = j->argv;
    if (has_slash(argv->items[0]) || !is_interpreter(argv->items[0]))
        return false;
    for (size_t i = 1; i < argv->count; i++) {
        if (runs_text(argv->items[i]))
            return reject_token(j, "an interpreter may run only a script file, found",
                                argv->items[i]);
    }
    if (argv->count < 2)
        return reject_command(j, "an interpreter needs a script");
    if (is_python_module(j))
        return false;
    cx_str script = argv->items[1];
    if (script.size != 0 && script.data[0] == '-')
        return reject_token(j, "an interpreter takes no option before its script, found", script);
    cx_status status = cx_run_token_as_path(script, j->arena, &j->script_path, j->err);
    if (cx_failed(status))
        return fail_check(j, status);
    j->script = script;
    return false;
}

/* -O of `git grep` starts a pager; it may be part of a cluster of short options. */
static bool opens_pager(cx_str token)
{
    if (token.size < 2 || token.data[0] != '-' || token.data[1] == '-')
        return false;
    for (size_t i = 1; i < token.size; i++) {
        if (token.data[i] == 'O')
            return true;
        if (strchr("efABCm", token.data[i]) != NULL)
            return false;
    }
    return false;
}

static bool changes_by_git(gate_check *j)
{
    static const char *const reading[] = {
        "status",   "diff",  "log",  "show",     "rev-parse",  "rev-list", "ls-files", "ls-tree",
        "cat-file", "blame", "grep", "describe", "merge-base", "name-rev", "shortlog"};
    const cx_run_argv *argv = j->argv;
    if (!cx_str_is(argv->items[0], "git"))
        return false;
    if (argv->count < 2)
        return reject_command(j, "git needs one of the sub-commands that only read");
    if (!IS_ONE_OF(argv->items[1], reading))
        return reject_token(j, "git may do what only reads (status, diff, log, ..), found",
                            argv->items[1]);
    bool grep = cx_str_is(argv->items[1], "grep");
    for (size_t i = 2; i < argv->count; i++) {
        if (grep && opens_pager(argv->items[i]))
            return reject_token(j, "an option with which git starts programs:", argv->items[i]);
    }
    return false;
}

static bool has_refused_option(gate_check *j)
{
    const cx_run_argv *argv = j->argv;
    cx_str sub = argv->count > 1 ? argv->items[1] : CX_STR("");
    for (size_t i = 1; i < argv->count; i++) {
        if (cx_run_option_refused(argv->items[0], sub, argv->items[i]))
            return reject_token(j,
                                "an option, whole or abbreviated, with which the program writes "
                                "files, leaves the repository or starts programs:",
                                argv->items[i]);
    }
    return false;
}

static bool matches_prefix(gate_check *j, const cx_run_argv *prefix)
{
    if (prefix->count == 0 || prefix->count > j->argv->count)
        return false;
    for (size_t i = 0; i < prefix->count; i++) {
        if (!prefix_token_matches(j, prefix->items[i], j->argv->items[i]))
            return false;
    }
    return true;
}

static bool not_allowlisted(gate_check *j)
{
    const cx_run_command_rules *rules = j->options->rules;
    for (size_t i = 0; i < rules->allow_count; i++) {
        if (matches_prefix(j, &rules->allow[i]))
            return cx_failed(j->status);
    }
    if (cx_failed(j->status))
        return true;
    return reject_token(j, "no prefix of the allowlist matches", j->argv->items[0]);
}

/* --- C14 .. C16 ------------------------------------------------------------------------------- */

/* Compares the script with the baseline, if there is a callback. */
static bool compare_script(gate_check *j, cx_run_script *out)
{
    const cx_run_command_options *options = j->options;
    cx_status status =
        options->script(options->script_arg, j->script, j->script_path.plain, out, j->err);
    if (cx_failed(status))
        j->status = status;
    return !cx_failed(status);
}

static bool script_outside(gate_check *j)
{
    cx_run_script found;
    if (j->script.data == NULL || j->options->lint)
        return false;
    if (j->script_path.absolute || j->script_path.escapes)
        return reject_token(j, "the script is outside the repository:", j->script);
    if (j->options->script == NULL || j->script_path.plain.size == 0)
        return false;
    if (!compare_script(j, &found))
        return true;
    if (found == CX_RUN_SCRIPT_OUTSIDE)
        return reject_token(j, "the script is outside the repository:", j->script);
    return found == CX_RUN_SCRIPT_SYMLINK &&
           reject_token(j, "the script is reached through a symbolic link:", j->script);
}

static bool script_changed(gate_check *j)
{
    cx_run_script found;
    if (j->script.data == NULL || j->options->lint)
        return false;
    if (j->options->script == NULL)
        return reject_token(j, "there is no baseline to compare the script with:", j->script);
    if (!compare_script(j, &found))
        return true;
    if (found == CX_RUN_SCRIPT_SAME)
        return false;
    if (found == CX_RUN_SCRIPT_MISSING)
        return reject_token(j, "the script does not exist:", j->script);
    if (found != CX_RUN_SCRIPT_DIFFERS)
        return reject_token(j, "the script is not a regular file:", j->script);
    cx_str scope = cx_arena_printf(j->arena, "script:%.*s", (int)j->script_path.plain.size,
                                   j->script_path.plain.data);
    if (scope.data == NULL)
        return fail_check(j, cx_fail_nomem(j->err));
    if (j->options->granted != NULL && j->options->granted(j->options->granted_arg, scope))
        return false;
    return reject_token(j,
                        "the script is not the one of the baseline (an approval script:PATH would "
                        "allow that):",
                        j->script);
}

static bool leaves_worktree(gate_check *j, cx_str value)
{
    cx_run_token_path path;
    if (has_scheme(value))
        return false;
    cx_status status = cx_run_token_as_path(value, j->arena, &path, j->err);
    if (cx_failed(status))
        return fail_check(j, status);
    return path.absolute || path.escapes;
}

static bool argument_outside(gate_check *j)
{
    for (size_t i = 1; i < j->argv->count; i++) {
        cx_str value = j->argv->items[i];
        while (true) {
            if (leaves_worktree(j, value))
                return reject_token(j, "an argument leads out of the worktree:", j->argv->items[i]);
            const char *equals = value.size == 0 ? NULL : memchr(value.data, '=', value.size);
            if (equals == NULL)
                break;
            value = cx_str_from(equals + 1, value.size - (size_t)(equals + 1 - value.data));
        }
    }
    return false;
}

static bool not_trusted(gate_check *j)
{
    const cx_run_command_options *options = j->options;
    cx_str name = j->argv->items[0];
    const char *why = NULL;
    cx_status status;
    if (options->lint)
        return false;
    if (!has_slash(name))
        status = cx_run_trusted_find(options->trust, name, j->arena, &j->executable, &why, j->err);
    else if (options->worktree == NULL)
        return reject_token(j, "there is no worktree to run the script from:", name);
    else
        status = cx_run_trusted_script(options->worktree, j->script_path.plain, j->arena,
                                       &j->executable, &why, j->err);
    if (cx_failed(status))
        return fail_check(j, status);
    if (why == NULL)
        return false;
    j->reason = cx_arena_printf(j->arena, "'%.*s' cannot be run: %s",
                                name.size > 200 ? 200 : (int)name.size, name.data, why);
    return j->reason.data == NULL ? fail_check(j, cx_fail_nomem(j->err)) : true;
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct {
    const char *rule;
    row_check matches;
} rows[] = {
    {"C03", lacks_program},   {"C04", sets_variable},      {"C05", network_policy_invalid},
    {"C06", pack_unknown},    {"C07", is_forbidden},       {"C08", reaches_network},
    {"C09", is_wrapper},      {"C10", is_external_path},   {"C11", interprets_text},
    {"C12", changes_by_git},  {"C12", has_refused_option}, {"C14", script_outside},
    {"C13", not_allowlisted}, {"C14", script_changed},     {"C15", argument_outside},
    {"C16", not_trusted},
};

cx_status cx_run_argv_check(const cx_run_command_options *options, const cx_run_argv *argv,
                            cx_arena *arena, cx_run_command_verdict *out, cx_err *err)
{
    CX_ASSERT(options != NULL);
    CX_ASSERT(argv->count == 0 || argv->items != NULL);
    cx_run_command_verdict verdict = {.rule = "C16", .lexed = true, .argv = *argv, .allow = true};
    gate_check j = {
        .options = options, .argv = argv, .arena = arena, .err = err, .status = CX_SUCCESS};
    if (argv->count != 0)
        j.base = cx_run_token_base(argv->items[0]);
    for (size_t i = 0; i < CX_COUNT_OF(rows) && verdict.allow; i++) {
        if (!rows[i].matches(&j))
            continue;
        verdict.allow = false;
        verdict.rule = rows[i].rule;
    }
    CX_TRY(j.status);
    CX_ASSERT(!verdict.allow || j.reason.size == 0); /* I2 */
    verdict.reason = j.reason;
    verdict.executable = j.executable;
    verdict.ignored_actions = j.ignored_actions;
    *out = verdict;
    return CX_SUCCESS;
}

cx_status cx_run_command_check(const cx_run_command_options *options, cx_str text, cx_arena *arena,
                               cx_run_command_verdict *out, cx_err *err)
{
    cx_run_lexed lexed;
    CX_TRY(cx_run_lex(text, arena, &lexed, err));
    if (lexed.rule == NULL)
        return cx_run_argv_check(options, &lexed.argv, arena, out, err);
    memset(out, 0, sizeof *out);
    out->rule = lexed.rule;
    out->reason = cx_arena_printf(arena, "found %s at byte %zu; the command is run without a shell",
                                  lexed.why, lexed.offset);
    return out->reason.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status executable_json(const cx_run_executable *executable, cx_arena *arena, cx_json *out,
                                 cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena);
    char hex[2 * sizeof executable->sha256.bytes];
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof executable->sha256.bytes; i++) {
        hex[2 * i] = digits[executable->sha256.bytes[i] >> 4];
        hex[2 * i + 1] = digits[executable->sha256.bytes[i] & 15];
    }
    cx_str sha256 = cx_arena_copy_str(arena, cx_str_from(hex, sizeof hex));
    if (sha256.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list_put(&object, CX_STR("path"), cx_json_make_str(executable->name));
    cx_json_list_put(&object, CX_STR("sha256"), cx_json_make_str(sha256));
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_command_verdict_json(const cx_run_command_verdict *verdict, cx_str text,
                                      cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT(verdict->rule != NULL); /* I1 */
    cx_json_list object = cx_json_list_begin(arena);
    cx_json value;
    cx_json_list_put(&object, CX_STR("passed"), cx_json_make_bool(verdict->allow));
    cx_json_list_put(&object, CX_STR("rule"), cx_json_make_str(cx_str_z(verdict->rule)));
    if (verdict->lexed) {
        CX_TRY(cx_run_argv_json(&verdict->argv, arena, &value, err));
        cx_json_list_put(&object, CX_STR("argv"), value);
    }
    if (!verdict->allow) {
        cx_json_list_put(&object, CX_STR("cmd"), cx_json_make_str(text));
        cx_json_list_put(&object, CX_STR("reason"), cx_json_make_str(verdict->reason));
    } else if (verdict->executable.path.data != NULL) {
        CX_TRY(executable_json(&verdict->executable, arena, &value, err));
        cx_json_list_put(&object, CX_STR("executable"), value);
    }
    return cx_json_list_end_object(&object, out, err);
}
