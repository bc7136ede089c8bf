/*
 * demo_agents.c - agents of `cortex demo`: their words are written down in advance, their
 * signatures are real (form H of docs/formats/trace.md: canonical JSON of the whole trace).
 */
#include "cli/demo/demo.h"
#include "cli/signer.h"
#include "crypto/api.h"
#include "trace/api.h"

cx_status cx_demo_agent_make(cx_cli *cli, const char *folder, const char *name, cx_demo_agent *out,
                             cx_err *err)
{
    cx_pubkey key;
    char hex[64];
    *out = (cx_demo_agent){.name = name};
    out->key_file = cx_arena_printf(&cli->arena, "%s/agents/%s.key", folder, name);
    if (out->key_file.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_cli_key_make(cli, out->key_file.data, cx_str_z(name), &key, err));
    cx_digest digest = cx_digest_of(cx_bytes_from(key.bytes, sizeof key.bytes));
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    memcpy(out->id, hex, 16);
    memcpy(out->key_id, "agent-", 6);
    memcpy(out->key_id + 6, hex, 12);
    return CX_SUCCESS;
}

cx_status cx_demo_trust(cx_cli *cli, const cx_demo_agent *agents, size_t count, cx_buf *out,
                        cx_err *err)
{
    cx_buf_add_z(out, "{\"format\": \"cortex-trust-1\", \"keys\": [");
    for (size_t i = 0; i < count; i++) {
        cx_vkey vkey;
        CX_TRY(cx_cli_key_read(cli, agents[i].key_file.data, &vkey, err));
        cx_buf_printf(
            out,
            "%s\n  {\"key_id\": \"%s\", \"algorithm\": \"ed25519\", \"agents\": [\"%s\"],\n"
            "   \"not_before\": \"2026-01-01T00:00:00Z\", \"not_after\": null,\n"
            "   \"revoked_at\": null, \"replaces\": null, \"description\": \"the %s of the "
            "demo\",\n   \"public_key\": \"",
            i == 0 ? "" : ",", agents[i].key_id, agents[i].id, agents[i].name);
        cx_base64_add(out, cx_bytes_from(vkey.key.bytes, sizeof vkey.key.bytes), CX_BASE64_URL);
        cx_buf_add_z(out, "\"}");
    }
    cx_buf_add_z(out, "\n]}\n");
    return cx_buf_check(out, err);
}

/* --- one decision ----------------------------------------------------------------------------- */

