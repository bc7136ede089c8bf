/*
 * put.h - members of an object that is being built, by type: the one JSON builder over
 * cx_json_list.
 *
 * Nothing here fails visibly: when memory runs out the list is marked as failed, and
 * cx_json_list_end_object or _array of the outermost list returns CX_E_NOMEM.  Names are
 * NUL-terminated and borrowed.  Text is borrowed when it is UTF-8; else a copy in the list's arena.
 *
 * JSON has no way to write bytes that are not UTF-8, such as those of a file's name.  Three forms
 * exist, and a document keeps to one of them:
 *
 *     put_str     escaped as on a terminal (cx_shown_add): answers of commands and of the server
 *     put_quoted  \ooo, as git quotes paths (cx_json_quoted): events and gate results of runs
 *     put_utf8    U+FFFD for each byte (cx_json_utf8): reports and manifests of runs
 */
#ifndef CX_JSON_PUT_H
#define CX_JSON_PUT_H

#include "json/json.h"

void cx_json_put(cx_json_list *list, const char *name, cx_json value);

void cx_json_put_str(cx_json_list *list, const char *name, cx_str text); /* no data: "" */
void cx_json_put_quoted(cx_json_list *list, const char *name, cx_str text);
void cx_json_put_utf8(cx_json_list *list, const char *name, cx_str text);
void cx_json_put_z(cx_json_list *list, const char *name, const char *text); /* UTF-8 */
void cx_json_put_maybe(cx_json_list *list, const char *name, cx_str text);  /* empty: null */
void cx_json_put_uint(cx_json_list *list, const char *name, uint64_t value);
void cx_json_put_int(cx_json_list *list, const char *name, int64_t value);
void cx_json_put_bool(cx_json_list *list, const char *name, bool value);
void cx_json_put_null(cx_json_list *list, const char *name);
/* Infinities and NaN, which JSON cannot write, become null. */
void cx_json_put_float(cx_json_list *list, const char *name, float value);
void cx_json_put_hex(cx_json_list *list, const char *name, cx_bytes bytes); /* lower case */
void cx_json_put_digest(cx_json_list *list, const char *name, const cx_digest *digest);
/* UTF-8 as text, other bytes as {"hex":".."}. */
void cx_json_put_bytes(cx_json_list *list, const char *name, cx_bytes bytes);
void cx_json_put_strs(cx_json_list *list, const char *name, const cx_str *texts, size_t count);
void cx_json_put_quoted_strs(cx_json_list *list, const char *name, const cx_str *texts,
                             size_t count);
void cx_json_put_utf8_strs(cx_json_list *list, const char *name, const cx_str *texts, size_t count);

/* Ends `inner`, and puts it into an object or adds it to an array. */
void cx_json_put_object(cx_json_list *list, const char *name, cx_json_list *inner);
void cx_json_put_array(cx_json_list *list, const char *name, cx_json_list *inner);
void cx_json_add_object(cx_json_list *list, cx_json_list *inner);

/* The text of the three forms: itself when it is UTF-8, else a copy in the arena; data is NULL when
 * memory ran out. */
cx_str cx_json_shown(cx_str text, cx_arena *arena);
cx_str cx_json_quoted(cx_str text, cx_arena *arena);
cx_str cx_json_utf8(cx_str text, cx_arena *arena);

#endif
