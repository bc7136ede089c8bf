// scrubber.tsx - the whole history as a strip: density of events, marks, the visible part; dragging
// moves the focus.

import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {get} from '../../base/api';
import {count} from '../../base/format';
import {isDark} from '../../base/theme';
import {palette, type Palette} from './draw';
import {counts, drawMark, KINDS, ROW_TOP, WRITE, type Mark} from './marks';
import {clampView, type Model} from './model';
import type {Overview, Window} from './types';

/* As the lanes show all of it: a column's width and a half of room. */
function place(col: number, columns: number, width: number): number {
  return ((col + 1) / (columns + 1.5)) * width;
}

export function Scrubber({model}: {model: Model}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const height = 60;
  useLayoutEffect(() => {
    const at = canvas.current?.parentElement;
    if (!at) return;
    const measure = (): void => setWidth(at.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(at);
    return () => observer.disconnect();
  }, []);
  const whole = model.whole.signal.value.value;
  const columns = model.columns.value;
  const {from, to} = model.view.value;
  const focusCol = model.detail.value?.col ?? null;
  const marks = model.marks.value;
  const dark = isDark.value;
  useEffect(() => {
    const strip = canvas.current;
    const ctx = strip?.getContext('2d');
    if (!strip || !ctx || !whole || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    strip.width = Math.round(width * ratio);
    strip.height = Math.round(height * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const p = palette();
    ctx.clearRect(0, 0, width, height);
    drawDensity(ctx, whole, width, height, p);
    drawMarks(ctx, marks, columns, width, p);
    const at = (col: number): number => place(col, columns, width);
    const x1 = Math.max(0, at(from));
    const x2 = Math.min(width, at(to));
    ctx.fillStyle = p['accent']!;
    ctx.globalAlpha = 0.1;
    ctx.fillRect(x1, 0, x2 - x1, height);
    ctx.globalAlpha = 0.8;
    ctx.fillRect(x1, 0, 1, height);
    ctx.fillRect(x2 - 1, 0, 1, height);
    ctx.globalAlpha = 1;
    if (focusCol !== null) ctx.fillRect(Math.round(at(focusCol)) - 1, 0, 2, height);
  }, [whole, width, from, to, columns, focusCol, marks, dark]);

  const moment = useRef<AbortController | null>(null);
  const seek = (event: PointerEvent): void => {
    const area = canvas.current!.getBoundingClientRect();
    const col = Math.max(
      0,
      Math.min(
        columns - 1,
        Math.round(((event.clientX - area.left) / area.width) * (columns + 1.5) - 1),
      ),
    );
    const span = to - from;
    model.view.value = clampView(col - span / 2, col + span / 2, columns);
    moment.current?.abort();
    moment.current = new AbortController();
    void nearest(model, col, moment.current.signal);
  };
  return (
    <div class="scrubber">
      <canvas
        ref={canvas}
        style={{width: '100%', height: `${height}px`}}
        role="slider"
        tabIndex={0}
        aria-label="Moment"
        aria-valuemin={0}
        aria-valuemax={Math.max(0, columns - 1)}
        aria-valuenow={focusCol ?? 0}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          seek(event);
        }}
        onPointerMove={(event) => {
          if (event.buttons & 1) seek(event);
        }}
      />
      <Legend model={model} marks={marks} />
    </div>
  );
}

/** The node of the focused agent at a column, or the last one before it. */
async function nearest(model: Model, col: number, abort: AbortSignal): Promise<void> {
  const fold = model.foldQuery;
  try {
    const near = await get<Window>(
      `${model.path}/window`,
      {fold, from: Math.max(0, col - 40), to: col + 1, max: 400},
      abort,
    );
    const lane = model.detail.value?.lane;
    let best = -1;
    for (let i = 0; i < near.nodes.n.length; i++)
      if (near.nodes.lane[i] === lane || best < 0 || near.nodes.lane[best] !== lane) best = i;
    if (best >= 0) model.select(near.nodes.n[best]!, true);
  } catch {
    // Taken back by the next place, or said by the panes when the server is gone.
  }
}

function drawDensity(
  ctx: CanvasRenderingContext2D,
  whole: Overview,
  width: number,
  height: number,
  p: Palette,
): void {
  const sums = new Array<number>(whole.bins).fill(0);
  for (let i = 0; i + 3 < whole.cells.length; i += 4)
    sums[whole.cells[i + 1]!]! += whole.cells[i + 2]!;
  const most = Math.max(1, ...sums);
  ctx.fillStyle = p['line-strong']!;
  const per = (whole.to - whole.from) / Math.max(1, whole.bins);
  sums.forEach((sum, i) => {
    const high = sum === 0 ? 0 : 3 + (height - 40) * Math.sqrt(sum / most);
    const x = place(whole.from + i * per - 0.5, whole.to, width);
    const x2 = place(whole.from + (i + 1) * per - 0.5, whole.to, width);
    ctx.fillRect(x, height - 14 - high, Math.max(1, x2 - x - 0.5), high);
  });
  ctx.fillStyle = p['line']!;
  ctx.fillRect(0, height - 14, width, 1);
}

/* Each kind has its own shape; kinds that often coincide have their own rows. */
function drawMarks(
  ctx: CanvasRenderingContext2D,
  marks: readonly Mark[],
  columns: number,
  width: number,
  p: Palette,
): void {
  for (const {kind, col} of marks) {
    const of = KINDS[kind];
    if (of) drawMark(ctx, kind, place(col, columns, width), ROW_TOP[of.row], p[of.tone]!);
  }
}

/** What the signs mean, how many there are, and the next of a kind by a click. */
function Legend({model, marks}: {model: Model; marks: readonly Mark[]}) {
  const many = counts(marks);
  if (marks.length === 0) return null;
  return (
    <ul class="scrub-legend" aria-label="Marks">
      {KINDS.map(
        (kind, i) =>
          many[i]! > 0 && (
            <li key={kind.word}>
              <button
                type="button"
                class="quiet scrub-kind"
                onClick={() => model.stepKind(i)}
                title={`Next ${kind.word}${kind.key ? ` (${kind.key}, ${kind.key.toUpperCase()} for the previous one)` : i === WRITE ? ' ([ for the previous one, ] for the next one)' : ' (n and p step through all marks)'}`}
              >
                <svg
                  class="scrub-sign"
                  viewBox="0 0 10 10"
                  width="10"
                  height="10"
                  aria-hidden="true"
                >
                  <path
                    d={kind.path}
                    style={
                      kind.isFilled
                        ? {fill: `var(--${kind.tone})`}
                        : {fill: 'none', stroke: `var(--${kind.tone})`, strokeWidth: '1.8'}
                    }
                  />
                </svg>
                {many[i] === 1 ? kind.word : `${count(many[i]!)} ${kind.words}`}
              </button>
            </li>
          ),
      )}
    </ul>
  );
}
