/*
 * git_config.c - the part of a repository's configuration that an agent may read.
 *
 * Git needs the configuration to understand the repository.  It also has addresses with tokens in
 * them, headers for servers, and names of helpers (remote, url, http, credential, submodule, ..):
 * of those nothing is passed on.  What is passed on is a list of sections, not what is left of a
 * list of secrets.
 */
#include "git/git.h"

#include <stdio.h>

#include "git/git_parts.h"
#include "os/api.h"

#define CONFIG_BYTES_MAX (UINT64_C(4) << 20)

static bool is_public_section(cx_str section)
{
    static const char *const names[] = {"author",     "core",    "commit", "committer", "diff",
                                        "extensions", "feature", "filter", "i18n",      "index",
                                        "init",       "merge",   "user"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_str_is(section, names[i]))
            return true;
    return false;
}

/* Between quotes; line breaks are written as they are read (git-config, "Syntax"). */
static void add_quoted(cx_buf *out, cx_str text)
{
    cx_buf_add_byte(out, '"');
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '\n') {
            cx_buf_add_z(out, "\\n");
            continue;
        }
        if (c == '"' || c == '\\')
            cx_buf_add_byte(out, '\\');
        cx_buf_add_byte(out, (uint8_t)c);
    }
    cx_buf_add_byte(out, '"');
}

/* "section.name" or "section.any text.name", and after a line break the value. */
static void add_setting(cx_buf *out, cx_str setting)
{
    const char *end = memchr(setting.data, '\n', setting.size);
    cx_str key = {setting.data, end == NULL ? setting.size : (size_t)(end - setting.data)};
    const char *first = memchr(key.data, '.', key.size);
    const char *last = cx_bytes_last(key.data, '.', key.size);
    cx_str section = {key.data, first == NULL ? 0 : (size_t)(first - key.data)};
    if (!is_public_section(section))
        return;
    cx_buf_add_byte(out, '[');
    cx_buf_add_str(out, section);
    if (last != first) {
        cx_buf_add_byte(out, ' ');
        add_quoted(out, (cx_str){first + 1, (size_t)(last - first) - 1});
    }
    cx_buf_add_z(out, "]\n\t");
    cx_buf_add(out, last + 1, key.size - (size_t)(last - key.data) - 1);
    if (end != NULL) {
        cx_buf_add_z(out, " = ");
        add_quoted(out, (cx_str){end + 1, setting.size - key.size - 1});
    }
    cx_buf_add_byte(out, '\n');
}

/* A repository may do without the file. */
static cx_status has_config(const cx_git *git, bool *out, cx_err *err)
{
    char path[CX_PATH_BYTES_MAX + 1];
    cx_facts facts;
    int size = snprintf(path, sizeof path, "%s/config", cx_git_common_dir(git));
    if (size < 0 || (size_t)size >= sizeof path)
        return cx_fail(err, CX_E_LIMIT, "the path of the repository is too long");
    cx_status status = cx_path_facts(path, false, &facts, err);
    *out = status.code != CX_E_NOT_FOUND;
    return *out ? status : CX_SUCCESS;
}

static cx_status list_public_config(const cx_git *git, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_buf listed, text;
    cx_str setting;
    cx_git_call call = {.args = CX_GIT_ARGS("config", "--local", "--no-includes", "--list", "-z"),
                        .output_limit_bytes = CONFIG_BYTES_MAX,
                        .bare = true,
                        .common = true};
    cx_buf_init(&listed, arena->alloc);
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_git_call_run(git, &call, &listed, NULL, err);
    cx_git_fields fields = {cx_buf_str(&listed), false};
    while (!cx_failed(status) && cx_git_field(&fields, &setting))
        add_setting(&text, setting);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&listed);
    cx_buf_done(&text);
    return status;
}

cx_status cx_git_public_config(const cx_git *git, cx_arena *arena, cx_str *out, cx_err *err)
{
    bool found;
    *out = (cx_str){NULL, 0};
    CX_TRY(has_config(git, &found, err));
    return found ? list_public_config(git, arena, out, err) : CX_SUCCESS;
}
