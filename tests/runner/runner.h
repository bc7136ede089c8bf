/*
 * runner.h - answering the cases of a folder of test vectors, suite by suite.
 *
 * A suite is a list of kinds; a kind is a list of cases somewhere in the folder, a function that
 * answers one case and one that says what is expected.  Answering must not look at what is
 * expected: with --got the answers are all there is, and another program compares them.  Both are
 * JSON values, so that one comparison serves every module.
 *
 * The contract towards the outside is in tests/vectors/README.md.
 */
#ifndef CX_TESTS_RUNNER_H
#define CX_TESTS_RUNNER_H

#include "json/json.h"

/* Whether an answer is what is expected, where they need not be equal. */
typedef bool (*runner_agrees)(const cx_json *expected, const cx_json *got);

typedef struct runner {
    const char *folder;
    bool got_only;
    const cx_json *index; /* index.json, once the suite has read it */
    const cx_json *root;  /* the file of the cases being answered */
    runner_agrees agrees; /* NULL: they must be equal */
    bool narrow;          /* objects: members that are not expected are not compared */
    bool by_place;        /* --got tells a case by its place, too: its id may be a value of its */
    cx_str place;         /* of the case being answered: FILE#/json/pointer */
    cx_arena arena;       /* all memory of a run; cases give theirs back */
    unsigned passed, failed, skipped;
} runner;

void runner_init(runner *r, const char *folder, bool got_only);
/* Prints the closing line (with --got, to stderr) and returns the program's exit code. */
int runner_end(runner *r);

/* --- cases --------------------------------------------------------------------------------- */

typedef cx_status (*runner_answer)(runner *r, const cx_json *item, cx_json *out, cx_err *err);

typedef struct runner_kind {
    const char *list;     /* pointer to the list in its file, "" = the file is the list */
    runner_answer got;    /* reads only what the case asks; CX_E_UNSUPPORTED skips the case */
    runner_answer expect; /* reads only what it expects */
} runner_kind;

/* Answers all items of the list that kind->list points at; without it there is nothing to do. */
void runner_run_list(runner *r, const runner_kind *kind, const char *file, const cx_json *root);
/* Answers one item of the file that lies at `pointer`; "" is the file itself. */
void runner_run_item(runner *r, const runner_kind *kind, const char *file, const char *pointer,
                     const cx_json *root, const cx_json *item);

/* A case without an answer. */
void runner_fail(runner *r, cx_str id, const char *why);
/* Something this program has no answers for. */
void runner_skip(runner *r, cx_str id, const char *why);

/* --- reading the folder -------------------------------------------------------------------- */

/* FOLDER/relative, terminated; data is NULL when out of memory. */
cx_str runner_path(runner *r, cx_str relative);
CX_RESULT runner_read(runner *r, cx_str relative, cx_str *out, cx_err *err);
CX_RESULT runner_read_json(runner *r, cx_str relative, cx_json *out, cx_err *err);

/* --- values -------------------------------------------------------------------------------- */

/* The member, or CX_E_FORMAT with its name. */
CX_RESULT runner_member(const cx_json *object, const char *name, cx_json_type type,
                        const cx_json **out, cx_err *err);
CX_RESULT runner_text(const cx_json *object, const char *name, cx_str *out, cx_err *err);
/* An array of strings, copied out. */
CX_RESULT runner_texts(runner *r, const cx_json *array, cx_str **out, cx_err *err);
/* Reads a text we wrote; it is copied. */
CX_RESULT runner_parse(runner *r, const cx_buf *text, cx_json *out, cx_err *err);
/* A string value, copied. */
CX_RESULT runner_string(runner *r, cx_str text, cx_json *out, cx_err *err);
/* The SHA-256 of bytes as a string of lower-case hex. */
CX_RESULT runner_sha256(runner *r, cx_bytes bytes, cx_json *out, cx_err *err);
/* A new object with only these of the members; those that are absent are left out. */
CX_RESULT runner_pick(runner *r, const cx_json *object, const char *const *names, size_t count,
                      cx_json *out, cx_err *err);

/* --- modules --------------------------------------------------------------------------------- */

void runner_lattice(runner *r);
void runner_ledger(runner *r);
void runner_trace(runner *r);
void runner_run_suite(runner *r);

#endif
