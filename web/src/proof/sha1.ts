// sha1.ts - SHA-1 (FIPS 180-4 §6.1), for git commit ids only: it is broken for any other use.

const rotate = (x: number, by: number): number => (x << by) | (x >>> (32 - by));

function block(h: Uint32Array, view: DataView, at: number, w: Uint32Array): void {
  for (let i = 0; i < 80; i++)
    w[i] =
      i < 16
        ? view.getUint32(at + 4 * i)
        : rotate(w[i - 3]! ^ w[i - 8]! ^ w[i - 14]! ^ w[i - 16]!, 1);
  let [a, b, c, d, e] = h as unknown as [number, number, number, number, number];
  for (let i = 0; i < 80; i++) {
    const f =
      i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
    const k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
    const t = (rotate(a, 5) + f + e + k + w[i]!) | 0;
    e = d;
    d = c;
    c = rotate(b, 30);
    b = a;
    a = t;
  }
  [a, b, c, d, e].forEach((value, i) => {
    h[i] = h[i]! + value;
  });
}

export function sha1(message: Uint8Array): Uint8Array {
  const padded = new Uint8Array((message.length + 9 + 63) & ~63);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(message.length) * 8n);
  const h = Uint32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0),
    w = new Uint32Array(80);
  for (let at = 0; at < padded.length; at += 64) block(h, view, at, w);
  const out = new Uint8Array(20);
  h.forEach((word, i) => {
    new DataView(out.buffer).setUint32(4 * i, word);
  });
  return out;
}
