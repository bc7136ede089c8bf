/*
 * verify.c - the judgement over a lattice that was read (§4).
 *
 * Hashes, seals and fields were checked while reading; here follow the graph, the three invariants
 * of each branch, the external anchor, and who is tainted by whose errors.  Every failure is
 * listed.
 */
#include "lattice/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/api.h"

/* From so many nodes on a second thread is worth its start. */
#define MANY_NODES 65536u

typedef struct verification {
    const cx_lattice *lattice;
    const cx_lattice_checks *checks;
    cx_lattice_report *report;
    uint8_t *suspect; /* a node with an error, or one that descends from it; NULL = told later */
    cx_err *err;
    const bool *known; /* of a part: which missing parents are elsewhere; NULL = it is no part */
    uint8_t *edge;     /* of a part: a node whose missing parents are all elsewhere */
} verification;

static cx_str copy_label(verification *j, cx_node n)
{
    char scratch[16];
    cx_str label = cx_lattice_label(j->lattice, n, scratch);
    return label.data == scratch ? cx_arena_copy_str(&j->report->arena, label) : label;
}

static void suspect_node(verification *j, cx_node n)
{
    if (j->suspect != NULL && in_graph(node_at(j->lattice, n)))
        j->suspect[n] = 1;
}

/* A finding on a node; `detail` must live as long as the report. */
static cx_status add_finding(verification *j, cx_lattice_code code, cx_node n, cx_str detail)
{
    cx_lattice_report *report = j->report;
    cx_lattice_finding *slot = code == CX_W_TIME ? cx_vec_push(&report->warnings, report->alloc)
                                                 : cx_vec_push(&report->errors, report->alloc);
    if (slot == NULL || detail.data == NULL)
        return cx_fail_nomem(j->err);
    cx_str id = copy_label(j, n);
    if (id.data == NULL)
        return cx_fail_nomem(j->err);
    *slot = (cx_lattice_finding){code, n, id, cx_lattice_agent_label(j->lattice, n), detail};
    if (code != CX_W_TIME)
        suspect_node(j, n);
    return CX_SUCCESS;
}

static cx_status add_finding_apart(verification *j, cx_lattice_code code, cx_str agent_name,
                                   cx_str detail)
{
    cx_lattice_finding *slot = cx_vec_push(&j->report->errors, j->report->alloc);
    if (slot == NULL || detail.data == NULL)
        return cx_fail_nomem(j->err);
    *slot = (cx_lattice_finding){code, CX_NODE_NONE, CX_STR("*"), agent_name, detail};
    return CX_SUCCESS;
}

/* --- what reading found ----------------------------------------------------------------------- */

static cx_status report_complaints(verification *j)
{
    const cx_lattice *lattice = j->lattice;
    for (size_t i = 0; i < lattice->complaints.count; i++) {
        const complaint *c = &lattice->complaints.items[i];
        /* Of a repeated node only its repetition and its schema matter: it is left out. */
        bool repeated = (node_at(lattice, c->node)->flags & NODE_DUPLICATE) != 0;
        if (repeated && c->code != CX_E_DUP_ID && c->code != CX_E_SCHEMA)
            continue;
        CX_TRY(add_finding(j, c->code, c->node, c->detail));
    }
    for (size_t i = 0; i < lattice->missing.count; i++) {
        const missing_parent *m = &lattice->missing.items[i];
        cx_str name = shortened(m->text, 80);
        if (j->known != NULL && j->known[i])
            continue;
        CX_TRY(add_finding(j, CX_E_MISSING_PARENT, m->node,
                           cx_arena_printf(&j->report->arena, "no node is called %.*s",
                                           (int)name.size, name.data)));
    }
    return CX_SUCCESS;
}

/* --- node by node ----------------------------------------------------------------------------- */

static cx_status check_time(verification *j, cx_node n, const node *item)
{
    for (uint32_t i = 0; i < item->parent_count; i++) {
        cx_node parent = node_parents(j->lattice, item)[i];
        if (j->lattice->rank[n] >= j->lattice->rank[parent] ||
            cx_lattice_time_compare(j->lattice, item, node_at(j->lattice, parent)) >= 0)
            continue;
        cx_str id = shortened(node_id(node_at(j->lattice, parent)), 80);
        CX_TRY(add_finding(j, j->checks->strict_time ? CX_E_TIME : CX_W_TIME, n,
                           cx_arena_printf(&j->report->arena, "earlier than its parent %.*s",
                                           (int)id.size, id.data)));
        j->report->evidence.time_ordered = false;
    }
    return CX_SUCCESS;
}

