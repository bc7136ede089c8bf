/*
 * test_calls_write.c - Write, Update, UpdateHead, Tombstone: what they do, and every refusal, which
 * must leave no trace (ledger.md §10; §14: 4, 5, 7).
 */
#include "memory/apply.h"
#include "tests/unit/memory/calls.h"

#define WITH_HOME(kit, name)                                   \
    calls kit;                                                 \
    if (!calls_init(&kit, name, "andrew", CX_SCHEME_CORTEX_1)) \
        return;

static cx_memory_write fact(calls *kit)
{
    return (cx_memory_write){.type = CX_TYPE_FACT, .data = calls_fact(kit, "sky is blue")};
}

static cx_status write_one(calls *kit, const cx_memory_write *write)
{
    cx_uri uri;
    return cx_memory_write_new(kit->memory, write, &uri, &kit->err);
}

CX_TEST(write_fills_in_what_is_left_out)
{
    WITH_HOME(kit, "write");
    cx_uri uri = calls_write_fact(&kit, "sky is blue");
    cx_id first = fixture_id(1);
    CHECK(calls_same(&uri.id, &first));
    CHECK_INT(uri.version, 1);
    CHECK_INT(uri.type, CX_TYPE_FACT);
    cx_memory_view view = calls_latest(&kit, &uri.id);
    CHECK_STR(view.head.actor_scope, "andrew");
    CHECK_INT(view.head.visibility, CX_VISIBILITY_PRIVATE);
    CHECK_INT(view.head.current_version, 1);
    CHECK_INT(view.head.last_updated_at, 1700000001);
    CHECK_STR(view.version.created_by, "andrew");
    CHECK_STR(view.version.provenance.source, "user_input");
    CHECK(view.version.confidence == 1.0f);
    CHECK(!view.version.expires && !view.expired && !view.version.blinded);
    CHECK_STR(view.head.forms.brief, "p(s)=sky is blue");
    CHECK_INT(calls_entries(&kit), 1);
    CHECK_INT(atomic_load(&kit.reads), 1);
    calls_done(&kit);
}

CX_TEST(write_keeps_what_is_given)
{
    WITH_HOME(kit, "given");
    const cx_str tags[] = {CX_STR("b"), CX_STR("a"), CX_STR("b")};
    const cx_frame frames[] = {{2, 1, CX_STR("gpu")}};
    const cx_forms forms = {CX_STR("short form"), CX_STR("a longer form")};
    const cx_id id = fixture_id(77);
    cx_memory_write write = fact(&kit);
    write.id = &id;
    write.actor_scope = CX_STR("team");
    write.visibility = CX_VISIBILITY_SCOPED;
    write.importance = 10;
    write.tags = tags;
    write.tag_count = 3;
    write.frames = frames;
    write.frame_count = 1;
    write.provenance.source = CX_STR("observed");
    write.created_by = CX_STR("bob");
    write.confidence = 0.5f;
    write.expires = true;
    write.expires_at = 0;
    write.forms = &forms;
    write.blind = true;
    cx_uri uri = calls_write(&kit, &write);
    CHECK(calls_same(&uri.id, &id));
    cx_memory_view view = calls_latest(&kit, &id);
    CHECK_STR(view.head.actor_scope, "team");
    CHECK_INT(view.head.visibility, 2);
    CHECK_INT(view.head.importance, 10);
    CHECK_INT(view.head.tag_count, 3);
    CHECK_STR(view.head.tags[0], "b");
    CHECK_STR(view.head.frames[0].ref, "gpu");
    CHECK_STR(view.head.forms.medium, "a longer form");
    CHECK(view.version.forms_override);
    CHECK(view.version.expires && view.version.expires_at == 0 && view.expired);
    CHECK(view.version.blinded && view.head.blinded);
    CHECK(!calls_same(&view.version.blind, &view.head.blind));
    cx_entry_view entry;
    CHECK_STATUS(cx_home_entry(kit.home, CX_STR("andrew"), 0, &kit.arena, &entry, &kit.err),
                 &kit.err);
    CHECK_STR(cx_bytes_str(entry.entry.created_by), "bob");
    CHECK(entry.has_subject && calls_same(&entry.subject, &id));
    calls_done(&kit);
}

