// keys.ts - the keyboard: one list of keys and actions, which is also the help.

import {signal} from '@preact/signals';

export interface Command {
  /** As in KeyboardEvent.key, with "Shift+" or "Ctrl+" before it; several by spaces. */
  keys: string;
  what: string;
  group: string;
  run(event: KeyboardEvent): void;
}

const commands = signal<readonly Command[]>([]);
export const helpIsOpen = signal(false);
export const connectIsOpen = signal(false);
const dialogs = [helpIsOpen, connectIsOpen];

/** Adds commands until the returned function is called. */
export function addCommands(more: readonly Command[]): () => void {
  commands.value = [...commands.value, ...more];
  return () => {
    commands.value = commands.value.filter((command) => !more.includes(command));
  };
}

export function allCommands(): readonly Command[] {
  return commands.value;
}

function isTyping(event: KeyboardEvent): boolean {
  const at = event.target as HTMLElement | null;
  return !!at && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName));
}

export function spelled(event: KeyboardEvent): string {
  const held = (event.ctrlKey || event.metaKey ? 'Ctrl+' : '') + (event.altKey ? 'Alt+' : '');
  const shift = event.shiftKey && event.key.length > 1 ? 'Shift+' : '';
  return held + shift + event.key;
}

export function handleKey(event: KeyboardEvent): void {
  const typing = isTyping(event);
  if (event.defaultPrevented || (typing && event.key !== 'Escape')) return;
  const text = spelled(event);
  // A dialog has the keyboard to itself.  Escape hides it before it says that it is closed.
  const dialog = dialogs.find((one) => one.value);
  if (dialog) {
    if (text === 'Escape' || (text === '?' && dialog === helpIsOpen)) dialog.value = false;
    return;
  }
  // Escape leaves a field; a button, or a row of a list, keeps the focus.
  if (typing) (event.target as HTMLElement).blur();
  // The newest first: a screen's own keys win over the page's.
  const list = commands.value;
  for (let i = list.length; i-- > 0; ) {
    const command = list[i]!;
    if (!command.keys.split(' ').includes(text)) continue;
    event.preventDefault();
    command.run(event);
    return;
  }
}
