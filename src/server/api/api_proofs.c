/*
 * api_proofs.c - proofs and roots, with the answers of `cortex prove` and `cortex roots` --json;
 * the proof itself is base64 in `proof`, or with raw=1 the bytes.  Snapshots and checkpoints as
 * stored.
 *
 *   P1  Every proof is verified as its recipient will verify it before it is sent.
 */
#include <errno.h>

#include "crypto/api.h"
#include "proof/api.h"
#include "ledger/api.h"
#include "server/route.h"

/* --- members ---------------------------------------------------------------------------------- */

static void add_value(cx_json_list *list, const char *name, cx_json value)
{
    cx_json_list_put(list, cx_str_z(name), value);
}

static void add_uint(cx_json_list *list, const char *name, uint64_t value)
{
    add_value(list, name, cx_json_make_uint(list->arena, value));
}

static void add_text(cx_json_list *list, const char *name, cx_str text)
{
    add_value(list, name, cx_json_make_str(text));
}

static void add_digest(cx_json_list *list, const char *name, const cx_digest *digest)
{
    char *hex = CX_ARENA_ARRAY(list->arena, char, 64);
    if (hex == NULL) {
        list->failed = true;
        return;
    }
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    add_text(list, name, cx_str_from(hex, 64));
}

/* P1 */
static cx_status check_made(cx_call *call, cx_bytes made, cx_err *err)
{
    static const cx_check_options trust = {.expect = CX_EXPECT_ANY};
    cx_check_result result;
    CX_TRY(cx_check_run(made, &trust, call->arena, &result, err));
    if (result.finding.verdict != CX_BROKEN)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_CONFLICT, result.finding.reason, CX_NO_OFFSET,
                      "cannot make this proof: %s", result.finding.message);
}

/* `members` without `proof` and `bytes`. */
static cx_status answer_proof(cx_call *call, cx_bytes proof, cx_json_list *members, cx_err *err)
{
    CX_TRY(check_made(call, proof, err));
    if (cx_call_flag(call, "raw")) {
        cx_buf_add(&call->response.body, proof.data, proof.size);
        cx_call_answer(call, 200, "application/octet-stream");
        return CX_SUCCESS;
    }
    cx_buf text;
    cx_json value;
    cx_buf_init(&text, call->service->alloc);
    cx_base64_add(&text, proof, CX_BASE64);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        add_text(members, "proof", cx_buf_str(&text));
        add_uint(members, "bytes", proof.size);
        status = cx_json_list_end_object(members, &value, err);
    }
    if (!cx_failed(status))
        status = cx_call_answer_json(call, 200, &value, err);
    cx_buf_done(&text);
    return status;
}

/* --- the journal ------------------------------------------------------------------------------ */

static cx_status answer_entry(cx_call *call, cx_buf *bytes, cx_err *err)
{
    cx_str actor = cx_call_text(call, "actor");
    const cx_param *size = cx_call_param(call, "size");
    cx_json_list list = cx_json_list_begin(call->arena);
    cx_inclusion proof;
    cx_digest root;
    CX_TRY(cx_proof_journal(cx_recorder_home(call->service->recorder), actor,
                            cx_call_param(call, "seq")->count, size->given ? size->count : 0, true,
                            call->arena, &proof, &root, err));
    cx_inclusion_encode(&proof, bytes);
    CX_TRY(cx_buf_check(bytes, err));
    cx_digest leaf = cx_scheme_entry(proof.entry);
    add_text(&list, "actor", actor);
    add_digest(&list, "journal_root", &root);
    add_uint(&list, "journal_size", proof.tree_size);
    add_digest(&list, "leaf_hash", &leaf);
    add_uint(&list, "seq", proof.index);
    return answer_proof(call, cx_buf_bytes(bytes), &list, err);
}

