/*
 * cmd_memory_find.c - `cortex memory find` and `near`: bounded search (decision 0024: a find has a
 * limit or a budget, and something to start from).
 */
#include <string.h>

#include "cli/ledger/embedder.h"
#include "cli/ledger/read_scope.h"
#include "cli/ledger/memory_view.h"

enum { FIND_DEFAULT = 20, NEAR_DEFAULT = 10, FIND_MAX = 1000 };

typedef struct find_state {
    cx_memory_find find;
    cx_cli_scope scope;
    cx_cli_name from;
    bool near_memory; /* near the vector of `from`, not along its edges */
    uint8_t types[16];
} find_state;

static cx_status read_types(cx_cli_ledger *l, find_state *s, cx_err *err)
{
    size_t count = 0;
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(l->args, "type", given)) != NULL) {
        uint8_t type = cx_uri_type_code(cx_str_z(given->values[0]));
        if (memchr(s->types, type, count) != NULL)
            continue;
        s->types[count++] = type;
    }
    s->find.types = cx_bytes_from(s->types, count);
    (void)err;
    return CX_SUCCESS;
}

static cx_status read_bounds(cx_cli_ledger *l, find_state *s, size_t limit_default, cx_err *err)
{
    uint64_t limit = cx_cli_number(l->args, "limit", limit_default);
    if (limit == 0 || limit > FIND_MAX)
        return cx_fail(err, CX_E_USAGE, "option --limit: found %llu, expected 1 to %d",
                       (unsigned long long)limit, FIND_MAX);
    s->find.limit = (size_t)limit;
    s->find.with_tombstoned = cx_cli_has(l->args, "all");
    s->find.with_expired = cx_cli_has(l->args, "expired");
    return cx_cli_read_scope(l->cli, l->args, &s->scope, err);
}

/* --- find ------------------------------------------------------------------------------------- */

static cx_status read_text(cx_cli_ledger *l, find_state *s, cx_err *err)
{
    const char *text = cx_cli_value(l->args, "text");
    if (text == NULL)
        return CX_SUCCESS;
    if (text[0] == 0)
        return cx_fail(err, CX_E_USAGE, "option --text: expected words");
    s->find.text = cx_str_z(text);
    return CX_SUCCESS;
}

/* FIELD OP VALUE; the longer operators first. */
static cx_status parse_where(cx_cli_ledger *l, const char *text, cx_memory_find *find, cx_err *err)
{
    static const char *const ops[] = {"!=", "<=", ">=", "=", "<", ">", "~"};
    size_t size = strcspn(text, "!=<>~");
    cx_str field = cx_arena_copy_str(l->arena, cx_str_from(text, size));
    if (field.data == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; size != 0 && i < CX_COUNT_OF(ops); i++) {
        if (strncmp(text + size, ops[i], strlen(ops[i])) != 0)
            continue;
        find->field = field;
        find->field_op = strcmp(ops[i], "~") == 0 ? CX_STR("contains") : cx_str_z(ops[i]);
        find->field_value = cx_str_z(text + size + strlen(ops[i]));
        return CX_SUCCESS;
    }
    return cx_fail(err, CX_E_USAGE,
                   "option --where: found '%s', expected FIELD=VALUE, or != < <= > >= or ~ for "
                   "\"contains\"",
                   text);
}

static cx_status parse_find_frame(cx_cli_ledger *l, const char *text, cx_memory_find *find,
                                  cx_err *err)
{
    const char *colon = strchr(text, ':');
    if (colon == NULL || colon[1] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "option --frame: found '%s', expected VERB:REF such as acquire:gpu", text);
    cx_str verb = cx_arena_copy_str(l->arena, cx_str_from(text, (size_t)(colon - text)));
    if (verb.data == NULL)
        return cx_fail_nomem(err);
    find->frame_ref = cx_str_z(colon + 1);
    return cx_cli_parse_word("option --frame, verb", verb.data, cx_verb_name, CX_VERB_MAX,
                             &find->frame_verb, err);
}

