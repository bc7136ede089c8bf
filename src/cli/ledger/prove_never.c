/*
 * prove_never.c - `cortex prove --never NAME --in RUN` (docs/formats/actions.md).
 *
 *   P1  Every file is verified before it is written, as its reader will verify it.
 */
#include "cli/ledger/prove_never.h"

#include <string.h>
#include <unistd.h>

#include "cli/ledger/checkpoint.h"
#include "cli/run/run_ledger.h"
#include "cli/run/run_where.h"
#include "ledger/api.h"
#include "proof/api.h"
#include "stores/api.h"

typedef struct state {
    cx_str name, subject; /* in normal form */
    cx_cli_stored_checkpoint checkpoint;
    bool has_checkpoint;
} state;

static cx_status copy_normal(cx_cli_ledger *l, const char *option,
                             cx_status (*normal)(cx_str, cx_buf *, cx_err *), cx_str *out,
                             cx_err *err)
{
    const char *given = cx_cli_value(l->args, option);
    cx_buf text;
    if (given == NULL)
        return cx_fail(err, CX_E_USAGE, "--never NAME needs --in run:ID or --in @session/NAME");
    cx_buf_init(&text, l->cli->alloc);
    cx_status status = normal(cx_str_z(given), &text, err);
    if (!cx_failed(status))
        *out = cx_arena_copy_str(l->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return !cx_failed(status) && out->data == NULL ? cx_fail_nomem(err) : status;
}

static cx_status prepare_never(cx_cli_ledger *l, void *arg, cx_err *err)
{
    static const char *const others[] = {"absent", "at",      "compact", "edges",
                                         "entry",  "in-home", "size",    "actor"};
    state *s = arg;
    const char *path = cx_cli_value(l->args, "output");
    const char *checkpoint = cx_cli_value(l->args, "checkpoint");
    bool to_stdout = path == NULL || strcmp(path, "-") == 0;
    if (l->args->operand_count != 0)
        return cx_fail(err, CX_E_USAGE, "--never is about a run or session: expected no URI");
    for (size_t i = 0; i < CX_COUNT_OF(others); i++)
        if (cx_cli_has(l->args, others[i]))
            return cx_fail(err, CX_E_USAGE, "--%s does not apply to --never", others[i]);
    CX_TRY(copy_normal(l, "never", cx_action_name_normal, &s->name, err));
    CX_TRY(copy_normal(l, "in", cx_action_subject_normal, &s->subject, err));
    if (to_stdout && l->json)
        return cx_fail(err, CX_E_USAGE, "--json needs --output FILE for the proof itself");
    if (to_stdout && isatty(STDOUT_FILENO) == 1)
        return cx_fail(err, CX_E_USAGE, "expected --output FILE: a proof is binary");
    s->has_checkpoint = checkpoint != NULL;
    return checkpoint == NULL ? CX_SUCCESS
                              : cx_cli_read_checkpoint(l->cli, checkpoint, &s->checkpoint, err);
}

static cx_str name_in(cx_str subject)
{
    const char *slash = memchr(subject.data, '/', subject.size);
    size_t start = (size_t)(slash - subject.data) + 1;
    return cx_str_from(subject.data + start, subject.size - start);
}

/* --- recording -------------------------------------------------------------------------------- */

/* Only a bundle that is what was sealed gives a set. */
static cx_status check_bundle(cx_cli_ledger *l, const char *path, const cx_run_known *known,
                              cx_err *err)
{
    cx_run_bundle *bundle;
    cx_run_verdict verdict;
    CX_TRY(cx_run_bundle_open(l->cli->io, l->cli->alloc, path, &bundle, err));
    cx_status status = cx_run_verify(bundle, &known->witness, l->arena, &verdict, err);
    if (!cx_failed(status)) {
        if (verdict.verdict != CX_HOLDS)
            status = cx_fail_at(err, CX_E_CONFLICT, "BundleInvalid", CX_NO_OFFSET,
                                "the bundle %s is not what was sealed; 'cortex run verify' shows "
                                "what differs",
                                path);
        cx_run_findings_done(&verdict.findings);
    }
    cx_run_bundle_close(bundle);
    return status;
}

static cx_status record_run(cx_cli_ledger *l, cx_str run_id, cx_err *err)
{
    cx_run_store store;
    cx_run_index *index;
    cx_run_known known = {.sealed = false};
    uint64_t seq;
    if (!cx_run_id_valid(run_id))
        return cx_fail(err, CX_E_USAGE, "'%.*s' is no run id; 'cortex run list' lists the runs",
                       (int)(run_id.size > 80 ? 80 : run_id.size), run_id.data);
    CX_TRY(cx_cli_run_store(l->cli, cx_cli_value(l->args, "repo"), false, &store, err));
    CX_TRY(cx_run_index_open(l->home, l->cli->alloc, &index, err));
    cx_status status = cx_run_index_find(index, run_id, l->arena, &known, err);
    cx_run_index_close(index);
    CX_TRY(status);
    if (!known.sealed)
        return cx_fail_at(
            err, CX_E_NOT_FOUND, "NotSealed", CX_NO_OFFSET,
            "the data directory has no seal of %.*s; 'cortex run list' lists the runs",
            (int)run_id.size, run_id.data);
    cx_str path = cx_run_store_path(&store, l->arena, "runs", run_id);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(check_bundle(l, path.data, &known, err));
    return cx_cli_run_record_actions(l->cli, l->home, known.actor, run_id, path.data, &seq, err);
}

static cx_status record_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    uint64_t seq;
    CX_TRY(cx_cli_can_deliver(l->cli, l->args, err));
    if (cx_str_starts(s->subject, CX_STR("run/")))
        return record_run(l, name_in(s->subject), err);
    return cx_actions_record_session(l->home, name_in(s->subject), l->cli->alloc, &seq, err);
}