/* §5.3: what makes the concatenation of the pre-image readable in one way only. */
static cx_status check_ambiguity(verification *j, cx_node n, const node *item)
{
    cx_str name = j->lattice->agents.items[item->agent].name;
    if (name.size != 0 && name.data[0] >= '0' && name.data[0] <= '9')
        return add_finding(j, CX_E_AMBIGUOUS, n,
                           CX_STR("agent_id starts with a digit: it runs into seq"));
    if (item->flags & NODE_PREV_ODD)
        return add_finding(j, CX_E_AMBIGUOUS, n,
                           CX_STR("prev_hash is not 64 lower-case hex digits"));
    if ((item->flags & NODE_VERSION_EXACT) == 0)
        return add_finding(j, CX_E_AMBIGUOUS, n, CX_STR("schema_version is not exactly 2.0.0"));
    return CX_SUCCESS;
}

static cx_status check_node(verification *j, cx_node n, const node *item)
{
    if (item->flags & NODE_PARENT_TWICE)
        CX_TRY(add_finding(j, CX_E_SCHEMA, n, CX_STR("a parent is named twice")));
    if (item->flags & NODE_ON_CYCLE)
        CX_TRY(add_finding(j, CX_E_CYCLE, n, CX_STR("on a cycle of parents, or between two")));
    if (j->checks->content_ids && (item->flags & NODE_ID_IS_HASH) == 0)
        CX_TRY(add_finding(j, CX_E_ID, n, CX_STR("node_id is not the hash")));
    if (j->checks->require_seals && (item->flags & NODE_HAS_SEAL) == 0)
        CX_TRY(add_finding(j, CX_E_SEAL_MISSING, n, CX_STR("event holds no __seal")));
    if (j->checks->unambiguous)
        CX_TRY(check_ambiguity(j, n, item));
    return check_time(j, n, item);
}

static cx_status check_nodes(verification *j)
{
    uint32_t sealed = 0, bad_seals = 0, count = 0;
    bool unsealed = false;
    for (cx_node n = 0; n < j->lattice->nodes.count; n++) {
        const node *item = node_at(j->lattice, n);
        unsealed |= (item->flags & NODE_HAS_SEAL) == 0; /* or it was not checked: unusable */
        if (!in_graph(item))
            continue;
        count++;
        sealed += (item->flags & NODE_HAS_SEAL) != 0;
        bad_seals += (item->flags & NODE_SEAL_BAD) != 0;
        j->report->evidence.content_ids &= (item->flags & NODE_ID_IS_HASH) != 0;
        CX_TRY(check_node(j, n, item));
    }
    j->report->evidence.content_ids &= count != 0;
    j->report->evidence.seals = bad_seals != 0 ? CX_SEALS_BAD
                                : sealed == 0  ? CX_SEALS_NONE
                                : unsealed     ? CX_SEALS_SOME
                                               : CX_SEALS_ALL;
    return CX_SUCCESS;
}

/* --- branch by branch ------------------------------------------------------------------------- */

/* The nodes of one agent and one seq. */
typedef struct step {
    const cx_node *nodes;
    uint32_t count;
    cx_digest *sorted; /* hashes in order, made for large steps when first searched */
    bool odd;          /* some hash is no hex: search them one by one */
} step;

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(cx_digest));
}

/* Whether any node of the step has the hash this node calls prev_hash. */
static cx_status step_has_prev(verification *j, step *s, const node *item, bool *out)
{
    enum { FEW = 32 };
    *out = false;
    if (s->count > FEW && s->sorted == NULL && !s->odd) {
        cx_digest *sorted = CX_ARENA_ARRAY(&j->report->arena, cx_digest, s->count);
        if (sorted == NULL)
            return cx_fail_nomem(j->err);
        for (uint32_t i = 0; i < s->count; i++) {
            sorted[i] = node_at(j->lattice, s->nodes[i])->hash;
            s->odd |= (node_at(j->lattice, s->nodes[i])->flags & NODE_HASH_ODD) != 0;
        }
        qsort(sorted, s->count, sizeof *sorted, compare_digests);
        s->sorted = sorted;
    }
    if (s->count > FEW && !s->odd && (item->flags & NODE_PREV_ODD) == 0) {
        *out =
            bsearch(&item->prev, s->sorted, s->count, sizeof *s->sorted, compare_digests) != NULL;
        return CX_SUCCESS;
    }
    for (uint32_t i = 0; i < s->count && !*out; i++)
        *out = cx_lattice_prev_is_hash_of(j->lattice, item, node_at(j->lattice, s->nodes[i]));
    return CX_SUCCESS;
}

