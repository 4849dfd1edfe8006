import { Breaker } from "../concurrency/breaker.ts";
import type { Accuracies } from "../contract/terms.ts";
import type { OwnNames } from "../names/own-names.ts";
import { lookupWith } from "../names/resolve.ts";
import { createInternalErrors, type InternalErrors } from "../telemetry/internal-errors.ts";
import { CallLimit, shareConnections } from "./call-limit.ts";
import { callRecord } from "./cost.ts";
import { type FailureReport, Failures, type FailureTurn } from "./failures.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { createHttpClient, type HttpClient } from "./http.ts";
import { Latency } from "./latency.ts";
import type { CallFailure, ModelEntry, ModelState, ModelTimeouts, ServedVersion } from "./port/entry.ts";
import type { CallRecord, Model } from "./port/model.ts";
import type { CallRefusal } from "./port/model-error.ts";
import { probeAll } from "./probe.ts";
import { publishedOf } from "./published.ts";
import { type ResilientOptions, resilient } from "./resilient.ts";
import { Served } from "./served.ts";
import { type Tested, testCall } from "./test-call.ts";
import { tracedModel } from "./traced.ts";
import type { CallEnd } from "./try.ts";
import { untilStop } from "./until-stop.ts";
import { baseAddress, createVendorModel, formatOf } from "./vendor.ts";

/** One model of the catalogue: what its entry says of it, and how to ask it. */
export interface Member extends Pick<ModelEntry, "name" | "tier" | "accuracy" | "thinks" | "images" | "contextTokens"> {
  /**
   * Maker of the model. A server with OpenAI's format may host models of many makers, so each of its models counts as
   * its own.
   */
  vendor: string;
  model: Model;
  /** Identifies what its entry asks; see `fingerprintOf`. */
  fingerprint: string;
  /** Published shares of right answers of exactly this model. */
  published?: Accuracies;
  /** USD per million tokens. */
  price?: { input: number; output: number };
  /** Its time to first text. Absent: it is never hedged. */
  latency?: Pick<Latency, "hedgeAfterMs" | "maySpend">;
}

/** What the calls of one model need from all models. */
export interface CatalogueOptions {
  /** Largest number of connections to vendors. Default 8,192. */
  connections?: number;
  /** Resolves the names of vendors. Default: `dns.lookup` for each connection. */
  names?: OwnNames;
  /** Called after each call of a vendor, failed ones and retries included. */
  onCall?: (call: CallRecord) => void;
  /** Called when another version of a model answers than before, with the name of the model. */
  onVersion?: (model: string, served: ServedVersion) => void;
  /** Called for failed calls, at most once in ten seconds for each model, status and code. */
  onFailure?: FailureReport;
  onTurn?: FailureTurn;
  /** Called for each call that was not sent, with the name of the model. */
  onRefusal?: (model: string, refusal: CallRefusal) => void;
  /** Gets what the callbacks and a call's `onUsed` throw, which does not affect the call. */
  errors?: InternalErrors;
  /** Names of the models that no request may call now; another set when they have changed. Default: none. */
  disabled?: () => ReadonlySet<string>;
}

/** A model that a probe has found failing. */
export interface Probed {
  readonly entry: ModelEntry;
  readonly failure: CallFailure;
}

/** All models of the service. */
export interface Catalogue {
  /** Whether all models are built-in offline models. */
  readonly offline: boolean;
  /** The models that requests may call, in the order of the configuration. The same list until they change. */
  readonly members: readonly Member[];
  /** All models, disabled ones too. */
  readonly all: readonly Member[];
  /**
   * Identifies what has answered: the entry of a model with the version that its vendor has named, if it names one;
   * undefined for an unknown model.
   */
  fingerprintOf(model: string, version: string | undefined): string | undefined;
  /** The state of each model, as this process knows it. */
  load(): ModelState[];
  /** Whether the vendor of each enabled model refuses its key, account or name, so that no request can be answered. */
  isRefused(): boolean;
  /** Whether a probe would notice if the vendor of a refused model takes it again. */
  mayBeMended(): boolean;
  /**
   * Probes the enabled models, within 20 seconds. What it finds counts as the result of their last call.
   * @param onlyRefused only those that were refused for a reason that a probe finds
   * @returns the models that failed
   */
  probe(stop: AbortSignal, options: { onlyRefused: boolean }): Promise<readonly Probed[]>;
  /** Closes the circuit of a model, so that requests call it at once. Does nothing to an unknown model. */
  reset(model: string): void;
  /** Sends a model a test call; undefined for an unknown model. */
  test(model: string): Promise<Tested | undefined>;
  /** Closes all connections to vendors; running calls fail. */
  close(): Promise<void>;
}

