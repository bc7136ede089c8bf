/*
 * driver.c - cortex-fleet-driver: a node of a fleet as the tests need it (tests/fleet/faults.py).
 *
 *     cortex-fleet-driver init  URL PARTS STRICT
 *     cortex-fleet-driver write URL NODE LOG PARTS SHARE SECONDS LEASE_MS ANSWER_MS RESOLVE_MS
 *     [OUT]
 *     cortex-fleet-driver ask   URL NODE PARTS LEASE_MS ANSWER_MS RESOLVE_MS [OUT]
 *
 * Parts are "main", "p1", "p2" ..  Each has the file log/x, at whose end keys are written, a
 * derived file x.db, and files log/s0 to log/s3, which are made, renamed, cut and removed.
 *
 * `write` takes parts, commits, loses parts and takes others, until the time is over.  Before a
 * commit is sent, what it is to do is in LOG, and after it was acknowledged where it is:
 *
 *     try KEY PART                        ack KEY PART NUM EPOCH OWNER OFFSET
 *     trypage PART START SUM              ackpage PART NUM START SUM
 *     tryname PART NAME FILE              ackname PART NUM NAME FILE        FILE is - for none
 *
 * Now and then it prunes a part that it has.
 *
 * A commit that failed and is known to be nowhere is sent again with the same keys.  One whose
 * outcome was not resolved, or that a killed driver left, is not: there are no senders' keys at
 * this level.
 *
 * `ask` does what lines on standard input say, and answers each with a line:
 *
 *     take PART | renew PART | give PART | check PART | append PART KEY.. | large PART KEY BYTES
 *     many PART KEY..      as append, with a file made, renamed, cut and removed in the same commit
 *     whole PART CHUNK     a chunk of log/x as one extent, its filler overwritten
 *     release PART OWNER   ends the lease of a process that is taken for dead
 *     prune PART KEEP      answers with the base, and how many commits were removed and kept before
 *                          it
 *     moved PART WHERE | put PART NAME TEXT | get PART NAME | drop PART NAME
 *
 * OUT is the sum of rules of src/fleet/internal.h that are left out: this program is built from the
 * module's files with CX_FLEET_RULES_OUT, which the program cortex never is.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/internal.h"

unsigned cx_fleet_rules_out;

#define PARTS_MAX 64
#define KEYS_MAX 16
#define KEY_TEXT 48
#define NAMES 4
#define PAGES 6
#define PAGE_BYTES 4096
#define WRITES_MAX 2048
#define TEXT_MAX (KEYS_MAX * (KEY_TEXT + 8 + 5000))
#define LARGE_MAX ((size_t)100 << 20)

typedef struct own_part {
    cx_fleet_part part;
    bool loaded; /* the following is what the part has */
    uint64_t log, db, end;
    uint64_t names[NAMES]; /* 0 = none of that name */
    char keys[KEYS_MAX][KEY_TEXT];
    size_t key_count; /* to be written */
} own_part;

typedef struct driver {
    cx_fleet *fleet;
    own_part parts[PARTS_MAX];
    unsigned part_count, share;
    const char *node;
    int log;
    uint64_t counter, random;
    char lines[KEYS_MAX * 512]; /* of the commit being made: what it tries */
    size_t lines_size;
} driver;

/* A commit being made. */
typedef struct making {
    own_part *part;
    cx_fleet_write writes[WRITES_MAX];
    size_t write_count;
    cx_fleet_file_change files[8];
    size_t file_count;
    uint8_t *text;
    size_t text_size, text_room;
    uint64_t end;               /* of log/x afterwards */
    uint64_t offsets[KEYS_MAX]; /* of its keys */
    uint64_t names[NAMES];      /* afterwards */
    bool named[NAMES];          /* .. changed */
    uint64_t log, db;
    uint8_t page[PAGE_BYTES];
    uint64_t page_start; /* 0 .. PAGES - 1, in pages */
    bool has_page;
    uint8_t chunk[CX_FLEET_CHUNK];
} making;

static uint32_t next_random(driver *d)
{
    d->random ^= d->random << 13;
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return (uint32_t)(d->random >> 16);
}

