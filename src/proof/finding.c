/*
 * finding.c - writing down what a check found.
 */
#include <stdarg.h>
#include <stdio.h>

#include "proof/proof_internal.h"

void cx_finding_init(cx_finding *out)
{
    memset(out, 0, sizeof *out);
    out->verdict = CX_HOLDS;
    out->key_index = CX_FINDING_WHOLE;
    out->offset = CX_NO_OFFSET;
}

void cx_finding_set(cx_finding *out, cx_verdict verdict, const char *reason, size_t key_index,
                    const char *format, ...)
{
    va_list args;
    cx_finding_init(out);
    out->verdict = verdict;
    out->reason = reason;
    out->key_index = key_index;
    va_start(args, format);
    (void)vsnprintf(out->message, sizeof out->message, format, args);
    va_end(args);
}

cx_status cx_finding_from(cx_status status, const cx_err *found, const char *reason,
                          cx_finding *out, cx_err *err)
{
    if (!cx_failed(status))
        return CX_SUCCESS;
    switch (status.code) {
    case CX_E_FORMAT:
    case CX_E_SYNTAX:
    case CX_E_MORE:
        cx_finding_set(out, CX_BROKEN, reason, CX_FINDING_WHOLE, "%s", found->message);
        out->offset = found->offset;
        return CX_SUCCESS;
    default:
        if (err != NULL)
            *err = *found;
        return status;
    }
}
