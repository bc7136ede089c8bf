/*
 * cmd_verify_home.c - `cortex verify --home DIR`: verifies everything recorded, from the first
 * byte. Nothing is written. Only a checkpoint, manifest or root stored elsewhere shows that the
 * journal was not truncated and not rewritten.
 */
#include <string.h>

#include "cli/ledger/verify_parts.h"
#include "ledger/api.h"

enum { ANCHORS_MAX = 3, LIMITS_MAX = 6, ACTORS_LISTED = 1000, THREADS_MAX = 64 };

typedef struct audit {
    cx_cli *cli;
    const cx_cli_args *args;
    const char *path;
    const char *shown;                 /* what the answer calls it */
    const cx_cli_backup_facts *backup; /* NULL = it is no backup */
    bool json;
    cx_check_options trust;
    cx_home_verify_options options;
    cx_anchor_point anchors[ANCHORS_MAX];
    cx_anchor_point since; /* --since */
    cx_manifest manifest;
    cx_vkey seal_key;
    cx_finding note; /* of the checkpoint's signatures */
    bool is_signed;  /* by a key given */
    cx_home_report *report;
    cx_verdict verdict;
    const char *reason; /* of a verdict that is not the report's own */
    cx_str detail;
    cx_buf out;
} audit;

/* --- what is trusted -------------------------------------------------------------------------- */

/* Keys without a name are those of the origin. */
static cx_status check_note(audit *a, const cx_checkpoint *checkpoint, cx_err *err)
{
    cx_vkey *keys = CX_ARENA_ARRAY(&a->cli->arena, cx_vkey, a->trust.key_count + 1);
    cx_note_result result;
    if (keys == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < a->trust.key_count; i++) {
        keys[i] = a->trust.keys[i];
        if (keys[i].name.size == 0)
            cx_vkey_make(checkpoint->origin, CX_VKEY_NOTE, &a->trust.keys[i].key, &keys[i]);
    }
    const cx_note_check check = {keys, a->trust.key_count, a->trust.cosigners_required};
    CX_TRY(cx_note_verify(a->trust.checkpoint, &check, a->cli->alloc, &result, &a->note, err));
    a->is_signed = a->note.verdict == CX_HOLDS;
    return CX_SUCCESS;
}

/* A checkpoint of the whole data directory: said so, or known by the default origin. */
static bool is_of_home(const audit *a, cx_str origin)
{
    static const char suffix[] = "/" CX_HOME_ROOT_ACTOR;
    const size_t size = sizeof suffix - 1;
    return cx_cli_has(a->args, "all") ||
           (origin.size > size && memcmp(origin.data + origin.size - size, suffix, size) == 0);
}

static cx_status read_checkpoint(audit *a, cx_err *err)
{
    cx_cli_stored_checkpoint kept;
    const char *path = cx_cli_value(a->args, "checkpoint");
    if (path == NULL)
        return cx_cli_has(a->args, "all") ? cx_fail(err, CX_E_USAGE,
                                                    "--all says what a checkpoint is of: expected "
                                                    "--checkpoint NOTE too")
                                          : CX_SUCCESS;
    CX_TRY(cx_cli_read_checkpoint(a->cli, path, &kept, err));
    cx_anchor_point *anchor = &a->anchors[a->options.anchor_count++];
    *anchor = (cx_anchor_point){.size = kept.checkpoint.size, .journal_root = kept.checkpoint.root};
    if (is_of_home(a, kept.checkpoint.origin))
        anchor->actor = CX_STR(CX_HOME_ROOT_ACTOR);
    if (kept.is_note && a->trust.key_count != 0)
        CX_TRY(check_note(a, &kept.checkpoint, err));
    return CX_SUCCESS;
}

