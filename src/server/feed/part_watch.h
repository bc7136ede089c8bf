/*
 * part_watch.h - the fleet that a served part belongs to, as its database says: parts, nodes,
 * leases, events (docs/fleet.md).
 *
 *   PW1  The database is asked by a thread of its own, every two seconds: no request waits for it.
 *   PW2  Only a node of the part "main" is told of other parts: a part is a tenant's.
 */
#ifndef CX_SERVER_FEED_PART_WATCH_H
#define CX_SERVER_FEED_PART_WATCH_H

#include "base/api.h"

typedef struct cx_part_watch cx_part_watch;

/* Connections at the node's own address, as its parent says. */
typedef struct cx_relay_counts {
    uint64_t open, held, own; /* now: all, without a server, at this server */
    uint64_t accepted, given_up, refused;
} cx_relay_counts;

typedef struct cx_part_watch_options {
    const char *url;  /* of the database; the texts outlive the watch */
    cx_str part;      /* that is served here */
    const char *node; /* by the node of this name; NULL = by none */
    /* Of this process; any may be NULL. */
    void (*relay)(void *arg, cx_relay_counts *out);
    /* Milliseconds since the tables were written to the database; false = not by this process. */
    bool (*tables_age)(void *arg, uint64_t *out_ms);
    void *arg;
} cx_part_watch_options;

typedef struct cx_watched_part {
    uint64_t number, epoch, commits, bytes, files, fences;
    uint64_t handed;        /* times that it was to go to another node */
    uint64_t quota, stored; /* bytes of its log: allowed, 0 = any; and had, 0 without a quota */
    uint8_t id[16];
    cx_str name, node, address, moved_to; /* node: of the process that has it; empty = none has */
    cx_str going_to;                      /* the node that it is being handed over to */
    int64_t lease_left_ms;
    bool stopped;
} cx_watched_part;

typedef struct cx_watched_node {
    cx_str name, part, address, version;
    int64_t silent_ms, up_ms;
    bool draining, alive, has_relay;
    cx_relay_counts relay; /* of its own address, as it said last */
} cx_watched_node;

/* As cx_fleet_event (fleet/fleet.h). */
typedef struct cx_watched_event {
    cx_str part, node, kind, detail, at;
    uint64_t epoch;
    int64_t ago_ms; /* when the database was asked */
    bool ended_lease;
} cx_watched_event;

#define CX_WATCHED_EVENTS_MAX 50

typedef struct cx_watched_fleet {
    bool known;      /* it was asked once with success: what follows is of then */
    bool away;       /* the last question failed */
    uint64_t age_ms; /* since the last one that succeeded */
    uint8_t id[16];
    bool strict;
    cx_str part;
    const char *node;
    const cx_watched_part *parts;
    const cx_watched_node *nodes;
    const cx_watched_event *events; /* the newest first */
    size_t part_count, node_count, event_count;
    cx_relay_counts relay;
    bool has_tables_age;
    uint64_t tables_age_ms;
} cx_watched_fleet;

CX_RESULT cx_part_watch_open(const cx_part_watch_options *options, cx_part_watch **out,
                             cx_err *err);
void cx_part_watch_close(cx_part_watch *watch); /* NULL is accepted */
/* A copy in the arena. */
CX_RESULT cx_part_watch_read(cx_part_watch *watch, cx_arena *arena, cx_watched_fleet *out,
                             cx_err *err);

#endif
