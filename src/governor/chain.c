/*
 * chain.c - reading a chain of contracts (decision 0021); chain_execute.c runs it.
 */
#include "governor/chain.h"

#include <stdio.h>

#include "os/api.h"
#include "base/api.h"
#include "rules/api.h"

typedef struct reading {
    const char *folder;
    cx_arena *arena;
    cx_run_findings *findings;
    cx_run_chain *chain;
    cx_err *err;
} reading;

static cx_str pointer(reading *r, size_t step, const char *member)
{
    char text[64];
    (void)snprintf(text, sizeof text, "/steps/%zu%s", step, member);
    return cx_arena_copy_str(r->arena, cx_str_z(text));
}

/* --- contracts ------------------------------------------------------------------------------- */

static cx_status read_contract_file(reading *r, size_t index, cx_str path, cx_bytes *out)
{
    cx_file folder;
    cx_buf contents;
    cx_err why;
    cx_str name = cx_arena_copy_str(r->arena, path);
    if (name.data == NULL)
        return cx_fail_nomem(r->err);
    CX_TRY(cx_folder_open(r->folder, &folder, r->err));
    cx_buf_init(&contents, r->arena->alloc);
    cx_status status =
        cx_folder_read_file(folder, name.data, CX_RUN_CONTRACT_BYTES_MAX, &contents, &why);
    cx_folder_close(folder);
    if (status.code == CX_E_NOMEM) {
        status = cx_fail_nomem(r->err);
    } else if (cx_failed(status)) {
        cx_run_findings_reject(
            r->findings, "CH05", pointer(r, index, "/contract"), CX_STR(""),
            "The contract '%.*s' cannot be read: %s. Give a file beside the chain's own, "
            "or the contract itself.",
            path.size > 100 ? 100 : (int)path.size, path.data, why.message);
        status = CX_SUCCESS;
    } else {
        cx_str stored = cx_arena_copy_str(r->arena, cx_buf_str(&contents));
        status = stored.data == NULL ? cx_fail_nomem(r->err) : CX_SUCCESS;
        *out = cx_str_bytes(stored);
    }
    cx_buf_done(&contents);
    return status;
}

static cx_status write_contract(reading *r, const cx_json *contract, cx_bytes *out)
{
    cx_buf text;
    cx_buf_init(&text, r->arena->alloc);
    cx_status status = cx_run_json_write(&text, contract, r->err);
    if (!cx_failed(status)) {
        cx_str stored = cx_arena_copy_str(r->arena, cx_buf_str(&text));
        status = stored.data == NULL ? cx_fail_nomem(r->err) : CX_SUCCESS;
        *out = cx_str_bytes(stored);
    }
    cx_buf_done(&text);
    return status;
}

/* --- steps ----------------------------------------------------------------------------------- */

static cx_status read_name(reading *r, cx_map *names, size_t index, cx_str name)
{
    uint64_t *slot;
    bool is_new;
    CX_TRY(cx_map_put(names, name, &slot, &is_new, r->err));
    if (is_new)
        *slot = index;
    else
        cx_run_findings_reject(r->findings, "CH02", pointer(r, index, "/name"), CX_STR(""),
                               "Step %zu has the name of step %zu; each step needs one of its own.",
                               index, (size_t)*slot);
    return CX_SUCCESS;
}

static cx_status read_depends(reading *r, const cx_map *names, size_t index, const cx_json *list)
{
    cx_run_chain_step *step = &r->chain->steps[index];
    if (list == NULL || list->count == 0)
        return CX_SUCCESS;
    uint32_t *after = CX_ARENA_ARRAY(r->arena, uint32_t, list->count);
    if (after == NULL)
        return cx_fail_nomem(r->err);
    for (uint32_t i = 0; i < list->count; i++) {
        cx_str name = cx_json_text(&list->items[i]);
        const uint64_t *found = cx_map_find(names, name);
        if (found == NULL)
            cx_run_findings_reject(r->findings, "CH03", pointer(r, index, "/depends_on"),
                                   CX_STR(""), "It depends on '%.*s', and no step has that name.",
                                   name.size > 100 ? 100 : (int)name.size, name.data);
        else
            after[step->after_count++] = (uint32_t)*found;
    }
    step->after = after;
    return CX_SUCCESS;
}

