/*
 * index_view.c - how far the trace index is.
 */
#include "cli/trace/index_view.h"

void cx_cli_index_inspect(cx_home *home, const char *where, cx_cli_index_view *out)
{
    cx_index *index;
    *out = (cx_cli_index_view){.where = where};
    if (cx_failed(cx_index_open(where, CX_INDEX_READ, &index, &out->why_not)))
        return;
    out->there = !cx_failed(cx_index_get_status(index, &out->status, &out->why_not));
    out->ours = cx_cli_index_is_ours(home, index);
    cx_index_close(index);
}

uint64_t cx_cli_index_lag(const cx_cli_index_view *view, const cx_tables_status *tables)
{
    uint64_t done = view->ours ? view->status.position.commit : 0;
    return done < tables->log_commits ? tables->log_commits - done : 0;
}

static void print_index_space(cx_buf *out, const cx_cli_index_view *view)
{
    const cx_index_status *status = &view->status;
    if (status->bytes_file != 0 && view->max_bytes != 0)
        cx_buf_printf(out, "        %llu bytes of at most %llu; the file has %llu\n",
                      (unsigned long long)status->bytes_used, (unsigned long long)view->max_bytes,
                      (unsigned long long)status->bytes_file);
    if (status->retained_ns == CX_TIME_NONE)
        return;
    cx_buf_add_z(out, "        nothing before ");
    cx_form_time(cx_cli_seconds(status->retained_ns), out);
    cx_buf_add_z(out, " is searched: those rows were dropped for their age or the index's size; to "
                      "bring back what fits, 'cortex tables rebuild' reads the log");
    if (view->log_bytes != 0)
        cx_buf_printf(out, " (%llu bytes)", (unsigned long long)view->log_bytes);
    cx_buf_add_byte(out, '\n');
}

void cx_cli_index_print(cx_buf *out, const cx_cli_index_view *view, const cx_tables_status *tables)
{
    const cx_index_status *status = &view->status;
    if (!view->there) {
        bool absent = view->why_not.code == CX_E_NOT_FOUND;
        cx_buf_add_z(out, "index   none");
        cx_buf_add_z(out, absent ? " yet: it is created by the first query" : ": ");
        if (!absent) {
            cx_shown_add(out, cx_str_z(view->why_not.message));
            cx_buf_printf(out, "\n        to do: %s", cx_index_advice(view->where, &view->why_not));
        }
        cx_buf_add_byte(out, '\n');
        return;
    }
    cx_buf_printf(
        out, "index   %llu commits, lag %llu; %llu traces, %llu unverified, %llu alerts",
        (unsigned long long)status->position.commit,
        (unsigned long long)cx_cli_index_lag(view, tables), (unsigned long long)status->trace_rows,
        (unsigned long long)status->unverified_rows, (unsigned long long)status->alert_rows);
    cx_buf_printf(out, " (%s, version %u%s)\n", status->engine, status->schema_version,
                  view->ours ? "" : ", of another data directory");
    print_index_space(out, view);
}

void cx_cli_index_json(cx_json_list *json, const cx_cli_index_view *view,
                       const cx_tables_status *tables)
{
    const cx_index_status *status = &view->status;
    if (!view->there) {
        cx_json_put_null(json, "index");
        if (view->why_not.code != CX_E_NOT_FOUND)
            cx_json_put_str(json, "index_error", cx_str_z(view->why_not.message));
        return;
    }
    cx_json_list list = cx_json_list_begin(json->arena);
    cx_json_put_uint(&list, "alerts", status->alert_rows);
    cx_json_put_uint(&list, "bytes_file", status->bytes_file);
    cx_json_put_uint(&list, "bytes_used", status->bytes_used);
    cx_json_put_uint(&list, "commits", status->position.commit);
    cx_json_put_str(&list, "engine", cx_str_z(status->engine));
    cx_json_put_uint(&list, "lag", cx_cli_index_lag(view, tables));
    if (view->max_bytes != 0)
        cx_json_put_uint(&list, "max_bytes", view->max_bytes);
    else
        cx_json_put_null(&list, "max_bytes");
    if (status->retained_ns != CX_TIME_NONE)
        cx_json_put_time(&list, "not_searched_before", true, cx_cli_seconds(status->retained_ns));
    else
        cx_json_put_null(&list, "not_searched_before");
    cx_json_put_bool(&list, "ours", view->ours);
    cx_json_put_uint(&list, "traces", status->trace_rows);
    cx_json_put_uint(&list, "unverified", status->unverified_rows);
    cx_json_put_uint(&list, "version", status->schema_version);
    cx_json_put_object(json, "index", &list);
}
