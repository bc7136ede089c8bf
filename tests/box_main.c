/*
 * box_main.c - cortex-box PROGRAM OPTION.. -- ARGV..: runs ARGV in a sandbox and tells about it,
 * for tests/cli/test_sandbox.py.  PROGRAM is cortex, for the stage.
 *
 *     worktree PATH   read-only 1    network 1      timeout MS     output BYTES   hide PATH
 *     read PATH       write PATH     processes N    memory BYTES   file BYTES     bwrap PATH
 *     degraded 1      input TEXT     open PATH      env NAME
 *
 * Without ARGV it only looks.  Prints one JSON object:
 *
 *     {"box":<cx_sandbox_describe>,"error":null|"..","exit":N,"layers":["user",..],
 *      "timed_out":B,"truncated":B,"stdout":"..","stderr":".."}
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/sandbox.h"

enum { LIST_MAX = 16 };

typedef struct setup {
    cx_sandbox_options options;
    cx_sandbox_spec spec;
    cx_sandbox_limits limits;
    const char *hide[LIST_MAX], *env[LIST_MAX];
    cx_sandbox_bind binds[LIST_MAX];
    uint64_t output_bytes;
} setup;

static bool take(setup *s, const char *name, const char *value)
{
    uint64_t number = strtoull(value, NULL, 10);
    bool last = s->spec.bind_count == LIST_MAX || s->options.hide_count == LIST_MAX ||
                s->options.env_name_count == LIST_MAX;
    if (strcmp(name, "worktree") == 0)
        s->spec.worktree = value;
    else if (strcmp(name, "read-only") == 0)
        s->spec.read_only = true;
    else if (strcmp(name, "network") == 0)
        s->spec.network = true;
    else if (strcmp(name, "timeout") == 0)
        s->spec.timeout_ms = number;
    else if (strcmp(name, "output") == 0)
        s->output_bytes = number;
    else if (strcmp(name, "processes") == 0)
        s->limits.processes = number;
    else if (strcmp(name, "memory") == 0)
        s->limits.memory_bytes = number;
    else if (strcmp(name, "file") == 0)
        s->limits.file_bytes = number;
    else if (strcmp(name, "bwrap") == 0)
        s->options.bwrap = value;
    else if (strcmp(name, "degraded") == 0)
        s->spec.may_miss = CX_SANDBOX_REQUIRED;
    else if (strcmp(name, "hide") == 0 && !last)
        s->hide[s->options.hide_count++] = value;
    else if (strcmp(name, "env") == 0 && !last)
        s->env[s->options.env_name_count++] = value;
    else if ((strcmp(name, "read") == 0 || strcmp(name, "write") == 0) && !last)
        s->binds[s->spec.bind_count++] = (cx_sandbox_bind){value, strcmp(name, "write") == 0};
    else if (strcmp(name, "open") == 0)
        return cx_io_system()->open(cx_io_system(), value, CX_IO_READ, &s->spec.executable) == 0;
    else if (strcmp(name, "input") == 0) {
        s->spec.in = CX_SPAWN_IN_BYTES;
        s->spec.input = cx_str_bytes(cx_str_z(value));
    } else
        return false;
    return true;
}

static cx_json json_of(const cx_buf *text)
{
    /* Programs may write anything: what is no UTF-8 is shown as text all the same. */
    for (size_t i = 0; i < text->size; i++)
        if (text->data[i] >= 0x80 || text->data[i] == 0)
            text->data[i] = '?';
    return cx_json_make_str(cx_buf_str(text));
}

static cx_status print(const setup *s, const cx_sandbox *box, const cx_sandbox_result *result,
                       const char *error, const cx_buf streams[2], cx_arena *arena, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(arena), layers = cx_json_list_begin(arena);
    cx_json value;
    cx_buf text;
    for (size_t i = 0; i < CX_SANDBOX_LAYER_COUNT; i++)
        if ((result->layers & 1u << i) != 0)
            cx_json_list_add(&layers, cx_json_make_str(cx_str_z(
                                          cx_sandbox_layer_name((cx_sandbox_layer)(1u << i)))));
    CX_TRY(cx_sandbox_describe(box, s->spec.network ? CX_SANDBOX_ON : CX_SANDBOX_OFF, arena, &value,
                               err));
    cx_json_list_put(&object, CX_STR("box"), value);
    cx_json_list_put(&object, CX_STR("error"),
                     error == NULL ? cx_json_make_null() : cx_json_make_str(cx_str_z(error)));
    cx_json_list_put(&object, CX_STR("exit"), cx_json_make_int(arena, result->exit_code));
    CX_TRY(cx_json_list_end_array(&layers, &value, err));
    cx_json_list_put(&object, CX_STR("layers"), value);
    cx_json_list_put(&object, CX_STR("stderr"), json_of(&streams[1]));
    cx_json_list_put(&object, CX_STR("stdout"), json_of(&streams[0]));
    cx_json_list_put(&object, CX_STR("timed_out"), cx_json_make_bool(result->process.timed_out));
    cx_json_list_put(&object, CX_STR("truncated"),
                     cx_json_make_bool(result->process.out.truncated));
    CX_TRY(cx_json_list_end_object(&object, &value, err));
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    if (!cx_failed(status))
        (void)printf("%.*s\n", (int)text.size, (const char *)text.data);
    cx_buf_done(&text);
    return status;
}

int main(int argc, char **argv)
{
    setup s = {.spec = CX_SANDBOX_SPEC_INIT};
    int at = 2;
    for (; at + 1 < argc && strcmp(argv[at], "--") != 0; at += 2) {
        if (!take(&s, argv[at], argv[at + 1])) {
            (void)fprintf(stderr, "cortex-box: not understood: %s %s\n", argv[at], argv[at + 1]);
            return 2;
        }
    }
    s.options.program = argc > 1 ? argv[1] : NULL;
    s.options.hide = s.hide;
    s.options.env_names = s.env;
    s.spec.binds = s.binds;
    s.spec.limits = &s.limits;
    s.spec.argv = (const char *const *)argv + (at < argc ? at + 1 : argc);
    cx_arena arena;
    cx_buf streams[2];
    cx_sandbox *box = NULL;
    cx_sandbox_result result = {0};
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&streams[0], cx_alloc_default());
    cx_buf_init(&streams[1], cx_alloc_default());
    s.spec.out = cx_spawn_to_buf(&streams[0], s.output_bytes);
    s.spec.errout = cx_spawn_to_buf(&streams[1], s.output_bytes);
    s.spec.out.limit_fails = s.spec.errout.limit_fails = false;
    cx_status status = cx_sandbox_open(&s.options, &box, &err);
    if (!cx_failed(status)) {
        cx_err problem;
        bool failed =
            s.spec.argv[0] != NULL && cx_failed(cx_sandbox_run(box, &s.spec, &result, &problem));
        status = print(&s, box, &result, failed ? problem.message : NULL, streams, &arena, &err);
    }
    if (cx_failed(status))
        (void)fprintf(stderr, "cortex-box: %s\n", err.message);
    cx_sandbox_close(box);
    cx_buf_done(&streams[0]);
    cx_buf_done(&streams[1]);
    cx_arena_done(&arena);
    return cx_failed(status) ? 3 : 0;
}
