/*
 * mcpd_write.c - the tools that are POST routes: those that write memories, and those that act
 * under a scope.
 *
 * Each is offered to tokens that the route accepts.  One that writes is offered only where the
 * server was told to (`serve --mcp-writes`, `mcp --memory-writes`), so that neither alone lets an
 * agent write.
 *
 * Adding a tool touches two places: a row of `write_tools` here, and the row of docs/mcp.md that
 * tools/check_docs.py compares with it.
 */
#include "server/mcp/mcpd_parts.h"

typedef struct write_argument {
    const char *name;
    const char *schema; /* members of its JSON Schema */
    const char *help;
    bool required;
} write_argument;

#define ARGUMENTS_MAX 15

struct cx_mcpd_write_tool {
    const char *name, *title, *about;
    const char *route; /* after /api/v1/actors/{actor}/; a whole path when it begins with '/' */
    unsigned needs;    /* a scope of the token: CX_SCOPE_.. */
    bool reads;        /* writes nothing, and is offered without leave to write */
    bool destructive;
    write_argument arguments[ARGUMENTS_MAX];
};

#define WRITES .needs = CX_SCOPE_MEMORY_WRITE
#define SCOPED .needs = CX_SCOPE_MEMORY_SCOPED
#define TEXT "\"type\":\"string\""
#define TEXTS "\"items\":{\"type\":\"string\"},\"type\":\"array\""
#define OBJECT "\"type\":\"object\""
#define ACTOR                                                                   \
    {                                                                           \
        "actor", TEXT, "Whose memories; a new name begins a new journal.", true \
    }
#define KEY                                                                                      \
    {                                                                                            \
        "key", TEXT, "A name of yours for this request: sent again it is not done again.", false \
    }

#define COUNT "\"minimum\":0,\"type\":\"integer\""
#define FLAG "\"type\":\"boolean\""
#define SCOPE                                                                                  \
    {                                                                                          \
        "scope", TEXT, "The scope: the id of one that was sent, or its bytes as base64.", true \
    }
#define TYPE                                                                                \
    {                                                                                       \
        "type",                                                                             \
            "\"enum\":[\"Identity\",\"Fact\",\"Preference\",\"Belief\",\"Event\",\"Goal\"," \
            "\"Constraint\",\"Capability\",\"Pattern\"],\"type\":\"string\"",               \
            "What kind of memory it is.", true                                              \
    }
#define IMPORTANCE                                                                         \
    {                                                                                      \
        "importance", "\"maximum\":4,\"minimum\":0,\"type\":\"integer\"", "0 to 4.", false \
    }
#define CONFIDENCE                                                                             \
    {                                                                                          \
        "confidence", "\"maximum\":1,\"minimum\":0,\"type\":\"number\"", "0 to 1; default 1.", \
            false                                                                              \
    }
#define PROVENANCE                                                                \
    {                                                                             \
        "provenance", OBJECT, "{source, derived_from}: what it came from.", false \
    }

