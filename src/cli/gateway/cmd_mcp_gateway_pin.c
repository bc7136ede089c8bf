/*
 * cmd_mcp_gateway_pin.c - `cortex mcp-gateway pin`: what a server's tools said of themselves when
 * they were first seen, and accepting what they say now.
 *
 *   P1  Accepting needs a person on a terminal, as an approval does.
 */
#include <string.h>

#include "base/api.h"
#include "cli/gateway/gateway.h"
#include "cli/live/agent_file.h"
#include "cli/live/live.h"

static const char *state_of(const cx_gateway_pin *pin)
{
    if (!cx_gateway_tool_same(&pin->pinned, &pin->seen))
        return "changed";
    return pin->accepted ? "pinned" : "waits";
}

static const char *reason_of(const cx_gateway_pin *pin)
{
    if (!cx_digest_eq(&pin->pinned.description, &pin->seen.description))
        return "another description";
    if (!cx_digest_eq(&pin->pinned.schema, &pin->seen.schema))
        return "another schema";
    if (!cx_gateway_tool_same(&pin->pinned, &pin->seen))
        return "another member, as _meta or icons";
    return pin->accepted ? "" : "characters that are not seen";
}

static void add_line(cx_buf *out, const cx_gateway_pin *pin)
{
    char digest[65];
    cx_hex_encode(cx_bytes_from(pin->seen.all.bytes, 32), digest);
    cx_buf_printf(out, "%-8s  %.12s  ", state_of(pin), digest);
    cx_shown_add(out, pin->tool);
    if (reason_of(pin)[0] != 0)
        cx_buf_printf(out, "  (%s)", reason_of(pin));
    cx_buf_add_z(out, "\n");
}

static void put_pin(cx_json_list *array, const cx_gateway_pin *pin)
{
    cx_json_list item = cx_json_list_begin(array->arena);
    cx_json_put_str(&item, "tool", pin->tool);
    cx_json_put_z(&item, "state", state_of(pin));
    cx_json_put_digest(&item, "target_sha256", &pin->target);
    cx_json_put_digest(&item, "pinned_sha256", &pin->pinned.all);
    cx_json_put_digest(&item, "seen_sha256", &pin->seen.all);
    cx_json_add_object(array, &item);
}

static cx_status show_pins(cx_cli_ledger *l, cx_str server, cx_err *err)
{
    const cx_gateway_pin *pins;
    size_t count;
    CX_TRY(cx_gateway_pins_list(l->home, server, l->arena, &pins, &count, err));
    for (size_t i = 0; i < count; i++)
        if (strcmp(state_of(&pins[i]), "pinned") != 0)
            l->exit_code = 1;
    if (!l->json) {
        for (size_t i = 0; i < count; i++)
            add_line(&l->out, &pins[i]);
        return CX_SUCCESS;
    }
    cx_json_list root = cx_json_list_begin(l->arena), array = cx_json_list_begin(l->arena);
    for (size_t i = 0; i < count; i++)
        put_pin(&array, &pins[i]);
    cx_json_put_str(&root, "server", server);
    cx_json_put_array(&root, "tools", &array);
    return cx_cli_end_json(&root, &l->out, err);
}

/* P1 */
static cx_status ask(const cx_gateway_pin *pins, size_t count, const cx_str *tools,
                     size_t tool_count, size_t *out_open, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    *out_open = 0;
    for (size_t i = 0; i < count; i++) {
        bool named = tool_count == 0;
        for (size_t k = 0; k < tool_count; k++)
            named |= cx_str_eq(tools[k], pins[i].tool);
        if (!named || strcmp(state_of(&pins[i]), "pinned") == 0)
            continue;
        add_line(&text, &pins[i]);
        ++*out_open;
    }
    cx_buf_add_z(&text, "Accept what these tools say of themselves now? Write \"yes\": ");
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status) && *out_open != 0)
        status = cx_cli_ask_person(
            &text, "tools are accepted by a person on a terminal; there is no terminal here", err);
    cx_buf_done(&text);
    return status;
}

static cx_status accept_pins(cx_cli_ledger *l, cx_str server, const cx_str *tools, size_t count,
                             cx_err *err)
{
    const cx_gateway_pin *pins;
    size_t pin_count, open, accepted = 0;
    uint64_t seq;
    cx_str by;
    CX_TRY(cx_cli_actor_name(l->cli, l->args, &by, err));
    CX_TRY(cx_gateway_pins_list(l->home, server, l->arena, &pins, &pin_count, err));
    CX_TRY(ask(pins, pin_count, tools, count, &open, err));
    CX_TRY(cx_gateway_pins_accept(l->home, server, pins, pin_count, tools, count, by, l->arena,
                                  &accepted, &seq, err));
    if (!l->json) {
        cx_buf_printf(&l->out, "%zu tool%s accepted\n", accepted, accepted == 1 ? "" : "s");
        return CX_SUCCESS;
    }
    cx_json_list root = cx_json_list_begin(l->arena);
    cx_json_put_str(&root, "server", server);
    cx_json_put_uint(&root, "accepted", accepted);
    return cx_cli_end_json(&root, &l->out, err);
}

static cx_status work(cx_cli_ledger *l, void *state, cx_err *err)
{
    (void)state;
    size_t count = l->args->operand_count - 1;
    cx_str server = cx_str_z(l->args->operands[0]);
    cx_str *tools = CX_ARENA_ARRAY(l->arena, cx_str, count + 1);
    if (tools == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        tools[i] = cx_str_z(l->args->operands[i + 1]);
    if (cx_cli_has(l->args, "accept"))
        return accept_pins(l, server, tools, count, err);
    if (count != 0)
        return cx_fail(err, CX_E_USAGE, "tools are named with --accept only");
    return show_pins(l, server, err);
}

static int run_mcp_gateway_pin(cx_cli *cli, const cx_cli_args *args)
{
    const cx_cli_job job = {.access = cx_cli_has(args, "accept") ? CX_CLI_WRITE : CX_CLI_READ,
                            .work = work};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_operand operands[] = {{"SERVER", CX_CLI_TEXT, NULL, false, false},
                                          {"TOOL", CX_CLI_TEXT, NULL, true, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("accept", 0,
                    "Pin what the server says of these tools now (without TOOL: of all). Asks on "
                    "the terminal."),
    CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_mcp_gateway_pin = {
    .name = "mcp-gateway pin",
    .purpose = "show the pinned tools of an MCP server, or accept their changes",
    .about = "A tool's name, description and schema are pinned when the gateway first sees them. "
             "This lists them with what was seen last; 'cortex log --actor gateway:SERVER' has the "
             "texts.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 all are as they were pinned, or accepted now\n1 a tool has changed and waits for a "
             "person\n2 usage error, or no such server or tool\n3 could not be read or written",
    .example = "cortex mcp-gateway pin --accept files",
    .run = run_mcp_gateway_pin,
};
