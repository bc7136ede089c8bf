/*
 * bench_trace.c - row T1: signed traces of 10 KB, from received bytes to what the ledger keeps.
 *
 * Ours, on two cores: read, verify in form B (canonical bytes, signature, level), content digest,
 * and the leaf: commitment to the received bytes, entry, its hash; in batches of 16, as they come
 * over HTTP.  The reference, on one core, is
 * libsodium's verification of the same canonical bytes and nothing else.  What ours takes on one
 * core is printed next to it, piece by piece.
 */
#include <sodium.h>

#include "base/diag.h"
#include "base/thread.h"
#include "bench/bench.h"
#include "crypto/digest.h"
#include "base/hex.h"
#include "proof/entry.h"
#include "tree/scheme.h"
#include "trace/trace.h"

enum { TRACE_COUNT = 400, TEAM_MAX = 2, BATCH = 16 };

static void must(cx_status status)
{
    CX_ASSERT(!cx_failed(status));
}

/* --- traces ---------------------------------------------------------------------------------- */

static uint64_t random_state = 4;

static uint64_t random_below(uint64_t limit)
{
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % limit;
}

static const char *const words[] = {"the",     "request", "was",     "checked", "against",
                                    "policy",  "and",     "agent",   "memory",  "before",
                                    "decided", "because", "earlier", "results", "context"};

/* Words up to about `size` bytes; a line break now and then, and rarely something not ASCII. */
static void add_prose(cx_buf *out, const char *name, size_t size)
{
    size_t start = out->size;
    cx_buf_printf(out, "\"%s\": \"", name);
    while (out->size - start < size) {
        uint64_t pick = random_below(200);
        if (pick < 8)
            cx_buf_add_z(out, ".\\n");
        else if (pick < 10)
            cx_buf_add_z(out, "\\\"quoted\\\"");
        else if (pick < 11)
            cx_buf_add_z(out, "caf\xc3\xa9");
        else
            cx_buf_add_z(out, words[random_below(CX_COUNT_OF(words))]);
        cx_buf_add_byte(out, ' ');
    }
    cx_buf_add_byte(out, '"');
}

static void add_score(cx_buf *out, const char *name)
{
    cx_buf_printf(out, ", \"%s\": 0.%02u", name, (unsigned)random_below(90) + 10);
}

static void begin_component(cx_buf *out, const char *type, const char *event, unsigned second)
{
    cx_buf_printf(out,
                  "%s{\"component_type\": \"%s\", \"event_type\": \"%s\", \"timestamp\": "
                  "\"2026-11-05T10:20:%02u.%06u+00:00\", \"data\": {",
                  second == 0 ? "" : ", ", type, event, second, (unsigned)random_below(1000000));
}

static void add_first_half(cx_buf *out)
{
    begin_component(out, "observation", "THOUGHT_START", 0);
    cx_buf_add_z(out, "\"round_number\": 1, \"thought_depth\": 0, \"task_priority\": 5, "
                      "\"thought_type\": \"standard\", \"thought_status\": \"processing\", "
                      "\"channel_id\": \"ops_7\", ");
    add_prose(out, "task_description", 300);
    cx_buf_add_z(out, "}}");
    begin_component(out, "context", "SNAPSHOT_AND_CONTEXT", 1);
    cx_buf_add_z(out,
                 "\"cognitive_state\": \"WORK\", \"active_services\": [\"llm\", \"memory\"], "
                 "\"system_snapshot\": {\"channel\": {\"id\": \"ops_7\", \"kind\": \"api\"}, ");
    add_prose(out, "summary", 2200);
    cx_buf_add_z(out, ", \"resource_usage\": {\"memory_mb\": 511, \"cpu\": 12.5}}}}");
    begin_component(out, "rationale", "DMA_RESULTS", 2);
    cx_buf_add_z(out, "\"csdma\": {");
    add_prose(out, "reasoning", 900);
    add_score(out, "plausibility_score");
    cx_buf_add_z(out, ", \"flags\": []}, \"dsdma\": {");
    add_prose(out, "reasoning", 700);
    add_score(out, "domain_alignment");
    cx_buf_add_z(out, ", \"domain\": \"general\"}, \"pdma\": {");
    add_prose(out, "reasoning", 800);
    cx_buf_add_z(out, ", \"stakeholders\": \"user, operator\"}, \"idma\": {");
    add_prose(out, "reasoning", 300);
    add_score(out, "correlation_risk");
    cx_buf_add_z(out, ", \"k_eff\": 1.67, \"fragility_flag\": true, \"phase\": \"nascent\", "
                      "\"sources_identified\": [\"user\", \"memory\"]}}}");
}

