// dialog.tsx - a dialog over the page: closed by Escape or its button, after which the focus is where
// it was before.

import type {Signal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {useLayoutEffect, useRef} from 'preact/hooks';

interface Props {
  /** One of `dialogs` of keys.ts, so that the page's keys wait. */
  isOpen: Signal<boolean>;
  title: string;
  /** Further buttons before the one that closes. */
  buttons?: ComponentChildren;
  children: ComponentChildren;
}

export function Dialog({isOpen, title, buttons, children}: Props) {
  const box = useRef<HTMLDialogElement>(null);
  // At once: what is opened again must be open before the closing is told, else that counts.
  useLayoutEffect(() => {
    const at = box.current!;
    if (!isOpen.value) at.close();
    else if (!at.open) at.showModal();
  }, [isOpen.value]);
  const close = (): void => {
    isOpen.value = false;
  };
  return (
    <dialog ref={box} class="help" aria-label={title} onClose={() => box.current?.open || close()}>
      <header>
        <h2>{title}</h2>
        <span class="grow" />
        {buttons}
        <button type="button" onClick={close}>
          Close
        </button>
      </header>
      {isOpen.value && children}
    </dialog>
  );
}
