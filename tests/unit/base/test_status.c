/*
 * test_status.c - errors: what a cx_err says, and that it says it on one terminated line.
 */
#include "base/status.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "tests/test.h"

CX_TEST(status_writes_everything_it_is_given)
{
    cx_err err;
    memset(&err, 0xFF, sizeof err);
    CHECK(cx_fail(&err, CX_E_LIMIT, "at most %d", 5).code == CX_E_LIMIT);
    CHECK(err.code == CX_E_LIMIT && err.os_errno == 0 && err.tag == NULL && err.line == 0);
    CHECK(err.column == 0 && err.offset == CX_NO_OFFSET);
    CHECK_STR(cx_str_z(err.message), "at most 5");
    CHECK(cx_fail_at(&err, CX_E_SYNTAX, "U_SYNTAX", 17, "bad").code == CX_E_SYNTAX);
    CHECK_INT(err.offset, 17);
    CHECK_STR(cx_str_z(err.tag), "U_SYNTAX");
    CHECK(cx_fail_nomem(&err).code == CX_E_NOMEM);
    CHECK(err.tag == NULL);
}

CX_TEST(status_needs_no_err)
{
    CHECK(cx_fail(NULL, CX_E_IO, "%s", "x").code == CX_E_IO);
    CHECK(cx_fail_at(NULL, CX_E_IO, "U_IO", 0, "x").code == CX_E_IO);
    CHECK(cx_fail_os(NULL, ENOENT, "x").code == CX_E_NOT_FOUND);
    CHECK(cx_fail_nomem(NULL).code == CX_E_NOMEM);
}

CX_TEST(status_says_what_errno_means)
{
    static const struct {
        int number;
        cx_code code;
    } cases[] = {{ENOENT, CX_E_NOT_FOUND}, {ENOTDIR, CX_E_NOT_FOUND}, {EEXIST, CX_E_EXISTS},
                 {EACCES, CX_E_DENIED},    {EPERM, CX_E_DENIED},      {EROFS, CX_E_DENIED},
                 {EAGAIN, CX_E_BUSY},      {EBUSY, CX_E_BUSY},        {ENOMEM, CX_E_NOMEM},
                 {ENOSPC, CX_E_IO},        {EISDIR, CX_E_IO},         {ENOSYS, CX_E_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cx_err err;
        CHECK(cx_fail_os(&err, cases[i].number, "cannot open %s", "f").code == cases[i].code);
        CHECK_INT(err.os_errno, cases[i].number);
        CHECK(cx_str_starts(cx_str_z(err.message), CX_STR("cannot open f: ")));
    }
}

CX_TEST(status_messages_are_one_terminated_line)
{
    char name[600];
    cx_err err;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    (void)cx_fail_os(&err, ENOENT, "cannot open %s", name);
    CHECK_INT(strlen(err.message), sizeof err.message - 1);
    (void)cx_fail(&err, CX_E_FORMAT, "a\nb\tc\033[31md\x7f");
    CHECK_STR(cx_str_z(err.message), "a\\u000ab\\u0009c\\u001b[31md\\u007f");
    (void)cx_fail(&err, CX_E_FORMAT, "\xc2\x9b\xe2\x80\xa8\xe2\x80\xae\xff\xc3\xa9");
    CHECK_STR(cx_str_z(err.message), "\\u009b\\u2028\\u202e\\xff\xc3\xa9");
    /* What is cut is cut between characters, shown ones too. */
    for (size_t i = 0; i + 2 < sizeof name; i += 2)
        memcpy(name + i, "\xc3\xa9", 2);
    for (int before = 0; before < 8; before++) {
        (void)cx_fail(&err, CX_E_FORMAT, "%.*s%s", before, "nnnnnnnn", name);
        CHECK(cx_utf8_valid(cx_str_z(err.message)));
        CHECK(strchr(err.message, '\\') == NULL);
        (void)cx_fail(&err, CX_E_FORMAT, "%.*s%.*s\x1b\x1b", before, "nnnnnnnn",
                      (int)sizeof err.message - 12, name);
        const char *last = strrchr(err.message, '\\');
        CHECK(last == NULL || strcmp(last, "\\u001b") == 0);
    }
    (void)cx_fail_os(&err, ENOENT, "a\nb");
    CHECK(strchr(err.message, '\n') == NULL);
}

CX_TEST(status_every_code_and_verdict_has_a_name)
{
    for (int i = CX_OK; i <= CX_E_UNSUPPORTED; i++) {
        const char *name = cx_code_name((cx_code)i);
        REQUIRE(name != NULL);
        CHECK(*name != 0);
        for (int k = CX_OK; k < i; k++)
            CHECK(strcmp(name, cx_code_name((cx_code)k)) != 0);
    }
    CHECK_STR(cx_str_z(cx_verdict_name(CX_HOLDS)), "holds");
    CHECK_STR(cx_str_z(cx_verdict_name(CX_BROKEN)), "broken");
    CHECK_STR(cx_str_z(cx_verdict_name(CX_INDETERMINATE)), "indeterminate");
    CHECK(strlen(cx_version()) >= 5);
}
