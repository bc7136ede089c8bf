/*
 * cmd_evidence.c - `cortex evidence`: one self-contained file about an object, for an auditor
 * (docs/formats/evidence.md).
 */
#include <string.h>
#include <unistd.h>

#include "cli/ledger/checkpoint.h"
#include "cli/provenance/session.h"
#include "crypto/api.h"
#include "provenance/api.h"

typedef struct state {
    cx_cli_signer signer;
    bool has_signer;
    cx_cli_ledger *l;
} state;

static cx_status prepare_evidence(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    const char *path = cx_cli_value(l->args, "output");
    bool to_stdout = path == NULL || strcmp(path, "-") == 0;
    s->l = l;
    s->has_signer = cx_cli_signer_wanted(l->args);
    if (to_stdout && l->json)
        return cx_fail(err, CX_E_USAGE, "--json needs --output FILE for the evidence itself");
    if (to_stdout && isatty(STDOUT_FILENO) == 1)
        return cx_fail(err, CX_E_USAGE,
                       "expected --output FILE, for example: cortex evidence %s "
                       "-o evidence.cxe",
                       l->args->operands[0]);
    return s->has_signer ? cx_cli_signer_open(l->cli, l->args, &s->signer, err) : CX_SUCCESS;
}

/* The origin of a journal: no other journal of the data directory signs under it. */
static cx_status origin_of(cx_cli_ledger *l, cx_str actor, cx_str *out, cx_err *err)
{
    char hashed[CX_ORIGIN_HASHED_SIZE];
    CX_TRY(cx_cli_default_origin(l->cli, l->path, actor, out, err));
    if (cx_checkpoint_origin_ok(*out))
        return CX_SUCCESS;
    cx_origin_hashed(actor, hashed);
    *out = cx_arena_copy_str(l->arena, cx_str_z(hashed));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status sign_checkpoint(void *arg, cx_str actor, const cx_journal_point *point,
                                 cx_arena *arena, cx_bytes *out_note, cx_err *err)
{
    state *s = arg;
    cx_str before = s->l->actor, origin;
    cx_buf note;
    CX_TRY(origin_of(s->l, actor, &origin, err));
    const cx_checkpoint now = {.origin = origin, .size = point->size, .root = point->root};
    cx_buf_init(&note, s->l->cli->alloc);
    s->l->actor = actor; /* used to find the checkpoint that it extends */
    cx_status status = cx_cli_checkpoint_sign(s->l, &now, &s->signer, &note, err);
    s->l->actor = before;
    cx_str kept = cx_arena_copy_str(arena, cx_buf_str(&note));
    cx_buf_done(&note);
    CX_TRY(status);
    *out_note = cx_str_bytes(kept);
    return kept.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static const char *plural_of(size_t count, const char *one, const char *more)
{
    return count == 1 ? one : more;
}

static cx_status answer_evidence(cx_cli_ledger *l, const cx_evidence_result *result, size_t size,
                                 cx_err *err)
{
    const char *path = cx_cli_value(l->args, "output");
    const cx_evidence *e = &result->evidence;
    size_t is_signed = 0;
    for (size_t i = 0; i < e->journal_count; i++)
        is_signed += e->journals[i].checkpoint.size != 0;
    if (!l->json) {
        if (path == NULL || strcmp(path, "-") == 0)
            return CX_SUCCESS;
        cx_shown_add(&l->out, cx_str_z(path));
        cx_buf_printf(&l->out,
                      ": %zu entr%s of %zu journal%s (%zu signed), %zu file%s of a run, %zu signed "
                      "decision%s, %zu memor%s\n",
                      e->entry_count, plural_of(e->entry_count, "y", "ies"), e->journal_count,
                      plural_of(e->journal_count, "", "s"), is_signed, e->file_count,
                      plural_of(e->file_count, "", "s"), e->trace_count,
                      plural_of(e->trace_count, "", "s"), e->memory_count,
                      plural_of(e->memory_count, "y", "ies"));
        if (e->home_count != 0)
            cx_buf_printf(&l->out, "%zu of the journals are in a signed home root\n",
                          e->home_count);
        if (result->bodies_missing != 0)
            cx_buf_printf(&l->out,
                          "%zu contents were erased: the verdict about it is "
                          "indeterminate\n",
                          result->bodies_missing);
        cx_buf_printf(&l->out, "a browser shows it; 'cortex-verify%s ",
                      is_signed != 0 ? " --key KEY" : "");
        cx_shown_add(&l->out, cx_str_z(path));
        cx_buf_add_z(&l->out, "' checks it\n");
        return cx_buf_check(&l->out, err);
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_uint(&json, "bodies_missing", result->bodies_missing);
    cx_json_put_uint(&json, "bytes", size);
    cx_json_put_uint(&json, "entries", e->entry_count);
    cx_json_put_str(&json, "file", cx_str_z(path));
    cx_json_put_uint(&json, "files", e->file_count);
    cx_json_put_uint(&json, "homes", e->home_count);
    cx_json_put_str(&json, "id", e->id);
    cx_json_put_uint(&json, "journals", e->journal_count);
    cx_json_put_str(&json, "kind", e->kind);
    cx_json_put_uint(&json, "memories", e->memory_count);
    cx_json_put_bool(&json, "signed", is_signed == e->journal_count);
    cx_json_put_uint(&json, "traces", e->trace_count);
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status make_evidence(cx_cli_ledger *l, state *s, cx_cli_session *session, cx_err *err)
{
    cx_prov_object object;
    cx_json candidates = {0};
    cx_buf file;
    cx_evidence_result *result = CX_ARENA_NEW(l->arena, cx_evidence_result);
    cx_evidence_options options = {.now_ns = (int64_t)l->cli->io->wall_ns(l->cli->io)};
    if (result == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_cli_session_find(l->cli, session, l->args->operands[0], false, &object, &candidates,
                               err));
    if (s->has_signer) {
        options.sign = sign_checkpoint;
        options.sign_arg = s;
        options.signer = &s->signer.key;
        options.signer_name = s->signer.name.size == 0 ? CX_STR("signer") : s->signer.name;
    }
    cx_buf_init(&file, l->cli->alloc);
    cx_status status =
        cx_evidence_make(&session->sources, &object, &options, l->arena, &file, result, err);
    if (!cx_failed(status))
        status = cx_cli_deliver(l->cli, l->args, cx_buf_bytes(&file), err);
    if (!cx_failed(status))
        status = answer_evidence(l, result, file.size, err);
    cx_buf_done(&file);
    return status;
}

static cx_status evidence_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_cli_session session;
    CX_TRY(cx_cli_session_open_over(l->cli, l->args, l->home, &session, err));
    cx_status status = make_evidence(l, arg, &session, err);
    cx_cli_session_close(&session);
    return status;
}

static int run_evidence(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job signs = {CX_CLI_SIGN, false, prepare_evidence, evidence_job};
    static const cx_cli_job shows = {CX_CLI_READ, false, prepare_evidence, evidence_job};
    state s = {.has_signer = false};
    int code = cx_cli_run_job(cli, args, cx_cli_signer_wanted(args) ? &signs : &shows, &s);
    cx_cli_signer_done(&s.signer);
    return code;
}

static const cx_cli_operand operands[] = {{"ID", CX_CLI_TEXT, NULL, false, false}};
static const cx_cli_option options[] = {CX_CLI_OPTIONS_SIGNER,
                                        CX_CLI_OPTION_OUTPUT("the evidence"),
                                        CX_CLI_OPT_FLAG("html", 0,
                                                        "Changes nothing: the file is an HTML "
                                                        "document with or without it."),
                                        CX_CLI_OPTIONS_SESSION,
                                        CX_CLI_OPTION_JSON,
                                        CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_evidence = {
    .name = "evidence",
    .purpose = "write one file about a run, decision, commit, memory or session for outsiders",
    .about = "ID is a run, a trace, a commit, a memory or a session of a coding agent, by any name "
             "that 'cortex show' understands. The file contains its entries with their proofs, the "
             "bundle of the run, "
             "the signed decisions, the memories, and with --sign a signed checkpoint of each "
             "journal (of scheme cortex-1). It is an HTML document that any browser shows without "
             "scripts and without a network. 'cortex-verify' checks it offline: it builds the page "
             "again from the data and compares every byte. Erased content stays erased; the "
             "verdict is then indeterminate.\n\nGive the recipient your public key by another "
             "channel: 'cortex key show KEYFILE'.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 written\n1 the recorded data does not hold: nothing was written\n2 usage error, ID "
             "is unknown or ambiguous, or has no evidence\n3 could not be written: no data "
             "directory, unreadable, the signer failed",
    .example = "cortex evidence 6e908976 --sign ~/keys/log.key -o commit.cxe",
    .run = run_evidence,
};
