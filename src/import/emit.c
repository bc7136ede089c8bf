/*
 * emit.c - pass two: entries become sealed nodes, in output order, one canonical line each.
 *
 * Invariants:
 *   I1  a node is written after all its parents, so their hashes are known (order.c I2);
 *   I2  fields are in order of their names, without white space, as lattice.md §3.2 says;
 *   I3  nothing but the files' bytes and the options reaches the output (§1.13).
 */
#include "import/core.h"

#include <stdio.h>

#include "crypto/api.h"
#include "json/api.h"
#include "base/api.h"
#include "lattice/api.h"

#define VERSION "2.0.0"
#define GENESIS "0000000000000000000000000000000000000000000000000000000000000000"
#define FLUSH_BYTES 262144

/* A node about to be written. */
typedef struct draft {
    cx_json_list event; /* all members but the seal */
    cx_json delta;
    cx_json timestamp;
    uint32_t agent;
    uint8_t fork;
} draft;

/* A parent is an entry, or a file node, numbered after all entries. */
typedef struct emitter {
    cx_import_core *core;
    cx_import_write write;
    void *arg;
    cx_buf out;
    cx_buf preimage;
    cx_buf seal;
    CX_VEC(uint32_t) parents;
    CX_VEC(char) ids; /* texts of the parents' ids */
    CX_VEC(cx_str) names;
    uint64_t written;
} emitter;

static uint32_t file_node(const cx_import_core *core, uint32_t file)
{
    return (uint32_t)core->entries.count + file;
}

static cx_digest *hash_of(cx_import_core *core, uint32_t node)
{
    size_t count = core->entries.count;
    return node < count ? &core->hashes[node] : &core->sources.items[node - count].hash;
}

/* --- parents (§1.5) ------------------------------------------------------------------------ */

static cx_status add_parent(emitter *out, uint32_t node, cx_err *err)
{
    for (size_t i = 0; i < out->parents.count; i++) {
        if (out->parents.items[i] == node)
            return CX_SUCCESS;
    }
    uint32_t *space = cx_vec_push(&out->parents, out->core->alloc);
    if (space == NULL)
        return cx_fail_nomem(err);
    *space = node;
    return CX_SUCCESS;
}

/* The branch's predecessor first: its hash, else that of the first causal parent, is prev_hash. */
static cx_status find_parents(emitter *out, const entry *e, cx_err *err)
{
    cx_import_core *core = out->core;
    uint32_t last = core->agents.items[e->agent].last;
    out->parents.count = 0;
    if (last != CX_RECORD_NONE)
        CX_TRY(add_parent(out, last, err));
    for (uint32_t k = 0; k < e->ref_count; k++) {
        uint32_t target = core->refs.items[e->first_ref + k].target;
        if (target != CX_RECORD_NONE && (core->entries.items[target].flags & ENTRY_OUTSIDE) == 0)
            CX_TRY(add_parent(out, target, err));
    }
    if ((e->flags & ENTRY_UNDER_FILE) != 0 || out->parents.count == 0)
        CX_TRY(add_parent(out, file_node(core, e->file), err));
    return CX_SUCCESS;
}

/* The texts of the parents' ids, as written in the file. */
static cx_status name_parents(emitter *out, cx_err *err)
{
    const cx_alloc *alloc = out->core->alloc;
    size_t count = out->parents.count;
    out->ids.count = out->names.count = 0;
    if (!cx_vec_reserve(&out->ids, count * 64 + 1, alloc) ||
        !cx_vec_reserve(&out->names, count + 1, alloc))
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        char *text = out->ids.items + i * 64;
        uint32_t node = out->parents.items[i];
        size_t size = 64;
        if (out->core->options.plain_ids)
            size = (size_t)snprintf(text, 64, "s%u", (unsigned)out->core->output[node]);
        else
            cx_hex_encode(cx_bytes_from(hash_of(out->core, node)->bytes, 32), text);
        out->names.items[i] = cx_str_from(text, size);
    }
    out->names.count = count;
    return CX_SUCCESS;
}

/* --- writing ------------------------------------------------------------------------------- */

static cx_status flush(emitter *out, size_t at_least, cx_err *err)
{
    if (out->out.size < at_least || out->out.size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_buf_check(&out->out, err));
    CX_TRY(out->write(out->arg, cx_buf_bytes(&out->out), err));
    cx_buf_clear(&out->out);
    return CX_SUCCESS;
}

