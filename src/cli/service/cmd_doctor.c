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

#include "base/api.h"
#include "cli/service/doctor.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_place.h"
#include "crypto/api.h"
#include "lattice/api.h"

static int run_doctor(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("json", 0, "One line of canonical JSON instead of text."), CX_CLI_OPTION_REPO,
    CX_CLI_OPTION_HOME,
    CX_CLI_OPT("db", 0, CX_CLI_TEXT, "WHERE",
               "The index: a file, or postgresql://...; default HOME/cirislens.db."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_doctor = {
    .name = "doctor",
    .purpose = "check this machine and its dependencies",
    .about =
        "Tests the SHA-256 and CRC-32C kernels, Ed25519 and canonical JSON with known answers, and "
        "verifies the built-in histories. Checks processor, memory, stack, descriptors, "
        "temporary folder and terminal; the configuration; the data directory with its log, "
        "tables, index, keys, tokens and owner; disk and clock; what the server needs: "
        "libraries, ports, MCP; and what governed runs need: git, the layers of the sandbox, "
        "and, inside a repository, its runtime root, policies, schemas, hooks and runner; and "
        "for each coding agent in PATH, its version and whether our hooks hold. "
        "Each line is ok, warn or fail, with what to do.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 nothing failed\n2 usage error\n3 something failed, or the output could not be "
             "written",
    .example = "cortex doctor",
    .run = run_doctor,
};

void cx_doctor_note(cx_doctor *d, const char *name, cx_doctor_status status, const char *fix,
                    const char *format, ...)
{
    cx_doctor_check *slot = cx_vec_push(&d->checks, d->cli->alloc);
    char text[512];
    cx_buf shown;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cx_buf_init(&shown, d->cli->alloc);
    cx_shown_add(&shown, cx_str_z(text));
    cx_str detail = cx_arena_copy_str(&d->cli->arena, cx_buf_str(&shown));
    if (shown.failed)
        detail.data = NULL;
    cx_buf_done(&shown);
    if (slot == NULL || detail.data == NULL) {
        d->failed = true;
        d->checks.count -= slot != NULL;
        return;
    }
    *slot = (cx_doctor_check){name, status, detail, fix};
}

/* --- known answers ------------------------------------------------------------------------- */

/* Adds the name of a kernel to a list. */
static void list_kernel(char *list, size_t size, const char *name)
{
    size_t used = strlen(list);
    (void)snprintf(list + used, size - used, "%s%s", used == 0 ? "" : ", ", name);
}

/* Whether a kernel knows the message "abc" of FIPS 180-4: alone, and so many that all lanes have
 * one. */
static bool knows_sha256(cx_digest_kernel kernel, const cx_digest *wanted)
{
    enum { MESSAGES = 17 };
    const cx_bytes message = cx_str_bytes(CX_STR("abc"));
    cx_bytes messages[MESSAGES];
    cx_digest got[MESSAGES + 1];
    for (size_t i = 0; i < MESSAGES; i++)
        messages[i] = message;
    cx_digest_many_with(kernel, messages, got, MESSAGES);
    got[MESSAGES] = cx_digest_of_with(kernel, message);
    bool right = true;
    for (size_t i = 0; i <= MESSAGES; i++)
        right = right && cx_digest_eq(&got[i], wanted);
    return right;
}

static void check_sha256(cx_doctor *d)
{
    static const char expected[] =
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    cx_digest wanted;
    bool known = cx_digest_parse(CX_STR(expected), &wanted);
    CX_ASSERT(known);
    char list[80] = "";
    for (int i = 0; i < CX_DIGEST_KERNEL_COUNT; i++) {
        cx_digest_kernel kernel = (cx_digest_kernel)i;
        if (!cx_digest_has(kernel))
            continue;
        const char *name = cx_digest_kernel_name(kernel);
        if (!knows_sha256(kernel, &wanted)) {
            cx_doctor_note(
                d, "sha-256", CX_DOCTOR_FAIL, NULL,
                "kernel %s gives a wrong digest; do not use this program on this machine", name);
            return;
        }
        list_kernel(list, sizeof list, name);
    }
    cx_digest_kernel chosen = cx_digest_chosen();
    cx_doctor_note(d, "sha-256", chosen == CX_DIGEST_PORTABLE ? CX_DOCTOR_WARN : CX_DOCTOR_OK, NULL,
                   "%s chosen of %s; all give the right digest%s", cx_digest_kernel_name(chosen),
                   list, chosen == CX_DIGEST_PORTABLE ? " (this processor has no faster way)" : "");
}

/* The check value of CRC-32C, and more bytes than kernels take in one step, in every kernel. */
static void check_crc32c(cx_doctor *d)
{
    const uint32_t wanted = 0xe3069283; /* of the text "123456789" */
    uint8_t data[6000];
    char list[80] = "";
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i / 7);
    const uint32_t longer = cx_crc32c_add_with(CX_CRC32C_PORTABLE, wanted, data, sizeof data);
    for (int i = 0; i < CX_CRC32C_KERNEL_COUNT; i++) {
        cx_crc32c_kernel kernel = (cx_crc32c_kernel)i;
        if (!cx_crc32c_has(kernel))
            continue;
        const char *name = cx_crc32c_kernel_name(kernel);
        if (cx_crc32c_add_with(kernel, 0, "123456789", 9) != wanted ||
            cx_crc32c_add_with(kernel, wanted, data, sizeof data) != longer) {
            cx_doctor_note(
                d, "crc-32c", CX_DOCTOR_FAIL, NULL,
                "kernel %s gives a wrong checksum; do not use this program on this machine", name);
            return;
        }
        list_kernel(list, sizeof list, name);
    }
    cx_doctor_note(d, "crc-32c", CX_DOCTOR_OK, NULL, "%s chosen of %s; all give the right checksum",
                   cx_crc32c_kernel_name(cx_crc32c_chosen()), list);
}

/* RFC 8032 §7.1, TEST 2, and the same with one bit of the signature changed. */
static void check_ed25519(cx_doctor *d)
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
        cx_doctor_note(d, "ed25519", CX_DOCTOR_OK, NULL,
                       "accepts the RFC 8032 signature, refuses a changed one");
    else
        cx_doctor_note(d, "ed25519", CX_DOCTOR_FAIL, NULL, "%s; reinstall libsodium",
                       good ? "accepts a changed signature" : "refuses a good signature");
}

