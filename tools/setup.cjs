// Installs missing packages before npm start, npm test and the command line. Must run on any version of Node.
const { copyFileSync, readFileSync } = require("node:fs");
const { spawnSync } = require("node:child_process");

const LOCK = "package-lock.json";
/** Copy of the lock file from which node_modules was installed. After npm ci, tools/prepare.cjs writes it. */
const INSTALLED = "node_modules/.installed-lock.json";

function text(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

if (text(INSTALLED) !== text(LOCK)) {
  process.stderr.write("Installing packages (npm ci). This takes a moment.\n");
  const env = { ...process.env, npm_config_loglevel: "error" };
  const { status } = spawnSync("npm ci", { shell: true, stdio: ["ignore", 2, 2], env });
  if (status !== 0) process.exit(status ?? 1);
  copyFileSync(LOCK, INSTALLED);
}
