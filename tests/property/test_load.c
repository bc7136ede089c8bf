/*
 * test_load.c - random lattices, damaged at random: the verdict is that of a naive model written
 * straight from lattice.md §4 over plain arrays, and it is the same in every form, order, number of
 * threads and kind of source.
 */
#include "lattice/lattice.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/fault.h"
#include "tests/support/lattice_text.h"
#include "tests/test.h"

enum { NODES_MAX = 14, PARENTS_MAX = 4 };

typedef struct random_node {
    char id[16];
    char agent[16];
    int64_t seq;
    int time;
    char prev[65], hash[65];
    char parents[PARENTS_MAX][66];
    int parent_count;
    bool fork, bad_hash;
} random_node;

typedef struct random_lattice {
    random_node nodes[NODES_MAX];
    int count;
} random_lattice;

static int below(uint64_t *state, int limit)
{
    return (int)(cx_test_random(state) % (uint64_t)limit);
}

static void write_node(cx_buf *out, random_node *n)
{
    node_spec spec = {.id = n->id,
                      .agent = n->agent,
                      .seq = n->seq,
                      .prev = n->prev,
                      .parent_count = (size_t)n->parent_count,
                      .fork = n->fork ? "natural" : NULL};
    char time[16], hash[65];
    (void)snprintf(time, sizeof time, "%d", n->time);
    spec.timestamp = time;
    for (int i = 0; i < n->parent_count; i++)
        spec.parents[i] = n->parents[i];
    if (n->bad_hash)
        spec.hash = n->hash;
    lattice_text_node(out, &spec, hash);
    if (!n->bad_hash)
        memcpy(n->hash, hash, sizeof hash);
}

static void name_parent(random_node *n, const char *name)
{
    memcpy(n->parents[n->parent_count++], name, strlen(name) + 1);
}

/* Mostly right: each node follows another of its agent, sometimes merging or forking. */
static void grow(random_lattice *l, uint64_t *state)
{
    cx_buf unused;
    cx_buf_init(&unused, cx_alloc_default());
    l->count = 2 + below(state, NODES_MAX - 2);
    for (int i = 0; i < l->count; i++) {
        random_node *n = &l->nodes[i];
        *n = (random_node){.time = i * 2 - (below(state, 8) == 0 ? 5 : 0)};
        (void)snprintf(n->id, sizeof n->id, "n%d", below(state, 30) == 0 ? i / 2 : (i * 7) % 97);
        (void)snprintf(n->agent, sizeof n->agent, "%c", 'a' + below(state, 3));
        memcpy(n->prev, ZEROS, sizeof n->prev);
        int before = -1;
        for (int k = 0; k < i; k++)
            if (strcmp(l->nodes[k].agent, n->agent) == 0 && (before < 0 || below(state, 4) != 0))
                before = k;
        if (before < 0 && i > 0 && below(state, 2) == 0)
            before = below(state, i); /* begins as a child of another agent */
        if (before >= 0) {
            const random_node *b = &l->nodes[before];
            n->seq = strcmp(b->agent, n->agent) == 0 ? b->seq + 1 : 0;
            memcpy(n->prev, b->hash, sizeof n->prev);
            name_parent(n, below(state, 6) == 0 ? b->hash : b->id);
        }
        n->fork = below(state, 3) == 0;
        while (i > 1 && n->parent_count < 3 && below(state, 3) == 0)
            name_parent(n, l->nodes[below(state, i)].id);
        switch (below(state, 12)) { /* damage */
        case 0: n->seq += below(state, 3) - 1; break;
        case 1:
            n->bad_hash = true;
            memset(n->hash, 'e', 64);
            break;
        case 2: name_parent(n, "none"); break;
        case 3: (void)snprintf(n->parents[n->parent_count++], 66, "n%d", (7 * (i + 1)) % 97); break;
        case 4: n->parent_count = 0; break;
        case 5: memset(n->prev, 'd', 64); break;
        case 6: n->prev[0] = 0; break;
        default: break;
        }
        if (n->seq < 0)
            n->seq = 0;
        write_node(&unused, n);
    }
    cx_buf_done(&unused);
}

