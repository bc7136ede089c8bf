/*
 * step.c - steps into the ledger, each once, as nodes of their agent's history.
 *
 *   S1  What a step is linked to is decided inside the transaction of its agent, over what
 *       earlier transactions and this one have put: two writers never follow the same node unless
 *       one asked for a fork.
 *   S2  Parents of other agents are looked up before the transaction: a node never changes.
 *   S3  A node is never earlier than a parent, and a fork later than all nodes of its agent, so
 *       that the node that did not fork comes first in merge order (lattice.md §4).
 *   S4  What is said to be there is on the disk before that is said; steps of one agent share a
 *       transaction, and transactions a sync.
 */
#include "recorder/step.h"

#include <math.h>
#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"
#include "recorder/node.h"
#include "recorder/sensitive_mark.h"
#include "recorder/step_record.h"

#define MICRO 1000000.0
/* Microseconds are exact in a double until the year 2255. */
#define TIME_MAX_S 9007199254.0

typedef struct step_taking {
    cx_recorder *recorder;
    cx_home *home;
    cx_str sender;
    int64_t now_ns;
    cx_trust_view *trust; /* NULL = not needed so far */
    cx_arena arena;       /* of one step */
    cx_buf scratch, line, value;
    cx_map blocked; /* agents of which a step was not taken */
    bool all_blocked;
    cx_arena names; /* of blocked */
    cx_txn *txn;    /* of `actor`; NULL = none */
    char actor[CX_ACTOR_SIZE_MAX];
    size_t actor_size;
    bool wrote;  /* in this transaction */
    bool broken; /* half of a step was put: the transaction must not be committed */
    bool wrote_any;
    uint64_t last_commit;
} step_taking;

/* One step on its way. */
typedef struct step_item {
    const cx_step *step;
    cx_step_taken *taken;
    cx_str actor;
    cx_step_record head;
    bool has_head;
    cx_step_found *parents;                        /* one for each that was named; found ones */
    cx_step_record links[CX_STEP_PARENTS_MAX + 1]; /* as the node will have them */
    cx_str link_actors[CX_STEP_PARENTS_MAX + 1];   /* data NULL = the agent's own */
    size_t link_count;
    const cx_step_record *own; /* the predecessor; NULL = none */
    cx_sensitive_list found;
    cx_step masked; /* without what is masked */
} step_item;

const char *cx_step_status_name(cx_step_status status)
{
    static const char *const names[] = {"stored", "duplicate", "conflict", "rejected", "skipped"};
    return names[status];
}

void cx_steps_count(const cx_step_taken *taken, size_t count, uint64_t out[CX_STEP_SKIPPED + 1])
{
    for (size_t i = 0; i <= CX_STEP_SKIPPED; i++)
        out[i] = 0;
    for (size_t i = 0; i < count; i++)
        out[taken[i].status]++;
}

/* --- refusing --------------------------------------------------------------------------------- */

/* The step's agent is not gone on with; an error only when memory runs out. */
static cx_status block_agent(step_taking *t, const cx_step *step, cx_err *err)
{
    uint64_t *value;
    bool is_new;
    if (step->agent.data == NULL) {
        t->all_blocked = true;
        return CX_SUCCESS;
    }
    cx_str name = cx_arena_copy_str(&t->names, step->agent);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    return cx_map_put(&t->blocked, name, &value, &is_new, err);
}

static bool is_blocked(const step_taking *t, const cx_step *step)
{
    return t->all_blocked ||
           (step->agent.data != NULL && cx_map_find(&t->blocked, step->agent) != NULL);
}

static void show_head(step_item *it)
{
    it->taken->has_head = it->has_head;
    if (!it->has_head)
        return;
    cx_hex_encode(cx_bytes_from(it->head.hash.bytes, sizeof it->head.hash.bytes), it->taken->head);
    it->taken->head[CX_STEP_HASH_SIZE] = 0;
    it->taken->head_seq = (int64_t)it->head.seq;
}

