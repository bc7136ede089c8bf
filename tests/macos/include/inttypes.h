/* Written for tests/macos: 64-bit numbers are `long long` there. */
#ifndef CX_MACOS_INTTYPES_H
#define CX_MACOS_INTTYPES_H
#include <stdint.h>
#define PRId8 "hhd"
#define PRIu8 "hhu"
#define PRIx8 "hhx"
#define PRId16 "hd"
#define PRIu16 "hu"
#define PRIx16 "hx"
#define PRId32 "d"
#define PRIu32 "u"
#define PRIx32 "x"
#define PRIX32 "X"
#define PRId64 "lld"
#define PRIi64 "lli"
#define PRIu64 "llu"
#define PRIx64 "llx"
#define PRIX64 "llX"
#define PRIo64 "llo"
#define PRIuPTR "lu"
#define PRIxPTR "lx"
#endif
