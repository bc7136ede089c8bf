/*
 * step_record.c - records next to steps: bytes, and finding nodes by them.
 */
#include "recorder/step_record.h"

#include "base/api.h"
#include "proof/api.h"

cx_step_key cx_step_key_of(const char *prefix, const cx_digest *digest)
{
    cx_step_key key;
    key.size = strlen(prefix);
    CX_ASSERT(key.size + sizeof digest->bytes <= sizeof key.bytes);
    memcpy(key.bytes, prefix, key.size);
    memcpy(key.bytes + key.size, digest->bytes, sizeof digest->bytes);
    key.size += sizeof digest->bytes;
    return key;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static void put_time(cx_cbor_fields *fields, uint8_t key, double time)
{
    cx_cbor_field(fields, key);
    cx_cbor_f64(fields->out, time);
}

void cx_step_head_encode(const cx_step_record *record, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 1, record->seq);
    cx_codec_digest(&fields, 2, &record->hash);
    cx_codec_uint(&fields, 3, record->entry);
    put_time(&fields, 4, record->time);
    put_time(&fields, 5, record->latest);
    cx_codec_uint(&fields, 6, record->count);
    cx_cbor_fields_end(&fields);
}

void cx_step_node_encode(const cx_step_record *record, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 1, record->seq);
    cx_codec_uint(&fields, 3, record->entry);
    put_time(&fields, 4, record->time);
    cx_cbor_fields_end(&fields);
}

void cx_step_sent_encode(const cx_step_record *record, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 1, record->seq);
    cx_codec_digest(&fields, 2, &record->hash);
    cx_codec_uint(&fields, 3, record->entry);
    cx_codec_digest(&fields, 7, &record->content);
    cx_cbor_fields_end(&fields);
}

void cx_step_link_encode(const cx_step_record *record, cx_buf *out)
{
    cx_cbor_fields fields;
    cx_cbor_fields_begin(&fields, out);
    cx_codec_uint(&fields, 3, record->entry);
    cx_codec_text(&fields, 8, record->agent);
    cx_cbor_fields_end(&fields);
}

cx_status cx_step_record_decode(cx_bytes bytes, cx_step_record *out, cx_err *err)
{
    cx_decoder d;
    cx_step_record record = {.seq = 0};
    cx_decoder_begin(&d, bytes, "step record", NULL);
    while (cx_decoder_next(&d))
        switch (d.members.key) {
        case 1: record.seq = cx_cbor_read_uint_max(&d.reader, INT64_MAX); break;
        case 2: record.hash = cx_cbor_read_digest(&d.reader); break;
        case 3: record.entry = cx_cbor_read_uint(&d.reader); break;
        case 4: record.time = cx_cbor_read_f64(&d.reader); break;
        case 5: record.latest = cx_cbor_read_f64(&d.reader); break;
        case 6: record.count = cx_cbor_read_uint(&d.reader); break;
        case 7: record.content = cx_cbor_read_digest(&d.reader); break;
        case 8: record.agent = cx_cbor_read_text(&d.reader); break;
        default: cx_cbor_reject_member(&d.reader, &d.members);
        }
    CX_TRY(cx_decoder_end(&d, UINT64_C(1) << 3, err));
    *out = record;
    return CX_SUCCESS;
}

bool cx_step_is_newer(const cx_step_record *node, const cx_step_record *head)
{
    if (node->seq != head->seq)
        return node->seq > head->seq;
    if (node->time != head->time)
        return node->time > head->time;
    return memcmp(node->hash.bytes, head->hash.bytes, sizeof node->hash.bytes) > 0;
}

cx_step_record cx_step_head_after(const cx_step_record *head, bool has_head,
                                  const cx_step_record *node)
{
    if (!has_head) {
        cx_step_record first = *node;
        first.latest = node->time;
        first.count = 1;
        return first;
    }
    cx_step_record after = cx_step_is_newer(node, head) ? *node : *head;
    after.latest = node->time > head->latest ? node->time : head->latest;
    after.count = head->count + 1;
    return after;
}

/* --- reading ---------------------------------------------------------------------------------- */

cx_status cx_step_home_get(cx_home *home, cx_str actor, cx_bytes key, cx_arena *arena,
                           cx_step_record *out, bool *out_found, cx_err *err)
{
    cx_bytes value;
    *out_found = false;
    cx_status status = cx_home_get(home, actor, key, arena, &value, out_found, err);
    if (status.code == CX_E_NOT_FOUND) { /* no such actor */
        *out_found = false;
        return CX_SUCCESS;
    }
    CX_TRY(status);
    return *out_found ? cx_step_record_decode(value, out, err) : CX_SUCCESS;
}

