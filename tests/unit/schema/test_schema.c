/*
 * Schemas: what the suite does not say - draft-07, strict loading, limits, and what errors tell.
 */
#include "schema/schema.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "tests/test.h"

static cx_json parse(cx_arena *arena, const char *text)
{
    cx_json value = {0};
    cx_err err;
    /* Apostrophes for quotation marks: shorter to read here. */
    cx_str copy = cx_arena_copy_str(arena, cx_str_z(text));
    for (size_t i = 0; i < copy.size; i++)
        if (copy.data[i] == '\'')
            ((char *)(uintptr_t)copy.data)[i] = '"';
    if (cx_failed(cx_json_parse_text(copy, arena, &value, &err)))
        cx_test_fail(__FILE__, __LINE__, "%s: %s", text, err.message);
    return value;
}

static cx_status compile(cx_schema_draft draft, bool strict, const char *text, cx_schema **out,
                         cx_err *err)
{
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    cx_arena arena;
    options.draft = draft;
    options.strict = strict;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json document = parse(&arena, text);
    cx_status status = cx_schema_compile(&options, &document, out, err);
    cx_arena_done(&arena);
    return status;
}

/* One schema and the instances it must accept and refuse, each list ending in NULL. */
typedef struct example {
    const char *schema;
    const char *good[6];
    const char *bad[6];
} example;

static void try_instance(const cx_schema *schema, const char *schema_text, const char *text,
                         bool expected)
{
    cx_arena arena;
    cx_err err;
    cx_schema_report report = {0};
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json instance = parse(&arena, text);
    for (unsigned pass = 0; pass < 2; pass++, how.errors_max = 0)
        if (cx_failed(cx_schema_check(schema, &instance, &how, &arena, &report, &err)))
            cx_test_fail(__FILE__, __LINE__, "%s with %s: %s", schema_text, text, err.message);
        else if (report.valid != expected)
            cx_test_fail(__FILE__, __LINE__, "%s %s %s", schema_text,
                         report.valid ? "accepts" : "refuses", text);
    cx_arena_done(&arena);
}

static void run_examples(cx_schema_draft draft, bool strict, const example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cx_schema *schema;
        cx_err err;
        if (cx_failed(compile(draft, strict, examples[i].schema, &schema, &err))) {
            cx_test_fail(__FILE__, __LINE__, "%s: %s", examples[i].schema, err.message);
            continue;
        }
        for (size_t k = 0; k < 6 && examples[i].good[k] != NULL; k++)
            try_instance(schema, examples[i].schema, examples[i].good[k], true);
        for (size_t k = 0; k < 6 && examples[i].bad[k] != NULL; k++)
            try_instance(schema, examples[i].schema, examples[i].bad[k], false);
        cx_schema_close(schema);
    }
}

