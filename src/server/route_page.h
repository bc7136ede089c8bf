/*
 * route_page.h - the routes of the web page and of its sessions, a part of the table in route.c.
 */
#ifndef CX_SERVER_ROUTE_PAGE_H
#define CX_SERVER_ROUTE_PAGE_H

#include "view/api.h"
#include "stores/api.h"
#include "server/route.h"

#define CX_VIEW_FOLD                                                          \
    {                                                                         \
        .name = "fold", .type = CX_PARAM_FLAG,                                \
        .help = "Quiet ranges become one column; default for long histories." \
    }
#define CX_VIEW_RANGE                                                                     \
    {.name = "from", .type = CX_PARAM_COUNT, .max = UINT32_MAX, .help = "First column."}, \
    {                                                                                     \
        .name = "to", .type = CX_PARAM_COUNT, .max = UINT32_MAX,                          \
        .help = "The column after the last; default and 0: to the end."                   \
    }
#define CX_VIEW_NODE                                                                          \
    {                                                                                         \
        .name = "node", .type = CX_PARAM_TEXT, .required = true,                              \
        .help = "A node_id, a hash, #K for the K-th node, or @AGENT for that agent's newest." \
    }

static const cx_route_param cx_view_params[] = {CX_VIEW_FOLD};
static const cx_route_param cx_view_extent_params[] = {
    {.name = "node", .type = CX_PARAM_TEXT, .help = "The hash of a step: in which entry it is."}};
static const cx_route_param cx_view_overview_params[] = {
    CX_VIEW_FOLD,
    CX_VIEW_RANGE,
    {.name = "bins",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = CX_LATTICE_VIEW_BINS_MAX,
     .help = "Number of buckets for the columns; default 400."}};
static const cx_route_param cx_view_window_params[] = {
    CX_VIEW_FOLD,
    CX_VIEW_RANGE,
    {.name = "max",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = CX_LATTICE_VIEW_ROWS_MAX,
     .help = "Nodes at most."},
    {.name = "labels", .type = CX_PARAM_FLAG, .help = "With a description of each event."},
    {.name = "spans", .type = CX_PARAM_FLAG, .help = "With when each event began and ended."}};
static const cx_route_param cx_view_node_params[] = {CX_VIEW_FOLD, CX_VIEW_NODE};
static const cx_route_param cx_view_image_params[] = {CX_VIEW_FOLD,
                                                      CX_VIEW_NODE,
                                                      {.name = "index",
                                                       .type = CX_PARAM_COUNT,
                                                       .max = CX_LATTICE_VIEW_IMAGES_MAX - 1,
                                                       .help = "Which one of the event, from 0."}};
static const cx_route_param cx_view_steps_params[] = {
    CX_VIEW_FOLD,
    {.name = "from",
     .type = CX_PARAM_COUNT,
     .max = UINT32_MAX - 1,
     .help = "Place of the first one in topological order."},
    {.name = "max",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = CX_LATTICE_VIEW_READ_MAX,
     .help = "Steps at most; default 200."},
    {.name = "node", .type = CX_PARAM_TEXT, .max = 4096, .help = "Begin near this node instead."},
    {.name = "all", .type = CX_PARAM_FLAG, .help = "Also records that say nothing."}};
static const cx_route_param cx_view_values_params[] = {
    CX_VIEW_FOLD,
    CX_VIEW_NODE,
    {.name = "pointer",
     .type = CX_PARAM_TEXT,
     .max = 4096,
     .help = "JSON pointer into the state; default its four sections."},
    {.name = "after", .type = CX_PARAM_TEXT, .max = 4096, .help = "Continue after this key."},
    {.name = "max",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = CX_LATTICE_VIEW_VALUES_MAX,
     .help = "Members at most."}};
static const cx_route_param cx_view_writes_params[] = {
    CX_VIEW_FOLD,
    CX_VIEW_NODE,
    {.name = "section", .type = CX_PARAM_TEXT, .required = true, .help = "memory or beliefs."},
    {.name = "key",
     .type = CX_PARAM_TEXT,
     .required = true,
     .max = 4096,
     .help = "A top-level key."}};

static const cx_route_param cx_view_grep_params[] = {
    CX_VIEW_FOLD,
    {.name = "q",
     .type = CX_PARAM_TEXT,
     .required = true,
     .max = 1024,
     .help = "Words that a node's content has, parts of words too."}};
