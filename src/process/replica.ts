import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { checkSecrets } from "../admin/bootstrap.ts";
import { hasOtherReplicas, startReports } from "../admin/replicas.ts";
import { createAdminServices } from "../admin/services.ts";
import { record, WHOLE_SERVICE } from "../admin/shared/audit.ts";
import { applyTiers } from "../admin/tiers.ts";
import { createAuthenticator } from "../admission/authenticate.ts";
import { keepEpoch } from "../admission/epochs.ts";
import { CALL_BACK, CAP_CALL_BACK, Grants } from "../admission/grants.ts";
import { journalFolder, openJournal } from "../admission/journal.ts";
import { type Admission, createAdmission } from "../admission/lease.ts";
import { isSettlementRow, PostJournal } from "../admission/post-journal.ts";
import { postLog } from "../admission/poster.ts";
import { keepAlerts } from "../alerts/alerts.ts";
import { createMailer } from "../alerts/mail.ts";
import { createSender, type Sender } from "../alerts/sender.ts";
import { createWebhooks } from "../alerts/webhook.ts";
import type { Config } from "../config/config.ts";
import { createSettingsReader, type Settings } from "../config/settings.ts";
import { VERSION } from "../contract/version.ts";
import { createReader } from "../engine/attachments/reader.ts";
import { loadDifficultyRater } from "../engine/difficulty/difficulty.ts";
import { createValidators } from "../engine/structured/validate.ts";
import { createTokenizer } from "../engine/tokens/tokens.ts";
import type { GenerationParts } from "../generate/generate.ts";
import { InFlight } from "../generate/in-flight.ts";
import { type Learning, startLearning } from "../learning/knowledge.ts";
import { startReferee } from "../learning/referee.ts";
import type { Catalogue } from "../models/catalogue.ts";
import { createForeignNames } from "../names/foreign-names.ts";
import { createOwnNames } from "../names/own-names.ts";
import { lookupWith } from "../names/resolve.ts";
import { startShedder } from "../overload/shedder.ts";
import { RunKeeper } from "../runs/keeper.ts";
import { findRunning } from "../runs/running.ts";
import { TextKeys } from "../runs/text-keys.ts";
import { createTextStore } from "../runs/text-store.ts";
import { createSearch } from "../search/search.ts";
import { createStore, type Store } from "../store/open.ts";
import { keepPartitions } from "../store/partitions.ts";
import { createTelemetry } from "../telemetry/create.ts";
import type { ProcessLog } from "../telemetry/log.ts";
import { startTracing } from "../telemetry/tracing.ts";
import { createServices, type Services } from "../transport/call/services.ts";
import { announce } from "./announce.ts";
import type { Context } from "./context.ts";
import { followDisabledModels } from "./disabled-models.ts";
import { firstRun } from "./first-run.ts";
import { checkReferee, modelsMaker } from "./models.ts";
import { type Probes, startProbes, vendorsOf, whatProbesFound } from "./probes.ts";
import { startReloading } from "./reload.ts";
import { run, type Start } from "./run.ts";
import { startServers } from "./servers.ts";
import { allocateYoung, keepCode } from "./v8-flags.ts";
import { linkToPrimary } from "./workers/link.ts";

interface ServiceParts {
  services: Services;
  models: () => Catalogue;
  /** Undefined if vendors are not probed. */
  probes: Probes | undefined;
  /** Whether only the offline models are available. */
  offline: boolean;
  /** Undefined if learning is off. */
  learning: Learning | undefined;
}

/** Runs a replica until a stop signal of its process. @returns the exit code */
export function runReplica(host: NodeJS.Process): Promise<number> {
  allocateYoung();
  const primary = linkToPrimary(host);
  const starts: Start = (config, log, stopping) => start({ host, primary }, config, log, stopping);
  return run(host, starts, { worker: primary?.place, failed: primary?.failed });
}

/**
 * Starts a replica. The listeners start before the database is available, so that probes are answered; other requests
 * are refused until the end of the start. Where other workers serve already, the listeners start last.
 */
