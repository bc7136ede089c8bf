/* Written for tests/macos. */
#ifndef CX_MACOS_DIRENT_H
#define CX_MACOS_DIRENT_H
#include <sys/types.h>
typedef struct cx_macos_dir DIR;
struct dirent {
    unsigned long long d_ino;
    unsigned long long d_seekoff;
    unsigned short d_reclen;
    unsigned short d_namlen;
    unsigned char d_type;
    char d_name[1024];
};
int closedir(DIR *folder);
int dirfd(DIR *folder);
DIR *fdopendir(int file);
DIR *opendir(const char *path);
struct dirent *readdir(DIR *folder);
#endif
