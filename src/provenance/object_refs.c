/*
 * thing_ties.c - the links of one thing, each with what it rests on.
 *
 *   T1  A link holds when it stands in bytes that are hashed, signed or sealed with a thing that
 *       holds itself.  What is only stated beside a thing is indeterminate, however likely.
 *   T2  A link that names what it cannot be is broken: a commit that carries the trailers of a run
 *       which never made it.
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
    cx_tie *items;
    size_t count;
    bool cut;
} refs;

/* Of two ties to the same thing in the same role the stronger one stays. */
static void put(refs *t, cx_tie tie)
{
    for (size_t i = 0; i < t->count; i++) {
        cx_tie *before = &t->items[i];
        if (before->other.kind != tie.other.kind || !cx_str_eq(before->other.id, tie.other.id))
            continue;
        if (before->verdict == CX_INDETERMINATE && tie.verdict != CX_INDETERMINATE)
            *before = tie;
        return;
    }
    if (t->count == CX_PROV_REFS_MAX)
        t->cut = true;
    else
        t->items[t->count++] = tie;
}

static bool holds(const refs *t)
{
    return t->described->verdict == CX_HOLDS;
}

/* --- commits and lines ------------------------------------------------------------------------ */

static bool is_commit(cx_str hex)
{
    return hex.size >= 40 && strspn(hex.data, "0") < hex.size;
}

static void line_ties(refs *t)
{
    cx_str commit = CX_JSON_GET_STR(&t->described->facts, "commit");
    if (is_commit(commit))
        put(t, (cx_tie){"written_by", CX_TIE_CAUSE, cx_prov_named(CX_PROV_COMMIT, commit), CX_HOLDS,
                        CX_STR("git blame: the newest commit that changed the line")});
}

/* T2 */
static cx_status judge_made(refs *t, cx_str run_id, cx_str said, cx_tie *tie, cx_err *err)
{
    cx_run_seen seen;
    cx_run_commit_event event;
    CX_TRY(cx_run_see(t->sources, run_id, t->arena, &seen, err));
    cx_status status = cx_run_find_commit(&seen, t->object->id, t->arena, &event, err);
    if (seen.bundle == NULL) {
        tie->verdict = CX_INDETERMINATE;
        tie->by = CX_SAY(t->arena, "%.*s; the run's bundle is not here", CX_S(said));
    } else if (seen.verdict.verdict != CX_HOLDS) {
        tie->verdict = seen.verdict.verdict;
        tie->by = CX_SAY(t->arena, "%.*s; the run's bundle %s", CX_S(said),
                         seen.verdict.verdict == CX_BROKEN ? "does not hold" : "is not sealed");
    } else if (event.found) {
        tie->verdict = CX_HOLDS;
        tie->by = CX_SAY(t->arena, "event %llu of the sealed run, %.*s, names this commit",
                         (unsigned long long)event.index, CX_S(event.event_type));
    } else {
        tie->verdict = CX_BROKEN;
        tie->by =
            CX_SAY(t->arena,
                   "%.*s, but no event of the sealed run names this commit: it was rewritten, "
                   "or the words were copied",
                   CX_S(said));
    }
    cx_run_unsee(&seen);
    return status;
}

static cx_status put_made(refs *t, cx_str run_id, cx_str said, cx_err *err)
{
    cx_tie tie = {
        .relation = "made_by", .role = CX_TIE_CAUSE, .other = cx_prov_named(CX_PROV_RUN, run_id)};
    if (!cx_run_id_valid(run_id))
        return CX_SUCCESS;
    CX_TRY(judge_made(t, run_id, said, &tie, err));
    put(t, tie);
    return CX_SUCCESS;
}

static cx_status commit_ties(refs *t, cx_err *err)
{
    const cx_json *facts = &t->described->facts;
    const cx_link **links;
    size_t count = 0;
    CX_TRY(put_made(t, CX_JSON_GET_STR(facts, "run_id"), CX_STR("its message carries the trailers"),
                    err));
    CX_TRY(put_made(t, CX_JSON_GET_STR(facts, "note_run_id"), CX_STR("its git note names the run"),
                    err));
    if (t->sources->links == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_links_to(t->sources->links, CX_PROV_COMMIT, t->object->id, t->arena, &links, &count,
                       err));
    /* The seal of a run that did not change anything ends at its baseline. */
    for (size_t i = 0; i < count && t->count == 0; i++) {
        cx_run_seen seen;
        cx_run_commit_event event;
        CX_TRY(cx_run_see(t->sources, links[i]->from, t->arena, &seen, err));
        cx_status status = cx_run_find_commit(&seen, t->object->id, t->arena, &event, err);
        cx_run_unsee(&seen);
        CX_TRY(status);
        if (event.found)
            CX_TRY(put_made(t, links[i]->from, CX_STR("the ledger's seal ends at it"), err));
    }
    return CX_SUCCESS;
}