cx_status cx_step_txn_get(cx_txn *txn, cx_bytes key, cx_step_record *out, bool *out_found,
                          cx_err *err)
{
    cx_bytes value;
    CX_TRY(cx_txn_get(txn, key, &value, out_found, err));
    return *out_found ? cx_step_record_decode(value, out, err) : CX_SUCCESS;
}

cx_status cx_recorder_has_steps(cx_home *home, cx_str actor, bool *out, cx_err *err)
{
    cx_arena arena;
    cx_step_record head;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status =
        cx_step_home_get(home, actor, cx_str_bytes(CX_STEP_HEAD_KEY), &arena, &head, out, err);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_step_actor(cx_str agent, cx_arena *arena, cx_str *out, cx_err *err)
{
    static const char digits[] = "0123456789ABCDEF";
    char *text = CX_ARENA_ARRAY(arena, char, 3 * agent.size + 1);
    size_t size = 0;
    if (text == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < agent.size; i++) {
        uint8_t c = (uint8_t)agent.data[i];
        if (c == '/' || c == '%' || c < 0x20 || c == 0x7f) {
            text[size++] = '%';
            text[size++] = digits[c >> 4];
            text[size++] = digits[c & 15];
        } else {
            text[size++] = (char)c;
        }
    }
    *out = cx_str_from(text, size);
    return CX_SUCCESS;
}

/* --- finding a parent ------------------------------------------------------------------------- */

typedef struct finder {
    cx_home *home;
    cx_arena *arena;
    cx_str shown; /* as it was named */
    cx_step_found *out;
    cx_str actor;                       /* whose records are being looked at */
    char prefix[CX_STEP_HASH_SIZE + 1]; /* of the hash, hex; empty = any */
    size_t prefix_size;
    bool by_seq;
    uint64_t seq;
    size_t matches;
} finder;

static cx_status no_parent(const finder *f, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_NOT_FOUND, "NoParent", CX_NO_OFFSET,
                      "parent '%.*s': %s; expected a node's hash or at least 6 digits of it, "
                      "AGENT#SEQ, or @AGENT for that agent's newest node",
                      (int)(f->shown.size > 80 ? 80 : f->shown.size), f->shown.data, what);
}