static uint64_t new_file(driver *d)
{
    uint64_t high = next_random(d);
    return ((high << 32 | next_random(d)) >> 2) | 1;
}

/* --- the log of what was tried and acknowledged ----------------------------------------------- */

static void write_lines(driver *d)
{
    if (d->log >= 0 && write(d->log, d->lines, d->lines_size) != (ssize_t)d->lines_size)
        abort();
    d->lines_size = 0;
}

static CX_PRINTF(2, 3) void add_line(driver *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    d->lines_size +=
        (size_t)vsnprintf(d->lines + d->lines_size, sizeof d->lines - d->lines_size, format, args);
    va_end(args);
}

/* Keys have numbers that this node never used. */
static void read_log(driver *d, const char *path)
{
    char line[512];
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL)
        d->counter += strncmp(line, "try ", 4) == 0;
    (void)fclose(file);
}

static const char *tag_of(cx_status status, const cx_err *err)
{
    if (!cx_failed(status))
        return "none";
    return err->tag != NULL && err->tag[0] != 0 ? err->tag : "Other";
}

static void log_failure(driver *d, unsigned part, cx_status status, const cx_err *err)
{
    char text[384];
    (void)snprintf(text, sizeof text, "%s %u %s", tag_of(status, err), part, err->message);
    for (char *at = text; *at != 0; at++)
        if (*at == '\n')
            *at = ' ';
    add_line(d, "%s\n", text);
    write_lines(d);
}

/* --- what a part has -------------------------------------------------------------------------- */

static cx_status see_file(void *arg, const cx_fleet_file *file, cx_err *err)
{
    own_part *p = arg;
    (void)err;
    if (cx_str_eq(file->name, CX_STR("log/x"))) {
        p->log = file->file;
        p->end = file->end;
    } else if (cx_str_eq(file->name, CX_STR("x.db"))) {
        p->db = file->file;
    } else if (file->name.size == 6 && file->name.data[5] >= '0' &&
               file->name.data[5] < '0' + NAMES) {
        p->names[file->name.data[5] - '0'] = file->file;
    }
    return CX_SUCCESS;
}

static cx_status load_part(driver *d, own_part *p, cx_err *err)
{
    p->log = p->db = p->end = 0;
    memset(p->names, 0, sizeof p->names);
    CX_TRY(cx_fleet_list_files(d->fleet, p->part.number, see_file, p, err));
    p->loaded = true;
    return CX_SUCCESS;
}

static cx_status take_part(driver *d, own_part *p, bool *out_taken, cx_err *err)
{
    p->loaded = false;
    CX_TRY(cx_fleet_take(d->fleet, &p->part, out_taken, err));
    return *out_taken ? load_part(d, p, err) : CX_SUCCESS;
}

/* --- making a commit -------------------------------------------------------------------------- */

static cx_str name_of(unsigned index)
{
    static const char *const names[NAMES] = {"log/s0", "log/s1", "log/s2", "log/s3"};
    return cx_str_z(names[index]);
}

static void begin_making(own_part *p, making *m)
{
    m->part = p;
    m->write_count = m->file_count = m->text_size = 0;
    m->has_page = false;
    m->end = p->end;
    m->log = p->log;
    m->db = p->db;
    memcpy(m->names, p->names, sizeof m->names);
    memset(m->named, 0, sizeof m->named);
}

static void add_write(making *m, cx_fleet_write write)
{
    if (m->write_count == WRITES_MAX)
        abort();
    m->writes[m->write_count++] = write;
}

static void add_change(making *m, cx_fleet_file_change change)
{
    m->files[m->file_count++] = change;
}

static void add_text(making *m, const char *text, size_t size)
{
    if (m->text_size + size > m->text_room)
        abort();
    memcpy(m->text + m->text_size, text, size);
    m->text_size += size;
}

