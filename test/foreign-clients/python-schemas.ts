/** Arguments of a tool, as Pydantic writes them. */
export const CITY = { properties: { city: { title: "City", type: "string" } }, required: ["city"], type: "object" };
export const CITY_STRICT = {
  additionalProperties: false,
  properties: { city: { type: "string" } },
  required: ["city"],
  type: "object",
};
/** A model of Pydantic's with a nested, an optional and an enumerated member, as `model_json_schema()` writes it. */
export const ORDER = {
  $defs: {
    Item: {
      properties: { name: { title: "Name", type: "string" }, count: { title: "Count", type: "integer" } },
      required: ["name", "count"],
      title: "Item",
      type: "object",
    },
    Kind: { enum: ["new", "old"], title: "Kind", type: "string" },
  },
  properties: {
    item: { $ref: "#/$defs/Item" },
    kind: { $ref: "#/$defs/Kind" },
    note: { anyOf: [{ type: "string" }, { type: "null" }], default: null, title: "Note" },
  },
  required: ["item", "kind"],
  title: "Order",
  type: "object",
};
/** The same after `to_strict_json_schema` of `openai`. */
export const ORDER_STRICT = {
  $defs: {
    Item: { ...ORDER.$defs.Item, additionalProperties: false },
    Kind: ORDER.$defs.Kind,
  },
  properties: { ...ORDER.properties, note: { anyOf: [{ type: "string" }, { type: "null" }], title: "Note" } },
  required: ["item", "kind", "note"],
  title: "Order",
  type: "object",
  additionalProperties: false,
};
export const ASK = "I ordered a new bolt. What is the weather in Oslo?";
export const FUNCTION = { name: "get_weather", description: "The weather of a city.", parameters: CITY };
export const EXTRACT = "Correctly extracted `Order` with all the required parameters with correct types";
export const USER = { role: "user", content: ASK };
