/* Written for tests/macos: without qsort_r of GNU and secure_getenv. */
#ifndef CX_MACOS_STDLIB_H
#define CX_MACOS_STDLIB_H
#include <sys/types.h>
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
_Noreturn void _Exit(int code);
_Noreturn void abort(void);
int atexit(void (*call)(void));
void *bsearch(const void *key, const void *base, size_t count, size_t size,
              int (*compare)(const void *, const void *));
void *calloc(size_t count, size_t size);
_Noreturn void exit(int code);
void free(void *block);
char *getenv(const char *name);
void *malloc(size_t size);
char *mkdtemp(char *path);
int mkstemp(char *path);
int posix_memalign(void **out, size_t alignment, size_t size);
void qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *));
void *realloc(void *block, size_t size);
char *realpath(const char *path, char *out);
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
long strtol(const char *text, char **end, int base);
long long strtoll(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
unsigned long long strtoull(const char *text, char **end, int base);
int abs(int value);
long labs(long value);
long long llabs(long long value);
#endif
