/*
 * route_page.h - the routes of the browser's page and of its sessions, a part of the table in
 * route.c.
 */
#ifndef CX_SERVER_ROUTE_PAGE_H
#define CX_SERVER_ROUTE_PAGE_H

#include "server/route.h"

#define CX_ROUTES_OF_PAGE                                                                \
    {.method = "GET",                                                                    \
     .path = "/",                                                                        \
     .open = true,                                                                       \
     .homeless = true,                                                                   \
     .where = CX_RUN_HERE,                                                               \
     .answers = "text/html; charset=utf-8",                                              \
     .codes = "200 304 404 421",                                                         \
     .handler = cx_api_page,                                                             \
     .summary = "The debugger, for a browser"},                                          \
        {.method = "GET",                                                                \
         .path = "/assets/{file}",                                                       \
         .open = true,                                                                   \
         .homeless = true,                                                               \
         .where = CX_RUN_HERE,                                                           \
         .answers = "text/javascript; charset=utf-8",                                    \
         .codes = "200 304 404 421",                                                     \
         .handler = cx_api_page_file,                                                    \
         .summary = "A file of the debugger; its name has its hash"},                    \
        {.method = "POST",                                                               \
         .path = "/api/v1/session",                                                      \
         .homeless = true,                                                               \
         .where = CX_RUN_HERE,                                                           \
         .answers = JSON,                                                                \
         .codes = "200",                                                                 \
         .handler = cx_api_session_begin,                                                \
         .summary = "Turns the bearer token into a session, held by an HttpOnly cookie"}, \
        {.method = "GET",                                                                \
         .path = "/api/v1/session",                                                      \
         .homeless = true,                                                               \
         .where = CX_RUN_HERE,                                                           \
         .answers = JSON,                                                                \
         .codes = "200",                                                                 \
         .handler = cx_api_session,                                                      \
         .summary = "Who asks, what the token may, and what is served here"},            \
        {.method = "DELETE",                                                             \
         .path = "/api/v1/session",                                                      \
         .homeless = true,                                                               \
         .where = CX_RUN_HERE,                                                           \
         .answers = JSON,                                                                \
         .codes = "200",                                                                 \
         .handler = cx_api_session_end,                                                  \
         .summary = "Ends the session"},

#endif
