/*
 * record.c - one JSON object becomes one node of the skeleton.
 *
 * The rules for the object are in §2 (fields), §3 (hash) and §5.1 (seal) of
 * docs/formats/lattice.md.  One walk over the members finds all fields.
 */
#include "lattice/record.h"

#include "crypto/api.h"

void cx_lattice_batch_init(batch *b, const cx_alloc *alloc, uint64_t seed,
                           const cx_json_limits *limits)
{
    *b = (batch){.alloc = alloc, .seed = seed};
    cx_json_parser_init(&b->parser, alloc, limits);
    cx_json_recoder_init(&b->recoder, limits, 1);
    cx_arena_init(&b->values, alloc, 0);
    cx_arena_init(&b->scratch, alloc, 0);
    cx_arena_init(&b->names, alloc, 0);
    cx_buf_init(&b->work, alloc);
    cx_buf_init(&b->deltas, alloc);
    cx_map_init(&b->agent_index, alloc, seed);
}

void cx_lattice_batch_done(batch *b)
{
    cx_json_parser_done(&b->parser);
    cx_arena_done(&b->values);
    cx_arena_done(&b->scratch);
    cx_arena_done(&b->names);
    cx_buf_done(&b->work);
    cx_buf_done(&b->deltas);
    cx_map_done(&b->agent_index);
    cx_vec_done(&b->drafts, b->alloc);
    cx_vec_done(&b->refs, b->alloc);
    cx_vec_done(&b->odd, b->alloc);
    cx_vec_done(&b->complaints, b->alloc);
    cx_vec_done(&b->jobs, b->alloc);
    cx_vec_done(&b->messages, b->alloc);
    cx_vec_done(&b->digests, b->alloc);
    cx_vec_done(&b->seals, b->alloc);
    cx_vec_done(&b->agents, b->alloc);
}

void cx_lattice_batch_clear(batch *b)
{
    cx_arena_reset(&b->values, (cx_arena_mark){0});
    cx_arena_reset(&b->scratch, (cx_arena_mark){0});
    cx_buf_clear(&b->work);
    cx_buf_clear(&b->deltas);
    b->drafts.count = b->refs.count = b->odd.count = 0;
    b->complaints.count = b->jobs.count = b->seals.count = 0;
}

/* The slot a member belongs to, NULL for unknown names.  Sizes tell nearly all of them apart. */
const cx_json **cx_lattice_field_slot(record_fields *f, cx_str name)
{
#define IS(text) (memcmp(name.data, text, sizeof text - 1) == 0)
    switch (name.size) {
    case 3: return IS("seq") ? &f->seq : NULL;
    case 4: return IS("hash") ? &f->hash : NULL;
    case 5: return IS("event") ? &f->event : NULL;
    case 7: return IS("node_id") ? &f->node_id : IS("parents") ? &f->parents : NULL;
    case 8: return IS("agent_id") ? &f->agent_id : NULL;
    case 9:
        return IS("prev_hash")   ? &f->prev_hash
               : IS("timestamp") ? &f->timestamp
               : IS("fork_type") ? &f->fork_type
                                 : NULL;
    case 11: return IS("state_delta") ? &f->state_delta : NULL;
    case 14: return IS("schema_version") ? &f->schema_version : NULL;
    default: return NULL;
    }
#undef IS
}

static void find_fields(const cx_json *object, record_fields *out)
{
    *out = (record_fields){0};
    for (uint32_t i = 0; i < object->count; i++) {
        const cx_json_member *member = &object->members[i];
        const cx_json **slot =
            cx_lattice_field_slot(out, (cx_str){member->name.text, member->name.count});
        if (slot != NULL)
            *slot = &member->value;
    }
}

static cx_status add_complaint(batch *b, cx_lattice_code code, cx_str detail, cx_err *err)
{
    batch_complaint *slot = cx_vec_push(&b->complaints, b->alloc);
    if (slot == NULL || detail.data == NULL)
        return cx_fail_nomem(err);
    *slot = (batch_complaint){(uint32_t)b->drafts.count - 1, code, detail};
    return CX_SUCCESS;
}

