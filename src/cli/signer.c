/*
 * signer.c - signing with a key file or another program.
 */
#include "cli/signer.h"

#include <sodium.h>
#include <string.h>

#include "cli/user_program.h"
#include "os/api.h"
#include "crypto/api.h"

#define KEY_PREFIX "PRIVATE+KEY+"

enum { KEY_FILE_MAX = 4096, SEED_SIZE = 32, SIGNER_OUTPUT_MAX = 4096, SIGNER_TIMEOUT_S = 30 };

static cx_str trim_text(cx_str text)
{
    while (text.size != 0 && strchr(" \t\r\n", text.data[text.size - 1]) != NULL)
        text.size--;
    return text;
}

/* --- key files -------------------------------------------------------------------------------- */

static cx_status bad_key_file(const char *path, cx_err *err)
{
    return cx_fail_at(err, CX_E_USAGE, "BadKey", CX_NO_OFFSET,
                      "%s holds no signing key, expected one line PRIVATE+KEY+name+id+base64 as "
                      "'cortex key new' writes it",
                      path);
}

/* Splits "PRIVATE+KEY+name+id+base64"; names have no '+'. */
static bool split_key(cx_str line, cx_str *out_name, cx_str *out_id, cx_str *out_seed)
{
    if (!cx_str_starts(line, CX_STR(KEY_PREFIX)))
        return false;
    const char *at = line.data + sizeof KEY_PREFIX - 1, *end = line.data + line.size;
    const char *first = memchr(at, '+', (size_t)(end - at));
    const char *second = first == NULL ? NULL : memchr(first + 1, '+', (size_t)(end - first - 1));
    if (second == NULL)
        return false;
    *out_name = cx_str_from(at, (size_t)(first - at));
    *out_id = cx_str_from(first + 1, (size_t)(second - first - 1));
    *out_seed = cx_str_from(second + 1, (size_t)(end - second - 1));
    return true;
}

/* The secret is 64 bytes, seed and public key; `text` is borrowed by the name. */
static bool parse_key(cx_str text, cx_vkey *out, uint8_t secret[64])
{
    cx_str name, id, seed_text;
    uint8_t key_id[4];
    cx_buf seed;
    if (!split_key(trim_text(text), &name, &id, &seed_text) || !cx_checkpoint_origin_ok(name) ||
        !cx_hex_decode(id, key_id, sizeof key_id))
        return false;
    cx_buf_init(&seed, cx_alloc_default());
    bool good = cx_base64_decode(seed_text, CX_BASE64, &seed) && !seed.failed &&
                seed.size == 1 + SEED_SIZE && seed.data[0] == CX_VKEY_NOTE;
    if (good) {
        cx_pubkey key;
        good = crypto_sign_seed_keypair(key.bytes, secret, seed.data + 1) == 0;
        cx_vkey_make(name, CX_VKEY_NOTE, &key, out);
        good = good && memcmp(out->key_id, key_id, sizeof key_id) == 0;
    }
    if (seed.data != NULL)
        sodium_memzero(seed.data, seed.size);
    cx_buf_done(&seed);
    return good;
}

static cx_status read_key_file(cx_cli *cli, const char *path, cx_vkey *out, uint8_t secret[64],
                               cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_io_read_file(cli->io, path, KEY_FILE_MAX, &text, err);
    if (!cx_failed(status) && !parse_key(cx_buf_str(&text), out, secret))
        status = bad_key_file(path, err);
    if (!cx_failed(status)) {
        out->name = cx_arena_copy_str(&cli->arena, out->name);
        if (out->name.data == NULL)
            status = cx_fail_nomem(err);
    }
    if (text.data != NULL)
        sodium_memzero(text.data, text.size);
    cx_buf_done(&text);
    return status;
}

cx_status cx_cli_key_read(cx_cli *cli, const char *path, cx_vkey *out, cx_err *err)
{
    uint8_t secret[64];
    cx_status status = read_key_file(cli, path, out, secret, err);
    sodium_memzero(secret, sizeof secret);
    return status;
}

cx_status cx_cli_signer_open_file(cx_cli *cli, const char *path, cx_cli_signer *out, cx_err *err)
{
    cx_vkey vkey;
    memset(out, 0, sizeof *out);
    out->cli = cli;
    CX_TRY(read_key_file(cli, path, &vkey, out->secret, err));
    out->name = vkey.name;
    out->key = vkey.key;
    return CX_SUCCESS;
}

