/*
 * status.c - fills a cx_err.
 */
#define CX_STATUS_ITSELF /* see the end of status.h */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/platform.h"
#include "base/shown.h"

/*
 * One line of valid UTF-8, whatever names or values from the input contain: characters that act on
 * a terminal and invalid bytes are escaped (shown.h).  A character that the size limit would cut is
 * left out.
 */
static void write_message(cx_err *err, cx_code code, const char *format, va_list args)
{
    char raw[CX_ERR_MESSAGE_SIZE];
    int wanted = vsnprintf(raw, sizeof raw, format, args);
    size_t left = wanted < 0 ? 0 : strlen(raw), used = 0;
    bool cut = wanted >= (int)sizeof raw;
    memset(err, 0, offsetof(cx_err, message));
    err->code = code;
    err->offset = CX_NO_OFFSET;
    for (const uint8_t *at = (const uint8_t *)raw; left != 0;) {
        char shown[CX_SHOWN_SIZE_MAX];
        size_t size, read = cx_shown_step(at, left, shown, &size);
        size_t more = size == 0 ? read : size;
        if (used + more >= sizeof err->message || (cut && left < 4 && size != 0 && shown[1] == 'x'))
            break;
        memcpy(err->message + used, size == 0 ? (const void *)at : shown, more);
        used += more;
        at += read;
        left -= read;
    }
    err->message[used] = 0;
}

cx_status cx_fail(cx_err *err, cx_code code, const char *format, ...)
{
    CX_ASSERT(code != CX_OK);
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        write_message(err, code, format, args);
        va_end(args);
    }
    return (cx_status){code};
}

cx_status cx_fail_at(cx_err *err, cx_code code, const char *tag, uint64_t offset,
                     const char *format, ...)
{
    CX_ASSERT(code != CX_OK);
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        write_message(err, code, format, args);
        va_end(args);
        err->tag = tag;
        err->offset = offset;
    }
    return (cx_status){code};
}

static cx_code code_of_errno(int os_errno)
{
    switch (os_errno) {
    case ENOENT:
    case ENOTDIR: return CX_E_NOT_FOUND;
    case EEXIST: return CX_E_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS: return CX_E_DENIED;
    case EAGAIN:
    case EBUSY: return CX_E_BUSY;
    case ENOMEM: return CX_E_NOMEM;
    case ETIMEDOUT: return CX_E_TIMEOUT;
    case ENOSYS:
    case EOPNOTSUPP: return CX_E_UNSUPPORTED;
    default: return CX_E_IO;
    }
}

cx_status cx_fail_os(cx_err *err, int os_errno, const char *format, ...)
{
    cx_code code = code_of_errno(os_errno);
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        write_message(err, code, format, args);
        va_end(args);
        err->os_errno = os_errno;
        size_t used = strlen(err->message);
        char text[128];
        const char *why = cx_platform_error_text(os_errno, text, sizeof text);
        (void)snprintf(err->message + used, sizeof err->message - used, ": %s", why);
    }
    return (cx_status){code};
}

cx_status cx_fail_nomem(cx_err *err)
{
    return cx_fail(err, CX_E_NOMEM, "out of memory");
}

const char *cx_code_name(cx_code code)
{
    static const char *const names[] = {
        [CX_OK] = "ok",
        [CX_E_MORE] = "more",
        [CX_E_SYNTAX] = "syntax",
        [CX_E_FORMAT] = "format",
        [CX_E_LIMIT] = "limit",
        [CX_E_USAGE] = "usage",
        [CX_E_NOT_FOUND] = "not found",
        [CX_E_EXISTS] = "exists",
        [CX_E_CONFLICT] = "conflict",
        [CX_E_DENIED] = "denied",
        [CX_E_BUSY] = "busy",
        [CX_E_IO] = "io",
        [CX_E_NOMEM] = "out of memory",
        [CX_E_TIMEOUT] = "timeout",
        [CX_E_UNSUPPORTED] = "unsupported",
    };
    CX_ASSERT((size_t)code < CX_COUNT_OF(names));
    return names[code];
}

const char *cx_version(void)
{
    return CX_VERSION;
}

const char *cx_verdict_name(cx_verdict verdict)
{
    switch (verdict) {
    case CX_HOLDS: return "holds";
    case CX_BROKEN: return "broken";
    case CX_INDETERMINATE: break;
    }
    return "indeterminate";
}
