/*
 * api_nodes.c - the fleet that the served part belongs to: parts, nodes, events and lag, as JSON
 * and as metrics.
 */
#include <stdio.h>

#include "json/api.h"
#include "ledger/api.h"
#include "server/api/fleet_metrics.h"
#include "server/feed/part_watch.h"
#include "server/route.h"

/* A node whose last process was killed has two rows for a while: the newest one counts. */
static bool is_newest(const cx_watched_fleet *fleet, size_t at)
{
    for (size_t i = at + 1; i < fleet->node_count; i++)
        if (cx_str_eq(fleet->nodes[i].name, fleet->nodes[at].name) &&
            cx_str_eq(fleet->nodes[i].part, fleet->nodes[at].part))
            return false;
    return true;
}

static bool owns(const cx_watched_part *part, const cx_watched_node *node)
{
    return part->node.size != 0 && cx_str_eq(part->node, node->name) &&
           cx_str_eq(part->name, node->part);
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* null where the part has no quota. */
static void put_limit(cx_json_list *json, const char *name, const cx_watched_part *part,
                      uint64_t value)
{
    if (part->quota == 0)
        cx_json_put_null(json, name);
    else
        cx_json_put_uint(json, name, value);
}

/* Where clients reach the node that has the part. */
static cx_str address_of(const cx_watched_fleet *fleet, const cx_watched_part *part)
{
    for (size_t i = fleet->node_count; i-- > 0;)
        if (owns(part, &fleet->nodes[i]))
            return fleet->nodes[i].address;
    return CX_STR("");
}

static void put_part(cx_json_list *parts, const cx_watched_fleet *fleet,
                     const cx_watched_part *part)
{
    cx_json_list json = cx_json_list_begin(parts->arena);
    cx_json_put_maybe(&json, "address", address_of(fleet, part));
    cx_json_put_uint(&json, "bytes_written", part->bytes);
    cx_json_put_uint(&json, "commits", part->commits);
    cx_json_put_uint(&json, "epoch", part->epoch);
    cx_json_put_uint(&json, "fences", part->fences);
    cx_json_put_uint(&json, "files", part->files);
    cx_json_put_maybe(&json, "going_to", part->going_to);
    cx_json_put_uint(&json, "handed", part->handed);
    cx_json_put_hex(&json, "id", cx_bytes_from(part->id, sizeof part->id));
    cx_json_put_int(&json, "lease_left_ms", part->lease_left_ms);
    cx_json_put_bool(&json, "moved", part->moved_to.size != 0);
    cx_json_put_str(&json, "name", part->name);
    cx_json_put_maybe(&json, "node", part->node);
    cx_json_put_uint(&json, "part", part->number);
    put_limit(&json, "quota_bytes", part, part->quota);
    cx_json_put_bool(&json, "served", part->address.size != 0);
    cx_json_put_bool(&json, "stopped", part->stopped);
    put_limit(&json, "stored_bytes", part, part->stored);
    cx_json_add_object(parts, &json);
}

/* What a node that can be reckoned with does for its part. */
static const char *role_of(const cx_watched_fleet *fleet, size_t at)
{
    const cx_watched_node *node = &fleet->nodes[at];
    if (!node->alive || !is_newest(fleet, at))
        return NULL;
    for (size_t i = 0; i < fleet->part_count; i++)
        if (owns(&fleet->parts[i], node))
            return fleet->parts[i].address.size != 0 ? "serves" : "opens";
    return node->draining ? NULL : "waits";
}

static void put_connections(cx_json_list *json, const cx_relay_counts *relay)
{
    cx_json_list counts = cx_json_list_begin(json->arena);
    uint64_t here = relay->held + relay->own;
    cx_json_put_uint(&counts, "accepted", relay->accepted);
    cx_json_put_uint(&counts, "given_up", relay->given_up);
    cx_json_put_uint(&counts, "held", relay->held);
    cx_json_put_uint(&counts, "other", relay->open > here ? relay->open - here : 0);
    cx_json_put_uint(&counts, "own", relay->own);
    cx_json_put_uint(&counts, "refused", relay->refused);
    cx_json_put_object(json, "connections", &counts);
}

static void put_node(cx_json_list *nodes, const cx_watched_fleet *fleet, size_t at)
{
    const cx_watched_node *node = &fleet->nodes[at];
    cx_json_list json = cx_json_list_begin(nodes->arena);
    const char *role = role_of(fleet, at);
    cx_json_put_str(&json, "address", node->address);
    if (node->has_relay)
        put_connections(&json, &node->relay);
    else
        cx_json_put_null(&json, "connections");
    cx_json_put_bool(&json, "draining", node->draining);
    cx_json_put_str(&json, "node", node->name);
    cx_json_put_str(&json, "part", node->part);
    cx_json_put_maybe(&json, "role", role == NULL ? CX_STR("") : cx_str_z(role));
    cx_json_put_int(&json, "silent_ms", node->silent_ms);
    cx_json_put_z(&json, "state", !node->alive ? "silent" : node->draining ? "drains" : "up");
    cx_json_put_int(&json, "up_ms", node->up_ms);
    cx_json_put_str(&json, "version", node->version);
    cx_json_add_object(nodes, &json);
}

static void put_event(cx_json_list *events, const cx_watched_event *event)
{
    cx_json_list json = cx_json_list_begin(events->arena);
    cx_json_put_int(&json, "ago_ms", event->ago_ms);
    cx_json_put_str(&json, "at", event->at);
    cx_json_put_maybe(&json, "detail", event->detail);
    cx_json_put_bool(&json, "ended_lease", event->ended_lease);
    cx_json_put_uint(&json, "epoch", event->epoch);
    cx_json_put_str(&json, "kind", event->kind);
    cx_json_put_maybe(&json, "node", event->node);
    cx_json_put_maybe(&json, "part", event->part);
    cx_json_add_object(events, &json);
}

/* How far what is derived from the log of the served part lags. */
static cx_status put_lag(cx_json_list *json, const cx_watched_fleet *fleet, cx_recorder *recorder,
                         cx_err *err)
{
    cx_json_list lag = cx_json_list_begin(json->arena);
    cx_tables_status tables;
    cx_feed_status feed;
    CX_TRY(cx_home_tables_status(cx_recorder_home(recorder), &tables, err));
    cx_recorder_feed_get_status(recorder, &feed);
    cx_json_put_bool(&lag, "index_away", feed.away || !feed.running);
    cx_json_put_uint(&lag, "index_commits", feed.index_commits);
    cx_json_put_uint(&lag, "log_commits", tables.log_commits);
    cx_json_put_uint(&lag, "table_commits", tables.table_commits);
    if (fleet->has_tables_age)
        cx_json_put_uint(&lag, "tables_age_ms", fleet->tables_age_ms);
    else
        cx_json_put_null(&lag, "tables_age_ms");
    cx_json_put_object(json, "lag", &lag);
    return CX_SUCCESS;
}

static cx_status answer(cx_call *call, const cx_watched_fleet *fleet, bool is_part, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(call->arena), parts = cx_json_list_begin(call->arena);
    cx_json_list nodes = cx_json_list_begin(call->arena), events = cx_json_list_begin(call->arena);
    cx_json value;
    for (size_t i = 0; i < fleet->part_count; i++)
        put_part(&parts, fleet, &fleet->parts[i]);
    for (size_t i = 0; i < fleet->node_count; i++)
        put_node(&nodes, fleet, i);
    for (size_t i = 0; i < fleet->event_count; i++)
        put_event(&events, &fleet->events[i]);
    if (fleet->known)
        cx_json_put_uint(&json, "age_ms", fleet->age_ms);
    else
        cx_json_put_null(&json, "age_ms");
    cx_json_put_bool(&json, "away", fleet->away);
    if (is_part)
        put_connections(&json, &fleet->relay);
    else
        cx_json_put_null(&json, "connections");
    cx_json_put_array(&json, "events", &events);
    if (fleet->known)
        cx_json_put_hex(&json, "fleet", cx_bytes_from(fleet->id, sizeof fleet->id));
    else
        cx_json_put_null(&json, "fleet");
    if (is_part && call->service->recorder != NULL)
        CX_TRY(put_lag(&json, fleet, call->service->recorder, err));
    else
        cx_json_put_null(&json, "lag");
    cx_json_put_maybe(&json, "node", fleet->node == NULL ? CX_STR("") : cx_str_z(fleet->node));
    cx_json_put_array(&json, "nodes", &nodes);
    cx_json_put_maybe(&json, "part", fleet->part);
    cx_json_put_array(&json, "parts", &parts);
    cx_json_put_bool(&json, "strict", fleet->strict);
    CX_TRY(cx_json_list_end_object(&json, &value, err));
    return cx_call_answer_json(call, 200, &value, err);
}

cx_status cx_api_nodes(cx_call *call, cx_err *err)
{
    cx_part_watch *watch = call->service->options.watch;
    cx_watched_fleet fleet = {.known = false};
    if (watch != NULL)
        CX_TRY(cx_part_watch_read(watch, call->arena, &fleet, err));
    return answer(call, &fleet, watch != NULL, err);
}

/* --- metrics ---------------------------------------------------------------------------------- */

static void write_one(cx_buf *out, const char *name, const char *type, const char *help,
                      uint64_t value)
{
    cx_metrics_head(out, name, type, help);
    cx_metrics_value(out, name, NULL, value);
}

/* A name may be anything that a node was given. */
static void escape(cx_str text, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < text.size && used + 2 < size; i++) {
        char ch = text.data[i];
        if (ch == '"' || ch == '\\')
            out[used++] = '\\';
        out[used++] = ch >= ' ' && ch <= '~' ? ch : '?';
    }
    out[used] = 0;
}

