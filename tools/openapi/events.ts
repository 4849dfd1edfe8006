import type { DescMethod } from "@bufbuild/protobuf";
import type { Schema, Schemas } from "./schema.ts";

/**
 * The type of the data of each event of a stream, by the name of the event, as the extension `x-event-types`. OpenAPI
 * 3.1 can state only that the data have one of several types.
 * @returns nothing for a stream whose events have no names
 */
export function eventTypes({ parent, output }: DescMethod, schemas: Schemas): Schema {
  if (parent.name !== "GenerationService") return {};
  const types = output.fields.flatMap(({ name, message }) => (message ? [[name, schemas.message(message)]] : []));
  return { "x-event-types": { ...Object.fromEntries(types), error: { $ref: "#/components/schemas/Failure" } } };
}
