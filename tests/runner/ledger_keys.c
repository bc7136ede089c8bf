/*
 * ledger_keys.c - logical keys (ledger.md §5) spelled out, what a URI names, and nodes of the
 * journal tree by position.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tree/mmr.h"
#include "memory/type.h"
#include "memory/uri.h"
#include "tests/runner/ledger.h"

/* --- keys_uri.json, keys: [{"key": "mv/<id>/v/<n=2>", "hex"}] --------------------------------- */

/*
 * The label tells the kind of key and its parts: t=3, n=2, tag='x', ref='..', created=ns, verb=2,
 * kind=1, id1 or id2 of the file.  A part that a label leaves out is that of an earlier label.
 */

typedef struct labelled {
    cx_id id[2]; /* id1, id2 */
    uint64_t created_ns;
    cx_buf *out;
    const char *label;
} labelled;

/* The number after `name=` of the label, or `otherwise`. */
static uint64_t number_in(const char *label, const char *name, uint64_t otherwise)
{
    const char *at = strstr(label, name);
    return at == NULL ? otherwise : strtoull(at + strlen(name), NULL, 10);
}

/* The text between quotes after `name=`. */
static cx_str quoted_in(const char *label, const char *name)
{
    const char *at = strstr(label, name);
    if (at == NULL || at[strlen(name)] != '\'')
        return CX_STR("");
    at += strlen(name) + 1;
    const char *end = strchr(at, '\'');
    return cx_str_from(at, end == NULL ? strlen(at) : (size_t)(end - at));
}

/* The number in the last <..> of the label. */
static uint64_t bracketed(const char *label)
{
    const char *at = strrchr(label, '<');
    return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

/* The text after "<lp " for the nth time. */
static cx_str prefixed_text(const char *label, unsigned nth)
{
    const char *at = label;
    for (unsigned i = 0; i <= nth && at != NULL; i++) {
        at = strstr(at, "<lp ");
        at = at == NULL ? NULL : at + 4;
    }
    return at == NULL ? CX_STR("") : cx_str_from(at, strcspn(at, ">"));
}

static void add_u64be(cx_buf *out, uint64_t number)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        cx_buf_add_byte(out, (uint8_t)(number >> shift));
}

static void add_id(cx_buf *out, const cx_id *id)
{
    cx_buf_add(out, id->bytes, sizeof id->bytes);
}

static void add_object(labelled *l)
{
    cx_id object = cx_obj_hash(quoted_in(l->label, "ref="));
    add_id(l->out, &object);
}

static void id_key(labelled *l)
{
    cx_buf_add(l->out, l->label, strcspn(l->label, "<"));
    add_id(l->out, &l->id[0]);
}

static void number_key(labelled *l)
{
    cx_buf_add(l->out, l->label, strcspn(l->label, "<"));
    add_u64be(l->out, bracketed(l->label));
}

static void plain_key(labelled *l)
{
    cx_buf_add_z(l->out, l->label);
}

static void version_key(labelled *l)
{
    cx_buf_add_z(l->out, "mv/");
    add_id(l->out, &l->id[0]);
    cx_buf_add_z(l->out, "/v/");
    add_u64be(l->out, number_in(l->label, "n=", 1));
}

static void edge_key(labelled *l)
{
    bool from = strncmp(l->label, "e/from", 6) == 0;
    const char *src = strstr(l->label, "src=id"), *dst = strstr(l->label, "dst=id");
    size_t s = src != NULL && src[6] == '2', d = dst != NULL && dst[6] == '2';
    cx_buf_add_z(l->out, from ? "e/from/" : "e/to/");
    add_id(l->out, &l->id[from ? s : d]);
    cx_buf_add_byte(l->out, (uint8_t)number_in(l->label, " t=", 0));
    add_id(l->out, &l->id[from ? d : s]);
}

static void type_key(labelled *l)
{
    cx_buf_add_z(l->out, "idx/type/");
    cx_buf_add_byte(l->out, (uint8_t)number_in(l->label, " t=", 0));
    add_u64be(l->out, l->created_ns);
    add_id(l->out, &l->id[0]);
}

static void tag_key(labelled *l)
{
    uint8_t hash[8];
    cx_tag_hash(quoted_in(l->label, "tag="), hash);
    cx_buf_add_z(l->out, "idx/tag/");
    cx_buf_add(l->out, hash, sizeof hash);
    add_u64be(l->out, l->created_ns);
    add_id(l->out, &l->id[0]);
}

