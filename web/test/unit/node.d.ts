// The little of node that the tests use; the page itself knows none of it.
declare module 'node:crypto' {
  export function createHash(name: string): {
    update(bytes: Uint8Array): {digest(kind: 'hex'): string};
  };
}
declare module 'node:fs' {
  export function existsSync(path: URL | string): boolean;
  export function readdirSync(path: URL | string): string[];
  export function readFileSync(path: URL | string, encoding: 'utf8'): string;
  export function readFileSync(path: URL | string): Uint8Array;
}
