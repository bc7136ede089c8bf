/*
 * route.c - the table of routes, and the search for the one that a request names.
 */
#include "server/route.h"

#include "server/route_live.h"
#include "server/route_page.h"
#include "server/route_runs.h"

#define JSON "application/json"
#define COVENANT "/api/v1/covenant"
#define LATTICE "/api/v1/lattice/{branch...}"
#define PARAMS(list) .params = (list), .param_count = CX_COUNT_OF(list)

/* --- parameters ------------------------------------------------------------------------------- */

#define TEXT(param_name, what)                                      \
    {                                                               \
        .name = (param_name), .type = CX_PARAM_TEXT, .help = (what) \
    }
#define FLAG(param_name, what)                                      \
    {                                                               \
        .name = (param_name), .type = CX_PARAM_FLAG, .help = (what) \
    }

static const cx_route_param traces_params[] = {
    TEXT("trace_type", "VERIFY_IDENTITY and the other wakeup types."),
    {.name = "agent_id_hash", .type = CX_PARAM_TEXT, .also = "agent_id", .help = "The agent."},
    TEXT("task_id", "The task."),
    TEXT("thought_id", "The thought."),
    TEXT("selected_action", "SPEAK, TOOL, ..; in any case."),
    TEXT("cognitive_state", "The agent's state."),
    TEXT("domain", "dsdma_domain."),
    TEXT("text", "All of these words in the action rationale."),
    {.name = "from", .type = CX_PARAM_TIME, .help = "At this time or later."},
    {.name = "to", .type = CX_PARAM_TIME, .help = "Before this time."},
    {.name = "verified", .type = CX_PARAM_TRI, .help = "Default true."},
    FLAG("conscience_passed", "Whether the conscience passed."),
    FLAG("overridden", "Whether the action was overridden."),
    FLAG("fragility_flag", "Whether the reasoning was fragile."),
    {.name = "min_plausibility", .type = CX_PARAM_NUMBER, .help = "csdma at least this."},
    {.name = "max_plausibility", .type = CX_PARAM_NUMBER, .help = "csdma at most this."},
    {.name = "level", .type = CX_PARAM_LEVEL, .help = "Highest level shown; default generic."},
    {.name = "limit", .type = CX_PARAM_COUNT, .min = 1, .max = 1000, .help = "Default 100."},
    {.name = "cursor", .type = CX_PARAM_TEXT, .help = "next_cursor of the previous answer."},
};

static const cx_route_param trace_params[] = {
    {.name = "agent_id_hash",
     .type = CX_PARAM_TEXT,
     .also = "agent_id",
     .help = "The agent, when several agents have a trace with this id."},
    {.name = "level", .type = CX_PARAM_LEVEL, .help = "Highest level shown; default the token's."},
    FLAG("raw", "The bytes as they were received."),
};

static const cx_route_param around_params[] = {
    {.name = "agent_id_hash",
     .type = CX_PARAM_TEXT,
     .also = "agent_id",
     .help = "The agent, when several agents have a trace with this id."},
    FLAG("nodes", "With the nodes of its history: reads the agent's whole journal."),
};

static const cx_route_param fleet_params[] = {
    {.name = "days",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = CX_FLEET_DAYS_MAX,
     .help = "Default 30."},
    {.name = "to",
     .type = CX_PARAM_TIME,
     .help = "The last day; default that of the newest trace."},
    TEXT("agent", "Only this agent; default those with most traces in these days."),
};

static const cx_route_param chain_params[] = {
    {.name = "profile",
     .type = CX_PARAM_CHOICE,
     .choices = "auto|spec-1.0|agent",
     .help = "Default auto."},
    {.name = "genesis", .type = CX_PARAM_DIGEST, .help = "Hash before the first entry."},
};

static const cx_route_param alerts_params[] = {
    {.name = "status", .type = CX_PARAM_CHOICE, .choices = "open|all", .help = "Default open."},
    {.name = "limit", .type = CX_PARAM_COUNT, .min = 1, .max = 1000, .help = "Default 100."},
};

#define STATE_PARAMS                                                                              \
    {.name = "strategy",                                                                          \
     .type = CX_PARAM_CHOICE,                                                                     \
     .choices = "lww|confidence|policy|manual",                                                   \
     .help = "How competing values merge; default lww."},                                         \
        {.name = "base", .type = CX_PARAM_CHOICE, .choices = "lca|none", .help = "Default lca."}, \
        {.name = "priority",                                                                      \
         .type = CX_PARAM_TEXT,                                                                   \
         .many = true,                                                                            \
         .help = "AGENT=NUMBER or role:ROLE=NUMBER, for strategy policy."},                       \
    {                                                                                             \
        .name = "role", .type = CX_PARAM_TEXT, .many = true,                                      \
        .help = "AGENT=ROLE; default: agent_role in the event of the agent's newest node."        \
    }
