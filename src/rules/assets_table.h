/*
 * assets_table.h - between assets.c and the table that cmake/assets.cmake makes.
 */
#ifndef CX_RULES_ASSETS_TABLE_H
#define CX_RULES_ASSETS_TABLE_H

#include "rules/assets.h"

/* Sorted by name; one more entry behind the last, all zero. */
extern const cx_run_asset_file cx_run_asset_table[];
extern const size_t cx_run_asset_count;

#endif
