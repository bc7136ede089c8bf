/*
 * lattice - histories as hash-linked steps: load, verify, states, merges, questions.
 *
 * Knows nothing of pictures (view) and of where a history came from (import, recorder).
 */
#ifndef CX_LATTICE_API_H
#define CX_LATTICE_API_H

#include "lattice/lattice.h"

#endif
