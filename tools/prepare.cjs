// Builds what is not committed, after each npm ci. Without the packages of development there is nothing to build with, and what an
// earlier stage has built stays.
const { existsSync } = require("node:fs");
const { spawnSync } = require("node:child_process");

if (existsSync("node_modules/typescript")) {
  const { status } = spawnSync("npm run --silent build", { shell: true, stdio: ["ignore", 2, 2] });
  process.exitCode = status ?? 1;
}
