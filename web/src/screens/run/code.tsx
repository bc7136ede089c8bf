// code.tsx - a line of a file: spaces and tabs preserved, control characters as symbols.

import {count} from '../../base/format';
import {pieces, shorten} from '../../base/text';

export function CodeText({text, most}: {text: string; most: number}) {
  const cut = shorten(text, most);
  return (
    <span class="code-text" dir="ltr">
      {pieces(cut.text).map((piece, i) =>
        piece.sign ? (
          <span key={i} class="sign" title={`character ${piece.sign}`}>
            {piece.sign}
          </span>
        ) : (
          piece.text
        ),
      )}
      {cut.left > 0 && <span class="dim">{` \u2026 ${count(cut.left)} more`}</span>}
    </span>
  );
}
