/*
 * Parts of archived histories of Aider: what a part says is what the whole says of each record,
 * also after pieces were erased, of archives without places, and where recorded places are wrong.
 */
#include "stores/session_part.h"

#include <stdlib.h>

#include "memory/api.h"
#include "proof/api.h"
#include "stores/session_place.h"
#include "tests/support/aider_history.h"
#include "tests/support/recorder_fixture.h"

#define CHECK_FAILS(expression, err_, expected_code, expected_tag) \
    do {                                                           \
        cx_status failed_ = (expression);                          \
        CHECK_INT(failed_.code, (expected_code));                  \
        CHECK_STR(cx_str_z((err_).tag), (expected_tag));           \
    } while (0)

enum { PIECES_MAX = 4096 };
#define PATH "/w/project/.aider.chat.history.md"

typedef struct archive {
    fixture s;
    cx_recorded_session session;
    cx_buf text;
    uint64_t seqs[PIECES_MAX], offsets[PIECES_MAX];
    size_t pieces;
    imported whole;
} archive;

static archive *begin_archive(const char *name)
{
    archive *a = calloc(1, sizeof *a);
    if (a == NULL)
        abort();
    fixture_init(&a->s, name, NULL);
    cx_buf_init(&a->text, cx_alloc_default());
    a->session = (cx_recorded_session){.path = CX_STR(PATH), .format = CX_SESSION_AIDER};
    cx_recorded_session_name(&a->session);
    return a;
}

static void end_archive(archive *a)
{
    cx_buf_done(&a->text);
    fixture_done(&a->s);
    free(a);
}

/* Appends bytes as one step, in pieces that end after lines: of so many bytes, or random ones. */
static void append(archive *a, cx_bytes bytes, size_t piece, uint64_t *random, bool counted)
{
    cx_recorded_session after = a->session;
    cx_bytes *pieces = calloc(PIECES_MAX, sizeof *pieces);
    cx_recorded_session_step step = {.before = &a->session, .after = &after, .pieces = pieces};
    cx_buf record;
    uint64_t seq = 0;
    bool stale = true;
    REQUIRE(pieces != NULL);
    for (size_t at = 0; at < bytes.size;) {
        size_t size = random == NULL ? piece : 1 + aider_pick(random, (unsigned)piece);
        size = size > bytes.size - at ? bytes.size - at : size;
        while (at + size < bytes.size && bytes.data[at + size - 1] != '\n')
            size++;
        REQUIRE(a->pieces < PIECES_MAX);
        a->offsets[a->pieces++] = after.offset;
        pieces[step.piece_count++] = cx_bytes_from(bytes.data + at, size);
        after.offset += size;
        at += size;
    }
    if (counted)
        CHECK_STATUS(cx_recorder_session_count(&step, &a->s.arena, &after, &a->s.err), &a->s.err);
    cx_buf_init(&record, cx_alloc_default());
    CHECK_STATUS(cx_recorder_session_append(a->s.home, &step, &record, &seq, &stale, &a->s.err),
                 &a->s.err);
    CHECK(!stale);
    for (size_t i = 0; i < step.piece_count; i++)
        a->seqs[a->pieces - step.piece_count + i] = seq + i;
    a->session = after;
    a->session.record = cx_str_bytes(cx_arena_copy_str(&a->s.arena, cx_buf_str(&record)));
    cx_buf_done(&record);
    free(pieces);
}

static void erase(archive *a, size_t piece)
{
    cx_memory *memories;
    size_t held = 0;
    const cx_memory_target target = {.seq = a->seqs[piece]};
    CHECK_STATUS(cx_memory_open(a->s.home, CX_STR(CX_SESSION_ACTOR), NULL, &memories, &a->s.err),
                 &a->s.err);
    CHECK_STATUS(cx_memory_redact_many(memories, &target, 1, CX_STR("a secret"), CX_STR("me"),
                                       &held, &a->s.err),
                 &a->s.err);
    cx_memory_close(memories);
    CHECK_STATUS(cx_home_erase(a->s.home, CX_STR(CX_SESSION_ACTOR), &a->s.err), &a->s.err);
}

