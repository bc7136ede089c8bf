/*
 * transcript.c - what the transcripts of a session tell: calls with their inputs, whether each ran,
 * and from when to when.
 *
 * A resumed or forked session repeats its past: the same id, input and time is the same call.  The
 * same id with another input or time is another call.
 */
#include <string.h>

#include "import/api.h"
#include "live_audit/parts.h"

/* An importer that this module asks, and the agent whose transcripts it reads. */
static const struct {
    const char *format;
    cx_live_agent agent;
} formats[] = {
    {"claude-code", CX_LIVE_CLAUDE},  {"codex", CX_LIVE_CODEX},
    {"gemini-cli", CX_LIVE_GEMINI},   {"cursor", CX_LIVE_CURSOR},
    {"copilot-cli", CX_LIVE_COPILOT},
};

cx_live_agent cx_live_audit_agent_of_format(const char *format)
{
    for (size_t i = 0; format != NULL && i < CX_COUNT_OF(formats); i++)
        if (strcmp(formats[i].format, format) == 0)
            return formats[i].agent;
    return CX_LIVE_AGENT_COUNT;
}

void cx_live_audit_told_init(cx_live_audit_told *told, cx_live_agent agent, cx_str session,
                             const cx_alloc *alloc, uint64_t seed)
{
    memset(told, 0, sizeof *told);
    told->agent = agent;
    told->session = session;
    told->alloc = alloc;
    cx_arena_init(&told->arena, alloc, 0);
    cx_map_init(&told->by_id, alloc, seed);
}

void cx_live_audit_told_done(cx_live_audit_told *told)
{
    cx_vec_done(&told->calls, told->alloc);
    cx_vec_done(&told->files, told->alloc);
    cx_map_done(&told->by_id);
    cx_arena_done(&told->arena);
}

/* --- records ---------------------------------------------------------------------------------- */

typedef struct reader {
    cx_live_audit_told *told;
    const cx_live_audit_file *files;
    cx_arena scratch;
} reader;

