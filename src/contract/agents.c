/*
 * agents.c - the table of agents.h.
 *
 * Each agent's own sandbox and approvals are off: the sandbox of the run encloses it, and there is
 * no person who could approve.  Their sessions are printed in the forms that agent/session.h reads.
 */
#include "contract/agents.h"

static const char *const claude_argv[] = {"claude",
                                          "-p",
                                          "--output-format",
                                          "stream-json",
                                          "--verbose",
                                          "--permission-mode",
                                          "bypassPermissions",
                                          "--strict-mcp-config",
                                          "--resume",
                                          "{thread}",
                                          NULL};
static const char *const claude_env[] = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
                                         "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", NULL};
static const char *const claude_login[] = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
                                           "CLAUDE_CODE_OAUTH_TOKEN", NULL};

static const char *const codex_argv[] = {"codex",
                                         "exec",
                                         "--json",
                                         "--dangerously-bypass-approvals-and-sandbox",
                                         "--skip-git-repo-check",
                                         "--cd",
                                         "{cwd}",
                                         "--output-schema",
                                         "{schema}",
                                         "--output-last-message",
                                         "{output}",
                                         "-",
                                         NULL};
static const char *const codex_env[] = {"CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", NULL};
static const char *const codex_login[] = {"CODEX_API_KEY", "OPENAI_API_KEY", NULL};

static const char *const gemini_argv[] = {
    "gemini", "--output-format", "stream-json", "--approval-mode", "yolo", "--skip-trust", NULL};
static const char *const gemini_env[] = {"GEMINI_API_KEY", "GOOGLE_API_KEY",
                                         "GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI",
                                         NULL};
static const char *const gemini_login[] = {"GEMINI_API_KEY", "GOOGLE_API_KEY", NULL};

const cx_agent_preset cx_agent_presets[] = {
    {"claude", "Claude Code", claude_argv, claude_env, claude_login, ".claude/.credentials.json",
     false, "it does not ask with -p"},
    {"codex", "Codex", codex_argv, codex_env, codex_login, ".codex/auth.json", true,
     "it does not ask with exec and --skip-git-repo-check"},
    {"gemini", "Gemini CLI", gemini_argv, gemini_env, gemini_login, ".gemini/oauth_creds.json",
     false, "--skip-trust"},
};

const size_t cx_agent_preset_count = CX_COUNT_OF(cx_agent_presets);

const cx_agent_preset *cx_agent_preset_find(cx_str name)
{
    for (size_t i = 0; i < cx_agent_preset_count; i++)
        if (cx_str_is(name, cx_agent_presets[i].name))
            return &cx_agent_presets[i];
    return NULL;
}
