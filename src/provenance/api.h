/*
 * provenance - identifies objects, their origins, and the evidence for them.
 *
 * Objects of every kind by any name, references between them, why, and evidence files.
 */
#ifndef CX_PROVENANCE_API_H
#define CX_PROVENANCE_API_H

#include "provenance/evidence_make.h"
#include "provenance/run_lattice.h"
#include "provenance/run_part.h"
#include "provenance/object.h"

#endif
