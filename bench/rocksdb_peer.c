/*
 * rocksdb_peer.c - see rocksdb_peer.h.  RocksDB with its own defaults; only the sync is asked for.
 */
#include "bench/rocksdb_peer.h"

#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rocksdb_peer {
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_writeoptions_t *synced;
    rocksdb_readoptions_t *plain;
    rocksdb_writebatch_t *batch;
};

static void must(char *failure)
{
    if (failure == NULL)
        return;
    fprintf(stderr, "RocksDB: %s\n", failure);
    exit(1);
}

rocksdb_peer *rocksdb_peer_open(const char *folder)
{
    char *failure = NULL;
    rocksdb_peer *peer = malloc(sizeof *peer);
    if (peer == NULL)
        abort();
    peer->options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(peer->options, 1);
    peer->db = rocksdb_open(peer->options, folder, &failure);
    must(failure);
    peer->synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(peer->synced, 1);
    peer->plain = rocksdb_readoptions_create();
    peer->batch = rocksdb_writebatch_create();
    return peer;
}

static void name_row(char table, uint64_t key, char out[9])
{
    out[0] = table;
    for (unsigned i = 0; i < 8; i++)
        out[1 + i] = (char)(key >> (8 * (7 - i)));
}

void rocksdb_peer_get(rocksdb_peer *peer, char table, uint64_t key, void *out, size_t size)
{
    char name[9], *failure = NULL;
    size_t found = 0;
    name_row(table, key, name);
    char *value = rocksdb_get(peer->db, peer->plain, name, sizeof name, &found, &failure);
    must(failure);
    memset(out, 0, size);
    if (value != NULL)
        memcpy(out, value, found < size ? found : size);
    free(value);
}

void rocksdb_peer_put(rocksdb_peer *peer, char table, uint64_t key, const void *value, size_t size)
{
    char name[9];
    name_row(table, key, name);
    rocksdb_writebatch_put(peer->batch, name, sizeof name, value, size);
}

void rocksdb_peer_commit(rocksdb_peer *peer)
{
    char *failure = NULL;
    rocksdb_write(peer->db, peer->synced, peer->batch, &failure);
    must(failure);
    rocksdb_writebatch_clear(peer->batch);
}

void rocksdb_peer_close(rocksdb_peer *peer)
{
    rocksdb_writebatch_destroy(peer->batch);
    rocksdb_writeoptions_destroy(peer->synced);
    rocksdb_readoptions_destroy(peer->plain);
    rocksdb_close(peer->db);
    rocksdb_options_destroy(peer->options);
    free(peer);
}