static const cx_route_param cx_view_said_params[] = {CX_VIEW_FOLD,
                                                     CX_VIEW_NODE,
                                                     {.name = "text",
                                                      .type = CX_PARAM_TEXT,
                                                      .required = true,
                                                      .max = 4096,
                                                      .help = "What was said, white space aside."}};
static const cx_route_param cx_view_compare_params[] = {
    CX_VIEW_FOLD,
    {.name = "a",
     .type = CX_PARAM_TEXT,
     .help =
         "A node, as node= in other endpoints; with another history, all of this one by default."},
    {.name = "b",
     .type = CX_PARAM_TEXT,
     .help = "Another node, of the other history if there is one."},
    {.name = "with",
     .type = CX_PARAM_TEXT,
     .max = 300,
     .help = "Another history, named as this one."},
    {.name = "from", .type = CX_PARAM_COUNT, .max = UINT32_MAX, .help = "First row."},
    {.name = "max",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = CX_LATTICE_VIEW_STEPS_MAX,
     .help = "Rows at most."}};
static const cx_route_param cx_view_heat_params[] = {
    CX_VIEW_FOLD,
    {.name = "layer",
     .type = CX_PARAM_CHOICE,
     .choices = "divergence|time|cost|overrides",
     .help = "The quantity to sum; default divergence."},
    {.name = "axis", .type = CX_PARAM_CHOICE, .choices = "time|order", .help = "Default time."},
    {.name = "from",
     .type = CX_PARAM_NUMBER,
     .help = "First position on the axis; default the first."},
    {.name = "to", .type = CX_PARAM_NUMBER, .help = "Last position on the axis; default the last."},
    {.name = "bins",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = CX_LATTICE_VIEW_HEAT_BINS_MAX,
     .help = "Number of buckets for the axis; default 120."}};

/* What can be chosen in the inbox. */
#define CX_INBOX_PARAMS                                                                           \
    {.name = "kind",                                                                              \
     .type = CX_PARAM_CHOICE,                                                                     \
     .choices = "alert|run|history|trace",                                                        \
     .help = "Only these."},                                                                      \
        {.name = "verdict",                                                                       \
         .type = CX_PARAM_CHOICE,                                                                 \
         .choices = "verified|unverified|merged|running|failed|open|acknowledged|resolved",       \
         .help = "Of traces, of runs, of alerts."},                                               \
        {.name = "gate",                                                                          \
         .type = CX_PARAM_TEXT,                                                                   \
         .max = 256,                                                                              \
         .help = "Conscience or gate: passed, not_passed, overridden, unknown, or the gate that " \
                 "rejected a run."},                                                              \
        {.name = "k_eff",                                                                         \
         .type = CX_PARAM_CHOICE,                                                                 \
         .choices = "below_2|2_to_5|5_and_more|unknown",                                          \
         .help = "Effective sources."},                                                           \
        {.name = "level",                                                                         \
         .type = CX_PARAM_CHOICE,                                                                 \
         .choices = "generic|detailed|full_traces",                                               \
         .help = "Level at which traces are stored."},                                            \
        {.name = "agent", .type = CX_PARAM_TEXT, .help = "agent_id_hash, or an agent's name."},   \
        {.name = "source",                                                                        \
         .type = CX_PARAM_TEXT,                                                                   \
         .help = "Of histories: claude-code, codex, otel, steps, .."},                            \
        {.name = "time",                                                                          \
         .type = CX_PARAM_TEXT,                                                                   \
         .max = 16,                                                                               \
         .help = "1h, 24h or 7d, from the full hour before; or a day of UTC: 2026-01-31."},       \
    {                                                                                             \
        .name = "q", .type = CX_PARAM_TEXT, .max = CX_INBOX_WORDS_BYTES_MAX,                      \
        .help = "Up to six words: prefixes of ids, actions and types, or, for a token of the "    \
                "level full_traces, words of the rationale."                                      \
    }
static const cx_route_param cx_inbox_params[] = {
    CX_INBOX_PARAMS,
    {.name = "limit",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = CX_INBOX_LIMIT_MAX,
     .help = "Default 100."},
    {.name = "cursor", .type = CX_PARAM_TEXT, .help = "next_cursor of the previous answer."}};
static const cx_route_param cx_inbox_facets_params[] = {CX_INBOX_PARAMS};

