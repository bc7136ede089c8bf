/* Written for tests/macos. */
#ifndef CX_MACOS_STDIO_H
#define CX_MACOS_STDIO_H
#include <stdarg.h>
#include <sys/types.h>
typedef struct cx_macos_file FILE;
extern FILE *__stdinp, *__stdoutp, *__stderrp;
#define stdin __stdinp
#define stdout __stdoutp
#define stderr __stderrp
#define EOF (-1)
#define BUFSIZ 1024
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
int fclose(FILE *file);
int ferror(FILE *file);
int fflush(FILE *file);
char *fgets(char *line, int size, FILE *file);
FILE *fopen(const char *path, const char *mode);
int fprintf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
int fputc(int c, FILE *file);
int fputs(const char *text, FILE *file);
size_t fread(void *block, size_t size, size_t count, FILE *file);
size_t fwrite(const void *block, size_t size, size_t count, FILE *file);
int getc(FILE *file);
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int putchar(int c);
int puts(const char *text);
int remove(const char *path);
int rename(const char *from, const char *to);
int snprintf(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int sscanf(const char *text, const char *format, ...) __attribute__((format(scanf, 2, 3)));
int vfprintf(FILE *file, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
int vsnprintf(char *out, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
#endif