CX_TEST(schemas_count_and_compare_as_the_standard_says)
{
    static const example examples[] = {
        {"{'type':'integer'}", {"1", "1.0", "1e2", "-0.0"}, {"1.5", "true", "'1'", "null"}},
        {"{'type':'number'}", {"1", "1.5"}, {"true", "false", "'1'"}},
        {"{'const':0}", {"0", "-0", "0.0", "0e5"}, {"false", "''", "null"}},
        {"{'enum':[1,'a',[1.0],{'x':2}]}",
         {"1.0", "'a'", "[1]", "{'x':2e0}"},
         {"2", "['a']", "[]"}},
        {"{'minLength':2,'maxLength':2}",
         {"'ab'", "'\\u00e9\\u00e9'", "'\\ud83d\\udc32\\ud83d\\udc32'", "1"},
         {"'a'", "'abc'", "'\\ud83d\\udc32'"}},
        {"{'multipleOf':0.01}", {"4.35", "19.99", "1e300"}, {"0.005"}},
        {"{'maximum':9007199254740993}",
         {"9007199254740993", "9007199254740992"},
         {"9007199254740993.5", "9007199254740994"}},
        {"{'exclusiveMinimum':0.1}", {"0.1000000000000000000001"}, {"0.1", "0.10"}},
        {"{'uniqueItems':true}",
         {"[1,true]", "[[1],[2]]", "[{'a':1},{'a':2}]", "['1',1]"},
         {"[1,1.0]", "[{'a':1,'b':2},{'b':2,'a':1}]", "[[],[]]", "[1,2,3,4,5,6,7,8,9,10,1e0]"}},
        {"{'pattern':'^a$'}", {"'a'", "1"}, {"'a\\n'", "'ba'"}},
        {"{'format':'date-time'}",
         {"'2026-01-01T00:00:00Z'", "'2024-02-29t23:59:59.123+14:00'", "'2016-12-31T23:59:60Z'",
          "5"},
         {"'2026-01-01'", "'2026-02-29T00:00:00Z'", "'2026-01-01 00:00:00Z'",
          "'2026-01-01T24:00:00Z'", "'2026-01-01T00:00:00'"}},
        {"{'format':'ipv4'}", {"'no address'"}, {NULL}},
        {"{'minItems':1.0}", {"[1]"}, {"[]"}},
        {"{'maxProperties':1e30}", {"{}"}, {NULL}},
        {"false", {NULL}, {"1", "{}"}},
        {"true", {"1", "{}"}, {NULL}},
        {"{'properties':{'a':false},'patternProperties':{'^b':{'type':'null'}},"
         "'additionalProperties':{'type':'string'}}",
         {"{}", "{'b1':null,'c':'x'}"},
         {"{'a':1}", "{'b1':1}", "{'c':1}"}},
        {"{'if':{'required':['a']},'then':{'required':['b']},'else':{'required':['c']}}",
         {"{'a':1,'b':1}", "{'c':1}", "1"},
         {"{'a':1}", "{'b':1}"}},
        {"{'contains':{'type':'null'},'minContains':2,'maxContains':3}",
         {"[null,null]", "[null,1,null,null]"},
         {"[null]", "[null,null,null,null]", "[]"}},
        {"{'$ref':'#/$defs/list','$defs':{'list':{'type':['object','null'],'properties':"
         "{'next':{'$ref':'#/$defs/list'}},'unevaluatedProperties':false}}}",
         {"null", "{'next':{'next':null}}"},
         {"{'next':{'next':1}}", "{'x':1}"}},
        {"{'$id':'urn:x:y','$ref':'#a','$defs':{'q':{'$anchor':'a','type':'null'}}}",
         {"null"},
         {"1"}},
    };
    run_examples(CX_SCHEMA_2020_12, true, examples, CX_COUNT_OF(examples));
}

