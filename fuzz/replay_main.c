/*
 * replay_main.c - runs a fuzz target over files, or all files of folders, given as arguments.  Each
 * counts as one test; a broken promise stops the program.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "fuzz/fuzz.h"

static unsigned passed;

static void replay(const char *path)
{
    cx_buf input;
    cx_err err;
    cx_buf_init(&input, cx_alloc_default());
    if (cx_failed(cx_io_read_file(cx_io_system(), path, SIZE_MAX, &input, &err))) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    fprintf(stderr, "%s\n", path);
    (void)LLVMFuzzerTestOneInput(input.data, input.size);
    cx_buf_done(&input);
    passed++;
}

static void replay_folder(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char name[4096];
        if (entries[i]->d_name[0] != '.' &&
            snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name) < (int)sizeof name)
            replay(name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct stat info;
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode))
            replay_folder(argv[i]);
        else
            replay(argv[i]);
    }
    printf("%u passed, 0 failed, 0 skipped\n", passed);
    return passed == 0;
}