/* A failure that is the sender's doing is the step's result; others go on up. */
static bool is_of_step(cx_status status)
{
    return status.code == CX_E_FORMAT || status.code == CX_E_NOT_FOUND ||
           status.code == CX_E_CONFLICT || status.code == CX_E_USAGE || status.code == CX_E_LIMIT ||
           status.code == CX_E_DENIED;
}

static cx_status resolve_problem(step_taking *t, step_item *it, cx_status status,
                                 const cx_err *problem, cx_err *err)
{
    if (t->broken || !is_of_step(status) ||
        (problem->tag != NULL && strcmp(problem->tag, "LogDamaged") == 0)) {
        if (err != NULL)
            *err = *problem;
        return status;
    }
    it->taken->status = status.code == CX_E_CONFLICT ? CX_STEP_CONFLICT : CX_STEP_REJECTED;
    it->taken->problem = *problem;
    return block_agent(t, it->step, err);
}

/* --- transactions ----------------------------------------------------------------------------- */

static cx_status end_txn(step_taking *t, cx_err *err)
{
    cx_txn *txn = t->txn;
    t->txn = NULL;
    if (txn == NULL)
        return CX_SUCCESS;
    if (!t->wrote) {
        cx_txn_abort(txn);
        return CX_SUCCESS;
    }
    t->wrote = false;
    t->wrote_any = true;
    return cx_txn_commit_later(txn, &t->last_commit, err);
}

static cx_status need_txn(step_taking *t, cx_str actor, cx_err *err)
{
    if (t->txn != NULL && cx_str_eq(cx_str_from(t->actor, t->actor_size), actor))
        return CX_SUCCESS;
    CX_TRY(end_txn(t, err));
    CX_TRY(cx_txn_begin(t->home, actor, &t->txn, err));
    memcpy(t->actor, actor.data, actor.size);
    t->actor_size = actor.size;
    return CX_SUCCESS;
}

/* --- signatures ------------------------------------------------------------------------------- */

static cx_status refuse_signature(const cx_step *step, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_DENIED, "BadSignature", CX_NO_OFFSET, "signature of key '%.*s': %s",
                      (int)(step->key_id.size > 80 ? 80 : step->key_id.size), step->key_id.data,
                      what);
}

static cx_status need_trust(step_taking *t, cx_err *err)
{
    uint64_t entries = 0;
    CX_TRY(cx_recorder_trust_entries(t->home, &entries, err));
    if (t->trust != NULL && t->trust->entries == entries)
        return CX_SUCCESS;
    cx_recorder_trust_release(t->recorder, t->trust);
    t->trust = NULL;
    return cx_recorder_trust_acquire(t->recorder, &t->trust, err);
}

static cx_status check_signature(step_taking *t, const cx_step *step, cx_err *err)
{
    if (step->key_id.data == NULL)
        return CX_SUCCESS;
    CX_TRY(need_trust(t, err));
    const cx_trust_key *key = cx_trust_find(&t->trust->trust, step->key_id);
    if (key == NULL)
        return refuse_signature(step, "this key is not registered; 'cortex key add' registers it",
                                err);
    if (key->revoked_at != CX_TIME_NONE)
        return refuse_signature(step, "this key was revoked", err);
    if (!cx_trust_key_is_current(key, t->now_ns))
        return refuse_signature(step, "this key is not valid now", err);
    if (!cx_trust_key_may_sign_for(key, step->agent))
        return refuse_signature(step, "this key may not sign for this agent", err);
    cx_buf_clear(&t->scratch);
    cx_buf_add_z(&t->scratch, CX_STEP_SIGNED_PREFIX);
    cx_buf_add_str(&t->scratch, step->signed_text);
    CX_TRY(cx_buf_check(&t->scratch, err));
    if (!cx_ed25519_verify(&key->key, cx_buf_bytes(&t->scratch), &step->signature))
        return refuse_signature(step,
                                "it is not of this step; what is signed is \"cortex.step.v1\", LF, "
                                "and the canonical JSON of the step without its signature",
                                err);
    return CX_SUCCESS;
}

/* --- parents ---------------------------------------------------------------------------------- */

