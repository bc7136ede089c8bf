/*
 * cmd_prove.c - `cortex prove`: writes a file that proves to an outsider that an object is, or
 * is not, recorded.
 *
 *   P1  Every file is verified before it is written, as its reader will verify it.
 */
#include <string.h>
#include <unistd.h>

#include "cli/ledger/checkpoint.h"
#include "cli/ledger/prove_never.h"
#include "proof/api.h"
#include "ledger/api.h"
#include "cli/run/run_place.h"

typedef struct question {
    const char *text; /* as given */
    bool latest;      /* a ULID: version and type are what the proof shows */
    cx_uri uri;
} question;

typedef struct state {
    bool entry;   /* of the journal, in place of URIs */
    bool in_home; /* the actor's leaf in the home root, in place of URIs */
    uint64_t seq;
    uint64_t size; /* 0 = now */
    bool at;
    uint64_t snapshot;
    question *questions;
    size_t count;
    cx_cli_stored_checkpoint checkpoint;
    bool has_checkpoint;
} state;

/* --- the question ----------------------------------------------------------------------------- */

static cx_status parse_question(const char *text, question *out, cx_err *err)
{
    *out = (question){.text = text};
    out->latest = cx_ulid_parse(cx_str_z(text), &out->uri.id);
    return out->latest ? CX_SUCCESS : cx_uri_parse(cx_str_z(text), &out->uri, err);
}

static cx_status check_output(cx_cli_ledger *l, cx_err *err)
{
    const char *path = cx_cli_value(l->args, "output");
    bool to_stdout = path == NULL || strcmp(path, "-") == 0;
    if (to_stdout && l->json)
        return cx_fail(err, CX_E_USAGE, "--json needs --output FILE for the proof itself");
    if (to_stdout && isatty(STDOUT_FILENO) == 1)
        return cx_fail(err, CX_E_USAGE, "expected --output FILE: a proof is binary");
    return CX_SUCCESS;
}

static cx_status check_in_home(cx_cli_ledger *l, cx_err *err)
{
    static const char *const others[] = {"absent", "at",    "compact", "edges",
                                         "entry",  "fresh", "size"};
    if (l->args->operand_count != 0)
        return cx_fail(err, CX_E_USAGE, "--in-home is about the actor: expected no URI");
    for (size_t i = 0; i < CX_COUNT_OF(others); i++)
        if (cx_cli_has(l->args, others[i]))
            return cx_fail(err, CX_E_USAGE, "--%s does not apply to --in-home", others[i]);
    return check_output(l, err);
}

static cx_status check_options(cx_cli_ledger *l, state *s, cx_err *err)
{
    const cx_cli_args *args = l->args;
    if (s->in_home)
        return check_in_home(l, err);
    if (s->entry == (args->operand_count != 0))
        return cx_fail(err, CX_E_USAGE, "expected URI..., --entry SEQ or --in-home");
    if (s->entry &&
        (cx_cli_has(args, "absent") || cx_cli_has(args, "compact") || cx_cli_has(args, "edges") ||
         cx_cli_has(args, "at") || cx_cli_has(args, "fresh") || s->has_checkpoint))
        return cx_fail(err, CX_E_USAGE,
                       "--absent, --compact, --edges, --at, --fresh and --checkpoint apply to "
                       "URIs, not to --entry");
    if (!s->entry && cx_cli_has(args, "size"))
        return cx_fail(err, CX_E_USAGE, "--size N needs --entry SEQ");
    if (s->at && cx_cli_has(args, "fresh"))
        return cx_fail(err, CX_E_USAGE, "expected either --at SNAPSHOT or --fresh");
    return check_output(l, err);
}