/* --since NOTE: the journal's entries after it are read, and no others. */
static cx_status read_since(audit *a, cx_err *err)
{
    static const char *const whole[] = {"checkpoint", "state", "manifest", "root", "seal-key"};
    cx_cli_stored_checkpoint kept;
    const char *path = cx_cli_value(a->args, "since");
    for (size_t i = 0; i < CX_COUNT_OF(whole); i++)
        if (cx_cli_has(a->args, whole[i]))
            return cx_fail(err, CX_E_USAGE,
                           "--since reads only what came after NOTE; option --%s is for a "
                           "verification without it",
                           whole[i]);
    CX_TRY(cx_cli_read_checkpoint(a->cli, path, &kept, err));
    a->since =
        (cx_anchor_point){.size = kept.checkpoint.size, .journal_root = kept.checkpoint.root};
    a->options.since = &a->since;
    a->trust.checkpoint = kept.bytes;
    if (is_of_home(a, kept.checkpoint.origin))
        a->options.actor = CX_STR(CX_HOME_ROOT_ACTOR);
    else
        CX_TRY(cx_cli_actor_name(a->cli, a->args, &a->options.actor, err));
    return kept.is_note && a->trust.key_count != 0 ? check_note(a, &kept.checkpoint, err)
                                                   : CX_SUCCESS;
}

static bool is_since_checkpoint(const audit *a)
{
    return a->options.since != NULL;
}

static cx_status read_anchors(audit *a, cx_err *err)
{
    CX_TRY(read_checkpoint(a, err));
    if (a->trust.journal != NULL) {
        if (a->trust.journal->size == CX_JOURNAL_SIZE_UNKNOWN)
            return cx_fail(err, CX_E_USAGE, "--root HEX needs --size N");
        a->anchors[a->options.anchor_count++] = (cx_anchor_point){
            .size = a->trust.journal->size, .journal_root = a->trust.journal->root};
    }
    if (a->trust.manifest.size != 0) {
        CX_TRY(cx_manifest_decode(a->trust.manifest, &a->manifest, err));
        a->anchors[a->options.anchor_count++] =
            (cx_anchor_point){.size = a->manifest.journal_size,
                              .journal_root = a->manifest.journal_root,
                              .manifest = &a->manifest};
        if (!cx_cli_has(a->args, "actor"))
            a->options.actor = a->manifest.actor;
    }
    return CX_SUCCESS;
}

static cx_status prepare_audit(audit *a, cx_err *err)
{
    static const char *const of_proofs[] = {"overall-root",    "from-root", "from-size",
                                            "from-checkpoint", "entry",     "leaf",
                                            "namespace",       "members",   "absent"};
    for (size_t i = 0; i < CX_COUNT_OF(of_proofs); i++)
        if (cx_cli_takes(a->args, of_proofs[i]) && cx_cli_has(a->args, of_proofs[i]))
            return cx_fail(err, CX_E_USAGE,
                           "option --%s applies to a proof file, not to a data directory",
                           of_proofs[i]);
    const char *seal_key = cx_cli_value(a->args, "seal-key");
    CX_TRY(cx_cli_takes(a->args, "root") ? cx_cli_read_trust(a->cli, a->args, &a->trust, err)
                                         : cx_cli_read_home_trust(a->cli, a->args, &a->trust, err));
    a->options.require_anchored = cx_cli_has(a->args, "require");
    if (cx_cli_takes(a->args, "since") && cx_cli_has(a->args, "since"))
        return read_since(a, err);
    if (a->trust.key_count != 0 && a->trust.checkpoint.size == 0)
        return cx_fail(err, CX_E_USAGE,
                       "option --key is for checkpoints: expected --checkpoint NOTE too "
                       "(--seal-key is for snapshots)");
    if (seal_key != NULL) {
        CX_TRY(cx_cli_read_key(a->cli, "option --seal-key", seal_key, &a->seal_key, err));
        a->options.seal_key = &a->seal_key.key;
    }
    CX_TRY(read_anchors(a, err));
    bool needs_actor = false;
    for (size_t i = 0; i < a->options.anchor_count; i++)
        needs_actor = needs_actor || a->anchors[i].actor.size == 0;
    if (cx_cli_has(a->args, "actor") || (needs_actor && a->options.actor.size == 0))
        CX_TRY(cx_cli_actor_name(a->cli, a->args, &a->options.actor, err));
    a->options.anchors = a->anchors;
    a->options.actor_max = ACTORS_LISTED;
    if (!cx_cli_takes(a->args, "state"))
        return CX_SUCCESS;
    a->options.state = cx_cli_value(a->args, "state");
    if (a->options.state == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_cli_check_state_file(a->cli, a->options.state, err));
    a->options.go_on = cx_cli_verify_goes_on;
    cx_cli_verify_begin_signals();
    return CX_SUCCESS;
}

