import { MemberRole } from "../../../gen/chorus/v1/options_pb.js";
import { Field } from "../parts/field.tsx";

const ROLES = [
  [MemberRole.OWNER, "Owner", "May do everything in the workspace."],
  [MemberRole.DEVELOPER, "Developer", "Uses the playground and keys of their own, and sees their own use."],
  [MemberRole.BILLING, "Billing", "Sees usage and the ledger, and sets spend limits. Has no keys."],
  [MemberRole.VIEWER, "Viewer", "Sees everything and changes nothing. Has no keys."],
] as const;

/** Chooses a role. */
export function RoleField({ role, choose }: { role: MemberRole; choose: (role: MemberRole) => void }) {
  return (
    <Field id="role" label="Role" help={ROLES.find(([one]) => one === role)?.[2] ?? ""}>
      <select
        id="role"
        value={role}
        data-autofocus
        aria-describedby="role-help"
        onChange={(event) => choose(Number(event.currentTarget.value))}
      >
        {ROLES.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </Field>
  );
}