static cx_status prepare_proof(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    const cx_cli_args *args = l->args;
    const char *checkpoint = cx_cli_value(args, "checkpoint");
    s->entry = cx_cli_has(args, "entry");
    s->in_home = cx_cli_has(args, "in-home");
    s->seq = cx_cli_number(args, "entry", 0);
    s->size = cx_cli_number(args, "size", 0);
    s->at = cx_cli_has(args, "at");
    s->snapshot = cx_cli_number(args, "at", 0);
    s->has_checkpoint = checkpoint != NULL;
    CX_TRY(check_options(l, s, err));
    if (checkpoint != NULL)
        CX_TRY(cx_cli_read_checkpoint(l->cli, checkpoint, &s->checkpoint, err));
    s->questions = CX_ARENA_ARRAY(l->arena, question, args->operand_count + 1);
    if (s->questions == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < args->operand_count; i++)
        CX_TRY(parse_question(args->operands[i], &s->questions[s->count++], err));
    return CX_SUCCESS;
}

/* With --edges: all edges from the named memories, in place of the memories. */
static cx_status expand_edges(cx_cli_ledger *l, state *s, cx_err *err)
{
    CX_VEC(question) all = {0};
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < s->count; i++) {
        const cx_edge_view *edges;
        size_t count;
        if (s->questions[i].uri.is_edge)
            CX_TRY_GOTO(status,
                        cx_fail(err, CX_E_USAGE, "--edges: expected memories, found the edge %s",
                                s->questions[i].text));
        CX_TRY_GOTO(status, cx_memory_edges(l->memory, &s->questions[i].uri.id, false, 0, true,
                                            CX_PROOF_KEYS_MAX, l->arena, &edges, &count, err));
        for (size_t j = 0; j < count; j++) {
            const cx_edge *e = &edges[j].edge;
            question *slot = cx_vec_push(&all, l->cli->alloc);
            if (slot == NULL)
                CX_TRY_GOTO(status, cx_fail_nomem(err));
            *slot =
                (question){.text = s->questions[i].text,
                           .uri = {.is_edge = true, .type = e->type, .id = e->src, .dst = e->dst}};
        }
    }
    if (all.count == 0)
        CX_TRY_GOTO(status, cx_fail_at(err, CX_E_NOT_FOUND, "EmptyProof", CX_NO_OFFSET,
                                       "the memories named have no edges; leave out --edges"));
    s->questions = CX_ARENA_ARRAY(l->arena, question, all.count);
    if (s->questions == NULL)
        CX_TRY_GOTO(status, cx_fail_nomem(err));
    memcpy(s->questions, all.items, all.count * sizeof *all.items);
    s->count = all.count;
done:
    cx_vec_done(&all, l->cli->alloc);
    return status;
}

static cx_status make_request(cx_cli_ledger *l, const state *s, cx_proof_request *out, cx_err *err)
{
    cx_id *ids = CX_ARENA_ARRAY(l->arena, cx_id, s->count + 1);
    cx_edge *edges = CX_ARENA_ARRAY(l->arena, cx_edge, s->count + 1);
    if (ids == NULL || edges == NULL)
        return cx_fail_nomem(err);
    bool are_edges = s->questions[0].uri.is_edge;
    for (size_t i = 0; i < s->count; i++) {
        const cx_uri *uri = &s->questions[i].uri;
        if (uri->is_edge != are_edges)
            return cx_fail(err, CX_E_USAGE,
                           "a proof covers either memories or edges; make two proofs");
        ids[i] = uri->id;
        edges[i] = (cx_edge){.type = uri->type, .src = uri->id, .dst = uri->dst};
    }
    *out = (cx_proof_request){
        .name_space = are_edges ? CX_NAMESPACE_EDGES : CX_NAMESPACE_MEMORIES,
        .ids = ids,
        .id_count = are_edges ? 0 : s->count,
        .edges = edges,
        .edge_count = are_edges ? s->count : 0,
        .compact = cx_cli_has(l->args, "compact"),
    };
    return CX_SUCCESS;
}

/* --- the proof -------------------------------------------------------------------------------- */

