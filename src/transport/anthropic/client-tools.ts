/** What a tool is for, and the JSON Schema of its arguments. */
interface ClientTool {
  readonly description: string;
  readonly parameters: string;
}

const TEXT = { type: "string" };
const PLACE = { type: "integer", minimum: 0 };
const RANGE = { type: "array", items: { type: "integer" } };

/** The arguments that all edits of files have, beside `command`. */
const EDIT = {
  path: TEXT,
  file_text: TEXT,
  old_str: TEXT,
  new_str: TEXT,
  insert_line: PLACE,
  insert_text: TEXT,
  view_range: RANGE,
};

function define(description: string, properties: object, required: readonly string[]): ClientTool {
  return { description, parameters: JSON.stringify({ type: "object", properties, required }) };
}

/**
 * The tools whose arguments Anthropic defines and whose calls the caller runs, by their types without the date. The
 * models of other vendors do not know these types, so they get a description and a schema of the same arguments
 * (platform.claude.com, Tool reference).
 */
const TOOLS: ReadonlyMap<string, ClientTool> = new Map([
  [
    "bash",
    define(
      "Runs a command in a shell that stays open between calls. Send `command`, or `restart` to start a new shell.",
      { command: TEXT, restart: { type: "boolean" } },
      [],
    ),
  ],
  [
    "text_editor",
    define(
      "Views and edits text files. `view` shows a file, or its lines `view_range` [first, last], or lists a folder. " +
        "`create` writes `file_text`. `str_replace` replaces `old_str`, which must occur once, with `new_str`. " +
        "`insert` adds `insert_text` after the line `insert_line`; 0 is the beginning.",
      { command: { type: "string", enum: ["view", "create", "str_replace", "insert"] }, ...EDIT },
      ["command", "path"],
    ),
  ],
  [
    "memory",
    define(
      "Keeps notes in files below /memories, which outlast the conversation. `view` shows a file or lists a folder, " +
        "`create` writes `file_text`, `str_replace` replaces `old_str` with `new_str`, `insert` adds `insert_text` " +
        "after the line `insert_line`, `delete` removes `path`, `rename` moves `old_path` to `new_path`.",
      {
        command: { type: "string", enum: ["view", "create", "str_replace", "insert", "delete", "rename"] },
        ...EDIT,
        old_path: TEXT,
        new_path: TEXT,
      },
      ["command"],
    ),
  ],
]);

/** The tool of one of Anthropic's types, such as `bash_20250124`; undefined for other types. */
export function clientTool(type: string): ClientTool | undefined {
  const name = /^(.+)_\d+$/.exec(type)?.[1];
  return name === undefined ? undefined : TOOLS.get(name);
}
