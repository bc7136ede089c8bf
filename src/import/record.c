/*
 * record.c - pass one: a described record becomes an entry of the skeleton.
 *
 * Invariants:
 *   I1  entries are in order of (file, position in file), their refs likewise;
 *   I2  two agents that differ in the source have different final names (§1.10);
 *   I3  an entry stores no text of its record except derived text.
 */
#include "import/core.h"

#include "crypto/api.h"

static const char *const kind_names[] = {"run",   "input",   "message",     "reason",
                                         "act",   "observe", "tool_result", "error",
                                         "state", "config",  "bad"};
_Static_assert(CX_COUNT_OF(kind_names) == CX_KIND_BAD + 1, "a name a kind");

/* Calls live in a space of their own that no format can name. */
#define CALL_SPACE '#'

/* --- describing ---------------------------------------------------------------------------- */

static void clear_record(cx_import_record *r)
{
    cx_import_record empty = {
        .index = UINT64_MAX, .part = UINT32_MAX, .alloc = r->alloc, .arena = r->arena};
    r->refs.count = r->defines.count = r->calls.count = r->made.count = 0;
    r->fields.count = r->beliefs.count = r->memory.count = 0;
#define KEEP_VECTOR(name) memcpy(&empty.name, &r->name, sizeof empty.name)
    KEEP_VECTOR(refs);
    KEEP_VECTOR(defines);
    KEEP_VECTOR(calls);
    KEEP_VECTOR(made);
    KEEP_VECTOR(fields);
    KEEP_VECTOR(beliefs);
    KEEP_VECTOR(memory);
#undef KEEP_VECTOR
    *r = empty;
}

cx_import_record *cx_import_begin(cx_import_sink *sink)
{
    cx_import_record *r = &sink->core->record;
    r->alloc = sink->core->alloc;
    r->arena = sink->arena;
    clear_record(r);
    return r;
}

static void write_key(cx_import_record *r, bool is_ref, cx_import_key key)
{
    cx_import_key *item =
        is_ref ? cx_vec_push(&r->refs, r->alloc) : cx_vec_push(&r->defines, r->alloc);
    if (item == NULL)
        r->failed = true;
    else
        *item = key;
}

void cx_import_refer(cx_import_record *record, char space, cx_str id, cx_import_ref_kind kind)
{
    if (id.size != 0)
        write_key(record, true, (cx_import_key){space, id, (uint8_t)kind, CX_RECORD_NONE});
}

void cx_import_refer_record(cx_import_record *record, uint32_t parent, cx_import_ref_kind kind)
{
    CX_ASSERT(parent != CX_RECORD_NONE);
    write_key(record, true, (cx_import_key){0, {NULL, 0}, (uint8_t)kind, parent});
}

void cx_import_define(cx_import_record *record, char space, cx_str id, cx_import_define_rule rule)
{
    if (id.size != 0)
        write_key(record, false, (cx_import_key){space, id, (uint8_t)rule, CX_RECORD_NONE});
}

#define PUT_ITEM(record, list, item_name, item_value)                                \
    do {                                                                             \
        cx_import_delta_item *item_ = cx_vec_push(&(record)->list, (record)->alloc); \
        if (item_ == NULL)                                                           \
            (record)->failed = true;                                                 \
        else                                                                         \
            *item_ = (cx_import_delta_item){(item_name), (item_value)};              \
    } while (0)

void cx_import_field(cx_import_record *record, cx_str name, cx_json value)
{
    if (value.type != CX_JSON_NULL)
        PUT_ITEM(record, fields, name, value);
}

void cx_import_field_str(cx_import_record *record, cx_str name, cx_str text)
{
    if (text.size != 0)
        cx_import_field(record, name, cx_json_make_str(text));
}

void cx_import_belief(cx_import_record *record, cx_str name, cx_json value)
{
    PUT_ITEM(record, beliefs, name, value);
}

void cx_import_memory(cx_import_record *record, cx_str name, cx_json value)
{
    PUT_ITEM(record, memory, name, value);
}