/* --- the verdict ------------------------------------------------------------------------------ */

static void set_verdict(audit *a)
{
    a->verdict = cx_home_report_verdict(a->report);
    const cx_home_totals *totals = cx_home_report_totals(a->report);
    if (a->note.verdict == CX_BROKEN) {
        a->verdict = CX_BROKEN;
        a->reason = a->note.reason;
        a->detail = cx_str_z(a->note.message);
    } else if (a->verdict == CX_INDETERMINATE && a->options.require_anchored && !totals->anchored) {
        a->reason = "NotAnchored";
        a->detail = CX_STR("no checkpoint from outside the data directory shows how long the "
                           "journal was; give --checkpoint, --manifest, or --root and --size");
    } else if (a->verdict == CX_HOLDS && !a->is_signed &&
               (a->trust.require == CX_REQUIRE_SIGNED || a->trust.key_count != 0)) {
        a->verdict = CX_INDETERMINATE;
        a->reason = "NotSigned";
        a->detail = CX_STR("no checkpoint signed by a given key confirms it; give --checkpoint "
                           "with a signed note, and --key KEY");
    }
}

/* A backup that is not complete is broken, whatever is left of it holds. */
static void add_backup_verdict(audit *a)
{
    const cx_backup_state *backup = a->backup->state;
    bool unknown = backup->verdict == CX_INDETERMINATE && a->backup->record_wanted;
    if (a->verdict == CX_BROKEN || (backup->verdict != CX_BROKEN && !unknown))
        return;
    if (unknown && a->verdict != CX_HOLDS)
        return;
    a->verdict = backup->verdict;
    a->reason = backup->reason;
    a->detail = backup->message;
}

/* What the verdict "holds" does not cover. */
static size_t list_limits(const audit *a, const char *out[LIMITS_MAX])
{
    const cx_home_totals *totals = cx_home_report_totals(a->report);
    size_t count = 0;
    if (is_since_checkpoint(a)) {
        out[count++] =
            "the log before the checkpoint was not read: that its entries are still there "
            "and whole is not seen, only that their hashes in the tables lead to it";
        out[count++] = "one journal was looked at; memories, edges, snapshots, the tables and the "
                       "reasons of erasures were not compared with the log";
        return count;
    }
    if (!totals->anchored)
        out[count++] = "without a checkpoint or manifest from outside, it cannot be seen whether "
                       "the end was truncated or the history rewritten";
    if (!totals->has_home_root)
        out[count++] =
            "no home root is recorded, so a journal that was removed as a whole would not "
            "be seen; record one with 'cortex checkpoint --all'";
    else if (totals->recorded > totals->home_root.root.entries)
        out[count++] = "the home root recorded last does not cover the newest entries; record one "
                       "with 'cortex checkpoint --all'";
    if (a->options.seal_key == NULL && totals->manifests != 0)
        out[count++] = "signatures of seals were not checked; give --seal-key";
    if (totals->since)
        out[count++] = "what is before the point of --state was not read again, so damage and "
                       "rewriting there are not seen, and who can write the state can say of it "
                       "what they want; without --state everything is read";
    if (!totals->tables_checked)
        out[count++] = "the tables were not checked; they are made from the log";
    return count;
}

/* A verdict that rests on a kept state is never called "holds" alone: what is before was not read,
 * and who can write the state can say of it what they want. */
