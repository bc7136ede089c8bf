/*
 * lattice_tables.c - the tables of the lattice suite: canonical texts, hashes, seals, the recipe
 * chain, patches, merges.
 *
 * Each case asks one small question of one function; what it asks and what it expects are fields
 * of one object, so every kind names which are which.
 */
#include "tests/runner/lattice.h"

#include <stdio.h>
#include <stdlib.h>

#include "crypto/digest.h"
#include "base/hex.h"
#include "lattice/internal.h"
#include "lattice/state.h"

/* Expects these fields of the case itself. */
static cx_status expect_fields(runner *r, const cx_json *item, const char *const *names,
                               size_t count, cx_json *out, cx_err *err)
{
    CX_TRY(runner_pick(r, item, names, count, out, err));
    if (out->count != count)
        return cx_fail(err, CX_E_FORMAT, "the case does not say all that is expected");
    return CX_SUCCESS;
}

static cx_status expect_field(const cx_json *item, const char *name, cx_json *out, cx_err *err)
{
    const cx_json *value = cx_json_get(item, cx_str_z(name));
    if (value == NULL)
        return cx_fail(err, CX_E_FORMAT, "the case has no '%s'", name);
    *out = *value;
    return CX_SUCCESS;
}

/* --- canonical.json ------------------------------------------------------------------------ */

/* `@nestN` stands for N times `[` and N times `]`. */
static cx_status canonical_input(runner *r, const cx_json *item, cx_str *out, cx_err *err)
{
    cx_str text;
    CX_TRY(runner_text(item, "in", &text, err));
    *out = text;
    if (!cx_str_starts(text, CX_STR("@nest")))
        return CX_SUCCESS;
    size_t depth = 0;
    for (size_t i = 5; i < text.size && depth < 100000000u; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return cx_fail(err, CX_E_FORMAT, "the case has an '@nest' without a number");
        depth = depth * 10 + (size_t)(text.data[i] - '0');
    }
    char *nest = CX_ARENA_ARRAY(&r->arena, char, 2 * depth + 1);
    if (nest == NULL)
        return cx_fail_nomem(err);
    memset(nest, '[', depth);
    memset(nest + depth, ']', depth);
    *out = cx_str_from(nest, 2 * depth);
    return CX_SUCCESS;
}

static cx_status canonical_answer(runner *r, const cx_buf *text, cx_json *out, cx_err *err)
{
    cx_json canonical, digest;
    CX_TRY(runner_string(r, cx_buf_str(text), &canonical, err));
    CX_TRY(runner_sha256(r, cx_buf_bytes(text), &digest, err));
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("canonical"), canonical);
    cx_json_list_put(&list, CX_STR("sha256"), digest);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status canonical_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str input;
    cx_json value;
    cx_err refusal = {0};
    CX_TRY(canonical_input(r, item, &input, err));
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_json_parse_text(input, &r->arena, &value, &refusal);
    const char *code = cx_failed(status) ? refusal.tag : NULL;
    if (!cx_failed(status)) {
        status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, &refusal);
        code = status.code == CX_E_FORMAT ? "E_SCHEMA" : NULL;
    }
    if (!cx_failed(status)) {
        status = canonical_answer(r, &text, out, err);
    } else if (code != NULL) {
        cx_json_list list = cx_json_list_begin(&r->arena);
        cx_json_list_put(&list, CX_STR("error"), cx_json_make_str(cx_str_z(code)));
        status = cx_json_list_end_object(&list, out, err);
    } else {
        status = cx_fail(err, status.code, "%s", refusal.message);
    }
    cx_buf_done(&text);
    return status;
}

static cx_status canonical_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const refused[] = {"error"};
    static const char *const written[] = {"canonical", "sha256"};
    if (CX_JSON_GET(item, "error") != NULL)
        return expect_fields(r, item, refused, CX_COUNT_OF(refused), out, err);
    return expect_fields(r, item, written, CX_COUNT_OF(written), out, err);
}

/* --- floats -------------------------------------------------------------------------------- */

