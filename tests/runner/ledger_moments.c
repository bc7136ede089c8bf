/*
 * ledger_moments.c - see ledger_moments.h.
 */
#include "tests/runner/ledger_moments.h"

#include <stdio.h>
#include <stdlib.h>

#include "memory/embedder.h"
#include "memory/uri.h"

/* One value of the file: answered by `get` when the file has it. */
typedef cx_status moment_answer(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                                cx_err *err);

static void answer(runner *r, runner_moment *m, const char *pointer, moment_answer *get)
{
    const cx_json *item = cx_json_pointer(runner_file.root, cx_str_z(pointer));
    cx_json value;
    cx_err err = {0};
    if (item != NULL) {
        cx_status status = get(r, m, item, &value, &err);
        runner_value(r, pointer, status, &value, &err);
    }
}

/* The same for each item of a list; CX_E_UNSUPPORTED: nothing is known about it. */
static void answer_each(runner *r, runner_moment *m, const char *list, moment_answer *get)
{
    const cx_json *items = runner_array(runner_file.root, list);
    for (uint32_t i = 0; items != NULL && i < items->count; i++) {
        char pointer[96];
        cx_json value;
        cx_err err = {0};
        cx_arena_mark mark = cx_arena_mark_now(&r->arena);
        (void)snprintf(pointer, sizeof pointer, "%s/%u", list, i);
        cx_status status = get(r, m, &items->items[i], &value, &err);
        if (status.code != CX_E_UNSUPPORTED)
            runner_value(r, pointer, status, &value, &err);
        cx_arena_reset(&r->arena, mark);
    }
}

/* --- manifests -------------------------------------------------------------------------------- */

static CX_RESULT put_buf(runner *r, cx_json_list *object, const char *name, cx_buf *bytes,
                         cx_err *err)
{
    cx_status status = cx_buf_check(bytes, err);
    if (!cx_failed(status))
        status = runner_put_hex(r, object, name, cx_buf_bytes(bytes), err);
    cx_buf_done(bytes);
    return status;
}

static CX_RESULT put_counters(runner *r, cx_json_list *object, const cx_manifest *manifest,
                              cx_err *err)
{
    cx_json value;
    cx_json_list counters = cx_json_list_begin(&r->arena);
    runner_put_uint(r, &counters, "Memories", manifest->live_memories);
    runner_put_uint(r, &counters, "Edges", manifest->edge_count);
    runner_put_uint(r, &counters, "Tombstoned", manifest->tombstoned);
    CX_TRY(cx_json_list_end_object(&counters, &value, err));
    cx_json_list_put(object, CX_STR("counters"), value);
    return CX_SUCCESS;
}

static cx_status manifest_of(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                             cx_err *err)
{
    cx_manifest manifest;
    cx_bytes bytes;
    cx_buf body;
    cx_digest digest;
    cx_json_list object = cx_json_list_begin(&r->arena);
    (void)item;
    CX_TRY(cx_snapshot_get(m->home, m->actor, m->snapshot, &r->arena, &manifest, &bytes, err));
    CX_TRY(cx_manifest_digest(&manifest, cx_alloc_default(), &digest, err));
    CX_TRY(runner_put_hex(r, &object, "cbor", bytes, err));
    CX_TRY(runner_put_digest(r, &object, "overall_root", &manifest.overall_root, err));
    CX_TRY(runner_put_digest(r, &object, "digest", &digest, err));
    runner_put_uint(r, &object, "seq", manifest.snapshot_seq);
    runner_put_uint(r, &object, "journal_seq", manifest.journal_size);
    runner_put_uint(r, &object, "created_at", (uint64_t)manifest.created_ns);
    CX_TRY(put_counters(r, &object, &manifest, err));
    cx_buf_init(&body, cx_alloc_default());
    cx_manifest_encode_body(&manifest, &body);
    CX_TRY(put_buf(r, &object, "signing_body", &body, err));
    return cx_json_list_end_object(&object, out, err);
}

