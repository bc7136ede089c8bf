/*
 * sandbox_cgroup.c - a control group for each start, where one is delegated to this user (run.md
 * §16): limits memory and number of processes of a whole sandbox.
 *
 * Version 2: a sibling of this process's group, or a child, if its controllers are enabled there.
 * Version 1: a child of this process's group in each of the two hierarchies.  This code enables no
 * controllers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "os/api.h"
#include "sandbox/sandbox_internal.h"

enum { FILE_MAX_BYTES = 1 << 20 };

typedef struct group_place {
    const char *folder; /* where groups are created */
    bool memory, processes;
    bool v2;
} group_place;

struct cx_sandbox_cgroups {
    group_place places[2];
    size_t count;
};

/* --- finding ---------------------------------------------------------------------------------- */

static cx_str next_line(cx_str *text)
{
    const char *end = text->size == 0 ? NULL : memchr(text->data, '\n', text->size);
    cx_str line = {text->data, end == NULL ? text->size : (size_t)(end - text->data)};
    size_t used = end == NULL ? line.size : line.size + 1;
    *text = (cx_str){text->data + used, text->size - used};
    return line;
}

static cx_str next_field(cx_str *line, char separator)
{
    const char *end = line->size == 0 ? NULL : memchr(line->data, separator, line->size);
    cx_str field = {line->data, end == NULL ? line->size : (size_t)(end - line->data)};
    size_t used = end == NULL ? line->size : field.size + 1;
    *line = (cx_str){line->data + used, line->size - used};
    return field;
}

static bool list_has(cx_str list, const char *item, char separator)
{
    while (list.size != 0)
        if (cx_str_is(next_field(&list, separator), item))
            return true;
    return false;
}

static cx_status read_proc_text(const char *path, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_io_read_file(cx_io_system(), path, FILE_MAX_BYTES, &text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        while (out->size != 0 && out->data[out->size - 1] == '\n')
            out->size--;
    }
    cx_buf_done(&text);
    return status;
}

/* Where the hierarchy of `controller` ("" = version 2) is mounted; data NULL = nowhere. */
static cx_str find_mount(cx_str mounts, const char *controller)
{
    while (mounts.size != 0) {
        cx_str line = next_line(&mounts), point = {0};
        for (int i = 0; i < 5; i++)
            point = next_field(&line, ' ');
        while (line.size != 0 && !cx_str_is(next_field(&line, ' '), "-"))
            continue;
        cx_str type = next_field(&line, ' ');
        (void)next_field(&line, ' ');
        if (controller[0] == 0 ? cx_str_is(type, "cgroup2")
                               : cx_str_is(type, "cgroup") && list_has(line, controller, ','))
            return point;
    }
    return (cx_str){0};
}

/* The group of this process; data NULL = none in that hierarchy. */
static cx_str find_own_group(cx_str groups, const char *controller)
{
    while (groups.size != 0) {
        cx_str line = next_line(&groups);
        cx_str number = next_field(&line, ':');
        cx_str controllers = next_field(&line, ':');
        if (controller[0] == 0 ? cx_str_is(number, "0") && controllers.size == 0
                               : list_has(controllers, controller, ','))
            return line;
    }
    return (cx_str){0};
}

/* Tries to create a group there, and removes it. */
static bool can_make_group(const char *folder, cx_arena *arena)
{
    const cx_io *io = cx_io_system();
    cx_str path = cx_arena_printf(arena, "%s/cortex-try-%" PRIu64 "-%" PRIx64, folder,
                                  io->process_id(io), cx_io_seed(io));
    cx_file parent = CX_FILE_NONE;
    if (path.data == NULL || io->mkdir(io, path.data) != 0)
        return false;
    bool removed = !cx_failed(cx_folder_open(folder, &parent, NULL)) &&
                   !cx_failed(cx_folder_remove(parent, path.data + strlen(folder) + 1, NULL));
    cx_folder_close(parent);
    return removed;
}