/* A string of §2 that is not hashed inside event or delta: present and encodable. */
static bool usable_text(const cx_json *value)
{
    return value != NULL && value->type == CX_JSON_STRING &&
           (value->flags & CX_JSON_SURROGATE) == 0;
}

static const char *type_or_missing(const cx_json *value)
{
    return value == NULL ? "nothing" : cx_json_type_name(value);
}

/* NULL, or the first member that makes the record unusable (§4 E_SCHEMA), with what was found. */
static const char *unusable_field(const record_fields *f, const cx_json **out_found)
{
    *out_found = f->node_id;
    if (!usable_text(f->node_id))
        return "node_id must be a string without lone surrogates";
    *out_found = f->agent_id;
    if (!usable_text(f->agent_id))
        return "agent_id must be a string without lone surrogates";
    *out_found = f->prev_hash;
    if (!usable_text(f->prev_hash))
        return "prev_hash must be a string without lone surrogates";
    *out_found = f->hash;
    if (!usable_text(f->hash))
        return "hash must be a string without lone surrogates";
    *out_found = f->seq;
    if (f->seq == NULL || f->seq->type != CX_JSON_INT)
        return "seq must be an integer literal";
    *out_found = f->timestamp;
    if (f->timestamp == NULL || !cx_json_is_number(f->timestamp))
        return "timestamp must be a number";
    *out_found = f->event;
    if (f->event == NULL || f->event->type != CX_JSON_OBJECT)
        return "event must be an object";
    *out_found = f->state_delta;
    if (f->state_delta == NULL || f->state_delta->type != CX_JSON_OBJECT)
        return "state_delta must be an object";
    *out_found = f->fork_type;
    if (f->fork_type != NULL && f->fork_type->type != CX_JSON_NULL && !usable_text(f->fork_type))
        return "fork_type must be a string or null";
    *out_found = f->schema_version;
    if (f->schema_version != NULL && !usable_text(f->schema_version))
        return "schema_version must be a string";
    return NULL;
}

static const char *unusable_parents(const cx_json *parents, const cx_json **out_found)
{
    *out_found = parents;
    if (parents == NULL || parents->type == CX_JSON_NULL)
        return NULL;
    if (parents->type != CX_JSON_ARRAY)
        return "parents must be an array of strings, or null";
    for (uint32_t i = 0; i < parents->count; i++) {
        *out_found = &parents->items[i];
        if (!usable_text(&parents->items[i]))
            return "parents must hold strings without lone surrogates";
    }
    return NULL;
}

static const char *unusable_delta(const cx_json *delta, const cx_json **out_found)
{
    for (uint32_t i = 0; i < delta->count; i++) {
        const cx_json_member *member = &delta->members[i];
        cx_str name = {member->name.text, member->name.count};
        *out_found = &member->value;
        /* Sizes first: of other names nothing is known. */
        if (name.size == 6 && member->value.type != CX_JSON_OBJECT && cx_str_is(name, "memory"))
            return "state_delta.memory must be an object";
        if (name.size == 7 && member->value.type != CX_JSON_OBJECT && cx_str_is(name, "beliefs"))
            return "state_delta.beliefs must be an object";
        if (name.size == 5 && member->value.type != CX_JSON_ARRAY && cx_str_is(name, "goals"))
            return "state_delta.goals must be an array";
        if (name.size == 13 && member->value.type != CX_JSON_ARRAY &&
            cx_str_is(name, "context_stack"))
            return "state_delta.context_stack must be an array";
    }
    return NULL;
}

/* A text that outlives the record: as it is when it lies in the input, else a copy. */
static cx_str outliving_text(batch *b, cx_str text)
{
    uintptr_t at = (uintptr_t)text.data, start = (uintptr_t)b->input.data;
    if (at >= start && at - start < b->input.size)
        return text;
    return cx_arena_copy_str(&b->scratch, text);
}

static cx_str *push_odd(batch *b, cx_str text)
{
    cx_str copy = outliving_text(b, text);
    cx_str *slot = copy.data == NULL ? NULL : cx_vec_push(&b->odd, b->alloc);
    if (slot != NULL)
        *slot = copy;
    return slot;
}

