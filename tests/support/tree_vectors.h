/*
 * tree_vectors.h - reading the vectors of the trees: files, hex, and the rules by which their
 * leaves and keys are made (tests/vectors/ledger/README.md).
 */
#ifndef CX_TESTS_LEDGER_TREE_VECTORS_H
#define CX_TESTS_LEDGER_TREE_VECTORS_H

#include "base/io.h"
#include "base/hex.h"
#include "json/json.h"
#include "tree/scheme.h"
#include "tests/test.h"

static const cx_scheme tree_schemes[] = {CX_SCHEME_CORTEX_1, CX_SCHEME_MATRIX_1};

typedef struct tree_file {
    cx_buf text;
    cx_arena arena;
    cx_json root;
} tree_file;

/* False after a failed check; to be closed either way. */
static inline bool tree_file_open(tree_file *file, cx_scheme scheme, const char *name)
{
    char relative[128];
    cx_err err = {0};
    (void)snprintf(relative, sizeof relative, "vectors/ledger/%s/%s", cx_scheme_name(scheme).data,
                   name);
    cx_buf_init(&file->text, cx_alloc_default());
    cx_arena_init(&file->arena, cx_alloc_default(), 0);
    cx_status status =
        cx_io_read_file(cx_io_system(), cx_test_path(relative), 1u << 20, &file->text, &err);
    if (!cx_failed(status))
        status = cx_json_parse_text(cx_buf_str(&file->text), &file->arena, &file->root, &err);
    if (cx_failed(status))
        cx_test_fail(__FILE__, __LINE__, "%s: %s", relative, err.message);
    return !cx_failed(status);
}

static inline void tree_file_close(tree_file *file)
{
    cx_arena_done(&file->arena);
    cx_buf_done(&file->text);
}

/* A list in the file; a check fails when it is absent or empty. */
static inline const cx_json *tree_list(const tree_file *file, const char *pointer)
{
    static const cx_json none = {.type = CX_JSON_ARRAY};
    const cx_json *list = cx_json_pointer(&file->root, cx_str_z(pointer));
    if (list != NULL && list->type == CX_JSON_ARRAY && list->count != 0)
        return list;
    cx_test_fail(__FILE__, __LINE__, "no list %s", pointer);
    return &none;
}

static inline uint64_t tree_number(const cx_json *object, const char *name)
{
    uint64_t value = 0;
    const cx_json *member = cx_json_get(object, cx_str_z(name));
    if (member == NULL || !cx_json_uint64(member, &value))
        cx_test_fail(__FILE__, __LINE__, "no number %s", name);
    return value;
}

static inline cx_digest tree_hex(const cx_json *value)
{
    cx_digest digest = {{0}};
    if (value == NULL || value->type != CX_JSON_STRING ||
        !cx_digest_parse(cx_json_text(value), &digest))
        cx_test_fail(__FILE__, __LINE__, "not a digest");
    return digest;
}

static inline cx_digest tree_digest(const cx_json *object, const char *name)
{
    return tree_hex(cx_json_get(object, cx_str_z(name)));
}

static inline void tree_check_at(int line, const cx_digest *got, const cx_digest *expected)
{
    char a[64], b[64];
    cx_hex_encode(cx_bytes_from(got->bytes, sizeof got->bytes), a);
    cx_hex_encode(cx_bytes_from(expected->bytes, sizeof expected->bytes), b);
    if (memcmp(a, b, sizeof a) != 0)
        cx_test_fail(__FILE__, __LINE__, "line %d: %.64s, expected %.64s", line, a, b);
}
#define CHECK_DIGEST(got, expected)                                   \
    do {                                                              \
        cx_digest got_digest_ = (got), expected_digest_ = (expected); \
        tree_check_at(__LINE__, &got_digest_, &expected_digest_);     \
    } while (0)

/* H(name ‖ decimal i). */
static inline cx_digest tree_numbered(const char *name, uint64_t i)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%s%llu", name, (unsigned long long)i);
    return cx_digest_of(cx_bytes_from(text, (size_t)size));
}

static inline cx_digest tree_leaf(uint64_t i)
{
    return tree_numbered("matrix-mmr-leaf-", i);
}

/* The first 16 bytes are id i. */
static inline cx_digest tree_id(uint64_t i)
{
    return tree_numbered("matrix-smt-id-", i);
}

#endif
