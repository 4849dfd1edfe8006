import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { AlertsPage } from "../alerts/alerts-page.tsx";
import { Empty } from "../parts/empty.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { useRoute } from "../route.ts";
import { AuditPage } from "./audit-page.tsx";
import { ModelsPage } from "./models-page.tsx";
import { OperatorShell, type PageName } from "./operator-shell.tsx";
import { OperatorSignIn } from "./operator-sign-in.tsx";
import { ReplicasPage } from "./replicas-page.tsx";
import { alerts } from "./rpc.ts";
import { currentOperator, type OperatorSession, onSessionEnd, signOut } from "./session.ts";
import { WorkspacesPage } from "./workspaces-page.tsx";

const PAGES: Record<PageName, FunctionComponent> = {
  "": WorkspacesPage,
  models: ModelsPage,
  replicas: ReplicasPage,
  alerts: () => <AlertsPage calls={alerts} all />,
  audit: AuditPage,
};

const ENDED =
  "Your session has ended: it was idle for an hour or is older than eight hours, or the operator token was replaced.";

type State =
  | { at: "start" }
  | { at: "failed"; error: unknown }
  | { at: "out"; notice: string }
  | { at: "in"; session: OperatorSession };

/** The operator's side of the console: the sign-in form, or the page that the address names. */
export function OperatorApp() {
  const [state, setState] = useState<State>({ at: "start" });
  const { page: path } = useRoute();
  const page = path.replace(/^operator\/?/, "");

  const start = () => {
    currentOperator().then(
      (session) => setState(session ? { at: "in", session } : { at: "out", notice: "" }),
      (error: unknown) => setState({ at: "failed", error }),
    );
  };
  useEffect(start, []);
  useEffect(() => onSessionEnd(() => setState((now) => (now.at === "in" ? { at: "out", notice: ENDED } : now))), []);

  if (state.at === "start") return <p class="starting">Opening the console…</p>;
  if (state.at === "failed") {
    return (
      <main class="sign-in">
        <FailureNote error={state.error} retry={start} />
      </main>
    );
  }
  if (state.at === "out")
    return <OperatorSignIn notice={state.notice} enter={(session) => setState({ at: "in", session })} />;

  const leave = () => {
    signOut().then(
      () => setState({ at: "out", notice: "You have signed out." }),
      (error: unknown) => setState({ at: "failed", error }),
    );
  };
  const Page = isPage(page) ? PAGES[page] : NoSuchPage;
  return (
    <OperatorShell page={page} operator={state.session.operator} leave={leave}>
      <Page key={page} />
    </OperatorShell>
  );
}

function isPage(name: string): name is PageName {
  return Object.hasOwn(PAGES, name);
}

function NoSuchPage() {
  return (
    <>
      <h1 tabIndex={-1}>Not found</h1>
      <Empty title="There is no such page." />
    </>
  );
}
