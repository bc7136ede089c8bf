/*
 * audit.c - an audit from end to end: which journal, which transcripts, both read, compared, and
 * the verdict; one session, or all of them, one after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "import/api.h"
#include "live_audit/parts.h"
#include "os/api.h"

/* --- words ------------------------------------------------------------------------------------ */

static const struct {
    const char *name, *title;
    cx_live_audit_severity severity;
} kinds[CX_LIVE_AUDIT_KIND_COUNT] = {
#define ROW(id, name, severity, title) {name, title, CX_LIVE_AUDIT_##severity},
    CX_LIVE_AUDIT_FINDINGS(ROW)
#undef ROW
};

const char *cx_live_audit_name(cx_live_audit_kind kind)
{
    CX_ASSERT(kind < CX_LIVE_AUDIT_KIND_COUNT);
    return kinds[kind].name;
}

const char *cx_live_audit_title(cx_live_audit_kind kind)
{
    CX_ASSERT(kind < CX_LIVE_AUDIT_KIND_COUNT);
    return kinds[kind].title;
}

cx_live_audit_severity cx_live_audit_severity_of(cx_live_audit_kind kind)
{
    CX_ASSERT(kind < CX_LIVE_AUDIT_KIND_COUNT);
    return kinds[kind].severity;
}

const char *cx_live_audit_severity_name(cx_live_audit_severity severity)
{
    static const char *const names[] = {"note", "warning", "error"};
    CX_ASSERT(severity < CX_COUNT_OF(names));
    return names[severity];
}

cx_verdict cx_live_audit_worse(cx_verdict a, cx_verdict b)
{
    if (a == CX_BROKEN || b == CX_BROKEN)
        return CX_BROKEN;
    return a == CX_INDETERMINATE || b == CX_INDETERMINATE ? CX_INDETERMINATE : CX_HOLDS;
}

/* --- transcripts ------------------------------------------------------------------------------ */

/* What is read together: bytes, where they are from, and their format. */
typedef struct source {
    const char *format; /* NULL = none found */
    CX_VEC(cx_live_audit_file) files;
    CX_VEC(size_t) ends; /* of each file in `all` */
    cx_buf all;
    size_t max_bytes;
    const cx_alloc *alloc;
} source;

static void source_init(source *s, size_t max_bytes, const cx_alloc *alloc)
{
    memset(s, 0, sizeof *s);
    s->max_bytes =
        max_bytes == 0 || max_bytes > CX_LIVE_AUDIT_BYTES_MAX ? CX_LIVE_AUDIT_BYTES_MAX : max_bytes;
    s->alloc = alloc;
    cx_buf_init(&s->all, alloc);
}

static void source_done(source *s)
{
    cx_vec_done(&s->files, s->alloc);
    cx_vec_done(&s->ends, s->alloc);
    cx_buf_done(&s->all);
}

static cx_status add_file(source *s, const cx_live_audit_file *file, cx_err *err)
{
    cx_live_audit_file *made = cx_vec_push(&s->files, s->alloc);
    size_t *end = cx_vec_push(&s->ends, s->alloc);
    if (made == NULL || end == NULL)
        return cx_fail_nomem(err);
    *made = *file;
    *end = s->all.size;
    return cx_buf_check(&s->all, err);
}

static cx_bytes file_bytes(const source *s, size_t i)
{
    size_t start = i == 0 ? 0 : s->ends.items[i - 1];
    return cx_bytes_from(s->all.data + start, s->ends.items[i] - start);
}