static cx_status answer_consistency(cx_call *call, cx_buf *bytes, cx_err *err)
{
    cx_str actor = cx_call_text(call, "actor");
    cx_json_list list = cx_json_list_begin(call->arena);
    cx_consistency proof;
    cx_digest older, newer;
    CX_TRY(cx_proof_consistency(
        cx_recorder_home(call->service->recorder), actor, cx_call_param(call, "from")->count,
        cx_call_param(call, "to")->count, call->arena, &proof, &older, &newer, err));
    cx_consistency_encode(&proof, bytes);
    CX_TRY(cx_buf_check(bytes, err));
    add_text(&list, "actor", actor);
    add_uint(&list, "from", proof.size1);
    add_digest(&list, "from_root", &older);
    add_uint(&list, "to", proof.size2);
    add_digest(&list, "to_root", &newer);
    return answer_proof(call, cx_buf_bytes(bytes), &list, err);
}

static cx_status answer_with_buffer(cx_call *call,
                                    cx_status (*answer)(cx_call *call, cx_buf *bytes, cx_err *err),
                                    cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, call->service->alloc);
    cx_status status = answer(call, &bytes, err);
    cx_buf_done(&bytes);
    return status;
}

cx_status cx_api_proof_entry(cx_call *call, cx_err *err)
{
    return answer_with_buffer(call, answer_entry, err);
}

cx_status cx_api_proof_consistency(cx_call *call, cx_err *err)
{
    return answer_with_buffer(call, answer_consistency, err);
}

/* --- the state -------------------------------------------------------------------------------- */

typedef struct proof_request {
    cx_uri *uris;
    cx_str *texts;            /* as requested */
    cx_pack_question *claims; /* once answered, in the order of the proof */
    size_t count;
    cx_proof_request request;
    uint64_t snapshot;
} proof_request;

static cx_status read_uris(cx_call *call, proof_request *a, cx_err *err)
{
    const cx_target *target = &call->target;
    cx_id *ids = CX_ARENA_ARRAY(call->arena, cx_id, target->param_count);
    cx_edge *edges = CX_ARENA_ARRAY(call->arena, cx_edge, target->param_count);
    a->uris = CX_ARENA_ARRAY(call->arena, cx_uri, target->param_count);
    a->texts = CX_ARENA_ARRAY(call->arena, cx_str, target->param_count);
    a->claims = CX_ARENA_ARRAY(call->arena, cx_pack_question, target->param_count);
    if (ids == NULL || edges == NULL || a->uris == NULL || a->texts == NULL || a->claims == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < target->param_count; i++) {
        if (!cx_str_is(target->params[i].name, "uri"))
            continue;
        cx_uri *uri = &a->uris[a->count];
        CX_TRY(cx_uri_parse(target->params[i].value, uri, err));
        if (uri->is_edge != a->uris[0].is_edge)
            return cx_fail(err, CX_E_USAGE, "a proof covers either memories or edges, not both");
        ids[a->count] = uri->id;
        edges[a->count] = (cx_edge){.type = uri->type, .src = uri->id, .dst = uri->dst};
        a->texts[a->count++] = target->params[i].value;
    }
    bool are_edges = a->uris[0].is_edge;
    a->request = (cx_proof_request){
        .name_space = are_edges ? CX_NAMESPACE_EDGES : CX_NAMESPACE_MEMORIES,
        .ids = ids,
        .id_count = are_edges ? 0 : a->count,
        .edges = edges,
        .edge_count = are_edges ? a->count : 0,
        .compact = cx_call_flag(call, "compact"),
    };
    return CX_SUCCESS;
}

static cx_status choose_snapshot(cx_call *call, cx_home *home, cx_str actor, proof_request *a,
                                 cx_err *err)
{
    const cx_param *at = cx_call_param(call, "at");
    const cx_manifest *manifests;
    size_t count;
    a->snapshot = at->count;
    if (at->given)
        return CX_SUCCESS;
    CX_TRY(cx_snapshot_list(home, actor, call->arena, &manifests, &count, err));
    if (count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "SnapshotNotFound", CX_NO_OFFSET,
                          "the actor has no snapshot; make one with 'cortex snapshot make'");
    a->snapshot = manifests[count - 1].snapshot_seq;
    return CX_SUCCESS;
}

static const char *claim_name(cx_membership kind)
{
    return kind == CX_MEMBER ? "member" : kind == CX_MEMBER_ERASED ? "erased" : "absent";
}

