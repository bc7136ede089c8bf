/*
 * session.c - opens data directory, runs and repository for the commands that follow references
 * between them.
 */
#include "cli/provenance/session.h"

#include <stdlib.h>
#include <string.h>

#include "os/api.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_where.h"

static cx_status open_home(cx_cli *cli, const cx_cli_args *args, cx_cli_session *out, cx_err *err)
{
    const char *path;
    cx_facts facts;
    const cx_home_options reading = cx_cli_home_options(cli, CX_CLI_READ, NULL);
    CX_TRY(cx_cli_home_path(cli, args, &path, err));
    if (!cx_cli_has(args, "home") && cx_failed(cx_path_facts(path, true, &facts, NULL)))
        return CX_SUCCESS;
    return cx_home_open(path, &reading, &out->home, err);
}

static cx_status open_repo(cx_cli *cli, const cx_cli_args *args, cx_cli_session *out, cx_err *err)
{
    const char *repo = cx_cli_value(args, "repo");
    cx_err ignored;
    if (repo != NULL)
        CX_TRY(cx_git_open(repo, NULL, cli->alloc, &out->git, err));
    else if (cx_failed(cx_git_open(".", NULL, cli->alloc, &out->git, &ignored)))
        out->git = NULL; /* not in a repository */
    if (!cx_failed(cx_cli_run_store(cli, repo, false, &out->store, &ignored)))
        out->sources.store = &out->store;
    out->sources.git = out->git;
    return CX_SUCCESS;
}

cx_status cx_cli_session_open(cx_cli *cli, const cx_cli_args *args, cx_cli_session *out,
                              cx_err *err)
{
    memset(out, 0, sizeof *out);
    cx_status status = open_home(cli, args, out, err);
    if (!cx_failed(status))
        status = cx_sources_open(out->home, cli->io, cli->alloc, &out->sources, err);
    if (!cx_failed(status))
        status = open_repo(cli, args, out, err);
    if (cx_failed(status))
        cx_cli_session_close(out);
    return status;
}

cx_status cx_cli_session_open_over(cx_cli *cli, const cx_cli_args *args, cx_home *home,
                                   cx_cli_session *out, cx_err *err)
{
    memset(out, 0, sizeof *out);
    cx_status status = cx_sources_open(home, cli->io, cli->alloc, &out->sources, err);
    if (!cx_failed(status))
        status = open_repo(cli, args, out, err);
    if (cx_failed(status))
        cx_cli_session_close(out);
    return status;
}

void cx_cli_session_close(cx_cli_session *session)
{
    cx_sources_done(&session->sources);
    cx_git_close(session->git);
    cx_status closed = session->home == NULL ? CX_SUCCESS : cx_home_close(session->home, NULL);
    (void)closed; /* nothing was written */
    memset(session, 0, sizeof *session);
}