/* A regular file; links on the way are followed, once. */
static cx_status read_disk_file(source *s, const char *path, cx_arena *arena, cx_err *err)
{
    cx_buf real;
    cx_file folder = CX_FILE_NONE;
    size_t before = s->all.size;
    cx_live_audit_file file = {.path = cx_arena_copy_str(arena, cx_str_z(path))};
    if (s->files.count == CX_LIVE_AUDIT_FILES_MAX)
        return cx_fail(err, CX_E_LIMIT, "the session has more than %d transcripts",
                       CX_LIVE_AUDIT_FILES_MAX);
    cx_buf_init(&real, s->alloc);
    cx_status status = file.path.data == NULL ? cx_fail_nomem(err) : cx_path_real(path, &real, err);
    if (!cx_failed(status)) {
        cx_buf_add_byte(&real, 0);
        status = cx_buf_check(&real, err);
    }
    if (!cx_failed(status)) {
        char *slash = strrchr((char *)real.data, '/');
        const char *name = slash == NULL ? (char *)real.data : slash + 1;
        if (slash != NULL)
            *slash = 0;
        status = cx_folder_open(slash == NULL                ? "."
                                : slash == (char *)real.data ? "/"
                                                             : (char *)real.data,
                                &folder, err);
        if (!cx_failed(status))
            status = cx_folder_read_file(folder, name, s->max_bytes - before, &s->all, err);
        if (status.code == CX_E_DENIED)
            status =
                cx_fail(err, CX_E_FORMAT, "%s: found no regular file, expected a transcript", path);
    }
    cx_folder_close(folder);
    cx_buf_done(&real);
    CX_TRY(status);
    file.bytes = s->all.size - before;
    return add_file(s, &file, err);
}

typedef struct names {
    cx_arena *arena;
    const cx_alloc *alloc;
    CX_VEC(cx_str) items;
    bool failed;
} names;

static bool add_name(void *arg, const char *name)
{
    names *n = arg;
    if (!cx_str_ends(cx_str_z(name), CX_STR(".jsonl")))
        return true;
    cx_str *slot = cx_vec_push(&n->items, n->alloc);
    if (slot != NULL)
        *slot = cx_arena_copy_str(n->arena, cx_str_z(name));
    n->failed = slot == NULL || slot->data == NULL;
    return !n->failed && n->items.count <= CX_LIVE_AUDIT_FILES_MAX;
}

static int by_name(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

/* Claude Code keeps the files of sub-agents in a folder of the session's name. */
static cx_status read_disk_subagents(source *s, const char *path, cx_arena *arena, cx_err *err)
{
    cx_file folder;
    cx_err ignored;
    names n = {.arena = arena, .alloc = s->alloc};
    size_t size = strlen(path);
    if (size < 6 || strcmp(path + size - 6, ".jsonl") != 0)
        return CX_SUCCESS;
    cx_str place = cx_arena_printf(arena, "%.*s/subagents", (int)(size - 6), path);
    if (place.data == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_folder_open(place.data, &folder, &ignored)))
        return CX_SUCCESS; /* there are none */
    cx_status status = cx_folder_list(folder, ".", add_name, &n, err);
    cx_folder_close(folder);
    if (!cx_failed(status) && n.failed)
        status = cx_fail_nomem(err);
    if (n.items.count != 0)
        qsort(n.items.items, n.items.count, sizeof *n.items.items, by_name);
    for (size_t i = 0; i < n.items.count && !cx_failed(status); i++) {
        cx_str whole = cx_arena_printf(arena, "%s/%s", place.data, n.items.items[i].data);
        status =
            whole.data == NULL ? cx_fail_nomem(err) : read_disk_file(s, whole.data, arena, err);
    }
    cx_vec_done(&n.items, s->alloc);
    return status;
}

static cx_status read_disk(source *s, const char *path, cx_arena *arena, cx_err *err)
{
    CX_TRY(read_disk_file(s, path, arena, err));
    s->format = cx_import_detect(file_bytes(s, 0));
    if (cx_live_audit_agent_of_format(s->format) == CX_LIVE_AGENT_COUNT)
        return cx_fail(err, CX_E_FORMAT,
                       "%s: found %s, expected a transcript of Claude Code, Codex, Gemini CLI, "
                       "Cursor or Copilot CLI",
                       path, s->format == NULL ? "no known format" : s->format);
    if (cx_live_audit_agent_of_format(s->format) == CX_LIVE_CLAUDE)
        return read_disk_subagents(s, path, arena, err);
    return CX_SUCCESS;
}

/* --- archived ones ---------------------------------------------------------------------------- */

typedef struct archive {
    const cx_recorded_session *items;
    size_t count;
} archive;

