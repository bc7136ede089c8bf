// text.tsx - recorded text as text nodes: symbols for control characters, a truncated text with a
// button for the rest.

import {useState} from 'preact/hooks';
import {count, shortHex} from '../base/format';
import {pieces, plain, shorten} from '../base/text';
import {copy} from './toast';

interface Props {
  text: string;
  /** Units shown until the user expands the text. */
  most?: number;
  class?: string;
}

/** Text from a record. */
export function Text({text, most = 2000, class: name}: Props) {
  const [limit, setLimit] = useState(most);
  const cut = shorten(text, limit);
  return (
    <span class={name} dir="auto">
      {pieces(cut.text).map((piece, i) =>
        piece.sign ? (
          <span key={i} class="sign" title={`character ${piece.sign}`}>
            {piece.sign}
          </span>
        ) : (
          piece.text
        ),
      )}
      {cut.left > 0 && (
        <button
          type="button"
          class="more"
          onClick={(event) => {
            event.stopPropagation();
            setLimit(limit * 10);
          }}
        >
          {`\u2026 ${count(cut.left)} more`}
        </button>
      )}
    </span>
  );
}

/** The same in one short line, hashes as ten digits; the whole of it on hovering, within reason. */
export function Line({text, most = 120, class: name}: Props) {
  const shown = shortHex(text.slice(0, most * 4));
  return (
    <span
      class={`line ${name ?? ''}`}
      dir="auto"
      title={text.length > most || shown !== text ? plain(text, 1000) : undefined}
    >
      {pieces(shorten(shown, most).text.replace(/[\n\r\t]+/g, ' ')).map((piece, i) =>
        piece.sign ? (
          <span key={i} class="sign">
            {piece.sign}
          </span>
        ) : (
          piece.text
        ),
      )}
      {shown.length > most ? '\u2026' : ''}
    </span>
  );
}

/** A hash or an id: ten digits of it, all on hovering and to copy. */
export function Digest({text, what = 'Hash'}: {text: string; what?: string}) {
  return (
    <button
      type="button"
      class="link mono digest"
      title={`Copy ${plain(text, 300)}`}
      onClick={(event) => {
        event.stopPropagation();
        copy(text, what);
      }}
    >
      {plain(shortHex(text), 80)}
    </button>
  );
}
