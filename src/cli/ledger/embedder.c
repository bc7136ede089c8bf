/*
 * embedder.c - vectors from a model server or a program (embedder.h).
 */
#include "cli/ledger/embedder.h"

#include <math.h>
#include <string.h>

#include "cli/user_program.h"
#include "os/api.h"

#define OUTPUT_MAX ((size_t)16 << 20)
#define SECONDS_DEFAULT 60

/* An empty one is none: so an option takes a setting back. */
static const char *option_of(const cx_cli_args *args, const char *name)
{
    const char *value = cx_cli_value(args, name);
    return value == NULL || value[0] == 0 ? NULL : value;
}

bool cx_cli_embedder_given(const cx_cli_args *args)
{
    return option_of(args, "embedder") != NULL || option_of(args, "embedder-url") != NULL;
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

/* --- asking it -------------------------------------------------------------------------------- */

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

/* What the client found, as a failure of the embedder; a wrong URL is the caller's. */
static cx_status fail_request(const char *url, cx_status status, const cx_err *why, cx_err *err)
{
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (status.code == CX_E_USAGE)
        return cx_fail_at(err, CX_E_USAGE, why->tag, CX_NO_OFFSET, "option --embedder-url: %s",
                          why->message);
    return cx_fail_at(err, status.code == CX_E_TIMEOUT ? CX_E_TIMEOUT : CX_E_IO, "EmbedderFailed",
                      CX_NO_OFFSET, "the embedder at %.100s: %s", url, why->message);
}

static cx_status read_http_answer(cx_cli *cli, const char *url, unsigned status, cx_bytes body,
                                  cx_cli_embedding *out, cx_err *err)
{
    cx_str text = cx_arena_copy_str(&cli->arena, cx_bytes_str(body));
    if (text.data == NULL)
        return cx_fail_nomem(err);
    if (status >= 200 && status < 300)
        return read_answer(cli, text, out, err);
    return cx_fail_at(err, CX_E_IO, "EmbedderFailed", CX_NO_OFFSET,
                      "the embedder at %.100s answered HTTP %u%s%.*s", url, status,
                      text.size == 0 ? "" : ": ", (int)(text.size > 200 ? 200 : text.size),
                      text.data);
}

static cx_status ask_url(cx_cli *cli, const char *url, uint64_t timeout_s, cx_str question,
                         cx_cli_embedding *out, cx_err *err)
{
    const cx_http_client_request request = {.method = "POST",
                                            .url = url,
                                            .body = cx_str_bytes(question),
                                            .timeout_ms = (uint32_t)timeout_s * 1000,
                                            .body_max = OUTPUT_MAX};
    unsigned status = 0;
    cx_err why = {0};
    cx_buf answer;
    cx_buf_init(&answer, cli->alloc);
    cx_status done = cx_http_client_exchange(&request, cli->alloc, &status, &answer, &why);
    cx_status result = cx_failed(done)
                           ? fail_request(url, done, &why, err)
                           : read_http_answer(cli, url, status, cx_buf_bytes(&answer), out, err);
    cx_buf_done(&answer);
    return result;
}

cx_status cx_cli_embedder_run(cx_cli *cli, const cx_cli_args *args, cx_str text,
                              cx_cli_embedding *out, cx_err *err)
{
    const cx_cli_user_program program = {
        .option = "embedder",
        .command = option_of(args, "embedder"),
        .failure = "EmbedderFailed",
        .timeout_s = cx_cli_number(args, "embedder-timeout", SECONDS_DEFAULT),
        .output_max = OUTPUT_MAX,
    };
    const char *url = option_of(args, "embedder-url");
    const char *model = cx_cli_value(args, "embedder-model");
    cx_buf question;
    *out = (cx_cli_embedding){.model = model == NULL ? CX_STR("") : cx_str_z(model)};
    if (program.command == NULL && url == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "expected --embedder-url URL or --embedder COMMAND: the server or program "
                       "that computes vectors");
    if (program.command != NULL && url != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "found both --embedder-url and --embedder (an option, or a setting of the "
                       "configuration), expected one; --embedder '' takes a setting back");
    if (program.timeout_s == 0 || program.timeout_s > CX_CLI_PROGRAM_SECONDS_MAX)
        return cx_fail(err, CX_E_USAGE, "option --embedder-timeout: expected 1 to %d",
                       CX_CLI_PROGRAM_SECONDS_MAX);
    cx_buf_init(&question, cli->alloc);
    write_question(text, out->model, &question);
    cx_status status = cx_buf_check(&question, err);
    if (!cx_failed(status))
        status = url != NULL ? ask_url(cli, url, program.timeout_s, cx_buf_str(&question), out, err)
                             : run_program(cli, &program, cx_buf_str(&question), out, err);
    cx_buf_done(&question);
    return status;
}
