/*
 * actions_record.c - action sets of bundles and archived sessions, in the ledger.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/api.h"
#include "import/api.h"
#include "proof/api.h"
#include "stores/actions.h"
#include "stores/run_index.h"
#include "stores/session_files.h"

#define SUBJECT_PREFIX "action/"
#define SESSION "session/"
#define NAMES_FILE "diff_name_only.txt"
#define EVIDENCE_FILE "reports/evidence_bundle.json"
#define FILE_BYTES_MAX ((size_t)64 << 20)

/* --- a run ------------------------------------------------------------------------------------ */

/* The events of a run as they are read. */
typedef struct run_reading {
    cx_actions *a;
    uint64_t printed, events; /* calls: as agents print them, and as events have them */
    bool exec;                /* the runner selected last prints its calls itself */
    char place[24];
    cx_err *err;
} run_reading;

/* One when it cannot be read. */
static uint64_t count_in(const cx_json *session, const char *name)
{
    const cx_json *count = cx_json_get(session, cx_str_z(name));
    uint64_t value = 1;
    return count != NULL && cx_json_uint64(count, &value) ? value : 1;
}

/* What an agent prints is read as far as its format is known (run.md §16). */
static void count_unread(run_reading *r, const cx_json *payload)
{
    static const char *const counts[] = {"broken", "unknown"};
    const cx_json *session = cx_json_get_typed(payload, CX_STR("session"), CX_JSON_OBJECT);
    if (session == NULL) {
        r->a->unread += r->exec;
        return;
    }
    for (size_t i = 0; i < CX_COUNT_OF(counts); i++)
        r->a->unread += count_in(session, counts[i]);
    r->printed += count_in(session, "tool_calls");
}

static cx_status add_invocation(run_reading *r, const cx_json *payload)
{
    const cx_json *input = CX_JSON_GET(payload, "input"), *cut = CX_JSON_GET(payload, "input_cut");
    const cx_action_call call = {
        .tool = CX_JSON_GET_STR(payload, "tool"),
        .place = cx_str_z(r->place),
        .command = CX_JSON_GET_STR(payload, "command"),
        .args = input != NULL ? input : payload,
        .cut = cut != NULL && cut->type == CX_JSON_TRUE,
    };
    r->events += !cx_str_is(call.tool, "approval_request");
    return cx_actions_add_call(r->a, &call, r->err);
}

static cx_status add_event(run_reading *r, const cx_run_event_read *event)
{
    if (event->kind == CX_RUN_EVENT_RUNNER_SELECTED)
        r->exec = cx_str_is(CX_JSON_GET_STR(&event->payload, "runner"), "exec");
    if (event->kind == CX_RUN_EVENT_RUNNER_FINISHED)
        count_unread(r, &event->payload);
    if (event->kind != CX_RUN_EVENT_TOOL_INVOCATION)
        return CX_SUCCESS;
    (void)snprintf(r->place, sizeof r->place, "%llu", (unsigned long long)event->index);
    return add_invocation(r, &event->payload);
}

static cx_status add_events(cx_actions *a, cx_str text, cx_err *err)
{
    run_reading r = {.a = a, .err = err};
    cx_arena arena;
    cx_str line;
    cx_status status = CX_SUCCESS;
    cx_arena_init(&arena, a->alloc, 0);
    for (uint64_t index = 1; cx_run_next_line(&text, &line) && !cx_failed(status); index++) {
        cx_run_event_read event;
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        status = cx_run_event_parse(line, index, &arena, &event, NULL);
        if (status.code == CX_E_NOMEM)
            status = cx_fail_nomem(err);
        else if (cx_failed(status)) {
            a->unread++;
            status = CX_SUCCESS;
        } else
            status = add_event(&r, &event);
        cx_arena_reset(&arena, mark);
    }
    a->unread += text.size != 0;
    if (r.printed > r.events) /* of very many calls not all become events */
        a->unread += r.printed - r.events;
    cx_arena_done(&arena);
    return status;
}

