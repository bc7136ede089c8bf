/*
 * embedder_program.c - vectors from a program (embedder_program.h).
 */
#include "cli/ledger/embedder_program.h"

#include <math.h>
#include <string.h>

#include "cli/user_program.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define SECONDS_DEFAULT 60

bool cx_cli_embedder_given(const cx_cli_args *args)
{
    const char *command = cx_cli_value(args, "embedder");
    return command != NULL && command[0] != 0;
}

/* --- the answer ------------------------------------------------------------------------------- */

static cx_status fail_answer(cx_err *err, const char *what)
{
    return cx_fail_at(err, CX_E_IO, "EmbedderFailed", CX_NO_OFFSET,
                      "the embedder answered %s; expected a JSON array of numbers, or an object "
                      "with one in embedding, embeddings or data",
                      what);
}

/* The array of numbers in an answer; NULL when there is none. */
static const cx_json *find_vector(const cx_json *answer)
{
    static const char *const places[] = {"/embedding", "/embeddings/0", "/data/0/embedding"};
    if (answer->type == CX_JSON_ARRAY)
        return answer;
    for (size_t i = 0; i < CX_COUNT_OF(places) && answer->type == CX_JSON_OBJECT; i++) {
        const cx_json *found = cx_json_pointer(answer, cx_str_z(places[i]));
        if (found != NULL && found->type == CX_JSON_ARRAY)
            return found;
    }
    return NULL;
}

static cx_status read_answer(cx_cli *cli, cx_str text, cx_cli_embedding *out, cx_err *err)
{
    cx_json answer;
    if (cx_failed(cx_json_parse_text(text, &cli->arena, &answer, NULL)))
        return fail_answer(err, text.size == 0 ? "nothing" : "what is not JSON");
    const cx_json *list = find_vector(&answer);
    if (list == NULL || list->count == 0)
        return fail_answer(err, list == NULL ? "no vector" : "an empty vector");
    if (list->count > CX_NEAR_DIM_MAX)
        return cx_fail_at(err, CX_E_IO, "EmbedderFailed", CX_NO_OFFSET,
                          "the embedder answered %lu numbers, expected at most %d",
                          (unsigned long)list->count, CX_NEAR_DIM_MAX);
    float *values = CX_ARENA_ARRAY(&cli->arena, float, list->count);
    if (values == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        double number;
        if (!cx_json_double(&list->items[i], &number) || !isfinite((float)number))
            return fail_answer(err, "a vector with something that is no finite number");
        values[i] = (float)number;
    }
    out->values = values;
    out->dim = list->count;
    cx_str model =
        answer.type == CX_JSON_OBJECT ? CX_JSON_GET_STR(&answer, "model") : (cx_str){NULL, 0};
    if (model.size != 0)
        out->model = model;
    return CX_SUCCESS;
}

/* --- running it ------------------------------------------------------------------------------- */

static void write_question(cx_str text, cx_str model, cx_buf *out)
{
    cx_buf_add_z(out, "{\"input\":");
    cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
    if (model.size != 0) {
        cx_buf_add_z(out, ",\"model\":");
        cx_json_write_str(out, model, CX_JSON_PY_COMPACT);
    }
    cx_buf_add_z(out, "}\n");
}

static cx_status run_program(cx_cli *cli, const cx_cli_user_program *program, cx_str question,
                             cx_cli_embedding *out, cx_err *err)
{
    const char *name;
    cx_buf answer;
    cx_buf_init(&answer, cli->alloc);
    cx_status status =
        cx_cli_user_program_run(cli, program, cx_str_bytes(question), &answer, &name, err);
    cx_str text = cx_arena_copy_str(&cli->arena, cx_buf_str(&answer));
    if (!cx_failed(status) && text.data == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status))
        status = read_answer(cli, text, out, err);
    cx_buf_done(&answer);
    return status;
}

cx_status cx_cli_embedder_run(cx_cli *cli, const cx_cli_args *args, cx_str text,
                              cx_cli_embedding *out, cx_err *err)
{
    const cx_cli_user_program program = {
        .option = "embedder",
        .command = cx_cli_value(args, "embedder"),
        .failure = "EmbedderFailed",
        .timeout_s = cx_cli_number(args, "embedder-timeout", SECONDS_DEFAULT),
        .output_max = OUTPUT_MAX,
    };
    const char *model = cx_cli_value(args, "embedder-model");
    cx_buf question;
    *out = (cx_cli_embedding){.model = model == NULL ? CX_STR("") : cx_str_z(model)};
    if (program.command == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "expected --embedder COMMAND: the program that computes "
                       "vectors");
    if (program.timeout_s == 0 || program.timeout_s > CX_CLI_PROGRAM_SECONDS_MAX)
        return cx_fail(err, CX_E_USAGE, "option --embedder-timeout: expected 1 to %d",
                       CX_CLI_PROGRAM_SECONDS_MAX);
    cx_buf_init(&question, cli->alloc);
    write_question(text, out->model, &question);
    cx_status status = cx_buf_check(&question, err);
    if (!cx_failed(status))
        status = run_program(cli, &program, cx_buf_str(&question), out, err);
    cx_buf_done(&question);
    return status;
}
