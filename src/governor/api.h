/*
 * governor - the run itself: its states from the contract to the seal, chains, recovery, cleanup.
 *
 * Brings the gates together; each gate decides by itself.
 */
#ifndef CX_GOVERNOR_API_H
#define CX_GOVERNOR_API_H

#include "governor/chain.h"
#include "governor/cleanup.h"
#include "governor/governor.h"

#endif
