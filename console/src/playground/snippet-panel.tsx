import { useState } from "preact/hooks";
import { Copy } from "../parts/copy.tsx";
import { Scroll } from "../parts/scroll.tsx";
import type { Draft } from "./draft.ts";
import { type Language, snippet } from "./snippets.ts";

const LANGUAGES: Language[] = ["curl", "TypeScript", "Python"];

/** Shows the request as a program to copy. */
export function SnippetPanel({ draft }: { draft: Draft }) {
  const [language, setLanguage] = useState<Language>("curl");
  const text = snippet(language, draft, location.origin);
  return (
    <section class="snippet">
      <h2>This request as code</h2>
      <div class="toolbar">
        <fieldset class="segments">
          <legend class="hidden">Language</legend>
          {LANGUAGES.map((name) => (
            <label key={name}>
              <input type="radio" name="language" checked={language === name} onChange={() => setLanguage(name)} />
              {name}
            </label>
          ))}
        </fieldset>
        <Copy text={text} label={`Copy as ${language}`} />
      </div>
      <Scroll label={`The request as ${language}`}>
        <pre>{text}</pre>
      </Scroll>
      <p class="help">
        It reads the secret of an API key from <code>CHORUS_API_KEY</code>.{" "}
        {draft.files.length > 0 && "It reads the files from the current folder."}
      </p>
    </section>
  );
}
