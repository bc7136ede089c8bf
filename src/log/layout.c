/*
 * layout.c - the bytes of a segment (docs/formats/log.md §2).  Integers are big-endian.
 *
 *   header    0  8  magic
 *             8  4  format version
 *            12  4  segment number
 *            16 16  home id
 *            32  8  first commit
 *            40  8  size of the file
 *            48 32  end of the previous segment
 *            80     zeros
 *          4092  4  CRC-32C of 0..4092
 *
 *   frame     0  4  magic
 *             4  4  size of the guarded part, g
 *             8  4  size of the erasable part, e
 *            12  4  CRC-32C: position, 0..12, guarded part
 *            16  g  guarded part, zeros up to a multiple of 8
 *           and, at the next multiple of 8, if e > 0:
 *             0  4  magic: live, or erased
 *             4  4  CRC-32C: position, erasable part; 0 when erased
 *             8  e  erasable part, zeros up to a multiple of 8
 *
 *   mark      0  4  magic
 *             4  4  count of frames
 *             8  8  commit number
 *            16  8  size of the group without this mark
 *            24  4  CRC-32C of the heads of its frames (16 bytes each, in order)
 *            28  4  CRC-32C: position, 0..28
 *
 * "Position" is home id, segment number and the offset of the frame or mark in the file: bytes that
 * are found elsewhere than where they were written never pass.
 */
#include "crypto/api.h"
#include "log/internal.h"

static const uint8_t header_magic[8] = {0x89, 'C', 'X', 'L', 'O', 'G', '\r', '\n'};

static const uint8_t frame_magic[4] = {'F', 'r', 'm', 0xf1};
static const uint8_t live_magic[4] = {'L', 'i', 'v', 0xe1};
static const uint8_t erased_magic[4] = {'E', 'r', 'a', 0xe5};
static const uint8_t mark_magic[4] = {'E', 'n', 'd', 0xd1};

static bool all_zero(const uint8_t *at, size_t size)
{
    return size == 0 || (at[0] == 0 && memcmp(at, at + 1, size - 1) == 0);
}

/* --- header -------------------------------------------------------------------------------- */

enum { HEADER_CRC_AT = CX_LOG_HEADER_SIZE - 4 };

void cx_log_header_encode(const cx_log_header *header, uint8_t out[CX_LOG_HEADER_SIZE])
{
    memset(out, 0, CX_LOG_HEADER_SIZE);
    memcpy(out, header_magic, sizeof header_magic);
    cx_log_put_u32(out + 8, header->version);
    cx_log_put_u32(out + 12, header->number);
    memcpy(out + 16, header->home_id, CX_LOG_ID_SIZE);
    cx_log_put_u64(out + 32, header->first_commit);
    cx_log_put_u64(out + 40, header->size_bytes);
    memcpy(out + 48, header->previous_end.bytes, sizeof header->previous_end.bytes);
    cx_log_put_u32(out + HEADER_CRC_AT, cx_crc32c_add(0, out, HEADER_CRC_AT));
}

bool cx_log_header_decode(const uint8_t in[CX_LOG_HEADER_SIZE], cx_log_header *out)
{
    if (memcmp(in, header_magic, sizeof header_magic) != 0 ||
        cx_log_get_u32(in + HEADER_CRC_AT) != cx_crc32c_add(0, in, HEADER_CRC_AT))
        return false;
    out->version = cx_log_get_u32(in + 8);
    out->number = cx_log_get_u32(in + 12);
    memcpy(out->home_id, in + 16, CX_LOG_ID_SIZE);
    out->first_commit = cx_log_get_u64(in + 32);
    out->size_bytes = cx_log_get_u64(in + 40);
    memcpy(out->previous_end.bytes, in + 48, sizeof out->previous_end.bytes);
    return true;
}

cx_digest cx_log_end_digest(const cx_log_header *header, uint64_t end_offset,
                            const uint8_t last_mark[CX_LOG_MARK_SIZE])
{
    static const char domain[] = "cortex.log.end.v1";
    uint8_t block[CX_LOG_HEADER_SIZE], end[8];
    cx_sha256 hash;
    cx_log_header_encode(header, block);
    cx_log_put_u64(end, end_offset);
    cx_sha256_init(&hash);
    cx_sha256_add(&hash, domain, sizeof domain - 1);
    cx_sha256_add(&hash, block, sizeof block);
    cx_sha256_add(&hash, end, sizeof end);
    cx_sha256_add(&hash, last_mark, CX_LOG_MARK_SIZE);
    return cx_sha256_end(&hash);
}