/* A line with the key; after every third one a line of filler. */
static void add_key(driver *d, making *m, size_t index, const char *key)
{
    char line[KEY_TEXT + 8];
    int size = snprintf(line, sizeof line, "key %s\n", key);
    m->offsets[index] = m->end + m->text_size;
    add_text(m, line, (size_t)size);
    if (index % 3 != 1)
        return;
    size_t filler = 1 + next_random(d) % 4096;
    add_text(m, "fill ", 5);
    memset(m->text + m->text_size, 'x', filler);
    m->text_size += filler;
    add_text(m, "\n", 1);
}

/* The text becomes extents at the end of log/x, none of which leaves its chunk. */
static void end_text(driver *d, making *m)
{
    if (m->log == 0) {
        m->log = new_file(d);
        add_change(m, (cx_fleet_file_change){
                          .op = CX_FLEET_MAKE, .file = m->log, .name = CX_STR("log/x")});
    }
    for (size_t at = 0; at < m->text_size;) {
        size_t start = m->end % CX_FLEET_CHUNK, size = CX_FLEET_CHUNK - start;
        if (size > m->text_size - at)
            size = m->text_size - at;
        add_write(m, (cx_fleet_write){.file = m->log,
                                      .chunk = m->end / CX_FLEET_CHUNK,
                                      .start = (uint32_t)start,
                                      .bytes = cx_bytes_from(m->text + at, size)});
        at += size;
        m->end += size;
    }
}

static unsigned sum_of(cx_bytes bytes)
{
    cx_digest digest = cx_digest_of(bytes);
    return (unsigned)digest.bytes[0] << 16 | (unsigned)digest.bytes[1] << 8 | digest.bytes[2];
}

/* A page of the derived file, some of them in its second chunk. */
static void add_page(driver *d, making *m)
{
    if (m->db == 0) {
        m->db = new_file(d);
        add_change(
            m, (cx_fleet_file_change){
                   .op = CX_FLEET_MAKE, .file = m->db, .derived = true, .name = CX_STR("x.db")});
    }
    for (size_t i = 0; i < sizeof m->page; i++)
        m->page[i] = (uint8_t)next_random(d);
    m->has_page = true;
    m->page_start = next_random(d) % PAGES;
    add_write(m, (cx_fleet_write){.file = m->db,
                                  .chunk = m->page_start / 4,
                                  .start = (uint32_t)(m->page_start % 4) * PAGE_BYTES,
                                  .derived = true,
                                  .bytes = cx_bytes_from(m->page, sizeof m->page)});
    add_line(d, "trypage %u %u %u\n", m->part->part.number, (unsigned)m->page_start,
             sum_of(cx_bytes_from(m->page, sizeof m->page)));
}

static void set_name(driver *d, making *m, unsigned name, uint64_t file)
{
    m->names[name] = file;
    m->named[name] = true;
    add_line(d, "tryname %u %.*s %llu\n", m->part->part.number, (int)name_of(name).size,
             name_of(name).data, (unsigned long long)file);
}

static void make_file(driver *d, making *m, unsigned name)
{
    static const uint8_t three[3][100] = {{'a'}, {'b'}, {'c'}};
    uint64_t file = new_file(d);
    add_change(m, (cx_fleet_file_change){.op = CX_FLEET_MAKE, .file = file, .name = name_of(name)});
    for (uint64_t chunk = 0; chunk < 3; chunk++)
        add_write(m, (cx_fleet_write){.file = file,
                                      .chunk = chunk,
                                      .bytes = cx_bytes_from(three[chunk], sizeof three[chunk])});
    set_name(d, m, name, file);
}

/* A change of one file, whatever can be done to it now. */
static void change_file(driver *d, making *m)
{
    unsigned name = next_random(d) % NAMES, other = next_random(d) % NAMES;
    uint64_t file = m->names[name];
    if (file == 0) {
        make_file(d, m, name);
        return;
    }
    cx_fleet_file_change change = {.file = file, .name = name_of(other), .size = CX_FLEET_CHUNK};
    switch (next_random(d) % 3) {
    case 0: change.op = CX_FLEET_RESIZE; break;
    case 1:
        change.op = CX_FLEET_REMOVE;
        set_name(d, m, name, 0);
        break;
    default:
        change.op = CX_FLEET_RENAME;
        if (other == name)
            return;
        set_name(d, m, other, file);
        set_name(d, m, name, 0);
    }
    add_change(m, change);
}