static cx_status write_value(runner *r, const cx_json *value, cx_json *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_json_write(&text, value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        status = runner_string(r, cx_buf_str(&text), out, err);
    cx_buf_done(&text);
    return status;
}

/*
 * [hex float, text].  Both ways a double gets into a file are asked: written by us, and read from
 * 17 digits (which name every double) and written again.
 */
static cx_status float_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    if (item->type != CX_JSON_ARRAY || item->count != 2 || item->items[0].type != CX_JSON_STRING)
        return cx_fail(err, CX_E_FORMAT, "the case is no pair of texts");
    cx_str hex = cx_arena_copy_str(&r->arena, cx_json_text(&item->items[0]));
    if (hex.data == NULL)
        return cx_fail_nomem(err);
    char *end;
    double number = strtod(hex.data, &end);
    if (hex.size == 0 || end != hex.data + hex.size)
        return cx_fail(err, CX_E_FORMAT, "the case has no hexadecimal float");
    cx_json made = cx_json_make_double(&r->arena, number), read, again;
    cx_str digits = cx_arena_printf(&r->arena, "%.16e", number);
    if (digits.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse_text(digits, &r->arena, &read, err));
    CX_TRY(write_value(r, &made, out, err));
    CX_TRY(write_value(r, &read, &again, err));
    if (!cx_json_equal(out, &again))
        return cx_fail(err, CX_E_FORMAT, "%s is written as %.*s but read and written as %.*s",
                       hex.data, (int)out->count, out->text, (int)again.count, again.text);
    return CX_SUCCESS;
}

static cx_status float_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    (void)r;
    (void)err;
    *out = item->items[1];
    return CX_SUCCESS;
}

/* --- hashes.json --------------------------------------------------------------------------- */

static cx_status read_fields(runner *r, const cx_json *item, cx_lattice_fields *out, cx_err *err)
{
    const cx_json *given, *event, *seq, *parents;
    cx_str *list;
    CX_TRY(runner_member(item, "node", CX_JSON_OBJECT, &given, err));
    CX_TRY(runner_text(item, "schema_version", &out->schema_version, err));
    CX_TRY(runner_text(given, "prev_hash", &out->prev_hash, err));
    CX_TRY(runner_text(given, "agent_id", &out->agent_id, err));
    CX_TRY(runner_member(given, "event", CX_JSON_OBJECT, &event, err));
    CX_TRY(runner_member(given, "seq", CX_JSON_INT, &seq, err));
    CX_TRY(runner_member(given, "parents", CX_JSON_ARRAY, &parents, err));
    CX_TRY(runner_texts(r, parents, &list, err));
    if (!cx_json_int64(seq, &out->seq))
        return cx_fail(err, CX_E_FORMAT, "the case has a 'seq' out of range");
    out->event = event;
    out->parents = list;
    out->parent_count = parents->count;
    return CX_SUCCESS;
}

static cx_status hash_answer(runner *r, const cx_buf *preimage, cx_json *out, cx_err *err)
{
    cx_json digest, text, bytes;
    cx_buf hex;
    cx_buf_init(&hex, cx_alloc_default());
    cx_hex_add(&hex, cx_buf_bytes(preimage));
    cx_status status = cx_buf_check(&hex, err);
    if (!cx_failed(status))
        status = runner_string(r, cx_buf_str(&hex), &bytes, err);
    cx_buf_done(&hex);
    CX_TRY(status);
    CX_TRY(runner_string(r, cx_buf_str(preimage), &text, err));
    CX_TRY(runner_sha256(r, cx_buf_bytes(preimage), &digest, err));
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("hash"), digest);
    cx_json_list_put(&list, CX_STR("preimage"), text);
    cx_json_list_put(&list, CX_STR("preimage_hex"), bytes);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status hash_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_lattice_fields fields;
    CX_TRY(read_fields(r, item, &fields, err));
    cx_buf preimage;
    cx_buf_init(&preimage, cx_alloc_default());
    cx_status status = cx_lattice_preimage(&preimage, &fields, err);
    if (!cx_failed(status))
        status = hash_answer(r, &preimage, out, err);
    cx_buf_done(&preimage);
    return status;
}

static cx_status hash_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const names[] = {"hash", "preimage", "preimage_hex"};
    return expect_fields(r, item, names, CX_COUNT_OF(names), out, err);
}

/* --- seals.json ---------------------------------------------------------------------------- */