/* -1e300 < t < 1e300, exactly: as a double, 10^300 - 1 would already be 1e300. */
static bool time_in_range(const cx_json *timestamp, double *out)
{
    if (!cx_json_double(timestamp, out))
        return false;
    if (timestamp->type == CX_JSON_DOUBLE)
        return *out > -1e300 && *out < 1e300;
    cx_str digits = cx_json_text(timestamp);
    return digits.size - (digits.data[0] == '-') <= 300;
}

/* Sets time and its flags; false when out of range or without a value. */
static bool set_time(batch *b, node *n, const cx_json *timestamp, bool *out_nomem)
{
    double value;
    if (!time_in_range(timestamp, &value))
        return false;
    if (timestamp->type == CX_JSON_DOUBLE) {
        n->time.d = value;
    } else if (cx_json_int64(timestamp, &n->time.i)) {
        n->flags |= NODE_TIME_INT;
    } else {
        if (push_odd(b, cx_json_text(timestamp)) == NULL) {
            *out_nomem = true;
            return true;
        }
        n->time.i = (int64_t)(b->odd.count - 1);
        n->flags |= NODE_TIME_BIG;
    }
    return true;
}

/* A hash field into 32 bytes; any other text goes to odd[]. */
static bool set_hash(batch *b, cx_str text, cx_digest *out, uint32_t *flags, uint32_t odd_flag)
{
    if (cx_digest_parse(text, out))
        return true;
    if (push_odd(b, text) == NULL)
        return false;
    uint32_t index = (uint32_t)(b->odd.count - 1);
    memset(out, 0, sizeof *out);
    memcpy(out->bytes, &index, sizeof index);
    *flags |= odd_flag;
    return true;
}

/* Nodes of a few agents follow each other: where to look first for a name. */
static inline uint32_t recent_slot(cx_str name)
{
    return name.size == 0 ? 0 : ((uint8_t)name.data[name.size - 1] + name.size) % BATCH_RECENT;
}

static cx_status local_agent(batch *b, cx_str name, uint32_t *out, cx_err *err)
{
    uint32_t *recent = &b->recent_agents[recent_slot(name)];
    if (*recent < b->agents.count && cx_str_eq(b->agents.items[*recent].name, name)) {
        *out = *recent;
        return CX_SUCCESS;
    }
    uint64_t *found = cx_map_find(&b->agent_index, name);
    if (found == NULL) {
        cx_str copy = cx_arena_copy_str(&b->names, name);
        batch_agent *slot = cx_vec_push(&b->agents, b->alloc);
        if (copy.data == NULL || slot == NULL)
            return cx_fail_nomem(err);
        *slot = (batch_agent){copy, NO_AGENT};
        CX_TRY(cx_map_put(&b->agent_index, copy, &found, NULL, err));
        *found = b->agents.count - 1;
    }
    *out = *recent = (uint32_t)*found;
    return CX_SUCCESS;
}

static void classify_version(node *n, cx_str version)
{
    cx_str bare = version;
    if (bare.size != 0 && bare.data[0] == 'v') {
        bare.data++;
        bare.size--;
    }
    if (cx_str_is(bare, "2.0.0") || cx_str_is(bare, "2.0"))
        n->flags |= cx_str_is(version, "2.0.0") ? NODE_VERSION_EXACT : 0;
    else if (cx_str_is(bare, "1.1") || cx_str_is(bare, "1.1.0") || cx_str_is(bare, "1.0") ||
             cx_str_is(bare, "1.0.0"))
        n->flags |= NODE_GENERATION_1;
    else
        n->flags |= NODE_VERSION_BAD;
}

static cx_fork_type fork_of(const cx_json *fork_type)
{
    if (fork_type == NULL || fork_type->type == CX_JSON_NULL)
        return CX_FORK_NONE;
    cx_str text = cx_json_text(fork_type);
    if (cx_str_is(text, "natural"))
        return CX_FORK_NATURAL;
    if (cx_str_is(text, "observation"))
        return CX_FORK_OBSERVATION;
    if (cx_str_is(text, "injection"))
        return CX_FORK_INJECTION;
    return CX_FORK_UNKNOWN;
}

