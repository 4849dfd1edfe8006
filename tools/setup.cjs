// Installs missing packages before npm start, npm test and the command line. With the parameter `pages`, it also builds
// the console and the reference again if their sources are newer, as after an update that needs no other packages. Must
// run on any version of Node.
const { copyFileSync, existsSync, readdirSync, readFileSync, statSync } = require("node:fs");
const { spawnSync } = require("node:child_process");
const { join } = require("node:path");

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

/** What the pages are built from: files, and folders with all that they contain. */
const SOURCES = [
  "CHANGELOG.md",
  "README.md",
  "console/index.html",
  "console/operator.html",
  "console/public",
  "console/src",
  "docs",
  "gen",
  "src/contract",
  "tools/reference",
];
const PAGE = "console/dist/index.html";

/** Time of the last change, in milliseconds since 1970. */
function changedAt(path) {
  const stats = statSync(path);
  if (!stats.isDirectory()) return stats.mtimeMs;
  return Math.max(stats.mtimeMs, ...readdirSync(path).map((name) => changedAt(join(path, name))));
}

if (process.argv[2] === "pages" && existsSync("node_modules/vite") && existsSync(PAGE)) {
  const builtAt = statSync(PAGE).mtimeMs;
  if (SOURCES.some((path) => existsSync(path) && changedAt(path) > builtAt)) {
    process.stderr.write("Building the console again, because its sources have changed.\n");
    // The tests set NODE_ENV to "test", with which the pages would be those for development, and larger.
    const env = { ...process.env, NODE_ENV: "production" };
    const { status } = spawnSync("npm run --silent build", { shell: true, stdio: ["ignore", 2, 2], env });
    if (status !== 0) process.stderr.write("It could not be built. The pages of the last build are served.\n");
  }
}
