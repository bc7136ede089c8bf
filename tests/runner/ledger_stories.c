/*
 * ledger_stories.c - scenarios through the real calls on a real home, verdicts on proofs and
 * scopes.
 */
#include <stdio.h>

#include "ledger/snapshot.h"
#include "memory/apply.h"
#include "memory/scope.h"
#include "tests/runner/ledger.h"
#include "tests/support/folder.h"
#include "tests/support/scenario.h"

/* --- scenarios -----------------------------------------------------------------------------------
 */

typedef struct stage {
    char path[FOLDER_PATH_SIZE];
    cx_home *home;
    cx_apply *apply;
    int64_t clock;
    uint64_t ids;
} stage;

static int64_t stage_now(void *arg)
{
    stage *s = arg;
    return s->clock += SCENARIO_TICK_NS;
}

/* Id n = six bytes of milliseconds, two zero bytes, n. */
static cx_status stage_id(void *arg, cx_id *out, cx_err *err)
{
    stage *s = arg;
    uint64_t ms = (uint64_t)(SCENARIO_START_NS / 1000000), n = ++s->ids;
    (void)err;
    memset(out->bytes, 0, sizeof out->bytes);
    for (unsigned i = 0; i < 6; i++)
        out->bytes[i] = (uint8_t)(ms >> (8 * (5 - i)));
    for (unsigned i = 0; i < 8; i++)
        out->bytes[8 + i] = (uint8_t)(n >> (8 * (7 - i)));
    return CX_SUCCESS;
}

static CX_RESULT stage_open(stage *s, cx_str actor, cx_err *err)
{
    const cx_home_options options = {
        .segment_bytes = UINT64_C(65536), .derivers = &cx_memory_deriver, .deriver_count = 1};
    const cx_memory_options memory = {
        .now_ns = stage_now, .now_arg = s, .new_id = stage_id, .new_id_arg = s};
    *s = (stage){.clock = SCENARIO_START_NS};
    folder_fresh(s->path, "vectors");
    CX_TRY(cx_home_create(s->path, runner_file.scheme, &options, err));
    CX_TRY(cx_home_open(s->path, &options, &s->home, err));
    return cx_apply_open(s->home, actor, &memory, &s->apply, err);
}

static void stage_close(stage *s, runner *r)
{
    cx_err err = {0};
    cx_apply_close(s->apply);
    if (s->home != NULL && cx_failed(cx_home_close(s->home, &err)))
        runner_fail(r, CX_STR("scenario"), err.message);
    folder_remove(s->path);
}

/* What a step leaves behind, as hex; members that are not told are left out when comparing. */
static cx_status put_root(runner *r, cx_json_list *object, const char *name, cx_str expected,
                          const cx_digest *digest, cx_err *err)
{
    cx_json value;
    if (expected.data == NULL && !r->got_only)
        return CX_SUCCESS;
    CX_TRY(runner_digest(r, digest, &value, err));
    cx_json_list_put(object, cx_str_z(name), value);
    return CX_SUCCESS;
}

static cx_status fresh_roots(cx_roots *out)
{
    cx_scheme scheme = runner_file.scheme;
    *out = (cx_roots){.journal = cx_scheme_journal_root(scheme, 0, NULL),
                      .edges = cx_scheme_smt_empty(scheme, 0),
                      .memories = cx_scheme_smt_empty(scheme, 0)};
    out->overall = cx_scheme_overall(scheme, &out->journal, &out->edges, &out->memories);
    return CX_SUCCESS;
}

