/*
 * serve_alerts.h - options of `cortex serve` about alerts: the schedule of the detectors, and the
 * destinations (trace.md §12).
 */
#ifndef CX_CLI_SERVICE_SERVE_ALERTS_H
#define CX_CLI_SERVICE_SERVE_ALERTS_H

#include "cli/cli.h"
#include "server/api.h"

/* All but the secret; texts live in the arena.  CX_E_USAGE for what cannot be used. */
CX_RESULT cx_cli_alerting_read(cx_cli *cli, const cx_cli_args *args, cx_alerting_options *out,
                               cx_err *err);
/* The secret of the webhook: HOME/alert-secret, which the first start makes, unless another file is
 * named. */
CX_RESULT cx_cli_alerting_secret(cx_cli *cli, const cx_cli_args *args, const char *home_path,
                                 cx_alerting_options *options, cx_err *err);

#endif
