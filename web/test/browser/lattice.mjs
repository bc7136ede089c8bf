// lattice.mjs - makes lattices for the tests: hash-linked nodes as docs/formats/lattice.md has them.

import {createHash} from 'node:crypto';

/** Canonical JSON (lattice.md §3.2) for what the tests put in: no doubles. */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value && typeof value === 'object')
    return `{${Object.keys(value)
      .sort()
      .map((key) => `${canonical(key)}:${canonical(value[key])}`)
      .join(',')}}`;
  return JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

export class Writer {
  lines = [];
  heads = new Map();

  add(agent, event, memory, more = {}) {
    const before = this.heads.get(agent);
    const parents = [...(before ? [before.hash] : []), ...(more.parents ?? [])];
    const prev = before?.hash ?? more.parents?.[0] ?? '0'.repeat(64);
    const seq = before ? before.seq + 1 : 0;
    const hash = createHash('sha256')
      .update(prev + canonical(event) + seq + agent + '2.0.0' + [...parents].sort().join(','))
      .digest('hex');
    this.lines.push(
      JSON.stringify({
        node_id: hash,
        agent_id: agent,
        seq,
        timestamp: more.timestamp ?? 1767600000 + this.lines.length,
        event,
        state_delta: {memory},
        prev_hash: prev,
        hash,
        parents,
        fork_type: more.fork ?? null,
      }),
    );
    this.heads.set(agent, {hash, seq});
    return hash;
  }

  text() {
    return this.lines.join('\n') + '\n';
  }
}