CX_TEST(schemas_of_draft_07)
{
    static const example examples[] = {
        {"{'items':[{'type':'integer'}],'additionalItems':{'type':'string'}}",
         {"[]", "[1]", "[1,'a','b']"},
         {"['a']", "[1,2]"}},
        {"{'items':{'type':'integer'},'additionalItems':false}", {"[1,2,3]"}, {"['a']"}},
        {"{'additionalItems':false}", {"[1,2,3]", "{}"}, {NULL}},
        {"{'items':[]}", {"[1]"}, {NULL}},
        {"{'items':[true],'additionalItems':false}", {"[1]"}, {"[1,2]"}},
        {"{'dependencies':{'a':['b','c'],'d':{'minProperties':3}}}",
         {"{}", "{'a':1,'b':1,'c':1}", "{'d':1,'e':1,'f':1}"},
         {"{'a':1,'b':1}", "{'d':1}"}},
        {"{'dependencies':{'a':[]}}", {"{'a':1}"}, {NULL}},
        {"{'dependencies':{'a':true,'b':false}}", {"{'a':1}", "{}"}, {"{'b':1}"}},
        /* Next to "$ref" nothing counts. */
        {"{'properties':{'a':{'$ref':'#/definitions/s','maxLength':1}},'definitions':{'s':"
         "{'type':'string'}}}",
         {"{'a':'long'}"},
         {"{'a':1}"}},
        {"{'$ref':'#/definitions/s','type':'null','definitions':{'s':{'type':'string'}}}",
         {"'x'"},
         {"null"}},
        /* Names without a base. */
        {"{'allOf':[{'$ref':'#foo'}],'definitions':{'A':{'$id':'#foo','type':'integer'}}}",
         {"1"},
         {"'a'"}},
        {"{'$id':'http://x.test/root.json','allOf':[{'$ref':'http://x.test/nested.json#foo'}],"
         "'definitions':{'A':{'$id':'nested.json','definitions':{'B':{'$id':'#foo','type':"
         "'integer'}}}}}",
         {"1"},
         {"'a'"}},
        /* An "$id" next to "$ref" is not one. */
        {"{'$id':'http://x.test/a/base/','definitions':{'foo':{'$id':'http://x.test/a/foo.json',"
         "'type':'string'},'base_foo':{'$id':'foo.json','type':'number'}},'allOf':[{'$id':"
         "'http://x.test/a/','$ref':'foo.json'}]}",
         {"1"},
         {"'a'"}},
        {"{'contains':{'const':1}}", {"[2,1.0]", "1"}, {"[]", "[2]"}},
        {"{'if':{'const':1},'then':{'minimum':2}}", {"3"}, {"1"}},
        {"{'if':{'const':1}}", {"1", "2"}, {NULL}},
        {"{'then':{'const':1}}", {"2"}, {NULL}},
        {"{'definitions':{'a':{'type':'null'}},'$ref':'#/definitions/a'}", {"null"}, {"1"}},
        {"{'$ref':'http://json-schema.org/draft-07/schema#'}",
         {"{'minLength':1}", "true", "{'definitions':{'a':{'type':'string'}}}"},
         {"{'minLength':-1}", "1", "{'definitions':{'a':{'type':1}}}", "{'required':['a','a']}"}},
        {"{'propertyNames':{'maxLength':1}}", {"{'a':1}"}, {"{'ab':1}"}},
        /* What came later is unknown here. */
        {"{'dependentRequired':{'a':['b']},'unevaluatedProperties':false,'prefixItems':[false],"
         "'minContains':9,'$anchor':'x','$defs':1}",
         {"{'a':1}", "[1]"},
         {NULL}},
        {"{'$schema':'https://json-schema.org/draft/2020-12/schema','prefixItems':[false]}",
         {"[]"},
         {"[1]"}},
    };
    run_examples(CX_SCHEMA_DRAFT_07, false, examples, CX_COUNT_OF(examples));
    static const example strict[] = {
        {"{'$schema':'http://json-schema.org/draft-07/schema#','items':[{'type':'null'}],"
         "'definitions':{'x':true}}",
         {"[null,1]"},
         {"[1]"}},
    };
    run_examples(CX_SCHEMA_2020_12, true, strict, CX_COUNT_OF(strict));
}

CX_TEST(dynamic_references_find_the_outermost_anchor)
{
    static const example examples[] = {
        {"{'$id':'http://x.test/strict-tree','$dynamicAnchor':'node','$ref':'tree',"
         "'unevaluatedProperties':false,'$defs':{'tree':{'$id':'tree','$dynamicAnchor':'node',"
         "'type':'object','properties':{'data':true,'children':{'type':'array','items':"
         "{'$dynamicRef':'#node'}}}}}}",
         {"{'children':[{'data':1}]}"},
         {"{'children':[{'daat':1}]}"}},
        {"{'$ref':'#/$defs/a','$defs':{'a':{'$id':'http://x.test/a','$dynamicRef':'#t','$defs':"
         "{'t':{'$dynamicAnchor':'t','type':'string'}}}}}",
         {"'x'"},
         {"1"}},
    };
    run_examples(CX_SCHEMA_2020_12, false, examples, CX_COUNT_OF(examples));
}

CX_TEST(meta_schemas_are_at_hand)
{
    static const example examples[] = {
        {"{'$ref':'https://json-schema.org/draft/2020-12/schema'}",
         {"{'$defs':{'a':{'type':'string'}}}", "true", "{'properties':{'a':{'items':{}}}}"},
         {"{'properties':{'a':{'items':1}}}", "{'minLength':1.5}", "1", "{'type':'strin'}",
          "{'$defs':{'a':{'required':[1]}}}"}},
    };
    run_examples(CX_SCHEMA_2020_12, false, examples, CX_COUNT_OF(examples));
}

