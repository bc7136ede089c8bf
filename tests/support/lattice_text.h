/*
 * lattice_text.h - writing small lattices in tests: nodes with right hashes and seals, or wrong
 * ones on purpose, and reading verdicts in few words.
 */
#ifndef CX_TESTS_LATTICE_TEXT_H
#define CX_TESTS_LATTICE_TEXT_H

#include "lattice/lattice.h"

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* All texts terminated; NULL takes the default. */
typedef struct node_spec {
    const char *id;    /* NULL: the hash */
    const char *agent; /* "a" */
    int64_t seq;
    const char *seq_text;  /* written in place of seq; the hash is over seq */
    const char *timestamp; /* JSON; the seq */
    const char *event;     /* JSON object; {} */
    const char *delta;     /* JSON object; {} */
    const char *prev;      /* 64 zeros */
    const char *parents[8];
    size_t parent_count;
    bool no_parents;     /* leaves the field out */
    const char *fork;    /* null */
    const char *version; /* hashed with 2.0.0, and not written */
    const char *hash;    /* written in place of the right one */
    const char *extra;   /* JSON members, comma first, after the others */
    bool sealed;
} node_spec;

/* Appends one node without a line end; out_hash (65 bytes) may be NULL. */
void lattice_text_node(cx_buf *out, const node_spec *spec, char *out_hash);

/* Appends JSONL text as an array, or wrapped with its nodes under "nodes"; no header lines. */
void lattice_text_array(cx_buf *out, cx_str lines);
void lattice_text_wrapped(cx_buf *out, cx_str lines, const char *version, bool version_first);

/* A sealed, content-addressed lattice of `steps` nodes over two agents, with a fork and a merge
 * every third step. */
void lattice_text_sealed(cx_buf *out, unsigned steps);

/*
 * What verification says in one terminated line in `out`: "ok" or the findings as "E_HASH:n1@a",
 * sorted as in the report, separated by blanks; what cannot be read as "U_EMPTY".  Checks may be
 * NULL.
 */
const char *lattice_text_verdict(cx_buf *out, cx_str text, const cx_lattice_checks *checks);

/* Everything a report says but details, which name lines. */
void lattice_text_report(cx_buf *out, const cx_lattice *lattice, const cx_lattice_report *report);

/* Writes a file under the temporary folder of this run; static path, one name at a time. */
const char *lattice_text_file(const char *name, cx_str contents);

#endif
