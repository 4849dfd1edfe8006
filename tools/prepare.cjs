// Runs after each npm ci. Builds the files that are not committed, and notes the lock file from which node_modules was
// installed, so that tools/setup.cjs does not install it again. Without the development packages, it builds nothing.
const { copyFileSync, existsSync } = require("node:fs");
const { spawnSync } = require("node:child_process");

if (existsSync("node_modules/typescript")) {
  const { status } = spawnSync("npm run --silent build", { shell: true, stdio: ["ignore", 2, 2] });
  process.exitCode = status ?? 1;
}
if (!process.exitCode && existsSync("node_modules")) {
  copyFileSync("package-lock.json", "node_modules/.installed-lock.json");
}