/* --- the naive model -------------------------------------------------------------------------- */

typedef struct model {
    const random_lattice *l;
    bool out[NODES_MAX]; /* left out: a repeated id */
    int parents[NODES_MAX][PARENTS_MAX];
    int parent_count[NODES_MAX];
    bool missing[NODES_MAX];
    bool reach[NODES_MAX][NODES_MAX]; /* [a][b]: b is a proper ancestor of a */
    char errors[NODES_MAX * 8][64];
    int error_count;
    char warnings[NODES_MAX * 8][64];
    int warning_count;
    bool suspect[NODES_MAX]; /* has an error, or its id was met again */
} model;

static void raise_on(model *m, const char *code, int n)
{
    const random_node *node = &m->l->nodes[n];
    bool warning = code[0] == 'W';
    char *line = warning ? m->warnings[m->warning_count++] : m->errors[m->error_count++];
    (void)snprintf(line, 64, "%s:%s@%s", code, node->id, node->agent);
    if (!warning && !m->out[n])
        m->suspect[n] = true;
}

static bool earlier(const random_node *a, const random_node *b)
{
    return a->time != b->time ? a->time < b->time : strcmp(a->id, b->id) < 0;
}

static int resolve(const model *m, const char *name)
{
    int best = -1;
    for (int i = 0; i < m->l->count; i++)
        if (!m->out[i] && strcmp(m->l->nodes[i].id, name) == 0)
            return i;
    for (int i = 0; i < m->l->count; i++)
        if (!m->out[i] && strcmp(m->l->nodes[i].hash, name) == 0 &&
            (best < 0 || strcmp(m->l->nodes[i].id, m->l->nodes[best].id) < 0))
            best = i;
    return best;
}

static void model_graph(model *m)
{
    const random_lattice *l = m->l;
    for (int i = 0; i < l->count; i++)
        for (int k = 0; k < i; k++)
            if (!m->out[k] && strcmp(l->nodes[i].id, l->nodes[k].id) == 0)
                m->out[i] = m->suspect[k] = true;
    for (int i = 0; i < l->count; i++) {
        if (m->out[i]) {
            raise_on(m, "E_DUP_ID", i);
            continue;
        }
        bool twice = false;
        for (int p = 0; p < l->nodes[i].parent_count; p++) {
            int found = resolve(m, l->nodes[i].parents[p]);
            if (found < 0) {
                raise_on(m, "E_MISSING_PARENT", i);
                m->missing[i] = true;
                for (int k = 0; k < p; k++)
                    twice |= strcmp(l->nodes[i].parents[k], l->nodes[i].parents[p]) == 0;
                continue;
            }
            bool known = false;
            for (int k = 0; k < m->parent_count[i]; k++)
                known |= m->parents[i][k] == found;
            twice |= known;
            if (!known)
                m->parents[i][m->parent_count[i]++] = found;
            m->reach[i][found] = true;
        }
        if (twice)
            raise_on(m, "E_SCHEMA", i);
        if (l->nodes[i].bad_hash)
            raise_on(m, "E_HASH", i);
    }
    for (int k = 0; k < l->count; k++)
        for (int i = 0; i < l->count; i++)
            for (int j = 0; j < l->count; j++)
                m->reach[i][j] |= m->reach[i][k] && m->reach[k][j];
    for (int i = 0; i < l->count; i++) {
        bool above = m->reach[i][i], beneath = m->reach[i][i];
        for (int k = 0; k < l->count; k++) {
            above |= m->reach[k][k] && m->reach[i][k];
            beneath |= m->reach[k][k] && m->reach[k][i];
        }
        if (above && beneath)
            raise_on(m, "E_CYCLE", i);
        for (int p = 0; p < m->parent_count[i]; p++)
            if (l->nodes[i].time < l->nodes[m->parents[i][p]].time)
                raise_on(m, "W_TIME", i);
    }
}

