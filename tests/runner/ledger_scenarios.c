/*
 * ledger_scenarios.c - scenarios through the real calls on a real home, verdicts on proofs.  What
 * the files tell of certain moments of a scenario is answered in ledger_moments.c.
 */
#include <stdio.h>

#include "ledger/snapshot.h"
#include "memory/apply.h"
#include "tests/runner/ledger_moments.h"
#include "tests/support/folder.h"
#include "tests/support/scenario.h"

/* --- scenarios -------------------------------------------------------------------------------- */

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    cx_home *home;
    cx_apply *apply;
    int64_t clock;
    uint64_t ids, id_ms;
} fixture;

static int64_t fixture_now(void *arg)
{
    fixture *s = arg;
    return s->clock += SCENARIO_TICK_NS;
}

/* Id n = six bytes of milliseconds, two zero bytes, n. */
static cx_status fixture_id(void *arg, cx_id *out, cx_err *err)
{
    fixture *s = arg;
    uint64_t ms = s->id_ms, n = ++s->ids;
    (void)err;
    memset(out->bytes, 0, sizeof out->bytes);
    for (unsigned i = 0; i < 6; i++)
        out->bytes[i] = (uint8_t)(ms >> (8 * (5 - i)));
    for (unsigned i = 0; i < 8; i++)
        out->bytes[8 + i] = (uint8_t)(n >> (8 * (7 - i)));
    return CX_SUCCESS;
}

/* The milliseconds that the file's id_rule names ("6-byte BE ms N || .."), if any. */
static uint64_t id_milliseconds(const cx_json *file)
{
    static const char before[] = "ms ";
    cx_str rule = cx_json_get_str(file, CX_STR("id_rule"));
    const char *at = rule.size == 0 ? NULL : memmem(rule.data, rule.size, before, 3);
    uint64_t ms = 0;
    unsigned digits = 0;
    for (at = at == NULL ? NULL : at + 3; at != NULL && at < rule.data + rule.size; at++) {
        if (*at < '0' || *at > '9' || digits++ == 15)
            break;
        ms = ms * 10 + (uint64_t)(*at - '0');
    }
    return digits == 0 ? (uint64_t)(SCENARIO_START_NS / 1000000) : ms;
}

static CX_RESULT fixture_open(fixture *s, const cx_json *file, cx_str actor, cx_err *err)
{
    const cx_home_options options = {
        .segment_bytes = UINT64_C(65536), .derivers = &cx_memory_deriver, .deriver_count = 1};
    const cx_memory_options memory = {
        .now_ns = fixture_now, .now_arg = s, .new_id = fixture_id, .new_id_arg = s};
    *s = (fixture){.clock = SCENARIO_START_NS, .id_ms = id_milliseconds(file)};
    folder_fresh(s->path, "vectors");
    CX_TRY(cx_home_create(s->path, runner_file.scheme, &options, err));
    CX_TRY(cx_home_open(s->path, &options, &s->home, err));
    return cx_apply_open(s->home, actor, &memory, &s->apply, err);
}

static void fixture_close(fixture *s, runner *r)
{
    cx_err err = {0};
    cx_apply_close(s->apply);
    if (s->home != NULL && cx_failed(cx_home_close(s->home, &err)))
        runner_fail(r, CX_STR("scenario"), err.message);
    folder_remove(s->path);
}

static CX_RESULT roots_now(cx_home *home, cx_str actor, cx_roots *out, cx_err *err)
{
    cx_scheme scheme = runner_file.scheme;
    cx_status status = cx_home_roots(home, actor, out, err);
    if (status.code != CX_E_NOT_FOUND)
        return status;
    *out = (cx_roots){.journal = cx_scheme_journal_root(scheme, 0, NULL),
                      .edges = cx_scheme_smt_empty(scheme, 0),
                      .memories = cx_scheme_smt_empty(scheme, 0)};
    out->overall = cx_scheme_overall(scheme, &out->journal, &out->edges, &out->memories);
    return CX_SUCCESS;
}