static cx_status keep(reader *r, cx_str text, cx_str *out, cx_err *err)
{
    *out = (cx_str){NULL, 0};
    if (text.size == 0)
        return CX_SUCCESS;
    *out = cx_arena_copy_str(&r->told->arena, text);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* The session that a record says it is of. */
static cx_str session_of(cx_live_agent agent, const cx_json *raw)
{
    const cx_json *inner;
    cx_str type = CX_JSON_GET_STR(raw, "type");
    switch (agent) {
    case CX_LIVE_CLAUDE:
    case CX_LIVE_GEMINI: return CX_JSON_GET_STR(raw, "sessionId");
    case CX_LIVE_CURSOR: return CX_JSON_GET_STR(raw, "session_id");
    case CX_LIVE_CODEX:
        inner = CX_JSON_GET(raw, "payload");
        return cx_str_is(type, "session_meta") ? CX_JSON_GET_STR(inner, "id") : (cx_str){NULL, 0};
    case CX_LIVE_COPILOT:
        inner = CX_JSON_GET(raw, "data");
        return cx_str_is(type, "session.start") ? CX_JSON_GET_STR(inner, "sessionId")
                                                : (cx_str){NULL, 0};
    case CX_LIVE_MCP:
    case CX_LIVE_AGENT_COUNT: break;
    }
    return (cx_str){NULL, 0};
}

/* A thread of Codex that another one started names it in its first record. */
static cx_status read_parent(reader *r, const cx_json *raw, cx_err *err)
{
    static const char *const places[] = {"/payload/parent_thread_id",
                                         "/payload/source/subagent/thread_spawn/parent_thread_id",
                                         "/payload/source/subagent/parent_thread_id"};
    for (size_t i = 0; i < CX_COUNT_OF(places) && r->told->parent.size == 0; i++) {
        const cx_json *parent = cx_json_pointer(raw, cx_str_z(places[i]));
        if (parent != NULL && parent->type == CX_JSON_STRING)
            CX_TRY(keep(r, cx_json_text(parent), &r->told->parent, err));
    }
    return CX_SUCCESS;
}

static void note_time(cx_live_audit_told *told, const cx_import_step *step)
{
    if (!step->has_time || step->t_ns <= 0)
        return;
    if (told->first_ns == 0 || step->t_ns < told->first_ns)
        told->first_ns = step->t_ns;
    if (step->t_ns > told->last_ns)
        told->last_ns = step->t_ns;
}

static cx_str subagent_of(const reader *r, const cx_import_step *step)
{
    cx_str id = CX_JSON_GET_STR(step->raw, "agentId");
    const cx_json *side = CX_JSON_GET(step->raw, "isSidechain");
    if (id.size == 0 && side != NULL && side->type == CX_JSON_TRUE)
        return CX_STR("sidechain");
    if (id.size == 0 && r->told->parent.size != 0)
        return r->told->session;
    return id;
}

/* --- calls ------------------------------------------------------------------------------------ */

static bool is_same_call(const cx_live_audit_call *a, const cx_live_audit_call *b)
{
    return cx_digest_eq(&a->form.input, &b->form.input) && cx_str_eq(a->tool, b->tool) &&
           a->has_time == b->has_time && a->t_ns == b->t_ns;
}

/* Puts a call into the chain of its id; *out_is_copy: the chain had it already. */
static cx_status link_call(reader *r, uint32_t index, cx_err *err)
{
    cx_live_audit_told *told = r->told;
    cx_live_audit_call *call = &told->calls.items[index];
    uint64_t *first;
    bool is_new;
    if (call->id.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_map_put(&told->by_id, call->id, &first, &is_new, err));
    if (is_new) {
        *first = index;
        call->told = 1;
        return CX_SUCCESS;
    }
    /* All calls with one id are one chain: the walk ends at the first equal call, and
     * at the latest after `told` different ones. */
    cx_live_audit_call *at = &told->calls.items[*first], *head = at;
    while (!is_same_call(at, call) && at->next != CX_LIVE_AUDIT_NONE)
        at = &told->calls.items[at->next];
    if (is_same_call(at, call)) {
        call->is_copy = true;
        return CX_SUCCESS;
    }
    if (head->told == 1000)
        return cx_fail(err, CX_E_LIMIT,
                       "the transcript has more than 1,000 different calls with the id \"%.*s\"",
                       (int)(call->id.size > 80 ? 80 : call->id.size), call->id.data);
    head->told++;
    at->next = index;
    return CX_SUCCESS;
}

/* Codex names the server of a tool in a member of its own. */
static cx_status tool_name(reader *r, const cx_import_step *step, cx_str *out, cx_err *err)
{
    const cx_json *payload = CX_JSON_GET(step->raw, "payload");
    cx_str space = CX_JSON_GET_STR(payload, "namespace");
    *out = step->tool;
    if (r->told->agent != CX_LIVE_CODEX || !cx_str_starts(space, CX_STR("mcp__")) ||
        cx_str_starts(step->tool, CX_STR("mcp__")) || space.size + step->tool.size > 1024)
        return CX_SUCCESS;
    bool joined = cx_str_ends(space, CX_STR("__"));
    *out = cx_arena_printf(&r->scratch, "%.*s%s%.*s", (int)space.size, space.data,
                           joined ? "" : "__", (int)step->tool.size, step->tool.data);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status add_call(reader *r, const cx_import_step *step, cx_err *err)
{
    cx_live_audit_told *told = r->told;
    cx_str tool, session = session_of(told->agent, step->raw);
    if (told->calls.count == CX_LIVE_AUDIT_CALLS_MAX)
        return cx_fail(err, CX_E_LIMIT, "the transcript has more than %zu calls",
                       CX_LIVE_AUDIT_CALLS_MAX);
    cx_live_audit_call *call = cx_vec_push(&told->calls, told->alloc);
    if (call == NULL)
        return cx_fail_nomem(err);
    memset(call, 0, sizeof *call);
    call->next = call->decision = CX_LIVE_AUDIT_NONE;
    call->file = step->file;
    call->line = step->line;
    call->has_time = step->has_time;
    call->t_ns = step->t_ns;
    CX_TRY(tool_name(r, step, &tool, err));
    CX_TRY(keep(r, step->call_id, &call->id, err));
    CX_TRY(keep(r, tool, &call->tool, err));
    CX_TRY(keep(r, subagent_of(r, step), &call->subagent, err));
    if (told->agent == CX_LIVE_CLAUDE && session.size != 0 && !cx_str_eq(session, told->session))
        CX_TRY(keep(r, session, &call->session, err));
    CX_TRY(cx_live_audit_form_of(told->agent, tool, (cx_str){NULL, 0}, step->args, step->folder,
                                 &r->scratch, &call->form, err));
    told->files.items[step->file].calls++;
    return link_call(r, (uint32_t)told->calls.count - 1, err);
}

/* The result of the newest call with that id that has none; without ids, of the newest call. */
static void add_result(reader *r, const cx_import_step *step)
{
    cx_live_audit_told *told = r->told;
    const uint64_t *first =
        step->call_id.size == 0 ? NULL : cx_map_find(&told->by_id, step->call_id);
    uint32_t index = first != NULL ? (uint32_t)*first : CX_LIVE_AUDIT_NONE, open = index;
    if (index == CX_LIVE_AUDIT_NONE && step->call_id.size == 0 && step->opens)
        open = (uint32_t)told->calls.count - 1;
    for (; index != CX_LIVE_AUDIT_NONE; index = told->calls.items[index].next)
        if (told->calls.items[index].outcome == CX_LIVE_AUDIT_OPEN)
            open = index;
    if (open == CX_LIVE_AUDIT_NONE)
        return;
    cx_live_audit_call *call = &told->calls.items[open];
    cx_live_audit_outcome outcome =
        cx_live_audit_outcome_of(told->agent, step->result, step->ok, step->raw);
    /* A second result of one call: that it ran outweighs that it did not. */
    if (call->outcome != CX_LIVE_AUDIT_OPEN && outcome != CX_LIVE_AUDIT_RAN)
        return;
    call->outcome = outcome;
    call->result_line = step->line;
    call->result_ns = step->has_time ? step->t_ns : 0;
}

static cx_status read_step(void *arg, const cx_import_step *step, cx_err *err)
{
    reader *r = arg;
    cx_live_audit_told *told = r->told;
    cx_arena_mark mark = cx_arena_mark_now(&r->scratch);
    cx_status status = CX_SUCCESS;
    if (step->bad) {
        if (told->bad_lines++ == 0) {
            told->bad_file = step->file;
            told->bad_line = step->line;
        }
        told->files.items[step->file].bad_lines++;
        return CX_SUCCESS;
    }
    note_time(told, step);
    if (told->session.size == 0)
        status = keep(r, session_of(told->agent, step->raw), &told->session, err);
    if (!cx_failed(status) && told->agent == CX_LIVE_CODEX && told->calls.count == 0)
        status = read_parent(r, step->raw, err);
    if (!cx_failed(status) && step->opens)
        status = add_call(r, step, err);
    if (!cx_failed(status) && step->closes)
        add_result(r, step);
    cx_arena_reset(&r->scratch, mark);
    return status;
}

cx_status cx_live_audit_told_read(cx_live_audit_told *told, const char *format,
                                  const cx_bytes *bytes, const cx_live_audit_file *files,
                                  size_t count, cx_err *err)
{
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    reader r = {.told = told, .files = files};
    for (size_t i = 0; i < count; i++) {
        cx_live_audit_file *file = cx_vec_push(&told->files, told->alloc);
        if (file == NULL)
            return cx_fail_nomem(err);
        *file = files[i];
        file->calls = file->bad_lines = 0;
    }
    cx_arena_init(&r.scratch, told->alloc, 0);
    options.alloc = told->alloc;
    options.seed = told->by_id.seed;
    options.on_step = read_step;
    options.on_step_arg = &r;
    cx_status status = cx_import_run_bytes(format, bytes, count, &options, NULL, NULL, NULL, err);
    cx_arena_done(&r.scratch);
    return status;
}
