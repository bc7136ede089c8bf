/*
 * cmd_erase.c - `cortex erase`: destroys content; every proof still holds.
 */
#include <string.h>

#include "cli/erasure/erasure_view.h"
#include "cli/ledger/ledger.h"
#include "stores/api.h"

typedef struct state {
    bool entry;
    uint64_t seq;
    cx_cli_name name;
    cx_str reason;
    cx_str by;
} state;

static cx_status prepare_erase(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    const char *what = l->args->operands[0], *reason = cx_cli_value(l->args, "reason");
    const char *by = cx_cli_value(l->args, "by");
    if (reason == NULL || reason[0] == 0)
        return cx_fail(
            err, CX_E_USAGE,
            "expected --reason TEXT: erasure cannot be undone, and the reason is recorded");
    s->reason = cx_str_z(reason);
    s->by = by == NULL ? l->actor : cx_str_z(by);
    /* A ULID may consist of digits alone, but then it has 26 of them. */
    s->entry = strlen(what) < CX_ULID_SIZE && strspn(what, "0123456789") == strlen(what);
    return s->entry ? cx_cli_parse_number("SEQ", what, &s->seq, err)
                    : cx_cli_parse_name(what, &s->name, err);
}

static cx_status erase_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    const state *s = arg;
    cx_uri uri;
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    if (s->entry) {
        CX_TRY(cx_memory_redact(l->memory, s->seq, s->reason, s->by, err));
        cx_buf_printf(&l->out, "erased the payload of entry %llu\n", (unsigned long long)s->seq);
        cx_json_put_uint(&json, "erased_entry", s->seq);
        cx_json_put_null(&json, "erased_memory");
    } else {
        CX_TRY(cx_cli_find_uri(l, &s->name, &uri, err));
        CX_TRY(cx_memory_redact_memory(l->memory, &uri, s->reason, s->by, err));
        cx_buf_add_z(&l->out, "erased all versions of ");
        cx_uri_add(&uri, &l->out);
        cx_buf_add_byte(&l->out, '\n');
        cx_json_put_null(&json, "erased_entry");
        cx_json_put_uri(&json, "erased_memory", &uri);
    }
    cx_cli_forget_links(l);
    if (!l->json)
        return CX_SUCCESS;
    cx_buf_clear(&l->out);
    return cx_cli_end_json(&json, &l->out, err);
}

/* --- many at once ----------------------------------------------------------------------------- */

static cx_status prepare_many(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_cli_erasing *erasing = arg;
    cx_erasure_filter *filter = &erasing->filter;
    const char *agent = cx_cli_value(l->args, "agent"), *before = cx_cli_value(l->args, "before");
    const char *subject = cx_cli_value(l->args, "subject");
    const char *reason = cx_cli_value(l->args, "reason"), *by = cx_cli_value(l->args, "by");
    filter->before_ns = CX_TIME_NONE;
    if (agent != NULL)
        filter->agent = cx_str_z(agent);
    if (subject != NULL)
        filter->subject = cx_str_z(subject);
    if (subject != NULL && filter->subject.size < CX_HOLD_SUBJECT_MIN)
        return cx_fail(err, CX_E_USAGE,
                       "option --subject: found '%s', expected at least %d bytes: an address, an "
                       "id, a DID",
                       subject, CX_HOLD_SUBJECT_MIN);
    if (before != NULL)
        CX_TRY(cx_cli_parse_moment(l->cli, "option --before", before, &filter->before_ns, err));
    if ((reason == NULL || reason[0] == 0) && !cx_cli_has(l->args, "dry-run"))
        return cx_fail(
            err, CX_E_USAGE,
            "expected --reason TEXT: erasure cannot be undone, and the reason is recorded");
    filter->reason = cx_str_z(reason == NULL ? "" : reason);
    filter->by = by == NULL ? l->actor : cx_str_z(by);
    return cx_cli_erasing_prepare(l, erasing, err);
}

static cx_status many_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    return cx_cli_erasing_job(l, arg, err);
}

/* --- the stored bundle of a run --------------------------------------------------------------- */

#define COPIES_MAX 16 /* entries that say where a bundle is; one, as a rule */

typedef struct erasing_run {
    cx_str run_id, reason, by;
    cx_str actor; /* of its journal */
    cx_run_stored copies[COPIES_MAX];
    size_t copy_count, object_count;
    const uint64_t *keys; /* entries with keys */
    size_t key_count;
    bool versions_kept, versions_unknown; /* by the bucket, of what was removed */
} erasing_run;

