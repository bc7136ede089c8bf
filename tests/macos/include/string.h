/* Written for tests/macos: without memrchr, strchrnul and the GNU strerror_r, which macOS lacks. */
#ifndef CX_MACOS_STRING_H
#define CX_MACOS_STRING_H
#include <stddef.h>
#include <strings.h>
void *memchr(const void *block, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *block, int byte, size_t size);
void *memmem(const void *block, size_t size, const void *part, size_t part_size);
char *strcat(char *to, const char *from);
char *strchr(const char *text, int c);
int strcmp(const char *a, const char *b);
int strcoll(const char *a, const char *b);
char *strcpy(char *to, const char *from);
size_t strcspn(const char *text, const char *set);
char *strdup(const char *text);
char *strerror(int code);
int strerror_r(int code, char *room, size_t size);
size_t strlen(const char *text);
char *strncat(char *to, const char *from, size_t size);
int strncmp(const char *a, const char *b, size_t size);
char *strncpy(char *to, const char *from, size_t size);
char *strndup(const char *text, size_t size);
size_t strnlen(const char *text, size_t size);
char *strpbrk(const char *text, const char *set);
char *strrchr(const char *text, int c);
char *strsignal(int number);
size_t strspn(const char *text, const char *set);
char *strstr(const char *text, const char *part);
#endif
