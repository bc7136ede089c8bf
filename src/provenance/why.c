/*
 * why.c - from an object to its origins, across modules: line, commit, run, contract and gates,
 * decisions, memories, lattice nodes.
 *
 *   W1  Depth first, in the order of an object's references; each object is listed once.
 *   W2  The effects of an object (a memory written from a trace) are named, not followed.
 *   W3  The verdict is the worst of all steps and references.  So a chain with one reference that
 *       is only stated is indeterminate, and names it.
 */
#include "provenance/object_parts.h"

typedef struct step {
    size_t from; /* number of the step it hangs on, from 1; 0 = the question itself */
    unsigned depth;
    const char *kind;
    cx_str id, title, by;
    cx_verdict verdict;
    const char *relation; /* "" at the start */
    cx_verdict link_verdict;
    cx_str link_by;
    cx_json facts;
    cx_str next;
} step;

typedef struct walk {
    const cx_sources *sources;
    cx_arena *arena;
    step *steps;
    size_t count;
    bool cut;
    bool has_trace, has_run, has_memory, has_commit, stated;
} walk;

static step *add_step(walk *w, size_t from, unsigned depth)
{
    if (w->count == CX_WHY_STEPS_MAX) {
        w->cut = true;
        return NULL;
    }
    step *made = &w->steps[w->count++];
    *made = (step){.from = from, .depth = depth, .relation = ""};
    return made;
}

/* W1 */
static bool is_listed(const walk *w, const cx_prov_object *object)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->steps[i].kind, cx_prov_kind_name(object->kind)) == 0 &&
            cx_str_eq(w->steps[i].id, object->id))
            return true;
    return false;
}

/* --- contents of a step ----------------------------------------------------------------------- */

static cx_status contract_step(walk *w, const cx_described *run, size_t from, unsigned depth,
                               cx_err *err)
{
    cx_str hash = CX_JSON_GET_STR(&run->facts, "contract_sha256");
    cx_str asked = CX_JSON_GET_STR(&run->facts, "user_request");
    step *made = hash.data == NULL ? NULL : add_step(w, from, depth);
    if (made == NULL)
        return CX_SUCCESS;
    cx_json_list facts = cx_json_list_begin(w->arena);
    cx_reply_text(&facts, "user_request", asked);
    made->kind = "contract";
    made->id = hash;
    made->title = asked.data == NULL ? CX_STR("what the agent was allowed to do") : asked;
    made->verdict = made->link_verdict = run->verdict;
    made->relation = "carried_out";
    made->by = run->verdict == CX_HOLDS ? CX_STR("its hash is in the run's seal") : run->by;
    made->link_by = made->by;
    return cx_json_list_end_object(&facts, &made->facts, err);
}

/* "diff_gate, policy_gate passed; tests_gate did not": those that were reached. */
static cx_str name_gates(const cx_json *gates, uint32_t passed, uint32_t rulings, cx_arena *arena)
{
    cx_str good = CX_STR(""), bad = CX_STR("");
    for (uint32_t i = 0; i < gates->count; i++) {
        const cx_json *value = &gates->members[i].value;
        const cx_json *reached = CX_JSON_GET(value, "reached"), *ok = CX_JSON_GET(value, "passed");
        cx_str name = cx_json_text(&gates->members[i].name);
        if (reached == NULL || reached->type != CX_JSON_TRUE)
            continue;
        cx_str *list = ok != NULL && ok->type == CX_JSON_TRUE ? &good : &bad;
        *list = CX_TEXTF(arena, "%.*s%s%.*s", CX_S(*list), list->size == 0 ? "" : ", ", CX_S(name));
    }
    return CX_TEXTF(arena, "%.*s%s%.*s%s (%u of %u rulings)", CX_S(good),
                    good.size == 0  ? ""
                    : bad.size == 0 ? " passed"
                                    : " passed; ",
                    CX_S(bad), bad.size == 0 ? "" : " did not pass", passed, rulings);
}