static cx_status prepare_run(cx_cli_ledger *l, void *arg, cx_err *err)
{
    erasing_run *e = arg;
    const char *reason = cx_cli_value(l->args, "reason"), *by = cx_cli_value(l->args, "by");
    e->run_id = cx_str_z(cx_cli_value(l->args, "run"));
    if (!cx_run_id_valid(e->run_id))
        return cx_fail(err, CX_E_USAGE, "option --run: found '%.200s', expected the id of a run",
                       e->run_id.data);
    if (reason == NULL || reason[0] == 0)
        return cx_fail(
            err, CX_E_USAGE,
            "expected --reason TEXT: erasure cannot be undone, and the reason is recorded");
    e->reason = cx_str_z(reason);
    e->by = by == NULL ? l->actor : cx_str_z(by);
    return CX_SUCCESS;
}

static cx_status find_copies(cx_cli_ledger *l, erasing_run *e, cx_err *err)
{
    size_t at = 0;
    bool found = true;
    while (found) {
        cx_run_stored copy;
        CX_TRY(cx_run_stored_next(l->home, e->actor, e->run_id, &at, l->arena, &copy, &found, err));
        if (found && e->copy_count == COPIES_MAX)
            return cx_fail(err, CX_E_LIMIT,
                           "more than %d entries of %.*s say where the bundle of %.*s is: erase "
                           "them one by one ('cortex log --actor', 'cortex erase SEQ')",
                           COPIES_MAX, (int)e->actor.size, e->actor.data, (int)e->run_id.size,
                           e->run_id.data);
        if (found)
            e->copies[e->copy_count++] = copy;
        e->object_count += found && copy.in_object;
    }
    return cx_run_key_entries(l->home, e->actor, e->run_id, l->arena, &e->keys, &e->key_count, err);
}

static cx_status find_stored(cx_cli_ledger *l, erasing_run *e, cx_err *err)
{
    cx_run_index *index;
    cx_run_known known;
    CX_TRY(cx_run_index_open(l->home, l->cli->alloc, &index, err));
    cx_status status = cx_run_index_find(index, e->run_id, l->arena, &known, err);
    cx_run_index_close(index);
    CX_TRY(status);
    e->actor = known.sealed ? known.actor : known.journal;
    if (e->actor.size != 0)
        CX_TRY(find_copies(l, e, err));
    if (e->copy_count == 0 && e->key_count == 0)
        return cx_fail(err, CX_E_NOT_FOUND, "no bundle of %.*s is stored in this data directory",
                       (int)e->run_id.size, e->run_id.data);
    return CX_SUCCESS;
}

/* What is set today may be another bucket, which has no such object: that is not its end. */
static cx_status check_place(const cx_object_store *store, const cx_run_object *object, cx_err *err)
{
    char name[CX_OBJECT_NAME_SIZE];
    cx_object_name(store, &object->sha256, name);
    if (cx_str_is(object->endpoint, store->endpoint) && cx_str_is(object->bucket, store->bucket) &&
        cx_str_is(object->name, name))
        return CX_SUCCESS;
    const int endpoint = object->endpoint.size > 80 ? 80 : (int)object->endpoint.size;
    const int bucket = object->bucket.size > 63 ? 63 : (int)object->bucket.size;
    const int shown = object->name.size > 100 ? 100 : (int)object->name.size;
    return cx_fail_at(err, CX_E_IO, CX_RUN_BUNDLE_UNREACHABLE, CX_NO_OFFSET,
                      "nothing was erased: [bundles] has another endpoint, bucket or prefix than "
                      "the bundle was stored with; set %.*s, bucket %.*s (%.*s)",
                      endpoint, object->endpoint.data, bucket, object->bucket.data, shown,
                      object->name.data);
}

