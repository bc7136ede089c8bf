/*
 * commands.c - each simple command of a shell's line against the command gate of runs, and the
 * files that it names (docs/formats/live.md §4.2).
 */
#include <stdarg.h>
#include <string.h>

#include "agent/api.h"
#include "command/api.h"
#include "contract/api.h"
#include "git/api.h"
#include "live/decide_parts.h"
#include "rules/api.h"

#define SHOWN_MAX 300

/* --- programs --------------------------------------------------------------------------------- */

static bool is_among(cx_str word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(word, names[i]))
            return true;
    return false;
}

#define AMONG(word, names) is_among((word), (names), CX_COUNT_OF(names))

/* Of the shell itself, without an effect outside of it. */
static const char *const builtins[] = {":",     "true",   "false",    "exit", "wait",
                                       "break", "return", "continue", "test", "[",
                                       "pwd",   "echo",   "printf",   "sleep"};

/* Programs that read the files they are given, and have no option that writes or starts anything
 * but those that the command gate refuses (C12). */
static const char *const readers[] = {
    "cat",       "head",   "tail", "wc",       "grep",     "egrep",    "fgrep",   "rg",  "ls",
    "stat",      "file",   "diff", "cmp",      "uniq",     "cut",      "tr",      "jq",  "tree",
    "nl",        "od",     "xxd",  "realpath", "readlink", "basename", "dirname", "du",  "df",
    "sha256sum", "md5sum", "sort", "column",   "comm",     "paste",    "fold",    "rev", "tac"};

/* Sub-commands of this program that an agent may use on its own record. */
static const char *const own_reads[] = {"help",    "version",   "verify", "show",
                                        "why",     "search",    "status", "doctor",
                                        "lattice", "histories", "roots"};

/* --- one command ------------------------------------------------------------------------------ */

static cx_str shown_text(cx_deciding *d, const cx_shell_command *command)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    for (size_t i = 0; i < command->count && out.size < SHOWN_MAX; i++) {
        if (i != 0)
            cx_buf_add_z(&out, " ");
        cx_str word = command->words[i].text;
        bool plain = word.size != 0;
        for (size_t k = 0; k < word.size && plain; k++)
            plain = strchr(" \t\n'\"\\|&;<>()", word.data[k]) == NULL;
        if (!plain)
            cx_buf_add_z(&out, "'");
        cx_buf_add_str(&out, word);
        if (!plain)
            cx_buf_add_z(&out, "'");
    }
    cx_str text = cx_buf_str(&out);
    if (text.size > SHOWN_MAX) {
        text.size = SHOWN_MAX;
        while (text.size != 0 && ((uint8_t)text.data[text.size] & 0xc0) == 0x80)
            text.size--;
    }
    text = cx_arena_copy_str(d->arena, text);
    cx_buf_done(&out);
    if (text.data == NULL)
        d->status = cx_fail_nomem(d->err);
    return text;
}

void cx_live_command_add(cx_live_command *c, cx_live_verdict verdict, const char *rule,
                         const char *why)
{
    cx_deciding_add(c->d, CX_LIVE_COMMAND, verdict, rule, c->shown, "%s", why);
}

bool cx_live_has_parent(cx_str path)
{
    for (size_t at = 0; at < path.size;) {
        size_t end = at;
        while (end < path.size && path.data[end] != '/')
            end++;
        if (cx_str_is(cx_str_from(path.data + at, end - at), ".."))
            return true;
        at = end + 1;
    }
    return false;
}

static void take_redirects(cx_live_command *c)
{
    for (size_t i = 0; i < c->command->redirect_count && !cx_failed(c->d->status); i++) {
        const cx_shell_redirect *redirect = &c->command->redirects[i];
        if (redirect->to.opaque || redirect->to.glob)
            cx_deciding_add(c->d, redirect->write ? CX_LIVE_WRITE : CX_LIVE_READ, CX_LIVE_UNLISTED,
                            "L08", redirect->to.text, "only the shell knows which file this is");
        else if (cx_deciding_device(c->d, redirect->to.text))
            continue;
        else if (redirect->write)
            cx_deciding_write(c->d, redirect->to.text);
        else
            cx_deciding_read(c->d, redirect->to.text);
    }
}

/* --- where commands run ----------------------------------------------------------------------- */

static void add_place(cx_str *places, size_t *count, cx_str place)
{
    if (place.data == NULL)
        place = CX_STR("");
    for (size_t i = 0; i < *count; i++)
        if (cx_str_eq(places[i], place) || places[i].size == 0)
            return;
    if (place.size == 0 || *count == CX_DECIDING_PLACES_MAX) {
        places[0] = CX_STR(""); /* not known */
        *count = 1;
    } else {
        places[(*count)++] = place;
    }
}

