/*
 * api_step.c - the installed calls that record steps (cortex/lattice.h).
 */
#include "base/api.h"
#include "lattice/api.h"
#include "ledger/api.h"
#include "recorder/step.h"
#include "recorder/step_record.h"

typedef struct step_call {
    cx_ledger *ledger;
    cx_recorder *recorder;
    cx_arena arena;
} step_call;

static cx_status call_begin(step_call *c, cx_ledger *ledger, cx_err *err)
{
    const cx_recorder_options options = {.alloc = ledger->alloc};
    *c = (step_call){.ledger = ledger};
    CX_TRY(cx_recorder_open(ledger->home, &options, &c->recorder, err));
    cx_arena_init(&c->arena, ledger->alloc, 0);
    return CX_SUCCESS;
}

static void call_end(step_call *c)
{
    cx_recorder_close(c->recorder);
    cx_arena_done(&c->arena);
}

/* --- a draft as JSON -------------------------------------------------------------------------- */

static cx_status put_text(cx_json_list *list, const char *name, const char *text, cx_err *err)
{
    cx_str value;
    if (text == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_api_text(text, name, &value, err));
    cx_json_put(list, name, cx_json_make_str(value));
    return CX_SUCCESS;
}

static cx_status put_json(cx_json_list *list, const char *name, const char *text, cx_err *err)
{
    cx_json value;
    cx_err why;
    if (text == NULL)
        return CX_SUCCESS;
    cx_status status = cx_json_parse_text(cx_str_z(text), list->arena, &value, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status))
        return cx_fail_at(err, CX_E_FORMAT, "BadStep", CX_NO_OFFSET, "%s: %.200s", name,
                          why.message);
    cx_json_put(list, name, value);
    return CX_SUCCESS;
}

static cx_status put_parents(cx_json_list *list, const cx_step_draft *draft, cx_err *err)
{
    cx_json_list parents = cx_json_list_begin(list->arena);
    for (size_t i = 0; i < draft->parent_count; i++) {
        cx_str parent;
        CX_TRY(cx_api_text(draft->parents[i], "a parent", &parent, err));
        cx_json_list_add(&parents, cx_json_make_str(parent));
    }
    if (draft->parent_count != 0)
        cx_json_put_array(list, "parents", &parents);
    return CX_SUCCESS;
}

static cx_status put_signature(cx_json_list *list, const cx_step_draft *draft, cx_err *err)
{
    cx_json_list signature = cx_json_list_begin(list->arena);
    cx_buf text;
    if (draft->key_id == NULL)
        return CX_SUCCESS;
    CX_TRY(put_text(&signature, "key_id", draft->key_id, err));
    cx_buf_init(&text, list->arena->alloc);
    cx_base64_add(&text, cx_bytes_from(draft->signature.bytes, sizeof draft->signature.bytes),
                  CX_BASE64);
    cx_str copy = cx_arena_copy_str(list->arena, cx_buf_str(&text));
    bool failed = text.failed || copy.data == NULL;
    cx_buf_done(&text);
    if (failed)
        return cx_fail_nomem(err);
    cx_json_put(&signature, "signature", cx_json_make_str(copy));
    cx_json_put_object(list, "signature", &signature);
    return CX_SUCCESS;
}

static cx_status read_draft(const cx_step_draft *draft, cx_arena *arena, cx_json *value,
                            cx_step *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_str agent;
    CX_TRY(cx_api_text(draft->agent, "the agent", &agent, err));
    cx_json_put(&list, "agent", cx_json_make_str(agent));
    CX_TRY(put_json(&list, "event", draft->event, err));
    CX_TRY(put_json(&list, "state_delta", draft->state_delta, err));
    CX_TRY(put_parents(&list, draft, err));
    if (draft->head != NULL && draft->head[0] == 0)
        cx_json_put_null(&list, "head");
    else
        CX_TRY(put_text(&list, "head", draft->head, err));
    if (draft->fork)
        cx_json_put_bool(&list, "fork", true);
    CX_TRY(put_text(&list, "fork_type", draft->fork_type, err));
    CX_TRY(put_text(&list, "key", draft->key, err));
    if (!(draft->timestamp >= 0 && draft->timestamp < 1e300))
        return cx_api_refuse(err, "a timestamp is seconds since 1970");
    if (draft->timestamp != 0)
        cx_json_put(&list, "timestamp", cx_json_make_double(arena, draft->timestamp));
    CX_TRY(put_signature(&list, draft, err));
    CX_TRY(cx_json_list_end_object(&list, value, err));
    CX_TRY(cx_step_read(value, arena, out, err));
    if (out->problem.code == CX_OK)
        return CX_SUCCESS;
    if (err != NULL)
        *err = out->problem;
    return (cx_status){out->problem.code};
}

/* --- recording -------------------------------------------------------------------------------- */

static cx_status append_draft(step_call *c, const cx_step_draft *draft, cx_step_node *out,
                              cx_err *err)
{
    cx_step step;
    cx_step_taken taken;
    cx_json value;
    CX_TRY(read_draft(draft, &c->arena, &value, &step, err));
    CX_TRY(cx_recorder_steps_take(c->recorder, &step, 1, CX_STR(""), &taken, err));
    if (taken.status != CX_STEP_STORED && taken.status != CX_STEP_DUPLICATE) {
        if (err != NULL)
            *err = taken.problem;
        return (cx_status){taken.problem.code};
    }
    *out = (cx_step_node){
        .seq = taken.seq, .entry = taken.entry, .duplicate = taken.status == CX_STEP_DUPLICATE};
    memcpy(out->hash, taken.hash, sizeof out->hash);
    return CX_SUCCESS;
}