static cx_status step_answer(runner *r, stage *s, cx_str actor, const scenario_step *step,
                             cx_json *out, cx_err *err)
{
    cx_applied_step done = {0};
    cx_roots roots;
    cx_json_list object = cx_json_list_begin(&r->arena);
    for (unsigned n = 0; n < step->idle_reads; n++)
        (void)stage_now(s);
    if (step->runs)
        CX_TRY(cx_apply_step(s->apply, &step->step, &r->arena, &done, err));
    cx_status status = cx_home_roots(s->home, actor, &roots, err);
    if (status.code == CX_E_NOT_FOUND)
        status = fresh_roots(&roots);
    CX_TRY(status);
    cx_json_list_put(&object, CX_STR("refused"), cx_json_make_bool(done.refused));
    if (step->has_next_seq || r->got_only)
        cx_json_list_put(&object, CX_STR("next_seq"),
                         cx_json_make_uint(&r->arena, roots.journal_size));
    if ((step->uri.data != NULL || r->got_only) && done.has_uri)
        cx_json_list_put(&object, CX_STR("uri"), cx_json_make_str(done.uri));
    CX_TRY(put_root(r, &object, "journal_root", step->journal, &roots.journal, err));
    CX_TRY(put_root(r, &object, "memories_root", step->memories, &roots.memories, err));
    CX_TRY(put_root(r, &object, "edges_root", step->edges, &roots.edges, err));
    CX_TRY(put_root(r, &object, step->overall_name, step->overall, &roots.overall, err));
    if ((step->leaf.data != NULL || r->got_only) && roots.journal_size != 0) {
        cx_entry_view entry;
        cx_json value;
        CX_TRY(cx_home_entry(s->home, actor, roots.journal_size - 1, &r->arena, &entry, err));
        CX_TRY(runner_digest(r, &entry.leaf_hash, &value, err));
        cx_json_list_put(&object, cx_str_z(step->leaf_name), value);
    }
    return cx_json_list_end_object(&object, out, err);
}

static void put_text(cx_json_list *object, const char *name, cx_str text)
{
    if (text.data != NULL)
        cx_json_list_put(object, cx_str_z(name), cx_json_make_str(text));
}

static cx_status step_expected(runner *r, const scenario_step *step, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_json_list_put(&object, CX_STR("refused"), cx_json_make_bool(step->refused));
    if (step->has_next_seq)
        cx_json_list_put(&object, CX_STR("next_seq"), cx_json_make_uint(&r->arena, step->next_seq));
    put_text(&object, "uri", step->uri);
    put_text(&object, "journal_root", step->journal);
    put_text(&object, "memories_root", step->memories);
    put_text(&object, "edges_root", step->edges);
    put_text(&object, step->overall_name, step->overall);
    put_text(&object, step->leaf_name, step->leaf);
    return cx_json_list_end_object(&object, out, err);
}

/* The story being told, for the answers of its steps in order. */
static struct telling {
    stage stage;
    scenario story;
    size_t next;
} telling;

static cx_status told_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    (void)item;
    return step_answer(r, &telling.stage, telling.story.actor, &telling.story.steps[telling.next],
                       out, err);
}

static cx_status told_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    (void)item;
    return step_expected(r, &telling.story.steps[telling.next], out, err);
}

typedef cx_status load_story(const cx_json *file, const cx_json *other, scenario_given given,
                             cx_arena *arena, scenario *out, cx_err *err);

/* cortex-1 files hold only roots: the calls are those of the matrix-1 file beside them. */
static cx_status load(runner *r, load_story *story, cx_str name, cx_err *err)
{
    if (runner_file.scheme == CX_SCHEME_MATRIX_1)
        return story(runner_file.root, NULL, SCENARIO_GENERATED, &r->arena, &telling.story, err);
    static const char *const places[] = {"matrix-1", "../matrix-1"};
    cx_json calls;
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < CX_COUNT_OF(places); i++) {
        cx_str beside =
            cx_arena_printf(&r->arena, "%s/%.*s", places[i], (int)name.size, name.data);
        status = runner_read_json(r, beside, &calls, err);
        if (status.code != CX_E_NOT_FOUND)
            break;
    }
    CX_TRY(status);
    return story(&calls, runner_file.root, SCENARIO_GENERATED, &r->arena, &telling.story, err);
}