static cx_status seal_preimage(const cx_json *source, cx_buf *out, cx_err *err)
{
    const cx_json *delta, *timestamp = CX_JSON_GET(source, "timestamp");
    CX_TRY(runner_member(source, "state_delta", CX_JSON_OBJECT, &delta, err));
    if (timestamp == NULL || !cx_json_is_number(timestamp))
        return cx_fail(err, CX_E_FORMAT, "the node has no timestamp");
    return cx_lattice_seal_preimage(out, CX_JSON_GET_STR(source, "fork_type"), delta, timestamp,
                                    err);
}

static cx_status seal_answer(runner *r, const cx_lattice *lattice, cx_node n, cx_json *out,
                             cx_err *err)
{
    char scratch[64];
    cx_json source, text, seal, hash;
    cx_buf preimage;
    CX_TRY(cx_lattice_source(lattice, n, &r->arena, &source, err));
    cx_buf_init(&preimage, cx_alloc_default());
    cx_status status = seal_preimage(&source, &preimage, err);
    if (!cx_failed(status))
        status = runner_string(r, cx_buf_str(&preimage), &text, err);
    if (!cx_failed(status))
        status = runner_sha256(r, cx_buf_bytes(&preimage), &seal, err);
    cx_buf_done(&preimage);
    CX_TRY(status);
    CX_TRY(runner_string(r, cx_lattice_hash_text(lattice, n, scratch), &hash, err));
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("hash"), hash);
    cx_json_list_put(&list, CX_STR("preimage"), text);
    cx_json_list_put(&list, CX_STR("seal"), seal);
    return cx_json_list_end_object(&list, out, err);
}

/*
 * Looks for the node in one file.  A node whose hash or own seal is wrong has been tampered with
 * there, so it is not the one that is meant.
 */
static cx_status seal_search(runner *r, cx_str file, cx_str id, cx_str hash, bool *out_found,
                             cx_json *out, cx_err *err)
{
    cx_str path = runner_path(r, file);
    cx_lattice *lattice;
    char scratch[64];
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_lattice_open(path.data, NULL, &lattice, err)))
        return CX_SUCCESS; /* some files are there to be refused */
    cx_node n = cx_lattice_find_id(lattice, id);
    cx_status status = CX_SUCCESS;
    if (n != CX_NODE_NONE && cx_str_eq(cx_lattice_hash_text(lattice, n, scratch), hash) &&
        (node_at(lattice, n)->flags & (NODE_HASH_BAD | NODE_SEAL_BAD)) == 0) {
        status = seal_answer(r, lattice, n, out, err);
        *out_found = !cx_failed(status);
    }
    cx_lattice_close(lattice);
    return status;
}

/* The case names a node by its id and hash; it lies in one of the lattices of this folder. */
static cx_status seal_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const lists[] = {"trace_cases", "graph_cases"};
    cx_str id, hash;
    CX_TRY(runner_text(item, "node_id", &id, err));
    CX_TRY(runner_text(item, "hash", &hash, err));
    for (size_t k = 0; k < CX_COUNT_OF(lists); k++) {
        const cx_json *list = cx_json_get_typed(r->index, cx_str_z(lists[k]), CX_JSON_ARRAY);
        for (uint32_t i = 0; list != NULL && i < list->count; i++) {
            bool found = false;
            cx_str file = CX_JSON_GET_STR(&list->items[i], "file");
            CX_TRY(seal_search(r, file, id, hash, &found, out, err));
            if (found)
                return CX_SUCCESS;
        }
    }
    return cx_fail(err, CX_E_NOT_FOUND, "no lattice of this folder has the node");
}

static cx_status seal_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const names[] = {"hash", "preimage", "seal"};
    return expect_fields(r, item, names, CX_COUNT_OF(names), out, err);
}

/* --- chain.json ---------------------------------------------------------------------------- */