static bool rests_on_state(const audit *a)
{
    return a->verdict == CX_HOLDS && cx_home_report_totals(a->report)->since;
}

/* --- showing it ------------------------------------------------------------------------------- */

static void add_time(cx_buf *out, int64_t ns)
{
    const cx_civil_time t = cx_civil_of_seconds(ns / 1000000000);
    cx_buf_printf(out, "%04lld-%02u-%02uT%02u:%02u:%02uZ", (long long)t.date.year, t.date.month,
                  t.date.day, t.hour, t.minute, t.second);
}

static void write_totals(const cx_home_totals *t, cx_buf *out)
{
    cx_buf_printf(
        out,
        "  actors %llu, entries %llu, memories %llu, versions %llu, edges %llu, snapshots "
        "%llu, commits %llu\n",
        (unsigned long long)t->actors, (unsigned long long)t->entries,
        (unsigned long long)t->memories, (unsigned long long)t->versions,
        (unsigned long long)t->edges, (unsigned long long)t->manifests,
        (unsigned long long)t->commits);
    if (t->has_home_root)
        cx_buf_printf(
            out, "  home root %llu covers %llu actors and %llu of %llu entries\n",
            (unsigned long long)t->home_root.seq, (unsigned long long)t->home_root.root.actors,
            (unsigned long long)t->home_root.root.entries, (unsigned long long)t->recorded);
    if (t->erased != 0)
        cx_buf_printf(out, "  erased contents %llu, each recorded by an entry\n",
                      (unsigned long long)t->erased);
    if (t->torn_bytes != 0)
        cx_buf_printf(out, "  %llu bytes of an unfinished write at the end: nothing acknowledged\n",
                      (unsigned long long)t->torn_bytes);
}

/* Those whose roots are not in the report, so that it does not grow with their number. */
static uint64_t left_out_actors(const cx_home_report *report)
{
    if (cx_home_report_actor_count(report) == 0)
        return 0; /* of a part, none was asked for */
    return cx_home_report_totals(report)->actors - cx_home_report_actor_count(report);
}

static void write_actors(const cx_home_report *report, cx_buf *out)
{
    for (size_t i = 0; i < cx_home_report_actor_count(report); i++) {
        cx_actor_info actor;
        cx_roots roots;
        cx_home_report_actor(report, i, &actor, &roots);
        cx_buf_add_z(out, "  ");
        cx_shown_add(out, actor.name);
        cx_buf_add_z(out, "  overall root ");
        cx_cli_add_digest(out, &roots.overall);
        cx_buf_add_byte(out, '\n');
    }
    if (left_out_actors(report) != 0)
        cx_buf_printf(out, "  and %llu actors more; --actor NAME shows one, 'cortex roots' all\n",
                      (unsigned long long)left_out_actors(report));
}

static void write_findings(const cx_home_report *report, cx_buf *out)
{
    const cx_home_totals *t = cx_home_report_totals(report);
    size_t count = cx_home_report_count(report);
    for (size_t i = 0; i < count; i++) {
        const cx_home_finding *f = cx_home_report_finding(report, i);
        cx_buf_printf(out, "  %s %s: ", f->check, f->reason);
        cx_shown_add(out, f->actor);
        cx_buf_add_z(out, f->actor.size == 0 ? "" : ", ");
        cx_shown_add(out, f->where);
        cx_buf_add_z(out, f->where.size == 0 ? "" : ": ");
        cx_shown_add(out, f->message);
        cx_buf_add_byte(out, '\n');
    }
    if (t->findings > count)
        cx_buf_printf(out, "  and %llu findings more\n", (unsigned long long)(t->findings - count));
}

