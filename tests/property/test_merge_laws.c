/*
 * test_merge_laws.c - states and merges against a naive model: the rules of lattice.md §6 and §7
 * written down once more, plainly, by recursion over parsed JSON, and the laws merges keep.
 */
#include "tests/support/lattice_fixture.h"

typedef struct model {
    cx_arena arena;
    cx_merge_strategy strategy;
    const double *priorities; /* of the parents */
} model;

/* --- the model: plain values --------------------------------------------------------------- */

static bool is_object(const cx_json *v)
{
    return v != NULL && v->type == CX_JSON_OBJECT;
}

static bool has(const cx_json *v, const char *name)
{
    return is_object(v) && cx_json_get(v, cx_str_z(name)) != NULL;
}

static bool is_plain(const cx_json *v)
{
    return is_object(v) && !has(v, "confidence") && !has(v, "__conflict");
}

static bool same(const cx_json *a, const cx_json *b)
{
    return a == NULL || b == NULL ? a == b : cx_json_equal(a, b);
}

static const cx_json *keep(model *m, cx_json v)
{
    cx_json *slot = CX_ARENA_NEW(&m->arena, cx_json);
    *slot = v;
    return slot;
}

static const cx_json *end_object(model *m, cx_json_list *list)
{
    cx_json v;
    cx_err err;
    CHECK_STATUS(cx_json_list_end_object(list, &v, &err), &err);
    return keep(m, v);
}

static const cx_json *parse(model *m, cx_str text)
{
    cx_json v;
    cx_err err;
    CHECK_STATUS(cx_json_parse_text(cx_arena_copy_str(&m->arena, text), &m->arena, &v, &err), &err);
    return keep(m, v);
}

static const cx_json *parse_z(model *m, const char *text)
{
    return parse(m, cx_str_z(text));
}

static const cx_json *get(const cx_json *v, cx_str name)
{
    return is_object(v) ? cx_json_get(v, name) : NULL;
}

/* --- the model: patches -------------------------------------------------------------------- */

static const cx_json *model_patch(model *m, const cx_json *old, const cx_json *delta)
{
    if (!is_object(delta))
        return delta;
    if (!is_object(old) || has(old, "__conflict"))
        old = parse_z(m, "{}");
    cx_json_list list = cx_json_list_begin(&m->arena);
    for (uint32_t i = 0; i < old->count; i++)
        if (get(delta, cx_json_text(&old->members[i].name)) == NULL)
            cx_json_list_put(&list, cx_json_text(&old->members[i].name), old->members[i].value);
    for (uint32_t i = 0; i < delta->count; i++) {
        cx_str name = cx_json_text(&delta->members[i].name);
        if (delta->members[i].value.type != CX_JSON_NULL)
            cx_json_list_put(&list, name,
                             *model_patch(m, get(old, name), &delta->members[i].value));
    }
    return end_object(m, &list);
}

/* --- the model: merges --------------------------------------------------------------------- */

enum { MOST = 8 };

typedef struct side {
    const cx_json *v; /* NULL = absent */
    size_t who;
} side;

static double model_confidence(const cx_json *v)
{
    double confidence;
    const cx_json *held = get(v, CX_STR("confidence"));
    return held != NULL && cx_json_double(held, &confidence) ? confidence : 0;
}

static void add_distinct(cx_json_list *list, const cx_json *v)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (cx_json_equal(&list->members[i].value, v))
            return;
    cx_json_list_add(list, *v);
}

