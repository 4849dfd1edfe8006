import { useState } from "preact/hooks";
import { count } from "../format.ts";
import type { DraftFile } from "./draft.ts";

const MOST_FILES = 5;
/** A request may have 64 MB, and base64 makes the bytes a third larger. */
const MOST_BYTES = 46_000_000;

/** Types that browsers do not detect. */
const TYPES: Record<string, string> = {
  md: "text/markdown",
  csv: "text/csv",
  docx: "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
};

/** Edits the attachments of the request. */
export function Files({
  files,
  change,
}: {
  files: readonly DraftFile[];
  change: (files: readonly DraftFile[]) => void;
}) {
  const [message, setMessage] = useState("");
  const add = async (list: FileList | null) => {
    const chosen = [...(list ?? [])];
    const bytes = [...files.map((file) => file.data.length), ...chosen.map((file) => file.size)].reduce(
      (sum, one) => sum + one,
      0,
    );
    if (files.length + chosen.length > MOST_FILES) return setMessage(`A request can have at most ${MOST_FILES} files.`);
    if (bytes > MOST_BYTES) return setMessage(`The files are too large: at most ${count(MOST_BYTES)} bytes in total.`);
    try {
      change([...files, ...(await Promise.all(chosen.map(read)))]);
      setMessage("");
    } catch {
      setMessage("A file could not be read.");
    }
  };
  return (
    <div class="files">
      <label for="files">Attachments</label>
      <input
        id="files"
        type="file"
        multiple
        onChange={(event) => {
          void add(event.currentTarget.files);
          event.currentTarget.value = "";
        }}
      />
      <p class="help">Text, Markdown, CSV, JSON, HTML, XML, PDF, docx, and images.</p>
      {message && (
        <p class="note bad" role="alert">
          {message}
        </p>
      )}
      {files.length > 0 && (
        <ul>
          {files.map((file, i) => (
            <li key={`${file.name} ${file.data.length}`}>
              {file.name}{" "}
              <span class="soft">
                {file.mediaType}, {count(file.data.length)} bytes
              </span>
              <button
                type="button"
                aria-label={`Remove ${file.name}`}
                onClick={() => change(files.filter((_, at) => at !== i))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

async function read(file: File): Promise<DraftFile> {
  const extension = file.name.split(".").at(-1)?.toLowerCase() ?? "";
  const mediaType = TYPES[extension] ?? (file.type || "text/plain");
  return { name: file.name, mediaType, data: new Uint8Array(await file.arrayBuffer()) };
}
