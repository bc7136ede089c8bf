/*
 * load.h - between the files that read a lattice: where bytes come from, and the readers of each
 * form.
 */
#ifndef CX_LATTICE_LOAD_H
#define CX_LATTICE_LOAD_H

#include "lattice/record.h"

#define BLOCK_BYTES ((size_t)1 << 20)

/* Reads by position, from a file or from memory; streams were made memory before. */
typedef struct source {
    const cx_io *io;
    cx_file file; /* CX_FILE_NONE: memory */
    const char *name;
    cx_bytes memory;
    uint64_t total;
    uint64_t limit;
} source;

static inline bool is_blank_char(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* load.c */

/* U_IO; U_LIMIT at the source's limit. */
cx_status cx_lattice_fail_io(cx_err *err, int code, const char *name);
cx_status cx_lattice_fail_limit(const source *from, cx_err *err);
/* Up to `size` bytes at `offset`; *out_size < size only at the end. */
CX_RESULT cx_lattice_source_read(const source *from, uint64_t offset, uint8_t *data, size_t size,
                                 size_t *out_size, cx_err *err);
/* Turns positions inside a parsed piece into positions in the file. */
CX_RESULT cx_lattice_relocate(cx_status status, uint64_t offset, uint64_t line, cx_err *err);
/* §1.1: a first object with none of the fields of a node is a header. */
bool cx_lattice_is_header(const cx_json *value);
/* Copies a file's schema_version; nothing when `value` is NULL, U_SHAPE when it is no string. */
CX_RESULT cx_lattice_read_version(cx_lattice *lattice, const cx_json *value, cx_str *version,
                                  cx_err *err);
void cx_lattice_progress(const cx_lattice_options *options, uint64_t done, uint64_t total);

/* load_lines.c */
CX_RESULT cx_lattice_load_lines(cx_lattice *lattice, const source *from,
                                const cx_lattice_options *options, cx_err *err);

/* load_document.c */
CX_RESULT cx_lattice_load_array(cx_lattice *lattice, const source *from,
                                const cx_lattice_options *options, cx_err *err);

/* What trying an object as a wrapped lattice can end in. */
typedef enum wrapped_end { WRAPPED_DONE, WRAPPED_AGAIN, WRAPPED_IS_LINES } wrapped_end;

/* Reads the nodes of an object with `version` as their default; *version changes with AGAIN. */
CX_RESULT cx_lattice_try_wrapped(cx_lattice *lattice, const source *from,
                                 const cx_lattice_options *options, cx_str *version,
                                 wrapped_end *end, cx_err *err);
/* One object that spans lines and is no wrapped lattice: one node, or a header and nothing else. */
CX_RESULT cx_lattice_load_single(cx_lattice *lattice, const source *from,
                                 const cx_lattice_options *options, cx_err *err);

#endif