typedef struct whole_chunk {
    uint8_t *bytes;
    uint64_t chunk;
    size_t size;
    bool holes;
} whole_chunk;

static cx_status read_chunk(void *arg, const cx_fleet_extent *extent, cx_err *err)
{
    whole_chunk *w = arg;
    (void)err;
    w->holes = w->holes || extent->chunk != w->chunk || extent->start != w->size;
    if (w->holes)
        return CX_SUCCESS;
    memcpy(w->bytes + w->size, extent->bytes.data, extent->bytes.size);
    w->size += extent->bytes.size;
    return CX_SUCCESS;
}

/* A chunk of log/x again, as one extent: keys stay where they are, filler is overwritten. */
static cx_status add_whole(driver *d, making *m, uint64_t chunk, cx_err *err)
{
    whole_chunk w = {.bytes = m->chunk, .chunk = chunk};
    CX_TRY(cx_fleet_read(d->fleet, m->part->part.number, m->log, chunk, 1, read_chunk, &w, err));
    if (w.holes || w.size == 0)
        return cx_fail_at(err, CX_E_FORMAT, "Holes", CX_NO_OFFSET, "chunk %llu of log/x has holes",
                          (unsigned long long)chunk);
    for (size_t i = 0; i < w.size; i++)
        if (w.bytes[i] == 'x')
            w.bytes[i] = '.';
    add_write(m, (cx_fleet_write){.file = m->log,
                                  .chunk = chunk,
                                  .whole = true,
                                  .bytes = cx_bytes_from(w.bytes, w.size)});
    return CX_SUCCESS;
}

/* --- sending it ------------------------------------------------------------------------------- */

static void log_commit(driver *d, const making *m, const char (*keys)[KEY_TEXT], size_t key_count,
                       uint64_t num, uint64_t epoch)
{
    unsigned part = m->part->part.number;
    for (size_t i = 0; i < key_count; i++)
        add_line(d, "ack %s %u %llu %llu %s %llu\n", keys[i], part, (unsigned long long)num,
                 (unsigned long long)epoch, cx_fleet_owner(d->fleet),
                 (unsigned long long)m->offsets[i]);
    if (m->has_page)
        add_line(d, "ackpage %u %llu %u %u\n", part, (unsigned long long)num,
                 (unsigned)m->page_start, sum_of(cx_bytes_from(m->page, sizeof m->page)));
    for (unsigned i = 0; i < NAMES; i++)
        if (m->named[i])
            add_line(d, "ackname %u %llu %.*s %llu\n", part, (unsigned long long)num,
                     (int)name_of(i).size, name_of(i).data, (unsigned long long)m->names[i]);
    write_lines(d);
}

static cx_status send_making(driver *d, making *m, const char (*keys)[KEY_TEXT], size_t key_count,
                             uint64_t *out_num, cx_err *err)
{
    own_part *p = m->part;
    const cx_fleet_change change = {m->writes, m->write_count, m->files, m->file_count};
    uint64_t epoch = p->part.epoch;
    write_lines(d);
    cx_status status = cx_fleet_commit(d->fleet, &p->part, &change, err);
    if (cx_failed(status)) {
        log_failure(d, p->part.number, status, err);
        return status;
    }
    *out_num = p->part.next - 1;
    if (p->part.owned)
        epoch = p->part.epoch;
    log_commit(d, m, keys, key_count, *out_num, epoch);
    p->end = m->end;
    p->log = m->log;
    p->db = m->db;
    memcpy(p->names, m->names, sizeof p->names);
    return CX_SUCCESS;
}

static making *new_making(size_t text_room)
{
    static making m;
    if (m.text_room < text_room) {
        free(m.text);
        m.text = malloc(text_room);
        m.text_room = text_room;
    }
    if (m.text == NULL)
        abort();
    return &m;
}

/* --- write ------------------------------------------------------------------------------------ */

