/*
 * codex_trust.c - see codex_trust.h.
 */
#include "cli/live/codex_trust.h"

#include <string.h>
#include <unistd.h>

#include "crypto/api.h"
#include "os/api.h"

#define ANSWER_MS 30000
#define LINE_MAX_BYTES ((size_t)8 << 20)

/* --- asking ----------------------------------------------------------------------------------- */

static cx_status send_line(cx_spawn_child *child, const char *line, cx_err *err)
{
    return cx_spawn_write(child, cx_str_bytes(cx_str_z(line)), ANSWER_MS, err);
}

/* The result of the answer with this id; other messages are passed over. */
static cx_status read_result(cx_cli *cli, cx_spawn_child *child, int64_t id, cx_json *out,
                             cx_err *err)
{
    for (unsigned i = 0; i < 1000; i++) {
        cx_str line;
        cx_json value;
        cx_err ignored;
        bool end;
        int64_t number;
        CX_TRY(cx_spawn_read_line(child, LINE_MAX_BYTES, ANSWER_MS, &line, &end, err));
        if (end)
            return cx_fail(err, CX_E_IO, "it ended without an answer");
        line = cx_arena_copy_str(&cli->arena, line);
        if (line.data == NULL)
            return cx_fail_nomem(err);
        if (cx_failed(cx_json_parse_text(line, &cli->arena, &value, &ignored)))
            continue;
        const cx_json *got = CX_JSON_GET(&value, "id"), *result = CX_JSON_GET(&value, "result");
        if (got == NULL || !cx_json_int64(got, &number) || number != id)
            continue;
        if (result == NULL)
            return cx_fail(err, CX_E_IO,
                           "it refused the request: this version of Codex may not "
                           "have hooks");
        *out = *result;
        return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_LIMIT, "no answer among 1000 messages");
}

static void take_hook(cx_cli *cli, const cx_json *hook, const char *file, cx_codex_hooks *out)
{
    cx_live_hook ours;
    cx_str command = CX_JSON_GET_STR(hook, "command"), key = CX_JSON_GET_STR(hook, "key");
    cx_str hash = CX_JSON_GET_STR(hook, "currentHash");
    if (out->ours == CX_CODEX_HOOKS_MAX || command.data == NULL || key.size == 0 ||
        !cx_str_is(CX_JSON_GET_STR(hook, "sourcePath"), file) ||
        !cx_live_hook_command_read(command, &cli->arena, &ours) || ours.agent != CX_LIVE_CODEX)
        return;
    bool trusted = cx_str_is(CX_JSON_GET_STR(hook, "trustStatus"), "trusted");
    out->items[out->ours++] = (cx_codex_hook){key, hash, trusted};
    out->trusted += trusted;
}

static cx_status ask_list(cx_cli *cli, cx_spawn_child *child, const char *folder, const char *file,
                          cx_codex_hooks *out, cx_err *err)
{
    cx_json result;
    cx_buf line;
    CX_TRY(
        send_line(child,
                  "{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"name\":"
                  "\"cortex\",\"version\":\"1\"},\"capabilities\":{\"experimentalApi\":true}}}\n",
                  err));
    CX_TRY(read_result(cli, child, 1, &result, err));
    CX_TRY(send_line(child, "{\"method\":\"initialized\"}\n", err));
    cx_buf_init(&line, cli->alloc);
    cx_buf_add_z(&line, "{\"id\":2,\"method\":\"hooks/list\",\"params\":{\"cwds\":[");
    cx_json_write_str(&line, cx_str_z(folder), CX_JSON_JCS);
    cx_buf_add_z(&line, "]}}\n");
    const char *text = cx_buf_z(&line);
    cx_status status = text == NULL ? cx_fail_nomem(err) : send_line(child, text, err);
    cx_buf_done(&line);
    CX_TRY(status);
    CX_TRY(read_result(cli, child, 2, &result, err));
    const cx_json *data = cx_json_get_typed(&result, CX_STR("data"), CX_JSON_ARRAY);
    for (uint32_t i = 0; data != NULL && i < data->count; i++) {
        const cx_json *list = cx_json_get_typed(&data->items[i], CX_STR("hooks"), CX_JSON_ARRAY);
        for (uint32_t k = 0; list != NULL && k < list->count; k++)
            take_hook(cli, &list->items[k], file, out);
    }
    return CX_SUCCESS;
}

