// chart.tsx - one value of each agent by day.

import {useEffect, useRef} from 'preact/hooks';
import uPlot from 'uplot';
import {colour, isDark} from '../../base/theme';
import {ABOUT, daySeconds, type Agent, type Series} from './model';

const DAY_S = 86400;
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

function lines(
  agents: readonly Agent[],
  names: readonly string[],
  chosen: string | null,
): uPlot.Series[] {
  return agents.map((agent) => {
    const place = names.indexOf(agent.agent);
    return {
      label: agent.agent,
      spanGaps: true,
      stroke: colour(`lane-${place % 8}`),
      dash: DASHES[Math.floor(place / 8) % DASHES.length],
      width: chosen === agent.agent ? 3 : chosen ? 1 : 1.75,
      alpha: chosen && chosen !== agent.agent ? 0.35 : 1,
      points: {show: true, size: chosen === agent.agent ? 8 : 6, fill: colour(`lane-${place % 8}`)},
    };
  });
}

/** A level that means something, drawn across. */
function threshold(mark: number | undefined): uPlot.Plugin {
  return {
    hooks: {
      drawAxes: (plot) => {
        if (mark === undefined) return;
        const y = plot.valToPos(mark, 'y', true);
        if (y < plot.bbox.top || y > plot.bbox.top + plot.bbox.height) return;
        plot.ctx.save();
        plot.ctx.strokeStyle = colour('warn');
        plot.ctx.setLineDash([4, 4]);
        plot.ctx.beginPath();
        plot.ctx.moveTo(plot.bbox.left, y);
        plot.ctx.lineTo(plot.bbox.left + plot.bbox.width, y);
        plot.ctx.stroke();
        plot.ctx.restore();
      },
    },
  };
}

export function Chart({
  series,
  agents,
  names,
  days,
  chosen,
}: {
  series: Series;
  agents: readonly Agent[];
  names: readonly string[];
  days: readonly string[];
  chosen: string | null;
}) {
  const box = useRef<HTMLDivElement>(null);
  const about = ABOUT[series];
  const dark = isDark.value;
  useEffect(() => {
    const at = box.current;
    if (!at) return;
    const axis: uPlot.Axis = {
      stroke: colour('text-2'),
      grid: {stroke: colour('line'), width: 1},
      ticks: {stroke: colour('line'), width: 1},
      font: '11px system-ui, sans-serif',
    };
    const plot = new uPlot(
      {
        width: Math.max(200, at.clientWidth),
        height: 190,
        tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), 'Etc/UTC'),
        legend: {show: false},
        cursor: {show: false},
        // Half a day more on both sides: the points of the first and the last day are whole.
        scales: {
          x: {range: (_plot, low, high) => [low - DAY_S / 2, high + DAY_S / 2]},
          y: {
            range: (_plot, low, high) =>
              low === null
                ? [0, 1]
                : [Math.min(0, low), Math.max(high * 1.1, (about.mark ?? 0) * 1.15, 1)],
          },
        },
        axes: [
          {
            ...axis,
            values: (_plot, splits) =>
              splits.map((one) => new Date(one * 1000).toISOString().slice(5, 10)),
          },
          {...axis, size: 40},
        ],
        series: [{}, ...lines(agents, names, chosen)],
        plugins: [threshold(about.mark)],
      },
      [daySeconds(days), ...agents.map((agent) => agent[series])] as uPlot.AlignedData,
      at,
    );
    const observer = new ResizeObserver(() =>
      plot.setSize({width: Math.max(200, at.clientWidth), height: 190}),
    );
    observer.observe(at);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [series, agents, days, chosen, dark]);
  const empty = agents.every((agent) => agent[series].every((value) => value === null));
  return (
    <figure class="fleet-chart">
      <figcaption>
        <strong>{about.title}</strong> <span class="dim">{about.words}</span>
      </figcaption>
      {empty ? (
        <p class="dim">
          Not enough in this period:{' '}
          {series === 'capacity'
            ? 'a score needs ten decisions in thirty days'
            : 'no trace has this score'}
          .
        </p>
      ) : (
        <div
          ref={box}
          role="img"
          aria-label={`${about.title} of ${agents.length} agents by day; the table below lists the newest values`}
        />
      )}
    </figure>
  );
}
