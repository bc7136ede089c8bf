/*
 * serve_fleet.h - `cortex serve --fleet`: a node of a fleet, which is two processes.
 *
 *   serve_fleet.c    the parent: holds the public address, and hands connections on (os/forward)
 *   serve_process.c  .. starts and ends the worker, and starts it again
 *   serve_watch.c    .. asks the worker whether it is ready
 *   serve_node.c     .. tells the database of the node, asks it where the part is served, and ends
 *                    the leases of workers that are dead
 *   serve_worker.c   the worker: `cortex serve` of the part, which it takes first
 *
 *   N1  The worker answers only while the part is its own.  When it is lost the process ends at
 *       once.
 *   N2  The worker ends with the parent, and when the parent does nothing any more: its standard
 *       input is a pipe on which the parent says every second that it is there.  Where the system
 *       can, it is killed with it.
 *   N3  The parent never waits for the database where connections would wait for it: the database
 *       is asked by a thread of its own.
 *   N4  A worker that does not answer is killed.  When a worker is dead, and only then, its lease
 *       is ended without waiting; that it is the dead one's is told by an owner that no other
 *       worker ever had, and safety does not rest on it (F1).
 *   N5  A part that is handed over to another node (fleet/balance.c) is given back as for an
 *       operator who drains; when no one has it soon after, this node takes it again.
 */
#ifndef CX_CLI_FLEET_SERVE_FLEET_H
#define CX_CLI_FLEET_SERVE_FLEET_H

#include <signal.h>

#include "cli/cli.h"
#include "fleet/api.h"
#include "os/api.h"
#include "server/api.h"

/* All of `cortex serve` when it has --fleet. */
int cx_cli_serve_fleet(cx_cli *cli, const cx_cli_args *args);

/* --- serve_worker.c --------------------------------------------------------------------------- */

/* Set for the worker by its parent: "NODE ADDRESS PORT OWNER". */
#define CX_SERVE_WORKER_ENV "CORTEX_FLEET_WORKER"

typedef struct cx_serve_worker {
    bool is_one;         /* else the rest is empty, and nothing of it is done */
    const char *node;    /* its name */
    const char *address; /* where other nodes reach the parent */
    uint16_t port;       /* which clients use */
    const char *owner;   /* as which it takes the part */
    uint32_t lease_ms;   /* 0 = default */
} cx_serve_worker;

/* Whether this process is the worker of a node. */
CX_RESULT cx_serve_worker_read(cx_cli *cli, cx_serve_worker *out, cx_err *err);
/* Waits until the part that $CORTEX_HOME names is free, and opens it (cx_cli_part_open); what was
 * open of it is closed first.  No transaction is open while it waits.  CX_E_BUSY "ToldToEnd": one
 * of `ends` came. */
CX_RESULT cx_serve_worker_open(cx_cli *cli, const cx_serve_worker *worker, const sigset_t *ends,
                               const char **out_path, cx_err *err);
bool cx_serve_worker_was_told(const cx_err *err);
/* From now on silence on standard input is a SIGTERM, as its end is (N2); what comes is answered
 * with a line feed on standard output (N4). */
CX_RESULT cx_serve_worker_follow(const cx_serve_worker *worker, cx_err *err);
/* What the parent said last of its connections; zeros before. */
void cx_serve_worker_relay(void *arg, cx_relay_counts *out);
/* The part is served: others may connect. */
CX_RESULT cx_serve_worker_publish(cx_cli *cli, const cx_serve_worker *worker, cx_err *err);

/* --- serve_watch.c ---------------------------------------------------------------------------- */

typedef struct cx_serve_watch {
    cx_thread thread;
    cx_lock lock;
    /* Under the lock. */
    bool ends, asks;
    cx_tcp_address address;
    unsigned round;           /* of which worker the answers are */
    unsigned silent, unready; /* questions in a row without an answer; with the answer 503 */
} cx_serve_watch;