static void find_v2_place(cx_str mounts, cx_str groups, cx_arena *arena, cx_sandbox_cgroups *all)
{
    cx_str mount = find_mount(mounts, ""), own = find_own_group(groups, "");
    if (mount.data == NULL || own.data == NULL)
        return;
    /* A sibling first: a group that contains processes cannot pass controllers to children. */
    for (int sibling = 1; sibling >= 0 && all->count == 0; sibling--) {
        cx_str at = own;
        while (sibling && at.size != 0 && at.data[at.size - 1] != '/')
            at.size--;
        while (at.size != 0 && at.data[at.size - 1] == '/')
            at.size--;
        cx_str folder =
            cx_arena_printf(arena, "%.*s%.*s", (int)mount.size, mount.data, (int)at.size, at.data);
        cx_str control = cx_arena_printf(arena, "%s/cgroup.subtree_control",
                                         folder.data == NULL ? "" : folder.data);
        cx_str given;
        if (folder.data == NULL || control.data == NULL ||
            cx_failed(read_proc_text(control.data, arena, &given, NULL)))
            continue;
        group_place at_place = {folder.data, list_has(given, "memory", ' '),
                                list_has(given, "pids", ' '), true};
        if ((at_place.memory || at_place.processes) && can_make_group(folder.data, arena))
            all->places[all->count++] = at_place;
    }
}

static void find_v1_place(cx_str mounts, cx_str groups, const char *controller, cx_arena *arena,
                          cx_sandbox_cgroups *all)
{
    cx_str mount = find_mount(mounts, controller), own = find_own_group(groups, controller);
    if (mount.data == NULL || own.data == NULL)
        return;
    if (cx_str_is(own, "/"))
        own.size = 0;
    cx_str folder =
        cx_arena_printf(arena, "%.*s%.*s", (int)mount.size, mount.data, (int)own.size, own.data);
    bool memory = strcmp(controller, "memory") == 0;
    if (folder.data != NULL && can_make_group(folder.data, arena))
        all->places[all->count++] = (group_place){folder.data, memory, !memory, false};
}

/* --- stale groups ----------------------------------------------------------------------------- */

/* No start takes that long after creating its group. */
#define STALE_NS (INT64_C(3600) * 1000000000)

static bool remove_stale_group(void *arg, const char *name)
{
    cx_file folder = *(const cx_file *)arg;
    cx_facts facts;
    if (strncmp(name, "cortex-", 7) == 0 &&
        !cx_failed(cx_folder_facts(folder, name, &facts, NULL)) &&
        facts.modified_ns < cx_folder_clock_ns() - STALE_NS)
        (void)cx_folder_remove(folder, name, NULL).code; /* fails for a group with processes */
    return true;
}

/* Removes groups of processes that were killed. */
static void remove_stale_groups(const char *path)
{
    cx_file folder;
    if (cx_failed(cx_folder_open(path, &folder, NULL)))
        return;
    (void)cx_folder_list(folder, "", remove_stale_group, &folder, NULL).code;
    cx_folder_close(folder);
}

cx_status cx_sandbox_cgroups_open(cx_arena *arena, cx_sandbox_cgroups **out, const char **why,
                                  cx_err *err)
{
    cx_sandbox_cgroups *all = CX_ARENA_NEW(arena, cx_sandbox_cgroups);
    if (all == NULL)
        return cx_fail_nomem(err);
    *all = (cx_sandbox_cgroups){0};
    *out = NULL;
    *why = NULL;
    cx_str mounts, groups;
    if (cx_failed(read_proc_text("/proc/self/mountinfo", arena, &mounts, NULL)) ||
        cx_failed(read_proc_text("/proc/self/cgroup", arena, &groups, NULL))) {
        *why = "the control groups of this process cannot be read";
        return CX_SUCCESS;
    }
    find_v2_place(mounts, groups, arena, all);
    if (all->count == 0) {
        find_v1_place(mounts, groups, "memory", arena, all);
        find_v1_place(mounts, groups, "pids", arena, all);
    }
    if (all->count == 0)
        *why = "no control group with memory or pids is delegated to this user";
    else
        *out = all;
    for (size_t i = 0; i < all->count; i++)
        remove_stale_groups(all->places[i].folder);
    return CX_SUCCESS;
}