/* --- it was called ---------------------------------------------------------------------------- */

static void add_places(cx_cli_ledger *l, const cx_action_item *item, cx_json_list *json)
{
    cx_json_list places = cx_json_list_begin(l->arena), one = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < item->place_count; i++)
        cx_json_list_add(&places, cx_json_make_str(item->places[i]));
    cx_json_put_uint(&one, "count", item->count);
    cx_json_put_str(&one, "name", item->name);
    cx_json_put_array(&one, "places", &places);
    cx_json_add_object(json, &one);
    if (l->json)
        return;
    cx_buf_add_z(&l->out, "  ");
    cx_shown_add(&l->out, item->name);
    cx_buf_printf(&l->out, ", %llu times: ", (unsigned long long)item->count);
    for (size_t i = 0; i < item->place_count; i++) {
        cx_buf_add_z(&l->out, i == 0 ? "" : ", ");
        cx_shown_add(&l->out, item->places[i]);
    }
    cx_buf_add_z(&l->out, item->count > item->place_count ? ", ..\n" : "\n");
}

/* Where it was named: an answer, and no proof. */
static cx_status answer_called(cx_cli_ledger *l, const state *s, const cx_actions_recorded *found,
                               cx_err *err)
{
    cx_json_list json = cx_json_list_begin(l->arena), list = cx_json_list_begin(l->arena);
    bool is_run = cx_str_starts(found->set.subject, CX_STR("run/"));
    l->exit_code = CX_EXIT_BROKEN;
    if (!l->json) {
        cx_buf_add_z(&l->out, "not so: ");
        cx_shown_add(&l->out, found->set.subject);
        cx_buf_add_z(&l->out, " has ");
        cx_shown_add(&l->out, s->name);
        cx_buf_printf(&l->out, " in these %s:\n", is_run ? "events" : "lines");
    }
    for (size_t i = 0; i < found->count; i++)
        if (cx_action_item_covers(&found->items[i], s->name))
            add_places(l, &found->items[i], &list);
    if (!l->json)
        return CX_SUCCESS;
    cx_json_put_array(&json, "found", &list);
    cx_json_put_str(&json, "name", s->name);
    cx_json_put_str(&json, "result", CX_STR("recorded"));
    cx_json_put_str(&json, "subject", found->set.subject);
    return cx_cli_end_json(&json, &l->out, err);
}

/* --- the proof -------------------------------------------------------------------------------- */