/* A path that git quotes has other bytes than it shows. */
static cx_status add_changed(cx_actions *a, cx_str text, cx_err *err)
{
    cx_str line;
    while (cx_run_next_line(&text, &line)) {
        if (line.size == 0)
            continue;
        if (line.data[0] == '"')
            a->opaque++;
        else
            CX_TRY(cx_actions_add_path(a, true, line, CX_STR(""), CX_STR(NAMES_FILE), err));
    }
    return CX_SUCCESS;
}

static cx_status add_sources(cx_actions *a, cx_run_bundle *bundle, cx_err *err)
{
    cx_json evidence;
    cx_err unused = {0};
    if (cx_run_bundle_find(bundle, CX_STR(EVIDENCE_FILE)) == NULL)
        return CX_SUCCESS;
    cx_status status = cx_run_bundle_json(bundle, CX_STR(EVIDENCE_FILE), &evidence, &unused);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const cx_json *sources =
        cx_failed(status) ? NULL : cx_json_get_typed(&evidence, CX_STR("sources"), CX_JSON_ARRAY);
    for (uint32_t i = 0; sources != NULL && i < sources->count; i++) {
        cx_str url = CX_JSON_GET_STR(&sources->items[i], "url");
        if (memmem(url.data == NULL ? "" : url.data, url.size, "://", 3) != NULL)
            CX_TRY(cx_actions_add_url(a, url, CX_STR(EVIDENCE_FILE), err));
    }
    return CX_SUCCESS;
}

cx_status cx_actions_of_run(cx_actions *a, cx_run_bundle *bundle, cx_err *err)
{
    cx_bytes text;
    CX_TRY(cx_run_bundle_read(bundle, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &text, err));
    CX_TRY(add_events(a, cx_bytes_str(text), err));
    if (cx_run_bundle_find(bundle, CX_STR(NAMES_FILE)) != NULL) {
        uint64_t relative = a->relative; /* to the repository, which is known */
        CX_TRY(cx_run_bundle_read(bundle, CX_STR(NAMES_FILE), FILE_BYTES_MAX, &text, err));
        CX_TRY(add_changed(a, cx_bytes_str(text), err));
        a->relative = relative;
    }
    return add_sources(a, bundle, err);
}

/* --- recording (A2) --------------------------------------------------------------------------- */

static int by_name(const void *left, const void *right)
{
    const cx_action_item *a = left, *b = right;
    size_t size = a->name.size < b->name.size ? a->name.size : b->name.size;
    int order = memcmp(a->name.data, b->name.data, size);
    return order != 0 ? order : (a->name.size > b->name.size) - (a->name.size < b->name.size);
}

static cx_status read_seq(cx_bytes value, uint64_t *out, cx_err *err)
{
    cx_decoder d;
    uint64_t seq = 0;
    cx_decoder_begin(&d, value, "record of an action set", NULL);
    while (cx_decoder_next(&d))
        if (d.members.key == 1)
            seq = cx_cbor_read_uint(&d.reader);
        else
            cx_cbor_reject_member(&d.reader, &d.members);
    CX_TRY(cx_decoder_end(&d, 2, err));
    *out = seq;
    return CX_SUCCESS;
}

/* What is to be recorded. */
typedef struct recording {
    cx_action_set set;
    cx_buf list, payload, key, row;
    int64_t now_ns;
} recording;

static cx_status set_root(cx_actions *a, cx_action_set *set, cx_err *err)
{
    cx_smt *tree;
    CX_TRY(cx_action_tree_open(a->items.items, a->items.count, a->alloc, &tree, err));
    set->names = cx_smt_count(tree);
    cx_status status = cx_smt_root(tree, &set->root, err);
    cx_smt_close(tree);
    return status;
}