static void find(archive *a, cx_session_files *files)
{
    CHECK_STATUS(cx_session_files_find(a->s.home, CX_STR("project"), &a->s.arena, files, &a->s.err),
                 &a->s.err);
    CHECK_STATUS(cx_session_files_count(a->s.home, files, &a->s.arena, &a->s.err), &a->s.err);
}

static void import_whole(archive *a, imported *in)
{
    cx_session_files files;
    cx_import_options options = CX_IMPORT_OPTIONS_INIT;
    find(a, &files);
    imported_begin(in);
    CHECK_STATUS(cx_session_files_import(a->s.home, &files, 0, &options, imported_write, &in->out,
                                         &in->summary, NULL, &a->s.err),
                 &a->s.err);
    imported_parse(in);
    imported_verify(in, false);
}

static void import_part(archive *a, const cx_session_files *files, uint64_t from, uint64_t until,
                        imported *in)
{
    imported_begin(in);
    CHECK_STATUS(cx_session_places_import(a->s.home, files, from, until, cx_alloc_default(),
                                          imported_write, &in->out, &a->s.err),
                 &a->s.err);
    size_t lines = 0;
    for (size_t i = 0; i < in->out.size; i++)
        lines += in->out.data[i] == '\n';
    in->summary.total.nodes = lines;
    imported_parse(in);
    imported_verify(in, false);
}

/* Each record of the range that the whole has, and no other, is in the part. */
static uint64_t check_part(archive *a, const cx_session_files *files, imported *whole,
                           uint64_t from, uint64_t until)
{
    imported part;
    uint64_t there = 0;
    import_part(a, files, from, until, &part);
    for (uint64_t i = from; i < until; i++) {
        if (aider_with_index(whole, i) == NULL)
            continue;
        aider_check_record(whole, &part, i);
        there++;
    }
    CHECK_INT(part.count, there + 1);
    imported_done(&part);
    return there;
}

/* All parts of that many records; how many records there were. */
static uint64_t check_parts(archive *a, imported *whole, uint64_t size)
{
    cx_session_files files;
    uint64_t there = 0;
    find(a, &files);
    CHECK(cx_session_files_have_parts(&files));
    const uint64_t records = cx_session_files_lines(&files);
    for (uint64_t from = 0; from < records; from += size)
        there += check_part(a, &files, whole, from, from + size < records ? from + size : records);
    CHECK_INT(there, whole->count - 1);
    return there;
}

static void check_all(archive *a, uint64_t size)
{
    imported whole;
    import_whole(a, &whole);
    check_parts(a, &whole, size);
    imported_done(&whole);
}

CX_TEST(parts_of_random_histories_have_the_records_of_the_whole)
{
    uint64_t random = 77;
    for (unsigned round = 0; round < 12; round++) {
        archive *a = begin_archive("place-random");
        for (unsigned steps = 1 + aider_pick(&random, 4); steps != 0; steps--) {
            a->text.size = 0;
            aider_write_random(&a->text, &random);
            cx_buf_add_byte(&a->text, '\n');
            append(a, cx_buf_bytes(&a->text), 300, &random, round % 3 != 0);
        }
        check_all(a, 1 + aider_pick(&random, 20));
        end_archive(a);
    }
}

/* A long one, whose fences go on over pieces; a part reads few of them. */
CX_TEST(parts_of_a_long_history_have_the_records_of_the_whole)
{
    archive *a = begin_archive("place-long");
    cx_session_files files;
    imported whole;
    for (unsigned turn = 0; turn < 7000; turn++)
        aider_add_turn(&a->text, turn);
    append(a, cx_buf_bytes(&a->text), 3000, NULL, true);
    import_whole(a, &whole);
    find(a, &files);
    const uint64_t records = cx_session_files_lines(&files);
    CHECK(records > 20000 && files.places == NULL);
    static const uint64_t parts[] = {0, 1, 2048, 7777, 12288};
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++)
        CHECK_INT(check_part(a, &files, &whole, parts[i], parts[i] + 40), 40);
    CHECK_INT(check_part(a, &files, &whole, records - 40, records), 40);
    imported_done(&whole);
    end_archive(a);
}