static void frame_key(labelled *l)
{
    cx_buf_add_z(l->out, "idx/frame/");
    cx_buf_add_byte(l->out, (uint8_t)number_in(l->label, "verb=", 0));
    cx_buf_add_byte(l->out, (uint8_t)number_in(l->label, "kind=", 0));
    add_object(l);
    add_id(l->out, &l->id[0]);
}

static void actor_object_key(labelled *l)
{
    cx_buf_add_z(l->out, "idx/actor_obj/");
    cx_buf_add_byte(l->out, (uint8_t)number_in(l->label, "verb=", 0));
    add_object(l);
    add_u64be(l->out, l->created_ns);
    add_id(l->out, &l->id[0]);
}

/* idx/smt/NAMESPACE depth N path XX..: the byte for all of the path. */
static void tree_key(labelled *l)
{
    const char *path = strstr(l->label, "path ");
    uint64_t depth = number_in(l->label, "depth ", 0);
    unsigned long byte = path == NULL ? 0 : strtoul(path + 5, NULL, 16);
    cx_buf_add(l->out, l->label, strcspn(l->label, " "));
    cx_buf_add_z(l->out, "/n/");
    cx_buf_add_byte(l->out, (uint8_t)(depth >> 8));
    cx_buf_add_byte(l->out, (uint8_t)depth);
    for (unsigned i = 0; i < 32; i++)
        cx_buf_add_byte(l->out, (uint8_t)byte);
}

static void checkpoint_key(labelled *l)
{
    cx_buf_add_z(l->out, "chk/");
    for (unsigned i = 0; i < 2; i++) {
        cx_str text = prefixed_text(l->label, i);
        cx_buf_add_z(l->out, i == 0 ? "" : "/");
        cx_buf_add_byte(l->out, (uint8_t)text.size);
        cx_buf_add_str(l->out, text);
    }
}

/* The first that the label begins with. */
static const struct key_kind {
    const char *begins;
    void (*spell)(labelled *l);
} key_kinds[] = {
    {"mv/", version_key},
    {"m/", id_key},
    {"e/", edge_key},
    {"j/", number_key},
    {"tomb/", id_key},
    {"snap/", number_key},
    {"salience/", id_key},
    {"vec/meta/", id_key},
    {"idx/type", type_key},
    {"idx/tag", tag_key},
    {"idx/frame", frame_key},
    {"idx/actor_obj", actor_object_key},
    {"idx/smt/", tree_key},
    {"accum/mmr/n/", number_key},
    {"accum/", plain_key},
    {"chk/", checkpoint_key},
    {"meta/goal_state/", id_key},
    {"meta/", plain_key},
};

static cx_status spell_key(runner *r, labelled *l, cx_json *out, cx_err *err)
{
    for (size_t i = 0; i < CX_COUNT_OF(key_kinds); i++) {
        if (strncmp(l->label, key_kinds[i].begins, strlen(key_kinds[i].begins)) != 0)
            continue;
        key_kinds[i].spell(l);
        CX_TRY(cx_buf_check(l->out, err));
        return runner_hex(r, cx_buf_bytes(l->out), out, err);
    }
    return cx_fail(err, CX_E_UNSUPPORTED, "no key begins like '%s'", l->label);
}

static cx_status key_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str label;
    cx_json value;
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_buf bytes;
    labelled l = {.out = &bytes};
    CX_TRY(runner_text(item, "key", &label, err));
    CX_TRY(runner_id_of(r, r->root, "id1", &l.id[0], err));
    CX_TRY(runner_id_of(r, r->root, "id2", &l.id[1], err));
    const cx_json *keys = cx_json_get_typed(r->root, CX_STR("keys"), CX_JSON_ARRAY);
    for (uint32_t i = 0; keys != NULL && i < keys->count && &keys->items[i] <= item; i++) {
        cx_str earlier = CX_JSON_GET_STR(&keys->items[i], "key");
        cx_str text = cx_arena_printf(&r->arena, "%.*s", (int)earlier.size,
                                      earlier.data == NULL ? "" : earlier.data);
        if (text.data == NULL)
            return cx_fail_nomem(err);
        l.label = text.data;
        l.created_ns = number_in(l.label, "created=", l.created_ns);
    }
    cx_buf_init(&bytes, cx_alloc_default());
    cx_status status = l.label == NULL ? cx_fail(err, CX_E_FORMAT, "the case has no 'key'")
                                       : spell_key(r, &l, &value, err);
    cx_buf_done(&bytes);
    CX_TRY(status);
    cx_json_list_put(&object, CX_STR("hex"), value);
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(key_expect, "hex")

/* --- keys_uri.json, uris: what an accepted one names ------------------------------------------ */