/* `list`: where the file has an item for each step. */
static void tell(runner *r, load_story *story, const char *list, cx_str name)
{
    static const runner_kind kind = {"", told_got, told_expect};
    cx_err err = {0};
    cx_status status = load(r, story, name, &err);
    if (status.code == CX_E_NOT_FOUND) {
        runner_skip(r, name, "the calls stand in matrix-1/, which is not here");
        return;
    }
    if (!cx_failed(status))
        status = stage_open(&telling.stage, telling.story.actor, &err);
    if (cx_failed(status)) {
        runner_fail(r, name, err.message);
        return;
    }
    for (telling.next = 0; telling.next < telling.story.count; telling.next++)
        runner_run_nth(r, &kind, list, telling.next);
    stage_close(&telling.stage, r);
}

static cx_status load_embed(const cx_json *file, const cx_json *other, scenario_given given,
                            cx_arena *arena, scenario *out, cx_err *err)
{
    (void)other;
    (void)given;
    return scenario_embed(file, arena, out, err);
}

/* --- verdicts
 * ------------------------------------------------------------------------------------------ */

static CX_RESULT verdict_text(runner *r, const cx_finding *finding, bool absent, cx_json *out,
                              cx_err *err)
{
    if (finding->verdict == CX_HOLDS)
        return runner_string(r, absent ? CX_STR("holds (non-membership)") : CX_STR("holds"), out,
                             err);
    /* Bytes that are no proof at all are told apart from proofs that do not hold. */
    const char *kind = strcmp(finding->reason, "NonCanonical") == 0 ? "format error" : "broken";
    cx_str text = cx_arena_printf(&r->arena, "%s %s", kind, finding->reason);
    return text.data == NULL ? cx_fail_nomem(err) : runner_string(r, text, out, err);
}

static cx_status proof_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes proof, manifest;
    cx_multiproof decoded = {0};
    cx_finding finding = {0};
    CX_TRY(runner_bytes(r, item, "proof", &proof, err));
    CX_TRY(runner_bytes(r, item, "manifest", &manifest, err));
    const cx_multiproof_check check = {.name_space = CX_NAMESPACE_ANY};
    CX_TRY(cx_multiproof_verify(proof, manifest, &check, &r->arena, &decoded, &finding, err));
    bool absent = finding.verdict == CX_HOLDS && decoded.count != 0;
    for (size_t i = 0; absent && i < decoded.count; i++)
        absent = decoded.items[i].kind == CX_ABSENT;
    return verdict_text(r, &finding, absent, out, err);
}

/* Up to the reason's name: what follows explains it. */
static cx_status proof_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str word;
    CX_TRY(runner_text(item, "cortex_expects", &word, err));
    if (cx_str_starts(word, CX_STR("broken "))) {
        size_t end = 7;
        while (end < word.size && word.data[end] != ' ' && word.data[end] != '(' &&
               word.data[end] != ',' && word.data[end] != ':')
            end++;
        word.size = end;
    }
    return runner_string(r, word, out, err);
}

/* A compact proof by itself: the root that it leads to is its own. */
static cx_status compact_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes proof;
    cx_finding finding = {0};
    const cx_multiproof_check check = {.name_space = CX_NAMESPACE_ANY};
    CX_TRY(runner_bytes(r, item, "cbor", &proof, err));
    CX_TRY(cx_multiproof_verify(proof, (cx_bytes){NULL, 0}, &check, &r->arena, NULL, &finding, err));
    return runner_string(r, cx_str_z(finding.verdict == CX_HOLDS ? "holds" : finding.reason), out,
                         err);
}

/* Those that are whole name no reason. */
static cx_status compact_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str reason = cx_json_get_str(item, CX_STR("reason"));
    return runner_string(r, reason.size == 0 ? CX_STR("holds") : reason, out, err);
}