static cx_status add_match(finder *f, const cx_step_record *node, cx_err *err)
{
    if (f->matches++ != 0)
        return CX_SUCCESS;
    f->out->node = *node;
    f->out->actor = cx_arena_copy_str(f->arena, f->actor);
    f->out->found = true;
    return f->out->actor.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status node_row(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    finder *f = arg;
    cx_step_record node;
    char hex[CX_STEP_HASH_SIZE];
    size_t start = strlen(CX_STEP_NODE_PREFIX);
    if (key.size != start + sizeof node.hash.bytes)
        return CX_SUCCESS;
    cx_hex_encode(cx_bytes_from(key.data + start, key.size - start), hex);
    if (memcmp(hex, f->prefix, f->prefix_size) != 0)
        return CX_SUCCESS;
    CX_TRY(cx_step_record_decode(value, &node, err));
    memcpy(node.hash.bytes, key.data + start, sizeof node.hash.bytes);
    if (f->by_seq && node.seq != f->seq)
        return CX_SUCCESS;
    CX_TRY(add_match(f, &node, err));
    *stop = f->matches > 1;
    return CX_SUCCESS;
}

/* Nodes of one journal whose hashes begin so, or that have that number. */
static cx_status scan_actor(finder *f, cx_err *err)
{
    uint8_t prefix[48];
    size_t size = strlen(CX_STEP_NODE_PREFIX), whole = f->prefix_size / 2;
    memcpy(prefix, CX_STEP_NODE_PREFIX, size);
    if (whole != 0 && !cx_hex_decode(cx_str_from(f->prefix, 2 * whole), prefix + size, whole))
        return no_parent(f, "no hash", err);
    const cx_scan scan = {.actor = f->actor,
                          .prefix = cx_bytes_from(prefix, size + whole),
                          .row = node_row,
                          .arg = f};
    cx_status status = cx_home_scan(f->home, &scan, err);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

static cx_status get_exact(finder *f, const cx_digest *hash, cx_err *err)
{
    cx_step_record node;
    bool found;
    const cx_step_key key = cx_step_key_of(CX_STEP_NODE_PREFIX, hash);
    CX_TRY(
        cx_step_home_get(f->home, f->actor, cx_step_key_bytes(&key), f->arena, &node, &found, err));
    if (!found)
        return CX_SUCCESS;
    node.hash = *hash;
    return add_match(f, &node, err);
}

/* The agent's own journal first; then the others, all of them. */
static cx_status search_actors(finder *f, cx_str own, const cx_digest *hash, cx_err *err)
{
    const cx_actor_info *actor = NULL;
    cx_actor_walk walk;
    f->actor = own;
    CX_TRY(hash != NULL ? get_exact(f, hash, err) : scan_actor(f, err));
    if (f->matches != 0)
        return CX_SUCCESS;
    cx_actor_walk_begin(&walk, f->home);
    cx_status status = cx_actor_walk_next(&walk, &actor, err);
    while (!cx_failed(status) && actor != NULL && (f->matches == 0 || hash == NULL)) {
        f->actor = actor->name;
        status = hash != NULL ? get_exact(f, hash, err) : scan_actor(f, err);
        if (!cx_failed(status))
            status = cx_actor_walk_next(&walk, &actor, err);
    }
    cx_actor_walk_end(&walk);
    f->actor = own;
    return status;
}

static cx_status find_head(finder *f, cx_str agent, cx_err *err)
{
    cx_step_record head;
    bool found;
    if (cx_str_starts(agent, CX_STR("agent/")))
        agent = cx_str_from(agent.data + 6, agent.size - 6);
    CX_TRY(cx_step_actor(agent, f->arena, &f->actor, err));
    CX_TRY(cx_step_home_get(f->home, f->actor, cx_str_bytes(CX_STEP_HEAD_KEY), f->arena, &head,
                            &found, err));
    return found ? add_match(f, &head, err) : no_parent(f, "no such agent has steps", err);
}

static cx_status find_sent(finder *f, cx_str own_actor, const cx_step_parent *parent, cx_err *err)
{
    cx_step_record sent;
    bool found;
    const cx_digest digest = cx_digest_of(cx_str_bytes(parent->key));
    const cx_step_key key = cx_step_key_of(CX_STEP_KEY_PREFIX, &digest);
    f->actor = own_actor;
    if (parent->agent.data != NULL)
        CX_TRY(cx_step_actor(parent->agent, f->arena, &f->actor, err));
    CX_TRY(
        cx_step_home_get(f->home, f->actor, cx_step_key_bytes(&key), f->arena, &sent, &found, err));
    if (!found)
        return no_parent(f, "the agent has no step of this key", err);
    return get_exact(f, &sent.hash, err);
}

/* AGENT#SEQ, or #SEQ of the step's own agent. */
static cx_status find_number(finder *f, cx_str own_actor, size_t hash_at, cx_err *err)
{
    cx_str digits = cx_str_from(f->shown.data + hash_at + 1, f->shown.size - hash_at - 1);
    f->by_seq = digits.size != 0 && digits.size <= 18;
    for (size_t i = 0; i < digits.size; i++) {
        f->by_seq = f->by_seq && digits.data[i] >= '0' && digits.data[i] <= '9';
        f->seq = f->by_seq ? 10 * f->seq + (uint64_t)(digits.data[i] - '0') : 0;
    }
    if (!f->by_seq)
        return no_parent(f, "no number follows the '#'", err);
    f->actor = own_actor;
    if (hash_at != 0)
        CX_TRY(cx_step_actor(cx_str_from(f->shown.data, hash_at), f->arena, &f->actor, err));
    return scan_actor(f, err);
}

static cx_status find_node(finder *f, cx_str own_actor, cx_err *err)
{
    cx_digest hash;
    size_t at = f->shown.size;
    if (f->shown.size > 1 && f->shown.data[0] == '@')
        return find_head(f, cx_str_from(f->shown.data + 1, f->shown.size - 1), err);
    if (cx_digest_parse(f->shown, &hash))
        return search_actors(f, own_actor, &hash, err);
    while (at > 0 && f->shown.data[at - 1] != '#')
        at--;
    if (at > 0)
        return find_number(f, own_actor, at - 1, err);
    if (f->shown.size < 6 || f->shown.size > CX_STEP_HASH_SIZE)
        return no_parent(f, "no node", err);
    for (size_t i = 0; i < f->shown.size; i++) {
        char c = f->shown.data[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return no_parent(f, "no node", err);
        f->prefix[i] = c;
    }
    f->prefix_size = f->shown.size;
    return search_actors(f, own_actor, NULL, err);
}

cx_status cx_step_find(cx_home *home, cx_str own_actor, const cx_step_parent *parent,
                       cx_arena *arena, cx_step_found *out, cx_err *err)
{
    bool by_key = parent->node.data == NULL;
    finder f = {.home = home, .arena = arena, .out = out};
    f.shown = by_key ? parent->key : parent->node;
    *out = (cx_step_found){.found = false};
    CX_TRY(by_key ? find_sent(&f, own_actor, parent, err) : find_node(&f, own_actor, err));
    if (f.matches == 0)
        return no_parent(&f, "there is no such step", err);
    if (f.matches > 1)
        return cx_fail_at(err, CX_E_CONFLICT, "Ambiguous", CX_NO_OFFSET,
                          "parent '%.*s' is more than one step: give more digits of the hash",
                          (int)(f.shown.size > 80 ? 80 : f.shown.size), f.shown.data);
    return CX_SUCCESS;
}
