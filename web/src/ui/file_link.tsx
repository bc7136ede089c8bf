// file_link.tsx - what is inside, as a link to a file in the chosen editor when there is one.

import type {ComponentChildren} from 'preact';
import {EDITORS, editor, editorLink} from '../base/editor';

interface Props {
  path: string;
  line?: number | null;
  /** The folder that the path must be below; null: none is known. */
  root: string | null | undefined;
  /** One of many, next to one that the keyboard reaches. */
  isQuiet?: boolean;
  children: ComponentChildren;
}

export function FileLink({path, line = null, root, isQuiet = false, children}: Props) {
  const link = editorLink(path, line, root);
  if (link === null) return <>{children}</>;
  return (
    <a
      class="file-link"
      href={link}
      title={`Open in ${EDITORS[editor.value]}`}
      rel="noreferrer"
      tabIndex={isQuiet ? -1 : undefined}
      onClick={(event) => event.stopPropagation()}
    >
      {children}
    </a>
  );
}