/* Before anything is destroyed: an object that could not be removed would be said to be erased. */
static cx_status check_store(const cx_cli_ledger *l, const erasing_run *e, cx_err *err)
{
    cx_err why = {0};
    if (e->object_count == 0)
        return CX_SUCCESS;
    if (l->cli->objects == NULL)
        return cx_fail_at(err, CX_E_IO, CX_RUN_BUNDLE_UNREACHABLE, CX_NO_OFFSET,
                          "the bundle of %.*s is in an object store, and none is set here: set "
                          "[bundles] in the configuration; nothing was erased",
                          (int)e->run_id.size, e->run_id.data);
    for (size_t i = 0; i < e->copy_count; i++)
        if (e->copies[i].in_object)
            CX_TRY(check_place(l->cli->objects, &e->copies[i].object, err));
    return cx_failed(cx_object_store_ready(l->cli->objects, &why))
               ? cx_fail_at(err, CX_E_IO, why.tag, CX_NO_OFFSET, "%s; nothing was erased",
                            why.message)
               : CX_SUCCESS;
}

/* Of parts, or of keys: without a key an object can be read from no copy. */
static cx_status erase_entries(cx_cli_ledger *l, const erasing_run *e, size_t *out_count,
                               size_t *out_held, cx_err *err)
{
    cx_memory *memories;
    size_t count = e->key_count, at = 0;
    for (size_t i = 0; i < e->copy_count; i++)
        count += e->copies[i].part_count;
    cx_memory_target *targets = CX_ARENA_ARRAY(l->arena, cx_memory_target, count + 1);
    if (targets == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < e->copy_count; i++)
        for (size_t j = 0; j < e->copies[i].part_count; j++)
            targets[at++] = (cx_memory_target){.seq = e->copies[i].parts[j].seq};
    for (size_t i = 0; i < e->key_count; i++)
        targets[at++] = (cx_memory_target){.seq = e->keys[i]};
    *out_count = count;
    CX_TRY(cx_memory_open(l->home, e->actor, NULL, &memories, err));
    cx_status status =
        cx_memory_redact_many(memories, targets, count, e->reason, e->by, out_held, err);
    cx_memory_close(memories);
    return cx_failed(status) ? status : cx_home_erase(l->home, e->actor, err);
}

static cx_status remove_objects(const cx_cli_ledger *l, erasing_run *e, cx_err *err)
{
    for (size_t i = 0; i < e->copy_count; i++) {
        cx_object_versions versions;
        cx_err why = {0};
        if (!e->copies[i].in_object)
            continue;
        cx_status status = cx_object_remove(l->cli->objects, cx_home_io(l->home),
                                            &e->copies[i].object.sha256, &versions, &why);
        if (cx_failed(status))
            return cx_fail_at(err, CX_E_IO, why.tag, CX_NO_OFFSET,
                              "%s; the key of the bundle is destroyed, so no one can read the "
                              "object, and the object is not known to be gone: repeat the command",
                              why.message);
        e->versions_kept = e->versions_kept || versions == CX_OBJECT_VERSIONS_KEPT;
        e->versions_unknown = e->versions_unknown || versions == CX_OBJECT_VERSIONS_UNKNOWN;
    }
    return CX_SUCCESS;
}

static void add_run_text(const erasing_run *e, size_t count, size_t held, cx_buf *out)
{
    cx_buf_printf(out, "erased the stored bundle of %.*s: %zu of %zu parts%s", (int)e->run_id.size,
                  e->run_id.data, count - held, count,
                  held == 0 ? "" : "; a legal hold keeps the others");
    if (held == 0 && e->object_count != 0)
        cx_buf_printf(out, "; objects removed from the store: %zu", e->object_count);
    if (e->versions_kept)
        cx_buf_add_z(out, "; the bucket keeps old versions of them, which are sealed with a "
                          "key that is destroyed: remove them with the tools of the store");
    if (e->versions_unknown)
        cx_buf_add_z(out, "; the store does not say whether it keeps old versions of them");
    cx_buf_add_byte(out, '\n');
}

static cx_status run_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    erasing_run *e = arg;
    size_t held = 0, count = 0;
    CX_TRY(find_stored(l, e, err));
    CX_TRY(check_store(l, e, err));
    CX_TRY(erase_entries(l, e, &count, &held, err));
    if (held != 0) /* some are erased, perhaps: none is there that no hold keeps */
        l->exit_code = CX_EXIT_REJECTED;
    else
        CX_TRY(remove_objects(l, e, err));
    if (!l->json) {
        add_run_text(e, count, held, &l->out);
        return cx_buf_check(&l->out, err);
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", e->actor);
    cx_json_put_str(&json, "erased_run", e->run_id);
    cx_json_put_uint(&json, "parts", count);
    cx_json_put_uint(&json, "held", held);
    cx_json_put_uint(&json, "objects_removed", held == 0 ? e->object_count : 0);
    if (e->versions_unknown)
        cx_json_put_null(&json, "versions_kept");
    else
        cx_json_put_bool(&json, "versions_kept", e->versions_kept);
    return cx_cli_end_json(&json, &l->out, err);
}