/* Whether its format is one of the five agents'. */
static bool is_readable(const cx_recorded_session *file)
{
    return cx_live_audit_agent_of_format(cx_recorded_session_format_name(file->format)) !=
           CX_LIVE_AGENT_COUNT;
}

static bool is_named(const cx_recorded_session *file, cx_str session, cx_str path)
{
    cx_str stem = cx_session_stem(file->path);
    if (path.size != 0 && cx_str_eq(file->path, path))
        return true;
    if (session.size == 0)
        return false;
    if (cx_str_eq(stem, session))
        return true;
    /* rollout-<time>-<id> */
    return stem.size > session.size && cx_str_ends(stem, session) &&
           stem.data[stem.size - session.size - 1] == '-' &&
           cx_str_starts(stem, CX_STR("rollout-"));
}

static bool is_subagent_of(const cx_recorded_session *file, const cx_recorded_session *of)
{
    size_t stem = of->path.size < 6 ? 0 : of->path.size - 6;
    return of->format == CX_SESSION_CLAUDE_CODE && file->format == of->format &&
           cx_str_ends(of->path, CX_STR(".jsonl")) && file->path.size > stem + 1 &&
           memcmp(file->path.data, of->path.data, stem) == 0 && file->path.data[stem] == '/';
}

static cx_status read_archived(source *s, cx_home *home, const cx_recorded_session *session,
                               cx_err *err)
{
    size_t before = s->all.size;
    cx_live_audit_file file = {
        .path = session->path, .archived = true, .generation = session->generation};
    if (s->files.count == CX_LIVE_AUDIT_FILES_MAX || session->offset > s->max_bytes - before)
        return cx_fail(
            err, CX_E_LIMIT,
            "the archived transcripts of the session are more than %d files or %zu bytes",
            CX_LIVE_AUDIT_FILES_MAX, CX_LIVE_AUDIT_BYTES_MAX);
    CX_TRY(cx_recorder_session_bytes(home, session, &s->all, &file.erased_pieces, err));
    file.bytes = s->all.size - before;
    return add_file(s, &file, err);
}

static int by_generation(const void *left, const void *right)
{
    const cx_recorded_session *a = *(const cx_recorded_session *const *)left,
                              *b = *(const cx_recorded_session *const *)right;
    int order = cx_str_cmp(a->path, b->path);
    return order != 0 ? order : (a->generation > b->generation) - (a->generation < b->generation);
}

/* All generations of the session's files: what was in an older one was told, too. */
static cx_status read_archive(source *s, cx_home *home, const archive *all, cx_str session,
                              cx_str path, cx_arena *arena, cx_err *err)
{
    const cx_recorded_session **chosen =
        CX_ARENA_ARRAY(arena, const cx_recorded_session *, all->count + 1);
    size_t count = 0, own;
    if (chosen == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < all->count; i++)
        if (is_readable(&all->items[i]) && is_named(&all->items[i], session, path))
            chosen[count++] = &all->items[i];
    own = count;
    if (own == 0)
        return CX_SUCCESS;
    qsort(chosen, own, sizeof *chosen, by_generation);
    for (size_t i = 0; i < all->count; i++)
        if (!is_named(&all->items[i], session, path) && is_subagent_of(&all->items[i], chosen[0]))
            chosen[count++] = &all->items[i];
    qsort(chosen + own, count - own, sizeof *chosen, by_generation);
    s->format = cx_recorded_session_format_name(chosen[0]->format);
    for (size_t i = 0; i < count; i++)
        if (chosen[i]->format == chosen[0]->format)
            CX_TRY(read_archived(s, home, chosen[i], err));
    return CX_SUCCESS;
}

/* --- one session ------------------------------------------------------------------------------ */

/* What an audit is asked about. */
typedef struct question {
    cx_str actor;           /* empty = no journal is known */
    cx_str session, path;   /* of the transcript: the agent's id, and where it is; may be empty */
    const char *transcript; /* named by the caller: nothing else is read */
    const archive *archive;
    int64_t hooks_ns; /* the first entry of any hook; 0 = there is none */
} question;

