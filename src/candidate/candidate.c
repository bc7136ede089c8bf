/*
 * candidate.c - the governor's own commit of what an agent made, and its patch (run.md §9).
 */
#include "candidate/candidate.h"

#include <stdio.h>
#include <stdlib.h>

#include "candidate/diff_parts.h"
#include "git/api.h"

#define IDENTITY "cortex"
#define IDENTITY_EMAIL "cortex@localhost"
#define MESSAGE_BYTES_MAX 4096

/* --- patch and names -------------------------------------------------------------------------- */

/*
 * The patch text of two trees.  No index and no work tree is looked at, so attributes decide
 * nothing about what is shown: the same two trees give the same bytes everywhere.
 */
static cx_status add_patch(const cx_git *git, const cx_oid *from, const cx_oid *to, cx_buf *out,
                           cx_err *err)
{
    char a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE], no_index[CX_PATH_BYTES_MAX + 1];
    cx_oid_text(from, a);
    cx_oid_text(to, b);
    CX_TRY(cx_git_no_index(git, no_index, err));
    cx_git_call call = {.args = CX_GIT_ARGS("-c", "diff.renameLimit=1000", "-c",
                                            "diff.suppressBlankEmpty=false", "diff-tree", "-p",
                                            "--binary", "--full-index", "--no-ext-diff",
                                            "--no-textconv", "--no-color", "-M", a, b),
                        .index_file = no_index,
                        .output_limit_bytes = UINT64_C(4) * CX_RUN_OUTPUT_BYTES_MAX,
                        .bare = true};
    return cx_git_call_run(git, &call, out, NULL, err);
}

static int compare_raw(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_raw_change *)a)->path, ((const cx_raw_change *)b)->path);
}

cx_status cx_diff_changes_between(const cx_git *git, const cx_oid *from, const cx_oid *to,
                                  cx_arena *arena, cx_raw_diff *out, cx_err *err)
{
    char a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE];
    cx_buf text;
    cx_oid_text(from, a);
    cx_oid_text(to, b);
    cx_git_call call = {
        .args = CX_GIT_ARGS("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", a, b),
        .bare = true};
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_git_call_run(git, &call, &text, NULL, err);
    if (!cx_failed(status))
        status = cx_raw_parse(cx_buf_str(&text), cx_git_oid_size(git), false, arena, out, err);
    if (!cx_failed(status) && out->count != 0)
        qsort(out->changes, out->count, sizeof *out->changes, compare_raw);
    cx_buf_done(&text);
    return status;
}

static bool is_same_change(const cx_raw_change *raw, const cx_diff_change *change)
{
    return cx_str_eq(raw->path, change->path) && raw->new_mode == change->new_mode &&
           (change->new_mode == 0 || cx_oid_eq(&raw->new_oid, &change->new_oid));
}

/* Git's list against ours: the tree that was written is what was judged. */
static cx_status check_changes(const cx_raw_diff *raw, const cx_diff_change *changes, size_t count,
                               cx_err *err)
{
    size_t at = 0;
    bool same = true;
    for (size_t i = 0; i < count && same; i++) {
        if (changes[i].ignored)
            continue;
        /* A file with a special mode is a change that no tree can show. */
        bool shows = changes[i].old_mode != changes[i].new_mode ||
                     !cx_oid_eq(&changes[i].old_oid, &changes[i].new_oid);
        if (!shows)
            continue;
        same = at < raw->count && is_same_change(&raw->changes[at], &changes[i]);
        at++;
    }
    return same && at == raw->count
               ? CX_SUCCESS
               : cx_fail(err, CX_E_CONFLICT, "git sees another candidate than was judged");
}

/* `report` NULL: two trees that no gate judged. */
static cx_status add_both(const cx_git *git, const cx_oid *from, const cx_oid *to,
                          const cx_diff_report *report, cx_buf *patch, cx_buf *names, cx_err *err)
{
    cx_arena arena;
    cx_raw_diff raw = {.count = 0};
    CX_TRY(add_patch(git, from, to, patch, err));
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_diff_changes_between(git, from, to, &arena, &raw, err);
    if (!cx_failed(status) && report != NULL)
        status = check_changes(&raw, report->changes, report->change_count, err);
    for (size_t i = 0; i < raw.count && !cx_failed(status); i++)
        cx_run_names_write(names, &raw.changes[i].path, 1);
    cx_arena_done(&arena);
    return cx_failed(status) ? status : cx_buf_check(names, err);
}

cx_status cx_run_patch_between(const cx_git *git, const cx_oid *from, const cx_oid *to,
                               cx_buf *patch, cx_buf *names, cx_err *err)
{
    return add_both(git, from, to, NULL, patch, names, err);
}

cx_status cx_run_candidate_patch(const cx_git *git, const cx_diff_report *report, cx_buf *patch,
                                 cx_buf *names, cx_err *err)
{
    CX_ASSERT(report != NULL);
    if (report->tree.size == 0)
        return CX_SUCCESS;
    cx_err why;
    cx_status status = cx_diff_tree_write(git, &report->baseline, report->changes,
                                          report->change_count, &report->tree, &why);
    /* Names that git takes into no index are refused: then there is a verdict and no patch. */
    if (cx_failed(status) && !report->passed && status.code != CX_E_CONFLICT)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        if (err != NULL)
            *err = why;
        return status;
    }
    return add_both(git, &report->baseline, &report->tree, report, patch, names, err);
}

void cx_run_names_write(cx_buf *out, const cx_str *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cx_run_path_quote(out, paths[i]);
        cx_buf_add_byte(out, '\n');
    }
}

