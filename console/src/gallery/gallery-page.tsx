import type { ComponentChildren } from "preact";
import { Card } from "../parts/card.tsx";
import { Link } from "../parts/link.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { pathOf } from "../route.ts";
import { Controls } from "./controls.tsx";
import { Data } from "./data.tsx";
import { Messages } from "./messages.tsx";

const COLOURS = {
  Surfaces: ["canvas", "surface", "inset", "hover"],
  "Text and borders": ["text", "text-soft", "border", "border-strong"],
  Accent: ["accent", "accent-strong", "accent-soft", "on-accent"],
  States: ["good", "good-soft", "warn", "warn-soft", "warn-fill", "bad", "bad-soft", "on-bad"],
  Charts: ["chart-accent", "chart-second", "chart-third", "chart-bad"],
  Code: ["code-word", "code-text", "code-number", "code-note"],
};

const TYPE = ["3xl", "2xl", "xl", "lg", "md", "sm", "xs"];
const SPACES = [1, 2, 3, 4, 5, 6];

/** Shows the design system: every token and every part in every state. It is not in the navigation. */
export function GalleryPage() {
  return (
    <>
      <PageHead title="Gallery" lead="Every token and part of the console's design, in every state.">
        <Link to={pathOf("")}>Overview</Link>
      </PageHead>
      <Part title="Colours">
        {Object.entries(COLOURS).map(([title, names]) => (
          <Swatches key={title} title={title} names={names} />
        ))}
      </Part>
      <Part title="Type and spacing">
        {TYPE.map((size) => (
          <p key={size} style={{ fontSize: `var(--text-${size})` }}>
            --text-{size}: The quick brown fox 0123456789
          </p>
        ))}
        <p>
          <code>Code: req_7h3n9qx2</code>
        </p>
        {SPACES.map((size) => (
          <div key={size} class="space" style={{ width: `var(--space-${size})` }} title={`--space-${size}`} />
        ))}
      </Part>
      <Controls />
      <Messages />
      <Data />
    </>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <Card title={title} class="gallery">
      {children}
    </Card>
  );
}

function Swatches({ title, names }: { title: string; names: readonly string[] }) {
  return (
    <div>
      <h3>{title}</h3>
      <ul class="swatches">
        {names.map((name) => (
          <li key={name}>
            <span style={{ background: `var(--${name})` }} />
            {name}
          </li>
        ))}
      </ul>
    </div>
  );
}
