import { Bell, Boxes, Building2, Cpu, type IconNode, LogOut, Menu, ScrollText } from "lucide";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icon.tsx";
import { Link } from "../parts/link.tsx";
import { Toasts } from "../parts/toasts.tsx";
import { pathOf } from "../route.ts";
import { Mark } from "../shell/mark.tsx";
import { ThemeSwitch } from "../shell/theme-switch.tsx";

/** Pages in the navigation, by their path below `/console/operator`. */
const PAGES = {
  "": ["Workspaces", Building2],
  models: ["Models", Boxes],
  replicas: ["Replicas", Cpu],
  alerts: ["Alerts", Bell],
  audit: ["Audit log", ScrollText],
} as const satisfies Record<string, readonly [string, IconNode]>;

export type PageName = keyof typeof PAGES;

interface Props {
  page: string;
  /** Identifier of the operator token. */
  operator: string;
  leave: () => void;
  children: ComponentChildren;
}

/** The layout of the operator's pages. */
export function OperatorShell({ page, operator, leave, children }: Props) {
  const main = useRef<HTMLElement>(null);
  const shown = useRef(page);
  // Only on narrow screens; wide ones always show the navigation.
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    document.title = `${titleOf(page)} · Operator · Chorus`;
    if (shown.current !== page) {
      main.current?.querySelector("h1")?.focus();
      scrollTo(0, 0);
    }
    shown.current = page;
  }, [page]);

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
            <span class="soft small">Operator</span>
            <strong>{operator}</strong>
          </p>
          <nav aria-label="Pages">
            <ul>
              {Object.entries(PAGES).map(([name, [title, icon]]) => (
                <li key={name}>
                  <Link to={addressOf(name)} current={name === page} followed={() => setIsOpen(false)}>
                    <Icon of={icon} />
                    {title}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
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

/** Address of a page of the operator. */
export function addressOf(page: string, query: Record<string, string | undefined> = {}): string {
  return pathOf(page === "" ? "operator" : `operator/${page}`, query);
}

function titleOf(page: string): string {
  return Object.hasOwn(PAGES, page) ? PAGES[page as PageName][0] : "Not found";
}