static bool names_own_head(const cx_step *step, const cx_step_parent *parent)
{
    cx_str name = parent->node;
    if (name.data == NULL || name.size < 2 || name.data[0] != '@')
        return false;
    name = cx_str_from(name.data + 1, name.size - 1);
    if (cx_str_starts(name, CX_STR("agent/")))
        name = cx_str_from(name.data + 6, name.size - 6);
    return cx_str_eq(name, step->agent);
}

static cx_status get_own_node(step_taking *t, const cx_digest *hash, cx_step_found *out,
                              cx_err *err)
{
    const cx_step_key key = cx_step_key_of(CX_STEP_NODE_PREFIX, hash);
    CX_TRY(cx_step_txn_get(t->txn, cx_step_key_bytes(&key), &out->node, &out->found, err));
    out->node.hash = *hash;
    return CX_SUCCESS;
}

/* S1: what can be told inside the transaction; found or not. */
static cx_status find_inside(step_taking *t, step_item *it, const cx_step_parent *parent,
                             cx_step_found *out, cx_err *err)
{
    cx_digest hash;
    *out = (cx_step_found){.found = false};
    if (names_own_head(it->step, parent)) {
        out->node = it->head;
        out->found = it->has_head;
        return CX_SUCCESS;
    }
    if (parent->node.data != NULL)
        return cx_digest_parse(parent->node, &hash) ? get_own_node(t, &hash, out, err) : CX_SUCCESS;
    if (parent->agent.data != NULL && !cx_str_eq(parent->agent, it->step->agent))
        return CX_SUCCESS;
    cx_step_record sent;
    bool found;
    const cx_digest digest = cx_digest_of(cx_str_bytes(parent->key));
    const cx_step_key key = cx_step_key_of(CX_STEP_KEY_PREFIX, &digest);
    CX_TRY(cx_step_txn_get(t->txn, cx_step_key_bytes(&key), &sent, &found, err));
    return found ? get_own_node(t, &sent.hash, out, err) : CX_SUCCESS;
}

static cx_status read_head(step_taking *t, step_item *it, cx_err *err)
{
    CX_TRY(need_txn(t, it->actor, err));
    return cx_step_txn_get(t->txn, cx_str_bytes(CX_STEP_HEAD_KEY), &it->head, &it->has_head, err);
}

/* S2: all that is not found inside the transaction is looked up outside, and the transaction begun
 * again. */
static cx_status find_parents(step_taking *t, step_item *it, cx_err *err)
{
    const cx_step *step = it->step;
    bool outside = false;
    it->parents = CX_ARENA_ARRAY(&t->arena, cx_step_found, step->parent_count + 1);
    if (it->parents == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < step->parent_count; i++) {
        CX_TRY(find_inside(t, it, &step->parents[i], &it->parents[i], err));
        outside = outside || !it->parents[i].found;
    }
    if (!outside)
        return CX_SUCCESS;
    CX_TRY(end_txn(t, err));
    for (size_t i = 0; i < step->parent_count; i++)
        if (!it->parents[i].found)
            CX_TRY(cx_step_find(t->home, it->actor, &step->parents[i], &t->arena, &it->parents[i],
                                err));
    CX_TRY(read_head(t, it, err));
    /* Meanwhile "@" of the own agent may mean another node. */
    for (size_t i = 0; i < step->parent_count; i++)
        if (names_own_head(step, &step->parents[i]))
            CX_TRY(find_inside(t, it, &step->parents[i], &it->parents[i], err));
    return CX_SUCCESS;
}

static void add_link(step_item *it, const cx_step_record *node, cx_str actor)
{
    for (size_t i = 0; i < it->link_count; i++)
        if (cx_digest_eq(&it->links[i].hash, &node->hash))
            return;
    it->links[it->link_count] = *node;
    it->link_actors[it->link_count++] = actor;
}

static cx_status not_the_head(step_item *it, cx_err *err)
{
    char head[CX_STEP_HASH_SIZE + 1];
    show_head(it);
    memcpy(head, it->taken->head, sizeof head);
    return cx_fail_at(err, CX_E_CONFLICT, "NotTheHead", CX_NO_OFFSET,
                      "another step of %.*s came after this parent: its newest node is %s (seq "
                      "%lld); follow that one, or ask for a fork",
                      (int)(it->step->agent.size > 80 ? 80 : it->step->agent.size),
                      it->step->agent.data, head, (long long)it->taken->head_seq);
}