static CX_RESULT put_roots(runner *r, cx_json_list *object, const scenario_step *step,
                           const cx_roots *roots, cx_err *err)
{
    runner_put_uint(r, object, "next_seq", roots->journal_size);
    CX_TRY(runner_put_digest(r, object, "journal_root", &roots->journal, err));
    CX_TRY(runner_put_digest(r, object, "memories_root", &roots->memories, err));
    CX_TRY(runner_put_digest(r, object, "edges_root", &roots->edges, err));
    return runner_put_digest(r, object, step->overall_name, &roots->overall, err);
}

/* The journal's last entry, under the names of the file. */
static CX_RESULT put_last_entry(runner *r, fixture *s, cx_str actor, uint64_t size,
                                const scenario_step *step, cx_json_list *object, cx_err *err)
{
    cx_entry_view view;
    cx_json kind;
    bool main = strcmp(step->leaf_name, "last_leaf_hash") == 0;
    if (size == 0)
        return CX_SUCCESS;
    CX_TRY(cx_home_entry(s->home, actor, size - 1, &r->arena, &view, err));
    CX_TRY(runner_put_digest(r, object, step->leaf_name, &view.leaf_hash, err));
    CX_TRY(runner_put_hex(r, object, main ? "last_journal_cbor" : "cbor", view.bytes, err));
    CX_TRY(runner_string(r, view.entry.kind, &kind, err));
    cx_json_list_put(object, CX_STR("kind"), kind);
    runner_put_uint(r, object, "seq", view.entry.seq);
    return CX_SUCCESS;
}

/* The state after a step. */
static cx_status step_answer(runner *r, fixture *s, cx_str actor, const scenario_step *step,
                             cx_json *out, cx_err *err)
{
    cx_applied_step done = {0};
    cx_roots before, roots;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(roots_now(s->home, actor, &before, err));
    for (unsigned n = 0; n < step->idle_reads; n++)
        (void)fixture_now(s);
    if (step->runs)
        CX_TRY(cx_apply_step(s->apply, &step->step, &r->arena, &done, err));
    CX_TRY(roots_now(s->home, actor, &roots, err));
    cx_json_list_put(&object, CX_STR("refused"), cx_json_make_bool(done.refused));
    if (done.has_uri)
        cx_json_list_put(&object, CX_STR("uri"), cx_json_make_str(done.uri));
    runner_put_uint(r, &object, "clock_ns_after", (uint64_t)s->clock);
    runner_put_uint(r, &object, "now_ns", (uint64_t)s->clock);
    runner_put_uint(r, &object, "journaled", roots.journal_size - before.journal_size);
    CX_TRY(put_roots(r, &object, step, &roots, err));
    CX_TRY(put_last_entry(r, s, actor, roots.journal_size, step, &object, err));
    return cx_json_list_end_object(&object, out, err);
}

/* What the file tells, and whether the call was refused; of a step that makes a URI, that. */
static cx_status step_expected(runner *r, const cx_json *item, const scenario_step *step,
                               cx_json *out, cx_err *err)
{
    static const char *const names[] = {
        "next_seq", "journal_root",   "memories_root", "edges_root",     "overall_root",
        "overall",  "last_leaf_hash", "leaf",          "clock_ns_after", "last_journal_cbor",
        "now_ns",   "journaled",      "cbor",          "kind",           "seq"};
    cx_json_list object = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *value = cx_json_get(item, cx_str_z(names[i]));
        if (value != NULL)
            cx_json_list_put(&object, cx_str_z(names[i]), *value);
    }
    cx_json_list_put(&object, CX_STR("refused"), cx_json_make_bool(step->refused));
    if (step->uri.data != NULL)
        cx_json_list_put(&object, CX_STR("uri"), cx_json_make_str(step->uri));
    return cx_json_list_end_object(&object, out, err);
}

/* The scenario being run, for the answers of its steps in order. */
static struct telling {
    fixture fixture;
    scenario recorded;
    size_t next;
} telling;

static cx_status told_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    (void)item;
    return step_answer(r, &telling.fixture, telling.recorded.actor,
                       &telling.recorded.steps[telling.next], out, err);
}

static cx_status told_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    return step_expected(r, item, &telling.recorded.steps[telling.next], out, err);
}

typedef cx_status load_scenario(const cx_json *file, const cx_json *other, scenario_given given,
                                cx_arena *arena, scenario *out, cx_err *err);