/* The newest snapshot with the root of the one at hand. */
static cx_status found_by_root(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                               cx_err *err)
{
    cx_manifest manifest, found;
    cx_bytes bytes;
    (void)item;
    CX_TRY(cx_snapshot_get(m->home, m->actor, m->snapshot, &r->arena, &manifest, &bytes, err));
    CX_TRY(cx_snapshot_by_root(m->home, m->actor, &manifest.overall_root, &r->arena, &found, &bytes,
                               err));
    *out = cx_json_make_uint(&r->arena, found.snapshot_seq);
    return CX_SUCCESS;
}

/* --- proofs of state -------------------------------------------------------------------------- */

static CX_RESULT matrix_item(runner *r, const cx_proof_item *item, cx_json_list *object,
                             cx_err *err)
{
    const cx_digest zeros = {{0}};
    const cx_smt_path *path = &item->path;
    cx_json value;
    cx_digest all =
        cx_digest_of(cx_bytes_from(path->siblings, path->sibling_count * sizeof *path->siblings));
    CX_TRY(runner_put_digest(r, object, "value_hash", path->member ? &path->value : &zeros, err));
    CX_TRY(runner_put_digest(r, object, "sha256_of_256_siblings_concat", &all, err));
    CX_TRY(runner_non_default(r, path, &value, err));
    cx_json_list_put(object, CX_STR("non_default_siblings"), value);
    return CX_SUCCESS;
}

static CX_RESULT cortex_item(runner *r, const cx_proof_item *item, cx_json_list *object,
                             cx_err *err)
{
    const cx_smt_path *path = &item->path;
    const cx_digest other[2] = {path->other_key, path->other_value};
    cx_json value = cx_json_make_null();
    if (item->leaf.size != 0)
        CX_TRY(runner_hex(r, item->leaf, &value, err));
    cx_json_list_put(object, CX_STR("leaf"), value);
    CX_TRY(runner_digests(r, path->siblings, path->sibling_count, &value, err));
    cx_json_list_put(object, CX_STR("siblings"), value);
    value = cx_json_make_null();
    if (path->has_other)
        CX_TRY(runner_digests(r, other, 2, &value, err));
    cx_json_list_put(object, CX_STR("other"), value);
    value = cx_json_make_null();
    if (item->kind == CX_MEMBER_ERASED)
        CX_TRY(runner_digest(r, &path->value, &value, err));
    cx_json_list_put(object, CX_STR("value_hash"), value);
    return CX_SUCCESS;
}

static CX_RESULT proof_json(runner *r, const cx_state_proof *proof, cx_json *out, cx_err *err)
{
    cx_json value;
    cx_json_list object = cx_json_list_begin(&r->arena), items = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < proof->proof.count; i++) {
        const cx_proof_item *item = &proof->proof.items[i];
        cx_json_list one = cx_json_list_begin(&r->arena);
        CX_TRY(runner_put_digest(r, &one, "key_hash", &item->path.key, err));
        CX_TRY(runner_file.scheme == CX_SCHEME_MATRIX_1 ? matrix_item(r, item, &one, err)
                                                        : cortex_item(r, item, &one, err));
        CX_TRY(cx_json_list_end_object(&one, &value, err));
        cx_json_list_add(&items, value);
    }
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    cx_json_list_put(&object, CX_STR("proofs"), value);
    CX_TRY(runner_put_digest(r, &object, "root", &proof->proof.root, err));
    CX_TRY(runner_put_hex(r, &object, "cbor", proof->bytes, err));
    runner_put_uint(r, &object, "cbor_len", proof->bytes.size);
    CX_TRY(runner_string(r, proof->proof.name_space, &value, err));
    cx_json_list_put(&object, CX_STR("namespace"), value);
    return cx_json_list_end_object(&object, out, err);
}

/* The memories whose URIs the file asks about. */
static CX_RESULT asked_memories(runner *r, cx_proof_request *out, cx_err *err)
{
    const cx_json *uris = runner_array(runner_file.root, "/multiproof/uris");
    size_t count = uris == NULL ? 0 : uris->count;
    cx_id *ids = CX_ARENA_ARRAY(&r->arena, cx_id, count + 1);
    if (ids == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        cx_uri uri;
        CX_TRY(cx_memory_uri_parse(runner_str(&uris->items[i]), &uri, err));
        ids[i] = uri.id;
    }
    *out = (cx_proof_request){.name_space = CX_NAMESPACE_MEMORIES, .ids = ids, .id_count = count};
    return CX_SUCCESS;
}

