// registry.ts - the table of screens: adding one takes a folder here and a line in this list.

import type {ComponentType} from 'preact';
import type {IconName} from '../ui/icon';
import {Cases} from './cases/cases';
import {Compare} from './compare/compare';
import {Debugger} from './debugger/debugger';
import {Evidence} from './evidence/evidence';
import {Fleet} from './fleet/fleet';
import {Heatmap} from './heatmap/heatmap';
import {Inbox} from './inbox/inbox';
import {Live} from './live/live';
import {Nodes} from './nodes/nodes';
import {Run} from './run/run';
import {Trace} from './trace/trace';

export interface Screen {
  /** First part of the address: #/debugger/... */
  id: string;
  title: string;
  icon: IconName;
  /** In the bar at the left; others are reached by links from there. */
  inBar: boolean;
  /** Only where a part of a fleet is served. */
  ofFleet?: boolean;
  view: ComponentType;
}

export const screens: readonly Screen[] = [
  {id: 'inbox', title: 'Inbox', icon: 'inbox', inBar: true, view: Inbox},
  {id: 'live', title: 'Live', icon: 'pulse', inBar: true, view: Live},
  {id: 'debugger', title: 'Debugger', icon: 'lanes', inBar: true, view: Debugger},
  {id: 'evidence', title: 'Evidence', icon: 'shield', inBar: true, view: Evidence},
  {id: 'run', title: 'Runs', icon: 'check', inBar: true, view: Run},
  {id: 'cases', title: 'Cases', icon: 'merge', inBar: true, view: Cases},
  {id: 'trace', title: 'Traces', icon: 'lock', inBar: true, view: Trace},
  {id: 'fleet', title: 'Fleet', icon: 'fit', inBar: true, view: Fleet},
  {id: 'nodes', title: 'Nodes', icon: 'nodes', inBar: true, ofFleet: true, view: Nodes},
  {id: 'compare', title: 'Compare', icon: 'fork', inBar: true, view: Compare},
  {id: 'heatmap', title: 'Heatmap', icon: 'fold', inBar: true, view: Heatmap},
];