#define NODE_PARAM                                                                          \
    {                                                                                       \
        .name = "node", .type = CX_PARAM_TEXT, .required = true,                            \
        .help = "A node_id, a hash, its first digits, AGENT#SEQ, or @AGENT for the newest." \
    }

static const cx_route_param otel_params[] = {
    TEXT("after", "next_after of the previous answer."),
    {.name = "limit", .type = CX_PARAM_COUNT, .min = 1, .max = 1000, .help = "Default 100."},
};

static const cx_route_param state_params[] = {
    NODE_PARAM, FLAG("inherited", "The state before the node's own changes."), STATE_PARAMS};
static const cx_route_param why_params[] = {
    NODE_PARAM,
    TEXT("key", "A key of memory or beliefs, memory.a.b, or a pointer."),
    TEXT("text", "In place of key: where this text was said before the node."),
    {.name = "section",
     .type = CX_PARAM_CHOICE,
     .choices = "memory|beliefs",
     .help = "Default both."},
    {.name = "reasons",
     .type = CX_PARAM_FLAG,
     .help = "With the reason of each change and its source."},
    STATE_PARAMS};
static const cx_route_param compare_params[] = {
    {.name = "a", .type = CX_PARAM_TEXT, .required = true, .help = "An agent or a node."},
    {.name = "b", .type = CX_PARAM_TEXT, .required = true, .help = "Another one."},
    STATE_PARAMS};
static const cx_route_param show_params[] = {NODE_PARAM};
static const cx_route_param bisect_params[] = {
    NODE_PARAM,
    {.name = "predicate",
     .type = CX_PARAM_TEXT,
     .required = true,
     .help = "A JSON pointer, then nothing, =VALUE, !=VALUE, <N, <=N, >N, >=N or ~TEXT."},
    STATE_PARAMS};
static const cx_route_param render_params[] = {
    {.name = "form",
     .type = CX_PARAM_CHOICE,
     .choices = "json|svg|dot|text",
     .help = "Default json: the layout."},
    FLAG("fold", "Quiet ranges of one agent become one row."),
    {.name = "first", .type = CX_PARAM_COUNT, .max = UINT32_MAX, .help = "First row."},
    {.name = "max", .type = CX_PARAM_COUNT, .min = 1, .max = 100000, .help = "Nodes at most."},
};
static const cx_route_param verify_params[] = {
    FLAG("strict", "Also the four checks that are off by default."),
};

static const cx_route_param entry_params[] = {
    {.name = "actor", .type = CX_PARAM_TEXT, .required = true, .help = "Whose journal."},
    {.name = "seq",
     .type = CX_PARAM_COUNT,
     .max = INT64_MAX,
     .required = true,
     .help = "The entry."},
    {.name = "size",
     .type = CX_PARAM_COUNT,
     .min = 1,
     .max = INT64_MAX,
     .help = "In the journal of this many entries; default all."},
    FLAG("raw", "The proof itself instead of JSON."),
};
static const cx_route_param consistency_params[] = {
    {.name = "actor", .type = CX_PARAM_TEXT, .required = true, .help = "Whose journal."},
    {.name = "from",
     .type = CX_PARAM_COUNT,
     .max = INT64_MAX,
     .required = true,
     .help = "The older size."},
    {.name = "to",
     .type = CX_PARAM_COUNT,
     .max = INT64_MAX,
     .required = true,
     .help = "The newer size."},
    FLAG("raw", "The proof itself instead of JSON."),
};
static const cx_route_param memory_params[] = {
    {.name = "actor", .type = CX_PARAM_TEXT, .required = true, .help = "Whose memories."},
    {.name = "uri",
     .type = CX_PARAM_TEXT,
     .required = true,
     .many = true,
     .help = "Of a memory or of an edge; all of them of one kind."},
    {.name = "at",
     .type = CX_PARAM_COUNT,
     .max = INT64_MAX,
     .help = "As it was in this snapshot; default the newest, which must still be the present "
             "state."},
    FLAG("absent", "Prove that none of them is recorded."),
    FLAG("compact", "Omit hashes that can be computed; the reader must support schema 3."),
    FLAG("raw", "The proof itself instead of JSON."),
};
static const cx_route_param memories_params[] = {
    {.name = "actor", .type = CX_PARAM_TEXT, .required = true, .help = "Whose memories."},
    {.name = "type",
     .type = CX_PARAM_CHOICE,
     .choices = "Identity|Fact|Preference|Belief|Event|Goal|Constraint|Capability|Pattern",
     .help = "Only this type."},
    {.name = "tag", .type = CX_PARAM_TEXT, .many = true, .help = "With all of these tags."},
    TEXT("text", "This text in the memory's forms, in any case (of ASCII letters)."),
    TEXT("words", "Full-text: all of these words, in any case; WORD* is any that begins with it. "
                  "Most salient first, in one page."),
    FLAG("all", "Deleted and expired ones too."),
    {.name = "limit", .type = CX_PARAM_COUNT, .min = 1, .max = 1000, .help = "Default 50."},
    TEXT("after", "`next` of the previous answer: continue after it."),
};
static const cx_route_param memory_one_params[] = {
    {.name = "actor", .type = CX_PARAM_TEXT, .required = true, .help = "Whose memory."},
};
static const cx_route_param snapshots_params[] = {
    {.name = "actor", .type = CX_PARAM_TEXT, .required = true, .help = "Whose state."},
    {.name = "limit", .type = CX_PARAM_COUNT, .min = 1, .max = 1000, .help = "Default 100."},
};
static const cx_route_param object_params[] = {
    {.name = "id",
     .type = CX_PARAM_TEXT,
     .required = true,
     .help = "FILE:LINE, a commit, run, RUN/EVENT, trace, memory, entry ACTOR/SEQ, hash, root or "
             "URI; hashes and ids may be shortened to 8 characters."},
};
static const cx_route_param seed_params[] = {
    {.name = "actor", .type = CX_PARAM_TEXT, .required = true, .help = "Over whose state."},
    {.name = "intent",
     .type = CX_PARAM_TEXT,
     .required = true,
     .help = "The intent's id, a ULID; with scheme matrix-1 any text."},
    {.name = "mtx",
     .type = CX_PARAM_TEXT,
     .required = true,
     .help = "The method's digest, 64 hex digits; with scheme matrix-1 any text."},
    {.name = "model", .type = CX_PARAM_TEXT, .required = true, .help = "The model's id."},
    {.name = "at",
     .type = CX_PARAM_COUNT,
     .max = INT64_MAX,
     .help = "Over this snapshot; default the present state."},
};
static const cx_route_param roots_params[] = {TEXT("actor", "Only this actor's.")};

