/*
 * git_index.c - the file of a git index, versions 2 to 4 (gitformat-index).
 *
 *     "DIRC"  version (4 bytes)  count of entries (4)
 *     entries: 40 bytes of lstat, of which mode is the seventh field; object name; flags (2);
 *              2 more bytes of flags when the 0x4000 bit of the first is set; path
 *              versions 2, 3: the path, then 1 to 8 zero bytes up to a multiple of 8
 *              version 4: how many bytes of the previous path to drop (as an offset of packs), then
 *              the bytes that replace them, ended by a zero byte
 *     extensions: name (4)  size (4)  bytes
 *     the hash of all of it
 *
 * Invariants I1 and I2: git_index.h.
 */
#include "git/git_index.h"

#define ENTRY_MIN_BYTES 42 /* without the object name */
#define FLAG_ASSUME_VALID 0x8000u
#define FLAG_EXTENDED 0x4000u
#define FLAG_STAGE 0x3000u
#define MORE_SKIP_WORKTREE 0x4000u
#define MORE_INTENT_TO_ADD 0x2000u
#define MODE_TREE 0040000u

typedef struct index_reader {
    cx_bytes file;
    size_t at, end; /* of entries and extensions */
    uint32_t version;
    size_t oid_size;
    cx_arena *arena;
    cx_index_entry *entries;
    size_t count;
    cx_err *err;
} index_reader;

static cx_status fail_index(const index_reader *r, const char *what)
{
    return cx_fail_at(r->err, CX_E_FORMAT, NULL, r->at, "the git index is damaged: %s at byte %zu",
                      what, r->at);
}

static uint32_t read_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t read_be64(const uint8_t *p)
{
    return (uint64_t)read_be32(p) << 32 | read_be32(p + 4);
}

/* --- entries ---------------------------------------------------------------------------------- */

static cx_status fail_split_index(const index_reader *r)
{
    return cx_fail(r->err, CX_E_UNSUPPORTED,
                   "the git index is split in two files: run 'git update-index --no-split-index' "
                   "in its work tree");
}

/* A path that ends with a zero byte before `end`. */
static bool find_path_end(const index_reader *r, size_t from, size_t *out_size)
{
    const uint8_t *found = from < r->end ? memchr(r->file.data + from, 0, r->end - from) : NULL;
    if (found == NULL)
        return false;
    *out_size = (size_t)(found - (r->file.data + from));
    return true;
}

static cx_status read_plain_path(index_reader *r, size_t start, cx_index_entry *entry)
{
    size_t size;
    if (!find_path_end(r, r->at, &size))
        return fail_index(r, "a path without its end");
    if (size == 0) /* an entry whose path is in the shared index */
        return fail_split_index(r);
    entry->path = cx_arena_copy_str(r->arena, (cx_str){(const char *)r->file.data + r->at, size});
    r->at = start + ((r->at - start + size + 8) & ~(size_t)7);
    if (entry->path.data == NULL)
        return cx_fail_nomem(r->err);
    return r->at <= r->end ? CX_SUCCESS : fail_index(r, "an entry that is cut off");
}

/* A number in the encoding of pack offsets: 7 bits a byte, plus one for each preceding byte. */
static bool read_varint_offset(index_reader *r, size_t *out)
{
    size_t value = 0;
    for (unsigned i = 0; i < 5 && r->at < r->end; i++) {
        uint8_t byte = r->file.data[r->at++];
        value = (i == 0 ? 0 : (value + 1) << 7) | (byte & 0x7f);
        if ((byte & 0x80) == 0) {
            *out = value;
            return true;
        }
    }
    return false;
}

static cx_status read_compressed_path(index_reader *r, cx_str last, cx_index_entry *entry)
{
    size_t dropped, size;
    if (!read_varint_offset(r, &dropped) || dropped > last.size || !find_path_end(r, r->at, &size))
        return fail_index(r, "a path whose prefix is longer than the previous path");
    size_t prefix_size = last.size - dropped;
    if (prefix_size + size == 0)
        return fail_split_index(r);
    if (prefix_size + size > UINT16_MAX)
        return fail_index(r, "a path of too many bytes");
    char *path = CX_ARENA_ARRAY(r->arena, char, prefix_size + size + 1);
    if (path == NULL)
        return cx_fail_nomem(r->err);
    if (prefix_size != 0)
        memcpy(path, last.data, prefix_size);
    memcpy(path + prefix_size, r->file.data + r->at, size + 1);
    r->at += size + 1;
    entry->path = (cx_str){path, prefix_size + size};
    return CX_SUCCESS;
}

static cx_status read_entry(index_reader *r, cx_str last, cx_index_entry *entry)
{
    size_t start = r->at, head = ENTRY_MIN_BYTES + r->oid_size;
    if (r->end - r->at < head)
        return fail_index(r, "an entry that is cut off");
    const uint8_t *p = r->file.data + r->at;
    unsigned flags = (unsigned)p[head - 2] << 8 | p[head - 1];
    *entry = (cx_index_entry){.mode = read_be32(p + 24), .oid = {.size = (uint8_t)r->oid_size}};
    memcpy(entry->oid.bytes, p + 40, r->oid_size);
    entry->stage = (uint8_t)((flags & FLAG_STAGE) >> 12);
    entry->flags = flags & FLAG_ASSUME_VALID ? CX_INDEX_ASSUME_UNCHANGED : 0;
    r->at += head;
    if (flags & FLAG_EXTENDED) {
        if (r->version < 3 || r->end - r->at < 2)
            return fail_index(r, "more flags than its version has");
        unsigned more = (unsigned)r->file.data[r->at] << 8 | r->file.data[r->at + 1];
        entry->flags |= (uint8_t)((more & MORE_SKIP_WORKTREE ? CX_INDEX_SKIP_WORKTREE : 0) |
                                  (more & MORE_INTENT_TO_ADD ? CX_INDEX_INTENT_TO_ADD : 0));
        r->at += 2;
    }
    if (entry->mode == MODE_TREE)
        return cx_fail(r->err, CX_E_UNSUPPORTED,
                       "the git index is sparse: run 'git sparse-checkout reapply "
                       "--no-sparse-index' in its work tree");
    return r->version == 4 ? read_compressed_path(r, last, entry)
                           : read_plain_path(r, start, entry);
}

