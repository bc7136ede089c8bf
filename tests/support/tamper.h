/*
 * tamper.h - changing a bundle on purpose, as tamper.json says it (tests/vectors/run/README.md).
 */
#ifndef CX_TESTS_TAMPER_H
#define CX_TESTS_TAMPER_H

#include "json/json.h"
#include "tests/support/folder.h"

typedef struct tampered {
    char folder[FOLDER_PATH_SIZE];  /* of the bundle, as it is called now */
    char outside[FOLDER_PATH_SIZE]; /* where files are moved to */
    bool other_seal;                /* the ledger holds another run's seal */
} tampered;

/* A copy of the files of `from` at ABOVE/<name>, all writable.  ABOVE is made. */
CX_RESULT tamper_copy(const char *from, const char *above, const char *name, tampered *out,
                      cx_err *err);
/* [[op, arg, ..], ..] */
CX_RESULT tamper_apply(tampered *t, const cx_json *ops, cx_err *err);

#endif
