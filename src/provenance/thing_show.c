/*
 * thing_show.c - one thing as JSON: what `cortex show`, the server and others print.
 */
#include "provenance/thing_parts.h"

/* In single quotes unless it is only of characters that no shell knows; names are any text. */
static cx_str quoted(cx_str text, cx_arena *arena)
{
    bool plain = text.size != 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        plain = plain && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || strchr("@%+=:,./_-", c) != NULL);
        if (c == '\'' || (unsigned char)c < ' ')
            return cx_str_z("NAME"); /* nothing to copy and paste */
    }
    return plain ? text : CX_SAY(arena, "'%.*s'", CX_S(text));
}

cx_str cx_thing_command(const cx_thing *thing, cx_arena *arena)
{
    cx_str id = quoted(thing->id, arena), actor = quoted(thing->actor, arena), run;
    uint64_t index;
    switch (thing->kind) {
    case CX_THING_MEMORY:
        return CX_SAY(arena, "cortex memory get %.*s --actor %.*s", CX_S(id), CX_S(actor));
    case CX_THING_TRACE: return CX_SAY(arena, "cortex trace show %.*s", CX_S(id));
    case CX_THING_RUN: return CX_SAY(arena, "cortex run verify %.*s", CX_S(id));
    case CX_THING_EVENT:
        if (!cx_run_event_split(thing->id, &run, &index))
            break;
        return CX_SAY(arena, "cortex run events %.*s --from %llu --limit 1 --json", CX_S(run),
                      (unsigned long long)index);
    case CX_THING_COMMIT: return CX_SAY(arena, "git show %.*s", CX_S(id));
    case CX_THING_ENTRY:
        return CX_SAY(arena, "cortex prove --entry %llu --actor %.*s -o entry.proof",
                      (unsigned long long)thing->seq, CX_S(actor));
    case CX_THING_SNAPSHOT:
        return CX_SAY(arena, "cortex snapshot show %llu --actor %.*s",
                      (unsigned long long)thing->seq, CX_S(actor));
    case CX_THING_JOURNAL: return CX_SAY(arena, "cortex checkpoint --actor %.*s", CX_S(actor));
    case CX_THING_NODE:
        return CX_SAY(arena, "cortex lattice show @%.*s %.*s", CX_S(actor), CX_S(id));
    case CX_THING_KEY: return CX_STR("cortex key list");
    case CX_THING_ACTOR: return CX_SAY(arena, "cortex log --actor %.*s", CX_S(id));
    case CX_THING_LINE:
    case CX_THING_NONE:
    case CX_THING_EDGE:
    case CX_THING_COUNT: break;
    }
    return (cx_str){NULL, 0};
}

static bool has_evidence(cx_thing_kind kind)
{
    return kind == CX_THING_RUN || kind == CX_THING_TRACE || kind == CX_THING_COMMIT ||
           kind == CX_THING_MEMORY;
}

static cx_status put_next(const cx_thing *thing, cx_arena *arena, cx_json_list *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json value;
    cx_str own = cx_thing_command(thing, arena), id = quoted(thing->id, arena);
    if (own.data != NULL)
        cx_json_list_add(&list, cx_json_make_str(own));
    if (has_evidence(thing->kind) || thing->kind == CX_THING_EVENT ||
        thing->kind == CX_THING_NODE || thing->kind == CX_THING_ENTRY)
        cx_json_list_add(&list, cx_json_make_str(CX_SAY(arena, "cortex why %.*s", CX_S(id))));
    if (has_evidence(thing->kind))
        cx_json_list_add(&list, cx_json_make_str(CX_SAY(
                                    arena, "cortex evidence %.*s -o evidence.cxe", CX_S(id))));
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_reply_put(out, "next", value);
    return CX_SUCCESS;
}