async function start(
  { host, primary }: Pick<Context, "host" | "primary">,
  config: Config,
  { log, errors, output }: ProcessLog,
  stopping: AbortSignal,
): Promise<AsyncDisposable> {
  checkSecrets({ apiKey: config.bootstrapApiKey, operatorToken: config.operatorToken });
  await using stack = new AsyncDisposableStack();
  if (config.tracing) stack.adopt(await startTracing(config.tracing, log, errors), (tracing) => tracing.stop());
  const ownsDatabase = primary?.embedded ?? config.databaseUrl === undefined;
  // A database of the operator may be behind a pooler.
  const store = stack.use(createStore({ ...config, prepares: ownsDatabase }, log, stopping));
  const telemetry = createTelemetry(errors);
  telemetry.watchProcess();
  telemetry.watchLog(() => output.dropped);

  const disabled = followDisabledModels(store.maintenance, store.notifications, log);
  stack.defer(() => disabled.stop());
  const given = { host, primary, config, log, telemetry, errors, disabled, stack };
  const context: Context = { ...given, names: createOwnNames(), reporting: { soon() {} } };
  const replica = randomUUID();
  const grants = await createGrants(context, store, replica);
  // Heartbeats go on while the servers drain, or other replicas would end the grants of the requests that still run.
  const epochs = stack.use(new AsyncDisposableStack());
  const admission = createAdmission(store.requests, grants, undefined, telemetry);
  const inFlight = new InFlight();
  const { services, models, probes, offline, learning } = createServiceParts(context, store, admission, inFlight);
  const early = primary?.replaces ? undefined : await startServers(context, services, inFlight);

  const made = await store.open(async (pools, repeat) => {
    await repeat(() => applyTiers(pools.maintenance, config.tiers));
    await repeat(() => disabled.readFirst(pools.maintenance));
    const { retentionDays, runs } = config;
    const partitions = await keepPartitions(pools.maintenance, { retentionDays, runDays: runs.days, log });
    stack.defer(() => partitions.stop());
    const hears = () => store.notifications.period !== undefined;
    const epoch = await repeat(() => keepEpoch(pools.requests, replica, grants, hears, log));
    epochs.defer(() => epoch.stop());
    // New secrets are shown only once. They are created last, so that no later step can fail before they are printed.
    const link = primary ? primary.place === 1 && !primary.replaces : true;
    return firstRun(pools.maintenance, config, { local: ownsDatabase, link, repeat });
  });
  grants.recover();
  await learning?.refresh();
  const { restUrl, rpcUrl, warmUp } = early ?? (await startServers(context, services, inFlight));
  const ownProcess = { host: hostname(), pid: host.pid, version: VERSION };
  const reports = startReports(store.maintenance, replica, ownProcess, telemetry, () => models().load(), log);
  context.reporting.soon = reports.soon;
  stack.defer(() => reports.stop());
  if (Object.keys(made.secrets).length === 0) stopping.throwIfAborted();
  const ready = { restUrl, rpcUrl, ...made, offline, ...(await whatProbesFound(probes, models())) };
  if (primary) primary.ready(ready);
  else await announce(host, config, log, stack, ready);
  if (config.warmsUp) {
    keepCode();
    warmUp();
  }
  return stack.move();
}

/** Creates the grants of this replica. They are returned after the drain, before the store closes its connections. */
async function createGrants(
  { config, log, telemetry, stack }: Context,
  { requests, notifications }: Store,
  replica: string,
): Promise<Grants> {
  const { folder, discard } = await journalFolder(config.dataDir, log);
  stack.defer(discard);
  const journal = await openJournal(folder, log, isSettlementRow);
  const posts = new PostJournal(journal, replica, log, telemetry);
  const grants = new Grants({ pool: requests, journal: posts, replica, log, telemetry });
  notifications.listen(CALL_BACK, (workspace) => grants.callBack(workspace));
  notifications.listen(CAP_CALL_BACK, (subject) => grants.callBackSubject(subject));
  stack.defer(() => grants.close());
  return grants;
}

/** @returns the services and what the start needs of them */
function createServiceParts(context: Context, store: Store, admission: Admission, inFlight: InFlight): ServiceParts {
  const { primary, config, telemetry, stack } = context;
  const { requests, maintenance, notifications } = store;
  const reader = createReader();
  stack.defer(() => reader.close());
  const difficulty = loadDifficultyRater();
  // Warms up the rater: the first rating of a process takes some milliseconds, later ones microseconds.
  difficulty.rate("What is 6 * 7?").explain();
  const shedder = startShedder(config.maxLoopDelayMs, telemetry);
  stack.defer(() => shedder.stop());
  const { deadlines, levels } = config;
  const { isOn, perDay, textKeys: keys, textBytesPerDay } = config.runs;
  const textKeys = new TextKeys(keys);
  const storeTexts = textKeys.areSet ? createTextStore(maintenance, textKeys, textBytesPerDay) : undefined;
  const runs = isOn ? new RunKeeper(maintenance, { perDay, storeTexts }) : undefined;
  stack.defer(() => runs?.flush());
  telemetry.watchRuns(() => runs?.counts);
  const { generation, learning, probes, hasAnswered } = createReloadable(context, store, {
    difficulty,
    runs,
    reader,
    admission,
    inFlight,
    deadlines,
    levels,
  });
  const models = () => generation().engine.models;
  const hasOthers = () => hasOtherReplicas(maintenance);
  const authenticator = createAuthenticator(requests, Date.now, notifications);
  const admin = createAdminServices({
    pool: maintenance,
    notifications,
    keyCache: authenticator,
    telemetry,
    rates: () => generation().rates,
    usdPerCredit: config.usdPerCredit,
    models: {
      all: () => models().all,
      disabledChanged: context.disabled.read,
      test: (name) => models().test(name),
      learning,
    },
    checkUrl: startAlerts(context, store).checkUrl,
    report: admission.report,
    oidc: config.oidc && { config: config.oidc, log: context.log },
    postLog: (workspaceId) => postLog(maintenance, workspaceId),
    runs: runs && {
      flush: () => runs.flush(),
      textKeys,
      hasOthers,
      running: findRunning(runs.running, notifications, hasOthers),
    },
  });
  const isServing = () => store.isOpen && store.isReachable && (primary?.allReady ?? true);
  const vendors = () => vendorsOf(models(), probes !== undefined && !hasAnswered());
  const services = createServices({ generation, inFlight, authenticator, admin, isServing, vendors, shedder });
  return { services, models, probes, offline: models().offline, learning };
}

