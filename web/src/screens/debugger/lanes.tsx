// lanes.tsx - the lanes: names at the left, the drawing at the right, times above.

import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {clock, shortAgent, time} from '../../base/format';
import {isDark} from '../../base/theme';
import {Icon} from '../../ui/icon';
import {Line} from '../../ui/text';
import {colAt, describe, draw, hit, laneHeight, palette, placeOf, RULER, type Scene} from './draw';
import type {Model} from './model';
import {axisOf, timeMarks} from './timeline';
import type {Lane} from './types';

const VERDICTS: Record<Lane['verdict'], {icon: 'check' | 'cross' | 'warn' | 'dot'; word: string}> =
  {
    valid: {icon: 'check', word: 'valid'},
    invalid: {icon: 'cross', word: 'invalid'},
    tainted: {icon: 'warn', word: 'descends from an invalid event'},
    unchecked: {icon: 'dot', word: 'not checked'},
  };

export function Lanes({model}: {model: Model}) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [size, setSize] = useState({width: 0, height: 0});
  useLayoutEffect(() => {
    const at = box.current;
    if (!at) return;
    const measure = (): void => {
      setSize({width: at.clientWidth, height: at.clientHeight});
      model.height.value = at.clientHeight;
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(at);
    return () => observer.disconnect();
  }, []);

  const scene = sceneOf(model, size);
  const dark = isDark.value;
  useEffect(() => {
    const at = canvas.current;
    const ctx = at?.getContext('2d');
    if (!at || !ctx || size.width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    at.width = Math.round(size.width * ratio);
    at.height = Math.round(size.height * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(ctx, scene, palette());
  }, [scene, dark]);
  usePointer(canvas, scene, model);

  const lanes = model.lanes.value;
  const first = Math.max(0, Math.floor(scene.scroll / scene.lane));
  const last = Math.min(lanes.length, Math.ceil((scene.scroll + size.height) / scene.lane) + 1);
  const hover = model.hover.value;
  return (
    <div class="lanes">
      <div class="lane-names" role="list" aria-label="Agents">
        {lanes.slice(first, last).map((lane, i) => {
          const index = first + i;
          const verdict = VERDICTS[lane.verdict];
          return (
            <div
              key={index}
              role="listitem"
              class={`lane-name ${model.detail.value?.lane === index ? 'lane-focus' : ''}`}
              style={{
                top: `${RULER + index * scene.lane - scene.scroll}px`,
                height: `${scene.lane}px`,
              }}
            >
              <span
                class="lane-mark"
                style={{background: `var(--lane-${index % 8})`}}
                aria-hidden="true"
              />
              <Line text={shortAgent(lane.agent)} most={60} />
              <Icon name={verdict.icon} label={verdict.word} class={`verdict-${lane.verdict}`} />
            </div>
          );
        })}
      </div>
      <div ref={box} class="lane-box">
        <canvas
          ref={canvas}
          class="lane-canvas"
          tabIndex={0}
          role="application"
          aria-label="History with one lane per agent. Use the arrow keys to move between events."
          aria-describedby="focus-words"
        />
        <Ruler scene={scene} model={model} />
        {hover && (
          <div
            class="hover"
            style={{
              left: `${Math.min(hover.x + 12, size.width - 180)}px`,
              top: `${hover.y + 14}px`,
            }}
          >
            {hover.text}
          </div>
        )}
      </div>
    </div>
  );
}

function sceneOf(model: Model, size: {width: number; height: number}): Scene {
  const {from, to} = model.view.value;
  const lanes = model.lanes.value;
  const lane = laneHeight(lanes.length, size.height);
  const most = Math.max(0, RULER + lanes.length * lane - size.height + 8);
  const near = model.isClose.value ? model.near.signal.value.value : null;
  const detail = model.detail.value;
  const writes = new Map<number, number>();
  for (const write of model.writes.signal.value.value?.changes ?? [])
    writes.set(write.n, write.col);
  return {
    width: size.width,
    height: size.height,
    from,
    to,
    scroll: Math.min(model.scroll.value, most),
    lane,
    axis: near && model.byTime.value ? axisOf(near, from, to, size.width) : null,
    lanes,
    near,
    far: model.isClose.value ? null : model.far.signal.value.value,
    focusNode: detail?.n ?? null,
    focusCol: detail?.col ?? null,
    hover: model.hover.value?.n ?? null,
    writes,
    reached: model.reached.value,
  };
}

/* --- pointer ---------------------------------------------------------------------------------- */

function usePointer(canvas: {current: HTMLCanvasElement | null}, scene: Scene, model: Model): void {
  const now = useRef(scene);
  now.current = scene;
  useEffect(() => {
    const at = canvas.current;
    if (!at) return;
    let drag: {x: number; y: number; moved: boolean; scroll: number} | null = null;
    const perPixel = (): number =>
      (now.current.to - now.current.from) / Math.max(1, now.current.width);
    const place = (event: MouseEvent): [number, number] => {
      const area = at.getBoundingClientRect();
      return [event.clientX - area.left, event.clientY - area.top];
    };
    const down = (event: PointerEvent): void => {
      if (event.button !== 0) return;
      const [x, y] = place(event);
      drag = {x, y, moved: false, scroll: now.current.scroll};
      at.setPointerCapture(event.pointerId);
      at.focus({preventScroll: true});
    };
    const move = (event: PointerEvent): void => {
      const [x, y] = place(event);
      if (drag) {
        if (!drag.moved && Math.abs(x - drag.x) + Math.abs(y - drag.y) < 4) return;
        drag.moved = true;
        model.pan((drag.x - x) * perPixel());
        model.scroll.value = Math.max(0, now.current.scroll + (drag.y - y));
        drag.x = x;
        drag.y = y;
        model.hover.value = null;
        return;
      }
      const i = hit(now.current, x, y);
      const near = now.current.near;
      at.style.cursor = i >= 0 ? 'pointer' : 'grab';
      model.hover.value =
        i >= 0 && near
          ? {n: near.nodes.n[i]!, x, y, text: describe(near, i, now.current.lanes)}
          : null;
    };
    const up = (event: PointerEvent): void => {
      const [x, y] = place(event);
      if (drag && !drag.moved) {
        const i = hit(now.current, x, y);
        const near = now.current.near;
        if (i >= 0 && near) model.select(near.nodes.n[i]!);
        else if (!near) model.zoom(0.2, colAt(now.current, x));
      }
      drag = null;
    };
    const wheel = (event: WheelEvent): void => {
      event.preventDefault();
      const [x] = place(event);
      const overflow = now.current.lanes.length * now.current.lane + RULER > now.current.height;
      if (event.ctrlKey || event.metaKey)
        model.zoom(Math.exp(Math.sign(event.deltaY) * 0.2), colAt(now.current, x));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY) || !overflow)
        model.pan((event.deltaX || event.deltaY) * perPixel());
      else model.scroll.value = Math.max(0, now.current.scroll + event.deltaY);
    };
    const leave = (): void => {
      model.hover.value = null;
    };
    at.addEventListener('pointerdown', down);
    at.addEventListener('pointermove', move);
    at.addEventListener('pointerup', up);
    at.addEventListener('pointerleave', leave);
    at.addEventListener('wheel', wheel, {passive: false});
    return () => {
      at.removeEventListener('pointerdown', down);
      at.removeEventListener('pointermove', move);
      at.removeEventListener('pointerup', up);
      at.removeEventListener('pointerleave', leave);
      at.removeEventListener('wheel', wheel);
    };
  }, [model]);
}