static const cx_mcpd_write_tool write_tools[] = {
    {"memory_write", "Write a memory",
     "Writes a memory of an actor and answers its URI. Give a key, so that a repeated call does "
     "not write it twice.",
     "memories", WRITES,
     .arguments =
         {ACTOR,
          TYPE,
          {"data", OBJECT,
           "Its members, as the type has them; a Fact has statement, subject and predicate.", true},
          {"tags", TEXTS, "Names to find it by.", false},
          IMPORTANCE,
          CONFIDENCE,
          PROVENANCE,
          {"expires_at", TEXT, "RFC 3339.", false},
          KEY}},
    {"memory_update", "Write a memory's next version",
     "Replaces the data of a memory: its next version. The URI names the version that was read, "
     "and the call is refused when another one is current.",
     "memories/update", WRITES,
     .arguments = {ACTOR,
                   {"uri", TEXT, "The memory with the version that was read.", true},
                   {"data", OBJECT, "All members of the new version.", true},
                   CONFIDENCE,
                   PROVENANCE,
                   KEY}},
    {"memory_tombstone", "End a memory",
     "Ends a memory: it is no longer found. Its content stays in the ledger.", "memories/tombstone",
     WRITES, .destructive = true,
     .arguments =
         {ACTOR, {"uri", TEXT, "The memory.", true}, {"reason", TEXT, "Why it ends.", false}, KEY}},
    {"memory_edge", "Connect two memories", "Adds an edge from one memory to another.", "edges",
     WRITES,
     .arguments = {ACTOR,
                   {"src", TEXT, "The ULID of the memory that the edge leaves.", true},
                   {"type", TEXT, "The edge's type, such as corroborates.", true},
                   {"dst", TEXT, "The ULID of the memory that it reaches.", true},
                   {"weight", "\"type\":\"number\"", "A finite number.", false},
                   KEY}},
    {"memory_attest", "Record an outcome",
     "Records whether an intent succeeded, and the memories that it rested on: these gain or lose "
     "salience.",
     "attestations", WRITES,
     .arguments = {ACTOR,
                   {"intent", TEXT, "The intent.", true},
                   {"outcome", "\"enum\":[\"success\",\"failure\"],\"type\":\"string\"",
                    "How it ended.", true},
                   {"cited", TEXTS, "URIs of the memories that it rested on.", true},
                   {"reason", TEXT, "Why it failed.", false},
                   KEY}},
    {"scope_make", "Write a scope for another agent",
     "Writes a scope without its signature: which of an actor's memories another agent may read, "
     "as they are in a snapshot, or with writable also write. Sign the bytes of 'scope' with the "
     "grantor's Ed25519 key, then call scope_send.",
     "/api/v1/scopes/make", WRITES, /* who sends them; the route needs trace:read, too */
     .arguments = {{"actor", TEXT, "Whose memories.", true},
                   {"granted_to", TEXT, "The agent that may read them.", true},
                   {"granted_by", TEXT, "The agent whose key signs; default the actor.", false},
                   {"tags", TEXTS, "All with one of these tags.", false},
                   {"types", TEXTS, "All of one of these types, such as Fact.", false},
                   {"ids", TEXTS, "These memories: URIs or ULIDs.", false},
                   {"not_tags", TEXTS, "But none with these tags.", false},
                   {"not_types", TEXTS, "But none of these types.", false},
                   {"not_ids", TEXTS, "But not these.", false},
                   {"expires_at", TEXT, "Until then: RFC 3339.", false},
                   {"budget", COUNT, "How many tokens may be read at a time.", false},
                   {"writable", FLAG, "Whether such memories may be written, too.", false},
                   {"snapshot", COUNT, "The snapshot that is shown; default the newest.", false}}},
    {"scope_send", "Send a scope to its grantee",
     "Takes a signed scope and keeps it for its grantee, who finds it with the tool scopes. The "
     "scope must hold: the grantor's key is registered and its signature right.",
     "/api/v1/scopes", WRITES,
     .arguments = {SCOPE,
                   {"signature", TEXT, "The signature as base64, when the scope has none yet.",
                    false}}},
    {"scope_check", "Check a scope",
     "Whether a scope that was granted to you holds, and what it allows.", "/api/v1/scopes/check",
     SCOPED, .reads = true, .arguments = {SCOPE}},
    {"scope_read", "Read a memory under a scope",
     "One memory that a scope allows, as it was in the scope's snapshot.", "/api/v1/scopes/read",
     SCOPED, .reads = true, .arguments = {SCOPE, {"uri", TEXT, "The memory.", true}}},
    {"scope_find", "Find memories under a scope",
     "Memories that a scope allows, as they were in the scope's snapshot: by types, tags or words.",
     "/api/v1/scopes/find", SCOPED, .reads = true,
     .arguments = {SCOPE,
                   {"types", TEXTS, "Of one of these types.", false},
                   {"tags", TEXTS, "With one of these tags.", false},
                   {"words", TEXT, "With all of these words.", false},
                   {"limit", COUNT, "1 to 1000; default 50.", false}}},
    {"scope_write", "Write a memory under a scope",
     "Writes a memory that a writable scope allows, so give it a tag or type of the scope's. Give "
     "a "
     "key, so that a repeated call does not write it twice.",
     "/api/v1/scopes/write", SCOPED,
     .arguments = {SCOPE,
                   TYPE,
                   {"data", OBJECT, "Its members, as the type has them.", true},
                   {"tags", TEXTS, "Names to find it by.", false},
                   IMPORTANCE,
                   CONFIDENCE,
                   PROVENANCE,
                   {"expires_at", TEXT, "RFC 3339.", false},
                   KEY}},
    {"scope_update", "Write a memory's next version under a scope",
     "Replaces the data of a memory that a writable scope allows. The URI names the version that "
     "is "
     "current.",
     "/api/v1/scopes/update", SCOPED,
     .arguments = {SCOPE,
                   {"uri", TEXT, "The memory with its current version.", true},
                   {"data", OBJECT, "All members of the new version.", true},
                   CONFIDENCE,
                   PROVENANCE,
                   KEY}},
    {"scope_labels", "Change labels under a scope",
     "Sets tags or importance of a memory that a writable scope allows.", "/api/v1/scopes/labels",
     SCOPED,
     .arguments = {SCOPE,
                   {"uri", TEXT, "The memory.", true},
                   {"tags", TEXTS, "All tags that it then has.", false},
                   IMPORTANCE,
                   KEY}},
};