/* The node's parents, and which of them is its predecessor. */
static cx_status link_step(step_item *it, cx_err *err)
{
    const cx_step *step = it->step;
    const cx_str own = {NULL, 0};
    for (size_t i = 0; i < step->parent_count; i++) {
        const cx_step_found *parent = &it->parents[i];
        bool is_own = parent->actor.data == NULL || cx_str_eq(parent->actor, it->actor);
        add_link(it, &parent->node, is_own ? own : parent->actor);
    }
    for (size_t i = 0; i < it->link_count; i++) {
        if (it->link_actors[i].data != NULL)
            continue;
        bool is_head = it->has_head && cx_digest_eq(&it->links[i].hash, &it->head.hash);
        if (it->own == NULL || it->links[i].seq > it->own->seq ||
            (it->links[i].seq == it->own->seq && is_head))
            it->own = &it->links[i];
    }
    if (it->own == NULL && it->has_head) {
        add_link(it, &it->head, own);
        it->own = &it->links[it->link_count - 1];
    }
    if (it->own != NULL && !cx_digest_eq(&it->own->hash, &it->head.hash) && !step->fork)
        return not_the_head(it, err);
    return CX_SUCCESS;
}

/* Compare-and-append: the sender says which head it knows. */
static cx_status check_head(step_item *it, cx_err *err)
{
    cx_digest expected;
    const cx_step *step = it->step;
    if (!step->has_head)
        return CX_SUCCESS;
    bool same = step->head.data == NULL ? !it->has_head
                                        : it->has_head && cx_digest_parse(step->head, &expected) &&
                                              cx_digest_eq(&expected, &it->head.hash);
    if (same)
        return CX_SUCCESS;
    show_head(it);
    cx_str given = step->head.data == NULL ? CX_STR("null") : step->head;
    if (!it->has_head)
        return cx_fail_at(err, CX_E_CONFLICT, "HeadMoved", CX_NO_OFFSET,
                          "expected head %.*s, found an agent without steps", (int)given.size,
                          given.data);
    return cx_fail_at(err, CX_E_CONFLICT, "HeadMoved", CX_NO_OFFSET,
                      "expected head %.*s, found %s (seq %lld): read on from there and send the "
                      "step again",
                      (int)given.size, given.data, it->taken->head, (long long)it->taken->head_seq);
}

/* --- time ------------------------------------------------------------------------------------- */

static cx_status time_text(int64_t micros, cx_arena *arena, cx_json *out, double *out_time,
                           cx_err *err)
{
    CX_TRY(cx_node_seconds(micros * 1000, arena, out, err));
    if (!cx_json_double(out, out_time))
        return cx_fail(err, CX_E_FORMAT, "timestamp: out of range");
    return CX_SUCCESS;
}

static cx_status bad_time(cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadStep", CX_NO_OFFSET,
                      "timestamp: found a time outside of 1970 to 2255, expected seconds since "
                      "1970");
}

/* S3.  *out_moved: it is not the one that the sender gave. */
static cx_status choose_time(step_taking *t, const step_item *it, cx_json *out, double *out_time,
                             bool *out_moved, cx_err *err)
{
    double given = (double)(t->now_ns / 1000) / MICRO, least = 0;
    const cx_json *stamp = it->step->timestamp;
    bool is_fork = it->own != NULL && !cx_digest_eq(&it->own->hash, &it->head.hash);
    if (stamp != NULL && !cx_json_double(stamp, &given))
        return bad_time(err);
    for (size_t i = 0; i < it->link_count; i++)
        least = it->links[i].time > least ? it->links[i].time : least;
    if (is_fork && it->head.latest > least)
        least = it->head.latest;
    if (!(given >= 0 && given <= TIME_MAX_S && least <= TIME_MAX_S))
        return bad_time(err);
    int64_t micros = (int64_t)floor(given * MICRO + 0.5);
    CX_TRY(time_text(micros, &t->arena, out, out_time, err));
    if (*out_time < least || (is_fork && *out_time <= least)) {
        micros = (int64_t)floor(least * MICRO);
        do
            CX_TRY(time_text(micros++, &t->arena, out, out_time, err));
        while (*out_time < least || (is_fork && *out_time <= least));
    }
    *out_moved = stamp != NULL && !(given == *out_time);
    return CX_SUCCESS;
}