CX_TEST(strict_loading_refuses)
{
    static const struct {
        const char *schema;
        cx_code code;
        const char *says;
    } cases[] = {
        {"{'tpye':'string'}", CX_E_FORMAT, "the schema at # has an unknown keyword: \"tpye\""},
        {"{'properties':{'a/b':{'x-note':1}}}", CX_E_FORMAT,
         "the schema at #/properties/a~1b has an unknown keyword: \"x-note\""},
        {"{'definitions':{}}", CX_E_FORMAT, NULL},
        {"{'$ref':'http://x.test/other'}", CX_E_FORMAT,
         "the schema at # refers out of its document, to \"http://x.test/other\""},
        {"{'$ref':'https://json-schema.org/draft/2020-12/schema'}", CX_E_FORMAT, NULL},
        {"{'$ref':'#/$defs/none'}", CX_E_NOT_FOUND,
         "the schema at # refers to \"#/$defs/none\", which is not there"},
        {"{'$ref':'#none'}", CX_E_NOT_FOUND, NULL},
        {"{'$ref':'#/const','const':{}}", CX_E_FORMAT, NULL},
        {"{'$ref':'#'}", CX_E_FORMAT,
         "the schema at # refers to itself without moving on in what it checks"},
        {"{'$ref':'#/$defs/a','$defs':{'a':{'anyOf':[true,{'$ref':'#/$defs/b'}]},"
         "'b':{'not':{'$ref':'#/$defs/a'}}}}",
         CX_E_FORMAT, NULL},
        {"{'if':true,'then':{'$ref':'#'}}", CX_E_FORMAT, NULL},
        {"{'dependentSchemas':{'a':true,'b':{'$ref':'#'}}}", CX_E_FORMAT, NULL},
        {"{'$schema':'http://x.test/mine'}", CX_E_UNSUPPORTED, NULL},
        {"{'$schema':'http://json-schema.org/draft-04/schema#'}", CX_E_UNSUPPORTED, NULL},
        {"{'pattern':'('}", CX_E_FORMAT,
         "the schema at # has a \"pattern\" that cannot be used: the pattern has a '(' without its "
         "')' at byte 1"},
        {"{'patternProperties':{'\\\\Z':true}}", CX_E_FORMAT, NULL},
        {"{'type':'strin'}", CX_E_FORMAT, NULL},
        {"{'type':[]}", CX_E_FORMAT, NULL},
        {"{'type':['null','null']}", CX_E_FORMAT, NULL},
        {"{'minLength':-1}", CX_E_FORMAT,
         "the schema at # has a \"minLength\" that is not an integer "
         "of 0 or more"},
        {"{'minLength':1.5}", CX_E_FORMAT, NULL},
        {"{'minimum':'1'}", CX_E_FORMAT, NULL},
        {"{'multipleOf':0}", CX_E_FORMAT, NULL},
        {"{'multipleOf':-1}", CX_E_FORMAT, NULL},
        {"{'multipleOf':1234567890.1234567891}", CX_E_LIMIT, NULL},
        {"{'required':['a','a']}", CX_E_FORMAT, NULL},
        {"{'required':'a'}", CX_E_FORMAT, NULL},
        {"{'required':[1]}", CX_E_FORMAT, NULL},
        {"{'dependentRequired':{'a':'b'}}", CX_E_FORMAT, NULL},
        {"{'enum':1}", CX_E_FORMAT, NULL},
        {"{'uniqueItems':1}", CX_E_FORMAT, NULL},
        {"{'allOf':[]}", CX_E_FORMAT, NULL},
        {"{'allOf':{}}", CX_E_FORMAT, NULL},
        {"{'allOf':{'a':{'type':'null'}}}", CX_E_FORMAT,
         "the schema at # has a \"allOf\" that is an object"},
        {"{'properties':[{}]}", CX_E_FORMAT, NULL},
        {"{'not':[{}]}", CX_E_FORMAT, NULL},
        {"{'prefixItems':[]}", CX_E_FORMAT, NULL},
        {"{'items':[true]}", CX_E_FORMAT, NULL},
        {"{'properties':[]}", CX_E_FORMAT, NULL},
        {"{'properties':{'a':1}}", CX_E_FORMAT, NULL},
        {"{'format':1}", CX_E_FORMAT, NULL},
        {"{'title':1}", CX_E_FORMAT, NULL},
        {"{'deprecated':'yes'}", CX_E_FORMAT, NULL},
        {"{'$anchor':'1a'}", CX_E_FORMAT, NULL},
        {"{'$id':'http://x.test/a#frag'}", CX_E_FORMAT, NULL},
        {"{'$id':1}", CX_E_FORMAT, NULL},
        {"{'$ref':1}", CX_E_FORMAT, NULL},
        {"{'$defs':{'a':{'$anchor':'x'},'b':{'$anchor':'x'}}}", CX_E_FORMAT, NULL},
        {"1", CX_E_FORMAT, "the schema at # is integer, where an object or a boolean is expected"},
        {"[]", CX_E_FORMAT, NULL},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        cx_schema *schema = NULL;
        cx_err err = {0};
        cx_status status = compile(CX_SCHEMA_2020_12, true, cases[i].schema, &schema, &err);
        if (status.code != cases[i].code || err.code != cases[i].code)
            cx_test_fail(__FILE__, __LINE__, "%s gives %s", cases[i].schema,
                         cx_code_name(status.code));
        else if (cases[i].says != NULL && strcmp(err.message, cases[i].says) != 0)
            cx_test_fail(__FILE__, __LINE__, "%s says: %s", cases[i].schema, err.message);
        if (!cx_failed(status))
            cx_schema_close(schema);
    }
}