static const cx_route_param feed_params[] = {
    TEXT("agent_id_hash", "Only this agent's traces."),
    TEXT("after", "Where to continue, as the Last-Event-ID header; 0.0 = from the beginning."),
    FLAG("hints", "Also events `alert`, `run` and `step`: one is new or has changed."),
};

/* --- routes ----------------------------------------------------------------------------------- */

#define READING .scopes = CX_SCOPE_READ, .thread = CX_THREAD_READ
/* Contents in full: a token of a lower level must not see them. */
#define READING_ALL READING, .full_level = true
#define ACTORS "/api/v1/actors/{actor}"
#define WRITING_MEMORY                                                                             \
    .scopes = CX_SCOPE_MEMORY_WRITE, .thread = CX_THREAD_WRITE, .has_body = true, .answers = JSON, \
    .response_type = "MemoryWritten"

const cx_route cx_routes[] = {
    {.method = "POST",
     .path = COVENANT "/events",
     .scopes = CX_SCOPE_WRITE,
     .open_signed = true,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .request_type = "Batch",
     .response_type = "BatchResult",
     .codes = "200 400 413 429 503",
     .handler = cx_api_events,
     .summary = "Record a batch of traces; a 200 response means that accepted traces are durable"},
    {.method = "GET",
     .path = COVENANT "/traces",
     READING,
     PARAMS(traces_params),
     .answers = JSON,
     .response_type = "TraceRows",
     .codes = "200 503",
     .handler = cx_api_traces,
     .summary = "Search traces in the index, newest first"},
    {.method = "GET",
     .path = COVENANT "/traces/{trace_id}",
     READING,
     PARAMS(trace_params),
     .answers = JSON,
     .response_type = "TraceAnswer|ReceivedTrace",
     .codes = "200 404 409 503",
     .handler = cx_api_trace,
     .summary = "One trace with its verdict and its position in the ledger"},
    {.method = "GET",
     .path = COVENANT "/traces/{trace_id}/around",
     READING,
     PARAMS(around_params),
     .answers = JSON,
     .response_type = "TraceAround",
     .codes = "200 404 409 503",
     .handler = cx_api_around,
     .summary = "The agent's traces before and after one, its batch, its nodes"},
    {.method = "POST",
     .path = COVENANT "/check",
     .scopes = CX_SCOPE_READ,
     .thread = CX_THREAD_READ,
     .has_body = true,
     .answers = JSON,
     .request_type = "any",
     .response_type = "TraceCheck",
     .codes = "200 400 413",
     .handler = cx_api_check,
     .summary = "Whether a trace, or each of a batch, would verify; nothing is recorded"},
    {.method = "GET",
     .path = COVENANT "/fleet",
     READING,
     PARAMS(fleet_params),
     .answers = JSON,
     .response_type = "Fleet",
     .codes = "200 503",
     .handler = cx_api_fleet,
     .summary = "All agents, day by day: traces, k_eff, capacity, chains"},
    {.method = "GET",
     .path = COVENANT "/chain/{agent_id_hash}",
     READING,
     PARAMS(chain_params),
     .answers = JSON,
     .response_type = "Chain",
     .codes = "200 404 503",
     .handler = cx_api_chain,
     .summary = "Checks an agent's audit chain"},
    {.method = "GET",
     .path = COVENANT "/wakeup/{agent_id_hash}",
     READING,
     .answers = JSON,
     .response_type = "Wakeup",
     .codes = "200 404 503",
     .handler = cx_api_wakeup,
     .summary = "Which of an agent's five wakeup traces are recorded"},
    {.method = "GET",
     .path = COVENANT "/capacity/{agent_id_hash}",
     READING,
     .answers = JSON,
     .response_type = "Capacity",
     .codes = "200 404 503",
     .handler = cx_api_capacity,
     .summary = "An agent's capacity score, its factors and their inputs"},
    {.method = "POST",
     .path = COVENANT "/public-keys",
     .scopes = CX_SCOPE_KEYS,
     .open_signed = true,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .request_type = "NewKey",
     .response_type = "KeyStatus",
     .codes = "200 201 400 409 413 429 503",
     .handler = cx_api_key_add,
     .summary = "Registers a public key; without a token, where the server allows it, the key "
                "waits until it is approved"},
    {.method = "GET",
     .path = COVENANT "/public-keys",
     .scopes = CX_SCOPE_READ | CX_SCOPE_KEYS,
     .thread = CX_THREAD_READ,
     .answers = JSON,
     .response_type = "Keys",
     .codes = "200 503",
     .handler = cx_api_keys,
     .summary = "All public keys"},
    {.method = "POST",
     .path = COVENANT "/public-keys/{key_id}/revoke",
     .scopes = CX_SCOPE_KEYS,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .request_type = "Revocation",
     .response_type = "KeyStatus",
     .codes = "200 400 404 413 503",
     .handler = cx_api_key_revoke,
     .summary = "Revoke a key: its traces are rejected from now on"},
    {.method = "GET",
     .path = COVENANT "/alerts",
     READING,
     PARAMS(alerts_params),
     .answers = JSON,
     .response_type = "Alerts",
     .codes = "200 503",
     .handler = cx_api_alerts,
     .summary = "Alerts, newest first"},
    /* An agent with write access must not be able to silence alerts about itself. */
    {.method = "POST",
     .path = COVENANT "/alerts/{alert_id}/acknowledge",
     .scopes = CX_SCOPE_KEYS,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .body_optional = true,
     .answers = JSON,
     .request_type = "AlertNote",
     .response_type = "AlertStatus",
     .codes = "200 400 404 413 503",
     .handler = cx_api_alert_acknowledge,
     .summary = "Acknowledge an alert"},
    {.method = "POST",
     .path = COVENANT "/alerts/{alert_id}/resolve",
     .scopes = CX_SCOPE_KEYS,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .body_optional = true,
     .answers = JSON,
     .request_type = "AlertNote",
     .response_type = "AlertStatus",
     .codes = "200 400 404 413 503",
     .handler = cx_api_alert_resolve,
     .summary = "Resolve an alert"},

    {.method = "POST",
     .path = "/api/v1/steps",
     .scopes = CX_SCOPE_WRITE,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .request_type = "Steps",
     .response_type = "StepsResult",
     .codes = "200 400 409 413 429 503",
     .handler = cx_api_steps,
     .summary = "Record steps of agents; the answer means they are durable"},
    {.method = "GET",
     .path = LATTICE "/state",
     READING_ALL,
     PARAMS(state_params),
     .answers = JSON,
     .response_type = "LatticeState",
     .codes = "200 404 503",
     .handler = cx_api_lattice_state,
     .summary = "What an agent knew at a node"},
    {.method = "GET",
     .path = LATTICE "/why",
     READING_ALL,
     PARAMS(why_params),
     .answers = JSON,
     .response_type = "LatticeOrigin",
     .codes = "200 404 503",
     .handler = cx_api_lattice_why,
     .summary = "Every change that led to a value, or where a text was said"},
    {.method = "GET",
     .path = LATTICE "/reach",
     READING_ALL,
     PARAMS(show_params),
     .answers = JSON,
     .response_type = "LatticeReach",
     .codes = "200 404 503",
     .handler = cx_api_lattice_reach,
     .summary = "What a step reached: the steps after it that carry its text"},
    {.method = "GET",
     .path = LATTICE "/heatmap",
     READING_ALL,
     .answers = JSON,
     .response_type = "LatticeHeatmap",
     .codes = "200 404 503",
     .handler = cx_api_lattice_heatmap,
     .summary = "The nodes where histories diverge most"},
    {.method = "GET",
     .path = LATTICE "/compare",
     READING_ALL,
     PARAMS(compare_params),
     .answers = JSON,
     .response_type = "LatticeCompare",
     .codes = "200 404 503",
     .handler = cx_api_lattice_compare,
     .summary = "Where two agents diverge, and how they differ"},
    {.method = "GET",
     .path = LATTICE "/heads",
     READING_ALL,
     .answers = JSON,
     .response_type = "LatticeHeads",
     .codes = "200 404 503",
     .handler = cx_api_lattice_heads,
     .summary = "Each agent's newest node"},
    {.method = "GET",
     .path = LATTICE "/show",
     READING_ALL,
     PARAMS(show_params),
     .answers = JSON,
     .response_type = "LatticeNode",
     .codes = "200 404 503",
     .handler = cx_api_lattice_show,
     .summary = "One node, in full"},
    {.method = "GET",
     .path = LATTICE "/bisect",
     READING_ALL,
     PARAMS(bisect_params),
     .answers = JSON,
     .response_type = "LatticeBisect",
     .codes = "200 404 503",
     .handler = cx_api_lattice_bisect,
     .summary = "The first node where a predicate became true"},
    {.method = "GET",
     .path = LATTICE "/render",
     READING_ALL,
     PARAMS(render_params),
     .answers = JSON,
     .response_type = "LatticePicture",
     .codes = "200 404 503",
     .handler = cx_api_lattice_render,
     .summary = "The history as a picture"},
    {.method = "GET",
     .path = LATTICE "/verify",
     READING_ALL,
     PARAMS(verify_params),
     .answers = JSON,
     .response_type = "LatticeVerify",
     .codes = "200 404 503",
     .handler = cx_api_lattice_verify,
     .summary = "Whether every hash, link and branch holds"},

    {.method = "GET",
     .path = "/api/v1/objects",
     READING_ALL,
     PARAMS(object_params),
     .answers = JSON,
     .response_type = "ObjectAnswer",
     .codes = "200 404 503",
     .handler = cx_api_object,
     .summary = "Any object by its name, with its references"},
    {.method = "GET",
     .path = "/api/v1/why",
     READING_ALL,
     PARAMS(object_params),
     .answers = JSON,
     .response_type = "ProvenanceAnswer",
     .codes = "200 404 503",
     .handler = cx_api_why,
     .summary = "What a line, commit, run, decision or memory came from, step by step"},
    {.method = "GET",
     .path = "/api/v1/evidence",
     READING_ALL,
     PARAMS(object_params),
     .answers = "application/vnd.cortex.evidence",
     .codes = "200 404 409 503",
     .handler = cx_api_evidence,
     .summary = "A self-contained evidence file about a run, trace, commit, memory or session"},
    {.method = "GET",
     .path = "/api/v1/memories",
     READING_ALL,
     PARAMS(memories_params),
     .answers = JSON,
     .response_type = "Memories",
     .codes = "200 404 503",
     .handler = cx_api_memory_list,
     .summary = "An actor's memories, by text, type and tag"},
    {.method = "GET",
     .path = "/api/v1/memories/{id}",
     READING_ALL,
     PARAMS(memory_one_params),
     .answers = JSON,
     .response_type = "MemoryAnswer",
     .codes = "200 404 503",
     .handler = cx_api_memory_show,
     .summary = "One memory, by URI or ULID, with its edges"},

    {.method = "POST",
     .path = ACTORS "/memories",
     WRITING_MEMORY,
     .request_type = "NewMemory",
     .codes = "200 201 400 404 409 413 503",
     .handler = cx_api_memory_write,
     .summary = "Writes a memory, once for each key"},
    {.method = "POST",
     .path = ACTORS "/memories/update",
     WRITING_MEMORY,
     .request_type = "MemoryUpdate",
     .codes = "200 400 404 409 413 503",
     .handler = cx_api_memory_update,
     .summary = "Writes the next version of a memory, if the given one is current"},
    {.method = "POST",
     .path = ACTORS "/memories/labels",
     WRITING_MEMORY,
     .request_type = "MemoryLabels",
     .codes = "200 400 404 409 413 503",
     .handler = cx_api_memory_labels,
     .summary = "Sets a memory's tags, frames, importance or visibility"},
    {.method = "POST",
     .path = ACTORS "/memories/tombstone",
     WRITING_MEMORY,
     .request_type = "MemoryEnd",
     .codes = "200 400 404 409 413 503",
     .handler = cx_api_memory_tombstone,
     .summary = "Ends a memory; its content stays until it is erased"},
    {.method = "POST",
     .path = ACTORS "/edges",
     WRITING_MEMORY,
     .request_type = "NewEdge",
     .codes = "200 400 404 409 413 503",
     .handler = cx_api_edge_add,
     .summary = "Adds an edge between two memories"},
    {.method = "POST",
     .path = ACTORS "/edges/remove",
     WRITING_MEMORY,
     .request_type = "EdgeEnd",
     .codes = "200 400 404 409 413 503",
     .handler = cx_api_edge_remove,
     .summary = "Removes an edge"},
    {.method = "POST",
     .path = ACTORS "/attestations",
     WRITING_MEMORY,
     .request_type = "NewAttestation",
     .codes = "200 400 404 409 413 429 503",
     .handler = cx_api_memory_attest,
     .summary = "Records an outcome and the memories that it rested on"},
    {.method = "POST",
     .path = "/api/v1/scopes",
     .scopes = CX_SCOPE_MEMORY_WRITE,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .request_type = "ScopeToSend",
     .response_type = "ScopeSent",
     .codes = "200 201 400 413 503",
     .handler = cx_api_scope_send,
     .summary = "Sends a signed scope to its grantee"},
    {.method = "GET",
     .path = "/api/v1/scopes",
     .scopes = CX_SCOPE_MEMORY_SCOPED,
     .thread = CX_THREAD_READ,
     .answers = JSON,
     .response_type = "SentScopes",
     .codes = "200 503",
     .handler = cx_api_scopes,
     .summary = "The scopes that were sent to the agent that the token names"},
    {.method = "GET",
     .path = "/api/v1/scopes/{id}",
     .scopes = CX_SCOPE_MEMORY_SCOPED,
     .thread = CX_THREAD_READ,
     .answers = JSON,
     .response_type = "SentScope",
     .codes = "200 404 503",
     .handler = cx_api_scope,
     .summary = "One of them, with its bytes"},
    {.method = "POST",
     .path = "/api/v1/scopes/make",
     READING_ALL,
     .has_body = true,
     .answers = JSON,
     .request_type = "ScopeToMake",
     .response_type = "ScopeDraft",
     .codes = "200 400 404 413 503",
     .handler = cx_api_scope_make,
     .summary = "Writes a scope without its signature: the bytes to sign"},
    {.method = "POST",
     .path = "/api/v1/scopes/check",
     .scopes = CX_SCOPE_MEMORY_SCOPED,
     .thread = CX_THREAD_READ,
     .has_body = true,
     .answers = JSON,
     .request_type = "ScopeShown",
     .response_type = "ScopeVerdict",
     .codes = "200 400 413 503",
     .handler = cx_api_scope_check,
     .summary = "Whether a scope holds, and what it allows"},
    {.method = "POST",
     .path = "/api/v1/scopes/read",
     .scopes = CX_SCOPE_MEMORY_SCOPED,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .request_type = "ScopeRead",
     .response_type = "MemoryAnswer",
     .codes = "200 400 404 409 413 503",
     .handler = cx_api_scope_read,
     .summary = "A memory that a scope allows to read, as of its snapshot"},
    {.method = "POST",
     .path = "/api/v1/scopes/find",
     .scopes = CX_SCOPE_MEMORY_SCOPED,
     .thread = CX_THREAD_READ,
     .has_body = true,
     .answers = JSON,
     .request_type = "ScopeFind",
     .response_type = "Memories",
     .codes = "200 400 404 413 503",
     .handler = cx_api_scope_find,
     .summary = "Memories that a scope allows to read, as of its snapshot"},
    {.method = "POST",
     .path = "/api/v1/scopes/write",
     .scopes = CX_SCOPE_MEMORY_SCOPED,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .request_type = "ScopeWrite",
     .response_type = "MemoryWritten",
     .codes = "200 201 400 404 409 413 503",
     .handler = cx_api_scope_write,
     .summary = "Writes a memory that a writable scope allows"},
    {.method = "POST",
     .path = "/api/v1/scopes/update",
     .scopes = CX_SCOPE_MEMORY_SCOPED,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .request_type = "ScopeUpdate",
     .response_type = "MemoryWritten",
     .codes = "200 400 404 409 413 503",
     .handler = cx_api_scope_update,
     .summary = "Writes the next version of a memory that a writable scope allows"},
    {.method = "POST",
     .path = "/api/v1/scopes/labels",
     .scopes = CX_SCOPE_MEMORY_SCOPED,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .request_type = "ScopeLabels",
     .response_type = "MemoryWritten",
     .codes = "200 400 404 409 413 503",
     .handler = cx_api_scope_labels,
     .summary = "Sets labels of a memory under a writable scope"},

    {.method = "GET",
     .path = "/api/v1/proofs/entry",
     READING_ALL,
     PARAMS(entry_params),
     .answers = JSON,
     .response_type = "EntryProof",
     .codes = "200 404 503",
     .handler = cx_api_proof_entry,
     .summary = "Proves that an entry is in a journal"},
    {.method = "GET",
     .path = "/api/v1/proofs/consistency",
     READING,
     PARAMS(consistency_params),
     .answers = JSON,
     .response_type = "ConsistencyProof",
     .codes = "200 404 503",
     .handler = cx_api_proof_consistency,
     .summary = "Proves that a journal only grew"},
    {.method = "GET",
     .path = "/api/v1/proofs/memory",
     READING_ALL,
     PARAMS(memory_params),
     .answers = JSON,
     .response_type = "MemoryProof",
     .codes = "200 404 409 503",
     .handler = cx_api_proof_memory,
     .summary = "Proves that memories or edges are, or are not, recorded"},
    {.method = "GET",
     .path = "/api/v1/roots",
     READING,
     PARAMS(roots_params),
     .answers = JSON,
     .response_type = "Roots",
     .codes = "200 404 503",
     .handler = cx_api_roots,
     .summary = "The root hashes"},
    {.method = "GET",
     .path = "/api/v1/seed",
     READING,
     PARAMS(seed_params),
     .answers = JSON,
     .response_type = "Seed",
     .codes = "200 404 503",
     .handler = cx_api_seed,
     .summary = "The D11 seed of a compilation over an actor's state"},
    {.method = "GET",
     .path = "/api/v1/snapshots",
     READING,
     PARAMS(snapshots_params),
     .answers = JSON,
     .response_type = "Snapshots",
     .codes = "200 404 503",
     .handler = cx_api_snapshots,
     .summary = "The snapshots of an actor, newest first"},
    {.method = "GET",
     .path = "/api/v1/checkpoints",
     READING,
     .answers = JSON,
     .response_type = "Checkpoints",
     .codes = "200 503",
     .handler = cx_api_checkpoints,
     .summary = "The newest signed checkpoint of each origin"},
    {.method = "GET",
     .path = "/api/v1/feed",
     .scopes = CX_SCOPE_READ,
     .thread = CX_THREAD_ANY,
     PARAMS(feed_params),
     .answers = "text/event-stream",
     .codes = "200 503",
     .handler = cx_api_feed,
     .summary = "Newly recorded traces, as they come (server-sent events)"},

    {.method = "GET",
     .path = "/api/v1/writer",
     .scopes = CX_SCOPE_HOME_WRITE,
     .thread = CX_THREAD_ANY,
     .codes = "101 426 501",
     .handler = cx_api_writer,
     .summary = "Upgrade: cortex-writer. From then on the connection speaks the protocol by which "
                "commands write through the process that owns the data directory"},

    CX_ROUTES_OF_RUNS CX_ROUTES_OF_SESSIONS CX_ROUTES_OF_PAGE

    {.method = "GET",
     .path = "/api/v1/nodes",
     READING,
     .answers = JSON,
     .response_type = "FleetNodes",
     .codes = "200",
     .handler = cx_api_nodes,
     .summary = "The fleet that serves this part: parts, who has them, nodes, "
                "events, and how far derived tables lag"},
    {.method = "POST",
     .path = "/mcp",
     .scopes = CX_SCOPE_READ | CX_SCOPE_RUN_READ,
     .thread = CX_THREAD_READ,
     .has_body = true,
     .answers = JSON,
     .request_type = "any",
     .response_type = "any",
     .codes = "200 202 400 413",
     .handler = cx_api_mcp,
     .summary = "The Model Context Protocol: the GET endpoints of this table as tools"},

    {.method = "GET",
     .path = "/api/v1/otel/traces",
     READING_ALL,
     PARAMS(otel_params),
     .answers = JSON,
     .response_type = "OtelTraces",
     .codes = "200",
     .handler = cx_api_otel_traces,
     .summary = "Traces that OpenTelemetry exporters sent; each is the branch otel/TRACE_ID"},
    {.method = "GET",
     .path = "/api/v1/archived",
     READING_ALL,
     .answers = JSON,
     .response_type = "ArchivedSessions",
     .codes = "200",
     .handler = cx_api_archived,
     .summary = "Archived sessions of coding agents; each is the branch session/ID"},

    {.method = "POST",
     .path = "/v1/traces",
     .otlp = true,
     .scopes = CX_SCOPE_WRITE,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .codes = "200 400 413 429 503",
     .handler = cx_api_otlp_traces,
     .summary = "Spans of an OpenTelemetry exporter"},
    {.method = "POST",
     .path = "/v1/logs",
     .otlp = true,
     .scopes = CX_SCOPE_WRITE,
     .thread = CX_THREAD_WRITE,
     .has_body = true,
     .answers = JSON,
     .codes = "200 400 413 429 503",
     .handler = cx_api_otlp_logs,
     .summary = "Log records of an OpenTelemetry exporter"},

    {.method = "GET",
     .path = "/healthz",
     .without_ledger = true,
     .open = true,
     .any_query = true,
     .thread = CX_THREAD_ANY,
     .answers = JSON,
     .response_type = "Health",
     .codes = "200",
     .handler = cx_api_healthz,
     .summary = "Liveness: the process answers"},
    {.method = "GET",
     .path = "/readyz",
     .without_ledger = true,
     .open = true,
     .any_query = true,
     .thread = CX_THREAD_ANY,
     .answers = JSON,
     .response_type = "Ready",
     .codes = "200 503",
     .handler = cx_api_readyz,
     .summary = "Readiness: batches can be recorded"},
    {.method = "GET",
     .path = "/metrics",
     .thread = CX_THREAD_ANY,
     .answers = "text/plain; version=0.0.4; charset=utf-8",
     .codes = "200",
     .handler = cx_api_metrics,
     .summary = "Metrics for Prometheus"},
    {.method = "GET",
     .path = "/openapi.json",
     .without_ledger = true,
     .thread = CX_THREAD_ANY,
     .answers = JSON,
     .response_type = "any",
     .codes = "200",
     .handler = cx_api_openapi,
     .summary = "This table, as OpenAPI 3.1"},
};
const size_t cx_route_count = CX_COUNT_OF(cx_routes);