static cx_status load_embed(const cx_json *file, const cx_json *other, scenario_given given,
                            cx_arena *arena, scenario *out, cx_err *err)
{
    (void)other;
    (void)given;
    return scenario_embed(file, arena, out, err);
}

/* Another file of the folder that the file at hand lies in. */
static cx_status read_sibling_file(runner *r, cx_str name, cx_json *out, cx_err *err)
{
    const char *slash = strrchr(runner_file.path, '/');
    int size = slash == NULL ? 0 : (int)(slash - runner_file.path) + 1;
    cx_str path =
        cx_arena_printf(&r->arena, "%.*s%.*s", size, runner_file.path, (int)name.size, name.data);
    return path.data == NULL ? cx_fail_nomem(err) : runner_read_json(r, path, out, err);
}

/* cortex-1 files hold only roots: the calls are those of the matrix-1 file next to them. */
static cx_status load(runner *r, load_scenario *scenario_of, cx_str name, const cx_json *file,
                      cx_err *err)
{
    if (runner_file.scheme == CX_SCHEME_MATRIX_1)
        return scenario_of(file, NULL, SCENARIO_GENERATED, &r->arena, &telling.recorded, err);
    static const char *const places[] = {"matrix-1", "../matrix-1"};
    cx_json calls;
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < CX_COUNT_OF(places); i++) {
        cx_str path = cx_arena_printf(&r->arena, "%s/%.*s", places[i], (int)name.size, name.data);
        status = runner_read_json(r, path, &calls, err);
        if (status.code != CX_E_NOT_FOUND)
            break;
    }
    CX_TRY(status);
    return scenario_of(&calls, file, SCENARIO_GENERATED, &r->arena, &telling.recorded, err);
}

static void note_moment(runner *r, runner_moment *moment)
{
    const scenario_step *step = &telling.recorded.steps[telling.next];
    runner_moment_step(r, moment, telling.next);
    if (step->is_snapshot)
        runner_moment_snapshot(r, moment);
    if (step->at_point)
        runner_moment_point(r, moment, step->point);
}

/* `list`: where the file has an item for each step; NULL: the steps have no answers. */
static void tell(runner *r, load_scenario *scenario_of, const char *list, cx_str name,
                 const cx_json *file)
{
    static const runner_kind kind = {"", told_got, told_expect};
    cx_err err = {0};
    cx_status status = load(r, scenario_of, name, file, &err);
    if (status.code == CX_E_NOT_FOUND) {
        runner_skip(r, name, "the calls stand in matrix-1/, which is not here");
        runner_containers(r);
        return;
    }
    if (!cx_failed(status))
        status =
            fixture_open(&telling.fixture, &telling.recorded.file, telling.recorded.actor, &err);
    runner_moment moment = {.actor = telling.recorded.actor,
                            .calls = &telling.recorded.file,
                            .apply = telling.fixture.apply,
                            .home = telling.fixture.home,
                            .now_ns = fixture_now,
                            .now_arg = &telling.fixture};
    for (telling.next = 0; !cx_failed(status) && telling.next < telling.recorded.count;
         telling.next++) {
        cx_json ignored;
        if (list != NULL)
            runner_run_nth(r, &kind, list, telling.next);
        else
            status = told_got(r, NULL, &ignored, &err);
        if (!cx_failed(status))
            note_moment(r, &moment);
    }
    if (cx_failed(status))
        runner_fail(r, name, err.message);
    else
        runner_moment_end(r, &moment);
    fixture_close(&telling.fixture, r);
}

/* Proofs about the journal that scenario.json next to this file leaves. */
static void tell_sibling_file(runner *r)
{
    cx_json file;
    cx_err err = {0};
    cx_status status = read_sibling_file(r, CX_STR("scenario.json"), &file, &err);
    if (status.code == CX_E_NOT_FOUND)
        runner_containers(r);
    else if (cx_failed(status))
        runner_fail(r, CX_STR("scenario.json"), err.message);
    else
        tell(r, scenario_main, NULL, CX_STR("scenario.json"), &file);
}

/* --- single calls ----------------------------------------------------------------------------- */

static const char *const root_names[] = {"journal_root", "memories_root", "edges_root",
                                         "overall_root"};

static cx_str calls_actor;