CX_TEST(lenient_loading_ignores_what_it_does_not_know)
{
    static const example examples[] = {
        {"{'x-note':{'type':1},'type':'null'}", {"null"}, {"1"}},
        {"{'$ref':'#/x-store/a','x-store':{'a':{'type':'null'}}}", {"null"}, {"1"}},
        {"{'format':'no such format'}", {"'x'"}, {NULL}},
    };
    run_examples(CX_SCHEMA_2020_12, false, examples, CX_COUNT_OF(examples));
    /* A document that was not given is still missed. */
    cx_schema *schema;
    cx_err err;
    CHECK(compile(CX_SCHEMA_2020_12, false, "{'$ref':'http://x.test/a'}", &schema, &err).code ==
          CX_E_NOT_FOUND);
    CHECK(compile(CX_SCHEMA_2020_12, false, "{'$schema':'http://x.test/a'}", &schema, &err).code ==
          CX_E_UNSUPPORTED);
}

/* --- errors ----------------------------------------------------------------------------------- */

static void check_errors(int line, const char *schema_text, const char *instance_text,
                         const char *expected)
{
    cx_schema *schema;
    cx_err err;
    cx_arena arena;
    cx_buf got;
    cx_schema_report report = {0};
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    if (cx_failed(compile(CX_SCHEMA_2020_12, true, schema_text, &schema, &err))) {
        cx_test_fail(__FILE__, line, "%s: %s", schema_text, err.message);
        return;
    }
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&got, cx_alloc_default());
    cx_json instance = parse(&arena, instance_text);
    CHECK_STATUS(cx_schema_check(schema, &instance, &how, &arena, &report, &err), &err);
    CHECK(!report.valid);
    for (size_t i = 0; i < report.error_count; i++) {
        const cx_schema_error *e = &report.errors[i];
        cx_buf_printf(&got, "%s%.*s|%.*s|%s|%.*s", i == 0 ? "" : "\n", (int)e->instance.size,
                      e->instance.data, (int)e->schema.size, e->schema.data, e->keyword,
                      (int)e->message.size, e->message.data);
    }
    if (!cx_str_is(cx_buf_str(&got), expected))
        cx_test_fail(__FILE__, line, "got:\n%.*s", (int)got.size, (const char *)got.data);
    cx_buf_done(&got);
    cx_arena_done(&arena);
    cx_schema_close(schema);
}

