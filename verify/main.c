/*
 * main.c - cortex-verify: does this proof hold?
 *
 * A small program for anyone who receives a proof.  It needs no data directory and no network,
 * opens files only for reading, and trusts nothing but its own command line.  All checking is in
 * src/proof (check.h) and src/evidence; this file turns options into what is trusted, and findings
 * into lines and an exit code.
 */
#include <stdio.h>
#include <string.h>

#include "base/api.h"
#include "crypto/api.h"
#include "evidence/api.h"
#include "proof/api.h"

enum { EXIT_HOLDS = 0, EXIT_BROKEN = 1, EXIT_USAGE = 2, EXIT_UNCHECKED = 3 };
enum { STANDARD_OUTPUT = 1, KEY_FILE_MAX = 4096 };

static const char usage[] =
    "Usage: cortex-verify [OPTIONS] FILE...\n"
    "\n"
    "Checks evidence files (.cxe), proof packs, state proofs, manifests, inclusion and\n"
    "consistency proofs, signed checkpoints, tlog-proofs, COSE receipts, scopes, home proofs,\n"
    "receipts of erasures and proofs of absence ('cortex prove --never').\n"
    "The kind of a FILE is recognised by its content; \"-\" is standard input. Needs no data\n"
    "directory and no network, and writes nothing.\n"
    "\n"
    "What is trusted:\n"
    "  --key KEY               a verifier key (NAME+ID+BASE64), 64 hex digits of an Ed25519\n"
    "                          public key, or a file with one of them; may be repeated\n"
    "  --witness-key KEY       the verifier key of a witness; may be repeated: all of them must\n"
    "                          have cosigned, or as many as --cosigners says\n"
    "  --cosigners N           a checkpoint must be cosigned by N of the keys\n"
    "  --overall-root HEX      the overall root of the manifest\n"
    "  --root HEX              the root of the journal, or of the newer one\n"
    "  --size N                how many entries that journal has\n"
    "  --checkpoint FILE       a signed checkpoint in place of --root and --size\n"
    "  --from-root HEX, --from-size N, --from-checkpoint FILE\n"
    "                          the older journal of a consistency proof\n"
    "  --manifest FILE         the manifest of a state proof that comes alone\n"
    "\n"
    "What is asked:\n"
    "  --entry FILE            the entry an inclusion proof, tlog-proof or receipt is about\n"
    "  --leaf HEX              its leaf hash\n"
    "  --namespace NAME        memories or edges: a proof of the other is broken\n"
    "  --members, --absent     every key must be a member (erased or not), or absent\n"
    "  --never NAME, --in RUN  what a proof of absence must be about: tool:bash, file:a/b,\n"
    "                          read:, write: or host:, and run:ID or session:ID\n"
    "  --require WHAT          anchored, the default: something given must bear it out; signed: a\n"
    "                          key given must have signed it; else the verdict is indeterminate\n"
    "  --self-consistent       that a file agrees with itself is enough: anybody can make such "
    "one\n"
    "\n"
    "  --details               also show roots and counts of signatures\n"
    "  --json                  one JSON object a file\n"
    "  --help, --version\n"
    "\n"
    "Exit: 0 all hold, 1 one is broken, 2 usage, 3 one could not be checked or is indeterminate.\n"
    "\n"
    "Example: cortex-verify --key auditor.pub answer.proof\n";

typedef struct program {
    const cx_io *io;
    cx_arena arena; /* what the options hold */
    cx_check_options options;
    cx_vkey keys[CX_NOTE_KEYS_MAX];
    cx_digest overall_root, leaf_hash;
    cx_journal_point journal, older;
    bool has_root, has_size, has_from_root, has_from_size, has_require;
    bool details, json, self_consistent, has_cosigners;
    size_t witness_count;
    const char **files;
    size_t file_count;
    bool used_standard_input;
    bool asked_only; /* --help, --version: answered already */
} program;

static void print_complaint(cx_str text)
{
    cx_buf line;
    cx_buf_init(&line, cx_alloc_default());
    cx_shown_add(&line, text);
    if (!line.failed)
        (void)fprintf(stderr, "cortex-verify: %.*s\n", (int)line.size, (const char *)line.data);
    cx_buf_done(&line);
}

/* --- what options mean ------------------------------------------------------------------------ */

