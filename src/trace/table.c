/*
 * table.c - the lowest level that allows each field of each event (§1.1, §1.2).
 *
 * One row for each field: its level in traces without a stamp (table L1), then the level of table
 * L2 for stamped ones, or X where L2 does not list it (then L1 applies to these too).  X in the
 * first column: only stamped traces have the field.  Rows are sorted by name; a dotted path is a
 * row in the table of its group.
 */
#include "trace/internal.h"

enum { G = CX_LEVEL_GENERIC, D = CX_LEVEL_DETAILED, F = CX_LEVEL_FULL, X = CX_LEVEL_ABSENT };

/* clang-format off */
#define SCOPE(fields) {(fields), CX_COUNT_OF(fields)}
#define FIELD(name, seed, stamp) {#name, (seed), (stamp), NULL}
#define GROUP(name, scope) {#name, X, X, &(scope)}

static const cx_field thought_start_fields[] = {
    FIELD(channel_id, D, X),
    FIELD(initial_context, F, X),
    FIELD(parent_thought_id, D, X),
    FIELD(requires_human_input, G, X),
    FIELD(round_number, G, X),
    FIELD(source_adapter, D, X),
    FIELD(task_description, F, X),
    FIELD(task_priority, G, X),
    FIELD(thought_content, X, F),
    FIELD(thought_depth, G, X),
    FIELD(thought_status, D, X),
    FIELD(thought_type, D, G),
    FIELD(updated_info_available, G, X),
};

static const cx_field snapshot_and_context_fields[] = {
    FIELD(active_services, D, X),
    FIELD(agent_name, X, G),
    FIELD(agent_version, X, D),
    FIELD(attestation_context, X, G),
    FIELD(attestation_level, X, G),
    FIELD(attestation_status, X, G),
    FIELD(audit_ok, X, G),
    FIELD(binary_ok, X, G),
    FIELD(circuit_breaker_status, X, D),
    FIELD(cognitive_state, G, X),
    FIELD(context_sources, D, X),
    FIELD(context_tokens, X, G),
    FIELD(conversation_history, F, X),
    FIELD(disclosure_severity, X, G),
    FIELD(ed25519_fingerprint, X, D),
    FIELD(env_ok, X, G),
    FIELD(file_integrity_ok, X, G),
    FIELD(gathered_context, F, X),
    FIELD(hardware_backed, X, G),
    FIELD(hardware_type, X, D),
    FIELD(key_id, X, D),
    FIELD(key_status, X, D),
    FIELD(key_storage_mode, X, D),
    FIELD(memory_count, X, G),
    FIELD(play_integrity_ok, X, G),
    FIELD(registry_ok, X, G),
    FIELD(relevant_memories, F, X),
    FIELD(service_health, X, D),
    FIELD(system_snapshot, F, X),
    FIELD(verify_version, X, D),
};

static const cx_field dma_csdma_fields[] = {
    FIELD(flags, D, X),
    FIELD(plausibility_score, G, X),
    FIELD(prompt_used, F, X),
    FIELD(reasoning, F, X),
};

static const cx_field_scope dma_csdma = SCOPE(dma_csdma_fields);

static const cx_field dma_dsdma_fields[] = {
    FIELD(domain, D, X),
    FIELD(domain_alignment, G, X),
    FIELD(flags, D, X),
    FIELD(prompt_used, F, X),
    FIELD(reasoning, F, X),
};

static const cx_field_scope dma_dsdma = SCOPE(dma_dsdma_fields);

static const cx_field dma_pdma_fields[] = {
    FIELD(alignment_check, D, X),
    FIELD(conflicts, D, X),
    FIELD(has_conflicts, X, G),
    FIELD(prompt_used, F, X),
    FIELD(reasoning, F, X),
    FIELD(stakeholders, D, X),
};

static const cx_field_scope dma_pdma = SCOPE(dma_pdma_fields);

static const cx_field dma_idma_fields[] = {
    FIELD(correlation_factors, D, X),
    FIELD(correlation_risk, G, X),
    FIELD(effective_source_count, X, G),
    FIELD(fragility_flag, G, X),
    FIELD(k_eff, G, X),
    FIELD(phase, D, G),
    FIELD(prompt_used, F, X),
    FIELD(reasoning, F, X),
    FIELD(reasoning_is_fragile, X, G),
    FIELD(reasoning_state, X, G),
    FIELD(source_overlap, X, G),
    FIELD(sources_identified, D, X),
};

static const cx_field_scope dma_idma = SCOPE(dma_idma_fields);

static const cx_field dma_results_fields[] = {
    FIELD(combined_analysis, F, X),
    GROUP(csdma, dma_csdma),
    FIELD(csdma_plausibility_score, X, G),
    GROUP(dsdma, dma_dsdma),
    FIELD(dsdma_domain, X, G),
    FIELD(dsdma_domain_alignment, X, G),
    FIELD(has_conflicts, X, G),
    GROUP(idma, dma_idma),
    GROUP(pdma, dma_pdma),
};

