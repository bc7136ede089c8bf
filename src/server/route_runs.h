/*
 * route_runs.h - the routes of governed runs (run.md §21), a part of the table in route.c.
 */
#ifndef CX_SERVER_ROUTE_RUNS_H
#define CX_SERVER_ROUTE_RUNS_H

#include "server/route.h"

static const cx_route_param cx_runs_params[] = {
    {.name = "status",
     .type = CX_PARAM_CHOICE,
     .choices = "RUNNING|SUCCESS|FAILURE",
     .help = "Only those."},
    {.name = "limit", .type = CX_PARAM_COUNT, .min = 1, .max = 1000, .help = "Default 50."},
    {.name = "cursor", .type = CX_PARAM_TEXT, .help = "`next` of the answer before."},
};
static const cx_route_param cx_run_events_params[] = {
    {.name = "from",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = 1000000,
     .help = "First event; default 1."},
    {.name = "limit", .type = CX_PARAM_COUNT, .min = 1, .max = 1000, .help = "Default 50."},
    {.name = "raw", .type = CX_PARAM_FLAG, .help = "Each line exactly as it is stored."},
};
static const cx_route_param cx_run_stream_params[] = {
    {.name = "after",
     .type = CX_PARAM_TEXT,
     .help = "The index to go on behind, as Last-Event-ID."},
};

#define CX_ROUTES_OF_RUNS                                                                \
    {.method = "GET",                                                                    \
     .path = "/api/v1/runs",                                                             \
     .short_too = true,                                                                  \
     .scopes = CX_SCOPE_RUN_READ,                                                        \
     .where = CX_RUN_READ,                                                               \
     PARAMS(cx_runs_params),                                                             \
     .answers = JSON,                                                                    \
     .codes = "200 501",                                                                 \
     .handler = cx_api_runs,                                                             \
     .summary = "Governed runs, newest first"},                                          \
        {.method = "POST",                                                               \
         .path = "/api/v1/runs",                                                         \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_START,                                                   \
         .where = CX_RUN_INTAKE,                                                         \
         .has_body = true,                                                               \
         .answers = JSON,                                                                \
         .codes = "202 501 503",                                                         \
         .handler = cx_api_run_start,                                                    \
         .summary = "Starts a run of a contract, or of a request in words"},             \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}",                                                    \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 404 501",                                                         \
         .handler = cx_api_run,                                                          \
         .summary = "A run: its manifest, whether it is sealed, where it stands"},       \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/events",                                             \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         PARAMS(cx_run_events_params),                                                   \
         .answers = JSON,                                                                \
         .codes = "200 404 501",                                                         \
         .handler = cx_api_run_events,                                                   \
         .summary = "Its events"},                                                       \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/events/stream",                                      \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_HERE,                                                           \
         PARAMS(cx_run_stream_params),                                                   \
         .answers = "text/event-stream",                                                 \
         .codes = "200 404 501 503",                                                     \
         .handler = cx_api_run_stream,                                                   \
         .summary = "Its events as they are written (server-sent events)"},              \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/reports",                                            \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 404 501",                                                         \
         .handler = cx_api_run_reports,                                                  \
         .summary = "Which reports there are"},                                          \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/reports/{name}",                                     \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 304 404 501",                                                     \
         .handler = cx_api_run_report,                                                   \
         .summary = "A report as it is stored"},                                         \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/diff",                                               \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = "text/x-diff; charset=utf-8",                                        \
         .codes = "200 304 404 501",                                                     \
         .handler = cx_api_run_diff,                                                     \
         .summary = "The patch as it is stored"},                                        \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/diff/names",                                         \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = "text/plain; charset=utf-8",                                         \
         .codes = "200 304 404 501",                                                     \
         .handler = cx_api_run_diff_names,                                               \
         .summary = "The names of what it changed, as they are stored"},                 \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/artifacts",                                          \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 404 501",                                                         \
         .handler = cx_api_run_artifacts,                                                \
         .summary = "Every file of its bundle"},                                         \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/artifacts/{path...}",                                \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = "application/octet-stream",                                          \
         .codes = "200 304 404 501",                                                     \
         .handler = cx_api_run_artifact,                                                 \
         .summary = "A file of its bundle as it is stored"},                             \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/gates",                                              \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 404 501",                                                         \
         .handler = cx_api_run_gates,                                                    \
         .summary = "What each gate said"},                                              \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/timeline",                                           \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 404 501",                                                         \
         .handler = cx_api_run_timeline,                                                 \
         .summary = "Its events in short, and its states"},                              \
        {.method = "GET",                                                                \
         .path = "/api/v1/runs/{id}/verify",                                             \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 404 501",                                                         \
         .handler = cx_api_run_verify,                                                   \
         .summary = "Whether its bundle says what happened"},                            \
        {.method = "POST",                                                               \
         .path = "/api/v1/runs/{id}/replay",                                             \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .has_body = true,                                                               \
         .body_optional = true,                                                          \
         .answers = JSON,                                                                \
         .codes = "200 404 501",                                                         \
         .handler = cx_api_run_replay,                                                   \
         .summary = "Tells it again from its events, and compares it with another run"}, \
        {.method = "GET",                                                                \
         .path = "/api/v1/contracts",                                                    \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 501",                                                             \
         .handler = cx_api_run_contracts,                                                \
         .summary = "Contracts of runs"},                                                \
        {.method = "GET",                                                                \
         .path = "/api/v1/contracts/{task_id}",                                          \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 404 501",                                                         \
         .handler = cx_api_run_contract,                                                 \
         .summary = "The newest contract of a task"},                                    \
        {.method = "GET",                                                                \
         .path = "/api/v1/locks",                                                        \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 501",                                                             \
         .handler = cx_api_run_locks,                                                    \
         .summary = "Which paths are held by whom"},                                     \
        {.method = "GET",                                                                \
         .path = "/api/v1/worktrees",                                                    \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 501",                                                             \
         .handler = cx_api_run_worktrees,                                                \
         .summary = "Work trees of runs"},                                               \
        {.method = "GET",                                                                \
         .path = "/api/v1/policies",                                                     \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 501",                                                             \
         .handler = cx_api_run_policies,                                                 \
         .summary = "What a run started now would be judged by"},                        \
        {.method = "GET",                                                                \
         .path = "/api/v1/agents",                                                       \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 501",                                                             \
         .handler = cx_api_run_agents,                                                   \
         .summary = "The agents that are registered"},                                   \
        {.method = "GET",                                                                \
         .path = "/api/v1/approvals",                                                    \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_READ,                                                    \
         .where = CX_RUN_READ,                                                           \
         .answers = JSON,                                                                \
         .codes = "200 501",                                                             \
         .handler = cx_api_run_approvals,                                                \
         .summary = "Approvals that were handed in"},                                    \
        {.method = "POST",                                                               \
         .path = "/api/v1/approvals",                                                    \
         .short_too = true,                                                              \
         .scopes = CX_SCOPE_RUN_APPROVE,                                                 \
         .where = CX_RUN_INTAKE,                                                         \
         .has_body = true,                                                               \
         .answers = JSON,                                                                \
         .codes = "201 501",                                                             \
         .handler = cx_api_run_approve,                                                  \
         .summary = "Hands in a signed approval (DSSE)"},

#endif
