import "@fontsource-variable/inter/wght.css";
import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/controls.css";
import "../styles/forms.css";
import "../styles/surfaces.css";
import "../styles/table.css";
import "../styles/overlays.css";
import "../styles/shell.css";
import "../styles/pages.css";
import { render } from "preact";
import { applyTheme } from "../shell/theme.ts";
import { OperatorApp } from "./operator-app.tsx";

applyTheme();
const root = document.getElementById("app");
if (root) render(<OperatorApp />, root);
