#!/usr/bin/env node
// Starts the command line with the Node.js version that this package installs, whichever version runs this file. `npm
// link` puts this file on the PATH as `chorus`.
const { spawn } = require("node:child_process");
const { delimiter, join } = require("node:path");

const root = join(__dirname, "../..");
const env = { ...process.env, PATH: [join(root, "node_modules/.bin"), process.env.PATH].join(delimiter) };
const args = ["--disable-warning=ExperimentalWarning", join(__dirname, "main.ts"), ...process.argv.slice(2)];
const child = spawn("node", args, { stdio: "inherit", env, shell: false });
// A terminal sends Ctrl-C to both processes; the child handles it.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 130 : 1)));
child.on("error", (error) => {
  process.stderr.write(`chorus: Node.js cannot be started (${error.code}). Run "npm ci" in ${root}.\n`);
  process.exit(1);
});
