/*
 * cosign.c - asks witnesses to cosign a checkpoint.
 *
 *   W1  Only lines that the witness's own key signed over this checkpoint are added.
 *   W2  What a witness saw before is proven to it: it tells the size, and gets the consistency
 *       proof from there.
 */
#include "cli/ledger/cosign.h"

#include <string.h>

#include "cli/user_program.h"
#include "ledger/api.h"
#include "proof/api.h"

#define TIMEOUT_S 40
#define ANSWER_MAX ((size_t)64 << 10)

/* --- options ---------------------------------------------------------------------------------- */

/* A URL may have '=' in it, a key too: the key begins after the first one that leaves a key. */
static cx_status read_witness(cx_cli_ledger *l, const char *text, cx_cli_witness_at *out,
                              cx_err *err)
{
    cx_err unused = {0};
    for (const char *at = strchr(text, '='); at != NULL; at = strchr(at + 1, '=')) {
        if (cx_failed(cx_vkey_parse(cx_str_z(at + 1), &out->key, &unused)))
            continue;
        cx_str url = cx_str_from(text, (size_t)(at - text));
        while (url.size != 0 && url.data[url.size - 1] == '/')
            url.size--;
        cx_str kept = cx_arena_copy_str(l->arena, url);
        if (kept.data == NULL)
            return cx_fail_nomem(err);
        out->url = kept.data;
        bool http =
            cx_str_starts(kept, CX_STR("http://")) || cx_str_starts(kept, CX_STR("https://"));
        if (!http || memchr(kept.data, ' ', kept.size) != NULL)
            return cx_fail(err, CX_E_USAGE,
                           "option --witness: expected a URL that begins with http:// or https://");
        if (out->key.algorithm != CX_VKEY_COSIGNATURE)
            return cx_fail(err, CX_E_USAGE,
                           "option --witness: found the key of a log, expected that of a witness "
                           "('cortex witness' prints it)");
        return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_USAGE,
                   "option --witness: found '%s', expected URL=KEY, with the verifier key of the "
                   "witness: cosignatures of unknown keys are worth nothing",
                   text);
}