static cx_status write_key_file(cx_cli *cli, const char *path, cx_bytes line, cx_err *err)
{
    cx_file file;
    const cx_io *io = cli->io;
    int failed = io->open(io, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot write %s", path);
    cx_status status = cx_io_write_all(io, file, path, line.data, line.size, err);
    if (!cx_failed(status) && (failed = io->sync(io, file, false)) != 0)
        status = cx_fail_os(err, -failed, "cannot write %s", path);
    if ((failed = io->close(io, file)) != 0 && !cx_failed(status))
        status = cx_fail_os(err, -failed, "cannot write %s", path);
    if (cx_failed(status))
        (void)io->unlink(io, path);
    return status;
}

cx_status cx_cli_key_make(cx_cli *cli, const char *path, cx_str name, cx_pubkey *out, cx_err *err)
{
    uint8_t seed[1 + SEED_SIZE] = {CX_VKEY_NOTE}, secret[64];
    cx_vkey vkey;
    cx_buf line;
    int failed = cli->io->random(cli->io, seed + 1, SEED_SIZE);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot read random bytes for a key");
    int made = crypto_sign_seed_keypair(out->bytes, secret, seed + 1);
    CX_ASSERT(made == 0);
    cx_vkey_make(name, CX_VKEY_NOTE, out, &vkey);
    cx_buf_init(&line, cli->alloc);
    cx_status status = CX_SUCCESS;
    /* Allocated at full size: growing would leave copies of the seed in memory. */
    if (cx_buf_reserve(&line, name.size + 128) == NULL)
        status = cx_fail_nomem(err);
    cx_buf_add_z(&line, KEY_PREFIX);
    cx_buf_add_str(&line, name);
    cx_buf_add_byte(&line, '+');
    cx_hex_add(&line, cx_bytes_from(vkey.key_id, sizeof vkey.key_id));
    cx_buf_add_byte(&line, '+');
    cx_base64_add(&line, cx_bytes_from(seed, sizeof seed), CX_BASE64);
    cx_buf_add_byte(&line, '\n');
    if (!cx_failed(status))
        status = cx_buf_check(&line, err);
    if (!cx_failed(status))
        status = write_key_file(cli, path, cx_buf_bytes(&line), err);
    if (line.data != NULL)
        sodium_memzero(line.data, line.size);
    cx_buf_done(&line);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(secret, sizeof secret);
    return status;
}

/* --- public keys ------------------------------------------------------------------------------ */

/* A verifier key by its shape: its error is told, since it may be one letter. */
static bool looks_like_vkey(cx_str text)
{
    const char *plus = text.size == 0 ? NULL : memchr(text.data, '+', text.size);
    size_t name_size = plus == NULL ? 0 : (size_t)(plus - text.data);
    return plus != NULL && text.size > name_size + 10 && plus[9] == '+';
}

static bool parse_public(cx_str text, cx_vkey *out)
{
    if (!cx_failed(cx_vkey_parse(text, out, NULL)))
        return true;
    memset(out, 0, sizeof *out);
    return cx_hex_decode_any(text, out->key.bytes, sizeof out->key.bytes);
}

cx_status cx_cli_read_key(cx_cli *cli, const char *what, const char *value, cx_vkey *out,
                          cx_err *err)
{
    cx_str text = cx_str_z(value);
    if (!parse_public(text, out)) {
        cx_buf bytes;
        cx_err why;
        if (looks_like_vkey(text) && cx_failed(cx_vkey_parse(text, out, &why)))
            return cx_fail(err, CX_E_USAGE, "%s: %s", what, why.message);
        cx_buf_init(&bytes, cli->alloc);
        cx_status status = cx_io_read_file(cli->io, value, KEY_FILE_MAX, &bytes, &why);
        text = cx_arena_copy_str(&cli->arena, cx_buf_str(&bytes));
        cx_buf_done(&bytes);
        if (cx_failed(status) || text.data == NULL ||
            (text.size != sizeof out->key.bytes && !parse_public(trim_text(text), out)))
            return cx_fail(err, CX_E_USAGE,
                           "%s: found no key in '%s', expected a verifier key (NAME+ID+BASE64), 64 "
                           "hex digits, or a file with one of them%s%s",
                           what, value, cx_failed(status) ? ": " : "",
                           cx_failed(status) ? why.message : "");
        if (text.size == sizeof out->key.bytes) {
            memset(out, 0, sizeof *out);
            memcpy(out->key.bytes, text.data, sizeof out->key.bytes);
        }
    }
    for (size_t i = 0; i < sizeof out->key.bytes; i++)
        if (out->key.bytes[i] != 0)
            return CX_SUCCESS;
    return cx_fail(err, CX_E_USAGE,
                   "%s: found a key of zeros, which is no Ed25519 key; expected the one that the "
                   "signer's key file or program shows",
                   what);
}

/* --- signing ---------------------------------------------------------------------------------- */

bool cx_cli_signer_wanted(const cx_cli_args *args)
{
    return cx_cli_has(args, "sign") || cx_cli_has(args, "signer");
}

/* `option` is the one whose value is a key file. */
static cx_status open_signer(cx_cli *cli, const cx_cli_args *args, const char *option,
                             cx_cli_signer *out, cx_err *err)
{
    const char *path = cx_cli_value(args, option);
    const char *key = cx_cli_value(args, "signer-key");
    cx_vkey vkey;
    memset(out, 0, sizeof *out);
    out->cli = cli;
    out->command = cx_cli_value(args, "signer");
    out->timeout_s = cx_cli_number(args, "signer-timeout", SIGNER_TIMEOUT_S);
    if (out->timeout_s == 0 || out->timeout_s > CX_CLI_PROGRAM_SECONDS_MAX)
        return cx_fail(err, CX_E_USAGE, "option --signer-timeout: expected 1 to %d",
                       CX_CLI_PROGRAM_SECONDS_MAX);
    if ((path == NULL) == (out->command == NULL))
        return cx_fail(err, CX_E_USAGE, "expected either --%s KEYFILE or --signer COMMAND", option);
    if ((key != NULL) != (out->command != NULL))
        return cx_fail(err, CX_E_USAGE, "expected both --signer and --signer-key, or neither");
    if (path != NULL)
        CX_TRY(read_key_file(cli, path, &vkey, out->secret, err));
    else
        CX_TRY(cx_cli_read_key(cli, "option --signer-key", key, &vkey, err));
    out->name = vkey.name;
    out->key = vkey.key;
    return CX_SUCCESS;
}

cx_status cx_cli_signer_open(cx_cli *cli, const cx_cli_args *args, cx_cli_signer *out, cx_err *err)
{
    return open_signer(cli, args, "sign", out, err);
}

cx_status cx_cli_signer_open_key(cx_cli *cli, const cx_cli_args *args, cx_cli_signer *out,
                                 cx_err *err)
{
    return open_signer(cli, args, "key", out, err);
}

void cx_cli_signer_done(cx_cli_signer *signer)
{
    sodium_memzero(signer->secret, sizeof signer->secret);
}

/* 64 bytes, raw or in hex or base64; trailing white space is allowed in the text forms. */
static bool parse_signature(cx_bytes answer, cx_signature *out)
{
    cx_str text = trim_text(cx_bytes_str(answer));
    if (answer.size == sizeof out->bytes) {
        memcpy(out->bytes, answer.data, sizeof out->bytes);
        return true;
    }
    if (cx_hex_decode_any(text, out->bytes, sizeof out->bytes))
        return true;
    cx_buf bytes;
    cx_buf_init(&bytes, cx_alloc_default());
    bool good = cx_base64_decode(text, CX_BASE64, &bytes) && !bytes.failed &&
                bytes.size == sizeof out->bytes;
    if (good)
        memcpy(out->bytes, bytes.data, sizeof out->bytes);
    cx_buf_done(&bytes);
    return good;
}

static cx_status sign_with_command(cx_cli_signer *signer, cx_bytes message, cx_signature *out,
                                   cx_err *err)
{
    const cx_cli_user_program program = {.option = "signer",
                                         .command = signer->command,
                                         .failure = "SignerFailed",
                                         .timeout_s = signer->timeout_s,
                                         .output_max = SIGNER_OUTPUT_MAX};
    const char *name;
    cx_buf answer;
    cx_buf_init(&answer, signer->cli->alloc);
    cx_status status = cx_cli_user_program_run(signer->cli, &program, message, &answer, &name, err);
    if (!cx_failed(status) && !parse_signature(cx_buf_bytes(&answer), out))
        status = cx_fail_at(err, CX_E_IO, "SignerFailed", CX_NO_OFFSET,
                            "%s answered %zu bytes, expected a signature of 64 bytes, also in hex "
                            "or base64",
                            name, answer.size);
    cx_buf_done(&answer);
    return status;
}

cx_status cx_cli_signer_sign(cx_cli_signer *signer, cx_bytes message, cx_signature *out,
                             cx_err *err)
{
    if (signer->command != NULL)
        CX_TRY(sign_with_command(signer, message, out, err));
    else
        (void)crypto_sign_detached(out->bytes, NULL, message.data, message.size, signer->secret);
    if (cx_ed25519_verify(&signer->key, message, out))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_DENIED, "BadSignature", CX_NO_OFFSET,
                      "the signer's answer is not a valid signature of the given key");
}
