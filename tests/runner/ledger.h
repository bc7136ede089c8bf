/*
 * ledger.h - the parts of the ledger room's runner.
 */
#ifndef CX_TESTS_RUNNER_LEDGER_H
#define CX_TESTS_RUNNER_LEDGER_H

#include "ledger/proof.h"
#include "tests/runner/runner.h"

/* The file at hand. */
typedef struct runner_ledger_file {
    cx_scheme scheme;
    const char *path; /* relative to the folder */
    const cx_json *root;
} runner_ledger_file;
extern runner_ledger_file runner_file;

/* Lists of a file: kinds of the table, each answered when the file has its list. */
typedef void runner_ledger_table(runner *r, cx_str name);

/* Each answers the files it knows by name and leaves the others alone. */
runner_ledger_table runner_ledger_codecs, runner_ledger_trees, runner_ledger_stories,
    runner_ledger_rest;

/* One case of the file at hand, the one at `pointer`; none when nothing is there. */
void runner_run_one(runner *r, const runner_kind *kind, const char *pointer);
/* The same for item `index` of a list. */
void runner_run_nth(runner *r, const runner_kind *kind, const char *list, size_t index);

/* --- values ---------------------------------------------------------------------------------- */

CX_RESULT runner_hex(runner *r, cx_bytes bytes, cx_json *out, cx_err *err);
CX_RESULT runner_digest(runner *r, const cx_digest *digest, cx_json *out, cx_err *err);
CX_RESULT runner_digests(runner *r, const cx_digest *digests, size_t count, cx_json *out,
                         cx_err *err);
/* A member that is hex, as bytes in the arena. */
CX_RESULT runner_bytes(runner *r, const cx_json *object, const char *name, cx_bytes *out,
                       cx_err *err);
CX_RESULT runner_number(const cx_json *object, const char *name, uint64_t *out, cx_err *err);
/* The members named, as the case has them. */
#define RUNNER_EXPECTS(function, ...)                                                    \
    static cx_status function(runner *r, const cx_json *item, cx_json *out, cx_err *err) \
    {                                                                                    \
        static const char *const names[] = {__VA_ARGS__};                                \
        return runner_pick(r, item, names, CX_COUNT_OF(names), out, err);                \
    }
#endif
