import { Search } from "lucide";
import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { Link } from "../parts/link.tsx";
import { go } from "../route.ts";

/** A place in the console. */
export type Place = readonly [title: string, address: string];

const KEYS = /Mac|iP/.test(navigator.userAgent) ? "⌘ K" : "Ctrl K";

/** A button that asks where to go. */
export function PaletteButton({ open }: { open: () => void }) {
  return (
    <button type="button" class="quiet" onClick={open} aria-keyshortcuts="Control+K Meta+K">
      <Icon of={Search} />
      Go to… <kbd class="soft small">{KEYS}</kbd>
    </button>
  );
}

/**
 * Asks where to go, also at Ctrl+K or ⌘+K, unless a dialog is open, which may have what is not saved.
 * @returns what asks, and the dialog while it is open
 */
export function usePalette({ places, find }: Omit<Props, "close">) {
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey)
        return;
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) setIsOpen(true);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const dialog = isOpen && <Palette places={places} find={find} close={() => setIsOpen(false)} />;
  return { ask: () => setIsOpen(true), dialog };
}

interface Props {
  /** All pages. */
  places: readonly Place[];
  /** Where else a text leads; it is not empty. */
  find: (text: string) => readonly Place[];
  close: () => void;
}

/** Asks where to go. The enter key opens the first place that is found. */
function Palette({ places, find, close }: Props) {
  const [text, setText] = useState("");
  const sought = text.trim();
  const found = [
    ...places.filter(([title]) => title.toLowerCase().includes(sought.toLowerCase())),
    ...(sought === "" ? [] : find(sought)),
  ];
  const submit = (event: Event) => {
    event.preventDefault();
    const [first] = found;
    if (!first) return;
    close();
    go(first[1]);
  };
  return (
    <Dialog title="Go to" close={close}>
      <form onSubmit={submit}>
        <input
          type="text"
          class="wide"
          data-autofocus
          autocomplete="off"
          aria-label="Where to go"
          placeholder="Part of a name, or an identifier"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </form>
      <ul class="palette" aria-label="Places">
        {found.map(([title, address]) => (
          <li key={address}>
            <Link to={address} followed={close}>
              {title}
            </Link>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