/* --- links of the ledger ---------------------------------------------------------------------- */

/* What a link that the book found rests on, from the side of a thing that was judged. */
static void judge_link(refs *t, const cx_link *link, bool from_here, cx_tie *tie, cx_err *err,
                       cx_status *status)
{
    cx_described other;
    cx_verdict source = t->described->verdict;
    if (link->ground == CX_LINK_STATED) {
        tie->verdict = CX_INDETERMINATE;
        tie->by = CX_SAY(t->arena, "entry %llu of %.*s says so; the agent did not sign it",
                         (unsigned long long)link->seq, CX_S(link->actor));
        return;
    }
    if (!from_here) {
        const cx_prov_object named = cx_prov_named(link->from_kind, link->from);
        *status = cx_prov_describe(t->sources, &named, t->arena, &other, err);
        source = cx_failed(*status) ? CX_INDETERMINATE : other.verdict;
    }
    tie->verdict = source;
    const char *where = link->from_kind == CX_PROV_TRACE ? "it stands in the bytes that were signed"
                        : link->from_kind == CX_PROV_MEMORY
                            ? "it stands in the memory's hashed bytes: its writer said so"
                            : "it stands in the run's seal";
    tie->by = source == CX_HOLDS ? cx_str_z(where)
                                 : CX_STR("what says so does not hold itself, or is gone");
}

static cx_status put_links(refs *t, bool from_here, cx_prov_kind other_kind, cx_tie_role role,
                           cx_err *err)
{
    const cx_link **links;
    size_t count = 0;
    cx_status status = CX_SUCCESS;
    if (t->sources->links == NULL)
        return CX_SUCCESS;
    CX_TRY(from_here ? cx_links_from(t->sources->links, t->object->kind, t->object->id, t->arena,
                                     &links, &count, err)
                     : cx_links_to(t->sources->links, t->object->kind, t->object->id, t->arena,
                                   &links, &count, err));
    for (size_t i = 0; i < count && !cx_failed(status) && !t->cut; i++) {
        const cx_link *link = links[i];
        cx_str mine = from_here ? link->from : link->to;
        cx_prov_kind kind = from_here ? link->to_kind : link->from_kind;
        if (kind != other_kind ||
            (t->object->kind == CX_PROV_MEMORY && !cx_str_eq(mine, t->object->id)))
            continue;
        cx_tie tie = {.relation = link->relation,
                      .role = role,
                      .other = cx_prov_named(kind, from_here ? link->to : link->from)};
        judge_link(t, link, from_here, &tie, err, &status);
        if (!from_here && kind == CX_PROV_TRACE)
            tie.relation = t->object->kind == CX_PROV_RUN ? "decided_by" : "mentioned_by";
        if (!from_here && link->from_kind == CX_PROV_MEMORY)
            tie.relation = "remembered_as";
        put(t, tie);
    }
    return status;
}

/* --- runs ------------------------------------------------------------------------------------- */

/* A contract may name what it comes from: its bytes are sealed with the run. */
static cx_status contract_ties(refs *t, cx_err *err)
{
    cx_run_seen seen;
    cx_bytes bytes = {NULL, 0};
    CX_TRY(cx_run_see(t->sources, t->object->id, t->arena, &seen, err));
    if (seen.bundle != NULL &&
        cx_failed(cx_run_bundle_read(seen.bundle, CX_STR("contract.json"),
                                     CX_RUN_CONTRACT_BYTES_MAX, &bytes, NULL)))
        bytes.size = 0; /* a run that ended before it had one */
    cx_str text = cx_arena_copy_str(t->arena, cx_bytes_str(bytes));
    cx_run_unsee(&seen);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    cx_tie tie = {.relation = "asked_because_of",
                  .role = CX_TIE_CAUSE,
                  .other = {.matched = "link"},
                  .verdict = t->described->verdict,
                  .by = CX_STR("it stands in the contract, which is sealed with the run")};
    if (!holds(t))
        tie.by = CX_STR("it stands in the contract; the run is not sealed, or does not hold");
    while (cx_prov_next_uri(&text, &tie.other.kind, &tie.other.id))
        put(t, tie);
    return CX_SUCCESS;
}