/* The whole file, kept in the arena. */
static cx_status read_kept(program *p, const char *path, size_t limit_bytes, cx_bytes *out,
                           cx_err *err)
{
    cx_buf bytes;
    if (strcmp(path, "-") == 0 && p->used_standard_input)
        return cx_fail(err, CX_E_USAGE, "standard input can be read only once");
    p->used_standard_input = p->used_standard_input || strcmp(path, "-") == 0;
    cx_buf_init(&bytes, cx_alloc_default());
    cx_status status = cx_io_read_file(p->io, path, limit_bytes, &bytes, err);
    if (!cx_failed(status)) {
        cx_str kept = cx_arena_copy_str(&p->arena, cx_buf_str(&bytes));
        *out = cx_str_bytes(kept);
        if (kept.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&bytes);
    return status;
}

/* A file an option names.  An empty one is refused: empty bytes mean "not given". */
static cx_status read_option_file(program *p, const char *option, const char *path, cx_bytes *out,
                                  cx_err *err)
{
    CX_TRY(read_kept(p, path, CX_PROOF_BYTES_MAX, out, err));
    if (out->size == 0)
        return cx_fail(err, CX_E_FORMAT, "option --%s: %s is empty", option, path);
    return CX_SUCCESS;
}

static cx_str trim_blanks(cx_str text)
{
    while (text.size != 0 && strchr(" \t\r\n", text.data[text.size - 1]) != NULL)
        text.size--;
    return text;
}

/* A verifier key or bare hex; false when it is neither. */
static bool parse_key(cx_str text, cx_vkey *out, cx_err *err)
{
    if (!cx_failed(cx_vkey_parse(text, out, err)))
        return true;
    memset(out, 0, sizeof *out);
    return cx_hex_decode_any(text, out->key.bytes, sizeof out->key.bytes);
}

static cx_status parse_key_option(program *p, const char *value, cx_err *err)
{
    cx_vkey *key = &p->keys[p->options.key_count];
    cx_bytes bytes;
    cx_err why;
    if (p->options.key_count == CX_NOTE_KEYS_MAX)
        return cx_fail(err, CX_E_USAGE, "option --key: at most %d keys", CX_NOTE_KEYS_MAX);
    if (!parse_key(cx_str_z(value), key, &why)) {
        cx_status status = read_kept(p, value, KEY_FILE_MAX, &bytes, err);
        if (status.code == CX_E_NOT_FOUND)
            return cx_fail(err, CX_E_USAGE, "option --key: '%s' is neither a key nor a file",
                           value);
        CX_TRY(status);
        if (bytes.size == sizeof key->key.bytes)
            memcpy(key->key.bytes, bytes.data, sizeof key->key.bytes);
        else if (!parse_key(trim_blanks(cx_bytes_str(bytes)), key, &why))
            return cx_fail(err, CX_E_USAGE,
                           "option --key: found no key in '%s', expected a verifier key, 64 hex "
                           "digits or 32 bytes",
                           value);
    }
    p->options.keys = p->keys;
    p->options.key_count++;
    return CX_SUCCESS;
}

static cx_status parse_digest_option(const char *option, const char *value, cx_digest *out,
                                     cx_err *err)
{
    if (cx_hex_decode_any(cx_str_z(value), out->bytes, sizeof out->bytes))
        return CX_SUCCESS;
    return cx_fail(err, CX_E_USAGE, "option --%s: found '%s', expected 64 hex digits", option,
                   value);
}

static cx_status parse_number_option(const char *option, const char *value, uint64_t max,
                                     uint64_t *out, cx_err *err)
{
    uint64_t number = 0;
    bool good = value[0] != 0;
    for (const char *at = value; good && *at != 0; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        good = digit <= 9 && number <= (UINT64_MAX - digit) / 10;
        number = good ? number * 10 + digit : 0;
    }
    if (!good || number > max)
        return cx_fail(err, CX_E_USAGE, "option --%s: found '%s', expected a number", option,
                       value);
    *out = number;
    return CX_SUCCESS;
}

static cx_status parse_word_option(program *p, const char *option, const char *value, cx_err *err)
{
    cx_check_options *options = &p->options;
    if (strcmp(option, "namespace") == 0) {
        options->namespace_given = true;
        options->name_space =
            strcmp(value, "edges") == 0 ? CX_NAMESPACE_EDGES : CX_NAMESPACE_MEMORIES;
        if (strcmp(value, "edges") == 0 || strcmp(value, "memories") == 0)
            return CX_SUCCESS;
        return cx_fail(err, CX_E_USAGE,
                       "option --namespace: found '%s', expected memories or edges", value);
    }
    p->has_require = true;
    options->require = strcmp(value, "signed") == 0 ? CX_REQUIRE_SIGNED : CX_REQUIRE_ANCHORED;
    if (strcmp(value, "signed") == 0 || strcmp(value, "anchored") == 0)
        return CX_SUCCESS;
    return cx_fail(err, CX_E_USAGE, "option --require: found '%s', expected anchored or signed",
                   value);
}

/* The name in normal form; the subject as sets have it. */
static cx_status parse_never_option(program *p, const char *option, const char *value, cx_err *err)
{
    cx_check_options *options = &p->options;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    bool never = strcmp(option, "never") == 0;
    cx_status status = never ? cx_action_name_normal(cx_str_z(value), &text, err)
                             : cx_action_subject_normal(cx_str_z(value), &text, err);
    cx_str kept =
        cx_failed(status) ? (cx_str){NULL, 0} : cx_arena_copy_str(&p->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    *(never ? &options->never : &options->subject) = kept;
    return kept.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status parse_value_option(program *p, const char *option, const char *value, cx_err *err)
{
    cx_check_options *options = &p->options;
    if (strcmp(option, "key") == 0)
        return parse_key_option(p, value, err);
    if (strcmp(option, "witness-key") == 0) {
        CX_TRY(parse_key_option(p, value, err));
        if (p->keys[options->key_count - 1].algorithm != CX_VKEY_COSIGNATURE)
            return cx_fail(err, CX_E_USAGE,
                           "option --witness-key: expected the verifier key of a witness, as "
                           "'cortex witness' prints it");
        p->witness_count++;
        return CX_SUCCESS;
    }
    if (strcmp(option, "cosigners") == 0) {
        uint64_t count = 0;
        p->has_cosigners = true;
        CX_TRY(parse_number_option(option, value, CX_NOTE_KEYS_MAX, &count, err));
        options->cosigners_required = (size_t)count;
        return CX_SUCCESS;
    }
    if (strcmp(option, "never") == 0 || strcmp(option, "in") == 0)
        return parse_never_option(p, option, value, err);
    if (strcmp(option, "overall-root") == 0) {
        options->overall_root = &p->overall_root;
        return parse_digest_option(option, value, &p->overall_root, err);
    }
    if (strcmp(option, "leaf") == 0) {
        options->leaf_hash = &p->leaf_hash;
        return parse_digest_option(option, value, &p->leaf_hash, err);
    }
    if (strcmp(option, "root") == 0) {
        p->has_root = true;
        return parse_digest_option(option, value, &p->journal.root, err);
    }
    if (strcmp(option, "from-root") == 0) {
        p->has_from_root = true;
        return parse_digest_option(option, value, &p->older.root, err);
    }
    if (strcmp(option, "size") == 0) {
        p->has_size = true;
        return parse_number_option(option, value, UINT64_MAX - 1, &p->journal.size, err);
    }
    if (strcmp(option, "from-size") == 0) {
        p->has_from_size = true;
        return parse_number_option(option, value, UINT64_MAX - 1, &p->older.size, err);
    }
    if (strcmp(option, "checkpoint") == 0)
        return read_option_file(p, option, value, &options->checkpoint, err);
    if (strcmp(option, "from-checkpoint") == 0)
        return read_option_file(p, option, value, &options->older_checkpoint, err);
    if (strcmp(option, "manifest") == 0)
        return read_option_file(p, option, value, &options->manifest, err);
    if (strcmp(option, "entry") == 0)
        return read_option_file(p, option, value, &options->entry, err);
    return parse_word_option(p, option, value, err);
}

/* --- reading the command line ----------------------------------------------------------------- */

static const char *const with_value[] = {
    "key",       "cosigners", "overall-root",    "root",     "size",       "checkpoint",
    "from-root", "from-size", "from-checkpoint", "manifest", "entry",      "leaf",
    "namespace", "require",   "never",           "in",       "witness-key"};

/* The option's name when `word` is `--name` or `--name=value`, else NULL. */
static const char *option_named(const char *word, const char **out_value)
{
    for (size_t i = 0; i < CX_COUNT_OF(with_value); i++) {
        size_t size = strlen(with_value[i]);
        if (strncmp(word + 2, with_value[i], size) != 0)
            continue;
        if (word[2 + size] != 0 && word[2 + size] != '=')
            continue;
        *out_value = word[2 + size] == '=' ? word + 3 + size : NULL;
        return with_value[i];
    }
    return NULL;
}

static cx_status parse_flag(program *p, const char *word, cx_err *err)
{
    cx_check_expect expected = p->options.expect;
    if (strcmp(word, "--json") == 0)
        p->json = true;
    else if (strcmp(word, "--details") == 0)
        p->details = true;
    else if (strcmp(word, "--members") == 0)
        p->options.expect = CX_EXPECT_MEMBERS;
    else if (strcmp(word, "--absent") == 0)
        p->options.expect = CX_EXPECT_ABSENT;
    else if (strcmp(word, "--self-consistent") == 0)
        p->self_consistent = true;
    else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
             strcmp(word, "--version") == 0)
        p->asked_only = true;
    else
        return cx_fail(err, CX_E_USAGE, "there is no option '%s'", word);
    if (expected != CX_EXPECT_ANY && p->options.expect != expected)
        return cx_fail(err, CX_E_USAGE, "--members and --absent cannot both be asked");
    return CX_SUCCESS;
}

static cx_status read_words(program *p, int argc, char **argv, cx_err *err)
{
    bool options_ended = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = NULL;
        if (options_ended || word[0] != '-' || word[1] == 0) {
            p->files[p->file_count++] = word;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            options_ended = true;
            continue;
        }
        const char *option = word[1] == '-' ? option_named(word, &value) : NULL;
        if (option == NULL) {
            CX_TRY(parse_flag(p, word, err));
            continue;
        }
        if (value == NULL && i + 1 == argc)
            return cx_fail(err, CX_E_USAGE, "option --%s needs a value", option);
        CX_TRY(parse_value_option(p, option, value != NULL ? value : argv[++i], err));
    }
    return CX_SUCCESS;
}

/* What belongs together is given together, and nothing twice. */
static cx_status join_options(program *p, cx_err *err)
{
    cx_check_options *options = &p->options;
    if ((p->has_size && !p->has_root) || (p->has_from_size && !p->has_from_root))
        return cx_fail(err, CX_E_USAGE, "a size needs its root, too");
    if ((p->has_root && options->checkpoint.size != 0) ||
        (p->has_from_root && options->older_checkpoint.size != 0))
        return cx_fail(err, CX_E_USAGE, "a journal is given by its root or by a checkpoint");
    if (p->self_consistent && p->has_require)
        return cx_fail(err, CX_E_USAGE, "--self-consistent and --require cannot both be asked");
    if (!p->has_cosigners)
        options->cosigners_required = p->witness_count;
    if (p->self_consistent)
        options->require = CX_REQUIRE_SELF_CONSISTENT;
    if (p->file_count == 0 && !p->asked_only)
        return cx_fail(err, CX_E_USAGE, "expected at least one FILE");
    if (!p->has_size)
        p->journal.size = CX_JOURNAL_SIZE_UNKNOWN;
    if (!p->has_from_size)
        p->older.size = CX_JOURNAL_SIZE_UNKNOWN;
    options->journal = p->has_root ? &p->journal : NULL;
    options->older = p->has_from_root ? &p->older : NULL;
    return CX_SUCCESS;
}

/* --- checking --------------------------------------------------------------------------------- */

static int code_of(cx_verdict verdict)
{
    return verdict == CX_HOLDS ? EXIT_HOLDS : verdict == CX_BROKEN ? EXIT_BROKEN : EXIT_UNCHECKED;
}

/* Broken outweighs what could not be checked. */
static int worse_code(int a, int b)
{
    if (a == EXIT_BROKEN || b == EXIT_BROKEN)
        return EXIT_BROKEN;
    return a > b ? a : b;
}

/* What came from a file is shown in its report already; here nothing else gets through. */
static cx_status write_all(program *p, cx_bytes bytes, cx_err *err)
{
    cx_buf shown;
    cx_buf_init(&shown, cx_alloc_default());
    cx_shown_add_lines(&shown, cx_bytes_str(bytes), 0);
    cx_status status = cx_buf_check(&shown, err);
    if (!cx_failed(status))
        status =
            cx_io_write_all(p->io, STANDARD_OUTPUT, "standard output", shown.data, shown.size, err);
    cx_buf_done(&shown);
    return status;
}

static cx_status print_report(program *p, const cx_check_result *result, const char *path,
                              cx_err *err)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (p->json)
        cx_check_write_json(result, cx_str_z(path), &out);
    else
        cx_check_write_text(result, cx_str_z(path), p->details, &out);
    cx_status status = cx_buf_check(&out, err);
    if (!cx_failed(status))
        status = write_all(p, cx_buf_bytes(&out), err);
    cx_buf_done(&out);
    return status;
}

