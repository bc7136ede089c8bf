/*
 * files.c - programs whose arguments are files that they change: each file as what the program does
 * with it (docs/formats/live.md §4.2).
 */
#include <string.h>

#include "live/decide_parts.h"
#include "os/api.h"

typedef enum writer_form {
    MAKES,    /* each file is written */
    REPLACES, /* each with what is below it: it is not there any more, or cannot be reached */
    MOVES,
    COPIES,
    LINKS
} writer_form;

typedef struct writer {
    const char *name;
    writer_form form;
    unsigned skip; /* arguments before the files */
} writer;

static const writer writers[] = {
    {"mkdir", MAKES, 0},    {"rmdir", REPLACES, 0}, {"touch", MAKES, 0}, {"rm", REPLACES, 0},
    {"mv", MOVES, 0},       {"cp", COPIES, 0},      {"tee", MAKES, 0},   {"ln", LINKS, 0},
    {"chmod", REPLACES, 1}, {"truncate", MAKES, 0}};

static const writer *writer_of(cx_str program)
{
    for (size_t i = 0; i < CX_COUNT_OF(writers); i++)
        if (cx_str_is(program, writers[i].name))
            return &writers[i];
    return NULL;
}

/* --- words ------------------------------------------------------------------------------------ */

typedef struct operands {
    const cx_shell_command *command;
    size_t at;
    bool ended; /* after "--" */
    bool chmod;
    unsigned skip;
} operands;

static operands operands_of(const cx_shell_command *command, const writer *kind)
{
    return (operands){
        .command = command, .at = 1, .skip = kind->skip, .chmod = strcmp(kind->name, "chmod") == 0};
}

static bool is_option(cx_str word)
{
    return word.size > 1 && word.data[0] == '-';
}

/* "-x" of chmod is a mode, and takes the place of the argument. */
static bool is_mode(const operands *o, cx_str word)
{
    return o->chmod && is_option(word) && strchr("rwxXstugo0123456789,+-=", word.data[1]) != NULL &&
           word.data[1] != '-';
}

/* The index of the next word that is a file; the count of words after the last. */
static size_t next_operand(operands *o)
{
    while (o->at < o->command->count) {
        size_t at = o->at++;
        cx_str word = o->command->words[at].text;
        if (!o->ended && cx_str_is(word, "--"))
            o->ended = true;
        else if (!o->ended && is_mode(o, word))
            o->skip = 0;
        else if (!o->ended && is_option(word))
            continue;
        else if (o->skip != 0)
            o->skip--;
        else
            return at;
    }
    return o->command->count;
}

/* Options that name a file elsewhere. */
static bool names_a_target(cx_str word)
{
    return cx_str_is(word, "--p") || cx_str_starts(word, CX_STR("--pa")) || /* --parents */
           cx_str_starts(word, CX_STR("--t")) || cx_str_starts(word, CX_STR("--ref")) ||
           cx_str_starts(word, CX_STR("--su")) || cx_str_starts(word, CX_STR("--si")) ||
           (word.size >= 2 && word.data[0] == '-' && word.data[1] != '-' &&
            (memchr(word.data, 't', word.size) != NULL ||
             memchr(word.data, 'S', word.size) != NULL));
}

static bool has_target_option(const cx_shell_command *command)
{
    for (size_t i = 1; i < command->count && !cx_str_is(command->words[i].text, "--"); i++)
        if (is_option(command->words[i].text) && names_a_target(command->words[i].text))
            return true;
    return false;
}

/* What a relative link means depends on where it stands, and not on where it was made. */
static bool links_from_elsewhere(const cx_shell_command *command)
{
    bool symbolic = false, upwards = false, elsewhere = false, absolute = false;
    size_t files = 0;
    for (size_t i = 1; i < command->count; i++) {
        cx_str word = command->words[i].text;
        if (is_option(word)) {
            symbolic = symbolic || word.data[1] == '-' || memchr(word.data, 's', word.size) != NULL;
            continue;
        }
        if (files++ == 0) {
            absolute = word.size != 0 && word.data[0] == '/';
            upwards = cx_live_has_parent(word);
        } else {
            elsewhere = elsewhere || (word.size != 0 && memchr(word.data, '/', word.size) != NULL);
        }
    }
    return symbolic && !(absolute && files == 2) && (upwards || elsewhere || files != 2);
}

