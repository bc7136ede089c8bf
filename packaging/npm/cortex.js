#!/usr/bin/env node
// cortex.js - starts the program that npm installed for this machine; it was not downloaded by a script.
"use strict";
const { spawn } = require("node:child_process");
const os = require("node:os");
const path = require("node:path");

const name = `@cortex/cli-${process.platform}-${process.arch}`;
const program = path.basename(process.argv[1] ?? "").startsWith("cortex-verify") ? "cortex-verify" : "cortex";

function find() {
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", program);
  } catch {
    console.error(
      `cortex: there is no package ${name}. Programs exist for linux-x64 and linux-arm64; ` +
        "if this is one of them, npm left optional packages out: install again without --omit=optional.",
    );
    process.exit(3);
  }
}

const child = spawn(find(), process.argv.slice(2), { stdio: "inherit" });
// A signal from the terminal reaches the program itself; others are passed on.
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
process.on("SIGINT", () => {});
child.on("error", (why) => {
  console.error(`cortex: cannot start ${name}: ${why.message}`);
  process.exit(3);
});
child.on("exit", (code, signal) => {
  process.exit(signal === null ? code : 128 + (os.constants.signals[signal] ?? 0));
});