static void write_backup(const cx_backup_state *backup, cx_buf *out)
{
    const cx_backup_record *record = &backup->record;
    if (backup->has_record) {
        cx_buf_printf(out, "  backup of %.*s by cortex %s: commits %llu, segments %u",
                      (int)record->made_at.size, record->made_at.data, record->format.written_by,
                      (unsigned long long)record->end.commit_count,
                      (unsigned)record->end.segment_count);
        if (backup->commit_count > record->end.commit_count)
            cx_buf_printf(out, ", and %llu written to it since",
                          (unsigned long long)(backup->commit_count - record->end.commit_count));
        cx_buf_add_byte(out, '\n');
    }
    if (backup->other_count != 0)
        cx_buf_printf(out, "  other files in it, which a restore leaves out: %zu\n",
                      backup->other_count);
}

static void write_since(audit *a)
{
    const cx_home_totals *t = cx_home_report_totals(a->report);
    if (!rests_on_state(a))
        return;
    if (is_since_checkpoint(a)) {
        cx_buf_printf(&a->out, " since entry %llu of ", (unsigned long long)t->since_entries);
        cx_shown_add(&a->out, a->options.actor);
        cx_buf_add_z(&a->out, "; the entries before it as of ");
        cx_shown_add(&a->out, cx_str_z(cx_cli_value(a->args, "since")));
        return;
    }
    cx_buf_printf(&a->out, " since commit %llu; the %llu entries before it as of ",
                  (unsigned long long)t->since_commit, (unsigned long long)t->since_entries);
    cx_shown_add(&a->out, cx_str_z(a->options.state));
    cx_buf_add_z(&a->out, " (");
    add_time(&a->out, t->since_ns);
    cx_buf_add_byte(&a->out, ')');
}

static void write_text(audit *a)
{
    const char *limits[LIMITS_MAX];
    cx_buf *out = &a->out;
    cx_shown_add(out, cx_str_z(a->shown));
    cx_buf_printf(out, ": %s", cx_verdict_name(a->verdict));
    write_since(a);
    if (a->reason != NULL) {
        cx_buf_printf(out, " %s: ", a->reason);
        cx_shown_add(out, a->detail);
    }
    cx_buf_add_byte(out, '\n');
    if (a->backup != NULL)
        write_backup(a->backup->state, out);
    write_totals(cx_home_report_totals(a->report), out);
    write_actors(a->report, out);
    write_findings(a->report, out);
    size_t count = a->verdict == CX_BROKEN ? 0 : list_limits(a, limits);
    for (size_t i = 0; i < count; i++)
        cx_buf_printf(out, "  note: %s\n", limits[i]);
}

static void write_actors_json(audit *a, cx_json_list *json)
{
    cx_json_list list = cx_json_list_begin(&a->cli->arena);
    for (size_t i = 0; i < cx_home_report_actor_count(a->report); i++) {
        cx_actor_info actor;
        cx_roots roots;
        cx_json_list item = cx_json_list_begin(&a->cli->arena);
        cx_home_report_actor(a->report, i, &actor, &roots);
        cx_json_put_str(&item, "actor", actor.name);
        cx_json_put_digest(&item, "edges_root", &roots.edges);
        cx_json_put_digest(&item, "journal_root", &roots.journal);
        cx_json_put_uint(&item, "journal_size", roots.journal_size);
        cx_json_put_digest(&item, "memories_root", &roots.memories);
        cx_json_put_digest(&item, "overall_root", &roots.overall);
        cx_json_put_str(&item, "scheme", cx_scheme_name(actor.scheme));
        cx_json_add_object(&list, &item);
    }
    cx_json_put_array(json, "actors", &list);
    cx_json_put_uint(json, "actors_left_out", left_out_actors(a->report));
}

static void write_findings_json(audit *a, cx_json_list *json)
{
    cx_json_list list = cx_json_list_begin(&a->cli->arena);
    for (size_t i = 0; i < cx_home_report_count(a->report); i++) {
        const cx_home_finding *f = cx_home_report_finding(a->report, i);
        cx_json_list item = cx_json_list_begin(&a->cli->arena);
        cx_json_put_maybe(&item, "actor", f->actor);
        cx_json_put_str(&item, "check", cx_str_z(f->check));
        cx_json_put_str(&item, "message", f->message);
        cx_json_put_str(&item, "reason", cx_str_z(f->reason));
        cx_json_put_str(&item, "where", f->where);
        cx_json_add_object(&list, &item);
    }
    cx_json_put_array(json, "findings", &list);
}