static cx_status write_entries(cx_txn *txn, recording *r, uint64_t *out_seq, cx_err *err)
{
    cx_entry_draft list = {.kind = cx_kinds_name(CX_KIND_ACTION_LIST),
                           .created_at_ns = r->now_ns,
                           .created_by = cx_str_bytes(CX_STR("cortex")),
                           .payload = cx_buf_bytes(&r->list),
                           .committed = true};
    cx_entry_draft set = {.kind = cx_kinds_name(CX_KIND_ACTION_SET),
                          .created_at_ns = r->now_ns,
                          .created_by = cx_str_bytes(CX_STR("cortex")),
                          .payload = cx_buf_bytes(&r->payload)};
    cx_cbor_fields fields;
    CX_TRY(cx_txn_entry(txn, &list, out_seq, err));
    CX_TRY(cx_txn_entry(txn, &set, out_seq, err));
    cx_cbor_fields_begin(&fields, &r->row);
    cx_codec_uint(&fields, 1, *out_seq);
    cx_cbor_fields_end(&fields);
    CX_TRY(cx_buf_check(&r->row, err));
    return cx_txn_put(txn, cx_buf_bytes(&r->key), cx_buf_bytes(&r->row), false, err);
}

static cx_status append_set(cx_home *home, recording *r, uint64_t *out_seq, cx_err *err)
{
    cx_txn *txn;
    CX_TRY(cx_txn_begin(home, r->set.actor, &txn, err));
    cx_status status = write_entries(txn, r, out_seq, err);
    if (!cx_failed(status))
        return cx_txn_commit(txn, err);
    cx_txn_abort(txn);
    return status;
}

/* Whether the newest set of the subject is this one, at whatever position. */
static cx_status is_recorded(cx_home *home, const recording *r, uint64_t *out_seq, bool *out,
                             cx_err *err)
{
    cx_arena arena;
    cx_actions_recorded last;
    *out = false;
    cx_arena_init(&arena, r->list.alloc, 0);
    cx_err unused = {0};
    cx_status status = cx_actions_find(home, r->set.subject, &arena, &last, &unused);
    if (status.code == CX_E_NOMEM) {
        cx_arena_done(&arena);
        return cx_fail_nomem(err);
    }
    if (!cx_failed(status) && !last.outdated && !last.list_erased) {
        cx_action_set same = r->set;
        cx_buf bytes;
        same.upto = last.set.upto;
        cx_buf_init(&bytes, r->list.alloc);
        cx_action_set_encode(&same, &bytes);
        cx_buf before;
        cx_buf_init(&before, r->list.alloc);
        cx_action_set_encode(&last.set, &before);
        *out =
            !bytes.failed && !before.failed && cx_str_eq(cx_buf_str(&bytes), cx_buf_str(&before));
        *out_seq = last.seq;
        cx_buf_done(&before);
        cx_buf_done(&bytes);
    }
    cx_arena_done(&arena);
    return CX_SUCCESS;
}

cx_status cx_actions_record(cx_actions *a, cx_home *home, cx_str actor, cx_str subject,
                            uint64_t upto, uint64_t *out_seq, cx_err *err)
{
    const cx_io *io = cx_home_io(home);
    recording r = {.now_ns = (int64_t)io->wall_ns(io)};
    bool recorded = false;
    r.set = (cx_action_set){.subject = subject,
                            .actor = actor,
                            .upto = upto,
                            .calls = a->calls,
                            .opaque = a->opaque,
                            .relative = a->relative,
                            .unread = a->unread};
    cx_buf_init(&r.list, a->alloc);
    cx_buf_init(&r.payload, a->alloc);
    cx_buf_init(&r.key, a->alloc);
    cx_buf_init(&r.row, a->alloc);
    if (a->items.count != 0)
        qsort(a->items.items, a->items.count, sizeof *a->items.items, by_name);
    cx_status status = set_root(a, &r.set, err);
    if (!cx_failed(status))
        status = is_recorded(home, &r, out_seq, &recorded, err);
    cx_action_list_encode(a->items.items, a->items.count, &r.list);
    cx_action_set_encode(&r.set, &r.payload);
    cx_buf_add_z(&r.key, SUBJECT_PREFIX);
    cx_buf_add_str(&r.key, subject);
    if (!cx_failed(status))
        status = cx_buf_check(&r.list, err);
    if (!cx_failed(status))
        status = cx_buf_check(&r.payload, err);
    if (!cx_failed(status))
        status = cx_buf_check(&r.key, err);
    if (!cx_failed(status) && !recorded)
        status = append_set(home, &r, out_seq, err);
    cx_buf_done(&r.row);
    cx_buf_done(&r.key);
    cx_buf_done(&r.payload);
    cx_buf_done(&r.list);
    return status;
}

