/*
 * socket - the writer's socket: one process writes a data directory, others ask it.
 *
 * Knows the calls of the ledger as bytes, and nothing of HTTP.
 */
#ifndef CX_SOCKET_API_H
#define CX_SOCKET_API_H

#include "socket/remote.h"

#endif
