/*
 * step_seal.c - a lattice of others taken in whole (docs/formats/steps.md §7).
 *
 *   L1  Only what verifies is taken, and only all of it.
 *   L2  The nodes are a function of the file: the same file gives the same hashes, so that what was
 *       begun is gone on with, and what is there is a duplicate.
 *   L3  Merge order (timestamp, node_id) decides merges and which of several nodes of one number
 *       forked.  New ids keep it: where two such nodes have one time, `__source.order` is counted
 *       up until their ids are in the old order.
 *   L4  From event.__source the old hash can be computed again.
 *
 * A lattice that holds in strict mode keeps its hashes: its nodes are stored as they are.
 */
#include <stdlib.h>

#include "base/api.h"
#include "crypto/api.h"
#include "lattice/api.h"
#include "recorder/node.h"
#include "recorder/step_record.h"

#define ORDER_TRIES_MAX 1000000
/* Nodes that share a turn. */
#define TURN_NODES 512

typedef struct sealed_node {
    cx_digest hash;
    size_t line, line_size; /* in lines */
    uint32_t waiting;       /* parents that are not done */
    uint64_t entry;
    bool done, there;
} sealed_node;

typedef struct sealing {
    cx_recorder *recorder;
    cx_home *home;
    const cx_lattice *lattice;
    cx_str sender;
    bool as_is;
    cx_arena arena, scratch;
    cx_buf lines, preimage, value;
    sealed_node *nodes;
    uint32_t count;
    cx_node *order; /* parents before children */
    uint32_t ordered;
    const cx_node *by_seq; /* nodes by agent and seq, for L3 */
    uint32_t *seq_place;   /* where a node is in by_seq */
    cx_str *actors;        /* by agent of the lattice */
    uint64_t *expected;    /* steps that an agent has, by agent of the lattice */
    cx_map agents;         /* name -> index */
} sealing;

static void node_info(const sealing *s, cx_node n, cx_lattice_node_info *out)
{
    cx_lattice_node(s->lattice, n, out);
}

/* --- order ------------------------------------------------------------------------------------ */

/* Depth first, so that the steps of one agent mostly follow one another. */
static cx_status order_nodes(sealing *s, cx_err *err)
{
    cx_node *stack = CX_ARENA_ARRAY(&s->arena, cx_node, (size_t)s->count + 1);
    size_t depth = 0;
    s->order = CX_ARENA_ARRAY(&s->arena, cx_node, (size_t)s->count + 1);
    if (stack == NULL || s->order == NULL)
        return cx_fail_nomem(err);
    for (cx_node n = s->count; n-- > 0;) {
        cx_lattice_node_info info;
        node_info(s, n, &info);
        s->nodes[n].waiting = info.parent_count;
        if (info.parent_count == 0)
            stack[depth++] = n;
    }
    while (depth != 0) {
        cx_lattice_node_info info;
        cx_node n = stack[--depth];
        s->order[s->ordered++] = n;
        node_info(s, n, &info);
        for (uint32_t i = info.child_count; i-- > 0;)
            if (--s->nodes[info.children[i]].waiting == 0)
                stack[depth++] = info.children[i];
    }
    return s->ordered == s->count ? CX_SUCCESS
                                  : cx_fail(err, CX_E_FORMAT, "the lattice has a cycle");
}

typedef struct numbered {
    uint64_t agent;
    int64_t seq;
    cx_node node;
} numbered;

