import {describe, expect, it} from 'vitest';
import {
  eventSign,
  eventWords,
  type FleetEvent,
  type FleetLag,
  type FleetNode,
  type FleetNodes,
  type FleetPart,
  indexLag,
  leaseLeft,
  newestNodes,
  nodeSign,
  notice,
  pageOf,
  partSign,
  tableLag,
} from '../../src/screens/nodes/model';

const part: FleetPart = {
  address: '127.0.0.1:1',
  bytes_written: 1,
  commits: 1,
  epoch: 1,
  fences: 0,
  files: 1,
  going_to: null,
  handed: 0,
  id: '00',
  lease_left_ms: 3001,
  moved: false,
  name: 'main',
  node: 'n1',
  part: 0,
  quota_bytes: null,
  served: true,
  stopped: false,
  stored_bytes: null,
};
const node: FleetNode = {
  address: '127.0.0.1:1',
  connections: null,
  draining: false,
  node: 'n1',
  part: 'main',
  role: 'serves',
  silent_ms: 100,
  state: 'up',
  up_ms: 5000,
  version: '1',
};
const event: FleetEvent = {
  ago_ms: 1,
  at: '2026-11-29T05:00:00.000Z',
  detail: null,
  ended_lease: false,
  epoch: 2,
  kind: 'take',
  node: 'n1',
  part: 'main',
};
const fleet: FleetNodes = {
  age_ms: 100,
  away: false,
  connections: null,
  events: [],
  fleet: '00',
  lag: null,
  node: 'n1',
  nodes: [],
  part: 'main',
  parts: [],
  strict: true,
};

describe('nodes', () => {
  it('says what a part and a node do, the worst first', () => {
    const word = (more: Partial<FleetPart>) => partSign({...part, ...more}).word;
    expect(word({})).toBe('served');
    expect(word({served: false})).toBe('opening');
    expect(word({served: false, node: null})).toBe('no owner');
    expect(word({moved: true, served: false})).toBe('moved');
    expect(word({stopped: true})).toBe('stopped');
    const state = (more: Partial<FleetNode>) => nodeSign({...node, ...more}).word;
    expect(state({})).toBe('serving');
    expect(state({role: 'opens'})).toBe('opening');
    expect(state({role: 'waits'})).toBe('waiting');
    expect(state({state: 'drains'})).toBe('draining');
    expect(state({state: 'silent', role: null, draining: true})).toBe('silent');
  });

  it('counts what is left of a lease down only when rows are old', () => {
    expect(leaseLeft(part, 2000)).toBe('4 s');
    expect(leaseLeft(part, 8000)).toBe('\u2013');
    expect(leaseLeft({...part, lease_left_ms: 0}, 0)).toBe('\u2013');
  });

  it('shows a node once that was started again', () => {
    const old = {...node, state: 'silent' as const, up_ms: 90000};
    expect(newestNodes([old, node])).toEqual([node]);
    expect(newestNodes([node, old])).toEqual([node]);
    expect(newestNodes([node, {...node, part: 'team'}])).toHaveLength(2);
  });

  it('tells events in sentences, and knows none of a later server', () => {
    expect(eventWords(event)).toBe('n1 took main, which was free');
    expect(eventWords({...event, ended_lease: true})).toContain('lease of its owner ran out');
    expect(eventWords({...event, node: null, kind: 'moved'})).toBe(
      'main was moved to another database',
    );
    expect(eventWords({...event, kind: 'stopped', detail: '{node}'})).toBe(
      'n1 stopped main: {node}',
    );
    expect(eventWords({...event, node: '{part}'})).toBe('{part} took main, which was free');
    expect(eventWords({...event, kind: 'other'})).toBe('n1, main');
    expect(eventSign({...event, kind: 'other'})).toEqual({word: 'other', tone: 'plain'});
  });

  it('compares tables and index with the log', () => {
    const lag: FleetLag = {
      index_away: false,
      index_commits: 9,
      log_commits: 10,
      table_commits: 10,
      tables_age_ms: null,
    };
    expect(tableLag(lag).word).toBe('current');
    expect(indexLag(lag).word).toBe('lags by 1 commit');
    // An index may be asked for a moment later than the log.
    expect(indexLag({...lag, index_commits: 11}).word).toBe('current');
    expect(indexLag({...lag, index_away: true}).tone).toBe('bad');
  });

  it('says when what is shown is not what is now', () => {
    expect(notice(fleet, 2000, null)).toBeNull();
    expect(notice(fleet, 9000, null)?.words).toContain('9 s ago');
    expect(notice({...fleet, away: true}, 9000, null)?.title).toContain('database');
    expect(notice({...fleet, age_ms: null}, 0, null)?.words).not.toContain('old');
    expect(notice(fleet, 9000, 'No route.')?.words).toMatch(/^No route\. What is shown is 9 s old/);
  });

  it('links only to what a browser opens, and to no other place', () => {
    const here = {protocol: 'https:', host: '10.0.0.1:8420'};
    expect(pageOf('10.0.0.2:8420', here)).toBe('https://10.0.0.2:8420/#/nodes');
    expect(pageOf('[fd00::1]:8420', here)).toBe('https://[fd00::1]:8420/#/nodes');
    for (const address of [
      '10.0.0.1:8420',
      '0.0.0.0:8420',
      '[::]:8420',
      'evil.example/x:1',
      'user@evil.example:1',
      '',
    ])
      expect(pageOf(address, here)).toBeNull();
  });
});
