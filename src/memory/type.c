/*
 * type.c - the vocabularies of §4.1: names and codes, and the table of the types' members.
 */
#include "memory/type.h"

#include "crypto/api.h"
#include "memory/data_shape.h"

static const char *const verbs[] = {"find",    "acquire",   "build",    "modify",  "deliver",
                                    "analyze", "negotiate", "schedule", "monitor", "delegate"};
static const char *const kinds[] = {"service", "model", "agent", "knowledge",
                                    "intent",  "asset", "plan",  "capability"};
static const char *const visibilities[] = {"private", "scoped", "actor_public"};

_Static_assert(CX_COUNT_OF(verbs) == CX_VERB_MAX, "a name a verb");
_Static_assert(CX_COUNT_OF(kinds) == CX_KIND_MAX, "a name a kind of object");
_Static_assert(CX_COUNT_OF(visibilities) == CX_VISIBILITY_ACTOR_PUBLIC, "a name a visibility");

static cx_str name_of(const char *const *names, size_t count, uint8_t code)
{
    return code >= 1 && code <= count ? cx_str_z(names[code - 1]) : CX_STR("");
}

static uint8_t code_of(const char *const *names, size_t count, cx_str name)
{
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(name, names[i]))
            return (uint8_t)(i + 1);
    return 0;
}

cx_str cx_verb_name(uint8_t verb)
{
    return name_of(verbs, CX_COUNT_OF(verbs), verb);
}

uint8_t cx_verb_code(cx_str name)
{
    return code_of(verbs, CX_COUNT_OF(verbs), name);
}

cx_str cx_kind_name(uint8_t kind)
{
    return name_of(kinds, CX_COUNT_OF(kinds), kind);
}

uint8_t cx_kind_code(cx_str name)
{
    return code_of(kinds, CX_COUNT_OF(kinds), name);
}

cx_str cx_visibility_name(uint8_t visibility)
{
    return name_of(visibilities, CX_COUNT_OF(visibilities), visibility);
}

uint8_t cx_visibility_code(cx_str name)
{
    return code_of(visibilities, CX_COUNT_OF(visibilities), name);
}

bool cx_source_ok(cx_str source)
{
    static const char *const sources[] = {"user_input", "derived", "observed", "imported"};
    return code_of(sources, CX_COUNT_OF(sources), source) != 0;
}

void cx_tag_hash(cx_str tag, uint8_t out[8])
{
    cx_digest digest = cx_digest_of(cx_str_bytes(tag));
    memcpy(out, digest.bytes, 8);
}

/* --- the members of each type ---------------------------------------------------------------- */

#define OPTIONAL CX_FIELD_OPTIONAL
#define ALWAYS CX_FIELD_ALWAYS
#define NEEDED CX_FIELD_NEEDED

/* MEMBER(struct, number, member, KIND, RULE) */
#define MEMBER(type, number, member, field_kind, field_rule)                                  \
    {                                                                                         \
#member, number, CX_FIELD_##field_kind, field_rule, (uint16_t)offsetof(type, member), \
            NULL, NULL                                                                        \
    }
/* The same with a name that differs from the struct's, or with a list of allowed words. */
#define MEMBER_OF(type, number, shown, member, field_kind, field_rule, field_group, field_words) \
    {                                                                                            \
        shown, number, CX_FIELD_##field_kind, field_rule, (uint16_t)offsetof(type, member),      \
            field_group, field_words                                                             \
    }
#define GROUP(group_name, type, table)                      \
    {                                                       \
        group_name, table, CX_COUNT_OF(table), sizeof(type) \
    }

static const cx_data_field identity_fields[] = {
    MEMBER(cx_data_identity, 1, name, TEXT, NEEDED),
    MEMBER(cx_data_identity, 2, did, TEXT, OPTIONAL),
    MEMBER(cx_data_identity, 3, wallets, TEXTS, OPTIONAL),
    MEMBER(cx_data_identity, 4, roles, TEXTS, OPTIONAL),
    MEMBER(cx_data_identity, 5, public_keys, BLOBS, OPTIONAL)};

