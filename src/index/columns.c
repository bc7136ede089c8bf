/*
 * columns.c - the columns of covenant_traces (trace.md §10).
 */
#include "index/index_internal.h"

const cx_column cx_trace_columns[] = {
#define COLUMN(name, type, required) {#name, CX_CELL_##type, required},
    CX_TRACE_COLUMNS(COLUMN)
#undef COLUMN
};

const unsigned cx_trace_column_count = CX_COL_COUNT;

int cx_trace_column(const char *name)
{
    for (unsigned i = 0; i < CX_COL_COUNT; i++)
        if (strcmp(cx_trace_columns[i].name, name) == 0)
            return (int)i;
    return -1;
}
