/*
 * demo_scenario.c - the scenario of `cortex demo`, acted out by the program's own commands.
 *
 * Every line after a "$" is a command that was run in DIR or DIR/shop with CORTEX_HOME set to
 * DIR/home.  Its output is shown shortened, and its exit code must be the expected one.  The whole
 * output is in DIR/demo.log.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/api.h"
#include "os/api.h"
#include "cli/demo/demo.h"
#include "cli/ledger/ledger.h"
#include "git/api.h"
#include "sandbox/api.h"

typedef struct scenario {
    cx_cli *cli;
    const char *folder; /* absolute */
    const char *shop;
    cx_str program, verifier, path;
    cx_buf log;
    cx_buf last; /* what the last command printed */
    bool colour;
    unsigned lines; /* of output that are shown */
    unsigned surprises;
    cx_str fact, trace, run, commit, public_key;
    cx_demo_agent researcher, planner, coder;
} scenario;

/* --- printing --------------------------------------------------------------------------------- */

static void print_line(scenario *s, const char *format, ...) CX_PRINTF(2, 3);
static void print_line(scenario *s, const char *format, ...)
{
    va_list args;
    char text[2048];
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cx_cli_out_write(&s->cli->out, cx_str_z(text));
    cx_buf_add_z(&s->log, text);
}

static void print_chapter(scenario *s, const char *title)
{
    print_line(s, "%s\n# %s%s\n", s->colour ? "\033[1m" : "", title, s->colour ? "\033[0m" : "");
}

static void expect_step(scenario *s, bool as_expected, const char *what)
{
    if (as_expected)
        return;
    s->surprises++;
    print_line(s, "[UNEXPECTED] %s\n", what);
}

/* The first lines of what a command printed, indented; folders of this machine are shortened. */
static void show_output(scenario *s)
{
    cx_str text = cx_buf_str(&s->last);
    size_t prefix = strlen(s->folder);
    cx_buf safe;
    cx_buf_init(&safe, s->cli->alloc);
    unsigned lines = 0;
    for (size_t at = 0; at < text.size;) {
        const char *end = memchr(text.data + at, '\n', text.size - at);
        size_t size = end == NULL ? text.size - at : (size_t)(end - (text.data + at));
        cx_buf_clear(&safe);
        for (size_t i = at; i < at + size;) {
            if (at + size - i > prefix && memcmp(text.data + i, s->folder, prefix) == 0 &&
                text.data[i + prefix] == '/') {
                i += prefix + 1;
                continue;
            }
            size_t run = i;
            while (run < at + size && (run == i || text.data[run] != s->folder[0]))
                run++;
            cx_shown_add(&safe, cx_str_from(text.data + i, run - i));
            i = run;
        }
        const char *line = cx_buf_z(&safe);
        if (lines++ < s->lines && line != NULL)
            print_line(s, "    %.150s%s\n", line, safe.size > 150 ? " .." : "");
        at += size + 1;
    }
    if (lines > s->lines)
        print_line(s, "    .. and %u more lines, in demo.log\n", lines - s->lines);
    cx_buf_done(&safe);
}

static bool printed(const scenario *s, const char *text)
{
    return s->last.size != 0 && memmem(s->last.data, s->last.size, text, strlen(text)) != NULL;
}

/* --- running commands ------------------------------------------------------------------------- */

static const char *environment_value(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value == NULL ? fallback : value;
}

