/*
 * test_said.c - who said something first.
 */
#include "tests/support/lattice_fixture.h"

static cx_str said(fixture *f, const char *name, const char *text, const cx_answer_options *options)
{
    cx_buf_clear(&f->out);
    CHECK_STATUS(cx_lattice_answer_said(&f->out, f->lattice, fixture_find(f, name), cx_str_z(text),
                                        options, &f->err),
                 &f->err);
    return cx_buf_str(&f->out);
}

static const char *not_said(fixture *f, const char *name, const char *text, cx_code code)
{
    cx_buf_clear(&f->out);
    cx_status status = cx_lattice_answer_said(&f->out, f->lattice, fixture_find(f, name),
                                              cx_str_z(text), &answer_text_options, &f->err);
    CHECK(status.code == code);
    return f->err.message;
}

/* A user's sentence, a tool's answer that repeats it, a model that quotes the answer; and another
 * branch that was never told. */
static void fixture_sentences(fixture *f)
{
    fixture_node(f, "u", "user", 0, 1, "", "{}",
                 "{\"role\":\"user\",\"text\":\"Refund  order\\n77 at once, please\"}");
    fixture_node(f, "c", "main", 0, 2, "u",
                 "{\"memory\":{\"files\":{\"/a/b.md\":{\"read\":{\"call\":\"t1\"}}}}}",
                 "{\"kind\":\"act\",\"tool\":\"Read\",\"call_id\":\"t1\","
                 "\"arguments\":{\"file_path\":\"/a/b.md\"}}");
    fixture_node(f, "r", "tools", 0, 3, "c", "{}",
                 "{\"tool\":\"Read\",\"call_id\":\"t1\",\"result\":{\"lines\":[\"limits are 500\","
                 "\"Refund order 77 at once, it says\"]}}");
    fixture_node(f, "m", "main", 1, 4, "r", "{}",
                 "{\"role\":\"assistant\",\"text\":\"You want: refund order 77 at once\","
                 "\"input\":[{\"role\":\"tool\",\"text\":\"limits are 500\"}]}");
    fixture_node(f, "o", "other", 0, 5, "u", "{\"memory\":{\"note\":\"only here it is\"}}", NULL);
}

CX_TEST(said_first_and_then)
{
    fixture f;
    fixture_init(&f);
    fixture_sentences(&f);
    REQUIRE(fixture_load(&f));
    CHECK_STR(said(&f, "m", " Refund order 77\tat once", &answer_text_options),
              "first u user#0 message of role user: Refund order 77 at once, please\n"
              "then  r tools#0 read from the file /a/b.md by Read: Refund order 77 at once, it "
              "says\n");
    CHECK_STR(said(&f, "m", "limits are 500", &answer_json_options),
              "{\"node\":\"m\",\"places\":[{\"agent\":\"tools\",\"call\":\"t1\",\"first\":true,"
              "\"how\":\"result\",\"node\":\"r\",\"path\":\"/a/b.md\",\"seq\":0,"
              "\"text\":\"limits are 500\",\"tool\":\"Read\"},{\"agent\":\"main\",\"first\":false,"
              "\"how\":\"given\",\"node\":\"m\",\"role\":\"tool\",\"seq\":1,"
              "\"text\":\"limits are 500\"}],\"said\":\"limits are 500\",\"total\":2,"
              "\"verified\":true}\n");
    /* As a person sees arguments: indented. */
    CHECK(contains(said(&f, "m", "\"file_path\": \"/a/b.md\"", &answer_text_options),
                   "arguments of a call on the file /a/b.md by Read"));
    CHECK(contains(said(&f, "o", "only here it is", &answer_text_options), "other#0 change: "));
    fixture_done(&f);
}

CX_TEST(said_nowhere_names_the_nearest)
{
    fixture f;
    fixture_init(&f);
    fixture_sentences(&f);
    REQUIRE(fixture_load(&f));
    const char *message = not_said(&f, "m", "refund order 78 at once", CX_E_NOT_FOUND);
    CHECK(contains(cx_str_z(message), "nearest is main#1 (message): \""));
    CHECK(contains(cx_str_z(message), "refund order 7"));
    message = not_said(&f, "c", "limits are 500", CX_E_NOT_FOUND);
    CHECK(contains(cx_str_z(message), "a step that is not before it does: tools#0"));
    message = not_said(&f, "m", "zq", CX_E_NOT_FOUND);
    CHECK(contains(cx_str_z(message), "nothing there is like it"));
    (void)not_said(&f, "m", " \n\t ", CX_E_USAGE);
    char *long_text = malloc(9000);
    REQUIRE(long_text != NULL);
    memset(long_text, 'x', 8999);
    long_text[8999] = 0;
    (void)not_said(&f, "m", long_text, CX_E_USAGE);
    free(long_text);
    fixture_done(&f);
}

/* Two that say it by themselves are both first; who merges them is not. */
CX_TEST(said_first_by_two)
{
    fixture f;
    fixture_init(&f);
    fixture_node(&f, "r", "root", 0, 1, "", "{}", NULL);
    fixture_node(&f, "a", "a", 0, 2, "r", "{}", "{\"text\":\"the moon is full\"}");
    fixture_node(&f, "b", "b", 0, 3, "r", "{}", "{\"thinking\":\"so the moon is full\"}");
    fixture_node(&f, "m", "m", 0, 4, "a,b", "{}", "{\"because\":\"the moon is full\"}");
    REQUIRE(fixture_load(&f));
    CHECK_STR(said(&f, "m", "the moon is full", &answer_text_options),
              "first a a#0 message: the moon is full\n"
              "first b b#0 thinking: so the moon is full\n"
              "then  m m#0 reason: the moon is full\n");
    fixture_done(&f);
}
