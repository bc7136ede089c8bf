// CRC-32 (the polynomial of zip and gzip). zlib has it from Node 20.15 and 22.2 on.
import * as zlib from 'node:zlib';

const TABLE = Uint32Array.from({length: 256}, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value >>> 0;
});

export function crc32Table(data: Uint8Array): number {
  let value = 0xffffffff;
  for (let i = 0; i < data.length; i++) value = (value >>> 8) ^ TABLE[(value ^ data[i]!) & 0xff]!;
  return (value ^ 0xffffffff) >>> 0;
}

const native = (zlib as unknown as {crc32?: (data: Uint8Array) => number}).crc32;

export const crc32: (data: Uint8Array) => number = native ?? crc32Table;
