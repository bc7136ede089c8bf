// The page's keys: a dialog has the keyboard to itself, until Escape.

import {expect, test} from 'vitest';

import {addCommands, handleKey, helpIsOpen} from '../../src/base/keys';

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
