/*
 * cbor - deterministic CBOR (RFC 8949 §4.2.1): one spelling out, no other in.
 */
#ifndef CX_CBOR_API_H
#define CX_CBOR_API_H

#include "cbor/cbor.h"

#endif