static cx_status memories_proof(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                                cx_err *err)
{
    cx_proof_request request;
    cx_state_proof proof;
    (void)item;
    CX_TRY(asked_memories(r, &request, err));
    CX_TRY(cx_proof_now(m->home, m->actor, &request, m->snapshot, &r->arena, &proof, err));
    m->proof = proof.bytes;
    return proof_json(r, &proof, out, err);
}

/* Id n of a scenario (see the vectors' README). */
static cx_id numbered_id(uint64_t number)
{
    cx_id id = {{0}};
    uint64_t ms = UINT64_C(1700000000000);
    for (unsigned i = 0; i < 6; i++)
        id.bytes[i] = (uint8_t)(ms >> (8 * (5 - i)));
    for (unsigned i = 0; i < 8; i++)
        id.bytes[8 + i] = (uint8_t)(number >> (8 * (7 - i)));
    return id;
}

/* "(4,13,5)": memory 4, type 13, memory 5; what follows is a remark. */
static cx_status edges_proof(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                             cx_err *err)
{
    const cx_json *keys;
    cx_state_proof proof;
    CX_TRY(runner_member(item, "keys", CX_JSON_ARRAY, &keys, err));
    cx_edge *edges = CX_ARENA_ARRAY(&r->arena, cx_edge, (size_t)keys->count + 1);
    if (edges == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < keys->count; i++) {
        unsigned src, type, dst;
        char text[64];
        cx_str key = runner_str(&keys->items[i]);
        (void)snprintf(text, sizeof text, "%.*s", (int)key.size, key.data);
        if (sscanf(text, "(%u,%u,%u)", &src, &type, &dst) != 3 || type > 255)
            return cx_fail(err, CX_E_FORMAT, "'%s' names no edge", text);
        edges[i] =
            (cx_edge){.src = numbered_id(src), .type = (uint8_t)type, .dst = numbered_id(dst)};
    }
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_EDGES, .edges = edges, .edge_count = keys->count};
    CX_TRY(cx_proof_now(m->home, m->actor, &request, m->snapshot, &r->arena, &proof, err));
    return proof_json(r, &proof, out, err);
}

/* The edges of the scenario that a container of the file is about: it tells only their keys. */
typedef struct edge_search {
    cx_arena *arena;
    const cx_multiproof *asked;
    cx_edge *found; /* one a key asked */
    size_t found_count;
} edge_search;

static cx_status match_edge(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    edge_search *search = arg;
    cx_edge edge;
    (void)key;
    (void)stop;
    CX_TRY(cx_edge_decode(value, search->arena, &edge, err));
    cx_digest of =
        cx_scheme_edge_key(search->asked->scheme, edge.src.bytes, edge.type, edge.dst.bytes);
    for (size_t i = 0; i < search->asked->count; i++)
        if (cx_digest_eq(&of, &search->asked->items[i].path.key)) {
            search->found[i] = (cx_edge){.src = edge.src, .type = edge.type, .dst = edge.dst};
            search->found_count++;
        }
    return CX_SUCCESS;
}

static cx_status edges_container(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                                 cx_err *err)
{
    cx_bytes bytes;
    cx_multiproof asked;
    cx_state_proof proof;
    CX_TRY(runner_bytes(r, item, "edges_multiproof_cbor", &bytes, err));
    CX_TRY(cx_multiproof_decode(bytes, &r->arena, &asked, err));
    edge_search search = {.arena = &r->arena,
                          .asked = &asked,
                          .found = CX_ARENA_ARRAY(&r->arena, cx_edge, asked.count + 1)};
    if (search.found == NULL)
        return cx_fail_nomem(err);
    const cx_scan scan = {.actor = m->actor,
                          .prefix = cx_str_bytes(CX_STR("e/from/")),
                          .row = match_edge,
                          .arg = &search};
    CX_TRY(cx_home_scan(m->home, &scan, err));
    if (search.found_count != asked.count)
        return cx_fail(err, CX_E_FORMAT, "the container is about edges that the story has not");
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_EDGES, .edges = search.found, .edge_count = asked.count};
    CX_TRY(cx_proof_now(m->home, m->actor, &request, m->snapshot, &r->arena, &proof, err));
    return runner_hex(r, proof.bytes, out, err);
}