/* The places of the shell that runs the command; one that begins is where the one around it is. */
static cx_shell_places *places_of(cx_deciding *d, const cx_shell_command *command)
{
    for (unsigned i = 0; i <= command->depth; i++) {
        cx_shell_places *places = &d->places[i];
        if (i != 0 && places->shell != command->shells[i]) {
            *places = d->places[i - 1];
            places->shell = command->shells[i];
            places->before_count = 0;
        }
        if (places->before_count != 0 && places->chain != command->chains[i]) {
            for (size_t k = 0; k < places->before_count; k++)
                add_place(places->now, &places->count, places->before[k]);
            places->before_count = 0;
        }
    }
    return &d->places[command->depth];
}

/* Where `cd TO` leads from the current place; no data when it cannot be known.  A shell takes ".."
 * off the path by which it came, and not off the place where a link led. */
static cx_str place_after(cx_deciding *d, cx_str to)
{
    if (to.size == 0 || to.data[0] == '-' || to.data[0] == '+')
        return (cx_str){NULL, 0};
    bool upwards = cx_live_has_parent(to);
    if (upwards && d->linked)
        return (cx_str){NULL, 0};
    bool linked = false;
    cx_str real = cx_deciding_resolve_links(d, to, &linked);
    if (linked && upwards)
        return (cx_str){NULL, 0};
    d->linked = d->linked || linked;
    return real;
}

/* True when the command only changes where the next ones are. */
static bool take_cd(cx_live_command *c, cx_shell_places *places)
{
    const cx_shell_command *command = c->command;
    if (!cx_str_is(command->words[0].text, "cd") && !cx_str_is(command->words[0].text, "pushd"))
        return false;
    if (command->assigns) {
        cx_live_command_add(c, CX_LIVE_UNLISTED, "C04", "variables are set before the program");
        return true;
    }
    const cx_shell_places from = *places;
    bool known = command->count == 2 && !command->words[1].opaque && !command->words[1].glob;
    places->count = 0;
    for (size_t i = 0; i < from.count; i++) {
        c->d->cwd = from.now[i];
        add_place(places->now, &places->count,
                  known ? place_after(c->d, command->words[1].text) : (cx_str){NULL, 0});
    }
    /* It may fail, or another shell may run it: then the next commands are where this one was. */
    for (size_t i = 0; i < from.count; i++)
        if (command->piped || command->inverted)
            add_place(places->now, &places->count, from.now[i]);
        else
            add_place(places->before, &places->before_count, from.now[i]);
    places->chain = command->chains[command->depth];
    return true;
}

/* --- the command gate ------------------------------------------------------------------------- */

typedef struct script_check {
    const cx_deciding *d;
    cx_git *git;
    cx_run_git_repo git_repo;
    cx_run_repo repo;
} script_check;

/* C14: opened when a command is a script of the repository, which is rare. */
static cx_status compare_with_commit(void *arg, cx_str path, cx_str plain, cx_run_script *out,
                                     cx_err *err)
{
    script_check *check = arg;
    const cx_live_policy *policy = check->d->policy;
    const cx_git_options options = CX_GIT_OPTIONS_INIT;
    if (policy->commit.size == 0) {
        *out = CX_RUN_SCRIPT_DIFFERS;
        return CX_SUCCESS;
    }
    if (check->git == NULL) {
        CX_TRY(cx_git_open(policy->root.data, &options, cx_alloc_default(), &check->git, err));
        check->repo = cx_run_git_repo_init(&check->git_repo, check->git, check->d->arena);
    }
    cx_run_script_context ground = {policy->root.data, &check->repo, policy->commit,
                                    cx_alloc_default()};
    return cx_run_script_compare(&ground, path, plain, out, err);
}

/* A word as the gate gets it: paths inside of the work tree relative to it, files outside of it
 * that a reader may read as a plain word, so that the gate's rows about paths see what is meant. */
