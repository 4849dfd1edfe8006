import { useRoute } from "../route.ts";
import { RunView } from "../runs/run-view.tsx";
import { addressOfWorkspace } from "./pages.ts";
import { activity } from "./rpc.ts";

/** Shows an operator how one request was answered: `operator/runs/{id}?workspace={workspace}`. */
export function RunPage() {
  const { page, query } = useRoute();
  const id = page.replace(/^operator\/runs\/?/, "");
  const workspace = query.get("workspace") ?? "";
  return (
    <RunView
      id={id}
      load={(signal) => activity.getRun({ id, workspace }, { signal })}
      isOperator
      back={{ address: addressOfWorkspace(workspace), name: "Workspace" }}
    />
  );
}