#define CX_INBOX(end, list, type, function, what)                                            \
    {                                                                                        \
        .method = "GET", .path = "/api/v1/inbox" end, .without_ledger = true,                \
        .scopes = CX_SCOPE_READ | CX_SCOPE_RUN_READ, .thread = CX_THREAD_READ, PARAMS(list), \
        .answers = JSON, .response_type = (type), .codes = "200 503", .handler = function,   \
        .summary = what                                                                      \
    }

/* Lists of the index: words, choices, a page. */
#define CX_PAGE_PARAMS(most, text)                                                             \
    {.name = "limit", .type = CX_PARAM_COUNT, .min = 1, .max = (most), .help = text},          \
    {                                                                                          \
        .name = "cursor", .type = CX_PARAM_TEXT, .help = "next_cursor of the previous answer." \
    }
static const cx_route_param cx_search_params[] = {
    {.name = "q",
     .type = CX_PARAM_TEXT,
     .required = true,
     .max = CX_INBOX_WORDS_BYTES_MAX,
     .help = "Up to six words, all of which a step must have; the last may be a beginning."},
    {.name = "history", .type = CX_PARAM_TEXT, .help = "Only this one, such as session/ID."},
    {.name = "kind", .type = CX_PARAM_TEXT, .help = "Only steps of this kind."},
    {.name = "agent", .type = CX_PARAM_TEXT, .help = "Only steps of this agent."},
    {.name = "tool", .type = CX_PARAM_TEXT, .help = "Only calls and results of this tool."},
    CX_PAGE_PARAMS(500, "Default 50.")};
static const cx_route_param cx_histories_params[] = {
    {.name = "q",
     .type = CX_PARAM_TEXT,
     .max = CX_INBOX_WORDS_BYTES_MAX,
     .help = "Words that a step, or the title, agent or path has."},
    {.name = "history", .type = CX_PARAM_TEXT, .help = "Only the one of this name."},
    {.name = "source", .type = CX_PARAM_TEXT, .help = "Only those from claude-code, otel, .."},
    {.name = "agent", .type = CX_PARAM_TEXT, .help = "Only those of this agent."},
    CX_PAGE_PARAMS(1000, "Default 100.")};

#define CX_VIEW(end, list, type, function, what)                                          \
    {                                                                                     \
        .method = "GET", .path = "/api/v1/view/{branch...}/" end, .without_ledger = true, \
        READING_ALL, PARAMS(list), .answers = JSON, .response_type = (type),              \
        .codes = "200 404 503", .handler = function, .summary = what                      \
    }

