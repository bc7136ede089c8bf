/*
 * object_refs.c - the references of one object, each with its ground.
 *
 *   T1  A reference holds when it is inside bytes that are hashed, signed or sealed with an object
 *       that holds itself.  One that is only stated outside the object is indeterminate, however
 *       likely.
 *   T2  A reference that contradicts its target is broken: a commit that carries the trailers of a
 *       run which never made it.
 */
#include "crypto/api.h"
#include "memory/api.h"
#include "provenance/run_lattice.h"
#include "provenance/object_parts.h"
#include "audit/api.h"

typedef struct refs {
    const cx_sources *sources;
    const cx_prov_object *object;
    const cx_described *described;
    cx_arena *arena;
    cx_ref *items;
    size_t count;
    bool cut;
} refs;

/* Of two references to the same object in the same role the stronger one stays. */
static void add_ref(refs *t, cx_ref ref)
{
    for (size_t i = 0; i < t->count; i++) {
        cx_ref *before = &t->items[i];
        if (before->other.kind != ref.other.kind || !cx_str_eq(before->other.id, ref.other.id))
            continue;
        if (before->verdict == CX_INDETERMINATE && ref.verdict != CX_INDETERMINATE)
            *before = ref;
        return;
    }
    if (t->count == CX_PROV_REFS_MAX)
        t->cut = true;
    else
        t->items[t->count++] = ref;
}

static bool object_holds(const refs *t)
{
    return t->described->verdict == CX_HOLDS;
}

/* --- commits and lines ------------------------------------------------------------------------ */

static bool is_commit(cx_str hex)
{
    return hex.size >= 40 && strspn(hex.data, "0") < hex.size;
}

static void line_refs(refs *t)
{
    cx_str commit = CX_JSON_GET_STR(&t->described->facts, "commit");
    if (is_commit(commit))
        add_ref(t,
                (cx_ref){"written_by", CX_REF_CAUSE, cx_prov_named(CX_PROV_COMMIT, commit),
                         CX_HOLDS, CX_STR("git blame: the newest commit that changed the line")});
}

/* T2 */
static cx_status verify_made_by(refs *t, cx_str run_id, cx_str basis, cx_ref *ref, cx_err *err)
{
    cx_run_inspection seen;
    cx_run_commit_event event;
    CX_TRY(cx_run_inspect(t->sources, run_id, t->arena, &seen, err));
    cx_status status = cx_run_find_commit(&seen, t->object->id, t->arena, &event, err);
    if (seen.bundle == NULL) {
        ref->verdict = CX_INDETERMINATE;
        ref->by = CX_TEXTF(t->arena, "%.*s; the run's bundle is missing", CX_S(basis));
    } else if (seen.verdict.verdict != CX_HOLDS) {
        ref->verdict = seen.verdict.verdict;
        ref->by = CX_TEXTF(t->arena, "%.*s; the run's bundle %s", CX_S(basis),
                           seen.verdict.verdict == CX_BROKEN ? "does not hold" : "is not sealed");
    } else if (event.found) {
        ref->verdict = CX_HOLDS;
        ref->by = CX_TEXTF(t->arena, "event %llu of the sealed run, %.*s, names this commit",
                           (unsigned long long)event.index, CX_S(event.event_type));
    } else {
        ref->verdict = CX_BROKEN;
        ref->by = CX_TEXTF(t->arena,
                           "%.*s, but no event of the sealed run names this commit: it was "
                           "rewritten, or the trailers were copied",
                           CX_S(basis));
    }
    cx_run_inspect_done(&seen);
    return status;
}

static cx_status add_made_by(refs *t, cx_str run_id, cx_str basis, cx_err *err)
{
    cx_ref ref = {
        .relation = "made_by", .role = CX_REF_CAUSE, .other = cx_prov_named(CX_PROV_RUN, run_id)};
    if (!cx_run_id_valid(run_id))
        return CX_SUCCESS;
    CX_TRY(verify_made_by(t, run_id, basis, &ref, err));
    add_ref(t, ref);
    return CX_SUCCESS;
}