/* --- after the last step: drift, history, erasure --------------------------------------------- */

static cx_status after_drift(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                             cx_err *err)
{
    cx_proof_request request;
    cx_state_proof proof;
    cx_err why = {0};
    (void)item;
    CX_TRY(asked_memories(r, &request, err));
    if (!cx_failed(cx_proof_now(m->home, m->actor, &request, m->snapshot, &r->arena, &proof, &why)))
        return runner_string(r, CX_STR("a proof"), out, err);
    cx_str text = cx_arena_printf(&r->arena, "error %s", why.tag == NULL ? why.message : why.tag);
    return text.data == NULL ? cx_fail_nomem(err) : runner_string(r, text, out, err);
}

static cx_status historical(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                            cx_err *err)
{
    cx_proof_request request;
    cx_state_proof proof;
    (void)item;
    CX_TRY(asked_memories(r, &request, err));
    CX_TRY(cx_proof_at(m->home, m->actor, &request, m->snapshot, &r->arena, &proof, err));
    bool same = cx_str_eq(cx_bytes_str(proof.bytes), cx_bytes_str(m->proof));
    return runner_string(
        r, same ? CX_STR("byte-identical with multiproof.cbor above") : CX_STR("different"), out,
        err);
}

/* "memory 3 with its Head bytes erased ..": it is, and proven as the snapshot saw it. */
static cx_status erased_proof(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                              cx_err *err)
{
    char note[128];
    unsigned number = 0;
    cx_state_proof proof;
    cx_applied_step done;
    cx_json step;
    cx_str told = CX_JSON_GET_STR(item, "note");
    const cx_json *uris = cx_json_get_typed(m->calls, CX_STR("uris"), CX_JSON_ARRAY);
    (void)snprintf(note, sizeof note, "%.*s", (int)told.size, told.data == NULL ? "" : told.data);
    if (sscanf(note, "memory %u", &number) != 1 || number == 0 || uris == NULL ||
        number > uris->count)
        return cx_fail(err, CX_E_FORMAT, "the note does not begin with the number of a memory");
    cx_str uri = runner_str(&uris->items[number - 1]);
    cx_str text = cx_arena_printf(&r->arena, "{\"op\":\"redact_memory\",\"uri\":\"%.*s\"}",
                                  (int)uri.size, uri.data);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse_text(text, &r->arena, &step, err));
    CX_TRY(cx_apply_step(m->apply, &step, &r->arena, &done, err));
    if (done.refused)
        return cx_fail(err, CX_E_FORMAT, "the erasure was refused: %s", done.reason.message);
    const cx_id id = numbered_id(number);
    const cx_proof_request request = {
        .name_space = CX_NAMESPACE_MEMORIES, .ids = &id, .id_count = 1};
    CX_TRY(cx_proof_at(m->home, m->actor, &request, m->snapshot, &r->arena, &proof, err));
    return proof_json(r, &proof, out, err);
}

/* --- proofs about the journal ----------------------------------------------------------------- */

static cx_status inclusion(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                           cx_err *err)
{
    uint64_t index, size;
    cx_inclusion proof;
    cx_digest root;
    cx_json value;
    cx_buf bytes;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_number(item, "index", &index, err));
    CX_TRY(runner_number(item, "size", &size, err));
    CX_TRY(cx_proof_journal(m->home, m->actor, index, size, true, &r->arena, &proof, &root, err));
    runner_put_uint(r, &object, "index", proof.index);
    runner_put_uint(r, &object, "size", proof.tree_size);
    CX_TRY(runner_put_hex(r, &object, "entry", proof.entry, err));
    CX_TRY(runner_digests(r, proof.path, proof.path_count, &value, err));
    cx_json_list_put(&object, CX_STR("path"), value);
    cx_buf_init(&bytes, cx_alloc_default());
    cx_inclusion_encode(&proof, &bytes);
    CX_TRY(put_buf(r, &object, "cbor", &bytes, err));
    return cx_json_list_end_object(&object, out, err);
}