static void check_json(cx_doctor *d)
{
    static const char in[] = "{\"b\":[1E+2,-0,9007199254740993,1e-7],\"a\":\"\\u00e9\\/\"}";
    static const char expected[] = "{\"a\":\"\\u00e9/\",\"b\":[100.0,0,9007199254740993,1e-07]}";
    cx_json value;
    cx_buf out;
    cx_buf_init(&out, d->cli->alloc);
    bool right = !cx_failed(cx_json_parse_text(CX_STR(in), &d->cli->arena, &value, NULL)) &&
                 !cx_failed(cx_json_write(&out, &value, CX_JSON_PY_COMPACT, NULL)) &&
                 cx_str_is(cx_buf_str(&out), expected);
    if (right)
        cx_doctor_note(d, "json", CX_DOCTOR_OK, NULL, "the canonical form is right");
    else
        cx_doctor_note(d, "json", CX_DOCTOR_FAIL, NULL,
                       "the canonical form is wrong; rebuild and run the tests");
    cx_buf_done(&out);
}

static void check_lattice(cx_doctor *d)
{
    cx_buf out;
    cx_err err;
    unsigned failed = 0;
    cx_buf_init(&out, d->cli->alloc);
    if (cx_failed(cx_lattice_selftest(&out, &failed, &err)))
        cx_doctor_note(d, "lattice", CX_DOCTOR_FAIL, NULL, "the selftest failed to run: %s",
                       err.message);
    else if (failed != 0)
        cx_doctor_note(d, "lattice", CX_DOCTOR_FAIL, NULL,
                       "%u selftests failed; see 'cortex lattice selftest'", failed);
    else
        cx_doctor_note(d, "lattice", CX_DOCTOR_OK, NULL,
                       "the built-in good histories verify, and the damaged ones do not");
    cx_buf_done(&out);
}

/* --- the machine --------------------------------------------------------------------------- */

static void check_system(cx_doctor *d)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    cx_doctor_note(d, "processor", cores > 1 ? CX_DOCTOR_OK : CX_DOCTOR_WARN, NULL, "%ld core%s%s",
                   cores, cores == 1 ? "" : "s",
                   cores > 1 ? "" : "; large files are read by one thread");
    double gib = (double)pages * (double)page_size / 1073741824.0;
    cx_doctor_note(d, "memory", gib >= 1.0 ? CX_DOCTOR_OK : CX_DOCTOR_WARN, NULL,
                   "%.1f GiB; a verified lattice takes about 256 bytes a node and its ids", gib);
}