uint32_t cx_log_seed(const uint8_t home_id[CX_LOG_ID_SIZE], uint32_t segment)
{
    uint8_t number[4];
    cx_log_put_u32(number, segment);
    return cx_crc32c_add(cx_crc32c_add(0, home_id, CX_LOG_ID_SIZE), number, sizeof number);
}

static uint32_t crc_at(uint32_t seed, uint64_t offset)
{
    uint8_t bytes[8];
    cx_log_put_u64(bytes, offset);
    return cx_crc32c_add(seed, bytes, sizeof bytes);
}

/* --- frame --------------------------------------------------------------------------------- */

enum { FRAME_CRC_AT = 12 };

static uint64_t align_up(uint64_t size)
{
    return (size + CX_LOG_ALIGNMENT - 1) / CX_LOG_ALIGNMENT * CX_LOG_ALIGNMENT;
}

uint64_t cx_log_erasable_at(uint64_t guarded_size)
{
    return align_up(CX_LOG_FRAME_HEAD_SIZE + guarded_size);
}

uint64_t cx_log_frame_bytes(uint64_t guarded_size, uint64_t erasable_size)
{
    uint64_t size = cx_log_erasable_at(guarded_size);
    return erasable_size == 0 ? size : size + CX_LOG_ERASABLE_HEAD_SIZE + align_up(erasable_size);
}

void cx_log_frame_encode(const cx_log_frame *frame, uint32_t seed, uint64_t offset, uint8_t *out)
{
    size_t guarded = frame->guarded.size, erasable = frame->erasable.size;
    memcpy(out, frame_magic, sizeof frame_magic);
    cx_log_put_u32(out + 4, (uint32_t)guarded);
    cx_log_put_u32(out + 8, (uint32_t)erasable);
    uint32_t position = crc_at(seed, offset);
    uint32_t crc = cx_crc32c_add(position, out, FRAME_CRC_AT);
    cx_log_put_u32(out + FRAME_CRC_AT, cx_crc32c_add(crc, frame->guarded.data, guarded));
    uint8_t *at = out + CX_LOG_FRAME_HEAD_SIZE, *second = out + cx_log_erasable_at(guarded);
    memcpy(at, frame->guarded.data, guarded);
    memset(at + guarded, 0, (size_t)(second - at) - guarded);
    if (erasable == 0)
        return;
    memcpy(second, live_magic, sizeof live_magic);
    cx_log_put_u32(second + 4, cx_crc32c_add(position, frame->erasable.data, erasable));
    memcpy(second + CX_LOG_ERASABLE_HEAD_SIZE, frame->erasable.data, erasable);
    memset(second + CX_LOG_ERASABLE_HEAD_SIZE + erasable, 0, (size_t)align_up(erasable) - erasable);
}

void cx_log_erased_head(uint8_t out[CX_LOG_ERASABLE_HEAD_SIZE])
{
    memset(out, 0, CX_LOG_ERASABLE_HEAD_SIZE);
    memcpy(out, erased_magic, sizeof erased_magic);
}

bool cx_log_frame_sizes(const uint8_t *head, uint32_t *out_guarded, uint32_t *out_erasable)
{
    uint32_t guarded = cx_log_get_u32(head + 4), erasable = cx_log_get_u32(head + 8);
    if (memcmp(head, frame_magic, sizeof frame_magic) != 0 || guarded == 0 ||
        guarded > CX_LOG_GUARDED_MAX || erasable > CX_LOG_ERASABLE_MAX)
        return false;
    *out_guarded = guarded;
    *out_erasable = erasable;
    return true;
}

/*
 * Of an erased part not even a checksum stays.  That it was erased is said by a magic of its own:
 * plain zeros are what a torn write leaves.
 */
