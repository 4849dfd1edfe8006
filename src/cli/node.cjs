// Finds or installs a Node.js that can run this package, for this package only. Run as a program, it does the same
// after an installation, so that the first start needs no network. Must run on Node.js 20.
const { spawnSync } = require("node:child_process");
const { existsSync } = require("node:fs");
const { delimiter, join } = require("node:path");

const ROOT = join(__dirname, "../..");
/** Oldest version that runs the service. */
const OLDEST = 24;
/** A folder of its own in ROOT: npm would put a dependency's `node` in front of the consumer's. */
const OWN = "runtime";
const BINARIES = [join(ROOT, "node_modules/.bin"), join(ROOT, OWN, "node_modules/.bin")];
const NAME = process.platform === "win32" ? "node.cmd" : "node";

function isInstalled() {
  return BINARIES.some((folder) => existsSync(join(folder, NAME)));
}

function isNewEnough() {
  return Number(process.versions.node.split(".")[0]) >= OLDEST;
}

/** @returns whether a Node.js is there now */
function install() {
  const { runtimes = {} } = require("../../package.json");
  const wanted = runtimes[`${process.platform}-${process.arch}`];
  if (!wanted) return false;
  const options = ["--prefix", OWN, "--global=false", "--no-save", "--prefer-offline", "--no-audit", "--no-fund"];
  const env = { ...process.env, npm_config_loglevel: "error" };
  // Windows needs a shell. It gets no path, because a space in one would make npm install something else.
  const command = ["npm", "install", ...options, wanted].join(" ");
  spawnSync(command, { shell: true, cwd: ROOT, stdio: ["ignore", 2, 2], env });
  return isInstalled();
}

/**
 * @returns the command that runs Node.js, and the environment in which it is found; undefined if none is new enough and
 *   none can be installed
 */
function findNode() {
  if (!isInstalled() && isNewEnough()) return { command: process.execPath, env: process.env };
  if (!isInstalled() && !install()) return undefined;
  return { command: "node", env: { ...process.env, PATH: [...BINARIES, process.env.PATH].join(delimiter) } };
}

if (require.main === module) {
  if (!isInstalled() && !isNewEnough() && !install()) {
    process.stderr.write(
      `Node.js ${OLDEST} could not be installed for chorus. It is tried again at the first start.\n`,
    );
  }
}

module.exports = { findNode, OLDEST };