static cx_status report_evidence(program *p, const cx_evidence_result *result, const char *path,
                                 cx_err *err)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    if (p->json)
        cx_evidence_write_json(result, cx_str_z(path), &out);
    else
        cx_evidence_write_text(result, cx_str_z(path), p->details, &out);
    cx_status status = cx_buf_check(&out, err);
    if (!cx_failed(status))
        status = write_all(p, cx_buf_bytes(&out), err);
    cx_buf_done(&out);
    return status;
}

/* A page with data in it: what it is made of is checked part by part. */
static cx_status check_evidence(program *p, cx_bytes bytes, const char *path, int *out_code,
                                cx_err *err)
{
    static cx_evidence_result result;
    cx_err found;
    cx_status status = cx_evidence_check(bytes, &p->options, &p->arena, &result, &found);
    if (status.code == CX_E_USAGE) {
        *err = found;
        return status;
    }
    if (cx_failed(status))
        cx_evidence_result_of(&found, &result);
    *out_code = code_of(result.finding.verdict);
    return report_evidence(p, &result, path, err);
}

/* *out_code is the file's; an error is of what would have made all others useless too. */
static cx_status check_file(program *p, const char *path, int *out_code, cx_err *err)
{
    cx_check_result result;
    cx_err found;
    cx_bytes bytes;
    cx_arena_mark mark = cx_arena_mark_now(&p->arena);
    cx_status status = read_kept(p, path, CX_PROOF_BYTES_MAX, &bytes, &found);
    if (!cx_failed(status) && cx_evidence_recognise(bytes)) {
        status = check_evidence(p, bytes, path, out_code, err);
        cx_arena_reset(&p->arena, mark);
        return status;
    }
    if (!cx_failed(status))
        status = cx_check_run(bytes, &p->options, &p->arena, &result, &found);
    if (status.code == CX_E_USAGE) {
        *err = found;
        return status;
    }
    bool failed = cx_failed(status);
    if (failed)
        cx_check_result_of(&found, &result);
    *out_code = code_of(result.finding.verdict);
    if (failed && !p->json) {
        print_complaint(cx_str_z(found.message));
        status = CX_SUCCESS;
    } else {
        status = print_report(p, &result, path, err);
    }
    cx_arena_reset(&p->arena, mark);
    return status;
}

