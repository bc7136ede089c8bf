/*
 * base - what C lacks: errors, memory, text, containers, numbers, clocks and files as an interface.
 *
 * Knows nothing of processes, networks or formats. Everything else is built on it.
 */
#ifndef CX_BASE_API_H
#define CX_BASE_API_H

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/civil.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/hex.h"
#include "base/io.h"
#include "base/map.h"
#include "base/owned.h"
#include "base/processor.h"
#include "base/shown.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "base/wide.h"

#endif
