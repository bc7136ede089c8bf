/* Written for tests/macos. */
#ifndef CX_MACOS_LOCALE_H
#define CX_MACOS_LOCALE_H
#define LC_ALL 0
char *setlocale(int category, const char *name);
#endif