static cx_status gates_step(walk *w, const cx_described *run, size_t from, unsigned depth,
                            cx_err *err)
{
    const cx_json *gates = CX_JSON_GET(&run->facts, "gates");
    const cx_json *rulings = CX_JSON_GET(&run->facts, "rulings");
    uint32_t passed = 0;
    step *made = gates == NULL || rulings == NULL ? NULL : add_step(w, from, depth);
    if (made == NULL)
        return CX_SUCCESS;
    for (uint32_t i = 0; i < rulings->count; i++) {
        const cx_json *one = CX_JSON_GET(&rulings->items[i], "passed");
        passed += one != NULL && one->type == CX_JSON_TRUE;
    }
    cx_json_list facts = cx_json_list_begin(w->arena);
    cx_reply_add(&facts, "gates", *gates);
    cx_reply_add(&facts, "rulings", *rulings);
    made->kind = "gates";
    made->title = name_gates(gates, passed, rulings->count, w->arena);
    made->verdict = made->link_verdict = run->verdict;
    made->relation = "judged_by";
    made->by = made->link_by = run->verdict == CX_HOLDS
                                   ? CX_STR("the gate results are events of the sealed run")
                                   : run->by;
    return cx_json_list_end_object(&facts, &made->facts, err);
}

/* The most informative part of a component in one line, for users. */
static cx_str summary_of(const cx_json *data, cx_arena *arena)
{
    static const char *const telling[] = {"action_rationale", "observation",
                                          "thought",          "summary",
                                          "task_description", "action_executed"};
    for (size_t i = 0; data != NULL && i < CX_COUNT_OF(telling); i++) {
        cx_str text = cx_json_get_str(data, cx_str_z(telling[i]));
        if (text.size != 0)
            return text;
    }
    cx_buf line;
    cx_buf_init(&line, arena->alloc);
    cx_str out = CX_STR("");
    if (data != NULL && !cx_failed(cx_json_write(&line, data, CX_JSON_PY_COMPACT, NULL)))
        out = cx_arena_copy_str(
            arena, cx_str_from((const char *)line.data, line.size < 120 ? line.size : 120));
    cx_buf_done(&line);
    return out.data == NULL ? CX_STR("") : out;
}

static cx_status component_steps(walk *w, const cx_prov_object *trace,
                                 const cx_described *described, size_t from, unsigned depth,
                                 cx_err *err)
{
    const cx_json *components = CX_JSON_GET(&described->facts, "components");
    cx_str *nodes;
    size_t node_count = 0;
    if (components == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_trace_nodes(w->sources, trace->actor, trace->id, w->arena, &nodes, &node_count, err));
    for (uint32_t i = 0; i < components->count; i++) {
        const cx_json *one = &components->items[i];
        step *made = add_step(w, from, depth);
        if (made == NULL)
            return CX_SUCCESS;
        cx_json_list facts = cx_json_list_begin(w->arena);
        const cx_json *data = CX_JSON_GET(one, "data");
        cx_reply_text(&facts, "component", CX_JSON_GET_STR(one, "component"));
        cx_reply_text(&facts, "event_type", CX_JSON_GET_STR(one, "event_type"));
        cx_reply_text(&facts, "timestamp", CX_JSON_GET_STR(one, "timestamp"));
        cx_reply_text(&facts, "node", i < node_count ? nodes[i] : (cx_str){NULL, 0});
        cx_reply_add(&facts, "data", data == NULL ? cx_json_make_null() : *data);
        made->kind = "component";
        made->id = CX_TEXTF(w->arena, "%.*s/%u", CX_S(trace->id), i);
        made->title =
            CX_TEXTF(w->arena, "%.*s %.*s: %.*s", CX_S(CX_JSON_GET_STR(one, "component")),
                     CX_S(CX_JSON_GET_STR(one, "event_type")), CX_S(summary_of(data, w->arena)));
        made->verdict = made->link_verdict = described->verdict;
        made->relation = "consists_of";
        made->by = made->link_by =
            described->verdict == CX_HOLDS ? CX_STR("it is in the signed bytes") : described->by;
        if (i < node_count && nodes[i].size != 0)
            made->next = CX_TEXTF(w->arena, "cortex lattice show @agent/%.*s %.*s",
                                  CX_S(trace->actor), CX_S(nodes[i]));
        CX_TRY(cx_json_list_end_object(&facts, &made->facts, err));
    }
    return CX_SUCCESS;
}

