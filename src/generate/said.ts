import type { Caller } from "../admission/authenticate.ts";
import type { DraftReport } from "../models/port/model.ts";
import type { RunKeeper } from "../runs/keeper.ts";
import type { TextFile } from "../runs/text.ts";
import type { CheckedRequest } from "./validate-request.ts";

/** What a request whose text is kept has said, apart from its conversation and answer. */
export interface Said {
  readonly files: readonly TextFile[];
  /** Of all panels, by the numbers with which their steps were reported. */
  readonly drafts: Map<number, string>;
}

/**
 * Notes the files of a request, before threads that read them take their bytes.
 * @returns undefined where no text is kept
 */
export function beginText(
  runs: Pick<RunKeeper, "keepsText">,
  caller: Caller,
  { attachments }: Pick<CheckedRequest, "attachments">,
): Said | undefined {
  if (!caller.keepsText || !runs.keepsText) return undefined;
  const files = attachments.map(({ name, mediaType, data }) => ({ name, mediaType, size: BigInt(data.length) }));
  return { files, drafts: new Map() };
}

/** Notes the drafts of a panel. One that another panel has taken over is noted once. */
export function noteDrafts({ drafts: noted }: Said, drafts: readonly DraftReport[]): void {
  for (const { step, text } of drafts) if (step !== undefined) noted.set(step, text);
}
