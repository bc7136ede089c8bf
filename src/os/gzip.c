/*
 * gzip.c - unpacks with zlib's inflate, a piece at a time; packs with its deflate, in one call.
 *
 *   I1  Never more than max_bytes + 1 bytes are written; the extra byte detects the excess.
 *   I2  Every byte of the input belongs to a member; what follows the last one is an error.
 */
#include "os/gzip.h"

#include <stdatomic.h>

#include <zlib.h>

#include "os/library.h"

#define STEP ((size_t)64 << 10)
#define GZIP_ONLY (16 + MAX_WBITS)
#define ZLIB_ONLY MAX_WBITS
#define PACK_BYTES_MAX ((size_t)1 << 30)

typedef struct zlib_library {
    __typeof__(&inflateInit2_) inflateInit2_;
    __typeof__(&inflate) inflate;
    __typeof__(&inflateReset) inflateReset;
    __typeof__(&inflateEnd) inflateEnd;
    __typeof__(&compress2) compress2;
    __typeof__(&compressBound) compressBound;
} zlib_library;

/* Loaded once and never unloaded; two threads that race to load it get the same library. */
static cx_status load_library(zlib_library *out, cx_err *err)
{
    static _Atomic(cx_library *) loaded;
    cx_library *library = atomic_load(&loaded);
    if (library == NULL) {
        if (cx_failed(cx_library_load("libz.so.1", &library, NULL)))
            return cx_fail_at(err, CX_E_UNSUPPORTED, "LibraryMissing", CX_NO_OFFSET,
                              "compressed data needs zlib: install the package zlib1g");
        atomic_store(&loaded, library);
    }
    CX_TRY(cx_library_symbol(library, "inflateInit2_", &out->inflateInit2_, err));
    CX_TRY(cx_library_symbol(library, "inflate", &out->inflate, err));
    CX_TRY(cx_library_symbol(library, "inflateReset", &out->inflateReset, err));
    CX_TRY(cx_library_symbol(library, "inflateEnd", &out->inflateEnd, err));
    CX_TRY(cx_library_symbol(library, "compress2", &out->compress2, err));
    return cx_library_symbol(library, "compressBound", &out->compressBound, err);
}

static cx_status unpack_error(const z_stream *stream, cx_bytes packed, const char *what,
                              cx_err *err)
{
    uint64_t at = packed.size - stream->avail_in;
    return cx_fail_at(err, CX_E_SYNTAX, "U_GZIP", at,
                      "found %s at byte %llu, expected compressed data", what,
                      (unsigned long long)at);
}

/* Reserves space for the next piece (I1). */
static cx_status grow_output(z_stream *stream, size_t max_bytes, size_t written, cx_buf *out,
                             cx_err *err)
{
    size_t left = max_bytes - written + 1;
    if (written > max_bytes)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                          "unpacked it is more than the %zu bytes that are allowed", max_bytes);
    size_t size = left < STEP ? left : STEP;
    stream->next_out = cx_buf_reserve(out, size);
    stream->avail_out = (uInt)size;
    return stream->next_out == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status unpack(const zlib_library *z, z_stream *stream, cx_bytes packed, bool members,
                        size_t max_bytes, cx_buf *out, cx_err *err)
{
    for (size_t start = out->size;;) {
        CX_TRY(grow_output(stream, max_bytes, out->size - start, out, err));
        uInt room = stream->avail_out;
        int got = z->inflate(stream, Z_NO_FLUSH);
        cx_buf_advance(out, room - stream->avail_out);
        if (got == Z_MEM_ERROR)
            return cx_fail_nomem(err);
        if (got == Z_STREAM_END && stream->avail_in == 0)
            return out->size - start > max_bytes
                       ? grow_output(stream, max_bytes, out->size - start, out, err)
                       : CX_SUCCESS;
        if (got == Z_STREAM_END && !members)
            return unpack_error(stream, packed, "bytes after the end", err);
        if (got == Z_STREAM_END && z->inflateReset(stream) != Z_OK)
            return cx_fail_nomem(err);
        if (got == Z_BUF_ERROR || (got == Z_OK && stream->avail_in == 0 && stream->avail_out != 0))
            return unpack_error(stream, packed, "an end that comes too soon", err);
        if (got != Z_OK && got != Z_STREAM_END)
            return unpack_error(stream, packed, stream->msg != NULL ? stream->msg : "damage", err);
    }
}

static cx_status unpack_all(cx_bytes packed, int window, size_t max_bytes, cx_buf *out, cx_err *err)
{
    zlib_library z;
    z_stream stream = {.next_in = Z_NULL};
    size_t before = out->size;
    CX_TRY(load_library(&z, err));
    if (packed.size == 0 || packed.size > UINT32_MAX)
        return cx_fail_at(err, packed.size == 0 ? CX_E_SYNTAX : CX_E_LIMIT,
                          packed.size == 0 ? "U_GZIP" : "U_LIMIT", 0,
                          "found %zu bytes, expected compressed data of 1 byte to 4 GiB",
                          packed.size);
    /* zlib only reads it; the struct has no const. */
    stream.next_in = (Bytef *)(uintptr_t)packed.data;
    stream.avail_in = (uInt)packed.size;
    if (z.inflateInit2_(&stream, window, ZLIB_VERSION, (int)sizeof stream) != Z_OK)
        return cx_fail_nomem(err);
    cx_status status = unpack(&z, &stream, packed, window == GZIP_ONLY, max_bytes, out, err);
    (void)z.inflateEnd(&stream);
    if (cx_failed(status))
        out->size = before;
    return status;
}

cx_status cx_gzip_unpack(cx_bytes packed, size_t max_bytes, cx_buf *out, cx_err *err)
{
    return unpack_all(packed, GZIP_ONLY, max_bytes, out, err);
}

cx_status cx_zlib_unpack(cx_bytes packed, size_t max_bytes, cx_buf *out, cx_err *err)
{
    return unpack_all(packed, ZLIB_ONLY, max_bytes, out, err);
}

cx_status cx_zlib_pack(cx_bytes plain, cx_buf *out, cx_err *err)
{
    zlib_library z;
    CX_TRY(load_library(&z, err));
    if (plain.size > PACK_BYTES_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "U_LIMIT", CX_NO_OFFSET,
                          "found %zu bytes to compress, expected at most 1 GiB", plain.size);
    uLong size = z.compressBound((uLong)plain.size);
    uint8_t *room = cx_buf_reserve(out, size);
    if (room == NULL ||
        z.compress2(room, &size, plain.data != NULL ? plain.data : (const Bytef *)"",
                    (uLong)plain.size, Z_BEST_SPEED) != Z_OK)
        return cx_fail_nomem(err);
    cx_buf_advance(out, size);
    return CX_SUCCESS;
}