/* --- walking ---------------------------------------------------------------------------------- */

/* The facts of a step, without those that are steps of their own. */
static cx_status facts_of(walk *w, const cx_described *described, cx_json *out, cx_err *err)
{
    static const char *const elsewhere[] = {"components", "rulings", "gates"};
    cx_json_list list = cx_json_list_begin(w->arena);
    for (uint32_t i = 0; i < described->facts.count; i++) {
        const cx_json_member *member = &described->facts.members[i];
        cx_str name = cx_json_text(&member->name);
        bool skip = false;
        for (size_t j = 0; j < CX_COUNT_OF(elsewhere); j++)
            skip = skip || cx_str_is(name, elsewhere[j]);
        if (!skip)
            cx_json_list_put(&list, name, member->value);
    }
    return cx_json_list_end_object(&list, out, err);
}

static cx_status visit_object(walk *w, cx_prov_object object, const cx_ref *ref, size_t from,
                              unsigned depth, cx_err *err);

static cx_status follow_refs(walk *w, const cx_prov_object *object, const cx_described *described,
                             size_t me, unsigned depth, cx_err *err)
{
    const cx_ref *refs;
    size_t count;
    bool cut = false;
    if (depth == CX_WHY_DEPTH_MAX) {
        w->cut = true;
        return CX_SUCCESS;
    }
    if (object->kind == CX_PROV_RUN) {
        CX_TRY(contract_step(w, described, me, depth + 1, err));
        CX_TRY(gates_step(w, described, me, depth + 1, err));
    } else if (object->kind == CX_PROV_TRACE) {
        CX_TRY(component_steps(w, object, described, me, depth + 1, err));
    }
    CX_TRY(cx_prov_refs(w->sources, object, described, w->arena, &refs, &count, &cut, err));
    w->cut = w->cut || cut;
    for (size_t i = 0; i < count; i++)
        if (refs[i].role != CX_REF_OTHER && !is_listed(w, &refs[i].other))
            CX_TRY(visit_object(w, refs[i].other, &refs[i], me, depth + 1, err));
    return CX_SUCCESS;
}

/* At most CX_WHY_DEPTH_MAX deep. */
static cx_status visit_object(walk *w, cx_prov_object object, const cx_ref *ref, size_t from,
                              unsigned depth, cx_err *err)
{
    cx_described described;
    bool found;
    if (object.kind == CX_PROV_MEMORY || object.kind == CX_PROV_TRACE)
        CX_TRY(cx_prov_locate(w->sources, &object, w->arena, &found, err));
    CX_TRY(cx_prov_describe(w->sources, &object, w->arena, &described, err));
    step *made = add_step(w, from, depth);
    size_t me = w->count;
    if (made == NULL)
        return CX_SUCCESS;
    made->kind = cx_prov_kind_name(object.kind);
    made->id = object.id;
    made->title = described.title;
    made->verdict = described.verdict;
    made->by = described.by;
    made->next = cx_prov_command(&object, w->arena);
    made->relation = ref == NULL ? "" : ref->relation;
    made->link_verdict = ref == NULL ? CX_HOLDS : ref->verdict;
    made->link_by = ref == NULL ? CX_STR("") : ref->by;
    w->has_trace = w->has_trace || object.kind == CX_PROV_TRACE;
    w->has_run = w->has_run || object.kind == CX_PROV_RUN;
    w->has_memory = w->has_memory || object.kind == CX_PROV_MEMORY;
    w->has_commit = w->has_commit || object.kind == CX_PROV_COMMIT;
    w->stated = w->stated || (ref != NULL && ref->verdict == CX_INDETERMINATE);
    CX_TRY(facts_of(w, &described, &made->facts, err));
    if (ref != NULL && ref->role == CX_REF_EFFECT) /* W2 */
        return CX_SUCCESS;
    return follow_refs(w, &object, &described, me, depth, err);
}

/* --- the answer ------------------------------------------------------------------------------- */

