/*
 * test_folder_walk.c - walking by several threads: everything once, whatever shape the tree has,
 * limits that hold for all of them together, and ends that leave no thread waiting.
 */
#include "os/folder.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "tests/support/folder.h"
#include "tests/test.h"

#define NUMBERS_MAX 4000

/* Files are named by numbers: each thread marks what it saw in marks of its own. */
typedef struct sight {
    unsigned char marks[NUMBERS_MAX];
    unsigned folders, files, links;
    unsigned wrong; /* entries that say something else than is there */
    const char *skip;
    unsigned stop_after; /* entries; 0 = never */
} sight;

static cx_walk_step look(void *arg, const cx_walk_entry *entry)
{
    sight *s = arg;
    cx_facts again;
    /* The parent is open, and holds what is named. */
    s->wrong += strlen(entry->path) != entry->path_size ||
                cx_failed(cx_folder_facts(entry->parent, entry->name, &again, NULL)) ||
                again.inode != entry->facts.inode;
    s->folders += entry->facts.kind == CX_FILE_FOLDER;
    s->links += entry->facts.kind == CX_FILE_LINK;
    if (entry->facts.kind == CX_FILE_REGULAR) {
        unsigned long number = strtoul(entry->name, NULL, 10);
        s->files++;
        if (number < NUMBERS_MAX)
            s->marks[number]++;
    }
    if (s->skip != NULL && strcmp(entry->path, s->skip) == 0)
        return CX_WALK_SKIP;
    return s->stop_after != 0 && s->folders + s->files >= s->stop_after ? CX_WALK_STOP : CX_WALK_ON;
}

typedef struct sights {
    sight each[CX_WALK_THREADS_MAX];
    void *args[CX_WALK_THREADS_MAX];
} sights;

static void sights_clear(sights *s)
{
    memset(s->each, 0, sizeof s->each);
    for (unsigned i = 0; i < CX_WALK_THREADS_MAX; i++)
        s->args[i] = &s->each[i];
}

/* All that was seen by anybody, in the first. */
static const sight *sights_sum(sights *s)
{
    for (unsigned i = 1; i < CX_WALK_THREADS_MAX; i++) {
        for (unsigned n = 0; n < NUMBERS_MAX; n++)
            s->each[0].marks[n] = (unsigned char)(s->each[0].marks[n] + s->each[i].marks[n]);
        s->each[0].folders += s->each[i].folders;
        s->each[0].files += s->each[i].files;
        s->each[0].links += s->each[i].links;
        s->each[0].wrong += s->each[i].wrong;
    }
    CHECK_INT(s->each[0].wrong, 0);
    return &s->each[0];
}

typedef struct fixture {
    char path[FOLDER_PATH_SIZE];
    cx_file folder;
    cx_err err;
} fixture;

static bool begin(fixture *f, const char *name)
{
    folder_fresh(f->path, name);
    return !cx_failed(cx_path_make_folders(f->path, &f->err)) &&
           !cx_failed(cx_folder_open(f->path, &f->folder, &f->err));
}

static void end(fixture *f)
{
    cx_folder_close(f->folder);
    CHECK_STATUS(cx_path_remove_tree(f->path, &f->err), &f->err);
}

static void put(const fixture *f, const char *folder, unsigned number)
{
    char path[256];
    cx_file file;
    (void)snprintf(path, sizeof path, "%s/%u", folder, number);
    REQUIRE(
        !cx_failed(cx_folder_open_in(f->folder, path, CX_IO_WRITE | CX_IO_CREATE, &file, NULL)));
    cx_folder_close(file);
}

static void make(const fixture *f, const char *folder)
{
    REQUIRE(!cx_failed(cx_folder_make_folders(f->folder, folder, 0700, NULL)));
}

/* Wide, deep and empty parts; `*out_folders` of them.  The files are numbered from 0. */
static unsigned fill(const fixture *f, unsigned *out_folders)
{
    char name[256];
    unsigned files = 0, folders = 0;
    for (unsigned i = 0; i < 40; i++) { /* forty folders of twenty */
        (void)snprintf(name, sizeof name, "w%u", i);
        make(f, name);
        folders++;
        for (unsigned k = 0; k < 20; k++)
            put(f, name, files++);
    }
    size_t size = 0;
    for (unsigned depth = 0; depth < 60; depth++) { /* a chain with a file and a leaf a level */
        size += (size_t)snprintf(name + size, sizeof name - size, "%sd", depth == 0 ? "" : "/");
        make(f, name);
        put(f, name, files++);
        folders++;
    }
    for (unsigned i = 0; i < 30; i++) {
        (void)snprintf(name, sizeof name, "empty/e%u", i);
        make(f, name);
    }
    *out_folders = folders + 31;
    return files;
}

CX_TEST(folder_walk_many_sees_each_once)
{
    static sights s;
    fixture f = {.folder = CX_FILE_NONE};
    unsigned folders;
    REQUIRE(begin(&f, "walk-many"));
    unsigned files = fill(&f, &folders);
    for (unsigned threads = 1; threads <= CX_WALK_THREADS_MAX; threads++)
        for (unsigned round = 0; round < 20; round++) {
            sights_clear(&s);
            CHECK_STATUS(cx_folder_walk_many(f.folder, NULL, threads, look, s.args, &f.err),
                         &f.err);
            const sight *all = sights_sum(&s);
            CHECK_INT(all->files, files);
            CHECK_INT(all->folders, folders);
            for (unsigned n = 0; n < files; n++)
                CHECK_INT(all->marks[n], 1);
        }
    end(&f);
}

/* A limit is that of all threads together, and what one finds is told, whichever thread finds
 * it. */
