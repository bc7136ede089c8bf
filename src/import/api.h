/*
 * import - other tools' histories as lattices, one file a format.
 *
 * The source record stays whole in each node.
 */
#ifndef CX_IMPORT_API_H
#define CX_IMPORT_API_H

#include "import/import.h"
#include "import/otlp_scan.h"

#endif