static cx_str gate_word(cx_live_command *c, size_t index, bool reads)
{
    const cx_shell_word *word = &c->command->words[index];
    cx_str text = word->text;
    bool slash = text.size != 0 && memchr(text.data, '/', text.size) != NULL;
    bool dots = cx_str_is(text, "..") || cx_str_starts(text, CX_STR("../"));
    if (word->glob && text.size != 0) {
        char *copy = cx_arena_push(c->d->arena, text.size, 1);
        if (copy == NULL) {
            c->d->status = cx_fail_nomem(c->d->err);
            return text;
        }
        for (size_t i = 0; i < text.size; i++)
            copy[i] = strchr("*?[]", text.data[i]) != NULL ? 'x' : text.data[i];
        text = cx_str_from(copy, text.size);
    }
    if (text.size == 0 || text.data[0] == '-' || (!slash && !dots && text.data[0] != '~'))
        return text;
    if (index == 0 && text.data[0] == '/')
        return text;
    cx_str real = cx_deciding_resolve(c->d, text);
    cx_str below = cx_deciding_below_root(c->d, real);
    if (below.data != NULL)
        return below.size == 0 ? CX_STR(".") : below;
    return index != 0 && reads && real.data != NULL ? CX_STR("file") : text;
}

static cx_live_verdict verdict_of_row(const cx_deciding *d, const char *rule)
{
    static const char *const forbidden[] = {"C05", "C06", "C07"};
    if (is_among(cx_str_z(rule), forbidden, CX_COUNT_OF(forbidden)))
        return CX_LIVE_FORBIDDEN;
    if (strcmp(rule, "C08") == 0 && cx_str_is(d->policy->network, "deny"))
        return CX_LIVE_FORBIDDEN;
    return CX_LIVE_UNLISTED;
}

static void ask_gate(cx_live_command *c, bool reads, bool listed)
{
    cx_deciding *d = c->d;
    const cx_live_policy *policy = d->policy;
    size_t count = c->command->count, room = policy->allow_count + 1;
    cx_str *words = CX_ARENA_ARRAY(d->arena, cx_str, count + 1);
    cx_run_argv *allow = CX_ARENA_ARRAY(d->arena, cx_run_argv, room);
    script_check scripts = {.d = d};
    cx_run_argv argv;
    cx_run_command_verdict verdict;
    if (words == NULL || allow == NULL) {
        d->status = cx_fail_nomem(d->err);
        return;
    }
    for (size_t i = 0; i < count; i++)
        words[i] = gate_word(c, i, reads);
    if (!cx_failed(d->status))
        d->status = cx_run_argv_make(words, count, d->arena, &argv, d->err);
    for (size_t i = 0; i < policy->allow_count && !cx_failed(d->status); i++)
        d->status = cx_run_argv_make(policy->allow[i].items, policy->allow[i].count, d->arena,
                                     &allow[i], d->err);
    if (!cx_failed(d->status) && listed)
        d->status = cx_run_argv_make(words, 1, d->arena, &allow[policy->allow_count], d->err);
    if (cx_failed(d->status))
        return;
    const cx_run_command_rules rules = {.pack_known = true,
                                        .allow = allow,
                                        .allow_count = policy->allow_count + listed,
                                        .forbidden = policy->forbidden.items,
                                        .forbidden_count = policy->forbidden.count};
    const cx_run_trust trust = {
        .folders = policy->trusted_dirs.count != 0 ? policy->trusted_dirs.items : NULL,
        .folder_count = policy->trusted_dirs.count,
        .forbidden = &policy->root,
        .forbidden_count = policy->commit.size != 0,
        .unhashed = true}; /* the agent starts it, and when is not known */
    const cx_run_command_options options = {.rules = &rules,
                                            .network_policy = policy->network,
                                            .worktree = policy->root.data,
                                            .script = compare_with_commit,
                                            .script_arg = &scripts,
                                            .trust = &trust};
    d->status = cx_run_argv_check(&options, &argv, d->arena, &verdict, d->err);
    cx_git_close(scripts.git);
    if (cx_failed(d->status))
        return;
    if (verdict.allow && c->opaque)
        cx_live_command_add(c, CX_LIVE_UNLISTED, "C02", c->opaque_why);
    else if (verdict.allow)
        cx_live_command_add(c, CX_LIVE_ALLOW, "C16", "");
    else
        cx_deciding_add(d, CX_LIVE_COMMAND, verdict_of_row(d, verdict.rule), verdict.rule, c->shown,
                        "%.*s", (int)verdict.reason.size, verdict.reason.data);
}

/* "set -euo pipefail" and the like; with others, words mean something else afterwards. */
static bool is_set_option(const cx_shell_command *command)
{
    static const char *const named[] = {"pipefail", "errexit", "nounset", "xtrace"};
    bool names = false;
    for (size_t i = 1; i < command->count; i++) {
        cx_str word = command->words[i].text;
        if (command->words[i].opaque || word.size == 0)
            return false;
        if (names ? !AMONG(word, named)
                  : word.size < 2 || (word.data[0] != '-' && word.data[0] != '+'))
            return false;
        for (size_t k = 1; k < word.size && !names; k++)
            if (strchr("euxo", word.data[k]) == NULL)
                return false;
        names = !names && word.data[word.size - 1] == 'o';
    }
    return command->count > 1 && !names;
}