/* --- times ------------------------------------------------------------------------------------ */

/**
 * Every hundred pixels or so the time of the node at that position, or its number in a history
 * without times.
 */
function Ruler({scene, model}: {scene: Scene; model: Model}) {
  const near = scene.near;
  const marks: {x: number; text: string}[] = [];
  if (scene.axis) {
    marks.push(...timeMarks(scene.axis));
  } else if (near) {
    let free = 4;
    for (let i = 0; i < near.nodes.n.length; i++) {
      const x = placeOf(scene, near.nodes.n[i]!, near.nodes.col[i]!);
      const t = near.nodes.t[i];
      if (x < free || x > scene.width - 70 || t === undefined) continue;
      marks.push({
        x,
        text: t === null ? `#${near.nodes.n[i]!}` : marks.length === 0 ? time(t) : clock(t),
      });
      free = x + (marks.length === 1 ? 160 : 110);
    }
  } else {
    const [first, last] = model.summary.signal.value.value?.time ?? [];
    if (first !== undefined && last !== undefined) {
      marks.push({x: 4, text: time(first)});
      marks.push({x: scene.width - 150, text: time(last)});
    }
  }
  return (
    <div class="ruler" aria-hidden="true" style={{height: `${RULER}px`}}>
      {marks.map((mark) => (
        <span key={mark.x} style={{left: `${Math.round(mark.x)}px`}}>
          {mark.text}
        </span>
      ))}
    </div>
  );
}