/* --- the files -------------------------------------------------------------------------------- */

static void copy_from(cx_deciding *d, cx_str path)
{
    if (cx_deciding_holds_secrets(d, path))
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_FORBIDDEN, "L15", path,
                        "below it is what the policy keeps from being read");
    else
        cx_deciding_read(d, path);
}

static bool has_option(const cx_shell_command *command, char letter, const char *name)
{
    for (size_t i = 1; i < command->count && !cx_str_is(command->words[i].text, "--"); i++) {
        cx_str word = command->words[i].text;
        if (!is_option(word))
            continue;
        cx_str text = cx_str_from(word.data + 2, word.size - 2);
        if (word.data[1] != '-' ? memchr(word.data + 1, letter, word.size - 1) != NULL
                                : text.size > 1 && cx_str_starts(cx_str_z(name), text))
            return true;
    }
    return false;
}

/* --- one file to another place ---------------------------------------------------------------- */

#define TREE_ENTRIES_MAX 4096

typedef struct transfer {
    cx_live_command *c;
    writer_form form;
    bool recursive;
    cx_str from, to; /* the folder whose entries are looked at, and where they go */
} transfer;

static cx_str joined(cx_deciding *d, cx_str folder, cx_str name)
{
    cx_str path = cx_arena_printf(d->arena, "%.*s/%.*s", (int)folder.size, folder.data,
                                  (int)name.size, name.data);
    if (path.data == NULL)
        d->status = cx_fail_nomem(d->err);
    return path;
}

/* The last component: empty for "x/.", ".." and "/", whose contents are meant. */
static cx_str base_of(cx_str path)
{
    while (path.size != 0 && path.data[path.size - 1] == '/')
        path.size--;
    size_t from = path.size;
    while (from != 0 && path.data[from - 1] != '/')
        from--;
    cx_str name = cx_str_from(path.data + from, path.size - from);
    return cx_str_is(name, ".") || cx_str_is(name, "..") ? CX_STR("") : name;
}

static bool is_folder(cx_deciding *d, cx_str path)
{
    cx_str real = cx_deciding_resolve(d, path);
    cx_err ignored;
    cx_facts facts;
    return real.data != NULL && !cx_failed(cx_path_facts(real.data, true, &facts, &ignored)) &&
           facts.kind == CX_FILE_FOLDER;
}

/* Copied as a link, a later write to it goes where it leads; else that is read. */
static void copy_link(transfer *t, cx_str link)
{
    cx_deciding *d = t->c->d;
    cx_str real = cx_deciding_resolve(d, link);
    if (real.data != NULL && !cx_deciding_may_read(d, real))
        cx_deciding_read(d, real);
    else if (cx_deciding_below_root(d, real).data == NULL)
        cx_live_command_add(t->c, CX_LIVE_UNLISTED, "L08",
                            "a link in the folder leads out of the work tree");
}

/* A copy is where the entry stood below the folder. */
static cx_walk_step copy_entry(void *arg, const cx_walk_entry *entry)
{
    transfer *t = arg;
    cx_deciding *d = t->c->d;
    cx_str name = cx_str_from(entry->path, entry->path_size);
    cx_str to = joined(d, t->to, name);
    if (cx_failed(d->status))
        return CX_WALK_STOP;
    cx_deciding_write_quietly(d, to);
    if (entry->facts.kind == CX_FILE_LINK)
        copy_link(t, joined(d, t->from, name));
    return cx_failed(d->status) || d->too_many ? CX_WALK_STOP : CX_WALK_ON;
}

/* What is below a folder is written below `t->to`. */
static void copy_tree(transfer *t, cx_str from)
{
    cx_deciding *d = t->c->d;
    const cx_walk_limits limits = {.entries = TREE_ENTRIES_MAX, .depth = 64, .may_vanish = true};
    cx_str real = cx_deciding_resolve(d, from);
    cx_file folder;
    cx_err ignored;
    t->from = real;
    if (real.data == NULL || cx_failed(cx_folder_open(real.data, &folder, &ignored)))
        return; /* no folder, or cp cannot read it either */
    cx_status status = cx_folder_walk(folder, &limits, copy_entry, t, &ignored);
    cx_folder_close(folder);
    if (cx_failed(status) && !cx_failed(d->status))
        cx_live_command_add(
            t->c, CX_LIVE_UNLISTED, "L08",
            "more files than are looked at (4096), or a folder that cannot be read");
}

