/*
 * test_opt.c - reading a command line by a table.  The program's files are no library: the file
 * under test is taken in as source.
 */
#include "tests/test.h"

#include "cli/opt.c"     /* NOLINT: see above */
#include "cli/suggest.c" /* NOLINT: see above */

#include "base/alloc.h"

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false},
                                          {"MORE", CX_CLI_TEXT, NULL, true, true}};
static const cx_cli_operand one_operand[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("strict", 0, "Be strict."),
    CX_CLI_OPT_FLAG("quiet", 'q', "Say nothing."),
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "OUT", "Write there."),
    CX_CLI_OPT_MANY("head", 0, CX_CLI_TEXT, "AGENT=HASH", "A head."),
    {"compare", 0, CX_CLI_TEXT, "A B", "Two agents.", 2, false},
    CX_CLI_OPT("threads", 0, CX_CLI_COUNT, "N", "How many."),
    CX_CLI_OPT("max-bytes", 0, CX_CLI_SIZE, "SIZE", "How long."),
    CX_CLI_OPT("base", 0, CX_CLI_CHOICE, "lca|none", "Which base."),
    CX_CLI_OPTIONS_COMMON};

static const cx_cli_command sample = {
    .name = "lattice verify",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .example = "cortex lattice verify a.jsonl\ncortex lattice verify b.jsonl",
};
static const cx_cli_command narrow = {
    .name = "lattice state",
    .operands = one_operand,
    .operand_count = 1,
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .example = "cortex lattice state a.jsonl",
};
static const cx_cli_command lone = {.name = "version", .example = "cortex version"};

static const cx_cli_command *const table[] = {&sample, &narrow, &lone};
static const cx_cli_commands commands = {table, CX_COUNT_OF(table)};

typedef struct parsed {
    cx_arena arena;
    cx_cli_args args;
    cx_err err;
    cx_status status;
} parsed;

enum { WORDS_MAX = 12 };

static void parse(parsed *p, const cx_cli_command *command, const char *const words[WORDS_MAX])
{
    size_t count = 0;
    while (count < WORDS_MAX && words[count] != NULL)
        count++;
    cx_arena_init(&p->arena, cx_alloc_default(), 0);
    p->err = (cx_err){0};
    p->status = cx_cli_parse(command, words, count, &p->arena, &p->args, &p->err);
}

#define WORDS(...) ((const char *const[WORDS_MAX]){__VA_ARGS__})

static bool message_has(const parsed *p, const char *part)
{
    return strstr(p->err.message, part) != NULL;
}

CX_TEST(opt_takes_options_before_and_after_operands)
{
    parsed p;
    parse(&p, &sample, WORDS("--strict", "a", "--threads", "4", "b", "-o", "out"));
    CHECK_STATUS(p.status, &p.err);
    CHECK_INT(p.args.operand_count, 2);
    CHECK_STR(cx_str_z(p.args.operands[0]), "a");
    CHECK_STR(cx_str_z(p.args.operands[1]), "b");
    CHECK(cx_cli_has(&p.args, "strict"));
    CHECK(!cx_cli_has(&p.args, "quiet"));
    CHECK(cx_cli_takes(&p.args, "quiet") && !cx_cli_takes(&p.args, "loud"));
    CHECK_INT(cx_cli_number(&p.args, "threads", 1), 4);
    CHECK_STR(cx_str_z(cx_cli_value(&p.args, "output")), "out");
    CHECK(cx_cli_value(&p.args, "base") == NULL);
    CHECK_INT(cx_cli_number(&p.args, "max-bytes", 77), 77);
    cx_arena_done(&p.arena);
}

