/*
 * repo_table.h - a repository made of a table, for tests of contracts and policies.
 */
#ifndef CX_TESTS_UNIT_RUN_REPO_TABLE_H
#define CX_TESTS_UNIT_RUN_REPO_TABLE_H

#include "git/repo.h"

#define TABLE_COMMIT "1111111111111111111111111111111111111111"
#define TABLE_SIDE "2222222222222222222222222222222222222222" /* not in HEAD's history */

typedef struct repo_file {
    const char *path;
    const char *bytes; /* NULL: a symbolic link */
    size_t size;       /* 0: as long as the text */
} repo_file;

/* At most 32 files; every commit has the same. */
typedef struct repo_table {
    repo_file files[32];
    size_t count;
    const char *fails; /* reading this path is an error */
    bool bundle;       /* artifact() answers for "artifacts/log.txt" */
} repo_table;

/* Names HEAD, main, v1 resolve to TABLE_COMMIT, side to TABLE_SIDE, nothing else resolves. */
cx_run_repo repo_table_open(repo_table *table);
void repo_table_put(repo_table *table, const char *path, const char *bytes);
/* The seven files that a repository with policies of its own must have: those of the program. */
void repo_table_put_policies(repo_table *table);

#endif