static void look_at_words(cx_live_command *c)
{
    if (c->command->input_expands) {
        c->opaque = true;
        c->opaque_why = "only the shell knows what the variables in its input become";
    }
    for (size_t i = 0; i < c->command->count; i++) {
        const cx_shell_word *word = &c->command->words[i];
        if (word->opaque) {
            c->opaque = true;
            c->opaque_why = "only the shell knows what its variables and substitutions become";
        } else if (word->glob && (strchr("*?[", word->text.data[0]) != NULL || i == 0)) {
            c->opaque = true;
            c->opaque_why = "a pattern at the beginning of a word can become an option; write ./";
        }
    }
}

/* "$i", "${i}": of `sleep $i`; anything else that the shell works out can be more than a number. */
static bool is_plain_variable(const cx_shell_word *word)
{
    cx_str text = word->text;
    size_t from = cx_str_starts(text, CX_STR("${")) ? 2 : 1;
    size_t to = from == 2 && cx_str_ends(text, CX_STR("}")) ? text.size - 1 : text.size;
    if (!word->opaque || to <= from || text.data[0] != '$')
        return !word->opaque;
    for (size_t i = from; i < to; i++) {
        char c = text.data[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_')
            return false;
    }
    return true;
}

static bool waits_only(const cx_live_command *c)
{
    if (!cx_str_is(c->program, "sleep") && !cx_str_is(c->program, "exit"))
        return false;
    for (size_t i = 1; i < c->command->count; i++)
        if (!is_plain_variable(&c->command->words[i]))
            return false;
    return !c->command->input_expands;
}

/* True when it is a builtin of the shell, and decided. */
static bool decide_builtin(cx_live_command *c)
{
    const cx_shell_command *command = c->command;
    if (cx_str_is(command->words[0].text, "set") && is_set_option(command))
        return true;
    if (!AMONG(command->words[0].text, builtins))
        return false;
    const char *danger = cx_live_builtin_danger(command);
    if (danger != NULL)
        cx_live_command_add(c, CX_LIVE_UNLISTED, "C02", danger);
    else if (c->opaque && !waits_only(c))
        ask_gate(c, false, true);
    else
        cx_live_command_add(c, CX_LIVE_ALLOW, "L00", "");
    return true;
}

static void decide_program(cx_live_command *c)
{
    bool reads = AMONG(c->command->words[0].text, readers);
    bool writes = cx_live_take_files(c);
    if (!writes && !cx_live_words_may_be_read(c->d, c->program, c->command, reads))
        return;
    const char *danger = cx_live_reader_danger(c->d, c->program, c->command);
    if (danger != NULL)
        cx_live_command_add(c, CX_LIVE_UNLISTED, "L08", danger);
    if (!writes)
        cx_live_take_options(c, reads);
    /* What is forbidden by a row of the gate is so for these programs, too. */
    ask_gate(c, reads || writes, reads || writes);
}

/* True when it is this program, or a tool of the agent that a shell can start. */
static bool decide_own(cx_live_command *c)
{
    const cx_shell_command *command = c->command;
    if (cx_str_is(c->program, "cortex") &&
        (command->count < 2 || !AMONG(command->words[1].text, own_reads))) {
        cx_live_command_add(c, CX_LIVE_FORBIDDEN, "L16", "an agent does not govern itself");
        return true;
    }
    if (!cx_str_is(c->program, "apply_patch"))
        return false;
    if (command->here.data != NULL)
        cx_deciding_patch(c->d, command->here);
    if (command->here.data == NULL || command->count > 1)
        cx_deciding_patch(c->d, command->count == 2 ? command->words[1].text : CX_STR(""));
    if (command->input_expands || (command->count == 2 && command->words[1].opaque))
        cx_live_command_add(c, CX_LIVE_UNLISTED, "L08", "only the shell knows what the patch is");
    return true;
}

static void decide_command(cx_deciding *d, const cx_shell_command *command, cx_shell_places *places)
{
    cx_live_command c = {.d = d, .command = command};
    c.shown = shown_text(d, command);
    take_redirects(&c);
    if (cx_failed(d->status))
        return;
    if (command->count == 0) {
        if (command->assigns)
            cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_UNLISTED, "C04", CX_STR("NAME=value"),
                            "it changes the environment of what follows");
        return;
    }
    c.program = cx_run_token_base(command->words[0].text);
    if (decide_own(&c))
        return;
    look_at_words(&c);
    if (take_cd(&c, places))
        return;
    if (command->assigns)
        cx_live_command_add(&c, CX_LIVE_UNLISTED, "C04", "variables are set before the program");
    else if (!decide_builtin(&c))
        decide_program(&c);
}