static void add_second_half(cx_buf *out)
{
    begin_component(out, "rationale", "ASPDMA_RESULT", 3);
    cx_buf_add_z(out, "\"selected_action\": \"HandlerActionType.SPEAK\", \"is_recursive\": false, "
                      "\"action_parameters\": {");
    add_prose(out, "content", 900);
    cx_buf_add_z(out, "}, ");
    add_prose(out, "action_rationale", 1400);
    cx_buf_add_z(out, "}}");
    begin_component(out, "conscience", "CONSCIENCE_RESULT", 4);
    cx_buf_add_z(out, "\"conscience_passed\": true, \"action_was_overridden\": false, "
                      "\"entropy_passed\": true, \"coherence_passed\": true");
    add_score(out, "entropy_score");
    add_score(out, "coherence_score");
    cx_buf_add_z(out, ", \"epistemic_data\": {\"uncertainty_acknowledged\": true");
    add_score(out, "entropy_level");
    add_score(out, "coherence_level");
    cx_buf_add_z(out, "}, ");
    add_prose(out, "entropy_reason", 400);
    cx_buf_add_z(out, "}}");
    begin_component(out, "action", "ACTION_RESULT", 5);
    cx_buf_printf(
        out,
        "\"execution_success\": true, \"execution_time_ms\": %u.%u, \"tokens_total\": %u, "
        "\"audit_sequence_number\": %u, \"audit_entry_hash\": \"%016llx%016llx%016llx"
        "%016llx\", \"cost_cents\": 0.0031992000000000006, \"models_used\": [\"m-1\"], ",
        (unsigned)random_below(900), (unsigned)random_below(9) + 1, (unsigned)random_below(20000),
        (unsigned)random_below(90000), 1ull, 2ull, 3ull,
        (unsigned long long)random_below(UINT64_MAX));
    add_prose(out, "action_parameters", 700);
    cx_buf_add_z(out, "}}");
}

static void add_unsigned(cx_buf *out, unsigned number)
{
    cx_buf_printf(out,
                  "{\"trace_id\": \"trace-th_std_%08x\", \"thought_id\": \"th_%08x\", "
                  "\"task_id\": \"task_%u\", \"agent_id_hash\": \"976dbe5047633d39\", "
                  "\"started_at\": \"2026-11-05T10:20:00+00:00\", "
                  "\"completed_at\": \"2026-11-05T10:20:06+00:00\", "
                  "\"trace_level\": \"full_traces\", \"components\": [",
                  number, number, number / 3);
    add_first_half(out);
    add_second_half(out);
    cx_buf_add_z(out, "], \"signature_key_id\": \"bench\", \"signature\": \"");
}

typedef struct traces {
    cx_buf received[TRACE_COUNT];
    cx_buf canonical[TRACE_COUNT];
    cx_signature signatures[TRACE_COUNT];
    cx_trust_key key;
    cx_trust trust;
    size_t received_bytes, canonical_bytes;
} traces;