/* The seal closes what the hash does not cover (lattice.md §5.1).  out->seal keeps its
 * pre-image. */
static cx_status seal_event(emitter *out, draft *node, cx_json *event, cx_err *err)
{
    static const char *const forks[] = {"", "natural", "observation", "injection"};
    cx_arena *arena = &out->core->scratch;
    char *text = cx_arena_push(arena, 64, 1);
    if (text == NULL)
        return cx_fail_nomem(err);
    cx_buf_clear(&out->seal);
    CX_TRY(cx_lattice_seal_preimage(&out->seal,
                                    node->fork == CX_IMPORT_FORK_NONE ? (cx_str){NULL, 0}
                                                                      : cx_str_z(forks[node->fork]),
                                    &node->delta, &node->timestamp, err));
    cx_digest digest = cx_digest_of(cx_buf_bytes(&out->seal));
    cx_hex_encode(cx_bytes_from(digest.bytes, 32), text);
    cx_json_list_put(&node->event, CX_STR("__seal"), cx_json_make_str(cx_str_from(text, 64)));
    return cx_json_list_end_object(&node->event, event, err);
}

static size_t decimal_size(int64_t value)
{
    size_t size = 1;
    for (; value > 9; value /= 10)
        size++;
    return size;
}

/* The event's canonical text is part of the pre-image (lattice.md §3.1), after prev_hash. */
static cx_str event_in_preimage(const emitter *out, int64_t seq, cx_str agent_name)
{
    size_t after_size = decimal_size(seq) + agent_name.size + sizeof VERSION - 1;
    for (size_t i = 0; i < out->names.count; i++)
        after_size += out->names.items[i].size + (i != 0);
    return cx_str_from((const char *)out->preimage.data + 64, out->preimage.size - 64 - after_size);
}

/* The line ends as the pre-image of its seal does after fork_type: with state_delta and timestamp.
 */
static void write_line(emitter *out, const draft *node, cx_str id, cx_str prev, cx_str hash,
                       cx_str event)
{
    static const char *const forks[] = {"null", "\"natural\"", "\"observation\"", "\"injection\""};
    const size_t before_delta = sizeof "{\"fork_type\":" - 1 + strlen(forks[node->fork]);
    const agent *branch = &out->core->agents.items[node->agent];
    cx_buf *buf = &out->out;
    cx_buf_add_z(buf, "{\"agent_id\":");
    cx_json_write_str(buf, branch->name, CX_JSON_PY_COMPACT);
    cx_buf_add_z(buf, ",\"event\":");
    cx_buf_add_str(buf, event);
    cx_buf_add_z(buf, ",\"fork_type\":");
    cx_buf_add_z(buf, forks[node->fork]);
    cx_buf_add_z(buf, ",\"hash\":\"");
    cx_buf_add_str(buf, hash);
    cx_buf_add_z(buf, "\",\"node_id\":\"");
    cx_buf_add_str(buf, id);
    cx_buf_add_z(buf, "\",\"parents\":[");
    for (size_t i = 0; i < out->names.count; i++) {
        cx_buf_add_z(buf, i == 0 ? "\"" : ",\"");
        cx_buf_add_str(buf, out->names.items[i]);
        cx_buf_add_byte(buf, '"');
    }
    cx_buf_add_z(buf, "],\"prev_hash\":\"");
    cx_buf_add_str(buf, prev);
    cx_buf_add_z(buf, "\",\"schema_version\":\"" VERSION "\",\"seq\":");
    cx_buf_add_i64(buf, branch->seq);
    cx_buf_add(buf, out->seal.data + before_delta, out->seal.size - before_delta);
    cx_buf_add_byte(buf, '\n');
}

