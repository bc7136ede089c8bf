// text.tsx - recorded text as text nodes: symbols for control characters, a truncated text with a
// button for the rest.

import {useState} from 'preact/hooks';
import {count} from '../base/format';
import {pieces, plain, shorten} from '../base/text';

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

/** The same in one short line; the whole of it on hovering, within reason. */
export function Line({text, most = 120, class: name}: Props) {
  return (
    <span
      class={`line ${name ?? ''}`}
      dir="auto"
      title={text.length > most ? plain(text, 1000) : undefined}
    >
      {pieces(shorten(text, most).text.replace(/[\n\r\t]+/g, ' ')).map((piece, i) =>
        piece.sign ? (
          <span key={i} class="sign">
            {piece.sign}
          </span>
        ) : (
          piece.text
        ),
      )}
      {text.length > most ? '\u2026' : ''}
    </span>
  );
}
