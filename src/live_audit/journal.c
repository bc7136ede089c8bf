/*
 * journal.c - a session's journal as an audit looks at it: decisions, results, starts and ends,
 * changed configuration, approvals.
 */
#include <string.h>

#include "live_audit/parts.h"
#include "rules/api.h"

#define WRITES_MAX 64 /* of a decision; more effects than that are not made */

void cx_live_audit_journal_init(cx_live_audit_journal *journal, const cx_alloc *alloc,
                                uint64_t seed)
{
    memset(journal, 0, sizeof *journal);
    journal->alloc = alloc;
    cx_arena_init(&journal->arena, alloc, 0);
    cx_map_init(&journal->by_id, alloc, seed);
    cx_map_init(&journal->by_pair, alloc, seed);
    cx_map_init(&journal->open, alloc, seed);
    cx_map_init(&journal->by_path, alloc, seed);
}

void cx_live_audit_journal_done(cx_live_audit_journal *journal)
{
    cx_vec_done(&journal->decisions, journal->alloc);
    cx_vec_done(&journal->results, journal->alloc);
    cx_vec_done(&journal->marks, journal->alloc);
    cx_map_done(&journal->by_id);
    cx_map_done(&journal->by_pair);
    cx_map_done(&journal->open);
    cx_map_done(&journal->by_path);
    cx_vec_done(&journal->spans, journal->alloc);
    cx_vec_done(&journal->writes, journal->alloc);
    cx_arena_done(&journal->arena);
}

bool cx_live_audit_has_ids(cx_live_agent agent)
{
    return agent == CX_LIVE_CLAUDE || agent == CX_LIVE_CODEX;
}

/* --- entries ---------------------------------------------------------------------------------- */

typedef struct reader {
    cx_live_audit_journal *journal;
    const cx_entry_view *entry;
    const cx_json *payload;
    cx_arena scratch;
    uint64_t seq;
} reader;

