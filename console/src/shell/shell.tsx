import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Link } from "../parts/link.tsx";
import { pathOf } from "../route.ts";
import { Mark } from "./mark.tsx";
import { ThemeSwitch } from "./theme-switch.tsx";

/** Pages by the first part of their path. */
const PAGES = {
  "": "Overview",
  keys: "Keys",
  limits: "Limits and spend",
  activity: "Activity",
  playground: "Playground",
  ledger: "Ledger",
} as const;

export type PageName = keyof typeof PAGES;

interface Props {
  /** The current page; undefined if the address names no page. */
  page: PageName | undefined;
  /** Name of the workspace. */
  workspace: string;
  leave: () => void;
  children: ComponentChildren;
}

/** The layout of every page: navigation, workspace and content. */
export function Shell({ page, workspace, leave, children }: Props) {
  const main = useRef<HTMLElement>(null);
  const shown = useRef(page);
  useEffect(() => {
    document.title = `${page === undefined ? "Not found" : PAGES[page]} · ${workspace} · Chorus`;
    // Moves the focus to the title of the new page, for users of keyboards and screen readers.
    if (shown.current !== page) main.current?.querySelector("h1")?.focus();
    shown.current = page;
  }, [page, workspace]);

  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header>
        <p class="wordmark">
          <Mark /> Chorus
        </p>
        <nav aria-label="Pages">
          <ul>
            {Object.entries(PAGES).map(([name, title]) => (
              <li key={name}>
                <Link to={pathOf(name)} current={name === page}>
                  {title}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <div class="account">
          <p>
            <span class="soft">Workspace</span>
            <strong>{workspace}</strong>
          </p>
          <ThemeSwitch />
          <button type="button" onClick={leave}>
            Sign out
          </button>
          <p class="soft small">All times are UTC.</p>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}
