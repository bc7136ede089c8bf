/*
 * stage.h - a home with a recorder, a clock that stands still, and agents whose keys it trusts.
 */
#ifndef CX_TESTS_RECORDER_STAGE_H
#define CX_TESTS_RECORDER_STAGE_H

#include "recorder/recorder.h"
#include "tests/support/folder.h"
#include "tests/support/trace_maker.h"
#include "tests/test.h"

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    int64_t now_ns;
    cx_home *home;
    cx_recorder *recorder;
    cx_recorder_options options;
    cx_arena arena;
    cx_err err;
    cx_intake took; /* the last batch */
} fixture;

#define STAGE_NOW_NS (MAKER_START_NS + INT64_C(864000000000000)) /* ten days later */

static inline int64_t fixture_now(void *arg)
{
    return ((const fixture *)arg)->now_ns;
}

static inline void fixture_open(fixture *s)
{
    const cx_home_options options = {
        .segment_bytes = UINT64_C(1) << 20, .derivers = &cx_recorder_deriver, .deriver_count = 1};
    s->options.now_ns = fixture_now;
    s->options.now_arg = s;
    CHECK_STATUS(cx_home_open(s->path, &options, &s->home, &s->err), &s->err);
    CHECK_STATUS(cx_recorder_open(s->home, &s->options, &s->recorder, &s->err), &s->err);
}

static inline void fixture_close(fixture *s)
{
    cx_recorder_close(s->recorder);
    s->recorder = NULL;
    if (s->home != NULL)
        CHECK_STATUS(cx_home_close(s->home, &s->err), &s->err);
    s->home = NULL;
}

static inline void fixture_reopen(fixture *s)
{
    fixture_close(s);
    fixture_open(s);
}

static inline void fixture_init(fixture *s, const char *name, const cx_recorder_options *policy)
{
    const cx_home_options options = {
        .segment_bytes = UINT64_C(1) << 20, .derivers = &cx_recorder_deriver, .deriver_count = 1};
    *s = (fixture){.now_ns = STAGE_NOW_NS};
    if (policy != NULL)
        s->options = *policy;
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
    folder_fresh(s->path, name);
    CHECK_STATUS(cx_home_create(s->path, CX_SCHEME_CORTEX_1, &options, &s->err), &s->err);
    fixture_open(s);
}

static inline void fixture_done(fixture *s)
{
    fixture_close(s);
    folder_remove(s->path);
    cx_arena_done(&s->arena);
}

static inline void fixture_trust(fixture *s, const maker *m)
{
    const cx_trust_key key = maker_key(m);
    bool is_new = false;
    CHECK_STATUS(cx_recorder_key_add(s->recorder, &key, &is_new, &s->err), &s->err);
    CHECK(is_new);
}

static inline void fixture_take(fixture *s, cx_str body)
{
    CHECK_STATUS(cx_recorder_receive(s->recorder, cx_str_bytes(body), CX_CAPTURE_AUTHENTICATED,
                                     &s->arena, &s->took, &s->err),
                 &s->err);
}

/* A batch of one trace; its status, or the http code when it was refused whole. */
static inline int fixture_send(fixture *s, cx_str trace, const char *level)
{
    cx_buf batch;
    cx_buf_init(&batch, cx_alloc_default());
    maker_batch_begin(&batch);
    maker_batch_add(&batch, trace);
    maker_batch_end(&batch, level);
    /* What was taken borrows from the body. */
    cx_str body = cx_arena_copy_str(&s->arena, cx_buf_str(&batch));
    fixture_take(s, body);
    cx_buf_done(&batch);
    if (s->took.problem.http != 0)
        return s->took.problem.http;
    CHECK_INT(s->took.received, 1);
    return s->took.received == 1 ? (int)s->took.events[0].status : -1;
}

static inline cx_str fixture_make(fixture *s, maker *m, const maker_options *trace_options)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    maker_trace(m, trace_options, &text);
    cx_str copy = cx_arena_copy_str(&s->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

/* The text with the first `from` replaced. */
static inline cx_str fixture_replace(fixture *s, cx_str text, const char *from, const char *to)
{
    const char *at = memmem(text.data, text.size, from, strlen(from));
    if (at == NULL)
        return (cx_str){NULL, 0};
    size_t before = (size_t)(at - text.data), after = before + strlen(from);
    return cx_arena_printf(&s->arena, "%.*s%s%.*s", (int)before, text.data, to,
                           (int)(text.size - after), text.data + after);
}

static inline uint64_t fixture_entries(fixture *s, cx_str actor)
{
    cx_actor_info info;
    return cx_failed(cx_home_actor(s->home, actor, &info, NULL)) ? 0 : info.entry_count;
}

#endif
