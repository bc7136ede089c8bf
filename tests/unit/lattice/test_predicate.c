/*
 * test_predicate.c - predicates: how they are written, and what they say.
 */
#include "lattice/predicate.h"

#include "tests/support/lattice_fixture.h"

static bool holds(fixture *f, const char *name, const char *text)
{
    cx_arena arena;
    cx_predicate predicate;
    predicate_check check;
    bool answer = false;
    state s;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_predicate_parse(cx_str_z(text), &arena, &predicate, &f->err), &f->err);
    CHECK_STATUS(cx_states_get(f->states, fixture_find(f, name), false, &s, &f->err), &f->err);
    CHECK_STATUS(cx_predicate_begin(&check, &predicate, cx_alloc_default(), &f->err), &f->err);
    CHECK_STATUS(cx_predicate_holds(&check, &s, &answer, &f->err), &f->err);
    cx_predicate_end(&check);
    cx_arena_done(&arena);
    return answer;
}

CX_TEST(predicate_says_what_it_says)
{
    static const struct {
        const char *text;
        bool holds;
    } table[] = {
        {"/memory/n", true},
        {"/memory/none", false},
        {"/memory", true},
        {"", true},
        {"/goals/0", true},
        {"/goals/9", false},
        {"/memory/n=5", true},
        {"/memory/n=5.0", false},
        {"/memory/n!=5", false},
        {"/memory/n!=6", true},
        {"/memory/none!=6", false},
        {"/memory/none=null", false},
        {"/memory/n<6", true},
        {"/memory/n<5", false},
        {"/memory/n<=5", true},
        {"/memory/n>4.5", true},
        {"/memory/n>=5.0", true},
        {"/memory/n>5", false},
        {"/memory/big>9007199254740992", true},
        {"/memory/big<=9007199254740992", false},
        {"/memory/minus<-9007199254740992", true},
        {"/memory/minus>-9007199254740994", true},
        {"/memory/minus<0", true},
        {"/memory/s<6", false},
        {"/memory/s=done well", true},
        {"/memory/s=\"done well\"", true},
        {"/memory/s~well", true},
        {"/memory/s~Well", false},
        {"/memory/s~", true},
        {"/memory/n~5", false},
        {"/memory/d~x", false},
        {"/memory/d={\"x\":[1]}", true},
        {"/memory/d={\"x\": [1.0]}", false},
        {"/memory/d/x/0=1", true},
        {"/memory/a~1b=1", true},
        {"/memory/a~0b=2", true},
        {"\"/memory/a=b\"=3", true},
        {"/memory/one~\"1 of\"", true},
        {"/goals=[\"g\"]", true},
        {"/beliefs={}", true},
    };
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "a", "w", 0, 1, "",
                 "{\"memory\":{\"n\":5,\"big\":9007199254740993,\"minus\":-9007199254740993,"
                 "\"s\":\"done well\",\"d\":{\"x\":[1]},\"a/b\":1,\"a~b\":2,\"a=b\":3,"
                 "\"one\":\"1 of 2\"},\"goals\":[\"g\"]}",
                 NULL);
    REQUIRE(fixture_open(&f, NULL));
    for (size_t i = 0; i < CX_COUNT_OF(table); i++)
        if (holds(&f, "a", table[i].text) != table[i].holds)
            cx_test_fail(__FILE__, __LINE__, "%s is not %s", table[i].text,
                         table[i].holds ? "true" : "false");
    fixture_done(&f);
}

CX_TEST(predicate_refuses)
{
    static const char *const table[] = {
        "memory/x",      "/memory/x<y", "/memory/x>=\"1\"", "/a=\xff", "\"/a\"x", "\"/a",
        "/m/~0~1/~0x<=", "[1]",         "\"/m/~2\"",        "5"};
    for (size_t i = 0; i < CX_COUNT_OF(table); i++) {
        cx_err err;
        cx_arena arena;
        cx_predicate predicate;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        if (!cx_failed(cx_predicate_parse(cx_str_z(table[i]), &arena, &predicate, &err)))
            cx_test_fail(__FILE__, __LINE__, "%s was accepted", table[i]);
        cx_arena_done(&arena);
    }
}

CX_TEST(predicate_is_written_as_it_can_be_read)
{
    static const char *const table[][2] = {{"/memory/x", "/memory/x"},
                                           {"/memory/x=a", "/memory/x=\"a\""},
                                           {"/memory/x!= 1", "/memory/x!=1"},
                                           {"/a~1b>=2.50", "/a~1b>=2.5"},
                                           {"/a~x", "/a~\"x\""},
                                           {"\"/a=b\"<1", "\"/a=b\"<1"}};
    for (size_t i = 0; i < CX_COUNT_OF(table); i++) {
        cx_err err;
        cx_arena arena;
        cx_buf text;
        cx_predicate predicate;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        cx_buf_init(&text, cx_alloc_default());
        CHECK_STATUS(cx_predicate_parse(cx_str_z(table[i][0]), &arena, &predicate, &err), &err);
        CHECK_STATUS(cx_predicate_write(&predicate, &text, &err), &err);
        CHECK_STR(cx_buf_str(&text), table[i][1]);
        cx_buf_done(&text);
        cx_arena_done(&arena);
    }
}