static cx_status write_node(emitter *out, draft *node, uint32_t number, cx_err *err)
{
    cx_import_core *core = out->core;
    agent *branch = &core->agents.items[node->agent];
    char prev[64], hex[64], plain[24];
    cx_json event;
    CX_TRY(name_parents(out, err));
    if (out->parents.count == 0)
        memcpy(prev, GENESIS, 64);
    else
        cx_hex_encode(cx_bytes_from(hash_of(core, out->parents.items[0])->bytes, 32), prev);
    CX_TRY(seal_event(out, node, &event, err));

    const cx_lattice_fields fields = {
        .prev_hash = cx_str_from(prev, 64),
        .event = &event,
        .seq = branch->seq,
        .agent_id = branch->name,
        .schema_version = CX_STR(VERSION),
        .parents = out->names.items,
        .parent_count = out->names.count,
    };
    cx_buf_clear(&out->preimage);
    CX_TRY(cx_lattice_preimage(&out->preimage, &fields, err));
    cx_digest hash = cx_digest_of(cx_buf_bytes(&out->preimage));
    cx_hex_encode(cx_bytes_from(hash.bytes, 32), hex);
    cx_str id = cx_str_from(hex, 64);
    if (core->options.plain_ids)
        id = cx_str_from(plain, (size_t)snprintf(plain, sizeof plain, "s%llu",
                                                 (unsigned long long)out->written));
    write_line(out, node, id, fields.prev_hash, cx_str_from(hex, 64),
               event_in_preimage(out, branch->seq, branch->name));
    CX_TRY(cx_buf_check(&out->out, err));

    *hash_of(core, number) = hash;
    core->output[number] = (uint32_t)out->written++;
    branch->last = number;
    branch->seq++;
    branch->nodes++;
    return flush(out, FLUSH_BYTES, err);
}

/* --- contents of a node ----------------------------------------------------------------------- */

/* t_ns / 10^9, correctly rounded: the decimal text is exact and is read once (§1.9). */
static cx_json timestamp_of(cx_import_core *core, int64_t t_ns)
{
    char text[40];
    double value = 0;
    if (core->format->no_time) {
        value = (double)t_ns;
    } else {
        uint64_t size = t_ns < 0 ? 0 - (uint64_t)t_ns : (uint64_t)t_ns;
        size_t at = sizeof text;
        for (unsigned digits = 0; size != 0 || digits < 10; digits++, size /= 10) {
            if (digits == 9)
                text[--at] = '.';
            text[--at] = (char)('0' + size % 10);
        }
        if (t_ns < 0)
            text[--at] = '-';
        bool finite = cx_number_parse(cx_str_from(text + at, sizeof text - at), &value);
        CX_ASSERT(finite);
    }
    return cx_json_make_double(&core->scratch, value);
}

static cx_status put_issues(cx_import_core *core, cx_json_list *event, uint32_t issues, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&core->scratch);
    cx_json value;
    if (issues == 0)
        return CX_SUCCESS;
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++) {
        if (issues & 1u << i)
            cx_json_list_add(&list,
                             cx_json_make_str(cx_str_z(cx_import_issue_name((cx_import_issue)i))));
    }
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_json_list_put(event, CX_STR("issues"), value);
    return CX_SUCCESS;
}

static cx_str hex_text(cx_import_core *core, const uint8_t *bytes, size_t size)
{
    char *text = cx_arena_push(&core->scratch, 2 * size, 1);
    if (text == NULL)
        return (cx_str){NULL, 0};
    cx_hex_encode(cx_bytes_from(bytes, size), text);
    return cx_str_from(text, 2 * size);
}

static void put_members(cx_json_list *list, const cx_json *object)
{
    for (uint32_t i = 0; i < object->count; i++)
        cx_json_list_put(list, cx_json_text(&object->members[i].name), object->members[i].value);
}

