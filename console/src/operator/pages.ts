import { Bell, Boxes, Building2, Cpu, LayoutDashboard, ScrollText } from "lucide";
import { pathOf } from "../route.ts";
import type { Pages } from "../shell/shell.tsx";

/** Pages in the navigation, by their path below `/console/operator/`. */
export const PAGES = {
  "": ["Overview", LayoutDashboard],
  workspaces: ["Workspaces", Building2],
  models: ["Models", Boxes],
  replicas: ["Replicas", Cpu],
  alerts: ["Alerts", Bell],
  audit: ["Audit log", ScrollText],
} as const satisfies Pages;

/** Address of a page of the operator. */
export function addressOf(page: string, query: Record<string, string | undefined> = {}): string {
  return pathOf(page === "" ? "operator" : `operator/${page}`, query);
}

const WORKSPACES = "operator/workspaces/";

/** Address of the page of one workspace. */
export function addressOfWorkspace(name: string): string {
  return pathOf(`${WORKSPACES}${name}`);
}

/** The name of the workspace that an address is about: the rest of its path; empty for another page. */
export function workspaceIn(page: string): string {
  return page.startsWith(WORKSPACES) ? page.slice(WORKSPACES.length) : "";
}