_Static_assert(CX_COUNT_OF(cx_routes) <= CX_METRICS_ROUTES_MAX, "metrics have a place for each");

size_t cx_route_index(const cx_route *route)
{
    return route == NULL ? cx_route_count : (size_t)(route - cx_routes);
}

/* --- finding ---------------------------------------------------------------------------------- */

/* The next segment of a pattern; data NULL after the last one. */
static cx_str next_part(const char **pattern)
{
    if (**pattern == 0)
        return (cx_str){NULL, 0};
    const char *start = *pattern + 1; /* after the slash */
    const char *end = strchr(start, '/');
    size_t size = end == NULL ? strlen(start) : (size_t)(end - start);
    *pattern = start + size;
    return cx_str_from(start, size);
}

static size_t parts_left(const char *pattern)
{
    size_t count = 0;
    while (next_part(&pattern).data != NULL)
        count++;
    return count;
}

/* Other names of the segment after /api/v1/: one of other agents' servers, one of version 0.1. */
static const struct {
    const char *name, *also;
} segment_aliases[] = {{"covenant", "accord"}, {"objects", "things"}};

static bool segment_matches(cx_str part, cx_str segment, size_t at)
{
    if (cx_str_eq(part, segment))
        return true;
    for (size_t i = 0; at == 2 && i < CX_COUNT_OF(segment_aliases); i++)
        if (cx_str_is(part, segment_aliases[i].name) && cx_str_is(segment, segment_aliases[i].also))
            return true;
    return false;
}