static cx_str prev_detail(verification *j, cx_node n, const char *expected)
{
    char scratch[64];
    cx_str prev = shortened(cx_lattice_prev_text(j->lattice, n, scratch), 80);
    return cx_arena_printf(&j->report->arena, "expected %s, found prev_hash '%.*s'", expected,
                           (int)prev.size, prev.data);
}

/* Rules 2 and 3 for a node whose predecessors exist. */
static cx_status check_successor(verification *j, cx_node n, const node *item, step *before)
{
    bool lineage_parent = false, any_parent = false;
    for (uint32_t i = 0; i < item->parent_count; i++) {
        const node *parent = node_at(j->lattice, node_parents(j->lattice, item)[i]);
        if (parent->agent != item->agent || parent->seq != item->seq - 1)
            continue;
        any_parent = true;
        lineage_parent |= cx_lattice_prev_is_hash_of(j->lattice, item, parent);
    }
    bool lineage = lineage_parent;
    if (!lineage)
        CX_TRY(step_has_prev(j, before, item, &lineage));
    if (!lineage)
        CX_TRY(add_finding(j, CX_E_LINEAGE, n, prev_detail(j, n, "the hash of a predecessor")));
    bool contained = lineage ? lineage_parent : any_parent;
    bool asked = (item->flags & NODE_GENERATION_1) == 0 || (item->flags & NODE_PARENTS_FIELD) != 0;
    if (asked && !contained)
        CX_TRY(add_finding(j, CX_E_CONTAIN, n,
                           cx_arena_printf(&j->report->arena,
                                           "expected the node of seq %" PRId64 " among its parents",
                                           item->seq - 1)));
    return CX_SUCCESS;
}

/* Rule 2 for a node where its branch begins. */
static cx_status check_first(verification *j, cx_node n, const node *item)
{
    for (uint32_t i = 0; i < item->parent_count; i++)
        if (cx_lattice_prev_is_hash_of(j->lattice, item,
                                       node_at(j->lattice, node_parents(j->lattice, item)[i])))
            return CX_SUCCESS;
    if (item->parent_count != 0)
        return add_finding(j, CX_E_LINEAGE, n, prev_detail(j, n, "the hash of a parent"));
    if ((item->flags & NODE_MISSING_PARENT) == 0 && (item->flags & NODE_GENESIS_PREV) == 0)
        return add_finding(j, CX_E_LINEAGE, n, prev_detail(j, n, "a genesis word"));
    return CX_SUCCESS;
}

/* A node of a part with a parent elsewhere, and none of the step before it here. */
static bool is_at_edge(const verification *j, cx_node n, const node *item)
{
    if (j->edge == NULL || !j->edge[n])
        return false;
    for (uint32_t i = 0; i < item->parent_count; i++) {
        const node *parent = node_at(j->lattice, node_parents(j->lattice, item)[i]);
        if (parent->agent == item->agent && parent->seq == item->seq - 1)
            return false;
    }
    return true;
}

/* What is left of rules 2 and 3 for such a node: it follows from one of its parents. */
static cx_status check_edge(verification *j, cx_node n, const node *item)
{
    char scratch[64];
    cx_str prev = cx_lattice_prev_text(j->lattice, n, scratch);
    for (size_t i = 0; i < j->lattice->missing.count; i++)
        if (j->lattice->missing.items[i].node == n &&
            cx_str_eq(j->lattice->missing.items[i].text, prev))
            return CX_SUCCESS;
    for (uint32_t i = 0; i < item->parent_count; i++)
        if (cx_lattice_prev_is_hash_of(j->lattice, item,
                                       node_at(j->lattice, node_parents(j->lattice, item)[i])))
            return CX_SUCCESS;
    return add_finding(j, CX_E_LINEAGE, n, prev_detail(j, n, "the hash of a parent"));
}

static cx_status check_step(verification *j, const step *now, step *before, bool is_first)
{
    for (uint32_t i = 0; i < now->count; i++) {
        cx_node n = now->nodes[i];
        const node *item = node_at(j->lattice, n);
        if (i != 0 && node_fork(item) == CX_FORK_NONE)
            CX_TRY(add_finding(j, CX_E_SEQ_DUP, n,
                               cx_arena_printf(&j->report->arena,
                                               "seq %" PRId64 " is taken and no fork_type is given",
                                               item->seq)));
        if (is_at_edge(j, n, item))
            CX_TRY(check_edge(j, n, item));
        else if (is_first)
            CX_TRY(check_first(j, n, item));
        else if (before == NULL)
            CX_TRY(add_finding(j, CX_E_SEQ_GAP, n,
                               cx_arena_printf(&j->report->arena,
                                               "expected a node of seq %" PRId64 " before it",
                                               item->seq - 1)));
        else
            CX_TRY(check_successor(j, n, item, before));
    }
    return CX_SUCCESS;
}

