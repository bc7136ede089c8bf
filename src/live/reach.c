/*
 * reach.c - what a pattern becomes in the folders as they are now, and what is read below a folder:
 * links lead elsewhere, and names are kept from being read at any depth (docs/formats/live.md
 * §4.2).
 */
#include <string.h>

#include "live/decide_parts.h"
#include "os/api.h"

#define ENTRIES_MAX 20000u

/* --- patterns --------------------------------------------------------------------------------- */

#define PATTERN_DEPTH_MAX 32

typedef struct expansion {
    cx_deciding *d;
    unsigned left; /* entries to look at */
    bool denied;   /* one may not be read, or not everything was looked at */
} expansion;

typedef struct expansion_step {
    expansion *e;
    cx_str folder, part, rest; /* rest: what follows the component, or nothing */
    unsigned depth;
} expansion_step;

static void expand(expansion *e, cx_str folder, cx_str pattern, unsigned depth);

/* One name that a component became. */
static void expand_name(const expansion_step *step, cx_str name)
{
    expansion *e = step->e;
    cx_str path = cx_arena_printf(e->d->arena, "%.*s/%.*s",
                                  step->folder.size == 1 ? 0 : (int)step->folder.size,
                                  step->folder.data, (int)name.size, name.data);
    cx_str real = path.data == NULL ? path : cx_deciding_resolve(e->d, path);
    if (real.data != NULL && step->rest.size != 0)
        expand(e, real, step->rest, step->depth + 1);
    else if (real.data != NULL && !cx_deciding_may_read(e->d, real))
        e->denied = true;
    if (real.data != NULL && cx_str_is(step->part, "**"))
        expand(e, real,
               step->rest.size == 0
                   ? step->part
                   : cx_str_from(step->part.data, step->part.size + 1 + step->rest.size),
               step->depth + 1);
}

static bool try_name(void *arg, const char *name)
{
    const expansion_step *step = arg;
    cx_str text = cx_str_z(name);
    if (step->e->left == 0)
        step->e->denied = true;
    else
        step->e->left--;
    if (!step->e->denied && cx_live_name_matches(step->part, text))
        expand_name(step, text);
    return !step->e->denied;
}

/* `folder` is real and absolute; `pattern` is below it. */
static void expand(expansion *e, cx_str folder, cx_str pattern, unsigned depth)
{
    cx_file open;
    cx_err ignored;
    while (pattern.size != 0 && pattern.data[0] == '/')
        pattern = cx_str_from(pattern.data + 1, pattern.size - 1);
    const char *slash = pattern.size == 0 ? NULL : memchr(pattern.data, '/', pattern.size);
    size_t size = slash == NULL ? pattern.size : (size_t)(slash - pattern.data);
    expansion_step step = {
        .e = e, .folder = folder, .part = cx_str_from(pattern.data, size), .depth = depth};
    if (size < pattern.size)
        step.rest = cx_str_from(pattern.data + size + 1, pattern.size - size - 1);
    if (pattern.size == 0 || e->denied)
        return;
    if (depth > PATTERN_DEPTH_MAX) {
        e->denied = true;
        return;
    }
    if (cx_str_is(step.part, "**") && step.rest.size != 0)
        expand(e, folder, step.rest, depth + 1);
    cx_str name = cx_arena_copy_str(e->d->arena, folder);
    if (name.data == NULL || cx_failed(cx_folder_open(name.data, &open, &ignored)))
        return; /* a shell cannot list it either */
    if (cx_failed(cx_folder_list(open, ".", try_name, &step, &ignored)))
        e->denied = true;
    cx_folder_close(open);
}

bool cx_live_pattern_may_be_read(cx_deciding *d, cx_str base, cx_str pattern)
{
    expansion e = {.d = d, .left = ENTRIES_MAX};
    expand(&e, base, pattern, 0);
    return !e.denied;
}

/* --- folders ---------------------------------------------------------------------------------- */

typedef struct below_search {
    cx_deciding *d;
    cx_str folder; /* real */
    bool follows;
    bool denied;
} below_search;

static cx_walk_step look_at_entry(void *arg, const cx_walk_entry *entry)
{
    below_search *s = arg;
    bool link = entry->facts.kind == CX_FILE_LINK;
    if (link && !s->follows)
        return CX_WALK_ON;
    if (!link && !cx_live_is_denied_name(s->d, cx_str_z(entry->name)))
        return CX_WALK_ON;
    cx_str path =
        cx_arena_printf(s->d->arena, "%.*s/%s", (int)s->folder.size, s->folder.data, entry->path);
    cx_str real = path.data == NULL ? path : cx_deciding_resolve(s->d, path);
    s->denied = real.data != NULL && (!cx_deciding_may_read(s->d, real) ||
                                      (link && cx_deciding_holds_secrets(s->d, real)));
    return s->denied ? CX_WALK_STOP : CX_WALK_ON;
}

cx_live_below cx_live_look_below(cx_deciding *d, cx_str folder, bool follows)
{
    const cx_walk_limits limits = {.entries = ENTRIES_MAX, .depth = 128, .may_vanish = true};
    below_search s = {.d = d, .folder = cx_deciding_resolve(d, folder), .follows = follows};
    cx_err ignored;
    cx_file open;
    if (cx_deciding_holds_secrets(d, folder))
        return CX_LIVE_BELOW_DENIED;
    if (s.folder.data == NULL || cx_failed(cx_folder_open(s.folder.data, &open, &ignored)))
        return CX_LIVE_BELOW_FINE;
    cx_status status = cx_folder_walk(open, &limits, look_at_entry, &s, &ignored);
    cx_folder_close(open);
    if (s.denied)
        return CX_LIVE_BELOW_DENIED;
    return cx_failed(status) ? CX_LIVE_BELOW_UNKNOWN : CX_LIVE_BELOW_FINE;
}
