/*
 * take.c - one event of a hook, from bytes to the answer: state, decision, entry, answer (live.h
 * L2).
 */
#include <string.h>

#include "live/answer.h"
#include "live/session_parts.h"
#include "rules/api.h"

typedef struct taking {
    cx_home *home;
    const cx_live_options *options;
    cx_arena *arena;
    cx_live_call call;
    cx_live_outcome *out;
    cx_live_policy policy;
    bool is_new;       /* the session has no policy yet */
    cx_err policy_err; /* code CX_OK, or why there is no policy */
    cx_live_mode mode;
    cx_live_session session;
    bool approved, refused; /* by a person */
    uint64_t approval;      /* the entry */
    int64_t now_ns;
} taking;

static bool is_decided(cx_live_event event)
{
    return event == CX_LIVE_BEFORE || event == CX_LIVE_PERMISSION;
}

static bool is_tool_event(cx_live_event event)
{
    return is_decided(event) || event == CX_LIVE_AFTER || event == CX_LIVE_FAILED;
}

static cx_live_mode stricter(cx_live_mode a, cx_live_mode b)
{
    return a > b ? a : b;
}

/* --- policy ----------------------------------------------------------------------------------- */

static cx_status find_policy(taking *t, cx_err *err)
{
    cx_bytes stored = {NULL, 0};
    bool found = false;
    cx_actor_info info;
    cx_err ignored;
    cx_status status = cx_home_actor(t->home, t->out->actor, &info, &ignored);
    if (cx_failed(status) && status.code != CX_E_NOT_FOUND) {
        *err = ignored;
        return status;
    }
    if (!cx_failed(status))
        CX_TRY(cx_home_get(t->home, t->out->actor, cx_str_bytes(CX_LIVE_POLICY_KEY), t->arena,
                           &stored, &found, err));
    if (found) {
        CX_TRY(cx_live_policy_stored(cx_bytes_str(stored), t->arena, &t->policy, err));
    } else {
        t->is_new = true;
        status = cx_live_policy_load(t->call.cwd, t->arena, &t->policy, &t->policy_err);
        if (status.code == CX_E_NOMEM)
            return cx_fail_nomem(err);
        if (!cx_failed(status))
            t->policy_err.code = CX_OK;
    }
    t->policy.data_directory = cx_str_z(t->options->home);
    if (t->options->user_home != NULL)
        t->policy.user_home = cx_str_z(t->options->user_home);
    if (t->options->program != NULL)
        t->policy.program = cx_str_z(t->options->program);
    t->mode = t->options->mode;
    if (t->policy_err.code == CX_OK)
        t->mode = stricter(t->mode, t->policy.mode);
    return CX_SUCCESS;
}

/* What the caller has found follows the effects by the policy. */
static cx_status add_found(taking *t, cx_err *err)
{
    cx_live_decision *decision = &t->out->decision;
    size_t more = t->options->found_count;
    if (more == 0)
        return CX_SUCCESS;
    cx_live_effect *all = CX_ARENA_ARRAY(t->arena, cx_live_effect, decision->effect_count + more);
    if (all == NULL)
        return cx_fail_nomem(err);
    if (decision->effect_count != 0)
        memcpy(all, decision->effects, decision->effect_count * sizeof *all);
    for (size_t i = 0; i < more; i++) {
        const cx_live_effect *found = &t->options->found[i];
        all[decision->effect_count++] = *found;
        if (found->verdict > decision->verdict) { /* L4 */
            decision->verdict = found->verdict;
            decision->rule = found->rule;
            decision->why = found->why;
        }
    }
    decision->effects = all;
    return CX_SUCCESS;
}

