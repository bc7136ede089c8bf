/*
 * problem.c - error answers: application/problem+json (RFC 9457, trace.md §11).
 *
 *   P1  Text from outside is escaped to plain ASCII.
 *   P2  Internal failures are logged; the answer has a fixed sentence for them.
 */
#include <stdio.h>

#include "json/api.h"
#include "server/otlp_answer.h"

#define DETAIL_MAX 1000
#define INSTANCE_MAX 256

static const struct title {
    const char *type, *title;
} titles[] = {
    {"malformed-json", "The body is not JSON"},
    {"duplicate-key", "A member is repeated"},
    {"invalid-utf8", "The text is not UTF-8"},
    {"unauthorized", "A token is needed"},
    {"forbidden", "The token does not allow this"},
    {"not-found", "Not found"},
    {"method", "Method not allowed"},
    {"media-type", "Unsupported media type"},
    {"key-conflict", "The key id belongs to another key"},
    {"ambiguous", "The name is ambiguous"},
    {"conflict", "Conflicts with what is recorded"},
    {"too-large", "The request is too large"},
    {"invalid-batch", "Invalid batch"},
    {"invalid-parameter", "Invalid parameter"},
    {"invalid-request", "Invalid request"},
    {"rate", "Too many requests at once"},
    {"pending-full", "Too much waits for a decision"},
    {"quota", "The quota of this part is used up"},
    {"index-unavailable", "The index cannot be reached"},
    {"unavailable", "Not now"},
    {"not-supported", "Not supported here"},
    {"internal", "Internal error"},
};

static const char *title_of(const char *type)
{
    size_t i = 0;
    while (i < CX_COUNT_OF(titles) && strcmp(titles[i].type, type) != 0)
        i++;
    /* What the recorder calls a batch's problem may be new here. */
    return i < CX_COUNT_OF(titles) ? titles[i].title : "Request failed";
}

/* Characters that could begin markup become \u00XX too, in case a client shows an answer as
 * HTML. */
static void escape_markup(cx_buf *out, size_t start)
{
    size_t count = 0;
    for (size_t i = start; i < out->size; i++)
        count += out->data[i] == '<' || out->data[i] == '>' || out->data[i] == '&';
    size_t from = out->size, to = from + 5 * count;
    if (count == 0 || cx_buf_reserve(out, 5 * count) == NULL)
        return;
    cx_buf_advance(out, 5 * count);
    while (from > start) {
        char hex[7];
        uint8_t c = out->data[--from];
        if (c != '<' && c != '>' && c != '&') {
            out->data[--to] = c;
            continue;
        }
        (void)snprintf(hex, sizeof hex, "\\u%04x", c);
        memcpy(out->data + (to -= 6), hex, 6);
    }
}

/* P1.  Long texts are cut between characters. */
static void add_text(cx_buf *out, cx_str text)
{
    size_t start = out->size;
    if (text.size > DETAIL_MAX) {
        text.size = DETAIL_MAX;
        while (text.size > 0 && ((unsigned char)text.data[text.size] & 0xc0) == 0x80)
            text.size--;
    }
    cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
    escape_markup(out, start);
}

static void add_member(cx_buf *out, const char *name, cx_str text)
{
    cx_buf_printf(out, "\"%s\":", name);
    add_text(out, text);
}

