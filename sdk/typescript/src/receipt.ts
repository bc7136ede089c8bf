// What flush() returns.
import * as fs from 'node:fs';
import {UsageError} from './errors.js';

export interface ReceiptMembers {
  agent: string;
  /** Steps of this process that are durable. */
  delivered: number;
  /** Steps that the server did not take. */
  rejected: number;
  /** Steps that were not recorded at all. */
  dropped: number;
  /** Of the newest step's node; absent when nothing was recorded. */
  hash?: string;
  /** Its number in the agent's history. */
  seq?: number;
  /** Its number in the journal. */
  entry?: number;
  /** The root of the journal that the proof leads to. */
  root?: string;
  /** How many entries that journal has. */
  size?: number;
  leaf?: string;
  /** Inclusion proof (docs/formats/proof.md). */
  proof?: Uint8Array;
  /** A signed checkpoint of that journal, if the server has one. */
  checkpoint?: string;
  /** Why there is no proof. */
  unproven?: string;
}

/** What the server said about the newest step, and a proof of it for cortex-verify. */
export class Receipt implements ReceiptMembers {
  readonly agent: string;
  readonly delivered: number;
  readonly rejected: number;
  readonly dropped: number;
  declare readonly hash?: string;
  declare readonly seq?: number;
  declare readonly entry?: number;
  declare readonly root?: string;
  declare readonly size?: number;
  declare readonly leaf?: string;
  declare readonly proof?: Uint8Array;
  declare readonly checkpoint?: string;
  declare readonly unproven?: string;

  constructor(members: ReceiptMembers) {
    this.agent = members.agent;
    this.delivered = members.delivered;
    this.rejected = members.rejected;
    this.dropped = members.dropped;
    Object.assign(this, members);
  }

  /** Writes the proof (and FILE.checkpoint) and returns the command that checks it. */
  save(file: string): string {
    if (this.proof === undefined) {
      throw new UsageError(`there is no proof to save: ${this.unproven ?? 'unknown'}`);
    }
    fs.writeFileSync(file, this.proof);
    if (this.checkpoint === undefined) {
      return `cortex-verify --root ${this.root} --size ${this.size} --leaf ${this.leaf} ${file}`;
    }
    fs.writeFileSync(file + '.checkpoint', this.checkpoint);
    return `cortex-verify --key KEY --checkpoint ${file}.checkpoint --leaf ${this.leaf} ${file}`;
  }
}
