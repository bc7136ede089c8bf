// split.tsx - two panes and a divider that can be dragged, or moved with the arrow keys.

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

function storedShare(name: string, initial: number): number {
  try {
    const value = Number(localStorage.getItem(`cortex-split-${name}`));
    return value > 0.05 && value < 0.95 ? value : initial;
  } catch {
    return initial;
  }
}

export function Split({direction, name, initial, least = 0.1, children}: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [share, setShare] = useState(() => storedShare(name, initial));
  const move = (next: number): void => {
    const value = Math.max(least, Math.min(1 - least, next));
    setShare(value);
    try {
      localStorage.setItem(`cortex-split-${name}`, value.toFixed(3));
    } catch {
      // Without storage it holds until the page is closed.
    }
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
  const step = (event: KeyboardEvent): void => {
    const less = direction === 'row' ? 'ArrowLeft' : 'ArrowUp';
    const more = direction === 'row' ? 'ArrowRight' : 'ArrowDown';
    if (event.key !== less && event.key !== more) return;
    event.preventDefault();
    event.stopPropagation();
    move(share + (event.key === more ? 0.03 : -0.03));
  };
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
        aria-valuemin={5}
        aria-valuemax={95}
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
