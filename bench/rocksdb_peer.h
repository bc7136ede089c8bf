/*
 * rocksdb_peer.h - records and Merkle nodes as rows of RocksDB, for row G2.
 *
 * Built only where RocksDB is installed.  Each call ends the program when RocksDB fails.
 */
#ifndef CX_BENCH_ROCKSDB_PEER_H
#define CX_BENCH_ROCKSDB_PEER_H

#include <stddef.h>
#include <stdint.h>

typedef struct rocksdb_peer rocksdb_peer;

rocksdb_peer *rocksdb_peer_open(const char *folder);
/* Rows for the next commit. */
void rocksdb_peer_put(rocksdb_peer *peer, char table, uint64_t key, const void *value, size_t size);
/* A row that is committed, or zeros: what waits for the next commit is not seen. */
void rocksdb_peer_get(rocksdb_peer *peer, char table, uint64_t key, void *out, size_t size);
/* All of them in one synced write. */
void rocksdb_peer_commit(rocksdb_peer *peer);
void rocksdb_peer_close(rocksdb_peer *peer);

#endif
