/*
 * route_live.h - the routes of agents' hooks and live sessions, a part of the table in route.c.
 */
#ifndef CX_SERVER_ROUTE_LIVE_H
#define CX_SERVER_ROUTE_LIVE_H

#include "live/api.h"
#include "server/route.h"

static const cx_route_param cx_hook_params[] = {
    {.name = "mode",
     .type = CX_PARAM_CHOICE,
     .choices = "observe|ask|enforce",
     .help = "The least mode; a session's policy or limits may be stricter. Default observe."},
    {.name = "fail_open",
     .type = CX_PARAM_FLAG,
     .help = "No objection when no decision is possible; recorded with each decision."},
};

static const cx_route_param cx_sessions_params[] = {
    {.name = "running", .type = CX_PARAM_FLAG, .help = "Without sessions that ended."},
    {.name = "limit", .type = CX_PARAM_COUNT, .min = 1, .max = 200, .help = "Default 50."},
    {.name = "cursor", .type = CX_PARAM_TEXT, .help = "next_cursor of the previous answer."},
};

static const cx_route_param cx_session_params[] = {
    {.name = "before",
     .type = CX_PARAM_COUNT,
     .max = INT64_MAX,
     .help = "Entries before this one: `next` of the previous answer."},
    {.name = "limit",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = CX_LIVE_SHOWN_MAX,
     .help = "Entries; default 100."},
};

#define CX_ROUTES_OF_SESSIONS                                                                  \
    {.method = "POST",                                                                         \
     .path = "/hook/{agent}",                                                                  \
     .scopes = CX_SCOPE_HOOK,                                                                  \
     .thread = CX_THREAD_WRITE,                                                                \
     .has_body = true,                                                                         \
     .params = cx_hook_params,                                                                 \
     .param_count = CX_COUNT_OF(cx_hook_params),                                               \
     .answers = JSON,                                                                          \
     .request_type = "any",                                                                    \
     .response_type = "any",                                                                   \
     .codes = "200 204 413 503",                                                               \
     .handler = cx_api_hook,                                                                   \
     .problem = cx_api_hook_problem,                                                           \
     .summary = "An event of a coding agent's hook: decided, recorded, answered in its form"}, \
        {.method = "GET",                                                                      \
         .path = "/api/v1/sessions",                                                           \
         .scopes = CX_SCOPE_READ,                                                              \
         .full_level = true,                                                                   \
         .thread = CX_THREAD_READ,                                                             \
         .params = cx_sessions_params,                                                         \
         .param_count = CX_COUNT_OF(cx_sessions_params),                                       \
         .answers = JSON,                                                                      \
         .response_type = "LiveSessions",                                                      \
         .codes = "200",                                                                       \
         .handler = cx_api_sessions,                                                           \
         .summary = "Sessions of coding agents whose hooks are recorded, the newest first"},   \
        {.method = "GET",                                                                      \
         .path = "/api/v1/sessions/{id}",                                                      \
         .scopes = CX_SCOPE_READ,                                                              \
         .full_level = true,                                                                   \
         .thread = CX_THREAD_READ,                                                             \
         .params = cx_session_params,                                                          \
         .param_count = CX_COUNT_OF(cx_session_params),                                        \
         .answers = JSON,                                                                      \
         .response_type = "LiveSessionShown",                                                  \
         .codes = "200 404 409",                                                               \
         .handler = cx_api_live_session,                                                       \
         .summary = "One of them: what its hooks decided, and what waits for a person"},       \
        {.method = "POST",                                                                     \
         .path = "/api/v1/sessions/{id}/approve",                                              \
         .scopes = CX_SCOPE_SESSION_APPROVE,                                                   \
         .thread = CX_THREAD_WRITE,                                                            \
         .has_body = true,                                                                     \
         .answers = JSON,                                                                      \
         .request_type = "LiveAnswer",                                                         \
         .response_type = "LiveAnswered",                                                      \
         .codes = "200 400 404 409 413 503",                                                   \
         .handler = cx_api_session_approve,                                                    \
         .summary = "Allows a call that waits for a person"},                                  \
        {.method = "POST",                                                                     \
         .path = "/api/v1/sessions/{id}/deny",                                                 \
         .scopes = CX_SCOPE_SESSION_APPROVE,                                                   \
         .thread = CX_THREAD_WRITE,                                                            \
         .has_body = true,                                                                     \
         .answers = JSON,                                                                      \
         .request_type = "LiveAnswer",                                                         \
         .response_type = "LiveAnswered",                                                      \
         .codes = "200 400 404 409 413 503",                                                   \
         .handler = cx_api_session_deny,                                                       \
         .summary = "Refuses a call that waits for a person"},                                 \
        {.method = "POST",                                                                     \
         .path = "/api/v1/sessions/{id}/limit",                                                \
         .scopes = CX_SCOPE_SESSION_APPROVE,                                                   \
         .thread = CX_THREAD_WRITE,                                                            \
         .has_body = true,                                                                     \
         .answers = JSON,                                                                      \
         .request_type = "LiveLimit",                                                          \
         .response_type = "LiveLimited",                                                       \
         .codes = "200 400 404 409 413 503",                                                   \
         .handler = cx_api_session_limit,                                                      \
         .summary = "Narrows what a session may do, from its next call on"},

#endif