static cx_status run_ties(refs *t, cx_err *err)
{
    cx_str final = CX_JSON_GET_STR(&t->described->facts, "final");
    cx_str baseline = CX_JSON_GET_STR(&t->described->facts, "baseline");
    CX_TRY(contract_ties(t, err));
    CX_TRY(put_links(t, false, CX_PROV_TRACE, CX_TIE_CAUSE, err));
    CX_TRY(put_links(t, false, CX_PROV_MEMORY, CX_TIE_EFFECT, err));
    if (is_commit(final) && !cx_str_eq(final, baseline))
        put(t, (cx_tie){"ended_at", CX_TIE_OTHER, cx_prov_named(CX_PROV_COMMIT, final),
                        t->described->verdict,
                        holds(t) ? CX_STR("it stands in the run's seal")
                                 : CX_STR("the run is not sealed, or does not hold")});
    return CX_SUCCESS;
}

/* --- memories --------------------------------------------------------------------------------- */

static cx_status edge_ties(refs *t, bool to, cx_err *err)
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
        cx_tie tie = {
            .relation = cx_uri_edge_type_name(edge->type).data,
            .role = cause ? CX_TIE_CAUSE : CX_TIE_OTHER,
            .other = cx_prov_named(CX_PROV_MEMORY,
                                   cx_arena_copy_str(t->arena, cx_str_from(ulid, sizeof ulid))),
            .verdict = CX_HOLDS,
            .by = CX_STR("an edge of the same actor's journal")};
        CX_TRY(cx_prov_locate(t->sources, &tie.other, t->arena, &found, err));
        if (found)
            put(t, tie);
    }
    return CX_SUCCESS;
}

static cx_status memory_ties(refs *t, cx_err *err)
{
    CX_TRY(put_links(t, true, CX_PROV_MEMORY, CX_TIE_CAUSE, err));
    CX_TRY(put_links(t, true, CX_PROV_TRACE, CX_TIE_CAUSE, err));
    CX_TRY(put_links(t, true, CX_PROV_RUN, CX_TIE_CAUSE, err));
    CX_TRY(edge_ties(t, false, err));
    CX_TRY(edge_ties(t, true, err));
    CX_TRY(put_links(t, false, CX_PROV_MEMORY, CX_TIE_OTHER, err));
    return put_links(t, false, CX_PROV_TRACE, CX_TIE_OTHER, err);
}

static cx_status trace_ties(refs *t, cx_err *err)
{
    CX_TRY(put_links(t, true, CX_PROV_MEMORY, CX_TIE_CAUSE, err));
    CX_TRY(put_links(t, true, CX_PROV_TRACE, CX_TIE_CAUSE, err));
    CX_TRY(put_links(t, true, CX_PROV_RUN, CX_TIE_CAUSE, err));
    CX_TRY(put_links(t, false, CX_PROV_MEMORY, CX_TIE_EFFECT, err));
    return put_links(t, false, CX_PROV_TRACE, CX_TIE_OTHER, err);
}

/* --- entries, events, nodes ------------------------------------------------------------------- */

static cx_status entry_ties(refs *t, cx_err *err)
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
            other = cx_prov_named(
                CX_PROV_EVENT, CX_SAY(t->arena, "%.*s/%.*s", CX_S(run), CX_S(cx_json_text(index))));
    } else if (payload != NULL && cx_str_is(entry.entry.kind, "run.seal")) {
        other = cx_prov_named(CX_PROV_RUN, CX_JSON_GET_STR(payload, "run_id"));
    }
    if (other.kind != CX_PROV_NONE && other.id.size != 0)
        put(t, (cx_tie){"recorded", CX_TIE_CAUSE, other, t->described->verdict, t->described->by});
    return CX_SUCCESS;
}

static void event_ties(refs *t)
{
    cx_str run;
    uint64_t index;
    if (cx_run_event_split(t->object->id, &run, &index))
        put(t, (cx_tie){"part_of", CX_TIE_CAUSE, cx_prov_named(CX_PROV_RUN, run),
                        t->described->verdict, t->described->by});
}

