/*
 * bench_schema.c - row R2: checking contracts against their schema, compared with ajv.
 *
 * Both have the schema compiled and the documents parsed; ajv runs in node, warm, in turns with
 * ours. Node and ajv are found through $CORTEX_PEERS (scripts/fetch-peers.sh); without them the row
 * is skipped.  A second row, for information, is ours with reading the text.
 */
#include <string.h>

#include "base/diag.h"
#include "base/io.h"
#include "os/proc.h"
#include "bench/bench.h"
#include "rules/assets.h"
#include "rules/schemas.h"

#define TARGET 0.5
#define PEER_TURNS 7

/* A contract as people write them: agents, paths, tests, permissions, an artifact with its digest.
 */
static const char contract[] =
    "{\"task_id\":\"task_backend_example\",\"task_type\":\"IMPLEMENT\",\"owner_agent\":{\"role\":"
    "\"WORKER\",\"agent_id\":\"agent-1\",\"codex_thread_id\":\"\"},\"assigned_agent\":{\"role\":"
    "\"WORKER\",\"agent_id\":\"agent-1\"},\"inputs\":{\"spec\":\"Update the module so that it "
    "starts "
    "in half the time, and say how it was measured.\",\"artifacts\":[{\"name\":"
    "\"output_schema.worker\",\"uri\":\"schemas/agent_task_result.v1.json\",\"sha256\":"
    "\"48579fe57c2178dd2112d1517cf057ccbd04e530c254999d40588a322f8cc576\"},{\"name\":\"notes\","
    "\"uri\":\"docs/notes.md\",\"sha256\":"
    "\"b75bbbe159ccb833e14c9daca8f919d0b84dd19673010d7ef2bbb09f5d8204e9\"}]},"
    "\"required_outputs\":[{\"name\":\"src/app/"
    "main.c\",\"type\":\"file\",\"acceptance\":\"starts\"},"
    "{\"name\":\"patch\",\"type\":\"patch\",\"acceptance\":\"applies\"}],\"allowed_paths\":["
    "\"src/app/main.c\",\"src/lib/\",\"tests/run.sh\"],\"forbidden_actions\":[\"rm -rf\",\"git "
    "push\"],"
    "\"acceptance_tests\":[{\"name\":\"unit\",\"cmd\":\"scripts/test.sh\",\"must_pass\":true},{"
    "\"name\":\"style\",\"cmd\":\"python3 -m pytest "
    "-q\",\"must_pass\":false}],\"tool_permissions\":{"
    "\"filesystem\":\"workspace-write\",\"shell\":\"never\",\"network\":\"deny\",\"mcp_tools\":["
    "\"codex\"]},\"mcp_tool_set\":[\"01-filesystem\"],\"policy_pack\":\"low\",\"timeout_retry\":{"
    "\"timeout_sec\":900,\"max_retries\":2,\"retry_backoff_sec\":3},\"rollback\":{\"strategy\":"
    "\"git_reset_hard\",\"baseline_ref\":\"HEAD\"},\"evidence_links\":[],\"log_refs\":{\"run_id\":"
    "\"\","
    "\"paths\":{\"codex_jsonl\":\"\",\"codex_transcript\":\"\",\"git_diff\":\"\",\"tests_log\":"
    "\"\","
    "\"trace_id\":\"\"}},\"handoff_chain\":{\"enabled\":false,\"roles\":[\"PM\",\"WORKER\"],"
    "\"max_handoffs\":2}}";

typedef struct bench {
    const cx_schema *schema;
    cx_json instance;
    cx_json_parser parser;
    cx_arena arena;
} bench;

static void must(cx_status status, const cx_err *err)
{
    if (cx_failed(status)) {
        (void)fprintf(stderr, "bench_schema: %s\n", err->message);
        exit(3);
    }
}

static void check_one(bench *b, const cx_json *instance)
{
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_schema_report report;
    cx_err err;
    how.errors_max = 0; /* as ajv stops at the first */
    must(cx_schema_check(b->schema, instance, &how, &b->arena, &report, &err), &err);
    if (!report.valid)
        exit(3);
}

static void check_parsed(void *arg)
{
    bench *b = arg;
    check_one(b, &b->instance);
}

static void check_text(void *arg)
{
    bench *b = arg;
    cx_json instance;
    cx_err err;
    cx_arena_mark mark = cx_arena_mark_now(&b->arena);
    must(cx_json_parse(&b->parser, CX_STR(contract), &b->arena, &instance, &err), &err);
    check_one(b, &instance);
    cx_arena_reset(&b->arena, mark);
}

