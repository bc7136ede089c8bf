#include "tests/unit/import/util.h"

CX_TEST(aider_blocks)
{
    imported in;
    import_text(
        &in, "aider",
        "text before\r\n\r\n# aider chat started at 2026-05-03 09:00:00\r\n> Model: gpt-5 x\n"
        "####\n#### \n#### go\n\n#### on\nsaid\n\n```\n#### in a fence\n> too\n```\nend\n"
        "> Tokens: 1.25k sent, 3,100 received. Cost: $0.5 message\n> Applied edit to a.c\n"
        "> Applied edit to b.c\n# aider chat started at then\n");
    REQUIRE(in.count == 9);
    CHECK_STR(node_text(&in, 1, "/event/text"), "text before");
    CHECK_STR(node_text(&in, node_with(&in, "model", "gpt-5"), "/agent_id"), "harness#2");
    CHECK_STR(node_text(&in, node_with(&in, "text", "on"), "/agent_id"), "user#2");
    size_t said = node_with(&in, "kind", "reason");
    CHECK(node_with(&in, "text", "said\n\n```\n#### in a fence\n> too\n```\nend") < in.count);
    CHECK(said < in.count);
    size_t printed = node_with(&in, "cost_usd", "0.5");
    CHECK_STR(node_text(&in, printed, "/event/tokens/input"), "1250");
    CHECK_STR(node_text(&in, printed, "/event/tokens/output"), "3100");
    CHECK(node_get(&in, printed, "/state_delta/memory/files/a.c/written") != NULL);
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 1);
    CHECK_STR(node_text(&in, 8, "/agent_id"), "harness#3");
    imported_done(&in);
}

/* Aider ends its own lines with two blanks; what looks like them without is the model's. */
CX_TEST(aider_lines_of_its_own)
{
    imported in;
    import_text(&in, "aider",
                "# aider chat started at 2026-05-03 09:00:00\n\n> Aider v0.86.2  \n\n"
                "#### first  \n#### and second  \n\nI do.\n\n#### A heading\n\n> a quotation\n\n"
                "> Applied edit to a.c  \n\n#### go on  \n\n```\n#### cut  ends\n"
                "#### again  \n\nyes\n\n"
                "```\ncut\n# aider chat started at 2026-05-04 09:00:00\n");
    CHECK_STR(node_text(&in, node_with(&in, "text", "first\nand second"), "/agent_id"), "user");
    size_t said = node_with(&in, "text", "I do.\n\n#### A heading\n\n> a quotation");
    REQUIRE(said < in.count);
    CHECK_STR(node_text(&in, said, "/agent_id"), "aider");
    CHECK_STR(node_text(&in, node_with(&in, "text", "```\n#### cut  ends"), "/agent_id"), "aider");
    CHECK_STR(node_text(&in, node_with(&in, "text", "again"), "/agent_id"), "user");
    CHECK_STR(node_text(&in, in.count - 1, "/agent_id"), "harness#2");
    imported_done(&in);
}

CX_TEST(aider_prompts_and_bad_text)
{
    imported in;
    import_text(&in, "auto",
                "\n# 2026-05-03 09:00:00.125\n+a\n+b\n\n# 2026-05-03 09:00:01\n# bad time\n+c");
    REQUIRE(in.count == 3);
    CHECK_STR(node_text(&in, 1, "/event/text"), "a\nb");
    CHECK_STR(node_text(&in, 1, "/event/t_ns"), "1777798800125000000");
    CHECK_INT(issue_count(&in, CX_ISSUE_BAD_TIME), 1);
    imported_done(&in);
    import_text(&in, "aider", "# aider chat started at x\n\xff\n");
    CHECK_STR(cx_str_z(in.err.tag), "U_UTF8");
    imported_done(&in);
    import_text(&in, "aider", "");
    CHECK_INT(in.count, 1);
    imported_done(&in);
    CHECK(cx_import_detect(cx_str_bytes(CX_STR("# A title\n\n> quoted\n"))) == NULL);
}
