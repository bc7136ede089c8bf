/*
 * trust.c - see trust.h: reading, writing and searching the trust store (§4).
 *
 * Keys are sorted by id, so that a lookup is a binary search and the written order is fixed.
 */
#include "trace/internal.h"

#include "crypto/api.h"

#include <stdio.h>
#include <stdlib.h>

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct parsing {
    cx_arena *arena;
    const cx_json *object;
    cx_str pointer; /* of the object */
    cx_err *err;
} parsing;

static cx_status fail_bad_member(const parsing *p, const char *tag, const char *name,
                                 const char *expected)
{
    return cx_fail_at(p->err, CX_E_FORMAT, tag, CX_NO_OFFSET, "%.*s%s%s: expected %s",
                      (int)(p->pointer.size > 80 ? 80 : p->pointer.size), p->pointer.data,
                      name[0] == 0 ? "" : "/", name, expected);
}

/* The member's text, copied; data NULL when it is absent or null. */
static cx_status read_text(const parsing *p, const char *name, size_t limit, cx_str *out)
{
    const cx_json *value = cx_json_get(p->object, cx_str_z(name));
    *out = (cx_str){NULL, 0};
    if (value == NULL || value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (value->type != CX_JSON_STRING || value->count > limit)
        return fail_bad_member(p, "BadTrust", name, "a text within the length limit");
    *out = cx_arena_copy_str(p->arena, cx_json_text(value));
    return out->data == NULL ? cx_fail_nomem(p->err) : CX_SUCCESS;
}

static cx_status read_time(const parsing *p, const char *name, int64_t *out)
{
    const cx_json *value = cx_json_get(p->object, cx_str_z(name));
    bool naive;
    *out = CX_TIME_NONE;
    if (value == NULL || value->type == CX_JSON_NULL)
        return CX_SUCCESS;
    if (value->type != CX_JSON_STRING || !cx_trace_time_parse(cx_json_text(value), out, &naive))
        return fail_bad_member(p, "BadTrust", name, "a time such as 2026-01-31T00:00:00Z, or null");
    return CX_SUCCESS;
}

static bool is_zero(cx_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i] != 0)
            return false;
    return true;
}

static cx_status read_public_key(const parsing *p, cx_pubkey *out)
{
    const cx_json *value = CX_JSON_GET(p->object, "public_key");
    cx_buf bytes;
    if (value == NULL || value->type != CX_JSON_STRING)
        return fail_bad_member(p, "BadTrust", "public_key", "base64 text");
    cx_buf_init(&bytes, p->arena->alloc);
    bool decoded = cx_base64_decode_either(cx_json_text(value), &bytes);
    cx_status status = cx_buf_check(&bytes, p->err);
    if (!cx_failed(status) && !decoded)
        status = fail_bad_member(p, "BadTrust", "public_key", "base64 or base64url, padded or not");
    else if (!cx_failed(status) && bytes.size != sizeof out->bytes)
        status = cx_fail_at(p->err, CX_E_FORMAT, "KeyLength", CX_NO_OFFSET,
                            "%.*s/public_key: found %zu bytes, expected the 32 of an Ed25519 key",
                            (int)(p->pointer.size > 80 ? 80 : p->pointer.size), p->pointer.data,
                            bytes.size);
    else if (!cx_failed(status) && is_zero(cx_buf_bytes(&bytes)))
        status = fail_bad_member(p, "BadTrust", "public_key", "an Ed25519 key, not 32 zero bytes");
    else if (!cx_failed(status))
        memcpy(out->bytes, bytes.data, sizeof out->bytes);
    cx_buf_done(&bytes);
    return status;
}

static cx_status read_agents(const parsing *p, cx_trust_key *out)
{
    const cx_json *list = CX_JSON_GET(p->object, "agents");
    out->agents = NULL;
    out->agent_count = 0;
    if (list == NULL || list->type == CX_JSON_NULL ||
        (list->type == CX_JSON_ARRAY && list->count == 0))
        return CX_SUCCESS;
    if (list->type != CX_JSON_ARRAY || list->count > CX_TRUST_AGENTS_MAX)
        return fail_bad_member(p, "BadTrust", "agents", "at most 10000 agent ids");
    cx_str *names = CX_ARENA_ARRAY(p->arena, cx_str, list->count);
    if (names == NULL)
        return cx_fail_nomem(p->err);
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].type != CX_JSON_STRING || list->items[i].count == 0)
            return fail_bad_member(p, "BadTrust", "agents",
                                   "agent ids that are texts, none of them empty");
        names[i] = cx_arena_copy_str(p->arena, cx_json_text(&list->items[i]));
        if (names[i].data == NULL)
            return cx_fail_nomem(p->err);
    }
    out->agents = names;
    out->agent_count = list->count;
    return CX_SUCCESS;
}

static cx_status read_chain_profile(const parsing *p, cx_str *out)
{
    CX_TRY(read_text(p, "chain_profile", 16, out));
    if (out->data != NULL && !cx_str_is(*out, "spec-1.0") && !cx_str_is(*out, "agent"))
        return fail_bad_member(p, "BadTrust", "chain_profile", "spec-1.0, agent or null");
    return CX_SUCCESS;
}