static cx_status run_checks(program *p, int argc, char **argv, int *out_code, cx_err *err)
{
    CX_TRY(read_words(p, argc, argv, err));
    CX_TRY(join_options(p, err));
    if (p->asked_only) {
        bool version = false;
        for (int i = 1; i < argc; i++)
            version = version || strcmp(argv[i], "--version") == 0;
        cx_str text = version ? cx_arena_printf(&p->arena, "cortex-verify %s\n", cx_version())
                              : cx_str_z(usage);
        return text.data == NULL ? cx_fail_nomem(err) : write_all(p, cx_str_bytes(text), err);
    }
    for (size_t i = 0; i < p->file_count; i++) {
        int code = EXIT_UNCHECKED;
        CX_TRY(check_file(p, p->files[i], &code, err));
        *out_code = worse_code(*out_code, code);
    }
    return CX_SUCCESS;
}

int main(int argc, char **argv)
{
    static program p;
    cx_err err;
    int code = EXIT_HOLDS;
    p.io = cx_io_system();
    p.options.now_given = true;
    p.options.now_ns = (int64_t)p.io->wall_ns(p.io);
    cx_arena_init(&p.arena, cx_alloc_default(), 0);
    p.files = CX_ARENA_ARRAY(&p.arena, const char *, (size_t)argc + 1);
    cx_status status =
        p.files == NULL ? cx_fail_nomem(&err) : run_checks(&p, argc, argv, &code, &err);
    if (cx_failed(status)) {
        print_complaint(cx_str_z(err.message));
        code = EXIT_UNCHECKED;
        if (err.code == CX_E_USAGE) {
            (void)fprintf(stderr, "See 'cortex-verify --help'.\n");
            code = EXIT_USAGE;
        }
    }
    cx_arena_done(&p.arena);
    return code;
}