static cx_status choose_snapshot(cx_cli_ledger *l, state *s, cx_err *err)
{
    const cx_manifest *manifests;
    cx_manifest made;
    size_t count;
    if (s->at)
        return CX_SUCCESS;
    if (cx_cli_has(l->args, "fresh")) {
        CX_TRY(cx_snapshot_make(l->home, l->actor, CX_STR("explicit"),
                                (int64_t)l->cli->io->wall_ns(l->cli->io), l->arena, &made, err));
        s->snapshot = made.snapshot_seq;
        return cx_cli_keep_reading(l, err);
    }
    CX_TRY(cx_snapshot_list(l->home, l->actor, l->arena, &manifests, &count, err));
    if (count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "SnapshotNotFound", CX_NO_OFFSET,
                          "there is no snapshot to prove against; --fresh takes one");
    s->snapshot = manifests[count - 1].snapshot_seq;
    return CX_SUCCESS;
}

/* A ULID becomes the URI of what the proof shows. */
static cx_status complete_uri(cx_cli_ledger *l, question *q, cx_bytes leaf, cx_membership kind,
                              cx_err *err)
{
    cx_head head;
    if (!q->latest)
        return CX_SUCCESS;
    if (leaf.size != 0) {
        CX_TRY(cx_head_decode(leaf, l->arena, &head, err));
        q->uri.type = head.type;
        q->uri.version = head.current_version;
        return CX_SUCCESS;
    }
    if (kind == CX_ABSENT)
        return cx_fail(err, CX_E_USAGE,
                       "%s is not recorded; to prove that, give a whole URI, such as "
                       "matrix://cortex/Fact/%s#1",
                       q->text, q->text);
    cx_memory_view view;
    CX_TRY(cx_memory_resolve_latest(l->memory, &q->uri.id, l->arena, &view, err));
    q->uri = view.uri;
    return CX_SUCCESS;
}

static const char *claim_name(cx_membership kind)
{
    return kind == CX_MEMBER ? "member" : kind == CX_MEMBER_ERASED ? "erased" : "absent";
}

/* The claims of the pack, one a key, and whether they are what was hoped for. */
static cx_status make_claims(cx_cli_ledger *l, state *s, const cx_state_proof *proof,
                             cx_pack_question **out, cx_err *err)
{
    bool absent = cx_cli_has(l->args, "absent");
    cx_pack_question *claims = CX_ARENA_ARRAY(l->arena, cx_pack_question, s->count);
    if (claims == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < s->count; i++) {
        cx_membership kind = proof->proof.items[i].kind;
        question *asked = &s->questions[cx_state_proof_asked(proof, i)];
        cx_buf uri;
        if ((kind == CX_ABSENT) != absent)
            return cx_fail_at(err, CX_E_CONFLICT, absent ? "NotAbsent" : "NotMember", CX_NO_OFFSET,
                              "%s is %s in snapshot %llu%s", asked->text, absent ? "there" : "not",
                              (unsigned long long)s->snapshot,
                              absent ? "" : "; --absent proves that");
        CX_TRY(complete_uri(l, asked, proof->leaves[i], kind, err));
        cx_buf_init(&uri, l->cli->alloc);
        cx_uri_add(&asked->uri, &uri);
        claims[i] = (cx_pack_question){cx_arena_copy_str(l->arena, cx_buf_str(&uri)), kind};
        cx_buf_done(&uri);
        if (claims[i].uri.data == NULL)
            return cx_fail_nomem(err);
    }
    *out = claims;
    return CX_SUCCESS;
}

