// json.ts - canonical JSON from the server, read without changing it: a number keeps its digits (a
// double would round 9007199254740993), a truncated text is read as far as it goes.

export type Json =
  | {kind: 'string'; text: string}
  | {kind: 'number' | 'word'; text: string}
  | {kind: 'array'; items: Json[]}
  | {kind: 'object'; members: [string, Json][]}
  | {kind: 'cut'; text: string};

const DEPTH = 2000;

class Reader {
  at = 0;

  constructor(readonly text: string) {}

  value(depth: number): Json {
    this.blank();
    const c = this.text[this.at];
    if (c === undefined || depth > DEPTH) return this.cut();
    if (c === '"') {
      const text = this.string();
      return text === null ? this.cut() : {kind: 'string', text};
    }
    if (c === '[') return this.array(depth);
    if (c === '{') return this.object(depth);
    const match = /[-+0-9.eEa-zA-Z]+/y;
    match.lastIndex = this.at;
    const word = match.exec(this.text)?.[0];
    if (!word) return this.cut();
    this.at += word.length;
    return {kind: /^[-0-9]/.test(word) ? 'number' : 'word', text: word};
  }

  private cut(): Json {
    const text = this.text.slice(this.at);
    this.at = this.text.length;
    return {kind: 'cut', text};
  }

  private blank(): void {
    while (' \t\r\n'.includes(this.text[this.at] ?? '-')) this.at++;
  }

  private string(): string | null {
    const match = /"(?:[^"\\]|\\.)*"/sy;
    match.lastIndex = this.at;
    const found = match.exec(this.text)?.[0];
    if (found === undefined) return null;
    this.at += found.length;
    try {
      return JSON.parse(found) as string;
    } catch {
      return found.slice(1, -1);
    }
  }

  private array(depth: number): Json {
    const items: Json[] = [];
    this.at++;
    for (;;) {
      this.blank();
      const c = this.text[this.at];
      if (c === ']') {
        this.at++;
        return {kind: 'array', items};
      }
      if (c === ',') this.at++;
      const item = this.value(depth + 1);
      items.push(item);
      if (this.at >= this.text.length) return {kind: 'array', items};
    }
  }

  private object(depth: number): Json {
    const members: [string, Json][] = [];
    this.at++;
    for (;;) {
      this.blank();
      const c = this.text[this.at];
      if (c === '}') {
        this.at++;
        return {kind: 'object', members};
      }
      if (c === ',') {
        this.at++;
        continue;
      }
      const name = c === '"' ? this.string() : null;
      if (name === null) {
        members.push(['', this.cut()]);
        return {kind: 'object', members};
      }
      this.blank();
      if (this.text[this.at] === ':') this.at++;
      members.push([name, this.value(depth + 1)]);
      if (this.at >= this.text.length) return {kind: 'object', members};
    }
  }
}

export function readJson(text: string): Json {
  return new Reader(text).value(0);
}

/** A value as one line for narrow places. */
export function oneLine(value: Json, most = 160): string {
  let out = '';
  const put = (text: string): boolean => {
    out += text;
    return out.length < most;
  };
  const write = (json: Json): boolean => {
    switch (json.kind) {
      case 'string':
        return put(JSON.stringify(json.text));
      case 'number':
      case 'word':
      case 'cut':
        return put(json.text);
      case 'array':
        put('[');
        for (let i = 0; i < json.items.length; i++)
          if ((i > 0 && !put(', ')) || !write(json.items[i]!)) return false;
        return put(']');
      case 'object':
        put('{');
        for (let i = 0; i < json.members.length; i++)
          if (
            (i > 0 && !put(', ')) ||
            !put(json.members[i]![0] + ': ') ||
            !write(json.members[i]![1])
          )
            return false;
        return put('}');
    }
  };
  write(value);
  return out;
}

/** Back to canonical text: what was read is written as it was. */
export function emitJson(value: Json): string {
  switch (value.kind) {
    case 'string':
      return JSON.stringify(value.text);
    case 'array':
      return `[${value.items.map(emitJson).join(',')}]`;
    case 'object':
      return `{${value.members.map(([name, json]) => `${JSON.stringify(name)}:${emitJson(json)}`).join(',')}}`;
    default:
      return value.text;
  }
}

/** A string member, for what is looked up by name. */
export function member(json: Json, name: string): Json | undefined {
  return json.kind === 'object' ? json.members.find(([key]) => key === name)?.[1] : undefined;
}

export function stringMember(json: Json, name: string): string | undefined {
  const found = member(json, name);
  return found?.kind === 'string' ? found.text : undefined;
}
