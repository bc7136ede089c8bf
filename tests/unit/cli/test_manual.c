/*
 * test_manual.c - manual pages say all that a table holds, in text that roff leaves alone.
 */
#include "tests/test.h"

#include "cli/manual.c" /* NOLINT: the program's files are no library */

static const cx_cli_option options[] = {
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "OUT", "Write to OUT, 'quoted' and .dotted."),
    CX_CLI_OPT_FLAG("plain-ids", 0, "Plain.")};
static const cx_cli_command draw = {
    .name = "lattice draw",
    .purpose = "draw it",
    .about = "One paragraph.\n\n.Second paragraph, with a back\\slash.",
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
static const cx_cli_command *const table[] = {&draw, &lone};
static const cx_cli_commands commands = {table, CX_COUNT_OF(table)};

static bool has(const cx_buf *text, const char *part)
{
    return memmem(text->data, text->size, part, strlen(part)) != NULL;
}

CX_TEST(manual_escapes_what_roff_would_read)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_cli_write_man(&out, commands);
    CHECK(has(&out, ".SS lattice draw\n"));
    CHECK(has(&out, "\\-o\\fR, \\fB\\-\\-output"));
    CHECK(has(&out, "\\(aqquoted\\(aq and .dotted"));
    CHECK(has(&out, ".PP\n\\&.Second paragraph, with a back\\eslash.\n"));
    CHECK(has(&out, ".B \\-\\-plain\\-ids\n"));
    cx_buf_done(&out);
}

CX_TEST(manual_gives_each_first_word_a_page)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK(cx_cli_write_page(&out, commands, "lattice"));
    CHECK(has(&out, ".TH \"CORTEX\\-LATTICE\" 1 "));
    CHECK(has(&out, "questions about the histories of agents\n"));
    CHECK(has(&out, ".B cortex lattice draw [OPTIONS]\n"));
    CHECK(!has(&out, "solo"));
    cx_buf_clear(&out);
    CHECK(cx_cli_write_page(&out, commands, "solo"));
    CHECK(has(&out, "cortex\\-solo \\- alone\n"));
    CHECK(!has(&out, ".SS"));
    cx_buf_clear(&out);
    CHECK(!cx_cli_write_page(&out, commands, "latt"));
    CHECK(!cx_cli_write_page(&out, commands, "draw"));
    CHECK_INT(out.size, 0);
    cx_buf_done(&out);
}
