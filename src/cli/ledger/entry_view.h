/*
 * entry_view.h - journal entries as the commands show them.
 */
#ifndef CX_CLI_ENTRY_VIEW_H
#define CX_CLI_ENTRY_VIEW_H

#include "cli/ledger/ledger.h"

/* "12  2026-11-21T07:45:30Z  write  andrew  Fact 01HF... #1" */
CX_RESULT cx_cli_entry_line(const cx_entry_view *view, cx_arena *arena, cx_buf *out, cx_err *err);
/* With the same members every time; `payload` depends on the kind. */
CX_RESULT cx_cli_entry_json(const cx_entry_view *view, cx_json_list *out, cx_err *err);

#endif
