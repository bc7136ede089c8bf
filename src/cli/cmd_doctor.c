/*
 * cmd_doctor.c - `cortex doctor`: what this machine offers, and whether what we build on works.
 *
 * Each check ends ok, warn (slower or smaller than it could be) or fail (verdicts of this program
 * cannot be trusted here), with what to do.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "crypto/digest.h"
#include "crypto/key.h"
#include "crypto/text.h"
#include "lattice/lattice.h"

static int run(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("json", 0, "One line of canonical JSON instead of text."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_doctor = {
    .name = "doctor",
    .purpose = "check this machine and what the program builds on",
    .about = "Tries the SHA-256 kernels, Ed25519 and canonical JSON on known answers, verifies the "
             "built-in histories, and looks at processor, memory, stack, descriptors, temporary "
             "folder and terminal. Each line is ok, warn or fail, with what to do.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 nothing failed\n2 usage error\n3 something failed, or the output could not be "
             "written",
    .example = "cortex doctor",
    .run = run,
};

typedef enum level { LEVEL_OK, LEVEL_WARN, LEVEL_FAIL } level;

enum { CHECKS_MAX = 16, DETAIL_SIZE = 200 };

typedef struct check {
    const char *name;
    level found;
    char detail[DETAIL_SIZE];
} check;

typedef struct exam {
    cx_cli *cli;
    check checks[CHECKS_MAX];
    size_t count;
} exam;

static void note(exam *e, const char *name, level found, const char *format, ...) CX_PRINTF(4, 5);

static void note(exam *e, const char *name, level found, const char *format, ...)
{
    CX_ASSERT(e->count < CHECKS_MAX);
    check *c = &e->checks[e->count++];
    c->name = name;
    c->found = found;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(c->detail, sizeof c->detail, format, args);
    va_end(args);
}

/* --- known answers ------------------------------------------------------------------------- */

/* The message "abc" of FIPS 180-4 in every kernel this machine can run. */
static void check_sha256(exam *e)
{
    static const char expected[] =
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    static const cx_digest_kernel kernels[] = {CX_DIGEST_PORTABLE, CX_DIGEST_SHANI,
                                               CX_DIGEST_AVX512};
    cx_digest wanted;
    bool known = cx_digest_parse(CX_STR(expected), &wanted);
    CX_ASSERT(known);
    char list[80] = "";
    for (size_t i = 0; i < CX_COUNT_OF(kernels); i++) {
        if (!cx_digest_has(kernels[i]))
            continue;
        const char *name = cx_digest_kernel_name(kernels[i]);
        cx_digest got = cx_digest_of_with(kernels[i], cx_str_bytes(CX_STR("abc")));
        if (!cx_digest_eq(&got, &wanted)) {
            note(e, "sha-256", LEVEL_FAIL,
                 "kernel %s gives a wrong digest; do not use this program on this machine", name);
            return;
        }
        size_t used = strlen(list);
        (void)snprintf(list + used, sizeof list - used, "%s%s", used == 0 ? "" : ", ", name);
    }
    cx_digest_kernel chosen = cx_digest_chosen();
    note(e, "sha-256", chosen == CX_DIGEST_PORTABLE ? LEVEL_WARN : LEVEL_OK,
         "%s chosen of %s; all give the right digest%s", cx_digest_kernel_name(chosen), list,
         chosen == CX_DIGEST_PORTABLE ? " (this processor has no faster way)" : "");
}

