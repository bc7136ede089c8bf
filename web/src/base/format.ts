// format.ts - numbers, times and hashes for display. Independent of the locale: all readers of a
// record see the same text.

export function count(value: number): string {
  return Math.trunc(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

export function plural(value: number, one: string, many = one + 's'): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  const units = ['KiB', 'MiB', 'GiB'];
  let value = size / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Seconds since 1970 in UTC, when they can be that; else the number as it is. */
export function time(seconds: number): string {
  if (!Number.isFinite(seconds)) return '\u2013';
  if (seconds < 1e8 || seconds > 4e9) return `t ${trimmed(seconds)}`;
  // To the nearest millisecond: a double of seconds is often a little below the one it stands for.
  const text = new Date(Math.round(seconds * 1000)).toISOString();
  return text.slice(0, 23).replace('T', ' ').replace('.000', '');
}

/** Without the day, where the day is known. */
export function clock(seconds: number): string {
  const full = time(seconds);
  return full.length > 11 && full[4] === '-' ? full.slice(11) : full;
}

export function trimmed(value: number): string {
  return Number.isInteger(value) ? value.toString() : Number(value.toFixed(3)).toString();
}

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds) || seconds < 0) return '\u2013';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${trimmed(Math.round(seconds * 10) / 10)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400)
    return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor(seconds / 3600) % 24} h`;
}

/** How long ago, from `now` in seconds. */
export function ago(seconds: number, now = Date.now() / 1000): string {
  const past = now - seconds;
  if (!Number.isFinite(past) || past < -5) return time(seconds);
  if (past < 5) return 'now';
  if (past < 60) return `${Math.floor(past)} s ago`;
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86400) return `${Math.floor(past / 3600)} h ago`;
  if (past < 14 * 86400) return `${Math.floor(past / 86400)} d ago`;
  return time(seconds).slice(0, 10);
}

const HEX_RUN = /(?<![0-9a-zA-Z])(?=[0-9]*[a-fA-F])[0-9a-fA-F]{16,}(?![0-9a-zA-Z])/g;
const HEX_SHOWN = 10;

/** Hashes and ids in full would hide everything else; ten digits tell them apart. Numbers stay. */
export function shortHex(text: string): string {
  return text.replace(HEX_RUN, (digits) => `${digits.slice(0, HEX_SHOWN)}\u2026`);
}

/** An id that is digits only, as ten of them. */
export function shortId(id: string): string {
  return /^[0-9a-f]{16,}$/.test(id) ? id.slice(0, HEX_SHOWN) : id;
}

/** The name of an agent for people: "agent/3fa9…" has none, so it is "agent" and ten digits. */
export function shortAgent(name: string): string {
  return name
    .replace(/^agent\/(?=[0-9a-f]{16,}$)/, 'agent ')
    .replace(/(?<![0-9a-zA-Z])[0-9a-f]{16,}(?![0-9a-zA-Z])/g, (digits) =>
      digits.slice(0, HEX_SHOWN),
    );
}
