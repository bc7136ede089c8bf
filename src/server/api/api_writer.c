/*
 * api_writer.c - connections that change to the protocol by which commands write through the
 * process that owns a data directory (docs/formats/socket.md).
 */
#include <stdatomic.h>

#include "server/route.h"

#define PROTOCOL "cortex-writer"

cx_status cx_api_writer(cx_call *call, cx_err *err)
{
    cx_service *service = call->service;
    (void)err;
    if (!cx_str_is(call->request.upgrade, PROTOCOL)) {
        const cx_problem problem = {.status = 426,
                                    .type = "invalid-request",
                                    .detail = CX_STR("expected the header Upgrade: " PROTOCOL)};
        cx_call_problem(call, &problem);
        cx_call_header(call, "Upgrade", "%s", PROTOCOL);
    } else if (service->options.join == NULL) {
        const cx_problem problem = {
            .status = 501,
            .type = "not-supported",
            .detail = CX_STR("this server is no node of a fleet: commands write through the socket "
                             "in the data directory")};
        cx_call_problem(call, &problem);
    } else if (atomic_load(&service->stopping)) {
        const cx_problem problem = {
            .status = 503, .type = "unavailable", .detail = CX_STR("the server is shutting down")};
        cx_call_problem(call, &problem);
    } else {
        call->response.status = 101;
        call->response.joins = true;
        cx_call_header(call, "Upgrade", "%s", PROTOCOL);
    }
    return CX_SUCCESS;
}