/* --- a session -------------------------------------------------------------------------------- */

typedef struct session_reading {
    cx_actions *a;
    const cx_session_files *files;
    cx_buf place;
} session_reading;

/* Lines of the session's own file have their number alone. */
static cx_status add_session_call(void *arg, const cx_import_called *called, cx_err *err)
{
    session_reading *r = arg;
    cx_buf_clear(&r->place);
    if (called->file != 0) {
        cx_buf_add_str(&r->place, cx_session_stem(r->files->items[called->file]->path));
        cx_buf_add_byte(&r->place, ':');
    }
    cx_buf_printf(&r->place, "%llu", (unsigned long long)called->line);
    CX_TRY(cx_buf_check(&r->place, err));
    const cx_action_call call = {.tool = called->tool,
                                 .folder = called->folder,
                                 .place = cx_buf_str(&r->place),
                                 .args = called->args};
    return cx_actions_add_call(r->a, &call, err);
}

static cx_status drop_nodes(void *arg, cx_bytes bytes, cx_err *err)
{
    (void)arg;
    (void)bytes;
    (void)err;
    return CX_SUCCESS;
}

/* Bad records are labelled as well. */
static uint64_t unread_of(const cx_import_summary *summary)
{
    uint64_t unknown = summary->total.issues[CX_ISSUE_UNKNOWN_TYPE];
    return unknown > summary->total.bad ? unknown : summary->total.bad;
}

static cx_status collect_session(cx_actions *a, cx_home *home, const cx_session_files *files,
                                 cx_err *err)
{
    session_reading r = {.a = a, .files = files};
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    cx_import_summary summary = {0};
    uint64_t erased = 0;
    options.alloc = a->alloc;
    options.on_call = add_session_call;
    options.on_call_arg = &r;
    cx_buf_init(&r.place, a->alloc);
    cx_status status =
        cx_session_files_import(home, files, 0, &options, drop_nodes, NULL, &summary, &erased, err);
    if (!cx_failed(status))
        a->unread += erased + unread_of(&summary);
    cx_import_summary_done(&summary);
    cx_buf_done(&r.place);
    return status;
}

