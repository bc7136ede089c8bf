/*
 * ledger.h - the parts of the ledger suite's runner.
 */
#ifndef CX_TESTS_RUNNER_LEDGER_H
#define CX_TESTS_RUNNER_LEDGER_H

#include "proof/proof.h"
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
runner_ledger_table runner_ledger_codecs, runner_ledger_trees, runner_ledger_scenarios,
    runner_ledger_rest, runner_ledger_smt, runner_ledger_keys, runner_ledger_scope,
    runner_ledger_salience, runner_ledger_fields;

/* Proofs about the journal of a scenario whose calls are not here: only read and written again. */
void runner_containers(runner *r);

/* One case of the file at hand, the one at `pointer`; none when nothing is there. */
void runner_run_one(runner *r, const runner_kind *kind, const char *pointer);
/* The same for item `index` of a list. */
void runner_run_nth(runner *r, const runner_kind *kind, const char *list, size_t index);

/*
 * A value of the file at hand that follows from others of it, as a case of its own named by its
 * place.  The file without a value there has no such case.  With `status` failed it is the case
 * that fails.
 */
void runner_value(runner *r, const char *pointer, cx_status status, const cx_json *value,
                  const cx_err *err);
void runner_value_hex(runner *r, const char *pointer, cx_bytes bytes);
void runner_value_digest(runner *r, const char *pointer, const cx_digest *digest);
void runner_value_text(runner *r, const char *pointer, cx_str text);
void runner_value_uint(runner *r, const char *pointer, uint64_t number);
/* LIST/INDEX/MEMBER, in the arena. */
const char *runner_pointer(runner *r, const char *list, size_t index, const char *member);

/* --- values ---------------------------------------------------------------------------------- */

CX_RESULT runner_hex(runner *r, cx_bytes bytes, cx_json *out, cx_err *err);
CX_RESULT runner_digest(runner *r, const cx_digest *digest, cx_json *out, cx_err *err);
CX_RESULT runner_digests(runner *r, const cx_digest *digests, size_t count, cx_json *out,
                         cx_err *err);
/* A member that is hex, as bytes in the arena. */
CX_RESULT runner_bytes(runner *r, const cx_json *object, const char *name, cx_bytes *out,
                       cx_err *err);
/* The array at a pointer into the file; NULL when there is none. */
const cx_json *runner_array(const cx_json *root, const char *pointer);
/* A string's text; of anything else the empty one. */
cx_str runner_str(const cx_json *value);
CX_RESULT runner_number(const cx_json *object, const char *name, uint64_t *out, cx_err *err);
CX_RESULT runner_put_hex(runner *r, cx_json_list *object, const char *name, cx_bytes bytes,
                         cx_err *err);
CX_RESULT runner_put_digest(runner *r, cx_json_list *object, const char *name,
                            const cx_digest *digest, cx_err *err);
void runner_put_uint(runner *r, cx_json_list *object, const char *name, uint64_t number);
/* A member that is the hex of 32, of 16 bytes. */
CX_RESULT runner_digest_of(runner *r, const cx_json *object, const char *name, cx_digest *out,
                           cx_err *err);
CX_RESULT runner_id_of(runner *r, const cx_json *object, const char *name, cx_id *out, cx_err *err);
/* The same below zero, too. */
CX_RESULT runner_signed(const cx_json *object, const char *name, int64_t *out, cx_err *err);
/* How many there are; fewer than none are none. */
CX_RESULT runner_count(const cx_json *object, const char *name, size_t *out, cx_err *err);
/* The leaves and names that the vectors make: SHA-256 of `name` and a decimal number. */
cx_digest runner_numbered(const char *name, uint64_t number);
/* The same with the name that the file's member `rule` has in quotes ('name' || decimal i), if
 * any. */
cx_digest runner_ruled(const char *rule, const char *otherwise, uint64_t number);

/* The siblings of a path that are not those of an empty tree: [{"hash", "index"}]. */
CX_RESULT runner_non_default(runner *r, const cx_smt_path *path, cx_json *out, cx_err *err);

/* The members named, as the case has them. */
#define RUNNER_EXPECTS(function, ...)                                                    \
    static cx_status function(runner *r, const cx_json *item, cx_json *out, cx_err *err) \
    {                                                                                    \
        static const char *const names[] = {__VA_ARGS__};                                \
        return runner_pick(r, item, names, CX_COUNT_OF(names), out, err);                \
    }
#endif
