import {
  Activity,
  Bell,
  ChartColumn,
  Gauge,
  type IconNode,
  KeyRound,
  Landmark,
  LogOut,
  Menu,
  Play,
  ScrollText,
} from "lucide";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icon.tsx";
import { Link } from "../parts/link.tsx";
import { Toasts } from "../parts/toasts.tsx";
import { pathOf } from "../route.ts";
import { Mark } from "./mark.tsx";
import { ThemeSwitch } from "./theme-switch.tsx";

/** Pages in the navigation, by the first part of their path. */
const PAGES = {
  "": ["Overview", ChartColumn],
  activity: ["Activity", Activity],
  playground: ["Playground", Play],
  keys: ["Keys", KeyRound],
  limits: ["Limits and spend", Gauge],
  alerts: ["Alerts", Bell],
  ledger: ["Ledger", Landmark],
  audit: ["Audit log", ScrollText],
} as const satisfies Record<string, readonly [string, IconNode]>;

export type PageName = keyof typeof PAGES;

interface Props {
  /** Path of the page below `/console/`. */
  page: string;
  /** Name of the workspace. */
  workspace: string;
  leave: () => void;
  children: ComponentChildren;
}

/** The layout of every page: navigation, workspace and content. */
export function Shell({ page, workspace, leave, children }: Props) {
  const main = useRef<HTMLElement>(null);
  const shown = useRef(page);
  // Only on narrow screens; wide ones always show the navigation.
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const title = isPageName(page) ? PAGES[page][0] : "Not found";
    document.title = `${title} · ${workspace} · Chorus`;
    // Moves the focus to the title of the new page, for users of keyboards and screen readers.
    if (shown.current !== page) {
      main.current?.querySelector("h1")?.focus();
      scrollTo(0, 0);
    }
    shown.current = page;
  }, [page, workspace]);

  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class={isOpen ? "open" : ""}>
        <div class="bar">
          <p class="wordmark">
            <Mark /> Chorus
          </p>
          <button
            type="button"
            class="quiet menu-button"
            aria-expanded={isOpen}
            aria-controls="menu"
            onClick={() => setIsOpen(!isOpen)}
          >
            <Icon of={Menu} />
            Menu
          </button>
        </div>
        <div id="menu">
          <p class="workspace">
            <span class="soft small">Workspace</span>
            <strong>{workspace}</strong>
          </p>
          <Navigation page={page} followed={() => setIsOpen(false)} />
          <div class="account">
            <ThemeSwitch />
            <button type="button" class="quiet" onClick={leave}>
              <Icon of={LogOut} />
              Sign out
            </button>
            <p class="soft small">All times are UTC.</p>
          </div>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {children}
      </main>
      <Toasts />
    </div>
  );
}

function Navigation({ page, followed }: { page: string; followed: () => void }) {
  return (
    <nav aria-label="Pages">
      <ul>
        {Object.entries(PAGES).map(([name, [title, icon]]) => (
          <li key={name}>
            <Link to={pathOf(name)} current={name === page} followed={followed}>
              <Icon of={icon} />
              {title}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function isPageName(name: string): name is PageName {
  return Object.hasOwn(PAGES, name);
}