/* RFC 8032 §7.1, TEST 2, and the same with one bit of the signature changed. */
static void check_ed25519(exam *e)
{
    static const char key_hex[] =
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    static const char signature_hex[] =
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
    static const uint8_t message[] = {0x72};
    cx_pubkey key;
    cx_signature signature;
    bool known = cx_hex_decode(CX_STR(key_hex), key.bytes, sizeof key.bytes) &&
                 cx_hex_decode(CX_STR(signature_hex), signature.bytes, sizeof signature.bytes);
    CX_ASSERT(known);
    cx_bytes signed_bytes = {message, sizeof message};
    bool good = cx_ed25519_verify(&key, signed_bytes, &signature);
    signature.bytes[0] ^= 1;
    bool refused = !cx_ed25519_verify(&key, signed_bytes, &signature);
    if (good && refused)
        note(e, "ed25519", LEVEL_OK, "accepts the RFC 8032 signature, refuses a changed one");
    else
        note(e, "ed25519", LEVEL_FAIL, "%s; reinstall libsodium",
             good ? "accepts a changed signature" : "refuses a good signature");
}

static void check_json(exam *e)
{
    static const char in[] = "{\"b\":[1E+2,-0,9007199254740993,1e-7],\"a\":\"\\u00e9\\/\"}";
    static const char expected[] = "{\"a\":\"\\u00e9/\",\"b\":[100.0,0,9007199254740993,1e-07]}";
    cx_json value;
    cx_buf out;
    cx_buf_init(&out, e->cli->alloc);
    bool right = !cx_failed(cx_json_parse_text(CX_STR(in), &e->cli->arena, &value, NULL)) &&
                 !cx_failed(cx_json_write(&out, &value, CX_JSON_PY_COMPACT, NULL)) &&
                 cx_str_is(cx_buf_str(&out), expected);
    if (right)
        note(e, "json", LEVEL_OK, "the canonical form is right");
    else
        note(e, "json", LEVEL_FAIL, "the canonical form is wrong; rebuild and run the tests");
    cx_buf_done(&out);
}

static void check_lattice(exam *e)
{
    cx_buf out;
    cx_err err;
    unsigned failed = 0;
    cx_buf_init(&out, e->cli->alloc);
    if (cx_failed(cx_lattice_selftest(&out, &failed, &err)))
        note(e, "lattice", LEVEL_FAIL, "the selftest could not be run: %s", err.message);
    else if (failed != 0)
        note(e, "lattice", LEVEL_FAIL, "%u selftests failed; see 'cortex lattice selftest'",
             failed);
    else
        note(e, "lattice", LEVEL_OK, "the built-in good and bad histories are told apart");
    cx_buf_done(&out);
}

/* --- the machine --------------------------------------------------------------------------- */

static void check_machine(exam *e)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    note(e, "processor", cores > 1 ? LEVEL_OK : LEVEL_WARN, "%ld core%s%s", cores,
         cores == 1 ? "" : "s", cores > 1 ? "" : "; large files are read by one thread");
    double gib = (double)pages * (double)page_size / 1073741824.0;
    note(e, "memory", gib >= 1.0 ? LEVEL_OK : LEVEL_WARN,
         "%.1f GiB; a verified lattice takes about 256 bytes a node and its ids", gib);
}

/* The soft stack limit in KiB from /proc; 0 = unlimited.  False when it cannot be learnt. */
static bool stack_limit_kib(const cx_io *io, uint64_t *out)
{
    static const char label[] = "Max stack size";
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    bool known = !cx_failed(cx_io_read_file(io, "/proc/self/limits", 65536, &text, NULL));
    const char *all = known ? cx_buf_z(&text) : NULL;
    const char *line = all == NULL ? NULL : strstr(all, label);
    known = line != NULL;
    if (known) {
        line += strspn(line + sizeof label - 1, " ") + sizeof label - 1;
        *out = strtoull(line, NULL, 10) / 1024; /* "unlimited" reads as 0 */
    }
    cx_buf_done(&text);
    return known;
}