cx_status cx_codex_hooks_ask(cx_cli *cli, const char *program, cx_codex_hooks *out, cx_err *err)
{
    const char *folder, *file;
    const char *const argv[] = {program, "app-server", NULL};
    cx_spawn_options options = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_child *child;
    cx_err ignored;
    *out = (cx_codex_hooks){.ours = 0};
    CX_TRY(cx_agent_user_folder(cli, CX_LIVE_CODEX, &folder, err));
    CX_TRY(cx_agent_file_path(cli, CX_LIVE_CODEX, CX_SCOPE_USER, &file, err));
    options.argv = argv;
    options.envp = cx_machine_environment();
    options.cwd = folder;
    options.in = CX_SPAWN_IN_PIPE;
    options.out.to = CX_SPAWN_OUT_LINES;
    options.timeout_ms = ANSWER_MS;
    CX_TRY(cx_spawn_open(&options, &child, err));
    cx_status status = ask_list(cli, child, folder, file, out, err);
    cx_status closed = cx_spawn_close(child, 2000, NULL, &ignored);
    (void)closed;
    return status;
}

/* --- config.toml ------------------------------------------------------------------------------ */

static void add_header(cx_buf *out, cx_str key)
{
    cx_buf_add_z(out, "[hooks.state.\"");
    for (size_t i = 0; i < key.size; i++) {
        if (key.data[i] == '"' || key.data[i] == '\\')
            cx_buf_add_byte(out, '\\');
        cx_buf_add_byte(out, (uint8_t)key.data[i]);
    }
    cx_buf_add_z(out, "\"]");
}

static cx_str trimmed(cx_str line)
{
    while (line.size != 0 && strchr(" \t\r\n", line.data[line.size - 1]) != NULL)
        line.size--;
    while (line.size != 0 && strchr(" \t", line.data[0]) != NULL) {
        line.data++;
        line.size--;
    }
    return line;
}

/* Which of the hooks a line is the header of; the count when none. */
static size_t header_of(cx_str line, const cx_codex_hooks *hooks, cx_buf *scratch)
{
    for (size_t i = 0; i < hooks->ours; i++) {
        cx_buf_clear(scratch);
        add_header(scratch, hooks->items[i].key);
        if (cx_str_eq(trimmed(line), cx_buf_str(scratch)))
            return i;
    }
    return hooks->ours;
}

static void add_hash(cx_buf *out, const cx_codex_hook *hook)
{
    cx_buf_printf(out, "trusted_hash = \"%.*s\"\n", (int)hook->hash.size, hook->hash.data);
}

cx_status cx_codex_trust_text(cx_str text, const cx_codex_hooks *hooks, bool without, cx_buf *out,
                              cx_err *err)
{
    bool seen[CX_CODEX_HOOKS_MAX] = {false};
    size_t inside = hooks->ours; /* the hook whose section the line is in */
    cx_buf scratch;
    cx_buf_init(&scratch, cx_alloc_default());
    for (size_t at = 0; at < text.size;) {
        const char *feed = memchr(text.data + at, '\n', text.size - at);
        size_t size = feed == NULL ? text.size - at : (size_t)(feed - text.data) + 1 - at;
        cx_str line = cx_str_from(text.data + at, size), bare = trimmed(line);
        at += size;
        bool header = bare.size != 0 && bare.data[0] == '[';
        if (header)
            inside = header_of(line, hooks, &scratch);
        bool ours = inside < hooks->ours;
        bool content = bare.size != 0 && bare.data[0] != '#';
        if (ours && content && (without || cx_str_starts(bare, CX_STR("trusted_hash")))) {
            /* An empty line before the section was added with it. */
            if (without && header && out->size > 1 && out->data[out->size - 1] == '\n' &&
                out->data[out->size - 2] == '\n')
                out->size--;
            continue;
        }
        cx_buf_add_str(out, line);
        if (header && ours) {
            add_hash(out, &hooks->items[inside]);
            seen[inside] = true;
        }
    }
    for (size_t i = 0; i < hooks->ours && !without; i++) {
        if (seen[i])
            continue;
        if (out->size != 0)
            cx_buf_add_z(out, out->data[out->size - 1] == '\n' ? "\n" : "\n\n");
        add_header(out, hooks->items[i].key);
        cx_buf_add_z(out, "\n");
        add_hash(out, &hooks->items[i]);
    }
    bool failed = scratch.failed;
    cx_buf_done(&scratch);
    return failed ? cx_fail_nomem(err) : cx_buf_check(out, err);
}

/* --- changing it ------------------------------------------------------------------------------ */

static cx_status read_config(cx_cli *cli, cx_agent_file *out, cx_err *err)
{
    const char *folder;
    CX_TRY(cx_agent_user_folder(cli, CX_LIVE_CODEX, &folder, err));
    cx_str path = cx_arena_printf(&cli->arena, "%s/config.toml", folder);
    return path.data == NULL ? cx_fail_nomem(err)
                             : cx_agent_file_read(cli, path.data, true, out, err);
}

