/*
 * fleet_metrics.h - the metrics of a node, which are part of GET /metrics.
 */
#ifndef CX_SERVER_API_FLEET_METRICS_H
#define CX_SERVER_API_FLEET_METRICS_H

#include "server/service.h"

/* Adds nothing where no part of a fleet is served. */
CX_RESULT cx_api_fleet_metrics(cx_call *call, cx_err *err);

#endif