#define CX_ROUTES_OF_PAGE                                                                   \
    {.method = "GET",                                                                       \
     .path = "/",                                                                           \
     .open = true,                                                                          \
     .without_ledger = true,                                                                \
     .thread = CX_THREAD_ANY,                                                               \
     .answers = "text/html; charset=utf-8",                                                 \
     .codes = "200 304 404 421",                                                            \
     .handler = cx_api_page,                                                                \
     .summary = "The web page"},                                                            \
        {.method = "GET",                                                                   \
         .path = "/assets/{file}",                                                          \
         .open = true,                                                                      \
         .without_ledger = true,                                                            \
         .thread = CX_THREAD_ANY,                                                           \
         .answers = "text/javascript; charset=utf-8",                                       \
         .codes = "200 304 404 421",                                                        \
         .handler = cx_api_page_file,                                                       \
         .summary = "A file of the web page; its name contains its hash"},                  \
        {.method = "POST",                                                                  \
         .path = "/api/v1/session",                                                         \
         .without_ledger = true,                                                            \
         .thread = CX_THREAD_READ,                                                          \
         .answers = JSON,                                                                   \
         .response_type = "Session",                                                        \
         .codes = "200",                                                                    \
         .handler = cx_api_session_begin,                                                   \
         .summary = "Create a session for the bearer token, stored in an HttpOnly cookie"}, \
        {.method = "GET",                                                                   \
         .path = "/api/v1/session",                                                         \
         .without_ledger = true,                                                            \
         .thread = CX_THREAD_ANY,                                                           \
         .answers = JSON,                                                                   \
         .response_type = "Session",                                                        \
         .codes = "200",                                                                    \
         .handler = cx_api_session,                                                         \
         .summary = "The caller's token, its rights, and what this server offers"},         \
        {.method = "DELETE",                                                                \
         .path = "/api/v1/session",                                                         \
         .without_ledger = true,                                                            \
         .thread = CX_THREAD_READ,                                                          \
         .answers = JSON,                                                                   \
         .response_type = "Empty",                                                          \
         .codes = "200",                                                                    \
         .handler = cx_api_session_end,                                                     \
         .summary = "Ends the session"},                                                    \
        {.method = "GET",                                                                   \
         .path = "/api/v1/view",                                                            \
         .without_ledger = true,                                                            \
         READING_ALL,                                                                       \
         .answers = JSON,                                                                   \
         .response_type = "Histories",                                                      \
         .codes = "200 503",                                                                \
         .handler = cx_api_view_list,                                                       \
         .summary = "The available histories"},                                             \
        {.method = "GET",                                                                   \
         .path = "/api/v1/search",                                                          \
         READING_ALL,                                                                       \
         PARAMS(cx_search_params),                                                          \
         .answers = JSON,                                                                   \
         .response_type = "SearchPage",                                                     \
         .codes = "200 503",                                                                \
         .handler = cx_api_search,                                                          \
         .summary = "Steps that have all of the words, newest first"},                      \
        {.method = "GET",                                                                   \
         .path = "/api/v1/histories",                                                       \
         READING_ALL,                                                                       \
         PARAMS(cx_histories_params),                                                       \
         .answers = JSON,                                                                   \
         .response_type = "HistoriesPage",                                                  \
         .codes = "200 503",                                                                \
         .handler = cx_api_histories,                                                       \
         .summary = "Recorded sessions, span traces and histories, newest first"},          \
        CX_INBOX("", cx_inbox_params, "InboxPage", cx_api_inbox,                            \
                 "Traces, histories, runs and alerts in one list, newest first"),           \
        CX_INBOX("/facets", cx_inbox_facets_params, "InboxFacets", cx_api_inbox_facets,     \
                 "Counts of that list by value"),                                           \
        CX_VIEW("extent", cx_view_extent_params, "ViewExtent", cx_api_view_extent,          \
                "How long a history is, and whether it can be opened in parts"),            \
        CX_VIEW("summary", cx_view_params, "ViewSummary", cx_api_view_summary,              \
                "A history's lanes, extent, verdict and findings"),                         \
        CX_VIEW("overview", cx_view_overview_params, "ViewOverview", cx_api_view_overview,  \
                "An overview of a history: counts by agent and column"),                    \
        CX_VIEW("window", cx_view_window_params, "ViewWindow", cx_api_view_window,          \
                "Nodes and edges between two columns"),                                     \
        CX_VIEW("node", cx_view_node_params, "ViewNode", cx_api_view_node,                  \
                "One node: event, changes, parents, children, findings"),                   \
        CX_VIEW("steps", cx_view_steps_params, "ViewSteps", cx_api_view_steps,              \
                "What was said and done, step by step"),                                    \
        {.method = "GET",                                                                   \
         .path = "/api/v1/view/{branch...}/image",                                          \
         .without_ledger = true,                                                            \
         READING_ALL,                                                                       \
         PARAMS(cx_view_image_params),                                                      \
         .answers = "application/octet-stream",                                             \
         .codes = "200 404 503",                                                            \
         .handler = cx_api_view_image,                                                      \
         .summary = "An image of an event, as bytes: PNG, JPEG, GIF or WebP, or a file"},   \
        CX_VIEW("values", cx_view_values_params, "ViewLevel", cx_api_view_values,           \
                "One level of the state at a node"),                                        \
        CX_VIEW("writes", cx_view_writes_params, "ViewWrites", cx_api_view_writes,          \
                "The changes of a key before a node, and the next one after it"),           \
        CX_VIEW("said", cx_view_said_params, "LatticeSaid", cx_api_view_said,               \
                "Where a text was said before a node, oldest first"),                       \
        CX_VIEW("grep", cx_view_grep_params, "LatticeGrep", cx_api_view_grep,               \
                "The nodes whose content has all words, in order"),                         \
        CX_VIEW("reach", cx_view_node_params, "ViewReach", cx_api_view_reach,               \
                "What a node reached: what follows from it, and what carries its text"),    \
        CX_VIEW("compare", cx_view_compare_params, "ViewComparison", cx_api_view_compare,   \
                "Two nodes side by side, from their common ancestor"),                      \
        CX_VIEW("heat", cx_view_heat_params, "ViewHeat", cx_api_view_heat,                  \
                "Where branches, time, cost or overrides concentrate: agents by time"),

#endif