function startAlerts({ config, log, telemetry, names, stack }: Context, { maintenance }: Store): Sender {
  const { webhookHosts: hosts, webhookDnsServers, mail } = config;
  const webhooks = createWebhooks({ hosts, own: names.resolve, foreign: createForeignNames(webhookDnsServers) });
  const sender = createSender(webhooks, createMailer(mail, names.resolve));
  const alerts = keepAlerts(maintenance, sender, { ...config.alerts, log, onWait: telemetry.alertWait });
  stack.defer(() => alerts.stop());
  return sender;
}

/**
 * Adds the parts that a reload replaces. Those that it has replaced are not closed, because running requests use them;
 * their idle connections close after 30 s.
 * @returns `generation`: what a request that begins now is answered with
 */
function createReloadable(
  context: Context,
  { maintenance }: Store,
  given: Omit<GenerationParts, "engine" | "search" | "rates" | "referee">,
): Pick<ServiceParts, "learning" | "probes"> & { generation: () => GenerationParts; hasAnswered(): boolean } {
  const { host, primary, config, log, telemetry, errors, names, stack } = context;
  const { make: modelsOf, hasAnswered } = modelsMaker(context, maintenance);
  const searchOf = ({ search }: Settings) => createSearch(search, { lookup: lookupWith(names.resolve) });
  const learning =
    config.learning.from === "off"
      ? undefined
      : startLearning(maintenance, () => current.engine.models.all, { errors });
  stack.defer(() => learning?.stop());
  const engine = {
    ...(learning ? { knowledge: () => learning.knowledge } : {}),
    models: modelsOf(config),
    tokenizer: createTokenizer(),
    validators: createValidators(),
  };
  const { referee: refereeConfig } = config.learning;
  if (refereeConfig) checkReferee(engine.models.all, refereeConfig.model, log);
  const referee =
    refereeConfig &&
    startReferee(maintenance, {
      config: refereeConfig,
      members: () => current.engine.models.members,
      post: (workspaceId) => postLog(maintenance, workspaceId),
      errors,
    });
  const fixed = { ...given, referee };
  let current: GenerationParts = { ...fixed, engine, search: searchOf(config), rates: config.rates };
  telemetry.watchModels(() => current.engine.models.load());
  const probes = config.probesVendors ? startProbes(() => current.engine.models) : undefined;
  context.disabled.onEnabled((models) => {
    for (const name of models) current.engine.models.reset(name);
    probes?.again();
    context.reporting.soon();
  });
  stack.defer(() => current.engine.models.close());
  stack.defer(() => probes?.stop());
  stack.defer(() => current.search?.close());
  stack.defer(() => referee?.stop());
  telemetry.watchReferee(() => referee?.counts);

  // All workers of a service use the same files.
  const isFirst = (primary?.place ?? 1) === 1;
  const audit = async (action: string, details: object): Promise<void> => {
    if (isFirst) await record(maintenance.query, { kind: "service", id: "reload" }, WHOLE_SERVICE, action, details);
  };
  const reloading = startReloading({
    reader: createSettingsReader(host.env, config.workers),
    settings: config,
    log,
    async apply(next, changed) {
      const models = changed.includes("models") ? modelsOf(next) : current.engine.models;
      const search = changed.includes("search") ? searchOf(next) : current.search;
      if (changed.includes("tiers")) await applyTiers(maintenance, next.tiers);
      await audit("settings.reload", { changed });
      current = { ...fixed, engine: { ...engine, models }, search, rates: next.rates };
      probes?.again();
      if (changed.includes("models")) await learning?.refresh();
    },
    refused: (reason) => audit("settings.refuse", { reason }),
  });
  stack.defer(() => reloading.stop());
  if (primary) primary.onReload(() => reloading.request());
  else host.on("SIGHUP", () => reloading.request());
  return { generation: () => current, learning, probes, hasAnswered };
}
