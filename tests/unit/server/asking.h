/*
 * asking.h - a service over a home, and requests that are made up.
 */
#ifndef CX_TESTS_SERVER_ASKING_H
#define CX_TESTS_SERVER_ASKING_H

#include <stdlib.h>

#include "server/route.h"
#include "tests/support/recorder_fixture.h"

typedef struct asking {
    fixture fixture;
    cx_service *service;
    cx_worker worker;
    cx_token token;                           /* of `secret` */
    char secret[8 + CX_TOKEN_TEXT_SIZE];      /* "Bearer " and the token */
    cx_call call;                             /* the last one */
    char room[2 * CX_TARGET_BYTES_MAX + 100]; /* of it */
    bool asked;
    const char *type; /* Content-Type of the next */
    const char *last_event;
    bool chunked;
    bool otlp, otlp_open; /* at the listener for OTLP */
} asking;

static inline void asking_token(asking *a, unsigned scopes, cx_trace_level level)
{
    const cx_token wanted = {.scopes = scopes, .level = level, .expires_ns = CX_TIME_NONE};
    memcpy(a->secret, "Bearer ", 7);
    CHECK_STATUS(cx_token_add(cx_io_system(), a->fixture.path, &wanted, a->secret + 7, &a->token,
                              &a->fixture.err),
                 &a->fixture.err);
    /* The guard may have looked a moment ago. */
    a->service->guard.known = false;
}

static inline void asking_init(asking *a, const char *name)
{
    memset(a, 0, sizeof *a);
    fixture_init(&a->fixture, name, NULL);
    const cx_service_options options = {.recorder = a->fixture.recorder,
                                        .home_path = a->fixture.path};
    CHECK_STATUS(cx_service_open(&options, &a->service, &a->fixture.err), &a->fixture.err);
    cx_worker_init(&a->worker, a->service);
    asking_token(a, CX_SCOPES_ALL, CX_LEVEL_FULL);
    a->type = "application/json";
}

static inline void asking_forget(asking *a)
{
    if (a->asked)
        cx_call_done(&a->call);
    a->asked = false;
}

static inline void asking_done(asking *a)
{
    asking_forget(a);
    cx_worker_done(&a->worker);
    cx_service_close(a->service);
    fixture_done(&a->fixture);
}

static inline cx_str asking_optional(const char *text)
{
    return text == NULL ? (cx_str){NULL, 0} : cx_str_z(text);
}

/* The status of the answer. */
static inline unsigned asking_ask(asking *a, const char *method, const char *target, cx_str body)
{
    const cx_request request = {
        .method = cx_str_z(method),
        .target = cx_str_z(target),
        .authorization = asking_optional(a->secret[0] == 0 ? NULL : a->secret),
        .content_type = asking_optional(a->type),
        .last_event_id = asking_optional(a->last_event),
        .otlp = a->otlp,
        .otlp_open = a->otlp_open,
        .has_length = !a->chunked,
        .length = body.size,
    };
    asking_forget(a);
    CHECK(strlen(target) <= sizeof a->room);
    cx_call_init(&a->call, a->service, &request, a->room);
    a->asked = true;
    cx_service_begin(&a->call);
    if (a->call.response.status == 0) {
        a->call.request.body = cx_str_bytes(body);
        cx_service_handle(&a->call, &a->worker);
    }
    cx_service_count(&a->call);
    return a->call.response.status;
}

static inline unsigned asking_get(asking *a, const char *target)
{
    return asking_ask(a, "GET", target, CX_STR(""));
}

static inline bool asking_says(const asking *a, const char *word)
{
    cx_str body = cx_buf_str(&a->call.response.body);
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= body.size; i++)
        if (memcmp(body.data + i, word, size) == 0)
            return true;
    return false;
}

#endif
