/*
 * handle.h - helpers shared by the files that implement the installed headers (cortex/journal.h,
 * proof.h, memory.h).
 *
 * Opening a data directory needs the derivers of all modules, so cx_ledger_make, _open, _verify,
 * _rebuild and _erase are in recorder/api_home.c; the other calls are in this module.
 *
 * Each public function checks its texts, translates its options, makes one inner call, and hands
 * the result to the caller.
 */
#ifndef CX_LEDGER_HANDLE_H
#define CX_LEDGER_HANDLE_H

#include <cortex/journal.h>

#include "base/api.h"
#include "ledger/home.h"
#include "ledger/verify.h"

struct cx_ledger {
    const cx_alloc *alloc;
    cx_home *home;
};

struct cx_ledger_report {
    const cx_alloc *alloc;
    cx_home_report *report;
};

/* CX_E_USAGE "InvalidArgument" when the text is NULL or not UTF-8; `what` names it in the message.
 */
CX_RESULT cx_api_text(const char *text, const char *what, cx_str *out, cx_err *err);
/* The same, but NULL means `otherwise`. */
CX_RESULT cx_api_text_or(const char *text, const char *what, cx_str otherwise, cx_str *out,
                         cx_err *err);
/* NULL means cortex-1. */
CX_RESULT cx_api_scheme(const char *name, cx_scheme *out, cx_err *err);
/* CX_E_USAGE "InvalidArgument". */
cx_status cx_api_refuse(cx_err *err, const char *format, ...) CX_PRINTF(2, 3);

int64_t cx_api_now(const cx_ledger *ledger);
void cx_api_state(const cx_roots *roots, cx_ledger_state *out);
void cx_api_actor(const cx_actor_info *info, cx_ledger_actor_info *out);

#endif
