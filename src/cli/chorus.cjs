#!/usr/bin/env node
// Starts the command line, or with `chorus start` the service, with a Node.js version that runs it, whichever version
// runs this file. `npm link` puts this file on the PATH as `chorus`.
const { spawn } = require("node:child_process");
const { existsSync } = require("node:fs");
const { join } = require("node:path");
const { findNode, OLDEST } = require("./node.cjs");

const node = findNode();
if (!node) {
  process.stderr.write(
    `chorus: this is Node.js ${process.version}, and no newer one could be installed. Install Node.js ${OLDEST}.\n`,
  );
  process.exit(1);
}
// A package has JavaScript, because Node.js does not strip types in node_modules.
const type = existsSync(join(__dirname, "main.js")) ? "js" : "ts";
const given = process.argv.slice(2);
// With anything else behind it, the command line shows the help of `start`, or refuses what it does not know.
const isStart = given.length === 1 && given[0] === "start";
const [program, ...rest] = isStart ? [`../process/start.${type}`] : [`main.${type}`, ...given];
// A long export takes 40 MB in place of 150, and as long: V8 lets the space of new objects grow to 96 MB otherwise. The
// service keeps the code of Node in large pages (docs/decisions/speed.md).
const option = isStart ? "--use-largepages=silent" : "--max-semi-space-size=4";
const args = ["--disable-warning=ExperimentalWarning", option, join(__dirname, program), ...rest];
const child = spawn(node.command, args, { stdio: "inherit", env: node.env, shell: false });
// A terminal sends Ctrl-C to both processes; the child handles it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 130 : 1)));
child.on("error", (error) => {
  process.stderr.write(`chorus: Node.js cannot be started (${error.code}).\n`);
  process.exit(1);
});
