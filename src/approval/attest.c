/*
 * attest.c - collects an in-toto Statement of a run from its bundle (run.md §22).
 */
#include "approval/attest.h"

#include "crypto/api.h"
#include "approval/approval.h"

enum { FILE_MAX = 256 << 20 };

/* --- collecting ------------------------------------------------------------------------------- */

typedef struct statement_collector {
    cx_run_bundle *bundle;
    cx_arena *arena;
    cx_json manifest, result, tests;
    cx_err *err;
} statement_collector;

static void put_value(cx_json_list *object, const char *name, cx_json value)
{
    cx_json_list_put(object, cx_str_z(name), value);
}

static void put_str(cx_json_list *object, const char *name, cx_str text)
{
    put_value(object, name, cx_json_make_str(text));
}

static cx_status put_object(cx_json_list *object, const char *name, cx_json_list *child,
                            cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(child, &value, err));
    put_value(object, name, value);
    return CX_SUCCESS;
}

static cx_status put_digest(cx_json_list *object, const char *name, const cx_digest *digest,
                            cx_err *err)
{
    char hex[2 * sizeof digest->bytes];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    cx_str text = cx_arena_copy_str(object->arena, cx_str_from(hex, sizeof hex));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    put_str(object, name, text);
    return CX_SUCCESS;
}

/* The text at a pointer of one of the bundle's documents. */
static cx_status read_text_at(statement_collector *c, const cx_json *root, const char *file,
                              const char *pointer, cx_str *out)
{
    const cx_json *value = cx_json_pointer(root, cx_str_z(pointer));
    if (value == NULL || value->type != CX_JSON_STRING || value->count == 0)
        return cx_fail(c->err, CX_E_FORMAT, "%s: expected text at %s", file, pointer);
    *out = cx_json_text(value);
    return CX_SUCCESS;
}

static cx_status put_manifest(statement_collector *c, cx_json_list *object, const char *name,
                              const char *pointer)
{
    cx_str text;
    CX_TRY(read_text_at(c, &c->manifest, "manifest.json", pointer, &text));
    put_str(object, name, text);
    return CX_SUCCESS;
}

static cx_status put_file_digest(statement_collector *c, cx_json_list *object, const char *name,
                                 const char *file)
{
    cx_digest digest;
    CX_TRY(cx_run_bundle_digest(c->bundle, cx_str_z(file), &digest, c->err));
    return put_digest(object, name, &digest, c->err);
}

/* {"name", "digest": {..}} */
static cx_status add_subject(statement_collector *c, cx_json_list *array, const char *name,
                             cx_json_list *digest)
{
    cx_json_list object = cx_json_list_begin(c->arena);
    cx_json value;
    CX_TRY(put_object(&object, "digest", digest, c->err));
    put_str(&object, "name", cx_str_z(name));
    CX_TRY(cx_json_list_end_object(&object, &value, c->err));
    cx_json_list_add(array, value);
    return CX_SUCCESS;
}

static cx_status put_subject(statement_collector *c, cx_json_list *statement)
{
    static const char *const files[] = {"patch.diff", "manifest.json"};
    cx_json_list array = cx_json_list_begin(c->arena);
    cx_json_list commit = cx_json_list_begin(c->arena);
    cx_json value;
    CX_TRY(put_manifest(c, &commit, "gitCommit", "/repo/final_ref"));
    CX_TRY(add_subject(c, &array, "commit", &commit));
    for (size_t i = 0; i < CX_COUNT_OF(files); i++) {
        cx_json_list digest = cx_json_list_begin(c->arena);
        CX_TRY(put_file_digest(c, &digest, "sha256", files[i]));
        CX_TRY(add_subject(c, &array, files[i], &digest));
    }
    CX_TRY(cx_json_list_end_array(&array, &value, c->err));
    put_value(statement, "subject", value);
    return CX_SUCCESS;
}