/* Each is there, or with absent=1 is not: else there is nothing to prove. */
static cx_status add_claims(cx_call *call, proof_request *a, const cx_state_proof *proof,
                            cx_json_list *members, cx_err *err)
{
    bool want_absent = cx_call_flag(call, "absent");
    cx_json_list list = cx_json_list_begin(call->arena);
    cx_json value;
    for (size_t i = 0; i < a->count; i++) {
        cx_membership kind = proof->proof.items[i].kind;
        cx_str uri = a->texts[cx_state_proof_asked(proof, i)];
        if ((kind == CX_ABSENT) != want_absent)
            return cx_fail_at(err, CX_E_CONFLICT, want_absent ? "NotAbsent" : "NotMember",
                              CX_NO_OFFSET, "%.*s is %s in snapshot %llu", (int)uri.size, uri.data,
                              want_absent ? "there" : "not", (unsigned long long)a->snapshot);
        a->claims[i] = (cx_pack_question){uri, kind};
        cx_json_list item = cx_json_list_begin(call->arena);
        add_text(&item, "claim", cx_str_z(claim_name(kind)));
        add_text(&item, "uri", uri);
        CX_TRY(cx_json_list_end_object(&item, &value, err));
        cx_json_list_add(&list, value);
    }
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    add_value(members, "claims", value);
    return CX_SUCCESS;
}

static cx_status answer_memory(cx_call *call, cx_buf *bytes, cx_err *err)
{
    cx_home *home = cx_recorder_home(call->service->recorder);
    cx_str actor = cx_call_text(call, "actor");
    cx_json_list list = cx_json_list_begin(call->arena);
    proof_request a = {.count = 0};
    cx_state_proof proof;
    cx_manifest manifest;
    CX_TRY(read_uris(call, &a, err));
    CX_TRY(choose_snapshot(call, home, actor, &a, err));
    if (cx_call_param(call, "at")->given)
        CX_TRY(cx_proof_at(home, actor, &a.request, a.snapshot, call->arena, &proof, err));
    else
        CX_TRY(cx_proof_now(home, actor, &a.request, a.snapshot, call->arena, &proof, err));
    CX_TRY(add_claims(call, &a, &proof, &list, err));
    CX_TRY(cx_manifest_decode(proof.manifest, &manifest, err));
    const cx_pack pack = {
        .scheme = manifest.scheme,
        .proof = proof.bytes,
        .manifest = proof.manifest,
        .questions = a.claims,
        .question_count = a.count,
        .leaves = manifest.scheme == CX_SCHEME_MATRIX_1 ? proof.leaves : NULL,
    };
    CX_TRY(cx_pack_encode(&pack, bytes, err));
    add_text(&list, "actor", actor);
    add_digest(&list, "overall_root", &manifest.overall_root);
    add_uint(&list, "snapshot", a.snapshot);
    return answer_proof(call, cx_buf_bytes(bytes), &list, err);
}

cx_status cx_api_proof_memory(cx_call *call, cx_err *err)
{
    return answer_with_buffer(call, answer_memory, err);
}

/* --- roots ------------------------------------------------------------------------------------ */

static cx_status add_roots(cx_call *call, const cx_actor_info *actor, cx_json_list *list,
                           cx_err *err)
{
    cx_json_list item = cx_json_list_begin(call->arena);
    cx_roots roots;
    cx_json value;
    CX_TRY(cx_home_roots(cx_recorder_home(call->service->recorder), actor->name, &roots, err));
    add_text(&item, "actor", actor->name);
    add_digest(&item, "edges_root", &roots.edges);
    add_digest(&item, "journal_root", &roots.journal);
    add_uint(&item, "journal_size", roots.journal_size);
    add_digest(&item, "memories_root", &roots.memories);
    add_digest(&item, "overall_root", &roots.overall);
    add_text(&item, "scheme", cx_scheme_name(actor->scheme));
    CX_TRY(cx_json_list_end_object(&item, &value, err));
    cx_json_list_add(list, value);
    return CX_SUCCESS;
}

