// wasi.ts - runs a WebAssembly program of the C library over files in memory: the part of WASI
// (preview 1) that cortex-verify uses to read files and to write lines. It has no network, no
// folder of the system and no environment; what else a program asks for is answered by "not
// supported".

export interface Asked {
  /** Without the program's own name. */
  args: readonly string[];
  /** By the name under which arguments know them. */
  files: ReadonlyMap<string, Uint8Array>;
  /** Nanoseconds since 1970. */
  now: bigint;
}

export interface Said {
  exit: number;
  stdout: string;
  stderr: string;
}

/** More than this and the program is told that there is no room. */
const OUTPUT_MAX = 64 << 20;
const FIRST_FILE = 4,
  FOLDER = 3;
const OK = 0,
  BADF = 8,
  INVAL = 28,
  NOENT = 44,
  NOSPC = 51,
  NOSYS = 52,
  SPIPE = 70;
const DEVICE = 2,
  DIRECTORY = 3,
  REGULAR = 4;

class Exit extends Error {
  constructor(readonly code: number) {
    super('exit');
  }
}

class Output {
  private readonly parts: Uint8Array[] = [];
  private size = 0;

  add(bytes: Uint8Array): boolean {
    if (this.size + bytes.length > OUTPUT_MAX) return false;
    this.parts.push(bytes.slice());
    this.size += bytes.length;
    return true;
  }

  text(): string {
    const all = new Uint8Array(this.size);
    let at = 0;
    for (const part of this.parts) {
      all.set(part, at);
      at += part.length;
    }
    return new TextDecoder().decode(all);
  }
}

class System {
  memory!: WebAssembly.Memory;
  readonly stdout = new Output();
  readonly stderr = new Output();
  private readonly args: Uint8Array[];
  private readonly open = new Map<number, {bytes: Uint8Array; at: number}>();
  private next = FIRST_FILE;

  constructor(private readonly asked: Asked) {
    const encode = (text: string): Uint8Array => new TextEncoder().encode(text + '\0');
    this.args = ['cortex-verify', ...asked.args].map(encode);
  }

  private get view(): DataView {
    return new DataView(this.memory.buffer);
  }