/* event.merge_strategy + 1, or 0 (§7: any other value means the caller's). */
static uint32_t strategy_of(cx_str text)
{
    static const char *const names[] = {"lww", "confidence", "policy", "manual"};
    for (uint32_t i = 0; text.data != NULL && i < CX_COUNT_OF(names); i++)
        if (cx_str_is(text, names[i]))
            return i + 1;
    return 0;
}

/* Ids and agent as far as they can be told, so that findings have a name. */
static cx_status identify_record(batch *b, draft *d, const record_fields *f, cx_err *err)
{
    node *n = &d->n;
    n->agent = NO_AGENT;
    if (usable_text(f->agent_id))
        CX_TRY(local_agent(b, cx_json_text(f->agent_id), &n->agent, err));
    else
        n->flags |= NODE_NO_AGENT;
    if (usable_text(f->node_id)) {
        cx_str id = outliving_text(b, cx_json_text(f->node_id));
        if (id.data == NULL)
            return cx_fail_nomem(err);
        n->id = id.data;
        n->id_size = (uint32_t)id.size;
        d->id_hash = id_hash(b->seed, node_id(n));
        if (n->id_size == 0)
            n->flags |= NODE_NO_ID;
    } else {
        n->flags |= NODE_NO_ID;
    }
    return CX_SUCCESS;
}

static cx_status add_parents(batch *b, draft *d, const cx_json *parents, cx_err *err)
{
    d->first_ref = (uint32_t)b->refs.count;
    if (parents == NULL || parents->type != CX_JSON_ARRAY)
        return CX_SUCCESS;
    d->n.flags |= NODE_PARENTS_FIELD;
    if (!cx_vec_reserve(&b->refs, b->refs.count + parents->count, b->alloc))
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < parents->count; i++) {
        cx_str text = outliving_text(b, cx_json_text(&parents->items[i]));
        if (text.data == NULL)
            return cx_fail_nomem(err);
        b->refs.items[b->refs.count++] = (parent_ref){text, id_hash(b->seed, text)};
    }
    d->ref_count = parents->count;
    return CX_SUCCESS;
}

/* The usable kinds of E_SCHEMA (§4): the node stays in the graph. */
static cx_status note_minor(batch *b, draft *d, cx_err *err)
{
    cx_str id = node_id(&d->n);
    if (d->n.seq < 0)
        CX_TRY(add_complaint(
            b, CX_E_SCHEMA,
            cx_arena_printf(&b->scratch, "seq is %lld, expected 0 or more", (long long)d->n.seq),
            err));
    if (id.size == 0)
        CX_TRY(add_complaint(b, CX_E_SCHEMA, CX_STR("node_id is empty"), err));
    else if (memchr(id.data, ',', id.size) != NULL)
        CX_TRY(add_complaint(b, CX_E_SCHEMA,
                             CX_STR("node_id holds a comma, which separates parents"), err));
    if (b->agents.items[d->n.agent].name.size == 0)
        CX_TRY(add_complaint(b, CX_E_SCHEMA, CX_STR("agent_id is empty"), err));
    for (uint32_t i = 0; i < d->ref_count; i++) {
        if (b->refs.items[d->first_ref + i].text.size == 0) {
            CX_TRY(add_complaint(b, CX_E_SCHEMA, CX_STR("an entry of parents is empty"), err));
            break;
        }
    }
    return CX_SUCCESS;
}

static cx_status add_job(batch *b, digest_kind kind, size_t offset, const cx_digest *expected,
                         cx_err *err)
{
    digest_job *job = cx_vec_push(&b->jobs, b->alloc);
    if (job == NULL)
        return cx_fail_nomem(err);
    *job = (digest_job){.offset = offset,
                        .size = b->work.size - offset,
                        .draft = (uint32_t)b->drafts.count - 1,
                        .kind = kind};
    if (expected != NULL)
        job->expected = *expected;
    return CX_SUCCESS;
}