/* Nodes of a branch lie apart from each other: what will be looked at soon is brought on its
 * way. */
static void prefetch_branch(const verification *j, const agent *a, uint32_t at)
{
    enum { AHEAD = 8 };
    if (at + AHEAD >= a->count)
        return;
    const node *item = node_at(j->lattice, j->lattice->branch_nodes[a->first + at + AHEAD]);
    __builtin_prefetch(item);
    __builtin_prefetch(&item->prev);
}

static cx_status check_branch(verification *j, const agent *a)
{
    const cx_node *nodes = j->lattice->branch_nodes + a->first;
    step before = {0};
    for (uint32_t start = 0, end; start < a->count; start = end) {
        prefetch_branch(j, a, start);
        int64_t seq = node_at(j->lattice, nodes[start])->seq;
        for (end = start + 1; end < a->count && node_at(j->lattice, nodes[end])->seq == seq;)
            end++;
        step now = {.nodes = nodes + start, .count = end - start};
        bool follows = before.count != 0 && node_at(j->lattice, before.nodes[0])->seq == seq - 1;
        CX_TRY(check_step(j, &now, follows ? &before : NULL, start == 0));
        before = now;
    }
    return CX_SUCCESS;
}

/* What is found in the branches lies apart, so that two threads can look for it: the findings and
 * their order are the same with one. */
typedef struct branch_check {
    verification j;
    size_t first, end; /* agents */
    cx_lattice_report found;
    cx_status status;
    cx_err err;
} branch_check;

static void branch_check_init(branch_check *b, const verification *j, size_t first, size_t end)
{
    *b = (branch_check){.j = *j, .first = first, .end = end, .status = CX_SUCCESS};
    b->found.alloc = j->report->alloc;
    cx_arena_init(&b->found.arena, j->report->alloc, 0);
    b->j.report = &b->found;
    b->j.suspect = NULL;
    b->j.err = &b->err;
}

static void check_branches(void *arg)
{
    branch_check *b = arg;
    for (size_t i = b->first; i < b->end && !cx_failed(b->status); i++)
        b->status = check_branch(&b->j, &b->j.lattice->agents.items[i]);
}

/* Moves what was found into the report; `status` is that of all before. */
static cx_status collect_findings(verification *j, cx_status status, branch_check *b,
                                  cx_arena *out_details)
{
    cx_lattice_report *report = j->report;
    size_t count = b->found.errors.count;
    CX_ASSERT(b->found.warnings.count == 0);
    *out_details = b->found.arena;
    if (!cx_failed(status) && cx_failed(b->status)) {
        status = b->status;
        if (j->err != NULL)
            *j->err = b->err;
    }
    if (!cx_failed(status) &&
        !cx_vec_reserve(&report->errors, report->errors.count + count, report->alloc))
        status = cx_fail_nomem(j->err);
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        report->errors.items[report->errors.count++] = b->found.errors.items[i];
        suspect_node(j, b->found.errors.items[i].node);
    }
    cx_vec_done(&b->found.errors, report->alloc);
    return status;
}

/* As many agents, from the first on, as have that part of the nodes. */
static size_t agents_with(const cx_lattice *lattice, uint64_t eighths)
{
    uint64_t sum = 0, wanted = lattice->branch_node_count * eighths / 8;
    size_t count = 0;
    while (count < lattice->agents.count && sum < wanted)
        sum += lattice->agents.items[count++].count;
    return count;
}

/*
 * All branches cost about four times what all nodes do, as they lie apart in memory.  So the helper
 * gets five of eight parts of them, and who started it the nodes and the rest.
 */
static cx_status check_nodes_and_branches(verification *j)
{
    const cx_lattice *lattice = j->lattice;
    bool many = lattice->threads > 1 && lattice->nodes.count >= MANY_NODES;
    size_t parted = agents_with(lattice, many ? 5 : 0);
    branch_check first, rest;
    branch_check_init(&first, j, 0, parted);
    branch_check_init(&rest, j, parted, lattice->agents.count);
    cx_thread helper = {0};
    bool started = many && cx_thread_start(&helper, check_branches, &first);
    cx_status status = check_nodes(j);
    if (!started && !cx_failed(status))
        check_branches(&first);
    if (!cx_failed(status))
        check_branches(&rest);
    cx_thread_join(&helper);
    status = collect_findings(j, status, &first, &j->report->branch_arenas[0]);
    return collect_findings(j, status, &rest, &j->report->branch_arenas[1]);
}

