/*
 * guarded.c - files that are not written although they are in the work tree, or not at all: what
 * agents, programs of the user, git and this program obey (docs/formats/live.md §4, L10 to L12).
 */
#include <string.h>

#include "live/decide_parts.h"
#include "os/api.h"
#include "rules/api.h"

/* --- paths ------------------------------------------------------------------------------------ */

bool cx_live_path_below(cx_str inner, cx_str outer)
{
    while (outer.size > 1 && outer.data[outer.size - 1] == '/')
        outer.size--;
    return outer.size != 0 && cx_str_starts(inner, outer) &&
           (outer.size == 1 || inner.size == outer.size || inner.data[outer.size] == '/');
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

bool cx_live_path_has(cx_str path, cx_str pattern)
{
    if (pattern.size > 1 && pattern.data[pattern.size - 1] == '/')
        pattern.size--;
    for (size_t at = 0; at + pattern.size <= path.size; at++) {
        if (at != 0 && path.data[at - 1] != '/')
            continue;
        bool ends = path.size - at == pattern.size || path.data[at + pattern.size] == '/';
        if (ends && same_letters(cx_str_from(path.data + at, pattern.size), pattern))
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
    ".cursor/cli.json",
    ".cursor/cli-config.json",
    ".cursor/environment.json",
    ".cursor/worktrees.json",
    ".opencode/plugin/",
    ".opencode/plugins/",
    ".config/opencode/",
    "opencode.json",
    "opencode.jsonc",
    ".vscode/mcp.json",
};

/* Texts that bring commands, hooks or permissions of their own into a session. */
static const char *const agent_texts[] = {
    ".claude/skills/",    ".claude/commands/",      ".claude/agents/",  ".claude/workflows/",
    ".agents/skills/",    ".codex/skills/",         ".codex/agents/",   ".codex/prompts/",
    ".gemini/commands/",  ".gemini/agents/",        ".gemini/skills/",  ".cursor/commands/",
    ".cursor/agents/",    ".github/agents/",        ".github/skills/",  ".copilot/agents/",
    ".claude/rules/",     ".claude/output-styles/", ".cursor/rules/",   ".cursor/skills/",
    ".opencode/command/", ".opencode/commands/",    ".opencode/agent/", ".opencode/agents/",
    ".opencode/skills/",
};

/* What a later program of this user obeys. */
static const char *const user_settings[] = {
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".config/fish/",
    ".ssh/",
    ".gnupg/",
    ".netrc",
    ".gitconfig",
    ".config/git/",
    ".npmrc",
    ".pypirc",
    ".aws/",
    ".kube/",
    ".docker/",
    ".config/autostart/",
    ".config/systemd/",
    ".local/bin/",
    "bin/",
    ".pam_environment",
    ".config/cortex/",
    ".bash_aliases",
    ".bash_logout",
    ".zlogout",
    ".inputrc",
    ".vimrc",
    ".vim/",
    ".exrc",
    ".config/nvim/",
    ".emacs",
    ".emacs.d/",
    ".config/emacs/",
    ".tmux.conf",
    ".config/tmux/",
    ".screenrc",
    ".gdbinit",
    ".config/gdb/",
    ".lldbinit",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".config/environment.d/",
    ".config/pip/",
    ".pip/",
    ".cargo/",
    ".rustup/",
    ".m2/",
    ".gradle/",
    ".yarnrc",
    ".yarnrc.yml",
    ".local/lib/",
    ".local/share/applications/",
    ".ipython/",
    ".jupyter/",
    ".Rprofile",
    ".config/direnv/",
    ".config/Code/",
    ".vscode/",
    ".config/mise/",
    ".crontab",
    ".forward",
    ".mailcap",
    ".config/kitty/",
    ".config/gh/",
};

/* What an editor, a shell or a hook of git obeys when a repository is opened or committed to. */
static const char *const repository_settings[] = {
    ".envrc",
    ".vscode/settings.json",
    ".vscode/tasks.json",
    ".vscode/launch.json",
    ".idea/",
    ".zed/",
    ".devcontainer/",
    ".devcontainer.json",
    ".husky/",
    ".githooks/",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    ".exrc",
    ".vimrc",
    ".vim/",
    ".nvimrc",
    ".nvim.lua",
    ".lvimrc",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".cargo/config",
    ".cargo/config.toml",
    ".mise.toml",
    "mise.toml",
    ".aider.conf.yml",
};

static bool has_one_of(cx_str path, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cx_live_path_has(path, cx_str_z(patterns[i])))
            return true;
    return false;
}

static cx_str last_component(cx_str path)
{
    size_t from = path.size;
    while (from != 0 && path.data[from - 1] != '/')
        from--;
    return cx_str_from(path.data + from, path.size - from);
}

static bool is_script(cx_str name)
{
    static const char *const ends[] = {".sh",  ".bash", ".py", ".js", ".mjs",
                                       ".cjs", ".ts",   ".rb", ".pl", ".ps1"};
    for (size_t i = 0; i < CX_COUNT_OF(ends); i++)
        if (cx_str_ends(name, cx_str_z(ends[i])))
            return true;
    return false;
}

/* The folder of an agent's files itself, which can be put in place whole, or a script in it: that
 * is where those lie that settings name (a status line, a hook). */
static bool is_agent_folder(cx_str path)
{
    static const char *const folders[] = {".claude", ".codex",   ".gemini",  ".cursor",
                                          ".agents", ".copilot", ".opencode"};
    cx_str name = last_component(path);
    if (is_script(name) && name.size < path.size)
        name = last_component(cx_str_from(path.data, path.size - name.size - 1));
    for (size_t i = 0; i < CX_COUNT_OF(folders); i++)
        if (same_letters(name, cx_str_z(folders[i])))
            return true;
    return false;
}

static bool is_user_setting(const cx_deciding *d, cx_str path)
{
    const cx_str home = d->policy->user_home;
    if (home.size == 0 || !cx_live_path_below(path, home) || path.size == home.size)
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

/* --- one path --------------------------------------------------------------------------------- */

/* As file systems that fold names take it; the path itself when it is plain.  Data NULL when that
 * cannot be told. */
static cx_str folded(const cx_deciding *d, cx_str path)
{
    bool plain = true;
    for (size_t i = 0; i < path.size && plain; i++)
        plain = (uint8_t)path.data[i] < 0x80;
    if (plain)
        return path;
    size_t size = 0, room = 4 * path.size;
    char *text = cx_arena_push(d->arena, room + 1, 1);
    if (text == NULL ||
        !cx_run_path_fold(cx_str_from(path.data + 1, path.size - 1), text + 1, room, &size))
        return (cx_str){NULL, 0};
    text[0] = '/';
    return cx_str_from(text, size + 1);
}

static const cx_live_guard no_guard = {.verdict = CX_LIVE_ALLOW};

static cx_live_guard guard(cx_live_verdict verdict, const char *rule, const char *why)
{
    return (cx_live_guard){.verdict = verdict, .rule = rule, .why = why};
}

cx_live_guard cx_live_guard_of(const cx_deciding *d, cx_str real)
{
    const cx_live_policy *policy = d->policy;
    cx_str path = folded(d, real);
    if (policy->data_directory.size != 0 && cx_live_path_below(real, policy->data_directory))
        return guard(CX_LIVE_FORBIDDEN, "L10", "the record of this session is there");
    if (path.data == NULL)
        return guard(CX_LIVE_UNLISTED, "L08", "how a file system takes this name cannot be told");
    if (has_one_of(path, agent_settings, CX_COUNT_OF(agent_settings)) ||
        (policy->program.size != 0 && cx_str_eq(real, policy->program)))
        return guard(CX_LIVE_FORBIDDEN, "L10",
                     "it sets what agents may do; a person changes it, with the agent closed");
    if (is_user_setting(d, real) || is_user_setting(d, path) ||
        cx_live_path_below(real, CX_STR("/etc")))
        return guard(CX_LIVE_FORBIDDEN, "L11", "later programs of this user or machine obey it");
    if (cx_live_path_has(path, CX_STR(".git")))
        return guard(CX_LIVE_FORBIDDEN, "L12", "git's own files are written by git only");
    return no_guard;
}

static bool has_another_name(cx_str real)
{
    char path[CX_RUN_PATH_BYTES_MAX + 1];
    cx_err ignored;
    cx_facts facts;
    if (real.size >= sizeof path)
        return true;
    memcpy(path, real.data, real.size);
    path[real.size] = 0;
    return !cx_failed(cx_path_facts(path, false, &facts, &ignored)) &&
           facts.kind == CX_FILE_REGULAR && facts.link_count > 1;
}

cx_live_guard cx_live_soft_guard_of(cx_deciding *d, cx_str real)
{
    cx_str path = folded(d, real), below = cx_deciding_below_root(d, real);
    if (path.data == NULL)
        return no_guard; /* the other guard says so */
    if (below.data != NULL && cx_run_path_protected(below, NULL))
        return guard(d->policy->contract_task.size != 0 ? CX_LIVE_FORBIDDEN : CX_LIVE_UNLISTED,
                     "P08", cx_run_path_rule_text("P08"));
    if (below.data != NULL && cx_live_path_below(below, CX_STR("policies")))
        return guard(CX_LIVE_UNLISTED, "L12", "it says what later sessions and runs may do");
    if (is_agent_folder(path) || has_one_of(path, agent_texts, CX_COUNT_OF(agent_texts)))
        return guard(CX_LIVE_UNLISTED, "L10",
                     "it brings commands or permissions of its own into a session");
    if (has_one_of(path, repository_settings, CX_COUNT_OF(repository_settings)) ||
        cx_str_ends(path, CX_STR(".code-workspace")))
        return guard(CX_LIVE_UNLISTED, "L11",
                     "programs obey it when this repository is opened or committed to");
    if (cx_live_settings_that_name(d, real) != NULL)
        return guard(CX_LIVE_UNLISTED, "L10",
                     "settings of an agent or of git name it: it is started later, undecided");
    if (has_another_name(real))
        return guard(CX_LIVE_UNLISTED, "L08",
                     "the file has another name, a hard link, which is written, too");
    return no_guard;
}

/* --- a folder --------------------------------------------------------------------------------- */

typedef struct guard_search {
    cx_deciding *d;
    cx_str folder;
    cx_str found; /* the first that exists below it; data NULL = none */
} guard_search;

static void try_path(guard_search *s, cx_str base, cx_str name)
{
    cx_err ignored;
    cx_facts facts;
    if (s->found.data != NULL || base.size == 0)
        return;
    cx_str path = name.size == 0 ? cx_arena_copy_str(s->d->arena, base)
                                 : cx_arena_printf(s->d->arena, "%.*s/%.*s", (int)base.size,
                                                   base.data, (int)name.size, name.data);
    if (path.data == NULL) {
        s->d->status = cx_fail_nomem(s->d->err);
        return;
    }
    if (path.size > s->folder.size && cx_live_path_below(path, s->folder) &&
        !cx_failed(cx_path_facts(path.data, false, &facts, &ignored)))
        s->found = path;
}

static void try_names(guard_search *s, cx_str base, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count && s->found.data == NULL; i++) {
        cx_str name = cx_str_z(names[i]);
        name.size -= name.data[name.size - 1] == '/';
        try_path(s, base, name);
    }
}

/* Settings of agents where they are looked for: in the folder itself, in the working folder and
 * those above it, in the user's. */
static void try_settings(guard_search *s)
{
    cx_str at = s->d->policy->root.size != 0 ? s->d->cwd : CX_STR("");
    try_names(s, s->folder, agent_settings, CX_COUNT_OF(agent_settings));
    try_path(s, s->folder, CX_STR(".git"));
    while (at.size > 1 && cx_deciding_below_root(s->d, at).data != NULL) {
        try_names(s, at, agent_settings, CX_COUNT_OF(agent_settings));
        try_path(s, at, CX_STR(".git"));
        while (at.size > 1 && at.data[--at.size] != '/') {
        }
    }
    try_names(s, s->d->policy->user_home, agent_settings, CX_COUNT_OF(agent_settings));
    try_names(s, s->d->policy->user_home, user_settings, CX_COUNT_OF(user_settings));
}

cx_str cx_live_guarded_below(cx_deciding *d, cx_str folder)
{
    guard_search s = {.d = d, .folder = folder, .found = {NULL, 0}};
    cx_err ignored;
    cx_facts facts;
    cx_str name = cx_arena_copy_str(d->arena, folder);
    if (name.data == NULL) {
        d->status = cx_fail_nomem(d->err);
        return s.found;
    }
    if (cx_failed(cx_path_facts(name.data, true, &facts, &ignored)) || facts.kind != CX_FILE_FOLDER)
        return s.found;
    try_path(&s, d->policy->data_directory, CX_STR(""));
    try_path(&s, d->policy->program, CX_STR(""));
    try_settings(&s);
    return s.found;
}