  private bytes(at: number, size: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, at, size);
  }

  private pieces(list: number, count: number): Uint8Array[] {
    const view = this.view;
    return Array.from({length: count}, (_, i) =>
      this.bytes(view.getUint32(list + 8 * i, true), view.getUint32(list + 8 * i + 4, true)),
    );
  }

  argsSizes = (count: number, size: number): number => {
    this.view.setUint32(count, this.args.length, true);
    this.view.setUint32(
      size,
      this.args.reduce((sum, arg) => sum + arg.length, 0),
      true,
    );
    return OK;
  };

  argsGet = (list: number, text: number): number => {
    let at = text;
    this.args.forEach((arg, i) => {
      this.view.setUint32(list + 4 * i, at, true);
      this.bytes(at, arg.length).set(arg);
      at += arg.length;
    });
    return OK;
  };

  clock = (_clock: number, _precision: bigint, out: number): number => {
    this.view.setBigUint64(out, this.asked.now, true);
    return OK;
  };

  random = (at: number, size: number): number => {
    for (let done = 0; done < size; done += 65536)
      crypto.getRandomValues(this.bytes(at + done, Math.min(65536, size - done)));
    return OK;
  };

  private kindOf(file: number): number | null {
    if (file >= 0 && file < FOLDER) return DEVICE;
    return file === FOLDER ? DIRECTORY : this.open.has(file) ? REGULAR : null;
  }

  status = (file: number, out: number): number => {
    const kind = this.kindOf(file);
    if (kind === null) return BADF;
    this.bytes(out, 24).fill(0);
    this.view.setUint8(out, kind);
    this.view.setBigUint64(out + 8, 0xffffffffn, true); // rights: what may be asked for
    this.view.setBigUint64(out + 16, 0xffffffffn, true);
    return OK;
  };

  fileStatus = (file: number, out: number): number => {
    const kind = this.kindOf(file);
    if (kind === null) return BADF;
    this.bytes(out, 64).fill(0);
    this.view.setUint8(out + 16, kind);
    this.view.setBigUint64(out + 32, BigInt(this.open.get(file)?.bytes.length ?? 0), true);
    return OK;
  };

  prestat = (file: number, out: number): number => {
    if (file !== FOLDER) return BADF;
    this.view.setUint32(out, 0, true);
    this.view.setUint32(out + 4, 1, true);
    return OK;
  };

  prestatName = (file: number, out: number, size: number): number => {
    if (file !== FOLDER || size < 1) return INVAL;
    this.view.setUint8(out, 0x2e);
    return OK;
  };

  pathOpen = (
    folder: number,
    _lookup: number,
    path: number,
    size: number,
    _how: number,
    _rights: bigint,
    _inherited: bigint,
    _flags: number,
    out: number,
  ): number => {
    if (folder !== FOLDER) return BADF;
    const bytes = this.asked.files.get(new TextDecoder().decode(this.bytes(path, size)));
    if (!bytes) return NOENT;
    this.open.set(this.next, {bytes, at: 0});
    this.view.setUint32(out, this.next++, true);
    return OK;
  };

  read = (file: number, list: number, count: number, out: number): number => {
    const from = this.open.get(file);
    if (!from && file !== 0) return BADF;
    let done = 0;
    for (const piece of from ? this.pieces(list, count) : []) {
      const part = from!.bytes.subarray(from!.at, from!.at + piece.length);
      piece.set(part);
      from!.at += part.length;
      done += part.length;
    }
    this.view.setUint32(out, done, true);
    return OK;
  };

  write = (file: number, list: number, count: number, out: number): number => {
    if (file !== 1 && file !== 2) return BADF;
    let done = 0;
    for (const piece of this.pieces(list, count)) {
      if (!(file === 1 ? this.stdout : this.stderr).add(piece)) return NOSPC;
      done += piece.length;
    }
    this.view.setUint32(out, done, true);
    return OK;
  };

  close = (file: number): number => (this.open.delete(file) ? OK : BADF);

  exit = (code: number): never => {
    throw new Exit(code);
  };

  /** By the names of WASI. */
  calls(): Record<string, (...given: never[]) => number> {
    return {
      args_get: this.argsGet,
      args_sizes_get: this.argsSizes,
      clock_time_get: this.clock,
      fd_close: this.close,
      fd_fdstat_get: this.status,
      fd_filestat_get: this.fileStatus,
      fd_prestat_dir_name: this.prestatName,
      fd_prestat_get: this.prestat,
      fd_read: this.read,
      fd_seek: () => SPIPE,
      fd_write: this.write,
      path_open: this.pathOpen,
      proc_exit: this.exit,
      random_get: this.random,
    };
  }
}

/** Runs the program from its start to its end; each run has memory of its own.  A trap is thrown. */
export async function runProgram(program: WebAssembly.Module, asked: Asked): Promise<Said> {
  const system = new System(asked);
  const known = system.calls();
  const calls: Record<string, (...given: never[]) => number> = {};
  for (const {module, name, kind} of WebAssembly.Module.imports(program)) {
    if (module !== 'wasi_snapshot_preview1' || kind !== 'function')
      throw new Error(`the program asks for ${module}.${name}, which is not part of WASI`);
    calls[name] = known[name] ?? (() => NOSYS);
  }
  const {exports} = await WebAssembly.instantiate(program, {wasi_snapshot_preview1: calls});
  system.memory = exports.memory as WebAssembly.Memory;
  let exit = 0;
  try {
    (exports._start as () => void)();
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
    exit = error.code;
  }
  return {exit, stdout: system.stdout.text(), stderr: system.stderr.text()};
}
