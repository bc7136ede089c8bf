/*
 * tools.c - one table of the tools that Claude Code, Codex, Gemini CLI, Cursor and Copilot CLI
 * offer to their models.
 */
#include "live/tools.h"

#define COMMAND(n)                     \
    {                                  \
        n, CX_LIVE_FORM_COMMAND,       \
        {                              \
            "command", "cmd", "script" \
        }                              \
    }
#define READ(n)                                                   \
    {                                                             \
        n, CX_LIVE_FORM_READ,                                     \
        {                                                         \
            "file_path", "path", "absolute_path", "notebook_path" \
        }                                                         \
    }
#define WRITE(n)                                                  \
    {                                                             \
        n, CX_LIVE_FORM_WRITE,                                    \
        {                                                         \
            "file_path", "path", "notebook_path", "absolute_path" \
        }                                                         \
    }
#define SEARCH(n)                           \
    {                                       \
        n, CX_LIVE_FORM_SEARCH,             \
        {                                   \
            "path", "dir_path", "directory" \
        }                                   \
    }
#define AGENT(n)                                              \
    {                                                         \
        n, CX_LIVE_FORM_AGENT,                                \
        {                                                     \
            "subagent_type", "agent_name", "agent_type", "to" \
        }                                                     \
    }
#define NOTHING(n)               \
    {                            \
        n, CX_LIVE_FORM_NOTHING, \
        {                        \
            NULL                 \
        }                        \
    }

static const cx_live_tool tools[] = {
    /* commands */
    COMMAND("Bash"),
    COMMAND("bash"),
    COMMAND("Shell"),
    COMMAND("shell"),
    COMMAND("exec_command"),
    COMMAND("run_shell_command"),
    COMMAND("Monitor"),
    {"local_shell", CX_LIVE_FORM_COMMAND, {"command"}},
    {"PowerShell", CX_LIVE_FORM_POWERSHELL, {"command"}},
    {"powershell", CX_LIVE_FORM_POWERSHELL, {"command"}},
    {"write_stdin", CX_LIVE_FORM_TYPED, {"chars"}},
    {"write_bash", CX_LIVE_FORM_TYPED, {"input"}},
    {"write_powershell", CX_LIVE_FORM_TYPED, {"input"}},
    /* files */
    WRITE("Write"),
    WRITE("Edit"),
    WRITE("MultiEdit"),
    WRITE("NotebookEdit"),
    WRITE("write_file"),
    WRITE("replace"),
    WRITE("edit"),
    WRITE("create"),
    WRITE("str_replace_editor"),
    WRITE("str_replace"),
    WRITE("insert"),
    WRITE("Delete"),
    {"apply_patch", CX_LIVE_FORM_PATCH, {"command", "input", "patch"}},
    READ("Read"),
    READ("read_file"),
    READ("view"),
    READ("view_image"),
    READ("NotebookRead"),
    SEARCH("Grep"),
    SEARCH("Glob"),
    SEARCH("LS"),
    SEARCH("grep"),
    SEARCH("rg"),
    SEARCH("glob"),
    SEARCH("list_directory"),
    SEARCH("grep_search"),
    SEARCH("search_file_content"),
    SEARCH("SemanticSearch"),
    {"read_many_files", CX_LIVE_FORM_SEARCH, {"include", "paths", "path"}},
    {"LSP", CX_LIVE_FORM_SEARCH, {"filePath"}},
    /* the network */
    {"WebFetch", CX_LIVE_FORM_URL, {"url"}},
    {"web_fetch", CX_LIVE_FORM_URL, {"url", "prompt"}},
    {"fetch", CX_LIVE_FORM_URL, {"url"}},
    {"WebSearch", CX_LIVE_FORM_WEB, {"query"}},
    {"web_search", CX_LIVE_FORM_WEB, {"query"}},
    {"google_web_search", CX_LIVE_FORM_WEB, {"query"}},
    /* other agents; their calls are decided like those of the first */
    AGENT("Agent"),
    AGENT("Task"),
    AGENT("task"),
    AGENT("spawn_agent"),
    AGENT("send_input"),
    AGENT("send_message"),
    AGENT("followup_task"),
    AGENT("resume_agent"),
    AGENT("invoke_agent"),
    {"SendMessage", CX_LIVE_FORM_MESSAGE, {"to"}},
    NOTHING("wait_agent"),
    NOTHING("close_agent"),
    NOTHING("interrupt_agent"),
    NOTHING("list_agents"),
    NOTHING("ListAgents"),
    /* what runs later, or elsewhere */
    {"Skill", CX_LIVE_FORM_LATER, {"skill", "command"}},
    {"skill", CX_LIVE_FORM_LATER, {"skill", "name"}},
    {"Workflow", CX_LIVE_FORM_LATER, {"name", "scriptPath"}},
    {"CronCreate", CX_LIVE_FORM_LATER, {"prompt"}},
    {"EnterWorktree", CX_LIVE_FORM_WORKTREE, {"path"}},
    {"ExitWorktree", CX_LIVE_FORM_WORKTREE, {NULL}},
    /* the conversation alone */
    NOTHING("TodoWrite"),
    NOTHING("TodoRead"),
    NOTHING("update_plan"),
    NOTHING("write_todos"),
    NOTHING("update_todo"),
    NOTHING("report_intent"),
    NOTHING("TaskCreate"),
    NOTHING("TaskUpdate"),
    NOTHING("TaskList"),
    NOTHING("TaskGet"),
    NOTHING("TaskOutput"),
    NOTHING("TaskStop"),
    NOTHING("BashOutput"),
    NOTHING("KillShell"),
    NOTHING("KillBash"),
    NOTHING("read_bash"),
    NOTHING("stop_bash"),
    NOTHING("ExitPlanMode"),
    NOTHING("EnterPlanMode"),
    NOTHING("exit_plan_mode"),
    NOTHING("enter_plan_mode"),
    NOTHING("AskUserQuestion"),
    NOTHING("AskQuestion"),
    NOTHING("ask_user"),
    NOTHING("request_user_input"),
    NOTHING("ToolSearch"),
    NOTHING("activate_skill"),
    NOTHING("ReportFindings"),
    NOTHING("ScheduleWakeup"),
    NOTHING("CronList"),
    NOTHING("CronDelete"),
    NOTHING("DeferredToolPlaceholder"),
    NOTHING("WaitForMcpServers"),
    NOTHING("ReadNotifications"),
    NOTHING("update_topic"),
    NOTHING("list_background_processes"),
    NOTHING("read_background_output"),
    NOTHING("tracker_create_task"),
    NOTHING("tracker_update_task"),
    NOTHING("tracker_get_task"),
    NOTHING("tracker_list_tasks"),
    NOTHING("tracker_add_dependency"),
    NOTHING("tracker_visualize"),
    NOTHING("get_goal"),
    NOTHING("create_goal"),
    NOTHING("update_goal"),
    NOTHING("tool_search"),
    NOTHING("StructuredOutput"),
    NOTHING("get_internal_docs"),
    NOTHING("complete_task"),
};

