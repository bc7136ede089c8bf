/*
 * run_entry.c - subjects and hashes of entries about a run.
 */
#include "stores/run_entry.h"

#include "crypto/api.h"

cx_id cx_run_entry_subject(const char *type, cx_str run_id, const cx_digest *sha256)
{
    cx_id id;
    cx_sha256 hash;
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, type, strlen(type) + 1);
    cx_sha256_add(&hash, run_id.data, run_id.size);
    if (sha256 != NULL)
        cx_sha256_add(&hash, sha256->bytes, sizeof sha256->bytes);
    const cx_digest digest = cx_sha256_end(&hash);
    memcpy(id.bytes, digest.bytes, sizeof id.bytes);
    return id;
}

void cx_run_entry_put_digest(cx_json_list *object, const char *name, const cx_digest *digest)
{
    char hex[2 * sizeof digest->bytes];
    cx_hex_encode(cx_bytes_from(digest->bytes, sizeof digest->bytes), hex);
    cx_json_put_str(object, name, cx_arena_copy_str(object->arena, cx_str_from(hex, sizeof hex)));
}
