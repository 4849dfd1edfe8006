import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { test as base } from "vitest";
import { parseAllDocuments } from "yaml";
import { fixture } from "./helpers/lifetime.ts";

const FOLDER = resolve(import.meta.dirname, "../deploy/kubernetes");
const execute = promisify(execFile);

type Labels = Readonly<Record<string, string>>;
interface Port {
  name: string;
  targetPort?: string;
  containerPort?: number;
}
interface Container {
  ports: Port[];
  env: { name: string; value?: string }[];
  securityContext: { readOnlyRootFilesystem: boolean; allowPrivilegeEscalation: boolean };
  readinessProbe: object;
}

/** The parts of manifests that refer to each other. */
interface Manifest {
  kind: string;
  metadata: { name: string; labels?: Labels };
  spec: {
    replicas?: number;
    selector: Labels & { matchLabels?: Labels };
    ports: Port[];
    template: {
      metadata: { labels: Labels };
      spec: { containers: Container[]; securityContext: { runAsNonRoot: boolean }; volumes: object[] };
    };
    endpoints: { port: string; path: string }[];
    scaleTargetRef: { kind: string; name: string };
    metrics: { pods?: { metric: { name: string } } }[];
    rules: { http: { paths: { backend: { service: { name: string; port: { name: string } } } }[] } }[];
  };
}

/** `test` with what `kubectl kustomize` makes of the folder, with all its components and without. */
const test = base.extend(
  "render",
  { scope: "file" },
  fixture(async (t) => {
    return async (isWhole: boolean): Promise<Manifest[]> => {
      const folder = await mkdtemp(join(tmpdir(), "chorus-kubernetes-"));
      t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
      await cp(FOLDER, folder, { recursive: true });
      const file = join(folder, "kustomization.yaml");
      const text = await readFile(file, "utf8");
      const whole = text.replace("components: []", "components:").replaceAll(/^# {2}- comp/gm, "  - comp");
      if (isWhole) await writeFile(file, whole);
      const { stdout } = await execute("kubectl", ["kustomize", folder]);
      return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
    };
  }),
);

const hasKubectl = await execute("kubectl", ["version", "--client"]).then(
  () => true,
  () => false,
);

function one(manifests: readonly Manifest[], kind: string, name = "chorus"): Manifest {
  const found = manifests.filter((each) => each.kind === kind && each.metadata.name === name);
  assert.equal(found.length, 1, `${kind} ${name}`);
  return found[0] ?? assert.fail();
}

const has = (labels: Labels = {}, wanted: Labels = {}) =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value);

test.skipIf(!hasKubectl)(
  "pods run as another user than root, on a file system that they cannot write",
  async ({ render }) => {
    const { spec } = one(await render(false), "Deployment");
    assert.equal(spec.replicas, 3);
    assert.equal(spec.template.spec.securityContext.runAsNonRoot, true);
    for (const { securityContext } of spec.template.spec.containers)
      assert.deepEqual(
        [securityContext.readOnlyRootFilesystem, securityContext.allowPrivilegeEscalation],
        [true, false],
      );
    const values = spec.template.spec.containers.flatMap(({ env }) => env);
    for (const { name, value } of values) if (value !== undefined) assert.match(name, /_FILE$|^CHORUS_MODELS$/);
  },
);

test.skipIf(!hasKubectl)("each part of the components refers to one that exists", async ({ render }) => {
  const manifests = await render(true);
  const deployment = one(manifests, "Deployment");
  const pod = deployment.spec.template;
  const services = manifests.filter(({ kind }) => kind === "Service");
  for (const { spec, metadata } of services) {
    assert.ok(has(pod.metadata.labels, spec.selector), metadata.name);
    const ports = pod.spec.containers.flatMap((container) => container.ports.map(({ name }) => name));
    for (const { targetPort = "" } of spec.ports) assert.ok(ports.includes(targetPort), metadata.name);
  }
  const { scaleTargetRef, metrics } = one(manifests, "HorizontalPodAutoscaler").spec;
  one(manifests, scaleTargetRef.kind, scaleTargetRef.name);
  assert.equal(deployment.spec.replicas, undefined);
  const telemetry = await readFile(resolve(import.meta.dirname, "../src/telemetry/create.ts"), "utf8");
  for (const { pods } of metrics) assert.ok(telemetry.includes(pods?.metric.name ?? ""));

  const monitor = one(manifests, "ServiceMonitor").spec;
  const watched = services.filter(({ metadata }) => has(metadata.labels, monitor.selector.matchLabels));
  assert.deepEqual(
    watched.map(({ metadata }) => metadata.name),
    ["chorus-rpc"],
  );
  assert.deepEqual(
    monitor.endpoints.map(({ port }) => port),
    watched.flatMap(({ spec }) => spec.ports.map(({ name }) => name)),
  );

  for (const { http } of one(manifests, "Ingress").spec.rules)
    for (const { backend } of http.paths) {
      const { spec } = one(manifests, "Service", backend.service.name);
      assert.ok(spec.ports.some(({ name }) => name === backend.service.port.name));
    }
});