static const cx_data_field fact_fields[] = {MEMBER(cx_data_fact, 1, statement, TEXT, NEEDED),
                                            MEMBER(cx_data_fact, 2, subject, TEXT, NEEDED),
                                            MEMBER(cx_data_fact, 3, predicate, TEXT, NEEDED),
                                            MEMBER(cx_data_fact, 4, object, BYTES, OPTIONAL),
                                            MEMBER(cx_data_fact, 5, source, TEXT, OPTIONAL),
                                            MEMBER(cx_data_fact, 6, as_of, TIME, OPTIONAL)};

static const cx_data_field preference_fields[] = {
    MEMBER(cx_data_preference, 1, topic, TEXT, NEEDED),
    MEMBER(cx_data_preference, 2, value, MAYBE_BYTES, ALWAYS),
    MEMBER(cx_data_preference, 3, polarity, TEXT, NEEDED),
    MEMBER(cx_data_preference, 4, strength, STRENGTH, ALWAYS),
    MEMBER(cx_data_preference, 5, rationale, TEXT, OPTIONAL)};

static const cx_data_field belief_fields[] = {
    MEMBER(cx_data_belief, 1, statement, TEXT, NEEDED),
    MEMBER(cx_data_belief, 2, subject, TEXT, ALWAYS),
    MEMBER_OF(cx_data_belief, 3, "stance", stance, TEXT, ALWAYS, NULL, "believe|doubt|suspect"),
    MEMBER(cx_data_belief, 4, evidence_for, TEXTS, OPTIONAL),
    MEMBER(cx_data_belief, 5, evidence_against, TEXTS, OPTIONAL)};

static const cx_data_field cost_fields[] = {MEMBER(cx_cost, 1, asset, TEXT, ALWAYS),
                                            MEMBER(cx_cost, 2, amount, TEXT, ALWAYS)};
static const cx_data_group cost_group = GROUP("cost", cx_cost, cost_fields);

static const cx_data_field event_fields[] = {
    MEMBER(cx_data_event, 1, kind, TEXT, NEEDED),
    MEMBER(cx_data_event, 2, intent_ref, TEXT, OPTIONAL),
    MEMBER(cx_data_event, 3, counterparty, TEXT, OPTIONAL),
    MEMBER(cx_data_event, 4, outcome, TEXT, NEEDED),
    MEMBER_OF(cx_data_event, 5, "cost", cost, GROUP, OPTIONAL, &cost_group, NULL),
    MEMBER(cx_data_event, 6, duration, DURATION, OPTIONAL),
    MEMBER(cx_data_event, 7, artifacts, TEXTS, OPTIONAL),
    MEMBER(cx_data_event, 8, summary, TEXT, OPTIONAL)};

static const cx_data_field object_fields[] = {MEMBER(cx_goal_object, 1, kind, TEXT, ALWAYS),
                                              MEMBER(cx_goal_object, 2, ref, TEXT, ALWAYS),
                                              MEMBER(cx_goal_object, 3, value, BYTES, OPTIONAL)};
static const cx_data_group object_group = GROUP("object", cx_goal_object, object_fields);

static const cx_data_field goal_constraint_fields[] = {
    MEMBER(cx_goal_constraint, 1, type, TEXT, ALWAYS),
    MEMBER(cx_goal_constraint, 2, hard, BOOL, ALWAYS),
    MEMBER(cx_goal_constraint, 3, statement, TEXT, ALWAYS),
    MEMBER(cx_goal_constraint, 4, data, BYTES, OPTIONAL)};
static const cx_data_group goal_constraint_group =
    GROUP("constraint", cx_goal_constraint, goal_constraint_fields);

static const cx_data_field budget_fields[] = {
    MEMBER(cx_goal_budget, 1, daily_max, TEXT, OPTIONAL),
    MEMBER(cx_goal_budget, 2, total_max, TEXT, OPTIONAL),
    MEMBER(cx_goal_budget, 3, intents_per_day, INT, OPTIONAL),
    MEMBER(cx_goal_budget, 4, concurrent, INT, OPTIONAL)};
