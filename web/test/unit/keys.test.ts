// The page's keys: a dialog has the keyboard to itself, until Escape.

import {expect, test} from 'vitest';

import {addCommands, connectIsOpen, handleKey, helpIsOpen} from '../../src/base/keys';

function press(key: string): void {
  handleKey({key, preventDefault() {}} as unknown as KeyboardEvent);
}

test('keys wait while the help is open, and are heard right after Escape', () => {
  let times = 0;
  const remove = addCommands([{keys: 't', what: 'count', group: 'here', run: () => times++}]);
  press('t');
  expect(times).toBe(1);
  helpIsOpen.value = true;
  press('t');
  expect(times).toBe(1);
  press('Escape');
  expect(helpIsOpen.value).toBe(false);
  press('t');
  expect(times).toBe(2);
  remove();
  press('t');
  expect(times).toBe(2);
});

test('each dialog has the keys to itself; ? closes the help only', () => {
  let times = 0;
  const remove = addCommands([{keys: 't ?', what: 'count', group: 'here', run: () => times++}]);
  connectIsOpen.value = true;
  press('t');
  press('?');
  expect(connectIsOpen.value).toBe(true);
  press('Escape');
  expect(connectIsOpen.value).toBe(false);
  helpIsOpen.value = true;
  press('?');
  expect(helpIsOpen.value).toBe(false);
  expect(times).toBe(0);
  remove();
});

test('Escape leaves a field before the screen hears it, and keeps the focus elsewhere', () => {
  const said: string[] = [];
  const remove = addCommands([
    {keys: 'Escape', what: 'close', group: 'here', run: () => said.push('run')},
  ]);
  for (const tagName of ['INPUT', 'BUTTON'])
    handleKey({
      key: 'Escape',
      target: {tagName, blur: () => said.push(`blur ${tagName}`)},
      preventDefault() {},
    } as unknown as KeyboardEvent);
  expect(said).toEqual(['blur INPUT', 'run', 'run']);
  remove();
});