static const cx_json *model_conflict(model *m, const side *sides, size_t count)
{
    cx_err err;
    cx_json values, null = cx_json_make_null();
    cx_json_list list = cx_json_list_begin(&m->arena);
    for (size_t i = 0; i < count; i++) {
        const cx_json *flag = get(sides[i].v, CX_STR("__conflict"));
        const cx_json *inner = get(sides[i].v, CX_STR("values"));
        if (flag != NULL && flag->type == CX_JSON_TRUE && inner != NULL &&
            inner->type == CX_JSON_ARRAY)
            for (uint32_t k = 0; k < inner->count; k++)
                add_distinct(&list, &inner->items[k]);
        else
            add_distinct(&list, sides[i].v == NULL ? &null : sides[i].v);
    }
    CHECK_STATUS(cx_json_list_end_array(&list, &values, &err), &err);
    cx_json_list object = cx_json_list_begin(&m->arena);
    cx_json_list_put(&object, CX_STR("__conflict"), cx_json_make_bool(true));
    cx_json_list_put(&object, CX_STR("values"), values);
    return end_object(m, &object);
}

static const cx_json *model_choose(model *m, const side *sides, size_t count)
{
    const side *best = &sides[0];
    double best_weight = 0;
    for (size_t i = 0; i < count; i++) {
        double weight = m->strategy == CX_MERGE_CONFIDENCE ? model_confidence(sides[i].v)
                        : m->strategy == CX_MERGE_POLICY   ? m->priorities[sides[i].who]
                                                           : 0;
        if (i == 0 || weight >= best_weight) {
            best = &sides[i];
            best_weight = weight;
        }
    }
    return best->v;
}

static const cx_json *model_merge_objects(model *m, const side *sides, size_t count,
                                          const cx_json *const *bases, size_t base_count);

static const cx_json *model_merge_value(model *m, const side *sides, size_t count,
                                        const cx_json *const *bases, size_t base_count)
{
    side competing[MOST];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        bool differs = true;
        for (size_t k = 0; k < base_count; k++)
            differs &= !same(sides[i].v, bases[k]);
        if (differs)
            competing[n++] = sides[i];
    }
    if (n == 0) {
        memcpy(competing, sides, count * sizeof *sides);
        n = count;
    }
    bool equal = true, plain = true;
    for (size_t i = 0; i < n; i++) {
        equal &= same(competing[i].v, competing[0].v);
        plain &= is_plain(competing[i].v);
    }
    for (size_t k = 0; k < base_count; k++)
        plain &= !is_object(bases[k]) || is_plain(bases[k]);
    if (equal)
        return competing[0].v;
    if (plain)
        return model_merge_objects(m, competing, n, bases, base_count);
    if (m->strategy == CX_MERGE_MANUAL)
        return model_conflict(m, competing, n);
    return model_choose(m, competing, n);
}

static const cx_json *model_merge_objects(model *m, const side *sides, size_t count,
                                          const cx_json *const *bases, size_t base_count)
{
    cx_json_list result = cx_json_list_begin(&m->arena);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t at = 0; at < sides[i].v->count; at++) {
            cx_str name = cx_json_text(&sides[i].v->members[at].name);
            side inner[MOST];
            const cx_json *inner_bases[MOST];
            bool done = false;
            for (size_t k = 0; k < count; k++) {
                inner[k] = (side){get(sides[k].v, name), sides[k].who};
                done |= k < i && inner[k].v != NULL;
            }
            for (size_t k = 0; k < base_count; k++)
                inner_bases[k] = get(bases[k], name);
            const cx_json *v =
                done ? NULL : model_merge_value(m, inner, count, inner_bases, base_count);
            if (v != NULL)
                cx_json_list_put(&result, name, *v);
        }
    }
    return end_object(m, &result);
}

/* Whole states: the sections' names as keys that are always objects, or single values. */
static const cx_json *model_merge_states(model *m, const cx_json *const *states, size_t count,
                                         const cx_json *const *bases, size_t base_count)
{
    static const char *const sections[] = {"beliefs", "context_stack", "goals", "memory"};
    cx_json_list result = cx_json_list_begin(&m->arena);
    for (size_t s = 0; s < 4; s++) {
        side sides[MOST];
        const cx_json *section_bases[MOST];
        for (size_t i = 0; i < count; i++)
            sides[i] = (side){get(states[i], cx_str_z(sections[s])), i};
        for (size_t i = 0; i < base_count; i++)
            section_bases[i] = get(bases[i], cx_str_z(sections[s]));
        const cx_json *v = s == 0 || s == 3
                               ? model_merge_objects(m, sides, count, section_bases, base_count)
                               : model_merge_value(m, sides, count, section_bases, base_count);
        cx_json_list_put(&result, cx_str_z(sections[s]), *v);
    }
    return end_object(m, &result);
}

