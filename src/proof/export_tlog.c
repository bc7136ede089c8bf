/*
 * export_tlog.c - tlog-proof files and tiles (C2SP; ledger.md §12).
 *
 * tlog-proof   c2sp.org/tlog-proof@v1\n  index <n>\n  base64 hashes, one a line, leaf first
 *              \n  the checkpoint as it was signed
 * tile         256 hashes of one level, 32 bytes each; level L holds nodes of height 8 L
 * entries      256 × (0020 ‖ leaf hash): the RFC 6962 log entry is the leaf hash
 */
#include <stdio.h>

#include "crypto/api.h"
#include "proof/export_internal.h"
#include "proof/proof_internal.h"

#define MAGIC "c2sp.org/tlog-proof@v1"

void cx_tlog_proof_encode(uint64_t index, const cx_digest *path, size_t path_count, cx_bytes note,
                          cx_buf *out)
{
    cx_buf_add_z(out, MAGIC "\nindex ");
    cx_buf_add_u64(out, index);
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; i < path_count; i++) {
        cx_base64_add(out, cx_bytes_from(path[i].bytes, sizeof path[i].bytes), CX_BASE64);
        cx_buf_add_byte(out, '\n');
    }
    cx_buf_add_byte(out, '\n');
    cx_buf_add(out, note.data, note.size);
}

static cx_status bad_proof(cx_err *err, cx_bytes bytes, const char *at, const char *why)
{
    uint64_t offset = at == NULL ? 0 : (uint64_t)((const uint8_t *)at - bytes.data);
    return cx_fail_at(err, CX_E_FORMAT, "BadProof", offset, "tlog-proof: %s", why);
}

cx_status cx_tlog_proof_decode(cx_bytes bytes, cx_arena *arena, cx_tlog_proof *out, cx_err *err)
{
    cx_str rest = cx_bytes_str(bytes), line, index_word = CX_STR("index ");
    cx_tlog_proof proof = {0};
    cx_digest *path = CX_ARENA_ARRAY(arena, cx_digest, CX_INCLUSION_PATH_MAX);
    if (path == NULL)
        return cx_fail_nomem(err);
    if (!cx_line_next(&rest, &line) || !cx_str_is(line, MAGIC))
        return bad_proof(err, bytes, NULL, "expected the first line \"" MAGIC "\"");
    if (!cx_line_next(&rest, &line) || !cx_str_starts(line, index_word) ||
        !cx_line_number(cx_str_from(line.data + index_word.size, line.size - index_word.size),
                        &proof.index))
        return bad_proof(err, bytes, line.data, "expected a line \"index N\"");
    for (;;) {
        const char *at = rest.data;
        if (!cx_line_next(&rest, &line))
            return bad_proof(err, bytes, at, "expected an empty line and a checkpoint");
        if (line.size == 0)
            break;
        if (proof.path_count == CX_INCLUSION_PATH_MAX)
            return bad_proof(err, bytes, at, "more than 64 hashes");
        if (!cx_line_digest(line, &path[proof.path_count]))
            return bad_proof(err, bytes, at, "expected a hash in base64, or an empty line");
        proof.path_count++;
    }
    proof.path = path;
    proof.note = cx_str_bytes(rest);
    *out = proof;
    return CX_SUCCESS;
}

static void check_path(const cx_tlog_proof *proof, const cx_digest *leaf_hash,
                       const cx_checkpoint *checkpoint, cx_finding *out)
{
    cx_digest root;
    if (!cx_mmr_inclusion_root(CX_SCHEME_CORTEX_1, proof->index, checkpoint->size, leaf_hash,
                               proof->path, proof->path_count, &root))
        cx_finding_set(out, CX_BROKEN, "ProofMalformed", CX_FINDING_WHOLE,
                       "%zu hashes do not lead from leaf %llu to the root of %llu entries",
                       proof->path_count, (unsigned long long)proof->index,
                       (unsigned long long)checkpoint->size);
    else if (!cx_digest_eq(&root, &checkpoint->root))
        cx_finding_set(out, CX_BROKEN, "RootMismatch", CX_FINDING_WHOLE,
                       "the path does not lead to the checkpoint's root");
}

