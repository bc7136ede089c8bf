/*
 * user_program.c - programs that a user names in an option (user_program.h).
 */
#include "cli/user_program.h"

#include <string.h>

#include "os/api.h"

#define COMPLAINT_MAX 200 /* bytes of a program's standard error in a message */

cx_status cx_cli_user_program_words(cx_cli *cli, const char *option, const char *command,
                                    const char *const **out, cx_err *err)
{
    size_t count = 0;
    const char **argv = CX_ARENA_ARRAY(&cli->arena, const char *, CX_CLI_PROGRAM_WORDS_MAX + 1);
    if (argv == NULL)
        return cx_fail_nomem(err);
    for (const char *at = command + strspn(command, " "); *at != 0;) {
        size_t size = strcspn(at, " ");
        cx_str word = cx_arena_copy_str(&cli->arena, cx_str_from(at, size));
        if (word.data == NULL)
            return cx_fail_nomem(err);
        if (count == CX_CLI_PROGRAM_WORDS_MAX)
            return cx_fail(err, CX_E_USAGE, "option --%s: more than %d words", option,
                           CX_CLI_PROGRAM_WORDS_MAX);
        argv[count++] = word.data;
        at += size + strspn(at + size, " ");
    }
    argv[count] = NULL;
    *out = argv;
    return count != 0 ? CX_SUCCESS
                      : cx_fail(err, CX_E_USAGE, "option --%s: expected a program", option);
}

static cx_str first_line(const cx_buf *complaints)
{
    cx_str line = cx_buf_str(complaints);
    const char *end = line.size == 0 ? NULL : memchr(line.data, '\n', line.size);
    if (end != NULL)
        line.size = (size_t)(end - line.data);
    return line.size > COMPLAINT_MAX ? cx_str_from(line.data, COMPLAINT_MAX) : line;
}

static cx_status check_end(const cx_cli_user_program *program, const char *name,
                           const cx_proc_result *result, const cx_buf *complaints, cx_err *err)
{
    cx_str line = first_line(complaints);
    if (result->timed_out)
        return cx_fail_at(err, CX_E_TIMEOUT, program->failure, CX_NO_OFFSET,
                          "%s did not answer in %llu s (--%s-timeout)", name,
                          (unsigned long long)program->timeout_s, program->option);
    if (result->exit_code == 0 && result->signal == 0)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_IO, program->failure, CX_NO_OFFSET, "%s ended with %s %d%s%.*s",
                      name, result->signal != 0 ? "signal" : "exit code",
                      result->signal != 0 ? result->signal : result->exit_code,
                      line.size == 0 ? "" : ": ", (int)line.size, line.data);
}

cx_status cx_cli_user_program_run(cx_cli *cli, const cx_cli_user_program *program, cx_bytes input,
                                  cx_buf *answer, const char **out_name, cx_err *err)
{
    CX_ASSERT(program->command != NULL && program->timeout_s != 0 &&
              program->timeout_s <= CX_CLI_PROGRAM_SECONDS_MAX);
    const char *const *argv;
    cx_buf complaints;
    cx_proc_result result;
    CX_TRY(cx_cli_user_program_words(cli, program->option, program->command, &argv, err));
    *out_name = argv[0];
    cx_buf_init(&complaints, cli->alloc);
    const cx_proc_options options = {.argv = argv,
                                     .inherit_env = true,
                                     .input = input,
                                     .timeout_ms = program->timeout_s * 1000,
                                     .output_limit_bytes = program->output_max};
    cx_status status = cx_proc_run(&options, answer, &complaints, &result, err);
    if (!cx_failed(status))
        status = check_end(program, argv[0], &result, &complaints, err);
    cx_buf_done(&complaints);
    return status;
}