cx_status cx_cli_witnesses_read(cx_cli_ledger *l, cx_cli_witnesses *out, cx_err *err)
{
    const cx_cli_given *given = NULL;
    cx_cli_witness_at *items =
        CX_ARENA_ARRAY(l->arena, cx_cli_witness_at, l->args->given_count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    *out = (cx_cli_witnesses){.items = items};
    while ((given = cx_cli_next(l->args, "witness", given)) != NULL)
        CX_TRY(read_witness(l, given->values[0], &items[out->count++], err));
    out->needed = (size_t)cx_cli_number(l->args, "witnesses", out->count);
    if (out->needed > out->count)
        return cx_fail(err, CX_E_USAGE,
                       "option --witnesses: expected at most %zu, the number of "
                       "--witness options",
                       out->count);
    if (out->count != 0 && !cx_cli_signer_wanted(l->args))
        return cx_fail(err, CX_E_USAGE,
                       "--witness needs --sign or --signer: a witness cosigns what "
                       "the log has signed");
    return CX_SUCCESS;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* One request; *out_status is that of HTTP. */
static cx_status send_request(cx_cli_ledger *l, const cx_cli_witness_at *witness,
                              const cx_witness_request *request, cx_buf *answer,
                              unsigned *out_status, cx_err *err)
{
    const char *name;
    cx_buf body;
    cx_str command = cx_arena_printf(
        l->arena,
        "curl --silent --show-error --max-time 30 --request POST --header "
        "Content-Type:text/plain --header Expect: --data-binary @- --write-out \\n%%{http_code} "
        "%s/add-checkpoint",
        witness->url);
    if (command.data == NULL)
        return cx_fail_nomem(err);
    const cx_cli_user_program program = {.option = "witness",
                                         .command = command.data,
                                         .failure = "WitnessFailed",
                                         .timeout_s = TIMEOUT_S,
                                         .output_max = ANSWER_MAX};
    cx_buf_clear(answer);
    cx_buf_init(&body, l->cli->alloc);
    cx_witness_request_write(request, &body);
    cx_status status = cx_buf_check(&body, err);
    if (!cx_failed(status))
        status = cx_cli_user_program_run(l->cli, &program, cx_buf_bytes(&body), answer, &name, err);
    cx_buf_done(&body);
    CX_TRY(status);
    /* The last three bytes, after a line feed. */
    unsigned code = 0;
    for (size_t i = 0; i < 3 && answer->size >= 4; i++)
        code = code * 10 + (unsigned)(answer->data[answer->size - 3 + i] - '0');
    if (answer->size < 4 || code < 100 || code > 599)
        return cx_fail_at(err, CX_E_IO, "WitnessFailed", CX_NO_OFFSET, "%s gave no HTTP answer",
                          witness->url);
    answer->size -= 4;
    *out_status = code;
    return CX_SUCCESS;
}

/* W2: the journal from the size that the witness named. */
static cx_status prove_growth(cx_cli_ledger *l, const cx_cli_witness_at *witness, cx_str told,
                              const cx_checkpoint *now, cx_witness_request *out, cx_err *err)
{
    cx_consistency proof;
    cx_digest before, after;
    uint64_t size = 0;
    cx_str text = cx_arena_copy_str(l->arena, told);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    while (text.size != 0 && text.data[text.size - 1] == '\n')
        ((char *)text.data)[--text.size] = 0;
    CX_TRY(cx_cli_parse_number("the size that the witness names", text.data, &size, err));
    if (size > now->size)
        return cx_fail_at(err, CX_E_CONFLICT, "Truncated", CX_NO_OFFSET,
                          "the witness at %s has cosigned %llu entries, and the journal has %llu",
                          witness->url, (unsigned long long)size, (unsigned long long)now->size);
    out->old_size = size;
    if (size == 0 || size == now->size)
        return CX_SUCCESS;
    CX_TRY(cx_proof_consistency(l->home, l->actor, size, now->size, l->arena, &proof, &before,
                                &after, err));
    if (proof.path_count > CX_WITNESS_PATH_MAX || !cx_digest_eq(&after, &now->root))
        return cx_fail(err, CX_E_CONFLICT, "the journal is not that of the checkpoint any more");
    memcpy(out->path, proof.path, proof.path_count * sizeof *proof.path);
    out->path_count = proof.path_count;
    return CX_SUCCESS;
}

/* W1 */
static cx_status add_cosignatures(cx_cli_ledger *l, const cx_cli_witness_at *witness,
                                  const cx_buf *answer, cx_buf *note, cx_err *err)
{
    const cx_note_check check = {.keys = &witness->key, .key_count = 1};
    cx_note_result result;
    cx_finding finding;
    cx_str rest = cx_buf_str(answer);
    size_t added = 0;
    while (rest.size != 0) {
        const char *end = memchr(rest.data, '\n', rest.size);
        if (end == NULL)
            break;
        size_t before = note->size, size = (size_t)(end - rest.data) + 1;
        cx_buf_add(note, rest.data, size);
        CX_TRY(cx_buf_check(note, err));
        rest = cx_str_from(rest.data + size, rest.size - size);
        memset(&result, 0, sizeof result);
        CX_TRY(cx_note_verify(cx_buf_bytes(note), &check, l->cli->alloc, &result, &finding, err));
        if (result.cosigned > added &&
            (finding.verdict == CX_HOLDS || strcmp(finding.reason, "NotSigned") == 0))
            added = result.cosigned;
        else
            note->size = before;
    }
    return added != 0
               ? CX_SUCCESS
               : cx_fail_at(err, CX_E_IO, "WitnessFailed", CX_NO_OFFSET,
                            "%s answered without a cosignature of the key given", witness->url);
}

static cx_status ask_witness(cx_cli_ledger *l, const cx_cli_witness_at *witness,
                             const cx_checkpoint *now, cx_bytes signed_note, cx_buf *note,
                             cx_err *err)
{
    cx_witness_request request = {.note = signed_note};
    cx_buf answer;
    unsigned code = 0;
    cx_buf_init(&answer, l->cli->alloc);
    cx_status status = send_request(l, witness, &request, &answer, &code, err);
    if (!cx_failed(status) && code == 409)
        status = prove_growth(l, witness, cx_buf_str(&answer), now, &request, err);
    if (!cx_failed(status) && code == 409)
        status = send_request(l, witness, &request, &answer, &code, err);
    if (!cx_failed(status) && code != 200) {
        cx_str why = cx_buf_str(&answer);
        const char *end = why.size == 0 ? NULL : memchr(why.data, '\n', why.size);
        why.size = end == NULL ? why.size : (size_t)(end - why.data);
        status = cx_fail_at(err, CX_E_IO, "WitnessRefused", CX_NO_OFFSET, "%s answered %u: %.*s",
                            witness->url, code, (int)(why.size > 200 ? 200 : why.size), why.data);
    }
    if (!cx_failed(status))
        status = add_cosignatures(l, witness, &answer, note, err);
    cx_buf_done(&answer);
    return status;
}

cx_status cx_cli_cosign(cx_cli_ledger *l, cx_cli_witnesses *witnesses, const cx_checkpoint *now,
                        cx_buf *note, cx_err *err)
{
    cx_str signed_note = cx_arena_copy_str(l->arena, cx_buf_str(note));
    if (signed_note.data == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < witnesses->count; i++) {
        cx_err why = {0};
        cx_status status =
            ask_witness(l, &witnesses->items[i], now, cx_str_bytes(signed_note), note, &why);
        witnesses->cosigned += !cx_failed(status);
        if (cx_failed(status))
            cx_cli_complain("checkpoint: %s", why.message);
    }
    if (witnesses->cosigned != 0)
        CX_TRY(cx_cli_checkpoint_store(l, now, cx_buf_bytes(note), err));
    if (witnesses->cosigned >= witnesses->needed)
        return CX_SUCCESS;
    return cx_fail_at(
        err, CX_E_IO, "NotCosigned", CX_NO_OFFSET,
        "%zu of %zu witnesses cosigned, expected %zu; the signed checkpoint is stored, "
        "and the next one asks again",
        witnesses->cosigned, witnesses->count, witnesses->needed);
}
