export type Theme = "system" | "light" | "dark";

const NAME = "chorus-theme";

/** Told when the colours of the page change, for whoever draws on a canvas. */
export const themeChanges = new EventTarget();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);

/** The theme that was chosen in this browser. */
export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(NAME);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    // Storage may be blocked.
    return "system";
  }
}

/** Keeps a choice and shows it. */
export function chooseTheme(theme: Theme): void {
  try {
    if (theme === "system") localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, theme);
  } catch {
    // It then holds for this page only.
  }
  applyTheme(theme);
}

/** Shows a theme; the styles read it from the root element. */
export function applyTheme(theme: Theme = chosenTheme()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  announce();
}

function announce(): void {
  themeChanges.dispatchEvent(new Event("change"));
}
