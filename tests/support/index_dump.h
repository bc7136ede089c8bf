/*
 * index_dump.h - all that a trace index holds, as text: two with equal texts answer alike.
 *
 * Lines come in a fixed order and without `id`; times are cut to microseconds and JSON is spelled
 * canonically, so that SQLite and PostgreSQL give the same text.
 */
#ifndef CX_TESTS_INDEX_DUMP_H
#define CX_TESTS_INDEX_DUMP_H

#include "index/index.h"

CX_RESULT index_dump(cx_index *index, cx_buf *out, cx_err *err);

#endif
