/*
 * run_entry.c - hashes in entries about a run.
 */
#include "stores/run_entry.h"

void cx_run_entry_put_digest(cx_json_list *object, const char *name, const cx_digest *digest)
{
    char hex[2 * sizeof digest->bytes];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    cx_json_put_str(object, name, cx_arena_copy_str(object->arena, cx_str_from(hex, sizeof hex)));
}
