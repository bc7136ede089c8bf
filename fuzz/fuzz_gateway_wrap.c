/*
 * fuzz_gateway_wrap.c - any bytes as an agent's configuration (the first byte chooses JSON or
 * TOML): what was wrapped is wrapped when it is read again, and unwrapped it is the text as it was.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "gateway/api.h"

#define SERVERS_MAX 16

typedef struct servers {
    cx_gateway_wrap_entry items[SERVERS_MAX];
    size_t count;
} servers;

static cx_status take(void *arg, const cx_gateway_wrap_entry *entry, cx_err *err)
{
    servers *s = arg;
    (void)err;
    if (s->count < SERVERS_MAX)
        s->items[s->count++] = *entry;
    return CX_SUCCESS;
}

static bool read_servers(const cx_gateway_wrap_syntax *syntax, cx_str text, cx_arena *arena,
                         servers *out)
{
    cx_err err;
    out->count = 0;
    return !cx_failed(syntax->each(text, "/p", arena, take, out, &err));
}

/* False when the server is left as it is. */
static bool change(const cx_gateway_wrap_syntax *syntax, cx_str text,
                   const cx_gateway_wrap_entry *entry, bool unwrap, cx_arena *arena, cx_buf *out)
{
    static const cx_str options[] = {CX_STR("--mode"), CX_STR("enforce")};
    const cx_gateway_wrap_how how = {.unwrap = unwrap,
                                     .program = CX_STR("/opt/cortex"),
                                     .options = options,
                                     .option_count = CX_COUNT_OF(options)};
    cx_gateway_wrap_result result = CX_GATEWAY_WRAP_SAME;
    const char *why = NULL;
    cx_buf before, after;
    cx_err err;
    cx_buf_init(&before, cx_alloc_default());
    cx_buf_init(&after, cx_alloc_default());
    cx_status status = cx_gateway_wrap_entry_change(syntax, text, entry, &how, arena, out, &before,
                                                    &after, &result, &why, &err);
    cx_buf_done(&before);
    cx_buf_done(&after);
    return !cx_failed(status) && result == CX_GATEWAY_WRAP_CHANGED;
}

static void try_server(const cx_gateway_wrap_syntax *syntax, cx_str text, const servers *all,
                       size_t index, cx_arena *arena)
{
    cx_buf wrapped, again;
    servers now;
    cx_buf_init(&wrapped, cx_alloc_default());
    cx_buf_init(&again, cx_alloc_default());
    if (change(syntax, text, &all->items[index], false, arena, &wrapped)) {
        FUZZ_CHECK(read_servers(syntax, cx_buf_str(&wrapped), arena, &now));
        FUZZ_CHECK(now.count == all->count);
        FUZZ_CHECK(cx_str_eq(now.items[index].name, all->items[index].name));
        FUZZ_CHECK(change(syntax, cx_buf_str(&wrapped), &now.items[index], true, arena, &again));
        FUZZ_CHECK(cx_str_eq(cx_buf_str(&again), text));
    }
    cx_buf_done(&wrapped);
    cx_buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    servers all;
    if (size == 0)
        return 0;
    const cx_gateway_wrap_syntax *syntax =
        data[0] == 't' ? &cx_gateway_wrap_toml : &cx_gateway_wrap_json;
    cx_str text = cx_str_from((const char *)data + 1, size - 1);
    if (!cx_utf8_valid(text))
        return 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (read_servers(syntax, text, &arena, &all))
        for (size_t i = 0; i < all.count; i++)
            try_server(syntax, text, &all, i, &arena);
    cx_arena_done(&arena);
    return 0;
}