static cx_status commit_refs(refs *t, cx_err *err)
{
    const cx_json *facts = &t->described->facts;
    cx_links *all = NULL;
    const cx_link *links;
    size_t count = 0;
    bool more = false;
    CX_TRY(add_made_by(t, CX_JSON_GET_STR(facts, "run_id"), CX_STR("its message has the trailers"),
                       err));
    CX_TRY(add_made_by(t, CX_JSON_GET_STR(facts, "note_run_id"),
                       CX_STR("its git note names the run"), err));
    if (t->count == 0)
        CX_TRY(cx_sources_links(t->sources, &all, err));
    if (all == NULL)
        return CX_SUCCESS;
    const cx_links_question seals = {.to = true, .kind = CX_PROV_COMMIT, .id = t->object->id};
    CX_TRY(cx_links_find(all, &seals, t->arena, &links, &count, &more, err));
    t->cut = t->cut || more;
    /* The seal of a run that did not change anything ends at its baseline. */
    for (size_t i = 0; i < count && t->count == 0; i++) {
        cx_run_inspection seen;
        cx_run_commit_event event;
        CX_TRY(cx_run_inspect(t->sources, links[i].from, t->arena, &seen, err));
        cx_status status = cx_run_find_commit(&seen, t->object->id, t->arena, &event, err);
        cx_run_inspect_done(&seen);
        CX_TRY(status);
        if (event.found)
            CX_TRY(add_made_by(t, links[i].from, CX_STR("the run's seal in the ledger names it"),
                               err));
    }
    return CX_SUCCESS;
}

/* --- links of the ledger ---------------------------------------------------------------------- */

/* The ground of a recorded link, seen from an object that was verified. */
static void verify_link(refs *t, const cx_link *link, bool from_here, cx_ref *ref, cx_err *err,
                        cx_status *status)
{
    cx_described other;
    cx_verdict source = t->described->verdict;
    if (link->ground == CX_LINK_STATED) {
        ref->verdict = CX_INDETERMINATE;
        ref->by = CX_TEXTF(t->arena, "entry %llu of %.*s states it; the agent did not sign it",
                           (unsigned long long)link->seq, CX_S(link->actor));
        return;
    }
    if (!from_here) {
        const cx_prov_object named = cx_prov_named(link->from_kind, link->from);
        *status = cx_prov_describe(t->sources, &named, t->arena, &other, err);
        source = cx_failed(*status) ? CX_INDETERMINATE : other.verdict;
    }
    ref->verdict = source;
    const char *where = link->from_kind == CX_PROV_TRACE ? "it is in the signed bytes"
                        : link->from_kind == CX_PROV_MEMORY
                            ? "it is in the memory's hashed bytes: its writer stated it"
                            : "it is in the run's seal";
    ref->by =
        source == CX_HOLDS ? cx_str_z(where) : CX_STR("its source does not hold, or is missing");
}

static cx_status add_link_refs(refs *t, bool from_here, cx_prov_kind other_kind, cx_ref_role role,
                               cx_err *err)
{
    cx_links *all = NULL;
    const cx_link *links;
    size_t count = 0;
    bool more = false;
    cx_status status = CX_SUCCESS;
    CX_TRY(cx_sources_links(t->sources, &all, err));
    if (all == NULL)
        return CX_SUCCESS;
    const cx_links_question question = {
        .to = !from_here, .kind = t->object->kind, .id = t->object->id, .other_kind = other_kind};
    CX_TRY(cx_links_find(all, &question, t->arena, &links, &count, &more, err));
    for (size_t i = 0; i < count && !cx_failed(status) && !t->cut; i++) {
        const cx_link *link = &links[i];
        cx_prov_kind kind = from_here ? link->to_kind : link->from_kind;
        cx_ref ref = {.relation = link->relation,
                      .role = role,
                      .other = cx_prov_named(kind, from_here ? link->to : link->from)};
        verify_link(t, link, from_here, &ref, err, &status);
        if (!from_here && kind == CX_PROV_TRACE)
            ref.relation = t->object->kind == CX_PROV_RUN ? "decided_by" : "mentioned_by";
        if (!from_here && link->from_kind == CX_PROV_MEMORY)
            ref.relation = "remembered_as";
        add_ref(t, ref);
    }
    t->cut = t->cut || more;
    return status;
}

