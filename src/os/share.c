/*
 * share.c - flock(2) on folders.
 */
#include "os/share.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

cx_file cx_share_open(const char *path)
{
    const char *slash = strrchr(path, '/');
    cx_buf name;
    cx_buf_init(&name, cx_alloc_default());
    if (slash == NULL)
        cx_buf_add_byte(&name, '.');
    else
        cx_buf_add(&name, path, (size_t)(slash - path) + 1);
    const char *text = cx_buf_z(&name);
    int folder = text == NULL ? -1 : open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cx_buf_done(&name);
    return folder < 0 ? CX_FILE_NONE : folder;
}

void cx_share_close(cx_file folder)
{
    if (folder != CX_FILE_NONE)
        (void)close(folder);
}

static bool lock_folder(cx_file folder, int how)
{
    return folder == CX_FILE_NONE || flock(folder, how | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

bool cx_share_lock_shared(cx_file folder)
{
    return lock_folder(folder, LOCK_SH);
}

bool cx_share_lock_exclusive(cx_file folder)
{
    return lock_folder(folder, LOCK_EX);
}

void cx_share_leave(cx_file folder)
{
    if (folder != CX_FILE_NONE)
        (void)flock(folder, LOCK_UN);
}