/** Makes the models of the configuration, and looks the names of their vendors up. No call is sent. */
export function createCatalogue(
  entries: readonly ModelEntry[],
  timeouts: ModelTimeouts,
  { connections: max = 8_192, names, errors = createInternalErrors(), ...on }: CatalogueOptions = {},
): Catalogue {
  const http = createHttpClient({ connectMs: timeouts.connectMs, lookup: names && lookupWith(names.resolve) });
  for (const entry of entries) if (entry.vendor !== "offline") names?.prepare(hostOf(entry));
  const connections = shareConnections(max);
  const enabled = filterOf(on.disabled);
  const loads: (() => ModelState)[] = [];
  const breakers = new Map<string, Breaker>();
  const served = new Served(entries, on.onVersion);
  const failures = new Failures(on.onFailure, on.onTurn);
  const all = entries.map((entry): Member => {
    const latency = new Latency();
    const onEnd = (end: CallEnd) =>
      errors.guard("model_call", () => {
        recordLatency(latency, end);
        const record = callRecord(entry, end, served.priceOf(entry, end.version));
        // The request's own costs first: they are kept if `onCall` throws.
        end.call.onUsed?.(record);
        on.onCall?.(record);
        if (end.version !== undefined) served.note(entry, end.version);
        failures.note(entry, end);
      });
    const limit = new CallLimit({ max: Math.min(max, entry.maxConcurrency ?? max), connections });
    const breaker = new Breaker();
    breakers.set(entry.name, breaker);
    loads.push(() => ({
      ...{ model: entry.name, tier: entry.tier, vendor: entry.vendor },
      api: entry.vendor === "offline" ? undefined : formatOf(entry).api,
      ...(entry.vendor === "offline" ? { running: 0, waiting: 0 } : limit.size),
      isDisabled: on.disabled?.().has(entry.name) ?? false,
      ...{ isOpen: !breaker.isClosed, failedShare: breaker.failedShare },
      ...{ firstTextMs: latency.quantiles(), served: served.last(entry), failure: failures.last(entry) },
    }));
    const options: ResilientOptions = {
      ...{ timeouts, breaker, onEnd },
      onRefusal: (refusal) => errors.guard("model_call", () => on.onRefusal?.(entry.name, refusal)),
      ...(entry.vendor === "offline" ? {} : { limit }),
    };
    return {
      ...factsOf(entry),
      model: resilient(untilStop(tracedModel(createVendorModel(entry, http), entry)), options),
      ...(entry.vendor === "offline" ? {} : { latency }),
    };
  });
  return {
    offline: all.every(({ vendor }) => vendor === "offline"),
    all,
    get members() {
      return enabled(all);
    },
    fingerprintOf: served.fingerprintOf,
    load: () => loads.map((read) => read()),
    ...vendorChecks(() => enabled(entries), http, failures),
    reset: (name) => breakers.get(name)?.reset(),
    async test(name) {
      const at = entries.findIndex((one) => one.name === name);
      const [entry, member] = [entries[at], all[at]];
      return entry && member && testCall(entry, member.model);
    },
    close: http.close,
  };
}

/** What an entry says of its model. */
function factsOf(entry: ModelEntry): Omit<Member, "model" | "latency"> {
  const { name, tier, images, thinks, accuracy, price, contextTokens } = entry;
  const published = publishedOf(entry.model);
  return {
    ...{ name, tier, images },
    vendor: entry.vendor === "openai-compatible" ? `${entry.baseUrl} ${entry.model}` : entry.vendor,
    fingerprint: fingerprintOf(entry),
    ...(thinks ? { thinks } : {}),
    ...(accuracy === undefined ? {} : { accuracy }),
    ...(published ? { published } : {}),
    ...(price ? { price } : {}),
    ...(contextTokens === undefined ? {} : { contextTokens }),
  };
}

/** Leaves disabled models out. The result for a list is the same until they change. */
function filterOf(disabled: CatalogueOptions["disabled"]) {
  let known = new WeakMap<object, readonly unknown[]>();
  let of: ReadonlySet<string> | undefined;
  return <T extends { readonly name: string }>(list: readonly T[]): readonly T[] => {
    const names = disabled?.();
    if (!names?.size) return list;
    if (names !== of) known = new WeakMap();
    of = names;
    const found = (known.get(list) as readonly T[] | undefined) ?? list.filter(({ name }) => !names.has(name));
    known.set(list, found);
    return found;
  };
}

/** What is known of the failures of the enabled models. */
function vendorChecks(
  enabled: () => readonly ModelEntry[],
  http: HttpClient,
  failures: Failures,
): Pick<Catalogue, "isRefused" | "mayBeMended" | "probe"> {
  return {
    isRefused: () => enabled().length > 0 && enabled().every((entry) => failures.last(entry)?.needsOperator === true),
    mayBeMended: () => enabled().some(failures.mayBeMended),
    async probe(stop, { onlyRefused }) {
      const probed = enabled().filter((entry) => !onlyRefused || failures.mayBeMended(entry));
      const found = new Map<ModelEntry, CallFailure>();
      await probeAll(probed, http, stop, (entry, error) => {
        const failure = failures.noteProbe(entry, error);
        if (failure) found.set(entry, failure);
      });
      // In the order of the configuration.
      return probed.flatMap((entry) => {
        const failure = found.get(entry);
        return failure ? [{ entry, failure }] : [];
      });
    },
  };
}

function recordLatency(latency: Latency, { outcome, received, firstTextMs }: CallEnd): void {
  if (received > 0) latency.record(firstTextMs);
  else if (outcome === "left" || outcome === "timed_out") latency.recordAtLeast(firstTextMs);
}

function hostOf(entry: ModelEntry): string {
  return new URL(baseAddress(entry).origin).hostname;
}
