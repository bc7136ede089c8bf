/*
 * wrap.h - servers in the configuration of an agent, and their command lines with the gateway in
 * front, and without it.
 *
 *   R1  Every byte of a file that is not part of a change stays.
 *   R2  What was wrapped and is unwrapped is the file as it was, byte for byte, unless another
 *       program has written it in between; then it means the same.
 *   R3  What is not found in a form that is known is left alone, and said.
 */
#ifndef CX_GATEWAY_WRAP_H
#define CX_GATEWAY_WRAP_H

#include "json/api.h"

#define CX_GATEWAY_WRAP_FILE_MAX ((size_t)32 << 20)
#define CX_GATEWAY_WRAP_WORDS_MAX 256 /* of a command line */

/* A server in a file.  Spelled texts are parts of the file's; no data: there is none. */
typedef struct cx_gateway_wrap_entry {
    cx_str name;          /* decoded */
    cx_str command;       /* spelled value */
    cx_str args;          /* spelled value, "[..]" */
    cx_str url_name, url; /* the member that has an address, and its spelled value */
    cx_str type;          /* spelled value */
    bool is_odd;          /* a member twice */
    bool has_secrets;     /* headers, tokens: they cannot go through a command line */
} cx_gateway_wrap_entry;

/* How a file's syntax spells it. */
typedef struct cx_gateway_wrap_syntax {
    /* Calls `take` for each server; CX_E_FORMAT, CX_E_SYNTAX: it cannot be read. */
    cx_status (*each)(cx_str text, const char *folder, cx_arena *arena,
                      cx_status (*take)(void *arg, const cx_gateway_wrap_entry *entry, cx_err *err),
                      void *arg, cx_err *err);
    /* Iterates over the items of a spelled array. */
    bool (*next_item)(cx_str array, size_t *offset, cx_str *out_item);
    /* A spelled string; data NULL: it is none. */
    cx_str (*decode)(cx_str spelled, cx_arena *arena);
    const char *joiner;                   /* between two members */
    const char *command_name, *args_name; /* as spelled */
} cx_gateway_wrap_syntax;

extern const cx_gateway_wrap_syntax cx_gateway_wrap_json, cx_gateway_wrap_toml;

typedef struct cx_gateway_wrap_how {
    bool unwrap;
    cx_str program;        /* to be started */
    const cx_str *options; /* of the gateway, after --name: "--mode", "enforce" .. */
    size_t option_count;
} cx_gateway_wrap_how;

typedef enum cx_gateway_wrap_result {
    CX_GATEWAY_WRAP_CHANGED,
    CX_GATEWAY_WRAP_SAME,       /* wrapped already, or not wrapped */
    CX_GATEWAY_WRAP_IMPOSSIBLE, /* `out_why` says why */
} cx_gateway_wrap_result;

/* Appends the text with one server changed, and its command lines before and after. */
CX_RESULT cx_gateway_wrap_entry_change(const cx_gateway_wrap_syntax *syntax, cx_str text,
                                       const cx_gateway_wrap_entry *entry,
                                       const cx_gateway_wrap_how *how, cx_arena *arena, cx_buf *out,
                                       cx_buf *out_before, cx_buf *out_after,
                                       cx_gateway_wrap_result *out_result, const char **out_why,
                                       cx_err *err);

#endif
