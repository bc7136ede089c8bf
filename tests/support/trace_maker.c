/*
 * trace_maker.c - signed traces in form B (trace.md §3): the components are spelled as Python's
 * json.dumps(sort_keys=True) would, and these very bytes are signed and embedded.
 */
#include "tests/support/trace_maker.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "crypto/digest.h"
#include "base/hex.h"
#include "json/number.h"
#include "trace/trace.h"

#define STEP_NS INT64_C(100000000)

void maker_init(maker *m, const char *name)
{
    char label[64], hex[64];
    *m = (maker){.count = 0};
    int size = snprintf(label, sizeof label, "cortex test key %s", name);
    const cx_digest seed = cx_digest_of(cx_bytes_from(label, (size_t)size));
    if (sodium_init() < 0 ||
        crypto_sign_seed_keypair(m->public_key.bytes, m->secret, seed.bytes) != 0)
        return;
    const cx_digest of_key = cx_digest_of(cx_bytes_from(m->public_key.bytes, 32));
    cx_hex_encode(cx_bytes_from(of_key.bytes, 32), hex);
    (void)snprintf(m->key_id, sizeof m->key_id, "agent-%.12s", hex);
    (void)snprintf(m->agent, sizeof m->agent, "%.16s", hex);
}

cx_trust_key maker_key(const maker *m)
{
    static cx_str agents[16];
    static unsigned used;
    cx_str *agent = &agents[used++ % CX_COUNT_OF(agents)];
    *agent = cx_str_z(m->agent);
    return (cx_trust_key){.key_id = cx_str_z(m->key_id),
                          .key = m->public_key,
                          .agents = agent,
                          .agent_count = 1,
                          .not_before = INT64_C(1764547200000000000),
                          .not_after = CX_TIME_NONE,
                          .revoked_at = CX_TIME_NONE,
                          .compromised_since = CX_TIME_NONE,
                          .added_at = CX_TIME_NONE};
}

static void add_time(cx_buf *out, int64_t ns)
{
    char text[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(ns, text);
    /* Microseconds and an offset, as agents write them. */
    cx_buf_printf(out, "%.26s+00:00", text);
}

static void add_number(cx_buf *out, double value)
{
    char text[CX_NUMBER_TEXT_SIZE];
    size_t size = cx_number_write_py(value, text);
    cx_buf_add(out, text, size);
}

static void add_flag(cx_buf *out, const char *name, bool value)
{
    cx_buf_printf(out, "\"%s\": %s", name, value ? "true" : "false");
}

static void begin_component(cx_buf *out, const char *type)
{
    cx_buf_printf(out, "%s{\"component_type\": \"%s\", \"data\": {", out->size == 1 ? "" : ", ",
                  type);
}

static void end_component(cx_buf *out, const char *event, int64_t ns)
{
    cx_buf_printf(out, "}, \"event_type\": \"%s\", \"timestamp\": \"", event);
    add_time(out, ns);
    cx_buf_add_z(out, "\"}");
}

static bool says(const maker_options *options, const char *level)
{
    return strcmp(options->level, level) == 0;
}

static void add_reasoning(const maker_options *options, cx_buf *out)
{
    if (!says(options, "full_traces") || options->padding_bytes == 0)
        return;
    cx_buf_add_z(out, ", \"reasoning\": \"");
    for (size_t i = 0; i < options->padding_bytes; i += 26)
        cx_buf_add_z(out, "The thought is plausible. ");
    cx_buf_add_byte(out, '"');
}

static void add_dma(const maker_options *options, cx_buf *out)
{
    begin_component(out, "rationale");
    cx_buf_add_z(out, "\"csdma\": {\"plausibility_score\": ");
    add_number(out, options->csdma);
    add_reasoning(options, out);
    cx_buf_add_z(out, "}, \"dsdma\": {");
    if (!says(options, "generic"))
        cx_buf_printf(out, "\"domain\": \"%s\", ", options->domain);
    cx_buf_add_z(out, "\"domain_alignment\": ");
    add_number(out, options->dsdma);
    cx_buf_add_z(out, "}, \"idma\": {\"correlation_risk\": 0.2, \"fragility_flag\": true, "
                      "\"k_eff\": ");
    add_number(out, options->k_eff != 0 ? options->k_eff : 1.6666666666666667);
    if (!says(options, "generic"))
        cx_buf_add_z(out, ", \"phase\": \"fragile\", \"sources_identified\": [\"a\", \"b\"]");
    cx_buf_add_z(out, "}");
}

static void add_action(maker *m, const maker_options *options, int64_t ns, cx_buf *out)
{
    cx_buf text;
    char low[32] = {0};
    for (size_t i = 0; options->action[i] != 0 && i < sizeof low - 1; i++)
        low[i] = (char)(options->action[i] | 0x20);
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, m->previous);
    if (!says(options, "generic"))
        cx_buf_add_z(&text, low);
    cx_buf_add_z(&text, options->success ? "true" : "false");
    add_time(&text, ns);
    const cx_digest hash = cx_digest_of(cx_buf_bytes(&text));
    cx_buf_done(&text);
    cx_hex_encode(cx_bytes_from(hash.bytes, 32), m->previous);
    m->previous[64] = 0;
    begin_component(out, "action");
    if (!says(options, "generic"))
        cx_buf_printf(out, "\"action_executed\": \"%s\", ", low);
    cx_buf_printf(out,
                  "\"audit_entry_hash\": \"%s\", \"audit_sequence_number\": %llu, "
                  "\"cost_cents\": 0.87379, ",
                  m->previous, (unsigned long long)m->count + 1);
    add_flag(out, "execution_success", options->success);
    cx_buf_add_z(out, ", \"tokens_total\": 87379");
    end_component(out, "ACTION_RESULT", ns);
}