static void take_source(transfer *t, cx_str from)
{
    cx_deciding *d = t->c->d;
    if (t->form == COPIES)
        copy_from(d, from);
    else
        cx_deciding_replace(d, from);
}

static void transfer_file(transfer *t, cx_str from, cx_str to, bool into)
{
    cx_deciding *d = t->c->d;
    cx_str name = base_of(from);
    take_source(t, from);
    t->to = into && name.size != 0 ? joined(d, to, name) : to;
    if (cx_failed(d->status))
        return;
    if (into && name.size == 0)
        cx_deciding_write_quietly(d, t->to);
    else
        cx_deciding_write(d, t->to);
    /* The folder can be made by the same line. */
    if (!into && name.size != 0)
        cx_deciding_write_quietly(d, joined(d, to, name));
    if (t->form == COPIES && t->recursive && is_folder(d, from))
        copy_tree(t, from);
}

static size_t last_operand(const cx_shell_command *command, const writer *kind)
{
    operands all = operands_of(command, kind);
    size_t last = command->count;
    for (size_t at = next_operand(&all); at < command->count; at = next_operand(&all))
        last = at;
    return last;
}

static bool is_unknown(const cx_shell_word *word)
{
    return word->glob || word->opaque;
}

/* A file that only the shell knows is among them. */
static bool has_unknown(cx_live_command *c, const writer *kind)
{
    const cx_shell_command *command = c->command;
    operands files = operands_of(command, kind);
    for (size_t at = next_operand(&files); at < command->count; at = next_operand(&files))
        if (is_unknown(&command->words[at]))
            return true;
    return false;
}

static void take_transfers(cx_live_command *c, const writer *kind)
{
    const cx_shell_command *command = c->command;
    operands files = operands_of(command, kind);
    size_t last = last_operand(command, kind), first = next_operand(&files);
    bool links = kind->form == COPIES &&
                 (has_option(command, 'l', "link") || has_option(command, 's', "symbolic-link"));
    transfer t = {.c = c,
                  .form = links ? LINKS : kind->form,
                  .recursive = has_option(command, 'r', "recursive") ||
                               has_option(command, 'R', "recursive") ||
                               has_option(command, 'a', "archive")};
    if (last == command->count)
        return;
    cx_str to = first == last ? CX_STR(".") : command->words[last].text;
    bool into =
        first == last || (!has_option(command, 'T', "no-target-directory") && is_folder(c->d, to));
    for (size_t at = first; at < command->count && !cx_failed(c->d->status);
         at = next_operand(&files))
        if (is_unknown(&command->words[at]) || (at == last && first != last))
            continue;
        else if (is_unknown(&command->words[last]))
            take_source(&t, command->words[at].text);
        else
            transfer_file(&t, command->words[at].text, to, into);
}

static void take_each(cx_live_command *c, const writer *kind)
{
    const cx_shell_command *command = c->command;
    operands files = operands_of(command, kind);
    for (size_t at = next_operand(&files); at < command->count; at = next_operand(&files)) {
        const cx_shell_word *word = &command->words[at];
        if (is_unknown(word))
            return;
        if (kind->form == MAKES)
            cx_deciding_write(c->d, word->text);
        else
            cx_deciding_replace(c->d, word->text);
    }
}

bool cx_live_take_files(cx_live_command *c)
{
    const writer *kind = writer_of(c->program);
    if (kind == NULL)
        return false;
    if (cx_str_is(c->program, "ln") && links_from_elsewhere(c->command))
        cx_live_command_add(c, CX_LIVE_UNLISTED, "L08",
                            "a relative link leads elsewhere from where it stands");
    else if (has_target_option(c->command))
        cx_live_command_add(c, CX_LIVE_UNLISTED, "L08", "an option names another file");
    else if (kind->form == MAKES || kind->form == REPLACES)
        take_each(c, kind);
    else
        take_transfers(c, kind);
    if (has_unknown(c, kind))
        cx_live_command_add(c, CX_LIVE_UNLISTED, "L08",
                            "only the shell knows which files these are");
    return true;
}
