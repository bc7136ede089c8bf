// icon.tsx - the icons of the page; shapes differ, so colour is never the only difference.

const PATHS = {
  check: 'M3 8.5l3.2 3.2L13 4.8',
  cross: 'M4 4l8 8M12 4l-8 8',
  warn: 'M8 2.5l6 11H2zM8 6.5v3.2M8 11.6v.4',
  fork: 'M4 13V3M4 8c0-3 3-3 8-3M9.5 2.5L12 5l-2.5 2.5',
  merge: 'M12 13V3M12 8c0-3-3-3-8-3',
  prev: 'M10 3L5 8l5 5',
  next: 'M6 3l5 5-5 5',
  up: 'M3 10l5-5 5 5',
  down: 'M3 6l5 5 5-5',
  sun: 'M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.2 1.2M11.8 11.8L13 13M13 3l-1.2 1.2M4.2 11.8L3 13',
  moon: 'M13.5 9.8A6 6 0 016.2 2.5a6 6 0 107.3 7.3z',
  search: 'M7 2.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9zM10.3 10.3L14 14',
  help: 'M5.5 6a2.5 2.5 0 114 2c-1 .7-1.5 1.1-1.5 2M8 12.4v.4',
  key: 'M5 5.5a2.5 2.5 0 100 5 2.5 2.5 0 000-5zM7.5 8H14v2.5M11.5 8v2',
  dot: 'M8 5.2a2.8 2.8 0 100 5.6 2.8 2.8 0 000-5.6z',
  lanes: 'M2 4h12M2 8h12M2 12h12M5 4v4M10 8v4',
  inbox: 'M2 9l2-6h8l2 6v4H2zM2 9h3.5a2.5 2.5 0 005 0H14',
  out: 'M9 3h4v4M13 3L7.5 8.5M11 9.5V13H3V5h3.5',
  fold: 'M3 8h2M7 8h2M11 8h2',
  pulse: 'M2 8h3l2-5 3 10 2-5h2',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  fit: 'M2 8h12M4.5 5.5L2 8l2.5 2.5M11.5 5.5L14 8l-2.5 2.5',
  clock: 'M8 2a6 6 0 100 12A6 6 0 008 2zM8 4.5V8l2.4 1.6',
  shield: 'M8 1.8l5.2 2v3.9c0 3-2.2 5.300-5.200 6.500-3-1.200-5.200-3.500-5.200-6.500V3.800z',
  stop: 'M5.600 2h4.800L14 5.600v4.800L10.400 14H5.600L2 10.400V5.600z',
  nodes:
    'M8 2a1.500 1.500 0 100 3 1.500 1.500 0 000-3zM3.500 11a1.500 1.500 0 100 3 1.500 1.500 0 000-3zM12.500 11a1.500 1.500 0 100 3 1.500 1.500 0 000-3zM7.300 5l-3 6M8.700 5l3 6M5 12.500h6',
  lock: 'M4 7.500h8v6H4zM5.500 7.500V5.200a2.500 2.500 0 015 0v2.300',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({name, label, class: more}: {name: IconName; label?: string; class?: string}) {
  return (
    <svg
      class={`icon ${more ?? ''}`}
      viewBox="0 0 16 16"
      width="16"
      height="16"
      role={label ? 'img' : undefined}
      aria-label={label}
      aria-hidden={label ? undefined : 'true'}
    >
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
