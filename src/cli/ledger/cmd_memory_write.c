/*
 * cmd_memory_write.c - `cortex memory write`, `update`, `tombstone`, `link`, `unlink`.
 */
#include <string.h>

#include "cli/ledger/memory_view.h"

/* The URI that a write led to. */
static cx_status answer_uri(cx_cli_ledger *l, const cx_uri *uri, cx_err *err)
{
    if (!l->json) {
        cx_uri_add(uri, &l->out);
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_id(&json, "id", &uri->id);
    cx_json_put_uri(&json, "uri", uri);
    cx_json_put_uint(&json, "version", uri->version);
    return cx_cli_end_json(&json, &l->out, err);
}

/* --- write ------------------------------------------------------------------------------------ */

typedef struct write_state {
    cx_memory_write write;
    cx_id id;
    cx_cli_data data;
    cx_cli_version version;
    cx_cli_head head;
} write_state;

static cx_status prepare_write(cx_cli_ledger *l, void *state, cx_err *err)
{
    write_state *s = state;
    cx_memory_write *w = &s->write;
    const char *id = cx_cli_value(l->args, "id"), *scope = cx_cli_value(l->args, "actor-scope");
    CX_TRY(cx_cli_parse_word("TYPE", l->args->operands[0], cx_uri_type_name, CX_TYPE_MAX, &w->type,
                             err));
    CX_TRY(cx_cli_read_version(l->cli, l->args, &s->version, err));
    CX_TRY(cx_cli_read_head(l->cli, l->args, &s->head, err));
    if (id != NULL && !cx_ulid_parse(cx_str_z(id), &s->id))
        return cx_fail(err, CX_E_USAGE, "option --id: found '%s', expected a ULID of 26 characters",
                       id);
    CX_TRY(cx_cli_read_data(
        l->cli, l->args, l->args->operand_count > 1 ? l->args->operands[1] : NULL, &s->data, err));
    CX_TRY(cx_cli_make_data(l->cli, &s->data, w->type, &w->data, err));
    w->id = id == NULL ? NULL : &s->id;
    w->actor_scope = scope == NULL ? (cx_str){NULL, 0} : cx_str_z(scope);
    w->visibility = s->head.visibility;
    w->importance = s->head.importance;
    w->tags = s->head.tags;
    w->tag_count = s->head.tag_count;
    w->frames = s->head.frames;
    w->frame_count = s->head.frame_count;
    w->provenance = s->version.provenance;
    w->created_by = s->version.by;
    w->confidence = s->version.confidence;
    w->expires = s->version.expires;
    w->expires_at = s->version.expires_at;
    w->forms = s->version.forms;
    w->blind = s->version.blind;
    w->pinned = cx_cli_has(l->args, "pinned");
    return CX_SUCCESS;
}

static cx_status memory_write_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    write_state *s = state;
    cx_uri uri;
    CX_TRY(cx_memory_write_new(l->memory, &s->write, &uri, err));
    return answer_uri(l, &uri, err);
}