static void check_limits(exam *e)
{
    uint64_t stack;
    if (stack_limit_kib(e->cli->io, &stack)) {
        bool small = stack != 0 && stack < 256;
        if (stack == 0)
            note(e, "stack", LEVEL_OK, "unlimited");
        else
            note(e, "stack", small ? LEVEL_WARN : LEVEL_OK, "%llu KiB%s", (unsigned long long)stack,
                 small ? "; below 256 KiB is untested: raise it with ulimit -s" : "");
    }
    long files = sysconf(_SC_OPEN_MAX);
    if (files >= 0)
        note(e, "descriptors", files >= 64 ? LEVEL_OK : LEVEL_WARN, "%ld%s", files,
             files >= 64 ? "" : "; raise them with ulimit -n");
}

static void check_temporary(exam *e)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == 0)
        folder = "/tmp";
    const cx_io *io = e->cli->io;
    cx_str path = cx_arena_printf(&e->cli->arena, "%s/cortex-doctor-%016llx", folder,
                                  (unsigned long long)cx_io_seed(io));
    cx_file file;
    cx_err err = {0};
    cx_status status = {CX_E_IO};
    if (path.data != NULL &&
        io->open(io, path.data, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file) == 0) {
        status = cx_io_write_all(io, file, path.data, "cortex\n", 7, &err);
        (void)io->close(io, file);
        (void)io->unlink(io, path.data);
    }
    if (cx_failed(status))
        note(e, "temporary", LEVEL_WARN, "%s cannot be written; set TMPDIR to a folder that can",
             folder);
    else
        note(e, "temporary", LEVEL_OK, "%s can be written", folder);
}

static void check_terminal(exam *e)
{
    unsigned columns = cx_cli_columns();
    bool colour = cx_cli_colour(NULL, STDOUT_FILENO);
    if (columns == 0)
        note(e, "terminal", LEVEL_OK, "none: plain text");
    else
        note(e, "terminal", LEVEL_OK, "%u columns, %s", columns,
             colour ? "colours" : "no colours (NO_COLOR or TERM)");
}

/* --- the answer ---------------------------------------------------------------------------- */

static const char *level_name(level found)
{
    static const char *const names[] = {"ok", "warn", "fail"};
    return names[found];
}

static void write_json(const exam *e, bool ok, cx_buf *out)
{
    cx_buf_add_z(out, "{\"checks\":[");
    for (size_t i = 0; i < e->count; i++) {
        cx_buf_add_z(out, i == 0 ? "{\"detail\":" : ",{\"detail\":");
        cx_json_write_str(out, cx_str_z(e->checks[i].detail), CX_JSON_PY_COMPACT);
        cx_buf_printf(out, ",\"name\":\"%s\",\"result\":\"%s\"}", e->checks[i].name,
                      level_name(e->checks[i].found));
    }
    cx_buf_printf(out, "],\"ok\":%s,\"version\":\"%s\"}\n", ok ? "true" : "false", cx_version());
}

static void write_text(const exam *e, bool colour, cx_buf *out)
{
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
    for (size_t i = 0; i < e->count; i++) {
        const check *c = &e->checks[i];
        cx_buf_printf(out, "%s%-4s%s  %-11s  %s\n", colour ? colours[c->found] : "",
                      level_name(c->found), colour ? "\033[0m" : "", c->name, c->detail);
    }
}

static int run(cx_cli *cli, const cx_cli_args *args)
{
    exam e = {.cli = cli};
    check_sha256(&e);
    check_ed25519(&e);
    check_json(&e);
    check_lattice(&e);
    check_machine(&e);
    check_limits(&e);
    check_temporary(&e);
    check_terminal(&e);
    bool ok = true;
    for (size_t i = 0; i < e.count; i++)
        ok = ok && e.checks[i].found != LEVEL_FAIL;
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    if (cx_cli_has(args, "json"))
        write_json(&e, ok, &out);
    else
        write_text(&e, cx_cli_colour(cx_cli_value(args, "color"), STDOUT_FILENO), &out);
    int code = cx_cli_answer(cli, &out, ok ? CX_EXIT_HOLDS : CX_EXIT_UNCHECKED);
    cx_buf_done(&out);
    return code;
}