/* Writes one with a placeholder, reads it for its canonical bytes, and puts the signature in. */
static void make_trace(traces *all, unsigned i, const uint8_t secret[64])
{
    static const cx_trace_bytes form = {.form = CX_FORM_B, .batch_level = CX_LEVEL_ABSENT};
    cx_buf *text = &all->received[i];
    cx_arena arena;
    cx_trace trace;
    cx_trace_problem problem;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(text, cx_alloc_default());
    cx_buf_init(&all->canonical[i], cx_alloc_default());
    add_unsigned(text, i + 1);
    size_t size = text->size;
    cx_buf_add_z(text, "\"}");
    must(cx_trace_read(cx_buf_bytes(text), &arena, &trace, &problem, NULL));
    CX_ASSERT(problem.reason == CX_REASON_NONE);
    must(cx_trace_canonical(&trace, &form, &all->canonical[i], NULL));
    CX_ASSERT(crypto_sign_detached(all->signatures[i].bytes, NULL, all->canonical[i].data,
                                   all->canonical[i].size, secret) == 0);
    text->size = size;
    cx_base64_add(text, cx_bytes_from(all->signatures[i].bytes, 64), CX_BASE64_URL);
    cx_buf_add_z(text, "\"}");
    all->received_bytes += text->size;
    all->canonical_bytes += all->canonical[i].size;
    cx_arena_done(&arena);
}

static void make_traces(traces *all)
{
    uint8_t secret[64], seed[32] = {4};
    CX_ASSERT(sodium_init() >= 0);
    CX_ASSERT(crypto_sign_seed_keypair(all->key.key.bytes, secret, seed) == 0);
    all->key.key_id = CX_STR("bench");
    all->key.not_before = all->key.not_after = CX_TIME_NONE;
    all->key.revoked_at = all->key.compromised_since = CX_TIME_NONE;
    all->trust = (cx_trust){&all->key, 1};
    for (unsigned i = 0; i < TRACE_COUNT; i++)
        make_trace(all, i, secret);
}

/* --- ours ------------------------------------------------------------------------------------ */

typedef enum depth { READ, CANONICAL, VERIFY, CONTENT, LEAF } depth;

/* What one thread keeps between traces. */
typedef struct worker {
    cx_json_parser parser;
    cx_arena arena;
    cx_buf scratch;
    cx_digest last; /* so that nothing is optimised away */
} worker;

typedef struct job {
    const traces *all;
    worker workers[TEAM_MAX];
    unsigned team;
    depth depth;
} job;

static void add_leaf(const traces *all, unsigned i, const cx_trace *trace, worker *d)
{
    static const uint8_t salt[32] = {1};
    cx_bytes received = cx_buf_bytes(&all->received[i]);
    const cx_entry entry = {.seq = i,
                            .kind = CX_STR("trace.received"),
                            .created_at_ns = trace->signed_ns,
                            .committed = true,
                            .commitment = cx_scheme_payload_commitment(salt, received),
                            .payload_size = received.size};
    cx_buf_clear(&d->scratch);
    cx_entry_encode(&entry, &d->scratch);
    d->last = cx_scheme_entry(cx_buf_bytes(&d->scratch));
}

static void read_one(const job *j, unsigned i, worker *d, cx_trace *trace)
{
    const cx_trace_bytes form = {.form = CX_FORM_B, .batch_level = CX_LEVEL_ABSENT};
    cx_trace_problem problem;
    must(cx_trace_read_with(&d->parser, cx_buf_bytes(&j->all->received[i]), &d->arena, trace,
                            &problem, NULL));
    CX_ASSERT(problem.reason == CX_REASON_NONE);
    if (j->depth == CANONICAL) {
        cx_buf_clear(&d->scratch);
        must(cx_trace_canonical(trace, &form, &d->scratch, NULL));
    }
}

static void verify_batch(const job *j, const cx_trace *batch, unsigned count, worker *d)
{
    const cx_trace_check check = {.trust = &j->all->trust,
                                  .received_ns = INT64_C(1800000000000000000),
                                  .event_level = CX_LEVEL_ABSENT,
                                  .batch_level = CX_LEVEL_ABSENT,
                                  .forms = CX_FORMS_ALL};
    cx_trace_job jobs[BATCH];
    cx_trace_verdict verdicts[BATCH];
    cx_digest contents[BATCH];
    for (unsigned i = 0; i < count; i++)
        jobs[i] = (cx_trace_job){&batch[i], check, &verdicts[i],
                                 j->depth >= CONTENT ? &contents[i] : NULL};
    must(cx_trace_verify_many(jobs, count, &d->scratch, &d->arena, NULL));
    for (unsigned i = 0; i < count; i++)
        CX_ASSERT(verdicts[i].verdict == CX_HOLDS && verdicts[i].form == CX_FORM_B);
    if (j->depth >= CONTENT)
        d->last = contents[count - 1];
}

