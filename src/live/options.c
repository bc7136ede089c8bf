/*
 * options.c - what options of programs that the policy allows have them do: files that they write,
 * programs and lists of files that they take (docs/formats/live.md §4.2).
 *
 * Names are as written, without their dashes; a long one may be abbreviated.  Options of the gate's
 * own table (command_options.c) are refused there.
 */
#include <string.h>

#include "live/decide_parts.h"

/* Their value is a file or a folder that is written. */
static const struct {
    const char *program, *name;
} outputs[] = {
    {"pytest", "junitxml"},
    {"pytest", "junit-xml"},
    {"pytest", "log-file"},
    {"pytest", "basetemp"},
    {"pytest", "report-log"},
    {"pytest", "html"},
    {"pytest", "json-report-file"},
    {"pytest", "cov-report"},
    {"pytest", "debug"},
    {"npm", "cache"},
    {"npm", "logs-dir"},
    {"cargo", "target-dir"},
    {"cargo", "artifact-dir"},
    {"cargo", "out-dir"},
    {"go", "o"},
    {"go", "coverprofile"},
    {"go", "cpuprofile"},
    {"go", "memprofile"},
    {"go", "blockprofile"},
    {"go", "mutexprofile"},
    {"go", "trace"},
    {"go", "outputdir"},
    {"ctest", "O"},
    {"ctest", "output-log"},
    {"ctest", "output-junit"},
    {"tsc", "outFile"},
    {"tsc", "outDir"},
    {"tsc", "declarationDir"},
    {"tsc", "tsBuildInfoFile"},
    {"tsc", "generateTrace"},
    {"tsc", "generateCpuProfile"},
    {"eslint", "o"},
    {"eslint", "output-file"},
    {"eslint", "cache-location"},
    {"eslint", "cache-file"},
    {"ruff", "o"},
    {"ruff", "output-file"},
    {"ruff", "cache-dir"},
    {"mypy", "junit-xml"},
    {"mypy", "html-report"},
    {"mypy", "txt-report"},
    {"mypy", "xml-report"},
    {"mypy", "any-exprs-report"},
    {"mypy", "linecount-report"},
    {"mypy", "linecoverage-report"},
    {"mypy", "lineprecision-report"},
    {"mypy", "cobertura-xml-report"},
    {"mypy", "xslt-html-report"},
    {"mypy", "xslt-txt-report"},
    {"mypy", "cache-dir"},
    {"tree", "o"},
};

static const char starts[] = "an option with which it starts other programs";
static const char names_files[] = "an option with which it takes the names of files from a file";

/* Nothing tells what they lead to. */
static const struct {
    const char *program, *name, *why;
} unclear[] = {
    {"rg", "pre", starts},
    {"rg", "hostname-bin", starts},
    {"go", "toolexec", starts},
    {"go", "exec", starts},
    {"go", "vettool", starts},
    {"go", "overlay", names_files},
    {"mypy", "install-types", "an option with which it installs packages"},
    {"mypy", "python-executable", starts},
    {"pytest", "pastebin", "an option with which it sends its output to a host"},
    {"npm", "C", "an option with which it runs another package's scripts"},
    {"cargo", "config", starts},
    {"ctest", "S", starts},
    {"ctest", "SP", starts},
    {"ctest", "script", starts},
    {"ctest", "build-and-test", starts},
    {"ctest", "D", "an option with which it sends its output to a host"},
    {"ctest", "M", "an option with which it sends its output to a host"},
    {"ctest", "T", "an option with which it sends its output to a host"},
    {"ctest", "dashboard", "an option with which it sends its output to a host"},
    {"sort", "files0-from", names_files},
    {"wc", "files0-from", names_files},
    {"du", "files0-from", names_files},
    {"file", "f", names_files},
    {"file", "files-from", names_files},
    {"sha256sum", "c", names_files},
    {"sha256sum", "check", names_files},
    {"md5sum", "c", names_files},
    {"md5sum", "check", names_files},
    {"tree", "fromfile", names_files},
    {"tree", "fromtabfile", names_files},
    {"tree", "R", "an option with which it writes a file into each folder"},
};

/* --- options ---------------------------------------------------------------------------------- */

typedef struct option {
    cx_str name;  /* without dashes and value */
    cx_str value; /* after "=", or the next word; data NULL = none */
    bool separate;
    bool is_long; /* "--name" */
} option;

static option option_at(const cx_shell_command *command, size_t at)
{
    cx_str word = command->words[at].text;
    option o = {.is_long = cx_str_starts(word, CX_STR("--"))};
    o.name = cx_str_from(word.data + 1 + o.is_long, word.size - 1 - o.is_long);
    const char *equals = o.name.size == 0 ? NULL : memchr(o.name.data, '=', o.name.size);
    if (equals != NULL) {
        size_t size = (size_t)(equals - o.name.data);
        o.value = cx_str_from(equals + 1, o.name.size - size - 1);
        o.name.size = size;
    } else if (at + 1 < command->count) {
        o.value = command->words[at + 1].text;
        o.separate = true;
    }
    return o;
}

static bool same_name(const option *o, const char *name)
{
    bool letter = name[1] == 0;
    if (o->is_long && !letter)
        return o->name.size != 0 && cx_str_starts(cx_str_z(name), o->name);
    return !o->is_long && cx_str_is(o->name, name);
}