/* --- the node --------------------------------------------------------------------------------- */

/* {"key_id","signature","step"}: with event and state_delta, `step` is what was signed. */
static cx_status put_signature(step_taking *t, const cx_step *step, cx_json_list *event,
                               cx_err *err)
{
    cx_json_list list = cx_json_list_begin(&t->arena);
    cx_json value;
    if (step->key_id.data == NULL)
        return CX_SUCCESS;
    cx_buf_clear(&t->scratch);
    cx_base64_add(&t->scratch, cx_bytes_from(step->signature.bytes, sizeof step->signature.bytes),
                  CX_BASE64);
    CX_TRY(cx_buf_check(&t->scratch, err));
    cx_str text = cx_arena_copy_str(&t->arena, cx_buf_str(&t->scratch));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    cx_json_list_put(&list, CX_STR("key_id"), cx_json_make_str(step->key_id));
    cx_json_list_put(&list, CX_STR("signature"), cx_json_make_str(text));
    cx_json_list_put(&list, CX_STR("step"), step->signed_members);
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    cx_json_list_put(event, CX_STR("__signature"), value);
    return CX_SUCCESS;
}

static cx_status draft_node(step_taking *t, step_item *it, cx_node_draft *out, double *out_time,
                            cx_err *err)
{
    const cx_step *step = it->step;
    cx_json_list none = cx_json_list_begin(&t->arena);
    bool moved = false;
    *out = (cx_node_draft){.agent_id = step->agent, .fork = step->fork_type};
    CX_TRY(choose_time(t, it, &out->timestamp, out_time, &moved, err));
    if (it->own != NULL && it->own->seq >= INT64_MAX)
        return cx_fail(err, CX_E_LIMIT, "the agent has no number left for another step");
    out->seq = it->own == NULL ? 0 : (int64_t)it->own->seq + 1;
    if (it->own != NULL && !cx_digest_eq(&it->own->hash, &it->head.hash) && out->fork.data == NULL)
        out->fork = CX_STR("natural");
    out->event = cx_json_list_begin(&t->arena);
    for (uint32_t i = 0; step->event != NULL && i < step->event->count; i++)
        cx_json_list_put(&out->event, cx_json_text(&step->event->members[i].name),
                         step->event->members[i].value);
    if (moved)
        cx_json_list_put(&out->event, CX_STR("__time"), *step->timestamp);
    CX_TRY(put_signature(t, step, &out->event, err));
    if (step->delta != NULL)
        out->delta = *step->delta;
    else
        CX_TRY(cx_json_list_end_object(&none, &out->delta, err));
    return CX_SUCCESS;
}

static cx_status write_node(step_taking *t, step_item *it, cx_step_record *out, cx_err *err)
{
    cx_node_draft draft;
    cx_str *parents = CX_ARENA_ARRAY(&t->arena, cx_str, it->link_count + 1);
    if (parents == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < it->link_count; i++) {
        char hex[CX_STEP_HASH_SIZE];
        cx_hex_encode(cx_bytes_from(it->links[i].hash.bytes, 32), hex);
        parents[i] = cx_arena_copy_str(&t->arena, cx_str_from(hex, sizeof hex));
        if (parents[i].data == NULL)
            return cx_fail_nomem(err);
    }
    const cx_str own = it->own != NULL ? parents[it->own - it->links] : (cx_str){NULL, 0};
    CX_TRY(draft_node(t, it, &draft, &out->time, err));
    draft.prev_hash = own.data != NULL      ? own
                      : it->link_count != 0 ? parents[0]
                                            : CX_STR(CX_NODE_GENESIS);
    draft.parents = parents;
    draft.parent_count = it->link_count;
    cx_buf_clear(&t->line);
    CX_TRY(cx_node_write(&draft, &t->arena, &t->scratch, &t->line, it->taken->hash, err));
    it->taken->hash[CX_STEP_HASH_SIZE] = 0;
    out->seq = (uint64_t)draft.seq;
    if (!cx_digest_parse(cx_str_from(it->taken->hash, CX_STEP_HASH_SIZE), &out->hash))
        return cx_fail(err, CX_E_FORMAT, "a hash is no hash");
    return CX_SUCCESS;
}

