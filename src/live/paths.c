/*
 * paths.c - which files a call may read and write.
 */
#include <stdarg.h>
#include <string.h>

#include "live/decide_parts.h"
#include "os/api.h"
#include "rules/api.h"

#define PATH_MAX_BYTES CX_RUN_PATH_BYTES_MAX

/* --- paths ------------------------------------------------------------------------------------ */

static size_t component_end(cx_str path, size_t at)
{
    while (at < path.size && path.data[at] != '/')
        at++;
    return at;
}

/* Appends the components of `path` up to its first ".."; where that stands, or the end. */
static size_t add_components(char *out, size_t *size, cx_str path)
{
    for (size_t at = 0; at < path.size;) {
        size_t end = component_end(path, at);
        cx_str component = cx_str_from(path.data + at, end - at);
        if (cx_str_is(component, ".."))
            return at;
        if (component.size != 0 && !cx_str_is(component, ".")) {
            out[(*size)++] = '/';
            memcpy(out + *size, component.data, component.size);
            *size += component.size;
        }
        at = end + 1;
    }
    return path.size;
}

/* What these lead to differs between the program that is started and this one.  That an
 * environment is not read holds for each. */
static bool is_of_the_process(cx_str path)
{
    static const char *const places[] = {"/proc/self", "/proc/thread-self", "/dev/fd",
                                         "/dev/stdin"};
    if (cx_str_ends(path, CX_STR("/environ")) || cx_str_ends(path, CX_STR("/mem")))
        return false;
    for (size_t i = 0; i < CX_COUNT_OF(places); i++)
        if (cx_live_path_below(path, cx_str_z(places[i])))
            return true;
    return false;
}

/* The longest part that exists, with its links resolved, and the rest as it is.  Data NULL after a
 * link that leads nowhere: what it will be is not known. */
static cx_str real_path(cx_deciding *d, cx_str plain, bool *linked)
{
    const cx_str none = {NULL, 0};
    if (is_of_the_process(plain))
        return none;
    cx_buf real;
    cx_str result = plain;
    cx_buf_init(&real, cx_alloc_default());
    for (size_t size = plain.size; size > 1;) {
        cx_err ignored;
        cx_str head = cx_arena_printf(d->arena, "%.*s", (int)size, plain.data);
        cx_buf_clear(&real);
        if (head.data == NULL) {
            d->status = cx_fail_nomem(d->err);
            result = none;
            break;
        }
        if (!cx_failed(cx_path_real(head.data, &real, &ignored))) {
            cx_str tail = cx_str_from(plain.data + size, plain.size - size);
            cx_str base = cx_buf_str(&real);
            *linked = *linked || !cx_str_eq(base, head);
            if (base.size == 1)
                base.size = 0;
            result = cx_arena_printf(d->arena, "%.*s%.*s", (int)base.size, base.data,
                                     (int)tail.size, tail.data);
            if (result.size == 0)
                result = CX_STR("/");
            break;
        }
        cx_facts facts;
        if (!cx_failed(cx_path_facts(head.data, false, &facts, &ignored))) {
            result = none;
            break;
        }
        while (size > 1 && plain.data[--size] != '/') {
        }
    }
    cx_buf_done(&real);
    return result;
}

/* As the kernel walks it: ".." is the parent of what a link before it leads to. */
static cx_str walk_path(cx_deciding *d, cx_str base, cx_str path, bool *linked)
{
    const cx_str none = {NULL, 0};
    bool absolute = path.size != 0 && path.data[0] == '/';
    cx_str rest = cx_arena_printf(d->arena, "%.*s/%.*s", absolute ? 0 : (int)base.size, base.data,
                                  (int)path.size, path.data);
    cx_str at = CX_STR("/");
    if (rest.data == NULL) {
        d->status = cx_fail_nomem(d->err);
        return none;
    }
    for (;;) {
        char *plain = cx_arena_push(d->arena, at.size + rest.size + 2, 1);
        size_t size = at.size == 1 ? 0 : at.size;
        if (plain == NULL) {
            d->status = cx_fail_nomem(d->err);
            return none;
        }
        memcpy(plain, at.data, size);
        size_t up = add_components(plain, &size, rest);
        if (size == 0)
            plain[size++] = '/';
        at = real_path(d, cx_str_from(plain, size), linked);
        if (at.data == NULL || up == rest.size)
            return at;
        size_t parent = at.size;
        while (parent > 1 && at.data[--parent] != '/') {
        }
        at.size = parent == 0 ? 1 : parent;
        rest = cx_str_from(rest.data + up + 2, rest.size - up - 2);
    }
}