/* --- anchor (§5.2) ---------------------------------------------------------------------------- */

static cx_status check_head(verification *j, const cx_lattice_head *head)
{
    uint32_t index = cx_lattice_find_agent(j->lattice, head->agent);
    cx_node n = index == NO_AGENT ? CX_NODE_NONE : cx_lattice_head_of(j->lattice, index);
    if (n == CX_NODE_NONE)
        return add_finding_apart(j, CX_E_HEAD, head->agent,
                                 CX_STR("the lattice has no such agent"));
    char scratch[64];
    if (cx_str_eq(cx_lattice_hash_text(j->lattice, n, scratch), head->hash))
        return CX_SUCCESS;
    cx_str expected = shortened(head->hash, 80);
    return add_finding(j, CX_E_HEAD, n,
                       cx_arena_printf(&j->report->arena, "expected the head %.*s",
                                       (int)expected.size, expected.data));
}

static cx_status check_root(verification *j, const cx_lattice_anchor *anchor)
{
    if (!j->lattice->keep_seals)
        return cx_fail(j->err, CX_E_USAGE, "an anchor needs a lattice opened with keep_seals");
    cx_digest root;
    CX_TRY(cx_lattice_root(j->lattice, &root, j->err));
    if (j->lattice->nodes.count != anchor->nodes)
        return add_finding_apart(j, CX_E_ROOT, CX_STR("*"),
                                 cx_arena_printf(&j->report->arena,
                                                 "expected %" PRIu64 " nodes, found %zu",
                                                 anchor->nodes, j->lattice->nodes.count));
    if (!cx_digest_eq(&root, &anchor->root))
        return add_finding_apart(j, CX_E_ROOT, CX_STR("*"),
                                 CX_STR("the root over all nodes differs"));
    return CX_SUCCESS;
}

/* Agents of the lattice against those of the anchor: how many it has a head for, and in a whole
 * anchor, none beyond it. */
static cx_status check_agents(verification *j, const cx_lattice_anchor *anchor,
                              const cx_map *anchored, bool *out_all)
{
    *out_all = true;
    for (uint32_t i = 0; i < j->lattice->agents.count; i++) {
        cx_node n = cx_lattice_head_of(j->lattice, i);
        if (n == CX_NODE_NONE || cx_map_find(anchored, j->lattice->agents.items[i].name) != NULL)
            continue;
        *out_all = false;
        if (anchor->whole)
            CX_TRY(add_finding(j, CX_E_HEAD, n, CX_STR("the anchor knows no such agent")));
    }
    return CX_SUCCESS;
}

static cx_status check_anchor(verification *j, const cx_lattice_anchor *anchor)
{
    size_t errors = j->report->errors.count;
    bool all = false;
    cx_map anchored;
    cx_status status;
    cx_map_init(&anchored, j->lattice->alloc, j->lattice->seed);
    for (size_t i = 0; i < anchor->head_count; i++) {
        uint64_t *slot;
        CX_TRY_GOTO(status, cx_map_put(&anchored, anchor->heads[i].agent, &slot, NULL, j->err));
        CX_TRY_GOTO(status, check_head(j, &anchor->heads[i]));
    }
    CX_TRY_GOTO(status, check_agents(j, anchor, &anchored, &all));
    if (anchor->whole)
        CX_TRY_GOTO(status, check_root(j, anchor));
    cx_lattice_evidence *evidence = &j->report->evidence;
    if (j->report->errors.count != errors)
        evidence->anchor = CX_ANCHOR_BAD;
    else if (anchor->whole)
        evidence->anchor = CX_ANCHOR_ROOT;
    else
        evidence->anchor = all ? CX_ANCHOR_HEADS : CX_ANCHOR_SOME_HEADS;
    status = CX_SUCCESS;
done:
    cx_map_done(&anchored);
    return status;
}

/* --- summing up ------------------------------------------------------------------------------- */

static int compare_findings(const void *a, const void *b)
{
    const cx_lattice_finding *left = a, *right = b;
    if (left->code != right->code)
        return left->code < right->code ? -1 : 1;
    int order = cx_str_cmp(left->id, right->id);
    if (order == 0)
        order = cx_str_cmp(left->agent, right->agent);
    return order != 0 ? order : cx_str_cmp(left->detail, right->detail);
}

