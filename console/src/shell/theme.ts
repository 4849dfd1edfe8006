export type Theme = "system" | "light" | "dark";

const NAME = "chorus-theme";

/** Dispatches `change` when the colours of the page change, so that canvases are drawn again. */
export const themeChanges = new EventTarget();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);

/** The theme that is stored in this browser. */
export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(NAME);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    // Storage may be blocked.
    return "system";
  }
}

/** Stores and applies a theme. */
export function chooseTheme(theme: Theme): void {
  try {
    if (theme === "system") localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, theme);
  } catch {
    // Without storage, the theme applies until the page is closed.
  }
  applyTheme(theme);
}

/** Applies a theme. The styles read it from the root element. */
export function applyTheme(theme: Theme = chosenTheme()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  announce();
}

function announce(): void {
  themeChanges.dispatchEvent(new Event("change"));
}