typedef struct part_metric {
    const char *name, *type, *help;
    uint64_t (*of)(const cx_watched_part *part);
    bool of_quota; /* parts without one have no line */
} part_metric;

static uint64_t epoch_of(const cx_watched_part *part)
{
    return part->epoch;
}
static uint64_t commits_of(const cx_watched_part *part)
{
    return part->commits;
}
static uint64_t bytes_of(const cx_watched_part *part)
{
    return part->bytes;
}
static uint64_t quota_of(const cx_watched_part *part)
{
    return part->quota;
}
static uint64_t stored_of(const cx_watched_part *part)
{
    return part->stored;
}
static uint64_t lease_of(const cx_watched_part *part)
{
    return (uint64_t)part->lease_left_ms / 1000;
}
static uint64_t served_of(const cx_watched_part *part)
{
    return part->address.size != 0;
}
static uint64_t handed_of(const cx_watched_part *part)
{
    return part->handed;
}
static uint64_t going_of(const cx_watched_part *part)
{
    return part->going_to.size != 0;
}
static uint64_t stopped_of(const cx_watched_part *part)
{
    return part->stopped;
}

static const part_metric part_metrics[] = {
    {"cortex_fleet_part_epoch", "gauge", "Times that a process has taken the part.", epoch_of,
     false},
    {"cortex_fleet_part_commits_total", "counter", "Commits of the part.", commits_of, false},
    {"cortex_fleet_part_written_bytes_total", "counter", "Bytes written into files of the part.",
     bytes_of, false},
    {"cortex_fleet_part_lease_seconds", "gauge", "What is left of the owner's lease.", lease_of,
     false},
    {"cortex_fleet_part_quota_bytes", "gauge", "What the log of the part may have.", quota_of,
     true},
    {"cortex_fleet_part_stored_bytes", "gauge", "What it has, of a part with a quota.", stored_of,
     true},
    {"cortex_fleet_part_served", "gauge", "1 while a node serves the part.", served_of, false},
    {"cortex_fleet_part_handed_total", "counter",
     "Times that the part was to go to a node with fewer.", handed_of, false},
    {"cortex_fleet_part_going", "gauge", "1 while it is handed over to another node.", going_of,
     false},
    {"cortex_fleet_part_stopped", "gauge", "1 until an operator accepts its state.", stopped_of,
     false}};