static int compare_by_agent(const void *a, const void *b)
{
    const cx_lattice_finding *left = a, *right = b;
    int order = cx_str_cmp(left->agent, right->agent);
    return order != 0 ? order : compare_findings(a, b);
}

static void weigh_evidence(verification *j)
{
    cx_lattice_evidence *e = &j->report->evidence;
    for (size_t i = 0; i < j->report->errors.count; i++) {
        switch (j->report->errors.items[i].code) {
        case CX_E_HASH: e->hash = false; break;
        case CX_E_SEQ_DUP:
        case CX_E_SEQ_GAP: e->monotonic = false; break;
        case CX_E_LINEAGE: e->lineage = false; break;
        case CX_E_CONTAIN: e->containment = false; break;
        case CX_E_SCHEMA:
        case CX_E_VERSION:
        case CX_E_FORK_TYPE:
        case CX_E_DUP_ID:
        case CX_E_MISSING_PARENT:
        case CX_E_CYCLE: e->structure = false; break;
        default: break;
        }
    }
}

/* A node that was left out leaves its id in doubt: children name parents by id, and which of the
 * two is meant cannot be known. */
static void suspect_namesakes(verification *j)
{
    for (size_t i = 0; i < j->report->errors.count; i++) {
        const cx_lattice_finding *f = &j->report->errors.items[i];
        if (f->node == CX_NODE_NONE || in_graph(node_at(j->lattice, f->node)))
            continue;
        cx_node namesake = cx_lattice_find_id(j->lattice, f->id);
        if (namesake != CX_NODE_NONE)
            j->suspect[namesake] = 1;
    }
}

/* A node is suspect when an ancestor is; after a cycle everything is. */
static void spread_suspicion(verification *j)
{
    const cx_lattice *lattice = j->lattice;
    if (j->report->errors.count == 0)
        return; /* no cycle either: that would be one */
    suspect_namesakes(j);
    for (uint32_t i = 0; i < lattice->order_count; i++) {
        cx_node n = lattice->order[i];
        const node *item = node_at(lattice, n);
        for (uint32_t k = 0; k < item->parent_count && !j->suspect[n]; k++)
            j->suspect[n] = j->suspect[node_parents(lattice, item)[k]];
    }
    for (cx_node n = 0; n < lattice->nodes.count; n++)
        if (node_at(lattice, n)->flags & NODE_NO_ORDER)
            j->suspect[n] = 1;
}

/* This agent's run of findings sorted by agent. */
static const cx_lattice_finding *findings_of(const cx_lattice_finding *sorted, size_t count,
                                             cx_str agent_name, size_t *out_count)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cx_str_cmp(sorted[middle].agent, agent_name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < count && cx_str_eq(sorted[end].agent, agent_name))
        end++;
    *out_count = end - low;
    return sorted + low;
}

typedef struct branch_place {
    uint32_t agent;
    uint32_t position; /* earliest, UINT32_MAX without one */
    cx_str name;
} branch_place;

static int compare_places(const void *a, const void *b)
{
    const branch_place *left = a, *right = b;
    if (left->position != right->position)
        return left->position < right->position ? -1 : 1;
    return cx_str_cmp(left->name, right->name);
}

/*
 * Strangers are agents that errors name and no node has: "?" for nodes without an agent, and those
 * only an anchor knows.  They are shown as branches, for under a branch its errors are told.
 * Writes them to places unless that is NULL; how many there are.
 */
static size_t place_strangers(const verification *j, branch_place *places)
{
    const cx_lattice_report *r = j->report;
    size_t count = 0;
    for (size_t i = 0; i < r->errors.count; i++) {
        cx_str name = r->by_branch.items[i].agent;
        if (r->by_branch.items[i].code == CX_E_ROOT ||
            (i != 0 && cx_str_eq(name, r->by_branch.items[i - 1].agent)) ||
            cx_lattice_find_agent(j->lattice, name) != NO_AGENT)
            continue;
        if (places != NULL)
            places[count] = (branch_place){NO_AGENT, UINT32_MAX, name};
        count++;
    }
    return count;
}

/* All branches in the order they are told in; NULL without memory. */
static branch_place *place_branches(const verification *j, size_t *out_count)
{
    const cx_lattice *lattice = j->lattice;
    size_t known = lattice->agents.count, count = known + place_strangers(j, NULL);
    branch_place *places = CX_ARENA_ARRAY(&j->report->arena, branch_place, count + 1);
    if (places == NULL)
        return NULL;
    for (uint32_t i = 0; i < known; i++) {
        const agent *a = &lattice->agents.items[i];
        places[i] = (branch_place){i, UINT32_MAX, a->name};
        for (uint32_t k = 0; k < a->count; k++) {
            uint32_t position = lattice->position[lattice->branch_nodes[a->first + k]];
            if (position < places[i].position)
                places[i].position = position;
        }
    }
    place_strangers(j, places + known);
    qsort(places, count, sizeof *places, compare_places);
    *out_count = count;
    return places;
}

