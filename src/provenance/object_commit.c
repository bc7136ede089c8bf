/*
 * object_commit.c - commits and lines of the repository, read through git.
 */
#include "evidence/api.h"
#include "provenance/object_parts.h"

#define COMMIT_BYTES_MAX ((size_t)4 << 20)

/* One call of git; its output lives in the arena.  `*out_exit` is git's exit code. */
static cx_status run_git(const cx_sources *sources, const char *const *args, cx_arena *arena,
                         cx_str *out, int *out_exit, cx_err *err)
{
    cx_buf printed;
    cx_buf_init(&printed, sources->alloc);
    const cx_git_call call = {.args = args, .output_limit_bytes = COMMIT_BYTES_MAX};
    cx_status status = cx_git_call_run(sources->git, &call, &printed, out_exit, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&printed));
        status = out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&printed);
    return status;
}

static bool next_line(cx_str *text, cx_str *out)
{
    const char *end = text->size == 0 ? NULL : memchr(text->data, '\n', text->size);
    if (text->size == 0)
        return false;
    size_t size = end == NULL ? text->size : (size_t)(end - text->data);
    *out = cx_str_from(text->data, size);
    size_t used = end == NULL ? size : size + 1;
    *text = cx_str_from(text->data + used, text->size - used);
    return true;
}

static void read_header(cx_str line, const char *name, cx_str *out)
{
    cx_str label = cx_str_z(name);
    if (cx_str_starts(line, label))
        *out = cx_str_from(line.data + label.size, line.size - label.size);
}