static cx_status consistency(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                             cx_err *err)
{
    uint64_t size1, size2;
    cx_consistency proof;
    cx_digest old_root, new_root;
    cx_buf bytes;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_number(item, "size1", &size1, err));
    CX_TRY(runner_number(item, "size2", &size2, err));
    CX_TRY(cx_proof_consistency(m->home, m->actor, size1, size2, &r->arena, &proof, &old_root,
                                &new_root, err));
    runner_put_uint(r, &object, "size1", proof.size1);
    runner_put_uint(r, &object, "size2", proof.size2);
    CX_TRY(runner_put_digest(r, &object, "old_root", &old_root, err));
    cx_buf_init(&bytes, cx_alloc_default());
    cx_consistency_encode(&proof, &bytes);
    CX_TRY(put_buf(r, &object, "cbor", &bytes, err));
    return cx_json_list_end_object(&object, out, err);
}

/* "scenario.json at 19 entries": the journal's root then. */
static cx_status root_then(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                           cx_err *err)
{
    uint64_t size = 0;
    cx_consistency proof;
    cx_digest old_root, new_root;
    const cx_json *of = CX_JSON_GET(runner_file.root, "of");
    cx_str told = runner_str(of);
    (void)item;
    for (size_t i = 0; i < told.size; i++)
        if (told.data[i] >= '0' && told.data[i] <= '9')
            size = size * 10 + (uint64_t)(told.data[i] - '0');
    if (size == 0)
        return cx_fail(err, CX_E_UNSUPPORTED, "the file does not tell the journal's size");
    CX_TRY(cx_proof_consistency(m->home, m->actor, size, size, &r->arena, &proof, &old_root,
                                &new_root, err));
    return runner_digest(r, &old_root, out, err);
}

static void answer_journal(runner *r, runner_moment *m)
{
    answer_each(r, m, "/journal_proofs", inclusion);
    answer_each(r, m, "/inclusion", inclusion);
    answer_each(r, m, "/consistency", consistency);
    if (cx_json_pointer(runner_file.root, CX_STR("/of")) != NULL)
        answer(r, m, "/root", root_then);
}

/* The URI of memory number i + 1 as it was written. */
static cx_status written_uri(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                             cx_err *err)
{
    const cx_json *uris = runner_array(runner_file.root, "/uris");
    cx_uri uri = {.version = 1, .id = numbered_id((uint64_t)(item - uris->items) + 1)};
    uint8_t key[2 + sizeof uri.id.bytes] = "m/";
    cx_bytes bytes;
    bool found;
    cx_head head;
    cx_buf text;
    memcpy(key + 2, uri.id.bytes, sizeof uri.id.bytes);
    CX_TRY(cx_home_get(m->home, m->actor, cx_bytes_from(key, sizeof key), &r->arena, &bytes, &found,
                       err));
    if (!found)
        return runner_string(r, CX_STR("no such memory"), out, err);
    CX_TRY(cx_head_decode(bytes, &r->arena, &head, err));
    uri.type = head.type;
    cx_buf_init(&text, cx_alloc_default());
    cx_uri_add(&uri, &text);
    cx_status status = runner_string(r, cx_buf_str(&text), out, err);
    cx_buf_done(&text);
    return status;
}

/* --- scenario_embed.json ---------------------------------------------------------------------- */

static cx_status point(runner *r, runner_moment *m, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_roots roots;
    cx_json_list object = cx_json_list_begin(&r->arena);
    (void)item;
    CX_TRY(cx_home_roots(m->home, m->actor, &roots, err));
    runner_put_uint(r, &object, "next_seq", roots.journal_size);
    CX_TRY(runner_put_digest(r, &object, "journal_root", &roots.journal, err));
    CX_TRY(runner_put_digest(r, &object, "memories_root", &roots.memories, err));
    CX_TRY(runner_put_digest(r, &object, "overall", &roots.overall, err));
    return cx_json_list_end_object(&object, out, err);
}