static void write_parts(cx_buf *out, const cx_watched_fleet *fleet)
{
    char labels[320], id[33] = "", node[2 * 64 + 1];
    cx_metrics_head(out, "cortex_fleet_part_info", "gauge", "A part, its id and its owner.");
    for (size_t i = 0; i < fleet->part_count; i++) {
        const cx_watched_part *part = &fleet->parts[i];
        cx_hex_encode(cx_bytes_from(part->id, sizeof part->id), id);
        escape(part->node, node, sizeof node);
        (void)snprintf(labels, sizeof labels, "part=\"%.*s\",id=\"%s\",node=\"%s\"",
                       (int)part->name.size, part->name.data, id, node);
        cx_metrics_value(out, "cortex_fleet_part_info", labels, 1);
    }
    for (size_t m = 0; m < CX_COUNT_OF(part_metrics); m++) {
        const part_metric *metric = &part_metrics[m];
        cx_metrics_head(out, metric->name, metric->type, metric->help);
        for (size_t i = 0; i < fleet->part_count; i++) {
            if (metric->of_quota && fleet->parts[i].quota == 0)
                continue;
            (void)snprintf(labels, sizeof labels, "part=\"%.*s\"", (int)fleet->parts[i].name.size,
                           fleet->parts[i].name.data);
            cx_metrics_value(out, metric->name, labels, metric->of(&fleet->parts[i]));
        }
    }
}

static bool is_alive(const cx_watched_node *node)
{
    return node->alive;
}
static bool is_draining(const cx_watched_node *node)
{
    return node->draining;
}