/* Of all actors together: now, and as it was recorded last. */
static cx_status add_home_root(cx_call *call, cx_json_list *out, cx_err *err)
{
    cx_home *home = cx_recorder_home(call->service->recorder);
    cx_json_list now = cx_json_list_begin(call->arena), last = cx_json_list_begin(call->arena);
    cx_home_root root;
    cx_home_root_entry recorded;
    cx_json value = cx_json_make_null();
    bool found = false;
    CX_TRY(cx_home_root_now(home, &root, err));
    CX_TRY(cx_home_root_last(home, &recorded, &found, err));
    if (found) {
        add_uint(&last, "actors", recorded.root.actors);
        add_uint(&last, "entries", recorded.root.entries);
        add_digest(&last, "root", &recorded.root.root);
        add_uint(&last, "seq", recorded.seq);
        CX_TRY(cx_json_list_end_object(&last, &value, err));
    }
    add_uint(&now, "actors", root.actors);
    add_uint(&now, "entries", root.entries);
    add_value(&now, "recorded", value);
    add_digest(&now, "root", &root.root);
    CX_TRY(cx_json_list_end_object(&now, &value, err));
    add_value(out, "home_root", value);
    return CX_SUCCESS;
}

cx_status cx_api_roots(cx_call *call, cx_err *err)
{
    cx_home *home = cx_recorder_home(call->service->recorder);
    cx_str name = cx_call_text(call, "actor");
    cx_json_list list = cx_json_list_begin(call->arena), root = cx_json_list_begin(call->arena);
    const cx_actor_info *actors;
    cx_actor_info one;
    cx_json value;
    size_t count = 1;
    if (name.data != NULL) {
        CX_TRY(cx_home_actor(home, name, &one, err));
        actors = &one;
    } else {
        CX_TRY(cx_home_actors(home, call->arena, &actors, &count, err));
    }
    for (size_t i = 0; i < count; i++)
        CX_TRY(add_roots(call, &actors[i], &list, err));
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    add_value(&root, "actors", value);
    if (name.data == NULL)
        CX_TRY(add_home_root(call, &root, err));
    add_text(&root, "scheme", cx_scheme_name(cx_home_scheme(home)));
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- snapshots -------------------------------------------------------------------------------- */

static cx_status add_snapshot(cx_json_list *list, const cx_manifest *manifest, cx_err *err)
{
    cx_json_list item = cx_json_list_begin(list->arena);
    cx_json value;
    add_uint(&item, "snapshot", manifest->snapshot_seq);
    add_value(&item, "created_ns", cx_json_make_int(list->arena, manifest->created_ns));
    add_uint(&item, "journal_size", manifest->journal_size);
    add_digest(&item, "journal_root", &manifest->journal_root);
    add_digest(&item, "memories_root", &manifest->memories_root);
    add_digest(&item, "edges_root", &manifest->edges_root);
    add_digest(&item, "overall_root", &manifest->overall_root);
    add_uint(&item, "live_memories", manifest->live_memories);
    add_uint(&item, "edges", manifest->edge_count);
    add_uint(&item, "tombstoned", manifest->tombstoned);
    add_text(&item, "trigger", manifest->trigger);
    add_text(&item, "signed_by", manifest->signed_by);
    add_value(&item, "sealed", cx_json_make_bool(!manifest->signature.null));
    CX_TRY(cx_json_list_end_object(&item, &value, err));
    cx_json_list_add(list, value);
    return CX_SUCCESS;
}

/* Newest first. */
cx_status cx_api_snapshots(cx_call *call, cx_err *err)
{
    cx_home *home = cx_recorder_home(call->service->recorder);
    cx_str actor = cx_call_text(call, "actor");
    const cx_param *limit = cx_call_param(call, "limit");
    cx_json_list list = cx_json_list_begin(call->arena), root = cx_json_list_begin(call->arena);
    const cx_manifest *manifests = NULL;
    cx_json value;
    size_t count = 0, most = limit->given ? limit->count : 100;
    CX_TRY(cx_snapshot_list(home, actor, call->arena, &manifests, &count, err));
    for (size_t i = 0; i < count && i < most; i++)
        CX_TRY(add_snapshot(&list, &manifests[count - 1 - i], err));
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    add_text(&root, "actor", actor);
    add_uint(&root, "count", count);
    add_value(&root, "items", value);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- seeds ------------------------------------------------------------------------------------ */

/* With the members of `cortex seed` --json. */
cx_status cx_api_seed(cx_call *call, cx_err *err)
{
    const cx_param *at = cx_call_param(call, "at");
    const cx_seed_question question = {.intent_id = cx_call_text(call, "intent"),
                                       .mtx_digest = cx_call_text(call, "mtx"),
                                       .model_id = cx_call_text(call, "model"),
                                       .at = at->given,
                                       .snapshot = at->given ? at->count : 0};
    cx_json_list list = cx_json_list_begin(call->arena);
    cx_seed_answer answer;
    cx_json value;
    CX_TRY(cx_seed_over(cx_recorder_home(call->service->recorder), cx_call_text(call, "actor"),
                        &question, call->arena, &answer, err));
    cx_str seed = cx_arena_copy_str(call->arena, cx_str_from(answer.seed, sizeof answer.seed));
    if (seed.data == NULL)
        return cx_fail_nomem(err);
    add_text(&list, "actor", cx_call_text(call, "actor"));
    add_digest(&list, "overall_root", &answer.overall_root);
    add_text(&list, "scheme", cx_scheme_name(answer.scheme));
    add_text(&list, "seed", seed);
    if (answer.has_snapshot)
        add_uint(&list, "snapshot", answer.snapshot);
    else
        cx_json_put_null(&list, "snapshot");
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

/* --- checkpoints ------------------------------------------------------------------------------ */

#define NOTE_BYTES_MAX 65536
#define NOTES_MAX 1000

typedef struct note_listing {
    cx_call *call;
    const char *folder;
    cx_json_list list;
    size_t count;
    cx_status status;
    cx_err *err;
} note_listing;

/* A file that is not a checkpoint note is left out: signing the next checkpoint reports it
 * (cli/ledger/checkpoint.c). */
static cx_status add_note(note_listing *n, const char *name)
{
    cx_checkpoint checkpoint;
    cx_json value;
    cx_str path = cx_arena_printf(n->call->arena, "%s/%s", n->folder, name);
    cx_buf note;
    if (path.data == NULL)
        return cx_fail_nomem(n->err);
    cx_buf_init(&note, n->call->service->alloc);
    cx_status status =
        cx_io_read_file(n->call->service->io, path.data, NOTE_BYTES_MAX, &note, n->err);
    cx_str text = cx_arena_copy_str(n->call->arena, cx_buf_str(&note));
    cx_buf_done(&note);
    if (cx_failed(status) || text.data == NULL ||
        cx_failed(cx_checkpoint_parse(cx_str_bytes(text), &checkpoint, NULL, NULL)))
        return CX_SUCCESS;
    cx_json_list item = cx_json_list_begin(n->call->arena);
    add_text(&item, "origin", checkpoint.origin);
    add_uint(&item, "size", checkpoint.size);
    add_digest(&item, "root", &checkpoint.root);
    add_text(&item, "note", text);
    CX_TRY(cx_json_list_end_object(&item, &value, n->err));
    cx_json_list_add(&n->list, value);
    return CX_SUCCESS;
}

static bool add_note_file(void *arg, const char *name)
{
    note_listing *n = arg;
    if (!cx_str_starts(cx_str_z(name), CX_STR("checkpoint-")))
        return true;
    n->status = add_note(n, name);
    return !cx_failed(n->status) && ++n->count < NOTES_MAX;
}

/* The one that was signed last under each origin. */
cx_status cx_api_checkpoints(cx_call *call, cx_err *err)
{
    cx_service *service = call->service;
    cx_str folder = cx_arena_printf(call->arena, "%s/keys", service->options.home_path);
    cx_json_list root = cx_json_list_begin(call->arena);
    cx_json value;
    if (folder.data == NULL)
        return cx_fail_nomem(err);
    note_listing n = {call, folder.data, cx_json_list_begin(call->arena), 0, CX_SUCCESS, err};
    int failed = service->io->list(service->io, folder.data, add_note_file, &n);
    CX_TRY(n.status);
    if (failed != 0 && failed != -ENOENT)
        return cx_fail_os(err, -failed, "the folder of keys");
    CX_TRY(cx_json_list_end_array(&n.list, &value, err));
    add_value(&root, "items", value);
    CX_TRY(cx_json_list_end_object(&root, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}
