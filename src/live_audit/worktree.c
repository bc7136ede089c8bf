/*
 * worktree.c - files and commits that changed while a session ran, and the calls that explain them
 * (live.md §10.3).
 */
#include <stdio.h>
#include <string.h>

#include "git/api.h"
#include "live_audit/parts.h"
#include "os/api.h"
#include "rules/api.h"

/* Clocks of file systems are coarse, and a result is recorded after its effect. */
#define SLACK_NS (INT64_C(2) * 1000000000)

/* --- when calls ran --------------------------------------------------------------------------- */

static int64_t end_of(const cx_live_audit_decision *d)
{
    return d->until_ns > INT64_MAX - SLACK_NS ? INT64_MAX : d->until_ns + SLACK_NS;
}

static cx_status add_span(cx_live_audit_journal *journal, const cx_live_audit_decision *d,
                          cx_err *err)
{
    int64_t from = d->at_ns - SLACK_NS, until = end_of(d);
    size_t count = journal->spans.count;
    if (count != 0 && journal->spans.items[count - 1].until_ns >= from) {
        if (journal->spans.items[count - 1].until_ns < until)
            journal->spans.items[count - 1].until_ns = until;
        return CX_SUCCESS;
    }
    cx_live_audit_span *span = cx_vec_push(&journal->spans, journal->alloc);
    if (span == NULL)
        return cx_fail_nomem(err);
    *span = (cx_live_audit_span){from, until};
    return CX_SUCCESS;
}

static cx_status add_write(cx_live_audit_journal *journal, cx_str path,
                           const cx_live_audit_decision *d, cx_err *err)
{
    uint64_t *first;
    bool is_new;
    cx_live_audit_write *write = cx_vec_push(&journal->writes, journal->alloc);
    if (write == NULL)
        return cx_fail_nomem(err);
    *write = (cx_live_audit_write){d->at_ns - SLACK_NS, end_of(d), CX_LIVE_AUDIT_NONE};
    CX_TRY(cx_map_put(&journal->by_path, path, &first, &is_new, err));
    if (!is_new)
        write->next = (uint32_t)*first;
    *first = journal->writes.count - 1;
    return CX_SUCCESS;
}

cx_status cx_live_audit_index_times(cx_live_audit_journal *journal, cx_err *err)
{
    for (size_t i = 0; i < journal->decisions.count; i++) {
        const cx_live_audit_decision *d = &journal->decisions.items[i];
        if (d->verdict == CX_LIVE_DENY || d->is_permission)
            continue;
        if (d->commands != 0 || d->hosts != 0)
            CX_TRY(add_span(journal, d, err));
        for (uint32_t k = 0; k < d->write_count; k++)
            CX_TRY(add_write(journal, d->writes[k], d, err));
    }
    return CX_SUCCESS;
}