/* Codex: "multi_agent_v1wait_agent". */
static const char *const namespaces[] = {"multi_agent_v1", "collaboration"};

const cx_live_tool *cx_live_tool_find(cx_str name)
{
    for (size_t i = 0; i < CX_COUNT_OF(namespaces); i++) {
        cx_str space = cx_str_z(namespaces[i]);
        if (cx_str_starts(name, space) && name.size > space.size) {
            name = cx_str_from(name.data + space.size, name.size - space.size);
            break;
        }
    }
    for (size_t i = 0; i < CX_COUNT_OF(tools); i++)
        if (cx_str_is(name, tools[i].name))
            return &tools[i];
    return NULL;
}

/* What is before and after the first `mark` in `text`; false when one of them is empty. */
static bool split_at(cx_str text, const char *mark, cx_str *out_before, cx_str *out_after)
{
    size_t size = strlen(mark);
    for (size_t i = 1; i + size < text.size; i++)
        if (memcmp(text.data + i, mark, size) == 0) {
            *out_before = cx_str_from(text.data, i);
            *out_after = cx_str_from(text.data + i + size, text.size - i - size);
            return true;
        }
    return false;
}

bool cx_live_tool_is_mcp(const cx_live_call *call, cx_str *out_server, cx_str *out_tool)
{
    cx_str name = call->tool;
    *out_server = call->mcp_server;
    *out_tool = name;
    if (cx_str_starts(name, CX_STR("mcp__")))
        return split_at(cx_str_from(name.data + 5, name.size - 5), "__", out_server, out_tool);
    if (cx_str_starts(name, CX_STR("MCP:")) && name.size > 4) {
        *out_tool = cx_str_from(name.data + 4, name.size - 4);
        return true;
    }
    if (call->agent == CX_LIVE_GEMINI && cx_str_starts(name, CX_STR("mcp_"))) {
        cx_str rest = cx_str_from(name.data + 4, name.size - 4);
        if (call->mcp_server.size != 0 && cx_str_starts(rest, call->mcp_server) &&
            rest.size > call->mcp_server.size + 1) {
            *out_tool = cx_str_from(rest.data + call->mcp_server.size + 1,
                                    rest.size - call->mcp_server.size - 1);
            return true;
        }
        return split_at(rest, "_", out_server, out_tool);
    }
    return call->agent == CX_LIVE_MCP || call->mcp_server.size != 0;
}
