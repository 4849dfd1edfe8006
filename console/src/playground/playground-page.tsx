import { Play, Send, Square } from "lucide";
import type { GetQuotasResponse } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icon.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { usage } from "../rpc.ts";
import { AnswerView } from "./answer-view.tsx";
import type { Rates } from "./estimate.ts";
import { Examples } from "./examples.tsx";
import { FileDrop } from "./files.tsx";
import { History } from "./history.tsx";
import { InputEditor } from "./input-editor.tsx";
import { Options } from "./options.tsx";
import { SavedPrompts, SavePrompt, useSaved } from "./saved.tsx";
import { SnippetPanel } from "./snippet-panel.tsx";
import { type Playground, usePlayground } from "./use-playground.ts";

const LEAD =
  "Requests are charged to the workspace, under its key “console”. What you write stays in this tab, unless you " +
  "save it or the workspace keeps the text of requests.";

/** Sends requests from the page. */
export function PlaygroundPage() {
  const playground = usePlayground();
  const { visit, draft, change, shown, compares, now, isRunning, open } = playground;
  const saved = useSaved();
  const rates = useLoad(async (signal) => ratesOf(await usage.getQuotas({}, { signal })), "rates");
  return (
    <>
      <PageHead title="Playground" lead={LEAD} />
      <div class={`playground ${compares ? "compare" : ""}`}>
        <Request playground={playground} saved={saved} />
        <section aria-label="Answer" class="results">
          {shown.length === 0 && (
            <Card>
              <Empty title="The answer appears here." icon={Play}>
                <p>With its cost so far and a timeline of its steps. Try:</p>
                <Examples use={change} />
              </Empty>
            </Card>
          )}
          {shown.map((one) => (
            <AnswerView
              key={one.title}
              title={one.title}
              run={one.run}
              draft={one.draft}
              now={now}
              rates={rates.data ?? undefined}
            />
          ))}
        </section>
      </div>
      {visit.past.length > 0 && <History visit={visit} open={isRunning ? undefined : open} />}
      <SavedPrompts saved={saved} use={change} />
      <SnippetPanel draft={draft} />
    </>
  );
}

function Request({ playground, saved }: { playground: Playground; saved: ReturnType<typeof useSaved> }) {
  const { draft, change, attach, compares, setCompares, message, isRunning, send, stop } = playground;
  const submit = (event: Event) => {
    event.preventDefault();
    void send();
  };
  const sendByKey = (event: KeyboardEvent & { currentTarget: HTMLFormElement }) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  return (
    <FileDrop files={draft.files} add={attach}>
      <form class="card form" onSubmit={submit} onKeyDown={sendByKey} aria-label="Request">
        <InputEditor draft={draft} change={change} />
        <Options draft={draft} change={change} attach={attach} compares={compares} />
        <div class="send">
          {/* Different keys, so that a click cannot hit a button while it changes from Stop to Ask. The second click of
              a double click on Ask does not stop. */}
          {isRunning ? (
            <button key="stop" type="button" class="primary" onClick={(event) => event.detail < 2 && stop()}>
              <Icon of={Square} />
              Stop
            </button>
          ) : (
            <button key="ask" type="submit" class="primary">
              <Icon of={Send} />
              Ask
            </button>
          )}
          <SavePrompt draft={draft} saved={saved} />
          <kbd class="soft small">{/Mac|iP/.test(navigator.userAgent) ? "⌘" : "Ctrl"} Enter</kbd>
          <label class="check">
            <input
              type="checkbox"
              checked={compares}
              disabled={isRunning}
              onChange={(event) => setCompares(event.currentTarget.checked)}
            />
            Compare low and high
          </label>
          <span role="status" class="wrong">
            {message}
          </span>
        </div>
      </form>
    </FileDrop>
  );
}

/** The rates; null if the service does not publish them. */
function ratesOf(answer: GetQuotasResponse): Rates | null {
  return answer.rates ?? null;
}
