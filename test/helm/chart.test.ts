import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { test as base } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { fixture, type Lifetime, lifetimeOf } from "../helpers/lifetime.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CHART = join(ROOT, "deploy/helm");
const execute = promisify(execFile);

type Labels = Readonly<Record<string, string>>;
interface Port {
  name: string;
  targetPort?: string;
  containerPort?: number;
}
interface Container {
  image: string;
  ports: Port[];
  env: { name: string; value?: string }[];
  securityContext: { readOnlyRootFilesystem: boolean; allowPrivilegeEscalation: boolean };
  volumeMounts: { name: string; mountPath: string }[];
}

/** The parts of manifests that refer to each other. */
interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Labels; annotations?: Labels };
  data: Record<string, string>;
  spec: {
    replicas?: number;
    selector: Labels & { matchLabels?: Labels };
    ports: Port[];
    podSelector: { matchLabels: Labels };
    template: {
      metadata: { labels: Labels; annotations?: Labels };
      spec: {
        containers: Container[];
        securityContext: { runAsNonRoot: boolean };
        volumes: { name: string }[];
        terminationGracePeriodSeconds: number;
        imagePullSecrets?: { name: string }[];
        nodeSelector?: Labels;
      };
    };
    endpoints: { port: string }[];
    scaleTargetRef: { kind: string; name: string };
    metrics: { pods?: { metric: { name: string } } }[];
    rules: { http: { paths: { backend: { service: { name: string; port: { name: string } } } }[] } }[];
  };
}

/** Runs Helm. It comes as a package for Linux on x64 only. */
async function helm(...args: string[]): Promise<string> {
  const { stdout } = await execute(join(import.meta.dirname, "node_modules/.bin/helm"), args, { cwd: ROOT });
  return stdout;
}

const EVERYTHING = ["autoscaling", "ingress", "serviceMonitor"].flatMap((part) => ["--set", `${part}.enabled=true`]);

const EXTRA = [
  ...["--set", "networkPolicy.extraEgress[0].ports[0].port=11434"],
  ...["--set", "image.pullSecrets[0].name=registry,pod.spec.nodeSelector.pool=web,pod.spec.tolerations[0].key=web"],
  ...["--set", "volumes[0].name=ca,volumes[0].configMap.name=ca,volumeMounts[0].name=ca,volumeMounts[0].mountPath=/ca"],
  ...["--set", "pod.annotations.team=web,pod.labels.team=web,env.CHORUS_DRAIN_MS=90000"],
];