/* "author NAME <MAIL> SECONDS ZONE" */
static void read_author(cx_str line, cx_arena *arena, cx_recorded_commit *out)
{
    cx_str author = {NULL, 0};
    read_header(line, "author ", &author);
    const char *close = author.data == NULL ? NULL : cx_bytes_last(author.data, '>', author.size);
    if (close == NULL)
        return;
    size_t name_size = (size_t)(close - author.data) + 1;
    int64_t seconds = 0;
    for (const char *at = close + 2; at < author.data + author.size && *at >= '0' && *at <= '9' &&
                                     seconds < INT64_C(9000000000);
         at++)
        seconds = seconds * 10 + (*at - '0');
    char text[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(seconds * INT64_C(1000000000), text);
    out->author = cx_str_from(author.data, name_size);
    out->author_time = CX_TEXTF(arena, "%.19sZ", text);
}

static cx_status read_note(const cx_sources *sources, const char *name, cx_arena *arena,
                           cx_recorded_commit *out, cx_err *err)
{
    cx_str listed, blob, note, line;
    int code = 0;
    /* `git notes show` would start another git. */
    CX_TRY(run_git(sources, CX_GIT_ARGS("notes", "--ref=refs/notes/cortex", "list", name), arena,
                   &listed, &code, err));
    if (code != 0 || !next_line(&listed, &blob))
        return CX_SUCCESS;
    cx_str id = cx_arena_copy_str(arena, blob); /* terminated */
    if (id.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(run_git(sources, CX_GIT_ARGS("cat-file", "blob", id.data), arena, &note, &code, err));
    if (code != 0)
        return CX_SUCCESS;
    while (next_line(&note, &line)) {
        read_header(line, "Cortex-Run: ", &out->note_run_id);
        read_header(line, "Cortex-Manifest-SHA256: ", &out->note_manifest_sha256);
    }
    return CX_SUCCESS;
}

cx_status cx_commit_read(const cx_sources *sources, cx_str id, cx_arena *arena,
                         cx_recorded_commit *out, cx_err *err)
{
    cx_oid oid;
    int code = 0;
    bool body = false;
    cx_str text, line;
    memset(out, 0, sizeof *out);
    cx_str name = cx_arena_copy_str(arena, id); /* terminated */
    if (name.data == NULL)
        return cx_fail_nomem(err);
    if (sources->git == NULL || !cx_oid_parse(id, &oid))
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoCommit", CX_NO_OFFSET,
                          "no git repository is given");
    CX_TRY(run_git(sources, CX_GIT_ARGS("cat-file", "commit", name.data), arena, &out->raw, &code,
                   err));
    if (code != 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoCommit", CX_NO_OFFSET,
                          "the repository has no commit %s", name.data);
    out->is_hash = cx_evidence_is_commit(cx_str_bytes(out->raw), id);
    text = out->raw;
    while (next_line(&text, &line)) {
        if (!body) {
            read_author(line, arena, out);
            body = line.size == 0;
            continue;
        }
        if (out->subject.data == NULL && line.size != 0)
            out->subject = line;
        read_header(line, "Cortex-Run: ", &out->run_id);
        read_header(line, "Cortex-Task: ", &out->task_id);
        read_header(line, "Cortex-Contract-SHA256: ", &out->contract_sha256);
    }
    return read_note(sources, name.data, arena, out, err);
}

cx_status cx_commits_like(const cx_sources *sources, cx_str prefix, cx_arena *arena, cx_str **out,
                          size_t *out_count, cx_err *err)
{
    cx_str option = CX_TEXTF(arena, "--disambiguate=%.*s", CX_S(prefix)), printed, line;
    int code = 0;
    cx_str *list = CX_ARENA_ARRAY(arena, cx_str, CX_PROV_OBJECTS_MAX);
    *out_count = 0;
    if (option.data == NULL || list == NULL)
        return cx_fail_nomem(err);
    *out = list;
    if (sources->git == NULL)
        return CX_SUCCESS;
    CX_TRY(run_git(sources, CX_GIT_ARGS("rev-parse", option.data), arena, &printed, &code, err));
    while (code == 0 && next_line(&printed, &line) && *out_count < CX_PROV_OBJECTS_MAX) {
        cx_str name = cx_arena_copy_str(arena, line), type;
        int no = 0;
        if (name.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(run_git(sources, CX_GIT_ARGS("cat-file", "-t", name.data), arena, &type, &no, err));
        if (no == 0 && cx_str_is(type, "commit\n"))
            list[(*out_count)++] = name;
    }
    return CX_SUCCESS;
}

/* --- blame ------------------------------------------------------------------------------------ */

static uint64_t number_at(cx_str line, unsigned word)
{
    uint64_t number = 0;
    size_t at = 0;
    for (; word != 0 && at < line.size; at++)
        word -= line.data[at] == ' ';
    for (; at < line.size && line.data[at] >= '0' && line.data[at] <= '9'; at++)
        number = number * 10 + (uint64_t)(line.data[at] - '0');
    return number;
}

/* The porcelain form: "COMMIT OLD NEW COUNT", header lines, TAB and the line itself. */
static void read_blame(cx_str printed, cx_blamed *out)
{
    cx_str line;
    bool first = true;
    while (next_line(&printed, &line)) {
        if (first) {
            const char *space = memchr(line.data, ' ', line.size);
            out->commit = cx_str_from(line.data, space == NULL ? 0 : (size_t)(space - line.data));
            out->line = number_at(line, 1);
            first = false;
        }
        read_header(line, "filename ", &out->path);
        read_header(line, "summary ", &out->summary);
        read_header(line, "author ", &out->author);
        if (line.size != 0 && line.data[0] == '\t')
            out->text = cx_str_from(line.data + 1, line.size - 1);
    }
}

/* An uncommitted line has no commit: its id is zeros, as git prints it. */
static cx_status forget_uncommitted(const cx_oid *now, cx_arena *arena, cx_blamed *out, cx_err *err)
{
    char name[CX_OID_TEXT_SIZE];
    cx_oid_text(now, name);
    if (now->size == 0 || !cx_str_is(out->commit, name))
        return CX_SUCCESS;
    memset(name, '0', 2 * (size_t)now->size);
    out->commit = cx_arena_copy_str(arena, cx_str_z(name));
    out->summary = (cx_str){NULL, 0};
    return out->commit.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_commit_blame(const cx_sources *sources, cx_str file_line, cx_arena *arena,
                          cx_blamed *out, cx_err *err)
{
    const char *colon = cx_bytes_last(file_line.data, ':', file_line.size);
    cx_buf printed;
    cx_oid now;
    memset(out, 0, sizeof *out);
    if (sources->git == NULL)
        return cx_fail(err, CX_E_USAGE, "FILE:LINE needs a git repository");
    size_t file_size = colon == NULL ? 0 : (size_t)(colon - file_line.data);
    cx_str file = cx_arena_copy_str(arena, cx_str_from(file_line.data, file_size));
    cx_str number = cx_arena_copy_str(
        arena, cx_str_from(file_line.data + file_size + 1, file_line.size - file_size - 1));
    if (number.data == NULL || file.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&printed, sources->alloc);
    cx_status status = cx_git_blame(sources->git, file.data, number.data, &printed, &now, err);
    cx_str text = cx_arena_copy_str(arena, cx_buf_str(&printed));
    cx_buf_done(&printed);
    CX_TRY(status);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    read_blame(text, out);
    return out->commit.size < 40
               ? cx_fail(err, CX_E_FORMAT, "git blame of %s could not be read", file.data)
               : forget_uncommitted(&now, arena, out, err);
}
