/*
 * driver.c - cortex-fleet-driver: a node of a fleet as the tests need it (tests/fleet/faults.py).
 *
 *     cortex-fleet-driver write URL NODE LOG PARTS SHARE SECONDS LEASE_MS ANSWER_MS RESOLVE_MS
 *     [OUT]
 *     cortex-fleet-driver ask   URL NODE LEASE_MS ANSWER_MS RESOLVE_MS [OUT]
 *
 * `write` takes parts, appends groups of records with keys, loses parts and takes others, until the
 * time is over.  Before a record is sent the line "try KEY PART" is in LOG, and after it was
 * acknowledged "ack KEY PART NUM FRAME EPOCH OWNER"; a driver that finds a LOG sends again what was
 * tried and not acknowledged, as a client would.
 *
 * `ask` does what lines on standard input say, and answers each with a line:
 *
 *     take PART | renew PART | give PART | append PART KEY.. | large PART KEY BYTES
 *
 * OUT is the sum of rules of src/fleet/internal.h that are left out: this program is built from the
 * module's files with CX_FLEET_RULES_OUT, which the program cortex never is.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/internal.h"

unsigned cx_fleet_rules_out;

#define PARTS_MAX CX_FLEET_PARTS
#define BATCH_MAX 16
#define KEY_TEXT 48

typedef struct pending {
    char keys[BATCH_MAX][KEY_TEXT];
    size_t count;
} pending;

typedef struct driver {
    cx_fleet *fleet;
    cx_fleet_part parts[PARTS_MAX];
    pending pendings[PARTS_MAX];
    unsigned part_count, share, owned;
    const char *node;
    int log;
    uint64_t counter, random;
} driver;

static uint32_t next_random(driver *d)
{
    d->random ^= d->random << 13;
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return (uint32_t)(d->random >> 16);
}

/* --- the log of what was tried and acknowledged ----------------------------------------------- */

static void write_line(const driver *d, const char *text)
{
    size_t size = strlen(text);
    if (write(d->log, text, size) != (ssize_t)size)
        abort();
}

static void remember(driver *d, unsigned part, const char *key)
{
    pending *p = &d->pendings[part];
    if (p->count < BATCH_MAX)
        (void)snprintf(p->keys[p->count++], KEY_TEXT, "%s", key);
}

static void forget(driver *d, unsigned part, const char *key)
{
    pending *p = &d->pendings[part];
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->keys[i], key) == 0)
            memcpy(p->keys[i], p->keys[--p->count], KEY_TEXT);
}

static void read_log(driver *d, const char *path)
{
    char line[256], key[KEY_TEXT];
    unsigned part;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "try %47s %u", key, &part) == 2 && part < PARTS_MAX) {
            remember(d, part, key);
            d->counter++;
        } else if (sscanf(line, "ack %47s %u", key, &part) == 2 && part < PARTS_MAX) {
            forget(d, part, key);
        }
    }
    (void)fclose(file);
}

/* --- one group -------------------------------------------------------------------------------- */

static const char *tag_of(cx_status status, const cx_err *err)
{
    if (!cx_failed(status))
        return "none";
    return err->tag != NULL && err->tag[0] != 0 ? err->tag : "Other";
}

/* Records whose guarded part names the key; every third has an erasable part. */
static cx_status append_keys(driver *d, unsigned part, const char (*keys)[KEY_TEXT], size_t count,
                             cx_fleet_place *places, cx_err *err)
{
    static uint8_t filler[4096];
    cx_fleet_record records[BATCH_MAX] = {0};
    char texts[BATCH_MAX][KEY_TEXT + 8];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "key %s\n", keys[i]);
        records[i].key = cx_str_bytes(cx_str_z(keys[i]));
        records[i].frame.guarded = cx_str_bytes(cx_str_z(texts[i]));
        if (i % 3 == 1)
            records[i].frame.erasable =
                cx_bytes_from(filler, 1 + next_random(d) % (uint32_t)sizeof filler);
    }
    return cx_fleet_append(d->fleet, &d->parts[part], records, count, places, err);
}

static void log_acknowledged(driver *d, unsigned part, uint64_t epoch, const char (*keys)[KEY_TEXT],
                             size_t count, const cx_fleet_place *places)
{
    char text[BATCH_MAX * 256];
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += (size_t)snprintf(
            text + size, sizeof text - size, "%s %s %u %llu %llu %llu %s\n", "ack", keys[i], part,
            (unsigned long long)places[i].num, (unsigned long long)places[i].frame,
            places[i].repeated ? 0ULL : (unsigned long long)epoch, cx_fleet_owner(d->fleet));
    write_line(d, text);
}

