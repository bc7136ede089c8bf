// list.tsx - a list that renders only its visible rows; arrow keys, Home, End, Enter.

import type {ComponentChildren} from 'preact';
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';

interface Props<T> {
  items: readonly T[];
  rowHeight: number;
  label: string;
  render(item: T, index: number, isActive: boolean): ComponentChildren;
  keyOf(item: T, index: number): string;
  active?: number;
  onActive?(index: number): void;
  onOpen?(index: number): void;
  /** Called when the end comes near. */
  onEnd?(): void;
  class?: string;
}

const BEYOND = 8;

export function VirtualList<T>(props: Props<T>) {
  const {items, rowHeight} = props;
  const box = useRef<HTMLDivElement>(null);
  const [window_, setWindow] = useState({top: 0, height: 600});
  const active = props.active ?? -1;

  const measure = (): void => {
    const at = box.current;
    if (at) setWindow({top: at.scrollTop, height: at.clientHeight || 600});
  };
  useLayoutEffect(() => {
    measure();
    if (!box.current || typeof ResizeObserver === 'undefined') return;
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const at = box.current;
    if (!at || active < 0) return;
    const top = active * rowHeight;
    if (top < at.scrollTop) at.scrollTop = top;
    else if (top + rowHeight > at.scrollTop + at.clientHeight)
      at.scrollTop = top + rowHeight - at.clientHeight;
  }, [active]);

  const first = Math.max(0, Math.floor(window_.top / rowHeight) - BEYOND);
  const last = Math.min(
    items.length,
    Math.ceil((window_.top + window_.height) / rowHeight) + BEYOND,
  );
  useEffect(() => {
    if (last >= items.length) props.onEnd?.();
  }, [last, items.length]);

  const step = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor(window_.height / rowHeight) - 1);
    const moves: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: items.length - 1,
    };
    const to = moves[event.key];
    if (to !== undefined && items.length > 0) {
      props.onActive?.(Math.max(0, Math.min(items.length - 1, to)));
    } else if (event.key === 'Enter' && active >= 0) {
      props.onOpen?.(active);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const rows = [];
  for (let i = first; i < last; i++) {
    const item = items[i]!;
    rows.push(
      // biome-ignore lint/a11y/useKeyWithClickEvents: the list takes the keys of its rows
      <div
        key={props.keyOf(item, i)}
        id={`${props.label}-${i}`.replace(/\W+/g, '-')}
        role="option"
        aria-selected={i === active}
        aria-setsize={items.length}
        aria-posinset={i + 1}
        class={`row ${i === active ? 'row-active' : ''}`}
        style={{transform: `translateY(${i * rowHeight}px)`, height: `${rowHeight}px`}}
        onClick={() => {
          props.onActive?.(i);
          props.onOpen?.(i);
        }}
      >
        {props.render(item, i, i === active)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class={`list ${props.class ?? ''}`}
      role="listbox"
      tabIndex={0}
      aria-label={props.label}
      onScroll={measure}
      onKeyDown={step}
      aria-activedescendant={
        active >= first && active < last
          ? `${props.label}-${active}`.replace(/\W+/g, '-')
          : undefined
      }
    >
      <div class="list-room" role="presentation" style={{height: `${items.length * rowHeight}px`}}>
        {rows}
      </div>
    </div>
  );
}
