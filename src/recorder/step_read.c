/*
 * step_read.c - a step as senders write it (docs/formats/steps.md §1).
 *
 * A pure function of bytes from outside.  What is wrong is said with the member, what was found and
 * what was expected; a wrong step costs no other one.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"
#include "recorder/step.h"

#define SIGNATURE "signature"

typedef struct step_reader {
    const cx_json *value;
    cx_arena *arena;
    cx_step *out;
    cx_buf text;
} step_reader;

static const char *const member_names[] = {"agent",       "event",    "fork",    "fork_type",
                                           "head",        "key",      "parents", SIGNATURE,
                                           "state_delta", "timestamp"};

/* --- saying what is wrong --------------------------------------------------------------------- */

static cx_status bad_step(cx_err *err, const char *format, ...) CX_PRINTF(2, 3);
static cx_status bad_step(cx_err *err, const char *format, ...)
{
    char text[CX_ERR_MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cx_fail_at(err, CX_E_FORMAT, "BadStep", CX_NO_OFFSET, "%s", text);
}

static cx_status bad_member(const char *name, const cx_json *value, const char *expected,
                            cx_err *err)
{
    return bad_step(err, "%s: found %s, expected %s", name, cx_json_type_name(value), expected);
}

/* --- text members ----------------------------------------------------------------------------- */

/* Text without controls and lone surrogates; *out has NULL data when the member is absent or null.
 */
static cx_status read_text(step_reader *r, const char *name, size_t max, cx_str *out, cx_err *err)
{
    const cx_json *value = cx_json_get(r->value, cx_str_z(name));
    *out = (cx_str){NULL, 0};
    if (value == NULL || value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (value->type != CX_JSON_STRING)
        return bad_member(name, value, "a string", err);
    cx_str text = cx_json_text(value);
    if (text.size == 0 || text.size > max)
        return bad_step(err, "%s: found %zu bytes, expected 1 to %zu", name, text.size, max);
    if ((value->flags & CX_JSON_SURROGATE) != 0)
        return bad_step(err, "%s: found half of a surrogate pair, expected text", name);
    for (size_t i = 0; i < text.size; i++)
        if ((uint8_t)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return bad_step(err, "%s: found a control character at byte %zu", name, i);
    *out = text;
    return CX_SUCCESS;
}

static cx_status read_flag(step_reader *r, const char *name, bool *out, cx_err *err)
{
    const cx_json *value = cx_json_get(r->value, cx_str_z(name));
    *out = value != NULL && value->type == CX_JSON_TRUE;
    if (value == NULL || value->type == CX_JSON_TRUE || value->type == CX_JSON_FALSE)
        return CX_SUCCESS;
    return bad_member(name, value, "true or false", err);
}

static cx_status read_head(step_reader *r, cx_err *err)
{
    const cx_json *value = CX_JSON_GET(r->value, "head");
    r->out->has_head = value != NULL;
    CX_TRY(read_text(r, "head", CX_STEP_HASH_SIZE, &r->out->head, err));
    cx_digest hash;
    if (r->out->head.data != NULL && !cx_digest_parse(r->out->head, &hash))
        return bad_step(err,
                        "head: found '%.*s', expected the 64 digits of a node's hash, or null "
                        "for an agent without steps",
                        (int)r->out->head.size, r->out->head.data);
    return CX_SUCCESS;
}

static cx_status read_fork_type(step_reader *r, cx_err *err)
{
    CX_TRY(read_text(r, "fork_type", 32, &r->out->fork_type, err));
    cx_str type = r->out->fork_type;
    if (type.data == NULL || cx_str_is(type, "natural") || cx_str_is(type, "observation") ||
        cx_str_is(type, "injection"))
        return CX_SUCCESS;
    return bad_step(err, "fork_type: found '%.*s', expected natural, observation or injection",
                    (int)type.size, type.data);
}

/* --- event and delta -------------------------------------------------------------------------- */

static cx_status read_object(step_reader *r, const char *name, const cx_json **out, cx_err *err)
{
    const cx_json *value = cx_json_get(r->value, cx_str_z(name));
    *out = value;
    if (value == NULL)
        return CX_SUCCESS;
    if (value->type != CX_JSON_OBJECT)
        return bad_member(name, value, "an object", err);
    if (!cx_json_has_canonical(value))
        return bad_step(err, "%s: a number in it is greater than a double can be", name);
    return CX_SUCCESS;
}

static cx_status read_event(step_reader *r, cx_err *err)
{
    CX_TRY(read_object(r, "event", &r->out->event, err));
    const cx_json *event = r->out->event;
    for (uint32_t i = 0; event != NULL && i < event->count; i++) {
        cx_str name = cx_json_text(&event->members[i].name);
        if (cx_str_starts(name, CX_STR("__")))
            return bad_step(err, "event: the name '%.*s' begins with __, which is for Cortex's own",
                            (int)(name.size > 40 ? 40 : name.size), name.data);
    }
    return CX_SUCCESS;
}

static cx_status read_delta(step_reader *r, cx_err *err)
{
    CX_TRY(read_object(r, "state_delta", &r->out->delta, err));
    const cx_json *delta = r->out->delta;
    for (uint32_t i = 0; delta != NULL && i < delta->count; i++) {
        cx_str name = cx_json_text(&delta->members[i].name);
        const cx_json *value = &delta->members[i].value;
        bool is_map = cx_str_is(name, "memory") || cx_str_is(name, "beliefs");
        bool is_list = cx_str_is(name, "goals") || cx_str_is(name, "context_stack");
        if (!is_map && !is_list)
            return bad_step(err,
                            "state_delta: found member '%.*s', expected memory, beliefs, goals or "
                            "context_stack",
                            (int)(name.size > 40 ? 40 : name.size), name.data);
        if (value->type != (is_map ? CX_JSON_OBJECT : CX_JSON_ARRAY))
            return bad_step(err, "state_delta.%.*s: found %s, expected %s", (int)name.size,
                            name.data, cx_json_type_name(value), is_map ? "an object" : "an array");
    }
    return CX_SUCCESS;
}

/* --- parents ---------------------------------------------------------------------------------- */

static cx_status read_parent(step_reader *r, const cx_json *value, cx_step_parent *out, cx_err *err)
{
    *out = (cx_step_parent){.node = {NULL, 0}};
    if (value->type == CX_JSON_STRING) {
        out->node = cx_json_text(value);
        if (out->node.size == 0 || out->node.size > CX_STEP_AGENT_BYTES_MAX + 32)
            return bad_step(err, "parents: found a name of %zu bytes, expected a node",
                            out->node.size);
        return CX_SUCCESS;
    }
    if (value->type != CX_JSON_OBJECT)
        return bad_member("parents", value, "a node's hash, @AGENT, or {\"agent\",\"key\"}", err);
    step_reader inner = {.value = value, .arena = r->arena, .out = r->out};
    for (uint32_t i = 0; i < value->count; i++) {
        cx_str name = cx_json_text(&value->members[i].name);
        if (!cx_str_is(name, "agent") && !cx_str_is(name, "key"))
            return bad_step(err, "parents: found member '%.*s', expected agent or key",
                            (int)(name.size > 40 ? 40 : name.size), name.data);
    }
    CX_TRY(read_text(&inner, "agent", CX_STEP_AGENT_BYTES_MAX, &out->agent, err));
    CX_TRY(read_text(&inner, "key", CX_STEP_KEY_BYTES_MAX, &out->key, err));
    return out->key.data != NULL
               ? CX_SUCCESS
               : bad_step(err,
                          "parents: found an object without key, expected {\"agent\",\"key\"}");
}

static cx_status read_parents(step_reader *r, cx_err *err)
{
    const cx_json *list = CX_JSON_GET(r->value, "parents");
    if (list == NULL || list->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (list->type != CX_JSON_ARRAY)
        return bad_member("parents", list, "an array", err);
    if (list->count > CX_STEP_PARENTS_MAX)
        return bad_step(err, "parents: found %u, expected at most %d", (unsigned)list->count,
                        CX_STEP_PARENTS_MAX);
    cx_step_parent *parents = CX_ARENA_ARRAY(r->arena, cx_step_parent, list->count + 1);
    if (parents == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++)
        CX_TRY(read_parent(r, &list->items[i], &parents[i], err));
    r->out->parents = parents;
    r->out->parent_count = list->count;
    return CX_SUCCESS;
}

/* --- signature -------------------------------------------------------------------------------- */

static cx_status read_signature(step_reader *r, cx_err *err)
{
    const cx_json *value = CX_JSON_GET(r->value, SIGNATURE);
    cx_str text;
    if (value == NULL || value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (value->type != CX_JSON_OBJECT)
        return bad_member(SIGNATURE, value, "{\"key_id\",\"signature\"}", err);
    step_reader inner = {.value = value, .arena = r->arena, .out = r->out};
    CX_TRY(read_text(&inner, "key_id", CX_TRUST_KEY_ID_BYTES_MAX, &r->out->key_id, err));
    CX_TRY(read_text(&inner, SIGNATURE, 200, &text, err));
    if (r->out->key_id.data == NULL || text.data == NULL || value->count != 2)
        return bad_step(err, "signature: expected exactly the members key_id and signature");
    cx_buf_clear(&r->text);
    if (!cx_base64_decode_either(text, &r->text) || r->text.size != sizeof r->out->signature.bytes)
        return bad_step(err, "signature: expected 64 bytes as base64");
    memcpy(r->out->signature.bytes, r->text.data, sizeof r->out->signature.bytes);
    return CX_SUCCESS;
}

/* --- what is signed, what is the same --------------------------------------------------------- */

/* Canonical JSON of the step without the members named, event and state_delta always there. */
static cx_status write_members(step_reader *r, bool with_key, bool with_content, cx_json *out,
                               cx_err *err)
{
    cx_json_list list = cx_json_list_begin(r->arena);
    cx_json_list none = cx_json_list_begin(r->arena);
    cx_json empty;
    CX_TRY(cx_json_list_end_object(&none, &empty, err));
    for (uint32_t i = 0; i < r->value->count; i++) {
        cx_str name = cx_json_text(&r->value->members[i].name);
        bool is_content = cx_str_is(name, "event") || cx_str_is(name, "state_delta");
        if (cx_str_is(name, SIGNATURE) || (cx_str_is(name, "key") && !with_key) || is_content)
            continue;
        cx_json_list_put(&list, name, r->value->members[i].value);
    }
    if (with_content) {
        cx_json_list_put(&list, CX_STR("event"), r->out->event == NULL ? empty : *r->out->event);
        cx_json_list_put(&list, CX_STR("state_delta"),
                         r->out->delta == NULL ? empty : *r->out->delta);
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_status write_text(step_reader *r, bool with_key, cx_err *err)
{
    cx_json value;
    CX_TRY(write_members(r, with_key, true, &value, err));
    cx_buf_clear(&r->text);
    CX_TRY(cx_json_write(&r->text, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(&r->text, err);
}

static cx_status finish_step(step_reader *r, cx_err *err)
{
    CX_TRY(write_text(r, false, err));
    r->out->content = cx_digest_of(cx_buf_bytes(&r->text));
    if (r->text.size > CX_STEP_BYTES_MAX)
        return bad_step(err,
                        "the step is longer than %u bytes: keep large contents elsewhere and "
                        "record their digest",
                        (unsigned)CX_STEP_BYTES_MAX);
    CX_TRY(write_text(r, true, err));
    r->out->signed_text = cx_arena_copy_str(r->arena, cx_buf_str(&r->text));
    if (r->out->signed_text.data == NULL)
        return cx_fail_nomem(err);
    return write_members(r, true, false, &r->out->signed_members, err);
}

/* --- the whole -------------------------------------------------------------------------------- */

static cx_status check_names(const cx_json *value, cx_err *err)
{
    for (uint32_t i = 0; i < value->count; i++) {
        cx_str name = cx_json_text(&value->members[i].name);
        size_t known = 0;
        while (known < CX_COUNT_OF(member_names) && !cx_str_is(name, member_names[known]))
            known++;
        if (known == CX_COUNT_OF(member_names))
            return bad_step(err,
                            "found member '%.*s', expected agent, event, state_delta, parents, "
                            "head, fork, fork_type, timestamp, key or signature",
                            (int)(name.size > 40 ? 40 : name.size), name.data);
    }
    return CX_SUCCESS;
}

static cx_status read_members(step_reader *r, cx_err *err)
{
    cx_step *out = r->out;
    if (r->value->type != CX_JSON_OBJECT)
        return bad_member("step", r->value, "an object", err);
    CX_TRY(read_text(r, "agent", CX_STEP_AGENT_BYTES_MAX, &out->agent, err));
    if (out->agent.data == NULL)
        return bad_step(err, "agent: not there, expected the name of the agent that took the step");
    CX_TRY(check_names(r->value, err));
    if (!cx_json_has_canonical(r->value))
        return bad_step(err, "a number in it is greater than a double can be");
    CX_TRY(read_event(r, err));
    CX_TRY(read_delta(r, err));
    CX_TRY(read_parents(r, err));
    CX_TRY(read_head(r, err));
    CX_TRY(read_flag(r, "fork", &out->fork, err));
    CX_TRY(read_fork_type(r, err));
    CX_TRY(read_text(r, "key", CX_STEP_KEY_BYTES_MAX, &out->key, err));
    out->timestamp = CX_JSON_GET(r->value, "timestamp");
    if (out->timestamp != NULL && out->timestamp->type == CX_JSON_NULL)
        out->timestamp = NULL;
    if (out->timestamp != NULL && !cx_json_is_number(out->timestamp))
        return bad_member("timestamp", out->timestamp, "seconds since 1970, a number", err);
    if (out->fork && out->parent_count == 0)
        return bad_step(err, "fork: found true without parents, expected the node of the agent "
                             "that it goes on from");
    CX_TRY(read_signature(r, err));
    return finish_step(r, err);
}

cx_status cx_step_read(const cx_json *value, cx_arena *arena, cx_step *out, cx_err *err)
{
    step_reader r = {.value = value, .arena = arena, .out = out};
    cx_err problem;
    *out = (cx_step){.line = 0};
    cx_buf_init(&r.text, arena->alloc);
    cx_status status = read_members(&r, &problem);
    cx_buf_done(&r.text);
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    out->problem = problem;
    return CX_SUCCESS;
}

/* --- lines ------------------------------------------------------------------------------------ */

typedef struct line_reader {
    cx_json_parser parser;
    cx_arena *arena;
    CX_VEC(cx_step) steps;
} line_reader;

static cx_status read_line(line_reader *r, cx_str line, uint64_t number, cx_err *err)
{
    cx_json *value = CX_ARENA_NEW(r->arena, cx_json);
    cx_step *step = cx_vec_push(&r->steps, r->arena->alloc);
    cx_err problem;
    if (value == NULL || step == NULL)
        return cx_fail_nomem(err);
    *step = (cx_step){.line = number};
    cx_status status = cx_json_parse(&r->parser, line, r->arena, value, &problem);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status)) {
        step->problem = problem;
        step->problem.line = number;
        return CX_SUCCESS;
    }
    CX_TRY(cx_step_read(value, r->arena, step, err));
    step->line = number;
    return CX_SUCCESS;
}

static bool is_blank(cx_str line)
{
    for (size_t i = 0; i < line.size; i++)
        if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r')
            return false;
    return true;
}

static cx_status read_lines(line_reader *r, cx_str text, cx_err *err)
{
    uint64_t number = 0;
    for (size_t at = 0; at < text.size;) {
        const char *end = memchr(text.data + at, '\n', text.size - at);
        size_t size = end == NULL ? text.size - at : (size_t)(end - text.data) - at;
        cx_str line = cx_str_from(text.data + at, size);
        at += size + 1;
        number++;
        if (is_blank(line))
            continue;
        if (r->steps.count == CX_STEPS_MAX)
            return cx_fail_at(err, CX_E_LIMIT, "TooManySteps", CX_NO_OFFSET,
                              "found more than %d steps: send them in several parts", CX_STEPS_MAX);
        CX_TRY(read_line(r, line, number, err));
    }
    return CX_SUCCESS;
}

cx_status cx_steps_read_lines(cx_str text, cx_arena *arena, cx_step **out, size_t *out_count,
                              cx_err *err)
{
    cx_json_limits limits = CX_JSON_LIMITS_INIT;
    line_reader r = {.arena = arena};
    limits.depth = CX_STEP_DEPTH_MAX;
    cx_json_parser_init(&r.parser, arena->alloc, &limits);
    cx_status status = read_lines(&r, text, err);
    cx_step *copy = NULL;
    if (!cx_failed(status)) {
        copy = CX_ARENA_ARRAY(arena, cx_step, r.steps.count + 1);
        if (copy == NULL)
            status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        if (r.steps.count != 0)
            memcpy(copy, r.steps.items, r.steps.count * sizeof *copy);
        *out = copy;
        *out_count = r.steps.count;
    }
    cx_vec_done(&r.steps, arena->alloc);
    cx_json_parser_done(&r.parser);
    return status;
}