/* Queues the hash: prev || event || seq || agent || version || bundle (§3.1). */
static cx_status queue_hash(batch *b, const draft *d, const record *r, cx_str version, cx_err *err)
{
    const record_fields *f = &r->fields;
    const record_inside *in = &r->inside;
    cx_arena_mark mark = cx_arena_mark_now(&b->values);
    cx_str few[8];
    cx_str *parents = few;
    if (d->ref_count > CX_COUNT_OF(few) &&
        (parents = CX_ARENA_ARRAY(&b->values, cx_str, d->ref_count)) == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < d->ref_count; i++)
        parents[i] = b->refs.items[d->first_ref + i].text;
    cx_lattice_fields hashed = {
        .prev_hash = cx_json_text(f->prev_hash),
        .event = f->event,
        .seq = d->n.seq,
        .agent_id = cx_json_text(f->agent_id),
        .schema_version = version,
        .parents = parents,
        .parent_count = d->ref_count,
    };
    size_t offset = b->work.size;
    if (in->head.data != NULL) {
        offset = (size_t)((const uint8_t *)in->head.data - b->work.data);
        cx_buf_advance(&b->work, offset + in->head.size - b->work.size);
        CX_TRY(cx_lattice_preimage_tail(&b->work, &hashed, err));
    } else {
        CX_TRY(cx_lattice_preimage(&b->work, &hashed, err));
    }
    cx_arena_reset(&b->values, mark);
    return add_job(b, DIGEST_HASH, offset, &d->n.hash, err);
}

/* Queues the seal when it is there to be checked, or wanted for an anchor (§5). */
static cx_status queue_seal(batch *b, draft *d, const record *r, cx_err *err)
{
    const record_fields *f = &r->fields;
    const record_inside *in = &r->inside;
    if (in->has_seal)
        d->n.flags |= NODE_HAS_SEAL;
    cx_digest expected;
    bool readable = in->seal.data != NULL && cx_digest_parse(in->seal, &expected);
    if (in->has_seal && !readable) {
        d->n.flags |= NODE_SEAL_BAD;
        CX_TRY(add_complaint(b, CX_E_SEAL, CX_STR("__seal is not 64 lower-case hex digits"), err));
    }
    if (!readable && !b->keep_seals)
        return CX_SUCCESS;
    cx_str fork_type = {NULL, 0};
    if (f->fork_type != NULL && f->fork_type->type == CX_JSON_STRING)
        fork_type = cx_json_text(f->fork_type);
    size_t offset = b->work.size;
    cx_lattice_seal_preimage_begin(&b->work, fork_type);
    if (in->delta.data != NULL)
        cx_buf_add_str(&b->work, in->delta);
    else
        CX_TRY(cx_json_write(&b->work, f->state_delta, CX_JSON_PY_COMPACT, err));
    CX_TRY(cx_lattice_seal_preimage_end(&b->work, f->timestamp, err));
    return add_job(b, readable ? DIGEST_SEAL : DIGEST_STORE, offset, readable ? &expected : NULL,
                   err);
}

static cx_status set_unusable(batch *b, draft *d, const char *problem, const char *found,
                              cx_err *err)
{
    d->n.flags |= NODE_UNUSABLE;
    return add_complaint(b, CX_E_SCHEMA,
                         cx_arena_printf(&b->scratch, "%s, found %s", problem, found), err);
}

static cx_status store_delta(batch *b, draft *d, const record *r, cx_err *err)
{
    size_t start = b->deltas.size;
    if (r->inside.delta.data != NULL)
        cx_buf_advance(&b->deltas, r->inside.delta.size);
    else
        CX_TRY(cx_json_write(&b->deltas, r->fields.state_delta, CX_JSON_PY_COMPACT, err));
    d->delta = (cx_str){NULL, b->deltas.size - start};
    return CX_SUCCESS;
}