/* What erased pieces had is missing; what is after them is what it was, with the same number. */
CX_TEST(records_keep_what_they_are_when_pieces_are_erased)
{
    uint64_t random = 9;
    for (unsigned round = 0; round < 10; round++) {
        archive *a = begin_archive("place-erased");
        imported before, after;
        if (round < 3)
            for (unsigned turn = 0; turn < 30; turn++)
                aider_add_turn(&a->text, turn + 490);
        for (unsigned i = 0; i < 5 && round >= 3; i++)
            aider_write_random(&a->text, &random);
        cx_buf_add_byte(&a->text, '\n');
        append(a, cx_buf_bytes(&a->text), 200, &random, true);
        import_whole(a, &before);
        const size_t erased = 1 + aider_pick(&random, 3);
        for (size_t i = 0; i < erased && a->pieces != 0; i++)
            erase(a, aider_pick(&random, (unsigned)a->pieces));
        import_whole(a, &after);
        check_parts(a, &after, 1 + aider_pick(&random, 9));
        /* Of a record that no erased byte is of, everything is as before. */
        cx_session_files files;
        find(a, &files);
        CHECK_INT(cx_session_files_lines(&files), before.count - 1);
        uint64_t same = 0;
        for (uint64_t i = 0; i < before.count - 1; i++) {
            const cx_json *is = aider_with_index(&after, i), *was = aider_with_index(&before, i);
            if (is == NULL)
                continue;
            CHECK(cx_str_eq(CX_JSON_GET_STR(is, "agent_id"), CX_JSON_GET_STR(was, "agent_id")));
            const cx_json *raw = CX_JSON_GET(CX_JSON_GET(is, "event"), "raw");
            const cx_json *old = CX_JSON_GET(CX_JSON_GET(was, "event"), "raw");
            CHECK(cx_str_eq(CX_JSON_GET_STR(raw, "kind"), CX_JSON_GET_STR(old, "kind")));
            same += cx_str_eq(CX_JSON_GET_STR(raw, "text"), CX_JSON_GET_STR(old, "text"));
        }
        CHECK(same + 20 > after.count / 2);
        imported_done(&before);
        imported_done(&after);
        end_archive(a);
    }
}

/* The record of a piece, with another place, or with none. */
static void put_place(archive *a, size_t piece, const cx_import_place *place, bool damaged)
{
    cx_session_piece found;
    cx_buf value, text;
    cx_cbor_fields fields;
    cx_txn *txn;
    uint8_t key[64];
    const size_t prefix = strlen("session/piece/");
    CHECK_STATUS(
        cx_recorder_session_piece(a->s.home, &a->session, a->offsets[piece], &found, &a->s.err),
        &a->s.err);
    memcpy(key, "session/piece/", prefix);
    memcpy(key + prefix, a->session.id, CX_SESSION_ID_SIZE);
    for (unsigned i = 0; i < 8; i++)
        key[prefix + CX_SESSION_ID_SIZE + i] = (uint8_t)(found.offset >> (56 - 8 * i));
    cx_buf_init(&value, cx_alloc_default());
    cx_buf_init(&text, cx_alloc_default());
    cx_cbor_fields_begin(&fields, &value);
    cx_codec_uint(&fields, 1, found.seq);
    cx_codec_uint(&fields, 2, found.size);
    cx_codec_uint(&fields, 3, found.lines);
    if (place != NULL)
        CHECK(cx_import_place_encode(place, &text));
    if (damaged)
        cx_buf_add_z(&text, "no place");
    cx_codec_bytes_o(&fields, 4, cx_buf_bytes(&text));
    cx_cbor_fields_end(&fields);
    const cx_bytes name = cx_bytes_from(key, prefix + CX_SESSION_ID_SIZE + 8);
    cx_bytes is;
    bool there = false;
    CHECK_STATUS(
        cx_home_get(a->s.home, CX_STR(CX_SESSION_ACTOR), name, &a->s.arena, &is, &there, &a->s.err),
        &a->s.err);
    CHECK(there);
    if (!cx_str_eq(cx_bytes_str(is), cx_buf_str(&value))) {
        const cx_entry_draft entry = {
            .kind = CX_STR("note"), .created_at_ns = 1, .created_by = cx_str_bytes(CX_STR("me"))};
        uint64_t seq;
        CHECK_STATUS(cx_txn_begin(a->s.home, CX_STR(CX_SESSION_ACTOR), &txn, &a->s.err), &a->s.err);
        CHECK_STATUS(cx_txn_entry(txn, &entry, &seq, &a->s.err), &a->s.err);
        CHECK_STATUS(cx_txn_put(txn, name, cx_buf_bytes(&value), false, &a->s.err), &a->s.err);
        CHECK_STATUS(cx_txn_commit(txn, &a->s.err), &a->s.err);
    }
    cx_buf_done(&value);
    cx_buf_done(&text);
}

