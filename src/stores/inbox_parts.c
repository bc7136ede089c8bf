/*
 * inbox_parts.c - evaluating the choices, and alerts as objects of the inbox.
 */
#include "stores/inbox_parts.h"

const char *const cx_inbox_kinds[CX_INBOX_KINDS] = {"alert", "run", "history", "trace"};
const char *const cx_inbox_gates[] = {"unknown", "passed", "not_passed", "overridden"};
const char *const cx_inbox_k_effs[] = {"unknown", "below_2", "2_to_5", "5_and_more"};

const char *cx_facet_name(cx_facet facet)
{
    static const char *const names[CX_FACETS] = {"kind",  "verdict", "gate",   "k_eff",
                                                 "level", "agent",   "source", "time"};
    return names[facet];
}

/* --- time ------------------------------------------------------------------------------------- */

int64_t cx_inbox_hour(int64_t ns)
{
    if (ns == CX_TIME_NONE)
        return INT64_MIN;
    return ns >= 0 ? ns / CX_HOUR_NS : (ns - CX_HOUR_NS + 1) / CX_HOUR_NS;
}

static bool read_day(cx_str text, int64_t *out_hour)
{
    char whole[32];
    int64_t ns;
    bool naive;
    if (text.size != 10)
        return false;
    (void)snprintf(whole, sizeof whole, "%.10sT00:00:00Z", text.data);
    if (!cx_trace_time_parse(cx_str_z(whole), &ns, &naive))
        return false;
    *out_hour = cx_inbox_hour(ns);
    return true;
}

static int64_t hours_back(cx_str text)
{
    return cx_str_is(text, "1h")    ? 1
           : cx_str_is(text, "24h") ? 24
           : cx_str_is(text, "7d")  ? 168
                                    : 0;
}

bool cx_inbox_time_is(cx_str text)
{
    int64_t hour;
    return hours_back(text) != 0 || read_day(text, &hour);
}

cx_inbox_hours cx_inbox_hours_of(cx_str time, int64_t now_ns)
{
    int64_t back = time.data == NULL ? 0 : hours_back(time), hour = cx_inbox_hour(now_ns);
    if (back != 0)
        return (cx_inbox_hours){hour - back, hour + 1};
    if (time.data != NULL && read_day(time, &hour))
        return (cx_inbox_hours){hour, hour + 24};
    return (cx_inbox_hours){INT64_MIN, INT64_MAX};
}

/* --- what is chosen --------------------------------------------------------------------------- */

