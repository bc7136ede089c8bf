// toast.tsx - a short notice that disappears by itself.

import {signal} from '@preact/signals';

interface Toast {
  id: number;
  text: string;
  tone: 'plain' | 'bad';
}

const toasts = signal<readonly Toast[]>([]);
let next = 1;

export function say(text: string, tone: Toast['tone'] = 'plain'): void {
  const toast = {id: next++, text, tone};
  toasts.value = [...toasts.value.slice(-3), toast];
  setTimeout(() => (toasts.value = toasts.value.filter((one) => one !== toast)), 6000);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast toast-${toast.tone}`}>
          {toast.text}
        </div>
      ))}
    </div>
  );
}

/** To the clipboard, and says so. */
export function copy(text: string, what: string): void {
  navigator.clipboard.writeText(text).then(
    () => say(`${what} copied`),
    () => say('The browser does not allow copying on this page', 'bad'),
  );
}
