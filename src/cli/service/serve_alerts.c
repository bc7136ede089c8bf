/*
 * serve_alerts.c - options of `cortex serve` about alerts; see serve_alerts.h.
 */
#include "cli/service/serve_alerts.h"

#include "cli/user_program.h"
#include "os/api.h"

#define DETECT_S_DEFAULT 900
#define SECRET_FILE_MAX 200

static cx_status read_alert_command(cx_cli *cli, const cx_cli_args *args, cx_alerting_options *out,
                                    cx_err *err)
{
    const char *command = cx_cli_value(args, "alert-command");
    cx_err why = {0};
    cx_facts facts;
    cx_buf path;
    if (command == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_cli_user_program_words(cli, "alert-command", command, &out->command, err));
    cx_buf_init(&path, cli->alloc);
    cx_status status = cx_proc_find(out->command[0], &path, &why);
    if (!cx_failed(status))
        status = cx_path_facts(cx_buf_z(&path), true, &facts, &why);
    cx_buf_done(&path);
    return cx_failed(status) ? cx_fail(err, CX_E_USAGE, "option --alert-command: %s", why.message)
                             : CX_SUCCESS;
}

cx_status cx_cli_alerting_read(cx_cli *cli, const cx_cli_args *args, cx_alerting_options *out,
                               cx_err *err)
{
    uint64_t seconds = cx_cli_number(args, "detect-every", DETECT_S_DEFAULT);
    cx_alerting_options options = {.webhook = cx_cli_value(args, "alert-webhook"),
                                   .alertmanager = cx_cli_value(args, "alertmanager")};
    if (seconds > 86400)
        return cx_fail(err, CX_E_USAGE,
                       "option --detect-every: expected 1 to 86400 seconds, or 0 for never");
    if (cx_cli_has(args, "alert-secret") && options.webhook == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "option --alert-secret: expected --alert-webhook URL, whose messages it "
                       "signs");
    options.detect_every_ms = (uint32_t)seconds * 1000;
    CX_TRY(read_alert_command(cli, args, &options, err));
    CX_TRY(cx_alerting_check(&options, err));
    *out = options;
    return CX_SUCCESS;
}

static cx_status check_secret_owner(const char *path, cx_err *err)
{
    cx_facts facts;
    cx_status status = cx_path_facts(path, true, &facts, err);
    if (status.code == CX_E_NOT_FOUND)
        return cx_fail(err, CX_E_USAGE, "option --alert-secret: there is no file %s", path);
    CX_TRY(status);
    if ((facts.mode & 077) != 0 || (facts.owner_id != 0 && facts.owner_id != cx_user_id()))
        return cx_fail(err, CX_E_USAGE,
                       "%s is a secret that other users can reach; own the file and run chmod 600 "
                       "on it",
                       path);
    return CX_SUCCESS;
}

static cx_status make_secret(cx_cli *cli, const char *path, cx_err *err)
{
    uint8_t random[32];
    cx_buf text;
    const cx_io *io = cli->io;
    if (io->random(io, random, sizeof random) != 0)
        return cx_fail(err, CX_E_IO, "cannot read random bytes");
    cx_buf_init(&text, cli->alloc);
    cx_buf_add_z(&text, "whsec_");
    cx_base64_add(&text, cx_bytes_from(random, sizeof random), CX_BASE64);
    cx_buf_add_byte(&text, '\n');
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_io_replace_private_file(io, path, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    if (!cx_failed(status))
        cx_cli_complain("serve: made %s, the secret that signs what the webhook gets; give it to "
                        "the receiver",
                        path);
    return status;
}

static cx_status read_secret_file(cx_cli *cli, const char *path, cx_bytes *out, cx_err *err)
{
    cx_buf text;
    cx_err why = {0};
    CX_TRY(check_secret_owner(path, err));
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_io_read_file(cli->io, path, SECRET_FILE_MAX, &text, err);
    if (!cx_failed(status) &&
        cx_failed(cx_webhook_secret_parse(cx_buf_str(&text), &cli->arena, out, &why)))
        status = cx_fail(err, why.code, "%s: %s", path, why.message);
    cx_buf_done(&text);
    return status;
}

cx_status cx_cli_alerting_secret(cx_cli *cli, const cx_cli_args *args, const char *home_path,
                                 cx_alerting_options *options, cx_err *err)
{
    const char *path = cx_cli_value(args, "alert-secret");
    cx_facts facts;
    if (options->webhook == NULL)
        return CX_SUCCESS;
    if (path == NULL) {
        path = cx_arena_printf(&cli->arena, "%s/alert-secret", home_path).data;
        if (path == NULL)
            return cx_fail_nomem(err);
        if (cx_path_facts(path, true, &facts, NULL).code == CX_E_NOT_FOUND)
            CX_TRY(make_secret(cli, path, err));
    }
    return read_secret_file(cli, path, &options->webhook_secret, err);
}
