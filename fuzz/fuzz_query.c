/*
 * fuzz_query.c - any bytes as the target of a request: path segments and query parameters.
 */
#include <string.h>

#include "base/utf8.h"
#include "fuzz/fuzz.h"
#include "server/query.h"

static char hex(unsigned value)
{
    return (char)(value < 10 ? '0' + value : 'A' + value - 10);
}

/* Every byte as %XX decodes to itself, when it may be there at all. */
static void check_round_trip(cx_str text)
{
    static char escaped[3 * 4096], decoded[3 * 4096];
    cx_str out;
    if (text.size > 4096)
        return;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        escaped[3 * i] = '%';
        escaped[3 * i + 1] = hex(c >> 4);
        escaped[3 * i + 2] = hex(c & 15);
    }
    bool good = cx_target_decode(cx_str_from(escaped, 3 * text.size), true, decoded, &out);
    bool allowed =
        cx_utf8_valid(text) && (text.size == 0 || memchr(text.data, 0, text.size) == NULL);
    FUZZ_CHECK(good == allowed);
    FUZZ_CHECK(!good || cx_str_eq(out, text));
}

static bool inside(cx_str part, const char *room, size_t size)
{
    return part.data >= room && part.data + part.size <= room + size;
}

static void check_parts(const cx_target *target, const char *room, size_t size, bool with_query)
{
    const char *end = room;
    FUZZ_CHECK(target->segment_count <= CX_TARGET_SEGMENTS_MAX);
    FUZZ_CHECK(target->param_count <= CX_TARGET_PARAMS_MAX);
    for (size_t i = 0; i < target->segment_count; i++) {
        cx_str part = target->segments[i];
        FUZZ_CHECK(part.size != 0 && inside(part, room, size) && cx_utf8_valid(part));
        FUZZ_CHECK(part.data >= end);
        end = part.data + part.size;
        FUZZ_CHECK(end < room + size && *end == '/');
    }
    for (size_t i = 0; with_query && i < target->param_count; i++) {
        const cx_target_param *param = &target->params[i];
        FUZZ_CHECK(inside(param->name, room, size) && cx_utf8_valid(param->name));
        FUZZ_CHECK(inside(param->value, room, size) && cx_utf8_valid(param->value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cx_target target;
    cx_str text = {(const char *)data, size};
    /* Exactly the room that is promised, so that one byte more is found. */
    char *room = malloc(size == 0 ? 1 : size);
    FUZZ_CHECK(room != NULL);
    cx_target_fault fault = cx_target_parse(text, room, &target);
    FUZZ_CHECK((fault == CX_TARGET_LONG) == (size > CX_TARGET_BYTES_MAX));
    if (fault == CX_TARGET_OK || fault == CX_TARGET_QUERY)
        check_parts(&target, room, size, fault == CX_TARGET_OK);
    free(room);
    check_round_trip(text);
    return 0;
}