/* The refusal's name (null: done) and the roots after the call. */
static cx_status call_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    fixture *s = &telling.fixture;
    const cx_json *step = cx_json_get(item, CX_STR("step"));
    cx_applied_step done = {0};
    cx_roots roots;
    if (step == NULL)
        return cx_fail(err, CX_E_FORMAT, "the case has no step");
    CX_TRY(cx_apply_step(s->apply, step, &r->arena, &done, err));
    CX_TRY(roots_now(s->home, calls_actor, &roots, err));
    cx_json_list object = cx_json_list_begin(&r->arena);
    cx_json refused = cx_json_make_null();
    if (done.refused)
        CX_TRY(runner_string(r, cx_str_z(done.reason.tag), &refused, err));
    cx_json_list_put(&object, CX_STR("refused"), refused);
    runner_put_uint(r, &object, "journal_size", roots.journal_size);
    const cx_digest *digests[] = {&roots.journal, &roots.memories, &roots.edges, &roots.overall};
    for (size_t i = 0; i < CX_COUNT_OF(root_names); i++)
        CX_TRY(runner_put_digest(r, &object, root_names[i], digests[i], err));
    return cx_json_list_end_object(&object, out, err);
}

static cx_status call_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const char *const others[] = {"refused", "journal_size"};
    cx_json_list object = cx_json_list_begin(&r->arena);
    for (size_t i = 0; i < CX_COUNT_OF(others) + CX_COUNT_OF(root_names); i++) {
        const char *name =
            i < CX_COUNT_OF(others) ? others[i] : root_names[i - CX_COUNT_OF(others)];
        const cx_json *value = cx_json_get(item, cx_str_z(name));
        if (value == NULL)
            return cx_fail(err, CX_E_FORMAT, "the case has no %s", name);
        cx_json_list_put(&object, cx_str_z(name), *value);
    }
    return cx_json_list_end_object(&object, out, err);
}

/* Calls in order on one empty ledger; each has its own id and time. */
static void run_calls(runner *r, cx_str name, const cx_json *file)
{
    static const runner_kind calls = {"/calls", call_got, call_expect};
    cx_err err = {0};
    calls_actor = cx_json_get_str(file, CX_STR("actor"));
    if (cx_failed(fixture_open(&telling.fixture, file, calls_actor, &err)))
        runner_fail(r, name, err.message);
    else
        runner_run_list(r, &calls, runner_file.path, file);
    fixture_close(&telling.fixture, r);
}

/* --- verdicts --------------------------------------------------------------------------------- */

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
    CX_TRY(
        cx_multiproof_verify(proof, (cx_bytes){NULL, 0}, &check, &r->arena, NULL, &finding, err));
    return runner_string(r, cx_str_z(finding.verdict == CX_HOLDS ? "holds" : finding.reason), out,
                         err);
}

/* Those that are whole name no reason. */
static cx_status compact_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str reason = cx_json_get_str(item, CX_STR("reason"));
    return runner_string(r, reason.size == 0 ? CX_STR("holds") : reason, out, err);
}

void runner_ledger_scenarios(runner *r, cx_str name)
{
    static const runner_kind proofs = {"/cases", proof_got, proof_expect};
    static const runner_kind compact[] = {{"/whole", compact_got, compact_expect},
                                          {"/broken", compact_got, compact_expect}};
    const cx_json *root = runner_file.root;
    if (cx_str_is(name, "scenario.json"))
        tell(r, scenario_main, "/steps", name, root);
    else if (cx_str_starts(name, CX_STR("scenario_large")))
        tell(r, scenario_large, runner_file.scheme == CX_SCHEME_MATRIX_1 ? "/ops" : "/roots", name,
             root);
    else if (cx_str_is(name, "scenario_embed.json"))
        tell(r, load_embed, "/journal", name, root);
    else if (cx_str_is(name, "journal_proofs.json"))
        tell_sibling_file(r);
    else if (cx_str_is(name, "calls.json"))
        run_calls(r, name, root);
    else if (cx_str_is(name, "proof_verdicts.json"))
        runner_run_list(r, &proofs, runner_file.path, root);
    else if (cx_str_is(name, "compact_proofs.json"))
        for (size_t i = 0; i < CX_COUNT_OF(compact); i++)
            runner_run_list(r, &compact[i], runner_file.path, root);
}