/* "-oFILE", "-noFILE": a letter's value is what follows it in the word, else the next word. */
static bool letter_value(const option *o, char letter, cx_str *out)
{
    if (o->is_long)
        return false;
    const char *at = o->name.size == 0 ? NULL : memchr(o->name.data, letter, o->name.size);
    if (at == NULL)
        return false;
    size_t rest = o->name.size - (size_t)(at - o->name.data) - 1;
    *out = rest != 0 ? cx_str_from(at + 1, rest) : o->value;
    return true;
}

/* As the tables have it: the module of `python -m`. */
static cx_str program_of(const cx_live_command *c)
{
    if (cx_str_starts(c->program, CX_STR("python")) && c->command->count > 2 &&
        cx_str_is(c->command->words[1].text, "-m"))
        return c->command->words[2].text;
    return c->program;
}

/* --- files that are written ------------------------------------------------------------------- */

/* "xml:FILE" of --cov-report, "cache_dir=DIR" of -o. */
static cx_str after_kind(cx_str value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] == ':' || value.data[i] == '=')
            return cx_str_from(value.data + i + 1, value.size - i - 1);
    return value;
}

static void take_output(cx_live_command *c, const char *name, cx_str value)
{
    bool kinds = strcmp(name, "cov-report") == 0;
    cx_str file = kinds ? after_kind(value) : value;
    if (file.size == 0 || (kinds && file.size == value.size))
        return;
    if (strcmp(name, "basetemp") == 0) /* what was there is removed */
        cx_deciding_replace(c->d, file);
    else
        cx_deciding_write_quietly(c->d, file);
}

static void take_outputs(cx_live_command *c, cx_str program, const option *o)
{
    for (size_t i = 0; i < CX_COUNT_OF(outputs); i++) {
        cx_str value = o->value;
        bool letter = outputs[i].name[1] == 0;
        if (!cx_str_is(program, outputs[i].program))
            continue;
        bool meant = same_name(o, outputs[i].name);
        if (letter && !cx_str_is(program, "go"))
            meant = letter_value(o, outputs[i].name[0], &value);
        if (meant && value.data != NULL)
            take_output(c, outputs[i].name, value);
    }
}

/* --- any value -------------------------------------------------------------------------------- */

/* What is guarded is no value of any option, also of one that no table has, and no operand that a
 * program which writes could mean. */
static void take_guarded(cx_live_command *c, cx_str text, bool operand)
{
    cx_deciding *d = c->d;
    cx_str real = text.size == 0 ? (cx_str){NULL, 0} : cx_deciding_resolve(d, text);
    if (real.data == NULL)
        return;
    cx_live_guard guard = cx_live_guard_of(d, real);
    if (guard.verdict == CX_LIVE_ALLOW || strcmp(guard.rule, "L08") == 0)
        return;
    cx_deciding_add(d, CX_LIVE_WRITE, operand ? CX_LIVE_UNLISTED : guard.verdict, guard.rule, real,
                    "%s", guard.why);
}

static bool leaves_out(cx_str name)
{
    static const char *const words[] = {"ignore", "exclude", "skip", "deselect"};
    for (size_t i = 0; i < CX_COUNT_OF(words); i++)
        if (name.size != 0 && memmem(name.data, name.size, words[i], strlen(words[i])) != NULL)
            return true;
    return false;
}

static void take_values(cx_live_command *c, const option *o)
{
    if (leaves_out(o->name))
        return;
    take_guarded(c, o->value, false);
    take_guarded(c, after_kind(o->value), false);
    if (o->is_long || o->name.size < 2)
        return;
    cx_str rest = cx_str_from(o->name.data + 1, o->name.size - 1);
    take_guarded(c, rest, false);
    take_guarded(c, after_kind(rest), false);
}

/* "@FILE": more arguments. */
static void take_response(cx_live_command *c, cx_str word)
{
    if (word.size > 1 && word.data[0] == '@')
        cx_live_command_add(c, CX_LIVE_UNLISTED, "L08", "arguments from a file are not looked at");
}

/* --- the command ------------------------------------------------------------------------------ */

static void take_unclear(cx_live_command *c, cx_str program, const option *o)
{
    cx_str ignored;
    for (size_t i = 0; i < CX_COUNT_OF(unclear); i++) {
        if (!cx_str_is(program, unclear[i].program))
            continue;
        bool letter = unclear[i].name[1] == 0;
        bool together = letter && !cx_str_is(program, "ctest") && !cx_str_is(program, "npm");
        if (same_name(o, unclear[i].name) ||
            (together && letter_value(o, unclear[i].name[0], &ignored)))
            cx_live_command_add(c, CX_LIVE_UNLISTED, "L08", unclear[i].why);
    }
    if (cx_str_is(program, "git") && same_name(o, "diff-merges") && o->value.size != 0 &&
        o->value.data[0] == 'r')
        cx_live_command_add(c, CX_LIVE_UNLISTED, "L08", starts);
}

void cx_live_take_options(cx_live_command *c, bool reads)
{
    const cx_shell_command *command = c->command;
    cx_str program = program_of(c);
    bool any = !reads && !cx_str_is(program, "git"), ended = false, ignored = false;
    for (size_t at = 1; at < command->count && !cx_failed(c->d->status); at++) {
        cx_str word = command->words[at].text;
        ended = ended || cx_str_is(word, "--");
        if (!ended && word.size > 1 && word.data[0] == '-') {
            option o = option_at(command, at);
            take_outputs(c, program, &o);
            take_unclear(c, program, &o);
            if (any)
                take_values(c, &o);
            ignored = o.separate && leaves_out(o.name);
            continue;
        }
        if (any)
            take_response(c, word);
        if (any && !ignored)
            take_guarded(c, word, true);
        ignored = false;
    }
}
