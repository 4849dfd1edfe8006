import type { Shape } from "../contract/terms.ts";
import type { Kind } from "../engine/difficulty/difficulty.ts";
import { digestOf, type FormName, formName, formOf, formOfCanonical } from "./form.ts";

/**
 * Who drafted an answer, for the column `drafts` of `outcomes`. Drafts with the same answer are in one group. No text
 * is in it.
 */
export interface DraftsRecord {
  /** How the answers are compared; absent: they cannot be. */
  f?: FormName;
  /** Group of the answer. */
  a: number;
  /** Digest of each group's answer; null if its form is not known. */
  g: (string | null)[];
  /** Drafts: name of the model, fingerprint of its entry and version, group; null for a draft without a form. */
  d: [model: string, fingerprint: string | null, group: number | null][];
}

/** The drafts of a panel, as the engine reports them. */
export interface Drafted {
  readonly drafts: readonly {
    readonly model: string;
    readonly version?: string | undefined;
    readonly canonical: string | undefined;
  }[];
  /** Place of the draft that is the answer, or nearest to a merged one; undefined: another model has written it. */
  readonly chosen: number | undefined;
}

/** An answer that has ended. */
export interface Answer {
  readonly generation: string;
  readonly kind: Kind;
  readonly shape: Shape;
  /** Of a JSON shape: the object. */
  readonly text: string;
  /** Name of the model that answered, and its version, as the vendor names it. */
  readonly model: string;
  readonly version?: string | undefined;
  /** Undefined: one model was asked. */
  readonly drafted: Drafted | undefined;
  /** The fingerprint of a model's entry and version; undefined for an unknown model. */
  fingerprintOf(model: string, version: string | undefined): string | undefined;
}

/** Most bytes of a record. The drafts that come last are left out of a larger one. */
const MAX_BYTES = 300;

/** @returns undefined if there is nothing to compare: one model has answered in prose */
export function draftsRecord(answer: Answer): DraftsRecord | undefined {
  const { generation, kind, shape, model, version, drafted, fingerprintOf } = answer;
  const name = formName(kind, shape);
  if (name === undefined && !drafted) return undefined;
  const groups: (string | undefined)[] = [];
  const groupOf = (of: string | undefined): number | null => {
    if (of === undefined) return null;
    const known = groups.indexOf(of);
    return known >= 0 ? known : groups.push(of) - 1;
  };
  const entry = (by: string, of: string | undefined, group: number | null): DraftsRecord["d"][number] => [
    by,
    fingerprintOf(by, of) ?? null,
    group,
  ];
  const d = (drafted?.drafts ?? []).map(({ model, version, canonical }) =>
    entry(model, version, name && canonical !== undefined ? groupOf(formOfCanonical(name, canonical)) : null),
  );
  const a = groupOf(formOfAnswer(answer, name)) ?? groups.push(undefined) - 1;
  // A judge that agrees with its own draft counts once.
  const isDraft = drafted?.chosen !== undefined || d.some(([by, , group]) => by === model && group === a);
  if (!isDraft) d.unshift(entry(model, version, a));
  const g = groups.map((each) => (each === undefined ? null : digestOf(generation, each)));
  const record = { ...(name ? { f: name } : {}), a, g, d };
  while (d.length > 1 && sizeOf(record) > MAX_BYTES) d.pop();
  return record;
}

/** The canonical form of the answer. That of a draft is known; to find it again takes longer than all else here. */
function formOfAnswer({ text, drafted }: Answer, name: FormName | undefined): string | undefined {
  if (name === undefined) return undefined;
  const chosen = drafted?.chosen === undefined ? undefined : drafted.drafts[drafted.chosen]?.canonical;
  return chosen === undefined || name === "json" ? formOf(name, text) : formOfCanonical(name, chosen);
}

/** Bytes of a record as Postgres writes it, with a space after each comma and colon. */
function sizeOf(record: DraftsRecord): number {
  const json = JSON.stringify(record);
  return Buffer.byteLength(json) + (json.match(/[,:]/g)?.length ?? 0);
}