static int run_memory_write(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_write, memory_write_job};
    write_state state = {.write = {.type = 0}};
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand write_operands[] = {
    {"TYPE", CX_CLI_CHOICE,
     "Identity|Fact|Preference|Belief|Event|Goal|Constraint|Capability|Pattern", false, false},
    {"DATA", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option write_options[] = {
    CX_CLI_OPTIONS_HEAD,
    CX_CLI_OPTIONS_VERSION,
    CX_CLI_OPTION_DATA_CBOR,
    CX_CLI_OPT("id", 0, CX_CLI_TEXT, "ULID", "The memory's id; default a new one."),
    CX_CLI_OPT("actor-scope", 0, CX_CLI_TEXT, "TEXT", "The owner; default the actor."),
    CX_CLI_OPT_FLAG("pinned", 0, "Salience never below 0.7."),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_write = {
    .name = "memory write",
    .purpose = "write a memory",
    .about = "Writes a new memory of TYPE and prints its URI. DATA is a JSON object with the "
             "type's members, @FILE, or - for standard input:\n\n"
             "Identity name did wallets roles public_keys; Fact statement subject predicate object "
             "source as_of; Preference topic value polarity strength rationale; Belief statement "
             "subject stance evidence_for evidence_against; Event kind intent_ref counterparty "
             "outcome cost duration artifacts summary; Goal statement horizon_end success_criteria "
             "status subgoals verb_hint objects constraints budget persistent created_by; "
             "Constraint statement polarity trigger strength source; Capability subject capability "
             "parameters verified last_observed; Pattern statement derived_from strength coverage.",
    .operands = write_operands,
    .operand_count = CX_COUNT_OF(write_operands),
    .options = write_options,
    .option_count = CX_COUNT_OF(write_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex memory write Fact @fact.json --tag weather\n"
               "cortex memory write Goal '{\"statement\":\"ship it\",\"status\":\"active\"}'",
    .run = run_memory_write,
};

/* --- update ----------------------------------------------------------------------------------- */

typedef struct update_state {
    cx_cli_name name;
    cx_cli_data data;
    bool new_version;
    cx_cli_version version;
    cx_cli_head head;
    cx_head_patch patch;
    cx_digest if_head;
} update_state;

static bool has_any(const cx_cli_args *args, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cx_cli_has(args, names[i]))
            return true;
    return false;
}

static cx_status prepare_patch(cx_cli_ledger *l, update_state *s, cx_err *err)
{
    const char *if_head = cx_cli_value(l->args, "if-head");
    bool no_tags = cx_cli_has(l->args, "no-tags"), no_frames = cx_cli_has(l->args, "no-frames");
    if ((no_tags && s->head.tag_count != 0) || (no_frames && s->head.frame_count != 0))
        return cx_fail(err, CX_E_USAGE,
                       "--no-tags excludes --tag, and --no-frames excludes --frame");
    s->patch = (cx_head_patch){
        .set_tags = no_tags || s->head.tag_count != 0,
        .set_frames = no_frames || s->head.frame_count != 0,
        .set_importance = cx_cli_has(l->args, "importance"),
        .set_visibility = cx_cli_has(l->args, "visibility"),
        .tags = s->head.tags,
        .tag_count = s->head.tag_count,
        .frames = s->head.frames,
        .frame_count = s->head.frame_count,
        .importance = s->head.importance,
        .visibility = s->head.visibility,
    };
    if (if_head != NULL) {
        CX_TRY(cx_cli_parse_digest("option --if-head", if_head, &s->if_head, err));
        s->patch.if_head = &s->if_head;
    }
    return CX_SUCCESS;
}

static cx_status prepare_update(cx_cli_ledger *l, void *state, cx_err *err)
{
    static const char *const of_head[] = {"tag",     "frame",     "importance", "visibility",
                                          "no-tags", "no-frames", "if-head"};
    static const char *const of_version[] = {"source",  "derived-from", "attestation", "confidence",
                                             "expires", "short",        "medium",      "by",
                                             "blind",   "data-cbor"};
    update_state *s = state;
    bool heads = has_any(l->args, of_head, CX_COUNT_OF(of_head));
    CX_TRY(cx_cli_parse_name(l->args->operands[0], &s->name, err));
    CX_TRY(cx_cli_read_version(l->cli, l->args, &s->version, err));
    CX_TRY(cx_cli_read_head(l->cli, l->args, &s->head, err));
    const char *data = l->args->operand_count > 1 ? l->args->operands[1] : NULL;
    s->new_version = data != NULL || cx_cli_has(l->args, "data-cbor");
    if (s->new_version && heads)
        return cx_fail(err, CX_E_USAGE,
                       "expected either DATA (a new version) or --tag and the like (a changed "
                       "head); use two commands for both");
    if (!s->new_version && has_any(l->args, of_version, CX_COUNT_OF(of_version)))
        return cx_fail(err, CX_E_USAGE, "expected DATA: JSON, @FILE or - (standard input)");
    if (!s->new_version && !heads)
        return cx_fail(err, CX_E_USAGE,
                       "expected DATA for a new version, or --tag, --frame, --importance, "
                       "--visibility for a changed head");
    if (s->new_version)
        CX_TRY(cx_cli_read_data(l->cli, l->args, data, &s->data, err));
    return prepare_patch(l, s, err);
}

static cx_status memory_update_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    update_state *s = state;
    cx_uri uri, now;
    CX_TRY(cx_cli_find_uri(l, &s->name, &uri, err));
    if (!s->new_version) {
        CX_TRY(cx_memory_update_head(l->memory, &uri, &s->patch, err));
        return answer_uri(l, &uri, err);
    }
    cx_memory_update update = {
        .provenance = s->version.provenance,
        .created_by = s->version.by,
        .confidence = s->version.confidence,
        .expires = s->version.expires,
        .expires_at = s->version.expires_at,
        .forms = s->version.forms,
        .blind = s->version.blind,
    };
    CX_TRY(cx_cli_make_data(l->cli, &s->data, uri.type, &update.data, err));
    CX_TRY(cx_memory_update_at(l->memory, &uri, &update, &now, err));
    return answer_uri(l, &now, err);
}

static int run_memory_update(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_update, memory_update_job};
    update_state state = {.new_version = false};
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand update_operands[] = {{"URI", CX_CLI_TEXT, NULL, false, false},
                                                 {"DATA", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option update_options[] = {
    CX_CLI_OPTIONS_VERSION,
    CX_CLI_OPTION_DATA_CBOR,
    CX_CLI_OPTIONS_HEAD,
    CX_CLI_OPT_FLAG("no-tags", 0, "Leave no tags."),
    CX_CLI_OPT_FLAG("no-frames", 0, "Leave no frames."),
    CX_CLI_OPT("if-head", 0, CX_CLI_TEXT, "HEX",
               "Only if the head still has this hash (head_hash of 'memory get --json')."),
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_update = {
    .name = "memory update",
    .purpose = "write a new version of a memory, or change its tags",
    .about = "With DATA, writes a new version. URI must name the current version, so that no "
             "concurrent change is lost; a ULID means any current version. Without DATA, changes "
             "tags, frames, importance or visibility and leaves the version.",
    .operands = update_operands,
    .operand_count = CX_COUNT_OF(update_operands),
    .options = update_options,
    .option_count = CX_COUNT_OF(update_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example =
        "cortex memory update 'matrix://cortex/Fact/01HF7YAT000000000000000003#1' @fact.json",
    .run = run_memory_update,
};

/* --- tombstone -------------------------------------------------------------------------------- */

typedef struct name_state {
    cx_cli_name name;
    cx_str reason;
    cx_str by;
} name_state;

static cx_str text_of(const cx_cli_args *args, const char *option, cx_str fallback)
{
    const char *text = cx_cli_value(args, option);
    return text == NULL ? fallback : cx_str_z(text);
}

static cx_status prepare_tombstone(cx_cli_ledger *l, void *state, cx_err *err)
{
    name_state *s = state;
    s->reason = text_of(l->args, "reason", CX_STR(""));
    s->by = text_of(l->args, "by", l->actor);
    return cx_cli_parse_name(l->args->operands[0], &s->name, err);
}

static cx_status memory_tombstone_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    name_state *s = state;
    cx_uri uri;
    CX_TRY(cx_cli_find_uri(l, &s->name, &uri, err));
    CX_TRY(cx_memory_tombstone(l->memory, &uri, s->reason, s->by, err));
    return answer_uri(l, &uri, err);
}

static int run_memory_tombstone(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_tombstone, memory_tombstone_job};
    name_state state;
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand uri_operand[] = {{"URI", CX_CLI_TEXT, NULL, false, false}};

#define OPTION_REASON CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT", "Why; recorded.")
#define OPTION_BY CX_CLI_OPT("by", 0, CX_CLI_TEXT, "NAME", "The author; default the actor.")

static const cx_cli_option tombstone_options[] = {OPTION_REASON, OPTION_BY, CX_CLI_OPTIONS_LEDGER,
                                                  CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_tombstone = {
    .name = "memory tombstone",
    .purpose = "mark a memory as dead",
    .about = "The memory is left out of find and context from now on; its versions stay readable "
             "and provable ('cortex erase' destroys content). Doing it twice changes nothing.",
    .operands = uri_operand,
    .operand_count = CX_COUNT_OF(uri_operand),
    .options = tombstone_options,
    .option_count = CX_COUNT_OF(tombstone_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex memory tombstone 01HF7YAT000000000000000003 --reason superseded",
    .run = run_memory_tombstone,
};

/* --- link, unlink ----------------------------------------------------------------------------- */

typedef struct link_state {
    cx_edge_name name;
    float weight;
    cx_bytes data;
    bool blind;
    cx_str reason;
    cx_str by;
} link_state;

static cx_status read_edge(cx_cli_ledger *l, link_state *s, cx_err *err)
{
    cx_cli_name src, dst;
    CX_TRY(cx_cli_parse_name(l->args->operands[0], &src, err));
    CX_TRY(cx_cli_parse_word("TYPE", l->args->operands[1], cx_uri_edge_type_name, CX_EDGE_TYPE_MAX,
                             &s->name.type, err));
    CX_TRY(cx_cli_parse_name(l->args->operands[2], &dst, err));
    s->name.src = src.uri.id;
    s->name.dst = dst.uri.id;
    s->by = text_of(l->args, "by", l->actor);
    return CX_SUCCESS;
}

static cx_status prepare_link(cx_cli_ledger *l, void *state, cx_err *err)
{
    link_state *s = state;
    const char *weight = cx_cli_value(l->args, "weight"), *data = cx_cli_value(l->args, "data");
    CX_TRY(read_edge(l, s, err));
    s->blind = cx_cli_has(l->args, "blind");
    if (weight != NULL)
        CX_TRY(cx_cli_parse_float("option --weight", weight, &s->weight, err));
    return data == NULL ? CX_SUCCESS : cx_cli_read_text(l->cli, data, &s->data, err);
}

static cx_status prepare_unlink(cx_cli_ledger *l, void *state, cx_err *err)
{
    link_state *s = state;
    s->reason = text_of(l->args, "reason", CX_STR(""));
    return read_edge(l, s, err);
}

static cx_status answer_edge(cx_cli_ledger *l, const link_state *s, bool written, cx_err *err)
{
    cx_uri uri = {.is_edge = true, .type = s->name.type, .id = s->name.src, .dst = s->name.dst};
    if (!l->json) {
        cx_uri_add(&uri, &l->out);
        cx_buf_add_z(&l->out, written ? "\n" : "  (it was so already; nothing written)\n");
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "actor", l->actor);
    cx_json_put_uri(&json, "uri", &uri);
    cx_json_put_bool(&json, "written", written);
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status memory_link_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    link_state *s = state;
    bool written;
    CX_TRY(cx_memory_add_edge(l->memory, &s->name, s->by, s->weight, s->data, s->blind, &written,
                              err));
    return answer_edge(l, s, written, err);
}

static cx_status memory_unlink_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    link_state *s = state;
    bool written;
    CX_TRY(cx_memory_remove_edge(l->memory, &s->name, s->reason, s->by, &written, err));
    return answer_edge(l, s, written, err);
}

static int run_memory_link(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_link, memory_link_job};
    link_state state = {.weight = 0.0f};
    return cx_cli_run_job(cli, args, &job, &state);
}

static int run_memory_unlink(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_WRITE, true, prepare_unlink, memory_unlink_job};
    link_state state = {.weight = 0.0f};
    return cx_cli_run_job(cli, args, &job, &state);
}

static const cx_cli_operand edge_operands[] = {
    {"SRC", CX_CLI_TEXT, NULL, false, false},
    {"TYPE", CX_CLI_CHOICE,
     "derived_from|supersedes|references|contradicts|corroborates|consents_to|dispatched_to|"
     "attested_by|cited_in|tombstones|part_of|instance_of|caused_by|observed_by",
     false, false},
    {"DST", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option link_options[] = {
    CX_CLI_OPT("weight", 0, CX_CLI_TEXT, "X", "A number; default 0."),
    CX_CLI_OPT("data", 0, CX_CLI_TEXT, "TEXT|@FILE|-", "Data to store with the edge."),
    CX_CLI_OPT_FLAG("blind", 0, "Add a random salt (see 'memory write')."),
    OPTION_BY,
    CX_CLI_OPTIONS_LEDGER,
    CX_CLI_OPTIONS_COMMON};

static const cx_cli_option unlink_options[] = {OPTION_REASON, OPTION_BY, CX_CLI_OPTIONS_LEDGER,
                                               CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_memory_link = {
    .name = "memory link",
    .purpose = "record how two memories are related",
    .about = "Adds an edge of TYPE from SRC to DST, each a URI or a ULID; both must exist. Prints "
             "the edge's URI. An existing edge is left unchanged.",
    .operands = edge_operands,
    .operand_count = CX_COUNT_OF(edge_operands),
    .options = link_options,
    .option_count = CX_COUNT_OF(link_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex memory link 01HF7YAT000000000000000002 references "
               "01HF7YAT000000000000000001 --weight 0.5",
    .run = run_memory_link,
};

const cx_cli_command cx_cli_memory_unlink = {
    .name = "memory unlink",
    .purpose = "remove an edge between memories",
    .about = "Marks the edge of TYPE from SRC to DST as removed; that it was there stays provable. "
             "An edge that is not there is left as it is.",
    .operands = edge_operands,
    .operand_count = CX_COUNT_OF(edge_operands),
    .options = unlink_options,
    .option_count = CX_COUNT_OF(unlink_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex memory unlink 01HF7YAT000000000000000002 references "
               "01HF7YAT000000000000000001",
    .run = run_memory_unlink,
};
