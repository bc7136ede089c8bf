/*
 * test_folder.c - folders that are not to be trusted: links, ways out, every kind of file, removal
 * at any depth, locks.
 */
#include "os/folder.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/test.h"

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    cx_file folder;
    cx_err err;
} fixture;

static bool begin(fixture *f, const char *name)
{
    memset(f, 0, sizeof *f);
    f->folder = CX_FILE_NONE;
    folder_fresh(f->path, name);
    return !cx_failed(cx_path_make_folders(f->path, &f->err)) &&
           !cx_failed(cx_folder_open(f->path, &f->folder, &f->err));
}

static void end(fixture *f)
{
    cx_folder_close(f->folder);
    CHECK_STATUS(cx_path_remove_tree(f->path, &f->err), &f->err);
}

#define WITH(f, name) \
    fixture f;        \
    REQUIRE(begin(&(f), name));

static void put(fixture *f, const char *path, const char *text)
{
    cx_file file;
    CHECK_STATUS(cx_folder_open_in(f->folder, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_TRUNCATE,
                                   &file, &f->err),
                 &f->err);
    CHECK_STATUS(cx_io_write_all(cx_io_system(), file, path, text, strlen(text), &f->err), &f->err);
    cx_folder_close(file);
}

CX_TEST(folder_no_way_out_and_no_link_on_the_way)
{
    WITH(f, "folder-out")
    cx_file file;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_folder_make_folders(f.folder, "a/b", 0700, &f.err), &f.err);
    put(&f, "a/b/c", "inside");
    CHECK_STATUS(cx_folder_make_link(f.folder, "a", "link", &f.err), &f.err);
    CHECK_STATUS(cx_folder_make_link(f.folder, "c", "a/b/file", &f.err), &f.err);
    CHECK_STATUS(cx_folder_read_file(f.folder, "a/b/c", 100, &text, &f.err), &f.err);
    CHECK_STR(cx_buf_str(&text), "inside");
    static const char *const refused[] = {"link/b/c",  "a/b/file",    "../x",
                                          "a/../../x", "/etc/passwd", "a/b/../../../etc"};
    for (size_t i = 0; i < CX_COUNT_OF(refused); i++) {
        cx_status status = cx_folder_open_in(f.folder, refused[i], CX_IO_READ, &file, &f.err);
        if (!cx_failed(status))
            cx_test_fail(__FILE__, __LINE__, "%s was opened", refused[i]);
        CHECK_INT(status.code, CX_E_DENIED);
    }
    cx_facts facts;
    CHECK_INT(cx_folder_facts(f.folder, "link/b", &facts, &f.err).code, CX_E_DENIED);
    CHECK(cx_failed(cx_folder_make_folders(f.folder, "link/x", 0700, &f.err)));
    CHECK_INT(cx_folder_remove_tree(f.folder, "..", &f.err).code, CX_E_DENIED);
    CHECK_INT(cx_folder_remove_tree(f.folder, ".", &f.err).code, CX_E_DENIED);
    CHECK_INT(cx_folder_rename(f.folder, "a/b/c", "link/c", &f.err).code, CX_E_DENIED);
    cx_buf_done(&text);
    end(&f);
}

/* From here on this process has a kernel without openat2; false when that cannot be. */
static bool forget_openat2(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {CX_COUNT_OF(rules), rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

CX_TEST(folder_an_older_kernel_gives_the_same_answers)
{
    static const struct {
        const char *path;
        cx_code code;
    } cases[] = {
        {"a/b/c", CX_OK},           {"link/b", CX_E_DENIED},     {"link/b/c", CX_E_DENIED},
        {"a/../../x", CX_E_DENIED}, {"a/b/c/d", CX_E_NOT_FOUND}, {"a/none", CX_E_NOT_FOUND}};
    enum { SKIPPED = 77 };
    cx_code codes[CX_COUNT_OF(cases)];
    cx_facts facts;
    WITH(f, "folder-older")
    CHECK_STATUS(cx_folder_make_folders(f.folder, "a/b", 0700, &f.err), &f.err);
    put(&f, "a/b/c", "inside");
    CHECK_STATUS(cx_folder_make_link(f.folder, "a", "link", &f.err), &f.err);
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        codes[i] = cx_folder_facts(f.folder, cases[i].path, &facts, &f.err).code;
        CHECK_INT(codes[i], cases[i].code);
    }
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (!forget_openat2())
            _exit(SKIPPED);
        for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
            if (cx_folder_facts(f.folder, cases[i].path, &facts, &f.err).code != codes[i])
                _exit((int)i + 1);
        }
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) != SKIPPED && WEXITSTATUS(status) != 0)
        cx_test_fail(__FILE__, __LINE__, "without openat2, '%s' is answered otherwise",
                     cases[WEXITSTATUS(status) - 1].path);
    end(&f);
}