/* The requested path without its query; bytes outside plain ASCII as %XX. */
static void add_instance(cx_buf *out, cx_str target)
{
    cx_buf_add_z(out, "\"instance\":\"");
    for (size_t i = 0; i < target.size && i < INSTANCE_MAX && target.data[i] != '?'; i++) {
        unsigned char c = (unsigned char)target.data[i];
        if (c > 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>')
            cx_buf_add_byte(out, c);
        else
            cx_buf_printf(out, "%%%02X", c);
    }
    cx_buf_add_byte(out, '"');
}

static void add_errors(cx_buf *out, const cx_problem *problem)
{
    cx_buf_add_z(out, "\"errors\":[");
    if (problem->pointer.data != NULL || problem->parameter.data != NULL) {
        cx_buf_add_byte(out, '{');
        if (problem->parameter.data != NULL)
            add_member(out, "parameter", problem->parameter);
        else
            add_member(out, "pointer", problem->pointer);
        cx_buf_add_byte(out, ',');
        add_member(out, "reason", problem->reason.data == NULL ? problem->detail : problem->reason);
        cx_buf_add_byte(out, '}');
    }
    cx_buf_add_z(out, "],");
}

static void write_problem(cx_call *call, const cx_problem *problem)
{
    cx_response *response = &call->response;
    cx_buf *out = &response->body;
    response->status = problem->status;
    response->content_type = "application/problem+json";
    response->stream = NULL;
    cx_buf_clear(out);
    cx_buf_add_byte(out, '{');
    add_member(out, "detail", problem->detail);
    cx_buf_add_byte(out, ',');
    add_errors(out, problem);
    add_instance(out, call->request.target);
    if (problem->max_bytes != 0)
        cx_buf_printf(out, ",\"max_bytes\":%zu", problem->max_bytes);
    cx_buf_printf(out, ",\"status\":%u,", problem->status);
    add_member(out, "title", cx_str_z(title_of(problem->type)));
    cx_buf_printf(out, ",\"type\":\"urn:cortex:problem:%s\"}\n", problem->type);
}

void cx_call_problem(cx_call *call, const cx_problem *problem)
{
    CX_ASSERT(problem->status >= 400 && problem->status < 600 && problem->type != NULL);
    call->response.header_count = 0;
    if (call->route != NULL && call->route->problem != NULL && call->route->problem(call, problem))
        return;
    if (call->request.otlp)
        cx_otlp_answer_status(call, problem->status, problem->detail);
    else
        write_problem(call, problem);
    if (problem->status == 401)
        cx_call_header(call, "WWW-Authenticate", "Bearer realm=\"cortex\"");
    if (problem->status == 429 || problem->status == 503)
        cx_call_header(call, "Retry-After", "1");
}

/* --- errors as problems ----------------------------------------------------------------------- */

static bool map_error_tag(const cx_err *err, const char *tag)
{
    return err->tag != NULL && strcmp(err->tag, tag) == 0;
}

/* The parameter that an error of its form is about; NULL: it is about stored data. */
static const char *parameter_of(const cx_err *err)
{
    static const char *const tags[][2] = {
        {"BadCursor", "cursor"}, {"BadURI", "uri"}, {"NoWords", "q"}};
    for (size_t i = 0; i < CX_COUNT_OF(tags); i++)
        if (map_error_tag(err, tags[i][0]))
            return tags[i][1];
    return NULL;
}

/* Whether the message may be shown: the error is about the client's request. */
static bool is_about_the_request(const cx_err *err)
{
    switch (err->code) {
    case CX_E_NOT_FOUND:
    case CX_E_DENIED:
    case CX_E_EXISTS: return err->os_errno == 0;
    case CX_E_CONFLICT:
    case CX_E_USAGE:
    case CX_E_LIMIT: return true;
    case CX_E_FORMAT: return parameter_of(err) != NULL;
    default: return false;
    }
}

static void map_error(const cx_err *err, cx_problem *out)
{
    out->detail = cx_str_z(err->message);
    switch (err->code) {
    case CX_E_NOT_FOUND:
        out->status = map_error_tag(err, "BundleUnreachable") ? 503 : 404;
        out->type = out->status == 503 ? "unavailable" : "not-found";
        break;
    case CX_E_DENIED:
        out->status = map_error_tag(err, "RateLimited") ? 429 : 403;
        out->type = out->status == 429 ? "rate" : "forbidden";
        break;
    case CX_E_LIMIT:
        out->status = map_error_tag(err, "PendingFull")     ? 429
                      : map_error_tag(err, "QuotaExceeded") ? 507
                                                            : 422;
        out->type = out->status == 429   ? "pending-full"
                    : out->status == 507 ? "quota"
                                         : "invalid-request";
        break;
    case CX_E_EXISTS:
    case CX_E_CONFLICT:
        out->status = 409;
        out->type = map_error_tag(err, "KeyConflict") ? "key-conflict"
                    : map_error_tag(err, "Ambiguous") ? "ambiguous"
                                                      : "conflict";
        break;
    case CX_E_FORMAT:
        out->status = 422, out->type = "invalid-parameter";
        out->parameter = cx_str_z(parameter_of(err));
        break;
    default: out->status = 422, out->type = "invalid-request"; break;
    }
}

void cx_call_refuse_member(cx_call *call, const char *pointer, const char *why)
{
    const cx_problem problem = {.status = 422,
                                .type = "invalid-request",
                                .detail = cx_str_z(why),
                                .pointer = cx_str_z(pointer)};
    cx_call_problem(call, &problem);
}

void cx_call_fail(cx_call *call, const cx_err *err)
{
    cx_problem problem = {.status = 0};
    if (is_about_the_request(err)) {
        map_error(err, &problem);
        cx_call_problem(call, &problem);
        return;
    }
    /* P2 */
    cx_service_log(call->service, "%s %.*s: %s%s%s",
                   call->route == NULL ? "?" : call->route->method,
                   (int)(call->route == NULL ? 0 : strlen(call->route->path)),
                   call->route == NULL ? "" : call->route->path, err->tag == NULL ? "" : err->tag,
                   err->tag == NULL ? "" : ": ", err->message);
    if (map_error_tag(err, "DatabaseAway")) {
        problem.status = 503;
        problem.type = "index-unavailable";
        problem.detail = CX_STR(
            "the database of the index cannot be reached: start PostgreSQL, or correct --db of "
            "'cortex serve', whose log has the reason; what arrives meanwhile is recorded and "
            "indexed later");
        cx_call_problem(call, &problem);
        return;
    }
    switch (err->code) {
    case CX_E_UNSUPPORTED:
        problem.status = 501;
        problem.type = "not-supported";
        problem.detail =
            CX_STR("this server was built or configured without a feature that this request needs");
        break;
    case CX_E_BUSY:
    case CX_E_TIMEOUT:
    case CX_E_NOMEM:
    case CX_E_NOT_FOUND:
    case CX_E_DENIED:
    case CX_E_IO:
        problem.status = 503;
        problem.type = "unavailable";
        problem.detail =
            CX_STR("a resource that this answer needs is unavailable; see the server's log");
        break;
    default:
        problem.status = 500;
        problem.type = "internal";
        problem.detail = CX_STR("stored data could not be read; see the server's log");
        break;
    }
    cx_call_problem(call, &problem);
}
