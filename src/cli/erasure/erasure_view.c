/*
 * erasure_view.c - carrying out an erasure from the command line, and showing it.
 */
#include "cli/erasure/erasure_view.h"

#include "cli/fleet/part_home.h"
#include "cli/trace/trace.h"
#include "socket/api.h"

cx_status cx_cli_erasing_prepare(cx_cli_ledger *l, cx_cli_erasing *erasing, cx_err *err)
{
    CX_TRY(cx_cli_can_deliver(l->cli, l->args, err));
    if (!cx_cli_signer_wanted(l->args))
        return CX_SUCCESS;
    CX_TRY(cx_cli_signer_open(l->cli, l->args, &erasing->signer, err));
    erasing->has_signer = true;
    return CX_SUCCESS;
}

/* --- the receipt ------------------------------------------------------------------------------ */

static cx_status sign_receipt(cx_cli_erasing *erasing, cx_buf *text, cx_err *err)
{
    cx_signature signature;
    cx_vkey vkey;
    if (!erasing->has_signer)
        return CX_SUCCESS;
    cx_vkey_make(erasing->signer.name.size == 0 ? CX_STR("erasure") : erasing->signer.name,
                 CX_VKEY_NOTE, &erasing->signer.key, &vkey);
    CX_TRY(cx_cli_signer_sign(&erasing->signer, cx_buf_bytes(text), &signature, err));
    cx_buf_add_byte(text, '\n');
    cx_note_add_signature(&vkey, &signature, text);
    return cx_buf_check(text, err);
}

/* To --output; without it nowhere, or with `always` to standard output. */
static cx_status deliver_receipt(cx_cli_ledger *l, cx_cli_erasing *erasing, cx_home *reader,
                                 uint64_t seq, bool always, cx_err *err)
{
    cx_buf text;
    if (!always && !cx_cli_has(l->args, "output"))
        return CX_SUCCESS;
    cx_buf_init(&text, l->cli->alloc);
    cx_status status = cx_erasure_receipt_text(reader, seq, &text, err);
    if (!cx_failed(status))
        status = sign_receipt(erasing, &text, err);
    if (!cx_failed(status) && cx_cli_has(l->args, "output"))
        status = cx_cli_deliver(l->cli, l->args, cx_buf_bytes(&text), err);
    else if (!cx_failed(status))
        cx_cli_out_write_exact(&l->cli->out, cx_buf_bytes(&text));
    cx_buf_done(&text);
    return status;
}

cx_status cx_cli_receipt_job(cx_cli_ledger *l, cx_cli_erasing *erasing, uint64_t seq, cx_err *err)
{
    return deliver_receipt(l, erasing, l->home, seq, true, err);
}

/* --- showing ---------------------------------------------------------------------------------- */

