/*
 * zstd.c - packs and unpacks with libzstd, in one call each.
 */
#include "os/zstd.h"

#include <stdatomic.h>

#include "os/library.h"

/* Of ZSTD_cParameter; the numbers are part of the library's stable interface. */
enum { PARAMETER_LEVEL = 100, PARAMETER_CHECKSUM = 201 };

typedef struct packer packer; /* ZSTD_CCtx */

typedef struct zstd {
    size_t (*compress_bound)(size_t size);
    size_t (*compress2)(packer *context, void *to, size_t room, const void *from, size_t size);
    size_t (*set_parameter)(packer *context, int parameter, int value);
    packer *(*create)(void);
    size_t (*release)(packer *context);
    size_t (*decompress)(void *to, size_t room, const void *from, size_t size);
    unsigned long long (*content_size)(const void *from, size_t size);
    unsigned (*is_error)(size_t result);
} zstd;

/* Loaded once and never unloaded; two threads that race to load it get the same library. */
static cx_status load_library(zstd *z, cx_err *err)
{
    static _Atomic(cx_library *) loaded;
    cx_library *library = atomic_load(&loaded);
    if (library == NULL) {
        if (cx_failed(cx_library_load("libzstd.so.1", &library, NULL)))
            return cx_fail_at(err, CX_E_UNSUPPORTED, "LibraryMissing", CX_NO_OFFSET,
                              "compressed data needs zstd: install the package libzstd1");
        atomic_store(&loaded, library);
    }
    CX_TRY(cx_library_symbol(library, "ZSTD_compressBound", &z->compress_bound, err));
    CX_TRY(cx_library_symbol(library, "ZSTD_compress2", &z->compress2, err));
    CX_TRY(cx_library_symbol(library, "ZSTD_CCtx_setParameter", &z->set_parameter, err));
    CX_TRY(cx_library_symbol(library, "ZSTD_createCCtx", &z->create, err));
    CX_TRY(cx_library_symbol(library, "ZSTD_freeCCtx", &z->release, err));
    CX_TRY(cx_library_symbol(library, "ZSTD_decompress", &z->decompress, err));
    CX_TRY(cx_library_symbol(library, "ZSTD_getFrameContentSize", &z->content_size, err));
    return cx_library_symbol(library, "ZSTD_isError", &z->is_error, err);
}

cx_status cx_zstd_load(cx_err *err)
{
    zstd z;
    return load_library(&z, err);
}

cx_status cx_zstd_pack(cx_bytes from, int level, bool checked, cx_buf *out, cx_err *err)
{
    zstd z;
    CX_ASSERT(level >= 1 && level <= 19);
    CX_TRY(load_library(&z, err));
    size_t room = z.compress_bound(from.size);
    uint8_t *to = cx_buf_reserve(out, room);
    packer *context = z.create();
    cx_status status = CX_SUCCESS;
    if (to == NULL || context == NULL ||
        z.is_error(z.set_parameter(context, PARAMETER_LEVEL, level)) != 0 ||
        z.is_error(z.set_parameter(context, PARAMETER_CHECKSUM, checked ? 1 : 0)) != 0) {
        status = cx_fail_nomem(err);
    } else {
        size_t size = z.compress2(context, to, room, from.data, from.size);
        if (z.is_error(size) != 0)
            status = cx_fail_nomem(err); /* into so much room it can fail only so */
        else
            cx_buf_advance(out, size);
    }
    z.release(context);
    return status;
}

cx_status cx_zstd_content_size(cx_bytes packed, uint64_t *out, cx_err *err)
{
    zstd z;
    CX_TRY(load_library(&z, err));
    unsigned long long size = z.content_size(packed.data, packed.size);
    if (size == ~0ULL - 1)
        return cx_fail(err, CX_E_FORMAT, "found no zstd frame");
    if (size == ~0ULL)
        return cx_fail(err, CX_E_FORMAT, "the zstd frame does not say its size");
    *out = size;
    return CX_SUCCESS;
}

cx_status cx_zstd_unpack(cx_bytes packed, void *to, size_t size, cx_err *err)
{
    zstd z;
    CX_TRY(load_library(&z, err));
    size_t got = z.decompress(to, size, packed.data, packed.size);
    if (z.is_error(got) != 0 || got != size)
        return cx_fail(err, CX_E_FORMAT, "zstd cannot unpack it to %zu bytes", size);
    return CX_SUCCESS;
}
