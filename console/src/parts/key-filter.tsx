import { useEffect, useId, useState } from "preact/hooks";
import { type Key, KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { useLoad } from "../load.ts";
import { narrow } from "../route.ts";
import { keys } from "../rpc.ts";
import { can } from "../session/session.ts";
import { FilterChip } from "./filter-chip.tsx";

/**
 * Filters a page by key. Finds keys by the start of their name or secret; stores the choice as `key` in the address.
 * A role that may not list keys cannot search for them.
 */
export function KeyFilter({ keyId, keyName }: { keyId: string; keyName?: string | undefined }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<Key[]>([]);
  const id = useId();
  const maySearch = can(KeyService.method.listKeys);
  const foundName = useName(keyId, keyName === undefined || keyName === "");
  useEffect(() => {
    if (!maySearch) return undefined;
    const leaving = new AbortController();
    const timer = setTimeout(() => {
      keys.listKeys({ search: text.trim(), pageSize: 20 }, { signal: leaving.signal }).then(
        (page) => setFound(page.keys),
        () => setFound([]),
      );
    }, 200);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [text, maySearch]);

  if (keyId) {
    return (
      <FilterChip label="Show all keys" remove={() => narrow({ key: undefined })}>
        Key: <strong>{keyName || foundName || keyId}</strong>
      </FilterChip>
    );
  }
  if (!maySearch) return null;
  const type = (value: string) => {
    setText(value);
    const key = found.find((one) => labelOf(one) === value);
    if (key) {
      narrow({ key: key.id });
      setText("");
    }
  };
  return (
    <>
      <input
        type="search"
        aria-label="Key"
        list={id}
        placeholder="All keys; type a name"
        value={text}
        onInput={(event) => type(event.currentTarget.value)}
        autocomplete="off"
      />
      <datalist id={id}>
        {found.map((key) => (
          <option key={key.id} value={labelOf(key)} />
        ))}
      </datalist>
    </>
  );
}

/** The name of a key; empty while it loads, and if it cannot be found. @param isSought whether to look it up */
function useName(keyId: string, isSought: boolean): string {
  const isLoaded = keyId !== "" && isSought && can(KeyService.method.listKeys);
  const load = (signal: AbortSignal) =>
    isLoaded ? keys.listKeys({ search: keyId, pageSize: 1 }, { signal }) : Promise.resolve(undefined);
  const { data } = useLoad(load, isLoaded ? keyId : "");
  return data?.keys.find(({ id }) => id === keyId)?.name ?? "";
}

function labelOf(key: Key): string {
  return key.console ? `${key.name} (this console)` : `${key.name || "Unnamed"} (${key.prefix}…)`;
}
