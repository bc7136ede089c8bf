/*
 * analysis - what traces say of an agent: chains, detectors, capacity, independence of sources.
 *
 * Works on traces in memory; it is given them by the index or by files.
 */
#ifndef CX_ANALYSIS_API_H
#define CX_ANALYSIS_API_H

#include "analysis/detect.h"
#include "analysis/idma.h"

#endif
