/*
 * check_report.c - what a check found, as lines for users and as one JSON object a file
 * (docs/formats/proof.md).
 */
#include <inttypes.h>

#include "base/api.h"
#include "crypto/api.h"
#include "json/api.h"
#include "proof/check.h"

static const char *membership_name(cx_membership kind)
{
    return kind == CX_MEMBER          ? "member"
           : kind == CX_MEMBER_ERASED ? "withheld or erased"
                                      : "absent";
}

static const struct {
    unsigned bit;
    const char *name;
    const char *text;
} anchors[] = {
    {CX_CHECK_BY_OVERALL_ROOT, "overall_root", "the overall root given"},
    {CX_CHECK_BY_MANIFEST_SIGNATURE, "manifest_signature",
     "a key given, which signed the manifest"},
    {CX_CHECK_BY_SEAL, "seal", "the manifest's seal in a journal that is trusted"},
    {CX_CHECK_BY_ROOT, "journal_root", "the journal root given"},
    {CX_CHECK_BY_CHECKPOINT, "checkpoint", "a key given, which signed the checkpoint"},
    {CX_CHECK_BY_SIGNATURE, "signature", "a key given, which signed it"},
    {CX_CHECK_BY_RECEIPT, "receipt", "a key given, which signed the receipt"},
    {CX_CHECK_BY_MANIFEST, "manifest", "the manifest given"},
    {CX_CHECK_BY_SCOPE_SIGNATURE, "scope_signature", "a key given, which signed the scope"},
};

/* A message may have been cut inside a character. */
static cx_str whole_text(const char *message)
{
    cx_str text = cx_str_z(message);
    text.size = cx_utf8_valid_prefix(text);
    return text;
}

/* --- text ------------------------------------------------------------------------------------ */

void cx_check_write_safe(cx_buf *out, cx_str text)
{
    cx_shown_add(out, text);
}

static void add_hex(cx_buf *out, const cx_digest *digest)
{
    cx_hex_add(out, cx_bytes_from(digest->bytes, sizeof digest->bytes));
}

static const char *kind_text(cx_check_kind kind)
{
    static const char *const names[] = {"unknown file",      "proof pack",
                                        "state proof",       "manifest",
                                        "inclusion proof",   "consistency proof",
                                        "signed checkpoint", "tlog-proof",
                                        "COSE receipt",      "scope",
                                        "home proof",        "receipt of an erasure",
                                        "proof of absence"};
    return names[kind];
}

static void text_journal(const cx_check_result *r, cx_buf *out)
{
    if (r->has_index)
        cx_buf_printf(out, ", entry %" PRIu64, r->index);
    if (r->has_older)
        cx_buf_printf(out, ", %" PRIu64 " entries are the beginning of %" PRIu64, r->older.size,
                      r->journal.size);
    else if (r->has_journal)
        cx_buf_printf(out, ", journal of %" PRIu64 " entries", r->journal.size);
    if (r->has_note) {
        cx_buf_add_z(out, " of ");
        cx_check_write_safe(out, r->note.checkpoint.origin);
    }
}

static void text_manifest(const cx_check_result *r, const char *before, cx_buf *out)
{
    cx_buf_printf(out, "%ssnapshot %" PRIu64 " of ", before, r->manifest.snapshot_seq);
    cx_check_write_safe(out, r->manifest.actor);
    cx_buf_printf(out, " at %" PRIu64 " entries", r->manifest.journal_size);
}

/* Who lets whom read what, until when: all of it is signed, or none of it is. */
static void text_scope(const cx_check_result *r, cx_buf *out)
{
    const cx_scope *scope = &r->scope;
    const cx_selector *include = &scope->include;
    cx_buf_add_z(out, ", of memories of ");
    cx_check_write_safe(out, scope->actor);
    cx_buf_add_z(out, ", granted by ");
    cx_check_write_safe(out, scope->granted_by);
    cx_buf_add_z(out, " to ");
    cx_check_write_safe(out, scope->granted_to);
    cx_buf_printf(out, "\n  includes %zu types, %zu tags, %zu ids%s; %s", include->types.size,
                  include->tags.count, include->id_count, include->has_frame ? ", a frame" : "",
                  scope->writable ? "writable" : "read only");
    if (scope->expires)
        cx_buf_printf(out, "; ends at %" PRId64 " seconds since 1970", scope->expires_at);
}

