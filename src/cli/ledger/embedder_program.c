/*
 * embedder_program.c - vectors from a program (embedder_program.h).
 */
#include "cli/ledger/embedder_program.h"

#include <math.h>
#include <string.h>

#include "os/api.h"

#define WORDS_MAX 32
#define OUTPUT_MAX ((size_t)16 << 20)
#define SECONDS_DEFAULT 60
#define SECONDS_MAX 86400

bool cx_cli_embedder_given(const cx_cli_args *args)
{
    const char *command = cx_cli_value(args, "embedder");
    return command != NULL && command[0] != 0;
}

static cx_status split_command(cx_cli *cli, const char *command, const char *argv[WORDS_MAX + 1],
                               cx_err *err)
{
    size_t count = 0;
    for (const char *at = command + strspn(command, " "); *at != 0;) {
        size_t size = strcspn(at, " ");
        cx_str word = cx_arena_copy_str(&cli->arena, cx_str_from(at, size));
        if (word.data == NULL)
            return cx_fail_nomem(err);
        if (count == WORDS_MAX)
            return cx_fail(err, CX_E_USAGE, "option --embedder: more than %d words", WORDS_MAX);
        argv[count++] = word.data;
        at += size + strspn(at + size, " ");
    }
    argv[count] = NULL;
    return count != 0 ? CX_SUCCESS
                      : cx_fail(err, CX_E_USAGE, "option --embedder: expected a program");
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

/* The first line of what it complained of. */
static cx_str first_line(const cx_buf *complaints)
{
    cx_str line = cx_buf_str(complaints);
    const char *end = line.size == 0 ? NULL : memchr(line.data, '\n', line.size);
    if (end != NULL)
        line.size = (size_t)(end - line.data);
    return line.size > 200 ? cx_str_from(line.data, 200) : line;
}

static cx_status check_result(const char *program, const cx_proc_result *result,
                              uint64_t timeout_ms, const cx_buf *complaints, cx_err *err)
{
    cx_str line = first_line(complaints);
    if (result->timed_out)
        return cx_fail_at(err, CX_E_TIMEOUT, "EmbedderFailed", CX_NO_OFFSET,
                          "%s did not answer in %llu s (--embedder-timeout)", program,
                          (unsigned long long)(timeout_ms / 1000));
    if (result->exit_code == 0 && result->signal == 0)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_IO, "EmbedderFailed", CX_NO_OFFSET, "%s ended with %s %d%s%.*s",
                      program, result->signal != 0 ? "signal" : "exit code",
                      result->signal != 0 ? result->signal : result->exit_code,
                      line.size == 0 ? "" : ": ", (int)line.size, line.data);
}

static cx_status run_program(cx_cli *cli, const char *const *argv, uint64_t timeout_ms,
                             cx_str question, cx_cli_embedding *out, cx_err *err)
{
    cx_buf answer, complaints;
    cx_proc_result result;
    cx_buf_init(&answer, cli->alloc);
    cx_buf_init(&complaints, cli->alloc);
    const cx_proc_options options = {.argv = argv,
                                     .inherit_env = true,
                                     .input = cx_str_bytes(question),
                                     .timeout_ms = timeout_ms,
                                     .output_limit_bytes = OUTPUT_MAX};
    cx_status status = cx_proc_run(&options, &answer, &complaints, &result, err);
    if (!cx_failed(status))
        status = check_result(argv[0], &result, timeout_ms, &complaints, err);
    cx_str kept = cx_arena_copy_str(&cli->arena, cx_buf_str(&answer));
    if (!cx_failed(status) && kept.data == NULL)
        status = cx_fail_nomem(err);
    if (!cx_failed(status))
        status = read_answer(cli, kept, out, err);
    cx_buf_done(&answer);
    cx_buf_done(&complaints);
    return status;
}

cx_status cx_cli_embedder_run(cx_cli *cli, const cx_cli_args *args, cx_str text,
                              cx_cli_embedding *out, cx_err *err)
{
    const char *argv[WORDS_MAX + 1];
    const char *command = cx_cli_value(args, "embedder");
    const char *model = cx_cli_value(args, "embedder-model");
    uint64_t seconds = cx_cli_number(args, "embedder-timeout", SECONDS_DEFAULT);
    cx_buf question;
    *out = (cx_cli_embedding){.model = model == NULL ? CX_STR("") : cx_str_z(model)};
    if (command == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "expected --embedder COMMAND: the program that computes "
                       "vectors");
    if (seconds == 0 || seconds > SECONDS_MAX)
        return cx_fail(err, CX_E_USAGE, "option --embedder-timeout: expected 1 to %d", SECONDS_MAX);
    CX_TRY(split_command(cli, command, argv, err));
    cx_buf_init(&question, cli->alloc);
    write_question(text, out->model, &question);
    cx_status status = cx_buf_check(&question, err);
    if (!cx_failed(status))
        status = run_program(cli, argv, seconds * 1000, cx_buf_str(&question), out, err);
    cx_buf_done(&question);
    return status;
}
