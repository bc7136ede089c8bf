/* Written for tests/macos: see tests/macos/README.md. */
#ifndef CX_MACOS_SYS_CDEFS_H
#define CX_MACOS_SYS_CDEFS_H
#define __BEGIN_DECLS
#define __END_DECLS
#define __DARWIN_C_LEVEL 900000L
#endif