cx_str cx_deciding_resolve_links(cx_deciding *d, cx_str path, bool *linked)
{
    const cx_str none = {NULL, 0};
    if (path.size == 0 || path.size > PATH_MAX_BYTES || memchr(path.data, 0, path.size) != NULL)
        return none;
    if (cx_str_starts(path, CX_STR("file://")))
        path = cx_str_from(path.data + 7, path.size - 7);
    if (path.size != 0 && path.data[0] == '~') {
        if (d->policy->user_home.size == 0 || (path.size > 1 && path.data[1] != '/'))
            return none;
        path = cx_str_from(path.data + 1, path.size - 1);
        while (path.size != 0 && path.data[0] == '/') {
            path.data++;
            path.size--;
        }
        return walk_path(d, d->policy->user_home, path, linked);
    }
    if ((path.size == 0 || path.data[0] != '/') && d->cwd.size == 0)
        return none;
    return walk_path(d, d->cwd, path, linked);
}

cx_str cx_deciding_resolve(cx_deciding *d, cx_str path)
{
    bool linked = false;
    return cx_deciding_resolve_links(d, path, &linked);
}

cx_str cx_deciding_below_root(const cx_deciding *d, cx_str absolute)
{
    const cx_str root = d->policy->root;
    if (absolute.data == NULL || !cx_live_path_below(absolute, root))
        return (cx_str){NULL, 0};
    size_t skip = absolute.size > root.size ? root.size + (root.size > 1) : absolute.size;
    return cx_str_from(absolute.data + skip, absolute.size - skip);
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool denies_reading(const cx_deciding *d, cx_str path)
{
    const cx_live_policy *policy = d->policy;
    if (policy->data_directory.size != 0 && cx_live_path_below(path, policy->data_directory))
        return true;
    for (size_t i = 0; i < policy->read_deny.count; i++) {
        cx_str entry = policy->read_deny.items[i];
        if (entry.size > 2 && entry.data[0] == '~' && entry.data[1] == '/') {
            cx_str home = policy->user_home;
            cx_str rest = cx_str_from(entry.data + 2, entry.size - 2);
            if (home.size != 0 && cx_live_path_below(path, home) &&
                path.size > home.size + rest.size &&
                cx_live_path_below(
                    cx_str_from(path.data + home.size + 1, path.size - home.size - 1), rest))
                return true;
        } else if (entry.size != 0 && entry.data[0] == '/') {
            if (cx_live_path_below(path, entry))
                return true;
        } else if (entry.size != 0 && cx_live_path_has(path, entry)) {
            return true;
        }
    }
    return cx_str_starts(path, CX_STR("/proc/")) &&
           (cx_str_ends(path, CX_STR("/environ")) || cx_str_ends(path, CX_STR("/mem")));
}

bool cx_live_is_denied_name(const cx_deciding *d, cx_str name)
{
    const cx_str_list list = d->policy->read_deny;
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].size != 0 && list.items[i].data[0] != '/' &&
            list.items[i].data[0] != '~' && cx_live_path_has(list.items[i], name))
            return true;
    return false;
}

bool cx_deciding_may_read(cx_deciding *d, cx_str path)
{
    cx_str real = cx_deciding_resolve(d, path);
    return real.data != NULL && !denies_reading(d, real);
}

/* The n-th path that is kept from being read, as an absolute one; no data after the last. */
static bool denied_path(cx_deciding *d, size_t n, cx_str *out)
{
    const cx_live_policy *policy = d->policy;
    *out = (cx_str){NULL, 0};
    if (n > policy->read_deny.count)
        return false;
    if (n == policy->read_deny.count) {
        *out = policy->data_directory;
        return true;
    }
    cx_str entry = policy->read_deny.items[n];
    if (entry.size != 0 && entry.data[0] == '/')
        *out = entry;
    else if (cx_str_starts(entry, CX_STR("~/")) && policy->user_home.size != 0)
        *out = cx_arena_printf(d->arena, "%.*s%.*s", (int)policy->user_home.size,
                               policy->user_home.data, (int)entry.size - 1, entry.data + 1);
    return true;
}

bool cx_deciding_holds_secrets(cx_deciding *d, cx_str folder)
{
    cx_str real = cx_deciding_resolve(d, folder), path;
    for (size_t n = 0; real.data != NULL && denied_path(d, n, &path); n++) {
        cx_err ignored;
        cx_facts facts;
        cx_str name = path.data == NULL || path.size == 0 ? (cx_str){NULL, 0}
                                                          : cx_arena_copy_str(d->arena, path);
        if (name.data != NULL && cx_live_path_below(name, real) &&
            !cx_failed(cx_path_facts(name.data, false, &facts, &ignored)))
            return true;
    }
    return false;
}

