/*
 * diag.h - assertions.
 *
 * CX_ASSERT states an invariant and stays enabled in release builds: a recorder that continues
 * after a broken invariant would write false evidence.  CX_DEBUG_ASSERT is for costly checks in
 * debug and sanitizer builds.  External input never reaches an assertion unchecked.
 */
#ifndef CX_BASE_DIAG_H
#define CX_BASE_DIAG_H

_Noreturn void cx_diag_abort(const char *file, int line, const char *expression);

#define CX_ASSERT(expression) \
    ((expression) ? (void)0 : cx_diag_abort(__FILE__, __LINE__, #expression))

#ifdef CX_DEBUG
#define CX_DEBUG_ASSERT(expression) CX_ASSERT(expression)
#else
#define CX_DEBUG_ASSERT(expression) ((void)0)
#endif

#if defined(__GNUC__)
#define CX_LIKELY(expression) __builtin_expect(!!(expression), 1)
#define CX_UNLIKELY(expression) __builtin_expect(!!(expression), 0)
#else
#define CX_LIKELY(expression) (expression)
#define CX_UNLIKELY(expression) (expression)
#endif

#define CX_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