static cx_log_erasable erasable_state(const uint8_t *at, size_t size, uint32_t position)
{
    const uint8_t *contents = at + CX_LOG_ERASABLE_HEAD_SIZE;
    if (!all_zero(contents + size, (size_t)align_up(size) - size))
        return CX_LOG_SPOILT;
    if (memcmp(at, live_magic, sizeof live_magic) == 0)
        return cx_log_get_u32(at + 4) == cx_crc32c_add(position, contents, size) ? CX_LOG_LIVE
                                                                                 : CX_LOG_SPOILT;
    if (memcmp(at, erased_magic, sizeof erased_magic) != 0)
        return CX_LOG_SPOILT;
    return all_zero(at + 4, 4) && all_zero(contents, size) ? CX_LOG_ERASED : CX_LOG_HALF_ERASED;
}

cx_log_erasable cx_log_erasable_said(const uint8_t head[CX_LOG_ERASABLE_HEAD_SIZE])
{
    return memcmp(head, live_magic, sizeof live_magic) == 0       ? CX_LOG_LIVE
           : memcmp(head, erased_magic, sizeof erased_magic) == 0 ? CX_LOG_ERASED
                                                                  : CX_LOG_SPOILT;
}

bool cx_log_frame_guarded(const uint8_t *in, uint32_t seed, uint64_t offset, cx_bytes *out)
{
    uint32_t guarded, erasable;
    if (!cx_log_frame_sizes(in, &guarded, &erasable))
        return false;
    const uint8_t *contents = in + CX_LOG_FRAME_HEAD_SIZE;
    uint32_t crc = cx_crc32c_add(crc_at(seed, offset), in, FRAME_CRC_AT);
    *out = cx_bytes_from(contents, guarded);
    return cx_log_get_u32(in + FRAME_CRC_AT) == cx_crc32c_add(crc, contents, guarded);
}

bool cx_log_frame_decode(const uint8_t *in, uint32_t seed, uint64_t offset, cx_log_frame *out,
                         cx_log_erasable *out_erasable)
{
    uint32_t guarded, erasable;
    if (!cx_log_frame_sizes(in, &guarded, &erasable))
        return false;
    const uint8_t *contents = in + CX_LOG_FRAME_HEAD_SIZE,
                  *second = in + cx_log_erasable_at(guarded);
    if (!cx_log_frame_guarded(in, seed, offset, &out->guarded) ||
        !all_zero(contents + guarded, (size_t)(second - contents) - guarded))
        return false;
    out->erasable = (cx_bytes){NULL, 0};
    *out_erasable =
        erasable == 0 ? CX_LOG_LIVE : erasable_state(second, erasable, crc_at(seed, offset));
    if (erasable != 0 && *out_erasable == CX_LOG_LIVE)
        out->erasable = cx_bytes_from(second + CX_LOG_ERASABLE_HEAD_SIZE, erasable);
    return true;
}

/* --- end mark ------------------------------------------------------------------------------ */

enum { MARK_CRC_AT = 28 };

void cx_log_mark_encode(const cx_log_mark *mark, uint32_t seed, uint64_t offset,
                        uint8_t out[CX_LOG_MARK_SIZE])
{
    memcpy(out, mark_magic, sizeof mark_magic);
    cx_log_put_u32(out + 4, mark->frame_count);
    cx_log_put_u64(out + 8, mark->commit);
    cx_log_put_u64(out + 16, mark->group_bytes);
    cx_log_put_u32(out + 24, mark->heads_crc);
    cx_log_put_u32(out + MARK_CRC_AT, cx_crc32c_add(crc_at(seed, offset), out, MARK_CRC_AT));
}

bool cx_log_is_mark(const uint8_t *in)
{
    return memcmp(in, mark_magic, sizeof mark_magic) == 0;
}

uint32_t cx_log_mark_frames(const uint8_t *mark)
{
    return cx_log_get_u32(mark + 4);
}

bool cx_log_mark_decode(const uint8_t *in, uint32_t seed, uint64_t offset, cx_log_mark *out)
{
    if (!cx_log_is_mark(in) ||
        cx_log_get_u32(in + MARK_CRC_AT) != cx_crc32c_add(crc_at(seed, offset), in, MARK_CRC_AT))
        return false;
    *out = (cx_log_mark){.frame_count = cx_log_get_u32(in + 4),
                         .commit = cx_log_get_u64(in + 8),
                         .group_bytes = cx_log_get_u64(in + 16),
                         .heads_crc = cx_log_get_u32(in + 24)};
    return true;
}