#define EMPTY_STATE "{\"beliefs\":{},\"context_stack\":[],\"goals\":[],\"memory\":{}}"

static const cx_json *model_apply(model *m, const cx_json *old, const cx_json *delta)
{
    static const char *const sections[] = {"beliefs", "context_stack", "goals", "memory"};
    cx_json_list result = cx_json_list_begin(&m->arena);
    for (size_t s = 0; s < 4; s++) {
        cx_str name = cx_str_z(sections[s]);
        const cx_json *held = get(old, name), *given = get(delta, name);
        if (given != NULL)
            held = s == 0 || s == 3 ? model_patch(m, held, given) : given;
        cx_json_list_put(&result, name, *held);
    }
    return end_object(m, &result);
}

/* --- random JSON --------------------------------------------------------------------------- */

static void random_value(cx_buf *out, uint64_t *random, unsigned depth, bool in_delta);

/* Few keys and few values, so that they collide. */
static void random_object(cx_buf *out, uint64_t *random, unsigned depth, bool in_delta)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e\\n", "\\u00e9", "zz", "zzz"};
    bool first = true;
    cx_buf_add_byte(out, '{');
    for (size_t k = 0; k < CX_COUNT_OF(keys); k++) {
        if (cx_test_random(random) % 3 != 0)
            continue;
        cx_buf_printf(out, "%s\"%s\":", first ? "" : ",", keys[k]);
        first = false;
        random_value(out, random, depth, in_delta);
    }
    if (depth < 3 && cx_test_random(random) % 8 == 0) {
        cx_buf_printf(out, "%s\"confidence\":", first ? "" : ",");
        cx_buf_printf(out, cx_test_random(random) % 4 == 0 ? "true" : "0.%u",
                      (unsigned)(cx_test_random(random) % 4));
    } else if (depth < 3 && cx_test_random(random) % 12 == 0) {
        cx_buf_printf(out, "%s\"__conflict\":true,\"values\":[%u,2]", first ? "" : ",",
                      (unsigned)(cx_test_random(random) % 3));
    }
    cx_buf_add_byte(out, '}');
}

static void random_value(cx_buf *out, uint64_t *random, unsigned depth, bool in_delta)
{
    static const char *const leaves[] = {"0",    "1",        "1.0",         "\"x\"",
                                         "true", "[1,null]", "[{\"a\":1}]", "[]"};
    unsigned choice = (unsigned)(cx_test_random(random) % 10);
    if (in_delta && choice == 0)
        cx_buf_add_z(out, "null");
    else if (choice < 5 && depth > 0)
        random_object(out, random, depth - 1, in_delta);
    else
        cx_buf_add_z(out, leaves[cx_test_random(random) % CX_COUNT_OF(leaves)]);
}

static void random_delta(cx_buf *out, uint64_t *random)
{
    cx_buf_clear(out);
    cx_buf_add_z(out, "{\"memory\":");
    random_object(out, random, 3, true);
    if (cx_test_random(random) % 2 == 0) {
        cx_buf_add_z(out, ",\"beliefs\":");
        random_object(out, random, 2, true);
    }
    if (cx_test_random(random) % 3 == 0)
        cx_buf_printf(out, ",\"goals\":[%u]", (unsigned)(cx_test_random(random) % 3));
    cx_buf_add_byte(out, '}');
    (void)cx_buf_z(out);
}