cx_status cx_step_append(cx_ledger *ledger, const cx_step_draft *draft, cx_step_node *out,
                         cx_err *err)
{
    step_call c;
    CX_TRY(call_begin(&c, ledger, err));
    cx_status status = append_draft(&c, draft, out, err);
    call_end(&c);
    return status;
}

static cx_status append_lines(step_call *c, cx_bytes lines, cx_buf *out, size_t *out_failed,
                              cx_err *err)
{
    cx_step *steps;
    size_t count = 0;
    CX_TRY(cx_steps_read_lines(cx_bytes_str(lines), &c->arena, &steps, &count, err));
    cx_step_taken *taken = CX_ARENA_ARRAY(&c->arena, cx_step_taken, count + 1);
    if (taken == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_recorder_steps_take(c->recorder, steps, count, CX_STR(""), taken, err));
    *out_failed = 0;
    for (size_t i = 0; i < count; i++) {
        cx_json value;
        CX_TRY(cx_step_taken_json(&taken[i], &c->arena, &value, err));
        CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
        cx_buf_add_byte(out, '\n');
        *out_failed += taken[i].status != CX_STEP_STORED && taken[i].status != CX_STEP_DUPLICATE;
    }
    return cx_buf_check(out, err);
}

cx_status cx_steps_append(cx_ledger *ledger, cx_bytes lines, cx_owned *out_results,
                          size_t *out_failed, cx_err *err)
{
    step_call c;
    cx_buf results;
    CX_TRY(call_begin(&c, ledger, err));
    cx_buf_init(&results, ledger->alloc);
    cx_status status = append_lines(&c, lines, &results, out_failed, err);
    if (!cx_failed(status))
        status = cx_owned_from_buf(&results, out_results, err);
    cx_buf_done(&results);
    call_end(&c);
    return status;
}

static cx_status find_head(step_call *c, const char *agent, cx_step_node *out, cx_err *err)
{
    cx_str name, actor;
    cx_step_record head;
    bool found;
    CX_TRY(cx_api_text(agent, "the agent", &name, err));
    CX_TRY(cx_step_actor(name, &c->arena, &actor, err));
    CX_TRY(cx_step_home_get(c->ledger->home, actor, cx_str_bytes(CX_STEP_HEAD_KEY), &c->arena,
                            &head, &found, err));
    if (!found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoSteps", CX_NO_OFFSET,
                          "agent %.80s has no steps here", agent);
    *out = (cx_step_node){.seq = (int64_t)head.seq, .entry = head.entry};
    cx_hex_encode(cx_bytes_from(head.hash.bytes, sizeof head.hash.bytes), out->hash);
    return CX_SUCCESS;
}

cx_status cx_step_head(cx_ledger *ledger, const char *agent, cx_step_node *out, cx_err *err)
{
    step_call c;
    CX_TRY(call_begin(&c, ledger, err));
    cx_status status = find_head(&c, agent, out, err);
    call_end(&c);
    return status;
}

static cx_status write_signed(const cx_step_draft *draft, cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_step step;
    cx_json value;
    cx_step_draft unsigned_draft = *draft;
    unsigned_draft.key_id = NULL;
    CX_TRY(read_draft(&unsigned_draft, arena, &value, &step, err));
    cx_buf_add_z(out, CX_STEP_SIGNED_PREFIX);
    cx_buf_add_str(out, step.signed_text);
    return cx_buf_check(out, err);
}

cx_status cx_step_to_sign(const cx_step_draft *draft, cx_owned *out, cx_err *err)
{
    cx_arena arena;
    cx_buf text;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = write_signed(draft, &arena, &text, err);
    if (!cx_failed(status))
        status = cx_owned_from_buf(&text, out, err);
    cx_buf_done(&text);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_steps_seal(cx_ledger *ledger, const cx_lattice *lattice, cx_steps_sealed *out,
                        cx_err *err)
{
    step_call c;
    cx_steps_sealed sealed;
    CX_TRY(call_begin(&c, ledger, err));
    cx_status status = cx_recorder_steps_seal(c.recorder, lattice, CX_STR(""), false, &sealed, err);
    if (!cx_failed(status))
        *out = sealed;
    call_end(&c);
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

cx_status cx_lattice_open_ledger(cx_ledger *ledger, const char *branch,
                                 const cx_lattice_options *options, cx_lattice **out, cx_err *err)
{
    cx_lattice_options chosen = CX_LATTICE_OPTIONS_INIT;
    cx_buf lines;
    cx_str name;
    CX_TRY(cx_api_text_or(branch, "the branch", (cx_str){NULL, 0}, &name, err));
    if (options != NULL)
        chosen = *options;
    if (chosen.alloc == NULL)
        chosen.alloc = ledger->alloc;
    cx_buf_init(&lines, chosen.alloc);
    cx_status status = cx_recorder_lattice(ledger->home, name, &chosen, &lines, out, err);
    if (!cx_failed(status))
        cx_lattice_keep_bytes(*out, &lines);
    cx_buf_done(&lines);
    return status;
}
