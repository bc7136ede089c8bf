// heatmap.tsx - agents from top to bottom, time from left to right, intensity as colour.
//
//   #/heatmap/LATTICE?layer=divergence|time|cost|overrides&axis=order

import {signal} from '@preact/signals';
import {useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';
import {segments} from '../../base/api';
import {plural, shortAgent, time} from '../../base/format';
import {addCommands} from '../../base/keys';
import {useAnswer} from '../../base/load';
import {adjust, go, linkTo, route} from '../../base/router';
import {colour, isDark} from '../../base/theme';
import {Badge} from '../../ui/badge';
import {Recent} from '../../ui/recent';
import {Failed, Loading} from '../../ui/states';
import {Line} from '../../ui/text';
import type {Summary} from '../debugger/types';
import {
  ABOUT,
  amount,
  binStart,
  cellsOf,
  hottest,
  LAYERS,
  NO_TIMES,
  step,
  strength,
  type HeatAnswer,
  type HeatCell,
  type Layer,
} from './model';

const ROW = 24;
const RULER = 20;

export function Heatmap() {
  const name = route.value.name || 'all';
  const path = `/api/v1/view/${segments(name)}`;
  const summary = useAnswer<Summary>(`${path}/summary`, {}, false);
  const layer = LAYERS.find((one) => one === route.value.query['layer']) ?? 'divergence';
  const isTimed = summary.value === null || summary.value.time.length > 0;
  const axis = route.value.query['axis'] === 'order' || !isTimed ? 'order' : 'time';
  const [width, setWidth] = useState(0);
  const mostBins = Math.max(16, Math.min(240, Math.floor(width / 11)));
  const bins =
    axis === 'order' ? Math.max(1, Math.min(mostBins, summary.value?.nodes ?? mostBins)) : mostBins;
  const of = useAnswer<HeatAnswer>(width > 0 && summary.value ? `${path}/heat` : null, {
    layer,
    axis,
    bins,
  });
  useEffect(
    () =>
      addCommands([
        ...LAYERS.map((one, i) => ({
          keys: String(i + 1),
          what: ABOUT[one].title,
          group: 'Heatmap',
          run: () => adjust({layer: one}),
        })),
        {
          keys: 'o',
          what: 'Toggle time and order',
          group: 'Heatmap',
          run: () => adjust({axis: route.value.query['axis'] ? null : 'order'}),
        },
      ]),
    [],
  );
  return (
    <>
      <header class="screen-head">
        <h1>Heatmap</h1>
        <a class="dim" href={linkTo('debugger', name)}>
          <Line text={shortAgent(name)} most={40} />
        </a>
        <div class="heat-group" role="group" aria-label="Layer">
          {LAYERS.map((one, i) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === layer}
              disabled={one === 'time' && !isTimed}
              title={one === 'time' && !isTimed ? NO_TIMES : `${ABOUT[one].words} (${i + 1})`}
              onClick={() => adjust({layer: one})}
            >
              {ABOUT[one].title}
            </button>
          ))}
        </div>
        <div class="heat-group" role="group" aria-label="Axis">
          <button
            type="button"
            aria-pressed={axis === 'time'}
            disabled={!isTimed}
            title={isTimed ? undefined : NO_TIMES}
            onClick={() => adjust({axis: null})}
          >
            by time
          </button>
          <button
            type="button"
            aria-pressed={axis === 'order'}
            onClick={() => adjust({axis: 'order'})}
          >
            by order
          </button>
        </div>
        <span class="grow" />
        {summary.value && !summary.value.verified && <Badge tone="bad">history is invalid</Badge>}
      </header>
      <div class="heat-body">
        {summary.error && !route.value.name ? (
          <Recent screen="heatmap" title="Open a history" />
        ) : summary.error ? (
          <Failed error={summary.error} />
        ) : !summary.value ? (
          <Loading what="Opening the history" />
        ) : (
          <View
            name={name}
            summary={summary.value}
            layer={layer}
            answer={of.value}
            error={of.error}
            onWidth={setWidth}
          />
        )}
      </div>
    </>
  );
}

