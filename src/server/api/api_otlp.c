/*
 * api_otlp.c - POST /v1/traces and /v1/logs of the OTLP listener (docs/formats/otlp.md).
 *
 *   O1  A 200 response means that everything accepted is durable.
 *   O2  An unreadable request is answered with 400 and must not be resent; a request that cannot be
 *       stored now with 503 or 429, and must be.
 */
#include "os/api.h"
#include "import/api.h"
#include "recorder/api.h"
#include "sensitive/api.h"
#include "server/otlp_answer.h"
#include "server/route.h"

/* Of requests being read at once, unpacked: each costs several times its size. */
#define IN_FLIGHT_BYTES_MAX ((size_t)64 << 20)

typedef struct export_call {
    cx_call *call;
    cx_otlp_signal signal;
    cx_buf unpacked;
    cx_bytes request;
    size_t reserved_bytes; /* of IN_FLIGHT_BYTES_MAX */
    cx_otlp_request read;
    cx_otlp_item *items;
    size_t item_count;
    cx_otlp_fault fault; /* the first one */
    cx_sensitive_list found;
} export_call;

static void reject_export(export_call *x, unsigned http, cx_str message)
{
    const cx_problem problem = {.status = http, .type = "", .detail = message};
    cx_call_problem(x->call, &problem);
}

/* What the sender did wrong is answered and `*out_go` false; the rest is an error of ours. */
static cx_status answer_sender_fault(export_call *x, cx_status status, bool *out_go, cx_err *err)
{
    bool is_too_large =
        status.code == CX_E_LIMIT && err->tag != NULL && strcmp(err->tag, "U_LIMIT") == 0;
    *out_go = !cx_failed(status);
    if (*out_go || status.code == CX_E_NOMEM)
        return status;
    reject_export(x,
                  is_too_large                      ? 413u
                  : status.code == CX_E_UNSUPPORTED ? 415u
                                                    : 400u,
                  cx_str_z(err->message));
    return CX_SUCCESS;
}

static cx_status unpack_request(export_call *x, bool *out_go, cx_err *err)
{
    cx_call *call = x->call;
    x->request = call->request.body;
    *out_go = true;
    if (!cx_str_is(call->request.content_encoding, "gzip"))
        return CX_SUCCESS;
    cx_status status = cx_gzip_unpack(call->request.body, CX_OTLP_UNPACKED_MAX, &x->unpacked, err);
    x->request = cx_buf_bytes(&x->unpacked);
    return answer_sender_fault(x, status, out_go, err);
}

static bool reserve_bytes(export_call *x)
{
    atomic_size_t *used = &x->call->service->otlp_bytes_in_flight;
    size_t size = x->request.size;
    if (atomic_fetch_add(used, size) + size > IN_FLIGHT_BYTES_MAX) {
        (void)atomic_fetch_sub(used, size);
        cx_counter_add(&x->call->service->metrics.rejected_full, 1);
        reject_export(x, 503,
                      CX_STR("too many OTLP bytes are in progress; send the request again later"));
        return false;
    }
    x->reserved_bytes = size;
    return true;
}

/* What is masked is gone before anything is hashed. */
static cx_status screen_request(export_call *x, bool is_json, cx_err *err)
{
    const cx_sensitive_rules *rules = cx_recorder_sensitive(x->call->service->recorder);
    cx_sensitive_target target = {.bytes = x->request.data, .size = x->request.size};
    cx_sensitive_list_init(&x->found, x->call->arena);
    if (!cx_sensitive_is_on(rules))
        return CX_SUCCESS;
    if (cx_sensitive_masks(rules)) {
        target.mask = CX_ARENA_ARRAY(x->call->arena, uint8_t, x->request.size + 1);
        if (target.mask == NULL)
            return cx_fail_nomem(err);
        if (x->request.size != 0)
            memcpy(target.mask, x->request.data, x->request.size);
    }
    if (is_json)
        cx_sensitive_scan_json(rules, &target, &x->found);
    else
        cx_otlp_scan_sensitive(x->signal, rules, &target, &x->found);
    if (x->found.failed)
        return cx_fail_nomem(err);
    if (x->found.masked != 0)
        x->request.data = target.mask;
    return CX_SUCCESS;
}

