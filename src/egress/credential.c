/*
 * credential.c - reads the user's store.  C1, C2: credential.h.
 */
#include "egress/credential.h"

#include <string.h>

#include "egress/request.h"

#define COMMAND_MS 10000

typedef struct store_reader {
    const char *path;
    cx_arena *arena;
    cx_err *err;
} store_reader;

static cx_status reject_entry(const store_reader *r, cx_str name, const char *expected)
{
    return cx_fail(r->err, CX_E_FORMAT, "%s: credential '%.*s': expected %s", r->path,
                   name.size > 100 ? 100 : (int)name.size, name.data, expected);
}

/* Only the user can read the store, so that nothing in it is known to others. */
static cx_status check_mode(const char *path, cx_err *err)
{
    cx_facts facts;
    CX_TRY(cx_path_facts(path, true, &facts, err));
    if (facts.kind != CX_FILE_REGULAR)
        return cx_fail(err, CX_E_DENIED, "%s: expected a file", path);
    if ((facts.mode & 077) != 0 || facts.owner_id != cx_net_user())
        return cx_fail(err, CX_E_DENIED,
                       "%s: others can read it (mode %03o); expected a file of yours with mode "
                       "0600: chmod 600",
                       path, (unsigned)facts.mode & 0777u);
    return CX_SUCCESS;
}

static cx_str without_line_end(cx_str text)
{
    while (text.size != 0 && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == '\r'))
        text.size--;
    return text;
}

/* C2.  What the command prints to standard error is not shown: it may name the value. */
static cx_status run_command(const store_reader *r, cx_str name, const cx_json *command,
                             cx_str *out)
{
    const char *argv[17];
    cx_buf text;
    cx_proc_result result;
    if (command->type != CX_JSON_ARRAY || command->count == 0 || command->count > 16)
        return reject_entry(r, name, "\"command\" with 1 to 16 words");
    for (uint32_t i = 0; i < command->count; i++) {
        if (command->items[i].type != CX_JSON_STRING ||
            memchr(command->items[i].text, 0, command->items[i].count) != NULL)
            return reject_entry(r, name, "\"command\" with texts");
        argv[i] = cx_arena_copy_str(r->arena, cx_json_text(&command->items[i])).data;
        if (argv[i] == NULL)
            return cx_fail_nomem(r->err);
    }
    argv[command->count] = NULL;
    const cx_proc_options how = {.argv = argv,
                                 .inherit_env = true,
                                 .timeout_ms = COMMAND_MS,
                                 .output_limit_bytes = CX_EGRESS_VALUE_MAX + 2};
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_proc_run(&how, &text, NULL, &result, r->err);
    if (!cx_failed(status) && (result.exit_code != 0 || result.timed_out))
        status = cx_fail(r->err, CX_E_IO, "%s: credential '%.*s': its command ended with %d%s",
                         r->path, (int)name.size, name.data, result.exit_code,
                         result.timed_out ? " after 10 s" : "");
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(r->arena, without_line_end(cx_buf_str(&text)));
        if (out->data == NULL)
            status = cx_fail_nomem(r->err);
    }
    if (text.size != 0)
        memset(text.data, 0, text.size);
    cx_buf_done(&text);
    return status;
}

static bool is_header_name(cx_str name)
{
    static const char *const reserved[] = {"host", "content-length", "transfer-encoding",
                                           "connection", "expect"};
    for (size_t i = 0; i < name.size; i++) {
        char c = (char)(name.data[i] | 32);
        if (!(c >= 'a' && c <= 'z') && !(name.data[i] >= '0' && name.data[i] <= '9') &&
            name.data[i] != '-')
            return false;
    }
    for (size_t i = 0; i < CX_COUNT_OF(reserved); i++)
        if (cx_egress_header_is(name, reserved[i]))
            return false;
    return name.size != 0 && name.size <= 100;
}