static bool has_suspect(const verification *j, const agent *a)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (j->suspect[j->lattice->branch_nodes[a->first + i]])
            return true;
    return false;
}

static cx_status copy_by_agent(verification *j)
{
    cx_lattice_report *r = j->report;
    if (!cx_vec_reserve(&r->by_branch, r->errors.count + 1, r->alloc) ||
        !cx_vec_reserve(&r->warnings_by_branch, r->warnings.count + 1, r->alloc))
        return cx_fail_nomem(j->err);
    if (r->errors.count != 0) {
        memcpy(r->by_branch.items, r->errors.items, r->errors.count * sizeof *r->errors.items);
        qsort(r->by_branch.items, r->errors.count, sizeof *r->errors.items, compare_by_agent);
    }
    if (r->warnings.count != 0) {
        memcpy(r->warnings_by_branch.items, r->warnings.items,
               r->warnings.count * sizeof *r->warnings.items);
        qsort(r->warnings_by_branch.items, r->warnings.count, sizeof *r->warnings.items,
              compare_by_agent);
    }
    return CX_SUCCESS;
}

static cx_status sum_up(verification *j)
{
    const cx_lattice *lattice = j->lattice;
    cx_lattice_report *r = j->report;
    if (r->errors.count != 0)
        qsort(r->errors.items, r->errors.count, sizeof *r->errors.items, compare_findings);
    if (r->warnings.count != 0)
        qsort(r->warnings.items, r->warnings.count, sizeof *r->warnings.items, compare_findings);
    weigh_evidence(j);
    CX_TRY(copy_by_agent(j));
    bool any_suspect = r->errors.count != 0;
    if (any_suspect)
        spread_suspicion(j);
    branch_place *places = place_branches(j, &r->branch_count);
    r->branches = CX_ARENA_ARRAY(&r->arena, cx_lattice_branch, r->branch_count + 1);
    if (places == NULL || r->branches == NULL)
        return cx_fail_nomem(j->err);
    for (size_t i = 0; i < r->branch_count; i++) {
        const branch_place *place = &places[i];
        cx_lattice_branch *b = &r->branches[i];
        *b = (cx_lattice_branch){.agent = place->name};
        b->errors = findings_of(r->by_branch.items, r->errors.count, place->name, &b->error_count);
        b->warnings = findings_of(r->warnings_by_branch.items, r->warnings.count, place->name,
                                  &b->warning_count);
        b->valid = b->error_count == 0;
        b->tainted =
            b->valid && any_suspect && has_suspect(j, &lattice->agents.items[place->agent]);
        r->invalid_count += !b->valid;
    }
    return CX_SUCCESS;
}

static cx_status verify_all(verification *j)
{
    j->report->evidence = (cx_lattice_evidence){true,          true, true, true,          true,
                                                CX_SEALS_NONE, true, true, CX_ANCHOR_NONE};
    CX_TRY(report_complaints(j));
    CX_TRY(check_nodes_and_branches(j));
    if (j->checks->anchor != NULL)
        CX_TRY(check_anchor(j, j->checks->anchor));
    return sum_up(j);
}

/* Which nodes are at the edge of a part. */
static cx_status find_edge(verification *j)
{
    const cx_lattice *lattice = j->lattice;
    if (j->known == NULL)
        return CX_SUCCESS;
    j->edge = cx_alloc_zeroed(lattice->alloc, lattice->nodes.count + 1, 1);
    if (j->edge == NULL)
        return cx_fail_nomem(j->err);
    for (size_t i = 0; i < lattice->missing.count; i++)
        j->edge[lattice->missing.items[i].node] = 1;
    for (size_t i = 0; i < lattice->missing.count; i++)
        if (!j->known[i])
            j->edge[lattice->missing.items[i].node] = 0;
    return CX_SUCCESS;
}

