/*
 * kit.h - what the tests of traces share: files of vectors/trace, small traces, and their verdicts.
 */
#ifndef CX_TESTS_UNIT_TRACE_KIT_H
#define CX_TESTS_UNIT_TRACE_KIT_H

#include <stdio.h>

#include "base/io.h"
#include "tests/test.h"
#include "trace/trace.h"

typedef struct kit {
    cx_arena arena;
    cx_buf scratch;
    cx_err err;
    cx_trace trace;
    cx_trace_problem problem;
    cx_trust trust;
    cx_trace_check check;
    cx_trace_verdict verdict;
} kit;

/* Received on 2026-01-12, nothing said about levels, every form, an empty trust store. */
static inline void kit_init(kit *k)
{
    *k = (kit){.check = {.received_ns = INT64_C(1768176000) * 1000000000,
                         .event_level = CX_LEVEL_ABSENT,
                         .batch_level = CX_LEVEL_ABSENT,
                         .forms = CX_FORMS_ALL}};
    cx_arena_init(&k->arena, cx_alloc_default(), 0);
    cx_buf_init(&k->scratch, cx_alloc_default());
    k->check.trust = &k->trust;
}

static inline void kit_done(kit *k)
{
    cx_buf_done(&k->scratch);
    cx_arena_done(&k->arena);
}

/* A file of vectors/trace, in the arena and terminated. */
static inline cx_str kit_file(kit *k, const char *name)
{
    char path[160];
    cx_buf text;
    (void)snprintf(path, sizeof path, "vectors/trace/%s", name);
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path(path), SIZE_MAX, &text, &k->err),
                 &k->err);
    cx_str copy = cx_arena_copy_str(&k->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

static inline void kit_load_trust(kit *k)
{
    CHECK_STATUS(cx_trust_parse(kit_file(k, "trust.json"), &k->arena, &k->trust, &k->err), &k->err);
}

/* The text with the first `old` replaced; it must be there. */
static inline cx_str kit_replace(kit *k, cx_str text, const char *old, const char *new_text)
{
    const char *at = text.size == 0 ? NULL : strstr(text.data, old);
    if (at == NULL) {
        cx_test_fail(__FILE__, __LINE__, "the text has no '%s'", old);
        return text;
    }
    return cx_arena_printf(&k->arena, "%.*s%s%s", (int)(at - text.data), text.data, new_text,
                           at + strlen(old));
}

static inline cx_trace_reason kit_read(kit *k, cx_str text)
{
    CHECK_STATUS(cx_trace_read(cx_str_bytes(text), &k->arena, &k->trace, &k->problem, &k->err),
                 &k->err);
    return k->problem.reason;
}

/* The digest made with the verdict is the one made alone. */
static inline void kit_check_content(kit *k, const cx_digest *content)
{
    cx_digest alone;
    CHECK_STATUS(cx_trace_content_digest(&k->trace, &alone, &k->err), &k->err);
    CHECK(cx_digest_eq(content, &alone));
}

/* Reads and, when that went well, verifies; the reason. */
static inline cx_trace_reason kit_verify(kit *k, cx_str text)
{
    k->verdict = (cx_trace_verdict){.verdict = CX_BROKEN, .form = CX_FORM_NONE};
    if (kit_read(k, text) != CX_REASON_NONE) {
        k->verdict.problem = k->problem;
    } else {
        cx_digest content;
        CHECK_STATUS(cx_trace_verify_content(&k->trace, &k->check, &k->scratch, &k->arena,
                                             &k->verdict, &content, &k->err),
                     &k->err);
        kit_check_content(k, &content);
    }
    return k->verdict.problem.reason;
}

/* A trace of the six components with empty data, but for one event's `data`. */
static inline cx_str kit_small(kit *k, cx_event_type event, const char *data, const char *more)
{
    static const char *const types[] = {"observation", "context",    "rationale",
                                        "rationale",   "conscience", "action"};
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_printf(&text,
                  "{\"trace_id\":\"t\",\"signature\":\"AA\",\"signature_key_id\":\"k\"%s,"
                  "\"components\":[",
                  more);
    for (unsigned i = 0; i < CX_EVENT_REQUIRED_COUNT; i++)
        cx_buf_printf(&text,
                      "%s{\"component_type\":\"%s\",\"event_type\":\"%s\",\"timestamp\":"
                      "\"2026-01-01T00:00:0%uZ\",\"data\":%s}",
                      i == 0 ? "" : ",", types[i], cx_event_type_name((cx_event_type)i), i,
                      i == (unsigned)event ? data : "{}");
    cx_buf_add_z(&text, "]}");
    cx_str copy = cx_arena_copy_str(&k->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

#define CHECK_REASON(got, expected) CHECK_STR(cx_str_z(cx_trace_reason_name(got)), expected)

#endif