/* Whether the caller may call it, as far as its token and the server's options say. */
static bool is_offered(const cx_mcpd_host *host, const cx_mcpd_write_tool *tool)
{
    return (tool->needs & host->scopes) != 0 && (tool->reads || host->writes);
}

/* Whether the path has an actor, which then is no member of the body. */
static bool has_actor(const cx_mcpd_write_tool *tool)
{
    return tool->route[0] != '/';
}

const cx_mcpd_write_tool *cx_mcpd_find_write_tool(const cx_mcpd_host *host, cx_str name)
{
    for (size_t i = 0; i < CX_COUNT_OF(write_tools); i++)
        if (cx_str_is(name, write_tools[i].name) && is_offered(host, &write_tools[i]))
            return &write_tools[i];
    return NULL;
}

/* --- tools/list ------------------------------------------------------------------------------- */

static void add_string(cx_buf *out, const char *text)
{
    cx_json_write_str(out, cx_str_z(text), CX_JSON_PY_COMPACT);
}

static void add_schema(const cx_mcpd_write_tool *tool, cx_buf *out)
{
    size_t required = 0;
    cx_buf_add_z(out, "{\"additionalProperties\":false,\"properties\":{");
    for (size_t i = 0; i < ARGUMENTS_MAX && tool->arguments[i].name != NULL; i++) {
        cx_buf_printf(out, "%s\"%s\":{\"description\":", i == 0 ? "" : ",",
                      tool->arguments[i].name);
        add_string(out, tool->arguments[i].help);
        cx_buf_printf(out, ",%s}", tool->arguments[i].schema);
    }
    cx_buf_add_z(out, "},\"required\":[");
    for (size_t i = 0; i < ARGUMENTS_MAX && tool->arguments[i].name != NULL; i++)
        if (tool->arguments[i].required)
            cx_buf_printf(out, "%s\"%s\"", required++ == 0 ? "" : ",", tool->arguments[i].name);
    cx_buf_add_z(out, "],\"type\":\"object\"}");
}

static void add_write_tool(const cx_mcpd_write_tool *tool, cx_mcpd_version version, cx_buf *out)
{
    cx_buf_add_z(out, ",{");
    if (version >= CX_MCPD_2025_03_26) {
        cx_buf_printf(out,
                      "\"annotations\":{\"destructiveHint\":%s,\"idempotentHint\":%s,"
                      "\"openWorldHint\":false,\"readOnlyHint\":%s,\"title\":",
                      tool->destructive ? "true" : "false", tool->reads ? "true" : "false",
                      tool->reads ? "true" : "false");
        add_string(out, tool->title);
        cx_buf_add_z(out, "},");
    }
    cx_buf_add_z(out, "\"description\":");
    add_string(out, tool->about);
    cx_buf_add_z(out, ",\"inputSchema\":");
    add_schema(tool, out);
    cx_buf_printf(out, ",\"name\":\"%s\"", tool->name);
    if (version >= CX_MCPD_2025_06_18) {
        cx_buf_printf(out, ",\"outputSchema\":%s,\"title\":", cx_mcpd_output_schema);
        add_string(out, tool->title);
    }
    cx_buf_add_byte(out, '}');
}