static void text_home(const cx_check_result *r, cx_buf *out)
{
    cx_buf_add_z(out, ", ");
    cx_check_write_safe(out, r->home_leaf.actor);
    cx_buf_printf(out,
                  " at %" PRIu64 " entries is one of %" PRIu64 " actors with %" PRIu64 " entries",
                  r->home_leaf.size, r->home_root.actors, r->home_root.entries);
}

static void text_erasure(const cx_check_result *r, cx_buf *out)
{
    const cx_erasure_head *head = &r->erasure;
    cx_buf_printf(out,
                  ": %" PRIu64 " entries and %" PRIu64 " memories destroyed, %" PRIu64
                  " kept by a legal hold, asked for by ",
                  head->entries, head->memories, head->held);
    cx_check_write_safe(out, head->by);
    cx_buf_add_z(out, "\n  ");
    cx_check_write_safe(out, head->selected);
    cx_buf_add_z(out, ", completed ");
    cx_check_write_safe(out, head->completed);
}

static void text_never(const cx_check_result *r, cx_buf *out)
{
    const cx_action_set *set = &r->actions;
    cx_buf_add_z(out, ", ");
    cx_check_write_safe(out, r->never);
    cx_buf_add_z(out, " is not in what ");
    cx_check_write_safe(out, set->subject);
    cx_buf_printf(
        out,
        " did, as recorded up to entry %" PRIu64 " of %.*s\n  set of %" PRIu64 " names of %" PRIu64
        " calls, %" PRIu64 " of which may touch files and hosts that they do not name",
        set->upto, (int)set->actor.size, set->actor.data, set->names, set->calls, set->opaque);
    if (set->unread != 0)
        cx_buf_printf(out, "; %" PRIu64 " records could not be read", set->unread);
}

static void text_summary(const cx_check_result *r, cx_buf *out)
{
    cx_buf_printf(out, "  %s", kind_text(r->kind));
    if (r->has_scheme)
        cx_buf_printf(out, ", %s", cx_scheme_name(r->scheme).data);
    if (r->has_proof)
        cx_buf_printf(out, ", %zu %s of %.*s", r->proof.count, r->proof.count == 1 ? "key" : "keys",
                      (int)r->proof.name_space.size, r->proof.name_space.data);
    if (r->has_scope)
        text_scope(r, out);
    if (r->has_home)
        text_home(r, out);
    if (r->has_erasure)
        text_erasure(r, out);
    if (r->has_never)
        text_never(r, out);
    if (r->has_manifest && r->manifest_covered)
        text_manifest(r, ", ", out);
    text_journal(r, out);
    cx_buf_add_byte(out, '\n');
    if (r->has_manifest && !r->manifest_covered && r->finding.verdict != CX_BROKEN) {
        text_manifest(r, "  not covered, only what the file says: ", out);
        cx_buf_add_byte(out, '\n');
    }
}

static void text_keys(const cx_check_result *r, cx_buf *out)
{
    for (size_t i = 0; r->has_proof && i < r->proof.count; i++) {
        const cx_proof_item *item = &r->proof.items[i];
        cx_buf_printf(out, "  %-6s  ", membership_name(item->kind));
        if (r->questions != NULL)
            cx_check_write_safe(out, r->questions[i].uri);
        else
            add_hex(out, &item->path.key);
        if (item->kind == CX_MEMBER && item->leaf.size == 0)
            cx_buf_add_z(out, "  (record not shown)");
        cx_buf_add_byte(out, '\n');
    }
}

static void text_roots(const cx_check_result *r, cx_buf *out)
{
    if (r->has_manifest) {
        cx_buf_add_z(out, "  overall root  ");
        add_hex(out, &r->manifest.overall_root);
        cx_buf_add_byte(out, '\n');
    }
    if (r->has_home) {
        cx_buf_add_z(out, "  overall root  ");
        add_hex(out, &r->home_leaf.overall);
        cx_buf_add_z(out, "\n  home root     ");
        add_hex(out, &r->home_root.root);
        cx_buf_add_byte(out, '\n');
    }
    if (r->has_never) {
        cx_buf_add_z(out, "  set root      ");
        add_hex(out, &r->actions.root);
        cx_buf_add_byte(out, '\n');
    }
    if (r->has_journal) {
        cx_buf_add_z(out, "  journal root  ");
        add_hex(out, &r->journal.root);
        cx_buf_add_byte(out, '\n');
    }
    if (r->has_note)
        cx_buf_printf(out, "  signatures    %zu of the origin, %zu of cosigners, %zu unknown\n",
                      r->note.signed_by_origin, r->note.cosigned, r->note.unknown);
}