/* FILE:LINE where there is such a file, seen from where this is run. */
static bool is_line(cx_cli *cli, const char *text)
{
    const char *colon = strrchr(text, ':');
    cx_facts facts;
    if (colon == NULL || colon[1] == 0 || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    cx_str file = cx_arena_copy_str(&cli->arena, cx_str_from(text, (size_t)(colon - text)));
    return file.data != NULL && !cx_failed(cx_path_facts(file.data, true, &facts, NULL)) &&
           facts.kind == CX_FILE_REGULAR;
}

/* Git is asked from the top of the work tree. */
static cx_status line_of(cx_cli *cli, const cx_cli_session *session, const char *text,
                         cx_prov_object *out, cx_err *err)
{
    const char *colon = strrchr(text, ':'), *top;
    cx_str file = cx_arena_copy_str(&cli->arena, cx_str_from(text, (size_t)(colon - text)));
    if (session->git == NULL)
        return cx_fail(
            err, CX_E_USAGE,
            "'%s' names a line of a file, but the current folder is not in a git repository", text);
    top = cx_git_worktree(session->git);
    char *real = file.data == NULL ? NULL : realpath(file.data, NULL);
    size_t size = strlen(top);
    bool inside = real != NULL && strncmp(real, top, size) == 0 && real[size] == '/';
    cx_str id =
        inside ? cx_arena_printf(&cli->arena, "%s%s", real + size + 1, colon) : (cx_str){NULL, 0};
    free(real);
    if (!inside)
        return cx_fail(err, CX_E_USAGE, "%s is not in the repository %s", file.data, top);
    *out = (cx_prov_object){.kind = CX_PROV_LINE, .id = id, .matched = "line", .known = true};
    return id.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* A folder is no object: what it is, and the command that is meant.  Otherwise `err` stays. */
static cx_status fail_folder(cx_cli *cli, const char *path, cx_status unknown, cx_err *err)
{
    cx_facts facts;
    if (cx_failed(cx_path_facts(path, true, &facts, NULL)) || facts.kind != CX_FILE_FOLDER)
        return unknown;
    cx_str log = cx_arena_printf(&cli->arena, "%s/log", path);
    cx_str events = cx_arena_printf(&cli->arena, "%s/events.jsonl", path);
    cx_str word = cx_cli_quoted(&cli->arena, path);
    if (log.data == NULL || events.data == NULL || word.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_failed(cx_path_facts(log.data, true, &facts, NULL)) && facts.kind == CX_FILE_FOLDER)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoThing", CX_NO_OFFSET,
                          "found a data directory, expected an id; 'cortex status --home %s' shows "
                          "what is in it",
                          word.data);
    if (!cx_failed(cx_path_facts(events.data, true, &facts, NULL)))
        return cx_fail_at(
            err, CX_E_NOT_FOUND, "NoThing", CX_NO_OFFSET,
            "found the folder of a run, expected an id; 'cortex run verify %s' checks "
            "it, 'cortex view %s' shows it",
            word.data, word.data);
    return cx_fail_at(
        err, CX_E_NOT_FOUND, "NoThing", CX_NO_OFFSET,
        "found a folder, expected an id or a file; 'cortex view FILE' shows a session "
        "in it, 'cortex up %s' archives and shows all of them",
        word.data);
}

cx_status cx_cli_session_find(cx_cli *cli, cx_cli_session *session, const char *text, bool lines,
                              cx_prov_object *out, cx_json *out_list, cx_err *err)
{
    const cx_prov_object *objects;
    size_t count;
    if (lines && is_line(cli, text))
        return line_of(cli, session, text, out, err);
    cx_status found =
        cx_prov_objects_find(&session->sources, cx_str_z(text), &cli->arena, &objects, &count, err);
    if (cx_failed(found))
        return found.code == CX_E_NOT_FOUND ? fail_folder(cli, text, found, err) : found;
    *out = objects[0];
    if (count == 1)
        return CX_SUCCESS;
    CX_TRY(cx_prov_objects_list(&session->sources, objects, count, &cli->arena, out_list, err));
    return cx_fail_at(err, CX_E_CONFLICT, "Ambiguous", CX_NO_OFFSET,
                      "'%s' matches %zu objects; give more characters of it", text, count);
}

void cx_cli_session_candidates(cx_buf *out, const cx_json *list)
{
    const cx_json *items = CX_JSON_GET(list, "candidates");
    for (uint32_t i = 0; items != NULL && i < items->count; i++) {
        const cx_json *item = &items->items[i];
        cx_str kind = CX_JSON_GET_STR(item, "kind"), matched = CX_JSON_GET_STR(item, "matched");
        cx_buf_printf(out, "%-9.*s ", (int)kind.size, kind.data);
        cx_shown_add(out, CX_JSON_GET_STR(item, "id"));
        cx_buf_printf(out, "  (by its %.*s)\n", (int)matched.size, matched.data);
    }
}

int cx_cli_session_fail(cx_cli *cli, const cx_cli_args *args, const cx_err *err)
{
    int code = cx_cli_ledger_fail(cli, args, err);
    bool asked = err->tag != NULL &&
                 (strcmp(err->tag, "Ambiguous") == 0 || strcmp(err->tag, "NoThing") == 0);
    return asked ? CX_EXIT_USAGE : code;
}