/* --- a receipt of before ---------------------------------------------------------------------- */

static cx_status prepare_receipt(cx_cli_ledger *l, void *arg, cx_err *err)
{
    return cx_cli_erasing_prepare(l, arg, err);
}

static cx_status receipt_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    return cx_cli_receipt_job(l, arg, cx_cli_number(l->args, "receipt", 0), err);
}

static int run_erase(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job one = {CX_CLI_WRITE, true, prepare_erase, erase_job};
    static const cx_cli_job many = {CX_CLI_WRITE, false, prepare_many, many_job};
    static const cx_cli_job plan = {CX_CLI_READ, false, prepare_many, many_job};
    static const cx_cli_job receipt = {CX_CLI_READ, false, prepare_receipt, receipt_job};
    static const cx_cli_job of_run = {CX_CLI_WRITE, false, prepare_run, run_job};
    state s;
    erasing_run run = {0};
    cx_cli_erasing erasing = {.has_signer = false};
    bool selects =
        cx_cli_has(args, "agent") || cx_cli_has(args, "subject") || cx_cli_has(args, "before");
    int ways = (args->operand_count != 0) + selects + cx_cli_has(args, "receipt") +
               cx_cli_has(args, "run");
    if (ways != 1)
        return cx_cli_misuse(args, "expected either SEQ or URI, or --agent, --subject, --before, "
                                   "or --run, or --receipt");
    if ((args->operand_count != 0 || cx_cli_has(args, "run")) &&
        (cx_cli_has(args, "dry-run") || cx_cli_has(args, "output") || cx_cli_signer_wanted(args)))
        return cx_cli_misuse(args, "--dry-run and receipts are for --agent, --subject, --before");
    if (args->operand_count != 0)
        return cx_cli_run_job(cli, args, &one, &s);
    if (cx_cli_has(args, "run"))
        return cx_cli_run_job(cli, args, &of_run, &run);
    int code = cx_cli_run_job(cli, args,
                              !selects                      ? &receipt
                              : cx_cli_has(args, "dry-run") ? &plan
                                                            : &many,
                              &erasing);
    cx_cli_signer_done(&erasing.signer);
    return code;
}

static const cx_cli_operand operands[] = {{"SEQ|URI", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "NAME", "All content in the journal of this agent."),
    CX_CLI_OPT("subject", 0, CX_CLI_TEXT, "TEXT",
               "All content that names this person or thing: an address, an id, a DID; as a whole "
               "word, case counts."),
    CX_CLI_OPT("before", 0, CX_CLI_TEXT, "TIME",
               "All content recorded before this time, date, or age such as 90d."),
    CX_CLI_OPT("run", 0, CX_CLI_TEXT, "RUN",
               "The stored bundle of this run; its events and its seal stay recorded."),
    CX_CLI_OPTION_DRY_RUN,
    CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT", "Why; needed, and recorded for good."),
    CX_CLI_OPT("by", 0, CX_CLI_TEXT, "NAME", "The author; default the actor."),
    CX_CLI_OPT("receipt", 0, CX_CLI_COUNT, "N",
               "Write the receipt of erasure N again, to sign it or to keep it."),
    CX_CLI_OPTIONS_RECEIPT,
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_erase = {
    .name = "erase",
    .purpose = "destroy content; proofs and roots still hold",
    .about =
        "SEQ: overwrites the committed payload of that entry. URI or ULID: overwrites every "
        "version of that memory and marks it as dead. With --agent, --subject or --before: all "
        "content for which all of them are true, accounted for in one receipt. The content can no "
        "longer be read from any file of the data directory. The fact that it existed, who erased "
        "it and why stay recorded. Backups and copies elsewhere are not changed.\n\nAn erasure "
        "that was interrupted is completed by the next one. What a legal hold covers is not "
        "erased (see 'cortex hold'). 'cortex-verify' checks a signed receipt.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_WRITE
    "\n4 a legal hold keeps it, or keeps a part of what was selected; the holds are named",
    .example = "cortex erase --subject ann@example.com --reason 'asked for' --sign org.key -o FILE",
    .run = run_erase,
};
