import "@fontsource-variable/inter/wght.css";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/forms.css";
import "./styles/dialog.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/pages.css";
import "./styles/playground.css";
import "./styles/schema.css";
import "./styles/trace.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { applyTheme } from "./shell/theme.ts";

applyTheme();
const root = document.getElementById("app");
if (root) render(<App />, root);
