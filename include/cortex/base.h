/*
 * cortex/base.h - the types that every part of the library shares: errors, verdicts, bytes, memory.
 *
 * Three outcomes are kept apart everywhere:
 *
 *   error    we could not do it: a cx_status that is not CX_OK, explained in a cx_err;
 *   verdict  we checked, and this is what we found: a cx_verdict, never an error;
 *   bug      an assertion: the program stops, because going on could falsify evidence.
 *
 * Signatures read `self, inputs..., outputs..., err`.  A length follows its pointer.  `T **out`
 * gives the caller something to close; `const T *` returned is borrowed from `self`.  Outputs are
 * written only on success.  Every function that takes a cx_err accepts NULL for it.
 *
 * C11 and C++ clean.
 */
#ifndef CORTEX_BASE_H
#define CORTEX_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CX_API __attribute__((visibility("default")))
#define CX_MUST_USE __attribute__((warn_unused_result))
#define CX_PRINTF(format_index, first_index) \
    __attribute__((format(printf, format_index, first_index)))
#else
#define CX_API
#define CX_MUST_USE
#define CX_PRINTF(format_index, first_index)
#endif

/* What a caller would do differently; the message says the rest. */
typedef enum cx_code {
    CX_OK = 0,
    CX_E_MORE,       /* the input ends before the value does: read more, or report it as cut */
    CX_E_SYNTAX,     /* the bytes are not of the format */
    CX_E_FORMAT,     /* well-formed, but not what this reader accepts */
    CX_E_LIMIT,      /* a named limit was passed */
    CX_E_USAGE,      /* the caller asked for something that makes no sense */
    CX_E_NOT_FOUND,  /* no such file, actor, entry, ... */
    CX_E_EXISTS,     /* it exists already */
    CX_E_CONFLICT,   /* another caller changed it first */
    CX_E_DENIED,     /* not allowed */
    CX_E_BUSY,       /* in use by another process or thread: try again */
    CX_E_IO,         /* an operating system call failed: see os_errno */
    CX_E_NOMEM,      /* out of memory */
    CX_E_TIMEOUT,    /* took longer than allowed */
    CX_E_UNSUPPORTED /* not available in this build or on this machine */
} cx_code;

/* A one-field struct, so that the compiler refuses to mix it with an int, a bool or a verdict. */
typedef struct cx_status {
    cx_code code;
} cx_status;

#define CX_RESULT CX_MUST_USE cx_status

#define CX_NO_OFFSET UINT64_MAX
#define CX_ERR_MESSAGE_SIZE 320

/*
 * Caller-owned, fixed size, never allocates.  The first failure writes it; callers pass it up
 * unchanged.  `tag` is a stable machine-readable name such as "U_SYNTAX", or NULL.
 */
typedef struct cx_err {
    cx_code code;
    int os_errno;    /* 0 when the operating system was not involved */
    const char *tag; /* static storage */
    uint64_t offset; /* byte offset in the input, CX_NO_OFFSET when there is none */
    uint64_t line;   /* 1-based, 0 when there is none */
    uint64_t column; /* 1-based, in bytes, 0 when there is none */
    char message[CX_ERR_MESSAGE_SIZE]; /* one line, no newline, always terminated */
} cx_err;

/* What a check found.  CX_INDETERMINATE: something needed for an answer is missing. */
typedef enum cx_verdict { CX_HOLDS = 0, CX_BROKEN = 1, CX_INDETERMINATE = 2 } cx_verdict;

/* Borrowed bytes; `data` may be NULL when `size` is 0. */
typedef struct cx_bytes {
    const uint8_t *data;
    size_t size;
} cx_bytes;

/* Borrowed text, not terminated.  UTF-8 unless a function says otherwise. */
typedef struct cx_str {
    const char *data;
    size_t size;
} cx_str;

/* A SHA-256 value. */
typedef struct cx_digest {
    uint8_t bytes[32];
} cx_digest;

/* An Ed25519 public key, and what such a key signed (RFC 8032).  The library never signs. */
typedef struct cx_pubkey {
    uint8_t bytes[32];
} cx_pubkey;

typedef struct cx_signature {
    uint8_t bytes[64];
} cx_signature;

/* From zero-terminated text, which is borrowed; not NULL. */
static inline cx_str cx_str_z(const char *text)
{
    cx_str str;
    str.data = text;
    str.size = strlen(text);
    return str;
}

static inline cx_bytes cx_bytes_from(const void *data, size_t size)
{
    cx_bytes bytes;
    bytes.data = (const uint8_t *)data;
    bytes.size = size;
    return bytes;
}

/*
 * Memory for long-lived objects.  Sizes are in bytes; old_size_bytes is the size with which the
 * block was allocated.  resize(ctx, NULL, 0, n) allocates n bytes, resize(ctx, p, n, 0) frees and
 * returns NULL, anything else reallocates.  NULL for a new size > 0 means out of memory; the old
 * block is then unchanged.  Must be callable from every thread that uses the object.
 */
typedef struct cx_alloc {
    void *(*resize)(void *ctx, void *block, size_t old_size_bytes, size_t new_size_bytes);
    void *ctx;
} cx_alloc;

/* The C library's allocator. */
CX_API const cx_alloc *cx_alloc_default(void);

/*
 * Bytes or text that a call returns and the caller owns: `size` bytes, followed by one zero byte
 * that is not counted.  Written only on success; the previous contents are not freed.  Free it with
 * cx_owned_done, which makes it empty again and accepts an empty one.
 */
typedef struct cx_owned {
    uint8_t *data; /* NULL when empty */
    size_t size;
    size_t capacity;       /* for cx_owned_done */
    const cx_alloc *alloc; /* for cx_owned_done; must outlive the object */
} cx_owned;

#define CX_OWNED_INIT    \
    {                    \
        NULL, 0, 0, NULL \
    }

/* `owned` is not NULL. */
CX_API void cx_owned_done(cx_owned *owned);

/* Both borrow from `owned` until cx_owned_done.  The text is "" when it is empty. */
static inline cx_bytes cx_owned_bytes(const cx_owned *owned)
{
    return cx_bytes_from(owned->data, owned->size);
}
static inline const char *cx_owned_text(const cx_owned *owned)
{
    return owned->data == NULL ? "" : (const char *)owned->data;
}

/* Version of the library, "1.2.3"; static storage. */
CX_API const char *cx_version(void);

/* Name of a code: "ok", "not found", ...; static storage. */
CX_API const char *cx_code_name(cx_code code);

/* Name of a verdict: "holds", "broken", "indeterminate"; static storage. */
CX_API const char *cx_verdict_name(cx_verdict verdict);

#ifdef __cplusplus
}
#endif
#endif