/* The first line that two versions of a file do not share. */
static uint64_t first_other_line(cx_bytes a, cx_bytes b)
{
    uint64_t line = 1;
    for (size_t i = 0; i < a.size && i < b.size && a.data[i] == b.data[i]; i++)
        line += a.data[i] == '\n';
    return line;
}

/* An older version of a file that its next one does not begin with. */
static void check_generations(cx_live_audit *audit, const source *s)
{
    /* Others write their file again as a whole. */
    bool appends = audit->told.agent == CX_LIVE_CLAUDE || audit->told.agent == CX_LIVE_CODEX;
    for (size_t i = 0; i + 1 < s->files.count; i++) {
        const cx_live_audit_file *file = &s->files.items[i], *next = &file[1];
        cx_bytes before = file_bytes(s, i), after = file_bytes(s, i + 1);
        bool erased = file->erased_pieces != 0 || next->erased_pieces != 0;
        if (!appends || !file->archived || !cx_str_eq(file->path, next->path) || erased ||
            (before.size <= after.size && memcmp(before.data, after.data, before.size) == 0))
            continue;
        const cx_live_audit_call place = {.file = (uint32_t)i,
                                          .line = first_other_line(before, after)};
        cx_live_audit_add(audit, CX_LIVE_AUDIT_TRANSCRIPT_REWRITTEN, &place, NULL,
                          (cx_str){NULL, 0},
                          "generation %llu has %zu bytes that generation %llu does not begin with",
                          (unsigned long long)file->generation, before.size,
                          (unsigned long long)next->generation);
    }
    for (size_t i = 0; i < s->files.count; i++)
        if (s->files.items[i].erased_pieces != 0)
            cx_live_audit_add(audit, CX_LIVE_AUDIT_TRANSCRIPT_ERASED,
                              &(cx_live_audit_call){.file = (uint32_t)i}, NULL, (cx_str){NULL, 0},
                              "%llu parts of the transcript were erased",
                              (unsigned long long)s->files.items[i].erased_pieces);
}

static cx_status tell(cx_live_audit *audit, const source *s, cx_str session, cx_err *err)
{
    cx_bytes *parts = CX_ARENA_ARRAY(audit->arena, cx_bytes, s->files.count + 1);
    if (parts == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < s->files.count; i++)
        parts[i] = file_bytes(s, i);
    audit->told.agent = cx_live_audit_agent_of_format(s->format);
    /* Only files of Claude Code have the session's id as their name; others say it inside. */
    if (audit->has_journal || audit->told.agent == CX_LIVE_CLAUDE)
        audit->told.session = session;
    CX_TRY(cx_live_audit_told_read(&audit->told, s->format, parts, s->files.items, s->files.count,
                                   err));
    audit->has_told = true;
    check_generations(audit, s);
    return CX_SUCCESS;
}

/* Transcripts, in this order: the caller's, archived ones, the file that the journal names. */
static cx_status find_transcripts(cx_live_audit *audit, const question *q, source *s, cx_err *err)
{
    cx_str path = audit->has_journal ? audit->journal.transcript : q->path;
    cx_err why = {0};
    if (q->transcript != NULL)
        return read_disk(s, q->transcript, audit->arena, err);
    CX_TRY(read_archive(s, audit->home, q->archive, q->session, path, audit->arena, err));
    if (s->files.count != 0 || path.size == 0)
        return CX_SUCCESS;
    cx_status status = path.size != strlen(path.data) || path.data[0] != '/'
                           ? cx_fail(&why, CX_E_FORMAT, "its path is not absolute")
                           : read_disk(s, path.data, audit->arena, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status)) {
        s->files.count = 0;
        cx_live_audit_add(audit, CX_LIVE_AUDIT_NO_TRANSCRIPT, NULL, NULL, path, "%s", why.message);
    }
    return CX_SUCCESS;
}