/* Makes a place wrong. */
static void spoil(cx_import_place *place, unsigned how)
{
    cx_import_reading *r = &place->reading[1];
    switch (how) {
    case 0: r->fenced = !r->fenced; break;
    case 1: r->records++; break;
    case 2: r->conversations--; break;
    case 3: r->t_ns += 1000000000; break;
    case 4: r->kind = r->kind == 4 ? 0 : 4; break;
    case 5: place->lines++; break;
    case 6: place->own_ends = !place->own_ends; break;
    case 7: place->lost = true; break;
    case 8: r->first_ns += 1000000000; break;
    default: place->text = CX_IMPORT_TEXT_UNKNOWN; break;
    }
}

/* L1: in any piece of the part, and before it. */
CX_TEST(wrong_places_are_made_again)
{
    archive *a = begin_archive("place-wrong");
    cx_session_files files;
    imported whole;
    for (unsigned turn = 470; turn < 520; turn++)
        aider_add_turn(&a->text, turn);
    append(a, cx_buf_bytes(&a->text), 2000, NULL, true);
    import_whole(a, &whole);
    const uint64_t records = whole.count - 1;
    REQUIRE(a->pieces > 20);
    for (size_t piece = 0; piece < a->pieces; piece++)
        for (unsigned how = 0; how < 12; how++) {
            cx_session_piece found;
            cx_import_place good, bad;
            bool has = false;
            CHECK_STATUS(cx_recorder_session_place(a->s.home, &a->session, a->offsets[piece],
                                                   &found, &good, &has, &a->s.err),
                         &a->s.err);
            CHECK(has);
            bad = good;
            if (how < 10)
                spoil(&bad, how);
            put_place(a, piece, how < 10 ? &bad : NULL, how == 10);
            find(a, &files);
            CHECK_INT(cx_session_files_lines(&files), records);
            for (uint64_t from = 0; from < records; from += 50)
                check_part(a, &files, &whole, from, from + 30 < records ? from + 30 : records);
            put_place(a, piece, &good, false);
        }
    imported_done(&whole);
    end_archive(a);
}

/* The time of a start hides after its piece that the time before it was wrong. */
CX_TEST(a_wrong_place_that_does_not_show_later_is_made_again)
{
    archive *a = begin_archive("place-hidden");
    cx_session_files files;
    cx_session_piece found;
    cx_import_place place;
    imported whole;
    bool has = false;
    aider_add_turn(&a->text, 0);
    append(a, cx_buf_bytes(&a->text), 100000, NULL, true);
    a->text.size = 0;
    aider_add_turn(&a->text, 1);
    aider_add_turn(&a->text, 500);
    append(a, cx_buf_bytes(&a->text), 100000, NULL, true);
    append(a, cx_str_bytes(CX_STR("#### on  \n")), 100000, NULL, true);
    import_whole(a, &whole);
    CHECK_STATUS(cx_recorder_session_place(a->s.home, &a->session, a->offsets[1], &found, &place,
                                           &has, &a->s.err),
                 &a->s.err);
    REQUIRE(has);
    place.reading[1].t_ns += 1000000000;
    put_place(a, 1, &place, false);
    find(a, &files);
    CHECK_INT(check_part(a, &files, &whole, place.reading[1].records, whole.count - 1),
              whole.count - 1 - place.reading[1].records);
    imported_done(&whole);
    end_archive(a);
}