static char lower_ascii(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool has_word(cx_str text, cx_str word)
{
    for (size_t i = 0; i + word.size <= text.size; i++) {
        size_t k = 0;
        while (k < word.size && lower_ascii(text.data[i + k]) == lower_ascii(word.data[k]))
            k++;
        if (k == word.size)
            return true;
    }
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool cx_inbox_has_words(const cx_inbox_object *object, cx_str words)
{
    if (object->has_words)
        return true;
    for (size_t i = 0, end; i < words.size; i = end) {
        for (; i < words.size && is_space(words.data[i]); i++)
            ;
        for (end = i; end < words.size && !is_space(words.data[end]); end++)
            ;
        cx_str word = cx_str_from(words.data + i, end - i);
        bool found = word.size == 0 || has_word(object->id, word) ||
                     has_word(object->values[CX_FACET_AGENT], word);
        for (size_t k = 0; k < CX_COUNT_OF(object->words) && !found; k++)
            found = has_word(object->words[k], word);
        if (!found)
            return false;
    }
    return true;
}

bool cx_inbox_is_value(const cx_inbox_query *query, cx_facet facet, cx_str value)
{
    cx_str chosen = query->chosen[facet];
    return chosen.data == NULL || (value.data != NULL && cx_str_eq(chosen, value));
}

bool cx_inbox_is_chosen(const cx_inbox_query *query, const cx_inbox_object *object)
{
    for (cx_facet f = CX_FACET_KIND; f < CX_FACET_TIME; f++)
        if (!cx_inbox_is_value(query, f, object->values[f]))
            return false;
    int64_t hour = cx_inbox_hour(object->when_ns);
    const cx_inbox_hours hours = cx_inbox_hours_of(query->chosen[CX_FACET_TIME], query->now_ns);
    return hour >= hours.from && hour < hours.to && cx_inbox_has_words(object, query->words);
}

/* The index of the chosen value; -1: nothing is chosen; false: the value is unknown. */
static bool place_of(cx_str chosen, const char *const *names, size_t count, int8_t *out)
{
    *out = -1;
    if (chosen.data == NULL)
        return true;
    for (size_t i = 0; i < count; i++)
        if (cx_str_is(chosen, names[i])) {
            *out = (int8_t)i;
            return true;
        }
    return false;
}

bool cx_inbox_trace_query(const cx_inbox_query *query, cx_trace_query *out)
{
    static const char *const verdicts[] = {"unverified", "verified"};
    const cx_str *chosen = query->chosen;
    const cx_inbox_hours hours = cx_inbox_hours_of(chosen[CX_FACET_TIME], query->now_ns);
    cx_trace_level level;
    int8_t verified;
    *out = (cx_trace_query)CX_TRACE_QUERY_INIT;
    out->level = query->level;
    out->limit = query->limit;
    out->agent = chosen[CX_FACET_AGENT];
    out->words = query->words;
    out->names_only = query->level != CX_LEVEL_FULL;
    if (hours.from != INT64_MIN) {
        out->from_ns = hours.from * CX_HOUR_NS;
        out->to_ns = hours.to * CX_HOUR_NS;
    }
    if (!query->traces || chosen[CX_FACET_SOURCE].data != NULL ||
        !cx_inbox_is_value(query, CX_FACET_KIND, CX_STR("trace")) ||
        !place_of(chosen[CX_FACET_VERDICT], verdicts, 2, &verified) ||
        !place_of(chosen[CX_FACET_GATE], cx_inbox_gates, 4, &out->gate) ||
        !place_of(chosen[CX_FACET_K_EFF], cx_inbox_k_effs, 4, &out->k_eff))
        return false;
    out->verified = verified < 0 ? CX_NULL : verified == 1 ? CX_TRUE : CX_FALSE;
    if (chosen[CX_FACET_LEVEL].data == NULL)
        return true;
    if (!cx_trace_level_parse(chosen[CX_FACET_LEVEL], &level))
        return false;
    out->kept_at = (int8_t)level;
    return true;
}

/* --- alerts ----------------------------------------------------------------------------------- */

static bool is_true(const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_TRUE;
}

static cx_str optional_text(const cx_json *object, const char *name)
{
    cx_str text = cx_json_get_str(object, cx_str_z(name));
    return text.size == 0 ? (cx_str){NULL, 0} : text;
}

static void make_alert(const cx_json *alert, cx_inbox_object *out)
{
    bool naive;
    *out = (cx_inbox_object){.kind = CX_INBOX_ALERT,
                             .id = cx_json_get_str(alert, CX_STR("alert_id")),
                             .when_ns = CX_TIME_NONE,
                             .value = *alert};
    if (!cx_trace_time_parse(cx_json_get_str(alert, CX_STR("timestamp")), &out->when_ns, &naive))
        out->when_ns = CX_TIME_NONE;
    out->values[CX_FACET_KIND] = CX_STR("alert");
    out->values[CX_FACET_VERDICT] = is_true(alert, "resolved")       ? CX_STR("resolved")
                                    : is_true(alert, "acknowledged") ? CX_STR("acknowledged")
                                                                     : CX_STR("open");
    out->values[CX_FACET_AGENT] = optional_text(alert, "agent_id_hash");
    out->words[0] = cx_json_get_str(alert, CX_STR("detection_mechanism"));
    out->words[1] = cx_json_get_str(alert, CX_STR("metric"));
    out->words[2] = cx_json_get_str(alert, CX_STR("domain"));
    out->words[3] = cx_json_get_str(alert, CX_STR("severity"));
}

/* --- histories -------------------------------------------------------------------------------- */

#define HISTORIES_AT_ONCE 1000

static cx_str given(cx_str text)
{
    return text.size == 0 ? (cx_str){NULL, 0} : text;
}

static cx_status make_history(const cx_found_history *history, bool found, cx_arena *arena,
                              cx_inbox_object *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    *out = (cx_inbox_object){.kind = CX_INBOX_HISTORY,
                             .id = history->name,
                             .when_ns = history->last_ns,
                             .has_words = found};
    out->values[CX_FACET_KIND] = CX_STR("history");
    out->values[CX_FACET_AGENT] = given(history->agent);
    out->values[CX_FACET_SOURCE] = given(history->source);
    cx_reply_history(&list, history);
    return cx_json_list_end_object(&list, &out->value, err);
}

typedef CX_VEC(cx_inbox_object) object_list;

/* Words that only other objects have are no error: then no history has them. */
static cx_status find_histories(cx_index *index, const cx_inbox_query *query, cx_arena *arena,
                                object_list *out, cx_err *err)
{
    cx_history_query page = CX_HISTORY_QUERY_INIT;
    bool more = true;
    page.words = query->words;
    page.limit = HISTORIES_AT_ONCE;
    while (more && out->count < CX_INBOX_HISTORIES_MAX) {
        const cx_found_history *found;
        size_t count = 0;
        cx_status status = cx_index_histories(index, &page, arena, &found, &count, &more, err);
        if (status.code == CX_E_FORMAT && err != NULL && err->tag != NULL &&
            strcmp(err->tag, "NoWords") == 0)
            return CX_SUCCESS;
        CX_TRY(status);
        for (size_t i = 0; i < count; i++) {
            cx_inbox_object *object = cx_vec_push(out, cx_alloc_default());
            if (object == NULL)
                return cx_fail_nomem(err);
            CX_TRY(make_history(&found[i], query->words.data != NULL, arena, object, err));
        }
        if (count == 0)
            break;
        page.has_cursor = true;
        page.cursor_ns = found[count - 1].last_ns;
        page.cursor_id = found[count - 1].id;
    }
    return CX_SUCCESS;
}

static cx_status add_histories(cx_index *index, const cx_inbox_query *query, cx_arena *arena,
                               object_list *out, cx_err *err)
{
    if (index == NULL || !query->histories ||
        !cx_inbox_is_value(query, CX_FACET_KIND, CX_STR("history")))
        return CX_SUCCESS;
    return find_histories(index, query, arena, out, err);
}

static cx_status join_objects(const object_list *histories, const cx_inbox_object *objects,
                              size_t count, const cx_json *alerts, size_t alert_count,
                              cx_arena *arena, cx_inbox_object **out, cx_err *err)
{
    cx_inbox_object *all =
        CX_ARENA_ARRAY(arena, cx_inbox_object, count + alert_count + histories->count + 1);
    if (all == NULL)
        return cx_fail_nomem(err);
    if (count != 0)
        memcpy(all, objects, count * sizeof *all);
    for (size_t i = 0; i < alert_count; i++)
        make_alert(&alerts[i], &all[count + i]);
    if (histories->count != 0)
        memcpy(all + count + alert_count, histories->items, histories->count * sizeof *all);
    *out = all;
    return CX_SUCCESS;
}

cx_status cx_inbox_gather(cx_index *index, const cx_inbox_query *query,
                          const cx_inbox_object *objects, size_t count, cx_arena *arena,
                          cx_inbox_object **out, size_t *out_count, cx_err *err)
{
    const cx_json *alerts = NULL;
    size_t alert_count = 0;
    if (index != NULL && query->traces)
        CX_TRY(
            cx_index_alerts(index, false, CX_INBOX_ALERTS_MAX, arena, &alerts, &alert_count, err));
    object_list histories = {0};
    cx_status status = add_histories(index, query, arena, &histories, err);
    if (!cx_failed(status))
        status = join_objects(&histories, objects, count, alerts, alert_count, arena, out, err);
    *out_count = count + alert_count + histories.count;
    cx_vec_done(&histories, cx_alloc_default());
    return status;
}

cx_status cx_inbox_put_position(cx_recorder *recorder, cx_index *index, cx_json_list *list,
                                cx_err *err)
{
    uint8_t home[16];
    cx_feed_position position;
    cx_str text = {NULL, 0};
    if (index != NULL) {
        cx_home_id(recorder->home, home);
        CX_TRY(cx_index_position(index, home, &position, err));
        text = cx_arena_printf(list->arena, "%llu.%llu", (unsigned long long)position.commit,
                               (unsigned long long)position.frames);
        if (text.data == NULL)
            return cx_fail_nomem(err);
    }
    cx_reply_text(list, "index", text);
    return CX_SUCCESS;
}
