/*
 * record.c - connections as members of entries (docs/formats/egress.md §7).
 */
#include <string.h>

#include "egress/proxy.h"
#include "json/api.h"

cx_status cx_egress_record_json(const cx_egress_record *record, bool with_end, cx_json_list *out,
                                cx_err *err)
{
    char address[CX_IP_TEXT_SIZE] = "";
    if (record->has_address)
        cx_ip_write(&record->address, address);
    cx_str shown = cx_arena_copy_str(out->arena, cx_str_z(address));
    if (shown.data == NULL)
        return cx_fail_nomem(err);
    cx_json_put_uint(out, "number", record->number);
    cx_json_put_z(out, "way", cx_egress_way_name(record->way));
    cx_json_put_maybe(out, "method", record->method);
    cx_json_put_maybe(out, "host",
                      record->has_host ? cx_egress_host_str(&record->host) : cx_str_from("", 0));
    cx_json_put_uint(out, "port", record->has_host ? record->host.port : 0);
    cx_json_put_maybe(out, "address", shown);
    cx_json_put_maybe(out, "address_class",
                      record->has_address ? cx_str_z(cx_egress_class_name(record->class))
                                          : cx_str_from("", 0));
    cx_json_put_z(out, "verdict", record->allowed ? "allow" : "refuse");
    cx_json_put_z(out, "rule", record->rule);
    cx_json_put_maybe(out, "why", record->why == NULL ? cx_str_from("", 0) : cx_str_z(record->why));
    cx_json_put_maybe(out, "credential", record->credential);
    cx_json_put_int(out, "started_ns", record->started_ns);
    if (!with_end)
        return CX_SUCCESS;
    cx_json_put_maybe(out, "sni",
                      record->has_sni ? cx_egress_host_str(&record->sni) : cx_str_from("", 0));
    cx_json_put_uint(out, "bytes_out", record->bytes_out);
    cx_json_put_uint(out, "bytes_in", record->bytes_in);
    cx_json_put_int(out, "ended_ns", record->ended_ns);
    cx_json_put_maybe(out, "error",
                      record->error == NULL ? cx_str_from("", 0) : cx_str_z(record->error));
    return CX_SUCCESS;
}