static void run_uri_parts(runner *r)
{
    const cx_json *uris = cx_json_get_typed(runner_file.root, CX_STR("uris"), CX_JSON_ARRAY);
    for (uint32_t i = 0; uris != NULL && i < uris->count; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&r->arena);
        cx_uri uri;
        char version[24];
        cx_buf again;
        if (cx_failed(cx_memory_uri_parse(CX_JSON_GET_STR(&uris->items[i], "uri"), &uri, NULL)))
            continue;
        (void)snprintf(version, sizeof version, "%llu", (unsigned long long)uri.version);
        cx_buf_init(&again, cx_alloc_default());
        cx_uri_add(&uri, &again);
        runner_value_hex(r, runner_pointer(r, "/uris", i, "id"),
                         cx_bytes_from(uri.id.bytes, sizeof uri.id.bytes));
        runner_value_uint(r, runner_pointer(r, "/uris", i, "type"), uri.type);
        runner_value_text(r, runner_pointer(r, "/uris", i, "version"), cx_str_z(version));
        runner_value_text(r, runner_pointer(r, "/uris", i, "rebuilt"), cx_buf_str(&again));
        cx_buf_done(&again);
        cx_arena_reset(&r->arena, mark);
    }
}

/* --- mmr.json: positions ---------------------------------------------------------------------- */

/* Nodes by position: leaves and, after each, the nodes it completes. */
static void nodes_upto(size_t positions, cx_digest *out)
{
    unsigned heights[64];
    size_t last[64], depth = 0, at = 0;
    for (uint64_t leaf = 0; at < positions; leaf++) {
        out[at] = runner_ruled("leaf_rule", "matrix-mmr-leaf-", leaf);
        heights[depth] = 0;
        last[depth++] = at++;
        while (at < positions && depth > 1 && heights[depth - 1] == heights[depth - 2]) {
            out[at] =
                cx_scheme_node(CX_SCHEME_MATRIX_1, &out[last[depth - 2]], &out[last[depth - 1]]);
            depth--;
            heights[depth - 1]++;
            last[depth - 1] = at++;
        }
    }
}

#define POSITIONS_MAX 100000

/* Node `pos` (1-based) of the tree, under the key of the original. */
static cx_status node_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    uint64_t position;
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_buf key;
    CX_TRY(runner_number(item, "pos", &position, err));
    if (position == 0 || position > POSITIONS_MAX)
        return cx_fail(err, CX_E_LIMIT, "a tree of more than %d nodes", POSITIONS_MAX);
    cx_digest *nodes = CX_ARENA_ARRAY(&r->arena, cx_digest, position);
    if (nodes == NULL)
        return cx_fail_nomem(err);
    nodes_upto(position, nodes);
    cx_buf_init(&key, cx_alloc_default());
    cx_buf_add_z(&key, "accum/mmr/n/");
    add_u64be(&key, position);
    cx_status status = runner_put_hex(r, &object, "key", cx_buf_bytes(&key), err);
    cx_buf_done(&key);
    CX_TRY(status);
    CX_TRY(runner_put_digest(r, &object, "hash", &nodes[position - 1], err));
    return cx_json_list_end_object(&object, out, err);
}

RUNNER_EXPECTS(node_expect, "hash", "key")

static void run_mmr(runner *r)
{
    static const runner_kind nodes = {"/nodes_n16", node_got, node_expect};
    const cx_json *leaves =
        cx_json_get_typed(runner_file.root, CX_STR("first_leaves"), CX_JSON_ARRAY);
    cx_digest empty = cx_scheme_journal_root(runner_file.scheme, 0, NULL);
    runner_run_list(r, &nodes, runner_file.path, runner_file.root);
    runner_value_digest(r, "/empty_root", &empty);
    runner_value_hex(r, "/leafcount_key", cx_str_bytes(CX_STR("accum/mmr/leafcount")));
    for (uint32_t i = 0; leaves != NULL && i < leaves->count; i++) {
        char pointer[64];
        cx_digest leaf = runner_ruled("leaf_rule", "matrix-mmr-leaf-", i);
        (void)snprintf(pointer, sizeof pointer, "/first_leaves/%u", i);
        runner_value_digest(r, pointer, &leaf);
    }
}

void runner_ledger_keys(runner *r, cx_str name)
{
    static const runner_kind keys = {"/keys", key_got, key_expect};
    if (cx_str_is(name, "keys_uri.json")) {
        runner_run_list(r, &keys, runner_file.path, runner_file.root);
        run_uri_parts(r);
    } else if (cx_str_is(name, "mmr.json")) {
        run_mmr(r);
    }
}