/* The seal entry of a sealed manifest comes after the journal entries that the manifest covers. */
static cx_status find_seal(cx_cli_ledger *l, const cx_manifest *manifest, uint64_t journal_size,
                           uint64_t *out_seq, bool *out_found, cx_err *err)
{
    *out_found = false;
    if (manifest->signature.null)
        return CX_SUCCESS;
    for (uint64_t seq = manifest->journal_size; seq < journal_size; seq++) {
        cx_entry_view view;
        cx_payload payload;
        cx_arena_mark mark = cx_arena_mark_now(l->arena);
        CX_TRY(cx_home_entry(l->home, l->actor, seq, l->arena, &view, err));
        bool found = cx_str_is(view.entry.kind, "seal");
        if (found) {
            CX_TRY(cx_payload_decode(CX_ENTRY_SEAL, view.payload, l->arena, &payload, err));
            found = payload.as.seal.snapshot_seq == manifest->snapshot_seq;
        }
        cx_arena_reset(l->arena, mark);
        if (found) {
            *out_seq = seq;
            *out_found = true;
            return CX_SUCCESS;
        }
    }
    return CX_SUCCESS;
}

/* The seal's place in the journal, at the checkpoint's size when there is one. */
static cx_status add_seal(cx_cli_ledger *l, const state *s, const cx_manifest *manifest,
                          cx_pack *pack, cx_buf *bytes, cx_err *err)
{
    cx_actor_info actor;
    cx_inclusion inclusion;
    cx_digest root;
    uint64_t seq;
    bool found;
    CX_TRY(cx_home_actor(l->home, l->actor, &actor, err));
    uint64_t size = s->has_checkpoint ? s->checkpoint.checkpoint.size : actor.entry_count;
    CX_TRY(find_seal(l, manifest, size, &seq, &found, err));
    if (!found && s->has_checkpoint)
        return cx_fail_at(
            err, CX_E_CONFLICT, "NotSealed", CX_NO_OFFSET,
            "the first %llu entries contain no seal of snapshot %llu, so the checkpoint does not "
            "cover it; 'cortex snapshot seal' it, then make a new checkpoint",
            (unsigned long long)size, (unsigned long long)s->snapshot);
    if (!found)
        return CX_SUCCESS;
    CX_TRY(cx_proof_journal(l->home, l->actor, seq, size, true, l->arena, &inclusion, &root, err));
    if (s->has_checkpoint && !cx_digest_eq(&root, &s->checkpoint.checkpoint.root))
        return cx_fail_at(err, CX_E_CONFLICT, "Forked", CX_NO_OFFSET,
                          "the journal's first %llu entries are not those of the checkpoint",
                          (unsigned long long)size);
    cx_inclusion_encode(&inclusion, bytes);
    CX_TRY(cx_buf_check(bytes, err));
    pack->inclusion = cx_buf_bytes(bytes);
    if (s->has_checkpoint && s->checkpoint.is_note)
        pack->checkpoint = s->checkpoint.bytes;
    return CX_SUCCESS;
}

/* P1 */
static cx_status deliver_checked(cx_cli_ledger *l, cx_bytes made, cx_err *err)
{
    static const cx_check_options trust = {.expect = CX_EXPECT_ANY};
    cx_check_result result;
    CX_TRY(cx_check_run(made, &trust, l->arena, &result, err));
    if (result.finding.verdict == CX_BROKEN)
        return cx_fail_at(err, CX_E_CONFLICT, result.finding.reason, CX_NO_OFFSET,
                          "cannot make a proof: %s", result.finding.message);
    return cx_cli_deliver(l->cli, l->args, made, err);
}