/* Runs a program in `cwd`; *out_code is -1 when a signal ended it. */
static cx_status start_program(scenario *s, const char *cwd, const char *const *argv, int *out_code,
                               cx_err *err)
{
    cx_arena *arena = &s->cli->arena;
    cx_str path = cx_arena_printf(arena, "PATH=%.*s", (int)s->path.size, s->path.data);
    cx_str home = cx_arena_printf(arena, "CORTEX_HOME=%s/home", s->folder);
    cx_str home_folder = cx_arena_printf(arena, "HOME=%s", s->folder);
    cx_str temporary = cx_arena_printf(arena, "TMPDIR=%s", environment_value("TMPDIR", "/tmp"));
    const char *const envp[] = {path.data,
                                home.data,
                                home_folder.data,
                                temporary.data,
                                "CORTEX_ACTOR=desk",
                                "LC_ALL=C.UTF-8",
                                "GIT_CONFIG_GLOBAL=/dev/null",
                                "GIT_CONFIG_NOSYSTEM=1",
                                "GIT_AUTHOR_NAME=you",
                                "GIT_AUTHOR_EMAIL=you@example.invalid",
                                "GIT_COMMITTER_NAME=you",
                                "GIT_COMMITTER_EMAIL=you@example.invalid",
                                NULL};
    const cx_proc_options options = {.argv = argv, .envp = envp, .cwd = cwd, .timeout_ms = 300000};
    cx_proc_result result;
    cx_buf complaints;
    if (path.data == NULL || home.data == NULL || home_folder.data == NULL ||
        temporary.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&complaints, s->cli->alloc);
    cx_buf_clear(&s->last);
    cx_status status = cx_proc_run(&options, &s->last, &complaints, &result, err);
    if (!cx_failed(status)) {
        cx_buf_add(&s->last, complaints.data, complaints.size);
        *out_code = result.exit_code;
        cx_buf_add(&s->log, s->last.data, s->last.size);
    }
    cx_buf_done(&complaints);
    return status;
}

#define WORDS_MAX 24
#define ANY_CODE (-2) /* expected of a command whose output is read */

/* Runs a command line whose words are separated by single spaces and may be '..' quoted; shown as
 * it can be typed. */
static cx_status run_line(scenario *s, const char *cwd, int wanted, bool shown, cx_str line,
                          cx_err *err)
{
    const char *argv[WORDS_MAX + 1] = {NULL};
    size_t words = 0;
    int code = 0;
    cx_str copy = cx_arena_copy_str(&s->cli->arena, line);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    for (char *at = (char *)(uintptr_t)copy.data; *at != 0 && words < WORDS_MAX;) {
        char stop = ' ';
        if (*at == '\'') {
            stop = '\'';
            at++;
        }
        argv[words++] = at;
        at += strcspn(at, stop == ' ' ? " " : "'");
        if (*at != 0)
            *at++ = 0;
        if (stop == '\'' && *at == ' ')
            at++;
    }
    CX_ASSERT(words > 0); /* the scenario's own lines: none is empty */
    if (strcmp(argv[0], "cortex") == 0)
        argv[0] = s->program.data;
    else if (strcmp(argv[0], "cortex-verify") == 0)
        argv[0] = s->verifier.data;
    if (shown)
        print_line(s, "%s$ %.*s%s\n", s->colour ? "\033[36m" : "", (int)line.size, line.data,
                   s->colour ? "\033[0m" : "");
    CX_TRY(start_program(s, cwd, argv, &code, err));
    if (shown)
        show_output(s);
    if (code == wanted || wanted == ANY_CODE)
        return CX_SUCCESS;
    s->surprises++;
    print_line(s, "[UNEXPECTED] exit code %d, expected %d\n", code, wanted);
    if (!shown) {
        print_line(s, "  of: %.*s\n", (int)line.size, line.data);
        show_output(s);
    }
    return CX_SUCCESS;
}

static cx_status run_shown(scenario *s, int wanted, cx_err *err, const char *format, ...)
    CX_PRINTF(4, 5);
static cx_status run_shown(scenario *s, int wanted, cx_err *err, const char *format, ...)
{
    va_list args;
    char text[4096];
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return run_line(s, s->shop, wanted, true, cx_str_z(text), err);
}

static cx_status run_quietly(scenario *s, int wanted, cx_err *err, const char *format, ...)
    CX_PRINTF(4, 5);
static cx_status run_quietly(scenario *s, int wanted, cx_err *err, const char *format, ...)
{
    va_list args;
    char text[4096];
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return run_line(s, s->shop, wanted, false, cx_str_z(text), err);
}

static cx_status write_file(scenario *s, const char *name, cx_str text, cx_err *err)
{
    cx_str path = cx_arena_printf(&s->cli->arena, "%s/%s", s->folder, name);
    return path.data == NULL ? cx_fail_nomem(err)
                             : cx_io_replace_file(s->cli->io, path.data, cx_str_bytes(text), err);
}

