/*
 * fuzz_settings.c - any bytes as a settings file: what is read is inside the limits and no setting
 * comes twice; what is refused says where.
 */
#include <string.h>

#include "os/settings.h"
#include "base/utf8.h"
#include "fuzz/fuzz.h"

static void check(const cx_setting *s)
{
    FUZZ_CHECK(s->name.size != 0 && s->name.size <= CX_SETTING_NAME_MAX);
    FUZZ_CHECK(s->line >= 1 && s->column >= 1);
    FUZZ_CHECK(s->kind == CX_SETTING_TEXTS || s->value_count == 1);
    for (size_t i = 0; i < s->value_count; i++)
        FUZZ_CHECK(cx_utf8_valid((cx_str){s->values[i], strlen(s->values[i])}));
    if (s->kind == CX_SETTING_NUMBER)
        FUZZ_CHECK(strspn(s->values[0], "0123456789") == strlen(s->values[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const cx_setting *items = NULL;
    size_t count = 0;
    cx_arena arena;
    cx_err err = {0};
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status =
        cx_settings_read((cx_str){(const char *)data, size}, &arena, &items, &count, &err);
    if (cx_failed(status)) {
        FUZZ_CHECK(status.code == CX_E_FORMAT && strncmp(err.message, "line ", 5) == 0);
    } else {
        for (size_t i = 0; i < count; i++) {
            check(&items[i]);
            for (size_t j = 0; j < i; j++)
                FUZZ_CHECK(!cx_str_eq(items[i].section, items[j].section) ||
                           !cx_str_eq(items[i].name, items[j].name));
        }
    }
    cx_arena_done(&arena);
    return 0;
}