CX_RESULT cx_serve_watch_open(cx_serve_watch *watch, cx_err *err);
/* Asks another worker from now on, once a second; NULL = none. */
void cx_serve_watch_at(cx_serve_watch *watch, const cx_tcp_address *address);
void cx_serve_watch_count(cx_serve_watch *watch, unsigned *out_silent, unsigned *out_unready);
void cx_serve_watch_close(cx_serve_watch *watch);

/* --- serve_process.c -------------------------------------------------------------------------- */

typedef enum cx_serve_state {
    CX_SERVE_NONE,     /* there is no worker */
    CX_SERVE_WAITING,  /* it waits for the part, or opens it */
    CX_SERVE_READY,    /* it listens */
    CX_SERVE_ARRIVING, /* connections that are on their way to it arrive */
    CX_SERVE_ENDING    /* it was told to end */
} cx_serve_state;

#define CX_SERVE_WORKER_ENV_SIZE (sizeof CX_SERVE_WORKER_ENV + CX_FLEET_ADDRESS_MAX + 256)

typedef struct cx_serve_node cx_serve_node;

typedef struct cx_serve_process {
    cx_cli *cli;
    cx_serve_node *node;
    const char *const *argv;
    const char *const *envp; /* one of them is `env` */
    const char *name, *node_address;
    uint16_t client_port;
    char env[CX_SERVE_WORKER_ENV_SIZE]; /* of the worker that is started */
    char owner[CX_FLEET_OWNER_SIZE];    /* .. as which it takes the part */
    uint32_t grace_ms;
    unsigned silent_s; /* a worker that does not answer for so long is killed */
    cx_serve_watch watch;
    unsigned unheard; /* seconds since the worker answered on its output */
    cx_spawn_child *child;
    cx_serve_state state;
    cx_tcp_address address; /* while it is CX_SERVE_READY or CX_SERVE_ARRIVING */
    uint64_t start_ns;      /* not before */
    uint64_t ready_ns, until_ns, said_ns;
    uint32_t delay_ms;
    cx_forward_counts counts; /* which the worker is told */
    bool was_ready, fails;    /* it had the part once; its options are refused */
} cx_serve_process;

/* Does what is due, and waits for at most `wait_ms`.  `own` connections are at the worker. */
void cx_serve_process_step(cx_serve_process *process, bool wanted, uint64_t own, uint32_t wait_ms);
/* Kills it. */
void cx_serve_process_close(cx_serve_process *process);

/* --- serve_node.c ----------------------------------------------------------------------------- */

#define CX_SERVE_DEAD_MAX 4

struct cx_serve_node {
    const char *url, *name;
    const char *address; /* of the inner socket, as others reach it */
    const char *clients; /* where clients connect, for operators */
    cx_str part;
    bool balances; /* N5 */
    cx_thread thread;
    cx_lock lock;
    /* Under the lock. */
    bool ends, hurries;                   /* asked of the thread */
    bool drains;                          /* an operator wants it */
    char serving[CX_FLEET_OWNER_SIZE];    /* as which the own worker serves; "" = it does not */
    cx_fleet_counts counts;               /* of its connections */
    bool hands;                           /* N5: the part is to go.. */
    char to[CX_FLEET_NODE_MAX + 1];       /* .. to this node */
    bool has_others;                      /* nodes of the same part that were heard of just now */
    char owner[CX_FLEET_ADDRESS_MAX + 1]; /* where the part is served now; "" = nowhere known */
    char dead[CX_SERVE_DEAD_MAX][CX_FLEET_OWNER_SIZE]; /* whose leases end; "" = none */
    /* Of the thread. */
    cx_fleet *fleet;
    unsigned number;
    bool silent;                     /* the database was not reached last time */
    char asked[CX_FLEET_OWNER_SIZE]; /* the owner that is, or was, to give the part back */
};

/* Asks once, so that what cannot work is an error, and goes on in a thread. */
CX_RESULT cx_serve_node_open(cx_serve_node *node, cx_err *err);
/* The worker that was this owner is dead.  Of more than CX_SERVE_DEAD_MAX, while the database is
 * not reached, the oldest leases end by themselves. */
void cx_serve_node_release(cx_serve_node *node, const char *owner);
void cx_serve_node_close(cx_serve_node *node); /* takes the node off the list */

#endif