/* The journal of what the transcript says it is of. */
static cx_status find_journal(cx_live_audit *audit, const question *q, cx_err *err)
{
    cx_str session = audit->told.parent.size != 0 ? audit->told.parent : audit->told.session;
    cx_str actor = q->actor;
    cx_actor_info info;
    cx_err ignored;
    if (audit->has_journal)
        return CX_SUCCESS;
    if (session.size == 0)
        session = q->session;
    if (actor.size == 0) {
        if (session.size == 0 || session.size > CX_LIVE_SESSION_BYTES_MAX)
            return CX_SUCCESS;
        CX_TRY(cx_live_actor(audit->told.agent, session, audit->arena, &actor, err));
    }
    cx_status status = cx_home_actor(audit->home, actor, &info, &ignored);
    if (cx_failed(status) && status.code != CX_E_NOT_FOUND) {
        *err = ignored;
        return status;
    }
    if (cx_failed(status))
        return CX_SUCCESS;
    CX_TRY(cx_live_audit_journal_read(&audit->journal, audit->home, actor, err));
    audit->has_journal = true;
    return CX_SUCCESS;
}

static uint64_t calls_told(const cx_live_audit_told *told)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < told->calls.count; i++)
        calls += !told->calls.items[i].is_copy;
    return calls;
}

static void check_no_journal(cx_live_audit *audit, const question *q)
{
    const cx_live_audit_told *told = &audit->told;
    uint64_t calls = calls_told(told);
    if (audit->has_journal || !audit->has_told || calls == 0)
        return;
    const cx_live_audit_call place = {.file = 0};
    if (q->hooks_ns != 0 && told->last_ns != 0 && told->last_ns < q->hooks_ns)
        cx_live_audit_add(audit, CX_LIVE_AUDIT_BEFORE_HOOKS, &place, NULL, (cx_str){NULL, 0},
                          "%llu calls, all older than the first hook of this data directory, as "
                          "the transcript says",
                          (unsigned long long)calls);
    else
        cx_live_audit_add(audit, CX_LIVE_AUDIT_NO_JOURNAL, &place, NULL, (cx_str){NULL, 0},
                          "%llu calls, and no hook has recorded anything of this session",
                          (unsigned long long)calls);
}

static int by_severity(const void *left, const void *right)
{
    const cx_live_audit_finding *a = left, *b = right;
    cx_live_audit_severity x = kinds[a->kind].severity, y = kinds[b->kind].severity;
    if (x != y)
        return x > y ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    int order = cx_str_cmp(a->file, b->file);
    if (order != 0)
        return order;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->seq != b->seq)
        return a->seq < b->seq ? -1 : 1;
    return cx_str_cmp(a->where, b->where);
}