/* A state as a node could have it. */
static const cx_json *random_state(model *m, uint64_t *random)
{
    cx_buf delta;
    cx_buf_init(&delta, cx_alloc_default());
    const cx_json *s = parse_z(m, EMPTY_STATE);
    for (unsigned i = 0; i < 2; i++) {
        random_delta(&delta, random);
        s = model_apply(m, s, parse(m, cx_buf_str(&delta)));
    }
    cx_buf_done(&delta);
    return s;
}

/* --- comparing ----------------------------------------------------------------------------- */

static void check_json(cx_str got, const cx_json *expected, const char *what)
{
    cx_err err;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_json_write(&text, expected, CX_JSON_PY_COMPACT, &err), &err);
    if (!cx_str_eq(got, cx_buf_str(&text)))
        cx_test_fail(__FILE__, __LINE__, "%s: got %.*s, expected %.*s", what, (int)got.size,
                     got.data, (int)text.size, (const char *)text.data);
    cx_buf_done(&text);
}

static const cx_str agent_names[MOST] = {{"a0", 2}, {"a1", 2}, {"a2", 2}, {"a3", 2},
                                         {"a4", 2}, {"a5", 2}, {"a6", 2}, {"a7", 2}};

/* The merge our code makes; text good until the next call. */
static cx_str merge_states(const cx_json *const *states, size_t count, const cx_json *const *bases,
                           size_t base_count, cx_merge_strategy strategy, const double *priorities,
                           cx_buf *out)
{
    cx_err err;
    cx_json state_copies[MOST], base_copies[MOST];
    cx_agent_priority weights[MOST];
    for (size_t i = 0; i < count; i++) {
        state_copies[i] = *states[i];
        weights[i] = (cx_agent_priority){agent_names[i], priorities[i]};
    }
    for (size_t i = 0; i < base_count; i++)
        base_copies[i] = *bases[i];
    cx_merge_case merge = {.bases = base_copies,
                           .base_count = base_count,
                           .states = state_copies,
                           .state_count = count,
                           .agents = agent_names,
                           .strategy = strategy,
                           .priorities = weights,
                           .priority_count = count,
                           .whole_states = true};
    cx_buf_clear(out);
    CHECK_STATUS(cx_state_merge_json(&merge, cx_alloc_default(), out, &err), &err);
    return cx_buf_str(out);
}

static const cx_merge_strategy all_strategies[] = {CX_MERGE_LWW, CX_MERGE_CONFIDENCE,
                                                   CX_MERGE_POLICY, CX_MERGE_MANUAL};

CX_TEST(merge_is_the_rule)
{
    uint64_t random = cx_test_seed();
    cx_buf got;
    cx_buf_init(&got, cx_alloc_default());
    for (unsigned round = 0; round < 400; round++) {
        model m = {0};
        cx_arena_init(&m.arena, cx_alloc_default(), 0);
        const cx_json *states[MOST], *bases[MOST];
        double priorities[MOST];
        size_t count = 1 + cx_test_random(&random) % 4,
               base_count = 1 + cx_test_random(&random) % 3;
        cx_buf delta;
        cx_buf_init(&delta, cx_alloc_default());
        for (size_t i = 0; i < base_count; i++)
            bases[i] = random_state(&m, &random);
        for (size_t i = 0; i < count; i++) {
            /* Mostly a change of some base, sometimes the base itself. */
            states[i] = bases[cx_test_random(&random) % base_count];
            random_delta(&delta, &random);
            if (cx_test_random(&random) % 4 != 0)
                states[i] = model_apply(&m, states[i], parse(&m, cx_buf_str(&delta)));
            priorities[i] = (double)(cx_test_random(&random) % 3);
        }
        for (size_t s = 0; s < CX_COUNT_OF(all_strategies); s++) {
            m.strategy = all_strategies[s];
            m.priorities = priorities;
            check_json(merge_states(states, count, bases, base_count, m.strategy, priorities, &got),
                       model_merge_states(&m, states, count, bases, base_count), "merge");
        }
        cx_buf_done(&delta);
        cx_arena_done(&m.arena);
    }
    cx_buf_done(&got);
}