/** What the chart makes of values. */
async function render(...values: string[]): Promise<Manifest[]> {
  const text = await helm("template", "release", CHART, "--kube-version", "1.30.0", ...values);
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

/** The example of values in the guide. */
async function exampleValues(t: Lifetime): Promise<string> {
  const guide = await readFile(join(ROOT, "docs/deploying.md"), "utf8");
  const [, example = assert.fail()] = /^ +```yaml\n([^`]*secrets:[^`]*)```/m.exec(guide) ?? [];
  const folder = await mkdtemp(join(tmpdir(), "chorus-values-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, "values.yaml");
  await writeFile(file, example);
  return file;
}

/** `test` after the packages of this folder are installed. */
const test = base.extend(
  "installed",
  { scope: "file", auto: true },
  fixture(async () => {
    await execute(process.execPath, ["../../tools/setup.cjs"], { cwd: import.meta.dirname });
  }),
);
const canRender = process.platform === "linux" && process.arch === "x64";

function one(manifests: readonly Manifest[], kind: string, name = "release"): Manifest {
  const found = manifests.filter((each) => each.kind === kind && each.metadata.name === name);
  assert.equal(found.length, 1, `${kind} ${name}`);
  return found[0] ?? assert.fail();
}

const has = (labels: Labels = {}, wanted: Labels = {}) =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value);

test.skipIf(!canRender)("the chart has no faults, and the version of the service", async () => {
  assert.match(await helm("lint", "--strict", CHART), /0 chart\(s\) failed/);
  const chart = parse(await readFile(join(CHART, "Chart.yaml"), "utf8"));
  const { version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
});

test.skipIf(!canRender)("each manifest is valid against the schema of its kind", async () => {
  for (const values of [[], EVERYTHING, ["--set", "migrate.enabled=false,networkPolicy.enabled=false"], EXTRA])
    for (const manifest of await render(...values)) {
      const { apiVersion, kind } = manifest;
      const isForeign = apiVersion.startsWith("monitoring.coreos.com/");
      const path = `${isForeign ? "@kubernetes-models/prometheus-operator" : "kubernetes-models"}/${apiVersion}`;
      const { [kind]: Kind } = await import(path);
      new Kind(manifest).validate();
    }
});

test.skipIf(!canRender)("pods run as another user than root, on a file system that they cannot write", async () => {
  const manifests = await render("--set", "image.tag=1.2.3,replicas=5");
  for (const { spec } of [one(manifests, "Deployment"), one(manifests, "Job", "release-migrate")]) {
    assert.equal(spec.template.spec.securityContext.runAsNonRoot, true);
    for (const { securityContext, image } of spec.template.spec.containers) {
      assert.deepEqual(
        [securityContext.readOnlyRootFilesystem, securityContext.allowPrivilegeEscalation],
        [true, false],
      );
      assert.equal(image, "registry.example.com/chorus:1.2.3");
    }
  }
  assert.equal(one(manifests, "Deployment").spec.replicas, 5);
});

test.skipIf(!canRender)("secrets are files of an existing Secret, and other settings are values", async () => {
  const more = "secrets.OPENAI_API_KEY=gpt,env.LOG_LEVEL=debug,env.CHORUS_WORKERS=2,secretName=own";
  const manifests = await render("--set", more, "--set", "rates.input=7", "--set", "journal.enabled=false");
  assert.ok(!manifests.some(({ kind }) => kind === "Secret"));
  const { containers, volumes } = one(manifests, "Deployment").spec.template.spec;
  const env = Object.fromEntries(containers.flatMap((each) => each.env.map(({ name, value }) => [name, value])));
  assert.deepEqual(env, {
    CHORUS_MODELS: "/etc/chorus/models.json",
    CHORUS_RATES_FILE: "/etc/chorus/rates.json",
    DATABASE_URL_FILE: "/run/secrets/chorus/database_url",
    OPENAI_API_KEY_FILE: "/run/secrets/chorus/gpt",
    OPERATOR_TOKEN_FILE: "/run/secrets/chorus/operator_token",
    CHORUS_WORKERS: "2",
    LOG_LEVEL: "debug",
  });
  assert.deepEqual(
    volumes.map(({ name }) => name),
    ["settings", "secrets"],
  );
  const { data } = one(manifests, "ConfigMap");
  assert.deepEqual(JSON.parse(data["rates.json"] ?? ""), { input: 7 });
  assert.ok(JSON.parse(data["models.json"] ?? "").models.length > 0);
});

test.skipIf(!canRender)("values add to the pods of the service and to those that migrate", async () => {
  const manifests = await render(...EXTRA);
  const deployment = one(manifests, "Deployment").spec.template;
  for (const { spec } of [deployment, one(manifests, "Job", "release-migrate").spec.template]) {
    assert.deepEqual([spec.imagePullSecrets, spec.nodeSelector], [[{ name: "registry" }], { pool: "web" }]);
    assert.deepEqual(spec.volumes.at(-1), { name: "ca", configMap: { name: "ca" } });
    for (const { volumeMounts } of spec.containers)
      assert.deepEqual(volumeMounts.at(-1), { name: "ca", mountPath: "/ca" });
  }
  const { labels, annotations = {} } = deployment.metadata;
  assert.deepEqual([labels.team, annotations.team, annotations["prometheus.io/port"]], ["web", "web", "8081"]);
  assert.equal(deployment.spec.terminationGracePeriodSeconds, 110);
});

test.skipIf(!canRender)(
  "values of an earlier chart, as helm upgrade --reuse-values keeps them, are rendered",
  async () => {
    const manifests = await render("--set", "pod=null,volumes=null,volumeMounts=null,image.pullSecrets=null");
    assert.ok(one(manifests, "Deployment").spec.template.spec.containers.length > 0);
  },
);

test.skipIf(!canRender)("the values of the guide are rendered", async ({ onTestFinished }) => {
  const manifests = await render("--values", await exampleValues(lifetimeOf(onTestFinished)));
  const [container] = one(manifests, "Deployment").spec.template.spec.containers;
  const envOf = (wanted: string) => container?.env.find(({ name }) => name === wanted)?.value;
  assert.equal(envOf("OPENAI_API_KEY_FILE"), "/run/secrets/chorus/openai_api_key");
  assert.equal(envOf("DATABASE_URL_FILE"), "/run/secrets/chorus/database_url");
  assert.equal(envOf("CHORUS_RUNS_PER_DAY"), "1000000");
  one(manifests, "Ingress");
});

test.skipIf(!canRender)("the service trusts the ingress, unless a value says how many proxies there are", async () => {
  const trusted = async (...values: string[]) => {
    const [container] = one(await render(...values), "Deployment").spec.template.spec.containers;
    return container?.env.filter(({ name }) => name === "CHORUS_TRUSTED_PROXIES").map(({ value }) => value);
  };
  assert.deepEqual(await trusted(), []);
  assert.deepEqual(await trusted("--set", "ingress.enabled=true"), ["1"]);
  assert.deepEqual(await trusted("--set", "ingress.enabled=true,env.CHORUS_TRUSTED_PROXIES=2"), ["2"]);
});

test.skipIf(!canRender)("wrong values are refused by their names", async () => {
  for (const [value, name] of [
    ["replicas=many", "replicas"],
    ["replica=2", "replica"],
    ["secrets.database=url", "secrets"],
    ["autoscaling.cpuPercent=120", "autoscaling.cpuPercent"],
    ["pod.spec.hostNetwork=true", "pod.spec"],
  ] as const)
    await assert.rejects(render("--set", value), new RegExp(`- ${name}|${name} is not allowed`));
});

test.skipIf(!canRender)("each part refers to one that exists", async () => {
  const manifests = await render(...EVERYTHING);
  const deployment = one(manifests, "Deployment");
  const pod = deployment.spec.template;
  const services = manifests.filter(({ kind }) => kind === "Service");
  for (const { spec, metadata } of services) {
    assert.ok(has(pod.metadata.labels, spec.selector), metadata.name);
    const ports = pod.spec.containers.flatMap((container) => container.ports.map(({ name }) => name));
    for (const { targetPort = "" } of spec.ports) assert.ok(ports.includes(targetPort), metadata.name);
  }
  assert.ok(has(pod.metadata.labels, deployment.spec.selector.matchLabels));
  assert.ok(has(pod.metadata.labels, one(manifests, "PodDisruptionBudget").spec.selector.matchLabels));
  assert.ok(has(pod.metadata.labels, one(manifests, "NetworkPolicy").spec.podSelector.matchLabels));
  const job = one(manifests, "Job", "release-migrate");
  const ofJob = one(manifests, "NetworkPolicy", "release-migrate");
  assert.ok(has(job.spec.template.metadata.labels, ofJob.spec.podSelector.matchLabels));
  assert.equal(ofJob.metadata.annotations?.["helm.sh/hook"], job.metadata.annotations?.["helm.sh/hook"]);

  const { scaleTargetRef, metrics } = one(manifests, "HorizontalPodAutoscaler").spec;
  one(manifests, scaleTargetRef.kind, scaleTargetRef.name);
  assert.equal(deployment.spec.replicas, undefined);
  const telemetry = await readFile(join(ROOT, "src/telemetry/create.ts"), "utf8");
  for (const { pods } of metrics) assert.ok(telemetry.includes(pods?.metric.name ?? ""));

  const monitor = one(manifests, "ServiceMonitor").spec;
  const watched = services.filter(({ metadata }) => has(metadata.labels, monitor.selector.matchLabels));
  assert.deepEqual(
    watched.map(({ metadata }) => metadata.name),
    ["release-rpc"],
  );
  assert.deepEqual(
    monitor.endpoints.map(({ port }) => port),
    watched.flatMap(({ spec }) => spec.ports.map(({ name }) => name)),
  );
  assert.equal(pod.metadata.annotations, undefined);

  for (const { http } of one(manifests, "Ingress").spec.rules)
    for (const { backend } of http.paths) {
      const { spec } = one(manifests, "Service", backend.service.name);
      assert.ok(spec.ports.some(({ name }) => name === backend.service.port.name));
    }
});
