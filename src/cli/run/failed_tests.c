/*
 * failed_tests.c - the end of what failed tests printed.
 */
#include "cli/run/failed_tests.h"

static void add_output(cx_buf *out, const cx_json *test, const char *name)
{
    const cx_json *output = cx_json_get_typed(test, cx_str_z(name), CX_JSON_OBJECT);
    const cx_json *bytes = output == NULL ? NULL : CX_JSON_GET(output, "bytes");
    const cx_json *cut = output == NULL ? NULL : CX_JSON_GET(output, "cut");
    cx_str text = output == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(output, "text");
    if (text.size == 0 || bytes == NULL)
        return;
    cx_buf_printf(out, "  %s%s of ", name,
                  cut != NULL && cut->type == CX_JSON_TRUE ? ", the end" : "");
    cx_shown_add(out, CX_JSON_GET_STR(output, "path"));
    cx_buf_add_z(out, " (");
    cx_buf_add_str(out, cx_json_text(bytes));
    cx_buf_add_z(out, " bytes):\n");
    while (text.size != 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end == NULL ? text.size : (size_t)(end - text.data);
        cx_buf_add_z(out, "    ");
        cx_shown_add(out, (cx_str){text.data, size});
        cx_buf_add_byte(out, '\n');
        size += end != NULL;
        text = (cx_str){text.data + size, text.size - size};
    }
}

void cx_cli_add_failed_tests(cx_buf *out, const cx_json *tests)
{
    for (uint32_t i = 0; tests->type == CX_JSON_ARRAY && i < tests->count; i++) {
        const cx_json *test = &tests->items[i];
        const cx_json *code = CX_JSON_GET(test, "exit_code");
        cx_buf_add_z(out, "failed    test ");
        cx_shown_add(out, CX_JSON_GET_STR(test, "name"));
        cx_buf_add_z(out, " of ");
        cx_shown_add(out, CX_JSON_GET_STR(test, "task_id"));
        if (code != NULL && cx_json_is_number(code)) {
            cx_buf_add_z(out, ": exit code ");
            cx_buf_add_str(out, cx_json_text(code));
        }
        if (CX_JSON_GET(test, "problem") != NULL) {
            cx_buf_add_z(out, ": ");
            cx_shown_add(out, CX_JSON_GET_STR(test, "problem"));
        }
        cx_buf_add_byte(out, '\n');
        add_output(out, test, "stdout");
        add_output(out, test, "stderr");
    }
}
