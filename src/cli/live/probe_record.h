/*
 * probe_record.h - what the last probe of an agent found, in the data directory.
 */
#ifndef CX_CLI_LIVE_PROBE_RECORD_H
#define CX_CLI_LIVE_PROBE_RECORD_H

#include "cli/cli.h"
#include "live/api.h"

/* `verdict` is fires, silent or unknown. */
CX_RESULT cx_probe_record_write(cx_cli *cli, const char *home, cx_live_agent agent, cx_str version,
                                const char *verdict, cx_err *err);

typedef struct cx_probe_record {
    bool known;
    cx_str verdict, version;
    int64_t at_ns;
} cx_probe_record;
/* Not known when there is none, or when it cannot be read. */
cx_probe_record cx_probe_record_read(cx_cli *cli, const char *home, cx_live_agent agent);

#endif
