import { useState } from "preact/hooks";
import { Card } from "../parts/card.tsx";
import { Copy } from "../parts/copy.tsx";
import { Segments } from "../parts/segments.tsx";
import { Code } from "./code.tsx";
import type { Draft } from "./draft.ts";
import { LANGUAGES, type Language, snippet } from "./snippets.ts";

/** Shows the request as a program to copy. */
export function SnippetPanel({ draft }: { draft: Draft }) {
  const [language, setLanguage] = useState<Language>("curl");
  const text = snippet(language, draft, location.origin);
  const isRpc = language === "buf curl" || language === "grpcurl";
  return (
    <Card title="This request as code" class="snippet">
      <div class="toolbar">
        <Segments
          legend="Language"
          name="language"
          value={language}
          options={LANGUAGES.map((name) => [name, name])}
          change={setLanguage}
        />
        <Copy text={text} label={`Copy as ${language}`} />
      </div>
      <Code text={text} />
      <p class="help">
        <code>CHORUS_API_KEY</code> holds the secret of an API key.
        {isRpc && " RPC has an address of its own, by default port 8081."}
        {draft.files.length > 0 && " The files are read from the current folder."}
      </p>
    </Card>
  );
}