static cx_status keep(reader *r, cx_str text, cx_str *out, cx_err *err)
{
    *out = (cx_str){NULL, 0};
    if (text.size == 0)
        return CX_SUCCESS;
    *out = cx_arena_copy_str(&r->journal->arena, text);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static bool digest_at(const cx_json *object, const char *name, cx_digest *out)
{
    cx_str hex = cx_json_get_str(object, cx_str_z(name));
    memset(out, 0, sizeof *out);
    return hex.size == 64 && cx_hex_decode(hex, out->bytes, sizeof out->bytes);
}

static bool is_true(const cx_json *object, const char *name)
{
    return cx_json_get_typed(object, cx_str_z(name), CX_JSON_TRUE) != NULL;
}

static cx_live_answer_kind answer_at(const cx_json *object, const char *name)
{
    cx_str word = cx_json_get_str(object, cx_str_z(name));
    for (int i = CX_LIVE_PASS; i <= CX_LIVE_REWRITTEN; i++)
        if (cx_str_is(word, cx_live_answer_name((cx_live_answer_kind)i)))
            return (cx_live_answer_kind)i;
    return CX_LIVE_DENY; /* a word that is not known lets nothing pass */
}

static cx_str digest_key(const cx_digest *digest)
{
    return cx_str_from((const char *)digest->bytes, sizeof digest->bytes);
}

/*
 * Decisions that no result has answered are a stack for each call id or, without ids, each input:
 * a result belongs to the newest of them that is of its tool.
 */
static cx_status open_stack(reader *r, cx_str id, const cx_digest *input, uint64_t **out,
                            bool *out_new, cx_err *err)
{
    bool by_id = cx_live_audit_has_ids(r->journal->agent) && id.size != 0;
    cx_str key = by_id ? id : digest_key(input);
    if (!by_id && cx_map_find(&r->journal->open, key) == NULL) {
        key = cx_arena_copy_str(&r->journal->arena, key);
        if (key.data == NULL)
            return cx_fail_nomem(err);
    }
    return cx_map_put(&r->journal->open, key, out, out_new, err);
}

/* --- decisions -------------------------------------------------------------------------------- */

static cx_str absolute_path(reader *r, cx_str path)
{
    cx_str cwd = CX_JSON_GET_STR(r->payload, "cwd");
    if (path.size == 0 || path.data[0] == '/' || cwd.size == 0 || cwd.size + path.size > 8192)
        return cx_arena_copy_str(&r->journal->arena, path);
    return cx_arena_printf(&r->journal->arena, "%.*s/%.*s", (int)cwd.size, cwd.data, (int)path.size,
                           path.data);
}

static cx_status read_effects(reader *r, cx_live_audit_decision *decision, cx_err *err)
{
    const cx_json *effects = cx_json_get_typed(r->payload, CX_STR("effects"), CX_JSON_ARRAY);
    cx_str writes[WRITES_MAX];
    for (uint32_t i = 0; effects != NULL && i < effects->count; i++) {
        cx_str kind = CX_JSON_GET_STR(&effects->items[i], "kind");
        cx_str text = CX_JSON_GET_STR(&effects->items[i], "text");
        decision->commands +=
            cx_str_is(kind, "command") || cx_str_is(kind, "unknown") || cx_str_is(kind, "tool");
        decision->hosts += cx_str_is(kind, "host");
        if (i == 0)
            CX_TRY(keep(r, cx_str_from(text.data, text.size > 200 ? 200 : text.size),
                        &decision->text, err));
        if (!cx_str_is(kind, "write") || decision->write_count == WRITES_MAX)
            continue;
        writes[decision->write_count] = absolute_path(r, text);
        if (writes[decision->write_count].data == NULL)
            return cx_fail_nomem(err);
        decision->write_count++;
    }
    if (decision->write_count == 0)
        return CX_SUCCESS;
    cx_str *list = CX_ARENA_ARRAY(&r->journal->arena, cx_str, decision->write_count);
    if (list == NULL)
        return cx_fail_nomem(err);
    memcpy(list, writes, decision->write_count * sizeof *list);
    decision->writes = list;
    return CX_SUCCESS;
}

/* The input that the agent was told to run in place of its own. */
static cx_status digest_rewritten(reader *r, cx_live_audit_decision *decision, const cx_json *input,
                                  cx_err *err)
{
    cx_str command = CX_JSON_GET_STR(r->payload, "rewrite");
    const cx_live_tool *tool = cx_live_tool_find(decision->tool);
    cx_json_list object = cx_json_list_begin(&r->scratch);
    cx_json value;
    const char *member = NULL;
    for (size_t i = 0; tool != NULL && member == NULL && i < CX_COUNT_OF(tool->members); i++)
        if (tool->members[i] != NULL &&
            cx_json_get_typed(input, cx_str_z(tool->members[i]), CX_JSON_STRING) != NULL)
            member = tool->members[i];
    decision->rewrite_unknown = member == NULL || command.size == 0;
    if (decision->rewrite_unknown)
        return CX_SUCCESS;
    for (uint32_t i = 0; i < input->count; i++) {
        cx_str name = cx_json_text(&input->members[i].name);
        cx_json_list_put(&object, name,
                         cx_str_is(name, member) ? cx_json_make_str(command)
                                                 : input->members[i].value);
    }
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    decision->has_rewritten = true;
    return cx_live_input_digest(&value, &decision->rewritten, NULL, err);
}

static cx_status push_open(reader *r, cx_live_audit_decision *decision, cx_err *err)
{
    uint64_t *top;
    bool is_new;
    CX_TRY(open_stack(r, decision->id, &decision->form.input, &top, &is_new, err));
    decision->below = is_new ? CX_LIVE_AUDIT_NONE : (uint32_t)*top;
    *top = (uint32_t)r->journal->decisions.count - 1;
    return CX_SUCCESS;
}

static cx_status read_decision(reader *r, cx_err *err)
{
    cx_live_audit_journal *journal = r->journal;
    const cx_json *call = CX_JSON_GET(r->payload, "call");
    const cx_json *input = cx_json_get_typed(call, CX_STR("input"), CX_JSON_OBJECT);
    const cx_json *sub = CX_JSON_GET(r->payload, "subagent");
    cx_live_audit_decision *d = cx_vec_push(&journal->decisions, journal->alloc);
    cx_digest own;
    if (d == NULL)
        return cx_fail_nomem(err);
    memset(d, 0, sizeof *d);
    d->seq = r->seq;
    d->at_ns = r->entry->entry.created_at_ns;
    d->until_ns = INT64_MAX;
    d->next = d->result = CX_LIVE_AUDIT_NONE;
    CX_TRY(keep(r, CX_JSON_GET_STR(call, "id"), &d->id, err));
    CX_TRY(keep(r, CX_JSON_GET_STR(call, "tool"), &d->tool, err));
    CX_TRY(keep(r, CX_JSON_GET_STR(r->payload, "event"), &d->event, err));
    CX_TRY(keep(r, CX_JSON_GET_STR(r->payload, "rule"), &d->rule, err));
    CX_TRY(keep(r, CX_JSON_GET_STR(sub, "id"), &d->subagent, err));
    CX_TRY(cx_live_audit_form_of(journal->agent, d->tool, CX_JSON_GET_STR(call, "mcp"), input,
                                 CX_JSON_GET_STR(r->payload, "cwd"), &r->scratch, &d->form, err));
    if (digest_at(call, "input_sha256", &own)) /* the input is not always kept */
        d->form.input = d->form.absolute = own;
    if (input == NULL)
        cx_live_audit_pair_of_digest(journal->agent, d->tool, &d->form);
    d->verdict = answer_at(r->payload, "verdict");
    d->would = answer_at(r->payload, "would");
    if (!cx_live_mode_parse(CX_JSON_GET_STR(r->payload, "mode"), &d->mode))
        d->mode = CX_LIVE_OBSERVE;
    d->is_permission =
        cx_str_is(d->event, "PermissionRequest") || cx_str_is(d->event, "permissionRequest");
    d->runs_on = is_true(input, "run_in_background") || cx_str_is(d->tool, "Monitor");
    if (is_true(r->payload, "fail_open") && journal->fail_open++ == 0)
        journal->fail_open_seq = r->seq;
    if (d->verdict == CX_LIVE_REWRITTEN)
        CX_TRY(digest_rewritten(r, d, input, err));
    CX_TRY(read_effects(r, d, err));
    return d->is_permission ? CX_SUCCESS : push_open(r, d, err);
}

#define STACK_LOOK_MAX 64 /* decisions of one call: an id that is used for more is not sorted out */

static cx_status join_result(reader *r, cx_live_audit_result *result, cx_err *err)
{
    cx_live_audit_journal *journal = r->journal;
    uint64_t *top;
    bool is_new;
    CX_TRY(open_stack(r, result->id, &result->input, &top, &is_new, err));
    uint32_t at = is_new ? CX_LIVE_AUDIT_NONE : (uint32_t)*top, before = CX_LIVE_AUDIT_NONE;
    if (is_new)
        *top = CX_LIVE_AUDIT_NONE;
    for (int i = 0; i < STACK_LOOK_MAX && at != CX_LIVE_AUDIT_NONE; i++) {
        cx_live_audit_decision *d = &journal->decisions.items[at];
        if (!cx_str_eq(d->tool, result->tool)) {
            before = at;
            at = d->below;
            continue;
        }
        d->result = (uint32_t)journal->results.count - 1;
        d->until_ns = d->runs_on ? INT64_MAX : result->at_ns;
        result->is_joined = true;
        if (before == CX_LIVE_AUDIT_NONE)
            *top = d->below;
        else
            journal->decisions.items[before].below = d->below;
        break;
    }
    return CX_SUCCESS;
}

static cx_status read_result(reader *r, cx_err *err)
{
    cx_live_audit_journal *journal = r->journal;
    const cx_json *call = CX_JSON_GET(r->payload, "call");
    cx_live_audit_result *result = cx_vec_push(&journal->results, journal->alloc);
    if (result == NULL)
        return cx_fail_nomem(err);
    memset(result, 0, sizeof *result);
    result->seq = r->seq;
    result->at_ns = r->entry->entry.created_at_ns;
    result->failed = cx_str_is(CX_JSON_GET_STR(r->payload, "outcome"), "failed");
    (void)digest_at(call, "input_sha256", &result->input);
    CX_TRY(keep(r, CX_JSON_GET_STR(call, "id"), &result->id, err));
    CX_TRY(keep(r, CX_JSON_GET_STR(call, "tool"), &result->tool, err));
    return join_result(r, result, err);
}

/* --- marks ------------------------------------------------------------------------------------ */

static cx_status add_mark(reader *r, cx_live_audit_mark_kind kind, cx_str text,
                          cx_live_audit_mark **out, cx_err *err)
{
    cx_live_audit_mark *mark = cx_vec_push(&r->journal->marks, r->journal->alloc);
    if (mark == NULL)
        return cx_fail_nomem(err);
    memset(mark, 0, sizeof *mark);
    mark->kind = kind;
    mark->seq = r->seq;
    mark->at_ns = mark->until_ns = r->entry->entry.created_at_ns;
    *out = mark;
    return keep(r, text, &mark->text, err);
}

static cx_status read_start(reader *r, cx_err *err)
{
    cx_live_audit_journal *journal = r->journal;
    cx_live_audit_mark *mark;
    const cx_json *policy = CX_JSON_GET(r->payload, "policy");
    cx_str transcript = CX_JSON_GET_STR(r->payload, "transcript");
    cx_str root = CX_JSON_GET_STR(policy, "root"), cwd = CX_JSON_GET_STR(r->payload, "cwd");
    CX_TRY(
        add_mark(r, CX_LIVE_AUDIT_MARK_START, CX_JSON_GET_STR(r->payload, "source"), &mark, err));
    mark->flag = CX_JSON_GET(policy, "problem") != NULL;
    mark->fail_open = is_true(r->payload, "fail_open");
    if (!cx_live_mode_parse(CX_JSON_GET_STR(r->payload, "mode"), &mark->mode))
        mark->mode = CX_LIVE_OBSERVE;
    if (mark->flag)
        CX_TRY(keep(r, CX_JSON_GET_STR(policy, "problem"), &mark->by, err));
    journal->ended = false;
    if (transcript.size != 0)
        CX_TRY(keep(r, transcript, &journal->transcript, err));
    if (root.size != 0)
        CX_TRY(keep(r, root, &journal->root, err));
    return cwd.size != 0 ? keep(r, cwd, &journal->cwd, err) : CX_SUCCESS;
}

static cx_status read_event(reader *r, cx_err *err)
{
    cx_live_audit_mark *mark;
    const cx_json *detail = CX_JSON_GET(r->payload, "detail");
    if (!cx_str_is(CX_JSON_GET_STR(r->payload, "event"), "ConfigChange"))
        return CX_SUCCESS;
    CX_TRY(add_mark(r, CX_LIVE_AUDIT_MARK_CONFIG, CX_JSON_GET_STR(detail, "path"), &mark, err));
    return keep(r, CX_JSON_GET_STR(detail, "source"), &mark->by, err);
}

static cx_status read_approval(reader *r, cx_err *err)
{
    cx_live_audit_mark *mark;
    CX_TRY(
        add_mark(r, CX_LIVE_AUDIT_MARK_APPROVAL, CX_JSON_GET_STR(r->payload, "tool"), &mark, err));
    mark->flag = is_true(r->payload, "allow");
    return keep(r, CX_JSON_GET_STR(r->payload, "by"), &mark->by, err);
}

static cx_status read_entry(reader *r, cx_err *err)
{
    cx_live_audit_mark *mark;
    cx_str kind = r->entry->entry.kind;
    switch (cx_kinds_of(kind)) {
    case CX_KIND_LIVE_START: return read_start(r, err);
    case CX_KIND_LIVE_DECISION: return read_decision(r, err);
    case CX_KIND_LIVE_RESULT: return read_result(r, err);
    case CX_KIND_LIVE_EVENT: return read_event(r, err);
    case CX_KIND_LIVE_APPROVAL: return read_approval(r, err);
    case CX_KIND_LIVE_END:
        r->journal->ended = true;
        return add_mark(r, CX_LIVE_AUDIT_MARK_END, CX_JSON_GET_STR(r->payload, "reason"), &mark,
                        err);
    default: return CX_SUCCESS;
    }
}

/* --- chains ----------------------------------------------------------------------------------- */

/* Puts an item in front of the chain of a key; going backwards, chains are ascending. */
#define CHAIN(map_, key_, items_, index_)                                         \
    do {                                                                          \
        uint64_t *first_;                                                         \
        bool is_new_;                                                             \
        CX_TRY(cx_map_put((map_), (key_), &first_, &is_new_, err));               \
        (items_)[index_].next = is_new_ ? CX_LIVE_AUDIT_NONE : (uint32_t)*first_; \
        *first_ = (index_);                                                       \
    } while (0)

static cx_status index_decisions(cx_live_audit_journal *journal, cx_err *err)
{
    cx_live_audit_decision *decisions = journal->decisions.items;
    for (size_t i = journal->decisions.count; i-- > 0;) {
        if (decisions[i].is_permission)
            continue;
        if (cx_live_audit_has_ids(journal->agent) && decisions[i].id.size != 0)
            CHAIN(&journal->by_id, decisions[i].id, decisions, (uint32_t)i);
        else
            CHAIN(&journal->by_pair, digest_key(&decisions[i].form.pair), decisions, (uint32_t)i);
    }
    return CX_SUCCESS;
}

cx_status cx_live_audit_journal_read(cx_live_audit_journal *journal, cx_home *home, cx_str actor,
                                     cx_err *err)
{
    cx_actor_info info;
    cx_str agent, session;
    reader r = {.journal = journal};
    CX_TRY(cx_home_actor(home, actor, &info, err));
    journal->actor = cx_arena_copy_str(&journal->arena, actor);
    if (journal->actor.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_live_actor_split(actor, &journal->arena, &agent, &session, err));
    journal->agent = cx_live_agent_parse(agent);
    if (journal->agent == CX_LIVE_AGENT_COUNT)
        return cx_fail(err, CX_E_FORMAT, "the journal %.*s is of an agent that is not known",
                       (int)(actor.size > 200 ? 200 : actor.size), actor.data);
    journal->entries = info.entry_count;
    cx_arena_init(&r.scratch, journal->alloc, 0);
    cx_status status = CX_SUCCESS;
    for (r.seq = 0; r.seq < info.entry_count && !cx_failed(status); r.seq++) {
        cx_entry_view entry;
        cx_json payload;
        cx_arena_mark mark = cx_arena_mark_now(&r.scratch);
        status = cx_home_entry(home, actor, r.seq, &r.scratch, &entry, err);
        if (cx_failed(status))
            break;
        r.entry = &entry;
        r.payload = &payload;
        if (journal->first_ns == 0)
            journal->first_ns = entry.entry.created_at_ns;
        journal->last_ns = entry.entry.created_at_ns;
        if (journal->decisions.count == CX_LIVE_AUDIT_CALLS_MAX)
            status = cx_fail(err, CX_E_LIMIT, "the session has more than %zu decisions",
                             CX_LIVE_AUDIT_CALLS_MAX);
        else if (entry.payload_erased) {
            if (journal->erased++ == 0)
                journal->erased_seq = r.seq;
        } else if (cx_failed(cx_run_json_read(cx_bytes_str(entry.payload), 0, &r.scratch, &payload,
                                              NULL)))
            payload = cx_json_make_null();
        if (!cx_failed(status) && !entry.payload_erased)
            status = read_entry(&r, err);
        cx_arena_reset(&r.scratch, mark);
    }
    cx_arena_done(&r.scratch);
    CX_TRY(status);
    CX_TRY(index_decisions(journal, err));
    return cx_live_audit_index_times(journal, err);
}
