type SimpleType = "string" | "number" | "integer" | "boolean" | "null";
type Simple = string | number | boolean | null;

/** Keywords that any node may have and that do not affect validity. */
interface Notes {
  readonly description?: string;
  readonly title?: string;
  readonly default?: unknown;
  readonly examples?: unknown;
  readonly deprecated?: unknown;
  readonly readOnly?: unknown;
  readonly writeOnly?: unknown;
  readonly $comment?: unknown;
}

interface ObjectSchema extends Notes {
  readonly type: "object";
  readonly properties?: { readonly [name: string]: SchemaNode };
  /** Names of required properties; each is declared in `properties`. */
  readonly required?: readonly string[];
  /** Whether undeclared properties are valid. Default true, as in JSON Schema. */
  readonly additionalProperties?: boolean;
}

interface ArraySchema extends Notes {
  readonly type: "array";
  readonly items: SchemaNode;
  readonly minItems?: number;
  readonly maxItems?: number;
}

interface SimpleSchema extends Notes {
  /** A list, such as `["string", "null"]`, allows several simple types. */
  readonly type: SimpleType | readonly SimpleType[];
  readonly enum?: readonly Simple[];
  readonly const?: Simple;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

type SchemaNode = ObjectSchema | ArraySchema | SimpleSchema;

/**
 * A JSON Schema that the service accepts: an object at the root, with keywords of the strict subset. Append `as const
 * satisfies ResponseSchema` to a schema to check its keywords and to infer the type of the answer.
 */
export interface ResponseSchema extends ObjectSchema {
  readonly $schema?: string;
}

/**
 * The type of the values that are valid against a schema. The schema must have an exact type: written inline, or `as
 * const`.
 */
export type FromSchema<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly type: infer Type }
      ? FromType<Type extends readonly (infer One)[] ? One : Type, S>
      : unknown;

type FromType<Type, S> = Type extends "object"
  ? FromObject<S>
  : Type extends "array"
    ? S extends { readonly items: infer Items }
      ? FromSchema<Items>[]
      : unknown[]
    : Type extends "string"
      ? string
      : Type extends "number" | "integer"
        ? number
        : Type extends "boolean"
          ? boolean
          : Type extends "null"
            ? null
            : unknown;

type FromObject<S> = S extends { readonly properties: infer Properties }
  ? Flat<
      {
        -readonly [Name in keyof Properties as Name extends RequiredOf<S> ? Name : never]: FromSchema<Properties[Name]>;
      } & {
        -readonly [Name in keyof Properties as Name extends RequiredOf<S> ? never : Name]?: FromSchema<
          Properties[Name]
        >;
      } & Others<S>
    >
  : Record<string, unknown>;

type RequiredOf<S> = S extends { readonly required: readonly (infer Name)[] } ? Name : never;

type Others<S> = S extends { readonly additionalProperties: false } ? unknown : { [name: string]: unknown };

/** Merges an intersection into one object type, which editors display better. */
type Flat<T> = { [Name in keyof T]: T[Name] };