cx_status cx_tlog_proof_verify(cx_bytes bytes, const cx_digest *leaf_hash,
                               const cx_note_check *check, cx_arena *arena, cx_note_result *out,
                               cx_finding *out_finding, cx_err *err)
{
    cx_tlog_proof proof;
    cx_note_result result;
    cx_err found;
    cx_finding_init(out_finding);
    cx_status status = cx_tlog_proof_decode(bytes, arena, &proof, &found);
    CX_TRY(cx_finding_from(status, &found, "BadProof", out_finding, err));
    if (out_finding->verdict != CX_HOLDS)
        return CX_SUCCESS;
    CX_TRY(cx_note_verify(proof.note, check, arena->alloc, &result, out_finding, err));
    if (out_finding->verdict == CX_HOLDS) {
        check_path(&proof, leaf_hash, &result.checkpoint, out_finding);
        if (out != NULL)
            *out = result;
    }
    return CX_SUCCESS;
}

/* --- tiles ----------------------------------------------------------------------------------- */

void cx_tile_path(int level, uint64_t index, unsigned width, cx_buf *out)
{
    uint64_t divisor = 1;
    cx_buf_add_z(out, "tile/");
    if (level < 0)
        cx_buf_add_z(out, "entries");
    else
        cx_buf_add_u64(out, (uint64_t)level);
    /* Three digits a folder; all but the last begin with x. */
    while (index / divisor >= 1000)
        divisor *= 1000;
    for (; divisor > 1; divisor /= 1000)
        cx_buf_printf(out, "/x%03u", (unsigned)(index / divisor % 1000));
    cx_buf_printf(out, "/%03u", (unsigned)(index % 1000));
    if (width < CX_TILE_WIDTH)
        cx_buf_printf(out, ".p/%u", width);
}

/* How many of `available` hashes or entries the tile at `index` holds. */
static cx_status tile_width(cx_scheme scheme, uint64_t available, uint64_t index, unsigned *out,
                            cx_err *err)
{
    if (scheme != CX_SCHEME_CORTEX_1)
        return cx_fail_at(err, CX_E_UNSUPPORTED, "SchemeUnsupported", CX_NO_OFFSET,
                          "tiles are of cortex-1 only");
    if (index > available / CX_TILE_WIDTH || index * CX_TILE_WIDTH == available)
        return cx_fail_at(err, CX_E_NOT_FOUND, "OutOfRange", CX_NO_OFFSET,
                          "there is no tile %llu in a tree of that size",
                          (unsigned long long)index);
    uint64_t left = available - index * CX_TILE_WIDTH;
    *out = left < CX_TILE_WIDTH ? (unsigned)left : CX_TILE_WIDTH;
    return CX_SUCCESS;
}

static cx_status size_reached(const cx_mmr *mmr, uint64_t size, cx_err *err)
{
    if (size <= cx_mmr_size(mmr))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_NOT_FOUND, "OutOfRange", CX_NO_OFFSET,
                      "the journal has %llu entries, not %llu",
                      (unsigned long long)cx_mmr_size(mmr), (unsigned long long)size);
}

cx_status cx_tile_hashes(cx_scheme scheme, cx_mmr *mmr, uint64_t size, unsigned level,
                         uint64_t index, cx_buf *out, unsigned *out_width, cx_err *err)
{
    unsigned width;
    CX_TRY(size_reached(mmr, size, err));
    CX_TRY(tile_width(scheme, level < 8 ? size >> (8 * level) : 0, index, &width, err));
    for (unsigned i = 0; i < width; i++) {
        cx_digest node;
        CX_TRY(cx_mmr_node(mmr, 8 * level, index * CX_TILE_WIDTH + i, &node, err));
        cx_buf_add(out, node.bytes, sizeof node.bytes);
    }
    CX_TRY(cx_buf_check(out, err));
    *out_width = width;
    return CX_SUCCESS;
}

cx_status cx_tile_entries(cx_scheme scheme, cx_mmr *mmr, uint64_t size, uint64_t index, cx_buf *out,
                          unsigned *out_width, cx_err *err)
{
    unsigned width;
    CX_TRY(size_reached(mmr, size, err));
    CX_TRY(tile_width(scheme, size, index, &width, err));
    cx_digest leaves[CX_TILE_WIDTH];
    CX_TRY(cx_mmr_leaves(mmr, index * CX_TILE_WIDTH, width, leaves, err));
    for (unsigned i = 0; i < width; i++) {
        static const uint8_t length[2] = {0, sizeof leaves[i].bytes};
        cx_buf_add(out, length, sizeof length);
        cx_buf_add(out, leaves[i].bytes, sizeof leaves[i].bytes);
    }
    CX_TRY(cx_buf_check(out, err));
    *out_width = width;
    return CX_SUCCESS;
}