static bool has_parent(const model *m, int n, int parent)
{
    for (int p = 0; p < m->parent_count[n]; p++)
        if (m->parents[n][p] == parent)
            return true;
    return false;
}

static void model_branch_node(model *m, int n)
{
    const random_lattice *l = m->l;
    const random_node *node = &l->nodes[n];
    bool first = true, before = false, twin = false, lineage = false, contained = false,
         any_contained = false;
    for (int k = 0; k < l->count; k++) {
        const random_node *other = &l->nodes[k];
        if (m->out[k] || strcmp(other->agent, node->agent) != 0)
            continue;
        first &= other->seq >= node->seq;
        twin |= k != n && other->seq == node->seq && earlier(other, node);
        if (other->seq != node->seq - 1)
            continue;
        before = true;
        any_contained |= has_parent(m, n, k);
        if (strcmp(other->hash, node->prev) == 0) {
            lineage = true;
            contained |= has_parent(m, n, k);
        }
    }
    if (twin && !node->fork)
        raise_on(m, "E_SEQ_DUP", n);
    if (first) {
        bool right = m->parent_count[n] == 0 &&
                     (m->missing[n] || node->prev[0] == 0 || strcmp(node->prev, ZEROS) == 0);
        for (int p = 0; p < m->parent_count[n]; p++)
            right |= strcmp(l->nodes[m->parents[n][p]].hash, node->prev) == 0;
        if (!right)
            raise_on(m, "E_LINEAGE", n);
    } else if (!before) {
        raise_on(m, "E_SEQ_GAP", n);
    } else {
        if (!lineage)
            raise_on(m, "E_LINEAGE", n);
        if (!(lineage ? contained : any_contained))
            raise_on(m, "E_CONTAIN", n);
    }
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The findings, sorted as plain lines, then the tainted agents. */
static void model_verdict(cx_buf *out, const random_lattice *l)
{
    static model m;
    m = (model){.l = l};
    model_graph(&m);
    for (int i = 0; i < l->count; i++)
        if (!m.out[i])
            model_branch_node(&m, i);
    qsort(m.errors, (size_t)m.error_count, sizeof m.errors[0], compare_lines);
    qsort(m.warnings, (size_t)m.warning_count, sizeof m.warnings[0], compare_lines);
    for (int i = 0; i < m.error_count; i++)
        cx_buf_printf(out, "%s ", m.errors[i]);
    for (int i = 0; i < m.warning_count; i++)
        cx_buf_printf(out, "%s ", m.warnings[i]);
    for (char agent = 'a'; agent <= 'c'; agent++) {
        bool valid = true, tainted = false;
        for (int i = 0; i < m.error_count; i++)
            valid &= m.errors[i][strlen(m.errors[i]) - 1] != agent;
        for (int i = 0; i < l->count; i++) {
            if (m.out[i] || l->nodes[i].agent[0] != agent)
                continue;
            tainted |= m.suspect[i]; /* where the branch is valid: its id was met again */
            for (int k = 0; k < l->count; k++)
                tainted |= m.reach[i][k] && (m.suspect[k] || m.reach[k][k]);
        }
        if (valid && tainted)
            cx_buf_printf(out, "~%c", agent);
    }
}

static void lattice_verdict(cx_buf *out, const cx_lattice *lattice)
{
    static char lines[NODES_MAX * 16][64];
    cx_lattice_report *report;
    cx_err err;
    CHECK_STATUS(cx_lattice_verify(lattice, NULL, &report, &err), &err);
    for (int kind = 0; kind < 2; kind++) {
        size_t count;
        const cx_lattice_finding *findings = kind == 0 ? cx_lattice_report_errors(report, &count)
                                                       : cx_lattice_report_warnings(report, &count);
        for (size_t i = 0; i < count; i++)
            (void)snprintf(lines[i], sizeof lines[i], "%s:%.*s@%.*s",
                           cx_lattice_code_name(findings[i].code), (int)findings[i].id.size,
                           findings[i].id.data, (int)findings[i].agent.size,
                           findings[i].agent.data);
        qsort(lines, count, sizeof lines[0], compare_lines);
        for (size_t i = 0; i < count; i++)
            cx_buf_printf(out, "%s ", lines[i]);
    }
    for (char agent = 'a'; agent <= 'c'; agent++) {
        size_t count;
        const cx_lattice_branch *branches = cx_lattice_report_branches(report, &count);
        for (size_t i = 0; i < count; i++)
            if (branches[i].agent.data[0] == agent && branches[i].tainted)
                cx_buf_printf(out, "~%c", agent);
    }
    cx_lattice_report_close(report);
}

static void lines_of(cx_buf *out, random_lattice *l)
{
    for (int i = 0; i < l->count; i++) {
        write_node(out, &l->nodes[i]);
        cx_buf_add_byte(out, '\n');
    }
}

CX_TEST(load_verdicts_agree_with_a_naive_model)
{
    uint64_t state = cx_test_seed();
    unsigned holding = 0;
    for (int round = 0; round < 6000; round++) {
        random_lattice l;
        cx_buf text, expected, found;
        cx_lattice *lattice;
        cx_err err;
        uint64_t seed = state;
        cx_buf_init(&text, cx_alloc_default());
        cx_buf_init(&expected, cx_alloc_default());
        cx_buf_init(&found, cx_alloc_default());
        grow(&l, &state);
        lines_of(&text, &l);
        model_verdict(&expected, &l);
        CHECK_STATUS(cx_lattice_open_bytes(cx_buf_bytes(&text), NULL, &lattice, &err), &err);
        lattice_verdict(&found, lattice);
        cx_lattice_close(lattice);
        holding += expected.size == 0;
        bool same = cx_str_eq(cx_buf_str(&found), cx_buf_str(&expected));
        if (!same)
            cx_test_fail(__FILE__, __LINE__, "state %llu:\nfound    %s\nexpected %s\n%s",
                         (unsigned long long)seed, cx_buf_z(&found), cx_buf_z(&expected),
                         cx_buf_z(&text));
        cx_buf_done(&text);
        cx_buf_done(&expected);
        cx_buf_done(&found);
        if (!same)
            return;
    }
    CHECK(holding > 100 && holding < 3000); /* both kinds were tried */
}

/* --- every way in ----------------------------------------------------------------------------- */

static void full_report(cx_buf *out, const cx_lattice *lattice)
{
    cx_lattice_report *report;
    cx_err err;
    CHECK_STATUS(cx_lattice_verify(lattice, NULL, &report, &err), &err);
    lattice_text_report(out, lattice, report);
    cx_lattice_report_close(report);
    cx_buf_add_z(out, " ^ ");
    CHECK_STATUS(cx_lattice_anchor_json(out, lattice, &err), &err);
}

typedef enum way { MEMORY, FILE_1, FILE_4, PIPE, WAYS } way;

static void check_same_at(int at, cx_str text, way how, cx_buf *expected)
{
    cx_lattice *lattice = NULL;
    cx_err err;
    cx_buf found;
    fault_io pipe_like;
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    options.keep_seals = true;
    options.threads = how == FILE_4 ? 4 : 1;
    cx_buf_init(&found, cx_alloc_default());
    fault_io_init(&pipe_like, cx_io_system(), 0, FAULT_NEVER, false);
    pipe_like.no_size = how == PIPE;
    const char *path = how == MEMORY ? NULL : lattice_text_file("ways", text);
    cx_status status = path == NULL
                           ? cx_lattice_open_bytes(cx_str_bytes(text), &options, &lattice, &err)
                           : cx_lattice_open_io(&pipe_like.io, path, &options, &lattice, &err);
    if (path != NULL)
        (void)unlink(path);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, at, "way %d: %s", (int)how, err.message);
    } else {
        full_report(&found, lattice);
        cx_lattice_close(lattice);
        if (expected->size == 0)
            cx_buf_add_str(expected, cx_buf_str(&found));
        else if (!cx_str_eq(cx_buf_str(&found), cx_buf_str(expected)))
            cx_test_fail(__FILE__, at, "way %d:\nfound    %.600s\nexpected %.600s", (int)how,
                         cx_buf_z(&found), cx_buf_z(expected));
    }
    cx_buf_done(&found);
}