static void choose_keys(driver *d, own_part *p)
{
    p->key_count = 1 + next_random(d) % KEYS_MAX;
    for (size_t i = 0; i < p->key_count; i++) {
        (void)snprintf(p->keys[i], KEY_TEXT, "%s-%llu", d->node, (unsigned long long)d->counter++);
        add_line(d, "try %s %u\n", p->keys[i], p->part.number);
    }
}

static void write_commit(driver *d, own_part *p)
{
    making *m = new_making(TEXT_MAX);
    cx_err err = {0};
    cx_status status = CX_SUCCESS;
    uint64_t num;
    begin_making(p, m);
    if (p->key_count == 0)
        choose_keys(d, p);
    for (size_t i = 0; i < p->key_count; i++)
        add_key(d, m, i, p->keys[i]);
    if (next_random(d) % 8 == 0)
        add_page(d, m);
    if (next_random(d) % 10 == 0)
        change_file(d, m);
    /* Only of chunks that get nothing else in the same commit. */
    if (p->end >= CX_FLEET_CHUNK && next_random(d) % 24 == 0)
        status = add_whole(d, m, next_random(d) % (p->end / CX_FLEET_CHUNK), &err);
    end_text(d, m);
    if (cx_failed(status)) {
        log_failure(d, p->part.number, status, &err);
        return;
    }
    status = send_making(d, m, (const char(*)[KEY_TEXT])p->keys, p->key_count, &num, &err);
    const char *tag = tag_of(status, &err);
    if (!cx_failed(status) || strcmp(tag, "OutcomeUnknown") == 0 || strcmp(tag, "PartStopped") == 0)
        p->key_count = 0;
    if (cx_failed(status))
        cx_thread_sleep_ms(20);
}

/* A commit of tables alone: what is pruned soon. */
static void write_page(driver *d, own_part *p)
{
    making *m = new_making(TEXT_MAX);
    cx_err err = {0};
    uint64_t num;
    begin_making(p, m);
    add_page(d, m);
    if (cx_failed(send_making(d, m, NULL, 0, &num, &err)))
        cx_thread_sleep_ms(20);
}

static void try_to_take(driver *d, own_part *p)
{
    cx_err err = {0};
    bool taken = false;
    cx_status status = take_part(d, p, &taken, &err);
    if (cx_failed(status))
        log_failure(d, p->part.number, status, &err);
    if (!taken)
        cx_thread_sleep_ms(10 + next_random(d) % 20);
}

static void give_part(driver *d, own_part *p)
{
    cx_err err = {0};
    cx_status status = cx_fleet_give_back(d->fleet, &p->part, &err);
    if (cx_failed(status))
        log_failure(d, p->part.number, status, &err);
}

/* Few stay, so that many go; those with bytes stay in any case. */
static void prune_commits(driver *d, own_part *p)
{
    cx_err err = {0};
    cx_fleet_pruned pruned;
    cx_status status = cx_fleet_prune(d->fleet, &p->part, 1 + next_random(d) % 20, &pruned, &err);
    if (cx_failed(status))
        log_failure(d, p->part.number, status, &err);
}

static unsigned owned_count(const driver *d)
{
    unsigned count = 0;
    for (unsigned i = 0; i < d->part_count; i++)
        count += d->parts[i].part.owned;
    return count;
}

static void write_once(driver *d)
{
    own_part *p = &d->parts[next_random(d) % d->part_count];
    cx_err err = {0};
    if (!p->part.owned) {
        if (owned_count(d) < d->share)
            try_to_take(d, p);
        return;
    }
    if (!p->loaded && cx_failed(load_part(d, p, &err)))
        return;
    write_commit(d, p);
    if (p->part.owned && next_random(d) % 2 == 0)
        write_page(d, p);
    if (p->part.owned && next_random(d) % 12 == 0)
        prune_commits(d, p);
    if (p->part.owned && next_random(d) % 200 == 0)
        give_part(d, p);
}

/* --- ask -------------------------------------------------------------------------------------- */

