/*
 * evidence - one file for outsiders: its data, its page, its checking.
 *
 * Checks without a data directory; what goes into the file is collected by provenance.
 */
#ifndef CX_EVIDENCE_API_H
#define CX_EVIDENCE_API_H

#include "evidence/evidence.h"

#endif