const focused = signal<{lane: number; bin: number} | null>(null);

function View({
  name,
  summary,
  layer,
  answer,
  error,
  onWidth,
}: {
  name: string;
  summary: Summary;
  layer: Layer;
  answer: HeatAnswer | null;
  error: Error | null;
  onWidth(width: number): void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const cells = useMemo(() => (answer ? cellsOf(answer) : []), [answer]);
  const lanes = summary.lanes.slice(0, answer?.lanes ?? summary.lanes.length);
  const at =
    focused.value &&
    (cells.find((one) => one.lane === focused.value!.lane && one.bin === focused.value!.bin) ??
      null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = (): void => onWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    focused.value = null;
  }, [name, layer]);
  const words = at && answer ? cellWords(at, answer, layer, lanes[at.lane]?.agent ?? '?') : '';
  return (
    <>
      <p class="heat-legend">
        <span>{ABOUT[layer].words}</span>
        <span class="heat-scale" aria-hidden="true">
          {[0, 0.25, 0.5, 0.75, 1].map((one) => (
            <i key={one} style={{background: mixed(one)}} />
          ))}
        </span>
        {answer && (
          <span class="dim">
            {answer.max === 0
              ? layer === 'time' && summary.time.length === 0
                ? NO_TIMES
                : ABOUT[layer].none
              : `up to ${amount(layer, answer.max)} per cell, ${amount(layer, answer.total)} in total`}
          </span>
        )}
      </p>
      {error && <Failed error={error} />}
      <div class="heat-map">
        <ul class="heat-names" aria-hidden="true" style={{paddingTop: `${RULER}px`}}>
          {lanes.map((lane, i) => (
            <li
              key={lane.agent}
              class={i === at?.lane ? 'heat-at' : ''}
              style={{height: `${ROW}px`}}
            >
              <Line text={shortAgent(lane.agent)} most={28} />
            </li>
          ))}
        </ul>
        <div ref={box} class="heat-box">
          {answer && (
            <Picture
              name={name}
              answer={answer}
              cells={cells}
              layer={layer}
              at={at}
              words={words}
              lanes={lanes.length}
            />
          )}
        </div>
      </div>
      <p class="heat-words" aria-live="polite">
        {words ||
          (answer && cells.length > 0
            ? 'Click a cell, or select it with the arrow keys and press Enter, to open it in the debugger.'
            : '')}
      </p>
      {answer && (
        <Hottest
          name={name}
          cells={hottest(cells, 12)}
          answer={answer}
          layer={layer}
          lanes={lanes.map((one) => one.agent)}
        />
      )}
    </>
  );
}

function cellWords(cell: HeatCell, answer: HeatAnswer, layer: Layer, agent: string): string {
  const start = binStart(answer, cell.bin);
  const where = answer.axis === 'order' ? `from step ${Math.ceil(start) + 1}` : time(start);
  return `${shortAgent(agent)}, ${where}: ${cell.value > 0 ? amount(layer, cell.value) : 'nothing'} in ${plural(cell.nodes, 'event')}`;
}

function mixed(share: number): string {
  return share === 0
    ? 'var(--raised)'
    : `color-mix(in srgb, var(--fork-injection) ${Math.round(12 + 88 * share)}%, var(--raised))`;
}

/** Colours of 32 steps, asked of the style sheet once for a theme. */
function palette(): string[] {
  const probe = document.createElement('canvas').getContext('2d')!;
  const parse = (text: string): number[] => {
    probe.fillStyle = text;
    const hex = String(probe.fillStyle);
    return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  };
  const cold = parse(colour('raised')),
    hot = parse(colour('fork-injection'));
  return Array.from({length: 33}, (_, i) => {
    const share = i === 0 ? 0 : 0.12 + 0.88 * (i / 32);
    return `rgb(${cold.map((one, k) => Math.round(one + (hot[k]! - one) * share)).join(' ')})`;
  });
}

function ticks(answer: HeatAnswer, width: number): {x: number; text: string}[] {
  const count = Math.max(1, Math.floor(width / 170));
  return Array.from({length: count}, (_, i) => {
    const value = answer.from + ((answer.to - answer.from) * i) / count;
    return {
      x: (width * i) / count,
      text: answer.axis === 'order' ? `step ${Math.round(value) + 1}` : time(value).slice(0, 19),
    };
  });
}

