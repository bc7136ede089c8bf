/*
 * bundle - the record of a run: events, store, reports, masks, manifest, seal.
 *
 * Knows nothing of how a run is carried out.
 */
#ifndef CX_BUNDLE_API_H
#define CX_BUNDLE_API_H

#include "bundle/archive.h"
#include "bundle/bundle.h"
#include "bundle/events.h"
#include "bundle/gates.h"
#include "bundle/mask.h"
#include "bundle/report.h"
#include "bundle/report_parts.h"
#include "bundle/seal.h"
#include "bundle/store.h"
#include "bundle/projection.h"
#include "bundle/tests_demand.h"

#endif