/* The stored delta with memory.last.<agent> (§1.12) and what was said (§1.15) added. */
static cx_status complete_delta(cx_import_core *core, cx_str stored, const agent *branch,
                                cx_str digest, const cx_json *said, cx_json *out, cx_err *err)
{
    cx_arena *arena = &core->scratch;
    cx_json old = {.type = CX_JSON_OBJECT}, value;
    if (stored.size != 0)
        CX_TRY(cx_json_parse(&core->parser, stored, arena, &old, err));
    cx_json_list last = cx_json_list_begin(arena), memory = last, delta = last;
    if (digest.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list_put(&last, branch->name, cx_json_make_str(digest));
    CX_TRY(cx_json_list_end_object(&last, &value, err));
    cx_json_list_put(&memory, CX_STR("last"), value);
    const cx_json *stored_memory = CX_JSON_GET(&old, "memory");
    if (stored_memory != NULL)
        put_members(&memory, stored_memory);
    for (uint32_t i = 0; i < said->count; i++) {
        cx_str name = cx_json_text(&said->members[i].name);
        if (stored_memory == NULL || cx_json_get(stored_memory, name) == NULL)
            cx_json_list_put(&memory, name, said->members[i].value);
    }
    CX_TRY(cx_json_list_end_object(&memory, &value, err));
    cx_json_list_put(&delta, CX_STR("memory"), value);
    for (uint32_t i = 0; i < old.count; i++) {
        cx_str name = cx_json_text(&old.members[i].name);
        if (!cx_str_is(name, "memory"))
            cx_json_list_put(&delta, name, old.members[i].value);
    }
    return cx_json_list_end_object(&delta, out, err);
}

/* --- file nodes (§1.7) --------------------------------------------------------------------- */

static cx_status file_delta(cx_import_core *core, uint32_t file, cx_json *out, cx_err *err)
{
    cx_arena *arena = &core->scratch;
    const source *from = &core->sources.items[file];
    cx_json_list run = cx_json_list_begin(arena), memory = run, delta = run;
    const cx_json nothing = {.type = CX_JSON_OBJECT};
    cx_json value;
    cx_json_list_put(&run, CX_STR("format"), cx_json_make_str(cx_str_z(core->format->info.name)));
    cx_json_list_put(&run, CX_STR("file"), cx_json_make_uint(arena, file));
    CX_TRY(cx_json_list_end_object(&run, &value, err));
    cx_json_list_put(&memory, CX_STR("run"), value);
    CX_TRY(cx_json_list_end_object(&memory, &value, err));
    cx_json_list_put(&delta, CX_STR("memory"), value);
    CX_TRY(cx_json_list_end_object(&delta, &value, err));
    cx_buf_clear(&core->text);
    CX_TRY(cx_json_write(&core->text, &value, CX_JSON_PY_COMPACT, err));
    CX_TRY(cx_buf_check(&core->text, err));
    cx_str stored = cx_arena_copy_str(arena, cx_buf_str(&core->text));
    return complete_delta(core, stored, &core->agents.items[0],
                          hex_text(core, from->sha256.bytes, 8), &nothing, out, err);
}

/* Records of the source that become nodes. */
static uint64_t records_of(const cx_import_core *core, const source *from)
{
    uint64_t outside = 0;
    for (uint32_t i = 0; i < from->entry_count; i++)
        outside += (core->entries.items[from->first_entry + i].flags & ENTRY_OUTSIDE) != 0;
    return from->entry_count - from->extra - outside;
}

/* Which lines the window has, counted as event.at.line is, or records as event.at.index. */
static cx_status put_window(cx_import_core *core, const cx_import_window *window,
                            cx_json_list *event, cx_err *err)
{
    cx_json_list part = cx_json_list_begin(&core->scratch);
    cx_json value;
    if (window == NULL || (window->end != NULL && window->until == UINT64_MAX))
        return CX_SUCCESS;
    const uint64_t first = window->items || window->end != NULL ? 0 : 1;
    cx_json_list_put(&part, CX_STR("from"),
                     cx_json_make_uint(&core->scratch, window->from + first));
    cx_json_list_put(&part, CX_STR("to"),
                     cx_json_make_uint(&core->scratch, window->until - 1 + first));
    CX_TRY(cx_json_list_end_object(&part, &value, err));
    cx_json_list_put(event, CX_STR("part"), value);
    return CX_SUCCESS;
}

static cx_status file_event(cx_import_core *core, uint32_t file, cx_json_list *event, cx_err *err)
{
    cx_arena *arena = &core->scratch;
    const source *from = &core->sources.items[file];
    cx_json_list place = cx_json_list_begin(arena);
    cx_json at, top;
    cx_str sha = hex_text(core, from->sha256.bytes, 32);
    if (sha.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list_put(&place, CX_STR("file"), cx_json_make_uint(arena, file));
    CX_TRY(cx_json_list_end_object(&place, &at, err));
    cx_json_list_put(event, CX_STR("at"), at);
    cx_json_list_put(event, CX_STR("source"), cx_json_make_str(cx_str_z(core->format->info.name)));
    cx_json_list_put(event, CX_STR("kind"), cx_json_make_str(CX_STR("run")));
    cx_json_list_put(event, CX_STR("sha256"), cx_json_make_str(sha));
    cx_json_list_put(event, CX_STR("bytes"), cx_json_make_uint(arena, from->size));
    cx_json_list_put(event, CX_STR("records"), cx_json_make_uint(arena, records_of(core, from)));
    CX_TRY(put_window(core, window_of(core, file), event, err));
    cx_json_list_put(event, CX_STR("blank_lines"), cx_json_make_uint(arena, from->blank_lines));
    if (from->top.data != NULL) {
        CX_TRY(cx_json_parse(&core->parser, from->top, arena, &top, err));
        cx_json_list_put(event, CX_STR("raw_top"), top);
    }
    return put_issues(core, event, core->format->no_time ? 1u << CX_ISSUE_NO_TIME : 0, err);
}

static cx_status emit_file(emitter *out, uint32_t file, cx_err *err)
{
    cx_import_core *core = out->core;
    draft node = {.event = cx_json_list_begin(&core->scratch), .agent = 0};
    uint32_t last = core->agents.items[0].last;
    out->parents.count = 0;
    if (last != CX_RECORD_NONE)
        CX_TRY(add_parent(out, last, err));
    CX_TRY(file_event(core, file, &node.event, err));
    CX_TRY(file_delta(core, file, &node.delta, err));
    node.timestamp = timestamp_of(core, core->sources.items[file].t_ns);
    if (core->format->no_time)
        core->sources.items[file].issues[CX_ISSUE_NO_TIME]++;
    return write_node(out, &node, file_node(core, file), err);
}

/* --- records ------------------------------------------------------------------------------- */

static cx_status put_bad_text(cx_import_core *core, cx_json_list *event, cx_str line, cx_err *err)
{
    if (cx_utf8_valid(line)) {
        cx_json_list_put(event, CX_STR("raw_text"), cx_json_make_str(line));
        return CX_SUCCESS;
    }
    cx_buf encoded;
    cx_buf_init(&encoded, core->alloc);
    cx_base64_add(&encoded, cx_str_bytes(line), CX_BASE64);
    cx_status status = cx_buf_check(&encoded, err);
    if (!cx_failed(status)) {
        cx_str text = cx_arena_copy_str(&core->scratch, cx_buf_str(&encoded));
        cx_json_list_put(event, CX_STR("raw_b64"), cx_json_make_str(text));
        status = text.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&encoded);
    return status;
}

/* Records of one line are mostly written consecutively: it is parsed once for all of them. */
static cx_status part_of_line(cx_import_core *core, const entry *e, const cx_json **out,
                              cx_err *err)
{
    if (!core->has_part_line || core->part_file != e->file || core->part_offset != e->offset) {
        cx_str line;
        core->has_part_line = false;
        CX_TRY(cx_import_reread(core, e, &line, err));
        cx_arena_reset(&core->line, (cx_arena_mark){0});
        cx_str stored = cx_arena_copy_str(&core->line, line);
        if (stored.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_json_parse(&core->parser, stored, &core->line, &core->part_line, err));
        core->part_file = e->file;
        core->part_offset = e->offset;
        core->has_part_line = true;
    }
    *out = core->format->part(&core->part_line, e->part);
    return CX_SUCCESS;
}

/* *out is NULL when the record has no raw value. */
static cx_status put_raw(cx_import_core *core, cx_json_list *event, const entry *e,
                         const cx_json **out, cx_err *err)
{
    cx_str line;
    cx_json *value;
    *out = NULL;
    if ((e->flags & ENTRY_FROM_LINE) == 0) {
        *out = e->raw;
    } else if (e->part != UINT32_MAX) {
        CX_TRY(part_of_line(core, e, out, err));
    } else {
        CX_TRY(cx_import_reread(core, e, &line, err));
        if (e->flags & ENTRY_RAW_TEXT)
            return put_bad_text(core, event, line, err);
        if ((value = CX_ARENA_NEW(&core->scratch, cx_json)) == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_json_parse(&core->parser, line, &core->scratch, value, err));
        *out = value;
    }
    if (*out != NULL)
        cx_json_list_put(event, CX_STR("raw"), **out);
    return CX_SUCCESS;
}

/* What the record says goes into its event, and from there into the state (§1.15). */
static cx_status put_content(cx_import_core *core, cx_json_list *event, const cx_json *derived,
                             const cx_json *raw, const agent *branch, cx_json *out_memory,
                             cx_err *err)
{
    cx_import_content content;
    cx_json_list memory = cx_json_list_begin(&core->scratch);
    *out_memory = (cx_json){.type = CX_JSON_OBJECT};
    if (raw == NULL || core->format->content == NULL)
        return CX_SUCCESS;
    cx_import_content_begin(&content, &core->scratch, core->alloc, derived);
    core->format->content(&content, raw);
    CX_TRY(cx_import_content_event(&content, event, err));
    CX_TRY(cx_import_content_memory(&content, branch->name, &memory, err));
    return cx_json_list_end_object(&memory, out_memory, err);
}

static cx_status emit_entry(emitter *out, uint32_t number, cx_err *err)
{
    cx_import_core *core = out->core;
    entry *e = &core->entries.items[number];
    const agent *branch = &core->agents.items[e->agent];
    draft node = {.event = cx_json_list_begin(&core->scratch), .agent = e->agent};
    cx_json derived, said;
    const cx_json *raw;
    CX_TRY(find_parents(out, e, err));
    if (branch->last < core->entries.count && core->entries.items[branch->last].t_ns > e->t_ns)
        e->issues |= 1u << CX_ISSUE_TIME_REGRESSED;
    if (branch->seq == 0 || (e->flags & ENTRY_FORK_ALWAYS) != 0)
        node.fork = e->fork;

    cx_str text = cx_str_from(e->derived, e->derived_size);
    CX_TRY(cx_json_parse(&core->parser, text, &core->scratch, &derived, err));
    put_members(&node.event, &derived);
    CX_TRY(put_raw(core, &node.event, e, &raw, err));
    CX_TRY(put_content(core, &node.event, &derived, e->kind == CX_KIND_BAD ? NULL : raw, branch,
                       &said, err));
    CX_TRY(put_issues(core, &node.event, e->issues, err));
    if (e->flags & ENTRY_HAS_TIME)
        cx_json_list_put(&node.event, CX_STR("t_ns"), cx_json_make_int(&core->scratch, e->t_ns));
    node.timestamp = timestamp_of(core, e->t_ns);
    CX_TRY(complete_delta(core, cx_str_from(e->delta, e->delta_size), branch,
                          hex_text(core, e->digest, sizeof e->digest), &said, &node.delta, err));
    for (unsigned i = 0; i < CX_ISSUE_COUNT; i++)
        core->sources.items[e->file].issues[i] += e->issues >> i & 1;
    return write_node(out, &node, number, err);
}

static cx_status emit_all(emitter *out, cx_err *err)
{
    cx_import_core *core = out->core;
    cx_arena_mark mark = cx_arena_mark_now(&core->scratch);
    for (uint32_t f = 0; f < core->sources.count; f++) {
        const cx_import_window *window = window_of(core, f);
        if (window == NULL || !window->absent)
            CX_TRY(emit_file(out, f, err));
        cx_arena_reset(&core->scratch, mark);
    }
    for (size_t i = 0; i < core->entries.count; i++) {
        if ((core->entries.items[core->order[i]].flags & ENTRY_OUTSIDE) == 0)
            CX_TRY(emit_entry(out, core->order[i], err));
        cx_arena_reset(&core->scratch, mark);
    }
    return flush(out, 0, err);
}

cx_status cx_import_emit(cx_import_core *core, cx_import_write write, void *arg, cx_err *err)
{
    size_t nodes = core->entries.count + core->sources.count;
    emitter out = {.core = core, .write = write, .arg = arg};
    if (nodes > UINT32_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET, "more than 2^32 nodes");
    core->hashes = cx_alloc_zeroed(core->alloc, core->entries.count + 1, sizeof *core->hashes);
    core->output = cx_alloc_zeroed(core->alloc, nodes + 1, sizeof *core->output);
    if (core->hashes == NULL || core->output == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&out.out, core->alloc);
    cx_buf_init(&out.preimage, core->alloc);
    cx_buf_init(&out.seal, core->alloc);
    cx_status status = emit_all(&out, err);
    cx_buf_done(&out.out);
    cx_buf_done(&out.preimage);
    cx_buf_done(&out.seal);
    cx_vec_done(&out.parents, core->alloc);
    cx_vec_done(&out.ids, core->alloc);
    cx_vec_done(&out.names, core->alloc);
    return status;
}