static void answer_number(cx_status status, const cx_err *err, const uint64_t *number)
{
    if (cx_failed(status))
        printf("error %s %s\n", tag_of(status, err), err->message);
    else
        printf("ok %llu\n", (unsigned long long)*number);
}

static void answer(cx_status status, const cx_err *err)
{
    static const uint64_t zero = 0;
    answer_number(status, err, &zero);
}

/* One of each, so that the commit has many statements. */
static void add_file_changes(driver *d, making *m)
{
    make_file(d, m, 0);
    make_file(d, m, 1);
    add_change(
        m, (cx_fleet_file_change){.op = CX_FLEET_RENAME, .file = m->names[0], .name = name_of(2)});
    set_name(d, m, 2, m->names[0]);
    set_name(d, m, 0, 0);
    add_change(m, (cx_fleet_file_change){
                      .op = CX_FLEET_RESIZE, .file = m->names[2], .size = 3 * CX_FLEET_CHUNK});
}

static void drop_file(driver *d, making *m, unsigned name)
{
    if (m->names[name] == 0)
        return;
    add_change(m, (cx_fleet_file_change){.op = CX_FLEET_REMOVE, .file = m->names[name]});
    set_name(d, m, name, 0);
}

static void answer_append(driver *d, own_part *p, char *rest, bool many)
{
    making *m = new_making(TEXT_MAX);
    char keys[KEYS_MAX][KEY_TEXT];
    cx_err err = {0};
    uint64_t num = 0;
    size_t count = 0;
    begin_making(p, m);
    for (char *word = strtok(rest, " \n"); word != NULL && count < KEYS_MAX;
         word = strtok(NULL, " \n")) {
        (void)snprintf(keys[count], KEY_TEXT, "%s", word);
        add_key(d, m, count, keys[count]);
        count++;
    }
    if (many) {
        drop_file(d, m, 0);
        drop_file(d, m, 1);
        add_page(d, m);
        add_file_changes(d, m);
    }
    end_text(d, m);
    answer_number(send_making(d, m, (const char(*)[KEY_TEXT])keys, count, &num, &err), &err, &num);
}

/* A key with so many bytes of filler. */
static void answer_large(driver *d, own_part *p, const char *rest)
{
    char keys[1][KEY_TEXT], line[KEY_TEXT + 8];
    unsigned long size;
    cx_err err = {0};
    uint64_t num = 0;
    if (sscanf(rest, "%47s %lu", keys[0], &size) != 2 || size < sizeof line || size > LARGE_MAX) {
        printf("error Usage %s", rest);
        return;
    }
    making *m = new_making(LARGE_MAX);
    begin_making(p, m);
    m->offsets[0] = m->end;
    add_text(m, line, (size_t)snprintf(line, sizeof line, "key %s\nfill ", keys[0]));
    memset(m->text + m->text_size, 'x', size - m->text_size);
    m->text[size - 1] = '\n';
    m->text_size = size;
    end_text(d, m);
    answer_number(send_making(d, m, (const char(*)[KEY_TEXT])keys, 1, &num, &err), &err, &num);
}

static void answer_whole(driver *d, own_part *p, const char *rest)
{
    making *m = new_making(TEXT_MAX);
    cx_err err = {0};
    uint64_t num = 0;
    begin_making(p, m);
    cx_status status = add_whole(d, m, strtoull(rest, NULL, 10), &err);
    if (!cx_failed(status))
        status = send_making(d, m, NULL, 0, &num, &err);
    answer_number(status, &err, &num);
}

static void answer_prune(driver *d, own_part *p, uint64_t keep)
{
    cx_err err = {0};
    cx_fleet_pruned pruned;
    cx_status status = cx_fleet_prune(d->fleet, &p->part, keep, &pruned, &err);
    if (cx_failed(status))
        answer(status, &err);
    else
        printf("ok %llu %llu %llu\n", (unsigned long long)pruned.base,
               (unsigned long long)pruned.removed, (unsigned long long)pruned.kept);
}

