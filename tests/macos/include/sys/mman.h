/* Written for tests/macos: without memfd_create, MADV_HUGEPAGE and MAP_POPULATE. */
#ifndef CX_MACOS_SYS_MMAN_H
#define CX_MACOS_SYS_MMAN_H
#include <sys/types.h>
#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_ANON 0x1000
#define MAP_ANONYMOUS MAP_ANON
#define MAP_FAILED ((void *)-1)
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
int munmap(void *at, size_t size);
int mprotect(void *at, size_t size, int protection);
int madvise(void *at, size_t size, int advice);
#endif
