/**
 * Chorus without keys, limits, credit and charges. The difference to the complete service is the cost of admission and
 * billing.
 *   node bench/ungoverned.ts PORT CATALOGUE
 */
import type { Admission } from "../src/admission/lease.ts";
import { envToConfig } from "../src/config/config.ts";
import { createReader } from "../src/engine/attachments/reader.ts";
import { loadDifficultyRater } from "../src/engine/difficulty/difficulty.ts";
import { createValidators } from "../src/engine/structured/validate.ts";
import { createTokenizer } from "../src/engine/tokens/tokens.ts";
import { createGeneration } from "../src/generate/generate.ts";
import { InFlight } from "../src/generate/in-flight.ts";
import { createCatalogue } from "../src/models/catalogue.ts";
import { allocateYoung, keepCode } from "../src/process/v8-flags.ts";
import { createTelemetry } from "../src/telemetry/create.ts";
import { createLog } from "../src/telemetry/log.ts";
import { createPublicServer } from "../src/transport/listeners/public.ts";
import { createLargeReader } from "../src/transport/reading/reader.ts";
import { servicesWith } from "../test/helpers/services.ts";

allocateYoung();
keepCode();
const [port = "", catalogue = ""] = process.argv.slice(2);
const config = envToConfig({ CHORUS_MODELS: catalogue });
const telemetry = createTelemetry();
const admission: Admission = {
  open: async () => ({ settle: async () => ({ credits: 0 }), [Symbol.asyncDispose]: async () => undefined }),
  precheck: () => undefined,
  limits: () => undefined,
  report: async () => undefined,
};
const engine = {
  models: createCatalogue(config.models, config.timeouts, { onCall: telemetry.modelCall }),
  tokenizer: createTokenizer(),
  validators: createValidators(),
};
const anonymous = { workspaceId: "ws_none", workspace: "none", keyId: "key_none", scopes: [] };
const work = new InFlight();
const generation = {
  engine,
  difficulty: loadDifficultyRater(),
  reader: createReader(),
  search: undefined,
  admission,
  inFlight: work,
  deadlines: config.deadlines,
  levels: config.levels,
  rates: config.rates,
};
const services = { ...servicesWith({ authorize: () => anonymous }), generation: createGeneration(() => generation) };
const requests = createLargeReader();
createPublicServer(services, config, createLog("warn"), telemetry, requests).listen(Number(port), "127.0.0.1");