static void check_all_forms(int at, cx_str lines)
{
    cx_buf forms[4], expected;
    cx_buf_init(&expected, cx_alloc_default());
    for (int i = 0; i < 4; i++)
        cx_buf_init(&forms[i], cx_alloc_default());
    cx_buf_add_str(&forms[0], lines);
    lattice_text_array(&forms[1], lines);
    lattice_text_wrapped(&forms[2], lines, "2.0.0", true);
    lattice_text_wrapped(&forms[3], lines, "2.0.0", false);
    for (int i = 0; i < 4; i++)
        for (int how = MEMORY; how < WAYS; how++)
            check_same_at(at, cx_buf_str(&forms[i]), (way)how, &expected);
    cx_buf_done(&expected);
    for (int i = 0; i < 4; i++)
        cx_buf_done(&forms[i]);
}

CX_TEST(load_every_form_and_source_gives_one_verdict)
{
    uint64_t state = cx_test_seed() + 1;
    for (int round = 0; round < 40; round++) {
        random_lattice l;
        cx_buf text;
        cx_buf_init(&text, cx_alloc_default());
        grow(&l, &state);
        lines_of(&text, &l);
        check_all_forms(__LINE__, cx_buf_str(&text));
        cx_buf_done(&text);
    }
}

CX_TEST(load_order_of_nodes_changes_nothing)
{
    uint64_t state = cx_test_seed() + 2;
    for (int round = 0; round < 500; round++) {
        random_lattice l;
        cx_buf expected;
        cx_buf_init(&expected, cx_alloc_default());
        grow(&l, &state);
        for (int i = 0; i < l.count; i++) /* of equal ids the first counts: order matters there */
            (void)snprintf(l.nodes[i].id, sizeof l.nodes[i].id, "n%d", (i * 7) % 97);
        for (int turn = 0; turn < 4; turn++) {
            cx_buf text;
            cx_buf_init(&text, cx_alloc_default());
            lines_of(&text, &l);
            check_same_at(__LINE__, cx_buf_str(&text), MEMORY, &expected);
            cx_buf_done(&text);
            for (int i = l.count; i-- > 1;) {
                int k = below(&state, i + 1);
                random_node held = l.nodes[i];
                l.nodes[i] = l.nodes[k];
                l.nodes[k] = held;
            }
        }
        cx_buf_done(&expected);
    }
}

/* Over 2 MiB, so that several readers work on it: random lattices side by side. */
CX_TEST(load_several_readers_give_one_verdict)
{
    uint64_t state = cx_test_seed() + 3;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    while (text.size < ((size_t)5 << 20) / 2) {
        random_lattice l;
        grow(&l, &state);
        for (int i = 0; i < l.count; i++) {
            random_node *n = &l.nodes[i];
            (void)snprintf(n->agent, sizeof n->agent, "%c%c%c", 'a' + below(&state, 26),
                           'a' + below(&state, 26), 'a' + below(&state, 26));
        }
        lines_of(&text, &l);
    }
    check_all_forms(__LINE__, cx_buf_str(&text));
    cx_buf_done(&text);
}