static cx_status choose_items(export_call *x, cx_err *err)
{
    static const uint8_t none[CX_OTLP_TRACE_ID_SIZE];
    x->items = CX_ARENA_ARRAY(x->call->arena, cx_otlp_item, x->read.count + 1);
    if (x->items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < x->read.count; i++) {
        const cx_otlp_record *record = &x->read.records[i];
        if (record->fault != CX_OTLP_FINE) {
            x->fault = x->fault == CX_OTLP_FINE ? record->fault : x->fault;
            continue;
        }
        bool traced = memcmp(record->trace_id, none, sizeof none) != 0;
        x->items[x->item_count++] =
            (cx_otlp_item){.trace_id = traced ? record->trace_id : NULL,
                           .span_id = x->signal == CX_OTLP_TRACES ? record->span_id : NULL,
                           .content = record->content,
                           .value = record->value,
                           .index = (uint32_t)i};
    }
    return CX_SUCCESS;
}

static void count_outcome(export_call *x, const cx_otlp_stored *kept)
{
    cx_metrics *metrics = &x->call->service->metrics;
    const uint64_t counts[CX_OTLP_RESULTS] = {kept->stored, kept->duplicates, kept->conflicts,
                                              x->read.count - x->item_count};
    for (size_t i = 0; i < CX_OTLP_RESULTS; i++)
        cx_counter_add(&metrics->otlp[x->signal == CX_OTLP_LOGS][i], counts[i]);
    cx_counter_add(&metrics->otlp_bytes, x->request.size);
}

static cx_status answer_export(export_call *x, const cx_otlp_stored *kept, cx_err *err)
{
    cx_otlp_outcome outcome = {.is_logs = x->signal == CX_OTLP_LOGS,
                               .rejected = x->read.count - x->item_count};
    if (outcome.rejected != 0)
        outcome.message = cx_str_z(cx_otlp_fault_text(x->fault));
    else if (kept->conflicts != 0)
        outcome.message = cx_arena_printf(x->call->arena,
                                          "spans received before with different content: %u; both "
                                          "are stored, the first one counts",
                                          (unsigned)kept->conflicts);
    else
        outcome.message = CX_STR("");
    if (outcome.message.data == NULL)
        return cx_fail_nomem(err);
    cx_otlp_answer_outcome(x->call, &outcome);
    return CX_SUCCESS;
}

static cx_status store_export(export_call *x, cx_err *err)
{
    cx_service *service = x->call->service;
    cx_otlp_stored kept;
    CX_TRY(choose_items(x, err));
    const cx_otlp_delivery delivery = {
        .is_logs = x->signal == CX_OTLP_LOGS,
        .is_json = cx_otlp_encoding_of(x->call->request.content_type) == CX_OTLP_AS_JSON,
        .request = x->request,
        .sender = x->call->token.id[0] == 0 ? CX_STR("open") : cx_call_principal(x->call),
        .items = x->items,
        .item_count = x->item_count,
        .found = &x->found};
    if (delivery.sender.data == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_recorder_otlp_store(service->recorder, &delivery, &kept, err);
    if (cx_failed(status)) {
        if (status.code == CX_E_IO)
            atomic_store(&service->ledger_failed, true);
        return status;
    }
    count_outcome(x, &kept);
    return answer_export(x, &kept, err);
}

static cx_status receive_export(export_call *x, cx_err *err)
{
    bool go = false;
    bool is_json = cx_otlp_encoding_of(x->call->request.content_type) == CX_OTLP_AS_JSON;
    CX_TRY(unpack_request(x, &go, err));
    if (!go || !reserve_bytes(x))
        return CX_SUCCESS;
    CX_TRY(screen_request(x, is_json, err));
    cx_status status = cx_otlp_scan(x->signal, is_json, x->request, x->call->arena, &x->read, err);
    CX_TRY(answer_sender_fault(x, status, &go, err));
    return go ? store_export(x, err) : CX_SUCCESS;
}

static cx_status handle_export(cx_call *call, cx_otlp_signal signal, cx_err *err)
{
    export_call x = {.call = call, .signal = signal};
    cx_buf_init(&x.unpacked, call->service->alloc);
    cx_status status = receive_export(&x, err);
    (void)atomic_fetch_sub(&call->service->otlp_bytes_in_flight, x.reserved_bytes);
    cx_buf_done(&x.unpacked);
    return status;
}

cx_status cx_api_otlp_traces(cx_call *call, cx_err *err)
{
    return handle_export(call, CX_OTLP_TRACES, err);
}

cx_status cx_api_otlp_logs(cx_call *call, cx_err *err)
{
    return handle_export(call, CX_OTLP_LOGS, err);
}
