// cortex-recorder: a key for an agent, and what waits in the spool of this machine.
import * as fs from 'node:fs';
import * as path from 'node:path';
import {parseArgs} from 'node:util';
import {keepAlive, spoolBase} from './client.js';
import {messageOf, NotDelivered, UsageError} from './errors.js';
import {init} from './index.js';
import {defaultKeyPath, newKey} from './keys.js';

const USAGE = `usage: cortex-recorder keygen AGENT [--file FILE]
       cortex-recorder status [--spool FOLDER]
       cortex-recorder deliver AGENT [--url URL] [--spool FOLDER] [--timeout SECONDS]

keygen   writes a new signing key of an agent (~/.config/cortex/keys/AGENT.key)
status   shows what waits in the spool
deliver  delivers what processes of an agent left
`;

interface Words {
  agent: string | undefined;
  file: string | undefined;
  url: string | undefined;
  spool: string | undefined;
  timeout: number;
}

function keygen(words: Words): number {
  const agent = words.agent ?? '';
  const file = words.file ?? defaultKeyPath(agent);
  const key = newKey(file, agent);
  console.log(`wrote ${file}`);
  console.log(
    `cortex key add --id ${key.keyId} --public-key ${key.publicKeyBase64} --agent ${agent}`,
  );
  return 0;
}

function status(words: Words): number {
  const base = spoolBase(words.spool);
  let folders: string[] = [];
  try {
    folders = fs.readdirSync(base).sort();
  } catch {
    // Nothing was recorded yet.
  }
  let shown = 0;
  for (const name of folders) {
    const folder = path.join(base, name);
    if (!fs.statSync(folder).isDirectory()) continue;
    const size = fs
      .readdirSync(folder)
      .filter((file) => file.endsWith('.seg'))
      .reduce((sum, file) => sum + fs.statSync(path.join(folder, file)).size, 0);
    const rejected = path.join(folder, 'rejected.jsonl');
    const count = fs.existsSync(rejected)
      ? fs.readFileSync(rejected, 'latin1').split('\n').length - 1
      : 0;
    console.log(`${name}: ${size} bytes in segments, ${count} rejected`);
    shown++;
  }
  if (shown === 0) console.log(`nothing waits in ${base}`);
  return 0;
}

/** Adopts what processes of the agent left, and delivers it. */
async function deliver(words: Words): Promise<number> {
  const {agent, url, spool} = words;
  const cx = init({
    ...(agent === undefined ? {} : {agent}),
    ...(url === undefined ? {} : {url}),
    ...(spool === undefined ? {} : {spoolDir: spool}),
  });
  const end = Date.now() + words.timeout * 1000;
  try {
    await keepAlive(async () => {
      while (!cx._allDelivered()) {
        if (Date.now() > end) {
          throw new NotDelivered(
            `not everything was delivered in ${words.timeout} s: ${cx._problem()}`,
            1,
          );
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    const {rejected} = cx.stats;
    console.log(`nothing waits for ${cx.agent}; ${rejected} rejected`);
    return rejected > 0 ? 1 : 0;
  } finally {
    await cx.close(0);
  }
}

async function main(): Promise<number> {
  let command: string | undefined;
  let words: Words;
  try {
    const {values, positionals} = parseArgs({
      allowPositionals: true,
      options: {
        file: {type: 'string'},
        url: {type: 'string'},
        spool: {type: 'string'},
        timeout: {type: 'string'},
        help: {type: 'boolean', short: 'h'},
      },
    });
    if (values.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    const timeout = Number(values.timeout ?? 30);
    if (!(timeout >= 0 && timeout < 1e6)) throw new UsageError('--timeout: expected seconds');
    const [found, agent, ...more] = positionals;
    command = found;
    const needsAgent = command === 'keygen' || command === 'deliver';
    if (!['keygen', 'status', 'deliver'].includes(command ?? '')) {
      throw new UsageError(
        command === undefined ? 'expected a command' : `no command '${command}'`,
      );
    }
    if (needsAgent !== (agent !== undefined) || more.length > 0) {
      throw new UsageError(
        needsAgent ? `${command}: expected one agent` : 'status: expected no agent',
      );
    }
    words = {agent, file: values.file, url: values.url, spool: values.spool, timeout};
  } catch (error) {
    process.stderr.write(`cortex-recorder: ${messageOf(error)}\n${USAGE}`);
    return 2;
  }
  try {
    if (command === 'keygen') return keygen(words);
    if (command === 'status') return status(words);
    return await deliver(words);
  } catch (error) {
    process.stderr.write(`cortex-recorder: ${messageOf(error)}\n`);
    return error instanceof UsageError ? 2 : 3;
  }
}

void main().then((code) => {
  process.exitCode = code;
});