CX_TEST(folder_tells_each_kind_and_follows_none)
{
    WITH(f, "folder-kinds")
    cx_facts facts;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    put(&f, "file", "12345");
    CHECK_STATUS(cx_folder_set_mode(f.folder, "file", 04755, &f.err), &f.err);
    CHECK_STATUS(cx_folder_make_hard_link(f.folder, "file", "second", &f.err), &f.err);
    CHECK_STATUS(cx_folder_make_fifo(f.folder, "fifo", &f.err), &f.err);
    CHECK_STATUS(cx_folder_make_link(f.folder, "nowhere", "link", &f.err), &f.err);
    CHECK_STATUS(cx_folder_facts(f.folder, "file", &facts, &f.err), &f.err);
    CHECK(facts.kind == CX_FILE_REGULAR && facts.mode == 04755 && facts.size_bytes == 5 &&
          facts.link_count == 2);
    CHECK_STATUS(cx_folder_facts(f.folder, "fifo", &facts, &f.err), &f.err);
    CHECK_INT(facts.kind, CX_FILE_SPECIAL);
    CHECK_STATUS(cx_folder_facts(f.folder, "link", &facts, &f.err), &f.err);
    CHECK_INT(facts.kind, CX_FILE_LINK);
    CHECK_STATUS(cx_folder_read_link(f.folder, "link", &text, &f.err), &f.err);
    CHECK_STR(cx_buf_str(&text), "nowhere");
    CHECK_INT(cx_folder_read_file(f.folder, "fifo", 10, &text, &f.err).code, CX_E_DENIED);
    CHECK_INT(cx_folder_read_file(f.folder, "file", 4, &text, &f.err).code, CX_E_LIMIT);
    CHECK_INT(cx_folder_set_mode(f.folder, "link", 0777, &f.err).code, CX_E_DENIED);
    CHECK_INT(cx_folder_facts(f.folder, "absent", &facts, &f.err).code, CX_E_NOT_FOUND);
    cx_buf_done(&text);
    end(&f);
}

typedef struct seen {
    unsigned count;
    char last[64];
    const char *skip;
} seen;

static cx_walk_step visit(void *arg, const cx_walk_entry *entry)
{
    seen *s = arg;
    s->count++;
    CHECK_INT(strlen(entry->path), entry->path_size);
    return s->skip != NULL && strcmp(entry->path, s->skip) == 0 ? CX_WALK_SKIP : CX_WALK_ON;
}

CX_TEST(folder_walk_sees_all_and_keeps_its_limits)
{
    WITH(f, "folder-walk")
    seen s = {0};
    CHECK_STATUS(cx_folder_make_folders(f.folder, "a/b/c", 0700, &f.err), &f.err);
    put(&f, "a/x", "1");
    put(&f, "a/b/y", "1");
    put(&f, ".hidden", "1");
    CHECK_STATUS(cx_folder_walk(f.folder, NULL, visit, &s, &f.err), &f.err);
    CHECK_INT(s.count, 6);
    s = (seen){.skip = "a/b"};
    CHECK_STATUS(cx_folder_walk(f.folder, NULL, visit, &s, &f.err), &f.err);
    CHECK_INT(s.count, 4);
    s = (seen){0};
    CHECK_INT(cx_folder_walk(f.folder, &(cx_walk_limits){5, 10, false}, visit, &s, &f.err).code,
              CX_E_LIMIT);
    CHECK_INT(cx_folder_walk(f.folder, &(cx_walk_limits){100, 2, false}, visit, &s, &f.err).code,
              CX_E_LIMIT);
    end(&f);
}

static cx_walk_step remove_others(void *arg, const cx_walk_entry *entry)
{
    static const char *const names[] = {"a", "b", "c"};
    size_t *count = arg;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(entry->name, names[i]) != 0)
            (void)unlinkat(entry->parent, names[i], 0);
    ++*count;
    return CX_WALK_ON;
}

/* Names are listed before they are looked at. */
CX_TEST(folder_walk_reports_or_leaves_out_what_vanishes)
{
    WITH(f, "folder-vanish")
    size_t count = 0;
    put(&f, "a", "1");
    put(&f, "b", "1");
    put(&f, "c", "1");
    CHECK_STATUS(
        cx_folder_walk(f.folder, &(cx_walk_limits){100, 10, true}, remove_others, &count, &f.err),
        &f.err);
    CHECK_INT(count, 1);
    put(&f, "a", "1");
    put(&f, "b", "1");
    put(&f, "c", "1");
    CHECK_INT(cx_folder_walk(f.folder, NULL, remove_others, &count, &f.err).code, CX_E_NOT_FOUND);
    end(&f);
}

