// Builds the files that are not committed, after each npm ci. Does nothing without the development packages, for
// example in the last stage of a container build.
const { existsSync } = require("node:fs");
const { spawnSync } = require("node:child_process");

if (existsSync("node_modules/typescript")) {
  const { status } = spawnSync("npm run --silent build", { shell: true, stdio: ["ignore", 2, 2] });
  process.exitCode = status ?? 1;
}
