/*
 * named.c - files that settings name: a script of a hook, a status line, a helper for keys, an MCP
 * server, a filter of git, wherever it lies.  What an agent writes there is started later, outside
 * of any decision (docs/formats/live.md §4).
 *
 * The files are searched for words, not parsed: people write them, in JSON, TOML and git's own
 * form, and a word that is a path is one in each of these.
 */
#include <string.h>

#include "live/decide_parts.h"
#include "os/api.h"

#define SETTINGS_BYTES_MAX ((size_t)8 << 20)

typedef struct settings_file {
    const char *name; /* in the work tree, and in the user's folder */
    bool only_whole;  /* it has other texts, too: only a text that is nothing but the path counts */
} settings_file;

static const settings_file settings_files[] = {
    {".claude/settings.json", false},
    {".claude/settings.local.json", false},
    {".claude.json", true},
    {".mcp.json", false},
    {".codex/config.toml", false},
    {".codex/hooks.json", false},
    {".gemini/settings.json", false},
    {".cursor/mcp.json", false},
    {".cursor/hooks.json", false},
    {".copilot/mcp-config.json", false},
    {".copilot/settings.json", false},
    {".vscode/mcp.json", false},
    {"opencode.json", false},
    {".config/opencode/opencode.json", false},
    {".git/config", false},
    {".gitconfig", false},
    {".config/git/config", false},
};

_Static_assert(CX_COUNT_OF(settings_files) == CX_LIVE_SETTINGS_FILES, "room in cx_deciding");

/* --- words ------------------------------------------------------------------------------------ */

static bool ends_word(char c)
{
    return (uint8_t)c <= ' ' || strchr("\"'`,=[](){}<>;|&!", c) != NULL;
}

/* The word around text[at..at+size); empty when it goes on after that. */
static cx_str word_at(cx_str text, size_t at, size_t size, bool only_whole)
{
    const cx_str none = {NULL, 0};
    size_t begin = at, end = at + size;
    while (begin != 0 && !ends_word(text.data[begin - 1]))
        begin--;
    bool closed = end < text.size && text.data[end] == '"';
    bool opened = begin != 0 && text.data[begin - 1] == '"';
    if (end < text.size && !ends_word(text.data[end]) && text.data[end] != '\\')
        return none;
    if (begin != 0 && text.data[begin - 1] == '(') /* "Edit(src/a.c)" permits, and starts nothing */
        return none;
    return only_whole && !(opened && closed) ? none : cx_str_from(text.data + begin, end - begin);
}

/* Without what a shell or a program puts before a path: "$DIR/", "~/", "./", and the '/' after a
 * variable in quotes or braces. */
static cx_str without_start(cx_str word)
{
    if (word.size != 0 && (word.data[0] == '$' || word.data[0] == '~')) {
        const char *slash = memchr(word.data, '/', word.size);
        word = slash == NULL ? CX_STR("")
                             : cx_str_from(slash, (size_t)(word.data + word.size - slash));
    }
    while (word.size != 0 && (word.data[0] == '/' || cx_str_starts(word, CX_STR("./")))) {
        size_t skip = word.data[0] == '/' ? 1 : 2;
        word = cx_str_from(word.data + skip, word.size - skip);
    }
    return word;
}

static bool is_in(cx_str path, cx_str folder, cx_str rest)
{
    return folder.size > 1 && rest.size != 0 && path.size == folder.size + 1 + rest.size &&
           cx_live_path_below(path, folder) && cx_str_ends(path, rest);
}

static bool means(const cx_deciding *d, cx_str word, cx_str path)
{
    cx_str rest = without_start(word);
    return cx_str_eq(word, path) || is_in(path, d->policy->root, rest) ||
           is_in(path, d->policy->user_home, rest) || is_in(path, d->cwd, rest);
}

static bool has_word(const cx_deciding *d, cx_str text, cx_str path, bool only_whole)
{
    size_t from = path.size;
    while (from != 0 && path.data[from - 1] != '/')
        from--;
    const cx_str name = {path.data + from, path.size - from};
    for (size_t at = 0; name.size != 0 && at + name.size <= text.size; at++) {
        const char *found = memmem(text.data + at, text.size - at, name.data, name.size);
        if (found == NULL)
            return false;
        at = (size_t)(found - text.data);
        cx_str word = word_at(text, at, name.size, only_whole);
        if (word.size != 0 && means(d, word, path))
            return true;
    }
    return false;
}

/* --- git's hooks ------------------------------------------------------------------------------ */

/* `core.hooksPath`: everything in that folder is started by git. */
static bool is_hook_of_git(const cx_deciding *d, cx_str text, cx_str path)
{
    static const char key[] = "hookspath";
    for (size_t at = 0; at + sizeof key - 1 < text.size; at++) {
        if (strncasecmp(text.data + at, key, sizeof key - 1) != 0)
            continue;
        size_t begin = at + sizeof key - 1;
        while (begin < text.size && strchr(" \t=\"", text.data[begin]) != NULL)
            begin++;
        size_t end = begin;
        while (end < text.size && text.data[end] != '\n' && text.data[end] != '"')
            end++;
        cx_str value = cx_str_from(text.data + begin, end - begin);
        cx_str rest = without_start(value);
        for (size_t i = path.size; i > 1; i--)
            if (path.data[i - 1] == '/' && rest.size != 0 &&
                means(d, value, cx_str_from(path.data, i - 1)))
                return true;
    }
    return false;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Once for a call, which can write thousands of files. */
static void read_settings(cx_deciding *d)
{
    const cx_str folders[] = {d->policy->root, d->policy->user_home};
    for (size_t i = 0; i < CX_COUNT_OF(settings_files) * CX_COUNT_OF(folders); i++) {
        cx_str folder = folders[i % 2];
        cx_buf text;
        cx_err ignored;
        cx_str name = cx_arena_printf(d->arena, "%.*s/%s", (int)folder.size, folder.data,
                                      settings_files[i / 2].name);
        d->settings[i] = CX_STR("");
        if (folder.size < 2 || name.data == NULL)
            continue;
        cx_buf_init(&text, cx_alloc_default());
        if (!cx_failed(
                cx_io_read_file(cx_io_system(), name.data, SETTINGS_BYTES_MAX, &text, &ignored)) &&
            text.size != 0)
            d->settings[i] = cx_arena_copy_str(d->arena, cx_buf_str(&text));
        cx_buf_done(&text);
        if (d->settings[i].data == NULL)
            d->status = cx_fail_nomem(d->err);
    }
    d->settings_read = true;
}

const char *cx_live_settings_that_name(cx_deciding *d, cx_str real)
{
    if (!d->settings_read)
        read_settings(d);
    for (size_t i = 0; i < CX_COUNT_OF(d->settings); i++) {
        const settings_file *file = &settings_files[i / 2];
        cx_str text = d->settings[i];
        if (text.size != 0 && (has_word(d, text, real, file->only_whole) ||
                               (cx_str_ends(cx_str_z(file->name), CX_STR("config")) &&
                                is_hook_of_git(d, text, real))))
            return file->name;
    }
    return NULL;
}
