/*
 * pg_value.h - values in PostgreSQL's binary formats, inside this module.
 */
#ifndef CX_DB_PG_VALUE_H
#define CX_DB_PG_VALUE_H

#include "db/pg.h"

/* By cx_pg_type. */
extern const uint32_t cx_pg_oids[];

/* Room that a value of so many bytes takes in `scratch` below, at most. */
size_t cx_pg_scratch_size(cx_pg_type type, size_t size);
/* Texts made here lie in `scratch`, which must have that room: earlier ones must not move. */
CX_RESULT cx_pg_read_value(cx_bytes bytes, cx_pg_type type, cx_buf *scratch, cx_pg_value *out,
                           cx_err *err);

#endif