static void write_node_lines(cx_buf *out, const cx_watched_fleet *fleet, const char *name,
                             bool (*is)(const cx_watched_node *node))
{
    char labels[320], node[2 * 64 + 1];
    for (size_t i = 0; i < fleet->node_count; i++) {
        const cx_watched_node *row = &fleet->nodes[i];
        if (!is_newest(fleet, i))
            continue;
        escape(row->name, node, sizeof node);
        (void)snprintf(labels, sizeof labels, "node=\"%s\",part=\"%.*s\"", node,
                       (int)row->part.size, row->part.data);
        uint64_t silent_s = row->silent_ms < 0 ? 0 : (uint64_t)row->silent_ms / 1000;
        cx_metrics_value(out, name, labels, is == NULL ? silent_s : is(row));
    }
}

/* Of those that are there and tell. */
static void write_node_connections(cx_buf *out, const cx_watched_fleet *fleet)
{
    static const char name[] = "cortex_fleet_node_connections";
    char labels[320], node[2 * 64 + 1];
    cx_metrics_head(out, name, "gauge", "Connections at the address of a node, by where they are.");
    for (size_t i = 0; i < fleet->node_count; i++) {
        const cx_watched_node *row = &fleet->nodes[i];
        const cx_relay_counts *of = &row->relay;
        uint64_t here = of->held + of->own;
        const struct {
            const char *to;
            uint64_t count;
        } lines[] = {
            {"own", of->own}, {"other", of->open > here ? of->open - here : 0}, {"held", of->held}};
        if (!row->has_relay || !row->alive || !is_newest(fleet, i))
            continue;
        escape(row->name, node, sizeof node);
        for (size_t k = 0; k < CX_COUNT_OF(lines); k++) {
            (void)snprintf(labels, sizeof labels, "node=\"%s\",part=\"%.*s\",to=\"%s\"", node,
                           (int)row->part.size, row->part.data, lines[k].to);
            cx_metrics_value(out, name, labels, lines[k].count);
        }
    }
}

static void write_nodes(cx_buf *out, const cx_watched_fleet *fleet)
{
    cx_metrics_head(out, "cortex_fleet_node_alive", "gauge", "1 while the node says it is there.");
    write_node_lines(out, fleet, "cortex_fleet_node_alive", is_alive);
    cx_metrics_head(out, "cortex_fleet_node_draining", "gauge", "1 while an operator drains it.");
    write_node_lines(out, fleet, "cortex_fleet_node_draining", is_draining);
    cx_metrics_head(out, "cortex_fleet_node_silent_seconds", "gauge",
                    "Since it said last that it is there.");
    write_node_lines(out, fleet, "cortex_fleet_node_silent_seconds", NULL);
    write_node_connections(out, fleet);
}

static void write_connections(cx_buf *out, const cx_relay_counts *relay)
{
    uint64_t here = relay->held + relay->own;
    cx_metrics_head(out, "cortex_fleet_connections", "gauge",
                    "Connections at this node's own address, by where they are.");
    cx_metrics_value(out, "cortex_fleet_connections", "to=\"own\"", relay->own);
    cx_metrics_value(out, "cortex_fleet_connections", "to=\"other\"",
                     relay->open > here ? relay->open - here : 0);
    cx_metrics_value(out, "cortex_fleet_connections", "to=\"held\"", relay->held);
    write_one(out, "cortex_fleet_connections_total", "counter",
              "Connections that this node has accepted.", relay->accepted);
    write_one(out, "cortex_fleet_connections_given_up_total", "counter",
              "Connections for which no server was found in time.", relay->given_up);
    write_one(out, "cortex_fleet_connections_refused_total", "counter",
              "Connections beyond the limit of one address.", relay->refused);
}

cx_status cx_api_fleet_metrics(cx_call *call, cx_err *err)
{
    cx_part_watch *watch = call->service->options.watch;
    cx_watched_fleet fleet;
    cx_buf *out = &call->response.body;
    if (watch == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_part_watch_read(watch, call->arena, &fleet, err));
    write_one(out, "cortex_fleet_away", "gauge", "1 while the fleet's database does not answer.",
              fleet.away || !fleet.known);
    if (fleet.known && !fleet.away) {
        write_parts(out, &fleet);
        write_nodes(out, &fleet);
    }
    write_connections(out, &fleet.relay);
    if (fleet.has_tables_age)
        write_one(out, "cortex_fleet_tables_age_seconds", "gauge",
                  "Since this part's tables were written to the database.",
                  fleet.tables_age_ms / 1000);
    return CX_SUCCESS;
}
