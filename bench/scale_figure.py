#!/usr/bin/env python3
"""scale_figure.py JSON.. -o FILE - draws what bench/scale.py measured: a panel an operation, both axes linear.

Each JSON is of `scale.py --json`; of several with the same kind the later one counts.  A panel has CPU
milliseconds (above) by how much was recorded (to the right), with the resident megabytes as text.
"""
import html
import json
import pathlib
import sys

WIDTH, HEIGHT, COLUMNS = 290, 170, 3
LEFT, RIGHT, TOP, BOTTOM = 44, 16, 40, 30
COLOURS = {"entries": "#1f6feb", "memories": "#bc4c00", "agents": "#1a7f37"}
STYLE = ("text{font:11px system-ui,sans-serif;fill:#57606a}.t{font-weight:600;fill:#24292f}"
         ".a{stroke:#8c959f;stroke-width:1}.g{stroke:#d0d7de;stroke-width:.5}"
         "@media(prefers-color-scheme:dark){text{fill:#9198a1}.t{fill:#f0f6fc}.g{stroke:#3d444d}}")


def nice(value):
    """A round number that is not less."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step >= value:
                return factor * step
        step *= 10


def count(n):
    return f"{n // 1000000} M" if n >= 1000000 and n % 1000000 == 0 else f"{n:,}"


def panel(what, series, x, y, most):
    """series: {kind: {n: cells}}"""
    top = nice(max(1000 * c["cpu"] for s in series.values() for c in s.values()))
    plain = html.escape(what.replace("`", ""))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(n, ms):
        return x + LEFT + wide * n / most, y + TOP + high * (1 - ms / top)
    resident = [c["rss"] for s in series.values() for c in s.values()]
    yield f'<text class="t" x="{x + 6}" y="{y + 16}">{plain}</text>'
    yield (f'<text x="{x + 6}" y="{y + 31}">{min(resident):.0f} to {max(resident):.0f} MB resident</text>')
    for share in (0, 0.5, 1):
        _, height = at(0, top * share)
        yield f'<line class="{"g" if share else "a"}" x1="{x + LEFT}" x2="{x + LEFT + wide}" y1="{height:.1f}" y2="{height:.1f}"/>'
        yield f'<text x="{x + LEFT - 5}" y="{height + 4:.1f}" text-anchor="end">{top * share:g}</text>'
    for share in (0, 0.5, 1):
        place, ground = at(most * share, 0)
        yield f'<text x="{place:.1f}" y="{ground + 15:.1f}" text-anchor="middle">{count(int(most * share))}</text>'
    for kind, cells in series.items():
        points = [at(n, 1000 * c["cpu"]) for n, c in sorted(cells.items())]
        line = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        yield f'<polyline points="{line}" fill="none" stroke="{COLOURS[kind]}" stroke-width="1.5"/>'
        for (n, cell), (px, py) in zip(sorted(cells.items()), points):
            yield (f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.5" fill="{COLOURS[kind]}"><title>{plain}, {n:,} {kind}: '
                   f'{1000 * cell["cpu"]:.0f} ms CPU, {cell["rss"]:.0f} MB</title></circle>')


def draw(measured):
    whats, most = [], 0
    for kind in measured:
        for what, cells in measured[kind].items():
            most = max(most, *cells)
            if what not in whats:
                whats.append(what)
    rows = -(-len(whats) // COLUMNS)
    wide, high = COLUMNS * WIDTH, rows * HEIGHT + 34
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
           'role="img"><title>CPU milliseconds of commands by how much was recorded</title>')
    yield f"<style>{STYLE}</style>"
    x = 6
    for kind in measured:
        yield f'<circle cx="{x + 5}" cy="16" r="4" fill="{COLOURS[kind]}"/>'
        yield f'<text x="{x + 14}" y="20">{kind}</text>'
        x += 90
    yield f'<text x="{x}" y="20">CPU milliseconds of the whole process, by how many were recorded; both axes linear</text>'
    for i, what in enumerate(whats):
        series = {kind: measured[kind][what] for kind in measured if what in measured[kind]}
        yield from panel(what, series, i % COLUMNS * WIDTH, 34 + i // COLUMNS * HEIGHT, most)
    yield "</svg>"


def main():
    words = sys.argv[1:]
    if len(words) < 3 or words[-2] != "-o":
        sys.exit(__doc__)
    measured = {}
    for name in words[:-2]:
        for kind, rows in json.loads(pathlib.Path(name).read_text()).items():
            measured[kind] = {what: {int(n): cell for n, cell in cells.items()} for what, cells in rows.items()}
    pathlib.Path(words[-1]).write_text("\n".join(draw(measured)) + "\n")


if __name__ == "__main__":
    main()