function draw(
  canvas: HTMLCanvasElement,
  answer: HeatAnswer,
  cells: readonly HeatCell[],
  at: HeatCell | null,
  lanes: number,
): void {
  const width = canvas.clientWidth,
    height = RULER + lanes * ROW,
    ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext('2d')!;
  pen.scale(ratio, ratio);
  const colours = palette(),
    cell = width / answer.bins;
  pen.font = '11px system-ui, sans-serif';
  pen.fillStyle = colour('text-2');
  for (const tick of ticks(answer, width)) pen.fillText(tick.text, tick.x + 2, 13);
  for (const one of cells) {
    pen.fillStyle = colours[Math.round(32 * strength(one.value, answer.max))]!;
    pen.fillRect(one.bin * cell, RULER + one.lane * ROW + 2, Math.max(1, cell - 1), ROW - 4);
  }
  if (!at) return;
  pen.strokeStyle = colour('text');
  pen.lineWidth = 2;
  pen.strokeRect(at.bin * cell, RULER + at.lane * ROW + 2, Math.max(2, cell - 1), ROW - 4);
}

function Picture({
  name,
  answer,
  cells,
  layer,
  at,
  words,
  lanes,
}: {
  name: string;
  answer: HeatAnswer;
  cells: readonly HeatCell[];
  layer: Layer;
  at: HeatCell | null;
  words: string;
  lanes: number;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const dark = isDark.value;
  useEffect(() => {
    if (canvas.current) draw(canvas.current, answer, cells, at, lanes);
  }, [answer, cells, at, dark, lanes]);
  const open = (cell: HeatCell | null | undefined): void => {
    if (cell) go('debugger', name, {node: `#${cell.node}`});
  };
  const under = (event: MouseEvent): HeatCell | undefined => {
    const area = canvas.current!.getBoundingClientRect();
    const bin = Math.floor(((event.clientX - area.left) / area.width) * answer.bins);
    const lane = Math.floor((event.clientY - area.top - RULER) / ROW);
    return cells.find((one) => one.lane === lane && one.bin === bin);
  };
  const key = (event: KeyboardEvent): void => {
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const move = moves[event.key];
    if (move) focused.value = step(cells, at, ...move);
    else if (event.key === 'Enter') open(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <canvas
      ref={canvas}
      class="heat-canvas"
      style={{height: `${RULER + lanes * ROW}px`}}
      tabIndex={0}
      role="application"
      aria-roledescription="heatmap"
      aria-label={`${ABOUT[layer].title}: ${words || 'use the arrow keys to select a cell and Enter to open it'}`}
      onKeyDown={key}
      onClick={(event) => open(under(event))}
      onPointerMove={(event) => (focused.value = under(event) ?? focused.value)}
    />
  );
}

function Hottest({
  name,
  cells,
  answer,
  layer,
  lanes,
}: {
  name: string;
  cells: readonly HeatCell[];
  answer: HeatAnswer;
  layer: Layer;
  lanes: readonly string[];
}) {
  if (cells.length === 0) return null;
  return (
    <section class="heat-hottest">
      <h2>Hottest</h2>
      <ol>
        {cells.map((cell) => (
          <li key={`${cell.lane}-${cell.bin}`}>
            <a href={linkTo('debugger', name, {node: `#${cell.node}`})}>
              <span class="heat-amount">
                <i style={{width: `${100 * (cell.value / answer.max)}%`}} aria-hidden="true" />
                <b>{amount(layer, cell.value)}</b>
              </span>
              <Line text={shortAgent(lanes[cell.lane] ?? '?')} most={40} />
              <span class="dim">
                {answer.axis === 'order'
                  ? `step ${Math.ceil(binStart(answer, cell.bin)) + 1}`
                  : time(binStart(answer, cell.bin)).slice(0, 19)}
              </span>
            </a>
          </li>
        ))}
      </ol>
    </section>
  );
}
