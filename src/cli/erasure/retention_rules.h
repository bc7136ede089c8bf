/*
 * retention_rules.h - the rules of retention as options and settings give them, shared by
 * `cortex retention apply` and `cortex serve`.
 */
#ifndef CX_CLI_RETENTION_RULES_H
#define CX_CLI_RETENTION_RULES_H

#include "cli/cli.h"
#include "erasure/api.h"

#define CX_CLI_OPTION_RETENTION                                                                \
    CX_CLI_OPT_MANY("retention", 0, CX_CLI_TEXT, "RULE",                                       \
                    "How long content stays: KIND AGE or KIND/LEVEL AGE, such as "             \
                    "'trace.received/full_traces 30d', 'session.* 1y', 'memory never'. The "   \
                    "first rule that covers a record decides; what no rule covers stays. May " \
                    "be repeated; usually set as 'retention' in the configuration.")

/* Memory from the arena; no rules when none are given. */
CX_RESULT cx_cli_read_retention(cx_cli *cli, const cx_cli_args *args, cx_erasure_filter *out,
                                cx_err *err);

#endif
