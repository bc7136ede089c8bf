/*
 * git_pack.c - objects passed to git as one pack (gitformat-pack).
 *
 *     "PACK"  version 2 (4 bytes)  count (4 bytes)
 *     per object: type and size (a byte with 3 bits of type and 4 of size, then 7 bits a byte),
 *                 a zlib stream of the contents
 *     the hash of all of it, in the repository's hash function
 */
#include "git/git_pack.h"

#include "os/api.h"
#include "crypto/api.h"

#define COUNT_AT 8
#define LOOSE_HEAD_BYTES_MAX 32 /* of "<type> <size>" with its zero byte */

void cx_git_pack_init(cx_git_pack *pack, size_t oid_size)
{
    CX_ASSERT(oid_size == 20 || oid_size == 32);
    static const uint8_t head[12] = {'P', 'A', 'C', 'K', 0, 0, 0, 2};
    memset(pack, 0, sizeof *pack);
    cx_buf_init(&pack->bytes, cx_alloc_default());
    cx_buf_add(&pack->bytes, head, sizeof head);
    pack->oid_size = oid_size;
}

void cx_git_pack_done(cx_git_pack *pack)
{
    cx_buf_done(&pack->bytes);
}

static void add_object_head(cx_buf *out, cx_object_type type, uint64_t size)
{
    uint8_t byte = (uint8_t)((unsigned)type << 4 | (unsigned)(size & 15));
    for (size >>= 4; size != 0; size >>= 7) {
        cx_buf_add_byte(out, byte | 0x80);
        byte = (uint8_t)(size & 0x7f);
    }
    cx_buf_add_byte(out, byte);
}

cx_status cx_git_pack_add(cx_git_pack *pack, cx_object_type type, cx_bytes contents, cx_err *err)
{
    if (contents.size > CX_GIT_OBJECT_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a git object has %zu bytes, more than %llu", contents.size,
                       (unsigned long long)CX_GIT_OBJECT_BYTES_MAX);
    pack->plain_bytes += contents.size;
    if (pack->plain_bytes > CX_GIT_PACK_BYTES_MAX || pack->count == UINT32_MAX)
        return cx_fail(err, CX_E_LIMIT, "git objects have more than %llu bytes in all",
                       (unsigned long long)CX_GIT_PACK_BYTES_MAX);
    add_object_head(&pack->bytes, type, contents.size);
    CX_TRY(cx_zlib_pack(contents, &pack->bytes, err));
    pack->count++;
    return cx_buf_check(&pack->bytes, err);
}

static void add_trailer(cx_git_pack *pack)
{
    if (pack->oid_size == CX_SHA1_SIZE) {
        uint8_t name[CX_SHA1_SIZE];
        cx_sha1 hash;
        cx_sha1_init(&hash);
        cx_sha1_add(&hash, pack->bytes.data, pack->bytes.size);
        cx_sha1_end(&hash, name);
        cx_buf_add(&pack->bytes, name, sizeof name);
    } else {
        cx_digest name = cx_digest_of(cx_buf_bytes(&pack->bytes));
        cx_buf_add(&pack->bytes, name.bytes, sizeof name.bytes);
    }
}

static cx_status unpack_objects(const cx_git *git, cx_bytes pack, bool strict, uint64_t timeout_ms,
                                cx_err *err)
{
    cx_git_call call = {.args = strict ? CX_GIT_ARGS("unpack-objects", "-q", "--strict")
                                       : CX_GIT_ARGS("unpack-objects", "-q"),
                        .input = pack,
                        .timeout_ms = timeout_ms,
                        .memory_bytes = CX_GIT_HOSTILE_MEMORY_BYTES,
                        .bare = true};
    return cx_git_call_run(git, &call, NULL, NULL, err);
}

cx_status cx_git_pack_store(cx_git_pack *pack, const cx_git *git, bool strict, cx_err *err)
{
    CX_TRY(cx_buf_check(&pack->bytes, err));
    if (pack->count == 0)
        return CX_SUCCESS;
    for (unsigned i = 0; i < 4; i++)
        pack->bytes.data[COUNT_AT + i] = (uint8_t)(pack->count >> (24 - 8 * i));
    add_trailer(pack);
    CX_TRY(cx_buf_check(&pack->bytes, err));
    return unpack_objects(git, cx_buf_bytes(&pack->bytes), strict, 0, err);
}

cx_status cx_git_pack_store_bytes(const cx_git *git, cx_bytes pack, uint64_t timeout_ms,
                                  cx_err *err)
{
    return unpack_objects(git, pack, true, timeout_ms, err);
}

/* --- loose objects ---------------------------------------------------------------------------- */

static const char *const type_names[] = {[CX_OBJECT_COMMIT] = "commit",
                                         [CX_OBJECT_TREE] = "tree",
                                         [CX_OBJECT_BLOB] = "blob",
                                         [CX_OBJECT_TAG] = "tag"};

const char *cx_git_type_name(cx_object_type type)
{
    CX_ASSERT(type >= CX_OBJECT_COMMIT && type <= CX_OBJECT_TAG);
    return type_names[type];
}

static bool parse_object_type(cx_str name, cx_object_type *out)
{
    for (int type = CX_OBJECT_COMMIT; type <= CX_OBJECT_TAG; type++)
        if (cx_str_is(name, type_names[type])) {
            *out = (cx_object_type)type;
            return true;
        }
    return false;
}

/* "<type> <size>"; the size is decimal, without zeros before it. */
static bool parse_loose_head(cx_str head, cx_object_type *out_type, uint64_t *out_size)
{
    const char *space = memchr(head.data, ' ', head.size);
    if (space == NULL ||
        !parse_object_type((cx_str){head.data, (size_t)(space - head.data)}, out_type))
        return false;
    cx_str digits = {space + 1, head.size - (size_t)(space - head.data) - 1};
    if (digits.size == 0 || digits.size > 12 || (digits.data[0] == '0' && digits.size > 1))
        return false;
    *out_size = 0;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
        *out_size = *out_size * 10 + (uint64_t)(digits.data[i] - '0');
    }
    return true;
}

cx_status cx_git_loose_parse(cx_bytes file, size_t limit_bytes, cx_object_type *out_type,
                             cx_buf *out, cx_err *err)
{
    cx_buf plain;
    uint64_t size = 0;
    cx_buf_init(&plain, cx_alloc_default());
    cx_status status = cx_zlib_unpack(file, limit_bytes + LOOSE_HEAD_BYTES_MAX, &plain, err);
    if (!cx_failed(status)) {
        size_t head_size = plain.size < LOOSE_HEAD_BYTES_MAX ? plain.size : LOOSE_HEAD_BYTES_MAX;
        const char *data = (const char *)plain.data;
        const char *end = head_size == 0 ? NULL : memchr(data, 0, head_size);
        size_t head = end == NULL ? 0 : (size_t)(end - data);
        if (end == NULL || !parse_loose_head((cx_str){data, head}, out_type, &size) ||
            size != plain.size - head - 1)
            status = cx_fail(err, CX_E_FORMAT, "a file is not a valid loose git object");
        else
            cx_buf_add(out, plain.data + head + 1, plain.size - head - 1);
    }
    cx_buf_done(&plain);
    return cx_failed(status) ? status : cx_buf_check(out, err);
}
