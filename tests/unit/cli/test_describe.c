/*
 * test_describe.c - help says all that a table holds.
 */
#include "tests/test.h"

#include "cli/describe.c" /* NOLINT: the program's files are no library */

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false},
                                          {"MORE", CX_CLI_TEXT, NULL, true, true}};
static const cx_cli_option options[] = {
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "OUT", "Write to OUT, 'quoted' and .dotted."),
    CX_CLI_OPT_FLAG("plain-ids", 0, "Plain."), CX_CLI_OPTIONS_COMMON};
static const cx_cli_command sample = {
    .name = "lattice draw",
    .purpose = "draw it",
    .about = "One paragraph of words that is certainly longer than eighty columns, so that it has "
             "to be wrapped somewhere.\n\n.Second paragraph, with a back\\slash.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 fine\n1 not fine",
    .example = "cortex lattice draw a.jsonl",
};
static const cx_cli_command lone = {.name = "solo",
                                    .purpose = "alone",
                                    .about = "Alone.",
                                    .exits = "0 fine",
                                    .example = "cortex solo"};
static const cx_cli_command *const table[] = {&sample, &lone};
static const cx_cli_commands commands = {table, CX_COUNT_OF(table)};

static bool has(const cx_buf *text, const char *part)
{
    return memmem(text->data, text->size, part, strlen(part)) != NULL;
}

static size_t longest_line(const cx_buf *text)
{
    size_t longest = 0, start = 0;
    for (size_t i = 0; i < text->size; i++)
        if (text->data[i] == '\n') {
            longest = i - start > longest ? i - start : longest;
            start = i + 1;
        }
    return longest;
}

CX_TEST(describe_synopsis_names_operands)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_cli_write_synopsis(&out, &sample);
    CHECK_STR(cx_buf_str(&out), "cortex lattice draw [OPTIONS] FILE [MORE...]");
    cx_buf_done(&out);
}

CX_TEST(describe_help_is_complete_and_narrow)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_cli_write_help(&out, &sample);
    CHECK(has(&out, "cortex lattice draw - draw it\n"));
    CHECK(has(&out, "  -o, --output OUT\n      Write to OUT"));
    CHECK(has(&out, "  --plain-ids\n"));
    CHECK(has(&out, "  --color auto|always|never\n"));
    CHECK(has(&out, "  -h, --help\n"));
    CHECK(has(&out, "  0  fine\n  1  not fine\n"));
    CHECK(has(&out, "Example:\n  cortex lattice draw a.jsonl\n"));
    CHECK(has(&out, "somewhere.\n\n.Second"));
    CHECK(longest_line(&out) <= 80);
    cx_buf_done(&out);
}

CX_TEST(describe_overview_can_show_one_group)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_cli_write_overview(&out, commands, NULL);
    CHECK(has(&out, "'cortex help all' lists all commands by job.\n"));
    cx_buf_clear(&out);
    cx_cli_write_all(&out, commands);
    CHECK(has(&out, "\nDebug a history:\n  lattice draw  draw it\n"));
    cx_buf_clear(&out);
    cx_cli_write_overview(&out, commands, "lattice");
    CHECK(has(&out, "  lattice draw  draw it\n"));
    CHECK(!has(&out, "solo"));
    cx_buf_done(&out);
}

CX_TEST(describe_json_is_json)
{
    cx_buf out;
    cx_arena arena;
    cx_err err;
    cx_json value;
    cx_buf_init(&out, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_cli_write_json(&out, commands);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&out), &arena, &value, &err), &err);
    const cx_json *list = CX_JSON_GET(&value, "commands");
    REQUIRE(list != NULL && list->count == 2);
    CHECK_STR(CX_JSON_GET_STR(&list->items[0], "name"), "lattice draw");
    CHECK_INT(CX_JSON_GET(&list->items[0], "options")->count, CX_COUNT_OF(options));
    CHECK_INT(CX_JSON_GET(&list->items[0], "operands")->count, CX_COUNT_OF(operands));
    cx_arena_done(&arena);
    cx_buf_done(&out);
}