CX_TEST(folder_walk_many_keeps_its_limits)
{
    static sights s;
    fixture f = {.folder = CX_FILE_NONE};
    unsigned folders;
    REQUIRE(begin(&f, "walk-limits"));
    uint64_t entries = fill(&f, &folders);
    entries += folders;
    for (unsigned threads = 1; threads <= CX_WALK_THREADS_MAX; threads++) {
        sights_clear(&s);
        CHECK_STATUS(cx_folder_walk_many(f.folder, &(cx_walk_limits){entries, 60, false}, threads,
                                         look, s.args, &f.err),
                     &f.err);
        CHECK_INT(cx_folder_walk_many(f.folder, &(cx_walk_limits){entries - 1, 60, false}, threads,
                                      look, s.args, &f.err)
                      .code,
                  CX_E_LIMIT);
        CHECK_INT(cx_folder_walk_many(f.folder, &(cx_walk_limits){entries, 59, false}, threads,
                                      look, s.args, &f.err)
                      .code,
                  CX_E_LIMIT);
        CHECK_INT(cx_folder_walk_many(f.folder, &(cx_walk_limits){entries, 59, false}, threads,
                                      look, s.args, NULL)
                      .code,
                  CX_E_LIMIT);
    }
    end(&f);
}

CX_TEST(folder_walk_many_skips_and_stops)
{
    static sights s;
    fixture f = {.folder = CX_FILE_NONE};
    unsigned folders;
    REQUIRE(begin(&f, "walk-stop"));
    unsigned files = fill(&f, &folders);
    for (unsigned threads = 1; threads <= CX_WALK_THREADS_MAX; threads++) {
        sights_clear(&s);
        for (unsigned i = 0; i < CX_WALK_THREADS_MAX; i++)
            s.each[i].skip = "d/d";
        CHECK_STATUS(cx_folder_walk_many(f.folder, NULL, threads, look, s.args, &f.err), &f.err);
        const sight *all = sights_sum(&s);
        CHECK_INT(all->files, files - 59);
        CHECK_INT(all->folders, folders - 58);
        for (unsigned after = 1; after < 60; after += 7) {
            sights_clear(&s);
            for (unsigned i = 0; i < CX_WALK_THREADS_MAX; i++)
                s.each[i].stop_after = after;
            CHECK_STATUS(cx_folder_walk_many(f.folder, NULL, threads, look, s.args, &f.err),
                         &f.err);
            all = sights_sum(&s);
            CHECK(all->files + all->folders <= threads * (after + 1));
        }
    }
    end(&f);
}

/* A link to a folder is told and not gone into, also where the folder would be on offer. */
CX_TEST(folder_walk_many_follows_no_link)
{
    static sights s;
    fixture f = {.folder = CX_FILE_NONE};
    REQUIRE(begin(&f, "walk-links"));
    char name[64];
    for (unsigned i = 0; i < 30; i++) {
        (void)snprintf(name, sizeof name, "a%u", i);
        make(&f, name);
        put(&f, name, i);
        (void)snprintf(name, sizeof name, "a%u/link", i);
        REQUIRE(!cx_failed(cx_folder_make_link(f.folder, i % 2 == 0 ? ".." : "../a0", name, NULL)));
    }
    for (unsigned round = 0; round < 20; round++) {
        sights_clear(&s);
        CHECK_STATUS(cx_folder_walk_many(f.folder, NULL, CX_WALK_THREADS_MAX, look, s.args, &f.err),
                     &f.err);
        const sight *all = sights_sum(&s);
        CHECK_INT(all->files, 30);
        CHECK_INT(all->folders, 30);
        CHECK_INT(all->links, 30);
    }
    end(&f);
}

/* A folder that became a link after it was met: a walk into it fails, and nothing is seen
 * in its place. */
typedef struct swap {
    cx_file folder;
    atomic_bool done;
    bool swapped;
    atomic_uint outside;
} swap;

static cx_walk_step swap_for_link(void *arg, const cx_walk_entry *entry)
{
    swap *w = arg;
    if (strcmp(entry->name, "secret") == 0 && strncmp(entry->path, "kept/", 5) != 0)
        atomic_fetch_add(&w->outside, 1);
    if (strcmp(entry->path, "in/goal") == 0 && !atomic_exchange(&w->done, true)) {
        w->swapped = !cx_failed(cx_folder_rename(w->folder, "in/goal", "moved", NULL)) &&
                     !cx_failed(cx_folder_make_link(w->folder, "../kept", "in/goal", NULL));
    }
    return CX_WALK_ON;
}

CX_TEST(folder_walk_many_refuses_a_swapped_folder)
{
    for (unsigned threads = 1; threads <= CX_WALK_THREADS_MAX; threads++) {
        fixture f = {.folder = CX_FILE_NONE};
        REQUIRE(begin(&f, "walk-swap"));
        make(&f, "in/goal");
        make(&f, "kept");
        cx_file file;
        REQUIRE(!cx_failed(
            cx_folder_open_in(f.folder, "kept/secret", CX_IO_WRITE | CX_IO_CREATE, &file, NULL)));
        cx_folder_close(file);
        swap w = {.folder = f.folder};
        void *args[CX_WALK_THREADS_MAX];
        for (unsigned i = 0; i < CX_WALK_THREADS_MAX; i++)
            args[i] = &w;
        CHECK(cx_failed(cx_folder_walk_many(f.folder, NULL, threads, swap_for_link, args, &f.err)));
        CHECK(w.swapped);
        CHECK_INT(atomic_load(&w.outside), 0);
        end(&f);
    }
}
