/**
 * Packs what others install: `chorus-client` for programs that call the service, and `chorus`, the service with its
 * command line. `node tools/package.ts [client|service]…` writes the folders and tarballs to `dist/packages`; without
 * a name, both.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");
const OUT = join(ROOT, "dist/packages");

type Json = Record<string, unknown>;
const project = read("package.json");
const { version, license } = project;

function read(path: string): Json {
  return JSON.parse(readFileSync(join(ROOT, path), "utf8"));
}

function write(folder: string, name: string, value: Json): void {
  writeFileSync(join(folder, name), `${JSON.stringify(value, null, 2)}\n`);
}

/** Empties the folder of a package and puts the licence into it. */
function begin(name: string): string {
  const folder = join(OUT, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  cpSync(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
  return folder;
}

function compile(tsconfig: string, outDir: string): void {
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "-p", tsconfig, "--outDir", outDir], { cwd: ROOT, stdio: ["ignore", 2, 2] });
}

/** Copies the files of a folder of the project whose names match. */
function copy(from: string, to: string, names: RegExp): void {
  const filter = (path: string) => !/\.[a-z]+$/.test(path) || names.test(path);
  cpSync(join(ROOT, from), to, { recursive: true, filter });
}

/** Writes the tarball `NAME.tgz`, whose name does not change with the version. */
function pack(folder: string, name: string): void {
  execFileSync("npm", ["pack", folder, "--pack-destination", OUT, "--silent"], {
    cwd: ROOT,
    stdio: ["ignore", "ignore", 2],
  });
  renameSync(join(OUT, `${name}-${version}.tgz`), join(OUT, `${name}.tgz`));
}

/** The REST client, the generated RPC code and the OpenAPI document. Only the RPC code needs other packages. */
function packClient(): void {
  const folder = begin("client");
  compile("src/client", join(folder, "client"));
  for (const part of ["chorus", "google"]) copy(`gen/${part}`, join(folder, "gen", part), /_pb\.(js|d\.ts)$/);
  // Without indents, which are two fifths of it.
  const document = JSON.parse(readFileSync(join(ROOT, "gen/openapi/openapi.json"), "utf8"));
  writeFileSync(join(folder, "openapi.json"), JSON.stringify(document));
  cpSync(join(ROOT, "docs/typescript.md"), join(folder, "README.md"));
  const { "@bufbuild/protobuf": protobuf, "@connectrpc/connect": connect } = project.dependencies as Json;
  write(folder, "package.json", {
    name: "chorus-client",
    version,
    description: "Client of Chorus, a text generation service: REST, RPC and the OpenAPI document.",
    license,
    type: "module",
    sideEffects: false,
    engines: { node: ">=20" },
    exports: {
      ".": { types: "./client/client.d.ts", default: "./client/client.js" },
      "./rpc/*": { types: "./gen/chorus/*_pb.d.ts", default: "./gen/chorus/*_pb.js" },
      "./openapi.json": "./openapi.json",
    },
    peerDependencies: { "@bufbuild/protobuf": `^${protobuf}`, "@connectrpc/connect": `^${connect}` },
    peerDependenciesMeta: { "@bufbuild/protobuf": { optional: true }, "@connectrpc/connect": { optional: true } },
  });
  pack(folder, "chorus-client");
}

/**
 * The service as JavaScript, because Node does not strip types in `node_modules`, with console and reference built in.
 * The packages with Node.js are no dependencies: npm would put their `node` in front of the consumer's. Instead,
 * src/cli/node.cjs installs one for this package alone where the consumer's is too old.
 */
