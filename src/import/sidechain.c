/*
 * sidechain.c - lines of subagents in the file of their caller: sidechain.h.
 */
#include "import/sidechain.h"

#include "crypto/api.h"

/* The key of the prompt's call of this number: calls with one prompt start a sidechain each. */
static cx_str order_key(cx_import_sink *sink, const cx_digest *prompt, unsigned number)
{
    cx_buf text;
    cx_buf_init(&text, sink->options->alloc);
    cx_hex_add(&text, cx_bytes_from(prompt->bytes, 16));
    cx_buf_printf(&text, ".%u", number);
    cx_str key = {NULL, 0};
    if (!cx_failed(cx_buf_check(&text, NULL)))
        key = cx_arena_copy_str(sink->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return key;
}

static bool is_of_sidechain(const cx_json *line)
{
    return cx_json_get_typed(line, CX_STR("isSidechain"), CX_JSON_TRUE) != NULL &&
           CX_JSON_GET_STR(line, "agentId").size == 0;
}

cx_status cx_import_sidechain_of(cx_import_sink *sink, cx_import_sidechains *chains,
                                 const cx_json *line, cx_str *out, cx_err *err)
{
    cx_str uuid = CX_JSON_GET_STR(line, "uuid");
    *out = (cx_str){NULL, 0};
    if (!is_of_sidechain(line) || uuid.size == 0)
        return CX_SUCCESS;
    const cx_import_note *known =
        cx_import_index_find(&chains->lines, CX_JSON_GET_STR(line, "parentUuid"));
    if (known == NULL) /* a line that is repeated is of the same */
        known = cx_import_index_find(&chains->lines, uuid);
    if (known != NULL)
        *out = known->text;
    else
        CX_TRY(cx_import_short_name(sink, &chains->names, CX_STR(""), uuid, out, err));
    return cx_import_index_add(sink, &chains->lines, uuid, *out, CX_RECORD_NONE, err);
}

cx_status cx_import_sidechain_order(cx_import_sink *sink, cx_import_sidechains *chains,
                                    cx_str call_id, const cx_json *input, cx_err *err)
{
    cx_str prompt = input == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(input, "prompt");
    if (prompt.size == 0 || call_id.size == 0)
        return CX_SUCCESS;
    const cx_digest digest = cx_digest_of(cx_str_bytes(prompt));
    for (unsigned number = 0;; number++) {
        cx_str key = order_key(sink, &digest, number);
        if (key.data == NULL)
            return cx_fail_nomem(err);
        const cx_import_note *known = cx_import_index_find(&chains->orders, key);
        if (known != NULL && cx_str_eq(known->text, call_id))
            return CX_SUCCESS;
        if (known == NULL)
            return cx_import_index_add(sink, &chains->orders, key, call_id, CX_RECORD_NONE, err);
    }
}

cx_status cx_import_sidechain_start(cx_import_sink *sink, cx_import_sidechains *chains, cx_str id,
                                    cx_str prompt, cx_str *out_call_id, cx_err *err)
{
    const cx_digest digest = cx_digest_of(cx_str_bytes(prompt));
    *out_call_id = (cx_str){NULL, 0};
    for (unsigned number = 0; prompt.size != 0; number++) {
        cx_str key = order_key(sink, &digest, number);
        if (key.data == NULL)
            return cx_fail_nomem(err);
        const cx_import_note *order = cx_import_index_find(&chains->orders, key);
        if (order == NULL)
            return CX_SUCCESS;
        if (cx_import_index_find(&chains->taken, key) != NULL)
            continue;
        *out_call_id = order->text;
        CX_TRY(cx_import_index_add(sink, &chains->taken, key, id, CX_RECORD_NONE, err));
        return cx_import_index_add(sink, &chains->calls, *out_call_id, id, CX_RECORD_NONE, err);
    }
    return CX_SUCCESS;
}

cx_str cx_import_sidechain_by_call(const cx_import_sidechains *chains, cx_str call_id)
{
    const cx_import_note *known = cx_import_index_find(&chains->calls, call_id);
    return known == NULL ? (cx_str){NULL, 0} : known->text;
}

void cx_import_sidechains_done(cx_import_sidechains *chains, const cx_alloc *alloc)
{
    cx_import_index_done(&chains->lines, alloc);
    cx_import_index_done(&chains->names, alloc);
    cx_import_index_done(&chains->orders, alloc);
    cx_import_index_done(&chains->taken, alloc);
    cx_import_index_done(&chains->calls, alloc);
}