/* What a verdict "holds" rests on, in the words of a line's end. */
static void text_anchors(const cx_check_result *r, cx_buf *out)
{
    const char *separator = ", resting on ";
    for (size_t i = 0; i < CX_COUNT_OF(anchors); i++) {
        if ((r->anchors & anchors[i].bit) == 0)
            continue;
        cx_buf_printf(out, "%s%s", separator, anchors[i].text);
        separator = " and ";
    }
    if (r->anchors == 0)
        cx_buf_add_z(out, r->kind == CX_CHECK_CONSISTENCY
                              ? ", resting on the two journals given"
                              : " in itself only, resting on nothing given");
}

void cx_check_write_text(const cx_check_result *r, cx_str file, bool details, cx_buf *out)
{
    const cx_finding *finding = &r->finding;
    cx_check_write_safe(out, file);
    cx_buf_printf(out, ": %s", cx_verdict_name(finding->verdict));
    if (finding->reason != NULL) {
        cx_buf_printf(out, ": %s", finding->reason);
        if (finding->offset != CX_NO_OFFSET)
            cx_buf_printf(out, " at byte %" PRIu64, finding->offset);
        cx_buf_add_z(out, ": ");
        cx_check_write_safe(out, whole_text(finding->message));
    }
    if (finding->verdict == CX_HOLDS)
        text_anchors(r, out);
    cx_buf_add_byte(out, '\n');
    text_summary(r, out);
    if (finding->verdict == CX_BROKEN)
        return;
    text_keys(r, out);
    if (details || (finding->verdict == CX_INDETERMINATE && r->has_journal))
        text_roots(r, out);
    if (finding->verdict != CX_HOLDS)
        return;
    for (size_t i = 0; i < r->limit_count; i++)
        cx_buf_printf(out, "  not proven: %s\n", r->limits[i]);
}

/* --- JSON: members in order of their names --------------------------------------------------- */

static void json_text(cx_buf *out, cx_str text)
{
    cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
}

static void json_hex(cx_buf *out, const cx_digest *digest)
{
    cx_buf_add_byte(out, '"');
    add_hex(out, digest);
    cx_buf_add_byte(out, '"');
}

static void json_point(cx_buf *out, bool has, const cx_journal_point *point)
{
    if (!has) {
        cx_buf_add_z(out, "null");
        return;
    }
    cx_buf_add_z(out, "{\"root\":");
    json_hex(out, &point->root);
    if (point->size == CX_JOURNAL_SIZE_UNKNOWN)
        cx_buf_add_z(out, ",\"size\":null}");
    else
        cx_buf_printf(out, ",\"size\":%" PRIu64 "}", point->size);
}

static void json_anchors(cx_buf *out, const cx_check_result *r)
{
    const char *separator = "";
    cx_buf_add_byte(out, '[');
    for (size_t i = 0; i < CX_COUNT_OF(anchors) && r->finding.verdict == CX_HOLDS; i++) {
        if ((r->anchors & anchors[i].bit) == 0)
            continue;
        cx_buf_printf(out, "%s\"%s\"", separator, anchors[i].name);
        separator = ",";
    }
    cx_buf_add_byte(out, ']');
}

static void json_note(cx_buf *out, const cx_check_result *r)
{
    if (!r->has_note) {
        cx_buf_add_z(out, "null");
        return;
    }
    cx_buf_printf(out, "{\"cosigned\":%zu,\"origin\":", r->note.cosigned);
    json_text(out, r->note.checkpoint.origin);
    cx_buf_add_z(out, ",\"root\":");
    json_hex(out, &r->note.checkpoint.root);
    cx_buf_printf(out, ",\"signed\":%zu,\"size\":%" PRIu64 ",\"unknown\":%zu}",
                  r->note.signed_by_origin, r->note.checkpoint.size, r->note.unknown);
}

static void json_keys(cx_buf *out, const cx_check_result *r)
{
    cx_buf_add_byte(out, '[');
    /* What is said of keys counts only when all of the proof does. */
    size_t count = r->has_proof && r->finding.verdict != CX_BROKEN ? r->proof.count : 0;
    for (size_t i = 0; i < count; i++) {
        const cx_proof_item *item = &r->proof.items[i];
        cx_buf_add_z(out, i == 0 ? "{\"key\":" : ",{\"key\":");
        json_hex(out, &item->path.key);
        cx_buf_printf(out, ",\"result\":\"%s\",\"shown\":%s,\"uri\":", membership_name(item->kind),
                      item->leaf.size != 0 ? "true" : "false");
        if (r->questions != NULL)
            json_text(out, r->questions[i].uri);
        else
            cx_buf_add_z(out, "null");
        cx_buf_add_byte(out, '}');
    }
    cx_buf_add_byte(out, ']');
}