CX_TEST(opt_takes_values_after_equals_and_letters)
{
    parsed p;
    parse(&p, &sample, WORDS("-qoout", "a", "--head=x=1", "--head", "y=2", "--max-bytes=3K"));
    CHECK_STATUS(p.status, &p.err);
    CHECK(cx_cli_has(&p.args, "quiet"));
    CHECK_STR(cx_str_z(cx_cli_value(&p.args, "output")), "out");
    const cx_cli_given *first = cx_cli_next(&p.args, "head", NULL);
    REQUIRE(first != NULL);
    CHECK_STR(cx_str_z(first->values[0]), "x=1");
    const cx_cli_given *second = cx_cli_next(&p.args, "head", first);
    REQUIRE(second != NULL);
    CHECK_STR(cx_str_z(second->values[0]), "y=2");
    CHECK(cx_cli_next(&p.args, "head", second) == NULL);
    CHECK_INT(cx_cli_number(&p.args, "max-bytes", 0), 3072);
    cx_arena_done(&p.arena);
}

CX_TEST(opt_ends_options_at_two_dashes)
{
    parsed p;
    parse(&p, &sample, WORDS("--", "--strict", "-", "--"));
    CHECK_STATUS(p.status, &p.err);
    CHECK_INT(p.args.operand_count, 3);
    CHECK(!cx_cli_has(&p.args, "strict"));
    CHECK_STR(cx_str_z(p.args.operands[0]), "--strict");
    CHECK_STR(cx_str_z(p.args.operands[2]), "--");
    cx_arena_done(&p.arena);
    parse(&p, &sample, WORDS("-"));
    CHECK_STATUS(p.status, &p.err);
    CHECK_STR(cx_str_z(p.args.operands[0]), "-");
    cx_arena_done(&p.arena);
}

CX_TEST(opt_takes_two_values)
{
    parsed p;
    parse(&p, &sample, WORDS("--compare", "a", "b", "file"));
    CHECK_STATUS(p.status, &p.err);
    const cx_cli_given *given = cx_cli_next(&p.args, "compare", NULL);
    REQUIRE(given != NULL);
    CHECK_STR(cx_str_z(given->values[0]), "a");
    CHECK_STR(cx_str_z(given->values[1]), "b");
    CHECK_STR(cx_str_z(p.args.operands[0]), "file");
    cx_arena_done(&p.arena);
}

