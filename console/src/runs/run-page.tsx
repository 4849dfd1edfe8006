import { pathOf, useRoute } from "../route.ts";
import { activity } from "../rpc.ts";
import { RunView } from "./run-view.tsx";

/** Shows the owner of a workspace how one request was answered. */
export function RunPage() {
  const id = useRoute().page.replace(/^runs\/?/, "");
  return (
    <RunView
      id={id}
      load={(signal) => activity.getRun({ id }, { signal })}
      back={{ address: pathOf("activity"), name: "Activity" }}
    />
  );
}
