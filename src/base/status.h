/*
 * status.h - raising errors and passing them up.
 *
 *     CX_TRY(cx_io_read_file(io, path, limit, &buf, err));      nothing owned yet: return
 *     CX_TRY_GOTO(status, cx_json_parse(text, ...));                  something owned: goto done
 *
 * The library never logs, prints or exits; it reports through cx_err only.
 */
#ifndef CX_BASE_STATUS_H
#define CX_BASE_STATUS_H

#include <cortex/base.h>

#define CX_SUCCESS ((cx_status){CX_OK})

static inline bool cx_failed(cx_status status)
{
    return status.code != CX_OK;
}

#define CX_TRY(expression)                       \
    do {                                         \
        cx_status cx_try_status_ = (expression); \
        if (cx_failed(cx_try_status_))           \
            return cx_try_status_;               \
    } while (0)

/* Needs a `done:` label below, which releases everything owned and returns `status`. */
#define CX_TRY_GOTO(status, expression) \
    do {                                \
        (status) = (expression);        \
        if (cx_failed(status))          \
            goto done;                  \
    } while (0)

/* Writes `err` (when not NULL) and returns `code` as a status. */
cx_status cx_fail(cx_err *err, cx_code code, const char *format, ...) CX_PRINTF(3, 4);

/* The same with a stable tag (static storage) and the byte offset where it was found. */
cx_status cx_fail_at(cx_err *err, cx_code code, const char *tag, uint64_t offset,
                     const char *format, ...) CX_PRINTF(5, 6);

/* CX_E_IO (or NOT_FOUND, EXISTS, DENIED, BUSY, NOMEM as errno says), with errno's text appended. */
cx_status cx_fail_os(cx_err *err, int os_errno, const char *format, ...) CX_PRINTF(3, 4);

/* CX_E_NOMEM. */
cx_status cx_fail_nomem(cx_err *err);

#if (defined(CX_ANALYZE) || defined(__clang_analyzer__)) && !defined(CX_STATUS_ITSELF)
/* For analyzers, which see one file at a time: these functions always return a failure. */
#define CX_FAILS(call, code_) ((void)(call), (cx_status){(code_) == CX_OK ? CX_E_IO : (code_)})
#define cx_fail(err, code, ...) CX_FAILS(cx_fail(err, code, __VA_ARGS__), code)
#define cx_fail_at(err, code, ...) CX_FAILS(cx_fail_at(err, code, __VA_ARGS__), code)
#define cx_fail_os(...) CX_FAILS(cx_fail_os(__VA_ARGS__), CX_E_IO)
#define cx_fail_nomem(err) CX_FAILS(cx_fail_nomem(err), CX_E_NOMEM)
#endif

#endif
