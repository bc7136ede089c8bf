/*
 * state_end.c - the end of a run: every file that a bundle has, also where there is nothing to
 * report; RUN_FINISHED, hashes, manifest, seal, note (run.md §17 "order of the end").
 */
#include "crypto/api.h"
#include "governor/state_internal.h"
#include "candidate/api.h"

/* --- references ------------------------------------------------------------------------------- */

cx_status cx_task_add_artifact(cx_governor_task *t, cx_str path, cx_err *err)
{
    for (size_t i = 0; i < t->reports.artifacts.count; i++)
        if (cx_str_eq(t->reports.artifacts.items[i], path))
            return CX_SUCCESS;
    cx_str *slot = cx_vec_push(&t->reports.artifacts, t->governor->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = path;
    return CX_SUCCESS;
}

static cx_status ref_of(cx_governor_task *t, const char *path, cx_run_ref *out, cx_err *err)
{
    cx_str where = cx_task_file(t, path);
    return where.data == NULL ? cx_fail_nomem(err)
                              : cx_run_file_ref(t->governor->run, where, &t->arena, out, err);
}

/* Path of a mirror: "<folder>/<task><rest>". */
static cx_status copy_report(cx_governor_task *t, const char *folder, const char *rest, cx_str *out,
                             cx_err *err)
{
    *out = cx_arena_printf(&t->arena, "%s/%.*s%s", folder, (int)t->id.size, t->id.data, rest);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* A document and its mirror, byte for byte; a part has the mirror's alone. */
static cx_status write_document(cx_governor_task *t, const char *path, const char *folder,
                                const char *rest, const cx_json *value, cx_err *err)
{
    cx_json masked; /* R7 */
    cx_str other;
    CX_TRY(cx_run_mask_json(&t->governor->mask, value, &t->arena, &masked, err));
    if (!t->part)
        CX_TRY(cx_run_file_write_json(t->governor->run, cx_str_z(path), &masked, err));
    if (folder == NULL)
        return CX_SUCCESS;
    CX_TRY(copy_report(t, folder, rest, &other, err));
    return cx_run_file_write_json(t->governor->run, other, &masked, err);
}

/* --- files that always exist ------------------------------------------------------------------ */

static cx_status write_if_missing(cx_governor_task *t, cx_str path, cx_bytes bytes, cx_err *err)
{
    if (cx_run_file_exists(t->governor->run, path))
        return CX_SUCCESS;
    return cx_run_file_write(t->governor->run, path, bytes, err);
}

cx_status cx_task_write_session(cx_governor_task *t, cx_err *err)
{
    cx_run *run = t->governor->run;
    cx_str events, transcript, thread;
    cx_buf text;
    CX_TRY(copy_report(t, "codex", "/events.jsonl", &events, err));
    CX_TRY(copy_report(t, "codex", "/transcript.md", &transcript, err));
    CX_TRY(copy_report(t, "codex", "/thread_id.txt", &thread, err));
    CX_TRY(cx_run_file_write(run, events, cx_buf_bytes(&t->agent.session), err));
    cx_buf_init(&text, t->governor->alloc);
    cx_buf_printf(&text, "# %.*s\n\n", (int)t->id.size, t->id.data);
    if (t->agent.transcript.size == 0)
        cx_buf_add_z(&text, t->agent.turns == 0 ? "not started\n" : "no reply that was accepted\n");
    else
        cx_buf_add_str(&text, cx_buf_str(&t->agent.transcript));
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_run_file_write(run, transcript, cx_buf_bytes(&text), err);
    text.size = 0;
    if (t->agent.thread_id.size != 0) {
        cx_buf_add_str(&text, t->agent.thread_id);
        cx_buf_add_byte(&text, '\n');
    }
    if (!cx_failed(status))
        status = cx_run_file_write(run, thread, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    return status;
}

static cx_status write_always(cx_governor_task *t, cx_err *err)
{
    static const char *const tests[] = {"tests/command.txt", "tests/stdout.log",
                                        "tests/stderr.log"};
    static const char *const patches[] = {"patch.diff", "diff_name_only.txt", "git/patch.diff",
                                          "git/diff_name_only.txt"};
    const cx_bytes empty = {NULL, 0};
    cx_str result, flat;
    cx_str list = cx_task_file(t, "diff_name_only.txt");
    cx_str where = t->workspace.ref.size == 0 ? CX_STR("none") : t->workspace.ref;
    cx_str line = cx_arena_printf(&t->arena, "%.*s\n", (int)where.size, where.data);
    CX_TRY(copy_report(t, "results", "/patch.diff", &result, err));
    CX_TRY(copy_report(t, "patches", ".diff", &flat, err));
    if (line.data == NULL || list.data == NULL)
        return cx_fail_nomem(err);
    if (t->part) {
        CX_TRY(write_if_missing(t, list, empty, err));
        CX_TRY(write_if_missing(t, result, empty, err));
        CX_TRY(write_if_missing(t, flat, empty, err));
        return cx_task_write_session(t, err);
    }
    for (size_t i = 0; i < CX_COUNT_OF(patches); i++)
        CX_TRY(write_if_missing(t, cx_str_z(patches[i]), empty, err));
    for (size_t i = 0; i < CX_COUNT_OF(tests); i++)
        CX_TRY(write_if_missing(t, cx_str_z(tests[i]), empty, err));
    CX_TRY(write_if_missing(t, result, empty, err));
    CX_TRY(write_if_missing(t, flat, empty, err));
    CX_TRY(
        cx_run_file_write(t->governor->run, CX_STR("worktree_ref.txt"), cx_str_bytes(line), err));
    return cx_task_write_session(t, err);
}

/* --- the reports of a task -------------------------------------------------------------------- */

static cx_run_task_status status_of(const cx_governor_task *t)
{
    if (!t->refused)
        return CX_RUN_TASK_SUCCESS;
    return t->refusal.blocked ? CX_RUN_TASK_BLOCKED : CX_RUN_TASK_FAILED;
}

static cx_str head_of(const cx_governor_task *t)
{
    return t->candidate.commit_text.size != 0 ? t->candidate.commit_text : t->governor->baseline;
}

static cx_status task_facts(cx_governor_task *t, cx_run_task_facts *out, cx_err *err)
{
    cx_governor *g = t->governor;
    *out = (cx_run_task_facts){
        .run_id = cx_run_id(g->run),
        .task_id = t->id,
        .attempt = t->attempt,
        .role = t->contract.assigned.role_name,
        .agent_id = t->contract.assigned.agent_id,
        .thread_id = t->agent.thread_id,
        .spec = t->contract.spec,
        .created_at = g->created_at,
        .started_at = t->started_at,
        .finished_at = cx_governor_now(g, &t->arena),
        .status = status_of(t),
        .aborted = t->refusal.aborted,
        .failed_gate = t->refused ? cx_str_z(cx_gate_name(t->refusal.gate)) : CX_STR(""),
        .failure_hint = t->refusal.hint,
        .summary = t->agent.summary,
        .baseline_commit = g->baseline,
        .head_commit = head_of(t),
        .diff_gate = t->verdicts.diff,
        .policy_gate = t->verdicts.policy,
        .review_gate = t->verdicts.review,
        .tests_gate = t->verdicts.tests,
        .changed = t->candidate.changed.items,
        .changed_count = t->candidate.changed.count,
        .notes = g->notes,
        .evidence = t->agent.has_reply ? t->agent.evidence : NULL,
        .evidence_note = t->agent.evidence_note,
    };
    if (out->finished_at.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(ref_of(t, "patch.diff", &out->patch, err));
    return ref_of(t, "diff_name_only.txt", &out->changed_files, err);
}

static cx_status add_artifacts(cx_governor_task *t, cx_run_task_facts *facts, cx_err *err)
{
    cx_json stub;
    cx_str path = cx_task_file(t, "artifacts/runner_result.json");
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (!t->agent.has_reply) {
        CX_TRY(cx_run_report_runner_stub(facts, &t->arena, &stub, err));
        CX_TRY(cx_run_file_write_json(t->governor->run, path, &stub, err));
    }
    cx_run_ref *refs = CX_ARENA_ARRAY(&t->arena, cx_run_ref, t->reports.artifacts.count + 1);
    if (refs == NULL)
        return cx_fail_nomem(err);
    CX_TRY(ref_of(t, "artifacts/runner_result.json", &refs[0], err));
    for (size_t i = 0; i < t->reports.artifacts.count; i++)
        CX_TRY(cx_run_file_ref(t->governor->run, t->reports.artifacts.items[i], &t->arena,
                               &refs[i + 1], err));
    facts->artifacts = refs;
    facts->artifact_count = t->reports.artifacts.count + 1;
    return CX_SUCCESS;
}

/* §17: what the evidence report counts as missing. */
static cx_status missing_files(cx_governor_task *t, cx_str **out, size_t *out_count, cx_err *err)
{
    static const char *const needed[] = {
        "contract.json",
        "events.jsonl",
        "patch.diff",
        "diff_name_only.txt",
        "worktree_ref.txt",
        "reports/task_result.json",
        "reports/review_report.json",
        "reports/test_report.json",
        "reports/work_report.json",
        "reports/evidence_bundle.json",
        "git/baseline_commit.txt",
        "trace/trace_id.txt",
    };
    cx_str *items = CX_ARENA_ARRAY(&t->arena, cx_str, CX_COUNT_OF(needed));
    size_t count = 0;
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < CX_COUNT_OF(needed); i++)
        if (!cx_run_file_exists(t->governor->run, cx_str_z(needed[i])))
            items[count++] = cx_str_z(needed[i]);
    *out = items;
    *out_count = count;
    return CX_SUCCESS;
}

static cx_status write_reports(cx_governor_task *t, cx_err *err)
{
    cx_run_task_facts facts;
    cx_json document;
    cx_str *missing = NULL;
    size_t missing_count = 0;
    cx_arena *arena = &t->arena;
    CX_TRY(task_facts(t, &facts, err));
    CX_TRY(add_artifacts(t, &facts, err));
    CX_TRY(cx_run_report_task_result(&facts, arena, &document, err));
    CX_TRY(
        write_document(t, "reports/task_result.json", "results", "/result.json", &document, err));
    CX_TRY(cx_run_report_review(&facts, &t->reports.review, arena, &document, err));
    CX_TRY(write_document(t, "reports/review_report.json", "reviews", ".json", &document, err));
    CX_TRY(cx_run_report_tests(&facts, &t->reports.tests, arena, &document, err));
    CX_TRY(write_document(t, "reports/test_report.json", "ci", "/report.json", &document, err));
    if (t->part)
        return CX_SUCCESS;
    CX_TRY(cx_run_report_work_report(&facts, arena, &document, err));
    CX_TRY(write_document(t, "reports/work_report.json", NULL, NULL, &document, err));
    CX_TRY(cx_run_report_evidence_bundle(&facts, arena, &document, err));
    CX_TRY(write_document(t, "reports/evidence_bundle.json", NULL, NULL, &document, err));
    CX_TRY(missing_files(t, &missing, &missing_count, err));
    CX_TRY(cx_run_report_evidence_report(missing, missing_count, arena, &document, err));
    return write_document(t, "reports/evidence_report.json", NULL, NULL, &document, err);
}

/* --- the run ---------------------------------------------------------------------------------- */

static cx_status write_meta(cx_governor *g, cx_err *err)
{
    cx_json document, names;
    cx_buf env;
    unsigned version = 0;
    cx_governor_task *t = &g->tasks[0];
    CX_TRY(cx_git_version(NULL, &version, err));
    cx_run_meta_facts facts = {
        .run_id = cx_run_id(g->run),
        .cortex_version = cx_str_z(cx_version()),
        .git_version = cx_arena_printf(g->arena, "%u.%u.%u", version / 10000, version / 100 % 100,
                                       version % 100),
        .runner = g->runner_settings.name,
        .env_hash = cx_digest_of((cx_bytes){NULL, 0}),
    };
    if (t->agent.spec.worktree != NULL && g->sandbox != NULL) {
        cx_buf_init(&env, g->alloc);
        cx_status status = cx_sandbox_env_names(g->sandbox, &t->agent.spec, g->arena, &names, err);
        if (!cx_failed(status))
            status = cx_run_json_write(&env, &names, err);
        facts.env_hash = cx_digest_of(cx_buf_bytes(&env));
        cx_buf_done(&env);
        CX_TRY(status);
    }
    CX_TRY(cx_run_report_meta(&facts, g->arena, &document, err));
    return cx_run_file_write_json(g->run, CX_STR("meta.json"), &document, err);
}

static cx_str final_commit(const cx_governor_task *t, cx_arena *arena)
{
    char text[CX_OID_TEXT_SIZE];
    if (t->refused)
        return t->governor->baseline;
    if (t->candidate.merged.size == 0)
        return head_of(t);
    cx_oid_text(&t->candidate.merged, text);
    return cx_arena_copy_str(arena, cx_str_z(text));
}

static cx_status manifest_task(cx_governor_task *t, cx_run_manifest_task *out, cx_err *err)
{
    *out = (cx_run_manifest_task){.task_id = t->id,
                                  .role = t->contract.assigned.role_name,
                                  .agent_id = t->contract.assigned.agent_id,
                                  .thread_id = t->agent.thread_id,
                                  .status = status_of(t)};
    CX_TRY(ref_of(t, "contract.json", &out->contract, err));
    CX_TRY(ref_of(t, "reports/task_result.json", &out->result, err));
    CX_TRY(ref_of(t, "reports/review_report.json", &out->review_report, err));
    return ref_of(t, "reports/test_report.json", &out->test_report, err);
}

static cx_status make_manifest(cx_governor *g, cx_run_status status, const cx_run_ref *files,
                               size_t file_count, cx_json *out, cx_err *err)
{
    cx_governor_task *t = &g->tasks[0];
    cx_run_manifest_task tasks[1 + CX_RUN_PARTS_MAX];
    for (size_t i = 0; i < g->task_count; i++)
        CX_TRY(manifest_task(&g->tasks[i], &tasks[i], err));
    cx_run_manifest_facts facts = {
        .run_id = cx_run_id(g->run),
        .task_id = t->id,
        .created_at = g->created_at,
        .finished_at = cx_governor_now(g, g->arena),
        .status = status,
        .failure_reason = t->refused ? cx_str_z(cx_gate_name(t->refusal.gate)) : CX_STR(""),
        .user_request = g->planner != NULL ? g->planner->contract.spec : t->contract.spec,
        .trace_id = cx_run_trace_id(g->run),
        .diagnostic = cx_governor_is_diagnostic(g),
        .runner_name = g->runner_settings.name.size == 0 ? CX_STR("none") : g->runner_settings.name,
        .runner_mcp_only = g->policy.config.mcp_only,
        .runner_profile = g->runner_settings.profile,
        .policy_pack = g->contract_ok ? cx_str_z(cx_run_pack_name(t->contract.pack)) : CX_STR(""),
        .baseline_commit = g->baseline,
        .final_commit = final_commit(t, g->arena),
        .branch = t->candidate.merged.size != 0 ? g->policy.config.main_branch : CX_STR(""),
        .notes = g->notes,
        .cortex_version = cx_str_z(cx_version()),
        .contract = g->contract_ok ? &g->contract.json : NULL,
        .tasks = tasks,
        .task_count = g->task_count,
        .files = files,
        .file_count = file_count,
    };
    return cx_run_report_manifest(&facts, g->arena, out, err);
}

/* §15: the merge commit names the manifest, which is sealed only now.  A note that cannot be
 * written takes nothing from the run. */
static void add_note(cx_governor *g, const cx_digest *manifest)
{
    cx_governor_task *t = &g->tasks[0];
    cx_str hash = cx_digest_text(manifest, g->arena), run = cx_run_id(g->run);
    if (t->candidate.merged.size == 0 || hash.data == NULL)
        return;
    cx_str text = cx_arena_printf(g->arena,
                                  "Cortex-Run: %.*s\nCortex-Task: %.*s\n"
                                  "Cortex-Manifest-SHA256: %.*s\n",
                                  (int)run.size, run.data, (int)t->id.size, t->id.data,
                                  (int)hash.size, hash.data);
    if (text.data != NULL)
        (void)cx_failed(cx_run_note_add(g->git, &t->candidate.merged, text,
                                        (int64_t)(g->io->wall_ns(g->io) / UINT64_C(1000000000)),
                                        NULL));
}

/* --- the outcome ------------------------------------------------------------------------------ */

static cx_str copied(cx_arena *arena, cx_str text)
{
    return text.size == 0 ? CX_STR("") : cx_arena_copy_str(arena, text);
}

static cx_status violations_json(const cx_texts *texts, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list array = cx_json_list_begin(arena);
    for (size_t i = 0; i < texts->count; i++)
        cx_json_list_add(&array, cx_json_make_str(copied(arena, texts->items[i])));
    return cx_json_list_end_array(&array, out, err);
}

/* A contract whose task_id cannot name anything: refused without a bundle. */
static cx_status outcome_without_run(cx_governor *g, cx_run_outcome *out, cx_arena *arena,
                                     cx_err *err)
{
    cx_texts texts;
    CX_TRY(cx_findings_texts(&g->findings, g->arena, &texts, err));
    *out = (cx_run_outcome){.exit_code = CX_RUN_EXIT_REJECTED,
                            .status = CX_STR("FAILURE"),
                            .task_status = CX_STR("BLOCKED"),
                            .failed_gate = CX_STR("contract"),
                            .reason = CX_STR("task_id_unusable")};
    for (size_t i = 0; i < g->findings.list.count && out->hint.size == 0; i++)
        if (!g->findings.list.items[i].informs)
            out->hint = copied(arena, g->findings.list.items[i].message);
    return violations_json(&texts, arena, &out->violations, err);
}

static uint32_t turns_of(const cx_governor *g)
{
    uint32_t turns = 0;
    for (size_t i = 0; i < g->task_count; i++)
        turns += g->tasks[i].agent.turns;
    return turns;
}

static cx_status fill_outcome(cx_governor *g, const cx_run_sealed *sealed, cx_run_outcome *out,
                              cx_arena *arena, cx_err *err)
{
    cx_governor_task *t = &g->tasks[0];
    cx_run_ref patch;
    CX_TRY(ref_of(t, "patch.diff", &patch, err));
    *out = (cx_run_outcome){
        .exit_code = t->refused ? CX_RUN_EXIT_REJECTED : 0,
        .run_id = copied(arena, cx_run_id(g->run)),
        .task_id = copied(arena, t->id),
        .status = cx_str_z(cx_run_status_name(t->refused ? CX_RUN_FAILURE : CX_RUN_SUCCESS)),
        .task_status = cx_str_z(cx_run_task_status_name(status_of(t))),
        .failed_gate = t->refused ? cx_str_z(cx_gate_name(t->refusal.gate)) : CX_STR(""),
        .reason = t->refused ? copied(arena, t->refusal.reason) : CX_STR(""),
        .hint = t->refused ? copied(arena, t->refusal.hint) : CX_STR(""),
        .attempts = turns_of(g),
        .baseline_commit = copied(arena, g->baseline),
        .final_commit = copied(arena, final_commit(t, g->arena)),
        .patch_sha256 = cx_digest_text(&patch.sha256, arena),
        .manifest_sha256 = cx_digest_text(&sealed->manifest_sha256, arena),
        .sealed = sealed->in_ledger,
        .seal_index = sealed->index,
        .merged = copied(arena, t->candidate.merged_kind),
        .bundle = copied(arena, cx_str_z(cx_run_folder(g->run))),
    };
    return violations_json(&t->refusal.violations, arena, &out->violations, err);
}

/* The last line of events.jsonl, for those who follow. */
static cx_status report_last_event(cx_governor *g, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, g->alloc);
    cx_status status = cx_run_file_read(g->run, CX_STR("events.jsonl"),
                                        (size_t)CX_RUN_EVENTS_BYTES_MAX, &text, err);
    if (!cx_failed(status) && text.size != 0) {
        size_t end = text.size - 1, start = end; /* the line's own end is not part of it */
        while (start != 0 && text.data[start - 1] != '\n')
            start--;
        g->options->progress(g->options->progress_arg,
                             cx_str_z(cx_run_event_type_name(CX_RUN_EVENT_RUN_FINISHED)),
                             (cx_str){(const char *)text.data + start, end - start});
    }
    cx_buf_done(&text);
    return status;
}

static cx_status finish_run(cx_governor *g, cx_run_status status, const cx_run_ref **out,
                            size_t *out_count, cx_err *err)
{
    int code = status == CX_RUN_SUCCESS ? 0 : CX_RUN_EXIT_REJECTED;
    CX_TRY(cx_run_finish(g->run, status, code, g->arena, out, out_count, err));
    if (g->options->progress != NULL)
        CX_TRY(report_last_event(g, err));
    cx_governor_fault(g);
    return CX_SUCCESS;
}

/* As the manifest says it. */
static cx_str or_none(cx_str commit)
{
    return commit.size == 0 ? CX_STR("none") : commit;
}

cx_status cx_governor_end(cx_governor *g, cx_run_outcome *out, cx_arena *arena, cx_err *err)
{
    const cx_run_ref *files;
    size_t file_count;
    cx_json manifest;
    cx_run_sealed sealed;
    if (g->run == NULL)
        return outcome_without_run(g, out, arena, err);
    cx_governor_task *t = &g->tasks[0];
    cx_run_status status = t->refused ? CX_RUN_FAILURE : CX_RUN_SUCCESS;
    if (g->locks_renewed)
        cx_run_lock_renewer_stop(&g->keeper);
    g->locks_renewed = false;
    for (size_t i = g->task_count; i-- > 0;) {
        CX_TRY(write_always(&g->tasks[i], err));
        CX_TRY(write_reports(&g->tasks[i], err));
    }
    CX_TRY(write_meta(g, err));
    CX_TRY(finish_run(g, status, &files, &file_count, err));
    CX_TRY(make_manifest(g, status, files, file_count, &manifest, err));
    cx_run_seal_facts seal = {.task_id = t->id,
                              .status = status,
                              .baseline_commit = or_none(g->baseline),
                              .final_commit = or_none(final_commit(t, g->arena))};
    CX_TRY(cx_run_seal(g->run, &manifest, &seal, &sealed, err));
    add_note(g, &sealed.manifest_sha256);
    return fill_outcome(g, &sealed, out, arena, err);
}