cx_status cx_run_names_read(cx_str text, cx_arena *arena, cx_str **out, size_t *out_count,
                            cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    size_t lines = 0, count = 0;
    for (size_t i = 0; i < text.size; i++)
        lines += text.data[i] == '\n';
    cx_str *paths = CX_ARENA_ARRAY(arena, cx_str, lines + 1);
    cx_str rest = text;
    cx_buf again;
    if (paths == NULL)
        return cx_fail_nomem(err);
    while (rest.size != 0) {
        const char *end = memchr(rest.data, '\n', rest.size);
        if (end == NULL)
            return cx_fail(err, CX_E_FORMAT, "the list of names does not end with a line break");
        cx_str line = {rest.data, (size_t)(end - rest.data)};
        CX_TRY(cx_run_path_unquote(line, arena, &paths[count], err));
        if (count != 0 && cx_str_cmp(paths[count - 1], paths[count]) >= 0)
            return cx_fail(err, CX_E_FORMAT, "the list of names is not sorted, or has one twice");
        count++;
        rest.data += line.size + 1;
        rest.size -= line.size + 1;
    }
    /* There is one way to write a list. */
    cx_buf_init(&again, cx_alloc_default());
    cx_run_names_write(&again, paths, count);
    bool same = !again.failed && cx_str_eq(cx_buf_str(&again), text);
    cx_buf_done(&again);
    if (!same)
        return cx_fail(err, CX_E_FORMAT, "the list of names is not quoted as git does");
    *out = paths;
    *out_count = count;
    return CX_SUCCESS;
}

/* --- the commit ------------------------------------------------------------------------------- */

static cx_status check_line(const char *what, cx_str text, cx_err *err)
{
    for (size_t i = 0; i < text.size; i++)
        if ((uint8_t)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return cx_fail(err, CX_E_USAGE, "the %s of a commit has a control character", what);
    return CX_SUCCESS;
}

cx_status cx_git_commit_tree(const cx_git *git, const cx_commit_facts *facts, cx_oid *out,
                             cx_err *err)
{
    CX_ASSERT(facts != NULL && out != NULL);
    char tree[CX_OID_TEXT_SIZE], parents[2][CX_OID_TEXT_SIZE], date[48], author_date[96],
        committer_date[96];
    const char *args[12] = {"-c", "i18n.commitEncoding=UTF-8", "commit-tree", "-F", "-"};
    size_t count = 5;
    for (size_t i = 0; i < facts->parent_count && i < CX_COUNT_OF(parents); i++) {
        cx_oid_text(&facts->parents[i], parents[i]);
        args[count++] = "-p";
        args[count++] = parents[i];
    }
    cx_oid_text(&facts->tree, tree);
    args[count++] = tree;
    args[count] = NULL;
    (void)snprintf(date, sizeof date, "@%lld +0000",
                   (long long)(facts->time_s < 0 ? 0 : facts->time_s));
    (void)snprintf(author_date, sizeof author_date, "GIT_AUTHOR_DATE=%s", date);
    (void)snprintf(committer_date, sizeof committer_date, "GIT_COMMITTER_DATE=%s", date);
    const char *const env[] = {"GIT_AUTHOR_NAME=" IDENTITY,
                               "GIT_AUTHOR_EMAIL=" IDENTITY_EMAIL,
                               "GIT_COMMITTER_NAME=" IDENTITY,
                               "GIT_COMMITTER_EMAIL=" IDENTITY_EMAIL,
                               author_date,
                               committer_date,
                               NULL};
    cx_git_call call = {
        .args = args, .input = cx_str_bytes(facts->message), .env = env, .bare = true};
    return cx_git_call_oid(git, &call, out, err);
}

static cx_status move_branch(const cx_git *git, cx_str branch, const cx_oid *to, cx_err *err)
{
    /* Where the agent left it does not matter: the governor's commit is the branch from now on. */
    cx_oid now;
    cx_status status = cx_git_ref(git, branch, &now, err);
    if (status.code == CX_E_NOT_FOUND)
        now.size = 0;
    else
        CX_TRY(status);
    return cx_git_ref_set(git, branch, to, &now, err);
}

cx_status cx_run_candidate_commit(const cx_git *git, const cx_diff_report *report,
                                  const cx_candidate_facts *facts, cx_oid *out, cx_err *err)
{
    CX_ASSERT(report != NULL && facts != NULL && out != NULL);
    char message[MESSAGE_BYTES_MAX];
    if (!report->passed || report->tree.size == 0)
        return cx_fail(err, CX_E_USAGE, "only a candidate that passed the diff gate is committed");
    CX_TRY(check_line("run id", facts->run_id, err));
    CX_TRY(check_line("task id", facts->task_id, err));
    CX_TRY(check_line("contract hash", facts->contract_sha256, err));
    int size = snprintf(message, sizeof message,
                        "cortex: %.*s\n\nCortex-Run: %.*s\nCortex-Task: %.*s\n"
                        "Cortex-Contract-SHA256: %.*s\n",
                        (int)facts->task_id.size, facts->task_id.data, (int)facts->run_id.size,
                        facts->run_id.data, (int)facts->task_id.size, facts->task_id.data,
                        (int)facts->contract_sha256.size, facts->contract_sha256.data);
    if (size < 0 || (size_t)size >= sizeof message)
        return cx_fail(err, CX_E_LIMIT, "the ids of a run are too long for a commit's message");
    cx_commit_facts commit = {.tree = report->tree,
                              .parents = &report->baseline,
                              .parent_count = 1,
                              .message = {message, (size_t)size},
                              .time_s = facts->time_s};
    cx_oid oid;
    CX_TRY(cx_git_commit_tree(git, &commit, &oid, err));
    if (facts->branch.size != 0)
        CX_TRY(move_branch(git, facts->branch, &oid, err));
    *out = oid;
    return CX_SUCCESS;
}
