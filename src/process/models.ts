import { ConfigError } from "../config/config.ts";
import type { Settings } from "../config/settings.ts";
import { refereeProblem } from "../learning/referee.ts";
import { startVersionNotes } from "../learning/versions.ts";
import { type Catalogue, createCatalogue, type Member } from "../models/catalogue.ts";
import type { CallFailure } from "../models/port/entry.ts";
import type { Pool } from "../store/pool.ts";
import type { Log } from "../telemetry/log.ts";
import type { Context } from "./context.ts";

/**
 * Makes the models of settings. Tells the log and the database when another version of a model answers than before,
 * and the log why calls fail.
 * @param pool for the versions
 * @returns `hasAnswered`: whether any model has answered since the start of the process
 */
export function modelsMaker(
  { config, log, telemetry, errors, names, disabled, reporting, stack }: Context,
  pool: Pick<Pool, "query">,
) {
  const versions = startVersionNotes(pool, errors);
  stack.defer(() => versions.stop());
  let hasAnswered = false;
  const make = ({ models }: Settings): Catalogue => {
    const catalogue = createCatalogue(models, config.timeouts, {
      connections: config.connections.vendors,
      names,
      onCall(call) {
        if (call.outcome === "ok") hasAnswered = true;
        telemetry.modelCall(call);
      },
      onVersion(model, { version, isExpected }) {
        log[isExpected ? "info" : "warn"]({ model, version }, isExpected ? "a model answers" : "another model answers");
        const entry = catalogue.fingerprintOf(model, undefined);
        const served = catalogue.fingerprintOf(model, version);
        if (entry && served) versions.note(model, { entry, served });
      },
      onFailure({ name: model, vendor }, { at: _, count: __, ...failure }, failures) {
        log.warn({ model, vendor, ...failure, failures }, failureText(failure));
      },
      onTurn({ name: model, vendor }, isRefused) {
        if (!isRefused) log.info({ model, vendor }, "a vendor does not refuse a model any more");
        reporting.soon();
      },
      onRefusal: telemetry.modelCallRefused,
      errors,
      disabled: disabled.names,
    });
    return catalogue;
  };
  return { make, hasAnswered: () => hasAnswered };
}

function failureText({ needsOperator }: Pick<CallFailure, "needsOperator">): string {
  return needsOperator ? "a vendor refuses calls of a model, and waiting does not help" : "a call of a model failed";
}

/** @throws ConfigError for a model that cannot be the referee */
export function checkReferee(members: readonly Member[], name: string, log: Log): void {
  const found = refereeProblem(members, name);
  if (found?.isCertain) throw new ConfigError(`CHORUS_REFEREE: ${found.problem}. Name the most accurate model.`);
  if (found) log.warn({ model: name }, `CHORUS_REFEREE: ${found.problem}`);
}
