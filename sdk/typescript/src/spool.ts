// The spool: what is recorded and not delivered yet, on the disk of this machine.
//
// A *writer* is the part of one recorder; NAME is 32 random hex digits:
//
//   NAME.sock          a socket on which the owner listens as long as it lives
//   NAME.OWNER.owner   who may change the writer's files: NAME itself, or who adopted them
//   NAME.000001.seg    segments, append-only; a line each step: CRC-32 in 8 hex digits, space, JSON, LF
//   NAME.ack           "SEGMENT OFFSET": everything before it was delivered; a hint, never synced
//   rejected.jsonl     steps that the server does not take, with its reason
//
// A step is written with one write() before the call that records it returns, so a process that is
// killed loses nothing that was recorded. `fsync` decides what a machine that loses power loses. A
// part whose owner's socket refuses belongs to a process that ended (Node has no file locks; the
// system closes the socket of a process however it ends): the next one adopts and delivers it, by
// renaming the owner file, which only one can do. Sending a step twice is harmless, since the server
// takes each key once; so the ack needs no sync. Lines and segments are those of the Python SDK.
//
// S1  a line counts when its CRC is right and its LF is there; a tail without LF was never recorded
// S2  a writer's files are changed by its owner only
// S3  a segment is removed when all of it was delivered or put into rejected.jsonl
import {randomBytes} from 'node:crypto';
import * as fs from 'node:fs';
import * as net from 'node:net';
import * as path from 'node:path';
import {crc32} from './crc32.js';
import {codeOf, messageOf, UsageError} from './errors.js';

export type Fsync = 'always' | 'interval' | 'never';
export const FSYNC: readonly string[] = ['always', 'interval', 'never'];
const SEGMENT_BYTES = 4 << 20;
const REJECTED_BYTES = 16 << 20;
const LINE_BYTES = 6 << 20; // no line is longer
const STALE_SOCKET_MS = 60_000; // a socket without an owner file is being made, or is left over

/** Where a line is; `end` is the offset after it. */
export interface Place {
  segment: number;
  start: number;
  end: number;
}

export interface Line {
  place: Place;
  data: string; // canonical JSON of a step
}

/** A writer's lines as they are delivered: this recorder's own, or adopted ones. */
export interface Part {
  readonly name: string;
  readonly own: boolean;
  readonly damaged: number;
  readonly torn: number;
  readonly empty: boolean;
  read(count: number, size: number): Promise<Line[]>;
  replace(place: Place, data: string): void;
  ack(place: Place): void;
}

export interface AnySpool {
  readonly folder: string | undefined;
  readonly appended: number;
  readonly whyNot: string;
  /** Whether `sync` has something to do. */
  readonly needsSync: boolean;
  append(data: string): boolean;
  parts(): Part[];
  adopt(): Promise<void>;
  dropDelivered(): void;
  sync(): Promise<void>;
  reject(data: string, why: string): boolean;
  close(): void;
}

function placeName(place: Place): string {
  return `${place.segment}:${place.start}`;
}

