import {describe, expect, it} from 'vitest';
import {hashOf, parseRoute, type Route} from '../../src/base/router';
import {keyText, parseKey} from '../../src/base/focus';

describe('addresses', () => {
  it('go there and back', () => {
    const routes: Route[] = [
      {screen: 'inbox', name: '', query: {}},
      {screen: 'debugger', name: 'run/a b/T1', query: {node: '#7', key: 'memory.a.b&c=d'}},
      {screen: 'trace', name: 'a%2Fb', query: {agent: 'é?#'}},
    ];
    for (const route of routes) expect(parseRoute(hashOf(route))).toEqual(route);
  });

  it('come from people, too', () => {
    expect(parseRoute('')).toEqual({screen: 'inbox', name: '', query: {}});
    expect(parseRoute('#/debugger/%zz').name).toBe('%zz');
    expect(parseRoute('#debugger/all').name).toBe('all');
  });

  it('name keys with dots in them', () => {
    expect(parseKey('memory.a.b')).toEqual({section: 'memory', key: 'a.b'});
    expect(parseKey('goals')).toEqual({section: 'goals', key: null});
    expect(parseKey('nothing.x')).toBeNull();
    expect(keyText({section: 'beliefs', key: 'x.y'})).toBe('beliefs.x.y');
  });
});