CX_TEST(write_refuses)
{
    WITH_HOME(kit, "refuses");
    (void)calls_write_fact(&kit, "one");
    cx_digest root = calls_root(&kit);
    const cx_str many[17] = {CX_STR("t"), CX_STR("t"), CX_STR("t"), CX_STR("t"), CX_STR("t"),
                             CX_STR("t"), CX_STR("t"), CX_STR("t"), CX_STR("t"), CX_STR("t"),
                             CX_STR("t"), CX_STR("t"), CX_STR("t"), CX_STR("t"), CX_STR("t"),
                             CX_STR("t"), CX_STR("t")};
    char text[2048];
    memset(text, 'x', sizeof text);
    cx_str long_tag = {text, 65}, bad_text = CX_STR("\xff");
    cx_frame frames[17] = {{1, 1, CX_STR("r")}};
    for (size_t i = 1; i < 17; i++)
        frames[i] = frames[0];
    cx_memory_write write = fact(&kit);
    write.tags = many;
    write.tag_count = 17;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "TooManyTags");
    write.tags = &long_tag;
    write.tag_count = 1;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "TagTooLong");
    write.tags = &bad_text;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidArgument");
    write = fact(&kit);
    write.frames = frames;
    write.frame_count = 17;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "TooManyFrames");
    write.frame_count = 1;
    frames[0].verb = 11;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidArgument");
    frames[0].verb = 1;
    frames[0].ref = (cx_str){text, 257};
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidArgument");
    write = fact(&kit);
    write.type = 10;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidType");
    write = fact(&kit);
    write.data = (cx_bytes){NULL, 0};
    CHECK_REFUSED(&kit, write_one(&kit, &write), "EmptyData");
    write.data = calls_fact(&kit, " ");
    CHECK_REFUSED(&kit, write_one(&kit, &write), "FieldMissing");
    write = fact(&kit);
    write.provenance.source = CX_STR("guessed");
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidSource");
    write = fact(&kit);
    const cx_forms forms = {{text, 201}, CX_STR("m")};
    write.forms = &forms;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "FormTooLong");
    write = fact(&kit);
    write.importance = 11;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidArgument");
    write = fact(&kit);
    write.visibility = 4;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidArgument");
    write = fact(&kit);
    write.confidence = 1.5f;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidArgument");
    write = fact(&kit);
    write.created_by = bad_text;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidArgument");
    cx_digest now = calls_root(&kit);
    CHECK(cx_digest_eq(&root, &now));
    calls_done(&kit);
}

/* §14.4: also of what is dead. */
CX_TEST(write_never_takes_an_id_twice)
{
    WITH_HOME(kit, "twice");
    cx_uri uri = calls_write_fact(&kit, "one");
    cx_memory_write write = fact(&kit);
    write.id = &uri.id;
    cx_digest root = calls_root(&kit);
    CHECK_REFUSED(&kit, write_one(&kit, &write), "AlreadyExists");
    cx_digest now = calls_root(&kit);
    CHECK(cx_digest_eq(&root, &now));
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &uri, CX_STR("r"), CX_STR(""), &kit.err),
                 &kit.err);
    root = calls_root(&kit);
    CHECK_REFUSED(&kit, write_one(&kit, &write), "AlreadyExists");
    now = calls_root(&kit);
    CHECK(cx_digest_eq(&root, &now));
    calls_done(&kit);
}

/* §14.6, of derived_from. */
CX_TEST(write_refuses_references_to_nothing)
{
    WITH_HOME(kit, "dangling");
    cx_uri uri = calls_write_fact(&kit, "one");
    cx_str good = calls_uri(&kit, &uri);
    cx_str refs[] = {good, CX_STR("https://example.org/x"), CX_STR("cortex://trace/1")};
    cx_memory_write write = fact(&kit);
    write.provenance =
        (cx_provenance){.source = CX_STR("derived"), .derived_from = refs, .derived_count = 3};
    CHECK_STATUS(write_one(&kit, &write), &kit.err);
    uri.version = 2;
    refs[0] = calls_uri(&kit, &uri);
    CHECK_REFUSED(&kit, write_one(&kit, &write), "DanglingReference");
    uri.version = 1;
    uri.type = CX_TYPE_GOAL;
    refs[0] = calls_uri(&kit, &uri);
    CHECK_REFUSED(&kit, write_one(&kit, &write), "DanglingReference");
    refs[0] = CX_STR("matrix://cortex/Fact/01hf7yat000000000000000001#1");
    CHECK_REFUSED(&kit, write_one(&kit, &write), "BadURI");
    write.provenance.derived_count = 65;
    CHECK_REFUSED(&kit, write_one(&kit, &write), "InvalidArgument");
    calls_done(&kit);
}