static cx_status read_entries(index_reader *r)
{
    cx_str last = CX_STR("");
    for (size_t i = 0; i < r->count; i++) {
        CX_TRY(read_entry(r, last, &r->entries[i]));
        last = r->entries[i].path;
    }
    return CX_SUCCESS;
}

/* --- the file system monitor ------------------------------------------------------------------ */

/* An EWAH bitmap: 64-bit words, some of which are run lengths. Its bits are the entries that git
 * has to check; git would trust all others without reading them. */
static bool mark_fsmonitor_entries(index_reader *r, const uint8_t *p, size_t size)
{
    size_t bit = 0;
    if (size < 12)
        return false;
    size_t words = read_be32(p + 4);
    if (words > (size - 8) / 8)
        return false;
    p += 8;
    for (size_t i = 0; i < r->count; i++)
        r->entries[i].flags |= CX_INDEX_FSMONITOR_VALID;
    for (size_t at = 0; at < words;) {
        uint64_t marker = read_be64(p + 8 * at++);
        uint64_t run = marker >> 1 & UINT32_MAX, literals = marker >> 33;
        for (; run != 0 && bit < r->count; run--)
            for (unsigned i = 0; i < 64 && bit < r->count; i++, bit++)
                if (marker & 1)
                    r->entries[bit].flags &= (uint8_t)~CX_INDEX_FSMONITOR_VALID;
        for (; literals != 0 && at < words; literals--, at++) {
            uint64_t bits = read_be64(p + 8 * at);
            for (unsigned i = 0; i < 64 && bit < r->count; i++, bit++)
                if (bits >> i & 1)
                    r->entries[bit].flags &= (uint8_t)~CX_INDEX_FSMONITOR_VALID;
        }
    }
    return true;
}

/* version (4); 8 bytes of time (version 1) or a text (version 2); size of the bitmap (4); bitmap */
static bool read_fsmonitor(index_reader *r, const uint8_t *p, size_t size)
{
    if (size < 4)
        return false;
    uint32_t version = read_be32(p);
    size_t skip = 4 + 8;
    if (version == 2) {
        const uint8_t *end = memchr(p + 4, 0, size - 4);
        if (end == NULL)
            return false;
        skip = (size_t)(end - p) + 1;
    } else if (version != 1) {
        return false;
    }
    return size >= skip + 4 && mark_fsmonitor_entries(r, p + skip + 4, size - skip - 4);
}

/* --- extensions ------------------------------------------------------------------------------- */

static cx_status read_extension(index_reader *r, const uint8_t *name, const uint8_t *p, size_t size)
{
    if (memcmp(name, "link", 4) == 0)
        return fail_split_index(r);
    if (memcmp(name, "FSMN", 4) == 0 && !read_fsmonitor(r, p, size))
        return fail_index(r, "a malformed extension of the file system monitor");
    if (name[0] < 'A' || name[0] > 'Z') /* I2 */
        return cx_fail(r->err, CX_E_UNSUPPORTED, "the git index needs an extension '%.4s'",
                       (const char *)name);
    return CX_SUCCESS;
}

static cx_status read_extensions(index_reader *r)
{
    while (r->at < r->end) {
        if (r->end - r->at < 8)
            return fail_index(r, "an extension that is cut off");
        const uint8_t *head = r->file.data + r->at;
        size_t size = read_be32(head + 4);
        r->at += 8;
        if (size > r->end - r->at)
            return fail_index(r, "an extension that is cut off");
        CX_TRY(read_extension(r, head, head + 8, size));
        r->at += size;
    }
    return CX_SUCCESS;
}

cx_status cx_index_read(cx_bytes file, size_t oid_size, cx_arena *arena, cx_index_entry **out,
                        size_t *out_count, cx_err *err)
{
    CX_ASSERT(oid_size == 20 || oid_size == 32);
    index_reader r = {.file = file, .oid_size = oid_size, .arena = arena, .err = err};
    if (file.size < 12 + oid_size || memcmp(file.data, "DIRC", 4) != 0)
        return fail_index(&r, "no header");
    r.version = read_be32(file.data + 4);
    r.count = read_be32(file.data + 8);
    r.at = 12;
    r.end = file.size - oid_size;
    if (r.version < 2 || r.version > 4)
        return cx_fail(err, CX_E_UNSUPPORTED, "the git index has version %u, not 2 to 4",
                       (unsigned)r.version);
    if (r.count > (r.end - r.at) / (ENTRY_MIN_BYTES + oid_size))
        return fail_index(&r, "more entries than bytes");
    r.entries = CX_ARENA_ARRAY(arena, cx_index_entry, r.count == 0 ? 1 : r.count);
    if (r.entries == NULL)
        return cx_fail_nomem(err);
    CX_TRY(read_entries(&r));
    CX_TRY(read_extensions(&r));
    *out = r.entries;
    *out_count = r.count;
    return CX_SUCCESS;
}