/* "*", "?", and "[..]" as any one byte. */
static bool wild_matches(cx_str pattern, cx_str name)
{
    size_t p = 0, n = 0, star = SIZE_MAX, from = 0;
    while (n < name.size || p < pattern.size) {
        if (p < pattern.size && pattern.data[p] == '*') {
            star = ++p;
            from = n;
            continue;
        }
        if (p < pattern.size && n < name.size) {
            size_t close = p + 2;
            while (close < pattern.size && pattern.data[close] != ']')
                close++;
            bool set = pattern.data[p] == '[' && close < pattern.size;
            if (set || pattern.data[p] == '?' || pattern.data[p] == name.data[n]) {
                p = set ? close + 1 : p + 1;
                n++;
                continue;
            }
        }
        if (star == SIZE_MAX || from == name.size)
            return false;
        n = ++from;
        p = star;
    }
    return true;
}

/* A dot at the beginning is matched by a dot only. */
bool cx_live_name_matches(cx_str pattern, cx_str name)
{
    bool hidden = name.size != 0 && name.data[0] == '.';
    return pattern.size != 0 && (!hidden || pattern.data[0] == '.') && wild_matches(pattern, name);
}

/* Whether `pattern`, below the folder `base`, can become `path`, or a folder above or below it. */
static bool pattern_meets(cx_str base, cx_str pattern, cx_str path)
{
    if (cx_live_path_below(base, path))
        return true;
    if (!cx_live_path_below(path, base))
        return false;
    size_t at = base.size == 1 ? 1 : base.size + 1;
    for (size_t p = 0; p < pattern.size && at < path.size;) {
        size_t p_end = component_end(pattern, p), end = component_end(path, at);
        if (p_end != p && !cx_live_name_matches(cx_str_from(pattern.data + p, p_end - p),
                                                cx_str_from(path.data + at, end - at)))
            return false;
        at = p_end != p ? end + 1 : at;
        p = p_end + 1;
    }
    return true;
}

bool cx_deciding_may_read_pattern(cx_deciding *d, cx_str pattern)
{
    size_t plain = 0; /* the folder before the first component with a pattern */
    for (size_t i = 0; i < pattern.size && strchr("*?[", pattern.data[i]) == NULL; i++)
        if (pattern.data[i] == '/')
            plain = i + 1;
    cx_str rest = cx_str_from(pattern.data + plain, pattern.size - plain), path;
    cx_str base = cx_deciding_resolve(d, plain == 0   ? CX_STR(".")
                                         : plain == 1 ? CX_STR("/")
                                                      : cx_str_from(pattern.data, plain));
    if (base.data == NULL || cx_live_path_below(base, CX_STR("/proc")) || cx_str_is(rest, "..") ||
        (rest.size != 0 && memmem(rest.data, rest.size, "/..", 3) != NULL))
        return false;
    for (size_t n = 0; denied_path(d, n, &path); n++)
        if (path.size != 0 && pattern_meets(base, rest, path))
            return false;
    for (size_t n = 0; n < d->policy->read_deny.count; n++) {
        cx_str name = d->policy->read_deny.items[n];
        bool anywhere = name.size != 0 && name.data[0] != '/' && name.data[0] != '~';
        for (size_t at = 0; at < rest.size && anywhere;) {
            size_t end = component_end(rest, at);
            if (end == at) {
                at++;
                continue;
            }
            cx_str first = cx_str_from(name.data, component_end(name, 0));
            cx_str part = cx_str_from(rest.data + at, end - at);
            cx_str there = cx_arena_printf(d->arena, "%.*s/%.*s", (int)base.size, base.data,
                                           (int)first.size, first.data);
            cx_err ignored;
            cx_facts facts;
            if (there.data == NULL ||
                (cx_live_name_matches(part, first) &&
                 (at != 0 || !cx_failed(cx_path_facts(there.data, false, &facts, &ignored)))))
                return false;
            at = end + 1;
        }
    }
    return cx_live_pattern_may_be_read(d, base, rest);
}

