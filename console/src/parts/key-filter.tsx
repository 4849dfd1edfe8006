import { useEffect, useId, useState } from "preact/hooks";
import type { Key } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { narrow } from "../route.ts";
import { keys } from "../rpc.ts";

/**
 * Filters a page by key. Finds keys by the start of their name or secret; stores the choice as `key` in the address.
 */
export function KeyFilter({ keyId, keyName }: { keyId: string; keyName?: string | undefined }) {
  const [text, setText] = useState("");
  const [found, setFound] = useState<Key[]>([]);
  const id = useId();
  useEffect(() => {
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
  }, [text]);

  if (keyId) {
    return (
      <span class="chip">
        Key: <strong>{keyName || keyId}</strong>
        <button type="button" onClick={() => narrow({ key: undefined })} aria-label="Show all keys">
          ×
        </button>
      </span>
    );
  }
  const type = (value: string) => {
    setText(value);
    const key = found.find((one) => labelOf(one) === value);
    if (key) {
      narrow({ key: key.id });
      setText("");
    }
  };
  return (
    <label class="key-filter">
      <span>Key</span>
      <input
        type="search"
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
    </label>
  );
}

function labelOf(key: Key): string {
  return key.console ? `${key.name} (this console)` : `${key.name || "Unnamed"} (${key.prefix}…)`;
}