/* Writes node k of the recipe (lattice.md §9) and puts its hash in place of prev's. */
static cx_status chain_link(runner *r, int64_t k, char prev[64], cx_buf *preimage, cx_buf *out,
                            cx_err *err)
{
    cx_json event;
    cx_str text = cx_arena_printf(&r->arena, "{\"i\":%lld}", (long long)k);
    cx_str parent = cx_arena_printf(&r->arena, "c%lld", (long long)k - 1);
    if (text.data == NULL || parent.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse_text(text, &r->arena, &event, err));
    cx_lattice_fields fields = {.prev_hash = cx_str_from(prev, 64),
                                .event = &event,
                                .seq = k,
                                .agent_id = CX_STR("w"),
                                .schema_version = CX_STR("2.0.0"),
                                .parents = &parent,
                                .parent_count = k == 0 ? 0 : 1};
    cx_buf_clear(preimage);
    CX_TRY(cx_lattice_preimage(preimage, &fields, err));
    cx_digest digest = cx_digest_of(cx_buf_bytes(preimage));
    cx_buf_printf(out,
                  "{\"node_id\":\"c%lld\",\"agent_id\":\"w\",\"seq\":%lld,\"timestamp\":%lld,"
                  "\"event\":%s,\"state_delta\":{\"memory\":{\"k\":%lld}},\"prev_hash\":\"%.64s\",",
                  (long long)k, (long long)k, (long long)k, text.data, (long long)k, prev);
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), prev);
    cx_buf_printf(out, "\"hash\":\"%.64s\",\"parents\":[", prev);
    if (k != 0)
        cx_buf_printf(out, "\"%s\"", parent.data);
    cx_buf_add_z(out, "]}\n");
    return CX_SUCCESS;
}

static cx_status chain_write(runner *r, int64_t count, cx_buf *out, cx_err *err)
{
    char prev[64];
    cx_buf preimage;
    cx_status status = CX_SUCCESS;
    memset(prev, '0', sizeof prev);
    cx_buf_init(&preimage, cx_alloc_default());
    for (int64_t k = 0; k < count && !cx_failed(status); k++) {
        cx_arena_mark mark = cx_arena_mark_now(&r->arena);
        status = chain_link(r, k, prev, &preimage, out, err);
        cx_arena_reset(&r->arena, mark);
    }
    cx_buf_done(&preimage);
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

/* The head as the loaded lattice has it, once all of it has been verified. */
static cx_status chain_head(runner *r, const cx_lattice *lattice, int64_t count, cx_json *out,
                            cx_err *err)
{
    cx_lattice_report *report;
    char scratch[64];
    CX_TRY(cx_lattice_verify(lattice, NULL, &report, err));
    bool holds = cx_lattice_report_verdict(report) == CX_HOLDS;
    cx_lattice_report_close(report);
    cx_node head = cx_lattice_find(lattice, CX_STR("@w"));
    if (!holds || head == CX_NODE_NONE || (int64_t)cx_lattice_count(lattice) != count)
        return cx_fail(err, CX_E_FORMAT, "the chain does not verify");
    cx_json hash;
    CX_TRY(runner_string(r, cx_lattice_hash_text(lattice, head, scratch), &hash, err));
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("head_hash"), hash);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status chain_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *nodes;
    int64_t count;
    CX_TRY(runner_member(item, "nodes", CX_JSON_INT, &nodes, err));
    if (!cx_json_int64(nodes, &count) || count < 1)
        return cx_fail(err, CX_E_FORMAT, "the case has no usable number of nodes");
    cx_buf text;
    cx_lattice *lattice = NULL;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = chain_write(r, count, &text, err);
    if (!cx_failed(status))
        status = cx_lattice_open_bytes(cx_buf_bytes(&text), NULL, &lattice, err);
    if (!cx_failed(status))
        status = chain_head(r, lattice, count, out, err);
    cx_lattice_close(lattice);
    cx_buf_done(&text);
    return status;
}

static cx_status chain_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const names[] = {"head_hash"};
    return expect_fields(r, item, names, CX_COUNT_OF(names), out, err);
}

/* --- patch.json, merge.json ---------------------------------------------------------------- */

static cx_status patch_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *old, *delta;
    CX_TRY(runner_member(item, "old", CX_JSON_OBJECT, &old, err));
    CX_TRY(runner_member(item, "delta", CX_JSON_OBJECT, &delta, err));
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_state_patch_json(old, delta, cx_alloc_default(), &text, err);
    if (!cx_failed(status))
        status = runner_parse(r, &text, out, err);
    cx_buf_done(&text);
    return status;
}

static cx_status patch_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    (void)r;
    return expect_field(item, "new", out, err);
}