static cx_status answer_pack(cx_cli_ledger *l, const state *s, const cx_pack *pack, size_t size,
                             cx_err *err)
{
    const char *path = cx_cli_value(l->args, "output");
    cx_json_list json = cx_json_list_begin(l->arena), list = cx_json_list_begin(l->arena);
    cx_manifest manifest;
    CX_TRY(cx_manifest_decode(pack->manifest, &manifest, err));
    for (size_t i = 0; i < pack->question_count && l->json; i++) {
        cx_json_list item = cx_json_list_begin(l->arena);
        cx_json_put_str(&item, "claim", cx_str_z(claim_name(pack->questions[i].claim)));
        cx_json_put_str(&item, "uri", pack->questions[i].uri);
        cx_json_add_object(&list, &item);
    }
    if (!l->json) {
        if (path == NULL || strcmp(path, "-") == 0)
            return CX_SUCCESS;
        cx_shown_add(&l->out, cx_str_z(path));
        cx_buf_printf(&l->out, ": %s of %zu %s in snapshot %llu, overall root ",
                      cx_cli_has(l->args, "absent") ? "absence" : "presence", pack->question_count,
                      s->questions[0].uri.is_edge
                          ? (pack->question_count == 1 ? "edge" : "edges")
                          : (pack->question_count == 1 ? "memory" : "memories"),
                      (unsigned long long)s->snapshot);
        cx_cli_add_digest(&l->out, &manifest.overall_root);
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uint(&json, "bytes", size);
    cx_json_put_bool(&json, "compact", cx_cli_has(l->args, "compact"));
    cx_json_put_str(&json, "file", cx_str_z(path));
    cx_json_put_digest(&json, "overall_root", &manifest.overall_root);
    cx_json_put_bool(&json, "sealed", pack->inclusion.size != 0);
    cx_json_put_uint(&json, "snapshot", s->snapshot);
    cx_json_put_array(&json, "claims", &list);
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status write_pack(cx_cli_ledger *l, const state *s, const cx_pack *pack, cx_err *err)
{
    cx_buf bytes;
    cx_buf_init(&bytes, l->cli->alloc);
    cx_status status = cx_pack_encode(pack, &bytes, err);
    if (!cx_failed(status))
        status = deliver_checked(l, cx_buf_bytes(&bytes), err);
    if (!cx_failed(status))
        status = answer_pack(l, s, pack, bytes.size, err);
    cx_buf_done(&bytes);
    return status;
}

static cx_status prove_state(cx_cli_ledger *l, state *s, cx_err *err)
{
    cx_proof_request request;
    cx_state_proof proof;
    cx_manifest manifest;
    cx_pack_question *claims = NULL;
    CX_TRY(cx_cli_can_deliver(l->cli, l->args, err));
    CX_TRY(choose_snapshot(l, s, err));
    if (cx_cli_has(l->args, "edges"))
        CX_TRY(expand_edges(l, s, err));
    CX_TRY(make_request(l, s, &request, err));
    if (s->at)
        CX_TRY(cx_proof_at(l->home, l->actor, &request, s->snapshot, l->arena, &proof, err));
    else
        CX_TRY(cx_proof_now(l->home, l->actor, &request, s->snapshot, l->arena, &proof, err));
    CX_TRY(make_claims(l, s, &proof, &claims, err));
    CX_TRY(cx_manifest_decode(proof.manifest, &manifest, err));
    cx_pack pack = {
        .scheme = manifest.scheme,
        .proof = proof.bytes,
        .manifest = proof.manifest,
        .questions = claims,
        .question_count = s->count,
        .leaves = manifest.scheme == CX_SCHEME_MATRIX_1 ? proof.leaves : NULL,
    };
    cx_buf inclusion;
    cx_buf_init(&inclusion, l->cli->alloc);
    cx_status status = add_seal(l, s, &manifest, &pack, &inclusion, err);
    if (!cx_failed(status))
        status = write_pack(l, s, &pack, err);
    cx_buf_done(&inclusion);
    return status;
}

/* --- an entry --------------------------------------------------------------------------------- */

static cx_status answer_entry(cx_cli_ledger *l, const cx_inclusion *proof, const cx_digest *root,
                              size_t size, cx_err *err)
{
    const char *path = cx_cli_value(l->args, "output");
    cx_digest leaf = cx_scheme_entry(proof->entry);
    if (!l->json) {
        if (path == NULL || strcmp(path, "-") == 0)
            return CX_SUCCESS;
        cx_shown_add(&l->out, cx_str_z(path));
        cx_buf_printf(&l->out, ": entry %llu of %llu, journal root ",
                      (unsigned long long)proof->index, (unsigned long long)proof->tree_size);
        cx_cli_add_digest(&l->out, root);
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uint(&json, "bytes", size);
    cx_json_put_str(&json, "file", cx_str_z(path));
    cx_json_put_digest(&json, "journal_root", root);
    cx_json_put_uint(&json, "journal_size", proof->tree_size);
    cx_json_put_digest(&json, "leaf_hash", &leaf);
    cx_json_put_uint(&json, "seq", proof->index);
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status prove_entry(cx_cli_ledger *l, const state *s, cx_err *err)
{
    cx_inclusion proof;
    cx_digest root;
    cx_buf bytes;
    CX_TRY(
        cx_proof_journal(l->home, l->actor, s->seq, s->size, true, l->arena, &proof, &root, err));
    cx_buf_init(&bytes, l->cli->alloc);
    cx_inclusion_encode(&proof, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        status = deliver_checked(l, cx_buf_bytes(&bytes), err);
    if (!cx_failed(status))
        status = answer_entry(l, &proof, &root, bytes.size, err);
    cx_buf_done(&bytes);
    return status;
}

/* --- an actor in the home root ---------------------------------------------------------------- */

static cx_status answer_home(cx_cli_ledger *l, const cx_home_proof *proof, size_t size, cx_err *err)
{
    const char *path = cx_cli_value(l->args, "output");
    cx_home_leaf leaf;
    CX_TRY(cx_home_leaf_decode(proof->leaf, &leaf, err));
    if (!l->json) {
        if (path == NULL || strcmp(path, "-") == 0)
            return CX_SUCCESS;
        cx_shown_add(&l->out, cx_str_z(path));
        cx_buf_add_z(&l->out, ": ");
        cx_shown_add(&l->out, leaf.actor);
        cx_buf_printf(&l->out, " at %llu entries in the home root, overall root ",
                      (unsigned long long)leaf.size);
        cx_cli_add_digest(&l->out, &leaf.overall);
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", leaf.actor);
    cx_json_put_uint(&json, "bytes", size);
    cx_json_put_bool(&json, "checkpoint", proof->checkpoint.size != 0);
    cx_json_put_str(&json, "file", cx_str_z(path));
    cx_json_put_digest(&json, "overall_root", &leaf.overall);
    cx_json_put_uint(&json, "position", proof->index);
    cx_json_put_uint(&json, "size", leaf.size);
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status prove_home(cx_cli_ledger *l, const state *s, cx_err *err)
{
    cx_home_proof proof;
    cx_digest root;
    cx_buf bytes;
    const cx_checkpoint *note = s->has_checkpoint ? &s->checkpoint.checkpoint : NULL;
    CX_TRY(cx_home_root_prove(l->home, l->actor, note == NULL ? 0 : note->size, l->arena, &proof,
                              &root, err));
    if (note != NULL && !cx_digest_eq(&root, &note->root))
        return cx_fail_at(err, CX_E_CONFLICT, "Forked", CX_NO_OFFSET,
                          "the first %llu home roots are not those of the checkpoint; expected "
                          "one made by 'cortex checkpoint --all'",
                          (unsigned long long)note->size);
    if (note != NULL && s->checkpoint.is_note)
        proof.checkpoint = s->checkpoint.bytes;
    cx_buf_init(&bytes, l->cli->alloc);
    cx_home_proof_encode(&proof, &bytes);
    cx_status status = cx_buf_check(&bytes, err);
    if (!cx_failed(status))
        status = deliver_checked(l, cx_buf_bytes(&bytes), err);
    if (!cx_failed(status))
        status = answer_home(l, &proof, bytes.size, err);
    cx_buf_done(&bytes);
    return status;
}

static cx_status prove_job(cx_cli_ledger *l, void *arg, cx_err *err)
{
    state *s = arg;
    if (s->in_home)
        return prove_home(l, s, err);
    return s->entry ? prove_entry(l, s, err) : prove_state(l, s, err);
}

static int run_prove(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job reads = {CX_CLI_READ, true, prepare_proof, prove_job};
    static const cx_cli_job makes = {CX_CLI_WRITE, true, prepare_proof, prove_job};
    state s = {.entry = false};
    if (cx_cli_has(args, "never"))
        return cx_cli_prove_never(cli, args);
    if (cx_cli_has(args, "in"))
        return cx_cli_misuse(args, "--in RUN needs --never NAME");
    return cx_cli_run_job(cli, args, cx_cli_has(args, "fresh") ? &makes : &reads, &s);
}

static const cx_cli_operand operands[] = {{"URI", CX_CLI_TEXT, NULL, true, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("absent", 0, "Prove that none of them is recorded."),
    CX_CLI_OPT_FLAG("compact", 0,
                    "Leave out of the proof what follows from the rest of it: of many URIs it is "
                    "about a quarter shorter. Its reader must know schema 3."),
    CX_CLI_OPT("at", 0, CX_CLI_COUNT, "SNAPSHOT",
               "Prove the state as it was in this snapshot; default the newest, which must still "
               "be the present state."),
    CX_CLI_OPT_FLAG("fresh", 0, "Make a snapshot first, and prove against that."),
    CX_CLI_OPT_FLAG("edges", 0, "Prove the edges from these memories in place of the memories."),
    CX_CLI_OPT("checkpoint", 0, CX_CLI_FILE, "NOTE",
               "Put this checkpoint in, so that the snapshot's seal can be followed to it."),
    CX_CLI_OPT("entry", 0, CX_CLI_COUNT, "SEQ", "Prove that this entry is in the journal."),
    CX_CLI_OPT("size", 0, CX_CLI_COUNT, "N",
               "With --entry: in the journal of the first N entries; default all."),
    CX_CLI_OPT_FLAG("in-home", 0,
                    "Prove that the actor's overall root is in the home root recorded last "
                    "('cortex checkpoint --all'); with --checkpoint in the journal of that note."),
    CX_CLI_OPT("never", 0, CX_CLI_TEXT, "NAME",
               "Prove that no recorded call of --in names it: tool:NAME, file:PATH (read or "
               "written), read:PATH, write:PATH or host:NAME. A PATH without a leading '/' is any "
               "that ends with it."),
    CX_CLI_OPT("in", 0, CX_CLI_TEXT, "RUN", "With --never: run:ID, or @session/NAME."),
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTION_OUTPUT("the proof"),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_prove = {
    .name = "prove",
    .purpose = "export an offline proof",
    .about =
        "Writes one file that proves, against a snapshot, that the memories or edges named "
        "are recorded as they are, or with --absent that they are not. 'cortex-verify FILE' "
        "checks it anywhere; it rests on the overall root or the signature that its reader "
        "trusts. URI is a memory's, a ULID, or an edge's as 'cortex memory link' prints it. With "
        "--in-home the file proves instead what the actor's ledger came to in the root over "
        "all actors.\n\nWith --never the file proves that a run or an archived session did not "
        "call a tool, name a file or ask a host. If it did, the answer is where, and the exit code "
        "1. The proof is about what was recorded; with --fresh the set of what was done is "
        "recorded again first.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 proven\n1 not so, or the state has changed since the snapshot\n2 usage error, or "
             "something named does not exist\n3 could not be proven: no data directory, "
             "unreadable, damaged",
    .example = "cortex prove --fresh 01HF7YAT000000000000000003 -o answer.proof\ncortex prove "
               "--never host:example.com --in @session/0a1b2c3d -o never.proof",
    .run = run_prove,
};
