/*
 * cmd_memory_work.c - `cortex memory attest`, `compact`, `embed`.
 */
#include <string.h>

#include "cli/ledger/embedder.h"
#include "cli/ledger/memory_view.h"

static const char *value_or(const cx_cli_args *args, const char *option, const char *fallback)
{
    const char *value = cx_cli_value(args, option);
    return value == NULL ? fallback : value;
}

/* The URIs after the first `skip` operands, or of a repeatable option. */
static cx_status parse_uris(cx_cli *cli, const char *const *texts, size_t count, const cx_uri **out,
                            cx_err *err)
{
    cx_uri *uris = CX_ARENA_ARRAY(&cli->arena, cx_uri, count + 1);
    if (uris == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        CX_TRY(cx_memory_uri_parse(cx_str_z(texts[i]), &uris[i], err));
    *out = uris;
    return CX_SUCCESS;
}

/* --- attest ----------------------------------------------------------------------------------- */

static cx_status prepare_attest(cx_cli_ledger *l, void *state, cx_err *err)
{
    cx_memory_attest *attest = state;
    size_t count = l->args->operand_count - 2;
    cx_str *cited = CX_ARENA_ARRAY(l->arena, cx_str, count + 1);
    if (cited == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        cited[i] = cx_str_z(l->args->operands[i + 2]);
    if (strcmp(l->args->operands[1], "success") != 0 &&
        strcmp(l->args->operands[1], "failure") != 0)
        return cx_fail_at(err, CX_E_USAGE, "InvalidOutcome", CX_NO_OFFSET,
                          "OUTCOME: found '%s', expected success or failure", l->args->operands[1]);
    *attest = (cx_memory_attest){
        .intent = cx_str_z(l->args->operands[0]),
        .outcome = strcmp(l->args->operands[1], "failure") == 0,
        .reason = cx_str_z(value_or(l->args, "reason", "")),
        .cited = cited,
        .cited_count = count,
        .by = l->actor,
    };
    if (cx_cli_has(l->args, "by"))
        attest->by = cx_str_z(cx_cli_value(l->args, "by"));
    return CX_SUCCESS;
}

static cx_status memory_attest_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const cx_memory_attest *attest = state;
    cx_weights_record now;
    cx_memory_attested done;
    CX_TRY(cx_memory_attest_outcome(l->memory, attest, &done, err));
    CX_TRY(cx_memory_weights_now(l->memory, &now, err));
    const cx_weights *w = &now.weights;
    if (!l->json) {
        cx_buf_printf(
            &l->out,
            "attested as entry %llu with %zu of %zu cited; weights %s: recency %.3f access "
            "%.3f citations %.3f declared %.3f vector %.3f\n",
            (unsigned long long)done.seq, done.used, attest->cited_count,
            done.learned ? "now" : "as before", (double)w->r, (double)w->a, (double)w->c,
            (double)w->d, (double)w->v);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena), weights = cx_json_list_begin(l->arena);
    cx_json_put_float(&weights, "access", w->a);
    cx_json_put_float(&weights, "citations", w->c);
    cx_json_put_float(&weights, "declared", w->d);
    cx_json_put_float(&weights, "recency", w->r);
    cx_json_put_float(&weights, "vector", w->v);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_str(&json, "intent", attest->intent);
    cx_json_put_str(&json, "outcome", attest->outcome == 0 ? CX_STR("success") : CX_STR("failure"));
    cx_json_put_bool(&json, "learned", done.learned);
    cx_json_put_uint(&json, "seq", done.seq);
    cx_json_put_uint(&json, "used", done.used);
    cx_json_put_object(&json, "weights", &weights);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_memory_attest(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_attest, memory_attest_job};
    cx_memory_attest state;
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand attest_operands[] = {
    {"INTENT", CX_CLI_TEXT, NULL, false, false},
    {"OUTCOME", CX_CLI_CHOICE, "success|failure", false, false},
    {"URI", CX_CLI_TEXT, NULL, false, true}};

static const cx_cli_option attest_options[] = {
    CX_CLI_OPT(
        "reason", 0, CX_CLI_TEXT, "TEXT",
        "Why it failed; factual_error and wrong_assumption count against the cited memories."),
    CX_CLI_OPT("by", 0, CX_CLI_TEXT, "NAME", "The author; default the actor."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_attest = {
    .name = "memory attest",
    .purpose = "record an outcome and the memories it rested on",
    .about = "Journals the outcome of INTENT with the memories cited, and learns from it how much "
             "recency, access, citations and declared importance count. URIs that are unknown or "
             "dead are skipped.",
    .operands = attest_operands,
    .operand_count = CX_COUNT_OF(attest_operands),
    .options = attest_options,
    .option_count = CX_COUNT_OF(attest_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex memory attest deploy-42 success "
               "'matrix://cortex/Fact/01HF7YAT000000000000000003#1'",
    .run = run_memory_attest,
};

/* --- compact ---------------------------------------------------------------------------------- */

static cx_status prepare_compact(cx_cli_ledger *l, void *state, cx_err *err)
{
    cx_memory_compact *compact = state;
    const char **bearing = CX_ARENA_ARRAY(l->arena, const char *, l->args->given_count + 1);
    if (bearing == NULL)
        return cx_fail_nomem(err);
    *compact = (cx_memory_compact){
        .intent = cx_str_z(l->args->operands[0]),
        .step = cx_str_z(l->args->operands[1]),
        .in_context_count = l->args->operand_count - 2,
        .budget = cx_cli_number(l->args, "budget", 0),
    };
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(l->args, "load-bearing", given)) != NULL)
        bearing[compact->load_bearing_count++] = given->values[0];
    CX_TRY(parse_uris(l->cli, l->args->operands + 2, compact->in_context_count,
                      &compact->in_context, err));
    return parse_uris(l->cli, bearing, compact->load_bearing_count, &compact->load_bearing, err);
}

static cx_status answer_compact_json(cx_cli_ledger *l, const cx_checkpoint_record *record,
                                     cx_str uri, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(l->arena), list = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < record->compacted_count; i++) {
        cx_json_list item = cx_json_list_begin(l->arena);
        cx_json_put_float(&item, "salience", record->compacted[i].salience);
        cx_json_put_str(&item, "short", record->compacted[i].brief);
        cx_json_put_str(&item, "uri", record->compacted[i].uri);
        cx_json_add_object(&list, &item);
    }
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uint(&json, "budget", record->budget);
    cx_json_put_strs(&json, "kept", record->kept, record->kept_count);
    cx_json_put_str(&json, "uri", uri);
    cx_json_put_array(&json, "compacted", &list);
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status memory_compact_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    const cx_memory_compact *compact = state;
    cx_checkpoint_record record;
    CX_TRY(cx_memory_compact_context(l->memory, compact, l->arena, &record, err));
    cx_buf name;
    cx_buf_init(&name, l->cli->alloc);
    cx_compact_uri_add(compact->intent, compact->step, &name);
    cx_str uri = cx_arena_copy_str(l->arena, cx_buf_str(&name));
    cx_buf_done(&name);
    if (uri.data == NULL)
        return cx_fail_nomem(err);
    if (l->json)
        return answer_compact_json(l, &record, uri, err);
    cx_shown_add(&l->out, uri);
    cx_buf_add_byte(&l->out, '\n');
    for (size_t i = 0; i < record.kept_count; i++) {
        cx_buf_add_z(&l->out, "kept       ");
        cx_shown_add(&l->out, record.kept[i]);
        cx_buf_add_byte(&l->out, '\n');
    }
    for (size_t i = 0; i < record.compacted_count; i++) {
        cx_buf_add_z(&l->out, "compacted  ");
        cx_shown_add(&l->out, record.compacted[i].uri);
        cx_buf_add_z(&l->out, "  ");
        cx_shown_add(&l->out, record.compacted[i].brief);
        cx_buf_add_byte(&l->out, '\n');
    }
    return CX_SUCCESS;
}

static int run_memory_compact(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_compact, memory_compact_job};
    cx_memory_compact state;
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand compact_operands[] = {{"INTENT", CX_CLI_TEXT, NULL, false, false},
                                                  {"STEP", CX_CLI_TEXT, NULL, false, false},
                                                  {"URI", CX_CLI_TEXT, NULL, false, true}};

static const cx_cli_option compact_options[] = {
    CX_CLI_OPT_MANY("load-bearing", 0, CX_CLI_TEXT, "URI",
                    "A memory to keep whole; may be repeated."),
    CX_CLI_OPT("budget", 0, CX_CLI_COUNT, "TOKENS", "For all texts together; default 4000."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_compact = {
    .name = "memory compact",
    .purpose = "shorten a context and record its memories",
    .about =
        "Of the memories in context, keeps the load-bearing ones whole: those of --load-bearing, "
        "identities, hard constraints, active goals. The others become one line each, and dead "
        "memories are dropped. The result is recorded in the journal under INTENT and STEP.",
    .operands = compact_operands,
    .operand_count = CX_COUNT_OF(compact_operands),
    .options = compact_options,
    .option_count = CX_COUNT_OF(compact_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex memory compact deploy-42 step-3 "
               "'matrix://cortex/Fact/01HF7YAT000000000000000003#1'",
    .run = run_memory_compact,
};

/* --- embed ------------------------------------------------------------------------------------ */

typedef struct embed_state {
    cx_uri uri;
    cx_str model;
    const float *values; /* NULL = the embedder computes them */
    size_t dim;
} embed_state;

static cx_status prepare_embed(cx_cli_ledger *l, void *state, cx_err *err)
{
    embed_state *s = state;
    const char *model = cx_cli_value(l->args, "model");
    bool given = l->args->operand_count > 1;
    *s = (embed_state){.model = model == NULL ? CX_STR("") : cx_str_z(model)};
    if (!given && !cx_cli_embedder_given(l->args))
        return cx_fail(err, CX_E_USAGE,
                       "expected VECTOR, or --embedder-url URL or --embedder COMMAND: the server "
                       "or program that computes it");
    if (given && s->model.size == 0)
        return cx_fail(err, CX_E_USAGE,
                       "expected --model NAME: the model that computed the vector");
    CX_TRY(cx_memory_uri_parse(cx_str_z(l->args->operands[0]), &s->uri, err));
    return given ? cx_cli_read_vector(l->cli, l->args->operands[1], &s->values, &s->dim, err)
                 : CX_SUCCESS;
}

/* The vector of the version's full form. */
static cx_status compute_vector(cx_cli_ledger *l, embed_state *s, cx_err *err)
{
    cx_memory_view view;
    cx_cli_embedding made;
    cx_data data;
    cx_buf text;
    CX_TRY(cx_memory_resolve(l->memory, &s->uri, l->arena, &view, err));
    if (view.version.erased)
        return cx_fail_at(err, CX_E_CONFLICT, "Tombstoned", CX_NO_OFFSET,
                          "the memory was erased: there is no text to embed");
    CX_TRY(cx_data_decode(view.head.type, view.version.data.bytes, l->arena, &data, err));
    cx_buf_init(&text, l->cli->alloc);
    cx_forms_full(&data, &text);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_cli_embedder_run(l->cli, l->args, cx_buf_str(&text), &made, err);
    cx_buf_done(&text);
    CX_TRY(status);
    s->values = made.values;
    s->dim = made.dim;
    if (s->model.size == 0)
        s->model = made.model;
    if (s->model.size == 0)
        return cx_fail(err, CX_E_USAGE,
                       "the embedder names no model: expected --model or --embedder-model");
    return CX_SUCCESS;
}

static cx_status memory_embed_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    embed_state *s = state;
    if (s->values == NULL)
        CX_TRY(compute_vector(l, s, err));
    CX_TRY(
        cx_memory_embed(l->memory, &s->uri.id, s->uri.version, s->model, s->values, s->dim, err));
    if (!l->json) {
        cx_uri_add(&s->uri, &l->out);
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uint(&json, "dim", s->dim);
    cx_json_put_str(&json, "model", s->model);
    cx_json_put_uri(&json, "uri", &s->uri);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_memory_embed(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_embed, memory_embed_job};
    embed_state state;
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand embed_operands[] = {{"URI", CX_CLI_TEXT, NULL, false, false},
                                                {"VECTOR", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option embed_options[] = {
    CX_CLI_OPT("model", 0, CX_CLI_TEXT, "NAME",
               "The model that made the vector; needed with VECTOR."),
    CX_CLI_OPTIONS_EMBEDDER, CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_embed = {
    .name = "memory embed",
    .purpose = "store the vector of a memory",
    .about =
        "Stores a vector that a model computed from the memory's text, for 'cortex memory "
        "near'. URI must name the current version. VECTOR is a JSON array of numbers, @FILE, "
        "or - for standard input. Without VECTOR the server of --embedder-url or the program of "
        "--embedder computes it: it gets {\"input\":TEXT,\"model\":NAME} in a POST or on standard "
        "input, and answers the array, or what Ollama and OpenAI-compatible servers answer.",
    .operands = embed_operands,
    .operand_count = CX_COUNT_OF(embed_operands),
    .options = embed_options,
    .option_count = CX_COUNT_OF(embed_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex memory embed 'matrix://cortex/Fact/01HF7YAT000000000000000003#1' "
               "@v.json --model m",
    .run = run_memory_embed,
};