/* The word after the first `label` in the last output. */
static cx_str word_after(scenario *s, const char *label)
{
    const char *at =
        s->last.size == 0 ? NULL : memmem(s->last.data, s->last.size, label, strlen(label));
    if (at == NULL)
        return (cx_str){NULL, 0};
    at += strlen(label);
    size_t left = (size_t)((const char *)s->last.data + s->last.size - at), size = 0;
    while (size < left && at[size] != '\n' && at[size] != ' ')
        size++;
    return cx_arena_copy_str(&s->cli->arena, cx_str_from(at, size));
}

static cx_str first_line(scenario *s)
{
    return word_after(s, "");
}

/* One byte of a copy: the first character of `needle` becomes another one. */
static cx_status tamper_file(scenario *s, const char *name, const char *needle, cx_err *err)
{
    cx_str path = cx_arena_printf(&s->cli->arena, "%s/%s", s->folder, name);
    cx_buf bytes;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&bytes, s->cli->alloc);
    cx_status status = cx_io_read_file(s->cli->io, path.data, SIZE_MAX, &bytes, err);
    uint8_t *at = cx_failed(status) || bytes.size == 0
                      ? NULL
                      : memmem(bytes.data, bytes.size, needle, strlen(needle));
    if (at != NULL) {
        print_line(s, "  %s, byte %zu: '%c' becomes '%c'\n", name, (size_t)(at - bytes.data), *at,
                   *at ^ 1);
        *at ^= 1;
        status = cx_io_replace_file(s->cli->io, path.data, cx_buf_bytes(&bytes), err);
    } else if (!cx_failed(status)) {
        expect_step(s, false, "there is nothing to tamper with");
    }
    cx_buf_done(&bytes);
    return status;
}

/* --- the chapters ----------------------------------------------------------------------------- */

static const char refund_py[] = "def refund(paid, asked):\n    return asked\n";
static const char test_py[] =
    "import pathlib, runpy\n"
    "refund = runpy.run_path(str(pathlib.Path(__file__).parent.parent / "
    "\"src/refund.py\"))[\"refund\"]\n"
    "assert refund(500, 400) == 400\n"
    "assert refund(500, 5000) == 500, \"nobody gets back more than was paid\"\n"
    "print(\"ok\")\n";
static const char fix_sh[] =
    "#!/bin/sh\n# The prompt comes on standard input; the last line is the reply.\n"
    "cat >/dev/null\nsed -i 's/return asked/return min(paid, asked)/' src/refund.py\n"
    "echo '{\"task_id\":\"refund_limit\",\"status\":\"SUCCESS\",\"summary\":\"capped\","
    "\"evidence_refs\":{},\"failure\":null}'\n";

static cx_status create_shop(scenario *s, cx_err *err)
{
    static const char *const folders[] = {"agents", "shop/src", "shop/tests", "shop/agents"};
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++) {
        cx_str path = cx_arena_printf(&s->cli->arena, "%s/%s", s->folder, folders[i]);
        if (path.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_path_make_folders(path.data, err));
    }
    CX_TRY(write_file(s, "shop/src/refund.py", cx_str_z(refund_py), err));
    CX_TRY(write_file(s, "shop/tests/test_refund.py", cx_str_z(test_py), err));
    CX_TRY(write_file(s, "shop/agents/fix.sh", cx_str_z(fix_sh), err));
    CX_TRY(run_quietly(s, 0, err, "git init -q -b main ."));
    CX_TRY(run_quietly(s, 0, err, "git add -A"));
    CX_TRY(run_quietly(s, 0, err, "git commit -q -m 'a shop'"));
    print_chapter(s, "A data directory, and a repository with a bug: refund() pays any amount");
    CX_TRY(run_shown(s, 0, err, "cortex init"));
    return run_shown(s, 0, err, "cortex key new ../auditor.key --name auditor");
}

static cx_status record_decision(scenario *s, cx_demo_agent *agent,
                                 const cx_demo_decision *decision, cx_str *out_id, cx_err *err)
{
    cx_buf batch;
    cx_str name =
        cx_arena_printf(&s->cli->arena, "agents/%s-%u.json", agent->name, agent->decisions);
    cx_buf_init(&batch, s->cli->alloc);
    cx_status status = cx_demo_decide(s->cli, agent, decision, &batch, out_id, err);
    if (!cx_failed(status))
        status = write_file(s, name.data, cx_buf_str(&batch), err);
    cx_buf_done(&batch);
    CX_TRY(status);
    return run_shown(s, 0, err, "cortex record ../%s", name.data);
}

