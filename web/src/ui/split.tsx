// split.tsx - two panes and a divider that can be dragged, or moved with the arrow keys; and the
// same for a column of a width in pixels. Both are remembered.

import type {ComponentChildren} from 'preact';
import {useRef, useState} from 'preact/hooks';

interface Props {
  /** "row": side by side; "column": one above the other. */
  direction: 'row' | 'column';
  name: string;
  /** Share of the first pane, 0..1. */
  initial: number;
  least?: number;
  children: [ComponentChildren, ComponentChildren];
}

function stored(name: string, from: number, to: number, initial: number): number {
  try {
    const value = Number(localStorage.getItem(`cortex-split-${name}`));
    return value > from && value < to ? value : initial;
  } catch {
    return initial;
  }
}

function store(name: string, value: string): void {
  try {
    localStorage.setItem(`cortex-split-${name}`, value);
  } catch {
    // Without storage it holds until the page is closed.
  }
}

export function Split({direction, name, initial, least = 0.1, children}: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [share, setShare] = useState(() => stored(name, 0.05, 0.95, initial));
  const move = (next: number): void => {
    const value = Math.max(least, Math.min(1 - least, next));
    setShare(value);
    store(name, value.toFixed(3));
  };
  const drag = (event: PointerEvent): void => {
    const at = box.current;
    const bar = event.currentTarget as HTMLElement;
    if (!at) return;
    bar.setPointerCapture(event.pointerId);
    const area = at.getBoundingClientRect();
    bar.onpointermove = (now) =>
      move(
        direction === 'row'
          ? (now.clientX - area.left) / area.width
          : (now.clientY - area.top) / area.height,
      );
    bar.onpointerup = () => (bar.onpointermove = null);
  };
  const step = (event: KeyboardEvent): void =>
    byKey(event, direction, {
      less: () => move(share - 0.03),
      more: () => move(share + 0.03),
      least: () => move(least),
      most: () => move(1 - least),
      initial: () => move(initial),
    });
  return (
    <div ref={box} class={`split split-${direction}`}>
      <div class="split-pane" style={{flexGrow: share, flexBasis: 0}}>
        {children[0]}
      </div>
      <div
        class="split-bar"
        role="separator"
        tabIndex={0}
        aria-label={`Resize ${name}`}
        aria-orientation={direction === 'row' ? 'vertical' : 'horizontal'}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={Math.round(least * 100)}
        aria-valuemax={Math.round(100 - least * 100)}
        onPointerDown={drag}
        onKeyDown={step}
        onDblClick={() => move(initial)}
      />
      <div class="split-pane" style={{flexGrow: 1 - share, flexBasis: 0}}>
        {children[1]}
      </div>
    </div>
  );
}

type Move = 'less' | 'more' | 'least' | 'most' | 'initial';

/** Arrows move a divider, Home and End bring it to an end, Enter back to where it was at first. */
function byKey(
  event: KeyboardEvent,
  direction: 'row' | 'column',
  moves: Record<Move, () => void>,
): void {
  const keys: Record<string, Move> = {
    [direction === 'row' ? 'ArrowLeft' : 'ArrowUp']: 'less',
    [direction === 'row' ? 'ArrowRight' : 'ArrowDown']: 'more',
    Home: 'least',
    End: 'most',
    Enter: 'initial',
  };
  const move = keys[event.key];
  if (!move) return;
  event.preventDefault();
  event.stopPropagation();
  moves[move]();
}

/** A width in pixels that is remembered, and how to set it. */
export function useWidth(
  name: string,
  initial: number,
  least: number,
  most: number,
): [number, (next: number) => void] {
  const [width, set] = useState(() => stored(name, least - 1, most + 1, initial));
  return [
    width,
    (next) => {
      const value = Math.round(Math.max(least, Math.min(most, next)));
      set(value);
      store(name, String(value));
    },
  ];
}

/** The divider at the right of a column of that width. */
export function Edge({
  name,
  width,
  least,
  most,
  initial,
  move,
}: {
  name: string;
  width: number;
  least: number;
  most: number;
  initial: number;
  move: (next: number) => void;
}) {
  const drag = (event: PointerEvent): void => {
    const bar = event.currentTarget as HTMLElement;
    const start = event.clientX - width;
    bar.setPointerCapture(event.pointerId);
    bar.onpointermove = (now) => move(now.clientX - start);
    bar.onpointerup = () => (bar.onpointermove = null);
  };
  return (
    <div
      class="split-edge"
      role="separator"
      tabIndex={0}
      aria-label={`Resize ${name}`}
      aria-orientation="vertical"
      aria-valuenow={width}
      aria-valuemin={least}
      aria-valuemax={most}
      style={{left: `${width}px`}}
      onPointerDown={drag}
      onKeyDown={(event) =>
        byKey(event, 'row', {
          less: () => move(width - 16),
          more: () => move(width + 16),
          least: () => move(least),
          most: () => move(most),
          initial: () => move(initial),
        })
      }
      onDblClick={() => move(initial)}
    />
  );
}