/* The file ends with a snapshot for the reason "x". */
static cx_status last_manifest(runner *r, runner_moment *m, const cx_json *item, cx_json *out,
                               cx_err *err)
{
    cx_manifest manifest;
    cx_bytes bytes;
    (void)item;
    CX_TRY(cx_snapshot_make(m->home, m->actor, CX_STR("x"), m->now_ns(m->now_arg), &r->arena,
                            &manifest, err));
    CX_TRY(cx_snapshot_get(m->home, m->actor, manifest.snapshot_seq, &r->arena, &manifest, &bytes,
                           err));
    return runner_hex(r, bytes, out, err);
}

/* Of sixteen dimensions, as the scenario says. */
static cx_status model(runner *r, runner_moment *m, const cx_json *item, cx_json *out, cx_err *err)
{
    char name[CX_EMBEDDER_MODEL_SIZE];
    (void)m;
    (void)item;
    cx_embedder_model(16, CX_STR(""), name);
    return runner_string(r, cx_str_from(name, sizeof name), out, err);
}

static const char *member_pointer(runner *r, const char *object, const char *member)
{
    cx_str text = cx_arena_printf(&r->arena, "%s/%s", object, member);
    return text.data == NULL ? "/out of memory" : text.data;
}

/* --- moments ---------------------------------------------------------------------------------- */

void runner_moment_snapshot(runner *r, runner_moment *m)
{
    cx_actor_info info;
    cx_err err = {0};
    if (cx_failed(cx_home_actor(m->home, m->actor, &info, &err)) || info.snapshot_count == 0)
        return;
    m->has_snapshot = true;
    m->snapshot = info.snapshot_count - 1;
    answer(r, m, "/manifest", manifest_of);
    answer(r, m, "/find_by_root_seq", found_by_root);
    answer(r, m, "/multiproof", memories_proof);
    answer(r, m, "/edges_multiproof", edges_proof);
    answer(r, m, "/edges_multiproof_cbor", edges_container);
    answer(r, m, "/rebuild", runner_rebuilt);
    answer_each(r, m, "/keyspace_dump_before_rebuild_excluding_smt", runner_row);
}

void runner_moment_step(runner *r, runner_moment *m, size_t index)
{
    cx_actor_info info;
    cx_entry_view view;
    cx_payload payload;
    char list[48];
    if (cx_failed(cx_home_actor(m->home, m->actor, &info, NULL)) || info.entry_count == 0 ||
        cx_failed(cx_home_entry(m->home, m->actor, info.entry_count - 1, &r->arena, &view, NULL)))
        return;
    (void)snprintf(list, sizeof list, "/steps/%zu/args", index);
    cx_entry_kind kind = cx_entry_kind_of(view.entry.kind);
    if (cx_failed(cx_payload_decode(kind, view.payload, &r->arena, &payload, NULL)))
        return;
    if (kind == CX_ENTRY_LEARN_WEIGHTS) {
        runner_value_uint(r, member_pointer(r, list, "learn_seq"), view.entry.seq);
        runner_value_uint(r, member_pointer(r, list, "seq"), payload.as.learn_weights.source_seq);
    } else if (kind == CX_ENTRY_COMPACT) {
        runner_value_uint(r, member_pointer(r, list, "kept"), payload.as.compact.kept);
        runner_value_uint(r, member_pointer(r, list, "compacted"), payload.as.compact.compacted);
    }
}

void runner_moment_point(runner *r, runner_moment *m, size_t index)
{
    char pointer[64];
    (void)snprintf(pointer, sizeof pointer, "/steps/%zu", index);
    answer(r, m, pointer, point);
}

void runner_moment_end(runner *r, runner_moment *m)
{
    answer_journal(r, m);
    answer(r, m, "/manifest_cbor", last_manifest);
    answer(r, m, "/model", model);
    answer_each(r, m, "/keyspace_excluding_smt", runner_row);
    answer_each(r, m, "/uris", written_uri);
    if (!m->has_snapshot)
        return;
    answer(r, m, "/after_step_20/proof_against_manifest_by_default", after_drift);
    answer(r, m, "/after_step_20/historical_proof_at_snapshot_0", historical);
    answer(r, m, "/erased_leaf_multiproof", erased_proof);
}
