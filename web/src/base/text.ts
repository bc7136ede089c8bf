// text.ts - recorded text, made safe to display.
//
// All recorded text comes from others.  It reaches the page as text nodes only; what would
// act rather than be read (controls, escapes of a terminal, marks that turn the reading direction
// around, invisible letters) is shown as a small sign with its number instead.

export interface Piece {
  text: string;
  /** Set for a sign that stands for a character: what it is, for people. */
  sign?: string;
}

const NAMES: Record<number, string> = {
  0x00: 'NUL',
  0x07: 'BEL',
  0x08: 'BS',
  0x0b: 'VT',
  0x0c: 'FF',
  0x0d: 'CR',
  0x1b: 'ESC',
  0x7f: 'DEL',
  0xad: 'SHY',
  0x61c: 'ALM',
  0x200b: 'ZWSP',
  0x200c: 'ZWNJ',
  0x200d: 'ZWJ',
  0x200e: 'LRM',
  0x200f: 'RLM',
  0x2028: 'LS',
  0x2029: 'PS',
  0x202a: 'LRE',
  0x202b: 'RLE',
  0x202c: 'PDF',
  0x202d: 'LRO',
  0x202e: 'RLO',
  0x2060: 'WJ',
  0x2066: 'LRI',
  0x2067: 'RLI',
  0x2068: 'FSI',
  0x2069: 'PDI',
  0xfeff: 'BOM',
};

// ZWJ and ZWNJ belong to ordinary writing (emoji, Persian) and are left alone between letters.
const ACTS =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;

export function signName(text: string): string {
  const code = text.codePointAt(0) ?? 0;
  return NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Splits text into what is read as it is and signs for what is not. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  ACTS.lastIndex = 0;
  for (let match = ACTS.exec(text); match; match = ACTS.exec(text)) {
    if (match.index > at) found.push({text: text.slice(at, match.index)});
    found.push({text: match[0], sign: signName(match[0])});
    at = match.index + match[0].length;
  }
  if (at < text.length || found.length === 0) found.push({text: text.slice(at)});
  return found;
}

/** One line for titles, canvases and attributes: signs as ⟨ESC⟩, line ends as spaces. */
export function plain(text: string, most = 200): string {
  const cut = shorten(text, most);
  return (
    pieces(cut.text.replace(/[\n\r\t]+/g, ' '))
      .map((piece) => (piece.sign ? `\u27e8${piece.sign}\u27e9` : piece.text))
      .join('') + (cut.left > 0 ? '\u2026' : '')
  );
}

/** At most so many UTF-16 units, never half of a pair. */
export function shorten(text: string, most: number): {text: string; left: number} {
  if (text.length <= most) return {text, left: 0};
  let end = most;
  const last = text.charCodeAt(end - 1);
  if (last >= 0xd800 && last < 0xdc00) end--;
  return {text: text.slice(0, end), left: text.length - end};
}