static const cx_field aspdma_result_fields[] = {
    FIELD(action_parameters, F, X),
    FIELD(action_rationale, F, X),
    FIELD(alternatives_considered, D, X),
    FIELD(aspdma_prompt, F, X),
    FIELD(evaluation_time_ms, X, D),
    FIELD(is_recursive, G, X),
    FIELD(raw_llm_response, X, F),
    FIELD(reasoning_summary, F, X),
    FIELD(selected_action, G, X),
    FIELD(selection_confidence, G, X),
};

static const cx_field conscience_epistemic_data_fields[] = {
    FIELD(CIRIS_OBSERVATION_UPDATED_STATUS, F, X),
    FIELD(coherence_level, G, X),
    FIELD(entropy_level, G, X),
    FIELD(reasoning_transparency, G, X),
    FIELD(uncertainty_acknowledged, G, X),
};

static const cx_field_scope conscience_epistemic_data = SCOPE(conscience_epistemic_data_fields);

static const cx_field conscience_result_fields[] = {
    FIELD(action_was_overridden, G, X),
    FIELD(coherence_level, G, X),
    FIELD(coherence_passed, G, X),
    FIELD(coherence_reason, F, D),
    FIELD(coherence_score, G, X),
    FIELD(coherence_threshold, G, X),
    FIELD(conscience_override_reason, F, D),
    FIELD(conscience_passed, G, X),
    FIELD(entropy_level, G, X),
    FIELD(entropy_passed, G, X),
    FIELD(entropy_reason, F, D),
    FIELD(entropy_score, G, X),
    FIELD(entropy_threshold, G, X),
    GROUP(epistemic_data, conscience_epistemic_data),
    FIELD(epistemic_humility_certainty, G, X),
    FIELD(epistemic_humility_justification, F, X),
    FIELD(epistemic_humility_passed, G, X),
    FIELD(epistemic_humility_recommendation, D, X),
    FIELD(epistemic_humility_uncertainties, D, X),
    FIELD(ethical_faculties_skipped, G, X),
    FIELD(final_action, D, X),
    FIELD(is_recursive, X, G),
    FIELD(optimization_veto_affected_values, D, X),
    FIELD(optimization_veto_decision, D, X),
    FIELD(optimization_veto_entropy_ratio, G, X),
    FIELD(optimization_veto_justification, F, X),
    FIELD(optimization_veto_passed, G, X),
    FIELD(thought_depth_current, G, X),
    FIELD(thought_depth_max, G, X),
    FIELD(thought_depth_triggered, G, X),
    FIELD(updated_status_content, F, X),
    FIELD(updated_status_detected, G, X),
};

static const cx_field action_result_fields[] = {
    FIELD(action_executed, D, G),
    FIELD(action_parameters, F, X),
    FIELD(api_bases_used, X, D),
    FIELD(audit_entry_hash, G, X),
    FIELD(audit_entry_id, D, X),
    FIELD(audit_sequence_number, G, X),
    FIELD(audit_signature, F, D),
    FIELD(carbon_grams, G, X),
    FIELD(cost_cents, G, X),
    FIELD(energy_mwh, G, X),
    FIELD(execution_error, F, D),
    FIELD(execution_success, G, X),
    FIELD(execution_time_ms, G, X),
    FIELD(follow_up_thought_id, D, X),
    FIELD(has_execution_error, X, G),
    FIELD(has_positive_moment, X, G),
    FIELD(llm_calls, G, X),
    FIELD(models_used, D, X),
    FIELD(positive_moment, X, F),
    FIELD(success, X, G),
    FIELD(tokens_input, G, X),
    FIELD(tokens_output, G, X),
    FIELD(tokens_total, G, X),
};