/* The scope's length first, so that different pairs of scope and id have different keys. */
static cx_str call_key(cx_arena *arena, cx_str scope, cx_str call_id)
{
    const size_t before = sizeof scope.size + scope.size;
    char *key = cx_arena_push(arena, before + call_id.size, 1);
    if (key == NULL)
        return (cx_str){NULL, 0};
    memcpy(key, &scope.size, sizeof scope.size);
    if (scope.size != 0)
        memcpy(key + sizeof scope.size, scope.data, scope.size);
    memcpy(key + before, call_id.data, call_id.size);
    return cx_str_from(key, before + call_id.size);
}

static void write_call(cx_import_record *r, cx_str scope, cx_import_call_item item)
{
    if (item.opens) {
        cx_import_call_item *made = cx_vec_push(&r->made, r->alloc);
        r->failed = r->failed || made == NULL;
        if (made != NULL)
            *made = item;
    }
    if (item.call_id.size == 0)
        return;
    item.key = call_key(r->arena, scope, item.call_id);
    cx_import_call_item *room = cx_vec_push(&r->calls, r->alloc);
    if (item.key.data == NULL || room == NULL) {
        r->failed = true;
        return;
    }
    *room = item;
    if (item.opens)
        cx_import_define(r, CALL_SPACE, item.key, CX_DEFINE_QUIET);
    else
        cx_import_refer(r, CALL_SPACE, item.key, CX_REF_RESULT);
}

void cx_import_call(cx_import_record *record, cx_str scope, cx_str call_id, cx_str tool,
                    const cx_json *args)
{
    write_call(
        record, scope,
        (cx_import_call_item){.call_id = call_id, .tool = tool, .args = args, .opens = true});
}

void cx_import_result(cx_import_record *record, cx_str scope, cx_str call_id, bool ok,
                      const cx_json *result)
{
    write_call(
        record, scope,
        (cx_import_call_item){.call_id = call_id, .result = result, .closes = true, .ok = ok});
}

void cx_import_call_done(cx_import_record *record, cx_str scope, cx_str call_id, cx_str tool,
                         const cx_json *args, bool ok, const cx_json *result)
{
    write_call(record, scope,
               (cx_import_call_item){.call_id = call_id,
                                     .tool = tool,
                                     .args = args,
                                     .result = result,
                                     .opens = true,
                                     .closes = true,
                                     .ok = ok});
}