/* --- Update ----------------------------------------------------------------------------------- */

static cx_status update_to(calls *kit, const cx_uri *uri, const char *statement)
{
    const cx_memory_update update = {.data = calls_fact(kit, statement)};
    cx_uri next;
    return cx_memory_update_at(kit->memory, uri, &update, &next, &kit->err);
}

CX_TEST(update_is_compare_and_set)
{
    WITH_HOME(kit, "update");
    const cx_str tag = CX_STR("kept");
    cx_memory_write write = fact(&kit);
    write.tags = &tag;
    write.tag_count = 1;
    write.importance = 4;
    write.blind = true;
    cx_uri uri = calls_write(&kit, &write), unknown = uri, other = uri;
    cx_memory_view before = calls_latest(&kit, &uri.id);
    CHECK_STATUS(update_to(&kit, &uri, "two"), &kit.err);
    cx_memory_view view = calls_latest(&kit, &uri.id);
    CHECK_INT(view.uri.version, 2);
    CHECK_INT(view.head.current_version, 2);
    CHECK_INT(view.head.importance, 4);
    CHECK_STR(view.head.tags[0], "kept");
    CHECK_STR(view.head.forms.brief, "p(s)=two");
    /* Blinded once, blinded always, with new salt. */
    CHECK(view.version.blinded && !calls_same(&view.version.blind, &before.version.blind));
    CHECK(view.head.blinded && !calls_same(&view.head.blind, &before.head.blind));
    /* §14.7 */
    CHECK_REFUSED(&kit, update_to(&kit, &uri, "three"), "VersionConflict");
    uri.version = 3;
    CHECK_REFUSED(&kit, update_to(&kit, &uri, "three"), "VersionConflict");
    unknown.id = fixture_id(99);
    CHECK_REFUSED(&kit, update_to(&kit, &unknown, "x"), "NotFound");
    other.type = CX_TYPE_GOAL;
    CHECK_REFUSED(&kit, update_to(&kit, &other, "x"), "TypeMismatch");
    uri.version = 2;
    cx_memory_update update = {
        .data = calls_data(&kit, CX_TYPE_PREFERENCE, "{\"topic\":\"t\",\"polarity\":\"p\"}")};
    cx_uri next;
    CHECK_REFUSED(&kit, cx_memory_update_at(kit.memory, &uri, &update, &next, &kit.err),
                  "TypeDataMismatch");
    /* Both versions are there. */
    uri.version = 1;
    CHECK_STATUS(cx_memory_resolve(kit.memory, &uri, &kit.arena, &view, &kit.err), &kit.err);
    CHECK_STR(view.version.forms.brief, "p(s)=sky is blue");
    CHECK_INT(view.uri.version, 1);
    uri.version = 3;
    CHECK_REFUSED(&kit, cx_memory_resolve(kit.memory, &uri, &kit.arena, &view, &kit.err),
                  "NotFound");
    uri.version = 2;
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &uri, CX_STR("r"), CX_STR(""), &kit.err),
                 &kit.err);
    CHECK_REFUSED(&kit, update_to(&kit, &uri, "four"), "Tombstoned");
    calls_done(&kit);
}

/* --- UpdateHead and Tombstone ----------------------------------------------------------------- */

static cx_status patch_it(calls *kit, const cx_uri *uri, const cx_head_patch *patch)
{
    return cx_memory_update_head(kit->memory, uri, patch, &kit->err);
}

CX_TEST(update_head_changes_what_it_names)
{
    WITH_HOME(kit, "head");
    const cx_str tags[] = {CX_STR("x"), CX_STR("y")};
    cx_memory_write write = fact(&kit);
    write.tags = tags;
    write.tag_count = 2;
    cx_uri uri = calls_write(&kit, &write);
    const cx_head_patch importance = {.set_importance = true, .importance = 9};
    CHECK_STATUS(patch_it(&kit, &uri, &importance), &kit.err);
    cx_memory_view view = calls_latest(&kit, &uri.id);
    CHECK_INT(view.head.importance, 9);
    CHECK_INT(view.head.tag_count, 2);
    CHECK_INT(view.head.current_version, 1);
    CHECK_INT(view.head.last_updated_at, 1700000003);
    cx_digest seen = cx_digest_of(view.head_bytes);
    const cx_head_patch untag = {.set_tags = true, .if_head = &seen, .by = CX_STR("bob")};
    CHECK_STATUS(patch_it(&kit, &uri, &untag), &kit.err);
    CHECK_REFUSED(&kit, patch_it(&kit, &uri, &untag), "HeadConflict");
    view = calls_latest(&kit, &uri.id);
    CHECK_INT(view.head.tag_count, 0);
    const cx_head_patch nothing = {.if_head = NULL};
    CHECK_REFUSED(&kit, patch_it(&kit, &uri, &nothing), "NoOp");
    const cx_head_patch wrong = {.set_visibility = true, .visibility = 0};
    CHECK_REFUSED(&kit, patch_it(&kit, &uri, &wrong), "InvalidArgument");
    cx_uri other = uri;
    other.version = 2;
    CHECK_REFUSED(&kit, patch_it(&kit, &other, &importance), "NotFound");
    other.id = fixture_id(99);
    CHECK_REFUSED(&kit, patch_it(&kit, &other, &importance), "NotFound");
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &uri, CX_STR("r"), CX_STR(""), &kit.err),
                 &kit.err);
    CHECK_REFUSED(&kit, patch_it(&kit, &uri, &importance), "Tombstoned");
    calls_done(&kit);
}