void cx_mcpd_add_write_tools(const cx_mcpd_host *host, cx_mcpd_version version, cx_buf *out)
{
    for (size_t i = 0; i < CX_COUNT_OF(write_tools); i++)
        if (is_offered(host, &write_tools[i]))
            add_write_tool(&write_tools[i], version, out);
}

/* --- tools/call ------------------------------------------------------------------------------- */

static const write_argument *find_argument(const cx_mcpd_write_tool *tool, cx_str name)
{
    for (size_t i = 0; i < ARGUMENTS_MAX && tool->arguments[i].name != NULL; i++)
        if (cx_str_is(name, tool->arguments[i].name))
            return &tool->arguments[i];
    return NULL;
}

/* Why the arguments are refused; data NULL = they are not. */
static cx_str check_arguments(cx_mcpd_call *call, const cx_mcpd_write_tool *tool,
                              const cx_json *arguments)
{
    for (uint32_t i = 0; i < arguments->count; i++) {
        cx_str name = cx_json_text(&arguments->members[i].name);
        if (find_argument(tool, name) == NULL)
            return cx_arena_printf(call->arena, "%s has no argument '%.*s'; tools/list lists them",
                                   tool->name, (int)(name.size < 80 ? name.size : 80), name.data);
    }
    for (size_t i = 0; i < ARGUMENTS_MAX && tool->arguments[i].name != NULL; i++)
        if (tool->arguments[i].required &&
            cx_json_get(arguments, cx_str_z(tool->arguments[i].name)) == NULL)
            return cx_arena_printf(call->arena, "%s: required, but missing",
                                   tool->arguments[i].name);
    if (has_actor(tool) && CX_JSON_GET_STR(arguments, "actor").size == 0)
        return CX_STR("actor: expected text that is not empty");
    return (cx_str){NULL, 0};
}

/* The body: all arguments but the actor of the path. */
static cx_status write_body(cx_mcpd_call *call, const cx_mcpd_write_tool *tool,
                            const cx_json *arguments, cx_buf *out, cx_err *err)
{
    cx_json_list body = cx_json_list_begin(call->arena);
    cx_json value;
    for (uint32_t i = 0; i < arguments->count; i++) {
        cx_str name = cx_json_text(&arguments->members[i].name);
        if (!has_actor(tool) || !cx_str_is(name, "actor"))
            cx_json_list_put(&body, name, arguments->members[i].value);
    }
    CX_TRY(cx_json_list_end_object(&body, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    return cx_buf_check(out, err);
}

cx_status cx_mcpd_call_write_tool(cx_mcpd_call *call, const cx_mcpd_write_tool *tool,
                                  const cx_json *arguments, cx_mcpd_reply *out, cx_str *out_wrong,
                                  cx_err *err)
{
    cx_buf target, body;
    *out_wrong = check_arguments(call, tool, arguments);
    if (out_wrong->data != NULL)
        return CX_SUCCESS;
    cx_buf_init(&target, call->arena->alloc);
    cx_buf_init(&body, call->arena->alloc);
    if (has_actor(tool)) {
        cx_buf_add_z(&target, "/api/v1/actors/");
        cx_mcpd_add_escaped(&target, CX_JSON_GET_STR(arguments, "actor"));
        cx_buf_add_byte(&target, '/');
    }
    cx_buf_add_z(&target, tool->route);
    cx_status status = cx_buf_check(&target, err);
    if (!cx_failed(status))
        status = write_body(call, tool, arguments, &body, err);
    if (!cx_failed(status))
        status = call->host->post(call->host->arg, cx_buf_str(&target), cx_buf_str(&body),
                                  call->arena, out, err);
    cx_buf_done(&target);
    cx_buf_done(&body);
    return status;
}
