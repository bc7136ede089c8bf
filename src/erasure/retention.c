/*
 * retention.c - rules of retention, and what a filter covers (erasure.md §1, §3).
 */
#include "erasure/internal.h"

static cx_status fail_rule(cx_str text, const char *why, cx_err *err)
{
    return cx_fail(err, CX_E_USAGE,
                   "retention '%.*s': %s; expected KIND AGE or KIND/LEVEL AGE, such as "
                   "'trace.received/full_traces 30d', 'session.* 1y', 'memory never'",
                   text.size > 100 ? 100 : (int)text.size, text.data, why);
}

static bool kind_ok(cx_str kind)
{
    if (cx_str_is(kind, "*") || cx_str_is(kind, "memory"))
        return true;
    if (kind.size > 2 && kind.data[kind.size - 1] == '*' && kind.data[kind.size - 2] == '.')
        kind.size -= 2;
    return cx_entry_kind_ok(kind);
}

cx_status cx_retention_rule_parse(cx_str text, cx_retention_rule *out, cx_err *err)
{
    cx_retention_rule rule = {.text = text, .age_ns = INT64_MAX};
    const char *space = text.size == 0 ? NULL : memchr(text.data, ' ', text.size);
    if (space == NULL || !cx_utf8_valid(text))
        return fail_rule(text, "it has no age", err);
    cx_str age = cx_str_from(space + 1, text.size - (size_t)(space - text.data) - 1);
    rule.kind = cx_str_from(text.data, (size_t)(space - text.data));
    const char *slash = rule.kind.size == 0 ? NULL : memchr(rule.kind.data, '/', rule.kind.size);
    if (slash != NULL) {
        cx_str level = cx_str_from(slash + 1, rule.kind.size - (size_t)(slash - text.data) - 1);
        rule.kind.size = (size_t)(slash - text.data);
        rule.has_level = true;
        if (!cx_trace_level_parse(level, &rule.level))
            return fail_rule(text, "its level is none of generic, detailed, full_traces", err);
    }
    if (!kind_ok(rule.kind))
        return fail_rule(text, "its kind is no kind of entries", err);
    if (!cx_str_is(age, "never") && !cx_age_parse(age, &rule.age_ns))
        return fail_rule(text, "its age is neither 'never' nor a number with m, h, d, w or y", err);
    *out = rule;
    return CX_SUCCESS;
}

static bool rule_covers(const cx_retention_rule *rule, const cx_erasure_candidate *candidate)
{
    if (rule->has_level && (!candidate->has_level || candidate->level != rule->level))
        return false;
    if (rule->kind.data[rule->kind.size - 1] == '*')
        return cx_str_starts(candidate->kind, cx_str_from(rule->kind.data, rule->kind.size - 1));
    return cx_str_eq(rule->kind, candidate->kind);
}

bool cx_erasure_covers(const cx_erasure_filter *filter, const cx_erasure_candidate *candidate)
{
    if (filter->before_ns != CX_TIME_NONE && candidate->last_ns >= filter->before_ns)
        return false;
    if (filter->rule_count == 0)
        return true;
    for (size_t i = 0; i < filter->rule_count; i++) {
        const cx_retention_rule *rule = &filter->rules[i];
        if (!rule_covers(rule, candidate))
            continue;
        return rule->age_ns != INT64_MAX && candidate->last_ns < filter->now_ns - rule->age_ns;
    }
    return false;
}
