/*
 * fuzz_uri.c - any bytes as a URI, an id, a time, a duration, a name: what is read has one
 * spelling.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "memory/forms.h"
#include "memory/uri.h"

/* A URI that parses is written as it stood. */
static void check_uri(cx_str text, cx_buf *out)
{
    cx_uri uri;
    cx_err err;
    if (cx_failed(cx_uri_parse(text, &uri, &err))) {
        FUZZ_CHECK(err.tag != NULL && strcmp(err.tag, "BadURI") == 0);
        return;
    }
    cx_buf_clear(out);
    cx_uri_add(&uri, out);
    FUZZ_CHECK(cx_str_eq(cx_buf_str(out), text));
    FUZZ_CHECK(cx_failed(cx_memory_uri_parse(text, &uri, NULL)) == uri.is_edge);
}

static void check_ulid(cx_str text)
{
    cx_id id;
    char written[CX_ULID_SIZE];
    if (!cx_ulid_parse(text, &id))
        return;
    cx_ulid_format(&id, written);
    FUZZ_CHECK(cx_str_eq(cx_str_from(written, sizeof written), text));
}

/* Times and durations may be spelled in many ways; ours reads back as the same. */
static void check_numbers(cx_str text, cx_buf *out)
{
    int64_t value, again;
    if (cx_form_parse_time(text, &value)) {
        cx_buf_clear(out);
        cx_form_time(value, out);
        /* A zone can carry a time out of the years of four digits. */
        FUZZ_CHECK(out->size != 20 || out->data[0] == '-' ||
                   (cx_form_parse_time(cx_buf_str(out), &again) && again == value));
    }
    if (cx_form_parse_duration(text, &value)) {
        cx_buf_clear(out);
        cx_form_duration(value, out);
        FUZZ_CHECK(cx_form_parse_duration(cx_buf_str(out), &again) && again == value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_str text = {(const char *)data, size};
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    check_uri(text, &out);
    check_ulid(text);
    check_numbers(text, &out);
    if (cx_actor_ok(text))
        FUZZ_CHECK(size >= 1 && size <= CX_ACTOR_NAME_MAX && memchr(data, '/', size) == NULL);
    for (size_t max = 0; max < 6; max++) {
        cx_buf_clear(&out);
        cx_tokens_truncate(text, max, &out);
        FUZZ_CHECK(cx_tokens_of(cx_buf_str(&out)) <= max);
    }
    cx_buf_done(&out);
    return 0;
}
