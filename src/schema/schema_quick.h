/*
 * schema_quick.h - saying quickly that a value holds.
 *
 * Most values that are checked hold, and most schemas ask little: types, members, lengths, lists of
 * words.  For those a node is compiled a second time, into one table a node, and checked by a walk
 * that knows "holds" and "look closer" only; schema_check.c decides and explains the latter.
 *
 *   Q1  What the walk says holds, holds: whatever it does not understand is looked at closer.
 *   Q2  It counts the same steps and at least the depth that the other would, so limits are passed
 *       by the same instances.
 */
#ifndef CX_SCHEMA_SCHEMA_QUICK_H
#define CX_SCHEMA_SCHEMA_QUICK_H

#include "schema/schema_internal.h"

/* Makes node->quick of the root and all it leads to, where they can have one. */
CX_RESULT schema_quick_compile(schema_loader *loader, schema_node *root);

/* False: look closer. */
bool schema_quick_holds(const schema_quick *quick, const cx_json *value, unsigned depth_max,
                        uint64_t steps_max);

#endif