static cx_status put_ties(const cx_sources *sources, const cx_thing *thing,
                          const cx_described *described, cx_arena *arena, cx_json_list *out,
                          cx_err *err)
{
    const cx_tie *ties;
    size_t count;
    bool cut;
    cx_json_list list = cx_json_list_begin(arena);
    cx_json all;
    CX_TRY(cx_thing_ties(sources, thing, described, arena, &ties, &count, &cut, err));
    for (size_t i = 0; i < count; i++) {
        cx_json_list one = cx_json_list_begin(arena);
        cx_json value;
        cx_reply_z(&one, "relation", ties[i].relation);
        cx_reply_z(&one, "kind", cx_thing_kind_name(ties[i].other.kind));
        cx_reply_text(&one, "id", ties[i].other.id);
        cx_reply_text(&one, "verdict", cx_verdict_word(ties[i].verdict));
        cx_reply_text(&one, "by", ties[i].by);
        CX_TRY(cx_json_list_end_object(&one, &value, err));
        cx_json_list_add(&list, value);
    }
    CX_TRY(cx_json_list_end_array(&list, &all, err));
    cx_reply_put(out, "links", all);
    cx_reply_put(out, "links_cut", cx_json_make_bool(cut));
    return CX_SUCCESS;
}

static cx_status put_where(const cx_sources *sources, const cx_thing *thing, cx_arena *arena,
                           cx_json_list *out, cx_err *err)
{
    cx_json_list where = cx_json_list_begin(arena);
    bool in_home = thing->actor.size != 0 && sources->home != NULL;
    cx_reply_text(&where, "home",
                  in_home ? cx_str_z(cx_home_path(sources->home)) : (cx_str){NULL, 0});
    cx_reply_text(&where, "actor", thing->actor.size != 0 ? thing->actor : (cx_str){NULL, 0});
    if (thing->kind == CX_THING_ENTRY || thing->kind == CX_THING_TRACE)
        cx_reply_uint(&where, "seq", thing->seq);
    cx_str run = thing->id;
    uint64_t index;
    bool of_run = thing->kind == CX_THING_RUN ||
                  (thing->kind == CX_THING_EVENT && cx_run_event_split(thing->id, &run, &index));
    if (of_run && sources->store != NULL)
        cx_reply_text(&where, "bundle",
                      CX_SAY(arena, "%s/runs/%.*s", sources->store->root, CX_S(run)));
    if (thing->kind == CX_THING_COMMIT || thing->kind == CX_THING_LINE)
        cx_reply_text(&where, "repository",
                      sources->git == NULL ? (cx_str){NULL, 0}
                                           : cx_str_z(cx_git_worktree(sources->git)));
    return cx_reply_end_object(out, "where", &where, err);
}

cx_status cx_thing_show(const cx_sources *sources, const cx_thing *given, cx_arena *arena,
                        cx_json *out, cx_err *err)
{
    cx_thing thing = *given;
    cx_described described;
    bool found;
    if (thing.kind == CX_THING_MEMORY || thing.kind == CX_THING_TRACE)
        CX_TRY(cx_thing_locate(sources, &thing, arena, &found, err));
    CX_TRY(cx_thing_describe(sources, &thing, arena, &described, err));
    cx_json_list list = cx_json_list_begin(arena);
    cx_reply_z(&list, "kind", cx_thing_kind_name(thing.kind));
    cx_reply_text(&list, "id", thing.id);
    cx_reply_z(&list, "matched", thing.matched == NULL ? "" : thing.matched);
    cx_reply_put(&list, "here", cx_json_make_bool(described.here));
    cx_reply_text(&list, "title", described.title);
    cx_reply_text(&list, "verdict", cx_verdict_word(described.verdict));
    cx_reply_text(&list, "by", described.by);
    CX_TRY(put_where(sources, &thing, arena, &list, err));
    cx_reply_put(&list, "facts", described.facts);
    CX_TRY(put_ties(sources, &thing, &described, arena, &list, err));
    CX_TRY(put_next(&thing, arena, &list, err));
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_things_list(const cx_sources *sources, const cx_thing *things, size_t count,
                         cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena), answer = cx_json_list_begin(arena);
    cx_json value;
    for (size_t i = 0; i < count; i++) {
        cx_described described;
        cx_json_list one = cx_json_list_begin(arena);
        CX_TRY(cx_thing_describe(sources, &things[i], arena, &described, err));
        cx_reply_z(&one, "kind", cx_thing_kind_name(things[i].kind));
        cx_reply_text(&one, "id", things[i].id);
        cx_reply_z(&one, "matched", things[i].matched == NULL ? "" : things[i].matched);
        cx_reply_text(&one, "title", described.title);
        CX_TRY(cx_json_list_end_object(&one, &value, err));
        cx_json_list_add(&list, value);
    }
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_reply_put(&answer, "candidates", value);
    return cx_json_list_end_object(&answer, out, err);
}
