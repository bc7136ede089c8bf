/*
 * object_show.c - one object as JSON, for `cortex show`, the server and other callers.
 */
#include "provenance/object_parts.h"

/* In single quotes unless all characters are safe in a shell; names are arbitrary text. */
static cx_str shell_quoted(cx_str text, cx_arena *arena)
{
    bool plain = text.size != 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        plain = plain && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || strchr("@%+=:,./_-", c) != NULL);
        if (c == '\'' || (unsigned char)c < ' ')
            return cx_str_z("NAME"); /* nothing to copy and paste */
    }
    return plain ? text : CX_TEXTF(arena, "'%.*s'", CX_S(text));
}

cx_str cx_prov_command(const cx_prov_object *object, cx_arena *arena)
{
    cx_str id = shell_quoted(object->id, arena), actor = shell_quoted(object->actor, arena), run;
    uint64_t index;
    switch (object->kind) {
    case CX_PROV_MEMORY:
        return CX_TEXTF(arena, "cortex memory get %.*s --actor %.*s", CX_S(id), CX_S(actor));
    case CX_PROV_TRACE: return CX_TEXTF(arena, "cortex trace show %.*s", CX_S(id));
    case CX_PROV_RUN: return CX_TEXTF(arena, "cortex run verify %.*s", CX_S(id));
    case CX_PROV_EVENT:
        if (!cx_run_event_split(object->id, &run, &index))
            break;
        return CX_TEXTF(arena, "cortex run events %.*s --from %llu --limit 1 --json", CX_S(run),
                        (unsigned long long)index);
    case CX_PROV_COMMIT: return CX_TEXTF(arena, "git show %.*s", CX_S(id));
    case CX_PROV_ENTRY:
        return CX_TEXTF(arena, "cortex prove --entry %llu --actor %.*s -o entry.proof",
                        (unsigned long long)object->seq, CX_S(actor));
    case CX_PROV_SNAPSHOT:
        return CX_TEXTF(arena, "cortex snapshot show %llu --actor %.*s",
                        (unsigned long long)object->seq, CX_S(actor));
    case CX_PROV_JOURNAL: return CX_TEXTF(arena, "cortex checkpoint --actor %.*s", CX_S(actor));
    case CX_PROV_NODE:
        return CX_TEXTF(arena, "cortex lattice show @%.*s %.*s", CX_S(actor), CX_S(id));
    case CX_PROV_KEY: return CX_STR("cortex key list");
    case CX_PROV_ACTOR: return CX_TEXTF(arena, "cortex log --actor %.*s", CX_S(id));
    case CX_PROV_LINE:
    case CX_PROV_NONE:
    case CX_PROV_EDGE:
    case CX_PROV_KIND_COUNT: break;
    }
    return (cx_str){NULL, 0};
}

static cx_status add_next(const cx_prov_object *object, cx_arena *arena, cx_json_list *out,
                          cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json value;
    cx_str own = cx_prov_command(object, arena), id = shell_quoted(object->id, arena);
    if (own.data != NULL)
        cx_json_list_add(&list, cx_json_make_str(own));
    const cx_prov_kind_info *kind = cx_prov_kind_info_of(object->kind);
    if (kind->has_why)
        cx_json_list_add(&list, cx_json_make_str(CX_TEXTF(arena, "cortex why %.*s", CX_S(id))));
    if (kind->has_evidence)
        cx_json_list_add(&list, cx_json_make_str(CX_TEXTF(
                                    arena, "cortex evidence %.*s -o evidence.cxe", CX_S(id))));
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_reply_add(out, "next", value);
    return CX_SUCCESS;
}

static cx_status add_refs(const cx_sources *sources, const cx_prov_object *object,
                          const cx_described *described, cx_arena *arena, cx_json_list *out,
                          cx_err *err)
{
    const cx_ref *refs;
    size_t count;
    bool cut;
    cx_json_list list = cx_json_list_begin(arena);
    cx_json all;
    CX_TRY(cx_prov_refs(sources, object, described, arena, &refs, &count, &cut, err));
    for (size_t i = 0; i < count; i++) {
        cx_json_list one = cx_json_list_begin(arena);
        cx_json value;
        cx_reply_z(&one, "relation", refs[i].relation);
        cx_reply_z(&one, "kind", cx_prov_kind_name(refs[i].other.kind));
        cx_reply_text(&one, "id", refs[i].other.id);
        cx_reply_text(&one, "verdict", cx_verdict_word(refs[i].verdict));
        cx_reply_text(&one, "by", refs[i].by);
        CX_TRY(cx_json_list_end_object(&one, &value, err));
        cx_json_list_add(&list, value);
    }
    CX_TRY(cx_json_list_end_array(&list, &all, err));
    cx_reply_add(out, "links", all);
    cx_reply_add(out, "links_cut", cx_json_make_bool(cut));
    return CX_SUCCESS;
}