/* --- the records ------------------------------------------------------------------------------ */

static cx_status put_value(step_taking *t, cx_bytes key, cx_err *err)
{
    CX_TRY(cx_buf_check(&t->value, err));
    return cx_txn_put(t->txn, key, cx_buf_bytes(&t->value), false, err);
}

static cx_status put_records(step_taking *t, step_item *it, cx_step_record *node, cx_err *err)
{
    cx_step_key key = cx_step_key_of(CX_STEP_NODE_PREFIX, &node->hash);
    const cx_step_record head = cx_step_head_after(&it->head, it->has_head, node);
    cx_buf_clear(&t->value);
    cx_step_node_encode(node, &t->value);
    CX_TRY(put_value(t, cx_step_key_bytes(&key), err));
    cx_buf_clear(&t->value);
    cx_step_head_encode(&head, &t->value);
    CX_TRY(put_value(t, cx_str_bytes(CX_STEP_HEAD_KEY), err));
    for (size_t i = 0; i < it->link_count; i++) {
        if (it->link_actors[i].data == NULL)
            continue;
        cx_step_record link = it->links[i];
        link.agent = it->link_actors[i];
        key = cx_step_key_of(CX_STEP_LINK_PREFIX, &link.hash);
        cx_buf_clear(&t->value);
        cx_step_link_encode(&link, &t->value);
        CX_TRY(put_value(t, cx_step_key_bytes(&key), err));
    }
    if (it->step->key.data == NULL)
        return CX_SUCCESS;
    cx_step_record sent = *node;
    const cx_digest digest = cx_digest_of(cx_str_bytes(it->step->key));
    sent.content = it->step->content;
    key = cx_step_key_of(CX_STEP_KEY_PREFIX, &digest);
    cx_buf_clear(&t->value);
    cx_step_sent_encode(&sent, &t->value);
    return put_value(t, cx_step_key_bytes(&key), err);
}

/* From here on a failure is not the sender's: half of a step must not be committed. */
static cx_status put_node(step_taking *t, step_item *it, cx_step_record *node, cx_err *err)
{
    const cx_entry_draft draft = {.kind = CX_KIND_NODE,
                                  .created_at_ns = t->now_ns,
                                  .created_by = cx_str_bytes(t->sender),
                                  .payload = cx_bytes_from(t->line.data, t->line.size - 1),
                                  .committed = true};
    t->broken = true;
    const cx_mark mark = {.found = &it->found, .is_signed = it->step->key_id.data != NULL};
    CX_TRY(cx_txn_entry(t->txn, &draft, &node->entry, err));
    CX_TRY(cx_recorder_mark_put(t->txn, node->entry, &mark, err));
    CX_TRY(put_records(t, it, node, err));
    t->broken = false;
    t->wrote = true;
    it->taken->status = CX_STEP_STORED;
    it->taken->seq = (int64_t)node->seq;
    it->taken->entry = node->entry;
    return CX_SUCCESS;
}

/* --- one step --------------------------------------------------------------------------------- */

