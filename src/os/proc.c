/*
 * proc.c - cx_proc_run: finds a program, then runs it with spawn.h.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/folder.h"
#include "os/machine.h"
#include "os/proc.h"
#include "os/spawn.h"

#define DEFAULT_OUTPUT_LIMIT ((size_t)64 << 20)
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* The file that execvp would run for argv[0]: names without a slash are looked up in PATH. */
cx_status cx_proc_find(const char *name, cx_buf *out, cx_err *err)
{
    if (strchr(name, '/') != NULL) {
        cx_buf_add_z(out, name);
        return cx_buf_check(out, err);
    }
    const char *at = getenv("PATH");
    if (at == NULL)
        at = DEFAULT_PATH;
    for (;;) {
        size_t size = strcspn(at, ":");
        cx_buf_clear(out);
        cx_buf_add_str(out, size == 0 ? CX_STR(".") : cx_str_from(at, size));
        cx_buf_add_byte(out, '/');
        cx_buf_add_z(out, name);
        const char *path = cx_buf_z(out);
        if (path == NULL)
            return cx_fail_nomem(err);
        cx_facts facts;
        if (access(path, X_OK) == 0 && !cx_failed(cx_path_facts(path, true, &facts, NULL)) &&
            facts.kind == CX_FILE_REGULAR)
            return CX_SUCCESS;
        if (at[size] == 0)
            return cx_fail(err, CX_E_NOT_FOUND, "cannot start %s: not found in PATH", name);
        at += size + 1;
    }
}

static cx_spawn_output output_to(cx_buf *buf, size_t limit_bytes)
{
    return buf == NULL ? (cx_spawn_output){.to = CX_SPAWN_OUT_NULL}
                       : cx_spawn_to_buf(buf, limit_bytes);
}

cx_status cx_proc_run(const cx_proc_options *options, cx_buf *out, cx_buf *errout,
                      cx_proc_result *result, cx_err *err)
{
    CX_ASSERT(options != NULL && options->argv != NULL && options->argv[0] != NULL);
    CX_ASSERT(result != NULL);
    size_t limit =
        options->output_limit_bytes != 0 ? options->output_limit_bytes : DEFAULT_OUTPUT_LIMIT;
    cx_spawn_options how = CX_SPAWN_OPTIONS_INIT;
    cx_spawn_result ended;
    cx_buf path;
    cx_buf_init(&path, cx_alloc_default());
    cx_status status = cx_proc_find(options->argv[0], &path, err);
    if (cx_failed(status))
        goto done;
    how.argv = options->argv;
    how.path = cx_buf_z(&path);
    how.envp = options->inherit_env ? cx_machine_environment() : options->envp;
    how.cwd = options->cwd;
    how.in = options->input.size != 0 ? CX_SPAWN_IN_BYTES : CX_SPAWN_IN_NULL;
    how.input = options->input;
    how.out = output_to(out, limit);
    how.errout = output_to(errout, limit);
    how.timeout_ms = options->timeout_ms;
    how.cancel = options->cancel;
    how.leave_rest = true;
    how.grace_ms = 1; /* these callers have nothing to wait for after a timeout */
    status = how.path == NULL ? cx_fail_nomem(err) : cx_spawn_run(&how, &ended, err);
    if (!cx_failed(status))
        *result = (cx_proc_result){
            .exit_code = ended.exit_code,
            .signal = ended.signal,
            .timed_out = ended.timed_out,
            .duration_ns = ended.duration_ns,
        };
done:
    cx_buf_done(&path);
    return status;
}
