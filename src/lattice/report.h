/*
 * report.h - what verification found, inside the room.
 */
#ifndef CX_LATTICE_REPORT_H
#define CX_LATTICE_REPORT_H

#include "lattice/internal.h"

struct cx_lattice_report {
    const cx_alloc *alloc;
    cx_arena arena;            /* details, branches */
    cx_arena branch_arenas[2]; /* details of what was found branch by branch */
    CX_VEC(cx_lattice_finding) errors;
    CX_VEC(cx_lattice_finding) warnings;
    CX_VEC(cx_lattice_finding) by_branch; /* errors again, branch by branch */
    CX_VEC(cx_lattice_finding) warnings_by_branch;
    cx_lattice_branch *branches;
    size_t branch_count;
    size_t invalid_count; /* branches */
    cx_lattice_evidence evidence;
};

/* Root of §5.2 over all nodes of the graph; needs keep_seals. */
CX_RESULT cx_lattice_root(const cx_lattice *lattice, cx_digest *out, cx_err *err);

#endif
