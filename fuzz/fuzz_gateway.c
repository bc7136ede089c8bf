/*
 * fuzz_gateway.c - any bytes as a stream of an MCP client or server: pieces of any size give the
 * same messages, no message is larger than its limit, what is known of one that is too long is what
 * a reader of the whole would have found, and parts of a message are where they are said to be.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "gateway/api.h"

#define LIMIT 64

typedef struct trail {
    size_t messages, dropped;
    uint64_t hash;
} trail;

static void add(trail *t, cx_str text)
{
    t->hash = cx_map_hash_bytes(t->hash + 1, text.data, text.size);
}

static void check_parts(cx_str line)
{
    cx_arena arena;
    cx_json root;
    cx_gateway_message message;
    cx_str name, value, id;
    size_t offset = 0, count = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    bool json = !cx_failed(cx_json_parse_text(line, &arena, &root, NULL));
    while (cx_gateway_span_next(line, &offset, &name, &value)) {
        FUZZ_CHECK(value.data >= line.data && value.data + value.size <= line.data + line.size);
        count++;
        cx_json part;
        FUZZ_CHECK(!json || !cx_failed(cx_json_parse_text(value, &arena, &part, NULL)));
    }
    if (json && (root.type == CX_JSON_OBJECT || root.type == CX_JSON_ARRAY))
        FUZZ_CHECK(count == root.count);
    if (json && !cx_failed(cx_gateway_message_read(&root, &arena, &message, NULL)) &&
        message.id.size != 0) {
        FUZZ_CHECK(cx_gateway_span_member(line, "id", &id));
        FUZZ_CHECK(message.id.size <= CX_GATEWAY_ID_MAX);
    }
    cx_arena_done(&arena);
}

static void take(trail *t, cx_gateway_reader *r, cx_gateway_frame frame, cx_str line, bool deep)
{
    if (frame == CX_GATEWAY_FRAME_MORE)
        return;
    if (frame == CX_GATEWAY_FRAME_TOO_LONG) {
        t->dropped++;
        FUZZ_CHECK(r->dropped_bytes > LIMIT && r->skim.id_size <= CX_GATEWAY_ID_MAX);
        add(t, cx_str_from(r->skim.id, r->skim.id_size));
        return;
    }
    FUZZ_CHECK(line.size <= LIMIT && memchr(line.data, '\n', line.size) == NULL);
    t->messages++;
    add(t, line);
    if (deep)
        check_parts(line);
}

static trail read_all(const uint8_t *data, size_t size, size_t step)
{
    cx_gateway_reader reader;
    cx_gateway_frame frame;
    cx_str line = {"", 0};
    trail t = {0};
    cx_gateway_reader_init(&reader, cx_alloc_default(), LIMIT);
    for (size_t at = 0; at < size; at += step) {
        cx_bytes rest = cx_bytes_from(data + at, size - at < step ? size - at : step);
        while (rest.size != 0) {
            FUZZ_CHECK(!cx_failed(cx_gateway_reader_next(&reader, &rest, &frame, &line, NULL)));
            take(&t, &reader, frame, line, step != 1);
        }
    }
    FUZZ_CHECK(!cx_failed(cx_gateway_reader_end(&reader, &frame, &line, NULL)));
    take(&t, &reader, frame, line, step != 1);
    cx_gateway_reader_done(&reader);
    return t;
}

/* A message that a strict reader accepts: its id and method are found without keeping it. */
static void check_skim(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_json root;
    cx_gateway_message message;
    cx_gateway_skim skim;
    cx_str text = cx_str_from((const char *)data, size), spelled;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (!cx_failed(cx_json_parse_text(text, &arena, &root, NULL)) &&
        !cx_failed(cx_gateway_message_read(&root, &arena, &message, NULL)) &&
        memchr(text.data, '\\', text.size) == NULL) {
        memset(&skim, 0, sizeof skim);
        cx_gateway_skim_bytes(&skim, cx_str_bytes(text));
        FUZZ_CHECK(skim.has_method == (message.kind != CX_GATEWAY_ANSWER));
        if (message.id.size != 0 && cx_gateway_span_member(text, "id", &spelled) &&
            spelled.size <= CX_GATEWAY_ID_MAX)
            FUZZ_CHECK(skim.has_id && cx_str_eq(spelled, cx_str_from(skim.id, skim.id_size)));
    }
    cx_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trail whole = read_all(data, size, size == 0 ? 1 : size), single = read_all(data, size, 1);
    if (size != 1)
        FUZZ_CHECK(whole.messages == single.messages && whole.dropped == single.dropped &&
                   whole.hash == single.hash);
    check_skim(data, size);
    return 0;
}
