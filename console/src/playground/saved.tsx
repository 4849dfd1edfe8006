import { Bookmark, X } from "lucide";
import { useLayoutEffect, useState } from "preact/hooks";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Icon } from "../parts/icon.tsx";
import { IconButton } from "../parts/icon-button.tsx";
import { currentWorkspace } from "../session/session.ts";
import { type Draft, EMPTY, missing, textOf } from "./draft.ts";

/** Most prompts that are saved for a workspace. */
const MOST = 50;

/** Prompts that this browser stores for the workspace, the newest first, and what changes them. */
export function useSaved() {
  const name = `chorus-prompts-${currentWorkspace()}`;
  const [drafts, setDrafts] = useState(() => read(name));
  // Another tab has saved or removed one: what this tab writes next keeps that. It listens before the page is drawn,
  // because nothing tells it later what was saved after the first read.
  useLayoutEffect(() => {
    const follow = ({ key }: StorageEvent) => key === name && setDrafts(read(name));
    addEventListener("storage", follow);
    return () => removeEventListener("storage", follow);
  }, [name]);
  const write = (next: readonly Draft[]) => {
    setDrafts(next);
    try {
      localStorage.setItem(name, JSON.stringify(next));
    } catch {
      // Without storage, or when it is full, the prompts are saved until the page is closed.
    }
  };
  return {
    drafts,
    /** Saves a draft without its files. */
    save: (draft: Draft) => write([{ ...draft, files: [] }, ...drafts.filter(differs(draft))].slice(0, MOST)),
    remove: (draft: Draft) => write(drafts.filter(differs(draft))),
  };
}

type Saved = ReturnType<typeof useSaved>;

/** A button that saves the prompt. */
export function SavePrompt({ draft, saved }: { draft: Draft; saved: Saved }) {
  return (
    <button type="button" disabled={missing(draft) !== ""} onClick={() => saved.save(draft)}>
      <Icon of={Bookmark} />
      Save
    </button>
  );
}

/** The saved prompts. Shows nothing without one. @param use makes one the draft */
export function SavedPrompts({ saved, use }: { saved: Saved; use: (draft: Draft) => void }) {
  if (saved.drafts.length === 0) return null;
  const columns: Column<Draft>[] = [
    {
      title: "Prompt",
      class: "name",
      cell: (draft) => (
        <button type="button" class="link row prompt" onClick={() => use(draft)}>
          {textOf(draft).slice(0, 200)}
        </button>
      ),
    },
    { title: "Effort", class: "half", cell: ({ effort }) => effort },
    {
      title: "",
      class: "actions",
      cell: (draft) => (
        <IconButton
          icon={X}
          label={`Remove the saved prompt ${textOf(draft).slice(0, 40)}`}
          run={() => saved.remove(draft)}
        />
      ),
    },
  ];
  return (
    <Card title="Saved prompts" text="This browser stores them for the workspace, without files." flush>
      <DataTable label="Saved prompts" columns={columns} rows={saved.drafts} keyOf={keyOf} />
    </Card>
  );
}

function read(name: string): readonly Draft[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(name) ?? "[]");
    return Array.isArray(stored) ? stored.map((one) => ({ ...EMPTY, ...one })) : [];
  } catch {
    // Storage may be blocked, or hold what another program wrote.
    return [];
  }
}

function differs(from: Draft): (draft: Draft) => boolean {
  return (draft) => keyOf(draft) !== keyOf(from);
}

function keyOf(draft: Draft): string {
  return JSON.stringify({ ...draft, files: [] });
}