static cx_status read_credential(const store_reader *r, cx_str name, const cx_json *entry,
                                 cx_egress_credential *out)
{
    const cx_json *command = cx_json_get(entry, CX_STR("command"));
    cx_str value = cx_json_get_str(entry, CX_STR("value"));
    cx_str host = cx_json_get_str(entry, CX_STR("host"));
    cx_str header = cx_json_get_str(entry, CX_STR("header"));
    if (entry->type != CX_JSON_OBJECT || entry->count != 3 || host.data == NULL ||
        header.data == NULL || (command == NULL) == (value.data == NULL))
        return reject_entry(r, name,
                            "{\"host\":..,\"header\":..} and either \"value\" or \"command\"");
    const char *why = cx_egress_host_parse(host, &out->host);
    if (why != NULL || out->host.is_address)
        return reject_entry(r, name, "\"host\" to be the name of one host");
    if (out->host.port == 0)
        out->host.port = 443;
    if (!is_header_name(header))
        return reject_entry(r, name, "\"header\" to be the name of a header");
    out->name = cx_arena_copy_str(r->arena, name);
    out->header = cx_arena_copy_str(r->arena, header);
    out->value = value.data == NULL ? value : cx_arena_copy_str(r->arena, value);
    if (out->name.data == NULL || out->header.data == NULL ||
        (value.data != NULL && out->value.data == NULL))
        return cx_fail_nomem(r->err);
    if (command != NULL)
        CX_TRY(run_command(r, name, command, &out->value));
    if (out->value.size > CX_EGRESS_VALUE_MAX || !cx_egress_header_value_ok(out->value))
        return reject_entry(r, name, "a value of 1 to 8192 visible ASCII characters");
    return CX_SUCCESS;
}

static cx_status read_all(const store_reader *r, const cx_json *all, const cx_str *names,
                          size_t name_count, cx_egress_credentials *out)
{
    cx_egress_credential *items = CX_ARENA_ARRAY(r->arena, cx_egress_credential, name_count);
    if (items == NULL)
        return cx_fail_nomem(r->err);
    for (size_t i = 0; i < name_count; i++) {
        const cx_json *entry = cx_json_get(all, names[i]);
        if (entry == NULL)
            return cx_fail(r->err, CX_E_NOT_FOUND,
                           "%s: there is no credential '%.*s', which the policy names", r->path,
                           names[i].size > 100 ? 100 : (int)names[i].size, names[i].data);
        memset(&items[i], 0, sizeof items[i]);
        CX_TRY(read_credential(r, names[i], entry, &items[i]));
        for (size_t k = 0; k < i; k++)
            if (cx_str_eq(cx_egress_host_str(&items[k].host), cx_egress_host_str(&items[i].host)))
                return reject_entry(r, names[i], "a host that no other named credential has");
    }
    *out = (cx_egress_credentials){items, name_count};
    return CX_SUCCESS;
}

cx_status cx_egress_credentials_load(const char *path, const cx_str *names, size_t name_count,
                                     cx_arena *arena, cx_egress_credentials *out, cx_err *err)
{
    cx_buf text;
    cx_json root;
    const store_reader r = {path, arena, err};
    *out = (cx_egress_credentials){NULL, 0};
    if (name_count == 0)
        return CX_SUCCESS;
    if (name_count > CX_EGRESS_CREDENTIALS_MAX)
        return cx_fail(err, CX_E_LIMIT, "the policy names %zu credentials, expected at most %d",
                       name_count, CX_EGRESS_CREDENTIALS_MAX);
    CX_TRY(check_mode(path, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_io_read_file(cx_io_system(), path, CX_EGRESS_STORE_BYTES_MAX, &text, err);
    if (!cx_failed(status)) {
        cx_err inner = {0};
        status = cx_json_parse_text(cx_buf_str(&text), arena, &root, &inner);
        const cx_json *all = cx_failed(status)
                                 ? NULL
                                 : cx_json_get_typed(&root, CX_STR("credentials"), CX_JSON_OBJECT);
        if (all == NULL) /* the message of a parser could quote the text */
            status = cx_fail(err, CX_E_FORMAT, "%s: expected {\"credentials\":{NAME:{..}}}", path);
        else
            status = read_all(&r, all, names, name_count, out);
    }
    if (text.size != 0)
        memset(text.data, 0, text.size);
    cx_buf_done(&text);
    return status;
}

const cx_egress_credential *cx_egress_credentials_for(const cx_egress_credentials *all,
                                                      const cx_egress_host *host)
{
    for (size_t i = 0; i < all->count; i++)
        if (host->port == 80 &&
            cx_str_eq(cx_egress_host_str(&all->items[i].host), cx_egress_host_str(host)))
            return &all->items[i];
    return NULL;
}