static void write_totals_json(audit *a, cx_json_list *json)
{
    const cx_home_totals *t = cx_home_report_totals(a->report);
    cx_json_list totals = cx_json_list_begin(&a->cli->arena);
    cx_json_put_uint(&totals, "actors", t->actors);
    cx_json_put_uint(&totals, "commits", t->commits);
    cx_json_put_uint(&totals, "edges", t->edges);
    cx_json_put_uint(&totals, "entries", t->entries);
    cx_json_put_uint(&totals, "erased", t->erased);
    cx_json_put_uint(&totals, "findings", t->findings);
    cx_json_put_uint(&totals, "log_bytes", t->log_bytes);
    cx_json_put_uint(&totals, "memories", t->memories);
    cx_json_put_uint(&totals, "payloads", t->payloads);
    cx_json_put_uint(&totals, "snapshots", t->manifests);
    cx_json_put_uint(&totals, "torn_bytes", t->torn_bytes);
    cx_json_put_uint(&totals, "versions", t->versions);
    cx_json_put_object(json, "totals", &totals);
}

static void write_home_root_json(audit *a, cx_json_list *json)
{
    const cx_home_totals *t = cx_home_report_totals(a->report);
    cx_json_list root = cx_json_list_begin(&a->cli->arena);
    if (!t->has_home_root) {
        cx_json_put_null(json, "home_root");
        return;
    }
    cx_json_put_uint(&root, "actors", t->home_root.root.actors);
    cx_json_put_uint(&root, "covered", t->home_root.root.entries);
    cx_json_put_uint(&root, "recorded", t->recorded);
    cx_json_put_digest(&root, "root", &t->home_root.root.root);
    cx_json_put_uint(&root, "seq", t->home_root.seq);
    cx_json_put_object(json, "home_root", &root);
}

void cx_cli_put_backup(cx_json_list *json, const cx_backup_state *state)
{
    const cx_backup_record *record = &state->record;
    cx_json_list item = cx_json_list_begin(json->arena);
    cx_json_put_uint(&item, "commits", state->commit_count);
    if (state->has_record) {
        cx_json_put_z(&item, "cortex", record->format.written_by);
        cx_json_put_str(&item, "made_at", record->made_at);
        cx_json_put_uint(&item, "recorded_commits", record->end.commit_count);
    } else {
        cx_json_put_null(&item, "cortex");
        cx_json_put_null(&item, "made_at");
        cx_json_put_null(&item, "recorded_commits");
    }
    cx_json_put_uint(&item, "log_bytes", state->log_bytes);
    cx_json_put_uint(&item, "other_files", state->other_count);
    cx_json_put_object(json, "backup", &item);
}

static void write_since_json(audit *a, cx_json_list *json)
{
    const cx_home_totals *t = cx_home_report_totals(a->report);
    cx_json_list since = cx_json_list_begin(&a->cli->arena);
    cx_buf made;
    if (!t->since) {
        cx_json_put_null(json, "since");
        return;
    }
    if (is_since_checkpoint(a)) {
        cx_json_put_str(&since, "actor", a->options.actor);
        cx_json_put_z(&since, "checkpoint", cx_cli_value(a->args, "since"));
        cx_json_put_uint(&since, "entries_before", t->since_entries);
        cx_json_put_object(json, "since", &since);
        return;
    }
    cx_buf_init(&made, a->cli->alloc);
    add_time(&made, t->since_ns);
    cx_json_put_uint(&since, "commit", t->since_commit);
    cx_json_put_uint(&since, "entries_before", t->since_entries);
    cx_json_put_str(&since, "made_at", cx_arena_copy_str(&a->cli->arena, cx_buf_str(&made)));
    cx_json_put_str(&since, "state", cx_str_z(a->options.state));
    cx_json_put_object(json, "since", &since);
    cx_buf_done(&made);
}

