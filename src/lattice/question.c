/*
 * question.c - the installed calls that answer questions (cortex/lattice.h), over answer_*.
 */
#include "lattice/internal.h"

void cx_lattice_keep_bytes(cx_lattice *lattice, cx_buf *lines)
{
    CX_ASSERT(lattice->path == NULL && lattice->slurped.data == NULL);
    lattice->slurped = *lines;
    cx_buf_init(lines, lattice->slurped.alloc);
}