static cx_status read_merge(runner *r, const cx_json *item, cx_merge_case *out, cx_err *err)
{
    const cx_json *bases, *states, *agents;
    cx_str *names, strategy, base = CX_JSON_GET_STR(item, "base_mode");
    CX_TRY(runner_member(item, "bases", CX_JSON_ARRAY, &bases, err));
    CX_TRY(runner_member(item, "states", CX_JSON_ARRAY, &states, err));
    CX_TRY(runner_member(item, "agents", CX_JSON_ARRAY, &agents, err));
    CX_TRY(runner_text(item, "strategy", &strategy, err));
    CX_TRY(runner_texts(r, agents, &names, err));
    CX_TRY(runner_strategy(strategy, &out->strategy, err));
    CX_TRY(runner_priorities(r, CX_JSON_GET(item, "priority"), &out->priorities,
                             &out->priority_count, err));
    if (bases->count == 0 || states->count == 0 || agents->count != states->count ||
        (base.data != NULL && !cx_str_is(base, "lca") && !cx_str_is(base, "none")))
        return cx_fail(err, CX_E_FORMAT, "the case has no usable bases, states or agents");
    out->bases = bases->items;
    out->base_count = bases->count;
    out->states = states->items;
    out->state_count = states->count;
    out->agents = names;
    out->base_none = cx_str_is(base, "none");
    return CX_SUCCESS;
}

static cx_status merge_answer(runner *r, const cx_json *item, bool whole, cx_json *out, cx_err *err)
{
    cx_merge_case merge = {.whole_states = whole};
    CX_TRY(read_merge(r, item, &merge, err));
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_state_merge_json(&merge, cx_alloc_default(), &text, err);
    if (!cx_failed(status))
        status = runner_parse(r, &text, out, err);
    cx_buf_done(&text);
    return status;
}

static cx_status merge_section_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    return merge_answer(r, item, false, out, err);
}

static cx_status merge_state_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    return merge_answer(r, item, true, out, err);
}

static cx_status merge_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    (void)r;
    return expect_field(item, "expect", out, err);
}

/* --- the tables ---------------------------------------------------------------------------- */

typedef struct table_list {
    const char *table;
    runner_kind kind;
} table_list;

static const table_list lists[] = {
    {"canonical", {"/texts", canonical_got, canonical_expect}},
    {"canonical", {"/floats_hex_repr", float_got, float_expect}},
    {"hashes", {"", hash_got, hash_expect}},
    {"seals", {"", seal_got, seal_expect}},
    {"chain", {"", chain_got, chain_expect}},
    {"patch", {"", patch_got, patch_expect}},
    {"merge", {"/dicts", merge_section_got, merge_expect}},
    {"merge", {"/states", merge_state_got, merge_expect}},
};

/* A list of the file that no kind answers. */
static void report_lists(runner *r, cx_str table, const cx_json *root)
{
    for (uint32_t i = 0; root->type == CX_JSON_OBJECT && i < root->count; i++) {
        cx_str name = cx_json_text(&root->members[i].name);
        bool known = root->members[i].value.type != CX_JSON_ARRAY;
        for (size_t k = 0; k < CX_COUNT_OF(lists); k++)
            known |= cx_str_is(table, lists[k].table) && lists[k].kind.list[0] == '/' &&
                     cx_str_is(name, lists[k].kind.list + 1);
        if (!known)
            runner_skip(r, name, "unknown list of a table");
    }
}

bool runner_lattice_table(runner *r, cx_str name, cx_str file)
{
    cx_json root;
    cx_err err;
    bool known = false;
    for (size_t i = 0; i < CX_COUNT_OF(lists); i++)
        known |= cx_str_is(name, lists[i].table);
    if (!known)
        return false;
    cx_str label = cx_arena_copy_str(&r->arena, file);
    if (label.data == NULL || cx_failed(runner_read_json(r, file, &root, &err))) {
        runner_fail(r, file, label.data == NULL ? "out of memory" : err.message);
        return true;
    }
    for (size_t i = 0; i < CX_COUNT_OF(lists); i++)
        if (cx_str_is(name, lists[i].table))
            runner_run_list(r, &lists[i].kind, label.data, &root);
    report_lists(r, name, &root);
    return true;
}