/* Deeper than any path can name, and closed on the way. */
CX_TEST(folder_removal_at_any_depth)
{
    WITH(f, "folder-deep")
    char name[201];
    memset(name, 'd', 200);
    name[200] = '\0';
    cx_file at = f.folder, below;
    for (int i = 0; i < 60; i++) { /* 12,000 bytes of path */
        CHECK_STATUS(cx_folder_make_folders(at, name, 0700, &f.err), &f.err);
        REQUIRE(
            !cx_failed(cx_folder_open_in(at, name, CX_IO_READ | CX_IO_DIRECTORY, &below, &f.err)));
        if (at != f.folder)
            cx_folder_close(at);
        at = below;
    }
    cx_folder_close(at);
    seen s = {0};
    CHECK_INT(cx_folder_walk(f.folder, NULL, visit, &s, &f.err).code, CX_E_LIMIT);
    CHECK_STATUS(cx_folder_set_mode(f.folder, name, 0, &f.err), &f.err);
    CHECK_STATUS(cx_folder_remove_tree(f.folder, name, &f.err), &f.err);
    s = (seen){0};
    CHECK_STATUS(cx_folder_walk(f.folder, NULL, visit, &s, &f.err), &f.err);
    CHECK_INT(s.count, 0);
    CHECK_STATUS(cx_folder_remove_tree(f.folder, name, &f.err), &f.err); /* again is fine */
    end(&f);
}

CX_TEST(folder_removal_takes_links_not_what_they_name)
{
    WITH(f, "folder-links")
    cx_facts facts;
    CHECK_STATUS(cx_folder_make_folders(f.folder, "keep", 0700, &f.err), &f.err);
    put(&f, "keep/file", "1");
    CHECK_STATUS(cx_folder_make_folders(f.folder, "go", 0700, &f.err), &f.err);
    CHECK_STATUS(cx_folder_make_link(f.folder, "../keep", "go/link", &f.err), &f.err);
    CHECK_STATUS(cx_folder_remove_tree(f.folder, "go", &f.err), &f.err);
    CHECK_STATUS(cx_folder_facts(f.folder, "keep/file", &facts, &f.err), &f.err);
    CHECK_INT(cx_folder_facts(f.folder, "go", &facts, &f.err).code, CX_E_NOT_FOUND);
    end(&f);
}

CX_TEST(flock_is_held_by_one)
{
    WITH(f, "folder-flock")
    char path[FOLDER_PATH_SIZE + 16];
    cx_file first, second;
    (void)snprintf(path, sizeof path, "%s/lock", f.path);
    CHECK_STATUS(cx_flock_acquire(path, 0, &first, &f.err), &f.err);
    CHECK_INT(cx_flock_acquire(path, 0, &second, &f.err).code, CX_E_BUSY);
    CHECK_INT(cx_flock_acquire(path, 20, &second, &f.err).code, CX_E_BUSY);
    cx_flock_release(first);
    CHECK_STATUS(cx_flock_acquire(path, 0, &second, &f.err), &f.err);
    cx_flock_release(second);
    end(&f);
}

CX_TEST(unnamed_file_is_in_no_folder)
{
    WITH(f, "folder-unnamed")
    const cx_io *io = cx_io_system();
    char old[FOLDER_PATH_SIZE];
    const char *before = getenv("TMPDIR");
    (void)snprintf(old, sizeof old, "%s", before != NULL ? before : "");
    cx_file file = CX_FILE_NONE;
    char back[3] = {0};
    cx_buf names;
    cx_buf_init(&names, cx_alloc_default());
    CHECK(setenv("TMPDIR", f.path, 1) == 0);
    CHECK_STATUS(cx_path_open_unnamed(&file, &f.err), &f.err);
    folder_contents(f.path, &names);
    CHECK_INT(names.size, 0);
    CHECK(io->pwrite(io, file, "abc", 3, 0) == 3 && io->pread(io, file, back, 3, 0) == 3);
    CHECK(memcmp(back, "abc", 3) == 0);
    CHECK(io->close(io, file) == 0);
    CHECK(setenv("TMPDIR", "/nonexistent", 1) == 0);
    CHECK_INT(cx_path_open_unnamed(&file, &f.err).code, CX_E_NOT_FOUND);
    CHECK((before != NULL ? setenv("TMPDIR", old, 1) : unsetenv("TMPDIR")) == 0);
    cx_buf_done(&names);
    end(&f);
}