/* Index rows follow: a tag that stays keeps the time at which it came. */
CX_TEST(update_head_moves_index_rows)
{
    WITH_HOME(kit, "index");
    const cx_str before[] = {CX_STR("ui"), CX_STR("style"), CX_STR("ui")};
    const cx_str after[] = {CX_STR("style"), CX_STR("new")};
    cx_memory_write write = fact(&kit);
    write.tags = before;
    write.tag_count = 3;
    cx_uri uri = calls_write(&kit, &write);
    cx_buf rows, tag;
    cx_buf_init(&rows, cx_alloc_default());
    cx_buf_init(&tag, cx_alloc_default());
    calls_dump(&kit, "idx/tag/", &rows);
    CHECK_INT(rows.size, 2 * (2 * (8 + 8 + 8 + 16) + 2));
    const cx_head_patch patch = {.set_tags = true, .tags = after, .tag_count = 2};
    CHECK_STATUS(patch_it(&kit, &uri, &patch), &kit.err);
    cx_buf_clear(&rows);
    calls_dump(&kit, "idx/tag/", &rows);
    CHECK_INT(rows.size, 2 * (2 * (8 + 8 + 8 + 16) + 2));
    uint8_t hash[8];
    cx_tag_hash(after[0], hash);
    cx_hex_add(&tag, cx_bytes_from(hash, 8));
    cx_buf_add_z(&tag, "17979cfe8f922f00"); /* 1700000001.5 s */
    CHECK(memmem(rows.data, rows.size, tag.data, tag.size) != NULL);
    cx_buf_clear(&tag);
    cx_tag_hash(after[1], hash);
    cx_hex_add(&tag, cx_bytes_from(hash, 8));
    cx_buf_add_z(&tag, "17979cfee8fa5e00"); /* 1700000003 s */
    CHECK(memmem(rows.data, rows.size, tag.data, tag.size) != NULL);
    cx_buf_done(&rows);
    cx_buf_done(&tag);
    calls_done(&kit);
}

CX_TEST(tombstone_once)
{
    WITH_HOME(kit, "tomb");
    cx_uri uri = calls_write_fact(&kit, "one"), other = uri;
    other.version = 2;
    CHECK_REFUSED(&kit, cx_memory_tombstone(kit.memory, &other, CX_STR("r"), CX_STR(""), &kit.err),
                  "NotFound");
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &uri, CX_STR("old"), CX_STR("bob"), &kit.err),
                 &kit.err);
    uint64_t entries = calls_entries(&kit);
    unsigned reads = atomic_load(&kit.reads);
    CHECK_STATUS(cx_memory_tombstone(kit.memory, &uri, CX_STR("again"), CX_STR("eve"), &kit.err),
                 &kit.err);
    CHECK_INT(calls_entries(&kit), entries);
    CHECK_INT(atomic_load(&kit.reads), reads);
    cx_memory_view view;
    CHECK_STATUS(cx_memory_resolve(kit.memory, &uri, &kit.arena, &view, &kit.err), &kit.err);
    CHECK(view.head.tombstoned);
    CHECK_STR(view.head.tombstone_reason, "old");
    CHECK_STR(view.head.tombstoned_by, "bob");
    CHECK_INT(view.head.last_updated_at, view.head.tombstoned_at);
    cx_memory_key key = cx_memory_key_of("tomb/", &uri.id);
    CHECK_STR(cx_bytes_str(calls_record(&kit, &key)), "old");
    cx_salience salience;
    float cold;
    CHECK_STATUS(cx_memory_salience_of(kit.memory, &uri.id, &salience, &cold, &kit.err), &kit.err);
    CHECK(salience.cached == 0.0f && cold == 0.0f);
    calls_done(&kit);
}