static bool is_in_span(const cx_live_audit_journal *journal, int64_t at_ns)
{
    size_t low = 0, high = journal->spans.count; /* the first that begins later */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (journal->spans.items[middle].from_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low != 0 && journal->spans.items[low - 1].until_ns >= at_ns;
}

bool cx_live_audit_is_explained(const cx_live_audit_journal *journal, int64_t at_ns, cx_str path)
{
    if (is_in_span(journal, at_ns))
        return true;
    const uint64_t *first = path.data == NULL ? NULL : cx_map_find(&journal->by_path, path);
    uint32_t at = first == NULL ? CX_LIVE_AUDIT_NONE : (uint32_t)*first;
    for (; at != CX_LIVE_AUDIT_NONE; at = journal->writes.items[at].next)
        if (journal->writes.items[at].from_ns <= at_ns &&
            journal->writes.items[at].until_ns >= at_ns)
            return true;
    return false;
}

/* --- files ------------------------------------------------------------------------------------ */

#define ENTRIES_MAX UINT64_C(1000000)
#define DEPTH_MAX 200

typedef struct tree_walk {
    cx_live_audit *audit;
    cx_str root;
    int64_t since_ns, until_ns;
    cx_arena scratch;
} tree_walk;

static void add_changed(tree_walk *walk, const cx_walk_entry *entry)
{
    cx_live_audit *audit = walk->audit;
    char text[32];
    cx_arena_mark mark = cx_arena_mark_now(&walk->scratch);
    cx_str path = cx_arena_printf(&walk->scratch, "%.*s/%s", (int)walk->root.size, walk->root.data,
                                  entry->path);
    audit->failed = audit->failed || path.data == NULL;
    audit->report->changed_files++;
    if (path.data != NULL &&
        !cx_live_audit_is_explained(&audit->journal, entry->facts.changed_ns, path)) {
        cx_run_time_text(entry->facts.changed_ns, text);
        cx_live_audit_add(audit, CX_LIVE_AUDIT_CHANGED_FILE, NULL, NULL, path,
                          "changed at %.19sZ, when no call of this session that may have written "
                          "it ran: a person, another program, or a call that no hook saw",
                          text);
    }
    cx_arena_reset(&walk->scratch, mark);
}

static cx_walk_step visit_entry(void *arg, const cx_walk_entry *entry)
{
    tree_walk *walk = arg;
    if (strcmp(entry->name, ".git") == 0)
        return CX_WALK_SKIP;
    if (entry->facts.kind != CX_FILE_FOLDER && entry->facts.changed_ns >= walk->since_ns &&
        entry->facts.changed_ns <= walk->until_ns)
        add_changed(walk, entry);
    return CX_WALK_ON;
}

static cx_status walk_files(tree_walk *walk, cx_err *err)
{
    cx_live_audit *audit = walk->audit;
    cx_file folder;
    cx_err why = {0};
    const cx_walk_limits limits = {.entries = ENTRIES_MAX, .depth = DEPTH_MAX, .may_vanish = true};
    cx_status status = cx_folder_open(walk->root.data, &folder, &why);
    if (!cx_failed(status)) {
        status = cx_folder_walk(folder, &limits, visit_entry, walk, &why);
        cx_folder_close(folder);
    }
    if (status.code == CX_E_NOMEM || audit->failed)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        cx_live_audit_add(audit, CX_LIVE_AUDIT_WORK_TREE_UNREAD, NULL, NULL, walk->root, "%s",
                          why.message);
    return CX_SUCCESS;
}

/* --- commits ---------------------------------------------------------------------------------- */

static void add_made(cx_live_audit *audit, const cx_git_made *commit)
{
    char name[CX_OID_TEXT_SIZE], made[32], said[32];
    int64_t apart = commit->committer_s - commit->made_ns / 1000000000;
    bool backdated = apart < -600 || apart > 600;
    audit->report->commits++;
    if (cx_live_audit_is_explained(&audit->journal, commit->made_ns, (cx_str){NULL, 0}))
        return;
    cx_oid_text(&commit->oid, name);
    cx_run_time_text(commit->made_ns, made);
    int64_t said_ns = 0;
    if (!__builtin_mul_overflow(commit->committer_s, INT64_C(1000000000), &said_ns))
        cx_run_time_text(said_ns, said);
    else
        (void)snprintf(said, sizeof said, "a time that does not exist");
    cx_live_audit_add(audit, CX_LIVE_AUDIT_COMMIT_WITHOUT_CALL, NULL, NULL, cx_str_z(name),
                      "made at %.19sZ, when no command of this session ran%s%.19s: %.*s", made,
                      backdated ? "; it says " : "; its own time agrees, ", said,
                      (int)commit->subject.size, commit->subject.data);
}

static cx_status compare_commits(tree_walk *walk, cx_err *err)
{
    cx_live_audit *audit = walk->audit;
    cx_git_history history;
    cx_err why = {0};
    cx_status status = cx_git_history_read(walk->root.data, walk->since_ns, walk->until_ns,
                                           &walk->scratch, &history, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (status.code == CX_E_NOT_FOUND && why.tag != NULL && strcmp(why.tag, "NoRepository") == 0)
        return CX_SUCCESS;
    if (cx_failed(status)) {
        cx_live_audit_add(audit, CX_LIVE_AUDIT_WORK_TREE_UNREAD, NULL, NULL, walk->root, "%s",
                          why.message);
        return CX_SUCCESS;
    }
    for (size_t i = 0; i < history.count; i++)
        add_made(audit, &history.commits[i]);
    if (history.has_new_packs || history.is_cut || history.false_names != 0)
        cx_live_audit_add(audit, CX_LIVE_AUDIT_WORK_TREE_UNREAD, NULL, NULL, walk->root,
                          "%s: commits may be missing",
                          history.false_names != 0 ? "objects have false names, or are damaged"
                          : history.is_cut         ? "there are too many references or commits"
                                                   : "a pack of git is newer than the session");
    return CX_SUCCESS;
}

/* --- the work tree ---------------------------------------------------------------------------- */

/* The caller's, else the policy's root when that has a repository: outside of one, a session's
 * folder may be the whole of a user's files. */
static cx_status find_root(cx_live_audit *audit, cx_str *out, cx_err *err)
{
    const cx_live_audit_journal *journal = &audit->journal;
    cx_facts facts;
    cx_err ignored;
    *out = (cx_str){NULL, 0};
    cx_str root = audit->options->repo != NULL ? cx_str_z(audit->options->repo) : journal->root;
    if (root.size == 0 || (audit->options->repo == NULL && root.data[0] != '/'))
        return CX_SUCCESS;
    cx_str git = cx_arena_printf(audit->arena, "%.*s/.git", (int)root.size, root.data);
    if (git.data == NULL)
        return cx_fail_nomem(err);
    bool is_repository = !cx_failed(cx_path_facts(git.data, false, &facts, &ignored));
    if (!is_repository && audit->options->repo == NULL)
        return CX_SUCCESS;
    cx_buf real;
    cx_buf_init(&real, audit->alloc);
    cx_status status =
        cx_path_real(root.data, &real, audit->options->repo != NULL ? err : &ignored);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(audit->arena, cx_buf_str(&real));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    } else if (audit->options->repo == NULL) {
        status = CX_SUCCESS;
    }
    cx_buf_done(&real);
    return status;
}

cx_status cx_live_audit_work_tree(cx_live_audit *audit, cx_err *err)
{
    tree_walk walk = {
        .audit = audit, .since_ns = audit->journal.first_ns, .until_ns = audit->journal.last_ns};
    CX_TRY(find_root(audit, &walk.root, err));
    if (walk.root.size == 0)
        return CX_SUCCESS;
    audit->report->work_tree = walk.root;
    cx_arena_init(&walk.scratch, audit->alloc, 0);
    cx_status status = walk_files(&walk, err);
    if (!cx_failed(status))
        status = compare_commits(&walk, err);
    cx_arena_done(&walk.scratch);
    return status;
}