static const cx_data_group budget_group = GROUP("budget", cx_goal_budget, budget_fields);

static const cx_data_field goal_fields[] = {
    MEMBER(cx_data_goal, 1, statement, TEXT, NEEDED),
    MEMBER(cx_data_goal, 2, horizon_end, TIME, OPTIONAL),
    MEMBER(cx_data_goal, 3, success_criteria, TEXTS, OPTIONAL),
    MEMBER(cx_data_goal, 4, status, TEXT, NEEDED),
    MEMBER(cx_data_goal, 5, subgoals, TEXTS, OPTIONAL),
    MEMBER(cx_data_goal, 6, verb_hint, TEXT, OPTIONAL),
    MEMBER_OF(cx_data_goal, 7, "objects", objects, GROUPS, OPTIONAL, &object_group, NULL),
    MEMBER_OF(cx_data_goal, 8, "constraints", constraints, GROUPS, OPTIONAL, &goal_constraint_group,
              NULL),
    MEMBER_OF(cx_data_goal, 9, "budget", budget, GROUP, OPTIONAL, &budget_group, NULL),
    MEMBER(cx_data_goal, 10, persistent, BOOL, OPTIONAL),
    MEMBER(cx_data_goal, 11, created_by, TEXT, OPTIONAL)};

static const cx_data_field constraint_fields[] = {
    MEMBER(cx_data_constraint, 1, statement, TEXT, NEEDED),
    MEMBER(cx_data_constraint, 2, polarity, TEXT, ALWAYS),
    MEMBER(cx_data_constraint, 3, trigger, TEXT, OPTIONAL),
    MEMBER_OF(cx_data_constraint, 4, "strength", strength, TEXT, NEEDED, NULL, "soft|firm|hard"),
    MEMBER_OF(cx_data_constraint, 5, "source", source, TEXT, NEEDED, NULL,
              "user_declared|learned|inferred")};

static const cx_data_field capability_fields[] = {
    MEMBER(cx_data_capability, 1, subject, TEXT, NEEDED),
    MEMBER(cx_data_capability, 2, capability, TEXT, NEEDED),
    MEMBER(cx_data_capability, 3, parameters, BYTES, OPTIONAL),
    MEMBER(cx_data_capability, 4, verified, BOOL, ALWAYS),
    MEMBER(cx_data_capability, 5, last_observed, TIME, ALWAYS)};

static const cx_data_field pattern_fields[] = {
    MEMBER(cx_data_pattern, 1, statement, TEXT, NEEDED),
    MEMBER(cx_data_pattern, 2, derived_from, TEXTS, OPTIONAL),
    MEMBER(cx_data_pattern, 3, strength, STRENGTH, ALWAYS),
    MEMBER(cx_data_pattern, 4, coverage, INT, ALWAYS)};

static const cx_data_group groups[] = {GROUP("Identity", cx_data_identity, identity_fields),
                                       GROUP("Fact", cx_data_fact, fact_fields),
                                       GROUP("Preference", cx_data_preference, preference_fields),
                                       GROUP("Belief", cx_data_belief, belief_fields),
                                       GROUP("Event", cx_data_event, event_fields),
                                       GROUP("Goal", cx_data_goal, goal_fields),
                                       GROUP("Constraint", cx_data_constraint, constraint_fields),
                                       GROUP("Capability", cx_data_capability, capability_fields),
                                       GROUP("Pattern", cx_data_pattern, pattern_fields)};

_Static_assert(CX_COUNT_OF(groups) == CX_TYPE_MAX, "a group a type");
_Static_assert(offsetof(cx_cost, is_set) == 0 && offsetof(cx_goal_budget, is_set) == 0,
               "groups that may be left out begin with is_set");

const cx_data_group *cx_data_group_of(uint8_t type)
{
    return type >= CX_TYPE_MIN && type <= CX_TYPE_MAX ? &groups[type - 1] : NULL;
}