/* --- agents (§1.10) ------------------------------------------------------------------------ */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static cx_str trim_spaces(cx_str text)
{
    while (text.size != 0 && is_space(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size != 0 && is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* A lone surrogate is spelled out: an agent's name must be encodable (lattice.md §2). */
static void add_encodable(cx_buf *out, cx_str text)
{
    for (size_t i = 0; i < text.size;) {
        const uint8_t *at = (const uint8_t *)text.data + i;
        if (text.size - i >= 3 && at[0] == 0xED && at[1] >= 0xA0) {
            unsigned code = 0xD000u | (unsigned)(at[1] & 0x3F) << 6 | (unsigned)(at[2] & 0x3F);
            cx_buf_printf(out, "\\u%04x", code);
            i += 3;
        } else {
            cx_buf_add_byte(out, at[0]);
            i++;
        }
    }
}

/* Writes the wanted name, then, as long as another agent has it, the same with ~2, ~3, ... */
static cx_status claim_name(cx_import_core *core, cx_str wanted, uint32_t index, cx_str *out,
                            cx_err *err)
{
    cx_buf *buf = &core->text;
    cx_buf_clear(buf);
    if (wanted.data[0] >= '0' && wanted.data[0] <= '9')
        cx_buf_add_byte(buf, '_');
    add_encodable(buf, wanted);
    size_t base_size = buf->size;
    for (unsigned suffix = 2;; suffix++) {
        CX_TRY(cx_buf_check(buf, err));
        if (cx_map_find(&core->agent_used, cx_buf_str(buf)) == NULL)
            break;
        buf->size = base_size;
        cx_buf_printf(buf, "~%u", suffix);
    }
    cx_str name = cx_arena_copy_str(&core->keep, cx_buf_str(buf));
    if (name.data == NULL)
        return cx_fail_nomem(err);
    uint64_t *value;
    bool is_new;
    CX_TRY(cx_map_put(&core->agent_used, name, &value, &is_new, err));
    *value = index;
    *out = name;
    return CX_SUCCESS;
}

static cx_status new_agent(cx_import_core *core, cx_str wanted, uint32_t *out, cx_err *err)
{
    if (core->agents.count >= UINT32_MAX - 1)
        return cx_fail(err, CX_E_LIMIT, "more than 2^32 agents");
    uint32_t index = (uint32_t)core->agents.count;
    cx_str name = {NULL, 0};
    CX_TRY(claim_name(core, wanted, index, &name, err));
    agent *made = cx_vec_push(&core->agents, core->alloc);
    if (made == NULL)
        return cx_fail_nomem(err);
    *made = (agent){.name = name, .last = CX_RECORD_NONE};
    *out = index;
    return CX_SUCCESS;
}

cx_status cx_import_agent_of(cx_import_core *core, cx_str source_name, uint32_t *out, cx_err *err)
{
    cx_str wanted = trim_spaces(source_name);
    if (wanted.size == 0)
        source_name = wanted = CX_STR("unknown");
    if (core->agents.count == 0)
        return new_agent(core, CX_STR(IMPORTER), out, err);
    uint64_t *known = cx_map_find(&core->agent_source, source_name);
    if (known != NULL) {
        *out = (uint32_t)*known;
        return CX_SUCCESS;
    }
    cx_str key = cx_arena_copy_str(&core->keep, source_name);
    if (key.data == NULL)
        return cx_fail_nomem(err);
    uint32_t index = 0;
    CX_TRY(new_agent(core, wanted, &index, err));
    bool is_new;
    CX_TRY(cx_map_put(&core->agent_source, key, &known, &is_new, err));
    *known = index;
    *out = index;
    return CX_SUCCESS;
}

/* --- what is derived, as canonical JSON ---------------------------------------------------- */

static bool has_item(const cx_json_list *list, cx_str name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (cx_str_eq(cx_json_text(&list->members[i].name), name))
            return true;
    }
    return false;
}

static void add_once(cx_json_list *list, cx_str name, cx_json value)
{
    if (!has_item(list, name))
        cx_json_list_put(list, name, value);
}

static void add_text(cx_json_list *list, const char *name, cx_str text)
{
    if (text.size != 0)
        add_once(list, cx_str_z(name), cx_json_make_str(text));
}

/* Stores the canonical text of a value. */
static cx_status store_json(cx_import_core *core, const cx_json *value, const char **out,
                            uint32_t *out_size, cx_err *err)
{
    cx_buf_clear(&core->text);
    CX_TRY(cx_json_write(&core->text, value, CX_JSON_PY_COMPACT, err));
    CX_TRY(cx_buf_check(&core->text, err));
    if (core->text.size > UINT32_MAX)
        return cx_fail(err, CX_E_LIMIT, "over 4 GiB derived from one record");
    cx_str stored = cx_arena_copy_str(&core->keep, cx_buf_str(&core->text));
    if (stored.data == NULL)
        return cx_fail_nomem(err);
    *out = stored.data;
    *out_size = (uint32_t)stored.size;
    return CX_SUCCESS;
}

static cx_status store_derived(cx_import_core *core, const cx_import_record *r, entry *e,
                               cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&core->scratch);
    cx_json at, event;
    cx_json_list place = cx_json_list_begin(&core->scratch);
    cx_json_list_put(&place, CX_STR("file"), cx_json_make_uint(&core->scratch, e->file));
    if (core->sink.line != 0)
        cx_json_list_put(&place, CX_STR("line"),
                         cx_json_make_uint(&core->scratch, core->sink.line));
    if (core->sink.line == 0 || r->part != UINT32_MAX)
        cx_json_list_put(&place, CX_STR("index"), cx_json_make_uint(&core->scratch, e->place));
    CX_TRY(cx_json_list_end_object(&place, &at, err));

    cx_json_list_put(&list, CX_STR("at"), at);
    add_text(&list, "source", cx_str_z(core->format->info.name));
    add_text(&list, "kind", cx_str_z(kind_names[r->kind]));
    add_text(&list, "src_id", r->src_id);
    add_text(&list, "src_parent", r->src_parent);
    add_text(&list, "tool", r->tool);
    add_text(&list, "call_id", r->call_id);
    add_text(&list, "model", r->model);
    add_text(&list, "status", r->status);
    if (r->usage != NULL && r->usage->type != CX_JSON_NULL)
        cx_json_list_put(&list, CX_STR("usage"), *r->usage);
    for (size_t i = 0; i < r->fields.count; i++) {
        const cx_import_delta_item *item = &r->fields.items[i];
        bool ours = cx_str_is(item->name, "raw") || cx_str_is(item->name, "issues") ||
                    cx_str_is(item->name, "t_ns") || cx_str_is(item->name, "__seal");
        if (!ours)
            add_once(&list, item->name, item->value);
    }
    CX_TRY(cx_json_list_end_object(&list, &event, err));
    return store_json(core, &event, &e->derived, &e->derived_size, err);
}

static cx_status add_digest(cx_import_core *core, cx_json_list *list, const char *name,
                            const cx_json *value, cx_err *err)
{
    char hex[16];
    if (value == NULL)
        return CX_SUCCESS;
    if (value == core->content)
        memcpy(hex, core->content_digest, sizeof hex);
    else
        CX_TRY(cx_import_digest(value, &core->text, hex, err));
    cx_str stored = cx_arena_copy_str(&core->scratch, cx_str_from(hex, sizeof hex));
    if (stored.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list_put(list, cx_str_z(name), cx_json_make_str(stored));
    return CX_SUCCESS;
}

/* memory.call.<call_id>: an answer patches only the members that it knows (§1.12). */
static cx_status call_value(cx_import_core *core, const cx_import_call_item *item, cx_json *out,
                            cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&core->scratch);
    if (item->opens) {
        add_text(&list, "tool", item->tool);
        CX_TRY(add_digest(core, &list, "args", item->args, err));
    }
    if (item->closes)
        CX_TRY(add_digest(core, &list, "result", item->result, err));
    const char *status = !item->closes ? "open" : item->ok ? "ok" : "error";
    cx_json_list_put(&list, CX_STR("status"), cx_json_make_str(cx_str_z(status)));
    return cx_json_list_end_object(&list, out, err);
}

static cx_status memory_value(cx_import_core *core, const cx_import_record *r, cx_json *out,
                              cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&core->scratch);
    if (r->calls.count != 0) {
        cx_json_list calls = cx_json_list_begin(&core->scratch);
        for (size_t i = 0; i < r->calls.count; i++) {
            cx_json value;
            CX_TRY(call_value(core, &r->calls.items[i], &value, err));
            add_once(&calls, r->calls.items[i].call_id, value);
        }
        cx_json value;
        CX_TRY(cx_json_list_end_object(&calls, &value, err));
        cx_json_list_put(&list, CX_STR("call"), value);
    }
    for (size_t i = 0; i < r->memory.count; i++) {
        if (!cx_str_is(r->memory.items[i].name, "last"))
            add_once(&list, r->memory.items[i].name, r->memory.items[i].value);
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_status beliefs_value(cx_import_core *core, const cx_import_record *r, cx_json *out,
                               cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&core->scratch);
    for (size_t i = 0; i < r->beliefs.count; i++) {
        cx_json_list belief = cx_json_list_begin(&core->scratch);
        cx_json value;
        cx_json_list_put(&belief, CX_STR("value"), r->beliefs.items[i].value);
        cx_json_list_put(&belief, CX_STR("confidence"), cx_json_make_double(&core->scratch, 1.0));
        CX_TRY(cx_json_list_end_object(&belief, &value, err));
        add_once(&list, r->beliefs.items[i].name, value);
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_status store_delta(cx_import_core *core, const cx_import_record *r, entry *e, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&core->scratch);
    cx_json part, delta;
    bool goals = r->goals != NULL && r->goals->type == CX_JSON_ARRAY;
    if (r->calls.count + r->memory.count + r->beliefs.count == 0 && !goals)
        return CX_SUCCESS;
    CX_TRY(memory_value(core, r, &part, err));
    cx_json_list_put(&list, CX_STR("memory"), part);
    if (r->beliefs.count != 0) {
        CX_TRY(beliefs_value(core, r, &part, err));
        cx_json_list_put(&list, CX_STR("beliefs"), part);
    }
    if (goals)
        cx_json_list_put(&list, CX_STR("goals"), *r->goals);
    CX_TRY(cx_json_list_end_object(&list, &delta, err));
    return store_json(core, &delta, &e->delta, &e->delta_size, err);
}

/* --- references ---------------------------------------------------------------------------- */

static cx_status reference_slot_of(cx_import_core *core, char space, cx_str id, uint32_t *out,
                                   cx_err *err)
{
    cx_buf *buf = &core->text;
    cx_buf_clear(buf);
    cx_buf_add_byte(buf, (uint8_t)space);
    cx_buf_add_str(buf, id);
    CX_TRY(cx_buf_check(buf, err));
    uint64_t hash = cx_map_hash(&core->slot_index, cx_buf_str(buf));
    uint64_t *value = cx_map_find_hashed(&core->slot_index, cx_buf_str(buf), hash);
    if (value == NULL) {
        cx_str key = cx_arena_copy_str(&core->keep, cx_buf_str(buf));
        id_slot *made = key.data == NULL ? NULL : cx_vec_push(&core->slots, core->alloc);
        bool is_new;
        if (made == NULL)
            return cx_fail_nomem(err);
        *made = (id_slot){CX_RECORD_NONE, false};
        CX_TRY(cx_map_put_hashed(&core->slot_index, key, hash, &value, &is_new, err));
        *value = core->slots.count - 1;
    }
    *out = (uint32_t)*value;
    return CX_SUCCESS;
}

static cx_status store_refs(cx_import_core *core, const cx_import_record *r, entry *e, cx_err *err)
{
    if (core->refs.count + r->refs.count > UINT32_MAX)
        return cx_fail(err, CX_E_LIMIT, "more than 2^32 references");
    e->first_ref = (uint32_t)core->refs.count;
    for (size_t i = 0; i < r->refs.count; i++) {
        const cx_import_key *key = &r->refs.items[i];
        ref made = {key->record, key->rule, true};
        if (key->record == CX_RECORD_NONE) {
            made.direct = false;
            CX_TRY(reference_slot_of(core, key->space, key->id, &made.target, err));
        }
        ref *room = cx_vec_push(&core->refs, core->alloc);
        if (room == NULL)
            return cx_fail_nomem(err);
        *room = made;
    }
    e->ref_count = (uint32_t)r->refs.count;
    return CX_SUCCESS;
}

static cx_status store_defines(cx_import_core *core, const cx_import_record *r, entry *e,
                               uint32_t index, cx_err *err)
{
    for (size_t i = 0; i < r->defines.count; i++) {
        const cx_import_key *key = &r->defines.items[i];
        uint32_t at = 0;
        CX_TRY(reference_slot_of(core, key->space, key->id, &at, err));
        id_slot *s = &core->slots.items[at];
        bool taken = s->definer != CX_RECORD_NONE && s->definer != index;
        if (!taken || key->rule == CX_DEFINE_LAST)
            s->definer = index;
        else if (key->rule == CX_DEFINE_FIRST)
            e->issues |= 1u << CX_ISSUE_DUPLICATE_ID;
    }
    return CX_SUCCESS;
}

/* Tells the caller, who may want to know what was called. */
static cx_status report_calls(cx_import_core *core, const cx_import_record *r, cx_err *err)
{
    for (size_t i = 0; i < r->made.count && core->options.on_call != NULL; i++) {
        const cx_import_call_item *item = &r->made.items[i];
        const cx_import_called made = {.file = core->sink.file,
                                       .line = core->sink.line,
                                       .tool = item->tool,
                                       .folder = r->folder,
                                       .args = item->args};
        CX_TRY(core->options.on_call(core->options.on_call_arg, &made, err));
    }
    return CX_SUCCESS;
}

static cx_status report_item(cx_import_core *core, cx_import_step *step,
                             const cx_import_call_item *item, cx_err *err)
{
    step->opens = item->opens;
    step->closes = item->closes;
    step->ok = item->ok;
    step->call_id = item->call_id;
    step->tool = item->tool;
    step->args = item->args;
    step->result = item->result;
    return core->options.on_step(core->options.on_step_arg, step, err);
}

/* Calls first: a record may answer what it calls. */
static cx_status report_steps(cx_import_core *core, const cx_import_record *r, cx_err *err)
{
    cx_import_step step = {.file = core->sink.file,
                           .line = core->sink.line,
                           .bad = r->kind == CX_KIND_BAD,
                           .has_time = r->has_time,
                           .t_ns = r->has_time ? r->t_ns : 0,
                           .agent = r->agent,
                           .folder = r->folder,
                           .raw = core->line_value != NULL ? core->line_value : r->raw};
    size_t reported = r->made.count;
    if (core->options.on_step == NULL)
        return CX_SUCCESS;
    for (size_t i = 0; i < r->made.count; i++)
        CX_TRY(report_item(core, &step, &r->made.items[i], err));
    for (size_t i = 0; i < r->calls.count; i++) {
        if (r->calls.items[i].opens)
            continue;
        CX_TRY(report_item(core, &step, &r->calls.items[i], err));
        reported++;
    }
    return reported != 0 ? CX_SUCCESS
                         : core->options.on_step(core->options.on_step_arg, &step, err);
}

/* What the count of open calls needs to know of a call. */
static cx_status store_calls(cx_import_core *core, const cx_import_record *r, uint32_t index,
                             cx_err *err)
{
    for (size_t i = 0; i < r->calls.count; i++) {
        const cx_import_call_item *item = &r->calls.items[i];
        uint32_t at = 0;
        CX_TRY(reference_slot_of(core, CALL_SPACE, item->key, &at, err));
        if (item->closes)
            core->slots.items[at].closed = true;
        if (!item->opens || item->closes || core->slots.items[at].definer != index)
            continue;
        call *made = cx_vec_push(&core->calls, core->alloc);
        cx_str id = cx_arena_copy_str(&core->keep, item->call_id);
        cx_str tool = cx_arena_copy_str(&core->keep, item->tool);
        if (made == NULL || id.data == NULL || tool.data == NULL)
            return cx_fail_nomem(err);
        *made = (call){at, core->sink.file, id, tool};
    }
    return CX_SUCCESS;
}

/* --- taking -------------------------------------------------------------------------------- */

static cx_status push_entry(cx_import_core *core, entry **out, uint32_t *out_index, cx_err *err)
{
    if (core->entries.count >= UINT32_MAX - 1)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET, "more than 2^32 records");
    entry *e = cx_vec_push(&core->entries, core->alloc);
    if (e == NULL)
        return cx_fail_nomem(err);
    uint32_t file = core->sink.file;
    source *from = &core->sources.items[file];
    *e = (entry){.file = file, .index = from->entry_count, .place = from->entry_count};
    from->entry_count++;
    const cx_import_window *window = from->lines ? window_of(core, file) : NULL;
    if (has_items(window))
        e->index = e->place = core->item;
    const uint64_t line = has_items(window) ? core->item : core->sink.line - 1;
    if (window != NULL && (line < window->from || line >= window->until))
        e->flags |= ENTRY_OUTSIDE;
    *out = e;
    *out_index = (uint32_t)core->entries.count - 1;
    return CX_SUCCESS;
}

/* Where the second pass finds the line again. */
static void set_line(cx_import_core *core, entry *e)
{
    e->flags |= ENTRY_FROM_LINE;
    e->offset = core->line_offset;
    e->size = (uint32_t)core->line_text.size;
    e->check = cx_map_hash_bytes(0, core->line_text.data, core->line_text.size);
}

static cx_status set_content(cx_import_core *core, entry *e, const cx_json *content, cx_err *err)
{
    core->content = content;
    if (content == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_import_digest(content, &core->text, core->content_digest, err));
    bool ok = cx_hex_decode(cx_str_from(core->content_digest, sizeof core->content_digest),
                            e->digest, sizeof e->digest);
    CX_ASSERT(ok);
    return CX_SUCCESS;
}

static void set_flags(entry *e, const cx_import_record *r)
{
    e->kind = (uint8_t)r->kind;
    e->fork = (uint8_t)r->fork;
    e->t_ns = r->has_time || r->time_known ? r->t_ns : 0;
    e->issues = r->issues | (r->time_bad ? 1u << CX_ISSUE_BAD_TIME : 0);
    unsigned flags = e->flags |
                     (r->has_time     ? ENTRY_HAS_TIME
                      : r->time_known ? ENTRY_TIME_KNOWN
                                      : 0) |
                     (r->fork_always ? ENTRY_FORK_ALWAYS : 0) |
                     (r->fork_if_handed ? ENTRY_FORK_IF_HANDED : 0) |
                     (r->inherit_agent ? ENTRY_INHERIT : 0) |
                     (r->under_file ? ENTRY_UNDER_FILE : 0) | (r->extra ? ENTRY_EXTRA : 0);
    e->flags = (uint16_t)flags;
}

/*
 * In a document a number that overflows affects only its record, not the whole (§1.2): its text is
 * stored as spelled.
 */
static cx_status bad_in_document(cx_import_core *core, const cx_json *raw, uint64_t index,
                                 cx_err *err)
{
    cx_buf_clear(&core->text);
    CX_TRY(cx_json_write_pretty(&core->text, raw, 0, err));
    CX_TRY(cx_buf_check(&core->text, err));
    cx_str text = cx_arena_copy_str(core->sink.arena, cx_buf_str(&core->text));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    cx_json value = cx_json_make_str(text);
    cx_import_record *r = cx_import_begin(&core->sink);
    r->kind = CX_KIND_BAD;
    r->index = index;
    r->content = &value;
    cx_import_field(r, CX_STR("raw_text"), value);
    cx_import_field_str(r, CX_STR("error"), CX_STR("U_NUMBER"));
    return cx_import_end(&core->sink, NULL, err);
}

static cx_status store_record(cx_import_core *core, const cx_import_record *r, uint32_t *out_record,
                              cx_err *err)
{
    entry *e;
    uint32_t index = 0;
    source *from = &core->sources.items[core->sink.file];
    const cx_json *content = r->content;
    CX_TRY(push_entry(core, &e, &index, err));
    if (core->line_value != NULL) {
        set_line(core, e);
        e->part = r->part;
        if (!has_items(window_of(core, e->file)))
            e->place = r->index == UINT64_MAX ? r->part : r->index;
        if (content == NULL)
            content = r->part == UINT32_MAX ? core->line_value
                                            : core->format->part(core->line_value, r->part);
    } else {
        e->raw = r->raw;
        e->place = r->index == UINT64_MAX ? e->index : r->index;
        if (content == NULL)
            content = r->raw;
    }
    set_flags(e, r);
    if (r->kind == CX_KIND_BAD) {
        e->agent = 0;
        e->flags |= ENTRY_UNDER_FILE;
        cx_import_count_bad(core, NULL);
    } else {
        CX_TRY(cx_import_agent_of(core, r->agent, &e->agent, err));
    }
    from->extra += r->extra;
    CX_TRY(set_content(core, e, content, err));
    CX_TRY(store_derived(core, r, e, err));
    CX_TRY(store_delta(core, r, e, err));
    CX_TRY(store_refs(core, r, e, err));
    CX_TRY(store_defines(core, r, e, index, err));
    CX_TRY(store_calls(core, r, index, err));
    CX_TRY(report_calls(core, r, err));
    CX_TRY(report_steps(core, r, err));
    if (out_record != NULL)
        *out_record = index;
    return CX_SUCCESS;
}

cx_status cx_import_end(cx_import_sink *sink, uint32_t *out_record, cx_err *err)
{
    cx_import_core *core = sink->core;
    cx_import_record *r = &core->record;
    if (r->failed)
        return cx_fail_nomem(err);
    if (r->raw != NULL && !cx_json_has_canonical(r->raw)) {
        if (out_record != NULL)
            *out_record = (uint32_t)core->entries.count;
        return bad_in_document(core, r->raw, r->index, err);
    }
    cx_arena_mark mark = cx_arena_mark_now(&core->scratch);
    cx_status status = store_record(core, r, out_record, err);
    if (core->line_value == NULL)
        cx_arena_reset(&core->scratch, mark);
    return status;
}

cx_status cx_import_bad(cx_import_sink *sink, const cx_json *raw, uint64_t index, cx_err *err)
{
    cx_import_record *r = cx_import_begin(sink);
    r->kind = CX_KIND_BAD;
    r->raw = raw;
    r->index = index;
    r->issues = 1u << CX_ISSUE_UNKNOWN_TYPE;
    return cx_import_end(sink, NULL, err);
}

/* A line that is not faithful JSON: only its position is stored, the text is read again (§1.6). */
cx_status cx_import_bad_line(cx_import_core *core, const char *tag, cx_err *err)
{
    entry *e;
    uint32_t index = 0;
    cx_import_record *r = cx_import_begin(&core->sink);
    r->kind = CX_KIND_BAD;
    cx_import_field_str(r, CX_STR("error"), cx_str_z(tag));
    cx_import_field(r, CX_STR("line"), cx_json_make_uint(&core->scratch, core->sink.line));
    if (r->failed)
        return cx_fail_nomem(err);
    CX_TRY(push_entry(core, &e, &index, err));
    set_line(core, e);
    e->part = UINT32_MAX;
    e->kind = CX_KIND_BAD;
    e->flags |= ENTRY_RAW_TEXT | ENTRY_UNDER_FILE;
    e->first_ref = (uint32_t)core->refs.count;
    cx_import_count_bad(core, tag);
    cx_digest digest = cx_digest_of(cx_str_bytes(core->line_text));
    memcpy(e->digest, digest.bytes, sizeof e->digest);
    CX_TRY(report_steps(core, r, err));
    return store_derived(core, r, e, err);
}

/* --- what was told before --------------------------------------------------------------------- */

bool cx_import_ask(cx_import_sink *sink, char space, cx_str id, bool known)
{
    cx_import_core *core = sink->core;
    if (core->options.was_told == NULL || id.size == 0)
        return known;
    return core->options.was_told(core->options.told_arg, sink->line, core->question++, space, id,
                                  known);
}

void cx_import_tell(cx_import_sink *sink, char space, cx_str id)
{
    const cx_import_options *options = &sink->core->options;
    if (options->told != NULL && id.size != 0)
        options->told(options->told_arg, space, id);
}

/* --- about the file ------------------------------------------------------------------------ */

cx_status cx_import_top(cx_import_sink *sink, const cx_json *top, cx_err *err)
{
    cx_import_core *core = sink->core;
    source *from = &core->sources.items[sink->file];
    const char *text = NULL;
    uint32_t size = 0;
    CX_ASSERT(from->top.data == NULL);
    if (!cx_json_has_canonical(top))
        return cx_fail_at(err, CX_E_FORMAT, "U_NUMBER", CX_NO_OFFSET,
                          "found a number that overflows, expected one in the range of a double");
    CX_TRY(store_json(core, top, &text, &size, err));
    from->top = (cx_str){text, size};
    return CX_SUCCESS;
}

cx_status cx_import_labels(cx_import_sink *sink, const cx_json *labels, cx_err *err)
{
    cx_import_core *core = sink->core;
    if (core->options.labels == NULL)
        return CX_SUCCESS;
    cx_json_list list = cx_json_list_begin(sink->arena);
    cx_json line;
    cx_json_list_put(&list, CX_STR("file"), cx_json_make_uint(sink->arena, sink->file));
    cx_json_list_put(&list, CX_STR("labels"), *labels);
    CX_TRY(cx_json_list_end_object(&list, &line, err));
    cx_buf_clear(&core->text);
    CX_TRY(cx_json_write(&core->text, &line, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(&core->text, '\n');
    CX_TRY(cx_buf_check(&core->text, err));
    return core->options.labels(core->options.labels_arg, cx_buf_bytes(&core->text), err);
}

cx_status cx_import_link(cx_import_sink *sink, uint32_t child, uint32_t parent,
                         cx_import_ref_kind kind, cx_err *err)
{
    cx_import_core *core = sink->core;
    CX_ASSERT(child < core->entries.count && parent < core->entries.count);
    late_link *made = cx_vec_push(&core->links, core->alloc);
    if (made == NULL)
        return cx_fail_nomem(err);
    *made = (late_link){child, parent, (uint8_t)kind};
    return CX_SUCCESS;
}