static cx_status play_agents(scenario *s, cx_err *err)
{
    cx_demo_agent agents[3];
    cx_buf trust;
    cx_str id;
    print_chapter(s, "Three agents sign their decisions. Only their registered keys are trusted");
    CX_TRY(cx_demo_agent_make(s->cli, s->folder, "researcher", &s->researcher, err));
    CX_TRY(cx_demo_agent_make(s->cli, s->folder, "planner", &s->planner, err));
    CX_TRY(cx_demo_agent_make(s->cli, s->folder, "coder", &s->coder, err));
    agents[0] = s->researcher, agents[1] = s->planner, agents[2] = s->coder;
    cx_buf_init(&trust, s->cli->alloc);
    cx_status status = cx_demo_trust(s->cli, agents, CX_COUNT_OF(agents), &trust, err);
    if (!cx_failed(status))
        status = write_file(s, "agents/trust.json", cx_buf_str(&trust), err);
    cx_buf_done(&trust);
    CX_TRY(status);
    CX_TRY(run_shown(s, 0, err, "cortex key add ../agents/trust.json"));
    const cx_demo_decision found = {"Ticket 4821: a customer got back ten times the order",
                                    "The handbook, page 12: nobody gets back more than was paid",
                                    "The handbook is the rule; what the code does is not it",
                                    "wrote down the rule", NULL};
    CX_TRY(record_decision(s, &s->researcher, &found, &id, err));
    CX_TRY(run_shown(s, 0, err,
                     "cortex memory write Fact '{\"statement\":\"nobody gets back more than was "
                     "paid\",\"subject\":\"refunds\",\"predicate\":\"rule\"}' --derived-from "
                     "cortex://trace/%.*s",
                     (int)id.size, id.data));
    s->fact = first_line(s);
    cx_str rationale = cx_arena_printf(&s->cli->arena, "refund() breaks %.*s: it is to be capped",
                                       (int)s->fact.size, s->fact.data);
    if (s->fact.data == NULL || rationale.data == NULL)
        return cx_fail_nomem(err);
    const cx_demo_decision plan = {"Ticket 4821 is open", "One function, one test", rationale.data,
                                   "asked for a fix", NULL};
    return record_decision(s, &s->planner, &plan, &s->trace, err);
}

/* Which commands tests may use is a policy of the repository. */
static cx_status allow_tests(scenario *s, const char *name, cx_err *err)
{
    cx_str path = cx_arena_printf(&s->cli->arena, "%s/shop/policies/%s", s->folder, name);
    static const char rule[] = "\"allow\": [\n    [\"python3\", \"tests/\"],";
    cx_buf text, changed;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, s->cli->alloc);
    cx_buf_init(&changed, s->cli->alloc);
    cx_status status = cx_io_read_file(s->cli->io, path.data, 1 << 20, &text, err);
    const char *at = cx_failed(status) ? NULL : memmem(text.data, text.size, "\"allow\": [", 10);
    if (at != NULL) {
        size_t before = (size_t)(at - (const char *)text.data);
        cx_buf_add(&changed, text.data, before);
        cx_buf_add_z(&changed, rule);
        cx_buf_add(&changed, text.data + before + 10, text.size - before - 10);
        status = cx_io_replace_file(s->cli->io, path.data, cx_buf_bytes(&changed), err);
    } else if (!cx_failed(status)) {
        expect_step(s, false, "the policy has no list of commands");
    }
    cx_buf_done(&text);
    cx_buf_done(&changed);
    return status;
}

