/*
 * remote.h - one writer, many programs: the writer process of a data directory writes for others
 * (docs/formats/socket.md).
 *
 *     the writer process   cx_home_open, cx_home_serve_begin .. cx_home_serve_end, cx_home_close
 *     the others   cx_home_open with `or_remote`: a data directory whose calls go through the
 *     writer process's socket
 *
 * A data directory opened that way answers as the writer process would.  What needs the files
 * themselves - trees, tails, backups - is CX_E_BUSY "Remote" there; a data directory opened for
 * reading does it.
 *
 * Nothing is done twice: when the answer to a commit or an erasure is lost, the call fails with
 * CX_E_IO "AnswerLost", and whether it was done is not known.  With CX_E_IO "HolderGone" and the
 * writer's notices (CX_E_BUSY "HolderEnds", CX_E_TIMEOUT "TurnTimedOut") nothing was done.
 */
#ifndef CX_SOCKET_REMOTE_H
#define CX_SOCKET_REMOTE_H

#include "ledger/api.h"

#define CX_REMOTE_CLIENTS_MAX 64
/* Of silence inside a transaction, and of one message on its way. */
#define CX_REMOTE_TXN_MS 10000
/* How long one who asks waits for an answer. */
#define CX_REMOTE_ANSWER_MS 120000

typedef struct cx_remote cx_remote;

typedef struct cx_remote_options {
    unsigned clients_max;    /* at once; 0 = CX_REMOTE_CLIENTS_MAX */
    uint32_t txn_timeout_ms; /* 0 = CX_REMOTE_TXN_MS */
    bool no_socket;          /* clients come from cx_home_serve_add only */
    /* Of cx_home_serve_add: without a request for so long outside of a transaction a connection
     * ends with the notice "HolderEnds", since a machine that is gone says nothing; 0 = never. */
    uint32_t idle_timeout_ms;
    /* Asked before each answer: what it rests on may be lost.  False ends the connection without
     * one.  NULL = always. */
    bool (*may_answer)(void *arg);
    void *may_answer_arg;
} cx_remote_options;

/*
 * Serves HOME/socket from threads of its own.  The data directory is open for writing; its owner
 * goes on using it.  `options` may be NULL.
 */
CX_RESULT cx_home_serve_begin(cx_home *home, const cx_remote_options *options, cx_remote **out,
                              cx_err *err);
/*
 * Serves a client that was let in elsewhere, by an HTTP server for example: who its peer is, is not
 * asked.  Takes the connection in any case: `ended` is called once, from any thread, when it is
 * over, and closes the socket.  Thread-safe, until cx_home_serve_end.
 */
void cx_home_serve_add(cx_remote *remote, int socket, void (*ended)(void *arg), void *arg);
/* Takes no more clients, ends those that there are as cx_home_serve_end does, and waits for them.
 * NULL is accepted. */
void cx_home_serve_stop(cx_remote *remote);
/* Removes the socket, lets transactions under way end, and waits for them.  To be called before the
 * data directory is closed, and not inside a transaction.  NULL is accepted. */
void cx_home_serve_end(cx_remote *remote);
/* Clients being served now. */
unsigned cx_home_serve_clients(cx_remote *remote);

/* Whether the calls of this home go to another process, and which that is (0 = itself). */
bool cx_home_is_remote(const cx_home *home);
uint64_t cx_home_owner(const cx_home *home);

#endif
