/*
 * assets.h - the files built into the program: everything in the folders schemas/, policies/ and
 * sql/fleet/ of the source tree, and the examples that `cortex demo` shows, byte for byte.  To add
 * a file, put it there, or name it in CMakeLists.txt; cmake/assets.cmake embeds it.
 */
#ifndef CX_RULES_ASSETS_H
#define CX_RULES_ASSETS_H

#include "base/api.h"

typedef struct cx_run_asset_file {
    const char *name; /* "schemas/task_contract.v1.json", "policies/packs/low.json" */
    const uint8_t *data;
    size_t size;
} cx_run_asset_file;

/* False when there is no file of that name.  The bytes are static. */
bool cx_run_asset(const char *name, cx_bytes *out);

/* All of them, sorted by name; static. */
const cx_run_asset_file *cx_run_assets(size_t *out_count);

#endif