void cx_deciding_read(cx_deciding *d, cx_str path)
{
    cx_str real = cx_deciding_resolve(d, path);
    if (real.data == NULL)
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_UNLISTED, "L08", path,
                        "where this path leads cannot be told");
    else if (denies_reading(d, real))
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_FORBIDDEN, "L15", real,
                        "the policy keeps this from being read");
    else
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_ALLOW, "L00", real, "%s", "");
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool covers(cx_deciding *d, cx_str entry, cx_str real, cx_str below)
{
    if (entry.size != 0 && entry.data[0] == '/')
        return cx_live_path_below(real, entry);
    if (cx_str_is(entry, "."))
        return below.data != NULL;
    return below.data != NULL && below.size != 0 && cx_run_path_covers(entry, below);
    (void)d;
}

/* Whether each list has an entry for the path. */
static bool is_in_all_lists(cx_deciding *d, cx_str real, cx_str below)
{
    for (size_t i = 0; i < d->policy->write_count; i++) {
        const cx_str_list list = d->policy->write[i].items;
        bool found = false;
        for (size_t k = 0; k < list.count && !found; k++)
            found = covers(d, list.items[k], real, below);
        if (!found)
            return false;
    }
    return true;
}

static void add_guard(cx_deciding *d, cx_str path, cx_live_guard guard)
{
    cx_deciding_add(d, CX_LIVE_WRITE, guard.verdict, guard.rule, path, "%s", guard.why);
}

static void write_real(cx_deciding *d, cx_str real)
{
    const cx_live_policy *policy = d->policy;
    cx_str below = cx_deciding_below_root(d, real);
    cx_live_guard hard = cx_live_guard_of(d, real), soft = cx_live_soft_guard_of(d, real);
    if (hard.verdict != CX_LIVE_ALLOW)
        add_guard(d, real, hard);
    else if (!is_in_all_lists(d, real, below))
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_FORBIDDEN, "L14", real,
                        "outside of the paths that this session is limited to");
    else if (below.data == NULL && policy->write_count == 0)
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_UNLISTED, "L13", real,
                        "outside of the work tree %.*s", (int)policy->root.size, policy->root.data);
    else if (soft.verdict != CX_LIVE_ALLOW)
        add_guard(d, real, soft);
    else
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_ALLOW, "L00", real, "%s", "");
}

void cx_deciding_write(cx_deciding *d, cx_str path)
{
    static const char *const devices[] = {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"};
    for (size_t i = 0; i < CX_COUNT_OF(devices); i++)
        if (cx_str_is(path, devices[i]))
            return;
    cx_str real = cx_deciding_resolve(d, path);
    if (real.data == NULL)
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_UNLISTED, "L08", path,
                        "where this path leads cannot be told");
    else
        write_real(d, real);
}

void cx_deciding_write_quietly(cx_deciding *d, cx_str path)
{
    size_t before = d->count;
    cx_deciding_write(d, path);
    if (d->count == before + 1 && d->effects[before].verdict == CX_LIVE_ALLOW)
        d->count = before;
}

void cx_deciding_replace(cx_deciding *d, cx_str path)
{
    cx_str real = cx_deciding_resolve(d, path);
    cx_str found = real.data == NULL ? real : cx_live_guarded_below(d, real);
    if (found.data == NULL) {
        cx_deciding_write(d, path);
        return;
    }
    cx_live_guard guard = cx_live_guard_of(d, found);
    cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_FORBIDDEN, guard.rule == NULL ? "L10" : guard.rule,
                    real, "below it is %.*s", (int)found.size, found.data);
}

/* --- patches ---------------------------------------------------------------------------------- */

void cx_deciding_patch(cx_deciding *d, cx_str patch)
{
    static const char *const heads[] = {
        "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "};
    size_t found = 0;
    for (size_t at = 0; at < patch.size;) {
        const char *end = memchr(patch.data + at, '\n', patch.size - at);
        size_t size = end == NULL ? patch.size - at : (size_t)(end - patch.data) - at;
        cx_str line = cx_str_from(patch.data + at, size);
        at += size + 1;
        while (line.size != 0 &&
               (line.data[line.size - 1] == '\r' || line.data[line.size - 1] == ' '))
            line.size--;
        while (line.size != 0 && line.data[0] == ' ') {
            line.data++;
            line.size--;
        }
        for (size_t i = 0; i < CX_COUNT_OF(heads); i++) {
            cx_str head = cx_str_z(heads[i]);
            if (cx_str_starts(line, head) && line.size > head.size) {
                cx_deciding_write(d, cx_str_from(line.data + head.size, line.size - head.size));
                found++;
            }
        }
    }
    if (found == 0)
        cx_deciding_add(d, CX_LIVE_UNKNOWN, CX_LIVE_UNLISTED, "L08", CX_STR("apply_patch"),
                        "the patch names no file in a way that is known");
}