static cx_status put_gates(statement_collector *c, cx_json_list *predicate)
{
    static const char *const names[] = {"diff_gate", "policy_gate", "review_gate", "tests_gate"};
    cx_json_list gates = cx_json_list_begin(c->arena);
    const cx_json *all = CX_JSON_GET(&c->result, "gates");
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *gate = all == NULL ? NULL : cx_json_get(all, cx_str_z(names[i]));
        const cx_json *passed = gate == NULL ? NULL : CX_JSON_GET(gate, "passed");
        if (passed == NULL || (passed->type != CX_JSON_TRUE && passed->type != CX_JSON_FALSE))
            return cx_fail(c->err, CX_E_FORMAT,
                           "reports/task_result.json: expected a boolean at /gates/%s/passed",
                           names[i]);
        put_value(&gates, names[i], *passed);
    }
    return put_object(predicate, "gates", &gates, c->err);
}

static cx_status put_tests(statement_collector *c, cx_json_list *predicate)
{
    cx_json_list tests = cx_json_list_begin(c->arena);
    const cx_json *commands = CX_JSON_GET(&c->tests, "commands");
    cx_str status;
    CX_TRY(read_text_at(c, &c->tests, "reports/test_report.json", "/status", &status));
    if (commands == NULL || commands->type != CX_JSON_ARRAY)
        return cx_fail(c->err, CX_E_FORMAT, "reports/test_report.json: expected a list /commands");
    put_str(&tests, "status", status);
    put_value(&tests, "commands", cx_json_make_uint(c->arena, commands->count));
    return put_object(predicate, "tests", &tests, c->err);
}

/* The last line of the chain, and how many there are. */
static cx_status put_events(statement_collector *c, cx_json_list *predicate)
{
    cx_json_list events = cx_json_list_begin(c->arena);
    cx_bytes bytes;
    cx_str text, line, last = {NULL, 0}, head;
    cx_json link;
    uint64_t count = 0;
    CX_TRY(
        cx_run_bundle_read(c->bundle, CX_STR("events.hashchain.jsonl"), FILE_MAX, &bytes, c->err));
    for (text = cx_bytes_str(bytes); cx_run_next_line(&text, &line); count++)
        last = line;
    if (count == 0)
        return cx_fail(c->err, CX_E_FORMAT, "events.hashchain.jsonl: expected at least one line");
    CX_TRY(cx_run_json_read(last, 0, c->arena, &link, c->err));
    CX_TRY(read_text_at(c, &link, "events.hashchain.jsonl", "/hash", &head));
    put_str(&events, "chain_head", head);
    put_value(&events, "count", cx_json_make_uint(c->arena, count));
    return put_object(predicate, "events", &events, c->err);
}

static cx_status put_sandbox(statement_collector *c, cx_json_list *predicate)
{
    static const char *const runs[] = {"RUNNER_STARTED", "TEST_COMMAND_RESULT"};
    cx_bytes bytes;
    cx_str text, line;
    cx_run_event_read event;
    bool applied = false, degraded = false, ran = false;
    uint64_t index = 0;
    CX_TRY(cx_run_bundle_read(c->bundle, CX_STR("events.jsonl"), FILE_MAX, &bytes, c->err));
    for (text = cx_bytes_str(bytes); cx_run_next_line(&text, &line);) {
        cx_arena_mark mark = cx_arena_mark_now(c->arena);
        CX_TRY(cx_run_event_parse(line, ++index, c->arena, &event, c->err));
        applied = applied || cx_str_is(event.type, "SANDBOX_APPLIED");
        degraded = degraded || cx_str_is(event.type, "SANDBOX_DEGRADED");
        for (size_t i = 0; i < CX_COUNT_OF(runs); i++)
            ran = ran || cx_str_is(event.type, runs[i]);
        cx_arena_reset(c->arena, mark);
    }
    put_str(predicate, "sandbox",
            degraded          ? CX_STR("degraded")
            : applied || !ran ? CX_STR("full")
                              : CX_STR("none"));
    return CX_SUCCESS;
}

static cx_status add_approval(statement_collector *c, cx_json_list *array, cx_str path)
{
    cx_bytes bytes;
    cx_run_dsse envelope;
    cx_run_approval approval;
    cx_json value;
    CX_TRY(cx_run_bundle_read(c->bundle, path, CX_RUN_DSSE_BYTES_MAX, &bytes, c->err));
    CX_TRY(cx_run_dsse_read(cx_bytes_str(bytes), c->arena, &envelope, c->err));
    CX_TRY(cx_run_approval_decode(envelope.payload, c->arena, &approval, c->err));
    approval.sha256 = cx_digest_of(bytes);
    CX_TRY(cx_run_approval_json(&approval, false, c->arena, &value, c->err));
    cx_json_list_add(array, value);
    return CX_SUCCESS;
}