/* What only an owner may do. */
static void answer_owner(driver *d, const char *verb, own_part *p, char *rest)
{
    cx_err err = {0};
    if (!p->part.owned)
        printf("error NotOwned\n");
    else if (strcmp(verb, "append") == 0 || strcmp(verb, "many") == 0)
        answer_append(d, p, rest, verb[0] == 'm');
    else if (strcmp(verb, "large") == 0)
        answer_large(d, p, rest);
    else if (strcmp(verb, "whole") == 0)
        answer_whole(d, p, rest);
    else if (strcmp(verb, "renew") == 0)
        answer(cx_fleet_renew(d->fleet, &p->part, &err), &err);
    else if (strcmp(verb, "prune") == 0)
        answer_prune(d, p, strtoull(rest, NULL, 10));
    else if (strcmp(verb, "moved") == 0)
        answer(cx_fleet_moved(d->fleet, &p->part, strtok(rest, " \n"), &err), &err);
    else if (strcmp(verb, "give") == 0)
        answer(cx_fleet_give_back(d->fleet, &p->part, &err), &err);
    else
        printf("error Usage %s\n", verb);
}

static void answer_small(driver *d, const char *verb, unsigned part, char *rest)
{
    cx_str name = cx_str_z(strtok(rest, " \n"));
    cx_err err = {0};
    if (strcmp(verb, "put") == 0) {
        cx_bytes bytes = cx_str_bytes(cx_str_z(strtok(NULL, " \n")));
        answer(cx_fleet_small_write(d->fleet, part, name, bytes, &err), &err);
    } else if (strcmp(verb, "drop") == 0) {
        answer(cx_fleet_small_remove(d->fleet, part, name, &err), &err);
    } else {
        cx_buf bytes;
        cx_buf_init(&bytes, cx_alloc_default());
        cx_status status = cx_fleet_small_read(d->fleet, part, name, &bytes, &err);
        if (cx_failed(status))
            answer(status, &err);
        else
            printf("ok %.*s\n", (int)bytes.size, (const char *)bytes.data);
        cx_buf_done(&bytes);
    }
}

static void answer_line(driver *d, const char *verb, unsigned number, char *rest)
{
    own_part *p = &d->parts[number];
    cx_err err = {0};
    cx_fleet_chain chain;
    if (strcmp(verb, "take") == 0) {
        bool taken = false;
        cx_status status = take_part(d, p, &taken, &err);
        if (cx_failed(status) || taken)
            answer_number(status, &err, &p->part.epoch);
        else
            printf("held\n");
    } else if (strcmp(verb, "release") == 0) {
        bool released = false;
        cx_status status =
            cx_fleet_release(d->fleet, p->part.number, strtok(rest, " \n"), &released, &err);
        if (cx_failed(status) || released)
            answer(status, &err);
        else
            printf("gone\n");
    } else if (strcmp(verb, "check") == 0) {
        cx_status status = cx_fleet_check(d->fleet, p->part.number, &chain, &err);
        if (cx_failed(status))
            answer(status, &err);
        else
            printf("ok %llu %llu %llu\n", (unsigned long long)chain.commits,
                   (unsigned long long)chain.recomputed, (unsigned long long)chain.overwritten);
    } else if (strcmp(verb, "put") == 0 || strcmp(verb, "get") == 0 || strcmp(verb, "drop") == 0) {
        answer_small(d, verb, p->part.number, rest);
    } else {
        answer_owner(d, verb, p, rest);
    }
}

static void answer_lines(driver *d)
{
    char line[4096], verb[16];
    unsigned part;
    int used;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "%15s %u%n", verb, &part, &used) != 2 || part >= d->part_count)
            printf("error Usage %s", line);
        else
            answer_line(d, verb, part, line + used);
        (void)fflush(stdout);
    }
}

/* --- main ------------------------------------------------------------------------------------- */

static unsigned number(const char *text)
{
    return (unsigned)strtoul(text, NULL, 10);
}

static void name_part(unsigned index, char out[16])
{
    if (index == 0)
        (void)snprintf(out, 16, "%s", CX_FLEET_MAIN);
    else
        (void)snprintf(out, 16, "p%u", index);
}

