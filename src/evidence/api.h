/*
 * evidence - evidence files: their data, their page, their verification.
 *
 * Verifies without a data directory; provenance collects the contents of a file.
 */
#ifndef CX_EVIDENCE_API_H
#define CX_EVIDENCE_API_H

#include "evidence/evidence.h"

#endif
