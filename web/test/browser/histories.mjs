// histories.mjs - small histories that tests and pictures share: durations, errors, images.

import {deflateSync} from 'node:zlib';
import {Writer} from './lattice.mjs';

/** A call that took long, one that failed inside of it, and answers that say how long the call took. */
export function timed() {
  const writer = new Writer();
  const at = 1767600000;
  const add = (agent, event, seconds) => writer.add(agent, event, {}, {timestamp: at + seconds});
  add('planner', {kind: 'message', role: 'user', text: 'Look it up.'}, 0);
  add('planner', {kind: 'tool_call', tool: 'search', call_id: 'c1', arguments: {q: 'x'}}, 1);
  add('tools', {kind: 'tool_result', call_id: 'c1', result: 'none', error: 'no network'}, 4);
  add('planner', {kind: 'message', role: 'assistant', text: 'Again.'}, 5);
  add('planner', {kind: 'tool_call', tool: 'fetch', duration_ns: 1500000000, status: 'error'}, 9);
  add('planner', {kind: 'message', role: 'assistant', text: 'I give up.'}, 10);
  return writer.text();
}

function crc(bytes) {
  let sum = -1;
  for (const byte of bytes) {
    sum ^= byte;
    for (let k = 0; k < 8; k++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}

/** A picture in base64 that people can see: colours from one corner to the other. */
function png(width, height) {
  const chunk = (name, data) => {
    const inner = Buffer.concat([Buffer.from(name), data]);
    const out = Buffer.alloc(inner.length + 8);
    out.writeUInt32BE(data.length);
    inner.copy(out, 4);
    out.writeUInt32BE(crc(inner), inner.length + 4);
    return out;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.alloc((width * 3 + 1) * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      rows.set([(255 * x) / width, 120, (255 * y) / height], y * (width * 3 + 1) + 1 + x * 3);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]).toString('base64');
}

export const PICTURE = {width: 240, height: 120};
/** An image that would run a script where it is shown as a document, and says that it is a picture. */
const EVIL = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1</script></svg>',
).toString('base64');

/** A session whose messages contain images, as Claude Code, MCP and OpenAI have them. */
export function pictured() {
  const writer = new Writer();
  const picture = png(PICTURE.width, PICTURE.height);
  const image = (media_type, data) => ({type: 'image', source: {type: 'base64', media_type, data}});
  writer.add(
    'person',
    {
      role: 'user',
      text: 'What is on this?',
      images: 1,
      raw: {content: [image('image/png', picture)]},
    },
    {},
  );
  const part = {type: 'image_url', image_url: {url: `data:image/png;base64,${picture}`}};
  writer.add(
    'person',
    {
      role: 'user',
      text: 'And on these?',
      images: 3,
      raw: {
        content: [
          image('image/png', EVIL),
          part,
          part,
          {type: 'image_url', image_url: 'https://example.com/x.png'},
        ],
      },
    },
    {},
  );
  return writer.text();
}