static cx_status add_step_json(const walk *w, size_t number, cx_json_list *list, cx_err *err)
{
    const step *s = &w->steps[number];
    cx_json_list one = cx_json_list_begin(w->arena), link = cx_json_list_begin(w->arena);
    cx_json value;
    cx_reply_uint(&one, "n", number + 1);
    cx_reply_uint(&one, "depth", s->depth);
    cx_reply_z(&one, "kind", s->kind);
    cx_reply_text(&one, "id", s->id.size == 0 ? (cx_str){NULL, 0} : s->id);
    cx_reply_text(&one, "title", s->title);
    cx_reply_text(&one, "verdict", cx_verdict_word(s->verdict));
    cx_reply_text(&one, "by", s->by);
    cx_reply_add(&one, "facts", s->facts);
    cx_reply_text(&one, "next", s->next);
    if (s->from == 0) {
        cx_reply_text(&one, "link", (cx_str){NULL, 0});
    } else {
        cx_reply_uint(&link, "from", s->from);
        cx_reply_z(&link, "relation", s->relation);
        cx_reply_text(&link, "verdict", cx_verdict_word(s->link_verdict));
        cx_reply_text(&link, "by", s->link_by);
        CX_TRY(cx_reply_end_object(&one, "link", &link, err));
    }
    CX_TRY(cx_json_list_end_object(&one, &value, err));
    cx_json_list_add(list, value);
    return CX_SUCCESS;
}

static void add_limits(const walk *w, cx_json_list *list)
{
    if (w->has_commit && !w->has_run)
        cx_json_list_add(list,
                         cx_json_make_str(CX_STR("no governed run is recorded for this commit: its "
                                                 "author is only what git states")));
    if (w->has_trace)
        cx_json_list_add(
            list,
            cx_json_make_str(CX_STR(
                "a signed trace is the agent's own statement, not what happened inside a model")));
    if (w->has_run)
        cx_json_list_add(
            list, cx_json_make_str(CX_STR("passed gates do not prove that the change is good")));
    if (w->has_memory)
        cx_json_list_add(
            list, cx_json_make_str(CX_STR("the origin of a memory is what its writer stated")));
    if (w->stated)
        cx_json_list_add(
            list,
            cx_json_make_str(CX_STR(
                "links marked indeterminate are only stated: they are neither signed nor sealed")));
    if (w->cut)
        cx_json_list_add(list, cx_json_make_str(CX_STR("the chain is longer than shown here")));
    cx_json_list_add(
        list, cx_json_make_str(CX_STR("it is not proven that nothing unrecorded played a part")));
}

static cx_status write_answer(const walk *w, cx_str question, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(w->arena), steps = cx_json_list_begin(w->arena);
    cx_json_list limits = cx_json_list_begin(w->arena);
    cx_json value;
    cx_verdict verdict = CX_HOLDS;
    for (size_t i = 0; i < w->count; i++) {
        verdict = cx_verdict_worse(verdict, w->steps[i].verdict);
        verdict = cx_verdict_worse(verdict, w->steps[i].link_verdict);
        CX_TRY(add_step_json(w, i, &steps, err));
    }
    add_limits(w, &limits);
    cx_reply_text(&list, "question", question);
    cx_reply_text(&list, "verdict", cx_verdict_word(verdict));
    CX_TRY(cx_json_list_end_array(&steps, &value, err));
    cx_reply_add(&list, "steps", value);
    CX_TRY(cx_json_list_end_array(&limits, &value, err));
    cx_reply_add(&list, "not_proven", value);
    cx_reply_add(&list, "cut", cx_json_make_bool(w->cut));
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_why_of_many(const cx_sources *sources, const cx_prov_object *objects, size_t count,
                         cx_str question, cx_arena *arena, cx_json *out, cx_err *err)
{
    walk w = {.sources = sources, .arena = arena};
    w.steps = CX_ARENA_ARRAY(arena, step, CX_WHY_STEPS_MAX);
    if (w.steps == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        if (!is_listed(&w, &objects[i]))
            CX_TRY(visit_object(&w, objects[i], NULL, 0, 0, err));
    return write_answer(&w, question, out, err);
}

cx_status cx_why_of(const cx_sources *sources, const cx_prov_object *object, cx_arena *arena,
                    cx_json *out, cx_err *err)
{
    return cx_why_of_many(sources, object, 1, object->id, arena, out, err);
}