static cx_status copy_text(cx_live_audit *audit, cx_str text, cx_str *out, cx_err *err)
{
    *out = cx_arena_copy_str(audit->arena, text);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* What the report says of both sides; findings sorted, and the verdict from them. */
static cx_status conclude(cx_live_audit *audit, cx_err *err)
{
    cx_live_audit_report *report = audit->report;
    const cx_live_audit_journal *journal = &audit->journal;
    cx_live_agent agent = audit->has_journal ? journal->agent : audit->told.agent;
    CX_TRY(copy_text(audit, cx_str_z(cx_live_agent_name(agent)), &report->agent, err));
    CX_TRY(copy_text(audit, audit->has_journal ? journal->actor : CX_STR(""), &report->actor, err));
    if (report->session.size == 0)
        CX_TRY(copy_text(audit, audit->told.session, &report->session, err));
    report->entries = journal->entries;
    report->decisions = journal->decisions.count;
    report->results = journal->results.count;
    report->started_ns = journal->first_ns;
    report->ended_ns = journal->last_ns;
    report->ended = journal->ended;
    cx_live_audit_file *files =
        CX_ARENA_ARRAY(audit->arena, cx_live_audit_file, audit->told.files.count + 1);
    cx_live_audit_finding *findings =
        CX_ARENA_ARRAY(audit->arena, cx_live_audit_finding, audit->found.count + 1);
    if (files == NULL || findings == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < audit->told.files.count; i++) {
        files[i] = audit->told.files.items[i];
        CX_TRY(copy_text(audit, files[i].path, &files[i].path, err));
    }
    if (audit->found.count != 0) {
        qsort(audit->found.items, audit->found.count, sizeof *findings, by_severity);
        memcpy(findings, audit->found.items, audit->found.count * sizeof *findings);
    }
    report->files = files;
    report->file_count = audit->told.files.count;
    report->findings = findings;
    report->finding_count = audit->found.count;
    report->verdict = CX_HOLDS;
    for (size_t i = 0; i < CX_LIVE_AUDIT_KIND_COUNT; i++)
        if (report->counts[i] != 0 && kinds[i].severity != CX_LIVE_AUDIT_NOTE)
            report->verdict = cx_live_audit_worse(
                report->verdict,
                kinds[i].severity == CX_LIVE_AUDIT_ERROR ? CX_BROKEN : CX_INDETERMINATE);
    return CX_SUCCESS;
}

static cx_status audit_question(cx_live_audit *audit, const question *q, source *s, cx_err *err)
{
    /* The transcript first: whatever is in it was decided before it is read. */
    if (q->actor.size != 0 && q->transcript == NULL && q->path.size == 0) {
        /* Only the start's entry names the file: read the journal for it, and again afterwards. */
        CX_TRY(find_journal(audit, q, err));
    }
    CX_TRY(find_transcripts(audit, q, s, err));
    if (s->files.count != 0)
        CX_TRY(tell(audit, s, q->session, err));
    if (audit->has_journal && audit->has_told) {
        cx_live_audit_journal_done(&audit->journal);
        cx_live_audit_journal_init(&audit->journal, audit->alloc, audit->seed);
        audit->has_journal = false;
    }
    CX_TRY(find_journal(audit, q, err));
    if (!audit->has_journal && !audit->has_told)
        return cx_fail(err, CX_E_NOT_FOUND,
                       "there is no journal and no transcript of this session: `cortex session "
                       "list` and `cortex watch --list` show what there is");
    /* Calls through the gateway have no transcript: they are decided on their way. */
    bool is_gateway = audit->has_journal && audit->journal.agent == CX_LIVE_MCP;
    if (!audit->has_told && !is_gateway && audit->report->counts[CX_LIVE_AUDIT_NO_TRANSCRIPT] == 0)
        cx_live_audit_add(audit, CX_LIVE_AUDIT_NO_TRANSCRIPT, NULL, NULL, (cx_str){NULL, 0},
                          "none is archived, and the hooks named none");
    if (audit->has_journal && audit->has_told && audit->told.agent != audit->journal.agent)
        return cx_fail(err, CX_E_CONFLICT, "the transcript is one of %s, and the session one of %s",
                       cx_live_agent_name(audit->told.agent),
                       cx_live_agent_name(audit->journal.agent));
    check_no_journal(audit, q);
    if (!audit->has_journal && audit->report->counts[CX_LIVE_AUDIT_NO_JOURNAL] +
                                       audit->report->counts[CX_LIVE_AUDIT_BEFORE_HOOKS] !=
                                   0) {
        audit->report->calls = calls_told(&audit->told);
        return conclude(audit, err);
    }
    CX_TRY(cx_live_audit_reconcile(audit, err));
    if (audit->has_journal) {
        CX_TRY(cx_live_audit_egress(audit, err));
        CX_TRY(cx_live_audit_spans(audit, err));
    }
    if (audit->has_journal && !audit->options->no_work_tree)
        CX_TRY(cx_live_audit_work_tree(audit, err));
    return conclude(audit, err);
}

static cx_status run_audit(cx_home *home, const cx_live_audit_options *options, const question *q,
                           cx_arena *arena, cx_live_audit_report *out, cx_err *err)
{
    source s;
    cx_live_audit audit = {.home = home, .options = options, .arena = arena, .report = out};
    audit.alloc = options->alloc == NULL ? cx_alloc_default() : options->alloc;
    audit.seed = cx_io_seed(cx_home_io(home));
    audit.now_ns = (int64_t)cx_home_io(home)->wall_ns(cx_home_io(home));
    memset(out, 0, sizeof *out);
    out->session = cx_arena_copy_str(arena, q->session);
    if (out->session.data == NULL)
        return cx_fail_nomem(err);
    source_init(&s, options->max_bytes, audit.alloc);
    cx_live_audit_told_init(&audit.told, CX_LIVE_AGENT_COUNT, q->session, audit.alloc, audit.seed);
    cx_live_audit_journal_init(&audit.journal, audit.alloc, audit.seed);
    cx_status status = audit_question(&audit, q, &s, err);
    if (!cx_failed(status) && audit.failed)
        status = cx_fail_nomem(err);
    cx_vec_done(&audit.found, audit.alloc);
    cx_live_audit_told_done(&audit.told);
    cx_live_audit_journal_done(&audit.journal);
    source_done(&s);
    return status;
}

/* --- which session ---------------------------------------------------------------------------- */

/* The first entry that any hook made. */
static cx_status first_hook(cx_home *home, cx_arena *arena, int64_t *out_ns, cx_err *err)
{
    const cx_live_session *list;
    size_t count;
    *out_ns = 0;
    CX_TRY(cx_live_sessions(home, arena, &list, &count, err));
    for (size_t i = 0; i < count; i++)
        if (*out_ns == 0 || list[i].started_ns < *out_ns)
            *out_ns = list[i].started_ns;
    return CX_SUCCESS;
}

/* A name that no journal has: an archived file's. */
static cx_status find_archived(const archive *all, cx_str name, question *q, cx_err *err)
{
    for (size_t i = 0; i < all->count; i++) {
        if (!is_readable(&all->items[i]) || !is_named(&all->items[i], name, name))
            continue;
        q->session = name;
        q->path = all->items[i].path;
        return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_NOT_FOUND,
                   "no session \"%.*s\": `cortex session list` shows those of hooks, `cortex watch "
                   "--list` archived transcripts",
                   (int)(name.size > 100 ? 100 : name.size), name.data);
}

cx_status cx_live_audit_session(cx_home *home, const cx_live_audit_options *options, cx_str name,
                                const char *transcript, cx_arena *arena, cx_live_audit_report *out,
                                cx_err *err)
{
    archive all = {NULL, 0};
    question q = {.transcript = transcript, .archive = &all};
    cx_live_session session;
    cx_err why = {0};
    CX_TRY(cx_recorder_sessions(home, arena, &all.items, &all.count, err));
    CX_TRY(first_hook(home, arena, &q.hooks_ns, err));
    if (name.size != 0 || transcript == NULL) {
        cx_status status = cx_live_session_find(home, name, arena, &session, &why);
        if (!cx_failed(status)) {
            q.actor = session.actor;
            q.session = session.session;
        } else if (status.code != CX_E_NOT_FOUND || transcript != NULL || name.size == 0) {
            *err = why;
            return status;
        } else {
            CX_TRY(find_archived(&all, name, &q, err));
        }
    }
    return run_audit(home, options, &q, arena, out, err);
}

/* --- all sessions ----------------------------------------------------------------------------- */

typedef struct all_sessions {
    cx_home *home;
    const cx_live_audit_options *options;
    const cx_live_session *sessions;
    size_t session_count;
    archive archive;
    int64_t hooks_ns;
    cx_live_audit_on_report on_report;
    void *arg;
} all_sessions;

/* A session that cannot be read is one that cannot be checked: the others still are. */
static cx_status audit_next(all_sessions *a, question *q, cx_err *err)
{
    cx_arena arena;
    cx_live_audit_report report;
    cx_err why = {0};
    cx_arena_init(&arena, a->options->alloc == NULL ? cx_alloc_default() : a->options->alloc, 0);
    q->archive = &a->archive;
    q->hooks_ns = a->hooks_ns;
    cx_status status = run_audit(a->home, a->options, q, &arena, &report, &why);
    if (cx_failed(status) &&
        (status.code == CX_E_LIMIT || status.code == CX_E_FORMAT || status.code == CX_E_SYNTAX ||
         status.code == CX_E_CONFLICT || status.code == CX_E_NOT_FOUND)) {
        cx_live_audit_finding finding = {.kind = CX_LIVE_AUDIT_NO_TRANSCRIPT,
                                         .message = cx_str_z(why.message)};
        report.actor = q->actor;
        report.files = NULL;
        report.file_count = 0;
        memset(report.counts, 0, sizeof report.counts);
        report.counts[CX_LIVE_AUDIT_NO_TRANSCRIPT] = 1;
        report.findings = &finding;
        report.finding_count = 1;
        report.verdict = CX_INDETERMINATE;
        status = a->on_report(a->arg, &report, err);
    } else if (cx_failed(status)) {
        *err = why;
    } else if (report.actor.size != 0 || q->actor.size != 0 || report.calls != 0) {
        status = a->on_report(a->arg, &report, err);
    }
    cx_arena_done(&arena);
    return status;
}

static bool has_journal(const all_sessions *a, const cx_recorded_session *file)
{
    for (size_t i = 0; i < a->session_count; i++)
        if (is_named(file, a->sessions[i].session, a->sessions[i].transcript))
            return true;
    return false;
}

/* Of one path the newest generation stands for all; files of sub-agents belong to another. */
static bool is_session_file(const all_sessions *a, size_t index)
{
    const cx_recorded_session *file = &a->archive.items[index];
    if (!is_readable(file))
        return false;
    for (size_t i = 0; i < a->archive.count; i++) {
        const cx_recorded_session *other = &a->archive.items[i];
        if (i != index && (is_subagent_of(file, other) || (cx_str_eq(other->path, file->path) &&
                                                           other->generation > file->generation)))
            return false;
    }
    return true;
}

static cx_status is_recent(const all_sessions *a, const cx_recorded_session *file, bool *out,
                           cx_err *err)
{
    uint64_t seq;
    bool found;
    cx_arena scratch;
    cx_entry_view entry;
    *out = a->options->since_ns == 0;
    if (*out)
        return CX_SUCCESS;
    CX_TRY(cx_recorder_session_newest(a->home, file, &seq, &found, err));
    if (!found)
        return CX_SUCCESS;
    cx_arena_init(&scratch, cx_alloc_default(), 0);
    cx_status status = cx_home_entry(a->home, CX_STR(CX_SESSION_ACTOR), seq, &scratch, &entry, err);
    if (!cx_failed(status))
        *out = entry.entry.created_at_ns >= a->options->since_ns;
    cx_arena_done(&scratch);
    return status;
}

static cx_status audit_each(all_sessions *a, cx_err *err)
{
    if (a->options->only_with_hooks && a->session_count == 0)
        return CX_SUCCESS;
    for (size_t i = a->session_count; i-- > 0;) { /* oldest first */
        const cx_live_session *session = &a->sessions[i];
        question q = {.actor = session->actor, .session = session->session};
        if (session->latest_ns >= a->options->since_ns)
            CX_TRY(audit_next(a, &q, err));
    }
    for (size_t i = 0; i < a->archive.count; i++) {
        const cx_recorded_session *file = &a->archive.items[i];
        question q = {.session = cx_session_stem(file->path), .path = file->path};
        bool recent;
        if (!is_session_file(a, i) || has_journal(a, file))
            continue;
        CX_TRY(is_recent(a, file, &recent, err));
        if (recent)
            CX_TRY(audit_next(a, &q, err));
    }
    return CX_SUCCESS;
}

cx_status cx_live_audit_all(cx_home *home, const cx_live_audit_options *options,
                            cx_live_audit_on_report on_report, void *arg, cx_err *err)
{
    cx_arena arena;
    all_sessions a = {.home = home, .options = options, .on_report = on_report, .arg = arg};
    cx_arena_init(&arena, options->alloc == NULL ? cx_alloc_default() : options->alloc, 0);
    cx_status status = cx_live_sessions(home, &arena, &a.sessions, &a.session_count, err);
    if (!cx_failed(status))
        status = cx_recorder_sessions(home, &arena, &a.archive.items, &a.archive.count, err);
    if (!cx_failed(status))
        status = first_hook(home, &arena, &a.hooks_ns, err);
    if (!cx_failed(status))
        status = audit_each(&a, err);
    cx_arena_done(&arena);
    return status;
}