cx_status cx_trust_key_parse(const cx_json *value, cx_str pointer, cx_arena *arena,
                             cx_trust_key *out, cx_err *err)
{
    enum { TEXT_MAX = 4096 };
    const parsing p = {arena, value, pointer, err};
    cx_trust_key key = {.key_id = {NULL, 0}};
    cx_str algorithm;
    if (value->type != CX_JSON_OBJECT)
        return fail_bad_member(&p, "BadTrust", "", "an object that describes a key");
    CX_TRY(read_text(&p, "key_id", CX_TRUST_KEY_ID_BYTES_MAX, &key.key_id));
    if (key.key_id.size == 0)
        return fail_bad_member(&p, "BadTrust", "key_id", "a non-empty text");
    CX_TRY(read_text(&p, "algorithm", 64, &algorithm));
    if (!cx_str_eq(algorithm, CX_STR("ed25519")))
        return fail_bad_member(&p, "BadTrust", "algorithm", "ed25519");
    CX_TRY(read_public_key(&p, &key.key));
    CX_TRY(read_agents(&p, &key));
    CX_TRY(read_time(&p, "not_before", &key.not_before));
    CX_TRY(read_time(&p, "not_after", &key.not_after));
    CX_TRY(read_time(&p, "revoked_at", &key.revoked_at));
    CX_TRY(read_time(&p, "compromised_since", &key.compromised_since));
    CX_TRY(read_text(&p, "revoked_reason", TEXT_MAX, &key.revoked_reason));
    CX_TRY(read_text(&p, "replaces", CX_TRUST_KEY_ID_BYTES_MAX, &key.replaces));
    CX_TRY(read_chain_profile(&p, &key.chain_profile));
    CX_TRY(read_text(&p, "description", TEXT_MAX, &key.description));
    CX_TRY(read_text(&p, "added_by", TEXT_MAX, &key.added_by));
    CX_TRY(read_time(&p, "added_at", &key.added_at));
    *out = key;
    return CX_SUCCESS;
}

static int compare_key_ids(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_trust_key *)a)->key_id, ((const cx_trust_key *)b)->key_id);
}

static cx_status parse_keys(const cx_json *list, cx_arena *arena, cx_trust *out, cx_err *err)
{
    cx_trust_key *keys = CX_ARENA_ARRAY(arena, cx_trust_key, list->count);
    if (keys == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        char pointer[32];
        (void)snprintf(pointer, sizeof pointer, "/keys/%u", i);
        CX_TRY(cx_trust_key_parse(&list->items[i], cx_str_z(pointer), arena, &keys[i], err));
    }
    if (list->count != 0)
        qsort(keys, list->count, sizeof *keys, compare_key_ids);
    for (uint32_t i = 1; i < list->count; i++)
        if (cx_str_eq(keys[i - 1].key_id, keys[i].key_id))
            return cx_fail_at(err, CX_E_FORMAT, "BadTrust", CX_NO_OFFSET,
                              "/keys: the key id %.*s is listed twice",
                              (int)(keys[i].key_id.size > 80 ? 80 : keys[i].key_id.size),
                              keys[i].key_id.data);
    *out = (cx_trust){keys, list->count};
    return CX_SUCCESS;
}