CX_TEST(errors_say_where_and_what)
{
    check_errors(__LINE__, "{'type':['string','null']}", "[1]",
                 "|#/type|type|found array, expected null or string");
    check_errors(
        __LINE__,
        "{'properties':{'a/b':{'items':{'$ref':'#/$defs/n'}}},'$defs':{'n':{'minimum':3}}}",
        "{'a/b':[3,2.50]}", "/a~1b/1|#/$defs/n/minimum|minimum|found 2.50, expected at least 3");
    check_errors(
        __LINE__, "{'required':['a','b'],'additionalProperties':false}", "{'c':1,'b':2}",
        "|#/required|required|the member \"a\" is missing\n"
        "/b|#/additionalProperties|additionalProperties|the member \"b\" is not known here\n"
        "/c|#/additionalProperties|additionalProperties|the member \"c\" is not known here");
    check_errors(__LINE__, "{'enum':['a',1,null]}", "'b'",
                 "|#/enum|enum|found \"b\", expected one of \"a\", 1, null");
    check_errors(__LINE__, "{'const':{'x':1}}", "2",
                 "|#/const|const|found 2, expected an object with 1 "
                 "members");
    check_errors(__LINE__, "{'pattern':'^a'}", "'b'",
                 "|#/pattern|pattern|\"b\" does not match the pattern \"^a\"");
    check_errors(__LINE__, "{'format':'date-time'}", "'now'",
                 "|#/format|format|\"now\" is no \"date-time\"");
    check_errors(__LINE__, "{'minLength':3}", "'ab'",
                 "|#/minLength|minLength|found 2 characters, expected at least 3");
    check_errors(__LINE__, "{'uniqueItems':true}", "[1,2,2.0]",
                 "|#/uniqueItems|uniqueItems|items 1 and 2 are equal");
    check_errors(__LINE__, "{'oneOf':[{'type':'integer'},{'minimum':2}]}", "3",
                 "|#/oneOf|oneOf|alternatives 0 and 1 both match, expected exactly one");
    check_errors(__LINE__, "{'anyOf':[false,{'type':'null'}]}", "3",
                 "|#/anyOf|anyOf|none of the 2 alternatives matches");
    check_errors(__LINE__, "{'not':{}}", "3", "|#/not|not|matches what it must not");
    check_errors(
        __LINE__, "{'contains':{'const':1}}", "[2]",
        "|#/contains|contains|0 of 1 items match what \"contains\" asks, expected at least 1");
    check_errors(
        __LINE__, "{'dependentRequired':{'a':['b']}}", "{'a':1}",
        "|#/dependentRequired|dependentRequired|the member \"b\" is missing, which \"a\" needs");
    check_errors(__LINE__, "{'propertyNames':{'maxLength':1}}", "{'ab':1}",
                 "|#/propertyNames|propertyNames|\"ab\" is no name that a member may have here");
    check_errors(__LINE__, "{'prefixItems':[{'type':'null'}],'unevaluatedItems':false}", "[1,2]",
                 "/0|#/prefixItems/0/type|type|found integer, expected null\n"
                 "/1|#/unevaluatedItems|unevaluatedItems|nothing is accepted here");
    check_errors(__LINE__, "{'multipleOf':2}", "3",
                 "|#/multipleOf|multipleOf|found 3, expected a multiple of 2");
    /* Nothing of a value can pretend to be a line of ours, and long ones are cut. */
    check_errors(
        __LINE__, "{'const':'x'}",
        "'a\\nb\\u001b[31m0123456789012345678901234567890123456789012345678901234567890'",
        "|#/const|const|found "
        "\"a?b?[31m0123456789012345678901234567890123456789012345678901..\", expected \"x\"");
}

CX_TEST(errors_are_counted_and_cut)
{
    cx_schema *schema;
    cx_err err;
    cx_arena arena;
    cx_schema_report report = {0};
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    how.errors_max = 3;
    REQUIRE(
        !cx_failed(compile(CX_SCHEMA_2020_12, true, "{'items':{'type':'null'}}", &schema, &err)));
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json instance = parse(&arena, "[1,2,3,4,5]");
    CHECK_STATUS(cx_schema_check(schema, &instance, &how, &arena, &report, &err), &err);
    CHECK(!report.valid && report.cut);
    CHECK_INT(report.error_count, 3);
    cx_arena_done(&arena);
    cx_schema_close(schema);
}

/* --- limits ----------------------------------------------------------------------------------- */

