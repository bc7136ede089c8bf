/*
 * folder.c - temporary folders: making names, comparing, removing.
 */
#include "tests/support/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

void folder_fresh(char out[FOLDER_PATH_SIZE], const char *name)
{
    const char *above = getenv("TMPDIR");
    (void)snprintf(out, FOLDER_PATH_SIZE, "%s/cortex-%ld-%s", above != NULL ? above : "/tmp",
                   (long)getpid(), name);
    folder_remove(out);
}

static void below(char out[FOLDER_PATH_SIZE], const char *path, const char *name)
{
    size_t size = strlen(path), name_size = strlen(name) + 1;
    CX_ASSERT(size + 1 + name_size <= FOLDER_PATH_SIZE);
    memcpy(out, path, size);
    out[size] = '/';
    memcpy(out + size + 1, name, name_size);
}

void folder_remove(const char *path)
{
    struct dirent **names = NULL;
    struct stat info;
    if (lstat(path, &info) != 0)
        return;
    if (!S_ISDIR(info.st_mode)) {
        (void)unlink(path);
        return;
    }
    int count = scandir(path, &names, NULL, NULL);
    for (int i = 0; i < count; i++) {
        char inside[FOLDER_PATH_SIZE];
        if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0) {
            below(inside, path, names[i]->d_name);
            folder_remove(inside);
        }
        free(names[i]);
    }
    free(names);
    (void)rmdir(path);
}

void folder_contents(const char *path, cx_buf *out)
{
    struct dirent **names = NULL;
    int count = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char inside[FOLDER_PATH_SIZE];
        struct stat info;
        below(inside, path, names[i]->d_name);
        if (stat(inside, &info) == 0 && S_ISREG(info.st_mode)) {
            cx_buf_printf(out, "%s %lld\n", names[i]->d_name, (long long)info.st_size);
            cx_status status = cx_io_read_file(cx_io_system(), inside, SIZE_MAX, out, NULL);
            CX_ASSERT(!cx_failed(status));
        }
        free(names[i]);
    }
    free(names);
    CX_ASSERT(!out->failed);
}
