import { Paperclip, X } from "lucide";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { mediaTypeOf } from "../../../src/contract/media-types.ts";
import { count } from "../format.ts";
import { Icon } from "../parts/icon.tsx";
import { IconButton } from "../parts/icon-button.tsx";
import { toast } from "../parts/toasts.tsx";
import type { DraftFile } from "./draft.ts";

const MOST_FILES = 5;
/** A request may have 64 MB, and base64 makes the bytes a third larger. */
const MOST_BYTES = 46_000_000;

interface Props {
  files: readonly DraftFile[];
  /** Adds files to those that the request has then. */
  add: (files: readonly DraftFile[]) => void;
}

/** Adds files that are dropped on the children, or pasted into them. */
export function FileDrop({ files, add, children }: Props & { children: ComponentChildren }) {
  const [isOver, setIsOver] = useState(false);
  const take = (event: Event, data: DataTransfer | null) => {
    if (!data || data.files.length === 0) return;
    event.preventDefault();
    void addFiles(files, data.files, add);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button "Attach files" does the same
    <div
      class={isOver ? "drop over" : "drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => {
        setIsOver(false);
        take(event, event.dataTransfer);
      }}
      onPaste={(event) => !isFormatted(event.clipboardData) && take(event, event.clipboardData)}
    >
      {children}
    </div>
  );
}

/** Whether the clipboard has formatted text. Its file is then a picture of it: spreadsheets copy cells as both. */
function isFormatted(data: DataTransfer | null): boolean {
  return ["text/plain", "text/html"].every((type) => data?.types.includes(type));
}

/** The attachments of the request, and a button that adds some. */
export function FileList({ files, add, change }: Props & { change: (files: readonly DraftFile[]) => void }) {
  return (
    <div class="files">
      <label class="button attach">
        <Icon of={Paperclip} />
        Attach files
        <input
          type="file"
          multiple
          class="hidden"
          onChange={(event) => {
            void addFiles(files, event.currentTarget.files, add);
            event.currentTarget.value = "";
          }}
        />
      </label>
      <span class="help">or drop or paste them: text, PDF, docx, images</span>
      {files.length > 0 && (
        <ul class="chips" aria-label="Attachments">
          {files.map((file, i) => (
            <li key={`${file.name} ${file.data.length}`} class="chip">
              {file.name}
              <span class="soft">
                {file.mediaType}, {count(file.data.length)} bytes
              </span>
              <IconButton
                icon={X}
                label={`Remove ${file.name}`}
                run={() => change(files.filter((_, at) => at !== i))}
              />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

async function addFiles(files: readonly DraftFile[], list: globalThis.FileList | null, add: Props["add"]) {
  const chosen = [...(list ?? [])];
  const bytes = [...files.map((file) => file.data.length), ...chosen.map((file) => file.size)].reduce(
    (sum, one) => sum + one,
    0,
  );
  if (files.length + chosen.length > MOST_FILES) return toast(`A request can have at most ${MOST_FILES} files.`, "bad");
  if (bytes > MOST_BYTES) return toast(`The files are too large: at most ${count(MOST_BYTES)} bytes in total.`, "bad");
  try {
    add(await Promise.all(chosen.map(read)));
  } catch {
    toast("A file could not be read.", "bad");
  }
}

async function read(file: File): Promise<DraftFile> {
  const data = new Uint8Array(await file.arrayBuffer());
  return { name: file.name, mediaType: mediaTypeOf(file.name, file.type), data };
}