static void add_components(maker *m, const maker_options *options, int64_t at, cx_buf *out)
{
    cx_buf_add_byte(out, '[');
    begin_component(out, "observation");
    cx_buf_add_z(out, "\"round_number\": 0, \"thought_depth\": 1");
    end_component(out, "THOUGHT_START", at);
    begin_component(out, "context");
    cx_buf_add_z(out, "\"cognitive_state\": \"WORK\"");
    end_component(out, "SNAPSHOT_AND_CONTEXT", at + STEP_NS);
    add_dma(options, out);
    end_component(out, "DMA_RESULTS", at + 2 * STEP_NS);
    begin_component(out, "rationale");
    if (says(options, "full_traces") && options->rationale != NULL)
        cx_buf_printf(out, "\"action_rationale\": \"%s\", ", options->rationale);
    cx_buf_printf(out, "\"selected_action\": \"HandlerActionType.%s\"", options->action);
    end_component(out, "ASPDMA_RESULT", at + 3 * STEP_NS);
    begin_component(out, "conscience");
    add_flag(out, "action_was_overridden", options->overridden);
    cx_buf_add_z(out, ", ");
    add_flag(out, "conscience_passed", options->passed);
    cx_buf_add_z(out, ", \"epistemic_data\": {\"coherence_level\": ");
    add_number(out, options->coherence);
    cx_buf_add_z(out, ", \"entropy_level\": ");
    add_number(out, options->entropy);
    cx_buf_add_z(out, "}");
    end_component(out, "CONSCIENCE_RESULT", at + 4 * STEP_NS);
    add_action(m, options, at + 5 * STEP_NS, out);
    cx_buf_add_byte(out, ']');
}

void maker_trace(maker *m, const maker_options *options, cx_buf *out)
{
    cx_buf signed_bytes, signature_text;
    uint8_t signature[64];
    int64_t at = options->at_ns != 0 ? options->at_ns
                                     : MAKER_START_NS + (int64_t)m->count * INT64_C(60000000000);
    cx_buf_init(&signed_bytes, cx_alloc_default());
    cx_buf_init(&signature_text, cx_alloc_default());
    add_components(m, options, at, &signed_bytes);
    (void)crypto_sign_detached(signature, NULL, signed_bytes.data, signed_bytes.size, m->secret);
    cx_base64_add(&signature_text, cx_bytes_from(signature, 64), CX_BASE64_URL);
    cx_buf_add_z(out, "{\"trace_id\": \"");
    if (options->trace_id != NULL)
        cx_buf_add_z(out, options->trace_id);
    else
        cx_buf_printf(out, "trace-%s-%06llu", m->agent, (unsigned long long)m->count);
    cx_buf_printf(out, "\", \"thought_id\": \"th-%llu\", \"task_id\": \"%s%llu\", ",
                  (unsigned long long)m->count, options->task, (unsigned long long)m->count);
    cx_buf_printf(out, "\"agent_id_hash\": \"%s\", \"started_at\": \"", m->agent);
    add_time(out, at);
    cx_buf_add_z(out, "\", \"completed_at\": \"");
    add_time(out, at + 6 * STEP_NS);
    cx_buf_printf(out, "\", \"trace_level\": \"%s\", \"components\": ", options->level);
    cx_buf_add_str(out, cx_buf_str(&signed_bytes));
    cx_buf_add_z(out, ", \"signature\": \"");
    cx_buf_add_str(out, cx_buf_str(&signature_text));
    cx_buf_printf(out, "\", \"signature_key_id\": \"%s\"}", m->key_id);
    cx_buf_done(&signed_bytes);
    cx_buf_done(&signature_text);
    m->count++;
}

void maker_batch_begin(cx_buf *out)
{
    cx_buf_add_z(out, "{\"events\": [");
}

void maker_batch_add(cx_buf *out, cx_str trace)
{
    if (out->data[out->size - 1] != '[')
        cx_buf_add_z(out, ", ");
    cx_buf_add_z(out, "{\"event_type\": \"complete_trace\", \"trace\": ");
    cx_buf_add_str(out, trace);
    cx_buf_add_byte(out, '}');
}

void maker_batch_end(cx_buf *out, const char *level)
{
    cx_buf_printf(out,
                  "], \"batch_timestamp\": \"2026-01-12T00:00:00Z\", \"consent_timestamp\": "
                  "\"2025-12-15T13:00:00Z\", \"trace_level\": \"%s\"}",
                  level);
}