/* --- runs ------------------------------------------------------------------------------------- */

/* A contract may name its origins: its bytes are sealed with the run. */
static cx_status contract_refs(refs *t, cx_err *err)
{
    cx_run_inspection seen;
    cx_bytes bytes = {NULL, 0};
    CX_TRY(cx_run_inspect(t->sources, t->object->id, t->arena, &seen, err));
    if (seen.bundle != NULL &&
        cx_failed(cx_run_bundle_read(seen.bundle, CX_STR("contract.json"),
                                     CX_RUN_CONTRACT_BYTES_MAX, &bytes, NULL)))
        bytes.size = 0; /* a run that ended before it had one */
    cx_str text = cx_arena_copy_str(t->arena, cx_bytes_str(bytes));
    cx_run_inspect_done(&seen);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    cx_ref ref = {.relation = "asked_because_of",
                  .role = CX_REF_CAUSE,
                  .other = {.matched = "link"},
                  .verdict = t->described->verdict,
                  .by = CX_STR("it is in the contract, which is sealed with the run")};
    if (!object_holds(t))
        ref.by = CX_STR("it is in the contract; the run is not sealed, or does not hold");
    while (cx_prov_next_uri(&text, &ref.other.kind, &ref.other.id))
        add_ref(t, ref);
    return CX_SUCCESS;
}

static cx_status run_refs(refs *t, cx_err *err)
{
    cx_str final = CX_JSON_GET_STR(&t->described->facts, "final");
    cx_str baseline = CX_JSON_GET_STR(&t->described->facts, "baseline");
    CX_TRY(contract_refs(t, err));
    CX_TRY(add_link_refs(t, false, CX_PROV_TRACE, CX_REF_CAUSE, err));
    CX_TRY(add_link_refs(t, false, CX_PROV_MEMORY, CX_REF_EFFECT, err));
    if (is_commit(final) && !cx_str_eq(final, baseline))
        add_ref(t, (cx_ref){"ended_at", CX_REF_OTHER, cx_prov_named(CX_PROV_COMMIT, final),
                            t->described->verdict,
                            object_holds(t) ? CX_STR("it is in the run's seal")
                                            : CX_STR("the run is not sealed, or does not hold")});
    return CX_SUCCESS;
}

/* --- memories --------------------------------------------------------------------------------- */

static cx_status edge_refs(refs *t, bool to, cx_err *err)
{
    cx_prov_object object = *t->object;
    cx_memory *memory = NULL;
    const cx_edge_view *edges = NULL;
    size_t count = 0;
    cx_uri uri;
    bool found = false;
    if (t->sources->home == NULL || cx_failed(cx_uri_parse(object.id, &uri, NULL)))
        return CX_SUCCESS;
    CX_TRY(cx_prov_locate(t->sources, &object, t->arena, &found, err));
    if (!found)
        return CX_SUCCESS;
    CX_TRY(cx_memory_open(t->sources->home, object.actor, NULL, &memory, err));
    cx_status status = cx_memory_edges(memory, &uri.id, to, 0, false, CX_PROV_REFS_MAX / 2,
                                       t->arena, &edges, &count, err);
    cx_memory_close(memory);
    CX_TRY(status);
    for (size_t i = 0; i < count; i++) {
        const cx_edge *edge = &edges[i].edge;
        const cx_id *other = to ? &edge->src : &edge->dst;
        char ulid[CX_ULID_SIZE];
        cx_ulid_format(other, ulid);
        bool cause = !to && (edge->type == CX_EDGE_DERIVED_FROM || edge->type == CX_EDGE_CAUSED_BY);
        cx_ref ref = {
            .relation = cx_uri_edge_type_name(edge->type).data,
            .role = cause ? CX_REF_CAUSE : CX_REF_OTHER,
            .other = cx_prov_named(CX_PROV_MEMORY,
                                   cx_arena_copy_str(t->arena, cx_str_from(ulid, sizeof ulid))),
            .verdict = CX_HOLDS,
            .by = CX_STR("an edge of the same actor's journal")};
        CX_TRY(cx_prov_locate(t->sources, &ref.other, t->arena, &found, err));
        if (found)
            add_ref(t, ref);
    }
    return CX_SUCCESS;
}

