/*
 * param.h - query parameters, checked against a route's table.
 */
#ifndef CX_SERVER_PARAM_H
#define CX_SERVER_PARAM_H

#include "server/service.h"

/* Fills call->values; false when the call was answered with a problem. */
bool cx_params_read(cx_call *call);
/* The expected form of a value, as shown to users: "true or false". */
void cx_param_describe(const cx_route_param *param, cx_buf *out);
/* The members of its JSON Schema, without the braces. */
void cx_param_schema(const cx_route_param *param, cx_buf *out);

#endif