cx_status cx_trust_parse(cx_str source, cx_arena *arena, cx_trust *out, cx_err *err)
{
    CX_ASSERT(out != NULL);
    cx_json root;
    CX_TRY(cx_json_parse_text(source, arena, &root, err));
    const parsing p = {arena, &root, CX_STR(""), err};
    const cx_json *keys = CX_JSON_GET(&root, "keys");
    if (root.type != CX_JSON_OBJECT)
        return fail_bad_member(&p, "BadTrust", "", "an object of format cortex-trust-1");
    if (!cx_str_eq(CX_JSON_GET_STR(&root, "format"), CX_STR("cortex-trust-1")))
        return fail_bad_member(&p, "BadTrust", "format", "cortex-trust-1");
    if (keys == NULL || keys->type != CX_JSON_ARRAY || keys->count > CX_TRUST_KEYS_MAX)
        return fail_bad_member(&p, "BadTrust", "keys", "an array of at most 100000 keys");
    return parse_keys(keys, arena, out, err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_text(cx_json_list *list, const char *name, cx_str value)
{
    if (value.data != NULL)
        cx_json_list_put(list, cx_str_z(name), cx_json_make_str(value));
}

static void put_time(cx_json_list *list, const char *name, int64_t ns, bool always)
{
    char spelled[CX_TRACE_TIME_SIZE];
    cx_json value = cx_json_make_null();
    if (ns == CX_TIME_NONE && !always)
        return;
    if (ns != CX_TIME_NONE) {
        cx_trace_time_write(ns, spelled);
        cx_str copy = cx_arena_copy_str(list->arena, cx_str_z(spelled));
        list->failed |= copy.data == NULL;
        if (copy.data != NULL)
            value = cx_json_make_str(copy);
    }
    cx_json_list_put(list, cx_str_z(name), value);
}

cx_status cx_trust_key_json(const cx_trust_key *key, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_buf encoded;
    cx_json names;
    cx_json_list list = cx_json_list_begin(arena), agent_list = cx_json_list_begin(arena);
    cx_buf_init(&encoded, arena->alloc);
    cx_base64_add(&encoded, cx_bytes_from(key->key.bytes, sizeof key->key.bytes), CX_BASE64_URL);
    cx_str public_text =
        encoded.failed ? (cx_str){NULL, 0} : cx_arena_copy_str(arena, cx_buf_str(&encoded));
    cx_buf_done(&encoded);
    if (public_text.data == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < key->agent_count; i++)
        cx_json_list_add(&agent_list, cx_json_make_str(key->agents[i]));
    CX_TRY(cx_json_list_end_array(&agent_list, &names, err));
    cx_json_list_put(&list, CX_STR("key_id"), cx_json_make_str(key->key_id));
    cx_json_list_put(&list, CX_STR("algorithm"), cx_json_make_str(CX_STR("ed25519")));
    cx_json_list_put(&list, CX_STR("public_key"), cx_json_make_str(public_text));
    cx_json_list_put(&list, CX_STR("agents"), names);
    put_time(&list, "not_before", key->not_before, true);
    put_time(&list, "not_after", key->not_after, true);
    put_time(&list, "revoked_at", key->revoked_at, true);
    put_time(&list, "compromised_since", key->compromised_since, false);
    put_text(&list, "revoked_reason", key->revoked_reason);
    cx_json_list_put(&list, CX_STR("replaces"),
                     key->replaces.data != NULL ? cx_json_make_str(key->replaces)
                                                : cx_json_make_null());
    put_text(&list, "chain_profile", key->chain_profile);
    put_text(&list, "description", key->description);
    put_text(&list, "added_by", key->added_by);
    put_time(&list, "added_at", key->added_at, false);
    return cx_json_list_end_object(&list, out, err);
}

/* --- searching and copying ------------------------------------------------------------------- */

const cx_trust_key *cx_trust_find(const cx_trust *trust, cx_str key_id)
{
    size_t low = 0, high = trust->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = cx_str_cmp(trust->keys[middle].key_id, key_id);
        if (order == 0)
            return &trust->keys[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool copy_text(cx_arena *arena, cx_str *text_at)
{
    if (text_at->data == NULL)
        return true;
    *text_at = cx_arena_copy_str(arena, *text_at);
    return text_at->data != NULL;
}

static bool copy_key(const cx_trust_key *key, cx_arena *arena, cx_trust_key *out)
{
    *out = *key;
    cx_str *names = CX_ARENA_ARRAY(arena, cx_str, key->agent_count);
    if (names == NULL)
        return false;
    for (size_t i = 0; i < key->agent_count; i++) {
        names[i] = key->agents[i];
        if (!copy_text(arena, &names[i]))
            return false;
    }
    out->agents = names;
    return copy_text(arena, &out->key_id) && copy_text(arena, &out->revoked_reason) &&
           copy_text(arena, &out->replaces) && copy_text(arena, &out->chain_profile) &&
           copy_text(arena, &out->description) && copy_text(arena, &out->added_by);
}

cx_status cx_trust_copy(const cx_trust *trust, cx_arena *arena, cx_trust *out, cx_err *err)
{
    cx_trust_key *keys = CX_ARENA_ARRAY(arena, cx_trust_key, trust->count);
    if (keys == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < trust->count; i++)
        if (!copy_key(&trust->keys[i], arena, &keys[i]))
            return cx_fail_nomem(err);
    *out = (cx_trust){keys, trust->count};
    return CX_SUCCESS;
}

bool cx_trust_key_may_sign_for(const cx_trust_key *key, cx_str agent)
{
    if (key->agent_count == 0)
        return true;
    for (size_t i = 0; i < key->agent_count; i++)
        if (agent.data != NULL && cx_str_eq(key->agents[i], agent))
            return true;
    return false;
}

bool cx_trust_key_is_current(const cx_trust_key *key, int64_t now_ns)
{
    return key->revoked_at == CX_TIME_NONE &&
           (key->not_before == CX_TIME_NONE || key->not_before <= now_ns) &&
           (key->not_after == CX_TIME_NONE || now_ns < key->not_after);
}

static bool names_agent(const cx_trust_key *key, cx_str agent)
{
    bool names = cx_str_eq(key->key_id, agent);
    for (size_t i = 0; i < key->agent_count; i++)
        names = names || cx_str_eq(key->agents[i], agent);
    return names;
}

bool cx_trust_key_of_agent(const cx_trust *trust, cx_str agent, int64_t now_ns, cx_pubkey *out)
{
    const cx_trust_key *found = cx_trust_find(trust, agent);
    for (size_t i = 0; found == NULL && i < trust->count; i++)
        if (names_agent(&trust->keys[i], agent) && cx_trust_key_is_current(&trust->keys[i], now_ns))
            found = &trust->keys[i];
    if (found == NULL || !cx_trust_key_is_current(found, now_ns))
        return false;
    *out = found->key;
    return true;
}