CX_TEST(merge_laws)
{
    static const double weights[MOST] = {3, 1, 2, 0, 5, 4, 7, 6};
    uint64_t random = cx_test_seed() + 1;
    cx_buf got, other;
    cx_buf_init(&got, cx_alloc_default());
    cx_buf_init(&other, cx_alloc_default());
    for (unsigned round = 0; round < 150; round++) {
        model m = {0};
        cx_arena_init(&m.arena, cx_alloc_default(), 0);
        const cx_json *base = random_state(&m, &random), *x = random_state(&m, &random);
        const cx_json *y = random_state(&m, &random), *empty = parse_z(&m, EMPTY_STATE);
        for (size_t s = 0; s < CX_COUNT_OF(all_strategies); s++) {
            cx_merge_strategy strategy = all_strategies[s];
            const cx_json *copies[4] = {x, x, x, x}, *unchanged[3] = {base, x, base};
            /* One state, and n equal states, are themselves, whatever the base. */
            check_json(merge_states(copies, 1, &base, 1, strategy, weights, &got), x, "one");
            check_json(merge_states(copies, 4, &base, 1, strategy, weights, &got), x, "equal");
            check_json(merge_states(copies, 2, &empty, 1, strategy, weights, &got), x, "no base");
            /* Who changed nothing has no say. */
            check_json(merge_states(unchanged, 3, &base, 1, strategy, weights, &got), x,
                       "only one changed");
            /* Two bases that are equal are one. */
            const cx_json *twice[2] = {base, base}, *pair[2] = {x, y};
            (void)merge_states(pair, 2, twice, 2, strategy, weights, &got);
            CHECK(cx_str_eq(cx_buf_str(&got),
                            merge_states(pair, 2, &base, 1, strategy, weights, &other)));
        }
        /* Under policy with distinct priorities the order does not matter. */
        const cx_json *forward[3] = {x, base, y}, *backward[3] = {y, base, x};
        static const double mirrored[3] = {2, 1, 3};
        (void)merge_states(forward, 3, &empty, 1, CX_MERGE_POLICY, weights, &got);
        CHECK(cx_str_eq(cx_buf_str(&got),
                        merge_states(backward, 3, &empty, 1, CX_MERGE_POLICY, mirrored, &other)));
        cx_arena_done(&m.arena);
    }
    cx_buf_done(&other);
    cx_buf_done(&got);
}

/* --- whole lattices ------------------------------------------------------------------------ */

enum { NODES = 40 };

static void random_history(fixture *f, uint64_t *random)
{
    static const char *const events[] = {"{}", "{}", "{}", "{\"merge_strategy\":\"manual\"}",
                                         "{\"merge_strategy\":\"confidence\"}"};
    cx_buf delta;
    cx_buf_init(&delta, cx_alloc_default());
    for (int i = 0; i < NODES; i++) {
        char id[16], name[16], parents[80] = "";
        uint64_t taken = 0;
        unsigned wanted = (unsigned)(cx_test_random(random) % 4);
        for (unsigned k = 0; k < (wanted == 0 ? 1 : wanted) && i > 0; k++) {
            int back = 1 + (int)(cx_test_random(random) % 7), parent = i > back ? i - back : 0;
            if ((taken >> parent & 1) != 0 || (i > 30 && parent == 0))
                continue;
            taken |= UINT64_C(1) << parent;
            size_t used = strlen(parents);
            (void)snprintf(parents + used, sizeof parents - used, "%sn%d", used ? "," : "", parent);
        }
        random_delta(&delta, random);
        (void)snprintf(id, sizeof id, "n%d", i);
        (void)snprintf(name, sizeof name, "a%u", (unsigned)(cx_test_random(random) % 4));
        fixture_node(f, id, name, i, i / 2, parents,
                     cx_test_random(random) % 3 == 0 ? "{}" : (const char *)delta.data,
                     events[cx_test_random(random) % CX_COUNT_OF(events)]);
    }
    cx_buf_done(&delta);
}