/* A place of the end that is wrong: how all is read hangs on it. */
CX_TEST(a_wrong_place_at_the_end_is_told_or_made_again)
{
    archive *a = begin_archive("place-end");
    imported whole;
    for (unsigned turn = 0; turn < 40; turn++)
        aider_add_turn(&a->text, turn);
    append(a, cx_buf_bytes(&a->text), 2000, NULL, true);
    import_whole(a, &whole);
    for (unsigned how = 0; how < 10; how++) {
        cx_session_files files;
        find(a, &files);
        REQUIRE(files.places == NULL);
        cx_import_place bad[2] = {*files.last};
        spoil(&bad[0], how);
        bad[1] = bad[0];
        cx_import_place_end(&bad[1]);
        files.last = &bad[0];
        files.end = &bad[1];
        for (uint64_t from = 0; from + 10 < whole.count; from += 25)
            check_part(a, &files, &whole, from, from + 10);
    }
    imported_done(&whole);
    end_archive(a);
}

/* L3, and an archive that is continued by a version that knows places. */
CX_TEST(archives_without_places_have_the_same_parts)
{
    for (unsigned counted = 0; counted < 2; counted++) {
        archive *a = begin_archive("place-none");
        cx_session_files files;
        for (unsigned turn = 480; turn < 560; turn++)
            aider_add_turn(&a->text, turn);
        const size_t half = a->text.size / 2;
        append(a, cx_bytes_from(a->text.data, half), 1500, NULL, false);
        append(a, cx_bytes_from(a->text.data + half, a->text.size - half), 1500, NULL,
               counted != 0);
        find(a, &files);
        CHECK(files.places != NULL && files.piece_count == a->pieces);
        check_all(a, 37);
        erase(a, a->pieces / 2); /* counts as none, in the whole too */
        check_all(a, 37);
        end_archive(a);
    }
}

/* A line longer than a piece; erasing a part of it leaves no place to go on from. */
CX_TEST(a_line_in_two_pieces_is_one)
{
    archive *a = begin_archive("place-line");
    cx_session_files files;
    imported part;
    for (unsigned turn = 0; turn < 10; turn++)
        aider_add_turn(&a->text, turn);
    append(a, cx_buf_bytes(&a->text), 1000, NULL, true);
    const size_t first = a->pieces;
    a->text.size = 0;
    for (unsigned turn = 10; turn < 14; turn++)
        aider_add_turn(&a->text, turn);
    const size_t begin = a->text.size + 602; /* in a character */
    for (unsigned i = 0; i < 900; i++)
        cx_buf_add_z(&a->text, "w\xc3\xb6rd ");
    const size_t size = a->text.size - begin;
    append(a, cx_bytes_from(a->text.data, begin), 100000, NULL, true);
    append(a, cx_bytes_from(a->text.data + begin, 3002), 5000, NULL, true);
    append(a, cx_bytes_from(a->text.data + begin + 3002, size - 3002), 5000, NULL, true);
    append(a, cx_str_bytes(CX_STR("end  \n#### more  \n\nsaid\n")), 5000, NULL, true);
    for (unsigned turn = 14; turn < 24; turn++) {
        a->text.size = 0;
        aider_add_turn(&a->text, turn);
        append(a, cx_buf_bytes(&a->text), 1000, NULL, true);
    }
    find(a, &files);
    CHECK(files.places == NULL);
    check_all(a, 3);
    erase(a, first + 1);
    find(a, &files);
    const uint64_t records = cx_session_files_lines(&files);
    imported_begin(&part);
    CHECK_FAILS(cx_session_places_import(a->s.home, &files, 40, 55, cx_alloc_default(),
                                         imported_write, &part.out, &a->s.err),
                a->s.err, CX_E_UNSUPPORTED, "NoParts");
    imported_done(&part);
    import_part(a, &files, records - 3, records, &part);
    CHECK_INT(part.count, 4);
    imported_done(&part);
    end_archive(a);
}

