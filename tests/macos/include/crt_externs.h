/* Written for tests/macos. */
#ifndef CX_MACOS_CRT_EXTERNS_H
#define CX_MACOS_CRT_EXTERNS_H
char ***_NSGetEnviron(void);
#endif