CX_TEST(opt_refuses_what_it_does_not_know)
{
    static const struct {
        const char *words[WORDS_MAX];
        const char *part;
    } cases[] = {
        {{"f", "--stritc"}, "did you mean '--strict'?"},
        {{"f", "--max"}, "did you mean '--max-bytes'?"},
        {{"f", "--compere=a"}, "did you mean '--compare'?"},
        {{"f", "--zzzzzz"}, "unknown option '--zzzzzz'"},
        {{"f", "-x"}, "unknown option '-x'"},
        {{"f", "-qx"}, "unknown option '-x'"},
        {{"f", "--strict=1"}, "takes no value"},
        {{"f", "--output"}, "expected --output OUT"},
        {{"f", "--compare", "a"}, "expected --compare A B"},
        {{"f", "--base", "lcd"}, "expected one of lca|none"},
        {{"f", "--base", "lca|none"}, "expected one of lca|none"},
        {{"f", "--threads", "many"}, "expected a number"},
        {{"f", "--threads", "4K"}, "expected a number"},
        {{"f", "--threads", ""}, "expected a number"},
        {{"f", "--threads", "18446744073709551616"}, "expected a number"},
        {{"f", "--max-bytes", "17179869184G"}, "expected a number"},
        {{"f", "--max-bytes", "1KK"}, "expected a number"},
        {{"f", "--threads", "1", "--threads", "2"}, "given twice"},
        {{"--strict"}, "expected FILE, for example: cortex lattice verify a.jsonl"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        parsed p;
        parse(&p, &sample, cases[i].words);
        CHECK_INT(p.status.code, CX_E_USAGE);
        if (!message_has(&p, cases[i].part))
            cx_test_fail(__FILE__, __LINE__, "case %zu: '%s' lacks '%s'", i, p.err.message,
                         cases[i].part);
        cx_arena_done(&p.arena);
    }
}

CX_TEST(opt_counts_operands)
{
    parsed p;
    parse(&p, &narrow, WORDS("a", "b"));
    CHECK_INT(p.status.code, CX_E_USAGE);
    CHECK(message_has(&p, "'b' is one operand too many"));
    cx_arena_done(&p.arena);
    /* The example ends at its first line. */
    parse(&p, &sample, WORDS(NULL));
    CHECK_INT(p.status.code, CX_E_USAGE);
    CHECK(!message_has(&p, "b.jsonl"));
    cx_arena_done(&p.arena);
}

CX_TEST(opt_help_needs_no_operands)
{
    parsed p;
    parse(&p, &sample, WORDS("--help"));
    CHECK_STATUS(p.status, &p.err);
    CHECK(p.args.help);
    cx_arena_done(&p.arena);
    parse(&p, &sample, WORDS("-h"));
    CHECK_STATUS(p.status, &p.err);
    CHECK(p.args.help);
    cx_arena_done(&p.arena);
}

CX_TEST(opt_reads_the_largest_numbers)
{
    parsed p;
    parse(&p, &sample,
          WORDS("f", "--threads", "18446744073709551615", "--max-bytes", "17179869183G"));
    CHECK_STATUS(p.status, &p.err);
    CHECK(cx_cli_number(&p.args, "threads", 0) == UINT64_MAX);
    CHECK(cx_cli_number(&p.args, "max-bytes", 0) == UINT64_MAX - ((1u << 30) - 1));
    cx_arena_done(&p.arena);
}

CX_TEST(opt_finds_commands_and_groups)
{
    size_t used = 0;
    const char *two[] = {"lattice", "state", "x"};
    CHECK(cx_cli_find_command(commands, two, 3, &used) == &narrow);
    CHECK_INT(used, 2);
    CHECK(cx_cli_find_command(commands, two, 1, &used) == NULL);
    const char *one[] = {"version"};
    CHECK(cx_cli_find_command(commands, one, 1, &used) == &lone);
    CHECK_INT(used, 1);
    const char *prefix[] = {"versio"};
    CHECK(cx_cli_find_command(commands, prefix, 1, &used) == NULL);
    CHECK(cx_cli_is_group(commands, "lattice"));
    CHECK(!cx_cli_is_group(commands, "latt"));
    CHECK(!cx_cli_is_group(commands, "version"));
    CHECK(!cx_cli_is_group(commands, ""));
}

CX_TEST(opt_suggests_the_closest_command)
{
    CHECK(cx_cli_suggest_command(commands, "vesrion") == &lone);
    CHECK(cx_cli_suggest_command(commands, "lattice sate") == &narrow);
    CHECK(cx_cli_suggest_command(commands, "verify") == &sample);
    CHECK(cx_cli_suggest_command(commands, "frobnicate") == NULL);
    char long_name[200];
    memset(long_name, 'v', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    CHECK(cx_cli_suggest_command(commands, long_name) == NULL);
}

CX_TEST(opt_distance_counts_edits)
{
    CHECK_INT(cx_cli_edit_distance("", ""), 0);
    CHECK_INT(cx_cli_edit_distance("abc", ""), 3);
    CHECK_INT(cx_cli_edit_distance("kitten", "sitting"), 3);
    CHECK_INT(cx_cli_edit_distance("ab", "ba"), 1);
    CHECK_INT(cx_cli_edit_distance("strict", "stritc"), 1);
    CHECK_INT(cx_cli_edit_distance("a", "b"), 1);
}

CX_TEST(opt_refuses_text_that_is_not_utf8)
{
    parsed p;
    parse(&p, &sample, WORDS("a", "--compare", "x", "\xff"));
    CHECK_INT(p.status.code, CX_E_USAGE);
    CHECK(message_has(&p, "UTF-8"));
    cx_arena_done(&p.arena);
}
