/*
 * test_why.c - where a key's value came from.
 */
#include "tests/support/lattice_fixture.h"

static cx_str why(fixture *f, const char *name, const char *key, const char *section,
                  const cx_answer_options *options)
{
    cx_answer_options lenient = *options;
    lenient.allow_absent = true;
    lenient.reasons = true;
    cx_buf_clear(&f->out);
    CHECK_STATUS(cx_lattice_answer_why(&f->out, f->states, fixture_find(f, name), cx_str_z(key),
                                       cx_str_z(section), &lenient, &f->err),
                 &f->err);
    return cx_buf_str(&f->out);
}

CX_TEST(why_of_the_example)
{
    fixture f;
    fixture_init(&f);
    fixture_example(&f);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(why(&f, "n2", "x", "", &answer_text_options),
              "n2 agent_a#2 memory.x: 2 -> 3 (merge)\n"
              "n1_b agent_b#1 memory.x: 1 -> 3 (delta)\n"
              "n1_a agent_a#1 memory.x: 1 -> 2 (delta)\n"
              "n0 system#0 memory.x: - -> 1 (delta)\n");
    CHECK_STR(why(&f, "@agent_b", "x", "memory", &answer_json_options),
              "{\"changes\":[{\"agent\":\"agent_b\",\"new\":3,\"node\":\"n1_b\",\"old\":1,"
              "\"section\":\"memory\",\"seq\":1,\"via\":\"delta\"},{\"agent\":\"system\",\"new\":1,"
              "\"node\":\"n0\",\"section\":\"memory\",\"seq\":0,\"via\":\"delta\"}],\"key\":\"x\","
              "\"node\":\"n1_b\",\"verified\":true}\n");
    CHECK_STR(why(&f, "n2", "x", "beliefs", &answer_text_options), "");
    CHECK_STR(why(&f, "n2", "never", "", &answer_json_options),
              "{\"changes\":[],\"key\":\"never\",\"node\":\"n2\",\"verified\":true}\n");
    fixture_done(&f);
}

CX_TEST(why_memory_before_beliefs_and_deletions)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "w", 0, 1, "", "{\"memory\":{\"k\":{\"in\":[1]}},\"beliefs\":{\"k\":1}}",
                 NULL);
    /* Named but unchanged: no change. */
    fixture_node(&f, "b", "w", 1, 2, "a",
                 "{\"memory\":{\"k\":{\"in\":[1]}},\"beliefs\":{\"k\":null}}", NULL);
    fixture_node(&f, "c", "w", 2, 3, "b", "{\"memory\":{\"k\":null}}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(why(&f, "c", "k", "", &answer_text_options),
              "c w#2 memory.k: {\"in\":[1]} -> - (delta)\n"
              "b w#1 beliefs.k: 1 -> - (delta)\n"
              "a w#0 memory.k: - -> {\"in\":[1]} (delta)\n"
              "a w#0 beliefs.k: - -> 1 (delta)\n");
    fixture_done(&f);
}

/* The delta spells the key with an escape; it is the same key. */
CX_TEST(why_knows_a_key_however_it_is_spelled)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "w", 0, 1, "", "{\"memory\":{\"caf\\u00e9\":1}}", NULL);
    fixture_node(&f, "b", "v", 0, 2, "a", "{\"memory\":{\"caf\xc3\xa9\":2}}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(
        why(&f, "b", "caf\xc3\xa9", "", &answer_text_options),
        "b v#0 memory.caf\xc3\xa9: 1 -> 2 (delta)\na w#0 memory.caf\xc3\xa9: - -> 1 (delta)\n");
    fixture_done(&f);
}

CX_TEST(why_text_does_not_act_on_the_terminal)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a\\u001b[31m", "w\\u202e", 0, 1, "", "{\"memory\":{\"k\":1}}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(why(&f, "a\x1b[31m", "k", "", &answer_text_options),
              "a\\u001b[31m w\\u202e#0 memory.k: - -> 1 (delta)\n");
    fixture_done(&f);
}

CX_TEST(why_refuses_other_sections)
{
    fixture f;
    fixture_init(&f);
    fixture_example(&f);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_INT(cx_lattice_answer_why(&f.out, f.states, 0, CX_STR("x"), CX_STR("goals"),
                                    &answer_json_options, &f.err)
                  .code,
              CX_E_USAGE);
    fixture_done(&f);
}

/* The reason is the event's, the source the newest text before that has the value as a word. */
CX_TEST(why_gives_the_reason_and_the_source)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "p", "page", 0, 1, "", "{}", "{\"text\":\"limits of 5000 and 15000\"}");
    fixture_node(&f, "q", "page", 1, 2, "p", "{}", "{\"text\":\"15000 is too much\"}");
    fixture_node(&f, "a", "w", 0, 3, "q", "{\"memory\":{\"limit\":5000}}",
                 "{\"because\":\"the page\\n says so\",\"thinking\":\"hm\"}");
    fixture_node(&f, "b", "w", 1, 4, "a", "{\"memory\":{\"limit\":7}}", NULL);
    REQUIRE(fixture_open(&f, NULL));
    CHECK_STR(why(&f, "b", "limit", "", &answer_text_options),
              "b w#1 memory.limit: 5000 -> 7 (delta)\n"
              "a w#0 memory.limit: - -> 5000 (delta)\n"
              "    because: the page says so\n"
              "    thinking: hm\n"
              "    from: page#0: limits of 5000 and 15000\n");
    CHECK_STR(why(&f, "a", "limit", "", &answer_json_options),
              "{\"changes\":[{\"agent\":\"w\",\"because\":\"the page says so\",\"new\":5000,"
              "\"node\":\"a\",\"section\":\"memory\",\"seq\":0,\"source\":{\"agent\":\"page\","
              "\"node\":\"p\",\"seq\":0,\"text\":\"limits of 5000 and 15000\"},"
              "\"thinking\":\"hm\",\"via\":\"delta\"}],\"key\":\"limit\",\"node\":\"a\","
              "\"verified\":true}\n");
    fixture_done(&f);
}

/* What an object had before is not what came; a branch that is not before gives nothing. */
CX_TEST(why_source_is_of_what_is_new_and_before)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "r", "r", 0, 1, "", "{}", "{\"text\":\"a very long old sentence\"}");
    fixture_node(&f, "s", "side", 0, 2, "r", "{}", "{\"text\":\"brand new words\"}");
    fixture_node(&f, "t", "r", 1, 3, "r",
                 "{\"memory\":{\"o\":{\"a\":\"a very long old sentence\"}}}", NULL);
    fixture_node(&f, "u", "r", 2, 4, "t", "{\"memory\":{\"o\":{\"b\":\"brand new words\"}}}",
                 "{\"text\":\"first words\",\"message_id\":\"m\"}");
    fixture_node(&f, "v", "r", 3, 5, "u", "{\"memory\":{\"o\":{\"c\":1}}}",
                 "{\"message_id\":\"m\"}");
    REQUIRE(fixture_open(&f, NULL));
    cx_str answer = why(&f, "v", "o", "", &answer_text_options);
    CHECK(contains(answer, "    from: r#0: a very long old sentence\n"));
    CHECK(!contains(answer, "from: side"));
    /* The call has the words of the same answer. */
    CHECK(contains(answer, "(delta)\n    text: first words\nu r#2"));
    fixture_done(&f);
}
