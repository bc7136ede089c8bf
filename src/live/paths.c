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

/* The longest part that exists, with its links resolved, and the rest as it is.  Data NULL after a
 * link that leads nowhere: what it will be is not known. */
static cx_str real_path(cx_deciding *d, cx_str plain, bool *linked)
{
    const cx_str none = {NULL, 0};
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

/* `inner` is `outer` or below it. */
static bool is_below(cx_str inner, cx_str outer)
{
    while (outer.size > 1 && outer.data[outer.size - 1] == '/')
        outer.size--;
    return outer.size != 0 && cx_str_starts(inner, outer) &&
           (outer.size == 1 || inner.size == outer.size || inner.data[outer.size] == '/');
}

cx_str cx_deciding_below_root(const cx_deciding *d, cx_str absolute)
{
    const cx_str root = d->policy->root;
    if (absolute.data == NULL || !is_below(absolute, root))
        return (cx_str){NULL, 0};
    size_t skip = absolute.size > root.size ? root.size + (root.size > 1) : absolute.size;
    return cx_str_from(absolute.data + skip, absolute.size - skip);
}

static bool same_letters(cx_str a, cx_str b)
{
    for (size_t i = 0; i < a.size && a.size == b.size; i++) {
        char x = a.data[i], y = b.data[i];
        x = x >= 'A' && x <= 'Z' ? (char)(x + 32) : x;
        y = y >= 'A' && y <= 'Z' ? (char)(y + 32) : y;
        if (x != y)
            return false;
    }
    return a.size == b.size;
}

/* Whether the components of `pattern` occur one after the other in `path`; a '/' at the pattern's
 * end means that something must follow. */
static bool has_components(cx_str path, cx_str pattern)
{
    for (size_t at = 0; at < path.size; at++) {
        if (at != 0 && path.data[at - 1] != '/')
            continue;
        if (path.size - at < pattern.size)
            return false;
        bool folder = pattern.data[pattern.size - 1] == '/';
        bool ends = path.size - at == pattern.size || path.data[at + pattern.size] == '/';
        if ((folder || ends) && same_letters(cx_str_from(path.data + at, pattern.size), pattern))
            return true;
    }
    return false;
}

/* --- what is never written -------------------------------------------------------------------- */

/* By which an agent's hooks, servers and permissions are set. */
static const char *const agent_settings[] = {
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks/",
    ".claude/plugins/",
    ".claude.json",
    ".mcp.json",
    "managed-settings.json",
    "managed-settings.d/",
    ".claude-plugin/",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/requirements.toml",
    "managed_config.toml",
    ".codex-plugin/",
    ".gemini/settings.json",
    ".gemini/extensions/",
    ".gemini/hooks/",
    ".gemini/policies/",
    ".gemini/trustedfolders.json",
    ".codex/rules/",
    ".claude/scheduled_tasks.json",
    ".cursor/hooks.json",
    ".cursor/hooks/",
    ".cursor/mcp.json",
    ".cursor/permissions.json",
    ".copilot/hooks/",
    ".copilot/settings.json",
    ".copilot/mcp-config.json",
    ".github/hooks/",
    ".github/copilot/",
    ".opencode/plugins/",
    ".config/opencode/",
    "opencode.json",
};

/* Texts that bring commands, hooks or permissions of their own into a session. */
static const char *const agent_texts[] = {
    ".claude/skills/",   ".claude/commands/", ".claude/agents/", ".claude/workflows/",
    ".agents/skills/",   ".codex/skills/",    ".codex/agents/",  ".codex/prompts/",
    ".gemini/commands/", ".gemini/agents/",   ".gemini/skills/", ".cursor/commands/",
    ".cursor/agents/",   ".github/agents/",   ".github/skills/", ".copilot/agents/",
};

/* What a later program of this user obeys. */
static const char *const user_settings[] = {
    ".bashrc",          ".bash_profile", ".bash_login", ".profile",         ".zshrc",
    ".zshenv",          ".zprofile",     ".zlogin",     ".config/fish/",    ".ssh/",
    ".gnupg/",          ".netrc",        ".gitconfig",  ".config/git/",     ".npmrc",
    ".pypirc",          ".aws/",         ".kube/",      ".docker/",         ".config/autostart/",
    ".config/systemd/", ".local/bin/",   "bin/",        ".pam_environment", ".config/cortex/",
};

static bool has_one_of(cx_str path, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (has_components(path, cx_str_z(patterns[i])))
            return true;
    return false;
}

/* The folder of such files itself: it can be put in place whole. */
static bool is_agent_folder(cx_str path)
{
    static const char *const folders[] = {"/.claude", "/.codex",  "/.gemini",
                                          "/.cursor", "/.agents", "/.copilot"};
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++) {
        cx_str folder = cx_str_z(folders[i]);
        if (path.size >= folder.size &&
            same_letters(cx_str_from(path.data + path.size - folder.size, folder.size), folder))
            return true;
    }
    return false;
}

static bool is_agent_setting(cx_str path)
{
    return has_one_of(path, agent_settings, CX_COUNT_OF(agent_settings));
}