static cx_status memory_refs(refs *t, cx_err *err)
{
    CX_TRY(add_link_refs(t, true, CX_PROV_MEMORY, CX_REF_CAUSE, err));
    CX_TRY(add_link_refs(t, true, CX_PROV_TRACE, CX_REF_CAUSE, err));
    CX_TRY(add_link_refs(t, true, CX_PROV_RUN, CX_REF_CAUSE, err));
    CX_TRY(edge_refs(t, false, err));
    CX_TRY(edge_refs(t, true, err));
    CX_TRY(add_link_refs(t, false, CX_PROV_MEMORY, CX_REF_OTHER, err));
    return add_link_refs(t, false, CX_PROV_TRACE, CX_REF_OTHER, err);
}

static cx_status trace_refs(refs *t, cx_err *err)
{
    CX_TRY(add_link_refs(t, true, CX_PROV_MEMORY, CX_REF_CAUSE, err));
    CX_TRY(add_link_refs(t, true, CX_PROV_TRACE, CX_REF_CAUSE, err));
    CX_TRY(add_link_refs(t, true, CX_PROV_RUN, CX_REF_CAUSE, err));
    CX_TRY(add_link_refs(t, false, CX_PROV_MEMORY, CX_REF_EFFECT, err));
    return add_link_refs(t, false, CX_PROV_TRACE, CX_REF_OTHER, err);
}

/* --- entries, events, nodes ------------------------------------------------------------------- */

static cx_status entry_refs(refs *t, cx_err *err)
{
    cx_entry_view entry;
    cx_prov_object other = {.kind = CX_PROV_NONE, .matched = "link"};
    CX_TRY(
        cx_home_entry(t->sources->home, t->object->actor, t->object->seq, t->arena, &entry, err));
    const cx_json *payload = CX_JSON_GET(&t->described->facts, "payload");
    cx_entry_kind kind = cx_entry_kind_of(entry.entry.kind);
    if (kind == CX_ENTRY_WRITE || kind == CX_ENTRY_UPDATE) {
        cx_payload written;
        cx_buf uri;
        CX_TRY(cx_payload_decode(kind, entry.payload, t->arena, &written, err));
        const cx_uri name = {.type = written.as.write.type,
                             .id = written.as.write.id,
                             .version = written.as.write.version};
        cx_buf_init(&uri, t->sources->alloc);
        cx_uri_add(&name, &uri);
        other = cx_prov_named(CX_PROV_MEMORY, cx_arena_copy_str(t->arena, cx_buf_str(&uri)));
        cx_buf_done(&uri);
    } else if (payload != NULL && cx_str_is(entry.entry.kind, "trace.received")) {
        other = cx_prov_named(CX_PROV_TRACE, CX_JSON_GET_STR(payload, "trace_id"));
    } else if (payload != NULL && cx_str_is(entry.entry.kind, "run.event")) {
        const cx_json *index = CX_JSON_GET(payload, "index");
        cx_str run = CX_JSON_GET_STR(payload, "run_id");
        if (index != NULL && index->type == CX_JSON_INT)
            other = cx_prov_named(CX_PROV_EVENT, CX_TEXTF(t->arena, "%.*s/%.*s", CX_S(run),
                                                          CX_S(cx_json_text(index))));
    } else if (payload != NULL && cx_str_is(entry.entry.kind, "run.seal")) {
        other = cx_prov_named(CX_PROV_RUN, CX_JSON_GET_STR(payload, "run_id"));
    }
    if (other.kind != CX_PROV_NONE && other.id.size != 0)
        add_ref(t,
                (cx_ref){"recorded", CX_REF_CAUSE, other, t->described->verdict, t->described->by});
    return CX_SUCCESS;
}