static void json_manifest(cx_buf *out, const cx_check_result *r)
{
    const cx_manifest *m = &r->manifest;
    if (!r->has_manifest) {
        cx_buf_add_z(out, "null");
        return;
    }
    cx_buf_add_z(out, "{\"actor\":");
    json_text(out, m->actor);
    cx_buf_printf(out, ",\"covered\":%s,\"journal_root\":", r->manifest_covered ? "true" : "false");
    json_hex(out, &m->journal_root);
    cx_buf_printf(out, ",\"journal_size\":%" PRIu64 ",\"overall_root\":", m->journal_size);
    json_hex(out, &m->overall_root);
    cx_buf_add_z(out, ",\"signed_by\":");
    if (m->signature.null || !r->signer_covered)
        cx_buf_add_z(out, "null");
    else
        json_text(out, m->signed_by);
    cx_buf_printf(out, ",\"snapshot\":%" PRIu64 "}", m->snapshot_seq);
}

/* Only of a proof of absence. */
static void json_never(cx_buf *out, const cx_check_result *r)
{
    const cx_action_set *set = &r->actions;
    if (r->kind != CX_CHECK_NEVER)
        return;
    if (!r->has_never || r->finding.verdict == CX_BROKEN) {
        cx_buf_add_z(out, ",\"never\":null");
        return;
    }
    cx_buf_add_z(out, ",\"never\":{\"actor\":");
    json_text(out, set->actor);
    cx_buf_printf(out, ",\"calls\":%" PRIu64 ",\"name\":", set->calls);
    json_text(out, r->never);
    cx_buf_printf(
        out, ",\"names\":%" PRIu64 ",\"opaque\":%" PRIu64 ",\"relative\":%" PRIu64 ",\"root\":",
        set->names, set->opaque, set->relative);
    json_hex(out, &set->root);
    cx_buf_add_z(out, ",\"subject\":");
    json_text(out, set->subject);
    cx_buf_printf(out, ",\"unread\":%" PRIu64 ",\"upto\":%" PRIu64 "}", set->unread, set->upto);
}

static void json_middle(cx_buf *out, const cx_check_result *r)
{
    cx_buf_add_z(out, ",\"message\":");
    json_text(out, whole_text(r->finding.message));
    cx_buf_add_z(out, ",\"namespace\":");
    if (r->has_proof)
        json_text(out, r->proof.name_space);
    else
        cx_buf_add_z(out, "null");
    json_never(out, r);
    if (r->finding.offset == CX_NO_OFFSET)
        cx_buf_add_z(out, ",\"offset\":null");
    else
        cx_buf_printf(out, ",\"offset\":%" PRIu64, r->finding.offset);
    cx_buf_add_z(out, ",\"older\":");
    json_point(out, r->has_older, &r->older);
}

static void json_file(cx_buf *out, cx_str file)
{
    cx_buf_add_z(out, "\"file\":");
    if (cx_utf8_valid(file))
        json_text(out, file);
    else { /* JSON has no way to say such a name */
        cx_buf safe;
        cx_buf_init(&safe, out->alloc);
        cx_check_write_safe(&safe, file);
        json_text(out, cx_buf_str(&safe));
        out->failed = out->failed || safe.failed;
        cx_buf_done(&safe);
    }
}

static void json_scope(cx_buf *out, const cx_check_result *r)
{
    const cx_scope *scope = &r->scope;
    cx_buf_add_z(out, ",\"scope\":");
    if (!r->has_scope || r->finding.verdict == CX_BROKEN) {
        cx_buf_add_z(out, "null");
        return;
    }
    cx_buf_add_z(out, "{\"actor\":");
    json_text(out, scope->actor);
    if (scope->expires)
        cx_buf_printf(out, ",\"expires_at\":%" PRId64, scope->expires_at);
    else
        cx_buf_add_z(out, ",\"expires_at\":null");
    cx_buf_add_z(out, ",\"granted_by\":");
    json_text(out, scope->granted_by);
    cx_buf_add_z(out, ",\"granted_to\":");
    json_text(out, scope->granted_to);
    cx_buf_printf(out, ",\"ids\":%zu,\"overall_root\":", scope->include.id_count);
    json_hex(out, &scope->snapshot_hash);
    cx_buf_printf(out, ",\"writable\":%s}", scope->writable ? "true" : "false");
}