/* The fields that node.flags and the skeleton take over, of a record that is usable. */
static cx_status copy_fields(batch *b, draft *d, const record_fields *f, cx_err *err)
{
    if (!set_hash(b, cx_json_text(f->hash), &d->n.hash, &d->n.flags, NODE_HASH_ODD) ||
        !set_hash(b, cx_json_text(f->prev_hash), &d->n.prev, &d->n.flags, NODE_PREV_ODD))
        return cx_fail_nomem(err);

    static const cx_digest zeros;
    cx_str prev = cx_json_text(f->prev_hash);
    if (prev.size == 0 || cx_str_is(prev, "GENESIS") ||
        ((d->n.flags & NODE_PREV_ODD) == 0 && cx_digest_eq(&d->n.prev, &zeros)))
        d->n.flags |= NODE_GENESIS_PREV;
    if (cx_str_eq(node_id(&d->n), cx_json_text(f->hash)))
        d->n.flags |= NODE_ID_IS_HASH;
    return CX_SUCCESS;
}

/* The version and the fork type, which may be of a kind we do not know. */
static cx_status copy_kinds(batch *b, draft *d, const record_fields *f, cx_str version, cx_err *err)
{
    classify_version(&d->n, version);
    if (d->n.flags & NODE_VERSION_BAD) {
        cx_str found = shortened(version, 40);
        CX_TRY(
            add_complaint(b, CX_E_VERSION,
                          cx_arena_printf(&b->scratch, "schema_version is '%.*s', expected 2.0.0",
                                          (int)found.size, found.data),
                          err));
    }
    d->n.flags |= (uint32_t)fork_of(f->fork_type) << NODE_FORK_SHIFT;
    if (node_fork(&d->n) == CX_FORK_UNKNOWN)
        CX_TRY(add_complaint(b, CX_E_FORK_TYPE,
                             CX_STR("fork_type is none of natural, observation, injection"), err));
    return CX_SUCCESS;
}

static cx_status check_record(batch *b, draft *d, const record *r, cx_str version, cx_err *err)
{
    const record_fields *f = &r->fields;
    const cx_json *found = NULL;
    const char *problem = unusable_field(f, &found);
    if (problem == NULL)
        problem = unusable_parents(f->parents, &found);
    if (problem == NULL)
        problem = unusable_delta(f->state_delta, &found);
    if (problem != NULL)
        return set_unusable(b, d, problem, type_or_missing(found), err);
    bool nomem = false;
    if (!cx_json_int64(f->seq, &d->n.seq))
        return set_unusable(b, d, "seq must be below 2^63", "more", err);
    if (!set_time(b, &d->n, f->timestamp, &nomem))
        return set_unusable(b, d, "timestamp must lie between -1e300 and 1e300", "more", err);
    if (!cx_json_has_canonical(f->event) || !cx_json_has_canonical(f->state_delta))
        return set_unusable(b, d, "event and state_delta need a canonical form",
                            "a number that overflows a double", err);
    if (nomem)
        return cx_fail_nomem(err);
    if (f->schema_version != NULL)
        version = cx_json_text(f->schema_version);
    CX_TRY(copy_fields(b, d, f, err));
    CX_TRY(copy_kinds(b, d, f, version, err));
    d->n.flags |= strategy_of(r->inside.strategy) << NODE_STRATEGY_SHIFT;
    if (r->inside.failed)
        d->n.flags |= NODE_FAILED;
    CX_TRY(add_parents(b, d, f->parents, err));
    CX_TRY(note_minor(b, d, err));
    CX_TRY(queue_hash(b, d, r, version, err));
    CX_TRY(queue_seal(b, d, r, err));
    return b->keep_deltas ? store_delta(b, d, r, err) : CX_SUCCESS;
}

/* A draft of nothing.  Piece by piece: clearing one large object costs more than all of them. */
static void clear_draft(draft *d, uint64_t offset, uint64_t line)
{
    d->n.hash = d->n.prev = (cx_digest){0};
    d->n.offset = offset;
    d->n.line = line <= UINT32_MAX ? (uint32_t)line : 0;
    d->n.lineage = CX_NODE_NONE;
    d->n.id = NULL;
    d->n.id_size = 0;
    d->n.agent = NO_AGENT;
    d->n.seq = d->n.time.i = 0;
    d->n.first_parent = d->n.parent_count = d->n.flags = 0;
    d->id_hash = 0;
    d->first_ref = d->ref_count = 0;
    d->delta = (cx_str){NULL, 0};
}