/* Calls `look` with each node of a branch until it returns false. */
static cx_status each_node(const cx_sources *sources, cx_str branch, cx_arena *arena,
                           bool (*look)(void *arg, const cx_json *node), void *arg, cx_err *err)
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
        if (!cx_failed(status) && !look(arg, &copy))
            break;
    }
    cx_buf_done(&lines);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}

typedef struct hash_look {
    cx_str hash, trace_id;
} hash_look;

static bool look_for_hash(void *arg, const cx_json *node)
{
    hash_look *l = arg;
    if (!cx_str_eq(CX_JSON_GET_STR(node, "hash"), l->hash))
        return true;
    const cx_json *event = CX_JSON_GET(node, "event");
    if (event != NULL)
        l->trace_id = CX_JSON_GET_STR(event, "trace_id");
    return false;
}

static cx_status node_ties(refs *t, cx_err *err)
{
    hash_look look = {.hash = t->object->id};
    cx_str branch = t->object->actor;
    if (cx_str_starts(branch, CX_STR("run/"))) {
        const char *end = memchr(branch.data + 4, '/', branch.size - 4);
        cx_str run = cx_str_from(branch.data + 4,
                                 end == NULL ? branch.size - 4 : (size_t)(end - branch.data) - 4);
        if (cx_run_id_valid(run))
            put(t, (cx_tie){"stands_for_an_event_of", CX_TIE_CAUSE, cx_prov_named(CX_PROV_RUN, run),
                            CX_HOLDS, CX_STR("the node is made from a line of the run's events")});
        return CX_SUCCESS;
    }
    if (!cx_str_starts(branch, CX_STR("agent/")) || t->sources->home == NULL)
        return CX_SUCCESS;
    CX_TRY(each_node(t->sources, branch, t->arena, look_for_hash, &look, err));
    if (look.trace_id.size != 0)
        put(t, (cx_tie){"stands_for_a_component_of", CX_TIE_CAUSE,
                        cx_prov_named(CX_PROV_TRACE, look.trace_id), CX_HOLDS,
                        CX_STR("the node is made from the recorded trace")});
    return CX_SUCCESS;
}

typedef struct trace_look {
    cx_str trace_id;
    cx_str *hashes;
    size_t count;
} trace_look;

static bool look_for_trace(void *arg, const cx_json *node)
{
    trace_look *l = arg;
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
    trace_look look = {.trace_id = trace_id,
                       .hashes = CX_ARENA_ARRAY(arena, cx_str, CX_TRACE_COMPONENTS_MAX)};
    cx_str branch = CX_SAY(arena, "agent/%.*s", CX_S(actor));
    if (look.hashes == NULL || branch.data == NULL)
        return cx_fail_nomem(err);
    memset(look.hashes, 0, CX_TRACE_COMPONENTS_MAX * sizeof *look.hashes);
    CX_TRY(each_node(sources, branch, arena, look_for_trace, &look, err));
    *out = look.hashes;
    *out_count = look.count;
    return CX_SUCCESS;
}

/* --- all of them ------------------------------------------------------------------------------ */

static cx_status gather(refs *t, cx_err *err)
{
    switch (t->object->kind) {
    case CX_PROV_LINE: line_ties(t); return CX_SUCCESS;
    case CX_PROV_COMMIT: return commit_ties(t, err);
    case CX_PROV_RUN: return run_ties(t, err);
    case CX_PROV_EVENT: event_ties(t); return CX_SUCCESS;
    case CX_PROV_TRACE: return trace_ties(t, err);
    case CX_PROV_MEMORY: return memory_ties(t, err);
    case CX_PROV_ENTRY: return entry_ties(t, err);
    case CX_PROV_NODE: return node_ties(t, err);
    case CX_PROV_SNAPSHOT:
    case CX_PROV_JOURNAL:
        put(t, (cx_tie){"state_of", CX_TIE_OTHER, cx_prov_named(CX_PROV_ACTOR, t->object->actor),
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
                       const cx_described *described, cx_arena *arena, const cx_tie **out,
                       size_t *out_count, bool *out_cut, cx_err *err)
{
    refs t = {.sources = sources, .object = object, .described = described, .arena = arena};
    t.items = CX_ARENA_ARRAY(arena, cx_tie, CX_PROV_REFS_MAX);
    if (t.items == NULL)
        return cx_fail_nomem(err);
    if (described->here)
        CX_TRY(gather(&t, err));
    *out = t.items;
    *out_count = t.count;
    *out_cut = t.cut;
    return CX_SUCCESS;
}
