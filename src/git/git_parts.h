/*
 * git_parts.h - helpers that the files of git.h share with candidate, which merges (FRIENDS in
 * tools/check_layers.py).
 */
#ifndef CX_GIT_GIT_PARTS_H
#define CX_GIT_GIT_PARTS_H

#include "git/git.h"

bool cx_oid_is_zero(const cx_oid *oid);
/* The name of an object of `type` ("blob", "tree") with these contents. */
cx_oid cx_git_object_oid(size_t oid_size, const char *type, cx_bytes contents);
/* Runs a call whose output is one object name. */
CX_RESULT cx_git_call_oid(const cx_git *git, const cx_git_call *call, cx_oid *out, cx_err *err);

/* A commit made by the governor: its identity, the time given here. */
typedef struct cx_commit_facts {
    cx_oid tree;
    const cx_oid *parents; /* one or two */
    size_t parent_count;
    cx_str message;
    int64_t time_s; /* UTC */
} cx_commit_facts;

CX_RESULT cx_git_commit_tree(const cx_git *git, const cx_commit_facts *facts, cx_oid *out,
                             cx_err *err);

/* Reads fields that end with a zero byte; false at the end; `cut` is set when the last field is not
 * terminated. */
typedef struct cx_git_fields {
    cx_str rest;
    bool cut;
} cx_git_fields;

static inline bool cx_git_field(cx_git_fields *fields, cx_str *out)
{
    if (fields->rest.size == 0)
        return false;
    const char *end = memchr(fields->rest.data, '\0', fields->rest.size);
    if (end == NULL) {
        fields->cut = true;
        return false;
    }
    *out = (cx_str){fields->rest.data, (size_t)(end - fields->rest.data)};
    fields->rest.data += out->size + 1;
    fields->rest.size -= out->size + 1;
    return true;
}

/* Parses six octal digits of a mode; false for any other text. */
static inline bool cx_git_mode(cx_str text, uint32_t *out)
{
    uint32_t mode = 0;
    if (text.size != 6)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '7')
            return false;
        mode = mode << 3 | (uint32_t)(text.data[i] - '0');
    }
    *out = mode;
    return true;
}

#endif
