/*
 * steps.c - records what two agents did, and asks the history: why, since when, where they
 * diverged.
 *
 *     cc steps.c $(pkg-config --cflags --libs cortex) -o steps && ./steps new-folder
 */
#include <cortex/journal.h>
#include <cortex/lattice.h>

#include <stdio.h>
#include <stdlib.h>

static cx_err err;

/* Examples stop at the first error; a program of yours would look at err.code and err.tag. */
static void must(cx_status status)
{
    if (status.code == CX_OK)
        return;
    fprintf(stderr, "%s: %s\n", err.tag != NULL ? err.tag : cx_code_name(err.code), err.message);
    exit(1);
}

static cx_step_node record(cx_ledger *ledger, const char *agent, const char *event,
                           const char *delta, const char *parent)
{
    cx_step_draft draft = CX_STEP_DRAFT_INIT;
    cx_step_node node;
    draft.agent = agent;
    draft.event = event;
    draft.state_delta = delta;
    draft.parents = &parent;
    draft.parent_count = parent != NULL;
    must(cx_step_append(ledger, &draft, &node, &err));
    printf("%s#%lld is %.12s\n", agent, (long long)node.seq, node.hash);
    return node;
}

/* Two writers, one head: the second hears that it is not the newest any more. */
static void race(cx_ledger *ledger, const char *old_head)
{
    cx_step_draft late = CX_STEP_DRAFT_INIT;
    cx_step_node node;
    late.agent = "desk";
    late.head = old_head;
    if (cx_step_append(ledger, &late, &node, &err).code != CX_E_CONFLICT)
        exit(1);
    must(cx_step_head(ledger, "desk", &node, &err));
    printf("conflict: the head is desk#%lld by now\n", (long long)node.seq);
}

static void show(const char *question, cx_status status, cx_owned *answer)
{
    must(status);
    printf("%s %s%s", question, cx_owned_text(answer),
           answer->size != 0 && answer->data[answer->size - 1] == '\n' ? "" : "\n");
    cx_owned_done(answer);
}

static cx_node find(const cx_lattice *lattice, const char *name)
{
    cx_node node = CX_NODE_NONE;
    must(cx_lattice_resolve(lattice, cx_str_z(name), &node, &err));
    return node;
}

static void ask(const cx_lattice *lattice)
{
    cx_owned answer = CX_OWNED_INIT;
    cx_question manual = CX_QUESTION_INIT;
    const cx_node desk = find(lattice, "@desk"), clerk = find(lattice, "clerk#1");
    const cx_node both[2] = {desk, clerk};
    show("limit:", cx_lattice_ask_value(lattice, desk, "/memory/order/limit", NULL, &answer, &err),
         &answer);
    show("state:", cx_lattice_ask_state(lattice, desk, false, NULL, &answer, &err), &answer);
    show("why:", cx_lattice_ask_why(lattice, desk, "memory.order.limit", NULL, &answer, &err),
         &answer);
    show("since:",
         cx_lattice_ask_bisect(lattice, desk, "/memory/order/limit>500", NULL, &answer, &err),
         &answer);
    show("compare:", cx_lattice_ask_compare(lattice, desk, clerk, NULL, &answer, &err), &answer);
    show("heatmap:", cx_lattice_ask_heatmap(lattice, NULL, &answer, &err), &answer);
    manual.states.strategy = CX_MERGE_MANUAL;
    show("merged:", cx_lattice_ask_merge(lattice, both, 2, &manual, &answer, &err), &answer);
    if (cx_lattice_ask_why(lattice, desk, "memory.order.limt", NULL, &answer, &err).code !=
        CX_E_NOT_FOUND)
        exit(1);
    printf("%s\n", err.message);
}

int main(int argc, char **argv)
{
    cx_ledger *ledger;
    cx_lattice *lattice;
    cx_lattice_options options = CX_LATTICE_OPTIONS_INIT;
    if (argc != 2) {
        fprintf(stderr, "usage: steps NEW-FOLDER\n");
        return 2;
    }
    must(cx_ledger_make(argv[1], NULL, NULL, &err));
    must(cx_ledger_open(argv[1], NULL, &ledger, &err));
    cx_step_node first =
        record(ledger, "desk", "{\"kind\":\"decision\",\"text\":\"small refunds only\"}",
               "{\"memory\":{\"order\":{\"limit\":500}}}", NULL);
    record(ledger, "clerk", "{\"kind\":\"handoff\"}", NULL, "@desk");
    record(ledger, "clerk", "{\"kind\":\"decision\"}", "{\"memory\":{\"order\":{\"limit\":800}}}",
           NULL);
    record(ledger, "desk", "{\"kind\":\"observation\",\"because\":\"a mail said so\"}",
           "{\"memory\":{\"order\":{\"limit\":50000}}}", NULL);
    race(ledger, first.hash);
    options.keep_deltas = true;
    must(cx_lattice_open_ledger(ledger, NULL, &options, &lattice, &err));
    ask(lattice);
    cx_lattice_close(lattice);
    must(cx_ledger_close(ledger, &err));
    return 0;
}
