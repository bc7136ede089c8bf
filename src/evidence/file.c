/*
 * file.c - the container: a page, followed by the data that it was made from.
 *
 *   E1  file = page(data) ‖ block(data).  A reader decodes the block, generates the file again, and
 *       accepts no other bytes.
 *   E2  The block is base64 in lines of 76 characters inside a script element of a type that no
 *       browser runs.
 */
#include "crypto/api.h"
#include "evidence/evidence.h"
#include "proof/proof_internal.h"

static const char first_bytes[] =
    "<!DOCTYPE html>\n<html lang=\"en\" data-cortex-evidence=\"1\">\n";
static const char block_begin[] =
    "<script type=\"application/vnd.cortex.evidence\" id=\"evidence\">\n";
static const char block_end[] = "</script>\n</body>\n</html>\n";

#define LINE_SIZE 76

static void add_lines(cx_buf *out, cx_str text)
{
    for (size_t at = 0; at < text.size; at += LINE_SIZE) {
        size_t size = text.size - at < LINE_SIZE ? text.size - at : LINE_SIZE;
        cx_buf_add(out, text.data + at, size);
        cx_buf_add_byte(out, '\n');
    }
}

/* E1; `data` is what `evidence` was decoded from, or encodes to. */
static cx_status write_page(const cx_evidence *evidence, cx_bytes data, cx_buf *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, out->alloc);
    cx_base64_add(&text, data, CX_BASE64);
    cx_buf_add_z(out, first_bytes);
    cx_status status = cx_evidence_page(evidence, out, err);
    cx_buf_add_z(out, block_begin);
    add_lines(out, cx_buf_str(&text));
    cx_buf_add_z(out, block_end);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    cx_buf_done(&text);
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

cx_status cx_evidence_write(const cx_evidence *evidence, cx_buf *out, cx_err *err)
{
    cx_buf data;
    size_t start = out->size;
    cx_buf_init(&data, out->alloc);
    cx_status status = cx_evidence_encode(evidence, &data, err);
    if (!cx_failed(status))
        status = write_page(evidence, cx_buf_bytes(&data), out, err);
    if (!cx_failed(status) && out->size - start > CX_EVIDENCE_FILE_MAX)
        status = cx_fail_at(err, CX_E_LIMIT, "EvidenceTooLarge", CX_NO_OFFSET,
                            "the file has %zu bytes, expected at most %u", out->size - start,
                            CX_EVIDENCE_FILE_MAX);
    if (cx_failed(status))
        out->size = start;
    cx_buf_done(&data);
    return status;
}

bool cx_evidence_recognise(cx_bytes bytes)
{
    return cx_str_starts(cx_bytes_str(bytes), CX_STR("<!DOCTYPE html>\n<html lang=\"en\" "
                                                     "data-cortex-evidence="));
}

/* The text between the last begin of a block and the file's end; false when it is not so. */
static bool find_block(cx_str file, cx_str *out)
{
    const size_t begin_size = sizeof block_begin - 1;
    cx_str end = cx_str_z(block_end);
    if (!cx_str_ends(file, end))
        return false;
    size_t at = file.size - end.size;
    /* Base64 has no '<': the last one before the end begins the block. */
    const char *open = at == 0 ? NULL : cx_bytes_last(file.data, '<', at);
    if (open == NULL || (size_t)(file.data + at - open) < begin_size ||
        memcmp(open, block_begin, begin_size) != 0)
        return false;
    *out = cx_str_from(open + begin_size, (size_t)(file.data + at - open) - begin_size);
    return true;
}

static cx_status decode_block(cx_str block, cx_buf *out, bool *out_good, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, out->alloc);
    for (size_t i = 0; i < block.size; i++)
        if (block.data[i] != '\n')
            cx_buf_add_byte(&text, (uint8_t)block.data[i]);
    cx_status status = cx_buf_check(&text, err);
    *out_good = !cx_failed(status) && cx_base64_decode(cx_buf_str(&text), CX_BASE64, out);
    cx_buf_done(&text);
    return cx_failed(status) ? status : cx_buf_check(out, err);
}

static void compare_pages(cx_bytes file, cx_bytes made, cx_finding *finding)
{
    size_t same = 0, shorter = file.size < made.size ? file.size : made.size;
    while (same < shorter && file.data[same] == made.data[same])
        same++;
    if (same == file.size && same == made.size)
        return;
    cx_finding_set(
        finding, CX_BROKEN, "PageMismatch", CX_FINDING_WHOLE,
        "byte %zu does not match the data: the page was changed, or created by another version",
        same);
    finding->offset = same;
}

static cx_status read_data(cx_bytes file, cx_bytes data, cx_arena *arena, cx_evidence *out,
                           cx_finding *finding, cx_err *err)
{
    cx_err found;
    cx_buf made;
    cx_str stored = cx_arena_copy_str(arena, cx_bytes_str(data));
    if (stored.data == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_evidence_decode(cx_str_bytes(stored), arena, out, &found);
    CX_TRY(cx_finding_from(status, &found, "NonCanonical", finding, err));
    if (finding->verdict != CX_HOLDS)
        return CX_SUCCESS;
    cx_buf_init(&made, arena->alloc);
    status = write_page(out, data, &made, err);
    if (!cx_failed(status))
        compare_pages(file, cx_buf_bytes(&made), finding);
    cx_buf_done(&made);
    return status;
}

cx_status cx_evidence_read(cx_bytes bytes, cx_arena *arena, cx_evidence *out, cx_finding *finding,
                           cx_err *err)
{
    cx_str block;
    cx_buf data;
    bool good = false;
    cx_finding_init(finding);
    if (bytes.size > CX_EVIDENCE_FILE_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "EvidenceTooLarge", CX_NO_OFFSET,
                          "found %zu bytes, expected at most %u", bytes.size, CX_EVIDENCE_FILE_MAX);
    cx_buf_init(&data, arena->alloc);
    cx_status status = CX_SUCCESS;
    if (find_block(cx_bytes_str(bytes), &block))
        status = decode_block(block, &data, &good, err);
    if (!cx_failed(status) && !good)
        cx_finding_set(finding, CX_BROKEN, "BadEvidence", CX_FINDING_WHOLE,
                       "found no block of data at its end, expected base64 in an element of type "
                       "application/vnd.cortex.evidence");
    else if (!cx_failed(status))
        status = read_data(bytes, cx_buf_bytes(&data), arena, out, finding, err);
    cx_buf_done(&data);
    return status;
}