static cx_status answer_never(cx_cli_ledger *l, const state *s, const cx_actions_recorded *found,
                              size_t size, cx_err *err)
{
    const char *path = cx_cli_value(l->args, "output");
    const cx_action_set *set = &found->set;
    if (!l->json) {
        if (path == NULL || strcmp(path, "-") == 0)
            return CX_SUCCESS;
        cx_shown_add(&l->out, cx_str_z(path));
        cx_buf_add_z(&l->out, ": ");
        cx_shown_add(&l->out, s->name);
        cx_buf_add_z(&l->out, " is not in what ");
        cx_shown_add(&l->out, set->subject);
        cx_buf_printf(&l->out,
                      " did, as recorded in entry %llu of %.*s: %llu names of %llu calls, %llu of "
                      "which may touch files and hosts that they do not name\n",
                      (unsigned long long)found->seq, (int)found->actor.size, found->actor.data,
                      (unsigned long long)set->names, (unsigned long long)set->calls,
                      (unsigned long long)set->opaque);
        if (set->unread != 0)
            cx_buf_printf(&l->out,
                          "  not proven: %llu records could not be read, and may be calls\n",
                          (unsigned long long)set->unread);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", found->actor);
    cx_json_put_uint(&json, "bytes", size);
    cx_json_put_uint(&json, "calls", set->calls);
    cx_json_put_str(&json, "file", cx_str_z(path));
    cx_json_put_str(&json, "name", s->name);
    cx_json_put_uint(&json, "names", set->names);
    cx_json_put_uint(&json, "opaque", set->opaque);
    cx_json_put_str(&json, "result", CX_STR("absent"));
    cx_json_put_digest(&json, "root", &set->root);
    cx_json_put_uint(&json, "seq", found->seq);
    cx_json_put_str(&json, "subject", set->subject);
    cx_json_put_uint(&json, "unread", set->unread);
    cx_json_put_uint(&json, "upto", set->upto);
    return cx_cli_end_json(&json, &l->out, err);
}

/* P1 */
static cx_status write_proof(cx_cli_ledger *l, const state *s, const cx_actions_recorded *found,
                             const cx_never_proof *proof, cx_err *err)
{
    const cx_check_options trust = {.never = s->name, .subject = found->set.subject};
    cx_check_result result;
    cx_buf bytes;
    cx_buf_init(&bytes, l->cli->alloc);
    cx_never_proof_encode(proof, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        status = cx_check_run(cx_buf_bytes(&bytes), &trust, l->arena, &result, err);
    if (!cx_failed(status) && result.finding.verdict == CX_BROKEN)
        status = cx_fail_at(err, CX_E_CONFLICT, result.finding.reason, CX_NO_OFFSET,
                            "cannot make a proof: %s", result.finding.message);
    if (!cx_failed(status))
        status = cx_cli_deliver(l->cli, l->args, cx_buf_bytes(&bytes), err);
    if (!cx_failed(status))
        status = answer_never(l, s, found, bytes.size, err);
    cx_buf_done(&bytes);
    return status;
}

/* The path of the name in the tree that the list gives, which must be the one recorded. */
static cx_status prove_path(cx_cli_ledger *l, const state *s, const cx_actions_recorded *found,
                            cx_never_proof *out, cx_err *err)
{
    cx_smt *tree;
    cx_digest root, key = cx_action_key(s->name);
    const cx_smt_path *path;
    CX_TRY(cx_action_tree_open(found->items, found->count, l->cli->alloc, &tree, err));
    cx_status status = cx_smt_root(tree, &root, err);
    if (!cx_failed(status) && !cx_digest_eq(&root, &found->set.root))
        status = cx_fail(err, CX_E_FORMAT,
                         "the list before entry %llu of %.*s does not lead to the root recorded; "
                         "'cortex verify --home' checks the data directory",
                         (unsigned long long)found->seq, (int)found->actor.size, found->actor.data);
    if (!cx_failed(status))
        status = cx_smt_prove(tree, &key, 1, l->arena, &path, err);
    if (!cx_failed(status))
        *out = (cx_never_proof){.name = s->name,
                                .siblings = path->siblings,
                                .sibling_count = path->sibling_count,
                                .has_other = path->has_other,
                                .other = path->other_key};
    cx_smt_close(tree);
    return status;
}

/* The set's entry in its journal: in the checkpoint's, when there is one. */
static cx_status prove_entry(cx_cli_ledger *l, const state *s, const cx_actions_recorded *found,
                             cx_buf *bytes, cx_err *err)
{
    const cx_checkpoint *note = s->has_checkpoint ? &s->checkpoint.checkpoint : NULL;
    cx_inclusion inclusion;
    cx_digest root;
    if (note != NULL && !cx_origin_names_actor(note->origin, found->actor))
        return cx_fail_at(
            err, CX_E_CONFLICT, "ActorMismatch", CX_NO_OFFSET,
            "the checkpoint is named %.*s, expected a name that ends with /%.*s: make "
            "one with 'cortex checkpoint --actor %.*s --origin NAME/%.*s'",
            (int)note->origin.size, note->origin.data, (int)found->actor.size, found->actor.data,
            (int)found->actor.size, found->actor.data, (int)found->actor.size, found->actor.data);
    if (note != NULL && note->size <= found->seq)
        return cx_fail_at(err, CX_E_CONFLICT, "NotCovered", CX_NO_OFFSET,
                          "the checkpoint is of %llu entries and the set is entry %llu; make a new "
                          "checkpoint",
                          (unsigned long long)note->size, (unsigned long long)found->seq);
    CX_TRY(cx_proof_journal(l->home, found->actor, found->seq, note == NULL ? 0 : note->size, true,
                            l->arena, &inclusion, &root, err));
    if (note != NULL && !cx_digest_eq(&root, &note->root))
        return cx_fail_at(err, CX_E_CONFLICT, "Forked", CX_NO_OFFSET,
                          "the first %llu entries of %.*s are not those of the checkpoint",
                          (unsigned long long)note->size, (int)found->actor.size,
                          found->actor.data);
    cx_inclusion_encode(&inclusion, bytes);
    return cx_buf_check(bytes, err);
}

static cx_status never_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    cx_actions_recorded found;
    cx_never_proof proof;
    cx_buf bytes;
    CX_TRY(cx_cli_can_deliver(l->cli, l->args, err));
    CX_TRY(cx_actions_find(l->home, s->subject, l->arena, &found, err));
    if (found.outdated)
        return cx_fail_at(err, CX_E_CONFLICT, "SetOutdated", CX_NO_OFFSET,
                          "more of %.*s was archived than its action set of entry %llu covers; "
                          "--fresh records a new one",
                          (int)s->subject.size, s->subject.data, (unsigned long long)found.seq);
    if (found.list_erased)
        return cx_fail_at(err, CX_E_CONFLICT, "ListErased", CX_NO_OFFSET,
                          "the list of what %.*s did was erased: of its set only the root is left",
                          (int)s->subject.size, s->subject.data);
    for (size_t i = 0; i < found.count; i++)
        if (cx_action_item_covers(&found.items[i], s->name))
            return answer_called(l, s, &found, err);
    CX_TRY(prove_path(l, s, &found, &proof, err));
    cx_buf_init(&bytes, l->cli->alloc);
    cx_status status = prove_entry(l, s, &found, &bytes, err);
    proof.inclusion = cx_buf_bytes(&bytes);
    if (s->has_checkpoint && s->checkpoint.is_note)
        proof.checkpoint = s->checkpoint.bytes;
    if (!cx_failed(status))
        status = write_proof(l, s, &found, &proof, err);
    cx_buf_done(&bytes);
    return status;
}

int cx_cli_prove_never(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job records = {CX_CLI_WRITE, false, prepare_never, record_job};
    static const cx_cli_job proves = {CX_CLI_READ, false, prepare_never, never_job};
    state s = {.has_checkpoint = false};
    int code = CX_EXIT_HOLDS;
    if (cx_cli_has(args, "fresh"))
        code = cx_cli_run_job(cli, args, &records, &s);
    return code != CX_EXIT_HOLDS ? code : cx_cli_run_job(cli, args, &proves, &s);
}
