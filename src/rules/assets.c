/*
 * assets.c - finds the files built into the program.
 */
#include "rules/assets.h"

#include "rules/assets_table.h"

const cx_run_asset_file *cx_run_assets(size_t *out_count)
{
    *out_count = cx_run_asset_count;
    return cx_run_asset_table;
}

bool cx_run_asset(const char *name, cx_bytes *out)
{
    for (size_t i = 0; i < cx_run_asset_count; i++) {
        const cx_run_asset_file *file = &cx_run_asset_table[i];
        if (strcmp(file->name, name) == 0) {
            *out = cx_bytes_from(file->data, file->size);
            return true;
        }
    }
    return false;
}