static void log_lost(driver *d, unsigned part, uint64_t epoch, cx_status status, const cx_err *err)
{
    char text[512];
    (void)snprintf(text, sizeof text, "%s %u %llu %s\n", tag_of(status, err), part,
                   (unsigned long long)epoch, err->message);
    for (char *at = text; *at != 0; at++)
        if (*at == '\n' && at[1] != 0)
            *at = ' ';
    write_line(d, text);
}

static void write_group(driver *d, unsigned part)
{
    pending *p = &d->pendings[part];
    char text[BATCH_MAX * 64];
    char keys[BATCH_MAX][KEY_TEXT];
    cx_fleet_place places[BATCH_MAX];
    cx_err err = {0};
    size_t size = 0;
    if (p->count == 0) {
        size_t count = 1 + next_random(d) % BATCH_MAX;
        for (size_t i = 0; i < count; i++) {
            (void)snprintf(p->keys[i], KEY_TEXT, "%s-%llu", d->node,
                           (unsigned long long)d->counter++);
            size +=
                (size_t)snprintf(text + size, sizeof text - size, "try %s %u\n", p->keys[i], part);
        }
        p->count = count;
        write_line(d, text);
    }
    size_t count = p->count;
    memcpy(keys, p->keys, sizeof keys);
    uint64_t epoch = d->parts[part].epoch;
    cx_status status = append_keys(d, part, (const char(*)[KEY_TEXT])keys, count, places, &err);
    if (!d->parts[part].owned)
        d->owned--;
    if (cx_failed(status)) {
        log_lost(d, part, epoch, status, &err);
        cx_thread_sleep_ms(20);
        return;
    }
    if (d->parts[part].owned)
        epoch = d->parts[part].epoch;
    log_acknowledged(d, part, epoch, (const char(*)[KEY_TEXT])keys, count, places);
    p->count = 0;
}

/* --- write ------------------------------------------------------------------------------------ */

static void take_part(driver *d, unsigned part)
{
    cx_err err = {0};
    bool taken = false;
    cx_status status = cx_fleet_take(d->fleet, &d->parts[part], &taken, &err);
    if (cx_failed(status))
        log_lost(d, part, d->parts[part].epoch, status, &err);
    d->owned += taken;
    if (!taken)
        cx_thread_sleep_ms(10 + next_random(d) % 20);
}

static void give_part(driver *d, unsigned part)
{
    cx_err err = {0};
    cx_status status = cx_fleet_give_back(d->fleet, &d->parts[part], &err);
    if (cx_failed(status))
        log_lost(d, part, d->parts[part].epoch, status, &err);
    d->owned--;
}

static void write_until(driver *d, uint64_t end_ns)
{
    const cx_io *io = cx_io_system();
    while (io->monotonic_ns(io) < end_ns) {
        unsigned part = next_random(d) % d->part_count;
        if (!d->parts[part].owned) {
            if (d->owned < d->share)
                take_part(d, part);
            continue;
        }
        write_group(d, part);
        if (d->parts[part].owned && next_random(d) % 200 == 0)
            give_part(d, part);
    }
    for (unsigned i = 0; i < d->part_count; i++)
        if (d->parts[i].owned)
            give_part(d, i);
}

/* --- ask -------------------------------------------------------------------------------------- */

static void answer_append(driver *d, unsigned part, char *rest)
{
    char keys[BATCH_MAX][KEY_TEXT];
    cx_fleet_place places[BATCH_MAX];
    cx_err err = {0};
    size_t count = 0;
    for (char *word = strtok(rest, " \n"); word != NULL && count < BATCH_MAX;
         word = strtok(NULL, " \n"))
        (void)snprintf(keys[count++], KEY_TEXT, "%s", word);
    cx_status status = append_keys(d, part, (const char(*)[KEY_TEXT])keys, count, places, &err);
    if (cx_failed(status)) {
        printf("error %s %s\n", tag_of(status, &err), err.message);
        return;
    }
    printf("ok");
    for (size_t i = 0; i < count; i++)
        printf(" %llu/%llu%s", (unsigned long long)places[i].num,
               (unsigned long long)places[i].frame, places[i].repeated ? "r" : "");
    printf("\n");
}