/** Not mkdir's `recursive`, which never returns in some folders of /proc. */
function makeFolders(folder: string): void {
  if (fs.existsSync(folder)) return;
  const outer = path.dirname(folder);
  if (outer !== folder) makeFolders(outer);
  try {
    fs.mkdirSync(folder, {mode: 0o700});
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/** Readable by this user only; a folder of another user, or a link, is refused. */
export function makeFolder(folder: string): void {
  makeFolders(folder);
  const found = fs.lstatSync(folder);
  if (!found.isDirectory()) throw new Error(`${folder} is not a folder`);
  if (process.getuid && found.uid !== process.getuid()) {
    throw new Error(`${folder} belongs to another user`);
  }
  const probe = path.join(folder, `.probe-${process.pid}-${randomBytes(4).toString('hex')}`);
  fs.closeSync(fs.openSync(probe, 'wx', 0o600));
  fs.unlinkSync(probe);
}

function segmentPath(folder: string, name: string, number: number): string {
  return path.join(folder, `${name}.${String(number).padStart(6, '0')}.seg`);
}

function segmentsOf(folder: string, name: string): number[] {
  const found: number[] = [];
  for (const file of fs.readdirSync(folder)) {
    const match = /^([0-9a-f]{32})\.(\d+)\.seg$/.exec(file);
    if (match && match[1] === name) found.push(Number(match[2]));
  }
  return found.sort((a, b) => a - b);
}

function sizeOf(file: string): number {
  try {
    return fs.statSync(file).size;
  } catch {
    return 0;
  }
}

function removeFile(file: string): void {
  try {
    fs.unlinkSync(file);
  } catch {
    // It is gone, or stays; either is harmless (S1).
  }
}

/** The socket that shows that this recorder lives. */
class Life {
  readonly name = randomBytes(16).toString('hex');
  private readonly server: net.Server;
  private readonly folderFile: number | undefined;

  constructor(folder: string) {
    let address = path.join(folder, this.name + '.sock');
    if (Buffer.byteLength(address) > 100) {
      // Addresses of sockets are short; on Linux the folder has a short name, too.
      if (process.platform !== 'linux')
        throw new Error(`the path is too long for a socket: ${address}`);
      this.folderFile = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
      address = `/proc/self/fd/${this.folderFile}/${this.name}.sock`;
    }
    let problem: Error | undefined;
    this.server = net.createServer((socket) => socket.destroy());
    this.server.on('error', (error) => {
      problem = error;
    });
    this.server.listen({path: address, exclusive: true, backlog: 64}); // binds at once
    if (!this.server.listening) {
      if (this.folderFile !== undefined) fs.closeSync(this.folderFile);
      throw problem ?? new Error(`cannot listen on ${path.join(folder, this.name)}.sock`);
    }
    this.server.unref();
  }

  close(folder: string): void {
    this.server.close();
    removeFile(path.join(folder, this.name + '.sock'));
    if (this.folderFile !== undefined) fs.closeSync(this.folderFile);
  }
}

/** Whether the process that listens on a socket lives. Where that is not known, it does. */
async function lives(folder: string, owner: string): Promise<boolean> {
  let address = path.join(folder, owner + '.sock');
  let folderFile: number | undefined;
  if (Buffer.byteLength(address) > 100) {
    folderFile = fs.openSync(folder, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    address = `/proc/self/fd/${folderFile}/${owner}.sock`;
  }
  try {
    return await new Promise<boolean>((resolve) => {
      const socket = net.connect({path: address});
      socket.unref();
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', (error) => {
        const code = codeOf(error);
        resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT');
      });
    });
  } finally {
    if (folderFile !== undefined) fs.closeSync(folderFile);
  }
}

class DiskPart implements Part {
  segment = 1; // delivered up to here
  offset = 0;
  damaged = 0; // lines whose CRC is wrong
  torn = 0; // tails that were never recorded
  gone = false; // the segment that is written was removed
  lastSegment = 0; // how far the writer is; an adopted part does not grow
  lastEnd = 0;
  private readonly replaced = new Map<string, string>(); // what is sent in place of a line
  private ackFile: number | undefined;

  constructor(
    readonly folder: string,
    readonly name: string,
    readonly own: boolean,
  ) {
    if (!own) this.readAck();
  }

  private readAck(): void {
    const numbers = segmentsOf(this.folder, this.name);
    if (numbers.length === 0) return;
    this.segment = numbers[0]!;
    this.lastSegment = numbers[numbers.length - 1]!;
    this.lastEnd = sizeOf(this.path(this.lastSegment));
    try {
      const found = /^(\d+) (\d+)\n/.exec(
        fs.readFileSync(path.join(this.folder, this.name + '.ack'), 'latin1'),
      );
      if (found && Number(found[1]) >= this.segment) {
        this.segment = Number(found[1]);
        this.offset = Number(found[2]);
      }
    } catch {
      // It starts over: the server takes each step once.
    }
  }

  path(number: number): string {
    return segmentPath(this.folder, this.name, number);
  }

  get empty(): boolean {
    return (
      this.segment > this.lastSegment ||
      (this.segment === this.lastSegment && this.offset >= this.lastEnd)
    );
  }

  /** The next lines that are not delivered, at most `count` with about `size` bytes. */
  async read(count: number, size: number): Promise<Line[]> {
    let lines: Line[] = [];
    while (lines.length === 0 && !this.empty) {
      const last = this.segment >= this.lastSegment;
      const end = this.lastEnd;
      let data = await this.bytes(last ? end - this.offset : LINE_BYTES, size);
      if (data === undefined) {
        this.damaged++;
        this.gone = last;
        data = Buffer.alloc(0);
      }
      lines = this.lines(data, count, size);
      if (lines.length === 0) this.nextSegment(last, end, data);
    }
    return lines;
  }

  /** At least one whole line from here on, where there is one; undefined: the file was removed. */
  private async bytes(most: number, size: number): Promise<Buffer | undefined> {
    let file: fs.promises.FileHandle;
    try {
      file = await fs.promises.open(this.path(this.segment), 'r');
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    }
    try {
      const first = await readAt(file, this.offset, Math.min(most, size));
      if (first.includes(10) || first.length >= most) return first;
      const rest = await readAt(file, this.offset + first.length, most - first.length);
      return Buffer.concat([first, rest]);
    } finally {
      await file.close();
    }
  }

  private lines(data: Buffer, count: number, size: number): Line[] {
    const lines: Line[] = [];
    let at = 0;
    let taken = 0;
    let base = this.offset;
    while (lines.length < count && taken < size) {
      const end = data.indexOf(10, at);
      if (end < 0) break;
      const place: Place = {segment: this.segment, start: base + at, end: base + end + 1};
      const body = data.subarray(at + 9, end);
      const check = data.toString('latin1', at, Math.min(at + 9, end));
      at = end + 1;
      if (check !== hex8(crc32(body)) + ' ') {
        if (lines.length > 0) break; // it comes first the next time
        this.damaged++;
        this.offset = place.end;
        data = data.subarray(at);
        base = place.end;
        at = 0;
        continue;
      }
      taken += body.length;
      lines.push({place, data: this.replaced.get(placeName(place)) ?? body.toString('latin1')});
    }
    return lines;
  }

  private nextSegment(last: boolean, end: number, data: Buffer): void {
    if (data.length > 0 && data[data.length - 1] !== 10) this.torn++;
    if (last) {
      this.offset = Math.max(this.offset, end);
    } else {
      removeFile(this.path(this.segment));
      this.segment++;
      this.offset = 0;
    }
  }

  replace(place: Place, data: string): void {
    this.replaced.set(placeName(place), data);
  }

  /** Everything up to the end of this line was delivered. */
  ack(place: Place): void {
    this.segment = place.segment;
    this.offset = place.end;
    this.replaced.delete(placeName(place));
    while (this.segment < this.lastSegment && this.offset >= sizeOf(this.path(this.segment))) {
      removeFile(this.path(this.segment));
      this.segment++;
      this.offset = 0;
    }
  }

  /** Writes the ack; called once a batch. */
  saveAck(): void {
    try {
      this.ackFile ??= fs.openSync(
        path.join(this.folder, this.name + '.ack'),
        fs.constants.O_WRONLY | fs.constants.O_CREAT,
        0o600,
      );
      const text = `${String(this.segment).padStart(10, '0')} ${String(this.offset).padStart(12, '0')}\n`;
      fs.writeSync(this.ackFile, text, 0);
    } catch {
      // A hint only.
    }
  }

  /** Of its segments; not less than what waits. */
  size(): number {
    return segmentsOf(this.folder, this.name).reduce((sum, n) => sum + sizeOf(this.path(n)), 0);
  }

  /** `remove`: the files, too, since everything was delivered. */
  close(owner: string, remove: boolean): void {
    if (this.ackFile !== undefined) fs.closeSync(this.ackFile);
    this.ackFile = undefined;
    if (!remove) return;
    try {
      for (const number of segmentsOf(this.folder, this.name)) removeFile(this.path(number));
    } catch {
      // The folder is gone, and they with it.
    }
    removeFile(path.join(this.folder, this.name + '.ack'));
    removeFile(path.join(this.folder, `${this.name}.${owner}.owner`));
    if (owner !== this.name) removeFile(path.join(this.folder, this.name + '.sock'));
  }
}

async function readAt(file: fs.promises.FileHandle, offset: number, size: number): Promise<Buffer> {
  const data = Buffer.allocUnsafe(Math.max(0, size));
  let length = 0;
  while (length < data.length) {
    const {bytesRead} = await file.read(data, length, data.length - length, offset + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return data.subarray(0, length);
}

function hex8(value: number): string {
  return value.toString(16).padStart(8, '0');
}

/** This recorder's writer, and what it adopted from processes that ended. */
export class Spool implements AnySpool {
  appended = 0;
  whyNot = 'unknown'; // of the last append that failed
  private life: Life | undefined;
  private part: DiskPart | undefined;
  private adopted: DiskPart[] = [];
  private adoptedBytes = 0;
  private file: number | undefined;
  private unsynced = false;
  private syncing: Promise<void> | undefined;
  private readonly sizes = new Map<number, number>();

  constructor(
    readonly folder: string,
    private readonly limitBytes: number,
    private readonly fsync: Fsync,
  ) {
    if (process.platform === 'win32') throw new Error('a spool on the disk needs a POSIX system');
    makeFolder(folder);
    this.life = new Life(folder); // whether it works is known before anything is recorded
  }

  // --- writing ---

  /** Whether the line is written. Not: the spool is full, or the disk refused (`whyNot`). */
  append(data: string): boolean {
    try {
      const body = Buffer.from(data, 'latin1');
      const line = Buffer.concat([Buffer.from(hex8(crc32(body)) + ' ', 'latin1'), body, LF]);
      if (!this.appendLine(line)) return false;
      this.appended++;
      return true;
    } catch (error) {
      this.whyNot = `${this.folder}: ${messageOf(error)}`;
      return false;
    }
  }

  private appendLine(line: Buffer): boolean {
    const part = this.part ?? this.startPart();
    if (this.pendingBytes(part) + this.adoptedBytes + line.length > this.limitBytes) {
      this.whyNot = `the spool is full (${this.limitBytes} bytes)`;
      return false;
    }
    const full = part.lastEnd > 0 && part.lastEnd > SEGMENT_BYTES - line.length;
    const file = this.file === undefined || full || part.gone ? this.startSegment(part) : this.file;
    let written = 0;
    try {
      written = fs.writeSync(file, line);
      if (written !== line.length) throw new Error('no space left on the device');
    } catch (error) {
      if (written > 0) fs.ftruncateSync(file, part.lastEnd);
      throw error;
    }
    part.lastEnd += line.length;
    this.sizes.set(part.lastSegment, part.lastEnd);
    if (this.fsync === 'always') fs.fdatasyncSync(file);
    else this.unsynced = true;
    return true;
  }

  private startPart(): DiskPart {
    const life = (this.life ??= new Life(this.folder));
    const owner = path.join(this.folder, `${life.name}.${life.name}.owner`);
    fs.closeSync(fs.openSync(owner, 'wx', 0o600));
    this.part = new DiskPart(this.folder, life.name, true);
    return this.part;
  }

  /** After the folder was removed: it is made again, with the files that say whose the part is. */
  private renewFolder(part: DiskPart): void {
    makeFolder(this.folder);
    this.life?.close(this.folder);
    const life = (this.life = new Life(this.folder));
    fs.closeSync(
      fs.openSync(path.join(this.folder, `${part.name}.${life.name}.owner`), 'wx', 0o600),
    );
  }

  private startSegment(part: DiskPart): number {
    if (part.gone) this.renewFolder(part);
    const number = part.lastSegment + 1;
    const flags =
      fs.constants.O_WRONLY | fs.constants.O_APPEND | fs.constants.O_CREAT | fs.constants.O_EXCL;
    const file = fs.openSync(part.path(number), flags, 0o600);
    part.gone = false;
    const former = this.file;
    this.file = file;
    part.lastSegment = number;
    part.lastEnd = 0;
    this.sizes.set(number, 0);
    if (former !== undefined) {
      if (this.fsync !== 'never' && this.unsynced) fs.fdatasyncSync(former);
      this.unsynced = false;
      this.closeLater(former);
    }
    if (this.fsync !== 'never') {
      const folder = fs.openSync(this.folder, 'r'); // a new file's name is durable, too
      try {
        fs.fsyncSync(folder);
      } finally {
        fs.closeSync(folder);
      }
    }
    return file;
  }

  /** A file that is being synced is closed after that. */
  private closeLater(file: number): void {
    if (this.syncing) void this.syncing.then(() => fs.closeSync(file));
    else fs.closeSync(file);
  }

  private pendingBytes(part: DiskPart): number {
    let sum = 0;
    for (const [number, size] of this.sizes) {
      if (number < part.segment) this.sizes.delete(number);
      else sum += size;
    }
    return sum - (this.sizes.has(part.segment) ? part.offset : 0);
  }

  get needsSync(): boolean {
    return this.unsynced && this.fsync === 'interval';
  }

  /** For `fsync: 'interval'`; at most once a second, without blocking. */
  async sync(): Promise<void> {
    if (!this.needsSync || this.file === undefined || this.syncing) return;
    this.unsynced = false;
    const {file} = this;
    // What is wrong with the disk is said by the next write.
    this.syncing = new Promise((resolve) => fs.fdatasync(file, () => resolve()));
    await this.syncing;
    this.syncing = undefined;
  }

  // --- reading ---

  parts(): Part[] {
    return this.part ? [...this.adopted, this.part] : this.adopted;
  }

  /** Takes over what processes left that ended. */
  async adopt(): Promise<void> {
    const {life} = this;
    if (!life) return;
    let files: string[];
    try {
      files = await fs.promises.readdir(this.folder);
    } catch {
      return;
    }
    const owned = new Set<string>();
    for (const file of files.sort()) {
      const found = /^([0-9a-f]{32})\.([0-9a-f]{32})\.owner$/.exec(file);
      if (!found) continue;
      const [, name, owner] = found as unknown as [string, string, string];
      owned.add(owner);
      if (owner === life.name || (await lives(this.folder, owner))) continue;
      const mine = path.join(this.folder, `${name}.${life.name}.owner`);
      try {
        fs.renameSync(path.join(this.folder, file), mine); // S2: one of several succeeds
      } catch {
        continue;
      }
      if (this.life !== life) return; // closed meanwhile; the next one adopts it from here
      const part = new DiskPart(this.folder, name, false);
      if (part.empty) {
        part.close(life.name, true);
        continue;
      }
      this.adopted.push(part);
      this.adoptedBytes += part.size();
    }
    await this.removeStaleSockets(files, owned);
  }

  private async removeStaleSockets(files: string[], owned: Set<string>): Promise<void> {
    for (const file of files) {
      const owner = /^([0-9a-f]{32})\.sock$/.exec(file)?.[1];
      if (owner === undefined || owned.has(owner) || owner === this.life?.name) continue;
      const place = path.join(this.folder, file);
      try {
        if (Date.now() - fs.statSync(place).mtimeMs < STALE_SOCKET_MS) continue;
      } catch {
        continue;
      }
      if (!(await lives(this.folder, owner))) removeFile(place);
    }
  }

  dropDelivered(): void {
    for (const part of this.parts() as DiskPart[]) part.saveAck();
    const done = this.adopted.filter((part) => part.empty);
    if (done.length === 0 || !this.life) return;
    for (const part of done) part.close(this.life.name, true);
    this.adopted = this.adopted.filter((part) => !part.empty);
    this.adoptedBytes = this.adopted.reduce((sum, part) => sum + part.size(), 0);
  }

  /** Keeps what the server does not take; `why` is the JSON of its reason. */
  reject(data: string, why: string): boolean {
    const file = path.join(this.folder, 'rejected.jsonl');
    try {
      if (sizeOf(file) > REJECTED_BYTES) return false;
      const at = Math.floor(Date.now() / 1000);
      fs.appendFileSync(file, `{"at":${at},"step":${data},"why":${why}}\n`, {mode: 0o600});
      return true;
    } catch {
      return false;
    }
  }

  /** Removes the own files when all was delivered, and leaves them to the next process if not. */
  close(): void {
    const {life} = this;
    if (!life) return;
    if (this.file !== undefined) {
      try {
        if (this.unsynced && this.fsync !== 'never') fs.fdatasyncSync(this.file);
      } catch {
        // What was written is in the file as far as the disk took it.
      }
      this.closeLater(this.file);
      this.file = undefined;
    }
    for (const part of this.parts() as DiskPart[]) {
      part.saveAck();
      part.close(life.name, part.empty);
    }
    this.part = undefined;
    this.adopted = [];
    this.adoptedBytes = 0;
    this.sizes.clear();
    this.life = undefined;
    life.close(this.folder);
  }
}

const LF = Buffer.from('\n');

/** In place of a spool where no folder can be written: the same in memory, lost with the process. */
export class Queue implements AnySpool {
  readonly folder = undefined;
  readonly needsSync = false;
  appended = 0;
  whyNot = 'unknown';
  private readonly part = new MemoryPart();

  constructor(private readonly limitBytes: number) {}

  append(data: string): boolean {
    if (this.part.size + data.length > this.limitBytes) {
      this.whyNot = `the queue in memory is full (${this.limitBytes} bytes)`;
      return false;
    }
    this.part.push(data);
    this.appended++;
    return true;
  }

  parts(): Part[] {
    return [this.part];
  }

  async adopt(): Promise<void> {}
  dropDelivered(): void {}
  async sync(): Promise<void> {}

  reject(): boolean {
    return false;
  }

  close(): void {}
}

class MemoryPart implements Part {
  readonly name = 'memory';
  readonly own = true;
  readonly damaged = 0;
  readonly torn = 0;
  size = 0;
  private lines: Line[] = [];
  private next = 0;

  get empty(): boolean {
    return this.lines.length === 0;
  }

  push(data: string): void {
    this.lines.push({place: {segment: 0, start: this.next, end: this.next + 1}, data});
    this.next++;
    this.size += data.length;
  }

  async read(count: number, size: number): Promise<Line[]> {
    const taken: Line[] = [];
    let total = 0;
    for (const line of this.lines.slice(0, count)) {
      taken.push(line);
      total += line.data.length;
      if (total >= size) break;
    }
    return taken;
  }

  replace(place: Place, data: string): void {
    const at = this.lines.findIndex((line) => line.place.start === place.start);
    if (at < 0) return;
    this.size += data.length - this.lines[at]!.data.length;
    this.lines[at] = {place, data};
  }

  ack(place: Place): void {
    let count = 0;
    while (count < this.lines.length && this.lines[count]!.place.start < place.end) {
      this.size -= this.lines[count]!.data.length;
      count++;
    }
    if (count > 0) this.lines.splice(0, count);
  }
}

export function checkFsync(fsync: string): Fsync {
  if (!FSYNC.includes(fsync)) {
    throw new UsageError(`fsync: found '${fsync}', expected one of ${FSYNC.join(', ')}`);
  }
  return fsync as Fsync;
}
