#!/usr/bin/env python3
"""schema_registry.py [--check] - schemas/schema_registry.json: size and SHA-256 of each schema.

Without an option it writes the file; with --check it says what is not as the file states and exits
1.  Run it after every change to schemas/.
"""
import hashlib
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / 'schemas'
REGISTRY = FOLDER / 'schema_registry.json'


def registry():
    schemas = {}
    for path in sorted(FOLDER.glob('*.json')):
        if path != REGISTRY:
            data = path.read_bytes()
            json.loads(data)
            schemas[path.name] = {'sha256': hashlib.sha256(data).hexdigest(), 'bytes': len(data)}
    return json.dumps({'version': 'v1', 'schemas': schemas}, indent=2) + '\n'


def main():
    if sys.argv[1:] not in ([], ['--check']):
        sys.exit(__doc__)
    wanted = registry()
    if not sys.argv[1:]:
        REGISTRY.write_text(wanted)
    elif not REGISTRY.exists() or REGISTRY.read_text() != wanted:
        sys.exit('schemas/schema_registry.json is not what the files say: '
                 'run tools/schema_registry.py')


if __name__ == '__main__':
    main()