CX_TEST(checking_has_limits)
{
    cx_schema *schema;
    cx_err err;
    cx_arena arena;
    cx_schema_report report = {0};
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json instance = parse(&arena, "1");
    /* A circle that was let in ends at the depth. */
    REQUIRE(!cx_failed(compile(CX_SCHEMA_2020_12, false, "{'$ref':'#'}", &schema, &err)));
    CHECK(cx_schema_check(schema, &instance, &how, &arena, &report, &err).code == CX_E_LIMIT);
    CHECK_STR(cx_str_z(err.tag), "SchemaDepth");
    cx_schema_close(schema);
    /* Each level doubles the work: it ends at the steps. */
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_add_z(&text, "{'$ref':'#/$defs/s0','$defs':{");
    for (unsigned i = 0; i < 60; i++)
        cx_buf_printf(&text, "'s%u':{'allOf':[{'$ref':'#/$defs/s%u'},{'$ref':'#/$defs/s%u'}]},", i,
                      i + 1, i + 1);
    cx_buf_add_z(&text, "'s60':{'type':'integer'}}}");
    how.steps_max = 100000;
    REQUIRE(!cx_failed(compile(CX_SCHEMA_2020_12, true, cx_buf_z(&text), &schema, &err)));
    CHECK(cx_schema_check(schema, &instance, &how, &arena, &report, &err).code == CX_E_LIMIT);
    CHECK_STR(cx_str_z(err.tag), "SchemaSteps");
    cx_schema_close(schema);
    cx_buf_done(&text);
    /* A pattern without an end. */
    instance = parse(&arena, "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!'");
    REQUIRE(!cx_failed(
        compile(CX_SCHEMA_2020_12, true, "{'not':{'pattern':'^(a+)+(a+)+$'}}", &schema, &err)));
    CHECK(cx_schema_check(schema, &instance, &how, &arena, &report, &err).code == CX_E_LIMIT);
    CHECK_STR(cx_str_z(err.tag), "PatternLimit");
    cx_schema_close(schema);
    cx_arena_done(&arena);
}

CX_TEST(compiling_has_limits)
{
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    cx_schema *schema;
    cx_err err;
    cx_arena arena;
    options.nodes_max = 3;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json document = parse(&arena, "{'allOf':[true,true,true]}");
    CHECK(cx_schema_compile(&options, &document, &schema, &err).code == CX_E_LIMIT);
    options.nodes_max = 4;
    CHECK_STATUS(cx_schema_compile(&options, &document, &schema, &err), &err);
    cx_schema_close(schema);
    cx_schema_close(NULL);
    cx_arena_done(&arena);
}

/* --- other documents -------------------------------------------------------------------------- */

static cx_status find(void *arg, cx_str uri, cx_arena *arena, cx_json *out, cx_err *err)
{
    unsigned *asked = arg;
    *asked += 1;
    if (!cx_str_is(uri, "http://x.test/b/other.json"))
        return cx_fail(err, CX_E_NOT_FOUND, "none");
    *out = parse(arena, "{'$defs':{'n':{'type':'null'}},'$ref':'#/$defs/n'}");
    return CX_SUCCESS;
}

CX_TEST(other_documents_come_from_the_caller_alone)
{
    unsigned asked = 0;
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    cx_schema *schema;
    cx_err err;
    cx_arena arena;
    cx_schema_report report = {0};
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json document = parse(&arena, "{'properties':{'a':{'$ref':'../b/./other.json'}}}");
    options.find = find;
    options.find_arg = &asked;
    options.base_uri = CX_STR("http://x.test/a/main.json");
    CHECK(cx_schema_compile(&options, &document, &schema, &err).code == CX_E_FORMAT);
    CHECK_INT(asked, 0); /* strict: `find` is not called */
    options.strict = false;
    CHECK_STATUS(cx_schema_compile(&options, &document, &schema, &err), &err);
    CHECK_INT(asked, 1);
    cx_json instance = parse(&arena, "{'a':1}");
    CHECK_STATUS(cx_schema_check(schema, &instance, &how, &arena, &report, &err), &err);
    REQUIRE(report.error_count == 1);
    CHECK_STR(report.errors[0].schema, "http://x.test/b/other.json#/$defs/n/type");
    cx_schema_close(schema);
    options.documents_max = 0;
    CHECK(cx_schema_compile(&options, &document, &schema, &err).code == CX_E_LIMIT);
    cx_arena_done(&arena);
}