static cx_status add_where(const cx_sources *sources, const cx_prov_object *object, cx_arena *arena,
                           cx_json_list *out, cx_err *err)
{
    cx_json_list where = cx_json_list_begin(arena);
    bool in_home = object->actor.size != 0 && sources->home != NULL;
    cx_reply_text(&where, "home",
                  in_home ? cx_str_z(cx_home_path(sources->home)) : (cx_str){NULL, 0});
    cx_reply_text(&where, "actor", object->actor.size != 0 ? object->actor : (cx_str){NULL, 0});
    if (object->kind == CX_PROV_ENTRY || object->kind == CX_PROV_TRACE)
        cx_reply_uint(&where, "seq", object->seq);
    cx_str run = object->id;
    uint64_t index;
    bool of_run = object->kind == CX_PROV_RUN ||
                  (object->kind == CX_PROV_EVENT && cx_run_event_split(object->id, &run, &index));
    if (of_run && sources->store != NULL)
        cx_reply_text(&where, "bundle",
                      CX_TEXTF(arena, "%s/runs/%.*s", sources->store->root, CX_S(run)));
    if (object->kind == CX_PROV_COMMIT || object->kind == CX_PROV_LINE)
        cx_reply_text(&where, "repository",
                      sources->git == NULL ? (cx_str){NULL, 0}
                                           : cx_str_z(cx_git_worktree(sources->git)));
    return cx_reply_end_object(out, "where", &where, err);
}

cx_status cx_prov_show(const cx_sources *sources, const cx_prov_object *given, cx_arena *arena,
                       cx_json *out, cx_err *err)
{
    cx_prov_object object = *given;
    cx_described described;
    bool found;
    if (object.kind == CX_PROV_MEMORY || object.kind == CX_PROV_TRACE)
        CX_TRY(cx_prov_locate(sources, &object, arena, &found, err));
    CX_TRY(cx_prov_describe(sources, &object, arena, &described, err));
    cx_json_list list = cx_json_list_begin(arena);
    cx_reply_z(&list, "kind", cx_prov_kind_name(object.kind));
    cx_reply_text(&list, "id", object.id);
    cx_reply_z(&list, "matched", object.matched == NULL ? "" : object.matched);
    cx_reply_add(&list, "here", cx_json_make_bool(described.here));
    cx_reply_text(&list, "title", described.title);
    cx_reply_text(&list, "verdict", cx_verdict_word(described.verdict));
    cx_reply_text(&list, "by", described.by);
    CX_TRY(add_where(sources, &object, arena, &list, err));
    cx_reply_add(&list, "facts", described.facts);
    CX_TRY(add_refs(sources, &object, &described, arena, &list, err));
    CX_TRY(add_next(&object, arena, &list, err));
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_prov_objects_list(const cx_sources *sources, const cx_prov_object *objects,
                               size_t count, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena), answer = cx_json_list_begin(arena);
    cx_json value;
    for (size_t i = 0; i < count; i++) {
        cx_described described;
        cx_json_list one = cx_json_list_begin(arena);
        CX_TRY(cx_prov_describe(sources, &objects[i], arena, &described, err));
        cx_reply_z(&one, "kind", cx_prov_kind_name(objects[i].kind));
        cx_reply_text(&one, "id", objects[i].id);
        cx_reply_z(&one, "matched", objects[i].matched == NULL ? "" : objects[i].matched);
        cx_reply_text(&one, "title", described.title);
        CX_TRY(cx_json_list_end_object(&one, &value, err));
        cx_json_list_add(&list, value);
    }
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_reply_add(&answer, "candidates", value);
    return cx_json_list_end_object(&answer, out, err);
}