static cx_status make_text(cx_cli *cli, cx_str text, const cx_codex_hooks *hooks, bool without,
                           cx_str *out, cx_err *err)
{
    cx_buf made;
    cx_buf_init(&made, cli->alloc);
    cx_status status = cx_codex_trust_text(text, hooks, without, &made, err);
    *out =
        cx_failed(status) ? (cx_str){NULL, 0} : cx_arena_copy_str(&cli->arena, cx_buf_str(&made));
    cx_buf_done(&made);
    return !cx_failed(status) && out->data == NULL ? cx_fail_nomem(err) : status;
}

/* T2: what was there before, as it was. */
static cx_status put_back(cx_cli *cli, const cx_agent_file *before, cx_err *err)
{
    cx_agent_file now;
    CX_TRY(cx_agent_file_read(cli, before->path, true, &now, err));
    return before->there ? cx_agent_file_write(cli, &now, before->text, before->mode, err)
                         : cx_agent_file_remove(cli, &now, err);
}

static cx_status write_trust(cx_cli *cli, const char *home, const cx_codex_hooks *hooks,
                             cx_agent_file *config, cx_err *err)
{
    cx_str text, keys[CX_CODEX_HOOKS_MAX];
    cx_agent_undo undo;
    CX_TRY(read_config(cli, config, err));
    CX_TRY(cx_agent_undo_read(cli, home, config->path, &undo, err));
    CX_TRY(make_text(cli, config->text, hooks, false, &text, err));
    for (size_t i = 0; i < hooks->ours; i++)
        keys[i] = hooks->items[i].key;
    cx_digest now = cx_digest_of(cx_str_bytes(config->text));
    if (!undo.known || !cx_digest_eq(&now, &undo.wrote)) {
        undo.was_there = config->there;
        CX_TRY(make_text(cli, config->text, hooks, true, &undo.before, err));
    }
    undo.wrote = cx_digest_of(cx_str_bytes(text));
    undo.keys = keys;
    undo.key_count = hooks->ours;
    CX_TRY(cx_agent_undo_write(cli, home, config->path, &undo, err));
    return cx_agent_file_write(cli, config, text, 0600, err);
}

cx_status cx_codex_trust_ours(cx_cli *cli, const char *program, const char *home,
                              cx_str *out_message, bool *out_trusted, cx_err *err)
{
    cx_codex_hooks hooks;
    cx_agent_file config;
    cx_err why = {0};
    *out_trusted = false;
    CX_TRY(cx_codex_hooks_ask(cli, program, &hooks, err));
    if (hooks.ours == 0)
        return cx_fail(err, CX_E_CONFLICT,
                       "Codex does not list the hooks that were written: "
                       "'codex features list' shows whether it has hooks");
    *out_trusted = hooks.trusted == hooks.ours;
    if (!*out_trusted && home != NULL) {
        CX_TRY(write_trust(cli, home, &hooks, &config, err));
        cx_status status = cx_codex_hooks_ask(cli, program, &hooks, &why);
        *out_trusted = !cx_failed(status) && hooks.ours != 0 && hooks.trusted == hooks.ours;
        if (!*out_trusted) {
            CX_TRY(put_back(cli, &config, err));
            CX_TRY(cx_agent_undo_forget(cli, home, config.path, err));
            return cx_fail(err, CX_E_CONFLICT,
                           "Codex did not accept the hashes in %s, which is as it was (%s): review "
                           "the hooks in codex with /hooks",
                           config.path, cx_failed(status) ? why.message : "still not trusted");
        }
    }
    *out_message = *out_trusted ? CX_STR("Codex trusts these hooks")
                                : CX_STR("Codex does not trust these hooks and skips them without "
                                         "a word: review them in codex with /hooks");
    return CX_SUCCESS;
}

cx_status cx_codex_trust_undo(cx_cli *cli, const char *home, cx_err *err)
{
    cx_agent_file config;
    cx_agent_undo undo;
    cx_codex_hooks hooks = {.ours = 0};
    cx_str text;
    CX_TRY(read_config(cli, &config, err));
    CX_TRY(cx_agent_undo_read(cli, home, config.path, &undo, err));
    if (!undo.known)
        return CX_SUCCESS;
    for (size_t i = 0; i < undo.key_count && i < CX_CODEX_HOOKS_MAX; i++)
        hooks.items[hooks.ours++].key = undo.keys[i];
    cx_digest now = cx_digest_of(cx_str_bytes(config.text));
    bool exact = cx_digest_eq(&now, &undo.wrote);
    if (exact)
        text = undo.before;
    else
        CX_TRY(make_text(cli, config.text, &hooks, true, &text, err));
    if (config.there && exact && !undo.was_there)
        CX_TRY(cx_agent_file_remove(cli, &config, err));
    else if (config.there && !cx_str_eq(text, config.text))
        CX_TRY(cx_agent_file_write(cli, &config, text, config.mode, err));
    return cx_agent_undo_forget(cli, home, config.path, err);
}
