/*
 * fuzz_sensitive.c - any bytes as text, JSON and lines: what is found is inside, comes in order and
 * does not overlap; a mask changes nothing but what was found, leaves the ends of lines, and leaves
 * nothing of it that is found again; no finding names what was found.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "json/json.h"
#include "sensitive/sensitive.h"

typedef void (*scan_bytes)(const cx_sensitive_rules *, const cx_sensitive_target *,
                           cx_sensitive_list *);

static void check_text(const cx_sensitive_rules *rules, cx_str text)
{
    cx_sensitive_hit hit;
    size_t end = 0;
    for (size_t at = 0; cx_sensitive_next(rules, text, &at, &hit);) {
        FUZZ_CHECK(hit.offset >= end && hit.size != 0 && hit.size <= text.size - hit.offset);
        FUZZ_CHECK(at == hit.offset + hit.size);
        end = at;
    }
}

static bool is_json(const uint8_t *data, size_t size, cx_arena *arena)
{
    cx_json value;
    return !cx_failed(
        cx_json_parse_text(cx_str_from((const char *)data, size), arena, &value, NULL));
}

static void check_document(const cx_sensitive_rules *rules, const uint8_t *data, size_t size,
                           scan_bytes scan, cx_arena *arena)
{
    cx_sensitive_list list, marked;
    uint8_t *copy = malloc(size + 1);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, data, size);
    cx_sensitive_list_init(&list, arena);
    cx_sensitive_list_init(&marked, arena);
    const cx_sensitive_target target = {.bytes = data, .size = size, .mask = copy};
    const cx_sensitive_target only = {.bytes = data, .size = size};
    scan(rules, &target, &list);
    scan(rules, &only, &marked);
    FUZZ_CHECK(!list.failed && list.count == marked.count && marked.masked == 0);
    FUZZ_CHECK(list.masked == list.count);
    FUZZ_CHECK(!is_json(data, size, arena) || is_json(copy, size, arena));
    size_t changed = 0;
    for (size_t i = 0; i < size; i++) {
        changed += copy[i] != data[i];
        FUZZ_CHECK((copy[i] == '\n') == (data[i] == '\n'));
        FUZZ_CHECK(copy[i] == data[i] || (copy[i] >= ' ' && copy[i] < 0x7f));
    }
    FUZZ_CHECK((changed != 0) == (list.count != 0));
    for (size_t i = 0; i < list.listed; i++) {
        FUZZ_CHECK(cx_utf8_valid(list.items[i].pointer));
        FUZZ_CHECK(list.items[i].pointer.size <= CX_SENSITIVE_POINTER_MAX);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const cx_str policy = CX_STR("mask");
    static const cx_str patterns[] = {CX_STR("acme_:alnum:8-10"), CX_STR("//:base64:200"),
                                      CX_STR("EMP-:digits:6")};
    const cx_sensitive_rules *rules = NULL;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    FUZZ_CHECK(!cx_failed(cx_sensitive_rules_make(&policy, 1, patterns, CX_COUNT_OF(patterns),
                                                  &arena, &rules, NULL)));
    check_text(rules, cx_str_from((const char *)data, size));
    check_document(rules, data, size, cx_sensitive_scan_json, &arena);
    check_document(rules, data, size, cx_sensitive_scan_lines, &arena);
    cx_arena_done(&arena);
    return 0;
}
