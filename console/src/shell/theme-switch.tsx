import { useState } from "preact/hooks";
import { chooseTheme, chosenTheme, type Theme } from "./theme.ts";

const THEMES: [Theme, string][] = [
  ["system", "System"],
  ["light", "Light"],
  ["dark", "Dark"],
];

/** Chooses light or dark. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosenTheme);
  const choose = (next: Theme) => {
    chooseTheme(next);
    setTheme(next);
  };
  return (
    <div class="theme">
      <label for="theme">Theme:</label>
      <select id="theme" value={theme} onChange={(event) => choose(event.currentTarget.value as Theme)}>
        {THEMES.map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
    </div>
  );
}
