/*
 * align.h - aligns two sequences of events: which step of one corresponds to which of the other.
 *
 * Steps are the *same* when they changed the same and their events say the same, and *alike* when
 * their events are of one kind.  The common prefix of same steps is paired; after it the alignment
 * with the greatest worth is computed, so that a step that only one side has does not shift all the
 * following ones.
 */
#ifndef CX_VIEW_ALIGN_H
#define CX_VIEW_ALIGN_H

#include "lattice/internal.h"

/* Memory and time of a window grow with the product of its sides: 9 MB, 9 million comparisons. */
#define ALIGN_WINDOW 3000
/* After this many windows steps are paired by their number. */
#define ALIGN_WINDOWS 8

#define ALIGN_NONE SIZE_MAX

typedef struct align_side {
    const cx_lattice *lattice;
    const cx_node *path;
    size_t count;
    cx_str
        id; /* texts are equal if they differ only in each side's id, such as the names of two runs; empty = none */
} align_side;

typedef enum align_how { ALIGN_ONLY, ALIGN_ALIKE, ALIGN_SAME } align_how;

typedef struct align_row {
    size_t step[2]; /* ALIGN_NONE where a side has none */
    align_how how;
} align_row;

typedef struct alignment {
    align_side sides[2];
    size_t prefix; /* the first steps that are the same */
    CX_VEC(align_row) rows;
    size_t placed[2]; /* steps in prefix and rows; the others follow by number */
    cx_arena arena;   /* scratch */
    const cx_alloc *alloc;
} alignment;

/* Both lattices keep their deltas.  Call done afterwards, whatever it returns. */
CX_RESULT cx_align_init(alignment *a, const align_side sides[2], const cx_alloc *alloc,
                        cx_err *err);
void cx_align_done(alignment *a);

static inline bool align_is_whole(const alignment *a)
{
    return a->placed[0] == a->sides[0].count && a->placed[1] == a->sides[1].count;
}

size_t cx_align_count(const alignment *a); /* rows in all */
CX_RESULT cx_align_row(alignment *a, size_t number, align_row *out, cx_err *err);

/* Whether two texts are equal except for the sides' ids. */
bool cx_align_equal(cx_str id_a, cx_str id_b, cx_str a, cx_str b);

#endif