static cx_status make_fleet(const char *url, unsigned parts, bool strict, cx_err *err)
{
    const cx_fleet_options options = {.node = "init"};
    cx_fleet *fleet = NULL;
    uint64_t applied;
    CX_TRY(cx_fleet_init(url, strict, NULL, &applied, err));
    CX_TRY(cx_fleet_open(url, &options, &fleet, err));
    cx_status status = CX_SUCCESS;
    for (unsigned i = 1; i < parts && !cx_failed(status); i++) {
        char name[16];
        unsigned ignored;
        name_part(i, name);
        status = cx_fleet_add(fleet, cx_str_z(name), &ignored, err);
    }
    cx_fleet_close(fleet);
    return status;
}

static cx_status find_parts(driver *d, cx_err *err)
{
    for (unsigned i = 0; i < d->part_count; i++) {
        char name[16];
        name_part(i, name);
        CX_TRY(cx_fleet_find(d->fleet, cx_str_z(name), &d->parts[i].part, err));
    }
    return CX_SUCCESS;
}

static int open_fleet(driver *d, const char *url, char **times)
{
    const cx_fleet_options options = {.node = d->node,
                                      .lease_ms = number(times[0]),
                                      .answer_ms = number(times[1]),
                                      .resolve_ms = number(times[2])};
    cx_err err = {0};
    /* A primary may be on its way. */
    for (unsigned tries = 0; tries < 100; tries++) {
        cx_status status = cx_fleet_open(url, &options, &d->fleet, &err);
        if (!cx_failed(status)) {
            if (!cx_failed(find_parts(d, &err)))
                return 0;
            cx_fleet_close(d->fleet);
        }
        if (getenv("CORTEX_DRIVER_ONCE") != NULL)
            break;
        cx_thread_sleep_ms(100);
    }
    printf("error %s\n", err.message);
    return 3;
}

static int run(driver *d, int argc, char **argv, bool writes)
{
    const cx_io *io = cx_io_system();
    char **times = argv + (writes ? 8 : 5);
    d->node = argv[3];
    d->log = -1;
    d->random = (io->wall_ns(io) ^ (uint64_t)getpid() << 32) | 1;
    d->part_count = number(argv[writes ? 5 : 4]);
    if (d->part_count == 0 || d->part_count > PARTS_MAX)
        return 2;
    if (argc > (writes ? 11 : 8))
        cx_fleet_rules_out = number(argv[writes ? 11 : 8]);
    int failed = open_fleet(d, argv[2], times);
    if (failed != 0)
        return failed;
    printf("ready %s\n", cx_fleet_owner(d->fleet));
    (void)fflush(stdout);
    if (writes) {
        d->share = number(argv[6]);
        read_log(d, argv[4]);
        d->log = open(argv[4], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (d->log < 0)
            return 2;
        uint64_t end_ns = io->monotonic_ns(io) + UINT64_C(1000000000) * number(argv[7]);
        while (io->monotonic_ns(io) < end_ns)
            write_once(d);
        for (unsigned i = 0; i < d->part_count; i++)
            if (d->parts[i].part.owned)
                give_part(d, &d->parts[i]);
    } else {
        const char *log = getenv("CORTEX_DRIVER_LOG");
        if (log != NULL)
            d->log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        answer_lines(d);
    }
    cx_fleet_close(d->fleet);
    return 0;
}

int main(int argc, char **argv)
{
    static driver d;
    cx_err err = {0};
    bool writes = argc >= 11 && strcmp(argv[1], "write") == 0;
    bool asks = argc >= 8 && strcmp(argv[1], "ask") == 0;
    if (argc == 5 && strcmp(argv[1], "init") == 0) {
        if (!cx_failed(make_fleet(argv[2], number(argv[3]), number(argv[4]) != 0, &err)))
            return 0;
        fprintf(stderr, "%s %s\n", err.tag == NULL ? "" : err.tag, err.message);
        return 1;
    }
    if (!writes && !asks) {
        fprintf(stderr, "usage: see the head of tests/fleet/driver.c\n");
        return 2;
    }
    return run(&d, argc, argv, writes);
}
