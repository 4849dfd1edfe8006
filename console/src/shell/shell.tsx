import { type IconNode, LogOut, Menu } from "lucide";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/icon.tsx";
import { Link } from "../parts/link.tsx";
import { Toasts } from "../parts/toasts.tsx";
import { Mark } from "./mark.tsx";
import { PaletteButton, type Place, usePalette } from "./palette.tsx";
import { ThemeSwitch } from "./theme-switch.tsx";

/** Pages in the navigation by their names in addresses, each with its title and icon. */
export type Pages = Readonly<Record<string, readonly [title: string, icon: IconNode]>>;

interface Props {
  pages: Pages;
  /** Address of a page. */
  addressOf: (page: string) => string;
  /** Name of the page that is shown. */
  page: string;
  /** Who is signed in: what it is, and its name. */
  label: string;
  name: ComponentChildren;
  /** The person, and what else is theirs; nothing for a token. */
  account?: ComponentChildren;
  /** Where a text leads that is typed into "Go to". */
  find: (text: string) => readonly Place[];
  /** What the title of the browser's tab says besides the page. */
  title: string;
  leave: () => void;
  children: ComponentChildren;
}

/** The layout of every page: navigation, who is signed in, and content. */
export function Shell({ pages, addressOf, page, label, name, account, find, title, leave, children }: Props) {
  // Only on narrow screens; wide ones always show the navigation.
  const [isOpen, setIsOpen] = useState(false);
  const { ask, dialog } = usePalette({ places: placesOf(pages, addressOf), find });
  const [pageTitle = "Not found"] = Object.hasOwn(pages, page) ? (pages[page] ?? []) : [];
  const main = usePage(page, `${pageTitle} · ${title} · Chorus`);

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
            <span class="soft small">{label}</span>
            <strong>{name}</strong>
          </p>
          <nav aria-label="Pages">
            <ul>
              {Object.entries(pages).map(([of, [text, icon]]) => (
                <li key={of}>
                  <Link to={addressOf(of)} current={of === page} followed={() => setIsOpen(false)}>
                    <Icon of={icon} />
                    {text}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
          <div class="account">
            {account}
            <PaletteButton
              open={() => {
                setIsOpen(false);
                ask();
              }}
            />
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
      {dialog}
      <Toasts />
    </div>
  );
}

function placesOf(pages: Pages, addressOf: Props["addressOf"]): readonly Place[] {
  return Object.entries(pages).map(([of, [text]]) => [text, addressOf(of)]);
}

/**
 * Sets the title of the browser's tab. For users of keyboards and screen readers, moves the focus to the heading of a
 * new page.
 * @returns refers to the element of the page
 */
function usePage(page: string, title: string): RefObject<HTMLElement | null> {
  const main = useRef<HTMLElement>(null);
  const shown = useRef(page);
  useEffect(() => {
    document.title = title;
    if (shown.current !== page) {
      main.current?.querySelector("h1")?.focus();
      scrollTo(0, 0);
    }
    shown.current = page;
  }, [page, title]);
  return main;
}