/* In each place where it can run; what is allowed there has been said of the first. */
static void decide_wherever(cx_deciding *d, const cx_shell_command *command)
{
    cx_shell_places *places = places_of(d, command);
    const cx_shell_places from = *places;
    const cx_str cwd = d->cwd;
    bool moves = command->count != 0 && (cx_str_is(command->words[0].text, "cd") ||
                                         cx_str_is(command->words[0].text, "pushd"));
    for (size_t i = 0; i < from.count && !cx_failed(d->status); i++) {
        size_t before = d->count, kept = before;
        d->cwd = from.now[i];
        if (moves && i != 0) /* it has looked at every place itself, but for its redirections */
            take_redirects(&(cx_live_command){.d = d, .command = command});
        else
            decide_command(d, command, places);
        for (size_t k = before; k < d->count && i != 0; k++)
            if (d->effects[k].verdict != CX_LIVE_ALLOW)
                d->effects[kept++] = d->effects[k];
        d->count = i != 0 ? kept : d->count;
    }
    d->cwd = cwd;
}

/* --- the line --------------------------------------------------------------------------------- */

static bool begins_with(const cx_shell_command *command, cx_str_list words)
{
    if (command->count < words.count || words.count == 0)
        return false;
    for (size_t i = 0; i < words.count; i++)
        if (!cx_str_eq(command->words[i].text, words.items[i]))
            return false;
    return true;
}

/* One plain command that a rule of the policy replaces; its text, or no data. */
static cx_str rewritten_text(cx_deciding *d, const cx_shell_line *line)
{
    cx_str text = {NULL, 0};
    if (line->count != 1 || line->why != NULL || line->commands[0].redirect_count != 0 ||
        line->commands[0].assigns || line->commands[0].here.data != NULL)
        return text;
    const cx_shell_command *command = &line->commands[0];
    for (size_t i = 0; i < command->count; i++)
        if (command->words[i].opaque || command->words[i].glob)
            return text;
    for (size_t r = 0; r < d->policy->rewrite_count && text.data == NULL; r++) {
        const cx_live_rewrite *rewrite = &d->policy->rewrites[r];
        cx_buf out;
        if (!begins_with(command, rewrite->from))
            continue;
        cx_buf_init(&out, cx_alloc_default());
        for (size_t i = 0; i < rewrite->to.count; i++)
            cx_shell_add_word(&out, rewrite->to.items[i]);
        for (size_t i = rewrite->from.count; i < command->count; i++)
            cx_shell_add_word(&out, command->words[i].text);
        text = cx_arena_printf(d->arena, "%.*s", (int)out.size, (const char *)out.data);
        cx_buf_done(&out);
        if (text.data == NULL)
            d->status = cx_fail_nomem(d->err);
    }
    return text;
}

void cx_deciding_command(cx_deciding *d, cx_str text)
{
    cx_shell_line line;
    d->status = cx_shell_split(text, d->arena, &line, d->err);
    if (cx_failed(d->status))
        return;
    cx_str other = d->rewritten.data == NULL ? rewritten_text(d, &line) : (cx_str){NULL, 0};
    if (other.data != NULL && !cx_failed(d->status)) {
        d->rewritten = other;
        cx_deciding_command(d, other);
        return;
    }
    d->places[0] = (cx_shell_places){.now = {d->cwd}, .count = 1};
    for (size_t i = 1; i < CX_SHELL_DEPTH_MAX; i++)
        d->places[i] = (cx_shell_places){.shell = 0};
    for (size_t i = 0; i < line.count && !cx_failed(d->status); i++)
        decide_wherever(d, &line.commands[i]);
    if (line.why != NULL && !cx_failed(d->status)) {
        size_t size = text.size < SHOWN_MAX ? text.size : SHOWN_MAX;
        while (size != 0 && size < text.size && ((uint8_t)text.data[size] & 0xc0) == 0x80)
            size--;
        cx_deciding_add(d, CX_LIVE_COMMAND, CX_LIVE_UNLISTED, "C01", cx_str_from(text.data, size),
                        "at byte %zu: %s", line.offset, line.why);
    }
}
