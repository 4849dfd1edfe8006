import { useLoad } from "../load.ts";
import { FilterChoice } from "../parts/filter-choice.tsx";
import { narrow } from "../route.ts";
import { usage } from "../rpc.ts";
import { type Group, tagOf } from "./group.ts";

interface Props {
  /** Undefined: use is not split. */
  group: Group | undefined;
  /** The choices before the names of tags. */
  options: readonly (readonly [value: "" | "key" | "user", label: string])[];
}

/** Chooses how use is split, and stores the choice as `by` in the address. */
export function GroupPicker({ group, options }: Props) {
  const names = useLoad((signal) => usage.listTagNames({}, { signal }), "names").data?.names ?? [];
  const chosen = group ? tagOf(group) : "";
  // The name in the address may be new, or the names may not be there yet.
  const tags = chosen === "" || names.includes(chosen) ? names : [chosen, ...names];
  const change = (by: string) => narrow({ by, key: undefined, search: undefined });
  const all = [...options, ...tags.map((name) => [`tag:${name}`, `By tag: ${name}`] as const)];
  return <FilterChoice label="Group by" value={group ?? ""} options={all} change={change} />;
}
