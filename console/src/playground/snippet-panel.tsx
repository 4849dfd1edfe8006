import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Card } from "../parts/card.tsx";
import { Copy } from "../parts/copy.tsx";
import { Segments } from "../parts/segments.tsx";
import type { Draft } from "./draft.ts";
import { highlight } from "./highlight.ts";
import { LANGUAGES, type Language, snippet } from "./snippets.ts";

interface SnippetsProps<L extends string> {
  title: string;
  languages: readonly [L, ...L[]];
  textOf: (language: L) => string;
  /** What to know besides where the key comes from. */
  help: (language: L) => ComponentChildren;
}

/** A request as a program to copy, in one of some languages. */
export function Snippets<L extends string>({ title, languages, textOf, help }: SnippetsProps<L>) {
  const [language, setLanguage] = useState<L>(languages[0]);
  const text = textOf(language);
  const html = useMemo(() => highlight(text), [text]);
  return (
    <Card title={title} class="snippet">
      <div class="toolbar">
        <Segments
          legend="Language"
          name="language"
          value={language}
          options={languages.map((name) => [name, name])}
          change={setLanguage}
        />
        <Copy text={text} label={`Copy as ${language}`} />
      </div>
      <pre class="code" dangerouslySetInnerHTML={{ __html: html }} />
      <p class="help">
        <code>CHORUS_API_KEY</code> holds the secret of an API key.{help(language)}
      </p>
    </Card>
  );
}

/** Shows the request of the playground as a program. */
export function SnippetPanel({ draft }: { draft: Draft }) {
  const isRpc = (language: Language) => language === "buf curl" || language === "grpcurl";
  return (
    <Snippets
      title="This request as code"
      languages={LANGUAGES}
      textOf={(language) => snippet(language, draft, location.origin)}
      help={(language) => (
        <>
          {isRpc(language) && " RPC has an address of its own, by default port 8081."}
          {draft.files.length > 0 && " The files are read from the current folder."}
        </>
      )}
    />
  );
}