static int compare_numbered(const void *left, const void *right)
{
    const numbered *a = left, *b = right;
    if (a->agent != b->agent)
        return a->agent < b->agent ? -1 : 1;
    if (a->seq != b->seq)
        return a->seq < b->seq ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static cx_status agent_index(const sealing *s, cx_str name, uint64_t *out, cx_err *err)
{
    uint64_t *found = cx_map_find(&s->agents, name);
    if (found == NULL)
        return cx_fail(err, CX_E_FORMAT, "a node has no agent");
    *out = *found;
    return CX_SUCCESS;
}

static cx_status number_nodes(sealing *s, cx_err *err)
{
    numbered *list = CX_ARENA_ARRAY(&s->arena, numbered, (size_t)s->count + 1);
    cx_node *by_seq = CX_ARENA_ARRAY(&s->arena, cx_node, (size_t)s->count + 1);
    s->seq_place = CX_ARENA_ARRAY(&s->arena, uint32_t, (size_t)s->count + 1);
    if (list == NULL || by_seq == NULL || s->seq_place == NULL)
        return cx_fail_nomem(err);
    for (cx_node n = 0; n < s->count; n++) {
        cx_lattice_node_info info;
        node_info(s, n, &info);
        list[n] = (numbered){.seq = info.seq, .node = n};
        CX_TRY(agent_index(s, info.agent, &list[n].agent, err));
    }
    qsort(list, s->count, sizeof *list, compare_numbered);
    for (uint32_t i = 0; i < s->count; i++) {
        by_seq[i] = list[i].node;
        s->seq_place[list[i].node] = i;
    }
    s->by_seq = by_seq;
    return CX_SUCCESS;
}

static cx_status name_agents(sealing *s, cx_err *err)
{
    uint32_t count = cx_lattice_agent_count(s->lattice);
    s->actors = CX_ARENA_ARRAY(&s->arena, cx_str, (size_t)count + 1);
    if (s->actors == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *value;
        bool is_new;
        cx_str name = cx_lattice_agent_name(s->lattice, i);
        CX_TRY(cx_map_put(&s->agents, name, &value, &is_new, err));
        *value = i;
        CX_TRY(cx_step_actor(name, &s->arena, &s->actors[i], err));
        CX_TRY(cx_step_check_actor(s->actors[i], err));
    }
    return CX_SUCCESS;
}

/* --- the source ------------------------------------------------------------------------------- */

static const char *const own_members[] = {"agent_id", "event",       "fork_type", "hash",
                                          "node_id",  "parents",     "prev_hash", "schema_version",
                                          "seq",      "state_delta", "timestamp"};

static cx_status empty_object(cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    return cx_json_list_end_object(&list, out, err);
}

/* The version that the old hash was made with: a node need not say it, the file may. */
static cx_status old_version(sealing *s, const cx_lattice_node_info *info, const cx_json *source,
                             cx_str *out, cx_err *err)
{
    static const char *const versions[] = {"2.0.0",  "2.0",  "1.1.0",  "1.1",  "1.0.0",  "1.0",
                                           "v2.0.0", "v2.0", "v1.1.0", "v1.1", "v1.0.0", "v1.0"};
    const cx_json *listed = CX_JSON_GET(source, "parents");
    uint32_t count = listed == NULL || listed->type != CX_JSON_ARRAY ? 0 : listed->count;
    cx_str *parents = CX_ARENA_ARRAY(&s->scratch, cx_str, (size_t)count + 1);
    *out = CX_JSON_GET_STR(source, "schema_version");
    if (out->data != NULL)
        return CX_SUCCESS;
    if (parents == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < count; i++)
        parents[i] = cx_json_text(&listed->items[i]);
    for (size_t i = 0; i < CX_COUNT_OF(versions); i++) {
        char hex[64];
        const cx_lattice_fields fields = {.prev_hash = CX_JSON_GET_STR(source, "prev_hash"),
                                          .event = CX_JSON_GET(source, "event"),
                                          .seq = info->seq,
                                          .agent_id = info->agent,
                                          .schema_version = cx_str_z(versions[i]),
                                          .parents = parents,
                                          .parent_count = count};
        cx_buf_clear(&s->preimage);
        CX_TRY(cx_lattice_preimage(&s->preimage, &fields, err));
        const cx_digest digest = cx_digest_of(cx_buf_bytes(&s->preimage));
        cx_hex_encode(cx_bytes_from(digest.bytes, 32), hex);
        if (cx_str_eq(cx_str_from(hex, 64), CX_JSON_GET_STR(source, "hash"))) {
            *out = cx_str_z(versions[i]);
            return CX_SUCCESS;
        }
    }
    return CX_SUCCESS;
}

static void copy_member(cx_json_list *list, const cx_json *source, const char *name)
{
    const cx_json *value = cx_json_get(source, cx_str_z(name));
    if (value != NULL)
        cx_json_list_put(list, cx_str_z(name), *value);
}

/* Members that the format does not define. */
static cx_status put_rest(sealing *s, const cx_json *source, cx_json_list *list, cx_err *err)
{
    cx_json_list rest = cx_json_list_begin(&s->scratch);
    cx_json value;
    for (uint32_t i = 0; i < source->count; i++) {
        cx_str name = cx_json_text(&source->members[i].name);
        size_t known = 0;
        while (known < CX_COUNT_OF(own_members) && !cx_str_is(name, own_members[known]))
            known++;
        if (known == CX_COUNT_OF(own_members))
            cx_json_list_put(&rest, name, source->members[i].value);
    }
    if (rest.count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_json_list_end_object(&rest, &value, err));
    cx_json_list_put(list, CX_STR("more"), value);
    return CX_SUCCESS;
}

/* L4 */
static cx_status source_list(sealing *s, const cx_lattice_node_info *info, const cx_json *source,
                             cx_json_list *out, cx_err *err)
{
    cx_str version;
    const cx_json *event = CX_JSON_GET(source, "event");
    const cx_json *seal = event == NULL ? NULL : CX_JSON_GET(event, "__seal");
    const cx_json *older = event == NULL ? NULL : CX_JSON_GET(event, "__source");
    *out = cx_json_list_begin(&s->scratch);
    copy_member(out, source, "hash");
    copy_member(out, source, "node_id");
    copy_member(out, source, "parents");
    copy_member(out, source, "prev_hash");
    CX_TRY(old_version(s, info, source, &version, err));
    if (version.data != NULL)
        cx_json_list_put(out, CX_STR("schema_version"), cx_json_make_str(version));
    if (seal != NULL)
        cx_json_list_put(out, CX_STR("seal"), *seal);
    if (older != NULL)
        cx_json_list_put(out, CX_STR("source"), *older);
    return put_rest(s, source, out, err);
}

/* --- one node --------------------------------------------------------------------------------- */

static int compare_hash(const cx_digest *a, const cx_digest *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

/* Whether the new ids of two nodes of one time stand as the old ones did; true for others. */
static bool keeps_order(const sealing *s, cx_node n, const cx_digest *hash, cx_node other)
{
    cx_lattice_node_info a, b;
    if (other == n || !s->nodes[other].done)
        return true;
    node_info(s, n, &a);
    node_info(s, other, &b);
    if (a.timestamp != b.timestamp)
        return true;
    return (cx_str_cmp(a.id, b.id) < 0) == (compare_hash(hash, &s->nodes[other].hash) < 0);
}

/* L3: with the other parents of its children, and the other nodes of its number. */
static bool is_in_order(const sealing *s, cx_node n, const cx_lattice_node_info *info,
                        const cx_digest *hash)
{
    for (uint32_t i = 0; i < info->child_count; i++) {
        cx_lattice_node_info child;
        node_info(s, info->children[i], &child);
        for (uint32_t j = 0; child.parent_count > 1 && j < child.parent_count; j++)
            if (!keeps_order(s, n, hash, child.parents[j]))
                return false;
    }
    for (int step = -1; step <= 1; step += 2)
        for (int64_t at = (int64_t)s->seq_place[n] + step; at >= 0 && at < (int64_t)s->count;
             at += step) {
            cx_lattice_node_info other;
            node_info(s, s->by_seq[at], &other);
            if (other.seq != info->seq || !cx_str_eq(other.agent, info->agent))
                break;
            if (!keeps_order(s, n, hash, s->by_seq[at]))
                return false;
        }
    return true;
}

static cx_str fork_name(cx_fork_type type)
{
    switch (type) {
    case CX_FORK_NATURAL: return CX_STR("natural");
    case CX_FORK_OBSERVATION: return CX_STR("observation");
    case CX_FORK_INJECTION: return CX_STR("injection");
    case CX_FORK_NONE:
    case CX_FORK_UNKNOWN: break;
    }
    return (cx_str){NULL, 0};
}

static cx_status hash_text(sealing *s, cx_node n, cx_str *out, cx_err *err)
{
    char hex[64];
    cx_hex_encode(cx_bytes_from(s->nodes[n].hash.bytes, 32), hex);
    *out = cx_arena_copy_str(&s->scratch, cx_str_from(hex, sizeof hex));
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status event_list(sealing *s, const cx_lattice_node_info *info, const cx_json *source,
                            uint64_t order, cx_json_list *out, cx_err *err)
{
    cx_json_list list;
    cx_json value;
    const cx_json *event = CX_JSON_GET(source, "event");
    *out = cx_json_list_begin(&s->scratch);
    for (uint32_t i = 0; event != NULL && i < event->count; i++) {
        cx_str name = cx_json_text(&event->members[i].name);
        if (!cx_str_is(name, "__seal") && !cx_str_is(name, "__source"))
            cx_json_list_put(out, name, event->members[i].value);
    }
    CX_TRY(source_list(s, info, source, &list, err));
    if (order != 0)
        cx_json_list_put(&list, CX_STR("order"), cx_json_make_uint(&s->scratch, order));
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    cx_json_list_put(out, CX_STR("__source"), value);
    return CX_SUCCESS;
}

static cx_status write_sealed(sealing *s, cx_node n, const cx_lattice_node_info *info,
                              const cx_json *source, cx_err *err)
{
    const cx_json *delta = CX_JSON_GET(source, "state_delta");
    cx_str *parents = CX_ARENA_ARRAY(&s->scratch, cx_str, (size_t)info->parent_count + 1);
    cx_node_draft draft = {.agent_id = info->agent,
                           .seq = info->seq,
                           .fork = fork_name(info->fork_type),
                           .prev_hash = CX_STR(CX_NODE_GENESIS),
                           .parents = parents,
                           .parent_count = info->parent_count};
    size_t start = s->lines.size;
    if (parents == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < info->parent_count; i++) {
        CX_TRY(hash_text(s, info->parents[i], &parents[i], err));
        if (info->parents[i] == info->lineage)
            draft.prev_hash = parents[i];
    }
    draft.timestamp = *CX_JSON_GET(source, "timestamp");
    cx_buf_clear(&s->value);
    cx_json_write_number(&s->value, &draft.timestamp, CX_JSON_PY_COMPACT);
    cx_str text = cx_arena_copy_str(&s->scratch, cx_buf_str(&s->value));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse_text(text, &s->scratch, &draft.timestamp, err));
    if (delta != NULL)
        draft.delta = *delta;
    else
        CX_TRY(empty_object(&s->scratch, &draft.delta, err));
    for (uint64_t order = 0; order < ORDER_TRIES_MAX; order++) {
        char hex[CX_NODE_HASH_SIZE];
        cx_arena_mark mark = cx_arena_mark_now(&s->scratch);
        s->lines.size = start;
        CX_TRY(event_list(s, info, source, order, &draft.event, err));
        CX_TRY(cx_node_write(&draft, &s->scratch, &s->preimage, &s->lines, hex, err));
        cx_arena_reset(&s->scratch, mark);
        if (!cx_digest_parse(cx_str_from(hex, sizeof hex), &s->nodes[n].hash))
            return cx_fail(err, CX_E_FORMAT, "a hash is no hash");
        if (is_in_order(s, n, info, &s->nodes[n].hash))
            return CX_SUCCESS;
    }
    return cx_fail_at(err, CX_E_LIMIT, "TooManyAtOnce", CX_NO_OFFSET,
                      "node %.*s: too many nodes of one time merge here for their order to be kept",
                      (int)(info->id.size > 80 ? 80 : info->id.size), info->id.data);
}

static cx_status copy_node(sealing *s, cx_node n, const cx_lattice_node_info *info,
                           const cx_json *source, cx_err *err)
{
    CX_TRY(cx_json_write(&s->lines, source, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(&s->lines, '\n');
    if (!cx_digest_parse(info->id, &s->nodes[n].hash))
        return cx_fail(err, CX_E_FORMAT, "a node's id is no hash");
    return cx_buf_check(&s->lines, err);
}

static cx_status seal_node(sealing *s, cx_node n, cx_err *err)
{
    cx_lattice_node_info info;
    cx_json source;
    node_info(s, n, &info);
    CX_TRY(cx_lattice_source(s->lattice, n, &s->scratch, &source, err));
    s->nodes[n].line = s->lines.size;
    CX_TRY(s->as_is ? copy_node(s, n, &info, &source, err)
                    : write_sealed(s, n, &info, &source, err));
    s->nodes[n].line_size = s->lines.size - s->nodes[n].line;
    s->nodes[n].done = true;
    return CX_SUCCESS;
}

/* --- what may be taken ------------------------------------------------------------------------ */

/* L1 */
static cx_status check_holds(const cx_lattice *lattice, cx_err *err)
{
    cx_lattice_report *report = NULL;
    size_t count = 0;
    cx_lattice_node_info info = {.line = 0};
    CX_TRY(cx_lattice_verify(lattice, NULL, &report, err));
    const cx_lattice_finding *errors = cx_lattice_report_errors(report, &count);
    cx_status status = CX_SUCCESS;
    if (count != 0) {
        if (errors[0].node != CX_NODE_NONE)
            cx_lattice_node(lattice, errors[0].node, &info);
        status =
            cx_fail_at(err, CX_E_FORMAT, "NotVerified", CX_NO_OFFSET,
                       "%s at node %.*s of %.*s, line %llu: %.*s (%zu findings in all); what "
                       "does not verify is not taken",
                       cx_lattice_code_name(errors[0].code),
                       (int)(errors[0].id.size > 64 ? 64 : errors[0].id.size), errors[0].id.data,
                       (int)(errors[0].agent.size > 40 ? 40 : errors[0].agent.size),
                       errors[0].agent.data, (unsigned long long)info.line,
                       (int)(errors[0].detail.size > 80 ? 80 : errors[0].detail.size),
                       errors[0].detail.data, count);
    }
    cx_lattice_report_close(report);
    return status;
}

static cx_status is_strict(const cx_lattice *lattice, bool *out, cx_err *err)
{
    const cx_lattice_checks checks = {
        .content_ids = true, .require_seals = true, .strict_time = true, .unambiguous = true};
    cx_lattice_report *report = NULL;
    CX_TRY(cx_lattice_verify(lattice, &checks, &report, err));
    *out = cx_lattice_report_verdict(report) == CX_HOLDS;
    cx_lattice_report_close(report);
    return CX_SUCCESS;
}

/* What is about to be stored holds as well. */
static cx_status check_sealed(const sealing *s, cx_err *err)
{
    const cx_lattice_options options = {.alloc = s->recorder->alloc, .threads = 1};
    cx_lattice *sealed = NULL;
    CX_TRY(cx_lattice_open_bytes(cx_buf_bytes(&s->lines), &options, &sealed, err));
    cx_status status = check_holds(sealed, err);
    cx_lattice_close(sealed);
    return status;
}

static cx_status other_steps(cx_str agent, uint64_t count, cx_err *err)
{
    return cx_fail_at(err, CX_E_CONFLICT, "AgentExists", CX_NO_OFFSET,
                      "agent %.*s has %llu steps here that are not in the file: import it into "
                      "another data directory",
                      (int)(agent.size > 80 ? 80 : agent.size), agent.data,
                      (unsigned long long)count);
}

/* L2: an agent that is there already has these nodes and no other ones. */
static cx_status check_agents(sealing *s, cx_steps_sealed *out, cx_err *err)
{
    uint32_t agents = cx_lattice_agent_count(s->lattice);
    uint64_t *there = s->expected = CX_ARENA_ARRAY(&s->arena, uint64_t, (size_t)agents + 1);
    if (there == NULL)
        return cx_fail_nomem(err);
    memset(there, 0, ((size_t)agents + 1) * sizeof *there);
    for (cx_node n = 0; n < s->count; n++) {
        uint64_t agent = 0;
        cx_step_record record;
        cx_lattice_node_info info;
        node_info(s, n, &info);
        CX_TRY(agent_index(s, info.agent, &agent, err));
        const cx_step_key key = cx_step_key_of(CX_STEP_NODE_PREFIX, &s->nodes[n].hash);
        CX_TRY(cx_step_home_get(s->home, s->actors[agent], cx_step_key_bytes(&key), &s->scratch,
                                &record, &s->nodes[n].there, err));
        s->nodes[n].entry = s->nodes[n].there ? record.entry : 0;
        there[agent] += s->nodes[n].there;
        out->duplicates += s->nodes[n].there;
        cx_arena_reset(&s->scratch, (cx_arena_mark){0});
    }
    for (uint32_t i = 0; i < agents; i++) {
        cx_step_record head;
        bool found;
        cx_str name = cx_lattice_agent_name(s->lattice, i);
        CX_TRY(cx_step_home_get(s->home, s->actors[i], cx_str_bytes(CX_STEP_HEAD_KEY), &s->scratch,
                                &head, &found, err));
        if (found && head.count != there[i])
            return other_steps(name, head.count - there[i], err);
    }
    out->agents = agents;
    return CX_SUCCESS;
}

/* --- storing ---------------------------------------------------------------------------------- */

static cx_status put_value(sealing *s, cx_txn *txn, cx_bytes key, cx_err *err)
{
    CX_TRY(cx_buf_check(&s->value, err));
    return cx_txn_put(txn, key, cx_buf_bytes(&s->value), false, err);
}

static cx_status put_links(sealing *s, cx_txn *txn, const cx_lattice_node_info *info,
                           uint64_t agent, cx_err *err)
{
    for (uint32_t i = 0; i < info->parent_count; i++) {
        uint64_t other = 0;
        cx_lattice_node_info parent;
        node_info(s, info->parents[i], &parent);
        CX_TRY(agent_index(s, parent.agent, &other, err));
        if (other == agent)
            continue;
        const cx_step_record link = {.entry = s->nodes[info->parents[i]].entry,
                                     .agent = s->actors[other]};
        const cx_step_key key =
            cx_step_key_of(CX_STEP_LINK_PREFIX, &s->nodes[info->parents[i]].hash);
        cx_buf_clear(&s->value);
        cx_step_link_encode(&link, &s->value);
        CX_TRY(put_value(s, txn, cx_step_key_bytes(&key), err));
    }
    return CX_SUCCESS;
}

static cx_status store_node(sealing *s, cx_txn *txn, cx_node n, uint64_t agent, cx_err *err)
{
    sealed_node *node = &s->nodes[n];
    cx_step_record head, record = {.hash = node->hash};
    bool has_head;
    cx_lattice_node_info info;
    node_info(s, n, &info);
    const cx_step_key key = cx_step_key_of(CX_STEP_NODE_PREFIX, &node->hash);
    const cx_entry_draft draft = {
        .kind = CX_KIND_NODE,
        .created_at_ns = cx_recorder_now(s->recorder),
        .created_by = cx_str_bytes(s->sender),
        .payload = cx_bytes_from(s->lines.data + node->line, node->line_size - 1),
        .committed = true};
    CX_TRY(cx_step_txn_get(txn, cx_str_bytes(CX_STEP_HEAD_KEY), &head, &has_head, err));
    if ((has_head ? head.count : 0) != s->expected[agent]) /* another process wrote meanwhile */
        return other_steps(info.agent, 1, err);
    s->expected[agent]++;
    CX_TRY(cx_txn_entry(txn, &draft, &node->entry, err));
    record.seq = (uint64_t)info.seq;
    record.entry = node->entry;
    record.time = info.timestamp;
    cx_buf_clear(&s->value);
    cx_step_node_encode(&record, &s->value);
    CX_TRY(put_value(s, txn, cx_step_key_bytes(&key), err));
    const cx_step_record after = cx_step_head_after(&head, has_head, &record);
    cx_buf_clear(&s->value);
    cx_step_head_encode(&after, &s->value);
    CX_TRY(put_value(s, txn, cx_str_bytes(CX_STEP_HEAD_KEY), err));
    return put_links(s, txn, &info, agent, err);
}

/* Those of one agent that follow one another in the order, from `*at` on. */
static cx_status store_some(sealing *s, uint32_t *at, uint64_t *out_commit, uint64_t *out_stored,
                            cx_err *err)
{
    cx_lattice_node_info info;
    uint64_t agent = 0, other = 0;
    cx_txn *txn = NULL;
    node_info(s, s->order[*at], &info);
    CX_TRY(agent_index(s, info.agent, &agent, err));
    CX_TRY(cx_txn_begin(s->home, s->actors[agent], &txn, err));
    cx_status status = CX_SUCCESS;
    uint64_t count = 0;
    while (!cx_failed(status) && *at < s->ordered && count < TURN_NODES) {
        cx_node n = s->order[*at];
        node_info(s, n, &info);
        status = agent_index(s, info.agent, &other, err);
        if (cx_failed(status) || other != agent)
            break;
        if (!s->nodes[n].there) {
            status = store_node(s, txn, n, agent, err);
            count++;
        }
        ++*at;
    }
    *out_stored += count;
    if (!cx_failed(status) && count != 0)
        return cx_txn_commit_later(txn, out_commit, err);
    cx_txn_abort(txn);
    return status;
}

static cx_status store_all(sealing *s, cx_steps_sealed *out, cx_err *err)
{
    uint64_t commit = 0;
    for (uint32_t at = 0; at < s->ordered;) {
        if (s->nodes[s->order[at]].there) {
            at++;
            continue;
        }
        CX_TRY(store_some(s, &at, &commit, &out->stored, err));
    }
    return out->stored != 0 ? cx_home_wait(s->home, commit, err) : cx_home_sync(s->home, err);
}

/* --- the whole -------------------------------------------------------------------------------- */

static cx_status seal_all(sealing *s, bool dry, cx_steps_sealed *out, cx_err *err)
{
    CX_TRY(check_holds(s->lattice, err));
    CX_TRY(is_strict(s->lattice, &s->as_is, err));
    CX_TRY(name_agents(s, err));
    CX_TRY(order_nodes(s, err));
    CX_TRY(number_nodes(s, err));
    for (uint32_t i = 0; i < s->ordered; i++) {
        CX_TRY(seal_node(s, s->order[i], err));
        cx_arena_reset(&s->scratch, (cx_arena_mark){0});
    }
    CX_TRY(check_sealed(s, err));
    CX_TRY(check_agents(s, out, err));
    return dry ? CX_SUCCESS : store_all(s, out, err);
}

cx_status cx_recorder_steps_seal(cx_recorder *recorder, const cx_lattice *lattice, cx_str sender,
                                 bool dry, cx_steps_sealed *out, cx_err *err)
{
    sealing s = {.recorder = recorder,
                 .home = recorder->home,
                 .lattice = lattice,
                 .sender = sender,
                 .count = cx_lattice_count(lattice)};
    *out = (cx_steps_sealed){.stored = 0};
    cx_arena_init(&s.arena, recorder->alloc, 0);
    cx_arena_init(&s.scratch, recorder->alloc, 0);
    cx_buf_init(&s.lines, recorder->alloc);
    cx_buf_init(&s.preimage, recorder->alloc);
    cx_buf_init(&s.value, recorder->alloc);
    cx_map_init(&s.agents, recorder->alloc, cx_io_seed(cx_home_io(recorder->home)));
    s.nodes = cx_alloc_zeroed(recorder->alloc, (size_t)s.count + 1, sizeof *s.nodes);
    cx_status status = s.nodes == NULL ? cx_fail_nomem(err) : seal_all(&s, dry, out, err);
    if (s.nodes != NULL)
        cx_alloc_free(recorder->alloc, s.nodes, ((size_t)s.count + 1) * sizeof *s.nodes);
    cx_map_done(&s.agents);
    cx_buf_done(&s.value);
    cx_buf_done(&s.preimage);
    cx_buf_done(&s.lines);
    cx_arena_done(&s.scratch);
    cx_arena_done(&s.arena);
    if (!cx_failed(status) && out->stored != 0)
        cx_recorder_notify(recorder);
    return status;
}