static cx_status scope_key(void *arg, cx_str agent, cx_pubkey *out, bool *out_found, cx_err *err)
{
    runner *r = arg;
    cx_bytes key;
    *out_found = cx_str_eq(agent, cx_json_get_str(runner_file.root, CX_STR("granted_by_known")));
    if (!*out_found)
        return CX_SUCCESS;
    CX_TRY(runner_bytes(r, runner_file.root, "pub", &key, err));
    if (key.size != sizeof out->bytes)
        return cx_fail(err, CX_E_FORMAT, "a key of %zu bytes", key.size);
    memcpy(out->bytes, key.data, sizeof out->bytes);
    return CX_SUCCESS;
}

static cx_status scope_snapshot(void *arg, const cx_digest *root, cx_bytes *out, bool *out_found,
                                cx_err *err)
{
    runner *r = arg;
    cx_manifest manifest;
    CX_TRY(runner_bytes(r, runner_file.root, "manifest_cbor", out, err));
    CX_TRY(cx_manifest_decode(*out, &manifest, err));
    *out_found = cx_digest_eq(&manifest.overall_root, root);
    return CX_SUCCESS;
}

static cx_status scope_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_bytes bytes;
    uint64_t now;
    cx_granted granted;
    cx_finding finding = {0};
    cx_scope_check check = {
        .key = scope_key, .key_arg = r, .snapshot = scope_snapshot, .snapshot_arg = r};
    CX_TRY(runner_bytes(r, item, "cbor", &bytes, err));
    CX_TRY(runner_number(item, "now_ns", &now, err));
    CX_TRY(runner_text(runner_file.root, "actor", &check.actor, err));
    check.now_ns = (int64_t)now;
    CX_TRY(cx_scope_verify(bytes, &check, &r->arena, &granted, &finding, err));
    return runner_string(r, cx_str_z(finding.verdict == CX_HOLDS ? "holds" : finding.reason), out,
                         err);
}

static cx_status scope_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str word;
    CX_TRY(runner_text(item, "cortex_expects", &word, err));
    return runner_string(r, word, out, err);
}

/* A scope whose bytes the file does not give cannot be asked about. */
static void run_scopes(runner *r)
{
    static const runner_kind kind = {"", scope_got, scope_expect};
    const cx_json *cases = cx_json_get_typed(runner_file.root, CX_STR("cases"), CX_JSON_ARRAY);
    for (uint32_t i = 0; cases != NULL && i < cases->count; i++) {
        if (cx_json_get(&cases->items[i], CX_STR("cbor")) != NULL)
            runner_run_nth(r, &kind, "/cases", i);
        else
            runner_skip(r, cx_json_get_str(&cases->items[i], CX_STR("label")),
                        "its bytes are not in the file");
    }
}

void runner_ledger_stories(runner *r, cx_str name)
{
    static const runner_kind proofs = {"/cases", proof_got, proof_expect};
    static const runner_kind compact[] = {{"/whole", compact_got, compact_expect},
                                          {"/broken", compact_got, compact_expect}};
    if (cx_str_is(name, "scenario.json"))
        tell(r, scenario_main, "/steps", name);
    else if (cx_str_starts(name, CX_STR("scenario_large")))
        tell(r, scenario_large, runner_file.scheme == CX_SCHEME_MATRIX_1 ? "/ops" : "/roots",
             name);
    else if (cx_str_is(name, "scenario_embed.json"))
        tell(r, load_embed, "/journal", name);
    else if (cx_str_is(name, "proof_verdicts.json"))
        runner_run_list(r, &proofs, runner_file.path, runner_file.root);
    else if (cx_str_is(name, "compact_proofs.json"))
        for (size_t i = 0; i < CX_COUNT_OF(compact); i++)
            runner_run_list(r, &compact[i], runner_file.path, runner_file.root);
    else if (cx_str_is(name, "scope.json"))
        run_scopes(r);
}