static cx_status prepare_find(cx_cli_ledger *l, void *state, cx_err *err)
{
    find_state *s = state;
    const char *frame = cx_cli_value(l->args, "frame"), *from = cx_cli_value(l->args, "from");
    const char *follow = cx_cli_value(l->args, "follow"), *where = cx_cli_value(l->args, "where");
    const char *late = cx_cli_value(l->args, "late");
    CX_TRY(read_types(l, s, err));
    CX_TRY(read_bounds(l, s, FIND_DEFAULT, err));
    CX_TRY(read_text(l, s, err));
    CX_TRY(cx_cli_all_values(l->cli, l->args, "tag", &s->find.tags, &s->find.tag_count, err));
    s->find.budget_tokens = cx_cli_number(l->args, "budget", 0);
    s->find.late_binding = late != NULL;
    if (late != NULL)
        s->find.predicate = cx_str_z(late);
    if (frame != NULL)
        CX_TRY(parse_find_frame(l, frame, &s->find, err));
    if (where != NULL)
        CX_TRY(parse_where(l, where, &s->find, err));
    if (from != NULL) {
        CX_TRY(cx_cli_parse_name(from, &s->from, err));
        s->find.from = &s->from.uri.id;
    }
    if (follow != NULL && from == NULL)
        return cx_fail(err, CX_E_USAGE, "--follow TYPE needs --from URI");
    if (follow != NULL)
        CX_TRY(cx_cli_parse_word("option --follow", follow, cx_uri_edge_type_name, CX_EDGE_TYPE_MAX,
                                 &s->find.follow, err));
    if (s->find.types.size == 0 && s->find.tag_count == 0 && s->find.text.size == 0 &&
        frame == NULL && from == NULL)
        return cx_fail(
            err, CX_E_USAGE,
            "expected at least one of --type, --tag, --text, --frame, --from; 'cortex memory "
            "list' lists all");
    return CX_SUCCESS;
}

static cx_status memory_find_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    find_state *s = state;
    const cx_memory_hit *hits;
    size_t count;
    CX_TRY(cx_cli_scope_open(l, &s->scope, &s->find.scope, err));
    CX_TRY(cx_memory_find_all(l->memory, &s->find, l->arena, &hits, &count, err));
    return cx_cli_hits_answer(l, hits, count, s->find.near != NULL, err);
}

static int run_memory_find(cx_cli *cli, const cx_cli_args *args)
{
    /* A late binding is journaled: that is a write. */
    static const cx_cli_job plain = {CX_CLI_READ, true, prepare_find, memory_find_job};
    static const cx_cli_job late = {CX_CLI_WRITE, true, prepare_find, memory_find_job};
    find_state state = {.find = {.limit = 0}};
    return cx_cli_run_job(cli, args, cx_cli_has(args, "late") ? &late : &plain, &state);
}

#define TYPE_NAMES "Identity|Fact|Preference|Belief|Event|Goal|Constraint|Capability|Pattern"
#define OPTIONS_FIND                                                                           \
    CX_CLI_OPT_MANY("type", 0, CX_CLI_CHOICE, TYPE_NAMES, "This type; may be repeated."),      \
        CX_CLI_OPT("text", 0, CX_CLI_TEXT, "WORDS",                                            \
                   "With all of these words, in any case; WORD* is any that begins with it."), \
        CX_CLI_OPT_FLAG("all", 0, "Dead ones too."),                                           \
        CX_CLI_OPT_FLAG("expired", 0, "Expired ones too."), CX_CLI_OPTIONS_SCOPE