/* --- using ------------------------------------------------------------------------------------ */

static cx_status write_limit(const char *folder, const char *name, uint64_t value, cx_err *err)
{
    const cx_io *io = cx_io_system();
    char path[1200], text[32];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    int size = snprintf(text, sizeof text, "%" PRIu64, value);
    cx_file file;
    int code = io->open(io, path, CX_IO_WRITE, &file);
    if (code != 0)
        return cx_fail_os(err, -code, "cannot open %s", path);
    int64_t wrote = io->write(io, file, text, (size_t)size);
    (void)io->close(io, file);
    return wrote < 0 ? cx_fail_os(err, (int)-wrote, "cannot write %s", path) : CX_SUCCESS;
}

/* A killed process leaves its groups, and its process id may be reused: so the name has a random
 * number, too. */
static cx_status make_group_in(const group_place *at, const cx_sandbox_limits *limits,
                               uint64_t number, cx_sandbox_group *group, cx_err *err)
{
    const cx_io *io = cx_io_system();
    char path[1100], procs[1200];
    (void)snprintf(path, sizeof path, "%s/cortex-%" PRIu64 "-%016" PRIx64, at->folder,
                   io->process_id(io), number);
    int code = io->mkdir(io, path);
    if (code != 0)
        return cx_fail_os(err, -code, "cannot make %s", path);
    size_t index = group->count++;
    group->join[index] = CX_FILE_NONE;
    group->paths[index] = cx_alloc_new(cx_alloc_default(), strlen(path) + 1);
    if (group->paths[index] == NULL)
        return cx_fail_nomem(err);
    memcpy(group->paths[index], path, strlen(path) + 1);
    if (at->memory && limits->memory_bytes != UINT64_MAX)
        CX_TRY(write_limit(path, at->v2 ? "memory.max" : "memory.limit_in_bytes",
                           limits->memory_bytes, err));
    if (at->processes && limits->processes != UINT64_MAX)
        CX_TRY(write_limit(path, "pids.max", limits->processes, err));
    (void)snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
    code = io->open(io, procs, CX_IO_WRITE, &group->join[index]);
    return code != 0 ? cx_fail_os(err, -code, "cannot open %s", procs) : CX_SUCCESS;
}

cx_status cx_sandbox_group_make(const cx_sandbox_cgroups *groups, const cx_sandbox_limits *limits,
                                cx_sandbox_group *out, cx_err *err)
{
    CX_ASSERT(groups->count <= CX_COUNT_OF(groups->places));
    uint64_t number = cx_io_seed(cx_io_system());
    *out = (cx_sandbox_group){.join = {CX_FILE_NONE, CX_FILE_NONE}};
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; groups != NULL && i < groups->count && !cx_failed(status); i++)
        status = make_group_in(&groups->places[i], limits, number, out, err);
    if (cx_failed(status))
        cx_sandbox_group_end(out);
    return status;
}

/* Retries: killed processes leave the group with a delay. */
static void remove_group(const char *path)
{
    const char *name = strrchr(path, '/');
    cx_file parent = CX_FILE_NONE;
    char folder[1100];
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    if (cx_failed(cx_folder_open(folder, &parent, NULL)))
        return;
    for (int i = 0; i < 400; i++) {
        if (!cx_failed(cx_folder_remove(parent, name + 1, NULL)))
            break;
        cx_confine_pause(5);
    }
    cx_folder_close(parent);
}

void cx_sandbox_group_end(cx_sandbox_group *group)
{
    const cx_io *io = cx_io_system();
    for (size_t i = 0; i < group->count; i++) {
        if (group->join[i] != CX_FILE_NONE)
            (void)io->close(io, group->join[i]);
        if (group->paths[i] == NULL)
            continue;
        remove_group(group->paths[i]);
        cx_alloc_free(cx_alloc_default(), group->paths[i], strlen(group->paths[i]) + 1);
    }
    *group = (cx_sandbox_group){.join = {CX_FILE_NONE, CX_FILE_NONE}};
}