static bool is_user_setting(const cx_deciding *d, cx_str path)
{
    const cx_str home = d->policy->user_home;
    if (home.size == 0 || !is_below(path, home) || path.size == home.size)
        return false;
    cx_str rest = cx_str_from(path.data + home.size + 1, path.size - home.size - 1);
    for (size_t i = 0; i < CX_COUNT_OF(user_settings); i++) {
        cx_str pattern = cx_str_z(user_settings[i]);
        bool folder = pattern.data[pattern.size - 1] == '/';
        if (rest.size >= pattern.size - folder &&
            same_letters(cx_str_from(rest.data, pattern.size - folder),
                         cx_str_from(pattern.data, pattern.size - folder)) &&
            (rest.size == pattern.size - folder || rest.data[pattern.size - folder] == '/'))
            return true;
    }
    return false;
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool denies_reading(const cx_deciding *d, cx_str path)
{
    const cx_live_policy *policy = d->policy;
    if (policy->data_directory.size != 0 && is_below(path, policy->data_directory))
        return true;
    for (size_t i = 0; i < policy->read_deny.count; i++) {
        cx_str entry = policy->read_deny.items[i];
        if (entry.size > 2 && entry.data[0] == '~' && entry.data[1] == '/') {
            cx_str home = policy->user_home;
            cx_str rest = cx_str_from(entry.data + 2, entry.size - 2);
            if (home.size != 0 && is_below(path, home) && path.size > home.size + rest.size &&
                is_below(cx_str_from(path.data + home.size + 1, path.size - home.size - 1), rest))
                return true;
        } else if (entry.size != 0 && entry.data[0] == '/') {
            if (is_below(path, entry))
                return true;
        } else if (entry.size != 0 && has_components(path, entry)) {
            return true;
        }
    }
    return cx_str_starts(path, CX_STR("/proc/")) &&
           (cx_str_ends(path, CX_STR("/environ")) || cx_str_ends(path, CX_STR("/mem")));
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
        if (name.data != NULL && is_below(name, real) &&
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
static bool component_matches(cx_str pattern, cx_str component)
{
    bool hidden = component.size != 0 && component.data[0] == '.';
    return (!hidden || pattern.data[0] == '.') && wild_matches(pattern, component);
}

/* Whether `pattern`, below the folder `base`, can become `path`, or a folder above or below it. */
static bool pattern_meets(cx_str base, cx_str pattern, cx_str path)
{
    if (is_below(base, path))
        return true;
    if (!is_below(path, base))
        return false;
    size_t at = base.size == 1 ? 1 : base.size + 1;
    for (size_t p = 0; p < pattern.size && at < path.size;) {
        size_t p_end = component_end(pattern, p), end = component_end(path, at);
        if (p_end != p && !component_matches(cx_str_from(pattern.data + p, p_end - p),
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
    if (base.data == NULL || is_below(base, CX_STR("/proc")) || cx_str_is(rest, "..") ||
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
                (component_matches(part, first) &&
                 (at != 0 || !cx_failed(cx_path_facts(there.data, false, &facts, &ignored)))))
                return false;
            at = end + 1;
        }
    }
    return true;
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
        return is_below(real, entry);
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

static bool has_component(cx_str path, const char *name)
{
    return has_components(path, cx_str_z(name));
}

void cx_deciding_write(cx_deciding *d, cx_str path)
{
    const cx_live_policy *policy = d->policy;
    static const char *const devices[] = {"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"};
    for (size_t i = 0; i < CX_COUNT_OF(devices); i++)
        if (cx_str_is(path, devices[i]))
            return;
    cx_str real = cx_deciding_resolve(d, path);
    cx_str below = cx_deciding_below_root(d, real);
    if (real.data == NULL)
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_UNLISTED, "L08", path,
                        "where this path leads cannot be told");
    else if (policy->data_directory.size != 0 && is_below(real, policy->data_directory))
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_FORBIDDEN, "L10", real,
                        "the record of this session is there");
    else if (is_agent_setting(real) ||
             (policy->program.size != 0 && cx_str_eq(real, policy->program)))
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_FORBIDDEN, "L10", real,
                        "it sets what agents may do; a person changes it, with the agent closed");
    else if (is_user_setting(d, real) || cx_str_starts(real, CX_STR("/etc/")))
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_FORBIDDEN, "L11", real,
                        "later programs of this user or machine obey it");
    else if (has_component(real, ".git"))
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_FORBIDDEN, "L12", real,
                        "git's own files are written by git only");
    else if (!is_in_all_lists(d, real, below))
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_FORBIDDEN, "L14", real,
                        "outside of the paths that this session is limited to");
    else if (below.data == NULL && policy->write_count == 0)
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_UNLISTED, "L13", real,
                        "outside of the work tree %.*s", (int)policy->root.size, policy->root.data);
    else if (below.data != NULL && cx_run_path_protected(below, NULL))
        cx_deciding_add(d, CX_LIVE_WRITE,
                        policy->contract_task.size != 0 ? CX_LIVE_FORBIDDEN : CX_LIVE_UNLISTED,
                        "P08", real, "%s", cx_run_path_rule_text("P08"));
    else if (below.data != NULL && cx_run_path_covers(CX_STR("policies/"), below))
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_UNLISTED, "L12", real,
                        "it says what later sessions and runs may do");
    else if (is_agent_folder(real) || has_one_of(real, agent_texts, CX_COUNT_OF(agent_texts)))
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_UNLISTED, "L10", real,
                        "it brings commands or permissions of its own into a session");
    else
        cx_deciding_add(d, CX_LIVE_WRITE, CX_LIVE_ALLOW, "L00", real, "%s", "");
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