static cx_status write_json(audit *a, cx_err *err)
{
    const cx_home_totals *t = cx_home_report_totals(a->report);
    const char *limits[LIMITS_MAX];
    cx_str texts[LIMITS_MAX];
    size_t count = list_limits(a, limits);
    for (size_t i = 0; i < count; i++)
        texts[i] = cx_str_z(limits[i]);
    cx_json_list json = cx_json_list_begin(&a->cli->arena);
    write_actors_json(a, &json);
    cx_json_put_bool(&json, "anchored", t->anchored);
    if (a->backup != NULL)
        cx_cli_put_backup(&json, a->backup->state);
    cx_json_put_maybe(&json, "detail", a->detail);
    write_findings_json(a, &json);
    cx_json_put_str(&json, "home", cx_str_z(a->shown));
    write_home_root_json(a, &json);
    cx_json_put_strs(&json, "limits", texts, count);
    cx_json_put_maybe(&json, "reason", cx_str_z(a->reason == NULL ? "" : a->reason));
    cx_json_put_bool(&json, "signed", a->is_signed);
    write_since_json(a, &json);
    cx_json_put_bool(&json, "tables_checked", t->tables_checked);
    write_totals_json(a, &json);
    cx_json_put_str(&json, "verdict",
                    cx_str_z(rests_on_state(a) ? "holds_since" : cx_verdict_name(a->verdict)));
    return cx_cli_end_json(&json, &a->out, err);
}

static cx_status verify_log(audit *a, cx_err *err)
{
    cx_cli_progress progress;
    CX_TRY(prepare_audit(a, err));
    cx_cli_progress_init(&progress, a->cli->io, "log");
    if (cx_cli_takes(a->args, "progress") && cx_cli_has(a->args, "progress"))
        cx_cli_progress_ask(&progress);
    a->options.home = cx_cli_home_options(a->cli, CX_CLI_READ, &progress);
    const uint64_t threads =
        cx_cli_takes(a->args, "threads") ? cx_cli_number(a->args, "threads", 0) : 0;
    a->options.home.threads = threads > THREADS_MAX ? THREADS_MAX : (unsigned)threads;
    cx_alloc_return_large();
    cx_status status = cx_home_verify(a->path, &a->options, &a->report, err);
    cx_cli_progress_end(&progress);
    CX_TRY(status);
    set_verdict(a);
    if (a->backup != NULL)
        add_backup_verdict(a);
    if (a->json)
        return write_json(a, err);
    write_text(a);
    return CX_SUCCESS;
}

cx_status cx_cli_audit_home(cx_cli *cli, const cx_cli_args *args, const char *path,
                            const cx_cli_backup_facts *backup, cx_buf *out, int *out_code,
                            cx_err *err)
{
    audit a = {.cli = cli, .args = args, .path = path, .shown = path, .backup = backup};
    a.json = cx_cli_has(args, "json");
    if (backup != NULL)
        a.shown = backup->shown;
    cx_buf_init(&a.out, cli->alloc);
    cx_status status = verify_log(&a, err);
    if (!cx_failed(status)) {
        cx_buf_add(out, a.out.data, a.out.size);
        out->failed = out->failed || a.out.failed;
        *out_code = a.verdict == CX_HOLDS    ? CX_EXIT_HOLDS
                    : a.verdict == CX_BROKEN ? CX_EXIT_BROKEN
                                             : CX_EXIT_UNCHECKED;
    }
    cx_home_report_close(a.report);
    cx_buf_done(&a.out);
    return status;
}

int cx_cli_verify_home(cx_cli *cli, const cx_cli_args *args, const char *path)
{
    cx_err err = {0};
    cx_buf out;
    int code = CX_EXIT_UNCHECKED;
    cx_buf_init(&out, cli->alloc);
    cx_status status = cx_cli_audit_home(cli, args, path, NULL, &out, &code, &err);
    code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err) : cx_cli_answer(cli, &out, code);
    cx_buf_done(&out);
    return code;
}