/* The bundle contains the envelopes that were used, sorted by name. */
static cx_status put_approvals(statement_collector *c, cx_json_list *predicate)
{
    cx_json_list array = cx_json_list_begin(c->arena);
    cx_json value;
    size_t count;
    const cx_run_entry *entries = cx_run_bundle_entries(c->bundle, &count);
    for (size_t i = 0; i < count; i++) {
        if (cx_str_starts(entries[i].path, CX_STR(CX_RUN_APPROVALS_EVIDENCE)))
            CX_TRY(add_approval(c, &array, entries[i].path));
    }
    CX_TRY(cx_json_list_end_array(&array, &value, c->err));
    put_value(predicate, "approvals", value);
    return CX_SUCCESS;
}

static cx_status put_ledger(statement_collector *c, cx_json_list *predicate,
                            const cx_run_attest_ledger *ledger)
{
    cx_json_list object = cx_json_list_begin(c->arena);
    if (ledger == NULL || ledger->origin.size == 0) {
        put_value(predicate, "ledger", cx_json_make_null());
        return CX_SUCCESS;
    }
    put_str(&object, "origin", ledger->origin);
    put_value(&object, "index", cx_json_make_uint(c->arena, ledger->index));
    put_value(&object, "size", cx_json_make_uint(c->arena, ledger->size));
    CX_TRY(put_digest(&object, "root", &ledger->root, c->err));
    return put_object(predicate, "ledger", &object, c->err);
}

static cx_status put_predicate(statement_collector *c, cx_json_list *statement,
                               const cx_run_attest_ledger *ledger)
{
    cx_json_list predicate = cx_json_list_begin(c->arena);
    CX_TRY(put_manifest(c, &predicate, "run_id", "/run_id"));
    CX_TRY(put_manifest(c, &predicate, "task_id", "/task_id"));
    CX_TRY(put_manifest(c, &predicate, "status", "/status"));
    CX_TRY(put_manifest(c, &predicate, "baseline_commit", "/repo/baseline_ref"));
    CX_TRY(put_manifest(c, &predicate, "final_commit", "/repo/final_ref"));
    CX_TRY(put_manifest(c, &predicate, "started_at", "/created_at"));
    CX_TRY(put_manifest(c, &predicate, "finished_at", "/finished_at"));
    CX_TRY(put_file_digest(c, &predicate, "contract_sha256", "contract.json"));
    CX_TRY(put_gates(c, &predicate));
    CX_TRY(put_tests(c, &predicate));
    CX_TRY(put_events(c, &predicate));
    CX_TRY(put_sandbox(c, &predicate));
    CX_TRY(put_approvals(c, &predicate));
    CX_TRY(put_ledger(c, &predicate, ledger));
    return put_object(statement, "predicate", &predicate, c->err);
}

cx_status cx_run_attest_read(cx_run_bundle *bundle, const cx_run_attest_ledger *ledger,
                             cx_arena *arena, cx_json *out, cx_err *err)
{
    statement_collector c = {.bundle = bundle, .arena = arena, .err = err};
    cx_json_list statement = cx_json_list_begin(arena);
    CX_TRY(cx_run_bundle_json(bundle, CX_STR("manifest.json"), &c.manifest, err));
    CX_TRY(cx_run_bundle_json(bundle, CX_STR("reports/task_result.json"), &c.result, err));
    CX_TRY(cx_run_bundle_json(bundle, CX_STR("reports/test_report.json"), &c.tests, err));
    put_str(&statement, "_type", CX_STR("https://in-toto.io/Statement/v1"));
    put_str(&statement, "predicateType", CX_STR("urn:cortex:predicate:run:v1"));
    CX_TRY(put_subject(&c, &statement));
    CX_TRY(put_predicate(&c, &statement, ledger));
    return cx_json_list_end_object(&statement, out, err);
}

cx_status cx_run_attest_payload(const cx_json *statement, cx_buf *out, cx_err *err)
{
    return cx_json_write(out, statement, CX_JSON_JCS, err);
}
