import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ActivityPage } from "./activity/activity-page.tsx";
import { AlertsPage } from "./alerts/alerts-page.tsx";
import { AuditPage } from "./audit/audit-page.tsx";
import { KeysPage } from "./keys/keys-page.tsx";
import { later } from "./later.tsx";
import { LedgerPage } from "./ledger/ledger-page.tsx";
import { LimitsPage } from "./limits/limits-page.tsx";
import { Empty } from "./parts/empty.tsx";
import { FailureNote } from "./parts/failure-note.tsx";
import { PageHead } from "./parts/page-head.tsx";
import { useRoute } from "./route.ts";
import { alerts } from "./rpc.ts";
import { currentSession, onSessionEnd, type Session, signOut } from "./session/session.ts";
import { SignIn } from "./session/sign-in.tsx";
import { type PageName, Shell } from "./shell/shell.tsx";

/** Pages with large libraries are loaded when they are opened. The gallery is not in the navigation. */
const PAGES: Record<PageName | "gallery", FunctionComponent> = {
  "": later(async () => (await import("./overview/overview-page.tsx")).OverviewPage),
  activity: ActivityPage,
  playground: later(async () => (await import("./playground/playground-page.tsx")).PlaygroundPage),
  keys: KeysPage,
  limits: LimitsPage,
  alerts: () => <AlertsPage calls={alerts} />,
  ledger: LedgerPage,
  audit: AuditPage,
  gallery: later(async () => (await import("./gallery/gallery-page.tsx")).GalleryPage),
};

const ENDED =
  "Your session has ended: it was idle for an hour or is older than eight hours, or the owner token was replaced or " +
  "has expired. Sign in again to continue on this page.";
const SIGNED_OUT = "You have signed out.";

type State =
  | { at: "start" }
  | { at: "failed"; error: unknown }
  | { at: "out"; notice: string }
  | { at: "in"; session: Session };

/** The console: the sign-in form, or the page that the address names. */
export function App() {
  const [state, setState] = useState<State>({ at: "start" });
  const { page } = useRoute();

  const start = () => {
    currentSession().then(
      (session) => setState(session ? { at: "in", session } : { at: "out", notice: "" }),
      (error: unknown) => setState({ at: "failed", error }),
    );
  };
  useEffect(start, []);
  useEffect(() => onSessionEnd(() => setState((now) => (now.at === "in" ? { at: "out", notice: ENDED } : now))), []);
  useEffect(() => (state.at === "in" ? watchOtherTabs(state.session) : undefined), [state]);

  if (state.at === "start") return <p class="starting">Opening the console…</p>;
  if (state.at === "failed") {
    return (
      <main class="sign-in">
        <FailureNote error={state.error} retry={start} />
      </main>
    );
  }
  if (state.at === "out") return <SignIn notice={state.notice} enter={(session) => setState({ at: "in", session })} />;

  const leave = () => {
    signOut().then(
      () => setState({ at: "out", notice: SIGNED_OUT }),
      (error: unknown) => setState({ at: "failed", error }),
    );
  };
  const Page = isPage(page) ? PAGES[page] : NoSuchPage;
  return (
    <Shell page={page} workspace={state.session.workspace} leave={leave}>
      <Page key={`${state.session.workspaceId} ${page}`} />
    </Shell>
  );
}

function isPage(name: string): name is keyof typeof PAGES {
  return Object.hasOwn(PAGES, name);
}

function NoSuchPage() {
  return (
    <>
      <PageHead title="Page not found" />
      <Empty title="There is no page at this address.">
        <p>Choose a page in the navigation.</p>
      </Empty>
    </>
  );
}

/** Reloads the page if another tab has signed in to another workspace, because all tabs share the session cookie. */
function watchOtherTabs(session: Session): () => void {
  const check = async () => {
    if (document.visibilityState !== "visible") return;
    const now = await currentSession().catch(() => session);
    if (now && now.workspaceId !== session.workspaceId) location.reload();
  };
  document.addEventListener("visibilitychange", check);
  return () => document.removeEventListener("visibilitychange", check);
}