/* *out_done: the key was there. */
static cx_status check_key(step_taking *t, step_item *it, bool *out_done, cx_err *err)
{
    cx_step_record sent;
    *out_done = false;
    if (it->step->key.data == NULL)
        return CX_SUCCESS;
    const cx_digest digest = cx_digest_of(cx_str_bytes(it->step->key));
    const cx_step_key key = cx_step_key_of(CX_STEP_KEY_PREFIX, &digest);
    CX_TRY(cx_step_txn_get(t->txn, cx_step_key_bytes(&key), &sent, out_done, err));
    if (!*out_done)
        return CX_SUCCESS;
    if (!cx_digest_eq(&sent.content, &it->step->content))
        return cx_fail_at(err, CX_E_CONFLICT, "KeyReused", CX_NO_OFFSET,
                          "key '%.*s' was used for another step of this agent (seq %llu)",
                          (int)(it->step->key.size > 80 ? 80 : it->step->key.size),
                          it->step->key.data, (unsigned long long)sent.seq);
    cx_hex_encode(cx_bytes_from(sent.hash.bytes, sizeof sent.hash.bytes), it->taken->hash);
    it->taken->hash[CX_STEP_HASH_SIZE] = 0;
    it->taken->status = CX_STEP_DUPLICATE;
    it->taken->seq = (int64_t)sent.seq;
    it->taken->entry = sent.entry;
    return CX_SUCCESS;
}

cx_status cx_step_check_actor(cx_str actor, cx_err *err)
{
    int shown = (int)(actor.size > 80 ? 80 : actor.size);
    if (cx_kinds_journal_is_own(actor))
        return cx_fail_at(err, CX_E_FORMAT, "BadStep", CX_NO_OFFSET,
                          "agent: the journal '%.*s' is Cortex's own; choose another name", shown,
                          actor.data);
    return actor.size <= CX_ACTOR_SIZE_MAX
               ? CX_SUCCESS
               : cx_fail_at(err, CX_E_FORMAT, "BadStep", CX_NO_OFFSET,
                            "agent %.*s: the name is longer than a journal's may be (%d bytes)",
                            shown, actor.data, CX_ACTOR_SIZE_MAX);
}

static cx_status place_step(step_taking *t, step_item *it, cx_err *err)
{
    bool done;
    cx_step_record node = {.seq = 0};
    CX_TRY(cx_step_actor(it->step->agent, &t->arena, &it->actor, err));
    CX_TRY(cx_step_check_actor(it->actor, err));
    CX_TRY(read_head(t, it, err));
    CX_TRY(check_key(t, it, &done, err));
    if (done)
        return CX_SUCCESS;
    CX_TRY(check_signature(t, it->step, err));
    CX_TRY(find_parents(t, it, err));
    /* The transaction may have ended meanwhile. */
    CX_TRY(check_key(t, it, &done, err));
    if (done)
        return CX_SUCCESS;
    CX_TRY(check_head(it, err));
    CX_TRY(link_step(it, err));
    CX_TRY(write_node(t, it, &node, err));
    return put_node(t, it, &node, err);
}

/* A step with a signature is only marked.  The key of a sender then stands for what is stored. */
static cx_status screen_step(step_taking *t, step_item *it, cx_err *err)
{
    static const char *const below[2] = {"/event", "/state_delta"};
    const cx_step *step = it->step;
    cx_json value;
    bool changed = false;
    if (!cx_sensitive_is_on(t->recorder->options.sensitive))
        return CX_SUCCESS;
    cx_sensitive_list_init(&it->found, &t->arena);
    CX_TRY(cx_recorder_mask_json(t->recorder->options.sensitive, step->signed_text, below,
                                 step->key_id.data == NULL, &it->found, &value, &changed, err));
    if (!changed)
        return CX_SUCCESS;
    CX_TRY(cx_step_read(&value, &t->arena, &it->masked, err));
    if (it->masked.problem.code != CX_OK)
        return cx_fail_at(err, CX_E_FORMAT, "BadStep", CX_NO_OFFSET, "after masking: %s",
                          it->masked.problem.message);
    it->masked.line = step->line;
    it->step = &it->masked;
    return CX_SUCCESS;
}

static cx_status take_step(step_taking *t, const cx_step *step, cx_step_taken *taken, cx_err *err)
{
    cx_err problem = {.code = CX_OK};
    *taken = (cx_step_taken){.status = CX_STEP_REJECTED, .agent = step->agent};
    if (is_blocked(t, step)) {
        taken->status = CX_STEP_SKIPPED;
        (void)cx_fail_at(&taken->problem, CX_E_CONFLICT, "Skipped", CX_NO_OFFSET,
                         "a step before this one was not taken");
        return CX_SUCCESS;
    }
    if (step->problem.code != CX_OK) {
        taken->problem = step->problem;
        return block_agent(t, step, err);
    }
    step_item *it = CX_ARENA_NEW(&t->arena, step_item);
    if (it == NULL)
        return cx_fail_nomem(err);
    *it = (step_item){.step = step, .taken = taken};
    cx_status status = screen_step(t, it, &problem);
    if (!cx_failed(status))
        status = place_step(t, it, &problem);
    return cx_failed(status) ? resolve_problem(t, it, status, &problem, err) : CX_SUCCESS;
}