/* All states by the model, straight from the definitions. */
static void model_states(model *m, fixture *f, const cx_state_options *options,
                         const double *agent_weights, const cx_json **states)
{
    const cx_lattice *lattice = f->lattice;
    for (uint32_t p = 0; p < lattice->order_count; p++) {
        cx_node which = lattice->order[p];
        const node *n = node_at(lattice, which);
        const cx_node *parents = node_parents(lattice, n);
        const cx_json *inherited = parse_z(m, EMPTY_STATE);
        if (n->parent_count == 1) {
            inherited = states[parents[0]];
        } else if (n->parent_count > 1) {
            const cx_json *sides[MOST], *bases[MOST];
            double weights[MOST];
            cx_node *common;
            size_t base_count = 0;
            CHECK_STATUS(cx_lattice_common(lattice, parents, n->parent_count, &m->arena, &common,
                                           &base_count, &f->err),
                         &f->err);
            for (size_t i = 0; i < base_count; i++)
                bases[i] = states[common[i]];
            if (base_count == 0 || options->base_none) {
                bases[0] = inherited;
                base_count = 1;
            }
            for (uint32_t i = 0; i < n->parent_count; i++) {
                sides[i] = states[parents[i]];
                weights[i] = agent_weights[node_at(lattice, parents[i])->agent];
            }
            m->strategy = options->strategy;
            (void)node_strategy(n, &m->strategy);
            m->priorities = weights;
            inherited = model_merge_states(m, sides, n->parent_count, bases, base_count);
        }
        states[which] = model_apply(m, inherited, parse(m, lattice->deltas.items[which]));
    }
}

CX_TEST(states_by_structure_are_states_by_replay)
{
    uint64_t random = cx_test_seed() + 2;
    for (unsigned round = 0; round < 24; round++) {
        model m = {0};
        fixture f;
        const cx_json *states[NODES];
        cx_agent_priority priorities[4];
        double agent_weights[4] = {0};
        fixture_init(&f);
        cx_arena_init(&m.arena, cx_alloc_default(), 0);
        random_history(&f, &random);
        REQUIRE(fixture_load(&f));
        REQUIRE(f.lattice->order_count == NODES);
        for (uint32_t i = 0; i < f.lattice->agents.count; i++) {
            agent_weights[i] = (double)(cx_test_random(&random) % 5) - 2;
            priorities[i] = (cx_agent_priority){f.lattice->agents.items[i].name, agent_weights[i]};
        }
        cx_state_options options = {all_strategies[round % 4], round % 8 >= 4, priorities,
                                    f.lattice->agents.count};
        model_states(&m, &f, &options, agent_weights, states);
        REQUIRE(fixture_states(&f, &options));
        for (cx_node which = 0; which < NODES; which++) {
            cx_buf_clear(&f.out);
            CHECK_STATUS(cx_states_write(f.states, which, false, &f.out, &f.err), &f.err);
            check_json(cx_buf_str(&f.out), states[which], f.ids[which]);
        }
        /* Only what a target needs gives the same. */
        cx_node target = (cx_node)(cx_test_random(&random) % NODES);
        cx_states_close(f.states);
        f.states = NULL;
        CHECK_STATUS(cx_states_open_for(f.lattice, &options, &target, 1, &f.states, &f.err),
                     &f.err);
        cx_buf_clear(&f.out);
        CHECK_STATUS(cx_states_write(f.states, target, false, &f.out, &f.err), &f.err);
        check_json(cx_buf_str(&f.out), states[target], "open_for");
        cx_arena_done(&m.arena);
        fixture_done(&f);
    }
}
