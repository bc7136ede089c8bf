/*
 * test_question.c - the installed questions: the same answers as the program's, and merges that are
 * in no file.
 */
#include <cortex/lattice.h>

#include "lattice/lattice.h"
#include "tests/test.h"

#define EXAMPLE CX_TEST_ROOT "/../examples/merge.jsonl"

typedef struct asked {
    cx_lattice *lattice;
    cx_owned answer;
    cx_err err;
} asked;

static void open_example(asked *a, bool keep_deltas)
{
    const cx_lattice_options options = {.keep_deltas = keep_deltas, .threads = 1};
    CHECK_STATUS(cx_lattice_open(EXAMPLE, &options, &a->lattice, &a->err), &a->err);
}

static void close_example(asked *a)
{
    cx_owned_done(&a->answer);
    cx_lattice_close(a->lattice);
}

static bool says(asked *a, cx_status status, const char *text)
{
    bool good = status.code == CX_OK && strstr(cx_owned_text(&a->answer), text) != NULL;
    if (!good)
        printf("%s %s\n", a->err.message, cx_owned_text(&a->answer));
    cx_owned_done(&a->answer);
    return good;
}

CX_TEST(installed_questions_answer_as_the_program_does)
{
    asked a = {.answer = CX_OWNED_INIT};
    const cx_question plain = CX_QUESTION_INIT;
    cx_node n0 = 0, n1_b = 0, n2 = 0;
    open_example(&a, true);
    CHECK_STATUS(cx_lattice_resolve(a.lattice, CX_STR("n0"), &n0, &a.err), &a.err);
    CHECK_STATUS(cx_lattice_resolve(a.lattice, CX_STR("n1_b"), &n1_b, &a.err), &a.err);
    CHECK_STATUS(cx_lattice_resolve(a.lattice, CX_STR("n2"), &n2, &a.err), &a.err);
    CHECK(says(&a, cx_lattice_ask_state(a.lattice, n2, false, &plain, &a.answer, &a.err),
               "\"done\":true"));
    CHECK(says(&a, cx_lattice_ask_value(a.lattice, n2, "/memory/x", NULL, &a.answer, &a.err), "3"));
    CHECK(says(&a, cx_lattice_ask_why(a.lattice, n2, "x", NULL, &a.answer, &a.err),
               "\"verified\":true"));
    CHECK(says(&a, cx_lattice_ask_compare(a.lattice, n2, n1_b, NULL, &a.answer, &a.err),
               "\"lca\":\"n0\""));
    CHECK(says(&a, cx_lattice_ask_bisect(a.lattice, n2, "/memory/x>1", NULL, &a.answer, &a.err),
               "\"holds_at_end\":true"));
    CHECK(says(&a, cx_lattice_ask_heatmap(a.lattice, NULL, &a.answer, &a.err),
               "{\"nodes\":[{\"D\":2,\"node\":\"n0\"}]"));
    CHECK(says(&a, cx_lattice_ask_heads(a.lattice, NULL, &a.answer, &a.err), "\"agent_b\""));
    CHECK(says(&a, cx_lattice_ask_show(a.lattice, n0, NULL, &a.answer, &a.err), "\"genesis\""));
    close_example(&a);
}

CX_TEST(a_merge_that_is_not_there_is_what_the_node_inherits)
{
    asked a = {.answer = CX_OWNED_INIT};
    cx_states *states = NULL;
    cx_buf inherited;
    cx_node n2 = 0;
    cx_lattice_node_info info;
    open_example(&a, true);
    cx_buf_init(&inherited, cx_alloc_default());
    CHECK_STATUS(cx_lattice_resolve(a.lattice, CX_STR("n2"), &n2, &a.err), &a.err);
    cx_lattice_node(a.lattice, n2, &info);
    const cx_node backwards[3] = {info.parents[1], info.parents[0], info.parents[1]};
    for (int strategy = CX_MERGE_LWW; strategy <= CX_MERGE_MANUAL; strategy++) {
        cx_question question = CX_QUESTION_INIT;
        question.states.strategy = (cx_merge_strategy)strategy;
        CHECK_STATUS(cx_lattice_ask_merge(a.lattice, backwards, 3, &question, &a.answer, &a.err),
                     &a.err);
        if (strategy == CX_MERGE_LWW) { /* what the node says itself */
            CHECK_STATUS(cx_states_open(a.lattice, &question.states, &states, &a.err), &a.err);
            CHECK_STATUS(cx_states_write(states, n2, true, &inherited, &a.err), &a.err);
            CHECK(cx_str_is(cx_buf_str(&inherited), cx_owned_text(&a.answer)));
            cx_states_close(states);
        }
        if (strategy == CX_MERGE_MANUAL)
            CHECK(strstr(cx_owned_text(&a.answer), "\"__conflict\":true") != NULL);
        cx_owned_done(&a.answer);
    }
    cx_buf_done(&inherited);
    close_example(&a);
}

CX_TEST(questions_that_make_no_sense_are_usage_errors)
{
    asked a = {.answer = CX_OWNED_INIT};
    open_example(&a, false);
    CHECK_INT(cx_lattice_ask_state(a.lattice, 0, false, NULL, &a.answer, &a.err).code, CX_E_USAGE);
    CHECK_INT(cx_lattice_ask_show(a.lattice, 99, NULL, &a.answer, &a.err).code, CX_E_USAGE);
    CHECK_INT(cx_lattice_ask_why(a.lattice, 0, NULL, NULL, &a.answer, &a.err).code, CX_E_USAGE);
    CHECK_INT(cx_lattice_ask_merge(a.lattice, NULL, 0, NULL, &a.answer, &a.err).code, CX_E_USAGE);
    close_example(&a);
    open_example(&a, true);
    CHECK_INT(cx_lattice_ask_why(a.lattice, 0, "nope", NULL, &a.answer, &a.err).code,
              CX_E_NOT_FOUND);
    CHECK_INT(cx_lattice_ask_value(a.lattice, 0, "/memory/nope", NULL, &a.answer, &a.err).code,
              CX_E_NOT_FOUND);
    CHECK(a.answer.data == NULL);
    close_example(&a);
}