/* Erasing destroys the bytes: a place must not keep any of them. */
CX_TEST(a_place_keeps_nothing_of_the_text)
{
    cx_import_place place = {0}, again;
    cx_buf line, out;
    cx_err err;
    cx_buf_init(&line, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    for (unsigned i = 0; i < 20; i++)
        cx_buf_add_z(&line, i == 0 ? "> " : "secret ");
    cx_import_place_read(&place, cx_buf_bytes(&line));
    REQUIRE(cx_import_place_encode(&place, &out));
    CHECK(memmem(out.data, out.size, "secret", 6) == NULL);
    CHECK(memmem(out.data, out.size, "ret", 3) == NULL);
    CHECK_STATUS(cx_import_place_decode(cx_buf_bytes(&out), &again, &err), &err);
    cx_import_place_read(&place, cx_str_bytes(CX_STR(" \n")));
    cx_import_place_read(&again, cx_str_bytes(CX_STR(" \n")));
    CHECK(memcmp(place.reading, again.reading, sizeof place.reading) == 0);
    cx_import_place_read(&place, cx_str_bytes(CX_STR("short")));
    CHECK(!cx_import_place_encode(&place, &out));
    cx_buf_done(&line);
    cx_buf_done(&out);
}

/* What is no place, or none that a text leads to. */
CX_TEST(bytes_that_are_no_place_are_refused)
{
    cx_import_place place = {.lines = 2}, again;
    cx_buf out;
    cx_err err;
    cx_buf_init(&out, cx_alloc_default());
    place.reading[0].records = 3;
    REQUIRE(cx_import_place_encode(&place, &out));
    CHECK_FAILS(cx_import_place_decode(cx_buf_bytes(&out), &again, &err), err, CX_E_FORMAT,
                "BadPlace");
    place.reading[0].records = 1;
    cx_buf_clear(&out);
    REQUIRE(cx_import_place_encode(&place, &out));
    CHECK_STATUS(cx_import_place_decode(cx_buf_bytes(&out), &again, &err), &err);
    for (size_t size = 0; size < out.size; size++)
        CHECK(cx_failed(cx_import_place_decode(cx_bytes_from(out.data, size), &again, &err)));
    cx_buf_done(&out);
}

/* Prompts have no parts: each has its own time, and they are few. */
CX_TEST(prompts_are_opened_as_a_whole)
{
    archive *a = begin_archive("place-prompts");
    cx_session_files files;
    cx_session_times times;
    imported part;
    append(a, cx_str_bytes(CX_STR("\n# 2026-05-03 09:00:00\n+go on\n")), 100, NULL, true);
    find(a, &files);
    CHECK(!cx_session_files_have_parts(&files));
    imported_begin(&part);
    CHECK_FAILS(cx_session_files_import_part(a->s.home, &files, 0, cx_alloc_default(),
                                             imported_write, &part.out, &times, &a->s.err),
                a->s.err, CX_E_UNSUPPORTED, "NoParts");
    imported_done(&part);
    end_archive(a);
}

CX_TEST(a_record_of_a_text_is_found_by_its_index)
{
    archive *a = begin_archive("place-index");
    cx_session_files files;
    uint64_t entry = 0;
    bool found = false;
    for (unsigned turn = 0; turn < 5; turn++)
        aider_add_turn(&a->text, turn);
    append(a, cx_buf_bytes(&a->text), 500, NULL, true);
    find(a, &files);
    const uint64_t records = cx_session_files_lines(&files);
    CHECK_STATUS(
        cx_session_files_line(a->s.home, &files, CX_STR("at:0:0"), &entry, &found, &a->s.err),
        &a->s.err);
    CHECK(found && entry == 0);
    char name[32];
    for (uint64_t i = records - 1; i <= records; i++) {
        (void)snprintf(name, sizeof name, "at:0:%llu", (unsigned long long)i);
        CHECK_STATUS(
            cx_session_files_line(a->s.home, &files, cx_str_z(name), &entry, &found, &a->s.err),
            &a->s.err);
        CHECK(found == (i < records) && (!found || entry == i));
    }
    CHECK_STATUS(
        cx_session_files_line(a->s.home, &files, CX_STR("src:x"), &entry, &found, &a->s.err),
        &a->s.err);
    CHECK(!found);
    end_archive(a);
}