static bool match_route(const cx_route *route, cx_call *call)
{
    const cx_target *target = &call->target;
    const char *pattern = route->path;
    size_t at = 0;
    call->capture_count = 0;
    for (cx_str part; (part = next_part(&pattern)).data != NULL;) {
        if (part.size == 0) /* "/" alone */
            break;
        if (route->has_short_path && at == 1 && cx_str_is(part, "v1") &&
            (at == target->segment_count || !cx_str_is(target->segments[at], "v1")))
            continue;
        size_t left = target->segment_count - at, take = 1;
        if (cx_str_ends(part, CX_STR("...}"))) {
            size_t after_count = parts_left(pattern);
            take = left > after_count ? left - after_count : 0;
        }
        if (take == 0 || take > left)
            return false;
        cx_str first = target->segments[at], last = target->segments[at + take - 1];
        if (part.size != 0 && part.data[0] == '{')
            call->captures[call->capture_count++] =
                cx_str_from(first.data, (size_t)(last.data + last.size - first.data));
        else if (!segment_matches(part, first, at))
            return false;
        at += take;
    }
    return at == target->segment_count;
}

static bool is_method(cx_str method, const char *of_route)
{
    return cx_str_is(method, of_route) ||
           (cx_str_is(method, "HEAD") && strcmp(of_route, "GET") == 0);
}

cx_route_found cx_route_find(cx_call *call, char *allow, size_t allow_size)
{
    size_t used = 0;
    allow[0] = 0;
    for (size_t i = 0; i < cx_route_count; i++) {
        const cx_route *route = &cx_routes[i];
        if (route->otlp != call->request.otlp || !match_route(route, call))
            continue;
        if (is_method(call->request.method, route->method)) {
            call->route = route;
            return CX_ROUTE_FOUND;
        }
        int size = snprintf(allow + used, allow_size - used, "%s%s", used == 0 ? "" : ", ",
                            strcmp(route->method, "GET") == 0 ? "GET, HEAD" : route->method);
        CX_ASSERT(size > 0 && (size_t)size < allow_size - used);
        used += (size_t)size;
    }
    return used == 0 ? CX_ROUTE_NO_PATH : CX_ROUTE_NO_METHOD;
}
