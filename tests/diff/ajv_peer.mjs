// ajv_peer.mjs check | rate DRAFT SCHEMA INSTANCES SECONDS - ajv's opinion, for schema_diff.py and
// bench_schema.  $CORTEX_PEERS holds node_modules (scripts/fetch-peers.sh).
//
// check: each line of standard input is {draft, schema, instances}; each line of the answer is
// {valid: [..]} or {error}.  rate: checks the instances of a file (an array) again and again with the
// compiled schema, and prints how many a second, once warm.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const require = createRequire(process.env.CORTEX_PEERS + '/');
const options = { strict: false, validateFormats: false, allErrors: false, logger: false };

function make(draft, more) {
  const Ajv = require(draft === '07' ? 'ajv' : 'ajv/dist/2020.js').default;
  return new Ajv({ ...options, ...more });
}

const makers = new Map();

function answer({ draft, schema, instances }) {
  try {
    if (!makers.has(draft)) makers.set(draft, make(draft));
    const ajv = makers.get(draft);
    const check = ajv.compile(schema);
    ajv.removeSchema(schema);
    return { valid: instances.map((instance) => check(instance)) };
  } catch (error) {
    return { error: String(error.message ?? error) };
  }
}

function rate(draft, schemaFile, instancesFile, seconds) {
  const ajv = make(draft, { validateFormats: true });
  require('ajv-formats').default(ajv, ['date-time']);
  const check = ajv.compile(JSON.parse(readFileSync(schemaFile)));
  const instances = JSON.parse(readFileSync(instancesFile));
  const once = () => { for (const instance of instances) valid += check(instance) ? 1 : 0; };
  let valid = 0;
  const until = (end) => {
    let rounds = 0;
    const start = process.hrtime.bigint();
    let took = 0;
    for (; took < end; took = Number(process.hrtime.bigint() - start) / 1e9, rounds += 100)
      for (let i = 0; i < 100; i++) once();
    return rounds * instances.length / took;
  };
  until(0.5);
  valid = 0;
  once();
  const all = valid;
  console.log(JSON.stringify({ rate: until(Number(seconds)), valid: all }));
}

if (process.argv[2] === 'rate') {
  rate(...process.argv.slice(3));
} else {
  for await (const line of createInterface({ input: process.stdin }))
    console.log(JSON.stringify(answer(JSON.parse(line))));
}