/* Takes away steps that wait for nothing until none is left, or none can be taken. */
static cx_status find_cycles(reading *r)
{
    size_t count = r->chain->step_count, taken = 0;
    bool *done = CX_ARENA_ARRAY(r->arena, bool, count);
    if (done == NULL)
        return cx_fail_nomem(r->err);
    memset(done, 0, count * sizeof *done);
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < count; i++) {
            const cx_run_chain_step *step = &r->chain->steps[i];
            bool ready = !done[i];
            for (size_t k = 0; k < step->after_count && ready; k++)
                ready = done[step->after[k]];
            if (ready) {
                done[i] = found = true;
                taken++;
            }
        }
    }
    for (size_t i = 0; i < count && taken < count; i++)
        if (!done[i])
            cx_run_findings_reject(
                r->findings, "CH04", pointer(r, i, "/depends_on"), CX_STR(""),
                "This step can never start: it waits for itself, through others or not.");
    return CX_SUCCESS;
}

static cx_status read_steps(reading *r, cx_map *names, const cx_json *steps)
{
    for (uint32_t i = 0; i < steps->count; i++) {
        cx_run_chain_step *step = &r->chain->steps[i];
        step->name = CX_JSON_GET_STR(&steps->items[i], "name");
        CX_TRY(read_name(r, names, i, step->name));
        const cx_json *contract = CX_JSON_GET(&steps->items[i], "contract");
        if (contract->type == CX_JSON_STRING)
            CX_TRY(read_contract_file(r, i, cx_json_text(contract), &step->contract));
        else
            CX_TRY(write_contract(r, contract, &step->contract));
    }
    for (uint32_t i = 0; i < steps->count; i++)
        CX_TRY(read_depends(r, names, i, CX_JSON_GET(&steps->items[i], "depends_on")));
    return find_cycles(r);
}

cx_status cx_run_chain_read(cx_str bytes, const char *folder, cx_arena *arena,
                            cx_run_findings *findings, cx_run_chain *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && findings != NULL && out != NULL);
    cx_run_chain chain = {.bytes = bytes};
    reading r = {folder, arena, findings, &chain, err};
    cx_json document;
    cx_err why;
    size_t before = findings->refusing;
    cx_status status = cx_run_json_read(bytes, CX_RUN_CHAIN_BYTES_MAX, arena, &document, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status)) {
        cx_run_findings_reject(findings, "CH01", CX_STR(""), CX_STR(""),
                               "The chain is no JSON: %s.", why.message);
        return CX_SUCCESS;
    }
    CX_TRY(cx_run_schema_check("task_chain.v1.json", &document, "CH01", findings, err));
    if (findings->refusing != before)
        return CX_SUCCESS;
    const cx_json *steps = CX_JSON_GET(&document, "steps");
    chain.chain_id = CX_JSON_GET_STR(&document, "chain_id");
    chain.step_count = steps->count;
    if (steps->count > CX_RUN_CHAIN_STEPS_MAX) {
        cx_run_findings_reject(findings, "CH06", CX_STR("/steps"), CX_STR(""),
                               "A chain has at most %d steps, found %u.", CX_RUN_CHAIN_STEPS_MAX,
                               steps->count);
        return CX_SUCCESS;
    }
    chain.steps = CX_ARENA_ARRAY(arena, cx_run_chain_step, chain.step_count);
    if (chain.steps == NULL)
        return cx_fail_nomem(err);
    memset(chain.steps, 0, chain.step_count * sizeof *chain.steps);
    cx_map names;
    cx_map_init(&names, arena->alloc, 0);
    status = read_steps(&r, &names, steps);
    cx_map_done(&names);
    if (!cx_failed(status))
        *out = chain;
    return status;
}