/* Only of a home proof. */
static void json_home(cx_buf *out, const cx_check_result *r)
{
    if (r->kind != CX_CHECK_HOME)
        return;
    if (!r->has_home || r->finding.verdict == CX_BROKEN) {
        cx_buf_add_z(out, ",\"home\":null");
        return;
    }
    cx_buf_add_z(out, ",\"home\":{\"actor\":");
    json_text(out, r->home_leaf.actor);
    cx_buf_printf(out, ",\"actors\":%" PRIu64 ",\"entries\":%" PRIu64 ",\"home_root\":",
                  r->home_root.actors, r->home_root.entries);
    json_hex(out, &r->home_root.root);
    cx_buf_add_z(out, ",\"overall_root\":");
    json_hex(out, &r->home_leaf.overall);
    cx_buf_printf(out, ",\"size\":%" PRIu64 "}", r->home_leaf.size);
}

/* Only of the receipt of an erasure. */
static void json_erasure(cx_buf *out, const cx_check_result *r)
{
    const cx_erasure_head *head = &r->erasure;
    if (r->kind != CX_CHECK_ERASURE)
        return;
    if (!r->has_erasure || r->finding.verdict == CX_BROKEN) {
        cx_buf_add_z(out, ",\"erasure\":null");
        return;
    }
    cx_buf_add_z(out, ",\"erasure\":{\"by\":");
    json_text(out, head->by);
    cx_buf_add_z(out, ",\"completed\":");
    json_text(out, head->completed);
    cx_buf_printf(out, ",\"entries\":%" PRIu64 ",\"held\":%" PRIu64 ",\"home\":", head->entries,
                  head->held);
    json_text(out, head->home);
    cx_buf_printf(out, ",\"left\":%" PRIu64 ",\"memories\":%" PRIu64 ",\"reason\":", head->left,
                  head->memories);
    json_text(out, head->reason);
    cx_buf_printf(out, ",\"request\":%" PRIu64 ",\"selected\":", head->request);
    json_text(out, head->selected);
    cx_buf_add_byte(out, '}');
}

static void json_rest(cx_buf *out, const cx_check_result *r)
{
    const cx_finding *finding = &r->finding;
    cx_buf_add_z(out, ",\"limits\":[");
    for (size_t i = 0; i < r->limit_count && finding->verdict == CX_HOLDS; i++) {
        cx_buf_add_z(out, i == 0 ? "" : ",");
        json_text(out, cx_str_z(r->limits[i]));
    }
    cx_buf_add_z(out, "],\"manifest\":");
    json_manifest(out, r);
    json_middle(out, r);
    if (finding->reason != NULL)
        cx_buf_printf(out, ",\"reason\":\"%s\"", finding->reason);
    else
        cx_buf_add_z(out, ",\"reason\":null");
    if (r->has_scheme)
        cx_buf_printf(out, ",\"scheme\":\"%s\"", cx_scheme_name(r->scheme).data);
    else
        cx_buf_add_z(out, ",\"scheme\":null");
    json_scope(out, r);
    cx_buf_printf(out, ",\"signed\":%s,\"verdict\":\"%s\"}\n",
                  r->is_signed && finding->verdict == CX_HOLDS ? "true" : "false",
                  cx_verdict_name(finding->verdict));
}

void cx_check_write_json(const cx_check_result *r, cx_str file, cx_buf *out)
{
    cx_buf_add_z(out, "{\"anchors\":");
    json_anchors(out, r);
    cx_buf_add_z(out, ",\"checkpoint\":");
    json_note(out, r);
    json_erasure(out, r);
    cx_buf_add_byte(out, ',');
    json_file(out, file);
    json_home(out, r);
    if (r->has_index)
        cx_buf_printf(out, ",\"index\":%" PRIu64 ",\"journal\":", r->index);
    else
        cx_buf_add_z(out, ",\"index\":null,\"journal\":");
    json_point(out, r->has_journal, &r->journal);
    if (r->finding.key_index == SIZE_MAX)
        cx_buf_add_z(out, ",\"key\":null,\"keys\":");
    else
        cx_buf_printf(out, ",\"key\":%zu,\"keys\":", r->finding.key_index);
    json_keys(out, r);
    cx_buf_printf(out, ",\"kind\":\"%s\"", cx_check_kind_name(r->kind));
    json_rest(out, r);
}