static cx_status subject_of(const cx_session_files *files, cx_arena *arena, cx_str *out,
                            cx_err *err)
{
    char id[2 * CX_SESSION_ID_SIZE];
    cx_hex_encode(cx_bytes_from(files->items[0]->id, CX_SESSION_ID_SIZE), id);
    *out = cx_arena_printf(arena, SESSION "%.*s", (int)sizeof id, id);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_actions_record_session(cx_home *home, cx_str name, const cx_alloc *alloc,
                                    uint64_t *out_seq, cx_err *err)
{
    const cx_str actor = CX_STR(CX_SESSION_ACTOR);
    cx_session_files files;
    cx_actor_info info = {0};
    cx_arena arena;
    cx_actions a;
    cx_str subject;
    cx_arena_init(&arena, alloc, 0);
    cx_actions_init(&a, alloc, cx_io_seed(cx_home_io(home)));
    /* Before the files are read: what is archived meanwhile may be in the set, or not. */
    cx_status status = cx_home_actor(home, actor, &info, err);
    uint64_t upto = info.entry_count;
    if (status.code == CX_E_NOT_FOUND)
        status = CX_SUCCESS; /* there are no sessions either */
    if (!cx_failed(status))
        status = cx_session_files_find(home, name, &arena, &files, err);
    if (!cx_failed(status))
        status = subject_of(&files, &arena, &subject, err);
    if (!cx_failed(status))
        status = collect_session(&a, home, &files, err);
    if (!cx_failed(status))
        status = cx_actions_record(&a, home, actor, subject, upto, out_seq, err);
    cx_actions_done(&a);
    cx_arena_done(&arena);
    return status;
}

/* --- finding ---------------------------------------------------------------------------------- */

static cx_status read_recorded(cx_home *home, cx_arena *arena, cx_actions_recorded *out,
                               cx_err *err)
{
    cx_entry_view set, list;
    CX_TRY(cx_home_entry(home, out->actor, out->seq, arena, &set, err));
    if (out->seq == 0 || !cx_kinds_is(set.entry.kind, CX_KIND_ACTION_SET))
        return cx_fail(err, CX_E_FORMAT, "entry %llu of %.*s is no action set",
                       (unsigned long long)out->seq, (int)out->actor.size, out->actor.data);
    CX_TRY(cx_action_set_decode(set.payload, &out->set, err));
    CX_TRY(cx_home_entry(home, out->actor, out->seq - 1, arena, &list, err));
    out->list_erased = list.payload_erased;
    if (out->list_erased)
        return CX_SUCCESS;
    return cx_action_list_decode(list.payload, arena, &out->items, &out->count, err);
}

static cx_status find_under(cx_home *home, cx_str actor, cx_str subject, cx_arena *arena,
                            cx_actions_recorded *out, bool *out_found, cx_err *err)
{
    cx_bytes value;
    cx_str key = cx_arena_printf(arena, SUBJECT_PREFIX "%.*s", (int)subject.size, subject.data);
    if (key.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_home_get(home, actor, cx_str_bytes(key), arena, &value, out_found, err));
    if (!*out_found)
        return CX_SUCCESS;
    out->actor = cx_arena_copy_str(arena, actor);
    if (out->actor.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(read_seq(value, &out->seq, err));
    return read_recorded(home, arena, out, err);
}

static cx_status fail_not_found(cx_err *err, cx_str subject)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoActionSet", CX_NO_OFFSET,
                      "no action set of %.*s is recorded", (int)subject.size, subject.data);
}

/* The newest piece of any of the session's files. */
static cx_status find_outdated(cx_home *home, const cx_session_files *files,
                               cx_actions_recorded *out, cx_err *err)
{
    for (size_t i = 0; i < files->count && !out->outdated; i++) {
        uint64_t seq = 0;
        bool found = false;
        CX_TRY(cx_recorder_session_newest(home, files->items[i], &seq, &found, err));
        out->outdated = found && seq >= out->set.upto;
    }
    return CX_SUCCESS;
}

/* In the journal of any run. */
static cx_status find_in_runs(cx_home *home, cx_str subject, cx_arena *arena,
                              cx_actions_recorded *out, bool *out_found, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    cx_actor_walk_begin_named(&walk, home, CX_STR(CX_RUN_ACTOR_PREFIX));
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL && !*out_found) {
        status = find_under(home, actor->name, subject, arena, out, out_found, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    return status;
}

cx_status cx_actions_find(cx_home *home, cx_str subject, cx_arena *arena, cx_actions_recorded *out,
                          cx_err *err)
{
    bool found = false;
    memset(out, 0, sizeof *out);
    if (cx_str_starts(subject, CX_STR(SESSION))) {
        cx_session_files files;
        cx_str id;
        cx_str name = cx_str_from(subject.data + strlen(SESSION), subject.size - strlen(SESSION));
        CX_TRY(cx_session_files_find(home, name, arena, &files, err));
        CX_TRY(subject_of(&files, arena, &id, err));
        CX_TRY(find_under(home, CX_STR(CX_SESSION_ACTOR), id, arena, out, &found, err));
        return found ? find_outdated(home, &files, out, err) : fail_not_found(err, subject);
    }
    CX_TRY(find_in_runs(home, subject, arena, out, &found, err));
    return found ? CX_SUCCESS : fail_not_found(err, subject);
}