cx_status cx_lattice_batch_add_record(batch *b, const record *r, cx_str version, uint64_t offset,
                                      uint64_t line, cx_err *err)
{
    draft *d = cx_vec_push(&b->drafts, b->alloc);
    if (d == NULL)
        return cx_fail_nomem(err);
    if (b->keep_seals) {
        cx_digest *seal = cx_vec_push(&b->seals, b->alloc);
        if (seal == NULL)
            return cx_fail_nomem(err);
        memset(seal, 0, sizeof *seal);
    }
    clear_draft(d, offset, line);
    CX_TRY(identify_record(b, d, &r->fields, err));
    return check_record(b, d, r, version, err);
}

cx_status cx_lattice_batch_add(batch *b, const cx_json *value, cx_str version, uint64_t offset,
                               uint64_t line, cx_err *err)
{
    if (value->type != CX_JSON_OBJECT)
        return cx_fail_at(err, CX_E_FORMAT, "U_SHAPE", offset, "found %s, expected a node object",
                          cx_json_type_name(value));
    record r;
    find_fields(value, &r.fields);
    const cx_json *event = r.fields.event;
    r.inside = (record_inside){.strategy = CX_JSON_GET_STR(event, "merge_strategy"),
                               .seal = CX_JSON_GET_STR(event, "__seal"),
                               .has_seal = CX_JSON_GET(event, "__seal") != NULL,
                               .failed = cx_lattice_failed_event(event)};
    return cx_lattice_batch_add_record(b, &r, version, offset, line, err);
}

static cx_status finish_job(batch *b, const digest_job *job, const cx_digest *got, cx_err *err)
{
    draft *d = &b->drafts.items[job->draft];
    if (b->keep_seals && job->kind != DIGEST_HASH)
        b->seals.items[job->draft] = *got;
    if (job->kind == DIGEST_STORE)
        return CX_SUCCESS;
    bool odd = job->kind == DIGEST_HASH && (d->n.flags & NODE_HASH_ODD) != 0;
    if (!odd && cx_digest_eq(got, &job->expected))
        return CX_SUCCESS;
    char recomputed[64], written[64];
    cx_hex_encode(cx_bytes_from(got->bytes, sizeof got->bytes), recomputed);
    cx_hex_encode(cx_bytes_from(job->expected.bytes, sizeof job->expected.bytes), written);
    batch_complaint *slot = cx_vec_push(&b->complaints, b->alloc);
    cx_str detail =
        odd ? cx_arena_printf(&b->scratch, "recomputed %.64s, found no 64 lower-case hex digits",
                              recomputed)
            : cx_arena_printf(&b->scratch, "recomputed %.64s, found %.64s", recomputed, written);
    if (slot == NULL || detail.data == NULL)
        return cx_fail_nomem(err);
    bool is_hash = job->kind == DIGEST_HASH;
    *slot = (batch_complaint){job->draft, is_hash ? CX_E_HASH : CX_E_SEAL, detail};
    d->n.flags |= is_hash ? NODE_HASH_BAD : NODE_SEAL_BAD;
    return CX_SUCCESS;
}

cx_status cx_lattice_batch_digest(batch *b, cx_err *err)
{
    size_t count = b->jobs.count;
    if (!cx_vec_reserve(&b->messages, count, b->alloc) ||
        !cx_vec_reserve(&b->digests, count, b->alloc))
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        b->messages.items[i] =
            (cx_bytes){b->work.data + b->jobs.items[i].offset, b->jobs.items[i].size};
    cx_digest_many(b->messages.items, b->digests.items, count);
    for (size_t i = 0; i < count; i++)
        CX_TRY(finish_job(b, &b->jobs.items[i], &b->digests.items[i], err));
    return CX_SUCCESS;
}
