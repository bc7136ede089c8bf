// timeline.ts - nodes of a window by their times: where each is, how long it took, and what the
// ruler says. Pure.

import {clock, duration, time} from '../../base/format';
import type {Window} from './types';

export interface Span {
  began: number;
  ended: number;
}

/** When a node began and ended, in seconds; null where that was not recorded. */
export function spanOf(near: Window, i: number): Span | null {
  const began = near.nodes.span?.[2 * i];
  const ended = near.nodes.span?.[2 * i + 1];
  return typeof began === 'number' && typeof ended === 'number' && ended >= began
    ? {began, ended}
    : null;
}

/** "2.3 s", or nothing where it is not known or too short to be said. */
export function tookWords(span: Span | null): string {
  return span && span.ended - span.began >= 0.0005 ? duration(span.ended - span.began) : '';
}

export interface Axis {
  /** Seconds at the left and at the right edge. */
  from: number;
  to: number;
  /** Of each node in view or next to it, by its number, in pixels. */
  x: ReadonlyMap<number, number>;
  width: number;
}

const EDGE_ROOM = 28;

/** Pixels of the times of what stands in the columns from .. to; null where there are no times. */
export function axisOf(near: Window, from: number, to: number, width: number): Axis | null {
  const {nodes} = near;
  let first = Infinity;
  let last = -Infinity;
  nodes.col.forEach((col, i) => {
    const t = nodes.t[i];
    if (typeof t !== 'number' || col < from || col > to) return;
    const span = spanOf(near, i);
    first = Math.min(first, t, span?.began ?? t);
    last = Math.max(last, t, span?.ended ?? t);
  });
  if (first > last || width <= 2 * EDGE_ROOM) return null;
  if (first === last) {
    first -= 0.5;
    last += 0.5;
  }
  const per = (last - first) / (width - 2 * EDGE_ROOM);
  const axis = {from: first - EDGE_ROOM * per, to: last + EDGE_ROOM * per, x: new Map(), width};
  nodes.n.forEach((n, i) => {
    const t = nodes.t[i];
    if (typeof t === 'number') axis.x.set(n, xAt(axis, t));
  });
  return axis;
}

export function xAt(axis: {from: number; to: number; width: number}, seconds: number): number {
  return ((seconds - axis.from) / (axis.to - axis.from)) * axis.width;
}

const STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
  1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800,
];

/** Round times at least 120 pixels apart; the first one is told with its day. */
export function timeMarks(axis: Axis): {x: number; text: string}[] {
  const wanted = ((axis.to - axis.from) / axis.width) * 120;
  const step = STEPS.find((one) => one >= wanted) ?? Math.ceil(wanted / 604800) * 604800;
  const marks: {x: number; text: string}[] = [];
  let free = 4;
  for (let i = Math.ceil(axis.from / step); i * step < axis.to; i++) {
    const x = xAt(axis, i * step);
    if (x < free || x > axis.width - 70) continue;
    const seconds = Math.round(i * step * 1000) / 1000;
    marks.push({x, text: marks.length === 0 ? time(seconds) : clock(seconds)});
    free = x + (marks.length === 1 ? 175 : 110);
  }
  return marks;
}

/** How deep a bar lies in the bars of its lane that it is inside of: 0, 1, 2. */
export function depths(near: Window): number[] {
  const open = new Map<number, number[]>();
  const order = near.nodes.n.map((_, i) => i);
  const began = (i: number): number => spanOf(near, i)?.began ?? Infinity;
  const found = new Array<number>(order.length).fill(0);
  for (const i of order.sort((a, b) => began(a) - began(b) || a - b)) {
    const span = spanOf(near, i);
    if (!span) continue;
    const lane = near.nodes.lane[i]!;
    const around = (open.get(lane) ?? []).filter((end) => end > span.began);
    found[i] = Math.min(2, around.length);
    around.push(span.ended);
    open.set(lane, around);
  }
  return found;
}
