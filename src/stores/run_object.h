/*
 * run_object.h - the archive of a run's bundle, sealed in an object store (decision 0060,
 * docs/formats/run-archive.md).
 *
 *   J1  What the store has is sealed with a key that only the journal has, as the committed payload
 *       of an entry run.bundle_part.  When that payload is erased, by whatever means, the archive
 *       can be read from no copy of the object.
 *   J2  A key seals one archive of one run: what it seals with is derived from both.  So the object
 *       of an archive is the same however often it is made, and no two runs share one.
 */
#ifndef CX_STORES_RUN_OBJECT_H
#define CX_STORES_RUN_OBJECT_H

#include "base/api.h"
#include "json/api.h"
#include "ledger/api.h"
#include "stores/run_bundle.h"

#define CX_RUN_OBJECT_TYPE "cortex.run.bundle_object.v1"

/* What entries with keys of a run have as their subject. */
cx_id cx_run_key_subject(cx_str run_id);
/* The payload of an entry with a key. */
CX_RESULT cx_run_key_write(cx_str run_id, const cx_digest *archive, const cx_digest *key,
                           cx_arena *arena, cx_buf *out, cx_err *err);
/* The key for that archive, not erased, and its entry. */
CX_RESULT cx_run_key_find(cx_home *home, cx_str actor, cx_str run_id, const cx_digest *archive,
                          cx_digest *out_key, uint64_t *out_seq, bool *out_found, cx_err *err);
/* All entries with keys of the run, erased or not; memory from the arena. */
CX_RESULT cx_run_key_entries(cx_home *home, cx_str actor, cx_str run_id, cx_arena *arena,
                             const uint64_t **out, size_t *out_count, cx_err *err);

/* J2: seals an archive in place; `out` is what the object is. */
CX_RESULT cx_run_object_seal(cx_str run_id, const cx_digest *archive, const cx_digest *key,
                             cx_buf *bytes, cx_run_object *out, cx_err *err);
/* Appends the archive; as cx_run_stored_read, which checks the whole. */
CX_RESULT cx_run_object_fetch(cx_home *home, const cx_run_stored *stored,
                              const cx_object_store *store, cx_buf *out, cx_err *err);

/* The member "object" of an entry run.bundle_object. */
void cx_run_object_put(cx_json_list *entry, const cx_run_object *object);
bool cx_run_object_read(const cx_json *entry, uint64_t archive_bytes, cx_run_object *out);

#endif