static const cx_field idma_result_fields[] = {
    FIELD(collapse_margin, X, D),
    FIELD(collapse_rate, X, D),
    FIELD(common_cause_flags, X, D),
    FIELD(correlation_factors, X, D),
    FIELD(correlation_risk, X, G),
    FIELD(defense_function, X, D),
    FIELD(delta_k_eff, X, D),
    FIELD(delta_rho_mean, X, D),
    FIELD(effective_module_count, X, D),
    FIELD(effective_source_count, X, G),
    FIELD(fragility_flag, X, G),
    FIELD(idma_correlation_risk, X, G),
    FIELD(idma_effective_source_count, X, G),
    FIELD(idma_fragility_flag, X, G),
    FIELD(idma_k_eff, X, G),
    FIELD(idma_phase, X, G),
    FIELD(idma_reasoning_is_fragile, X, G),
    FIELD(idma_reasoning_state, X, G),
    FIELD(idma_source_overlap, X, G),
    FIELD(intervention_recommendation, X, D),
    FIELD(k_eff, X, G),
    FIELD(k_raw, X, D),
    FIELD(k_required, X, D),
    FIELD(module_count, X, D),
    FIELD(moving_variance, X, D),
    FIELD(next_best_recovery_step, X, D),
    FIELD(pairwise_correlation_summary, X, D),
    FIELD(phase, X, G),
    FIELD(phase_confidence, X, D),
    FIELD(phase_persistence_steps, X, D),
    FIELD(prompt_used, X, F),
    FIELD(raw_source_count, X, D),
    FIELD(reasoning, X, F),
    FIELD(reasoning_is_fragile, X, G),
    FIELD(reasoning_state, X, G),
    FIELD(rho_critical, X, D),
    FIELD(rho_inter, X, D),
    FIELD(rho_intra, X, D),
    FIELD(rho_mean, X, D),
    FIELD(safety_margin, X, D),
    FIELD(source_clusters, X, D),
    FIELD(source_ids, X, D),
    FIELD(source_independence_scores, X, D),
    FIELD(source_overlap, X, G),
    FIELD(source_type_counts, X, D),
    FIELD(source_types, X, D),
    FIELD(sources_identified, X, D),
    FIELD(time_in_fragile_state_ms, X, D),
    FIELD(time_to_capture, X, D),
    FIELD(time_to_entropy, X, D),
    FIELD(time_to_truth, X, D),
    FIELD(top_correlation_factors, X, D),
};

static const cx_field tsaspdma_result_fields[] = {
    FIELD(aspdma_rationale, X, F),
    FIELD(final_action, X, G),
    FIELD(final_parameters, X, D),
    FIELD(final_tool_name, X, G),
    FIELD(gotchas_acknowledged, X, D),
    FIELD(original_parameters, X, D),
    FIELD(original_tool_name, X, G),
    FIELD(tool_description, X, D),
    FIELD(tsaspdma_prompt, X, F),
    FIELD(tsaspdma_rationale, X, F),
};

static const cx_field llm_call_fields[] = {
    FIELD(attempt_count, X, G),
    FIELD(base_url, X, G),
    FIELD(completion_bytes, X, G),
    FIELD(completion_tokens, X, G),
    FIELD(cost_usd, X, G),
    FIELD(duration_ms, X, G),
    FIELD(error_class, X, G),
    FIELD(handler_name, X, G),
    FIELD(model, X, G),
    FIELD(parent_attempt_index, X, G),
    FIELD(parent_event_type, X, G),
    FIELD(prompt, X, F),
    FIELD(prompt_bytes, X, G),
    FIELD(prompt_hash, X, D),
    FIELD(prompt_tokens, X, G),
    FIELD(response_model, X, G),
    FIELD(response_text, X, F),
    FIELD(retry_count, X, G),
    FIELD(service_name, X, G),
    FIELD(status, X, G),
};

static const cx_field verb_second_pass_result_fields[] = {
    FIELD(final_action, X, G),
    FIELD(final_reasoning, X, D),
    FIELD(original_action, X, G),
    FIELD(original_reasoning, X, D),
    FIELD(second_pass_prompt, X, F),
    FIELD(verb, X, G),
    FIELD(verb_specific_data, X, G),
};

static const cx_field any_fields[] = {
    FIELD(attempt_index, X, G),
};
/* clang-format on */

const cx_field_scope cx_field_scope_any = SCOPE(any_fields);

const cx_field_scope *cx_field_scope_of(cx_event_type event)
{
    static const cx_field_scope scopes[CX_EVENT_COUNT + 1] = {
        [CX_EVENT_THOUGHT_START] = SCOPE(thought_start_fields),
        [CX_EVENT_SNAPSHOT_AND_CONTEXT] = SCOPE(snapshot_and_context_fields),
        [CX_EVENT_DMA_RESULTS] = SCOPE(dma_results_fields),
        [CX_EVENT_ASPDMA_RESULT] = SCOPE(aspdma_result_fields),
        [CX_EVENT_CONSCIENCE_RESULT] = SCOPE(conscience_result_fields),
        [CX_EVENT_ACTION_RESULT] = SCOPE(action_result_fields),
        [CX_EVENT_IDMA_RESULT] = SCOPE(idma_result_fields),
        [CX_EVENT_TSASPDMA_RESULT] = SCOPE(tsaspdma_result_fields),
        [CX_EVENT_LLM_CALL] = SCOPE(llm_call_fields),
        [CX_EVENT_VERB_SECOND_PASS_RESULT] = SCOPE(verb_second_pass_result_fields),
    };
    return &scopes[event];
}

const cx_field *cx_field_find(const cx_field_scope *scope, cx_str name)
{
    size_t low = 0, high = scope->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = cx_str_cmp(cx_str_z(scope->fields[middle].name), name);
        if (order == 0)
            return &scope->fields[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
