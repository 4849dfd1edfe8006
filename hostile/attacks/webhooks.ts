import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { startNameServer } from "../../test/helpers/name-server.ts";
import { callAdmin, createWorkspace, lifetime } from "../environment.ts";
import type { AttackScenario, Stage } from "../scenario.ts";

/** Longest time from a test alert of another workspace to its arrival, in milliseconds. */
const ARRIVAL_MS = 5_000;

/** Webhooks of owners whose names or receivers are slow. */
export const WEBHOOKS: readonly AttackScenario[] = [
  {
    name: "slow-names",
    what: "2 webhooks whose names resolve after 4 s, and a test alert a second for each; needs root",
    seconds: 15,
    newConnections: true,
    nameServer: "127.0.0.1",
    during: slowNames,
  },
  {
    name: "silent-webhooks",
    what: "a webhook that never answers, and a test alert a second; another workspace's alert has to arrive",
    seconds: 60,
    env: { CHORUS_WEBHOOK_HOSTS: "127.0.0.1" },
    during: silentWebhooks,
  },
];

async function slowNames(stage: Stage): Promise<string[]> {
  await using stack = new AsyncDisposableStack();
  const answer = () => ({ addresses: ["127.0.0.1"], afterMs: 4_000 });
  const { asked } = await startNameServer(lifetime(stack), answer, { host: "127.0.0.1", port: 53 });
  const ids = await Promise.all([0, 1].map((i) => setWebhook(stage, `https://slow-${i}.example/hook`)));
  const end = Date.now() + stage.ms - 1_000;
  while (Date.now() < end) {
    await Promise.all(ids.map((id) => attack(stage, id)));
    await sleep(1_050);
  }
  stage.count("questions to the slow name server", asked.length);
  return asked.length === 0 ? ["the service asked the slow name server for no name"] : [];
}

async function silentWebhooks(stage: Stage): Promise<string[]> {
  await using stack = new AsyncDisposableStack();
  const silent = await listen(stack, createServer());
  const arrived: (() => void)[] = [];
  const receiver = createServer((_, response) => {
    arrived.shift()?.();
    response.end();
  });
  const attacker = await setWebhook(stage, silent);
  const other = await setWebhook(stage, await listen(stack, receiver));
  const problems: string[] = [];
  const end = Date.now() + stage.ms;
  const probe = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    arrived.push(resolve);
    const sent = Date.now();
    await testAlert(stage, other);
    await Promise.race([promise, sleep(Math.max(0, end - Date.now()), undefined, { ref: false })]);
    const ms = Date.now() - sent;
    stage.longest("time to another alert", ms);
    if (ms > ARRIVAL_MS) problems.push(`another workspace's alert arrived after ${(ms / 1_000).toFixed(1)} s`);
  };
  let probes = Promise.resolve();
  for (let second = 0; Date.now() < end - 2_000; second++) {
    await attack(stage, attacker);
    if (second % 10 === 5) probes = probes.then(probe);
    await sleep(1_050);
  }
  await probes;
  return problems;
}

/** Creates a workspace with a webhook. @returns its identifier */
async function setWebhook({ service, database }: Stage, webhookUrl: string): Promise<string> {
  const { id } = await createWorkspace(database, {});
  const alerts = { webhookUrl, failureShare: 1 };
  await callAdmin(service, "AlertService/SetAlerts", { workspace: id, alerts });
  return id;
}

async function testAlert({ service }: Stage, workspace: string): Promise<void> {
  await callAdmin(service, "AlertService/TestAlerts", { workspace });
}

async function attack(stage: Stage, workspace: string): Promise<void> {
  // One is refused within a second after the one before.
  await testAlert(stage, workspace).then(
    () => stage.count("test alerts"),
    () => stage.count("refused test alerts"),
  );
}

/** Starts a receiver until the end of the stack. @returns its address */
async function listen(stack: AsyncDisposableStack, server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(async () => {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}
