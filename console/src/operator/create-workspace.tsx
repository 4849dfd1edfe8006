import { WorkspaceKind } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { Dialog } from "../parts/dialog.tsx";
import { ActionForm } from "./action-form.tsx";
import { workspaces } from "./rpc.ts";

const KINDS = [
  ["organization", "Organization"],
  ["personal", "Personal"],
] as const;

/** Asks for the name and kind of a new workspace. @param created is called with the name when it exists */
export function CreateWorkspace({ close, created }: { close: () => void; created: (name: string) => void }) {
  return (
    <Dialog title="New workspace" close={close}>
      <ActionForm
        title="Name and kind"
        action="Create"
        inputs={[
          { name: "name", label: "Name", help: "Letters, digits, '.', '_' and '-'" },
          { name: "kind", label: "Kind", options: KINDS },
        ]}
        run={async ({ name = "", kind }) => {
          const isPersonal = kind === "personal";
          await workspaces.createWorkspace({
            name,
            kind: isPersonal ? WorkspaceKind.PERSONAL : WorkspaceKind.ORGANIZATION,
          });
          created(name);
          return `Created the workspace ${name}.`;
        }}
      />
    </Dialog>
  );
}