/* One record with so many guarded bytes. */
static void answer_large(driver *d, unsigned part, const char *rest)
{
    char key[KEY_TEXT];
    unsigned long size;
    cx_fleet_place place;
    cx_err err = {0};
    if (sscanf(rest, "%47s %lu", key, &size) != 2 || size < sizeof key + 8) {
        printf("error Usage %s", rest);
        return;
    }
    char *text = malloc(size);
    if (text == NULL)
        abort();
    memset(text, 'x', size);
    int begin = snprintf(text, size, "key %s", key);
    memset(text + begin, '\n', size - (size_t)begin);
    const cx_fleet_record record = {.key = cx_str_bytes(cx_str_z(key)),
                                    .frame.guarded = cx_bytes_from(text, size)};
    cx_status status = cx_fleet_append(d->fleet, &d->parts[part], &record, 1, &place, &err);
    free(text);
    if (cx_failed(status))
        printf("error %s %s\n", tag_of(status, &err), err.message);
    else
        printf("ok %llu/%llu%s\n", (unsigned long long)place.num, (unsigned long long)place.frame,
               place.repeated ? "r" : "");
}

static void answer_simple(driver *d, const char *verb, unsigned part)
{
    cx_fleet_part *p = &d->parts[part];
    cx_err err = {0};
    bool taken = true;
    cx_status status = CX_SUCCESS;
    if (strcmp(verb, "take") == 0)
        status = cx_fleet_take(d->fleet, p, &taken, &err);
    else if (strcmp(verb, "renew") == 0 && p->owned)
        status = cx_fleet_renew(d->fleet, p, &err);
    else if (strcmp(verb, "give") == 0 && p->owned)
        status = cx_fleet_give_back(d->fleet, p, &err);
    if (cx_failed(status))
        printf("error %s %s\n", tag_of(status, &err), err.message);
    else if (!taken)
        printf("held\n");
    else
        printf("ok %llu %llu %d\n", (unsigned long long)p->epoch, (unsigned long long)p->next,
               p->owned);
}

static void answer_lines(driver *d)
{
    char line[4096], verb[16];
    unsigned part;
    int used;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "%15s %u%n", verb, &part, &used) != 2 || part >= PARTS_MAX)
            printf("error Usage %s", line);
        else if (strcmp(verb, "append") == 0)
            answer_append(d, part, line + used);
        else if (strcmp(verb, "large") == 0)
            answer_large(d, part, line + used);
        else
            answer_simple(d, verb, part);
        (void)fflush(stdout);
    }
}

/* --- main ------------------------------------------------------------------------------------- */

static unsigned number(const char *text)
{
    return (unsigned)strtoul(text, NULL, 10);
}

static int open_fleet(driver *d, const char *url, char **times)
{
    const cx_fleet_options options = {.node = d->node,
                                      .lease_ms = number(times[0]),
                                      .answer_ms = number(times[1]),
                                      .resolve_ms = number(times[2])};
    cx_err err = {0};
    for (unsigned i = 0; i < PARTS_MAX; i++)
        d->parts[i].number = i;
    /* A primary may be on its way. */
    for (unsigned tries = 0; tries < 100; tries++) {
        if (!cx_failed(cx_fleet_open(url, &options, &d->fleet, &err)))
            return 0;
        cx_thread_sleep_ms(100);
    }
    fprintf(stderr, "%s\n", err.message);
    return 3;
}

int main(int argc, char **argv)
{
    static driver d;
    const cx_io *io = cx_io_system();
    bool writes = argc >= 11 && strcmp(argv[1], "write") == 0;
    bool asks = argc >= 7 && strcmp(argv[1], "ask") == 0;
    if (!writes && !asks) {
        fprintf(stderr, "usage: see the head of tests/fleet/driver.c\n");
        return 2;
    }
    char **times = argv + (writes ? 8 : 4);
    d.node = argv[3];
    d.random = (io->wall_ns(io) ^ (uint64_t)getpid() << 32) | 1;
    if (argc > (writes ? 11 : 7))
        cx_fleet_rules_out = number(argv[writes ? 11 : 7]);
    int failed = open_fleet(&d, argv[2], times);
    if (failed != 0)
        return failed;
    printf("ready\n");
    (void)fflush(stdout);
    if (asks) {
        answer_lines(&d);
    } else {
        d.part_count = number(argv[5]);
        d.share = number(argv[6]);
        read_log(&d, argv[4]);
        d.log = open(argv[4], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (d.log < 0 || d.part_count == 0 || d.part_count > PARTS_MAX)
            return 2;
        write_until(&d, io->monotonic_ns(io) + UINT64_C(1000000000) * number(argv[7]));
    }
    cx_fleet_close(d.fleet);
    return 0;
}
