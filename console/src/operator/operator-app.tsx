import type { FunctionComponent } from "preact";
import { AlertsPage } from "../alerts/alerts-page.tsx";
import { NoSuchPage } from "../parts/no-such-page.tsx";
import { useRoute } from "../route.ts";
import { SessionGate } from "../session/session-gate.tsx";
import type { SignInText } from "../session/sign-in.tsx";
import { Shell } from "../shell/shell.tsx";
import { AuditPage } from "./audit-page.tsx";
import { HomePage } from "./home-page.tsx";
import { ModelsPage } from "./models-page.tsx";
import { addressOf, addressOfWorkspace, PAGES, workspaceIn } from "./pages.ts";
import { ReplicasPage } from "./replicas-page.tsx";
import { alerts } from "./rpc.ts";
import { RunPage } from "./run-page.tsx";
import { operators } from "./session.ts";
import { WorkspacePage } from "./workspace-page.tsx";
import { WorkspacesPage } from "./workspaces-page.tsx";

const COMPONENTS: Record<keyof typeof PAGES, FunctionComponent> = {
  "": HomePage,
  workspaces: WorkspacesPage,
  models: ModelsPage,
  replicas: ReplicasPage,
  alerts: () => <AlertsPage calls={alerts} addressOfWorkspace={addressOfWorkspace} />,
  audit: AuditPage,
};

const ENDED =
  "Your session has ended: it was idle for an hour or is older than eight hours, or the operator token was replaced.";

const SIGN_IN: SignInText = {
  title: "Sign in · Operator · Chorus",
  heading: "Sign in as operator",
  label: "Operator token",
  placeholder: "op_…",
  help: (
    <>
      The first start prints it, and stores it in <code>operator_token</code> of its data folder. A lost one is replaced
      with <code>chorus operators replace-token</code>.
    </>
  ),
  wrong: "This token is not valid. It may be mistyped or replaced by a newer one.",
};

/** The operator's side of the console: the sign-in form, or the page that the address names. */
export function OperatorApp() {
  const path = useRoute().page;
  const page = path.replace(/^operator\/?/, "");
  const isRun = page.startsWith("runs/");
  const workspace = workspaceIn(path);
  const Page = isRun ? RunPage : workspace ? WorkspacePage : isPage(page) ? COMPONENTS[page] : NoSuchPage;
  return (
    <SessionGate client={operators} find={() => operators.current()} text={SIGN_IN} ended={ENDED}>
      {({ operator }, leave) => (
        <Shell
          pages={PAGES}
          addressOf={addressOf}
          page={isRun || workspace ? "workspaces" : page}
          label="Operator"
          name={operator}
          find={(text) => [[`Workspaces with “${text}” in their name`, addressOf("workspaces", { search: text })]]}
          title="Operator"
          leave={leave}
        >
          <Page key={page} />
        </Shell>
      )}
    </SessionGate>
  );
}

function isPage(name: string): name is keyof typeof PAGES {
  return Object.hasOwn(PAGES, name);
}
