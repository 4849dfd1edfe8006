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
