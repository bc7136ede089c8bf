/*
 * line_diff.c - the lines in which two texts differ, and asking a person about them.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/live/agent_file.h"

#define AROUND 3
#define CELLS_MAX \
    ((size_t)4 << 20) /* of the table of common lines; past it all lines are replaced */

typedef struct lines {
    cx_str *items;
    size_t count;
} lines;

static bool split_lines(cx_str text, lines *out)
{
    size_t count = 0, start = 0;
    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == '\n' || i + 1 == text.size;
    out->items = malloc((count + 1) * sizeof *out->items);
    out->count = 0;
    for (size_t i = 0; out->items != NULL && i < text.size; i++)
        if (text.data[i] == '\n' || i + 1 == text.size) {
            out->items[out->count++] = cx_str_from(text.data + start, i + 1 - start);
            start = i + 1;
        }
    return out->items != NULL;
}

typedef struct diff {
    lines a, b;
    size_t first, end_a, end_b; /* equal before `first` and from the ends on */
    char *script;               /* '-' '+' ' ' for first .. */
    size_t steps;
} diff;

/* The longest common subsequence of the lines between the equal ends; by table. */
static bool find_script(diff *d)
{
    size_t n = d->end_a - d->first, m = d->end_b - d->first;
    size_t width = m + 1;
    d->script = malloc(n + m + 1);
    if (d->script == NULL)
        return false;
    if (n != 0 && m != 0 && (n + 1) > CELLS_MAX / width) {
        memset(d->script, '-', n);
        memset(d->script + n, '+', m);
        d->steps = n + m;
        return true;
    }
    uint32_t *common = calloc((n + 1) * width, sizeof *common);
    if (common == NULL)
        return false;
    const cx_str *a = d->a.items + d->first, *b = d->b.items + d->first;
    for (size_t i = n; i-- > 0;)
        for (size_t k = m; k-- > 0;) {
            uint32_t skip_a = common[(i + 1) * width + k], skip_b = common[i * width + k + 1];
            common[i * width + k] = cx_str_eq(a[i], b[k]) ? common[(i + 1) * width + k + 1] + 1
                                    : skip_a > skip_b     ? skip_a
                                                          : skip_b;
        }
    for (size_t i = 0, k = 0; i < n || k < m;) {
        char step = i == n                                                     ? '+'
                    : k == m                                                   ? '-'
                    : cx_str_eq(a[i], b[k])                                    ? ' '
                    : common[(i + 1) * width + k] >= common[i * width + k + 1] ? '-'
                                                                               : '+';
        i += step != '+';
        k += step != '-';
        d->script[d->steps++] = step;
    }
    free(common);
    return true;
}

static void add_line(cx_buf *out, char sign, cx_str line, bool colour)
{
    cx_str bare = line;
    while (bare.size != 0 && (bare.data[bare.size - 1] == '\n' || bare.data[bare.size - 1] == '\r'))
        bare.size--;
    if (colour && sign != ' ')
        cx_buf_add_z(out, sign == '+' ? "\033[32m" : "\033[31m");
    cx_buf_add_byte(out, (uint8_t)sign);
    cx_shown_add(out, bare);
    if (colour && sign != ' ')
        cx_buf_add_z(out, "\033[0m");
    cx_buf_add_z(out, "\n");
}

/* Whether a step is within AROUND of one that changes. */
static bool is_near(const diff *d, size_t step)
{
    for (size_t i = step < AROUND ? 0 : step - AROUND; i < d->steps && i <= step + AROUND; i++)
        if (d->script[i] != ' ')
            return true;
    return false;
}

static void write_steps(const diff *d, bool colour, cx_buf *out)
{
    size_t a = d->first, b = d->first;
    bool gap = false;
    for (size_t i = d->first < AROUND ? 0 : d->first - AROUND; i < d->first; i++)
        add_line(out, ' ', d->a.items[i], colour);
    for (size_t i = 0; i < d->steps; i++) {
        char step = d->script[i];
        if (step != ' ' || is_near(d, i)) {
            if (gap)
                cx_buf_add_z(out, " ...\n");
            gap = false;
            add_line(out, step, step == '+' ? d->b.items[b] : d->a.items[a], colour);
        } else {
            gap = true;
        }
        a += step != '+';
        b += step != '-';
    }
    for (size_t i = d->end_a; i < d->a.count && i < d->end_a + AROUND; i++)
        add_line(out, ' ', d->a.items[i], colour);
}

cx_status cx_cli_line_diff(cx_str before, cx_str after, const char *name, bool colour, cx_buf *out,
                           cx_err *err)
{
    diff d = {.steps = 0};
    bool good = split_lines(before, &d.a) && split_lines(after, &d.b);
    if (good) {
        while (d.first < d.a.count && d.first < d.b.count &&
               cx_str_eq(d.a.items[d.first], d.b.items[d.first]))
            d.first++;
        d.end_a = d.a.count;
        d.end_b = d.b.count;
        while (d.end_a > d.first && d.end_b > d.first &&
               cx_str_eq(d.a.items[d.end_a - 1], d.b.items[d.end_b - 1])) {
            d.end_a--;
            d.end_b--;
        }
        good = find_script(&d);
    }
    if (good) {
        cx_buf_add_z(out, "--- ");
        cx_shown_add(out, cx_str_z(before.size == 0 ? "(not there)" : name));
        cx_buf_add_z(out, "\n+++ ");
        cx_shown_add(out, cx_str_z(after.size == 0 ? "(removed)" : name));
        cx_buf_add_z(out, "\n");
        write_steps(&d, colour, out);
    }
    free(d.a.items);
    free(d.b.items);
    free(d.script);
    return good ? cx_buf_check(out, err) : cx_fail_nomem(err);
}

/* --- asking ----------------------------------------------------------------------------------- */

cx_status cx_cli_ask_person(const cx_buf *text, const char *without, cx_err *err)
{
    char line[16] = "";
    const cx_io *io = cx_io_system();
    cx_file terminal;
    CX_TRY(cx_buf_check(text, err));
    if (io->open(io, "/dev/tty", CX_IO_READ | CX_IO_WRITE, &terminal) != 0)
        return cx_fail(err, CX_E_DENIED, "%s", without);
    cx_status status = cx_io_write_all(io, terminal, "/dev/tty", text->data, text->size, err);
    int64_t got = cx_failed(status) ? -1 : io->read(io, terminal, line, sizeof line - 1);
    (void)io->close(io, terminal);
    CX_TRY(status);
    if (got <= 0 || strncmp(line, "yes\n", 4) != 0)
        return cx_fail(err, CX_E_DENIED, "nothing was changed: the answer was not \"yes\"");
    return CX_SUCCESS;
}
