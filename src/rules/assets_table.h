/*
 * assets_table.h - the table that cmake/assets.cmake generates and assets.c searches.
 */
#ifndef CX_RULES_ASSETS_TABLE_H
#define CX_RULES_ASSETS_TABLE_H

#include "rules/assets.h"

/* Sorted by name; ends with an additional entry that is all zero. */
extern const cx_run_asset_file cx_run_asset_table[];
extern const size_t cx_run_asset_count;

#endif