function packService(): void {
  for (const part of ["reference", "console"]) {
    execFileSync("npm", ["run", "--silent", `build:${part}`], { cwd: ROOT, stdio: ["ignore", 2, 2] });
  }
  const folder = begin("service");
  compile("tools/package.tsconfig.json", folder);
  copy("src", join(folder, "src"), /\.(sql|json|cjs|bin)$/);
  rmSync(join(folder, "src/client"), { recursive: true });
  copy("gen", join(folder, "gen"), /(_pb\.js|openapi\.json)$/);
  for (const part of ["console/dist", "dist/reference"]) {
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  }
  cpSync(join(ROOT, "README.md"), join(folder, "README.md"));
  const { description, engines, dependencies } = project;
  const run = "node --disable-warning=ExperimentalWarning";
  const manifest = {
    name: "chorus",
    version,
    description,
    license,
    type: "module",
    engines,
    bin: { chorus: "src/cli/chorus.cjs" },
    scripts: {
      postinstall: "node src/cli/node.cjs",
      start: `${run} --use-largepages=silent src/process/start.js`,
      chorus: `${run} src/cli/main.js`,
    },
    dependencies,
  };
  write(folder, "package.json", { ...manifest, runtimes: runtimes() });
  write(folder, "npm-shrinkwrap.json", lockOf(manifest));
  writeBill(folder);
  pack(folder, "chorus");
}

/** Development packages of which the console and the pages of `/docs` contain the code. */
const BUNDLED = [
  ...["@connectrpc/connect-web", "@fontsource-variable/inter", "@scalar/api-reference", "dompurify", "lucide"],
  ...["marked", "minisearch", "preact", "uplot"],
];

/** What `tools/pack-cmaps.ts` packs. */
const CHARACTER_MAPS = {
  "bom-ref": "cmaps",
  type: "data",
  name: "cmaps",
  version: "6.1.200",
  purl: "pkg:npm/pdfjs-dist@6.1.200#cmaps",
  licenses: [{ license: { id: "BSD-3-Clause" } }],
};

/** Writes the software bill of materials of a package, in CycloneDX, into its folder and beside its tarball. */
function writeBill(folder: string): void {
  const args = ["sbom", "--package-lock-only", "--sbom-format=cyclonedx", "--sbom-type=application", "--omit=dev"];
  const bill = JSON.parse(execFileSync("npm", args, { cwd: folder, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 }));
  const { packages } = read("package-lock.json") as { packages: Record<string, Json> };
  const bundled = BUNDLED.map((name) => {
    const { version, license = "" } = packages[`node_modules/${name}`] as { version: string; license?: string };
    const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
    // Several licences are an expression.
    const licenses = / /.test(license) ? [{ expression: license }] : [{ license: { id: license } }];
    return { "bom-ref": `${name}@${version}`, type: "library", name, version, purl, licenses };
  });
  // npm leaves out a licence that SPDX does not list, such as "BSD".
  for (const found of bill.components)
    found.licenses ??= [{ license: { name: packages[`node_modules/${found.name}`]?.license ?? "unknown" } }];
  bill.components.push(...bundled, CHARACTER_MAPS);
  bill.metadata.component.name = "chorus";
  for (const path of [join(folder, "sbom.cdx.json"), join(OUT, "chorus.cdx.json")])
    writeFileSync(path, `${JSON.stringify(bill, null, 2)}\n`);
}

/** The packages with Node.js, by platform and architecture, such as `linux-x64`. */
function runtimes(): Record<string, string> {
  const entries = Object.entries(project.optionalDependencies as Json);
  return Object.fromEntries(
    entries.map(([name, version]) => [
      name.replace(/^node-(bin-)?/, "").replace("win-", "win32-"),
      `${name}@${version}`,
    ]),
  );
}

/** The lock file of the project, for a package that has only some of its dependencies. */
function lockOf({ name, version, license, engines, bin, dependencies }: Json): Json {
  const { packages, ...head } = read("package-lock.json") as { packages: Record<string, Json> };
  const own = new Set(Object.keys(project.optionalDependencies as Json).map((of) => `node_modules/${of}`));
  const used = Object.entries(packages).filter(
    ([path, { dev }]) => path.startsWith("node_modules/") && !dev && !own.has(path),
  );
  const root = { name, version, license, engines, bin, dependencies };
  return { ...head, packages: { "": root, ...Object.fromEntries(used) } };
}

const PACKAGES: Readonly<Record<string, () => void>> = { client: packClient, service: packService };
const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(PACKAGES);
for (const name of names) {
  const run = PACKAGES[name];
  if (!run) throw new Error(`There is no package ${name}. Use ${Object.keys(PACKAGES).join(" or ")}.`);
  run();
}