cx_status cx_lattice_verify_part(const cx_lattice *lattice, const cx_lattice_checks *checks,
                                 const bool *known, cx_lattice_report **out, cx_err *err)
{
    static const cx_lattice_checks plain = CX_LATTICE_CHECKS_INIT;
    cx_lattice_report *report = cx_alloc_zeroed(lattice->alloc, 1, sizeof *report);
    if (report == NULL)
        return cx_fail_nomem(err);
    report->alloc = lattice->alloc;
    cx_arena_init(&report->arena, lattice->alloc, 0);
    for (size_t i = 0; i < CX_COUNT_OF(report->branch_arenas); i++)
        cx_arena_init(&report->branch_arenas[i], lattice->alloc, 0);
    verification j = {.lattice = lattice,
                      .checks = checks != NULL ? checks : &plain,
                      .report = report,
                      .err = err,
                      .known = known};
    j.suspect = cx_alloc_zeroed(lattice->alloc, lattice->nodes.count + 1, 1);
    cx_status status = j.suspect == NULL ? cx_fail_nomem(err) : find_edge(&j);
    if (!cx_failed(status))
        status = verify_all(&j);
    cx_alloc_free(lattice->alloc, j.suspect, lattice->nodes.count + 1);
    cx_alloc_free(lattice->alloc, j.edge, lattice->nodes.count + 1);
    if (cx_failed(status))
        cx_lattice_report_close(report);
    else
        *out = report;
    return status;
}

cx_status cx_lattice_verify(const cx_lattice *lattice, const cx_lattice_checks *checks,
                            cx_lattice_report **out, cx_err *err)
{
    return cx_lattice_verify_part(lattice, checks, NULL, out, err);
}

size_t cx_lattice_missing_count(const cx_lattice *lattice)
{
    return lattice->missing.count;
}

cx_str cx_lattice_missing(const cx_lattice *lattice, size_t i, cx_node *out_child)
{
    CX_ASSERT(i < lattice->missing.count);
    *out_child = lattice->missing.items[i].node;
    return lattice->missing.items[i].text;
}

void cx_lattice_report_close(cx_lattice_report *report)
{
    if (report == NULL)
        return;
    const cx_alloc *alloc = report->alloc;
    cx_vec_done(&report->errors, alloc);
    cx_vec_done(&report->warnings, alloc);
    cx_vec_done(&report->by_branch, alloc);
    cx_vec_done(&report->warnings_by_branch, alloc);
    cx_arena_done(&report->arena);
    for (size_t i = 0; i < CX_COUNT_OF(report->branch_arenas); i++)
        cx_arena_done(&report->branch_arenas[i]);
    cx_alloc_free(alloc, report, sizeof *report);
}

cx_verdict cx_lattice_report_verdict(const cx_lattice_report *report)
{
    return report->errors.count == 0 ? CX_HOLDS : CX_BROKEN;
}

const cx_lattice_evidence *cx_lattice_report_evidence(const cx_lattice_report *report)
{
    return &report->evidence;
}

const cx_lattice_finding *cx_lattice_report_errors(const cx_lattice_report *report,
                                                   size_t *out_count)
{
    *out_count = report->errors.count;
    return report->errors.items;
}

const cx_lattice_finding *cx_lattice_report_warnings(const cx_lattice_report *report,
                                                     size_t *out_count)
{
    *out_count = report->warnings.count;
    return report->warnings.items;
}

const cx_lattice_branch *cx_lattice_report_branches(const cx_lattice_report *report,
                                                    size_t *out_count)
{
    *out_count = report->branch_count;
    return report->branches;
}

const char *cx_lattice_code_name(cx_lattice_code code)
{
    static const char *const names[CX_LATTICE_CODE_COUNT] = {
        [CX_E_AMBIGUOUS] = "E_AMBIGUOUS", [CX_E_CONTAIN] = "E_CONTAIN",
        [CX_E_CYCLE] = "E_CYCLE",         [CX_E_DUP_ID] = "E_DUP_ID",
        [CX_E_FORK_TYPE] = "E_FORK_TYPE", [CX_E_HASH] = "E_HASH",
        [CX_E_HEAD] = "E_HEAD",           [CX_E_ID] = "E_ID",
        [CX_E_LINEAGE] = "E_LINEAGE",     [CX_E_MISSING_PARENT] = "E_MISSING_PARENT",
        [CX_E_ROOT] = "E_ROOT",           [CX_E_SCHEMA] = "E_SCHEMA",
        [CX_E_SEAL] = "E_SEAL",           [CX_E_SEAL_MISSING] = "E_SEAL_MISSING",
        [CX_E_SEQ_DUP] = "E_SEQ_DUP",     [CX_E_SEQ_GAP] = "E_SEQ_GAP",
        [CX_E_TIME] = "E_TIME",           [CX_E_VERSION] = "E_VERSION",
        [CX_W_TIME] = "W_TIME",
    };
    CX_ASSERT((size_t)code < CX_COUNT_OF(names));
    return names[code];
}