/* --- all of them ------------------------------------------------------------------------------ */

static cx_status take_all(step_taking *t, const cx_step *steps, size_t count, cx_step_taken *out,
                          cx_err *err)
{
    for (size_t i = 0; i < count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&t->arena);
        CX_TRY(take_step(t, &steps[i], &out[i], err));
        cx_arena_reset(&t->arena, mark);
    }
    CX_TRY(end_txn(t, err));
    /* S4: duplicates may have been written by another process whose write is not durable yet. */
    return t->wrote_any ? cx_home_wait(t->home, t->last_commit, err) : cx_home_sync(t->home, err);
}

cx_status cx_recorder_steps_take(cx_recorder *recorder, const cx_step *steps, size_t count,
                                 cx_str sender, cx_step_taken *out, cx_err *err)
{
    step_taking t = {.recorder = recorder,
                     .home = recorder->home,
                     .sender = sender,
                     .now_ns = cx_recorder_now(recorder)};
    if (count == 0)
        return CX_SUCCESS;
    cx_arena_init(&t.arena, recorder->alloc, 0);
    cx_arena_init(&t.names, recorder->alloc, 0);
    cx_buf_init(&t.scratch, recorder->alloc);
    cx_buf_init(&t.line, recorder->alloc);
    cx_buf_init(&t.value, recorder->alloc);
    cx_map_init(&t.blocked, recorder->alloc, cx_io_seed(cx_home_io(recorder->home)));
    cx_status status = take_all(&t, steps, count, out, err);
    cx_txn_abort(t.txn);
    cx_recorder_trust_release(recorder, t.trust);
    cx_map_done(&t.blocked);
    cx_buf_done(&t.value);
    cx_buf_done(&t.line);
    cx_buf_done(&t.scratch);
    cx_arena_done(&t.names);
    cx_arena_done(&t.arena);
    if (!cx_failed(status))
        cx_recorder_notify(recorder);
    return status;
}

/* --- saying what became of it ----------------------------------------------------------------- */

static void put_head(cx_json_list *list, const cx_step_taken *taken)
{
    cx_json_list head = cx_json_list_begin(list->arena);
    if (!taken->has_head) {
        cx_json_put_null(list, "head");
        return;
    }
    cx_json_put_z(&head, "hash", taken->head);
    cx_json_put_int(&head, "seq", taken->head_seq);
    cx_json_put_object(list, "head", &head);
}

cx_status cx_step_taken_json(const cx_step_taken *taken, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    bool there = taken->status == CX_STEP_STORED || taken->status == CX_STEP_DUPLICATE;
    cx_json_put_maybe(&list, "agent", taken->agent);
    cx_json_put_z(&list, "status", cx_step_status_name(taken->status));
    if (there) {
        cx_json_put_uint(&list, "entry", taken->entry);
        cx_json_put_z(&list, "hash", taken->hash);
        cx_json_put_z(&list, "node_id", taken->hash);
        cx_json_put_int(&list, "seq", taken->seq);
        return cx_json_list_end_object(&list, out, err);
    }
    cx_json_put_str(&list, "detail", cx_str_z(taken->problem.message));
    cx_json_put_z(&list, "reason",
                  taken->problem.tag == NULL ? cx_code_name(taken->problem.code)
                                             : taken->problem.tag);
    if (taken->problem.line != 0)
        cx_json_put_uint(&list, "line", taken->problem.line);
    if (taken->status == CX_STEP_CONFLICT && strcmp(taken->problem.tag, "KeyReused") != 0)
        put_head(&list, taken);
    return cx_json_list_end_object(&list, out, err);
}