/* --- pinned ----------------------------------------------------------------------------------- */

CX_TEST(pinned_survives_being_derived_again)
{
    WITH_HOME(kit, "pinned");
    cx_memory_write write = fact(&kit);
    write.pinned = true;
    cx_uri uri = calls_write(&kit, &write);
    CHECK_STATUS(update_to(&kit, &uri, "two"), &kit.err);
    kit.tick = INT64_C(1000) * 86400 * 1000000000;
    for (int round = 0; round < 2; round++) {
        cx_salience salience = {0};
        float cold = 0;
        CHECK_STATUS(cx_memory_salience_of(kit.memory, &uri.id, &salience, &cold, &kit.err),
                     &kit.err);
        CHECK(salience.pinned && cold >= 0.7f);
        char database[FOLDER_PATH_SIZE + 16];
        calls_shut(&kit);
        (void)snprintf(database, sizeof database, "%s/cortex.db", kit.path);
        CHECK_INT(cx_io_system()->unlink(cx_io_system(), database), 0);
        if (!calls_open(&kit, "andrew"))
            break;
    }
    calls_done(&kit);
}

/* --- steps ------------------------------------------------------------------------------------ */

static void check_step(calls *kit, cx_apply *apply, const char *text, const char *tag, bool is_step)
{
    cx_applied_step done = {0};
    cx_json step;
    REQUIRE(!cx_failed(cx_json_parse_text(cx_str_z(text), &kit->arena, &step, &kit->err)));
    uint64_t entries = calls_entries(kit);
    cx_status status = cx_apply_step(apply, &step, &kit->arena, &done, &kit->err);
    CHECK_INT(!cx_failed(status), is_step);
    cx_str found = fixture_tag(is_step ? &done.reason : &kit->err);
    if (!cx_str_is(found, tag) || done.refused != is_step)
        cx_test_fail(__FILE__, __LINE__, "%s: %.*s: %s", text, (int)found.size, found.data,
                     is_step ? done.reason.message : kit->err.message);
    CHECK_INT(calls_entries(kit), entries);
}

/* §14.5 among others. */
CX_TEST(steps_that_are_none_and_steps_that_are_refused)
{
    WITH_HOME(kit, "steps");
    static const char *const presets[] = {"tombstone", "embedding_ref", "version",
                                          "current_version", "last_updated_at"};
    cx_apply *apply = NULL;
    cx_memory_options options = calls_options(&kit);
    CHECK_STATUS(cx_apply_open(kit.home, CX_STR("andrew"), &options, &apply, &kit.err), &kit.err);
    REQUIRE(apply != NULL);
    for (size_t i = 0; i < CX_COUNT_OF(presets); i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "{\"op\":\"write\",\"type\":\"Fact\",\"data\":{},\"%s\":1}", presets[i]);
        check_step(&kit, apply, text, "InvalidArgument", true);
    }
    check_step(&kit, apply, "{\"op\":\"write\",\"type\":\"Fact\",\"data\":{}}", "EmptyData", true);
    check_step(&kit, apply, "{\"op\":\"write\",\"type\":\"Fact\",\"data\":{},\"x\":1}", "BadStep",
               false);
    check_step(&kit, apply, "{\"op\":\"write\",\"type\":\"fact\",\"data\":{}}", "BadStep", false);
    check_step(&kit, apply, "{\"op\":\"write\",\"type\":2}", "BadStep", false);
    check_step(&kit, apply, "{\"op\":\"dance\"}", "BadStep", false);
    check_step(&kit, apply, "[]", "BadStep", false);
    check_step(&kit, apply, "{\"op\":\"tombstone\",\"args\":{},\"uri\":\"x\"}", "BadStep", false);
    check_step(&kit, apply, "{\"op\":\"tombstone\",\"uri\":\"x\"}", "BadStep", false);
    check_step(&kit, apply, "{\"op\":\"redact\",\"seq\":0}", "NotFound", true);
    check_step(&kit, apply, "{\"op\":\"raw\",\"kind\":\"write\"}", "InvalidArgument", true);
    check_step(&kit, apply, "{\"op\":\"raw\",\"now_ns\":1.5}", "BadStep", false);
    cx_apply_close(apply);
    calls_done(&kit);
}