static const cx_cli_option find_options[] = {
    CX_CLI_OPT_MANY("tag", 0, CX_CLI_TEXT, "TAG", "With this tag; several: with all of them."),
    CX_CLI_OPT("frame", 0, CX_CLI_TEXT, "VERB:REF", "About this, such as acquire:gpu."),
    CX_CLI_OPT("from", 0, CX_CLI_TEXT, "URI", "One live edge away from this memory."),
    CX_CLI_OPT("follow", 0, CX_CLI_TEXT, "TYPE", "Only along edges of this type (with --from)."),
    CX_CLI_OPT("where", 0, CX_CLI_TEXT, "FIELD=VALUE",
               "Only memories with this field in their data; != < <= > >= and ~ (contains) work "
               "too. Quote it for the shell."),
    OPTIONS_FIND,
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most N, up to 1000; default 20."),
    CX_CLI_OPT("budget", 0, CX_CLI_COUNT, "TOKENS",
               "Stop before the texts take more tokens than this."),
    CX_CLI_OPT("late", 0, CX_CLI_TEXT, "PREDICATE",
               "Record in the journal what was found, and for which predicate (late binding)."),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_find = {
    .name = "memory find",
    .purpose = "find memories by words, type, tag, frame or edge",
    .about =
        "Lists the memories that match all filters, most salient first, then by id; dead and "
        "expired memories are left out. At least one of --type, --tag, --text, --frame, --from is "
        "needed.",
    .options = find_options,
    .option_count = CX_COUNT_OF(find_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex memory find --type Fact --tag weather --limit 5",
    .run = run_memory_find,
};

/* --- near ------------------------------------------------------------------------------------- */

static cx_status prepare_near(cx_cli_ledger *l, void *state, cx_err *err)
{
    find_state *s = state;
    const char *what = l->args->operands[0];
    CX_TRY(read_types(l, s, err));
    CX_TRY(read_bounds(l, s, NEAR_DEFAULT, err));
    CX_TRY(read_text(l, s, err));
    s->near_memory = !cx_failed(cx_cli_parse_name(what, &s->from, NULL));
    if (s->near_memory)
        return CX_SUCCESS;
    if (cx_cli_embedder_given(l->args) && strchr("[@-", what[0]) == NULL) {
        cx_cli_embedding made;
        CX_TRY(cx_cli_embedder_run(l->cli, l->args, cx_str_z(what), &made, err));
        s->find.near = made.values;
        s->find.near_dim = made.dim;
        return CX_SUCCESS;
    }
    return cx_cli_read_vector(l->cli, what, &s->find.near, &s->find.near_dim, err);
}

/* The vector stored for a memory. */
static cx_status load_vector(cx_cli_ledger *l, find_state *s, cx_err *err)
{
    uint8_t key[9 + 16] = "vec/meta/";
    cx_bytes value;
    cx_vector vector;
    bool found;
    memcpy(key + 9, s->from.uri.id.bytes, 16);
    CX_TRY(cx_home_get(l->home, l->actor, cx_bytes_from(key, sizeof key), l->arena, &value, &found,
                       err));
    if (!found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NotFound", CX_NO_OFFSET,
                          "%s has no vector; 'cortex memory embed' stores one",
                          l->args->operands[0]);
    CX_TRY(cx_vector_decode(value, l->arena, &vector, err));
    s->find.near = vector.values;
    s->find.near_dim = (size_t)vector.dim;
    return CX_SUCCESS;
}

static cx_status memory_near_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    find_state *s = state;
    if (s->near_memory)
        CX_TRY(load_vector(l, s, err));
    return memory_find_job(l, state, err);
}

static int run_memory_near(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, true, prepare_near, memory_near_job};
    find_state state = {.find = {.limit = 0}};
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand near_operands[] = {{"VECTOR", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option near_options[] = {
    OPTIONS_FIND, CX_CLI_OPTIONS_EMBEDDER,
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most N, up to 1000; default 10."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_near = {
    .name = "memory near",
    .purpose = "find memories with the nearest vectors",
    .about = "Searches all vectors of that many numbers exactly, by cosine, and lists the nearest "
             "first. VECTOR is a JSON array of numbers, @FILE, or - for standard input; the URI or "
             "ULID of a memory means the vector of that memory. With --embedder-url or --embedder "
             "any other text is "
             "embedded first.",
    .operands = near_operands,
    .operand_count = CX_COUNT_OF(near_operands),
    .options = near_options,
    .option_count = CX_COUNT_OF(near_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex memory near '[0.1,0.7,0.2]' --limit 5",
    .run = run_memory_near,
};