static cx_status play_run(scenario *s, cx_err *err)
{
    print_chapter(s, "A governed run: a shell script as the agent, under a contract, in a sandbox");
    CX_TRY(run_shown(s, 0, err, "cortex runner add fixer --full --default sh agents/fix.sh"));
    CX_TRY(allow_tests(s, "command_allowlist.json", err));
    CX_TRY(allow_tests(s, "packs/low.json", err));
    CX_TRY(run_quietly(s, 0, err, "git add -A"));
    CX_TRY(run_quietly(s, 0, err, "git commit -q -m 'how agents may work here'"));
    CX_TRY(run_shown(s, 0, err,
                     "cortex contract new 'refund() must never return more than was paid, see "
                     "cortex://trace/%.*s' --id refund_limit --path src/refund.py --test 'python3 "
                     "tests/test_refund.py' -o ../task.json",
                     (int)s->trace.size, s->trace.data));
    CX_TRY(run_shown(s, 0, err, "cortex run ../task.json"));
    s->run = word_after(s, "SUCCESS  ");
    s->commit = word_after(s, "commit    ");
    expect_step(s, s->run.data != NULL && s->commit.data != NULL, "the run made no commit");
    if (s->run.data == NULL || s->commit.data == NULL)
        return CX_SUCCESS;
    CX_TRY(run_shown(s, 0, err, "git log --oneline -3"));
    cx_str rationale =
        cx_arena_printf(&s->cli->arena, "In cortex://run/%.*s I capped refund(), as %.*s says",
                        (int)s->run.size, s->run.data, (int)s->fact.size, s->fact.data);
    if (rationale.data == NULL)
        return cx_fail_nomem(err);
    const cx_demo_decision did = {"refund(500, 5000) returned 5000",
                                  "The contract: src/refund.py only", rationale.data,
                                  "changed src/refund.py", s->run.data};
    cx_str id;
    CX_TRY(record_decision(s, &s->coder, &did, &id, err));
    print_chapter(s, "A memory names the decision and the run that it comes from");
    return run_shown(s, 0, err,
                     "cortex memory write Event '{\"kind\":\"fix\",\"outcome\":\"success\","
                     "\"summary\":\"refunds are capped\"}' --derived-from cortex://trace/%.*s "
                     "--derived-from cortex://run/%.*s",
                     (int)id.size, id.data, (int)s->run.size, s->run.data);
}

static cx_status play_proof(scenario *s, cx_err *err)
{
    bool ran = s->commit.data != NULL;
    print_chapter(s, "A snapshot, a proof, and one file that an auditor checks with a public key");
    CX_TRY(run_shown(s, 0, err, "cortex snapshot make --reason audit"));
    CX_TRY(run_shown(s, 0, err, "cortex snapshot seal 0 --sign ../auditor.key"));
    CX_TRY(run_shown(s, 0, err, "cortex prove %.*s --at 0 -o ../fact.proof", (int)s->fact.size,
                     s->fact.data));
    CX_TRY(run_quietly(s, 0, err, "cortex key show ../auditor.key"));
    s->public_key = first_line(s);
    CX_TRY(write_file(s, "auditor.pub", s->public_key, err));
    cx_str subject = ran ? s->commit : s->trace;
    CX_TRY(run_shown(s, 0, err, "cortex evidence %.*s --sign ../auditor.key -o ../evidence.cxe",
                     (int)subject.size, subject.data));
    return run_shown(s, 0, err,
                     "cortex-verify --key ../auditor.pub --require signed ../evidence.cxe");
}

static cx_status tamper_home(scenario *s, const char *what, const char *name, cx_err *err)
{
    print_line(s, "\n%s\n", what);
    CX_TRY(run_quietly(s, 0, err, "rm -rf ../tampered/home"));
    CX_TRY(run_quietly(s, 0, err, "cp -r ../home ../tampered/home"));
    CX_TRY(tamper_file(s, name, "nobody gets back", err));
    return run_shown(s, 1, err, "cortex verify --home ../tampered/home");
}