static void add_time(cx_buf *out, int64_t ns)
{
    char text[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(ns, text);
    cx_buf_printf(out, "\"%.26s+00:00\"", text);
}

static void add_component(cx_buf *out, const char *type, const char *event, int64_t ns,
                          const char *name, const char *words, const char *more)
{
    cx_buf_printf(out, "%s{\"component_type\":\"%s\",\"data\":{",
                  out->data[out->size - 1] == '[' ? "" : ",", type);
    if (name != NULL) {
        cx_buf_printf(out, "\"%s\":", name);
        cx_json_write_str(out, cx_str_z(words), CX_JSON_PY_COMPACT);
        cx_buf_add_z(out, more[0] == 0 ? "" : ",");
    }
    cx_buf_printf(out, "%s},\"event_type\":\"%s\",\"timestamp\":", more, event);
    add_time(out, ns);
    cx_buf_add_byte(out, '}');
}

static void add_components(cx_buf *out, const cx_demo_decision *d, int64_t at)
{
    const int64_t step = INT64_C(100000000);
    add_component(out, "observation", "THOUGHT_START", at, "observation", d->observation,
                  "\"round_number\":0,\"thought_depth\":1");
    add_component(out, "context", "SNAPSHOT_AND_CONTEXT", at + step, "context", d->context,
                  "\"cognitive_state\":\"WORK\"");
    add_component(out, "rationale", "DMA_RESULTS", at + 2 * step, NULL, NULL,
                  "\"csdma\":{\"plausibility_score\":0.95},\"dsdma\":{\"domain\":\"shop\","
                  "\"domain_alignment\":0.9},\"idma\":{\"correlation_risk\":0.1,"
                  "\"fragility_flag\":false,\"k_eff\":2.5,\"phase\":\"healthy\"}");
    add_component(out, "rationale", "ASPDMA_RESULT", at + 3 * step, "action_rationale",
                  d->rationale, "\"selected_action\":\"HandlerActionType.TOOL\"");
    add_component(out, "conscience", "CONSCIENCE_RESULT", at + 4 * step, NULL, NULL,
                  "\"action_was_overridden\":false,\"conscience_passed\":true");
    add_component(out, "action", "ACTION_RESULT", at + 5 * step, "action_executed", d->action,
                  "\"execution_success\":true");
}

/* The signature is zero bytes here: it is not part of the signed bytes. */
static void add_trace(cx_buf *out, const cx_demo_agent *agent, const cx_demo_decision *d, cx_str id,
                      int64_t at, const cx_signature *signature)
{
    cx_buf_printf(
        out,
        "{\"trace_id\":\"%.*s\",\"thought_id\":\"thought-%u\",\"task_id\":\"refund_limit\","
        "\"agent_id_hash\":\"%s\",\"started_at\":",
        (int)id.size, id.data, agent->decisions, agent->id);
    add_time(out, at);
    cx_buf_add_z(out, ",\"completed_at\":");
    add_time(out, at + INT64_C(600000000));
    cx_buf_add_z(out, ",\"trace_level\":\"full_traces\",\"components\":[");
    add_components(out, d, at);
    cx_buf_add_z(out, "],\"signature\":\"");
    cx_base64_add(out, cx_bytes_from(signature->bytes, sizeof signature->bytes), CX_BASE64_URL);
    cx_buf_printf(out, "\",\"signature_key_id\":\"%s\"}", agent->key_id);
}

static cx_status sign_trace(cx_cli *cli, const cx_demo_agent *agent, cx_bytes unsigned_trace,
                            cx_signature *out, cx_err *err)
{
    static const cx_trace_bytes whole = {.form = CX_FORM_H, .batch_level = CX_LEVEL_ABSENT};
    cx_trace trace;
    cx_trace_problem problem;
    cx_cli_signer signer;
    cx_buf bytes;
    CX_TRY(cx_trace_read(unsigned_trace, &cli->arena, &trace, &problem, err));
    if (problem.reason != CX_REASON_NONE)
        return cx_fail(err, CX_E_FORMAT, "the demo's trace: %s",
                       cx_trace_reason_name(problem.reason));
    CX_TRY(cx_cli_signer_open_file(cli, agent->key_file.data, &signer, err));
    cx_buf_init(&bytes, cli->alloc);
    cx_status status = cx_trace_canonical(&trace, &whole, &bytes, err);
    if (!cx_failed(status))
        status = cx_cli_signer_sign(&signer, cx_buf_bytes(&bytes), out, err);
    cx_buf_done(&bytes);
    cx_cli_signer_done(&signer);
    return status;
}

cx_status cx_demo_decide(cx_cli *cli, cx_demo_agent *agent, const cx_demo_decision *decision,
                         cx_buf *out, cx_str *out_id, cx_err *err)
{
    int64_t now = (int64_t)cli->io->wall_ns(cli->io);
    int64_t at = now - INT64_C(1000000000);
    cx_signature signature = {{0}};
    cx_buf draft;
    *out_id = cx_arena_printf(&cli->arena, "trace-%s-%06u", agent->name, agent->decisions);
    if (out_id->data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&draft, cli->alloc);
    add_trace(&draft, agent, decision, *out_id, at, &signature);
    cx_str text = cx_arena_copy_str(&cli->arena, cx_buf_str(&draft));
    cx_buf_done(&draft);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(sign_trace(cli, agent, cx_str_bytes(text), &signature, err));
    cx_buf_add_z(out, "{\"events\":[{\"event_type\":\"complete_trace\",\"trace\":");
    add_trace(out, agent, decision, *out_id, at, &signature);
    cx_buf_add_z(out, "}],\"batch_timestamp\":");
    add_time(out, now);
    cx_buf_add_z(out, ",\"consent_timestamp\":\"2026-01-01T00:00:00+00:00\",\"trace_level\":"
                      "\"full_traces\"");
    if (decision->run_id != NULL)
        cx_buf_printf(out, ",\"correlation_metadata\":{\"run_id\":\"%s\"}", decision->run_id);
    cx_buf_add_z(out, "}\n");
    agent->decisions++;
    return cx_buf_check(out, err);
}
