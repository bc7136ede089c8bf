/*
 * cmd_run_store.c - `cortex run export` and `cortex run store`: the bundle of a run as one file,
 * and where other machines reach it (run.md §20, decision 0056).
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "cli/objects.h"
#include "cli/run/run_fail.h"
#include "cli/run/run_place.h"
#include "cli/run/run_store.h"
#include "cli/run/run_where.h"
#include "bundle/api.h"
#include "git/api.h"

/* --- run export ------------------------------------------------------------------------------- */

static int run_run_export(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand export_operands[] = {{"RUN|DIR", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option export_options[] = {
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "FILE", "Write the archive to FILE; required."),
    CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON, CX_CLI_OPTION_REPO, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_run_export = {
    .name = "run export",
    .purpose = "export a bundle as one file",
    .about = "Writes the bundle of a run as a tar archive compressed with zstd: files in the order "
             "of their paths, no times, no owners, so that the same bundle gives the same file. "
             "`cortex run verify` reads it as it is; `tar --zstd -xf` unpacks it. A run of another "
             "machine is fetched from the part of a fleet that $CORTEX_HOME names, or through the "
             "node at $CORTEX_URL: exactly the bytes that were stored, checked against the hash in "
             "the journal.",
    .operands = export_operands,
    .operand_count = CX_COUNT_OF(export_operands),
    .options = export_options,
    .option_count = CX_COUNT_OF(export_options),
    .exits = "0 written\n2 usage error\n3 could not be written",
    .example = "cortex run export RUN --output run.tar.zst",
    .run = run_run_export,
};

typedef struct exporting {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_run_bundle *bundle;
    cx_buf archive;
} exporting;

/* The stored bytes of a run that is not here; false when there are none. */
static cx_status fetch_archive(exporting *e, bool *out_found, cx_err *err)
{
    CX_TRY(cx_cli_run_fetch(e->cli, e->args, cx_str_z(e->args->operands[0]), &e->archive, out_found,
                            err));
    return *out_found ? cx_run_bundle_open_archive(e->cli->alloc, cx_buf_bytes(&e->archive),
                                                   &e->bundle, err)
                      : CX_SUCCESS;
}

static cx_status make_archive(exporting *e, cx_err *err)
{
    const char *name = e->args->operands[0];
    bool found = false;
    if (strchr(name, '/') == NULL && cx_run_id_valid(cx_str_z(name)) &&
        !cx_cli_run_is_here(e->cli, e->args, name))
        CX_TRY(fetch_archive(e, &found, err));
    if (found)
        return CX_SUCCESS;
    CX_TRY(cx_cli_run_find(e->cli, e->args, name, &e->bundle, err));
    return cx_run_archive_write(e->bundle, &e->archive, err);
}

static cx_status write_archive(exporting *e, const char *path, cx_err *err)
{
    cx_cli_file file = {0};
    CX_TRY(cx_cli_file_begin(&file, e->cli->io, path, err));
    cx_status status = cx_cli_file_write(&file, cx_buf_bytes(&e->archive), err);
    if (!cx_failed(status))
        return cx_cli_file_commit(&file, err);
    cx_cli_file_abort(&file);
    return status;
}

static cx_status export_to(exporting *e, const char *path, cx_buf *out, cx_err *err)
{
    size_t count;
    CX_TRY(make_archive(e, err));
    CX_TRY(write_archive(e, path, err));
    if (!cx_cli_has(e->args, "json"))
        return CX_SUCCESS;
    (void)cx_run_bundle_entries(e->bundle, &count);
    cx_json_list object = cx_json_list_begin(&e->cli->arena);
    cx_json_put_str(&object, "run_id", cx_run_bundle_name(e->bundle));
    cx_json_put_str(&object, "path", cx_str_z(path));
    cx_json_put_uint(&object, "files", count);
    cx_json_put_uint(&object, "bytes", e->archive.size);
    return cx_cli_end_json(&object, out, err);
}

static int run_run_export(cx_cli *cli, const cx_cli_args *args)
{
    const char *path = cx_cli_value(args, "output");
    exporting e = {.cli = cli, .args = args};
    cx_err err = {0};
    cx_buf out;
    if (path == NULL)
        return cx_cli_misuse(args, "expected --output FILE: where to write the archive");
    cx_buf_init(&out, cli->alloc);
    cx_buf_init(&e.archive, cli->alloc);
    cx_status status = export_to(&e, path, &out, &err);
    int code = cx_failed(status) ? cx_cli_run_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_run_bundle_close(e.bundle);
    cx_buf_done(&e.archive);
    cx_buf_done(&out);
    return code;
}

/* --- run store -------------------------------------------------------------------------------- */

static int run_run_store(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand store_operands[] = {{"RUN", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option store_options[] = {CX_CLI_OPTIONS_OBJECTS, CX_CLI_OPTION_HOME,
                                              CX_CLI_OPTION_JSON, CX_CLI_OPTION_REPO,
                                              CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_run_store_command = {
    .name = "run store",
    .purpose = "store a bundle for other machines",
    .about =
        "Stores the archive of a sealed bundle in the journal of its runs, so that every "
        "machine that reaches the data directory can verify and export it. Runs that are "
        "recorded in a part of a fleet do this themselves when they are sealed; this command "
        "continues what was interrupted, refused by a quota, or never done. What is there is "
        "not sent again.\n\nWith --store s3, or [bundles] in the configuration, the archive is "
        "sealed and put into an object store under the hash of what is put; the journal has the "
        "hash and the key. Credentials are those of CORTEX_S3_ACCESS_KEY_ID, "
        "CORTEX_S3_SECRET_ACCESS_KEY and CORTEX_S3_SESSION_TOKEN, or of the variables that AWS "
        "tools read. What was stored already stays where it is.",
    .operands = store_operands,
    .operand_count = CX_COUNT_OF(store_operands),
    .options = store_options,
    .option_count = CX_COUNT_OF(store_options),
    .exits = "0 stored, or it was\n2 usage error\n3 could not be stored",
    .example = "cortex run store run_20260101_000000_aee408847d35e44e99430f0979c3357b",
    .run = run_run_store,
};

static cx_status open_ledger(cx_cli *cli, const cx_cli_args *args, cx_cli_run_ledger *out,
                             cx_err *err)
{
    cx_git *git;
    cx_oid root;
    cx_str actor;
    char text[CX_OID_TEXT_SIZE];
    const char *repo = cx_cli_value(args, "repo");
    CX_TRY(cx_git_open(repo == NULL ? "." : repo, NULL, cli->alloc, &git, err));
    cx_status status = cx_git_root_commit(git, &root, err);
    cx_git_close(git);
    CX_TRY(status);
    cx_oid_text(&root, text);
    CX_TRY(cx_cli_run_actor(text, &cli->arena, &actor, err));
    return cx_cli_run_ledger_open(out, cli, args, actor, err);
}

static cx_status store_run(cx_cli *cli, const cx_cli_args *args, cx_cli_run_ledger *ledger,
                           cx_cli_run_storing *out, cx_err *err)
{
    cx_run_store store;
    cx_str run_id = cx_str_z(args->operands[0]);
    if (!cx_run_id_valid(run_id))
        return cx_fail(err, CX_E_USAGE, "RUN: found '%.200s', expected the id of a run",
                       args->operands[0]);
    CX_TRY(cx_cli_objects_allowed(cli, err));
    CX_TRY(cx_cli_run_store(cli, cx_cli_value(args, "repo"), false, &store, err));
    cx_str folder = cx_run_store_path(&store, &cli->arena, "runs", run_id);
    if (folder.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(open_ledger(cli, args, ledger, err));
    return cx_cli_run_store_bundle(ledger, run_id, folder.data, out, err);
}

static void add_object_text(cx_buf *out, const cx_run_object *object)
{
    cx_buf_add_z(out, "object ");
    cx_shown_add(out, object->name);
    cx_buf_add_z(out, " in ");
    cx_shown_add(out, object->bucket);
    cx_buf_add_z(out, " of ");
    cx_shown_add(out, object->endpoint);
    cx_buf_add_byte(out, '\n');
}

static void put_object(cx_json_list *answer, const cx_run_stored *stored)
{
    if (stored->in_object)
        cx_run_object_put(answer, &stored->object);
    else
        cx_json_put_null(answer, "object");
}

static cx_status answer_store(cx_cli *cli, const cx_cli_args *args, const cx_cli_run_storing *done,
                              cx_buf *out, cx_err *err)
{
    const cx_run_stored *stored = &done->stored;
    char hex[2 * sizeof stored->sha256.bytes];
    cx_hex_encode(cx_bytes_from(stored->sha256.bytes, sizeof stored->sha256.bytes), hex);
    if (!cx_cli_has(args, "json")) {
        cx_buf_printf(out, "%s  entry %llu of %.*s  %llu bytes, ",
                      done->was_there ? "was stored" : "stored", (unsigned long long)stored->seq,
                      (int)stored->actor.size, stored->actor.data,
                      (unsigned long long)stored->size_bytes);
        if (stored->in_object)
            add_object_text(out, &stored->object);
        else
            cx_buf_printf(out, "%zu parts\n", stored->part_count);
        return cx_buf_check(out, err);
    }
    cx_json_list object = cx_json_list_begin(&cli->arena);
    cx_json_put_str(&object, "run_id", stored->run_id);
    cx_json_put_str(&object, "actor", stored->actor);
    cx_json_put_uint(&object, "entry", stored->seq);
    cx_json_put_str(&object, "sha256",
                    cx_arena_copy_str(&cli->arena, cx_str_from(hex, sizeof hex)));
    cx_json_put_uint(&object, "bytes", stored->size_bytes);
    cx_json_put_uint(&object, "parts", stored->part_count);
    cx_json_put_uint(&object, "sent", done->sent_parts);
    cx_json_put_bool(&object, "was_there", done->was_there);
    put_object(&object, stored);
    return cx_cli_end_json(&object, out, err);
}

static int run_run_store(cx_cli *cli, const cx_cli_args *args)
{
    cx_cli_run_ledger ledger = {0};
    cx_cli_run_storing done;
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = store_run(cli, args, &ledger, &done, &err);
    if (!cx_failed(status))
        status = answer_store(cli, args, &done, &out, &err);
    cx_cli_run_ledger_close(&ledger);
    int code = cx_failed(status) ? cx_cli_run_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}