static void put_time(cx_json_list *json, const char *name, int64_t ns)
{
    char text[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(ns, text);
    cx_json_put_maybe(json, name, cx_arena_copy_str(json->arena, cx_str_z(text)));
}

static void put_sums(cx_json_list *json, cx_arena *arena, const cx_erasure_sums *sums)
{
    cx_json_list kinds = cx_json_list_begin(arena), kept = cx_json_list_begin(arena);
    for (size_t i = 0; i < sums->kind_count; i++) {
        cx_json_list kind = cx_json_list_begin(arena);
        cx_json_put_uint(&kind, "bytes", sums->kinds[i].bytes);
        cx_json_put_uint(&kind, "count", sums->kinds[i].count);
        cx_json_put_str(&kind, "kind", sums->kinds[i].kind);
        put_time(&kind, "newest", sums->kinds[i].newest_ns);
        put_time(&kind, "oldest", sums->kinds[i].oldest_ns);
        cx_json_add_object(&kinds, &kind);
    }
    for (size_t i = 0; i < sums->kept_count; i++) {
        cx_json_list hold = cx_json_list_begin(arena);
        cx_json_put_uint(&hold, "count", sums->kept[i].count);
        cx_json_put_uint(&hold, "hold", sums->kept[i].hold);
        cx_json_put_maybe(&hold, "reason", sums->kept[i].reason);
        cx_json_add_object(&kept, &hold);
    }
    cx_json_put_uint(json, "bytes", sums->bytes);
    cx_json_put_uint(json, "entries", sums->entries);
    cx_json_put_uint(json, "held", sums->held);
    cx_json_put_array(json, "holds", &kept);
    cx_json_put_array(json, "kinds", &kinds);
    cx_json_put_uint(json, "left", sums->left);
    cx_json_put_uint(json, "memories", sums->memories);
}

static void print_sums(cx_buf *out, const cx_erasure_sums *sums, const char *verb)
{
    char oldest[CX_TRACE_TIME_SIZE], newest[CX_TRACE_TIME_SIZE];
    cx_buf_printf(out, "%s %llu entries and %llu memories, %llu bytes\n", verb,
                  (unsigned long long)sums->entries, (unsigned long long)sums->memories,
                  (unsigned long long)sums->bytes);
    for (size_t i = 0; i < sums->kind_count; i++) {
        const cx_erasure_kind *kind = &sums->kinds[i];
        cx_trace_time_write(kind->oldest_ns, oldest);
        cx_trace_time_write(kind->newest_ns, newest);
        cx_buf_printf(out, "  %-24.*s %8llu  %s .. %s\n", (int)kind->kind.size, kind->kind.data,
                      (unsigned long long)kind->count, oldest, newest);
    }
    for (size_t i = 0; i < sums->kept_count; i++) {
        cx_buf_printf(out, "  kept by hold %llu: %llu (", (unsigned long long)sums->kept[i].hold,
                      (unsigned long long)sums->kept[i].count);
        cx_shown_add(out, sums->kept[i].reason);
        cx_buf_add_z(out, ")\n");
    }
    if (sums->left != 0)
        cx_buf_printf(out, "  left for the next time: %llu, more than one receipt lists\n",
                      (unsigned long long)sums->left);
}

static void print_result(cx_cli_ledger *l, const cx_erasure_result *result,
                         const cx_cli_erasing *erasing)
{
    print_sums(&l->out, &result->sums,
               result->nothing ? "nothing is left to destroy:" : "destroyed");
    if (result->nothing)
        return;
    cx_buf_printf(&l->out, "receipt: entry %llu of the journal " CX_ERASURES_ACTOR "\n",
                  (unsigned long long)result->receipt);
    if (!erasing->has_signer || !cx_cli_has(l->args, "output"))
        cx_buf_printf(&l->out,
                      "a signed copy: cortex erase --receipt %llu --sign KEYFILE -o FILE\n",
                      (unsigned long long)result->request);
}

static cx_status answer_json(cx_cli_ledger *l, const cx_erasure_sums *sums,
                             const cx_erasure_result *result, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(l->arena);
    put_sums(&json, l->arena, sums);
    cx_json_put_bool(&json, "dry_run", result == NULL);
    if (result != NULL && !result->nothing) {
        cx_json_put_uint(&json, "receipt", result->receipt);
        cx_json_put_uint(&json, "request", result->request);
    }
    return cx_cli_end_json(&json, &l->out, err);
}

/* --- carrying it out -------------------------------------------------------------------------- */

/* The index is a copy; what was erased leaves it when it reads on in the ledger (decision 0023). */
static void feed_index(cx_cli_ledger *l)
{
    const char *where;
    cx_index *index;
    cx_recorder *recorder = NULL;
    cx_err err = {0};
    if (cx_failed(cx_cli_index_where(l, &where, &err)) ||
        cx_failed(cx_index_open(where, CX_INDEX_READ, &index, NULL)))
        return;
    cx_index_close(index);
    cx_status status = cx_recorder_open(l->home, NULL, &recorder, &err);
    if (!cx_failed(status))
        status = cx_cli_feed(l, recorder, where, &err);
    cx_recorder_close(recorder);
    if (cx_failed(status))
        cx_cli_complain("%s: note: the index still has what was erased (%s); it is removed when "
                        "the index is next brought up to date",
                        l->args->command->name, err.message);
}

/* A writer process does not read its log for others. */
static cx_status begin_reading(void *arg, cx_home **out, cx_err *err)
{
    const cx_cli_ledger *l = arg;
    const cx_home_options options = cx_cli_home_options(l->cli, CX_CLI_READ, NULL);
    if (cx_home_is_remote(l->home)) {
        cx_cli_part_renew(l->cli);
        return cx_home_open(l->path, &options, out, err);
    }
    *out = l->home;
    return CX_SUCCESS;
}

static void end_reading(void *arg, cx_home *reader)
{
    const cx_cli_ledger *l = arg;
    if (reader != l->home && cx_failed(cx_home_close(reader, NULL)))
        cx_cli_complain("%s: note: the data directory could not be closed", l->args->command->name);
}

void cx_cli_forget_links(const cx_cli_ledger *l)
{
    cx_err err = {0};
    if (!cx_home_is_remote(l->home) && cx_failed(cx_links_forget_erased(l->home, &err)))
        cx_cli_complain("%s: note: %s", l->args->command->name, err.message);
}

static cx_status run_erasure(cx_cli_ledger *l, cx_cli_erasing *erasing, cx_erasure_result *out,
                             cx_err *err)
{
    const cx_erasure_reader access = {begin_reading, end_reading, l}, *reader = &access;
    CX_TRY(cx_erasure_run(l->home, reader, &erasing->filter, l->arena, out, err));
    while (out->resumed) {
        cx_cli_complain("%s: completed erasure %llu, which had been interrupted: %llu entries and "
                        "%llu memories; receipt: entry %llu of " CX_ERASURES_ACTOR,
                        l->args->command->name, (unsigned long long)out->request,
                        (unsigned long long)out->head.entries,
                        (unsigned long long)out->head.memories, (unsigned long long)out->receipt);
        CX_TRY(cx_erasure_run(l->home, reader, &erasing->filter, l->arena, out, err));
    }
    return CX_SUCCESS;
}

static cx_status erase_and_answer(cx_cli_ledger *l, cx_cli_erasing *erasing, cx_err *err)
{
    cx_erasure_result result;
    cx_home *reader;
    CX_TRY(run_erasure(l, erasing, &result, err));
    feed_index(l);
    cx_cli_forget_links(l);
    if (result.sums.held != 0)
        l->exit_code = CX_EXIT_REJECTED;
    if (!result.nothing) {
        CX_TRY(begin_reading(l, &reader, err));
        cx_status status = deliver_receipt(l, erasing, reader, result.request, false, err);
        end_reading(l, reader);
        CX_TRY(status);
    }
    if (l->json)
        return answer_json(l, &result.sums, &result, err);
    print_result(l, &result, erasing);
    return CX_SUCCESS;
}

static cx_status show_plan(cx_cli_ledger *l, const cx_cli_erasing *erasing, cx_err *err)
{
    cx_erasure_sums sums;
    CX_TRY(cx_erasure_plan_make(l->home, &erasing->filter, l->arena, &sums, err));
    if (sums.held != 0)
        l->exit_code = CX_EXIT_REJECTED;
    if (l->json)
        return answer_json(l, &sums, NULL, err);
    print_sums(&l->out, &sums, "would destroy");
    return CX_SUCCESS;
}

cx_status cx_cli_erasing_job(cx_cli_ledger *l, cx_cli_erasing *erasing, cx_err *err)
{
    if (erasing->filter.agent.data != NULL) {
        cx_actor_info info;
        CX_TRY(cx_home_actor(l->home, erasing->filter.agent, &info, err));
    }
    if (cx_cli_has(l->args, "dry-run"))
        return show_plan(l, erasing, err);
    return erase_and_answer(l, erasing, err);
}