static void event_refs(refs *t)
{
    cx_str run;
    uint64_t index;
    if (cx_run_event_split(t->object->id, &run, &index))
        add_ref(t, (cx_ref){"part_of", CX_REF_CAUSE, cx_prov_named(CX_PROV_RUN, run),
                            t->described->verdict, t->described->by});
}

/* Calls `visit` with each node of a branch until it returns false. */
static cx_status each_node(const cx_sources *sources, cx_str branch, cx_arena *arena,
                           bool (*visit)(void *arg, const cx_json *node), void *arg, cx_err *err)
{
    cx_buf lines;
    cx_str text, line;
    cx_buf_init(&lines, sources->alloc);
    cx_status status = cx_recorder_lattice_lines(sources->home, branch, &lines, err);
    text = cx_buf_str(&lines);
    while (!cx_failed(status) && cx_run_next_line(&text, &line)) {
        cx_json node, copy;
        status = cx_json_parse_text(line, arena, &node, err);
        if (!cx_failed(status))
            status = cx_json_copy(&node, arena, &copy, err);
        if (!cx_failed(status) && !visit(arg, &copy))
            break;
    }
    cx_buf_done(&lines);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

typedef struct hash_search {
    cx_str hash, trace_id;
} hash_search;

static bool match_hash(void *arg, const cx_json *node)
{
    hash_search *l = arg;
    if (!cx_str_eq(CX_JSON_GET_STR(node, "hash"), l->hash))
        return true;
    const cx_json *event = CX_JSON_GET(node, "event");
    if (event != NULL)
        l->trace_id = CX_JSON_GET_STR(event, "trace_id");
    return false;
}

/* A step is found by its hash, the node of a trace among all of its branch. */
static cx_status visit_node(refs *t, cx_str branch, hash_search *visit, cx_err *err)
{
    cx_str line;
    cx_json node;
    bool found = false;
    CX_TRY(cx_recorder_step_line(t->sources->home, visit->hash, t->arena, &line, &found, err));
    if (!found)
        return each_node(t->sources, branch, t->arena, match_hash, visit, err);
    CX_TRY(cx_json_parse_text(line, t->arena, &node, err));
    (void)match_hash(visit, &node);
    return CX_SUCCESS;
}

static cx_status node_refs(refs *t, cx_err *err)
{
    hash_search visit = {.hash = t->object->id};
    cx_str branch = t->object->actor;
    if (cx_str_starts(branch, CX_STR("run/"))) {
        const char *end = memchr(branch.data + 4, '/', branch.size - 4);
        cx_str run = cx_str_from(branch.data + 4,
                                 end == NULL ? branch.size - 4 : (size_t)(end - branch.data) - 4);
        if (cx_run_id_valid(run))
            add_ref(t, (cx_ref){"stands_for_an_event_of", CX_REF_CAUSE,
                                cx_prov_named(CX_PROV_RUN, run), CX_HOLDS,
                                CX_STR("the node is derived from a line of the run's events")});
        return CX_SUCCESS;
    }
    if (!cx_str_starts(branch, CX_STR("agent/")) || t->sources->home == NULL)
        return CX_SUCCESS;
    CX_TRY(visit_node(t, branch, &visit, err));
    if (visit.trace_id.size != 0)
        add_ref(t, (cx_ref){"stands_for_a_component_of", CX_REF_CAUSE,
                            cx_prov_named(CX_PROV_TRACE, visit.trace_id), CX_HOLDS,
                            CX_STR("the node is derived from the recorded trace")});
    return CX_SUCCESS;
}

typedef struct trace_search {
    cx_str trace_id;
    cx_str *hashes;
    size_t count;
} trace_search;

static bool match_trace(void *arg, const cx_json *node)
{
    trace_search *l = arg;
    const cx_json *event = CX_JSON_GET(node, "event");
    const cx_json *number = event == NULL ? NULL : CX_JSON_GET(event, "component_index");
    uint64_t index;
    if (number == NULL || !cx_str_eq(CX_JSON_GET_STR(event, "trace_id"), l->trace_id) ||
        !cx_json_uint64(number, &index) || index >= CX_TRACE_COMPONENTS_MAX)
        return true;
    l->hashes[index] = CX_JSON_GET_STR(node, "hash");
    l->count = index + 1 > l->count ? (size_t)index + 1 : l->count;
    return true;
}

cx_status cx_trace_nodes(const cx_sources *sources, cx_str actor, cx_str trace_id, cx_arena *arena,
                         cx_str **out, size_t *out_count, cx_err *err)
{
    trace_search visit = {.trace_id = trace_id,
                          .hashes = CX_ARENA_ARRAY(arena, cx_str, CX_TRACE_COMPONENTS_MAX)};
    cx_str branch = CX_TEXTF(arena, "agent/%.*s", CX_S(actor));
    if (visit.hashes == NULL || branch.data == NULL)
        return cx_fail_nomem(err);
    memset(visit.hashes, 0, CX_TRACE_COMPONENTS_MAX * sizeof *visit.hashes);
    CX_TRY(each_node(sources, branch, arena, match_trace, &visit, err));
    *out = visit.hashes;
    *out_count = visit.count;
    return CX_SUCCESS;
}

/* --- all of them ------------------------------------------------------------------------------ */

static cx_status collect_refs(refs *t, cx_err *err)
{
    switch (t->object->kind) {
    case CX_PROV_LINE: line_refs(t); return CX_SUCCESS;
    case CX_PROV_COMMIT: return commit_refs(t, err);
    case CX_PROV_RUN: return run_refs(t, err);
    case CX_PROV_EVENT: event_refs(t); return CX_SUCCESS;
    case CX_PROV_TRACE: return trace_refs(t, err);
    case CX_PROV_MEMORY: return memory_refs(t, err);
    case CX_PROV_ENTRY: return entry_refs(t, err);
    case CX_PROV_NODE: return node_refs(t, err);
    case CX_PROV_SNAPSHOT:
    case CX_PROV_JOURNAL:
        add_ref(t,
                (cx_ref){"state_of", CX_REF_OTHER, cx_prov_named(CX_PROV_ACTOR, t->object->actor),
                         t->described->verdict, t->described->by});
        return CX_SUCCESS;
    case CX_PROV_NONE:
    case CX_PROV_EDGE:
    case CX_PROV_KEY:
    case CX_PROV_ACTOR:
    case CX_PROV_KIND_COUNT: break;
    }
    return CX_SUCCESS;
}

cx_status cx_prov_refs(const cx_sources *sources, const cx_prov_object *object,
                       const cx_described *described, cx_arena *arena, const cx_ref **out,
                       size_t *out_count, bool *out_cut, cx_err *err)
{
    refs t = {.sources = sources, .object = object, .described = described, .arena = arena};
    t.items = CX_ARENA_ARRAY(arena, cx_ref, CX_PROV_REFS_MAX);
    if (t.items == NULL)
        return cx_fail_nomem(err);
    if (described->here)
        CX_TRY(collect_refs(&t, err));
    *out = t.items;
    *out_count = t.count;
    *out_cut = t.cut;
    return CX_SUCCESS;
}
