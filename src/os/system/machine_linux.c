/*
 * machine_linux.c - machine.h by proc(5).
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "os/machine.h"

#define FILE_BYTES_MAX 4096
#define COMMAND_BYTES_MAX 65536
#define PAGE_BYTES 4096

const char *const cx_machine_opener = "xdg-open";
const bool cx_machine_has_desktop = false;

void cx_machine_begin(int argc, char *const *argv)
{
    (void)argc;
    (void)argv;
}

const char *cx_machine_program(void)
{
    return "/proc/self/exe";
}

const char *const *cx_machine_environment(void)
{
    return (const char *const *)(uintptr_t)environ;
}

int cx_machine_await_signal(const sigset_t *signals, uint64_t timeout_ns)
{
    const struct timespec pause = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                                   .tv_nsec = (long)(timeout_ns % 1000000000u)};
    int got = sigtimedwait(signals, NULL, &pause);
    return got < 0 ? 0 : got;
}

/* Appends a small file without white space at its end. */
static cx_status read_file(const char *path, cx_buf *out, cx_err *err)
{
    CX_TRY(cx_io_read_file(cx_io_system(), path, FILE_BYTES_MAX, out, err));
    while (out->size != 0 && out->data[out->size - 1] <= ' ')
        out->size--;
    return CX_SUCCESS;
}

/* Resident pages: the second number of statm. */
bool cx_machine_resident(uint64_t *out_bytes)
{
    cx_buf text;
    uint64_t pages = 0;
    size_t i = 0;
    cx_buf_init(&text, cx_alloc_default());
    bool known = !cx_failed(read_file("/proc/self/statm", &text, NULL));
    while (known && i < text.size && text.data[i] != ' ')
        i++;
    for (i++; known && i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++)
        pages = pages * 10 + (uint64_t)(text.data[i] - '0');
    cx_buf_done(&text);
    *out_bytes = pages * PAGE_BYTES;
    return known;
}

cx_status cx_machine_host(cx_buf *out, cx_err *err)
{
    return read_file("/proc/sys/kernel/hostname", out, err);
}

cx_status cx_machine_boot_id(cx_buf *out, cx_err *err)
{
    return read_file("/proc/sys/kernel/random/boot_id", out, err);
}

/* proc(5): field 3 is the state, 22 the start; the name in field 2 may hold anything. */
static bool parse_stat(cx_str stat, char *out_state, uint64_t *out_start)
{
    size_t at = stat.size;
    while (at != 0 && stat.data[at - 1] != ')')
        at--;
    unsigned field = 2;
    uint64_t value = 0;
    bool digits = false;
    if (at == 0)
        return false;
    for (; at < stat.size && field <= 22; at++) {
        char c = stat.data[at];
        if (c == ' ') {
            if (field == 22)
                break;
            field++;
            value = 0;
            digits = false;
        } else if (field == 3) {
            *out_state = c;
        } else if (field == 22 && c >= '0' && c <= '9' && value < UINT64_MAX / 16) {
            value = value * 10 + (uint64_t)(c - '0');
            digits = true;
        }
    }
    *out_start = value;
    return field == 22 && digits;
}

cx_status cx_machine_process_start(uint64_t pid, uint64_t *out, cx_err *err)
{
    char path[64], state = '?';
    cx_buf stat;
    (void)snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    cx_buf_init(&stat, cx_alloc_default());
    cx_status status = read_file(path, &stat, err);
    if (!cx_failed(status) && !parse_stat(cx_buf_str(&stat), &state, out))
        status = cx_fail(err, CX_E_FORMAT, "%s is not as proc(5) says", path);
    if (!cx_failed(status) && (state == 'Z' || state == 'X'))
        status = cx_fail(err, CX_E_NOT_FOUND, "process %llu has ended", (unsigned long long)pid);
    cx_buf_done(&stat);
    return status;
}

void cx_machine_command(uint64_t pid, size_t words, cx_buf *out)
{
    char path[48];
    cx_buf text;
    (void)snprintf(path, sizeof path, "/proc/%llu/cmdline", (unsigned long long)pid);
    cx_buf_init(&text, cx_alloc_default());
    if (!cx_failed(cx_io_read_file(cx_io_system(), path, COMMAND_BYTES_MAX, &text, NULL))) {
        size_t found = 0, size = 0;
        while (size < text.size && (text.data[size] != 0 || ++found < words))
            size++;
        for (size_t i = 0; i < size; i++)
            cx_buf_add_byte(out, text.data[i] == 0 ? ' ' : text.data[i]);
    }
    cx_buf_done(&text);
}