static void take_batch(const job *j, unsigned first, unsigned count, worker *d)
{
    cx_trace batch[BATCH];
    cx_arena_mark mark = cx_arena_mark_now(&d->arena);
    for (unsigned i = 0; i < count; i++)
        read_one(j, first + i, d, &batch[i]);
    if (j->depth >= VERIFY)
        verify_batch(j, batch, count, d);
    for (unsigned i = 0; i < count && j->depth == LEAF; i++)
        add_leaf(j->all, first + i, &batch[i], d);
    cx_arena_reset(&d->arena, mark);
}

static void take_share(void *arg, unsigned index)
{
    job *j = arg;
    for (unsigned i = index * BATCH; i < TRACE_COUNT; i += j->team * BATCH)
        take_batch(j, i, TRACE_COUNT - i < BATCH ? TRACE_COUNT - i : BATCH, &j->workers[index]);
}

static void take_all(void *arg)
{
    job *j = arg;
    cx_thread_team(j->team, take_share, j);
}

static void job_init(job *j, const traces *all, unsigned team, depth how)
{
    *j = (job){.all = all, .team = team, .depth = how};
    for (unsigned i = 0; i < team; i++) {
        cx_trace_parser_init(&j->workers[i].parser, cx_alloc_default());
        cx_arena_init(&j->workers[i].arena, cx_alloc_default(), 0);
        cx_buf_init(&j->workers[i].scratch, cx_alloc_default());
    }
}

static void job_done(job *j)
{
    for (unsigned i = 0; i < j->team; i++) {
        cx_json_parser_done(&j->workers[i].parser);
        cx_arena_done(&j->workers[i].arena);
        cx_buf_done(&j->workers[i].scratch);
    }
}

/* --- the reference --------------------------------------------------------------------------- */

static void verify_with_sodium(void *arg)
{
    const traces *all = arg;
    for (unsigned i = 0; i < TRACE_COUNT; i++)
        CX_ASSERT(crypto_sign_verify_detached(all->signatures[i].bytes, all->canonical[i].data,
                                              all->canonical[i].size, all->key.key.bytes) == 0);
}

int main(void)
{
    static traces all;
    static job jobs[6];
    static const char *const names[] = {"two cores, all",        "one core, read",
                                        "one core, + canonical", "one core, + verify",
                                        "one core, + content",   "one core, all"};
    bench_side sides[7];
    make_traces(&all);
    printf("traces: %zu bytes received, %zu canonical\n", all.received_bytes / TRACE_COUNT,
           all.canonical_bytes / TRACE_COUNT);
    job_init(&jobs[0], &all, TEAM_MAX, LEAF);
    for (unsigned i = 1; i < 6; i++)
        job_init(&jobs[i], &all, 1, (depth)(i - 1));
    for (unsigned i = 0; i < 6; i++)
        sides[i] =
            (bench_side){.name = names[i], .work = take_all, .arg = &jobs[i], .units = TRACE_COUNT};
    sides[6] = (bench_side){.name = "libsodium, one core",
                            .work = verify_with_sodium,
                            .arg = &all,
                            .units = TRACE_COUNT};
    bench_measure(sides, 7);
    for (unsigned i = 0; i < 7; i++)
        bench_print_side(sides[i].name, &sides[i].rate, 1, "traces/s");
    bool ok;
    if (cx_thread_cores() < TEAM_MAX) {
        bench_print_skipped("T1", "traces read, verified, hashed on two cores / libsodium verify",
                            1.3, "one core");
        ok = true;
    } else {
        ok = bench_print_row("T1", "traces read, verified, hashed on two cores / libsodium verify",
                             &sides[0].rate, &sides[6].rate, 1, 1.3);
    }
    for (unsigned i = 0; i < 6; i++)
        job_done(&jobs[i]);
    return ok ? 0 : 1;
}