static cx_status decide(taking *t, cx_err *err)
{
    cx_live_decision *decision = &t->out->decision;
    if (t->policy_err.code == CX_OK) {
        CX_TRY(cx_live_decide(&t->policy, &t->call, t->arena, decision, err));
        return add_found(t, err);
    }
    /* L1 */
    memset(decision, 0, sizeof *decision);
    decision->verdict = CX_LIVE_FORBIDDEN;
    decision->rule = "L03";
    decision->why =
        cx_arena_printf(t->arena, "the policy cannot be read: %s", t->policy_err.message);
    return decision->why.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- the answer's kind ------------------------------------------------------------------------ */

static bool only_commands_are_unlisted(const cx_live_decision *decision)
{
    for (size_t i = 0; i < decision->effect_count; i++)
        if (decision->effects[i].verdict == CX_LIVE_UNLISTED &&
            decision->effects[i].kind != CX_LIVE_COMMAND)
            return false;
    return true;
}

/* Effects that no person's answer in a conversation lifts. */
static bool is_own_protection(const char *rule)
{
    return strcmp(rule, "L10") == 0 || strcmp(rule, "L16") == 0 || strcmp(rule, "L03") == 0 ||
           strcmp(rule, "L04") == 0;
}

/* What the policy says, whatever the mode. */
static cx_live_answer_kind answer_of_policy(taking *t)
{
    cx_live_decision *decision = &t->out->decision;
    if (t->refused) {
        decision->verdict = CX_LIVE_FORBIDDEN;
        decision->rule = "L04";
        decision->why = CX_STR("a person was asked, and said no");
    }
    if (decision->verdict == CX_LIVE_ALLOW)
        return decision->rewrite.data != NULL ? CX_LIVE_REWRITTEN : CX_LIVE_PASS;
    bool askable = decision->verdict == CX_LIVE_UNLISTED ||
                   (t->mode == CX_LIVE_ASK && !is_own_protection(decision->rule));
    if (askable && t->approved)
        return decision->rewrite.data != NULL ? CX_LIVE_REWRITTEN : CX_LIVE_PASS;
    if (decision->verdict == CX_LIVE_FORBIDDEN)
        return askable ? CX_LIVE_ASKED : CX_LIVE_DENY;
    if (t->policy.unlisted == CX_LIVE_UNLISTED_DENY)
        return CX_LIVE_DENY;
    if (t->policy.unlisted == CX_LIVE_UNLISTED_SANDBOX && only_commands_are_unlisted(decision) &&
        t->call.event == CX_LIVE_BEFORE && cx_live_answer_can_rewrite(&t->call) &&
        cx_live_sandboxed(&t->policy, &t->call, t->arena, &decision->rewrite))
        return CX_LIVE_REWRITTEN;
    return CX_LIVE_ASKED;
}

/* --- payloads --------------------------------------------------------------------------------- */

static void put_common(taking *t, cx_json_list *payload)
{
    cx_json_put_uint(payload, "v", 1);
    cx_json_put_z(payload, "agent", cx_live_agent_name(t->call.agent));
    cx_json_put_str(payload, "session", t->call.session);
    cx_json_put_str(payload, "event", t->call.event_name);
}

static void put_subagent(taking *t, cx_json_list *payload)
{
    cx_json_list object = cx_json_list_begin(t->arena);
    if (t->call.subagent.size == 0) {
        cx_json_put_null(payload, "subagent");
        return;
    }
    cx_json_put_str(&object, "id", t->call.subagent);
    cx_json_put_str(&object, "type", t->call.subagent_type);
    cx_json_put_object(payload, "subagent", &object);
}

static void put_call(taking *t, cx_json_list *payload, bool with_input)
{
    cx_json_list object = cx_json_list_begin(t->arena);
    const cx_live_call *call = &t->call;
    cx_json_put_maybe(&object, "id", call->id);
    cx_json_put_str(&object, "tool", call->tool);
    cx_json_put_digest(&object, "input_sha256", &call->input_sha256);
    if (with_input) {
        cx_json_put_uint(&object, "input_bytes", call->input_bytes);
        cx_json_put_maybe(&object, "mcp", call->mcp_server);
        if (call->input != NULL && call->input_bytes <= CX_LIVE_KEPT_MAX)
            cx_json_put(&object, "input", *call->input);
        else
            cx_json_put_null(&object, "input");
    }
    cx_json_put_object(payload, "call", &object);
}

static void put_effects(taking *t, cx_json_list *payload)
{
    static const char *const verdicts[] = {"allow", "unlisted", "forbidden"};
    cx_json_list array = cx_json_list_begin(t->arena);
    const cx_live_decision *decision = &t->out->decision;
    for (size_t i = 0; i < decision->effect_count; i++) {
        const cx_live_effect *effect = &decision->effects[i];
        cx_json_list item = cx_json_list_begin(t->arena);
        cx_json_put_z(&item, "kind", cx_live_effect_name(effect->kind));
        cx_json_put_str(&item, "text", effect->text);
        cx_json_put_z(&item, "rule", effect->rule);
        cx_json_put_z(&item, "verdict", verdicts[effect->verdict]);
        if (effect->why.size != 0)
            cx_json_put_str(&item, "why", effect->why);
        cx_json_add_object(&array, &item);
    }
    cx_json_put_array(payload, "effects", &array);
}

static cx_status add_decision(taking *t, cx_txn *txn, cx_live_answer_kind would, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(t->arena);
    const cx_live_decision *decision = &t->out->decision;
    put_common(t, &payload);
    put_call(t, &payload, true);
    put_subagent(t, &payload);
    cx_json_put_str(&payload, "cwd", t->call.cwd);
    cx_json_put_z(&payload, "mode", cx_live_mode_name(t->mode));
    cx_json_put_z(&payload, "verdict", cx_live_answer_name(t->out->answer));
    cx_json_put_z(&payload, "would", cx_live_answer_name(would));
    cx_json_put_z(&payload, "rule", decision->rule);
    cx_json_put_str(&payload, "reason", decision->why);
    put_effects(t, &payload);
    cx_json_put_maybe(&payload, "rewrite", decision->rewrite);
    cx_json_put_bool(&payload, "fail_open", t->options->fail_open);
    if (t->approved || t->refused)
        cx_json_put_uint(&payload, "approval", t->approval);
    else
        cx_json_put_null(&payload, "approval");
    cx_json_put_maybe(&payload, "permission_mode", t->call.permission_mode);
    cx_json_put_z(&payload, "via", t->options->via);
    return cx_live_add_entry(txn, CX_KIND_LIVE_DECISION, t->now_ns, "hook", &payload, &t->out->seq,
                             err);
}

static cx_status add_result(taking *t, cx_txn *txn, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(t->arena);
    cx_digest digest;
    uint64_t size = 0;
    put_common(t, &payload);
    put_call(t, &payload, false);
    put_subagent(t, &payload);
    cx_json_put_z(&payload, "outcome", t->call.event == CX_LIVE_FAILED ? "failed" : "done");
    if (t->call.output != NULL) {
        CX_TRY(cx_live_input_digest(t->call.output, &digest, &size, err));
        cx_json_put_digest(&payload, "output_sha256", &digest);
    } else {
        cx_json_put_null(&payload, "output_sha256");
    }
    cx_json_put_uint(&payload, "output_bytes", size);
    cx_json_put_z(&payload, "via", t->options->via);
    return cx_live_add_entry(txn, CX_KIND_LIVE_RESULT, t->now_ns, "hook", &payload, &t->out->seq,
                             err);
}

/* A call that ran does not wait any more: the agent's own prompt was answered. */
static cx_status remove_asked(taking *t, cx_txn *txn, cx_err *err)
{
    cx_bytes record;
    bool found;
    const cx_live_key key = cx_live_key_of(CX_LIVE_ASKED_PREFIX, &t->call.input_sha256);
    CX_TRY(cx_txn_get(txn, cx_live_key_bytes(&key), &record, &found, err));
    return found ? cx_txn_remove(txn, cx_live_key_bytes(&key), err) : CX_SUCCESS;
}

static cx_status add_event(taking *t, cx_txn *txn, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(t->arena), detail = cx_json_list_begin(t->arena);
    put_common(t, &payload);
    if (t->call.event == CX_LIVE_PROMPT) {
        cx_digest digest = cx_digest_of(cx_str_bytes(t->call.prompt));
        cx_json_put_digest(&detail, "prompt_sha256", &digest);
        cx_json_put_uint(&detail, "prompt_bytes", t->call.prompt.size);
    }
    if (t->call.event == CX_LIVE_CONFIG) {
        cx_json_put_maybe(&detail, "path", t->call.path);
        cx_json_put_maybe(&detail, "source", t->call.source);
    }
    put_subagent(t, &payload);
    cx_json_put_object(&payload, "detail", &detail);
    return cx_live_add_entry(txn, CX_KIND_LIVE_EVENT, t->now_ns, "hook", &payload, &t->out->seq,
                             err);
}

static cx_status add_end(taking *t, cx_txn *txn, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(t->arena);
    put_common(t, &payload);
    cx_json_put_maybe(&payload, "reason", t->call.reason);
    t->session.ended = true;
    return cx_live_add_entry(txn, CX_KIND_LIVE_END, t->now_ns, "hook", &payload, &t->out->seq, err);
}

static void put_policy(taking *t, cx_json_list *payload)
{
    cx_json_list policy = cx_json_list_begin(t->arena), contract = cx_json_list_begin(t->arena);
    if (t->policy_err.code != CX_OK) {
        cx_json_put_z(&policy, "problem", t->policy_err.message);
    } else {
        cx_json_put_str(&policy, "from", t->policy.from);
        cx_json_put_maybe(&policy, "commit", t->policy.commit);
        cx_json_put_digest(&policy, "sha256", &t->policy.sha256);
        cx_json_put_str(&policy, "root", t->policy.root);
        if (t->policy.contract_task.size != 0) {
            cx_json_put_str(&contract, "task_id", t->policy.contract_task);
            cx_json_put_digest(&contract, "sha256", &t->policy.contract_sha256);
            cx_json_put_object(&policy, "contract", &contract);
        } else {
            cx_json_put_null(&policy, "contract");
        }
    }
    cx_json_put_object(payload, "policy", &policy);
}

static cx_status add_start(taking *t, cx_txn *txn, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(t->arena), program = cx_json_list_begin(t->arena);
    put_common(t, &payload);
    cx_json_put_str(&payload, "cwd", t->call.cwd);
    cx_json_put_maybe(&payload, "transcript", t->call.transcript);
    cx_json_put_str(&payload, "source",
                    t->call.event != CX_LIVE_START ? CX_STR("first_call")
                    : t->call.source.size == 0     ? CX_STR("startup")
                                                   : t->call.source);
    cx_json_put_z(&payload, "mode", cx_live_mode_name(t->mode));
    put_policy(t, &payload);
    cx_json_put_z(&program, "version", cx_version());
    cx_json_put_object(&payload, "program", &program);
    cx_json_put_bool(&payload, "fail_open", t->options->fail_open);
    cx_json_put_z(&payload, "via", t->options->via);
    CX_TRY(
        cx_live_add_entry(txn, CX_KIND_LIVE_START, t->now_ns, "hook", &payload, &t->out->seq, err));
    t->session.ended = false;
    return CX_SUCCESS;
}

/* --- the turn --------------------------------------------------------------------------------- */

static cx_status read_approval(taking *t, cx_txn *txn, cx_err *err)
{
    cx_bytes record;
    bool found;
    cx_json root;
    const cx_live_key key = cx_live_key_of(CX_LIVE_APPROVED_PREFIX, &t->call.input_sha256);
    CX_TRY(cx_txn_get(txn, cx_live_key_bytes(&key), &record, &found, err));
    if (!found)
        return CX_SUCCESS;
    CX_TRY(cx_run_json_read(cx_bytes_str(record), 0, t->arena, &root, err));
    const cx_json *allow = CX_JSON_GET(&root, "allow");
    const cx_json *seq = CX_JSON_GET(&root, "seq");
    t->approved = allow != NULL && allow->type == CX_JSON_TRUE;
    t->refused = !t->approved;
    if (seq != NULL)
        (void)cx_json_uint64(seq, &t->approval);
    return CX_SUCCESS;
}

/* An approval that counts once is gone with the call that used it. */
static cx_status use_approval(taking *t, cx_txn *txn, cx_err *err)
{
    cx_bytes record;
    bool found;
    const cx_live_key key = cx_live_key_of(CX_LIVE_APPROVED_PREFIX, &t->call.input_sha256);
    CX_TRY(cx_txn_get(txn, cx_live_key_bytes(&key), &record, &found, err));
    bool whole = found && memmem(record.data, record.size, "\"whole\":true", 12) != NULL;
    return found && !whole ? cx_txn_remove(txn, cx_live_key_bytes(&key), err) : CX_SUCCESS;
}

static cx_status put_asked(taking *t, cx_txn *txn, cx_err *err)
{
    cx_buf text;
    cx_json value;
    cx_json_list object = cx_json_list_begin(t->arena);
    const cx_live_decision *decision = &t->out->decision;
    const cx_live_key key = cx_live_key_of(CX_LIVE_ASKED_PREFIX, &t->call.input_sha256);
    cx_str shown = t->call.tool;
    for (size_t i = 0; i < decision->effect_count; i++)
        if (decision->effects[i].verdict == decision->verdict) {
            shown = decision->effects[i].text;
            break;
        }
    cx_json_put_str(&object, "tool", t->call.tool);
    cx_json_put_str(&object, "text", shown);
    cx_json_put_str(&object, "why", decision->why);
    cx_json_put_uint(&object, "seq", t->out->seq);
    cx_json_put_uint(&object, "at_ns", (uint64_t)t->now_ns);
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = cx_live_put_text(txn, cx_live_key_bytes(&key), &text, err);
    cx_buf_done(&text);
    return status;
}

static cx_status record_decision(taking *t, cx_txn *txn, cx_err *err)
{
    if (t->out->decision.verdict != CX_LIVE_ALLOW)
        CX_TRY(read_approval(t, txn, err));
    cx_live_answer_kind would = answer_of_policy(t);
    t->out->answer = t->mode == CX_LIVE_OBSERVE ? CX_LIVE_PASS : would;
    CX_TRY(add_decision(t, txn, would, err));
    t->session.calls++;
    t->session.denied += t->out->answer == CX_LIVE_DENY;
    t->session.asked += t->out->answer == CX_LIVE_ASKED;
    if (t->approved && t->call.event == CX_LIVE_BEFORE)
        CX_TRY(use_approval(t, txn, err));
    return t->out->answer == CX_LIVE_ASKED ? put_asked(t, txn, err) : CX_SUCCESS;
}

static cx_status record_in_turn(taking *t, cx_txn *txn, cx_err *err)
{
    cx_bytes record, stored;
    bool found, has_policy;
    CX_TRY(cx_txn_get(txn, cx_str_bytes(CX_LIVE_SESSION_KEY), &record, &found, err));
    CX_TRY(cx_txn_get(txn, cx_str_bytes(CX_LIVE_POLICY_KEY), &stored, &has_policy, err));
    if (found)
        CX_TRY(cx_live_session_decode(record, t->arena, &t->session, err));
    if (t->is_new && has_policy) { /* another process was faster: its policy holds */
        t->is_new = false;
        t->policy_err.code = CX_OK;
        cx_live_policy fresh;
        CX_TRY(cx_live_policy_stored(cx_bytes_str(stored), t->arena, &fresh, err));
        fresh.data_directory = t->policy.data_directory;
        fresh.user_home = t->policy.user_home;
        fresh.program = t->policy.program;
        t->policy = fresh;
        t->mode = stricter(t->options->mode, fresh.mode);
        if (is_decided(t->call.event))
            CX_TRY(decide(t, err));
    }
    if (!found) {
        t->session.agent = cx_str_z(cx_live_agent_name(t->call.agent));
        t->session.session = t->call.session;
        t->session.started_ns = t->now_ns;
        t->session.policy_from = t->session.contract_task = CX_STR("");
    }
    t->session.cwd = t->call.cwd.size != 0 || !found ? t->call.cwd : t->session.cwd;
    t->session.transcript =
        t->call.transcript.size != 0 || !found ? t->call.transcript : t->session.transcript;
    t->session.latest_ns = t->now_ns;
    t->session.mode = t->mode;
    if (t->is_new && t->policy_err.code == CX_OK)
        t->session.policy_from = t->policy.from;
    if (t->is_new || t->call.event == CX_LIVE_START)
        CX_TRY(add_start(t, txn, err));
    if (t->is_new && t->policy_err.code == CX_OK)
        CX_TRY(cx_live_put_policy(txn, &t->policy, err));
    switch (t->call.event) {
    case CX_LIVE_START: break;
    case CX_LIVE_END: CX_TRY(add_end(t, txn, err)); break;
    case CX_LIVE_BEFORE:
    case CX_LIVE_PERMISSION: CX_TRY(record_decision(t, txn, err)); break;
    case CX_LIVE_AFTER:
    case CX_LIVE_FAILED:
        CX_TRY(add_result(t, txn, err));
        CX_TRY(remove_asked(t, txn, err));
        break;
    case CX_LIVE_PROMPT:
    case CX_LIVE_CONFIG:
    case CX_LIVE_SUBAGENT:
    case CX_LIVE_OTHER: CX_TRY(add_event(t, txn, err)); break;
    }
    return cx_live_put_session(txn, &t->session, err);
}

cx_status cx_live_take(cx_home *home, const cx_live_options *options, cx_str text, cx_arena *arena,
                       cx_live_outcome *out, cx_err *err)
{
    cx_live_call call;
    CX_TRY(cx_live_call_read(options->agent, text, arena, &call, err));
    return cx_live_take_call(home, options, &call, arena, out, err);
}

cx_status cx_live_take_call(cx_home *home, const cx_live_options *options, const cx_live_call *call,
                            cx_arena *arena, cx_live_outcome *out, cx_err *err)
{
    taking t = {.home = home, .options = options, .arena = arena, .call = *call, .out = out};
    cx_txn *txn;
    const cx_io *io = cx_home_io(home);
    memset(out, 0, sizeof *out);
    CX_TRY(cx_live_actor(options->agent, t.call.session, arena, &out->actor, err));
    out->session = t.call.session;
    out->event = t.call.event;
    out->input_sha256 = t.call.input_sha256;
    CX_TRY(find_policy(&t, err));
    if (is_decided(t.call.event))
        CX_TRY(decide(&t, err));
    t.now_ns = (int64_t)io->wall_ns(io);
    CX_TRY(cx_txn_begin(home, out->actor, &txn, err));
    cx_status status = record_in_turn(&t, txn, err);
    if (cx_failed(status)) {
        cx_txn_abort(txn);
        return status;
    }
    CX_TRY(cx_txn_commit(txn, err)); /* L2 */
    CX_ASSERT(is_tool_event(t.call.event) || out->answer == CX_LIVE_PASS);
    return cx_live_answer(&t.call, options->over_http, arena, out, err);
}
