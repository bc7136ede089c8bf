/*
 * ledger_answer.c - answers of the ledger's commands: JSON with the same members every time, and
 * text that cannot act on a terminal.
 */
#include <math.h>
#include <unistd.h>

#include "base/api.h"
#include "cli/ledger/ledger.h"
#include "crypto/api.h"
#include "proof/api.h"
#include "memory/api.h"

/* --- JSON ------------------------------------------------------------------------------------- */

cx_json cx_cli_json_str(cx_json_list *list, cx_str text)
{
    cx_str valid = cx_json_shown(text, list->arena);
    list->failed = list->failed || (valid.data == NULL && text.data != NULL);
    return cx_json_make_str(valid);
}

cx_status cx_cli_end_json(cx_json_list *list, cx_buf *out, cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(list, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return CX_SUCCESS;
}

void cx_cli_add_json_text(cx_buf *out, cx_str text)
{
    cx_buf shown;
    if (cx_utf8_valid(text)) {
        cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
        return;
    }
    cx_buf_init(&shown, out->alloc);
    cx_shown_add(&shown, text);
    cx_json_write_str(out, cx_buf_str(&shown), CX_JSON_PY_COMPACT);
    out->failed = out->failed || shown.failed;
    cx_buf_done(&shown);
}

/* --- text ------------------------------------------------------------------------------------- */

void cx_cli_add_digest(cx_buf *out, const cx_digest *digest)
{
    cx_hex_add(out, cx_bytes_from(digest->bytes, sizeof digest->bytes));
}

int64_t cx_cli_seconds(int64_t ns)
{
    int64_t seconds = ns / 1000000000;
    return ns % 1000000000 < 0 ? seconds - 1 : seconds;
}

cx_status cx_cli_can_deliver(cx_cli *cli, const cx_cli_args *args, cx_err *err)
{
    const char *path = cx_cli_value(args, "output");
    cx_cli_file file;
    if (path == NULL || strcmp(path, "-") == 0 || access(path, F_OK) == 0)
        return CX_SUCCESS;
    CX_TRY(cx_cli_file_begin(&file, cli->io, path, err));
    cx_cli_file_abort(&file);
    return CX_SUCCESS;
}

cx_status cx_cli_deliver(cx_cli *cli, const cx_cli_args *args, cx_bytes bytes, cx_err *err)
{
    const char *path = cx_cli_value(args, "output");
    if (path == NULL || strcmp(path, "-") == 0) {
        cx_cli_out_write_exact(&cli->out, bytes);
        return CX_SUCCESS;
    }
    cx_cli_file file;
    CX_TRY(cx_cli_file_begin(&file, cli->io, path, err));
    cx_status status = cx_cli_file_write(&file, bytes, err);
    if (!cx_failed(status))
        return cx_cli_file_commit(&file, err);
    cx_cli_file_abort(&file);
    return status;
}