static cx_status play_tampering(scenario *s, cx_err *err)
{
    cx_str run = s->run;
    print_chapter(s, "One byte is changed in each place, always in a copy. It is found");
    CX_TRY(run_quietly(s, 0, err, "mkdir -p ../tampered"));
    CX_TRY(tamper_home(s, "In the log:", "tampered/home/log/000000.seg", err));
    CX_TRY(tamper_home(s, "In the database:", "tampered/home/cortex.db", err));
    print_line(s, "\nIn the proof:\n");
    CX_TRY(run_quietly(s, 0, err, "cp ../fact.proof ../tampered/fact.proof"));
    CX_TRY(tamper_file(s, "tampered/fact.proof", "nobody gets back", err));
    CX_TRY(run_shown(s, 1, err, "cortex-verify ../tampered/fact.proof"));
    if (run.data != NULL) {
        print_line(s, "\nIn the bundle of the run:\n");
        CX_TRY(run_quietly(s, 0, err,
                           "cp -r .runtime-cache/cortexpilot/runs/%.*s ../tampered/bundle",
                           (int)run.size, run.data));
        CX_TRY(run_quietly(s, 0, err, "chmod -R u+w ../tampered/bundle"));
        CX_TRY(run_quietly(s, 0, err, "mv ../tampered/bundle ../tampered/%.*s", (int)run.size,
                           run.data));
        cx_str patch =
            cx_arena_printf(&s->cli->arena, "tampered/%.*s/patch.diff", (int)run.size, run.data);
        if (patch.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(tamper_file(s, patch.data, "min(paid", err));
        CX_TRY(run_shown(s, 1, err, "cortex run verify ../tampered/%.*s", (int)run.size, run.data));
    }
    print_line(s, "\nIn a signed decision, before it is recorded:\n");
    CX_TRY(run_quietly(s, 0, err, "cp ../agents/planner-0.json ../tampered/decision.json"));
    CX_TRY(tamper_file(s, "tampered/decision.json", "it is to be capped", err));
    CX_TRY(run_shown(s, 1, err, "cortex record ../tampered/decision.json"));
    print_line(s, "\nIn the page of the evidence:\n");
    CX_TRY(run_quietly(s, 0, err, "cp ../evidence.cxe ../tampered/evidence.cxe"));
    CX_TRY(tamper_file(s, "tampered/evidence.cxe", "nobody gets back", err));
    CX_TRY(run_shown(s, 1, err, "cortex-verify --key ../auditor.pub ../tampered/evidence.cxe"));
    print_line(s, "\nThe original data directory still holds:\n");
    return run_shown(s, 0, err, "cortex verify --home ../home");
}

static cx_status play_why(scenario *s, cx_err *err)
{
    print_chapter(s, "Why did this line of code change?");
    s->lines = 80;
    if (s->run.data == NULL)
        return run_shown(s, 0, err, "cortex why %.*s", (int)s->trace.size, s->trace.data);
    CX_TRY(run_shown(s, 0, err, "cortex why src/refund.py:2"));
    expect_step(s, printed(s, "decided_by: trace") && printed(s, "Ticket 4821"),
                "the answer does not reach the decision and its observation");
    return CX_SUCCESS;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Whether governed runs would be refused here, as the governor decides it.  *out_why is the reason
 * of the first layer that is missing, NULL = none is. */
static cx_status find_missing_layer(scenario *s, const char **out_why, cx_err *err)
{
    cx_sandbox *box = NULL;
    cx_err why;
    const cx_sandbox_options options = {.program = s->program.data};
    *out_why = NULL;
    cx_str text = {0};
    if (cx_failed(cx_git_check_version(NULL, &why)) || cx_failed(cx_sandbox_supported(&why)) ||
        cx_failed(cx_sandbox_open(&options, &box, &why)))
        text = cx_arena_printf(&s->cli->arena, "%s", why.message);
    for (size_t i = 0; box != NULL && i < CX_SANDBOX_LAYER_COUNT && text.data == NULL; i++)
        if ((box->missing & 1u << i) != 0)
            text = cx_arena_printf(&s->cli->arena, "%s",
                                   box->reason[i] == NULL ? "a layer of it is missing"
                                                          : box->reason[i]);
    bool whole = box != NULL && box->missing == 0;
    cx_sandbox_close(box);
    *out_why = text.data;
    return whole || text.data != NULL ? CX_SUCCESS : cx_fail_nomem(err);
}

static cx_status play_scenario(scenario *s, bool *out_sandbox, cx_err *err)
{
    const char *missing;
    CX_TRY(create_shop(s, err));
    CX_TRY(play_agents(s, err));
    CX_TRY(run_quietly(s, ANY_CODE, err, "cortex doctor --json"));
    CX_TRY(find_missing_layer(s, &missing, err));
    *out_sandbox = missing == NULL;
    if (*out_sandbox)
        CX_TRY(play_run(s, err));
    else
        print_line(
            s,
            "\n# The governed run is skipped: this machine has no sandbox for agents.\n  "
            "%s\n  'cortex doctor' explains why. On Debian: apt install bubblewrap, and user "
            "namespaces must be allowed.\n",
            missing);
    CX_TRY(play_proof(s, err));
    CX_TRY(play_tampering(s, err));
    return play_why(s, err);
}

static void print_next_steps(scenario *s)
{
    bool ran = s->commit.data != NULL;
    cx_str subject = ran ? s->commit : s->trace;
    cx_str asked = ran ? CX_STR("src/refund.py:2") : s->trace;
    print_line(
        s,
        "\n# All files are in %s. Continue there:\n  cd %s/shop && export CORTEX_HOME=%s/home\n  "
        "cortex show %.*s\n  cortex why %.*s\n  cortex lattice render @agent/%s\n  cortex serve "
        "--repo .      # everything in a browser; evidence.cxe is a page of its own\n",
        s->folder, s->folder, s->folder, (int)subject.size, subject.data, (int)asked.size,
        asked.data, s->planner.id);
}

static cx_status find_programs(scenario *s, cx_err *err)
{
    cx_buf program;
    cx_buf_init(&program, s->cli->alloc);
    cx_status status = cx_path_real(cx_machine_program(), &program, err);
    s->program = cx_arena_copy_str(&s->cli->arena, cx_buf_str(&program));
    cx_buf_done(&program);
    CX_TRY(status);
    const char *slash = s->program.data == NULL ? NULL : strrchr(s->program.data, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - s->program.data);
    s->verifier = cx_arena_printf(&s->cli->arena, "%.*s/cortex-verify", (int)size, s->program.data);
    s->path = cx_arena_printf(&s->cli->arena, "%.*s:/usr/local/bin:/usr/bin:/bin", (int)size,
                              s->program.data);
    return s->verifier.data == NULL || s->path.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static bool not_empty(void *arg, const char *name)
{
    (void)name;
    *(bool *)arg = false;
    return false;
}

static cx_status check_folder_is_empty(scenario *s, bool *out_empty, cx_err *err)
{
    cx_file folder;
    const cx_io *io = s->cli->io;
    int failed = io->open(io, s->folder, CX_IO_READ | CX_IO_DIRECTORY, &folder);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", s->folder);
    cx_status status = cx_folder_list(folder, ".", not_empty, out_empty, err);
    (void)io->close(io, folder);
    return status;
}

/* Creates DIR; a folder that is not empty is rejected. */
static cx_status open_folder(scenario *s, const char *folder, cx_err *err)
{
    cx_buf real;
    CX_TRY(cx_path_make_folders(folder, err));
    cx_buf_init(&real, s->cli->alloc);
    cx_status status = cx_path_real(folder, &real, err);
    s->folder = cx_arena_copy_str(&s->cli->arena, cx_buf_str(&real)).data;
    cx_buf_done(&real);
    CX_TRY(status);
    if (s->folder == NULL)
        return cx_fail_nomem(err);
    s->shop = cx_arena_printf(&s->cli->arena, "%s/shop", s->folder).data;
    if (s->shop == NULL)
        return cx_fail_nomem(err);
    bool empty = true;
    CX_TRY(check_folder_is_empty(s, &empty, err));
    return empty ? CX_SUCCESS
                 : cx_fail(err, CX_E_USAGE, "%s is not empty; the demo needs a folder of its own",
                           folder);
}

int cx_cli_demo_scenario(cx_cli *cli, const cx_cli_args *args, const char *folder)
{
    cx_err err = {0};
    scenario s = {.cli = cli,
                  .lines = CX_DEMO_LINES_SHOWN,
                  .colour = cx_cli_colour(&cli->out, cx_cli_value(args, "color"))};
    bool sandbox = true;
    cx_buf_init(&s.log, cli->alloc);
    cx_buf_init(&s.last, cli->alloc);
    cx_status status = open_folder(&s, folder, &err);
    if (!cx_failed(status))
        status = find_programs(&s, &err);
    if (!cx_failed(status))
        status = play_scenario(&s, &sandbox, &err);
    if (!cx_failed(status)) {
        print_next_steps(&s);
        status = write_file(&s, "demo.log", cx_buf_str(&s.log), &err);
    }
    cx_buf_done(&s.log);
    cx_buf_done(&s.last);
    if (cx_failed(status))
        return cx_cli_fail(cli, "demo", &err, false);
    if (s.surprises != 0)
        return CX_EXIT_BROKEN;
    return sandbox ? CX_EXIT_HOLDS : CX_EXIT_UNCHECKED;
}
