#!/usr/bin/env python3
"""api_types.py --update CORTEX | --check CORTEX - the HTTP API's document and the page's types.

  docs/openapi.json            what the program answers to GET /openapi.json, a line an operation
  web/src/base/api-types.ts    the types of that document, for the page

--update writes both from the program, --check says which is not what the program makes and exits 1.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / 'docs' / 'openapi.json'
TYPES = ROOT / 'web' / 'src' / 'base' / 'api-types.ts'

WORDS = {'string': 'string', 'integer': 'number', 'number': 'number', 'boolean': 'boolean',
         'null': 'null'}


# --- the document -------------------------------------------------------------------------------

def ask(cortex):
    """The document of a server over an empty data directory."""
    with tempfile.TemporaryDirectory(prefix='cortex-api-') as folder:
        home = folder + '/home'
        subprocess.run([cortex, 'init', '--no-repo', '--home', home], check=True,
                       capture_output=True)
        server = subprocess.Popen(
            [cortex, 'serve', '--home', home, '--listen', '127.0.0.1:0', '--json'],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            url = urllib.parse.urlsplit(json.loads(server.stdout.readline())['url'])
            token = pathlib.Path(home, 'token').read_text().strip()
            request = urllib.request.Request(f'http://{url.netloc}/openapi.json',
                                             headers={'Authorization': 'Bearer ' + token})
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        finally:
            server.terminate()
            server.wait(30)
            server.stdout.close()


def one_line(value):
    return json.dumps(value, separators=(',', ':'), ensure_ascii=False)


def members(value, indent, show):
    """An object with a line for each member, or for each line that `show` makes of one."""
    pad = ' ' * indent
    return '{\n' + ',\n'.join(f'{pad} {one_line(name)}:{show(one)}' for name, one in value.items()) \
        + f'\n{pad}}}'


def document_text(document):
    shown = {
        'components': lambda parts: members(parts, 1, lambda one: members(one, 2, one_line)),
        'paths': lambda paths: members(paths, 1, lambda item: members(item, 2, one_line)),
    }
    return '{\n' + ',\n'.join(
        f' {one_line(name)}:{shown.get(name, one_line)(value)}'
        for name, value in document.items()) + '\n}\n'


# --- the types ----------------------------------------------------------------------------------

def type_of(schema):
    """The TypeScript of a schema of the kinds that the program writes."""
    if '$ref' in schema:
        return schema['$ref'].rsplit('/', 1)[1]
    if 'const' in schema:
        return "'" + schema['const'] + "'"
    if 'anyOf' in schema:
        return ' | '.join(type_of(one) for one in schema['anyOf'])
    if 'type' not in schema:
        return 'unknown'
    if schema['type'] == 'object':
        return object_of(schema)
    if schema['type'] == 'array':
        if 'prefixItems' in schema:
            return '[' + ', '.join(type_of(one) for one in schema['prefixItems']) + ']'
        item = type_of(schema['items'])
        return f'({item})[]' if ' | ' in item else f'{item}[]'
    return WORDS[schema['type']]


def members_of(schema):
    required = schema.get('required', [])
    for name, one in schema.get('properties', {}).items():
        yield f"{name}{'' if name in required else '?'}: {type_of(one)}"
    if 'additionalProperties' in schema and 'properties' in schema:
        yield 'readonly [name: string]: unknown'


def object_of(schema):
    if 'properties' in schema:
        return '{' + '; '.join(members_of(schema)) + '}'
    if 'additionalProperties' in schema:
        return f"Record<string, {type_of(schema['additionalProperties'])}>"
    return 'Record<string, never>'


def declaration(name, schema):
    if schema.get('type') == 'object' and 'properties' in schema:
        return f'export interface {name} {{\n' \
            + ''.join(f'  {member};\n' for member in members_of(schema)) + '}\n'
    return f'export type {name} = {type_of(schema)};\n'


def types_text(document):
    schemas = document['components']['schemas']
    return '// api-types.ts - what the server is asked and answers.  Made by tools/api_types.py from ' \
        'docs/openapi.json.\n\n' \
        + '\n'.join(declaration(name, schemas[name]) for name in sorted(schemas))


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ('--update', '--check'):
        sys.exit(__doc__)
    document = ask(sys.argv[2])
    wanted = {DOCUMENT: document_text(document), TYPES: types_text(document)}
    stale = []
    for path, text in wanted.items():
        if path.exists() and path.read_text() == text:
            continue
        if sys.argv[1] == '--update':
            path.write_text(text)
        else:
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        sys.exit(f"{', '.join(stale)}: not what the program makes; run tools/api_types.py --update")


if __name__ == '__main__':
    main()
