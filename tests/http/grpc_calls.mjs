// Makes calls on one HTTP/2 connection, as standard input says, and prints what came back.
//
//     {"port": N, "calls": [{"path", "method", "headers", "parts": [hex], "end": bool, "reset": bool}]}
//
// All calls are open at once.  `end` false leaves the request open; `reset` resets it at once.  With
// `stop`, a number, that process gets SIGTERM after the first part of each call, and the rest follows.
import http2 from 'node:http2';
import { readFileSync } from 'node:fs';

const asked = JSON.parse(readFileSync(0, 'utf8'));
const session = http2.connect(`http://127.0.0.1:${asked.port}`);
const events = [];
session.on('goaway', (code) => events.push(`goaway ${code}`));
session.on('error', () => {});

const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function call(one) {
    return new Promise((resolve) => {
        const answer = { headers: {}, trailers: {}, body: '', reset: null };
        const stream = session.request({
            ':method': one.method ?? 'POST', ':path': one.path, te: 'trailers',
            'content-type': 'application/grpc', ...one.headers,
        }, { endStream: false });
        const chunks = [];
        const finish = () => {
            answer.body = Buffer.concat(chunks).toString('hex');
            resolve(answer);
        };
        const timer = setTimeout(() => {
            answer.reset = 'no answer';
            stream.close(8);
        }, 20000);
        stream.on('response', (headers) => Object.assign(answer.headers, headers));
        stream.on('trailers', (headers) => Object.assign(answer.trailers, headers));
        stream.on('data', (chunk) => chunks.push(chunk));
        stream.on('error', () => {});
        stream.on('close', () => {
            clearTimeout(timer);
            answer.reset ??= stream.rstCode;
            finish();
        });
        const parts = one.parts ?? [];
        const send = async () => {
            for (const [at, part] of parts.entries()) {
                if (at > 0 && asked.stop) await later(300);
                if (!stream.destroyed) stream.write(Buffer.from(part, 'hex'));
                if (at === 0 && asked.stop) {
                    await later(200);
                    process.kill(asked.stop, 'SIGTERM');
                }
            }
            if (one.reset) stream.close(8);
            else if (one.end !== false && !stream.destroyed) stream.end();
        };
        send();
    });
}

const answers = await Promise.all(asked.calls.map(call));
session.destroy();
console.log(JSON.stringify({ answers, events }));
