/*
 * data_shape.h - the members of each type (the table of §4.1) as data.  Codec, checks and JSON are
 * loops over it.
 */
#ifndef CX_MEMORY_DATA_SHAPE_H
#define CX_MEMORY_DATA_SHAPE_H

#include "memory/type.h"

typedef enum cx_field_kind {
    CX_FIELD_TEXT,        /* cx_str */
    CX_FIELD_TEXTS,       /* cx_strs */
    CX_FIELD_BYTES,       /* cx_bytes */
    CX_FIELD_MAYBE_BYTES, /* cx_maybe_bytes: bytes or null */
    CX_FIELD_BLOBS,       /* cx_blobs */
    CX_FIELD_TIME,        /* cx_maybe_time: seconds; null if the member is mandatory */
    CX_FIELD_STRENGTH,    /* float */
    CX_FIELD_INT,         /* int64_t */
    CX_FIELD_DURATION,    /* cx_maybe_duration: nanoseconds; zero is not empty */
    CX_FIELD_BOOL,        /* bool */
    CX_FIELD_GROUP, /* a struct that begins with bool is_set; set without members is not empty */
    CX_FIELD_GROUPS /* a cx_data_list of structs */
} cx_field_kind;

typedef enum cx_field_rule {
    CX_FIELD_OPTIONAL, /* (o): left out when empty */
    CX_FIELD_ALWAYS,
    CX_FIELD_NEEDED /* mandatory, and must not be blank */
} cx_field_rule;

typedef struct cx_data_group cx_data_group;

typedef struct cx_data_field {
    const char *name;
    uint8_t key;
    uint8_t kind; /* cx_field_kind */
    uint8_t rule; /* cx_field_rule */
    uint16_t offset;
    const cx_data_group *group; /* of GROUP and GROUPS */
    const char *words;          /* "a|b|c": the only ones a caller may write; NULL = any */
} cx_data_field;

struct cx_data_group {
    const char *name;
    const cx_data_field *fields; /* by ascending key */
    size_t count;
    size_t size; /* of the struct */
};

/* The memory layout of every list of structs. */
typedef struct cx_data_list {
    const void *items;
    size_t count;
} cx_data_list;

/* NULL when there is no such type. */
const cx_data_group *cx_data_group_of(uint8_t type);

static inline const void *cx_field_at(const cx_data_field *field, const void *group)
{
    return (const char *)group + field->offset;
}

static inline cx_data_list cx_field_list(const void *at)
{
    cx_data_list list;
    memcpy(&list, at, sizeof list);
    return list;
}

/* Whether the encoder leaves out an optional field of this value. */
bool cx_field_is_empty(const cx_data_field *field, const void *at);

#endif