static void check_limits(cx_doctor *d)
{
    uint64_t stack;
    if (cx_machine_stack_limit(&stack)) {
        stack /= 1024;
        bool small = stack != 0 && stack < 256;
        if (stack == 0)
            cx_doctor_note(d, "stack", CX_DOCTOR_OK, NULL, "unlimited");
        else
            cx_doctor_note(d, "stack", small ? CX_DOCTOR_WARN : CX_DOCTOR_OK, NULL, "%llu KiB%s",
                           (unsigned long long)stack,
                           small ? "; below 256 KiB is untested: raise it with ulimit -s" : "");
    }
    long files = sysconf(_SC_OPEN_MAX);
    if (files >= 0)
        cx_doctor_note(d, "descriptors", files >= 64 ? CX_DOCTOR_OK : CX_DOCTOR_WARN, NULL, "%ld%s",
                       files, files >= 64 ? "" : "; raise them with ulimit -n");
}

static void check_temporary(cx_doctor *d)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == 0)
        folder = "/tmp";
    const cx_io *io = d->cli->io;
    cx_str path = cx_arena_printf(&d->cli->arena, "%s/cortex-doctor-%016llx", folder,
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
        cx_doctor_note(d, "temporary", CX_DOCTOR_WARN, NULL,
                       "%s cannot be written; set TMPDIR to a folder that can", folder);
    else
        cx_doctor_note(d, "temporary", CX_DOCTOR_OK, NULL, "%s can be written", folder);
}

static void check_terminal(cx_doctor *d)
{
    unsigned columns = cx_cli_columns();
    bool colour = cx_cli_colour(&d->cli->out, NULL);
    if (columns == 0)
        cx_doctor_note(d, "terminal", CX_DOCTOR_OK, NULL, "none: plain text");
    else
        cx_doctor_note(d, "terminal", CX_DOCTOR_OK, NULL, "%u columns, %s", columns,
                       colour ? "colours" : "no colours (NO_COLOR or TERM)");
}

/* --- the answer ---------------------------------------------------------------------------- */

static const char *status_name(cx_doctor_status status)
{
    static const char *const names[] = {"ok", "warn", "fail"};
    return names[status];
}

static void write_json(const cx_doctor *d, bool ok, cx_buf *out)
{
    cx_buf_add_z(out, "{\"checks\":[");
    for (size_t i = 0; i < d->checks.count; i++) {
        const cx_doctor_check *c = &d->checks.items[i];
        cx_buf_add_z(out, i == 0 ? "{\"detail\":" : ",{\"detail\":");
        cx_json_write_str(out, c->detail, CX_JSON_PY_COMPACT);
        cx_buf_add_z(out, ",\"fix\":");
        if (c->fix == NULL)
            cx_buf_add_z(out, "null");
        else
            cx_cli_add_json_text(out, cx_str_z(c->fix));
        cx_buf_printf(out, ",\"name\":\"%s\",\"status\":\"%s\"}", c->name, status_name(c->status));
    }
    cx_buf_printf(out, "],\"ok\":%s,\"version\":\"%s\"}\n", ok ? "true" : "false", cx_version());
}

static void write_text(const cx_doctor *d, bool colour, cx_buf *out)
{
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
    for (size_t i = 0; i < d->checks.count; i++) {
        const cx_doctor_check *c = &d->checks.items[i];
        cx_buf_printf(out, "%s%-4s%s  %-12s  ", colour ? colours[c->status] : "",
                      status_name(c->status), colour ? "\033[0m" : "", c->name);
        cx_buf_add_str(out, c->detail);
        cx_buf_add_byte(out, '\n');
        if (c->fix != NULL && c->status != CX_DOCTOR_OK) {
            cx_buf_printf(out, "%20s-> ", "");
            cx_shown_add(out, cx_str_z(c->fix));
            cx_buf_add_byte(out, '\n');
        }
    }
}

static int run_doctor(cx_cli *cli, const cx_cli_args *args)
{
    cx_doctor d = {.cli = cli};
    check_sha256(&d);
    check_crc32c(&d);
    check_ed25519(&d);
    check_json(&d);
    check_lattice(&d);
    check_system(&d);
    check_limits(&d);
    check_temporary(&d);
    check_terminal(&d);
    cx_doctor_check_home(&d, args);
    cx_doctor_check_runs(&d, args);
    cx_doctor_check_agents(&d, args);
    bool ok = !d.failed;
    for (size_t i = 0; i < d.checks.count; i++)
        ok = ok && d.checks.items[i].status != CX_DOCTOR_FAIL;
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    if (cx_cli_has(args, "json"))
        write_json(&d, ok, &out);
    else
        write_text(&d, cx_cli_colour(&cli->out, cx_cli_value(args, "color")), &out);
    int code = cx_cli_answer(cli, &out, ok ? CX_EXIT_HOLDS : CX_EXIT_UNCHECKED);
    cx_buf_done(&out);
    cx_vec_done(&d.checks, cli->alloc);
    return code;
}