/* One turn of ajv; 0 when it cannot be had. */
static double ajv_rate(const char *schema_file, const char *instances_file)
{
    const char *const argv[] = {"node",      CX_BENCH_AJV,   "rate", "2020-12",
                                schema_file, instances_file, "0.2",  NULL};
    cx_proc_options options = {.argv = argv, .inherit_env = true, .timeout_ms = 60000};
    cx_proc_result result;
    cx_buf out;
    cx_arena arena;
    cx_json answer;
    double rate = 0;
    cx_buf_init(&out, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (!cx_failed(cx_proc_run(&options, &out, NULL, &result, NULL)) && result.exit_code == 0 &&
        !cx_failed(cx_json_parse_text(cx_buf_str(&out), &arena, &answer, NULL))) {
        const cx_json *value = CX_JSON_GET(&answer, "rate"), *valid = CX_JSON_GET(&answer, "valid");
        uint64_t count;
        /* What it calls invalid is faster to say. */
        if (value == NULL || valid == NULL || !cx_json_double(value, &rate) ||
            !cx_json_uint64(valid, &count) || count != 1)
            rate = 0;
    }
    cx_arena_done(&arena);
    cx_buf_done(&out);
    return rate;
}

static bool write_file(const char *path, cx_bytes contents)
{
    return !cx_failed(cx_io_replace_file(cx_io_system(), path, contents, NULL));
}

static int compare(double a, double b)
{
    return bench_compare(&a, &b);
}

/* Turns of both, one after the other; false when ajv is not there. */
static bool measure_pair(bench *b, bench_rate *ours, bench_rate *ajv)
{
    char schema_file[256], instances_file[256];
    const char *folder = getenv("TMPDIR");
    cx_bytes schema;
    cx_buf instances;
    double our_seconds[PEER_TURNS], ajv_seconds[PEER_TURNS], wall = 0, cpu = 0;
    if (getenv("CORTEX_PEERS") == NULL || !cx_run_asset("schemas/task_contract.v1.json", &schema))
        return false;
    folder = folder == NULL ? "/tmp" : folder;
    (void)snprintf(schema_file, sizeof schema_file, "%s/bench_schema.json", folder);
    (void)snprintf(instances_file, sizeof instances_file, "%s/bench_schema_in.json", folder);
    cx_buf_init(&instances, cx_alloc_default());
    cx_buf_printf(&instances, "[%s]", contract);
    bool there =
        write_file(schema_file, schema) && write_file(instances_file, cx_buf_bytes(&instances));
    bench_side side = {"ours", check_parsed, b, 1, {.turns = 0}};
    (void)bench_turn(&side, 20000, &wall, &cpu);
    wall = cpu = 0;
    for (size_t turn = 0; turn < PEER_TURNS && there; turn++) {
        our_seconds[turn] = bench_turn(&side, 40000, &wall, &cpu);
        double rate = ajv_rate(schema_file, instances_file);
        there = compare(rate, 0) > 0;
        ajv_seconds[turn] = there ? 1 / rate : 0;
    }
    if (there) {
        *ours = bench_rate_of(our_seconds, PEER_TURNS, 1, cpu / wall);
        *ajv = bench_rate_of(ajv_seconds, PEER_TURNS, 1, 1);
    }
    (void)remove(schema_file);
    (void)remove(instances_file);
    cx_buf_done(&instances);
    return there;
}

int main(void)
{
    bench b = {0};
    cx_err err;
    bench_rate ours, ajv;
    bool ok = true;
    cx_arena_init(&b.arena, cx_alloc_default(), 0);
    cx_json_parser_init(&b.parser, cx_alloc_default(), NULL);
    must(cx_run_schema("task_contract.v1.json", &b.schema, &err), &err);
    must(cx_json_parse(&b.parser, CX_STR(contract), &b.arena, &b.instance, &err), &err);
    bench_side sides[] = {{"checked, already parsed", check_parsed, &b, 1, {.turns = 0}},
                          {"read and checked", check_text, &b, 1, {.turns = 0}}};
    bench_measure(sides, CX_COUNT_OF(sides));
    for (size_t i = 0; i < CX_COUNT_OF(sides); i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1e3, "k/s");
    if (measure_pair(&b, &ours, &ajv)) {
        bench_print_side("ajv, compiled and warm", &ajv, 1e3, "k/s");
        ok = bench_print_row("R2", "contracts/s / ajv", &ours, &ajv, 1, TARGET);
    } else {
        bench_print_skipped("R2", "contracts/s / ajv", TARGET, "no ajv in CORTEX_PEERS");
    }
    cx_json_parser_done(&b.parser);
    cx_arena_done(&b.arena);
    return ok ? 0 : 1;
}
